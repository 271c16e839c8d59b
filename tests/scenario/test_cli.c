/* The client commands as a person or a script runs them: the built program against servers that
 * answer, refuse, stay silent, break and vanish. Output, exit codes and what is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "patchbay/server.h"
#include "support/program.h"
#include "support/scripted_server.h"
#include "json/canon.h"
#include "json/json.h"

static char weather[4096 + 32];

/* ---- what cannot be reached ------------------------------------------------------------------ */

static void a_command_that_does_not_exist(void **state)
{
    (void)state;
    PATCHBAY("list", "--", "/no/such/program");
    assert_ended(3, "");
    assert_has(result.err, "patchbay: /no/such/program: ");
    assert_has(result.err, "Check the command and its path");
}

static void a_command_that_dies_says_why(void **state)
{
    (void)state;
    PATCHBAY("list", SCRIPTED("dies"));
    assert_ended(3, "");
    assert_has(result.err, "Run the command by itself");
}

/* Bound, but nobody listens: the port stays ours while it refuses. */
static void a_url_that_refuses(void **state)
{
    (void)state;
    char url[64];
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int closed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(closed, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(closed, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof(url), "http://user:pass@127.0.0.1:%d/mcp?token=s3cret",
             ntohs(address.sin_port));
    PATCHBAY("list", url, "-H", "Authorization: hunter2");
    assert_ended(2, "");
    assert_has(result.err, "must not carry a name or password");
    assert_null(strstr(result.err, "pass@"));
    assert_null(strstr(result.err, "s3cret"));
    assert_null(strstr(result.err, "hunter2"));
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/mcp?token=s3cret", ntohs(address.sin_port));
    PATCHBAY("list", url, "-H", "Authorization: hunter2");
    assert_ended(3, "");
    assert_has(result.err, "/mcp: ");
    assert_has(result.err, "Check that the server runs");
    assert_null(strstr(result.err, "s3cret"));
    close(closed);
}

static void a_server_that_never_answers(void **state)
{
    (void)state;
    PATCHBAY("list", "-t", "200ms", SCRIPTED("mute"));
    assert_ended(4, "");
    assert_has(result.err, "did not answer in time");
    assert_has(result.err, "--timeout");
    PATCHBAY("call", "-t", "200ms", "silent", SCRIPTED("well"));
    assert_ended(4, "");
    assert_has(result.err, "did not answer in time");
}

static void a_server_that_speaks_something_else(void **state)
{
    (void)state;
    PATCHBAY("list", SCRIPTED("garbage"));
    assert_ended(5, "");
    assert_null(strchr(result.err, '\x1b'));
    PATCHBAY("list", "--", "/bin/cat"); /* answers every request with the request itself */
    assert_ended(5, "");
}

static void a_server_that_leaves_during_a_call(void **state)
{
    (void)state;
    PATCHBAY("call", "a", SCRIPTED("leaves"));
    assert_ended(3, "");
    assert_has(result.err, "exited with status 4");
}

static void a_name_needs_its_configuration(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    char text[5000];
    PATCHBAY("list", "-c", "/no/such/file.yaml", "weather");
    assert_ended(6, "");
    int file = mkstemp(path);
    int len = snprintf(text, sizeof(text),
                       "mcpServers:\n  one:\n    command: %s\n    args: [--serve, well]\n"
                       "  off:\n    command: x\n    disabled: true\n",
                       self_path);
    assert_int_equal(write(file, text, (size_t)len), len);
    close(file);
    PATCHBAY("list", "-c", path, "two");
    assert_ended(2, "");
    assert_has(result.err, "its servers: one, off");
    PATCHBAY("list", "-c", path, "off");
    assert_ended(6, "");
    PATCHBAY("list", "-c", path, "-T", "http", "one");
    assert_ended(2, "");
    PATCHBAY("call", "-c", path, "one", "fails");
    assert_ended(1, "no luck\n");
    unlink(path);
}

static void a_profile_is_served_over_stdio(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    char text[10000];
    int file = mkstemp(path);
    int len = snprintf(text, sizeof(text),
                       "profiles: {some: {tools: [one.a]}, few: {mode: search}}\n"
                       "mcpServers:\n  one:\n    command: %s\n    args: [--serve, well]\n"
                       "  two:\n    command: %s\n    args: [--serve, well]\n",
                       self_path, self_path);
    assert_int_equal(write(file, text, (size_t)len), len);
    close(file);
    PATCHBAY("list", "--json", "--", binary, "stdio", "-c", path, "-P", "some");
    assert_int_equal(result.code, 0);
    assert_has(result.out, "\"name\":\"one.a\"");
    assert_null(strstr(result.out, "\"name\":\"one.b\""));
    assert_null(strstr(result.out, "\"name\":\"two.a\""));
    PATCHBAY("list", "--json", "--", binary, "stdio", "-c", path, "--profile", "few");
    assert_int_equal(result.code, 0);
    assert_has(result.out, "\"name\":\"call_tool\"");
    PATCHBAY("stdio", "-c", path, "--profile", "none");
    assert_int_equal(result.code != 0, 1);
    assert_has(result.err, "the configuration has no profile \"none\"");
    unlink(path);
}

/* ---- serve ----------------------------------------------------------------------------------- */

static void write_config(char path[], const char *top)
{
    char text[10000];
    int file = mkstemp(path);
    int len = snprintf(text, sizeof(text),
                       "%smcpServers:\n  one:\n    command: %s\n    args: [--serve, well]\n", top,
                       self_path);
    assert_int_equal(write(file, text, (size_t)len), len);
    close(file);
}

static void end_gateway(run *self)
{
    assert_int_equal(kill(self->pid, SIGTERM), 0);
    finish(self);
    assert_int_equal(self->code, 0);
}

static void a_gateway_for_everybody_is_opened_on_purpose(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    char machine[256];
    char url[400];
    write_config(path, "");
    PATCHBAY("serve", "-c", path, "-l", "0.0.0.0:0");
    assert_ended(7, "");
    assert_has(result.err, "patchbay: other machines can reach 0.0.0.0:0, and callers are not "
                           "authenticated: use auth or tls.requireClientCertificate, or "
                           "open: true (--open) if anybody may call");
    const char *const argv[] = {binary, "serve", "-c", path, "-l", "0.0.0.0:0", "--open", NULL};
    start(&result, argv);
    follow(&result, "\"}}}");
    const char *at = strstr(result.err, "Patchbay is ready: http://0.0.0.0:");
    assert_non_null(at);
    assert_has(at, "Other machines can reach it.");
    assert_null(strstr(result.err, "127.0.0.1"));
    unsigned port = 0;
    assert_int_equal(sscanf(at, "Patchbay is ready: http://0.0.0.0:%u/mcp", &port), 1);
    assert_int_equal(gethostname(machine, sizeof(machine)), 0);
    (void)snprintf(url, sizeof(url), "{\"url\": \"http://%.255s:%u/mcp\"}", machine, port);
    assert_has(result.err, url); /* what others can paste */
    end_gateway(&result);
    unlink(path);
}

static void every_address_is_named(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    write_config(path, "listen: ['127.0.0.1:0', '127.0.0.2:0']\n");
    const char *const argv[] = {binary, "serve", "-c", path, NULL};
    start(&result, argv);
    follow(&result, "\"}}}");
    const char *at = strstr(result.err, "Patchbay is ready: http://127.0.0.1:");
    assert_non_null(at);
    assert_has(at, "\n                   http://127.0.0.2:");
    assert_null(strstr(result.err, ":0/mcp"));
    assert_null(strstr(result.err, "Other machines"));
    end_gateway(&result);
    unlink(path);
}

static void an_entry_that_matches_nothing_is_told(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    char text[5000];
    int file = mkstemp(path);
    int len = snprintf(text, sizeof(text),
                       "listen: 127.0.0.1:0\nmcpServers:\n  one:\n    command: %s\n    args: "
                       "[--serve, well]\n    expose: {tools: [a, bb]}\n    rename: {a: c}\n",
                       self_path);
    assert_int_equal(write(file, text, (size_t)len), len);
    close(file);
    const char *const argv[] = {binary, "serve", "-c", path, NULL};
    start(&result, argv);
    follow(&result, "server \"one\" offers nothing by the name of expose.tools \"bb\": check");
    end_gateway(&result);
    unlink(path);
}

/* ---- check ----------------------------------------------------------------------------------- */

static void a_good_configuration_is_explained(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    write_config(path, "listen: 127.0.0.1:8930\nprofiles:\n  p: {servers: [one]}\n");
    PATCHBAY("check", "-c", path);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.err, "");
    assert_has(result.out, "listens   http://127.0.0.1:8930/mcp\n"
                           "          only this machine can reach it\n"
                           "callers   whoever reaches it\n"
                           "servers   one ");
    assert_has(result.out, "names     one.TOOL\nprofiles  /mcp/@p              one\n"
                           "sessions  end with the gateway\ngood: 0 errors, 0 warnings\n");
    assert_null(strstr(result.out, "--serve")); /* arguments may be secrets */
    PATCHBAY("check", "--json", "-c", path);
    assert_int_equal(result.code, 0);
    assert_has(result.out,
               "\"good\":true,\"errors\":0,\"warnings\":0,\"messages\":[],"
               "\"listen\":[\"127.0.0.1:8930\"],\"local\":true,\"issuers\":[],"
               "\"apiKeys\":false,\"certificates\":false,\"default\":\"allow\",\"rules\":[],"
               "\"servers\":[{");
    unlink(path);
}

static void who_may_what_is_told(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    write_config(path,
                 "groups:\n  ops: {subject: [ada]}\npolicy:\n  default: deny\n  rules:\n"
                 "    - allow: [one.a, 'prompt:one.*']\n      who: {group: ops, scopes: [r, w], "
                 "header: {X-Key: hunter2}}\n      args: {/path: {prefix: /hunter2/}}\n"
                 "    - deny: '*.drop_*'\n");
    PATCHBAY("check", "-c", path);
    assert_int_equal(result.code, 0);
    assert_has(result.out,
               "rules     what no rule is about is denied, and is not there\n"
               "          line 6   allow   one.a, prompt:one.* for scopes r, w; group ops; header "
               "X-Key, if args /path\n"
               "          line 9   deny    *.drop_* for everybody\n");
    assert_null(strstr(result.out, "hunter2")); /* values may be secrets */
    PATCHBAY("check", "--json", "-c", path);
    assert_int_equal(result.code, 0);
    assert_has(result.out, "\"default\":\"deny\",\"rules\":[{\"line\":6,\"effect\":\"allow\","
                           "\"about\":[\"one.a\",\"prompt:one.*\"],\"who\":\"scopes r, w; group "
                           "ops; header X-Key\",\"if\":\"args /path\"},{\"line\":9,");
    assert_null(strstr(result.out, "hunter2"));
    unlink(path);
}

static void all_mistakes_are_told_at_once(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-cli-XXXXXX";
    write_config(path, "lisen: x\ntimeouts: {call: soon}\nstore: /no/such/folder/s.db\n"
                       "agents:\n  b: {url: 'https://a.example/', tls: {ca: /no/ca.pem}}\n");
    PATCHBAY("check", "-c", path);
    assert_ended(6, "refused: 3 errors, 1 warning\n");
    assert_has(result.err, ":1: unknown key \"lisen\": did you mean \"listen\"?\n");
    assert_has(result.err, ":2: timeouts.call needs ");
    assert_has(result.err, ":3: store: no file can be made in \"/no/such/folder\": ");
    assert_has(result.err,
               ":5: warning: agents.b.tls.ca: the file \"/no/ca.pem\" cannot be read: ");
    PATCHBAY("serve", "-c", path); /* says the same */
    assert_int_equal(result.code, 6);
    assert_has(result.err, ":3: store: no file can be made in ");
    PATCHBAY("stdio", "-c", path); /* looks for no files */
    assert_int_equal(result.code, 6);
    assert_has(result.err, ":1: unknown key ");
    assert_null(strstr(result.err, "store: "));
    PATCHBAY("check", "--json", "-c", path);
    assert_int_equal(result.code, 6);
    assert_string_equal(result.err, "");
    assert_has(result.out, "\"good\":false,\"errors\":3,\"warnings\":1,\"messages\":[{\"line\":1,"
                           "\"severity\":\"error\",\"text\":\"unknown key ");
    assert_null(strstr(result.out, "\"listen\":["));
    PATCHBAY("check", "-c", "/no/such/file.yaml");
    assert_ended(6, "refused: 1 error, 0 warnings\n");
    assert_has(result.err, "/no/such/file.yaml: cannot be opened: ");
    unlink(path);
}

/* ---- list ------------------------------------------------------------------------------------ */

/* Controls but newlines (colours are of ours: without them), and what is not seen. */
static void assert_harmless(const char *text, size_t len)
{
    static const char *const hidden[] = {"\xe2\x80\xae", "\xe2\x80\x8b",     "\xe2\x80\xa8",
                                         "\xef\xbb\xbf", "\xf3\xa0\x81\x81", "\xc2\x9b"};
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_return = c == '\r'; /* a line of progress is written over */
        assert_true((c >= 0x20 && c != 0x7f) || c == '\n' || is_return);
    }
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        assert_null(strstr(text, hidden[i]));
    }
}

static void assert_same_json(const char *one, const char *other)
{
    arena memory;
    json_doc first;
    json_doc second;
    buf canon[2];
    arena_init(&memory, 1 << 20);
    buf_init(&canon[0], 1 << 20);
    buf_init(&canon[1], 1 << 20);
    assert_int_equal(json_parse(&first, str_of(one), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(json_parse(&second, str_of(other), NULL, &memory, NULL), BAY_OK);
    assert_int_equal(json_canon(&canon[0], json_root(&first), &memory, NULL), BAY_OK);
    assert_int_equal(json_canon(&canon[1], json_root(&second), &memory, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&canon[0]), buf_view(&canon[1])));
    buf_fini(&canon[0]);
    buf_fini(&canon[1]);
    arena_fini(&memory);
}

static void lists_of_every_kind_and_page(void **state)
{
    (void)state;
    PATCHBAY("list", SCRIPTED("well"));
    assert_ended(0, "2 tools, 41 tokens · 1 resource · 1 prompt · 2025-11-25, stdio\n"
                    "\n"
                    "  a  17 tok  The first.\n"
                    "  b  24 tok  The second\\u{1b}[2J.\n"
                    "\n"
                    "resources\n"
                    "  x:text    text\n"
                    "\n"
                    "prompts\n"
                    "  greet  who  greet\n");
    assert_string_equal(result.err, "");
}

static void a_command_in_one_word(void **state)
{
    (void)state;
    char target[5000];
    (void)snprintf(target, sizeof(target), "stdio:'%s' --serve \"well\"", self_path);
    PATCHBAY("call", target, "fails");
    assert_ended(1, "no luck\n");
}

static void lists_for_programs(void **state)
{
    (void)state;
    PATCHBAY("list", "--json", SCRIPTED("well"));
    assert_ended(0,
                 "{\"protocolVersion\":\"2025-11-25\",\"transport\":\"stdio\",\"serverInfo\":"
                 "{\"name\":\"scripted\",\"version\":\"1\"},\"capabilities\":{\"tools\":{},"
                 "\"resources\":{},\"prompts\":{}},\"instructions\":\"none\",\"tools\":[{\"name\":"
                 "\"a\",\"description\":\"The first.\",\"inputSchema\":{\"type\":\"object\"}},"
                 "{\"name\":\"b\",\"description\":\"The second\\u001b[2J.\",\"inputSchema\":"
                 "{\"type\":\"object\"},\"x\" : 1.0}],\"resources\":[{\"uri\":\"x:text\",\"name\":"
                 "\"text\"}],\"prompts\":[{\"name\":\"greet\",\"arguments\":[{\"name\":\"who\","
                 "\"required\":true}]}],\"tokens\":41,\"toolTokens\":[17,24]}\n");
}

static void a_modern_server_lists_too(void **state)
{
    (void)state;
    PATCHBAY("list", "--", weather);
    assert_int_equal(result.code, 0);
    assert_has(result.out, "2 tools, ");
    assert_has(result.out, " · 2026-07-28, stdio\n");
    assert_has(result.out, "get_weather");
    assert_null(strstr(result.out, "resource"));
    PATCHBAY("list", "-p", "2025-06-18", "--", weather);
    assert_has(result.out, " · 2025-06-18, stdio\n");
    PATCHBAY("list", "-p", "modern", SCRIPTED("well"));
    assert_ended(5, "");
    assert_has(result.err, "--protocol");
}

/* ---- call ------------------------------------------------------------------------------------ */

static void calls_print_what_came(void **state)
{
    (void)state;
    PATCHBAY("call", "a", SCRIPTED("well"));
    assert_ended(0, "plain\n\x1b[1m\n"); /* redirected: bytes */
    PATCHBAY("call", "mixed", SCRIPTED("well"));
    assert_ended(0, "one\n[image/png, 3 bytes]\n");
    PATCHBAY("call", "--json", "mixed", SCRIPTED("well"));
    assert_ended(0, "{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\","
                    "\"data\":\"AAAA\",\"mimeType\":\"image/png\"}],\"structuredContent\":{\"n\":"
                    "1.0}}\n");
    PATCHBAY("call", "structured", SCRIPTED("well"));
    assert_ended(0, "");
    assert_has(result.err, "--json shows its structured answer");
    PATCHBAY("call", "logs", SCRIPTED("well"));
    assert_ended(0, "done\n");
    assert_string_equal(result.err, "warning: look\\u{7}out\n");
    PATCHBAY("call", "get_weather", "location=Tokyo", "--", weather);
    assert_int_equal(result.code, 0);
    assert_has(result.out, "Tokyo, Japan: 16 °C");
}

/* Every command that shows what a peer wrote, on a terminal: no byte that it would obey, nothing
 * that would not be seen; and what is JSON is the same JSON as in a pipe. */
static void a_terminal_gets_nothing_to_obey(void **state)
{
    (void)state;
    setenv("TERM", "dumb", 1); /* no colours: they are ours */
    static const char *const commands[][4] = {
        {"list", NULL},
        {"list", "--json", NULL},
        {"call", "mixed", NULL},
        {"call", "--json", "mixed", NULL},
        {"call", "a", NULL},
        {"call", "logs", NULL},
        {"call", "nothing", NULL},
        {"read", "x:text", NULL},
        {"prompt", "greet", NULL},
        {"step", NULL},
        {"step", "--json", NULL},
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *argv[ARGUMENTS] = {binary};
        size_t count = 1;
        for (size_t word = 0; commands[i][word] != NULL; word++) {
            argv[count++] = commands[i][word];
        }
        const char *const target[] = {SCRIPTED("hostile")};
        memcpy(argv + count, target, sizeof(target));
        terminal_columns = 200;
        start(&result, argv);
        finish(&result);
        terminal_columns = 0;
        const char *const texts[] = {result.out, result.err};
        const size_t lens[] = {result.out_len, result.err_len};
        assert_true(lens[0] + lens[1] > 0);
        for (size_t text = 0; text < 2; text++) {
            assert_harmless(texts[text], lens[text]);
        }
    }
    PATCHBAY("call", "--json", "mixed", SCRIPTED("hostile"));
    assert_has(result.out, "\xe2\x80\xae\xe2\x80\x8b\xc2\x9b\x7f"); /* in a pipe: its bytes */
    run piped = result;
    const char *const again[] = {binary, "call", "--json", "mixed", SCRIPTED("hostile"), NULL};
    terminal_columns = 200;
    start(&result, again);
    finish(&result);
    terminal_columns = 0;
    assert_has(result.out, "\\u202e\\u200b\\u009b\\u007f");
    assert_same_json(piped.out, result.out);
}

static void calls_that_fail_say_so(void **state)
{
    (void)state;
    PATCHBAY("call", "fails", SCRIPTED("well"));
    assert_ended(1, "no luck\n");
    PATCHBAY("call", "asks", SCRIPTED("well"));
    assert_ended(1, "");
    assert_has(result.err, "asks for input");
    PATCHBAY("call", "nothing", SCRIPTED("well"));
    assert_ended(1, "");
    assert_has(result.err, "error -32601: nothing of that\\u{7} name");
    PATCHBAY("call", "nothing", "--", weather);
    assert_ended(1, "");
    assert_has(result.err, "nothing");
    PATCHBAY("call", "get_weather", "--", weather);
    assert_int_equal(result.code, 1);
    assert_has(result.out, "lacks the required property \"location\"");
    PATCHBAY("call", "get_weather", "location:=nowhere", "--", weather);
    assert_ended(2, "");
    assert_has(result.err, "location:= needs JSON");
    PATCHBAY("call", "get_weather", "-a", "[]", "--", weather);
    assert_ended(2, "");
    PATCHBAY("call", "get_weather", "location=1", "--", weather);
    assert_int_equal(result.code, 1);
    assert_has(result.out, "/location must be");
    PATCHBAY("call", "get_weather", "location==1", "--", weather);
    assert_int_equal(result.code, 1);
    assert_has(result.out, "no city \"1\"");
}

static void tell_region(bay_call *call, void *user)
{
    bay_str region = bay_call_str(call, "region");
    (void)user;
    bay_call_replyf(call, "in %.*s", BAY_STR(region));
}

/* A tool that wants an argument in a header field as well, and is refused without. */
static int serve_region(void)
{
    char http[] = "--http";
    char address[] = "127.0.0.1:0";
    char *argv[] = {self_path, http, address, NULL};
    bay_server *server = bay_server_new("regional", "1");
    bay_server_tool_schema(server, "tell", "Tells the region.",
                           "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
                           "\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}",
                           tell_region, NULL);
    return bay_server_main(server, 3, argv);
}

/* The URL that the server says it listens on. */
static void start_http(run *server, const char *const *argv, char url[128])
{
    start(server, argv);
    follow(server, "/mcp\n");
    const char *at = strstr(server->err, "http://");
    assert_non_null(at);
    snprintf(url, 128, "%.*s", (int)strcspn(at, "\n"), at);
}

static void over_http_too(void **state)
{
    (void)state;
    static run server;
    char url[128];
    const char *const argv[] = {weather, "--http", "127.0.0.1:0", NULL};
    start_http(&server, argv, url);
    PATCHBAY("list", url);
    assert_int_equal(result.code, 0);
    assert_has(result.out, " · 2026-07-28, http\n");
    PATCHBAY("call", url, "get_weather", "location=Oslo");
    assert_int_equal(result.code, 0);
    assert_has(result.out, "Oslo, Norway");
    PATCHBAY("list", "-p", "legacy", url);
    assert_has(result.out, " · 2025-11-25, http\n");
    PATCHBAY("step", "-p", "legacy", url, "-H", "Authorization: hunter2");
    assert_int_equal(result.code, 0);
    assert_has(result.out, "  Mcp-Session-Id: ");
    assert_has(result.out, "… (");
    assert_has(result.out, "  = session: true\n");
    assert_null(strstr(result.out, "hunter2"));
    PATCHBAY("read", url, "x:y");
    assert_ended(1, "");
    memcpy(strstr(url, "/mcp"), "/cpm", strlen("/cpm"));
    PATCHBAY("list", url);
    assert_int_equal(result.code != 0, 1);
    assert_has(result.err, "HTTP status 404");
    assert_has(result.err, "most servers are at a path that ends in /mcp");
    kill(server.pid, SIGTERM);
    finish(&server);
    assert_int_equal(server.code, 0);
}

static void arguments_go_into_header_fields(void **state)
{
    (void)state;
    static run server;
    char url[128];
    const char *const argv[] = {self_path, "--serve-region", NULL};
    start_http(&server, argv, url);
    PATCHBAY("call", url, "tell", "region=na\xc3\xafve");
    assert_ended(0, "in na\xc3\xafve\n");
    PATCHBAY("call", "-p", "legacy", url, "tell", "region=north");
    assert_ended(0, "in north\n");
    PATCHBAY("call", url, "other");
    assert_ended(1, "");
    kill(server.pid, SIGTERM);
    finish(&server);
}

/* ---- read, prompt, step ---------------------------------------------------------------------- */

static void resources_are_bytes(void **state)
{
    (void)state;
    PATCHBAY("read", "x:text", SCRIPTED("well"));
    assert_int_equal(result.code, 0);
    assert_int_equal(result.out_len, 11);
    assert_memory_equal(result.out, "no newline\0", 11);
    PATCHBAY("read", "x:blob", SCRIPTED("well"));
    assert_int_equal(result.code, 0);
    assert_int_equal(result.out_len, 7);
    assert_memory_equal(result.out, "\0\xff\nmore", 7);
    assert_has(result.err, "2 parts");
    PATCHBAY("read", "--json", "x:text", SCRIPTED("well"));
    assert_ended(0, "{\"contents\":[{\"uri\":\"x:text\",\"text\":\"no newline\\u0000\"}]}\n");
    PATCHBAY("read", "x:broken", SCRIPTED("well"));
    assert_ended(5, "");
    PATCHBAY("read", "x:none", SCRIPTED("well"));
    assert_ended(1, "");
    assert_has(result.err, "x:none: error -32601");
}

static void prompts_are_messages(void **state)
{
    (void)state;
    PATCHBAY("prompt", "greet", "who=1", SCRIPTED("well"));
    assert_ended(0, "user: Say hello\nassistant: Hello\n");
    PATCHBAY("prompt", "--json", "greet", SCRIPTED("well"));
    assert_int_equal(result.code, 0);
    assert_has(result.out, "{\"messages\":[{\"role\":\"user\",");
    PATCHBAY("prompt", "nobody", SCRIPTED("well"));
    assert_ended(1, "");
    PATCHBAY("prompt", "greet", "who:=1", SCRIPTED("well"));
    assert_ended(2, "");
}

static void steps_show_the_whole_session(void **state)
{
    (void)state;
    PATCHBAY("step", SCRIPTED("well"));
    assert_int_equal(result.code, 0);
    static const char *const order[] = {
        "→ 1 server/discover  ",
        "← 2 server/discover: error  ",
        "  = era: legacy: it answered server/discover with error -32601\n",
        "→ 3 initialize  ",
        "← 4 initialize: result  ",
        "  = serverInfo: {\"name\":\"scripted\",\"version\":\"1\"}\n",
        "→ 5 notifications/initialized  ",
        "  = revision: 2025-11-25\n",
        "→ 6 tools/list  ",
        "← 7 tools/list: result  ",
        "→ 8 tools/list  ",
        "  {\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\",\"params\":{\"cursor\":"
        "\"second\"}}\n",
        "← 9 tools/list: result  ",
        "  = tools: 2\n",
        "← 11 resources/list: result  ",
        "  = resources: 1\n",
        "← 13 resources/templates/list: error  ",
        "  = prompts: 1\n",
        "→ 16 ping  ",
        "← 17 ping: result  ",
    };
    const char *at = result.out;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        const char *found = strstr(at, order[i]);
        if (found == NULL) {
            fail_msg("\"%s\" does not follow: %s", order[i], result.out);
        }
        at = found + strlen(order[i]);
    }
    assert_null(strchr(result.out, '\x1b')); /* redirected: no colours */
}

static void steps_for_programs(void **state)
{
    (void)state;
    PATCHBAY("step", "--json", "--", weather);
    assert_int_equal(result.code, 0);
    size_t count = 0;
    bool knows_era = false;
    for (char *line = result.out; *line != '\0';) {
        json_doc doc;
        arena memory;
        size_t len = strcspn(line, "\n");
        arena_init(&memory, 1 << 20);
        assert_int_equal(json_parse(&doc, (bay_str){line, len}, NULL, &memory, NULL), BAY_OK);
        json_val root = json_root(&doc);
        uint64_t number = 0;
        assert_int_equal(json_uint64(json_get(root, STR("number")), &number), BAY_OK);
        assert_int_equal(number, ++count);
        assert_true(json_is(json_get(root, STR("message")), JSON_OBJECT));
        knows_era = knows_era || json_str_eq(json_pointer(root, STR("/knows/era")),
                                             STR("modern: it answered server/discover"));
        arena_fini(&memory);
        line += len + (line[len] == '\n');
    }
    assert_int_equal(count, 4);
    assert_true(knows_era);
}

static void steps_show_how_far_it_came(void **state)
{
    (void)state;
    PATCHBAY("step", "-t", "200ms", SCRIPTED("mute"));
    assert_int_equal(result.code, 4);
    assert_has(result.out, "→ 1 server/discover  ");
    assert_has(result.out, "  = era: legacy: it gave server/discover no answer of its own\n");
    assert_has(result.out, "→ 2 initialize  ");
}

/* ---- the end --------------------------------------------------------------------------------- */

static void an_interrupt_leaves_nothing_behind(void **state)
{
    (void)state;
    const char *const argv[] = {binary, "-v", "-v", "list", SCRIPTED("mute"), NULL};
    start(&result, argv);
    follow(&result, "mute as ");
    const char *at = strstr(result.err, "mute as ") + strlen("mute as ");
    while (strchr(at, '\n') == NULL) { /* the number may still be on its way */
        take(&result.err_pipe, result.err, &result.err_len);
    }
    pid_t server = (pid_t)strtol(at, NULL, 10);
    assert_true(server > 0);
    assert_int_equal(kill(result.pid, SIGINT), 0);
    finish(&result);
    assert_ended(130, "");
    assert_int_equal(kill(server, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void output_that_cannot_be_written(void **state)
{
    (void)state;
    const char *const argv[] = {
        "/bin/sh", "-c",      "exec \"$0\" list -- \"$1\" --serve well >/dev/full",
        binary,    self_path, NULL};
    start(&result, argv);
    finish(&result);
    assert_ended(7, "");
    assert_has(result.err, "the output could not be written");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--serve") == 0) {
        return scripted_server_run(argv[2]);
    }
    find_programs();
    snprintf(weather, sizeof(weather), "%.*s/examples/weather",
             (int)(strrchr(self_path, '/') - self_path), self_path);
    if (argc == 2 && strcmp(argv[1], "--serve-region") == 0) {
        return serve_region();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_that_does_not_exist),
        cmocka_unit_test(a_command_that_dies_says_why),
        cmocka_unit_test(a_url_that_refuses),
        cmocka_unit_test(a_server_that_never_answers),
        cmocka_unit_test(a_server_that_speaks_something_else),
        cmocka_unit_test(a_server_that_leaves_during_a_call),
        cmocka_unit_test(a_name_needs_its_configuration),
        cmocka_unit_test(a_profile_is_served_over_stdio),
        cmocka_unit_test(a_gateway_for_everybody_is_opened_on_purpose),
        cmocka_unit_test(every_address_is_named),
        cmocka_unit_test(an_entry_that_matches_nothing_is_told),
        cmocka_unit_test(a_good_configuration_is_explained),
        cmocka_unit_test(who_may_what_is_told),
        cmocka_unit_test(all_mistakes_are_told_at_once),
        cmocka_unit_test(a_command_in_one_word),
        cmocka_unit_test(lists_of_every_kind_and_page),
        cmocka_unit_test(lists_for_programs),
        cmocka_unit_test(a_modern_server_lists_too),
        cmocka_unit_test(calls_print_what_came),
        cmocka_unit_test(a_terminal_gets_nothing_to_obey),
        cmocka_unit_test(calls_that_fail_say_so),
        cmocka_unit_test(over_http_too),
        cmocka_unit_test(arguments_go_into_header_fields),
        cmocka_unit_test(resources_are_bytes),
        cmocka_unit_test(prompts_are_messages),
        cmocka_unit_test(steps_show_the_whole_session),
        cmocka_unit_test(steps_for_programs),
        cmocka_unit_test(steps_show_how_far_it_came),
        cmocka_unit_test(an_interrupt_leaves_nothing_behind),
        cmocka_unit_test(output_that_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
