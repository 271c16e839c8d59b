/* What is looked at in an agent: its JSON-RPC interface. */
#include "base/check.h"
#include "base/str.h"
#include "cli/examiner.h"
#include "rpc/message.h"

enum { TASK_NOT_FOUND = -32001, VERSION_NOT_SUPPORTED = -32009 };

void conformance_a2a(examiner *self)
{
    bool is_first = str_eq(self->a2a_version, STR("1.0"));
    bay_str get = is_first ? STR("GetTask") : STR("tasks/get");
    const struct {
        conformance which;
        examiner_question question;
        int error;
    } rows[] = {
        {CONFORMANCE_UNKNOWN_METHOD,
         {.method = STR("patchbay/NoSuchMethod")},
         RPC_METHOD_NOT_FOUND},
        {CONFORMANCE_UNKNOWN_TASK,
         {.method = get, .key = STR("id"), .value = STR("patchbay-no-such-task")},
         TASK_NOT_FOUND},
        {CONFORMANCE_BAD_PARAMS, {.method = get}, RPC_INVALID_PARAMS},
        {CONFORMANCE_A2A_VERSION,
         {.method = get,
          .key = STR("id"),
          .value = STR("patchbay-no-such-task"),
          .version = STR("9.9")},
         VERSION_NOT_SUPPORTED},
        {CONFORMANCE_UNKNOWN_TASK,
         {.method = get,
          .key = STR("id"),
          .value = STR("patchbay-no-such-task"),
          .id = STR("\"7\"")},
         TASK_NOT_FOUND},
    };
    cli_wire_reply reply;
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(rows); i++) {
        bool is_asked = rows[i].which != CONFORMANCE_A2A_VERSION || is_first;
        if (is_asked && examiner_ask(self, &rows[i].question, &reply)) {
            examiner_expect(self, rows[i].which, rows[i].question.method, &reply, rows[i].error);
        }
    }
    examiner_question broken = {.method = STR("{"), .raw = STR("{"), .is_notification = true};
    if (self->code == CLI_EXIT_OK && examiner_send(self, &broken, &reply) &&
        examiner_error(&reply) != RPC_PARSE_ERROR && (reply.status < 400 || reply.status >= 500)) {
        examiner_note(self, CONFORMANCE_PARSE_ERROR, STR("{"), (bay_str){"", 0}, reply.text);
    }
}
