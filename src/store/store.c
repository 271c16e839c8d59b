/* The front of every store: checks and copies an operation's inputs, limits the waiting operations,
 * and completes each exactly once.
 *
 *     open ──store_close──> closing ──back end has ended──> closed ──store_free──> freed
 *
 * Invariants
 * - An operation is in `open` from its start until just before its `done`.
 * - While an operation is open, or the store is closing, the loop is kept running for the end.
 * - A sweep is an ordinary operation, except for the limits: it has no user and no input. */
#include "store/store.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/back.h"

/* --- completing ------------------------------------------------------------------------------- */

static bool is_counted(const store_op *op)
{
    return op->kind != STORE_SWEEP;
}

static void op_end(store *self, store_op *op)
{
    list_remove(&op->link);
    if (is_counted(op)) {
        self->pending--;
        self->pending_bytes -= op->len;
    }
    loop_release(self->loop);
    op->done(op->user, &op->result); /* `self` may now be closing, but is not freed */
    arena_fini(&op->memory);
    mem_free(op);
}

void store_op_done(store *self, store_op *op)
{
    if (!self->is_closing) {
        op_end(self, op);
    }
}

void store_back_closed(store *self)
{
    list_link *link;
    while ((link = list_first(&self->open)) != NULL) {
        store_op *op = CONTAINER_OF(link, store_op, link);
        store_rules_fail(op, BAY_ERR_CANCELLED);
        op_end(self, op);
    }
    self->is_closed = true;
    loop_release(self->loop);
    if (self->closed != NULL) {
        self->closed(self->closed_user);
    }
}

bool store_op_writes(const store_op *op)
{
    return op->kind != STORE_GET && op->kind != STORE_SCAN && op->kind != STORE_READ &&
           op->kind != STORE_PARTS && op->kind != STORE_SWEEP;
}

/* --- starting --------------------------------------------------------------------------------- */

static uint64_t now_of(const store *self)
{
    return self->options.now != NULL ? self->options.now(self->options.now_user) : loop_time_ms();
}

/* The lists of parts precede the bytes. */
static size_t lists_of(const store_op *op)
{
    return op->part_count * sizeof(store_part) + op->dropped_count * sizeof(bay_str);
}

static size_t bytes_of(const store_op *op)
{
    size_t len = op->scope.len + op->key.len + op->value.len;
    for (size_t i = 0; i < op->part_count; i++) {
        len += op->parts[i].name.len + op->parts[i].value.len;
    }
    for (size_t i = 0; i < op->dropped_count; i++) {
        len += op->dropped[i].len;
    }
    return len;
}

static bay_str take_in(store_op *op, bay_str text)
{
    char *at = op->bytes + lists_of(op) + op->len;
    if (text.len > 0) {
        memcpy(at, text.at, text.len);
    }
    op->len += text.len;
    return (bay_str){at, text.len};
}

static void take_parts(store_op *op, const store_op *plan)
{
    if (op->part_count + op->dropped_count == 0) {
        return;
    }
    store_part *parts = (store_part *)(void *)op->bytes;
    bay_str *dropped = (bay_str *)(void *)(parts + op->part_count);
    for (size_t i = 0; i < op->part_count; i++) {
        parts[i].name = take_in(op, plan->parts[i].name);
        parts[i].value = take_in(op, plan->parts[i].value);
    }
    for (size_t i = 0; i < op->dropped_count; i++) {
        dropped[i] = take_in(op, plan->dropped[i]);
    }
    op->parts = parts;
    op->dropped = dropped;
}

static bool is_name(bay_str text, size_t most)
{
    return text.len >= 1 && text.len <= most;
}

/* Copies the operation that `plan` describes and passes it to the back end. */
static bay_err start(store *self, const store_op *plan, store_done done, void *user)
{
    size_t len = bytes_of(plan);
    if (self->is_closing) {
        return BAY_ERR_CLOSED;
    }
    /* The first is always accepted: one value may be larger than the limit of waiting bytes. */
    if (is_counted(plan) && self->pending > 0 &&
        (self->pending >= self->options.pending ||
         self->pending_bytes + len > self->options.pending_bytes)) {
        return BAY_ERR_BUSY;
    }
    store_op *op = mem_alloc(sizeof(*op) + lists_of(plan) + len);
    if (op == NULL) {
        return BAY_ERR_NOMEM;
    }
    *op = *plan;
    op->scope = take_in(op, plan->scope);
    op->key = take_in(op, plan->key);
    op->value = take_in(op, plan->value);
    take_parts(op, plan);
    self->written_bytes += store_op_writes(op) ? len : 0;
    op->now_ms = now_of(self);
    op->done = done;
    op->user = user;
    /* Limits times to what a signed column can hold. */
    if (op->kind == STORE_CLAIM || op->kind == STORE_RENEW) {
        bool is_endless = op->expires_at_ms > (uint64_t)INT64_MAX - op->now_ms;
        op->expires_at_ms = is_endless ? INT64_MAX : op->now_ms + op->expires_at_ms;
    } else if (op->expires_at_ms > INT64_MAX) {
        op->expires_at_ms = INT64_MAX;
    }
    if (is_counted(op)) {
        self->pending++;
        self->pending_bytes += len;
    }
    list_push(&self->open, &op->link);
    loop_hold(self->loop);
    self->back->start(self, op);
    return BAY_OK;
}

static bay_err start_on_key(store *self, const store_op *plan, store_done done, void *user)
{
    if (!is_name(plan->scope, STORE_TABLE_BYTES) || !is_name(plan->key, STORE_KEY_BYTES)) {
        return BAY_ERR_INVALID;
    }
    return start(self, plan, done, user);
}

bay_err store_get(store *self, bay_str table, bay_str key, store_done done, void *user)
{
    store_op plan = {.kind = STORE_GET, .scope = table, .key = key};
    return start_on_key(self, &plan, done, user);
}

static bay_err check_parts(const store *self, const store_put_request *request)
{
    if (request->part_count > STORE_PUT_PARTS ||
        request->dropped_count > STORE_PUT_PARTS - request->part_count) {
        return BAY_ERR_INVALID;
    }
    for (size_t i = 0; i < request->part_count; i++) {
        if (!is_name(request->parts[i].name, STORE_PART_BYTES)) {
            return BAY_ERR_INVALID;
        }
        if (request->parts[i].value.len > self->options.value_bytes) {
            return BAY_ERR_LIMIT;
        }
    }
    for (size_t i = 0; i < request->dropped_count; i++) {
        if (!is_name(request->dropped[i], STORE_PART_BYTES)) {
            return BAY_ERR_INVALID;
        }
    }
    return BAY_OK;
}

bay_err store_put(store *self, const store_put_request *request, store_done done, void *user)
{
    store_op plan = {.kind = STORE_PUT,
                     .scope = request->table,
                     .key = request->key,
                     .value = request->value,
                     .expires_at_ms = request->expires_at_ms,
                     .expected = request->expected,
                     .is_relaxed = request->is_relaxed,
                     .parts = request->parts,
                     .part_count = request->part_count,
                     .dropped = request->dropped,
                     .dropped_count = request->dropped_count};
    if (request->value.len > self->options.value_bytes) {
        return BAY_ERR_LIMIT;
    }
    bay_err err = check_parts(self, request);
    if (err != BAY_OK) {
        return err;
    }
    return start_on_key(self, &plan, done, user);
}

bay_err store_remove(store *self, bay_str table, bay_str key, uint64_t expected, store_done done,
                     void *user)
{
    store_op plan = {.kind = STORE_REMOVE, .scope = table, .key = key, .expected = expected};
    if (expected == STORE_ABSENT) {
        return BAY_ERR_INVALID;
    }
    return start_on_key(self, &plan, done, user);
}

bay_err store_scan(store *self, bay_str table, bay_str prefix, bay_str after, size_t limit,
                   store_done done, void *user)
{
    store_op plan = {
        .kind = STORE_SCAN, .scope = table, .key = prefix, .value = after, .limit = limit};
    if (!is_name(table, STORE_TABLE_BYTES) || prefix.len > STORE_KEY_BYTES ||
        after.len > STORE_KEY_BYTES || limit < 1 || limit > STORE_READ_ROWS) {
        return BAY_ERR_INVALID;
    }
    return start(self, &plan, done, user);
}

bay_err store_parts(store *self, bay_str table, bay_str key, bay_str after, size_t limit,
                    store_done done, void *user)
{
    store_op plan = {
        .kind = STORE_PARTS, .scope = table, .key = key, .value = after, .limit = limit};
    if (after.len > STORE_PART_BYTES || limit < 1 || limit > STORE_READ_ROWS) {
        return BAY_ERR_INVALID;
    }
    return start_on_key(self, &plan, done, user);
}

static bay_err start_lease(store *self, store_kind kind, store_op plan, store_done done, void *user)
{
    plan.kind = kind;
    plan.is_relaxed = true;
    if (!is_name(plan.value, STORE_OWNER_BYTES) ||
        (kind != STORE_RELEASE && plan.expires_at_ms == 0)) {
        return BAY_ERR_INVALID;
    }
    return start_on_key(self, &plan, done, user);
}

bay_err store_claim(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user)
{
    store_op plan = {.scope = table, .key = key, .value = owner, .expires_at_ms = ttl_ms};
    return start_lease(self, STORE_CLAIM, plan, done, user);
}

bay_err store_renew(store *self, bay_str table, bay_str key, bay_str owner, uint64_t ttl_ms,
                    store_done done, void *user)
{
    store_op plan = {.scope = table, .key = key, .value = owner, .expires_at_ms = ttl_ms};
    return start_lease(self, STORE_RENEW, plan, done, user);
}

bay_err store_release(store *self, bay_str table, bay_str key, bay_str owner, store_done done,
                      void *user)
{
    store_op plan = {.scope = table, .key = key, .value = owner};
    return start_lease(self, STORE_RELEASE, plan, done, user);
}

bay_err store_append(store *self, const store_append_request *request, store_done done, void *user)
{
    store_op plan = {
        .kind = STORE_APPEND,
        .scope = request->stream,
        .value = request->value,
        .expires_at_ms = request->expires_at_ms,
        .keep_events = request->keep_events > 0 ? request->keep_events : UINT64_MAX,
        .keep_bytes = request->keep_bytes > 0 ? request->keep_bytes : UINT64_MAX,
        .is_relaxed = request->is_relaxed,
    };
    if (!is_name(request->stream, STORE_TABLE_BYTES)) {
        return BAY_ERR_INVALID;
    }
    if (request->value.len > self->options.value_bytes || request->value.len > plan.keep_bytes) {
        return BAY_ERR_LIMIT;
    }
    return start(self, &plan, done, user);
}

bay_err store_read(store *self, bay_str stream, uint64_t after, size_t limit, store_done done,
                   void *user)
{
    store_op plan = {.kind = STORE_READ, .scope = stream, .after = after, .limit = limit};
    if (!is_name(stream, STORE_TABLE_BYTES) || limit < 1 || limit > STORE_READ_ROWS) {
        return BAY_ERR_INVALID;
    }
    return start(self, &plan, done, user);
}

/* --- sweeping --------------------------------------------------------------------------------- */

static void start_sweep(void *argument);

static void on_swept(void *user, const store_result *result)
{
    store *self = user;
    if (self->is_closing) {
        return;
    }
    if (result->err != BAY_OK) {
        LOG(LOG_WARN, "store", "a sweep failed: %s", bay_err_text(result->err));
    }
    uint64_t after_ms = result->err == BAY_OK && result->has_more ? 0 : self->options.sweep_ms;
    /* Starting the first timer reserved its place. If that is lost, expired rows are still
     * invisible and are removed when a limit is reached. */
    if (loop_timer_start(self->loop, &self->sweep_timer, after_ms) != BAY_OK) {
        LOG(LOG_WARN, "store", "no memory for the sweeps: they end");
    }
}

static void start_sweep(void *argument)
{
    store *self = argument;
    store_op plan = {.kind = STORE_SWEEP};
    bay_err err = start(self, &plan, on_swept, self);
    if (err != BAY_OK) {
        on_swept(self, &(store_result){.err = err});
    }
}

/* --- opening and closing ---------------------------------------------------------------------- */

static uint64_t or_default(uint64_t given, uint64_t otherwise)
{
    return given != 0 ? given : otherwise;
}

store_options store_options_of(const store_options *options)
{
    static const store_options none;
    store_options filled = options != NULL ? *options : none;
    filled.rows = or_default(filled.rows, STORE_ROWS);
    filled.value_bytes = or_default(filled.value_bytes, STORE_VALUE_BYTES);
    filled.total_bytes = or_default(filled.total_bytes, STORE_TOTAL_BYTES);
    filled.pending = (uint32_t)or_default(filled.pending, STORE_PENDING);
    filled.pending_bytes = or_default(filled.pending_bytes, STORE_PENDING_BYTES);
    filled.sweep_ms = (uint32_t)or_default(filled.sweep_ms, STORE_SWEEP_MS);
    filled.busy_ms = (uint32_t)or_default(filled.busy_ms, STORE_BUSY_MS);
    if (filled.value_bytes > STORE_VALUE_MOST) {
        filled.value_bytes = STORE_VALUE_MOST;
    }
    return filled;
}

store_bounds store_bounds_of(const store *self)
{
    return (store_bounds){self->options.rows, self->options.value_bytes, self->options.total_bytes};
}

bay_err store_init(store *self, const store_back *back, loop *on_loop, const store_options *options)
{
    self->back = back;
    self->loop = on_loop;
    self->options = store_options_of(options);
    list_init(&self->open);
    loop_timer_init(&self->sweep_timer, start_sweep, self);
    return loop_timer_start(on_loop, &self->sweep_timer, self->options.sweep_ms);
}

void store_close(store *self, void (*closed)(void *user), void *user)
{
    if (self->is_closing) {
        return;
    }
    self->is_closing = true;
    self->closed = closed;
    self->closed_user = user;
    loop_timer_stop(self->loop, &self->sweep_timer);
    loop_hold(self->loop);
    self->back->close(self);
}

bool store_is_closed(const store *self)
{
    return self->is_closed;
}

uint64_t store_written(const store *self)
{
    return self->written_bytes;
}

void store_free(store *self)
{
    if (self == NULL) {
        return;
    }
    CHECK(self->is_closed);
    self->back->free(self);
}
