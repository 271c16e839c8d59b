/* Notifications of agents, whatever they look like. */
#include "agents/webhook.h"

#include "base/check.h"
#include "json/build.h"

enum { TASK_BYTES = 64 << 20 };

static bool has_one_of(json_val body, const bay_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_is(json_get(body, names[i]), JSON_OBJECT)) {
            return true;
        }
    }
    return false;
}

/* An event under the name of its kind, as streams of 1.0 and of 0.3's protobuf have it. */
static bool is_wrapped(json_val body)
{
    static const bay_str names[] = {
        STR_INIT("task"),           STR_INIT("message"),       STR_INIT("msg"),
        STR_INIT("statusUpdate"),   STR_INIT("status_update"), STR_INIT("artifactUpdate"),
        STR_INIT("artifact_update")};
    return has_one_of(body, names, ARRAY_LEN(names));
}

static bay_err read_wrapped(a2a_form heard, json_val body, arena *memory, json_val *out,
                            a2a_fault *fault)
{
    bool ignored;
    bay_err err = BAY_ERR_PROTOCOL;
    if (heard == A2A_FORM_0_3_PROTO) {
        err = a2a_event_view(heard, body, memory, out, &ignored, fault);
    }
    return err == BAY_ERR_PROTOCOL
               ? a2a_event_view(A2A_FORM_1_0, body, memory, out, &ignored, fault)
               : err;
}

static bay_err read_task(a2a_form heard, json_val body, arena *memory, json_val *out,
                         a2a_fault *fault)
{
    json_val task;
    json_builder made;
    bay_err err = a2a_result_view(heard, A2A_GET_TASK, body, memory, &task, fault);
    if (err != BAY_OK) {
        return err;
    }
    json_writer *to = json_builder_init(&made, memory, TASK_BYTES);
    json_open_object(to);
    json_key_lit(to, "task");
    json_put_val(to, task);
    json_close_object(to);
    return json_builder_end(&made, out);
}

static bool is_there(json_val body, bay_str name)
{
    return !json_is(json_get(body, name), JSON_MISSING);
}

bay_err agents_webhook_read(a2a_form heard, json_val body, arena *memory, json_val *out,
                            a2a_fault *fault)
{
    bool ignored;
    if (!json_is(body, JSON_OBJECT)) {
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "a notification is an object");
    }
    if (is_there(body, STR("kind"))) {
        return a2a_event_view(A2A_FORM_0_3, body, memory, out, &ignored, fault);
    }
    if (is_wrapped(body)) {
        return read_wrapped(heard, body, memory, out, fault);
    }
    bool is_update = is_there(body, STR("artifact")) || is_there(body, STR("final")) ||
                     is_there(body, STR("taskId"));
    if (is_update && heard == A2A_FORM_0_1) {
        return a2a_event_view(heard, body, memory, out, &ignored, fault);
    }
    if (is_update || is_there(body, STR("messageId"))) {
        return a2a_event_view(A2A_FORM_0_3, body, memory, out, &ignored, fault);
    }
    return read_task(heard, body, memory, out, fault);
}
