/* Globs, and what the configuration says of single tools, prompts and resources. */
#include "support/fake_listing.h"

#include "catalog/catalog.h"
#include "catalog/filter.h"
#include "catalog/unused.h"

static void globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {
        {"", "a", false},
        {"a", "", false},
        {"?", "", false},
        {"a", "A", false},
        {"a", "ab", false},
        {"b", "ab", false},
        {"a?", "a", false},
        {"a?", "abc", false},
        {"a*b", "ac", false},
        {"a*b*c", "acb", false},
        {"*ab", "aab ", false},
        {"*a*a*a", "aa", false},
        {"[a]", "a", false},
        {"\\*", "*", false},
        {"??", "\xc3\xa9", false},
        {"", "", true},
        {"*", "", true},
        {"***", "", true},
        {"*", "anything", true},
        {"a", "a", true},
        {"?", "a", true},
        {"?", "\xc3\xa9", true},
        {"a?c",
         "a\xf0\x9f\x98\x80"
         "c",
         true},
        {"read_*", "read_", true},
        {"read_*", "read_all", true},
        {"*_all", "read_all", true},
        {"*ab", "aaab", true},
        {"a*b*c", "axbxbxc", true},
        {"*a*a*a", "banana", true},
        {"*?", "a", true},
        {"[a]", "[a]", true},
        {"file:///*/x?.md", "file:///a/b/x1.md", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (str_glob(str_of(cases[i].pattern), str_of(cases[i].text)) != cases[i].matches) {
            fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
        }
    }
}

/* With backtracking into every star this would outlive the sun. */
static void many_stars_take_no_time(void **state)
{
    (void)state;
    char pattern[201];
    char text[1001];
    for (size_t i = 0; i < 100; i++) {
        memcpy(pattern + 2 * i, "*a", 2);
    }
    memset(text, 'a', 1000);
    text[999] = 'b';
    assert_false(str_glob((bay_str){pattern, 200}, (bay_str){text, 1000}));
    assert_true(str_glob((bay_str){pattern, 200}, (bay_str){text, 999}));
    text[500] = '\0'; /* one byte like any other */
    assert_true(str_glob((bay_str){pattern, 200}, (bay_str){text, 999}));
}

static bool shows(const char *settings, listing_kind kind, const char *key)
{
    char text[512];
    (void)snprintf(text, sizeof(text), "mcpServers: {a: {command: x, %s}}", settings);
    const config *made = testing_config(text);
    bool is_shown = filter_exposes(&made->servers[0], kind, str_of(key));
    config_free(made);
    return is_shown;
}

static void what_is_exposed(void **state)
{
    (void)state;
    assert_true(shows("cwd: x", LISTING_TOOLS, "t"));
    assert_true(shows("expose: {}", LISTING_TOOLS, "t"));
    assert_false(shows("expose: {tools: []}", LISTING_TOOLS, "t"));
    assert_true(shows("expose: {tools: []}", LISTING_PROMPTS, "t"));
    assert_true(shows("expose: {tools: ['t*', u]}", LISTING_TOOLS, "tt"));
    assert_true(shows("expose: {tools: ['t*', u]}", LISTING_TOOLS, "u"));
    assert_false(shows("expose: {tools: ['t*', u]}", LISTING_TOOLS, "v"));
    assert_false(shows("expose: {tools: ['*'], hide: ['t?']}", LISTING_TOOLS, "t1"));
    assert_false(shows("expose: {hide: ['f:///secret/*']}", LISTING_RESOURCES, "f:///secret/1"));
    assert_true(shows("expose: {hide: ['f:///secret/*']}", LISTING_RESOURCES, "f:///open/1"));
    assert_false(shows("expose: {resources: ['f:*']}", LISTING_TEMPLATES, "g:{x}"));
    assert_false(shows("expose: {prompts: [p]}", LISTING_PROMPTS, "q"));
}

static void a_uri_is_hidden_in_every_spelling(void **state)
{
    (void)state;
    static const char *const secret[] = {
        "file:///desk/secret/a",          "file:///desk/%73ecret/a",
        "file:///desk/secret%2Fa",        "file:///desk/./secret/a",
        "file:///desk/x/../secret/a",     "file:///desk/x/%2e%2E/secret/a",
        "file:///desk//secret/a",         "file:///desk\\secret/a",
        "file:///../desk/secret/a",       "file://localhost/desk/secret/a",
        "FILE://LOCALHOST/desk/secret/a", "file:/desk/secret/a",
        "file:///desk/x/..//secret/a?x",  "file:///desk/x/..//secret/a#x",
    };
    static const char *const free_ones[] = {
        "file:///desk/open/a",
        "file:///desk/%2573ecret/a",
        "db://desk/secret",
        "file:///desk/secre%",
        "",
    };
    static const char *const outside[] = {
        "file:///desk/../etc/passwd",         "file:///desk/%2e%2e/etc/passwd",
        "file:///desk/x/..%2f../etc/passwd",  "file:///desk/..",
        "file:///desk/x/../../work2/../etc/", "file:///desk\\..\\..\\etc",
    };
    static const char *const inside[] = {
        "file:///desk/a",       "file:///desk/b/../a", "file:///desk/a%20b",
        "file:///desk/{+path}", "file:///desk/",
    };
    for (size_t i = 0; i < ARRAY_LEN(secret); i++) {
        if (shows("expose: {hide: ['file:///desk/secret*']}", LISTING_RESOURCES, secret[i]) ||
            shows("expose: {hide: ['file:///desk/%73ecret*']}", LISTING_RESOURCES, secret[i])) {
            fail_msg("%s", secret[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(free_ones); i++) {
        assert_true(
            shows("expose: {hide: ['file:///desk/secret*']}", LISTING_RESOURCES, free_ones[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
        if (shows("expose: {resources: ['file:///desk/*']}", LISTING_RESOURCES, outside[i])) {
            fail_msg("%s", outside[i]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        assert_true(shows("expose: {resources: ['file:///desk/*']}", LISTING_RESOURCES, inside[i]));
        assert_true(
            shows("expose: {resources: ['FILE:/desk/*']}", LISTING_RESOURCES, "FILE:/desk/a"));
    }
    assert_true(shows("expose: {resources: ['x://A/b?c=*']}", LISTING_RESOURCES, "x://A/b?c=%64"));
    assert_false(shows("expose: {hide: ['x://A*']}", LISTING_RESOURCES, "x://%41/b"));
    assert_false(shows("expose: {hide: ['x://A/b?c=d']}", LISTING_RESOURCES, "x://A/b?c=%64"));
    char large[70 * 1024];
    memset(large, 'a', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_false(shows("expose: {hide: [b]}", LISTING_RESOURCES, large));
    assert_true(shows("expose: {hide: [b]}", LISTING_PROMPTS, large));
}

static void keys_of_desktop_hosts_restrict_tools(void **state)
{
    (void)state;
    static const char *const excludes[] = {"disabledTools", "disabled_tools", "excludeTools"};
    static const char *const includes[] = {"includeTools", "tools"};
    char text[256];
    for (size_t i = 0; i < ARRAY_LEN(excludes); i++) {
        (void)snprintf(text, sizeof(text), "%s: [t, u]", excludes[i]);
        assert_false(shows(text, LISTING_TOOLS, "t"));
        assert_true(shows(text, LISTING_TOOLS, "v"));
        assert_true(shows(text, LISTING_PROMPTS, "t"));
    }
    for (size_t i = 0; i < ARRAY_LEN(includes); i++) {
        (void)snprintf(text, sizeof(text), "%s: [t, 'u*']", includes[i]);
        assert_true(shows(text, LISTING_TOOLS, "t"));
        assert_false(shows(text, LISTING_TOOLS, "v"));
        assert_true(shows(text, LISTING_PROMPTS, "v"));
        (void)snprintf(text, sizeof(text), "%s: [t, u], disabledTools: [u]", includes[i]);
        assert_false(shows(text, LISTING_TOOLS, "u"));
    }
    assert_false(shows("includeTools: [t], expose: {tools: [u]}", LISTING_TOOLS, "t"));
    assert_true(shows("includeTools: [], disabledTools: []", LISTING_PROMPTS, "p"));
    assert_false(shows("includeTools: []", LISTING_TOOLS, "t"));
    assert_true(shows("tools: {t: false}", LISTING_TOOLS, "t")); /* no list of names: a warning */
}

static void names_there_and_back(void **state)
{
    (void)state;
    bay_str own;
    const config *made = testing_config(
        "mcpServers: {a: {command: x, rename: {old: new, swap: other}, describe: {old: words}}}");
    const config_server *server = &made->servers[0];
    assert_text(filter_rename(server, LISTING_TOOLS, STR("old")), "new");
    assert_text(filter_rename(server, LISTING_PROMPTS, STR("old")), "new");
    assert_text(filter_rename(server, LISTING_RESOURCES, STR("old")), "old");
    assert_text(filter_rename(server, LISTING_TOOLS, STR("new")), "new");
    assert_true(filter_own_name(server, LISTING_TOOLS, STR("new"), &own));
    assert_text(own, "old");
    assert_false(filter_own_name(server, LISTING_TOOLS, STR("old"), &own));
    assert_true(filter_own_name(server, LISTING_RESOURCES, STR("old"), &own));
    assert_true(filter_own_name(server, LISTING_TOOLS, STR("third"), &own));
    assert_text(own, "third");
    assert_text(filter_description(server, LISTING_TOOLS, STR("old")), "words");
    assert_null(filter_description(server, LISTING_TOOLS, STR("new")).at);
    assert_null(filter_description(server, LISTING_TEMPLATES, STR("old")).at);
    config_free(made);
}

static void what_a_profile_admits(void **state)
{
    (void)state;
    const config *made = testing_config(
        "mcpServers: {a: {command: x}, b: {command: x}}\n"
        "profiles: {p: {servers: [a], tools: ['a.r*'], hide: ['a.raw', 'f:///x*']}, q: {}}");
    const config_profile *p = config_profile_find(made, STR("p"));
    const config_profile *q = config_profile_find(made, STR("q"));
    assert_null(config_profile_find(made, STR("r")));
    assert_true(filter_admits(NULL, LISTING_TOOLS, STR("anything")));
    assert_true(filter_has_server(NULL, STR("b")));
    assert_true(filter_admits(q, LISTING_TOOLS, STR("b.any")));
    assert_true(filter_has_server(q, STR("b")));
    assert_true(filter_admits(p, LISTING_TOOLS, STR("a.read")));
    assert_false(filter_admits(p, LISTING_TOOLS, STR("a.raw")));
    assert_false(filter_admits(p, LISTING_TOOLS, STR("a.write")));
    assert_true(filter_admits(p, LISTING_PROMPTS, STR("a.write")));
    assert_false(filter_admits(p, LISTING_RESOURCES, STR("f:///xy")));
    assert_true(filter_has_server(p, STR("a")));
    assert_false(filter_has_server(p, STR("b")));
    config_free(made);
}

static void entries_that_match_nothing_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        const char *said;
    } cases[] = {
        {"expose: {tools: [git_lgo]}", "expose.tools \"git_lgo\""},
        {"expose: {tools: ['git_?'], prompts: [git_log], resources: ['x:*']}",
         "expose.tools \"git_?\", expose.resources \"x:*\", expose.prompts \"git_log\""},
        {"expose: {hide: [note, 'file:///b*']}", "expose.hide \"file:///b*\""},
        {"includeTools: [git_lgo], excludeTools: [log]",
         "includeTools \"git_lgo\", excludeTools \"log\""},
        {"rename: {'git_*': log}, describe: {git_lgo: d}",
         "rename \"git_*\", describe \"git_lgo\""},
        {"expose: {hide: [a, b, c, d, e, f, g]}",
         "expose.hide \"a\", expose.hide \"b\", expose.hide \"c\", expose.hide \"d\", "
         "expose.hide \"e\" and 2 more"},
        {"expose: {hide: [\"\\e[2J\"]}", "expose.hide \"\\u{1b}[2J\""},
        {"expose: {tools: ['git_*'], resources: ['file:///A*'], prompts: [note], hide: [note]}",
         ""},
        {"rename: {git_log: log, note: n}, describe: {note: d}, includeTools: ['*']", ""},
        {"expose: {tools: []}", ""},
        {"share: auto", ""},
    };
    fake *server = fake_new("a", false);
    listing *offered[LISTING_KINDS] = {
        [LISTING_TOOLS] = listing_of(server, LISTING_TOOLS, "[{\"name\":\"git_log\"}]"),
        [LISTING_PROMPTS] = listing_of(server, LISTING_PROMPTS, "[{\"name\":\"note\"}]"),
        [LISTING_RESOURCES] =
            listing_of(server, LISTING_RESOURCES, "[{\"uri\":\"file:///%41b\",\"name\":\"x\"}]"),
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[512];
        buf said;
        buf_init(&said, 4096);
        (void)snprintf(text, sizeof(text), "mcpServers: {a: {command: x, %s}}", cases[i].settings);
        const config *made = testing_config(text);
        size_t count = unused_find(made, &made->servers[0], offered, &said);
        assert_text(buf_view(&said), cases[i].said);
        assert_true((count > 0) == (cases[i].said[0] != '\0'));
        buf_fini(&said);
        config_free(made);
    }
    static const struct {
        const char *settings;
        const char *said;
    } rules[] = {
        {"policy: {default: deny, rules: [{allow: [a.git_log, a.git_lgo]}, {deny: 'tool:a.x*'}]}",
         "policy.rules.1.allow \"a.git_lgo\", policy.rules.2.deny \"tool:a.x*\""},
        {"policy: {default: allow, rules: [{deny: 'prompt:a.git_log'}, {deny: 'a.note'}]}",
         "policy.rules.1.deny \"prompt:a.git_log\", policy.rules.2.deny \"a.note\""},
        {"policy: {default: deny, rules: [{allow: ['a.git_*', 'prompt:a.n*', '*.drop_*', "
         "'a*.y']}]}",
         ""},
        {"profiles: {p: {tools: [a.git_lgo, 'a.*'], hide: [a.note, a.log]}}",
         "profiles.p.tools \"a.git_lgo\", profiles.p.hide \"a.log\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        char text[512];
        buf said;
        buf_init(&said, 4096);
        (void)snprintf(text, sizeof(text), "mcpServers: {a: {command: x}}\n%s", rules[i].settings);
        const config *made = testing_config(text);
        (void)unused_find(made, &made->servers[0], offered, &said);
        assert_text(buf_view(&said), rules[i].said);
        buf_fini(&said);
        config_free(made);
    }
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_unref(offered[kind]);
    }
    fake_free(server);
}

/* ---- in the catalog ----------------------------------------------------------------------------
 */

static void assert_shown(const char *settings, listing_kind kind, const char *items,
                         const char *profile, const char *wanted)
{
    const config *made = testing_config(settings);
    fake *server = fake_new("a", false);
    upstream_set_config(&server->base, made, &made->servers[0]);
    catalog_source source = {.upstream = &server->base};
    source.listings[kind] = listing_of(server, kind, items);
    catalog_servers registered;
    catalog_view view;
    buf out;
    buf_init(&out, 1 << 20);
    catalog_view_init(&view, kind);
    assert_int_equal(catalog_servers_init(&registered, &source, 1), BAY_OK);
    catalog_options options = {.separator = STR("."),
                               .profile = config_profile_find(made, str_of(profile))};
    assert_int_equal(catalog_view_reset(&view, &registered, &options, 0), BAY_OK);
    config_free(made); /* what it gave was copied */
    catalog_cursors cursors = {NULL, {NULL, 0}};
    assert_int_equal(
        catalog_view_page(&view, &cursors, JSON_NONE, 0, false, (catalog_sight){0}, &out), BAY_OK);
    assert_text(buf_view(&out), wanted);
    buf_fini(&out);
    catalog_view_fini(&view);
    catalog_servers_fini(&registered);
    listing_unref(source.listings[kind]);
    fake_free(server);
}

#define ITEMS                                                                                      \
    "[{\"name\":\"x\"},{ \"description\" : \"D\\u0020\" , \"name\":\"y\",\"n\":1.0 },"             \
    "{\"name\":\"z\",\"inputSchema\":{\"type\":\"object\",\"description\":\"not "                  \
    "me\"},\"description\":\"\"}]"

static void names_and_descriptions_are_replaced_in_place(void **state)
{
    (void)state;
    assert_shown(
        "mcpServers: {a: {command: x, rename: {x: 'new \"x\"'}, describe: {x: one, y: "
        "'two \"2\"', z: three}}}",
        LISTING_TOOLS, ITEMS, "",
        "\"tools\":[{\"name\":\"a.new \\\"x\\\"\",\"description\":\"one\"},"
        "{ \"description\" : \"two \\\"2\\\"\" , \"name\":\"a.y\",\"n\":1.0 },"
        "{\"name\":\"a.z\",\"inputSchema\":{\"type\":\"object\",\"description\":\"not me\"},"
        "\"description\":\"three\"}]");
}

static void renames_that_collide(void **state)
{
    (void)state;
    assert_shown("mcpServers: {a: {command: x, rename: {y: x, z: y}}}", LISTING_TOOLS,
                 "[{\"name\":\"y\"},{\"name\":\"x\"},{\"name\":\"z\"}]", "",
                 "\"tools\":[{\"name\":\"a.x\"},{\"name\":\"a.y\"}]");
}

static void profiles_choose_by_the_name_shown(void **state)
{
    (void)state;
    assert_shown("mcpServers: {a: {command: x, rename: {x: read}, expose: {hide: [y]}}}\n"
                 "profiles: {p: {tools: [a.read, a.y]}}",
                 LISTING_TOOLS, "[{\"name\":\"x\"},{\"name\":\"y\"},{\"name\":\"z\"}]", "p",
                 "\"tools\":[{\"name\":\"a.read\"}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs),
        cmocka_unit_test(many_stars_take_no_time),
        cmocka_unit_test(what_is_exposed),
        cmocka_unit_test(a_uri_is_hidden_in_every_spelling),
        cmocka_unit_test(keys_of_desktop_hosts_restrict_tools),
        cmocka_unit_test(names_there_and_back),
        cmocka_unit_test(what_a_profile_admits),
        cmocka_unit_test(entries_that_match_nothing_are_found),
        cmocka_unit_test(names_and_descriptions_are_replaced_in_place),
        cmocka_unit_test(renames_that_collide),
        cmocka_unit_test(profiles_choose_by_the_name_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
