/* Header fields of the command line, with their secrets from a file or a variable. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/arguments.h"
#include "wire/header.h"

enum { SECRET_BYTES = 16 * 1024 };

/* The first line; more than SECRET_BYTES is refused. */
static bay_err read_secret(bay_str path, char at[SECRET_BYTES + 1], bay_str *out, bay_diag *diag)
{
    char name[4096];
    if (path.len == 0 || path.len >= sizeof(name)) {
        return diag_set(diag, BAY_ERR_INVALID, "--header: @ needs the name of a file");
    }
    memcpy(name, path.at, path.len);
    name[path.len] = '\0';
    int file = open(name, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got = file < 0 ? -1 : 1;
    while (got > 0 && len <= SECRET_BYTES) {
        got = read(file, at + len, SECRET_BYTES + 1 - len);
        len += got > 0 ? (size_t)got : 0;
        got = got < 0 && errno == EINTR ? 1 : got;
    }
    int reason = errno;
    if (file >= 0) {
        close(file);
    }
    if (got < 0) {
        return diag_set(diag, BAY_ERR_IO, "--header: the file behind @ cannot be read: %s",
                        strerror(reason));
    }
    if (len > SECRET_BYTES) {
        return diag_set(diag, BAY_ERR_LIMIT, "--header: the file behind @ is longer than %d bytes",
                        SECRET_BYTES);
    }
    bay_str text = {at, len};
    bay_str line = str_head(text, str_find(text, '\n'));
    *out = str_trim(str_head(line, str_find(line, '\r')));
    return BAY_OK;
}

bay_err cli_header_read(const char *header, bay_str *out_name, buf *out_value, bay_diag *diag)
{
    bay_str text = str_of(header);
    size_t colon = str_find(text, ':');
    bay_str name = str_trim(str_head(text, colon));
    bay_str value = str_trim(str_from(text, colon + 1));
    size_t before = out_value->len;
    char secret[SECRET_BYTES + 1];
    bay_err err = BAY_OK;
    if (colon == text.len || !header_name_is_valid(name)) {
        return diag_set(diag, BAY_ERR_INVALID, "--header needs 'NAME: VALUE'");
    }
    if (str_starts(value, STR("@"))) {
        bay_str line;
        err = read_secret(str_from(value, 1), secret, &line, diag);
        if (err == BAY_OK) {
            buf_str(out_value, line);
            err = out_value->err;
        }
        mem_wipe(secret, sizeof(secret));
    } else {
        err = config_expand_text(value, config_lookup_process, NULL, out_value, diag);
    }
    if (err != BAY_OK) {
        return err;
    }
    if (!header_value_is_plain(str_from(buf_view(out_value), before))) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "--header: the value holds bytes no header may have: check its file or "
                        "variable");
    }
    *out_name = name;
    return BAY_OK;
}
