/* The engine as a whole: creation, what its service declares, messages to all clients, and its end.
 */
#include "base/check.h"
#include "base/mem.h"
#include "mcp/server_internal.h"
#include "mcp/session.h"
#include "mcp/stream.h"
#include "mcp/subscription.h"
#include "json/build.h"

enum {
    WARM_ARENAS = 64,
    SPARE_OUT_BYTES = 2048,       /* an error always fits, also without memory */
    LARGE_OUT_BYTES = 256 * 1024, /* a larger buffer is freed after use */
    MAX_TOPICS = 1 << 20,
    DECLARED_MAX_BYTES = 4 * 1024 * 1024, /* what the server declares */
};

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static void set_defaults(mcp_server_options *options)
{
    options->max_sessions = or_default(options->max_sessions, 10000);
    options->session_idle_ms = or_default(options->session_idle_ms, 30 * 60 * 1000);
    options->max_requests = or_default(options->max_requests, 1024);
    options->max_subscriptions = or_default(options->max_subscriptions, 1024);
    options->log_bytes = options->log_bytes != 0 ? options->log_bytes : 256 * 1024;
    options->log_events = or_default(options->log_events, 256);
    options->ask_timeout_ms = or_default(options->ask_timeout_ms, 10 * 60 * 1000);
    json_limits *json = &options->json;
    if (json->max_bytes == 0 && json->max_depth == 0 && json->max_values == 0) {
        *json = (json_limits){64 * 1024 * 1024, 64, 1024 * 1024};
    }
}

static bay_str server_keep(char **at, bay_str text)
{
    bay_str kept = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.at, text.len);
    }
    *at += text.len;
    return kept;
}

/* Title exists since 2025-06-18, website and icons since 2025-11-25. */
enum { INFO_FIRST, INFO_TITLED, INFO_WHOLE };

static void write_info(buf *out, const mcp_server_options *options, int form)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "name");
    json_put_str(&writer, options->name);
    if (form >= INFO_TITLED && options->title.len > 0) {
        json_key_lit(&writer, "title");
        json_put_str(&writer, options->title);
    }
    json_key_lit(&writer, "version");
    json_put_str(&writer, options->version);
    if (form >= INFO_WHOLE && options->website.len > 0) {
        json_key_lit(&writer, "websiteUrl");
        json_put_str(&writer, options->website);
    }
    if (form >= INFO_WHOLE && options->icons.len > 0) {
        json_key_lit(&writer, "icons");
        json_put_raw(&writer, options->icons);
    }
    json_close_object(&writer);
}

bay_str server_info(const mcp_server *self, const mcp_revision *revision)
{
    return self->infos[revision->id >= MCP_REV_2025_11_25   ? INFO_WHOLE
                       : revision->id >= MCP_REV_2025_06_18 ? INFO_TITLED
                                                            : INFO_FIRST];
}

static void write_versions(buf *out, const mcp_server_options *options)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_array(&writer);
    for (size_t i = MCP_REVISION_COUNT; i-- > 0;) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)i);
        if (revision->era == MCP_MODERN && i >= options->oldest && i <= options->newest) {
            json_put_str(&writer, revision->text);
        }
    }
    json_close_array(&writer);
}

static bay_err keep_texts(mcp_server *self, const mcp_server_options *options)
{
    buf texts;
    size_t ends[INFO_WHOLE + 1];
    buf_init(&texts, DECLARED_MAX_BYTES);
    for (int form = INFO_FIRST; form <= INFO_WHOLE; form++) {
        write_info(&texts, options, form);
        ends[form] = texts.len;
    }
    write_versions(&texts, options);
    bay_err err = texts.err;
    if (err == BAY_OK) {
        self->texts = mem_alloc(texts.len + options->instructions.len + 1);
        err = self->texts != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        char *at = self->texts;
        size_t begin = 0;
        for (int form = INFO_FIRST; form <= INFO_WHOLE; form++) {
            self->infos[form] = server_keep(&at, (bay_str){texts.at + begin, ends[form] - begin});
            begin = ends[form];
        }
        self->modern_list = server_keep(&at, (bay_str){texts.at + begin, texts.len - begin});
        self->options.instructions = server_keep(&at, options->instructions);
        self->options.name = self->options.title = self->options.version = STR("");
        self->options.website = self->options.icons = STR("");
    }
    buf_fini(&texts);
    return err;
}

bay_err mcp_server_new(const mcp_server_options *options, const mcp_service *service, void *user,
                       mcp_server **out)
{
    if (options->newest >= MCP_REVISION_COUNT || options->oldest > options->newest) {
        return BAY_ERR_INVALID;
    }
    mcp_server *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->options = *options;
    set_defaults(&self->options);
    self->service = service;
    self->user = user;
    list_init(&self->arenas);
    list_init(&self->requests);
    list_init(&self->connections);
    list_init(&self->listens);
    list_init(&self->asks);
    list_init(&self->idle);
    map_init(&self->sessions, self->options.max_sessions);
    map_init(&self->topics, MAX_TOPICS);
    size_t bytes = self->options.json.max_bytes;
    buf_init(&self->out, bytes < SIZE_MAX / 4 ? bytes * 2 + 1024 * 1024 : SIZE_MAX / 2);
    bay_err err = keep_texts(self, options);
    if (err == BAY_OK && !buf_reserve(&self->out, SPARE_OUT_BYTES)) {
        err = BAY_ERR_NOMEM;
    }
    if (err != BAY_OK) {
        mcp_server_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void server_advance(mcp_server *self, uint64_t now_ms)
{
    self->now_ms = now_ms > self->now_ms ? now_ms : self->now_ms;
}

bool server_offers(const mcp_server *self, mcp_revision_id revision)
{
    return revision >= self->options.oldest && revision <= self->options.newest;
}

bool server_has_modern(const mcp_server *self)
{
    return mcp_revision_of(self->options.newest)->era == MCP_MODERN;
}

bool server_has_legacy(const mcp_server *self)
{
    return mcp_revision_of(self->options.oldest)->era == MCP_LEGACY;
}

/* ---- memory */

buf *server_out(mcp_server *self)
{
    server_out_sent(self);
    buf_clear(&self->out);
    return &self->out;
}

void server_out_sent(mcp_server *self)
{
    if (self->out.cap > LARGE_OUT_BYTES) {
        size_t max = self->out.max;
        buf_fini(&self->out);
        buf_init(&self->out, max);
        (void)buf_reserve(&self->out, SPARE_OUT_BYTES);
    }
}

arena_pool_entry *request_arena_take(mcp_server *self)
{
    list_link *link = list_pop(&self->arenas);
    if (link != NULL) {
        self->request_arena_count--;
        return CONTAINER_OF(link, arena_pool_entry, link);
    }
    arena_pool_entry *fresh = mem_zalloc(sizeof(*fresh));
    if (fresh != NULL) {
        const json_limits *json = &self->options.json;
        size_t max = json->max_bytes < SIZE_MAX / 8 ? json->max_bytes * 4 : SIZE_MAX / 2;
        arena_init(&fresh->memory, max + (size_t)json->max_values * 32 + 1024 * 1024);
    }
    return fresh;
}

void request_arena_release(mcp_server *self, arena_pool_entry *one)
{
    if (self == NULL || self->request_arena_count >= WARM_ARENAS) {
        arena_fini(&one->memory);
        mem_free(one);
        return;
    }
    arena_reset(&one->memory);
    list_push(&self->arenas, &one->link);
    self->request_arena_count++;
}

/* ---- what the service declares */

void server_write_capabilities(mcp_server *self, const mcp_revision *revision, json_writer *out)
{
    json_open_object(out);
    self->service->capabilities(self->user, revision, out);
    json_close_object(out);
}

void server_write_instructions(mcp_server *self, const mcp_request *from, buf *out)
{
    buf text;
    buf_init(&text, self->out.max);
    if (self->service->instructions != NULL) {
        self->service->instructions(self->user, from, &text);
    }
    bay_str told =
        text.err == BAY_OK && text.len > 0 ? buf_view(&text) : self->options.instructions;
    if (told.len > 0) {
        buf_lit(out, ",\"instructions\":");
        json_quote(out, told);
    }
    buf_fini(&text);
}

static bool has_capability(json_val declared_ones, bay_str path, mcp_revision_id revision)
{
    if (path.len == 0) {
        return true;
    }
    if (str_eq(path, STR("completions")) && revision < MCP_REV_2025_03_26) {
        return true; /* the capability is newer than the method */
    }
    json_val found = mcp_capability(declared_ones, path);
    return json_is(found, JSON_OBJECT) || json_true(found);
}

static void read_declared(declared *out, json_val ones, mcp_revision_id revision)
{
    *out = (declared){.is_known = true};
    for (size_t i = 0; i < MCP_METHOD_COUNT; i++) {
        const mcp_method *method = mcp_method_of((mcp_method_id)i);
        if (has_capability(ones, method->capability, revision)) {
            out->methods |= UINT64_C(1) << i;
        }
    }
    out->has_subscribe = has_capability(ones, STR("resources.subscribe"), revision);
    out->changes =
        (has_capability(ones, STR("tools.listChanged"), revision) ? MCP_CHANGE_TOOLS : 0u) |
        (has_capability(ones, STR("prompts.listChanged"), revision) ? MCP_CHANGE_PROMPTS : 0u) |
        (has_capability(ones, STR("resources.listChanged"), revision) ? MCP_CHANGE_RESOURCES : 0u);
}

const declared *server_declared(mcp_server *self, const mcp_revision *revision)
{
    declared *known = &self->declared[revision->id];
    if (known->is_known) {
        return known;
    }
    json_builder made;
    json_val written;
    server_write_capabilities(self, revision, json_builder_init(&made, NULL, DECLARED_MAX_BYTES));
    bool is_known = json_builder_view(&made, &written) == BAY_OK;
    if (is_known) {
        read_declared(known, written, revision->id);
    }
    json_builder_drop(&made);
    return is_known ? known : NULL;
}

/* ---- to everybody */

typedef void (*session_writer)(buf *out, const void *what);

/* Sending may end sessions, this one and others: each round starts again with those not yet served;
 * the order of the list is preserved. */
static void each_session(mcp_server *self, bool (*wants)(mcp_session *session, const void *what),
                         session_writer write, const void *what)
{
    list done;
    list_init(&done);
    list_link *link;
    self->walking++;
    while ((link = list_pop(&self->idle)) != NULL) {
        list_push(&done, link);
        mcp_session *session = CONTAINER_OF(link, mcp_session, idle_link);
        if (wants(session, what)) {
            buf *out = server_out(self);
            write(out, what);
            session_notify(session, out);
        }
    }
    while ((link = list_pop(&done)) != NULL) {
        list_push(&self->idle, link);
    }
    self->walking--;
}

typedef struct change_row {
    mcp_change change;
    mcp_method_id method;
} change_row;

static const change_row change_rows[] = {
    {MCP_CHANGE_TOOLS, MCP_N_TOOLS_CHANGED},
    {MCP_CHANGE_PROMPTS, MCP_N_PROMPTS_CHANGED},
    {MCP_CHANGE_RESOURCES, MCP_N_RESOURCES_CHANGED},
};

static bool wants_change(mcp_session *session, const void *what)
{
    const declared *has = server_declared(session->server, session->revision);
    return has != NULL && (has->changes & ((const change_row *)what)->change) != 0;
}

static void write_change(buf *out, const void *what)
{
    rpc_write_notification(out, mcp_method_of(((const change_row *)what)->method)->text, STR(""));
}

void mcp_server_changed(mcp_server *self, mcp_change change)
{
    memset(self->declared, 0, sizeof(self->declared)); /* the service may declare more now */
    for (size_t i = 0; i < ARRAY_LEN(change_rows); i++) {
        if ((change_rows[i].change & change) != 0) {
            each_session(self, wants_change, write_change, &change_rows[i]);
        }
    }
    listens_changed(self, change);
}

void session_note_scopes(mcp_session *self, const auth_principal *who)
{
    const call_door *door = self->server->options.door;
    const auth_principal *before = self->seen != NULL ? self->seen : self->principal;
    if (door == NULL || door->policy.rules == NULL ||
        str_eq(principal_scopes(before), principal_scopes(who))) {
        return;
    }
    before = self->seen;
    self->seen = principal_ref(who);
    principal_unref(before);
    for (size_t i = 0; i < ARRAY_LEN(change_rows); i++) {
        if (wants_change(self, &change_rows[i])) {
            mcp_session_notify(self, change_rows[i].method, STR(""));
        }
    }
}

typedef struct log_line {
    mcp_log_level level;
    bay_str params;
} log_line;

static bool wants_line(mcp_session *session, const void *what)
{
    return ((const log_line *)what)->level >= session->level;
}

static void write_line(buf *out, const void *what)
{
    rpc_write_notification(out, mcp_method_of(MCP_N_MESSAGE)->text,
                           ((const log_line *)what)->params);
}

void mcp_server_log(mcp_server *self, mcp_log_level level, bay_str params)
{
    log_line line = {level, params};
    each_session(self, wants_line, write_line, &line);
}

/* ---- streams whose caller's credentials run out ---------------------------------------------- */

static void end_get_stream(mcp_session *session)
{
    stream *standing = session->get;
    if (standing == NULL) {
        return;
    }
    if (session->server->options.persistence == NULL) {
        stream_free(standing);
    } else {
        if (standing->is_held) {
            stream_show(standing);
        }
        (void)stream_release(standing);
    }
}

uint64_t stream_expiry(mcp_server *server, const auth_principal *principal)
{
    uint64_t at = principal_expires_at(principal);
    if (at == 0) {
        return 0;
    }
    at += STREAM_EXPIRY_GRACE_MS;
    if (server->expiry_ms == 0 || at < server->expiry_ms) {
        server->expiry_ms = at;
    }
    return at;
}

static void expire_get_streams(mcp_server *self, uint64_t wall_ms)
{
    list done;
    list_link *link;
    list_init(&done);
    self->walking++;
    while ((link = list_pop(&self->idle)) != NULL) {
        mcp_session *session = CONTAINER_OF(link, mcp_session, idle_link);
        list_push(&done, link);
        if (session->get != NULL && session->get->expires_ms != 0 &&
            session->get->expires_ms <= wall_ms) {
            end_get_stream(session);
        }
    }
    while ((link = list_pop(&done)) != NULL) {
        list_push(&self->idle, link);
    }
    self->walking--;
}

/* Calls under way continue. */
static void expire_streams(mcp_server *self)
{
    const call_door *door = self->options.door;
    if (self->expiry_ms == 0 || door == NULL || door->wall_ms == NULL) {
        return;
    }
    uint64_t wall_ms = door->wall_ms();
    if (wall_ms < self->expiry_ms) {
        return;
    }
    while (listen_expire(self, wall_ms)) {
    }
    expire_get_streams(self, wall_ms);
    self->expiry_ms =
        wall_ms + STREAM_EXPIRY_LOOK_MS; /* others may follow; an earlier one sets the time */
}

uint64_t mcp_server_tick(mcp_server *self, uint64_t now_ms)
{
    server_advance(self, now_ms);
    expire_streams(self);
    uint64_t next_ask = asks_tick(self);
    uint64_t next_session = sessions_tick(self);
    return next_ask < next_session ? next_ask : next_session;
}

/* ---- the end */

void mcp_server_close_streams(mcp_server *self)
{
    list_link *link;
    bool was_closing = self->is_closing;
    self->is_closing = true;
    while ((link = list_first(&self->listens)) != NULL) {
        listen_complete(CONTAINER_OF(link, listen_stream, server_link));
    }
    self->is_closing = was_closing;
    list done;
    list_init(&done);
    self->walking++;
    while ((link = list_pop(&self->idle)) != NULL) {
        list_push(&done, link);
        end_get_stream(CONTAINER_OF(link, mcp_session, idle_link));
    }
    while ((link = list_pop(&done)) != NULL) {
        list_push(&self->idle, link);
    }
    self->walking--;
}

void mcp_server_end_http_sessions(mcp_server *self)
{
    bool has_more = true;
    while (has_more) { /* from the start each time: an end may end others */
        has_more = false;
        LIST_EACH(link, &self->idle)
        {
            mcp_session *session = CONTAINER_OF(link, mcp_session, idle_link);
            if (session->connection == NULL) {
                session_end(session);
                has_more = true;
                break;
            }
        }
    }
}

void mcp_server_end_sessions_if(mcp_server *self,
                                bool (*is_over)(void *user, const mcp_session *session), void *user)
{
    list done;
    list_link *link;
    list_init(&done);
    self->walking++;
    while ((link = list_pop(&self->idle)) != NULL) {
        mcp_session *session = CONTAINER_OF(link, mcp_session, idle_link);
        list_push(&done, link);
        if (session->connection == NULL && is_over(user, session)) {
            session_end(session);
        }
    }
    while ((link = list_pop(&done)) != NULL) {
        list_push(&self->idle, link);
    }
    self->walking--;
}

void mcp_server_free(mcp_server *self)
{
    if (self == NULL) {
        return;
    }
    self->is_closing = true;
    list_link *link;
    while ((link = list_first(&self->connections)) != NULL) {
        mcp_connection *one = CONTAINER_OF(link, mcp_connection, server_link);
        mcp_carrier *carrier = one->carrier;
        mcp_connection_close(one);
        if (carrier->ops->end != NULL) {
            carrier->ops->end(carrier);
        }
    }
    while ((link = list_first(&self->listens)) != NULL) {
        listen_free(CONTAINER_OF(link, listen_stream, server_link));
    }
    while ((link = list_first(&self->idle)) != NULL) {
        session_end(CONTAINER_OF(link, mcp_session, idle_link));
    }
    requests_detach(self);
    while ((link = list_pop(&self->arenas)) != NULL) {
        arena_pool_entry *one = CONTAINER_OF(link, arena_pool_entry, link);
        arena_fini(&one->memory);
        mem_free(one);
    }
    map_fini(&self->sessions);
    map_fini(&self->topics);
    buf_fini(&self->out);
    mem_free(self->texts);
    mem_free(self);
}
