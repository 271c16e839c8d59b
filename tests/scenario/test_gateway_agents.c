/* A gateway in front of agents: callers of every version and of both JSON bindings, agents spoken
 * to in every version, streams, questions, cards, what does not answer, and both bridges. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "auth/card_signature.h"
#include "support/agent_peer.h"
#include "support/skipped.h"
#include "json/json.h"

#define V1 "A2A-Version: 1.0\r\n"
#define SEND(skill, text)                                                                          \
    "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m1',"        \
    "'role':'ROLE_USER','parts':[{'text':'" text "'}],'metadata':{'skillId':'" skill "'}}}}"
#define STREAM(skill, text)                                                                        \
    "{'jsonrpc':'2.0','id':1,'method':'SendStreamingMessage','params':{'message':{'messageId':"    \
    "'m8','role':'ROLE_USER','parts':[{'text':'" text "'}],'metadata':{'skillId':'" skill "'}}}}"

static agent_peer peer;

/* Descriptors are counted from before the peer to after it: those of its threads and connections
 * come and go as they like. */
static int baseline;

static void open_rig(gateway_rig *rig, const char *more, uint32_t workers)
{
    char text[2000];
    baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'far':{'url':'http://127.0.0.1:%u'%s}},'timeouts':{'drain':100}}",
                   peer.port, more);
    rig_open(rig, text, workers);
}

static void close_rig(gateway_rig *rig)
{
    rig->descriptors = baseline;
    peer_close(&peer);
    rig_close(rig);
}

/* Posts and expects every one of the parts in the answer. */
static void expect(const gateway_rig *rig, const char *path, const char *fields, const char *body,
                   int status, const char *const *parts)
{
    client one;
    client_open(&one, rig);
    client_post(&one, path, fields, body);
    int got = client_reply(&one);
    for (size_t i = 0; parts[i] != NULL; i++) {
        if (client_find(&one, parts[i]) == NULL) {
            print_error("%s\nwanted %s\ncame: %.*s\n", body, parts[i], (int)one.got.len,
                        one.got.at);
        }
        assert_non_null(client_find(&one, parts[i]));
    }
    if (got != status) {
        print_error("%s\n%.*s\n", body, (int)one.got.len, one.got.at);
    }
    assert_int_equal(got, status);
    client_close(&one);
}

#define EXPECT(rig, path, fields, body, status, ...)                                               \
    expect((rig), (path), (fields), (body), (status), (const char *const[]){__VA_ARGS__, NULL})

static void get(const gateway_rig *rig, client *one, const char *path, const char *fields)
{
    char text[600];
    client_open(one, rig);
    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path,
                   fields);
    assert_true(client_send(one, text));
    (void)client_reply(one);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void callers_of_every_version_reach_an_agent(void **state)
{
    (void)state;
    gateway_rig rig;
    open_rig(&rig, "", 1);
    EXPECT(&rig, "/a2a/far", V1, SEND("echo", "hello"), 200, "TASK_STATE_COMPLETED",
           "\"text\":\"hello\"", "heard 5 bytes");
    EXPECT(&rig, "/a2a/far", V1, SEND("reply", "hi"), 200,
           "\"result\":{\"message\":", "you said hi");
    /* 0.3 and 0.2: a bare task, kinds, lower-case states */
    EXPECT(&rig, "/a2a/far", "",
           "{'jsonrpc':'2.0','id':7,'method':'message/send','params':{'message':{'kind':'message',"
           "'messageId':'m2','role':'user','parts':[{'kind':'text','text':'old'}]},"
           "'configuration':{'blocking':true}}}",
           200, "\"id\":7", "\"kind\":\"task\"", "\"state\":\"completed\"", "\"text\":\"old\"");
    EXPECT(&rig, "/a2a/far", "A2A-Version: 0.2\r\n",
           "{'jsonrpc':'2.0','id':8,'method':'message/send','params':{'message':{'kind':'message',"
           "'messageId':'m3','role':'user','parts':[{'kind':'text','text':'older'}]}}}",
           200, "\"kind\":\"task\"");
    /* 0.1: the client makes the task's id, and finds the task by it */
    EXPECT(
        &rig, "/a2a/far", "",
        "{'jsonrpc':'2.0','id':9,'method':'tasks/send','params':{'id':'mine-1','message':{'role':"
        "'user','parts':[{'type':'text','text':'oldest'}]}}}",
        200, "\"id\":\"mine-1\"", "\"state\":\"completed\"", "\"text\":\"oldest\"");
    EXPECT(&rig, "/a2a/far", "",
           "{'jsonrpc':'2.0','id':9,'method':'tasks/get','params':{'id':'mine-1'}}", 200,
           "\"id\":\"mine-1\"", "\"state\":\"completed\"");
    /* HTTP+JSON, 1.0 and 0.3 */
    EXPECT(&rig, "/a2a/far/message:send", V1,
           "{'message':{'messageId':'m4','role':'ROLE_USER','parts':[{'text':'rest'}]}}", 200,
           "{\"task\":{", "TASK_STATE_COMPLETED", "\"text\":\"rest\"");
    EXPECT(&rig, "/a2a/far/v1/message:send", "",
           "{'message':{'messageId':'m5','role':'ROLE_USER','content':[{'text':'rest03'}]},"
           "'configuration':{'blocking':true}}",
           200, "TASK_STATE_COMPLETED", "\"text\":\"rest03\"");
    close_rig(&rig);
}

static void an_agent_is_spoken_to_in_its_version(void **state)
{
    (void)state;
    static const char *const how[] = {
        ",'version':'1.0','binding':'JSONRPC'", ",'version':'1.0','binding':'HTTP+JSON'",
        ",'version':'0.3','binding':'JSONRPC'", ",'version':'0.3','binding':'HTTP+JSON'",
        ",'version':'0.2','binding':'JSONRPC'", ",'version':'0.1','binding':'JSONRPC'",
#ifndef BAY_NO_HTTP2
        ",'version':'1.0','binding':'GRPC'",    ",'version':'0.3','binding':'GRPC'",
#endif
    };
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        gateway_rig rig;
        print_message("%s\n", how[i]);
        open_rig(&rig, how[i], 1);
        EXPECT(&rig, "/a2a/far", V1, SEND("echo", "hello"), 200, "TASK_STATE_COMPLETED",
               "\"text\":\"hello\"", "\"artifactId\"");
        EXPECT(&rig, "/a2a/far", V1, STREAM("chunks", "x"), 200, "chunk-0 ", "chunk-19 ",
               "TASK_STATE_COMPLETED");
        EXPECT(&rig, "/a2a/far", "",
               "{'jsonrpc':'2.0','id':7,'method':'message/send','params':{'message':{'kind':"
               "'message','messageId':'m2','role':'user','parts':[{'kind':'text','text':'old'}]},"
               "'configuration':{'blocking':true}}}",
               200, "\"kind\":\"task\"", "\"text\":\"old\"");
        close_rig(&rig);
    }
}

static void streams_are_passed_on_event_by_event(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    open_rig(&rig, "", 1);
    client_open(&one, &rig);
    client_post(&one, "/a2a/far", V1, STREAM("wait", "x"));
    client_wait_for(&one, "\"waiting\""); /* while the task is not done */
    assert_null(client_find(&one, "waited"));
    atomic_store(&peer.may_go, true);
    client_wait_for(&one, "waited");
    client_wait_for(&one, "0\r\n\r\n");
    client_close(&one);
    /* an older client hears which event is the last */
    EXPECT(&rig, "/a2a/far", "",
           "{'jsonrpc':'2.0','id':7,'method':'message/stream','params':{'message':{'kind':'message'"
           ",'messageId':'m2','role':'user','parts':[{'kind':'text','text':'x'}],'metadata':"
           "{'skillId':'chunks'}}}}",
           200, "\"kind\":\"artifact-update\"", "\"final\":true", "\"kind\":\"status-update\"");
    close_rig(&rig);
}

static void a_task_goes_on_by_its_id(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char body[700], id[64] = "";
    open_rig(&rig, "", 2);
    client_open(&one, &rig);
    client_post(&one, "/a2a/far", V1, SEND("ask", "paint"));
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "TASK_STATE_INPUT_REQUIRED"));
    const char *at = client_find(&one, "\"task\":{\"id\":\"");
    assert_non_null(at);
    (void)sscanf(at, "\"task\":{\"id\":\"%63[^\"]", id);
    client_close(&one);
    /* from any connection, so from any worker */
    for (int i = 0; i < 8; i++) {
        (void)snprintf(body, sizeof(body),
                       "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'%s'}}", id);
        EXPECT(&rig, "/a2a/far", V1, body, 200, "which colour?", id);
    }
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tasks/get','params':{'id':'%s'}}", id);
    EXPECT(&rig, "/a2a/far", "", body, 200, "input-required", id);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId'"
                   ":'m9','taskId':'%s','role':'ROLE_USER','parts':[{'text':'red'}]}}}",
                   id);
    EXPECT(&rig, "/a2a/far", V1, body, 200, "painted red", "TASK_STATE_COMPLETED");
    EXPECT(&rig, "/a2a/far", V1,
           "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'no-such-task'}}", 200,
           "-32001");
    EXPECT(&rig, "/a2a/far", V1, "{'jsonrpc':'2.0','id':1,'method':'ListTasks','params':{}}", 200,
           id, "\"totalSize\"");
    close_rig(&rig);
}

static void a_cancel_reaches_the_agent(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char body[300], id[64] = "";
    open_rig(&rig, "", 1);
    client_open(&one, &rig);
    client_post(&one, "/a2a/far", V1, STREAM("wait", "x"));
    client_wait_for(&one, "\"waiting\"");
    const char *at = client_find(&one, "\"task\":{\"id\":\"");
    assert_non_null(at);
    (void)sscanf(at, "\"task\":{\"id\":\"%63[^\"]", id);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'CancelTask','params':{'id':'%s'}}", id);
    EXPECT(&rig, "/a2a/far", V1, body, 200, "TASK_STATE_CANCELED");
    client_wait_for(&one, "TASK_STATE_CANCELED");
    client_close(&one);
    wait_until(atomic_load(&peer.cancelled) == 1);
    close_rig(&rig);
}

static void an_unknown_skill_never_becomes_a_task(void **state)
{
    (void)state;
    gateway_rig rig;
    open_rig(&rig, "", 1);
    EXPECT(&rig, "/a2a/far", V1, SEND("nonsense", "x"), 200, "-32602", "has no skill",
           "echo, reply");
    EXPECT(&rig, "/a2a/far/message:send", V1,
           "{'message':{'messageId':'m4','role':'ROLE_USER','parts':[{'text':'x'}]},"
           "'metadata':{'skill':'nonsense'}}",
           400, "has no skill");
    assert_int_equal(atomic_load(&peer.begun), 0);
    close_rig(&rig);
}

static void a_trace_goes_on_in_a_span_of_the_gateway(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    open_rig(&rig, "", 1);
    client_open(&one, &rig);
    client_post(&one, "/a2a/far",
                V1 "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
                SEND("trace", "x"));
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "trace=00-0af7651916cd43dd8448eb211c80319c-"));
    assert_null(client_find(&one, "b7ad6b7169203331"));
    client_close(&one);
    EXPECT(&rig, "/a2a/far", V1, SEND("trace", "x"), 200, "trace= state=\"");
    static const char trace[] =
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    char fields[400];
    (void)snprintf(fields, sizeof(fields), V1 "%stracestate: a=1,b=2\r\n", trace);
    EXPECT(&rig, "/a2a/far", fields, SEND("trace", "x"), 200, "-01 state=a=1,b=2\"");
    /* whole or not at all */
    (void)snprintf(fields, sizeof(fields), V1 "%stracestate: a=1,B=2\r\n", trace);
    EXPECT(&rig, "/a2a/far", fields, SEND("trace", "x"), 200, "-01 state=\"");
    EXPECT(&rig, "/a2a/far", V1 "tracestate: a=1\r\n", SEND("trace", "x"), 200, "trace= state=\"");
    close_rig(&rig);
}

/* ---- cards ----------------------------------------------------------------------------------- */

static void cards_are_the_gateways(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char own[64];
    open_rig(&rig, "", 2);
    (void)snprintf(own, sizeof(own), "127.0.0.1:%u/", peer.port);
    for (int i = 0; i < 4; i++) {
        get(&rig, &one, "/a2a/far/.well-known/agent-card.json", V1);
        assert_int_equal(client_status(&one), 200);
        assert_non_null(client_find(&one, "/a2a/far\""));
        assert_non_null(client_find(&one, "\"protocolVersion\":\"0.3\""));
        assert_non_null(client_find(&one, "ETag: "));
        assert_null(client_find(&one, own));
        client_close(&one);
    }
    get(&rig, &one, "/a2a/far/.well-known/agent.json", "");
    assert_non_null(client_find(&one, "\"preferredTransport\""));
    client_close(&one);
    get(&rig, &one, "/a2a", "");
    assert_non_null(client_find(&one, "\"id\":\"far\""));
    assert_non_null(client_find(&one, "/a2a/far/.well-known/agent-card.json"));
    client_close(&one);
    get(&rig, &one, "/a2a/near/.well-known/agent-card.json", "");
    assert_int_equal(client_status(&one), 404);
    client_close(&one);
    get(&rig, &one, "/readyz", "");
    assert_non_null(client_find(&one, "\"agents\":[{\"name\":\"far\""));
    client_close(&one);
    close_rig(&rig);
}

#ifndef BAY_NO_TLS
static const char trusted[] = "{'kty':'EC','crv':'P-256','kid':'peer',"
                              "'x':'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',"
                              "'y':'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',"
                              "'d':'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI'}";

static void write_file(const char *path, const char *text, bool is_public)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *at = text; *at != '\0'; at++) {
        if (is_public && strncmp(at, ",'d'", 4) == 0) {
            fputc('}', file);
            break;
        }
        fputc(*at == '\'' ? '"' : *at, file);
    }
    fclose(file);
}

static const char other_key[] = "{'kty':'EC','crv':'P-256','kid':'other',"
                                "'x':'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',"
                                "'y':'4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM'}";

static void a_card_is_believed_by_its_signature(void **state)
{
    (void)state;
    char key[400], text[1200], path[64];
    size_t len = 0;
    for (const char *at = trusted; *at != '\0'; at++) {
        key[len++] = *at == '\'' ? '"' : *at;
    }
    key[len] = '\0';
    (void)snprintf(path, sizeof(path), "/tmp/agents.%d.json", (int)getpid());
    for (int round = 0; round < 3; round++) {
        gateway_rig rig;
        client one;
        bool is_good = round == 0;
        /* signed by the trusted key; by nobody; by the trusted key while another is trusted */
        baseline = rig_descriptors();
        write_file(path, round < 2 ? trusted : other_key, round < 2);
        assert_true(peer_open(&peer, 0, round != 1 ? key : NULL));
        (void)snprintf(text, sizeof(text),
                       "{'agents':{'far':{'url':'http://127.0.0.1:%u','verify':{'keys':'%s',"
                       "'required':true}}},'a2a':{'key':'%s'}}",
                       peer.port, path, round < 2 ? "/tmp/agents.signs.json" : path);
        if (round == 2) { /* nothing signs here */
            (void)snprintf(
                text, sizeof(text),
                "{'agents':{'far':{'url':'http://127.0.0.1:%u','verify':{'keys':'%s'}}}}",
                peer.port, path);
        }
        write_file("/tmp/agents.signs.json", trusted, false);
        rig_open(&rig, text, 1);
        get(&rig, &one, "/a2a/far/.well-known/agent-card.json", V1);
        assert_int_equal(client_status(&one), is_good ? 200 : 502);
        if (is_good) {
            assert_non_null(client_find(&one, "\"signatures\":[{"));
            client_close(&one);
            get(&rig, &one, "/a2a/keys.json", "");
            assert_non_null(client_find(&one, "\"kty\""));
            assert_null(client_find(&one, "\"d\""));
            client_close(&one);
            get(&rig, &one, "/readyz", "");
            assert_non_null(client_find(&one, "\"verified\":true"));
            client_close(&one);
            /* the file has other keys now, and its name is the same */
            write_file(path, other_key, false);
            rig_ask_reload(&rig);
            wait_until(atomic_load(&rig.reloaded) == 1);
            get(&rig, &one, "/a2a/far/.well-known/agent-card.json", V1);
            assert_int_equal(client_status(&one), 502);
        } else {
            client_close(&one);
            EXPECT(&rig, "/a2a/far", V1, SEND("echo", "hello"), 502, "-32603",
                   "its card cannot be had");
            client_open(&one, &rig);
        }
        client_close(&one);
        assert_int_equal(atomic_load(&peer.begun), 0);
        close_rig(&rig);
    }
    (void)unlink(path);
    (void)unlink("/tmp/agents.signs.json");
}
#else
SKIPPED(a_card_is_believed_by_its_signature,
        "this build has no TLS, and with it nothing that signs")
#endif

/* ---- what does not answer ---------------------------------------------------------------------
 */

static void a_dead_agent_fails_alone_and_comes_back(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[900];
    agent_peer other;
    baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    assert_true(peer_open(&other, 0, NULL));
    uint16_t port = peer.port;
    peer_close(&peer);
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'dead':{'url':'http://127.0.0.1:%u','failures':2,'coolOff':50},"
                   "'alive':{'url':'http://127.0.0.1:%u'}}}",
                   port, other.port);
    rig_open(&rig, text, 1);
    for (int i = 0; i < 4; i++) {
        EXPECT(&rig, "/a2a/dead", V1, SEND("echo", "x"), 502, "-32603");
        EXPECT(&rig, "/a2a/dead/message:send", V1,
               "{'message':{'messageId':'m4','role':'ROLE_USER','parts':[{'text':'x'}]}}", 502,
               "error");
        EXPECT(&rig, "/a2a/alive", V1, SEND("echo", "x"), 200, "TASK_STATE_COMPLETED");
    }
    assert_true(rig_log_count("cannot be reached; its calls fail for a while") > 0);
    assert_true(peer_open(&peer, port, NULL));
    bool is_back = false;
    uint64_t give_up_ms = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!is_back && rig_now_ms() < give_up_ms) {
        client one;
        client_open(&one, &rig);
        client_post(&one, "/a2a/dead", V1, SEND("echo", "x"));
        (void)client_reply(&one);
        is_back = client_find(&one, "TASK_STATE_COMPLETED") != NULL;
        client_close(&one);
    }
    assert_true(is_back);
    peer_close(&other);
    close_rig(&rig);
}

static void a_reload_changes_agents(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[900];
    open_rig(&rig, "", 2);
    EXPECT(&rig, "/a2a/far", V1, SEND("echo", "x"), 200, "TASK_STATE_COMPLETED");
    (void)snprintf(text, sizeof(text),
                   "{'agents':{'near':{'url':'http://127.0.0.1:%u'}},'timeouts':{'drain':100}}",
                   peer.port);
    rig_configure(&rig, text);
    rig_ask_reload(&rig);
    wait_until(atomic_load(&rig.reloaded) == 1);
    EXPECT(&rig, "/a2a/near", V1, SEND("echo", "x"), 200, "TASK_STATE_COMPLETED");
    EXPECT(&rig, "/a2a/far", V1, SEND("echo", "x"), 404, "404");
    close_rig(&rig);
}

static void callers_that_leave_leave_nothing_behind(void **state)
{
    (void)state;
    gateway_rig rig;
    open_rig(&rig, "", 1);
    for (int i = 0; i < 20; i++) {
        bool is_stream = i % 2 == 0;
        client one;
        char body[400];
        (void)snprintf(body, sizeof(body),
                       "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'message':{'messageId':"
                       "'leave-%d','role':'ROLE_USER','parts':[{'text':'x'}],'metadata':{'skillId':"
                       "'wait'}}}}",
                       is_stream ? "SendStreamingMessage" : "SendMessage", i);
        client_open(&one, &rig);
        client_post(&one, "/a2a/far", V1, body);
        if (is_stream) {
            client_wait_for(&one, "TASK_STATE_");
        }
        client_close(&one);
    }
    atomic_store(&peer.may_go, true);
    EXPECT(&rig, "/a2a/far", V1, SEND("echo", "x"), 200, "TASK_STATE_COMPLETED");
    close_rig(&rig);
}

static void a_drain_ends_streams(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    open_rig(&rig, "", 2);
    client_open(&one, &rig);
    client_post(&one, "/a2a/far", V1, STREAM("wait", "x"));
    client_wait_for(&one, "TASK_STATE_");
    gateway_stop(rig.gateway);
    while (client_read(&one)) { /* the task goes on; its client may come back */
    }
    client_close(&one);
    atomic_store(&peer.may_go, true);
    close_rig(&rig);
}

/* ---- bridges ----------------------------------------------------------------------------------
 */

static void call_skill(const gateway_rig *rig, const char *tool, const char *arguments,
                       const char *capabilities, const char *const *parts)
{
    char fields[300], body[1200];
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':%s,'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
                   "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"
                   "'io.modelcontextprotocol/clientCapabilities':%s}}}",
                   tool, arguments, capabilities);
    expect(rig, "/mcp", fields, body, 200, parts);
}

#define CALL(rig, tool, arguments, capabilities, ...)                                              \
    call_skill((rig), (tool), (arguments), (capabilities), (const char *const[]){__VA_ARGS__, NULL})

static void skills_are_tools(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    open_rig(&rig, ",'expose':{'hide':['trace']}", 2);
    wait_until(atomic_load(&rig.started) == 1);
    client_open(&one, &rig);
    client_list(&one, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "\"far.echo\""));
    assert_non_null(client_find(&one, "\"far.files\""));
    assert_null(client_find(&one, "\"far.trace\""));
    assert_null(client_find(&one, "far.odd")); /* no name for a tool */
    client_close(&one);
    CALL(&rig, "far.echo", "{'message':'hello'}", "{}", "\"text\":\"hello\"", "heard 5 bytes",
         "\"taskId\"");
    CALL(&rig, "far.reply", "{'message':'hi'}", "{}", "you said hi");
    CALL(&rig, "far.fail", "{'message':'x'}", "{}", "no luck", "\"isError\":true");
    CALL(&rig, "far.chunks", "{'message':'x'}", "{}", "chunk-0 chunk-1 chunk-2 ", "chunk-19 ");
    CALL(&rig, "far.files", "{'message':'x'}", "{}", "\"type\":\"image\"", "\"image/png\"",
         "\"resource_link\"", "https://far.example/more", "\"structuredContent\":{\"n\":1.0}");
    CALL(&rig, "far.echo", "{}", "{}", "message");
    close_rig(&rig);
}

static void a_skill_that_asks_is_answered(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char id[64] = "", arguments[200];
    open_rig(&rig, "", 1);
    /* a client that cannot be asked is told how to go on */
    client_open(&one, &rig);
    client_post(&one, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                "Mcp-Name: far.ask\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'far.ask',"
                "'arguments':{'message':'paint'}," RIG_META "}}}");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "which colour?"));
    assert_non_null(client_find(&one, "\"isError\":true"));
    const char *at = client_find(&one, "\"taskId\":\"");
    assert_non_null(at);
    (void)sscanf(at, "\"taskId\":\"%63[^\"]", id);
    client_close(&one);
    (void)snprintf(arguments, sizeof(arguments), "{'message':'red','taskId':'%s'}", id);
    CALL(&rig, "far.ask", arguments, "{}", "painted red");
    /* one that can be asked is asked */
    CALL(&rig, "far.ask", "{'message':'paint'}", "{'elicitation':{'form':{}}}",
         "\"resultType\":\"input_required\"", "elicitation/create", "which colour?",
         "\"requestState\"");
    close_rig(&rig);
}

static void a_cancelled_call_cancels_its_task(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    open_rig(&rig, "", 1);
    wait_until(atomic_load(&rig.started) == 1);
    client_open(&one, &rig);
    client_post(&one, "/mcp",
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                "Mcp-Name: far.wait\r\n",
                "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'far.wait',"
                "'arguments':{'message':'x'}," RIG_META "}}}");
    wait_until(atomic_load(&peer.begun) == 1);
    client_close(&one); /* a stateless client cancels by leaving */
    wait_until(atomic_load(&peer.cancelled) == 1);
    close_rig(&rig);
}

#ifndef BAY_NO_TLS /* ids of tasks are sealed */
#define WITH_TASKS                                                                                 \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':{'elicitation':{'form':{}},"                     \
    "'extensions':{'io.modelcontextprotocol/tasks':{}}}}"

/* A request about a task, on a connection of its own; what came is in `one`. */
static void about_task(const gateway_rig *rig, client *one, const char *method, const char *id,
                       const char *more)
{
    char fields[1200], body[2400];
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\nMcp-Name: %s\r\n", method,
                   id);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'%s','params':{'taskId':'%s'%s," WITH_TASKS
                   "}}",
                   method, id, more);
    client_open(one, rig);
    client_post(one, "/mcp", fields, body);
    assert_int_equal(client_reply(one), 200);
}

static void begin_task(const gateway_rig *rig, const char *tool, char id[1000])
{
    char fields[200], body[1200];
    client one;
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':{'message':'x'}," WITH_TASKS "}}",
                   tool);
    client_open(&one, rig);
    client_post(&one, "/mcp", fields, body);
    assert_int_equal(client_reply(&one), 200);
    const char *at = client_find(&one, "\"taskId\":\"");
    if (at == NULL || client_find(&one, "\"resultType\":\"task\"") == NULL) {
        print_error("%.*s\n", (int)one.got.len, one.got.at);
    }
    assert_non_null(at);
    assert_non_null(client_find(&one, "\"resultType\":\"task\""));
    assert_int_equal(sscanf(at, "\"taskId\":\"%999[^\"]", id), 1);
    client_close(&one);
}

static void wait_for_task(const gateway_rig *rig, const char *id, const char *part)
{
    bool is_there = false;
    uint64_t give_up_ms = rig_now_ms() + RIG_GIVE_UP_MS;
    while (!is_there && rig_now_ms() < give_up_ms) {
        client one;
        about_task(rig, &one, "tasks/get", id, "");
        is_there = client_find(&one, part) != NULL;
        if (!is_there && rig_now_ms() + 100 > give_up_ms) {
            print_error("wanted %s\ncame: %.*s\n", part, (int)one.got.len, one.got.at);
        }
        client_close(&one);
    }
    assert_true(is_there);
}

static void long_skills_are_tasks(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char id[1000];
    open_rig(&rig, "", 2);
    wait_until(atomic_load(&rig.started) == 1);
    begin_task(&rig, "far.wait", id);
    wait_for_task(&rig, id, "\"status\":\"working\"");
    atomic_store(&peer.may_go, true);
    wait_for_task(&rig, id, "\"status\":\"completed\"");
    wait_for_task(&rig, id, "\"text\":\"waited\"");
    atomic_store(&peer.may_go, false);
    begin_task(&rig, "far.wait", id);
    about_task(&rig, &one, "tasks/cancel", id, "");
    assert_null(client_find(&one, "\"error\""));
    client_close(&one);
    wait_for_task(&rig, id, "\"status\":\"cancelled\"");
    begin_task(&rig, "far.ask", id);
    wait_for_task(&rig, id, "\"status\":\"input_required\"");
    wait_for_task(&rig, id, "which colour?");
    about_task(&rig, &one, "tasks/update", id,
               ",'inputResponses':{'answer':{'action':'accept','content':{'answer':'red'}}}");
    assert_null(client_find(&one, "\"error\""));
    client_close(&one);
    wait_for_task(&rig, id, "painted red");
    close_rig(&rig);
}
#else
SKIPPED(long_skills_are_tasks, "this build has no TLS, so nothing seals ids and states")
#endif

static void tools_make_an_agent(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    rig_open(
        &rig,
        "{'mcpServers':{" RIG_SERVER(
            "s", "legacy", "good",
            "") "},"
                "'agents':{'made':{'tools':['s.*'],'title':'Made','description':'Of tools.'}}}",
        1);
    wait_until(atomic_load(&rig.started) == 1);
    get(&rig, &one, "/a2a/made/.well-known/agent-card.json", V1);
    assert_int_equal(client_status(&one), 200);
    assert_non_null(client_find(&one, "\"name\":\"Made\""));
    assert_non_null(client_find(&one, "\"id\":\"s."));
    client_close(&one);
    EXPECT(&rig, "/a2a/made", V1,
           "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m1',"
           "'role':'ROLE_USER','parts':[{'text':'please do something'}]}}}",
           200, "TASK_STATE_REJECTED", "There are: s.");
    EXPECT(&rig, "/a2a/made", V1,
           "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m2',"
           "'role':'ROLE_USER','parts':[{'data':{'tool':'s.echo','arguments':{}}}]}}}",
           200, "TASK_STATE_COMPLETED", "\"artifactId\"");
    EXPECT(&rig, "/a2a/made", V1,
           "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m3',"
           "'role':'ROLE_USER','parts':[{'text':'s.echo'}]}}}",
           200, "TASK_STATE_COMPLETED");
    rig_close(&rig);
}

/* What a process makes once and keeps is there before anything is counted. */
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

#define MADE(parts)                                                                                \
    "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId':'m1',"        \
    "'role':'ROLE_USER','parts':[" parts "]}}}"

static void made_rig(gateway_rig *rig, uint32_t workers)
{
    rig_open(rig,
             "{'mcpServers':{" RIG_SERVER("s", "legacy", "good",
                                          "") "},'timeouts':{'drain':100},"
                                              "'agents':{'made':{'tools':['s.*']}}}",
             workers);
    wait_until(atomic_load(&rig->started) == 1);
}

static void task_id_of(client *one, char out[64])
{
    const char *at = client_find(one, "\"task\":{\"id\":\"");
    assert_non_null(at);
    (void)sscanf(at, "\"task\":{\"id\":\"%63[^\"]", out);
}

/* The task is in one engine, whichever loop a connection is on. */
static void tasks_of_tools_are_one_for_all_workers(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char id[64] = "", body[400];
    made_rig(&rig, 4);
    for (int i = 0; i < 6; i++) {
        client_open(&one, &rig);
        client_post(&one, "/a2a/made", V1, MADE("{'data':{'tool':'s.echo','arguments':{}}}"));
        assert_int_equal(client_reply(&one), 200);
        assert_non_null(client_find(&one, "TASK_STATE_COMPLETED"));
        task_id_of(&one, id);
        client_close(&one);
        (void)snprintf(body, sizeof(body),
                       "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'%s'}}", id);
        for (int k = 0; k < 6; k++) {
            EXPECT(&rig, "/a2a/made", V1, body, 200, id, "TASK_STATE_COMPLETED");
        }
    }
    EXPECT(&rig, "/a2a/made", V1, "{'jsonrpc':'2.0','id':1,'method':'ListTasks','params':{}}", 200,
           "\"totalSize\":6");
    for (int k = 0; k < 6; k++) {
        EXPECT(&rig, "/a2a/made", V1,
               "{'jsonrpc':'2.0','id':1,'method':'SendStreamingMessage','params':{'message':{"
               "'messageId':'m1','role':'ROLE_USER','parts':[{'text':'s.echo'}]}}}",
               200, "TASK_STATE_WORKING", "artifactUpdate", "TASK_STATE_COMPLETED");
        EXPECT(&rig, "/a2a/made", V1,
               "{'jsonrpc':'2.0','id':1,'method':'GetTask','params':{'id':'nobody'}}", 200,
               "-32001");
    }
    rig_close(&rig);
}

#ifndef BAY_NO_TLS /* as is the state of a call that waits */
static void a_tool_that_asks_has_a_task_wait_for_input(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char id[64] = "", body[500];
    made_rig(&rig, 3);
    client_open(&one, &rig);
    client_post(&one, "/a2a/made", V1, MADE("{'text':'s.asks'}"));
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "TASK_STATE_INPUT_REQUIRED"));
    assert_non_null(client_find(&one, "name?"));
    task_id_of(&one, id);
    client_close(&one);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'SendMessage','params':{'message':{'messageId'"
                   ":'m2','taskId':'%s','role':'ROLE_USER','parts':[{'data':{'name':'Ada'}}]}}}",
                   id);
    EXPECT(&rig, "/a2a/made", V1, body, 200, id, "TASK_STATE_COMPLETED", "\"good\"");
    rig_close(&rig);
}
#else
SKIPPED(a_tool_that_asks_has_a_task_wait_for_input,
        "this build has no TLS, so nothing seals ids and states")
#endif

static void cancelling_a_task_cancels_its_call(void **state)
{
    (void)state;
    gateway_rig rig;
    client one;
    char id[64] = "", body[300];
    made_rig(&rig, 2);
    client_open(&one, &rig);
    client_post(&one, "/a2a/made", V1,
                "{'jsonrpc':'2.0','id':1,'method':'SendStreamingMessage','params':{'message':{"
                "'messageId':'m1','role':'ROLE_USER','parts':[{'text':'s.wait'}]}}}");
    client_wait_for(&one, "TASK_STATE_WORKING");
    wait_until(rig_tally(&rig) > 0);
    task_id_of(&one, id);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'CancelTask','params':{'id':'%s'}}", id);
    EXPECT(&rig, "/a2a/made", V1, body, 200, "TASK_STATE_CANCELED");
    client_wait_for(&one, "TASK_STATE_CANCELED");
    client_close(&one);
    FILE *go = fopen(rig.go, "w"); /* it reads nothing before that */
    assert_non_null(go);
    fclose(go);
    wait_until(rig_log_count("cancelled") > 0);
    rig_close(&rig);
}

static void a_tool_that_fails_fails_its_task(void **state)
{
    (void)state;
    gateway_rig rig;
    made_rig(&rig, 1);
    EXPECT(&rig, "/a2a/made", V1, MADE("{'text':'s.kill'}"), 200, "TASK_STATE_FAILED");
    EXPECT(&rig, "/a2a/made", V1, MADE("{'data':{'tool':'none'}}"), 200, "TASK_STATE_REJECTED");
    rig_close(&rig);
}

#ifdef BAY_NO_HTTP2
SKIPPED(all_of_it_by_grpc, "this build has no HTTP/2, which gRPC is")
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_of_every_version_reach_an_agent),
        cmocka_unit_test(an_agent_is_spoken_to_in_its_version),
        cmocka_unit_test(streams_are_passed_on_event_by_event),
        cmocka_unit_test(a_task_goes_on_by_its_id),
        cmocka_unit_test(a_cancel_reaches_the_agent),
        cmocka_unit_test(an_unknown_skill_never_becomes_a_task),
        cmocka_unit_test(a_trace_goes_on_in_a_span_of_the_gateway),
        cmocka_unit_test(cards_are_the_gateways),
        cmocka_unit_test(a_card_is_believed_by_its_signature),
        cmocka_unit_test(a_dead_agent_fails_alone_and_comes_back),
        cmocka_unit_test(a_reload_changes_agents),
        cmocka_unit_test(a_drain_ends_streams),
        cmocka_unit_test(callers_that_leave_leave_nothing_behind),
        cmocka_unit_test(skills_are_tools),
        cmocka_unit_test(a_skill_that_asks_is_answered),
        cmocka_unit_test(a_cancelled_call_cancels_its_task),
        cmocka_unit_test(long_skills_are_tasks),
        cmocka_unit_test(tools_make_an_agent),
        cmocka_unit_test(tasks_of_tools_are_one_for_all_workers),
        cmocka_unit_test(a_tool_that_asks_has_a_task_wait_for_input),
        cmocka_unit_test(cancelling_a_task_cancels_its_call),
        cmocka_unit_test(a_tool_that_fails_fails_its_task),
#ifdef BAY_NO_HTTP2
        cmocka_unit_test(all_of_it_by_grpc),
#endif
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
