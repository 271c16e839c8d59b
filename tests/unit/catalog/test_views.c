/* The catalog: what several servers offer, merged, renamed, found again and paged. */
#include "support/fake_listing.h"

#include "catalog/catalog.h"
#include "support/failing_memory.h"
#include "support/skipped.h"

enum { MANY = 100000 };
#define R(path) "{\"name\":\"r\",\"uri\":\"f:///" path "\""
#define T(host) "{\"name\":\"r\",\"uriTemplate\":\"demo://" host "/{id}\"}"

typedef struct stage {
    fake *servers[4];
    catalog_source sources[4];
    size_t count;
    catalog_servers registered;
    catalog_view view;
} stage;

static const catalog_options dotted = {.separator = STR_INIT(".")};
static const catalog_options plain = {.separator = {NULL, 0}};
static const catalog_options bare = {.separator = STR_INIT("."), .bare_names = true};
static const catalog_cursors legible = {NULL, {NULL, 0}};

static void add(stage *self, const char *name, listing_kind kind, const char *items)
{
    fake *server = fake_new(name, false);
    self->servers[self->count] = server;
    self->sources[self->count].upstream = &server->base;
    if (items != NULL) {
        self->sources[self->count].listings[kind] = listing_of(server, kind, items);
    }
    self->count++;
}

/* the view holds what it shows by itself */
static void let_go(stage *self)
{
    for (size_t i = 0; i < self->count; i++) {
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            listing_unref(self->sources[i].listings[kind]);
            self->sources[i].listings[kind] = NULL;
        }
    }
}

static void build(stage *self, listing_kind kind, const catalog_options *options)
{
    catalog_view_init(&self->view, kind);
    assert_int_equal(catalog_servers_init(&self->registered, self->sources, self->count), BAY_OK);
    assert_int_equal(catalog_view_reset(&self->view, &self->registered, options, 0), BAY_OK);
    let_go(self);
}

static void clear(stage *self)
{
    catalog_view_fini(&self->view);
    catalog_servers_fini(&self->registered);
    for (size_t i = 0; i < self->count; i++) {
        fake_free(self->servers[i]);
    }
    *self = (stage){0};
}

/* The listing of one server becomes `items`; NULL: it has none any more. */
static bay_err refresh_at(stage *self, size_t index, const char *items, uint64_t now_ms)
{
    listing_kind kind = self->view.kind;
    listing *made = items != NULL ? listing_of(self->servers[index], kind, items) : NULL;
    listing *old = self->registered.sources[index].listings[kind];
    self->registered.sources[index].listings[kind] = made;
    bay_err err = catalog_view_refresh(&self->view, index, now_ms);
    self->registered.sources[index].listings[kind] = err == BAY_OK ? NULL : old;
    listing_unref(made);
    return err;
}

static void refresh(stage *self, size_t index, const char *items)
{
    assert_int_equal(refresh_at(self, index, items, 0), BAY_OK);
}

static bay_err page_of(const catalog_view *view, const catalog_cursors *cursors, const char *cursor,
                       uint32_t size, buf *out)
{
    arena memory;
    json_doc doc;
    json_val value = JSON_NONE;
    arena_init(&memory, 1 << 20);
    if (cursor != NULL) {
        assert_int_equal(json_parse(&doc, str_of(cursor), NULL, &memory, NULL), BAY_OK);
        value = json_root(&doc);
    }
    bay_err err = catalog_view_page(view, cursors, value, size, false, (catalog_sight){0}, out);
    arena_fini(&memory);
    return err;
}

static bay_err page_into(const catalog_view *view, const char *cursor, uint32_t size, buf *out)
{
    return page_of(view, &legible, cursor, size, out);
}

static void assert_page(const catalog_view *view, const char *wanted)
{
    buf out;
    buf_init(&out, 1 << 20);
    assert_int_equal(page_into(view, NULL, 0, &out), BAY_OK);
    assert_text(buf_view(&out), wanted);
    buf_fini(&out);
}

static void forged_cursors_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "0",
        "null",
        "true",
        "[]",
        "{}",
        "\"\"",
        "\"x\"",
        "\"!!\"",
        "\"MTox\\u0041\"",
        "\"LTE6MQ\"",                         /* -1:1 */
        "\"MTotMQ\"",                         /* 1:-1 */
        "\"MTo\"",                            /* 1: */
        "\"OjE\"",                            /* :1 */
        "\"MQ\"",                             /* 1 */
        "\"MToxeA\"",                         /* 1:1x */
        "\"IDE6MQ\"",                         /*  1:1 */
        "\"QToxCg\"",                         /* A:1 */
        "\"MTExMTExMTExMTExMTExMTE6MQ\"",     /* seventeen digits */
        "\"MToxODQ0Njc0NDA3MzcwOTU1MTYxNg\"", /* 1:2^64 */
        "\"MToxODQ0Njc0NDA3MzcwOTU1MTYxNQ\"", /* 1:2^64-1 */
        "\"MToxMDAwMDAx\"",                   /* 1:1000001, more than any view holds */
        "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
    };
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"x\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf out;
        buf_init(&out, 1 << 16);
        if (page_into(&self.view, bad[i], 10, &out) != BAY_ERR_INVALID) {
            fail_msg("taken: %s", bad[i]);
        }
        buf_fini(&out);
    }
    clear(&self);
}

static void a_cursor_beyond_the_end_finds_nothing_more(void **state)
{
    (void)state;
    stage self = {0};
    buf out;
    buf_init(&out, 1 << 16);
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"x\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    assert_int_equal(page_into(&self.view, "\"MTo5OTk\"", 10, &out), BAY_OK); /* 1:999 */
    assert_text(buf_view(&out), "\"tools\":[]");
    buf_fini(&out);
    clear(&self);
}

static void an_empty_catalog_has_one_empty_page(void **state)
{
    (void)state;
    static const char *const wanted[LISTING_KINDS] = {"\"tools\":[]", "\"resources\":[]",
                                                      "\"resourceTemplates\":[]", "\"prompts\":[]"};
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        stage self = {0};
        catalog_view_init(&self.view, kind);
        assert_page(&self.view, wanted[kind]); /* never built */
        assert_null(catalog_view_find(&self.view, STR("x")));
        assert_null(catalog_view_match(&self.view, STR("x")));
        add(&self, "a", kind, NULL);
        add(&self, "b", kind, "[]");
        build(&self, kind, &dotted);
        assert_page(&self.view, wanted[kind]);
        clear(&self);
    }
}

static void lists_are_merged_in_the_order_of_the_servers(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "zoo", LISTING_TOOLS, "[{\"name\":\"b\"},{\"name\":\"a\"}]");
    add(&self, "dead", LISTING_TOOLS, NULL);
    add(&self, "ant", LISTING_TOOLS, "[{\"name\":\"a\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    assert_page(&self.view, "\"tools\":[{\"name\":\"zoo.b\"},{\"name\":\"zoo.a\"},"
                            "{\"name\":\"ant.a\"}]");
    const catalog_entry *entry = catalog_view_find(&self.view, STR("ant.a"));
    assert_non_null(entry);
    assert_ptr_equal(entry->upstream, &self.servers[2]->base);
    assert_text(entry->item->key, "a");
    assert_null(catalog_view_find(&self.view, STR("a")));
    assert_null(catalog_view_find(&self.view, STR("ant.")));
    assert_null(catalog_view_find(&self.view, STR("dead.a")));
    clear(&self);
}

static void other_separators_and_none(void **state)
{
    (void)state;
    static const catalog_options under = {.separator = STR_INIT("__")};
    static const char *items = "[{\"name\":\"read__all.x/y\"}]";
    stage self = {0};
    add(&self, "a", LISTING_PROMPTS, items);
    build(&self, LISTING_PROMPTS, &under);
    assert_page(&self.view, "\"prompts\":[{\"name\":\"a__read__all.x/y\"}]");
    assert_non_null(catalog_view_find(&self.view, STR("a__read__all.x/y")));
    clear(&self);
    add(&self, "a", LISTING_PROMPTS, items);
    build(&self, LISTING_PROMPTS, &plain);
    assert_page(&self.view, "\"prompts\":[{\"name\":\"read__all.x/y\"}]");
    clear(&self);
}

static void only_the_name_changes_byte_for_byte(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "s", LISTING_TOOLS,
        "[ { \"x\" :1.0e+2, \"name\" : \"\\u0061\\n\\\"\\ud83d\\ude00\xc3\xa9\" ,\n"
        " \"inputSchema\":{\"type\":\"object\",\"m\":123456789012345678901,\"n\":0.1000,"
        "\"const\":-0,\"default\":1E400,\"name\":\"not "
        "me\",\"a\":1,\"a\":2},\"\\u006eame2\":\"k\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    /* white space between values stays as well; only the name is written anew */
    assert_page(&self.view,
                "\"tools\":[{ \"x\" :1.0e+2, \"name\" : \"s.a\\n\\\"\xf0\x9f\x98\x80\xc3\xa9\" ,\n"
                " \"inputSchema\":{\"type\":\"object\",\"m\":123456789012345678901,\"n\":0.1000,"
                "\"const\":-0,\"default\":1E400,\"name\":\"not me\",\"a\":1,\"a\":2},"
                "\"\\u006eame2\":\"k\"}]");
    assert_non_null(catalog_view_find(&self.view, STR("s.a\n\"\xf0\x9f\x98\x80\xc3\xa9")));
    clear(&self);
}

static void an_endpoint_of_one_server_shows_the_very_bytes(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "s", LISTING_TOOLS, "[{\"name\":\"\\u0061\"}]");
    build(&self, LISTING_TOOLS, &plain);
    assert_page(&self.view, "\"tools\":[{\"name\":\"\\u0061\"}]");
    assert_non_null(catalog_view_find(&self.view, STR("a")));
    clear(&self);
}

static void bare_names_where_only_one_server_has_them(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"read\"},{\"name\":\"only\"},{\"name\":\"c.x\"}]");
    add(&self, "b", LISTING_TOOLS, "[{\"name\":\"read\"},{\"name\":\"mine\"}]");
    build(&self, LISTING_TOOLS, &bare);
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.read\"},{\"name\":\"only\"},"
                            "{\"name\":\"c.x\"},{\"name\":\"b.read\"},{\"name\":\"mine\"}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("c.x"))->upstream, &self.servers[0]->base);
    clear(&self);
}

static void a_bare_name_never_hides_a_full_one(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"b.x\"},{\"name\":\"x\"}]");
    add(&self, "b", LISTING_TOOLS, "[{\"name\":\"x\"}]");
    build(&self, LISTING_TOOLS, &bare);
    assert_page(&self.view,
                "\"tools\":[{\"name\":\"a.b.x\"},{\"name\":\"a.x\"},{\"name\":\"b.x\"}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("b.x"))->upstream, &self.servers[1]->base);
    clear(&self);
}

static void what_is_offered_twice_is_shown_once(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS,
        "[{\"name\":\"x\",\"n\":1},{\"name\":\"x\",\"n\":2},{\"name\":\"\\u0078\",\"n\":3},"
        "{\"name\":\"x\"},{\"name\":\"x\"},{\"name\":\"x\"},{\"name\":\"x\"},{\"name\":\"y\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.x\",\"n\":1},{\"name\":\"a.y\"}]");
    clear(&self);
    add(&self, "a", LISTING_RESOURCES, "[" R("x") ",\"n\":1}]");
    add(&self, "b", LISTING_RESOURCES, "[" R("x") ",\"n\":2}]");
    build(&self, LISTING_RESOURCES, &dotted);
    assert_page(&self.view, "\"resources\":[" R("x") ",\"n\":1}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("f:///x"))->upstream,
                     &self.servers[0]->base);
    clear(&self);
}

static void count_complaints(log_level level, const char *component, const char *text, void *user)
{
    *(int *)user += level == LOG_WARN && strcmp(component, "catalog") == 0 && text[0] == '"';
}

static void one_view_of_many_says_so(void **state)
{
    int complaints = 0;
    const log_target *before = log_direct(&(log_target){count_complaints, &complaints, LOG_WARN});
    (void)state;
    for (int is_loud = 0; is_loud <= 1; is_loud++) {
        stage self = {0};
        const catalog_options options = {.separator = STR("."), .is_quiet = !is_loud};
        add(&self, "a", LISTING_TOOLS, "[{\"name\":\"x\"},{\"name\":\"x\"}]");
        build(&self, LISTING_TOOLS, &options);
        assert_int_equal(complaints, is_loud);
        clear(&self);
    }
    log_direct(before);
}

static void templates_find_their_server(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TEMPLATES, "[" T("a") "]");
    add(&self, "b", LISTING_TEMPLATES, "[" T("b") "]");
    build(&self, LISTING_TEMPLATES, &dotted);
    assert_page(&self.view, "\"resourceTemplates\":[" T("a") "," T("b") "]");
    assert_ptr_equal(catalog_view_match(&self.view, STR("demo://b/7"))->upstream,
                     &self.servers[1]->base);
    assert_null(catalog_view_match(&self.view, STR("demo://c/7")));
    clear(&self);
}

/* Follows the cursors of `view` from `cursor` on; counts the items. */
static size_t walk(const catalog_view *view, uint32_t size, size_t *out_pages)
{
    char cursor[80] = "";
    size_t items = 0;
    *out_pages = 0;
    for (;;) {
        buf out;
        arena memory;
        json_doc doc;
        buf_init(&out, 64 << 20);
        arena_init(&memory, 256 << 20);
        buf_char(&out, '{');
        assert_int_equal(page_into(view, cursor[0] != '\0' ? cursor : NULL, size, &out), BAY_OK);
        buf_char(&out, '}');
        assert_int_equal(json_parse(&doc, buf_view(&out), NULL, &memory, NULL), BAY_OK);
        json_val tools = json_get(json_root(&doc), STR("tools"));
        json_val first = json_get(json_item(tools, 0), STR("name"));
        assert_true(json_str_eq(first, catalog_view_at(view, items)->shown));
        items += json_count(tools);
        (*out_pages)++;
        bay_str next = json_raw(json_get(json_root(&doc), STR("nextCursor")));
        (void)snprintf(cursor, sizeof(cursor), "%.*s", BAY_STR(next));
        buf_fini(&out);
        arena_fini(&memory);
        if (next.len == 0) {
            return items;
        }
    }
}

static void pages_are_slices_of_the_whole(void **state)
{
    (void)state;
    size_t pages;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"1\"},{\"name\":\"2\"},{\"name\":\"3\"}]");
    add(&self, "b", LISTING_TOOLS, "[{\"name\":\"4\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    static const size_t wanted[] = {1, 4, 2, 2, 1, 1};
    for (uint32_t size = 0; size < ARRAY_LEN(wanted); size++) {
        assert_int_equal(walk(&self.view, size, &pages), 4);
        assert_int_equal(pages, wanted[size]);
    }
    clear(&self);
}

/* The cursor that a page ends with, as JSON; NULL: it is the last one. */
static char *next_of(buf *page)
{
    arena memory;
    json_doc doc;
    buf whole;
    arena_init(&memory, 16 << 20);
    buf_init(&whole, 16 << 20);
    buf_char(&whole, '{');
    buf_str(&whole, buf_view(page));
    buf_char(&whole, '}');
    assert_int_equal(json_parse(&doc, buf_view(&whole), NULL, &memory, NULL), BAY_OK);
    bay_str raw = json_raw(json_get(json_root(&doc), STR("nextCursor")));
    char *made = raw.len > 0 ? mem_dup(raw.at, raw.len) : NULL;
    buf_fini(&whole);
    arena_fini(&memory);
    return made;
}

static void assert_next(const catalog_view *view, const char *cursor, uint32_t size,
                        const char *wanted)
{
    buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(page_into(view, cursor, size, &out), BAY_OK);
    bay_str shown = buf_view(&out);
    if (!str_starts(shown, str_of(wanted))) {
        print_error("is:     %.*s\nwanted: %s\n", BAY_STR(shown), wanted);
    }
    assert_true(str_starts(shown, str_of(wanted)));
    buf_fini(&out);
}

#define THREE "[{\"name\":\"1\"},{\"name\":\"2\"},{\"name\":\"3\"}]"

static char *first_page(const catalog_view *view, uint32_t size)
{
    buf out;
    buf_init(&out, 1 << 16);
    assert_int_equal(page_into(view, NULL, size, &out), BAY_OK);
    char *cursor = next_of(&out);
    assert_non_null(cursor);
    buf_fini(&out);
    return cursor;
}

static void who_pages_sees_one_list(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, THREE);
    add(&self, "b", LISTING_TOOLS, THREE);
    build(&self, LISTING_TOOLS, &dotted);
    char *cursor = first_page(&self.view, 2);
    refresh(&self, 0, "[{\"name\":\"other\"}]");
    refresh(&self, 1, NULL);
    assert_next(&self.view, cursor, 2, "\"tools\":[{\"name\":\"a.3\"},{\"name\":\"b.1\"}],");
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.other\"}]");
    mem_free(cursor);
    clear(&self);
}

static void the_list_that_is_gone_goes_on_in_the_newer_one(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, THREE);
    build(&self, LISTING_TOOLS, &dotted);
    char *cursor = first_page(&self.view, 2);
    refresh(&self, 0, "[{\"name\":\"7\"},{\"name\":\"8\"},{\"name\":\"9\"},{\"name\":\"10\"}]");
    catalog_view_tick(&self.view, CATALOG_OLDER_MS - 1);
    assert_next(&self.view, cursor, 2, "\"tools\":[{\"name\":\"a.3\"}]");
    catalog_view_tick(&self.view, CATALOG_OLDER_MS);
    assert_int_equal(self.view.older_count, 0);
    assert_next(&self.view, cursor, 2, "\"tools\":[{\"name\":\"a.9\"},{\"name\":\"a.10\"}]");
    mem_free(cursor);
    clear(&self);
}

static void so_many_older_lists_are_kept_and_no_more(void **state)
{
    (void)state;
    char items[64];
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, THREE);
    build(&self, LISTING_TOOLS, &dotted);
    char *cursor = first_page(&self.view, 2);
    for (int i = 0; i < CATALOG_OLDER; i++) {
        (void)snprintf(items, sizeof(items), "[{\"name\":\"n%d\"}]", i);
        refresh(&self, 0, items);
        refresh(&self, 0, items); /* the same again is no other list */
    }
    assert_int_equal(self.view.older_count, CATALOG_OLDER);
    assert_next(&self.view, cursor, 2, "\"tools\":[{\"name\":\"a.3\"}]");
    refresh(&self, 0, "[]");
    assert_int_equal(self.view.older_count, CATALOG_OLDER);
    assert_next(&self.view, cursor, 2, "\"tools\":[]");
    mem_free(cursor);
    clear(&self);
}

static void a_list_of_one_page_is_not_kept(void **state)
{
    (void)state;
    static const catalog_options two = {.separator = STR_INIT("."), .page_size = 2};
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"1\"},{\"name\":\"2\"}]");
    build(&self, LISTING_TOOLS, &two);
    refresh(&self, 0, THREE);
    assert_int_equal(self.view.older_count, 0);
    refresh(&self, 0, "[]");
    assert_int_equal(self.view.older_count, 1);
    clear(&self);
}

static char *big_item(size_t bytes, char fill)
{
    char *text = mem_alloc(bytes + 64);
    assert_non_null(text);
    int head = snprintf(text, 64, "[{\"name\":\"big\",\"text\":\"");
    memset(text + head, fill, bytes);
    (void)snprintf(text + (size_t)head + bytes, 8, "\"}]");
    return text;
}

static void older_lists_are_bounded_in_bytes(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[]");
    build(&self, LISTING_TOOLS, &dotted);
    for (int i = 0; i < 6; i++) {
        char *text = big_item(CATALOG_OLDER_BYTES / 3, (char)('a' + i));
        refresh(&self, 0, text);
        mem_free(text);
    }
    assert_int_equal(self.view.older_count, 2); /* of a third each, and their braces */
    clear(&self);
}

static void a_page_of_large_items_ends_early(void **state)
{
    (void)state;
    stage self = {0};
    buf items;
    buf_init(&items, 128 << 20);
    for (int i = 0; i < 5; i++) {
        char *text = big_item(CATALOG_PAGE_BYTES / 2 - 100, 'x');
        buf_str(&items, str_of(i == 0 ? "[" : ","));
        bay_str inner = str_from(str_of(text), 1);
        inner.len--;
        buf_str(&items, (bay_str){inner.at, 12});
        buf_char(&items, (char)('0' + i));
        buf_str(&items, str_from(inner, 12));
        mem_free(text);
    }
    buf_str(&items, (bay_str){"]\0", 2});
    assert_int_equal(items.err, BAY_OK);
    add(&self, "a", LISTING_TOOLS, items.at);
    buf_fini(&items);
    add(&self, "b", LISTING_TOOLS, "[]");
    char *huge = big_item(2 * (size_t)CATALOG_PAGE_BYTES, 'y');
    add(&self, "c", LISTING_TOOLS, huge);
    mem_free(huge);
    build(&self, LISTING_TOOLS, &dotted);
    size_t pages;
    assert_int_equal(walk(&self.view, 1000, &pages), 6);
    assert_int_equal(pages, 4); /* two, two, one, and one that is larger than a page */
    clear(&self);
}

#ifdef BAY_NO_TLS
SKIPPED(sealed_cursors_are_good_for_one_only, "this build has no TLS, so nothing seals cursors")
#else
static void sealed_cursors_are_good_for_one_only(void **state)
{
    (void)state;
    seal_ring *ring = NULL;
    assert_int_equal(seal_ring_new(&ring), BAY_OK);
    assert_int_equal(seal_ring_generate(ring), BAY_OK);
    stage self = {0}, prompts = {0};
    buf out;
    buf_init(&out, 1 << 16);
    add(&self, "a", LISTING_TOOLS, THREE);
    build(&self, LISTING_TOOLS, &dotted);
    add(&prompts, "a", LISTING_PROMPTS, THREE);
    build(&prompts, LISTING_PROMPTS, &dotted);
    catalog_cursors ann = {ring, STR("ann")};
    catalog_cursors bob = {ring, STR("bob")};
    assert_int_equal(page_of(&self.view, &ann, NULL, 1, &out), BAY_OK);
    char *cursor = next_of(&out);
    buf_clear(&out);
    assert_int_equal(page_of(&self.view, &bob, cursor, 1, &out), BAY_ERR_INVALID);
    assert_int_equal(page_of(&prompts.view, &ann, cursor, 1, &out), BAY_ERR_INVALID);
    assert_int_equal(page_into(&self.view, cursor, 1, &out), BAY_ERR_INVALID);
    assert_int_equal(page_of(&self.view, &ann, "\"MTox\"", 1, &out), BAY_ERR_INVALID); /* 1:1 */
    cursor[strlen(cursor) / 2] ^= 1;
    assert_int_equal(page_of(&self.view, &ann, cursor, 1, &out), BAY_ERR_INVALID);
    cursor[strlen(cursor) / 2] ^= 1;
    assert_int_equal(page_of(&self.view, &ann, cursor, 1, &out), BAY_OK);
    assert_true(str_starts(buf_view(&out), STR("\"tools\":[{\"name\":\"a.2\"}],")));
    mem_free(cursor);
    buf_fini(&out);
    clear(&self);
    clear(&prompts);
    seal_ring_free(ring);
}
#endif

static void a_refresh_leaves_the_segments_of_others(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, THREE);
    add(&self, "b", LISTING_TOOLS, THREE);
    build(&self, LISTING_TOOLS, &dotted);
    const catalog_entry *b1 = catalog_view_find(&self.view, STR("b.1"));
    const catalog_entry *a1 = catalog_view_find(&self.view, STR("a.1"));
    refresh(&self, 0, "[{\"name\":\"1\",\"n\":2}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("b.1")), b1);
    assert_ptr_not_equal(catalog_view_find(&self.view, STR("a.1")), a1);
    assert_null(catalog_view_find(&self.view, STR("a.2")));
    clear(&self);
}

static void a_reload_leaves_what_did_not_change(void **state)
{
    (void)state;
    catalog_servers next;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, THREE);
    add(&self, "b", LISTING_TOOLS, THREE);
    listing *lists[] = {listing_ref(self.sources[0].listings[LISTING_TOOLS]),
                        listing_ref(self.sources[1].listings[LISTING_TOOLS])};
    build(&self, LISTING_TOOLS, &dotted);
    const catalog_entry *a1 = catalog_view_find(&self.view, STR("a.1"));
    const catalog_entry *b1 = catalog_view_find(&self.view, STR("b.1"));
    static const config_pair rename = {STR_INIT("1"), STR_INIT("one")};
    self.servers[0]->server.rename = (config_map){&rename, 1};
    self.sources[0].listings[LISTING_TOOLS] = lists[0];
    self.sources[1].listings[LISTING_TOOLS] = lists[1];
    assert_int_equal(catalog_servers_init(&next, self.sources, 2), BAY_OK);
    assert_int_equal(catalog_view_reset(&self.view, &next, &dotted, 0), BAY_OK);
    assert_ptr_equal(catalog_view_find(&self.view, STR("b.1")), b1);
    assert_null(catalog_view_find(&self.view, STR("a.1")));
    assert_non_null(catalog_view_find(&self.view, STR("a.one")));
    assert_ptr_not_equal(catalog_view_find(&self.view, STR("a.one")), a1);
    let_go(&self);
    clear(&self);
    catalog_servers_fini(&next);
}

static void what_the_first_gives_up_the_second_shows(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_RESOURCES, "[" R("x") "}]");
    add(&self, "b", LISTING_RESOURCES, "[" R("x") ",\"n\":2}," R("y") "}]");
    build(&self, LISTING_RESOURCES, &dotted);
    assert_int_equal(self.view.hidden, 1);
    refresh(&self, 0, "[]");
    assert_page(&self.view, "\"resources\":[" R("x") ",\"n\":2}," R("y") "}]");
    assert_int_equal(self.view.hidden, 0);
    refresh(&self, 0, "[" R("y") ",\"n\":1}," R("x") ",\"n\":1}]");
    assert_page(&self.view, "\"resources\":[" R("y") ",\"n\":1}," R("x") ",\"n\":1}]");
    assert_int_equal(self.view.hidden, 2);
    refresh(&self, 0, NULL);
    assert_page(&self.view, "\"resources\":[" R("x") ",\"n\":2}," R("y") "}]");
    clear(&self);
}

static void a_bare_name_becomes_full_and_bare_again(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"x\"}]");
    add(&self, "b", LISTING_TOOLS, "[]");
    build(&self, LISTING_TOOLS, &bare);
    assert_page(&self.view, "\"tools\":[{\"name\":\"x\"}]");
    assert_non_null(catalog_view_find(&self.view, STR("a.x"))); /* also by its full name */
    refresh(&self, 1, "[{\"name\":\"x\"}]");
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.x\"},{\"name\":\"b.x\"}]");
    assert_null(catalog_view_find(&self.view, STR("x")));
    refresh(&self, 0, NULL);
    assert_page(&self.view, "\"tools\":[{\"name\":\"x\"}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("x"))->upstream, &self.servers[1]->base);
    clear(&self);
}

static void names_that_meet_across_servers(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"b.c\",\"n\":1}]");
    add(&self, "a.b", LISTING_TOOLS, "[{\"name\":\"c\",\"n\":2}]");
    build(&self, LISTING_TOOLS, &dotted);
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.b.c\",\"n\":1}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("a.b.c"))->upstream, &self.servers[0]->base);
    refresh(&self, 0, "[]");
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.b.c\",\"n\":2}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("a.b.c"))->upstream, &self.servers[1]->base);
    clear(&self);
}

/* ---- an incremental view is the view built from scratch ----------------------------------------
 */

static uint32_t dice_state;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (dice_state >> 8) % sides;
}

static void random_items(buf *out)
{
    static const char *const names[] = {"x", "y", "b.x", "c.y", "b", "c.b.x", "z", "a.x"};
    buf_clear(out);
    buf_char(out, '[');
    uint32_t count = dice(6);
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s{\"uri\":\"%s\",\"name\":\"%s\",\"n\":%u}", i > 0 ? "," : "",
                   names[dice(8)], names[dice(8)], dice(3));
    }
    buf_str(out, (bay_str){"]\0", 2});
}

static void assert_same_view(stage *self, const catalog_options *options)
{
    catalog_view fresh;
    buf is;
    buf wanted;
    buf_init(&is, 1 << 20);
    buf_init(&wanted, 1 << 20);
    catalog_view_init(&fresh, self->view.kind);
    assert_int_equal(catalog_view_reset(&fresh, &self->registered, options, 0), BAY_OK);
    assert_int_equal(page_into(&fresh, NULL, 0, &wanted), BAY_OK);
    assert_int_equal(page_into(&self->view, NULL, 0, &is), BAY_OK);
    buf_char(&wanted, '\0');
    assert_text(buf_view(&is), wanted.at);
    assert_int_equal(catalog_view_id(&self->view), catalog_view_id(&fresh));
    assert_int_equal(self->view.hidden, fresh.hidden);
    assert_int_equal(self->view.candidates, fresh.candidates);
    assert_int_equal(self->view.bytes, fresh.bytes);
    assert_int_equal(self->view.by_full.len, fresh.by_full.len);
    assert_int_equal(self->view.by_bare.len, fresh.by_bare.len);
    for (size_t i = 0; i < catalog_view_count(&fresh); i++) {
        const catalog_entry *entry = catalog_view_at(&fresh, i);
        const catalog_entry *found = catalog_view_find(&self->view, entry->shown);
        assert_non_null(found);
        assert_ptr_equal(found->upstream, entry->upstream);
        assert_ptr_equal(found->item, entry->item);
    }
    catalog_view_fini(&fresh);
    buf_fini(&is);
    buf_fini(&wanted);
}

/* What a reload does: another registered of the same servers, some under other rules. */
static void reset_to(stage *self, catalog_servers *next, const catalog_options *options)
{
    static const bay_str globs[] = {STR_INIT("x"), STR_INIT("?.x"), STR_INIT("*y")};
    static const config_pair renames[] = {{STR_INIT("x"), STR_INIT("y")},
                                          {STR_INIT("b"), STR_INIT("b.x")}};
    for (size_t i = 0; i < self->count; i++) {
        config_server *server = &self->servers[i]->server;
        if (dice(3) == 0) {
            server->expose.hide = (config_list){globs, dice(4)};
            server->rename = (config_map){renames, dice(3)};
        }
    }
    assert_int_equal(catalog_servers_init(next, self->registered.sources, self->count), BAY_OK);
    assert_int_equal(catalog_view_reset(&self->view, next, options, 0), BAY_OK);
    catalog_servers_fini(&self->registered);
    self->registered = *next; /* for whoever looks; the view reads the other */
}

static void random_changes_end_where_a_build_from_scratch_does(void **state)
{
    (void)state;
    static const struct {
        const catalog_options *options;
        listing_kind kind;
    } cases[] = {{&dotted, LISTING_TOOLS},
                 {&bare, LISTING_TOOLS},
                 {&plain, LISTING_PROMPTS},
                 {&bare, LISTING_PROMPTS},
                 {&dotted, LISTING_RESOURCES}};
    static const char *const names[] = {"a", "b", "c", "c.b"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        stage self = {0};
        listing *held[4] = {0};
        catalog_servers rosters[2] = {0};
        int live = 0;
        buf items;
        buf_init(&items, 1 << 16);
        dice_state = (uint32_t)i + 1;
        for (size_t k = 0; k < 4; k++) {
            add(&self, names[k], cases[i].kind, NULL);
        }
        build(&self, cases[i].kind, cases[i].options);
        for (int round = 0; round < 400; round++) {
            uint32_t which = dice(4);
            listing *made = NULL;
            if (dice(8) > 0) {
                random_items(&items);
                made = listing_of(self.servers[which], cases[i].kind, items.at);
            }
            self.registered.sources[which].listings[cases[i].kind] = made;
            if (dice(3) == 0) {
                live ^= 1;
                reset_to(&self, &rosters[live], cases[i].options);
            } else {
                assert_int_equal(catalog_view_refresh(&self.view, which, 0), BAY_OK);
            }
            listing_unref(held[which]);
            held[which] = made;
            assert_same_view(&self, cases[i].options);
        }
        for (size_t k = 0; k < 4; k++) {
            listing_unref(held[k]);
        }
        buf_fini(&items);
        clear(&self);
    }
}

static void without_memory_the_view_stays_as_it_was(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"x\"},{\"name\":\"y\"}]");
    add(&self, "b", LISTING_TOOLS, "[{\"name\":\"x\"},{\"name\":\"z\"}]");
    build(&self, LISTING_TOOLS, &bare);
    static const char *before =
        "\"tools\":[{\"name\":\"a.x\"},{\"name\":\"y\"},{\"name\":\"b.x\"},{\"name\":\"z\"}]";
    listing *made =
        listing_of(self.servers[0], LISTING_TOOLS,
                   "[{\"name\":\"z\"},{\"name\":\"p\"},{\"name\":\"q\"},{\"name\":\"r\"}]");
    self.registered.sources[0].listings[LISTING_TOOLS] = made;
    bay_err err = BAY_ERR_NOMEM;
    for (size_t at = 0; err != BAY_OK; at++) {
        (void)failing_memory_start(at);
        err = catalog_view_refresh(&self.view, 0, 0);
        failing_memory_stop();
        assert_true(at < 1000);
        if (err != BAY_OK) {
            assert_int_equal(err, BAY_ERR_NOMEM);
            assert_page(&self.view, before);
            assert_int_equal(self.view.by_full.len, 4);
            assert_int_equal(self.view.by_bare.len, 3);
        }
    }
    assert_page(&self.view, "\"tools\":[{\"name\":\"a.z\"},{\"name\":\"p\"},{\"name\":\"q\"},"
                            "{\"name\":\"r\"},{\"name\":\"x\"},{\"name\":\"b.z\"}]");
    listing_unref(made);
    clear(&self);
}

static void a_hundred_thousand_tools(void **state)
{
    (void)state;
    stage self = {0};
    buf items;
    buf_init(&items, 64 << 20);
    for (int i = 0; i < MANY; i++) {
        buf_printf(&items, "%c{\"name\":\"tool_%d\",\"inputSchema\":{\"type\":\"object\"}}",
                   i == 0 ? '[' : ',', i);
    }
    buf_char(&items, ']');
    buf_char(&items, '\0');
    assert_int_equal(items.err, BAY_OK);
    add(&self, "a", LISTING_TOOLS, items.at);
    build(&self, LISTING_TOOLS, &bare);
    buf_fini(&items);
    assert_int_equal(catalog_view_count(&self.view), MANY);
    assert_non_null(catalog_view_find(&self.view, STR("tool_99999")));
    assert_null(catalog_view_find(&self.view, STR("tool_100000")));
    size_t pages;
    assert_int_equal(walk(&self.view, 1000, &pages), MANY);
    assert_int_equal(pages, MANY / 1000);
    clear(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_cursors_are_refused),
        cmocka_unit_test(a_cursor_beyond_the_end_finds_nothing_more),
        cmocka_unit_test(an_empty_catalog_has_one_empty_page),
        cmocka_unit_test(lists_are_merged_in_the_order_of_the_servers),
        cmocka_unit_test(other_separators_and_none),
        cmocka_unit_test(only_the_name_changes_byte_for_byte),
        cmocka_unit_test(an_endpoint_of_one_server_shows_the_very_bytes),
        cmocka_unit_test(bare_names_where_only_one_server_has_them),
        cmocka_unit_test(a_bare_name_never_hides_a_full_one),
        cmocka_unit_test(what_is_offered_twice_is_shown_once),
        cmocka_unit_test(one_view_of_many_says_so),
        cmocka_unit_test(templates_find_their_server),
        cmocka_unit_test(pages_are_slices_of_the_whole),
        cmocka_unit_test(who_pages_sees_one_list),
        cmocka_unit_test(the_list_that_is_gone_goes_on_in_the_newer_one),
        cmocka_unit_test(so_many_older_lists_are_kept_and_no_more),
        cmocka_unit_test(a_list_of_one_page_is_not_kept),
        cmocka_unit_test(older_lists_are_bounded_in_bytes),
        cmocka_unit_test(a_page_of_large_items_ends_early),
        cmocka_unit_test(sealed_cursors_are_good_for_one_only),
        cmocka_unit_test(a_refresh_leaves_the_segments_of_others),
        cmocka_unit_test(a_reload_leaves_what_did_not_change),
        cmocka_unit_test(what_the_first_gives_up_the_second_shows),
        cmocka_unit_test(a_bare_name_becomes_full_and_bare_again),
        cmocka_unit_test(names_that_meet_across_servers),
        cmocka_unit_test(random_changes_end_where_a_build_from_scratch_does),
        cmocka_unit_test(without_memory_the_view_stays_as_it_was),
        cmocka_unit_test(a_hundred_thousand_tools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
