/* The cards of a gateway's agents, of those that are elsewhere and of those made of tools: who gets
 * which form, and that no cache takes one for the other. */
#include "a2a/service.h" /* cmocka takes the word "fail" */
#include "support/gateway_rig.h"

#include "support/agent_peer.h"
#include "support/strict_card.h"
#include "json/json.h"

static agent_peer peer;

/* Who names 1.0 gets a card that a strict reader of 1.0 takes; others one with what 0.3 reads. */
static void expect_card_forms(const gateway_rig *rig, const char *path)
{
    static const char *const fields[] = {"A2A-Version: 1.0\r\n", ""};
    char tags[2][64];
    for (size_t i = 0; i < 2; i++) {
        client one;
        char text[300];
        client_open(&one, rig);
        (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", path,
                       fields[i]);
        assert_true(client_send(&one, text));
        (void)client_reply(&one);
        assert_int_equal(client_status(&one), 200);
        const char *body = client_find(&one, "\r\n\r\n");
        const char *tag = client_find(&one, "ETag: ");
        assert_non_null(body);
        assert_non_null(tag);
        assert_non_null(client_find(&one, "Vary: A2A-Version, Origin\r\n"));
        (void)snprintf(tags[i], sizeof(tags[i]), "%.*s", (int)strcspn(tag, "\r"), tag);
        bay_str card = str_of(body + 4);
        if (i == 0) {
            expect_strict(card);
        } else {
            assert_string_not_equal(strict_card(card).at, "");
            assert_non_null(client_find(&one, "\"preferredTransport\""));
        }
        client_close(&one);
    }
    assert_string_not_equal(tags[0], tags[1]);
}

static void each_agent_has_a_card_of_one_zero_alone(void **state)
{
    (void)state;
    gateway_rig rig;
    char text[600];
    int baseline = rig_descriptors();
    assert_true(peer_open(&peer, 0, NULL));
    (void)snprintf(text, sizeof(text),
                   "{'timeouts':{'drain':100},'mcpServers':{" RIG_SERVER(
                       "s", "legacy", "good", "") "},'agents':{'far':{'url':'http://127.0.0.1:%u'},"
                                                  "'made':{'tools':['s.*']}}}",
                   peer.port);
    rig_open(&rig, text, 2);
    wait_until(atomic_load(&rig.started) == 1);
    expect_card_forms(&rig, "/a2a/far/.well-known/agent-card.json");
    expect_card_forms(&rig, "/a2a/made/.well-known/agent-card.json");
    rig.descriptors = baseline;
    peer_close(&peer);
    rig_close(&rig);
}

#ifndef BAY_NO_TLS
static int card_status(const gateway_rig *rig)
{
    client one;
    client_open(&one, rig);
    assert_true(client_send(&one, "GET /a2a/far/.well-known/agent-card.json HTTP/1.1\r\n"
                                  "Host: 127.0.0.1\r\n\r\n"));
    int status = client_reply(&one);
    client_close(&one);
    return status;
}

static void open_pinned(gateway_rig *rig, const char *mode, const char *lock)
{
    char text[600];
    (void)snprintf(text, sizeof(text),
                   "{'timeouts':{'drain':100},'pins':{'file':'%s','mode':'%s'},"
                   "'agents':{'far':{'url':'http://127.0.0.1:%u'}}}",
                   lock, mode, peer.port);
    rig_open(rig, text, 1);
    wait_until(atomic_load(&rig->started) == 1);
}

/* A card that the lock does not have is not used where pins hold; one that was recorded is. */
static void a_card_that_is_not_pinned_is_held(void **state)
{
    (void)state;
    gateway_rig rig;
    char lock[] = "/tmp/cards.lock.XXXXXX";
    int file = mkstemp(lock);
    assert_true(file >= 0);
    close(file);
    assert_true(peer_open(&peer, 0, NULL));
    static const struct {
        const char *mode;
        bool is_held;
    } rows[] = {{"hold", true}, {"record", false}, {"hold", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        open_pinned(&rig, rows[i].mode, lock);
        int status = card_status(&rig);
        assert_int_equal(status != 200, rows[i].is_held);
        assert_int_equal(rig_log_count("its card is not approved") > 0, rows[i].is_held);
        gateway_stop(rig.gateway);
        net_thread_join(&rig.thread);
        gateway_free(rig.gateway);
        config_free(rig.config);
        (void)unlink(rig.path);
    }
    peer_close(&peer);
    (void)unlink(lock);
}
#endif

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_agent_has_a_card_of_one_zero_alone),
#ifndef BAY_NO_TLS
        cmocka_unit_test(a_card_that_is_not_pinned_is_held),
#endif
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
