#include "agents/card.h"

#include "auth/card_signature.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/build.h"

enum { SHOWN_SKILLS = 8, ETAG_BYTES = 24 };

typedef enum rendering { PURE, HYBRID, OLD, RENDERINGS } rendering;

struct agents_card {
    arena memory;
    json_val source; /* in `memory` */
    char *texts[RENDERINGS];
    size_t lens[RENDERINGS];
    char etags[RENDERINGS][ETAG_BYTES];
};

static void put_pair(json_writer *writer, bay_str key, bay_str value)
{
    json_key(writer, key);
    json_put_str(writer, value);
}

static void put_interface(json_writer *writer, bay_str name, const agents_public *public,
                          a2a_binding binding, a2a_version version)
{
    buf url;
    buf_init(&url, 16 << 10);
    if (binding == A2A_GRPC) {
        buf_str(&url, public->grpc);
    } else {
        buf_str(&url, public->base);
        buf_lit(&url, "/a2a/");
        buf_str(&url, name);
    }
    json_open_object(writer);
    put_pair(writer, STR("url"), buf_view(&url));
    put_pair(writer, STR("protocolBinding"), a2a_binding_names[binding]);
    if (binding == A2A_GRPC) {
        put_pair(writer, STR("tenant"), name); /* several agents stand behind that address */
    }
    put_pair(writer, STR("protocolVersion"), a2a_version_names[version]);
    json_close_object(writer);
    writer->out->err = writer->out->err == BAY_OK ? url.err : writer->out->err;
    buf_fini(&url);
}

static void put_interfaces(json_writer *writer, bay_str name, const agents_public *public)
{
    static const a2a_version versions[] = {A2A_1_0, A2A_0_3};
    json_key_lit(writer, "supportedInterfaces");
    json_open_array(writer);
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        for (a2a_binding binding = 0; binding < A2A_BINDINGS; binding++) {
            /* messages of 0.3 say no tenant: over gRPC no client but ours could say whom it means
             */
            if (binding != A2A_GRPC || (public->grpc.len > 0 && versions[i] == A2A_1_0)) {
                put_interface(writer, name, public, binding, versions[i]);
            }
        }
    }
    json_close_array(writer);
}

static void put_skills(json_writer *writer, json_val skills)
{
    static const bay_str hidden[] = {STR_INIT("securityRequirements")};
    json_key_lit(writer, "skills");
    json_open_array(writer);
    for (json_iter at = json_iter_of(skills); json_next(&at);) {
        json_open_object(writer);
        json_put_members(writer, at.value, hidden, ARRAY_LEN(hidden));
        json_close_object(writer);
    }
    json_close_array(writer);
}

/* ---- security -------------------------------------------------------------------------------- */

static void put_requirement(json_writer *writer, bay_str scheme, const agents_security *security,
                            bool has_scopes)
{
    json_open_object(writer);
    json_key_lit(writer, "schemes");
    json_open_object(writer);
    json_key(writer, scheme);
    json_open_object(writer);
    json_key_lit(writer, "list");
    json_open_array(writer);
    for (size_t i = 0; has_scopes && i < security->scope_count; i++) {
        json_put_str(writer, security->scopes[i]);
    }
    json_close_array(writer);
    json_close_object(writer);
    json_close_object(writer);
    json_close_object(writer);
}

/* "oauth", "oauth2", … */
static bay_str issuer_name(size_t index, char out[32])
{
    buf name = {.at = out, .cap = 32, .max = 32};
    buf_lit(&name, "oauth");
    if (index > 0) {
        buf_uint(&name, index + 1);
    }
    return buf_view(&name);
}

static void put_issuer(json_writer *writer, bay_str issuer)
{
    buf url;
    buf_init(&url, 16 << 10);
    buf_str(&url, issuer);
    buf_lit(&url, "/.well-known/openid-configuration");
    json_open_object(writer);
    json_key_lit(writer, "openIdConnectSecurityScheme");
    json_open_object(writer);
    put_pair(writer, STR("openIdConnectUrl"), buf_view(&url));
    json_close_object(writer);
    json_close_object(writer);
    writer->out->err = writer->out->err == BAY_OK ? url.err : writer->out->err;
    buf_fini(&url);
}

/* What the agent itself wants is the gateway's to bring; callers bring what the gateway wants. */
static void put_security(json_writer *writer, const agents_security *security)
{
    char name[32];
    if (security->issuer_count == 0 && !security->has_keys && !security->has_certificates) {
        return;
    }
    json_key_lit(writer, "securitySchemes");
    json_open_object(writer);
    for (size_t i = 0; i < security->issuer_count; i++) {
        json_key(writer, issuer_name(i, name));
        put_issuer(writer, security->issuers[i]);
    }
    if (security->has_keys) {
        json_key_lit(writer, "key");
        json_put_raw(writer, STR("{\"apiKeySecurityScheme\":{\"location\":\"header\",\"name\":"
                                 "\"X-API-Key\"}}"));
    }
    if (security->has_certificates) {
        json_key_lit(writer, "certificate");
        json_put_raw(writer, STR("{\"mtlsSecurityScheme\":{}}"));
    }
    json_close_object(writer);
    json_key_lit(writer, "securityRequirements");
    json_open_array(writer);
    for (size_t i = 0; i < security->issuer_count; i++) {
        put_requirement(writer, issuer_name(i, name), security, true);
    }
    if (security->has_keys) {
        put_requirement(writer, STR("key"), security, false);
    }
    if (security->has_certificates) {
        put_requirement(writer, STR("certificate"), security, false);
    }
    json_close_array(writer);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* What the agent can, but for what this reader of the card has nothing of. */
static void put_capabilities(json_writer *writer, json_val capabilities)
{
    static const bay_str push = STR_INIT("pushNotifications");
    json_key_lit(writer, "capabilities");
    json_open_object(writer);
    json_put_members(writer, capabilities, &push, 1);
    json_key(writer, push);
    json_put_bool(writer, false);
    json_close_object(writer);
}

void agents_card_rewrite(bay_str name, json_val card, const agents_public *public, bool is_told,
                         json_writer *writer)
{
    static const bay_str ours[] = {
        STR_INIT("supportedInterfaces"),  STR_INIT("signatures"), STR_INIT("securitySchemes"),
        STR_INIT("securityRequirements"), STR_INIT("skills"),     STR_INIT("capabilities"),
    };
    json_val capabilities = json_get(card, STR("capabilities"));
    bool is_hidden = !is_told && json_true(json_get(capabilities, STR("pushNotifications")));
    json_open_object(writer);
    json_put_members(writer, card, ours, ARRAY_LEN(ours) - (is_hidden ? 0 : 1));
    if (is_hidden) {
        put_capabilities(writer, capabilities);
    }
    put_interfaces(writer, name, public);
    put_security(writer, &public->security);
    put_skills(writer, json_get(card, STR("skills")));
    json_close_object(writer);
}

/* Signs `plain` into `out`; a copy where there is no key, or where no verifier would agree. */
static bay_err sign(bay_str name, json_val plain, const agents_public *public, buf *out)
{
    bay_err err = BAY_ERR_UNSUPPORTED;
    if (public->key != NULL) {
        bay_diag diag = {0};
        err = card_sign(plain, public->key, public->jku, out, &diag);
        if (err == BAY_ERR_NOMEM) {
            return err;
        }
        if (err != BAY_OK) {
            LOG(LOG_WARN, "agents", "the card of \"%.*s\" goes out without a signature: %s",
                BAY_STR(name), diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        }
    }
    if (err != BAY_OK) {
        buf_clear(out);
        buf_str(out, json_raw(plain));
    }
    return out->err;
}

/* Of what is signed: signatures differ from one time to the next, the card does not. */
static void write_etag(bay_str plain, bool is_signed, char out[ETAG_BYTES])
{
    buf text = {.at = out, .cap = ETAG_BYTES, .max = ETAG_BYTES};
    uint64_t hash = str_hash(plain, 0xa2a);
    buf_printf(&text, is_signed ? "W/\"%016llx\"" : "\"%016llx\"", (unsigned long long)hash);
}

static bay_err render(agents_card *self, bay_str name, const agents_public *public, rendering which,
                      bool is_told)
{
    static const a2a_card_form forms[RENDERINGS] = {
        [PURE] = A2A_CARD_1_0, [HYBRID] = A2A_CARD_HYBRID, [OLD] = A2A_CARD_0_3};
    arena memory;
    json_builder rewritten;
    json_val plain;
    buf shown;
    arena_init(&memory, 64 << 20);
    buf_init(&shown, AGENTS_RENDERED_BYTES);
    agents_card_rewrite(name, self->source, public, is_told,
                        json_builder_init(&rewritten, &memory, AGENTS_RENDERED_BYTES));
    bay_err err = json_builder_end(&rewritten, &plain);
    err = err == BAY_OK
              ? a2a_card_in_form(forms[which], plain, AGENTS_RENDERED_BYTES, &memory, &plain)
              : err;
    err = err == BAY_OK ? sign(name, plain, public, &shown) : err;
    if (err == BAY_OK) {
        write_etag(json_raw(plain), public->key != NULL, self->etags[which]);
        self->texts[which] = buf_take(&shown, &self->lens[which]);
    }
    buf_fini(&shown);
    arena_fini(&memory);
    return err;
}

bay_err agents_card_new(bay_str name, json_val source, const agents_public *public, unsigned told,
                        agents_card **out)
{
    static const unsigned readers[RENDERINGS] = {[PURE] = AGENTS_WEBHOOKS_NOW,
                                                 [HYBRID] = AGENTS_WEBHOOKS_ALL,
                                                 [OLD] = AGENTS_WEBHOOKS_OLDER};
    agents_card *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    arena_init(&self->memory, 64 << 20);
    bay_err err = json_clone_in(source, &self->memory, &self->source);
    for (rendering i = 0; err == BAY_OK && i < RENDERINGS; i++) {
        err = render(self, name, public, i, (readers[i] & ~told) == 0);
    }
    if (err != BAY_OK) {
        agents_card_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void agents_card_free(agents_card *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < RENDERINGS; i++) {
        mem_free(self->texts[i]);
    }
    arena_fini(&self->memory);
    mem_free(self);
}

json_val agents_card_source(const agents_card *self)
{
    return self->source;
}

void agents_card_show(const agents_card *self, a2a_http_agent *out)
{
    out->card_1_0 = (bay_str){self->texts[PURE], self->lens[PURE]};
    out->card_hybrid = (bay_str){self->texts[HYBRID], self->lens[HYBRID]};
    out->card_0_3 = (bay_str){self->texts[OLD], self->lens[OLD]};
    out->etag_1_0 = str_of(self->etags[PURE]);
    out->etag_hybrid = str_of(self->etags[HYBRID]);
    out->etag_0_3 = str_of(self->etags[OLD]);
}

json_val agents_card_skill(const agents_card *self, bay_str id)
{
    json_iter at = json_iter_of(json_get(agents_card_source(self), STR("skills")));
    while (json_next(&at)) {
        if (json_str_eq(json_get(at.value, STR("id")), id)) {
            return at.value;
        }
    }
    return JSON_NONE;
}

void agents_card_write_skills(const agents_card *self, buf *out)
{
    size_t count = 0;
    json_iter at = json_iter_of(json_get(agents_card_source(self), STR("skills")));
    while (json_next(&at) && count++ < SHOWN_SKILLS) {
        bay_str id;
        if (json_str_plain(json_get(at.value, STR("id")), &id)) {
            buf_str(out, count > 1 ? STR(", ") : STR(""));
            buf_str(out, id);
        }
    }
    if (count > SHOWN_SKILLS) {
        buf_lit(out, " …");
    }
}
