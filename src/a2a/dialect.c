/* The door: which form, which method, what the tables of the form make of it, and then the check
 * that all forms end in. What a form's reader writes is text, and is read again: an older peer pays
 * for that, 1.0 passes with the check alone. */
#include "a2a/dialect_walk.h"

/* Requests and results of package a2a.v1, by method; A2A_TYPE_NONE: it has none. */
static const struct {
    a2a_type request;
    a2a_type response;
} proto_types[A2A_METHODS] = {
    [A2A_SEND_MESSAGE] = {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, A2A_TYPE_V1_SEND_MESSAGE_RESPONSE},
    [A2A_SEND_STREAMING_MESSAGE] = {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, A2A_TYPE_V1_STREAM_RESPONSE},
    [A2A_GET_TASK] = {A2A_TYPE_V1_GET_TASK_REQUEST, A2A_TYPE_V1_TASK},
    [A2A_CANCEL_TASK] = {A2A_TYPE_V1_CANCEL_TASK_REQUEST, A2A_TYPE_V1_TASK},
    [A2A_SUBSCRIBE_TO_TASK] = {A2A_TYPE_V1_TASK_SUBSCRIPTION_REQUEST, A2A_TYPE_V1_STREAM_RESPONSE},
    [A2A_CREATE_PUSH_CONFIG] = {A2A_TYPE_V1_CREATE_PUSH_CONFIG_REQUEST,
                                A2A_TYPE_V1_TASK_PUSH_NOTIFICATION_CONFIG},
    [A2A_GET_PUSH_CONFIG] = {A2A_TYPE_V1_GET_PUSH_CONFIG_REQUEST,
                             A2A_TYPE_V1_TASK_PUSH_NOTIFICATION_CONFIG},
    [A2A_LIST_PUSH_CONFIGS] = {A2A_TYPE_V1_LIST_PUSH_CONFIGS_REQUEST,
                               A2A_TYPE_V1_LIST_PUSH_CONFIGS_RESPONSE},
    [A2A_DELETE_PUSH_CONFIG] = {A2A_TYPE_V1_DELETE_PUSH_CONFIG_REQUEST, A2A_TYPE_V1_EMPTY},
    [A2A_GET_EXTENDED_CARD] = {A2A_TYPE_V1_GET_AGENT_CARD_REQUEST, A2A_TYPE_V1_AGENT_CARD},
};

static const dialect_forms *forms_of(a2a_form form)
{
    return form == A2A_FORM_0_3         ? &dialect_forms_0_3
           : form == A2A_FORM_0_3_PROTO ? &dialect_forms_0_3_proto
                                        : &dialect_forms_0_1;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* `text` when it is normal, else its normal form, appended. */
static bay_err normalise(a2a_type type, json_val value, buf *out, a2a_fault *fault)
{
    bool is_normal = false;
    bay_err err = a2a_normalise(type, value, out, &is_normal, fault);
    if (err == BAY_OK && is_normal) {
        buf_str(out, json_raw(value));
        err = out->err;
    }
    return err;
}

/* How the last check names what a peer of 0.x calls otherwise. */
static const struct {
    bay_str ours;
    bay_str theirs;
} renamed[] = {
    {STR_INIT(".raw"), STR_INIT(".file.bytes")},
    {STR_INIT(".filename"), STR_INIT(".file.name")},
    {STR_INIT(".mediaType"), STR_INIT(".file.mimeType")},
    {STR_INIT("taskPushNotificationConfig"), STR_INIT("pushNotificationConfig")},
    {STR_INIT("returnImmediately"), STR_INIT("blocking")},
    {STR_INIT("securityRequirements"), STR_INIT("security")},
};

static void rename_fault(a2a_fault *fault)
{
    bay_str text = str_of(fault->text);
    size_t colon = str_find(text, ':');
    for (size_t i = 0; colon < text.len && i < sizeof(renamed) / sizeof(renamed[0]); i++) {
        for (size_t at = 0; at + renamed[i].ours.len <= colon; at++) {
            size_t after = at + renamed[i].ours.len;
            if (!str_starts(str_from(text, at), renamed[i].ours) ||
                (text.at[after] != ':' && text.at[after] != '.' && text.at[after] != '[')) {
                continue;
            }
            a2a_fault made = *fault;
            (void)a2a_fault_set(&made, fault->error, "%.*s%.*s%s", (int)at, text.at,
                                BAY_STR(renamed[i].theirs), text.at + after);
            *fault = made;
            return;
        }
    }
}

typedef struct reading {
    a2a_form form;
    a2a_type theirs; /* of package a2a.v1, else A2A_TYPE_NONE */
    a2a_type ours;
    dialect_turn *turn; /* NULL in 1.0 */
} reading;

static bay_err keep_value(bay_str text, arena *memory, json_val *out)
{
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    bay_str kept;
    if (doc == NULL) {
        return memory->is_full ? BAY_LIMIT : BAY_NOMEM;
    }
    bay_err err = arena_dup(memory, text, &kept);
    if (err == BAY_OK) {
        err = json_parse(doc, kept, NULL, memory, NULL);
    }
    if (err == BAY_OK) {
        *out = json_root(doc);
    }
    return err;
}

/* `value` when it is normal, else its normal form. */
static bay_err view_normal(a2a_type type, json_val value, arena *memory, json_val *out,
                           a2a_fault *fault)
{
    buf made;
    bool is_normal = false;
    buf_init(&made, DIALECT_TEXT_BYTES);
    bay_err err = a2a_normalise(type, value, &made, &is_normal, fault);
    if (err == BAY_OK && is_normal) {
        *out = value;
    } else if (err == BAY_OK) {
        err = keep_value(buf_view(&made), memory, out);
    }
    buf_fini(&made);
    return err;
}

static bay_err translate(const reading *self, json_val value, arena *memory, json_val *out,
                         bool *out_is_last, a2a_fault *fault)
{
    enum { USUAL_GROWTH = 256 };
    buf made;
    buf_init(&made, DIALECT_TEXT_BYTES);
    dialect walk = {.form = self->form, .memory = memory, .fault = fault};
    json_writer_init(&walk.to, &made);
    if (buf_reserve(&made, json_raw(value).len + USUAL_GROWTH)) {
        self->turn(&walk, value);
    }
    bay_err err = walk.err != BAY_OK ? walk.err : made.err;
    if (err == BAY_OK) {
        err = keep_value(buf_view(&made), memory, out);
    }
    buf_fini(&made);
    if (err == BAY_OK) {
        *out_is_last = walk.is_last;
    }
    return err;
}

/* `value` itself where nothing of it has to change, else one in `memory`. */
static bay_err view_form(const reading *self, json_val value, arena *memory, json_val *out,
                         bool *out_is_last, a2a_fault *fault)
{
    bay_err err = BAY_OK;
    *out_is_last = false;
    if (self->theirs != A2A_TYPE_NONE) {
        err = view_normal(self->theirs, value, memory, &value, fault);
    }
    if (err == BAY_OK && self->turn != NULL) {
        err = translate(self, value, memory, &value, out_is_last, fault);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = view_normal(self->ours, value, memory, out, fault);
    bool is_renamed = self->turn != NULL && self->form != A2A_FORM_0_3_PROTO;
    if (err == BAY_PROTOCOL && fault != NULL && is_renamed) {
        rename_fault(fault);
    }
    return err;
}

static bay_err read_form(const reading *self, json_val value, buf *out, bool *out_is_last,
                         a2a_fault *fault)
{
    *out_is_last = false;
    if (self->turn == NULL) {
        return normalise(self->ours, value, out, fault);
    }
    arena memory;
    arena_init(&memory, DIALECT_MEMORY_BYTES);
    json_val view = JSON_NONE;
    bay_err err = view_form(self, value, &memory, &view, out_is_last, fault);
    if (err == BAY_OK) {
        size_t before = out->len;
        buf_str(out, json_raw(view));
        err = out->err;
        out->len = err == BAY_OK ? out->len : before;
    }
    arena_fini(&memory);
    return err;
}

static bay_err refuse_method(a2a_fault *fault, a2a_method method)
{
    return a2a_fault_set(fault, A2A_E_METHOD_NOT_FOUND, "%.*s is not in this version",
                         BAY_STR(a2a_methods[method].name));
}

/* Params may be left out where nothing in them is due. */
static bay_err read_none(const reading *self, buf *out, a2a_fault *fault)
{
    arena memory;
    json_doc doc;
    bool ignored;
    arena_init(&memory, 1U << 12);
    bay_err err = json_parse(&doc, STR("{}"), NULL, &memory, NULL);
    if (err == BAY_OK) {
        err = read_form(self, json_root(&doc), out, &ignored, fault);
    }
    arena_fini(&memory);
    return err;
}

bay_err a2a_params_read(a2a_form form, a2a_method method, json_val params, buf *out,
                        a2a_fault *fault)
{
    bool is_old = form != A2A_FORM_1_0;
    reading self = {.form = form,
                    .theirs =
                        form == A2A_FORM_0_3_PROTO ? proto_types[method].request : A2A_TYPE_NONE,
                    .ours = (a2a_type)a2a_methods[method].request,
                    .turn = is_old ? forms_of(form)->read_params[method] : NULL};
    if (is_old && self.turn == NULL) {
        return refuse_method(fault, method);
    }
    bool ignored;
    return json_is(params, JSON_MISSING) ? read_none(&self, out, fault)
                                         : read_form(&self, params, out, &ignored, fault);
}

bay_err a2a_result_read(a2a_form form, a2a_method method, json_val result, buf *out,
                        a2a_fault *fault)
{
    bool is_old = form != A2A_FORM_1_0;
    reading self = {.form = form,
                    .theirs =
                        form == A2A_FORM_0_3_PROTO ? proto_types[method].response : A2A_TYPE_NONE,
                    .ours = (a2a_type)a2a_methods[method].response,
                    .turn = is_old ? forms_of(form)->read_result[method] : NULL};
    if (is_old && self.turn == NULL) {
        return refuse_method(fault, method);
    }
    bool ignored;
    return json_is(result, JSON_MISSING) ? read_none(&self, out, fault)
                                         : read_form(&self, result, out, &ignored, fault);
}

static reading reading_of_event(a2a_form form)
{
    bool is_proto = form == A2A_FORM_0_3_PROTO;
    return (reading){.form = form,
                     .theirs = is_proto ? A2A_TYPE_V1_STREAM_RESPONSE : A2A_TYPE_NONE,
                     .ours = A2A_TYPE_STREAM_RESPONSE,
                     .turn = form != A2A_FORM_1_0 ? forms_of(form)->read_event : NULL};
}

bay_err a2a_event_view(a2a_form form, json_val event, arena *memory, json_val *out,
                       bool *out_is_last, a2a_fault *fault)
{
    reading self = reading_of_event(form);
    json_val view;
    bool is_last;
    bay_err err = view_form(&self, event, memory, &view, &is_last, fault);
    if (err == BAY_OK) {
        *out = view;
        *out_is_last = is_last;
    }
    return err;
}

bay_err a2a_event_read(a2a_form form, json_val event, buf *out, bool *out_is_last, a2a_fault *fault)
{
    reading self = reading_of_event(form);
    bool is_last;
    bay_err err = read_form(&self, event, out, &is_last, fault);
    if (err == BAY_OK) {
        *out_is_last = is_last;
    }
    return err;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

typedef struct writing {
    a2a_form form;
    dialect_turn *turn;
    bool is_last;
    bay_str task_id;
} writing;

static bay_err write_form(const writing *self, json_val value, buf *out)
{
    if (self->form == A2A_FORM_1_0) {
        buf_str(out, json_raw(value));
        return out->err;
    }
    arena memory;
    arena_init(&memory, DIALECT_MEMORY_BYTES);
    dialect walk = {
        .form = self->form, .memory = &memory, .is_last = self->is_last, .task_id = self->task_id};
    size_t before = out->len;
    json_writer_init(&walk.to, out);
    self->turn(&walk, value);
    arena_fini(&memory);
    bay_err err = walk.err != BAY_OK ? walk.err : out->err;
    if (err != BAY_OK) {
        out->len = before;
    }
    return err;
}

bay_err a2a_params_write(a2a_form form, a2a_method method, json_val params, buf *out,
                         a2a_fault *fault)
{
    writing self = {.form = form,
                    .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_params[method] : NULL};
    if (form != A2A_FORM_1_0 && self.turn == NULL) {
        (void)a2a_fault_set(fault, A2A_E_UNSUPPORTED_OPERATION, "the agent's version has no %.*s",
                            BAY_STR(a2a_methods[method].name));
        return BAY_UNSUPPORTED;
    }
    return write_form(&self, params, out);
}

bay_err dialect_result_write(a2a_form form, a2a_method method, json_val result, bay_str task_id,
                             buf *out)
{
    writing self = {.form = form,
                    .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_result[method] : NULL,
                    .task_id = task_id};
    if (form != A2A_FORM_1_0 && self.turn == NULL) {
        return BAY_UNSUPPORTED;
    }
    return write_form(&self, result, out);
}

bay_err a2a_result_write(a2a_form form, a2a_method method, json_val result, buf *out)
{
    return dialect_result_write(form, method, result, STR(""), out);
}

bay_err a2a_event_write(a2a_form form, json_val event, bool is_last, buf *out)
{
    writing self = {.form = form,
                    .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_event : NULL,
                    .is_last = is_last};
    return write_form(&self, event, out);
}

/* 0.3 has one body for webhooks, whatever the binding they were registered by. */
bay_err a2a_push_write(a2a_form form, json_val event, json_val task, buf *out)
{
    if (form == A2A_FORM_1_0) {
        buf_str(out, json_raw(event));
        return out->err;
    }
    const dialect_forms *forms = form == A2A_FORM_0_1 ? &dialect_forms_0_1 : &dialect_forms_0_3;
    json_val message = json_get(event, STR("message"));
    bool has_task = dialect_is_there(task);
    writing self = {.form = form == A2A_FORM_0_1 ? form : A2A_FORM_0_3,
                    .turn = has_task                    ? forms->write_task
                            : dialect_is_there(message) ? forms->write_message
                                                        : forms->write_event};
    return write_form(&self, has_task ? task : dialect_is_there(message) ? message : event, out);
}
