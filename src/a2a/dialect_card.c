/* Cards: reads any version; writes pure 1.0, pure 0.x or both in one.
 *
 * A card of 0.x has one main address and others beside it, all in its own version; 1.0 has a list,
 * each with a version. Signatures belong to one form of a card and stay with it. What only 0.x has
 * (stateTransitionHistory) is an extension in 1.0, so that it can be converted back. Source: A2A
 * 1.0.1 sections 4.4 and 8; 0.3.0 section 5.5; 0.1.0 section 5.5. */
#include "a2a/dialect_walk.h"
#include "json/build.h"

static const bay_str history_extension = STR_INIT("urn:patchbay:state-transition-history");

/* ---- security ----------------------------------------------------------------------------------
 */

typedef struct scheme_kind {
    bay_str type; /* in 0.x */
    bay_str ours;
} scheme_kind;

static const scheme_kind scheme_kinds[] = {
    {STR_INIT("apiKey"), STR_INIT("apiKeySecurityScheme")},
    {STR_INIT("http"), STR_INIT("httpAuthSecurityScheme")},
    {STR_INIT("oauth2"), STR_INIT("oauth2SecurityScheme")},
    {STR_INIT("openIdConnect"), STR_INIT("openIdConnectSecurityScheme")},
    {STR_INIT("mutualTLS"), STR_INIT("mtlsSecurityScheme")},
};
enum { SCHEME_KINDS = sizeof(scheme_kinds) / sizeof(scheme_kinds[0]) };

/* 1.0 has one flow per scheme: the first of these that exists. */
static void read_flows(dialect *self, json_val value)
{
    static const bay_str names[] = {STR_INIT("authorizationCode"), STR_INIT("clientCredentials"),
                                    STR_INIT("deviceCode"), STR_INIT("implicit"),
                                    STR_INIT("password")};
    json_open_object(&self->to);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (dialect_is_there(json_get(value, names[i]))) {
            dialect_copy(self, value, names[i], names[i]);
            break;
        }
    }
    dialect_close_object(self);
}

static const dialect_row scheme_rows[] = {
    {STR_INIT("description"), STR_INIT("description"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("in"), STR_INIT("location"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("name"), STR_INIT("name"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("scheme"), STR_INIT("scheme"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("bearerFormat"), STR_INIT("bearerFormat"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("flows"), STR_INIT("flows"), JSON_OBJECT, 0, read_flows, NULL},
    {STR_INIT("oauth2MetadataUrl"), STR_INIT("oauth2MetadataUrl"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("openIdConnectUrl"), STR_INIT("openIdConnectUrl"), JSON_STRING, 0, NULL, NULL},
};
static const dialect_shape scheme_shape = DIALECT_SHAPE(scheme_rows);

/* The member's decoded name; NULL `at`: out of memory. */
static bay_str name_of(dialect *self, json_val key)
{
    bay_str name = {NULL, 0};
    (void)dialect_text(self, key, &name);
    return name;
}

/* A scheme of an unknown type is omitted: nobody could use it. */
static void read_schemes(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_iter iter = json_iter_of(value);
    while (self->err == BAY_OK && json_next(&iter)) {
        json_val type = json_get(iter.value, STR("type"));
        for (size_t i = 0; i < SCHEME_KINDS; i++) {
            if (!json_str_eq(type, scheme_kinds[i].type)) {
                continue;
            }
            json_key(&self->to, name_of(self, iter.key));
            json_open_object(&self->to);
            json_key(&self->to, scheme_kinds[i].ours);
            dialect_read_object(self, &scheme_shape, iter.value);
            dialect_close_object(self);
        }
    }
    dialect_close_object(self);
}

/* `is_both`: in addition to the members of 1.0. */
static void write_schemes(dialect *self, json_val value, bool is_both)
{
    json_open_object(&self->to);
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        json_key(&self->to, name_of(self, iter.key));
        json_open_object(&self->to);
        for (size_t i = 0; i < SCHEME_KINDS; i++) {
            json_val scheme = json_get(iter.value, scheme_kinds[i].ours);
            if (!dialect_is_there(scheme)) {
                continue;
            }
            json_key_lit(&self->to, "type");
            json_put_str(&self->to, scheme_kinds[i].type);
            dialect_write_members(self, &scheme_shape, scheme);
        }
        if (is_both) {
            json_put_members(&self->to, iter.value, NULL, 0);
        }
        dialect_close_object(self);
    }
    dialect_close_object(self);
}

static void read_requirement(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "schemes");
    json_open_object(&self->to);
    json_iter iter = json_iter_of(value);
    while (self->err == BAY_OK && json_next(&iter)) {
        json_key(&self->to, name_of(self, iter.key));
        json_open_object(&self->to);
        json_key_lit(&self->to, "list");
        json_put_val(&self->to, iter.value);
        dialect_close_object(self);
    }
    dialect_close_object(self);
    dialect_close_object(self);
}

static void write_requirement(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_iter iter = json_iter_of(json_get(value, STR("schemes")));
    while (json_next(&iter)) {
        json_val list = json_get(iter.value, STR("list"));
        json_key(&self->to, name_of(self, iter.key));
        if (json_is(list, JSON_ARRAY)) {
            json_put_val(&self->to, list);
        } else {
            json_open_array(&self->to);
            dialect_close_array(self);
        }
    }
    dialect_close_object(self);
}

DIALECT_ARRAY(requirements, requirement)

/* 0.1 only names schemes: {"authentication":{"schemes":["Bearer"]}}. Any one of them is sufficient.
 */
static void read_authentication(dialect *self, json_val schemes)
{
    json_key_lit(&self->to, "securitySchemes");
    json_open_object(&self->to);
    json_iter iter = json_iter_of(schemes);
    while (self->err == BAY_OK && json_next(&iter)) {
        json_key(&self->to, name_of(self, iter.value));
        json_open_object(&self->to);
        json_key_lit(&self->to, "httpAuthSecurityScheme");
        json_open_object(&self->to);
        json_key_lit(&self->to, "scheme");
        json_put_val(&self->to, iter.value);
        dialect_close_object(self);
        dialect_close_object(self);
    }
    dialect_close_object(self);
    json_key_lit(&self->to, "securityRequirements");
    json_open_array(&self->to);
    iter = json_iter_of(schemes);
    while (self->err == BAY_OK && json_next(&iter)) {
        json_open_object(&self->to);
        json_key_lit(&self->to, "schemes");
        json_open_object(&self->to);
        json_key(&self->to, name_of(self, iter.value));
        dialect_nothing(self, iter.value);
        dialect_close_object(self);
        dialect_close_object(self);
    }
    dialect_close_array(self);
}

/* ---- skills, capabilities ----------------------------------------------------------------------
 */

#define AS_IS(name)                                                                                \
    {                                                                                              \
        STR_INIT(name), STR_INIT(name), JSON_MISSING, 0, NULL, NULL                                \
    }

static const dialect_row skill_rows[] = {
    AS_IS("id"),
    AS_IS("name"),
    AS_IS("description"),
    AS_IS("tags"),
    AS_IS("examples"),
    AS_IS("inputModes"),
    AS_IS("outputModes"),
    {STR_INIT("security"), STR_INIT("securityRequirements"), JSON_ARRAY, 0, read_requirements,
     write_requirements},
};
/* Package a2a.v1 has requirements in the form of 1.0. */
static const dialect_row skill_rows_v1[] = {
    AS_IS("id"),
    AS_IS("name"),
    AS_IS("description"),
    AS_IS("tags"),
    AS_IS("examples"),
    AS_IS("inputModes"),
    AS_IS("outputModes"),
    {STR_INIT("security"), STR_INIT("securityRequirements"), JSON_ARRAY, 0, NULL, NULL},
};
static const dialect_shape skill_shape = DIALECT_SHAPE(skill_rows);
static const dialect_shape skill_shape_v1 = DIALECT_SHAPE(skill_rows_v1);

static bool is_v1(const dialect *self)
{
    return self->form == A2A_FORM_0_3_PROTO;
}

static void read_skill(dialect *self, json_val value)
{
    dialect_read_object(self, is_v1(self) ? &skill_shape_v1 : &skill_shape, value);
}

static void write_skill(dialect *self, json_val value)
{
    dialect_write_object(self, is_v1(self) ? &skill_shape_v1 : &skill_shape, value);
}

static void write_skill_both(dialect *self, json_val value)
{
    json_val requirements = json_get(value, STR("securityRequirements"));
    json_open_object(&self->to);
    json_put_members(&self->to, value, NULL, 0);
    if (dialect_is_there(requirements)) {
        json_key_lit(&self->to, "security");
        write_requirements(self, requirements);
    }
    dialect_close_object(self);
}

static void read_skills(dialect *self, json_val value)
{
    dialect_each(self, value, read_skill);
}

static bool is_history_extension(json_val extension)
{
    return json_str_eq(json_get(extension, STR("uri")), history_extension);
}

static bool has_history(json_val capabilities)
{
    json_iter iter = json_iter_of(json_get(capabilities, STR("extensions")));
    while (json_next(&iter)) {
        if (is_history_extension(iter.value)) {
            return true;
        }
    }
    return false;
}

static void read_extensions(dialect *self, json_val capabilities)
{
    json_val extensions = json_get(capabilities, STR("extensions"));
    bool adds = json_true(json_get(capabilities, STR("stateTransitionHistory"))) &&
                !has_history(capabilities);
    if (!adds || (dialect_is_there(extensions) && !json_is(extensions, JSON_ARRAY))) {
        dialect_copy(self, capabilities, STR("extensions"), STR("extensions"));
        return;
    }
    json_key_lit(&self->to, "extensions");
    json_open_array(&self->to);
    json_iter iter = json_iter_of(extensions);
    while (json_next(&iter)) {
        json_put_val(&self->to, iter.value);
    }
    json_open_object(&self->to);
    json_key_lit(&self->to, "uri");
    json_put_str(&self->to, history_extension);
    dialect_close_object(self);
    dialect_close_array(self);
}

/* Of the whole card, because the extended card is announced at its top level. */
static void read_capabilities(dialect *self, json_val card)
{
    json_val capabilities = json_get(card, STR("capabilities"));
    json_key_lit(&self->to, "capabilities");
    if (dialect_is_there(capabilities) && !json_is(capabilities, JSON_OBJECT)) {
        dialect_refuse(self, STR("capabilities"), "must be an object");
        return;
    }
    json_open_object(&self->to);
    dialect_copy(self, capabilities, STR("streaming"), STR("streaming"));
    dialect_copy(self, capabilities, STR("pushNotifications"), STR("pushNotifications"));
    read_extensions(self, capabilities);
    dialect_copy(self, card, STR("supportsAuthenticatedExtendedCard"), STR("extendedAgentCard"));
    dialect_close_object(self);
}

static void write_capabilities(dialect *self, json_val value)
{
    json_val extensions = json_get(value, STR("extensions"));
    bool has_mark = has_history(value);
    json_open_object(&self->to);
    dialect_copy(self, value, STR("streaming"), STR("streaming"));
    dialect_copy(self, value, STR("pushNotifications"), STR("pushNotifications"));
    if (json_count(extensions) > has_mark) {
        json_key_lit(&self->to, "extensions");
        json_open_array(&self->to);
        json_iter iter = json_iter_of(extensions);
        while (json_next(&iter)) {
            if (!is_history_extension(iter.value)) {
                json_put_val(&self->to, iter.value);
            }
        }
        dialect_close_array(self);
    }
    if (has_mark && !is_v1(self)) {
        json_key_lit(&self->to, "stateTransitionHistory");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
}

/* ---- interfaces --------------------------------------------------------------------------------
 */

static a2a_version version_named(json_val value)
{
    bay_str text;
    if (!dialect_is_there(value)) {
        return A2A_0_3;
    }
    return json_str_plain(value, &text) ? a2a_version_of(text) : A2A_VERSIONS;
}

/* The version of a card of 0.x. Before 0.2.5 cards have no version; only in 0.1 are schemes named
 * without a description, and modes may be missing. */
static a2a_version version_of_card(json_val card)
{
    json_val said = json_get(card, STR("protocolVersion"));
    a2a_version version = version_named(said);
    if (json_is(said, JSON_STRING) && json_raw(said).len > 2) {
        return version < A2A_1_0 ? version : A2A_0_3;
    }
    return dialect_is_there(json_get(card, STR("authentication"))) ||
                   !dialect_is_there(json_get(card, STR("defaultInputModes")))
               ? A2A_0_1
               : A2A_0_2;
}

static void put_interface(dialect *self, json_val url, json_val transport, a2a_version version)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "url");
    json_put_val(&self->to, url);
    json_key_lit(&self->to, "protocolBinding");
    if (dialect_is_there(transport)) {
        json_put_val(&self->to, transport);
    } else {
        json_put_str(&self->to, STR("JSONRPC"));
    }
    json_key_lit(&self->to, "protocolVersion");
    json_put_str(&self->to, a2a_version_names[version]);
    dialect_close_object(self);
}

static void read_interfaces(dialect *self, json_val card)
{
    json_val url = json_get(card, STR("url"));
    json_val transport = json_get(card, STR("preferredTransport"));
    a2a_version version = version_of_card(card);
    if (!json_is(url, JSON_STRING)) {
        dialect_refuse(self, STR("url"),
                       dialect_is_there(url) ? "must be a string" : "is required");
        return;
    }
    bool has_transport = dialect_is_there(transport) && !json_str_eq(transport, STR(""));
    json_key_lit(&self->to, "supportedInterfaces");
    json_open_array(&self->to);
    put_interface(self, url, has_transport ? transport : JSON_NONE, version);
    json_iter iter = json_iter_of(json_get(card, STR("additionalInterfaces")));
    while (json_next(&iter)) {
        json_val other = json_get(iter.value, STR("transport"));
        json_val other_url = json_get(iter.value, STR("url"));
        bool is_first =
            json_str_same(other_url, url) &&
            (has_transport ? json_str_same(other, transport) : json_str_eq(other, STR("JSONRPC")));
        if (!is_first && dialect_is_there(other_url)) {
            put_interface(self, other_url, other, version);
        }
    }
    dialect_close_array(self);
}

/* Whether a client of 0.x can use it. */
static bool is_older(json_val interface)
{
    return version_named(json_get(interface, STR("protocolVersion"))) < A2A_1_0;
}

static bool has_older(json_val card)
{
    json_iter iter = json_iter_of(json_get(card, STR("supportedInterfaces")));
    while (json_next(&iter)) {
        if (is_older(iter.value)) {
            return true;
        }
    }
    return false;
}

/* "0.3" as "0.3.0", the form that 0.x uses. */
static void put_version(dialect *self, json_val interface)
{
    a2a_version version = version_named(json_get(interface, STR("protocolVersion")));
    char text[16];
    bay_str name = a2a_version_names[version < A2A_1_0 ? version : A2A_0_3];
    memcpy(text, name.at, name.len);
    memcpy(text + name.len, ".0", 2);
    json_key_lit(&self->to, "protocolVersion");
    json_put_str(&self->to, (bay_str){text, name.len + 2});
}

/* The older interfaces, or all if the caller needs at least one. */
static void write_interfaces(dialect *self, json_val card)
{
    bool takes_all = !has_older(card);
    size_t count = 0;
    json_val interfaces = json_get(card, STR("supportedInterfaces"));
    json_iter iter = json_iter_of(interfaces);
    while (json_next(&iter)) {
        if (!takes_all && !is_older(iter.value)) {
            continue;
        }
        count++;
        if (count == 1) {
            dialect_copy(self, iter.value, STR("url"), STR("url"));
            dialect_copy(self, iter.value, STR("protocolBinding"), STR("preferredTransport"));
            put_version(self, iter.value);
        }
    }
    if (count < 2) {
        return;
    }
    json_key_lit(&self->to, "additionalInterfaces");
    json_open_array(&self->to);
    iter = json_iter_of(interfaces);
    while (json_next(&iter)) {
        if (takes_all || is_older(iter.value)) {
            json_open_object(&self->to);
            dialect_copy(self, iter.value, STR("url"), STR("url"));
            dialect_copy(self, iter.value, STR("protocolBinding"), STR("transport"));
            dialect_close_object(self);
        }
    }
    dialect_close_array(self);
}

/* ---- whole cards -------------------------------------------------------------------------------
 */

static void read_modes(dialect *self, json_val card, bay_str name)
{
    if (dialect_is_there(json_get(card, name))) {
        dialect_copy(self, card, name, name);
    } else if (version_of_card(card) == A2A_0_1) {
        json_key(&self->to, name);
        json_open_array(&self->to);
        json_put_str(&self->to, STR("text/plain")); /* the default of 0.1 */
        dialect_close_array(self);
    }
}

static const dialect_row card_rows[] = {
    {STR_INIT("name"), STR_INIT("name"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    AS_IS("description"),
    AS_IS("provider"),
    AS_IS("version"),
    AS_IS("documentationUrl"),
    AS_IS("iconUrl"),
    {STR_INIT("securitySchemes"), STR_INIT("securitySchemes"), JSON_OBJECT, 0, read_schemes, NULL},
    {STR_INIT("security"), STR_INIT("securityRequirements"), JSON_ARRAY, 0, read_requirements,
     NULL},
    {STR_INIT("skills"), STR_INIT("skills"), JSON_ARRAY, 0, read_skills, NULL},
};
static const dialect_row card_rows_v1[] = {
    {STR_INIT("name"), STR_INIT("name"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    AS_IS("description"),
    AS_IS("provider"),
    AS_IS("version"),
    AS_IS("documentationUrl"),
    AS_IS("securitySchemes"),
    {STR_INIT("security"), STR_INIT("securityRequirements"), JSON_ARRAY, 0, NULL, NULL},
    {STR_INIT("skills"), STR_INIT("skills"), JSON_ARRAY, 0, read_skills, NULL},
};
static const dialect_shape card_shape = DIALECT_SHAPE(card_rows);
static const dialect_shape card_shape_v1 = DIALECT_SHAPE(card_rows_v1);

static void read_card(dialect *self, json_val card, const dialect_shape *shape)
{
    if (!json_is(card, JSON_OBJECT)) {
        dialect_refuse(self, STR(""), "must be an object");
        return;
    }
    json_open_object(&self->to);
    dialect_read_members(self, shape, card);
    if (self->err == BAY_OK) {
        read_interfaces(self, card);
        read_capabilities(self, card);
        read_modes(self, card, STR("defaultInputModes"));
        read_modes(self, card, STR("defaultOutputModes"));
        json_val named = json_get(json_get(card, STR("authentication")), STR("schemes"));
        if (json_count(named) > 0 && !dialect_is_there(json_get(card, STR("securitySchemes"))) &&
            !dialect_is_there(json_get(card, STR("security")))) {
            read_authentication(self, named);
        }
    }
    dialect_close_object(self);
}

void dialect_read_card(dialect *self, json_val card)
{
    if (dialect_is_there(json_get(card, STR("supportedInterfaces")))) {
        json_put_val(&self->to, card); /* 1.0, alone or with 0.x: the final check drops the rest */
    } else {
        read_card(self, card, &card_shape);
    }
}

void dialect_read_card_v1(dialect *self, json_val card)
{
    read_card(self, card, &card_shape_v1);
}

static void put_extended(dialect *self, json_val card)
{
    dialect_copy(self, json_get(card, STR("capabilities")), STR("extendedAgentCard"),
                 STR("supportsAuthenticatedExtendedCard"));
}

static const bay_str plain_members[] = {
    STR_INIT("name"),
    STR_INIT("description"),
    STR_INIT("version"),
    STR_INIT("provider"),
    STR_INIT("documentationUrl"),
    STR_INIT("iconUrl"),
    STR_INIT("defaultInputModes"),
    STR_INIT("defaultOutputModes"),
};

void dialect_write_card(dialect *self, json_val card)
{
    json_val schemes = json_get(card, STR("securitySchemes"));
    json_val requirements = json_get(card, STR("securityRequirements"));
    bool v1 = is_v1(self);
    json_open_object(&self->to);
    for (size_t i = 0; i < sizeof(plain_members) / sizeof(plain_members[0]); i++) {
        dialect_copy(self, card, plain_members[i], plain_members[i]);
    }
    write_interfaces(self, card);
    json_key_lit(&self->to, "capabilities");
    write_capabilities(self, json_get(card, STR("capabilities")));
    put_extended(self, card);
    json_key_lit(&self->to, "skills");
    dialect_each(self, json_get(card, STR("skills")), write_skill);
    if (dialect_is_there(schemes)) {
        json_key_lit(&self->to, "securitySchemes");
        if (v1) {
            json_put_val(&self->to, schemes);
        } else {
            write_schemes(self, schemes, false);
        }
    }
    if (dialect_is_there(requirements)) {
        json_key_lit(&self->to, "security");
        if (v1) {
            json_put_val(&self->to, requirements);
        } else {
            write_requirements(self, requirements);
        }
    }
    dialect_close_object(self);
}

/* Readers of package a2a.v1 refuse unknown members: the table leaves only known ones. */
void dialect_write_card_v1(dialect *self, json_val card)
{
    json_val known;
    json_builder made;
    json_writer outer = self->to;
    self->to = *json_builder_init(&made, self->memory, DIALECT_TEXT_BYTES);
    dialect_write_card(self, card);
    made.writer = self->to;
    self->to = outer;
    bay_err err = json_builder_end(&made, &known);
    if (err == BAY_OK) {
        err = a2a_normal_view(A2A_TYPE_V1_AGENT_CARD, known, DIALECT_TEXT_BYTES, self->memory,
                              &known, self->fault);
    }
    if (err == BAY_OK) {
        json_put_val(&self->to, known);
    } else if (self->err == BAY_OK) {
        self->err = err;
    }
}

/* 1.0 with the members that 0.x reads. */
static void write_both(dialect *self, json_val card)
{
    static const bay_str own[] = {STR_INIT("capabilities"), STR_INIT("skills"),
                                  STR_INIT("securitySchemes")};
    json_val capabilities = json_get(card, STR("capabilities"));
    json_val schemes = json_get(card, STR("securitySchemes"));
    json_val requirements = json_get(card, STR("securityRequirements"));
    json_open_object(&self->to);
    json_put_members(&self->to, card, own, 3);
    write_interfaces(self, card);
    put_extended(self, card);
    json_key_lit(&self->to, "capabilities");
    json_open_object(&self->to);
    json_put_members(&self->to, capabilities, NULL, 0);
    if (has_history(capabilities)) {
        json_key_lit(&self->to, "stateTransitionHistory");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
    json_key_lit(&self->to, "skills");
    dialect_each(self, json_get(card, STR("skills")), write_skill_both);
    if (dialect_is_there(schemes)) {
        json_key_lit(&self->to, "securitySchemes");
        write_schemes(self, schemes, true);
    }
    if (dialect_is_there(requirements)) {
        json_key_lit(&self->to, "security");
        write_requirements(self, requirements);
    }
    dialect_close_object(self);
}

static a2a_version version_told(json_val card, a2a_form *out_form)
{
    bool is_new = dialect_is_there(json_get(card, STR("supportedInterfaces")));
    *out_form = is_new ? A2A_FORM_1_0 : A2A_FORM_0_3;
    return is_new ? A2A_1_0 : version_of_card(card);
}

bay_err a2a_card_read(json_val card, buf *out, a2a_version *out_version, a2a_fault *fault)
{
    a2a_form form;
    a2a_version version = version_told(card, &form);
    bay_err err = a2a_result_read(form, A2A_GET_EXTENDED_CARD, card, out, fault);
    if (err == BAY_OK) {
        *out_version = version;
    }
    return err;
}

bay_err a2a_card_view(json_val card, arena *memory, json_val *out, a2a_version *out_version,
                      a2a_fault *fault)
{
    a2a_form form;
    a2a_version version = version_told(card, &form);
    bay_err err = a2a_result_view(form, A2A_GET_EXTENDED_CARD, card, memory, out, fault);
    if (err == BAY_OK) {
        *out_version = version;
    }
    return err;
}

static bool is_as_it_is(a2a_card_form form, json_val card)
{
    return form == A2A_CARD_1_0 || (form == A2A_CARD_HYBRID && !has_older(card));
}

static bay_err write_older(a2a_card_form form, json_val card, json_writer *to)
{
    arena memory;
    arena_init(&memory, DIALECT_MEMORY_BYTES);
    dialect self = {.form = A2A_FORM_0_3, .memory = &memory, .to = *to};
    if (form == A2A_CARD_HYBRID) {
        write_both(&self, card);
    } else {
        dialect_write_card(&self, card);
    }
    *to = self.to;
    arena_fini(&memory);
    return self.err != BAY_OK ? self.err : to->out->err;
}

bay_err a2a_card_write(a2a_card_form form, json_val card, buf *out)
{
    if (is_as_it_is(form, card)) {
        buf_str(out, json_raw(card));
        return out->err;
    }
    if (!has_older(card)) {
        return BAY_ERR_VERSION;
    }
    json_writer to;
    json_writer_init(&to, out);
    return write_older(form, card, &to);
}

bay_err a2a_card_in_form(a2a_card_form form, json_val card, size_t max_bytes, arena *memory,
                         json_val *out)
{
    if (is_as_it_is(form, card)) {
        *out = card;
        return BAY_OK;
    }
    if (!has_older(card)) {
        return BAY_ERR_VERSION;
    }
    json_builder made;
    bay_err err = write_older(form, card, json_builder_init(&made, memory, max_bytes));
    if (err != BAY_OK) {
        json_builder_drop(&made);
        return err;
    }
    return json_builder_end(&made, out);
}
