/* An event of a task and its renderings. The 1.0 JSON follows the struct in the same memory; every
 * other form is made at its first use and kept. One thread, so there are no locks. */
#include "a2a/event.h"

#include "base/mem.h"

enum {
    EVENT_RENDERED_GROWTH = 16,  /* a form is at most so many times as long as 1.0 … */
    EVENT_RENDERED_SPARE = 4096, /* … plus this */
    EVENT_USUAL_GROWTH = 160,    /* usually it is longer by at most this */
    EVENT_INDEX_GROWTH = 64,
    EVENT_INDEX_SPARE = 64 * 1024,
};

struct a2a_event {
    size_t refs;
    uint64_t sequence;
    bool is_last;
    size_t bytes;
    bay_str json;
    json_val lent;                  /* the same as a value; mostly JSON_NONE */
    bay_str rendered[A2A_FORMS][2]; /* JSON, protobuf; `at` NULL: not made yet */
    char text[];
};

a2a_event *a2a_event_new(bay_str json, uint64_t sequence, bool is_last)
{
    if (json.len > SIZE_MAX - sizeof(a2a_event) - 1) {
        return NULL;
    }
    size_t bytes = sizeof(a2a_event) + json.len + 1;
    a2a_event *self = mem_alloc(bytes);
    if (self == NULL) {
        return NULL;
    }
    *self = (a2a_event){.refs = 1, .sequence = sequence, .is_last = is_last, .bytes = bytes};
    if (json.len > 0) {
        memcpy(self->text, json.at, json.len);
    }
    self->text[json.len] = '\0';
    self->json = (bay_str){self->text, json.len};
    self->rendered[A2A_FORM_1_0][0] = self->json;
    return self;
}

a2a_event *a2a_event_ref(a2a_event *self)
{
    self->refs++;
    return self;
}

void a2a_event_unref(a2a_event *self)
{
    if (self == NULL || --self->refs > 0) {
        return;
    }
    for (size_t form = 0; form < A2A_FORMS; form++) {
        for (size_t i = 0; i < 2; i++) {
            if (self->rendered[form][i].at != self->json.at) {
                mem_free((char *)self->rendered[form][i].at);
            }
        }
    }
    mem_free(self);
}

void a2a_event_lend(a2a_event *self, json_val value)
{
    self->lent = value;
}

uint64_t a2a_event_sequence(const a2a_event *self)
{
    return self->sequence;
}

bool a2a_event_is_last(const a2a_event *self)
{
    return self->is_last;
}

bay_str a2a_event_json(const a2a_event *self)
{
    return self->json;
}

bay_err a2a_event_value(const a2a_event *self, arena *memory, json_val *out)
{
    return a2a_text_view(self->json, self->lent, memory, out);
}

size_t a2a_event_bytes(const a2a_event *self)
{
    return self->bytes;
}

static bay_err event_write(const a2a_event *self, a2a_form form, bool is_protobuf, json_val value,
                           arena *memory, buf *out)
{
    if (!is_protobuf) {
        return a2a_event_write(form, value, self->is_last, out);
    }
    int type = form == A2A_FORM_1_0 ? A2A_TYPE_STREAM_RESPONSE : A2A_TYPE_V1_STREAM_RESPONSE;
    bay_err err = a2a_event_in_form(form, value, self->is_last, memory, &value);
    err = err == BAY_OK ? a2a_to_protobuf((a2a_type)type, value, out, NULL) : err;
    return err == BAY_ERR_PROTOCOL ? BAY_ERR_INTERNAL : err; /* normal form always fits */
}

static bay_err event_render(a2a_event *self, a2a_form form, bool is_protobuf)
{
    bay_str source = self->json;
    if (source.len > (SIZE_MAX - EVENT_INDEX_SPARE) / EVENT_INDEX_GROWTH) {
        return BAY_ERR_LIMIT;
    }
    arena memory;
    buf made;
    arena_init(&memory, source.len * EVENT_INDEX_GROWTH + EVENT_INDEX_SPARE);
    buf_init(&made, source.len * EVENT_RENDERED_GROWTH + EVENT_RENDERED_SPARE);
    json_val value;
    bay_err err = buf_reserve(&made, source.len + EVENT_USUAL_GROWTH) ? BAY_OK : made.err;
    err = err == BAY_OK ? a2a_event_value(self, &memory, &value) : err;
    if (err == BAY_OK) {
        err = event_write(self, form, is_protobuf, value, &memory, &made);
    }
    if (err == BAY_OK) {
        err = made.err;
    }
    /* An empty message has no bytes but still needs an address. */
    if (err == BAY_OK && made.at == NULL && !buf_reserve(&made, 1)) {
        err = made.err;
    }
    if (err == BAY_OK) {
        bay_str *slot = &self->rendered[form][is_protobuf];
        self->bytes += made.cap;
        slot->at = buf_take(&made, &slot->len);
    }
    buf_fini(&made);
    arena_fini(&memory);
    return err;
}

bay_err a2a_event_in(a2a_event *self, a2a_form form, bool is_protobuf, bay_str *out)
{
    if (is_protobuf && form != A2A_FORM_1_0 && form != A2A_FORM_0_3_PROTO) {
        return BAY_ERR_INVALID;
    }
    bay_err err = BAY_OK;
    if (self->rendered[form][is_protobuf].at == NULL) {
        err = event_render(self, form, is_protobuf);
    }
    if (err == BAY_OK) {
        *out = self->rendered[form][is_protobuf];
    }
    return err;
}
