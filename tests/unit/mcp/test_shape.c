/* What a result must look like: the tables walked over whole results, each fault with its place. In
 * texts given here ' stands for ". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "mcp/shape.h"

#define LEGACY MCP_REV_2025_11_25
#define MODERN MCP_REV_2026_07_28
#define OLDEST MCP_REV_2024_11_05

#define TIMES "'createdAt':'t','lastUpdatedAt':'t'"

typedef struct sample {
    mcp_method_id method;
    mcp_revision_id revision;
    const char *result;
    const char *place; /* NULL: it is one */
    const char *text;
} sample;

static void check(const sample *one)
{
    arena memory;
    json_doc doc;
    mcp_shape_fault fault = {{0}, {0}};
    char *text = mem_dup(one->result, strlen(one->result));
    assert_non_null(text);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    arena_init(&memory, 64 << 20);
    assert_int_equal(json_parse(&doc, str_of(text), &json_any_depth, &memory, NULL), BAY_OK);
    bool holds = mcp_shape_result(mcp_method_of(one->method), mcp_revision_of(one->revision),
                                  json_root(&doc), &fault);
    if (holds != (one->place == NULL)) {
        print_error("%s: %s %s\n", one->result, fault.place, fault.text);
    }
    assert_true(holds == (one->place == NULL));
    if (one->place != NULL) {
        assert_string_equal(fault.place, one->place);
        if (strstr(fault.text, one->text) == NULL) {
            print_error("%s: %s\n", one->result, fault.text);
        }
        assert_non_null(strstr(fault.text, one->text));
    }
    arena_fini(&memory);
    mem_free(text);
}

static void check_all(const sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check(&samples[i]);
    }
}

#define CHECK_ALL(samples) check_all(samples, sizeof(samples) / sizeof((samples)[0]))

static void what_is_no_tools_result_is_told_with_its_place(void **state)
{
    static const sample samples[] = {
        {MCP_TOOLS_CALL, LEGACY, "[]", "", "must be an object"},
        {MCP_TOOLS_CALL, LEGACY, "{}", "/content", "is missing"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'complete'}", "/content", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':'text'}", "/content", "must be an array"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':null}", "/content", "must be an array"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':{}}", "/content", "must be an array"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[null]}", "/content/0", "must be an object"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'text','text':''},'x']}", "/content/1",
         "must be an object"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{}]}", "/content/0/type", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':1}]}", "/content/0/type", "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'text'}]}", "/content/0/text", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'text','text':1}]}", "/content/0/text",
         "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'text','text':[[]]}]}", "/content/0/text",
         "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':['text'],'text':''}]}", "/content/0/type",
         "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'text':1,'type':'text'}]}", "/content/0/text",
         "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'te\\u0078t':1,'type':'text'}]}",
         "/content/0/te\\u0078t", "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'image','data':'AA=='}]}",
         "/content/0/mimeType", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'audio','data':[],'mimeType':'a'}]}",
         "/content/0/data", "a string"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'resource','resource':{'uri':'a'}}]}",
         "/content/0/resource", "neither text nor blob"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'resource'}]}", "/content/0/resource",
         "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'resource_link','uri':'a'}]}",
         "/content/0/name", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'x','annotations':[]}]}",
         "/content/0/annotations", "an object"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[{'type':'x','annotations':{'audience':['dog']}}]}",
         "/content/0/annotations/audience/0", "none of the values"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[],'isError':'no'}", "/isError", "true or false"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[],'isError':null}", "/isError", "true or false"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[],'isError':true,'isError':0}", "/isError",
         "true or false"},
        {MCP_TOOLS_CALL, LEGACY, "{'content':[],'structuredContent':[]}", "/structuredContent",
         "an object"},
        {MCP_TOOLS_CALL, MODERN, "{'content':[],'_meta':[]}", "/_meta", "an object"},
        {MCP_TOOLS_CALL, MODERN, "{'content':[],'resultType':'new'}", "/resultType", "is none"},
        {MCP_TOOLS_CALL, MODERN, "{'content':[],'resultType':7}", "/resultType", "is none"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'input_required'}", "",
         "neither inputRequests nor requestState"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'input_required','requestState':{}}",
         "/requestState", "a string"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'input_required','inputRequests':{'a/~b':1}}",
         "/inputRequests/a~1~0b", "an object"},
        {MCP_TOOLS_LIST, MODERN, "{'resultType':'input_required','requestState':''}", "/resultType",
         "is none"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'task','taskId':'a'}", "/status", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'task':{'taskId':7,'status':'working'}}", "/task/taskId",
         "a string"},
    };
    (void)state;
    CHECK_ALL(samples);
}

static void results_of_other_methods_are_looked_at_too(void **state)
{
    static const sample samples[] = {
        {MCP_PROMPTS_GET, LEGACY, "{}", "/messages", "is missing"},
        {MCP_PROMPTS_GET, LEGACY, "{'messages':[{'role':'robot','content':{'type':'x'}}]}",
         "/messages/0/role", "none of the values"},
        {MCP_PROMPTS_GET, LEGACY, "{'messages':[{'role':'user','content':[]}]}",
         "/messages/0/content", "an object"},
        {MCP_PROMPTS_GET, LEGACY, "{'messages':[{'role':'user','content':{'type':'text'}}]}",
         "/messages/0/content/text", "is missing"},
        {MCP_PROMPTS_GET, LEGACY, "{'messages':[],'description':1}", "/description", "a string"},
        {MCP_RESOURCES_READ, LEGACY, "{'contents':{}}", "/contents", "an array"},
        {MCP_RESOURCES_READ, OLDEST, "{'contents':[{'text':''}]}", "/contents/0/uri", "is missing"},
        {MCP_RESOURCES_READ, LEGACY, "{'contents':[{'uri':'a','blob':1}]}", "/contents/0/blob",
         "a string"},
        {MCP_COMPLETE, LEGACY, "{'completion':{'values':[1]}}", "/completion/values/0", "a string"},
        {MCP_COMPLETE, LEGACY, "{'completion':[]}", "/completion", "an object"},
        {MCP_COMPLETE, LEGACY, "{'completion':{'values':[],'total':'1'}}", "/completion/total",
         "a number"},
        {MCP_TASKS_GET, MODERN, "{'taskId':'a','status':'completed','result':{'content':7}}",
         "/result/content", "an array"},
        {MCP_TASKS_LEGACY_GET, LEGACY, "{'taskId':'a','status':'working','ttl':'1'}", "/ttl",
         "a number or null"},
        {MCP_TASKS_RESULT, LEGACY, "{'content':[1]}", "/content/0", "an object"},
        {MCP_TASKS_GET, MODERN, "{'taskId':'a','status':'working'," TIMES ",'ttl':null}", "/ttlMs",
         "is missing"},
        {MCP_TASKS_LEGACY_GET, LEGACY, "{'taskId':'a','status':'working'," TIMES ",'ttlMs':1}",
         "/ttl", "is missing"},
        {MCP_TASKS_LEGACY_GET, LEGACY, "{'taskId':'a','status':'working','ttl':1,'createdAt':'t'}",
         "/lastUpdatedAt", "is missing"},
        {MCP_TASKS_LIST, LEGACY, "{'tasks':[{'taskId':'a','status':'working','ttl':1}]}",
         "/tasks/0/createdAt", "is missing"},
        {MCP_TOOLS_CALL, LEGACY, "{'task':{'taskId':'a','status':'working','ttl':null}}",
         "/task/createdAt", "is missing"},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'task','taskId':'a','status':'working'," TIMES "}",
         "/ttlMs", "is missing"},
        {MCP_TASKS_LIST, LEGACY, "{'tasks':[{}]}", "/tasks/0/taskId", "is missing"},
        {MCP_ELICITATION, LEGACY, "{'action':'perhaps'}", "/action", "none of the values"},
        {MCP_ELICITATION, LEGACY, "{'action':'accept','content':'x'}", "/content", "an object"},
        {MCP_SAMPLING, LEGACY, "{'role':'user','model':'m'}", "/content", "is missing"},
        {MCP_SAMPLING, LEGACY, "{'role':'user','model':'m','content':[{'type':'text'}]}",
         "/content/0/text", "is missing"},
        {MCP_ROOTS_LIST, LEGACY, "{'roots':[{'name':'a'}]}", "/roots/0/uri", "is missing"},
        {MCP_SKILLS_GET, MODERN, "{'_meta':1}", "/_meta", "an object"},
    };
    (void)state;
    CHECK_ALL(samples);
}

static void what_is_a_result_passes(void **state)
{
    static const sample samples[] = {
        {MCP_TOOLS_CALL, LEGACY, "{'content':[]}", NULL, NULL},
        {MCP_TOOLS_CALL, OLDEST, "{'content':[],'structuredContent':7,'ttl':[1e999]}", NULL, NULL},
        {MCP_TOOLS_CALL, LEGACY,
         "{'content':[{'type':'hologram','data':{'x':[1.0e400]}},{'type':'te\\u0078t'},"
         "{'type':'text','text':'a','annotations':{'audience':['us\\u0065r'],'priority':1e-9},"
         "'_meta':{'k':null}},{'type':'image','data':'','mimeType':''},"
         "{'type':'resource','resource':{'uri':'u','blob':''}},"
         "{'type':'resource_link','uri':'u','name':'n','icons':[{'src':'s'}],'size':0.0}],"
         "'isError':false,'structuredContent':{},'_meta':{}}",
         NULL, NULL},
        {MCP_TOOLS_CALL, MODERN, "{'content':[],'structuredContent':[1.50]}", NULL, NULL},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'complete','content':[]}", NULL, NULL},
        {MCP_TOOLS_CALL, MODERN, "{'resultType':'input_required','requestState':''}", NULL, NULL},
        {MCP_TOOLS_CALL, MODERN,
         "{'resultType':'input_required','inputRequests':{'q':{'method':'m'}}}", NULL, NULL},
        {MCP_TOOLS_CALL, MODERN,
         "{'resultType':'task','taskId':'a','status':'new'," TIMES ",'ttlMs':null}", NULL, NULL},
        {MCP_TOOLS_CALL, LEGACY, "{'task':{'taskId':'a','status':'working'," TIMES ",'ttl':null}}",
         NULL, NULL},
        {MCP_PROMPTS_GET, LEGACY, "{'messages':[{'role':'user','content':{'type':'new'}}]}", NULL,
         NULL},
        {MCP_RESOURCES_READ, LEGACY, "{'contents':[{'uri':'a','text':''}]}", NULL, NULL},
        {MCP_COMPLETE, LEGACY, "{'completion':{'values':['a'],'total':1.0,'hasMore':true}}", NULL,
         NULL},
        {MCP_TOOLS_LIST, LEGACY, "{'tools':[null,7]}", NULL, NULL}, /* its items one by one */
        {MCP_ELICITATION, LEGACY, "{'action':'accept','content':{'n':1.0}}", NULL, NULL},
        {MCP_SAMPLING, LEGACY,
         "{'role':'assistant','model':'m','content':{'type':'text',"
         "'text':''}}",
         NULL, NULL},
        {MCP_SAMPLING, LEGACY,
         "{'role':'assistant','model':'m','content':[{'type':'tool_use',"
         "'id':'a','name':'b','input':{}}]}",
         NULL, NULL},
        {MCP_ROOTS_LIST, LEGACY, "{'roots':[{'uri':'file:///'}]}", NULL, NULL},
        {MCP_SKILLS_GET, MODERN, "{'anything':1}", NULL, NULL},
    };
    (void)state;
    CHECK_ALL(samples);
}

static void what_is_not_there_is_none(void **state)
{
    mcp_shape_fault fault;
    (void)state;
    assert_false(mcp_shape_result(mcp_method_of(MCP_ELICITATION), mcp_revision_of(LEGACY),
                                  JSON_NONE, &fault));
    assert_string_equal(fault.place, "");
    assert_string_equal(fault.text, "is missing");
}

static void a_long_place_is_cut(void **state)
{
    char text[600] = "{'resultType':'input_required','inputRequests':{'";
    size_t len = strlen(text);
    (void)state;
    memset(text + len, 'k', 300);
    memcpy(text + len + 300, "':1}}", 6);
    char place[MCP_PLACE_BYTES];
    memset(place, 'k', sizeof(place));
    memcpy(place, "/inputRequests/", 15);
    place[sizeof(place) - 1] = '\0';
    sample one = {MCP_TOOLS_CALL, MODERN, text, place, "an object"};
    check(&one);
}

static void items_that_are_too_deep_are_told_from_their_neighbours(void **state)
{
    enum { SIZE = 4096 };
    char text[SIZE];
    arena memory;
    json_doc doc;
    mcp_shape_fault fault;
    (void)state;
    for (int levels = MCP_ITEM_DEPTH - 1; levels <= MCP_ITEM_DEPTH + 20; levels++) {
        size_t len = 0;
        text[len++] = '[';
        memset(text + len, '[', (size_t)levels);
        len += (size_t)levels;
        memset(text + len, ']', (size_t)levels);
        len += (size_t)levels;
        memcpy(text + len, ",{\"a\":[[]]}]", 12);
        len += 12;
        arena_init(&memory, 64 << 20);
        assert_int_equal(json_parse(&doc, (bay_str){text, len}, &json_any_depth, &memory, NULL),
                         BAY_OK);
        assert_true(doc.is_deep == (levels >= 128));
        json_val deep = json_item(json_root(&doc), 0);
        assert_true(json_is_deeper(deep, MCP_ITEM_DEPTH) == (levels > MCP_ITEM_DEPTH));
        assert_true(mcp_shape_item(MCP_SHAPE_NONE, MODERN, deep, &fault) ==
                    (levels <= MCP_ITEM_DEPTH));
        assert_true(mcp_shape_item(MCP_SHAPE_NONE, MODERN, json_item(json_root(&doc), 1), &fault));
        arena_fini(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_tools_result_is_told_with_its_place),
        cmocka_unit_test(results_of_other_methods_are_looked_at_too),
        cmocka_unit_test(what_is_a_result_passes),
        cmocka_unit_test(what_is_not_there_is_none),
        cmocka_unit_test(a_long_place_is_cut),
        cmocka_unit_test(items_that_are_too_deep_are_told_from_their_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
