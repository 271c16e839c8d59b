/* A prompt with arguments, and completion of them. */
#include <patchbay/server.h>
#include <string.h>

static const char *const languages[] = {"French", "German", "Greek", "Gujarati", "Spanish"};

static void translate(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_message(result, "user");
    bay_result_textf(result, "Translate into %.*s: %.*s", BAY_STR(bay_call_str(call, "language")),
                     BAY_STR(bay_call_str(call, "text")));
    bay_result_message(result, "assistant");
    bay_result_text(result, "Here is the translation:");
    bay_call_finish(call, result);
}

static void complete(bay_call *call, void *user)
{
    bay_str argument = bay_call_str(call, "name");
    bay_str begun = bay_call_str(call, "value");
    bay_result *result = bay_result_new(call);
    (void)user;
    bool is_language = argument.len == 8 && memcmp(argument.at, "language", 8) == 0;
    for (size_t i = 0; is_language && i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (begun.len == 0 || strncmp(languages[i], begun.at, begun.len) == 0) {
            bay_result_value(result, languages[i]);
        }
    }
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("prompts", "1.0.0");
    bay_prompt *prompt = bay_server_prompt(
        server, "translate", "A text in another language.",
        "[{\"name\":\"language\",\"description\":\"Into which\",\"required\":true},"
        "{\"name\":\"text\",\"required\":true}]",
        translate, NULL);
    bay_prompt_title(prompt, "Translate");
    bay_server_completion(server, complete, NULL);
    return bay_server_main(server, argc, argv);
}
