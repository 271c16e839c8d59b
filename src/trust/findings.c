#include "trust/findings.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { MEMORY_BYTES = 256 << 20, FULL_NAME_BYTES = 10000 };

const char *trust_source_text(trust_source source)
{
    static const char *const texts[TRUST_SOURCES] = {
        [TRUST_BY_SCAN] = "scan",         [TRUST_BY_LINT] = "lint",
        [TRUST_BY_PROTOCOL] = "protocol", [TRUST_BY_CONTRACT] = "contract",
        [TRUST_BY_PINS] = "pins",         [TRUST_BY_OBSERVATION] = "observed",
    };
    return texts[source];
}

/* ---- silences -------------------------------------------------------------------------------- */

bay_err trust_silences_add(trust_silences *self, bay_str key, bay_str reason, bay_diag *diag)
{
    bay_str rule = str_trim(key);
    size_t space = str_find(rule, ' ');
    bay_str item = str_trim(str_from(rule, space));
    rule = str_head(rule, space);
    if (rule.len == 0) {
        return diag_set(diag, BAY_ERR_SYNTAX,
                        "write the rule that is silenced, and the item behind it: "
                        "secrecy mail.read");
    }
    if (str_trim(reason).len == 0) {
        return diag_set(diag, BAY_ERR_SYNTAX, "\"%.*s\" is silenced without a reason: write one",
                        (int)(key.len < 80 ? key.len : 80), key.at);
    }
    if (self->count == TRUST_SILENCES) {
        return diag_set(diag, BAY_ERR_LIMIT, "more than %d rules are silenced", TRUST_SILENCES);
    }
    self->at[self->count++] = (trust_silence){rule, item, str_trim(reason), 0};
    return BAY_OK;
}

/* The item as a person names it, with its server or without. */
static bool is_item(const trust_silence *silence, bay_str server, bay_str item)
{
    char full[FULL_NAME_BYTES];
    if (silence->item.len == 0 || str_glob(silence->item, item)) {
        return true;
    }
    buf joined = {.at = full, .cap = sizeof(full), .max = sizeof(full)};
    buf_str(&joined, server);
    buf_char(&joined, '.');
    buf_str(&joined, item);
    return joined.err == BAY_OK && str_glob(silence->item, buf_view(&joined));
}

trust_silence *trust_silences_find(trust_silences *self, bay_str rule, bay_str server, bay_str item)
{
    for (size_t i = 0; self != NULL && i < self->count; i++) {
        if (str_glob(self->at[i].rule, rule) && is_item(&self->at[i], server, item)) {
            return &self->at[i];
        }
    }
    return NULL;
}

/* ---- findings -------------------------------------------------------------------------------- */

void trust_findings_init(trust_findings *self)
{
    *self = (trust_findings){0};
    arena_init(&self->memory, MEMORY_BYTES);
}

void trust_findings_fini(trust_findings *self)
{
    mem_free(self->at);
    arena_fini(&self->memory);
    *self = (trust_findings){0};
}

static bay_err reserve(trust_findings *self)
{
    if (self->count < self->cap) {
        return BAY_OK;
    }
    size_t cap = self->cap == 0 ? 32 : self->cap * 2;
    trust_finding *at = mem_resize(self->at, cap * sizeof(*at));
    if (at == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->at = at;
    self->cap = cap;
    return BAY_OK;
}

static bay_err copy_texts(trust_findings *self, trust_finding *of)
{
    bay_str *const texts[] = {&of->rule,    &of->server, &of->item,   &of->pointer,
                              &of->excerpt, &of->why,    &of->remedy, &of->silenced};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bay_str text = texts[i]->at != NULL ? *texts[i] : (bay_str){"", 0};
        bay_err err = arena_dup(&self->memory, text, texts[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

bay_err trust_findings_add(trust_findings *self, const trust_finding *finding,
                           trust_silences *silences)
{
    trust_silence *silence =
        trust_silences_find(silences, finding->rule, finding->server, finding->item);
    if (silence != NULL) {
        silence->used++;
        self->silenced++;
    } else {
        self->counts[finding->severity]++;
    }
    if (self->count >= TRUST_FINDINGS) {
        self->dropped++;
        return BAY_OK;
    }
    trust_finding made = *finding;
    made.silenced = silence != NULL ? silence->reason : (bay_str){"", 0};
    bay_err err = reserve(self);
    err = err == BAY_OK ? copy_texts(self, &made) : err;
    if (err == BAY_OK) {
        self->at[self->count++] = made;
    }
    return err;
}

bay_err trust_findings_add_scan(trust_findings *self, const scan_report *report, bay_str server,
                                const trust_item *item, trust_silences *silences)
{
    for (size_t i = 0; i < report->count; i++) {
        const scan_finding *found = &report->findings[i];
        trust_finding finding = {
            .source = TRUST_BY_SCAN,
            .severity = found->severity,
            .rule = str_of(found->id),
            .server = server,
            .kind = item->kind,
            .item = item->name,
            .pointer = str_of(found->pointer),
            .start = found->start,
            .len = found->len,
            .excerpt = str_of(found->excerpt),
            .why = str_of(found->why),
            .remedy = str_of(scan_rules[found->rule].remedy),
        };
        bay_err err = trust_findings_add(self, &finding, silences);
        if (err != BAY_OK) {
            return err;
        }
    }
    return BAY_OK;
}

static int compare(const void *a, const void *b)
{
    const trust_finding *left = a;
    const trust_finding *right = b;
    int order = str_cmp(left->server, right->server);
    order = order != 0 ? order : (int)left->kind - (int)right->kind;
    order = order != 0 ? order : str_cmp(left->item, right->item);
    order = order != 0 ? order : str_cmp(left->pointer, right->pointer);
    order = order != 0 ? order : str_cmp(left->rule, right->rule);
    return order != 0 ? order : (left->start > right->start) - (left->start < right->start);
}

void trust_findings_sort(trust_findings *self)
{
    if (self->count > 0) {
        qsort(self->at, self->count, sizeof(*self->at), compare);
    }
}
