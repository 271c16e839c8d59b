/* The state of an issuer that loops share: one key set, and who fetches it next. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "oauth/issuer_parts.h"

enum { MEMORY_BYTES = 1 << 20 };

/* ---- life ------------------------------------------------------------------------------------ */

static bay_err copy_allowed(oauth_issuer *self, const oauth_issuer_options *options)
{
    bay_str *copies = arena_array(&self->memory, options->allow_count + 1, sizeof(*copies));
    if (copies == NULL) {
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < options->allow_count; i++) {
        bay_err err = arena_dup(&self->memory, options->allow[i], &copies[i]);
        if (err != BAY_OK) {
            return err;
        }
    }
    self->options.allow = copies;
    return BAY_OK;
}

static bay_err copy_options(oauth_issuer *self, const oauth_issuer_options *options)
{
    bay_str file = {NULL, 0};
    bay_err err = arena_dup(&self->memory, options->url, &self->options.url);
    err = err == BAY_OK ? arena_dup(&self->memory, options->keys, &self->options.keys) : err;
    err = err == BAY_OK ? copy_allowed(self, options) : err;
    if (err == BAY_OK && options->ca_file != NULL) {
        bay_str name = {options->ca_file, strlen(options->ca_file) + 1};
        err = arena_dup(&self->memory, name, &file);
        self->options.ca_file = file.at;
    }
    return err;
}

static bool is_text_of_keys(bay_str keys)
{
    bay_str text = str_trim(keys);
    return text.len > 0 && text.at[0] == '{';
}

static bay_err check_options(const oauth_issuer_options *options, bay_diag *diag)
{
    bool has_url = options->keys.len > 0 && !is_text_of_keys(options->keys);
    bool is_named = options->url.len > 0 && options->url.len <= OAUTH_URL_BYTES;
    const char *fault = !is_named               ? "it is empty or too long"
                        : has_url               ? oauth_url_fault(options->keys, options->keys)
                        : options->keys.len > 0 ? NULL /* nothing is fetched: any name will do */
                                                : oauth_url_fault(options->url, options->url);
    return fault == NULL ? BAY_OK
                         : diag_set(diag, BAY_ERR_INVALID, "the issuer's %s cannot be used: %s",
                                    has_url ? "address of keys" : "URL", fault);
}

bay_err oauth_issuer_new(const oauth_issuer_options *options, oauth_issuer **out, bay_diag *diag)
{
    bay_err err = check_options(options, diag);
    oauth_issuer *self = err == BAY_OK ? mem_zalloc(sizeof(*self)) : NULL;
    if (self == NULL) {
        return err != BAY_OK ? err : BAY_ERR_NOMEM;
    }
    atomic_init(&self->references, 1);
    pthread_mutex_init(&self->lock, NULL);
    list_init(&self->links);
    arena_init(&self->memory, MEMORY_BYTES);
    buf_init(&self->keys_url, OAUTH_URL_BYTES);
    buf_init(&self->introspection_url, OAUTH_URL_BYTES);
    self->seed = rand_u64();
    self->options = *options;
    self->has_fixed_keys = is_text_of_keys(options->keys);
    err = copy_options(self, options);
    if (err == BAY_OK && self->has_fixed_keys) {
        err = jose_keys_new(options->keys, &self->keys, diag);
    }
    if (err != BAY_OK) {
        oauth_issuer_unref(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

oauth_issuer *oauth_issuer_ref(oauth_issuer *self)
{
    if (self != NULL) {
        atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
    }
    return self;
}

void oauth_issuer_unref(oauth_issuer *self)
{
    if (self == NULL ||
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    jose_keys_free(self->keys);
    buf_fini(&self->keys_url);
    buf_fini(&self->introspection_url);
    arena_fini(&self->memory);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
}

bay_str oauth_issuer_url(const oauth_issuer *self)
{
    return self->options.url;
}

size_t oauth_issuer_fetches(oauth_issuer *self)
{
    pthread_mutex_lock(&self->lock);
    size_t count = self->fetches;
    pthread_mutex_unlock(&self->lock);
    return count;
}

/* ---- who fetches ----------------------------------------------------------------------------- */

bool issuer_claim(oauth_issuer *self, oauth_issuer_link *link, issuer_need need, uint64_t now_ms)
{
    pthread_mutex_lock(&self->lock);
    bool is_missing =
        need == ISSUER_METADATA
            ? !self->has_metadata
            : !self->has_fixed_keys && (self->keys == NULL || now_ms >= self->fresh_until_ms);
    bool is_claimed = is_missing && self->fetcher == NULL && now_ms >= self->next_fetch_ms;
    if (is_claimed) {
        self->fetcher = link;
    }
    pthread_mutex_unlock(&self->lock);
    return is_claimed;
}

/* Under the lock, also the next. */
static bool is_known_to_be_missing(const oauth_issuer *self, uint64_t hash, uint64_t now_ms)
{
    const unknown_key *slot = &self->unknown[hash % OAUTH_UNKNOWN_KEYS];
    return slot->hash == hash && slot->until_ms > now_ms;
}

static void note_missing(oauth_issuer *self, uint64_t hash, uint64_t now_ms)
{
    self->unknown[hash % OAUTH_UNKNOWN_KEYS] = (unknown_key){hash, now_ms + OAUTH_UNKNOWN_KEY_MS};
}

bay_err issuer_claim_key(oauth_issuer *self, oauth_issuer_link *link, bay_str key_id,
                         bool has_waited, uint64_t now_ms, bool *out_claimed)
{
    uint64_t hash = str_hash(key_id, self->seed);
    bay_err err = BAY_ERR_NOT_FOUND;
    *out_claimed = false;
    pthread_mutex_lock(&self->lock);
    bool may_fetch =
        !self->has_fixed_keys && !has_waited && !is_known_to_be_missing(self, hash, now_ms);
    if (has_waited && self->failures == 0) {
        note_missing(self, hash, now_ms); /* a set that was fetched for it does not have it */
    } else if (may_fetch && (self->fetcher != NULL || now_ms >= self->next_fetch_ms)) {
        *out_claimed = self->fetcher == NULL;
        self->fetcher = *out_claimed ? link : self->fetcher;
        link->asked = self->events;
        err = BAY_ERR_AGAIN;
    }
    pthread_mutex_unlock(&self->lock);
    return err;
}

/* ---- what there is --------------------------------------------------------------------------- */

static bay_err nothing_yet(const oauth_issuer *self, oauth_issuer_link *link, uint64_t now_ms,
                           uint32_t *out_retry_ms)
{
    if (self->fetcher != NULL) {
        link->asked = self->events;
        return BAY_ERR_AGAIN;
    }
    uint64_t wait_ms = self->next_fetch_ms > now_ms ? self->next_fetch_ms - now_ms : 1;
    *out_retry_ms = wait_ms < OAUTH_KEYS_REFRESH_MS ? (uint32_t)wait_ms : OAUTH_KEYS_REFRESH_MS;
    return BAY_ERR_BUSY;
}

bay_err issuer_keys(oauth_issuer *self, oauth_issuer_link *link, uint64_t now_ms, jose_keys **out,
                    uint32_t *out_retry_ms)
{
    bay_err err = BAY_OK;
    pthread_mutex_lock(&self->lock);
    if (self->keys != NULL && (self->has_fixed_keys || now_ms < self->usable_until_ms)) {
        *out = jose_keys_ref(self->keys);
    } else {
        err = nothing_yet(self, link, now_ms, out_retry_ms);
    }
    pthread_mutex_unlock(&self->lock);
    return err;
}

bay_err issuer_introspection(oauth_issuer *self, oauth_issuer_link *link, uint64_t now_ms, buf *out,
                             uint32_t *out_retry_ms)
{
    bay_err err = BAY_OK;
    pthread_mutex_lock(&self->lock);
    if (self->has_metadata) {
        buf_str(out, buf_view(&self->introspection_url));
        err = self->introspection_url.len > 0 ? out->err : BAY_ERR_UNSUPPORTED;
    } else {
        err = nothing_yet(self, link, now_ms, out_retry_ms);
    }
    pthread_mutex_unlock(&self->lock);
    return err;
}

bool issuer_keys_url(oauth_issuer *self, buf *out)
{
    buf_clear(out);
    if (self->options.keys.len > 0 && !self->has_fixed_keys) {
        buf_str(out, self->options.keys);
        return true;
    }
    pthread_mutex_lock(&self->lock);
    bool is_known = self->has_metadata && !self->is_suspect;
    buf_str(out, buf_view(&self->keys_url));
    pthread_mutex_unlock(&self->lock);
    return is_known;
}

bay_err issuer_set_metadata(oauth_issuer *self, bay_str keys_url, bay_str introspection_url)
{
    pthread_mutex_lock(&self->lock);
    buf_clear(&self->keys_url);
    buf_clear(&self->introspection_url);
    buf_str(&self->keys_url, keys_url);
    buf_str(&self->introspection_url, introspection_url);
    bay_err err = self->keys_url.err != BAY_OK ? self->keys_url.err : self->introspection_url.err;
    self->has_metadata = err == BAY_OK;
    self->is_suspect = false;
    pthread_mutex_unlock(&self->lock);
    return err;
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

/* Under the lock: the link looks again, on its own loop. */
static void tell_link(oauth_issuer_link *link)
{
    if (link->is_told) {
        return;
    }
    atomic_fetch_add(&link->references, 1);
    link->is_told = loop_post_message(link->loop, &link->told) == BAY_OK;
    if (!link->is_told) { /* its loop is ending: nobody waits there any more */
        atomic_fetch_sub(&link->references, 1);
    }
}

static void tell_links(oauth_issuer *self)
{
    self->events++;
    LIST_EACH(at, &self->links)
    {
        tell_link(CONTAINER_OF(at, oauth_issuer_link, link));
    }
}

uint64_t issuer_wait(oauth_issuer *self, oauth_issuer_link *link)
{
    pthread_mutex_lock(&self->lock);
    uint64_t since = link->asked;
    if (since != self->events) {
        tell_link(link); /* it ended in between, on another loop */
    }
    pthread_mutex_unlock(&self->lock);
    return since;
}

/* After a failure without keys soon again, else in a minute. */
static uint64_t pause_ms(const oauth_issuer *self)
{
    uint64_t pause = OAUTH_KEYS_RETRY_MS;
    if (self->failures == 0 || self->keys != NULL) {
        return OAUTH_KEYS_REFRESH_MS;
    }
    for (uint32_t i = 1; i < self->failures && pause < OAUTH_KEYS_REFRESH_MS; i++) {
        pause *= 2;
    }
    return pause < OAUTH_KEYS_REFRESH_MS ? pause : OAUTH_KEYS_REFRESH_MS;
}

uint64_t issuer_fetched(oauth_issuer *self, const issuer_outcome *outcome, uint64_t now_ms)
{
    jose_keys *old = NULL;
    bool has_dropped = false;
    pthread_mutex_lock(&self->lock);
    self->fetcher = NULL;
    self->fetches++;
    self->failures = outcome->is_good ? 0 : self->failures + 1;
    self->is_suspect = self->is_suspect || !outcome->is_good;
    if (outcome->keys != NULL) {
        old = self->keys;
        has_dropped = old != NULL && !jose_keys_have_all(outcome->keys, old);
        self->keys = outcome->keys;
        self->fresh_until_ms = now_ms + outcome->fresh_ms;
        self->usable_until_ms = self->fresh_until_ms + OAUTH_KEYS_STALE_MS;
    }
    if (outcome->keys != NULL || !outcome->is_good) {
        self->next_fetch_ms = outcome->began_ms + pause_ms(self);
    }
    uint64_t next_ms = self->next_fetch_ms > now_ms ? self->next_fetch_ms - now_ms : 0;
    tell_links(self);
    pthread_mutex_unlock(&self->lock);
    jose_keys_free(old);
    if (has_dropped && self->options.dropped != NULL) {
        self->options.dropped(self->options.user, self);
    }
    return next_ms;
}

/* ---- links ----------------------------------------------------------------------------------- */

void issuer_join(oauth_issuer *self, oauth_issuer_link *link)
{
    pthread_mutex_lock(&self->lock);
    list_push(&self->links, &link->link);
    pthread_mutex_unlock(&self->lock);
}

void issuer_leave(oauth_issuer *self, oauth_issuer_link *link)
{
    pthread_mutex_lock(&self->lock);
    list_remove(&link->link);
    if (self->fetcher == link) {
        self->fetcher = NULL;
        tell_links(self); /* one of them may have to fetch */
    }
    pthread_mutex_unlock(&self->lock);
}
