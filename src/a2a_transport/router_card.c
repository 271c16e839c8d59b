/* Agent cards: the form that a request gets, and conditional requests. */
#include "a2a_transport/router_internal.h"
#include "base/str.h"

/* One card as it is served. */
typedef struct served_card {
    bay_str json;
    bay_str etag;
} served_card;

/* A request that names a version gets the card in it; otherwise the agent's setting decides. */
static served_card current_card(const http_exchange *exchange, const a2a_http_agent *agent)
{
    bay_str text = a2a_http_router_version(exchange);
    bool is_hybrid = text.len == 0 ? agent->is_hybrid_default : a2a_version_of(text) < A2A_1_0;
    return is_hybrid ? (served_card){agent->card_hybrid, agent->etag_hybrid}
                     : (served_card){agent->card_1_0, agent->etag_1_0};
}

static bay_str opaque_tag(bay_str tag)
{
    tag = str_trim(tag);
    return str_starts(tag, STR("W/")) ? str_from(tag, 2) : tag;
}

/* RFC 9110 section 13.1.2: weak comparison, or any */
static bool has_it_already(const http_exchange *exchange, bay_str etag)
{
    bay_str tags = http_exchange_field(exchange, STR("If-None-Match"));
    if (str_eq(str_trim(tags), STR("*"))) {
        return true;
    }
    while (tags.len > 0) {
        size_t comma = str_find(tags, ',');
        if (etag.len > 0 && str_eq(opaque_tag(str_head(tags, comma)), opaque_tag(etag))) {
            return true;
        }
        tags = str_from(tags, comma + 1);
    }
    return false;
}

static void reply_card(http_exchange *exchange, served_card card, uint32_t max_age_s)
{
    char age[48];
    buf text = {.at = age, .cap = sizeof(age), .max = sizeof(age)};
    buf_lit(&text, "public, max-age=");
    buf_uint(&text, max_age_s);
    http_field fields[HTTP_REPLY_FIELDS] = {{STR("Cache-Control"), buf_view(&text)},
                                            {STR("Vary"), STR("A2A-Version, Origin")}};
    size_t count = 2;
    if (card.etag.len > 0) {
        fields[count++] = (http_field){STR("ETag"), card.etag};
    }
    bool is_known = has_it_already(exchange, card.etag);
    if (!is_known) {
        fields[count++] = (http_field){STR("Content-Type"), STR("application/json")};
    }
    count = http_reply_cors(exchange, fields, count);
    http_exchange_reply(exchange, is_known ? 304 : 200, fields, count,
                        is_known ? STR("") : card.json);
}

bool a2a_http_router_serve_card(http_exchange *exchange, const a2a_http_agent *agent, bay_str path)
{
    bool is_current = str_eq(path, STR("/.well-known/agent-card.json"));
    if (!is_current && !str_eq(path, STR("/.well-known/agent.json"))) {
        return false;
    }
    bay_str verb = http_exchange_method(exchange);
    if (!str_eq(verb, STR("GET")) && !str_eq(verb, STR("HEAD"))) {
        a2a_http_router_reply_error(exchange, 405, STR("GET, HEAD, OPTIONS"),
                                    "cards are read by GET");
        return true;
    }
    served_card card = is_current ? current_card(exchange, agent)
                                  : (served_card){agent->card_0_3, agent->etag_0_3};
    if (card.json.len == 0) {
        a2a_http_router_reply_error(exchange, 404, STR(""),
                                    "this agent has no card of this version");
        return true;
    }
    reply_card(exchange, card, agent->card_max_age_s);
    return true;
}
