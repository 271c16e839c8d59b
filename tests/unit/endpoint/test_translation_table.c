/* What has no round trip of its own, as tables: what a server says, and what a client of each
 * revision hears of it. The rule behind them: no revision forbids members that it does not know, so
 * they go through byte for byte; what a strict reader would refuse is said in older words; what the
 * revision itself retires is left out. */
#include "support/endpoint_testing.h"

enum { REVISIONS = MCP_REVISION_COUNT };

typedef struct hall { /* a stage with a client of each revision */
    stage stage;
    peer clients[REVISIONS];
} hall;

static void open_hall(hall *self)
{
    open_on_loop(&self->stage, "workers: 1", "'protocolVersion':'2025-11-25','capabilities':{}");
    for (int i = 0; i < REVISIONS; i++) {
        char hello[400];
        peer *client = &self->clients[i];
        peer_open(client, self->stage.endpoint);
        if (mcp_revision_of((mcp_revision_id)i)->era == MCP_LEGACY) {
            (void)snprintf(hello, sizeof(hello),
                           "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                           "'protocolVersion':'%s','capabilities':{},"
                           "'clientInfo':{'name':'c','version':'1'}}}",
                           mcp_revision_of((mcp_revision_id)i)->text.at);
            say(client, hello);
            say(client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
            forget(client);
        }
    }
}

static void close_hall(hall *self)
{
    for (int i = 0; i < REVISIONS; i++) {
        mcp_connection_close(self->clients[i].connection);
        forget(&self->clients[i]);
    }
    close_stage(&self->stage);
}

/* A client's request: "tools/call" and params without braces. */
static void ask(hall *self, int revision, const char *method, const char *params)
{
    char text[4000];
    const char *format = mcp_revision_of((mcp_revision_id)revision)->era == MCP_MODERN
                             ? MODERN("1", "%s", "%s")
                             : LEGACY("1", "%s", "%s");
    (void)snprintf(text, sizeof(text), format, method, params);
    say(&self->clients[revision], text);
}

/* What the client heard holds `wanted`, or does not. */
static void check(hall *self, int revision, const char *wanted, bool is_wanted, const char *row)
{
    peer *client = &self->clients[revision];
    char *quoted = testing_quotes(wanted);
    assert_int_equal(client->count, 1);
    if ((strstr(client->lines[0], quoted) != NULL) != is_wanted) {
        fail_msg("%s to %s: %s %s in %s", row, mcp_revision_of((mcp_revision_id)revision)->text.at,
                 is_wanted ? "no" : "a", wanted, client->lines[0]);
    }
    mem_free(quoted);
}

static const struct {
    const char *method;
    const char *params;
} requests[] = {
    {"tools/call", "'name':'a.echo'"},
    {"resources/read", "'uri':'f:///a'"},
    {"prompts/get", "'name':'a.p'"},
};

/* ---- error codes ----------------------------------------------------------------------------- */

#define GONE "'data':{'uri':'f:///a'}"

static const struct {
    int request; /* of `requests` */
    int code;
    const char *data;
    int session;   /* what clients of sessions hear */
    int stateless; /* what those of 2026-07-28 hear */
} errors[] = {
    {1, -32002, GONE, -32002, -32602}, /* not found: retired */
    {1, -32602, GONE, -32002, -32602},
    {0, -32602, "'data':{}", -32602, -32602},
    {0, -32002, "'data':1.0", -32002, -32602},
    {0, -32601, "'data':1.0", -32601, -32601},
    {0, -32603, "'data':1.0", -32603, -32603},
    {0, -32600, "'data':1.0", -32600, -32600},
    {0, -32020, "'data':1.0", -32600, -32020}, /* header mismatch: no such thing in sessions */
    {0, -32022, "'data':1.0", -32600, -32022}, /* unsupported version: likewise */
    {0, -32050, "'data':1.0", -32050, -32603}, /* reserved, and not to be used */
    {0, -32000, "'data':1.0", -32000, -32000}, /* the server's own */
    {2, -1, "'data':1.0", -1, -1},
    {2, 7, "'x':[1.50]", 7, 7},
};

static void errors_have_the_codes_of_the_clients_revision(void **state)
{
    (void)state;
    hall self;
    open_hall(&self);
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        for (int revision = 0; revision < REVISIONS; revision++) {
            char text[400];
            bool is_modern = mcp_revision_of((mcp_revision_id)revision)->era == MCP_MODERN;
            ask(&self, revision, requests[errors[i].request].method,
                requests[errors[i].request].params);
            (void)snprintf(text, sizeof(text), "{'code':%d,'message':'m\\u0041',%s}",
                           errors[i].code, errors[i].data);
            fake_error(self.stage.a, errors[i].code, text);
            (void)snprintf(text, sizeof(text), "'error':{'code':%d,'message':'m\\u0041',%s}}",
                           is_modern ? errors[i].stateless : errors[i].session, errors[i].data);
            check(&self, revision, text, true, "an error");
            forget(&self.clients[revision]);
        }
    }
    close_hall(&self);
}

/* ---- results --------------------------------------------------------------------------------- */

/* What each revision hears of one result; NULL: the server's own, byte for byte. */
typedef struct result_row {
    int request;
    const char *says;
    const char *hears[REVISIONS];
} result_row;

#define ALL "'_meta':{'traceparent':'00-1','tracestate':'a=1','baggage':'b=2','v/x':[1.50]},'n':1.0"
#define IMAGE "{'type':'image','data':'AQ==','mimeType':'image\\/png','annotations':{'x':1.0}}"
#define TEXT "{'type':'text','text':'t','_meta':{'k':1.0}}"
#define FILE "{'type':'resource','resource':{'uri':'x:y','text':'t','n':1.0}}"
#define AUDIO "{'type':'audio','data':'AQ==','mimeType':'audio/wav'}"
#define OLD_AUDIO                                                                                  \
    "{'type':'resource','resource':{'uri':'cid:audio-1@patchbay','mimeType':'audio/wav','blob':"   \
    "'AQ=='}}"
#define LINK "{'type':'resource_link','name':'n','uri':'x:y'}"
#define OLD_LINK                                                                                   \
    "{'type':'resource','resource':{'uri':'x:y','mimeType':'text/plain','text':'n\\nx:y'},'name':" \
    "'n'}"

static const result_row results[] = {
    /* unknown members stay, trace context too */
    {0, "{'content':[]," ALL "}", {NULL, NULL, NULL, NULL, "'content':[],'n':1.0,'_meta':{"}},
    {0,
     "{'content':[]," ALL "}",
     {NULL, NULL, NULL, NULL,
      "'traceparent':'00-1','tracestate':'a=1','baggage':'b=2','v/x':[1.50]"}},
    /* resultType, hints */
    {0,
     "{'resultType':'complete','content':[],'n':1.0}",
     {"{'content':[],'n':1.0}", "{'content':[],'n':1.0}", "{'content':[],'n':1.0}",
      "{'content':[],'n':1.0}", "{'resultType':'complete','content':[],'n':1.0,"}},
    {1,
     "{'resultType':'complete','contents':[],'ttlMs':5,'cacheScope':'public'}",
     {"'result':{'contents':[]}}", "'result':{'contents':[]}}", "'result':{'contents':[]}}",
      "'result':{'contents':[]}}",
      "{'resultType':'complete','ttlMs':5,'cacheScope':'public','contents':[],"}},
    {1,
     "{'contents':[]}",
     {NULL, NULL, NULL, NULL,
      "{'resultType':'complete','ttlMs':0,'cacheScope':'private','contents':[],"}},
    /* content of each kind */
    {0,
     "{'content':[" TEXT "," IMAGE "," FILE "]}",
     {NULL, NULL, NULL, NULL, "'content':[" TEXT "," IMAGE "," FILE "]"}},
    {0,
     "{'content':[" AUDIO "," LINK "]}",
     {"{'content':[" OLD_AUDIO "," OLD_LINK "]}", "{'content':[" AUDIO "," OLD_LINK "]}", NULL,
      NULL, "'content':[" AUDIO "," LINK "]"}},
    {2,
     "{'messages':[{'role':'user','content':" AUDIO "}]}",
     {"{'messages':[{'role':'user','content':" OLD_AUDIO "}]}", NULL, NULL, NULL,
      "'messages':[{'role':'user','content':" AUDIO "}]"}},
    /* structured content */
    {0,
     "{'content':[],'structuredContent':{'n':1.0}}",
     {"'structuredContent':{'n':1.0},'content':[{'type':'text','text':'{\\'n\\':1.0}'}]",
      "'structuredContent':{'n':1.0},'content':[{'type':'text','text':'{\\'n\\':1.0}'}]", NULL,
      NULL, "'content':[],'structuredContent':{'n':1.0}"}},
    {0,
     "{'content':[],'structuredContent':[1.50]}",
     {"{'content':[{'type':'text','text':'[1.50]'}]}",
      "{'content':[{'type':'text','text':'[1.50]'}]}",
      "{'content':[{'type':'text','text':'[1.50]'}]}",
      "{'content':[{'type':'text','text':'[1.50]'}]}", "'content':[],'structuredContent':[1.50]"}},
};

static void results_are_said_in_the_clients_words(void **state)
{
    (void)state;
    hall self;
    open_hall(&self);
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        const result_row *row = &results[i];
        for (int revision = 0; revision < REVISIONS; revision++) {
            char text[2000];
            ask(&self, revision, requests[row->request].method, requests[row->request].params);
            fake_result(self.stage.a, row->says);
            if (row->hears[revision] != NULL) {
                check(&self, revision, row->hears[revision], true, "a result");
            } else {
                (void)snprintf(text, sizeof(text), "'id':1,'result':%s}", row->says);
                check(&self, revision, text, true, "a result");
            }
            forget(&self.clients[revision]);
        }
    }
    close_hall(&self);
}

/* ---- definitions ----------------------------------------------------------------------------- */

#define DRESSED                                                                                    \
    "'title':'T','icons':[{'src':'https://"                                                        \
    "i'}],'annotations':{'readOnlyHint':true,'x':1.0},'execution':"                                \
    "{'taskSupport':'forbidden'},'_meta':{'k':1.0},'inputSchema':{'type':'object','$defs':{}}"
#define PLAIN_OUT "'outputSchema':{'type':'object','properties':{}}"
#define FREE_OUT "'outputSchema':{'type':'array'}"
#define ANY_OUT "'outputSchema':true"

static void definitions_stay_but_for_what_breaks_strict_readers(void **state)
{
    (void)state;
    char *tools =
        testing_quotes("[{'name':'echo'," DRESSED "," PLAIN_OUT "},{'name':'free'," DRESSED
                       "," FREE_OUT ",'z':1.0},{" ANY_OUT ",'name':'any'}]");
    hall self;
    open_hall(&self);
    stage *on = &self.stage;
    listing_unref(on->sources[0].listings[LISTING_TOOLS]);
    on->sources[0].listings[LISTING_TOOLS] = listing_of(on->a, LISTING_TOOLS, tools);
    endpoint_refresh(on->endpoint, LISTING_TOOLS, on->sources, 2);
    for (int revision = 0; revision < REVISIONS; revision++) {
        bool is_modern = mcp_revision_of((mcp_revision_id)revision)->era == MCP_MODERN;
        forget(&self.clients[revision]); /* of the change */
        ask(&self, revision, "tools/list", "'x':1");
        check(&self, revision, "{'name':'a.echo'," DRESSED "," PLAIN_OUT "},", true, "a tool");
        check(&self, revision, "{'name':'a.free'," DRESSED ",'z':1.0},{'name':'a.any'}", !is_modern,
              "a tool");
        check(&self, revision, "{'name':'a.free'," DRESSED "," FREE_OUT ",'z':1.0},", is_modern,
              "a tool");
        check(&self, revision, "{" ANY_OUT ",'name':'a.any'}", is_modern, "a tool");
        check(&self, revision, "'ttlMs':0,'cacheScope':'private'", is_modern, "a list");
        check(&self, revision, "'resultType':'complete'", is_modern, "a list");
        forget(&self.clients[revision]);
    }
    forget(&on->legacy);
    mem_free(tools);
    close_hall(&self);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* What reaches the server of a client's params; the engine of its link takes the keys of `_meta`
 * that are its own (tests/unit/mcp/test_client_call.c). */
static void params_go_as_they_came(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        const char *params;
    } rows[] = {
        {"tools/call", "'name':'a.echo','arguments':{'n':1.0e2,'a':[]},'x':'\\u0041'"},
        {"resources/read", "'uri':'f:///a','x':1.50"},
        {"prompts/get", "'name':'a.p','arguments':{'k':'v'}"},
        {"completion/complete", "'ref':{'type':'ref/resource','uri':'f:///a'},'argument':{'name':"
                                "'n','value':'v'},'context':{'arguments':{'o':'w'}}"},
    };
    hall self;
    open_hall(&self);
    fake_learn(&self.stage.a->base, mcp_revision_of(MCP_REV_2025_03_26),
               STR("{\"tools\":{},\"prompts\":{},\"resources\":{},\"completions\":{}}"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int revision = 0; revision < REVISIONS; revision++) {
            ask(&self, revision, rows[i].method, rows[i].params);
            assert_int_equal(self.stage.a->held_count, 1);
            char *quoted = testing_quotes(rows[i].params);
            assert_true(str_contains(json_raw(self.stage.a->held[0]->spec.params), quoted));
            mem_free(quoted);
            fake_result(self.stage.a, "{}");
            forget(&self.clients[revision]);
        }
    }
    close_hall(&self);
}

/* A batch's requests go their own ways, to whatever server; the answers come back as one. */
static void batches_reach_any_server(void **state)
{
    (void)state;
    hall self;
    open_hall(&self);
    peer *client = &self.clients[MCP_REV_2025_03_26];
    say(client, "[" LEGACY("1", "tools/call", "'name':'a.echo'") "," LEGACY(
                    "2", "tools/call",
                    "'name':'b.echo'") ",{'jsonrpc':'2.0','method':'notifications/initialized'},"
                                       "{'jsonrpc':'2.0','id':3,'method':'ping'}]");
    assert_int_equal(client->count, 0);
    fake_result(self.stage.b, "{'resultType':'complete','content':[],'n':1.0}");
    fake_error(self.stage.a, -32602, "{'code':-32602,'message':'m'}");
    assert_int_equal(client->count, 1);
    assert_int_equal(client->lines[0][0], '[');
    check(&self, MCP_REV_2025_03_26, "{'jsonrpc':'2.0','id':3,'result':{}}", true, "a batch");
    check(&self, MCP_REV_2025_03_26, "{'jsonrpc':'2.0','id':2,'result':{'content':[],'n':1.0}}",
          true, "a batch");
    check(&self, MCP_REV_2025_03_26,
          "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'m'}}", true, "a batch");
    /* other revisions have none */
    say(&self.clients[MCP_REV_2025_11_25], "[" LEGACY("1", "tools/call", "'name':'a.echo'") "]");
    check(&self, MCP_REV_2025_11_25, "'code':-32600", true, "a batch");
    assert_int_equal(self.stage.a->held_count, 0);
    close_hall(&self);
}

/* ---- log levels ------------------------------------------------------------------------------ */

static void say_level(hall *self, int revision, const char *level)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "'level':'%s'", level);
    ask(self, revision, "logging/setLevel", text);
    check(self, revision, "'id':1,'result':{}", true, "a level");
    forget(&self->clients[revision]);
}

/* The server hears the most verbose subscription, each client what it wished for itself. */
static void each_client_hears_the_levels_it_wished_for(void **state)
{
    (void)state;
    hall self;
    open_hall(&self);
    stage *on = &self.stage;
    int loud = MCP_REV_2024_11_05;
    int quiet = MCP_REV_2025_11_25;
    say_level(&self, loud, "debug");
    say_level(&self, quiet, "error");
    ask(&self, quiet, "tools/call", "'name':'a.echo'");
    assert_int_equal(on->a->held[0]->spec.log_level, MCP_LOG_ERROR); /* a stateless server's */
    assert_int_equal(on->a->level, MCP_LOG_ERROR);                   /* one of sessions' */
    ask(&self, loud, "tools/call", "'name':'a.echo'");
    assert_int_equal(on->a->held[1]->spec.log_level, MCP_LOG_DEBUG);
    assert_int_equal(on->a->level, MCP_LOG_DEBUG);
    fake_notify(on->a, MCP_N_MESSAGE, "{'level':'info','data':1.0}");
    assert_int_equal(self.clients[quiet].count, 0);
    fake_notify(on->a, MCP_N_MESSAGE, "{'level':'critical','data':1.0}");
    check(&self, quiet, "'params':{'level':'critical','data':1.0}", true, "a message");
    forget(&self.clients[quiet]);
    fake_result(on->a, "{}");
    forget(&self.clients[quiet]);
    fake_notify(on->a, MCP_N_MESSAGE, "{'level':'debug','logger':'l','data':1.0}");
    check(&self, loud, "'params':{'level':'debug','logger':'l','data':1.0}", true, "a message");
    forget(&self.clients[loud]);
    fake_result(on->a, "{}");
    /* a stateless client that names no level wants none */
    ask(&self, MCP_LATEST, "tools/call", "'name':'a.echo'");
    assert_int_equal(on->a->held[0]->spec.log_level, MCP_LOG_NONE);
    fake_notify(on->a, MCP_N_MESSAGE, "{'level':'emergency','data':1.0}");
    assert_int_equal(self.clients[MCP_LATEST].count, 0);
    fake_result(on->a, "{}");
    close_hall(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_the_codes_of_the_clients_revision),
        cmocka_unit_test(results_are_said_in_the_clients_words),
        cmocka_unit_test(definitions_stay_but_for_what_breaks_strict_readers),
        cmocka_unit_test(params_go_as_they_came),
        cmocka_unit_test(batches_reach_any_server),
        cmocka_unit_test(each_client_hears_the_levels_it_wished_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
