/* Fetching the card of a remote agent, and deciding whether it is believed.
 *
 *   agent-card.json ─404─► agent.json ─► signed? ─by a key of the file─► taken
 *                                          └─ else by a key set that a signature names and the
 *                                             configuration trusts, one after the other ─► taken
 *
 * A card that is refused leaves the earlier one in place. */
#include <stdio.h>
#include <string.h>

#include "agents/remote_parts.h"
#include "auth/card_signature.h"
#include "base/err.h"
#include "base/log.h"
#include "base/shown.h"
#include "wire/uri.h"
#include "wire/via.h"

enum { SECOND_MS = 1000, AGAIN_MS = 5000, LONGEST_MS = 24 * 3600 * 1000 };

static void on_fetched(void *user, bay_err err, const char *text);
static void next_key_set(agents_remote *self);

static void over(agents_remote *self)
{
    self->is_learning = false;
    buf_clear(&self->candidate);
    remote_tell_watches(self);
}

/* Not believed, or not there. */
static void card_fetch_fail(agents_remote *self, const char *format, const char *detail)
{
    char text[sizeof(self->error)];
    snprintf(text, sizeof(text), format, detail);
    shown_copy(self->error, sizeof(self->error), shown_whole(str_of(text)), SHOWN_LINE);
    LOG(LOG_WARN, "agents", "agent \"%.*s\": %s%s", BAY_STR(self->settings->name), self->error,
        self->card != NULL ? "; its earlier card stays" : "");
    self->has_failed = true;
    self->fresh_until_ms = loop_now_ms(self->loop) + AGAIN_MS;
    if (self->connection != NULL && self->circuit.state == CIRCUIT_CLOSED) {
        agents_proxy_begin_waiting(self); /* it is there, whatever became of its card */
    } else {
        agents_proxy_fail_waiting(self, A2A_E_UNAVAILABLE, "its card cannot be had just now");
    }
    over(self);
}

static void keep_fresh(agents_remote *self, uint64_t age_ms)
{
    self->has_failed = false;
    self->error[0] = '\0';
    self->fresh_until_ms = loop_now_ms(self->loop) + age_ms;
    agents_proxy_begin_waiting(self);
    over(self);
}

static uint64_t age_of(const agents_remote *self)
{
    if (!self->fetch.has_max_age || self->fetch.max_age_s > LONGEST_MS / 1000) {
        return self->settings->refresh_ms;
    }
    uint64_t age_ms = self->fetch.max_age_s * 1000;
    return age_ms > SECOND_MS ? age_ms : SECOND_MS;
}

static void card_fetch_take(agents_remote *self, bool is_verified)
{
    json_val normal;
    a2a_fault fault = {0};
    a2a_version version;
    const char *why = "its card cannot be read";
    const agents_settings *settings = self->settings;
    if (settings->admits_card != NULL &&
        !settings->admits_card(settings->admits_user, json_root(&self->candidate_doc), &why)) {
        card_fetch_fail(self, "%s", why);
        return;
    }
    bay_err err = a2a_card_view(json_root(&self->candidate_doc), &self->candidate_memory, &normal,
                                &version, &fault);
    why = fault.text[0] != '\0' ? fault.text : why;
    if (err == BAY_OK) {
        err = remote_take_card(self, normal, is_verified, &why);
    }
    if (err != BAY_OK) {
        card_fetch_fail(self, "%s", err == BAY_ERR_NOMEM ? "out of memory" : why);
        return;
    }
    memcpy(self->etag, self->candidate_etag, sizeof(self->etag));
    keep_fresh(self, self->candidate_age_ms);
}

/* ---- signatures ------------------------------------------------------------------------------ */

static bool is_trusted(const agents_verify *verify, bay_str jku)
{
    for (size_t i = 0; i < verify->jku_count; i++) {
        if (str_eq(verify->jku[i], jku)) {
            return true;
        }
    }
    return false;
}

/* How the candidate fares with these keys. */
static bay_err check_with(agents_remote *self, const jose_keys *keys)
{
    bay_diag diag = {0};
    return card_verify(json_root(&self->candidate_doc), keys, &diag);
}

static void on_key_set(void *user, bay_err err, const char *text)
{
    agents_remote *self = user;
    jose_keys *keys = NULL;
    bay_diag diag = {0};
    (void)text;
    if (err == BAY_OK && self->fetch.status == 200 && self->fetch.may_be_json &&
        jose_keys_new(buf_view(&self->fetch.body), &keys, &diag) == BAY_OK) {
        err = check_with(self, keys);
        jose_keys_free(keys);
        if (err == BAY_OK) {
            card_fetch_take(self, true);
            return;
        }
    }
    next_key_set(self);
}

/* A card may name one set in each of its signatures; it is asked once. */
static bool is_earlier(const card_signer *signers, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (str_eq(signers[i].jku, signers[at].jku)) {
            return true;
        }
    }
    return false;
}

static void next_key_set(agents_remote *self)
{
    card_signer signers[REMOTE_SETS];
    bay_diag diag = {0};
    arena_reset(&self->scratch);
    size_t count =
        card_signers(json_root(&self->candidate_doc), &self->scratch, signers, REMOTE_SETS);
    while (self->next_signer < count) {
        size_t at = self->next_signer++;
        bay_str jku = signers[at].jku;
        http_document_spec spec = {.url = jku, .max_bytes = JOSE_KEYSET_BYTES};
        if (jku.len > 0 && !is_earlier(signers, at) && is_trusted(&self->settings->verify, jku) &&
            http_document_start(&self->fetch, self->key_http, &spec, on_key_set, self, &diag) ==
                BAY_OK) {
            return;
        }
    }
    card_fetch_fail(self, "%s", "its card is signed by nobody who is trusted");
}

static void verify(agents_remote *self)
{
    const agents_verify *rules = &self->settings->verify;
    arena_reset(&self->candidate_memory);
    bay_err err = json_parse(&self->candidate_doc, buf_view(&self->candidate), &a2a_json_limits,
                             &self->candidate_memory, NULL);
    if (err != BAY_OK) {
        card_fetch_fail(self, "what should be its card is no JSON: %s", bay_err_text(err));
        return;
    }
    bool is_signed = json_count(json_get(json_root(&self->candidate_doc), STR("signatures"))) > 0;
    if (rules->keys_file.len == 0 && rules->jku_count == 0) {
        card_fetch_take(self, false);
    } else if (!is_signed && rules->is_required) {
        card_fetch_fail(self, "%s", "its card is not signed");
    } else if (!is_signed && self->is_verified) { /* whoever changes a card can strip it, too */
        card_fetch_fail(self, "%s", "its card is not signed any more");
    } else if (!is_signed) {
        card_fetch_take(self, false);
    } else {
        err = self->keys != NULL ? check_with(self, self->keys) : BAY_ERR_DENIED;
        self->next_signer = 0;
        if (err == BAY_OK) {
            card_fetch_take(self, true);
        } else if (err == BAY_ERR_DENIED || err == BAY_ERR_NOT_FOUND) {
            next_key_set(self);
        } else {
            card_fetch_fail(self, "its card's signatures cannot be checked: %s", bay_err_text(err));
        }
    }
}

/* ---- the document ---------------------------------------------------------------------------- */

static bool has_two_paths(const agents_remote *self)
{
    uri parts;
    return !self->settings->is_card || (uri_parse(&parts, self->settings->url) == BAY_OK &&
                                        (parts.path.len == 0 || str_eq(parts.path, STR("/"))));
}

static void write_url(agents_remote *self)
{
    bay_str base = self->settings->url;
    buf_clear(&self->url);
    if (!has_two_paths(self)) {
        buf_str(&self->url, base);
        return;
    }
    while (base.len > 0 && base.at[base.len - 1] == '/') {
        base.len--;
    }
    buf_str(&self->url, base);
    buf_str(&self->url, self->is_second_path ? STR("/.well-known/agent.json")
                                             : STR("/.well-known/agent-card.json"));
}

static void card_fetch_ask(agents_remote *self)
{
    enum { OURS = 4, MOST = 64 };
    http_field fields[MOST + OURS];
    size_t count = 0;
    bay_diag diag = {0};
    for (size_t i = 0; i < self->settings->field_count && count < MOST; i++) {
        fields[count++] = self->settings->fields[i];
    }
    fields[count++] = (http_field){STR("Accept"), STR("application/json")};
    if (!self->settings->has_version || self->settings->version == A2A_1_0) {
        fields[count++] = (http_field){STR("A2A-Version"), STR("1.0")};
    }
    if (self->card != NULL && self->etag[0] != '\0') {
        fields[count++] = (http_field){STR("If-None-Match"), str_of(self->etag)};
    }
    buf via; /* two gateways whose cards are each other's would wait for one another */
    buf_init(&via, VIA_BYTES);
    if (self->public->via.len > 0) {
        via_write(&via, (bay_str){"", 0}, self->public->via);
        fields[count++] = (http_field){STR("Via"), buf_view(&via)};
    }
    write_url(self);
    bay_err err = self->url.err != BAY_OK ? self->url.err : via.err;
    if (err == BAY_OK) {
        http_document_spec spec = {.url = buf_view(&self->url),
                                   .fields = fields,
                                   .field_count = count,
                                   .max_bytes = AGENTS_CARD_BYTES,
                                   .authority = self->settings->authority};
        err = http_document_start(&self->fetch, self->http, &spec, on_fetched, self, &diag);
    }
    buf_fini(&via);
    if (err != BAY_OK) {
        card_fetch_fail(self, "its card cannot be fetched: %s",
                        diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

static void on_fetched(void *user, bay_err err, const char *text)
{
    agents_remote *self = user;
    int status = self->fetch.status;
    if (err != BAY_OK) {
        if (err == BAY_ERR_LIMIT) {
            remote_reached(self); /* it answers, only too much */
        } else {
            remote_missed(self);
        }
        card_fetch_fail(self, "its card cannot be fetched: %s", text);
        return;
    }
    bool is_missing = status == 404 || status == 405 || status == 410;
    if (is_missing && has_two_paths(self) && !self->is_second_path) {
        self->is_second_path = true;
        card_fetch_ask(self);
        return;
    }
    if (status >= 500) {
        remote_missed(self);
    } else {
        remote_reached(self);
    }
    if (status == 304 && self->card != NULL) {
        keep_fresh(self, age_of(self));
        return;
    }
    if (status != 200) {
        char number[12];
        snprintf(number, sizeof(number), "%d", status);
        card_fetch_fail(self, "its card cannot be fetched: status %s", number);
        return;
    }
    buf_clear(&self->candidate);
    buf_str(&self->candidate, buf_view(&self->fetch.body));
    memcpy(self->candidate_etag, self->fetch.etag, sizeof(self->candidate_etag));
    self->candidate_age_ms = age_of(self);
    if (self->candidate.err != BAY_OK) {
        card_fetch_fail(self, "%s", "out of memory");
        return;
    }
    verify(self);
}

void remote_card_try(agents_remote *self)
{
    if (self->is_learning) {
        return;
    }
    circuit_started(&self->circuit);
    self->is_learning = true;
    self->is_second_path = false;
    card_fetch_ask(self);
}
