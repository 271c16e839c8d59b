#include "cli/examiner.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/shown.h"
#include "base/str.h"
#include "cli/say.h"
#include "mcp/shape.h"
#include "rpc/message.h"
#include "wire/header.h"
#include "json/writer.h"

enum { MESSAGE_BYTES = 64 << 10, SHOWN_BYTES = 161, PLACE_BYTES = 200, WHY_BYTES = 400 };

static const struct {
    const char *id;
    scan_severity severity;
    const char *clause;
    const char *why;
    const char *remedy;
} rows[CONFORMANCE_COUNT] = {
#define CONFORMANCE(symbol, id, severity, clause, why, remedy)                                     \
    [CONFORMANCE_##symbol] = {id, SCAN_##severity, clause, why, remedy},
#include "cli/conformance.def"
};

/* ---- findings -------------------------------------------------------------------------------- */

void examiner_note(examiner *self, conformance which, bay_str what, bay_str place, bay_str shown)
{
    char excerpt[SHOWN_BYTES];
    char why[WHY_BYTES];
    char where[PLACE_BYTES];
    size_t len = shown_copy(excerpt, sizeof(excerpt), shown, SHOWN_LINE);
    size_t where_len = shown_copy(where, sizeof(where), what,
                                  SHOWN_LINE); /* the method, and where in its answer */
    where_len += place.len == 0
                     ? 0
                     : shown_copy(where + where_len, sizeof(where) - where_len, place, SHOWN_LINE);
    int why_len = snprintf(why, sizeof(why), "%s (%s)", rows[which].why, rows[which].clause);
    trust_finding found = {
        .source = TRUST_BY_PROTOCOL,
        .severity = rows[which].severity,
        .rule = str_of(rows[which].id),
        .server = self->server,
        .kind = TRUST_KINDS,
        .pointer = {where, where_len},
        .excerpt = {excerpt, len},
        .why = {why, (size_t)why_len},
        .remedy = str_of(rows[which].remedy),
    };
    bay_err err = trust_findings_add(self->findings, &found, self->silences);
    if (err != BAY_OK) {
        self->code = cli_fail(err);
    }
}

int examiner_error(const cli_wire_reply *reply)
{
    int64_t code = 0;
    err_ignore(json_int64(json_get(json_get(reply->message, STR("error")), STR("code")), &code));
    return code >= INT32_MIN && code <= INT32_MAX ? (int)code : 0;
}

json_val examiner_result(const cli_wire_reply *reply)
{
    return json_get(reply->message, STR("result"));
}

void examiner_expect(examiner *self, conformance which, bay_str what, const cli_wire_reply *reply,
                     int error)
{
    if (examiner_error(reply) != error) {
        examiner_note(self, which, what, (bay_str){"", 0}, reply->text);
    }
}

bool examiner_is_http(const examiner *self)
{
    return !self->target.is_process;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bay_str version_of(const examiner *self, const examiner_question *question)
{
    return question->version.len > 0   ? question->version
           : self->a2a_version.len > 0 ? self->a2a_version
           : self->revision != NULL    ? self->revision->text
                                       : (bay_str){"", 0};
}

static bool is_modern(const examiner *self)
{
    return self->revision != NULL && self->revision->era == MCP_MODERN;
}

static void put_meta(json_writer *out, bay_str version)
{
    json_key(out, STR("_meta"));
    json_open_object(out);
    json_key(out, STR(MCP_META_VERSION));
    json_put_str(out, version);
    json_key(out, STR(MCP_META_CLIENT_INFO));
    json_open_object(out);
    json_key(out, STR("name"));
    json_put_str(out, STR("patchbay"));
    json_key(out, STR("version"));
    json_put_str(out, str_of(bay_version()));
    json_close_object(out);
    json_key(out, STR(MCP_META_CLIENT_CAPABILITIES));
    json_open_object(out);
    json_close_object(out);
    json_close_object(out);
}

/* initialize is the only one whose params are not one member. */
static void put_initialize(json_writer *out, bay_str version)
{
    json_key(out, STR("protocolVersion"));
    json_put_str(out, version);
    json_key(out, STR("capabilities"));
    json_open_object(out);
    json_close_object(out);
    json_key(out, STR("clientInfo"));
    json_open_object(out);
    json_key(out, STR("name"));
    json_put_str(out, STR("patchbay"));
    json_key(out, STR("version"));
    json_put_str(out, str_of(bay_version()));
    json_close_object(out);
}

static void put_message(const examiner *self, const examiner_question *question, bay_str id,
                        buf *out)
{
    json_writer json;
    json_writer_init(&json, out);
    json_open_object(&json);
    json_key(&json, STR("jsonrpc"));
    json_put_str(&json, STR("2.0"));
    if (id.len > 0) {
        json_key(&json, STR("id"));
        json_put_raw(&json, id);
    }
    json_key(&json, STR("method"));
    json_put_str(&json, question->method);
    json_key(&json, STR("params"));
    json_open_object(&json);
    if (str_eq(question->method, STR("initialize"))) {
        put_initialize(&json, question->version);
    } else if (question->key.len > 0) {
        json_key(&json, question->key);
        json_put_str(&json, question->value);
    }
    if (is_modern(self) && !question->lacks_meta) {
        put_meta(&json, version_of(self, question));
    }
    json_close_object(&json);
    json_close_object(&json);
}

static void put_field(http_field *fields, size_t *count, const examiner_question *question,
                      bay_str name, bay_str value)
{
    if (value.len > 0 && !str_eq_nocase(name, question->field)) {
        fields[(*count)++] = (http_field){name, value};
    }
}

/* Those of the revision, the question's own in place of one of them. */
static size_t fields_of(const examiner *self, const examiner_question *question,
                        http_field out[EXAMINER_FIELDS])
{
    size_t count = 0;
    bay_str version = version_of(self, question);
    bool is_agent = self->a2a_version.len > 0;
    if (!question->is_get) {
        put_field(out, &count, question, STR("Content-Type"), STR("application/json"));
    }
    put_field(out, &count, question, STR("Accept"),
              question->is_get ? STR("text/event-stream")
                               : STR("application/json, text/event-stream"));
    put_field(out, &count, question, is_agent ? STR("A2A-Version") : STR("MCP-Protocol-Version"),
              str_eq(question->method, STR("initialize")) ? (bay_str){"", 0} : version);
    put_field(out, &count, question, STR("Mcp-Session-Id"), self->session);
    if (is_modern(self) && !question->is_get) {
        bool has_name = str_eq(question->key, STR("name")) || str_eq(question->key, STR("uri"));
        put_field(out, &count, question, STR("Mcp-Method"), question->method);
        put_field(out, &count, question, STR("Mcp-Name"),
                  has_name ? question->value : (bay_str){"", 0});
    }
    if (question->field_value.len > 0) {
        out[count++] = (http_field){question->field, question->field_value};
    }
    return count;
}

bool examiner_send(examiner *self, const examiner_question *question, cli_wire_reply *out)
{
    http_field fields[EXAMINER_FIELDS];
    buf text;
    *out = (cli_wire_reply){.message = JSON_NONE};
    self->asked[0] = '\0';
    if (question->id.len > 0) {
        snprintf(self->asked, sizeof(self->asked), "%.*s", BAY_STR(question->id));
    } else if (!question->is_notification && !question->is_get) {
        snprintf(self->asked, sizeof(self->asked), "%u", ++self->last_id);
    }
    bay_str id = str_of(self->asked);
    buf_init(&text, MESSAGE_BYTES);
    if (question->raw.len > 0) {
        buf_str(&text, question->raw);
    } else if (!question->is_get) {
        put_message(self, question, id, &text);
    }
    cli_wire_request request = {.text = buf_view(&text),
                                .id = id,
                                .http_method = question->is_get ? STR("GET") : STR("POST"),
                                .fields = fields,
                                .field_count = fields_of(self, question, fields),
                                .wait_ms = question->wait_ms};
    cli_exit code =
        text.err != BAY_OK ? cli_fail(text.err) : cli_wire_ask(self->wire, &request, out);
    buf_fini(&text);
    self->code = self->code == CLI_EXIT_OK ? code : self->code;
    return self->code == CLI_EXIT_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void look_at_result(examiner *self, bay_str what, json_val result)
{
    mcp_shape_fault fault;
    char shown[MCP_SHAPE_TEXT_BYTES + 1];
    if (self->revision == NULL) {
        return;
    }
    const mcp_method *method = mcp_method_find(what, self->revision->id, MCP_SENDER_CLIENT);
    if (method != NULL && !mcp_shape_result(method, self->revision, result, &fault)) {
        snprintf(shown, sizeof(shown), "%s", fault.text);
        examiner_note(self, CONFORMANCE_SHAPE, what, str_of(fault.place), str_of(shown));
    }
}

/* An error without an id may be about a request whose id could not be read. */
static bool has_asked_id(const examiner *self, const cli_wire_reply *reply)
{
    json_val id = json_get(reply->message, STR("id"));
    bool is_unread = examiner_error(reply) != 0 && json_kind_of(id) <= JSON_NULL;
    return is_unread || str_eq(json_raw(id), str_of(self->asked));
}

static void look_at_envelope(examiner *self, bay_str what, const cli_wire_reply *reply)
{
    rpc_message message;
    rpc_fault fault = {0};
    bay_str nowhere = {"", 0};
    arena memory;
    arena_init(&memory, MESSAGE_BYTES);
    bay_err err = rpc_message_read(&message, reply->message, &memory, &fault);
    if (err == BAY_ERR_PROTOCOL) {
        examiner_note(self, CONFORMANCE_ENVELOPE, what, nowhere, reply->text);
    } else if (err != BAY_OK) {
        self->code = cli_fail(err);
    } else if (!has_asked_id(self, reply)) {
        examiner_note(self, CONFORMANCE_ID, what, nowhere, reply->text);
    } else if (message.kind == RPC_RESULT) {
        look_at_result(self, what, message.result);
    }
    arena_fini(&memory);
}

static bool is_message(bay_str text)
{
    return str_starts(str_trim(text), STR("{"));
}

/* What came on a pipe beside the answer, or in its place. */
static void look_at_strangers(examiner *self, bay_str what, const cli_wire_reply *reply)
{
    if (reply->strangers > 0) {
        examiner_note(self, is_message(reply->stranger) ? CONFORMANCE_ID : CONFORMANCE_NOT_JSON,
                      what, (bay_str){"", 0}, reply->stranger);
    }
}

static bool has_answer_type(const cli_wire_reply *reply)
{
    return header_content_type_is(reply->content_type, STR("application/json")) ||
           header_content_type_is(reply->content_type, STR("text/event-stream"));
}

bool examiner_ask(examiner *self, const examiner_question *question, cli_wire_reply *out)
{
    bay_str nowhere = {"", 0};
    bay_str what = question->method;
    if (!examiner_send(self, question, out)) {
        return false;
    }
    look_at_strangers(self, what, out);
    if (out->end == CLI_WIRE_CLOSED) {
        examiner_note(self, CONFORMANCE_ENDED, what, nowhere, nowhere);
    } else if (out->end == CLI_WIRE_SILENT && !is_message(out->stranger)) {
        examiner_note(self, CONFORMANCE_NO_ANSWER, what, nowhere, nowhere);
    }
    if (out->end != CLI_WIRE_ANSWERED) {
        return false;
    }
    bool is_fine = out->status == 0 || out->status == 200;
    if (json_kind_of(out->message) != JSON_OBJECT) {
        if (is_fine) {
            examiner_note(self, CONFORMANCE_NOT_JSON, what, nowhere, out->text);
        }
        return !is_fine; /* a status of its own says enough */
    }
    if (out->status == 200 && !has_answer_type(out)) {
        examiner_note(self, CONFORMANCE_CONTENT_TYPE, what, nowhere, out->content_type);
    }
    look_at_envelope(self, what, out);
    return self->code == CLI_EXIT_OK;
}
