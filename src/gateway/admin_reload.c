/* POST /v1/reload: as SIGHUP, and says what changed or what is wrong, with its lines.
 * POST /v1/drain: as SIGTERM. */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "gateway/admin_internal.h"

typedef struct reload_request {
    admin_job job;
    reload_waiter waiter;
} reload_request;

/* ---- what changed ---------------------------------------------------------------------------- */

typedef enum change { CHANGE_ADDED, CHANGE_CHANGED, CHANGE_REMOVED, CHANGE_NONE } change;

/* Servers and agents alike, as the one walk below sees them. */
typedef struct entries {
    size_t (*count)(const config *of);
    bay_str (*name)(const config *of, size_t index); /* empty: it is not shown */
    change (*compare)(const config *before, const config *now, bay_str name);
} entries;

static const config_server *server_in(const config *of, bay_str name)
{
    const config_server *found = config_server_find(of, name);
    return found != NULL && !found->is_disabled ? found : NULL;
}

static size_t server_count(const config *of)
{
    return of->server_count;
}

/* Not those that stand for the skills of an agent. */
static bay_str server_name(const config *of, size_t index)
{
    const config_server *server = &of->servers[index];
    return server->agent.len > 0 ? (bay_str){NULL, 0} : server->name;
}

static change server_change(const config *before, const config *now, bay_str name)
{
    const config_server *old = server_in(before, name);
    const config_server *new = server_in(now, name);
    if (old == NULL || new == NULL) {
        return new != NULL ? CHANGE_ADDED : old != NULL ? CHANGE_REMOVED : CHANGE_NONE;
    }
    return config_equal_server(old, new) ? CHANGE_NONE : CHANGE_CHANGED;
}

static const config_agent *agent_in(const config *of, bay_str name)
{
    const config_agent *found = config_agent_find(of, name);
    return found != NULL && !found->is_disabled ? found : NULL;
}

static size_t agent_count(const config *of)
{
    return of->agent_count;
}

static bay_str agent_name(const config *of, size_t index)
{
    return of->agents[index].name;
}

static change agent_change(const config *before, const config *now, bay_str name)
{
    const config_agent *old = agent_in(before, name);
    const config_agent *new = agent_in(now, name);
    if (old == NULL || new == NULL) {
        return new != NULL ? CHANGE_ADDED : old != NULL ? CHANGE_REMOVED : CHANGE_NONE;
    }
    return config_equal_agent(old, new) ? CHANGE_NONE : CHANGE_CHANGED;
}

/* Those of one kind of change; what was removed stands in the earlier configuration. */
static void put_changes(json_writer *out, const entries *of, const reload_outcome *outcome,
                        change kind)
{
    const config *in = kind == CHANGE_REMOVED ? outcome->before : outcome->now;
    json_open_array(out);
    for (size_t i = 0; i < of->count(in); i++) {
        bay_str name = of->name(in, i);
        if (name.len > 0 && of->compare(outcome->before, outcome->now, name) == kind) {
            json_put_str(out, name);
        }
    }
    json_close_array(out);
}

static void put_entries(json_writer *out, const entries *of, const reload_outcome *outcome)
{
    json_open_object(out);
    json_key_lit(out, "added");
    put_changes(out, of, outcome, CHANGE_ADDED);
    json_key_lit(out, "changed");
    put_changes(out, of, outcome, CHANGE_CHANGED);
    json_key_lit(out, "removed");
    put_changes(out, of, outcome, CHANGE_REMOVED);
    json_close_object(out);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_messages(json_writer *out, const config_report *report, bool are_warnings)
{
    json_open_array(out);
    for (size_t i = 0; report != NULL && i < report->count; i++) {
        const config_message *message = &report->messages[i];
        if (message->is_warning != are_warnings) {
            continue;
        }
        json_open_object(out);
        json_key_lit(out, "file");
        json_put_str(out, str_of(report->name));
        if (message->line > 0) {
            json_key_lit(out, "line");
            json_put_uint(out, message->line);
        }
        json_key_lit(out, "text");
        json_put_str(out, str_of(message->text));
        json_close_object(out);
    }
    json_close_array(out);
}

static void write_success(const gateway *owner, const reload_outcome *outcome, buf *body)
{
    static const entries of_servers = {server_count, server_name, server_change};
    static const entries of_agents = {agent_count, agent_name, agent_change};
    const char *later[GATEWAY_LATER_KEYS];
    size_t count = gateway_later_keys(owner, outcome->now, later);
    json_writer out;
    json_writer_init(&out, body);
    json_open_object(&out);
    json_key_lit(&out, "status");
    json_put_str(&out, STR("reloaded"));
    json_key_lit(&out, "servers");
    put_entries(&out, &of_servers, outcome);
    json_key_lit(&out, "agents");
    put_entries(&out, &of_agents, outcome);
    json_key_lit(&out, "nextStart"); /* keys whose new values are used from then on */
    json_open_array(&out);
    for (size_t i = 0; i < count; i++) {
        json_put_str(&out, str_of(later[i]));
    }
    json_close_array(&out);
    json_key_lit(&out, "failures");
    json_put_uint(&out, outcome->failures);
    json_key_lit(&out, "warnings");
    put_messages(&out, outcome->report, true);
    json_close_object(&out);
}

static void write_failure(const reload_outcome *outcome, buf *body)
{
    char text[400];
    json_writer out;
    (void)snprintf(text, sizeof(text),
                   "the configuration was not reloaded; the earlier one stays%s%s",
                   outcome->text[0] != '\0' ? ": " : "", outcome->text);
    json_writer_init(&out, body);
    json_open_object(&out);
    json_key_lit(&out, "error");
    json_put_str(&out, str_of(text));
    json_key_lit(&out, "errors");
    put_messages(&out, outcome->report, false);
    json_close_object(&out);
}

static int status_of(const reload_outcome *outcome)
{
    return outcome->err == BAY_OK          ? 200
           : outcome->err == BAY_ERR_STATE ? 409
           : outcome->err == BAY_ERR_NOMEM ? 503
                                           : 422;
}

static void reload_done(void *user, const reload_outcome *outcome)
{
    reload_request *self = user;
    buf body;
    buf_init(&body, ADMIN_ANSWER_BYTES);
    if (outcome->err == BAY_OK) {
        write_success(self->job.admin->gateway, outcome, &body);
    } else {
        write_failure(outcome, &body);
    }
    if (body.err == BAY_OK) {
        admin_job_answer(&self->job, status_of(outcome), buf_view(&body));
    } else {
        admin_job_answer(&self->job, 503, STR("{\"error\":\"out of memory for the answer\"}"));
    }
    buf_fini(&body);
    admin_job_remove(&self->job);
    mem_free(self);
}

/* ---- one request ----------------------------------------------------------------------------- */

static void reload_request_free(admin_job *job)
{
    mem_free(CONTAINER_OF(job, reload_request, job));
}

/* The reload goes on without anybody to tell. */
static void admin_reload_forget(admin_job *job)
{
    reload_request *self = CONTAINER_OF(job, reload_request, job);
    list_remove(&self->waiter.link);
    admin_job_remove(&self->job);
    mem_free(self);
}

/* Most often an earlier reload has not ended: calls of servers that it replaced are open. */
static void reload_late(void *argument)
{
    admin_job *job = argument;
    admin_job_answer(job, 202,
                     STR("{\"status\":\"waiting\",\"detail\":\"the configuration is not in force "
                         "yet: an earlier reload waits for calls of servers that it replaced, or "
                         "a loop does not answer; the reload goes on\"}"));
    admin_reload_forget(job);
}

void admin_reload(admin *self, http_exchange *exchange)
{
    reload_request *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        admin_refuse_busy(exchange);
        return;
    }
    made->job.gone = admin_reload_forget;
    made->job.free = reload_request_free;
    made->waiter = (reload_waiter){.done = reload_done, .user = made};
    if (admin_job_begin(&made->job, self, exchange, reload_late, ADMIN_RELOAD_MS) != BAY_OK) {
        mem_free(made);
        admin_refuse_busy(exchange);
        return;
    }
    gateway_reload_for(self->gateway, &made->waiter);
}

void admin_drain(admin *self, http_exchange *exchange)
{
    admin_answer(exchange, 202, STR("{\"status\":\"draining\"}"));
    gateway_drain(self->gateway);
}
