/* Protobuf as peers may write it: what is refused, with its place; what is merged, skipped, cut off
 * or counts last. */
#include "protobuf_case.h"

#include <stdio.h>

#include "a2a/protobuf.h"
#include "a2a/scalar.h"

/* ---- what is refused ------------------------------------------------------------------------- */

typedef struct refused {
    a2a_type type;
    const char *bytes;
    const char *fault;
} refused;

#define BROKEN "is not valid protobuf"
#define WIRE "is of another wire type"

static const refused refused_bytes[] = {
    /* truncated */
    {A2A_TYPE_EMPTY, "0a", BROKEN},
    {A2A_TYPE_EMPTY, "0a01", BROKEN},
    {A2A_TYPE_EMPTY, "0a80", BROKEN},
    {A2A_TYPE_EMPTY, "08", BROKEN},
    {A2A_TYPE_EMPTY, "0880", BROKEN},
    {A2A_TYPE_EMPTY, "80", BROKEN},
    {A2A_TYPE_EMPTY, "0900000000000000", BROKEN},
    {A2A_TYPE_EMPTY, "0d000000", BROKEN},
    /* a length beyond everything */
    {A2A_TYPE_EMPTY, "0affffffff0f", BROKEN},
    {A2A_TYPE_EMPTY, "0affffffffffffffffff01", BROKEN},
    /* varints of more than 64 bits, tags of more than 32 */
    {A2A_TYPE_EMPTY, "08ffffffffffffffffff02", BROKEN},
    {A2A_TYPE_EMPTY, "0880808080808080808080 00", BROKEN},
    {A2A_TYPE_EMPTY, "8080808010 00", BROKEN},
    /* no such field, groups, no such wire type */
    {A2A_TYPE_EMPTY, "0000", BROKEN},
    {A2A_TYPE_EMPTY, "0200", BROKEN},
    {A2A_TYPE_EMPTY, "0b0c", BROKEN},
    {A2A_TYPE_EMPTY, "0c", BROKEN},
    {A2A_TYPE_EMPTY, "0e00", BROKEN},
    {A2A_TYPE_EMPTY, "0f00", BROKEN},
    /* a field of another wire type: id as a number, state as bytes, a message as a number */
    {A2A_TYPE_TASK, "0801", "id: " WIRE},
    {A2A_TYPE_TASK, "1801", "status: " WIRE},
    {A2A_TYPE_TASK, "0a01741a020a00", "status.state: " WIRE},
    {A2A_TYPE_TASK, "0a01741a050d00000000", "status.state: " WIRE},
    {A2A_TYPE_TASK, "0a01741a0308011a", "status: " BROKEN},
    {A2A_TYPE_TASK, "0a01741a0508011a0108", "status.timestamp: " BROKEN},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0801", "schemes: " WIRE},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0a020801", "schemes: " BROKEN},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0a01ff", "schemes: " BROKEN},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0a070a016b12020801", "schemes[\"k\"].list: " WIRE},
    {A2A_TYPE_TASK, "0a01741a020801 3201 08", "metadata: " BROKEN},
    {A2A_TYPE_TASK, "0a01741a020801 3202 0801", "metadata: " BROKEN},
    {A2A_TYPE_PART, "2202 1000", "data: " BROKEN},
    {A2A_TYPE_PART, "2203 320108", "data: " BROKEN},
    {A2A_TYPE_PART, "2204 32020801", "data: " BROKEN},
    /* what is required */
    {A2A_TYPE_TASK, "", "id: is required"},
    {A2A_TYPE_TASK, "0a00", "id: must not be empty"},
    {A2A_TYPE_TASK, "0a0174", "status: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "1200", "message.messageId: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "12030a016d", "message.role: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "12050a016d2000", "message.role: must not be empty"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "12050a016d2001", "message.parts: is required"},
    {A2A_TYPE_SEND_MESSAGE_REQUEST, "12070a016d20012a00",
     "message.parts[0]: has none of text, raw, url, data"},
    {A2A_TYPE_STREAM_RESPONSE, "", "has none of task, message, statusUpdate, artifactUpdate"},
    /* values that are none */
    {A2A_TYPE_TASK_STATUS, "0809", "state: there is no such value"},
    {A2A_TYPE_TASK_STATUS, "08ffffffffffffffffff01", "state: there is no such value"},
    {A2A_TYPE_PART, "0a01ff", "text: is not valid Unicode"},
    {A2A_TYPE_PART, "0a03eda080", "text: is not valid Unicode"},
    {A2A_TYPE_PART, "2203 1a01ff", "data: is not valid Unicode"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0a030a01ff", "schemes: is not valid Unicode"},
    {A2A_TYPE_PART, "2209 11 000000000000f07f", "data: has a number that JSON has not"},
    {A2A_TYPE_PART, "2209 11 010000000000f8ff", "data: has a number that JSON has not"},
    {A2A_TYPE_TASK_STATUS, "08011a0a08ffffffffffffffff7f", "timestamp: " A2A_NO_TIME},
    {A2A_TYPE_TASK_STATUS, "08011a06108094ebdc03", "timestamp: " A2A_NO_TIME},
    {A2A_TYPE_TASK_STATUS, "08011a0b10ffffffffffffffffff01", "timestamp: " A2A_NO_TIME},
    {A2A_TYPE_TASK_STATUS, "08011a020a00", "timestamp: " BROKEN},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused_bytes); i++) {
        const refused *row = &refused_bytes[i];
        buf out;
        a2a_fault fault = {0};
        buf_init(&out, 1U << 20);
        buf_lit(&out, "kept");
        bay_err err = from_hex(row->type, row->bytes, &out, &fault);
        if (strcmp(fault.text, row->fault) != 0) {
            print_error("%s\n  %s\n  %s\n", row->bytes, row->fault, fault.text);
        }
        assert_string_equal(fault.text, row->fault);
        assert_int_equal(err, BAY_ERR_PROTOCOL);
        assert_int_equal(fault.error, A2A_E_INVALID_PARAMS);
        assert_text(buf_view(&out), "kept");
        buf_fini(&out);
    }
}

typedef struct unfit {
    a2a_type type;
    const char *json;
    const char *fault;
} unfit;

static const unfit unfit_texts[] = {
    {A2A_TYPE_TASK, "[]", "must be an object"},
    {A2A_TYPE_TASK, "{\"id\":1}", "id: must be a string"},
    {A2A_TYPE_TASK, "{\"id\":\"\\udfff\"}", "id: is not valid Unicode"},
    {A2A_TYPE_TASK, "{\"id\":\"a\",\"i\\u0064\":\"b\"}", "id: is given twice"},
    {A2A_TYPE_TASK, "{\"status\":7}", "status: must be an object"},
    {A2A_TYPE_TASK, "{\"status\":{\"state\":\"x\"}}", "status.state: there is no such value"},
    {A2A_TYPE_TASK, "{\"status\":{\"timestamp\":\"x\"}}",
     "status.timestamp: is no time as in RFC 3339"},
    {A2A_TYPE_TASK, "{\"status\":{\"timestamp\":0}}", "status.timestamp: must be a string"},
    {A2A_TYPE_TASK, "{\"artifacts\":{}}", "artifacts: must be an array"},
    {A2A_TYPE_TASK, "{\"artifacts\":[null]}", "artifacts[0]: must be an object"},
    {A2A_TYPE_TASK, "{\"metadata\":[]}", "metadata: must be an object"},
    {A2A_TYPE_TASK, "{\"metadata\":{\"a\":1e999}}",
     "metadata: has a number beyond a double's range"},
    {A2A_TYPE_TASK, "{\"metadata\":{\"a\":[\"\\ud800\"]}}", "metadata: is not valid Unicode"},
    {A2A_TYPE_TASK, "{\"metadata\":{\"\\ud800\":1}}", "metadata: is not valid Unicode"},
    {A2A_TYPE_PART, "{\"raw\":\"A\"}", "raw: is not base64"},
    {A2A_TYPE_PART, "{\"text\":\"\",\"url\":\"\"}", "url: is given twice"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"pageSize\":1.5}",
     "pageSize: must be a whole number of 32 bits"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "{\"includeArtifacts\":0}",
     "includeArtifacts: must be true or false"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":[]}", "schemes: must be an object"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":{\"k\":1}}", "schemes[\"k\"]: must be an object"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "{\"schemes\":{\"\\ud800\":{}}}",
     "schemes[\"\\ud800\"]: is not valid Unicode"},
};

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unfit_texts); i++) {
        buf out;
        a2a_fault fault = {0};
        buf_init(&out, 1U << 20);
        buf_lit(&out, "kept");
        bay_err err = to_protobuf(unfit_texts[i].type, unfit_texts[i].json, &out, &fault);
        if (err == BAY_OK) {
            print_error("%s\n", unfit_texts[i].json);
        }
        assert_int_equal(err, BAY_ERR_PROTOCOL);
        assert_string_equal(fault.text, unfit_texts[i].fault);
        assert_text(buf_view(&out), "kept");
        buf_fini(&out);
    }
}

/* A Value of `levels` lists inside each other, or as many objects. */
static void put_lists(buf *out, size_t levels, bool are_objects)
{
    buf inner;
    buf_init(&inner, 1U << 16);
    for (size_t i = 0; i < levels; i++) {
        buf around;
        buf_init(&around, 1U << 16);
        if (are_objects && i > 0) {
            buf entry;
            buf_init(&entry, 1U << 16);
            protobuf_put_bytes(&entry, 2, buf_view(&inner));
            protobuf_put_bytes(&around, 1, buf_view(&entry));
            buf_fini(&entry);
        } else if (i > 0) {
            protobuf_put_bytes(&around, 1, buf_view(&inner));
        }
        buf_clear(&inner);
        protobuf_put_bytes(&inner, are_objects ? 5 : 6, buf_view(&around));
        buf_fini(&around);
    }
    protobuf_put_bytes(out, 4, buf_view(&inner));
    buf_fini(&inner);
}

static void respects_the_bounds(void **state)
{
    (void)state;
    buf out;
    buf bytes;
    buf_init(&out, 1U << 26);
    buf_init(&bytes, 1U << 26);
    for (int are_objects = 0; are_objects < 2; are_objects++) {
        for (size_t levels = A2A_DEPTH - 1; levels <= A2A_DEPTH; levels++) {
            a2a_fault fault = {0};
            buf_clear(&bytes);
            buf_clear(&out);
            put_lists(&bytes, levels, are_objects);
            bay_err err = a2a_from_protobuf(A2A_TYPE_PART, buf_view(&bytes), &out, &fault);
            assert_int_equal(err, levels < A2A_DEPTH ? BAY_OK : BAY_ERR_PROTOCOL);
            assert_string_equal(fault.text, levels < A2A_DEPTH ? "" : "data: nested too deeply");
        }
        /* the way back has the same end */
        for (size_t levels = A2A_DEPTH - 1; levels <= A2A_DEPTH; levels++) {
            buf_clear(&out);
            buf_clear(&bytes);
            buf_lit(&out, "{\"data\":");
            for (size_t i = 0; i < levels; i++) {
                buf_str(&out, are_objects ? STR("{\"\":") : STR("["));
            }
            buf_lit(&out, "1");
            for (size_t i = 0; i < levels; i++) {
                buf_char(&out, are_objects ? '}' : ']');
            }
            buf_lit(&out, "}\0");
            assert_int_equal(to_protobuf(A2A_TYPE_PART, out.at, &bytes, NULL),
                             levels < A2A_DEPTH ? BAY_OK : BAY_ERR_PROTOCOL);
        }
    }
    for (size_t parts = A2A_PARTS; parts <= A2A_PARTS + 1; parts++) {
        buf_clear(&out);
        buf_clear(&bytes);
        put_hex(&bytes, "0a016d 2001");
        for (size_t i = 0; i < parts; i++) {
            put_hex(&bytes, "2a020a00");
        }
        assert_int_equal(a2a_from_protobuf(A2A_TYPE_MESSAGE, buf_view(&bytes), &out, NULL),
                         parts <= A2A_PARTS ? BAY_OK : BAY_ERR_PROTOCOL);
    }
    /* In a task chunks have become one artifact: {"id":"t","status":…,"artifacts":[…]} and back. */
    for (size_t parts = A2A_WHOLE_PARTS; parts <= A2A_WHOLE_PARTS + 1; parts++) {
        buf json;
        buf_init(&json, SIZE_MAX);
        buf_clear(&out);
        buf_clear(&bytes);
        buf_lit(&json, "{\"id\":\"t\",\"status\":{\"state\":\"TASK_STATE_WORKING\"},"
                       "\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"\"}");
        for (size_t i = 1; i < parts; i++) {
            buf_lit(&json, ",{\"text\":\"\"}");
        }
        buf_lit(&json, "]}]}");
        buf_char(&json, '\0');
        assert_int_equal(to_protobuf(A2A_TYPE_TASK, json.at, &bytes, NULL), BAY_OK);
        assert_int_equal(a2a_from_protobuf(A2A_TYPE_TASK, buf_view(&bytes), &out, NULL),
                         parts <= A2A_WHOLE_PARTS ? BAY_OK : BAY_ERR_PROTOCOL);
        buf_fini(&json);
    }
    for (size_t extra = 0; extra < 2; extra++) {
        for (uint32_t number = 1; number <= 2; number++) {
            buf_clear(&out);
            buf_clear(&bytes);
            char *long_text = calloc(A2A_PART_BYTES + extra, 1);
            assert_non_null(long_text);
            memset(long_text, 'x', A2A_PART_BYTES + extra);
            protobuf_put_bytes(&bytes, number, (bay_str){long_text, A2A_PART_BYTES + extra});
            free(long_text);
            a2a_fault fault = {0};
            assert_int_equal(a2a_from_protobuf(A2A_TYPE_PART, buf_view(&bytes), &out, &fault),
                             extra == 0 ? BAY_OK : BAY_ERR_PROTOCOL);
            assert_string_equal(fault.text, extra == 0    ? ""
                                            : number == 1 ? "text: too long"
                                                          : "raw: too long");
        }
    }
    buf_fini(&bytes);
    buf_fini(&out);
}

/* Lists inside each other, each in two blocks: what a reader that merges would copy at each level.
 */
static void merges_no_more_than_is_worth_it(void **state)
{
    (void)state;
    enum { LEVELS = 50 };
    for (size_t blocks = 1; blocks <= LEVELS; blocks += LEVELS - 1) {
        buf inner;
        buf_init(&inner, 1U << 20);
        put_hex(&inner, "1a");
        protobuf_put_varint(&inner, 1000);
        for (size_t i = 0; i < 1000; i++) {
            buf_char(&inner, 'x');
        }
        for (size_t level = 0; level < LEVELS; level++) {
            buf list;
            buf_init(&list, 1U << 20);
            protobuf_put_bytes(&list, 1, buf_view(&inner));
            buf_clear(&inner);
            if (level < blocks) {
                put_hex(&inner, "3200");
            }
            protobuf_put_bytes(&inner, 6, buf_view(&list));
            buf_fini(&list);
        }
        buf bytes;
        buf out;
        a2a_fault fault = {0};
        buf_init(&bytes, 1U << 20);
        buf_init(&out, 1U << 20);
        protobuf_put_bytes(&bytes, 4, buf_view(&inner));
        assert_int_equal(a2a_from_protobuf(A2A_TYPE_PART, buf_view(&bytes), &out, &fault),
                         blocks == 1 ? BAY_OK : BAY_ERR_PROTOCOL);
        assert_string_equal(fault.text, blocks == 1 ? "" : "data: is in too many blocks");
        buf_fini(&out);
        buf_fini(&bytes);
        buf_fini(&inner);
    }
}

/* ---- what is read as protobuf says ----------------------------------------------------------- */

typedef struct reading {
    a2a_type type;
    const char *bytes;
    const char *json;
} reading;

static const reading readings[] = {
    {A2A_TYPE_EMPTY, "", "{}"},
    /* unknown fields of every kind, also a large number and a varint that could be shorter */
    {A2A_TYPE_PART, "0a0174 4801 51 0000000000000000 5a0178 65 00000000 f8ffffff0f808000",
     "{\"text\":\"t\"}"},
    /* the last one counts */
    {A2A_TYPE_PART, "0a0161 0a0162", "{\"text\":\"b\"}"},
    {A2A_TYPE_PART, "0a0161 1a0162", "{\"url\":\"b\"}"},
    {A2A_TYPE_PART, "1a0162 0a0161 3a0178 3a00", "{\"text\":\"a\"}"},
    /* a oneof's member that is its default is there all the same */
    {A2A_TYPE_PART, "0a00", "{\"text\":\"\"}"},
    {A2A_TYPE_PART, "1200", "{\"raw\":\"\"}"},
    {A2A_TYPE_PART, "1203 fbefff", "{\"raw\":\"++//\"}"},
    {A2A_TYPE_PART, "2200", "{\"data\":null}"},
    {A2A_TYPE_PART, "2202 0807", "{\"data\":null}"},
    {A2A_TYPE_PART, "2202 2002", "{\"data\":true}"},
    {A2A_TYPE_PART, "2209 11 0000000000000080", "{\"data\":-0}"},
    {A2A_TYPE_PART, "2209 11 9a9999999999b93f", "{\"data\":0.1}"},
    {A2A_TYPE_PART, "2209 11 0000000000004043", "{\"data\":9007199254740992}"},
    {A2A_TYPE_PART, "2209 11 ffffffffffff3f43", "{\"data\":9007199254740991}"},
    {A2A_TYPE_PART, "2209 11 00000000000020c0", "{\"data\":-8}"},
    {A2A_TYPE_PART, "2209 11 0000000000000440", "{\"data\":2.5}"},
    {A2A_TYPE_PART, "2209 11 9c7500883ce4377e", "{\"data\":1e+300}"},
    {A2A_TYPE_PART, "2203 1a010a", "{\"data\":\"\\n\"}"},
    {A2A_TYPE_PART, "2202 2a00", "{\"data\":{}}"},
    {A2A_TYPE_PART, "2202 3200", "{\"data\":[]}"},
    /* a Value's last member counts, and a list in two blocks is one */
    {A2A_TYPE_PART, "2205 2001 1a0178", "{\"data\":\"x\"}"},
    {A2A_TYPE_PART, "220c 3204 0a022001 3204 0a022000", "{\"data\":[true,false]}"},
    {A2A_TYPE_PART, "220e 3204 0a022001 2001 3204 0a022000", "{\"data\":[false]}"},
    {A2A_TYPE_PART, "2204 32020a00 2206 32040a022001", "{\"data\":[null,true]}"},
    /* repeated fields need not stand together */
    {A2A_TYPE_MESSAGE, "3a0161 2a021a00 0a016d 3a0162 2a030a0178 2002",
     "{\"messageId\":\"m\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"url\":\"\"},{\"text\":\"x\"}],"
     "\"extensions\":[\"a\",\"b\"]}"},
    /* a message in two blocks is one; its repeated fields are put behind each other */
    {A2A_TYPE_SEND_MESSAGE_REQUEST,
     "1209 0a016d20012a020a00 1a021802 1207 120163 2a021a00 1a022001",
     "{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\",\"role\":\"ROLE_USER\",\"parts\":"
     "[{\"text\":\"\"},{\"url\":\"\"}]},\"configuration\":{\"historyLength\":2,"
     "\"returnImmediately\":true}}"},
    /* unless another member of the oneof came in between */
    {A2A_TYPE_SECURITY_SCHEME, "2a030a0161 2a00",
     "{\"mtlsSecurityScheme\":{\"description\":\"a\"}}"},
    {A2A_TYPE_SECURITY_SCHEME, "2a030a0161 0a00 2a00", "{\"mtlsSecurityScheme\":{}}"},
    /* a map's last value counts; no key, no value are empty ones */
    {A2A_TYPE_CLIENT_CREDENTIALS_OAUTH_FLOW, "0a0175 1a06 0a016b120161 1a06 0a016b120162 1a00",
     "{\"tokenUrl\":\"u\",\"scopes\":{\"k\":\"b\",\"\":\"\"}}"},
    {A2A_TYPE_SECURITY_REQUIREMENT, "0a0d 0a0161 12030a0178 0a0162 5801",
     "{\"schemes\":{\"b\":{\"list\":[\"x\"]}}}"},
    /* integers are cut to their width */
    {A2A_TYPE_LIST_TASKS_REQUEST, "20ffffffffffffffffff01 308080808010 4000",
     "{\"pageSize\":-1,\"historyLength\":0,\"includeArtifacts\":false}"},
    {A2A_TYPE_LIST_PUSH_CONFIGS_REQUEST, "0a0174 108080808010", "{\"taskId\":\"t\"}"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "40808080808010", "{\"includeArtifacts\":true}"},
    {A2A_TYPE_LIST_TASKS_REQUEST, "1800 2a00 0a00", "{}"},
    {A2A_TYPE_LIST_TASKS_RESPONSE, "",
     "{\"tasks\":[],\"nextPageToken\":\"\",\"pageSize\":0,\"totalSize\":0}"},
    {A2A_TYPE_TASK_STATUS, "", "{\"state\":\"TASK_STATE_UNSPECIFIED\"}"},
    {A2A_TYPE_TASK_STATUS, "1a0c 089acbc6cb0610bfd8a3a003",
     "{\"state\":\"TASK_STATE_UNSPECIFIED\",\"timestamp\":\"2026-01-22T04:20:42.872Z\"}"},
    {A2A_TYPE_TASK_STATUS, "08031a0b 08ffffffffffffffffff01",
     "{\"state\":\"TASK_STATE_COMPLETED\",\"timestamp\":\"1969-12-31T23:59:59.000Z\"}"},
    {A2A_TYPE_V1_TASK_STATUS, "0805", "{\"state\":\"TASK_STATE_CANCELLED\"}"},
};

static void reads_as_protobuf_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(readings); i++) {
        buf out;
        a2a_fault fault = {0};
        buf_init(&out, 1U << 20);
        bay_err err = from_hex(readings[i].type, readings[i].bytes, &out, &fault);
        if (err != BAY_OK) {
            print_error("%s: %s\n", readings[i].bytes, fault.text);
        }
        assert_int_equal(err, BAY_OK);
        assert_text(buf_view(&out), readings[i].json);
        buf normal;
        buf_init(&normal, 1U << 20);
        assert_true(normal_of(readings[i].type, buf_view(&out), &normal));
        buf_fini(&normal);
        buf_fini(&out);
    }
}

/* Many keys, some of them twice: each once, with its last value, where that stands. */
static void a_large_map_has_each_key_once(void **state)
{
    (void)state;
    enum { KEYS = 3000 };
    buf bytes;
    buf out;
    buf expected;
    buf_init(&bytes, 1U << 20);
    buf_init(&out, 1U << 20);
    buf_init(&expected, 1U << 20);
    put_hex(&bytes, "0a0175");
    buf_lit(&expected, "{\"tokenUrl\":\"u\",\"scopes\":{");
    for (size_t i = 0; i < KEYS; i++) {
        char entry[32];
        int key = snprintf(entry + 2, sizeof(entry) - 2, "%zu", i % (KEYS / 2));
        entry[0] = 0x0a;
        entry[1] = (char)key;
        int value = snprintf(entry + 4 + key, sizeof(entry) - 4 - (size_t)key, "%zu", i);
        entry[2 + key] = 0x12;
        entry[3 + key] = (char)value;
        protobuf_put_bytes(&bytes, 3, (bay_str){entry, (size_t)(4 + key + value)});
        if (i >= KEYS / 2) {
            buf_printf(&expected, "%s\"%zu\":\"%zu\"", i > KEYS / 2 ? "," : "", i - KEYS / 2, i);
        }
    }
    buf_lit(&expected, "}}\0");
    assert_int_equal(
        a2a_from_protobuf(A2A_TYPE_CLIENT_CREDENTIALS_OAUTH_FLOW, buf_view(&bytes), &out, NULL),
        BAY_OK);
    assert_text(buf_view(&out), expected.at);
    buf_fini(&expected);
    buf_fini(&out);
    buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(respects_the_bounds),
        cmocka_unit_test(merges_no_more_than_is_worth_it),
        cmocka_unit_test(reads_as_protobuf_says),
        cmocka_unit_test(a_large_map_has_each_key_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
