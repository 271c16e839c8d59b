/* Questions in the words of each revision, as a table. ' stands for ". */
#include "support/fake_upstream.h"

#include "endpoint/input_request.h"

#define ELICIT "elicitation/create"
#define SAMPLE "sampling/createMessage"
#define FORM(properties)                                                                           \
    "{'message':'m','requestedSchema':{'properties':{" properties "},'type':'object'}}"
#define ONE_OF "'oneOf':[{'const':'a','title':'A'},{'const':'\\u0062'}]"
#define ENUM "'enum':['a','\\u0062'],'enumNames':['A','\\u0062']"

/* `older`: for clients before 2025-11-25; NULL: as it is. Since then all of this is known. */
static const struct {
    const char *method;
    const char *params;
    const char *older;
} rows[] = {
    {ELICIT, "{}", NULL},
    {ELICIT, "{'requestedSchema':7}", NULL},
    {ELICIT,
     "{'requestedSchema':{'properties':["
     "{" ONE_OF "}]}}",
     NULL},
    {ELICIT, FORM("'x':{'type':'string','enum':['a']},'y':{'type':'number','n':1.0}"), NULL},
    {ELICIT, FORM("'x':{'oneOf':[]},'y':{'oneOf':[{'const':1}]},'z':{'oneOf':{}}"), NULL},
    {ELICIT, FORM("'x':{'type':'array','items':{'anyOf':[{'const':'a','title':'A'}]}}"), NULL},
    {ELICIT, "{'mode':'form','message':'m','x':1.0}", "{'message':'m','x':1.0}"},
    {ELICIT,
     "{'mode':'form','message':'m','requestedSchema':{'type':'object','properties':{'\\u0061':{"
     "'type':'string'," ONE_OF ",'default':'a'},'z':{'type':'boolean'}},'required':['z']},'n':1.0}",
     "{'message':'m','n':1.0,'requestedSchema':{'type':'object','required':['z'],'properties':{"
     "'\\u0061':{'type':'string','default':'a'," ENUM "},'z':{'type':'boolean'}}}}"},
    {SAMPLE, "{'messages':[{'role':'user','content':{'type':'text','text':'t'}}],'maxTokens':1}",
     NULL},
    {SAMPLE, "{'messages':[{'role':'user','content':[]}]}", NULL},
    {SAMPLE, "{'messages':7,'mode':'form'}", NULL},
    {SAMPLE,
     "{'messages':[{'role':'user','content':[{'t':1.0},{'t':2}],'x':0},{'role':'assistant',"
     "'content':{'t':3}}],'maxTokens':1}",
     "{'maxTokens':1,'messages':[{'role':'user','x':0,'content':{'t':1.0}},{'role':'user','x':0,"
     "'content':{'t':2}},{'role':'assistant','content':{'t':3}}]}"},
    {"roots/list", "{'mode':'form','messages':[{'content':[1]}]}", NULL},
};

static void assert_words(const char *method, const char *params, mcp_revision_id to,
                         const char *wanted)
{
    char *said = testing_quotes(params);
    char *expected = testing_quotes(wanted);
    buf out;
    arena memory;
    json_doc doc;
    json_writer writer;
    buf_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(said), NULL, &memory, NULL), BAY_OK);
    input_request_write_params(&writer, str_of(method), json_root(&doc), mcp_revision_of(to));
    assert_int_equal(out.err, BAY_OK);
    assert_text(buf_view(&out), expected);
    /* what was written is JSON */
    json_doc again;
    assert_int_equal(json_parse(&again, buf_view(&out), NULL, &memory, NULL), BAY_OK);
    arena_fini(&memory);
    buf_fini(&out);
    mem_free(said);
    mem_free(expected);
}

static void each_revision_has_its_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int to = 0; to < MCP_REVISION_COUNT; to++) {
            bool is_older = to < MCP_REV_2025_11_25 && rows[i].older != NULL;
            assert_words(rows[i].method, rows[i].params, (mcp_revision_id)to,
                         is_older ? rows[i].older : rows[i].params);
        }
    }
}

/* mcp 2025-11-25 client/elicitation: a URL has an id there, and nowhere else. */
static void a_url_has_an_id_where_one_is_wanted(void **state)
{
    (void)state;
    static const char url[] = "{\"mode\":\"url\",\"url\":\"x:y\",\"message\":\"m\"}";
    buf out;
    arena memory;
    json_doc doc;
    json_writer writer;
    buf_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    arena_init(&memory, 1 << 20);
    assert_int_equal(json_parse(&doc, str_of(url), NULL, &memory, NULL), BAY_OK);
    input_request_write_params(&writer, STR(ELICIT), json_root(&doc),
                               mcp_revision_of(MCP_REV_2025_11_25));
    assert_true(str_starts(buf_view(&out), str_head(str_of(url), strlen(url) - 1)));
    assert_true(str_contains(buf_view(&out), ",\"elicitationId\":\""));
    arena_fini(&memory);
    buf_fini(&out);
    assert_words(ELICIT, "{'mode':'url','url':'x:y'}", MCP_LATEST, "{'mode':'url','url':'x:y'}");
    assert_words(ELICIT, "{'mode':'url','elicitationId':'e'}", MCP_REV_2025_11_25,
                 "{'mode':'url','elicitationId':'e'}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_revision_has_its_words),
        cmocka_unit_test(a_url_has_an_id_where_one_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
