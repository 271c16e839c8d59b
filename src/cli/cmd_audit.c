/* audit: whether the record of calls that a gateway keeps is whole. */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/say.h"
#include "evidence/audit_verify.h"
#include "json/writer.h"

static const char *fault_text(audit_fault fault)
{
    static const char *const texts[] = {
        [AUDIT_GOOD] = "",
        [AUDIT_NO_RECORD] = "not a record",
        [AUDIT_GAP] = "records before it are missing, or it was moved",
        [AUDIT_CHANGED] = "it, or a record before it, was changed",
    };
    return texts[fault];
}

static void put_count(json_writer *out, const char *name, uint64_t count)
{
    json_key(out, str_of(name));
    json_put_uint(out, count);
}

static void put_text(json_writer *out, const char *name, bay_str text)
{
    json_key(out, str_of(name));
    json_put_str(out, text);
}

static void put_truth(json_writer *out, const char *name, bool value)
{
    json_key(out, str_of(name));
    json_put_bool(out, value);
}

static void write_json(const audit_verdict *of, bool is_whole, bool asks_head, bay_str head,
                       buf *out)
{
    json_writer writer;
    json_writer_init(&writer, out);
    json_open_object(&writer);
    put_truth(&writer, "whole", is_whole);
    if (of->fault != AUDIT_GOOD) {
        put_text(&writer, "fault", str_of(fault_text(of->fault)));
        put_text(&writer, "file", str_of(of->file));
        put_count(&writer, "line", of->line);
    }
    put_count(&writer, "firstSeq", of->first_seq);
    put_count(&writer, "lastSeq", of->chain.seq);
    put_text(&writer, "head", head);
    put_count(&writer, "lines", of->lines);
    put_count(&writer, "calls", of->calls);
    put_count(&writer, "crashes", of->crashes);
    put_count(&writer, "tornBytes", of->torn_bytes);
    put_count(&writer, "dropped", of->dropped);
    put_truth(&writer, "closed", of->is_closed);
    if (asks_head) {
        put_truth(&writer, "hasHead", of->has_head);
    }
    json_close_object(&writer);
}

static void put_number(buf *out, const char *before, uint64_t number, const char *after)
{
    buf_str(out, str_of(before));
    buf_uint(out, number);
    buf_str(out, str_of(after));
}

static void write_text(const audit_verdict *of, bool asks_head, bay_str head, buf *out)
{
    put_number(out, "records  ", of->lines, "");
    put_number(out, ", of which ", of->calls, " of calls");
    put_number(out, "; numbers ", of->first_seq, "");
    put_number(out, " to ", of->chain.seq, "\nhead     ");
    buf_str(out, head);
    buf_char(out, '\n');
    if (of->first_seq > 1) {
        buf_lit(out, "begin    earlier records are not here: deleted by age, or removed\n");
    }
    if (of->crashes > 0) {
        put_number(out, "crashes  ", of->crashes,
                   ": the gateway was not ended in order; records of its last moments may be "
                   "missing\n");
    }
    if (of->torn_bytes > 0) {
        put_number(out, "torn     ", of->torn_bytes, " bytes of records that were cut off so\n");
    }
    if (of->dropped > 0) {
        put_number(out, "lost     ", of->dropped, " records, which the gateway could not write\n");
    }
    if (!of->is_closed && of->fault == AUDIT_GOOD) {
        buf_lit(out, "end      not closed: a gateway writes to it, or was not ended in order\n");
    }
    if (of->fault != AUDIT_GOOD) {
        buf_lit(out, "FAULT    ");
        output_line(out, str_of(of->file));
        put_number(out, ":", of->line, ": ");
        buf_str(out, str_of(fault_text(of->fault)));
        buf_char(out, '\n');
    } else if (asks_head && !of->has_head) {
        buf_lit(out, "FAULT    the head that was given is not one of this audit: records are "
                     "missing at its end, or it was written anew\n");
    } else {
        buf_str(out, asks_head
                         ? STR("whole    up to the head that was given, and behind it\n")
                         : STR("whole    whether records are missing at the end is not known: "
                               "give a head that was kept elsewhere, with --head\n"));
    }
}

static bool is_head(bay_str text)
{
    return text.len == AUDIT_HASH_DIGITS && strspn(text.at, "0123456789abcdef") == text.len;
}

/* The configured file in `room`, or what the command line names. */
static cli_exit find_file(const cli_arguments *arguments, const config **settings, const char **out)
{
    const char *config_path = NULL;
    *out = arguments->name;
    if (*out != NULL) {
        return CLI_EXIT_OK;
    }
    if (cli_load_config(arguments, false, &config_path, settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    if ((*settings)->audit.file.len == 0) {
        cli_say("the configuration has no audit: name its file, patchbay audit verify FILE");
        return CLI_EXIT_CONFIG;
    }
    *out = (*settings)->audit.file.at;
    return CLI_EXIT_OK;
}

static cli_exit verify(const cli_arguments *arguments, const char *path)
{
    output device;
    buf text;
    audit_verdict verdict;
    bay_diag diag = {0};
    char head[AUDIT_HASH_DIGITS + 1];
    bay_str asked = str_of(arguments->head);
    if (arguments->head != NULL && !is_head(asked)) {
        cli_say("--head: write the 64 digits of a hash, 0-9 and a-f");
        return CLI_EXIT_USAGE;
    }
    bay_err err = audit_verify(path, asked, &verdict, &diag);
    if (err != BAY_OK) {
        cli_say("%s", diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        return CLI_EXIT_FAILED;
    }
    bool is_whole = verdict.fault == AUDIT_GOOD && (arguments->head == NULL || verdict.has_head);
    cli_exit code = is_whole ? CLI_EXIT_OK : CLI_EXIT_BREAKING;
    audit_chain_head(&verdict.chain, head);
    cli_print_init(&device, &text, arguments);
    if (arguments->is_json) {
        write_json(&verdict, is_whole, arguments->head != NULL, str_of(head), &text);
        code = cli_print_json(&device, buf_view(&text), code);
    } else {
        write_text(&verdict, arguments->head != NULL, str_of(head), &text);
        code = cli_print(&device, &text, code);
    }
    buf_fini(&text);
    return code;
}

int cmd_audit(const cli_arguments *arguments)
{
    const config *settings = NULL;
    const char *path = NULL;
    cli_exit code = find_file(arguments, &settings, &path);
    if (code == CLI_EXIT_OK) {
        code = verify(arguments, path);
    }
    config_free(settings);
    return (int)code;
}
