/* Requests of a server that a user has taken and not answered. While one is open the server waits,
 * so no call times out for being idle. On a stream of its own, a request belongs to that call and
 * stops no other call's time; on a shared channel it names no call. */
#include <string.h>

#include "base/mem.h"
#include "mcp/client_internal.h"

enum { CLIENT_MAX_ASKED = 65536 }; /* above it, requests are refused */

struct asked {
    list_link link; /* in client.asked */
    mcp_call *call;
    size_t len;
    char id[]; /* raw */
};

static void asked_free(asked *self)
{
    list_remove(&self->link);
    self->call->client->asked_rows--;
    self->call->asked--;
    mem_free(self);
}

bool mcp_client_asked(mcp_client *self, mcp_call *owner, bay_str id)
{
    if (owner == NULL || owner->purpose != CALL_USER) {
        self->asked_count++;
        return true;
    }
    asked *made = self->asked_rows < CLIENT_MAX_ASKED ? mem_alloc(sizeof(*made) + id.len) : NULL;
    if (made == NULL) {
        return false;
    }
    *made = (asked){.call = owner, .len = id.len};
    memcpy(made->id, id.at, id.len);
    list_push(&self->asked, &made->link);
    self->asked_rows++;
    owner->asked++;
    return true;
}

void mcp_client_asked_end(mcp_client *self, bay_str id, bool is_answered)
{
    LIST_EACH(link, &self->asked)
    {
        asked *one = CONTAINER_OF(link, asked, link);
        if (str_eq((bay_str){one->id, one->len}, id)) {
            one->call->has_answered = one->call->has_answered || is_answered;
            self->has_answered = self->has_answered || is_answered;
            asked_free(one);
            return;
        }
    }
    if (self->asked_count > 0) {
        self->asked_count--;
        self->has_answered = self->has_answered || is_answered;
        self->has_answered_loosely = self->has_answered_loosely || is_answered;
    }
}

void mcp_call_forget_asked(mcp_call *call)
{
    LIST_EACH(link, &call->client->asked)
    {
        if (call->asked == 0) {
            return;
        }
        asked *one = CONTAINER_OF(link, asked, link);
        if (one->call == call) {
            asked_free(one);
        }
    }
}

/* The time was read: from now on, calls whose requests were answered can time out again. */
void mcp_client_asked_tick(mcp_client *self)
{
    if (!self->has_answered) {
        return;
    }
    self->has_answered = false;
    if (self->has_answered_loosely) {
        self->has_answered_loosely = false;
        self->answered_ms = self->now_ms;
    }
    LIST_EACH(link, &self->open)
    {
        mcp_call *call = CONTAINER_OF(link, mcp_call, link);
        if (call->has_answered) {
            call->has_answered = false;
            call->answered_ms = self->now_ms;
        }
    }
}

/* The end of the call's idle time as far as open requests affect it; 0: they do not. */
uint64_t mcp_call_asked_deadline(const mcp_call *call)
{
    const mcp_client *self = call->client;
    uint64_t from = call->answered_ms > self->answered_ms ? call->answered_ms : self->answered_ms;
    if (call->asked > 0 || self->asked_count > 0) {
        from = self->now_ms;
    }
    return from + call->timeout_ms;
}
