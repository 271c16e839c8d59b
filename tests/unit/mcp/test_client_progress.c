/* Progress of what outlives its call: the token of the call that began a task of 2025-11-25 goes
 * on, and whoever waits for the task hears of it. */
#include "client_fixture.h"

static fixture fx;

#define PROGRESS                                                                                   \
    "{'jsonrpc':'2.0','method':'notifications/"                                                    \
    "progress','params':{'progressToken':#,'progress':1}}"

static void tell(uint64_t token)
{
    fx_line(&fx, token, PROGRESS);
}

static void an_heir_hears_what_its_ancestor_would(void **state)
{
    (void)state;
    static fx_name first = {.text = "first"}, progress_call = {.text = "progress_call"};
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, NULL);
    mcp_call_spec spec = fx_spec(&fx, "tools/call", "{'name':'a','task':{}}");
    spec.wants_progress = true;
    assert_int_equal(fx_try(&fx, &first, &spec, NULL), BAY_OK);
    uint64_t token = fx_next(&fx)->exchange;
    fx_line(&fx, token,
            "{'jsonrpc':'2.0','id':#,'result':{'task':{'taskId':'t','status':'working',"
            "'createdAt':'t','lastUpdatedAt':'t','ttl':null}}}");
    fx_saw(&fx, "first result {'task':{'taskId':'t','status':'working','createdAt':'t',"
                "'lastUpdatedAt':'t','ttl':null}}\n");
    assert_int_equal(first.progress_token, token);
    tell(token); /* nobody waits */
    fx_saw(&fx, "");
    spec = fx_spec(&fx, "tasks/result", "{'taskId':'t'}");
    spec.progress_of = first.progress_token;
    mcp_call *call = NULL;
    assert_int_equal(fx_try(&fx, &progress_call, &spec, &call), BAY_OK);
    fx_record *sent = fx_next(&fx);
    uint64_t id = sent->exchange;
    tell(token);
    fx_saw_part(&fx, "progress_call notified notifications/progress");
    tell(id); /* it gave no token of its own */
    tell(0);
    fx_saw(&fx, "");
    fx_line(&fx, id, FX_RESULT("{'content':[]}"));
    fx_saw(&fx, "progress_call result {'content':[]}\n");
    tell(token);
    fx_saw(&fx, "");
    /* one that was cancelled hears nothing more */
    assert_int_equal(fx_try(&fx, &progress_call, &spec, &call), BAY_OK);
    fx_next(&fx);
    mcp_call_cancel(call, (bay_str){0});
    fx_next(&fx);
    tell(token);
    fx_saw(&fx, "");
    fx_fini(&fx);
}

/* Without a token nothing is inherited. */
static void a_call_without_a_token_has_no_heirs(void **state)
{
    (void)state;
    static fx_name first = {.text = "first"};
    fx_init(&fx, MCP_LINK_DUPLEX);
    fx_open_legacy(&fx, NULL);
    fx_call(&fx, &first, "tools/call", "{'name':'a'}");
    fx_line(&fx, fx_next(&fx)->exchange, "{'jsonrpc':'2.0','id':#,'result':{}}");
    assert_int_equal(first.progress_token, 0);
    fx_fini(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_heir_hears_what_its_ancestor_would),
        cmocka_unit_test(a_call_without_a_token_has_no_heirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
