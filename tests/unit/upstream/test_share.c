/* Who shares a session with a server, as a table. */
#include "support/fake_upstream.h"

#include "upstream/share.h"

enum {
    FORM = MCP_INPUT_FORM,
    ROOTS = MCP_INPUT_ROOTS,
    ALL = MCP_INPUT_EVERYTHING,
};

typedef struct row {
    config_share share;
    int revision; /* -1: not known yet */
    bool ties;
    const char *method;
    const char *params;
    unsigned inputs;
    const char *identity;
    share_key wanted;
} row;

#define CALL "tools/call"

static const row rows[] = {
    /* nothing is decided before it is known how the server is spoken to */
    {CONFIG_SHARE_AUTO, -1, false, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_SESSION, -1, true, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    /* the stateless era has no sessions */
    {CONFIG_SHARE_AUTO, MCP_LATEST, false, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_SESSION,
     MCP_LATEST,
     true,
     CALL,
     NULL,
     ROOTS,
     "a",
     {SHARE_MAIN, ALL, false, false}},
    /* always: one for all */
    {CONFIG_SHARE_ALWAYS, 1, false, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_ALWAYS, 1, true, CALL, NULL, ROOTS, "a", {SHARE_MAIN, ALL, false, false}},
    /* session: one for each client, whatever it can be asked and whatever it calls */
    {CONFIG_SHARE_SESSION, 1, false, CALL, NULL, 0, "a", {SHARE_SHARED, 0, true, false}},
    {CONFIG_SHARE_SESSION, 1, true, CALL, NULL, FORM, "a", {SHARE_SHARED, FORM, true, false}},
    {CONFIG_SHARE_SESSION,
     1,
     true,
     "completion/complete",
     NULL,
     FORM,
     "a",
     {SHARE_SHARED, FORM, true, false}},
    /* … and where nobody has said whose call it is, as auto */
    {CONFIG_SHARE_SESSION, 1, false, CALL, NULL, 0, "", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_SESSION, 1, false, CALL, NULL, FORM, "", {SHARE_EXCLUSIVE, FORM, false, false}},
    /* auto: who cannot be asked anything shares one with everybody */
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, 0, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, 0, "a", {SHARE_MAIN, ALL, false, false}},
    /* … and so does what asks nobody, where nobody has said whose it is */
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, ALL, "", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, "resources/list", NULL, ALL, "", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO,
     1,
     false,
     "resources/templates/list",
     NULL,
     ALL,
     "",
     {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, "prompts/list", NULL, ALL, "", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO,
     1,
     false,
     "completion/complete",
     NULL,
     ALL,
     "",
     {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, "ping", NULL, ALL, "", {SHARE_MAIN, ALL, false, false}},
    /* … but a client's own lists are those of its own session */
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, ALL, "a", {SHARE_SHARED, ALL, true, false}},
    {CONFIG_SHARE_AUTO,
     1,
     true,
     "completion/complete",
     NULL,
     FORM,
     "a",
     {SHARE_SHARED, FORM, true, false}},
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, 0, "a", {SHARE_MAIN, ALL, false, false}},
    /* … and what must be found again when the call is over */
    {CONFIG_SHARE_AUTO, 1, false, "tasks/get", NULL, ALL, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO,
     1,
     false,
     CALL,
     "{'name':'x','task':{}}",
     ALL,
     "a",
     {SHARE_MAIN, ALL, false, false}},
    /* a client that can be asked has one of its own */
    {CONFIG_SHARE_AUTO,
     1,
     true,
     CALL,
     "{'name':'x'}",
     FORM,
     "a",
     {SHARE_SHARED, FORM, true, false}},
    {CONFIG_SHARE_AUTO, 1, true, "prompts/get", NULL, FORM, "a", {SHARE_SHARED, FORM, true, false}},
    {CONFIG_SHARE_AUTO,
     1,
     true,
     CALL,
     NULL,
     FORM | ROOTS,
     "a",
     {SHARE_SHARED, FORM | ROOTS, true, false}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, FORM, "a", {SHARE_SHARED, FORM, true, false}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, ROOTS, "a", {SHARE_SHARED, ROOTS, true, false}},
    /* nobody has said whose call it is: on a pipe a question does not find back */
    {CONFIG_SHARE_AUTO,
     1,
     false,
     "resources/read",
     NULL,
     FORM,
     "",
     {SHARE_EXCLUSIVE, FORM, false, false}},
    {CONFIG_SHARE_AUTO,
     1,
     true,
     "resources/read",
     NULL,
     FORM,
     "",
     {SHARE_SHARED, FORM, false, false}},
};

static const row stateless[] = {
    /* a principal without a session may be many clients: none works with the roots of another */
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, ROOTS, "a", {SHARE_EXCLUSIVE, ROOTS, true, false}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, ROOTS, "a", {SHARE_EXCLUSIVE, ROOTS, true, false}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, FORM, "a", {SHARE_SHARED, FORM, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, FORM, "a", {SHARE_EXCLUSIVE, FORM, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_SESSION, 1, true, CALL, NULL, ROOTS, "a", {SHARE_SHARED, ROOTS, true, false}},
};

/* The main session is the only client's: only what another set of inputs needs has another one. */
static const row of_one_client[] = {
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, FORM, "a", {SHARE_MAIN, FORM, false, false}},
    {CONFIG_SHARE_SESSION, 1, false, CALL, NULL, FORM, "a", {SHARE_MAIN, FORM, false, false}},
    {CONFIG_SHARE_ALWAYS, 1, true, CALL, NULL, FORM, "a", {SHARE_MAIN, FORM, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, 0, "", {SHARE_MAIN, FORM, false, false}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, ROOTS, "a", {SHARE_SHARED, ROOTS, true, false}},
};

/* A server at which each caller has a credential of his own: no session of its revisions is another's,
 * and what belongs to nobody goes through the gateway's. */
static const row callers[] = {
    {CONFIG_SHARE_AUTO, -1, true, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, MCP_LATEST, true, CALL, NULL, FORM, "a", {SHARE_MAIN, ALL, false, false}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, 0, "a", {SHARE_SHARED, ALL, false, true}},
    {CONFIG_SHARE_ALWAYS, 1, true, CALL, NULL, 0, "a", {SHARE_SHARED, ALL, false, true}},
    {CONFIG_SHARE_AUTO, 1, true, "tools/list", NULL, ALL, "a", {SHARE_SHARED, ALL, true, true}},
    {CONFIG_SHARE_AUTO, 1, true, "tools/list", NULL, ALL, "", {SHARE_SHARED, ALL, false, true}},
    {CONFIG_SHARE_AUTO, 1, true, "tasks/get", NULL, FORM, "a", {SHARE_SHARED, ALL, false, true}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, FORM, "a", {SHARE_SHARED, FORM, true, true}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, FORM, "", {SHARE_SHARED, FORM, false, true}},
    {CONFIG_SHARE_AUTO, 1, true, CALL, NULL, ROOTS, "a", {SHARE_SHARED, ROOTS, true, true}},
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, FORM, "", {SHARE_EXCLUSIVE, FORM, false, true}},
    {CONFIG_SHARE_SESSION, 1, true, CALL, NULL, 0, "a", {SHARE_SHARED, 0, true, true}},
    {CONFIG_SHARE_SESSION, 1, true, CALL, NULL, 0, "", {SHARE_SHARED, ALL, false, true}},
};

/* The main session is the gateway's there, also where there is one client. */
static const row caller_of_one_client[] = {
    {CONFIG_SHARE_AUTO, 1, false, CALL, NULL, FORM, "a", {SHARE_SHARED, FORM, true, true}},
    {CONFIG_SHARE_AUTO, 1, false, "tools/list", NULL, FORM, "a", {SHARE_SHARED, FORM, true, true}},
};

/* What is the same for a whole table. */
typedef struct circumstances {
    bool is_stateless;
    bool has_one_client;
    bool are_callers;
} circumstances;

static void check(const row *table, size_t count, circumstances all)
{
    for (size_t i = 0; i < count; i++) {
        const row *at = &table[i];
        arena memory;
        json_doc doc;
        char *params = at->params != NULL ? testing_quotes(at->params) : NULL;
        arena_init(&memory, 1 << 16);
        mcp_call_spec spec = {.method = str_of(at->method)};
        if (params != NULL) {
            assert_int_equal(json_parse(&doc, str_of(params), NULL, &memory, NULL), BAY_OK);
            spec.params = json_root(&doc);
        }
        share_server server = {
            .share = at->share,
            .revision = at->revision >= 0 ? mcp_revision_of((mcp_revision_id)at->revision) : NULL,
            .ties = at->ties,
            .are_callers = all.are_callers,
            .has_one_client = all.has_one_client,
            .main_inputs = all.has_one_client ? FORM : ALL};
        upstream_affinity affinity = {.inputs = at->inputs,
                                      .identity = str_of(at->identity),
                                      .is_stateless = all.is_stateless};
        share_key is = upstream_share_key(&server, &spec, &affinity);
        if (is.kind != at->wanted.kind || is.inputs != at->wanted.inputs ||
            is.is_personal != at->wanted.is_personal || is.has_rights != at->wanted.has_rights) {
            fail_msg("row %zu: kind %d, inputs %u, personal %d", i, (int)is.kind, is.inputs,
                     is.is_personal);
        }
        arena_fini(&memory);
        mem_free(params);
    }
}

static void the_table(void **state)
{
    (void)state;
    check(rows, ARRAY_LEN(rows), (circumstances){0});
    check(of_one_client, ARRAY_LEN(of_one_client), (circumstances){.has_one_client = true});
}

static void the_table_of_stateless_clients(void **state)
{
    (void)state;
    check(stateless, ARRAY_LEN(stateless), (circumstances){.is_stateless = true});
}

static void the_table_of_callers(void **state)
{
    (void)state;
    check(callers, ARRAY_LEN(callers), (circumstances){.are_callers = true});
    check(caller_of_one_client, ARRAY_LEN(caller_of_one_client),
          (circumstances){.are_callers = true, .has_one_client = true});
}

static void lists_are_nobodys(void **state)
{
    (void)state;
    mcp_call_spec spec = {.method = STR("tools/list")};
    share_server server = {.revision = mcp_revision_of(1), .are_callers = true};
    upstream_affinity affinity = {.is_own = true};
    share_key is = upstream_share_key(&server, &spec, &affinity);
    assert_int_equal(is.kind, SHARE_MAIN);
    assert_false(is.has_rights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table), cmocka_unit_test(the_table_of_stateless_clients),
        cmocka_unit_test(the_table_of_callers), cmocka_unit_test(lists_are_nobodys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
