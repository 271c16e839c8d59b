/* JSON-Schema-Test-Suite: its files, the documents its references lead to, and the list of cases
 * that are known to differ. */
#ifndef TEST_SCHEMA_SUITE_H
#define TEST_SCHEMA_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "schema/schema.h"

enum { SUITE_MAX_REMOTES = 256, SUITE_MAX_FILES = 256, SUITE_MAX_KNOWN = 256 };

/* A file read and indexed; for the life of the program. */
typedef struct suite_file {
    char path[512]; /* below the suite's folder */
    bool is_optional;
    schema_dialect dialect;
    json_doc doc;
} suite_file;

typedef struct known_difference {
    char line[1024]; /* "path | group | case | reason", cut at the bars */
    const char *part[4];
    bool is_met;
} known_difference;

typedef struct suite {
    char folder[256];
    char tests[300];
    bool is_found;
    bool has_2020_12;
    arena memory;
    schema_document remotes[SUITE_MAX_REMOTES];
    size_t remote_count;
    suite_file files[SUITE_MAX_FILES];
    size_t file_count;
    known_difference known[SUITE_MAX_KNOWN];
    size_t known_count;
} suite;

static inline bool suite_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static inline bool suite_read(suite *self, const char *path, json_doc *out)
{
    buf text;
    buf_init(&text, 1U << 24);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return false;
    }
    char block[4096];
    for (size_t len = fread(block, 1, sizeof(block), file); len > 0;
         len = fread(block, 1, sizeof(block), file)) {
        buf_append(&text, block, len);
    }
    fclose(file);
    bay_str kept;
    bool is_read = text.err == BAY_OK && arena_dup(&self->memory, buf_view(&text), &kept) == BAY_OK;
    buf_fini(&text);
    return is_read && json_parse(out, kept, NULL, &self->memory, NULL) == BAY_OK;
}

static inline int suite_compare_names(const void *a, const void *b)
{
    return strcmp(((const suite_file *)a)->path, ((const suite_file *)b)->path);
}

/* Every *.json directly in a folder of the tests. */
static inline void suite_add_folder(suite *self, const char *below, schema_dialect dialect,
                                    bool is_optional)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", self->tests, below);
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        if (!str_ends(str_of(entry->d_name), STR(".json")) || self->file_count == SUITE_MAX_FILES) {
            continue;
        }
        suite_file *file = &self->files[self->file_count];
        snprintf(path, sizeof(path), "%s/%s/%s", self->tests, below, entry->d_name);
        snprintf(file->path, sizeof(file->path), "%s/%s", below, entry->d_name);
        file->dialect = dialect;
        file->is_optional = is_optional;
        self->file_count += suite_read(self, path, &file->doc);
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Every *.json at and below a folder, by the address that the suite gives it. */
static inline void suite_add_remotes(suite *self, const char *below)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/remotes%s", self->folder, below);
    DIR *folder = opendir(path);
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        char inner[700];
        snprintf(inner, sizeof(inner), "%s/%s", below, entry->d_name);
        snprintf(path, sizeof(path), "%s/remotes%s", self->folder, inner);
        if (entry->d_name[0] != '.' && suite_is_folder(path)) {
            suite_add_remotes(self, inner);
        } else if (str_ends(str_of(entry->d_name), STR(".json")) &&
                   self->remote_count < SUITE_MAX_REMOTES) {
            char uri[800];
            snprintf(uri, sizeof(uri), "http://localhost:1234%s", inner);
            schema_document *one = &self->remotes[self->remote_count];
            json_doc *doc = arena_alloc(&self->memory, sizeof(*doc));
            if (doc != NULL && suite_read(self, path, doc) &&
                arena_dup(&self->memory, str_of(uri), &one->uri) == BAY_OK) {
                one->root = json_root(doc);
                self->remote_count++;
            }
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static inline void suite_read_known(suite *self, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (self->known_count < SUITE_MAX_KNOWN) {
        known_difference *one = &self->known[self->known_count];
        if (fgets(one->line, sizeof(one->line), file) == NULL) {
            break;
        }
        one->line[strcspn(one->line, "\n")] = '\0';
        if (one->line[0] == '#' || one->line[0] == '\0') {
            continue;
        }
        char *at = one->line;
        for (size_t i = 0; i < 4; i++) {
            one->part[i] = at;
            char *bar = i < 3 ? strstr(at, " | ") : NULL;
            assert_true(bar != NULL || i == 3); /* each line has its reason */
            if (bar != NULL) {
                *bar = '\0';
                at = bar + 3;
            }
        }
        self->known_count++;
    }
    fclose(file);
}

/* Where the suite is: where BAY_SCHEMA_SUITE says, and then nowhere else; beside the clone; or
 * Debian's package. */
static inline bool suite_find(suite *self)
{
    const char *named = getenv("BAY_SCHEMA_SUITE");
    const char *places[] = {named, "../shared/data/json-schema-test-suite",
                            "/usr/share/json-schema-test-suite",
                            "/usr/share/nodejs/json-schema-test-suite"};
    size_t first = named != NULL ? 0 : 1;
    size_t end = named != NULL ? 1 : sizeof(places) / sizeof(places[0]);
    for (size_t i = first; i < end; i++) {
        snprintf(self->folder, sizeof(self->folder), "%s", places[i]);
        snprintf(self->tests, sizeof(self->tests), "%s/tests", self->folder);
        if (suite_is_folder(self->tests)) {
            return true;
        }
    }
    return false;
}

static inline void suite_load(suite *self)
{
    arena_init(&self->memory, 256U << 20);
    suite_add_remotes(self, "");
    suite_add_folder(self, "draft2020-12", SCHEMA_2020_12, false);
    suite_add_folder(self, "draft2020-12/optional", SCHEMA_2020_12, true);
    suite_add_folder(self, "draft2020-12/optional/format", SCHEMA_2020_12, true);
    suite_add_folder(self, "draft7", SCHEMA_DRAFT_07, false);
    suite_add_folder(self, "draft7/optional", SCHEMA_DRAFT_07, true);
    suite_add_folder(self, "draft7/optional/format", SCHEMA_DRAFT_07, true);
    qsort(self->files, self->file_count, sizeof(self->files[0]), suite_compare_names);
}

#endif
