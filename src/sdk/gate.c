/* A guard on the loop of a server. */
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/guard_parts.h"

enum { BASES = 4, BASE_BYTES = 1024 };

struct sdk_gate {
    bay_guard *guard;
    const sdk_host *host;
    oauth_guard_link *link;
    oauth_gate gate;
    const bay_str *agent; /* the path of an agent; NULL: an MCP server */
    size_t base_count;    /* 0: not known yet */
    bay_str bases[BASES];
    char base_text[BASE_BYTES];
};

/* ---- addresses ------------------------------------------------------------------------------- */

static void add_base(sdk_gate *self, buf *text, const char *name)
{
    size_t start = text->len;
    if (name == NULL) {
        buf_str(text, host_base(self->host));
    } else {
        buf_printf(text, "%s://%s:%u", self->host->tls != NULL ? "https" : "http", name,
                   host_port(self->host));
    }
    bay_str base = str_from(buf_view(text), start);
    bool is_known = text->err != BAY_OK;
    for (size_t i = 0; i < self->base_count; i++) {
        is_known = is_known || str_eq(self->bases[i], base);
    }
    if (!is_known) {
        self->bases[self->base_count++] = base;
    }
}

/* The port is known once it is listened on. */
static void find_bases(sdk_gate *self)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    buf text = {.at = self->base_text, .cap = BASE_BYTES, .max = BASE_BYTES};
    if (self->guard->url.len > 0) {
        self->bases[self->base_count++] = self->guard->url;
        return;
    }
    add_base(self, &text, NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        add_base(self, &text, names[i]);
    }
}

static size_t order_bases(sdk_gate *self, bay_str host, bay_str out[BASES])
{
    if (self->base_count == 0) {
        find_bases(self);
    }
    for (size_t i = 0; i < self->base_count; i++) {
        out[i] = self->bases[i];
    }
    oauth_bases_order(out, self->base_count, host);
    return self->base_count;
}

/* "/mcp" is one; what HTTP+SSE uses names none, and "/" is the server itself. An agent is one, but for
 * gRPC, whose paths name none. */
static bay_str endpoint_of(const sdk_gate *self, bay_str path)
{
    if (self->agent != NULL) {
        return str_starts(path, *self->agent) ? *self->agent : STR("");
    }
    return str_eq(path, STR("/mcp")) ? path : STR("");
}

/* ---- requests -------------------------------------------------------------------------------- */

front_verdict sdk_gate_identify(sdk_gate *self, const front_request *request,
                                const auth_principal **out_principal, front_refusal *out)
{
    bay_str bases[BASES];
    oauth_place place = {.bases = bases,
                         .base_count = order_bases(self, request->from.host, bases),
                         .endpoint = endpoint_of(self, request->path),
                         .is_part = true,
                         .address = request->from.address};
    return oauth_gate_identify(&self->gate, self->link, request, &place, out_principal, out);
}

void sdk_gate_challenge(sdk_gate *self, http_exchange *exchange, bay_str scopes,
                        front_challenge *out)
{
    bay_str bases[BASES];
    (void)order_bases(self, http_exchange_field(exchange, STR("Host")), bases);
    oauth_gate_needs(self->guard->made, bases[0], endpoint_of(self, http_exchange_path(exchange)),
                     scopes, http_exchange_arena(exchange), out);
}

bool sdk_gate_serve_metadata(sdk_gate *self, const front_request *request)
{
    bay_str bases[BASES];
    (void)order_bases(self, request->from.host, bases);
    bay_str rest = oauth_metadata_endpoint(bases[0], request->path);
    bool is_sse =
        self->agent == NULL && (str_eq(rest, STR("/sse")) || str_eq(rest, STR("/mcp/sse")));
    bay_str where = endpoint_of(self, rest);
    return (rest.len == 0 || is_sse || str_eq(rest, where)) &&
           oauth_metadata_serve(self->guard->made, request->exchange, bases[0], where, STR(""));
}

/* ---- API keys -------------------------------------------------------------------------------- */

static void find_key(void *user, bay_str id, oauth_key_done done, void *argument)
{
    const bay_guard *guard = user;
    for (size_t i = 0; i < guard->key_count; i++) {
        if (str_eq(guard->keys[i].id, id)) {
            done(argument, BAY_OK, &guard->keys[i].row);
            return;
        }
    }
    done(argument, BAY_ERR_NOT_FOUND, NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

bay_err sdk_gate_open(bay_guard *guard, const sdk_host *host, loop *on, const bay_str *agent,
                      sdk_gate **out, bay_diag *diag)
{
    sdk_gate *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->guard = sdk_guard_ref(guard);
    self->host = host;
    self->agent = agent;
    oauth_gate_init(&self->gate);
    bay_err err = oauth_guard_link_new(on, guard->made, find_key, guard, &self->link, diag);
    if (err != BAY_OK) {
        sdk_gate_close(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void sdk_gate_close(sdk_gate *self)
{
    if (self == NULL) {
        return;
    }
    oauth_gate_fini(&self->gate);
    oauth_guard_link_free(self->link);
    bay_guard_free(self->guard);
    mem_free(self);
}
