#include "agents/card.h"

#include "auth/card_signature.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "json/writer.h"

enum { SHOWN_SKILLS = 8, ETAG_BYTES = 24 };

typedef enum rendering { PURE, HYBRID, OLD, RENDERINGS } rendering;

struct agents_card {
    arena memory;
    json_doc source;
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

bay_err agents_card_rewrite(bay_str name, json_val card, const agents_public *public, bool is_told,
                            buf *out)
{
    static const bay_str ours[] = {
        STR_INIT("supportedInterfaces"),  STR_INIT("signatures"), STR_INIT("securitySchemes"),
        STR_INIT("securityRequirements"), STR_INIT("skills"),     STR_INIT("capabilities"),
    };
    json_writer writer;
    json_val capabilities = json_get(card, STR("capabilities"));
    bool is_hidden = !is_told && json_true(json_get(capabilities, STR("pushNotifications")));
    json_writer_init(&writer, out);
    json_open_object(&writer);
    json_put_members(&writer, card, ours, ARRAY_LEN(ours) - (is_hidden ? 0 : 1));
    if (is_hidden) {
        put_capabilities(&writer, capabilities);
    }
    put_interfaces(&writer, name, public);
    put_skills(&writer, json_get(card, STR("skills")));
    json_close_object(&writer);
    return out->err;
}

/* Signs `plain` into `out`; a copy where there is no key, or where no verifier would agree. */
static bay_err sign(bay_str name, bay_str plain, const agents_public *public, buf *out)
{
    bay_err err = BAY_UNSUPPORTED;
    if (public->key != NULL) {
        arena memory;
        json_doc doc;
        bay_diag diag = {0};
        arena_init(&memory, 64 << 20);
        err = json_parse(&doc, plain, &a2a_json_limits, &memory, NULL);
        if (err == BAY_OK) {
            err = card_sign(json_root(&doc), public->key, public->jku, out, &diag);
        }
        arena_fini(&memory);
        if (err == BAY_NOMEM) {
            return err;
        }
        if (err != BAY_OK) {
            LOG(LOG_WARN, "agents", "the card of \"%.*s\" goes out without a signature: %s",
                BAY_STR(name), diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        }
    }
    if (err != BAY_OK) {
        buf_clear(out);
        buf_str(out, plain);
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

static bay_err write_rendering(a2a_card_form form, bay_str rewritten, buf *out)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, 64 << 20);
    bay_err err = json_parse(&doc, rewritten, &a2a_json_limits, &memory, NULL);
    err = err == BAY_OK ? a2a_card_write(form, json_root(&doc), out) : err;
    arena_fini(&memory);
    return err;
}

static bay_err render(agents_card *self, bay_str name, const agents_public *public, rendering which,
                      bool is_told)
{
    static const a2a_card_form forms[RENDERINGS] = {
        [PURE] = A2A_CARD_1_0, [HYBRID] = A2A_CARD_HYBRID, [OLD] = A2A_CARD_0_3};
    buf rewritten, plain, shown;
    buf_init(&rewritten, AGENTS_RENDERED_BYTES);
    buf_init(&plain, AGENTS_RENDERED_BYTES);
    buf_init(&shown, AGENTS_RENDERED_BYTES);
    bay_err err = agents_card_rewrite(name, json_root(&self->source), public, is_told, &rewritten);
    err = err == BAY_OK ? write_rendering(forms[which], buf_view(&rewritten), &plain) : err;
    err = err == BAY_OK ? sign(name, buf_view(&plain), public, &shown) : err;
    if (err == BAY_OK) {
        write_etag(buf_view(&plain), public->key != NULL, self->etags[which]);
        self->texts[which] = buf_take(&shown, &self->lens[which]);
    }
    buf_fini(&rewritten);
    buf_fini(&plain);
    buf_fini(&shown);
    return err;
}

bay_err agents_card_new(bay_str name, bay_str text, const agents_public *public, unsigned told,
                        agents_card **out)
{
    static const unsigned readers[RENDERINGS] = {
        [PURE] = AGENTS_TOLD_NOW, [HYBRID] = AGENTS_TOLD_ALL, [OLD] = AGENTS_TOLD_OLDER};
    agents_card *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    arena_init(&self->memory, 64 << 20);
    bay_str kept;
    bay_err err = arena_dup(&self->memory, text, &kept);
    if (err == BAY_OK) {
        err = json_parse(&self->source, kept, &a2a_json_limits, &self->memory, NULL);
    }
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
    return json_root(&self->source);
}

void agents_card_show(const agents_card *self, a2a_face_agent *out)
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
