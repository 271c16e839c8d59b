/* Pointers are determined only for reports: from the root down, at each level into the child that
 * contains the target. */
#include "schema/place.h"

#include <stdarg.h>
#include <stdio.h>

void fixed_str(fixed_text *self, bay_str text)
{
    size_t room = self->cap - self->len;
    if (text.len > room) {
        text.len = room;
        self->is_cut = true;
    }
    if (text.len > 0) {
        memcpy(self->at + self->len, text.at, text.len);
    }
    self->len += text.len;
}

void fixed_printf(fixed_text *self, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (len > 0) {
        size_t whole = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
        fixed_str(self, (bay_str){text, whole});
    }
}

void fixed_short(fixed_text *self, bay_str text, size_t most)
{
    if (text.len <= most) {
        fixed_str(self, text);
        return;
    }
    size_t len = most;
    while (len > 0 && ((unsigned char)text.at[len] & 0xc0) == 0x80) {
        len--;
    }
    fixed_str(self, str_head(text, len));
    fixed_lit(self, "...");
}

/* The child of `container` that contains the target; false: the target is the container or one of
 * its keys. */
static bool step(json_val container, json_val target, json_iter *out, size_t *out_index)
{
    json_iter it = json_iter_of(container);
    for (size_t index = 0; json_next(&it); index++) {
        if (target.at >= it.value.at && target.at < it.next) {
            *out = it;
            *out_index = index;
            return true;
        }
    }
    return false;
}

void fixed_pointer(fixed_text *self, json_val root, json_val target)
{
    json_val at = root;
    json_iter child;
    size_t index;
    while (at.at != target.at && step(at, target, &child, &index)) {
        fixed_lit(self, "/");
        if (child.key.doc == NULL) {
            fixed_printf(self, "%zu", index);
        } else {
            bay_str key = json_raw(child.key);
            for (size_t i = 1; i + 1 < key.len; i++) {
                char c = key.at[i];
                fixed_str(self, c == '~'   ? STR("~0")
                                : c == '/' ? STR("~1")
                                           : (bay_str){key.at + i, 1});
            }
        }
        at = child.value;
    }
}

bool place_is_key(json_val root, json_val target)
{
    json_val at = root;
    json_iter child;
    size_t index;
    while (at.at != target.at) {
        if (!step(at, target, &child, &index)) {
            return true;
        }
        at = child.value;
    }
    return false;
}
