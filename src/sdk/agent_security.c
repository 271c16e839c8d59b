/* Who may call an agent: schemes that its card declares, and how what callers bring is verified.
 * Keys live outside of the agent's arena and are wiped; nothing of a credential is ever logged. */

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/agent_parts.h"
#include "sdk/guard.h"
#include "json/writer.h"

enum { LEEWAY_MS = 60000 };

struct bay_grant {
    arena *memory;
    principal_parts who;
    bool is_short; /* what was said of it could not be kept */
};

static void grant_keep(bay_grant *self, const char *text, bay_str *out)
{
    bay_str given = str_of(text);
    if (given.len > AGENT_GRANT_BYTES || arena_dup(self->memory, given, out) != BAY_OK) {
        self->is_short = true;
    }
}

void bay_grant_principal(bay_grant *grant, const char *principal)
{
    if (grant != NULL) {
        grant_keep(grant, principal, &grant->who.subject);
    }
}

void bay_grant_scopes(bay_grant *grant, const char *scopes)
{
    if (grant != NULL) {
        grant_keep(grant, scopes, &grant->who.scopes);
    }
}

/* ---- registration ---------------------------------------------------------------------------- */

agent_scheme *sdk_agent_scheme_find(const bay_agent *self, bay_str name)
{
    for (agent_scheme *at = self->schemes; at != NULL; at = at->next) {
        if (str_eq(at->name, name)) {
            return at;
        }
    }
    return NULL;
}

/* A scheme in the card's words, of the agent's memory. NULL: it is refused, or there is no memory.
 */
static agent_scheme *add(bay_agent *self, const char *function, const char *name, json_val value)
{
    bay_str key = str_of(name);
    bool is_of_guard = self->guard != NULL && !str_eq(str_of(function), STR("bay_agent_guard"));
    const char *fault = key.len == 0  ? "it has no name"
                        : is_of_guard ? "the agent has a guard, which declares what it takes"
                        : sdk_agent_scheme_find(self, key) != NULL ? "there is one already"
                        : self->scheme_count == AGENT_SCHEMES      ? "there are too many"
                        : !json_is(value, JSON_OBJECT)             ? "it is no JSON object"
                                                                   : NULL;
    if (fault != NULL) {
        sdk_agent_error(self, "%s \"%.100s\": %s", function, name != NULL ? name : "", fault);
        return NULL;
    }
    agent_scheme *scheme = arena_zalloc(&self->memory, sizeof(*scheme));
    if (scheme == NULL || arena_dup(&self->memory, key, &scheme->name) != BAY_OK) {
        self->is_out_of_memory = true;
        return NULL;
    }
    scheme->value = value;
    agent_scheme **last = &self->schemes;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = scheme;
    self->scheme_count++;
    return scheme;
}

agent_scheme *sdk_agent_scheme_simple(bay_agent *self, const char *function, const char *scheme,
                                      const char *kind, const char *const members[4])
{
    json_builder made;
    json_val value = JSON_NONE;
    json_writer *to = json_builder_init(&made, &self->memory, AGENT_GRANT_BYTES);
    json_open_object(to);
    json_key(to, str_of(kind));
    json_open_object(to);
    for (int i = 0; i < 4 && members[i] != NULL; i += 2) {
        json_key(to, str_of(members[i]));
        json_put_str(to, str_of(members[i + 1]));
    }
    json_close_object(to);
    json_close_object(to);
    bay_err err = json_builder_end(&made, &value);
    self->is_out_of_memory = self->is_out_of_memory || err == BAY_ERR_NOMEM;
    return add(self, function, scheme, value);
}

void bay_agent_api_key(bay_agent *agent, const char *scheme, const char *location, const char *name,
                       bay_verify_fn verify, void *user)
{
    if (agent == NULL) {
        return;
    }
    bay_str where = str_of(location);
    bool is_known =
        str_eq(where, STR("header")) || str_eq(where, STR("query")) || str_eq(where, STR("cookie"));
    if (!is_known || name == NULL || name[0] == '\0') {
        sdk_agent_error(agent,
                        "bay_agent_api_key \"%.100s\": a key is in a field of \"header\", "
                        "\"query\" or \"cookie\"",
                        scheme != NULL ? scheme : "");
        return;
    }
    const char *const members[4] = {"location", location, "name", name};
    agent_scheme *made = sdk_agent_scheme_simple(agent, "bay_agent_api_key", scheme,
                                                 "apiKeySecurityScheme", members);
    if (made != NULL) {
        made->is_api_key = true;
        made->verify = verify;
        made->user = user;
    }
}

void bay_agent_api_key_add(bay_agent *agent, const char *scheme, const char *key,
                           const char *principal, const char *scopes)
{
    if (agent == NULL) {
        return;
    }
    agent_scheme *of = sdk_agent_scheme_find(agent, str_of(scheme));
    bay_str text = str_of(key);
    const char *fault = of == NULL || !of->is_api_key ? "there is no API key scheme of that name"
                        : text.len == 0               ? "the key is empty"
                        : of->key_count == AGENT_KEYS ? "there are too many keys"
                                                      : NULL;
    if (fault != NULL) {
        sdk_agent_error(agent, "bay_agent_api_key_add \"%.100s\": %s", scheme != NULL ? scheme : "",
                        fault);
        return;
    }
    agent_key *made = arena_zalloc(&agent->memory, sizeof(*made));
    char *copy = made != NULL ? mem_dup(text.at, text.len) : NULL;
    if (copy == NULL) {
        agent->is_out_of_memory = true;
        return;
    }
    *made = (agent_key){.next = of->keys,
                        .text = copy,
                        .len = text.len,
                        .principal = sdk_agent_keep(agent, principal),
                        .scopes = sdk_agent_keep(agent, scopes)};
    of->keys = made;
    of->key_count++;
}

void bay_agent_http_auth(bay_agent *agent, const char *scheme, const char *kind,
                         bay_verify_fn verify, void *user)
{
    if (agent == NULL) {
        return;
    }
    if (kind == NULL || kind[0] == '\0' || verify == NULL) {
        sdk_agent_error(agent,
                        "bay_agent_http_auth \"%.100s\": its kind (\"Bearer\") and who "
                        "verifies it are wanted",
                        scheme != NULL ? scheme : "");
        return;
    }
    const char *const members[4] = {"scheme", kind};
    agent_scheme *made = sdk_agent_scheme_simple(agent, "bay_agent_http_auth", scheme,
                                                 "httpAuthSecurityScheme", members);
    if (made != NULL) {
        made->verify = verify;
        made->user = user;
    }
}

static bay_err read_keys(const char *keys, jose_keys **out, bay_diag *diag)
{
    buf text;
    buf_init(&text, JOSE_KEYSET_BYTES);
    bay_err err = sdk_keys_read(keys, &text, diag);
    if (err == BAY_OK) {
        err = jose_keys_new(buf_view(&text), out, diag);
    }
    buf_fini(&text);
    return err;
}

void bay_agent_jwt(bay_agent *agent, const char *scheme, const char *issuer, const char *audience,
                   const char *keys)
{
    if (agent == NULL) {
        return;
    }
    if (audience == NULL || audience[0] == '\0') {
        sdk_agent_error(agent, "bay_agent_jwt \"%.100s\": for which audience?",
                        scheme != NULL ? scheme : "");
        return;
    }
    bay_diag why = {.code = BAY_OK};
    jose_keys *trusted = NULL;
    bay_err err = read_keys(keys, &trusted, &why);
    if (err != BAY_OK) {
        sdk_agent_error(agent, "bay_agent_jwt \"%.60s\": %s", scheme != NULL ? scheme : "",
                        why.code != BAY_OK ? why.text : bay_err_text(err));
        return;
    }
    const char *const members[4] = {"scheme", "Bearer", "bearerFormat", "JWT"};
    agent_scheme *made =
        sdk_agent_scheme_simple(agent, "bay_agent_jwt", scheme, "httpAuthSecurityScheme", members);
    if (made == NULL) {
        jose_keys_free(trusted);
        return;
    }
    made->trusted = trusted;
    made->issuer = sdk_agent_keep(agent, issuer);
    made->audience = sdk_agent_keep(agent, audience);
}

void bay_agent_mtls(bay_agent *agent, const char *scheme)
{
    if (agent != NULL) {
        const char *const members[4] = {NULL};
        agent_scheme *made =
            sdk_agent_scheme_simple(agent, "bay_agent_mtls", scheme, "mtlsSecurityScheme", members);
        if (made != NULL) {
            made->is_mtls = true;
        }
    }
}

void bay_agent_scheme(bay_agent *agent, const char *scheme, const char *json, const char *like,
                      bay_verify_fn verify, void *user)
{
    if (agent == NULL) {
        return;
    }
    if ((verify == NULL) == (like == NULL || like[0] == '\0')) {
        sdk_agent_error(agent,
                        "bay_agent_scheme \"%.100s\": either who verifies it, or like which "
                        "scheme it is verified",
                        scheme != NULL ? scheme : "");
        return;
    }
    json_val value = sdk_agent_keep_object(agent, json);
    agent_scheme *made = add(agent, "bay_agent_scheme", scheme, value);
    if (made != NULL) {
        made->verify = verify;
        made->user = user;
        made->like = sdk_agent_keep(agent, like);
    }
}

void sdk_agent_requirement(bay_agent *self, list *among, const char *scheme, const char *scopes)
{
    bay_str rest = str_of(scopes);
    json_builder made;
    json_writer *to = sdk_agent_build(self, &made);
    json_open_object(to);
    json_key_lit(to, "schemes");
    json_open_object(to);
    json_key(to, str_of(scheme));
    json_open_object(to);
    json_key_lit(to, "list");
    json_open_array(to);
    while (rest.len > 0) {
        bay_str one = str_head(rest, str_find(rest, ' '));
        rest = str_from(rest, one.len + 1);
        if (one.len > 0) {
            json_put_str(to, one);
        }
    }
    json_close_array(to);
    json_close_object(to);
    json_close_object(to);
    json_close_object(to);
    sdk_agent_add(self, among, &made);
    self->requires_any = true;
}

void bay_agent_require(bay_agent *agent, const char *scheme, const char *scopes)
{
    if (agent != NULL) {
        sdk_agent_requirement(agent, &agent->requirements, scheme, scopes);
    }
}

void sdk_agent_schemes_free(bay_agent *self)
{
    for (agent_scheme *at = self->schemes; at != NULL; at = at->next) {
        jose_keys_free(at->trusted);
        for (agent_key *key = at->keys; key != NULL; key = key->next) {
            mem_wipe(key->text, key->len);
            mem_free(key->text);
        }
    }
    self->schemes = NULL;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* All keys are looked at, whichever it is: the time says nothing. */
static const agent_key *find_key(const agent_scheme *self, bay_str credential)
{
    const agent_key *found = NULL;
    for (const agent_key *at = self->keys; at != NULL; at = at->next) {
        if (str_eq_secret((bay_str){at->text, at->len}, credential)) {
            found = at;
        }
    }
    return found;
}

static bay_err verify_by_program(const agent_scheme *self, bay_str credential, bay_grant *grant)
{
    bool is_good = self->verify(grant, credential, self->user) && !grant->is_short;
    return is_good ? BAY_OK : BAY_ERR_DENIED;
}

static bay_err verify_token(const agent_scheme *self, bay_str credential, bay_grant *grant)
{
    access_token token;
    access_claims claims;
    bay_err err = access_token_read(credential, grant->memory, &token, NULL);
    access_rules rules = {.issuer = self->issuer.len > 0 ? self->issuer : token.issuer,
                          .audiences = &self->audience,
                          .audience_count = 1,
                          .now_ms = loop_time_ms(),
                          .skew_ms = LEEWAY_MS};
    err = err == BAY_OK ? access_token_check(&token, &rules, grant->memory, &claims, NULL) : err;
    err = err == BAY_OK ? access_token_verify(&token, self->trusted, NULL) : err;
    if (err == BAY_OK &&
        (claims.dpop_thumbprint.len > 0 || claims.certificate_thumbprint.len > 0)) {
        err = BAY_ERR_DENIED; /* bound to a key (RFC 7800), and nothing here asks for its proof */
    }
    if (err == BAY_OK) {
        grant->who = claims.who;
    }
    return err == BAY_ERR_NOMEM ? err : err == BAY_OK ? BAY_OK : BAY_ERR_DENIED;
}

/* a2a_verify; `user`: the agent. */
static bay_err sdk_agent_verify(void *user, a2a_scheme_kind kind, bay_str name, bay_str credential,
                                arena *memory, principal_parts *out)
{
    const bay_agent *agent = user;
    const agent_scheme *scheme = sdk_agent_scheme_find(agent, name);
    if (scheme != NULL && scheme->like.len > 0) {
        scheme = sdk_agent_scheme_find(agent, scheme->like);
    }
    if (scheme == NULL) {
        return BAY_ERR_UNSUPPORTED;
    }
    bay_grant grant = {.memory = memory, .who = {.proof = PRINCIPAL_PROGRAM}};
    const agent_key *key = find_key(scheme, credential);
    bay_err err = BAY_ERR_DENIED;
    if (key != NULL) {
        grant.who = (principal_parts){
            .proof = PRINCIPAL_KEY, .subject = key->principal, .scopes = key->scopes};
        err = BAY_OK;
    } else if (scheme->trusted != NULL) {
        err = verify_token(scheme, credential, &grant);
    } else if (scheme->verify != NULL) {
        err = verify_by_program(scheme, credential, &grant);
    } else if (kind == A2A_SCHEME_MTLS && scheme->is_mtls) {
        /* TLS verified the certificate whose subject it is */
        grant.who = (principal_parts){.proof = PRINCIPAL_CERTIFICATE, .subject = credential};
        err = BAY_OK;
    }
    if (err == BAY_OK) {
        *out = grant.who;
    }
    return err;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bay_str field_of(void *context, bay_str name)
{
    /* Of two credentials none counts: who reads which is chance. */
    return http_exchange_field_count(context, name) == 1 ? http_exchange_field(context, name)
                                                         : (bay_str){NULL, 0};
}

static bay_err check(bay_agent *self, http_exchange *exchange, bay_str skill,
                     const auth_principal **out_principal, front_challenge *out_challenge,
                     a2a_fault *fault)
{
    a2a_presented presented = {.field = field_of,
                               .query = http_exchange_query(exchange),
                               .certificate =
                                   http_exchange_client_certificate(exchange, TLS_SUBJECT),
                               .context = exchange};
    return a2a_security_check(self->cards.security, &presented, skill, sdk_agent_verify, self,
                              http_exchange_arena(exchange), out_principal,
                              &out_challenge->schemes[0], fault);
}

front_verdict sdk_agent_identify(bay_agent *self, const front_request *request,
                                 const auth_principal **out_principal, front_refusal *out)
{
    http_exchange *exchange = request->exchange;
    if (self->gate != NULL) {
        return sdk_gate_identify(self->gate, request, out_principal, out);
    }
    a2a_fault fault = {A2A_E_UNAUTHENTICATED, ""};
    front_challenge challenge = {.retry = STR("")};
    /* Also of an open card: who shows a credential that it knows is somebody. */
    bay_err err = check(self, exchange, STR(""), out_principal, &challenge, &fault);
    return err == BAY_OK ? FRONT_GO : a2a_http_router_refused(exchange, &fault, &challenge, out);
}

/* Most say nothing beside their message. */
static json_val skill_in(json_val holder)
{
    json_val metadata = json_get(holder, STR("metadata"));
    return json_is(metadata, JSON_OBJECT) ? json_get(metadata, STR("skillId")) : JSON_NONE;
}

bay_str sdk_agent_skill_of(json_val request, json_val message, arena *memory)
{
    bay_str skill = STR("");
    json_val named = skill_in(message);
    if (json_is(named, JSON_MISSING)) {
        named = skill_in(request);
    }
    if (!json_is(named, JSON_STRING) || json_str(named, memory, &skill) != BAY_OK) {
        return STR("");
    }
    return skill;
}

/* What the handler of the task that a message is for remembers. */
static bay_err record_of(const bay_agent *self, const a2a_call *call, json_val message,
                         bay_str *out)
{
    bay_str id = STR("");
    json_val task = json_get(message, STR("taskId"));
    bay_err err = json_is(task, JSON_STRING) ? json_str(task, call->memory, &id) : BAY_OK;
    if (err == BAY_OK) {
        *out = id.len > 0 ? a2a_agent_remembered(sdk_agent_engine(self->serving), id,
                                                 principal_identity(call->principal))
                          : STR("");
    }
    return err;
}

/* A skill that is not there is refused, and one that needs more than the agent asks of everybody is
 * given to nobody without it: neither a task's first message nor a later one, which goes to the
 * skill of the first, whatever it names. */
bay_err sdk_agent_admit(bay_agent *self, http_exchange *exchange, const a2a_call *call,
                        front_challenge *out_challenge, a2a_fault *fault)
{
    if (call->method != A2A_SEND_MESSAGE && call->method != A2A_SEND_STREAMING_MESSAGE) {
        return BAY_OK;
    }
    json_val message = json_get(call->params, STR("message"));
    bay_str skill = sdk_agent_skill_of(call->params, message, call->memory);
    if (skill.len > 0 && sdk_agent_ability(self, skill) == NULL) {
        return a2a_fault_set(fault, A2A_E_INVALID_PARAMS,
                             "message.metadata.skillId: this agent has no skill \"%.*s\"",
                             (int)(skill.len < 64 ? skill.len : 64), skill.at);
    }
    bay_str record;
    bay_err err = record_of(self, call, message, &record);
    if (err != BAY_OK) {
        return a2a_fault_set(fault, A2A_E_BUSY, "out of memory; try again later");
    }
    const bay_skill *asked[] = {sdk_agent_answerer(self, record, skill),
                                sdk_agent_ability(self, skill)};
    for (size_t i = 0; err == BAY_OK && i < ARRAY_LEN(asked); i++) {
        bool is_twice = i > 0 && asked[i] == asked[0];
        const auth_principal *principal = NULL;
        if (asked[i] == NULL || is_twice) {
            continue;
        }
        if (self->gate != NULL) {
            err = sdk_agent_guard_admits(self, exchange, call->principal, asked[i], out_challenge,
                                         fault);
        } else if (!list_is_empty(&asked[i]->requirements)) {
            err = check(self, exchange, asked[i]->id, &principal, out_challenge, fault);
            principal_unref(principal);
        }
    }
    return err;
}
