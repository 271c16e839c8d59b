#include "endpoint/meta_tools.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "json/build.h"

enum { ANSWER_BYTES = 1 << 30 };

static const char definitions[] =
    "\"tools\":["
    "{\"name\":\"search_tools\",\"title\":\"Search tools\","
    "\"description\":\"Finds tools by words of their names, titles and descriptions. There are "
    "more "
    "tools here than are listed: search for what is to be done, read a hit's definition with "
    "describe_tool, then run it with call_tool. Hits come best first; fewer, more telling words "
    "find more. An empty query shows the first tools there are.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"query\":{\"type\":\"string\",\"description\":\"Words for what is to be done, such as "
    "\\\"create calendar event\\\".\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"default\":10,"
    "\"description\":\"How many hits to show at most.\"}},\"required\":[\"query\"]},"
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
    "\"description\":{\"type\":\"string\"}},\"required\":[\"name\"]}},"
    "\"found\":{\"type\":\"integer\",\"description\":\"How many tools fit in all.\"}},"
    "\"required\":[\"tools\",\"found\"]},"
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}},"
    "{\"name\":\"describe_tool\",\"title\":\"Describe a tool\","
    "\"description\":\"Gives the whole definition of one tool, with the JSON Schema of its "
    "arguments. Read it before the tool is first called with call_tool.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\",\"description\":\"The tool's name as search_tools gave "
    "it.\"}},\"required\":[\"name\"]},"
    "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"tool\":{\"type\":\"object\"}},"
    "\"required\":[\"tool\"]},"
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}},"
    "{\"name\":\"call_tool\",\"title\":\"Call a tool\","
    "\"description\":\"Calls a tool by its name and gives its result as it is. The arguments must "
    "fit the schema that describe_tool shows.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\",\"description\":\"The tool's name as search_tools gave it.\"},"
    "\"arguments\":{\"type\":\"object\",\"description\":\"The tool's own arguments.\"}},"
    "\"required\":[\"name\"]}}]";

bay_str meta_tools_list(void)
{
    return (bay_str){definitions, sizeof(definitions) - 1};
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* `json`: one object, shown as text and, to who can read it, as structured content. */
static void answer_json(mcp_request *request, bay_str text, bay_str json)
{
    buf out;
    buf_init(&out, ANSWER_BYTES);
    buf_lit(&out, "\"content\":[{\"type\":\"text\",\"text\":");
    json_quote(&out, text);
    buf_lit(&out, "}]");
    if (request->revision->structured) {
        buf_lit(&out, ",\"structuredContent\":");
        buf_str(&out, json);
    }
    if (out.err == BAY_OK) {
        mcp_request_result_members(request, buf_view(&out));
    } else {
        endpoint_refuse_memory(request);
    }
    buf_fini(&out);
}

/* What a model can do something about is a tool's result. */
static void meta_tools_refuse(mcp_request *request, const char *text, bay_str name)
{
    buf whole;
    buf_init(&whole, 2048);
    buf_str(&whole, str_of(text));
    buf_str(&whole, str_head(name, 512));
    mcp_request_tool_error(request, buf_view(&whole), (bay_str){NULL, 0});
    buf_fini(&whole);
}

/* ---- search_tools ------------------------------------------------------------------------------
 */

typedef struct hit {
    uint32_t score;
    const catalog_entry *entry;
} hit;

typedef struct search {
    list_link link; /* in endpoint.searches */
    endpoint *endpoint;
    mcp_request *request;
    loop_timer timer;
    meta_query query;
    size_t limit;
    size_t found;
    size_t hit_count;
    hit hits[META_HITS];
    size_t part; /* where it stands */
    size_t item;
    size_t part_count;
    catalog_segment *parts[];
} search;

static void search_end(search *self)
{
    if (self->endpoint->loop != NULL) {
        loop_timer_stop(self->endpoint->loop, &self->timer);
    }
    list_remove(&self->link);
    self->endpoint->search_count--;
    for (size_t i = 0; i < self->part_count; i++) {
        catalog_segment_unref(self->parts[i]);
    }
    mem_free(self);
}

/* A string member's bytes between its quotes. */
static bay_str inner(json_val value)
{
    bay_str raw = json_raw(value);
    return json_is(value, JSON_STRING) ? (bay_str){raw.at + 1, raw.len - 2} : (bay_str){"", 0};
}

static bay_str description_of(const catalog_entry *entry)
{
    return entry->describe.at != NULL ? entry->describe
                                      : inner(json_get(entry->item->value, STR("description")));
}

static bay_str title_of(const catalog_entry *entry)
{
    json_val title = json_get(entry->item->value, STR("title"));
    if (!json_is(title, JSON_STRING)) {
        title = json_get(json_get(entry->item->value, STR("annotations")), STR("title"));
    }
    return inner(title);
}

/* Best first; of those that fit equally the one that is listed first. */
static void take_hit(search *self, hit new_one)
{
    size_t at = self->hit_count;
    while (at > 0 && self->hits[at - 1].score < new_one.score) {
        at--;
    }
    if (at == self->limit) {
        return;
    }
    size_t last = self->hit_count < self->limit ? self->hit_count++ : self->limit - 1;
    memmove(&self->hits[at + 1], &self->hits[at], (last - at) * sizeof(self->hits[0]));
    self->hits[at] = new_one;
}

/* False: the slice is over, and there is more. */
static bool search_slice(search *self)
{
    size_t bytes = 0;
    while (self->part < self->part_count) {
        const catalog_segment *segment = self->parts[self->part];
        for (; self->item < segment->count; self->item++) {
            if (bytes > META_SLICE_BYTES) {
                return false;
            }
            const catalog_entry *entry = &segment->entries[self->item];
            if (!endpoint_shows(self->endpoint, &self->request->call, LISTING_TOOLS, entry)) {
                bytes += entry->shown.len;
                continue;
            }
            bay_str title = title_of(entry);
            bay_str description = str_head(description_of(entry), META_DESCRIPTION_BYTES);
            uint32_t score = meta_query_score(&self->query, entry->shown, title, description);
            bytes += entry->item->raw.len + entry->shown.len; /* all of it may have been walked */
            if (score > 0 || self->query.count == 0) {
                self->found++;
                take_hit(self, (hit){score, entry});
            }
        }
        self->part++;
        self->item = 0;
    }
    return true;
}

/* A long description is cut between two characters. */
static void put_description(buf *out, const catalog_entry *entry, arena *memory)
{
    bay_str text = entry->describe;
    if (text.at == NULL &&
        json_str(json_get(entry->item->value, STR("description")), memory, &text) != BAY_OK) {
        return;
    }
    size_t len = text.len;
    if (len > META_SHOWN_BYTES) {
        len = META_SHOWN_BYTES;
        while (len > 0 && ((unsigned char)text.at[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    buf shown;
    buf_init(&shown, META_SHOWN_BYTES + 8);
    buf_append(&shown, text.at, len);
    if (len < text.len) {
        buf_lit(&shown, "\xe2\x80\xa6");
    }
    buf_lit(out, ",\"description\":");
    json_quote(out, buf_view(&shown));
    out->err = out->err == BAY_OK ? shown.err : out->err;
    buf_fini(&shown);
}

static void put_hits(buf *out, const search *self)
{
    buf_lit(out, "{\"tools\":[");
    for (size_t i = 0; i < self->hit_count; i++) {
        const catalog_entry *entry = self->hits[i].entry;
        bay_str title = title_of(entry);
        buf_str(out, i > 0 ? STR(",{\"name\":") : STR("{\"name\":"));
        json_quote(out, entry->shown);
        if (title.len > 0 && title.len <= META_SHOWN_BYTES) {
            buf_lit(out, ",\"title\":\"");
            buf_str(out, title);
            buf_char(out, '"');
        }
        put_description(out, entry, self->request->memory);
        buf_char(out, '}');
    }
    buf_lit(out, "],\"found\":");
    buf_uint(out, self->found);
    buf_char(out, '}');
}

static void search_answer(search *self)
{
    buf out;
    mcp_request *request = self->request;
    buf_init(&out, 1 << 20);
    put_hits(&out, self);
    search_end(self);
    if (out.err == BAY_OK) {
        answer_json(request, buf_view(&out), buf_view(&out));
    } else {
        endpoint_refuse_memory(request);
    }
    buf_fini(&out);
}

/* Without a loop, or without memory for its timer, it goes on to the end at once. */
static void search_run(void *argument)
{
    search *self = argument;
    while (!search_slice(self)) {
        if (self->endpoint->loop != NULL &&
            loop_timer_start(self->endpoint->loop, &self->timer, 0) == BAY_OK) {
            return;
        }
    }
    search_answer(self);
}

static search *search_new(endpoint *self, mcp_request *request)
{
    const catalog_snapshot *shown = own_lists_view(self, request->session, LISTING_TOOLS)->current;
    size_t count = shown != NULL ? shown->count : 0;
    search *made = mem_zalloc(sizeof(*made) + count * sizeof(made->parts[0]));
    if (made == NULL) {
        return NULL;
    }
    made->endpoint = self;
    made->request = request;
    for (size_t i = 0; i < count; i++) {
        made->parts[made->part_count++] = catalog_segment_ref(shown->parts[i].segment);
    }
    loop_timer_init(&made->timer, search_run, made);
    list_push(&self->searches, &made->link);
    self->search_count++;
    return made;
}

static void search_tools(endpoint *self, mcp_request *request, json_val arguments)
{
    bay_str query;
    uint64_t limit = META_HITS_USUAL;
    json_val wanted = json_get(arguments, STR("limit"));
    if (json_str(json_get(arguments, STR("query")), request->memory, &query) != BAY_OK) {
        meta_tools_refuse(request, "query is missing: give the words to search for",
                          (bay_str){"", 0});
        return;
    }
    if (!json_is(wanted, JSON_MISSING) &&
        (json_uint64(wanted, &limit) != BAY_OK || limit < 1 || limit > META_HITS)) {
        meta_tools_refuse(request, "limit needs a whole number from 1 to 50", (bay_str){"", 0});
        return;
    }
    if (self->search_count >= META_SEARCHES) {
        meta_tools_refuse(request, "too many searches at once: try again", (bay_str){"", 0});
        return;
    }
    search *made = search_new(self, request);
    if (made == NULL) {
        endpoint_refuse_memory(request);
        return;
    }
    made->limit = (size_t)limit;
    meta_query_read(&made->query, query);
    search_run(made);
}

bool meta_tools_cancelled(endpoint *self, const mcp_request *request)
{
    LIST_EACH(at, &self->searches)
    {
        search *one = CONTAINER_OF(at, search, link);
        if (one->request == request) {
            search_end(one);
            return true;
        }
    }
    return false;
}

/* ---- describe_tool ------------------------------------------------------------------------------
 */

static void describe_tool(endpoint *self, mcp_request *request, bay_str name)
{
    bay_str text;
    buf json;
    const catalog_entry *entry = endpoint_find_seen(self, request, LISTING_TOOLS, name);
    if (entry == NULL) {
        meta_tools_refuse(request,
                          "There is no such tool; search_tools finds those there are: ", name);
        return;
    }
    text = catalog_view_text(own_lists_view(self, request->session, LISTING_TOOLS), entry);
    buf_init(&json, text.len + 64);
    buf_lit(&json, "{\"tool\":");
    buf_str(&json, text);
    buf_char(&json, '}');
    if (json.err == BAY_OK) {
        answer_json(request, text, buf_view(&json));
    } else {
        endpoint_refuse_memory(request);
    }
    buf_fini(&json);
}

/* ---- call_tool ----------------------------------------------------------------------------------
 */

/* The same params with the target's name and arguments; everything else byte for byte. */
static bay_err become(mcp_request *request, bay_str name, json_val arguments)
{
    static const bay_str replaced[] = {STR_INIT("name"), STR_INIT("arguments")};
    json_val params = request->message.params;
    json_builder made;
    json_writer *out =
        json_builder_init(&made, request->memory, json_raw(params).len + name.len * 6 + 256);
    json_open_object(out);
    json_key(out, replaced[0]);
    json_put_str(out, name);
    if (!json_is(arguments, JSON_MISSING)) {
        json_key(out, replaced[1]);
        json_put_val(out, arguments);
    }
    json_put_members(out, params, replaced, ARRAY_LEN(replaced));
    json_close_object(out);
    bay_err err = json_builder_end(&made, &request->message.params);
    if (err == BAY_OK) {
        request->call.shown = name; /* the door sees the inner tool */
        request->call.params = request->message.params;
        request->meta = json_get(request->message.params, STR("_meta"));
        request->name = name;
    }
    return err;
}

/* True: it was answered. */
static bool call_tool(endpoint *self, mcp_request *request, bay_str name, json_val arguments)
{
    json_val own = json_get(arguments, STR("arguments"));
    if (!json_is(own, JSON_MISSING) && !json_is(own, JSON_OBJECT)) {
        meta_tools_refuse(request, "arguments needs an object: the tool's own arguments",
                          (bay_str){"", 0});
        return true;
    }
    if (!endpoint_knows_tool(self, request, name)) {
        meta_tools_refuse(request,
                          "There is no such tool; search_tools finds those there are: ", name);
        return true;
    }
    if (become(request, name, own) != BAY_OK) {
        endpoint_refuse_memory(request);
        return true;
    }
    return false;
}

bool meta_tools_are(bay_str name)
{
    return str_eq(name, STR("search_tools")) || str_eq(name, STR("describe_tool")) ||
           str_eq(name, STR("call_tool"));
}

bool meta_tools_request(endpoint *self, mcp_request *request)
{
    bay_str name;
    json_val arguments = json_get(request->message.params, STR("arguments"));
    bool is_search = str_eq(request->name, STR("search_tools"));
    bool is_describe = str_eq(request->name, STR("describe_tool"));
    bool is_call = str_eq(request->name, STR("call_tool"));
    if (!meta_tools_are(request->name)) {
        return false;
    }
    endpoint_about_method(request); /* call_tool: until it is the tool's call */
    if (!is_call) {
        request->call.method = mcp_method_of(MCP_TOOLS_LIST)->text; /* that they stand for */
    }
    if (!is_call && (endpoint_request_defer(self, request) || !mcp_request_admit(request, NULL))) {
        return true;
    }
    if (is_search) {
        search_tools(self, request, arguments);
        return true;
    }
    if (json_str(json_get(arguments, STR("name")), request->memory, &name) != BAY_OK) {
        meta_tools_refuse(request, "name is missing: give the name of a tool", (bay_str){"", 0});
        return true;
    }
    if (is_describe) {
        describe_tool(self, request, name);
        return true;
    }
    if (!endpoint_knows_tool(self, request, name) && endpoint_request_defer(self, request)) {
        return true;
    }
    return call_tool(self, request, name, arguments);
}
