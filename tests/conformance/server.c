/* The server that the official conformance suite is run against: every tool, resource and prompt it
 * asks for by name, written on the public header only, so that what passes here passes for anybody
 * who links the library. */
#include <patchbay/server.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* What answer_text answers with. */
static char simple_text[] = "This is a simple text response for testing.";
static char schema_text[] = "The arguments were taken.";
static char sampling_text[] = "The client declared sampling.";
static char static_text[] = "This is the content of the static text resource.";
static char watched_text[] = "This resource can be subscribed to.";
static char prompt_text[] = "This is a simple prompt for testing.";

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* ---- tools ----------------------------------------------------------------------------------- */

static void answer_text(bay_call *call, void *user)
{
    bay_call_reply(call, user);
}

static void answer_image(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_call_finish(call, result);
}

static void answer_audio(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_audio(result, wav, sizeof(wav), "audio/wav");
    bay_call_finish(call, result);
}

static void answer_embedded(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_resource(result, "test://embedded-resource", "text/plain",
                        "This is an embedded resource content.");
    bay_call_finish(call, result);
}

static void answer_mixed(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_text(result, "Multiple content types test:");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_result_resource(result, "test://mixed-content-resource", "application/json",
                        "{\"test\":\"data\",\"value\":123}");
    bay_call_finish(call, result);
}

static void answer_every_kind(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_text(result, "Every kind of content.");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_result_audio(result, wav, sizeof(wav), "audio/wav");
    bay_result_resource(result, "test://embedded-resource", NULL, "An embedded resource.");
    bay_result_link(result, "test://static-text", "Static text", "text/plain");
    bay_result_structured(result, "{\"count\":1.50}");
    bay_call_finish(call, result);
}

static void answer_logging(bay_call *call, void *user)
{
    (void)user;
    bay_call_log(call, "info", "Tool execution started");
    sleep_ms(50);
    bay_call_log(call, "info", "Tool processing data");
    sleep_ms(50);
    bay_call_log(call, "info", "Tool execution completed");
    bay_call_reply(call, "Tool with logging executed successfully");
}

static void answer_failure(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "This tool intentionally returns an error for testing");
}

static void answer_progress(bay_call *call, void *user)
{
    (void)user;
    bay_call_progress(call, 0, 100, "Started");
    sleep_ms(50);
    bay_call_progress(call, 50, 100, "Half way");
    sleep_ms(50);
    bay_call_progress(call, 100, 100, "Done");
    bay_call_reply(call, "Tool with progress executed successfully");
}

static void answer_region(bay_call *call, void *user)
{
    bay_str region = bay_call_str(call, "region");
    (void)user;
    bay_call_replyf(call, "The region is \"%.*s\".", BAY_STR(region));
}

/* Closes its stream, and answers a while later: to whoever comes back. */
static void answer_later(bay_call *call, void *user)
{
    (void)user;
    bay_call_release_stream(call, 500);
    sleep_ms(200);
    bay_call_reply(call, "Reconnection test completed successfully");
}

/* ---- tools that ask their client ------------------------------------------------------------- */

#define NAME_FORM                                                                                  \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":["          \
    "\"name\"]}"
#define OK_FORM                                                                                    \
    "{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":\"boolean\"}},\"required\":[\"ok\"]}"
#define COLOUR_FORM                                                                                \
    "{\"type\":\"object\",\"properties\":{\"color\":{\"type\":\"string\"}},\"required\":["         \
    "\"color\"]}"

static const char *action_text(const bay_answer *answer)
{
    static const char *const texts[] = {
        [BAY_ACTION_NONE] = "none",
        [BAY_ACTION_ACCEPT] = "accept",
        [BAY_ACTION_DECLINE] = "decline",
        [BAY_ACTION_CANCEL] = "cancel",
    };
    return texts[bay_answer_action(answer)];
}

static void tell_sample(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str text = bay_answer_text(answer);
    (void)user;
    bay_call_replyf(call, "LLM response: %.*s", BAY_STR(text));
}

static void ask_model(bay_call *call, void *user)
{
    char prompt[512];
    bay_str given = bay_call_str(call, "prompt");
    (void)user;
    snprintf(prompt, sizeof(prompt), "%.*s", BAY_STR(given));
    bay_call_sample(call, prompt, 100, tell_sample, NULL);
}

static void ask_capital(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "capital_question");
    bay_call_sample(call, "What is the capital of France?", 100, tell_sample, NULL);
}

static void tell_form(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str content = bay_answer_content(answer);
    (void)user;
    bay_call_replyf(call, "User response: action=%s, content=%.*s", action_text(answer),
                    BAY_STR(content));
}

static const char form_of_user[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
    "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}},"
    "\"required\":[\"username\",\"email\"]}";

static const char form_of_defaults[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\",\"description\":\"User name\",\"default\":\"John Doe\"},"
    "\"age\":{\"type\":\"integer\",\"description\":\"User age\",\"default\":30},"
    "\"score\":{\"type\":\"number\",\"description\":\"User score\",\"default\":95.5},"
    "\"status\":{\"type\":\"string\",\"description\":\"User status\","
    "\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
    "\"verified\":{\"type\":\"boolean\",\"description\":\"Verification status\","
    "\"default\":true}},\"required\":[]}";

static const char form_of_choices[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
    "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"value1\",\"title\":\"First\"},"
    "{\"const\":\"value2\",\"title\":\"Second\"}]},"
    "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\"],"
    "\"enumNames\":[\"Option one\",\"Option two\"]},"
    "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
    "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
    "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
    "{\"const\":\"value1\",\"title\":\"First\"},{\"const\":\"value2\",\"title\":\"Second\"}]}}},"
    "\"required\":[]}";

static char user_form[sizeof(form_of_user)];
static char default_form[sizeof(form_of_defaults)];
static char choice_form[sizeof(form_of_choices)];

static void ask_form(bay_call *call, void *user)
{
    char message[512];
    bay_str given = bay_call_str(call, "message");
    if (given.len == 0) {
        bay_call_elicit_schema(call, "Please review and update the form", user, tell_form, NULL);
        return;
    }
    snprintf(message, sizeof(message), "%.*s", BAY_STR(given));
    bay_call_elicit_schema(call, message, user, tell_form, NULL);
}

static void greet(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str name = bay_answer_str(answer, "name");
    (void)user;
    bay_call_replyf(call, "Hello, %.*s!", BAY_STR(name));
}

static void ask_name(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "user_name");
    bay_call_elicit_schema(call, "What is your name?", NAME_FORM, greet, NULL);
}

static void tell_roots(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str first = bay_answer_root(answer, 0);
    (void)user;
    bay_call_replyf(call, "%zu roots, the first: %.*s", bay_answer_root_count(answer),
                    BAY_STR(first));
}

static void ask_roots(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "client_roots");
    bay_call_roots(call, tell_roots, NULL);
}

static void confirm(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str state = bay_call_remembered(call);
    bay_str ok = bay_answer_str(answer, "ok");
    (void)user;
    bay_call_replyf(call, "%.*s (confirmed: %.*s)", BAY_STR(state), BAY_STR(ok));
}

static void ask_with_state(bay_call *call, void *user)
{
    (void)user;
    bay_call_remember(call, "state-ok", 8);
    bay_call_question_key(call, "confirm");
    bay_call_elicit_schema(call, "Please confirm", OK_FORM, confirm, NULL);
}

/* The answer that comes last ends the call: until then the others are kept in mind. */
static void take_part(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    char heard[8];
    bay_str state = bay_call_remembered(call);
    int len = snprintf(heard, sizeof(heard), "%.*s.", BAY_STR(state));
    bay_call_remember(call, heard, (size_t)len);
    if (len == 3) {
        bay_call_reply(call, "All three answers came");
    }
}

static void ask_three(bay_call *call, void *user)
{
    (void)user;
    bay_call_remember(call, "", 0);
    bay_call_question_key(call, "user_name");
    bay_call_elicit_schema(call, "What is your name?", NAME_FORM, take_part, NULL);
    bay_call_question_key(call, "greeting");
    bay_call_sample(call, "Generate a greeting", 50, take_part, NULL);
    bay_call_question_key(call, "client_roots");
    bay_call_roots(call, take_part, NULL);
}

static void tell_colour(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str colour = bay_answer_str(answer, "color");
    (void)user;
    bay_call_replyf(call, "The favourite colour is %.*s", BAY_STR(colour));
}

static void ask_colour(bay_call *call, const bay_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    bay_call_question_key(call, "step2");
    bay_call_elicit_schema(call, "Step 2: What is your favorite color?", COLOUR_FORM, tell_colour,
                           NULL);
}

static void ask_in_steps(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "step1");
    bay_call_elicit_schema(call, "Step 1: What is your name?", NAME_FORM, ask_colour, NULL);
}

/* Only what the client can be asked. */
static void ask_what_is_possible(bay_call *call, void *user)
{
    (void)user;
    if (bay_call_client_has(call, "sampling")) {
        ask_capital(call, NULL);
    } else if (bay_call_client_has(call, "elicitation")) {
        ask_name(call, NULL);
    } else {
        bay_call_reply(call, "This client can be asked nothing");
    }
}

static void prompt_context(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str context = bay_answer_str(answer, "context");
    (void)user;
    bay_call_replyf(call, "Use this context: %.*s", BAY_STR(context));
}

static void ask_context(bay_call *call, void *user)
{
    (void)user;
    bay_call_question_key(call, "user_context");
    bay_call_elicit_schema(
        call, "What context should the prompt use?",
        "{\"type\":\"object\",\"properties\":{\"context\":{\"type\":\"string\"}},"
        "\"required\":[\"context\"]}",
        prompt_context, NULL);
}

/* What comes and goes, so that a list that is said to have changed has. */
static struct {
    bay_server *server;
    bay_tool *tool;
    bay_prompt *prompt;
    bay_resource *resource;
    bool has_tool, has_prompt, has_resource;
} changing;

static void trigger_tools(bay_call *call, void *user)
{
    (void)user;
    changing.has_tool = !changing.has_tool;
    bay_tool_enable(changing.tool, changing.has_tool);
    bay_call_reply(call, "Listeners of the tool list were told");
}

static void trigger_prompts(bay_call *call, void *user)
{
    (void)user;
    changing.has_prompt = !changing.has_prompt;
    bay_prompt_enable(changing.prompt, changing.has_prompt);
    bay_call_reply(call, "Listeners of the prompt list were told");
}

static void trigger_resources(bay_call *call, void *user)
{
    (void)user;
    changing.has_resource = !changing.has_resource;
    bay_resource_enable(changing.resource, changing.has_resource);
    bay_server_updated(changing.server, "test://watched-resource");
    bay_call_reply(call, "Listeners of the resource list and of the watched resource were told");
}

static void add_changing(bay_server *server)
{
    changing.server = server;
    changing.tool = bay_server_tool_schema(server, "test_changing_tool", "Comes and goes.", NULL,
                                           answer_text, simple_text);
    changing.prompt = bay_server_prompt(server, "test_changing_prompt", "Comes and goes.", NULL,
                                        answer_text, prompt_text);
    changing.resource =
        bay_server_resource(server, "test://changing-resource", "Changing text", "Comes and goes.",
                            "text/plain", answer_text, static_text);
    bay_tool_enable(changing.tool, false);
    bay_prompt_enable(changing.prompt, false);
    bay_resource_enable(changing.resource, false);
}

static void add_content_tools(bay_server *server)
{
    /* The first tool is called without arguments by the header checks and has to succeed. */
    bay_server_tool_schema(server, "test_simple_text", "Answers with a text.", NULL, answer_text,
                           simple_text);
    bay_server_tool_schema(server, "test_image_content", "Answers with an image.", NULL,
                           answer_image, NULL);
    bay_server_tool_schema(server, "test_audio_content", "Answers with audio.", NULL, answer_audio,
                           NULL);
    bay_server_tool_schema(server, "test_embedded_resource", "Answers with an embedded resource.",
                           NULL, answer_embedded, NULL);
    bay_server_tool_schema(server, "test_multiple_content_types",
                           "Answers with a text, an image and a resource.", NULL, answer_mixed,
                           NULL);
    bay_tool *tool = bay_server_tool_schema(
        server, "test_every_content", "Answers with all of these.", NULL, answer_every_kind, NULL);
    bay_tool_title(tool, "Every kind of content");
    bay_tool_output_schema(tool, "{\"type\":\"object\",\"properties\":{\"count\":{\"type\":"
                                 "\"number\"}},\"required\":[\"count\"]}");
    bay_tool_annotations(tool, "{\"title\":\"Every kind\",\"readOnlyHint\":true,"
                               "\"idempotentHint\":true,\"openWorldHint\":false}");
    bay_server_tool_schema(server, "test_error_handling", "Always fails.", NULL, answer_failure,
                           NULL);
    bay_server_tool_schema(
        server, "json_schema_2020_12_tool",
        "Has an input schema that uses much of JSON Schema 2020-12.",
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
        "\"type\":\"object\","
        "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\","
        "\"properties\":{\"street\":{\"type\":\"string\"},"
        "\"city\":{\"type\":\"string\"}}}},"
        "\"properties\":{\"name\":{\"type\":\"string\"},"
        "\"address\":{\"$ref\":\"#/$defs/address\"},"
        "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
        "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
        "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},"
        "{\"required\":[\"email\"]}]}],"
        "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
        "\"required\":[\"contactMethod\"]},"
        "\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
        "\"additionalProperties\":false}",
        answer_text, schema_text);
}

static void add_behaviour_tools(bay_server *server)
{
    bay_tool *tool =
        bay_server_tool_schema(server, "test_tool_with_logging",
                               "Logs three messages while it works.", NULL, answer_logging, NULL);
    bay_tool_blocking(tool);
    tool = bay_server_tool_schema(server, "test_logging_tool",
                                  "Logs, if the request says from which level on.", NULL,
                                  answer_logging, NULL);
    bay_tool_blocking(tool);
    tool = bay_server_tool_schema(server, "test_tool_with_progress", "Reports its progress.", NULL,
                                  answer_progress, NULL);
    bay_tool_blocking(tool);
    tool = bay_server_tool_schema(server, "test_missing_capability", "Needs a client that samples.",
                                  NULL, answer_text, sampling_text);
    bay_tool_requires(tool, "sampling");
    tool = bay_server_tool_schema(server, "test_streaming_elicitation",
                                  "Needs a client that elicits; streams its progress.", NULL,
                                  answer_progress, NULL);
    bay_tool_requires(tool, "elicitation");
    bay_tool_blocking(tool);
    bay_server_tool_schema(server, "test_x_mcp_header", "Has an argument that a header repeats.",
                           "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
                           "\"x-mcp-header\":\"Region\"}}}",
                           answer_region, NULL);
    bay_server_tool_schema(server, "test_trigger_tool_change", "Announces a new list of tools.",
                           NULL, trigger_tools, NULL);
    bay_server_tool_schema(server, "test_trigger_prompt_change", "Announces a new list of prompts.",
                           NULL, trigger_prompts, NULL);
    bay_server_tool_schema(server, "test_trigger_resource_change",
                           "Announces a new list of resources and a new watched resource.", NULL,
                           trigger_resources, NULL);
}

static void add_asking_tools(bay_server *server)
{
    bay_server_tool_schema(server, "test_sampling", "Asks the client's model.",
                           "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\","
                           "\"description\":\"What to ask\"}},\"required\":[\"prompt\"]}",
                           ask_model, NULL);
    memcpy(user_form, form_of_user, sizeof(user_form));
    memcpy(default_form, form_of_defaults, sizeof(default_form));
    memcpy(choice_form, form_of_choices, sizeof(choice_form));
    bay_server_tool_schema(server, "test_elicitation", "Asks the user.",
                           "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\","
                           "\"description\":\"What to ask\"}},\"required\":[\"message\"]}",
                           ask_form, user_form);
    bay_server_tool_schema(server, "test_elicitation_sep1034_defaults",
                           "Asks the user, with a default for every field.", NULL, ask_form,
                           default_form);
    bay_server_tool_schema(server, "test_elicitation_sep1330_enums",
                           "Asks the user, with every kind of choice.", NULL, ask_form,
                           choice_form);
    bay_tool *tool =
        bay_server_tool_schema(server, "test_reconnection", "Closes its stream before it answers.",
                               NULL, answer_later, NULL);
    bay_tool_blocking(tool);
    bay_server_tool_schema(server, "test_input_required_result_elicitation", "Asks for a name.",
                           NULL, ask_name, NULL);
    bay_server_tool_schema(server, "test_input_required_result_sampling", "Asks for a capital.",
                           NULL, ask_capital, NULL);
    bay_server_tool_schema(server, "test_input_required_result_list_roots", "Asks for the roots.",
                           NULL, ask_roots, NULL);
    bay_server_tool_schema(server, "test_input_required_result_request_state",
                           "Keeps something in mind between two rounds.", NULL, ask_with_state,
                           NULL);
    bay_server_tool_schema(server, "test_input_required_result_tampered_state",
                           "Keeps something in mind that nobody may change.", NULL, ask_with_state,
                           NULL);
    bay_server_tool_schema(server, "test_input_required_result_multiple_inputs",
                           "Asks three things at once.", NULL, ask_three, NULL);
    bay_server_tool_schema(server, "test_input_required_result_multi_round",
                           "Asks one thing after the other.", NULL, ask_in_steps, NULL);
    bay_server_tool_schema(server, "test_input_required_result_capabilities",
                           "Asks only what the client declared.", NULL, ask_what_is_possible, NULL);
}

/* ---- resources ------------------------------------------------------------------------------- */

static void read_pixel(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_blob(result, png, sizeof(png));
    bay_call_finish(call, result);
}

static void read_data(bay_call *call, void *user)
{
    bay_str id = bay_call_variable(call, "id");
    (void)user;
    if (id.len == 0 || memchr(id.at, '"', id.len) != NULL || memchr(id.at, '\\', id.len) != NULL) {
        bay_call_not_found(call);
        return;
    }
    bay_call_replyf(call, "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}",
                    BAY_STR(id), BAY_STR(id));
}

static void add_resources(bay_server *server)
{
    bay_server_resource(server, "test://static-text", "Static text", "A text that never changes.",
                        "text/plain", answer_text, static_text);
    bay_server_resource(server, "test://static-binary", "Static image", "An image of one pixel.",
                        "image/png", read_pixel, NULL);
    bay_server_resource(server, "test://watched-resource", "Watched text",
                        "A text to subscribe to.", "text/plain", answer_text, watched_text);
    bay_server_template(server, "test://template/{id}/data", "Data by id",
                        "The data of the id in the address.", "application/json", read_data, NULL);
}

/* ---- a skill --------------------------------------------------------------------------------- */

static void add_file(bay_server *server, const char *path, const char *text)
{
    bay_server_skill_file(server, "pdf-forms", path, NULL, text, strlen(text));
}

static void add_skill_files(bay_server *server)
{
    add_file(server, "SKILL.md",
             "---\n"
             "name: pdf-forms\n"
             "description: Fills in PDF forms; for whoever has to send one back.\n"
             "license: Apache-2.0\n"
             "metadata:\n"
             "  version: \"1.0\"\n"
             "---\n"
             "# PDF forms\n\nRead references/FORMS.md, then run scripts/fill.py.\n");
    add_file(server, "references/FORMS.md", "# Forms\n\nEach field has a name and a type.\n");
    add_file(server, "scripts/fill.py", "print('filled in')\n");
}

/* A library without OpenSSL has no digests, and so no skills. */
static void add_skill(bay_server *server)
{
    bay_server *probe = bay_server_new("probe", "1");
    add_skill_files(probe);
    if (bay_server_check(probe, NULL) == BAY_OK) {
        add_skill_files(server);
    }
    bay_server_free(probe);
}

/* ---- prompts --------------------------------------------------------------------------------- */

static void prompt_arguments(bay_call *call, void *user)
{
    bay_str first = bay_call_str(call, "arg1");
    bay_str second = bay_call_str(call, "arg2");
    (void)user;
    bay_call_replyf(call, "Prompt with arguments: arg1='%.*s', arg2='%.*s'", BAY_STR(first),
                    BAY_STR(second));
}

static void prompt_resource(bay_call *call, void *user)
{
    bay_str uri = bay_call_str(call, "resourceUri");
    bay_result *result = bay_result_new(call);
    char text[1024];
    (void)user;
    snprintf(text, sizeof(text), "%.*s", BAY_STR(uri));
    bay_result_message(result, "user");
    bay_result_resource(result, text, "text/plain", "Embedded resource content for testing.");
    bay_result_message(result, "user");
    bay_result_text(result, "Please process the embedded resource above.");
    bay_call_finish(call, result);
}

static void prompt_image(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_message(result, "user");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_result_message(result, "user");
    bay_result_text(result, "Please look at the image above.");
    bay_call_finish(call, result);
}

static void complete_argument(bay_call *call, void *user)
{
    static const char *const values[] = {"paris", "park", "party", "testValue1", "testValue2"};
    bay_str start = bay_call_str(call, "value");
    bay_result *result = bay_result_new(call);
    (void)user;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (strlen(values[i]) >= start.len &&
            (start.len == 0 || memcmp(values[i], start.at, start.len) == 0)) {
            bay_result_value(result, values[i]);
        }
    }
    bay_call_finish(call, result);
}

static void add_prompts(bay_server *server)
{
    bay_server_prompt(server, "test_simple_prompt", "A prompt without arguments.", NULL,
                      answer_text, prompt_text);
    bay_server_prompt(server, "test_prompt_with_arguments", "A prompt of two arguments.",
                      (const bay_field[]){{.name = "arg1",
                                           .type = BAY_TYPE_STRING,
                                           .description = "The first",
                                           .is_required = true},
                                          {.name = "arg2",
                                           .type = BAY_TYPE_STRING,
                                           .description = "The second",
                                           .is_required = true},
                                          {0}},
                      prompt_arguments, NULL);
    bay_server_prompt(server, "test_prompt_with_embedded_resource",
                      "A prompt that holds a resource.",
                      (const bay_field[]){{.name = "resourceUri",
                                           .type = BAY_TYPE_STRING,
                                           .description = "The address it gets",
                                           .is_required = true},
                                          {0}},
                      prompt_resource, NULL);
    bay_server_prompt(server, "test_prompt_with_image", "A prompt that holds an image.", NULL,
                      prompt_image, NULL);
    bay_server_prompt(server, "test_input_required_result_prompt",
                      "A prompt that asks for its context.", NULL, ask_context, NULL);
    bay_server_completion(server, complete_argument, NULL);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void greet_plainly(bay_call *call, void *user)
{
    (void)user;
    bay_str name = bay_call_str(call, "name");
    bay_call_replyf(call, "Hello, %.*s!", BAY_STR(name));
}

static void compute(bay_call *call, void *user)
{
    double seconds = 0;
    (void)user;
    if (bay_call_has(call, "seconds") && bay_call_double(call, "seconds", &seconds) != BAY_OK) {
        seconds = 0;
    }
    for (int i = 0; i < seconds * 50 && !bay_call_is_cancelled(call); i++) {
        sleep_ms(20);
    }
    bay_call_replyf(call, "Computed %.*s.", BAY_STR(bay_call_str(call, "label")));
}

static void fail_job(bay_call *call, void *user)
{
    (void)user;
    bay_call_fail(call, "The job failed.");
}

static void break_job(bay_call *call, void *user)
{
    (void)user;
    bay_call_error(call, -32603, "The job broke.");
}

static const char confirm_form[] = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
                                   "\"string\"},\"confirm\":{\"type\":\"boolean\"}}}";

static void deleted(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_reply(call, bay_answer_action(answer) == BAY_ACTION_ACCEPT ? "Deleted." : "Kept.");
}

static void ask_to_delete(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_schema(call, "Delete the file?", confirm_form, deleted, NULL);
}

/* The second of two answers ends the call. */
static void count_answer(bay_call *call, const bay_answer *answer, void *user)
{
    bay_str before = bay_call_remembered(call);
    (void)answer;
    (void)user;
    if (before.len > 0) {
        bay_call_reply(call, "Both were answered.");
    } else {
        bay_call_remember(call, "1", 1);
    }
}

static void ask_both(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_schema(call, "What is the first?", confirm_form, count_answer, NULL);
    bay_call_elicit_schema(call, "What is the second?", confirm_form, count_answer, NULL);
}

static void greet_in_task(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    bay_call_become_task(call);
    bay_call_replyf(call, "Hello, %.*s!", BAY_STR(bay_answer_str(answer, "name")));
}

static void ask_then_task(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit_schema(call, "What is your name?", confirm_form, greet_in_task, NULL);
}

static void add_tasks(bay_server *server)
{
    bay_server_tool_schema(server, "greet", "Greets at once.",
                           "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}",
                           greet_plainly, NULL);
    bay_tool *tool = bay_server_tool_schema(
        server, "slow_compute", "Takes as long as it is told.",
        "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},"
        "\"label\":{\"type\":\"string\"}}}",
        compute, NULL);
    bay_tool_blocking(tool);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    tool = bay_server_tool_schema(server, "failing_job", "Fails, as a task only.", NULL, fail_job,
                                  NULL);
    bay_tool_task(tool, BAY_TASK_MODE_REQUIRED);
    tool = bay_server_tool_schema(server, "protocol_error_job", "Breaks.", NULL, break_job, NULL);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    tool = bay_server_tool_schema(
        server, "confirm_delete", "Asks before it deletes.",
        "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}}}", ask_to_delete,
        NULL);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    tool = bay_server_tool_schema(server, "multi_input", "Asks two things.", NULL, ask_both, NULL);
    bay_tool_task(tool, BAY_TASK_MODE_OPTIONAL);
    tool = bay_server_tool_schema(server, "test_tool_with_task", "Asks, then works.", NULL,
                                  ask_then_task, NULL);
    bay_tool_task(tool, BAY_TASK_MODE_BY_HANDLER);
}

/* --revision REVISION, where the first words are these: that one and no other. The tools that show
 * the tasks extension need 2026-07-28: a server of an earlier revision alone has none of them. */
int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("patchbay-conformance", bay_version());
    bool has_tasks = true;
    if (argc > 2 && strcmp(argv[1], "--revision") == 0) {
        bay_server_revisions(server, argv[2], argv[2]);
        has_tasks = strcmp(argv[2], "2026-07-28") >= 0;
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    add_content_tools(server);
    add_behaviour_tools(server);
    add_asking_tools(server);
    add_resources(server);
    add_skill(server);
    add_prompts(server);
    if (has_tasks) {
        add_tasks(server);
    }
    add_changing(server);
    return bay_server_main(server, argc, argv);
}
