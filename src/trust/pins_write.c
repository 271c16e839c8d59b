/* The pins as JSON, for whoever operates the gateway. */
#include "base/str.h"
#include "trust/pins_internal.h"

/* Of the whole, in equal parts for the sections: a server with very many or very large definitions takes none of what
 * the others have. */
enum { WRITTEN_BYTES = 12 << 20 };

static const char *const modes[] = {[TRUST_PIN_OFF] = "off",
                                    [TRUST_PIN_RECORD] = "record",
                                    [TRUST_PIN_WARN] = "warn",
                                    [TRUST_PIN_HOLD] = "hold"};
static const char *const scans[] = {
    [TRUST_SCAN_OFF] = "off", [TRUST_SCAN_WARN] = "warn", [TRUST_SCAN_HOLD] = "hold"};
static const char *const states[] = {
    [PINS_SAME] = "same", [PINS_NEW] = "new", [PINS_CHANGED] = "changed"};

static void put_text(json_writer *out, const char *key, bay_str text)
{
    json_key(out, str_of(key));
    json_put_str(out, text);
}

static void put_reasons(json_writer *out, unsigned held)
{
    static const struct {
        unsigned reason;
        const char *text;
    } rows[] = {
        {TRUST_HELD_UNKNOWN, "not identified yet"},
        {TRUST_HELD_IDENTITY, "identity"},
        {TRUST_HELD_CONTRACT, "contract"},
        {TRUST_HELD_GRADE, "grade"},
    };
    json_key_lit(out, "held");
    json_open_array(out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((held & rows[i].reason) != 0) {
            json_put_str(out, str_of(rows[i].text));
        }
    }
    json_close_array(out);
}

static void put_pinned(json_writer *out, const trust_pin *pin)
{
    json_key_lit(out, "pinned");
    json_open_object(out);
    put_text(out, "digest", str_of(pin->digest));
    put_text(out, "seen", pin->seen);
    put_text(out, "approved", pin->approved);
    put_text(out, "by", pin->by);
    json_key_lit(out, "definition");
    json_put_raw(out, pin->canon);
    json_close_object(out);
}

/* `room`: bytes for the definitions, which are left out where they have more. */
static void put_cell(json_writer *out, const trust_cell *cell, const trust_pinned *pinned,
                     size_t room)
{
    const pins_name *of = cell->of;
    const trust_pin *pin = pinned != NULL ? trust_pinned_find(pinned, of->kind, of->name) : NULL;
    bay_str definition = {cell->bytes + cell->raw_at, cell->len - cell->raw_at};
    json_open_object(out);
    put_text(out, "kind", str_of(trust_kind_text(of->kind)));
    put_text(out, "name", of->name);
    put_text(out, "digest", str_of(cell->digest));
    put_text(out, "state", str_of(states[cell->state]));
    json_key_lit(out, "approved");
    json_put_bool(out, cell->is_approved);
    json_key_lit(out, "held");
    json_put_bool(out, atomic_load(&cell->gate.admitted) == 0);
    json_key_lit(out, "turning");
    json_put_bool(out, of->is_turning);
    if (cell->is_suspicious) {
        json_key_lit(out, "finding");
        json_open_object(out);
        put_text(out, "rule", str_of(cell->rule));
        put_text(out, "pointer", str_of(cell->pointer));
        put_text(out, "why", str_of(cell->why));
        json_close_object(out);
    }
    if (definition.len + (pin != NULL ? pin->canon.len : 0) <= room) {
        json_key_lit(out, "definition");
        json_put_raw(out, definition);
        if (pin != NULL) {
            put_pinned(out, pin);
        }
    }
    json_close_object(out);
}

static void put_section(trust_pins *self, json_writer *out, const pins_section *section)
{
    const trust_pinned *pinned = trust_lock_find(&self->lock, section->name, section->is_agent);
    size_t most = out->out->len + WRITTEN_BYTES / self->section_count;
    size_t left_out = 0;
    json_open_object(out);
    put_text(out, section->is_agent ? "agent" : "server", section->name);
    put_text(out, "mode", str_of(modes[section->policy.pin]));
    put_text(out, "scan", str_of(scans[section->policy.scan]));
    put_text(out, "identity", str_of(section->identity));
    put_text(out, "pinnedIdentity", pinned != NULL ? pinned->identity : STR(""));
    put_reasons(out, section->held);
    json_key_lit(out, "items");
    json_open_array(out);
    LIST_EACH(link, &section->names)
    {
        const pins_name *name = CONTAINER_OF(link, pins_name, link);
        LIST_EACH(at, &name->cells)
        {
            const trust_cell *cell = CONTAINER_OF(at, trust_cell, link);
            bool is_quiet = cell->state == PINS_SAME && cell->is_approved && !cell->is_suspicious &&
                            !name->is_turning;
            if (!is_quiet && out->out->len < most) {
                put_cell(out, cell, pinned, most - out->out->len);
            } else if (!is_quiet) {
                left_out++;
            }
        }
    }
    json_close_array(out);
    if (left_out > 0) {
        json_key_lit(out, "notShown");
        json_put_uint(out, left_out);
    }
    json_close_object(out);
}

void trust_pins_write(trust_pins *self, json_writer *out)
{
    size_t at = 0;
    bay_str key;
    void *section;
    pthread_mutex_lock(&self->mutex);
    json_open_object(out);
    put_text(out, "file", str_of(self->path));
    json_key_lit(out, "sections");
    json_open_array(out);
    while (map_next(&self->sections, &at, &key, &section)) {
        put_section(self, out, section);
    }
    json_close_array(out);
    json_close_object(out);
    pthread_mutex_unlock(&self->mutex);
}
