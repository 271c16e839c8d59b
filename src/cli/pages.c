#include "cli/pages.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"

enum { MEMORY = 512 << 20 };

void cli_pages_init(cli_pages *self)
{
    *self = (cli_pages){0};
    arena_init(&self->memory, MEMORY);
}

void cli_pages_fini(cli_pages *self)
{
    arena_fini(&self->memory);
    self->items = JSON_NONE;
}

static cli_exit pages_fail(cli_pages *self, cli_exit code, const char *format, ...)
    BAY_PRINTF(3, 4);

static cli_exit pages_fail(cli_pages *self, cli_exit code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(self->error, sizeof(self->error), format, arguments);
    va_end(arguments);
    return code;
}

/* Whole items only: one too many leaves those before it. */
static cli_exit take_items(cli_pages *self, bay_str member, json_val items)
{
    if (!json_is(items, JSON_ARRAY)) {
        return pages_fail(self, CLI_EXIT_PROTOCOL, "the result has no list \"%.*s\"",
                          BAY_STR(member));
    }
    json_iter iter = json_iter_of(items);
    while (json_next(&iter)) {
        const buf *text = &self->made.text;
        if (self->count == CLI_PAGE_ITEMS) {
            return pages_fail(self, CLI_EXIT_PROTOCOL, "more than %d items", CLI_PAGE_ITEMS);
        }
        if (json_raw(iter.value).len + 2 > CLI_PAGE_BYTES - text->len) {
            return pages_fail(self, CLI_EXIT_PROTOCOL, "more than %d bytes", CLI_PAGE_BYTES);
        }
        json_put_val(&self->made.writer, iter.value);
        if (text->err != BAY_OK) {
            return pages_fail(self, CLI_EXIT_FAILED, "out of memory");
        }
        self->count++;
    }
    return CLI_EXIT_OK;
}

/* The next page's cursor; NULL: this was the last page. */
static cli_exit next_cursor(cli_pages *self, json_val given, json_doc **cursor)
{
    bool is_string = json_is(given, JSON_STRING);
    if (!is_string && !json_is(given, JSON_MISSING) && !json_is(given, JSON_NULL)) {
        return pages_fail(self, CLI_EXIT_PROTOCOL, "nextCursor is no string");
    }
    if (is_string && *cursor != NULL && str_eq((*cursor)->text, json_raw(given))) {
        return pages_fail(self, CLI_EXIT_PROTOCOL, "page %zu names the cursor that led to it",
                          self->page_count);
    }
    mem_free(*cursor);
    *cursor = NULL;
    return !is_string || json_clone(given, cursor) == BAY_OK
               ? CLI_EXIT_OK
               : pages_fail(self, CLI_EXIT_FAILED, "out of memory");
}

static cli_exit take_error(cli_pages *self, const cli_answer *answer)
{
    bay_str message = json_raw(json_get(answer->value, STR("message")));
    self->error_code = answer->error_code;
    return pages_fail(self, CLI_EXIT_REMOTE, "error %d: %.*s", answer->error_code,
                      BAY_STR(str_head(message, 160)));
}

static cli_exit fetch_page(cli_pages *self, const json_doc *cursor, cli_page_fetch fetch,
                           void *user, cli_answer *out)
{
    json_builder made;
    json_val params;
    json_writer *to = json_builder_init(&made, NULL, CLI_PAGE_BYTES);
    json_open_object(to);
    if (cursor != NULL) {
        json_key_lit(to, "cursor");
        json_put_val(to, json_root(cursor));
    }
    json_close_object(to);
    cli_exit code = json_builder_view(&made, &params) == BAY_OK
                        ? fetch(user, params, out)
                        : pages_fail(self, CLI_EXIT_FAILED, "out of memory");
    json_builder_drop(&made);
    return code;
}

static cli_exit read_pages(cli_pages *self, bay_str member, cli_page_fetch fetch, void *user)
{
    json_doc *cursor = NULL;
    cli_answer answer;
    cli_exit code;
    cli_answer_init(&answer);
    do {
        if (self->page_count == CLI_PAGES) {
            code = pages_fail(self, CLI_EXIT_PROTOCOL, "more than %d pages", CLI_PAGES);
            break;
        }
        code = fetch_page(self, cursor, fetch, user, &answer);
        if (code != CLI_EXIT_OK) {
            break;
        }
        self->page_count++;
        if (answer.kind == MCP_OUTCOME_ERROR) {
            code = take_error(self, &answer);
            break;
        }
        code = take_items(self, member, json_get(answer.value, member));
        if (code == CLI_EXIT_OK) {
            code = next_cursor(self, json_get(answer.value, STR("nextCursor")), &cursor);
        }
    } while (code == CLI_EXIT_OK && cursor != NULL);
    cli_answer_fini(&answer);
    mem_free(cursor);
    return code;
}

cli_exit cli_pages_fetch(cli_pages *self, bay_str member, cli_page_fetch fetch, void *user)
{
    json_open_array(json_builder_init(&self->made, &self->memory, CLI_PAGE_BYTES));
    cli_exit code = read_pages(self, member, fetch, user);
    json_close_array(&self->made.writer);
    bay_err err = json_builder_end(&self->made, &self->items);
    if (err != BAY_OK) {
        self->items = JSON_NONE;
        self->count = 0;
        return pages_fail(self, CLI_EXIT_FAILED, "%s", bay_err_text(err));
    }
    return code;
}
