#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/commands.h"

bay_err cli_load_config(const cli_arguments *arguments, const char **out_path, const config **out)
{
    const char *path = arguments->config_file != NULL ? arguments->config_file : "patchbay.yaml";
    config_report *report = mem_zalloc(sizeof(*report));
    if (report == NULL) {
        fprintf(stderr, "patchbay: out of memory\n");
        return BAY_NOMEM;
    }
    bay_err err = config_load_file(path, out, report);
    buf text;
    buf_init(&text, 1 << 20);
    config_report_write(report, &text);
    if (text.len > 0) {
        fprintf(stderr, "%.*s", (int)text.len, text.at);
    }
    if (err == BAY_NOTFOUND && arguments->config_file == NULL) {
        fprintf(stderr,
                "patchbay: name a configuration with -c FILE, or write patchbay.yaml here\n");
    }
    buf_fini(&text);
    mem_free(report);
    *out_path = path;
    return err;
}
