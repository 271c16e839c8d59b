/* How a worker ends. The order matters: calls cross from loop to loop, so every step is taken for
 * all workers before the next one, and no loop is freed before all of them hold nothing more. */
#include "base/log.h"
#include "base/mem.h"
#include "gateway/agents.h"
#include "gateway/worker.h"

enum { TURN_MS = 50, GRACE_MS = 1000, FLUSH_MS = 5000 };

static void one_left(void *user)
{
    size_t *open = user;
    (*open)--;
}

/* A slot that was leaving anyway is only told again. Without `open` nobody hears of the end. */
static void close_slot(slot *at, size_t *open)
{
    at->is_leaving = true;
    at->is_closing = true;
    if (open != NULL) {
        (*open)++;
    }
    upstream_close(at->upstream, open != NULL ? one_left : NULL, open);
}

static void close_slots(worker *self, bool mirrors, size_t *open)
{
    list *const lists[] = {&self->retired, &self->leaving};
    for (size_t i = 0; i < self->slot_count; i++) {
        if (self->slots[i]->is_mirror == mirrors) {
            close_slot(self->slots[i], open);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH(at, lists[i])
        {
            slot *leaving = CONTAINER_OF(at, slot, link);
            if (leaving->is_mirror == mirrors) {
                close_slot(leaving, open);
            }
        }
    }
}

void worker_fail_calls(void *argument)
{
    worker *self = argument;
    const list *const lists[] = {&self->retired, &self->leaving};
    for (size_t i = 0; i < self->slot_count; i++) {
        upstream_close(self->slots[i]->upstream, NULL, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH(at, lists[i])
        {
            slot *leaving = CONTAINER_OF(at, slot, link);
            if (!leaving->is_closing) {
                upstream_close(leaving->upstream, NULL, NULL);
            }
        }
    }
}

void worker_close_servers(worker *self)
{
    static const bool owners = false;
    size_t open = 0;
    loop_timer_stop(self->loop, &self->retire);
    close_slots(self, owners, &open);
    uint64_t until = loop_now_ms(self->loop) + self->config->timeouts.terminate_ms +
                     self->config->timeouts.kill_ms + GRACE_MS;
    while (open > 0 && loop_now_ms(self->loop) < until &&
           !atomic_load(&self->gateway->is_hurried)) {
        loop_turn(self->loop, TURN_MS);
    }
    if (open > 0) {
        close_slots(self, owners, NULL); /* the count goes with this function */
        LOG(LOG_WARN, "gateway", "%zu servers of worker %u did not end in time; they are killed",
            open, self->index);
    }
    if (self->sessions != NULL) {
        session_store_flush(self->sessions, FLUSH_MS);
    }
}

static void end_slot_face(slot *of)
{
    face *ending = of->face;
    of->face = NULL;
    face_free(ending);
}

void worker_end_faces(worker *self)
{
    self->is_ending = true;
    if (self->loop == NULL) {
        return;
    }
    loop_timer_stop(self->loop, &self->tick);
    loop_timer_stop(self->loop, &self->patience);
    loop_timer_stop(self->loop, &self->last_words);
    loop_timer_stop(self->loop, &self->retire);
    if (self->stdio != NULL) {
        mcp_stdio_free(self->stdio);
    }
    if (self->server != NULL) {
        http_server_free(self->server);
    }
    front_free(self->front);
    if (self->http_face != NULL) {
        http_face_free(self->http_face);
    }
    agents_free(self->agents);
    self->agents = NULL;
    for (size_t i = 0; i < self->slot_count; i++) {
        end_slot_face(self->slots[i]);
    }
    LIST_EACH(at, &self->retired)
    {
        end_slot_face(CONTAINER_OF(at, slot, link));
    }
    LIST_EACH(at, &self->leaving)
    {
        end_slot_face(CONTAINER_OF(at, slot, link));
    }
    worker_free_profiles(self);
    face_free(self->all);
    self->all = NULL;
}

void worker_close_mirrors(worker *self, size_t *open)
{
    static const bool mirrors = true;
    if (self->loop != NULL) {
        close_slots(self, mirrors, open);
    }
}

static void free_slots(list *from)
{
    list_link *link;
    while ((link = list_pop(from)) != NULL) {
        slot_free(CONTAINER_OF(link, slot, link));
    }
}

void worker_free_slots(worker *self)
{
    if (self->loop == NULL) {
        return;
    }
    for (size_t i = 0; i < self->slot_count; i++) {
        slot_free(self->slots[i]);
    }
    mem_free(self->slots);
    self->slots = NULL;
    self->slot_count = 0;
    free_slots(&self->retired);
    free_slots(&self->leaving);
    if (self->http != NULL) {
        http_client_free(self->http);
    }
}

void worker_fini(worker *self)
{
    session_store_free(self->sessions);
    loop_free(self->loop);
    worker_agents_forget(self);
    config_free(self->config);
}
