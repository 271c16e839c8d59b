/* A client link to a child process: one message per line.
 *
 * The child's stderr is written to the log at debug level, up to a number of lines per second. Its
 * last line is appended to the reason of its end if it may explain it: the child never answered, or
 * it ended by itself with an error within LAST_LINE_MS of the line, and no request was sent after
 * an answer that followed the line. A signal from outside needs no explanation. A line above the
 * limit and the end of the child break the link; the engine counts unreadable lines. A child that
 * exits on server/discover, as some servers of older revisions do, is started once more and then
 * treated as such a server. Source: mcp 2025-11-25 basic/transports, stdio; mcp 2025-11-25
 * basic/lifecycle, Shutdown. */
#include <signal.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp_transport/link_internal.h"

enum {
    TERM_MS = 2000, /* from closing its stdin to SIGTERM */
    KILL_MS = 3000, /* from there to SIGKILL */
    LOG_LINES_PER_WINDOW = 1000,
    LOG_WINDOW_MS = 1000,
    LAST_WORDS = 160,
    LAST_LINE_MS = 2000,     /* between its last line on stderr and an end that the line explains */
    LAST_LINES_BYTES = 4096, /* of its last lines, kept for the log */
    OVERLONG_TIMES = 4,      /* the bound of a line: one that is longer ends the link … */
    OVERLONG_MS = 2000,      /* … and one above the bound that stalls for so long */
};

/* What is needed to start the child again. */
typedef struct command {
    process_options options;
    const char **strings; /* argv, then env, each with its NULL */
    char *bytes;          /* may hold secrets */
    sandbox_options *sandbox;
    size_t len;
} command;

typedef struct stdio_link {
    mcp_link base;
    process *process;
    command command;
    char *name;
    buf scratch;
    uint32_t term_ms, kill_ms;
    size_t line_bytes;
    uint64_t window_ms; /* when the current second of the log began */
    uint64_t window_lines;
    char last_words[LAST_WORDS];
    uint64_t words_ms; /* when they arrived */
    buf last_lines;    /* of stderr, each with its line end, without what the log has */
    bool is_answered;  /* output on stdout followed the last line */
    bool is_explained; /* it has ended, and its last line explains that */
    bool has_exited;
    bool has_restarted;
    bool speaks_legacy;
    size_t overlong_bytes; /* of a line above the bound that is on its way; 0: none is */
    rpc_outline overlong;  /* what it shows */
    loop_timer overlong_timer;
} stdio_link;

static stdio_link *stdio_of(mcp_link *base)
{
    return CONTAINER_OF(base, stdio_link, base);
}

/* ---- the command -------------------------------------------------------------------------------
 */

static size_t count_strings(const char *const *strings, size_t *bytes)
{
    size_t count = 0;
    while (strings != NULL && strings[count] != NULL) {
        *bytes += strlen(strings[count++]) + 1;
    }
    return count;
}

static char *copy_string(char **at, const char *text)
{
    char *copy = *at;
    size_t len = strlen(text) + 1;
    memcpy(copy, text, len);
    *at += len;
    return copy;
}

static bay_err command_copy(command *self, const process_options *from)
{
    size_t bytes = from->cwd != NULL ? strlen(from->cwd) + 1 : 0;
    size_t argv_count = count_strings(from->argv, &bytes);
    size_t env_count = count_strings(from->env, &bytes);
    self->options = *from;
    self->strings = mem_array(argv_count + env_count + 2, sizeof(*self->strings));
    self->bytes = mem_alloc(bytes + 1);
    if (from->sandbox != NULL) {
        self->options.sandbox = self->sandbox = sandbox_options_dup(from->sandbox);
    }
    bool has_sandbox = from->sandbox == NULL || self->sandbox != NULL;
    if (self->strings == NULL || self->bytes == NULL || !has_sandbox) {
        return BAY_ERR_NOMEM;
    }
    self->len = bytes;
    char *at = self->bytes;
    for (size_t i = 0; i < argv_count; i++) {
        self->strings[i] = copy_string(&at, from->argv[i]);
    }
    for (size_t i = 0; i < env_count; i++) {
        self->strings[argv_count + 1 + i] = copy_string(&at, from->env[i]);
    }
    self->options.argv = self->strings;
    self->options.env = from->env != NULL ? self->strings + argv_count + 1 : NULL;
    self->options.cwd = from->cwd != NULL ? copy_string(&at, from->cwd) : NULL;
    return BAY_OK;
}

static void command_fini(command *self)
{
    if (self->bytes != NULL) {
        mem_wipe(self->bytes, self->len);
    }
    mem_free(self->bytes);
    mem_free(self->strings);
    mem_free(self->sandbox);
    *self = (command){0};
}

/* ---- what it writes to stderr ------------------------------------------------------------------
 */

static void forget_words(stdio_link *self)
{
    self->last_words[0] = '\0';
    self->is_answered = false;
    buf_clear(&self->last_lines);
}

static void keep_line(stdio_link *self, bay_str line)
{
    bay_str kept = str_head(line, LAST_LINES_BYTES / 4);
    while (self->last_lines.len + kept.len + 1 > LAST_LINES_BYTES) {
        buf_consume(&self->last_lines, str_find(buf_view(&self->last_lines), '\n') + 1);
    }
    buf_str(&self->last_lines, kept);
    buf_char(&self->last_lines, '\n');
    if (self->last_lines.err != BAY_OK) {
        buf_clear(&self->last_lines);
    }
}

/* Signals by which a program ends itself, or that a sandbox's limits send; others come from
 * outside. */
static bool is_own_signal(int signal)
{
    static const int own[] = {SIGABRT, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                              SIGTRAP, SIGSYS,  SIGXCPU, SIGXFSZ};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (own[i] == signal) {
            return true;
        }
    }
    return false;
}

static bool do_words_explain(const stdio_link *self, int exit_status, int signal)
{
    if (self->last_words[0] == '\0' || (signal != 0 && !is_own_signal(signal))) {
        return false;
    }
    if (mcp_client_revision(self->base.client) == NULL) {
        return true; /* it never answered */
    }
    bool is_error = signal != 0 || exit_status != 0;
    return is_error && link_now(&self->base) - self->words_ms <= LAST_LINE_MS;
}

static void stdio_log_last_lines(const mcp_link *base)
{
    const stdio_link *self = CONTAINER_OF(base, stdio_link, base);
    bay_str rest = buf_view(&self->last_lines);
    if (rest.len <= LAST_WORDS && str_find(rest, '\n') + 1 == rest.len) {
        return; /* one line, which the reason quotes */
    }
    while (self->is_explained && rest.len > 0) {
        size_t len = str_find(rest, '\n');
        LOG(LOG_WARN, self->name, "stderr: %.*s", BAY_STR(str_head(rest, len)));
        rest = str_from(rest, len + 1);
    }
}

/* ---- the engine's wishes ----------------------------------------------------------------------
 */

static bay_err stdio_send(void *link, uint64_t exchange, bay_str message, const mcp_field *fields,
                          size_t count, uint32_t timeout_ms)
{
    (void)exchange;
    (void)fields;
    (void)count;
    (void)timeout_ms;
    stdio_link *self = link;
    if (self->base.is_freed || self->has_exited) {
        return BAY_ERR_CLOSED;
    }
    link_touch(&self->base);
    if (self->is_answered) {
        forget_words(self); /* they belong to the past */
    }
    bay_str line = link_line(&self->scratch, message);
    if (line.at == NULL) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = process_write(self->process, line);
    self->base.is_clogged = self->base.is_clogged || err == BAY_ERR_AGAIN;
    if (self->scratch.cap > LINK_HIGH_BYTES) {
        buf_fini(&self->scratch);
        buf_init(&self->scratch, SIZE_MAX / 2);
    }
    return err;
}

static void stdio_pause(void *link, uint64_t exchange, bool is_paused)
{
    (void)exchange;
    stdio_link *self = link;
    if (self->base.is_freed || self->has_exited) {
        return;
    }
    if (is_paused && !self->base.is_closing) {
        process_pause(self->process);
    } else {
        process_resume(self->process);
    }
}

static const mcp_link_ops stdio_ops = {.send = stdio_send, .pause = stdio_pause};

/* ---- the child's events ------------------------------------------------------------------------
 */

static void on_line(void *user, bay_str line)
{
    stdio_link *self = user;
    self->is_answered = true;
    if (self->base.is_begun) {
        mcp_client_receive(self->base.client, 0, line, (bay_str){0}, link_now(&self->base));
        link_touch(&self->base);
    }
}

static void sum_up(stdio_link *self)
{
    if (self->window_lines > LOG_LINES_PER_WINDOW) {
        LOG(LOG_DEBUG, self->name, "%llu more lines of its stderr were not logged",
            (unsigned long long)(self->window_lines - LOG_LINES_PER_WINDOW));
    }
    self->window_lines = 0;
}

static void on_error_line(void *user, bay_str line)
{
    stdio_link *self = user;
    uint64_t now = link_now(&self->base);
    if (now - self->window_ms >= LOG_WINDOW_MS) {
        sum_up(self);
        self->window_ms = now;
    }
    bool is_logged = ++self->window_lines <= LOG_LINES_PER_WINDOW && log_wants(LOG_DEBUG);
    if (is_logged) {
        log_write(LOG_DEBUG, self->name, "%.*s", BAY_STR(line));
    } else {
        keep_line(self, line);
    }
    self->is_answered = false;
    self->words_ms = now;
    char words[LAST_WORDS];
    link_clean_text(words, sizeof(words), str_trim(line));
    if (words[0] != '\0') {
        memcpy(self->last_words, words, sizeof(words));
    }
}

static void on_drained(void *user)
{
    stdio_link *self = user;
    self->base.is_clogged = false;
    mcp_client_drained(self->base.client);
    link_touch(&self->base);
}

/* A line above the bound has ended, or is given up. */
static void end_overlong(stdio_link *self, bool is_whole)
{
    mcp_client *client = self->base.client;
    char text[120];
    self->overlong_bytes = 0;
    loop_timer_stop(self->base.loop, &self->overlong_timer);
    snprintf(text, sizeof(text), "the server wrote a line of more than %zu bytes",
             self->line_bytes);
    if (is_whole && mcp_client_overlong(client, &self->overlong, text, link_now(&self->base))) {
        link_touch(&self->base);
        return;
    }
    process_close(self->process, 0, 0);
    mcp_client_broken(client, BAY_ERR_LIMIT, text, link_now(&self->base));
}

static void on_overlong_stalled(void *argument)
{
    end_overlong(argument, false);
}

/* A line above the bound. Where it shows what it is, whoever waits for it is told, and the process
 * goes on; one that does not, or that does not end, ends the link. */
static void on_piece(void *user, bay_str piece, bool is_last)
{
    stdio_link *self = user;
    if (self->base.is_freed || !self->base.is_begun ||
        mcp_client_state_of(self->base.client) == MCP_CLIENT_BROKEN) {
        return;
    }
    if (self->overlong_bytes == 0) {
        rpc_outline_init(&self->overlong);
    }
    rpc_outline_feed(&self->overlong, piece);
    self->overlong_bytes += piece.len;
    bool may_go_on =
        !is_last && rpc_outline_is_open(&self->overlong) &&
        self->overlong_bytes / OVERLONG_TIMES <= self->line_bytes &&
        loop_timer_start(self->base.loop, &self->overlong_timer, OVERLONG_MS) == BAY_OK;
    if (!may_go_on) {
        end_overlong(self, is_last);
    }
}

static const process_events child_events;

/* True: the child was started again. */
static bool restart(stdio_link *self)
{
    bool may = self->speaks_legacy && !self->has_restarted && !self->base.is_closing &&
               self->base.is_begun && mcp_client_state_of(self->base.client) == MCP_CLIENT_PROBING;
    if (!may) {
        return false;
    }
    self->has_restarted = true;
    process *started = NULL;
    if (process_start(self->base.loop, &self->command.options, &child_events, self, &started,
                      NULL) != BAY_OK) {
        return false;
    }
    process_free(self->process);
    self->process = started;
    forget_words(self); /* of the previous process */
    self->overlong_bytes = 0;
    loop_timer_stop(self->base.loop, &self->overlong_timer);
    self->base.is_clogged = false;
    LOG(LOG_DEBUG, self->name, "ended when it was asked server/discover; started again");
    if (mcp_client_restarted(self->base.client, link_now(&self->base))) {
        link_touch(&self->base);
        return true;
    }
    process_free(self->process); /* the engine does not restart it */
    self->process = NULL;
    return false;
}

/* The signals of a sandbox's limits and filter. */
static const char *meaning_of(int signal)
{
    switch (signal) {
    case SIGXCPU:
        return " (its processor time is used up)";
    case SIGSYS:
        return " (a system call that is not allowed)";
    default:
        return "";
    }
}

static void on_exited(void *user, int exit_status, int signal)
{
    stdio_link *self = user;
    char text[100 + LAST_WORDS];
    if (restart(self)) {
        return;
    }
    self->has_exited = true;
    sum_up(self);
    int len = signal != 0 ? snprintf(text, sizeof(text), "was killed by signal %d%s", signal,
                                     meaning_of(signal))
                          : snprintf(text, sizeof(text), "exited with status %d", exit_status);
    self->is_explained = do_words_explain(self, exit_status, signal);
    if (self->is_explained) {
        snprintf(text + len, sizeof(text) - (size_t)len, ": %s", self->last_words);
    }
    self->base.is_begun = true; /* there is nothing left to begin */
    mcp_client_broken(self->base.client, BAY_ERR_EXITED, text, link_now(&self->base));
    if (!self->base.is_freed && self->base.is_closing) {
        link_closed(&self->base);
    }
}

static const process_events child_events = {
    .line = on_line,
    .error_line = on_error_line,
    .drained = on_drained,
    .piece = on_piece,
    .exited = on_exited,
};

/* ---- the link's life ---------------------------------------------------------------------------
 */

static void stdio_begin(mcp_link *base)
{
    mcp_client_opened(base->client, link_now(base));
}

static void stdio_close(mcp_link *base)
{
    stdio_link *self = stdio_of(base);
    if (self->has_exited) {
        link_closed(base);
        return;
    }
    process_resume(self->process); /* reading detects its end */
    process_close(self->process, self->term_ms, self->kill_ms);
}

static void stdio_stop(mcp_link *base)
{
    stdio_link *self = stdio_of(base);
    loop_timer_stop(base->loop, &self->overlong_timer);
    process_free(self->process);
    self->process = NULL;
    self->has_exited = true;
}

static void stdio_release(mcp_link *base)
{
    stdio_link *self = stdio_of(base);
    buf_fini(&self->scratch);
    buf_fini(&self->last_lines);
    command_fini(&self->command);
    mem_free(self->name);
    mem_free(self);
}

static int stdio_process_id(const mcp_link *base)
{
    const stdio_link *self = CONTAINER_OF(base, stdio_link, base);
    return self->has_exited ? 0 : process_id(self->process);
}

static const link_carrier stdio_carrier = {
    .begin = stdio_begin,
    .close = stdio_close,
    .stop = stdio_stop,
    .release = stdio_release,
    .process_id = stdio_process_id,
    .log_last_lines = stdio_log_last_lines,
};

bay_err mcp_link_open_stdio(loop *runs_on, const process_options *child, bay_str name,
                            const mcp_link_options *options, mcp_link **out, bay_diag *diag)
{
    stdio_link *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory for a link");
    }
    buf_init(&self->scratch, SIZE_MAX / 2);
    buf_init(&self->last_lines, LAST_LINES_BYTES);
    self->term_ms = options->term_ms != 0 ? options->term_ms : TERM_MS;
    self->kill_ms = options->kill_ms != 0 ? options->kill_ms : KILL_MS;
    self->window_ms = loop_now_ms(runs_on);
    loop_timer_init(&self->overlong_timer, on_overlong_stalled, self);
    self->speaks_legacy = options->client.oldest <= MCP_LATEST_LEGACY;
    self->name = mem_dup(name.at, name.len);
    bay_err err = self->name != NULL ? command_copy(&self->command, child) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = link_init(&self->base, &stdio_carrier, runs_on, options, MCP_LINK_DUPLEX, &stdio_ops);
    }
    if (err != BAY_OK) {
        stdio_release(&self->base);
        return diag_set(diag, err, "a link could not be made: %s", bay_err_text(err));
    }
    self->command.options.line_bytes =
        child->line_bytes != 0 ? child->line_bytes : self->base.max_message_bytes;
    self->line_bytes = self->command.options.line_bytes;
    err = process_start(runs_on, &self->command.options, &child_events, self, &self->process, diag);
    if (err != BAY_OK) {
        mcp_link_free(&self->base);
        return err;
    }
    *out = &self->base;
    return BAY_OK;
}
