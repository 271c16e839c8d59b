/* What of a task is kept apart from its row, so that what a put writes is what is new: the row has
 * the newest few KB of an artifact and of the history; what is older was written once, in pieces
 * that never change. A strand is what belongs together: the pieces of an artifact, or one piece of
 * texts, in which each has its place.
 *
 *   artifact ── strand ── piece, piece, piece │ the rest, in the row
 *   message, message, message ── strand ── piece
 *
 * - A strand's number is new in its task, so an artifact that is replaced has nothing of the old.
 * - What a put that failed would have kept is cut anew by the next.
 * - A task that ends with its first put stays in its row: there is nothing to be written twice. */
#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "wire/base64.h"

static agent_strand *strand_new(agent_task *of, uint64_t number)
{
    agent_strand *self = mem_zalloc(sizeof(*self));
    if (self != NULL) {
        self->task = of;
        self->refs = 1;
        self->number = number;
        of->last_strand = number > of->last_strand ? number : of->last_strand;
        list_push(&of->strands, &self->link);
    }
    return self;
}

void agent_strand_unref(agent_strand *self)
{
    if (self == NULL || --self->refs > 0) {
        return;
    }
    list_remove(&self->link);
    if (self->task != NULL && self->pieces > 0) {
        list_push(&self->task->gone, &self->link);
    } else {
        mem_free(self);
    }
}

void agent_strands_drop(agent_task *self)
{
    for (list_link *link; (link = list_pop(&self->strands)) != NULL;) {
        CONTAINER_OF(link, agent_strand, link)->task = NULL;
    }
    for (list_link *link; (link = list_pop(&self->gone)) != NULL;) {
        mem_free(CONTAINER_OF(link, agent_strand, link));
    }
}

bool agent_strands_are_apart(const agent_task *self)
{
    LIST_EACH(link, &self->strands)
    {
        if (agent_strand_is_apart(CONTAINER_OF(link, agent_strand, link))) {
            return true;
        }
    }
    return false;
}

/* ---- pieces for a put */

static a2a_piece *add_piece(agent_cut *self, const agent_strand *strand)
{
    if (self->err == BAY_OK && self->count == self->cap) {
        size_t cap = self->cap == 0 ? 4 : self->cap * 2;
        a2a_piece *pieces = mem_resize(self->pieces, cap * sizeof(*pieces));
        if (pieces == NULL) {
            self->err = BAY_NOMEM;
        } else {
            self->pieces = pieces;
            self->cap = cap;
        }
    }
    if (self->err != BAY_OK) {
        return NULL;
    }
    a2a_piece *piece = &self->pieces[self->count++];
    *piece = (a2a_piece){.strand = strand->number, .number = strand->pieces};
    return piece;
}

static bool may_add(const agent_cut *self)
{
    return self->err == BAY_OK && self->count < AGENT_PUT_PIECES;
}

/* A strand for one piece of texts that are written into `texts` next. NULL: `err` says why. */
static agent_strand *begin_texts(agent_cut *self, agent_task *task)
{
    agent_strand *strand = self->err == BAY_OK ? strand_new(task, task->last_strand + 1) : NULL;
    if (strand == NULL) {
        self->err = BAY_NOMEM;
    } else if (add_piece(self, strand) == NULL) {
        agent_strand_unref(strand);
        strand = NULL;
    }
    return strand;
}

/* The reference of begin_texts goes: those of the texts are left. */
static void end_texts(agent_cut *self, agent_strand *strand, size_t from)
{
    self->pieces[self->count - 1].bytes.len = self->texts.len - from;
    strand->pieces = 1;
    self->err = self->texts.err;
    agent_strand_unref(strand);
}

static void add_text(agent_cut *self, bay_str text)
{
    bytes_put_part(&self->texts, text);
}

static void give(agent_strand *strand, agent_strand **to)
{
    agent_strand_unref(*to); /* one that could not be kept */
    strand->refs++;
    *to = strand;
}

/* ---- what is cut */

static void cut_artifact(agent_cut *self, agent_task *task, agent_artifact *artifact, size_t least)
{
    size_t from = artifact->strand != NULL ? artifact->strand->cut : 0;
    if (artifact->parts.len - from < least || !may_add(self)) {
        return;
    }
    if (artifact->strand == NULL) {
        artifact->strand = strand_new(task, task->last_strand + 1);
        self->err = artifact->strand != NULL ? BAY_OK : BAY_NOMEM;
    }
    a2a_piece *piece = self->err == BAY_OK ? add_piece(self, artifact->strand) : NULL;
    if (piece != NULL) {
        piece->bytes = str_from(buf_view(&artifact->parts), from);
        artifact->strand->pieces++;
        artifact->strand->cut = artifact->parts.len;
    }
}

static void cut_artifacts(agent_cut *self, agent_task *task)
{
    size_t left = 0;
    for (uint32_t i = 0; i < task->artifact_count; i++) {
        agent_artifact *artifact = &task->artifacts[i];
        cut_artifact(self, task, artifact, AGENT_PIECE_BYTES);
        left += artifact->parts.len - (artifact->strand != NULL ? artifact->strand->cut : 0);
    }
    for (uint32_t i = 0; left > AGENT_ROW_BYTES && i < task->artifact_count; i++) {
        cut_artifact(self, task, &task->artifacts[i], AGENT_PIECE_LEAST);
    }
}

static void cut_run(agent_cut *self, agent_task *task, uint32_t from, uint32_t to)
{
    agent_strand *strand = begin_texts(self, task);
    size_t start = self->texts.len;
    if (strand == NULL) {
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        agent_text *text = task->history[i];
        give(strand, &text->strand);
        text->place = i - from;
        add_text(self, agent_text_view(text));
    }
    end_texts(self, strand, start);
}

/* One that is alone in its strand. */
static void cut_text(agent_cut *self, agent_task *task, agent_strand **of, bay_str text)
{
    if (text.len < AGENT_PIECE_BYTES || agent_strand_is_apart(*of) || !may_add(self)) {
        return;
    }
    size_t start = self->texts.len;
    agent_strand *strand = begin_texts(self, task);
    if (strand != NULL) {
        give(strand, of);
        add_text(self, text);
        end_texts(self, strand, start);
    }
}

/* What stays in the row are the newest, and the very first: it is there as long as the task is, so
 * nothing shares a piece with it, and when it is small it may be part of the task's memory. */
static void cut_history(agent_cut *self, agent_task *task)
{
    uint32_t from = task->history_count;
    size_t bytes = 0;
    while (from > 1 && !agent_strand_is_apart(task->history[from - 1]->strand)) {
        bytes += task->history[--from]->len;
    }
    if (task->history_count > 0 && task->history[0]->len >= AGENT_FIRST_BYTES) {
        agent_text *first = task->history[0];
        cut_text(self, task, &first->strand, agent_text_view(first));
    }
    if (bytes < AGENT_PIECE_BYTES) {
        return;
    }
    bytes = 0;
    for (uint32_t i = from; i < task->history_count && may_add(self); i++) {
        size_t len = task->history[i]->len;
        if (len >= AGENT_PIECE_BYTES && from < i && may_add(self)) {
            cut_run(self, task, from, i);
            from = i;
            bytes = 0;
        }
        bytes += len;
        if (may_add(self) && bytes >= AGENT_PIECE_BYTES) {
            cut_run(self, task, from, i + 1);
            from = i + 1;
            bytes = 0;
        }
    }
}

static void cut_memory(agent_cut *self, agent_task *task)
{
    agent_text *memory = task->memory;
    if (memory == NULL || memory->len < AGENT_PIECE_BYTES ||
        agent_strand_is_apart(memory->strand)) {
        return;
    }
    buf encoded;
    buf_init(&encoded, SIZE_MAX / 4);
    base64_encode(&encoded, agent_text_view(memory), BASE64_STANDARD);
    self->err = self->err == BAY_OK ? encoded.err : self->err;
    if (self->err == BAY_OK) {
        memory->place = 0;
        cut_text(self, task, &memory->strand, buf_view(&encoded));
    }
    buf_fini(&encoded);
}

static void cut_turns(agent_cut *self, agent_task *task)
{
    if (task->turn != NULL) {
        cut_text(self, task, &task->turn->strand, task->turn->request->text);
    }
    LIST_EACH(link, &task->waiting)
    {
        a2a_turn *turn = CONTAINER_OF(link, a2a_turn, link);
        cut_text(self, task, &turn->strand, turn->request->text);
    }
}

static void undo(agent_task *task)
{
    LIST_EACH(link, &task->strands)
    {
        agent_strand *strand = CONTAINER_OF(link, agent_strand, link);
        strand->pieces = strand->kept_pieces;
        strand->cut = strand->kept_cut;
    }
}

static void cut_all(agent_cut *self, agent_task *task)
{
    cut_artifacts(self, task);
    cut_history(self, task);
    if (task->status != NULL && !agent_strand_is_apart(task->status->strand)) {
        task->status->place = 0;
        cut_text(self, task, &task->status->strand, agent_text_view(task->status));
    }
    cut_memory(self, task);
    cut_turns(self, task);
    /* The buffer has found its place now. */
    size_t at = 0;
    for (size_t i = 0; self->err == BAY_OK && i < self->count; i++) {
        bay_str *bytes = &self->pieces[i].bytes;
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
        count += count < AGENT_PUT_PIECES;
    }
    self->gone = count > 0 ? mem_array(count, sizeof(*self->gone)) : NULL;
    if (self->gone == NULL) {
        return; /* with a later put */
    }
    LIST_EACH(link, &task->gone)
    {
        agent_strand *strand = CONTAINER_OF(link, agent_strand, link);
        if (self->gone_count < count) {
            strand->is_going = true;
            self->gone[self->gone_count++] = strand->number;
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
    mem_free(self->pieces);
    mem_free(self->gone);
    buf_fini(&self->texts);
}

void agent_cut_settle(agent_task *self, bool is_kept)
{
    if (!is_kept) {
        undo(self);
    }
    LIST_EACH(link, &self->strands)
    {
        agent_strand *strand = CONTAINER_OF(link, agent_strand, link);
        strand->kept_pieces = strand->pieces;
        strand->kept_cut = strand->cut;
    }
    for (list_link *link = self->gone.head.next, *next; link != &self->gone.head; link = next) {
        agent_strand *strand = CONTAINER_OF(link, agent_strand, link);
        next = link->next;
        if (strand->is_going && is_kept) {
            list_remove(link);
            mem_free(strand);
        } else {
            strand->is_going = false;
        }
    }
}

/* ---- taking up */

static agent_strand *find(const agent_task *task, uint64_t number)
{
    const list_link *head = &task->strands.head;
    for (list_link *link = head->prev; link != head; link = link->prev) {
        agent_strand *strand = CONTAINER_OF(link, agent_strand, link);
        if (strand->number == number) {
            return strand;
        }
    }
    return NULL;
}

bay_err agent_strand_restore(agent_task *self, const agent_link *from, agent_strand **out)
{
    agent_strand *strand = find(self, from->strand);
    if (strand != NULL) { /* only texts share one */
        if (from->cut > 0 || strand->cut > 0) {
            return BAY_SYNTAX;
        }
        strand->refs++;
        *out = strand;
        return BAY_OK;
    }
    strand = strand_new(self, from->strand);
    if (strand == NULL) {
        return BAY_NOMEM;
    }
    strand->pieces = strand->kept_pieces = from->pieces;
    strand->cut = strand->kept_cut = from->cut;
    *out = strand;
    return BAY_OK;
}

bay_err agent_strands_forget(agent_task *self, const a2a_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((i > 0 && pieces[i].strand == pieces[i - 1].strand) ||
            find(self, pieces[i].strand) != NULL) {
            continue;
        }
        agent_strand *strand;
        const agent_link unknown = {.strand = pieces[i].strand, .pieces = 1};
        bay_err err = agent_strand_restore(self, &unknown, &strand);
        if (err != BAY_OK) {
            return err;
        }
        agent_strand_unref(strand);
    }
    return BAY_OK;
}
