#include "trust/grade.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "wire/uri.h"
#include "json/writer.h"

enum { CANON_BYTES = 64 << 20 };

static const struct {
    const char *id;
    unsigned weight;
} checks[GRADE_CHECKS] = {
#define GRADE_CHECK(symbol, id, weight) [GRADE_##symbol] = {id, weight},
#include "trust/grade_checks.def"
};

const char *grade_check_text(grade_check check)
{
    return checks[check].id;
}

/* Gives `part` of `whole` of the points; no part of nothing is none of them. */
static void give(trust_grade *self, grade_check check, size_t part, size_t whole)
{
    grade_row *row = &self->rows[check];
    row->applies = true;
    row->weight = checks[check].weight;
    row->points = whole > 0 ? (unsigned)(row->weight * part / whole) : 0;
}

BAY_PRINTF(2, 3) static void say(char out[GRADE_TEXT_BYTES], const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void)vsnprintf(out, GRADE_TEXT_BYTES, format, values);
    va_end(values);
}

/* ---- facts ----------------------------------------------------------------------------------- */

bay_err trust_grade_scan(const trust_definitions *definitions, scan_rule_set *rules,
                         trust_silences *silences, trust_findings *out)
{
    scanner *made = NULL;
    scan_report *report = mem_alloc(sizeof(*report));
    bay_err err = report != NULL ? scanner_new(&made) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        scanner_set_rules(made, rules);
    }
    for (size_t i = 0; err == BAY_OK && i < definitions->count; i++) {
        const trust_item *item = &definitions->items[i];
        err = scan_definition(made, trust_kind_scanned(item->kind), item->value, NULL, report);
        if (err == BAY_OK) {
            err = trust_findings_add_scan(out, report, definitions->server, item, silences);
        }
    }
    scanner_free(made);
    mem_free(report);
    return err;
}

grade_transport trust_grade_transport(bay_str url)
{
    uri parts;
    bool is_good = uri_parse(&parts, url) == BAY_OK;
    bool is_here =
        is_good && (str_eq_nocase(parts.host, STR("localhost")) ||
                    str_starts(parts.host, STR("127.")) || str_eq(parts.host, STR("::1")));
    return is_good && str_eq_nocase(parts.scheme, STR("https")) ? GRADE_TLS
           : is_here                                            ? GRADE_LOOPBACK
                                                                : GRADE_PLAIN;
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void grade_scan(trust_grade *self, const grade_facts *facts)
{
    size_t errors = 0;
    size_t warnings = 0;
    for (size_t i = 0; i < facts->scan->count; i++) {
        const trust_finding *at = &facts->scan->at[i];
        bool counts = at->source == TRUST_BY_SCAN && at->silenced.len == 0;
        errors += counts && at->severity == SCAN_ERROR;
        warnings += counts && at->severity == SCAN_WARNING;
    }
    give(self, GRADE_SCAN, errors > 0 || warnings > 4 ? 0 : 5 - warnings, 5);
    grade_row *row = &self->rows[GRADE_SCAN];
    say(row->reason, "%zu errors and %zu warnings of the scanner", errors, warnings);
    if (errors + warnings > 0) {
        say(row->raise, "%s",
            "see patchbay lint; silence what was read and is right, with a reason");
    }
}

static bay_err grade_pins(trust_grade *self, const grade_facts *facts)
{
    size_t approved = 0;
    size_t same = 0;
    size_t count = facts->definitions->count;
    arena memory;
    buf canon;
    bay_err err = BAY_OK;
    arena_init(&memory, TRUST_TEXT_BYTES);
    buf_init(&canon, CANON_BYTES);
    for (size_t i = 0; err == BAY_OK && facts->pinned != NULL && i < count; i++) {
        const trust_item *item = &facts->definitions->items[i];
        const trust_pin *pin = trust_pinned_find(facts->pinned, item->kind, item->name);
        char digest[DIGEST_TEXT_BYTES + 1];
        buf_clear(&canon);
        err = trust_canon(item->value, &memory, &canon, digest);
        if (err == BAY_OK && pin != NULL && strcmp(pin->digest, digest) == 0) {
            same++;
            approved += pin->approved.len > 0;
        }
    }
    buf_fini(&canon);
    arena_fini(&memory);
    bool is_other = facts->pinned != NULL && facts->pinned->identity.len > 0 &&
                    facts->identity.len > 0 && !str_eq(facts->pinned->identity, facts->identity);
    grade_row *row = &self->rows[GRADE_PINS];
    give(self, GRADE_PINS, is_other ? 0 : same + approved, 2 * count);
    if (is_other) {
        say(row->reason, "%s", "its identity differs from the lock");
    } else {
        say(row->reason, "%zu of %zu definitions are as the lock has them, %zu approved", same,
            count, approved);
    }
    if (row->points < row->weight) {
        say(row->raise, "%s", "patchbay pin record, then patchbay pin review");
    }
    return err;
}

static bool has_hint(json_val tool)
{
    json_val annotations = json_get(tool, STR("annotations"));
    json_val reads = json_get(annotations, STR("readOnlyHint"));
    json_val destroys = json_get(annotations, STR("destructiveHint"));
    return json_is(reads, JSON_TRUE) || json_is(destroys, JSON_TRUE) ||
           json_is(destroys, JSON_FALSE);
}

static size_t contradictions_of(const grade_facts *facts)
{
    size_t count = facts->contradicted;
    for (size_t i = 0; i < facts->scan->count; i++) {
        bay_str rule = facts->scan->at[i].rule;
        count += str_ends(rule, STR("-contradiction")) && facts->scan->at[i].silenced.len == 0;
    }
    return count;
}

static void grade_annotations(trust_grade *self, const grade_facts *facts)
{
    size_t tools = 0;
    size_t said = 0;
    size_t contradictions = contradictions_of(facts);
    for (size_t i = 0; i < facts->definitions->count; i++) {
        const trust_item *item = &facts->definitions->items[i];
        tools += item->kind == TRUST_TOOL;
        said += item->kind == TRUST_TOOL && has_hint(item->value);
    }
    if (tools == 0) {
        return;
    }
    give(self, GRADE_ANNOTATIONS, contradictions > 0 ? 0 : said, tools);
    grade_row *row = &self->rows[GRADE_ANNOTATIONS];
    say(row->reason, "%zu of %zu tools say what they change; %zu claims are contradicted", said,
        tools, contradictions);
    if (row->points < row->weight) {
        say(row->raise, "%s",
            contradictions > 0 ? "correct the annotations that lint and contract --as-declared name"
                               : "add readOnlyHint or destructiveHint to each tool");
    }
}

static bool is_described(json_val schema)
{
    json_iter properties = json_iter_of(json_get(schema, STR("properties")));
    while (json_next(&properties)) {
        json_val text = json_get(properties.value, STR("description"));
        if (json_is(properties.value, JSON_OBJECT) && json_is(text, JSON_MISSING)) {
            return false;
        }
    }
    return json_str_eq(json_get(schema, STR("type")), STR("object"));
}

static void grade_schemas(trust_grade *self, const grade_facts *facts)
{
    size_t tools = 0;
    size_t inputs = 0;
    size_t outputs = 0;
    for (size_t i = 0; i < facts->definitions->count; i++) {
        const trust_item *item = &facts->definitions->items[i];
        if (item->kind == TRUST_TOOL) {
            json_val output = json_get(item->value, STR("outputSchema"));
            tools++;
            inputs += is_described(json_get(item->value, STR("inputSchema")));
            outputs += json_is(output, JSON_OBJECT);
        }
    }
    if (tools == 0) {
        return;
    }
    give(self, GRADE_SCHEMAS, 2 * inputs + outputs, 3 * tools);
    grade_row *row = &self->rows[GRADE_SCHEMAS];
    say(row->reason, "of %zu tools %zu describe every parameter and %zu have an outputSchema",
        tools, inputs, outputs);
    if (row->points < row->weight) {
        say(row->raise, "%s", "see the notes of patchbay lint");
    }
}

static void grade_contracts(trust_grade *self, const grade_facts *facts)
{
    grade_row *row = &self->rows[GRADE_CONTRACTS];
    if (facts->is_agent) {
        return;
    }
    give(self, GRADE_CONTRACTS, facts->held, facts->contracts);
    if (facts->contracts == 0) {
        say(row->reason, "%s", "it has no contracts");
        say(row->raise, "%s", "patchbay contract new TARGET writes a first one");
        return;
    }
    say(row->reason, "%zu of %zu contracts hold", facts->held, facts->contracts);
    if (facts->held < facts->contracts) {
        say(row->raise, "%s", "see patchbay contract");
    }
}

static void grade_place(trust_grade *self, const grade_facts *facts)
{
    grade_row *sandbox = &self->rows[GRADE_SANDBOX];
    grade_row *transport = &self->rows[GRADE_TRANSPORT];
    grade_row *credentials = &self->rows[GRADE_AUTHENTICATION];
    bool is_process = facts->transport == GRADE_PROCESS;
    if (is_process) {
        give(self, GRADE_SANDBOX, facts->has_sandbox ? 1 : 0, 1);
        say(sandbox->reason, "%s",
            facts->has_sandbox ? "it runs in a sandbox" : "it runs with all powers of its user");
        say(sandbox->raise, "%s",
            facts->has_sandbox ? ""
                               : "add sandbox to its configuration; contract --learn proposes one");
    } else {
        give(self, GRADE_AUTHENTICATION, facts->has_credentials ? 1 : 0, 1);
        say(credentials->reason, "%s",
            facts->has_credentials ? "callers authenticate" : "no credentials are used");
        say(credentials->raise, "%s",
            facts->has_credentials ? "" : "protect it by a token or by OAuth");
    }
    static const struct {
        size_t part;
        const char *reason;
        const char *raise;
    } rows[] = {
        [GRADE_PROCESS] = {1, "a pipe of this machine", ""},
        [GRADE_LOOPBACK] = {1, "an address of this machine", ""},
        [GRADE_TLS] = {1, "TLS", ""},
        [GRADE_PLAIN] = {0, "an address of another machine without TLS", "serve it at https"},
    };
    give(self, GRADE_TRANSPORT, rows[facts->transport].part, 1);
    say(transport->reason, "%s", rows[facts->transport].reason);
    say(transport->raise, "%s", rows[facts->transport].raise);
}

/* ---- the sum --------------------------------------------------------------------------------- */

static void add_up(trust_grade *self, bool has_errors)
{
    static const struct {
        char letter;
        unsigned least;
    } letters[] = {{'A', 90}, {'B', 80}, {'C', 65}, {'D', 50}, {'E', 35}, {'F', 0}};
    unsigned points = 0;
    unsigned weight = 0;
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        points += self->rows[i].applies ? self->rows[i].points : 0;
        weight += self->rows[i].applies ? self->rows[i].weight : 0;
    }
    self->points = weight > 0 ? (200 * points + weight) / (2 * weight) : 0;
    size_t at = 0;
    while (self->points < letters[at].least) {
        at++;
    }
    self->letter = has_errors && letters[at].letter < 'D' ? 'D' : letters[at].letter;
}

bay_err trust_grade_run(const grade_facts *facts, trust_grade *out)
{
    *out = (trust_grade){.letter = 'F'};
    grade_scan(out, facts);
    bay_err err = grade_pins(out, facts);
    if (err == BAY_ERR_UNSUPPORTED) {
        out->rows[GRADE_PINS].applies = false;
        err = BAY_OK;
    }
    grade_annotations(out, facts);
    grade_schemas(out, facts);
    grade_contracts(out, facts);
    grade_place(out, facts);
    add_up(out, facts->scan->counts[SCAN_ERROR] > 0);
    return err;
}

void trust_grade_write_text(const trust_grade *self, bay_str name, buf *out)
{
    shown_append(out, name, SHOWN_LINE);
    buf_printf(out, "%s%c, %u of 100\n\n", name.len > 0 ? ": " : "", self->letter, self->points);
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        const grade_row *row = &self->rows[i];
        if (row->applies) {
            buf_printf(out, "  %-15s %2u of %2u  %s\n", checks[i].id, row->points, row->weight,
                       row->reason);
        }
        if (row->applies && row->raise[0] != '\0') {
            buf_printf(out, "  %-15s           %s\n", "", row->raise);
        }
    }
}

void trust_grade_write_json(const trust_grade *self, bay_str name, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "name");
    json_put_str(&writer, name);
    json_key_lit(&writer, "grade");
    json_put_str(&writer, (bay_str){&self->letter, 1});
    json_key_lit(&writer, "points");
    json_put_uint(&writer, self->points);
    json_key_lit(&writer, "checks");
    json_open_array(&writer);
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        const grade_row *row = &self->rows[i];
        if (row->applies) {
            json_open_object(&writer);
            json_key_lit(&writer, "check");
            json_put_str(&writer, str_of(checks[i].id));
            json_key_lit(&writer, "points");
            json_put_uint(&writer, row->points);
            json_key_lit(&writer, "of");
            json_put_uint(&writer, row->weight);
            json_key_lit(&writer, "reason");
            json_put_str(&writer, str_of(row->reason));
            json_key_lit(&writer, "raise");
            json_put_str(&writer, str_of(row->raise));
            json_close_object(&writer);
        }
    }
    json_close_array(&writer);
    json_close_object(&writer);
}
