/* HTTP/1.1 heads and bodies: whatever the bytes and wherever they are cut, the verdict is the same
 * as for the whole, and nothing is read beyond what was given. What begins with HTTP/ is read as a
 * response; how it is cut follows from the bytes themselves. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 16 };

static const http1_limits limits = {.head_bytes = 1024,
                                    .target_bytes = 128,
                                    .fields = FIELDS,
                                    .body_bytes = 256,
                                    .framing_bytes = 48,
                                    .chunk_extension_bytes = 32,
                                    .trailer_bytes = 64};

static void tell(buf *out, bay_str text)
{
    buf_printf(out, "%zu:", text.len);
    buf_str(out, text);
}

static void tell_head(buf *out, const http1_head *head, size_t consumed)
{
    bay_str views[] = {head->method, head->target,    head->path,
                       head->query,  head->authority, head->reason};
    for (size_t i = 0; i < ARRAY_LEN(views); i++) {
        tell(out, views[i]);
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        tell(out, head->fields[i].name);
        tell(out, head->fields[i].value);
    }
    buf_printf(out, "%d %d %d %d %d %d %d %llu %zu;", head->status, head->minor,
               head->has_content_length, head->is_chunked, head->keep_alive, head->expects_continue,
               (int)head->framing, (unsigned long long)head->content_length, consumed);
}

static void tell_refusal(buf *out, bay_err err, const http1_refusal *refusal)
{
    CHECK(refusal->text != NULL && refusal->status >= 400);
    buf_printf(out, "refused %d %d %s %zu", (int)err, refusal->status, refusal->text,
               refusal->offset);
}

/* `step` 0: all at once; otherwise pieces of 1 to step bytes, each in memory of its own. */
static size_t next_cut(size_t at, size_t end, unsigned step, uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    size_t len = step == 0 ? end : 1 + (*seed >> 16) % step;
    return len < end - at ? at + len : end;
}

static void run_body(buf *out, http1_kind kind, const http1_head *head, bay_str bytes,
                     unsigned step, uint32_t seed)
{
    http1_body body;
    buf text;
    size_t total = 0;
    http1_body_event event = HTTP1_BODY_MORE;
    bay_err err = BAY_OK;
    buf_init(&text, SIZE_MAX);
    http1_body_init(&body, kind, head, &limits);
    for (size_t at = 0; err == BAY_OK && event != HTTP1_BODY_END;) {
        size_t cut = next_cut(at, bytes.len, step, &seed);
        char *piece = mem_dup(bytes.at + at, cut - at);
        CHECK(piece != NULL);
        bay_str rest = {piece, cut - at};
        do {
            size_t consumed = 0;
            bay_str span = {NULL, 0};
            err = http1_body_feed(&body, rest, &consumed, &span, &event);
            CHECK(consumed <= rest.len && span.len <= consumed);
            total += consumed;
            buf_str(&text, span);
            rest = str_from(rest, consumed);
        } while (err == BAY_OK && event == HTTP1_BODY_DATA);
        mem_free(piece);
        at = cut;
        if (at == bytes.len) {
            break;
        }
    }
    CHECK(text.len <= limits.body_bytes);
    tell(out, buf_view(&text));
    if (err != BAY_OK) {
        tell_refusal(out, err, &body.refusal);
    } else {
        bool has_ended = event == HTTP1_BODY_END;
        buf_printf(out, "body %d %zu %d", has_ended, total, (int)http1_body_finish(&body));
    }
    buf_fini(&text);
}

static void run(buf *out, http1_kind kind, bool answers_head, bay_str bytes, unsigned step,
                uint32_t seed)
{
    http_field fields[FIELDS];
    http1_parser parser;
    http1_head head;
    size_t consumed = 0;
    char *piece = NULL;
    bay_err err = BAY_ERR_AGAIN;
    size_t cut = 0;
    http1_parser_init(&parser, kind, &limits, fields, answers_head);
    do {
        cut = next_cut(cut, bytes.len, step, &seed);
        mem_free(piece);
        piece = mem_alloc(cut);
        CHECK(piece != NULL);
        if (cut > 0) {
            memcpy(piece, bytes.at, cut);
        }
        err = http1_head_parse(&parser, (bay_str){piece, cut}, &head, &consumed);
    } while (err == BAY_ERR_AGAIN && cut < bytes.len);
    if (err == BAY_OK) {
        CHECK(consumed <= cut);
        tell_head(out, &head, consumed);
        run_body(out, kind, &head, str_from(bytes, consumed), step, seed);
    } else if (err != BAY_ERR_AGAIN) {
        tell_refusal(out, err, &parser.refusal);
    }
    mem_free(piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bay_str bytes = {(const char *)data, size};
    http1_kind kind = str_starts(bytes, STR("HTTP/")) ? HTTP1_RESPONSE : HTTP1_REQUEST;
    uint32_t seed = (uint32_t)str_hash(bytes, 0);
    bool answers_head = seed % 8 == 0;
    buf whole;
    buf cut;
    buf_init(&whole, SIZE_MAX);
    buf_init(&cut, SIZE_MAX);
    run(&whole, kind, answers_head, bytes, 0, 0);
    run(&cut, kind, answers_head, bytes, 1 + seed % 40, seed);
    CHECK(str_eq(buf_view(&whole), buf_view(&cut)));
    buf_fini(&whole);
    buf_fini(&cut);
    return 0;
}
