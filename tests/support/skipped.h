/* A case that this build or this machine cannot have: it stands in its place among the others, says
 * why, and counts as skipped. What a build lacks is a switch of its own (BAY_ERR_TLS, BAY_HTTP2 …);
 * what a machine lacks is looked at before the case runs, so nothing that fails can end here. */
#ifndef TESTS_SUPPORT_SKIPPED_H
#define TESTS_SUPPORT_SKIPPED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Ends the running case. ./dev test shows the line. */
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        printf("skipped: %s: %s\n", __func__, why);                                                \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)

#define SKIPPED(name, why)                                                                         \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        SKIP(why);                                                                                 \
    }

#endif
