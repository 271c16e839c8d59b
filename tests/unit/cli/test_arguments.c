/* The command line: what is refused and with which words, what is understood, and that --help and
 * docs/cli.md are what the tables say (BAY_REGENERATE in the environment writes the page). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/arguments_table.h"

enum { MOST_WORDS = 80 };

/* Words are separated by single spaces. */
typedef struct line {
    char text[1024];
    char *argv[MOST_WORDS + 1];
    int argc;
} line;

static bay_err parse(line *self, const char *text, cli_arguments *out, bay_diag *diag)
{
    self->argc = 0;
    snprintf(self->text, sizeof(self->text), "patchbay%s%s", text[0] != '\0' ? " " : "", text);
    for (char *at = self->text; at != NULL && self->argc < MOST_WORDS;) {
        self->argv[self->argc++] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    self->argv[self->argc] = NULL;
    return cli_parse(self->argc, self->argv, out, diag);
}

static void wrong_use_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message; /* or the part before '*' */
    } cases[] = {
        {"lits", "unknown command \"lits\": did you mean \"list\"?"},
        {"frobnicate", "unknown command \"frobnicate\": patchbay help lists the commands"},
        {"help lits", "unknown command \"lits\": did you mean \"list\"?"},
        {"\x1b[2J", "unknown command \"?[2J\": *"},
        {"list", "list needs a TARGET: *"},
        {"list --", "-- needs a command behind it"},
        {"-- ./weather", "-- without a command of patchbay before it: *"},
        {"serve -- ./weather", "serve takes no -- COMMAND: remove it"},
        {"serve more", "\"more\" is too much: patchbay serve *"},
        {"list weather more", "\"more\" is too much: patchbay list TARGET"},
        {"list ./weather", "\"./weather\" is no TARGET: give *"},
        {"list ftp://x/", "\"ftp://x/\" is no TARGET: give *"},
        {"list stdio:", "stdio: needs a command: *"},
        {"list stdio:'./weather", "stdio: a quote is not closed"},
        {"card stdio:a", "\"stdio:a\" is no AGENT: give *"},
        {"call weather", "call needs a NAME: patchbay call TARGET NAME [KEY=VALUE...]"},
        {"call -- ./weather", "call needs a NAME: *"},
        {"read weather", "read needs a URI: *"},
        {"read weather a b", "\"b\" is too much: *"},
        {"call weather get city", "\"city\" is no argument: write KEY=VALUE, *"},
        {"call weather get =x", "\"=x\" is no argument: *"},
        {"call weather get :=1", "\":=1\" is no argument: *"},
        {"call weather get --json {\"a\":\"=\"}", "\"{\"a\":\"=\"}\" is no argument: *"},
        {"call weather get a=1 --arguments {}", "--arguments and KEY=VALUE exclude each other: *"},
        {"list weather --timeot 5", "unknown option --timeot: did you mean --timeout?"},
        {"list weather --proto x", "unknown option --proto: did you mean --protocol?"},
        {"list weather --frob", "unknown option --frob: patchbay help lists the options"},
        {"list weather -x", "unknown option -x: *"},
        {"list weather -v\x01", "unknown option -?: *"},
        {"list weather --timeout", "--timeout needs DURATION"},
        {"list weather --timeout=", "--timeout needs DURATION"},
        {"list weather -t", "-t needs DURATION"},
        {"list weather --json=x", "--json takes no value: remove the ="},
        {"list weather --timeout soon", "--timeout needs a duration *"},
        {"list weather --timeout 0", "--timeout needs a duration *"},
        {"list weather --timeout 90000", "--timeout needs a duration *"},
        {"list weather --timeout 25h", "--timeout needs a duration *"},
        {"list weather --timeout 18446744073709551615s", "--timeout needs a duration *"},
        {"serve --workers 0", "--workers needs a whole number from 1 to 256"},
        {"serve --workers 257", "--workers needs *"},
        {"serve --workers -1", "--workers needs *"},
        {"list weather --workers 2", "--workers is no option of list: *"},
        {"serve --header A:b", "--header is no option of serve: *"},
        {"list weather --version", "--version is no option of list: *"},
        {"list weather --protocol 2020-01-01", "--protocol needs auto, legacy, modern or *"},
        {"list weather --transport pigeon", "--transport needs auto, stdio, http or sse"},
        {"list http://x/ --transport stdio", "--transport does not fit the TARGET: *"},
        {"list --transport http -- x", "--transport does not fit the TARGET: *"},
        {"list -H A:b -- x", "--header is for a URL, not for a command"},
        {"list http://x/ --header A", "--header needs 'NAME: VALUE'"},
        {"list http://x/ --header :a", "--header needs 'NAME: VALUE'"},
        {"list https://x/ --cert a", "--cert and --key belong together: give both"},
        {"card https://x/ --key a", "--cert and --key belong together: give both"},
        {"list https://x/ --ca a --insecure", "--ca and --insecure exclude each other: keep --ca"},
        {"list --insecure -- x", "--ca, --cert, --key and --insecure are for an https:// URL, *"},
        {"list --ca a -- x", "--ca, --cert, --key and --insecure are for an https:// URL, *"},
        {"list https://x/ --ca", "--ca needs FILE"},
        {"list https://x/ --ca a --ca b", "--ca was given twice: keep one"},
        {"list https://x/ --insecure --insecure", "--insecure was given twice: keep one"},
        {"serve --insecure", "--insecure is no option of serve: *"},
        {"card", "card needs an AGENT: a URL, or a name from the configuration"},
        {"card -- ./agent", "card takes no -- COMMAND: remove it"},
        {"card ./agent", "\"./agent\" is no AGENT: give *"},
        {"card research more", "\"more\" is too much: patchbay card AGENT"},
        {"send research", "send needs something to send: a TEXT, --data or --file"},
        {"send research hello world", "\"world\" is too much: patchbay send AGENT [TEXT]"},
        {"send research hello --stream --no-wait", "--stream and --no-wait exclude each other: *"},
        {"send research hello --interface GRPC/2.0", "--interface needs *"},
        {"send research hello --interface 1.0/GRPC", "--interface needs *"},
        {"send research hello --interface GRPC/", "--interface needs *"},
        {"send research hello --history 3", "--history is no option of send: *"},
        {"task research", "task needs the ID of a task: patchbay task AGENT ID"},
        {"task research 1 --history -1", "--history needs a whole number up to 1000000"},
        {"cancel research", "cancel needs the ID of a task: *"},
        {"list weather --stream", "--stream is no option of list: *"},
        {"serve -c a -c b", "--config was given twice: keep one"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        line words;
        cli_arguments out = {.command = CLI_COMMAND_COUNT};
        bay_diag diag = {.code = BAY_OK};
        bay_err err = parse(&words, cases[i].text, &out, &diag);
        bay_str wanted = str_of(cases[i].message);
        size_t star = str_find(wanted, '*');
        bool is_good = star < wanted.len ? str_starts(str_of(diag.text), str_head(wanted, star))
                                         : str_eq(str_of(diag.text), wanted);
        if (!is_good) {
            print_error("%s\n  wanted %s\n  got    %s\n", cases[i].text, cases[i].message,
                        diag.text);
        }
        assert_true(is_good);
        assert_int_equal(err, BAY_ERR_INVALID);
        assert_int_equal(cli_exit_of(err), CLI_EXIT_USAGE);
        assert_int_equal(out.command, CLI_COMMAND_COUNT); /* untouched */
    }
}

static void too_many_headers_are_refused(void **state)
{
    (void)state;
    char text[1024] = "list http://x/";
    size_t len = strlen(text);
    for (int i = 0; i <= CLI_HEADERS; i++) {
        memcpy(text + len, " -HA:b", 7);
        len += 6;
    }
    line words;
    cli_arguments out;
    bay_diag diag;
    assert_int_equal(parse(&words, text, &out, &diag), BAY_ERR_INVALID);
    text[len - 6] = '\0';
    assert_int_equal(parse(&words, text, &out, &diag), BAY_OK);
    assert_int_equal(out.header_count, CLI_HEADERS);
}

static cli_arguments understood(line *words, const char *text);

static void agents_are_spoken_to(void **state)
{
    (void)state;
    line words;
    cli_arguments out = understood(&words, "send http://x/ hi -s -i grpc/1.0 --task t -f a -f b");
    assert_int_equal(out.command, CLI_SEND);
    assert_string_equal(out.name, "hi");
    assert_true(out.is_stream);
    assert_string_equal(out.binding, "GRPC");
    assert_string_equal(out.version, "1.0");
    assert_string_equal(out.task, "t");
    assert_int_equal(out.file_count, 2);
    assert_int_equal(out.history, -1);
    out = understood(&words, "send research -d {} --interface 0.3");
    assert_null(out.name);
    assert_null(out.binding);
    assert_string_equal(out.version, "0.3");
    assert_int_equal(out.target_kind, CLI_TARGET_NAME);
    out = understood(&words, "task research 17 --history 0 --subscribe");
    assert_string_equal(out.name, "17");
    assert_int_equal(out.history, 0);
    assert_true(out.is_subscription);
}

static cli_arguments understood(line *words, const char *text)
{
    cli_arguments out;
    bay_diag diag = {.code = BAY_OK};
    bay_err err = parse(words, text, &out, &diag);
    if (err != BAY_OK) {
        print_error("%s\n  %s\n", text, diag.text);
    }
    assert_int_equal(err, BAY_OK);
    return out;
}

static void every_form_is_understood(void **state)
{
    (void)state;
    line words;
    cli_arguments out = understood(&words, "serve -c gate.yaml --workers=4 -vv -l 0.0.0.0:80");
    assert_int_equal(out.command, CLI_SERVE);
    assert_string_equal(out.config_file, "gate.yaml");
    assert_int_equal(out.workers, 4);
    assert_int_equal(out.verbosity, 2);
    assert_string_equal(out.listen, "0.0.0.0:80");
    assert_false(out.is_open);

    out = understood(&words, "serve --open");
    assert_true(out.is_open);

    out = understood(&words, "--timeout 3 list https://x.example/mcp -jv --header=A:b -HC:d");
    assert_int_equal(out.command, CLI_LIST);
    assert_int_equal(out.target_kind, CLI_TARGET_URL);
    assert_int_equal(out.timeout_ms, 3000);
    assert_true(out.is_json);
    assert_int_equal(out.header_count, 2);
    assert_string_equal(out.headers[1], "C:d");
    assert_false(tls_client_has_own(&out.tls));

    out = understood(&words, "list https://x.example/mcp --ca a --cert=b --key c");
    assert_string_equal(out.tls.ca_file, "a");
    assert_string_equal(out.tls.certificate_file, "b");
    assert_string_equal(out.tls.key_file, "c");
    assert_false(out.tls.insecure_no_verify);

    out = understood(&words, "card --insecure https://x.example");
    assert_true(out.tls.insecure_no_verify);
    assert_null(out.tls.ca_file);

    out = understood(&words, "call -t 250ms get_weather city=Tokyo n:=5 -p 2025-11-25 -- ./weather "
                             "--json -c x");
    assert_int_equal(out.command, CLI_CALL);
    assert_int_equal(out.target_kind, CLI_TARGET_ARGV);
    assert_string_equal(cli_target_argv(&out)[0], "./weather");
    assert_string_equal(cli_target_argv(&out)[3], "x");
    assert_null(cli_target_argv(&out)[4]);
    assert_string_equal(out.name, "get_weather");
    assert_int_equal(out.pair_count, 2);
    assert_string_equal(out.pairs[1], "n:=5");
    assert_int_equal(out.timeout_ms, 250);
    assert_int_equal(out.protocol, CONFIG_PROTOCOL_FIRST_REVISION + MCP_REV_2025_11_25);
    assert_false(out.is_json);
    assert_null(out.config_file);

    out = understood(&words, "call weather get --arguments @- --no-color -T sse -p modern");
    assert_int_equal(out.target_kind, CLI_TARGET_NAME);
    assert_true(str_eq(out.target, STR("weather")));
    assert_string_equal(out.json_arguments, "@-");
    assert_true(out.is_colorless);
    assert_int_equal(out.transport, CONFIG_TRANSPORT_SSE);
    assert_int_equal(out.protocol, CONFIG_PROTOCOL_MODERN);

    out = understood(&words, "read files file:///a=b");
    assert_string_equal(out.name, "file:///a=b");
    out = understood(&words, "prompt files summary style=short");
    assert_int_equal(out.pair_count, 1);
    out = understood(&words, "step -- ./weather");
    assert_int_equal(out.target_kind, CLI_TARGET_ARGV);
    out = understood(&words, "call stdio:./weather get_weather city=Tokyo");
    assert_int_equal(out.target_kind, CLI_TARGET_ARGV);
    assert_string_equal(cli_target_argv(&out)[0], "./weather");
    assert_null(cli_target_argv(&out)[1]);
    assert_string_equal(out.name, "get_weather");
    assert_int_equal(out.pair_count, 1);
}

static void help_and_version_are_found_in_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cli_command command;
        bool wants_help;
        bool has_topic;
    } cases[] = {
        {"", CLI_HELP, false, false},
        {"help", CLI_HELP, true, false},
        {"--help", CLI_HELP, true, false},
        {"-h", CLI_HELP, true, false},
        {"help call", CLI_CALL, true, true},
        {"call --help", CLI_CALL, true, true},
        {"call -h x", CLI_CALL, true, true},
        {"version", CLI_VERSION, false, false},
        {"--version", CLI_VERSION, false, false},
        {"-V", CLI_VERSION, false, false},
        {"version --json", CLI_VERSION, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        line words;
        cli_arguments out = understood(&words, cases[i].text);
        assert_int_equal(out.command, cases[i].command);
        assert_int_equal(out.wants_help, cases[i].wants_help);
        assert_int_equal(out.has_topic, cases[i].has_topic);
    }
    cli_arguments out;
    assert_int_equal(cli_parse(0, NULL, &out, NULL), BAY_OK);
    assert_int_equal(out.command, CLI_HELP);
}

static void header_secrets_come_from_files_and_variables(void **state)
{
    (void)state;
    char path[] = "/tmp/patchbay-header-XXXXXX";
    int secret = mkstemp(path);
    assert_true(secret >= 0);
    assert_int_equal(write(secret, "Bearer s3cr3t \r\nsecond\n", 23), 23);
    setenv("PATCHBAY_TEST_TOKEN", "s3cr3t", 1);
    setenv("PATCHBAY_TEST_EVIL", "s3cr3t\r\nX: y", 1);
    buf value;
    buf_init(&value, 64 * 1024);
    bay_str name;
    bay_diag diag;
    char header[128];
    snprintf(header, sizeof(header), "Authorization: @%s", path);
    assert_int_equal(cli_header_read(header, &name, &value, &diag), BAY_OK);
    assert_true(str_eq(name, STR("Authorization")));
    assert_true(str_eq(buf_view(&value), STR("Bearer s3cr3t")));
    buf_clear(&value);
    assert_int_equal(cli_header_read("A:Bearer ${PATCHBAY_TEST_TOKEN}", &name, &value, &diag),
                     BAY_OK);
    assert_true(str_eq(buf_view(&value), STR("Bearer s3cr3t")));
    static const char *const bad[] = {
        "A",
        ": b",
        "A B: c",
        "A: ${PATCHBAY_TEST_UNSET}",
        "A: ${PATCHBAY_TEST_EVIL}",
        "A: @/nonexistent",
        "A: @/",
        "A: @",
        "A: @/dev/zero",
        "A: ${",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        buf_clear(&value);
        assert_int_not_equal(cli_header_read(bad[i], &name, &value, &diag), BAY_OK);
        assert_true(strlen(diag.text) > 10);
        assert_null(strstr(diag.text, "s3cr3t"));
    }
    buf_fini(&value);
    close(secret);
    unlink(path);
}

/* The option itself, not a longer one that begins so. */
static bool has_option(const char *help, const char *option)
{
    const char *at = help;
    while ((at = strstr(at, option)) != NULL) {
        at += strlen(option);
        if (*at != '-' && (*at < 'a' || *at > 'z')) {
            return true;
        }
    }
    return false;
}

static void help_names_every_option_of_the_command(void **state)
{
    (void)state;
    buf out;
    buf_init(&out, 65536);
    for (size_t command = 0; command < CLI_COMMAND_COUNT; command++) {
        cli_write_help((cli_command)command, &out);
        buf_char(&out, '\0');
        assert_int_equal(out.err, BAY_OK);
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            char option[64];
            snprintf(option, sizeof(option), "--%s", cli_options[i].name);
            bool is_option = (cli_options[i].commands & (1U << command)) != 0;
            assert_int_equal(has_option(out.at, option), is_option);
        }
        buf_clear(&out);
    }
    cli_write_usage(&out);
    buf_char(&out, '\0');
    for (size_t command = 0; command < CLI_COMMAND_COUNT; command++) {
        assert_non_null(strstr(out.at, cli_command_name((cli_command)command)));
    }
    buf_fini(&out);
}

static void every_error_has_an_exit_code(void **state)
{
    (void)state;
    for (int err = 0; err < ERR_COUNT; err++) {
        int code = (int)cli_exit_of((bay_err)err);
        bool is_known = false;
        for (size_t i = 0; i < cli_exit_count; i++) {
            is_known |= cli_exits[i].code == code;
        }
        assert_true(is_known);
        assert_int_equal(code == 0, err == BAY_OK || err == BAY_ERR_EOF);
    }
    assert_int_equal(cli_exit_of(BAY_ERR_TIMEOUT), 4);
    assert_int_equal(cli_exit_of(BAY_ERR_SPAWN), 3);
}

static void the_page_is_current(void **state)
{
    (void)state;
    bool regenerates = getenv("BAY_REGENERATE") != NULL;
    buf generated;
    buf_init(&generated, 1024 * 1024);
    cli_write_markdown(&generated);
    assert_int_equal(generated.err, BAY_OK);
    FILE *page = fopen(BAY_TEST_SOURCE_DIR "/docs/cli.md", regenerates ? "wb" : "rb");
    assert_non_null(page);
    if (regenerates) {
        assert_int_equal(fwrite(generated.at, 1, generated.len, page), generated.len);
    } else {
        static char committed[1024 * 1024];
        assert_int_equal(fread(committed, 1, sizeof(committed), page), generated.len);
        assert_memory_equal(committed, generated.at, generated.len);
    }
    fclose(page);
    buf_fini(&generated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_use_is_told),
        cmocka_unit_test(too_many_headers_are_refused),
        cmocka_unit_test(agents_are_spoken_to),
        cmocka_unit_test(every_form_is_understood),
        cmocka_unit_test(help_and_version_are_found_in_every_form),
        cmocka_unit_test(header_secrets_come_from_files_and_variables),
        cmocka_unit_test(help_names_every_option_of_the_command),
        cmocka_unit_test(every_error_has_an_exit_code),
        cmocka_unit_test(the_page_is_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
