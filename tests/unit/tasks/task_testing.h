/* What the tests of tasks share: a server a that is stateless with the extension, of sessions with
 * tasks, or with neither; names of tasks taken from what clients hear. */
#ifndef TESTS_TASK_TESTING_H
#define TESTS_TASK_TESTING_H

#include "endpoint/endpoint_parts.h"
#include "tasks/continuation.h"

#define STAGE_TASKS (&task_ops)
#include "support/endpoint_testing.h"

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
static inline void be_modern(stage *self)
{
    fake_learn(&self->a->base, mcp_revision_of(MCP_LATEST),
               STR("{\"tools\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"));
}

static inline void be_core(stage *self)
{
    fake_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_11_25),
               STR("{\"tools\":{},\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":"
                   "{\"call\":{}}}}}"));
}

static inline void be_plain(stage *self)
{
    fake_learn(&self->a->base, mcp_revision_of(MCP_REV_2025_06_18), STR("{\"tools\":{}}"));
}

static inline void open_tasks(stage *self, const char *who, void (*be)(stage *self))
{
    static const char *tools = "[{\"name\":\"echo\"},"
                               "{\"name\":\"may\",\"execution\":{\"taskSupport\":\"optional\"}},"
                               "{\"name\":\"must\",\"execution\":{\"taskSupport\":\"required\"}}]";
    open_on_loop(self, "workers: 1", who);
    listing_unref(self->sources[0].listings[LISTING_TOOLS]);
    self->sources[0].listings[LISTING_TOOLS] = listing_of(self->a, LISTING_TOOLS, tools);
    be(self);
    endpoint_refresh(self->endpoint, LISTING_TOOLS, self->sources, 2);
    forget(&self->legacy);
}

static inline void assert_params(const fake *server, const char *method, const char *params)
{
    assert_int_equal(server->held_count, 1);
    char *text = testing_quotes(params);
    assert_text(server->held[0]->spec.method, method);
    assert_text(json_raw(server->held[0]->spec.params), text);
    mem_free(text);
}

/* The task id in the last line heard. */
static inline void take_token(peer *self, char out[TOKEN])
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

static inline void ask_for(peer *self, const char *format, const char *token)
{
    char text[3000];
    (void)snprintf(text, sizeof(text), format, token);
    say(self, text);
}

static inline void assert_heard_of(peer *self, const char *format, const char *token)
{
    char text[3000];
    (void)snprintf(text, sizeof(text), format, token, token);
    assert_heard(self, text);
}

#define GET(id) WITH(id, "tasks/get", "'taskId':'%s'")
#define LEGACY_TASK(id, method) LEGACY(id, method, "'taskId':'%s'")

/* Creates a task of the server a. */
static inline void begin_modern(stage *self, char token[TOKEN])
{
    say(&self->modern, WITH("1", "tools/call", "'name':'a.may'"));
    fake_result(self->a, self->a->base.revision->era == MCP_MODERN
                             ? "{'resultType':'task'," TIMES ",'ttlMs':60000,'taskId':'up/1',"
                               "'status':'working'}"
                             : "{'task':" CORE("working", "") "}");
    take_token(&self->modern, token);
    forget(&self->modern);
}

static inline void begin_legacy(stage *self, char token[TOKEN])
{
    say(&self->legacy, LEGACY("1", "tools/call", "'name':'a.may','task':{'ttl':60000}"));
    fake_result(self->a, self->a->base.revision->era == MCP_MODERN
                             ? "{'resultType':'task'," TIMES ",'ttlMs':60000,'taskId':'up/1',"
                               "'status':'working'}"
                             : "{'task':" CORE("working", "") "}");
    take_token(&self->legacy, token);
    forget(&self->legacy);
}

#define QUESTION(id)                                                                               \
    "{'jsonrpc':'2.0','id':" id ",'method':'elicitation/create','params':{'message':'name?',"      \
    "'requestedSchema':{},'_meta':{'io.modelcontextprotocol/related-task':{'taskId':'up/1'}}}}"

#endif
