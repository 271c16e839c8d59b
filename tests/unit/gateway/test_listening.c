/* Who may reach the gateway: nobody from elsewhere, unless it was opened on purpose or asks for
 * certificates; by a file, by the command line, by several addresses at once and by a reload. And
 * what those from elsewhere are told of its state. */
#include "support/gateway_rig.h"

#define SERVERS(mode) "'mcpServers':{" RIG_SERVER("a", "stdio", mode, "") "}}"
#define TIMES                                                                                      \
    "'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms','settle':'20s'},"                 \
    "'limits':{'sessions':100},"
/* Files that can be read, and that nobody gets so far as to read. */
#define TLS                                                                                        \
    "'tls':{'certificate':'/dev/null','key':'/dev/null','clientCa':'/dev/null',"                   \
    "'requireClientCertificate':true},"

static void expect_refusal(const char *settings, const gateway_options *asked, bay_err wanted,
                           const char *part)
{
    gateway_rig self;
    bay_diag diag = {.code = BAY_OK};
    assert_int_equal(rig_try(&self, settings, asked, &diag), wanted);
    if (strstr(diag.text, part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, diag.text);
    }
}

static void open_as(gateway_rig *self, const char *settings, const gateway_options *asked)
{
    bay_diag diag = {.code = BAY_OK};
    if (rig_try(self, settings, asked, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    wait_until(atomic_load(&self->started) == 1);
}

static void an_address_of_others_is_refused(void **state)
{
    (void)state;
    static const char *const listen[] = {
        "'0.0.0.0:0'",
        "['127.0.0.1:0','0.0.0.0:0']", /* one is enough */
        "['0.0.0.0:0','127.0.0.1:0']",
        "'[::ffff:0.0.0.0]:0'",
        "'192.0.2.1:0'",
    };
    const gateway_options none = {.workers = 1};
    for (size_t i = 0; i < ARRAY_LEN(listen); i++) {
        char text[600];
        (void)snprintf(text, sizeof(text), "{'listen':%s," SERVERS("good"), listen[i]);
        expect_refusal(text, &none, BAY_ERR_DENIED, "other machines can reach ");
        expect_refusal(text, &none, BAY_ERR_DENIED, "tls.requireClientCertificate");
        expect_refusal(text, &none, BAY_ERR_DENIED, "open: true (--open)");
    }
    /* the command line's address counts, not the file's */
    const gateway_options given = {.workers = 2, .listen = STR("0.0.0.0:0")};
    expect_refusal("{'listen':'127.0.0.1:0'," SERVERS("good"), &given, BAY_ERR_DENIED, "0.0.0.0:0");
}

static void keys_and_an_open_door_exclude_each_other(void **state)
{
    (void)state;
    const gateway_options here = {.listen = STR("127.0.0.1:0"), .is_open = true};
    const gateway_options anywhere = {.listen = STR("0.0.0.0:0"), .is_open = true};
    expect_refusal("{" TLS SERVERS("good"), &here, BAY_ERR_INVALID, "remove one of the two");
    expect_refusal("{" TLS SERVERS("good"), &anywhere, BAY_ERR_INVALID, "remove one of the two");
}

static void what_is_open_on_purpose_is_served(void **state)
{
    (void)state;
    const gateway_options by_file = {.workers = 2};
    const gateway_options by_option = {.workers = 1, .listen = STR("0.0.0.0:0"), .is_open = true};
    gateway_rig self;
    open_as(&self, "{'listen':['127.0.0.1:0','0.0.0.0:0'],'open':true," TIMES SERVERS("good"),
            &by_file);
    assert_false(gateway_is_local(self.gateway));
    expect_call(&self, "a.echo", "good");
    rig_close(&self);
    open_as(&self, "{" TIMES SERVERS("good"), &by_option);
    expect_call(&self, "a.echo", "good");
    rig_close(&self);
    /* nothing to open: said all the same, and harmless */
    open_as(&self, "{'listen':'127.0.0.1:0','open':true," TIMES SERVERS("good"), &by_file);
    assert_true(gateway_is_local(self.gateway));
    rig_close(&self);
}

/* Somebody listens at that port of 127.0.0.1 to 127.0.0.2. */
static void expect_answer_at(uint16_t port)
{
    static const char *const hosts[] = {"127.0.0.1", "127.0.0.2"};
    bool is_there = false;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET, hosts[i], &at.sin_addr), 1);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        is_there = connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || is_there;
        close(fd);
    }
    assert_true(is_there);
}

static void each_address_is_written_with_its_port(void **state)
{
    (void)state;
    const gateway_options asked = {.workers = 2};
    gateway_rig self;
    open_as(&self, "{'listen':['127.0.0.1:0','127.0.0.2:0','127.0.0.1:0']," TIMES SERVERS("good"),
            &asked);
    assert_int_equal(gateway_address_count(self.gateway), 3);
    static const char *const hosts[] = {"127.0.0.1", "127.0.0.2", "127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        char wanted[64], text[64];
        buf out = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
        gateway_write_address(self.gateway, i, &out);
        (void)snprintf(wanted, sizeof(wanted), "%s:%u", hosts[i], self.gateway->ports[i]);
        expect_answer_at(self.gateway->ports[i]);
        assert_true(str_eq(buf_view(&out), str_of(wanted)));
    }
    rig_close(&self);
}

/* ---- a reload -------------------------------------------------------------------------------- */

static void refuse_reload(gateway_rig *self, const char *settings, const char *part)
{
    int before = rig_log_count("was not reloaded");
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(rig_log_count("was not reloaded") == before + 1);
    wait_until(rig_log_count(part) > 0);
    expect_call(self, "a.echo", "good");
}

static void reload(gateway_rig *self, const char *settings)
{
    int before = atomic_load(&self->reloaded);
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(atomic_load(&self->reloaded) == before + 1);
    expect_call(self, "a.echo", "good");
}

static void a_reload_cannot_open_the_gateway(void **state)
{
    (void)state;
    const gateway_options asked = {.workers = 2};
    gateway_rig self;
    open_as(&self, "{'listen':'127.0.0.1:0'," TIMES SERVERS("good"), &asked);
    uint16_t port = gateway_port(self.gateway);
    refuse_reload(&self, "{'listen':'0.0.0.0:0'," TIMES SERVERS("good"),
                  "other machines can reach 0.0.0.0:0");
    /* one that may be: at the next start */
    reload(&self, "{'listen':'0.0.0.0:0','open':true," TIMES SERVERS("good"));
    assert_int_equal(rig_log_count("listen: what the file says now is used from the next start on"),
                     1);
    assert_int_equal(gateway_port(self.gateway), port);
    assert_true(gateway_is_local(self.gateway));
    reload(&self, "{'listen':'127.0.0.1:0'," TIMES SERVERS("good"));
    rig_close(&self);
}

static void a_reload_cannot_forget_that_the_gateway_is_open(void **state)
{
    (void)state;
    const gateway_options asked = {.workers = 2};
    gateway_rig self;
    open_as(&self, "{'listen':'0.0.0.0:0','open':true," TIMES SERVERS("good"), &asked);
    refuse_reload(&self, "{'listen':'0.0.0.0:0'," TIMES SERVERS("good"), "keep open: true");
    refuse_reload(&self, "{'listen':'127.0.0.1:0'," TIMES SERVERS("good"), "restart the gateway");
    /* TLS is what it was at the start: it protects nobody yet */
    refuse_reload(&self, "{'listen':'0.0.0.0:0'," TLS TIMES SERVERS("good"),
                  "callers are not authenticated");
    reload(&self, "{'listen':'0.0.0.0:0','open':true," TIMES SERVERS("good"));
    rig_close(&self);
}

static void the_command_lines_word_outlives_a_reload(void **state)
{
    (void)state;
    const gateway_options asked = {.listen = STR("0.0.0.0:0"), .is_open = true};
    gateway_rig self;
    open_as(&self, "{" TIMES SERVERS("good"), &asked);
    reload(&self, "{'listen':'192.0.2.1:0'," TIMES SERVERS("good"));
    refuse_reload(&self, "{" TLS TIMES SERVERS("good"), "remove one of the two");
    rig_close(&self);
}

/* ---- the state for operators ----------------------------------------------------------------- */

static void ask_state(gateway_rig *self, client *one)
{
    client_open(one, self);
    assert_true(client_send(one, "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    (void)client_reply(one);
}

static const char *const secrets[] = {
    "\"pid\":", "\"error\":", "\"restartedFor\":", "/no/such/program", "127.0.0.1:1/"};

#define BROKEN                                                                                     \
    "'mcpServers':{" RIG_SERVER(                                                                   \
        "a", "stdio", "good",                                                                      \
        "") ",'b':{'command':'/no/such/program'},"                                                 \
            "'c':{'url':'http://127.0.0.1:1/'}},'agents':{'far':{'url':'http://127.0.0.1:1/'}}}"

static void those_from_elsewhere_learn_no_process_no_path_and_no_error(void **state)
{
    (void)state;
    const gateway_options local = {.workers = 1, .listen = STR("127.0.0.1:0")};
    const gateway_options open = {.workers = 1, .listen = STR("0.0.0.0:0"), .is_open = true};
    for (int is_open = 0; is_open < 2; is_open++) {
        gateway_rig self;
        client one;
        open_as(&self, "{" TIMES BROKEN, is_open ? &open : &local);
        client_open(&one, &self); /* the agent was asked for, so that its error is known */
        assert_true(client_send(&one, "GET /a2a/far/.well-known/agent-card.json HTTP/1.1\r\n"
                                      "Host: 127.0.0.1\r\n\r\n"));
        (void)client_reply(&one);
        client_close(&one);
        ask_state(&self, &one);
        assert_non_null(client_find(&one, "\"name\":\"b\",\"state\":\""));
        assert_non_null(client_find(&one, "\"agents\":[{\"name\":\"far\""));
        for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
            bool is_told = client_find(&one, secrets[i]) != NULL;
            if (is_open && is_told) {
                fail_msg("%s is told: %.*s", secrets[i], (int)one.got.len, one.got.at);
            }
        }
        if (!is_open) {
            assert_non_null(client_find(&one, "\"pid\":"));
            assert_non_null(client_find(&one, "/no/such/program"));
        }
        client_close(&one);
        rig_close(&self);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_of_others_is_refused),
        cmocka_unit_test(keys_and_an_open_door_exclude_each_other),
        cmocka_unit_test(what_is_open_on_purpose_is_served),
        cmocka_unit_test(each_address_is_written_with_its_port),
        cmocka_unit_test(a_reload_cannot_open_the_gateway),
        cmocka_unit_test(a_reload_cannot_forget_that_the_gateway_is_open),
        cmocka_unit_test(the_command_lines_word_outlives_a_reload),
        cmocka_unit_test(those_from_elsewhere_learn_no_process_no_path_and_no_error),
    };
    loop *warm = NULL; /* what libuv opens once is open before anything is counted */
    if (loop_new(&warm) != BAY_OK) {
        return 1;
    }
    loop_free(warm);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
