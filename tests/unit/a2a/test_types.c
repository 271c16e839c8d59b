/* ProtoJSON as peers write it, and what becomes of it: every fault with its path, every way of
 * writing the same thing, the one normal form. */
#include "types_case.h"

#include "a2a/table.h"
#include "support/failing_memory.h"

/* ---- what is refused ------------------------------------------------------------------------- */

typedef struct refused {
    a2a_type type;
    const char *json;
    const char *fault;
} refused;

#define PART(json) "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[" json "]}"
#define STATUS(json) "{\"id\":\"t\",\"status\":" json "}"

static const refused refused_texts[] = {
    {A2A_TYPE_TASK, "[]", "must be an object"},
    {A2A_TYPE_TASK, "null", "must be an object"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{}", "message: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":null}", "message: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":[]}", "message: must be an object"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":{}}", "message.messageId: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":{\"messageId\":\"\"}}",
     "message.messageId: must not be empty"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":{\"messageId\":1}}",
     "message.messageId: must be a string"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":{\"messageId\":\"m\"}}",
     "message.role: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "{\"message\":" PART("{\"raw\":\"?\"}") "}",
     "message.parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, "{\"messageId\":\"m\",\"role\":\"ROLE_USER\"}", "parts: is required"},
    {A2A_TYPE_MESSAGE, PART(""), "parts: must not be empty"},
    {A2A_TYPE_MESSAGE, "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":{}}",
     "parts: must be an array"},
    {A2A_TYPE_MESSAGE, PART("null"), "parts[0]: must be an object"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"a\"},{}"), "parts[1]: has none of text, raw, url, data"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":null}"), "parts[0]: has none of text, raw, url, data"},
    {A2A_TYPE_MESSAGE, PART("{\"kind\":\"text\"}"), "parts[0]: has none of text, raw, url, data"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"url\":\"\"}"),
     "parts[0]: has two of text, raw, url, data"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"data\":null}"),
     "parts[0]: has two of text, raw, url, data"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":{}}"), "parts[0].text: must be a string"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\\ud800\"}"), "parts[0].text: is not valid Unicode"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":7}"), "parts[0].raw: must be a string"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"A\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"AB\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"AAB\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"AAA==\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"AA=\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"====\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"+-AA\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"AA AA\"}"), "parts[0].raw: is not base64"},
    {A2A_TYPE_MESSAGE, PART("{\"raw\":\"\\ud800\"}"), "parts[0].raw: is not valid Unicode"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"metadata\":[]}"),
     "parts[0].metadata: must be an object"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"text\":\"\"}"), "parts[0].text: is given twice"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"te\\u0078t\":\"\"}"),
     "parts[0].text: is given twice"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\",\"mediaType\":\"\",\"media_type\":null}"),
     "parts[0].mediaType: is given twice"},
    {A2A_TYPE_MESSAGE, "{\"role\":\"user\"}", "role: there is no such value"},
    {A2A_TYPE_MESSAGE, "{\"role\":3}", "role: there is no such value"},
    {A2A_TYPE_MESSAGE, "{\"role\":-1}", "role: there is no such value"},
    {A2A_TYPE_MESSAGE, "{\"role\":true}", "role: there is no such value"},
    {A2A_TYPE_MESSAGE, "{\"role\":\"1\"}", "role: there is no such value"},
    {A2A_TYPE_MESSAGE, "{\"role\":0}", "role: must not be empty"},
    {A2A_TYPE_MESSAGE, "{\"role\":\"ROLE_UNSPECIFIED\"}", "role: must not be empty"},
    {A2A_TYPE_MESSAGE, "{\"extensions\":[\"a\",null]}", "extensions[1]: must be a string"},
    {A2A_TYPE_TASK, "{\"id\":\"t\"}", "status: is required"},
    {A2A_TYPE_TASK, STATUS("{\"state\":\"completed\"}"), "status.state: there is no such value"},
    {A2A_TYPE_TASK, STATUS("{\"state\":\"TASK_STATE_CANCELLED\"}"),
     "status.state: there is no such value"},
    {A2A_TYPE_V1_TASK, STATUS("{\"state\":\"TASK_STATE_CANCELED\"}"),
     "status.state: there is no such value"},
    {A2A_TYPE_TASK, STATUS("{\"state\":9}"), "status.state: there is no such value"},
    {A2A_TYPE_TASK, STATUS("{\"state\":1.5}"), "status.state: there is no such value"},
    {A2A_TYPE_TASK, "{\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"url\":1}]}]}",
     "artifacts[0].parts[0].url: must be a string"},
    {A2A_TYPE_TASK_STATUS_UPDATE_EVENT, "{\"status\":{}}", "taskId: is required"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"\"}", "id: must not be empty"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":1.5}",
     "historyLength: must be a whole number of 32 bits"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":2147483648}",
     "historyLength: must be a whole number of 32 bits"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":\"-2147483649\"}",
     "historyLength: must be a whole number of 32 bits"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":\"99999999999999999999\"}",
     "historyLength: must be a whole number"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":\"\"}",
     "historyLength: must be a whole number"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":\"-\"}",
     "historyLength: must be a whole number"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"historyLength\":\"1 \"}",
     "historyLength: must be a whole number"},
    {A2A_TYPE_GET_TASK_REQUEST, "{\"id\":\"t\",\"history_length\":true}",
     "historyLength: must be a whole number"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"includeArtifacts\":\"true\"}",
     "includeArtifacts: must be true or false"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"includeArtifacts\":1}",
     "includeArtifacts: must be true or false"},
    {A2A_TYPE_STREAM_RESPONSE, "{}", "has none of task, message, statusUpdate, artifactUpdate"},
    {A2A_TYPE_STREAM_RESPONSE,
     "{\"message\":" PART("{\"text\":\"\"}") ",\"task\":" STATUS("{\"state\":1}") "}",
     "has two of task, message, statusUpdate, artifactUpdate"},
    {A2A_TYPE_SEND_MESSAGE_RESPONSE, "{\"kind\":\"task\"}", "has none of task, message"},
    {A2A_TYPE_AGENT_CARD, "{\"securitySchemes\":{\"a\\\"b\":{}}}",
     "securitySchemes[\"a\\\"b\"]: has none of apiKeySecurityScheme, httpAuthSecurityScheme, "
     "oauth2SecurityScheme, openIdConnectSecurityScheme, mtlsSecurityScheme"},
    {A2A_TYPE_AGENT_CARD, "{\"securitySchemes\":{\"a\":null}}",
     "securitySchemes[\"a\"]: must be an object"},
    {A2A_TYPE_AGENT_CARD, "{\"securitySchemes\":[]}", "securitySchemes: must be an object"},
    {A2A_TYPE_AGENT_CARD, "{\"securityRequirements\":[{\"schemes\":{\"k\":{},\"\\u006b\":{}}}]}",
     "securityRequirements[0].schemes: has a member twice"},
    {A2A_TYPE_AGENT_CARD, "{\"securityRequirements\":[{\"schemes\":{\"k\":[\"x\",7]}}]}",
     "securityRequirements[0].schemes[\"k\"][1]: must be a string"},
    {A2A_TYPE_AGENT_CARD, "{\"securityRequirements\":[{\"schemes\":{\"\\udc00\":{}}}]}",
     "securityRequirements[0].schemes[\"\\udc00\"]: is not valid Unicode"},
    {A2A_TYPE_AGENT_CARD,
     "{\"securityRequirements\":[{\"schemes\":{\"0123456789012345678901234567890123456789x\":"
     "{\"list\":[1]}}}]}",
     "securityRequirements[0].schemes[\"0123456789012345678901234567890123456789\"].list[0]: "
     "must be a string"},
    {A2A_TYPE_AGENT_CARD, "{\"name\":\"n\",\"supportedInterfaces\":[]}",
     "supportedInterfaces: must not be empty"},
    {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, "{\"request\":{\"content\":[{}]}}",
     "message.content[0]: has none of text, file, data"},
    {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, "{\"request\":{\"content\":[{\"file\":{}}]}}",
     "message.content[0].file: has none of fileWithUri, fileWithBytes"},
    {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, "{\"request\":{},\"message\":{}}",
     "message: is given twice"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused_texts); i++) {
        const refused *row = &refused_texts[i];
        text_doc doc;
        json_val value = text_doc_parse(&doc, str_of(row->json));
        a2a_fault fault = {0};
        bool is_normal = true;
        buf out;
        buf_init(&out, 1U << 20);
        buf_lit(&out, "kept");
        bay_err err = a2a_normalise(row->type, value, &out, &is_normal, &fault);
        if (err != BAY_ERR_PROTOCOL || strcmp(fault.text, row->fault) != 0) {
            print_error("%s\n  %s\n  %s\n", row->json, row->fault, fault.text);
        }
        assert_int_equal(err, BAY_ERR_PROTOCOL);
        assert_int_equal(fault.error, A2A_E_INVALID_PARAMS);
        assert_string_equal(fault.text, row->fault);
        assert_text(buf_view(&out), "kept");
        assert_true(is_normal);
        assert_int_equal(a2a_normalise(row->type, value, &out, &is_normal, NULL), BAY_ERR_PROTOCOL);
        buf_fini(&out);
        text_doc_forget(&doc);
    }
}

static const char *const wrong_times[] = {
    "",
    "2026",
    "2026-01-31",
    "2026-01-31T10:00:00",
    "2026-01-31 10:00:00Z",
    "2026-02-29T10:00:00Z",
    "1900-02-29T10:00:00Z",
    "2026-13-01T10:00:00Z",
    "2026-00-01T10:00:00Z",
    "2026-04-31T10:00:00Z",
    "2026-04-00T10:00:00Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "2026-01-31T24:00:00Z",
    "2026-01-31T10:60:00Z",
    "2026-01-31T10:00:60Z",
    "2026-01-31T10:00:00.Z",
    "2026-01-31T10:00:00+24:00",
    "2026-01-31T10:00:00+01:60",
    "2026-01-31T10:00:00+0100",
    "2026-01-31T10:00:00Zx",
    "+026-01-31T10:00:00Z",
};

static void refuses_what_is_no_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong_times); i++) {
        buf text;
        buf_init(&text, 1U << 10);
        buf_printf(&text, "{\"statusTimestampAfter\":\"%s\"}", wrong_times[i]);
        text_doc doc;
        json_val value = text_doc_parse(&doc, buf_view(&text));
        a2a_fault fault = {0};
        bool is_normal;
        assert_int_equal(
            a2a_normalise(A2A_TYPE_LIST_TASKS_REQUEST, value, &text, &is_normal, &fault),
            BAY_ERR_PROTOCOL);
        assert_string_equal(fault.text, "statusTimestampAfter: is no time as in RFC 3339");
        text_doc_forget(&doc);
        buf_fini(&text);
    }
}

/* `text` with `count` times `what` in between. */
static void repeat(buf *out, const char *head, const char *what, size_t count, const char *tail)
{
    buf_str(out, str_of(head));
    for (size_t i = 0; i < count; i++) {
        buf_str(out, str_of(what));
    }
    buf_str(out, str_of(tail));
}

static void expect_fault(a2a_type type, buf *text, const char *expected)
{
    text_doc doc;
    json_val value = text_doc_parse(&doc, buf_view(text));
    a2a_fault fault = {0};
    bool is_normal;
    buf out;
    buf_init(&out, 1U << 26);
    bay_err err = a2a_normalise(type, value, &out, &is_normal, &fault);
    if (expected == NULL) {
        assert_int_equal(err, BAY_OK);
    } else {
        assert_int_equal(err, BAY_ERR_PROTOCOL);
        assert_string_equal(fault.text, expected);
    }
    buf_fini(&out);
    buf_clear(text);
    text_doc_forget(&doc);
}

static void respects_the_bounds(void **state)
{
    (void)state;
    buf text;
    buf_init(&text, 1U << 26);
    const char *head = "{\"messageId\":\"m\",\"role\":1,\"parts\":[";
    repeat(&text, head, "{\"text\":\"\"},", A2A_PARTS - 1, "{\"url\":\"\"}]}");
    expect_fault(A2A_TYPE_MESSAGE, &text, NULL);
    repeat(&text, head, "{\"text\":\"\"},", A2A_PARTS, "{\"url\":\"\"}]}");
    expect_fault(A2A_TYPE_MESSAGE, &text, "parts: too many");
    repeat(&text, "{\"content\":[", "{\"text\":\"\"},", A2A_PARTS, "{\"text\":\"\"}]}");
    expect_fault(A2A_TYPE_V1_MESSAGE, &text, "content: too many");

    /* Chunks have become one artifact in their task; as an event it is a chunk. */
    const char *task =
        "{\"id\":\"t\",\"status\":{\"state\":1},\"artifacts\":[{\"artifactId\":\"a\","
        "\"parts\":[";
    const char *event = "{\"taskId\":\"t\",\"contextId\":\"c\",\"artifact\":{\"artifactId\":\"a\","
                        "\"parts\":[";
    repeat(&text, task, "{\"text\":\"\"},", A2A_WHOLE_PARTS - 1, "{\"text\":\"\"}]}]}");
    expect_fault(A2A_TYPE_TASK, &text, NULL);
    repeat(&text, task, "{\"text\":\"\"},", A2A_WHOLE_PARTS, "{\"text\":\"\"}]}]}");
    expect_fault(A2A_TYPE_TASK, &text, "artifacts[0].parts: too many");
    repeat(&text, event, "{\"text\":\"\"},", A2A_PARTS - 1, "{\"text\":\"\"}]}}");
    expect_fault(A2A_TYPE_TASK_ARTIFACT_UPDATE_EVENT, &text, NULL);
    repeat(&text, event, "{\"text\":\"\"},", A2A_PARTS, "{\"text\":\"\"}]}}");
    expect_fault(A2A_TYPE_TASK_ARTIFACT_UPDATE_EVENT, &text, "artifact.parts: too many");

    repeat(&text, "{\"text\":\"", "x", A2A_PART_BYTES, "\"}");
    expect_fault(A2A_TYPE_PART, &text, NULL);
    repeat(&text, "{\"text\":\"\\n", "x", A2A_PART_BYTES - 1, "\"}");
    expect_fault(A2A_TYPE_PART, &text, NULL);
    repeat(&text, "{\"text\":\"", "x", A2A_PART_BYTES + 1, "\"}");
    expect_fault(A2A_TYPE_PART, &text, "text: too long");
    repeat(&text, "{\"text\":\"\\n", "x", A2A_PART_BYTES, "\"}");
    expect_fault(A2A_TYPE_PART, &text, "text: too long");
    repeat(&text, "{\"raw\":\"", "AAAA", A2A_PART_BYTES / 3, "AA==\"}");
    expect_fault(A2A_TYPE_PART, &text, NULL);
    repeat(&text, "{\"raw\":\"", "AAAA", A2A_PART_BYTES / 3 + 1, "\"}");
    expect_fault(A2A_TYPE_PART, &text, "raw: too long");

    /* the part is one level, its data the rest */
    repeat(&text, "{\"data\":", "[", A2A_DEPTH - 1, "1");
    repeat(&text, "", "]", A2A_DEPTH - 1, "}");
    expect_fault(A2A_TYPE_PART, &text, NULL);
    repeat(&text, "{\"data\":", "[", A2A_DEPTH, "1");
    repeat(&text, "", "]", A2A_DEPTH, "}");
    expect_fault(A2A_TYPE_PART, &text, "data: nested too deeply");
    repeat(&text, "{\"metadata\":", "{\"\":", A2A_DEPTH, "1");
    repeat(&text, "", "}", A2A_DEPTH, ",\"url\":\"\"}");
    expect_fault(A2A_TYPE_PART, &text, "metadata: nested too deeply");
    buf_fini(&text);
}

/* ---- what is taken --------------------------------------------------------------------------- */

typedef struct taken {
    a2a_type type;
    const char *json;
    const char *normal; /* NULL: it is */
} taken;

static const taken taken_texts[] = {
    {A2A_TYPE_EMPTY, "{}", NULL},
    {A2A_TYPE_EMPTY, "{\"x\":1}", "{}"},
    {A2A_TYPE_MESSAGE, PART("{\"text\":\"\"}"), NULL},
    {A2A_TYPE_MESSAGE,
     "{ \"role\":\"ROLE_AGENT\", \"parts\":[ {\"text\" : \"a\\u00e9\\n\"} ],"
     "\"messageId\":\"m\" }",
     NULL},
    {A2A_TYPE_MESSAGE,
     "{\n \"role\":\"ROLE_AGENT\",\r\n\"parts\":[{\"data\":{\n\"a b\" :\n[1,\n2]}}],"
     "\n\"messageId\":\"m\"}\n",
     "{\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":{\"a b\":[1,2]}}],\"messageId\":\"m\"}"},
    {A2A_TYPE_MESSAGE,
     "{\"message_id\":\"m\",\"context_id\":\"\",\"task_id\":null,\"role\":2,\"parts\":"
     "[{\"text\":\"x\",\"media_type\":\"text/plain\",\"filename\":\"\",\"unknown\":[1,{}]}],"
     "\"extensions\":[],\"metadata\":{},\"reference_task_ids\":[\"a\",\"\"]}",
     "{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"x\",\"mediaType\":"
     "\"text/plain\"}],\"metadata\":{},\"referenceTaskIds\":[\"a\",\"\"]}"},
    {A2A_TYPE_MESSAGE,
     "{\"mess\\u0061geId\":\"m\",\"role\":\"ROLE\\u005fUSER\",\"parts\":"
     "[{\"\\u0075rl\":\"\\u0061\"}]}",
     "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"url\":\"\\u0061\"}]}"},
    /* what is free stays as it is, duplicates and all */
    {A2A_TYPE_PART, "{\"data\":null}", NULL},
    {A2A_TYPE_PART, "{\"data\":\"\\ud800\"}", NULL},
    {A2A_TYPE_PART, "{\"data\": [1.50, 1e400, {\"a\":1,\"a\":2}]}", NULL},
    {A2A_TYPE_PART, "{\"text\":\"\",\"metadata\":{\"a\":null,\"b_c\":[],\"a\":{}}}", NULL},
    {A2A_TYPE_PART, "{\"text\":null,\"raw\":null,\"url\":\"u\",\"metadata\":null}",
     "{\"url\":\"u\"}"},
    {A2A_TYPE_PART, "{\"raw\":\"\"}", NULL},
    {A2A_TYPE_PART, "{\"raw\":\"/+AA\"}", NULL},
    {A2A_TYPE_PART, "{\"raw\":\"/+A=\"}", NULL},
    {A2A_TYPE_PART, "{\"raw\":\"/w==\"}", NULL},
    {A2A_TYPE_PART, "{\"raw\":\"_w\"}", "{\"raw\":\"/w==\"}"},
    {A2A_TYPE_PART, "{\"raw\":\"_w==\"}", "{\"raw\":\"/w==\"}"},
    {A2A_TYPE_PART, "{\"raw\":\"_-A\"}", "{\"raw\":\"/+A=\"}"},
    {A2A_TYPE_PART, "{\"raw\":\"\\/+AA\"}", "{\"raw\":\"/+AA\"}"},
    {A2A_TYPE_PART, "{\"raw\":\"AA\"}", "{\"raw\":\"AA==\"}"},
    /* enums, numbers */
    {A2A_TYPE_TASK_STATUS, "{\"state\":\"TASK_STATE_AUTH_REQUIRED\"}", NULL},
    {A2A_TYPE_TASK_STATUS, "{\"state\":5}", "{\"state\":\"TASK_STATE_CANCELED\"}"},
    {A2A_TYPE_TASK_STATUS, "{\"state\":5.0}", "{\"state\":\"TASK_STATE_CANCELED\"}"},
    {A2A_TYPE_TASK_STATUS, "{}", "{\"state\":\"TASK_STATE_UNSPECIFIED\"}"},
    {A2A_TYPE_TASK_STATUS, "{\"state\":\"TASK_STATE_UNSPECIFIED\"}", NULL},
    {A2A_TYPE_V1_TASK_STATUS, "{\"state\":\"TASK_STATE_CANCELLED\"}", NULL},
    {A2A_TYPE_V1_TASK_STATUS, "{\"state\":5}", "{\"state\":\"TASK_STATE_CANCELLED\"}"},
    {A2A_TYPE_V1_TASK_STATUS, "{\"state\":\"TASK_STATE_UNSPECIFIED\",\"update\":null}", "{}"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"status\":\"TASK_STATE_UNSPECIFIED\",\"tenant\":\"\"}", "{}"},
    {A2A_TYPE_LIST_TASKS_REQUEST,
     "{\"pageSize\":0,\"historyLength\":-7,\"includeArtifacts\":false}", NULL},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"pageSize\":1e2,\"historyLength\":\"-2147483648\"}",
     "{\"pageSize\":100,\"historyLength\":-2147483648}"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"pageSize\":\"2147483647\",\"historyLength\":-0}",
     "{\"pageSize\":2147483647,\"historyLength\":0}"},
    {A2A_TYPE_LIST_PUSH_CONFIGS_REQUEST, "{\"taskId\":\"t\",\"pageSize\":0}", "{\"taskId\":\"t\"}"},
    {A2A_TYPE_SEND_MESSAGE_CONFIGURATION, "{\"returnImmediately\":false,\"historyLength\":null}",
     "{}"},
    {A2A_TYPE_SEND_MESSAGE_CONFIGURATION, "{\"returnImmediately\":true}", NULL},
    /* what is REQUIRED and may be empty stands there in any case */
    {A2A_TYPE_LIST_TASKS_RESPONSE, "{}",
     "{\"tasks\":[],\"nextPageToken\":\"\",\"pageSize\":0,\"totalSize\":0}"},
    {A2A_TYPE_LIST_TASKS_RESPONSE,
     "{\"tasks\":[],\"nextPageToken\":\"\",\"pageSize\":0,\"totalSize\":0}", NULL},
    {A2A_TYPE_LIST_TASKS_RESPONSE, "{\"totalSize\":\"3\"}",
     "{\"totalSize\":3,\"tasks\":[],\"nextPageToken\":\"\",\"pageSize\":0}"},
    {A2A_TYPE_TASK_STATUS_UPDATE_EVENT, "{\"taskId\":\"t\",\"status\":{\"state\":1}}",
     "{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_SUBMITTED\"},\"contextId\":\"\"}"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":{}}", "{}"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":{\"\":{},\"b\":{\"list\":[]}}}",
     "{\"schemes\":{\"\":{},\"b\":{}}}"},
    {A2A_TYPE_SECURITY_REQUIREMENT,
     "{\"schemes\":{\"a\":[\"x\",\"y\"],\"b\":[]}}", /* no message around */
     "{\"schemes\":{\"a\":{\"list\":[\"x\",\"y\"]},\"b\":{}}}"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":{\"\\u0061\":{\"list\":[\"x\"]}}}", NULL},
    {A2A_TYPE_CLIENT_CREDENTIALS_OAUTH_FLOW, "{\"tokenUrl\":\"u\"}",
     "{\"tokenUrl\":\"u\",\"scopes\":{}}"},
    {A2A_TYPE_V1_SEND_MESSAGE_REQUEST, "{\"request\":{\"content\":[{\"text\":\"\"}]}}",
     "{\"message\":{\"content\":[{\"text\":\"\"}]}}"},
    {A2A_TYPE_OAUTH_FLOWS, "{}", NULL},
};

static void takes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(taken_texts); i++) {
        const taken *row = &taken_texts[i];
        const char *expected = row->normal != NULL ? row->normal : row->json;
        buf out;
        buf_init(&out, 1U << 20);
        assert_int_equal(normal_of(row->type, str_of(row->json), &out), row->normal == NULL);
        assert_text(buf_view(&out), expected);
        buf_clear(&out);
        assert_true(normal_of(row->type, str_of(expected), &out));
        buf_fini(&out);
    }
}

static const char *const times[][2] = {
    {"2026-01-31T23:59:59.123Z", NULL},
    {"0001-01-01T00:00:00.000Z", NULL},
    {"9999-12-31T23:59:59.999Z", NULL},
    {"1970-01-01T00:00:00.000Z", NULL},
    {"2000-02-29T12:00:00.000Z", NULL},
    {"2024-03-01T00:00:00.000Z", NULL},
    {"2023-12-31T00:00:00.000Z", NULL},
    {"1600-02-29T00:00:00.001Z", NULL},
    {"2026-01-31t23:59:59z", "2026-01-31T23:59:59.000Z"},
    {"2026-01-31T23:59:59.1Z", "2026-01-31T23:59:59.100Z"},
    {"2026-01-31T23:59:59.999999999999Z", "2026-01-31T23:59:59.999Z"},
    {"2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000Z"},
    {"2024-02-28T23:30:00-00:45", "2024-02-29T00:15:00.000Z"},
    {"1969-12-31T23:59:59.5+00:00", "1969-12-31T23:59:59.500Z"},
    {"2026-01-31T10:00:00\\u005a", "2026-01-31T10:00:00.000Z"},
};

static void takes_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        buf text;
        buf out;
        buf_init(&text, 1U << 10);
        buf_init(&out, 1U << 10);
        buf_printf(&text, "{\"statusTimestampAfter\":\"%s\"}", times[i][0]);
        assert_int_equal(normal_of(A2A_TYPE_LIST_TASKS_REQUEST, buf_view(&text), &out),
                         times[i][1] == NULL);
        buf_clear(&text);
        buf_printf(&text, "{\"statusTimestampAfter\":\"%s\"}%c",
                   times[i][1] != NULL ? times[i][1] : times[i][0], '\0');
        assert_text(buf_view(&out), text.at);
        buf_fini(&out);
        buf_fini(&text);
    }
}

/* Each field of each type is found by both its names and by its number, and nowhere else. */
static void finds_every_field(void **state)
{
    (void)state;
    size_t found = 0;
    for (a2a_type type = 1; type < A2A_TYPES; type++) {
        a2a_fields fields = a2a_fields_of(type);
        assert_true(fields.count < A2A_FIELDS_MAX);
        for (uint32_t i = 0; i < fields.count; i++, found++) {
            buf text;
            buf_init(&text, 1U << 10);
            buf_printf(&text, "{\"%.*s\":1,\"%.*s\":2,\"-\":3}", BAY_STR(fields.at[i].json),
                       BAY_STR(fields.at[i].name));
            text_doc doc;
            json_val value = text_doc_parse(&doc, buf_view(&text));
            json_iter iter = json_iter_of(value);
            bool is_json;
            assert_true(json_next(&iter));
            assert_int_equal(a2a_field_named(&fields, iter.key, fields.count - 1, &is_json), i);
            assert_true(is_json);
            assert_true(json_next(&iter));
            assert_int_equal(a2a_field_named(&fields, iter.key, 0, &is_json), i);
            assert_int_equal(is_json, str_eq(fields.at[i].json, fields.at[i].name));
            assert_true(json_next(&iter));
            assert_int_equal(a2a_field_named(&fields, iter.key, i, &is_json), A2A_NO_FIELD);
            assert_int_equal(a2a_field_numbered(&fields, fields.at[i].number, i), i);
            assert_int_equal(a2a_field_numbered(&fields, fields.at[i].number, 0), i);
            assert_int_equal(fields.at[i].type != A2A_TYPE_NONE,
                             fields.at[i].kind == A2A_KIND_MESSAGE);
            text_doc_forget(&doc);
            buf_fini(&text);
        }
        assert_int_equal(a2a_field_numbered(&fields, 0, 0), A2A_NO_FIELD);
    }
    assert_int_equal(found, 326);
}

/* The deepest path there is does not fit; what is cut is the end. */
static void cuts_long_paths(void **state)
{
    (void)state;
    text_doc doc;
    json_val value = text_doc_parse(
        &doc, STR("{\"securitySchemes\":{\"\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82"
                  "\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
                  "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\":1}}"));
    bool is_normal;
    a2a_fault fault;
    buf out;
    buf_init(&out, 64);
    assert_int_equal(a2a_normalise(A2A_TYPE_AGENT_CARD, value, &out, &is_normal, &fault),
                     BAY_ERR_PROTOCOL);
    assert_true(json_is_utf8(str_of(fault.text)));
    assert_true(str_ends(str_of(fault.text), STR("\xac\"]: must be an object")));
    text_doc_forget(&doc);
    buf_fini(&out);
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    text_doc doc;
    json_val value = text_doc_parse(
        &doc, STR("{\"securitySchemes\":{\"a\":{\"mtls_security_scheme\":{}},\"b\":"
                  "{\"mtlsSecurityScheme\":{}},\"c\":{\"mtlsSecurityScheme\":{\"description\":"
                  "\"\\n\"}}},\"capabilities\":{},\"name\":\"n\",\"supportedInterfaces\":"
                  "[{\"url\":\"u\",\"protocolBinding\":\"b\",\"protocolVersion\":\"1.0\"}]}"));
    text_doc part;
    json_val raw = text_doc_parse(&part, STR("{\"raw\":\"\\/w\"}"));
    text_doc wrong;
    json_val none = text_doc_parse(&wrong, STR("{\"text\":\"\",\"url\":\"\"}"));
    for (size_t at = 0; failing_memory_start(at); at++) {
        buf out;
        bool is_normal;
        a2a_fault fault;
        buf_init(&out, 1U << 20);
        bay_err err = a2a_normalise(A2A_TYPE_AGENT_CARD, value, &out, &is_normal, &fault);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        buf_clear(&out);
        err = a2a_normalise(A2A_TYPE_PART, raw, &out, &is_normal, &fault);
        assert_true(err == BAY_OK || (err == BAY_ERR_NOMEM && out.len == 0));
        assert_int_equal(a2a_normalise(A2A_TYPE_PART, none, &out, &is_normal, &fault),
                         BAY_ERR_PROTOCOL);
        assert_true(fault.text[0] != '\0');
        buf_fini(&out);
        failing_memory_check();
    }
    /* and of room */
    buf out;
    bool is_normal;
    buf_init(&out, 40);
    assert_int_equal(a2a_normalise(A2A_TYPE_AGENT_CARD, value, &out, &is_normal, NULL),
                     BAY_ERR_LIMIT);
    assert_int_equal(out.len, 0);
    buf_fini(&out);
    text_doc_forget(&doc);
    text_doc_forget(&part);
    text_doc_forget(&wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_what_is_no_time),
        cmocka_unit_test(respects_the_bounds),
        cmocka_unit_test(takes),
        cmocka_unit_test(takes_times),
        cmocka_unit_test(finds_every_field),
        cmocka_unit_test(cuts_long_paths),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
