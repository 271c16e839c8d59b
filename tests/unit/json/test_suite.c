/* JSONTestSuite: every y_ document accepted and carried byte for byte, every n_ document refused,
 * every i_ document survived. BAY_JSON_SUITE names its folder; ./dev test brings it from npm. */
#include "case.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "support/skipped.h"
#include "json/writer.h"

static const char *folder(void)
{
    const char *named = getenv("BAY_JSON_SUITE");
    return named != NULL ? named : "../shared/data/jsontestsuite/test_parsing";
}

static void read_file(const char *name, buf *out)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder(), name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char block[4096];
    for (size_t len = fread(block, 1, sizeof(block), file); len > 0;
         len = fread(block, 1, sizeof(block), file)) {
        buf_append(out, block, len);
    }
    fclose(file);
    assert_int_equal(out->err, BAY_OK);
}

/* The same document, every container opened anew and every scalar spliced. */
static void rewrite(json_writer *writer, json_val value)
{
    if (json_is(value, JSON_OBJECT)) {
        json_open_object(writer);
        json_put_members(writer, value, NULL, 0);
        json_close_object(writer);
    } else if (json_is(value, JSON_ARRAY)) {
        json_open_array(writer);
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            rewrite(writer, it.value);
        }
        json_close_array(writer);
    } else {
        json_put_val(writer, value);
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void assert_carried(json_val root, bay_str text)
{
    while (text.len > 0 && is_space(text.at[0])) {
        text = str_from(text, 1);
    }
    while (text.len > 0 && is_space(text.at[text.len - 1])) {
        text.len--;
    }
    buf out;
    json_writer writer;
    buf_init(&out, 1U << 24);
    json_writer_init(&writer, &out);
    json_open_object(&writer);
    json_key_lit(&writer, "result");
    json_put_val(&writer, root);
    json_close_object(&writer);
    assert_int_equal(out.err, BAY_OK);
    assert_true(str_starts(buf_view(&out), STR("{\"result\":")));
    bay_str spliced = str_head(str_from(buf_view(&out), 10), out.len - 11);
    assert_true(str_eq(spliced, text));
    parsed p;
    parse_within(&p, buf_view(&out), NULL);
    assert_int_equal(p.err, BAY_OK);
    assert_true(str_eq(json_raw(json_get(json_root(&p.doc), STR("result"))), text));
    forget(&p);

    buf_clear(&out);
    json_writer_init(&writer, &out);
    rewrite(&writer, root);
    parse_within(&p, buf_view(&out), NULL);
    assert_int_equal(p.err, BAY_OK);
    assert_int_equal(p.doc.count, root.doc->count);
    forget(&p);
    buf_fini(&out);
}

typedef struct tally {
    int accepted;
    int refused;
    int either;
} tally;

static void judge(const char *name, tally *counts)
{
    buf text;
    parsed p;
    buf_init(&text, 1U << 24);
    read_file(name, &text);
    parse_within(&p, buf_view(&text), NULL);
    bool should_pass = name[0] == 'y';
    if (name[0] != 'i' && (p.err == BAY_OK) != should_pass) {
        print_error("%s: %s\n", name, bay_err_text(p.err));
    }
    if (name[0] == 'y') {
        assert_int_equal(p.err, BAY_OK);
        assert_carried(json_root(&p.doc), buf_view(&text));
        counts->accepted++;
    } else if (name[0] == 'n') {
        assert_int_not_equal(p.err, BAY_OK);
        assert_true(p.diag.offset <= text.len);
        counts->refused++;
    } else {
        assert_true(p.err != BAY_ERR_NOMEM && p.err != BAY_ERR_INTERNAL);
        counts->either++;
    }
    forget(&p);
    buf_fini(&text);
}

static void runs_the_suite(void **state)
{
    (void)state;
    if (getenv("BAY_JSON_SUITE") == NULL && access(folder(), R_OK) != 0) {
        SKIP("JSONTestSuite is not here, and BAY_JSON_SUITE names no folder with it");
    }
    EACH_SCAN(s, scans)
    {
        json_scan_use(scans[s]);
        tally counts = {0};
        DIR *files = opendir(folder());
        assert_non_null(files);
        for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
            const char *name = file->d_name;
            if (str_ends(str_of(name), STR(".json")) && strchr("yni", name[0]) != NULL) {
                judge(name, &counts);
            }
        }
        closedir(files);
        printf("JSONTestSuite (%s): %d accepted, %d refused, %d either way\n", scans[s]->name,
               counts.accepted, counts.refused, counts.either);
        assert_int_equal(counts.accepted, 95);
        assert_int_equal(counts.refused, 188);
        assert_true(counts.either > 0);
    }
    json_scan_use(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_the_suite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
