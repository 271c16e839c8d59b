/* Bytes become JSON in every form, and whole requests and answers of both JSON bindings. Checked:
 * whatever a reader takes is normal form and can be written in every form that has the method; what
 * a form was given of the model reads back; faults have a text; nothing leaks. The first byte says
 * what the rest is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "a2a/inbound.h"
#include "a2a/outbound.h"
#include "base/check.h"
#include "json/canon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 256 << 20, TEXT_BYTES = 64 << 20 };

static bool parse(bay_str text, arena *memory, json_doc *doc)
{
    return json_parse(doc, text, &a2a_json_limits, memory, NULL) == BAY_OK;
}

static void check_normal(a2a_type type, bay_str text, arena *memory)
{
    json_doc doc;
    buf out;
    bool is_normal = false;
    bay_err err = json_parse(&doc, text, NULL, memory, NULL);
    CHECK(err == BAY_OK);
    buf_init(&out, TEXT_BYTES);
    err = a2a_normalise(type, json_root(&doc), &out, &is_normal, NULL);
    CHECK(err == BAY_OK && is_normal);
    buf_fini(&out);
}

static void check_fault(bay_err err, const a2a_fault *fault)
{
    CHECK(err != BAY_ERR_PROTOCOL || (fault->error != A2A_NO_ERROR && fault->text[0] != '\0'));
    CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_LIMIT || err == BAY_ERR_DEPTH);
}

typedef bay_err writer(a2a_form form, a2a_method method, json_val value, buf *out);

static bay_err write_params(a2a_form form, a2a_method method, json_val value, buf *out)
{
    return a2a_params_write(form, method, value, out, NULL);
}

static bay_err write_event(a2a_form form, a2a_method method, json_val value, buf *out)
{
    (void)method;
    return a2a_event_write(form, value, true, out);
}

/* In every form, and each is JSON. */
static void write_all(writer *write, a2a_method method, bay_str ours, arena *memory)
{
    json_doc doc;
    CHECK(json_parse(&doc, ours, NULL, memory, NULL) == BAY_OK);
    for (size_t form = 0; form < A2A_FORMS; form++) {
        buf out;
        json_doc made;
        buf_init(&out, TEXT_BYTES);
        bay_err err = write((a2a_form)form, method, json_root(&doc), &out);
        CHECK(err == BAY_OK || err == BAY_ERR_UNSUPPORTED || err == BAY_ERR_LIMIT);
        if (err == BAY_OK) {
            CHECK(json_parse(&made, buf_view(&out), NULL, memory, NULL) == BAY_OK);
        }
        buf_fini(&out);
    }
}

/* Keys of ours that a peer has chosen itself are believed, and an object that is empty may go: of
 * everything else the way through an older form and back leaves nothing out. */
static bool may_differ(bay_str ours)
{
    static const char *const texts[] = {"patchbay", "data_part", "\"metadata\":{}", "\\",
                                        "nextPageToken"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        bay_str text = str_of(texts[i]);
        for (size_t at = 0; at + text.len <= ours.len; at++) {
            if (str_starts(str_from(ours, at), text)) {
                return true;
            }
        }
    }
    return false;
}

static void check_same(json_val a, bay_str text, arena *memory)
{
    json_doc doc;
    buf canon[2];
    CHECK(json_parse(&doc, text, NULL, memory, NULL) == BAY_OK);
    buf_init(&canon[0], TEXT_BYTES);
    buf_init(&canon[1], TEXT_BYTES);
    if (json_canon(&canon[0], a, memory, NULL) == BAY_OK &&
        json_canon(&canon[1], json_root(&doc), memory, NULL) == BAY_OK) {
        CHECK(str_eq(buf_view(&canon[0]), buf_view(&canon[1])));
    }
    buf_fini(&canon[1]);
    buf_fini(&canon[0]);
}

static void there_and_back(bool is_event, a2a_method method, bay_str ours, arena *memory)
{
    json_doc doc;
    CHECK(json_parse(&doc, ours, NULL, memory, NULL) == BAY_OK);
    if (may_differ(ours) || method == A2A_GET_EXTENDED_CARD) {
        return;
    }
    for (size_t form = 0; form < A2A_FORMS; form++) {
        buf out;
        buf again;
        json_doc made;
        bool is_last;
        a2a_fault fault = {0};
        buf_init(&out, TEXT_BYTES);
        buf_init(&again, TEXT_BYTES);
        bay_err err = is_event ? a2a_event_write((a2a_form)form, json_root(&doc), false, &out)
                               : a2a_result_write((a2a_form)form, method, json_root(&doc), &out);
        if (err == BAY_OK && json_parse(&made, buf_view(&out), NULL, memory, NULL) == BAY_OK) {
            err = is_event
                      ? a2a_event_read((a2a_form)form, json_root(&made), &again, &is_last, &fault)
                      : a2a_result_read((a2a_form)form, method, json_root(&made), &again, &fault);
            CHECK(err == BAY_OK || strstr(fault.text, "deep") != NULL);
            if (err == BAY_OK) {
                check_same(json_root(&doc), buf_view(&again), memory);
            }
        }
        buf_fini(&again);
        buf_fini(&out);
    }
}

static void values(bay_str text, a2a_method method)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, MEMORY_BYTES);
    if (parse(text, &memory, &doc)) {
        for (size_t form = 0; form < A2A_FORMS; form++) {
            buf out;
            a2a_fault fault = {0};
            bool is_last = false;
            buf_init(&out, TEXT_BYTES);
            bay_err err = a2a_params_read((a2a_form)form, method, json_root(&doc), &out, &fault);
            check_fault(err, &fault);
            if (err == BAY_OK) {
                check_normal((a2a_type)a2a_methods[method].request, buf_view(&out), &memory);
                write_all(write_params, method, buf_view(&out), &memory);
            }
            buf_clear(&out);
            if ((a2a_methods[method].flags & A2A_METHOD_STREAM) == 0) {
                err = a2a_result_read((a2a_form)form, method, json_root(&doc), &out, &fault);
                check_fault(err, &fault);
                if (err == BAY_OK) {
                    check_normal((a2a_type)a2a_methods[method].response, buf_view(&out), &memory);
                    write_all(a2a_result_write, method, buf_view(&out), &memory);
                    there_and_back(false, method, buf_view(&out), &memory);
                }
            } else {
                err = a2a_event_read((a2a_form)form, json_root(&doc), &out, &is_last, &fault);
                check_fault(err, &fault);
                if (err == BAY_OK) {
                    check_normal(A2A_TYPE_STREAM_RESPONSE, buf_view(&out), &memory);
                    write_all(write_event, method, buf_view(&out), &memory);
                    there_and_back(true, method, buf_view(&out), &memory);
                }
            }
            buf_fini(&out);
        }
    }
    arena_fini(&memory);
}

static const char *const versions[] = {"", "0.1", "0.2", "0.3", "1.0", "2"};

static void check_request(bay_err err, const a2a_inbound *request, const a2a_fault *fault,
                          arena *memory)
{
    CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_NOT_FOUND);
    check_fault(err == BAY_ERR_NOT_FOUND ? BAY_OK : err, fault);
    if (err == BAY_ERR_NOT_FOUND) {
        return;
    }
    buf out;
    json_doc doc;
    int status = 0;
    CHECK(request->version < A2A_VERSIONS);
    buf_init(&out, TEXT_BYTES);
    a2a_write_fault(request, err == BAY_OK ? &(a2a_fault){A2A_E_INTERNAL, "x"} : fault, &out,
                    &status);
    CHECK(out.err == BAY_OK && status >= 200);
    CHECK(json_parse(&doc, buf_view(&out), NULL, memory, NULL) == BAY_OK);
    if (err == BAY_OK) {
        check_normal((a2a_type)a2a_methods[request->method].request, json_raw(request->params),
                     memory);
    }
    buf_fini(&out);
}

/* "VERB PATH QUERY\nBODY" */
static void rest(bay_str text, bay_str version)
{
    arena memory;
    a2a_inbound request;
    bay_str allow;
    a2a_fault fault = {0};
    arena_init(&memory, MEMORY_BYTES);
    size_t line = str_find(text, '\n');
    bay_str head = str_head(text, line);
    size_t verb = str_find(head, ' ');
    bay_str path = str_from(head, verb + 1);
    size_t end = str_find(path, ' ');
    bay_err err =
        a2a_rest_read(str_head(head, verb), str_head(path, end), str_from(path, end + 1),
                      str_from(text, line + 1), version, &memory, &request, &allow, &fault);
    check_request(err, &request, &fault, &memory);
    arena_fini(&memory);
}

static void rpc(bay_str text, bay_str version)
{
    arena memory;
    a2a_inbound request;
    a2a_fault fault = {0};
    arena_init(&memory, MEMORY_BYTES);
    bay_err err =
        a2a_jsonrpc_read(text, version, &(a2a_inbound_settings){true}, &memory, &request, &fault);
    CHECK(err != BAY_ERR_NOT_FOUND);
    check_request(err, &request, &fault, &memory);
    arena_fini(&memory);
}

static void answers(bay_str text, a2a_method method, unsigned what)
{
    a2a_interface from = {STR("http://h"), STR(""), what & 1 ? A2A_HTTP_JSON : A2A_JSONRPC,
                          (a2a_version)(what / 2 % A2A_VERSIONS)};
    arena memory;
    json_val result;
    a2a_fault fault = {0};
    bool is_last;
    arena_init(&memory, MEMORY_BYTES);
    bay_err err = a2a_response_read(&from, method, what & 64 ? 404 : 200, text, STR("1"), &memory,
                                    &result, &fault);
    CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_REMOTE ||
          err == BAY_ERR_LIMIT);
    CHECK(err == BAY_OK || (fault.text[0] != '\0') || err == BAY_ERR_LIMIT);
    if (err == BAY_OK) {
        check_normal((a2a_type)a2a_methods[method].response, json_raw(result), &memory);
    }
    json_val event;
    err = a2a_stream_read(&from, what & 32 ? STR("error") : STR(""), text, STR("1"), &memory,
                          &event, &is_last, &fault);
    CHECK(err == BAY_OK || err == BAY_ERR_PROTOCOL || err == BAY_ERR_REMOTE ||
          err == BAY_ERR_LIMIT);
    if (err == BAY_OK) {
        check_normal(A2A_TYPE_STREAM_RESPONSE, json_raw(event), &memory);
        check_same(event, json_raw(event), &memory); /* it is read already */
    }
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    bay_str text = {(const char *)data + 2, size - 2};
    bay_str version = str_of(versions[data[1] % ARRAY_LEN(versions)]);
    switch (data[0] % 4) {
    case 0:
        rpc(text, version);
        break;
    case 1:
        rest(text, version);
        break;
    case 2:
        answers(text, (a2a_method)(data[0] / 4 % A2A_METHODS), data[1]);
        break;
    default:
        values(text, (a2a_method)(data[1] % A2A_METHODS));
        break;
    }
    return 0;
}
