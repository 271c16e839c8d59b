/* What a long artifact costs on disk: an agent's engine with its tasks in an SQLite file, and one
 * streaming task that makes one artifact, chunk after chunk. It counts bytes, so that the figure is
 * the same on every machine when each chunk is kept before the next one comes (GAP_MS 0: the most
 * puts there can be).
 *
 *     a2a_artifact FOLDER CHUNKS CHUNK_BYTES GAP_MS
 *         prints "artifact=… held=… given=… times=… written=… cpu_us=…": bytes of the artifact,
 * what the store holds at the end, what it was given to write, how many times the artifact that is,
 * what went to its files, and CPU time a chunk */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "a2a/agent.h"
#include "base/check.h"
#include "base/mem.h"
#include "sdk/agent_store.h"

static struct {
    loop *loop;
    store *store;
    agent_store *kept;
    a2a_agent *agent;
    a2a_turn *turn;
    unsigned long events;
    uint64_t held;
    uint64_t given;
    bool is_loaded;
    bool is_closed;
    bool has_looked;
} bench;

static void on_turn(void *user, a2a_turn *turn)
{
    (void)user;
    bench.turn = a2a_turn_ref(turn);
}

static uint64_t now(void *user)
{
    (void)user;
    return loop_time_ms();
}

static void wake(void *user, uint64_t at_ms)
{
    (void)user;
    (void)at_ms;
}

static void on_loaded(void *user, const agent_store_loaded *loaded)
{
    (void)user;
    CHECK(loaded->err == BAY_OK);
    bench.is_loaded = true;
}

static void on_closed(void *user)
{
    (void)user;
    bench.is_closed = true;
}

static void on_looked(void *user, const store_result *result)
{
    (void)user;
    bench.held = result->held_bytes;
    bench.has_looked = true;
}

static void on_result(a2a_call *call, bay_str json)
{
    (void)call;
    (void)json;
}

static bay_err on_event(a2a_call *call, a2a_event *event)
{
    (void)call;
    (void)event;
    bench.events++;
    return BAY_OK;
}

static void on_end(a2a_call *call)
{
    (void)call;
}

static void on_fail(a2a_call *call, const a2a_fault *fault)
{
    (void)call;
    fprintf(stderr, "a2a_artifact: %s\n", fault->text);
    exit(1);
}

static bay_str on_field(a2a_call *call, bay_str name)
{
    (void)call;
    (void)name;
    return (bay_str){NULL, 0};
}

/* ---- what is measured */

static unsigned long long written_bytes(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "wchar:", 6) == 0) {
            bytes = strtoull(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static double cpu_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* ---- the agent */

static void open_agent(const char *path)
{
    static const char card[] = "{\"capabilities\":{\"streaming\":true}}";
    static const a2a_handler handler = {.turn = on_turn};
    store_options options = agent_store_suits();
    bay_diag diag;
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 16);
    CHECK(json_parse(&doc, str_of(card), NULL, &memory, NULL) == BAY_OK);
    CHECK(loop_new(&bench.loop) == BAY_OK);
    CHECK(store_open_sqlite(bench.loop, str_of(path), &options, &bench.store, &diag) == BAY_OK);
    CHECK(agent_store_new(bench.store, STR("bench"), &bench.kept) == BAY_OK);
    a2a_agent_options agent = {.handler = &handler,
                               .persistence = agent_store_persistence(bench.kept),
                               .card = json_root(&doc),
                               .extended_card = {"", 0},
                               .now = now,
                               .wake = wake};
    CHECK(a2a_agent_new(&agent, &bench.agent) == BAY_OK);
    arena_fini(&memory);
    CHECK(agent_store_load(bench.kept, bench.agent, false, on_loaded, NULL) == BAY_OK);
    while (!bench.is_loaded) {
        loop_turn(bench.loop, -1);
    }
    a2a_agent_tick(bench.agent);
}

static void settle(void)
{
    while (!agent_store_is_idle(bench.kept)) {
        loop_turn(bench.loop, -1);
    }
}

static void wait_ms(uint64_t ms)
{
    for (uint64_t until = loop_time_ms() + ms; loop_time_ms() < until;) {
        loop_turn(bench.loop, 1);
    }
}

static void chunk(const char *words, bool append)
{
    buf text;
    arena memory;
    json_doc doc;
    buf_init(&text, SIZE_MAX / 2);
    arena_init(&memory, SIZE_MAX);
    buf_printf(&text, "{\"artifactId\":\"long\",\"parts\":[{\"text\":\"%s\"}]}", words);
    CHECK(json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK);
    CHECK(a2a_turn_artifact(bench.turn, json_root(&doc), append, false) == BAY_OK);
    arena_fini(&memory);
    buf_fini(&text);
}

static void run(unsigned long chunks, size_t bytes, uint64_t gap_ms)
{
    static const a2a_call_ops ops = {on_result, on_event, on_end, on_fail, on_field};
    static const char params[] = "{\"message\":{\"messageId\":\"m\",\"role\":\"ROLE_USER\","
                                 "\"parts\":[{\"text\":\"go on\"}]}}";
    arena memory;
    json_doc doc;
    char *words = mem_alloc(bytes + 1);
    CHECK(words != NULL);
    memset(words, 'x', bytes);
    words[bytes] = '\0';
    arena_init(&memory, SIZE_MAX);
    CHECK(json_parse(&doc, str_of(params), NULL, &memory, NULL) == BAY_OK);
    a2a_call call = {.ops = &ops,
                     .method = A2A_SEND_STREAMING_MESSAGE,
                     .version = A2A_1_0,
                     .params = json_root(&doc),
                     .memory = &memory};
    a2a_service *service = a2a_agent_service(bench.agent);
    service->call(service, &call);
    CHECK(a2a_turn_status(bench.turn, A2A_WORKING, JSON_NONE, JSON_NONE) == BAY_OK);
    for (unsigned long i = 0; i < chunks; i++) {
        chunk(words, i > 0);
        if (gap_ms > 0) {
            wait_ms(gap_ms);
        } else {
            settle();
        }
    }
    CHECK(a2a_turn_status(bench.turn, A2A_COMPLETED, JSON_NONE, JSON_NONE) == BAY_OK);
    a2a_turn_end(bench.turn);
    settle();
    CHECK(bench.events == chunks + 3);
    a2a_turn_unref(bench.turn);
    arena_fini(&memory);
    mem_free(words);
}

static void close_agent(void)
{
    CHECK(store_get(bench.store, STR("bench"), STR("none"), on_looked, NULL) == BAY_OK);
    while (!bench.has_looked) {
        loop_turn(bench.loop, -1);
    }
    bench.given = store_written(bench.store);
    a2a_agent_free(bench.agent);
    store_close(bench.store, on_closed, NULL);
    while (!bench.is_closed) {
        loop_turn(bench.loop, -1);
    }
    agent_store_free(bench.kept);
    store_free(bench.store);
    loop_free(bench.loop);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: a2a_artifact FOLDER CHUNKS CHUNK_BYTES GAP_MS\n");
        return 2;
    }
    char path[4096];
    unsigned long chunks = strtoul(argv[2], NULL, 10);
    size_t bytes = strtoul(argv[3], NULL, 10);
    snprintf(path, sizeof(path), "%s/artifact.db", argv[1]);
    open_agent(path);
    unsigned long long before = written_bytes();
    double cpu_before = cpu_us();
    run(chunks, bytes, strtoul(argv[4], NULL, 10));
    double cpu = cpu_us() - cpu_before;
    close_agent();
    unsigned long long written = written_bytes() - before;
    unsigned long long artifact = (unsigned long long)chunks * bytes;
    printf("artifact=%llu held=%llu given=%llu times=%.1f written=%llu cpu_us=%.1f\n", artifact,
           (unsigned long long)bench.held, (unsigned long long)bench.given,
           (double)bench.given / (double)artifact, written, cpu / (double)chunks);
    return 0;
}
