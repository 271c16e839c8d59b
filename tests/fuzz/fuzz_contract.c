/* A file of contracts, and behind a line that begins with --- a result: the file is refused with a reason, or each
 * contract judges the result, twice the same, in text that a terminal does not obey. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "config/document.h"
#include "trust/contract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static config_report report;

static void judge(const trust_contract *contract, json_val result)
{
    buf out[2];
    const trust_outcome outcome = {.result = result, .failure = STR("gone"), .latency_ms = 7};
    for (size_t i = 0; i < 2; i++) {
        buf_init(&out[i], 1 << 20);
        bay_err err = trust_contract_judge(contract, &outcome, JSON_NONE, &out[i]);
        CHECK(err == BAY_OK || err == BAY_ERR_LIMIT);
    }
    CHECK(str_eq(buf_view(&out[0]), buf_view(&out[1])));
    for (size_t i = 0; i < out[0].len; i++) {
        CHECK((unsigned char)out[0].at[i] >= 0x20 || out[0].at[i] == '\n');
    }
    buf_fini(&out[0]);
    buf_fini(&out[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena memory;
    json_doc doc;
    json_doc result;
    trust_contracts contracts;
    json_val place;
    bay_diag diag = {0};
    bay_str text = {(const char *)data, size};
    const char *cut = memmem(text.at, text.len, "\n---", 4);
    bay_str file = cut != NULL ? str_head(text, (size_t)(cut - text.at)) : text;
    bay_str rest = cut != NULL ? str_from(text, (size_t)(cut - text.at) + 4) : (bay_str){"", 0};
    arena_init(&memory, 256 << 20);
    json_val value =
        json_parse(&result, rest, NULL, &memory, NULL) == BAY_OK ? json_root(&result) : JSON_NONE;
    bay_err err = config_document_read(file, STR("fuzz"), &memory, &doc, &report);
    CHECK(err == BAY_OK || report.errors > 0);
    if (err == BAY_OK) {
        err = trust_contracts_read(json_root(&doc), &memory, &contracts, &place, &diag);
        CHECK(err == BAY_OK || (diag.text[0] != '\0' && config_document_line(place) > 0));
        for (size_t i = 0; err == BAY_OK && i < contracts.count; i++) {
            judge(&contracts.at[i], value);
        }
    }
    arena_fini(&memory);
    return 0;
}
