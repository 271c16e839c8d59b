/* A face between clients and servers, all in memory: names, ids, progress, cancels and failures on
 * their way through. Requests are made in the handshake era (`legacy`) and the stateless one. */
#include "gateway_testing.h"

#include "gateway/face.h"

enum { MAX_LINES = 64 };

typedef struct peer { /* a client on a duplex carrier */
    mcp_carrier carrier;
    mcp_connection *connection;
    char *lines[MAX_LINES];
    int count;
    bay_err says; /* what `event` returns */
} peer;

typedef struct stage {
    const config *config;
    face *face;
    fake *a;
    fake *b;
    catalog_source sources[2];
    peer legacy;
    peer modern;
} stage;

static bay_err peer_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    peer *self = (peer *)carrier;
    (void)event_id;
    if (json.len > 0) {
        assert_true(self->count < MAX_LINES);
        self->lines[self->count++] = mem_dup(json.at, json.len);
    }
    return self->says;
}

static const mcp_carrier_ops peer_ops = {.event = peer_event};

static void say(peer *self, const char *message)
{
    char *text = testing_quotes(message);
    mcp_connection_receive(self->connection, str_of(text), 1000);
    mem_free(text);
}

static void forget(peer *self)
{
    for (int i = 0; i < self->count; i++) {
        mem_free(self->lines[i]);
    }
    self->count = 0;
}

/* The one line that came since the last look. */
static void assert_heard(peer *self, const char *wanted)
{
    if (self->count != 1) {
        for (int i = 0; i < self->count; i++) {
            print_error("%s\n", self->lines[i]);
        }
    }
    assert_int_equal(self->count, 1);
    char *text = testing_quotes(wanted);
    assert_text(str_of(self->lines[0]), text);
    mem_free(text);
    forget(self);
}

static void assert_heard_part(peer *self, const char *part)
{
    assert_int_equal(self->count, 1);
    char *text = testing_quotes(part);
    if (strstr(self->lines[0], text) == NULL) {
        print_error("heard:  %s\nwanted: %s\n", self->lines[0], text);
    }
    assert_non_null(strstr(self->lines[0], text));
    mem_free(text);
    forget(self);
}

static void peer_open(peer *self, face *to)
{
    *self = (peer){.carrier.ops = &peer_ops};
    assert_int_equal(mcp_connection_open(face_engine(to), &self->carrier, &self->connection),
                     BAY_OK);
}

#define META                                                                                       \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':{'elicitation':{}}"
#define MODERN(id, method, params)                                                                 \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "," META "}}}"
#define LEGACY(id, method, params)                                                                 \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "}}"

static void open_with(stage *self, const char *settings, const char *only)
{
    static const char *tools_a = "[{\"name\":\"echo\"},{\"name\":\"x.y\"}]";
    static const char *tools_b = "[{\"name\":\"echo\"}]";
    *self = (stage){.config = testing_config(settings)};
    face_options options = {.config = self->config, .only = str_of(only)};
    assert_int_equal(face_new(&options, &self->face), BAY_OK);
    self->a = fake_new("a", true);
    self->b = fake_new("b", false);
    self->sources[0].upstream = &self->a->base;
    self->sources[1].upstream = &self->b->base;
    self->sources[0].listings[LISTING_TOOLS] = listing_of(self->a, LISTING_TOOLS, tools_a);
    self->sources[1].listings[LISTING_TOOLS] = listing_of(self->b, LISTING_TOOLS, tools_b);
    self->sources[0].listings[LISTING_PROMPTS] =
        listing_of(self->a, LISTING_PROMPTS, "[{\"name\":\"p\"}]");
    self->sources[0].listings[LISTING_RESOURCES] =
        listing_of(self->a, LISTING_RESOURCES, "[{\"uri\":\"f:///a\"}]");
    self->sources[1].listings[LISTING_TEMPLATES] =
        listing_of(self->b, LISTING_TEMPLATES, "[{\"uriTemplate\":\"g:///{id}\"}]");
    assert_int_equal(
        face_set_sources(self->face, self->config, self->sources, only[0] != '\0' ? 1 : 2), BAY_OK);
    peer_open(&self->legacy, self->face);
    peer_open(&self->modern, self->face);
    say(&self->legacy, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                       "'protocolVersion':'2025-11-25','capabilities':{},"
                       "'clientInfo':{'name':'c','version':'1'}}}");
    say(&self->legacy, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    assert_heard_part(&self->legacy, "'protocolVersion':'2025-11-25'");
}

static void open_stage(stage *self)
{
    open_with(self, "workers: 1", "");
    face_settle(self->face);
}

static void close_stage(stage *self)
{
    mcp_connection_close(self->legacy.connection);
    mcp_connection_close(self->modern.connection);
    face_free(self->face);
    for (size_t i = 0; i < 2; i++) {
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            listing_unref(self->sources[i].listings[kind]);
        }
    }
    fake_free(self->a);
    fake_free(self->b);
    forget(&self->legacy);
    forget(&self->modern);
    config_free(self->config);
}

static void assert_asked(const fake *server, const char *method, const char *rename,
                         const char *params)
{
    assert_int_equal(server->held_count, 1);
    const mcp_call_spec *spec = &server->held[0]->spec;
    char *text = testing_quotes(params);
    assert_text(spec->method, method);
    assert_text(spec->rename, rename);
    assert_text(json_raw(spec->params), text);
    mem_free(text);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void unknown_names_are_refused(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.nothing'"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,"
                               "'message':'Unknown tool: a.nothing'}}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: echo");
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'c.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: c.echo");
    say(&self.legacy, LEGACY("4", "prompts/get", "'name':'a.q\\n\\u0000'"));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Unknown prompt: a.q\\n\\u0000'");
    say(&self.legacy, LEGACY("5", "completion/complete",
                             "'ref':{'type':'ref/prompt','name':'zz'},'argument':{'name':'n',"
                             "'value':''}"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("6", "completion/complete", "'ref':7"));
    assert_heard_part(&self.legacy, "-32602");
    say(&self.legacy, LEGACY("7", "no/such", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "-32601");
    assert_int_equal(self.a->sends + self.b->sends, 5 /* the listings */);
    close_stage(&self);
}

static void a_resource_nobody_has_is_told_in_the_clients_own_way(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'h:///\\u00e9'"));
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'error':{'code':-32002,'message':'Resource not found',"
                 "'data':{'uri':'h:///\xc3\xa9'}}}");
    say(&self.modern, MODERN("1", "resources/read", "'uri':'h:///x'"));
    assert_heard_part(&self.modern, "'code':-32602,'message':'Resource not found'");
    close_stage(&self);
}

static void a_forged_cursor_is_refused(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/list", "'cursor':'forged'"));
    assert_heard_part(&self.legacy, "'code':-32602,'message':'Invalid cursor");
    close_stage(&self);
}

static void input_for_a_legacy_client_is_refused_by_name(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    fake_result(self.a, "{'resultType':'input_required','inputRequests':{},'requestState':'s'}");
    assert_heard_part(&self.legacy, "'code':-32603,'message':'The server asks for input");
    say(&self.modern, MODERN("2", "tools/call", "'name':'a.echo'"));
    assert_text(self.a->held[0]->spec.capabilities, "{\"elicitation\":{}}");
    fake_result(self.a, "{'resultType':'input_required','inputRequests':{},'requestState':'s'}");
    assert_heard_part(&self.modern, "'resultType':'input_required'");
    close_stage(&self);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void failures_have_a_text_and_a_reason(void **state)
{
    (void)state;
    static const struct {
        bay_err err;
        bool was_sent;
        const char *text;
        const char *part;
        const char *reason;
    } cases[] = {
        {BAY_TIMEOUT, true, "timed out", "gave no answer: timed out. The call may have been",
         "'patchbay/reason':'timeout','patchbay/server':'a','patchbay/mayHaveRun':true"},
        {BAY_EXITED, false, "exited with status 3",
         "the process exited: exited with status 3. "
         "The call was not carried out",
         "'patchbay/reason':'server_unavailable','patchbay/server':'a',"
         "'patchbay/mayHaveRun':false"},
        {BAY_BUSY, false, NULL, "too many of these at once. The", "'patchbay/reason':'busy'"},
        {BAY_LIMIT, true, "\x01\xff\"\\", "exceeded: \\u0001\xef\xbf\xbd\\'\\\\. The call may",
         "result_too_large"},
        {BAY_PROTOCOL, true, "", "the peer broke the protocol. The", "invalid_answer"},
        {BAY_UNSUPPORTED, false, "", "not supported by the peer", "not_supported_by_server"},
        {BAY_DENIED, true, "401", "refused: 401", "denied_by_server"},
    };
    stage self;
    open_stage(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
        fake_fail(self.a, cases[i].err, cases[i].was_sent, cases[i].text);
        char *reason = testing_quotes(cases[i].reason);
        assert_int_equal(self.legacy.count, 1);
        assert_non_null(strstr(self.legacy.lines[0], reason));
        mem_free(reason);
        assert_non_null(strstr(self.legacy.lines[0], "\"isError\":true"));
        assert_heard_part(&self.legacy, cases[i].part);
    }
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_TIMEOUT, true, "");
    assert_int_equal(self.modern.count, 1);
    const char *meta = strstr(self.modern.lines[0], "\"_meta\":");
    assert_non_null(meta);
    assert_null(strstr(meta + 1, "\"_meta\":")); /* one, not two */
    assert_non_null(strstr(meta, "\"patchbay/reason\":\"timeout\""));
    forget(&self.modern);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    fake_fail(self.a, BAY_TIMEOUT, true, "timed out");
    assert_heard(
        &self.legacy,
        "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'The server \\'a\\' gave "
        "no answer: timed out. The call may have been carried out.','data':{"
        "'patchbay/reason':'timeout','patchbay/server':'a','patchbay/mayHaveRun':true}}}");
    close_stage(&self);
}

static void the_longest_failure_is_still_json(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    char text[8000];
    memset(text, 1, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    fake_fail(self.a, BAY_EXITED, true, text);
    assert_int_equal(self.legacy.count, 1);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(self.legacy.lines[0]), NULL, &memory, NULL), BAY_OK);
    assert_true(json_true(json_pointer(json_root(&doc), STR("/result/isError"))));
    arena_fini(&memory);
    close_stage(&self);
}

/* ---- the way through ------------------------------------------------------------------------- */

static void calls_reach_their_server_under_its_own_name(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','arguments':{'n':1.0e2}"));
    assert_asked(self.a, "tools/call", "echo", "{'name':'a.echo','arguments':{'n':1.0e2}}");
    say(&self.legacy, LEGACY("'1'", "tools/call", "'name':'b.echo'"));
    assert_asked(self.b, "tools/call", "echo", "{'name':'b.echo'}");
    fake_result(self.b, "{'content':[],'n':0.1000}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':'1','result':{'content':[],'n':0.1000}}");
    fake_error(self.a, 7, "{'code':7,'message':'m\\u0041','data':[1.50]}");
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','id':1,'error':{'code':7,'message':'m\\u0041','data':[1.50]}}");
    say(&self.modern, MODERN("1.0", "tools/call", "'name':'a.x.y'"));
    assert_text(self.a->held[0]->spec.rename, "x.y");
    fake_result(self.a, "{'content':[],'resultType':'complete'}");
    assert_heard_part(&self.modern, "'id':1.0,");
    close_stage(&self);
}

static void prompts_resources_and_templates_find_their_owner(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "prompts/get", "'name':'a.p'"));
    assert_asked(self.a, "prompts/get", "p", "{'name':'a.p'}");
    fake_result(self.a, "{'messages':[]}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{'messages':[]}}");
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'f:///a'"));
    assert_asked(self.a, "resources/read", "", "{'uri':'f:///a'}");
    fake_result(self.a, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "resources/read", "'uri':'g:///9'"));
    assert_asked(self.b, "resources/read", "", "{'uri':'g:///9'}");
    fake_result(self.b, "{'contents':[]}");
    close_stage(&self);
}

static void an_unlisted_resource_goes_to_the_only_server_that_has_any(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    upstream_learn(&self.a->base, mcp_revision_of(MCP_LATEST), STR("{\"tools\":{}}"));
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'unlisted:x'"));
    assert_asked(self.b, "resources/read", "", "{'uri':'unlisted:x'}");
    fake_result(self.b, "{'contents':[]}");
    close_stage(&self);
}

static void completions_name_the_servers_own_prompt(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy,
        LEGACY("1", "completion/complete",
               "'argument':{'name':'a.p','value':'a.p'},'ref' : {'type':'ref/prompt','name' : "
               "'a.\\u0070','title':'a.p'},'_meta':{'k':1.0}"));
    assert_asked(self.a, "completion/complete", "",
                 "{'argument':{'name':'a.p','value':'a.p'},'ref' : {'type':'ref/prompt','name' : "
                 "'p','title':'a.p'},'_meta':{'k':1.0}}");
    assert_text(json_raw(self.a->held[0]->spec.meta), "{\"k\":1.0}");
    fake_result(self.a, "{'completion':{'values':[]}}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "completion/complete",
                             "'ref':{'type':'ref/resource','uri':'g:///{id}'},'argument':{}"));
    assert_int_equal(self.b->held_count, 1);
    fake_result(self.b, "{'completion':{'values':[]}}");
    close_stage(&self);
}

static void a_bare_name_and_its_full_name_are_one(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "bareNames: true", "");
    face_settle(self.face);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'x.y'"));
    assert_asked(self.a, "tools/call", "", "{'name':'x.y'}");
    fake_result(self.a, "{}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.x.y'"));
    assert_asked(self.a, "tools/call", "x.y", "{'name':'a.x.y'}");
    fake_result(self.a, "{}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'b.x.y'"));
    assert_heard_part(&self.legacy, "Unknown tool");
    close_stage(&self);
}

static void the_face_of_one_server_has_its_own_names(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "a");
    face_settle(self.face);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'echo'"));
    assert_asked(self.a, "tools/call", "", "{'name':'echo'}");
    fake_result(self.a, "{}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: a.echo");
    close_stage(&self);
}

static void a_server_not_yet_listed_is_found_by_its_prefix(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    listing *known = self.sources[1].listings[LISTING_TOOLS];
    self.sources[1].listings[LISTING_TOOLS] = NULL;
    face_refresh(self.face, LISTING_TOOLS, self.sources, 2);
    listing_unref(known);
    forget(&self.legacy); /* the list changed */
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.anything'"));
    assert_asked(self.b, "tools/call", "anything", "{'name':'b.anything'}");
    fake_fail(self.b, BAY_EXITED, false, "exited with status 1");
    assert_heard_part(&self.legacy, "'isError':true");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'b.'"));
    assert_heard_part(&self.legacy, "Unknown tool: b.");
    close_stage(&self);
}

static void progress_carries_the_clients_own_token(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy,
        LEGACY("1", "tools/call", "'name':'a.echo','_meta':{'progressToken':'t\\u0041'}"));
    assert_true(self.a->held[0]->spec.wants_progress);
    fake_notify(self.a, MCP_N_PROGRESS,
                "{'progressToken':17,'progress':0.50,'total':1e0,'message':'half','x':[1.0]}");
    assert_heard(&self.legacy,
                 "{'jsonrpc':'2.0','method':'notifications/progress','params':{"
                 "'progressToken':'t\\u0041','progress':0.50,'total':1e0,'message':'half',"
                 "'x':[1.0]}}");
    fake_notify(self.a, MCP_N_PROGRESS, "{'progressToken':17,'progress':'no number'}");
    fake_notify(self.a, MCP_N_PROGRESS, "{}");
    assert_int_equal(self.legacy.count, 0);
    fake_result(self.a, "{}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{}}");
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'a.echo'"));
    assert_false(self.a->held[0]->spec.wants_progress);
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void log_messages_reach_who_asked_for_them(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.modern, MODERN("1", "tools/call", "'name':'a.echo'"));
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':'x'}");
    assert_int_equal(self.modern.count, 0); /* it did not ask */
    fake_result(self.a, "{}");
    forget(&self.modern);
    say(&self.modern,
        "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{'name':'a.echo'," META
        ",'io.modelcontextprotocol/logLevel':'warning'}}}");
    assert_int_equal(self.a->level, MCP_LOG_WARNING);
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'info','data':'x'}");
    assert_int_equal(self.modern.count, 0);
    fake_notify(self.a, MCP_N_MESSAGE, "{'level':'error','data':{'n':1.0}}");
    assert_heard_part(&self.modern, "'method':'notifications/message','params':{'level':'error',"
                                    "'data':{'n':1.0}}");
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void a_slow_client_stops_its_own_call_only(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo','_meta':{'progressToken':1}"));
    self.legacy.says = BAY_AGAIN;
    fake_notify(self.a, MCP_N_PROGRESS, "{'progress':1}");
    assert_int_equal(self.a->pauses, 1);
    self.legacy.says = BAY_OK;
    mcp_connection_drained(self.legacy.connection);
    assert_int_equal(self.a->resumes, 1);
    assert_int_equal(self.b->pauses + self.b->resumes, 0);
    fake_result(self.a, "{}");
    close_stage(&self);
}

static void a_cancel_reaches_the_one_call(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    say(&self.legacy, LEGACY("2", "tools/call", "'name':'b.echo'"));
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':1}}");
    assert_int_equal(self.a->cancels, 1);
    assert_int_equal(self.b->cancels, 0);
    assert_int_equal(self.legacy.count, 0); /* no answer to what was cancelled */
    fake_result(self.b, "{}");
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':2,'result':{}}");
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    close_stage(&self);
}

static void a_client_that_leaves_cancels_its_calls(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    say(&self.modern, MODERN("1", "tools/call", "'name':'b.echo'"));
    mcp_connection_close(self.legacy.connection);
    assert_int_equal(self.a->cancels, 1);
    assert_int_equal(self.b->cancels, 0);
    peer_open(&self.legacy, self.face);
    fake_result(self.b, "{}");
    assert_heard_part(&self.modern, "'result':{");
    close_stage(&self);
}

static void a_face_that_ends_cancels_what_is_open(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'a.echo'"));
    close_stage(&self); /* fake_free: no call is left */
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void lists_wait_until_the_servers_were_heard_of(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "tools/list", "'x':1"));
    say(&self.legacy, LEGACY("2", "prompts/list", "'x':1"));
    say(&self.legacy, LEGACY("3", "resources/list", "'x':1"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{"
                      "'requestId':2}}");
    say(&self.legacy, LEGACY("4", "tools/call", "'name':'a.echo'")); /* calls do not wait */
    fake_result(self.a, "{}");
    assert_heard_part(&self.legacy, "'id':4");
    face_settle(self.face);
    assert_int_equal(self.legacy.count, 2);
    char *wanted = testing_quotes("{'jsonrpc':'2.0','id':1,'result':{'tools':[{'name':'a.echo'},"
                                  "{'name':'a.x.y'},{'name':'b.echo'}]}}");
    assert_text(str_of(self.legacy.lines[0]), wanted);
    mem_free(wanted);
    forget(&self.legacy);
    close_stage(&self);
}

/* What the servers have is not known yet, so nothing is "not found". */
static void what_is_not_known_yet_waits_too(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "resources/read", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'h:///never'"));
    say(&self.legacy, LEGACY("3", "tools/call", "'name':'late'"));
    say(&self.legacy, LEGACY("4", "completion/complete",
                             "'ref':{'type':'ref/prompt','name':'b.late'},'argument':{}"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, LEGACY("5", "resources/subscribe", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("6", "resources/subscribe", "'uri':'h:///never'"));
    say(&self.legacy, LEGACY("7", "resources/unsubscribe", "'uri':'h:///never'"));
    assert_int_equal(self.legacy.count, 3); /* agreed to */
    forget(&self.legacy);
    self.sources[1].listings[LISTING_RESOURCES] =
        listing_of(self.b, LISTING_RESOURCES, "[{\"uri\":\"h:///late\"}]");
    face_refresh(self.face, LISTING_RESOURCES, self.sources, 2);
    face_settle(self.face);
    assert_int_equal(self.b->subscribes, 1);
    assert_int_equal(self.a->subscribes + self.b->unsubscribes, 0);
    assert_asked(self.b, "resources/read", "", "{'uri':'h:///late'}");
    assert_int_equal(self.legacy.count, 3); /* the other three are refused now */
    fake_result(self.b, "{'contents':[]}");
    forget(&self.legacy);
    say(&self.legacy, LEGACY("8", "resources/unsubscribe", "'uri':'h:///late'"));
    assert_int_equal(self.b->unsubscribes, 1);
    close_stage(&self);
}

static void a_face_that_ends_forgets_early_subscriptions(void **state)
{
    (void)state;
    stage self;
    open_with(&self, "workers: 1", "");
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'h:///late'"));
    say(&self.legacy, LEGACY("2", "resources/read", "'uri':'h:///late'"));
    close_stage(&self);
}

static void a_changed_list_is_told(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    face_refresh(self.face, LISTING_TOOLS, self.sources, 2);
    assert_int_equal(self.legacy.count, 0); /* the same: nothing to tell */
    listing_unref(self.sources[1].listings[LISTING_TOOLS]);
    self.sources[1].listings[LISTING_TOOLS] = listing_of(self.b, LISTING_TOOLS, "[]");
    face_refresh(self.face, LISTING_TOOLS, self.sources, 2);
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}");
    say(&self.legacy, LEGACY("1", "tools/call", "'name':'b.echo'"));
    assert_heard_part(&self.legacy, "Unknown tool: b.echo");
    close_stage(&self);
}

static void subscriptions_go_to_the_owner(void **state)
{
    (void)state;
    stage self;
    open_stage(&self);
    say(&self.legacy, LEGACY("1", "resources/subscribe", "'uri':'f:///a'"));
    assert_heard(&self.legacy, "{'jsonrpc':'2.0','id':1,'result':{}}");
    assert_int_equal(self.a->subscribes, 1);
    face_updated(self.face, STR("f:///a"));
    assert_heard_part(&self.legacy, "'method':'notifications/resources/updated','params':{"
                                    "'uri':'f:///a'}");
    face_updated(self.face, STR("f:///b"));
    assert_int_equal(self.legacy.count, 0);
    say(&self.legacy, LEGACY("2", "resources/unsubscribe", "'uri':'f:///a'"));
    assert_int_equal(self.a->unsubscribes, 1);
    forget(&self.legacy);
    say(&self.legacy, LEGACY("3", "resources/subscribe", "'uri':'nobody:x'"));
    assert_heard_part(&self.legacy, "'error'");
    close_stage(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(a_resource_nobody_has_is_told_in_the_clients_own_way),
        cmocka_unit_test(a_forged_cursor_is_refused),
        cmocka_unit_test(input_for_a_legacy_client_is_refused_by_name),
        cmocka_unit_test(failures_have_a_text_and_a_reason),
        cmocka_unit_test(the_longest_failure_is_still_json),
        cmocka_unit_test(calls_reach_their_server_under_its_own_name),
        cmocka_unit_test(prompts_resources_and_templates_find_their_owner),
        cmocka_unit_test(an_unlisted_resource_goes_to_the_only_server_that_has_any),
        cmocka_unit_test(completions_name_the_servers_own_prompt),
        cmocka_unit_test(a_bare_name_and_its_full_name_are_one),
        cmocka_unit_test(the_face_of_one_server_has_its_own_names),
        cmocka_unit_test(a_server_not_yet_listed_is_found_by_its_prefix),
        cmocka_unit_test(progress_carries_the_clients_own_token),
        cmocka_unit_test(log_messages_reach_who_asked_for_them),
        cmocka_unit_test(a_slow_client_stops_its_own_call_only),
        cmocka_unit_test(a_cancel_reaches_the_one_call),
        cmocka_unit_test(a_client_that_leaves_cancels_its_calls),
        cmocka_unit_test(a_face_that_ends_cancels_what_is_open),
        cmocka_unit_test(lists_wait_until_the_servers_were_heard_of),
        cmocka_unit_test(what_is_not_known_yet_waits_too),
        cmocka_unit_test(a_face_that_ends_forgets_early_subscriptions),
        cmocka_unit_test(a_changed_list_is_told),
        cmocka_unit_test(subscriptions_go_to_the_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
