/* A client and a server in one process, each allocation of both failing in turn, in each revision:
 * the first, the second … only, and each from there on. Every step of the session still ends, with
 * what was asked for or with an error; nothing crashes, hangs or stays allocated; and a server that
 * met a single failure serves the next client.
 *
 * A session makes some thousand allocations, so each run of this test takes every so-many-th of
 * them, from where BAY_SWEEP_OFFSET says (0); BAY_SWEEP_STEP=1 takes them all, in minutes. */
#include "support/sweep_session.h"

#include <time.h>

#include "support/failing_memory.h"

static sweep_transcript told;

static bay_client *attach(bay_server *server, const char *revision)
{
    bay_client *client = NULL;
    bay_client_options *options = sweep_options(&told, revision);
    bay_client_options_timeout(options, 150, 1000);
    bay_client_options_reconnect(options, 2, 1);
    if (bay_client_attach(server, options, &client, NULL) != BAY_OK) {
        assert_null(client);
    }
    bay_client_options_free(options);
    return client;
}

static void meet(bay_server *server, sweep_service *service, const char *revision)
{
    told = (sweep_transcript){.len = 0};
    bay_client *client = attach(server, revision);
    if (client != NULL) {
        sweep_session(client, &told, 60);
    }
    (void)sweep_let_go(service);
    bay_client_close(client);
}

/* What was registered when nothing failed yet must still be served when nothing fails any more. */
static void meet_afresh(bay_server *server, const char *revision, size_t at)
{
    bay_reply *reply = NULL;
    bay_diag diag = {.code = BAY_OK};
    assert_true(failing_memory.has_failed);
    if (bay_server_check(server, &diag) != BAY_OK) {
        assert_int_equal(diag.code, BAY_ERR_NOMEM);
        return;
    }
    bay_client *client = attach(server, revision);
    if (client == NULL ||
        bay_client_call(client, "echo", "{\"text\":\"x\"}", &reply, &diag) != BAY_OK ||
        bay_reply_text(reply, 0).len != 5) {
        fail_msg("%s, allocation %zu: the server is of no use after it: %s", revision, at,
                 diag.text);
    }
    bay_reply_free(reply);
    bay_client_close(client);
}

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

static void sweep(const char *revision, bool is_single, size_t step, size_t offset)
{
    size_t runs = 0;
    size_t last = 0;
    int most_well = 0;
    int64_t began = sweep_now_ms();
    for (size_t at = offset; is_single ? failing_memory_start_single(at) : failing_memory_start(at);
         at += step) {
        sweep_service service;
        int64_t run_began = sweep_now_ms();
        bay_server *server = sweep_server_new(&service);
        meet(server, &service, revision);
        most_well = told.well > most_well ? told.well : most_well;
        if (getenv("BAY_SWEEP_TOLD") != NULL && sweep_now_ms() - run_began > 600) {
            printf("%s: allocation %zu: %d ms\n%s\n", revision, at,
                   (int)(sweep_now_ms() - run_began), told.text);
        }
        /* Nothing of a session is told by the clock only; tasks that could not be stored are. */
        if (strcmp(revision, "2026-07-28") != 0 && strstr(told.text, ": error 17\n") != NULL) {
            fail_msg("%s, allocation %zu: nobody answered\n%s", revision, at, told.text);
        }
        if (is_single && failing_memory.has_failed) {
            meet_afresh(server, revision, at);
        }
        bay_server_free(server);
        if (failing_memory.outstanding != 0) {
            fail_msg("%s, allocation %zu: %zu not given back", revision, at,
                     failing_memory.outstanding);
        }
        runs++;
        last = at;
    }
    printf("%s: %zu runs, to allocation %zu, %s, at best %d steps well, %d ms\n", revision, runs,
           last, is_single ? "one failing" : "all failing from there", most_well,
           (int)(sweep_now_ms() - began));
    assert_true(runs > 20 && most_well > 30); /* it did get somewhere */
}

static void each_allocation_fails_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < SWEEP_REVISIONS; i++) {
        bool is_modern = i == SWEEP_REVISIONS - 1;
        size_t step = setting("BAY_SWEEP_STEP", is_modern ? 13 : 5);
        sweep(sweep_revisions[i], true, step, (setting("BAY_SWEEP_OFFSET", 0) + i) % step);
    }
}

static void memory_ends_at_each_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < SWEEP_REVISIONS; i++) {
        bool is_modern = i == SWEEP_REVISIONS - 1;
        size_t step = setting("BAY_SWEEP_STEP", is_modern ? 13 : 5);
        sweep(sweep_revisions[i], false, step, (setting("BAY_SWEEP_OFFSET", 0) + i) % step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_fails_alone),
        cmocka_unit_test(memory_ends_at_each_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
