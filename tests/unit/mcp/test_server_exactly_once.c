/* One request, one answer: every way a service may answer, against everything that may happen
 * meanwhile, over every kind of carrier. The bench's wires fail on a second answer and on any call
 * after they are gone; the sanitizers see what is freed twice or kept. */
#include "server_bench.h"

#define LEGACY_CALL(id)                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"t\","     \
    "\"_meta\":{\"progressToken\":1}}}"
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

typedef enum era {
    MODERN_HTTP,
    LEGACY_HTTP,
    BATCH_HTTP,
    MODERN_LINE,
    LEGACY_LINE,
    BATCH_LINE,
    ERAS
} era;

typedef enum step {
    NOTIFY,    /* the service says something */
    ASK,       /* … or asks the client (modern: refused) */
    LEAVE,     /* the exchange or the connection breaks */
    CANCEL_IT, /* the client cancels (modern over HTTP: has no way but to leave) */
    END,       /* the session ends */
    CLOSE,     /* streams are closed gracefully */
    TICK,      /* a long time passes */
    FREE,      /* the engine ends */
    ANSWER,    /* the service answers */
    STEPS
} step;

typedef struct play {
    bench on;
    era as;
    wire way;
    legacy who;
    int asked;
    int answered;
    bool is_free;
} play;

static void on_answer(void *user, bay_err err, const rpc_message *response)
{
    (void)err;
    assert_null(response);
    ((play *)user)->answered++;
}

static bool is_line(era as)
{
    return as >= MODERN_LINE;
}

static void begin(play *self)
{
    bench *on = &self->on;
    on->mode = ANSWER_LATER;
    switch (self->as) {
    case MODERN_HTTP:
        bench_http(on, &self->way, "POST", call_fields, CALL("1", ""));
        break;
    case LEGACY_HTTP:
        legacy_begin(on, &self->who, INITIALIZE("2025-11-25"));
        bench_http(on, &self->way, "POST", self->who.fields, LEGACY_CALL("1"));
        break;
    case BATCH_HTTP:
        legacy_begin(on, &self->who, INITIALIZE("2025-03-26"));
        bench_http(on, &self->way, "POST", self->who.fields,
                   "[" LEGACY_CALL("1") "," LEGACY_CALL("2") "]");
        break;
    case MODERN_LINE:
        duplex_open(on, &self->way);
        duplex_say(on, &self->way, CALL("1", ""));
        break;
    case LEGACY_LINE:
        duplex_open(on, &self->way);
        duplex_say(on, &self->way, INITIALIZE("2025-11-25"));
        duplex_say(on, &self->way, LEGACY_CALL("1"));
        break;
    default:
        duplex_open(on, &self->way);
        duplex_say(on, &self->way, INITIALIZE("2025-03-26"));
        duplex_say(on, &self->way, "[" LEGACY_CALL("1") "," LEGACY_CALL("2") "]");
    }
}

static void leave(play *self)
{
    if (is_line(self->as)) {
        duplex_close(&self->way);
    } else if (self->way.answers + self->way.ends == 0) {
        wire_gone(&self->on, &self->way);
    }
}

static void cancel(play *self)
{
    wire other;
    if (self->as == MODERN_HTTP) {
        return;
    }
    if (!is_line(self->as)) {
        bench_http(&self->on, &other, "POST", self->who.fields, CANCEL("1"));
        wire_fini(&other);
    } else if (self->way.connection != NULL) {
        duplex_say(&self->on, &self->way, CANCEL("1"));
    }
}

static void end(play *self)
{
    wire other;
    if (self->as == LEGACY_HTTP || self->as == BATCH_HTTP) {
        bench_http(&self->on, &other, "DELETE", self->who.fields, NULL);
        wire_fini(&other);
    }
}

static void take(play *self, step one)
{
    bench *on = &self->on;
    if (self->is_free && one != ANSWER && one != NOTIFY && one != ASK) {
        return;
    }
    mcp_request *request = on->held_count > 0 ? on->held[0] : NULL;
    switch (one) {
    case NOTIFY:
        if (request != NULL) {
            (void)mcp_request_log(request, MCP_LOG_ERROR, STR("{\"level\":\"error\"}"));
        }
        break;
    case ASK:
        if (request != NULL && mcp_request_ask(request, MCP_SAMPLING, STR("{}"), on_answer, self,
                                               on->now_ms) == BAY_OK) {
            self->asked++;
        }
        break;
    case LEAVE:
        leave(self);
        break;
    case CANCEL_IT:
        cancel(self);
        break;
    case END:
        end(self);
        break;
    case CLOSE:
        mcp_server_close_streams(on->server);
        break;
    case TICK:
        on->now_ms += 1000 * 60 * 60;
        (void)mcp_server_tick(on->server, on->now_ms);
        break;
    case FREE:
        self->way.connection = NULL; /* closed by it */
        mcp_server_free(on->server);
        on->server = NULL;
        self->is_free = true;
        break;
    default:
        if (request != NULL) {
            on->held[0] = on->held[--on->held_count];
            mcp_request_result_members(request, STR("\"content\":[]"));
        }
    }
}

static void run(era as, const step *steps, size_t count, bool finish_on_cancel, bool dies_on_event)
{
    play self = {.as = as};
    bench_init(&self.on);
    begin(&self);
    assert_true(self.on.held_count > 0);
    self.on.finish_on_cancel = finish_on_cancel;
    self.way.dies_on_event = dies_on_event && !is_line(as);
    for (size_t i = 0; i < count; i++) {
        take(&self, steps[i]);
    }
    while (self.on.held_count > 0) {
        take(&self, ANSWER);
    }
    if (!is_line(as) && !self.way.is_gone) {
        assert_int_equal(self.way.answers + self.way.ends, 1);
    }
    duplex_close(&self.way);
    bench_fini(&self.on);
    assert_int_equal(self.asked, self.answered);
    wire_fini(&self.way);
}

static void every_order_of_three_steps(void **state)
{
    (void)state;
    for (int as = 0; as < ERAS; as++) {
        for (int code = 0; code < STEPS * STEPS * STEPS; code++) {
            step steps[] = {(step)(code % STEPS), (step)(code / STEPS % STEPS),
                            (step)(code / STEPS / STEPS)};
            for (int how = 0; how < 4; how++) {
                run((era)as, steps, 3, (how & 1) != 0, (how & 2) != 0);
            }
        }
    }
}

static void a_service_that_answers_at_once_is_answered_once(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        bench self;
        bench_init(&self);
        self.mode = (how & 1) != 0 ? NOTIFY_THEN_ANSWER : ANSWER_NOW;
        legacy who;
        legacy_begin(&self, &who, INITIALIZE("2025-11-25"));
        wire way;
        bench_http(&self, &way, "POST", (how & 2) != 0 ? who.fields : call_fields,
                   (how & 2) != 0 ? LEGACY_CALL("1") : CALL("1", ""));
        assert_int_equal(way.answers + way.ends, 1);
        wire_fini(&way);
        bench_fini(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_of_three_steps),
        cmocka_unit_test(a_service_that_answers_at_once_is_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
