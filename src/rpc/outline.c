#include "rpc/outline.h"
#include "base/check.h"

enum { BEFORE, BEFORE_KEY, IN_KEY, BEFORE_COLON, BEFORE_VALUE, IN_STRING, IN_SCALAR, INSIDE };
enum { OTHER, ID, METHOD, OUTCOME };

void rpc_outline_init(rpc_outline *self)
{
    *self = (rpc_outline){.state = BEFORE};
}

static unsigned member_of(const rpc_outline *self)
{
    static const struct {
        bay_str name;
        unsigned member;
    } names[] = {
        {STR_INIT("id"), ID},
        {STR_INIT("method"), METHOD},
        {STR_INIT("result"), OUTCOME},
        {STR_INIT("error"), OUTCOME},
    };
    bay_str key = {self->key, self->key_len};
    for (size_t i = 0; self->key_len < sizeof(self->key) && i < ARRAY_LEN(names); i++) {
        if (str_eq(key, names[i].name)) {
            return names[i].member;
        }
    }
    return OTHER;
}

/* Without escapes, and ASCII: it is written into an answer as it stands. */
static bool is_plain_string(bay_str text)
{
    bool is_good = text.at[0] == '"';
    for (size_t i = 0; is_good && i < text.len; i++) {
        is_good = text.at[i] >= ' ' && text.at[i] <= '~' && text.at[i] != '\\';
    }
    return is_good;
}

static bool is_integer(bay_str text)
{
    size_t at = text.len > 0 && text.at[0] == '-' ? 1 : 0;
    bool is_good = at < text.len && (text.at[at] != '0' || text.len == at + 1);
    for (; is_good && at < text.len; at++) {
        is_good = text.at[at] >= '0' && text.at[at] <= '9';
    }
    return is_good;
}

/* An id that is too long has lost its end: it is none. */
static void keep_id(rpc_outline *self, char byte)
{
    if (self->member != ID) {
        return;
    }
    if (self->id_len < sizeof(self->id)) {
        self->id[self->id_len] = byte;
    }
    self->id_len++;
}

static void end_value(rpc_outline *self)
{
    bay_str id = {self->id, self->id_len};
    self->has_method = self->has_method || self->member == METHOD;
    self->has_outcome = self->has_outcome || self->member == OUTCOME;
    if (self->member == ID) {
        self->is_id_good = id.len <= sizeof(self->id) && (is_plain_string(id) || is_integer(id));
    }
    self->state = BEFORE_KEY;
    self->member = OTHER;
}

static void begin_value(rpc_outline *self, char byte)
{
    self->member = member_of(self);
    if (self->member == ID) {
        self->member = self->has_id ? OTHER : ID; /* of two nobody knows which counts */
        self->is_id_good = false;
        self->has_id = true;
        self->id_at = self->position;
    }
    keep_id(self, byte);
    if (byte == '{' || byte == '[') {
        self->state = INSIDE;
        self->depth++;
    } else {
        self->state = byte == '"' ? IN_STRING : IN_SCALAR;
    }
}

/* True: the byte ends the string. */
static bool is_string_end(rpc_outline *self, char byte)
{
    bool was_escaped = self->is_escaped;
    self->is_escaped = byte == '\\' && !was_escaped;
    return byte == '"' && !was_escaped;
}

static void take_inside(rpc_outline *self, char byte)
{
    if (byte == '"') {
        self->state = IN_STRING;
    } else if (byte == '{' || byte == '[') {
        self->depth++;
    } else if ((byte == '}' || byte == ']') && --self->depth == 1) {
        end_value(self);
    }
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void take_outside(rpc_outline *self, char byte)
{
    if (is_space(byte)) {
        return;
    }
    switch (self->state) {
    case BEFORE:
        self->is_over = byte != '{'; /* a batch, or nothing of ours */
        self->depth = 1;
        self->state = BEFORE_KEY;
        return;
    case BEFORE_KEY:
        self->is_over = byte == '}';
        self->state = byte == '"' ? IN_KEY : BEFORE_KEY;
        self->key_len = 0;
        return;
    case BEFORE_COLON:
        self->state = byte == ':' ? BEFORE_VALUE : BEFORE_KEY;
        return;
    default:
        begin_value(self, byte);
    }
}

static void take(rpc_outline *self, char byte)
{
    switch (self->state) {
    case IN_KEY:
        if (is_string_end(self, byte)) {
            self->state = BEFORE_COLON;
        } else if (self->key_len < sizeof(self->key)) {
            self->key[self->key_len++] = byte;
        }
        return;
    case IN_STRING:
        keep_id(self, byte);
        if (!is_string_end(self, byte)) {
            return;
        }
        if (self->depth > 1) {
            self->state = INSIDE;
        } else {
            end_value(self);
        }
        return;
    case IN_SCALAR:
        if (byte != ',' && byte != '}' && !is_space(byte)) {
            keep_id(self, byte);
            return;
        }
        end_value(self);
        take_outside(self, byte);
        return;
    case INSIDE:
        take_inside(self, byte);
        return;
    default:
        take_outside(self, byte);
    }
}

void rpc_outline_feed(rpc_outline *self, bay_str piece)
{
    for (size_t i = 0; i < piece.len && !self->is_over; i++) {
        take(self, piece.at[i]);
        self->position++;
    }
}

static bay_str id_of(const rpc_outline *self, bool is_wanted)
{
    return is_wanted ? (bay_str){self->id, self->id_len} : STR("");
}

bay_str rpc_outline_request(const rpc_outline *self)
{
    return id_of(self, self->is_id_good && self->has_method && !self->has_outcome);
}

bay_str rpc_outline_answer(const rpc_outline *self)
{
    return id_of(self, self->is_id_good && self->has_outcome && !self->has_method);
}

bool rpc_outline_is_open(const rpc_outline *self)
{
    return !self->is_over && self->state != BEFORE;
}

bool rpc_outline_is_notification(const rpc_outline *self)
{
    return self->has_method && !self->has_id && self->is_over;
}
