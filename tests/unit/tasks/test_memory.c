/* Each allocation of tasks fails in turn: nothing crashes or leaks, and whoever asked is answered.
 */
#include "endpoint/endpoint_parts.h"
#include "tasks/continuation.h"

#define STAGE_TASKS (&task_ops)
#include "support/starving.h"

enum { TOKEN = 512 };

#define EXT "{'elicitation':{},'extensions':{'io.modelcontextprotocol/tasks':{}}}"
#define WITH(method, params)                                                                       \
    "{'jsonrpc':'2.0','id':1,'method':'" method "','params':{" params "," META_OF(EXT) "}}}"
#define WHO "'protocolVersion':'2025-11-25','capabilities':{'elicitation':{},'sampling':{}}"
#define WHO_OLD "'protocolVersion':'2025-06-18','capabilities':{'elicitation':{}}"
#define TIMES "'createdAt':'2026-01-01T00:00:00Z','lastUpdatedAt':'2026-01-01T00:00:01Z'"
#define FLAT(status, more)                                                                         \
    "{'resultType':'task','taskId':'up/1','status':'" status "'," TIMES ",'ttlMs':60000" more "}"
#define CORE(status, more) "{'taskId':'up/1','status':'" status "'," TIMES ",'ttl':60000" more "}"
#define ASK                                                                                        \
    "{'jsonrpc':'2.0','id':'s','method':'elicitation/create','params':{'message':'?',"             \
    "'requestedSchema':{},'_meta':{'io.modelcontextprotocol/related-task':{'taskId':'up/1'}}}}"

static void starved_ask(stage *self)
{
    if (self->a->held_count == 0 || self->a->held[0]->events->asked == NULL) {
        return;
    }
    char *quoted = testing_quotes(ASK);
    arena memory;
    json_doc doc;
    rpc_message message;
    rpc_fault fault = {0};
    arena_init(&memory, 1 << 20);
    assert_int_equal(rpc_message_parse(&message, &doc, str_of(quoted), NULL, &memory, &fault),
                     BAY_OK);
    hungry();
    self->a->held[0]->events->asked(self->a->held[0]->user, &message);
    fed();
    arena_fini(&memory);
    mem_free(quoted);
}

/* What stands after `before` in the last line heard; "" where none came through. */
static void take(peer *self, const char *before, char out[TOKEN])
{
    const char *line = self->count > 0 ? self->lines[self->count - 1] : NULL;
    const char *at = line != NULL ? strstr(line, before) : NULL;
    size_t len = at != NULL ? strcspn(at + strlen(before), "\"") : 0;
    out[0] = '\0';
    if (at != NULL && len < TOKEN) {
        memcpy(out, at + strlen(before), len);
        out[len] = '\0';
    }
    forget(self);
}

#define LEGACY_OF(method) LEGACY("2", method, "'taskId':'%s'")

static void play_session(stage *self)
{
    char token[TOKEN];
    starved_say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{}%s"), "");
    starved_result(self, FLAT("working", ",'pollIntervalMs':0"));
    take(&self->legacy, "\"taskId\":\"", token);
    starved_say(&self->legacy, LEGACY_OF("tasks/get"), token);
    starved_result(self, FLAT("working", ""));
    starved_say(&self->legacy, LEGACY_OF("tasks/result"), token);
    starved_result(self, FLAT("input_required", ",'inputRequests':{'k':{'method':"
                                                "'elicitation/create','params':{}}}"));
    char asked[TOKEN];
    take(&self->legacy, "\"id\":\"", asked);
    starved_say(&self->legacy, "{'jsonrpc':'2.0','id':'%s','result':{'action':'accept'}}", asked);
    starved_result(self, "{'resultType':'complete'}");
    starved_result(self, FLAT("completed", ",'result':{'content':[]}"));
    forget(&self->legacy);
    starved_say(&self->legacy, LEGACY_OF("tasks/cancel"), token);
    starved_result(self, FLAT("working", ""));
    starved_result(self, "{'resultType':'complete'}");
    starved_say(&self->legacy, LEGACY("9", "tasks/list", "'x':1%s"), "");
}

static void play_stateless(stage *self)
{
    char token[TOKEN];
    char key[TOKEN];
    char text[2000];
    starved_say(&self->modern, WITH("tools/call", "'name':'a.may'%s"), "");
    starved_result(self, "{'task':" CORE("working", "") "}");
    take(&self->modern, "\"taskId\":\"", token);
    starved_say(&self->modern, WITH("tasks/get", "'taskId':'%s'"), token);
    starved_result(self, CORE("input_required", ""));
    starved_ask(self);
    take(&self->modern, "\"inputRequests\":{\"", key);
    (void)snprintf(
        text, sizeof(text),
        WITH("tasks/update", "'taskId':'%s','inputResponses':{'%s':{'action':'accept'}}"), token,
        key);
    starved_say(&self->modern, "%s", text);
    starved_result(self, "{'content':[]}");
    starved_say(&self->modern, WITH("tasks/get", "'taskId':'%s'"), token);
    starved_result(self, CORE("completed", ""));
    starved_result(self, "{'content':[]}");
    starved_say(&self->modern, WITH("tasks/cancel", "'taskId':'%s'"), token);
    starved_result(self, CORE("cancelled", ""));
}

static void play_kept(stage *self)
{
    char token[TOKEN];
    starved_say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{}%s"), "");
    starved_result(self, "{'content':[]}");
    take(&self->legacy, "\"taskId\":\"", token);
    starved_say(&self->legacy, LEGACY_OF("tasks/get"), token);
    starved_say(&self->legacy, LEGACY_OF("tasks/result"), token);
    starved_say(&self->legacy, LEGACY("9", "tasks/list", "'x':1%s"), "");
}

static void play_run(stage *self)
{
    starved_say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.must'%s"), "");
    starved_result(self, "{'task':" CORE("working", "") "}");
    starved_ask(self);
    starved_say(&self->legacy, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'x'}}%s", "");
    starved_result(self, "{'content':[]}");
    starved_say(&self->legacy, LEGACY("3", "tools/call", "'name':'a.must'%s"), "");
    starved_result(self, "{'task':" CORE("working", "") "}");
    starved_say(&self->legacy,
                "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':3%s}}",
                "");
    starved_result(self, CORE("cancelled", ""));
}

static const char modern[] = "{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";
static const char core[] = "{\"tools\":{},\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}}";

static const struct {
    const char *who;
    mcp_revision_id revision;
    const char *capabilities;
    void (*play)(stage *self);
} plays[] = {
    {WHO, MCP_LATEST, modern, play_session},
    {WHO, MCP_REV_2025_11_25, core, play_stateless},
    {WHO, MCP_REV_2025_06_18, "{\"tools\":{}}", play_kept},
    {WHO_OLD, MCP_REV_2025_11_25, core, play_run},
};

static void play_starved(size_t index, size_t at)
{
    static const char *tools = "[{\"name\":\"may\",\"execution\":{\"taskSupport\":\"optional\"}},"
                               "{\"name\":\"must\",\"execution\":{\"taskSupport\":\"required\"}}]";
    stage self;
    open_on_loop(&self, "workers: 1", plays[index].who);
    listing_unref(self.sources[0].listings[LISTING_TOOLS]);
    self.sources[0].listings[LISTING_TOOLS] = listing_of(self.a, LISTING_TOOLS, tools);
    fake_learn(&self.a->base, mcp_revision_of(plays[index].revision),
               str_of(plays[index].capabilities));
    endpoint_refresh(self.endpoint, LISTING_TOOLS, self.sources, 2);
    forget(&self.legacy);
    starved_begin(at);
    plays[index].play(&self);
    /* whatever went wrong, what the servers still owe is answered, and so is everybody */
    starved_settle(&self);
    if (self.endpoint->task_registry != NULL) {
        task_result_requests_expire(self.endpoint->task_registry, UINT64_MAX);
    }
    starved_settle(&self);
    assert_int_equal(mcp_connection_pending(self.modern.connection), 0);
    close_stage(&self);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        size_t at = 0;
        do {
            play_starved(i, at++);
        } while (starved_has_failed);
        assert_true(at > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
