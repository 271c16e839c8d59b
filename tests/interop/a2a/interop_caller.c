/* Our caller against an agent on another SDK that plays the script (tests/interop/a2a/run).
 *
 *     interop_caller URL BINDING VERSION CASE…
 *
 * A line for each case: "ok NAME" or "not ok NAME: why". */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <patchbay/caller.h>

enum { WHY_BYTES = 512, ID_BYTES = 200, HOOK_BYTES = 1 << 16, WAIT_MS = 15000, LOOKS = 500 };

static const char result_text[] = "the result, naïve ☃";

typedef struct peer {
    bay_caller *caller;
    const char *version;
    const char *binding;
    char why[WHY_BYTES]; /* of the case that runs */
    unsigned gates;
    /* Of the stream that is followed. */
    char id[ID_BYTES];
    char chunks[ID_BYTES];
    char gate[ID_BYTES]; /* to be opened at its first event */
    size_t events, messages, lasts;
    bool is_first_task;
    bay_task_state state;
} peer;

/* ---- saying why ------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static bool failed(peer *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->why, sizeof(self->why), format, arguments);
    va_end(arguments);
    return false;
}

static bool equals(bay_str text, const char *wanted)
{
    return text.len == strlen(wanted) && memcmp(text.at, wanted, text.len) == 0;
}

static bool holds(bay_str text, const char *wanted)
{
    return memmem(text.at, text.len, wanted, strlen(wanted)) != NULL;
}

static void keep(char out[static ID_BYTES], bay_str text)
{
    snprintf(out, ID_BYTES, "%.*s", (int)text.len, text.at);
}

static bool show(peer *self, const char *what, const bay_caller_reply *response)
{
    bay_str json = bay_caller_reply_json(response);
    return failed(self, "%s: %.*s", what, json.len < 300 ? (int)json.len : 300, json.at);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* False: it failed, and why is said. */
static bool run(peer *self, bay_caller_request *operation, bay_caller_reply **out)
{
    bay_diag diag = {0};
    bay_err err = bay_caller_request_run(operation, out, &diag);
    return err == BAY_OK || failed(self, "%s: %s", bay_err_text(err), diag.text);
}

static bool say(peer *self, const char *text, bay_caller_reply **out)
{
    return run(self, bay_caller_request_send_text(self->caller, text), out);
}

/* It is refused by this error of the protocol's. */
static bool refused(peer *self, bay_caller_request *operation, const char *error)
{
    bay_diag diag = {0};
    bay_caller_reply *response = NULL;
    bay_err err = bay_caller_request_run(operation, &response, &diag);
    if (err == BAY_OK) {
        show(self, "it was answered", response);
        bay_caller_reply_free(response);
        return false;
    }
    bay_str found = bay_caller_remote_error(self->caller);
    return (err == BAY_ERR_REMOTE && equals(found, error)) ||
           failed(self, "refused by %s (%.*s): %s", bay_err_text(err), (int)found.len, found.at,
                  diag.text);
}

static bool is_complete(peer *self, const bay_caller_reply *task)
{
    return (bay_caller_reply_kind_of(task) == BAY_CALLER_REPLY_KIND_TASK &&
            bay_caller_reply_state(task) == BAY_TASK_STATE_COMPLETED &&
            equals(bay_caller_reply_text(task), "done") &&
            bay_caller_reply_artifact_count(task) == 1 &&
            equals(bay_caller_reply_artifact_name(task, 0), "result") &&
            equals(bay_message_text(bay_caller_reply_artifact(task, 0)), result_text)) ||
           show(self, "not what was to be made", task);
}

static const char *next_gate(peer *self)
{
    snprintf(self->gate, sizeof(self->gate), "caller-%d-%u", (int)getpid(), self->gates++);
    return self->gate;
}

/* Begins a task that is held, and returns as it begins. */
static bool hold(peer *self, bay_caller_reply **out)
{
    char text[ID_BYTES + 8];
    snprintf(text, sizeof(text), "hold %s", next_gate(self));
    bay_caller_request *operation = bay_caller_request_send_text(self->caller, text);
    bay_caller_request_return_immediately(operation);
    if (!run(self, operation, out)) {
        return false;
    }
    keep(self->id, bay_caller_reply_task(*out));
    bay_task_state state = bay_caller_reply_state(*out);
    return state == BAY_TASK_STATE_SUBMITTED || state == BAY_TASK_STATE_WORKING ||
           show(self, "not held", *out);
}

static bool release(peer *self)
{
    char text[ID_BYTES + 8];
    snprintf(text, sizeof(text), "release %s", self->gate);
    bay_caller_reply *response = NULL;
    bool is_good = say(self, text, &response);
    bay_caller_reply_free(response);
    return is_good;
}

/* The task, once it has ended. */
static bool ended(peer *self, const char *id, bay_caller_reply **out)
{
    for (int i = 0; i < LOOKS; i++) {
        if (!run(self, bay_caller_request_task(self->caller, id), out)) {
            return false;
        }
        if (bay_task_state_is_final(bay_caller_reply_state(*out))) {
            return true;
        }
        bay_caller_reply_free(*out);
        *out = NULL;
        if (bay_caller_wait(self->caller, 20) != BAY_OK) {
            return failed(self, "waiting failed");
        }
    }
    return failed(self, "the task does not end");
}

static void on_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    peer *self = user;
    (void)request;
    bay_caller_reply_kind kind = bay_caller_reply_kind_of(event);
    if (self->events++ == 0) {
        self->is_first_task = kind == BAY_CALLER_REPLY_KIND_TASK;
        if (self->gate[0] != '\0') {
            char text[ID_BYTES + 8];
            snprintf(text, sizeof(text), "release %s", self->gate);
            bay_diag diag;
            if (bay_caller_request_start(bay_caller_request_send_text(self->caller, text), &diag,
                                         NULL, NULL) != BAY_OK) {
                failed(self, "%s", diag.text);
            }
        }
    }
    if (kind == BAY_CALLER_REPLY_KIND_TASK || kind == BAY_CALLER_REPLY_KIND_STATUS) {
        self->state = bay_caller_reply_state(event);
        keep(self->id, bay_caller_reply_task(event));
    } else if (kind == BAY_CALLER_REPLY_KIND_MESSAGE) {
        self->messages++;
    } else if (kind == BAY_CALLER_REPLY_KIND_ARTIFACT) {
        bay_str text = bay_message_text(bay_caller_reply_artifact(event, 0));
        size_t used = strlen(self->chunks);
        snprintf(self->chunks + used, sizeof(self->chunks) - used, "%s%.*s", used > 0 ? "|" : "",
                 (int)text.len, text.at);
        self->lasts += bay_caller_reply_is_last_chunk(event) ? 1 : 0;
    }
}

static bool follow(peer *self, bay_caller_request *operation, bay_caller_reply **out)
{
    self->events = self->messages = self->lasts = 0;
    self->chunks[0] = '\0';
    bay_caller_request_on_event(operation, on_event, self);
    return run(self, operation, out);
}

/* ---- a webhook ------------------------------------------------------------------------------- */

typedef struct webhook {
    int listener;
    char url[64];
    pthread_t thread;
    char got[HOOK_BYTES]; /* every request, one after the other */
    size_t len;
    int count;
    bool is_complete;
} webhook;

/* One request; true: it tells of the end. */
static bool webhook_take(webhook *self, int fd)
{
    char *from = self->got + self->len;
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (poll(&poll_fd, 1, WAIT_MS) <= 0) {
            break;
        }
        ssize_t got = recv(fd, self->got + self->len, sizeof(self->got) - 1 - self->len, 0);
        if (got <= 0) {
            break;
        }
        self->len += (size_t)got;
        self->got[self->len] = '\0';
        const char *head_end = strstr(from, "\r\n\r\n");
        const char *length = strcasestr(from, "\r\ncontent-length:");
        bool is_chunked = strcasestr(from, "\r\ntransfer-encoding:") != NULL;
        if (head_end == NULL) {
            continue;
        }
        const char *body = head_end + 4;
        if (is_chunked ? strstr(body, "\r\n0\r\n\r\n") != NULL
                       : strlen(body) >= (length != NULL ? strtoul(length + 17, NULL, 10) : 0)) {
            break;
        }
    }
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    if (write(fd, answer, sizeof(answer) - 1) < 0) {
        return false;
    }
    self->count++;
    return strstr(from, "TASK_STATE_COMPLETED") != NULL ||
           strstr(from, "\"state\":\"completed\"") != NULL;
}

static void *webhook_serve(void *user)
{
    webhook *self = user;
    while (!self->is_complete) {
        struct pollfd poll_fd = {.fd = self->listener, .events = POLLIN};
        if (poll(&poll_fd, 1, WAIT_MS) <= 0) {
            break;
        }
        int fd = accept(self->listener, NULL, NULL);
        self->is_complete = webhook_take(self, fd);
        close(fd);
    }
    return NULL;
}

static bool webhook_open(webhook *self)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    memset(self, 0, sizeof(*self));
    self->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (self->listener < 0 || bind(self->listener, (struct sockaddr *)&address, len) != 0 ||
        listen(self->listener, 16) != 0 ||
        getsockname(self->listener, (struct sockaddr *)&address, &len) != 0) {
        return false;
    }
    snprintf(self->url, sizeof(self->url), "http://127.0.0.1:%u/hook", ntohs(address.sin_port));
    return pthread_create(&self->thread, NULL, webhook_serve, self) == 0;
}

/* Waits for what was to come. */
static void webhook_close(webhook *self)
{
    pthread_join(self->thread, NULL);
    close(self->listener);
}

static bool webhook_check(peer *self, const webhook *hook, const char *field)
{
    if (!hook->is_complete) {
        return failed(self, "the webhook got %d requests, none of the end: %.200s", hook->count,
                      hook->got);
    }
    return field == NULL || strcasestr(hook->got, field) != NULL ||
           failed(self, "the webhook did not get %s: %.300s", field, hook->got);
}

/* ---- the cases ------------------------------------------------------------------------------- */

static bool case_card(peer *self, bay_caller_reply **out)
{
    (void)out;
    return (equals(bay_caller_name(self->caller), "interop") &&
            equals(bay_caller_skill(self->caller, 0), "script") &&
            bay_caller_has(self->caller, "streaming") &&
            equals(bay_caller_binding(self->caller), self->binding) &&
            equals(bay_caller_version(self->caller), self->version)) ||
           failed(self, "%.*s %.*s", (int)bay_caller_binding(self->caller).len,
                  bay_caller_binding(self->caller).at, (int)bay_caller_version(self->caller).len,
                  bay_caller_version(self->caller).at);
}

static bool case_send(peer *self, bay_caller_reply **out)
{
    return say(self, "complete", out) && is_complete(self, *out);
}

static bool case_no_wait(peer *self, bay_caller_reply **out)
{
    if (!hold(self, out) || !release(self)) {
        return false;
    }
    bay_caller_reply_free(*out);
    *out = NULL;
    return ended(self, self->id, out) && is_complete(self, *out);
}

static bool case_reply(peer *self, bay_caller_reply **out)
{
    return say(self, "reply", out) &&
           ((bay_caller_reply_kind_of(*out) == BAY_CALLER_REPLY_KIND_MESSAGE &&
             equals(bay_caller_reply_text(*out), "a message, naïve ☃")) ||
            show(self, "not the message", *out));
}

static bool case_stream_reply(peer *self, bay_caller_reply **out)
{
    return follow(self, bay_caller_request_send_text(self->caller, "reply"), out) &&
           ((self->events == 1 && self->messages == 1 &&
             equals(bay_caller_reply_text(*out), "a message, naïve ☃")) ||
            show(self, "not the message", *out));
}

static bool part_is(const bay_message *parts, size_t index, bay_part kind, bay_str wanted,
                    const char *name, const char *type)
{
    bay_str part = bay_message_part(parts, index);
    return bay_message_part_kind(parts, index) == kind && part.len == wanted.len &&
           memcmp(part.at, wanted.at, part.len) == 0 &&
           (name == NULL || equals(bay_message_part_name(parts, index), name)) &&
           (type == NULL || equals(bay_message_part_type(parts, index), type));
}

static bool case_parts(peer *self, bay_caller_reply **out)
{
    static const char bytes[] = {'\x89', 'P', 'N', 'G', 0, '\xff', '\n'};
    static const char text[] = "naïve ☃ \"quoted\" \\";
    static const char url[] = "https://files.example/a%20b.txt";
    /* the proto of 0.3 knows no names of files */
    bool has_names = strcmp(self->version, "0.3") != 0 || strcmp(self->binding, "JSONRPC") == 0;
    bay_message *message = bay_message_new();
    bay_message_add_text(message, "parts");
    bay_message_add_text(message, text);
    bay_message_add_bytes(message, bytes, sizeof(bytes), "pixel.png", "image/png");
    bay_message_add_url(message, url, "b.txt", "text/plain");
    bay_message_add_data(message, "{\"n\":1,\"list\":[true,null,\"x\"],\"deep\":{\"a\":0.5}}");
    bay_caller_request *operation = bay_caller_request_send(self->caller, message);
    bay_message_free(message);
    if (!run(self, operation, out)) {
        return false;
    }
    const bay_message *back = bay_caller_reply_message(*out);
    return (bay_caller_reply_state(*out) == BAY_TASK_STATE_COMPLETED && back != NULL &&
            bay_message_part_count(back) == 4 &&
            part_is(back, 0, BAY_PART_TEXT, (bay_str){text, sizeof(text) - 1}, NULL, NULL) &&
            part_is(back, 1, BAY_PART_BYTES, (bay_str){bytes, sizeof(bytes)},
                    has_names ? "pixel.png" : NULL, "image/png") &&
            part_is(back, 2, BAY_PART_URL, (bay_str){url, sizeof(url) - 1},
                    has_names ? "b.txt" : NULL, "text/plain") &&
            bay_message_part_kind(back, 3) == BAY_PART_DATA &&
            holds(bay_message_data(back), "\"list\":[true,null,\"x\"]")) ||
           show(self, "not what was sent", *out);
}

static bool case_stream(peer *self, bay_caller_reply **out)
{
    return follow(self, bay_caller_request_send_text(self->caller, "complete"), out) &&
           (self->events >= 3 || failed(self, "%zu events", self->events)) &&
           is_complete(self, *out);
}

static bool case_chunks(peer *self, bay_caller_reply **out)
{
    return follow(self, bay_caller_request_send_text(self->caller, "chunks"), out) &&
           ((strcmp(self->chunks, "one |two |three") == 0 && self->lasts == 1) ||
            failed(self, "chunks %s, %zu last", self->chunks, self->lasts)) &&
           ((bay_caller_reply_artifact_count(*out) == 1 &&
             equals(bay_message_text(bay_caller_reply_artifact(*out, 0)), "one two three")) ||
            show(self, "not put together", *out));
}

static bool case_get(peer *self, bay_caller_reply **out)
{
    if (!say(self, "complete", out)) {
        return false;
    }
    keep(self->id, bay_caller_reply_task(*out));
    for (int most = 10; most >= 1; most -= 9) {
        bay_caller_reply_free(*out);
        *out = NULL;
        bay_caller_request *operation = bay_caller_request_task(self->caller, self->id);
        bay_caller_request_history(operation, most);
        if (!run(self, operation, out) || !is_complete(self, *out)) {
            return false;
        }
        if (most == 10 &&
            !equals(bay_message_text(bay_caller_reply_history(*out, 0)), "complete")) {
            return show(self, "not its history", *out);
        }
    }
    return bay_caller_reply_history_count(*out) == 1 || show(self, "not one message", *out);
}

static bool case_list(peer *self, bay_caller_reply **out)
{
    if (!say(self, "complete", out)) {
        return false;
    }
    char context[ID_BYTES];
    keep(context, bay_caller_reply_context(*out));
    keep(self->id, bay_caller_reply_task(*out));
    bay_caller_reply_free(*out);
    *out = NULL;
    bay_caller_request *operation = bay_caller_request_list(self->caller);
    bay_caller_request_for_context(operation, context);
    bay_caller_request_artifacts(operation);
    if (!run(self, operation, out)) {
        return false;
    }
    if (bay_caller_reply_count(*out) != 1 || !holds(bay_caller_reply_item(*out, 0), self->id) ||
        !holds(bay_caller_reply_item(*out, 0), result_text)) {
        return show(self, "not the task", *out);
    }
    char page[ID_BYTES * 4];
    bay_caller_reply_free(*out);
    *out = NULL;
    operation = bay_caller_request_list(self->caller);
    bay_caller_request_page(operation, NULL, 1);
    if (!run(self, operation, out)) {
        return false;
    }
    bay_str next = bay_caller_reply_next_page(*out);
    if (bay_caller_reply_count(*out) != 1 || next.len == 0 || next.len >= sizeof(page)) {
        return show(self, "no next page", *out);
    }
    snprintf(page, sizeof(page), "%.*s", (int)next.len, next.at);
    bay_caller_reply_free(*out);
    *out = NULL;
    operation = bay_caller_request_list(self->caller);
    bay_caller_request_page(operation, page, 1);
    return run(self, operation, out) &&
           (bay_caller_reply_count(*out) == 1 || show(self, "not the next page", *out));
}

static bool case_cancel(peer *self, bay_caller_reply **out)
{
    if (!hold(self, out)) {
        return false;
    }
    bay_caller_reply_free(*out);
    *out = NULL;
    return run(self, bay_caller_request_task_cancel(self->caller, self->id), out) &&
           (bay_caller_reply_state(*out) == BAY_TASK_STATE_CANCELLED ||
            show(self, "not canceled", *out));
}

/* From another stream than that of the message. */
static bool case_resubscribe(peer *self, bay_caller_reply **out)
{
    if (!hold(self, out)) {
        return false;
    }
    bay_caller_reply_free(*out);
    *out = NULL;
    return follow(self, bay_caller_request_subscribe(self->caller, self->id), out) &&
           (self->is_first_task || failed(self, "the first event is no task")) &&
           is_complete(self, *out);
}

/* The stream is cut on the way, and the gate opened, by whoever runs this: it goes on, and nothing
 * is told twice. */
static bool case_cut(peer *self, bay_caller_reply **out)
{
    char text[ID_BYTES + 8];
    const char *gate = getenv("INTEROP_GATE");
    snprintf(text, sizeof(text), "hold %s", gate != NULL ? gate : "");
    return follow(self, bay_caller_request_send_text(self->caller, text), out) &&
           is_complete(self, *out) &&
           (strcmp(self->chunks, result_text) == 0 ||
            failed(self, "artifacts told: %s", self->chunks));
}

static bool go_on(peer *self, bay_caller_reply **out, bool is_stream)
{
    if (bay_caller_reply_state(*out) != BAY_TASK_STATE_INPUT_REQUIRED ||
        !equals(bay_caller_reply_text(*out), "which one?")) {
        return show(self, "it did not ask", *out);
    }
    keep(self->id, bay_caller_reply_task(*out));
    bay_caller_reply_free(*out);
    *out = NULL;
    bay_caller_request *operation = bay_caller_request_send_text(self->caller, "the red one");
    bay_caller_request_for_task(operation, self->id);
    return (is_stream ? follow(self, operation, out) : run(self, operation, out)) &&
           ((equals(bay_caller_reply_task(*out), self->id) &&
             bay_caller_reply_state(*out) == BAY_TASK_STATE_COMPLETED &&
             equals(bay_caller_reply_text(*out), "you said the red one")) ||
            show(self, "it did not go on", *out));
}

static bool case_ask(peer *self, bay_caller_reply **out)
{
    return say(self, "ask", out) && go_on(self, out, false);
}

static bool case_stream_ask(peer *self, bay_caller_reply **out)
{
    return follow(self, bay_caller_request_send_text(self->caller, "ask"), out) &&
           go_on(self, out, true);
}

static bool case_reject(peer *self, bay_caller_reply **out)
{
    return say(self, "reject", out) && ((bay_caller_reply_state(*out) == BAY_TASK_STATE_REJECTED &&
                                         equals(bay_caller_reply_text(*out), "not that")) ||
                                        show(self, "not rejected", *out));
}

static bool case_fail(peer *self, bay_caller_reply **out)
{
    return say(self, "fail", out) && ((bay_caller_reply_state(*out) == BAY_TASK_STATE_FAILED &&
                                       equals(bay_caller_reply_text(*out), "it broke")) ||
                                      show(self, "not failed", *out));
}

static bool push_with(peer *self, bay_caller_reply **out, const char *token, const char *scheme,
                      const char *credentials, const char *field)
{
    webhook *hook = calloc(1, sizeof(*hook));
    if (hook == NULL || !webhook_open(hook)) {
        free(hook);
        return failed(self, "there is no webhook");
    }
    bay_caller_request *operation = bay_caller_request_send_text(self->caller, "complete");
    bay_caller_request_push(operation, hook->url, token, scheme, credentials);
    bool is_good = run(self, operation, out) && is_complete(self, *out);
    webhook_close(hook);
    is_good = is_good && webhook_check(self, hook, field);
    free(hook);
    return is_good;
}

static bool case_push(peer *self, bay_caller_reply **out)
{
    return push_with(self, out, "hook-token", NULL, NULL, "a2a-notification-token: hook-token\r\n");
}

static bool case_push_credentials(peer *self, bay_caller_reply **out)
{
    return push_with(self, out, NULL, "Bearer", "hook-secret",
                     "\r\nauthorization: Bearer hook-secret\r\n");
}

static bool case_push_late(peer *self, bay_caller_reply **out)
{
    webhook *hook = calloc(1, sizeof(*hook));
    bay_diag diag = {0};
    if (hook == NULL || !webhook_open(hook)) {
        free(hook);
        return failed(self, "there is no webhook");
    }
    bay_caller_reply *made = NULL;
    bool is_good = hold(self, out);
    is_good = is_good && (bay_caller_push_create(self->caller, self->id, hook->url, "late-token",
                                                 &made, &diag) == BAY_OK ||
                          failed(self, "%s", diag.text));
    is_good = is_good && release(self);
    bay_caller_reply_free(made);
    webhook_close(hook);
    is_good = is_good && webhook_check(self, hook, "a2a-notification-token: late-token\r\n");
    free(hook);
    return is_good;
}

static bool case_push_configs(peer *self, bay_caller_reply **out)
{
    bay_diag diag = {0};
    char id[ID_BYTES];
    if (!hold(self, out)) {
        return false;
    }
    bay_caller_reply_free(*out);
    *out = NULL;
    if (bay_caller_push_create(self->caller, self->id, "http://127.0.0.1:9/hook", "t", out,
                               &diag) != BAY_OK) {
        return failed(self, "create: %s", diag.text);
    }
    keep(id, bay_caller_reply_str(*out, "id"));
    bay_caller_reply_free(*out);
    *out = NULL;
    if (bay_caller_push_get(self->caller, self->id, id, out, &diag) != BAY_OK) {
        return failed(self, "get: %s", diag.text);
    }
    if (!equals(bay_caller_reply_str(*out, "url"), "http://127.0.0.1:9/hook")) {
        return show(self, "not the webhook", *out);
    }
    for (size_t count = 2; strcmp(self->version, "0.2") != 0 && count-- > 0;) {
        bay_caller_reply_free(*out);
        *out = NULL;
        if (bay_caller_push_list(self->caller, self->id, out, &diag) != BAY_OK) {
            return failed(self, "list: %s", diag.text);
        }
        if (bay_caller_reply_count(*out) != count) {
            return show(self, "not the list", *out);
        }
        if (count > 0 && bay_caller_push_delete(self->caller, self->id, id, &diag) != BAY_OK) {
            return failed(self, "delete: %s", diag.text);
        }
    }
    return true;
}

static bool case_extended_card(peer *self, bay_caller_reply **out)
{
    bay_diag diag = {0};
    return (bay_caller_extended_card(self->caller, out, &diag) == BAY_OK ||
            failed(self, "%s", diag.text)) &&
           (holds(bay_caller_reply_json(*out), "\"hidden\"") || show(self, "not extended", *out));
}

static bool case_unknown_task(peer *self, bay_caller_reply **out)
{
    (void)out;
    return refused(self, bay_caller_request_task(self->caller, "no-such-task"), "TASK_NOT_FOUND") &&
           refused(self, bay_caller_request_task_cancel(self->caller, "no-such-task"),
                   "TASK_NOT_FOUND");
}

static bool complete_one(peer *self, bay_caller_reply **out)
{
    if (!say(self, "complete", out)) {
        return false;
    }
    keep(self->id, bay_caller_reply_task(*out));
    return true;
}

static bool case_terminal_task(peer *self, bay_caller_reply **out)
{
    if (!complete_one(self, out)) {
        return false;
    }
    bay_caller_request *operation = bay_caller_request_send_text(self->caller, "more");
    bay_caller_request_for_task(operation, self->id);
    return refused(self, operation, "UNSUPPORTED_OPERATION");
}

static bool case_subscribe_terminal(peer *self, bay_caller_reply **out)
{
    return complete_one(self, out) &&
           refused(self, bay_caller_request_subscribe(self->caller, self->id),
                   "UNSUPPORTED_OPERATION");
}

static bool case_not_cancelable(peer *self, bay_caller_reply **out)
{
    return complete_one(self, out) &&
           refused(self, bay_caller_request_task_cancel(self->caller, self->id),
                   "TASK_NOT_CANCELABLE");
}

static bool case_wrong_version(peer *self, bay_caller_reply **out)
{
    bay_caller_request *operation = bay_caller_request_task(self->caller, "x");
    (void)out;
    bay_caller_request_header(operation, "A2A-Version", "7.0");
    return refused(self, operation, "VERSION_NOT_SUPPORTED");
}

static const struct {
    const char *name;
    bool (*run)(peer *self, bay_caller_reply **out);
} cases[] = {
    {"card", case_card},
    {"send", case_send},
    {"no-wait", case_no_wait},
    {"reply", case_reply},
    {"stream-reply", case_stream_reply},
    {"parts", case_parts},
    {"stream", case_stream},
    {"chunks", case_chunks},
    {"get", case_get},
    {"list", case_list},
    {"cancel", case_cancel},
    {"resubscribe", case_resubscribe},
    {"cut", case_cut},
    {"ask", case_ask},
    {"stream-ask", case_stream_ask},
    {"reject", case_reject},
    {"fail", case_fail},
    {"push", case_push},
    {"push-credentials", case_push_credentials},
    {"push-late", case_push_late},
    {"push-configs", case_push_configs},
    {"extended-card", case_extended_card},
    {"unknown-task", case_unknown_task},
    {"terminal-task", case_terminal_task},
    {"subscribe-terminal", case_subscribe_terminal},
    {"not-cancelable", case_not_cancelable},
    {"wrong-version", case_wrong_version},
};

static bool run_case(peer *self, const char *name)
{
    bay_caller_reply *response = NULL;
    bool is_good = failed(self, "there is no such case");
    self->gate[0] = '\0';
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, name) == 0) {
            is_good = cases[i].run(self, &response);
        }
    }
    bay_caller_reply_free(response);
    printf("%s %s%s%s\n", is_good ? "ok" : "not ok", name, is_good ? "" : ": ",
           is_good ? "" : self->why);
    fflush(stdout);
    return is_good;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: interop_caller URL BINDING VERSION CASE...\n", stderr);
        return 2;
    }
    peer *self = calloc(1, sizeof(*self));
    bay_diag diag = {0};
    if (self == NULL) {
        return 2;
    }
    self->binding = argv[2];
    self->version = argv[3];
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_bearer(options, "interop-token");
    bay_caller_options_trust(options, "*");
    bay_caller_options_interface(options, self->binding, self->version);
    bay_caller_options_timeout(options, 20000, 20000);
    bay_caller_options_resume(options, 8, 50);
    int status = 0;
    if (bay_caller_connect(argv[1], options, &self->caller, &diag) != BAY_OK) {
        printf("not ok connect: %s\n", diag.text);
        status = 1;
    }
    for (int i = 4; i < argc && self->caller != NULL; i++) {
        status = run_case(self, argv[i]) ? status : 1;
    }
    bay_caller_close(self->caller);
    bay_caller_options_free(options);
    free(self);
    return status;
}
