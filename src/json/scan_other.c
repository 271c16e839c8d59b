/* For platforms without a variant of their own. */
#include "json/scan.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
size_t json_scan_list_platform(const json_scan *out[JSON_SCAN_MAX], size_t count)
{
    (void)out;
    return count;
}
#endif
