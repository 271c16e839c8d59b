/* Each allocation failing in turn while calls are suspended and resumed, while a session's client
 * is asked, and while rounds are gone for it: every call ends once, at the server's side too, and
 * everything is given back. */
#include "support/endpoint_testing.h"

#include "endpoint/endpoint_parts.h"
#include "support/failing_memory.h"

#define WHO "'protocolVersion':'2025-11-25','capabilities':{'elicitation':{},'roots':{}}"
#define PARAMS "'name':'a.echo','arguments':{'n':1.0}"
#define LONG                                                                                       \
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"  \
    "123456789012345678901234567890123456789"

enum { TEXT = 4000, LINES = 32 };

/* What is said and read is made before memory fails; what is heard is kept apart. */
typedef struct play {
    stage stage;
    arena memory;
    json_doc docs[8];
    size_t doc_count;
    char call[TEXT];
    mcp_carrier_ops ops;
} play;

static struct {
    char lines[LINES][TEXT];
    int count;
} heard;

static bay_err hear(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    (void)carrier;
    (void)event_id;
    assert_true(heard.count < LINES && json.len < TEXT);
    if (json.len > 0) {
        memcpy(heard.lines[heard.count], json.at, json.len);
        heard.lines[heard.count++][json.len] = '\0';
    }
    return BAY_OK;
}

static void quote(char *out, const char *text)
{
    assert_true(strlen(text) < TEXT);
    strncpy(out, text, TEXT);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
}

static json_val parsed(play *self, const char *text)
{
    char quoted[TEXT];
    bay_str copy;
    json_doc *doc = &self->docs[self->doc_count++];
    quote(quoted, text);
    assert_int_equal(arena_dup(&self->memory, str_of(quoted), &copy), BAY_OK);
    assert_int_equal(json_parse(doc, copy, NULL, &self->memory, NULL), BAY_OK);
    return json_root(doc);
}

static rpc_message input_request_of(play *self, const char *text)
{
    rpc_message made;
    rpc_fault fault;
    assert_int_equal(rpc_message_read(&made, parsed(self, text), &self->memory, &fault), BAY_OK);
    return made;
}

static void play_open(play *self, const char *call)
{
    memset(self, 0, sizeof(*self));
    open_on_loop(&self->stage, "workers: 1", WHO);
    arena_init(&self->memory, 1 << 20);
    self->ops = (mcp_carrier_ops){.event = hear};
    self->stage.legacy.carrier.ops = &self->ops;
    self->stage.modern.carrier.ops = &self->ops;
    heard.count = 0;
    quote(self->call, call);
}

static void play_close(play *self)
{
    failing_memory.allowed = SIZE_MAX;
    arena_fini(&self->memory);
    assert_int_equal(self->stage.endpoint->suspended.calls.len, 0);
    assert_int_equal(self->stage.endpoint->suspended.bytes, 0);
    close_stage(&self->stage);
}

static void tell(peer *to, const char *text)
{
    mcp_connection_receive(to->connection, str_of(text), 1000);
}

/* The last line that holds `part`, or NULL. */
static const char *find_line(const char *part)
{
    for (int i = heard.count; i-- > 0;) {
        if (strstr(heard.lines[i], part) != NULL) {
            return heard.lines[i];
        }
    }
    return NULL;
}

static int count_lines(const char *part)
{
    int count = 0;
    for (int i = 0; i < heard.count; i++) {
        count += strstr(heard.lines[i], part) != NULL;
    }
    return count;
}

static void end_held(play *self, json_val result)
{
    if (self->stage.a->held_count > 0) {
        mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT, .result = result};
        upstream_call *call = fake_take(self->stage.a);
        upstream_call_end(call);
        call->events->done(call->user, &outcome);
    }
}

/* ---- suspended ------------------------------------------------------------------------------- */

static void write_retry(char *out, const char *line)
{
    const char *state = strstr(line, "\"requestState\":\"");
    char text[TEXT];
    assert_non_null(state);
    state += strlen("\"requestState\":\"");
    (void)snprintf(text, sizeof(text),
                   "{'jsonrpc':'2.0','id':2,'method':'tools/call','params':{" PARAMS
                   ",'requestState':'%.*s','inputResponses':{'q1':{'action':'accept','content':{"
                   "'x':'" LONG "'}}}," META "}}}",
                   (int)strcspn(state, "\""), state);
    quote(out, text);
}

/* `ends_early`: while nobody is there. */
static void suspend_and_resume(size_t at, bool ends_early)
{
    play self;
    char retry[TEXT];
    failing_memory.allowed = SIZE_MAX;
    play_open(&self, MODERN("1", "tools/call", PARAMS));
    fake_learn(&self.stage.a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    rpc_message ask =
        input_request_of(&self, "{'jsonrpc':'2.0','id':'s','method':'elicitation/create',"
                                "'params':{'message':'" LONG LONG "'}}");
    json_val result = parsed(&self, "{'content':[],'x':'" LONG "'}");
    fake *server = self.stage.a;
    failing_memory.allowed = at;
    tell(&self.stage.modern, self.call);
    if (server->held_count > 0) {
        server->held[0]->events->asked(server->held[0]->user, &ask);
    }
    loop_turn(self.stage.loop, 0);
    const char *line = find_line("\"requestState\"");
    if (line != NULL && ends_early) {
        end_held(&self, result);
    }
    if (line != NULL) {
        write_retry(retry, line);
        tell(&self.stage.modern, retry);
        loop_turn(self.stage.loop, 0);
    }
    end_held(&self, result);
    failing_memory.allowed = SIZE_MAX;
    assert_true(count_lines("\"id\":1,") <= 1 && count_lines("\"id\":2,") <= 1);
    assert_true(server->answers <= 1);
    if (!failing_memory.has_failed) {
        assert_int_equal(count_lines("\"id\":2,\"result\":{\"resultType\":\"complete\""), 1);
        assert_int_equal(server->answers, !ends_early);
    }
    /* where the retry was not taken, for want of memory, it is still good */
    if (line != NULL && self.stage.endpoint->suspended.calls.len > 0) {
        tell(&self.stage.modern, retry);
        end_held(&self, result);
    }
    play_close(&self);
}

static void calls_are_suspended_without_memory(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode++) {
        for (size_t at = 0;
             mode % 2 == 0 ? failing_memory_start(at) : failing_memory_start_single(at); at++) {
            suspend_and_resume(at, mode >= 2);
            failing_memory_check();
        }
    }
}

/* ---- a session's client ---------------------------------------------------------------------- */

static void ask_and_answer(size_t at)
{
    play self;
    char answer[TEXT];
    failing_memory.allowed = SIZE_MAX;
    play_open(&self, LEGACY("1", "tools/call", PARAMS));
    fake_learn(&self.stage.a->base, mcp_revision_of(MCP_REV_2025_11_25), STR("{\"tools\":{}}"));
    rpc_message ask =
        input_request_of(&self, "{'jsonrpc':'2.0','id':'s','method':'elicitation/create',"
                                "'params':{'message':'" LONG LONG "'}}");
    json_val result = parsed(&self, "{'content':[],'x':'" LONG "'}");
    quote(answer, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept','x':'" LONG "'}}");
    fake *server = self.stage.a;
    failing_memory.allowed = at;
    tell(&self.stage.legacy, self.call);
    if (server->held_count > 0) {
        server->held[0]->events->asked(server->held[0]->user, &ask);
    }
    if (find_line("bay-1") != NULL) {
        tell(&self.stage.legacy, answer);
    }
    end_held(&self, result);
    failing_memory.allowed = SIZE_MAX;
    assert_true(count_lines("\"id\":1,") <= 1);
    assert_true(server->answers <= 1);
    if (!failing_memory.has_failed) {
        assert_int_equal(count_lines("\"id\":1,\"result\":{\"content\""), 1);
        assert_int_equal(server->answers, 1);
    }
    play_close(&self);
}

static void sessions_are_asked_without_memory(void **state)
{
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        for (size_t at = 0; mode == 0 ? failing_memory_start(at) : failing_memory_start_single(at);
             at++) {
            ask_and_answer(at);
            failing_memory_check();
        }
    }
}

static void go_rounds(size_t at)
{
    play self;
    char first[TEXT];
    char second[TEXT];
    failing_memory.allowed = SIZE_MAX;
    play_open(&self, LEGACY("1", "tools/call", PARAMS));
    json_val input = parsed(&self, "{'resultType':'input_required','inputRequests':{'a':{'method':"
                                   "'elicitation/create','params':{'message':'" LONG "'}},'b':{"
                                   "'method':'roots/list'}},'requestState':'" LONG "'}");
    json_val result = parsed(&self, "{'content':[],'x':'" LONG "'}");
    quote(first, "{'jsonrpc':'2.0','id':'bay-1','result':{'action':'accept','x':'" LONG "'}}");
    quote(second, "{'jsonrpc':'2.0','id':'bay-2','result':{'roots':[]}}");
    failing_memory.allowed = at;
    tell(&self.stage.legacy, self.call);
    end_held(&self, input);
    if (find_line("bay-1") != NULL) {
        tell(&self.stage.legacy, first);
    }
    if (find_line("bay-2") != NULL) {
        tell(&self.stage.legacy, second);
    }
    end_held(&self, result);
    failing_memory.allowed = SIZE_MAX;
    assert_true(count_lines("\"id\":1,") <= 1);
    if (!failing_memory.has_failed) {
        assert_int_equal(count_lines("\"id\":1,\"result\":{\"content\""), 1);
    }
    play_close(&self);
}

static void rounds_are_gone_without_memory(void **state)
{
    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        for (size_t at = 0; mode == 0 ? failing_memory_start(at) : failing_memory_start_single(at);
             at++) {
            go_rounds(at);
            failing_memory_check();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_suspended_without_memory),
        cmocka_unit_test(sessions_are_asked_without_memory),
        cmocka_unit_test(rounds_are_gone_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
