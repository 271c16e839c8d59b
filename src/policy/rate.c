#include "policy/rate.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"

static const struct {
    bay_str name;
    uint32_t ms;
    const char *word;
} units[] = {
    {STR_INIT("s"), 1000, "second"},
    {STR_INIT("min"), 60 * 1000, "minute"},
    {STR_INIT("h"), 3600 * 1000, "hour"},
    {STR_INIT("d"), 24 * 3600 * 1000, "day"},
};

static bool take_count(bay_str *text, uint32_t *out)
{
    uint32_t count = 0;
    size_t at = 0;
    while (at < text->len && text->at[at] >= '0' && text->at[at] <= '9') {
        count = count * 10 + (uint32_t)(text->at[at++] - '0');
        if (count > POLICY_RATE_COUNT) {
            return false;
        }
    }
    *text = str_from(*text, at);
    *out = count;
    return count > 0;
}

static bool take_word(bay_str *text, bay_str word)
{
    bool is_there = str_starts(*text, word);
    *text = is_there ? str_from(*text, word.len) : *text;
    return is_there;
}

static bool parse(bay_str text, policy_rate *out)
{
    if (!take_count(&text, &out->count) || !take_word(&text, STR("/"))) {
        return false;
    }
    bay_str unit = str_head(text, str_find(text, ' '));
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        out->period_ms = str_eq(unit, units[i].name) ? units[i].ms : out->period_ms;
    }
    text = str_trim(str_from(text, unit.len));
    out->burst = out->count;
    if (text.len > 0) {
        if (!take_word(&text, STR("burst "))) {
            return false;
        }
        text = str_trim(text);
        if (!take_count(&text, &out->burst)) {
            return false;
        }
    }
    return out->period_ms > 0 && text.len == 0;
}

bay_err policy_rate_parse(bay_str text, policy_rate *out, bay_diag *diag)
{
    policy_rate made = {0};
    if (!parse(str_trim(text), &made)) {
        return diag_set(diag, BAY_ERR_SYNTAX,
                        "a rate is written 60/min or 60/min burst 20: up to %d in each s, min, h "
                        "or d",
                        POLICY_RATE_COUNT);
    }
    *out = made;
    return BAY_OK;
}

void policy_rate_text(const policy_rate *self, char out[POLICY_RATE_TEXT])
{
    const char *word = "second";
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        word = units[i].ms == self->period_ms ? units[i].word : word;
    }
    if (self->burst == self->count) {
        (void)snprintf(out, POLICY_RATE_TEXT, "%u a %s", self->count, word);
    } else {
        (void)snprintf(out, POLICY_RATE_TEXT, "%u a %s and %u at once", self->count, word,
                       self->burst);
    }
}
