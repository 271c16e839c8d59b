/* What a server says while a call is under way: log messages as lines on stderr, progress as one
 * line that rewrites itself, on a terminal only. */
#ifndef CLI_NOTICE_H
#define CLI_NOTICE_H

#include "cli/output.h"
#include "json/json.h"

typedef struct cli_notice {
    output device;
    size_t width; /* columns of the progress line that stands there; 0: none */
} cli_notice;

void cli_notice_init(cli_notice *self);
void cli_notice_fini(cli_notice *self);

bool cli_notice_is_live(const cli_notice *self); /* progress can be shown */

/* `params` of notifications/message. */
void cli_notice_log(cli_notice *self, json_val params);
/* `params` of notifications/progress. */
void cli_notice_progress(cli_notice *self, json_val params);
/* Takes the progress line away. */
void cli_notice_clear(cli_notice *self);

/* The texts alone: one line each, without a line end, harmless on a terminal. */
void cli_notice_log_text(buf *out, json_val params);
void cli_notice_progress_text(buf *out, json_val params);

#endif
