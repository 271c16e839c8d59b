/* What a server of the session revisions says to the one client that a session serves, outside of
 * any call: questions, log messages, changed lists, updated resources; and that there is such a
 * session. The client is on the loop of the proxy that its calls come by, or on the owner's own. */
#include "base/log.h"
#include "base/str.h"
#include "upstream/local.h"

void upstream_session_tell(upstream_session *self, const upstream_client_message *what)
{
    upstream_client_message message = *what;
    message.identity = upstream_session_identity(self);
    upstream_tell_client(&self->owner->base, self->home, &message);
}

/* What comes faster is noise, and must not fill the client's stream. */
static bool is_flood(upstream_session *self)
{
    uint64_t now = loop_now_ms(self->owner->base.loop);
    if (now - self->logs_ms >= 1000) {
        self->logs_ms = now;
        self->logs = 0;
    }
    return self->logs++ >= UPSTREAM_CLIENT_LOGS;
}

void upstream_session_logged(upstream_session *self, json_val params)
{
    bay_str text = json_raw(params);
    if (!upstream_session_is_own(self)) {
        /* tied to no call, so to no client: telling all would tell one of another's work */
        LOG(LOG_DEBUG, "upstream", "%s: log message: %.*s", self->owner->base.name,
            (int)(text.len < 600 ? text.len : 600), text.at);
    } else if (!is_flood(self)) {
        upstream_session_tell(
            self, &(upstream_client_message){.method = MCP_N_MESSAGE, .params = params});
    }
}

bool upstream_session_ask(upstream_session *self, uint64_t number, const rpc_message *request)
{
    return upstream_ask_client(&self->owner->base, self->home, upstream_session_identity(self),
                               number, request);
}

void upstream_session_take_back(upstream_session *self, uint64_t number)
{
    upstream_take_back_from_client(&self->owner->base, self->home, number);
}

/* The main link is the only client's from the start: what it lists is what is listed. */
void upstream_session_introduce(upstream_session *self)
{
    local *owner = self->owner;
    if (self->number == 0 && self->has_session && upstream_session_is_own(self)) {
        self->number = ++owner->last_client_session;
        upstream_own_session(&owner->base, self->home, upstream_session_identity(self),
                             self->number, true);
    }
}

void upstream_session_take_leave(upstream_session *self)
{
    if (self->number != 0) {
        upstream_own_session(&self->owner->base, self->home, upstream_session_identity(self),
                             self->number, false);
        self->number = 0;
    }
}
