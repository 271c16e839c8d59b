/* The audit and the access log of a running gateway: each call once, whatever became of it, with who
 * called and nothing secret; and a gateway that cannot keep its record does not go on in silence. */
#include "support/gateway_rig.h"

#include <openssl/opensslv.h> /* a build without digests leaves this out */
#include <sys/resource.h>
#include <sys/un.h>

#include "base/str.h"
#include "evidence/audit_verify.h"

static char audit_path[64];
static char access_path[64];
static char admin_folder[64];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(audit_path, sizeof(audit_path), "/tmp/audit.%d.log", (int)getpid());
    (void)snprintf(access_path, sizeof(access_path), "/tmp/access.%d.log", (int)getpid());
    (void)unlink(audit_path);
    (void)unlink(access_path);
    return 0;
}

static int tear_down(void **state)
{
    return set_up(state);
}

static void open_rig(gateway_rig *rig, uint32_t workers, const char *more)
{
    char settings[1200];
    (void)snprintf(settings, sizeof(settings),
                   "{'timeouts':{'drain':100},'audit':{'file':'%s'},"
                   "'log':{'access':'on','accessFile':'%s','format':'json'},%s"
                   "'mcpServers':{" RIG_SERVER("s", "stdio", "good", "") "}}",
                   audit_path, access_path, more);
    rig_open(rig, settings, workers);
    wait_until(atomic_load(&rig->started) == 1);
    wait_until(is_answered(rig, "s.echo", "\"text\":\"good\""));
}

static void call_with(const gateway_rig *to, const char *tool, const char *arguments)
{
    client one;
    char fields[300];
    char body[900];
    (void)snprintf(fields, sizeof(fields),
                   "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                   "Mcp-Name: %s\r\n",
                   tool);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'%s',"
                   "'arguments':%s," RIG_META "}}}",
                   tool, arguments);
    client_open(&one, to);
    client_post(&one, "/mcp", fields, body);
    (void)client_reply(&one);
    client_close(&one);
}

/* A whole file, with a NUL behind it. */
static void read_file(const char *path, buf *out)
{
    char bytes[65536];
    size_t got;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    buf_init(out, 64 << 20);
    while ((got = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        buf_append(out, bytes, got);
    }
    buf_char(out, '\0');
    assert_int_equal(out->err, BAY_OK);
    assert_int_equal(fclose(file), 0);
}

/* Lines that have all of these parts, separated by '|'; ' stands for ". */
static int count_lines(const char *text, const char *parts)
{
    int count = 0;
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t len = end != NULL ? (size_t)(end - line) : strlen(line);
        bool has_all = true;
        for (const char *part = parts; has_all && *part != '\0';) {
            size_t part_len = strcspn(part, "|");
            char wanted[200];
            assert_true(part_len < sizeof(wanted));
            for (size_t i = 0; i < part_len; i++) {
                wanted[i] = (char)(part[i] == '\'' ? '"' : part[i]);
            }
            has_all = memmem(line, len, wanted, part_len) != NULL;
            part += part_len + (part[part_len] == '|');
        }
        count += has_all;
        line += len + (end != NULL);
    }
    return count;
}

static void expect_lines(const char *text, const char *parts, int count)
{
    int found = count_lines(text, parts);
    if (found != count) {
        fail_msg("%s: %d lines in place of %d:\n%s", parts, found, count, text);
    }
}

static audit_verdict whole(void)
{
    audit_verdict verdict;
    bay_diag diag = {0};
    assert_int_equal(audit_verify(audit_path, STR(""), &verdict, &diag), BAY_OK);
    assert_int_equal(verdict.fault, AUDIT_GOOD);
    return verdict;
}

static void each_call_leaves_one_record(void **state)
{
    enum { CALLS = 40 };
    gateway_rig rig;
    buf audit;
    buf access;
    char parts[120];
    (void)state;
    open_rig(&rig, 2,
             "'policy':{'default':'allow','rules':["
             "{'deny':'s.null','args':{'/deny':true}}]},");
    for (int i = 0; i < CALLS; i++) {
        char arguments[64];
        (void)snprintf(arguments, sizeof(arguments), "{'mark':'mark-%d-'}", i);
        call_with(&rig, "s.echo", arguments);
    }
    call_with(&rig, "s.echo", "{'mark':'secrets','password':'hunter2','x':'Bearer tiger3'}");
    call_with(&rig, "s.null", "{'deny':true}");
    call_with(&rig, "s.invented", "{}");
    client lister;
    client_open(&lister, &rig);
    client_list(&lister, "/mcp/s");
    assert_int_equal(client_reply(&lister), 200);
    client_close(&lister);
    rig_close(&rig);
    audit_verdict verdict = whole();
    assert_true(verdict.is_closed);
    assert_int_equal(verdict.crashes, 0);
    read_file(audit_path, &audit);
    read_file(access_path, &access);
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(parts, sizeof(parts),
                       "'mark':'mark-%d-'|'kind':'call'|'server':'s'|'name':'s.echo'|"
                       "'outcome':'result'|'principal':{'proof':'anonymous'}",
                       i);
        expect_lines(audit.at, parts, 1);
    }
    expect_lines(audit.at, "'mark':'secrets','password':'[redacted]','x':'[redacted]'", 1);
    expect_lines(audit.at, "hunter2", 0);
    expect_lines(audit.at, "tiger3", 0);
    expect_lines(access.at, "mark", 0);
    const buf *both[] = {&audit, &access};
    for (size_t i = 0; i < 2; i++) {
        expect_lines(both[i]->at,
                     "'outcome':'refused','reason':'denied'|'server':'s'|'name':'s.null'", 1);
        expect_lines(both[i]->at, "'name':'s.invented'|'outcome':'error','reason':'-32602'", 1);
        expect_lines(both[i]->at, "'method':'tools/list'|'outcome':'result'", 1);
    }
    assert_int_equal(count_lines(access.at, "'component':'access'|s.echo"),
                     count_lines(audit.at, "'kind':'call'|s.echo"));
    buf_fini(&audit);
    buf_fini(&access);
}

/* What operators do, and what comes of a reload; a reading leaves nothing. */
static void what_is_done_to_the_gateway_is_recorded(void **state)
{
    static const char *const requests[] = {
        "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 0\r\n\r\n",
    };
    gateway_rig rig;
    buf audit;
    char more[160];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)state;
    (void)snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/audit.%d/admin.sock", (int)getpid());
    (void)snprintf(more, sizeof(more), "'admin':{'listen':['unix:%s']},", at.sun_path);
    (void)snprintf(admin_folder, sizeof(admin_folder), "/tmp/audit.%d", (int)getpid());
    assert_int_equal(mkdir(admin_folder, 0700), 0);
    open_rig(&rig, 1, more);
    for (size_t i = 0; i < 2; i++) {
        client one = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        buf_init(&one.got, RIG_REPLY);
        assert_int_equal(connect(one.fd, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_true(client_send(&one, requests[i]));
        assert_int_equal(client_reply(&one), 200);
        client_close(&one);
    }
    rig_close(&rig);
    assert_int_equal(rmdir(admin_folder), 0);
    (void)whole();
    read_file(audit_path, &audit);
    expect_lines(audit.at, "'kind':'admin'", 1);
    expect_lines(audit.at, "'kind':'admin','what':'/v1/reload','outcome':'admitted'", 1);
    expect_lines(audit.at, "'kind':'config','what':'reload','outcome':'in_force'", 1);
    buf_fini(&audit);
}

static void set_largest(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The disk is full: what may change something is refused, lists are answered; with room nothing of
 * what was answered meanwhile is missing. */
static void without_room_for_the_record_calls_are_refused(void **state)
{
    gateway_rig rig;
    struct stat about;
    client one;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    open_rig(&rig, 1, "");
    wait_until(stat(audit_path, &about) == 0 && about.st_size > 0);
    set_largest(1);
    wait_until(is_answered(&rig, "s.echo", "\"patchbay/reason\":\"unavailable\""));
    client_open(&one, &rig);
    client_list(&one, "/mcp");
    assert_int_equal(client_reply(&one), 200);
    assert_non_null(client_find(&one, "s.echo"));
    client_close(&one);
    set_largest(RLIM_INFINITY);
    wait_until(is_answered(&rig, "s.echo", "\"text\":\"good\""));
    rig_close(&rig);
    audit_verdict verdict = whole();
    assert_int_equal(verdict.dropped, 0);
    buf audit;
    read_file(audit_path, &audit);
    assert_true(count_lines(audit.at, "'outcome':'refused','reason':'unavailable'") >= 1);
    expect_lines(audit.at, "'method':'tools/list'|'name'", 0);
    assert_true(count_lines(audit.at, "'method':'tools/list'|'outcome':'result'") >= 1);
    buf_fini(&audit);
    assert_true(rig_log_count("error audit: ") >= 1);
}

/* libuv keeps two descriptors from its first loop on; the rig counts them. */
static int make_a_loop(void **state)
{
    loop *first = NULL;
    (void)state;
    if (loop_new(&first) != BAY_OK) {
        return -1;
    }
    loop_free(first);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_call_leaves_one_record, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_done_to_the_gateway_is_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_room_for_the_record_calls_are_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, make_a_loop, NULL);
}
