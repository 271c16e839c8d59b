/* The log of a command: lines on stderr, for people or as JSON. Lines of several threads do not
 * mix: each leaves by one write. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/commands.h"
#include "json/writer.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static void put_time(buf *out)
{
    struct timespec now;
    struct tm parts;
    char text[40];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    buf_append(out, text, len);
    buf_printf(out, ".%03ldZ", now.tv_nsec / 1000000);
}

static void write_line(const buf *line)
{
    if (line->err == BAY_OK && write(STDERR_FILENO, line->at, line->len) < 0) {
        return; /* nobody reads the log: there is nobody to tell */
    }
}

static void sink_text(log_level level, const char *component, const char *text, void *user)
{
    char bytes[1200];
    buf line = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    (void)user;
    put_time(&line);
    buf_printf(&line, " %-7s %s: ", level_names[level], component);
    buf_str(&line, str_head(str_of(text), sizeof(bytes) - line.len - 1));
    buf_char(&line, '\n');
    write_line(&line);
}

static void sink_json(log_level level, const char *component, const char *text, void *user)
{
    char bytes[8192];
    buf line = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    (void)user;
    buf_lit(&line, "{\"time\":\"");
    put_time(&line);
    buf_printf(&line, "\",\"level\":\"%s\",\"component\":", level_names[level]);
    json_quote(&line, str_of(component));
    buf_lit(&line, ",\"text\":");
    json_quote(&line, str_of(text));
    buf_lit(&line, "}\n");
    write_line(&line);
}

void cli_log_open(log_level level, config_log_format format)
{
    log_set_sink(level, format == CONFIG_LOG_JSON ? sink_json : sink_text, NULL);
}
