/* The card of an agent: where it is looked for, and whether its signature is good. One file after
 * the other is fetched; each step says what comes next.
 *
 *   CARD (one place after the other) ──► KEYS (the sets that its signatures name) ──► chosen
 *
 * Redirects are not followed. Key sets are fetched without credentials. */
#include <stdio.h>
#include <string.h>

#include "auth/card_signature.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http_document.h"
#include "sdk/caller_parts.h"
#include "wire/uri.h"

enum { CARD_PLACES = 4, CARD_PARTS_BYTES = CALLER_URL_BYTES };

struct caller_fetch {
    bay_caller *caller;
    char *places[CARD_PLACES]; /* URLs to try */
    size_t place_count;
    size_t place;
    size_t own_places; /* those beyond are the host's, whose card may be another agent's */
    bool is_keys;      /* a key set is being fetched */
    size_t keys_fetched;
    http_document document;
    loop_task begin;
    bay_diag refused; /* by the last set of keys */
};

static void fetch_next(caller_fetch *self);
static void next_keys(caller_fetch *self);

/* ---- places ---------------------------------------------------------------------------------- */

bay_err sdk_card_check_agent(const char *agent, bay_diag *diag)
{
    uri parts;
    bay_str text = str_of(agent);
    if (agent[0] == '{') {
        return text.len <= CALLER_CARD_BYTES
                   ? BAY_OK
                   : diag_set(diag, BAY_ERR_LIMIT, "the card is larger than %d bytes",
                              CALLER_CARD_BYTES);
    }
    if (text.len > CARD_PARTS_BYTES || uri_parse(&parts, text) != BAY_OK || !parts.has_authority ||
        parts.host.len == 0 ||
        (!str_eq_nocase(parts.scheme, STR("http")) && !str_eq_nocase(parts.scheme, STR("https")))) {
        /* not shown: it may hold a password or a token */
        return diag_set(diag, BAY_ERR_INVALID,
                        "no agent: give the http:// or https:// URL of an agent or its card");
    }
    if (parts.has_userinfo) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "a URL must not carry a name or password; use a header field");
    }
    return BAY_OK;
}

static bay_err add_place(caller_fetch *self, bay_str base, const char *path)
{
    size_t room = base.len + strlen(path) + 1;
    char *place = mem_alloc(room);
    if (place == NULL) {
        return BAY_ERR_NOMEM;
    }
    snprintf(place, room, "%.*s%s", BAY_STR(base), path);
    self->places[self->place_count++] = place;
    return BAY_OK;
}

/* Scheme and authority. */
static bay_str origin_of(bay_str url, const uri *parts)
{
    size_t at = (size_t)(parts->authority.at - url.at);
    return str_head(url, at + parts->authority.len);
}

static bay_err find_places(caller_fetch *self)
{
    static const char first[] = "/.well-known/agent-card.json";
    static const char older[] = "/.well-known/agent.json";
    bay_caller *caller = self->caller;
    uri parts;
    bay_str url = str_of(caller->agent);
    bay_err err = uri_parse(&parts, url);
    if (err != BAY_OK) {
        return err;
    }
    bay_str origin = origin_of(url, &parts);
    buf_clear(&caller->origin);
    buf_str(&caller->origin, origin);
    if (caller->origin.err != BAY_OK) {
        return caller->origin.err;
    }
    if (str_ends(parts.path, STR(".json"))) {
        self->own_places = 1;
        return add_place(self, url, "");
    }
    bay_str base = str_head(url, origin.len + parts.path.len);
    while (base.len > origin.len && base.at[base.len - 1] == '/') {
        base.len--;
    }
    err = add_place(self, base, first);
    err = err == BAY_OK ? add_place(self, base, older) : err;
    self->own_places = 2;
    if (base.len > origin.len) {
        err = err == BAY_OK ? add_place(self, origin, first) : err;
        err = err == BAY_OK ? add_place(self, origin, older) : err;
    }
    return err;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void fetch_free(caller_fetch *self)
{
    struct loop *on = self->caller->base.loop;
    http_document_fini(&self->document);
    loop_undefer(on, &self->begin);
    for (size_t i = 0; i < self->place_count; i++) {
        mem_free(self->places[i]);
    }
    self->caller->fetch = NULL;
    mem_free(self);
}

void sdk_card_abandon(bay_caller *self)
{
    if (self->fetch != NULL) {
        fetch_free(self->fetch);
    }
}

static void fetch_fail(caller_fetch *self, bay_err err, const char *text)
{
    bay_caller *caller = self->caller;
    bay_diag fault = {0};
    (void)diag_set(&fault, err, "%s: %s", caller->base.shown, text);
    fetch_free(self);
    sdk_caller_lost(caller, &fault);
}

static void fetch_done(caller_fetch *self)
{
    bay_caller *caller = self->caller;
    a2a_fault fault = {0};
    bay_err err = sdk_caller_choose(caller, &fault);
    if (err != BAY_OK) {
        fetch_fail(self, err, fault.text[0] != '\0' ? fault.text : bay_err_text(err));
        return;
    }
    fetch_free(self);
    sdk_caller_found(caller);
}

/* ---- signatures ------------------------------------------------------------------------------ */

static void refuse_signature(caller_fetch *self)
{
    char text[200];
    snprintf(text, sizeof(text), "its card is refused: %.170s",
             self->refused.text[0] != '\0'
                 ? self->refused.text
                 : "its signatures name no key set that is allowed, and no key is known");
    fetch_fail(self, BAY_ERR_DENIED, text);
}

/* Under one set of keys. False: it was not good, or an error ended the fetch. */
static bool try_keys(caller_fetch *self, bay_str text)
{
    bay_caller *caller = self->caller;
    jose_keys *keys = NULL;
    bay_err err = jose_keys_new(text, &keys, &self->refused);
    if (err == BAY_OK) {
        err = card_verify(caller->source, keys, &self->refused);
    }
    jose_keys_free(keys);
    caller->is_verified = err == BAY_OK;
    return caller->is_verified;
}

/* The URL of the next key set that a signature names and the options allow; "" when there is none.
 */
static bay_str key_place(caller_fetch *self)
{
    const bay_caller_options *options = &self->caller->options;
    card_signer signers[CARD_SIGNATURES];
    arena memory;
    bay_str place = STR("");
    arena_init(&memory, CALLER_CARD_MEMORY);
    size_t count = card_signers(self->caller->source, &memory, signers, CARD_SIGNATURES);
    size_t seen = 0;
    for (size_t k = 0; k < options->key_urls.count && seen < CALLER_KEYSETS; k++) {
        bay_str allowed = str_of(options->key_urls.at[k].name);
        bool is_named = false;
        for (size_t i = 0; i < count; i++) {
            is_named = is_named || str_eq(signers[i].jku, allowed);
        }
        if (is_named && seen++ == self->keys_fetched) {
            place = allowed;
            break;
        }
    }
    arena_fini(&memory);
    return place;
}

static void check_signature(caller_fetch *self)
{
    bay_caller *caller = self->caller;
    const bay_caller_options *options = &caller->options;
    bool has_trust = options->keys != NULL || options->key_urls.count > 0;
    caller->is_verified = false;
    if (json_count(json_get(caller->source, STR("signatures"))) == 0) {
        if (options->needs_signature) {
            fetch_fail(self, BAY_ERR_DENIED, "its card is refused: it is not signed");
        } else {
            fetch_done(self);
        }
    } else if (!has_trust) {
        if (options->needs_signature) {
            fetch_fail(self, BAY_ERR_DENIED,
                       "its card is refused: no keys are given to check its signature with");
        } else {
            fetch_done(self);
        }
    } else if (options->keys != NULL && try_keys(self, str_of(options->keys))) {
        fetch_done(self);
    } else {
        next_keys(self);
    }
}

/* ---- the card -------------------------------------------------------------------------------- */

/* Its path, without a '/' at the end; "" when it is no URL. */
static bay_str path_of(bay_str url)
{
    uri parts;
    bay_str path = STR("");
    if (uri_parse(&parts, url) == BAY_OK) {
        path = parts.path;
    }
    while (path.len > 0 && path.at[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

/* Is this the agent that was asked for? A host's card found in place of a path's must lead to that
 * path (by whatever name the card knows the host). */
static bool leads_to_agent(const bay_caller *caller, json_val card)
{
    bay_str wanted = path_of(str_of(caller->agent));
    json_iter all = json_iter_of(json_get(card, STR("supportedInterfaces")));
    while (json_next(&all)) {
        bay_str url = {NULL, 0};
        (void)json_str_plain(json_get(all.value, STR("url")), &url);
        bay_str path = path_of(url);
        if (str_eq(path, wanted) || (str_starts(path, wanted) && path.at[wanted.len] == '/')) {
            return true;
        }
    }
    return false;
}

static bay_err read_card(bay_caller *caller, bay_str text, a2a_fault *fault)
{
    a2a_version version;
    bay_str kept;
    arena_reset(&caller->memory);
    json_doc *doc = arena_alloc(&caller->memory, sizeof(*doc));
    if (doc == NULL || arena_dup(&caller->memory, text, &kept) != BAY_OK) {
        return BAY_ERR_NOMEM;
    }
    bay_err err = json_parse(doc, kept, &a2a_json_limits, &caller->memory, NULL);
    if (err == BAY_OK) {
        caller->source = json_root(doc);
        err = a2a_card_view(caller->source, &caller->memory, &caller->card, &version, fault);
    }
    return err == BAY_OK ? sdk_caller_read_about(caller) : err;
}

static void take_card(caller_fetch *self, bay_str text)
{
    bay_caller *caller = self->caller;
    a2a_fault fault = {A2A_E_INVALID_AGENT_RESPONSE, ""};
    char why[A2A_FAULT_BYTES + 60];
    bay_err err = text.len <= CALLER_CARD_BYTES ? read_card(caller, text, &fault) : BAY_ERR_LIMIT;
    if (err != BAY_OK) {
        snprintf(why, sizeof(why), "what it gives as its card is none: %.180s",
                 fault.text[0] != '\0' ? fault.text : bay_err_text(err));
        fetch_fail(self, err == BAY_ERR_NOMEM ? err : BAY_ERR_PROTOCOL, why);
        return;
    }
    if (self->place >= self->own_places && self->place_count > 0 &&
        !leads_to_agent(caller, caller->card)) {
        self->place++;
        fetch_next(self);
        return;
    }
    check_signature(self);
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void fetch_broke(caller_fetch *self, bay_err err, const char *text)
{
    if (!self->is_keys) {
        fetch_fail(self, err, text);
        return;
    }
    (void)diag_set(&self->refused, err, "the key set that its signature names: %s", text);
    self->keys_fetched++;
    next_keys(self);
}

static void take_status(caller_fetch *self)
{
    char text[160];
    int status = self->document.status;
    if (status == 401 || status == 403) {
        snprintf(text, sizeof(text), "its card needs credentials (HTTP status %d)", status);
        fetch_fail(self, BAY_ERR_DENIED, text);
    } else if (status >= 300 && status < 400) {
        snprintf(text, sizeof(text),
                 "it redirects (HTTP status %d), and redirects are not followed: give the address "
                 "it now has",
                 status);
        fetch_fail(self, BAY_ERR_PROTOCOL, text);
    } else if (status >= 500 || status == 429) {
        snprintf(text, sizeof(text), "its card cannot be had: HTTP status %d", status);
        fetch_fail(self, BAY_ERR_BUSY, text);
    } else {
        self->place++;
        fetch_next(self);
    }
}

static void take_keys(caller_fetch *self)
{
    int status = self->document.status;
    bool is_good = status == 200 && self->document.may_be_json;
    self->keys_fetched++;
    if (status != 200) {
        (void)diag_set(&self->refused, BAY_ERR_DENIED,
                       "the key set that its signature names cannot be had: HTTP status %d",
                       status);
    } else if (!is_good) {
        (void)diag_set(&self->refused, BAY_ERR_DENIED,
                       "the key set that its signature names is no JSON, by its Content-Type");
    }
    if (is_good && try_keys(self, buf_view(&self->document.body))) {
        fetch_done(self);
    } else {
        next_keys(self);
    }
}

static void on_document(void *user, bay_err err, const char *text)
{
    caller_fetch *self = user;
    int status = self->document.status;
    bool is_found = status >= 200 && status < 300;
    if (err == BAY_ERR_LIMIT && status != 0 && !is_found) {
        err = BAY_OK; /* what an error says is not read */
    }
    if (err != BAY_OK) {
        fetch_broke(self, err,
                    err == BAY_ERR_LIMIT && !self->is_keys ? "its card is too large" : text);
    } else if (self->is_keys) {
        take_keys(self);
    } else if (is_found) {
        take_card(self, buf_view(&self->document.body));
    } else {
        take_status(self);
    }
}

static bay_err fetch_call(caller_fetch *self, bay_str url, const http_field *fields, size_t count)
{
    http_document_spec spec = {.url = url,
                               .fields = fields,
                               .field_count = count,
                               .max_bytes = self->is_keys ? JOSE_KEYSET_BYTES : CALLER_CARD_BYTES,
                               .timeout_ms = CALLER_CARD_MS,
                               .authority =
                                   self->is_keys ? NULL : sdk_login_http(self->caller->base.login)};
    return http_document_start(&self->document, self->caller->base.http, &spec, on_document, self,
                               NULL);
}

/* a2a 1.0.1 section 3.6: who reads 1.0 says so, and gets a card of that version */
static size_t card_fields(const bay_caller *caller, http_field *out)
{
    const asker_settings *headers = &caller->options.base.headers;
    size_t count = 0;
    out[count++] = (http_field){STR("Accept"), STR("application/json")};
    if (caller->options.version < 0 || caller->options.version == A2A_1_0) {
        out[count++] = (http_field){STR("A2A-Version"), a2a_version_names[A2A_1_0]};
    }
    for (size_t i = 0; i < headers->count && count < CALLER_FIELDS; i++) {
        out[count++] = (http_field){str_of(headers->at[i].name), str_of(headers->at[i].value)};
    }
    return count;
}

static void fetch_next(caller_fetch *self)
{
    if (self->place >= self->place_count) {
        fetch_fail(self, BAY_ERR_NOT_FOUND,
                   "there is no card of an agent (/.well-known/agent-card.json)");
        return;
    }
    http_field fields[CALLER_FIELDS];
    size_t count = card_fields(self->caller, fields);
    bay_err err = fetch_call(self, str_of(self->places[self->place]), fields, count);
    mem_wipe(fields, sizeof(fields));
    if (err != BAY_OK) {
        fetch_fail(self, err, bay_err_text(err));
    }
}

static void next_keys(caller_fetch *self)
{
    self->is_keys = true;
    bay_str place = key_place(self);
    if (place.len == 0) {
        refuse_signature(self);
        return;
    }
    http_field accept = {STR("Accept"), STR("application/json")};
    bay_err err = fetch_call(self, place, &accept, 1);
    if (err != BAY_OK) {
        fetch_broke(self, err, bay_err_text(err));
    }
}

static void on_begin(void *argument)
{
    caller_fetch *self = argument;
    bay_caller *caller = self->caller;
    if (caller->agent[0] == '{') {
        take_card(self, str_of(caller->agent));
        return;
    }
    bay_err err = find_places(self);
    if (err != BAY_OK) {
        fetch_fail(self, err, bay_err_text(err));
        return;
    }
    fetch_next(self);
}

void sdk_card_fetch(bay_caller *self)
{
    bay_diag fault = {0};
    caller_fetch *fetch = mem_zalloc(sizeof(*fetch));
    if (fetch == NULL) {
        (void)diag_set(&fault, BAY_ERR_NOMEM, "out of memory");
        sdk_caller_lost(self, &fault);
        return;
    }
    fetch->caller = self;
    http_document_init(&fetch->document, self->base.loop);
    fetch->begin = (loop_task){.function = on_begin, .argument = fetch};
    self->fetch = fetch;
    loop_defer(self->base.loop, &fetch->begin);
}
