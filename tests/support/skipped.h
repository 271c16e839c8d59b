/* A case that this build cannot have: it stands in its place among the others, says why, and counts
 * as skipped. What a build lacks is a switch of its own (BAY_ERR_TLS, BAY_HTTP2 …), so nothing that
 * fails can end here. */
#ifndef TESTS_SUPPORT_SKIPPED_H
#define TESTS_SUPPORT_SKIPPED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SKIPPED(name, why)                                                                         \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        printf("skipped: " #name ": " why "\n");                                                   \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    }

#endif
