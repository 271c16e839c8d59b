/* JSON and protobuf, there and back: the bytes that a protobuf runtime (its Python one) writes for
 * the same JSON and reads as the same message, every type of the tables, lengths of every size. */
#include "protobuf_case.h"

#include "a2a/protobuf.h"
#include "a2a/table.h"
#include "support/failing_memory.h"

/* Every beginning of a message is refused, or read as the shorter message that it is. */
static void refuses_what_is_cut(const char *json, a2a_type type)
{
    buf bytes;
    buf_init(&bytes, 1U << 20);
    assert_int_equal(to_protobuf(type, json, &bytes, NULL), BAY_OK);
    size_t refusals = 0;
    for (size_t len = 0; len < bytes.len; len++) {
        char *exact = malloc(len > 0 ? len : 1);
        assert_non_null(exact);
        memcpy(exact, bytes.at, len);
        buf out;
        buf_init(&out, 1U << 20);
        bay_err err = a2a_from_protobuf(type, (bay_str){exact, len}, &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_PROTOCOL && out.len == 0));
        refusals += err == BAY_ERR_PROTOCOL;
        buf_fini(&out);
        free(exact);
    }
    assert_true(refusals > bytes.len / 2);
    buf_fini(&bytes);
}

/* ---- what a runtime writes ------------------------------------------------------------------- */

typedef struct vector {
    a2a_type type;
    const char *json;
    const char *bytes;
} vector;

static const vector vectors[] = {
    {A2A_TYPE_TASK,
     "{\"id\":\"task-1\",\"contextId\":\"ctx-1\",\"status\":{\"state\":\"TASK_STATE_INPUT_"
     "REQUIRED\",\"me"
     "ssage\":{\"messageId\":\"m-2\",\"contextId\":\"ctx-1\",\"taskId\":\"task-1\",\"role\":\"ROLE_"
     "AGENT\","
     "\"parts\":[{\"text\":\"Which "
     "one?\",\"mediaType\":\"text/plain\"}],\"extensions\":[\"urn:x\"],\"ref"
     "erenceTaskIds\":[\"task-0\"]},\"timestamp\":\"2026-01-31T23:59:59.123Z\"},\"artifacts\":[{"
     "\"ar"
     "tifactId\":\"a-1\",\"name\":\"n\",\"description\":\"d\",\"parts\":[{\"raw\":\"AAEC/"
     "w==\",\"filename\":\""
     "f.bin\",\"mediaType\":\"application/octet-stream\"},{\"url\":\"https://e.example/"
     "f\"},{\"data\""
     ":{\"a\":[1,-2.5,\"s\",true,null,{}],\"b\":{\"c\":[]}}},{\"data\":null},{\"text\":\"\"}],"
     "\"metadata\""
     ":{\"k\":0.1}}],\"history\":[{\"messageId\":\"m-1\",\"role\":\"ROLE_USER\",\"parts\":[{"
     "\"text\":\"Grüß"
     "e 😀\\n\\\"q\\\"\"}],\"metadata\":{}}],\"metadata\":{\"n\":1e+300,\"z\":9007199254740991}}",
     "0a067461736b2d3112056374782d311a500806123f0a036d2d3212056374782d311a067461736b2d3120"
     "022a180a0a5768696368206f6e653f3a0a746578742f706c61696e3a0575726e3a7842067461736b2d30"
     "1a0b08ffaefacb0610c0a9d33a22af010a03612d3112016e1a016422271204000102ff3205662e62696e"
     "3a186170706c69636174696f6e2f6f637465742d73747265616d22151a1368747470733a2f2f652e6578"
     "616d706c652f66224622442a420a2e0a0161122932270a0911000000000000f03f0a0911000000000000"
     "04c00a031a01730a0220010a0208000a022a000a100a0162120b2a090a070a0163120232002204220208"
     "0022020a002a100a0e0a016b1209119a9999999999b93f2a1d0a036d2d3120012a120a104772c3bcc39f"
     "6520f09f98800a227122320032200a0e0a016e1209119c7500883ce4377e0a0e0a017a120911ffffffff"
     "ffff3f43"},
    {A2A_TYPE_AGENT_CARD,
     "{\"name\":\"Agent\",\"description\":\"\",\"supportedInterfaces\":[{\"url\":\"https://"
     "a.example\",\""
     "protocolBinding\":\"JSONRPC\",\"tenant\":\"t\",\"protocolVersion\":\"1.0\"},{\"url\":\"a."
     "example:4"
     "43\",\"protocolBinding\":\"GRPC\",\"protocolVersion\":\"1.0\"}],\"provider\":{\"url\":"
     "\"https://p."
     "example\",\"organization\":\"P\"},\"version\":\"1.2.3\",\"documentationUrl\":\"\","
     "\"capabilities\":"
     "{\"streaming\":true,\"pushNotifications\":false,\"extensions\":[{\"uri\":\"urn:e\","
     "\"descriptio"
     "n\":\"e\",\"required\":true,\"params\":{\"p\":[1]}}],\"extendedAgentCard\":true},"
     "\"securitySchem"
     "es\":{\"key\":{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":\"X-Key\"}},"
     "\"mtls\":{\"mt"
     "lsSecurityScheme\":{}},\"oauth\":{\"oauth2SecurityScheme\":{\"flows\":{\"authorizationCode\":"
     "{\"authorizationUrl\":\"https://o.example/a\",\"tokenUrl\":\"https://o.example/"
     "t\",\"scopes\":"
     "{\"read\":\"to "
     "read\"},\"pkceRequired\":true}},\"oauth2MetadataUrl\":\"https://o.example/m\"}}"
     "},\"securityRequirements\":[{\"schemes\":{\"key\":{},\"oauth\":{\"list\":[\"read\"]}}}],"
     "\"default"
     "InputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\",\"application/"
     "json\"],\"s"
     "kills\":[{\"id\":\"s\",\"name\":\"S\",\"description\":\"does\",\"tags\":[\"t\"],\"examples\":"
     "[\"do\"],\"in"
     "putModes\":[\"text/plain\"],\"outputModes\":[\"text/"
     "plain\"],\"securityRequirements\":[{\"sche"
     "mes\":{\"mtls\":{}}}]}],\"signatures\":[{\"protected\":\"eyJ9\",\"signature\":\"c2ln\","
     "\"header\":{"
     "\"kid\":\"k\"}}],\"iconUrl\":\"https://a.example/i\"}",
     "0a054167656e741a240a1168747470733a2f2f612e6578616d706c6512074a534f4e5250431a01742203"
     "312e301a1a0a0d612e6578616d706c653a3434331204475250432203312e3022160a1168747470733a2f"
     "2f702e6578616d706c651201502a05312e322e3332003a2a080110001a220a0575726e3a651201651801"
     "22140a120a0170120d320b0a0911000000000000f03f200142180a036b657912110a0f12066865616465"
     "721a05582d4b6579420a0a046d746c7312022a0042610a056f6175746812581a56123f0a3d0a13687474"
     "70733a2f2f6f2e6578616d706c652f61121368747470733a2f2f6f2e6578616d706c652f74220f0a0472"
     "6561641207746f207265616428011a1368747470733a2f2f6f2e6578616d706c652f6d4a1a0a070a036b"
     "657912000a0f0a056f6175746812060a0472656164520a746578742f706c61696e5a0a746578742f706c"
     "61696e5a106170706c69636174696f6e2f6a736f6e62370a01731201531a04646f65732201742a02646f"
     "320a746578742f706c61696e3a0a746578742f706c61696e420a0a080a046d746c7312006a1a0a046579"
     "4a39120463326c6e1a0c0a0a0a036b696412031a016b721368747470733a2f2f612e6578616d706c652f"
     "69"},
    {A2A_TYPE_STREAM_RESPONSE,
     "{\"artifactUpdate\":{\"taskId\":\"task-1\",\"contextId\":\"ctx-1\",\"artifact\":{"
     "\"artifactId\":\"a"
     "-1\",\"parts\":[{\"text\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}]},\"append\":tr"
     "ue,\"lastChunk\":true,\"metadata\":{\"m\":\"v\"}}}",
     "22af010a067461736b2d3112056374782d311a8d010a03612d312285010a820178787878787878787878"
     "787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
     "787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
     "78787878787878787878787878787878787878787878787878787878787878787878787820012801320a"
     "0a080a016d12031a0176"},
    {A2A_TYPE_V1_TASK,
     "{\"id\":\"task-1\",\"contextId\":\"ctx-1\",\"status\":{\"state\":\"TASK_STATE_CANCELLED\","
     "\"message"
     "\":{\"messageId\":\"m-2\",\"contextId\":\"ctx-1\",\"taskId\":\"task-1\",\"role\":\"ROLE_"
     "AGENT\",\"cont"
     "ent\":[{\"text\":\"Which "
     "one?\"},{\"file\":{\"fileWithBytes\":\"AAEC/w==\",\"mimeType\":\"image/pn"
     "g\"}},{\"file\":{\"fileWithUri\":\"https://e.example/"
     "f\"}},{\"data\":{\"data\":{\"a\":[1,-2.5,nul"
     "l]}}}],\"metadata\":{\"k\":true},\"extensions\":[\"urn:x\"]},\"timestamp\":\"1969-12-31T23:"
     "59:5"
     "9.500Z\"},\"artifacts\":[{\"artifactId\":\"a-1\",\"name\":\"n\",\"description\":\"d\","
     "\"parts\":[{\"te"
     "xt\":\"t\"}],\"metadata\":{\"k\":1},\"extensions\":[\"urn:x\"]}],\"history\":[{\"messageId\":"
     "\"m-1\","
     "\"role\":\"ROLE_USER\",\"content\":[{\"text\":\"Grüße\"}]}],\"metadata\":{\"z\":-1}}",
     "0a067461736b2d3112056374782d311aa5010805128d010a036d2d3212056374782d311a067461736b2d"
     "3120022a0c0a0a5768696368206f6e653f2a1312111204000102ff1a09696d6167652f706e672a171215"
     "0a1368747470733a2f2f652e6578616d706c652f662a271a250a230a210a0161121c321a0a0911000000"
     "000000f03f0a091100000000000004c00a02080032090a070a016b120220013a0575726e3a781a1108ff"
     "ffffffffffffffff011080cab5ee0122290a03612d311a016e2201642a030a017432100a0e0a016b1209"
     "11000000000000f03f3a0575726e3a782a120a036d2d3120012a090a074772c3bcc39f6532100a0e0a01"
     "7a120911000000000000f0bf"},
    {A2A_TYPE_V1_AGENT_CARD,
     "{\"protocolVersion\":\"0.3.0\",\"name\":\"Agent\",\"description\":\"d\",\"url\":\"https://"
     "a.example"
     "\",\"preferredTransport\":\"JSONRPC\",\"additionalInterfaces\":[{\"url\":\"a.example:443\","
     "\"tra"
     "nsport\":\"GRPC\"}],\"provider\":{\"url\":\"https://"
     "p.example\",\"organization\":\"P\"},\"version\""
     ":\"1.2.3\",\"capabilities\":{\"streaming\":true,\"extensions\":[{\"uri\":\"urn:e\","
     "\"required\":tr"
     "ue,\"params\":{\"p\":[1]}}]},\"securitySchemes\":{\"bearer\":{\"httpAuthSecurityScheme\":{"
     "\"sch"
     "eme\":\"Bearer\",\"bearerFormat\":\"JWT\"}},\"oidc\":{\"openIdConnectSecurityScheme\":{"
     "\"descrip"
     "tion\":\"o\",\"openIdConnectUrl\":\"https://"
     "o.example\"}}},\"security\":[{\"schemes\":{\"bearer\""
     ":{}}}],\"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],\"skill"
     "s\":[{\"id\":\"s\",\"name\":\"S\",\"description\":\"does\",\"tags\":[\"t\"],\"security\":[{"
     "\"schemes\":{\""
     "oidc\":{\"list\":[\"read\"]}}}]}],\"supportsAuthenticatedExtendedCard\":true,\"signatures\":["
     "{\"protected\":\"eyJ9\",\"signature\":\"c2ln\"}]}",
     "820105302e332e300a054167656e741201641a1168747470733a2f2f612e6578616d706c6572074a534f"
     "4e5250437a150a0d612e6578616d706c653a34343312044752504322160a1168747470733a2f2f702e65"
     "78616d706c651201502a05312e322e333a2308011a1f0a0575726e3a65180122140a120a0170120d320b"
     "0a0911000000000000f03f42190a06626561726572120f120d12064265617265721a034a575442200a04"
     "6f696463121822160a016f121168747470733a2f2f6f2e6578616d706c654a0c0a0a0a06626561726572"
     "1200520a746578742f706c61696e5a0a746578742f706c61696e62210a01731201531a04646f65732201"
     "7442100a0e0a046f69646312060a047265616468018a010c0a0465794a39120463326c6e"},
    {A2A_TYPE_V1_STREAM_RESPONSE,
     "{\"statusUpdate\":{\"taskId\":\"task-1\",\"contextId\":\"ctx-1\",\"status\":{\"state\":"
     "\"TASK_STATE"
     "_COMPLETED\",\"message\":{\"messageId\":\"m-2\",\"contextId\":\"ctx-1\",\"taskId\":\"task-"
     "1\",\"role"
     "\":\"ROLE_AGENT\",\"content\":[{\"text\":\"Which "
     "one?\"},{\"file\":{\"fileWithBytes\":\"AAEC/w==\","
     "\"mimeType\":\"image/png\"}},{\"file\":{\"fileWithUri\":\"https://e.example/"
     "f\"}},{\"data\":{\"da"
     "ta\":{\"a\":[1,-2.5,null]}}}],\"metadata\":{\"k\":true},\"extensions\":[\"urn:x\"]}},"
     "\"final\":tr"
     "ue,\"metadata\":{\"m\":[{}]}}}",
     "1ab5010a067461736b2d3112056374782d311a92010803128d010a036d2d3212056374782d311a067461"
     "736b2d3120022a0c0a0a5768696368206f6e653f2a1312111204000102ff1a09696d6167652f706e672a"
     "1712150a1368747470733a2f2f652e6578616d706c652f662a271a250a230a210a0161121c321a0a0911"
     "000000000000f03f0a091100000000000004c00a02080032090a070a016b120220013a0575726e3a7820"
     "012a0d0a0b0a016d120632040a022a00"},
};

static void speaks_as_a_runtime_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        buf out;
        buf expected;
        buf_init(&out, 1U << 20);
        buf_init(&expected, 1U << 20);
        assert_int_equal(from_hex(vectors[i].type, vectors[i].bytes, &out, NULL), BAY_OK);
        assert_text(buf_view(&out), vectors[i].json);
        buf_clear(&out);
        assert_int_equal(to_protobuf(vectors[i].type, vectors[i].json, &out, NULL), BAY_OK);
        put_hex(&expected, vectors[i].bytes);
        assert_true(str_eq(buf_view(&out), buf_view(&expected)));
        buf_clear(&out);
        assert_true(normal_of(vectors[i].type, str_of(vectors[i].json), &out));
        buf_fini(&expected);
        buf_fini(&out);
        refuses_what_is_cut(vectors[i].json, vectors[i].type);
    }
}

/* ---- every type there and back --------------------------------------------------------------- */

/* A message with every field that may stand beside the others; `turn` picks members of oneofs and
 * lengths. With is_loose it is written as another would: snake_case, numbers, other base64. */
typedef struct maker {
    buf *out;
    size_t turn;
    bool is_loose;
} maker;

static void make_message(maker *self, a2a_type type);

static void make_value(maker *self, const a2a_field *field)
{
    static const char *const strict[] = {
        [A2A_KIND_STRING] = "\"t\\n\xc3\xa9\\u20ac\"",
        [A2A_KIND_BYTES] = "\"+/8=\"",
        [A2A_KIND_BOOL] = "true",
        [A2A_KIND_INT32] = "-7",
        [A2A_KIND_STATE] = "\"TASK_STATE_CANCELED\"",
        [A2A_KIND_STATE_0_3] = "\"TASK_STATE_CANCELLED\"",
        [A2A_KIND_ROLE] = "\"ROLE_AGENT\"",
        [A2A_KIND_STRUCT] = "{\"k\":[1,{\"\":null}],\"l\":-2.5}",
        [A2A_KIND_VALUE] = "[{\"a\":\"\\\"\"},false]",
        [A2A_KIND_TIMESTAMP] = "\"2026-01-31T23:59:59.100Z\"",
    };
    static const char *const loose[] = {
        [A2A_KIND_STRING] = "\"t\\n\xc3\xa9\\u20ac\"",
        [A2A_KIND_BYTES] = "\"-_8\"",
        [A2A_KIND_BOOL] = "true",
        [A2A_KIND_INT32] = "\"-7\"",
        [A2A_KIND_STATE] = "5",
        [A2A_KIND_STATE_0_3] = "5",
        [A2A_KIND_ROLE] = "2.0",
        [A2A_KIND_STRUCT] = "{\"k\":[1,{\"\":null}],\"l\":-2.5}",
        [A2A_KIND_VALUE] = "[{\"a\":\"\\\"\"},false]",
        [A2A_KIND_TIMESTAMP] = "\"2026-02-01T00:59:59.1+01:00\"",
    };
    if (field->kind == A2A_KIND_MESSAGE) {
        make_message(self, (a2a_type)field->type);
    } else {
        buf_str(self->out, str_of((self->is_loose ? loose : strict)[field->kind]));
    }
}

static void make_field(maker *self, const a2a_field *field)
{
    size_t count = 1 + self->turn % 2;
    if ((field->flags & A2A_FIELD_REPEATED) != 0) {
        buf_char(self->out, '[');
        for (size_t i = 0; i < count; i++) {
            buf_str(self->out, i > 0 ? STR(",") : STR(""));
            make_value(self, field);
        }
        buf_char(self->out, ']');
    } else if ((field->flags & A2A_FIELD_MAP) != 0) {
        buf_char(self->out, '{');
        for (size_t i = 0; i < count; i++) {
            buf_printf(self->out, "%s\"k%zu\":", i > 0 ? "," : "", i);
            make_value(self, field);
        }
        buf_char(self->out, '}');
    } else {
        make_value(self, field);
    }
}

static void make_message(maker *self, a2a_type type)
{
    a2a_fields fields = a2a_fields_of(type);
    size_t members = (size_t)__builtin_popcount(fields.oneof);
    size_t member = 0;
    bool is_first = true;
    buf_char(self->out, '{');
    for (uint32_t i = 0; i < fields.count; i++) {
        const a2a_field *field = &fields.at[i];
        if ((field->flags & A2A_FIELD_ONEOF) != 0 && member++ != self->turn % members) {
            continue;
        }
        bay_str name = self->is_loose ? field->name : field->json;
        buf_printf(self->out, "%s\"%.*s\":", is_first ? "" : ",", BAY_STR(name));
        is_first = false;
        make_field(self, field);
    }
    buf_char(self->out, '}');
}

static void goes_there_and_back(a2a_type type, size_t turn)
{
    buf strict;
    buf loose;
    buf normal;
    buf bytes;
    buf back;
    buf_init(&strict, 1U << 24);
    buf_init(&loose, 1U << 24);
    buf_init(&normal, 1U << 24);
    buf_init(&bytes, 1U << 24);
    buf_init(&back, 1U << 24);
    make_message(&(maker){&strict, turn, false}, type);
    make_message(&(maker){&loose, turn, true}, type);
    buf_char(&strict, '\0');
    buf_char(&loose, '\0');
    strict.len--;
    loose.len--;
    assert_true(normal_of(type, buf_view(&strict), &normal));
    buf_clear(&normal);
    normal_of(type, buf_view(&loose), &normal);
    assert_text(buf_view(&normal), strict.at);
    assert_int_equal(to_protobuf(type, strict.at, &bytes, NULL), BAY_OK);
    assert_int_equal(a2a_from_protobuf(type, buf_view(&bytes), &back, NULL), BAY_OK);
    buf again; /* strings come back without needless escapes */
    buf_init(&again, 1U << 24);
    buf_char(&back, '\0');
    assert_int_equal(to_protobuf(type, back.at, &again, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&again), buf_view(&bytes)));
    buf_clear(&again);
    assert_int_equal(to_protobuf(type, loose.at, &again, NULL), BAY_OK);
    assert_true(str_eq(buf_view(&again), buf_view(&bytes)));
    buf_fini(&again);
    buf_fini(&strict);
    buf_fini(&loose);
    buf_fini(&normal);
    buf_fini(&bytes);
    buf_fini(&back);
}

static void every_type_goes_there_and_back(void **state)
{
    (void)state;
    for (a2a_type type = 1; type < A2A_TYPES; type++) {
        for (size_t turn = 0; turn < 6; turn++) {
            goes_there_and_back(type, turn);
        }
    }
}

/* Lengths of one, two, three and four bytes, inside each other. */
static void lengths_of_every_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,     100,   119,   120,     121,    127,
                                   128, 16370, 16383, 16384, 2097140, 2097152};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        buf json;
        buf bytes;
        buf back;
        buf_init(&json, 1U << 24);
        buf_init(&bytes, 1U << 24);
        buf_init(&back, 1U << 24);
        buf_lit(&json,
                "{\"statusUpdate\":{\"taskId\":\"t\",\"contextId\":\"\",\"status\":{\"state\":"
                "\"TASK_STATE_WORKING\",\"message\":{\"messageId\":\"m\",\"role\":"
                "\"ROLE_AGENT\",\"parts\":[{\"data\":[[\"");
        for (size_t c = 0; c < sizes[i]; c++) {
            buf_char(&json, 'x');
        }
        buf_lit(&json, "\"]]}]}}}}");
        buf_char(&json, '\0');
        buf_lit(&bytes, "before");
        assert_int_equal(to_protobuf(A2A_TYPE_STREAM_RESPONSE, json.at, &bytes, NULL), BAY_OK);
        assert_true(str_starts(buf_view(&bytes), STR("before")));
        assert_int_equal(
            a2a_from_protobuf(A2A_TYPE_STREAM_RESPONSE, str_from(buf_view(&bytes), 6), &back, NULL),
            BAY_OK);
        assert_text(buf_view(&back), json.at);
        buf_fini(&back);
        buf_fini(&bytes);
        buf_fini(&json);
    }
}

/* What a Struct cannot hold is rounded, and nothing else. */
static void only_large_integers_lose(void **state)
{
    (void)state;
    buf bytes;
    buf back;
    buf_init(&bytes, 1U << 20);
    buf_init(&back, 1U << 20);
    assert_int_equal(to_protobuf(A2A_TYPE_PART,
                                 "{\"data\":[9007199254740993,1.50,1e2,-0.0,{\"a\":1,\"a\":2}]}",
                                 &bytes, NULL),
                     BAY_OK);
    assert_int_equal(a2a_from_protobuf(A2A_TYPE_PART, buf_view(&bytes), &back, NULL), BAY_OK);
    assert_text(buf_view(&back), "{\"data\":[9007199254740992,1.5,100,-0,{\"a\":2}]}");
    buf_fini(&back);
    buf_fini(&bytes);
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    text_doc doc;
    json_val value = text_doc_parse(&doc, str_of(vectors[1].json));
    buf bytes;
    buf_init(&bytes, 1U << 20);
    put_hex(&bytes, vectors[1].bytes);
    buf blocks; /* a message in two blocks, a map with many keys, a string with escapes */
    buf_init(&blocks, 1U << 20);
    put_hex(&blocks, "0a0175");
    for (char key = 'a'; key < 'z'; key++) {
        protobuf_put_bytes(&blocks, 3, (bay_str){(char[]){0x0a, 1, key}, 3});
    }
    text_doc part;
    json_val escaped =
        text_doc_parse(&part, STR("{\"data\":[\"\\n\",[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]"
                                  "]]]]]]]],[],[],[],[],[],[],[],[],[],[],[],[]]}"));
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        buf_init(&out, 1U << 20);
        bay_err err = a2a_to_protobuf(A2A_TYPE_AGENT_CARD, value, &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_clear(&out);
        err = a2a_to_protobuf(A2A_TYPE_PART, escaped, &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_clear(&out);
        err = a2a_from_protobuf(A2A_TYPE_AGENT_CARD, buf_view(&bytes), &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_clear(&out);
        err = a2a_from_protobuf(A2A_TYPE_CLIENT_CREDENTIALS_OAUTH_FLOW, buf_view(&blocks), &out,
                                NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_clear(&out);
        err = a2a_from_protobuf(A2A_TYPE_SECURITY_SCHEME,
                                (bay_str){"\x2a\x03\x0a\x01\x61\x2a\x00", 7}, &out, NULL);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_fini(&out);
        failing_memory_check();
    }
    for (size_t room = 0; room < bytes.len; room += 7) {
        buf out;
        buf_init(&out, room);
        assert_int_equal(a2a_to_protobuf(A2A_TYPE_AGENT_CARD, value, &out, NULL), BAY_ERR_LIMIT);
        assert_int_equal(out.len, 0);
        buf_clear(&out);
        assert_int_equal(a2a_from_protobuf(A2A_TYPE_AGENT_CARD, buf_view(&bytes), &out, NULL),
                         BAY_ERR_LIMIT);
        assert_int_equal(out.len, 0);
        buf_fini(&out);
    }
    buf_fini(&blocks);
    buf_fini(&bytes);
    text_doc_forget(&part);
    text_doc_forget(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speaks_as_a_runtime_does),
        cmocka_unit_test(every_type_goes_there_and_back),
        cmocka_unit_test(lengths_of_every_size),
        cmocka_unit_test(only_large_integers_lose),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
