#include "cli/admin_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "wire/http1.h"
#include "json/json.h"

enum { FIELDS_MAX = 64, READ_BYTES = 64 * 1024, PATH_BYTES = 4096 };

static const char socket_name[] = "patchbay/admin.sock";

/* ---- where it is ----------------------------------------------------------------------------- */

/* A folder of another user's, as sudo can leave it in the environment, is not ours. */
static const char *runtime_folder(void)
{
    struct stat about;
    const char *path = getenv("XDG_RUNTIME_DIR");
    bool is_ours = path != NULL && path[0] == '/' && stat(path, &about) == 0 &&
                   S_ISDIR(about.st_mode) && about.st_uid == geteuid();
    return is_ours ? path : NULL;
}

bool cli_admin_path(size_t index, char out[SOCKET_UNIX_PATH_BYTES])
{
    const char *const folders[] = {runtime_folder(), "/run"};
    size_t seen = 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (folders[i] == NULL || seen++ != index) {
            continue;
        }
        int len = snprintf(out, SOCKET_UNIX_PATH_BYTES, "%s/%s", folders[i], socket_name);
        if (len < 0 || len >= SOCKET_UNIX_PATH_BYTES) {
            out[0] = '\0'; /* no socket can be there */
        }
        return true;
    }
    return false;
}

void cli_admin_default(char out[SOCKET_UNIX_PATH_BYTES + 8])
{
    char path[SOCKET_UNIX_PATH_BYTES];
    out[0] = '\0';
    for (size_t i = 0; cli_admin_path(i, path); i++) {
        char folder[SOCKET_UNIX_PATH_BYTES];
        size_t len = str_find_last(str_of(path), '/');
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)len, path);
        if (path[0] == '/' && (mkdir(folder, S_IRWXU) == 0 || errno == EEXIST) &&
            access(folder, W_OK | X_OK) == 0) {
            (void)snprintf(out, SOCKET_UNIX_PATH_BYTES + 8, "%s%s", SOCKET_UNIX_PREFIX, path);
            return;
        }
    }
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Whoever listens there is shown to a person and gets orders: another user's is not ours. Root may
 * look at anybody's. */
static bool is_trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0);
}

/* BAY_ERR_NOT_FOUND: nobody listens there; BAY_ERR_DENIED, BAY_ERR_CONNECT: `error`. */
static bay_err connect_to(const char *path, int *out, int *out_error)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *out_error = errno;
    if (fd < 0) {
        return BAY_ERR_CONNECT;
    }
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) != 0) {
        *out_error = errno;
        close(fd);
        return *out_error == ENOENT || *out_error == ECONNREFUSED || *out_error == ENOTDIR
                   ? BAY_ERR_NOT_FOUND
                   : BAY_ERR_CONNECT;
    }
    if (!is_trusted(fd)) {
        close(fd);
        return BAY_ERR_DENIED;
    }
    *out = fd;
    return BAY_OK;
}

/* False after saying why, or when nobody listens there (`is_quiet` then says nothing). */
static bool try_path(const char *path, bool is_quiet, int *out, cli_exit *out_code)
{
    int error = 0;
    bay_err err = connect_to(path, out, &error);
    *out_code = err == BAY_OK ? CLI_EXIT_OK : CLI_EXIT_CONNECT;
    if (err == BAY_ERR_DENIED) {
        cli_say("%s: a process of another user listens there: it is not asked", path);
    } else if (err == BAY_ERR_CONNECT) {
        cli_say("%s: %s", path, strerror(error));
    } else if (err == BAY_ERR_NOT_FOUND && !is_quiet) {
        cli_say("no gateway listens at %s: start one with patchbay serve, or name its socket with "
                "--socket",
                path);
    }
    return err == BAY_OK;
}

static cli_exit connect_named(bay_str address, int *out)
{
    char path[SOCKET_UNIX_PATH_BYTES];
    bay_diag diag = {0};
    cli_exit code = CLI_EXIT_CONFIG;
    if (socket_unix_path(address, path, &diag) != BAY_OK) {
        cli_say("%s", diag.text);
        return CLI_EXIT_USAGE;
    }
    (void)try_path(path, false, out, &code);
    return code;
}

/* --socket PATH: with unix: or without, from the root on or from here. */
static cli_exit connect_given(const char *socket_path, int *out)
{
    char address[2 * PATH_BYTES];
    char here[PATH_BYTES] = "";
    bay_str given = str_of(socket_path);
    if (socket_address_is_unix(given)) {
        given = str_from(given, strlen(SOCKET_UNIX_PREFIX));
    }
    if (!str_starts(given, STR("/")) && getcwd(here, sizeof(here)) == NULL) {
        cli_say("this folder has no name: give --socket from the root on");
        return CLI_EXIT_USAGE;
    }
    int len = snprintf(address, sizeof(address), "%s%s%s%.*s", SOCKET_UNIX_PREFIX, here,
                       here[0] != '\0' ? "/" : "", BAY_STR(given));
    if (len < 0 || (size_t)len >= sizeof(address)) {
        cli_say("--socket: the path is too long");
        return CLI_EXIT_USAGE;
    }
    return connect_named(str_of(address), out);
}

static cli_exit connect_default(int *out)
{
    char path[SOCKET_UNIX_PATH_BYTES];
    cli_exit code = CLI_EXIT_CONNECT;
    for (size_t i = 0; cli_admin_path(i, path); i++) {
        if (path[0] != '\0' && try_path(path, true, out, &code)) {
            return CLI_EXIT_OK;
        }
    }
    cli_say("no gateway was found: start one with patchbay serve, or name its socket with --socket "
            "PATH, or its configuration with -c FILE");
    return code;
}

/* What a configuration that nobody named says counts if it can be read: whoever asks about a
 * running gateway may well ask because the file is wrong. */
static cli_exit load(const cli_arguments *arguments, const config **out)
{
    const char *path;
    if (arguments->config_file != NULL) {
        return cli_load_config(arguments, false, &path, out) == BAY_OK ? CLI_EXIT_OK
                                                                       : CLI_EXIT_CONFIG;
    }
    config_report *report = mem_zalloc(sizeof(*report));
    if (report == NULL || config_load_file("patchbay.yaml", false, out, report) != BAY_OK) {
        *out = NULL;
    }
    mem_free(report);
    return CLI_EXIT_OK;
}

static cli_exit connect_gateway(const cli_arguments *arguments, int *out)
{
    const config *settings = NULL;
    if (arguments->socket_path != NULL) {
        return connect_given(arguments->socket_path, out);
    }
    cli_exit code = load(arguments, &settings);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    if (settings == NULL || settings->admin.listen.at == NULL) {
        code = connect_default(out);
    } else if (settings->admin.listen.count == 0) {
        cli_say("the configuration turns the admin API off (admin.listen is empty)");
        code = CLI_EXIT_CONNECT;
    } else {
        code = connect_named(settings->admin.listen.at[0], out);
    }
    config_free(settings);
    return code;
}

/* ---- one exchange ---------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bay_err wait_for(int fd, short events, uint64_t until_ms)
{
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd at = {.fd = fd, .events = events};
        int ready = now < until_ms ? poll(&at, 1, (int)(until_ms - now)) : 0;
        if (ready > 0) {
            return BAY_OK;
        }
        if (ready == 0) {
            return BAY_ERR_TIMEOUT;
        }
        if (errno != EINTR) {
            return BAY_ERR_IO;
        }
    }
}

static bay_err send_all(int fd, bay_str bytes, uint64_t until_ms)
{
    while (bytes.len > 0) {
        bay_err err = wait_for(fd, POLLOUT, until_ms);
        if (err != BAY_OK) {
            return err;
        }
        ssize_t sent = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR && errno != EAGAIN) {
            return BAY_ERR_CLOSED;
        }
        bytes = str_from(bytes, sent > 0 ? (size_t)sent : 0);
    }
    return BAY_OK;
}

/* To the end of the connection: the request asks for one. */
static bay_err receive_all(int fd, uint64_t until_ms, buf *out)
{
    for (;;) {
        bay_err err = wait_for(fd, POLLIN, until_ms);
        if (err != BAY_OK) {
            return err;
        }
        if (!buf_reserve(out, READ_BYTES)) {
            return out->err;
        }
        ssize_t got = recv(fd, out->at + out->len, READ_BYTES, 0);
        if (got == 0) {
            return BAY_OK;
        }
        if (got < 0 && errno != EINTR && errno != EAGAIN) {
            return BAY_ERR_CLOSED;
        }
        out->len += got > 0 ? (size_t)got : 0;
    }
}

static bay_err read_answer(bay_str bytes, int *out_status, buf *body)
{
    http_field fields[FIELDS_MAX];
    http1_limits limits = http1_default_limits;
    http1_parser parser;
    http1_head head;
    http1_body reader;
    size_t used = 0;
    limits.fields = FIELDS_MAX;
    limits.body_bytes = CLI_ADMIN_ANSWER_BYTES;
    http1_parser_init(&parser, HTTP1_RESPONSE, &limits, fields, false);
    bay_err err = http1_head_parse(&parser, bytes, &head, &used);
    if (err != BAY_OK) {
        return err == BAY_ERR_AGAIN ? BAY_ERR_PROTOCOL : err;
    }
    *out_status = head.status;
    http1_body_init(&reader, HTTP1_RESPONSE, &head, &limits);
    for (bytes = str_from(bytes, used);; bytes = str_from(bytes, used)) {
        bay_str data;
        http1_body_event event;
        err = http1_body_feed(&reader, bytes, &used, &data, &event);
        if (err != BAY_OK || event == HTTP1_BODY_END) {
            return err;
        }
        if (event == HTTP1_BODY_MORE) {
            return http1_body_finish(&reader);
        }
        buf_str(body, data);
    }
}

static bay_err exchange(int fd, bay_str method, bay_str route, uint32_t timeout_ms, int *out_status,
                        buf *body)
{
    static const http_field fields[] = {
        {STR_INIT("Host"), STR_INIT("localhost")},
        {STR_INIT("Connection"), STR_INIT("close")},
        {STR_INIT("Content-Type"), STR_INIT("application/json")},
        {STR_INIT("Content-Length"), STR_INIT("0")},
    };
    bool is_get = str_eq(method, STR("GET"));
    uint64_t until_ms = now_ms() + timeout_ms;
    buf bytes;
    buf_init(&bytes, CLI_ADMIN_ANSWER_BYTES + READ_BYTES);
    bay_err err = http1_write_request(&bytes, method, route, fields, is_get ? 2 : 4);
    err = err == BAY_OK ? send_all(fd, buf_view(&bytes), until_ms) : err;
    err = err == BAY_ERR_CLOSED ? BAY_OK : err; /* refused: why has come before */
    buf_clear(&bytes);
    err = err == BAY_OK ? receive_all(fd, until_ms, &bytes) : err;
    err = err == BAY_OK ? read_answer(buf_view(&bytes), out_status, body) : err;
    err = err == BAY_OK ? body->err : err;
    buf_fini(&bytes);
    return err;
}

cli_exit cli_admin_ask(const cli_arguments *arguments, bay_str method, bay_str route,
                       uint32_t timeout_ms, int *out_status, buf *body)
{
    int fd = -1;
    cli_exit code = connect_gateway(arguments, &fd);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_err err =
        exchange(fd, method, route, arguments->timeout_ms > 0 ? arguments->timeout_ms : timeout_ms,
                 out_status, body);
    close(fd);
    switch (err) {
    case BAY_OK:
        return CLI_EXIT_OK;
    case BAY_ERR_TIMEOUT:
        cli_say("the gateway did not answer in time: wait longer with --timeout");
        return CLI_EXIT_TIMEOUT;
    case BAY_ERR_NOMEM:
    case BAY_ERR_LIMIT:
        cli_say("the answer of the gateway: %s", bay_err_text(err));
        return CLI_EXIT_FAILED;
    case BAY_ERR_CLOSED:
        cli_say("the gateway closed the connection without an answer");
        return CLI_EXIT_CONNECT;
    default:
        cli_say("what listens there does not answer as a gateway does: %s", bay_err_text(err));
        return CLI_EXIT_PROTOCOL;
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void say_each(json_val errors, arena *memory)
{
    json_iter each = json_iter_of(errors);
    while (json_next(&each)) {
        bay_str file = {"", 0};
        bay_str text = {"", 0};
        uint64_t line = 0;
        err_ignore(json_str(json_get(each.value, STR("file")), memory, &file));
        err_ignore(json_str(json_get(each.value, STR("text")), memory, &text));
        if (json_uint64(json_get(each.value, STR("line")), &line) == BAY_OK) {
            cli_say("%.*s:%llu: %.*s", BAY_STR(file), (unsigned long long)line, BAY_STR(text));
        } else {
            cli_say("%.*s: %.*s", BAY_STR(file), BAY_STR(text));
        }
    }
}

cli_exit cli_admin_say_error(int status, bay_str body)
{
    json_doc document;
    arena memory;
    bay_str text = {NULL, 0};
    arena_init(&memory, CLI_ADMIN_ANSWER_BYTES);
    bool is_json = json_parse(&document, body, NULL, &memory, NULL) == BAY_OK;
    if (is_json) {
        say_each(json_get(json_root(&document), STR("errors")), &memory);
        err_ignore(json_str(json_get(json_root(&document), STR("error")), &memory, &text));
    }
    text = is_json ? text : str_head(body, str_find(body, '\n')); /* the HTTP server's own words */
    if (text.len > 0) {
        cli_say("%.*s", BAY_STR(text));
    } else {
        cli_say("the gateway answered with status %d", status);
    }
    arena_fini(&memory);
    return status == 422 ? CLI_EXIT_CONFIG : CLI_EXIT_REMOTE;
}
