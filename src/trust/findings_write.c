/* Findings as text, JSON, SARIF and JUnit. */
#include "base/shown.h"
#include "base/str.h"
#include "trust/findings.h"
#include "json/writer.h"

static void put_line(buf *out, bay_str text)
{
    shown_append(out, text, SHOWN_LINE);
}

/* ---- for people ------------------------------------------------------------------------------ */

static bool is_same_item(const trust_finding *a, const trust_finding *b)
{
    return str_eq(a->server, b->server) && a->kind == b->kind && str_eq(a->item, b->item);
}

static void put_heading(const trust_finding *of, buf *out)
{
    put_line(out, of->server);
    buf_str(out, of->server.len > 0 ? STR(" ") : STR(""));
    if (of->kind < TRUST_KINDS) {
        buf_str(out, str_of(trust_kind_text(of->kind)));
        buf_str(out, of->item.len > 0 ? STR(" ") : STR(""));
        put_line(out, of->item);
    } else if (of->server.len == 0) {
        buf_lit(out, "server");
    }
    buf_char(out, '\n');
}

static void put_finding(const trust_finding *of, buf *out)
{
    bool counts = of->silenced.len == 0;
    buf_printf(out, "  %-7s ", counts ? scan_severity_text(of->severity) : "silent");
    put_line(out, of->rule);
    buf_lit(out, " ");
    put_line(out, of->pointer.len > 0 ? of->pointer : STR("-"));
    if (of->len > 0) {
        buf_printf(out, " @%zu+%zu", of->start, of->len);
    }
    buf_lit(out, ": ");
    put_line(out, of->why);
    if (of->excerpt.len > 0) {
        buf_lit(out, ": \"");
        put_line(out, of->excerpt);
        buf_char(out, '"');
    }
    buf_lit(out, ". ");
    if (counts) {
        put_line(out, of->remedy);
    } else {
        buf_lit(out, "Silenced: ");
        put_line(out, of->silenced);
    }
    buf_char(out, '\n');
}

static void put_counts(const trust_findings *self, buf *out)
{
    buf_printf(out, "%zu error%s, %zu warning%s, %zu note%s", self->counts[SCAN_ERROR],
               self->counts[SCAN_ERROR] == 1 ? "" : "s", self->counts[SCAN_WARNING],
               self->counts[SCAN_WARNING] == 1 ? "" : "s", self->counts[SCAN_NOTE],
               self->counts[SCAN_NOTE] == 1 ? "" : "s");
    if (self->silenced > 0) {
        buf_printf(out, ", %zu silenced", self->silenced);
    }
    if (self->dropped > 0) {
        buf_printf(out, "; %zu are not shown", self->dropped);
    }
    buf_char(out, '\n');
}

void trust_findings_write_text(const trust_findings *self, buf *out)
{
    for (size_t i = 0; i < self->count; i++) {
        if (i == 0 || !is_same_item(&self->at[i], &self->at[i - 1])) {
            put_heading(&self->at[i], out);
        }
        put_finding(&self->at[i], out);
    }
    put_counts(self, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_text(json_writer *out, const char *key, bay_str text)
{
    json_key(out, str_of(key));
    json_put_str(out, text);
}

static void put_count(json_writer *out, const char *key, size_t count)
{
    json_key(out, str_of(key));
    json_put_uint(out, count);
}

static void put_json_finding(json_writer *out, const trust_finding *of)
{
    json_open_object(out);
    put_text(out, "rule", of->rule);
    put_text(out, "severity", str_of(scan_severity_text(of->severity)));
    put_text(out, "source", str_of(trust_source_text(of->source)));
    if (of->server.len > 0) {
        put_text(out, "server", of->server);
    }
    if (of->kind < TRUST_KINDS) {
        put_text(out, "kind", str_of(trust_kind_text(of->kind)));
        put_text(out, "item", of->item);
        put_text(out, "pointer", of->pointer);
    }
    if (of->len > 0) {
        put_count(out, "start", of->start);
        put_count(out, "length", of->len);
    }
    if (of->excerpt.len > 0) {
        put_text(out, "excerpt", of->excerpt);
    }
    put_text(out, "why", of->why);
    put_text(out, "remedy", of->remedy);
    if (of->silenced.len > 0) {
        put_text(out, "silenced", of->silenced);
    }
    json_close_object(out);
}

void trust_findings_write_json(const trust_findings *self, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_count(&writer, "errors", self->counts[SCAN_ERROR]);
    put_count(&writer, "warnings", self->counts[SCAN_WARNING]);
    put_count(&writer, "notes", self->counts[SCAN_NOTE]);
    put_count(&writer, "silenced", self->silenced);
    put_count(&writer, "notShown", self->dropped);
    json_key_lit(&writer, "findings");
    json_open_array(&writer);
    for (size_t i = 0; i < self->count; i++) {
        put_json_finding(&writer, &self->at[i]);
    }
    json_close_array(&writer);
    json_close_object(&writer);
}

/* ---- SARIF ----------------------------------------------------------------------------------- */

static bool is_first_of_rule(const trust_findings *self, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (str_eq(self->at[i].rule, self->at[at].rule)) {
            return false;
        }
    }
    return true;
}

static void put_message(json_writer *out, const char *key, bay_str text)
{
    json_key(out, str_of(key));
    json_open_object(out);
    put_text(out, "text", text);
    json_close_object(out);
}

static void put_sarif_rules(json_writer *out, const trust_findings *self)
{
    json_key_lit(out, "rules");
    json_open_array(out);
    for (size_t i = 0; i < self->count; i++) {
        const trust_finding *of = &self->at[i];
        if (is_first_of_rule(self, i)) {
            json_open_object(out);
            put_text(out, "id", of->rule);
            put_message(out, "shortDescription", of->why);
            put_message(out, "help", of->remedy.len > 0 ? of->remedy : of->why);
            json_close_object(out);
        }
    }
    json_close_array(out);
}

/* A definition is no file: it has a logical place, "files/tool/read_file/description". */
static void put_sarif_place(json_writer *out, const trust_finding *of)
{
    buf full;
    buf_init(&full, 1 << 16);
    buf_str(&full, of->server);
    if (of->kind < TRUST_KINDS) {
        buf_printf(&full, "/%s", trust_kind_text(of->kind));
        buf_str(&full, of->item.len > 0 ? STR("/") : STR(""));
        buf_str(&full, of->item);
    }
    buf_str(&full, of->pointer);
    json_key_lit(out, "locations");
    json_open_array(out);
    json_open_object(out);
    json_key_lit(out, "logicalLocations");
    json_open_array(out);
    json_open_object(out);
    put_text(out, "fullyQualifiedName", buf_view(&full));
    put_text(out, "kind", STR("member"));
    if (of->item.len > 0) {
        put_text(out, "name", of->item);
    }
    json_close_object(out);
    json_close_array(out);
    json_close_object(out);
    json_close_array(out);
    buf_fini(&full);
}

static void put_sarif_result(json_writer *out, const trust_finding *of)
{
    buf message;
    buf_init(&message, 1 << 16);
    buf_str(&message, of->why);
    if (of->excerpt.len > 0) {
        buf_lit(&message, ": \"");
        buf_str(&message, of->excerpt);
        buf_char(&message, '"');
    }
    json_open_object(out);
    put_text(out, "ruleId", of->rule);
    put_text(out, "level", str_of(scan_severity_text(of->severity)));
    put_message(out, "message", buf_view(&message));
    put_sarif_place(out, of);
    if (of->silenced.len > 0) {
        json_key_lit(out, "suppressions");
        json_open_array(out);
        json_open_object(out);
        put_text(out, "kind", STR("external"));
        put_text(out, "justification", of->silenced);
        json_close_object(out);
        json_close_array(out);
    }
    json_close_object(out);
    buf_fini(&message);
}

void trust_findings_write_sarif(const trust_findings *self, bay_str version, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_text(&writer, "version", STR("2.1.0"));
    json_key_lit(&writer, "runs");
    json_open_array(&writer);
    json_open_object(&writer);
    json_key_lit(&writer, "tool");
    json_open_object(&writer);
    json_key_lit(&writer, "driver");
    json_open_object(&writer);
    put_text(&writer, "name", STR("patchbay"));
    put_text(&writer, "version", version);
    put_sarif_rules(&writer, self);
    json_close_object(&writer);
    json_close_object(&writer);
    put_text(&writer, "columnKind", STR("unicodeCodePoints"));
    json_key_lit(&writer, "results");
    json_open_array(&writer);
    for (size_t i = 0; i < self->count; i++) {
        put_sarif_result(&writer, &self->at[i]);
    }
    json_close_array(&writer);
    json_close_object(&writer);
    json_close_array(&writer);
    json_close_object(&writer);
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* Text of XML 1.0: what may not stand in it is shown already, or is replaced by its code point. */
static void put_xml(buf *out, bay_str text)
{
    buf shown;
    buf_init(&shown, 1 << 20);
    shown_append(&shown, text, SHOWN_LINE);
    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.at[i];
        bay_str entity = c == '<'   ? STR("&lt;")
                         : c == '>' ? STR("&gt;")
                         : c == '&' ? STR("&amp;")
                         : c == '"' ? STR("&quot;")
                                    : (bay_str){&shown.at[i], 1};
        buf_str(out, entity);
    }
    out->err = out->err == BAY_OK ? shown.err : out->err;
    buf_fini(&shown);
}

static bool fails(const trust_finding *of)
{
    return of->silenced.len == 0 && of->severity >= SCAN_WARNING;
}

static bool is_about(const trust_finding *of, bay_str server, trust_kind kind, bay_str item)
{
    return str_eq(of->server, server) && of->kind == kind && str_eq(of->item, item);
}

static void put_case(const trust_findings *self, size_t *at, bay_str server, trust_kind kind,
                     bay_str item, buf *out)
{
    buf_lit(out, "    <testcase classname=\"");
    put_xml(out, server);
    buf_lit(out, "\" name=\"");
    buf_str(out, kind < TRUST_KINDS ? str_of(trust_kind_text(kind)) : STR("server"));
    buf_str(out, item.len > 0 ? STR(" ") : STR(""));
    put_xml(out, item);
    buf_lit(out, "\">\n");
    for (; *at < self->count && is_about(&self->at[*at], server, kind, item); (*at)++) {
        const trust_finding *of = &self->at[*at];
        if (!fails(of)) {
            continue;
        }
        buf_lit(out, "      <failure type=\"");
        put_xml(out, of->rule);
        buf_lit(out, "\" message=\"");
        put_xml(out, of->why);
        buf_lit(out, "\">");
        put_xml(out, of->pointer);
        buf_lit(out, " ");
        put_xml(out, of->excerpt);
        buf_lit(out, "</failure>\n");
    }
    buf_lit(out, "    </testcase>\n");
}

static size_t count_failing_items(const trust_findings *self, bay_str server)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) {
        const trust_finding *of = &self->at[i];
        bool is_first = true;
        for (size_t k = i; k > 0 && is_same_item(&self->at[k - 1], of); k--) {
            is_first = is_first && !fails(&self->at[k - 1]);
        }
        count += fails(of) && is_first && str_eq(of->server, server);
    }
    return count;
}

/* Findings about the server itself come behind those of its items: the last kind. */
static bool has_own(const trust_findings *self, bay_str server)
{
    for (size_t i = 0; i < self->count; i++) {
        if (is_about(&self->at[i], server, TRUST_KINDS, (bay_str){"", 0})) {
            return true;
        }
    }
    return false;
}

void trust_findings_write_junit(const trust_findings *self,
                                const trust_definitions *const *looked_at, size_t count, buf *out)
{
    buf_lit(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < count; i++) {
        const trust_definitions *of = looked_at[i];
        bool with_own = has_own(self, of->server);
        size_t at = 0;
        while (at < self->count && !str_eq(self->at[at].server, of->server)) {
            at++;
        }
        buf_lit(out, "  <testsuite name=\"");
        put_xml(out, of->server);
        buf_printf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n", of->count + with_own,
                   count_failing_items(self, of->server));
        for (size_t k = 0; k < of->count; k++) {
            put_case(self, &at, of->server, of->items[k].kind, of->items[k].name, out);
        }
        if (with_own) {
            put_case(self, &at, of->server, TRUST_KINDS, (bay_str){"", 0}, out);
        }
        buf_lit(out, "  </testsuite>\n");
    }
    buf_lit(out, "</testsuites>\n");
}
