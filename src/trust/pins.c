#include "trust/pins.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "trust/pins_internal.h"
#include "json/build.h"

enum {
    SECTIONS = 4096,
    KEY_BYTES = (256 << 20) + 4096,
    CANON_BYTES = 64 << 20,
    TOLD_LINES = 1000, /* of a section, in … */
    TOLD_SECONDS = 60,
};

bay_err trust_pins_new(const char *path, trust_pins **out, bay_diag *diag)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    trust_pins *self = mem_zalloc(sizeof(*self));
    if (self == NULL || digest_sha256((bay_str){"", 0}, digest) == BAY_ERR_UNSUPPORTED) {
        bay_err err = self == NULL ? BAY_ERR_NOMEM : BAY_ERR_UNSUPPORTED;
        mem_free(self);
        return diag_set(diag, err, "%s",
                        err == BAY_ERR_NOMEM ? "out of memory"
                                             : "this patchbay was built without OpenSSL: it has no "
                                               "digests to compare definitions by");
    }
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->mutex, NULL);
    pthread_mutex_init(&self->file_mutex, NULL);
    map_init(&self->sections, SECTIONS);
    map_init(&self->names, TRUST_CELLS);
    map_init(&self->cells, TRUST_CELLS);
    arena_init(&self->memory, TRUST_TEXT_BYTES);
    arena_init(&self->silence_memory, 16 << 20);
    buf_init(&self->key, KEY_BYTES);
    buf_init(&self->canon, CANON_BYTES);
    trust_lock_init(&self->lock);
    self->path = mem_dup(path, strlen(path));
    bay_err err = self->path != NULL ? scanner_new(&self->scan) : BAY_ERR_NOMEM;
    err = err == BAY_OK ? trust_pins_load(self, diag) : diag_set(diag, err, "out of memory");
    if (err != BAY_OK) {
        trust_pins_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

trust_pins *trust_pins_ref(trust_pins *self)
{
    atomic_fetch_add(&self->references, 1);
    return self;
}

/* Cells hold a reference each, so that by now there are none, and no names. */
void trust_pins_unref(trust_pins *self)
{
    size_t at = 0;
    bay_str key;
    void *section;
    if (self == NULL || atomic_fetch_sub(&self->references, 1) > 1) {
        return;
    }
    while (map_next(&self->sections, &at, &key, &section)) {
        mem_free(section);
    }
    map_fini(&self->sections);
    map_fini(&self->names);
    map_fini(&self->cells);
    trust_lock_fini(&self->lock);
    scanner_free(self->scan);
    scan_rule_set_free(self->rules);
    mem_free(self->silences);
    arena_fini(&self->silence_memory);
    arena_fini(&self->memory);
    buf_fini(&self->key);
    buf_fini(&self->canon);
    pthread_mutex_destroy(&self->mutex);
    pthread_mutex_destroy(&self->file_mutex);
    mem_free(self->path);
    mem_free(self);
}

uint64_t trust_pins_generation(const trust_pins *self)
{
    return atomic_load(&self->generation);
}

const char *trust_pins_path(const trust_pins *self)
{
    return self->path;
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Of "sha256:…": eight bytes, never 0. */
uint64_t pins_head(const char *digest)
{
    uint64_t head = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = digest[7 + i];
        head = head << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return head != 0 ? head : 1;
}

/* A server that never stops to change its definitions does not fill the disk. */
static bool may_tell(pins_section *section)
{
    time_t now = time(NULL);
    if (now < section->told_from || now - section->told_from >= TOLD_SECONDS) {
        if (section->untold > 0) {
            LOG(LOG_WARN, "trust", "%.*s: %zu more lines about its definitions were left out",
                BAY_STR(section->name), section->untold);
        }
        section->told_from = now;
        section->told = section->untold = 0;
    }
    bool is_told = section->told < TOLD_LINES;
    section->told += is_told ? 1 : 0;
    section->untold += is_told ? 0 : 1;
    return is_told;
}

static void tell(trust_cell *cell, bool is_held)
{
    static const char *const what[] = {
        [PINS_SAME] = "is as the lock has it",
        [PINS_NEW] = "is new: the lock does not have it",
        [PINS_CHANGED] = "is not what the lock has",
    };
    const pins_name *of = cell->of;
    bool is_news = cell->state != PINS_SAME || cell->is_suspicious;
    if (!is_news || (cell->is_told && cell->told == cell->state)) {
        return;
    }
    cell->is_told = true;
    cell->told = cell->state;
    bool is_changed = cell->state != PINS_SAME && of->section->policy.pin >= TRUST_PIN_WARN;
    if ((!cell->is_suspicious && !is_changed) || !may_tell(of->section)) {
        return;
    }
    if (cell->is_suspicious) {
        LOG(LOG_WARN, "trust", "%.*s: %s \"%.*s\" reads like an attack (%s at %s: %s)%s",
            BAY_STR(of->section->name), trust_kind_text(of->kind), BAY_STR(str_head(of->name, 100)),
            cell->rule, cell->pointer[0] != '\0' ? cell->pointer : "its whole", cell->why,
            is_held ? "; it is held until it is approved" : "");
    }
    if (is_changed) {
        LOG(LOG_WARN, "trust", "%.*s: %s \"%.*s\" %s%s", BAY_STR(of->section->name),
            trust_kind_text(of->kind), BAY_STR(str_head(of->name, 100)), what[cell->state],
            is_held ? "; it is held until it is approved: patchbay pin review" : "");
    }
}

static void look_up(trust_pins *self, trust_cell *cell)
{
    const pins_section *section = cell->of->section;
    const trust_pinned *pinned = trust_lock_find(&self->lock, section->name, section->is_agent);
    const trust_pin *pin =
        pinned != NULL ? trust_pinned_find(pinned, cell->of->kind, cell->of->name) : NULL;
    bool is_same = pin != NULL && strcmp(pin->digest, cell->digest) == 0;
    cell->state = is_same ? PINS_SAME : pin != NULL ? PINS_CHANGED : PINS_NEW;
    cell->is_approved = is_same && pin->approved.len > 0;
}

static bool has_policy(const pins_section *section)
{
    return section->policy.pin != TRUST_PIN_OFF || section->policy.scan != TRUST_SCAN_OFF ||
           section->held != 0;
}

void pins_judge(trust_pins *self, trust_cell *cell)
{
    const pins_section *section = cell->of->section;
    bool is_held = section->held != 0;
    look_up(self, cell);
    if (section->policy.pin == TRUST_PIN_RECORD && cell->state != PINS_SAME &&
        pins_put(self, cell, (bay_str){"", 0}) == BAY_OK) {
        if (may_tell(cell->of->section)) {
            LOG(LOG_INFO, "trust", "%.*s: %s \"%.*s\" %s; it was recorded", BAY_STR(section->name),
                trust_kind_text(cell->of->kind), BAY_STR(str_head(cell->of->name, 100)),
                cell->state == PINS_NEW ? "is new" : "changed");
        }
        cell->state = PINS_SAME;
    }
    is_held = is_held || (section->policy.pin == TRUST_PIN_HOLD && cell->state != PINS_SAME);
    is_held = is_held || (section->policy.scan == TRUST_SCAN_HOLD && cell->is_suspicious &&
                          !cell->is_approved);
    uint64_t admitted = is_held ? 0 : cell->head;
    if (atomic_exchange(&cell->gate.admitted, admitted) != admitted) {
        atomic_fetch_add(&self->generation, 1);
    }
    if (has_policy(section)) {
        tell(cell, is_held);
    }
}

static void judge_name(trust_pins *self, pins_name *name)
{
    LIST_EACH(link, &name->cells)
    {
        pins_judge(self, CONTAINER_OF(link, trust_cell, link));
    }
}

static void judge_section(trust_pins *self, pins_section *section)
{
    LIST_EACH(link, &section->names)
    {
        judge_name(self, CONTAINER_OF(link, pins_name, link));
    }
}

void pins_judge_all(trust_pins *self)
{
    size_t at = 0;
    bay_str key;
    void *section;
    while (map_next(&self->sections, &at, &key, &section)) {
        judge_section(self, section);
    }
}

/* ---- sections -------------------------------------------------------------------------------- */

/* "s" or "a", and the name: in `self->key`. */
static bay_str section_key(trust_pins *self, bay_str server, bool is_agent)
{
    buf_clear(&self->key);
    buf_char(&self->key, is_agent ? 'a' : 's');
    buf_str(&self->key, server);
    return self->key.err == BAY_OK ? buf_view(&self->key) : (bay_str){"", 0};
}

pins_section *pins_find_section(const trust_pins *self, bay_str server, bool is_agent)
{
    char bytes[1024];
    buf key = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    buf_char(&key, is_agent ? 'a' : 's');
    buf_str(&key, server);
    return key.err == BAY_OK ? map_get(&self->sections, buf_view(&key)) : NULL;
}

static pins_section *enter_section(trust_pins *self, bay_str server, bool is_agent)
{
    pins_section *section = pins_find_section(self, server, is_agent);
    if (section != NULL || server.len > 1000) {
        return section;
    }
    bay_str key = section_key(self, server, is_agent);
    section = key.len > 0 ? mem_zalloc(sizeof(*section) + key.len) : NULL;
    if (section == NULL) {
        return NULL;
    }
    memcpy(section->bytes, key.at, key.len);
    section->name = (bay_str){section->bytes + 1, server.len};
    section->is_agent = is_agent;
    section->number = self->section_count;
    list_init(&section->names);
    if (map_put(&self->sections, (bay_str){section->bytes, key.len}, section, NULL) != BAY_OK) {
        mem_free(section);
        return NULL;
    }
    self->section_count++;
    return section;
}

/* What the server is, held against the lock. */
static void judge_identity(trust_pins *self, pins_section *section)
{
    trust_pinned *pinned = trust_lock_find(&self->lock, section->name, section->is_agent);
    bay_str now = str_of(section->identity);
    bool is_known = pinned != NULL && pinned->identity.len > 0;
    bool is_same = is_known && str_eq(pinned->identity, now);
    trust_pin_mode mode = section->policy.pin;
    section->held &= ~(unsigned)(TRUST_HELD_UNKNOWN | TRUST_HELD_IDENTITY);
    if (mode == TRUST_PIN_RECORD && section->is_identified && now.len > 0 && !is_same &&
        (pinned != NULL ||
         trust_lock_enter(&self->lock, section->name, section->is_agent, &pinned) == BAY_OK) &&
        arena_dup(&self->lock.memory, now, &pinned->identity) == BAY_OK) {
        pinned->approved = (bay_str){"", 0};
        pinned->by = (bay_str){"", 0};
        self->is_due = true;
        LOG(LOG_INFO, "trust", "%.*s: its identity was recorded", BAY_STR(section->name));
        return;
    }
    if (mode != TRUST_PIN_HOLD || !is_known) {
        return;
    }
    section->held |= !section->is_identified ? TRUST_HELD_UNKNOWN
                     : !is_same              ? TRUST_HELD_IDENTITY
                                             : 0u;
}

void pins_judge_identities(trust_pins *self)
{
    size_t at = 0;
    bay_str key;
    void *section;
    while (map_next(&self->sections, &at, &key, &section)) {
        judge_identity(self, section);
    }
}

bay_err trust_pins_set_policy(trust_pins *self, bay_str server, bool is_agent, trust_policy policy)
{
    pthread_mutex_lock(&self->mutex);
    pins_section *section = enter_section(self, server, is_agent);
    if (section != NULL) {
        section->policy = policy;
        judge_identity(self, section);
        judge_section(self, section);
    }
    pthread_mutex_unlock(&self->mutex);
    return section != NULL ? BAY_OK : BAY_ERR_NOMEM;
}

void trust_pins_identify(trust_pins *self, bay_str server, bool is_agent, bay_str identity)
{
    pthread_mutex_lock(&self->mutex);
    pins_section *section = enter_section(self, server, is_agent);
    if (section != NULL && identity.len < sizeof(section->identity)) {
        unsigned before = section->held;
        section->is_identified = identity.at != NULL;
        (void)snprintf(section->identity, sizeof(section->identity), "%.*s", BAY_STR(identity));
        judge_identity(self, section);
        judge_section(self, section);
        const trust_pinned *pinned = trust_lock_find(&self->lock, section->name, is_agent);
        bool is_other = section->is_identified && pinned != NULL && pinned->identity.len > 0 &&
                        !str_eq(pinned->identity, identity);
        if (section->policy.pin >= TRUST_PIN_WARN && is_other) {
            LOG(LOG_WARN, "trust", "%.*s has another identity than the lock%s",
                BAY_STR(section->name),
                (section->held & TRUST_HELD_IDENTITY) != 0
                    ? "; all its items are held until it is approved: patchbay pin review"
                    : "");
        }
        if (section->held != before) {
            atomic_fetch_add(&self->generation, 1);
        }
    }
    pthread_mutex_unlock(&self->mutex);
}

bay_err trust_pins_hold(trust_pins *self, bay_str server, bool is_agent, unsigned reason,
                        bool is_held)
{
    pthread_mutex_lock(&self->mutex);
    pins_section *section =
        is_held ? enter_section(self, server, is_agent) : pins_find_section(self, server, is_agent);
    unsigned before = section != NULL ? section->held : 0;
    unsigned now = is_held ? before | reason : before & ~reason;
    if (section != NULL && now != before) {
        section->held = now;
        judge_section(self, section);
        atomic_fetch_add(&self->generation, 1);
    }
    pthread_mutex_unlock(&self->mutex);
    return section != NULL || !is_held ? BAY_OK : BAY_ERR_NOMEM;
}

bay_err trust_pins_set_grade(trust_pins *self, bay_str server, trust_standing grade,
                             trust_standing *out)
{
    *out = trust_pins_grade(self, server);
    bay_err err = trust_pins_hold(self, server, false, TRUST_HELD_GRADE, grade.is_below);
    pthread_mutex_lock(&self->mutex);
    pins_section *section = enter_section(self, server, false);
    if (section != NULL) {
        section->grade = grade;
    }
    pthread_mutex_unlock(&self->mutex);
    return section != NULL ? err : BAY_ERR_NOMEM;
}

trust_standing trust_pins_grade(trust_pins *self, bay_str server)
{
    trust_standing out = {0};
    pthread_mutex_lock(&self->mutex);
    const pins_section *section = pins_find_section(self, server, false);
    if (section != NULL) {
        out = section->grade;
    }
    pthread_mutex_unlock(&self->mutex);
    return out;
}

static bool holds(const pins_section *section)
{
    return section->policy.pin == TRUST_PIN_HOLD || section->policy.scan == TRUST_SCAN_HOLD ||
           section->held != 0;
}

bool trust_pins_holds(trust_pins *self, bay_str server, bool is_agent)
{
    pthread_mutex_lock(&self->mutex);
    const pins_section *section = pins_find_section(self, server, is_agent);
    bool out = section != NULL && holds(section);
    pthread_mutex_unlock(&self->mutex);
    return out;
}

bay_err trust_pins_set_rules(trust_pins *self, scan_rule_set *rules, const trust_silences *silences)
{
    trust_silences *copies = mem_zalloc(sizeof(*copies));
    arena memory;
    arena_init(&memory, 16 << 20);
    bay_err err = copies != NULL ? BAY_OK : BAY_ERR_NOMEM;
    for (size_t i = 0; err == BAY_OK && silences != NULL && i < silences->count; i++) {
        trust_silence *copy = &copies->at[copies->count++];
        err = arena_dup(&memory, silences->at[i].rule, &copy->rule);
        err = err == BAY_OK ? arena_dup(&memory, silences->at[i].item, &copy->item) : err;
    }
    if (err != BAY_OK) {
        arena_fini(&memory);
        mem_free(copies);
        scan_rule_set_free(rules);
        return err;
    }
    pthread_mutex_lock(&self->mutex);
    scan_rule_set_free(self->rules);
    mem_free(self->silences);
    arena_fini(&self->silence_memory);
    self->rules = rules;
    self->silences = copies;
    self->silence_memory = memory;
    scanner_set_rules(self->scan, rules);
    pthread_mutex_unlock(&self->mutex);
    return BAY_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static pins_name *enter_name(trust_pins *self, pins_section *section, trust_kind kind, bay_str name)
{
    uint32_t number = section->number;
    buf_clear(&self->key);
    buf_char(&self->key, (char)kind);
    buf_append(&self->key, &number, sizeof(number));
    buf_str(&self->key, name);
    if (self->key.err != BAY_OK) {
        return NULL;
    }
    bay_str key = buf_view(&self->key);
    pins_name *found = map_get(&self->names, key);
    if (found != NULL) {
        return found;
    }
    found = mem_zalloc(sizeof(*found) + key.len);
    if (found == NULL) {
        return NULL;
    }
    memcpy(found->bytes, key.at, key.len);
    found->section = section;
    found->kind = kind;
    found->name = (bay_str){found->bytes + key.len - name.len, name.len};
    list_init(&found->cells);
    if (map_put(&self->names, (bay_str){found->bytes, key.len}, found, NULL) != BAY_OK) {
        mem_free(found);
        return NULL;
    }
    list_push(&section->names, &found->link);
    return found;
}

static void drop_name(trust_pins *self, pins_name *name)
{
    if (list_is_empty(&name->cells)) {
        size_t len = 1 + sizeof(uint32_t) + name->name.len;
        map_remove(&self->names, (bay_str){name->bytes, len});
        list_remove(&name->link);
        mem_free(name);
    }
}

static void scan(trust_pins *self, trust_cell *cell, json_val value)
{
    scan_report *report = mem_alloc(sizeof(*report));
    cell->is_scanned = true;
    cell->is_suspicious = true; /* unless it was looked at whole */
    (void)snprintf(cell->rule, sizeof(cell->rule), "%s", "not scanned");
    (void)snprintf(cell->why, sizeof(cell->why), "%s", "there was no memory to scan it");
    if (report == NULL || scan_definition(self->scan, trust_kind_scanned(cell->of->kind), value,
                                          NULL, report) != BAY_OK) {
        mem_free(report);
        return;
    }
    cell->is_suspicious = false;
    cell->rule[0] = '\0';
    cell->why[0] = '\0';
    for (size_t i = 0; i < report->count; i++) {
        const scan_finding *at = &report->findings[i];
        if (at->severity < SCAN_WARNING ||
            trust_silences_find(self->silences, str_of(at->id), cell->of->section->name,
                                cell->of->name) != NULL) {
            continue;
        }
        if (!cell->is_suspicious || at->severity == SCAN_ERROR) {
            (void)snprintf(cell->rule, sizeof(cell->rule), "%s", at->id);
            (void)snprintf(cell->why, sizeof(cell->why), "%s", at->why);
            (void)snprintf(cell->pointer, sizeof(cell->pointer), "%s", at->pointer);
        }
        cell->is_suspicious = true;
        if (at->severity == SCAN_ERROR) {
            break;
        }
    }
    mem_free(report);
}

static trust_cell *make_cell(trust_pins *self, bay_str key, size_t raw_at, json_val value)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    buf_clear(&self->canon);
    if (map_get(&self->cells, key) != NULL || self->cell_bytes + 2 * key.len > TRUST_CELL_BYTES ||
        trust_canon(value, &self->memory, &self->canon, digest) != BAY_OK) {
        return NULL;
    }
    trust_cell *cell = mem_zalloc(sizeof(*cell) + key.len + self->canon.len);
    if (cell == NULL) {
        return NULL;
    }
    memcpy(cell->bytes, key.at, key.len);
    memcpy(cell->bytes + key.len, self->canon.at, self->canon.len);
    cell->len = key.len;
    cell->raw_at = raw_at;
    cell->canon_len = self->canon.len;
    memcpy(cell->digest, digest, sizeof(digest));
    cell->head = pins_head(digest);
    atomic_init(&cell->gate.admitted, 0);
    if (map_put(&self->cells, (bay_str){cell->bytes, cell->len}, cell, NULL) != BAY_OK) {
        mem_free(cell);
        return NULL;
    }
    self->cell_bytes += cell->len + cell->canon_len;
    cell->pins = trust_pins_ref(self);
    return cell;
}

static void free_cell(trust_pins *self, trust_cell *cell)
{
    map_remove(&self->cells, (bay_str){cell->bytes, cell->len});
    self->cell_bytes -= cell->len + cell->canon_len;
    list_remove(&cell->link);
    mem_free(cell);
}

/* Back to a definition that another one had taken the place of: different views, or it depends on
 * the time. */
static void note_turn(pins_name *name, const trust_cell *cell, uint64_t now_ms)
{
    if (name->seen[0] == cell->head) {
        return;
    }
    if (name->seen[1] == cell->head) {
        if (name->turns == 0 || now_ms - name->turns_since_ms > TRUST_TURNS_MS) {
            name->turns = 0;
            name->turns_since_ms = now_ms;
        }
        name->turns++;
    }
    name->seen[1] = name->seen[0];
    name->seen[0] = cell->head;
    if (name->turns >= TRUST_TURNS && !name->is_turning) {
        name->is_turning = true;
        LOG(LOG_WARN, "trust",
            "%.*s: %s \"%.*s\" goes back and forth between definitions: the server shows "
            "different ones to different callers, or at different times",
            BAY_STR(name->section->name), trust_kind_text(name->kind),
            BAY_STR(str_head(name->name, 100)));
    }
}

static trust_cell *enter_cell(trust_pins *self, pins_section *section, trust_kind kind,
                              bay_str name, json_val value, uint64_t now_ms)
{
    buf_clear(&self->key);
    buf_char(&self->key, (char)kind);
    buf_append(&self->key, &section->number, sizeof(section->number));
    size_t raw_at = self->key.len;
    buf_str(&self->key, json_raw(value));
    if (self->key.err != BAY_OK) {
        return NULL;
    }
    trust_cell *cell = map_get(&self->cells, buf_view(&self->key));
    if (cell == NULL) {
        cell = make_cell(self, buf_view(&self->key), raw_at, value);
        pins_name *of = cell != NULL ? enter_name(self, section, kind, name) : NULL;
        if (of == NULL) {
            if (cell != NULL) {
                free_cell(self, cell);
                atomic_fetch_sub(&self->references, 1);
            }
            return NULL;
        }
        cell->of = of;
        list_push(&of->cells, &cell->link);
    }
    if (section->policy.scan != TRUST_SCAN_OFF && !cell->is_scanned) {
        scan(self, cell, value);
    }
    note_turn(cell->of, cell, now_ms);
    cell->references++;
    return cell;
}

/* What cannot be judged passes only where nothing is held. */
static struct trust_cell unjudged;

void trust_pins_check(trust_pins *self, bay_str server, bool is_agent, trust_kind kind,
                      bay_str name, json_val value, uint64_t now_ms, trust_checked *out)
{
    *out = (trust_checked){NULL, 0};
    pthread_mutex_lock(&self->mutex);
    pins_section *section = pins_find_section(self, server, is_agent);
    if (section != NULL && has_policy(section)) {
        trust_cell *cell = enter_cell(self, section, kind, name, value, now_ms);
        if (cell != NULL) {
            pins_judge(self, cell);
            *out = (trust_checked){cell, cell->head};
        } else if (holds(section)) {
            LOG(LOG_ERROR, "trust", "%.*s: %s \"%.*s\" could not be judged, and is held",
                BAY_STR(section->name), trust_kind_text(kind), BAY_STR(str_head(name, 100)));
            *out = (trust_checked){&unjudged, 1};
        }
    }
    pthread_mutex_unlock(&self->mutex);
}

void trust_pins_check_text(trust_pins *self, bay_str server, trust_kind kind, bay_str text,
                           uint64_t now_ms, trust_checked *out)
{
    arena memory;
    json_builder made;
    json_val value;
    *out = (trust_checked){NULL, 0};
    if (text.len == 0) {
        return;
    }
    arena_init(&memory, TRUST_TEXT_BYTES);
    json_put_str(json_builder_init(&made, &memory, 6 * text.len + 16), text);
    if (json_builder_end(&made, &value) == BAY_OK) {
        trust_pins_check(self, server, false, kind, (bay_str){"", 0}, value, now_ms, out);
    } else {
        *out = (trust_checked){&unjudged, 1};
    }
    arena_fini(&memory);
}

void trust_checked_drop(trust_checked *self)
{
    trust_cell *cell = self->cell;
    *self = (trust_checked){NULL, 0};
    if (cell == NULL || cell == &unjudged) {
        return;
    }
    trust_pins *pins = cell->pins;
    pthread_mutex_lock(&pins->mutex);
    bool is_last = --cell->references == 0;
    if (is_last) {
        pins_name *name = cell->of;
        free_cell(pins, cell);
        drop_name(pins, name);
    }
    pthread_mutex_unlock(&pins->mutex);
    if (is_last) {
        trust_pins_unref(pins);
    }
}

trust_pin_counts trust_pins_count(trust_pins *self)
{
    trust_pin_counts out = {0};
    size_t at = 0;
    bay_str key;
    void *value;
    pthread_mutex_lock(&self->mutex);
    while (map_next(&self->cells, &at, &key, &value)) {
        const trust_cell *cell = value;
        out.same += cell->state == PINS_SAME;
        out.new += cell->state == PINS_NEW;
        out.changed += cell->state == PINS_CHANGED;
        out.suspicious += cell->is_suspicious;
        out.held += atomic_load(&cell->gate.admitted) == 0;
    }
    at = 0;
    while (map_next(&self->names, &at, &key, &value)) {
        out.turning += ((const pins_name *)value)->is_turning;
    }
    pthread_mutex_unlock(&self->mutex);
    return out;
}
