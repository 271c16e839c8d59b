#include "gateway/agents.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "a2a_transport/link.h"
#include "a2a_transport/router.h"
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "gateway/connect.h"
#include "upstream/credentials.h"

enum { KEY_BYTES = 64 << 10, ADDRESS_BYTES = 1024 };

/* What all agents of one configuration share on one loop; counted. */
typedef struct shared {
    uint32_t references;
    const config *config;
    jose_key *key;
    address_rules *webhooks;
    agents_public public;
    bay_str issuers[CONFIG_ISSUERS];
    char base[4096];
    char grpc[ADDRESS_BYTES];
    char jku[4200];
} shared;

/* What one agent's settings are borrowed from. */
typedef struct hold {
    shared *of;
    upstream_credentials *credentials; /* NULL: none */
    tls_context *tls;                  /* theirs; NULL: the system's trust */
    worker *worker;
    trust_checked card; /* the one that was fetched last */
    agents_settings settings;
    http_field fields[];
} hold;

static void shared_unref(shared *self)
{
    if (self != NULL && --self->references == 0) {
        jose_key_free(self->key);
        address_rules_free(self->webhooks);
        config_free(self->config);
        mem_free(self);
    }
}

static void release(void *held)
{
    hold *self = held;
    upstream_credentials_free(self->credentials);
    tls_free(self->tls);
    trust_checked_drop(&self->card);
    shared_unref(self->of);
    mem_free(self);
}

static bay_err read_key(shared *self, bay_diag *diag)
{
    bay_str path = self->config->a2a.key;
    if (path.len == 0) {
        return BAY_OK;
    }
    char *text = mem_alloc(KEY_BYTES);
    if (text == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    int file = open(path.at, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, text, KEY_BYTES) : -1;
    if (file >= 0) {
        close(file);
    }
    bay_diag why = {0};
    bay_err err = BAY_ERR_IO;
    if (got > 0 && got < KEY_BYTES) {
        err = jose_key_new((bay_str){text, (size_t)got}, STR(""), &self->key, &why);
    }
    mem_wipe(text, KEY_BYTES);
    mem_free(text);
    return err == BAY_OK
               ? BAY_OK
               : diag_set(diag, err, "a2a.key: %.*s cannot sign cards: %.100s", BAY_STR(path),
                          why.text[0] != '\0' ? why.text : bay_err_text(err));
}

static void write_public(const worker *self, shared *of)
{
    const config_a2a *settings = &of->config->a2a;
    buf base = {.at = of->base, .cap = sizeof(of->base), .max = sizeof(of->base)};
    buf grpc = {.at = of->grpc, .cap = sizeof(of->grpc), .max = sizeof(of->grpc)};
    buf jku = {.at = of->jku, .cap = sizeof(of->jku), .max = sizeof(of->jku)};
    bay_str public_url = of->config->public_url;
    public_url = public_url.len > 0 ? public_url : settings->public_url;
    if (public_url.len > 0) {
        buf_str(&base, public_url);
    } else {
        buf_str(&base, self->gateway->tls != NULL ? STR("https://") : STR("http://"));
        gateway_write_reachable(self->gateway, &base);
    }
    a2a_http_router_write_grpc(buf_view(&base), &grpc);
    buf_str(&jku, buf_view(&base));
    buf_lit(&jku, "/a2a/keys.json");
    const config_auth *auth = &of->config->auth;
    for (size_t i = 0; i < auth->issuer_count; i++) {
        of->issuers[i] = auth->issuers[i].url;
    }
    of->public = (agents_public){
        .base = buf_view(&base),
        .grpc = buf_view(&grpc),
        .key = of->key,
        .jku = of->key != NULL ? buf_view(&jku) : (bay_str){"", 0},
        .is_hybrid_default = settings->hybrid,
        .card_max_age_s = settings->card_max_age_ms / 1000,
        .webhooks = of->webhooks,
        .webhook_rules = settings->webhooks.at,
        .webhook_rule_count = settings->webhooks.count,
        .relays_webhooks = settings->relay_webhooks,
        .via = str_of(self->gateway->via),
        .security = {.issuers = of->issuers,
                     .issuer_count = auth->issuer_count,
                     .scopes = auth->scopes.at,
                     .scope_count = auth->scopes.count,
                     .has_keys = auth->api_keys,
                     .has_certificates = auth->certificates},
    };
}

static bay_err shared_new(const worker *self, shared **out, bay_diag *diag)
{
    shared *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    made->references = 1;
    made->config = config_ref(self->config);
    config_list webhooks = self->config->a2a.webhooks;
    bay_err err = read_key(made, diag);
    if (err == BAY_OK && webhooks.count > 0) {
        err = address_rules_new(webhooks.at, webhooks.count, &made->webhooks, diag);
    }
    if (err != BAY_OK) {
        shared_unref(made);
        return err;
    }
    write_public(self, made);
    *out = made;
    return BAY_OK;
}

static const char *file_of(bay_str path)
{
    return path.len > 0 ? path.at : NULL;
}

static bool admits_card(void *user, json_val card, const char **out_why)
{
    hold *self = user;
    trust_pins *pins = self->worker->pins;
    trust_checked before = self->card;
    self->card = (trust_checked){NULL, 0};
    if (pins != NULL) {
        trust_pins_check(pins, self->settings.name, true, TRUST_CARD, (bay_str){"", 0}, card,
                         loop_now_ms(self->worker->loop), &self->card);
    }
    trust_checked_drop(&before);
    *out_why = "its card is not approved; patchbay pin review shows and approves it";
    return trust_checked_admits(&self->card);
}

static http_authority *authority_of(void *user, const auth_principal *caller)
{
    return upstream_credentials_of(user, caller);
}

static void write_settings(worker *self, const config_agent *agent, hold *out)
{
    const config *all = self->config;
    bool has_logins = agent->credentials.grant == CONFIG_GRANT_USER;
    for (size_t i = 0; i < agent->headers.count; i++) {
        out->fields[i] = (http_field){agent->headers.at[i].name, agent->headers.at[i].value};
    }
    bool is_card = agent->card.len > 0;
    out->settings = (agents_settings){
        .name = agent->name,
        .url = is_card ? agent->card : agent->url,
        .is_card = is_card,
        .fields = out->fields,
        .field_count = agent->headers.count,
        .authority = upstream_credentials_own(out->credentials),
        .authority_of = out->credentials != NULL ? authority_of : NULL,
        .authority_user = out->credentials,
        .login_page = has_logins ? worker_connect_page : NULL,
        .login_user = self,
        .has_version = agent->version > 0,
        .version = agent->version > 0 ? (a2a_version)(agent->version - 1) : A2A_1_0,
        .has_binding = agent->binding > 0,
        .binding = agent->binding > 0 ? (a2a_binding)(agent->binding - 1) : A2A_JSONRPC,
        .allow = agent->allow.at,
        .allow_count = agent->allow.count,
        .verify = {agent->verify.keys, agent->verify.jku.at, agent->verify.jku.count,
                   agent->verify.is_required},
        .tls_ca = file_of(agent->tls.ca),
        .tls_certificate = file_of(agent->tls.certificate),
        .tls_key = file_of(agent->tls.key),
        .connect_ms = all->timeouts.connect_ms,
        .connections = all->limits.origin_connections,
        .timeout_ms = agent->timeout_ms,
        .stream_idle_ms = agent->stream_idle_ms,
        .refresh_ms = agent->refresh_ms,
        .answer_bytes = all->limits.message_bytes,
        .circuit = {agent->failures, agent->window_ms, agent->cool_off_ms},
        .admits_card = admits_card,
        .admits_user = out,
        .tools = agent->tools.at,
        .tool_count = agent->tools.count,
        .title = agent->title,
        .description = agent->description,
    };
}

/* With the agent's own authorities, if it has some. */
static bay_err make_credentials(const worker *self, const config_agent *agent, hold *out,
                                bay_diag *diag)
{
    tls_options options = {.certificate_file = file_of(agent->tls.certificate),
                           .key_file = file_of(agent->tls.key),
                           .ca_file = file_of(agent->tls.ca)};
    if (!config_credentials_are_given(&agent->credentials)) {
        return BAY_OK;
    }
    bay_str url = agent->card.len > 0 ? a2a_agent_url(agent->card) : agent->url;
    bay_err err = tls_client_has_own(&options) ? tls_client_new(&options, &out->tls, diag) : BAY_OK;
    if (err == BAY_OK) {
        upstream_credentials_options given = {.settings = &agent->credentials,
                                              .server = agent->name,
                                              .url = url,
                                              .tls = out->tls,
                                              .vault = gateway_vault_of(self->vault)};
        err = upstream_credentials_new(self->loop, &given, &out->credentials, diag);
    }
    return err == BAY_OK
               ? BAY_OK
               : diag_set(diag, err, "agents.%.*s.credentials: %.150s", BAY_STR(agent->name),
                          diag->text[0] != '\0' ? diag->text : bay_err_text(err));
}

static mcp_server *tools_engine(void *user)
{
    worker *self = user;
    return self->all != NULL ? endpoint_engine(self->all) : NULL;
}

bay_err worker_agents_init(worker *self, bay_diag *diag)
{
    const config *settings = self->config;
    uint32_t keep_alive_ms = settings->timeouts.keep_alive_ms;
    agents_options options = {
        .loop = self->loop,
        .is_lenient = settings->a2a.lenient,
        .keep_alive_ms = keep_alive_ms > 0 ? keep_alive_ms : UINT32_MAX,
        .drain_ms = settings->timeouts.drain_ms,
        .tools = {tools_engine, self},
        .aliases = self->gateway->aliases,
        .door = &self->door,
        .origin = worker_origin,
        .origin_user = self,
        .owners = self->gateway->owners,
        .ring = &self->ring,
    };
    bay_err err = agents_new(&options, &self->agents);
    return err == BAY_OK ? BAY_OK
                         : diag_set(diag, err, "agents could not be set up: %s", bay_err_text(err));
}

/* ---- what changed ---------------------------------------------------------------------------- */

/* Which version of the file it is; 0: none. */
static uint64_t file_state(bay_str path, uint64_t seed)
{
    struct stat seen;
    if (path.len == 0 || stat(path.at, &seen) != 0) {
        return seed;
    }
    const uint64_t parts[] = {
        (uint64_t)seen.st_dev,         (uint64_t)seen.st_ino,          (uint64_t)seen.st_size,
        (uint64_t)seen.st_mtim.tv_sec, (uint64_t)seen.st_mtim.tv_nsec, seed,
    };
    return str_hash((bay_str){(const char *)parts, sizeof(parts)}, 0);
}

/* Keys are rotated in their files, which keep their names. */
static uint64_t files_of(const config *all, const config_agent *agent)
{
    const bay_str paths[] = {agent->verify.keys, agent->tls.ca, agent->tls.certificate,
                             agent->tls.key, all->a2a.key};
    uint64_t state = 0;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        state = file_state(paths[i], state + i);
    }
    return state;
}

bool worker_agent_stays(const worker *self, const config *next, bay_str name)
{
    const config *old = self->agents_config;
    const config_agent *agent = config_agent_find(next, name);
    const config_agent *known = old != NULL ? config_agent_find(old, name) : NULL;
    return known != NULL && agent != NULL && !known->is_disabled && !agent->is_disabled &&
           config_equal_agent(known, agent) && config_equal_a2a(&old->a2a, &next->a2a) &&
           config_equal_auth(&old->auth, &next->auth) &&
           str_eq(old->public_url, next->public_url) &&
           gateway_pins_same_policy(old, known->pin, next, agent->pin) &&
           self->agents_files[known - old->agents] == files_of(next, agent);
}

void worker_agents_forget(worker *self)
{
    config_free(self->agents_config);
    mem_free(self->agents_files);
    self->agents_config = NULL;
    self->agents_files = NULL;
}

bay_err worker_agents_set(worker *self, bay_diag *diag)
{
    const config *all = self->config;
    if (self->agents == NULL || (all->agent_count == 0 && agents_count(self->agents) == 0)) {
        return BAY_OK;
    }
    shared *of = NULL;
    bay_err err = shared_new(self, &of, diag);
    agents_entry *entries = mem_array(all->agent_count + 1, sizeof(*entries));
    uint64_t *files = mem_array(all->agent_count + 1, sizeof(*files));
    size_t count = 0;
    err = err == BAY_OK && (entries == NULL || files == NULL)
              ? diag_set(diag, BAY_ERR_NOMEM, "out of memory")
              : err;
    for (size_t i = 0; err == BAY_OK && i < all->agent_count; i++) {
        const config_agent *agent = &all->agents[i];
        files[i] = files_of(all, agent);
        if (agent->is_disabled) {
            continue;
        }
        hold *held = mem_zalloc(sizeof(*held) + agent->headers.count * sizeof(http_field));
        if (held == NULL) {
            err = diag_set(diag, BAY_ERR_NOMEM, "out of memory");
            break;
        }
        held->of = of;
        held->worker = self;
        of->references++;
        bool is_kept = worker_agent_stays(self, all, agent->name);
        err = is_kept ? BAY_OK : make_credentials(self, agent, held, diag);
        write_settings(self, agent, held);
        entries[count++] = (agents_entry){.settings = &held->settings,
                                          .public = &of->public,
                                          .hold = held,
                                          .release = release,
                                          .is_kept = is_kept};
    }
    if (err == BAY_OK) {
        err = agents_set(self->agents, entries, count, diag);
        worker_agents_forget(self);
        self->agents_config = config_ref(all);
        self->agents_files = files;
        files = NULL;
    } else {
        for (size_t i = 0; i < count; i++) {
            release(entries[i].hold);
        }
    }
    mem_free(entries);
    mem_free(files);
    shared_unref(of);
    return err;
}

mcp_server *worker_agents_engine(void *user, bay_str name)
{
    worker *self = user;
    return self->agents != NULL ? agents_skills_of(self->agents, name) : NULL;
}
