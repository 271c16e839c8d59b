/* What a caller makes of a stream: each line is an event, in the form that the first byte says.
 * Checked: whatever was told becomes a task that reads as one; of that very task nothing is new;
 * a task that comes back is told so that the same task results; nothing leaks. */
#include <stdint.h>
#include <string.h>

#include "a2a_transport/link_stream_state.h"
#include "base/check.h"
#include "base/str.h"
#include "sdk/caller_parts.h"
#include "json/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 64 << 20 };

typedef struct story {
    a2a_stream_state seen;
    caller_assembly *whole;
    bool has_status;
    bool has_message;
    int told; /* of the latest difference */
} story;

static json_val parse(bay_str text, arena *memory, json_doc *doc)
{
    bay_err err = json_parse(doc, text, NULL, memory, NULL);
    CHECK(err == BAY_OK);
    return json_root(doc);
}

static void take(story *self, json_val event)
{
    bay_caller_reply *response = NULL;
    bay_err err = sdk_assembly_add(self->whole, event);
    CHECK(err == BAY_OK || err == BAY_ERR_LIMIT);
    err = sdk_response_new(A2A_SEND_STREAMING_MESSAGE, true, event, 0, &response);
    CHECK(err == BAY_OK);
    CHECK(bay_caller_reply_kind_of(response) != BAY_CALLER_REPLY_KIND_OTHER);
    (void)bay_caller_reply_text(response);
    bay_caller_reply_free(response);
}

static bay_err tell(void *user, json_val event)
{
    story *self = user;
    self->told++;
    take(self, event);
    return BAY_OK;
}

/* The task as it is known is no news. */
static void check_whole(story *self)
{
    json_builder made;
    json_val whole;
    bay_err err = sdk_assembly_write(self->whole, json_builder_init(&made, NULL, MEMORY_BYTES));
    CHECK(err == BAY_OK || err == BAY_ERR_NOT_FOUND);
    if (err == BAY_OK) {
        err = json_builder_view(&made, &whole);
        CHECK(err == BAY_OK);
        json_val task = json_get(whole, STR("task"));
        self->told = 0;
        if (json_is(task, JSON_OBJECT) && self->has_status) {
            err = a2a_stream_state_difference(&self->seen, task, tell, self);
            CHECK(err == BAY_OK);
            CHECK(self->told == 0);
        }
    }
    json_builder_drop(&made);
}

static void take_line(story *self, a2a_form form, bay_str line, bool comes_back)
{
    json_doc doc;
    json_doc ours;
    arena memory;
    buf event;
    bool is_last = false;
    arena_init(&memory, MEMORY_BYTES);
    buf_init(&event, MEMORY_BYTES);
    if (json_parse(&doc, line, &a2a_json_limits, &memory, NULL) == BAY_OK &&
        a2a_event_read(form, json_root(&doc), &event, &is_last, NULL) == BAY_OK) {
        json_val root = parse(buf_view(&event), &memory, &ours);
        json_val task = json_get(root, STR("task"));
        bool is_task = json_is(task, JSON_OBJECT);
        self->has_message |= json_is(json_get(root, STR("message")), JSON_OBJECT);
        self->has_status |= is_task || json_is(json_get(root, STR("statusUpdate")), JSON_OBJECT);
        if (is_task && comes_back) {
            bay_err err = a2a_stream_state_difference(&self->seen, task, tell, self);
            CHECK(err == BAY_OK);
        } else {
            bay_err err = a2a_stream_state_note(&self->seen, root);
            CHECK(err == BAY_OK || err == BAY_ERR_DUPLICATE);
            take(self, root);
        }
    }
    buf_fini(&event);
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    story self = {.whole = sdk_assembly_new()};
    a2a_stream_state_init(&self.seen);
    a2a_form form = (a2a_form)(data[0] % A2A_FORMS);
    bool comes_back = (data[0] & 0x40) != 0;
    bay_str rest = {(const char *)data + 1, size - 1};
    while (rest.len > 0) {
        bay_str line = str_head(rest, str_find(rest, '\n'));
        take_line(&self, form, line, comes_back);
        rest = str_from(rest, line.len + 1);
    }
    check_whole(&self);
    a2a_stream_state_fini(&self.seen);
    sdk_assembly_free(self.whole);
    return 0;
}
