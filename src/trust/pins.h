/* The definitions that a process serves, compared with the lock file; one object, shared by all
 * loops. A listing checks each of its items once (trust_pins_check) and stores the outcome with the
 * item. A call compares eight bytes (trust_checked_admits). An approval, and a lock file that was
 * loaded again, therefore take effect at once.
 *
 *   section   a server or an agent: its policy, and the reasons why none of its items passes
 *   name      one item of it, by kind and name: the definitions that it had lately
 *   cell      one definition of that item, as its bytes: digest, findings, whether it passes
 *
 * A cell is freed when no listing holds it. The lock keeps what was recorded. */
#ifndef TRUST_PINS_H
#define TRUST_PINS_H

#include <stdatomic.h>

#include "trust/findings.h"
#include "trust/lock.h"
#include "json/writer.h"

enum {
    TRUST_CELLS = 2000000, /* of a process; what comes then is held where holding is asked for */
    TRUST_CELL_BYTES = 1 << 30, /* of their definitions together */
    TRUST_TURNS = 3,            /* an item that goes back to an earlier definition so often … */
    TRUST_TURNS_MS = 10 * 60 * 1000 /* … within this time shows different clients different ones */
};

typedef enum trust_pin_mode {
    TRUST_PIN_OFF,
    TRUST_PIN_RECORD,
    TRUST_PIN_WARN,
    TRUST_PIN_HOLD,
} trust_pin_mode;

typedef enum trust_scan_mode { TRUST_SCAN_OFF, TRUST_SCAN_WARN, TRUST_SCAN_HOLD } trust_scan_mode;

typedef struct trust_policy {
    trust_pin_mode pin;
    trust_scan_mode scan;
} trust_policy;

/* Why nothing of a section passes: a set of these. */
enum {
    TRUST_HELD_UNKNOWN = 1 << 0,  /* what the server is has not been found out yet */
    TRUST_HELD_IDENTITY = 1 << 1, /* it is another program, or elsewhere */
    TRUST_HELD_CONTRACT = 1 << 2, /* a contract of it failed */
    TRUST_HELD_GRADE = 1 << 3,    /* it has a lower grade than asked for */
};

typedef struct trust_pins trust_pins;
typedef struct trust_cell trust_cell;

/* Stored with an item: its cell and the first eight bytes of its digest. Zero: not checked; it
 * passes. */
typedef struct trust_checked {
    trust_cell *cell; /* a reference: trust_checked_drop */
    uint64_t digest;
} trust_checked;

struct trust_cell_gate {
    _Atomic uint64_t admitted; /* of the digest that passes; 0: none does */
};

/* Any thread; one comparison of eight bytes. */
static inline bool trust_checked_admits(const trust_checked *self)
{
    const struct trust_cell_gate *gate = (const void *)self->cell;
    return gate == NULL ||
           atomic_load_explicit(&gate->admitted, memory_order_relaxed) == self->digest;
}

/* Loads the lock of `path`, which is copied. Errors: as trust_lock_load, with `diag` (where a line
 * is to blame: "PATH:LINE: …"); BAY_ERR_NOMEM; BAY_ERR_UNSUPPORTED: there are no digests in this
 * build. */
bay_err trust_pins_new(const char *path, trust_pins **out, bay_diag *diag) BAY_MUST_CHECK;
trust_pins *trust_pins_ref(trust_pins *self);
void trust_pins_unref(trust_pins *self); /* NULL is fine */

/* Everything below: any thread. */

/* Loads the lock anew: what is listed is judged by it at once. On failure the earlier one stays. */
bay_err trust_pins_load(trust_pins *self, bay_diag *diag) BAY_MUST_CHECK;
/* Changes whenever something passes that did not before, or the other way round. */
uint64_t trust_pins_generation(const trust_pins *self);
const char *trust_pins_path(const trust_pins *self);

/* What is to become of the items of a server or agent from now on, the listed ones included.
 * BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_pins_set_policy(trust_pins *self, bay_str server, bool is_agent,
                              trust_policy policy) BAY_MUST_CHECK;
/* For the scanner: rules, which it takes (NULL: none), and silences, which are copied.
 * BAY_ERR_NOMEM: what was there stays. */
bay_err trust_pins_set_rules(trust_pins *self, scan_rule_set *rules,
                             const trust_silences *silences) BAY_MUST_CHECK;
/* What the server is, found out (identity.h); "": it cannot be found out. `at` NULL: it is not
 * known (any more) until it has been found out. */
void trust_pins_identify(trust_pins *self, bay_str server, bool is_agent, bay_str identity);
/* Holds everything of it for that reason, or no longer; that changes the generation. BAY_ERR_NOMEM: it is not held. */
bay_err trust_pins_hold(trust_pins *self, bay_str server, bool is_agent, unsigned reason,
                        bool is_held) BAY_MUST_CHECK;
/* The grade that the gateway gave it; below what is asked for, all of it is held. `letter` 0: it has none yet. */
typedef struct trust_standing {
    char letter;
    unsigned points; /* of 100 */
    bool is_below;
} trust_standing;
/* Returns what was there before, in `*out`. That changes the generation where it is held or released. BAY_ERR_NOMEM: it
 * is not held. */
bay_err trust_pins_set_grade(trust_pins *self, bay_str server, trust_standing grade,
                             trust_standing *out) BAY_MUST_CHECK;
trust_standing trust_pins_grade(trust_pins *self, bay_str server);
/* A copy of what the lock has of it, with what was recorded and is not in the file yet, and its identity as far as it is
 * known. `out` is initialised. BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_pins_copy(trust_pins *self, bay_str server, bool is_agent, trust_lock *out,
                        buf *out_identity) BAY_MUST_CHECK;
/* May an item of it be held: by its policy, or is all of it? */
bool trust_pins_holds(trust_pins *self, bay_str server, bool is_agent);

/* Judges a definition that is listed. `out` is zero where its section has no policy. It is held
 * where there is no memory to judge it and holding was asked for. `now_ms`: of any clock that goes
 * on. */
void trust_pins_check(trust_pins *self, bay_str server, bool is_agent, trust_kind kind,
                      bay_str name, json_val value, uint64_t now_ms, trust_checked *out);
/* The same of a text: instructions. An empty one is not judged. */
void trust_pins_check_text(trust_pins *self, bay_str server, trust_kind kind, bay_str text,
                           uint64_t now_ms, trust_checked *out);
void trust_checked_drop(trust_checked *self);

/* Approves the definition of that digest, which is listed, or (digest "") what the server is.
 * Written to the file: not on a loop. On failure nothing is approved. BAY_ERR_NOT_FOUND: no such
 * definition is listed; BAY_ERR_STATE: the file was changed meanwhile: load it first; BAY_ERR_IO,
 * BAY_ERR_NOMEM, with `diag`. */
bay_err trust_pins_approve(trust_pins *self, bay_str server, bool is_agent, trust_kind kind,
                           bay_str name, bay_str digest, bay_str by, bay_diag *diag) BAY_MUST_CHECK;

/* Has something been recorded that the file has not? Then: writes it. Takes a while: not on a loop.
 * Errors: as trust_pins_approve. */
bool trust_pins_is_due(const trust_pins *self);
bay_err trust_pins_save(trust_pins *self, bay_diag *diag) BAY_MUST_CHECK;

/* pins_write.c: {"file", "sections": [{server|agent, mode, scan, identity…, held, items: […]}]}:
 * items that are not as the lock has them, that nobody approved, or that read like an attack, each
 * with its definition as it is and as it was, if there is room: the whole has about 12 MiB, in equal parts for the
 * sections. What is left out of a section is counted ("notShown"). Errors stick in `out`'s buf. */
void trust_pins_write(trust_pins *self, json_writer *out);

typedef struct trust_pin_counts {
    size_t same;
    size_t new;
    size_t changed;
    size_t suspicious;
    size_t held;
    size_t turning; /* names that turn between definitions */
} trust_pin_counts;
trust_pin_counts trust_pins_count(trust_pins *self);

#endif
