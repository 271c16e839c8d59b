#include "evidence/record.h"

#include <stdio.h>
#include <time.h>

#include "base/shown.h"
#include "base/str.h"
#include "call/target.h"

void evidence_record_make(const call_context *call, call_outcome outcome, bay_str id,
                          uint64_t ended_ms, uint64_t ended_ns, evidence_record *out)
{
    bay_str server = call->about.server.len > 0 ? call->about.server
                     : call->target != NULL     ? call_target_name(call->target)
                                                : (bay_str){"", 0};
    bool is_listed = call->about.kind != POLICY_METHOD && !call->about.is_unlisted;
    *out = (evidence_record){
        .call = call,
        .outcome = outcome,
        .ended_ms = ended_ms,
        .duration_ns = ended_ns > call->began_ns ? ended_ns - call->began_ns : 0,
        .id = id,
        .server = server,
        .target = is_listed ? call->about.name : (bay_str){"", 0},
    };
}

const char *evidence_outcome_text(call_outcome outcome)
{
    static const char *const texts[] = {
        [CALL_RESULT] = "result",       [CALL_TOOL_ERROR] = "tool_error", [CALL_ERROR] = "error",
        [CALL_TURNED_AWAY] = "refused", [CALL_CANCELLED] = "cancelled",
    };
    return texts[outcome];
}

bay_str evidence_reason(const evidence_record *self, char room[RECORD_REASON_BYTES])
{
    const call_context *call = self->call;
    if (self->outcome == CALL_TURNED_AWAY) {
        return str_of(call_reason_text(call->refused_for));
    }
    if (self->outcome != CALL_ERROR || call->error_code == 0) {
        return (bay_str){"", 0};
    }
    buf text = {.at = room, .cap = RECORD_REASON_BYTES, .max = RECORD_REASON_BYTES};
    buf_int(&text, call->error_code);
    return buf_view(&text);
}

void record_put_time(record_clock *cache, uint64_t wall_ms, buf *out)
{
    uint64_t second = wall_ms / 1000;
    unsigned part = (unsigned)(wall_ms % 1000);
    if (cache->second != second || cache->text[0] == '\0') {
        struct tm parts;
        time_t at = (time_t)second;
        gmtime_r(&at, &parts);
        (void)strftime(cache->text, sizeof(cache->text), "%Y-%m-%dT%H:%M:%S", &parts);
        cache->second = second;
    }
    char rest[] = {'.', (char)('0' + part / 100), (char)('0' + part / 10 % 10),
                   (char)('0' + part % 10), 'Z'};
    buf_append(out, cache->text, sizeof(cache->text) - 1);
    buf_append(out, rest, sizeof(rest));
}

/* ---- JSON ------------------------------------------------------------------------------------- */

/* The text with a bound; what is left of a character at its end goes. */
static void put_text(json_writer *out, bay_str text, size_t most)
{
    json_put_str(out, text.len > most ? shown_whole(str_head(text, most)) : text);
}

static void put_time(json_writer *out, record_clock *clock, uint64_t wall_ms)
{
    json_key_lit(out, "time");
    size_t opened = json_open_word(out);
    record_put_time(clock, wall_ms, out->out);
    json_close_word(out, opened);
}

static void put_principal(json_writer *out, const auth_principal *who)
{
    bay_str client = principal_client(who);
    bay_str issuer = principal_issuer(who);
    json_open_object(out);
    json_key_lit(out, "proof");
    json_put_word(out, str_of(principal_proof_name(who)));
    if (who != NULL) {
        json_key_lit(out, "sub");
        put_text(out, principal_subject(who), RECORD_PERSON_BYTES);
    }
    if (issuer.len > 0) {
        json_key_lit(out, "iss");
        put_text(out, issuer, RECORD_PERSON_BYTES);
    }
    if (client.len > 0) {
        json_key_lit(out, "client");
        put_text(out, client, RECORD_PERSON_BYTES);
    }
    if (principal_actor(who) != NULL) {
        json_key_lit(out, "actor");
        put_principal(out, principal_actor(who)); /* at most PRINCIPAL_ACTORS */
    }
    json_close_object(out);
}

/* As the caller wrote it; a URI may have a credential in it. */
static bay_str name_of(const call_context *call)
{
    return arguments_text_is_secret(call->shown) ? STR("[redacted]") : call->shown;
}

static void put_what(json_writer *out, const evidence_record *self)
{
    const call_context *call = self->call;
    json_key_lit(out, "protocol");
    json_put_word(out, call->protocol == CALL_MCP ? STR("mcp") : STR("a2a"));
    if (call->revision.len > 0) {
        json_key_lit(out, "revision");
        json_put_word(out, call->revision);
    }
    json_key_lit(out, "method");
    put_text(out, call->method, RECORD_NAME_BYTES);
    if (self->server.len > 0) {
        json_key_lit(out, "server");
        json_put_str(out, self->server);
    }
    if (call->shown.len > 0) {
        json_key_lit(out, "name");
        put_text(out, name_of(call), RECORD_NAME_BYTES);
    }
}

static void put_end(json_writer *out, const evidence_record *self)
{
    char room[RECORD_REASON_BYTES];
    bay_str reason = evidence_reason(self, room);
    json_key_lit(out, "outcome");
    json_put_word(out, str_of(evidence_outcome_text(self->outcome)));
    if (reason.len > 0) {
        json_key_lit(out, "reason");
        json_put_word(out, reason);
    }
    json_key_lit(out, "durationUs");
    json_put_uint(out, self->duration_ns / 1000);
}

void evidence_write_members(const evidence_record *self, arguments_form form, bay_str digest,
                            const seal_ring *ring, record_clock *clock, buf *out)
{
    const call_context *call = self->call;
    json_writer writer = {.out = out, .depth = 1}; /* the object is the chain's */
    put_time(&writer, clock, self->ended_ms);
    json_key_lit(&writer, "kind");
    json_put_word(&writer, STR("call"));
    json_key_lit(&writer, "call");
    json_put_word(&writer, self->id);
    put_what(&writer, self);
    json_key_lit(&writer, "principal");
    put_principal(&writer, call->principal);
    put_end(&writer, self);
    if (call->rule_line > 0) {
        json_key_lit(&writer, "ruleLine");
        json_put_uint(&writer, call->rule_line);
    }
    arguments_write(json_get(call->params, STR("arguments")), form, digest, ring, &writer);
    json_key_lit(&writer, "paramsBytes");
    json_put_uint(&writer, json_raw(call->params).len);
    if (call->result_bytes > 0) {
        json_key_lit(&writer, "resultBytes");
        json_put_uint(&writer, call->result_bytes);
    }
}

void evidence_write_event(const char *kind, bay_str what, const char *outcome, uint64_t wall_ms,
                          record_clock *clock, buf *out)
{
    json_writer writer = {.out = out, .depth = 1}; /* the object is the chain's */
    put_time(&writer, clock, wall_ms);
    json_key_lit(&writer, "kind");
    json_put_word(&writer, str_of(kind));
    json_key_lit(&writer, "what");
    json_put_word(&writer, what);
    json_key_lit(&writer, "outcome");
    json_put_word(&writer, str_of(outcome));
}

void evidence_write_json(const evidence_record *self, record_clock *clock, buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_time(&writer, clock, self->ended_ms);
    json_key_lit(&writer, "level");
    json_put_word(&writer, STR("info"));
    json_key_lit(&writer, "component");
    json_put_word(&writer, STR("access"));
    json_key_lit(&writer, "call");
    json_put_word(&writer, self->id);
    put_what(&writer, self);
    json_key_lit(&writer, "principal");
    put_principal(&writer, self->call->principal);
    put_end(&writer, self);
    json_close_object(&writer);
}

/* ---- text ------------------------------------------------------------------------------------- */

static void put_shown(buf *out, bay_str text)
{
    char bytes[RECORD_NAME_BYTES];
    size_t len = shown_copy(bytes, sizeof(bytes), text, SHOWN_LINE);
    buf_append(out, bytes, len);
}

void evidence_write_text(const evidence_record *self, record_clock *clock, buf *out)
{
    const call_context *call = self->call;
    char room[RECORD_REASON_BYTES];
    bay_str reason = evidence_reason(self, room);
    uint64_t microseconds = self->duration_ns / 1000;
    record_put_time(clock, self->ended_ms, out);
    buf_lit(out, " info    access: ");
    put_shown(out, call->method);
    if (call->shown.len > 0) {
        buf_char(out, ' ');
        put_shown(out, name_of(call));
    } else if (self->server.len > 0) {
        buf_lit(out, " of ");
        put_shown(out, self->server);
    }
    buf_lit(out, " by ");
    put_shown(out, call->principal != NULL ? principal_subject(call->principal) : STR("anybody"));
    buf_lit(out, ": ");
    buf_str(out, str_of(evidence_outcome_text(self->outcome)));
    if (reason.len > 0) {
        buf_char(out, ' ');
        buf_str(out, reason);
    }
    buf_lit(out, ", ");
    buf_uint(out, microseconds / 1000);
    buf_char(out, '.');
    buf_uint(out, microseconds / 100 % 10);
    buf_lit(out, " ms");
}
