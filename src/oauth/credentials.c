/* Credentials out of a request: one, or none. What could be read in two ways is no credential. */
#include "base/str.h"
#include "oauth/guard_parts.h"
#include "wire/header.h"

/* RFC 6750 section 2.3: URLs are logged, by proxies as well. */
static bool has_token_in_query(bay_str query)
{
    static const bay_str name = STR_INIT("access_token");
    while (query.len > 0) {
        bay_str pair = str_head(query, str_find(query, '&'));
        query = str_from(query, pair.len + 1);
        if (str_eq_nocase(str_head(pair, str_find(pair, '=')), name)) {
            return true;
        }
    }
    return false;
}

/* The one field of that name; two are none, and said so. */
static bay_str one_field(http_exchange *exchange, bay_str name, credentials *out)
{
    size_t count = http_exchange_field_count(exchange, name);
    if (count > 1) {
        out->fault = "two credentials were sent where one is expected";
    }
    return count == 1 ? http_exchange_field(exchange, name) : (bay_str){NULL, 0};
}

static void take(const oauth_guard *guard, bay_str text, credentials *out)
{
    if (out->kind != CREDENTIAL_NONE) {
        out->fault = "two credentials were sent where one is expected";
        return;
    }
    out->text = text;
    out->kind =
        guard->has_keys && api_key_id(text, &out->key_id) ? CREDENTIAL_KEY : CREDENTIAL_TOKEN;
}

/* RFC 9110 section 11.4; schemes of any case, others are none of ours. */
static void read_authorization(const oauth_guard *guard, bay_str value, credentials *out)
{
    size_t space = str_find(value, ' ');
    bay_str scheme = str_head(value, space);
    bay_str rest = str_trim(str_from(value, space));
    out->is_dpop = guard->dpop != OAUTH_DPOP_OFF && str_eq_nocase(scheme, STR("DPoP"));
    if (!out->is_dpop && !str_eq_nocase(scheme, STR("Bearer"))) {
        return;
    }
    if (!header_is_token68(rest)) {
        out->fault = "the Authorization field holds no token";
        return;
    }
    take(guard, rest, out);
}

/* What a proxy that is trusted says; of anybody else the field is not read. */
static void read_fields_of_issuers(const oauth_guard *guard, http_exchange *exchange,
                                   const oauth_place *place, credentials *out)
{
    for (size_t i = 0; i < guard->issuer_count && place->is_by_proxy; i++) {
        bay_str field = guard->issuers[i].field;
        bay_str value = field.len > 0 ? one_field(exchange, field, out) : (bay_str){NULL, 0};
        if (value.at != NULL) {
            out->by_field = i;
            take(guard, str_trim(value), out);
        }
    }
}

void credentials_read(const oauth_guard *guard, http_exchange *exchange, const oauth_place *place,
                      credentials *out)
{
    *out = (credentials){.kind = CREDENTIAL_NONE, .by_field = guard->issuer_count};
    bay_str authorization = one_field(exchange, STR("Authorization"), out);
    if (has_token_in_query(http_exchange_query(exchange))) {
        out->fault = "a token was sent in the URL, where it is logged: use the Authorization field";
        return;
    }
    if (authorization.at != NULL) {
        read_authorization(guard, authorization, out);
    }
    if (guard->has_keys) {
        bay_str key = one_field(exchange, STR("X-API-Key"), out);
        if (key.at != NULL) {
            take(guard, str_trim(key), out);
        }
    }
    read_fields_of_issuers(guard, exchange, place, out);
    if (out->is_dpop && http_exchange_field_count(exchange, STR("DPoP")) == 1) {
        out->proof = http_exchange_field(exchange, STR("DPoP"));
    }
    if (out->kind == CREDENTIAL_NONE && out->fault == NULL && guard->has_certificates) {
        out->text = http_exchange_client_certificate(exchange, TLS_SHA256);
        out->kind = out->text.len > 0 ? CREDENTIAL_CERTIFICATE : CREDENTIAL_NONE;
    }
}
