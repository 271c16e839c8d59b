/* Files that load: what they mean, what they warn about, and that memory failing anywhere on the
 * way is only ever "out of memory". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "config/internal.h"
#include "config_testing.h"

static const config *load(const char *text, size_t warnings)
{
    const config *loaded = NULL;
    config_report report;
    bay_err err = testing_load(text, &loaded, &report);
    if (err != BAY_OK || report.warnings != warnings) {
        buf shown;
        buf_init(&shown, 65536);
        config_report_write(&report, &shown);
        print_error("%s\n%.*s", text, BAY_STR(buf_view(&shown)));
        buf_fini(&shown);
    }
    assert_int_equal(err, BAY_OK);
    assert_int_equal(report.warnings, warnings);
    return loaded;
}

#define assert_str(actual, expected)                                                               \
    do {                                                                                           \
        bay_str actual_ = (actual);                                                                \
        assert_int_equal(actual_.len, strlen(expected));                                           \
        assert_string_equal(actual_.at, expected); /* a NUL follows */                             \
    } while (0)

static void every_default_is_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        uint64_t value;
        bool is_scalar = key->type >= CONFIG_TYPE_BOOL && key->type <= CONFIG_TYPE_CHOICE;
        if (is_scalar) {
            assert_int_equal(config_value_parse(key, key->fallback, &value, NULL), BAY_OK);
            if (key->type != CONFIG_TYPE_SIZE) {
                assert_true(value <= UINT32_MAX && key->max <= UINT32_MAX);
            }
        }
    }
}

static void an_empty_file_is_all_defaults(void **state)
{
    (void)state;
    const char *const texts[] = {"",  "# nothing\n", "{}",         "\xef\xbb\xbf{ }",
                                 "~", "---\n",       "mcpServers:"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const config *self = load(texts[i], 1);
        assert_int_equal(self->listen.count, 1);
        assert_str(self->listen.at[0], "127.0.0.1:8930");
        assert_str(self->separator, ".");
        assert_int_equal(self->workers, 0);
        assert_false(self->bare_names);
        assert_int_equal(self->log.level, LOG_INFO);
        assert_int_equal(self->limits.head_bytes, 32 * 1024);
        assert_int_equal(self->limits.body_bytes, 16 * 1024 * 1024);
        assert_int_equal(self->limits.session_idle_ms, 30 * 60 * 1000);
        assert_int_equal(self->timeouts.call_ms, 60000);
        assert_int_equal(self->server_count, 0);
        config_free(self);
    }
}

static void every_kind_of_value_is_read(void **state)
{
    (void)state;
    const config *self = load("listen: [127.0.0.1:1, '[::1]:2', localhost:0]\n"
                              "workers: ${WORKERS}\n"
                              "separator: __\n"
                              "bareNames: true\n"
                              "tls: {certificate: a.pem, key: b.pem, clientCa: c.pem,\n"
                              "      requireClientCertificate: 'true'}\n"
                              "allowedHosts: [gate.example, gate.example:8443]\n"
                              "allowedOrigins: ['https://app.example', \"http://x.example:81\"]\n"
                              "log: {level: debug, format: json}\n"
                              "limits: {headBytes: 2048, bodyBytes: 1 MiB, headTimeout: 1500,\n"
                              "         idleTimeout: 2m, sessionIdle: 1h}\n"
                              "timeouts:\n"
                              "  call: 500ms\n"
                              "mcpServers:\n"
                              "  a-b_C9:\n"
                              "    command: ./x\n"
                              "    args: [-y, 8080, true, 'a b', \"\", \"\\u00e9\"]\n"
                              "    env: {A: 1, B: \"${TOKEN}\", C: \"$$x$y${EMPTY:-d}${NO:-}\"}\n"
                              "    cwd: /tmp\n"
                              "    idleStop: 10m\n"
                              "    restart: {minDelay: 1s, maxDelay: 1m, attempts: 0, window: 5m,\n"
                              "              coolOff: 90s}\n"
                              "    start: lazy\n"
                              "    share: session\n"
                              "    processes: 3\n"
                              "    sessions: 7\n"
                              "    protocol: 2025-06-18\n"
                              "  web:\n"
                              "    url: https://h.example/mcp\n"
                              "    headers: {Authorization: 'Bearer ${env:TOKEN}'}\n"
                              "    transport: sse\n"
                              "    timeout: 2500ms\n"
                              "    tls: {ca: ca.pem}\n"
                              "    disabled: true\n",
                              0);
    assert_int_equal(self->listen.count, 3);
    assert_str(self->listen.at[1], "[::1]:2");
    assert_int_equal(self->workers, 3);
    assert_str(self->separator, "__");
    assert_true(self->bare_names && self->tls.require_client_certificate);
    assert_int_equal(self->log.level, LOG_DEBUG);
    assert_int_equal(self->log.format, CONFIG_LOG_JSON);
    assert_int_equal(self->limits.head_bytes, 2048);
    assert_int_equal(self->limits.body_bytes, 1 << 20);
    assert_int_equal(self->limits.head_timeout_ms, 1500);
    assert_int_equal(self->limits.idle_timeout_ms, 120000);
    assert_int_equal(self->timeouts.call_ms, 500);
    assert_int_equal(self->server_count, 2);
    const config_server *child = config_server_find(self, STR("a-b_C9"));
    assert_non_null(child);
    assert_int_equal(child->args.count, 6);
    assert_str(child->args.at[1], "8080");
    assert_str(child->args.at[2], "true");
    assert_str(child->args.at[4], "");
    assert_str(child->args.at[5], "\xc3\xa9");
    assert_str(child->env.at[1].value, "s3cr3t-t0ken");
    assert_str(child->env.at[2].value, "$x$yd");
    assert_int_equal(child->transport, CONFIG_TRANSPORT_STDIO);
    assert_int_equal(child->protocol, CONFIG_PROTOCOL_FIRST_REVISION + MCP_REV_2025_06_18);
    assert_int_equal(child->restart.max_delay_ms, 60000);
    assert_int_equal(child->idle_stop_ms, 600000);
    assert_int_equal(child->restart.attempts, 0);
    assert_int_equal(child->restart.window_ms, 300000);
    assert_int_equal(child->restart.cool_off_ms, 90000);
    assert_int_equal(child->start, CONFIG_START_LAZY);
    assert_int_equal(child->share, CONFIG_SHARE_SESSION);
    assert_int_equal(child->processes, 3);
    assert_int_equal(child->sessions, 7);
    const config_server *web = config_server_find(self, STR("web"));
    assert_int_equal(web->restart.attempts, 5);
    assert_int_equal(web->restart.window_ms, 60000);
    assert_int_equal(web->restart.cool_off_ms, 30000);
    assert_int_equal(web->start, CONFIG_START_EAGER);
    assert_int_equal(web->share, CONFIG_SHARE_AUTO);
    assert_int_equal(web->processes, 8);
    assert_int_equal(web->sessions, 64);
    assert_str(web->headers.at[0].value, "Bearer s3cr3t-t0ken");
    assert_int_equal(web->transport, CONFIG_TRANSPORT_SSE);
    assert_int_equal(web->timeout_ms, 2500);
    assert_true(web->is_disabled);
    assert_null(config_server_find(self, STR("we")));
    config_free(self);
}

/* What hosts write, as they write it: unchanged it loads. */
static const struct {
    const char *text;
    size_t servers;
    size_t warnings;
} host_files[] = {
    {"{\n  \"globalShortcut\": \"Ctrl+Space\",\n  \"mcpServers\": {\n"
     "    \"filesystem\": {\n      \"command\": \"npx\",\n"
     "      \"args\": [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/home/me\"]\n"
     "    }\n  },\n  \"preferences\": {\"sidebarMode\": \"chat\", \"n\": [1, {}]},\n"
     "  \"scale\": 0, \"locale\": \"en-US\", \"userThemeMode\": \"system\"\n}\n",
     1, 5},
    {"{\t\"mcpServers\": {\n\t\t\"everything\": {\n\t\t\t\"type\": \"stdio\",\n"
     "\t\t\t\"command\": \"cmd\",\n\t\t\t\"args\": [\"\\/c\", \"\\uD83D\\uDE00\"],\n"
     "\t\t\t\"env\": {\"API_KEY\": \"${API_KEY:-none}\"}\n\t\t}\n\t}\n}",
     1, 0},
    {"{\"mcpServers\": {\"remote\": {\"type\": \"streamableHttp\", \"url\": "
     "\"https://x.example/mcp\","
     "\"headers\": {\"Authorization\": \"Bearer ${TOKEN}\"}, \"disabled\": false, "
     "\"autoApprove\": [], \"timeout\": 60}}}",
     1, 2},
    {"{\"mcpServers\": {\"a\": {\"serverUrl\": \"https://x.example/sse\", \"type\": \"sse\","
     "\"alwaysAllow\": [\"t\"], \"disabledTools\": []}, \"b\": {\"httpUrl\": \"http://x.example/\","
     "\"timeout\": 30000, \"trust\": false}}}",
     2, 3},
    {"{\"mcpServers\": {\"gh\": {\"type\": \"local\", \"command\": \"docker\", \"tools\": [\"*\"],"
     "\"args\": [\"run\", \"-i\"], \"env\": null}, \"off\": {\"command\": \"x\", \"isActive\": "
     "false, \"description\": \"d\", \"name\": \"n\"}}}",
     2, 0},
    {"{\"inputs\": [{\"type\": \"promptString\", \"id\": \"k\", \"password\": true}],"
     "\"mcpServers\": {\"one\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"],"
     "\"gallery\": true}}}",
     1, 1},
};

static void files_of_desktop_hosts_load_unchanged(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(host_files); i++) {
        const config *self = load(host_files[i].text, host_files[i].warnings);
        assert_int_equal(self->server_count, host_files[i].servers);
        config_free(self);
    }
    const config *self = load(host_files[1].text, 0);
    assert_str(self->servers[0].args.at[0], "/c");
    assert_str(self->servers[0].args.at[1], "\xf0\x9f\x98\x80");
    config_free(self);
    self = load(host_files[2].text, 2);
    assert_int_equal(self->servers[0].timeout_ms, 60000);
    assert_int_equal(self->servers[0].transport, CONFIG_TRANSPORT_HTTP);
    config_free(self);
    self = load(host_files[3].text, 3);
    assert_int_equal(self->servers[1].timeout_ms, 30000);
    config_free(self);
    self = load(host_files[4].text, 0);
    assert_true(self->servers[1].is_disabled);
    config_free(self);
    self = load("{\"mcpServers\": {\"My Notes (v2.0)\": {\"command\": \"x\"}}}", 1);
    assert_str(self->servers[0].name, "My_Notes__v2_0_");
    config_free(self);
}

static void a_disabled_server_may_lack_its_variables(void **state)
{
    (void)state;
    const config *self = load("mcpServers:\n"
                              "  a: {url: '${NOPE}', headers: {A: 'x${NOPE}y'}, disabled: true}\n"
                              "  b: {command: x, env: {A: '${NOPE:-d}'}, enabled: false}\n",
                              2);
    assert_true(self->servers[0].is_disabled && self->servers[1].is_disabled);
    assert_str(self->servers[0].headers.at[0].value, "xy");
    config_free(self);
}

static void a_long_key_of_json_is_read(void **state)
{
    (void)state;
    char text[4096];
    char key[2001];
    memset(key, 'K', 2000);
    key[2000] = '\0';
    snprintf(text, sizeof(text),
             "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"%s\":\"v\"}}}}", key);
    const config *self = load(text, 0);
    assert_str(self->servers[0].env.at[0].name, key);
    config_free(self);
}

static void lines_are_kept_in_both_syntaxes(void **state)
{
    (void)state;
    const config *yaml = load("mcpServers:\n  a: {command: x}\n\n  b:\n    command: y\n", 0);
    const config *json = load("{\"mcpServers\":\n{\"a\": {\"command\": \"x\"},\n\n\"b\":\n"
                              "{\"command\": \"y\"}}}",
                              0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(yaml->servers[i].line, 2 + 2 * i);
        assert_int_equal(json->servers[i].line, 2 + 2 * i);
        assert_true(config_equal_server(&yaml->servers[i], &json->servers[i]));
    }
    assert_false(config_equal_server(&yaml->servers[0], &yaml->servers[1]));
    config_free(yaml);
    config_free(json);
}

static void any_difference_makes_servers_unequal(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{command: x}",
        "{command: y}",
        "{command: x, args: [a]}",
        "{command: x, args: [b]}",
        "{command: x, args: [a, b]}",
        "{command: x, env: {A: a}}",
        "{command: x, env: {A: b}}",
        "{command: x, env: {B: a}}",
        "{command: x, cwd: /}",
        "{command: x, disabled: true}",
        "{command: x, timeout: 1s}",
        "{command: x, idleStop: 1s}",
        "{command: x, restart: {minDelay: 1s}}",
        "{command: x, restart: {maxDelay: 1s}}",
        "{command: x, protocol: modern}",
        "{command: x, sandbox: {}}",
        "{command: x, sandbox: {fs: [/a]}}",
        "{command: x, sandbox: {fs: ['/a:rw']}}",
        "{command: x, sandbox: {net: true}}",
        "{command: x, sandbox: {bubblewrap: never}}",
        "{url: 'http://x/'}",
        "{url: 'https://x/'}",
        "{url: 'https://x/', type: http}",
        "{url: 'https://x/', headers: {A: b}}",
        "{url: 'https://x/', tls: {ca: x}}",
    };
    enum { COUNT = sizeof(bodies) / sizeof(bodies[0]) };
    const config *loaded[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        char text[256];
        snprintf(text, sizeof(text), "mcpServers:\n  a: %s\n", bodies[i]);
        loaded[i] = load(text, 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < COUNT; j++) {
            assert_int_equal(config_equal_server(loaded[i]->servers, loaded[j]->servers), i == j);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        config_free(loaded[i]);
    }
}

static void what_only_the_catalog_reads_makes_no_other_server(void **state)
{
    (void)state;
    const config *is = load("mcpServers: {a: {command: x}}", 0);
    const config *other =
        load("mcpServers: {a: {command: x, expose: {tools: [a], hide: [b]}, rename: {a: b}, "
             "describe: {a: b}, refresh: 1s, includeTools: [], excludeTools: [c],"
             " trustHints: true}}",
             0);
    assert_true(config_equal_server(is->servers, other->servers));
    config_free(is);
    config_free(other);
}

static void profiles_are_read(void **state)
{
    (void)state;
    const config *self = load("toolMode: search\n"
                              "profiles:\n"
                              "  ops: {servers: [a], tools: ['a.*'], hide: [x, y], mode: search}\n"
                              "  rest:\n"
                              "  empty: {servers: []}\n"
                              "mcpServers: {a: {command: x}}\n",
                              0);
    assert_int_equal(self->tool_mode, CONFIG_TOOLS_SEARCH);
    assert_int_equal(self->profile_count, 3);
    const config_profile *ops = config_profile_find(self, STR("ops"));
    assert_int_equal(ops->servers.count, 1);
    assert_str(ops->tools.at[0], "a.*");
    assert_int_equal(ops->hide.count, 2);
    assert_int_equal(ops->tool_mode, CONFIG_TOOLS_SEARCH);
    const config_profile *rest = config_profile_find(self, STR("rest"));
    assert_null(rest->servers.at);
    assert_int_equal(rest->tool_mode, CONFIG_TOOLS_ALL);
    assert_non_null(config_profile_find(self, STR("empty"))->servers.at);
    config_free(self);
}

static void a_file_is_read_with_the_process_environment(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-config-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    const char text[] = "mcpServers: {a: {command: '${PATCHBAY_TEST_COMMAND}'}}\n";
    assert_int_equal(write(file, text, sizeof(text) - 1), sizeof(text) - 1);
    close(file);
    setenv("PATCHBAY_TEST_COMMAND", "from the environment", 1);
    const config *self = NULL;
    config_report report;
    assert_int_equal(config_load_file(path, false, &self, &report), BAY_OK);
    assert_str(self->servers[0].command, "from the environment");
    config_free(self);
    unlink(path);
}

static void *hold_and_drop(void *argument)
{
    const config *self = argument;
    for (int i = 0; i < 1000; i++) {
        config_free(config_ref(self));
    }
    config_free(self);
    return NULL;
}

static void references_are_counted_across_threads(void **state)
{
    (void)state;
    const config *self = load("mcpServers: {a: {command: x}}", 0);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, hold_and_drop, (void *)(uintptr_t)config_ref(self)),
            0);
    }
    config_free(self);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    config_free(NULL);
}

/* ---- memory that fails, and memory that is looked at after
 * -------------------------------------*/

typedef struct failing_heap {
    size_t calls;
    size_t fails_at;
    size_t live;
    bool saw_secret; /* in memory given back */
} failing_heap;

typedef struct failing_block {
    size_t bytes;
    size_t padding;
    char at[];
} failing_block;

static void *failing_resize(void *old, size_t bytes, void *user);

static void *failing_alloc(size_t bytes, void *user)
{
    return failing_resize(NULL, bytes, user);
}

static void failing_release(void *old, void *user)
{
    failing_heap *heap = user;
    if (old != NULL) {
        failing_block *block = (failing_block *)((char *)old - sizeof(failing_block));
        if (memmem(block->at, block->bytes, "s3cr3t", 6) != NULL) {
            heap->saw_secret = true;
        }
        heap->live--;
        free(block);
    }
}

static void *failing_resize(void *old, size_t bytes, void *user)
{
    failing_heap *heap = user;
    if (++heap->calls == heap->fails_at) {
        return NULL;
    }
    failing_block *block = calloc(1, sizeof(*block) + bytes);
    if (block == NULL) {
        return NULL;
    }
    block->bytes = bytes;
    heap->live++;
    if (old != NULL) {
        failing_block *before = (failing_block *)((char *)old - sizeof(failing_block));
        memcpy(block->at, before->at, before->bytes < bytes ? before->bytes : bytes);
        failing_release(old, user);
    }
    return block->at;
}

static void sweep(const char *text, bay_err expected)
{
    failing_heap heap = {0};
    const mem_hooks hooks = {failing_alloc, failing_resize, failing_release, &heap};
    mem_set_hooks(&hooks);
    size_t failures = 0;
    for (size_t at = 1;; at++) {
        heap.calls = 0;
        heap.fails_at = at;
        const config *self = NULL;
        config_report report;
        bay_err err = testing_load(text, &self, &report);
        config_free(self);
        assert_int_equal(heap.live, 0);
        assert_false(heap.saw_secret);
        if (heap.calls < at) {
            assert_int_equal(err, expected);
            break;
        }
        assert_true(err == BAY_ERR_NOMEM);
        assert_null(self);
        failures++;
    }
    assert_true(failures > 3);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    sweep("mcpServers:\n  a: {command: x, args: [a, b], env: {K: '${TOKEN}'}}\n"
          "  b: {url: 'https://x/', headers: {A: 'Bearer s3cr3t', B: \"s3cr3t\\u00e9t\"}}\n",
          BAY_ERR_SYNTAX);
    sweep("mcpServers:\n  a: {command: x, args: [a, b], env: {K: '${TOKEN}', L: s3cr3t}}\n",
          BAY_OK);
    sweep("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"\\u0073s3cr3t\"],"
          "\"env\": {\"K\": \"${TOKEN}\", \"L\": \"\\u0073\\u0033cr3t s3cr3t\"}}}}",
          BAY_OK);
    sweep("mcpServers: {a: {comand: x, timeout: s3cr3t}}\nlimits: {bodyBytes: s3cr3t}\n",
          BAY_ERR_SYNTAX);
}

static void agents_are_read_and_stand_for_servers(void **state)
{
    (void)state;
    const config *self =
        load("a2a: {publicUrl: 'https://g.example', key: k.pem, hybrid: false, lenient: false, "
             "cardMaxAge: 5s}\n"
             "mcpServers: {s: {command: x}}\n"
             "agents:\n"
             "  far: {url: 'https://far.example', headers: {Authorization: 'Bearer ${TOKEN}'},\n"
             "    version: '0.3', binding: GRPC, timeout: 1m, streamIdle: 20s, refresh: 2m,\n"
             "    failures: 3, window: 10s, coolOff: 2s, tls: {ca: ca.pem},\n"
             "    verify: {keys: keys.json, jku: ['https://far.example/keys'], required: true},\n"
             "    expose: {skills: ['a*'], hide: [ab]}}\n"
             "  silent: {card: 'http://x/card.json', expose: {tools: false}}\n"
             "  off: {url: 'http://x', disabled: true}\n"
             "  made: {tools: ['s.*'], title: Made, description: Of tools.}\n",
             0);
    assert_str(self->a2a.public_url, "https://g.example");
    assert_str(self->a2a.key, "k.pem");
    assert_false(self->a2a.hybrid);
    assert_false(self->a2a.lenient);
    assert_int_equal(self->a2a.card_max_age_ms, 5000);
    assert_int_equal(self->agent_count, 4);
    const config_agent *far = config_agent_find(self, STR("far"));
    assert_ptr_equal(far, &self->agents[0]);
    assert_str(far->url, "https://far.example");
    assert_str(far->headers.at[0].value, "Bearer s3cr3t-t0ken");
    assert_int_equal(far->version, 3);
    assert_int_equal(far->binding, 3);
    assert_int_equal(far->timeout_ms, 60000);
    assert_int_equal(far->stream_idle_ms, 20000);
    assert_int_equal(far->refresh_ms, 120000);
    assert_int_equal(far->failures, 3);
    assert_int_equal(far->window_ms, 10000);
    assert_int_equal(far->cool_off_ms, 2000);
    assert_str(far->tls.ca, "ca.pem");
    assert_str(far->verify.keys, "keys.json");
    assert_str(far->verify.jku.at[0], "https://far.example/keys");
    assert_true(far->verify.is_required);
    assert_str(config_agent_find(self, STR("silent"))->card, "http://x/card.json");
    assert_true(config_agent_find(self, STR("off"))->is_disabled);
    assert_str(config_agent_find(self, STR("made"))->tools.at[0], "s.*");
    assert_str(config_agent_find(self, STR("made"))->title, "Made");
    assert_null(config_agent_find(self, STR("s")));
    /* of the four only one is a server of the catalog */
    assert_int_equal(self->server_count, 2);
    assert_str(self->servers[1].name, "far");
    assert_str(self->servers[1].agent, "far");
    assert_str(self->servers[1].expose.tools.at[0], "a*");
    assert_str(self->servers[1].expose.hide.at[0], "ab");
    assert_int_equal(self->servers[0].agent.len, 0);
    config_free(self);
}

static void agents_differ_by_any_key(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "agents: {a: {url: 'http://x'}}\n",
        "agents: {a: {url: 'http://y'}}\n",
        "agents: {a: {card: 'http://x'}}\n",
        "agents: {a: {url: 'http://x', headers: {A: b}}}\n",
        "agents: {a: {url: 'http://x', version: '1.0'}}\n",
        "agents: {a: {url: 'http://x', verify: {keys: k}}}\n",
        "agents: {a: {url: 'http://x', allow: [127.0.0.1]}}\n",
        "agents: {a: {url: 'http://x', expose: {tools: false}}}\n",
        "agents: {a: {url: 'http://x', failures: 1}}\n",
        "agents: {a: {tools: ['*']}}\n",
    };
    const config *loaded[ARRAY_LEN(texts)];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        loaded[i] = load(texts[i], 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        for (size_t j = 0; j < ARRAY_LEN(texts); j++) {
            assert_int_equal(config_equal_agent(loaded[i]->agents, loaded[j]->agents), i == j);
        }
        assert_true(config_equal_a2a(&loaded[i]->a2a, &loaded[0]->a2a));
    }
    const config *signed_ = load("a2a: {key: k}\nagents: {a: {url: 'http://x'}}\n", 0);
    assert_false(config_equal_a2a(&signed_->a2a, &loaded[0]->a2a));
    config_free(signed_);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        config_free(loaded[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_default_is_valid),
        cmocka_unit_test(an_empty_file_is_all_defaults),
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(files_of_desktop_hosts_load_unchanged),
        cmocka_unit_test(a_disabled_server_may_lack_its_variables),
        cmocka_unit_test(a_long_key_of_json_is_read),
        cmocka_unit_test(lines_are_kept_in_both_syntaxes),
        cmocka_unit_test(any_difference_makes_servers_unequal),
        cmocka_unit_test(what_only_the_catalog_reads_makes_no_other_server),
        cmocka_unit_test(profiles_are_read),
        cmocka_unit_test(a_file_is_read_with_the_process_environment),
        cmocka_unit_test(references_are_counted_across_threads),
        cmocka_unit_test(agents_are_read_and_stand_for_servers),
        cmocka_unit_test(agents_differ_by_any_key),
        cmocka_unit_test(every_failing_allocation_is_survived), /* last: it replaces the heap */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
