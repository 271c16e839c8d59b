#include "cli/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/output.h"

enum { LINE_BYTES = 64 * 1024 };

void cli_say(const char *format, ...)
{
    buf raw;
    buf line;
    va_list arguments;
    buf_init(&raw, LINE_BYTES);
    buf_init(&line, 4 * LINE_BYTES);
    va_start(arguments, format);
    buf_vprintf(&raw, format, arguments);
    va_end(arguments);
    buf_lit(&line, "patchbay: ");
    output_line(&line, buf_view(&raw));
    buf_char(&line, '\n');
    if (raw.err == BAY_OK && line.err == BAY_OK) {
        fwrite(line.at, 1, line.len, stderr);
    } else {
        fputs("patchbay: out of memory\n", stderr);
    }
    fflush(stderr);
    buf_fini(&raw);
    buf_fini(&line);
}

/* What a person can do; empty: nothing but reading. */
static const char *hint(bay_err err, bool is_process)
{
    switch (err) {
    case BAY_ERR_SPAWN:
    case BAY_ERR_NOT_FOUND:
        return "Check the command and its path";
    case BAY_ERR_EXITED:
    case BAY_ERR_CLOSED:
        return is_process ? "Run the command by itself to see why it ends"
                          : "Try again; if it stays so, look at the server's log";
    case BAY_ERR_CONNECT:
        return "Check that the server runs, and the host and port of the URL";
    case BAY_ERR_RESOLVE:
        return "Check the host name of the URL";
    case BAY_ERR_TLS:
        return "Check the server's certificate; a certificate authority of your own is named by "
               "--ca, or by tls.ca of the configuration";
    case BAY_ERR_DENIED:
        return "Log in with `patchbay login`, or give credentials that it accepts: --token-file "
               "FILE";
    case BAY_ERR_TIMEOUT:
        return "Wait longer with --timeout, or see with `patchbay step` how far it comes";
    case BAY_ERR_VERSION:
        return "Leave --protocol out, or give a revision that the server speaks";
    case BAY_ERR_PROTOCOL:
    case BAY_ERR_SYNTAX:
    case BAY_ERR_UTF8:
    case BAY_ERR_DEPTH:
    case BAY_ERR_LIMIT:
    case BAY_ERR_DUPLICATE:
        return "`patchbay step` shows what it sent";
    case BAY_ERR_BUSY:
        return "Try again later";
    default:
        return "";
    }
}

void cli_say_failure(const char *where, bool is_process, bay_err err, const char *text)
{
    const char *what = text != NULL && text[0] != '\0' ? text : bay_err_text(err);
    const char *advice = hint(err, is_process);
    cli_say("%s: %s%s%s", where, what, advice[0] != '\0' ? ". " : "", advice);
}

cli_exit cli_fail(bay_err err)
{
    cli_say("%s", bay_err_text(err));
    return err == BAY_ERR_LIMIT ? CLI_EXIT_PROTOCOL : CLI_EXIT_FAILED;
}

void cli_put_count(buf *out, uint64_t count)
{
    if (count >= 1000) {
        cli_put_count(out, count / 1000);
        buf_printf(out, ",%03u", (unsigned)(count % 1000));
    } else {
        buf_uint(out, count);
    }
}
