/* reload and drain: orders to a running gateway. */
#include "base/err.h"
#include "base/str.h"
#include "cli/admin_client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"
#include "json/json.h"

enum {
    RELOAD_MS = 40000, /* the gateway itself says after 30 s that it takes longer */
    DRAIN_MS = 10000,
};

/* "servers: added a, b; changed c"; nothing where nothing changed. True: something did. */
static bool put_entries(buf *out, json_val object, const char *what)
{
    static const char *const kinds[] = {"added", "changed", "removed"};
    bool is_any = false;
    arena memory;
    arena_init(&memory, CLI_ADMIN_ANSWER_BYTES);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        json_iter names = json_iter_of(json_get(object, str_of(kinds[i])));
        for (bool is_first = true; json_next(&names); is_first = false) {
            bay_str name = {"", 0};
            err_ignore(json_str(names.value, &memory, &name));
            if (is_first) {
                buf_printf(out, is_any ? "; %s " : "%s: %s ", is_any ? kinds[i] : what, kinds[i]);
                is_any = true;
            } else {
                buf_lit(out, ", ");
            }
            output_line(out, name);
        }
    }
    if (is_any) {
        buf_char(out, '\n');
    }
    arena_fini(&memory);
    return is_any;
}

static void put_reload(buf *out, json_val answer)
{
    bool has_servers = put_entries(out, json_get(answer, STR("servers")), "servers");
    bool has_agents = put_entries(out, json_get(answer, STR("agents")), "agents");
    buf_str(out, has_servers || has_agents
                     ? STR("reloaded\n")
                     : STR("reloaded; no server and no agent is another one\n"));
}

/* What a person is to know besides. */
static void say_remarks(json_val answer)
{
    uint64_t failures = 0;
    arena memory;
    arena_init(&memory, CLI_ADMIN_ANSWER_BYTES);
    json_iter warnings = json_iter_of(json_get(answer, STR("warnings")));
    while (json_next(&warnings)) {
        bay_str text = {"", 0};
        uint64_t line = 0;
        err_ignore(json_str(json_get(warnings.value, STR("text")), &memory, &text));
        err_ignore(json_uint64(json_get(warnings.value, STR("line")), &line));
        cli_say("warning: line %llu: %.*s", (unsigned long long)line, BAY_STR(text));
    }
    json_iter keys = json_iter_of(json_get(answer, STR("nextStart")));
    while (json_next(&keys)) {
        bay_str key = {"", 0};
        err_ignore(json_str(keys.value, &memory, &key));
        cli_say("%.*s: what the file says now is used from the next start on", BAY_STR(key));
    }
    if (json_uint64(json_get(answer, STR("failures")), &failures) == BAY_OK && failures > 0) {
        cli_say("%llu servers, agents or endpoints could not be set up: the gateway's log says why",
                (unsigned long long)failures);
    }
    arena_fini(&memory);
}

static cli_exit print_reload(const cli_arguments *arguments, bay_str body)
{
    json_doc document;
    output device;
    arena memory;
    buf text;
    cli_exit code = CLI_EXIT_PROTOCOL;
    cli_print_init(&device, &text, arguments);
    arena_init(&memory, CLI_ADMIN_ANSWER_BYTES);
    if (json_parse(&document, body, NULL, &memory, NULL) != BAY_OK) {
        cli_say("the answer of the gateway is no JSON");
    } else {
        say_remarks(json_root(&document));
        put_reload(&text, json_root(&document));
        code = cli_print(&device, &text, CLI_EXIT_OK);
    }
    arena_fini(&memory);
    buf_fini(&text);
    return code;
}

static cli_exit print_raw(const cli_arguments *arguments, bay_str body, cli_exit code)
{
    output device;
    buf text;
    cli_print_init(&device, &text, arguments);
    buf_fini(&text);
    return cli_print_json(&device, body, code);
}

static cli_exit report(const cli_arguments *arguments, int status, bay_str body)
{
    if (status != 200 && status != 202) {
        cli_exit code = cli_admin_say_error(status, body);
        return arguments->is_json ? print_raw(arguments, body, code) : code;
    }
    bool is_waiting = arguments->command == CLI_RELOAD && status == 202;
    if (is_waiting) {
        cli_say("the configuration is not in force yet: an earlier reload waits for calls of "
                "servers that it replaced, or a loop does not answer; the reload goes on");
    }
    cli_exit code = is_waiting ? CLI_EXIT_TIMEOUT : CLI_EXIT_OK;
    if (arguments->is_json) {
        return print_raw(arguments, body, code);
    }
    return arguments->command == CLI_RELOAD && !is_waiting ? print_reload(arguments, body) : code;
}

static int order(const cli_arguments *arguments, bay_str route, uint32_t timeout_ms)
{
    int status = 0;
    buf body;
    buf_init(&body, CLI_ADMIN_ANSWER_BYTES);
    cli_exit code = cli_admin_ask(arguments, STR("POST"), route, timeout_ms, &status, &body);
    if (code == CLI_EXIT_OK) {
        code = report(arguments, status, buf_view(&body));
    }
    buf_fini(&body);
    return code;
}

int cmd_reload(const cli_arguments *arguments)
{
    return order(arguments, STR("/v1/reload"), RELOAD_MS);
}

int cmd_drain(const cli_arguments *arguments)
{
    int code = order(arguments, STR("/v1/drain"), DRAIN_MS);
    if (code == CLI_EXIT_OK && !arguments->is_json) {
        cli_say("the gateway drains: it ends when its calls have ended");
    }
    return code;
}
