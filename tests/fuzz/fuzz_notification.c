/* What agents tell the gateway's webhooks: the first byte says which form was asked for, the rest
 * is the body. Checked: what is understood is an event of 1.0 in normal form, of which every form
 * makes a notification that is understood again; and what agents answer of configurations can be
 * shown, also where an address looks like one of ours. */
#include <stdint.h>

#include "a2a/push.h"
#include "agents/webhook.h"
#include "base/check.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 256 << 20, TEXT_BYTES = 64 << 20 };

static json_val parse(bay_str text, arena *memory, json_doc *doc)
{
    bay_err err = json_parse(doc, text, NULL, memory, NULL);
    CHECK(err == BAY_OK);
    return json_root(doc);
}

/* A body that we send is one that we take. */
static void check_told(a2a_form form, json_val event, arena *memory)
{
    buf body;
    json_val again;
    json_doc doc;
    buf_init(&body, TEXT_BYTES);
    bay_err err = a2a_push_write(form, event, json_get(event, STR("task")), &body);
    if (err == BAY_OK) {
        json_val root = parse(buf_view(&body), memory, &doc);
        err = agents_webhook_read(form, root, memory, &again, NULL);
        CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_LIMIT);
        CHECK(form != A2A_FORM_1_0 || err == BAY_OK);
    }
    buf_fini(&body);
}

static void check_read(a2a_form heard, json_val body, arena *memory)
{
    json_val event;
    json_doc doc;
    a2a_fault fault = {0};
    bay_err err = agents_webhook_read(heard, body, memory, &event, &fault);
    CHECK(err != BAY_ERR_PROTOCOL || fault.error != A2A_NO_ERROR);
    if (err == BAY_OK) {
        buf ignored;
        bool is_normal = false;
        json_val root = parse(json_raw(event), memory, &doc);
        buf_init(&ignored, TEXT_BYTES);
        err = a2a_normalise(A2A_TYPE_STREAM_RESPONSE, root, &ignored, &is_normal, &fault);
        CHECK(err == BAY_OK && is_normal);
        buf_fini(&ignored);
        for (int form = 0; form < A2A_FORMS; form++) {
            check_told((a2a_form)form, root, memory);
        }
    }
}

static void check_shown(json_val answer, arena *memory)
{
    buf shown;
    json_doc doc;
    json_writer to;
    buf_init(&shown, TEXT_BYTES);
    json_writer_init(&to, &shown);
    bay_err err = agents_webhook_show(NULL, STR("https://g"), STR("a"), answer, 1, &to);
    CHECK(err == BAY_OK);
    if (shown.len > 0) {
        (void)parse(buf_view(&shown), memory, &doc);
    }
    buf_fini(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena memory;
    json_doc doc;
    if (size == 0) {
        return 0;
    }
    arena_init(&memory, MEMORY_BYTES);
    bay_str body = {(const char *)data + 1, size - 1};
    if (json_parse(&doc, body, &a2a_json_limits, &memory, NULL) == BAY_OK) {
        check_read((a2a_form)(data[0] % A2A_FORMS), json_root(&doc), &memory);
        check_shown(json_root(&doc), &memory);
    }
    arena_fini(&memory);
    return 0;
}
