/* Results of tools against the outputSchema that the server's list has for them. */
#include "unit/sdk/client_peer.h"

#include "base/str.h"
#include "sdk/client_parts.h"

#define RESULT(members) "{\"resultType\":\"complete\",\"content\":[]," members "}"
#define GIVES(value) RESULT("\"structuredContent\":" value)

static const struct {
    const char *tool, *result;
    const char *fault; /* NULL: none */
} cases[] = {
    {"object", GIVES("{\"n\":\"x\"}"), "breaks its outputSchema: /n must be an integer"},
    {"object", GIVES("[1]"), "breaks its outputSchema: the value must be an object"},
    {"object", RESULT("\"isError\":false"), "its result no structuredContent"},
    {"array", GIVES("[\"a\",1]"), "breaks its outputSchema: /1 must be a string"},
    {"never", GIVES("null"), "breaks its outputSchema"},
    {"broken", GIVES("{}"), "its outputSchema cannot be used: "},
    {"object", GIVES("{\"n\":1}"), NULL},
    {"object", RESULT("\"isError\":true"), NULL},
    {"object", RESULT("\"isError\":true,\"structuredContent\":7"), NULL},
    {"array", GIVES("[]"), NULL},
    {"text", GIVES("\"t\""), NULL},
    {"plain", GIVES("{\"n\":\"x\"}"), NULL},
    {"unlisted", GIVES("{\"n\":\"x\"}"), NULL},
};

static const char tools[] =
    "{\"tools\":["
    "{\"name\":\"object\",\"outputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
    "\"integer\"}},\"required\":[\"n\"]}},"
    "{\"name\":\"array\",\"outputSchema\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
    "{\"name\":\"text\",\"outputSchema\":{\"type\":\"string\"}},"
    "{\"name\":\"never\",\"outputSchema\":false},"
    "{\"name\":\"broken\",\"outputSchema\":{\"type\":7}},"
    "{\"name\":\"plain\"}]}";

static void answers(peer *self, const peer_message *message)
{
    if (peer_modern(self, message)) {
        return;
    }
    peer_result(self, message, "",
                peer_is(message, "tools/list") ? tools : cases[peer_number(self)].result);
}

typedef struct lines {
    int count;
    char last[512];
} lines;

static void on_line(bay_log_level level, const char *component, const char *text, void *user)
{
    lines *self = user;
    (void)level, (void)component;
    self->count++;
    (void)snprintf(self->last, sizeof(self->last), "%s", text);
}

static bay_client *connect_to(peer *self, int check, lines *seen)
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_log_to(options, BAY_LOG_LEVEL_WARNING, on_line, seen);
    if (check >= 0) {
        bay_client_options_output(options, (bay_output_check)check);
    }
    if (bay_client_connect(self->url, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static void expect(bool is_true, size_t number, const char *text)
{
    if (!is_true) {
        fail_msg("case %zu: \"%s\"", number, text);
    }
}

static void run_cases(int check)
{
    peer server;
    lines seen = {0};
    peer_start(&server, answers, NULL, 0);
    bay_client *client = connect_to(&server, check, &seen);
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) { /* compiled, and compiled before */
        size_t k = i % ARRAY_LEN(cases);
        bay_diag diag = {0};
        bay_reply *reply = NULL;
        const char *fault = check != BAY_OUTPUT_CHECK_OFF ? cases[k].fault : NULL;
        bool is_refused = fault != NULL && check == BAY_OUTPUT_CHECK_REFUSE;
        peer_set_number(&server, (int)k);
        seen.count = 0;
        bay_err err = bay_client_call(client, cases[k].tool, NULL, &reply, &diag);
        expect(err == (is_refused ? BAY_ERR_PROTOCOL : BAY_OK), k, diag.text);
        expect(!is_refused || strstr(diag.text, fault) != NULL, k, diag.text);
        expect(seen.count == (fault != NULL && !is_refused), k, seen.last);
        expect(seen.count == 0 || strstr(seen.last, fault) != NULL, k, seen.last);
        if (err == BAY_OK) {
            bay_reply_free(reply);
        }
    }
    bay_client_close(client);
    peer_stop(&server);
}

static void what_breaks_its_schema_is_logged(void **state)
{
    (void)state;
    run_cases(-1);
}

static void or_refused(void **state)
{
    (void)state;
    run_cases(BAY_OUTPUT_CHECK_REFUSE);
}

static void or_not_checked(void **state)
{
    (void)state;
    run_cases(BAY_OUTPUT_CHECK_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_its_schema_is_logged),
        cmocka_unit_test(or_refused),
        cmocka_unit_test(or_not_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
