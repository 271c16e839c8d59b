/* Ids, and what is recalled by them. */
#include "sessions/persister.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "rpc/message.h"

enum {
    NUMBER_BYTES = 8,
    PLAIN_BYTES = NUMBER_BYTES + 1, /* and the revision */
    BOUND_BYTES =
        PRINCIPAL_IDENTITY_BYTES + 4096, /* what an id is bound to: kind, endpoint, principal */
};

struct session_persister {
    char *endpoint;
    size_t endpoint_len;
    uint32_t worker;
    loop *loop;
    const seal_ring *ring;
    session_store *store;
    list session_lookups;
    map searched; /* session_lookups that search, by id */
    uint64_t searches;
};

typedef struct session_lookup {
    list_link link;               /* in persister->session_lookups */
    session_persister *persister; /* NULL: it is gone */
    list joined;                  /* others that wait for the same search */
    mcp_server *engine;
    uint64_t number;
    bool is_over; /* the session ended for good meanwhile */
    void (*done)(void *user, bay_err err);
    void *user;
    bay_str id; /* these two stand behind the struct */
    const auth_principal *principal;
} session_lookup;

bay_err session_persister_new(const session_persister_options *options, session_persister **out)
{
    session_persister *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->endpoint = mem_dup(options->endpoint.at, options->endpoint.len);
    if (self->endpoint == NULL) {
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    self->endpoint_len = options->endpoint.len;
    self->worker = options->worker;
    self->loop = options->loop;
    self->ring = options->ring;
    self->store = options->store;
    list_init(&self->session_lookups);
    map_init(&self->searched, SIZE_MAX / 2);
    *out = self;
    return BAY_OK;
}

void session_persister_free(session_persister *self)
{
    if (self == NULL) {
        return;
    }
    list_link *link;
    while ((link = list_pop(&self->session_lookups)) != NULL) {
        CONTAINER_OF(link, session_lookup, link)->persister = NULL;
    }
    map_fini(&self->searched);
    mem_free(self->endpoint);
    mem_free(self);
}

uint64_t session_persister_searches(const session_persister *self)
{
    return self->searches;
}

/* ---- ids */

/* The loop's number, too: it is legible, but one session has one id. */
static void write_bound(buf *out, const session_persister *self, uint32_t worker,
                        const auth_principal *principal)
{
    buf_lit(out, "session");
    buf_char(out, '\0');
    mcp_session_prefix(worker, out);
    buf_str(out, (bay_str){self->endpoint, self->endpoint_len});
    buf_char(out, '\0');
    buf_str(out, principal_binding(principal));
}

static bay_err persister_name(void *user, const mcp_revision *revision,
                              const auth_principal *principal, buf *out)
{
    const session_persister *self = user;
    char plain[PLAIN_BYTES];
    buf bound;
    size_t before = out->len;
    rand_bytes(plain, NUMBER_BYTES);
    plain[NUMBER_BYTES] = (char)revision->id;
    buf_init(&bound, BOUND_BYTES);
    write_bound(&bound, self, self->worker, principal);
    mcp_session_prefix(self->worker, out);
    bay_err err = bound.err != BAY_OK ? bound.err : out->err;
    if (err == BAY_OK) {
        err = seal_value(self->ring, (bay_str){plain, sizeof(plain)}, buf_view(&bound), 0, out);
    }
    if (err != BAY_OK) {
        out->len = before;
    }
    buf_fini(&bound);
    return err;
}

/* BAY_ERR_NOT_FOUND: not one of ours, for this endpoint and this principal. */
static bay_err open_id(const session_persister *self, bay_str id, const auth_principal *principal,
                       uint64_t *out_number)
{
    char plain[PLAIN_BYTES];
    buf opened = {.at = plain, .cap = sizeof(plain), .max = sizeof(plain)};
    uint32_t worker;
    if (!mcp_session_worker(id, &worker)) {
        return BAY_ERR_NOT_FOUND;
    }
    buf bound;
    buf_init(&bound, BOUND_BYTES);
    write_bound(&bound, self, worker, principal);
    bay_err err = bound.err;
    if (err == BAY_OK) {
        err = seal_open(self->ring, str_from(id, str_find(id, '-') + 1), buf_view(&bound), 0,
                        &opened);
        err = err == BAY_ERR_NOMEM || err == BAY_OK ? err : BAY_ERR_NOT_FOUND;
    } else if (err == BAY_ERR_LIMIT) {
        err = BAY_ERR_NOT_FOUND;
    }
    buf_fini(&bound);
    if (err != BAY_OK || opened.len != PLAIN_BYTES) {
        return err != BAY_OK ? err : BAY_ERR_NOT_FOUND;
    }
    *out_number = bytes_get_u64(plain);
    return BAY_OK;
}

static bool is_foreign(void *user, const mcp_session *session)
{
    uint64_t number;
    return open_id(user, mcp_session_id(session), mcp_session_principal(session), &number) ==
           BAY_ERR_NOT_FOUND;
}

void session_persister_set_ring(session_persister *self, const seal_ring *ring, mcp_server *engine)
{
    self->ring = ring;
    mcp_server_end_sessions_if(engine, is_foreign, self);
}

/* ---- what the engine says */

/* Without memory for it a session is simply not kept, until something of it changes again. */
static kept_session *kept_of(session_persister *self, mcp_session *session)
{
    kept_session *kept = mcp_session_kept_by(session);
    uint64_t number;
    if (kept != NULL || self->store == NULL ||
        open_id(self, mcp_session_id(session), mcp_session_principal(session), &number) != BAY_OK) {
        return kept;
    }
    kept = kept_session_new(self->store, number);
    mcp_session_set_kept_by(session, kept);
    return kept;
}

static bool persister_changed(void *user, mcp_session *session, mcp_keep how)
{
    kept_session *kept = kept_of(user, session);
    if (kept == NULL) {
        return false;
    }
    kept->session = session;
    return kept_session_changed(kept, how);
}

static void persister_logged(void *user, mcp_session *session, uint32_t stream, uint32_t seq,
                             bool is_last, bay_str text)
{
    kept_session *kept = mcp_session_kept_by(session);
    (void)user;
    if (kept != NULL) {
        kept_session_logged(kept, stream, seq, is_last, text);
    }
}

static void persister_ended(void *user, mcp_session *session, bool is_for_good)
{
    session_persister *self = user;
    kept_session *kept = mcp_session_kept_by(session);
    if (kept == NULL) {
        return;
    }
    LIST_EACH(link, &self->session_lookups)
    {
        session_lookup *one = CONTAINER_OF(link, session_lookup, link);
        one->is_over = one->is_over || (is_for_good && one->number == kept->number);
    }
    mcp_session_set_kept_by(session, NULL);
    kept_session_end(kept, is_for_good);
}

/* As the route says it of a server that died: a tool's failure is a result that the model can read,
 * any other an error. */
static void persister_lost(void *user, bay_str id, bay_str method, buf *out)
{
    static const bay_str text =
        STR_INIT("The gateway was restarted while this was under way: it is "
                 "not known what became of it. It may have been carried "
                 "out.");
    static const bay_str reason =
        STR_INIT("{\"patchbay/reason\":\"gateway_restarted\",\"patchbay/mayHaveRun\":true}");
    (void)user;
    if (!str_eq(method, STR("tools/call"))) {
        rpc_write_error(out, id, RPC_INTERNAL_ERROR, text, reason);
        return;
    }
    buf_lit(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_str(out, id);
    buf_lit(out, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(out, text);
    buf_lit(out, "}],\"isError\":true,\"_meta\":");
    buf_str(out, reason);
    buf_lit(out, "}}");
}

const mcp_persistence session_persister_ops = {.name = persister_name,
                                               .changed = persister_changed,
                                               .logged = persister_logged,
                                               .ended = persister_ended,
                                               .lost = persister_lost};

/* ---- finding one again */

static bay_err take_up(const session_lookup *self, const found_session *found)
{
    session_persister *persister = self->persister;
    if (self->is_over) {
        return BAY_ERR_NOT_FOUND;
    }
    if (mcp_server_holds(self->engine, self->id)) {
        return BAY_OK;
    }
    kept_session *kept = kept_session_new(persister->store, self->number);
    if (kept == NULL) {
        return BAY_ERR_NOMEM;
    }
    kept->has_events = found->count > 0;
    bay_err err =
        mcp_session_restore(self->engine, self->id, self->principal, found->written, found->events,
                            found->count, kept, loop_now_ms(persister->loop));
    if (err != BAY_OK) {
        kept->session = NULL;
        kept_session_end(kept, false);
    }
    if (err == BAY_ERR_SYNTAX) {
        LOG(LOG_ERROR, "sessions", "a session in the store cannot be read; it is left alone");
        err = BAY_ERR_NOT_FOUND;
    }
    return err;
}

static void session_lookup_end(session_lookup *self, bay_err err)
{
    self->done(self->user, err);
    principal_unref(self->principal);
    mem_free(self);
}

static void on_found(void *user, bay_err err, const found_session *found)
{
    session_lookup *self = user;
    list joined;
    list_link *link;
    list_init(&joined);
    list_remove(&self->link);
    if (self->persister == NULL) {
        err = BAY_ERR_CANCELLED;
    } else {
        if (map_get(&self->persister->searched, self->id) == self) {
            (void)map_remove(&self->persister->searched, self->id);
        }
        err = err == BAY_OK ? take_up(self, found) : err;
    }
    while ((link = list_pop(&self->joined)) != NULL) {
        list_push(&joined, link);
    }
    session_lookup_end(self, err);
    while ((link = list_pop(&joined)) != NULL) {
        session_lookup_end(CONTAINER_OF(link, session_lookup, link), err);
    }
}

static session_lookup *session_lookup_new(session_persister *self, bay_str id,
                                          const auth_principal *principal)
{
    session_lookup *one = mem_zalloc(sizeof(*one) + id.len);
    if (one == NULL) {
        return NULL;
    }
    char *texts = (char *)(one + 1);
    one->persister = self;
    one->id = (bay_str){texts, id.len};
    one->principal = principal_ref(principal);
    list_init(&one->joined);
    memcpy(texts, id.at, id.len);
    return one;
}

bay_err session_persister_find(session_persister *self, mcp_server *engine, bay_str id,
                               const auth_principal *principal,
                               void (*done)(void *user, bay_err err), void *user)
{
    uint64_t number = 0;
    bay_err err = self->store == NULL ? BAY_ERR_NOT_FOUND : open_id(self, id, principal, &number);
    if (err != BAY_OK) {
        return err;
    }
    session_lookup *one = session_lookup_new(self, id, principal);
    if (one == NULL) {
        return BAY_ERR_NOMEM;
    }
    one->engine = engine;
    one->number = number;
    one->done = done;
    one->user = user;
    /* a client that comes back does so with several requests at once: its events are read once */
    session_lookup *first = map_get(&self->searched, id);
    if (first != NULL) {
        list_push(&first->joined, &one->link);
        return BAY_OK;
    }
    err = session_store_find(self->store, number, on_found, one);
    if (err != BAY_OK) {
        principal_unref(one->principal);
        mem_free(one);
        return err;
    }
    list_push(&self->session_lookups, &one->link);
    /* without memory for it the next one searches, too */
    err_ignore(map_put(&self->searched, one->id, one, NULL));
    self->searches++;
    return BAY_OK;
}
