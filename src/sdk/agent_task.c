/* A turn of a task from the engine's call to its end: who handles it, where, and what it carries.
 */
#include <errno.h>
#include <time.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_task.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

/* Skill and the handler's own bytes, as bay_task_remember wrote them. */
static void split_record(bay_str record, bay_str *out_skill, bay_str *out_bytes)
{
    *out_skill = *out_bytes = STR("");
    if (record.len < 2) {
        return;
    }
    size_t skill = (size_t)(unsigned char)record.at[0] + ((size_t)(unsigned char)record.at[1] << 8);
    if (skill <= record.len - 2) {
        *out_skill = (bay_str){record.at + 2, skill};
        *out_bytes = str_from(record, 2 + skill);
    }
}

const bay_skill *sdk_agent_answerer(const bay_agent *self, bay_str record, bay_str named)
{
    bay_str skill;
    bay_str bytes;
    split_record(record, &skill, &bytes);
    const bay_skill *found = sdk_agent_ability(self, skill.len > 0 ? skill : named);
    if (found != NULL || self->handler != NULL) {
        return found;
    }
    for (found = self->abilities; found != NULL && !found->is_listed; found = found->next) {
    }
    return found;
}

/* The skill of a task is that of its first message. */
static void choose_handler(bay_task *self, bay_str record)
{
    const bay_agent *agent = self->agent;
    const bay_skill *ability = sdk_agent_answerer(agent, record, self->skill);
    self->handler = ability != NULL ? ability->handler : agent->handler;
    self->user = ability != NULL ? ability->user : agent->handler_user;
}

static bay_err read_turn(bay_task *self)
{
    a2a_turn *turn = self->turn;
    self->request = a2a_turn_request(turn);
    sdk_message_read(&self->message, a2a_turn_message(turn), &self->views);
    bay_str record = STR("");
    bay_str skill;
    if (!a2a_turn_is_new(turn) || a2a_turn_is_resumed(turn)) {
        bay_err err = arena_dup(&self->views, a2a_turn_remembered(turn), &record);
        if (err == BAY_OK) {
            err = a2a_turn_task(turn, &self->snapshot);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    split_record(record, &skill, &self->remembered);
    if (skill.len == 0) {
        skill = sdk_agent_skill_of(self->request, self->message.root, &self->views);
    }
    self->skill = skill.len <= TASK_SKILL_BYTES ? skill : STR("");
    choose_handler(self, record);
    return BAY_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bay_err init_lock(bay_task *self)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = BAY_OK;
    if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
        pthread_mutex_init(&self->lock, NULL) != 0) {
        err = BAY_ERR_NOMEM;
    } else if (pthread_cond_init(&self->is_woken, &attributes) != 0) {
        pthread_mutex_destroy(&self->lock);
        err = BAY_ERR_NOMEM;
    }
    pthread_condattr_destroy(&attributes);
    return err;
}

/* Its lock is there, all else is zero. */
static bay_task *task_alloc(task_free_list *free_list)
{
    enum { BEHIND_LOCK = offsetof(bay_task, agent) };
    list_link *spare = list_pop(&free_list->tasks);
    bay_task *self;
    if (spare != NULL) {
        self = CONTAINER_OF(spare, bay_task, link);
        free_list->count--;
    } else {
        self = mem_alloc(sizeof(*self));
        if (self == NULL || init_lock(self) != BAY_OK) {
            mem_free(self);
            return NULL;
        }
    }
    memset((char *)self + BEHIND_LOCK, 0, sizeof(*self) - BEHIND_LOCK);
    return self;
}

static void task_destroy(bay_task *self)
{
    pthread_cond_destroy(&self->is_woken);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

void sdk_task_free_list_fini(task_free_list *self)
{
    for (list_link *link; (link = list_pop(&self->tasks)) != NULL;) {
        task_destroy(CONTAINER_OF(link, bay_task, link));
    }
    self->count = 0;
}

static bay_task *task_new(bay_agent *agent, a2a_turn *turn)
{
    bay_task *self = task_alloc(sdk_task_free_list(agent->serving));
    if (self == NULL) {
        return NULL;
    }
    self->agent = agent;
    self->serving = agent->serving;
    self->turn = a2a_turn_ref(turn);
    self->holders = 1;
    arena_init(&self->views, TASK_VIEW_BYTES);
    arena_init(&self->history_views, TASK_VIEW_BYTES);
    buf_init(&self->snapshot, TASK_VIEW_BYTES);
    atomic_init(&self->is_cancelled, a2a_turn_is_canceled(turn));
    list_push(sdk_agent_tasks(self->serving), &self->link);
    sdk_agent_count(self->serving, 1);
    return self;
}

void sdk_turn_free(bay_task *self)
{
    agent_serving *serving = self->serving;
    if (self->is_mapped) {
        (void)map_remove(sdk_agent_running(serving), bay_task_id(self));
    }
    list_remove(&self->link);
    while (self->first != NULL) {
        task_move *next = self->first->next;
        mem_free(self->first);
        self->first = next;
    }
    sdk_artifacts_free(self);
    mem_free(self->history);
    arena_fini(&self->history_views);
    arena_fini(&self->views);
    buf_fini(&self->snapshot);
    a2a_turn_unref(self->turn);
    task_free_list *free_list = sdk_task_free_list(serving);
    if (free_list->count < TASK_FREE_LIST_MAX) {
        list_push(&free_list->tasks, &self->link);
        free_list->count++;
    } else {
        task_destroy(self);
    }
    sdk_agent_count(serving, -1);
}

void sdk_turn_over(bay_task *self)
{
    if (self->is_mapped) {
        self->is_mapped = false;
        (void)map_remove(sdk_agent_running(self->serving), bay_task_id(self));
    }
}

static bay_err place(bay_task *self)
{
    bay_err err = map_put(sdk_agent_running(self->serving), bay_task_id(self), self, NULL);
    self->is_mapped = err == BAY_OK;
    return err;
}

/* ---- its handler ----------------------------------------------------------------------------- */

static void handle(void *argument)
{
    bay_task *self = argument;
    self->handler(self, &self->message, self->user);
    bay_task_release(self);
}

/* Further messages go to this skill, whatever the handler remembers. What it remembered before its
 * process died stays. */
static bay_err keep_skill(bay_task *self)
{
    const bay_agent *agent = self->agent;
    bool has_choice = agent->ability_count > 1 || agent->handler != NULL;
    bool is_first = a2a_turn_is_new(self->turn) && a2a_turn_remembered(self->turn).len == 0;
    bool is_needed = self->skill.len > 0 && is_first && has_choice;
    return is_needed ? bay_task_remember(self, "", 0) : BAY_OK;
}

/* On the loop nobody can cancel a task before its handler returns: most are over by then. */
static void handle_here(bay_task *self)
{
    self->handler(self, &self->message, self->user);
    if (!self->is_ended && place(self) != BAY_OK) {
        LOG(LOG_WARN, "agent", "out of memory: a task's handler will not hear of its cancelling");
    }
    bay_task_release(self);
}

static bay_err agent_task_begin(bay_task *self)
{
    agent_pool *pool = sdk_agent_pool(self->serving);
    bay_err err = read_turn(self);
    if (err == BAY_OK && pool != NULL) {
        err = place(self);
    }
    if (err == BAY_OK) {
        err = keep_skill(self);
    }
    if (err == BAY_OK && pool != NULL) {
        self->job = (agent_job){.run = handle, .argument = self};
        err = agent_pool_run(pool, &self->job);
    }
    return err;
}

void sdk_turn_begin(void *user, a2a_turn *turn)
{
    bay_agent *agent = user;
    bay_task *self = task_new(agent, turn);
    if (self == NULL) {
        LOG(LOG_ERROR, "agent", "out of memory: task %.*s fails", BAY_STR(a2a_turn_task_id(turn)));
        if (a2a_turn_status(turn, A2A_FAILED, JSON_NONE, JSON_NONE) != BAY_OK) {
            LOG(LOG_WARN, "agent", "… and cannot say so");
        }
        a2a_turn_end(turn);
        return;
    }
    bay_err err = agent_task_begin(self);
    if (err != BAY_OK) {
        err = bay_task_failf(self, "the message cannot be handled: %s", bay_err_text(err));
        bay_task_release(self);
    } else if (sdk_agent_pool(self->serving) == NULL) {
        handle_here(self);
    }
    if (err != BAY_OK && err != BAY_ERR_STATE) {
        LOG(LOG_ERROR, "agent", "a message was not handled: %s", bay_err_text(err));
    }
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static void cancel(bay_task *self, bool is_closed)
{
    atomic_store(&self->is_cancelled, true);
    pthread_mutex_lock(&self->lock);
    self->is_closed = self->is_closed || is_closed;
    pthread_cond_broadcast(&self->is_woken);
    pthread_mutex_unlock(&self->lock);
}

void sdk_turn_canceled(void *user, a2a_turn *turn)
{
    const bay_agent *agent = user;
    bay_task *self = map_get(sdk_agent_running(agent->serving), a2a_turn_task_id(turn));
    if (self != NULL && self->turn == turn) {
        cancel(self, false);
    }
}

void sdk_agent_cancel_tasks(agent_serving *self)
{
    LIST_EACH(link, sdk_agent_tasks(self))
    {
        cancel(CONTAINER_OF(link, bay_task, link), true);
    }
}

/* ---- what it carries ------------------------------------------------------------------------- */

bay_str bay_task_id(const bay_task *task)
{
    return task != NULL ? a2a_turn_task_id(task->turn) : (bay_str){NULL, 0};
}

bay_str bay_task_context(const bay_task *task)
{
    return task != NULL ? a2a_turn_context_id(task->turn) : (bay_str){NULL, 0};
}

bay_str bay_task_principal(const bay_task *task)
{
    return task != NULL ? principal_subject(a2a_turn_principal(task->turn)) : (bay_str){NULL, 0};
}

bay_str bay_task_traceparent(const bay_task *task)
{
    return task != NULL ? a2a_turn_traceparent(task->turn) : (bay_str){NULL, 0};
}

bay_str bay_task_tracestate(const bay_task *task)
{
    return task != NULL ? a2a_turn_tracestate(task->turn) : (bay_str){NULL, 0};
}

bay_str bay_task_metadata(const bay_task *task)
{
    return task != NULL ? json_raw(json_get(task->request, STR("metadata"))) : (bay_str){NULL, 0};
}

bay_str bay_task_skill(const bay_task *task)
{
    return task != NULL ? task->skill : (bay_str){NULL, 0};
}

bay_str bay_task_remembered(const bay_task *task)
{
    return task != NULL ? task->remembered : (bay_str){NULL, 0};
}

bool bay_task_is_new(const bay_task *task)
{
    return task != NULL && a2a_turn_is_new(task->turn);
}

bool bay_task_is_resumed(const bay_task *task)
{
    return task != NULL && a2a_turn_is_resumed(task->turn);
}

bool bay_task_is_cancelled(const bay_task *task)
{
    return task == NULL || atomic_load(&task->is_cancelled);
}

bool bay_task_has_extension(const bay_task *task, const char *uri)
{
    bay_str wanted = str_of(uri);
    bay_str rest = task != NULL ? a2a_turn_extensions(task->turn) : wanted;
    while (rest.len > 0) {
        size_t comma = str_find(rest, ',');
        if (str_eq(str_trim(str_head(rest, comma)), wanted)) {
            return true;
        }
        rest = str_from(rest, comma + 1);
    }
    return false;
}

/* "text/plain" is taken by "text/plain", "text/…" and "*" "/…" ranges. */
static bool takes(json_val mode, bay_str media_type)
{
    bay_str range;
    if (!json_str_plain(mode, &range)) {
        return false;
    }
    if (str_eq(range, STR("*/*")) || str_eq(range, STR("*"))) {
        return true;
    }
    if (str_ends(range, STR("/*"))) {
        return str_starts(media_type, str_head(range, range.len - 1));
    }
    return str_eq_nocase(range, media_type);
}

bool bay_task_accepts(const bay_task *task, const char *media_type)
{
    if (task == NULL) {
        return false;
    }
    json_val modes =
        json_get(json_get(task->request, STR("configuration")), STR("acceptedOutputModes"));
    json_iter it = json_iter_of(modes);
    while (json_next(&it)) {
        if (takes(it.value, str_of(media_type))) {
            return true;
        }
    }
    return json_count(modes) == 0;
}

static void add_ms(struct timespec *time, uint32_t ms)
{
    time->tv_sec += ms / 1000;
    time->tv_nsec += (long)(ms % 1000) * 1000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
}

bool bay_task_sleep(bay_task *task, uint32_t ms)
{
    if (task == NULL) {
        return false;
    }
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    add_ms(&end, ms);
    int failed = 0;
    pthread_mutex_lock(&task->lock);
    while (!bay_task_is_cancelled(task) && failed == 0) {
        failed = pthread_cond_timedwait(&task->is_woken, &task->lock, &end);
    }
    pthread_mutex_unlock(&task->lock);
    return !bay_task_is_cancelled(task);
}

bay_str bay_task_json(const bay_task *task)
{
    return task != NULL ? buf_view(&task->snapshot) : (bay_str){NULL, 0};
}

/* ---- its history ----------------------------------------------------------------------------- */

/* Without the message that this turn is about, which is the last one of them. */
static void read_history(bay_task *self)
{
    self->has_history = true;
    json_val snapshot;
    if (self->snapshot.len == 0 || a2a_text_view(buf_view(&self->snapshot), JSON_NONE,
                                                 &self->history_views, &snapshot) != BAY_OK) {
        return;
    }
    json_val history = json_get(snapshot, STR("history"));
    self->history = mem_array(json_count(history) + 1, sizeof(*self->history));
    json_val own = json_get(self->message.root, STR("messageId"));
    json_iter it = json_iter_of(history);
    while (self->history != NULL && json_next(&it)) {
        if (!json_str_same(json_get(it.value, STR("messageId")), own)) {
            sdk_message_read(&self->history[self->history_count++], it.value, &self->history_views);
        }
    }
}

/* The lock is the task's own affair: it is no part of what a const task promises not to change. */
static bay_task *with_history(const bay_task *task)
{
    bay_task *self = (bay_task *)task;
    pthread_mutex_lock(&self->lock);
    if (!self->has_history) {
        read_history(self);
    }
    pthread_mutex_unlock(&self->lock);
    return self;
}

size_t bay_task_history_count(const bay_task *task)
{
    return task != NULL ? with_history(task)->history_count : 0;
}

const bay_message *bay_task_history(const bay_task *task, size_t index)
{
    if (index >= bay_task_history_count(task)) {
        return NULL;
    }
    return &task->history[index];
}
