/* A call to an agent over gRPC: one HTTP/2 call; messages are read as they arrive, the status at
 * the end.
 *
 * Invariants
 * - Input that arrives while the owner pauses is held, at most what http_client has read already;
 *   `resume` processes it in a later loop iteration, before anything newer.
 * - An owner may cancel inside any event: memory is freed when no event is on the stack (`depth`).
 */
#include "a2a_transport/grpc_link.h"

#include "a2a_transport/grpc_status.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "wire/http1.h"
#include "wire/uri.h"
#include "json/build.h"

enum {
    SENT_FIELDS = 72,      /* the owner's, and those set here */
    STATUS_TEXT = 8192,    /* of grpc-message and of the details, each */
    MEMORY_MAX = 256 << 20 /* to read one message */
};

struct a2a_grpc_sent {
    const a2a_link_events *events; /* NULL: over */
    void *user;
    loop *loop;
    http_call *http; /* NULL: it has ended */
    a2a_method method;
    a2a_form form;
    grpc_reader reader;
    buf held;            /* arrived while it was paused */
    size_t answer_bytes; /* of a message as JSON */
    arena memory;        /* of the message being read … */
    json_val result;     /* … or, in 1.0, of the only message of a call without a stream */
    buf message;
    buf details;
    loop_task drain;
    int http_status;
    int status; /* grpc-status; -1: not received */
    uint32_t depth;
    bool is_grpc; /* by its content-type */
    bool is_paused;
    bool is_ended; /* HTTP has ended, while it was paused or bytes were held */
    bool has_result;
};

/* --- the end ---------------------------------------------------------------------------------- */

static void sent_free(a2a_grpc_sent *self)
{
    loop_undefer(self->loop, &self->drain);
    grpc_reader_fini(&self->reader);
    buf_fini(&self->held);
    arena_fini(&self->memory);
    buf_fini(&self->message);
    buf_fini(&self->details);
    mem_free(self);
}

static void enter(a2a_grpc_sent *self)
{
    self->depth++;
}

static void leave(a2a_grpc_sent *self)
{
    if (--self->depth == 0 && self->events == NULL) {
        sent_free(self);
    }
}

/* No event follows. Inside enter and leave. */
static void grpc_link_finish(a2a_grpc_sent *self)
{
    self->events = NULL;
    if (self->http != NULL) {
        http_call_cancel(self->http);
        self->http = NULL;
    }
}

static void grpc_link_fail(a2a_grpc_sent *self, bay_err err, const a2a_fault *fault, bool was_sent)
{
    const a2a_link_events *events = self->events;
    void *user = self->user;
    if (events == NULL) {
        return;
    }
    grpc_link_finish(self);
    if (events->failed != NULL) {
        events->failed(user, err, fault, was_sent);
    }
}

static void fail_with(a2a_grpc_sent *self, bay_err err, a2a_error error, const char *text)
{
    a2a_fault fault;
    (void)a2a_fault_set(&fault, error, "%s", text);
    grpc_link_fail(self, err, &fault, true);
}

/* --- messages --------------------------------------------------------------------------------- */

static bool is_stream(const a2a_grpc_sent *self)
{
    return (a2a_methods[self->method].flags & A2A_METHOD_STREAM) != 0;
}

/* Reports the message, or keeps it until the status says that it is valid. */
static bay_err read_message(a2a_grpc_sent *self, bay_str bytes, a2a_fault *fault)
{
    json_val value;
    bool is_last = false;
    a2a_type type = a2a_grpc_response_type(self->form, self->method);
    arena_reset(&self->memory);
    bay_err err = a2a_protobuf_view(type, bytes, self->answer_bytes, &self->memory, &value, fault);
    if (err == BAY_OK && self->form != A2A_FORM_1_0) {
        err = is_stream(self)
                  ? a2a_event_view(self->form, value, &self->memory, &value, &is_last, fault)
                  : a2a_result_view(self->form, self->method, value, &self->memory, &value, fault);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (is_stream(self)) {
        self->events->event(self->user, value, 0, is_last);
    } else {
        self->result = value;
    }
    return BAY_OK;
}

/* One message of the answer; false: the call is over. */
static bool take_message(a2a_grpc_sent *self, bay_str bytes)
{
    a2a_fault fault = {A2A_E_INVALID_AGENT_RESPONSE, ""};
    if (self->has_result) {
        fail_with(self, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE,
                  "the agent answered with more than one message");
        return false;
    }
    bay_err err = read_message(self, bytes, &fault);
    if (err == BAY_ERR_PROTOCOL) {
        fault.error = A2A_E_INVALID_AGENT_RESPONSE;
        grpc_link_fail(self, err, &fault, true);
        return false;
    }
    if (err != BAY_OK) {
        fail_with(self, err, A2A_E_INVALID_AGENT_RESPONSE, bay_err_text(err));
        return false;
    }
    self->has_result = !is_stream(self);
    return self->events != NULL;
}

static void take_bytes(a2a_grpc_sent *self, bay_str bytes)
{
    while (self->events != NULL) {
        if (self->is_paused) {
            buf_str(&self->held, bytes);
            if (self->held.err != BAY_OK) {
                fail_with(self, BAY_ERR_NOMEM, A2A_E_BUSY, "no memory for what the agent says");
            }
            return;
        }
        size_t used = 0;
        bay_str message;
        bay_err err = grpc_reader_next(&self->reader, bytes, &used, &message);
        if (err == BAY_ERR_AGAIN) {
            return;
        }
        if (err != BAY_OK) {
            const char *text = err == BAY_ERR_LIMIT ? "a message of the agent is too large"
                               : err == BAY_ERR_UNSUPPORTED
                                   ? "the agent compresses its messages, which nobody asked for"
                                   : "what the agent answers is no gRPC";
            fail_with(self, err == BAY_ERR_UNSUPPORTED ? BAY_ERR_PROTOCOL : err,
                      A2A_E_INVALID_AGENT_RESPONSE, text);
            return;
        }
        bytes = str_from(bytes, used);
        if (!take_message(self, message)) {
            return;
        }
    }
}

/* --- the status ------------------------------------------------------------------------------- */

static void keep_text(buf *out, bay_str value)
{
    buf_clear(out);
    buf_str(out, str_head(value, out->max));
}

static void read_status(a2a_grpc_sent *self, const http_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t code = 0;
        if (str_eq_nocase(fields[i].name, STR("grpc-status"))) {
            bool is_code = str_uint(fields[i].value, &code) && code < GRPC_CODES;
            self->status = is_code ? (int)code : GRPC_UNKNOWN;
        } else if (str_eq_nocase(fields[i].name, STR("grpc-message"))) {
            keep_text(&self->message, fields[i].value);
        } else if (str_eq_nocase(fields[i].name, STR("grpc-status-details-bin"))) {
            keep_text(&self->details, fields[i].value);
        }
    }
}

/* Agents of 0.3 send no details: the method then decides which fault is possible. */
static void judge_status(a2a_grpc_sent *self)
{
    a2a_fault fault;
    a2a_grpc_fault_read(self->status, buf_view(&self->message), buf_view(&self->details), &fault);
    if (self->method == A2A_CANCEL_TASK && self->status == GRPC_FAILED_PRECONDITION &&
        self->details.len == 0) {
        fault.error = A2A_E_TASK_NOT_CANCELABLE;
    }
    grpc_link_fail(self, BAY_ERR_REMOTE, &fault, true);
}

static void judge_bare(a2a_grpc_sent *self)
{
    a2a_fault fault;
    if (self->http_status != 200) {
        int code = grpc_code_of_http(self->http_status);
        a2a_grpc_fault_read(code, STR(""), STR(""), &fault);
        (void)a2a_fault_set(&fault, fault.error, "the agent answers with HTTP status %d",
                            self->http_status);
        grpc_link_fail(self, BAY_ERR_REMOTE, &fault, true);
        return;
    }
    fail_with(self, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE,
              self->is_grpc ? "the agent's answer ends without a grpc-status"
                            : "what the agent answers is no gRPC");
}

/* The whole answer was read. */
static void conclude(a2a_grpc_sent *self)
{
    const a2a_link_events *events = self->events;
    void *user = self->user;
    if (self->status < 0) {
        judge_bare(self);
    } else if (self->status != GRPC_OK) {
        judge_status(self);
    } else if (!grpc_reader_is_between(&self->reader) || (!is_stream(self) && !self->has_result)) {
        fail_with(self, BAY_ERR_PROTOCOL, A2A_E_INVALID_AGENT_RESPONSE,
                  "the agent's answer is not whole");
    } else {
        grpc_link_finish(self);
        if (is_stream(self)) {
            events->end(user);
        } else {
            events->result(user, self->result);
        }
    }
}

/* --- from HTTP -------------------------------------------------------------------------------- */

static void on_head(void *user, int status, const http_field *fields, size_t count)
{
    a2a_grpc_sent *self = user;
    static const bay_str media = STR_INIT("application/grpc");
    bay_str type = http1_field_find(fields, count, STR("content-type"));
    self->http_status = status;
    self->is_grpc = status == 200 && str_eq_nocase(str_head(type, media.len), media);
    if (self->is_grpc) {
        read_status(self, fields, count);
    }
}

static void on_body(void *user, bay_str bytes)
{
    a2a_grpc_sent *self = user;
    if (!self->is_grpc) {
        return; /* an error page for people */
    }
    enter(self);
    take_bytes(self, bytes);
    leave(self);
}

static void on_trailers(void *user, const http_field *fields, size_t count)
{
    a2a_grpc_sent *self = user;
    if (self->is_grpc) {
        read_status(self, fields, count);
    }
}

static void grpc_link_on_end(void *user)
{
    a2a_grpc_sent *self = user;
    self->http = NULL;
    enter(self);
    if (self->is_paused || self->held.len > 0) {
        self->is_ended = true;
    } else {
        conclude(self);
    }
    leave(self);
}

static a2a_error error_of(bay_err err)
{
    switch (err) {
    case BAY_ERR_TIMEOUT:
        return A2A_E_DEADLINE;
    case BAY_ERR_LIMIT:
    case BAY_ERR_PROTOCOL:
        return A2A_E_INVALID_AGENT_RESPONSE;
    case BAY_ERR_NOMEM:
    case BAY_ERR_BUSY:
        return A2A_E_BUSY;
    case BAY_ERR_DENIED: /* by the authority of the request */
        return A2A_E_UNAUTHENTICATED;
    default:
        return A2A_E_UNAVAILABLE;
    }
}

static void on_failed(void *user, bay_err err, bool was_sent, const char *text)
{
    a2a_grpc_sent *self = user;
    a2a_fault fault;
    self->http = NULL;
    (void)a2a_fault_set(&fault, error_of(err), "%s", text);
    enter(self);
    grpc_link_fail(self, err, &fault, was_sent);
    leave(self);
}

static const http_call_events http_events = {.head = on_head,
                                             .body = on_body,
                                             .end = grpc_link_on_end,
                                             .failed = on_failed,
                                             .trailers = on_trailers};

/* Processes the held bytes, then the end, then continues. */
static void on_drain(void *argument)
{
    a2a_grpc_sent *self = argument;
    if (self->is_paused || self->events == NULL) {
        return;
    }
    enter(self);
    buf held = self->held;
    buf_init(&self->held, self->held.max);
    take_bytes(self, buf_view(&held));
    buf_fini(&held);
    if (self->events != NULL && !self->is_paused) {
        if (self->is_ended) {
            conclude(self);
        } else if (self->http != NULL) {
            http_call_resume(self->http);
        }
    }
    leave(self);
}

/* --- what is sent ----------------------------------------------------------------------------- */

/* The origin: "http://HOST:PORT" or "https://…" of the interface's url. */
static bay_err write_origin(bay_str text, buf *out, a2a_fault *fault)
{
    uri url;
    bool has_scheme = memmem(text.at, text.len, "://", 3) != NULL;
    if (has_scheme) {
        buf_str(out, text);
    } else {
        buf whole;
        buf_init(&whole, 4096);
        buf_lit(&whole, "https://");
        buf_str(&whole, text);
        bool is_443 = whole.err == BAY_OK && uri_parse(&url, buf_view(&whole)) == BAY_OK &&
                      uri_port(&url) == 443;
        buf_lit(out, "http");
        if (is_443) {
            buf_char(out, 's');
        }
        buf_lit(out, "://");
        buf_str(out, text);
        buf_fini(&whole);
    }
    bool is_fine = out->err == BAY_OK && uri_parse(&url, buf_view(out)) == BAY_OK &&
                   url.has_authority && url.host.len > 0 && !url.has_userinfo && !url.has_query &&
                   (url.path.len == 0 || str_eq(url.path, STR("/")));
    if (!is_fine) {
        (void)a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                            "the address of a gRPC interface is HOST:PORT");
        return out->err != BAY_OK ? out->err : BAY_ERR_INVALID;
    }
    if (url.path.len == 1) {
        out->len--;
    }
    return BAY_OK;
}

/* Replaces the params' tenant by the interface's. */
static bay_err put_tenant(json_val params, bay_str tenant, arena *memory, json_val *out)
{
    static const bay_str key = STR_INIT("tenant");
    if (tenant.len == 0 && json_is(json_get(params, key), JSON_MISSING)) {
        *out = params;
        return BAY_OK;
    }
    json_builder made;
    json_writer *to = json_builder_init(&made, memory, A2A_GRPC_PARAMS_BYTES);
    json_open_object(to);
    if (tenant.len > 0) {
        json_key(to, key);
        json_put_str(to, tenant);
    }
    json_put_members(to, params, &key, 1);
    json_close_object(to);
    return json_builder_end(&made, out);
}

static bay_err write_message(const a2a_interface *to, a2a_form form,
                             const a2a_link_request *request, buf *out, a2a_fault *fault)
{
    arena memory;
    json_val params;
    arena_init(&memory, MEMORY_MAX);
    bay_err err = form != A2A_FORM_1_0 ? a2a_params_in_form(form, request->method, request->params,
                                                            &memory, &params, fault)
                                       : put_tenant(request->params, to->tenant, &memory, &params);
    buf_append(out, "\0\0\0\0", GRPC_FRAME_HEAD);
    if (err == BAY_OK) {
        err = a2a_to_protobuf(a2a_grpc_request_type(form, request->method), params, out, fault);
    }
    if (err == BAY_OK && out->err == BAY_OK &&
        !grpc_frame_head(out->at, out->len - GRPC_FRAME_HEAD)) {
        err = BAY_ERR_LIMIT;
    }
    arena_fini(&memory);
    return err != BAY_OK ? err : out->err;
}

/* Whether the field is set here or by HTTP. */
static bool is_ours(bay_str name)
{
    return str_eq_nocase(name, STR("content-type")) || str_eq_nocase(name, STR("te")) ||
           str_eq_nocase(name, STR("accept")) || str_eq_nocase(name, STR("a2a-version")) ||
           str_eq_nocase(str_head(name, 5), STR("grpc-"));
}

static bay_err write_fields(const a2a_interface *to, const a2a_link_request *request,
                            bay_str timeout, http_field *out, size_t *out_count)
{
    size_t count = 0;
    out[count++] = (http_field){STR("content-type"), STR("application/grpc")};
    out[count++] = (http_field){STR("te"), STR("trailers")};
    out[count++] = (http_field){STR("a2a-version"), a2a_version_names[to->version]};
    if (timeout.len > 0) {
        out[count++] = (http_field){STR("grpc-timeout"), timeout};
    }
    if (to->version != A2A_1_0 && to->tenant.len > 0) {
        out[count++] = (http_field){STR("a2a-tenant"), to->tenant};
    }
    for (size_t i = 0; i < request->field_count; i++) {
        if (is_ours(request->fields[i].name)) {
            continue;
        }
        if (count == SENT_FIELDS) {
            return BAY_ERR_LIMIT;
        }
        out[count++] = request->fields[i];
    }
    *out_count = count;
    return BAY_OK;
}

static a2a_grpc_sent *sent_new(http_client *http, a2a_form form, const a2a_link_limits *limits,
                               const a2a_link_request *request, const a2a_link_events *events,
                               void *user)
{
    a2a_grpc_sent *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return NULL;
    }
    self->events = events;
    self->user = user;
    self->loop = http_client_loop(http);
    self->method = request->method;
    self->form = form;
    self->status = -1;
    self->drain = (loop_task){.function = on_drain, .argument = self};
    grpc_reader_init(&self->reader, limits->answer_bytes);
    buf_init(&self->held, SIZE_MAX / 2); /* what http_client had read before it was paused */
    self->answer_bytes =
        limits->answer_bytes <= SIZE_MAX / 8 ? limits->answer_bytes * 4 : SIZE_MAX / 2;
    arena_init(&self->memory, MEMORY_MAX);
    buf_init(&self->message, STATUS_TEXT);
    buf_init(&self->details, STATUS_TEXT);
    return self;
}

/* Sends what was written. */
static bay_err grpc_link_send(a2a_grpc_sent *self, http_client *http, const a2a_interface *to,
                              const a2a_link_limits *limits, const a2a_link_request *request,
                              bay_str url, bay_str body, a2a_fault *fault)
{
    bool is_stream = (a2a_methods[request->method].flags & A2A_METHOD_STREAM) != 0;
    http_field fields[SENT_FIELDS];
    size_t count = 0;
    char digits[24];
    buf timeout = {.at = digits, .cap = sizeof(digits), .max = sizeof(digits)};
    if (!is_stream && limits->timeout_ms > 0) {
        grpc_timeout_write(&timeout, limits->timeout_ms);
    }
    bay_err err = write_fields(to, request, buf_view(&timeout), fields, &count);
    if (err != BAY_OK) {
        return err;
    }
    http_call_spec spec = {.method = STR("POST"),
                           .url = url,
                           .fields = fields,
                           .field_count = count,
                           .body = body,
                           .may_run_twice =
                               (a2a_methods[request->method].flags & A2A_METHOD_SAFE) != 0,
                           .is_http2 = true,
                           .timeout_ms = limits->timeout_ms,
                           .idle_ms = is_stream ? limits->idle_ms : limits->timeout_ms,
                           .authority = request->authority};
    bay_diag diag = {.code = BAY_OK};
    err = http_client_call(http, &spec, &http_events, self, &self->http, &diag);
    if (err == BAY_ERR_UNSUPPORTED) {
        (void)a2a_fault_set(fault, A2A_E_UNSUPPORTED_OPERATION,
                            "this libpatchbay was built without HTTP/2: gRPC cannot be spoken");
    } else if (err != BAY_OK) {
        (void)a2a_fault_set(fault, error_of(err), "%s",
                            diag.code != BAY_OK ? diag.text : bay_err_text(err));
    }
    return err;
}

bay_err a2a_grpc_send(http_client *http, const a2a_interface *to, const a2a_link_limits *limits,
                      const a2a_link_request *request, const a2a_link_events *events, void *user,
                      a2a_grpc_sent **out, a2a_fault *fault)
{
    a2a_form form = to->version == A2A_1_0 ? A2A_FORM_1_0 : A2A_FORM_0_3_PROTO;
    bay_str name = a2a_grpc_method_name(form, request->method);
    if (to->version == A2A_0_1 || name.len == 0) {
        (void)a2a_fault_set(fault, A2A_E_UNSUPPORTED_OPERATION, "A2A %.*s has no %.*s over gRPC",
                            BAY_STR(a2a_version_names[to->version]),
                            BAY_STR(a2a_methods[request->method].name));
        return BAY_ERR_UNSUPPORTED;
    }
    buf url;
    buf body;
    buf_init(&url, 4096);
    buf_init(&body, A2A_GRPC_PARAMS_BYTES);
    a2a_grpc_sent *self = sent_new(http, form, limits, request, events, user);
    bay_err err = self != NULL ? write_origin(to->url, &url, fault) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        buf_str(&url, form == A2A_FORM_1_0 ? STR(A2A_GRPC_1_0) : STR(A2A_GRPC_0_3));
        buf_str(&url, name);
        err = url.err != BAY_OK ? url.err : write_message(to, form, request, &body, fault);
    }
    if (err == BAY_OK) {
        err =
            grpc_link_send(self, http, to, limits, request, buf_view(&url), buf_view(&body), fault);
    }
    buf_fini(&url);
    buf_fini(&body);
    if (err != BAY_OK) {
        if (self != NULL) {
            sent_free(self);
        }
        return err == BAY_ERR_PROTOCOL ? BAY_ERR_INVALID : err;
    }
    *out = self;
    return BAY_OK;
}

/* --- the owner's side ------------------------------------------------------------------------- */

void a2a_grpc_cancel(a2a_grpc_sent *self)
{
    enter(self);
    grpc_link_finish(self);
    leave(self);
}

void a2a_grpc_pause(a2a_grpc_sent *self)
{
    self->is_paused = true;
    if (self->http != NULL) {
        http_call_pause(self->http);
    }
}

void a2a_grpc_resume(a2a_grpc_sent *self)
{
    if (self->is_paused) {
        self->is_paused = false;
        loop_defer(self->loop, &self->drain);
    }
}
