/* Who may what, as `patchbay check` shows it. */
#ifndef CLI_CHECK_RULES_H
#define CLI_CHECK_RULES_H

#include "config/config.h"
#include "json/writer.h"

enum { CHECK_RULES = 100 /* shown to a person; the others are counted */ };

/* Behind the title: what holds where no rule counts, then a line for each rule. */
void check_put_rules(const config *settings, buf *out);
/* The members "default" and "rules" of an open object. */
void check_write_rules(const config *settings, json_writer *out);

#endif
