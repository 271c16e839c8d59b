/* Deduplication of messages: a caller that did not get its answer sends the same message again, and
 * the work must not be done twice. An entry exists from the time when its call begins to wait. An
 * answer that reached its caller removes it; if the last of its calls ended without an answer, it
 * stays for a while. */
#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/mem.h"

uint64_t agent_dedup_content(json_val message)
{
    uint64_t hash = str_hash(json_raw(message), 0x6d657373616765);
    return hash != 0 ? hash : 1;
}

static bay_err write_key(buf *out, bay_str principal, bay_str message_id)
{
    bytes_put_part(out, principal);
    buf_str(out, message_id);
    return out->err;
}

agent_dedup_entry *agent_dedup_find(a2a_agent *self, bay_str principal, bay_str message_id,
                                    uint64_t content)
{
    if (self->seen.len == 0) {
        return NULL;
    }
    buf key = agent_buffer(self);
    agent_dedup_entry *found = NULL;
    if (write_key(&key, principal, message_id) == BAY_OK) {
        found = map_get(&self->seen, buf_view(&key));
    }
    agent_buffer_back(self, &key);
    return found != NULL && (found->content == 0 || found->content == content) ? found : NULL;
}

static void agent_dedup_forget(a2a_agent *self, agent_dedup_entry *seen)
{
    if (map_get(&self->seen, seen->key) == seen) {
        map_remove(&self->seen, seen->key);
    }
    list_remove(&seen->link);
    if (seen->calls == 0) {
        mem_free(seen);
    }
}

/* NULL: not stored; the message will count as new. */
static agent_dedup_entry *remember(a2a_agent *self, bay_str principal, bay_str message_id,
                                   bay_str task_id, uint64_t content)
{
    buf key = agent_buffer(self);
    agent_dedup_entry *made = NULL;
    if (write_key(&key, principal, message_id) == BAY_OK &&
        map_get(&self->seen, buf_view(&key)) == NULL) {
        made = mem_zalloc(sizeof(*made) + key.len + task_id.len);
    }
    if (made != NULL) {
        memcpy(made->text, key.at, key.len);
        memcpy(made->text + key.len, task_id.at, task_id.len);
        made->key = (bay_str){made->text, key.len};
        made->task_id = (bay_str){made->text + key.len, task_id.len};
        made->content = content;
        if (map_put(&self->seen, made->key, made, NULL) != BAY_OK) {
            mem_free(made);
            made = NULL;
        }
    }
    agent_buffer_back(self, &key);
    return made;
}

void agent_dedup_join(agent_reply *reply, agent_dedup_entry *seen)
{
    list_remove(&seen->link);
    seen->expires_at_ms = 0;
    seen->calls++;
    reply->seen = seen;
}

void agent_dedup_add(a2a_agent *self, agent_reply *reply)
{
    json_val message = json_get(reply->call->params, STR("message"));
    bay_str message_id;
    if (json_str(json_get(message, STR("messageId")), reply->call->memory, &message_id) == BAY_OK) {
        agent_dedup_entry *made =
            remember(self, principal_identity(reply->call->principal), message_id, reply->task->id,
                     agent_dedup_content(message));
        if (made != NULL) {
            agent_dedup_join(reply, made);
        }
    }
}

static void keep_for_a_while(a2a_agent *self, agent_dedup_entry *seen)
{
    seen->expires_at_ms = agent_now(self) + self->limits.deduplicate_ms;
    list_push(&self->expiring, &seen->link);
    agent_wake_at(self, seen->expires_at_ms);
}

void agent_dedup_restore(agent_task *task, bay_str message_id)
{
    agent_dedup_entry *made =
        remember(task->of, task->context->owner->name, message_id, task->id, 0);
    if (made != NULL) {
        keep_for_a_while(task->of, made);
    }
}

void agent_dedup_leave(a2a_agent *self, agent_reply *reply, bool is_answered)
{
    agent_dedup_entry *seen = reply->seen;
    if (seen == NULL) {
        return;
    }
    reply->seen = NULL;
    seen->calls--;
    seen->is_answered = seen->is_answered || is_answered;
    if (seen->is_answered) {
        agent_dedup_forget(self, seen);
    } else if (seen->calls == 0) {
        keep_for_a_while(self, seen);
    }
}

void agent_dedup_expire(a2a_agent *self, uint64_t now_ms)
{
    for (list_link *link; (link = list_first(&self->expiring)) != NULL;) {
        agent_dedup_entry *seen = CONTAINER_OF(link, agent_dedup_entry, link);
        if (seen->expires_at_ms > now_ms) {
            return;
        }
        agent_dedup_forget(self, seen);
    }
}

void agent_dedup_fini(a2a_agent *self)
{
    agent_dedup_expire(self, UINT64_MAX);
}
