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
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
