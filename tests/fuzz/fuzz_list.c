/* What servers list and what clients page with: two servers' answers to tools/list (or another
 * list), merged, renamed and paged. Whatever they hold, a fetch ends, every page is JSON, walking
 * the pages shows each item once, and a made-up cursor does no harm. The first byte says which
 * list, the second how large a page is; then lines: an answer of each server, and cursors. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "catalog/catalog.h"
#include "upstream/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SERVERS = 2, ROOM = 8 << 20, SENDS_MAX = 100000 };

typedef struct fake {
    upstream base;
    config_server server;
    upstream_call *held;
    unsigned sends;
} fake;

static void fake_send(upstream *base, upstream_call *call)
{
    fake *self = CONTAINER_OF(base, fake, base);
    CHECK(self->held == NULL);
    self->held = call;
    self->sends++;
}

static void fake_cancel(upstream_call *call, bay_str reason)
{
    (void)reason;
    CONTAINER_OF(call->upstream, fake, base)->held = NULL;
}

static void fake_state_changed(void *user, upstream *base)
{
    (void)user;
    (void)base;
}

static void on_fetched(void *user, listing_fetch *fetch, bool is_changed)
{
    (void)user;
    (void)fetch;
    (void)is_changed;
}

static void fake_init(fake *self, const char *name)
{
    static const upstream_ops ops = {.send = fake_send, .cancel = fake_cancel};
    static const upstream_events events = {.state_changed = fake_state_changed};
    *self = (fake){.server = {.name = str_of(name)}};
    upstream_options options = {.server = &self->server, .events = &events};
    CHECK(upstream_init(&self->base, &ops, &options) == BAY_OK);
    arena memory;
    json_doc doc;
    arena_init(&memory, 1 << 16);
    CHECK(json_parse(&doc, STR("{\"tools\":{},\"resources\":{},\"prompts\":{}}"), NULL, &memory,
                     NULL) == BAY_OK);
    upstream_learn(&self->base, mcp_revision_of(MCP_LATEST), json_root(&doc));
    arena_fini(&memory);
}

/* Every page it asks for is the same. NULL when nothing came of it. */
static listing *fetch(fake *from, listing_kind kind, bay_str answer)
{
    arena memory;
    json_doc doc;
    listing_fetch reading;
    listing *made = NULL;
    arena_init(&memory, ROOM);
    if (json_parse(&doc, answer, NULL, &memory, NULL) == BAY_OK) {
        listing_fetch_init(&reading, &from->base, kind, on_fetched, NULL);
        listing_fetch_start(&reading, 1000);
        while (from->held != NULL) {
            upstream_call *call = from->held;
            mcp_outcome outcome = {.kind = MCP_OUTCOME_RESULT, .result = json_root(&doc)};
            from->held = NULL;
            CHECK(from->sends < SENDS_MAX);
            upstream_call_end(call);
            call->events->done(call->user, &outcome);
        }
        made = reading.current != NULL ? listing_ref(reading.current) : NULL;
        listing_fetch_fini(&reading);
    }
    arena_fini(&memory);
    return made;
}

/* The number of items on the page; its cursor is copied out, and empty after the last. */
static size_t page(const catalog_view *view, bay_str cursor, uint32_t size, buf *out_next)
{
    static const catalog_cursors legible = {NULL, {NULL, 0}};
    arena memory;
    json_doc doc;
    json_val value = JSON_NONE;
    buf out;
    size_t count = 0;
    arena_init(&memory, 4 * ROOM);
    buf_init(&out, ROOM);
    buf_char(&out, '{');
    bay_err err = cursor.len > 0 ? json_parse(&doc, cursor, NULL, &memory, NULL) : BAY_OK;
    if (err == BAY_OK && cursor.len > 0) {
        value = json_root(&doc);
    }
    if (err == BAY_OK &&
        catalog_view_page(view, &legible, value, size, false, (catalog_sight){0}, &out) == BAY_OK) {
        buf_char(&out, '}');
        CHECK(out.err == BAY_OK);
        json_limits limits = {ROOM, 128, 1 << 20};
        CHECK(json_parse(&doc, buf_view(&out), &limits, &memory, NULL) == BAY_OK);
        json_val items = json_get(json_root(&doc), listing_result_key(view->kind));
        CHECK(json_is(items, JSON_ARRAY));
        count = json_count(items);
        CHECK(size == 0 || count <= size);
        if (out_next != NULL) {
            buf_clear(out_next);
            buf_str(out_next, json_raw(json_get(json_root(&doc), STR("nextCursor"))));
        }
    }
    buf_fini(&out);
    arena_fini(&memory);
    return count;
}

static void walk(const catalog_view *view, uint32_t size)
{
    buf next;
    buf at;
    size_t seen = 0;
    buf_init(&next, 4096);
    buf_init(&at, 4096);
    do {
        buf_clear(&at);
        buf_str(&at, buf_view(&next));
        size_t count = page(view, buf_view(&at), size, &next);
        seen += count;
        CHECK(count > 0 || next.len == 0);
    } while (next.len > 0);
    CHECK(seen == catalog_view_count(view));
    buf_fini(&next);
    buf_fini(&at);
}

static bay_str take_line(bay_str *rest)
{
    size_t end = str_find(*rest, '\n');
    bay_str line = str_head(*rest, end);
    *rest = end < rest->len ? str_from(*rest, end + 1) : (bay_str){NULL, 0};
    return line;
}

static void show(catalog_servers *roster, listing_kind kind, bool bare, uint32_t size, bay_str rest)
{
    catalog_view view;
    catalog_options options = {.separator = STR("."), .bare_names = bare};
    catalog_view_init(&view, kind);
    if (catalog_view_reset(&view, roster, &options, 1) == BAY_OK) {
        walk(&view, size);
        bay_str cursors = rest;
        while (cursors.len > 0) {
            (void)page(&view, take_line(&cursors), size, NULL);
        }
        listing *gone = roster->sources[0].listings[kind];
        roster->sources[0].listings[kind] = NULL;
        if (catalog_view_refresh(&view, 0, 2) == BAY_OK) {
            walk(&view, size);
            while (rest.len > 0) {
                (void)page(&view, take_line(&rest), size, NULL);
            }
        }
        roster->sources[0].listings[kind] = gone;
    }
    catalog_view_fini(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[SERVERS] = {"a", "a.b"};
    fake servers[SERVERS];
    catalog_source sources[SERVERS] = {0};
    catalog_servers roster;
    if (size < 3) {
        return 0;
    }
    listing_kind kind = (listing_kind)(data[0] % LISTING_KINDS);
    bay_str rest = {(const char *)data + 2, size - 2};
    for (size_t i = 0; i < SERVERS; i++) {
        fake_init(&servers[i], names[i]);
        sources[i].upstream = &servers[i].base;
        sources[i].listings[kind] = fetch(&servers[i], kind, take_line(&rest));
    }
    if (catalog_servers_init(&roster, sources, SERVERS) == BAY_OK) {
        show(&roster, kind, data[0] >= 128, data[1], rest);
        catalog_servers_fini(&roster);
    }
    for (size_t i = 0; i < SERVERS; i++) {
        listing_unref(sources[i].listings[kind]);
        upstream_fini(&servers[i].base);
    }
    return 0;
}
