/* What is looked at in a server of MCP. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/conformance.h"
#include "cli/examiner.h"
#include "cli/say.h"
#include "mcp/shape.h"
#include "rpc/message.h"

#define NOWHERE ((bay_str){"", 0})
#define UNKNOWN_VERSION "1999-01-01"

enum {
    QUIET_MS = 300,   /* how long it is looked whether a notification is answered */
    START_MS = 60000, /* for the first answer of a process, which may have to be installed */
};

static bool is_modern(const examiner *self)
{
    return self->revision != NULL && self->revision->era == MCP_MODERN;
}

static bool has(const examiner *self, bay_str capability)
{
    return mcp_capability(self->capabilities, capability).doc != NULL;
}

/* A request that every server of the era answers. */
static examiner_question harmless(const examiner *self)
{
    return (examiner_question){.method = is_modern(self) ? STR("server/discover") : STR("ping")};
}

/* ---- the beginning --------------------------------------------------------------------------- */

static bool reopen(examiner *self)
{
    cli_wire_close(self->wire);
    self->wire = NULL;
    self->session = NOWHERE;
    self->code = cli_wire_open(&self->target, NOWHERE, &self->wire);
    return self->code == CLI_EXIT_OK;
}

static bool discover(examiner *self)
{
    cli_wire_reply reply;
    examiner_question question = {.method = STR("server/discover")};
    if (self->target.newest < MCP_LATEST) {
        return false;
    }
    self->revision = mcp_revision_of(MCP_LATEST);
    if (examiner_send(self, &question, &reply) && reply.end == CLI_WIRE_ANSWERED &&
        json_is(json_get(examiner_result(&reply), STR("supportedVersions")), JSON_ARRAY)) {
        self->capabilities = json_get(examiner_result(&reply), STR("capabilities"));
        return true;
    }
    self->revision = NULL;
    return false;
}

static void initialized(examiner *self)
{
    cli_wire_reply reply;
    examiner_question question = {
        .method = STR("notifications/initialized"), .is_notification = true, .wait_ms = QUIET_MS};
    if (!examiner_send(self, &question, &reply)) {
        return;
    }
    if (examiner_is_http(self) && reply.status != 202) {
        examiner_note(self, CONFORMANCE_ACCEPTED, question.method, NOWHERE, reply.text);
    }
    if (reply.strangers > 0) {
        examiner_note(self, CONFORMANCE_ANSWERS_NOTIFICATION, question.method, NOWHERE,
                      reply.stranger);
    }
}

/* initialize by that revision; the one that was answered, or NULL. */
static const mcp_revision *initialize(examiner *self, bay_str version, cli_wire_reply *reply)
{
    bay_str text = NOWHERE;
    arena memory;
    examiner_question question = {
        .method = STR("initialize"), .version = version, .wait_ms = START_MS};
    if (!examiner_ask(self, &question, reply)) {
        return NULL;
    }
    arena_init(&memory, 4096);
    err_ignore(json_str(json_get(examiner_result(reply), STR("protocolVersion")), &memory, &text));
    const mcp_revision *found = mcp_revision_find(text);
    arena_fini(&memory);
    return found;
}

static void shake_hands(examiner *self)
{
    cli_wire_reply reply;
    mcp_revision_id newest =
        self->target.newest < MCP_LATEST_LEGACY ? self->target.newest : MCP_LATEST_LEGACY;
    const mcp_revision *revision = initialize(self, mcp_revision_of(newest)->text, &reply);
    if (self->code == CLI_EXIT_OK && reply.end != CLI_WIRE_ANSWERED) {
        return; /* which was noted */
    }
    if (self->code == CLI_EXIT_OK && (revision == NULL || revision->era != MCP_LEGACY)) {
        examiner_note(self, CONFORMANCE_HANDSHAKE, STR("initialize"), NOWHERE, reply.text);
        return;
    }
    if (self->code == CLI_EXIT_OK) {
        self->revision = revision;
        self->capabilities = json_get(examiner_result(&reply), STR("capabilities"));
        self->session = reply.session;
        initialized(self);
    }
}

/* A process that an unknown message ended is started once more. */
static void begin(examiner *self)
{
    if (!discover(self) && self->code == CLI_EXIT_OK && (examiner_is_http(self) || reopen(self))) {
        shake_hands(self);
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const struct {
    bay_str method;
    bay_str capability;
    bay_str member;
    mcp_shape_id item;
} lists[] = {
    {STR_INIT("tools/list"), STR_INIT("tools"), STR_INIT("tools"), MCP_SHAPE_TOOL},
    {STR_INIT("prompts/list"), STR_INIT("prompts"), STR_INIT("prompts"), MCP_SHAPE_PROMPT},
    {STR_INIT("resources/list"), STR_INIT("resources"), STR_INIT("resources"), MCP_SHAPE_RESOURCE},
    {STR_INIT("resources/templates/list"), STR_INIT("resources"), STR_INIT("resourceTemplates"),
     MCP_SHAPE_TEMPLATE},
};

static void look_at_items(examiner *self, size_t which, json_val items)
{
    json_iter iter = json_iter_of(items);
    mcp_shape_fault fault;
    for (size_t i = 0; i < CLI_CONFORMANCE_ITEMS && json_next(&iter); i++) {
        if (!mcp_shape_item(lists[which].item, self->revision->id, iter.value, &fault)) {
            examiner_note(self, CONFORMANCE_ITEM, lists[which].method, str_of(fault.place),
                          str_of(fault.text));
        }
    }
}

static void look_at_list(examiner *self, size_t which)
{
    cli_wire_reply reply;
    bay_str cursor = NOWHERE;
    arena memory;
    arena_init(&memory, 16 << 20);
    for (size_t page = 0; page < CLI_CONFORMANCE_PAGES; page++) {
        examiner_question question = {.method = lists[which].method,
                                      .key = cursor.len > 0 ? STR("cursor") : NOWHERE,
                                      .value = cursor};
        if (!examiner_ask(self, &question, &reply)) {
            break;
        }
        look_at_items(self, which, json_get(examiner_result(&reply), lists[which].member));
        json_val next = json_get(examiner_result(&reply), STR("nextCursor"));
        if (json_kind_of(next) != JSON_STRING || json_str(next, &memory, &cursor) != BAY_OK ||
            cursor.len == 0) {
            break;
        }
        if (page + 1 == CLI_CONFORMANCE_PAGES) {
            examiner_note(self, CONFORMANCE_PAGES, lists[which].method, STR("/nextCursor"), cursor);
        }
    }
    arena_fini(&memory);
}

/* ---- errors ---------------------------------------------------------------------------------- */

typedef struct refusal {
    conformance which;
    bay_str method;
    bay_str key;
    bay_str value;
    bay_str capability; /* "": of every server */
    int legacy;
    int modern;
} refusal;

static const refusal refusals[] = {
    {CONFORMANCE_UNKNOWN_METHOD, STR_INIT("patchbay/no-such-method"), STR_INIT(""), STR_INIT(""),
     STR_INIT(""), RPC_METHOD_NOT_FOUND, RPC_METHOD_NOT_FOUND},
    {CONFORMANCE_UNKNOWN_TOOL, STR_INIT("tools/call"), STR_INIT("name"),
     STR_INIT("patchbay-no-such-tool"), STR_INIT("tools"), RPC_INVALID_PARAMS, RPC_INVALID_PARAMS},
    {CONFORMANCE_UNKNOWN_PROMPT, STR_INIT("prompts/get"), STR_INIT("name"),
     STR_INIT("patchbay-no-such-prompt"), STR_INIT("prompts"), RPC_INVALID_PARAMS,
     RPC_INVALID_PARAMS},
    {CONFORMANCE_UNKNOWN_RESOURCE, STR_INIT("resources/read"), STR_INIT("uri"),
     STR_INIT("patchbay:no-such-resource"), STR_INIT("resources"), MCP_RESOURCE_NOT_FOUND,
     RPC_INVALID_PARAMS},
    {CONFORMANCE_BAD_CURSOR, STR_INIT("tools/list"), STR_INIT("cursor"),
     STR_INIT("patchbay-no-such-cursor"), STR_INIT("tools"), RPC_INVALID_PARAMS,
     RPC_INVALID_PARAMS},
};

/* Does it still answer? Else `which`, and a new process for what follows. */
static void expect_alive(examiner *self, conformance which, bay_str what)
{
    cli_wire_reply reply;
    examiner_question question = harmless(self);
    if (!examiner_send(self, &question, &reply) || reply.end == CLI_WIRE_ANSWERED) {
        return;
    }
    examiner_note(self, which, what, NOWHERE, NOWHERE);
    const mcp_revision *before = self->revision;
    if (reopen(self)) {
        begin(self);
    }
    self->revision = self->revision != NULL ? self->revision : before;
}

static void look_at_refusals(examiner *self)
{
    cli_wire_reply reply;
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(refusals); i++) {
        const refusal *row = &refusals[i];
        examiner_question question = {.method = row->method, .key = row->key, .value = row->value};
        if ((row->capability.len == 0 || has(self, row->capability)) &&
            examiner_ask(self, &question, &reply)) {
            examiner_expect(self, row->which, row->method, &reply,
                            is_modern(self) ? row->modern : row->legacy);
        } else if (reply.end == CLI_WIRE_CLOSED && self->code == CLI_EXIT_OK) {
            expect_alive(self, CONFORMANCE_ENDED, row->method);
        }
    }
}

/* ---- ids, notifications ---------------------------------------------------------------------- */

static void look_at_ids(examiner *self)
{
    static const bay_str ids[] = {STR_INIT("\"patchbay\""), STR_INIT("\"7\""),
                                  STR_INIT("9007199254740991")};
    cli_wire_reply reply;
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(ids); i++) {
        examiner_question question = harmless(self);
        question.id = ids[i];
        (void)examiner_ask(self, &question, &reply);
    }
}

static void look_at_ping(examiner *self)
{
    cli_wire_reply reply;
    examiner_question question = {.method = STR("ping")};
    if (!is_modern(self) && examiner_ask(self, &question, &reply) &&
        json_kind_of(examiner_result(&reply)) != JSON_OBJECT) {
        examiner_note(self, CONFORMANCE_PING, question.method, NOWHERE, reply.text);
    }
}

static void look_at_notifications(examiner *self)
{
    static const struct {
        bay_str method;
        bay_str key;
        conformance which;
    } rows[] = {
        {STR_INIT("notifications/cancelled"), STR_INIT("requestId"), CONFORMANCE_CANCEL},
        {STR_INIT("notifications/patchbay"), STR_INIT(""), CONFORMANCE_ANSWERS_NOTIFICATION},
    };
    cli_wire_reply reply;
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(rows); i++) {
        examiner_question question = {.method = rows[i].method,
                                      .key = rows[i].key,
                                      .value = STR("patchbay-no-such-request"),
                                      .is_notification = true,
                                      .wait_ms = QUIET_MS};
        if (examiner_send(self, &question, &reply) && reply.strangers > 0) {
            examiner_note(self, CONFORMANCE_ANSWERS_NOTIFICATION, rows[i].method, NOWHERE,
                          reply.stranger);
        }
        expect_alive(self, rows[i].which, rows[i].method);
    }
}

static void look_at_broken(examiner *self)
{
    cli_wire_reply reply;
    examiner_question question = {
        .method = STR("{"), .raw = STR("{"), .is_notification = true, .wait_ms = QUIET_MS};
    if (!examiner_send(self, &question, &reply)) {
        return;
    }
    if (examiner_is_http(self) && (reply.status < 400 || reply.status >= 500) &&
        examiner_error(&reply) != RPC_PARSE_ERROR) {
        examiner_note(self, CONFORMANCE_PARSE_ERROR, STR("{"), NOWHERE, reply.text);
    }
    expect_alive(self, CONFORMANCE_BROKEN_LINE, STR("{"));
}

/* ---- revisions ------------------------------------------------------------------------------- */

/* In a connection of its own, as a second initialize is none. */
static void look_at_negotiation(examiner *self)
{
    cli_wire_reply reply;
    if (is_modern(self)) {
        examiner_question question = {.method = STR("server/discover"),
                                      .version = STR(UNKNOWN_VERSION)};
        if (examiner_ask(self, &question, &reply)) {
            examiner_expect(self, CONFORMANCE_VERSION, question.method, &reply,
                            MCP_UNSUPPORTED_VERSION);
        }
        question = (examiner_question){.method = STR("tools/list"), .lacks_meta = true};
        if (has(self, STR("tools")) && examiner_ask(self, &question, &reply)) {
            examiner_expect(self, CONFORMANCE_META, question.method, &reply, RPC_INVALID_PARAMS);
        }
        return;
    }
    const mcp_revision *agreed = self->revision;
    if (reopen(self) && initialize(self, STR(UNKNOWN_VERSION), &reply) == NULL &&
        self->code == CLI_EXIT_OK) {
        examiner_note(self, CONFORMANCE_VERSION, STR("initialize"), NOWHERE, reply.text);
    }
    self->revision = agreed;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

/* A request that is to be refused by a status. */
static void expect_status(examiner *self, conformance which, const examiner_question *question,
                          int status)
{
    cli_wire_reply reply;
    if (examiner_send(self, question, &reply) && reply.status != status) {
        char shown[32];
        snprintf(shown, sizeof(shown), "status %d", reply.status);
        examiner_note(self, which, question->method, NOWHERE, str_of(shown));
    }
}

static void look_at_get(examiner *self)
{
    cli_wire_reply reply;
    examiner_question question = {.method = STR("GET"), .is_get = true};
    if (examiner_send(self, &question, &reply) && reply.status != 405 &&
        !(reply.status == 200 && str_starts(reply.content_type, STR("text/event-stream")))) {
        examiner_note(self, CONFORMANCE_GET, question.method, NOWHERE, reply.content_type);
    }
}

static void look_at_http(examiner *self)
{
    examiner_question question = harmless(self);
    question.field = STR("Origin");
    question.field_value = STR("https://patchbay.invalid");
    expect_status(self, CONFORMANCE_ORIGIN, &question, 403);
    question.field = STR("MCP-Protocol-Version");
    question.field_value = STR(UNKNOWN_VERSION);
    if (self->revision->id >= MCP_REV_2025_06_18) {
        expect_status(self, CONFORMANCE_VERSION_HEADER, &question, 400);
    }
    if (self->session.len > 0) {
        question.field = STR("Mcp-Session-Id");
        question.field_value = STR("patchbay-no-such-session");
        expect_status(self, CONFORMANCE_SESSION, &question, 404);
    }
    if (is_modern(self)) {
        question.field = STR("Mcp-Method");
        question.field_value = STR("tools/list");
        expect_status(self, CONFORMANCE_HEADER_MISMATCH, &question, 400);
    }
    look_at_get(self);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void conformance_mcp(examiner *self)
{
    begin(self);
    if (self->code != CLI_EXIT_OK || self->revision == NULL) {
        return;
    }
    look_at_ping(self);
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(lists); i++) {
        if (has(self, lists[i].capability)) {
            look_at_list(self, i);
        }
    }
    void (*const steps[])(examiner * self) = {look_at_ids, look_at_refusals, look_at_notifications,
                                              look_at_broken};
    for (size_t i = 0; self->code == CLI_EXIT_OK && i < ARRAY_LEN(steps); i++) {
        steps[i](self);
    }
    if (self->code == CLI_EXIT_OK && examiner_is_http(self)) {
        look_at_http(self);
    }
    if (self->code == CLI_EXIT_OK) {
        look_at_negotiation(self);
    }
}
