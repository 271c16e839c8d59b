/* An endpoint in front of a server that asks, and a stateless client whose calls are suspended:
 * what its tests share. */
#ifndef TESTS_PARKED_TESTING_H
#define TESTS_PARKED_TESTING_H

#include "support/endpoint_testing.h"

#include <malloc.h>

#include "endpoint/endpoint_parts.h"
#include "support/failing_memory.h"

#define WHO "'protocolVersion':'2025-11-25','capabilities':{}"
#define EVERYTHING "{'elicitation':{'form':{},'url':{}},'sampling':{'tools':{}},'roots':{}}"
#define CALL(id, more)                                                                             \
    "{'jsonrpc':'2.0','id':" id ",'method':'tools/call','params':{'name':'a.echo',"                \
    "'arguments':{'n':1.0,'m':[2]}" more "," META_OF(EVERYTHING) "}}}"
#define FORM(id, message)                                                                          \
    "{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'" message     \
    "','requestedSchema' : {'type':'object','properties':{'x':{'type':'number','default':1.0}}}}}"
#define ACCEPT "{'action':'accept','content':{'x':1.0}}"

enum { STATE = 1000 };

static inline void open_suspending(stage *self, const char *settings)
{
    open_on_loop(self, settings, WHO);
    fake_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    self->a->sends = 0; /* of its lists */
}

static inline void turn(stage *self)
{
    loop_turn(self->loop, 0);
}

/* The requestState of the one line that came; the line is kept. */
static inline const char *state_of(const peer *from, char out[STATE])
{
    assert_int_equal(from->count, 1);
    const char *at = strstr(from->lines[0], "\"requestState\":\"");
    if (at == NULL) {
        print_error("%s\n", from->lines[0]);
    }
    assert_non_null(at);
    at += strlen("\"requestState\":\"");
    size_t len = strcspn(at, "\"");
    assert_true(len < STATE);
    memcpy(out, at, len);
    out[len] = '\0';
    return out;
}

/* The same call again, with these answers. */
static inline void retry(stage *self, const char *id, const char *state, const char *answers)
{
    char text[6000];
    (void)snprintf(text, sizeof(text), CALL("%s", ",'requestState':'%s','inputResponses':%s"), id,
                   state, answers);
    say(&self->modern, text);
}

/* A call, and one form asked during it; the state of the result is in `out`. */
static inline void suspend_one(stage *self, char out[STATE])
{
    say(&self->modern, CALL("1", ""));
    fake_ask_during(self->a->held[self->a->held_count - 1], FORM("'s1'", "name?"));
    turn(self);
    (void)state_of(&self->modern, out);
    forget(&self->modern);
}

static inline void assert_refused(stage *self, const char *why)
{
    assert_int_equal(self->modern.count, 1);
    if (strstr(self->modern.lines[0], "-32602") == NULL ||
        strstr(self->modern.lines[0], why) == NULL) {
        print_error("heard: %s\nwanted: -32602 … %s\n", self->modern.lines[0], why);
    }
    assert_non_null(strstr(self->modern.lines[0], "-32602"));
    assert_non_null(strstr(self->modern.lines[0], why));
    forget(&self->modern);
}

/* The suspended call is as it was: the right retry ends it. */
static inline void assert_still_good(stage *self, const char *state)
{
    retry(self, "90", state, "{'q1':" ACCEPT "}");
    assert_int_equal(self->modern.count, 0);
    assert_text(str_of(self->a->answer), "\"s1\" {\"action\":\"accept\",\"content\":{\"x\":1.0}}");
    fake_result(self->a, "{'content':[],'n':1.0}");
    assert_heard_part(&self->modern, "'id':90,'result':{'resultType':'complete','content':[],"
                                     "'n':1.0,");
    assert_int_equal(self->endpoint->suspended.calls.len, 0);
    assert_int_equal(self->endpoint->suspended.bytes, 0);
}

#endif
