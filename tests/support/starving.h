/* Scenes on an endpoint in which one allocation fails: only what the gateway does itself is
 * starved, not the test around it.
 *
 *     starved_begin(at);
 *     starved_say(…); starved_result(…); …
 *     … the next round, while starved_has_failed …
 */
#ifndef SUPPORT_STARVING_H
#define SUPPORT_STARVING_H

#include "support/endpoint_testing.h"

#include "support/failing_memory.h"

/* One allocation of all that happen between hungry and fed fails. */
static size_t starved_budget;
static bool starved_has_failed;

static inline void hungry(void)
{
    failing_memory.is_running = false;
    (void)failing_memory_start_single(starved_budget);
}

static inline void fed(void)
{
    starved_has_failed = starved_has_failed || failing_memory.has_failed;
    starved_budget = failing_memory.has_failed ? SIZE_MAX / 2 : failing_memory.allowed;
    failing_memory_stop();
}

static inline void starved_say(peer *self, const char *format, const char *token)
{
    char text[3000];
    (void)snprintf(text, sizeof(text), format, token);
    char *quoted = testing_quotes(text);
    hungry();
    mcp_connection_receive(self->connection, str_of(quoted), 1000);
    fed();
    mem_free(quoted);
}

static inline void starved_result(stage *self, const char *json)
{
    if (self->a->held_count == 0) {
        return;
    }
    char *quoted = testing_quotes(json);
    upstream_call *call = fake_take(self->a);
    mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT};
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(quoted), NULL, &memory, NULL), BAY_OK);
    outcome.result = json_root(&doc);
    upstream_call_end(call);
    hungry();
    call->events->done(call->user, &outcome);
    fed();
    arena_fini(&memory);
    mem_free(quoted);
}

static inline void starved_begin(size_t at)
{
    starved_budget = at;
    starved_has_failed = false;
}

/* What the servers still owe is answered. */
static inline void starved_settle(stage *self)
{
    while (self->a->held_count > 0) {
        fake_fail(self->a, BAY_ERR_EXITED, true, "it died");
    }
}

#endif
