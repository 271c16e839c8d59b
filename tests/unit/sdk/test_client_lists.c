/* Lists: pages, caches, tools that break the rules, arguments that travel in header fields; and
 * subscriptions. */
#include "unit/sdk/client_peer.h"

#include "base/str.h"
#include "sdk/client_parts.h"

static bay_client *connect_to(peer *self, void (*set)(bay_client_options *options))
{
    bay_client *client = NULL;
    bay_diag diag = {0};
    bay_client_options *options = bay_client_options_new();
    bay_client_options_reconnect(options, 3, 20);
    bay_client_options_timeout(options, 20000, 0);
    if (set != NULL) {
        set(options);
    }
    if (bay_client_connect(self->url, options, &client, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    bay_client_options_free(options);
    return client;
}

static bay_list *list_of(bay_client *client, bay_kind kind)
{
    bay_list *made = NULL;
    bay_diag diag = {0};
    if (bay_client_list(client, kind, &made, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    return made;
}

static void assert_str(bay_str got, const char *expected)
{
    if (!str_eq(got, str_of(expected))) {
        fail_msg("\"%.*s\" is not \"%s\"", BAY_STR(got), expected);
    }
}

/* ---- lists that are none ----------------------------------------------------------------------
 */

enum { REPEATS, NO_STRING, NO_LIST, REFUSED, GOOD_AGAIN };

static void broken_pages(peer *self, const peer_message *message)
{
    if (peer_modern(self, message)) {
        return;
    }
    switch (peer_number(self)) {
    case REPEATS:
        peer_result(self, message, "", "{\"tools\":[],\"nextCursor\":\"a\"}");
        return;
    case NO_STRING:
        peer_result(self, message, "", "{\"tools\":[],\"nextCursor\":7}");
        return;
    case NO_LIST:
        peer_result(self, message, "", "{\"tools\":{\"a\":1}}");
        return;
    case REFUSED:
        peer_error(self, message, "200 OK", -32603, "no list today");
        return;
    default:
        peer_result(self, message, "", "{\"tools\":[{\"name\":\"a\"}]}");
        return;
    }
}

static void a_list_that_is_none_is_an_error(void **state)
{
    static const struct {
        int number;
        bay_err err;
        const char *text;
    } cases[] = {
        {REPEATS, BAY_ERR_PROTOCOL, "would never end"},
        {NO_STRING, BAY_ERR_PROTOCOL, "nextCursor"},
        {NO_LIST, BAY_ERR_PROTOCOL, "no such list"},
        {REFUSED, BAY_ERR_REMOTE, "no list today"},
    };
    peer server;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, broken_pages, NULL, 0);
    bay_client *client = connect_to(&server, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bay_list *made = NULL;
        peer_set_number(&server, cases[i].number);
        assert_int_equal(bay_client_list(client, BAY_KIND_TOOLS, &made, &diag), cases[i].err);
        assert_null(made);
        if (strstr(diag.text, cases[i].text) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", diag.text, cases[i].text);
        }
    }
    bay_list *made = NULL;
    assert_int_equal(bay_client_list(client, (bay_kind)3, &made, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_list(NULL, BAY_KIND_TOOLS, &made, &diag), BAY_ERR_INVALID);
    peer_set_number(&server, GOOD_AGAIN);
    made = list_of(client, BAY_KIND_TOOLS);
    assert_int_equal(bay_list_count(made), 1);
    bay_list_free(made);
    bay_client_close(client);
    peer_stop(&server);
}

static void nothing_is_read_from_no_list(void **state)
{
    (void)state;
    assert_int_equal(bay_list_count(NULL), 0);
    assert_str(bay_list_name(NULL, 0), "");
    assert_int_equal(bay_list_find(NULL, "a"), 0);
    assert_int_equal(bay_list_rejected_count(NULL), 0);
    assert_str(bay_list_rejected(NULL, 0), "");
    bay_list_free(NULL);
}

/* ---- lists ------------------------------------------------------------------------------------
 */

static void pages(peer *self, const peer_message *message)
{
    bool is_second = strstr(message->body, "\"cursor\":\"two\\\"\"") != NULL;
    if (peer_modern(self, message)) {
        return;
    }
    if (peer_is(message, "tools/list")) {
        peer_result(
            self, message, "",
            is_second
                ? "{\"tools\":[{\"name\":\"c\",\"_meta\":{\"ui\":{\"resourceUri\":\"ui://c\"}}},"
                  "7,{\"description\":\"nameless\"}]}"
                : "{\"tools\":[{\"name\":\"b\",\"title\":\"B\\n\",\"description\":\"D\",\"x\" : "
                  "1.0},"
                  "{\"name\":\"a\",\"annotations\":{\"title\":\"A\"}}],\"nextCursor\":"
                  "\"two\\\"\"}");
    } else if (peer_is(message, "prompts/list")) {
        peer_result(self, message, "",
                    "{\"prompts\":[{\"icons\":[{\"src\":\"javascript:1\"},{\"src\" : "
                    "\"https:\\/\\/x\"}],\"name\":\"p\"}]}");
    } else if (peer_is(message, "resources/list")) {
        peer_result(self, message, "", "{\"resources\":[{\"uri\":\"x:a\",\"name\":\"r\"}]}");
    } else if (peer_is(message, "resources/templates/list")) {
        peer_result(self, message, "",
                    "{\"resourceTemplates\":[{\"uriTemplate\":\"x:{a}\",\"name\":\"t\"}]}");
    } else {
        peer_result(self, message, "",
                    "{\"skills\":[{\"uri\":\"skill://s/SKILL.md\",\"frontmatter\":{\"name\":\"s\","
                    "\"description\":\"S\"},\"resources\":[]}]}");
    }
}

static void all_pages_are_one_list(void **state)
{
    peer server;
    (void)state;
    peer_start(&server, pages, NULL, 0);
    bay_client *client = connect_to(&server, NULL);
    bay_list *made = list_of(client, BAY_KIND_TOOLS);
    assert_int_equal(bay_list_count(made), 3);
    assert_str(bay_list_name(made, 0), "b");
    assert_str(bay_list_title(made, 0), "B\n");
    assert_str(bay_list_description(made, 0), "D");
    assert_str(bay_list_json(made, 0),
               "{\"name\":\"b\",\"title\":\"B\\n\",\"description\":\"D\",\"x\" : 1.0}");
    assert_str(bay_list_title(made, 1), "A");
    assert_str(bay_list_ui(made, 2), "ui://c");
    assert_str(bay_list_name(made, 3), "");
    assert_int_equal(bay_list_find(made, "c"), 2);
    assert_int_equal(bay_list_find(made, "d"), 3);
    assert_int_equal(bay_list_rejected_count(made), 2);
    bay_list_free(made);
    /* without ttlMs it is asked for each time */
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    assert_int_equal(peer_count(&server, "POST tools/list"), 4);
    made = list_of(client, BAY_KIND_PROMPTS);
    assert_str(bay_list_title(made, 0), "p");
    assert_str(bay_list_json(made, 0),
               "{\"name\":\"p\",\"icons\":[{\"src\" : \"https:\\/\\/x\"}]}");
    bay_list_free(made);
    made = list_of(client, BAY_KIND_RESOURCES);
    assert_str(bay_list_uri(made, 0), "x:a");
    assert_int_equal(bay_list_find(made, "x:a"), 0);
    bay_list_free(made);
    made = list_of(client, BAY_KIND_TEMPLATES);
    assert_str(bay_list_uri(made, 0), "x:{a}");
    bay_client_close(client); /* a list outlives its client */
    assert_str(bay_list_name(made, 0), "t");
    bay_list_free(made);
    peer_stop(&server);
}

/* ---- caches -----------------------------------------------------------------------------------
 */

static void lasting(peer *self, const peer_message *message)
{
    char text[256];
    if (peer_modern(self, message)) {
        return;
    }
    snprintf(text, sizeof(text),
             "{\"tools\":[{\"name\":\"a\"}],\"ttlMs\":%d,\"cacheScope\":\"private\"}",
             peer_number(self));
    peer_result(self, message, "", text);
}

typedef struct taken {
    bay_client *client;
    int count;
    int again; /* so often it is asked for once more, inside */
    bay_err err;
    size_t entries;
} taken;

static void take(bay_client *client, bay_list *made, const bay_diag *diag, void *user)
{
    taken *self = user;
    self->count++;
    self->err = diag->code;
    assert_true((diag->code == BAY_OK) == (made != NULL));
    self->entries = bay_list_count(made);
    bay_list_free(made);
    if (self->again-- > 0) {
        assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, NULL, take, self), BAY_OK);
        assert_int_equal(bay_client_list(client, BAY_KIND_PROMPTS, &made, NULL), BAY_ERR_STATE);
    }
}

static void a_list_is_asked_for_without_waiting(void **state)
{
    peer server;
    taken one = {0}, two = {.again = 3};
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, lasting, NULL, 0);
    peer_set_number(&server, 100000);
    assert_int_equal(bay_client_connect_start(server.url, NULL, &client, &diag, NULL, NULL),
                     BAY_OK);
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, NULL, NULL),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_client_list_start(client, (bay_kind)3, &diag, take, &one),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_client_list_start(NULL, BAY_KIND_TOOLS, &diag, take, &one),
                     BAY_ERR_INVALID);
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, take, &one), BAY_OK);
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, take, &two), BAY_OK);
    assert_int_equal(one.count + two.count, 0);
    while (one.count < 1 || two.count < 4) {
        assert_int_equal(bay_client_wait(client, -1), BAY_OK);
    }
    assert_int_equal(one.entries, 1);
    assert_int_equal(peer_count(&server, "POST tools/list"), 1);
    /* one that is kept is not told inside either */
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, take, &one), BAY_OK);
    assert_int_equal(one.count, 1);
    assert_int_equal(bay_client_wait_ms(client), 0);
    assert_int_equal(bay_client_dispatch(client), BAY_OK);
    assert_int_equal(one.count, 2);
    bay_client_close(client);
    peer_stop(&server);
}

static void a_list_asked_for_ends_with_the_client(void **state)
{
    peer server;
    taken one = {0}, two = {0}, three = {0};
    bay_client *client = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, lasting, NULL, 0);
    peer_set_number(&server, 100000);
    client = connect_to(&server, NULL);
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, take, &one), BAY_OK);
    assert_int_equal(bay_client_list_start(client, BAY_KIND_PROMPTS, &diag, take, &two), BAY_OK);
    bay_client_close(client);
    assert_int_equal(one.err, BAY_OK);
    assert_int_equal(two.err, BAY_ERR_CANCELLED);
    peer_stop(&server);
    assert_int_equal(bay_client_connect_start(server.url, NULL, &client, &diag, NULL, NULL),
                     BAY_OK);
    assert_int_equal(bay_client_list_start(client, BAY_KIND_TOOLS, &diag, take, &three), BAY_OK);
    bay_err err = BAY_OK;
    while (three.count == 0) {
        err = bay_client_wait(client, -1);
    }
    assert_int_equal(err, BAY_ERR_CLOSED);
    assert_int_equal(three.err, BAY_ERR_CONNECT);
    bay_client_close(client);
    assert_int_equal(one.count + two.count + three.count, 3);
}

static void no_cache(bay_client_options *options)
{
    bay_client_options_no_cache(options);
}

static void a_list_is_kept_for_its_time_to_live(void **state)
{
    peer server;
    (void)state;
    peer_start(&server, lasting, NULL, 0);
    peer_set_number(&server, 100000);
    bay_client *client = connect_to(&server, NULL);
    for (int i = 0; i < 3; i++) {
        bay_list_free(list_of(client, BAY_KIND_TOOLS));
    }
    assert_int_equal(peer_count(&server, "POST tools/list"), 1);
    sdk_lists_changed(client, BAY_KIND_TOOLS); /* as a notification does */
    peer_set_number(&server, 0);
    for (int i = 0; i < 3; i++) {
        bay_list_free(list_of(client, BAY_KIND_TOOLS));
    }
    assert_int_equal(peer_count(&server, "POST tools/list"), 4);
    peer_set_number(&server, -5);
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    assert_int_equal(peer_count(&server, "POST tools/list"), 6);
    bay_client_close(client);
    peer_set_number(&server, 100000);
    client = connect_to(&server, no_cache);
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    assert_int_equal(peer_count(&server, "POST tools/list"), 8);
    bay_client_close(client);
    peer_stop(&server);
}

/* A session with a GET stream on which changes are told: the stream stays open. */
static void streaming(peer *self, const peer_message *message)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n";
    if (strcmp(message->verb, "GET") == 0) {
        peer_say(self, message, head);
        self->user = (void *)(intptr_t)(message->at + 1);
        return;
    }
    if (peer_legacy(self, message)) {
        return;
    }
    if (peer_is(message, "tools/call")) { /* changes the list */
        int stream = (int)(intptr_t)self->user - 1;
        static const char changed[] =
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
        if (stream >= 0) {
            peer_write(self, stream, changed, sizeof(changed) - 1);
        }
        peer_result(self, message, "", PEER_TEXT_RESULT("changed"));
    } else {
        peer_result(self, message, "", "{\"tools\":[{\"name\":\"a\"}]}");
    }
}

static int changes_heard;

static void on_changed(bay_client *client, bay_kind kind, void *user)
{
    (void)client, (void)user;
    changes_heard += kind == BAY_KIND_TOOLS;
}

static void tell_changes(bay_client_options *options)
{
    bay_client_options_on_changed(options, on_changed, NULL);
}

static void a_session_keeps_a_list_until_it_changes(void **state)
{
    peer server;
    bay_reply *reply = NULL;
    (void)state;
    changes_heard = 0;
    peer_start(&server, streaming, NULL, 0);
    bay_client *client = connect_to(&server, tell_changes);
    while (peer_count(&server, "GET ") == 0) {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    /* the stream stands: fetched at most until its head was seen */
    int before = 0;
    for (int i = 0; i < 200 && before < 3; i++) {
        int seen = peer_count(&server, "POST tools/list");
        bay_list_free(list_of(client, BAY_KIND_TOOLS));
        before = peer_count(&server, "POST tools/list") == seen ? before + 1 : 0;
    }
    assert_int_equal(before, 3);
    int fetched = peer_count(&server, "POST tools/list");
    assert_int_equal(bay_client_call(client, "x", NULL, &reply, NULL), BAY_OK);
    bay_reply_free(reply);
    while (changes_heard == 0) {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    bay_list_free(list_of(client, BAY_KIND_TOOLS));
    assert_int_equal(peer_count(&server, "POST tools/list"), fetched + 1);
    bay_client_close(client);
    peer_stop(&server);
}

/* ---- header fields from arguments -------------------------------------------------------------
 */

static void annotated(peer *self, const peer_message *message)
{
    char region[64];
    if (peer_modern(self, message)) {
        return;
    }
    if (peer_is(message, "tools/list")) {
        /* number: how often the schema has changed */
        peer_result(self, message, "",
                    peer_number(self) == 0
                        ? "{\"tools\":[{\"name\":\"query\",\"inputSchema\":{\"type\":\"object\","
                          "\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":"
                          "\"Region\"}}}},"
                          "{\"name\":\"bad\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
                          "{\"a\":{\"type\":\"object\",\"x-mcp-header\":\"A\"}}}}]}"
                        : "{\"tools\":[{\"name\":\"query\",\"inputSchema\":{\"type\":\"object\","
                          "\"properties\":{\"region\":{\"type\":\"string\",\"x-mcp-header\":"
                          "\"Place\"}}}}]}");
        return;
    }
    const char *wanted = peer_number(self) == 0 ? "Mcp-Param-Region" : "Mcp-Param-Place";
    peer_field(message->head, wanted, region, sizeof(region));
    if (strcmp(region, "eu") != 0) {
        peer_error(self, message, "400 Bad Request", -32020, "header mismatch");
    } else {
        peer_result(self, message, "", PEER_TEXT_RESULT("good"));
    }
}

static void annotated_arguments_travel_in_the_head(void **state)
{
    peer server;
    bay_diag diag = {0};
    bay_reply *reply = NULL;
    (void)state;
    peer_start(&server, annotated, NULL, 0);
    bay_client *client = connect_to(&server, NULL);
    /* nobody asked for the list: it is fetched for the sake of the head, once */
    for (int i = 0; i < 2; i++) {
        bay_err err = bay_client_call(client, "query", " {\"region\":\"eu\"} ", &reply, &diag);
        if (err != BAY_OK) {
            fail_msg("%s", diag.text);
        }
        bay_reply_free(reply);
    }
    assert_int_equal(peer_count(&server, "POST tools/list"), 1);
    assert_string_equal(peer_last_field(&server, "POST tools/call", "Mcp-Param-Region"), "eu");
    assert_string_equal(peer_last_field(&server, "POST tools/call", "Mcp-Name"), "query");
    /* a tool that breaks the rules is left out, and cannot be called */
    assert_int_equal(bay_client_call(client, "bad", NULL, &reply, &diag), BAY_ERR_PROTOCOL);
    assert_non_null(strstr(diag.text, "bad"));
    bay_list *made = list_of(client, BAY_KIND_TOOLS);
    assert_int_equal(bay_list_count(made), 1);
    assert_int_equal(bay_list_rejected_count(made), 1);
    assert_true(str_starts(bay_list_rejected(made, 0), STR("bad: ")));
    bay_list_free(made);
    /* the schema changes: one refusal, the list again, and then the call */
    peer_set_number(&server, 1);
    int calls = peer_count(&server, "POST tools/call");
    assert_int_equal(bay_client_call(client, "query", "{\"region\":\"eu\"}", &reply, &diag),
                     BAY_OK);
    bay_reply_free(reply);
    assert_int_equal(peer_count(&server, "POST tools/call"), calls + 2);
    /* a refusal that stays is told, and not asked for ever */
    assert_int_equal(bay_client_call(client, "query", "{\"region\":\"us\"}", &reply, &diag),
                     BAY_ERR_REMOTE);
    assert_int_equal(peer_count(&server, "POST tools/call"), calls + 4);
    bay_client_close(client);
    peer_stop(&server);
}

static void without_list(peer *self, const peer_message *message)
{
    if (peer_modern(self, message)) {
        return;
    }
    if (peer_is(message, "tools/list")) {
        peer_error(self, message, "200 OK", -32601, "no list");
    } else {
        peer_result(self, message, "", PEER_TEXT_RESULT("good"));
    }
}

static void a_server_without_a_list_is_asked_once(void **state)
{
    peer server;
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, without_list, NULL, 0);
    bay_client *client = connect_to(&server, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bay_client_call(client, "x", NULL, &reply, &diag), BAY_OK);
        bay_reply_free(reply);
    }
    /* the first refusal made the client ask what the server speaks, and then once more */
    assert_true(peer_count(&server, "POST tools/list") <= 2);
    bay_client_close(client);
    peer_stop(&server);
}

/* ---- subscriptions, levels, roots -------------------------------------------------------------
 */

static char last_update[64];

static void on_updated(bay_client *client, bay_str uri, void *user)
{
    (void)client, (void)user;
    snprintf(last_update, sizeof(last_update), "%.*s", BAY_STR(uri));
}

static void tell_updates(bay_client_options *options)
{
    bay_client_options_on_updated(options, on_updated, NULL);
    bay_client_options_root(options, "file:///a", "a");
}

static void listening(peer *self, const peer_message *message)
{
    char text[700];
    if (peer_modern(self, message)) {
        return;
    }
    if (!peer_is(message, "subscriptions/listen")) {
        peer_result(self, message, "",
                    peer_is(message, "resources/read") ? "{\"contents\":[]}"
                                                       : PEER_TEXT_RESULT("good"));
        return;
    }
    if (peer_number(self) == 1) {
        peer_error(self, message, "200 OK", -32601, "no listening here");
        return;
    }
    const char *meta = "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":";
    snprintf(text, sizeof(text),
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
             "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\","
             "\"params\":{%s%s},\"notifications\":{}}}\n\n"
             "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
             "\"params\":{\"uri\":\"x:a\",%s%s}}}\n\n",
             meta, message->id, meta, message->id);
    peer_say(self, message, text);
}

static void a_modern_subscription_is_a_listen(void **state)
{
    peer server;
    bay_diag diag = {0};
    (void)state;
    last_update[0] = '\0';
    peer_start(&server, listening, NULL, 0);
    bay_client *client = connect_to(&server, tell_updates);
    assert_int_equal(bay_client_subscribe(client, "", &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_subscribe(client, "x:a", &diag), BAY_OK);
    assert_int_equal(bay_client_subscribe(client, "x:a", &diag), BAY_OK); /* no news */
    assert_int_equal(peer_count(&server, "POST subscriptions/listen"), 1);
    while (last_update[0] == '\0') {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    assert_string_equal(last_update, "x:a");
    assert_int_equal(bay_client_unsubscribe(client, "x:a", &diag), BAY_OK);
    assert_int_equal(bay_client_unsubscribe(client, "x:b", &diag), BAY_OK);
    assert_int_equal(bay_client_log_level(client, "info", &diag), BAY_OK);
    assert_int_equal(bay_client_log_level(client, "loud", &diag), BAY_ERR_INVALID);
    bay_reply *reply = NULL;
    assert_int_equal(bay_client_read(client, "x:a", &reply, &diag), BAY_OK);
    bay_reply_free(reply);
    const char *const roots[] = {"file:///b", "b", "file:///c", "", NULL};
    assert_int_equal(bay_client_roots(client, roots, &diag), BAY_OK);
    assert_str(client->roots->text,
               "{\"roots\":[{\"uri\":\"file:///b\",\"name\":\"b\"},{\"uri\":\"file:///c\"}]}");
    bay_client_close(client);
    peer_set_number(&server, 1);
    client = connect_to(&server, NULL);
    assert_int_equal(bay_client_subscribe(client, "x:a", &diag), BAY_ERR_UNSUPPORTED);
    assert_int_equal(client->subscriptions.len, 0);
    assert_int_equal(bay_client_roots(client, roots, &diag), BAY_ERR_STATE);
    bay_client_close(client);
    peer_stop(&server);
}

static void by_request(peer *self, const peer_message *message)
{
    if (peer_legacy(self, message)) {
        return;
    }
    if (peer_is(message, "resources/subscribe") && strstr(message->body, "x:none") != NULL) {
        peer_error(self, message, "200 OK", -32002, "no such resource");
    } else {
        peer_result(self, message, "", "{}");
    }
}

static void a_session_subscribes_by_request(void **state)
{
    peer server;
    bay_diag diag = {0};
    (void)state;
    peer_start(&server, by_request, NULL, 0);
    bay_client *client = connect_to(&server, tell_updates);
    assert_int_equal(bay_client_subscribe(client, "x:none", &diag), BAY_ERR_REMOTE);
    assert_non_null(strstr(diag.text, "no such resource"));
    assert_int_equal(client->subscriptions.len, 0);
    assert_int_equal(bay_client_subscribe(client, "x:a", &diag), BAY_OK);
    assert_int_equal(bay_client_unsubscribe(client, "x:a", &diag), BAY_OK);
    assert_int_equal(peer_count(&server, "POST resources/subscribe"), 2);
    assert_int_equal(peer_count(&server, "POST resources/unsubscribe"), 1);
    assert_int_equal(bay_client_log_level(client, "error", &diag), BAY_OK);
    assert_int_equal(bay_client_log_level(client, NULL, &diag), BAY_OK);
    assert_int_equal(peer_count(&server, "POST logging/setLevel"), 2);
    assert_int_equal(bay_client_ping(client, &diag), BAY_OK);
    assert_int_equal(peer_count(&server, "POST ping"), 1);
    assert_int_equal(bay_client_notify(client, "notifications/mine", "{\"a\":1}", &diag), BAY_OK);
    assert_int_equal(bay_client_notify(client, "notifications/mine", "[]", &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_notify(client, "ping", NULL, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_notify(client, NULL, NULL, &diag), BAY_ERR_INVALID);
    assert_int_equal(bay_client_roots(client, NULL, &diag), BAY_OK);
    assert_int_equal(bay_client_ping(client, &diag), BAY_OK);
    while (peer_count(&server, "POST notifications/mine") == 0 ||
           peer_count(&server, "POST notifications/roots/list_changed") == 0) {
        assert_int_equal(bay_client_wait(client, 5), BAY_OK);
    }
    bay_client_close(client);
    peer_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_that_is_none_is_an_error),
        cmocka_unit_test(nothing_is_read_from_no_list),
        cmocka_unit_test(all_pages_are_one_list),
        cmocka_unit_test(a_list_is_asked_for_without_waiting),
        cmocka_unit_test(a_list_asked_for_ends_with_the_client),
        cmocka_unit_test(a_list_is_kept_for_its_time_to_live),
        cmocka_unit_test(a_session_keeps_a_list_until_it_changes),
        cmocka_unit_test(annotated_arguments_travel_in_the_head),
        cmocka_unit_test(a_server_without_a_list_is_asked_once),
        cmocka_unit_test(a_modern_subscription_is_a_listen),
        cmocka_unit_test(a_session_subscribes_by_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
