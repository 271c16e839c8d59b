#include "evidence/audit_parts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

bool audit_part_name(const char *path, uint64_t seq, char out[AUDIT_PATH_BYTES])
{
    int len = snprintf(out, AUDIT_PATH_BYTES, "%s.%0*" PRIu64, path, AUDIT_SEQ_DIGITS, seq);
    return len > 0 && len < AUDIT_PATH_BYTES;
}

static int compare(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

/* Is it the name of a part of `base`? */
static bool is_part(bay_str name, bay_str base, uint64_t *out)
{
    return name.len == base.len + 1 + AUDIT_SEQ_DIGITS && str_starts(name, base) &&
           name.at[base.len] == '.' && str_uint(str_from(name, base.len + 1), out);
}

static bay_err add(audit_parts *to, size_t *room, uint64_t seq)
{
    if (to->count == *room) {
        size_t more = *room == 0 ? 64 : *room * 2;
        uint64_t *at = mem_resize(to->at, more * sizeof(*at));
        if (at == NULL) {
            return BAY_ERR_NOMEM;
        }
        to->at = at;
        *room = more;
    }
    to->at[to->count++] = seq;
    return BAY_OK;
}

bay_err audit_parts_list(const char *path, audit_parts *out)
{
    char folder[AUDIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    bay_str base = str_of(slash != NULL ? slash + 1 : path);
    size_t folder_len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    *out = (audit_parts){0};
    if (folder_len + 2 > sizeof(folder)) {
        return BAY_ERR_LIMIT;
    }
    memcpy(folder, path, folder_len);
    memcpy(folder + folder_len, ".", 2);
    DIR *open = opendir(folder);
    if (open == NULL) {
        return BAY_ERR_IO;
    }
    size_t room = 0;
    bay_err err = BAY_OK;
    uint64_t seq;
    for (struct dirent *at;
         err == BAY_OK && out->count < AUDIT_PARTS && (at = readdir(open)) != NULL;) {
        if (is_part(str_of(at->d_name), base, &seq)) {
            err = add(out, &room, seq);
        }
    }
    closedir(open);
    if (err != BAY_OK) {
        audit_parts_free(out);
        return err;
    }
    if (out->count > 0) {
        qsort(out->at, out->count, sizeof(out->at[0]), compare);
    }
    return BAY_OK;
}

void audit_parts_free(audit_parts *self)
{
    mem_free(self->at);
    *self = (audit_parts){0};
}
