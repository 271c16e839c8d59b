/* Implements each operation for every engine: conflicts, expiry, leases, trimming, limits.
 *
 * Invariants: totals count the cells of all spaces except SPACE_STREAM, expired ones included. A
 * stream's cell holds the exact number of its events and exists while it has any. */
#include "base/err.h"
#include "base/str.h"
#include "store/back.h"

#define SWEEP_CELLS 512 /* of one operation, so that no operation takes long */
#define SEQUENCE_BYTES 8

static bool has_expired(const store_cell *cell, uint64_t now_ms)
{
    return cell->expires_at_ms != 0 && cell->expires_at_ms <= now_ms;
}

static uint64_t bytes_of(const store_cell *cell)
{
    return (uint64_t)cell->scope.len + cell->key.len + cell->value.len;
}

static uint64_t less(uint64_t from, uint64_t amount) /* a damaged file must not wrap it around */
{
    return from > amount ? from - amount : 0;
}

static void write_number(char *at, uint64_t number)
{
    for (int i = 7; i >= 0; i--, number >>= 8) {
        at[i] = (char)(number & 255);
    }
}

static uint64_t read_number(const char *at)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number = number << 8 | (unsigned char)at[i];
    }
    return number;
}

/* --- the numbers of a stream ------------------------------------------------------------------ */

typedef struct stream_size {
    uint64_t events;
    uint64_t bytes; /* of values */
} stream_size;

static bay_err read_size(store_engine *engine, bay_str stream, stream_size *out)
{
    store_cell cell;
    bay_err err = engine->calls->find(engine, SPACE_STREAM, stream, STR("size"), &cell);
    if (err == BAY_ERR_NOT_FOUND) {
        *out = (stream_size){0};
        return BAY_OK;
    }
    if (err == BAY_OK && cell.value.len != 16) {
        return BAY_ERR_IO; /* not in our format */
    }
    if (err == BAY_OK) {
        *out = (stream_size){read_number(cell.value.at), read_number(cell.value.at + 8)};
    }
    return err;
}

static bay_err write_size(store_engine *engine, bay_str stream, stream_size size)
{
    if (size.events == 0) {
        return engine->calls->erase(engine, SPACE_STREAM, stream, STR("size"));
    }
    char value[16];
    write_number(value, size.events);
    write_number(value + 8, size.bytes);
    store_cell cell = {SPACE_STREAM, stream, STR("size"), {value, sizeof(value)}, 0, 0};
    return engine->calls->write(engine, &cell);
}

/* --- changing cells --------------------------------------------------------------------------- */

/* A cell's name and size, kept while other calls of the engine are made. */
typedef struct cell_copy {
    store_space space;
    size_t scope_len;
    size_t key_len;
    size_t value_len;
    uint64_t bytes;
    bool is_found;
    char scope[STORE_TABLE_BYTES];
    char key[STORE_CELL_KEY_BYTES];
} cell_copy;

static bay_err copy_name(cell_copy *to, const store_cell *cell)
{
    if (cell->scope.len > sizeof(to->scope) || cell->key.len > sizeof(to->key)) {
        return BAY_ERR_IO; /* not in our format */
    }
    to->space = cell->space;
    to->scope_len = cell->scope.len;
    to->key_len = cell->key.len;
    to->value_len = cell->value.len;
    to->bytes = bytes_of(cell);
    to->is_found = true;
    memcpy(to->scope, cell->scope.at, cell->scope.len);
    memcpy(to->key, cell->key.at, cell->key.len);
    return BAY_OK;
}

static bay_err erase(store_engine *engine, const cell_copy *cell);

/* The name of a part's cell; with an empty name, the common prefix of a row's parts. */
typedef struct part_key {
    size_t len;
    char at[STORE_CELL_KEY_BYTES];
} part_key;

static bay_str part_key_of(part_key *self, bay_str row, bay_str name)
{
    self->at[0] = (char)(row.len >> 8);
    self->at[1] = (char)(row.len & 255);
    memcpy(self->at + 2, row.at, row.len);
    if (name.len > 0) {
        memcpy(self->at + 2 + row.len, name.at, name.len);
    }
    self->len = 2 + row.len + name.len;
    return (bay_str){self->at, self->len};
}

typedef struct part_finder {
    bay_str prefix;
    cell_copy found;
} part_finder;

static bool visit_part(void *user, const store_cell *cell)
{
    part_finder *self = user;
    if (str_starts(cell->key, self->prefix)) {
        err_ignore(copy_name(&self->found, cell)); /* not in our format: treated as not found */
    }
    return false;
}

/* Removes all parts of a row whose names have this prefix. */
static bay_err drop_parts(store_engine *engine, bay_str scope, bay_str row, bay_str name)
{
    part_key key;
    part_finder finder = {.prefix = part_key_of(&key, row, name)};
    for (;;) {
        finder.found.is_found = false;
        bay_err err =
            engine->calls->scan(engine, SPACE_PART, scope, finder.prefix, visit_part, &finder);
        if (err == BAY_OK && finder.found.is_found) {
            err = erase(engine, &finder.found);
        } else if (err == BAY_OK) {
            return BAY_OK;
        }
        if (err != BAY_OK) {
            return err;
        }
    }
}

static bay_err erase(store_engine *engine, const cell_copy *cell)
{
    bay_str scope = {cell->scope, cell->scope_len};
    bay_err err =
        engine->calls->erase(engine, cell->space, scope, (bay_str){cell->key, cell->key_len});
    if (err != BAY_OK || cell->space == SPACE_STREAM) {
        return err;
    }
    engine->totals.rows = less(engine->totals.rows, 1);
    engine->totals.bytes = less(engine->totals.bytes, cell->bytes);
    if (cell->space == SPACE_ROW) {
        return drop_parts(engine, scope, (bay_str){cell->key, cell->key_len}, (bay_str){NULL, 0});
    }
    if (cell->space != SPACE_EVENT) {
        return BAY_OK;
    }
    stream_size size;
    err = read_size(engine, scope, &size);
    if (err == BAY_OK && size.events > 0) {
        size.events--;
        size.bytes = less(size.bytes, cell->value_len);
        err = write_size(engine, scope, size);
    }
    return err;
}

static bay_err sweep(store_engine *engine, uint64_t now_ms, bool *out_has_more)
{
    for (int i = 0; i < SWEEP_CELLS; i++) {
        store_cell cell;
        cell_copy copy;
        bay_err err = engine->calls->soonest(engine, &cell);
        if (err == BAY_ERR_NOT_FOUND || (err == BAY_OK && !has_expired(&cell, now_ms))) {
            *out_has_more = false;
            return BAY_OK;
        }
        if (err == BAY_OK) {
            err = copy_name(&copy, &cell);
        }
        if (err == BAY_OK) {
            err = erase(engine, &copy);
        }
        if (err != BAY_OK) {
            return err;
        }
    }
    *out_has_more = true;
    return BAY_OK;
}

static bool has_room(const store_engine *engine, uint64_t bytes, uint64_t replaced_bytes,
                     bool is_replacing)
{
    uint64_t rows = is_replacing ? less(engine->totals.rows, 1) : engine->totals.rows;
    uint64_t held = less(engine->totals.bytes, replaced_bytes);
    return rows < engine->bounds.rows && held <= engine->bounds.total_bytes &&
           bytes <= engine->bounds.total_bytes - held;
}

static bay_err replaced_of(store_engine *engine, const store_cell *cell, bool *out_is_there,
                           uint64_t *out_bytes)
{
    store_cell old;
    bay_err err = engine->calls->find(engine, cell->space, cell->scope, cell->key, &old);
    *out_is_there = err == BAY_OK;
    *out_bytes = err == BAY_OK ? bytes_of(&old) : 0;
    return err == BAY_ERR_NOT_FOUND ? BAY_OK : err;
}

/* Writes a cell within the limits. Version 0: assign a new one. */
static bay_err place(store_engine *engine, store_cell *cell, uint64_t now_ms)
{
    bool is_replacing;
    uint64_t replaced;
    bay_err err = replaced_of(engine, cell, &is_replacing, &replaced);
    if (err == BAY_OK && !has_room(engine, bytes_of(cell), replaced, is_replacing)) {
        bool has_more;
        err = sweep(engine, now_ms, &has_more);
        if (err == BAY_OK) { /* the sweep may have removed it */
            err = replaced_of(engine, cell, &is_replacing, &replaced);
        }
        if (err == BAY_OK && !has_room(engine, bytes_of(cell), replaced, is_replacing)) {
            return BAY_ERR_LIMIT;
        }
    }
    bool is_new = cell->version == 0;
    if (is_new) {
        cell->version = engine->totals.counter + 1;
    }
    if (err == BAY_OK) {
        err = engine->calls->write(engine, cell);
    }
    if (err != BAY_OK) {
        return err;
    }
    engine->totals.counter += is_new;
    engine->totals.rows += !is_replacing;
    engine->totals.bytes = less(engine->totals.bytes, replaced) + bytes_of(cell);
    return BAY_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct collector {
    store_op *op;
    store_row *rows;
    bay_str prefix;
    bay_str after;
    size_t hidden; /* bytes of a key's prefix that results omit */
    size_t bytes;
} collector;

static void collect(collector *self, const store_cell *cell)
{
    store_op *op = self->op;
    store_row *row = &self->rows[op->result.count];
    bay_err err = arena_dup(&op->memory, cell->value, &row->value);
    if (err == BAY_OK && cell->space != SPACE_EVENT) {
        err = arena_dup(&op->memory, str_from(cell->key, self->hidden), &row->key);
    }
    if (err != BAY_OK) {
        op->result.err = op->memory.is_full ? BAY_ERR_LIMIT : BAY_ERR_NOMEM;
        return;
    }
    row->version = cell->version;
    row->expires_at_ms = cell->expires_at_ms;
    self->bytes += cell->key.len + cell->value.len;
    op->result.count++;
}

static bool visit_for_reading(void *user, const store_cell *cell)
{
    collector *self = user;
    store_result *result = &self->op->result;
    if (!str_starts(cell->key, self->prefix)) {
        return false;
    }
    if (has_expired(cell, self->op->now_ms) ||
        (self->after.len > 0 && str_eq(cell->key, self->after))) {
        return true;
    }
    size_t bytes = self->bytes + cell->key.len + cell->value.len;
    if (result->count == self->op->limit || (result->count > 0 && bytes > STORE_READ_BYTES)) {
        result->has_more = true;
        return false;
    }
    collect(self, cell);
    return result->err == BAY_OK;
}

/* Twice the needed size: an arena counts its chunks, not their content. */
static void make_memory(store_engine *engine, store_op *op, size_t rows)
{
    size_t bytes = STORE_READ_BYTES + (size_t)engine->bounds.value_bytes +
                   rows * (sizeof(store_row) + STORE_KEY_BYTES);
    arena_init(&op->memory, bytes * 2 + 65536);
}

static void list_cells(store_engine *engine, store_op *op, store_space space, collector all,
                       bay_str from)
{
    all.op = op;
    make_memory(engine, op, op->limit);
    all.rows = arena_array(&op->memory, op->limit, sizeof(store_row));
    if (all.rows == NULL) {
        op->result.err = BAY_ERR_NOMEM;
        return;
    }
    op->result.rows = all.rows;
    bay_err err = engine->calls->scan(engine, space, op->scope, from, visit_for_reading, &all);
    if (err != BAY_OK) {
        op->result.err = err;
    }
}

static void run_scan(store_engine *engine, store_op *op)
{
    bay_str from = str_cmp(op->value, op->key) > 0 ? op->value : op->key;
    list_cells(engine, op, SPACE_ROW, (collector){.prefix = op->key, .after = op->value}, from);
}

static void run_read(store_engine *engine, store_op *op)
{
    if (op->after == UINT64_MAX) {
        return;
    }
    char from[SEQUENCE_BYTES];
    write_number(from, op->after + 1);
    list_cells(engine, op, SPACE_EVENT, (collector){.op = op}, (bay_str){from, sizeof(from)});
}

/* Adds a copy of one cell to the result. */
static void show(store_engine *engine, store_op *op, const store_cell *cell)
{
    collector one = {.op = op, .rows = &op->one};
    make_memory(engine, op, 1);
    collect(&one, cell);
    op->result.rows = &op->one;
    op->result.version = cell->version;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The cell that an operation names; BAY_ERR_NOT_FOUND also for an expired one. */
static bay_err find_valid(store_engine *engine, const store_op *op, store_space space,
                          store_cell *out)
{
    bay_err err = engine->calls->find(engine, space, op->scope, op->key, out);
    return err == BAY_OK && has_expired(out, op->now_ms) ? BAY_ERR_NOT_FOUND : err;
}

static void run_get(store_engine *engine, store_op *op)
{
    store_cell cell;
    op->result.err = find_valid(engine, op, SPACE_ROW, &cell);
    if (op->result.err == BAY_OK) {
        show(engine, op, &cell);
    }
}

static void run_parts(store_engine *engine, store_op *op)
{
    store_cell cell;
    part_key all;
    part_key after;
    op->result.err = find_valid(engine, op, SPACE_ROW, &cell);
    if (op->result.err == BAY_OK) {
        bay_str prefix = part_key_of(&all, op->key, (bay_str){NULL, 0});
        bay_str from = part_key_of(&after, op->key, op->value);
        collector parts = {.prefix = prefix, .hidden = prefix.len};
        parts.after = op->value.len > 0 ? from : parts.after;
        list_cells(engine, op, SPACE_PART, parts, from);
    }
}

/* The current version, 0: none; BAY_ERR_DUPLICATE or BAY_ERR_STATE if it is not the expected one.
 */
static bay_err expect(store_engine *engine, store_op *op, uint64_t *out_version,
                      bool *out_is_expired)
{
    store_cell cell;
    bay_err err = engine->calls->find(engine, SPACE_ROW, op->scope, op->key, &cell);
    if (err != BAY_OK && err != BAY_ERR_NOT_FOUND) {
        return err;
    }
    *out_is_expired = err == BAY_OK && has_expired(&cell, op->now_ms);
    *out_version = err == BAY_OK && !*out_is_expired ? cell.version : 0;
    if (op->expected == STORE_ANY || op->expected == *out_version) {
        return BAY_OK;
    }
    return op->expected == STORE_ABSENT ? BAY_ERR_DUPLICATE : BAY_ERR_STATE;
}

static bay_err place_part(store_engine *engine, const store_op *op, const store_part *part)
{
    part_key key;
    store_cell cell = {SPACE_PART,  op->scope, part_key_of(&key, op->key, part->name),
                       part->value, 0,         0};
    return place(engine, &cell, op->now_ms);
}

static bay_err erase_part(store_engine *engine, const store_op *op, const store_part *part)
{
    part_key key;
    store_cell cell;
    cell_copy copy;
    bay_err err = engine->calls->find(engine, SPACE_PART, op->scope,
                                      part_key_of(&key, op->key, part->name), &cell);
    if (err == BAY_OK) {
        err = copy_name(&copy, &cell);
    }
    return err == BAY_OK ? erase(engine, &copy) : err;
}

/* Writes all of a put, or nothing: its parts first, so that the row never lacks them. */
static bay_err place_row(store_engine *engine, const store_op *op, store_cell *cell)
{
    size_t placed = 0;
    bay_err err = BAY_OK;
    while (err == BAY_OK && placed < op->part_count) {
        err = place_part(engine, op, &op->parts[placed]);
        placed += err == BAY_OK;
    }
    if (err == BAY_OK) {
        err = place(engine, cell, op->now_ms);
    }
    for (size_t i = 0; err != BAY_OK && i < placed; i++) {
        /* In memory this cannot fail; in a file the whole group is rolled back. */
        err_ignore(erase_part(engine, op, &op->parts[i]));
    }
    for (size_t i = 0; err == BAY_OK && i < op->dropped_count; i++) {
        err = drop_parts(engine, op->scope, op->key, op->dropped[i]);
    }
    return err;
}

/* Removes the row that an operation names, with its parts. */
static bay_err erase_row(store_engine *engine, const store_op *op)
{
    store_cell cell;
    cell_copy copy;
    bay_err err = engine->calls->find(engine, SPACE_ROW, op->scope, op->key, &cell);
    if (err == BAY_OK) {
        err = copy_name(&copy, &cell);
    }
    return err == BAY_OK ? erase(engine, &copy) : err;
}

static void run_put(store_engine *engine, store_op *op)
{
    bool is_expired = false;
    op->result.err = expect(engine, op, &op->result.version, &is_expired);
    /* The expired row's parts must not become the new row's, and no sweep may find it after this
     * put. */
    if (op->result.err == BAY_OK && is_expired) {
        op->result.err = erase_row(engine, op);
    }
    if (op->result.err != BAY_OK) {
        return;
    }
    store_cell cell = {SPACE_ROW, op->scope, op->key, op->value, 0, op->expires_at_ms};
    op->result.err = place_row(engine, op, &cell);
    if (op->result.err == BAY_OK) {
        op->result.version = cell.version;
    }
}

static void run_remove(store_engine *engine, store_op *op)
{
    bool is_expired = false;
    op->result.err = expect(engine, op, &op->result.version, &is_expired);
    if (op->result.err != BAY_OK) {
        return;
    }
    op->result.err = is_expired ? BAY_ERR_NOT_FOUND : erase_row(engine, op);
}

/* --- leases ----------------------------------------------------------------------------------- */

static void run_lease(store_engine *engine, store_op *op)
{
    store_cell held;
    bay_err err = find_valid(engine, op, SPACE_LEASE, &held);
    bool is_held = err == BAY_OK;
    bool is_ours = is_held && str_eq(held.value, op->value);
    if (!is_held && err != BAY_ERR_NOT_FOUND) {
        op->result.err = err;
        return;
    }
    if (is_held && !is_ours) {
        show(engine, op, &held);
        if (op->result.err == BAY_OK) {
            op->result.err = op->kind == STORE_CLAIM ? BAY_ERR_BUSY : BAY_ERR_STATE;
        }
        return;
    }
    if (!is_held && op->kind != STORE_CLAIM) {
        op->result.err = BAY_ERR_STATE;
        return;
    }
    if (op->kind == STORE_RELEASE) {
        cell_copy copy;
        err = copy_name(&copy, &held);
        op->result.err = err == BAY_OK ? erase(engine, &copy) : err;
        return;
    }
    store_cell cell = {SPACE_LEASE,      op->scope, op->key, op->value, is_ours ? held.version : 0,
                       op->expires_at_ms};
    op->result.err = place(engine, &cell, op->now_ms);
    op->one = (store_row){op->key, op->value, cell.version, cell.expires_at_ms};
    op->result.rows = &op->one;
    op->result.count = 1;
    op->result.version = cell.version;
}

/* --- streams ---------------------------------------------------------------------------------- */

static bool visit_first(void *user, const store_cell *cell)
{
    /* A name in another format stays unset: the caller then returns BAY_ERR_IO. */
    err_ignore(copy_name(user, cell));
    return false;
}

/* Removes the oldest events until one of `bytes` fits. */
static bay_err trim(store_engine *engine, const store_op *op)
{
    for (;;) {
        stream_size size;
        bay_err err = read_size(engine, op->scope, &size);
        if (err != BAY_OK) {
            return err;
        }
        bool is_full =
            size.events >= op->keep_events || size.bytes > op->keep_bytes - op->value.len;
        if (size.events == 0 || !is_full) {
            return BAY_OK;
        }
        cell_copy oldest = {0};
        err =
            engine->calls->scan(engine, SPACE_EVENT, op->scope, (bay_str){0}, visit_first, &oldest);
        if (err == BAY_OK) {
            err = oldest.is_found ? erase(engine, &oldest) : BAY_ERR_IO;
        }
        if (err != BAY_OK) {
            return err;
        }
    }
}

static void run_append(store_engine *engine, store_op *op)
{
    op->result.err = trim(engine, op);
    if (op->result.err != BAY_OK) {
        return;
    }
    char key[SEQUENCE_BYTES];
    write_number(key, engine->totals.counter + 1);
    store_cell cell = {SPACE_EVENT, op->scope, {key, sizeof(key)}, op->value, 0, op->expires_at_ms};
    bay_err err = place(engine, &cell, op->now_ms);
    stream_size size;
    if (err == BAY_OK) {
        err = read_size(engine, op->scope, &size);
    } else {
        op->result.err = err;
        return;
    }
    if (err == BAY_OK) {
        size.events++;
        size.bytes += op->value.len;
        err = write_size(engine, op->scope, size);
    }
    if (err != BAY_OK) { /* without its count the event must not exist */
        bay_err erased = engine->calls->erase(engine, SPACE_EVENT, op->scope, cell.key);
        engine->totals.rows -= erased == BAY_OK;
        engine->totals.bytes -= erased == BAY_OK ? bytes_of(&cell) : 0;
    }
    op->result.err = err;
    op->result.version = err == BAY_OK ? cell.version : 0;
}

/* --- running ---------------------------------------------------------------------------------- */

static void run_sweep(store_engine *engine, store_op *op)
{
    op->result.err = sweep(engine, op->now_ms, &op->result.has_more);
}

void store_rules_run(store_engine *engine, store_op *op)
{
    static void (*const runs[])(store_engine * engine, store_op * op) = {
        [STORE_GET] = run_get,       [STORE_PUT] = run_put,       [STORE_REMOVE] = run_remove,
        [STORE_SCAN] = run_scan,     [STORE_CLAIM] = run_lease,   [STORE_RENEW] = run_lease,
        [STORE_RELEASE] = run_lease, [STORE_APPEND] = run_append, [STORE_READ] = run_read,
        [STORE_SWEEP] = run_sweep,   [STORE_PARTS] = run_parts,
    };
    store_rules_fail(op, BAY_OK);
    runs[op->kind](engine, op);
    bay_err err = op->result.err;
    /* A refusal reports a lease's holder; other failures return no rows. */
    if (err != BAY_OK && err != BAY_ERR_BUSY && err != BAY_ERR_STATE) {
        op->result.rows = NULL;
        op->result.count = 0;
        op->result.has_more = false;
        op->result.version = err == BAY_ERR_DUPLICATE ? op->result.version : 0;
    }
    op->result.held_rows = engine->totals.rows;
    op->result.held_bytes = engine->totals.bytes;
}

void store_rules_fail(store_op *op, bay_err err)
{
    arena_fini(&op->memory);
    op->result = (store_result){.err = err};
}
