/* RFC 6902: what makes the one value of the other. */
#include "base/str.h"
#include "trust/diff_walk.h"
#include "json/writer.h"

typedef struct patcher {
    diff_walk walk;
    json_writer *out;
} patcher;

static void operation(patcher *self, const char *name, json_val value)
{
    json_writer *out = self->out;
    json_open_object(out);
    json_key_lit(out, "op");
    json_put_str(out, str_of(name));
    json_key_lit(out, "path");
    json_put_str(out, buf_view(&self->walk.pointer));
    if (!json_is(value, JSON_MISSING)) {
        json_key_lit(out, "value");
        json_put_val(out, value);
    }
    json_close_object(out);
}

static void patch(patcher *self, json_val before, json_val after);

static void patch_pair(diff_walk *walk, const diff_pair *pair, void *context)
{
    (void)walk;
    patch(context, pair->before, pair->after);
}

/* Elements in place, then those that are too many from the end, or those that are new at the end. */
static void patch_list(patcher *self, json_val before, json_val after)
{
    buf *pointer = &self->walk.pointer;
    size_t mark = pointer->len;
    size_t left = json_count(before);
    size_t right = json_count(after);
    json_iter was = json_iter_of(before);
    json_iter is = json_iter_of(after);
    for (size_t i = 0; json_next(&is); i++) {
        buf_printf(pointer, "/%zu", i);
        patch(self, json_next(&was) ? was.value : JSON_NONE, is.value);
        pointer->len = mark;
    }
    for (size_t i = left; i > right; i--) {
        buf_printf(pointer, "/%zu", i - 1);
        operation(self, "remove", JSON_NONE);
        pointer->len = mark;
    }
}

static void patch(patcher *self, json_val before, json_val after)
{
    diff_walk *walk = &self->walk;
    if (json_is(before, JSON_MISSING)) {
        operation(self, "add", after);
    } else if (json_is(after, JSON_MISSING)) {
        operation(self, "remove", JSON_NONE);
    } else if (walk->depth < TRUST_DIFF_DEPTH && json_is(before, JSON_OBJECT) &&
               json_is(after, JSON_OBJECT)) {
        diff_pair *pairs;
        size_t count = diff_members(walk, before, after, &pairs);
        diff_each(walk, pairs, count, patch_pair, self);
    } else if (walk->depth < TRUST_DIFF_DEPTH && json_is(before, JSON_ARRAY) &&
               json_is(after, JSON_ARRAY)) {
        walk->depth++;
        patch_list(self, before, after);
        walk->depth--;
    } else if (!diff_is_same(walk, before, after)) {
        operation(self, "replace", after);
    }
}

bay_err trust_patch(json_val before, json_val after, json_writer *out)
{
    patcher self = {.out = out};
    arena_init(&self.walk.scratch, TRUST_TEXT_BYTES);
    buf_init(&self.walk.pointer, 1 << 20);
    json_open_array(out);
    patch(&self, before, after);
    json_close_array(out);
    bay_err err = self.walk.err == BAY_OK ? self.walk.pointer.err : self.walk.err;
    arena_fini(&self.walk.scratch);
    buf_fini(&self.walk.pointer);
    return err;
}
