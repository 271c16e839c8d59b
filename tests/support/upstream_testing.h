/* What the tests of upstreams with a real server behind them share: calls that count their ends,
 * and a way to start tests/support/bad_server.c. */
#ifndef SUPPORT_UPSTREAM_TESTING_H
#define SUPPORT_UPSTREAM_TESTING_H

#include "support/fake_upstream.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/loop.h"
#include "upstream/upstream.h"

#ifndef BAY_TEST_BINARY_DIR
#define BAY_TEST_BINARY_DIR "." /* for readers of this header alone */
#endif

enum { TESTING_TURNS = 20000 };

/* Bounds a broken test, not a working one: each turn ends with the first event. */
#define turn_until(on_loop, condition)                                                             \
    do {                                                                                           \
        int turns_left = TESTING_TURNS;                                                            \
        while (!(condition) && turns_left-- > 0) {                                                 \
            loop_turn((on_loop), 5);                                                               \
        }                                                                                          \
        assert_true(condition);                                                                    \
    } while (0)

static inline int count_of_directory(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static inline int open_descriptors(void)
{
    return count_of_directory("/proc/self/fd");
}

/* Also dead ones that nobody has reaped. */
static inline int count_children(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char path[300];
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
        int pid;
        while (file != NULL && fscanf(file, "%d", &pid) == 1) {
            count++;
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(directory);
    return count;
}

/* One server named "s". `more` are members of it, `top` of the whole. */
static inline const config *server_config(const char *kind_of_bad, const char *more,
                                          const char *top)
{
    char text[2000];
    (void)snprintf(text, sizeof(text),
                   "{%s \"mcpServers\":{\"s\":{\"command\":\"%s/bad_server\",\"args\":[\"stdio\","
                   "\"%s\"]%s}}}",
                   top, BAY_TEST_BINARY_DIR, kind_of_bad, more);
    char *quoted = testing_quotes(text);
    const config *made = testing_config(quoted);
    mem_free(quoted);
    return made;
}

/* ---- calls that count ------------------------------------------------------------------------ */

typedef struct probe {
    upstream_call call;
    arena memory;
    json_doc doc;
    atomic_int dones;
    int notifications;
    mcp_outcome_kind kind;
    bay_err err;
    bool was_sent;
    char text[400];     /* of a failure; else the raw result or error */
    struct probe *next; /* sent from inside `done` */
    upstream *next_to;
} probe;

static inline void probe_send(probe *self, upstream *to);

static inline void probe_notified(void *user, mcp_method_id method, json_val params)
{
    (void)method;
    (void)params;
    ((probe *)user)->notifications++;
}

static inline void probe_done(void *user, const mcp_outcome *outcome)
{
    probe *self = user;
    bay_str raw = json_raw(outcome->kind == MCP_OUTCOME_RESULT ? outcome->result : outcome->error);
    self->kind = outcome->kind;
    self->err = outcome->err;
    self->was_sent = outcome->was_sent;
    if (outcome->kind == MCP_OUTCOME_FAILED) {
        raw = str_of(outcome->text);
    }
    (void)snprintf(self->text, sizeof(self->text), "%.*s", BAY_STR(raw));
    atomic_fetch_add(&self->dones, 1);
    if (self->next != NULL) {
        probe_send(self->next, self->next_to);
    }
}

static const upstream_call_events probe_events = {.notified = probe_notified, .done = probe_done};

static inline void probe_init(probe *self, const char *tool)
{
    char params[200];
    bay_str copy;
    *self = (probe){.call.events = &probe_events, .call.user = self};
    arena_init(&self->memory, 1 << 20);
    (void)snprintf(params, sizeof(params), "{\"name\":\"%s\",\"arguments\":{\"n\":1.0}}", tool);
    assert_int_equal(arena_dup(&self->memory, str_of(params), &copy), BAY_OK);
    assert_int_equal(json_parse(&self->doc, copy, NULL, &self->memory, NULL), BAY_OK);
    self->call.spec = (mcp_call_spec){.method = STR("tools/call"),
                                      .params = json_root(&self->doc),
                                      .log_level = MCP_LOG_NONE,
                                      .wants_progress = true};
}

static inline void probe_send(probe *self, upstream *to)
{
    upstream_send(to, &self->call);
}

static inline void probe_fini(probe *self)
{
    arena_fini(&self->memory);
}

static inline void assert_good(const probe *self)
{
    if (self->kind != MCP_OUTCOME_RESULT) {
        print_error("failed: %s (%s)\n", self->text, bay_err_text(self->err));
    }
    assert_int_equal(self->dones, 1);
    assert_int_equal(self->kind, MCP_OUTCOME_RESULT);
    assert_non_null(strstr(self->text, "\"good\""));
}

static inline void assert_failed(const probe *self, bay_err err, bool was_sent, const char *part)
{
    if (self->kind != MCP_OUTCOME_FAILED || self->err != err || strstr(self->text, part) == NULL) {
        print_error("kind %d, %s: %s\n", self->kind, bay_err_text(self->err), self->text);
    }
    assert_int_equal(self->dones, 1);
    assert_int_equal(self->kind, MCP_OUTCOME_FAILED);
    assert_int_equal(self->err, err);
    assert_int_equal(self->was_sent, was_sent);
    assert_non_null(strstr(self->text, part));
}

/* ---- how often a tool ran -------------------------------------------------------------------- */

static char tally_path[100];

static inline void tally_open(void)
{
    (void)snprintf(tally_path, sizeof(tally_path), "/tmp/bad_server.%d", (int)getpid());
    (void)unlink(tally_path);
    assert_int_equal(setenv("BAD_SERVER_TALLY", tally_path, 1), 0);
}

static inline int tally_count(void)
{
    struct stat about;
    return stat(tally_path, &about) == 0 ? (int)about.st_size : 0;
}

static inline void tally_close(void)
{
    (void)unlink(tally_path);
}

#endif
