/* What tests of questions share: a client that is asked, by a request on its connection or by a
 * result that wants input, and that answers as it is told to. */
#ifndef TEST_QUESTION_BENCH_H
#define TEST_QUESTION_BENCH_H

#include "sdk/mrtr_state.h"
#include "unit/sdk/sdk_bench.h"

#define EVERY_QUESTION                                                                             \
    "\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{\"tools\":{}},\"roots\":{}"

/* What follows `before` in `text`, up to the next of `end`; static storage. */
static inline const char *cut(const char *text, const char *before, char end)
{
    static char part[64 * 1024];
    const char *at = strstr(text, before);
    assert_non_null(at);
    at += strlen(before);
    const char *stop = strchr(at, end);
    assert_non_null(stop);
    assert_true((size_t)(stop - at) < sizeof(part));
    memcpy(part, at, (size_t)(stop - at));
    part[stop - at] = '\0';
    return part;
}

/* A session's client answers the question that came as event `at`. */
static inline void answer_event(rig *self, int at, const char *result)
{
    char text[8192];
    int len = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}",
                       cut(self->way.event[at], "\"id\":", ','), result);
    assert_true(len > 0 && (size_t)len < sizeof(text));
    rig_say(self, text);
}

static inline const char *state_in(const char *said)
{
    return cut(said, "\"requestState\":\"", '"');
}

/* The next round of a call: with these responses and, unless NULL, the state. */
static inline const char *next_round(rig *self, const char *method, const char *params,
                                     const char *responses, const char *state)
{
    static char text[64 * 1024];
    char kept[64 * 1024];
    (void)snprintf(kept, sizeof(kept), "%s", state != NULL ? state : "");
    int len = snprintf(
        text, sizeof(text), "%s%s%s%s%s%s", params, responses != NULL ? ",\"inputResponses\":" : "",
        responses != NULL ? responses : "", state != NULL ? ",\"requestState\":\"" : "", kept,
        state != NULL ? "\"" : "");
    assert_true(len > 0 && (size_t)len < sizeof(text));
    return rig_ask(self, method, text);
}

#endif
