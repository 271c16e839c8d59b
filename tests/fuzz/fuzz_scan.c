/* Definitions of a hostile server: a scan ends, says the same twice, and its findings are whole, lie in the text and
 * hold nothing that a terminal obeys. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "policy/scan.h"
#include "json/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static scanner *scan;
static scan_report first;
static scan_report second;

static void check_shown(const char *text)
{
    for (; *text != '\0'; text++) {
        CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
    }
}

static void check_report(void)
{
    CHECK(first.total == second.total && first.worst == second.worst);
    CHECK(first.count <= first.total && first.count <= SCAN_FINDINGS);
    for (size_t i = 0; i < first.count; i++) {
        const scan_finding *at = &first.findings[i];
        CHECK(at->id[0] != '\0' && at->why[0] != '\0' && at->rule < SCAN_RULES);
        CHECK(at->severity <= first.worst);
        CHECK(strcmp(at->id, second.findings[i].id) == 0);
        check_shown(at->pointer);
        check_shown(at->excerpt);
    }
}

static void run(json_val value)
{
    for (scan_kind kind = 0; kind < SCAN_KINDS; kind++) {
        bay_err one = scan_definition(scan, kind, value, NULL, &first);
        bay_err two = scan_definition(scan, kind, value, NULL, &second);
        CHECK(one == BAY_OK && two == BAY_OK);
        check_report();
    }
    bool is_suspicious = scan_content(scan, value, &first);
    CHECK(is_suspicious == scan_content(scan, value, &second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena memory;
    json_doc doc;
    json_builder made;
    json_val value;
    bay_str text = {(const char *)data, size};
    CHECK(scan != NULL || scanner_new(&scan) == BAY_OK);
    arena_init(&memory, 64 << 20);
    if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK) {
        run(json_root(&doc));
    }
    json_put_str(json_builder_init(&made, &memory, 6 * size + 16), text); /* as one description */
    if (json_builder_end(&made, &value) == BAY_OK) {
        run(value);
    }
    arena_fini(&memory);
    return 0;
}
