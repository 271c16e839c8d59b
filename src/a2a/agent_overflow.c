/* Overflow: what is stored beside a task's row, so that a put writes only what is new. The row has
 * the newest few KB of artifacts and history; older text was written once, in blocks that never
 * change. An overflow groups blocks: those of an artifact, or one block of texts, in which each has
 * its place.
 *
 *   artifact ── overflow ── block, block, block │ the rest, in the row
 *   message, message, message ── overflow ── block
 *
 * - An overflow's number is new in its task, so a replaced artifact shares nothing with the old
 *   one.
 * - What a failed put would have stored is cut again by the next one.
 * - A task that ends with its first put stays in its row: nothing would be written twice. */
#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "wire/base64.h"

static agent_overflow *overflow_new(agent_task *of, uint64_t number)
{
    agent_overflow *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        self->task = of;
        self->refs = 1;
        self->number = number;
        of->last_overflow = number > of->last_overflow ? number : of->last_overflow;
        list_push(&of->overflows, &self->link);
    }
    return self;
}

void agent_overflow_unref(agent_overflow *self)
{
    if (self == NULL || --self->refs > 0) {
        return;
    }
    list_remove(&self->link);
    if (self->task != NULL && self->blocks > 0) {
        list_push(&self->task->gone, &self->link);
    } else {
        mem_free(self);
    }
}

void agent_overflow_drop(agent_task *self)
{
    for (list_link *link; (link = list_pop(&self->overflows)) != NULL;) {
        CONTAINER_OF(link, agent_overflow, link)->task = NULL;
    }
    for (list_link *link; (link = list_pop(&self->gone)) != NULL;) {
        mem_free(CONTAINER_OF(link, agent_overflow, link));
    }
}

bool agent_overflow_are_apart(const agent_task *self)
{
    LIST_EACH(link, &self->overflows)
    {
        if (agent_overflow_is_apart(CONTAINER_OF(link, agent_overflow, link))) {
            return true;
        }
    }
    return false;
}

/* ---- blocks for a put */

static a2a_overflow_block *add_block(agent_cut *self, const agent_overflow *overflow)
{
    if (self->err == BAY_OK && self->count == self->cap) {
        size_t cap = self->cap == 0 ? 4 : self->cap * 2;
        a2a_overflow_block *blocks = mem_resize(self->blocks, cap * sizeof(*blocks));
        if (blocks == NULL) {
            self->err = BAY_ERR_NOMEM;
        } else {
            self->blocks = blocks;
            self->cap = cap;
        }
    }
    if (self->err != BAY_OK) {
        return NULL;
    }
    a2a_overflow_block *block = &self->blocks[self->count++];
    *block = (a2a_overflow_block){.overflow = overflow->number, .number = overflow->blocks};
    return block;
}

static bool may_add(const agent_cut *self)
{
    return self->err == BAY_OK && self->count < AGENT_PUT_BLOCKS;
}

/* An overflow for one block of texts, which are written to `texts` next. NULL: `err` says why. */
static agent_overflow *begin_texts(agent_cut *self, agent_task *task)
{
    agent_overflow *overflow =
        self->err == BAY_OK ? overflow_new(task, task->last_overflow + 1) : NULL;
    if (overflow == NULL) {
        self->err = BAY_ERR_NOMEM;
    } else if (add_block(self, overflow) == NULL) {
        agent_overflow_unref(overflow);
        overflow = NULL;
    }
    return overflow;
}

/* Drops the reference of begin_texts: those of the texts remain. */
static void end_texts(agent_cut *self, agent_overflow *overflow, size_t from)
{
    self->blocks[self->count - 1].bytes.len = self->texts.len - from;
    overflow->blocks = 1;
    self->err = self->texts.err;
    agent_overflow_unref(overflow);
}

static void add_text(agent_cut *self, bay_str text)
{
    bytes_put_part(&self->texts, text);
}

static void give(agent_overflow *overflow, agent_overflow **to)
{
    agent_overflow_unref(*to); /* one that could not be stored */
    overflow->refs++;
    *to = overflow;
}

/* ---- what is cut */

static void cut_artifact(agent_cut *self, agent_task *task, agent_artifact *artifact, size_t least)
{
    size_t from = artifact->overflow != NULL ? artifact->overflow->cut : 0;
    if (artifact->parts.len - from < least || !may_add(self)) {
        return;
    }
    if (artifact->overflow == NULL) {
        artifact->overflow = overflow_new(task, task->last_overflow + 1);
        self->err = artifact->overflow != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    a2a_overflow_block *block = self->err == BAY_OK ? add_block(self, artifact->overflow) : NULL;
    if (block != NULL) {
        block->bytes = str_from(buf_view(&artifact->parts), from);
        artifact->overflow->blocks++;
        artifact->overflow->cut = artifact->parts.len;
    }
}

static void cut_artifacts(agent_cut *self, agent_task *task)
{
    size_t left = 0;
    for (uint32_t i = 0; i < task->artifact_count; i++) {
        agent_artifact *artifact = &task->artifacts[i];
        cut_artifact(self, task, artifact, AGENT_OVERFLOW_BYTES);
        left += artifact->parts.len - (artifact->overflow != NULL ? artifact->overflow->cut : 0);
    }
    for (uint32_t i = 0; left > AGENT_ROW_BYTES && i < task->artifact_count; i++) {
        cut_artifact(self, task, &task->artifacts[i], AGENT_OVERFLOW_LEAST);
    }
}

static void cut_run(agent_cut *self, agent_task *task, uint32_t from, uint32_t to)
{
    agent_overflow *overflow = begin_texts(self, task);
    size_t start = self->texts.len;
    if (overflow == NULL) {
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        agent_text *text = task->history[i];
        give(overflow, &text->overflow);
        text->place = i - from;
        add_text(self, agent_text_view(text));
    }
    end_texts(self, overflow, start);
}

/* A text alone in its overflow. */
static void cut_text(agent_cut *self, agent_task *task, agent_overflow **of, bay_str text)
{
    if (text.len < AGENT_OVERFLOW_BYTES || agent_overflow_is_apart(*of) || !may_add(self)) {
        return;
    }
    size_t start = self->texts.len;
    agent_overflow *overflow = begin_texts(self, task);
    if (overflow != NULL) {
        give(overflow, of);
        add_text(self, text);
        end_texts(self, overflow, start);
    }
}

/* The newest messages stay in the row, and the very first: it lasts as long as the task, so nothing
 * shares a block with it, and if it is small it may be in the task's memory. */
static void cut_history(agent_cut *self, agent_task *task)
{
    uint32_t from = task->history_count;
    size_t bytes = 0;
    while (from > 1 && !agent_overflow_is_apart(task->history[from - 1]->overflow)) {
        bytes += task->history[--from]->len;
    }
    if (task->history_count > 0 && task->history[0]->len >= AGENT_FIRST_BYTES) {
        agent_text *first = task->history[0];
        cut_text(self, task, &first->overflow, agent_text_view(first));
    }
    if (bytes < AGENT_OVERFLOW_BYTES) {
        return;
    }
    bytes = 0;
    for (uint32_t i = from; i < task->history_count && may_add(self); i++) {
        size_t len = task->history[i]->len;
        if (len >= AGENT_OVERFLOW_BYTES && from < i && may_add(self)) {
            cut_run(self, task, from, i);
            from = i;
            bytes = 0;
        }
        bytes += len;
        if (may_add(self) && bytes >= AGENT_OVERFLOW_BYTES) {
            cut_run(self, task, from, i + 1);
            from = i + 1;
            bytes = 0;
        }
    }
}

static void cut_memory(agent_cut *self, agent_task *task)
{
    agent_text *memory = task->memory;
    if (memory == NULL || memory->len < AGENT_OVERFLOW_BYTES ||
        agent_overflow_is_apart(memory->overflow)) {
        return;
    }
    buf encoded;
    buf_init(&encoded, SIZE_MAX / 4);
    base64_encode(&encoded, agent_text_view(memory), BASE64_STANDARD);
    self->err = self->err == BAY_OK ? encoded.err : self->err;
    if (self->err == BAY_OK) {
        memory->place = 0;
        cut_text(self, task, &memory->overflow, buf_view(&encoded));
    }
    buf_fini(&encoded);
}

static void cut_turns(agent_cut *self, agent_task *task)
{
    if (task->turn != NULL) {
        cut_text(self, task, &task->turn->overflow, task->turn->request->text);
    }
    LIST_EACH(link, &task->waiting)
    {
        a2a_turn *turn = CONTAINER_OF(link, a2a_turn, link);
        cut_text(self, task, &turn->overflow, turn->request->text);
    }
}

static void undo(agent_task *task)
{
    LIST_EACH(link, &task->overflows)
    {
        agent_overflow *overflow = CONTAINER_OF(link, agent_overflow, link);
        overflow->blocks = overflow->kept_blocks;
        overflow->cut = overflow->kept_cut;
    }
}

static void cut_all(agent_cut *self, agent_task *task)
{
    cut_artifacts(self, task);
    cut_history(self, task);
    if (task->status != NULL && !agent_overflow_is_apart(task->status->overflow)) {
        task->status->place = 0;
        cut_text(self, task, &task->status->overflow, agent_text_view(task->status));
    }
    cut_memory(self, task);
    cut_turns(self, task);
    /* The buffer does not move any more. */
    size_t at = 0;
    for (size_t i = 0; self->err == BAY_OK && i < self->count; i++) {
        bay_str *bytes = &self->blocks[i].bytes;
        if (bytes->at == NULL) {
            bytes->at = self->texts.at + at;
            at += bytes->len;
        }
    }
}

static void list_gone(agent_cut *self, agent_task *task)
{
    size_t count = 0;
    LIST_EACH(link, &task->gone)
    {
        count += count < AGENT_PUT_BLOCKS;
    }
    self->gone = count > 0 ? mem_array(count, sizeof(*self->gone)) : NULL;
    if (self->gone == NULL) {
        return; /* by a later put */
    }
    LIST_EACH(link, &task->gone)
    {
        agent_overflow *overflow = CONTAINER_OF(link, agent_overflow, link);
        if (self->gone_count < count) {
            overflow->is_going = true;
            self->gone[self->gone_count++] = overflow->number;
        }
    }
}

void agent_cut_make(agent_task *self, agent_cut *out)
{
    *out = (agent_cut){.err = BAY_OK};
    buf_init(&out->texts, SIZE_MAX / 4);
    if (a2a_state_is_terminal(self->state) && self->put == 0) {
        return;
    }
    cut_all(out, self);
    if (out->err != BAY_OK) {
        undo(self);
        out->count = 0;
    }
    list_gone(out, self);
}

void agent_cut_fini(agent_cut *self)
{
    mem_free(self->blocks);
    mem_free(self->gone);
    buf_fini(&self->texts);
}

void agent_cut_flush(agent_task *self, bool is_kept)
{
    if (!is_kept) {
        undo(self);
    }
    LIST_EACH(link, &self->overflows)
    {
        agent_overflow *overflow = CONTAINER_OF(link, agent_overflow, link);
        overflow->kept_blocks = overflow->blocks;
        overflow->kept_cut = overflow->cut;
    }
    for (list_link *link = self->gone.head.next, *next; link != &self->gone.head; link = next) {
        agent_overflow *overflow = CONTAINER_OF(link, agent_overflow, link);
        next = link->next;
        if (overflow->is_going && is_kept) {
            list_remove(link);
            mem_free(overflow);
        } else {
            overflow->is_going = false;
        }
    }
}

/* ---- taking up */

static agent_overflow *find(const agent_task *task, uint64_t number)
{
    const list_link *head = &task->overflows.head;
    for (list_link *link = head->prev; link != head; link = link->prev) {
        agent_overflow *overflow = CONTAINER_OF(link, agent_overflow, link);
        if (overflow->number == number) {
            return overflow;
        }
    }
    return NULL;
}

bay_err agent_overflow_restore(agent_task *self, const agent_link *from, agent_overflow **out)
{
    agent_overflow *overflow = find(self, from->overflow);
    if (overflow != NULL) { /* only texts share one */
        if (from->cut > 0 || overflow->cut > 0) {
            return BAY_ERR_SYNTAX;
        }
        overflow->refs++;
        *out = overflow;
        return BAY_OK;
    }
    overflow = overflow_new(self, from->overflow);
    if (overflow == NULL) {
        return BAY_ERR_NOMEM;
    }
    overflow->blocks = overflow->kept_blocks = from->blocks;
    overflow->cut = overflow->kept_cut = from->cut;
    *out = overflow;
    return BAY_OK;
}

bay_err agent_overflow_forget(agent_task *self, const a2a_overflow_block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && blocks[i].overflow == blocks[i - 1].overflow) ||
            find(self, blocks[i].overflow) != NULL) {
            continue;
        }
        agent_overflow *overflow;
        const agent_link unknown = {.overflow = blocks[i].overflow, .blocks = 1};
        bay_err err = agent_overflow_restore(self, &unknown, &overflow);
        if (err != BAY_OK) {
            return err;
        }
        agent_overflow_unref(overflow);
    }
    return BAY_OK;
}
