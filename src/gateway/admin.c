/* The listener of the admin API, who may use it, and which route a request takes. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/admin_internal.h"
#include "net/peer_process.h"
#include "wire/header.h"
#include "json/json.h"

const admin_route admin_routes[] = {
#define ADMIN_ROUTE(method, path, roles, handler)                                                  \
    {STR_INIT(method), STR_INIT(path), roles, handler, false},
#define ADMIN_ROUTE_JSON(method, path, roles, handler)                                             \
    {STR_INIT(method), STR_INIT(path), roles, handler, true},
#include "gateway/admin_routes.def"
};

const size_t admin_route_count = ARRAY_LEN(admin_routes);

/* ---- answers --------------------------------------------------------------------------------- */

void admin_answer(http_exchange *exchange, int status, bay_str body)
{
    static const http_field fields[] = {
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Cache-Control"), STR_INIT("no-store")},
        {STR_INIT("X-Content-Type-Options"), STR_INIT("nosniff")},
    };
    http_exchange_reply(exchange, status, fields, ARRAY_LEN(fields), body);
}

static void write_error(buf *out, bay_str text)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "error");
    json_put_str(&writer, text);
    json_close_object(&writer);
}

void admin_refuse(http_exchange *exchange, int status, bay_str text)
{
    char bytes[512];
    buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    write_error(&body, text);
    admin_answer(exchange, status, body.err == BAY_OK ? buf_view(&body) : STR("{}"));
}

void admin_refuse_busy(http_exchange *exchange)
{
    static const http_field fields[] = {
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Retry-After"), STR_INIT("1")},
    };
    http_exchange_reply(exchange, 503, fields, ARRAY_LEN(fields),
                        STR("{\"error\":\"too many requests are being answered: try again\"}"));
}

/* ---- answers that come later ----------------------------------------------------------------- */

bay_err admin_job_begin(admin_job *self, admin *owner, http_exchange *exchange,
                        void (*late)(void *argument), uint32_t late_ms)
{
    if (owner->job_count >= ADMIN_JOBS) {
        return BAY_ERR_LIMIT;
    }
    loop_timer_init(&self->late, late, self);
    bay_err err = loop_timer_start(owner->gateway->workers[0].loop, &self->late, late_ms);
    if (err != BAY_OK) {
        return err;
    }
    self->admin = owner;
    self->exchange = exchange;
    owner->job_count++;
    list_push(&owner->jobs, &self->link);
    http_exchange_set_user(exchange, self);
    return BAY_OK;
}

void admin_job_answer(admin_job *self, int status, bay_str body)
{
    http_exchange *exchange = self->exchange;
    loop_timer_stop(self->admin->gateway->workers[0].loop, &self->late);
    if (exchange != NULL) {
        self->exchange = NULL;
        http_exchange_set_user(exchange, NULL);
        admin_answer(exchange, status, body);
    }
}

void admin_job_refuse(admin_job *self, int status, bay_str text)
{
    char bytes[512];
    buf body = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    write_error(&body, text);
    admin_job_answer(self, status, body.err == BAY_OK ? buf_view(&body) : STR("{}"));
}

void admin_job_remove(admin_job *self)
{
    loop_timer_stop(self->admin->gateway->workers[0].loop, &self->late);
    list_remove(&self->link);
    self->admin->job_count--;
}

static void admin_on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    admin_job *job = http_exchange_user(exchange);
    (void)user;
    (void)is_complete;
    if (job != NULL) {
        job->exchange = NULL;
        if (job->gone != NULL) {
            job->gone(job);
        }
    }
}

/* ---- who, and where to ----------------------------------------------------------------------- */

int admin_choose(unsigned roles, bay_str method, bay_str path, const admin_route **out)
{
    bay_str by = str_eq(method, STR("HEAD")) ? STR("GET") : method;
    int status = 404;
    for (size_t i = 0; i < admin_route_count; i++) {
        if (!str_eq(admin_routes[i].path, path)) {
            continue;
        }
        *out = &admin_routes[i];
        if (str_eq(admin_routes[i].method, by)) {
            return (admin_routes[i].roles & roles) != 0 ? 200 : 403;
        }
        status = 405;
    }
    return status;
}

static const char *refusal_of(peer_standing standing)
{
    switch (standing) {
    case PEER_ADMITTED:
        return NULL;
    case PEER_OTHER_USER:
        return "only the gateway's own user and root may use this socket";
    case PEER_DESCENDANT:
        return "this process was started by the gateway, and may not operate it";
    default:
        return "it cannot be ruled out that this process was started by the gateway";
    }
}

static void log_refusal(admin *self, const char *text)
{
    uint64_t now = loop_now_ms(self->gateway->workers[0].loop);
    self->refused_count++;
    if (now >= self->refused_until_ms) {
        LOG(LOG_WARN, "admin", "refused %zu connections to the admin socket, the last because %s",
            self->refused_count, text);
        self->refused_count = 0;
        self->refused_until_ms = now + ADMIN_REFUSED_MS;
    }
}

static const char *admit(void *user, const net_socket *socket)
{
    const char *refusal = refusal_of(peer_process_check(socket_descriptor(socket)));
    if (refusal != NULL) {
        log_refusal(user, refusal);
    }
    return refusal;
}

/* A browser reaches the socket where somebody forwards a port to it. No page is served here, so
 * whatever names an origin is another's. */
static bool is_of_a_page(const http_exchange *exchange)
{
    bay_str site = http_exchange_field(exchange, STR("Sec-Fetch-Site"));
    return http_exchange_field(exchange, STR("Origin")).at != NULL ||
           (site.at != NULL && !str_eq(site, STR("none")));
}

static bool is_of_this_machine(const http_exchange *exchange)
{
    bay_str name;
    uint16_t port;
    bay_str host = http_exchange_field(exchange, STR("Host"));
    return header_host_split(host, &name, &port) == BAY_OK && header_host_is_loopback(name);
}

bool admin_check_origin(http_exchange *exchange)
{
    if (is_of_a_page(exchange)) {
        admin_refuse(exchange, 403, STR("pages of other origins may not use the admin API"));
        return false;
    }
    if (!is_of_this_machine(exchange)) {
        admin_refuse(exchange, 421, STR("Host must be localhost or a loopback address"));
        return false;
    }
    return true;
}

/* What changes something is asked for in JSON, which no form of a page can send: nothing, or an
 * object without members; where the route takes one, what it says is the route's affair. */
static bool is_plain_order(http_exchange *exchange, const admin_route *route)
{
    bay_str type = http_exchange_field(exchange, STR("Content-Type"));
    bay_str body = http_exchange_body(exchange);
    json_doc document;
    if (!header_content_type_is(type, STR("application/json"))) {
        admin_refuse(exchange, 415, STR("Content-Type must be application/json"));
        return false;
    }
    if (body.len > 0 && !route->takes_object &&
        (json_parse(&document, body, NULL, http_exchange_arena(exchange), NULL) != BAY_OK ||
         !json_is(json_root(&document), JSON_OBJECT) || json_count(json_root(&document)) > 0)) {
        admin_refuse(exchange, 400, STR("the body must be empty or {}"));
        return false;
    }
    return true;
}

static void refuse_method(http_exchange *exchange, const admin_route *route)
{
    bool is_get = str_eq(route->method, STR("GET"));
    http_field fields[] = {
        {STR("Allow"), is_get ? STR("GET, HEAD") : route->method},
        {STR("Content-Type"), STR("application/json")},
    };
    http_exchange_reply(exchange, 405, fields, ARRAY_LEN(fields),
                        STR("{\"error\":\"this path takes another method\"}"));
}

static void on_request(void *user, http_exchange *exchange)
{
    admin *self = user;
    const admin_route *route = NULL;
    if (!admin_check_origin(exchange)) {
        return;
    }
    /* Whoever is admitted runs as the user of this process or as root: he could end it, or change
     * what it loads, without the socket. */
    switch (admin_choose(ADMIN_ALL_ROLES, http_exchange_method(exchange),
                         http_exchange_path(exchange), &route)) {
    case 404:
        admin_refuse(exchange, 404, STR("there is no such path in the admin API"));
        return;
    case 405:
        refuse_method(exchange, route);
        return;
    case 403:
        admin_refuse(exchange, 403, STR("your roles do not admit this"));
        return;
    default:
        break;
    }
    if (atomic_load(&self->gateway->is_over)) {
        admin_refuse(exchange, 503, STR("the gateway is ending"));
        return;
    }
    bool is_get = str_eq(route->method, STR("GET"));
    if (!is_get && !is_plain_order(exchange, route)) {
        return;
    }
    if (!is_get) {
        worker_evidence_event(&self->gateway->workers[0].evidence, "admin", route->path,
                              "admitted");
    }
    route->handle(self, exchange);
}

/* ---- listening ------------------------------------------------------------------------------- */

static bay_err make_server(admin *self)
{
    static const http_handler handler = {.request = on_request, .closed = admin_on_closed};
    const config *settings = self->gateway->config;
    http_server_options options = {
        .limits = http_server_default_limits,
        .handler = &handler,
        .user = self,
        .admit = admit,
    };
    options.limits.connections = ADMIN_CONNECTIONS;
    options.limits.head_bytes = ADMIN_HEAD_BYTES;
    options.limits.body_bytes = ADMIN_BODY_BYTES;
    options.limits.held_bytes = (size_t)ADMIN_CONNECTIONS * ADMIN_BODY_BYTES;
    options.limits.head_timeout_ms = ADMIN_READ_MS;
    options.limits.body_timeout_ms = ADMIN_READ_MS;
    options.limits.body_total_ms = ADMIN_READ_MS;
    options.limits.idle_timeout_ms = ADMIN_IDLE_MS;
    options.limits.write_timeout_ms = ADMIN_WRITE_MS;
    options.limits.reply_bytes = settings->limits.reply_bytes;
    return http_server_new(self->gateway->workers[0].loop, &options, &self->server);
}

static bay_err listen_on(admin *self, config_list addresses, bay_diag *diag)
{
    for (size_t i = 0; i < addresses.count; i++) {
        bay_err err = http_server_listen(self->server, addresses.at[i], diag);
        if (err != BAY_OK) {
            return err;
        }
        LOG(LOG_INFO, "admin", "the admin API is at %.*s", BAY_STR(addresses.at[i]));
    }
    return BAY_OK;
}

bay_err admin_open(gateway *owner, bay_diag *diag)
{
    const bay_str *fallback = &owner->options.admin;
    config_list addresses = owner->config->admin.listen;
    bool is_asked = addresses.at != NULL;
    if (!is_asked) {
        addresses = (config_list){fallback, fallback->len > 0 ? 1 : 0};
    }
    if (addresses.count == 0) {
        return BAY_OK;
    }
    admin *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->gateway = owner;
    list_init(&self->jobs);
    owner->admin = self;
    self->silent = mem_array(owner->worker_count, sizeof(struct status_request *));
    bay_diag why = {0};
    bay_err err = self->silent != NULL ? make_server(self) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        return diag_set(diag, err, "out of memory"); /* gateway_free frees what is there */
    }
    err = listen_on(self, addresses, &why);
    if (err != BAY_OK && !is_asked && err != BAY_ERR_NOMEM) {
        LOG(LOG_WARN, "admin",
            "no admin API, so patchbay status, reload and drain do not find this gateway: %s",
            why.text);
        admin_close(self);
        admin_free(self);
        owner->admin = NULL;
        return BAY_OK;
    }
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "admin.listen: %s", why.text);
}

void admin_close(admin *self)
{
    if (self == NULL || self->server == NULL) {
        return;
    }
    http_server_free(self->server);
    self->server = NULL;
    LIST_EACH(link, &self->jobs)
    {
        admin_job *job = CONTAINER_OF(link, admin_job, link);
        loop_timer_stop(self->gateway->workers[0].loop, &job->late);
    }
}

void admin_free(admin *self)
{
    if (self == NULL) {
        return;
    }
    for (list_link *link; (link = list_pop(&self->jobs)) != NULL;) {
        admin_job *job = CONTAINER_OF(link, admin_job, link);
        job->free(job);
    }
    mem_free(self->silent);
    mem_free(self);
}
