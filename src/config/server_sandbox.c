#include "config/server_sandbox.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"

static const bay_str no_defaults = STR_INIT("none");

static bool is_plain(bay_str path)
{
    for (bay_str rest = path; rest.len > 0;) {
        size_t end = str_find(rest, '/');
        bay_str part = str_head(rest, end);
        if (str_eq(part, STR(".")) || str_eq(part, STR(".."))) {
            return false;
        }
        rest = str_from(rest, end + 1);
    }
    return path.len > 0 && path.at[0] == '/';
}

bool server_sandbox_path(bay_str entry, bay_str *out_path, bool *out_is_writable)
{
    size_t colon = str_find_last(entry, ':');
    bay_str mode = str_from(entry, colon);
    bool is_writable = str_eq(mode, STR(":rw"));
    bool has_mode = is_writable || str_eq(mode, STR(":ro"));
    *out_path = has_mode ? str_head(entry, colon) : entry;
    *out_is_writable = is_writable;
    return is_plain(*out_path);
}

/* The next part of a path, past any slashes; empty at its end. */
static bay_str next_part(bay_str *rest)
{
    while (rest->len > 0 && rest->at[0] == '/') {
        *rest = str_from(*rest, 1);
    }
    bay_str part = str_head(*rest, str_find(*rest, '/'));
    *rest = str_from(*rest, part.len);
    return part;
}

static bool is_inside(bay_str path, bay_str folder)
{
    for (;;) {
        bay_str part = next_part(&folder);
        if (part.len == 0) {
            return true;
        }
        if (!str_eq(part, next_part(&path))) {
            return false;
        }
    }
}

size_t server_sandbox_nested(const config_sandbox *self)
{
    size_t first = server_sandbox_has_defaults(self) ? 0 : 1;
    for (size_t i = first; i < self->fs.count; i++) {
        bay_str path;
        bool is_writable;
        (void)server_sandbox_path(self->fs.at[i], &path, &is_writable);
        for (size_t k = first; k < self->fs.count; k++) {
            bay_str folder;
            (void)server_sandbox_path(self->fs.at[k], &folder, &is_writable);
            if (k != i && is_writable && is_inside(path, folder)) {
                return i;
            }
        }
    }
    return self->fs.count;
}

bool server_sandbox_has_defaults(const config_sandbox *self)
{
    return self->fs.count == 0 || !str_eq(self->fs.at[0], no_defaults);
}

static bay_err make_paths(const config_sandbox *settings, arena *memory, sandbox_options *out)
{
    size_t first = server_sandbox_has_defaults(settings) ? 0 : 1;
    sandbox_path *paths = arena_array(memory, settings->fs.count + 1, sizeof(*paths));
    if (paths == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = first; i < settings->fs.count; i++) {
        bay_str path;
        bool is_writable = false;
        (void)server_sandbox_path(settings->fs.at[i], &path, &is_writable); /* checked on loading */
        char *text = arena_alloc(memory, path.len + 1);
        if (text == NULL) {
            return BAY_ERR_NOMEM;
        }
        memcpy(text, path.at, path.len);
        text[path.len] = '\0';
        paths[i - first] = (sandbox_path){text, is_writable};
    }
    out->paths = paths;
    out->path_count = settings->fs.count - first;
    return BAY_OK;
}

bay_err server_sandbox_make(const config_server *server, arena *memory, const sandbox_options **out)
{
    const config_sandbox *settings = &server->sandbox;
    *out = NULL;
    if (!settings->is_enabled) {
        return BAY_OK;
    }
    sandbox_options *made = arena_alloc(memory, sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    *made = (sandbox_options){
        .has_no_defaults = !server_sandbox_has_defaults(settings),
        .has_net = settings->net,
        .has_unix_sockets = settings->unix_sockets,
        .has_attributes = settings->attributes,
        .memory_bytes = settings->memory_bytes,
        .cpus = settings->cpus,
        .cpu_seconds = settings->cpu_time_ms / 1000 + (settings->cpu_time_ms % 1000 != 0),
        .processes = settings->processes,
        .files = settings->files,
        .user = settings->user.len > 0 ? settings->user.at : NULL,
        .bubblewrap = settings->bubblewrap,
        .is_best_effort = settings->best_effort,
    };
    bay_err err = make_paths(settings, memory, made);
    *out = err == BAY_OK ? made : NULL;
    return err;
}

void server_sandbox_log(const config_server *server, const sandbox_options *sandbox)
{
    char text[SANDBOX_TEXT_BYTES];
    sandbox_missing(sandbox, text);
    if (text[0] != '\0') { /* without bestEffort the start fails with the same words */
        LOG(LOG_WARN, server->name.at, "its sandbox is incomplete: %s", text);
    }
    sandbox_describe(sandbox, text);
    LOG(LOG_INFO, server->name.at, "sandboxed by %s", text);
}

static bool is_named(const config_map *env, bay_str name)
{
    for (size_t i = 0; i < env->count; i++) {
        if (str_eq(env->at[i].name, name)) {
            return true;
        }
    }
    return false;
}

bool server_inherits(const config_server *server, const char *variable)
{
    static const bay_str needed[] = {
        STR_INIT("PATH"), STR_INIT("HOME"),   STR_INIT("USER"),     STR_INIT("LOGNAME"),
        STR_INIT("LANG"), STR_INIT("LC_ALL"), STR_INIT("LC_CTYPE"), STR_INIT("TZ"),
        STR_INIT("TERM"), STR_INIT("TMPDIR"),
    };
    bay_str name = str_head(str_of(variable), strcspn(variable, "="));
    if (is_named(&server->env, name)) {
        return false;
    }
    bool is_needed = !server->sandbox.is_enabled;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        is_needed = is_needed || str_eq(needed[i], name);
    }
    return is_needed;
}
