/* Cards of all versions: what is taken for what, what comes out pure, hybrid and for 0.x. */
#include "unit/a2a/dialect_fixture.h"

#include "support/failing_memory.h"

#define CARD_1_0                                                                                   \
    "{'name':'n','description':'d','supportedInterfaces':["                                        \
    "{'url':'http://h/rpc','protocolBinding':'JSONRPC','protocolVersion':'1.0','tenant':'x'},"     \
    "{'url':'http://h/rpc','protocolBinding':'JSONRPC','protocolVersion':'0.3'},"                  \
    "{'url':'h:1','protocolBinding':'GRPC','protocolVersion':'0.3'}],"                             \
    "'provider':{'url':'p','organization':'o'},'version':'1','documentationUrl':'doc',"            \
    "'capabilities':{'streaming':true,'pushNotifications':false,'extendedAgentCard':true,"         \
    "'extensions':[{'uri':'urn:e','required':true}]},"                                             \
    "'securitySchemes':{'k':{'apiKeySecurityScheme':{'location':'header','name':'X-Key'}},"        \
    "'o':{'oauth2SecurityScheme':{'flows':{'clientCredentials':{'tokenUrl':'t','scopes':{'a':"     \
    "'b'}}},'description':'oo'}},'m':{'mtlsSecurityScheme':{}}},"                                  \
    "'securityRequirements':[{'schemes':{'k':{},'o':{'list':['a']}}}],"                            \
    "'defaultInputModes':['text/plain'],'defaultOutputModes':['text/plain'],"                      \
    "'skills':[{'id':'s','name':'S','description':'','tags':['t'],'securityRequirements':["        \
    "{'schemes':{'m':{}}}]}],'iconUrl':'i'}"

#define OLD_SCHEMES                                                                                \
    "'securitySchemes':{'k':{'type':'apiKey','in':'header','name':'X-Key'},"                       \
    "'o':{'type':'oauth2','description':'oo','flows':{'clientCredentials':{'tokenUrl':'t',"        \
    "'scopes':{'a':'b'}}}},'m':{'type':'mutualTLS'}},'security':[{'k':[],'o':['a']}]"

#define CARD_0_3                                                                                   \
    "{'name':'n','description':'d','url':'http://h/rpc','preferredTransport':'JSONRPC',"           \
    "'protocolVersion':'0.3.0','additionalInterfaces':[{'url':'http://h/rpc','transport':"         \
    "'JSONRPC'},{'url':'h:1','transport':'GRPC'}],'provider':{'url':'p','organization':'o'},"      \
    "'version':'1','documentationUrl':'doc','capabilities':{'streaming':true,"                     \
    "'pushNotifications':false,'extensions':[{'uri':'urn:e','required':true}]},"                   \
    "'supportsAuthenticatedExtendedCard':true," OLD_SCHEMES ",'defaultInputModes':['text/plain']," \
    "'defaultOutputModes':['text/plain'],'skills':[{'id':'s','name':'S','description':'','tags':[" \
    "'t'],'security':[{'m':[]}]}],'iconUrl':'i'}"

static void read_card(fx *self, const char *card, a2a_version *out_version)
{
    fx_clear(self);
    fx_ok(self, a2a_card_read(fx_json(self, card), &self->out, out_version, &self->fault));
    fx_is_normal(self, A2A_TYPE_AGENT_CARD, buf_view(&self->out));
}

static void what_is_no_card_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *card;
        const char *text;
    } cases[] = {
        {"[]", "must be an object"},
        {"{}", "name: is required"},
        {"{'name':'n'}", "url: is required"},
        {"{'name':'n','url':7}", "url: must be a string"},
        {"{'name':'n','url':'u','capabilities':[]}", "capabilities: must be an object"},
        {"{'name':'n','url':'u','skills':{}}", "skills: must be an array"},
        {"{'name':'n','url':'u','security':[{'a':'b'}]}", "list: must be an array"},
        {"{'name':'n','url':'u','securitySchemes':{'a':{'type':'apiKey','in':'header'}}}", "name"},
        {"{'name':'n','supportedInterfaces':[]}", "supportedInterfaces: must not be empty"},
        {"{'name':'n','supportedInterfaces':[{'url':'u'}]}", "supportedInterfaces[0].protocol"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_version version = A2A_VERSIONS;
        fx_clear(&self);
        fx_refused(&self,
                   a2a_card_read(fx_json(&self, cases[i].card), &self.out, &version, &self.fault),
                   A2A_E_INVALID_PARAMS, cases[i].text);
        assert_int_equal(version, A2A_VERSIONS);
    }
    fx_fini(&self);
}

static void a_card_without_older_interfaces_has_no_older_form(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    json_val card = fx_json(
        &self, "{'name':'n','description':'','supportedInterfaces':[{'url':'u','protocolBinding':"
               "'JSONRPC','protocolVersion':'1.0'}],'version':'','capabilities':{},"
               "'defaultInputModes':[],'defaultOutputModes':[],'skills':[]}");
    assert_int_equal(a2a_card_write(A2A_CARD_0_3, card, &self.out), BAY_ERR_VERSION);
    assert_int_equal(self.out.len, 0);
    fx_ok(&self, a2a_card_write(A2A_CARD_HYBRID, card, &self.out));
    assert_true(str_eq(buf_view(&self.out), json_raw(card)));
    /* As an answer to a peer of 0.3, which is here already, it has one. */
    fx_clear(&self);
    fx_ok(&self, a2a_result_write(A2A_FORM_0_3, A2A_GET_EXTENDED_CARD, card, &self.out));
    fx_wrote(&self, "{'name':'n','description':'','url':'u','preferredTransport':'JSONRPC',"
                    "'protocolVersion':'0.3.0','version':'','capabilities':{},"
                    "'defaultInputModes':[],'defaultOutputModes':[],'skills':[]}");
    fx_fini(&self);
}

static void a_card_is_of_the_version_that_its_members_tell(void **state)
{
    (void)state;
    static const struct {
        const char *card;
        a2a_version version;
        const char *interface;
    } cases[] = {
        {CARD_1_0, A2A_1_0, "'1.0'"},
        {CARD_0_3, A2A_0_3, "'0.3'"},
        {"{'name':'n','url':'u','defaultInputModes':['text/plain']}", A2A_0_2, "'0.2'"},
        {"{'name':'n','url':'u','protocolVersion':'0.2.6'}", A2A_0_2, "'0.2'"},
        {"{'name':'n','url':'u','protocolVersion':'7.1'}", A2A_0_3, "'0.3'"},
        {"{'name':'n','url':'u'}", A2A_0_1, "'0.1'"},
        {"{'name':'n','url':'u','defaultInputModes':['text'],'authentication':{'schemes':["
         "'Bearer']}}",
         A2A_0_1, "'0.1'"},
    };
    fx self;
    fx_init(&self);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        a2a_version version = A2A_VERSIONS;
        read_card(&self, cases[i].card, &version);
        assert_int_equal(version, cases[i].version);
        json_val card = fx_parse(&self, buf_view(&self.out));
        json_val first = json_item(json_get(card, STR("supportedInterfaces")), 0);
        bay_str said = json_raw(json_get(first, STR("protocolVersion")));
        assert_true(str_eq(said, fx_quotes(&self, cases[i].interface)));
    }
    fx_fini(&self);
}

static void an_old_card_becomes_a_new_one(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    a2a_version version;
    read_card(&self, CARD_0_3, &version);
    fx_wrote(&self,
             "{'name':'n','description':'d','supportedInterfaces':["
             "{'url':'http://h/rpc','protocolBinding':'JSONRPC','protocolVersion':'0.3'},"
             "{'url':'h:1','protocolBinding':'GRPC','protocolVersion':'0.3'}],"
             "'provider':{'url':'p','organization':'o'},'version':'1','documentationUrl':'doc',"
             "'capabilities':{'streaming':true,'pushNotifications':false,'extendedAgentCard':true,"
             "'extensions':[{'uri':'urn:e','required':true}]},"
             "'securitySchemes':{'k':{'apiKeySecurityScheme':{'location':'header','name':'X-Key'}},"
             "'o':{'oauth2SecurityScheme':{'flows':{'clientCredentials':{'tokenUrl':'t','scopes':{"
             "'a':'b'}}},'description':'oo'}},'m':{'mtlsSecurityScheme':{}}},"
             "'securityRequirements':[{'schemes':{'k':{},'o':{'list':['a']}}}],"
             "'defaultInputModes':['text/plain'],'defaultOutputModes':['text/plain'],"
             "'skills':[{'id':'s','name':'S','description':'','tags':['t'],"
             "'securityRequirements':[{'schemes':{'m':{}}}]}],'iconUrl':'i'}");
    read_card(&self,
              "{'name':'n','url':'u','version':'1','capabilities':{'stateTransitionHistory':true},"
              "'authentication':{'schemes':['Bearer']},'skills':[{'id':'s','name':'S'}],"
              "'signatures':[{'protected':'p','signature':'s'}]}",
              &version);
    fx_wrote(&self,
             "{'name':'n','description':'','supportedInterfaces':[{'url':'u','protocolBinding':"
             "'JSONRPC','protocolVersion':'0.1'}],'version':'1','capabilities':{'extensions':["
             "{'uri':'urn:patchbay:state-transition-history'}]},'securitySchemes':{'Bearer':{"
             "'httpAuthSecurityScheme':{'scheme':'Bearer'}}},'securityRequirements':[{'schemes':{"
             "'Bearer':{}}}],'defaultInputModes':['text/plain'],'defaultOutputModes':['text/plain']"
             ",'skills':[{'id':'s','name':'S','description':'','tags':[]}]}");
    fx_fini(&self);
}

static void a_new_card_becomes_an_old_one(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    a2a_version version;
    fx_ok(&self, a2a_card_write(A2A_CARD_0_3, fx_json(&self, CARD_1_0), &self.out));
    fx_wrote(&self, CARD_0_3);
    /* What 0.3 alone says comes back. */
    const char *history = "{'name':'n','description':'','url':'u','protocolVersion':'0.3.0',"
                          "'preferredTransport':'JSONRPC','version':'','capabilities':{"
                          "'stateTransitionHistory':true},'defaultInputModes':[],"
                          "'defaultOutputModes':[],'skills':[]}";
    read_card(&self, history, &version);
    json_val ours = fx_parse(&self, buf_view(&self.out));
    fx_clear(&self);
    fx_ok(&self, a2a_card_write(A2A_CARD_0_3, ours, &self.out));
    fx_wrote(&self, history);
    fx_fini(&self);
}

static void a_hybrid_is_both(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    a2a_version version;
    fx_ok(&self, a2a_card_write(A2A_CARD_HYBRID, fx_json(&self, CARD_1_0), &self.out));
    json_val both = fx_parse(&self, buf_view(&self.out));
    assert_int_equal(json_check_duplicates(both, NULL), BAY_OK);
    fx_clear(&self);
    fx_ok(&self, a2a_card_read(both, &self.out, &version, &self.fault));
    assert_int_equal(version, A2A_1_0);
    fx_wrote(&self, CARD_1_0);
    /* Without what is new in it, it is the old card. */
    json_val old = fx_json(&self, CARD_0_3);
    json_iter iter = json_iter_of(old);
    while (json_next(&iter)) {
        bay_str key;
        assert_true(json_str_plain(iter.key, &key));
        json_val there = json_get(both, key);
        assert_false(json_is(there, JSON_MISSING));
        if (!str_eq(key, STR("securitySchemes")) && !str_eq(key, STR("skills")) &&
            !str_eq(key, STR("capabilities"))) {
            assert_true(str_eq(fx_canon(&self, there), fx_canon(&self, iter.value)));
        }
    }
    json_val scheme = json_get(json_get(both, STR("securitySchemes")), STR("k"));
    assert_true(json_str_eq(json_get(scheme, STR("type")), STR("apiKey")));
    assert_true(json_str_eq(json_get(scheme, STR("in")), STR("header")));
    assert_true(json_is(json_get(scheme, STR("apiKeySecurityScheme")), JSON_OBJECT));
    json_val skill = json_item(json_get(both, STR("skills")), 0);
    assert_true(json_is(json_get(skill, STR("security")), JSON_ARRAY));
    assert_true(json_is(json_get(skill, STR("securityRequirements")), JSON_ARRAY));
    fx_fini(&self);
}

/* REST and gRPC of 0.3 have their own card, with nothing in it that package lacks. */
static void the_card_of_the_package_is_strict(void **state)
{
    (void)state;
    fx self;
    fx_init(&self);
    fx_ok(&self, a2a_result_write(A2A_FORM_0_3_PROTO, A2A_GET_EXTENDED_CARD,
                                  fx_json(&self, CARD_1_0), &self.out));
    json_val theirs = fx_parse(&self, buf_view(&self.out));
    fx_is_normal(&self, A2A_TYPE_V1_AGENT_CARD, json_raw(theirs));
    assert_true(json_is(json_get(theirs, STR("iconUrl")), JSON_MISSING));
    fx_clear(&self);
    fx_ok(&self, a2a_result_read(A2A_FORM_0_3_PROTO, A2A_GET_EXTENDED_CARD, theirs, &self.out,
                                 &self.fault));
    json_val ours = fx_parse(&self, buf_view(&self.out));
    json_val expected = fx_json(&self, CARD_1_0);
    static const bay_str same[] = {STR_INIT("skills"), STR_INIT("securitySchemes"),
                                   STR_INIT("securityRequirements"), STR_INIT("provider")};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        assert_true(str_eq(fx_canon(&self, json_get(ours, same[i])),
                           fx_canon(&self, json_get(expected, same[i]))));
    }
    fx_fini(&self);
}

static void every_lack_of_memory_is_told(void **state)
{
    (void)state;
    static const char *const cards[] = {CARD_1_0, CARD_0_3};
    for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
        fx self;
        fx_init(&self);
        json_val card = fx_json(&self, cards[i]);
        json_val ours = fx_json(&self, CARD_1_0);
        for (size_t at = 0; failing_memory_start(at); at++) {
            buf out;
            a2a_version version;
            buf_init(&out, 1U << 16);
            bay_err err = a2a_card_read(card, &out, &version, NULL);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            for (size_t form = 0; form <= A2A_CARD_0_3; form++) {
                buf_clear(&out);
                err = a2a_card_write((a2a_card_form)form, ours, &out);
                assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            }
            buf_clear(&out);
            err = a2a_result_write(A2A_FORM_0_3_PROTO, A2A_GET_EXTENDED_CARD, ours, &out);
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
            buf_fini(&out);
            failing_memory_check();
        }
        fx_fini(&self);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_card_is_refused),
        cmocka_unit_test(a_card_without_older_interfaces_has_no_older_form),
        cmocka_unit_test(a_card_is_of_the_version_that_its_members_tell),
        cmocka_unit_test(an_old_card_becomes_a_new_one),
        cmocka_unit_test(a_new_card_becomes_an_old_one),
        cmocka_unit_test(a_hybrid_is_both),
        cmocka_unit_test(the_card_of_the_package_is_strict),
        cmocka_unit_test(every_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
