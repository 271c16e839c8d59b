/* Files of contracts. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/agent.h"
#include "cli/contract_run.h"
#include "cli/say.h"
#include "config/document.h"

enum { FILES = 1000, PATH_BYTES = 4096 };

cli_exit cli_contracts_load(const char *path, arena *memory, trust_contracts *out)
{
    buf text;
    json_doc *doc = arena_alloc(memory, sizeof(*doc));
    config_report *report = mem_zalloc(sizeof(*report));
    json_val place = JSON_NONE;
    bay_diag diag = {0};
    bay_err err = doc != NULL && report != NULL ? BAY_OK : BAY_ERR_NOMEM;
    buf_init(&text, CONFIG_DOCUMENT_BYTES + 1);
    cli_exit code = err == BAY_OK ? cli_agent_read_file(path, "--contracts", &text) : CLI_EXIT_OK;
    if (err == BAY_OK && code == CLI_EXIT_OK) {
        err = config_document_read(buf_view(&text), str_of(path), memory, doc, report);
        if (err != BAY_OK && report->errors > 0) {
            cli_say("%s:%u: %s", path, report->messages[0].line, report->messages[0].text);
            code = CLI_EXIT_CONFIG;
        }
    }
    if (err == BAY_OK && code == CLI_EXIT_OK) {
        err = trust_contracts_read(json_root(doc), memory, out, &place, &diag);
        if (err == BAY_ERR_INVALID) {
            cli_say("%s:%u: %s", path, config_document_line(place), diag.text);
            code = CLI_EXIT_CONFIG;
        }
    }
    if (err != BAY_OK && code == CLI_EXIT_OK) {
        cli_say("%s: %s", path, bay_err_text(err));
        code = CLI_EXIT_FAILED;
    }
    buf_fini(&text);
    mem_free(report);
    return code;
}

static cli_exit visit(const char *path, cli_contract_file each, void *user)
{
    arena memory;
    trust_contracts contracts = {0};
    arena_init(&memory, 64 << 20);
    cli_exit code = cli_contracts_load(path, &memory, &contracts);
    code = code == CLI_EXIT_OK ? each(user, path, &contracts) : code;
    arena_fini(&memory);
    return code;
}

static bool is_contract_file(const char *name)
{
    bay_str text = str_of(name);
    return name[0] != '.' && (str_ends(text, STR(".yaml")) || str_ends(text, STR(".json")));
}

static int compare_names(const void *a, const void *b)
{
    const bay_str *left = a;
    const bay_str *right = b;
    return str_cmp(*left, *right);
}

/* The names of a folder's files of contracts, sorted; FILES + 1: there are too many. */
static size_t list_files(DIR *folder, arena *memory, bay_str *out)
{
    size_t count = 0;
    const struct dirent *entry;
    while (count <= FILES && (entry = readdir(folder)) != NULL) {
        if (is_contract_file(entry->d_name) &&
            arena_dup(memory, str_of(entry->d_name), &out[count]) == BAY_OK) {
            count++;
        }
    }
    qsort(out, count, sizeof(*out), compare_names);
    return count;
}

static cli_exit visit_folder(const char *path, DIR *folder, cli_contract_file each, void *user)
{
    arena memory;
    arena_init(&memory, 4 << 20);
    bay_str *names = arena_array(&memory, FILES + 2, sizeof(*names));
    size_t count = names != NULL ? list_files(folder, &memory, names) : 0;
    cli_exit code = CLI_EXIT_OK;
    if (count == 0 || count > FILES) {
        cli_say("%s: %s", path,
                count == 0 ? "no *.yaml and no *.json in it"
                           : "more than 1,000 files: split the folder");
        code = CLI_EXIT_CONFIG;
    }
    for (size_t i = 0; code == CLI_EXIT_OK && i < count; i++) {
        char full[PATH_BYTES];
        int len = snprintf(full, sizeof(full), "%s/%.*s", path, BAY_STR(names[i]));
        if (len > 0 && (size_t)len < sizeof(full)) {
            code = visit(full, each, user);
        }
    }
    arena_fini(&memory);
    return code;
}

cli_exit cli_contracts_each(const char *path, cli_contract_file each, void *user)
{
    struct stat found;
    if (stat(path, &found) != 0) {
        cli_say("%s: %s; --contracts names a file or a folder of contracts", path, strerror(errno));
        return CLI_EXIT_CONFIG;
    }
    if (!S_ISDIR(found.st_mode)) {
        return visit(path, each, user);
    }
    DIR *folder = opendir(path);
    if (folder == NULL) {
        cli_say("%s: %s", path, strerror(errno));
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = visit_folder(path, folder, each, user);
    closedir(folder);
    return code;
}
