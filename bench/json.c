/* How fast the reader indexes: a 300-byte tools/call, a 203 KB tool result (long texts with escapes
 * and some characters beyond ASCII, and the structure around them), 203 KB of text beyond ASCII and
 * 203 KB of small values. Each on every variant of the byte loops this machine can run. Prints the
 * median of many rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "json/scan.h"
#include "json/writer.h"

enum { RESULT_BYTES = 203 * 1024, ROUNDS = 41 };

static const char call[] =
    "{\"jsonrpc\":\"2.0\",\"id\":4711,\"method\":\"tools/call\",\"params\":{\"name\":\"weather."
    "forecast\",\"arguments\":{\"city\":\"Santiago de Compostela\",\"days\":5,\"units\":\"metric\","
    "\"hourly\":false,\"latitude\":42.88052,\"longitude\":-8.54569},\"_meta\":{\"progressToken\":"
    "\"p-4711\",\"traceparent\":\"00-4bf92f3577b34da6-00f067aa-01\"}}}";

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A page of a report: lines to break, quotes, and a word in five with an accent. */
static void write_page(buf *out, int page)
{
    buf_printf(out, "## Section %d \xe2\x80\x94 r\xc3\xa9sum\xc3\xa9\n\n", page);
    for (int line = 0; line < 24; line++) {
        buf_printf(out,
                   "%4d  The upstream answered \"ok\" after %d ms; na\xc3\xafve clients would have "
                   "retried at once and doubled the load.\n",
                   line, (line * 37 + page) % 900);
    }
    buf_lit(out, "\nDetails follow in the next section.\n");
}

static void write_result(buf *out)
{
    buf page;
    buf_init(&page, RESULT_BYTES);
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_key_lit(&writer, "jsonrpc");
    json_put_str(&writer, STR("2.0"));
    json_key_lit(&writer, "id");
    json_put_int(&writer, 4711);
    json_key_lit(&writer, "result");
    json_open_object(&writer);
    json_key_lit(&writer, "content");
    json_open_array(&writer);
    for (int i = 0; out->len < RESULT_BYTES - 2048; i++) {
        buf_clear(&page);
        write_page(&page, i);
        json_open_object(&writer);
        json_key_lit(&writer, "type");
        json_put_str(&writer, STR("text"));
        json_key_lit(&writer, "text");
        json_put_str(&writer, buf_view(&page));
        json_close_object(&writer);
    }
    json_close_array(&writer);
    json_key_lit(&writer, "isError");
    json_put_bool(&writer, false);
    json_close_object(&writer);
    json_close_object(&writer);
    buf_fini(&page);
}

/* Text in which nearly every character takes two or three bytes. */
static void write_beyond_ascii(buf *out)
{
    buf text;
    buf_init(&text, RESULT_BYTES);
    while (text.len < RESULT_BYTES - 256) {
        buf_lit(&text, "\xd0\xa1\xd0\xb5\xd1\x80\xd0\xb2\xd0\xb5\xd1\x80 "
                       "\xd0\xbe\xd1\x82\xd0\xb2\xd0\xb5\xd1\x82\xd0\xb8\xd0\xbb, "
                       "\xe6\x9c\x8d\xe5\x8a\xa1\xe5\x99\xa8\xe5\xb7\xb2\xe7\xbb\x8f"
                       "\xe5\x9b\x9e\xe7\xad\x94\xe3\x80\x82\n");
    }
    json_quote(out, buf_view(&text));
    buf_fini(&text);
}

static void write_small_values(buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_array(&writer);
    for (int i = 0; out->len < RESULT_BYTES - 64; i++) {
        json_open_object(&writer);
        json_key_lit(&writer, "id");
        json_put_int(&writer, i);
        json_key_lit(&writer, "x");
        json_put_double(&writer, i / 8.0);
        json_key_lit(&writer, "name");
        json_put_str(&writer, STR("row"));
        json_key_lit(&writer, "ok");
        json_put_bool(&writer, i % 3 == 0);
        json_close_object(&writer);
    }
    json_close_array(&writer);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* Nanoseconds a parse, in a warm arena. */
static double measure(bay_str text, uint32_t *out_values)
{
    arena memory;
    arena_init(&memory, 64U << 20);
    double rounds[ROUNDS];
    int repeats = text.len < 4096 ? 4096 : 16;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < repeats; i++) {
            json_doc doc;
            arena_reset(&memory);
            if (json_parse(&doc, text, NULL, &memory, NULL) != BAY_OK) {
                fputs("the benchmark's own document does not parse\n", stderr);
                exit(1);
            }
            *out_values = doc.count;
        }
        rounds[round] = (now_ns() - start) / repeats;
    }
    arena_fini(&memory);
    qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
    return rounds[ROUNDS / 2];
}

static void report(const char *scan, const char *name, bay_str text)
{
    uint32_t values = 0;
    double ns = measure(text, &values);
    printf("%-9s %-13s %7zu B %6u values %10.0f ns %6.2f GB/s\n", scan, name, text.len, values, ns,
           (double)text.len / ns);
}

int main(void)
{
    buf result;
    buf beyond;
    buf small;
    buf_init(&result, 1U << 20);
    buf_init(&beyond, 1U << 20);
    buf_init(&small, 1U << 20);
    write_result(&result);
    write_beyond_ascii(&beyond);
    write_small_values(&small);
    if (result.err != BAY_OK || beyond.err != BAY_OK || small.err != BAY_OK) {
        fputs("no memory\n", stderr);
        return 1;
    }
    const json_scan *scans[JSON_SCAN_MAX];
    size_t count = json_scan_list(scans);
    for (size_t i = 0; i < count; i++) {
        json_scan_use(scans[i]);
        report(scans[i]->name, "call", (bay_str){call, sizeof(call) - 1});
        report(scans[i]->name, "result", buf_view(&result));
        report(scans[i]->name, "beyond ASCII", buf_view(&beyond));
        report(scans[i]->name, "small values", buf_view(&small));
    }
    buf_fini(&result);
    buf_fini(&beyond);
    buf_fini(&small);
    return 0;
}
