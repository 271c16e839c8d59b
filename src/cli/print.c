#include "cli/print.h"

#include <errno.h>
#include <string.h>

#include "cli/say.h"

void cli_print_init(output *device, buf *text, const cli_arguments *arguments)
{
    output_init(device, stdout, arguments->is_colorless || arguments->is_json);
    buf_init(text, CLI_PRINT_BYTES);
}

cli_exit cli_print(output *device, buf *text, cli_exit code)
{
    bay_err err = text->err;
    errno = 0;
    if (output_flush(device, text)) {
        return code;
    }
    cli_say("the output could not be written: %s",
            err != BAY_OK ? bay_err_text(err) : strerror(errno));
    return CLI_EXIT_FAILED;
}

cli_exit cli_print_json(output *device, bay_str raw, cli_exit code)
{
    buf line;
    buf_init(&line, CLI_PRINT_BYTES);
    output_json(device, &line, raw);
    buf_char(&line, '\n');
    code = cli_print(device, &line, code);
    buf_fini(&line);
    return code;
}
