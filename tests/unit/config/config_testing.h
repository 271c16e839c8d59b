/* What the tests of the configuration share: an environment, and loading from a literal. */
#ifndef TESTS_CONFIG_TESTING_H
#define TESTS_CONFIG_TESTING_H

#include "base/str.h"
#include "config/config.h"

static inline bool testing_lookup(void *context, bay_str name, bay_str *out)
{
    (void)context;
    static const struct {
        bay_str name;
        bay_str value;
    } variables[] = {
        {STR_INIT("TOKEN"), STR_INIT("s3cr3t-t0ken")},
        {STR_INIT("WORKERS"), STR_INIT("3")},
        {STR_INIT("EMPTY"), STR_INIT("")},
        {STR_INIT("LINES"), STR_INIT("s3cr3t\r\nX-Evil: 1")},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (str_eq(variables[i].name, name)) {
            *out = variables[i].value;
            return true;
        }
    }
    return false;
}

static inline bay_err testing_load(const char *text, const config **out, config_report *report)
{
    return config_load_text(str_of(text), STR("patchbay.yaml"), testing_lookup, NULL, out, report);
}

#endif
