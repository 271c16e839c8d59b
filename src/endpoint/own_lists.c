#include "endpoint/own_lists.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"

/* A server with a session for this client. */
typedef struct own_source {
    list_link link; /* in own_lists.sources */
    struct own_lists *of;
    upstream *upstream;
    uint64_t number;
    listing_fetch fetches[LISTING_KINDS];
} own_source;

/* A client with such servers; in endpoint.own_lists by its session. */
typedef struct own_lists {
    endpoint *endpoint;
    mcp_session *session; /* the key */
    list sources;
    catalog_servers servers; /* the endpoint's, with this client's lists; of its views */
    catalog_view views[LISTING_KINDS];
    unsigned has_view; /* one bit a kind; else the client sees the endpoint's */
    unsigned changes_due;
    loop_task tell;
    size_t identity_len;
    char identity[];
} own_lists;

static own_lists *find(const endpoint *self, const mcp_session *session)
{
    return map_get(&self->own_lists, (bay_str){(const char *)&session, sizeof(session)});
}

static own_source *source_in(const own_lists *self, const upstream *from)
{
    LIST_EACH(link, &self->sources)
    {
        own_source *one = CONTAINER_OF(link, own_source, link);
        if (one->upstream == from) {
            return one;
        }
    }
    return NULL;
}

const catalog_view *own_lists_view(const endpoint *self, const mcp_session *session,
                                   listing_kind kind)
{
    const own_lists *own = self->own_lists.len > 0 && session != NULL ? find(self, session) : NULL;
    return own != NULL && (own->has_view & 1u << kind) != 0 ? &own->views[kind]
                                                            : &self->views[kind];
}

bool own_lists_has(const endpoint *self, const mcp_session *session, const upstream *from)
{
    const own_lists *own = session != NULL ? find(self, session) : NULL;
    return own != NULL && source_in(own, from) != NULL;
}

/* ---- telling the client ----------------------------------------------------------------------- */

static const struct {
    mcp_change change;
    mcp_method_id method;
} changes[] = {
    {MCP_CHANGE_TOOLS, MCP_N_TOOLS_CHANGED},
    {MCP_CHANGE_PROMPTS, MCP_N_PROMPTS_CHANGED},
    {MCP_CHANGE_RESOURCES, MCP_N_RESOURCES_CHANGED},
};

/* Telling may end the session. */
static void tell_now(void *argument)
{
    own_lists *self = argument;
    endpoint *of = self->endpoint;
    mcp_session *session = self->session;
    unsigned due = self->changes_due;
    self->changes_due = 0;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        bool is_same = changes[i].change == MCP_CHANGE_TOOLS && of->is_searched;
        if ((due & changes[i].change) != 0 && !is_same && find(of, session) != NULL) {
            mcp_session_notify(session, changes[i].method, (bay_str){NULL, 0});
        }
    }
}

/* Another reading under way belongs to the same announcement (resources and templates). */
static bool is_reading(const own_lists *self, mcp_change change)
{
    LIST_EACH(link, &self->sources)
    {
        const own_source *one = CONTAINER_OF(link, own_source, link);
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            if (listing_change(kind) == change && one->fetches[kind].is_under_way) {
                return true;
            }
        }
    }
    return false;
}

static void tell_when_read(own_lists *self)
{
    bool is_due = false;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        is_due = is_due || ((self->changes_due & changes[i].change) != 0 &&
                            !is_reading(self, changes[i].change));
    }
    if (is_due && self->endpoint->loop != NULL) {
        loop_defer(self->endpoint->loop, &self->tell);
    } else if (is_due) {
        tell_now(self);
    }
}

/* ---- views ------------------------------------------------------------------------------------ */

static bool differs(const own_source *own, const catalog_source *shared, listing_kind kind)
{
    const listing *mine = own->fetches[kind].current;
    const listing *all = shared->listings[kind];
    return mine != NULL && (all != NULL ? !listing_equal(mine, all) : mine->count > 0);
}

/* The endpoint's servers with this client's lists; `out_kinds`: those that differ, a bit each. */
static bay_err own_servers(const own_lists *self, catalog_servers *out, unsigned *out_kinds)
{
    const catalog_servers *all = &self->endpoint->servers;
    catalog_source *sources = mem_array(all->count + 1, sizeof(*sources));
    *out_kinds = 0;
    if (sources == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < all->count; i++) {
        sources[i] = all->sources[i];
        const own_source *own = source_in(self, sources[i].upstream);
        for (listing_kind kind = 0; own != NULL && kind < LISTING_KINDS; kind++) {
            if (differs(own, &all->sources[i], kind)) {
                sources[i].listings[kind] = own->fetches[kind].current;
                *out_kinds |= 1u << kind;
            }
        }
    }
    bay_err err = catalog_servers_init(out, sources, all->count);
    mem_free(sources);
    return err;
}

static void drop_view(own_lists *self, listing_kind kind)
{
    if ((self->has_view & 1u << kind) != 0) {
        catalog_view_fini(&self->views[kind]);
        self->has_view &= ~(1u << kind);
    }
}

/* There may be as many, and as much, as that. */
static bool is_beyond(const endpoint *self)
{
    size_t clients = 0;
    size_t bytes = 0;
    size_t cursor = 0;
    bay_str key;
    void *at;
    while (map_next(&self->own_lists, &cursor, &key, &at)) {
        const own_lists *own = at;
        clients += own->has_view != 0;
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            bytes += (own->has_view & 1u << kind) != 0 ? own->views[kind].bytes : 0;
        }
    }
    return clients > OWN_LISTS_CLIENTS || bytes > OWN_LISTS_BYTES;
}

static void build_view(own_lists *self, listing_kind kind)
{
    endpoint *of = self->endpoint;
    catalog_options options = endpoint_catalog_options(of);
    options.is_quiet = true;
    if ((self->has_view & 1u << kind) == 0) {
        catalog_view_init(&self->views[kind], kind);
        self->has_view |= 1u << kind;
    }
    bay_err err =
        catalog_view_reset(&self->views[kind], &self->servers, &options, endpoint_now_ms(of));
    if (err == BAY_OK && !is_beyond(of)) {
        return;
    }
    drop_view(self, kind);
    LOG(of->has_refused_own_lists ? LOG_DEBUG : LOG_WARN, "catalog",
        "a client's own list of %.*s could not be kept: %s; it sees the one that all see",
        BAY_STR(listing_result_key(kind)),
        err != BAY_OK ? bay_err_text(err) : "too many clients have lists of their own");
    of->has_refused_own_lists = true;
}

/* `is_anew`: also where the lists are those that they were. What it changes is due to be told. */
static void build_views(own_lists *self, bool is_anew)
{
    catalog_servers next;
    unsigned kinds;
    uint64_t before[LISTING_KINDS];
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        before[kind] = catalog_view_id(own_lists_view(self->endpoint, self->session, kind));
    }
    bay_err err = own_servers(self, &next, &kinds);
    kinds = err == BAY_OK ? kinds : 0;
    catalog_servers old = self->servers;
    self->servers = err == BAY_OK ? next : (catalog_servers){0};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        if (is_anew || (kinds & 1u << kind) == 0) {
            drop_view(self, kind);
        }
        if ((kinds & 1u << kind) != 0) {
            build_view(self, kind);
        }
        if (catalog_view_id(own_lists_view(self->endpoint, self->session, kind)) != before[kind]) {
            self->changes_due |= listing_change(kind);
        }
    }
    catalog_servers_fini(&old);
}

/* ---- sources ---------------------------------------------------------------------------------- */

static uint64_t source_now(void *user)
{
    return endpoint_now_ms(((const own_source *)user)->of->endpoint);
}

static void source_fetched(void *user, listing_fetch *fetch, bool is_changed)
{
    own_lists *self = ((own_source *)user)->of;
    if (is_changed) {
        build_views(self, false);
    }
    if (fetch->answers) {
        self->changes_due |= listing_change(fetch->kind);
    }
    tell_when_read(self);
}

static void source_free(own_source *self)
{
    list_remove(&self->link);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_fini(&self->fetches[kind]);
    }
    mem_free(self);
}

static void source_open(own_lists *self, upstream *from, uint64_t number)
{
    own_source *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return; /* it goes on seeing what all see */
    }
    const catalog_source *shared =
        catalog_servers_find(&self->endpoint->servers, upstream_name(from));
    made->of = self;
    made->upstream = from;
    made->number = number;
    list_push(&self->sources, &made->link);
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch *fetch = &made->fetches[kind];
        listing_fetch_init(fetch, from, kind, source_fetched, made);
        fetch->pins = shared != NULL ? shared->pins : NULL;
        fetch->now_ms = source_now;
        fetch->call.affinity =
            (upstream_affinity){.inputs = mcp_session_inputs(self->session),
                                .principal = mcp_session_principal(self->session),
                                .identity = {self->identity, self->identity_len},
                                .has_session = true};
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_fetch_start(&made->fetches[kind], self->endpoint->config->timeouts.list_ms);
    }
}

static void own_lists_free(own_lists *self)
{
    endpoint *of = self->endpoint;
    list_link *link;
    (void)map_remove(&of->own_lists,
                     (bay_str){(const char *)&self->session, sizeof(self->session)});
    if (of->loop != NULL) {
        loop_undefer(of->loop, &self->tell);
    }
    while ((link = list_first(&self->sources)) != NULL) {
        source_free(CONTAINER_OF(link, own_source, link));
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        drop_view(self, kind);
    }
    catalog_servers_fini(&self->servers);
    mem_free(self);
}

static own_lists *own_lists_new(endpoint *of, mcp_session *session, bay_str identity)
{
    own_lists *self = mem_zalloc(sizeof(*self) + identity.len);
    if (self == NULL) {
        return NULL;
    }
    self->endpoint = of;
    self->session = session;
    self->tell = (loop_task){.function = tell_now, .argument = self};
    self->identity_len = identity.len;
    memcpy(self->identity, identity.at, identity.len);
    list_init(&self->sources);
    bay_str key = {(const char *)&self->session, sizeof(self->session)};
    if (map_put(&of->own_lists, key, self, NULL) != BAY_OK) {
        mem_free(self);
        return NULL;
    }
    return self;
}

static void own_session_over(own_lists *self, const upstream *from, uint64_t number)
{
    own_source *one = source_in(self, from);
    if (one == NULL || one->number != number) {
        return; /* of an earlier one */
    }
    source_free(one);
    build_views(self, false);
    tell_when_read(self);
}

void endpoint_own_session(endpoint *self, upstream *from, bay_str identity, uint64_t number,
                          bool is_open)
{
    mcp_session *session = endpoint_session_find(self, identity);
    if (session == NULL || self->has_one_client || !endpoint_has_server(self, from)) {
        return;
    }
    own_lists *own = find(self, session);
    if (!is_open) {
        if (own != NULL) {
            own_session_over(own, from, number);
        }
        return;
    }
    own = own != NULL ? own : own_lists_new(self, session, identity);
    if (own != NULL) {
        own_source *before = source_in(own, from);
        if (before != NULL) {
            source_free(before);
        }
        source_open(own, from, number);
    }
}

bool own_lists_announced(endpoint *self, const mcp_session *session, const upstream *from,
                         mcp_change change)
{
    own_lists *own = find(self, session);
    own_source *one = own != NULL ? source_in(own, from) : NULL;
    for (listing_kind kind = 0; one != NULL && kind < LISTING_KINDS; kind++) {
        if ((change & listing_change(kind)) != 0) {
            listing_fetch_announced(&one->fetches[kind]);
            listing_fetch_start(&one->fetches[kind], self->config->timeouts.list_ms);
        }
    }
    return one != NULL;
}

/* ---- all clients ------------------------------------------------------------------------------ */

static void follow(own_lists *self)
{
    LIST_EACH(link, &self->sources)
    {
        own_source *one = CONTAINER_OF(link, own_source, link);
        const catalog_source *shared =
            catalog_servers_find(&self->endpoint->servers, upstream_name(one->upstream));
        if (shared == NULL || shared->upstream != one->upstream) {
            source_free(one);
            continue;
        }
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            one->fetches[kind].pins = shared->pins;
            listing_check(one->fetches[kind].current, kind, shared->pins,
                          upstream_name(one->upstream), endpoint_now_ms(self->endpoint));
        }
    }
    build_views(self, true);
    tell_when_read(self);
}

void own_lists_follow(endpoint *self)
{
    size_t cursor = 0;
    bay_str key;
    void *own;
    while (map_next(&self->own_lists, &cursor, &key, &own)) {
        follow(own);
    }
}

void own_lists_forget(endpoint *self, const mcp_session *session)
{
    own_lists *own = find(self, session);
    if (own != NULL) {
        own_lists_free(own);
    }
}

void own_lists_init(endpoint *self)
{
    map_init(&self->own_lists, SIZE_MAX / 2);
}

void own_lists_fini(endpoint *self)
{
    size_t cursor = 0;
    bay_str key;
    void *own;
    while (map_next(&self->own_lists, &cursor, &key, &own)) {
        own_lists_free(own);
        cursor = 0;
    }
    map_fini(&self->own_lists);
}
