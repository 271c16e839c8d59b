#include "evidence/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "evidence/metrics_table.h"

#define MS 1000000ULL

const uint64_t metrics_bounds_ns[METRICS_BUCKETS] = {
    10 * MS,   20 * MS,   50 * MS,    100 * MS,   200 * MS,   500 * MS,    1000 * MS,
    2000 * MS, 5000 * MS, 10000 * MS, 30000 * MS, 60000 * MS, 120000 * MS, 300000 * MS,
};

/* ---- cells ------------------------------------------------------------------------------------ */

/* What a cell is of. */
typedef struct cell_name {
    call_protocol protocol;
    call_kind kind;
    bay_str server;
    bay_str target;
    bay_str method;
} cell_name;

enum { KEY_BYTES = 3 * METRICS_NAME_BYTES + 2 };

static bay_str key_of(const cell_name *name, char room[KEY_BYTES])
{
    char *at = room;
    (void)str_put(&at, name->server);
    *at++ = '\0';
    (void)str_put(&at, name->target);
    *at++ = '\0';
    (void)str_put(&at, name->method);
    return (bay_str){room, (size_t)(at - room)};
}

static metrics_cell *cell_new(const cell_name *name, bay_str key)
{
    metrics_cell *made = mem_zalloc(sizeof(*made) + key.len);
    if (made == NULL) {
        return NULL;
    }
    made->protocol = name->protocol;
    made->kind = name->kind;
    char *at = made->text;
    made->key = str_put(&at, key);
    made->server = (bay_str){made->text, name->server.len};
    made->target = (bay_str){made->server.at + name->server.len + 1, name->target.len};
    made->method = (bay_str){made->target.at + name->target.len + 1, name->method.len};
    return made;
}

static void cell_free(metrics_cell *cell)
{
    if (cell != NULL) {
        mem_free(cell->errors);
        mem_free(cell);
    }
}

static metrics_table *table_new(void)
{
    metrics_table *self = mem_zalloc(sizeof(*self));
    cell_name other = {.server = STR("_other"), .target = STR("_other"), .method = STR("_other")};
    char room[KEY_BYTES];
    if (self == NULL) {
        return NULL;
    }
    map_init(&self->cells, METRICS_CELLS);
    list_init(&self->changed);
    self->other = cell_new(&other, key_of(&other, room));
    if (self->other == NULL) {
        mem_free(self);
        return NULL;
    }
    self->other->is_other = true;
    return self;
}

static void table_free(metrics_table *self)
{
    if (self == NULL) {
        return;
    }
    size_t cursor = 0;
    bay_str key;
    void *cell;
    while (map_next(&self->cells, &cursor, &key, &cell)) {
        cell_free(cell);
    }
    map_fini(&self->cells);
    cell_free(self->other);
    mem_free(self);
}

/* The cell of this name, made when absent; `other` where there are too many, or no memory. */
static metrics_cell *cell_of(metrics_table *self, const cell_name *name, bay_str key)
{
    metrics_cell *found = map_get(&self->cells, key);
    if (found != NULL || self->cells.len >= METRICS_CELLS) {
        return found != NULL ? found : self->other;
    }
    metrics_cell *made = cell_new(name, key);
    if (made == NULL || map_put(&self->cells, made->key, made, NULL) != BAY_OK) {
        cell_free(made);
        return self->other;
    }
    return made;
}

/* Of a cell's ways to fail, the one with this reason; the last one for those that are too many. NULL:
 * no memory. */
static metrics_end *error_of(metrics_cell *cell, call_outcome outcome, bay_str reason)
{
    if (cell->errors == NULL) {
        cell->errors = mem_array(METRICS_ERRORS + 1, sizeof(*cell->errors));
        if (cell->errors == NULL) {
            return NULL;
        }
    }
    for (size_t i = 0; i < cell->error_count; i++) {
        metrics_end *at = &cell->errors[i];
        if (at->outcome == outcome && str_eq(str_of(at->reason), reason)) {
            return at;
        }
    }
    bool is_full = cell->error_count >= METRICS_ERRORS;
    metrics_end *made = &cell->errors[is_full ? METRICS_ERRORS : cell->error_count];
    made->outcome = is_full ? CALL_ERROR : outcome;
    (void)snprintf(made->reason, sizeof(made->reason), "%.*s",
                   BAY_STR(is_full ? STR("_other") : reason));
    cell->error_count += !is_full;
    return made;
}

static void end_add(metrics_end *to, uint64_t duration_ns)
{
    size_t bucket = 0;
    while (bucket < METRICS_BUCKETS && duration_ns > metrics_bounds_ns[bucket]) {
        bucket++;
    }
    to->buckets[bucket]++;
    to->sum_ns += duration_ns;
    to->count++;
}

static void end_move(metrics_end *to, metrics_end *from)
{
    for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
        to->buckets[i] += from->buckets[i];
        from->buckets[i] = 0;
    }
    to->sum_ns += from->sum_ns;
    to->count += from->count;
    from->sum_ns = 0;
    from->count = 0;
}

/* ---- the sum ---------------------------------------------------------------------------------- */

bay_err metrics_new(metrics **out)
{
    metrics *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->table = table_new();
    if (self->table == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        table_free(self->table);
        mem_free(self);
        return BAY_ERR_NOMEM;
    }
    *out = self;
    return BAY_OK;
}

void metrics_free(metrics *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_destroy(&self->lock);
    table_free(self->table);
    mem_free(self);
}

static uint64_t count_of(const metrics_cell *cell)
{
    uint64_t count = cell->results.count;
    for (size_t i = 0; cell->errors != NULL && i <= METRICS_ERRORS; i++) {
        count += cell->errors[i].count;
    }
    return count;
}

/* What no memory is there for stays in `from` until the next time. */
static void cell_move(metrics_table *to, metrics_cell *from)
{
    cell_name name = {from->protocol, from->kind, from->server, from->target, from->method};
    metrics_cell *cell = from->is_other ? to->other : cell_of(to, &name, from->key);
    to->dropped += cell == to->other ? count_of(from) : 0;
    end_move(&cell->results, &from->results);
    for (size_t i = 0; from->errors != NULL && i <= METRICS_ERRORS; i++) {
        metrics_end *one = &from->errors[i];
        metrics_end *sum =
            one->count > 0 ? error_of(cell, one->outcome, str_of(one->reason)) : NULL;
        if (sum != NULL) {
            end_move(sum, one);
        }
    }
}

/* ---- a lane ----------------------------------------------------------------------------------- */

bay_err metrics_lane_open(metrics_lane *self, metrics *of)
{
    *self = (metrics_lane){.of = of, .table = table_new()};
    return self->table != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

/* Calls of a name that was resolved have it; those of methods that name nothing, or nothing that
 * there is, have the server alone. A URI is no label. */
static cell_name name_of(const evidence_record *record)
{
    const call_context *call = record->call;
    bool is_named = call->kind == CALL_TOOL || call->kind == CALL_PROMPT;
    return (cell_name){
        .protocol = call->protocol,
        .kind = call->kind,
        .server = shown_whole(str_head(record->server, METRICS_NAME_BYTES)),
        .target = is_named ? shown_whole(str_head(record->target, METRICS_NAME_BYTES)) : STR(""),
        .method = call->kind == CALL_EXTENSION ? STR("_other")
                                               : str_head(call->method, METRICS_NAME_BYTES),
    };
}

void metrics_lane_add(metrics_lane *self, const evidence_record *record)
{
    metrics_table *table = self->table;
    char room[RECORD_REASON_BYTES];
    char key[KEY_BYTES];
    if (table == NULL) {
        return;
    }
    cell_name name = name_of(record);
    metrics_cell *cell = cell_of(table, &name, key_of(&name, key));
    if (!cell->is_changed) {
        cell->is_changed = true;
        list_push(&table->changed, &cell->link);
    }
    if (record->outcome == CALL_TURNED_AWAY) {
        table->refused[record->call->refused_for]++;
    }
    metrics_end *end = &cell->results;
    if (record->outcome != CALL_RESULT) {
        bay_str reason = evidence_reason(record, room);
        end = error_of(cell, record->outcome,
                       reason.len > 0 ? reason : str_of(evidence_outcome_text(record->outcome)));
    }
    if (end != NULL) {
        end_add(end, record->duration_ns);
    }
}

/* With the lock of the sum. */
static void lane_move(metrics_lane *self)
{
    metrics_table *from = self->table;
    metrics *to = self->of;
    for (list_link *link; (link = list_pop(&from->changed)) != NULL;) {
        metrics_cell *cell = CONTAINER_OF(link, metrics_cell, link);
        cell->is_changed = false;
        cell_move(to->table, cell);
    }
    for (size_t i = 0; i < CALL_REASONS; i++) {
        to->table->refused[i] += from->refused[i];
        from->refused[i] = 0;
    }
}

/* A loop does not wait for a text that is being written: it flushes the next time. */
void metrics_lane_flush(metrics_lane *self)
{
    bool is_due = self->table != NULL && !list_is_empty(&self->table->changed);
    if (is_due && pthread_mutex_trylock(&self->of->lock) == 0) {
        lane_move(self);
        pthread_mutex_unlock(&self->of->lock);
    }
}

void metrics_lane_close(metrics_lane *self)
{
    if (self->table == NULL) {
        return;
    }
    pthread_mutex_lock(&self->of->lock);
    lane_move(self);
    pthread_mutex_unlock(&self->of->lock);
    table_free(self->table);
    *self = (metrics_lane){0};
}
