/* Addresses and tokens of the gateway's own webhooks: sealed, opened, and put in the place of a
 * caller's. What is sealed is plain bytes, so that opened secrets lie in one place, which is wiped:
 *     address: two forms (1 each), url
 *     token: texts, each behind its length (4, big endian) */
#include "agents/webhook.h"

#include "a2a/push.h"
#include "base/check.h"

enum {
    BOUND_BYTES = 4096, /* what a value is bound to: its kind, the agent's name, an address */
    PLAIN_BYTES = 64 << 10,
    SEALED_BYTES = 128 << 10,
    DAY_MS = 86400 * 1000,
    FORM_BYTES = 2,
    LENGTH_BYTES = 4,
    TOKEN_TEXTS = 7,
    SCRATCH_GROWTH = 64,
    SCRATCH_SPARE = 64 << 10,
};

void agents_webhook_path(bay_str agent, buf *out)
{
    buf_lit(out, "/a2a/");
    buf_str(out, agent);
    buf_lit(out, "/push/");
}

/* Names of agents have no NUL. */
static void write_bound(bay_str kind, bay_str agent, bay_str sealed, buf *out)
{
    buf_str(out, kind);
    buf_char(out, '\0');
    buf_str(out, agent);
    buf_char(out, '\0');
    buf_str(out, sealed);
}

static const bay_str url_kind = STR_INIT("push-url");
static const bay_str token_kind = STR_INIT("push-token");

/* ---- sealing --------------------------------------------------------------------------------- */

static bay_err seal(const seal_ring *ring, bay_str kind, bay_str agent, bay_str sealed, buf *plain,
                    uint64_t expires_at_ms, buf *out)
{
    buf bound;
    buf_init(&bound, BOUND_BYTES);
    write_bound(kind, agent, sealed, &bound);
    bay_err err = plain->err != BAY_OK ? plain->err : bound.err;
    if (err == BAY_OK) {
        err = seal_value(ring, buf_view(plain), buf_view(&bound), expires_at_ms, out);
    }
    buf_fini(&bound);
    return err;
}

static void write_url(const agents_webhook *hook, buf *out)
{
    buf_char(out, (char)hook->caller_form);
    buf_char(out, (char)hook->agent_form);
    buf_str(out, hook->url);
}

/* The texts of a token, in their order. */
static void token_texts(agents_webhook *hook, bay_str *out[TOKEN_TEXTS])
{
    bay_str *const texts[TOKEN_TEXTS] = {&hook->token,    &hook->scheme,  &hook->credentials,
                                         &hook->id,       &hook->task_id, &hook->client_id,
                                         &hook->principal};
    for (size_t i = 0; i < TOKEN_TEXTS; i++) {
        out[i] = texts[i];
    }
}

static void write_token(const agents_webhook *hook, buf *out)
{
    agents_webhook copy = *hook;
    bay_str *texts[TOKEN_TEXTS];
    token_texts(&copy, texts);
    for (size_t i = 0; i < TOKEN_TEXTS; i++) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            buf_char(out, (char)(texts[i]->len >> shift));
        }
        buf_str(out, *texts[i]);
    }
}

static bool read_text(bay_str *rest, bay_str *out)
{
    size_t len = 0;
    if (rest->len < LENGTH_BYTES) {
        return false;
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        len = len << 8 | (unsigned char)rest->at[i];
    }
    *rest = str_from(*rest, LENGTH_BYTES);
    if (len > rest->len) {
        return false;
    }
    *out = str_head(*rest, len);
    *rest = str_from(*rest, len);
    return true;
}

bay_err agents_webhook_seal(const seal_ring *ring, bay_str base, bay_str agent,
                            const agents_webhook *hook, uint64_t now_ms, buf *out_url,
                            buf *out_token, a2a_fault *fault)
{
    uint64_t until = now_ms + (uint64_t)AGENTS_WEBHOOK_DAYS * DAY_MS;
    buf plain;
    buf_init_secret(&plain, PLAIN_BYTES);
    write_url(hook, &plain);
    buf_str(out_url, base);
    agents_webhook_path(agent, out_url);
    size_t prefix = out_url->len;
    bay_err err = out_url->err;
    err = err == BAY_OK ? seal(ring, url_kind, agent, STR(""), &plain, until, out_url) : err;
    buf_clear(&plain);
    write_token(hook, &plain);
    if (err == BAY_OK) {
        bay_str sealed = str_from(buf_view(out_url), prefix);
        err = seal(ring, token_kind, agent, sealed, &plain, until, out_token);
    }
    buf_fini(&plain);
    if (err == BAY_ERR_LIMIT || (err == BAY_OK && (out_url->len > A2A_PUSH_URL_BYTES ||
                                                   out_token->len > A2A_PUSH_CREDENTIAL_BYTES))) {
        bool is_url = out_url->len > A2A_PUSH_URL_BYTES;
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS, "%s",
                             is_url ? "url: too long for a webhook that is told by this gateway"
                                    : "token, authentication: too long for a webhook that is told "
                                      "by this gateway");
    }
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bay_err unseal(const seal_ring *ring, bay_str kind, bay_str agent, bay_str address,
                      bay_str sealed, uint64_t now_ms, buf *plain)
{
    buf bound;
    buf_init(&bound, BOUND_BYTES);
    write_bound(kind, agent, address, &bound);
    bay_err err = ring == NULL ? BAY_ERR_DENIED : bound.err;
    if (err == BAY_OK) {
        err = seal_open(ring, sealed, buf_view(&bound), now_ms, plain);
    }
    buf_fini(&bound);
    return err == BAY_ERR_LIMIT ? BAY_ERR_DENIED : err;
}

bay_err agents_webhook_open_url(const seal_ring *ring, bay_str agent, bay_str sealed,
                                uint64_t now_ms, buf *plain, agents_webhook *out)
{
    bay_err err = sealed.len <= A2A_PUSH_URL_BYTES ? BAY_OK : BAY_ERR_DENIED;
    if (err == BAY_OK) {
        err = unseal(ring, url_kind, agent, STR(""), sealed, now_ms, plain);
    }
    if (err != BAY_OK) {
        return err;
    }
    bay_str text = buf_view(plain);
    if (text.len < FORM_BYTES || (unsigned char)text.at[0] >= A2A_FORMS ||
        (unsigned char)text.at[1] >= A2A_FORMS) {
        return BAY_ERR_DENIED;
    }
    out->caller_form = (a2a_form)text.at[0];
    out->agent_form = (a2a_form)text.at[1];
    out->url = str_from(text, FORM_BYTES);
    return BAY_OK;
}

bay_err agents_webhook_open_token(const seal_ring *ring, bay_str agent, bay_str sealed,
                                  bay_str token, uint64_t now_ms, buf *plain, agents_webhook *out)
{
    bay_str *texts[TOKEN_TEXTS];
    bay_err err = token.len <= A2A_PUSH_CREDENTIAL_BYTES ? BAY_OK : BAY_ERR_DENIED;
    if (err == BAY_OK) {
        err = unseal(ring, token_kind, agent, sealed, token, now_ms, plain);
    }
    if (err != BAY_OK) {
        return err;
    }
    bay_str rest = buf_view(plain);
    token_texts(out, texts);
    for (size_t i = 0; i < TOKEN_TEXTS; i++) {
        if (!read_text(&rest, texts[i])) {
            return BAY_ERR_DENIED;
        }
    }
    return BAY_OK;
}

/* ---- configurations -------------------------------------------------------------------------- */

void agents_webhook_write(json_val config, bay_str url, bay_str token, json_writer *out)
{
    static const bay_str ours[] = {STR_INIT("url"), STR_INIT("token"), STR_INIT("authentication"),
                                   STR_INIT("tenant")};
    json_open_object(out);
    json_put_members(out, config, ours, ARRAY_LEN(ours));
    json_key(out, ours[0]);
    json_put_str(out, url);
    json_key(out, ours[1]);
    json_put_str(out, token);
    json_close_object(out);
}

/* Who shows: what all configurations of an answer have in common. */
typedef struct showing {
    const seal_ring *ring;
    bay_str agent;
    bay_str prefix; /* of addresses that are ours */
    uint64_t now_ms;
    arena *memory;
    bay_err err;
} showing;

/* What is sealed in its address; empty: it is none of ours. */
static bay_str sealed_of(showing *self, json_val config)
{
    bay_str url = {"", 0};
    json_val value = json_get(config, STR("url"));
    bay_err err = json_is(value, JSON_STRING) ? json_str(value, self->memory, &url) : BAY_OK;
    if (err == BAY_ERR_NOMEM) {
        self->err = err;
    }
    return err == BAY_OK && str_starts(url, self->prefix) ? str_from(url, self->prefix.len)
                                                          : (bay_str){"", 0};
}

static void put_login(const agents_webhook *hook, json_writer *writer)
{
    if (hook->token.len > 0) {
        json_key_lit(writer, "token");
        json_put_str(writer, hook->token);
    }
    if (hook->scheme.len > 0) {
        json_key_lit(writer, "authentication");
        json_open_object(writer);
        json_key_lit(writer, "scheme");
        json_put_str(writer, hook->scheme);
        if (hook->credentials.len > 0) {
            json_key_lit(writer, "credentials");
            json_put_str(writer, hook->credentials);
        }
        json_close_object(writer);
    }
}

static void put_config(showing *self, json_val config, bay_str sealed, json_writer *writer)
{
    static const bay_str theirs[] = {STR_INIT("url"), STR_INIT("token"),
                                     STR_INIT("authentication")};
    agents_webhook hook = {.url = str_head(self->prefix, self->prefix.len - 1)};
    bay_str token = {"", 0};
    json_val given = json_get(config, theirs[1]);
    buf opened[2];
    buf_init_secret(&opened[0], PLAIN_BYTES);
    buf_init_secret(&opened[1], PLAIN_BYTES);
    bay_err err =
        agents_webhook_open_url(self->ring, self->agent, sealed, self->now_ms, &opened[0], &hook);
    if (err == BAY_OK && json_is(given, JSON_STRING)) {
        /* an agent may keep a token to itself; then it is not shown, as if it were the caller's */
        err = json_str(given, self->memory, &token);
        err = err == BAY_OK ? agents_webhook_open_token(self->ring, self->agent, sealed, token,
                                                        self->now_ms, &opened[1], &hook)
                            : err;
    }
    json_open_object(writer);
    json_put_members(writer, config, theirs, ARRAY_LEN(theirs));
    json_key(writer, theirs[0]);
    json_put_str(writer, hook.url);
    if (err == BAY_OK) {
        put_login(&hook, writer);
    }
    json_close_object(writer);
    buf_fini(&opened[0]);
    buf_fini(&opened[1]);
    self->err = err == BAY_ERR_NOMEM ? err : self->err;
}

static void put_configs(showing *self, json_val answer, json_val configs, json_writer *writer)
{
    static const bay_str list = STR_INIT("configs");
    json_open_object(writer);
    json_key(writer, list);
    json_open_array(writer);
    for (json_iter at = json_iter_of(configs); json_next(&at);) {
        bay_str sealed = sealed_of(self, at.value);
        if (sealed.len > 0) {
            put_config(self, at.value, sealed, writer);
        } else {
            json_put_val(writer, at.value);
        }
    }
    json_close_array(writer);
    json_put_members(writer, answer, &list, 1);
    json_close_object(writer);
}

static bool has_ours(showing *self, json_val configs)
{
    for (json_iter at = json_iter_of(configs); json_next(&at);) {
        if (sealed_of(self, at.value).len > 0) {
            return true;
        }
    }
    return false;
}

bay_err agents_webhook_show(const seal_ring *ring, bay_str base, bay_str agent, json_val answer,
                            uint64_t now_ms, json_writer *out)
{
    arena memory;
    buf prefix;
    arena_init(&memory, (size_t)json_raw(answer).len * SCRATCH_GROWTH + SCRATCH_SPARE);
    buf_init(&prefix, BOUND_BYTES);
    buf_str(&prefix, base);
    agents_webhook_path(agent, &prefix);
    showing self = {ring, agent, buf_view(&prefix), now_ms, &memory, prefix.err};
    json_val configs = json_get(answer, STR("configs"));
    bay_str sealed = sealed_of(&self, answer);
    if (self.err == BAY_OK && json_is(configs, JSON_ARRAY) && has_ours(&self, configs)) {
        put_configs(&self, answer, configs, out);
    } else if (self.err == BAY_OK && sealed.len > 0) {
        put_config(&self, answer, sealed, out);
    }
    buf_fini(&prefix);
    arena_fini(&memory);
    return self.err != BAY_OK ? self.err : out->out->err;
}
