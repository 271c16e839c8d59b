/* The engine's objects as 1.0 JSON in normal form. */
#include "a2a/agent_internal.h"

#include "json/writer.h"

/* ---- time: RFC 3339, UTC, milliseconds */

enum { DAY_MS = 86400000, ERA_DAYS = 146097 };

static void put_digits(char *at, uint64_t number, int count)
{
    for (int i = count - 1; i >= 0; i--, number /= 10) {
        at[i] = (char)('0' + number % 10);
    }
}

/* Converts days since 1970 to a date of the Gregorian calendar, by cycles of 400 years that begin
 * in March. */
static void civil_of(uint64_t days, uint64_t *year, uint64_t *month, uint64_t *day)
{
    uint64_t shifted = days + 719468;
    uint64_t era = shifted / ERA_DAYS;
    uint64_t of_era = shifted % ERA_DAYS;
    uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint64_t march = (5 * of_year + 2) / 153;
    *day = of_year - (153 * march + 2) / 5 + 1;
    *month = march < 10 ? march + 3 : march - 9;
    *year = year_of_era + era * 400 + (*month <= 2);
}

void agent_write_time(buf *out, uint64_t ms)
{
    char text[AGENT_TIME_BYTES + 1] = "0000-00-00T00:00:00.000Z";
    uint64_t year;
    uint64_t month;
    uint64_t day;
    uint64_t of_day = ms % DAY_MS;
    civil_of(ms / DAY_MS, &year, &month, &day);
    put_digits(text, year, 4);
    put_digits(text + 5, month, 2);
    put_digits(text + 8, day, 2);
    put_digits(text + 11, of_day / 3600000, 2);
    put_digits(text + 14, of_day / 60000 % 60, 2);
    put_digits(text + 17, of_day / 1000 % 60, 2);
    put_digits(text + 20, of_day % 1000, 3);
    buf_append(out, text, AGENT_TIME_BYTES);
}

static bool take_number(bay_str *text, int count, char after, uint64_t *out)
{
    uint64_t number = 0;
    if (text->len < (size_t)count + (after != 0)) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        char c = text->at[i];
        if (c < '0' || c > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(c - '0');
    }
    if (after != 0 && text->at[count] != after) {
        return false;
    }
    *out = number;
    *text = str_from(*text, (size_t)count + (after != 0));
    return true;
}

/* The text after the seconds: a fraction, of which milliseconds are used, and Z or an offset. */
static bool take_rest(bay_str text, int64_t *ms)
{
    if (text.len > 0 && text.at[0] == '.') {
        int64_t scale = 100;
        for (text = str_from(text, 1); text.len > 0 && text.at[0] >= '0' && text.at[0] <= '9';
             text = str_from(text, 1), scale /= 10) {
            *ms += (text.at[0] - '0') * scale;
        }
    }
    if (text.len == 1 && (text.at[0] == 'Z' || text.at[0] == 'z')) {
        return true;
    }
    uint64_t hours;
    uint64_t minutes;
    if (text.len != 6 || (text.at[0] != '+' && text.at[0] != '-')) {
        return false;
    }
    int64_t sign = text.at[0] == '-' ? 1 : -1; /* +02:00 is ahead of UTC */
    text = str_from(text, 1);
    if (!take_number(&text, 2, ':', &hours) || !take_number(&text, 2, 0, &minutes)) {
        return false;
    }
    *ms += sign * (int64_t)(hours * 60 + minutes) * 60000;
    return hours < 24 && minutes < 60;
}

/* Times before 1970 read as 1970. */
bool agent_read_time(bay_str text, uint64_t *out_ms)
{
    uint64_t part[6]; /* year, month, day, hour, minute, second */
    static const struct {
        int digits;
        char after;
    } shape[6] = {{4, '-'}, {2, '-'}, {2, 'T'}, {2, ':'}, {2, ':'}, {2, 0}};
    for (size_t i = 0; i < 6; i++) {
        if (!take_number(&text, shape[i].digits, shape[i].after, &part[i])) {
            return false;
        }
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 || part[3] > 23 ||
        part[4] > 59 || part[5] > 60) {
        return false;
    }
    uint64_t year = part[0] - (part[1] <= 2 && part[0] > 0);
    uint64_t march = part[1] > 2 ? part[1] - 3 : part[1] + 9;
    uint64_t of_year = (153 * march + 2) / 5 + part[2] - 1;
    uint64_t of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
    int64_t days = (int64_t)(year / 400 * ERA_DAYS + of_era) - 719468;
    int64_t ms = days * DAY_MS + (int64_t)(part[3] * 3600000 + part[4] * 60000 + part[5] * 1000);
    if (!take_rest(text, &ms)) {
        return false;
    }
    *out_ms = ms > 0 ? (uint64_t)ms : 0;
    return true;
}

/* ---- tasks */

/* Many changes have the same millisecond, so its text is kept. */
static void write_time_of(a2a_agent *self, uint64_t ms, buf *out)
{
    if (ms != self->told_ms || ms == 0) {
        size_t before = out->len;
        agent_write_time(out, ms);
        if (out->err == BAY_OK) {
            memcpy(self->told_time, out->at + before, AGENT_TIME_BYTES);
            self->told_ms = ms;
        }
        return;
    }
    buf_append(out, self->told_time, AGENT_TIME_BYTES);
}

/* As in the row (what is in a block only by its place) or whole. */
static void write_text(const agent_text *text, bool is_row, buf *out)
{
    if (is_row && agent_overflow_is_apart(text->overflow) && text->len >= AGENT_OVERFLOW_BYTES) {
        agent_write_place(text->overflow, text->place, 1, out);
    } else {
        buf_str(out, agent_text_view(text));
    }
}

static void write_status(const agent_task *self, bool is_row, buf *out)
{
    buf_lit(out, "{\"state\":\"");
    buf_str(out, a2a_state_names[self->state]);
    buf_char(out, '"');
    if (self->status != NULL) {
        buf_lit(out, ",\"message\":");
        write_text(self->status, is_row, out);
    }
    buf_lit(out, ",\"timestamp\":\"");
    write_time_of(self->of, self->status_ms, out);
    buf_lit(out, "\"}");
}

static void write_artifacts(const agent_task *self, bool is_row, buf *out)
{
    buf_lit(out, ",\"artifacts\":[");
    for (uint32_t i = 0; i < self->artifact_count; i++) {
        const agent_artifact *artifact = &self->artifacts[i];
        if (i > 0) {
            buf_char(out, ',');
        }
        buf_char(out, '{');
        buf_append(out, artifact->head, artifact->head_len);
        buf_lit(out, ",\"parts\":[");
        if (is_row) {
            agent_write_parts(artifact, out);
        } else {
            buf_str(out, buf_view(&artifact->parts));
        }
        buf_lit(out, "]}");
    }
    buf_char(out, ']');
}

/* How many from `at` on are adjacent in one block; 0: that one is in none. */
static uint32_t places_of(const agent_task *self, uint32_t at)
{
    const agent_text *first = self->history[at];
    uint32_t count = 0;
    while (agent_overflow_is_apart(first->overflow) && at + count < self->history_count &&
           self->history[at + count]->overflow == first->overflow &&
           self->history[at + count]->place == first->place + count) {
        count++;
    }
    return count;
}

static void write_history(const agent_task *self, uint32_t count, bool is_row, buf *out)
{
    buf_lit(out, ",\"history\":[");
    uint32_t start = self->history_count - count;
    for (uint32_t i = start; i < self->history_count;) {
        uint32_t apart = is_row ? places_of(self, i) : 0;
        if (i > start) {
            buf_char(out, ',');
        }
        if (apart > 0) {
            agent_write_place(self->history[i]->overflow, self->history[i]->place, apart, out);
        } else {
            buf_str(out, agent_text_view(self->history[i]));
        }
        i += apart > 0 ? apart : 1;
    }
    buf_char(out, ']');
}

static void write_task(const agent_task *self, uint32_t history, bool with_artifacts, bool is_row,
                       buf *out)
{
    buf_lit(out, "{\"id\":");
    buf_str(out, str_from(self->ids, sizeof("\"taskId\":") - 1));
    buf_lit(out, ",\"status\":");
    write_status(self, is_row, out);
    if (with_artifacts && self->artifact_count > 0) {
        write_artifacts(self, is_row, out);
    }
    if (history > 0) {
        write_history(self, history, is_row, out);
    }
    buf_char(out, '}');
}

/* a2a 1.0 section 3.2.4 */
void agent_write_task(const agent_task *self, int64_t history_length, bool with_artifacts, buf *out)
{
    uint32_t count = self->history_count;
    if (history_length >= 0 && history_length < count) {
        count = (uint32_t)history_length;
    }
    write_task(self, count, with_artifacts, false, out);
}

void agent_write_kept_task(const agent_task *self, buf *out)
{
    write_task(self, self->history_count, true, true, out);
}

/* ---- events */

void agent_write_status_event(const agent_task *self, bay_str metadata, buf *out)
{
    buf_lit(out, "{\"statusUpdate\":{");
    buf_str(out, self->ids);
    buf_lit(out, ",\"status\":");
    write_status(self, false, out);
    if (metadata.len > 0) {
        buf_lit(out, ",\"metadata\":");
        buf_str(out, metadata);
    }
    buf_lit(out, "}}");
}

void agent_write_artifact_event(const agent_task *self, bay_str artifact, bool append,
                                bool is_last_chunk, buf *out)
{
    buf_lit(out, "{\"artifactUpdate\":{");
    buf_str(out, self->ids);
    buf_lit(out, ",\"artifact\":");
    buf_str(out, artifact);
    if (append) {
        buf_lit(out, ",\"append\":true");
    }
    if (is_last_chunk) {
        buf_lit(out, ",\"lastChunk\":true");
    }
    buf_lit(out, "}}");
}

/* ---- messages */

enum { MESSAGE_ID, PARTS, METADATA, EXTENSIONS, REFERENCES, MESSAGE_KEYS };

static const bay_str message_keys[MESSAGE_KEYS] = {
    [MESSAGE_ID] = STR_INIT("messageId"),        [PARTS] = STR_INIT("parts"),
    [METADATA] = STR_INIT("metadata"),           [EXTENSIONS] = STR_INIT("extensions"),
    [REFERENCES] = STR_INIT("referenceTaskIds"),
};

static void put_member(buf *out, bay_str key, json_val value)
{
    if (json_kind_of(value) > JSON_NULL) {
        buf_lit(out, ",\"");
        buf_str(out, key);
        buf_lit(out, "\":");
        buf_str(out, json_raw(value));
    }
}

static bay_err put_parts(json_val parts, buf *out)
{
    if (!json_is(parts, JSON_ARRAY) || json_count(parts) == 0 || json_count(parts) > A2A_PARTS) {
        return BAY_ERR_INVALID;
    }
    buf_lit(out, ",\"parts\":[");
    json_iter it = json_iter_of(parts);
    for (bool is_first = true; json_next(&it); is_first = false) {
        bool is_normal = false;
        if (!is_first) {
            buf_char(out, ',');
        }
        bay_err err = a2a_normalise(A2A_TYPE_PART, it.value, out, &is_normal, NULL);
        if (err != BAY_OK) {
            return err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err;
        }
        if (is_normal) {
            buf_str(out, json_raw(it.value));
        }
    }
    buf_char(out, ']');
    return BAY_OK;
}

static bool is_list_of_strings(json_val value)
{
    json_iter it = json_iter_of(value);
    while (json_next(&it)) {
        if (!json_is(it.value, JSON_STRING)) {
            return false;
        }
    }
    return json_kind_of(value) <= JSON_NULL || json_is(value, JSON_ARRAY);
}

/* All members except the content. `message_id` JSON_NONE: a new one. */
static void write_head(a2a_agent *self, json_val message_id, bay_str ids, buf *out)
{
    char id[37];
    buf_lit(out, "{\"messageId\":");
    if (json_is(message_id, JSON_STRING)) {
        buf_str(out, json_raw(message_id));
    } else {
        agent_make_id(self, id);
        buf_char(out, '"');
        buf_append(out, id, sizeof(id) - 1);
        buf_char(out, '"');
    }
    buf_char(out, ',');
    buf_str(out, ids);
    buf_lit(out, ",\"role\":\"ROLE_AGENT\"");
}

bay_err agent_write_message(a2a_agent *self, json_val message, bay_str ids, buf *out)
{
    json_val member[MESSAGE_KEYS];
    if (json_pick(message, message_keys, MESSAGE_KEYS, member, NULL) != BAY_OK ||
        !is_list_of_strings(member[EXTENSIONS]) || !is_list_of_strings(member[REFERENCES]) ||
        (json_kind_of(member[METADATA]) > JSON_NULL && !json_is(member[METADATA], JSON_OBJECT))) {
        return BAY_ERR_INVALID;
    }
    write_head(self, member[MESSAGE_ID], ids, out);
    bay_err err = put_parts(member[PARTS], out);
    if (err != BAY_OK) {
        return err;
    }
    put_member(out, message_keys[METADATA], member[METADATA]);
    put_member(out, message_keys[EXTENSIONS], member[EXTENSIONS]);
    put_member(out, message_keys[REFERENCES], member[REFERENCES]);
    buf_char(out, '}');
    return out->err;
}

bay_err agent_write_text(a2a_agent *self, bay_str text, bay_str ids, buf *out)
{
    if (text.len > A2A_PART_BYTES) {
        return BAY_ERR_INVALID;
    }
    write_head(self, JSON_NONE, ids, out);
    buf_lit(out, ",\"parts\":[{\"text\":");
    json_quote(out, text);
    buf_lit(out, "}]}");
    return out->err;
}

size_t agent_received_bytes(json_val message, size_t ids_bytes)
{
    return sizeof(agent_text) + 1 + ids_bytes + json_raw(message).len;
}

void agent_write_received(json_val message, bool has_ids, bay_str ids, buf *out)
{
    buf_char(out, '{');
    buf_str(out, ids);
    if (!has_ids) { /* a message is not empty */
        buf_char(out, ',');
        buf_str(out, str_from(json_raw(message), 1));
        return;
    }
    /* normal form has no member twice */
    json_val sent_context = json_get(message, STR("contextId"));
    json_val sent_task = json_get(message, STR("taskId"));
    json_iter it = json_iter_of(message);
    while (json_next(&it)) {
        bool is_replaced = it.value.at == sent_context.at || it.value.at == sent_task.at;
        if (!is_replaced) {
            buf_char(out, ',');
            buf_str(out, json_raw(it.key));
            buf_char(out, ':');
            buf_str(out, json_raw(it.value));
        }
    }
    buf_char(out, '}');
}
