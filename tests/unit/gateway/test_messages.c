/* Mistakes that people make in configurations, and what they are told: docs/messages.md shows it
 * (BAY_REGENERATE in the environment writes the page). Read as `patchbay check` and `serve` read it,
 * in a folder of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/gateway.h"

typedef struct mistake {
    const char *title;
    const char *text;
} mistake;

#define SERVER "mcpServers:\n  notes:\n"

static const mistake mistakes[] = {
    {"A key that is spelt wrongly", SERVER "    comand: ./notes\n"},
    {"A key that does not exist", "colour: blue\n" SERVER "    command: ./notes\n"},
    {"A server without `command` and `url`", SERVER "    args: [--all]\n"},
    {"Both `command` and `url`",
     SERVER "    command: ./notes\n    url: https://notes.example/mcp\n"},
    {"`args` is a text", SERVER "    command: ./notes\n    args: --all\n"},
    {"An entry of `args` is no text", SERVER "    command: ./notes\n    args: [--level, [1]]\n"},
    {"`env` is a list", SERVER "    command: ./notes\n    env: [LEVEL=1]\n"},
    {"A variable that is not set",
     SERVER "    command: ./notes\n    env:\n      TOKEN: ${NOTES_TOKEN_THAT_IS_NOT_SET}\n"},
    {"A program that is not there", SERVER "    command: no-such-program\n"},
    {"A folder that is not there", SERVER "    command: ./notes\n    cwd: /no/such/folder\n"},
    {"An address without a scheme", SERVER "    url: notes.example/mcp\n"},
    {"A password in an address", SERVER "    url: https://me:secret@notes.example/mcp\n"},
    {"A header field that the gateway sets",
     SERVER "    url: https://notes.example/mcp\n    headers:\n      Host: notes.example\n"},
    {"A time that is none", "timeouts:\n  call: 2 minutes\n" SERVER "    command: ./notes\n"},
    {"A size beyond its bounds", "limits:\n  bodyBytes: 5T\n" SERVER "    command: ./notes\n"},
    {"A word that is none of the choices",
     "log:\n  level: verbose\n" SERVER "    command: ./notes\n"},
    {"A port without a host", "listen: 8930\n" SERVER "    command: ./notes\n"},
    {"A port out of range", "listen: 127.0.0.1:89300\n" SERVER "    command: ./notes\n"},
    {"An address that others reach, and nobody is authenticated",
     "listen: 0.0.0.0:8930\n" SERVER "    command: ./notes\n"},
    {"A certificate that is not there",
     "tls:\n  certificate: cert.pem\n  key: key.pem\n" SERVER "    command: ./notes\n"},
    {"A certificate that is none",
     "tls:\n  certificate: notes\n  key: notes\n" SERVER "    command: ./notes\n"},
    {"A certificate without its key",
     "tls:\n  certificate: notes\n" SERVER "    command: ./notes\n"},
    {"Keys of an issuer that are not there",
     "auth:\n  issuers:\n    corp:\n      url: https://id.example\n      keys: keys.json\n" SERVER
     "    command: ./notes\n"},
    {"Keys of an issuer that are none",
     "auth:\n  issuers:\n    corp:\n      url: https://id.example\n      keys: notes\n" SERVER
     "    command: ./notes\n"},
    {"Tokens for an address that others reach and that has no name",
     "listen: 0.0.0.0:8930\nauth:\n  issuers:\n    corp:\n      url: https://id.example\n" SERVER
     "    command: ./notes\n"},
    {"A token of the platform that is not there",
     SERVER "    url: https://notes.example/mcp\n    credentials:\n      grant: workload\n      "
            "tokenFile: /no/such/token\n"},
    {"A rule of a server that does not exist",
     SERVER "    command: ./notes\npolicy:\n  default: deny\n  rules:\n    - allow: notse.*\n"},
    {"A lock file that is none",
     "pins:\n  file: notes\n  mode: hold\n" SERVER "    command: ./notes\n"},
    {"A relative path in `sandbox.fs`, and another mistake beside it",
     SERVER "    command: ./notes\n    concurency: 2\n    sandbox:\n      fs: [data:rw]\n"},
    {"A profile of a server that does not exist",
     SERVER "    command: ./notes\nprofiles:\n  work:\n    servers: [note]\n"},
    {"The same key twice", SERVER "    command: ./notes\n    command: ./others\n"},
    {"YAML that is not well formed", SERVER "    command: ./notes\n   args: [a]\n"},
};

static char folder[] = "/tmp/patchbay-messages.XXXXXX";

static void write_file(const char *name, const char *text, mode_t mode)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    fclose(file);
    assert_int_equal(chmod(name, mode), 0);
}

/* What is said of it, as `patchbay check` says it. */
static void complain(const mistake *of, buf *out)
{
    config_report *report = mem_zalloc(sizeof(*report));
    const config *settings = NULL;
    bool is_local = false;
    write_file("patchbay.yaml", of->text, 0600);
    if (config_load_file("patchbay.yaml", true, &settings, report) == BAY_OK) {
        gateway_options options = {.config = settings};
        assert_int_equal(gateway_check(&options, report, &is_local), BAY_OK);
    }
    config_report_write(report, out);
    config_free(settings);
    mem_free(report);
}

static void write_page(buf *out)
{
    buf_lit(
        out,
        "# Mistakes in configurations, and what Patchbay says\n\n"
        "`patchbay check` says everything that is wrong with a configuration at once, as `patchbay "
        "serve` does before it\nrefuses to start: the line, what was found, and what to do. A "
        "warning does not keep the gateway from serving.\n`--json` gives the same to an editor. "
        "Written by a test from its table.\n");
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        buf_printf(out, "\n## %zu. %s\n\n```yaml\n%s```\n\n```\n", i + 1, mistakes[i].title,
                   mistakes[i].text);
        size_t before = out->len;
        complain(&mistakes[i], out);
        if (out->len == before) {
            fail_msg("nothing is said of: %s", mistakes[i].title);
        }
        buf_lit(out, "```\n");
    }
}

static void the_page_is_current(void **state)
{
    (void)state;
#ifdef BAY_NO_TLS /* certificates, keys and digests: what is said of them is that there are none */
    skip();
#endif
    bool regenerates = getenv("BAY_REGENERATE") != NULL;
    buf generated;
    buf_init(&generated, 1024 * 1024);
    assert_int_equal(chdir(folder), 0);
    write_page(&generated);
    assert_int_equal(generated.err, BAY_OK);
    FILE *page = fopen(BAY_TEST_SOURCE_DIR "/docs/messages.md", regenerates ? "wb" : "rb");
    assert_non_null(page);
    if (regenerates) {
        assert_int_equal(fwrite(generated.at, 1, generated.len, page), generated.len);
    } else {
        static char committed[1024 * 1024];
        size_t len = fread(committed, 1, sizeof(committed) - 1, page);
        buf_char(&generated, '\0');
        committed[len] = '\0';
        assert_string_equal(generated.at, committed);
    }
    fclose(page);
    buf_fini(&generated);
}

/* A path that is right is said nothing of. */
static void a_good_one_has_no_message(void **state)
{
    (void)state;
    static const mistake good = {"", "store: sessions.db\n" SERVER
                                     "    command: ./notes\n    cwd: /\n  sh:\n    command: sh\n"};
    buf text;
    buf_init(&text, 4096);
    assert_int_equal(chdir(folder), 0);
    complain(&good, &text);
    assert_int_equal(text.len, 0);
    buf_fini(&text);
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_file("notes", "#!/bin/sh\n", 0700);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return unlink("notes") == 0 && unlink("patchbay.yaml") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_current),
        cmocka_unit_test(a_good_one_has_no_message),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
