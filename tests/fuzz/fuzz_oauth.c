/* A client of OAuth among strangers: the challenge, each document and answer, and the redirect are
 * the input's, cut at 0xff. Whatever they say, what is sent goes to usable URLs only, no field that
 * is sent has a control character, a redirect without the state changes nothing, and a record that
 * is kept comes back as it was. The first byte chooses the grant and what is configured. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/oauth_client.h"
#include "auth/oauth_form.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20, NOW = 1000000, STEPS = 40 };

typedef struct fuzz_input {
    bay_str rest;
} fuzz_input;

static bay_str next_chunk(fuzz_input *self)
{
    size_t end = 0;
    while (end < self->rest.len && (unsigned char)self->rest.at[end] != 0xff) {
        end++;
    }
    bay_str chunk = str_head(self->rest, end);
    self->rest = str_from(self->rest, end + 1);
    return chunk;
}

static void check_request(const oauth_action *action)
{
    CHECK(oauth_url_is_usable(action->url, true));
    for (size_t i = 0; i < action->field_count; i++) {
        bay_str value = action->fields[i].value;
        for (size_t k = 0; k < value.len; k++) {
            CHECK((unsigned char)value.at[k] >= 0x20 && value.at[k] != 0x7f);
        }
    }
}

static void redirect(oauth_client *client, bay_str chunk)
{
    buf query;
    buf_init(&query, ROOM);
    CHECK(oauth_client_redirected(client, STR("code=x"), NOW) == BAY_ERR_NOT_FOUND);
    buf_printf(&query, "state=%.*s&", BAY_STR(oauth_client_state(client)));
    buf_str(&query, chunk);
    bay_err err = oauth_client_redirected(client, buf_view(&query), NOW);
    if (err != BAY_OK) {
        CHECK(err == BAY_ERR_NOT_FOUND && oauth_client_state(client).len > 0);
        oauth_client_give_up(client, BAY_ERR_CANCELLED, "", NOW);
    }
    buf_fini(&query);
}

static void check_record(const oauth_client *client)
{
    buf text, again;
    oauth_record copy;
    buf_init(&text, OAUTH_RECORD_BYTES);
    buf_init(&again, OAUTH_RECORD_BYTES);
    oauth_record_init(&copy);
    CHECK(oauth_record_write(oauth_client_record(client), &text) == BAY_OK);
    CHECK(oauth_record_read(&copy, buf_view(&text)) == BAY_OK);
    CHECK(oauth_record_write(&copy, &again) == BAY_OK);
    CHECK(str_eq(buf_view(&text), buf_view(&again)));
    oauth_record_fini(&copy);
    buf_fini(&text);
    buf_fini(&again);
}

static void walk(oauth_client *client, fuzz_input *input)
{
    oauth_action action;
    oauth_try one = {0};
    uint64_t now = NOW;
    http_field field = {STR("WWW-Authenticate"), next_chunk(input)};
    for (int i = 0; i < STEPS; i++) {
        CHECK(oauth_client_next(client, now, &action) == BAY_OK);
        bay_str chunk = next_chunk(input);
        unsigned char first = chunk.len > 0 ? (unsigned char)chunk.at[0] : 0;
        switch (action.need) {
        case OAUTH_GO: {
            buf out, proof;
            buf_init(&out, ROOM);
            buf_init(&proof, ROOM);
            CHECK(oauth_client_authorize(client, &one, STR("POST"), STR("https://h/mcp"), now, &out,
                                         &proof) == BAY_OK);
            buf_fini(&out);
            buf_fini(&proof);
            (void)oauth_client_replied(client, &one, first % 2 == 0 ? 401 : 403, &field, 1, now);
            break;
        }
        case OAUTH_REQUEST: {
            static const int statuses[] = {200, 200, 201, 400, 401, 404, 500, 302};
            check_request(&action);
            oauth_client_answered(client, statuses[first % 8], (bay_str){"", 0}, str_from(chunk, 1),
                                  now);
            break;
        }
        case OAUTH_LISTEN:
            oauth_client_listens(client, STR("http://127.0.0.1:1/callback"), now);
            break;
        case OAUTH_BROWSER:
            CHECK(oauth_url_is_usable(str_head(action.url, str_find(action.url, '?')), true));
            redirect(client, chunk);
            break;
        case OAUTH_SHOW:
            CHECK(oauth_url_is_usable(action.url, true));
            break;
        case OAUTH_WAIT:
            now = action.at_ms;
            break;
        case OAUTH_SUBJECT:
            oauth_client_subject(client, chunk, now);
            break;
        case OAUTH_REREAD:
            oauth_client_reread(client, now);
            break;
        case OAUTH_FAILED:
            now += OAUTH_REST_MS;
            break;
        }
        check_record(client);
    }
}

static void read_parts(bay_str text)
{
    arena memory;
    oauth_form form;
    oauth_record record;
    arena_init(&memory, ROOM);
    err_ignore(oauth_form_read(text, &memory, &form)); /* any outcome is fine */
    oauth_record_init(&record);
    err_ignore(oauth_record_read(&record, text)); /* the same */
    oauth_record_fini(&record);
    arena_fini(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    char *copy = mem_dup((const char *)data + 1, size - 1); /* exact: a byte too far is seen */
    CHECK(copy != NULL);
    fuzz_input input = {.rest = {copy, size - 1}};
    oauth_settings settings = {
        .grant = (oauth_grant)(data[0] % 6),
        .url = STR("https://h/mcp"),
        .idp_token_endpoint = STR("https://i/token"),
        .wants_dpop = (data[0] & 64) != 0,
        .is_eager = (data[0] & 128) != 0,
    };
    if (settings.grant == OAUTH_CLIENT || (data[0] & 32) != 0) {
        settings.identity = (oauth_identity){.id = STR("id"), .secret = STR("secret")};
    }
    oauth_client *client = NULL;
    read_parts(input.rest);
    CHECK(oauth_client_new(&settings, &client, NULL) == BAY_OK);
    walk(client, &input);
    oauth_client_free(client);
    mem_free(copy);
    return 0;
}
