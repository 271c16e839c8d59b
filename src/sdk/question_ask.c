/* Asking: what a handler asks its client, as the params of the request that carries it. Any thread
 * that has the call. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sdk/fields.h"
#include "sdk/server_parts.h"

/* ---- forms ----------------------------------------------------------------------------------- */

/* An object of the handler's. */
static bay_err put_object(const bay_call *call, const char *what, bay_json *json, json_writer *out)
{
    json_val object;
    bay_err err = sdk_call_json(call, what, json, JSON_OBJECT, &object);
    if (err == BAY_OK) {
        json_put_val(out, object);
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_INVALID;
}

/* Takes the form, a requestedSchema. `err`: why there is none. */
static void ask_form(bay_call *call, bay_str message, bay_json *form, bay_err err,
                     const call_question *what)
{
    if (call != NULL) {
        json_builder made;
        json_writer *out = json_builder_init(&made, NULL, CALL_MAX_QUESTION);
        json_open_object(out);
        json_key_lit(out, "message");
        json_put_str(out, message);
        json_key_lit(out, "requestedSchema");
        if (err == BAY_OK) {
            err = put_object(call, "the requestedSchema of a question", form, out);
        }
        if (err == BAY_OK) {
            json_close_object(out);
        }
        sdk_call_ask(call, what, &made, err);
    }
    bay_json_free(form);
}

void bay_call_elicit_schema_json(bay_call *call, const char *message, bay_json *form,
                                 bay_answered_fn answered, void *user)
{
    ask_form(call, str_of(message), form, BAY_OK,
             &(call_question){QUESTION_FORM, false, answered, user});
}

void bay_call_elicit_schema_str(bay_call *call, bay_str message, bay_str form,
                                bay_answered_fn answered, void *user)
{
    ask_form(call, message, bay_json_of_str(form), BAY_OK,
             &(call_question){QUESTION_FORM, false, answered, user});
}

void bay_call_elicit_schema(bay_call *call, const char *message, const char *form,
                            bay_answered_fn answered, void *user)
{
    bay_call_elicit_schema_str(call, str_of(message), str_of(form), answered, user);
}

/* mcp 2025-11-25 client/elicitation gives choices their titles in another way than 2025-06-18. */
void bay_call_elicit_str(bay_call *call, bay_str message, const bay_field *form,
                         bay_answered_fn answered, void *user)
{
    bay_json *made = NULL;
    bay_diag diag = {0};
    if (call == NULL) {
        return;
    }
    bool is_old = call->request->revision->id < MCP_REV_2025_11_25;
    bay_err err =
        sdk_fields_schema(form, is_old ? FIELDS_OF_OLD_FORM : FIELDS_OF_FORM, &made, &diag);
    if (err != BAY_OK) {
        SERVER_LOG(call->server, LOG_ERROR, "server", "the form of \"%.*s\": %s",
                   BAY_STR(call->entry->key), diag.text);
    }
    ask_form(call, message, made, err, &(call_question){QUESTION_FORM, true, answered, user});
}

void bay_call_elicit(bay_call *call, const char *message, const bay_field *form,
                     bay_answered_fn answered, void *user)
{
    bay_call_elicit_str(call, str_of(message), form, answered, user);
}

void bay_call_elicitf(bay_call *call, const bay_field *form, bay_answered_fn answered, void *user,
                      const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_elicit_str(call, buf_view(&text), form, answered, user);
    buf_fini(&text);
}

/* ---- pages, models, roots -------------------------------------------------------------------- */

void bay_call_elicit_url_str(bay_call *call, bay_str message, bay_str url, bay_str elicitation_id,
                             bay_answered_fn answered, void *user)
{
    json_builder made;
    if (call == NULL) {
        return;
    }
    json_writer *out = json_builder_init(&made, NULL, CALL_MAX_QUESTION);
    json_open_object(out);
    json_key_lit(out, "mode");
    json_put_str(out, STR("url"));
    json_key_lit(out, "message");
    json_put_str(out, message);
    json_key_lit(out, "url");
    json_put_str(out, url);
    if (call->request->revision->era == MCP_LEGACY) {
        json_key_lit(out, "elicitationId"); /* 2026-07-28 has none: its state says as much */
        json_put_str(out, elicitation_id);
    }
    json_close_object(out);
    sdk_call_ask(call, &(call_question){QUESTION_URL, false, answered, user}, &made, BAY_OK);
}

void bay_call_elicit_url(bay_call *call, const char *message, const char *url,
                         const char *elicitation_id, bay_answered_fn answered, void *user)
{
    bay_call_elicit_url_str(call, str_of(message), str_of(url), str_of(elicitation_id), answered,
                            user);
}

void bay_call_sample_str(bay_call *call, bay_str prompt, int max_tokens, bay_answered_fn answered,
                         void *user)
{
    json_builder made;
    if (call == NULL) {
        return;
    }
    json_writer *out = json_builder_init(&made, NULL, CALL_MAX_QUESTION);
    json_open_object(out);
    json_key_lit(out, "messages");
    json_open_array(out);
    json_open_object(out);
    json_key_lit(out, "role");
    json_put_str(out, STR("user"));
    json_key_lit(out, "content");
    json_open_object(out);
    json_key_lit(out, "type");
    json_put_str(out, STR("text"));
    json_key_lit(out, "text");
    json_put_str(out, prompt);
    json_close_object(out);
    json_close_object(out);
    json_close_array(out);
    json_key_lit(out, "maxTokens");
    json_put_int(out, max_tokens);
    json_close_object(out);
    sdk_call_ask(call, &(call_question){QUESTION_SAMPLE, false, answered, user}, &made, BAY_OK);
}

void bay_call_sample(bay_call *call, const char *prompt, int max_tokens, bay_answered_fn answered,
                     void *user)
{
    bay_call_sample_str(call, str_of(prompt), max_tokens, answered, user);
}

void bay_call_samplef(bay_call *call, int max_tokens, bay_answered_fn answered, void *user,
                      const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_call_sample_str(call, buf_view(&text), max_tokens, answered, user);
    buf_fini(&text);
}

void bay_call_sample_json(bay_call *call, bay_json *params, bay_answered_fn answered, void *user)
{
    if (call != NULL) {
        json_builder made;
        json_writer *out = json_builder_init(&made, NULL, CALL_MAX_QUESTION);
        bay_err err = put_object(call, "what it wants sampled", params, out);
        sdk_call_ask(call, &(call_question){QUESTION_SAMPLE, false, answered, user}, &made, err);
    }
    bay_json_free(params);
}

void bay_call_roots(bay_call *call, bay_answered_fn answered, void *user)
{
    json_builder made;
    if (call == NULL) {
        return;
    }
    json_writer *out = json_builder_init(&made, NULL, CALL_MAX_QUESTION);
    json_open_object(out);
    json_close_object(out);
    sdk_call_ask(call, &(call_question){QUESTION_ROOTS, false, answered, user}, &made, BAY_OK);
}

/* ---- keys ------------------------------------------------------------------------------------ */

void bay_call_question_key_str(bay_call *call, bay_str key)
{
    if (call == NULL) {
        return;
    }
    call->next_key = (bay_str){NULL, 0};
    if (key.len > CALL_MAX_KEY) {
        SERVER_LOG(call->server, LOG_ERROR, "server",
                   "\"%.*s\": the key of a question has more than %d bytes",
                   BAY_STR(call->entry->key), CALL_MAX_KEY);
    } else if (key.len > 0) {
        memcpy(call->key_bytes, key.at, key.len);
        call->next_key = (bay_str){call->key_bytes, key.len};
    }
}

void bay_call_question_key(bay_call *call, const char *key)
{
    bay_call_question_key_str(call, str_of(key));
}
