/* How fast a compiled schema checks: the cases of bench/schemas.json, which bench/others/ajv.mjs
 * reads too. Prints for each case the median time of a check of what is parsed already, and of
 * parsing and checking: "typical checked=150 ns whole=300 ns".
 *
 *     bench_schema bench/schemas.json */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "schema/schema.h"
#include "json/json.h"

enum { ROUNDS = 41, TURNS = 5000 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double times[ROUNDS])
{
    qsort(times, ROUNDS, sizeof(times[0]), by_size);
    return times[ROUNDS / 2];
}

/* False when a check fails: then there is nothing to measure. */
static bool measure(const schema *compiled, bay_str text, double *out_checked, double *out_whole)
{
    double checked[ROUNDS];
    double whole[ROUNDS];
    arena memory;
    arena again;
    json_doc doc;
    schema_state state;
    bool holds = true;
    arena_init(&memory, 1U << 20);
    arena_init(&again, 1U << 20);
    schema_state_init(&state);
    holds = json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK;
    for (size_t round = 0; round < ROUNDS && holds; round++) {
        double start = now_ns();
        for (size_t turn = 0; turn < TURNS; turn++) {
            holds &= schema_check(compiled, json_root(&doc), &state, NULL) == BAY_OK;
        }
        checked[round] = (now_ns() - start) / TURNS;
        start = now_ns();
        for (size_t turn = 0; turn < TURNS; turn++) {
            json_doc parsed;
            arena_reset(&again);
            holds &= json_parse(&parsed, text, NULL, &again, NULL) == BAY_OK &&
                     schema_check(compiled, json_root(&parsed), &state, NULL) == BAY_OK;
        }
        whole[round] = (now_ns() - start) / TURNS;
    }
    if (holds) {
        *out_checked = median(checked);
        *out_whole = median(whole);
    }
    schema_state_fini(&state);
    arena_fini(&again);
    arena_fini(&memory);
    return holds;
}

static bool run(json_val one)
{
    schema *compiled = NULL;
    bay_diag diag = {0};
    double checked = 0;
    double whole = 0;
    if (schema_compile(json_get(one, STR("schema")), NULL, &compiled, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return false;
    }
    bool holds = measure(compiled, json_raw(json_get(one, STR("instance"))), &checked, &whole);
    bay_str name = {"", 0};
    if (holds && json_str_plain(json_get(one, STR("name")), &name)) {
        printf("%.*s checked=%.0f ns whole=%.0f ns\n", BAY_STR(name), checked, whole);
    }
    schema_free(compiled);
    return holds;
}

int main(int argc, char **argv)
{
    buf text;
    arena memory;
    json_doc doc;
    char block[4096];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s bench/schemas.json\n", argv[0]);
        return 2;
    }
    buf_init(&text, 1U << 20);
    arena_init(&memory, 1U << 22);
    for (size_t len = fread(block, 1, sizeof(block), file); len > 0;
         len = fread(block, 1, sizeof(block), file)) {
        buf_append(&text, block, len);
    }
    fclose(file);
    bool holds = json_parse(&doc, buf_view(&text), NULL, &memory, NULL) == BAY_OK;
    json_iter it = holds ? json_iter_of(json_root(&doc)) : json_iter_of(JSON_NONE);
    while (json_next(&it)) {
        holds &= run(it.value);
    }
    arena_fini(&memory);
    buf_fini(&text);
    return holds ? 0 : 1;
}
