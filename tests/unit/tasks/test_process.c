/* Tasks of a real process of the handshake era, over one pipe that all its clients share: what it
 * asks for a task reaches the client of that task, whoever else waits for another. The program is
 * its own server when it is started with "serve". */
#include "support/upstream_testing.h"

#include "support/endpoint_testing.h"
#include "tasks/task.h"

/* ---- the server: a tool whose tasks ask for a name, once both clients wait for theirs ----------
 */

enum { TASKS = 4 };

static struct {
    char waiting[TASKS][40]; /* ids of tasks/result */
    bool is_answered[TASKS];
    int count;
    int waits;
} serving;

static void serve_task(bay_str id, int task, const char *open, const char *close)
{
    printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s{\"taskId\":\"t%d\",\"status\":\"%s\","
           "\"createdAt\":\"2026-01-01T00:00:00Z\",\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\","
           "\"ttl\":null}%s}\n",
           BAY_STR(id), open, task, serving.is_answered[task] ? "completed" : "input_required",
           close);
}

static void serve_question(const char *id, const char *task)
{
    printf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"elicitation/create\",\"params\":{"
           "\"message\":\"for %s?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}},"
           "\"_meta\":{\"io.modelcontextprotocol/related-task\":{\"taskId\":\"%s\"}}}}\n",
           id, task, task);
}

static void serve_result(bay_str id, int task)
{
    if (serving.is_answered[task]) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\","
               "\"text\":\"done t%d\"}]}}\n",
               BAY_STR(id), task);
        return;
    }
    (void)snprintf(serving.waiting[task], sizeof(serving.waiting[task]), "%.*s", BAY_STR(id));
    if (++serving.waits == 2) {
        serve_question("q0", "t0");
        serve_question("q1", "t1");
        serve_question("q9", "t9"); /* nobody's */
    }
}

static void serve_answer(int task, json_val result)
{
    if (task == 9) {
        return;
    }
    serving.is_answered[task] = true;
    printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[],\"structuredContent\":"
           "%.*s}}\n",
           serving.waiting[task], BAY_STR(json_raw(result)));
}

static void serve(json_val message)
{
    json_val method = json_get(message, STR("method"));
    json_val params = json_get(message, STR("params"));
    bay_str id = json_raw(json_get(message, STR("id")));
    bay_str named = json_raw(json_get(params, STR("taskId")));
    int task = named.len > 3 ? named.at[2] - '0' : 0;
    if (json_is(method, JSON_MISSING) && id.len > 3 && id.at[1] == 'q') {
        serve_answer(id.at[2] - '0', json_get(message, STR("result")));
    } else if (json_str_eq(method, STR("initialize"))) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":\"2025-11-25\","
               "\"capabilities\":{\"tools\":{},\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{"
               "\"call\":{}}}}},\"serverInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n",
               BAY_STR(id));
    } else if (json_str_eq(method, STR("tools/list"))) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"tools\":[{\"name\":\"slow\","
               "\"inputSchema\":{\"type\":\"object\"},\"execution\":{\"taskSupport\":"
               "\"required\"}}]}}\n",
               BAY_STR(id));
    } else if (json_str_eq(method, STR("tools/call"))) {
        serve_task(id, serving.count++, "{\"task\":", "}");
    } else if (json_str_eq(method, STR("tasks/get"))) {
        serve_task(id, task, "", "");
    } else if (json_str_eq(method, STR("tasks/result"))) {
        serve_result(id, task);
    } else if (id.len > 0) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{}}\n", BAY_STR(id));
    }
}

static int server_run(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        json_doc doc;
        arena memory;
        arena_init(&memory, 16 << 20);
        bay_str text = str_head(str_of(line), strcspn(line, "\n"));
        if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK) {
            serve(json_root(&doc));
        }
        fflush(stdout);
        arena_fini(&memory);
    }
    return 0;
}

/* ---- the gateway's side ---------------------------------------------------------------------- */

typedef struct scene {
    loop *loop;
    seal_ring *ring;
    const config *config;
    upstream *server;
    listing_fetch fetch;
    endpoint *endpoint;
    peer clients[2];
    int ends;
} scene;

static void open_scene(scene *self)
{
    char program[300];
    char text[1000];
    *self = (scene){0};
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    assert_true(len > 0);
    program[len] = '\0';
    (void)snprintf(text, sizeof(text),
                   "{\"mcpServers\":{\"s\":{\"command\":\"%s\",\"args\":[\"serve\"],\"protocol\":"
                   "\"legacy\"}}}",
                   program);
    self->config = testing_config(text);
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    upstream_options of_server = {.loop = self->loop,
                                  .config = self->config,
                                  .server = &self->config->servers[0],
                                  .events = &fake_events};
    assert_int_equal(upstream_new(&of_server, &self->server), BAY_OK);
    upstream_start(self->server);
    turn_until(self->loop, upstream_state_of(self->server) == UPSTREAM_READY);
    listing_fetch_init(&self->fetch, self->server, LISTING_TOOLS, listing_fetched, &self->ends);
    listing_fetch_start(&self->fetch, 5000);
    turn_until(self->loop, self->ends > 0);
    endpoint_options of_endpoint = {
        .config = self->config, .loop = self->loop, .ring = self->ring, .tasks = &task_ops};
    assert_int_equal(endpoint_new(&of_endpoint, &self->endpoint), BAY_OK);
    catalog_source source = {.upstream = self->server,
                             .listings = {[LISTING_TOOLS] = self->fetch.current}};
    assert_int_equal(endpoint_set_sources(self->endpoint, self->config, &source, 1), BAY_OK);
    endpoint_lists_ready(self->endpoint);
    peer_open(&self->clients[0], self->endpoint);
    peer_open(&self->clients[1], self->endpoint);
}

static void closed_to(void *user)
{
    *(bool *)user = true;
}

static void close_scene(scene *self)
{
    for (int i = 0; i < 2; i++) {
        mcp_connection_close(self->clients[i].connection);
        forget(&self->clients[i]);
    }
    endpoint_free(self->endpoint);
    listing_fetch_fini(&self->fetch);
    bool is_closed = false;
    upstream_close(self->server, closed_to, &is_closed);
    turn_until(self->loop, is_closed);
    upstream_free(self->server);
    loop_free(self->loop);
    seal_ring_free(self->ring);
    config_free(self->config);
}

#define EXT "{'elicitation':{},'extensions':{'io.modelcontextprotocol/tasks':{}}}"
#define WITH(method, params)                                                                       \
    "{'jsonrpc':'2.0','id':1,'method':'" method "','params':{" params "," META_OF(EXT) "}}}"

static void take(const char *line, const char *after, char out[400])
{
    const char *at = strstr(line, after);
    if (at == NULL) {
        fail_msg("no %s in %s", after, line);
    }
    at += strlen(after);
    size_t len = strcspn(at, "\"");
    assert_true(len < 400);
    memcpy(out, at, len);
    out[len] = '\0';
}

static void ask(scene *self, int client, const char *format, const char *a, const char *b)
{
    char text[3000];
    forget(&self->clients[client]);
    (void)snprintf(text, sizeof(text), format, a, b);
    say(&self->clients[client], text);
}

static void questions_reach_the_client_of_their_task(void **state)
{
    (void)state;
    scene self;
    char tokens[2][400];
    char key[400];
    open_scene(&self);
    for (int i = 0; i < 2; i++) {
        ask(&self, i, WITH("tools/call", "'name':'s.slow'%s%s"), "", "");
        turn_until(self.loop, self.clients[i].count > 0);
        take(self.clients[i].lines[0], "\"taskId\":\"", tokens[i]);
    }
    for (int i = 0; i < 2; i++) {
        ask(&self, i, WITH("tasks/get", "'taskId':'%s'%s"), tokens[i], "");
    }
    turn_until(self.loop, self.clients[0].count > 0 && self.clients[1].count > 0);
    for (int i = 0; i < 2; i++) {
        const char *question = i == 0 ? "for t0?" : "for t1?";
        assert_non_null(strstr(self.clients[i].lines[0], "\"status\":\"input_required\""));
        assert_non_null(strstr(self.clients[i].lines[0], question));
        take(self.clients[i].lines[0], "\"inputRequests\":{\"", key);
        ask(&self, i,
            WITH("tasks/update",
                 "'taskId':'%s','inputResponses':{'%s':{'action':'accept','content':{}}}"),
            tokens[i], key);
        assert_int_equal(self.clients[i].count, 1);
    }
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "done t0" : "done t1";
        const char *line = "";
        for (int tries = 0; tries < 1000 && strstr(line, "completed") == NULL; tries++) {
            ask(&self, i, WITH("tasks/get", "'taskId':'%s'%s"), tokens[i], "");
            turn_until(self.loop, self.clients[i].count > 0);
            line = self.clients[i].lines[0];
        }
        assert_non_null(strstr(line, text));
    }
    close_scene(&self);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        return server_run();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_reach_the_client_of_their_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
