/* Our client, playing a list of steps and saying what came of each: the client of the matrix in
 * tests/interop/eras. Written on the public headers only; replies are shown byte for byte.
 *
 *     eras_player REVISION auto|http|sse PREFIX PLAN URL
 *     eras_player REVISION stdio PREFIX PLAN COMMAND ARGUMENT…
 *
 * PREFIX stands before every tool and prompt ("" or "NAME."). PLAN is a file of lines
 * "STEP <tab> VERB <tab> WORD <tab> JSON <tab> WORD", the last two as the verb wants them:
 *
 *     list     tools|resources|templates|prompts
 *     call     TOOL      ARGUMENTS
 *     logs     TOOL      ARGUMENTS  LEVEL COUNT        so many are waited for
 *     mute     TOOL      ARGUMENTS            by a client that can be asked nothing
 *     cancel   TOOL      ARGUMENTS  HEARD     cancelled at its first progress; HEARD says what came
 *     task     TOOL      ARGUMENTS            as a task where the revision has that
 *     older    TOOL      ARGUMENTS            as a task of 2025-11-25
 *     read     URI
 *     prompt   PROMPT    ARGUMENTS
 *     complete REFERENCE ARGUMENT   VALUE
 *     updates  URI       TOOL                 subscribe, call TOOL, wait for the update
 *     changes  TOOL      ARGUMENTS            call TOOL, wait for the tools to change
 *
 * A line "STEP <tab> JSON" is printed for each; see print_outcome. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <patchbay/client.h>

enum {
    WAIT_MS = 20,
    WAITS = 500,
    TRIES = 5,
    IDLE_MS = 20000,
    LINE_BYTES = 8192,
    FIELDS = 5,
    SHOWN_BYTES = 65536, /* of a reply; longer ones are shown by length and digest */
};

typedef struct text {
    char *at;
    size_t len, room;
} text;

typedef struct player {
    bay_client *client;
    const char *revision, *transport, *prefix;
    char **target;
    text progress, logs, asked, updated; /* elements of arrays, comma-separated */
    size_t updates, changes, logs_wanted;
    bool is_done, was_task;
    bay_err ended;
} player;

/* ---- text ------------------------------------------------------------------------------------ */

static void put(text *self, const char *at, size_t len)
{
    if (self->len + len + 1 > self->room) {
        self->room = (self->len + len + 1) * 2;
        self->at = realloc(self->at, self->room);
        if (self->at == NULL) {
            fprintf(stderr, "eras_player: out of memory\n");
            exit(3);
        }
    }
    if (len > 0) {
        memcpy(self->at + self->len, at, len);
    }
    self->len += len;
    self->at[self->len] = '\0';
}

__attribute__((format(printf, 2, 3))) static void putf(text *self, const char *format, ...)
{
    char small[1024];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    put(self, small, len < 0 ? 0 : (size_t)len < sizeof(small) ? (size_t)len : sizeof(small) - 1);
}

static void put_string(text *self, const char *at, size_t len)
{
    put(self, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c == '"' || c == '\\') {
            putf(self, "\\%c", c);
        } else if (c < 0x20) {
            putf(self, "\\u%04x", c);
        } else {
            put(self, at + i, 1);
        }
    }
    put(self, "\"", 1);
}

static void next_element(text *self)
{
    if (self->len > 0) {
        put(self, ",", 1);
    }
}

static void put_member(text *self, const char *name, const text *elements)
{
    putf(self, ",\"%s\":[", name);
    put(self, elements->at, elements->len);
    put(self, "]", 1);
}

/* ---- what the server asks and tells ---------------------------------------------------------- */

static void note_question(player *self, bay_question *question)
{
    next_element(&self->asked);
    bay_str method = bay_question_method(question);
    bay_str params = bay_question_params(question);
    putf(&self->asked, "{\"method\":\"%.*s\",\"params\":", BAY_STR(method));
    put(&self->asked, params.len > 0 ? params.at : "null", params.len > 0 ? params.len : 4);
    put(&self->asked, "}", 1);
}

/* Does the question's form, or what else it says, hold this word in quotes? */
static bool wants(const bay_question *question, const char *word)
{
    bay_str params = bay_question_params(question);
    size_t len = strlen(word);
    for (size_t i = 0; i + len + 2 <= params.len; i++) {
        if (params.at[i] == '"' && params.at[i + len + 1] == '"' &&
            memcmp(params.at + i + 1, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static void on_elicited(bay_question *question, void *user)
{
    note_question(user, question);
    bay_diag diag = {0};
    bool is_page = bay_question_url(question).len > 0;
    const char *content = is_page ? NULL
                          : wants(question, "interpretation")
                              ? "{\"interpretation\":\"technical\"}"
                              : "{\"name\":\"Ada \xe2\x98\x83\",\"age\":36}";
    if (bay_question_accept(question, content, &diag) != BAY_OK) {
        bay_question_error(question, -32603, diag.text);
    }
}

static void on_sampled(bay_question *question, void *user)
{
    note_question(user, question);
    bay_question_result(
        question,
        wants(question, "tools")
            ? "{\"role\":\"assistant\",\"content\":{\"type\":\"tool_use\",\"id\":\"use-1\","
              "\"name\":\"weather\",\"input\":{\"city\":\"Z\\u00fcrich\"}},"
              "\"model\":\"none\",\"stopReason\":\"toolUse\"}"
            : "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"sampled "
              "\\u2603 words\"},\"model\":\"none\",\"stopReason\":\"endTurn\"}");
}

static void on_updated(bay_client *client, bay_str uri, void *user)
{
    player *self = user;
    (void)client;
    if (self->updates++ == 0) {
        put_string(&self->updated, uri.at, uri.len);
    }
}

static void on_changed(bay_client *client, bay_kind kind, void *user)
{
    player *self = user;
    (void)client;
    self->changes += kind == BAY_KIND_TOOLS ? 1 : 0;
}

static void note_log(player *self, bay_str params)
{
    next_element(&self->logs);
    put(&self->logs, params.at, params.len);
}

static void on_log(bay_client *client, bay_str params, void *user)
{
    (void)client;
    note_log(user, params);
}

static void on_request_log(bay_request *request, bay_str params, void *user)
{
    (void)request;
    note_log(user, params);
}

static void on_progress(bay_request *request, double progress, double total, bay_str message,
                        void *user)
{
    player *self = user;
    (void)request;
    next_element(&self->progress);
    putf(&self->progress, "{\"progress\":%.17g,\"total\":%.17g", progress, total);
    if (message.len > 0) {
        put(&self->progress, ",\"message\":", 11);
        put_string(&self->progress, message.at, message.len);
    }
    put(&self->progress, "}", 1);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t digest(bay_str bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes.len; i++) {
        hash = (hash ^ (unsigned char)bytes.at[i]) * 1099511628211u;
    }
    return hash;
}

/* Of the content alone where a reply is too long to show. */
static void put_reply(text *out, const bay_reply *reply)
{
    bay_str json = bay_reply_json(reply);
    if (json.len <= SHOWN_BYTES) {
        put(out, json.at, json.len);
        return;
    }
    put(out, "{\"long\":[", 9);
    for (size_t i = 0; i < bay_reply_count(reply); i++) {
        bay_str item = bay_reply_item(reply, i);
        putf(out, "%s{\"bytes\":%zu,\"digest\":\"%016llx\"}", i > 0 ? "," : "", item.len,
             (unsigned long long)digest(item));
    }
    put(out, "]}", 2);
}

static const char *outcome_of(bay_err err)
{
    return err == BAY_OK ? "answer" : err == BAY_ERR_REMOTE ? "error" : bay_err_text(err);
}

/* {"outcome","task"?,"result"|"error", "progress":[{"progress","total","message"?}…],
 * "logs":[params…], "asked":[{"method","params"}…], "updated":[uri…]}: what is between the braces
 * comes as it stands on the wire. */
static void print_outcome(player *self, const char *step, bay_err err, const bay_reply *reply,
                          const bay_diag *diag)
{
    text out = {0};
    putf(&out, "{\"outcome\":\"%s\"%s", outcome_of(err), self->was_task ? ",\"task\":true" : "");
    bay_str remote = err == BAY_ERR_REMOTE ? bay_client_remote_error(self->client) : (bay_str){0};
    if (reply != NULL && err == BAY_OK) {
        put(&out, ",\"result\":", 10);
        put_reply(&out, reply);
    } else if (remote.len > 0) {
        put(&out, ",\"error\":", 9);
        put(&out, remote.at, remote.len);
    } else if (err != BAY_OK && diag != NULL) {
        put(&out, ",\"diag\":", 8);
        put_string(&out, diag->text, strlen(diag->text));
    }
    put_member(&out, "progress", &self->progress);
    put_member(&out, "logs", &self->logs);
    put_member(&out, "asked", &self->asked);
    put_member(&out, "updated", &self->updated);
    printf("%s\t%s}\n", step, out.at);
    fflush(stdout);
    free(out.at);
}

static void forget(player *self)
{
    self->progress.len = self->logs.len = self->asked.len = self->updated.len = 0;
    self->updates = self->changes = 0;
    self->was_task = false;
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct step {
    const char *name, *verb, *word, *json, *last;
} step;

static bool is_modern(const player *self)
{
    return strcmp(self->revision, "2026-07-28") == 0;
}

static const char *prefixed(const player *self, const char *name, char *out, size_t room)
{
    snprintf(out, room, "%s%s", self->prefix, name);
    return out;
}

static const char *or_null(const char *word)
{
    return word[0] != '\0' ? word : NULL;
}

/* Turns the client until `check` holds; false: it did not. */
static bool await(player *self, bool (*check)(const player *self))
{
    for (size_t i = 0; i < WAITS && !check(self); i++) {
        bay_err err = bay_client_wait(self->client, WAIT_MS);
        if (err != BAY_OK) {
            return false;
        }
    }
    return check(self);
}

static bay_client *connect_to(player *self, bool is_mute, bay_diag *diag)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_name(options, "eras-player", "1.0.0");
    bay_client_options_revisions(options, self->revision, self->revision);
    bay_client_options_timeout(options, IDLE_MS, IDLE_MS);
    bay_client_options_no_cache(options);
    if (!is_mute) {
        bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL,
                                       on_elicited, self);
        bay_client_options_sampling(options, "{\"tools\":{}}", on_sampled, self);
        bay_client_options_root(options, "file:///eras", "eras");
    }
    bay_client_options_on_updated(options, on_updated, self);
    bay_client_options_on_changed(options, on_changed, self);
    bay_client_options_on_log(options, on_log, self);
    bay_client_options_transport(options,
                                 strcmp(self->transport, "sse") == 0    ? BAY_TRANSPORT_SSE_2024
                                 : strcmp(self->transport, "http") == 0 ? BAY_TRANSPORT_HTTP
                                                                        : BAY_TRANSPORT_AUTO);
    bay_client *client = NULL;
    bay_err err = strcmp(self->transport, "stdio") == 0
                      ? bay_client_spawn((const char *const *)self->target, options, &client, diag)
                      : bay_client_connect(self->target[0], options, &client, diag);
    bay_client_options_free(options);
    return err == BAY_OK ? client : NULL;
}

static bay_request *request_tool(player *self, const step *what)
{
    char name[256];
    bay_request *request = bay_request_tool(
        self->client, prefixed(self, what->word, name, sizeof(name)), or_null(what->json));
    bay_request_on_progress(request, on_progress, self);
    return request;
}

static void play_list(player *self, const step *what)
{
    bay_kind kind = strcmp(what->word, "tools") == 0       ? BAY_KIND_TOOLS
                    : strcmp(what->word, "resources") == 0 ? BAY_KIND_RESOURCES
                    : strcmp(what->word, "prompts") == 0   ? BAY_KIND_PROMPTS
                                                           : BAY_KIND_TEMPLATES;
    bay_list *list = NULL;
    bay_diag diag = {0};
    bay_err err = bay_client_list(self->client, kind, &list, &diag);
    if (err != BAY_OK) {
        print_outcome(self, what->name, err, NULL, &diag);
        return;
    }
    printf("%s\t{\"outcome\":\"answer\",\"items\":[", what->name);
    size_t len = strlen(self->prefix);
    size_t count = 0;
    for (size_t i = 0; i < bay_list_count(list); i++) {
        bay_str name = bay_list_name(list, i);
        bool is_named = kind == BAY_KIND_TOOLS || kind == BAY_KIND_PROMPTS;
        if (is_named && (name.len < len || memcmp(name.at, self->prefix, len) != 0)) {
            continue; /* another server's */
        }
        bay_str json = bay_list_json(list, i);
        printf("%s%.*s", count++ > 0 ? "," : "", BAY_STR(json));
    }
    printf("]}\n");
    fflush(stdout);
    bay_list_free(list);
}

static void play_call(player *self, const step *what)
{
    bay_diag diag = {0};
    bay_request *request = request_tool(self, what);
    bay_reply *reply = NULL;
    bay_err err = bay_request_run(request, &reply, &diag);
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

static bool has_logs(const player *self)
{
    size_t count = 0;
    for (size_t i = 0; i + 7 < self->logs.len; i++) {
        count += memcmp(self->logs.at + i, "\"level\"", 7) == 0 ? 1 : 0;
    }
    return count >= self->logs_wanted;
}

/* The messages may come by another stream than the answer. */
static void play_logs(player *self, const step *what)
{
    char level[32];
    size_t len = strcspn(what->last, " ");
    snprintf(level, sizeof(level), "%.*s", (int)len, what->last);
    self->logs_wanted = what->last[len] != '\0' ? strtoul(what->last + len, NULL, 10) : 1;
    bay_diag diag = {0};
    bay_err err = is_modern(self) ? BAY_OK : bay_client_log_level(self->client, level, &diag);
    bay_reply *reply = NULL;
    if (err == BAY_OK) {
        bay_request *request = request_tool(self, what);
        if (is_modern(self)) {
            bay_request_on_log(request, level, on_request_log, self);
        }
        err = bay_request_run(request, &reply, &diag);
    }
    if (err == BAY_OK) {
        await(self, has_logs);
    }
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

static void play_mute(player *self, const step *what)
{
    bay_diag diag = {0};
    bay_client *usual = self->client;
    self->client = connect_to(self, true, &diag);
    if (self->client == NULL) {
        self->client = usual;
        print_outcome(self, what->name, diag.code, NULL, &diag);
        return;
    }
    play_call(self, what);
    bay_client_close(self->client);
    self->client = usual;
}

static void on_ended(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    player *self = user;
    (void)request;
    self->ended = diag->code;
    self->is_done = true;
    bay_reply_free(reply);
}

static bool has_progress_or_end(const player *self)
{
    return self->progress.len > 0 || self->is_done;
}

static bool is_done(const player *self)
{
    return self->is_done;
}

/* What `heard` says of the mark, as soon as it says "cancelled". */
static void ask_what_was_heard(player *self, const step *what, text *out)
{
    char name[256];
    prefixed(self, what->last, name, sizeof(name));
    for (size_t i = 0; i < WAITS; i++) {
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        bay_err err = bay_client_call(self->client, name, what->json, &reply, &diag);
        out->len = 0;
        bay_str heard =
            err == BAY_OK ? bay_reply_text(reply, 0) : (bay_str){diag.text, strlen(diag.text)};
        put(out, heard.at, heard.len);
        bay_reply_free(reply);
        if (err != BAY_OK || (out->len == 9 && memcmp(out->at, "cancelled", 9) == 0)) {
            return;
        }
        err = bay_client_wait(self->client, WAIT_MS);
        (void)err;
    }
}

static void play_cancel(player *self, const step *what)
{
    bay_diag diag = {0};
    self->is_done = false;
    bay_request *request = request_tool(self, what);
    bay_err err = bay_request_start(request, &diag, on_ended, self);
    if (err != BAY_OK) {
        print_outcome(self, what->name, err, NULL, &diag);
        return;
    }
    await(self, has_progress_or_end);
    if (!self->is_done) {
        bay_request_cancel(request, "enough");
        await(self, is_done);
    }
    text heard = {0};
    ask_what_was_heard(self, what, &heard);
    printf("%s\t{\"outcome\":\"%s\",\"heard\":\"%s\"}\n", what->name, outcome_of(self->ended),
           heard.at != NULL ? heard.at : "");
    fflush(stdout);
    free(heard.at);
}

static void play_read(player *self, const step *what)
{
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bay_err err = bay_client_read(self->client, what->word, &reply, &diag);
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

static void play_prompt(player *self, const step *what)
{
    char name[256];
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bay_err err = bay_client_prompt(self->client, prefixed(self, what->word, name, sizeof(name)),
                                    or_null(what->json), &reply, &diag);
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

static void play_complete(player *self, const step *what)
{
    char name[256];
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bool is_template = strstr(what->word, "://") != NULL;
    bay_err err = bay_client_complete(
        self->client, is_template ? what->word : prefixed(self, what->word, name, sizeof(name)),
        what->json, what->last, &reply, &diag);
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

/* A subscription that goes on to another server may begin a moment after it is answered: what is
 * done before that is not told, so it is done again. */
static void play_updates(player *self, const step *what)
{
    char name[256];
    bay_diag diag = {0};
    prefixed(self, what->json, name, sizeof(name));
    bay_err err = bay_client_subscribe(self->client, what->word, &diag);
    for (size_t i = 0; i < TRIES && err == BAY_OK && self->updates == 0; i++) {
        bay_reply *reply = NULL;
        err = bay_client_call(self->client, name, NULL, &reply, &diag);
        bay_reply_free(reply);
        for (size_t waits = 0; err == BAY_OK && waits < WAITS / TRIES && self->updates == 0;
             waits++) {
            err = bay_client_wait(self->client, WAIT_MS);
        }
    }
    if (err == BAY_OK) {
        err = bay_client_unsubscribe(self->client, what->word, &diag);
    }
    print_outcome(self, what->name, err, NULL, &diag);
}

static bool has_change(const player *self)
{
    return self->changes > 0;
}

static void play_changes(player *self, const step *what)
{
    char name[256];
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bay_err err = bay_client_call(self->client, prefixed(self, what->word, name, sizeof(name)),
                                  what->json, &reply, &diag);
    bool has_changed = err == BAY_OK && await(self, has_change);
    bay_reply_free(reply);
    printf("%s\t{\"outcome\":\"%s\",\"changed\":%s}\n", what->name, outcome_of(err),
           has_changed ? "true" : "false");
    fflush(stdout);
}

/* The states a task went through are its server's affair; what counts is that it was one, and its
 * result. */
static void play_task(player *self, const step *what)
{
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    bay_request *request = request_tool(self, what);
    bay_request_return_immediately(request);
    bay_err err = bay_request_run(request, &reply, &diag);
    bool was_task = err == BAY_OK && bay_reply_task_state(reply) != BAY_TASK_STATE_UNKNOWN;
    if (was_task) {
        char id[1024];
        bay_str given = bay_reply_task(reply);
        snprintf(id, sizeof(id), "%.*s", BAY_STR(given));
        bay_reply_free(reply);
        reply = NULL;
        err = bay_client_task_wait(self->client, id, &reply, &diag);
    }
    self->was_task = was_task;
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
}

/* The text of the first member "taskId" anywhere in a reply; empty: there is none. */
static bay_str task_id_in(bay_str json)
{
    static const char key[] = "\"taskId\":\"";
    for (size_t i = 0; i + sizeof(key) <= json.len; i++) {
        if (memcmp(json.at + i, key, sizeof(key) - 1) == 0) {
            const char *at = json.at + i + sizeof(key) - 1;
            const char *end = memchr(at, '"', json.len - (size_t)(at - json.at));
            return (bay_str){at, end != NULL ? (size_t)(end - at) : 0};
        }
    }
    return (bay_str){NULL, 0};
}

/* mcp 2025-11-25 basic/utilities/tasks: who calls asks for the task, and for its result. */
static void play_older(player *self, const step *what)
{
    char name[256];
    text params = {0};
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    putf(&params, "{\"name\":\"%s\",\"arguments\":%s,\"task\":{\"ttl\":60000}}",
         prefixed(self, what->word, name, sizeof(name)), what->json[0] != '\0' ? what->json : "{}");
    bay_err err = bay_client_request(self->client, "tools/call", params.at, &reply, &diag);
    bay_str id = err == BAY_OK ? task_id_in(bay_reply_json(reply)) : (bay_str){NULL, 0};
    if (id.len > 0) {
        self->was_task = true;
        params.len = 0;
        put(&params, "{\"taskId\":\"", 11);
        put(&params, id.at, id.len);
        put(&params, "\"}", 2);
        bay_reply_free(reply);
        reply = NULL;
        err = bay_client_request(self->client, "tasks/result", params.at, &reply, &diag);
    }
    print_outcome(self, what->name, err, reply, &diag);
    bay_reply_free(reply);
    free(params.at);
}

static const struct {
    const char *verb;
    void (*play)(player *self, const step *what);
} verbs[] = {
    {"list", play_list},   {"call", play_call},       {"logs", play_logs},
    {"mute", play_mute},   {"cancel", play_cancel},   {"task", play_task},
    {"read", play_read},   {"prompt", play_prompt},   {"complete", play_complete},
    {"older", play_older}, {"updates", play_updates}, {"changes", play_changes},
};

static bool play(player *self, char *line)
{
    const char *fields[FIELDS] = {"", "", "", "", ""};
    line[strcspn(line, "\r\n")] = '\0';
    for (size_t i = 0; i < FIELDS && line != NULL; i++) {
        fields[i] = line;
        line = strchr(line, '\t');
        if (line != NULL) {
            *line++ = '\0';
        }
    }
    step what = {fields[0], fields[1], fields[2], fields[3], fields[4]};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].verb, what.verb) == 0) {
            forget(self);
            verbs[i].play(self, &what);
            return true;
        }
    }
    fprintf(stderr, "eras_player: no verb \"%s\"\n", what.verb);
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: eras_player REVISION TRANSPORT PREFIX PLAN TARGET...\n");
        return 2;
    }
    player self = {
        .revision = argv[1], .transport = argv[2], .prefix = argv[3], .target = argv + 5};
    FILE *plan = fopen(argv[4], "r");
    bay_diag diag = {0};
    self.client = plan != NULL ? connect_to(&self, false, &diag) : NULL;
    if (self.client == NULL) {
        printf("connect\t{\"outcome\":\"%s\",\"diag\":", bay_err_text(diag.code));
        text out = {0};
        put_string(&out, diag.text, strlen(diag.text));
        printf("%s}\n", out.at);
        free(out.at);
        if (plan != NULL) {
            fclose(plan);
        }
        return 1;
    }
    bay_str revision = bay_client_revision(self.client);
    printf("connect\t{\"outcome\":\"answer\",\"revision\":\"%.*s\"}\n", BAY_STR(revision));
    char line[LINE_BYTES];
    bool is_good = true;
    while (is_good && fgets(line, sizeof(line), plan) != NULL) {
        is_good = play(&self, line);
    }
    fclose(plan);
    bay_client_close(self.client);
    free(self.progress.at);
    free(self.logs.at);
    free(self.asked.at);
    free(self.updated.at);
    return is_good ? 0 : 2;
}
