/* A link to one interface of an agent: starting, pausing and ending calls. */
#include "a2a_transport/link_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/header.h"

const a2a_link_limits a2a_link_default_limits = {
    .answer_bytes = 32 << 20,
    .timeout_ms = 600000,
    .idle_ms = 90000,
    .resumes = 8,
    .first_delay_ms = 500,
};

/* ---- the link -------------------------------------------------------------------------------- */

static void fill_limits(a2a_link_limits *out, const a2a_link_limits *given)
{
    const a2a_link_limits *defaults = &a2a_link_default_limits;
    *out = given != NULL ? *given : *defaults;
    out->answer_bytes = out->answer_bytes != 0 ? out->answer_bytes : defaults->answer_bytes;
    out->timeout_ms = out->timeout_ms != 0 ? out->timeout_ms : defaults->timeout_ms;
    out->idle_ms = out->idle_ms != 0 ? out->idle_ms : defaults->idle_ms;
    out->resumes = out->resumes != 0 ? out->resumes : defaults->resumes;
    out->first_delay_ms = out->first_delay_ms != 0 ? out->first_delay_ms : defaults->first_delay_ms;
}

bay_err a2a_link_new(struct loop *on, http_client *http, const a2a_interface *at,
                     const a2a_link_limits *limits, a2a_link **out)
{
    a2a_link *self = mem_zalloc(sizeof(*self));
    char *text = mem_alloc(at->url.len + at->tenant.len + 1);
    if (self == NULL || text == NULL) {
        mem_free(self);
        mem_free(text);
        return BAY_ERR_NOMEM;
    }
    self->text = text;
    memcpy(text, at->url.at != NULL ? at->url.at : "", at->url.len);
    memcpy(text + at->url.len, at->tenant.at != NULL ? at->tenant.at : "", at->tenant.len);
    self->at = *at;
    self->at.url = (bay_str){text, at->url.len};
    self->at.tenant = (bay_str){text + at->url.len, at->tenant.len};
    self->loop = on;
    self->http = http;
    fill_limits(&self->limits, limits);
    arena_init(&self->memory, A2A_LINK_MEMORY);
    list_init(&self->calls);
    list_init(&self->dropped);
    *out = self;
    return BAY_OK;
}

static void link_bury(a2a_link *self)
{
    arena_fini(&self->memory);
    mem_free(self->text);
    mem_free(self);
}

static void call_release(a2a_link_call *self)
{
    if (self->secrets != NULL) {
        mem_wipe(self->secrets, self->secret_bytes);
    }
    mem_free(self->secrets);
    mem_free(self->fields);
    a2a_stream_state_fini(&self->seen);
    sse_decoder_fini(&self->decoder);
    mem_free(self->params);
    a2a_link_retry_forget(self);
    http_authority_release(self->authority);
    buf *texts[] = {&self->body, &self->last_id, &self->waiting};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_fini(texts[i]);
    }
    mem_free(self);
}

void a2a_link_enter(a2a_link *self)
{
    self->depth++;
}

void a2a_link_leave(a2a_link *self)
{
    if (--self->depth > 0) {
        return;
    }
    list_link *link;
    while ((link = list_pop(&self->dropped)) != NULL) {
        call_release(CONTAINER_OF(link, a2a_link_call, link));
    }
    arena_reset(&self->memory);
    if (self->is_freed) {
        link_bury(self);
    }
}

void a2a_link_drop(a2a_link_call *self)
{
    a2a_link *owner = self->owner;
    if (self->phase == A2A_LINK_OVER) {
        return;
    }
    self->phase = A2A_LINK_OVER;
    a2a_attempt_stop(self);
    loop_timer_stop(owner->loop, &self->timer);
    loop_undefer(owner->loop, &self->drain);
    list_remove(&self->link);
    list_push(&owner->dropped, &self->link);
    owner->count--;
}

void a2a_link_free(a2a_link *self)
{
    if (self == NULL || self->is_freed) {
        return;
    }
    static const a2a_fault gone = {A2A_E_UNAVAILABLE, "the link to the agent was closed"};
    a2a_link_enter(self);
    self->is_freed = true;
    list_link *link;
    while ((link = list_first(&self->calls)) != NULL) {
        a2a_link_call *call = CONTAINER_OF(link, a2a_link_call, link);
        a2a_link_drop(call);
        call->events->failed(call->user, BAY_ERR_CANCELLED, &gone, true);
    }
    a2a_link_leave(self);
}

const a2a_interface *a2a_link_interface(const a2a_link *self)
{
    return &self->at;
}

/* ---- starting a call ------------------------------------------------------------------------- */

static bay_err check_fields(const a2a_link_request *request, size_t *out_bytes, a2a_fault *fault)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->field_count; i++) {
        bay_str name = request->fields[i].name;
        bay_str value = request->fields[i].value;
        bool is_one_line = value.len == 0 || (memchr(value.at, '\r', value.len) == NULL &&
                                              memchr(value.at, '\n', value.len) == NULL &&
                                              memchr(value.at, '\0', value.len) == NULL);
        if (!header_name_is_valid(name) || !is_one_line) {
            (void)a2a_fault_set(fault, A2A_E_INVALID_REQUEST,
                                "the header field \"%.*s\" is not valid",
                                BAY_STR(str_head(name, 60)));
            return BAY_ERR_INVALID;
        }
        bytes += name.len + value.len;
        if (i >= A2A_LINK_FIELDS || bytes > A2A_LINK_FIELD_BYTES) {
            (void)a2a_fault_set(fault, A2A_E_INVALID_REQUEST,
                                "too many header fields, or too long");
            return BAY_ERR_LIMIT;
        }
    }
    *out_bytes = bytes;
    return BAY_OK;
}

/* a2a 0.3.0: the header of extensions had the prefix X- */
static bay_str field_name(const a2a_link *owner, bay_str name)
{
    bool is_older = owner->at.version != A2A_1_0 && str_eq_nocase(name, STR("A2A-Extensions"));
    return is_older ? STR("X-A2A-Extensions") : name;
}

static bay_err copy_fields(a2a_link_call *self, const a2a_link_request *request, size_t bytes)
{
    size_t count = request->field_count;
    size_t room = bytes + 2 * count + 1; /* a name may get an "X-" */
    self->secrets = mem_alloc(room);
    self->fields = mem_array(count + 1, sizeof(*self->fields));
    if (self->secrets == NULL || self->fields == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->secret_bytes = room;
    mem_wipe(self->secrets, room);
    char *at = self->secrets;
    for (size_t i = 0; i < count; i++) {
        bay_str name = field_name(self->owner, request->fields[i].name);
        bay_str value = request->fields[i].value;
        memcpy(at, name.at, name.len);
        if (value.len > 0) {
            memcpy(at + name.len, value.at, value.len);
        }
        self->fields[i] = (http_field){{at, name.len}, {at + name.len, value.len}};
        at += name.len + value.len;
    }
    self->field_count = count;
    return BAY_OK;
}

static void on_drain(void *argument)
{
    a2a_link_call *self = argument;
    a2a_link *owner = self->owner;
    a2a_link_enter(owner);
    a2a_attempt_drain(self);
    a2a_link_leave(owner);
}

static bay_err call_new(a2a_link *owner, const a2a_link_request *request,
                        const a2a_link_events *events, void *user, a2a_link_call **out)
{
    a2a_link_call *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->owner = owner;
    self->events = events;
    self->user = user;
    self->authority = http_authority_hold(request->authority);
    self->method = request->method;
    self->asking = request->method;
    self->delay_ms = owner->limits.first_delay_ms;
    self->last_number = request->last_event_id;
    buf_init(&self->body, A2A_LINK_HELD_BYTES);
    buf_init(&self->waiting, A2A_LINK_HELD_BYTES);
    buf_init(&self->last_id, A2A_LINK_EVENT_ID_BYTES);
    a2a_stream_state_init(&self->seen);
    sse_decoder_init(&self->decoder, owner->limits.answer_bytes);
    loop_timer_init(&self->timer, a2a_link_retry_on_timer, self);
    self->drain = (loop_task){.function = on_drain, .argument = self};
    bay_err err = json_raw(request->params).len <= A2A_LINK_PARAMS_BYTES
                      ? json_clone(request->params, &self->params)
                      : BAY_ERR_LIMIT;
    if (request->last_event_id != 0) {
        buf_uint(&self->last_id, request->last_event_id);
    }
    if (err != BAY_OK || self->last_id.err != BAY_OK) {
        call_release(self);
        return err == BAY_OK ? BAY_ERR_NOMEM : err == BAY_ERR_TYPE ? BAY_ERR_INVALID : err;
    }
    *out = self;
    return BAY_OK;
}

/* The kind of stream, and the first request to an agent without streams. */
static bay_err prepare_stream(a2a_link_call *call, const a2a_link_request *request)
{
    bay_err err = BAY_OK;
    call->has_no_stream = request->has_no_stream;
    if (call->method == A2A_SEND_STREAMING_MESSAGE && call->has_no_stream) {
        call->asking = A2A_SEND_MESSAGE;
    }
    if (call->method == A2A_SUBSCRIBE_TO_TASK) {
        call->asking = call->has_no_stream ? A2A_GET_TASK : call->asking;
        err = a2a_stream_state_note_id(&call->seen, json_get(request->params, STR("id")));
    }
    return err == BAY_OK || err == BAY_ERR_NOMEM ? err : BAY_ERR_INVALID;
}

bay_err a2a_link_start(a2a_link *self, const a2a_link_request *request,
                       const a2a_link_events *events, void *user, a2a_link_call **out,
                       a2a_fault *fault)
{
    size_t bytes = 0;
    a2a_link_call *call = NULL;
    if (self->is_freed || self->count >= A2A_LINK_CALLS) {
        (void)a2a_fault_set(fault, A2A_E_BUSY, "too many calls at once");
        return self->is_freed ? BAY_ERR_CLOSED : BAY_ERR_BUSY;
    }
    bay_err err = check_fields(request, &bytes, fault);
    if (err == BAY_OK) {
        err = call_new(self, request, events, user, &call);
    }
    if (err != BAY_OK) {
        return err;
    }
    a2a_link_enter(self);
    list_push(&self->calls, &call->link);
    self->count++;
    err = copy_fields(call, request, bytes);
    err = err == BAY_OK ? prepare_stream(call, request) : err;
    if (err == BAY_OK) {
        err = a2a_attempt_start(call, fault);
    }
    if (err == BAY_OK) {
        err = a2a_attempt_limit(call, self->limits.timeout_ms);
    }
    if (err != BAY_OK) {
        a2a_link_drop(call);
    } else {
        *out = call;
    }
    a2a_link_leave(self);
    return err;
}

bay_str a2a_agent_url(bay_str card_url)
{
    static const bay_str cards[] = {STR_INIT("/.well-known/agent-card.json"),
                                    STR_INIT("/.well-known/agent.json")};
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        if (str_ends(card_url, cards[i])) {
            return str_head(card_url, card_url.len - cards[i].len);
        }
    }
    return card_url;
}

/* ---- a call, for its owner ------------------------------------------------------------------- */

void a2a_link_cancel(a2a_link_call *call)
{
    a2a_link *owner = call->owner;
    a2a_link_enter(owner);
    a2a_link_drop(call);
    a2a_link_leave(owner);
}

void a2a_link_pause(a2a_link_call *call)
{
    if (call->is_paused || call->phase == A2A_LINK_OVER) {
        return;
    }
    call->is_paused = true;
    if (call->http != NULL) {
        http_call_pause(call->http);
    } else if (call->grpc != NULL) {
        a2a_grpc_pause(call->grpc);
    }
}

void a2a_link_resume(a2a_link_call *call)
{
    if (!call->is_paused || call->phase == A2A_LINK_OVER) {
        return;
    }
    call->is_paused = false;
    if (call->waiting.len > 0 || call->is_over || (call->is_events && call->body.len > 0)) {
        loop_defer(call->owner->loop, &call->drain);
    }
    if (call->http != NULL) {
        http_call_resume(call->http);
    } else if (call->grpc != NULL) {
        a2a_grpc_resume(call->grpc);
    }
}
