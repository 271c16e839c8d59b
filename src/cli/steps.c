#include "cli/steps.h"

#include "base/err.h"
#include "base/str.h"
#include "cli/say.h"

enum { MEMORY = 512 << 20, SHOWN_OF_SECRET = 4, INFO_BYTES = 64 << 20 };

void cli_steps_init(cli_steps *self, const output *device, bool is_json, uint64_t now_ms)
{
    *self = (cli_steps){.device = device, .is_json = is_json, .start_ms = now_ms};
    buf_init(&self->text, CLI_STEPS_BYTES);
    buf_init(&self->told_info, INFO_BYTES);
    buf_init(&self->told_capabilities, INFO_BYTES);
    for (size_t i = 0; i < 4; i++) {
        self->told.counts[i] = SIZE_MAX;
    }
}

void cli_steps_fini(cli_steps *self)
{
    buf_fini(&self->text);
    buf_fini(&self->told_info);
    buf_fini(&self->told_capabilities);
}

/* ---- header fields --------------------------------------------------------------------------- */

static bool is_secret(bay_str name)
{
    static const bay_str names[] = {STR_INIT("authorization"), STR_INIT("proxy-authorization"),
                                    STR_INIT("cookie"), STR_INIT("mcp-session-id"),
                                    STR_INIT("x-api-key")};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (str_eq_nocase(name, names[i])) {
            return true;
        }
    }
    return false;
}

void cli_steps_field_value(buf *out, bay_str name, bay_str value)
{
    if (!is_secret(name)) {
        output_line(out, value);
        return;
    }
    /* a short one would be shown by its beginning */
    output_line(out, str_head(value, value.len > 4 * SHOWN_OF_SECRET ? SHOWN_OF_SECRET : 0));
    buf_printf(out, "… (%zu bytes)", value.len);
}

/* ---- what a message is ----------------------------------------------------------------------- */

typedef struct sight {
    bool is_readable;
    bay_str method; /* of a request or notification, or of the request this answers */
    bool is_answer;
    bool is_error;
    int64_t error_code;
} sight;

static bool read_id(json_val message, uint64_t *out)
{
    return json_uint64(json_get(message, STR("id")), out) == BAY_OK;
}

static void note_request(cli_steps *self, json_val message, bay_str method)
{
    uint64_t id;
    const mcp_method *known = NULL;
    for (int i = MCP_REVISION_COUNT; known == NULL && i-- > 0;) {
        known = mcp_method_find(method, (mcp_revision_id)i, MCP_SENDER_CLIENT);
    }
    if (known != NULL && read_id(message, &id)) {
        self->ids[id % 8] = id;
        self->methods[id % 8] = known->text;
    }
    if (known != NULL && known->id == MCP_DISCOVER) {
        self->probe = CLI_PROBE_ASKED;
    }
}

static void note_answer(cli_steps *self, sight *out, json_val message)
{
    uint64_t id = 0;
    json_val error = json_get(message, STR("error"));
    out->is_answer = true;
    out->is_error = !json_is(error, JSON_MISSING);
    if (out->is_error) {
        err_ignore(json_int64(json_get(error, STR("code")), &out->error_code)); /* shown as 0 */
    }
    if (read_id(message, &id) && id != 0 && self->ids[id % 8] == id) {
        out->method = self->methods[id % 8];
    }
    if (str_eq(out->method, STR("server/discover"))) {
        self->probe = out->is_error ? CLI_PROBE_REFUSED : CLI_PROBE_ANSWERED;
        self->probe_error = (int)out->error_code;
    }
}

static sight steps_look(cli_steps *self, bool is_outgoing, bay_str message, arena *memory)
{
    sight out = {0};
    json_doc doc;
    if (json_parse(&doc, message, NULL, memory, NULL) != BAY_OK) {
        return out;
    }
    json_val root = json_root(&doc);
    json_val method = json_get(root, STR("method"));
    out.is_readable = true;
    if (json_is(method, JSON_STRING)) {
        if (json_str(method, memory, &out.method) == BAY_OK && is_outgoing) {
            note_request(self, root, out.method);
        }
    } else if (json_is(root, JSON_OBJECT)) {
        note_answer(self, &out, root);
    }
    return out;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void put_text(cli_steps *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                     size_t count, uint64_t after_ms, const sight *seen)
{
    const output *device = self->device;
    buf *out = &self->text;
    output_color(device, out, is_outgoing ? OUTPUT_CYAN : OUTPUT_GREEN);
    buf_str(out, is_outgoing ? STR("→ ") : STR("← "));
    output_color(device, out, OUTPUT_BOLD);
    buf_printf(out, "%zu ", self->count);
    output_line(out, seen->method.len > 0 ? seen->method : STR("(unreadable)"));
    if (seen->is_answer) {
        buf_str(out, seen->is_error ? STR(": error") : STR(": result"));
    }
    output_color(device, out, OUTPUT_PLAIN);
    output_color(device, out, OUTPUT_DIM);
    buf_lit(out, "  ");
    cli_put_count(out, message.len);
    buf_printf(out, " bytes, %llu ms\n", (unsigned long long)after_ms);
    for (size_t i = 0; i < count; i++) {
        buf_lit(out, "  ");
        output_line(out, fields[i].name);
        buf_lit(out, ": ");
        cli_steps_field_value(out, fields[i].name, fields[i].value);
        buf_char(out, '\n');
    }
    output_color(device, out, OUTPUT_PLAIN);
    buf_lit(out, "  ");
    if (seen->is_readable) {
        output_json(device, out, message);
    } else {
        output_text(device, out, message);
    }
    buf_char(out, '\n');
}

static void put_json(cli_steps *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                     size_t count, uint64_t after_ms, const sight *seen)
{
    buf value;
    json_writer_init(&self->writer, &self->text);
    json_open_object(&self->writer);
    json_key_lit(&self->writer, "number");
    json_put_uint(&self->writer, self->count);
    json_key_lit(&self->writer, "direction");
    json_put_str(&self->writer, is_outgoing ? STR("out") : STR("in"));
    json_key_lit(&self->writer, "afterMs");
    json_put_uint(&self->writer, after_ms);
    json_key_lit(&self->writer, "method");
    json_put_str(&self->writer, seen->method);
    if (count > 0) {
        json_key_lit(&self->writer, "fields");
        json_open_object(&self->writer);
        buf_init(&value, INFO_BYTES);
        for (size_t i = 0; i < count; i++) {
            buf_clear(&value);
            cli_steps_field_value(&value, fields[i].name, fields[i].value);
            json_key(&self->writer, fields[i].name);
            json_put_str(&self->writer, buf_view(&value));
        }
        buf_fini(&value);
        json_close_object(&self->writer);
    }
    /* what is no JSON goes as a text: its bytes could not stand here */
    json_key(&self->writer, seen->is_readable ? STR("message") : STR("text"));
    if (seen->is_readable) {
        json_put_raw(&self->writer, message);
    } else {
        json_put_str(&self->writer, message);
    }
}

void cli_steps_message(cli_steps *self, bool is_outgoing, bay_str message, const mcp_field *fields,
                       size_t count, uint64_t now_ms)
{
    arena memory;
    arena_init(&memory, MEMORY);
    sight seen = steps_look(self, is_outgoing, message, &memory);
    self->count++;
    self->has_message = true;
    self->is_answer = seen.is_answer && !is_outgoing;
    for (size_t i = 0; i < count; i++) {
        self->has_session =
            self->has_session || str_eq_nocase(fields[i].name, STR("mcp-session-id"));
    }
    uint64_t after_ms = now_ms - self->start_ms;
    if (self->is_json) {
        put_json(self, is_outgoing, message, fields, count, after_ms, &seen);
    } else {
        put_text(self, is_outgoing, message, fields, count, after_ms, &seen);
    }
    arena_fini(&memory);
}

/* ---- knowledge ------------------------------------------------------------------------------- */

/* One fact: a line for people, a member for programs. */
static void put_fact(cli_steps *self, const char *name, bay_str raw_or_text, bool is_raw)
{
    if (self->is_json) {
        json_key(&self->writer, str_of(name));
        if (is_raw) {
            json_put_raw(&self->writer, raw_or_text);
        } else {
            json_put_str(&self->writer, raw_or_text);
        }
        return;
    }
    output_color(self->device, &self->text, OUTPUT_YELLOW);
    buf_printf(&self->text, "  = %s: ", name);
    if (is_raw) {
        output_json_line(&self->text, raw_or_text);
    } else {
        output_line(&self->text, raw_or_text);
    }
    output_color(self->device, &self->text, OUTPUT_PLAIN);
    buf_char(&self->text, '\n');
}

static void put_because(cli_steps *self, buf *reason, mcp_era era)
{
    if (era == MCP_MODERN) {
        buf_str(reason, self->probe == CLI_PROBE_ANSWERED
                            ? STR("modern: it answered server/discover")
                            : STR("modern"));
        return;
    }
    switch (self->probe) {
    case CLI_PROBE_REFUSED:
        buf_printf(reason, "legacy: it answered server/discover with error %d", self->probe_error);
        break;
    case CLI_PROBE_ASKED:
        buf_lit(reason, "legacy: it gave server/discover no answer of its own");
        break;
    case CLI_PROBE_ANSWERED:
        buf_lit(reason, "legacy: its answer to server/discover names no modern revision");
        break;
    case CLI_PROBE_NONE:
        buf_lit(reason, "legacy: it was not asked for anything else");
        break;
    }
}

static void put_era(cli_steps *self, mcp_era era)
{
    char bytes[120];
    buf reason = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    put_because(self, &reason, era);
    put_fact(self, "era", buf_view(&reason), false);
}

static bool has_changed(buf *told, bay_str now)
{
    if (now.len == 0 || str_eq(buf_view(told), now)) {
        return false;
    }
    buf_clear(told);
    buf_str(told, now);
    return true;
}

static void put_counts(cli_steps *self, const cli_known *known)
{
    static const char *const names[] = {"tools", "resources", "resourceTemplates", "prompts"};
    for (size_t i = 0; i < 4; i++) {
        if (known->counts[i] != self->told.counts[i]) {
            char bytes[24];
            buf number = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
            buf_uint(&number, known->counts[i]);
            put_fact(self, names[i], buf_view(&number), true);
            self->told.counts[i] = known->counts[i];
        }
    }
}

static void put_known(cli_steps *self, const cli_known *known)
{
    bool begins_legacy =
        known->state == MCP_CLIENT_INITIALIZING && self->told.state != MCP_CLIENT_INITIALIZING;
    bool has_revision = known->revision != NULL && known->revision != self->told.revision;
    bool is_told = self->told.state == MCP_CLIENT_INITIALIZING && self->told.revision == NULL;
    if (begins_legacy || (has_revision && !is_told)) {
        put_era(self, begins_legacy ? MCP_LEGACY : known->revision->era);
    }
    if (has_revision) {
        put_fact(self, "revision", known->revision->text, false);
        put_fact(self, "transport", str_of(known->transport), false);
        self->told.revision = known->revision;
    }
    if (has_changed(&self->told_info, known->server_info)) {
        put_fact(self, "serverInfo", known->server_info, true);
    }
    if (has_changed(&self->told_capabilities, known->capabilities)) {
        put_fact(self, "capabilities", known->capabilities, true);
    }
    if (self->has_session && !self->is_session_told) {
        put_fact(self, "session", STR("true"), true);
        self->is_session_told = true;
    }
    put_counts(self, known);
    self->told.state = known->state;
}

bool cli_steps_holds_answer(const cli_steps *self)
{
    return self->has_message && self->is_answer;
}

void cli_steps_settle(cli_steps *self, const cli_known *known)
{
    if (!self->has_message) {
        return;
    }
    if (self->is_json) {
        json_key_lit(&self->writer, "knows");
        json_open_object(&self->writer);
        put_known(self, known);
        json_close_object(&self->writer);
        json_close_object(&self->writer);
    } else {
        put_known(self, known);
        buf_char(&self->text, '\n');
    }
    self->has_message = false;
}
