/* A prompt with arguments. The languages are completed by the library, which knows the choices; the
 * style by a handler, because it depends on what the server knows. */
#include <patchbay/server.h>
#include <string.h>

static const char *const languages[] = {"French", "German", "Greek", "Gujarati", "Spanish", NULL};
static const bay_field arguments[] = {
    {"language", BAY_TYPE_STRING, "Into which", .is_required = true, .choices = languages},
    {"text", BAY_TYPE_STRING, "What", .is_required = true},
    {"style", BAY_TYPE_STRING, "As who would say it", .default_value = "a newspaper"},
    {0},
};

static void translate(bay_call *call, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_message(result, "user");
    bay_result_textf(result, "Translate into %.*s, as %.*s would say it: %.*s",
                     BAY_STR(bay_call_str(call, "language")), BAY_STR(bay_call_str(call, "style")),
                     BAY_STR(bay_call_str(call, "text")));
    bay_result_message(result, "assistant");
    bay_result_text(result, "Here is the translation:");
    bay_call_finish(call, result);
}

static void complete_style(bay_call *call, void *user)
{
    static const char *const styles[] = {"a lawyer", "a newspaper", "a pirate", "my grandmother"};
    bay_str begun = bay_call_str(call, "value");
    bay_result *result = bay_result_new(call);
    (void)user;
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
        if (bay_str_eq_c(bay_call_str(call, "name"), "style") &&
            strncmp(styles[i], begun.at != NULL ? begun.at : "", begun.len) == 0) {
            bay_result_value(result, styles[i]);
        }
    }
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("prompts", "1.0.0");
    bay_prompt *prompt = bay_server_prompt(server, "translate", "A text in another language.",
                                           arguments, translate, NULL);
    bay_prompt_title(prompt, "Translate");
    bay_server_completion(server, complete_style, NULL);
    return bay_server_main(server, argc, argv);
}
