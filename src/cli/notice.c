#include "cli/notice.h"

#include "base/str.h"

enum { LINE_BYTES = 256 * 1024, SHOWN_BYTES = 16 * 1024 };

void cli_notice_init(cli_notice *self)
{
    *self = (cli_notice){0};
    output_init(&self->device, stderr, true);
}

void cli_notice_fini(cli_notice *self)
{
    cli_notice_clear(self);
}

bool cli_notice_is_live(const cli_notice *self)
{
    return self->device.is_terminal && self->device.columns > 1;
}

/* A string decoded, anything else as it is written. */
static void put_value(buf *out, json_val value)
{
    arena memory;
    bay_str text;
    arena_init(&memory, LINE_BYTES);
    if (json_str(value, &memory, &text) == BAY_OK) {
        output_line(out, str_head(text, SHOWN_BYTES));
    } else {
        output_json_line(out, str_head(json_raw(value), SHOWN_BYTES));
    }
    arena_fini(&memory);
}

void cli_notice_log_text(buf *out, json_val params)
{
    put_value(out, json_get(params, STR("level")));
    json_val logger = json_get(params, STR("logger"));
    if (json_is(logger, JSON_STRING)) {
        buf_char(out, ' ');
        put_value(out, logger);
    }
    buf_lit(out, ": ");
    put_value(out, json_get(params, STR("data")));
}

void cli_notice_progress_text(buf *out, json_val params)
{
    json_val total = json_get(params, STR("total"));
    json_val message = json_get(params, STR("message"));
    put_value(out, json_get(params, STR("progress")));
    if (json_is(total, JSON_NUMBER)) {
        buf_char(out, '/');
        put_value(out, total);
    }
    if (json_is(message, JSON_STRING)) {
        buf_char(out, ' ');
        put_value(out, message);
    }
}

void cli_notice_log(cli_notice *self, json_val params)
{
    buf line;
    buf_init(&line, LINE_BYTES);
    cli_notice_clear(self);
    cli_notice_log_text(&line, params);
    buf_char(&line, '\n');
    (void)output_flush(&self->device, &line); /* nobody reads stderr: there is nobody to tell */
    buf_fini(&line);
}

void cli_notice_progress(cli_notice *self, json_val params)
{
    buf text;
    buf line;
    if (!cli_notice_is_live(self)) {
        return;
    }
    buf_init(&text, LINE_BYTES);
    buf_init(&line, LINE_BYTES);
    cli_notice_progress_text(&text, params);
    output_cut(&line, buf_view(&text), self->device.columns - 1);
    size_t width = output_width(buf_view(&line));
    buf_clear(&text);
    buf_char(&text, '\r');
    buf_str(&text, buf_view(&line));
    size_t gap = self->width > width ? self->width - width : 0;
    buf_printf(&text, "%*s", (int)gap, "");
    self->width = width + gap; /* what may still be there if this is not written whole */
    if (output_flush(&self->device, &text)) {
        self->width = width;
    }
    buf_fini(&text);
    buf_fini(&line);
}

void cli_notice_clear(cli_notice *self)
{
    if (self->width > 0) {
        fprintf(stderr, "\r%*s\r", (int)self->width, "");
        fflush(stderr);
        self->width = 0;
    }
}
