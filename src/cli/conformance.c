#include "cli/conformance.h"

#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/definitions.h"
#include "cli/examiner.h"
#include "cli/say.h"

/* ---- the JSON-RPC interface of a card -------------------------------------------------------- */

static bay_str text_of(json_val value, arena *memory)
{
    bay_str text = {"", 0};
    if (json_kind_of(value) == JSON_STRING) {
        err_ignore(json_str(value, memory, &text));
    }
    return text;
}

static bool take_interface(examiner *self, json_val card, arena *memory, bay_str *out_url)
{
    json_iter iter = json_iter_of(json_get(card, STR("supportedInterfaces")));
    while (json_next(&iter)) {
        json_val one = iter.value;
        if (str_eq(text_of(json_get(one, STR("protocolBinding")), memory), STR("JSONRPC"))) {
            *out_url = text_of(json_get(one, STR("url")), memory);
            self->a2a_version = text_of(json_get(one, STR("protocolVersion")), memory);
            return out_url->len > 0;
        }
    }
    bay_str preferred = text_of(json_get(card, STR("preferredTransport")), memory);
    *out_url = text_of(json_get(card, STR("url")), memory);
    self->a2a_version = STR("0.3");
    return out_url->len > 0 && (preferred.len == 0 || str_eq(preferred, STR("JSONRPC")));
}

static cli_exit examine_agent(examiner *self, const cli_arguments *arguments)
{
    cli_definitions definitions;
    cli_arguments to = *arguments;
    cli_exit code = cli_definitions_load(&definitions, arguments);
    json_val card = definitions.all.count > 0 ? definitions.all.items[0].value : JSON_NONE;
    if (code == CLI_EXIT_OK && !take_interface(self, card, &definitions.memory, &to.target)) {
        cli_say("%.*s: its card has no JSON-RPC interface, and only those are examined",
                BAY_STR(arguments->target));
        code = CLI_EXIT_USAGE;
    }
    to.target_kind = CLI_TARGET_URL;
    code = code == CLI_EXIT_OK ? cli_target_resolve(&self->target, &to) : code;
    code = code == CLI_EXIT_OK ? cli_wire_open(&self->target, to.target, &self->wire) : code;
    if (code == CLI_EXIT_OK) {
        conformance_a2a(self);
        code = self->code;
    }
    cli_wire_close(self->wire);
    cli_target_fini(&self->target);
    cli_definitions_fini(&definitions);
    return code;
}

static cli_exit examine_server(examiner *self, const cli_arguments *arguments)
{
    cli_exit code = cli_target_resolve(&self->target, arguments);
    code = code == CLI_EXIT_OK ? cli_wire_open(&self->target, (bay_str){"", 0}, &self->wire) : code;
    if (code == CLI_EXIT_OK) {
        conformance_mcp(self);
        code = self->code;
    }
    cli_wire_close(self->wire);
    cli_target_fini(&self->target);
    return code;
}

cli_exit cli_conformance_run(const cli_arguments *arguments, bay_str server, trust_findings *out,
                             trust_silences *silences)
{
    examiner self = {.findings = out,
                     .silences = silences,
                     .server = server,
                     .capabilities = JSON_NONE,
                     .code = CLI_EXIT_OK};
    cli_log_open(arguments->verbosity > 1 ? LOG_DEBUG : LOG_WARN, CONFIG_LOG_TEXT);
    return arguments->target_kind == CLI_TARGET_AGENT ? examine_agent(&self, arguments)
                                                      : examine_server(&self, arguments);
}
