/* Our client against a server on another SDK: every feature that both sides have. What the server
 * offers, and what is printed, is described in tests/interop/sdks/run.
 *
 *     sdk_client REVISION URL
 *     sdk_client REVISION COMMAND… */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <patchbay/client.h>

enum { WHY_BYTES = 512, WAITS = 100, WAIT_MS = 100 };

typedef struct peer {
    bay_client *client;
    const char *revision;
    char why[WHY_BYTES]; /* of the case that runs */
    bool is_skipped;
    size_t progressed, logged, asked, updated;
} peer;

static bool is_modern(const peer *self)
{
    return strcmp(self->revision, "2026-07-28") == 0;
}

__attribute__((format(printf, 2, 3))) static bool fail(peer *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->why, sizeof(self->why), format, arguments);
    va_end(arguments);
    return false;
}

static bool skip(peer *self, const char *why)
{
    self->is_skipped = true;
    return fail(self, "%s", why);
}

static bool failed(peer *self, bay_err err, const bay_diag *diag)
{
    return fail(self, "%s: %s", bay_err_text(err), diag->text);
}

static bool equals(bay_str text, const char *wanted)
{
    return text.len == strlen(wanted) && memcmp(text.at, wanted, text.len) == 0;
}

/* ---- what the server asks and tells */

static void on_elicited(bay_question *question, void *user)
{
    peer *self = user;
    self->asked++;
    bay_diag diag;
    if (bay_question_accept(question, "{\"name\":\"Ada\"}", &diag) != BAY_OK) {
        bay_question_decline(question);
    }
}

static void on_sampled(bay_question *question, void *user)
{
    peer *self = user;
    self->asked++;
    bay_question_reply(question, "none", "sampled words");
}

static void on_updated(bay_client *client, bay_str uri, void *user)
{
    peer *self = user;
    (void)client;
    self->updated += equals(uri, "peer://note") ? 1 : 0;
}

static void on_log(bay_client *client, bay_str params, void *user)
{
    peer *self = user;
    (void)client;
    (void)params;
    self->logged++;
}

static void on_request_log(bay_request *request, bay_str params, void *user)
{
    peer *self = user;
    (void)request;
    (void)params;
    self->logged++;
}

static void on_progress(bay_request *request, double progress, double total, bay_str message,
                        void *user)
{
    peer *self = user;
    (void)request;
    (void)message;
    if (progress == (double)(self->progressed + 1) && total == 3) {
        self->progressed++;
    }
}

/* Turns the client until `count` is there. */
static bool await(peer *self, const size_t *count, size_t wanted, const char *what)
{
    for (size_t i = 0; i < WAITS && *count < wanted; i++) {
        bay_err err = bay_client_wait(self->client, WAIT_MS);
        if (err != BAY_OK && err != BAY_ERR_TIMEOUT) {
            return fail(self, "waiting for %s: %s", what, bay_err_text(err));
        }
    }
    return *count >= wanted || fail(self, "%s came %zu times, not %zu", what, *count, wanted);
}

/* ---- cases */

/* Calls, and holds the first text against `wanted` (NULL: anything). */
static bool calls(peer *self, const char *tool, const char *arguments, const char *wanted)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_call(self->client, tool, arguments, &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = !bay_reply_is_error(reply) && bay_reply_kind(reply, 0) == BAY_CONTENT_TEXT &&
                   (wanted == NULL || equals(bay_reply_text(reply, 0), wanted));
    if (!is_good) {
        fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    }
    bay_reply_free(reply);
    return is_good;
}

static bool case_revision(peer *self)
{
    bay_str found = bay_client_revision(self->client);
    return equals(found, self->revision) || fail(self, "negotiated %.*s", BAY_STR(found));
}

static bool lists(peer *self, bay_kind kind, const char *const *names)
{
    bay_list *list = NULL;
    bay_diag diag;
    bay_err err = bay_client_list(self->client, kind, &list, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = true;
    for (; *names != NULL && is_good; names++) {
        is_good = bay_list_find(list, *names) < bay_list_count(list) ||
                  fail(self, "%s is not among %zu", *names, bay_list_count(list));
    }
    bay_list_free(list);
    return is_good;
}

static bool case_lists(peer *self)
{
    static const char *const tools[] = {"echo",   "sum",    "fail",  "image", "progress",
                                        "elicit", "sample", "roots", NULL};
    static const char *const resources[] = {"peer://note", "peer://pixel", NULL};
    static const char *const templates[] = {"peer://item/{id}", NULL};
    static const char *const prompts[] = {"greet", NULL};
    return lists(self, BAY_KIND_TOOLS, tools) && lists(self, BAY_KIND_RESOURCES, resources) &&
           lists(self, BAY_KIND_TEMPLATES, templates) && lists(self, BAY_KIND_PROMPTS, prompts);
}

static bool case_text(peer *self)
{
    return calls(self, "echo", "{\"text\":\"na\\u00efve \\u2603 \\\"quoted\\\"\"}",
                 "na\xc3\xafve \xe2\x98\x83 \"quoted\"");
}

static bool case_structured(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_call(self->client, "sum", "{\"left\":2,\"right\":3}", &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = equals(bay_reply_str(reply, "sum"), "5") ||
                   fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    bay_reply_free(reply);
    return is_good;
}

static bool case_tool_error(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_call(self->client, "fail", NULL, &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = bay_reply_is_error(reply) || fail(self, "it did not fail");
    bay_reply_free(reply);
    return is_good;
}

static bool is_png(peer *self, bay_err err, bay_reply *reply, const bay_diag *diag)
{
    if (err != BAY_OK) {
        return failed(self, err, diag);
    }
    void *bytes = NULL;
    size_t len = 0;
    bool is_good = bay_reply_bytes(reply, 0, &bytes, &len) == BAY_OK && len > 4 &&
                   memcmp(bytes, "\x89PNG", 4) == 0 &&
                   equals(bay_reply_mime_type(reply, 0), "image/png");
    if (!is_good) {
        fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    }
    bay_free(bytes);
    bay_reply_free(reply);
    return is_good;
}

static bool case_image(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_call(self->client, "image", NULL, &reply, &diag);
    return is_png(self, err, reply, &diag);
}

static bool case_resource_blob(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_read(self->client, "peer://pixel", &reply, &diag);
    return is_png(self, err, reply, &diag);
}

static bool reads(peer *self, const char *uri, const char *wanted)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_read(self->client, uri, &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = equals(bay_reply_text(reply, 0), wanted) ||
                   fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    bay_reply_free(reply);
    return is_good;
}

static bool case_resource_text(peer *self)
{
    return reads(self, "peer://note", "a note, na\xc3\xafve \xe2\x98\x83") &&
           reads(self, "peer://item/7", "item 7");
}

static bool case_resource_missing(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_read(self->client, "peer://nothing", &reply, &diag);
    bay_reply_free(reply);
    return err == BAY_ERR_REMOTE || fail(self, "it ended with %s", bay_err_text(err));
}

static bool case_prompt(peer *self)
{
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_prompt(self->client, "greet", "{\"name\":\"Ada\"}", &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good =
        equals(bay_reply_text(reply, 0), "Greet Ada") && equals(bay_reply_role(reply, 0), "user");
    if (!is_good) {
        fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    }
    bay_reply_free(reply);
    return is_good;
}

static bool case_completion(peer *self)
{
    if (!bay_client_has(self->client, "completions")) {
        return skip(self, "the server completes nothing");
    }
    bay_reply *reply = NULL;
    bay_diag diag;
    bay_err err = bay_client_complete(self->client, "greet", "name", "Al", &reply, &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bool is_good = bay_reply_count(reply) == 1 && equals(bay_reply_text(reply, 0), "Alan");
    if (!is_good) {
        fail(self, "answered %.*s", BAY_STR(bay_reply_json(reply)));
    }
    bay_reply_free(reply);
    return is_good;
}

/* Progress of one call, and a log message where the server says that it logs. */
static bool case_progress(peer *self)
{
    bay_diag diag;
    bay_err err = BAY_OK;
    bool has_log = bay_client_has(self->client, "logging");
    if (has_log && !is_modern(self)) {
        err = bay_client_log_level(self->client, "debug", &diag);
    }
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    bay_request *request = bay_request_tool(self->client, "progress", NULL);
    bay_request_on_progress(request, on_progress, self);
    if (has_log) {
        bay_request_on_log(request, "debug", on_request_log, self);
    }
    bay_reply *reply = NULL;
    self->progressed = 0;
    self->logged = 0;
    err = bay_request_run(request, &reply, &diag);
    bay_reply_free(reply);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    return await(self, &self->progressed, 3, "progress") &&
           (!has_log || await(self, &self->logged, 1, "a log message"));
}

static bool asks(peer *self, const char *tool, const char *wanted, size_t times)
{
    self->asked = 0;
    return calls(self, tool, NULL, wanted) &&
           (self->asked == times || fail(self, "asked %zu times", self->asked));
}

static bool case_elicitation(peer *self)
{
    return asks(self, "elicit", "accept Ada", 1);
}

static bool case_sampling(peer *self)
{
    return asks(self, "sample", "sampled words", 1);
}

static bool case_roots(peer *self)
{
    return asks(self, "roots", "file:///interop", 0);
}

static bool case_subscribe(peer *self)
{
    if (!bay_client_has(self->client, "resources.subscribe")) {
        return skip(self, "the server has no subscriptions");
    }
    bay_diag diag;
    self->updated = 0;
    bay_err err = bay_client_subscribe(self->client, "peer://note", &diag);
    if (err != BAY_OK) {
        return failed(self, err, &diag);
    }
    if (!calls(self, "touch", NULL, "touched") || !await(self, &self->updated, 1, "an update")) {
        return false;
    }
    err = bay_client_unsubscribe(self->client, "peer://note", &diag);
    return err == BAY_OK || failed(self, err, &diag);
}

static bool case_ping(peer *self)
{
    bay_diag diag;
    if (is_modern(self)) {
        return skip(self, "the revision has no ping");
    }
    bay_err err = bay_client_ping(self->client, &diag);
    return err == BAY_OK || failed(self, err, &diag);
}

static const struct {
    const char *name;
    bool (*run)(peer *self);
} cases[] = {
    {"revision", case_revision},
    {"lists", case_lists},
    {"text", case_text},
    {"structured", case_structured},
    {"tool-error", case_tool_error},
    {"image", case_image},
    {"resource-text", case_resource_text},
    {"resource-blob", case_resource_blob},
    {"resource-missing", case_resource_missing},
    {"prompt", case_prompt},
    {"completion", case_completion},
    {"progress-and-log", case_progress},
    {"elicitation", case_elicitation},
    {"sampling", case_sampling},
    {"roots", case_roots},
    {"subscribe", case_subscribe},
    {"ping", case_ping},
};

static bay_err connect_to(peer *self, char **words, bay_diag *diag)
{
    bay_client_options *options = bay_client_options_new();
    bay_client_options_name(options, "sdk_client", "1.0.0");
    bay_client_options_revisions(options, self->revision, self->revision);
    bay_client_options_timeout(options, 20000, 20000);
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM, on_elicited, self);
    bay_client_options_sampling(options, NULL, on_sampled, self);
    bay_client_options_root(options, "file:///interop", "interop");
    bay_client_options_on_updated(options, on_updated, self);
    bay_client_options_on_log(options, on_log, self);
    bool is_url = strncmp(words[0], "http://", 7) == 0;
    bay_err err = is_url
                      ? bay_client_connect(words[0], options, &self->client, diag)
                      : bay_client_spawn((const char *const *)words, options, &self->client, diag);
    bay_client_options_free(options);
    return err;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: sdk_client REVISION URL|COMMAND...\n");
        return 2;
    }
    peer self = {.revision = argv[1]};
    bay_diag diag;
    bay_err err = connect_to(&self, argv + 2, &diag);
    if (err != BAY_OK) {
        printf("not ok connect: %s: %s\n", bay_err_text(err), diag.text);
        return 1;
    }
    int status = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        self.is_skipped = false;
        if (cases[i].run(&self)) {
            printf("ok sdk-%s\n", cases[i].name);
        } else if (self.is_skipped) {
            printf("skip sdk-%s: %s\n", cases[i].name, self.why);
        } else {
            printf("not ok sdk-%s: %s\n", cases[i].name, self.why);
            status = 1;
        }
        fflush(stdout);
    }
    bay_client_close(self.client);
    return status;
}
