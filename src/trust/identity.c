#include "trust/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/uri.h"

enum { CHUNK_BYTES = 256 << 10, PATH_BYTES = 4096 };

/* ---- programs -------------------------------------------------------------------------------- */

static bool is_regular(const char *path, bool is_program)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) &&
           (!is_program || access(path, X_OK) == 0);
}

static bool join(char out[PATH_BYTES], bay_str folder, const char *name)
{
    int len = folder.len > 0 ? snprintf(out, PATH_BYTES, "%.*s/%s", BAY_STR(folder), name)
                             : snprintf(out, PATH_BYTES, "%s", name);
    return len > 0 && len < PATH_BYTES;
}

/* As execvpe does it; below `cwd` where that is given. */
static bool find_program(const char *name, const char *cwd, const char *path, char out[PATH_BYTES])
{
    if (strchr(name, '/') != NULL) {
        bay_str folder = name[0] != '/' && cwd != NULL ? str_of(cwd) : (bay_str){"", 0};
        return join(out, folder, name) && is_regular(out, true);
    }
    const char *list = path != NULL ? path : getenv("PATH");
    bay_str rest = str_of(list != NULL ? list : "/bin:/usr/bin");
    for (bool is_more = true; is_more;) {
        bay_str folder = str_head(rest, str_find(rest, ':'));
        is_more = folder.len < rest.len;
        rest = str_from(rest, folder.len + 1);
        if (join(out, folder.len > 0 ? folder : STR("."), name) && is_regular(out, true)) {
            return true;
        }
    }
    return false;
}

static bay_err add_file(digest_stream *to, const char *path, bay_diag *diag)
{
    char *chunk = mem_alloc(CHUNK_BYTES);
    size_t total = 0;
    ssize_t got = 1;
    if (chunk == NULL) {
        return BAY_ERR_NOMEM;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file >= 0 && got > 0 && total <= TRUST_PROGRAM_BYTES) {
        got = read(file, chunk, CHUNK_BYTES);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        digest_stream_add(to, (bay_str){chunk, got > 0 ? (size_t)got : 0});
        total += got > 0 ? (size_t)got : 0;
    }
    int reason = errno;
    bool is_bad = file < 0 || got < 0;
    mem_free(chunk);
    if (file >= 0) {
        close(file);
    }
    if (is_bad) {
        return diag_set(diag, BAY_ERR_IO, "%s cannot be read: %s", path, strerror(reason));
    }
    return total > TRUST_PROGRAM_BYTES ? diag_set(diag, BAY_ERR_LIMIT, "%s is too large", path)
                                       : BAY_OK;
}

static bay_err end(digest_stream *of, bay_err err, const char *what, buf *out)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    bay_err ended = digest_stream_end(of, digest);
    if (err == BAY_OK && ended == BAY_OK) {
        buf_printf(out, "%s %s", what, digest);
    }
    return err == BAY_OK ? ended : err;
}

static bay_err add_argument(digest_stream *to, const char *word, const char *cwd, bay_diag *diag)
{
    char path[PATH_BYTES];
    bay_str folder = word[0] != '/' && cwd != NULL ? str_of(cwd) : (bay_str){"", 0};
    digest_stream_add(to, (bay_str){word, strlen(word) + 1}); /* its end counts */
    bool is_file = word[0] != '\0' && join(path, folder, word) && is_regular(path, false);
    return is_file ? add_file(to, path, diag) : BAY_OK;
}

bay_err trust_identity_command(const char *const *argv, const char *cwd, const char *path, buf *out,
                               bay_diag *diag)
{
    char program[PATH_BYTES];
    digest_stream *stream = NULL;
    if (!find_program(argv[0], cwd, path, program)) {
        return diag_set(diag, BAY_ERR_NOT_FOUND, "there is no program %.200s", argv[0]);
    }
    bay_err err = digest_stream_new(&stream);
    if (err == BAY_OK) {
        err = end(stream, add_file(stream, program, diag), "command", out);
    }
    err = err == BAY_OK ? digest_stream_new(&stream) : err;
    if (err != BAY_OK) {
        return err;
    }
    for (size_t i = 1; err == BAY_OK && argv[i] != NULL; i++) {
        err = i < TRUST_ARGUMENTS ? add_argument(stream, argv[i], cwd, diag) : BAY_ERR_LIMIT;
    }
    buf_char(out, ' ');
    err = end(stream, err, "arguments", out);
    return err == BAY_OK ? out->err : err;
}

static uint64_t stamp_file(const char *path, uint64_t seed)
{
    struct stat found;
    if (stat(path, &found) != 0) {
        return seed;
    }
    const uint64_t facts[] = {found.st_dev,
                              found.st_ino,
                              (uint64_t)found.st_size,
                              (uint64_t)found.st_mtim.tv_sec,
                              (uint64_t)found.st_mtim.tv_nsec,
                              (uint64_t)found.st_ctim.tv_sec,
                              (uint64_t)found.st_ctim.tv_nsec};
    return str_hash((bay_str){(const char *)facts, sizeof(facts)}, seed);
}

uint64_t trust_identity_stamp(const char *const *argv, const char *cwd, const char *path)
{
    char found[PATH_BYTES];
    if (!find_program(argv[0], cwd, path, found)) {
        return 0;
    }
    uint64_t stamp = stamp_file(found, 1);
    for (size_t i = 1; i < TRUST_ARGUMENTS && argv[i] != NULL; i++) {
        bay_str folder = argv[i][0] != '/' && cwd != NULL ? str_of(cwd) : (bay_str){"", 0};
        stamp = str_hash(str_of(argv[i]), stamp);
        if (argv[i][0] != '\0' && join(found, folder, argv[i])) {
            stamp = stamp_file(found, stamp);
        }
    }
    return stamp != 0 ? stamp : 1;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

bay_err trust_identity_url(bay_str url, buf *out)
{
    uri parts;
    if (uri_parse(&parts, url) != BAY_OK || uri_port(&parts) == 0 || parts.host.len == 0 ||
        !(str_eq_nocase(parts.scheme, STR("http")) || str_eq_nocase(parts.scheme, STR("https")))) {
        return BAY_ERR_INVALID;
    }
    buf_lit(out, "url ");
    for (size_t i = 0; i < parts.scheme.len; i++) {
        buf_char(out, (char)(parts.scheme.at[i] | 0x20));
    }
    buf_str(out, parts.is_ip_literal ? STR("://[") : STR("://"));
    for (size_t i = 0; i < parts.host.len; i++) {
        char c = parts.host.at[i];
        buf_char(out, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
    }
    buf_str(out, parts.is_ip_literal ? STR("]") : STR(""));
    buf_printf(out, ":%u", uri_port(&parts));
    return out->err;
}
