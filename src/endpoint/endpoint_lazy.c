/* Servers that are started when somebody first needs their lists: until then they delay nobody, and
 * the first request that would show them waits for them, as the first requests of all wait for the
 * others. */
#include "base/err.h"
#include "endpoint/endpoint_parts.h"

bool endpoint_wake(endpoint *self)
{
    bool is_pending = false;
    bool is_program = false;
    if (self->loop == NULL) {
        return false;
    }
    for (size_t i = 0; i < self->servers.count; i++) {
        upstream *server = self->servers.sources[i].upstream;
        if (upstream_is_asleep(server)) {
            upstream_start(server);
            is_pending = is_pending || !upstream_is_settled(server); /* else it has failed */
            is_program = is_program || upstream_config(server)->command.len > 0;
        }
    }
    if (is_pending && !self->is_waking) {
        /* without a timer nobody waits: the lists are announced when they are there */
        self->is_waking = loop_timer_start(self->loop, &self->waking,
                                           config_settle_ms(self->config, is_program)) == BAY_OK;
    }
    return self->is_waking;
}

void endpoint_awake(endpoint *self)
{
    if (self->is_waking) {
        self->is_waking = false;
        loop_timer_stop(self->loop, &self->waking);
        if (self->is_settled) {
            endpoint_resume(self);
        }
    }
}

void endpoint_waited(void *argument)
{
    endpoint_awake(argument);
}

/* ---- one server's first list ----------------------------------------------------------------- */

bool endpoint_await(endpoint *self, mcp_request *request, const catalog_source *source,
                    listing_kind kind)
{
    uint64_t now_ms = endpoint_now_ms(self);
    uint64_t until_ms = self->resumed_until_ms;
    if (!self->is_settled) {
        return endpoint_request_defer(self, request);
    }
    if (upstream_state_of(source->upstream) == UPSTREAM_STOPPED) {
        upstream_start(source->upstream);
    }
    bool may_come = (source->read & 1u << kind) == 0 && !upstream_is_down(source->upstream);
    bool is_program = upstream_config(source->upstream)->command.len > 0;
    until_ms = until_ms != 0 ? until_ms : now_ms + config_settle_ms(self->config, is_program);
    if (self->loop == NULL || !may_come || now_ms >= until_ms) {
        return false;
    }
    if (!self->is_awaiting) {
        self->is_awaiting =
            loop_timer_start(self->loop, &self->awaiting, until_ms - now_ms) == BAY_OK;
    }
    route *waits = self->is_awaiting ? arena_zalloc(request->memory, sizeof(*waits)) : NULL;
    if (waits == NULL) {
        return false;
    }
    *waits = (route){.endpoint = self, .request = request, .until_ms = until_ms};
    request->user = waits;
    list_push(&self->waiting, &waits->link);
    return true;
}

void endpoint_awaited(void *argument)
{
    endpoint *self = argument;
    if (self->is_awaiting) {
        self->is_awaiting = false;
        loop_timer_stop(self->loop, &self->awaiting);
        endpoint_resume(self);
    }
}
