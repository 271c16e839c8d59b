#include "agents/proxy_owner.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/build.h"

enum {
    MARK_BYTES = 2 * PRINCIPAL_IDENTITY_BYTES + 1024,
    BOUND_BYTES = PRINCIPAL_IDENTITY_BYTES + 4096,
};

/* ---- marks ----------------------------------------------------------------------------------- */

static const seal_ring *ring_of(const agents_proxy_owner *self)
{
    return self->ring != NULL ? *self->ring : NULL;
}

/* Appends the mark by key number `nth`. Names of agents have no NUL. */
static bay_err write_mark(const agents_proxy_owner *self, size_t nth, buf *out)
{
    bay_str identity = principal_identity(self->principal);
    unsigned char digest[SEAL_DIGEST_BYTES];
    buf bound;
    buf_char(out, '~');
    if (seal_ring_count(ring_of(self)) == 0) {
        buf_lit(out, "patchbay."); /* nothing can be hidden here, but never nothing but '~' */
        principal_key_digits(identity, out);
        buf_char(out, '.');
        return out->err;
    }
    buf_init(&bound, BOUND_BYTES);
    buf_str(&bound, self->agent);
    buf_char(&bound, '\0');
    buf_str(&bound, identity);
    bay_err err = bound.err;
    if (err == BAY_OK) {
        err = seal_digest(ring_of(self), nth, SEAL_PROXY, buf_view(&bound), digest);
    }
    buf_fini(&bound);
    if (err == BAY_OK) {
        principal_key_digits((bay_str){(const char *)digest, sizeof(digest)}, out);
        err = out->err;
    }
    return err;
}

static bay_str mark_of(const agents_proxy_owner *self)
{
    return (bay_str){self->text + self->key_len, self->mark_len};
}

static agents_caller caller_of(const agents_proxy_owner *self)
{
    return (agents_caller){self->principal, ring_of(self), {self->text, self->key_len}};
}

bay_err agents_proxy_owner_init(agents_proxy_owner *self, agents_owned *of,
                                const seal_ring *const *ring, bay_str agent,
                                const auth_principal *principal)
{
    *self = (agents_proxy_owner){.of = of, .principal = principal, .ring = ring, .agent = agent};
    if (of == NULL || (principal == NULL && agents_owned_is_open(of))) {
        return BAY_OK;
    }
    buf text;
    buf_init(&text, MARK_BYTES + PRINCIPAL_KEY_BYTES);
    bay_err err = principal_key(principal, ring_of(self), 0, &text);
    self->key_len = text.len;
    err = err == BAY_OK ? write_mark(self, 0, &text) : err;
    self->mark_len = text.len - self->key_len;
    self->text = err == BAY_OK ? mem_dup(text.at, text.len) : NULL;
    buf_fini(&text);
    if (self->text == NULL) {
        *self = (agents_proxy_owner){0};
        return err == BAY_OK ? BAY_ERR_NOMEM : err;
    }
    if (principal != NULL) {
        agents_owned_close(of);
    }
    return BAY_OK;
}

void agents_proxy_owner_fini(agents_proxy_owner *self)
{
    mem_free(self->text);
    *self = (agents_proxy_owner){0};
}

bool agents_proxy_owner_is_on(const agents_proxy_owner *self)
{
    return self->of != NULL && !agents_owned_is_open(self->of);
}

static void take_off(bay_str mark, buf *text)
{
    char *end = text->at + text->len;
    char *to = text->at;
    for (char *from = text->at; from < end;) {
        char *found = memmem(from, (size_t)(end - from), mark.at, mark.len);
        size_t len = (size_t)((found != NULL ? found : end) - from);
        memmove(to, from, len);
        to += len;
        from = found != NULL ? found + mark.len : end;
    }
    text->len = (size_t)(to - text->at);
}

bay_str agents_proxy_owner_strip(const agents_proxy_owner *self, bay_str text, buf *out)
{
    for (size_t i = 0; self->mark_len > 0 && i < principal_key_count(ring_of(self)); i++) {
        buf older;
        bay_str mark = mark_of(self);
        buf_init(&older, MARK_BYTES);
        if (i > 0) {
            bay_err err = write_mark(self, i, &older);
            out->err = err != BAY_OK ? err : out->err;
            mark = buf_view(&older);
        }
        if (out->err == BAY_OK && text.len > 0 &&
            memmem(text.at, text.len, mark.at, mark.len) != NULL) {
            if (out->len == 0) {
                buf_str(out, text);
            }
            if (out->err == BAY_OK) {
                take_off(mark, out);
                text = buf_view(out);
            }
        }
        buf_fini(&older);
    }
    return text;
}

bay_err agents_proxy_owner_strip_val(const agents_proxy_owner *self, json_val value, arena *memory,
                                     json_val *out)
{
    bay_err err = BAY_OK;
    for (size_t i = 0;
         err == BAY_OK && self->mark_len > 0 && i < principal_key_count(ring_of(self)); i++) {
        buf older;
        bay_str mark = mark_of(self);
        bay_str text = json_raw(value);
        buf_init(&older, MARK_BYTES);
        if (i > 0) {
            err = write_mark(self, i, &older);
            mark = buf_view(&older);
        }
        if (err == BAY_OK && text.len > 0 && memmem(text.at, text.len, mark.at, mark.len) != NULL) {
            err = json_clone_without(value, mark, memory, &value);
        }
        buf_fini(&older);
    }
    if (err == BAY_OK) {
        *out = value;
    }
    return err;
}

void agents_proxy_owner_strip_fault(const agents_proxy_owner *self, a2a_fault *fault)
{
    buf out;
    buf_init(&out, sizeof(fault->text));
    bay_str text = agents_proxy_owner_strip(self, str_of(fault->text), &out);
    if (out.err == BAY_OK && text.at == out.at && text.len < sizeof(fault->text)) {
        memcpy(fault->text, text.at, text.len);
        fault->text[text.len] = '\0';
    }
    buf_fini(&out);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* What a request is being made into. */
typedef struct writing {
    const agents_proxy_owner *owner;
    json_writer *writer;
    arena *memory;
    bool is_namer;
    bay_err err;
} writing;

static bay_err text_of(json_val value, arena *memory, bay_str *out)
{
    *out = (bay_str){"", 0};
    return json_is(value, JSON_STRING) ? json_str(value, memory, out) : BAY_OK;
}

/* What the agent calls it, if it is the caller's: its id, or its id with one of the marks. */
static bool find_own(writing *self, owned_kind kind, bay_str id, buf *out)
{
    agents_caller caller = caller_of(self->owner);
    size_t keys = principal_key_count(caller.ring);
    buf_str(out, id);
    bool is_own = agents_owned_is(self->owner->of, kind, id, &caller);
    for (size_t i = 0; !is_own && i < keys && out->err == BAY_OK; i++) {
        out->len = id.len;
        bay_err err = write_mark(self->owner, i, out);
        self->err = err != BAY_OK ? err : self->err;
        is_own = err == BAY_OK && agents_owned_is(self->owner->of, kind, buf_view(out), &caller);
    }
    if (!is_own && out->err == BAY_OK) {
        out->len = id.len;
    }
    self->err = out->err != BAY_OK ? out->err : self->err;
    return is_own;
}

/* The id of a task or a context as the agent gets it. False: there is no such task. */
static bool put_name(writing *self, owned_kind kind, bool is_marked, json_val value)
{
    bay_str id;
    buf name;
    buf_init(&name, a2a_json_limits.max_bytes);
    bay_err err = text_of(value, self->memory, &id);
    self->err = err != BAY_OK ? err : self->err;
    bool is_own = self->err == BAY_OK && find_own(self, kind, id, &name);
    if (!is_own && is_marked) {
        buf_str(&name, mark_of(self->owner));
    }
    self->err = name.err != BAY_OK ? name.err : self->err;
    json_put_str(self->writer, buf_view(&name)); /* also after an error: a key has its value */
    buf_fini(&name);
    return is_own || is_marked;
}

static bool put_references(writing *self, json_val ids)
{
    bool is_fine = true;
    json_open_array(self->writer);
    for (json_iter at = json_iter_of(ids); is_fine && json_next(&at);) {
        is_fine = put_name(self, OWNED_TASK, false, at.value);
    }
    json_close_array(self->writer);
    return is_fine;
}

static bool is_named(json_val value)
{
    return json_is(value, JSON_STRING) && json_raw(value).len > 2; /* "": it is unset */
}

static bool put_message(writing *self, json_val message)
{
    static const bay_str names[] = {STR_INIT("messageId"), STR_INIT("taskId"),
                                    STR_INIT("contextId"), STR_INIT("referenceTaskIds")};
    json_val task = json_get(message, names[1]);
    json_val context = json_get(message, names[2]);
    bool is_fine = true;
    bay_str id;
    json_open_object(self->writer);
    json_put_members(self->writer, message, names, ARRAY_LEN(names));
    if (json_is(json_get(message, names[0]), JSON_STRING)) {
        buf marked;
        buf_init(&marked, a2a_json_limits.max_bytes);
        bay_err err = text_of(json_get(message, names[0]), self->memory, &id);
        self->err = err != BAY_OK ? err : self->err;
        buf_str(&marked, id);
        buf_str(&marked, mark_of(self->owner));
        self->err = self->err == BAY_OK ? marked.err : self->err;
        json_key(self->writer, names[0]);
        json_put_str(self->writer, buf_view(&marked));
        buf_fini(&marked);
    }
    if (is_named(task)) {
        json_key(self->writer, names[1]);
        is_fine = put_name(self, OWNED_TASK, self->is_namer, task);
    }
    if (is_fine && is_named(context)) {
        json_key(self->writer, names[2]);
        (void)put_name(self, OWNED_CONTEXT, true, context);
    }
    if (is_fine && json_is(json_get(message, names[3]), JSON_ARRAY)) {
        json_key(self->writer, names[3]);
        is_fine = put_references(self, json_get(message, names[3]));
    }
    json_close_object(self->writer);
    return is_fine;
}

/* The configuration of a message may register a webhook for its task. */
static bool put_configuration(writing *self, json_val configuration)
{
    static const bay_str webhook = STR_INIT("taskPushNotificationConfig");
    static const bay_str task = STR_INIT("taskId");
    json_val given = json_get(configuration, webhook);
    bool is_fine = true;
    json_open_object(self->writer);
    json_put_members(self->writer, configuration, &webhook, 1);
    if (json_is(given, JSON_OBJECT)) {
        json_key(self->writer, webhook);
        json_open_object(self->writer);
        json_put_members(self->writer, given, &task, 1);
        if (is_named(json_get(given, task))) {
            json_key(self->writer, task);
            is_fine = put_name(self, OWNED_TASK, self->is_namer, json_get(given, task));
        }
        json_close_object(self->writer);
    }
    json_close_object(self->writer);
    return is_fine;
}

static bool put_send(writing *self, json_val params)
{
    static const bay_str names[] = {STR_INIT("message"), STR_INIT("configuration")};
    json_put_members(self->writer, params, names, ARRAY_LEN(names));
    json_key(self->writer, names[0]);
    bool is_fine = put_message(self, json_get(params, names[0]));
    if (is_fine && json_is(json_get(params, names[1]), JSON_OBJECT)) {
        json_key(self->writer, names[1]);
        is_fine = put_configuration(self, json_get(params, names[1]));
    }
    return is_fine;
}

static bool is_send(a2a_method method)
{
    return method == A2A_SEND_MESSAGE || method == A2A_SEND_STREAMING_MESSAGE;
}

/* The member by which other requests name what they are about. */
static bay_str named_by(a2a_method method)
{
    return method == A2A_LIST_TASKS                             ? STR("contextId")
           : (a2a_methods[method].flags & A2A_METHOD_PUSH) != 0 ? STR("taskId")
                                                                : STR("id");
}

static bool put_params(writing *self, a2a_method method, json_val params)
{
    if (is_send(method)) {
        return put_send(self, params);
    }
    bay_str name = named_by(method);
    bool is_list = method == A2A_LIST_TASKS;
    json_put_members(self->writer, params, &name, 1);
    if (is_list && !is_named(json_get(params, name))) {
        return true;
    }
    json_key(self->writer, name);
    return put_name(self, is_list ? OWNED_CONTEXT : OWNED_TASK, is_list, json_get(params, name));
}

bay_err agents_proxy_owner_write(const agents_proxy_owner *self, a2a_method method, bool is_namer,
                                 json_val params, arena *memory, json_val *out, a2a_fault *fault)
{
    if (self->mark_len == 0 || method == A2A_GET_EXTENDED_CARD) {
        return BAY_OK;
    }
    json_builder made;
    json_writer *writer = json_builder_init(&made, memory, a2a_json_limits.max_bytes);
    writing to = {self, writer, memory, is_namer, BAY_OK};
    json_open_object(writer);
    bool is_fine = put_params(&to, method, params);
    bay_err err = to.err;
    if (err == BAY_OK && !is_fine) {
        err = a2a_fault_set(fault, A2A_E_TASK_NOT_FOUND, "there is no such task");
    }
    if (err != BAY_OK) {
        json_builder_drop(&made);
        return err;
    }
    json_close_object(writer);
    return json_builder_end(&made, out);
}

/* ---- answers --------------------------------------------------------------------------------- */

bool agents_proxy_owner_claims(const agents_proxy_owner *self, owned_kind kind, bay_str id)
{
    agents_caller caller = caller_of(self);
    return agents_owned_claim(self->of, kind, id, &caller) != BAY_ERR_DENIED;
}

size_t agents_proxy_owner_tasks(const agents_proxy_owner *self)
{
    agents_caller caller = caller_of(self);
    return agents_owned_count(self->of, &caller);
}

/* A task, or what is about one. */
static bool admits_one(const agents_proxy_owner *self, bool is_begun, json_val value, bay_str key,
                       arena *scratch)
{
    bay_str task, context;
    agents_caller caller = caller_of(self);
    if (text_of(json_get(value, key), scratch, &task) != BAY_OK ||
        text_of(json_get(value, STR("contextId")), scratch, &context) != BAY_OK) {
        return false;
    }
    if (task.len > 0) {
        bool is_its = is_begun ? agents_proxy_owner_claims(self, OWNED_TASK, task)
                               : agents_owned_is(self->of, OWNED_TASK, task, &caller);
        if (!is_its) {
            return false;
        }
    }
    if (context.len > 0) {
        /* one that is another's stays that: an agent may have one context for all */
        (void)agents_proxy_owner_claims(self, OWNED_CONTEXT, context);
    }
    return true;
}

static bool admits_configs(const agents_proxy_owner *self, json_val value, arena *scratch)
{
    json_val configs = json_get(value, STR("configs"));
    if (!json_is(configs, JSON_ARRAY)) {
        return admits_one(self, false, value, STR("taskId"), scratch);
    }
    for (json_iter at = json_iter_of(configs); json_next(&at);) {
        if (!admits_one(self, false, at.value, STR("taskId"), scratch)) {
            return false;
        }
    }
    return true;
}

bool agents_proxy_owner_admits(const agents_proxy_owner *self, a2a_method method, bool is_event,
                               json_val value, arena *scratch)
{
    static const struct {
        bay_str member;
        bay_str key;
    } rows[] = {{STR_INIT("task"), STR_INIT("id")},
                {STR_INIT("message"), STR_INIT("taskId")},
                {STR_INIT("statusUpdate"), STR_INIT("taskId")},
                {STR_INIT("artifactUpdate"), STR_INIT("taskId")}};
    if (!is_event && (a2a_methods[method].flags & A2A_METHOD_PUSH) != 0) {
        return admits_configs(self, value, scratch);
    }
    if (!is_event && !is_send(method)) {
        return admits_one(self, false, value, STR("id"), scratch);
    }
    bool is_fine = true;
    for (size_t i = 0; is_fine && i < ARRAY_LEN(rows); i++) {
        json_val of = json_get(value, rows[i].member);
        if (json_is(of, JSON_OBJECT)) {
            is_fine = admits_one(self, is_send(method), of, rows[i].key, scratch);
        }
    }
    return is_fine;
}
