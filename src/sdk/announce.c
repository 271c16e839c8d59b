/* What a server announces of itself: lists that changed, resources that were updated. Any thread
 * may announce while the server serves; one message to the loop carries all that came until it
 * runs, so a busy thread costs no more memory than the resources it names. */
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/server_parts.h"

_Static_assert((int)BAY_KIND_TOOLS == (int)MCP_CHANGE_TOOLS &&
                   (int)BAY_KIND_PROMPTS == (int)MCP_CHANGE_PROMPTS &&
                   (int)BAY_KIND_RESOURCES == (int)MCP_CHANGE_RESOURCES,
               "one numbering");

typedef struct update {
    struct update *next;
    size_t len;
    char uri[];
} update;

typedef struct log_line {
    struct log_line *next;
    mcp_log_level level;
    size_t len;
    char params[];
} log_line;

/* Entries may have been switched off or on. */
static void forget_lists(bay_server *server, unsigned changes)
{
    static const struct {
        entry_kind kind;
        unsigned change;
    } rows[] = {{ENTRY_TOOL, BAY_KIND_TOOLS},
                {ENTRY_PROMPT, BAY_KIND_PROMPTS},
                {ENTRY_RESOURCE, BAY_KIND_RESOURCES},
                {ENTRY_TEMPLATE, BAY_KIND_RESOURCES}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if ((changes & rows[i].change) != 0) {
            sdk_list_forget(&server->lists[rows[i].kind]);
        }
    }
}

static void tell_lines(bay_server *server, log_line *lines)
{
    while (lines != NULL) {
        log_line *next = lines->next;
        if (server->engine != NULL) {
            mcp_server_log(server->engine, lines->level, (bay_str){lines->params, lines->len});
        }
        mem_free(lines);
        lines = next;
    }
}

static void announce(void *argument)
{
    bay_server *server = argument;
    announcements *self = &server->announcements;
    pthread_mutex_lock(&self->lock);
    unsigned changes = self->changes;
    update *updates = self->first;
    log_line *lines = self->first_line;
    self->changes = 0;
    self->first = self->last = NULL;
    self->first_line = self->last_line = NULL;
    self->lines = 0;
    map_fini(&self->by_uri);
    map_init(&self->by_uri, SERVER_MAX_UPDATES);
    self->is_posted = false;
    pthread_mutex_unlock(&self->lock);
    forget_lists(server, changes);
    tell_lines(server, lines);
    for (unsigned bit = 1; bit <= MCP_CHANGE_RESOURCES; bit <<= 1) {
        if ((changes & bit) != 0 && server->engine != NULL) {
            mcp_server_changed(server->engine, (mcp_change)bit);
        }
    }
    while (updates != NULL) {
        update *next = updates->next;
        if (server->engine != NULL) {
            mcp_server_resource_updated(server->engine, (bay_str){updates->uri, updates->len});
        }
        mem_free(updates);
        updates = next;
    }
}

/* With the lock held. */
static void post(announcements *self)
{
    if (!self->is_posted) {
        self->is_posted = loop_post_message(self->loop, &self->message) == BAY_OK;
    }
}

void bay_server_changed(bay_server *server, bay_kind kind)
{
    if (server == NULL) {
        return;
    }
    announcements *self = &server->announcements;
    pthread_mutex_lock(&self->lock);
    if (self->loop != NULL) {
        self->changes |= (unsigned)kind & (BAY_KIND_TOOLS | BAY_KIND_PROMPTS | BAY_KIND_RESOURCES);
        self->changes |=
            (kind & (BAY_KIND_TEMPLATES | BAY_KIND_SKILLS)) != 0 ? BAY_KIND_RESOURCES : 0;
        post(self);
    }
    pthread_mutex_unlock(&self->lock);
}

/* With the lock held. */
static bay_err add_update(announcements *self, bay_str uri)
{
    if (map_get(&self->by_uri, uri) != NULL) {
        return BAY_OK;
    }
    update *item = mem_alloc(sizeof(*item) + uri.len);
    if (item == NULL) {
        return BAY_ERR_NOMEM;
    }
    *item = (update){.len = uri.len};
    memcpy(item->uri, uri.at, uri.len);
    bay_err err = map_put(&self->by_uri, (bay_str){item->uri, item->len}, item, NULL);
    if (err != BAY_OK) {
        mem_free(item);
        return err;
    }
    if (self->last != NULL) {
        self->last->next = item;
    } else {
        self->first = item;
    }
    self->last = item;
    return BAY_OK;
}

void bay_server_updated(bay_server *server, const char *uri)
{
    bay_server_updated_str(server, str_of(uri));
}

void bay_server_updated_str(bay_server *server, bay_str uri)
{
    if (server == NULL || uri.len == 0) {
        return;
    }
    announcements *self = &server->announcements;
    bay_err err = BAY_OK;
    pthread_mutex_lock(&self->lock);
    if (self->loop != NULL) {
        err = add_update(self, uri);
        post(self);
    }
    pthread_mutex_unlock(&self->lock);
    if (err != BAY_OK) {
        SERVER_LOG(server, LOG_ERROR, "server", "an update of %.*s is not announced: %s",
                   BAY_STR(str_head(uri, 200)), bay_err_text(err));
    }
}

static bay_err add_line(announcements *self, mcp_log_level level, bay_str params)
{
    if (self->lines >= SERVER_MAX_LINES) {
        return BAY_ERR_LIMIT;
    }
    log_line *item = mem_alloc(sizeof(*item) + params.len);
    if (item == NULL) {
        return BAY_ERR_NOMEM;
    }
    *item = (log_line){.level = level, .len = params.len};
    memcpy(item->params, params.at, params.len);
    if (self->last_line != NULL) {
        self->last_line->next = item;
    } else {
        self->first_line = item;
    }
    self->last_line = item;
    self->lines++;
    return BAY_OK;
}

void bay_server_log(bay_server *server, const char *level, const char *text)
{
    bay_server_log_str(server, level, str_of(text));
}

void bay_server_logf(bay_server *server, const char *level, const char *format, ...)
{
    buf text;
    va_list arguments;
    va_start(arguments, format);
    sdk_format(&text, format, arguments);
    va_end(arguments);
    bay_server_log_str(server, level, buf_view(&text));
    buf_fini(&text);
}

void bay_server_log_str(bay_server *server, const char *level, bay_str text)
{
    mcp_log_level severity;
    if (server == NULL || !mcp_log_level_find(str_of(level), &severity)) {
        return;
    }
    announcements *self = &server->announcements;
    buf params;
    buf_init(&params, 1 << 20);
    buf_lit(&params, "{\"level\":");
    json_quote(&params, str_of(level));
    buf_lit(&params, ",\"data\":");
    json_quote(&params, text);
    buf_char(&params, '}');
    bay_err err = params.err;
    pthread_mutex_lock(&self->lock);
    if (self->loop != NULL && err == BAY_OK) {
        err = add_line(self, severity, buf_view(&params));
        post(self);
    }
    pthread_mutex_unlock(&self->lock);
    buf_fini(&params);
    if (err != BAY_OK) {
        SERVER_LOG(server, LOG_WARN, "server", "a log message is not told: %s", bay_err_text(err));
    }
}

bay_err sdk_announcements_init(announcements *self)
{
    map_init(&self->by_uri, SERVER_MAX_UPDATES);
    return pthread_mutex_init(&self->lock, NULL) == 0 ? BAY_OK : BAY_ERR_NOMEM;
}

void sdk_announcements_open(bay_server *server, loop *on)
{
    announcements *self = &server->announcements;
    pthread_mutex_lock(&self->lock);
    self->loop = on;
    self->message = (loop_message){.function = announce, .argument = server};
    pthread_mutex_unlock(&self->lock);
}

/* A message under way is run by the loop before it is freed, and finds no engine. */
void sdk_announcements_close(bay_server *server)
{
    pthread_mutex_lock(&server->announcements.lock);
    server->announcements.loop = NULL;
    pthread_mutex_unlock(&server->announcements.lock);
}

void sdk_announcements_fini(announcements *self)
{
    map_fini(&self->by_uri);
    pthread_mutex_destroy(&self->lock);
}
