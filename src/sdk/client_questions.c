/* What the server asks. A question comes by a request of a legacy server or as one input of a
 * round, is shown to the handler of its kind, and is answered exactly once:
 *
 *   made --handler--> running --answered--> gone when the handler returns
 *                        |  \--returned without an answer--> declined
 *                        \--deferred--> waits for the program --answered--> gone
 *
 * A question becomes pointless when nobody waits for it any more: the server took it back, its link
 * or its client ended, its request was cancelled. Then `client` is NULL and an answer goes nowhere;
 * one that was deferred stays until the program has answered it all the same.
 *
 * Invariant: a question with a client is in client->questions until it is answered. */
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "schema/defaults.h"
#include "schema/schema.h"
#include "sdk/client_parts.h"
#include "sdk/format.h"
#include "json/build.h"

enum {
    QUESTIONS_MAX = 64,              /* open at one time, of one client */
    QUESTION_MAX_BYTES = 64 << 20,   /* of one answer */
    QUESTION_MAX_PARSED = 256 << 20, /* memory of what is read from a question */
    QUESTION_REJECTED = -1,          /* mcp client/sampling: the person said no */
};

typedef enum question_kind { QUESTION_FORM, QUESTION_PAGE, QUESTION_SAMPLING } question_kind;

struct bay_question {
    list_link link;
    bay_client *client; /* NULL: pointless */
    question_kind kind;
    bool is_running; /* inside the handler */
    bool is_deferred;
    bool is_answered;
    char *id; /* of a legacy request, raw; NULL: an input of a round */
    size_t id_len;
    sdk_question_answered answered; /* of a round */
    void *user;
    bay_question **place; /* where its asker knows it by, until it is answered */
    arena memory;
    bay_str method;
    json_val params;
    bay_str message, url;
    json_val form;
    schema *compiled;      /* of a form; NULL: anything goes */
    bay_document document; /* of the params, once they are read as values */
};

/* Why a question is not even shown. */
typedef struct refusal {
    int code; /* 0: it is shown */
    char text[200];
} refusal;

/* ---- life -------------------------------------------------------------------------------------
 */

static void question_free(bay_question *self)
{
    list_remove(&self->link);
    schema_free(self->compiled);
    arena_fini(&self->memory);
    mem_free(self->id);
    mem_free(self);
}

/* Sends the answer. `self` may be gone afterwards. */
static void question_answer(bay_question *self, json_val result, int code, bay_str message)
{
    bay_client *client = self->client;
    self->is_answered = true;
    self->client = NULL;
    list_remove(&self->link);
    if (self->place != NULL) {
        *self->place = NULL;
    }
    if (client != NULL && self->id != NULL) {
        mcp_client *engine = sdk_client_engine(client);
        if (engine != NULL) {
            mcp_client_answer(engine, (bay_str){self->id, self->id_len}, json_raw(result), code,
                              message);
        }
    } else if (client != NULL) {
        self->answered(self->user, result, code, message);
    }
    if (!self->is_running) {
        question_free(self);
    }
}

static void question_refuse(bay_question *self, int code, bay_str message)
{
    question_answer(self, JSON_NONE, code, message);
}

/* … with a result that was built; drops `made`. BAY_ERR_NOMEM, BAY_ERR_LIMIT: there is no
 * answer. */
static bay_err question_send(bay_question *self, json_builder *made)
{
    json_val result;
    bay_err err = json_builder_view(made, &result);
    if (err == BAY_OK) {
        question_answer(self, result, 0, (bay_str){0});
    }
    json_builder_drop(made);
    return err;
}

/* False, and a line in the log, when there was an answer before. */
static bool question_is_open(const bay_question *self)
{
    if (self != NULL && self->is_answered) {
        LOG(LOG_WARN, "client", "a second answer to %.*s is dropped", BAY_STR(self->method));
    }
    return self != NULL && !self->is_answered;
}

/* Nobody waits for it any more. */
static void question_orphan(bay_question *self)
{
    self->client = NULL;
    list_remove(&self->link);
    if (!self->is_running && !self->is_deferred) {
        question_free(self);
    }
}

/* ---- reading what is asked --------------------------------------------------------------------
 */

static bay_err read_text(bay_question *self, const char *member, bay_str *out)
{
    json_val value = json_get(self->params, str_of(member));
    bay_err err = json_str(value, &self->memory, out);
    return err == BAY_ERR_TYPE ? BAY_OK : err;
}

static bay_err client_questions_refuse(refusal *out, int code, const char *format, ...)
    BAY_PRINTF(3, 4);

static bay_err client_questions_refuse(refusal *out, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->text, sizeof(out->text), format, arguments);
    va_end(arguments);
    out->code = code;
    return BAY_OK;
}

/* The schema of a form has to be one: what cannot be checked is not sent. */
static bay_err read_form(bay_question *self, refusal *out)
{
    bay_diag diag = {0};
    self->form = json_get(self->params, STR("requestedSchema"));
    if (json_is(self->form, JSON_MISSING)) {
        return BAY_OK;
    }
    bay_err err = schema_compile(self->form, NULL, &self->compiled, &diag);
    if (err == BAY_ERR_NOMEM || err == BAY_OK) {
        return err;
    }
    return client_questions_refuse(out, RPC_INVALID_PARAMS, "requestedSchema: %s", diag.text);
}

/* mcp 2025-11-25 client/elicitation: without a mode it is a form; a mode that was not declared is
 * refused as invalid parameters */
static bay_err read_elicitation(bay_question *self, unsigned modes, refusal *out)
{
    json_val mode = json_get(self->params, STR("mode"));
    bool is_form = json_is(mode, JSON_MISSING) || json_str_eq(mode, STR("form"));
    bool is_page = json_str_eq(mode, STR("url"));
    self->kind = is_page ? QUESTION_PAGE : QUESTION_FORM;
    if ((!is_form && !is_page) || (is_form && (modes & BAY_ELICITATION_FORM) == 0) ||
        (is_page && (modes & BAY_ELICITATION_URL) == 0)) {
        return client_questions_refuse(out, RPC_INVALID_PARAMS,
                                       "this client did not declare this mode of elicitation");
    }
    bay_err err = read_text(self, "message", &self->message);
    if (err == BAY_OK && is_page) {
        err = read_text(self, "url", &self->url);
    }
    if (err == BAY_OK && is_page && self->url.len == 0) {
        return client_questions_refuse(out, RPC_INVALID_PARAMS, "a page to visit needs its url");
    }
    return err == BAY_OK && is_form ? read_form(self, out) : err;
}

/* mcp 2025-11-25 client/sampling: tools are refused unless sampling.tools was declared */
static bay_err read_sampling(bay_question *self, const bay_client_options *options, refusal *out)
{
    json_val root = self->params;
    self->kind = QUESTION_SAMPLING;
    if (json_is(json_get(root, STR("tools")), JSON_MISSING) &&
        json_is(json_get(root, STR("toolChoice")), JSON_MISSING)) {
        return BAY_OK;
    }
    return options->has_sampling_tools
               ? BAY_OK
               : client_questions_refuse(out, RPC_INVALID_PARAMS,
                                         "this client did not declare sampling.tools");
}

typedef enum asked_method {
    ASKED_NOTHING,
    ASKED_ROOTS,
    ASKED_ELICITATION,
    ASKED_SAMPLING
} asked_method;

/* Which of the methods that this client declared; ASKED_NOTHING: none. */
static asked_method method_of(const bay_client *client, bay_str method)
{
    const bay_client_options *options = &client->options;
    if (str_eq(method, STR("roots/list")) && options->has_roots) {
        return ASKED_ROOTS;
    }
    if (str_eq(method, STR("elicitation/create")) && options->elicitation_modes != 0) {
        return ASKED_ELICITATION;
    }
    if (str_eq(method, STR("sampling/createMessage")) && options->sampling_asked != NULL) {
        return ASKED_SAMPLING;
    }
    return ASKED_NOTHING;
}

static bay_question *question_new(bay_str method, json_val params)
{
    bay_question *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    arena_init(&self->memory, QUESTION_MAX_PARSED);
    params = json_is(params, JSON_MISSING) ? json_empty_object() : params;
    if (arena_dup(&self->memory, method, &self->method) != BAY_OK ||
        json_clone_in(params, &self->memory, &self->params) != BAY_OK) {
        question_free(self);
        return NULL;
    }
    return self;
}

/* Shows it to its handler. BAY_ERR_NOMEM: nothing happened. */
static bay_err question_show(bay_question *self, bay_client *client, asked_method asked)
{
    const bay_client_options *options = &client->options;
    bay_asked_fn handler =
        asked == ASKED_SAMPLING ? options->sampling_asked : options->elicitation_asked;
    void *user = asked == ASKED_SAMPLING ? options->sampling_user : options->elicitation_user;
    refusal why = {0};
    bay_err err = asked == ASKED_SAMPLING
                      ? read_sampling(self, options, &why)
                      : read_elicitation(self, options->elicitation_modes, &why);
    if (err != BAY_OK) {
        return err;
    }
    self->client = client;
    list_push(&client->questions, &self->link);
    if (why.code != 0) {
        LOG(LOG_INFO, "client", "%.*s is refused: %s", BAY_STR(self->method), why.text);
        question_refuse(self, why.code, str_of(why.text));
        return BAY_OK;
    }
    self->is_running = true;
    handler(self, user);
    if (!self->is_answered && !self->is_deferred) {
        bay_question_decline(self);
    }
    self->is_running = false;
    if (self->is_answered) {
        question_free(self);
    }
    return BAY_OK;
}

static bool has_too_many(const bay_client *client)
{
    size_t count = 0;
    LIST_EACH(link, &client->questions)
    {
        count++;
    }
    return count >= QUESTIONS_MAX;
}

/* ---- the two ways of asking -------------------------------------------------------------------
 */

bool sdk_question_arrived(bay_client *client, bay_request *during, const rpc_message *request)
{
    mcp_client *engine = sdk_client_engine(client);
    asked_method asked = method_of(client, request->method);
    (void)during; /* what is asked of the person does not depend on it */
    if (asked == ASKED_NOTHING || engine == NULL) {
        return false;
    }
    if (asked == ASKED_ROOTS) {
        mcp_client_answer(engine, request->id, client->roots->text, 0, (bay_str){0});
        return true;
    }
    bay_question *self = NULL;
    bay_err err = has_too_many(client) ? BAY_ERR_BUSY : BAY_ERR_NOMEM;
    if (err == BAY_ERR_NOMEM) {
        self = question_new(request->method, request->params);
    }
    if (self != NULL) {
        self->id = mem_dup(request->id.at, request->id.len);
        self->id_len = request->id.len;
        err = self->id != NULL ? question_show(self, client, asked) : BAY_ERR_NOMEM;
        if (err == BAY_OK) {
            return true;
        }
        question_free(self);
    }
    mcp_client_answer(engine, request->id, (bay_str){0}, RPC_INTERNAL_ERROR,
                      err == BAY_ERR_BUSY ? STR("too many questions at once")
                                          : STR("out of memory"));
    return true;
}

void sdk_question_withdrawn(bay_client *client, bay_str id)
{
    LIST_EACH(link, &client->questions)
    {
        bay_question *self = CONTAINER_OF(link, bay_question, link);
        if (self->id != NULL && str_eq((bay_str){self->id, self->id_len}, id)) {
            question_orphan(self);
            return;
        }
    }
}

bay_err sdk_question_ask(bay_client *client, bay_str method, json_val params,
                         sdk_question_answered answered, void *user, bay_question **out)
{
    asked_method asked = method_of(client, method);
    bay_question *self = question_new(method, params);
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    *out = self;
    self->place = out;
    self->answered = answered;
    self->user = user;
    bool is_busy = has_too_many(client);
    if (!is_busy && (asked == ASKED_ELICITATION || asked == ASKED_SAMPLING)) {
        bay_err err = question_show(self, client, asked);
        if (err != BAY_OK) {
            *out = NULL;
            question_free(self);
        }
        return err;
    }
    self->client = client;
    if (asked == ASKED_ROOTS) {
        question_answer(self, json_root(client->roots), 0, (bay_str){0});
    } else if (is_busy) {
        question_refuse(self, RPC_INTERNAL_ERROR, STR("too many questions at once"));
    } else {
        question_refuse(self, RPC_METHOD_NOT_FOUND, STR("this client did not offer to answer it"));
    }
    return BAY_OK;
}

void sdk_question_drop(bay_question *self)
{
    if (self != NULL) {
        self->place = NULL;
        question_orphan(self);
    }
}

void sdk_questions_end(bay_client *client)
{
    LIST_EACH(link, &client->questions)
    {
        bay_question *self = CONTAINER_OF(link, bay_question, link);
        if (self->id != NULL) {
            question_orphan(self);
        }
    }
}

/* ---- what a handler sees ----------------------------------------------------------------------
 */

bay_str bay_question_method(const bay_question *question)
{
    return question != NULL ? question->method : (bay_str){0};
}

bay_str bay_question_params(const bay_question *question)
{
    return question != NULL ? json_raw(question->params) : (bay_str){0};
}

bay_value bay_question_value(const bay_question *question, const char *name)
{
    bay_question *self = (bay_question *)question; /* the document is only a way to read it */
    if (self == NULL || self->params.doc == NULL) {
        return (bay_value){NULL, 0};
    }
    if (self->document.memory == NULL) {
        self->document = (bay_document){.doc = *self->params.doc, .memory = &self->memory};
    }
    return sdk_value(&self->document,
                     name != NULL ? json_get(self->params, str_of(name)) : self->params);
}

bay_str bay_question_message(const bay_question *question)
{
    return question != NULL ? question->message : (bay_str){0};
}

bay_str bay_question_schema(const bay_question *question)
{
    return question != NULL ? json_raw(question->form) : (bay_str){0};
}

bay_str bay_question_url(const bay_question *question)
{
    return question != NULL ? question->url : (bay_str){0};
}

bay_question *bay_question_defer(bay_question *question)
{
    if (question != NULL && !question->is_answered) {
        question->is_deferred = true;
    }
    return question;
}

/* ---- answering --------------------------------------------------------------------------------
 */

/* Does a completed form satisfy the schema? BAY_ERR_INVALID with the first rule that it breaks. */
static bay_err form_check(const schema *compiled, json_val form, bay_diag *diag)
{
    schema_failures failures;
    bay_err err = schema_check(compiled, form, NULL, &failures);
    if (err == BAY_ERR_NOMEM) {
        diag_set(diag, err, "out of memory");
    } else if (err != BAY_OK) {
        diag_set(diag, BAY_ERR_INVALID, "the form breaks the server's schema: %.*s",
                 BAY_STR(failures.count > 0 ? failures.item[0].text : str_of(bay_err_text(err))));
        err = BAY_ERR_INVALID;
    }
    return err;
}

/* Writes the result that accepts the form. `content`: an object, or missing. */
static bay_err write_form(const bay_question *self, json_val content, json_builder *made,
                          bay_diag *diag)
{
    json_val result;
    json_writer *to = json_builder_init(made, NULL, QUESTION_MAX_BYTES);
    json_open_object(to);
    json_key_lit(to, "action");
    json_put_str(to, STR("accept"));
    json_key_lit(to, "content");
    /* defaults are the server's own JSON: one that breaks its schema is found by the check */
    schema_put_defaults(self->form, content, DEFAULTS_OF_ALL, to);
    json_close_object(to);
    bay_err err = json_builder_view(made, &result);
    if (err != BAY_OK) {
        return diag_set(diag, err, "the form: %s", bay_err_text(err));
    }
    return self->compiled != NULL
               ? form_check(self->compiled, json_get(result, STR("content")), diag)
               : BAY_OK;
}

/* {"action":…}. Such a small one fails for lack of memory alone. */
static bay_err answer_action(bay_question *self, bay_str action)
{
    json_builder made;
    json_writer *to = json_builder_init(&made, NULL, QUESTION_MAX_BYTES);
    json_open_object(to);
    json_key_lit(to, "action");
    json_put_str(to, action);
    json_close_object(to);
    return question_send(self, &made);
}

static bay_err accept(bay_question *self, json_val content, bay_diag *diag)
{
    json_builder made;
    bay_err err = write_form(self, content, &made, diag);
    if (err == BAY_OK) {
        return question_send(self, &made);
    }
    json_builder_drop(&made);
    return err;
}

/* BAY_OK: it is a form. BAY_ERR_EOF: it was a page, and is answered. */
static bay_err check_accept(bay_question *question, bay_diag *diag)
{
    if (!question_is_open(question)) {
        return diag_set(diag, BAY_ERR_STATE, "the question has been answered");
    }
    if (question->kind == QUESTION_SAMPLING) {
        return diag_set(diag, BAY_ERR_STATE, "sampling is answered with bay_question_reply");
    }
    if (question->kind == QUESTION_PAGE) {
        bay_err err = answer_action(question, STR("accept"));
        return err == BAY_OK ? BAY_ERR_EOF : err;
    }
    return BAY_OK;
}

bay_err bay_question_accept_json(bay_question *question, bay_json *content, bay_diag *diag)
{
    json_val form;
    bay_err err = check_accept(question, diag);
    if (err == BAY_OK) {
        err = sdk_json_val(content, JSON_OBJECT, &form);
        if (err == BAY_OK) {
            err = accept(question, form, diag);
        } else if (err == BAY_ERR_NOMEM) {
            diag_set(diag, err, "out of memory");
        } else {
            err = diag_set(diag, BAY_ERR_INVALID, "the form: %s",
                           err == BAY_ERR_TYPE ? "it is no JSON object"
                                               : sdk_json_fault(content, err));
        }
    }
    bay_json_free(content);
    return err == BAY_ERR_EOF ? BAY_OK : err;
}

bay_err bay_question_accept(bay_question *question, const char *content, bay_diag *diag)
{
    if (content != NULL) {
        return bay_question_accept_json(question, bay_json_of(content), diag);
    }
    bay_err err = check_accept(question, diag);
    err = err == BAY_OK ? accept(question, json_empty_object(), diag) : err;
    return err == BAY_ERR_EOF ? BAY_OK : err;
}

/* An answer that could not be made, or makes no sense, still ends the question. */
static void answer_fault(bay_question *self, const char *text)
{
    LOG(LOG_ERROR, "client", "the answer to %.*s cannot be sent: %s", BAY_STR(self->method), text);
    question_refuse(self, RPC_INTERNAL_ERROR, str_of(text));
}

static void answer_without(bay_question *self, bay_str action, const char *text)
{
    if (!question_is_open(self)) {
        return;
    }
    if (self->kind == QUESTION_SAMPLING) {
        question_refuse(self, QUESTION_REJECTED, str_of(text));
    } else if (answer_action(self, action) != BAY_OK) {
        answer_fault(self, bay_err_text(BAY_ERR_NOMEM));
    }
}

void bay_question_decline(bay_question *question)
{
    answer_without(question, STR("decline"), "User rejected sampling request");
}

void bay_question_cancel(bay_question *question)
{
    answer_without(question, STR("cancel"), "The sampling request was dismissed");
}

void bay_question_reply_str(bay_question *question, const char *model, bay_str text)
{
    if (!question_is_open(question)) {
        return;
    }
    if (question->kind != QUESTION_SAMPLING) {
        answer_fault(question, "a model's reply was given to what is no sampling");
        return;
    }
    json_builder made;
    json_writer *to = json_builder_init(&made, NULL, QUESTION_MAX_BYTES);
    json_open_object(to);
    json_key_lit(to, "role");
    json_put_str(to, STR("assistant"));
    json_key_lit(to, "content");
    json_open_object(to);
    json_key_lit(to, "type");
    json_put_str(to, STR("text"));
    json_key_lit(to, "text");
    json_put_str(to, text);
    json_close_object(to);
    json_key_lit(to, "model");
    json_put_str(to, str_of(model != NULL ? model : "unknown"));
    json_key_lit(to, "stopReason");
    json_put_str(to, STR("endTurn"));
    json_close_object(to);
    bay_err err = question_send(question, &made);
    if (err != BAY_OK) {
        answer_fault(question, bay_err_text(err));
    }
}

void bay_question_reply(bay_question *question, const char *model, const char *text)
{
    bay_question_reply_str(question, model, str_of(text));
}

void bay_question_replyf(bay_question *question, const char *model, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_question_reply_str(question, model, buf_view(&text));
    buf_fini(&text);
}

void bay_question_result_json(bay_question *question, bay_json *object)
{
    json_val result;
    if (question_is_open(question)) {
        bay_err err = sdk_json_val(object, JSON_OBJECT, &result);
        if (err == BAY_OK) {
            question_answer(question, result, 0, (bay_str){0});
        } else {
            answer_fault(question, err == BAY_ERR_TYPE ? "it is no JSON object"
                                                       : sdk_json_fault(object, err));
        }
    }
    bay_json_free(object);
}

void bay_question_result(bay_question *question, const char *object)
{
    bay_question_result_json(question, bay_json_of(object));
}

void bay_question_error_str(bay_question *question, int code, bay_str message)
{
    if (question_is_open(question)) {
        question_refuse(question, code, message.at != NULL ? message : STR(""));
    }
}

void bay_question_error(bay_question *question, int code, const char *message)
{
    bay_question_error_str(question, code, str_of(message));
}

void bay_question_errorf(bay_question *question, int code, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_question_error_str(question, code, buf_view(&text));
    buf_fini(&text);
}
