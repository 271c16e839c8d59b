/* Configurations of webhooks, and the events that are sent to them. */
#include "a2a/agent_internal.h"
#include "a2a/push.h"
#include "base/err.h"
#include "base/mem.h"
#include "json/build.h"

/* ---- one configuration */

void agent_config_free(agent_config *self)
{
    if (self->config != NULL) {
        mem_wipe((char *)self->config->text.at, self->config->text.len); /* it contains secrets */
    }
    mem_free(self->config);
    mem_free(self);
}

static size_t bytes_of(const agent_config *self)
{
    return sizeof(*self) + self->id.len + self->config->text.len;
}

static agent_config *find(const agent_task *task, bay_str id)
{
    LIST_EACH(link, &task->configs)
    {
        agent_config *config = CONTAINER_OF(link, agent_config, link);
        if (str_eq(config->id, id)) {
            return config;
        }
    }
    return NULL;
}

static void leave(agent_task *task, agent_config *config)
{
    list_remove(&config->link);
    task->config_count--;
    agent_task_count(task, 0, bytes_of(config));
    agent_config_free(config);
}

/* Replaces one with the same id. */
static void join(agent_task *task, agent_config *config)
{
    agent_config *old = find(task, config->id);
    if (old != NULL) {
        leave(task, old);
    }
    if (task->config_count == 0) {
        task->pushed = task->revision;
        task->dropped = task->has_streams ? task->dropped : task->revision;
    }
    list_push(&task->configs, &config->link);
    task->config_count++;
    agent_task_count(task, bytes_of(config), 0);
}

static bay_err config_new(json_val value, bay_str id, a2a_form form, agent_config **out)
{
    agent_config *self = mem_zalloc(sizeof(*self) + id.len);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    char *text = (char *)(self + 1);
    memcpy(text, id.at, id.len);
    self->id = (bay_str){text, id.len};
    self->form = form;
    bay_err err = json_clone(value, &self->config);
    if (err != BAY_OK) {
        agent_config_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

bay_err agent_config_restore(agent_task *task, json_val value, a2a_form form)
{
    arena memory;
    bay_str id;
    agent_config *config;
    arena_init(&memory, SIZE_MAX);
    bay_err err = json_str(json_get(value, STR("id")), &memory, &id);
    if (err == BAY_OK) {
        err = config_new(value, id, form, &config);
    }
    if (err == BAY_OK) {
        join(task, config);
    }
    arena_fini(&memory);
    return err;
}

/* The configuration as it is stored and returned: with its id and its task's. */
static void write_config(const agent_task *task, json_val value, bay_str id, json_writer *out)
{
    static const bay_str ours[] = {STR_INIT("id"), STR_INIT("taskId")};
    json_open_object(out);
    json_key(out, ours[0]);
    json_put_str(out, id);
    json_key(out, ours[1]);
    json_put_str(out, task->id);
    json_put_members(out, value, ours, ARRAY_LEN(ours));
    json_close_object(out);
}

static bay_err check_url(const a2a_agent *agent, a2a_call *call, json_val value, a2a_fault *fault)
{
    bay_str url = {"", 0};
    bay_err err = a2a_push_config_check(value, fault);
    if (err == BAY_OK) {
        err = json_str(json_get(value, STR("url")), call->memory, &url);
    }
    if (err != BAY_OK) {
        return err;
    }
    const a2a_handler *handler = agent->options.handler;
    if (handler->push_url == NULL) {
        return BAY_OK;
    }
    fault->error = A2A_NO_ERROR;
    err = handler->push_url(agent->options.user, url, fault);
    if (err == BAY_OK || err == BAY_ERR_NOMEM) {
        return err;
    }
    return fault->error != A2A_NO_ERROR
               ? BAY_ERR_PROTOCOL
               : a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "url: not allowed");
}

/* The id that it names, otherwise a new one. Older versions set a task's single configuration
 * repeatedly, without naming it. */
static bay_err choose_id(agent_task *task, a2a_call *call, json_val value, char made[37],
                         bay_str *out, a2a_fault *fault)
{
    *out = (bay_str){"", 0};
    json_val id = json_get(value, STR("id"));
    bay_err err = json_is(id, JSON_STRING) ? json_str(id, call->memory, out) : BAY_OK;
    if (err != BAY_OK) {
        return err;
    }
    if (out->len > AGENT_ID_BYTES) {
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "id: longer than %d bytes",
                             AGENT_ID_BYTES);
    }
    if (out->len == 0 && call->version < A2A_1_0) {
        *out = task->id;
    } else if (out->len == 0) {
        agent_make_id(task->of, made);
        *out = (bay_str){made, 36};
    }
    if (task->config_count >= task->of->limits.push_configs && find(task, *out) == NULL) {
        return a2a_fault_set(fault, A2A_E_BUSY, "too many configurations of this task");
    }
    return BAY_OK;
}

bay_err agent_config_add(agent_task *task, a2a_call *call, json_val value, agent_config **out,
                         a2a_fault *fault)
{
    char made[37];
    bay_str id;
    json_val config;
    json_builder written;
    bay_err err = check_url(task->of, call, value, fault);
    if (err == BAY_OK) {
        err = choose_id(task, call, value, made, &id, fault);
    }
    if (err != BAY_OK) {
        return err;
    }
    write_config(task, value, id, json_builder_init_secret(&written, NULL, SIZE_MAX));
    err = json_builder_view(&written, &config);
    if (err == BAY_OK) {
        err = agent_task_room(task, json_raw(config).len + sizeof(agent_config) + id.len);
    }
    if (err == BAY_OK) {
        err = config_new(config, id, a2a_form_of(call->version, call->binding), out);
    }
    if (err == BAY_OK) {
        join(task, *out);
    }
    json_builder_drop(&written);
    return err;
}

/* ---- the methods */

static bay_str text_of(a2a_call *call, bay_str key, bay_err *err)
{
    bay_str text = {"", 0};
    json_val value = json_get(call->params, key);
    if (*err == BAY_OK && json_is(value, JSON_STRING)) {
        *err = json_str(value, call->memory, &text);
    }
    return text;
}

/* The task; NULL: the call has failed. */
static agent_task *task_of(a2a_agent *self, a2a_call *call)
{
    bay_err err = BAY_OK;
    bay_str id = text_of(call, STR("taskId"), &err);
    agent_task *task =
        err == BAY_OK ? agent_task_find(self, id, principal_identity(call->principal)) : NULL;
    if (err != BAY_OK) {
        agent_fail_err(call, err);
    } else if (task == NULL) {
        agent_fail(call, A2A_E_TASK_NOT_FOUND, "there is no such task");
    }
    return task;
}

/* Answers when the current task is stored. */
static void agent_push_answer(a2a_call *call, agent_task *task, bay_str json)
{
    if (agent_task_is_kept(task, task->revision)) {
        a2a_call_result(call, json);
        return;
    }
    agent_reply *reply = agent_reply_new(call, task);
    agent_wait *wait = reply != NULL ? arena_zalloc(call->memory, sizeof(*wait)) : NULL;
    if (reply == NULL) {
        return;
    }
    if (wait == NULL || arena_dup(call->memory, task->id, &wait->id) != BAY_OK) {
        call->user = NULL;
        agent_fail_err(call, BAY_ERR_NOMEM);
        return;
    }
    wait->revision = task->revision;
    buf out = agent_buffer(task->of);
    a2a_agent *of = task->of;
    buf_str(&out, json);
    agent_reply_hold(reply, &out, wait, 1);
    if (out.len > 0) {
        mem_wipe(out.at, out.len);
    }
    agent_buffer_back(of, &out);
}

static void changed(agent_task *task)
{
    task->revision++;
    if (!agent_task_has_readers(task)) {
        task->dropped = task->revision;
    }
    agent_task_touch(task);
}

void agent_create_config(a2a_agent *self, a2a_call *call)
{
    a2a_fault fault;
    agent_config *config = NULL;
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    bay_err err = agent_config_add(task, call, call->params, &config, &fault);
    if (err != BAY_OK) {
        if (err != BAY_ERR_PROTOCOL) {
            agent_fault_of(&fault, err);
        }
        a2a_call_fail(call, &fault);
        return;
    }
    changed(task);
    agent_push_answer(call, task, config->config->text);
}

void agent_get_config(a2a_agent *self, a2a_call *call)
{
    bay_err err = BAY_OK;
    bay_str id = text_of(call, STR("id"), &err);
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    list_link *first = list_first(&task->configs);
    agent_config *config = find(task, id);
    bool is_any = id.len == 0 || str_eq(id, task->id);
    if (config == NULL && is_any && first != NULL) { /* older versions name none, or the task */
        config = CONTAINER_OF(first, agent_config, link);
    }
    if (err != BAY_OK) {
        agent_fail_err(call, err);
    } else if (config == NULL) {
        agent_fail(call, A2A_E_TASK_NOT_FOUND, "the task has no such configuration");
    } else {
        agent_push_answer(call, task, config->config->text);
    }
}

void agent_list_configs(a2a_agent *self, a2a_call *call)
{
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    buf out = agent_buffer(self);
    buf_lit(&out, "{\"configs\":[");
    LIST_EACH(link, &task->configs)
    {
        if (link != list_first(&task->configs)) {
            buf_char(&out, ',');
        }
        buf_str(&out, CONTAINER_OF(link, agent_config, link)->config->text);
    }
    buf_lit(&out, "]}");
    if (out.err == BAY_OK) {
        agent_push_answer(call, task, buf_view(&out));
    } else {
        agent_fail_err(call, out.err);
    }
    if (out.len > 0) {
        mem_wipe(out.at, out.len);
    }
    agent_buffer_back(self, &out);
}

/* a2a 1.0 section 3.1.10: idempotent */
void agent_delete_config(a2a_agent *self, a2a_call *call)
{
    bay_err err = BAY_OK;
    bay_str id = text_of(call, STR("id"), &err);
    agent_task *task = task_of(self, call);
    if (task == NULL) {
        return;
    }
    if (err != BAY_OK) {
        agent_fail_err(call, err);
        return;
    }
    agent_config *config = find(task, id);
    if (config != NULL) {
        leave(task, config);
        changed(task);
    }
    agent_push_answer(call, task, STR("{}"));
}

/* ---- deliveries */

static bool wants_task(const agent_task *task)
{
    LIST_EACH(link, &task->configs)
    {
        if (CONTAINER_OF(link, agent_config, link)->form != A2A_FORM_1_0) {
            return true;
        }
    }
    return false;
}

static void push_event(agent_task *task, a2a_event *event, bay_str json)
{
    a2a_agent *of = task->of;
    LIST_EACH(link, &task->configs)
    {
        agent_config *config = CONTAINER_OF(link, agent_config, link);
        of->options.handler->push(of->options.user, task->context->owner->name,
                                  json_root(config->config), config->form, event, json);
    }
}

void agent_push_events(agent_task *task)
{
    if (task->config_count == 0 || task->of->options.handler->push == NULL) {
        return;
    }
    buf out = agent_buffer(task->of);
    for (agent_event *next; (next = agent_event_after(task, task->pushed)) != NULL;) {
        if (!agent_task_is_kept(task, a2a_event_sequence(next->event))) {
            break;
        }
        if (out.len == 0 && wants_task(task)) {
            agent_write_task(task, -1, true, &out);
        }
        task->pushed = a2a_event_sequence(next->event);
        push_event(task, next->event, out.err == BAY_OK ? buf_view(&out) : (bay_str){"", 0});
    }
    agent_buffer_back(task->of, &out);
}
