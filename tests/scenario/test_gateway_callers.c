/* The library's own caller in front of a gateway in front of the library's own agent: it finds its
 * way by the gateway's card, in every binding and version, and what the agent can do reaches it. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "patchbay/caller.h"
#include "support/agent_peer.h"
#include "support/skipped.h"
#include "support/strict_card.h"

static agent_peer peer;
static int baseline;

static bay_caller *connect_to(const gateway_rig *rig, const char *name, const char *binding,
                              const char *version)
{
    char url[80];
    bay_diag diag = {0};
    bay_caller *caller = NULL;
    bay_caller_options *options = bay_caller_options_new();
    bay_caller_options_interface(options, binding, version);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/a2a/%s", gateway_port(rig->gateway),
                   name);
    bay_err err = bay_caller_connect(url, options, &caller, &diag);
    if (err != BAY_OK) {
        print_error("%s\n", diag.text);
    }
    assert_int_equal(err, BAY_OK);
    bay_caller_options_free(options);
    return caller;
}

static void send_to(bay_caller *caller, const char *skill, const char *text, bay_task_state state,
                    const char *said)
{
    bay_diag diag = {0};
    bay_caller_reply *response = NULL;
    bay_caller_request *operation = bay_caller_request_send_text(caller, text);
    bay_caller_request_for_skill(operation, skill);
    bay_err err = bay_caller_request_run(operation, &response, &diag);
    if (err != BAY_OK) {
        print_error("%s: %s\n", skill, diag.text);
    }
    assert_int_equal(err, BAY_OK);
    assert_int_equal(bay_caller_reply_state(response), state);
    bay_str json = bay_caller_reply_json(response);
    if (memmem(json.at, json.len, said, strlen(said)) == NULL) {
        print_error("wanted %s, came %.*s\n", said, BAY_STR(json));
    }
    assert_non_null(memmem(json.at, json.len, said, strlen(said)));
    bay_caller_reply_free(response);
}

static void count_chunks(bay_caller_request *request, const bay_caller_reply *event, void *user)
{
    (void)request;
    if (bay_caller_reply_kind_of(event) == BAY_CALLER_REPLY_KIND_ARTIFACT) {
        ++*(int *)user;
    }
}

static void every_interface_of_the_card_leads_to_the_agent(void **state)
{
    (void)state;
    static const struct {
        const char *binding;
        const char *version;
    } rows[] = {
        {"JSONRPC", "1.0"}, {"HTTP+JSON", "1.0"}, {"JSONRPC", "0.3"}, {"HTTP+JSON", "0.3"},
#ifndef BAY_NO_HTTP2
        {"GRPC", "1.0"},
#endif
    };
    gateway_rig rig;
    char text[300];
    baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    /* two of them: gRPC tells them apart by the tenant */
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'http://127.0.0.1:%u'},'dead':{'url':"
                   "'http://127.0.0.1:9'}}}",
                   peer.port);
    rig_open(&rig, text, 2);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bay_diag diag = {0};
        int chunks = 0;
        print_message("%s %s\n", rows[i].binding, rows[i].version);
        bay_caller *caller = connect_to(&rig, "far", rows[i].binding, rows[i].version);
        assert_int_equal(bay_caller_skill_count(caller), 9);
        send_to(caller, "echo", "hello", BAY_TASK_STATE_COMPLETED, "heard 5 bytes");
        send_to(caller, "ask", "paint", BAY_TASK_STATE_INPUT_REQUIRED, "which colour?");
        send_to(caller, "fail", "x", BAY_TASK_STATE_FAILED, "no luck");
        bay_caller_request *stream = bay_caller_request_send_text(caller, "x");
        bay_caller_request_for_skill(stream, "chunks");
        bay_caller_request_on_event(stream, count_chunks, &chunks);
        bay_caller_reply *whole = NULL;
        assert_int_equal(bay_caller_request_run(stream, &whole, &diag), BAY_OK);
        assert_true(chunks >= 20);
        assert_int_equal(bay_caller_reply_state(whole), BAY_TASK_STATE_COMPLETED);
        bay_caller_reply_free(whole);
        bay_caller_reply *missing = NULL;
        assert_int_equal(bay_caller_task(caller, "nobody", -1, &missing, &diag), BAY_ERR_REMOTE);
        bay_caller_request *unknown = bay_caller_request_send_text(caller, "x");
        bay_caller_request_for_skill(unknown, "nonsense");
        int begun = atomic_load(&peer.begun);
        assert_int_equal(bay_caller_request_run(unknown, &missing, &diag), BAY_ERR_REMOTE);
        assert_int_equal(atomic_load(&peer.begun), begun);
        bay_caller_close(caller);
    }
    rig.descriptors = baseline;
    peer_close(&peer);
    rig_close(&rig);
}

static void tools_are_an_agent_for_it_too(void **state)
{
    (void)state;
    static const char *const bindings[] = {
        "JSONRPC",
        "HTTP+JSON",
#ifndef BAY_NO_HTTP2
        "GRPC",
#endif
    };
    gateway_rig rig;
    rig_open(&rig,
             "{'mcpServers':{" RIG_SERVER("s", "legacy", "good",
                                          "") "},"
                                              "'agents':{'made':{'tools':['s.e*']}}}",
             3);
    wait_until(atomic_load(&rig.started) == 1);
    for (size_t i = 0; i < ARRAY_LEN(bindings); i++) {
        bay_caller *caller = connect_to(&rig, "made", bindings[i], "1.0");
        send_to(caller, "s.echo", "x", BAY_TASK_STATE_COMPLETED, "\"artifacts\"");
        bay_diag diag = {0};
        bay_caller_reply *response = NULL;
        assert_int_equal(bay_caller_send_wait(caller, "do something", &response, &diag), BAY_OK);
        assert_int_equal(bay_caller_reply_state(response), BAY_TASK_STATE_REJECTED);
        bay_caller_reply_free(response);
        bay_caller_close(caller);
    }
    rig_close(&rig);
}

static void push_and_extended_card_are_passed_on(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[400], own[40];
    bay_diag diag = {0};
    baseline = rig_descriptors();
    peer = (agent_peer){.agent = bay_agent_new("Peer", "1.0", "Needs a key.")};
    bay_agent_skill(peer.agent, "wait", "wait", "Waits.", peer_wait, &peer);
    bay_agent_api_key(peer.agent, "key", "header", "X-Key", NULL, NULL);
    bay_agent_api_key_add(peer.agent, "key", "s3cr3t", "gateway", NULL);
    bay_agent_extended(peer.agent, "{\"description\":\"For those with a key.\"}");
    bay_agent_push(peer.agent);
    bay_agent_push_allow(peer.agent, "127.0.0.1");
    assert_int_equal(bay_agent_listen(peer.agent, "127.0.0.1:0", &diag), BAY_OK);
    peer.port = bay_agent_port(peer.agent);
    assert_int_equal(net_thread_start(&peer.thread, peer_run, &peer), BAY_OK);
    (void)snprintf(own, sizeof(own), "127.0.0.1:%u", peer.port);
    (void)snprintf(
        text, sizeof(text),
        "{'a2a':{'webhooks':['127.0.0.1']},'agents':{'far':{'url':'http://%s',"
        "'headers':{'X-Key':'s3cr3t'},"
        "'expose':{'tools':false}},'poor':{'url':'http://%s','expose':{'tools':false}}}}",
        own, own);
    rig_open(&rig, text, 1);
    bay_caller *caller = connect_to(&rig, "far", NULL, NULL);
    bay_caller_reply *response = NULL;
    bay_caller_request *send = bay_caller_request_send_text(caller, "x");
    bay_caller_request_for_skill(send, "wait");
    bay_caller_request_return_immediately(send);
    assert_int_equal(bay_caller_request_run(send, &response, &diag), BAY_OK);
    char id[64];
    (void)snprintf(id, sizeof(id), "%.*s", BAY_STR(bay_caller_reply_task(response)));
    bay_caller_reply_free(response);
    assert_int_equal(
        bay_caller_push_create(caller, id, "http://127.0.0.1:9/hook", "t", &response, &diag),
        BAY_OK);
    char config_id[64];
    (void)snprintf(config_id, sizeof(config_id), "%.*s",
                   BAY_STR(bay_caller_reply_str(response, "id")));
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_push_list(caller, id, &response, &diag), BAY_OK);
    assert_int_equal(bay_caller_reply_count(response), 1);
    bay_caller_reply_free(response);
    assert_int_equal(bay_caller_push_delete(caller, id, config_id, &diag), BAY_OK);
    assert_int_equal(bay_caller_extended_card(caller, &response, &diag), BAY_OK);
    bay_str json = bay_caller_reply_json(response);
    assert_non_null(memmem(json.at, json.len, "For those with a key.", 21));
    assert_non_null(memmem(json.at, json.len, "/a2a/far", 8));
    assert_null(memmem(json.at, json.len, own, strlen(own)));
    expect_strict(json);
    bay_caller_reply_free(response);
    atomic_store(&peer.may_go, true);
    bay_caller_close(caller);
    /* without the key in its configuration the gateway is refused, and says so */
    caller = connect_to(&rig, "poor", NULL, NULL);
    assert_int_not_equal(bay_caller_task(caller, id, -1, &response, &diag), BAY_OK);
    assert_null(strstr(diag.text, "s3cr3t"));
    bay_caller_close(caller);
    assert_int_equal(rig_log_count("s3cr3t"), 0);
    rig.descriptors = baseline;
    peer_close(&peer);
    rig_close(&rig);
}

static void call_echo(gateway_rig *rig)
{
    client one;
    client_open(&one, rig);
    client_post(&one, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                "Mcp-Name: far.echo\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'far.echo',"
                "'arguments':{'message':'hello'}," RIG_META "}}}");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"text\":\"hello\""));
    client_close(&one);
}

/* From a message to an agent made of tools, through a tool that is a skill, to the agent it is of;
 * and from a call of the tool. */
static void a_trace_goes_on_over_both_bridges(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char text[600];
    baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'http://127.0.0.1:%u'},"
                   "'made':{'tools':['far.trace']}}}",
                   peer.port);
    rig_open(&rig, text, 1);
    wait_until(atomic_load(&rig.started) == 1);
    client_open(&one, &rig);
    client_post(&one, "/a2a/made",
                "A2A-Version: 1.0\r\ntraceparent: "
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
                "tracestate: far=1,near=x\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':"
                "'m','role':'ROLE_USER','parts':[{'data':{'tool':'far.trace','arguments':"
                "{'message':'x'}}}]}}}");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "trace=00-0af7651916cd43dd8448eb211c80319c-"));
    assert_null(client_find(&one, "b7ad6b7169203331"));
    assert_non_null(client_find(&one, " state=far=1,near=x\""));
    client_close(&one);
    client_open(&one, &rig);
    client_post(&one, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                "Mcp-Name: far.trace\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'far.trace',"
                "'arguments':{'message':'x'},'_meta':{'traceparent':"
                "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',"
                "'tracestate':'far=1,near=x',"
                "'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"
                "'io.modelcontextprotocol/clientCapabilities':{}}}}");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "trace=00-0af7651916cd43dd8448eb211c80319c-"));
    assert_null(client_find(&one, "b7ad6b7169203331"));
    assert_non_null(client_find(&one, " state=far=1,near=x\""));
    client_close(&one);
    rig.descriptors = baseline;
    peer_close(&peer);
    rig_close(&rig);
}

/* Its skills are tools of where it is now, in sessions that were there before, too. */
static void a_reload_moves_an_agent(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[900];
    agent_peer other;
    baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    (void)snprintf(text, sizeof(text), "{'agents':{'far':{'url':'http://127.0.0.1:%u'}}}",
                   peer.port);
    rig_open(&rig, text, 2);
    wait_until(atomic_load(&rig.started) == 1);
    call_echo(&rig);
    call_echo(&rig);
    assert_int_equal(atomic_load(&peer.begun), 2);
    assert_true(peer_open(&other, 0, NULL));
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'http://127.0.0.1:%u'}},'timeouts':{'drain':1}}",
                   other.port);
    rig_configure(&rig, text);
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    for (int i = 0; i < 6; i++) {
        call_echo(&rig);
    }
    assert_int_equal(atomic_load(&peer.begun), 2);
    assert_int_equal(atomic_load(&other.begun), 6);
    rig.descriptors = baseline;
    peer_close(&other);
    peer_close(&peer);
    rig_close(&rig);
}

static int warm_up(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        if (!peer_open(&peer, 0, NULL)) {
            return -1;
        }
        peer_close(&peer);
    }
    return 0;
}

#ifdef BAY_NO_HTTP2
SKIPPED(all_of_it_by_grpc, "this build has no HTTP/2, which gRPC is")
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interface_of_the_card_leads_to_the_agent),
        cmocka_unit_test(tools_are_an_agent_for_it_too),
        cmocka_unit_test(push_and_extended_card_are_passed_on),
        cmocka_unit_test(a_trace_goes_on_over_both_bridges),
        cmocka_unit_test(a_reload_moves_an_agent),
#ifdef BAY_NO_HTTP2
        cmocka_unit_test(all_of_it_by_grpc),
#endif
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
