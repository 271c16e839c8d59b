/* step: the life of a session, message by message. */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/inventory.h"
#include "cli/print.h"
#include "cli/say.h"
#include "cli/steps.h"
#include "net/loop.h"

typedef struct stepping {
    cli_session *session;
    cli_inventory inventory;
    cli_steps steps;
    output device;
    bool is_asked[CLI_LIST_COUNT];
    cli_exit printed;
} stepping;

static void step_settle(stepping *self)
{
    cli_known known = {.counts = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}};
    mcp_client *client = cli_session_client(self->session);
    known.state = mcp_client_state_of(client);
    known.revision = mcp_client_revision(client);
    known.server_info = json_raw(mcp_client_server_info(client));
    known.capabilities = json_raw(mcp_client_server_capabilities(client));
    known.transport = cli_session_transport(self->session);
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        bool is_known = self->is_asked[i] && self->inventory.has[i];
        known.counts[i] = is_known ? self->inventory.lists[i].count : SIZE_MAX;
    }
    cli_steps_settle(&self->steps, &known);
    if (self->steps.text.len > 0 && self->printed == CLI_EXIT_OK) {
        bay_str text = buf_view(&self->steps.text);
        self->printed = self->steps.is_json
                            ? cli_print_json(&self->device, text, CLI_EXIT_OK)
                            : cli_print(&self->device, &self->steps.text, CLI_EXIT_OK);
    }
    buf_clear(&self->steps.text);
}

static void on_traced(void *user, bool is_outgoing, bay_str message, const mcp_field *fields,
                      size_t count)
{
    stepping *self = user;
    if (self->steps.has_message) {
        step_settle(self);
    }
    cli_steps_message(&self->steps, is_outgoing, message, fields, count, loop_time_ms());
}

static void on_turned(void *user)
{
    stepping *self = user;
    if (self->steps.has_message && !cli_steps_holds_answer(&self->steps)) {
        step_settle(self);
    }
}

static cli_exit ping(stepping *self)
{
    mcp_client *client = cli_session_client(self->session);
    const mcp_revision *revision = mcp_client_revision(client);
    if (revision == NULL || revision->era == MCP_MODERN) {
        return CLI_EXIT_OK; /* that era has none */
    }
    cli_answer answer;
    cli_request request = {.method = MCP_PING};
    cli_answer_init(&answer);
    cli_exit code = cli_session_call(self->session, &request, &answer);
    if (code == CLI_EXIT_OK && answer.kind == MCP_OUTCOME_ERROR) {
        code = cli_session_refused(self->session, STR("ping"), &answer);
    }
    cli_answer_fini(&answer);
    return code;
}

static cli_exit run(stepping *self)
{
    cli_exit first = CLI_EXIT_OK;
    for (size_t i = 0; i < CLI_LIST_COUNT; i++) {
        cli_exit code = cli_inventory_fetch_one(&self->inventory, self->session, (cli_list)i);
        self->is_asked[i] = true;
        if (self->steps.has_message) {
            step_settle(self);
        }
        bool is_ours = self->inventory.lists[i].error[0] != '\0'; /* the session is well */
        if (code != CLI_EXIT_OK && !is_ours) {
            return code;
        }
        first = first == CLI_EXIT_OK ? code : first;
    }
    cli_exit code = ping(self);
    return first == CLI_EXIT_OK ? code : first;
}

int cmd_step(const cli_arguments *arguments)
{
    stepping self = {0};
    cli_session_hooks hooks = {.traced = on_traced, .turned = on_turned, .user = &self};
    buf text;
    cli_print_init(&self.device, &text, arguments);
    cli_inventory_init(&self.inventory);
    cli_steps_init(&self.steps, &self.device, arguments->is_json, loop_time_ms());
    cli_exit code = cli_session_open(arguments, &hooks, &self.session);
    if (self.steps.has_message) {
        step_settle(&self);
    }
    code = code == CLI_EXIT_OK ? run(&self) : code;
    if (self.steps.has_message) {
        step_settle(&self);
    }
    code = cli_session_close(self.session, code);
    if (code == CLI_EXIT_OK) {
        code = self.printed;
    }
    cli_steps_fini(&self.steps);
    cli_inventory_fini(&self.inventory);
    buf_fini(&text);
    return (int)code;
}
