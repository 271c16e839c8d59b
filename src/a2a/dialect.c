/* The entry points of translation: which form, which method, the form's tables, and then the check
 * that all forms end in. What an older form's reader writes is text, which is parsed again; 1.0 is
 * only checked. */
#include "a2a/dialect_walk.h"
#include "json/build.h"

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

/* `text` if it is in normal form, otherwise its normal form, appended. */
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

/* The names that faults use for what peers of 0.x call differently. */
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
    a2a_type theirs; /* of package a2a.v1, otherwise A2A_TYPE_NONE */
    a2a_type ours;
    dialect_turn *turn; /* NULL in 1.0 */
} reading;

static bay_err translate(const reading *self, json_val value, arena *memory, json_val *out,
                         bool *out_is_last, a2a_fault *fault)
{
    enum { USUAL_GROWTH = 256 };
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, DIALECT_TEXT_BYTES);
    dialect walk = {.form = self->form, .memory = memory, .fault = fault, .to = *to};
    if (buf_reserve(to->out, json_raw(value).len + USUAL_GROWTH)) {
        self->turn(&walk, value);
    }
    *to = walk.to;
    if (walk.err != BAY_OK) {
        json_builder_drop(&made);
        return walk.err;
    }
    bay_err err = json_builder_end(&made, out);
    if (err == BAY_OK) {
        *out_is_last = walk.is_last;
    }
    return err;
}

/* `value` itself if nothing of it has to change, otherwise a value in `memory`. */
static bay_err view_form(const reading *self, json_val value, arena *memory, json_val *out,
                         bool *out_is_last, a2a_fault *fault)
{
    bay_err err = BAY_OK;
    *out_is_last = false;
    if (self->theirs != A2A_TYPE_NONE) {
        err = a2a_normal_view(self->theirs, value, DIALECT_TEXT_BYTES, memory, &value, fault);
    }
    if (err == BAY_OK && self->turn != NULL) {
        err = translate(self, value, memory, &value, out_is_last, fault);
    }
    if (err != BAY_OK) {
        return err;
    }
    err = a2a_normal_view(self->ours, value, DIALECT_TEXT_BYTES, memory, out, fault);
    bool is_renamed = self->turn != NULL && self->form != A2A_FORM_0_3_PROTO;
    if (err == BAY_ERR_PROTOCOL && fault != NULL && is_renamed) {
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

/* Params and results may be omitted if nothing in them is required. */
static json_val given_or_empty(json_val value)
{
    return json_is(value, JSON_MISSING) ? json_empty_object() : value;
}

static reading reading_of_params(a2a_form form, a2a_method method)
{
    bool is_old = form != A2A_FORM_1_0;
    return (reading){.form = form,
                     .theirs =
                         form == A2A_FORM_0_3_PROTO ? proto_types[method].request : A2A_TYPE_NONE,
                     .ours = (a2a_type)a2a_methods[method].request,
                     .turn = is_old ? forms_of(form)->read_params[method] : NULL};
}

bay_err a2a_params_read(a2a_form form, a2a_method method, json_val params, buf *out,
                        a2a_fault *fault)
{
    reading self = reading_of_params(form, method);
    bool ignored;
    return form != A2A_FORM_1_0 && self.turn == NULL
               ? refuse_method(fault, method)
               : read_form(&self, given_or_empty(params), out, &ignored, fault);
}

bay_err a2a_params_view(a2a_form form, a2a_method method, json_val params, arena *memory,
                        json_val *out, a2a_fault *fault)
{
    reading self = reading_of_params(form, method);
    bool ignored;
    return form != A2A_FORM_1_0 && self.turn == NULL
               ? refuse_method(fault, method)
               : view_form(&self, given_or_empty(params), memory, out, &ignored, fault);
}

static reading reading_of_result(a2a_form form, a2a_method method)
{
    bool is_old = form != A2A_FORM_1_0;
    return (reading){.form = form,
                     .theirs =
                         form == A2A_FORM_0_3_PROTO ? proto_types[method].response : A2A_TYPE_NONE,
                     .ours = (a2a_type)a2a_methods[method].response,
                     .turn = is_old ? forms_of(form)->read_result[method] : NULL};
}

bay_err a2a_result_read(a2a_form form, a2a_method method, json_val result, buf *out,
                        a2a_fault *fault)
{
    reading self = reading_of_result(form, method);
    bool ignored;
    return form != A2A_FORM_1_0 && self.turn == NULL
               ? refuse_method(fault, method)
               : read_form(&self, given_or_empty(result), out, &ignored, fault);
}

bay_err a2a_result_view(a2a_form form, a2a_method method, json_val result, arena *memory,
                        json_val *out, a2a_fault *fault)
{
    reading self = reading_of_result(form, method);
    bool ignored;
    return form != A2A_FORM_1_0 && self.turn == NULL
               ? refuse_method(fault, method)
               : view_form(&self, given_or_empty(result), memory, out, &ignored, fault);
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

bay_err a2a_text_view(bay_str text, json_val known, arena *memory, json_val *out)
{
    if (!json_is(known, JSON_MISSING)) {
        *out = known;
        return BAY_OK;
    }
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    bay_err err = doc != NULL ? json_parse(doc, text, NULL, memory, NULL) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        *out = json_root(doc);
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

static bay_err write_to(const writing *self, json_val value, json_writer *to)
{
    arena memory;
    arena_init(&memory, DIALECT_MEMORY_BYTES);
    dialect walk = {.form = self->form,
                    .memory = &memory,
                    .is_last = self->is_last,
                    .task_id = self->task_id,
                    .to = *to};
    self->turn(&walk, value);
    *to = walk.to;
    arena_fini(&memory);
    return walk.err != BAY_OK ? walk.err : to->out->err;
}

static bay_err write_form(const writing *self, json_val value, buf *out)
{
    if (self->form == A2A_FORM_1_0) {
        buf_str(out, json_raw(value));
        return out->err;
    }
    json_writer to;
    size_t before = out->len;
    json_writer_init(&to, out);
    bay_err err = write_to(self, value, &to);
    if (err != BAY_OK) {
        out->len = before;
    }
    return err;
}

/* `value` itself in 1.0, otherwise a value in `memory`. */
static bay_err form_view(const writing *self, json_val value, arena *memory, json_val *out)
{
    json_builder made;
    if (self->form == A2A_FORM_1_0) {
        *out = value;
        return BAY_OK;
    }
    bay_err err = write_to(self, value, json_builder_init(&made, memory, DIALECT_TEXT_BYTES));
    if (err != BAY_OK) {
        json_builder_drop(&made);
        return err;
    }
    return json_builder_end(&made, out);
}

static bay_err writing_of_params(a2a_form form, a2a_method method, writing *out, a2a_fault *fault)
{
    *out = (writing){.form = form,
                     .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_params[method] : NULL};
    if (form != A2A_FORM_1_0 && out->turn == NULL) {
        (void)a2a_fault_set(fault, A2A_E_UNSUPPORTED_OPERATION, "the agent's version has no %.*s",
                            BAY_STR(a2a_methods[method].name));
        return BAY_ERR_UNSUPPORTED;
    }
    return BAY_OK;
}

bay_err a2a_params_write(a2a_form form, a2a_method method, json_val params, buf *out,
                         a2a_fault *fault)
{
    writing self;
    bay_err err = writing_of_params(form, method, &self, fault);
    return err == BAY_OK ? write_form(&self, params, out) : err;
}

bay_err a2a_params_in_form(a2a_form form, a2a_method method, json_val params, arena *memory,
                           json_val *out, a2a_fault *fault)
{
    writing self;
    bay_err err = writing_of_params(form, method, &self, fault);
    return err == BAY_OK ? form_view(&self, params, memory, out) : err;
}

static writing writing_of_result(a2a_form form, a2a_method method, bay_str task_id)
{
    return (writing){.form = form,
                     .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_result[method] : NULL,
                     .task_id = task_id};
}

bay_err dialect_result_write(a2a_form form, a2a_method method, json_val result, bay_str task_id,
                             buf *out)
{
    writing self = writing_of_result(form, method, task_id);
    return form != A2A_FORM_1_0 && self.turn == NULL ? BAY_ERR_UNSUPPORTED
                                                     : write_form(&self, result, out);
}

bay_err a2a_result_in_form(a2a_form form, a2a_method method, json_val result, arena *memory,
                           json_val *out)
{
    writing self = writing_of_result(form, method, STR(""));
    return form != A2A_FORM_1_0 && self.turn == NULL ? BAY_ERR_UNSUPPORTED
                                                     : form_view(&self, result, memory, out);
}

bay_err a2a_result_write(a2a_form form, a2a_method method, json_val result, buf *out)
{
    return dialect_result_write(form, method, result, STR(""), out);
}

static writing writing_of_event(a2a_form form, bool is_last)
{
    return (writing){.form = form,
                     .turn = form != A2A_FORM_1_0 ? forms_of(form)->write_event : NULL,
                     .is_last = is_last};
}

bay_err a2a_event_write(a2a_form form, json_val event, bool is_last, buf *out)
{
    writing self = writing_of_event(form, is_last);
    return write_form(&self, event, out);
}

bay_err a2a_event_in_form(a2a_form form, json_val event, bool is_last, arena *memory, json_val *out)
{
    writing self = writing_of_event(form, is_last);
    return form_view(&self, event, memory, out);
}

/* 0.3 has one body for webhooks, whichever binding registered them. */
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
