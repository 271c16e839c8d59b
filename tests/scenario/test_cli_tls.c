/* The command line towards servers and agents over TLS: --ca, --cert, --key and --insecure, alone
 * and over what the configuration says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "net/thread.h"
#include "patchbay/agent.h"
#include "patchbay/server.h"
#include "support/identity.h"

#define PROGRAM BAY_TEST_BINARY_DIR "/patchbay"

static identity good, other, visitor;
static bay_server *server;
static bay_agent *agent;
static net_thread threads[2];
static char url[64], address[64], config_file[80];

static bool by_certificate(bay_peer *peer, void *user)
{
    bay_str subject = bay_peer_certificate(peer);
    (void)user;
    if (subject.len > 0) {
        bay_peer_principal(peer, "somebody");
    }
    return subject.len > 0;
}

static void reply_ok(bay_call *call, void *user)
{
    (void)user;
    bay_call_reply(call, "the tool ran");
}

static void hear(bay_task *task, const bay_message *message, void *user)
{
    (void)message;
    (void)user;
    (void)bay_task_reply(task, "the agent heard");
}

static void serve(void *argument)
{
    assert_int_equal(bay_server_run(argument, NULL), BAY_OK);
}

static void serve_agent(void *argument)
{
    assert_int_equal(bay_agent_run(argument, NULL), BAY_OK);
}

static void write_config(void)
{
    snprintf(config_file, sizeof(config_file), "%s/patchbay.yaml", good.directory);
    FILE *file = fopen(config_file, "w");
    assert_non_null(file);
    fprintf(
        file,
        "mcpServers:\n  good: {url: \"%s\", tls: {ca: \"%s\", certificate: \"%s\", key: \"%s\"}}\n"
        "  bad: {url: \"%s\", tls: {ca: \"%s\"}}\n"
        "  clear: {url: \"http://127.0.0.1:1/mcp\"}\n"
        "agents:\n  peer: {url: \"%s\", tls: {ca: \"%s\"}}\n",
        url, good.certificate, visitor.certificate, visitor.key, url, other.certificate, address,
        other.certificate);
    fclose(file);
}

static int begin(void **state)
{
    (void)state;
    identity_new(&good, "good");
    identity_new(&other, "other");
    identity_new(&visitor, "visitor");
    server = bay_server_new("s", "1");
    bay_server_tool_schema(server, "run", NULL, NULL, reply_ok, NULL);
    bay_server_tls(server, good.certificate, good.key, visitor.certificate);
    bay_server_identify(server, by_certificate, NULL);
    assert_int_equal(bay_server_listen(server, "127.0.0.1:0", NULL), BAY_OK);
    agent = bay_agent_new("Peer", "1", "Hears.");
    bay_agent_skill(agent, "hear", "Hear", "Hears.", hear, NULL);
    bay_agent_tls(agent, good.certificate, good.key, NULL);
    assert_int_equal(bay_agent_listen(agent, "127.0.0.1:0", NULL), BAY_OK);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/mcp", bay_server_port(server));
    snprintf(address, sizeof(address), "https://127.0.0.1:%u", bay_agent_port(agent));
    assert_int_equal(net_thread_start(&threads[0], serve, server), BAY_OK);
    assert_int_equal(net_thread_start(&threads[1], serve_agent, agent), BAY_OK);
    write_config();
    return 0;
}

static int end(void **state)
{
    (void)state;
    bay_server_stop(server);
    bay_agent_stop(agent);
    net_thread_join(&threads[0]);
    net_thread_join(&threads[1]);
    bay_server_free(server);
    bay_agent_free(agent);
    unlink(config_file);
    identity_free(&good);
    identity_free(&other);
    identity_free(&visitor);
    return 0;
}

/* Runs it, and its output and errors must have `part`. */
static void expect(int code, const char *part, const char *format, ...) BAY_PRINTF(3, 4);

static void expect(int code, const char *part, const char *format, ...)
{
    char line[1024], text[16384];
    va_list arguments;
    size_t len = (size_t)snprintf(line, sizeof(line), "exec %s ", PROGRAM);
    va_start(arguments, format);
    vsnprintf(line + len, sizeof(line) - len, format, arguments);
    va_end(arguments);
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    assert_non_null(out);
    len = fread(text, 1, sizeof(text) - 1, out);
    text[len] = '\0';
    fclose(out);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || strstr(text, part) == NULL) {
        fail_msg("%s\n%d, not %d with \"%s\": %s", line, status, code, part, text);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    expect(3, "self-signed", "list %s", url);
    expect(3, "--ca, or by tls.ca", "list %s", url);
    expect(3, "self-signed", "list --ca %s %s", other.certificate, url);
    expect(3, "self-signed", "card --ca %s %s", other.certificate, address);
    expect(3, "the TLS authorities in /nowhere/ca", "list --ca /nowhere/ca %s", url);
    expect(3, "the TLS authorities in /nowhere/ca", "card --ca /nowhere/ca %s", address);
    expect(3, "key", "list --cert %s --key %s --ca %s %s", visitor.certificate, other.key,
           good.certificate, url);
    expect(2, "for an https:// URL", "list --insecure http://127.0.0.1:1/mcp");
    expect(2, "for an https:// URL", "list -c %s --insecure clear", config_file);
    /* without a certificate, which this server wants */
    expect(8, "", "list --ca %s %s", good.certificate, url);
}

static void files_of_the_command_line_are_used(void **state)
{
    (void)state;
    expect(0, "the tool ran", "call --ca %s --cert %s --key %s %s run", good.certificate,
           visitor.certificate, visitor.key, url);
    expect(0, "the agent heard", "send --ca %s %s hello", good.certificate, address);
    for (int i = 0; i < 3; i++) {
        static const char *const bindings[] = {"JSONRPC", "HTTP+JSON", "GRPC"};
        expect(0, "the agent heard", "send -i %s --ca %s %s hello", bindings[i], good.certificate,
               address);
    }
}

static void insecure_says_so(void **state)
{
    (void)state;
    expect(0, "certificates of servers are not verified",
           "call --insecure --cert %s --key %s %s run", visitor.certificate, visitor.key, url);
    expect(0, "certificates of servers are not verified", "send --insecure %s hello", address);
}

/* The command line goes before the configuration, each part for itself. */
static void the_command_line_goes_before_the_configuration(void **state)
{
    (void)state;
    expect(0, "the tool ran", "call -c %s good run", config_file);
    expect(3, "self-signed", "call -c %s bad run", config_file);
    expect(3, "self-signed", "call -c %s --ca %s good run", config_file, other.certificate);
    expect(0, "the tool ran", "call -c %s --ca %s --cert %s --key %s bad run", config_file,
           good.certificate, visitor.certificate, visitor.key);
    expect(0, "not verified", "call -c %s --insecure --cert %s --key %s bad run", config_file,
           visitor.certificate, visitor.key);
    expect(3, "self-signed", "send -c %s peer hello", config_file);
    expect(0, "the agent heard", "send -c %s --ca %s peer hello", config_file, good.certificate);
    expect(0, "the agent heard", "send -c %s --insecure peer hello", config_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(files_of_the_command_line_are_used),
        cmocka_unit_test(insecure_says_so),
        cmocka_unit_test(the_command_line_goes_before_the_configuration),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
