/* An issuer on one loop: it fetches when it is this loop's turn, and tells those who wait. */
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "oauth/issuer_parts.h"

static uint64_t now_ms(const oauth_issuer_link *self)
{
    uint64_t (*clock)(void) = self->issuer->options.now;
    return clock != NULL ? clock() : loop_now_ms(self->loop);
}

/* ---- those who wait -------------------------------------------------------------------------- */

static void link_unref(oauth_issuer_link *self)
{
    if (atomic_fetch_sub(&self->references, 1) == 1) {
        oauth_issuer_unref(self->issuer);
        mem_free(self);
    }
}

/* Not those who began to wait since: a fetch that ended before is none that they waited for. */
void issuer_link_tell(void *argument)
{
    oauth_issuer_link *self = argument;
    list told;
    list_link *link;
    pthread_mutex_lock(&self->issuer->lock);
    self->is_told = false;
    uint64_t events = self->issuer->events;
    pthread_mutex_unlock(&self->issuer->lock);
    list_init(&told);
    while (!self->is_dead && (link = list_first(&self->waits)) != NULL &&
           CONTAINER_OF(link, oauth_wait, link)->since != events) {
        list_remove(link);
        list_push(&told, link);
    }
    while ((link = list_pop(&told)) != NULL) {
        oauth_wait *wait = CONTAINER_OF(link, oauth_wait, link);
        wait->done(wait->user);
    }
    link_unref(self);
}

void oauth_issuer_link_wait(oauth_issuer_link *self, oauth_wait *wait)
{
    wait->since = issuer_wait(self->issuer, self);
    list_push(&self->waits, &wait->link);
}

void oauth_wait_cancel(oauth_wait *self)
{
    list_remove(&self->link);
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* `why`: NULL if it went well; without keys where only metadata was asked for. */
static void finish(oauth_issuer_link *self, jose_keys *keys, uint64_t fresh_ms, const char *why)
{
    issuer_outcome outcome = {
        .keys = keys, .fresh_ms = fresh_ms, .is_good = why == NULL, .began_ms = self->began_ms};
    uint64_t next_ms = issuer_fetched(self->issuer, &outcome, now_ms(self));
    if (why != NULL) {
        LOG(LOG_WARN, "auth",
            "the keys of issuer \"%.*s\" could not be fetched: %s; its tokens are verified with "
            "earlier keys, if there are any; next attempt in %llu s",
            BAY_STR(oauth_issuer_url(self->issuer)), why,
            (unsigned long long)((next_ms + 999) / 1000));
    }
}

static uint64_t fresh_ms_of(const oauth_answer *answer)
{
    uint64_t fresh_ms = OAUTH_KEYS_FRESH_MS;
    if (answer->has_max_age) {
        fresh_ms = answer->max_age_s < OAUTH_KEYS_FRESH_MOST_MS / 1000 ? answer->max_age_s * 1000
                                                                       : OAUTH_KEYS_FRESH_MOST_MS;
    }
    return fresh_ms > OAUTH_KEYS_FRESH_LEAST_MS ? fresh_ms : OAUTH_KEYS_FRESH_LEAST_MS;
}

static void on_keys(void *user, const oauth_answer *answer)
{
    oauth_issuer_link *self = user;
    jose_keys *keys = NULL;
    bay_diag diag = {0};
    char text[64] = "";
    const char *why = answer->text;
    if (answer->err == BAY_OK && answer->status != 200) {
        buf status = {.at = text, .cap = sizeof(text) - 1, .max = sizeof(text) - 1};
        buf_printf(&status, "their address answers with status %d", answer->status);
        text[status.len] = '\0';
        why = text;
    } else if (json_is(answer->root, JSON_OBJECT) &&
               jose_keys_new(answer->body, &keys, &diag) != BAY_OK) {
        why = diag.text;
    } else if (keys != NULL && jose_keys_count(keys) == 0) {
        jose_keys_free(keys);
        keys = NULL;
        why = "the set has no key that can verify tokens";
    }
    finish(self, keys, fresh_ms_of(answer), keys != NULL ? NULL : why);
}

static void fetch_keys(oauth_issuer_link *self)
{
    bay_diag diag = {0};
    if (self->keys_url.len == 0) {
        finish(self, NULL, 0, "its metadata names no jwks_uri");
        return;
    }
    oauth_request request = {.url = buf_view(&self->keys_url), .max_bytes = JOSE_KEYSET_BYTES};
    bay_err err = oauth_document_start(&self->document, &request, on_keys, self, &diag);
    if (err != BAY_OK) {
        finish(self, NULL, 0, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

static bay_err text_of(json_val root, bay_str name, arena *memory, bay_str *out)
{
    json_val value = json_get(root, name);
    *out = STR("");
    return json_is(value, JSON_STRING) ? json_str(value, memory, out) : BAY_OK;
}

static void on_metadata(void *user, bay_err err, json_val root, const char *text)
{
    oauth_issuer_link *self = user;
    bay_str keys;
    bay_str introspection;
    arena memory;
    if (err != BAY_OK) {
        finish(self, NULL, 0, text);
        return;
    }
    arena_init(&memory, 4 * OAUTH_DOCUMENT_BYTES);
    err = text_of(root, STR("jwks_uri"), &memory, &keys);
    err =
        err == BAY_OK ? text_of(root, STR("introspection_endpoint"), &memory, &introspection) : err;
    err = err == BAY_OK ? issuer_set_metadata(self->issuer, keys, introspection) : err;
    arena_fini(&memory);
    if (err != BAY_OK || self->need == ISSUER_METADATA) {
        finish(self, NULL, 0, err != BAY_OK ? bay_err_text(err) : NULL);
        return;
    }
    (void)issuer_keys_url(self->issuer, &self->keys_url);
    fetch_keys(self);
}

/* This link has claimed the fetch. */
static void begin(oauth_issuer_link *self, issuer_need need)
{
    bay_diag diag = {0};
    self->need = need;
    self->began_ms = now_ms(self);
    if (need == ISSUER_KEYS && issuer_keys_url(self->issuer, &self->keys_url)) {
        fetch_keys(self);
        return;
    }
    bay_err err = oauth_metadata_start(&self->metadata, oauth_issuer_url(self->issuer), on_metadata,
                                       self, &diag);
    if (err != BAY_OK) {
        finish(self, NULL, 0, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
    }
}

/* ---- what is asked --------------------------------------------------------------------------- */

bay_err oauth_issuer_link_keys(oauth_issuer_link *self, jose_keys **out, uint32_t *out_retry_ms)
{
    if (issuer_claim(self->issuer, self, ISSUER_KEYS, now_ms(self))) {
        begin(self, ISSUER_KEYS);
    }
    return issuer_keys(self->issuer, self, now_ms(self), out, out_retry_ms);
}

bay_err oauth_issuer_link_refresh(oauth_issuer_link *self, bay_str key_id, bool has_waited)
{
    bool is_claimed = false;
    bay_err err =
        issuer_claim_key(self->issuer, self, key_id, has_waited, now_ms(self), &is_claimed);
    if (is_claimed) {
        begin(self, ISSUER_KEYS);
    }
    return err;
}

bay_err oauth_issuer_link_introspection(oauth_issuer_link *self, buf *out, uint32_t *out_retry_ms)
{
    if (self->source == NULL) {
        return BAY_ERR_UNSUPPORTED;
    }
    if (issuer_claim(self->issuer, self, ISSUER_METADATA, now_ms(self))) {
        begin(self, ISSUER_METADATA);
    }
    return issuer_introspection(self->issuer, self, now_ms(self), out, out_retry_ms);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bay_err make_source(oauth_issuer_link *self, bay_diag *diag)
{
    const oauth_issuer_options *options = &self->issuer->options;
    tls_options tls = {.ca_file = options->ca_file};
    bool has_keys_url = options->keys.len > 0;
    oauth_source_options source = {.home = has_keys_url ? options->keys : options->url,
                                   .allow = options->allow,
                                   .allow_count = options->allow_count};
    bay_err err = tls_client_has_own(&tls) ? tls_client_new(&tls, &self->tls, diag) : BAY_OK;
    source.tls = self->tls;
    return err == BAY_OK ? oauth_source_new(self->loop, &source, &self->source, diag) : err;
}

bay_err oauth_issuer_link_new(loop *on, oauth_issuer *issuer, oauth_issuer_link **out,
                              bay_diag *diag)
{
    oauth_issuer_link *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->issuer = oauth_issuer_ref(issuer);
    self->loop = on;
    atomic_init(&self->references, 1);
    list_init(&self->waits);
    self->told = (loop_message){.function = issuer_link_tell, .argument = self};
    buf_init(&self->keys_url, OAUTH_URL_BYTES);
    if (!issuer->has_fixed_keys) {
        bay_err err = make_source(self, diag);
        if (err != BAY_OK) {
            oauth_issuer_link_free(self);
            return err;
        }
        oauth_metadata_init(&self->metadata, self->source);
        oauth_document_init(&self->document, self->source);
    }
    issuer_join(issuer, self);
    *out = self;
    return BAY_OK;
}

void oauth_issuer_link_free(oauth_issuer_link *self)
{
    if (self == NULL) {
        return;
    }
    self->is_dead = true;
    issuer_leave(self->issuer, self);
    while (list_pop(&self->waits) != NULL) {
    }
    if (self->source != NULL) {
        oauth_metadata_fini(&self->metadata);
        oauth_document_fini(&self->document);
        oauth_source_free(self->source);
    }
    tls_free(self->tls);
    buf_fini(&self->keys_url);
    link_unref(self);
}

oauth_source *oauth_issuer_link_source(const oauth_issuer_link *self)
{
    return self->source;
}
