/* A server of one revision that has everything: what the matrix of tests/interop/eras puts behind
 * the gateway, and asks directly to know what the answer should be.
 *
 *     eras_fixture REVISION [--stdio | --http ADDRESS:PORT]
 *
 * REVISION is one of the five, or "all". Written on the public headers only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <patchbay/server.h>

enum { PAGE_SIZE = 5, LARGE_BYTES = 8 << 20, PATH_BYTES = 512, WAIT_TICKS = 3000 };

/* One red pixel. */
static const unsigned char png[] = {
    0x89, 'P',  'N',  'G',  13,   10,  26,  10,  0,   0,    0,    13,   'I', 'H',
    'D',  'R',  0,    0,    0,    1,   0,   0,   0,   1,    8,    2,    0,   0,
    0,    0x90, 0x77, 0x53, 0xde, 0,   0,   0,   12,  'I',  'D',  'A',  'T', 0x78,
    0xda, 0x63, 0xf8, 0xcf, 0xc0, 0,   0,   3,   1,   1,    0,    0xf7, 3,   0x41,
    0x43, 0,    0,    0,    0,    'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

/* Four samples of silence: PCM, mono, 8 kHz, 8 bits. */
static const unsigned char wav[] = {
    'R', 'I', 'F', 'F', 40,  0,   0,   0,   'W', 'A', 'V', 'E', 'f', 'm', 't', ' ',
    16,  0,   0,   0,   1,   0,   1,   0,   64,  31,  0,   0,   64,  31,  0,   0,
    1,   0,   8,   0,   'd', 'a', 't', 'a', 4,   0,   0,   0,   128, 128, 128, 128,
};

/* ---- content --------------------------------------------------------------------------------- */

static void echo(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply_str(call, bay_call_str(call, "text"));
}

/* Numbers and letters that a parser and a printer between two sides would change. */
static void structured(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "na\xc3\xafve \xe2\x98\x83 \xf0\x9f\x98\x80 \"quoted\" \\ \x01");
    bay_result_structured(result, "{\"count\":1.50,\"large\":9007199254740993,\"far\":1E+2,"
                                  "\"escaped\":\"\\u0041\\/\\u2028\",\"last\":null}");
    bay_result_meta(result, "{\"example.org/trace\":\"a-b\"}");
    bay_call_finish(call, result);
}

static void contents(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "Every kind of content.");
    bay_result_annotate(result, "{\"audience\":[\"user\"],\"priority\":0.50}");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_result_resource(result, "fixture://embedded", "text/plain", "An embedded resource.");
    bay_result_resource_blob(result, "fixture://bytes", "image/png", png, sizeof(png));
    bay_call_finish(call, result);
}

static void audio(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_audio(result, wav, sizeof(wav), "audio/wav");
    bay_call_finish(call, result);
}

static void links(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_link(result, "fixture://note", "The note", "text/plain");
    bay_call_finish(call, result);
}

static void large(bay_call *call, void *user)
{
    (void)user;
    static const char line[] = "0123456789 abcdefghijklmnopqrstuvwxyz \"quoted\" na\xc3\xafve\n";
    char *text = malloc(LARGE_BYTES);
    if (text == NULL) {
        bay_call_fail(call, "out of memory");
        return;
    }
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        text[i] = line[i % (sizeof(line) - 1)];
    }
    /* The last letter may be half a letter. */
    text[LARGE_BYTES - 1] = text[LARGE_BYTES - 2] = '.';
    bay_call_reply_str(call, (bay_str){text, LARGE_BYTES});
    free(text);
}

static void fail(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "It cannot be done: \xe2\x98\x83");
}

static void refuse(bay_call *call, void *user)
{
    (void)user;
    bay_call_error_json(call, -32050, "A code of its own",
                        bay_json_of("{\"detail\":[1.0,\"\\u00e9\"]}"));
}

/* ---- what happens during a call -------------------------------------------------------------- */

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void progress(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 1, 3, "first");
    bay_call_progress(call, 2, 3, "second");
    bay_call_progress(call, 2.5, 3, "nearly \xe2\x98\x83");
    bay_call_reply(call, "done");
}

static void logs(bay_call *call, void *user)
{
    (void)user;
    bay_call_log(call, "debug", "too little");
    bay_call_log(call, "warning", "enough");
    bay_call_log_json(call, "error", "fixture", bay_json_of("{\"code\":7.0,\"what\":\"\\u2603\"}"));
    bay_call_reply(call, "logged");
}

/* What `hang` heard: a file each in the folder ERAS_MARKS, since the call that asks may reach
 * another process. */
static void mark_path(bay_str name, const char *what, char *out, size_t room)
{
    const char *folder = getenv("ERAS_MARKS");
    snprintf(out, room, "%s/%.*s.%s", folder != NULL ? folder : "/tmp", BAY_STR(name), what);
}

static void mark(bay_str name, const char *what)
{
    char path[PATH_BYTES];
    mark_path(name, what, path, sizeof(path));
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fclose(file);
    }
}

static bool is_marked(bay_str name, const char *what)
{
    char path[PATH_BYTES];
    mark_path(name, what, path, sizeof(path));
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        fclose(file);
    }
    return file != NULL;
}

/* Ends when it is cancelled, else after half a minute. */
static void hang(bay_call *call, void *user)
{
    (void)user;
    bay_str name = bay_call_str(call, "mark");
    mark(name, "started");
    bay_call_progress(call, 1, -1, "it hangs");
    for (size_t i = 0; i < WAIT_TICKS && !bay_call_is_cancelled(call); i++) {
        sleep_ms(10);
    }
    if (bay_call_is_cancelled(call)) {
        mark(name, "cancelled");
    }
    bay_call_reply(call, "it was left alone");
}

static void heard(bay_call *call, void *user)
{
    (void)user;
    bay_str name = bay_call_str(call, "mark");
    const char *what = is_marked(name, "cancelled") ? "cancelled"
                       : is_marked(name, "started") ? "started"
                                                    : "nothing";
    bay_call_reply(call, what);
}

/* ---- questions ------------------------------------------------------------------------------- */

static const char name_form[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"title\":\"Name\","
    "\"description\":\"Who you are\"},\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":150},"
    "\"agrees\":{\"type\":\"boolean\",\"default\":true}},\"required\":[\"name\"]}";

static const char *action_text(const bay_answer *answer)
{
    static const char *const texts[] = {
        [BAY_ACTION_NONE] = "no answer",
        [BAY_ACTION_ACCEPT] = "accept",
        [BAY_ACTION_DECLINE] = "decline",
        [BAY_ACTION_CANCEL] = "cancel",
    };
    return texts[bay_answer_action(answer)];
}

static void tell_form(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str content = bay_answer_content(answer);
    bay_call_replyf(call, "%s %.*s", action_text(answer), BAY_STR(content));
}

static void ask_form(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "who");
    bay_call_elicit_schema(call, "Who are you? \xe2\x98\x83", name_form, tell_form, NULL);
}

static void ask_url(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "page");
    bay_call_elicit_url(call, "Please sign in", "https://example.org/sign?a=1&b=2", "sign-1",
                        tell_form, NULL);
}

static void tell_sample(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    if (bay_answer_json(answer).len == 0) {
        bay_call_reply(call, "no answer");
        return;
    }
    bay_call_reply_str(call, bay_answer_json(answer));
}

static void sample(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "model");
    bay_call_sample(call, "Say something \xe2\x98\x83", 100, tell_sample, NULL);
}

static void sample_tools(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "model");
    bay_call_sample_json(
        call,
        bay_json_of(
            "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Which "
            "weather?\"}}],\"maxTokens\":50,\"tools\":[{\"name\":\"weather\",\"description\":"
            "\"Tells "
            "it.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":"
            "\"string\"}}}}],\"toolChoice\":{\"mode\":\"required\"}}"),
        tell_sample, NULL);
}

static void tell_roots(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_str first = bay_answer_root(answer, 0);
    bay_call_replyf(call, "%zu roots, the first: %.*s", bay_answer_root_count(answer),
                    BAY_STR(first));
}

static void ask_roots(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "roots");
    bay_call_roots(call, tell_roots, NULL);
}

/* Three questions at once: the last answer ends the call, until then the others are counted. */
static void take_part(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    (void)answer;
    char so_far[8];
    bay_str state = bay_call_remembered(call);
    int len = snprintf(so_far, sizeof(so_far), "%.*s.", BAY_STR(state));
    bay_call_remember(call, so_far, (size_t)len);
    if (len == 3) {
        bay_call_reply(call, "three answers");
    }
}

static void ask_three(bay_call *call, void *user)
{
    (void)user;
    bay_call_remember(call, "", 0);
    bay_call_question_key(call, "who");
    bay_call_elicit_schema(call, "Who are you?", name_form, take_part, NULL);
    bay_call_question_key(call, "model");
    bay_call_sample(call, "Say something", 10, take_part, NULL);
    bay_call_question_key(call, "roots");
    bay_call_roots(call, take_part, NULL);
}

static void tell_second(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_replyf(call, "first and second: %s", action_text(answer));
}

static void ask_second(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    bay_call_question_key(call, "second");
    bay_call_elicit_schema(call, "The second question", name_form, tell_second, NULL);
}

static void ask_twice(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "first");
    bay_call_elicit_schema(call, "The first question", name_form, ask_second, NULL);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void touch(bay_call *call, void *user)
{
    bay_server_updated(user, "fixture://note");
    bay_call_reply(call, "touched");
}

static void grow(bay_call *call, void *user)
{
    bay_tool_enable(user, bay_call_bool_or(call, "wanted", false));
    bay_call_reply(call, "done");
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void work(bay_call *call, void *user)
{
    (void)user;
    bay_call_task_status(call, "working on it");
    sleep_ms(50);
    bay_call_reply(call, "the work is done");
}

static void fail_task(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "the work cannot be done");
}

/* ---- registration ---------------------------------------------------------------------------- */

#define MARK_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"mark\":{\"type\":\"string\"}},\"required\":[\"mark\"]" \
    "}"

static void add_content(bay_server *server)
{
    bay_tool *tool = bay_server_tool_schema(
        server, "echo", "Says it again.",
        "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":["
        "\"text\"]}",
        echo, NULL);
    bay_tool_title(tool, "Echo");
    bay_tool_annotations(tool, "{\"title\":\"Echo\",\"readOnlyHint\":true,\"idempotentHint\":true,"
                               "\"openWorldHint\":false}");
    bay_tool_meta(tool, "{\"example.org/kind\":\"plain\"}");
    tool = bay_server_tool_schema(server, "structured", "Answers with structured content.", NULL,
                                  structured, NULL);
    bay_tool_output_schema(tool,
                           "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":\"number\"}},"
                           "\"required\":[\"count\"]}");
    bay_tool_icons(tool, "[{\"src\":\"https://example.org/icon.png\",\"mimeType\":\"image/png\","
                         "\"sizes\":[\"48x48\"]}]");
    bay_server_tool_schema(server, "contents", "Answers with every old kind of content.", NULL,
                           contents, NULL);
    bay_server_tool_schema(server, "audio", "Answers with audio.", NULL, audio, NULL);
    bay_server_tool_schema(server, "links", "Answers with a link.", NULL, links, NULL);
    bay_server_tool_schema(server, "large", "Answers with 8 MiB of text.", NULL, large, NULL);
    bay_server_tool_schema(server, "fail", "Fails.", NULL, fail, NULL);
    bay_server_tool_schema(server, "refuse", "Answers with an error.", NULL, refuse, NULL);
}

static void add_behaviour(bay_server *server)
{
    bay_server_tool_schema(server, "progress", "Reports its progress.", NULL, progress, NULL);
    bay_server_tool_schema(server, "logs", "Logs.", NULL, logs, NULL);
    bay_tool_blocking(
        bay_server_tool_schema(server, "hang", "Waits to be cancelled.", MARK_SCHEMA, hang, NULL));
    bay_server_tool_schema(server, "heard", "What became of a call of hang.", MARK_SCHEMA, heard,
                           NULL);
    bay_server_tool_schema(server, "ask_form", "Asks for a form.", NULL, ask_form, NULL);
    bay_server_tool_schema(server, "ask_url", "Asks for a visit.", NULL, ask_url, NULL);
    bay_server_tool_schema(server, "sample", "Asks the model.", NULL, sample, NULL);
    bay_server_tool_schema(server, "sample_tools", "Asks the model, with tools.", NULL,
                           sample_tools, NULL);
    bay_server_tool_schema(server, "ask_roots", "Asks for the roots.", NULL, ask_roots, NULL);
    bay_server_tool_schema(server, "ask_three", "Asks three things at once.", NULL, ask_three,
                           NULL);
    bay_server_tool_schema(server, "ask_twice", "Asks one thing after the other.", NULL, ask_twice,
                           NULL);
    bay_server_tool_schema(server, "touch", "Announces an update of the note.", NULL, touch,
                           server);
    bay_tool *grown =
        bay_server_tool_schema(server, "grown", "Is there after grow.", NULL, echo, NULL);
    bay_tool_enable(grown, false);
    bay_server_tool_schema(
        server, "grow", "Adds a tool, or takes it away.",
        "{\"type\":\"object\",\"properties\":{\"wanted\":{\"type\":\"boolean\"}}}", grow, grown);
    bay_tool *tool =
        bay_server_tool_schema(server, "work", "Works, as a task too.", NULL, work, NULL);
    bay_tool_blocking(tool);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(
        bay_server_tool_schema(server, "work_ask", "Asks, as a task too.", NULL, ask_form, NULL),
        BAY_TASK_MODE_OPTIONAL);
    bay_tool_task(
        bay_server_tool_schema(server, "work_fail", "Fails, as a task too.", NULL, fail_task, NULL),
        BAY_TASK_MODE_OPTIONAL);
}

static void read_note(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "a note, na\xc3\xafve \xe2\x98\x83");
}

static void read_pixel(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_blob(result, png, sizeof(png));
    bay_call_finish(call, result);
}

static void read_item(bay_call *call, void *user)
{
    (void)user;
    bay_str id = bay_call_variable(call, "id");
    if (id.len == 4 && memcmp(id.at, "none", 4) == 0) {
        bay_call_not_found(call);
        return;
    }
    bay_call_replyf(call, "item %.*s", BAY_STR(id));
}

static void greet(bay_call *call, void *user)
{
    (void)user;
    bay_str name = bay_call_str(call, "name");
    bay_result *result = bay_result_new(call);
    bay_result_message(result, "user");
    bay_result_textf(result, "Greet %.*s", BAY_STR(name));
    bay_result_message(result, "assistant");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_call_finish(call, result);
}

static void complete(bay_call *call, void *user)
{
    (void)user;
    static const char *const names[] = {"Ada", "Alan", "Grace"};
    bay_str start = bay_call_str(call, "value");
    bay_result *result = bay_result_new(call);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(names[i], start.at != NULL ? start.at : "", start.len) == 0) {
            bay_result_value(result, names[i]);
        }
    }
    bay_result_more(result, 17);
    bay_call_finish(call, result);
}

static void add_resources_and_prompts(bay_server *server)
{
    bay_resource *note = bay_server_resource(server, "fixture://note", "note", "A note.",
                                             "text/plain", read_note, NULL);
    bay_resource_title(note, "The note");
    bay_resource_annotations(note, "{\"audience\":[\"user\"],\"priority\":0.50}");
    bay_resource_size(note, 16);
    bay_server_resource(server, "fixture://pixel", "pixel", "A pixel.", "image/png", read_pixel,
                        NULL);
    bay_server_template(server, "fixture://item/{id}", "item", "One of many.", "text/plain",
                        read_item, NULL);
    bay_server_template(server, "fixture://other/{id}", "other", "One of many others.",
                        "text/plain", read_item, NULL);
    bay_prompt *prompt = bay_server_prompt(
        server, "greet", "Greets somebody.",
        (const bay_field[]){
            {.name = "name", .type = BAY_TYPE_STRING, .description = "Whom", .is_required = true},
            {0}},
        greet, NULL);
    bay_prompt_title(prompt, "Greeting");
    bay_server_prompt(server, "ask", "Asks for a form first.", NULL, ask_form, NULL);
    bay_server_completion(server, complete, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: eras_fixture REVISION|all [--stdio | --http ADDRESS:PORT]\n");
        return 2;
    }
    bay_server *server = bay_server_new("eras-fixture", "1.0.0");
    bay_server_title(server, "Everything, in one revision");
    bay_server_instructions(server, "Ask for anything.");
    bay_server_set(server, BAY_SERVER_SETTING_PAGE_SIZE, PAGE_SIZE);
    bay_server_set(server, BAY_SERVER_SETTING_TASK_POLL_MS, 20);
    if (strcmp(argv[1], "all") != 0) {
        bay_server_revisions(server, argv[1], argv[1]);
    }
    add_content(server);
    add_behaviour(server);
    add_resources_and_prompts(server);
    argv[1] = argv[0];
    return bay_server_main(server, argc - 1, argv + 1);
}
