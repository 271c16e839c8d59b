/* send: a message for an agent, and what comes of it. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"

enum { PART_BYTES = 64 << 20 };

typedef struct sending {
    const cli_arguments *arguments;
    cli_agent *agent;
    bay_message *message;
    output device;
    buf text;
    cli_exit code; /* of printing */
} sending;

/* ---- the message ----------------------------------------------------------------------------- */

static cli_exit add_data(sending *self)
{
    const char *given = self->arguments->data;
    buf text;
    cli_exit code = CLI_EXIT_OK;
    if (given == NULL) {
        return code;
    }
    buf_init(&text, PART_BYTES);
    if (given[0] == '@') {
        code = cli_agent_read_file(given + 1, "--data", &text);
    } else {
        buf_str(&text, str_of(given));
    }
    buf_char(&text, '\0');
    if (code == CLI_EXIT_OK) {
        bay_message_add_data(self->message, text.err == BAY_OK ? text.at : "");
    }
    buf_fini(&text);
    return code;
}

/* What the name of a file says of it; NULL: nothing. */
static const char *media_type(const char *name)
{
    static const char *const known[][2] = {
        {".txt", "text/plain"},      {".md", "text/markdown"},    {".json", "application/json"},
        {".pdf", "application/pdf"}, {".png", "image/png"},       {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},     {".gif", "image/gif"},       {".webp", "image/webp"},
        {".svg", "image/svg+xml"},   {".html", "text/html"},      {".csv", "text/csv"},
        {".xml", "application/xml"}, {".zip", "application/zip"}, {".wav", "audio/wav"},
        {".mp3", "audio/mpeg"},      {".mp4", "video/mp4"},       {".yaml", "application/yaml"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (str_ends(str_of(name), str_of(known[i][0]))) {
            return known[i][1];
        }
    }
    return NULL;
}

static cli_exit add_file(sending *self, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *short_name = slash != NULL ? slash + 1 : name;
    buf bytes;
    if (strstr(name, "://") != NULL) {
        bay_message_add_url(self->message, name, short_name[0] != '\0' ? short_name : NULL,
                            media_type(name));
        return CLI_EXIT_OK;
    }
    buf_init(&bytes, PART_BYTES);
    cli_exit code = cli_agent_read_file(name, "--file", &bytes);
    if (code == CLI_EXIT_OK) {
        bay_message_add_bytes(self->message, bytes.at != NULL ? bytes.at : "", bytes.len,
                              short_name, media_type(name));
    }
    buf_fini(&bytes);
    return code;
}

static cli_exit fill_message(sending *self)
{
    cli_exit code = CLI_EXIT_OK;
    if (self->arguments->name != NULL) {
        bay_message_add_text(self->message, self->arguments->name);
    }
    code = add_data(self);
    for (size_t i = 0; code == CLI_EXIT_OK && i < self->arguments->file_count; i++) {
        code = add_file(self, self->arguments->files[i]);
    }
    return code;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void print_event(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    sending *self = user;
    if (self->code != CLI_EXIT_OK) {
        return;
    }
    if (self->arguments->is_json) {
        self->code = cli_print_json(&self->device, bay_caller_reply_json(event), CLI_EXIT_OK);
        return;
    }
    /* chunks of an artifact stand behind each other as they come */
    if (bay_caller_reply_kind_of(event) == BAY_CALLER_REPLY_KIND_ARTIFACT) {
        cli_agent_put_parts(&self->device, &self->text, bay_caller_reply_artifact(event, 0));
        bool is_whole = !bay_caller_reply_appends(event) || bay_caller_reply_is_last_chunk(event);
        if (is_whole && bay_caller_reply_is_last_chunk(event)) {
            buf_char(&self->text, '\n');
        }
    } else {
        cli_agent_put(&self->device, &self->text, event);
    }
    self->code = cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

static cli_exit print_response(sending *self, const bay_caller_reply *response)
{
    if (self->arguments->is_stream) {
        return self->code; /* it was shown as it came */
    }
    if (self->arguments->is_json) {
        return cli_print_json(&self->device, bay_caller_reply_json(response), CLI_EXIT_OK);
    }
    cli_agent_put(&self->device, &self->text, response);
    return cli_print(&self->device, &self->text, CLI_EXIT_OK);
}

static bay_caller_request *make_operation(sending *self)
{
    const cli_arguments *arguments = self->arguments;
    bay_caller_request *operation =
        bay_caller_request_send(cli_agent_caller(self->agent), self->message);
    bay_caller_request_for_task(operation, arguments->task);
    bay_caller_request_for_context(operation, arguments->context);
    bay_caller_request_for_skill(operation, arguments->skill);
    if (arguments->is_impatient) {
        bay_caller_request_return_immediately(operation);
    }
    if (arguments->is_stream) {
        bay_caller_request_on_event(operation, print_event, self);
    }
    return operation;
}

int cmd_send(const cli_arguments *arguments)
{
    sending self = {.arguments = arguments, .message = bay_message_new()};
    bay_caller_reply *response = NULL;
    cli_print_init(&self.device, &self.text, arguments);
    cli_exit code = fill_message(&self);
    code = code == CLI_EXIT_OK ? cli_agent_open(arguments, &self.agent) : code;
    if (code == CLI_EXIT_OK) {
        code = cli_agent_run(self.agent, make_operation(&self), &response);
    }
    if (code == CLI_EXIT_OK) {
        code = print_response(&self, response);
    }
    if (code == CLI_EXIT_OK) {
        code = cli_agent_say_state(response);
    }
    bay_caller_reply_free(response);
    bay_message_free(self.message);
    code = cli_agent_close(self.agent, code);
    buf_fini(&self.text);
    return (int)code;
}
