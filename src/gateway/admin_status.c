/* GET /v1/status: the gateway as all its loops see it.
 *
 * Each loop gets one message and fills in a report of its own; the last one to do so tells worker
 * 0, which answers with all of them. If a loop has not reported within ADMIN_STATUS_MS the answer
 * names it and has what the others said. The request stays until every loop has reported, since the
 * messages are in it; meanwhile that loop is asked nothing more. */
#include <stdatomic.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/admin_internal.h"
#include "gateway/grader.h"

enum { REPORT_BYTES = 64 << 20 }; /* of one loop; far more than CONFIG_SERVERS need */

/* One server as one loop sees it. Texts are copies. */
typedef struct server_report {
    bay_str name;
    const char *transport;
    bay_str revision; /* empty: not known yet */
    upstream_state state;
    uint64_t state_ms; /* for so long */
    bool is_proxy;     /* another loop owns its processes, and counts its calls */
    int process_id;
    uint32_t restarts;
    size_t calls;
    upstream_count count;
    bay_str error;
    bay_str last_break;
    size_t lists[LISTING_KINDS];
} server_report;

typedef struct worker_report {
    loop_message message;
    struct status_request *request;
    worker *worker;
    atomic_bool is_done; /* what follows has been written, and is not touched any more */
    bool is_asked;
    bool is_heard; /* it was done when the answer was written */
    bool is_settled;
    bay_err err;
    arena memory;
    server_report *servers;
    size_t server_count;
    size_t retiring; /* servers that a reload replaced, and their calls */
    size_t retiring_calls;
    endpoint_figures held;
    uint32_t connections;
} worker_report;

typedef struct status_request {
    admin_job job;
    atomic_uint missing; /* loops that have not reported, and worker 0 while it asks */
    loop_message all;
    size_t count;
    worker_report reports[];
} status_request;

/* ---- on each loop ---------------------------------------------------------------------------- */

static const char *transport_of(const config_server *server)
{
    return server->agent.len > 0 ? "agent" : server->command.len > 0 ? "stdio" : "http";
}

static void add_endpoint(endpoint_figures *sum, endpoint *of)
{
    if (of != NULL) {
        endpoint_figures more = endpoint_figures_of(of);
        sum->sessions += more.sessions;
        sum->suspended_calls += more.suspended_calls;
        sum->tasks += more.tasks;
    }
}

static bay_err fill_server(const worker_upstream *from, arena *memory, server_report *out)
{
    const upstream *server = from->upstream;
    const mcp_revision *revision = upstream_revision(server);
    *out = (server_report){
        .transport = transport_of(upstream_config(server)),
        .revision = revision != NULL ? revision->text : (bay_str){NULL, 0},
        .state = upstream_state_of(server),
        .state_ms = loop_now_ms(from->worker->loop) - from->state_ms,
        .is_proxy = from->is_proxy,
        .process_id = upstream_process_id(server),
        .restarts = upstream_restarts(server),
        .calls = upstream_open_calls(server),
        .count = upstream_count_of(server),
    };
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        const listing *current = from->fetches[kind].current;
        out->lists[kind] = current != NULL ? current->count : 0;
    }
    bay_err err = arena_dup(memory, upstream_name(server), &out->name);
    err = err == BAY_OK ? arena_dup(memory, str_of(upstream_error(server)), &out->error) : err;
    return err == BAY_OK ? arena_dup(memory, str_of(upstream_last_break(server)), &out->last_break)
                         : err;
}

static void count_retiring(worker_report *out, const list *upstreams)
{
    LIST_EACH(link, upstreams)
    {
        const worker_upstream *at = CONTAINER_OF(link, worker_upstream, link);
        if (!at->is_proxy) {
            out->retiring++;
            out->retiring_calls += upstream_open_calls(at->upstream);
        }
    }
}

static void fill_report(worker_report *out, worker *from)
{
    out->is_settled = from->is_settled;
    out->connections = from->server != NULL ? http_server_connections(from->server) : 0;
    add_endpoint(&out->held, from->all);
    for (size_t i = 0; i < from->profile_count; i++) {
        add_endpoint(&out->held, from->profiles[i]);
    }
    count_retiring(out, &from->retired);
    count_retiring(out, &from->leaving);
    out->servers = arena_array(&out->memory, from->upstream_count, sizeof(*out->servers));
    out->err = out->servers != NULL || from->upstream_count == 0 ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; out->err == BAY_OK && i < from->upstream_count; i++) {
        add_endpoint(&out->held, from->upstreams[i]->endpoint);
        out->err = fill_server(from->upstreams[i], &out->memory, &out->servers[i]);
        out->server_count = i + 1;
    }
}

/* One fewer is missing; the last one tells worker 0. */
static void report_done(status_request *self)
{
    gateway *owner = self->job.admin->gateway;
    if (atomic_fetch_sub(&self->missing, 1) == 1) {
        err_ignore(loop_post_message(owner->workers[0].loop, &self->all)); /* else at the end */
    }
}

static void report(void *argument)
{
    worker_report *self = argument;
    if (atomic_load(&self->worker->gateway->is_over)) {
        return; /* the gateway ends, and frees the request with it */
    }
    fill_report(self, self->worker);
    atomic_store(&self->is_done, true);
    report_done(self->request);
}

/* ---- what they say together ------------------------------------------------------------------ */

/* A server as all loops see it. */
typedef struct server_sum {
    server_report all;
    bool is_known; /* by its owner; else by what a proxy last heard */
} server_sum;

typedef struct status_sum {
    map by_name;
    server_sum *servers;
    size_t count;
    endpoint_figures held;
    uint64_t connections;
    size_t retiring;
    size_t retiring_calls;
    size_t calls;
    bool is_settled;
    bool is_degraded;
    bool is_cut; /* a loop had no memory for its report */
} status_sum;

/* Of two loops that each have sessions of their own with a server, the state that matters more. */
static int weight_of(upstream_state state)
{
    static const int weights[] = {
        [UPSTREAM_CLOSED] = 0, [UPSTREAM_STOPPED] = 1, [UPSTREAM_STARTING] = 2,
        [UPSTREAM_READY] = 3,  [UPSTREAM_BACKOFF] = 4, [UPSTREAM_OPEN] = 5,
    };
    return weights[state];
}

static void add_owner(server_sum *to, const server_report *from)
{
    server_report before = to->all;
    if (!to->is_known) {
        to->all = *from;
        to->is_known = true;
        return;
    }
    if (weight_of(from->state) > weight_of(before.state)) {
        to->all = *from;
    }
    to->all.calls = before.calls + from->calls;
    to->all.restarts = before.restarts + from->restarts;
    to->all.count.links = before.count.links + from->count.links;
    to->all.count.processes = before.count.processes + from->count.processes;
    to->all.count.waiting = before.count.waiting + from->count.waiting;
    to->all.count.refused_questions =
        before.count.refused_questions + from->count.refused_questions;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        size_t larger =
            before.lists[kind] > from->lists[kind] ? before.lists[kind] : from->lists[kind];
        to->all.lists[kind] = larger;
    }
}

static bay_err add_server(status_sum *to, const server_report *from)
{
    server_sum *at = map_get(&to->by_name, from->name);
    if (at == NULL) {
        at = &to->servers[to->count++];
        *at = (server_sum){.all = *from, .is_known = !from->is_proxy};
        return map_put(&to->by_name, at->all.name, at, NULL);
    }
    if (!from->is_proxy) {
        add_owner(at, from);
    }
    return BAY_OK;
}

static bay_err add_report(status_sum *to, const worker_report *from)
{
    bay_err err = BAY_OK;
    to->held.sessions += from->held.sessions;
    to->held.suspended_calls += from->held.suspended_calls;
    to->held.tasks += from->held.tasks;
    to->connections += from->connections;
    to->retiring += from->retiring;
    to->retiring_calls += from->retiring_calls;
    to->is_settled = to->is_settled && from->is_settled;
    to->is_cut = to->is_cut || from->err != BAY_OK;
    for (size_t i = 0; err == BAY_OK && from->err == BAY_OK && i < from->server_count; i++) {
        err = add_server(to, &from->servers[i]);
    }
    return err;
}

/* The servers in the order of the first loop that has reported. mem_free(out->servers). */
static bay_err sum_up(status_request *self, status_sum *out)
{
    size_t most = 0;
    bay_err err = BAY_OK;
    const gateway *owner = self->job.admin->gateway;
    *out = (status_sum){.is_settled = true};
    for (size_t i = 0; i < self->count; i++) {
        worker_report *of = &self->reports[i];
        of->is_heard = atomic_load(&of->is_done);
        most += of->is_heard ? of->server_count : 0;
    }
    map_init(&out->by_name, most + 1);
    out->servers = mem_array(most + 1, sizeof(*out->servers));
    err = out->servers != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && i < self->count; i++) {
        if (self->reports[i].is_heard) {
            err = add_report(out, &self->reports[i]);
        }
    }
    for (size_t i = 0; i < out->count; i++) {
        upstream_state state = out->servers[i].all.state;
        out->calls += out->servers[i].all.calls;
        out->is_degraded = out->is_degraded || state == UPSTREAM_BACKOFF ||
                           state == UPSTREAM_OPEN ||
                           gateway_contracts_hold(owner->contracts, out->servers[i].all.name) ||
                           gateway_grade_holds(owner->pins, out->servers[i].all.name);
    }
    map_fini(&out->by_name);
    return err;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_text(json_writer *out, const char *name, bay_str text)
{
    json_key(out, str_of(name));
    json_put_str(out, text);
}

static void put_count(json_writer *out, const char *name, uint64_t count)
{
    json_key(out, str_of(name));
    json_put_uint(out, count);
}

static void put_server(json_writer *out, const server_report *server, const gateway *owner)
{
    static const char *const lists[LISTING_KINDS] = {"tools", "resources", "resourceTemplates",
                                                     "prompts"};
    json_open_object(out);
    put_text(out, "name", server->name);
    put_text(out, "state", str_of(upstream_state_text(server->state)));
    put_count(out, "stateMs", server->state_ms);
    put_text(out, "transport", str_of(server->transport));
    if (server->revision.len > 0) {
        put_text(out, "revision", server->revision);
    }
    if (server->process_id > 0) {
        put_count(out, "pid", (uint64_t)server->process_id);
    }
    put_count(out, "processes", server->count.processes);
    put_count(out, "sessions", server->count.links);
    put_count(out, "calls", server->calls);
    put_count(out, "waiting", server->count.waiting);
    put_count(out, "refusedQuestions", server->count.refused_questions);
    put_count(out, "restarts", server->restarts);
    put_text(out, "circuit", str_of(server->count.circuit));
    if (server->error.len > 0) {
        put_text(out, "error", server->error);
    }
    if (server->last_break.len > 0) {
        put_text(out, "restartedFor", server->last_break);
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        put_count(out, lists[kind], server->lists[kind]);
    }
    gateway_contracts_write(owner->contracts, server->name, true, out);
    gateway_grade_write(owner->pins, server->name, out);
    json_close_object(out);
}

static void put_worker(json_writer *out, const worker_report *of)
{
    json_open_object(out);
    put_count(out, "worker", of->worker->index);
    json_key_lit(out, "answered");
    json_put_bool(out, of->is_heard);
    if (of->is_heard) {
        put_count(out, "connections", of->connections);
        put_count(out, "sessions", of->held.sessions);
        put_count(out, "parkedCalls", of->held.suspended_calls);
        put_count(out, "tasks", of->held.tasks);
    }
    json_close_object(out);
}

static void put_configuration(json_writer *out, const gateway *owner, uint64_t now)
{
    json_key_lit(out, "configuration");
    json_open_object(out);
    if (owner->options.config_path != NULL) {
        put_text(out, "file", str_of(owner->options.config_path));
    }
    put_count(out, "loadedMs", now - owner->loaded_ms);
    if (owner->reload_error[0] != '\0') {
        put_text(out, "reloadError", str_of(owner->reload_error));
        put_count(out, "reloadFailedMs", now - owner->reload_failed_ms);
    }
    json_key_lit(out, "reloading");
    json_put_bool(out, owner->reload != NULL);
    json_close_object(out);
}

static void put_gateway(json_writer *out, const gateway *owner, const status_sum *sum)
{
    uint64_t now = loop_now_ms(owner->workers[0].loop);
    put_text(out, "status",
             owner->is_stopping ? STR("draining")
             : !sum->is_settled ? STR("starting")
             : sum->is_degraded ? STR("degraded")
                                : STR("ready"));
    put_text(out, "version", str_of(bay_version()));
    put_count(out, "pid", (uint64_t)getpid());
    put_count(out, "uptimeMs", now - owner->started_ms);
    put_configuration(out, owner, now);
    json_key_lit(out, "listen");
    json_open_array(out);
    for (size_t i = 0; !owner->options.on_stdio && i < gateway_address_count(owner); i++) {
        char text[512];
        buf address = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
        gateway_write_address(owner, i, &address);
        json_put_str(out, buf_view(&address));
    }
    json_close_array(out);
}

static void write_status(const status_request *self, const status_sum *sum, buf *out)
{
    const gateway *owner = self->job.admin->gateway;
    const worker *first = &owner->workers[0];
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_gateway(&writer, owner, sum);
    put_count(&writer, "connections", sum->connections);
    put_count(&writer, "sessions", sum->held.sessions);
    put_count(&writer, "calls", sum->calls);
    put_count(&writer, "parkedCalls", sum->held.suspended_calls);
    put_count(&writer, "tasks", sum->held.tasks);
    put_count(&writer, "replacedServers", sum->retiring);
    put_count(&writer, "callsOfReplacedServers", sum->retiring_calls);
    json_key_lit(&writer, "workers");
    json_open_array(&writer);
    for (size_t i = 0; i < self->count; i++) {
        put_worker(&writer, &self->reports[i]);
    }
    json_close_array(&writer);
    json_key_lit(&writer, "servers");
    json_open_array(&writer);
    for (size_t i = 0; i < sum->count; i++) {
        put_server(&writer, &sum->servers[i].all, owner);
    }
    json_close_array(&writer);
    json_key_lit(&writer, "agents");
    json_open_array(&writer);
    if (first->agents != NULL) {
        agents_write_state(first->agents, true, &writer);
    }
    json_close_array(&writer);
    json_close_object(&writer);
}

static void admin_status_answer(status_request *self)
{
    status_sum sum;
    buf out;
    if (self->job.exchange == NULL) {
        return;
    }
    buf_init(&out, ADMIN_ANSWER_BYTES);
    bay_err err = sum_up(self, &sum);
    if (err == BAY_OK && !sum.is_cut) {
        write_status(self, &sum, &out);
        err = out.err;
    } else {
        err = BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        admin_job_answer(&self->job, 200, buf_view(&out));
    } else {
        admin_job_answer(&self->job, 503, STR("{\"error\":\"out of memory for the answer\"}"));
    }
    mem_free(sum.servers);
    buf_fini(&out);
}

/* ---- one request ----------------------------------------------------------------------------- */

static void request_free(admin_job *job)
{
    status_request *self = CONTAINER_OF(job, status_request, job);
    for (size_t i = 0; i < self->count; i++) {
        arena_fini(&self->reports[i].memory);
    }
    mem_free(self);
}

/* Every loop that was asked has reported. */
static void all_reported(void *argument)
{
    status_request *self = argument;
    admin *owner = self->job.admin;
    if (atomic_load(&owner->gateway->is_over)) {
        return; /* admin_free frees it */
    }
    admin_status_answer(self);
    for (size_t i = 0; i < self->count; i++) {
        if (owner->silent[i] == self) {
            owner->silent[i] = NULL;
        }
    }
    admin_job_remove(&self->job);
    request_free(&self->job);
}

static void on_late(void *argument)
{
    status_request *self = CONTAINER_OF(argument, status_request, job);
    for (size_t i = 0; i < self->count; i++) {
        if (self->reports[i].is_asked && !atomic_load(&self->reports[i].is_done)) {
            self->job.admin->silent[i] = self;
        }
    }
    admin_status_answer(self);
}

static void admin_status_ask(status_request *self, size_t index)
{
    worker_report *to = &self->reports[index];
    gateway *owner = self->job.admin->gateway;
    to->request = self;
    to->worker = &owner->workers[index];
    to->message = (loop_message){.function = report, .argument = to};
    arena_init(&to->memory, REPORT_BYTES);
    if (self->job.admin->silent[index] != NULL) {
        return; /* it has not even answered an earlier one */
    }
    to->is_asked = true;
    atomic_fetch_add(&self->missing, 1);
    if (loop_post_message(to->worker->loop, &to->message) != BAY_OK) {
        atomic_fetch_sub(&self->missing, 1); /* not the last one: worker 0 counts, too */
    }
}

void admin_status(admin *self, http_exchange *exchange)
{
    size_t count = self->gateway->worker_count;
    status_request *made = mem_zalloc(sizeof(*made) + count * sizeof(made->reports[0]));
    if (made == NULL) {
        admin_refuse_busy(exchange);
        return;
    }
    made->count = count;
    made->job.free = request_free;
    made->all = (loop_message){.function = all_reported, .argument = made};
    if (admin_job_begin(&made->job, self, exchange, on_late, ADMIN_STATUS_MS) != BAY_OK) {
        mem_free(made);
        admin_refuse_busy(exchange);
        return;
    }
    atomic_init(&made->missing, 1);
    for (size_t i = 0; i < count; i++) {
        admin_status_ask(made, i);
    }
    report_done(made);
}
