/* The portable byte loops, eight bytes at a time, and the selection of a variant. */
#include "json/scan.h"

#include <stdatomic.h>

#include "json/utf8.h"

static const unsigned char *string_portable(const unsigned char *at, const unsigned char *end)
{
    while (end - at >= 8) {
        uint64_t stops = scan_stops(scan_load(at));
        if (stops != 0) {
            return at + __builtin_ctzll(stops) / 8;
        }
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20) {
        at++;
    }
    return at;
}

const json_scan json_scan_portable = {"portable", string_portable, json_utf8_skip};

static _Atomic(const json_scan *) chosen;

size_t json_scan_list(const json_scan *out[JSON_SCAN_MAX])
{
    out[0] = &json_scan_portable;
    return json_scan_list_platform(out, 1);
}

void json_scan_use(const json_scan *scan)
{
    if (scan == NULL) {
        const json_scan *list[JSON_SCAN_MAX];
        size_t count = json_scan_list(list);
        scan = list[count - 1];
    }
    atomic_store_explicit(&chosen, scan, memory_order_release);
}

const json_scan *json_scan_current(void)
{
    const json_scan *scan = atomic_load_explicit(&chosen, memory_order_acquire);
    if (__builtin_expect(scan == NULL, 0)) {
        /* two threads may both select here; they select the same variant */
        json_scan_use(NULL);
        scan = atomic_load_explicit(&chosen, memory_order_acquire);
    }
    return scan;
}
