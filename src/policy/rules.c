/* Decisions. A rule has two halves: its identity (principal, origin, method) and its arguments. The
 * identity decides what is there, both together what may be called with these arguments. */
#include "policy/rules.h"

#include "base/mem.h"
#include "policy/rules_internal.h"
#include "wire/uri_plain.h"

enum { URI_BYTES = 64 << 10 }; /* of one that is looked at; a longer one is hidden */

const char *policy_outcome_text(policy_outcome outcome)
{
    static const char *const texts[] = {[POLICY_HIDDEN] = "hidden",
                                        [POLICY_LOCKED] = "locked",
                                        [POLICY_DENIED] = "denied",
                                        [POLICY_APPROVAL] = "approval needed",
                                        [POLICY_ALLOWED] = "allowed"};
    return texts[outcome];
}

/* ---- what a rule is about --------------------------------------------------------------------- */

static bool text_matches_name(const policy_text *text, policy_effect effect,
                              const policy_name *what, bay_str plain)
{
    bool is_uri = what->kind == POLICY_RESOURCE || what->kind == POLICY_SKILL;
    bool as_written = str_glob(text->text, what->name);
    if (!is_uri) {
        return as_written;
    }
    bool as_read = str_glob(text->plain, plain);
    return effect == POLICY_ALLOW ? as_written && as_read : as_written || as_read;
}

/* Is the URI a file of a skill? Of a template: may it become one? */
static bool is_of_skill(const policy_name *what, bay_str plain)
{
    bay_str scheme = STR("skill:");
    if (what->kind != POLICY_TEMPLATE) {
        return str_starts(plain, scheme);
    }
    bay_str made = str_head(what->name, str_find(what->name, '{'));
    return str_eq_nocase(str_head(made, scheme.len), str_head(scheme, made.len));
}

/* The files of a skill are read as resources: who may not have the skill may not read them. */
static bool is_of_kind(const policy_text *text, policy_effect effect, const policy_name *what,
                       bay_str plain)
{
    bool is_uri = what->kind == POLICY_TEMPLATE || what->kind == POLICY_RESOURCE;
    return text->kind == what->kind || (is_uri && text->kind == POLICY_RESOURCE) ||
           (is_uri && text->kind == POLICY_SKILL && effect != POLICY_ALLOW &&
            is_of_skill(what, plain));
}

/* Can a URI match the pattern as it is written and be made of the template? By what both begin with;
 * a rule that does not allow may also be about other spellings of it. */
static bool may_become(bay_str template, const policy_text *text, policy_effect effect)
{
    bay_str made = str_head(template, str_find(template, '{'));
    bay_str wanted = str_head(text->text, str_find(text->text, '*'));
    wanted = str_head(wanted, str_find(wanted, '?'));
    return effect != POLICY_ALLOW || str_starts(made, wanted) || str_starts(wanted, made);
}

static bool is_about_name(const policy_rule *self, const policy_name *what, bay_str plain,
                          bool *out_is_open)
{
    bool is_template = what->kind == POLICY_TEMPLATE;
    bool is_open = false;
    for (const policy_text *at = self->about; at != NULL; at = at->next) {
        if (!is_of_kind(at, self->effect, what, plain)) {
            continue;
        }
        if (!is_template && text_matches_name(at, self->effect, what, plain)) {
            return true;
        }
        bool is_all = str_eq(at->text, STR("*")) || str_eq(at->text, what->name);
        if (is_template && is_all && at->kind == POLICY_RESOURCE) {
            *out_is_open = false;
            return true;
        }
        is_open = is_open || (is_template && may_become(what->name, at, self->effect));
    }
    *out_is_open = is_open;
    return is_open;
}

/* A thing whose server nobody knows is none of these servers' for a rule that allows. */
static bool is_about_server(const policy_rule *self, bay_str server)
{
    if (self->servers == NULL) {
        return true;
    }
    for (const policy_text *at = self->servers; at != NULL; at = at->next) {
        if (str_eq(at->text, server)) {
            return true;
        }
    }
    return server.len == 0 && self->effect != POLICY_ALLOW;
}

/* `out_is_open`: it may be about it; which resource the template becomes is to come. */
bool policy_rule_is_about(const policy_rule *self, const policy_name *what, bay_str plain,
                          bool *out_is_open)
{
    *out_is_open = false;
    if (what->kind == POLICY_METHOD) {
        return self->methods != NULL;
    }
    return is_about_name(self, what, plain, out_is_open) && is_about_server(self, what->server);
}

static bool is_about_method(const policy_rule *self, bay_str method)
{
    if (self->methods == NULL) {
        return true;
    }
    for (const policy_text *at = self->methods; at != NULL; at = at->next) {
        if (str_glob(at->text, method)) {
            return true;
        }
    }
    return false;
}

/* ---- targets ---------------------------------------------------------------------------------- */

typedef struct target_rule {
    const policy_rule *rule;
    bool is_open;
} target_rule;

/* The rules that may count for one thing, found once. */
typedef struct policy_target {
    size_t count;
    target_rule rules[];
} policy_target;

struct policy_index_map {
    map by_name;
    arena memory; /* names and targets */
};

enum { INDEX_BYTES = 256 << 20 };

static size_t find_rules(const policy_rules *rules, const policy_name *what, bay_str plain,
                         target_rule *out)
{
    size_t count = 0;
    for (const policy_rule *at = rules->first; at != NULL; at = at->next) {
        bool is_open;
        if (policy_rule_is_about(at, what, plain, &is_open)) {
            if (out != NULL) {
                out[count] = (target_rule){at, is_open};
            }
            count++;
        }
    }
    return count;
}

/* In `memory`, or, where that is NULL, in memory of its own. NULL: out of memory. */
static policy_target *target_new(const policy_rules *rules, const policy_name *what, arena *memory)
{
    buf plain;
    buf_init(&plain, URI_BYTES);
    if (what->kind == POLICY_RESOURCE || what->kind == POLICY_SKILL) {
        uri_plain(&plain, what->name);
    }
    policy_target *made = NULL;
    if (plain.err == BAY_OK) {
        size_t count = find_rules(rules, what, buf_view(&plain), NULL);
        size_t bytes = sizeof(*made) + count * sizeof(made->rules[0]);
        made = memory != NULL ? arena_alloc(memory, bytes) : mem_alloc(bytes);
        if (made != NULL) {
            made->count = find_rules(rules, what, buf_view(&plain), made->rules);
        }
    }
    buf_fini(&plain);
    return made;
}

/* Clients make up URIs as they like, so those are not kept. */
static bool is_kept(const policy_name *what)
{
    return !what->is_unlisted && what->kind != POLICY_RESOURCE && what->kind != POLICY_SKILL;
}

static struct policy_index_map *index_map(policy_index *self)
{
    if (self->targets == NULL && (self->targets = mem_zalloc(sizeof(*self->targets))) != NULL) {
        map_init(&self->targets->by_name, POLICY_TARGETS);
        arena_init(&self->targets->memory, INDEX_BYTES);
    }
    return self->targets;
}

enum { KEY_BYTES = 2048 };

/* False: the name is longer than those that are kept. */
static bool write_key(const policy_name *what, buf *out)
{
    buf_char(out, (char)('a' + what->kind));
    buf_str(out, what->server);
    buf_char(out, '\0');
    buf_str(out, what->name);
    return out->err == BAY_OK;
}

/* `out_is_own`: mem_free is the caller's. */
static policy_target *target_of(policy_index *self, const policy_name *what, bool *out_is_own)
{
    char text[KEY_BYTES];
    buf key = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    struct policy_index_map *in = is_kept(what) ? index_map(self) : NULL;
    *out_is_own = true;
    if (in == NULL || !write_key(what, &key)) {
        return target_new(self->rules, what, NULL);
    }
    uint64_t hash = map_hash(&in->by_name, buf_view(&key));
    policy_target *found = map_get_hashed(&in->by_name, buf_view(&key), hash);
    if (found == NULL && in->by_name.len < POLICY_TARGETS) {
        bay_str kept;
        found = target_new(self->rules, what, &in->memory);
        if (found != NULL && (arena_dup(&in->memory, buf_view(&key), &kept) != BAY_OK ||
                              map_put_hashed(&in->by_name, kept, hash, found, NULL) != BAY_OK)) {
            found = NULL;
        }
    }
    *out_is_own = found == NULL;
    return found != NULL ? found : target_new(self->rules, what, NULL);
}

static void index_forget(policy_index *self)
{
    if (self->targets != NULL) {
        map_fini(&self->targets->by_name);
        arena_fini(&self->targets->memory);
        mem_free(self->targets);
        self->targets = NULL;
    }
}

void policy_index_set(policy_index *self, policy_rules *rules)
{
    if (rules != self->rules) {
        policy_rules *old = self->rules;
        self->rules = policy_rules_ref(rules);
        self->decide = policy_decide;
        self->origin = policy_origin_new;
        index_forget(self);
        policy_rules_unref(old);
    }
}

void policy_index_fini(policy_index *self)
{
    index_forget(self);
    policy_rules_unref(self->rules);
    self->rules = NULL;
}

/* ---- conditions ------------------------------------------------------------------------------- */

static policy_truth and (policy_truth a, policy_truth b)
{
    return a < b ? a : b;
}

static policy_truth or (policy_truth a, policy_truth b)
{
    return a > b ? a : b;
}

static policy_value text_value(bay_str text)
{
    return (policy_value){.kind = text.len > 0 ? VALUE_TEXT : VALUE_MISSING, .text = text};
}

/* The one place where rules read a principal and the origin of a call. */
static policy_value read_value(const policy_condition *self, const policy_question *question)
{
    const auth_principal *principal = question->principal;
    const policy_origin *origin = question->origin;
    json_val claim;
    switch (self->field) {
    case POLICY_SUBJECT:
        return text_value(principal_subject(principal));
    case POLICY_ISSUER:
        return text_value(principal_issuer(principal));
    case POLICY_CLIENT:
        return text_value(principal_client(principal));
    case POLICY_CLAIM:
        claim = principal_claim(principal, self->key);
        return (policy_value){.kind = json_is(claim, JSON_MISSING) ? VALUE_MISSING : VALUE_JSON,
                              .json = claim};
    case POLICY_CERTIFICATE:
        return principal_has_proof(principal, PRINCIPAL_CERTIFICATE)
                   ? text_value(principal_subject(principal))
                   : (policy_value){.kind = VALUE_MISSING};
    case POLICY_HEADER:
        for (size_t i = 0; origin != NULL && i < origin->header_count; i++) {
            if (str_eq(origin->headers[i].name, self->key)) {
                return (policy_value){.kind =
                                          origin->headers[i].is_twice ? VALUE_UNCLEAR : VALUE_TEXT,
                                      .text = origin->headers[i].value};
            }
        }
        return (policy_value){.kind = origin == NULL ? VALUE_UNCLEAR : VALUE_MISSING};
    default:
        return (policy_value){.kind = VALUE_UNCLEAR};
    }
}

static policy_truth address_truth(const policy_condition *self, const policy_origin *origin)
{
    if (origin == NULL || !origin->has_address) {
        return POLICY_UNKNOWN;
    }
    for (size_t i = 0; i < self->value_count; i++) {
        if (network_has(&self->networks[i], &origin->address)) {
            return POLICY_YES;
        }
    }
    return POLICY_NO;
}

/* Scopes that are granted for the time of a question; see is_unlocked. */
typedef struct extra_scopes {
    const bay_str *at;
    size_t count;
} extra_scopes;

static size_t scopes_missing(const policy_condition *self, const auth_principal *principal,
                             extra_scopes extra)
{
    size_t missing = 0;
    for (size_t i = 0; i < self->value_count; i++) {
        bool is_there = principal_has_scopes(principal, self->values[i]);
        for (size_t k = 0; k < extra.count && !is_there; k++) {
            is_there = str_eq(extra.at[k], self->values[i]);
        }
        missing += !is_there;
    }
    return missing;
}

static policy_truth condition_truth(const policy_rules *rules, const policy_condition *self,
                                    const policy_question *question, extra_scopes extra)
{
    switch (self->field) {
    case POLICY_ADDRESS:
        return address_truth(self, question->origin);
    case POLICY_SCOPES:
        return scopes_missing(self, question->principal, extra) == 0 ? POLICY_YES : POLICY_NO;
    default:
        return policy_compare(rules, self, read_value(self, question), question->principal);
    }
}

static policy_truth group_truth(const policy_rules *rules, const policy_condition *self,
                                const policy_question *question, extra_scopes extra)
{
    policy_truth member = POLICY_NO;
    for (size_t i = 0; i < self->value_count && member != POLICY_YES; i++) {
        policy_truth truth = POLICY_YES;
        for (const policy_condition *at = self->groups[i]->conditions;
             at != NULL && truth != POLICY_NO; at = at->next) {
            truth = and(truth, condition_truth(rules, at, question, extra));
        }
        member = or (member, truth);
    }
    return member;
}

/* `out_missing`: scopes that a rule that allows lacks; they count as granted then. */
static policy_truth identity_truth(const policy_rules *rules, const policy_rule *self,
                                   const policy_question *question, extra_scopes extra,
                                   const policy_condition **out_lacked, size_t *out_missing)
{
    policy_truth truth = POLICY_YES;
    *out_missing = 0;
    *out_lacked = NULL;
    for (const policy_condition *at = self->identity; at != NULL && truth != POLICY_NO;
         at = at->next) {
        if (at->field == POLICY_SCOPES && self->effect == POLICY_ALLOW) {
            size_t missing = scopes_missing(at, question->principal, extra);
            *out_lacked = missing > 0 ? at : *out_lacked;
            *out_missing += missing;
        } else if (at->field == POLICY_GROUP) {
            truth = and(truth, group_truth(rules, at, question, extra));
        } else {
            truth = and(truth, condition_truth(rules, at, question, extra));
        }
    }
    return truth;
}

/* A request with two `arguments` says nothing about them. */
static bool read_arguments(const policy_question *question, json_val *out)
{
    static const bay_str name = STR_INIT("arguments");
    *out = JSON_NONE;
    return !json_is(question->params, JSON_OBJECT) ||
           json_pick(question->params, &name, 1, out, NULL) == BAY_OK;
}

static policy_truth argument_truth(const policy_rules *rules, const policy_rule *self,
                                   const policy_question *question)
{
    policy_truth truth = POLICY_YES;
    json_val arguments;
    if (self->arguments == NULL) {
        return POLICY_YES;
    }
    if (question->is_listing) {
        return POLICY_MAYBE;
    }
    if (!read_arguments(question, &arguments)) {
        return POLICY_UNKNOWN;
    }
    for (const policy_condition *at = self->arguments; at != NULL && truth != POLICY_NO;
         at = at->next) {
        policy_value value = policy_value_at(arguments, at->tokens, at->token_count);
        truth = and(truth, policy_compare(rules, at, value, question->principal));
    }
    return truth;
}

/* ---- deciding --------------------------------------------------------------------------------- */

typedef struct tally {
    const policy_rule *denies_all; /* whatever the arguments are */
    const policy_rule *denies;
    const policy_rule *allows_some;
    const policy_rule *allows;
    const policy_rule *approves;
    const policy_rule *locked; /* would allow with further scopes: the fewest */
    const policy_condition *lacked;
    size_t missing;
    bool is_named; /* of a method: some rule allows it, so the default is to deny it */
} tally;

static void count_allow(tally *self, const policy_rule *rule, policy_truth identity,
                        const policy_condition *lacked, size_t missing, policy_truth arguments)
{
    self->is_named = true;
    if (identity != POLICY_YES) {
        return;
    }
    if (missing > 0) {
        if (self->locked == NULL || missing < self->missing) {
            self->locked = rule;
            self->lacked = lacked;
            self->missing = missing;
        }
        return;
    }
    self->allows_some = rule;
    self->allows = arguments == POLICY_YES ? rule : self->allows;
}

static void count_rule(const policy_rules *rules, const target_rule *at,
                       const policy_question *question, extra_scopes extra, tally *out)
{
    const policy_rule *rule = at->rule;
    const policy_condition *lacked;
    size_t missing;
    if (!is_about_method(rule, question->method)) {
        return;
    }
    policy_truth identity = identity_truth(rules, rule, question, extra, &lacked, &missing);
    if (identity == POLICY_NO) {
        out->is_named = out->is_named || rule->effect == POLICY_ALLOW;
        return;
    }
    policy_truth arguments = argument_truth(rules, rule, question);
    switch (rule->effect) {
    case POLICY_ALLOW:
        count_allow(out, rule, identity, lacked, missing, arguments);
        break;
    case POLICY_DENY:
        if (rule->arguments == NULL && !at->is_open) {
            out->denies_all = rule;
        }
        out->denies = arguments != POLICY_NO ? rule : out->denies;
        break;
    default:
        out->approves = arguments != POLICY_NO ? rule : out->approves;
        break;
    }
}

static tally count_rules(const policy_rules *rules, const policy_target *target,
                         const policy_question *question, extra_scopes extra)
{
    tally sum = {0};
    for (size_t i = 0; i < target->count; i++) {
        count_rule(rules, &target->rules[i], question, extra, &sum);
    }
    return sum;
}

/* Does the method, or the thing, need a rule that allows it? */
static bool needs_allow(const policy_rules *rules, const policy_question *question,
                        const tally *sum)
{
    return question->about.kind == POLICY_METHOD ? sum->is_named : rules->fallback == POLICY_DENY;
}

/* Would it be there with the scopes that `sum->locked` wants? A rule that denies may want them too.
 */
static bool is_unlocked(const policy_rules *rules, const policy_target *target,
                        const policy_question *question, const tally *sum)
{
    extra_scopes extra = {sum->lacked->values, sum->lacked->value_count};
    tally with = count_rules(rules, target, question, extra);
    return with.denies_all == NULL && with.allows_some != NULL;
}

static policy_decision conclude(const policy_rules *rules, const policy_target *target,
                                const policy_question *question)
{
    tally sum = count_rules(rules, target, question, (extra_scopes){NULL, 0});
    bool needs = needs_allow(rules, question, &sum);
    if (sum.denies_all != NULL) {
        return (policy_decision){.outcome = POLICY_HIDDEN, .rule = sum.denies_all};
    }
    if (needs && sum.allows_some == NULL) {
        bool is_locked = sum.locked != NULL && !rules->hides_locked &&
                         principal_has_proof(question->principal, PRINCIPAL_TOKEN) &&
                         is_unlocked(rules, target, question, &sum);
        return is_locked ? (policy_decision){.outcome = POLICY_LOCKED,
                                             .rule = sum.locked,
                                             .scopes = sum.lacked->joined}
                         : (policy_decision){.outcome = POLICY_HIDDEN};
    }
    if (question->is_listing) {
        return (policy_decision){.outcome = POLICY_ALLOWED, .rule = sum.allows_some};
    }
    if (sum.denies != NULL || (needs && sum.allows == NULL)) {
        return (policy_decision){.outcome = POLICY_DENIED, .rule = sum.denies};
    }
    return sum.approves != NULL
               ? (policy_decision){.outcome = POLICY_APPROVAL, .rule = sum.approves}
               : (policy_decision){.outcome = POLICY_ALLOWED, .rule = sum.allows};
}

policy_decision policy_decide(policy_index *self, const policy_question *question)
{
    if (self->rules == NULL) {
        return (policy_decision){.outcome = POLICY_ALLOWED};
    }
    bool is_own;
    policy_target *target = target_of(self, &question->about, &is_own);
    if (target == NULL) {
        return (policy_decision){.outcome = POLICY_HIDDEN};
    }
    policy_decision decision = conclude(self->rules, target, question);
    decision.line = decision.rule != NULL ? decision.rule->line : 0;
    if (is_own) {
        mem_free(target);
    }
    return decision;
}

/* ---- explaining ------------------------------------------------------------------------------- */

bool policy_rules_read_origin(const policy_rules *self)
{
    return self != NULL && (self->header_count > 0 || self->reads_address);
}

const policy_origin *policy_origin_new(const policy_rules *rules, const net_address *address,
                                       const http_field *fields, size_t count, arena *memory)
{
    if (address == NULL && !policy_rules_read_origin(rules)) {
        return NULL;
    }
    size_t header_count = rules != NULL ? rules->header_count : 0;
    policy_origin *made = arena_zalloc(memory, sizeof(*made));
    policy_header *headers = arena_array(memory, header_count + 1, sizeof(*headers));
    if (made == NULL || headers == NULL) {
        return NULL;
    }
    if (address != NULL) {
        made->address = *address;
        made->has_address = true;
    }
    for (size_t i = 0; i < header_count; i++) {
        size_t times = http1_field_count(fields, count, rules->headers[i]);
        bay_str value = http1_field_find(fields, count, rules->headers[i]);
        policy_header *at = &headers[made->header_count];
        if (times == 0) {
            continue;
        }
        at->is_twice = times > 1 || value.len > POLICY_HEADER_BYTES;
        if (arena_dup(memory, rules->headers[i], &at->name) != BAY_OK ||
            arena_dup(memory, at->is_twice ? STR("") : value, &at->value) != BAY_OK) {
            return NULL;
        }
        made->header_count++;
    }
    made->headers = headers;
    return made;
}

uint64_t policy_rules_hash(const policy_rules *self)
{
    return self != NULL ? self->hash : 0;
}

size_t policy_rules_count(const policy_rules *self)
{
    return self->count;
}

const policy_rule *policy_rules_at(const policy_rules *self, size_t index)
{
    const policy_rule *at = self->first;
    while (at != NULL && index-- > 0) {
        at = at->next;
    }
    return at;
}

policy_effect policy_rule_effect(const policy_rule *self)
{
    return self->effect;
}

uint32_t policy_rule_line(const policy_rule *self)
{
    return self->line;
}

bay_str policy_rule_by(const policy_rule *self)
{
    return self->by;
}

policy_truth policy_rule_holds(const policy_rules *rules, const policy_rule *self,
                               const policy_question *question, bool *out_is_about)
{
    const policy_condition *lacked;
    size_t missing;
    bool is_open;
    buf plain;
    buf_init(&plain, URI_BYTES);
    uri_plain(&plain, question->about.name);
    *out_is_about = policy_rule_is_about(self, &question->about, buf_view(&plain), &is_open) &&
                    is_about_method(self, question->method);
    buf_fini(&plain);
    if (!*out_is_about) {
        return POLICY_NO;
    }
    extra_scopes none = {NULL, 0};
    policy_truth identity = identity_truth(rules, self, question, none, &lacked, &missing);
    identity = missing > 0 ? POLICY_NO : identity;
    policy_truth arguments = argument_truth(rules, self, question);
    arguments = is_open && arguments == POLICY_YES ? POLICY_MAYBE : arguments;
    return identity == POLICY_NO || arguments != POLICY_MAYBE ? and(identity, arguments)
           : identity == POLICY_UNKNOWN                       ? POLICY_UNKNOWN
                                                              : POLICY_MAYBE;
}
