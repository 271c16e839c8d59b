/* Calls of clients of the stateless era that a server of the handshake era asks something during:
 * parked, resumed by the retry, and ended in every way there is. */
#include "face_testing.h"

#include "gateway/face_parts.h"
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

static void open_parking(stage *self, const char *settings)
{
    open_on_loop(self, settings, WHO);
    upstream_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    self->a->sends = 0; /* of its lists */
}

static void turn(stage *self)
{
    loop_turn(self->loop, 0);
}

/* The requestState of the one line that came; the line is kept. */
static const char *state_of(const peer *from, char out[STATE])
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
static void retry(stage *self, const char *id, const char *state, const char *answers)
{
    char text[6000];
    (void)snprintf(text, sizeof(text), CALL("%s", ",'requestState':'%s','inputResponses':%s"), id,
                   state, answers);
    say(&self->modern, text);
}

/* A call, and one form asked during it; the state of the result is in `out`. */
static void park_one(stage *self, char out[STATE])
{
    say(&self->modern, CALL("1", ""));
    fake_ask(self->a, FORM("'s1'", "name?"));
    turn(self);
    (void)state_of(&self->modern, out);
    forget(&self->modern);
}

static void assert_refused(stage *self, const char *why)
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

/* The parked call is as it was: the right retry ends it. */
static void assert_still_good(stage *self, const char *state)
{
    retry(self, "90", state, "{'q1':" ACCEPT "}");
    assert_int_equal(self->modern.count, 0);
    assert_text(str_of(self->a->answer), "\"s1\" {\"action\":\"accept\",\"content\":{\"x\":1.0}}");
    fake_result(self->a, "{'content':[],'n':1.0}");
    assert_heard_part(&self->modern, "'id':90,'result':{'resultType':'complete','content':[],"
                                     "'n':1.0,");
    assert_int_equal(self->face->parked.calls.len, 0);
    assert_int_equal(self->face->parked.bytes, 0);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void a_forged_state_is_refused(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    char bad[STATE];
    open_parking(&self, "workers: 1");
    park_one(&self, good);
    assert_true(strncmp(good, "pb5.", 4) == 0);
    for (size_t at = 4; good[at] != '\0'; at += 7) {
        memcpy(bad, good, sizeof(bad));
        bad[at] = bad[at] == 'A' ? 'B' : 'A';
        retry(&self, "2", bad, "{'q1':" ACCEPT "}");
        assert_refused(&self, "not one that was given for this call");
    }
    static const char *const others[] = {"", "x", "pb5.", "pb5.AAAA", "pb5", "state"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        retry(&self, "2", others[i], "{'q1':" ACCEPT "}");
        assert_refused(&self, "not one that was given for this call");
    }
    say(&self.modern, CALL("2", ",'requestState':7"));
    assert_refused(&self, "not one that was given for this call");
    say(&self.modern, CALL("2", ",'requestState':'a','requestState':'b'"));
    assert_refused(&self, "stands twice");
    assert_int_equal(self.a->sends, 1);
    assert_int_equal(self.a->answers, 0);
    assert_still_good(&self, good);
    close_stage(&self);
}

static void a_state_belongs_to_one_call(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    char text[4000];
    open_parking(&self, "workers: 1");
    park_one(&self, good);
    static const char *const others[] = {
        "'method':'tools/call','params':{'name':'a.echo','arguments':{'n':1.0,'m':[3]}",
        "'method':'tools/call','params':{'name':'a.echo','arguments':{'n':1.0}",
        "'method':'tools/call','params':{'name':'a.echo'",
        "'method':'tools/call','params':{'name':'a.x.y','arguments':{'n':1.0,'m':[2]}",
        "'method':'prompts/get','params':{'name':'a.echo','arguments':{'n':1.0,'m':[2]}",
        "'method':'resources/read','params':{'uri':'a.echo','arguments':{'n':1.0,'m':[2]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        (void)snprintf(text, sizeof(text),
                       "{'jsonrpc':'2.0','id':2,%s,'requestState':'%s','inputResponses':{'q1':%s},"
                       "%s}}}",
                       others[i], good, ACCEPT, META_OF(EVERYTHING));
        say(&self.modern, text);
        assert_refused(&self, "another name or with other arguments");
    }
    /* the same arguments, written in another way */
    (void)snprintf(text, sizeof(text),
                   "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'inputResponses':{'q1':"
                   "%s},'requestState':'%s','arguments':{'m' : [ 2 ],'n':1},'name':'a.echo',%s}}}",
                   ACCEPT, good, META_OF(EVERYTHING));
    say(&self.modern, text);
    assert_int_equal(self.modern.count, 0);
    assert_int_equal(self.a->answers, 1);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':2,'result'");
    close_stage(&self);
}

static void a_state_belongs_to_one_principal(void **state)
{
    (void)state;
    stage self;
    char good[STATE];
    open_parking(&self, "workers: 1");
    mcp_connection_identify(self.modern.connection, STR("alice"));
    park_one(&self, good);
    mcp_connection_identify(self.modern.connection, STR("mallory"));
    retry(&self, "2", good, "{'q1':" ACCEPT "}");
    assert_refused(&self, "not one that was given for this call");
    mcp_connection_identify(self.modern.connection, STR("alice"));
    assert_still_good(&self, good);
    close_stage(&self);
}

static void a_state_is_good_once(void **state)
{
    (void)state;
    stage self;
    char first[STATE];
    char second[STATE];
    open_parking(&self, "workers: 1");
    park_one(&self, first);
    retry(&self, "2", first, "{'q1':" ACCEPT "}");
    assert_int_equal(self.a->answers, 1);
    retry(&self, "3", first, "{'q1':" ACCEPT "}"); /* while it is under way */
    assert_refused(&self, "was used before");
    fake_ask(self.a, FORM("7", "more?"));
    turn(&self);
    (void)state_of(&self.modern, second);
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'input_required',"
                                    "'inputRequests':{'q2':");
    retry(&self, "4", first, "{'q1':" ACCEPT "}"); /* of an earlier round */
    assert_refused(&self, "was used before");
    retry(&self, "5", second, "{'q2':{'action':'decline'}}");
    assert_text(str_of(self.a->answer), "7 {\"action\":\"decline\"}");
    assert_int_equal(self.a->answers, 2);
    fake_result(self.a, "{'content':[]}");
    assert_heard_part(&self.modern, "'id':5,'result'");
    retry(&self, "6", second, "{'q2':" ACCEPT "}"); /* when it is over */
    assert_refused(&self, "is over");
    retry(&self, "7", first, "{'q1':" ACCEPT "}");
    assert_refused(&self, "is over");
    assert_int_equal(self.a->sends, 1);
    close_stage(&self);
}

static void what_the_client_did_not_declare_is_refused(void **state)
{
    (void)state;
    stage self;
    static const struct {
        const char *capabilities;
        const char *ask;
        const char *answer;
    } rows[] = {
        {"{}", "'method':'elicitation/create','params':{'message':'m'}", "-32601"},
        {"{'sampling':{},'roots':{}}", "'method':'elicitation/create','params':{'message':'m'}",
         "-32601"},
        {"{'elicitation':{}}", "'method':'elicitation/create','params':{'mode':'url','url':'x:y'}",
         "-32602"},
        {"{'elicitation':{'url':{}}}", "'method':'elicitation/create','params':{'mode':'form'}",
         "-32602"},
        {"{'elicitation':{}}", "'method':'elicitation/create','params':{'mode':'dance'}", "-32602"},
        {"{'elicitation':{}}", "'method':'sampling/createMessage','params':{}", "-32601"},
        {"{'sampling':{}}", "'method':'sampling/createMessage','params':{'tools':[]}", "-32602"},
        {"{'elicitation':{}}", "'method':'roots/list'", "-32601"},
    };
    open_parking(&self, "workers: 1");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[1000];
        (void)snprintf(text, sizeof(text),
                       "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'a.echo',"
                       "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                       "'io.modelcontextprotocol/clientCapabilities':%s}}}",
                       rows[i].capabilities);
        say(&self.modern, text);
        (void)snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':'s',%s}", rows[i].ask);
        fake_ask(self.a, text);
        turn(&self);
        assert_int_equal(self.modern.count, 0);
        assert_int_equal(self.a->answers, (int)i + 1);
        assert_true(strncmp(self.a->answer, "\"s\" ", 4) == 0);
        assert_true(strncmp(self.a->answer + 4, rows[i].answer, 6) == 0);
        fake_result(self.a, "{'content':[]}");
        assert_heard_part(&self.modern, "'result'");
    }
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forged_state_is_refused),
        cmocka_unit_test(a_state_belongs_to_one_call),
        cmocka_unit_test(a_state_belongs_to_one_principal),
        cmocka_unit_test(a_state_is_good_once),
        cmocka_unit_test(what_the_client_did_not_declare_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
