/* The catalog: what several servers offer, merged, renamed, found again and paged. */
#include "gateway_testing.h"

#include "gateway/catalog.h"

enum { MANY = 100000 };

typedef struct stage {
    fake *servers[4];
    catalog_source sources[4];
    size_t count;
    catalog_view view;
} stage;

static const catalog_options dotted = {.separator = STR_INIT(".")};
static const catalog_options plain = {.separator = {NULL, 0}};
static const catalog_options bare = {.separator = STR_INIT("."), .bare_names = true};

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

static void build(stage *self, listing_kind kind, const catalog_options *options)
{
    assert_int_equal(catalog_view_build(&self->view, kind, self->sources, self->count, options, 7),
                     BAY_OK);
    /* the view holds what it shows by itself */
    for (size_t i = 0; i < self->count; i++) {
        listing_unref(self->sources[i].listings[kind]);
        self->sources[i].listings[kind] = NULL;
    }
}

static void clear(stage *self)
{
    catalog_view_fini(&self->view);
    for (size_t i = 0; i < self->count; i++) {
        fake_free(self->servers[i]);
    }
    *self = (stage){0};
}

static bay_err page_into(const catalog_view *view, const char *cursor, uint32_t size, buf *out)
{
    arena memory;
    json_doc doc;
    json_val value = JSON_NONE;
    arena_init(&memory, 1 << 20);
    if (cursor != NULL) {
        assert_int_equal(json_parse(&doc, str_of(cursor), NULL, &memory, NULL), BAY_OK);
        value = json_root(&doc);
    }
    bay_err err = catalog_view_page(view, value, size, out);
    arena_fini(&memory);
    return err;
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
        if (page_into(&self.view, bad[i], 10, &out) != BAY_INVALID) {
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
        self.view.kind = kind;
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
        " \"inputSchema\":{\"maximum\":12345678901234567890123,\"multipleOf\":0.1000,"
        "\"const\":-0,\"default\":1E400,\"name\":\"not "
        "me\",\"a\":1,\"a\":2},\"\\u006eame2\":\"k\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    /* white space between values stays as well; only the name is written anew */
    assert_page(&self.view,
                "\"tools\":[{ \"x\" :1.0e+2, \"name\" : \"s.a\\n\\\"\xf0\x9f\x98\x80\xc3\xa9\" ,\n"
                " \"inputSchema\":{\"maximum\":12345678901234567890123,\"multipleOf\":0.1000,"
                "\"const\":-0,\"default\":1E400,\"name\":\"not me\",\"a\":1,\"a\":2},"
                "\"\\u006eame2\":\"k\"}]");
    assert_non_null(catalog_view_find(&self.view, STR("s.a\n\"\xf0\x9f\x98\x80\xc3\xa9")));
    clear(&self);
}

static void a_face_of_one_server_shows_the_very_bytes(void **state)
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
    add(&self, "a", LISTING_RESOURCES, "[{\"uri\":\"f:///x\",\"n\":1}]");
    add(&self, "b", LISTING_RESOURCES, "[{\"uri\":\"f:///x\",\"n\":2}]");
    build(&self, LISTING_RESOURCES, &dotted);
    assert_page(&self.view, "\"resources\":[{\"uri\":\"f:///x\",\"n\":1}]");
    assert_ptr_equal(catalog_view_find(&self.view, STR("f:///x"))->upstream,
                     &self.servers[0]->base);
    clear(&self);
}

static void templates_find_their_server(void **state)
{
    (void)state;
    stage self = {0};
    add(&self, "a", LISTING_TEMPLATES, "[{\"uriTemplate\":\"demo://a/{id}\"}]");
    add(&self, "b", LISTING_TEMPLATES, "[{\"uriTemplate\":\"demo://b/{id}\"}]");
    build(&self, LISTING_TEMPLATES, &dotted);
    assert_page(&self.view, "\"resourceTemplates\":[{\"uriTemplate\":\"demo://a/{id}\"},"
                            "{\"uriTemplate\":\"demo://b/{id}\"}]");
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
        assert_true(json_str_eq(first, view->entries[items].shown));
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

static void a_cursor_of_an_older_view_still_leads_on(void **state)
{
    (void)state;
    stage self = {0};
    buf out;
    buf_init(&out, 1 << 16);
    add(&self, "a", LISTING_TOOLS, "[{\"name\":\"1\"},{\"name\":\"2\"},{\"name\":\"3\"}]");
    build(&self, LISTING_TOOLS, &dotted);
    assert_int_equal(page_into(&self.view, "\"MToy\"", 1, &out), BAY_OK); /* 1:2, the serial is 7 */
    assert_text(buf_view(&out), "\"tools\":[{\"name\":\"a.3\"}]");
    buf_fini(&out);
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
    assert_int_equal(self.view.count, MANY);
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
        cmocka_unit_test(a_face_of_one_server_shows_the_very_bytes),
        cmocka_unit_test(bare_names_where_only_one_server_has_them),
        cmocka_unit_test(a_bare_name_never_hides_a_full_one),
        cmocka_unit_test(what_is_offered_twice_is_shown_once),
        cmocka_unit_test(templates_find_their_server),
        cmocka_unit_test(pages_are_slices_of_the_whole),
        cmocka_unit_test(a_cursor_of_an_older_view_still_leads_on),
        cmocka_unit_test(a_hundred_thousand_tools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
