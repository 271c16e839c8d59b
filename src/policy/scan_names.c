/* Names of several servers: which ones a reader would take for another. */
#include "base/shown.h"
#include "policy/scan_internal.h"

enum { ALIKE_LEAST = 8, SKELETON_BYTES = 256 };

void scan_name_skeleton(bay_str name, buf *out)
{
    while (name.len > 0) {
        uint32_t code = 0;
        size_t len = shown_decode(name, &code);
        if (len == 0) {
            buf_char(out, '?');
            name = str_from(name, 1);
            continue;
        }
        scan_char folded = scan_fold(code);
        uint32_t plain = folded.latin != 0 ? folded.latin : folded.folded;
        plain = plain == '0' ? 'o' : plain == '1' || plain == 'i' ? 'l' : plain; /* I, l and 1 */
        bool is_seen = folded.class == SCAN_LETTER || folded.class == SCAN_DIGIT ||
                       folded.class == SCAN_SYLLABLE || folded.class == SCAN_JOINED;
        if (is_seen) {
            scan_put(out, plain);
        }
        name = str_from(name, len);
    }
}

bool scan_names_alike(bay_str a, bay_str b)
{
    char first[SKELETON_BYTES];
    char second[SKELETON_BYTES];
    buf left = {.at = first, .cap = sizeof(first), .max = sizeof(first)};
    buf right = {.at = second, .cap = sizeof(second), .max = sizeof(second)};
    scan_name_skeleton(a, &left);
    scan_name_skeleton(b, &right);
    if (left.err != BAY_OK || right.err != BAY_OK) {
        return false; /* longer than any name that is looked at */
    }
    bay_str one = buf_view(&left);
    bay_str other = buf_view(&right);
    if (str_eq(one, other)) {
        return true;
    }
    size_t longer = one.len > other.len ? one.len : other.len;
    size_t shorter = one.len < other.len ? one.len : other.len;
    return shorter >= ALIKE_LEAST && longer - shorter <= 1 && longer <= 64 &&
           str_distance(one, other) <= 1;
}
