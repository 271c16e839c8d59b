/* A set of input requests. All of it is checked before anybody is asked: a person should not fill
 * in a form for a call that fails for its neighbour.
 *
 * Invariant: `open` counts the entries that have no answer yet; `done` runs when it reaches zero or
 * something failed, never while the entries are still being asked. */
#include "sdk/client_inputs.h"

#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"

enum { INPUTS_MAX_BYTES = 64 << 20 }; /* of all answers */

typedef struct input {
    inputs *owner;
    bay_str key;  /* raw */
    bay_str name; /* the same, decoded */
    bay_str method;
    json_val params;
    bay_question *question; /* NULL: not asked, or answered */
    json_val answer;        /* missing: none yet */
} input;

struct inputs {
    bay_client *client;
    arena memory;
    json_val requests; /* its own copy */
    input *at;
    size_t count;
    size_t open;
    bool is_asking;
    bool is_dead; /* freed while it is asking: a handler gave up its request */
    bay_diag fault;
    inputs_done done;
    void *user;
};

/* ---- reading ----------------------------------------------------------------------------------
 */

static bool may_be_asked(const bay_client *client, bay_str method)
{
    const bay_client_options *options = &client->options;
    return (str_eq(method, STR("elicitation/create")) && options->elicitation_modes != 0) ||
           (str_eq(method, STR("sampling/createMessage")) && options->sampling_asked != NULL) ||
           (str_eq(method, STR("roots/list")) && options->has_roots);
}

static bay_err read_one(inputs *self, json_val key, json_val request, bay_diag *diag)
{
    input *one = &self->at[self->count];
    *one = (input){.owner = self, .key = json_raw(key), .params = json_get(request, STR("params"))};
    if (json_str(key, &self->memory, &one->name) != BAY_OK) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bay_err err = json_str(json_get(request, STR("method")), &self->memory, &one->method);
    if (err == BAY_ERR_NOMEM || err == BAY_ERR_LIMIT) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bool has_params = json_is(one->params, JSON_OBJECT) || json_is(one->params, JSON_MISSING);
    if (err != BAY_OK || !has_params) {
        return diag_set(diag, BAY_ERR_PROTOCOL, "the server asks for input by what is no request");
    }
    /* mcp 2026-07-28 basic/patterns/mrtr: servers ask only for what the client declared */
    if (!may_be_asked(self->client, one->method)) {
        return diag_set(diag, BAY_ERR_PROTOCOL,
                        "the server asks for input by %.*s, which this client did not offer",
                        BAY_STR(str_head(one->method, 64)));
    }
    self->count++;
    return BAY_OK;
}

static bay_err read_requests(inputs *self, json_val requests, const map *known, bay_diag *diag)
{
    if (!json_is(requests, JSON_OBJECT) || json_check_duplicates(requests, NULL) != BAY_OK) {
        return diag_set(diag, BAY_ERR_PROTOCOL, "inputRequests is no map of requests");
    }
    if (json_count(requests) > INPUTS_MAX) {
        return diag_set(diag, BAY_ERR_LIMIT,
                        "the server asks for %zu inputs at once, at most %d are "
                        "taken",
                        json_count(requests), INPUTS_MAX);
    }
    bay_err err = json_clone_in(requests, &self->memory, &self->requests);
    self->at = arena_array(&self->memory, json_count(requests) + 1, sizeof(*self->at));
    if (err != BAY_OK || self->at == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    json_iter iter = json_iter_of(self->requests);
    while (err == BAY_OK && json_next(&iter)) {
        if (known == NULL || map_get(known, json_raw(iter.key)) == NULL) {
            err = read_one(self, iter.key, iter.value, diag);
        }
    }
    return err;
}

/* ---- asking -----------------------------------------------------------------------------------
 */

static void drop_questions(inputs *self)
{
    for (size_t i = 0; i < self->count; i++) {
        bay_question *question = self->at[i].question;
        self->at[i].question = NULL;
        sdk_question_drop(question);
    }
}

/* `self` may be gone afterwards. */
static void client_inputs_finish(inputs *self)
{
    bool has_failed = self->fault.code != BAY_OK;
    if (self->is_asking || self->is_dead || (self->open > 0 && !has_failed)) {
        return;
    }
    drop_questions(self);
    self->done(self->user, has_failed ? &self->fault : NULL);
}

static void answered(void *user, json_val result, int code, bay_str message)
{
    input *one = user;
    inputs *self = one->owner;
    self->open--;
    if (result.doc == NULL) {
        diag_set(&self->fault, BAY_ERR_DENIED, "%.*s was answered with an error (%d): %.*s",
                 BAY_STR(str_head(one->method, 64)), code, BAY_STR(str_head(message, 120)));
    } else if (self->memory.used + json_raw(result).len > INPUTS_MAX_BYTES ||
               json_clone_in(result, &self->memory, &one->answer) != BAY_OK) {
        diag_set(&self->fault, BAY_ERR_NOMEM, "no memory for an answer");
    }
    client_inputs_finish(self);
}

bay_err inputs_ask(bay_client *client, json_val requests, const map *known, inputs_done done,
                   void *user, inputs **out, bay_diag *diag)
{
    inputs *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->client = client;
    self->done = done;
    self->user = user;
    arena_init(&self->memory, (size_t)4 * INPUTS_MAX_BYTES);
    bay_err err = read_requests(self, requests, known, diag);
    if (err != BAY_OK) {
        inputs_free(self);
        return err;
    }
    *out = self;
    self->open = self->count;
    self->is_asking = true;
    for (size_t i = 0; i < self->count && self->fault.code == BAY_OK && !self->is_dead; i++) {
        input *one = &self->at[i];
        err = sdk_question_ask(client, one->method, one->params, answered, one, &one->question);
        if (err != BAY_OK) {
            diag_set(&self->fault, err, "no memory to ask");
        }
    }
    self->is_asking = false;
    if (self->is_dead) {
        inputs_free(self);
    } else {
        client_inputs_finish(self);
    }
    return BAY_OK;
}

size_t inputs_count(const inputs *self)
{
    return self->count;
}

bay_str inputs_key(const inputs *self, size_t index)
{
    return self->at[index].key;
}

void inputs_write(const inputs *self, json_writer *out)
{
    json_open_object(out);
    for (size_t i = 0; i < self->count; i++) {
        json_key(out, self->at[i].name);
        json_put_val(out, self->at[i].answer);
    }
    json_close_object(out);
}

void inputs_free(inputs *self)
{
    if (self == NULL) {
        return;
    }
    drop_questions(self);
    self->is_dead = true;
    if (!self->is_asking) {
        arena_fini(&self->memory);
        mem_free(self);
    }
}
