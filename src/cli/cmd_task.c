/* task: how a task of an agent stands, or what becomes of it; cancel: ends it. */
#include "base/str.h"
#include "cli/agent.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"

typedef struct looking {
    const cli_arguments *arguments;
    output device;
    buf text;
    cli_exit code; /* of printing */
} looking;

static void put_history(const looking *self, buf *out, const bay_caller_reply *response)
{
    size_t count = bay_caller_reply_history_count(response);
    for (size_t i = 0; i < count; i++) {
        const bay_message *message = bay_caller_reply_history(response, i);
        buf_str(out, bay_message_is_users(message) ? STR("> ") : STR("< "));
        output_line(out, bay_message_text(message));
        buf_char(out, '\n');
    }
    (void)self;
}

static void print_response(const bay_caller_reply *response, looking *self)
{
    if (self->code != CLI_EXIT_OK) {
        return;
    }
    if (self->arguments->is_json) {
        self->code = cli_print_json(&self->device, bay_caller_reply_json(response), CLI_EXIT_OK);
        return;
    }
    if (self->arguments->history > 0) {
        put_history(self, &self->text, response);
    }
    cli_agent_put(&self->device, &self->text, response);
    self->code = cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

static void print_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    print_response(event, user);
}

static bay_caller_request *make_operation(looking *self, bay_caller *caller)
{
    const cli_arguments *arguments = self->arguments;
    bay_caller_request *operation = NULL;
    if (arguments->command == CLI_CANCEL) {
        return bay_caller_request_task_cancel(caller, arguments->name);
    }
    if (arguments->is_subscription) {
        operation = bay_caller_request_subscribe(caller, arguments->name);
        bay_caller_request_on_event(operation, print_event, self);
        return operation;
    }
    operation = bay_caller_request_task(caller, arguments->name);
    bay_caller_request_history(operation, arguments->history);
    return operation;
}

static int task_command_look(const cli_arguments *arguments)
{
    looking self = {.arguments = arguments};
    cli_agent *agent = NULL;
    bay_caller_reply *response = NULL;
    cli_print_init(&self.device, &self.text, arguments);
    cli_exit code = cli_agent_open(arguments, &agent);
    if (code == CLI_EXIT_OK) {
        code = cli_agent_run(agent, make_operation(&self, cli_agent_caller(agent)), &response);
    }
    if (code == CLI_EXIT_OK && !arguments->is_subscription) {
        print_response(response, &self);
    }
    code = code == CLI_EXIT_OK ? self.code : code;
    if (code == CLI_EXIT_OK) {
        cli_exit told = cli_agent_say_state(response);
        code = arguments->command == CLI_CANCEL ? CLI_EXIT_OK : told;
    }
    bay_caller_reply_free(response);
    code = cli_agent_close(agent, code);
    buf_fini(&self.text);
    return (int)code;
}

int cmd_task(const cli_arguments *arguments)
{
    return task_command_look(arguments);
}

int cmd_cancel(const cli_arguments *arguments)
{
    return task_command_look(arguments);
}
