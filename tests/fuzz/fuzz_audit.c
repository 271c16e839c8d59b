/* Lines of an audit file, which anybody may have written: a line that is taken for good is one that
 * was appended so, byte for byte. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "evidence/chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 2 * AUDIT_LINE_BYTES };

/* The members of a line, without its number, its `previous` and its hash. */
static bay_str members_of(bay_str line, bool *out_is_opening)
{
    bay_str rest = str_from(line, str_find(line, ',') + 1);
    size_t previous = STR("\"previous\":\"\",").len + AUDIT_HASH_DIGITS;
    *out_is_opening = str_starts(rest, STR("\"previous\":\""));
    rest = *out_is_opening ? str_from(rest, previous) : rest;
    return str_head(rest, rest.len - STR(",\"hash\":\"\"}").len - AUDIT_HASH_DIGITS);
}

static void check_good(audit_chain before, bay_str line)
{
    buf again;
    bool is_opening;
    bay_str members = members_of(line, &is_opening);
    buf_init(&again, TEXT_BYTES);
    CHECK(audit_chain_append(&before, members, is_opening, &again) == BAY_OK);
    CHECK(str_eq(str_head(buf_view(&again), again.len - 1), line));
    buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    audit_chain chain = {0};
    bay_str rest = {(const char *)data, size};
    buf forged;
    audit_fault fault;
    while (rest.len > 0) {
        size_t end = str_find(rest, '\n');
        bay_str line = str_head(rest, end);
        audit_chain before = chain;
        audit_chain unused;
        CHECK(audit_chain_check(&chain, line, &fault) == BAY_OK);
        CHECK(fault == AUDIT_NO_RECORD || audit_chain_read(line, &unused));
        CHECK(fault == AUDIT_GOOD || memcmp(&before, &chain, sizeof(chain)) == 0);
        if (fault == AUDIT_GOOD && before.seq > 0) {
            check_good(before, line);
        }
        rest = str_from(rest, end + 1);
    }
    buf_init(&forged, TEXT_BYTES); /* what is appended is good, whatever its members are */
    bay_str members = str_head((bay_str){(const char *)data, size}, size < 1000 ? size : 1000);
    audit_chain made = {0};
    audit_chain read = {0};
    CHECK(audit_chain_append(&made, members, true, &forged) == BAY_OK);
    CHECK(audit_chain_check(&read, str_head(buf_view(&forged), forged.len - 1), &fault) == BAY_OK);
    CHECK(fault == AUDIT_GOOD && memcmp(&made, &read, sizeof(made)) == 0);
    buf_fini(&forged);
    return 0;
}
