#include "policy/outcomes_store.h"

#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "policy/outcomes_internal.h"

enum {
    ROW_VERSION = 1,
    ROW_HEADER_BYTES = 3 + OUTCOME_KEY_BYTES, /* version, state, kind, fingerprint */
    ROW_BYTES = 2 * OUTCOME_BYTES + 4096,
    COMPLAINT_MS = 60000,
};

struct outcomes_store {
    outcomes *table;
    store *rows;
    const seal_ring *ring;
    uint64_t quiet_until_ms; /* complaints are rare, whatever is wrong */
};

/* An operation under way; the row does not go before it. */
typedef struct operation {
    outcomes_store *store;
    outcome_row *row;
} operation;

bay_err outcomes_store_new(outcomes *table, store *rows, const seal_ring *ring,
                           outcomes_store **out)
{
    outcomes_store *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    *self = (outcomes_store){.table = table, .rows = rows, .ring = ring};
    *out = self;
    return BAY_OK;
}

void outcomes_store_free(outcomes_store *self)
{
    mem_free(self);
}

void outcomes_store_set_ring(outcomes_store *self, const seal_ring *ring)
{
    self->ring = ring;
}

static void complain(outcomes_store *self, const char *what, bay_err err)
{
    bool is_trouble = err != BAY_OK && err != BAY_ERR_CANCELLED && err != BAY_ERR_CLOSED;
    if (is_trouble && loop_time_ms() >= self->quiet_until_ms) {
        self->quiet_until_ms = loop_time_ms() + COMPLAINT_MS;
        LOG(LOG_ERROR, "policy",
            "the store does not take outcomes: %s: %s; calls with an idempotency key are refused "
            "where it is needed",
            what, bay_err_text(err));
    }
}

/* ---- rows as they are written ---------------------------------------------------------------- */

static bay_err row_key(const outcomes_store *self, const outcome_row *row,
                       unsigned char out[SEAL_DIGEST_BYTES])
{
    bay_str key = {(const char *)row->key, OUTCOME_KEY_BYTES};
    size_t count = seal_ring_count(self->ring);
    if (count == 0) {
        memcpy(out, row->key, OUTCOME_KEY_BYTES);
        return BAY_OK;
    }
    return seal_digest(self->ring, count - 1, SEAL_OUTCOME, key, out);
}

static bay_str key_view(const unsigned char key[SEAL_DIGEST_BYTES])
{
    return (bay_str){(const char *)key, SEAL_DIGEST_BYTES};
}

static bay_err write_row(const outcomes_store *self, const outcome_row *row, outcome_state state,
                         bay_str key, buf *out)
{
    bay_str text = row->outcome != NULL ? json_raw(json_root(row->outcome)) : (bay_str){"", 0};
    buf_char(out, ROW_VERSION);
    buf_char(out, (char)state);
    buf_char(out, (char)row->kind);
    buf_append(out, (const char *)row->fingerprint, OUTCOME_KEY_BYTES);
    if (state != OUTCOME_DONE || text.len == 0) {
        return out->err;
    }
    if (seal_ring_count(self->ring) == 0) {
        buf_str(out, text);
        return out->err;
    }
    return seal_value(self->ring, text, key, row->expires_at_ms, out);
}

/* What is in no row of ours is an outcome that nobody knows. */
static void read_row(outcomes_store *self, outcome_row *row, const store_row *from)
{
    buf text;
    arena memory;
    json_doc doc;
    bay_str value = from->value;
    bool is_ours = value.len >= ROW_HEADER_BYTES && value.at[0] == ROW_VERSION;
    bool is_done = is_ours && value.at[1] == OUTCOME_DONE;
    row->expires_at_ms = from->expires_at_ms;
    row->was_written = true;
    if (is_ours) {
        memcpy(row->fingerprint, value.at + 3, OUTCOME_KEY_BYTES);
    }
    if (!is_done) {
        outcome_row_end(row, OUTCOME_UNKNOWN);
        return;
    }
    bay_str sealed = {value.at + ROW_HEADER_BYTES, value.len - ROW_HEADER_BYTES};
    row->kind = (uint8_t)value.at[2];
    buf_init(&text, ROW_BYTES);
    arena_init(&memory, 64U << 20);
    bay_err err = BAY_OK;
    if (sealed.len > 0 && seal_ring_count(self->ring) > 0) {
        err = seal_open(self->ring, sealed, from->key, loop_time_ms(), &text);
    } else {
        buf_str(&text, sealed);
    }
    if (err == BAY_OK && text.len > 0) {
        err = json_parse(&doc, buf_view(&text), NULL, &memory, NULL);
    }
    if (err == BAY_OK && text.len > 0) {
        outcome_row_keep(self->table, row, (outcome_kind)row->kind, json_root(&doc));
    }
    bool is_known = err == BAY_OK && row->kind <= OUTCOME_TOO_LARGE &&
                    (row->outcome != NULL || row->kind == OUTCOME_TOO_LARGE);
    outcome_row_end(row, is_known ? OUTCOME_DONE : OUTCOME_UNKNOWN);
    arena_fini(&memory);
    buf_fini(&text);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* With the table locked. NULL: no memory. */
static operation *begin(outcomes_store *self, outcome_row *row)
{
    operation *made = mem_alloc(sizeof(*made));
    if (made != NULL) {
        *made = (operation){self, row};
        row->operations++;
    }
    return made;
}

/* With the table locked; the operation was not started, or is over. */
static void end(operation *self)
{
    outcome_row_release(self->store->table, self->row);
    mem_free(self);
}

static void wake_owner(const outcome_row *row)
{
    if (row->claim != NULL) {
        row->claim->ready(row->claim);
    }
}

/* The owner has lost its row to what the store knows: it enters like those that wait. */
static void dismiss_owner(outcome_row *row)
{
    outcome_claim *claim = row->claim;
    if (claim != NULL) {
        row->claim = NULL;
        claim->row = NULL;
        claim->is_owner = false;
        claim->ready(claim);
    }
}

static void on_looked_up(void *user, const store_result *result)
{
    operation *self = user;
    outcomes_store *of = self->store;
    outcome_row *row = self->row;
    outcomes_lock(of->table);
    row->was_looked_up = true;
    if (result->err == BAY_OK && result->count == 1 && !row->is_gone) {
        read_row(of, row, &result->rows[0]);
        dismiss_owner(row);
    } else {
        row->has_failed = result->err != BAY_ERR_NOT_FOUND;
        wake_owner(row);
    }
    end(self);
    outcomes_unlock(of->table);
    complain(of, "a look-up failed", result->err == BAY_ERR_NOT_FOUND ? BAY_OK : result->err);
}

static void on_sent(void *user, const store_result *result)
{
    operation *self = user;
    outcomes_store *of = self->store;
    outcome_row *row = self->row;
    outcomes_lock(of->table);
    row->has_failed = result->err != BAY_OK;
    wake_owner(row);
    end(self);
    outcomes_unlock(of->table);
    complain(of, "a call could not be noted", result->err);
}

static void on_over(void *user, const store_result *result)
{
    operation *self = user;
    outcomes_store *of = self->store;
    bool is_fine = result->err == BAY_ERR_NOT_FOUND;
    outcomes_lock(of->table);
    end(self);
    outcomes_unlock(of->table);
    complain(of, "an outcome was not written", is_fine ? BAY_OK : result->err);
}

/* With the table locked: starts a put; the error is that of its start. */
static bay_err put(outcomes_store *self, outcome_row *row, outcome_state state, store_done done)
{
    unsigned char key[SEAL_DIGEST_BYTES];
    buf value;
    operation *made = begin(self, row);
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    buf_init(&value, ROW_BYTES);
    bay_err err = row_key(self, row, key);
    if (err == BAY_OK) {
        err = write_row(self, row, state, key_view(key), &value);
    }
    store_put_request request = {.table = STR(OUTCOMES_TABLE),
                                 .key = key_view(key),
                                 .value = buf_view(&value),
                                 .expires_at_ms = row->expires_at_ms,
                                 .expected = STORE_ANY,
                                 .is_relaxed = state == OUTCOME_DONE};
    if (err == BAY_OK) {
        err = store_put(self->rows, &request, done, made);
    }
    if (err != BAY_OK) {
        end(made);
    }
    buf_fini(&value);
    return err;
}

static void take_away(outcomes_store *self, outcome_row *row)
{
    unsigned char key[SEAL_DIGEST_BYTES];
    operation *made = row->was_written ? begin(self, row) : NULL;
    if (made == NULL) {
        return; /* what is there says that nobody knows: that is true of a call that was not sent */
    }
    bay_err err = row_key(self, row, key);
    if (err == BAY_OK) {
        err =
            store_remove(self->rows, STR(OUTCOMES_TABLE), key_view(key), STORE_ANY, on_over, made);
    }
    if (err != BAY_OK) {
        end(made);
        complain(self, "a call that was not sent stays noted", err);
    }
}

/* ---- what calls do --------------------------------------------------------------------------- */

static outcomes_step start_look_up(outcomes_store *self, outcome_row *row)
{
    unsigned char key[SEAL_DIGEST_BYTES];
    operation *made = begin(self, row);
    bay_err err = made != NULL ? row_key(self, row, key) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = store_get(self->rows, STR(OUTCOMES_TABLE), key_view(key), on_looked_up, made);
    }
    if (err == BAY_OK) {
        return OUTCOMES_STEP_WAITS;
    }
    if (made != NULL) {
        end(made);
    }
    return OUTCOMES_STEP_FAILED;
}

static outcomes_step look_up(outcomes_store *self, const outcome_claim *claim)
{
    outcome_row *row = claim->row;
    if (row == NULL) {
        return OUTCOMES_STEP_OVER;
    }
    if (row->has_failed) {
        return OUTCOMES_STEP_FAILED;
    }
    if (row->was_looked_up) {
        return OUTCOMES_STEP_DONE;
    }
    return row->operations > 0 ? OUTCOMES_STEP_WAITS : start_look_up(self, row);
}

outcomes_step outcomes_store_look_up(outcomes_store *self, outcome_claim *claim)
{
    outcomes_lock(self->table);
    outcomes_step step = look_up(self, claim);
    outcomes_unlock(self->table);
    return step;
}

static outcomes_step note_sent(outcomes_store *self, const outcome_claim *claim)
{
    outcome_row *row = claim->row;
    if (row->has_failed) {
        return OUTCOMES_STEP_FAILED;
    }
    if (row->state != OUTCOME_SENT) {
        bay_err err = put(self, row, OUTCOME_SENT, on_sent);
        if (err != BAY_OK) {
            return OUTCOMES_STEP_FAILED;
        }
        row->state = OUTCOME_SENT;
        row->was_written = true; /* perhaps, also where it fails: what is there goes with the row */
        return OUTCOMES_STEP_WAITS;
    }
    return row->operations > 0 ? OUTCOMES_STEP_WAITS : OUTCOMES_STEP_DONE;
}

outcomes_step outcomes_store_send(outcomes_store *self, outcome_claim *claim)
{
    outcomes_lock(self->table);
    outcomes_step step = note_sent(self, claim);
    outcomes_unlock(self->table);
    return step;
}

void outcomes_store_settle(outcomes_store *self, outcome_claim *claim, outcome_kind kind,
                           json_val value)
{
    outcomes_lock(self->table);
    outcome_row *row = outcome_claim_settle(self->table, claim, kind, value);
    bay_err err = put(self, row, OUTCOME_DONE, on_over);
    outcomes_unlock(self->table);
    complain(self, "an outcome was not written", err);
}

void outcomes_store_leave(outcomes_store *self, outcome_claim *claim, bool may_repeat)
{
    outcomes_lock(self->table);
    outcome_row *over = outcome_claim_leave(claim, may_repeat);
    if (over != NULL) {
        take_away(self, over);
        outcome_row_drop(self->table, over);
    }
    outcomes_unlock(self->table);
}
