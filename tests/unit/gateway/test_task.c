/* Tasks through a face: clients of either era at servers of either era, and of none. Everything in
 * memory; the clock is the loop's, for what is polled. */
#include "face_testing.h"

#include "gateway/face_parts.h"
#include "gateway/task_plan.h"

enum { TOKEN = 512 };

#define EXT "{'elicitation':{},'extensions':{'io.modelcontextprotocol/tasks':{}}}"
#define WITH(id, method, params)                                                                   \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "," META_OF(EXT) "}}}"
#define WHO_2025 "'protocolVersion':'2025-11-25','capabilities':{'elicitation':{},'sampling':{}}"
#define WHO_OLD "'protocolVersion':'2025-06-18','capabilities':{'elicitation':{}}"
#define TIMES "'createdAt':'2026-01-01T00:00:00Z','lastUpdatedAt':'2026-01-01T00:00:01Z'"
#define FLAT(status, more) "{'taskId':'up/1','status':'" status "'," TIMES ",'ttlMs':60000" more "}"
#define CORE(status, more) "{'taskId':'up/1','status':'" status "'," TIMES ",'ttl':60000" more "}"

/* The server a: stateless with the extension, of sessions with tasks, or with neither. */
static void be_modern(stage *self)
{
    upstream_learn(&self->a->base, mcp_revision_of(MCP_LATEST),
                   STR("{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"));
}

static void be_core(stage *self)
{
    upstream_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25),
                   STR("{\"tools\":{},\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":"
                       "{\"call\":{}}}}}"));
}

static void be_plain(stage *self)
{
    upstream_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_06_18), STR("{\"tools\":{}}"));
}

static void open_tasks(stage *self, const char *who, void (*be)(stage *self))
{
    static const char *tools = "[{\"name\":\"echo\"},"
                               "{\"name\":\"may\",\"execution\":{\"taskSupport\":\"optional\"}},"
                               "{\"name\":\"must\",\"execution\":{\"taskSupport\":\"required\"}}]";
    open_on_loop(self, "workers: 1", who);
    listing_unref(self->sources[0].listings[LISTING_TOOLS]);
    self->sources[0].listings[LISTING_TOOLS] = listing_of(self->a, LISTING_TOOLS, tools);
    be(self);
    face_refresh(self->face, LISTING_TOOLS, self->sources, 2);
    forget(&self->legacy);
}

static void assert_params(const fake *server, const char *method, const char *params)
{
    assert_int_equal(server->held_count, 1);
    char *text = testing_quotes(params);
    assert_text(server->held[0]->spec.method, method);
    assert_text(json_raw(server->held[0]->spec.params), text);
    mem_free(text);
}

/* The task id in the last line heard. */
static void take_token(peer *self, char out[TOKEN])
{
    assert_int_equal(self->count, 1);
    const char *at = strstr(self->lines[0], "\"taskId\":\"pb5.");
    if (at == NULL) {
        fail_msg("no task of ours in %s", self->lines[0]);
    }
    at += strlen("\"taskId\":\"");
    size_t len = strcspn(at, "\"");
    assert_true(len < TOKEN);
    memcpy(out, at, len);
    out[len] = '\0';
    assert_null(strstr(self->lines[0], "up/1"));
}

static void ask_for(peer *self, const char *format, const char *token)
{
    char text[3000];
    (void)snprintf(text, sizeof(text), format, token);
    say(self, text);
}

static void assert_heard_of(peer *self, const char *format, const char *token)
{
    char text[3000];
    (void)snprintf(text, sizeof(text), format, token, token);
    assert_heard(self, text);
}

#define GET(id) WITH(id, "tasks/get", "'taskId':'%s'")
#define LEGACY_TASK(id, method) LEGACY(id, method, "'taskId':'%s'")

/* Creates a task of the server a. */
static void begin_modern(stage *self, char token[TOKEN])
{
    say(&self->modern, WITH("1", "tools/call", "'name':'a.may'"));
    fake_result(self->a, self->a->base.revision->era == MCP_MODERN
                             ? "{'resultType':'task'," TIMES ",'ttlMs':60000,'taskId':'up/1',"
                               "'status':'working'}"
                             : "{'task':" CORE("working", "") "}");
    take_token(&self->modern, token);
    forget(&self->modern);
}

static void begin_legacy(stage *self, char token[TOKEN])
{
    say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':60000}"));
    fake_result(self->a, self->a->base.revision->era == MCP_MODERN
                             ? "{'resultType':'task'," TIMES ",'ttlMs':60000,'taskId':'up/1',"
                               "'status':'working'}"
                             : "{'task':" CORE("working", "") "}");
    take_token(&self->legacy, token);
    forget(&self->legacy);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void forged_names_reach_no_server(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    static const char *const bad[] = {"up/1", "", "pb5.", "pb5.AAAA", "pb0.zzz"};
    open_tasks(&self, WHO_2025, be_modern);
    begin_modern(&self, token);
    int sends = self.a->sends;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ask_for(&self.modern, GET("7"), bad[i]);
        assert_heard_part(&self.modern, "'code':-32602,'message':'Task not found'");
        ask_for(&self.modern, WITH("7", "tasks/cancel", "'taskId':'%s'"), bad[i]);
        assert_heard_part(&self.modern, "-32602");
        ask_for(&self.modern, WITH("7", "tasks/update", "'taskId':'%s','inputResponses':{}"),
                bad[i]);
        assert_heard_part(&self.modern, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("7", "tasks/get"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("8", "tasks/cancel"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
        ask_for(&self.legacy, LEGACY_TASK("9", "tasks/result"), bad[i]);
        assert_heard_part(&self.legacy, "-32602");
    }
    /* each byte changed, each end cut */
    size_t len = strlen(token);
    for (size_t i = 0; i < len; i++) {
        char changed[TOKEN];
        memcpy(changed, token, len + 1);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        if (i < 4) {
            continue; /* "pb5.": a hint where it is at home, under no seal */
        }
        ask_for(&self.modern, GET("7"), changed);
        assert_heard_part(&self.modern, "-32602");
        memcpy(changed, token, i);
        changed[i] = '\0';
        ask_for(&self.modern, GET("7"), changed);
        assert_heard_part(&self.modern, "-32602");
    }
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void somebody_elses_task_is_unknown(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    mcp_connection_identify(self.modern.connection, STR("alice"));
    begin_modern(&self, token);
    int sends = self.a->sends;
    mcp_connection_identify(self.modern.connection, STR("bob"));
    ask_for(&self.modern, GET("2"), token);
    assert_heard_part(&self.modern, "-32602");
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/cancel"), token);
    assert_heard_part(&self.legacy, "-32602");
    assert_int_equal(self.a->sends, sends);
    mcp_connection_identify(self.modern.connection, STR("alice"));
    ask_for(&self.modern, GET("3"), token);
    assert_int_equal(self.a->sends, sends + 1);
    fake_result(self.a, FLAT("working", ""));
    assert_heard_part(&self.modern, "'status':'working'");
    close_stage(&self);
}

static void without_the_extension_there_are_no_tasks(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/update"};
    open_tasks(&self, WHO_OLD, be_modern);
    begin_modern(&self, token);
    int sends = self.a->sends;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        char text[2000];
        (void)snprintf(text, sizeof(text), MODERN("7", "%s", "'taskId':'%s'"), methods[i], token);
        say(&self.modern, text);
        assert_heard_part(&self.modern,
                          "'code':-32021,'message':'Missing required client capability','data':{"
                          "'requiredCapabilities':{'extensions':{'io.modelcontextprotocol/tasks':"
                          "{}}}}");
        (void)snprintf(text, sizeof(text), LEGACY("7", "%s", "'taskId':'%s'"), methods[i], token);
        say(&self.legacy, text);
        assert_heard_part(&self.legacy, "-32601"); /* 2025-06-18 has none */
    }
    say(&self.modern, WITH("8", "tasks/result", "'taskId':'x'"));
    assert_heard_part(&self.modern, "-32601");
    say(&self.modern, WITH("8", "tasks/list", "'x':1"));
    assert_heard_part(&self.modern, "-32601");
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void faces_declare_what_each_revision_knows(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, MODERN("1", "server/discover", "'x':1"));
    assert_int_equal(self.modern.count, 1);
    assert_non_null(strstr(self.modern.lines[0], "\"io.modelcontextprotocol/tasks\":{}"));
    assert_null(strstr(self.modern.lines[0], "\"tasks\":{\"list\""));
    forget(&self.modern);
    peer other;
    peer_open(&other, self.face);
    say(&other, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" WHO_2025
                ",'clientInfo':{'name':'c','version':'1'}}}");
    assert_non_null(
        strstr(other.lines[0],
               "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"));
    assert_null(strstr(other.lines[0], "io.modelcontextprotocol/tasks"));
    forget(&other);
    mcp_connection_close(other.connection);
    peer_open(&other, self.face);
    say(&other, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{" WHO_OLD
                ",'clientInfo':{'name':'c','version':'1'}}}");
    assert_null(strstr(other.lines[0], "\"tasks\""));
    forget(&other);
    mcp_connection_close(other.connection);
    close_stage(&self);
}

/* Clients of 2025-11-25 look for it in the tool; servers of the extension say nothing there. */
static void tools_say_what_the_gateway_can_do(void **state)
{
    (void)state;
    static const char *tools = "[{\"name\":\"echo\",\"x\":1.0},"
                               "{\"name\":\"not\",\"execution\":{}}]";
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    listing_unref(self.sources[0].listings[LISTING_TOOLS]);
    self.sources[0].listings[LISTING_TOOLS] = listing_of(self.a, LISTING_TOOLS, tools);
    face_refresh(self.face, LISTING_TOOLS, self.sources, 2);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'result':{'tools':[{'name':'a.echo','x':1.0,'execution':{"
                 "'taskSupport':'optional'}},{'name':'a.not','execution':{}},{'name':'b.echo'}]}}");
    close_stage(&self);
}

static void a_tool_that_forbids_tasks_is_refused_as_one(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_plain);
    int sends = self.a->sends;
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','task':{}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'This "
                               "tool cannot be called as a task'}}");
    assert_int_equal(self.a->sends, sends);
    be_core(&self); /* it says so itself */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo','task':{}"));
    fake_error(self.a, -32601, "{'code':-32601,'message':'its own words'}");
    assert_heard_part(&self.legacy, "its own words");
    close_stage(&self);
}

/* ---- both of one era ------------------------------------------------------------------------- */

static void the_extension_passes_with_other_names(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call",
                  "{'name':'a.echo','arguments':{'n':1.0}," META_OF(EXT) "}}");
    fake_result(self.a, "{'resultType':'task','taskId':'up/1','status':'working'," TIMES
                        ",'ttlMs':1.0e3,'pollIntervalMs':7,'x':[1.50],'_meta':{'k':1.0}}");
    take_token(&self.modern, token);
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "'result':{'resultType':'task','taskId':'%s','status':'working'," TIMES
                   ",'ttlMs':1.0e3,'pollIntervalMs':7,'x':[1.50],'_meta':{",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("2"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    assert_text(self.a->held[0]->spec.method, "tasks/get");
    fake_result(self.a, "{'resultType':'complete','taskId':'up/1','status':'completed'," TIMES
                        ",'ttlMs':null,'result':{'content':[],'taskId':'up/1','n':1.0}}");
    (void)snprintf(text, sizeof(text),
                   "'taskId':'%s','status':'completed'," TIMES
                   ",'ttlMs':null,'result':{'content':[],'taskId':'up/1','n':1.0}",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern,
            WITH("3", "tasks/update", "'taskId':'%s','inputResponses':{'a':{'action':'x'}}"),
            token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, "{'resultType':'complete'}");
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("4", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'forgotten'}");
    assert_heard_part(&self.modern, "'code':-32602,'message':'forgotten'");
    close_stage(&self);
}

static void a_plain_result_passes_as_it_is(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.echo'"));
    fake_result(self.a, "{'resultType':'complete','content':[],'n':0.10}");
    assert_heard_part(&self.modern, "'resultType':'complete','content':[],'n':0.10");
    say(&self.modern, WITH("2", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_EXITED, true, "it died");
    assert_heard_part(&self.modern, "'isError':true");
    close_stage(&self);
}

static void the_core_passes_with_other_names(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':5}"));
    assert_params(self.a, "tools/call", "{'name':'a.may','task':{'ttl':5}}");
    fake_result(self.a, "{'task':" CORE("working",
                                        ",'x':1.0") ",'_meta':{'io.modelcontextprotocol/"
                                                    "model-immediate-response':'soon','io."
                                                    "modelcontextprotocol/related-task':{'taskId':"
                                                    "'up/1'}}}");
    take_token(&self.legacy, token);
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'result':{'task':{'taskId':'%s','status':'working'," TIMES
        ",'ttl':60000,'x':1.0},'_meta':{'io.modelcontextprotocol/"
        "model-immediate-response':'soon','io.modelcontextprotocol/related-task':{"
        "'taskId':'%s'}}}}",
        token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, CORE("working", ",'pollInterval':1.50"));
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'working'," TIMES
                    ",'ttl':60000,'pollInterval':1.50}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_ask(self.a, "{'jsonrpc':'2.0','id':'s','method':'elicitation/create','params':{'message':"
                     "'name?','requestedSchema':{},'_meta':{'io.modelcontextprotocol/related-task':"
                     "{'taskId':'up/1'}}}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create','params':{"
                    "'message':'name?','requestedSchema':{},'_meta':{'io.modelcontextprotocol/"
                    "related-task':{'taskId':'%s'}}}}",
                    token);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_text(str_of(self.a->answer), "\"s\" {\"action\":\"accept\"}");
    fake_result(self.a, "{'content':[],'_meta':{'io.modelcontextprotocol/related-task':{'taskId':"
                        "'up/1'},'k':1.0}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':3,'result':{'content':[],'_meta':{'k':1.0,"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    fake_result(self.a, CORE("cancelled", ""));
    assert_heard_part(&self.legacy, "'status':'cancelled'");
    close_stage(&self);
}

/* ---- a stateless client at a server of sessions ---------------------------------------------- */

static void a_tool_that_may_be_a_task_becomes_one(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.may','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call",
                  "{'name':'a.may','arguments':{'n':1.0}," META_OF(EXT) "},'task':{}}");
    assert_text(self.a->held[0]->spec.rename, "may");
    fake_result(self.a, "{'task':" CORE("working", ",'pollInterval':5,'x':1.0") "}");
    take_token(&self.modern, token);
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "'result':{'resultType':'task','taskId':'%s','status':'working'," TIMES
                   ",'x':1.0,'ttlMs':60000,'pollIntervalMs':5,'_meta':{",
                   token);
    assert_heard_part(&self.modern, text);
    /* one that forbids them does not, nor one that answers at once */
    say(&self.modern, WITH("2", "tools/call", "'name':'a.echo'"));
    assert_params(self.a, "tools/call", "{'name':'a.echo'," META_OF(EXT) "}}");
    fake_result(self.a, "{'content':[]}");
    forget(&self.modern);
    say(&self.modern, WITH("3", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'content':[{'type':'text','text':'at once'}]}");
    assert_heard_part(&self.modern, "at once");
    close_stage(&self);
}

static void a_result_is_fetched_and_inlined(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    char text[2000];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, CORE("working", ",'statusMessage':'half'"));
    (void)snprintf(
        text, sizeof(text),
        "'taskId':'%s','status':'working'," TIMES ",'statusMessage':'half','ttlMs':60000", token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("3"), token);
    fake_result(self.a, CORE("failed", "")); /* of a tool that says it is an error */
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    fake_result(self.a, "{'content':[],'isError':true,'n':1.0,'_meta':{'io.modelcontextprotocol/"
                        "related-task':{'taskId':'up/1'}}}");
    (void)snprintf(text, sizeof(text),
                   "'taskId':'%s','status':'completed'," TIMES
                   ",'ttlMs':60000,'result':{'content':[],'isError':true,'n':1.0},'_meta'",
                   token);
    assert_heard_part(&self.modern, text);
    ask_for(&self.modern, GET("4"), token);
    fake_result(self.a, CORE("failed", ""));
    fake_error(self.a, 7, "{'code':7,'message':'m','data':[1.0]}");
    assert_heard_part(&self.modern, "'status':'failed'," TIMES
                                    ",'ttlMs':60000,'error':{'code':7,'message':'m','data':[1.0]}");
    ask_for(&self.modern, GET("5"), token);
    fake_result(self.a, CORE("cancelled", ""));
    assert_heard_part(&self.modern, "'status':'cancelled'");
    ask_for(&self.modern, GET("6"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'expired'}");
    assert_heard_part(&self.modern, "'code':-32602,'message':'expired'");
    ask_for(&self.modern, GET("7"), token);
    fake_result(self.a, CORE("dreaming", ""));
    assert_heard_part(&self.modern, "in a state that no revision knows");
    ask_for(&self.modern, GET("8"), token);
    fake_result(self.a, CORE("completed", ""));
    fake_fail(self.a, BAY_EXITED, true, "it died");
    assert_heard_part(&self.modern, "'code':-32603");
    close_stage(&self);
}

static void a_cancel_is_acknowledged_whenever_it_comes(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, WITH("2", "tasks/cancel", "'taskId':'%s'"), token);
    assert_params(self.a, "tasks/cancel", "{'taskId':'up/1'}");
    fake_result(self.a, CORE("cancelled", ""));
    assert_int_equal(self.modern.count, 1);
    assert_null(strstr(self.modern.lines[0], "taskId"));
    assert_heard_part(&self.modern, "'id':2,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("3", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'over'}");
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}"); /* over, or unknown? */
    fake_result(self.a, CORE("completed", ""));
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete'");
    ask_for(&self.modern, WITH("4", "tasks/cancel", "'taskId':'%s'"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'unknown'}");
    fake_error(self.a, -32602, "{'code':-32602,'message':'unknown, too'}");
    assert_heard_part(&self.modern, "unknown, too");
    close_stage(&self);
}

#define QUESTION(id)                                                                               \
    "{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'name?',"      \
    "'requestedSchema':{},'_meta':{'io.modelcontextprotocol/related-task':{'taskId':'up/1'}}}}"

static void take_key(peer *self, char out[64])
{
    assert_int_equal(self->count, 1);
    const char *at = strstr(self->lines[0], "\"inputRequests\":{\"");
    assert_non_null(at);
    at += strlen("\"inputRequests\":{\"");
    size_t len = strcspn(at, "\"");
    assert_true(len > 0 && len < 64);
    memcpy(out, at, len);
    out[len] = '\0';
}

static void update(stage *self, const char *token, const char *responses)
{
    char text[3000];
    (void)snprintf(text, sizeof(text),
                   WITH("9", "tasks/update", "'taskId':'%s','inputResponses':%s"), token,
                   responses);
    say(&self->modern, text);
}

/* Until the server has asked, on the stream of a tasks/result that the gateway keeps open. */
static void a_question_waits_for_tasks_update(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    char key[64];
    char text[200];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    assert_int_equal(self.modern.count, 0);
    fake_ask(self.a, QUESTION("'s1'"));
    take_key(&self.modern, key);
    assert_non_null(strstr(self.modern.lines[0],
                           ":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"name?\","
                           "\"requestedSchema\":{}}}}"));
    assert_heard_part(&self.modern, "'status':'input_required'");
    /* what fits nothing changes nothing */
    update(&self, token, "{'other':{'action':'accept'}}");
    assert_heard_part(&self.modern, "'id':9,'result':{'resultType':'complete'");
    update(&self, token, "{'other':7}");
    assert_heard_part(&self.modern, "-32602");
    update(&self, token, "null");
    assert_heard_part(&self.modern, "-32602");
    assert_int_equal(self.a->answers, 0);
    (void)snprintf(text, sizeof(text), "{'%s':{'action':'accept','content':{'n':1.0}}}", key);
    update(&self, token, text);
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_text(str_of(self.a->answer), "\"s1\" {\"action\":\"accept\",\"content\":{\"n\":1.0}}");
    update(&self, token, text); /* a second time */
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_int_equal(self.a->answers, 1);
    /* the next question, which the server takes back, and the end */
    fake_ask(self.a, QUESTION("'s2'"));
    fake_withdraw(self.a, "'s2'");
    fake_result(self.a, "{'content':[]}");
    update(&self, token, text); /* after the end */
    assert_heard_part(&self.modern, "'id':9,'result'");
    assert_int_equal(self.a->answers, 1);
    assert_int_equal(self.a->held_count, 0);
    close_stage(&self);
}

static void what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    fake_ask(self.a, "{'jsonrpc':'2.0','id':1,'method':'roots/list'}");
    assert_int_equal(strncmp(self.a->answer, "1 -32601", 8), 0);
    for (int i = 0; i < TASK_QUESTIONS + 1; i++) {
        fake_ask(self.a, QUESTION("5"));
    }
    assert_int_equal(strncmp(self.a->answer, "5 -32603 Too many", 17), 0);
    assert_int_equal(self.a->answers, 2);
    forget(&self.modern);
    /* tasks/result fails: the client looks again, and finds the task as it is */
    fake_fail(self.a, BAY_TIMEOUT, true, "timed out");
    ask_for(&self.modern, GET("3"), token);
    fake_result(self.a, CORE("input_required", ""));
    assert_int_equal(self.a->held_count, 1);
    fake_fail(self.a, BAY_TIMEOUT, true, "timed out");
    assert_heard_part(&self.modern, "'status':'working'");
    close_stage(&self);
}

static void a_client_that_leaves_waits_for_no_question(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    say(&self.modern, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    fake_ask(self.a, QUESTION("'s1'")); /* for whoever looks next */
    assert_int_equal(self.modern.count, 0);
    ask_for(&self.modern, GET("3"), token);
    upstream_call *holder = self.a->held[0];
    assert_text(holder->spec.method, "tasks/result");
    self.a->held[0] = self.a->held[1];
    self.a->held[1] = holder;
    fake_result(self.a, CORE("input_required", ""));
    assert_heard_part(&self.modern, "'id':3,'result':{'resultType':'complete','taskId':");
    assert_int_equal(self.a->held_count, 1);
    close_stage(&self);
}

static void a_holder_that_nobody_looks_at_goes(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_core);
    begin_modern(&self, token);
    ask_for(&self.modern, GET("2"), token);
    fake_result(self.a, CORE("input_required", ""));
    task_holders_expire(self.face->tasks, task_face_now(self.face) + 5000);
    assert_heard_part(&self.modern, "'status':'working'"); /* nobody asked: look again */
    assert_int_equal(self.a->held_count, 1);
    task_holders_expire(self.face->tasks, task_face_now(self.face) + 601 * 1000);
    assert_int_equal(self.a->held_count, 0);
    assert_int_equal(self.a->cancels, 1);
    close_stage(&self);
}

/* ---- a session at a stateless server --------------------------------------------------------- */

static void turn_until(stage *self, int sends)
{
    for (int i = 0; i < 1000 && self->a->sends < sends; i++) {
        loop_turn(self->loop, -1);
    }
    assert_int_equal(self->a->sends, sends);
}

static void a_session_gets_the_task_it_asked_for(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':5},'n':1.0"));
    assert_params(self.a, "tools/call", "{'name':'a.may','n':1.0}");
    assert_text(self.a->held[0]->spec.capabilities,
                "{\"elicitation\":{\"form\":{}},\"sampling\":{},\"extensions\":{"
                "\"io.modelcontextprotocol/tasks\":{}}}");
    fake_result(self.a, "{'resultType':'task','taskId':'up/1','status':'working'," TIMES
                        ",'ttlMs':null,'pollIntervalMs':9,'x':1.0}");
    take_token(&self.legacy, token);
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'result':{'task':{'taskId':'%s','status':'working'," TIMES
        ",'x':1.0,'ttl':null,'pollInterval':9}}}",
        token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, "{'resultType':'complete','taskId':'up/1','status':'completed'," TIMES
                        ",'ttlMs':7,'result':{'content':[],'isError':true}}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'failed'," TIMES
                    ",'ttl':7}}",
                    token);
    say(&self.legacy, LEGACY("3", "tasks/list", "'x':1"));
    assert_heard_of(
        &self.legacy,
        "{'jsonrpc':'2.0','id':3,'result':{'tasks':[{'taskId':'%s','status':'failed'," TIMES
        ",'ttl':7}]}}",
        token);
    close_stage(&self);
}

static void tasks_result_looks_until_it_is_over(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    int sends = self.a->sends;
    fake_result(self.a, FLAT("working", ",'pollIntervalMs':0"));
    assert_int_equal(self.a->held_count, 0);
    turn_until(&self, sends + 1);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[],'n':1.0,'resultType':"
                                          "'complete'}"));
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'content':[],'n':1.0,'_meta':{"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    fake_result(self.a, FLAT("failed", ",'error':{'code':-5,'message':'m','data':1.0}"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':3,'error':{'code':-5,'message':'m','data':1.0}}");
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/result"), token);
    fake_result(self.a, FLAT("cancelled", ""));
    assert_heard_part(&self.legacy, "'message':'The task was cancelled'");
    ask_for(&self.legacy, LEGACY_TASK("5", "tasks/result"), token);
    fake_error(self.a, -32602, "{'code':-32602,'message':'forgotten'}");
    assert_heard_part(&self.legacy, "'code':-32602,'message':'forgotten'");
    ask_for(&self.legacy, LEGACY_TASK("6", "tasks/result"), token);
    fake_result(self.a, FLAT("completed", ""));
    assert_heard_part(&self.legacy, "is completed and has no result");
    ask_for(&self.legacy, LEGACY_TASK("7", "tasks/result"), token);
    fake_result(self.a, FLAT("working", ",'pollIntervalMs':0"));
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':7}}"); /* the client waits no more; the task goes on */
    sends = self.a->sends;
    loop_turn(self.loop, 0);
    assert_int_equal(self.a->sends, sends);
    close_stage(&self);
}

static void a_session_is_asked_on_the_stream_of_tasks_result(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    fake_result(self.a,
                FLAT("input_required",
                     ",'inputRequests':{'k\\u0031':{'method':'elicitation/create','params':{"
                     "'message':'name?','requestedSchema':{}}},'k2':{'method':"
                     "'sampling/createMessage','params':{'messages':[],'maxTokens':1}}}"));
    assert_int_equal(self.legacy.count, 2);
    char *first = testing_quotes("'method':'elicitation/create','params':{'message':'name?',"
                                 "'requestedSchema':{},'_meta':{'io.modelcontextprotocol/"
                                 "related-task':{'taskId':'pb5.");
    assert_non_null(strstr(self.legacy.lines[0], first));
    mem_free(first);
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-2','result':{'role':'assistant','n':1.0}}");
    assert_int_equal(self.a->held_count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept'}}");
    assert_params(self.a, "tasks/update",
                  "{'taskId':'up/1','inputResponses':{'k2':{'role':'assistant','n':1.0},'k\\u0031':"
                  "{'action':'accept'}}}");
    fake_result(self.a, "{'resultType':'complete'}");
    int sends = self.a->sends;
    fake_result(self.a, FLAT("input_required", /* not seen to yet: nobody is asked twice */
                             ",'pollIntervalMs':0,'inputRequests':{'k\\u0031':{'method':"
                             "'elicitation/create','params':{}}}"));
    assert_int_equal(self.legacy.count, 0);
    turn_until(&self, sends + 1);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[]}"));
    assert_heard_part(&self.legacy, "'id':2,'result':{'content':[]");
    close_stage(&self);
}

static void a_client_that_refuses_ends_the_task(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/result"), token);
    fake_result(self.a, FLAT("input_required", ",'inputRequests':{'k':{'method':"
                                               "'sampling/createMessage','params':{}}}"));
    forget(&self.legacy);
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','error':{'code':-1,'message':'no'}}");
    assert_heard_part(&self.legacy, "'id':2,'error':{'code':-32603,'message':'The client refused");
    assert_params(self.a, "tasks/cancel", "{'taskId':''}");
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, "{'resultType':'complete'}");
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    fake_result(self.a, FLAT("input_required", ",'inputRequests':{'k':{'method':'roots/list'}}"));
    assert_heard_part(&self.legacy, "input that this client cannot be asked for");
    fake_result(self.a, "{'resultType':'complete'}");
    close_stage(&self);
}

static void a_cancelled_task_stays_cancelled(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_modern);
    begin_legacy(&self, token);
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/cancel"), token);
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, FLAT("working", ""));
    assert_params(self.a, "tasks/cancel", "{'taskId':'up/1'}");
    fake_result(self.a, "{'resultType':'complete'}");
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':2,'result':{'taskId':'%s','status':'cancelled'," TIMES
                    ",'ttl':60000}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/get"), token);
    fake_result(self.a, FLAT("completed", ",'result':{'content':[]}")); /* it was faster */
    assert_heard_part(&self.legacy, "'status':'cancelled'");
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    fake_result(self.a, FLAT("working", ""));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Cannot cancel the task");
    close_stage(&self);
}

/* ---- servers without tasks, clients without tasks -------------------------------------------- */

static void a_result_that_came_at_once_is_kept(void **state)
{
    (void)state;
    stage self;
    char token[TOKEN];
    open_tasks(&self, WHO_2025, be_plain);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':60000}"));
    assert_params(self.a, "tools/call", "{'name':'a.may'}");
    fake_result(self.a, "{'content':[],'n':1.0}");
    take_token(&self.legacy, token);
    assert_heard_part(&self.legacy, "'status':'working'");
    int sends = self.a->sends;
    ask_for(&self.legacy, LEGACY_TASK("2", "tasks/get"), token);
    assert_heard_part(&self.legacy, "'status':'completed'");
    ask_for(&self.legacy, LEGACY_TASK("3", "tasks/result"), token);
    assert_heard_of(&self.legacy,
                    "{'jsonrpc':'2.0','id':3,'result':{'content':[],'n':1.0,'_meta':{"
                    "'io.modelcontextprotocol/related-task':{'taskId':'%s'}}}}",
                    token);
    ask_for(&self.legacy, LEGACY_TASK("4", "tasks/cancel"), token);
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Cannot cancel");
    say(&self.legacy, LEGACY("5", "tasks/list", "'x':1"));
    assert_heard_part(&self.legacy, "'status':'completed'");
    assert_int_equal(self.a->sends, sends);
    task_book_expire(self.face->tasks, UINT64_MAX);
    ask_for(&self.legacy, LEGACY_TASK("6", "tasks/result"), token);
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Task not found");
    say(&self.legacy, LEGACY("7", "tasks/list", "'x':1"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':7,'result':{'tasks':[]}}");
    /* a stateless server that does not make a task of it; failures and errors */
    be_modern(&self);
    say(&self.legacy, LEGACY("8", "tools/call", "'name':'a.may','task':{}"));
    fake_result(self.a, "{'resultType':'complete','content':[],'isError':true}");
    take_token(&self.legacy, token);
    forget(&self.legacy);
    ask_for(&self.legacy, LEGACY_TASK("9", "tasks/get"), token);
    assert_heard_part(&self.legacy, "'status':'failed'");
    say(&self.legacy, LEGACY("10", "tools/call", "'name':'a.may','task':{}"));
    fake_error(self.a, -32602, "{'code':-32602,'message':'bad'}");
    assert_heard_part(&self.legacy, "'code':-32602,'message':'bad'");
    say(&self.legacy, LEGACY("11", "tools/call", "'name':'a.may','task':{}"));
    fake_fail(self.a, BAY_EXITED, true, "it died");
    assert_heard_part(
        &self.legacy,
        "'error':{'code':-32603,'message':'The server \\'a\\' gave no answer: it died'"
        ",'data':{'patchbay/server':'a','patchbay/mayHaveRun':true}}");
    close_stage(&self);
}

static void the_gateway_runs_what_must_be_a_task(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_OLD, be_core);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.must','arguments':{'n':1.0}"));
    assert_params(self.a, "tools/call", "{'name':'a.must','arguments':{'n':1.0},'task':{}}");
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    assert_params(self.a, "tasks/result", "{'taskId':'up/1'}");
    fake_ask(self.a, QUESTION("'s1'"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':'bay-1','method':'elicitation/create','params':{"
                 "'message':'name?','requestedSchema':{}}}");
    say(&self.legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'decline'}}");
    assert_text(str_of(self.a->answer), "\"s1\" {\"action\":\"decline\"}");
    fake_result(self.a, "{'content':[],'_meta':{'io.modelcontextprotocol/related-task':{'taskId':"
                        "'up/1'}}}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[]}}");
    /* so for a stateless client without the extension, whose questions come in rounds */
    say(&self.modern, MODERN("2", "tools/call", "'name':'a.must'"));
    assert_params(self.a, "tools/call", "{'name':'a.must'," META "},'task':{}}");
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    fake_ask(self.a, QUESTION("'s2'"));
    loop_turn(self.loop, 0);
    assert_heard_part(&self.modern, "'resultType':'input_required','inputRequests':{'q1':{'method':"
                                    "'elicitation/create','params':{'message':'name?',"
                                    "'requestedSchema':{}}}}");
    fake_result(self.a, "{'content':[]}"); /* it ends while nobody is there */
    /* a cancel reaches the task */
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'task':" CORE("working", "") "}");
    int cancels = self.a->cancels;
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':3}}");
    assert_int_equal(self.a->cancels, cancels + 1);
    assert_params(self.a, "tasks/cancel", "{'taskId':''}");
    assert_text(self.a->held[0]->spec.rename, "up/1");
    fake_result(self.a, CORE("cancelled", ""));
    /* one that answers at once has answered */
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'a.must'"));
    fake_result(self.a, "{'content':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':4,'result':{'content':[]}}");
    close_stage(&self);
}

static void a_session_without_tasks_gets_what_needs_one(void **state)
{
    (void)state;
    stage self;
    open_tasks(&self, WHO_OLD, be_modern);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0}"));
    assert_null(
        strstr(json_raw(json_get(self.a->held[0]->spec.params, STR("arguments"))).at, "\"task\""));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'extensions':{"
               "'io.modelcontextprotocol/tasks':{}}}}}");
    assert_params(self.a, "tools/call", "{'name':'a.echo','arguments':{'n':1.0}}");
    assert_text(self.a->held[0]->spec.capabilities,
                "{\"elicitation\":{\"form\":{}},\"extensions\":{\"io.modelcontextprotocol/tasks\":"
                "{}}}");
    fake_result(self.a,
                "{'resultType':'task','taskId':'up/1','status':'working'," TIMES ",'ttlMs':1}");
    assert_params(self.a, "tasks/get", "{'taskId':'up/1'}");
    fake_result(self.a, FLAT("completed", ",'result':{'content':[],'n':1.0}"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'content':[],'n':1.0}}");
    /* another refusal is the client's */
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'sampling':{}}}}");
    assert_heard_part(&self.legacy, "'patchbay/reason':'capability_missing'");
    /* a failure on the way leaves no task behind */
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'a.echo'"));
    fake_error(self.a, -32021,
               "{'code':-32021,'message':'no','data':{'requiredCapabilities':{'extensions':{"
               "'io.modelcontextprotocol/tasks':{}}}}}");
    fake_result(self.a,
                "{'resultType':'task','taskId':'up/1','status':'working'," TIMES ",'ttlMs':1}");
    fake_fail(self.a, BAY_TIMEOUT, true, "timed out");
    assert_heard_part(&self.legacy, "'isError':true");
    assert_text(self.a->held[0]->spec.method, "tasks/cancel");
    fake_result(self.a, "{'resultType':'complete'}");
    close_stage(&self);
}

static void hostile_tasks_are_refused(void **state)
{
    (void)state;
    stage self;
    static const char *const bad[] = {
        "{'resultType':'task','taskId':'up/1','status':'dreaming'}",
        "{'resultType':'task','taskId':'up/1'}",
        "{'resultType':'task','taskId':'up/1','status':7}",
    };
    open_tasks(&self, WHO_2025, be_modern);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{}"));
        fake_result(self.a, bad[i]);
        assert_heard_part(&self.legacy, "'error':{'code':-32603");
        say(&self.modern, WITH("1", "tools/call", "'name':'a.may'"));
        fake_result(self.a, bad[i]);
        assert_heard_part(&self.modern, "'error':{'code':-32603");
    }
    char *longest = malloc(8000);
    assert_non_null(longest);
    memset(longest, 'x', 8000);
    char *text = malloc(9000);
    assert_non_null(text);
    (void)snprintf(text, 9000, "{'resultType':'task','status':'working','taskId':'%.*s'}", 5000,
                   longest);
    say(&self.modern, WITH("1", "tools/call", "'name':'a.may'"));
    fake_result(self.a, text);
    assert_heard_part(&self.modern, "whose id is too long");
    free(longest);
    free(text);
    close_stage(&self);
}

static void a_storm_of_tasks_is_bounded(void **state)
{
    (void)state;
    stage self;
    char text[200];
    open_tasks(&self, WHO_2025, be_plain);
    for (int i = 0; i < TASK_NOTES_EACH + 40; i++) {
        (void)snprintf(text, sizeof(text),
                       LEGACY("%d", "tools/call", "'name':'a.may','task':{'ttl':60000}"), i + 1);
        say(&self.legacy, text);
        fake_result(self.a, "{'content':[]}");
        forget(&self.legacy);
    }
    assert_int_equal(self.face->tasks->notes.len, TASK_NOTES_EACH);
    int pages = 0;
    int tasks = 0;
    char cursor[64] = "";
    do {
        (void)snprintf(text, sizeof(text), LEGACY("9000", "tasks/list", "'x':1%s%s%s"),
                       cursor[0] != '\0' ? ",'cursor':'" : "", cursor,
                       cursor[0] != '\0' ? "'" : "");
        say(&self.legacy, text);
        assert_int_equal(self.legacy.count, 1);
        for (const char *at = self.legacy.lines[0]; (at = strstr(at, "taskId")) != NULL; at++) {
            tasks++;
        }
        const char *next = strstr(self.legacy.lines[0], "\"nextCursor\":\"");
        cursor[0] = '\0';
        if (next != NULL) {
            (void)sscanf(next, "\"nextCursor\":\"%63[^\"]", cursor);
        }
        forget(&self.legacy);
        pages++;
    } while (cursor[0] != '\0' && pages < 100);
    assert_int_equal(tasks, TASK_NOTES_EACH);
    assert_int_equal(pages, 3);
    say(&self.legacy, LEGACY("1", "tasks/list", "'cursor':'x1'"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("1", "tasks/list", "'cursor':7"));
    assert_heard_part(&self.legacy, "-32602");
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_names_reach_no_server),
        cmocka_unit_test(somebody_elses_task_is_unknown),
        cmocka_unit_test(without_the_extension_there_are_no_tasks),
        cmocka_unit_test(faces_declare_what_each_revision_knows),
        cmocka_unit_test(tools_say_what_the_gateway_can_do),
        cmocka_unit_test(a_tool_that_forbids_tasks_is_refused_as_one),
        cmocka_unit_test(the_extension_passes_with_other_names),
        cmocka_unit_test(a_plain_result_passes_as_it_is),
        cmocka_unit_test(the_core_passes_with_other_names),
        cmocka_unit_test(a_tool_that_may_be_a_task_becomes_one),
        cmocka_unit_test(a_result_is_fetched_and_inlined),
        cmocka_unit_test(a_cancel_is_acknowledged_whenever_it_comes),
        cmocka_unit_test(a_question_waits_for_tasks_update),
        cmocka_unit_test(what_cannot_be_asked_is_refused),
        cmocka_unit_test(a_client_that_leaves_waits_for_no_question),
        cmocka_unit_test(a_holder_that_nobody_looks_at_goes),
        cmocka_unit_test(a_session_gets_the_task_it_asked_for),
        cmocka_unit_test(tasks_result_looks_until_it_is_over),
        cmocka_unit_test(a_session_is_asked_on_the_stream_of_tasks_result),
        cmocka_unit_test(a_client_that_refuses_ends_the_task),
        cmocka_unit_test(a_cancelled_task_stays_cancelled),
        cmocka_unit_test(a_result_that_came_at_once_is_kept),
        cmocka_unit_test(the_gateway_runs_what_must_be_a_task),
        cmocka_unit_test(a_session_without_tasks_gets_what_needs_one),
        cmocka_unit_test(hostile_tasks_are_refused),
        cmocka_unit_test(a_storm_of_tasks_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
