#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/shown.h"
#include "cli/commands.h"
#include "cli/say.h"

const char *cli_config_path(const cli_arguments *arguments)
{
    return arguments->config_file != NULL ? arguments->config_file : "patchbay.yaml";
}

bay_err cli_load_config(const cli_arguments *arguments, bool is_served, const char **out_path,
                        const config **out)
{
    const char *path = cli_config_path(arguments);
    config_report *report = mem_zalloc(sizeof(*report));
    if (report == NULL) {
        cli_say("out of memory");
        return BAY_ERR_NOMEM;
    }
    bay_err err = config_load_file(path, is_served, out, report);
    buf text;
    buf_init(&text, 1 << 20);
    config_report_write(report, &text);
    shown_write(stderr, buf_view(&text), SHOWN_TEXT);
    if (err == BAY_ERR_NOT_FOUND && arguments->config_file == NULL) {
        cli_say("name a configuration with -c FILE, or write patchbay.yaml here");
    }
    buf_fini(&text);
    mem_free(report);
    *out_path = path;
    return err;
}
