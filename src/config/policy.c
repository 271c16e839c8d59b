/* `groups` and `policy`: read, checked, and made into the rules that decide. */
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "config/internal.h"
#include "mcp/protocol.h"
#include "wire/header.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void apply_test(config_loader *loader, const config_key *key, const config_node *node,
                       const config_node *values, bay_str op, config_test *out)
{
    out->line = values->line;
    out->key = config_pool_dup(&loader->kept, node->key);
    out->op = config_pool_dup(&loader->kept, op);
    if (out->key.at == NULL || out->op.at == NULL) {
        loader->err = config_pool_err(&loader->kept);
        return;
    }
    config_apply_list(loader, key, values, &out->values);
}

static size_t tests_of(const config_node *node)
{
    size_t count = 0;
    for (const config_node *child = node->first; child != NULL; child = child->next) {
        count += child->kind == CONFIG_NODE_MAP ? child->count : 1;
    }
    return count;
}

void config_apply_tests(config_loader *loader, const config_key *key, const config_node *node,
                        config_tests *field)
{
    if (node->kind != CONFIG_NODE_MAP) {
        config_error(loader, node->line, "%s needs a map, such as {/groups: {has: ops}}",
                     loader->path);
        return;
    }
    size_t count = tests_of(node);
    if (count > key->max) {
        config_error(loader, node->line, "%s holds %zu conditions, %llu is the most: shorten it",
                     loader->path, count, (unsigned long long)key->max);
        return;
    }
    config_test *tests = config_keep_array(loader, count + 1, sizeof(*tests));
    if (tests == NULL || !config_check_twice(loader, node)) {
        return;
    }
    config_test *next = tests;
    for (const config_node *child = node->first; child != NULL && loader->err == BAY_OK;
         child = child->next) {
        size_t before = config_path_enter(loader, child->key);
        if (child->kind != CONFIG_NODE_MAP) {
            apply_test(loader, key, child, child, STR(""), next++);
        } else if (child->count == 0) {
            config_error(loader, child->line, "%s needs an operator and a value", loader->path);
        } else if (config_check_twice(loader, child)) {
            for (const config_node *op = child->first; op != NULL && loader->err == BAY_OK;
                 op = op->next) {
                apply_test(loader, key, child, op, op->key, next++);
            }
        }
        config_path_leave(loader, before);
    }
    *field = (config_tests){tests, (size_t)(next - tests)};
}

void config_apply_rules(config_loader *loader, const config_key *key, const config_node *node,
                        config_rules *field)
{
    if (node->kind != CONFIG_NODE_LIST || node->count > key->max) {
        config_error(loader, node->line,
                     "%s needs a list of at most %llu rules: begin each with a -", loader->path,
                     (unsigned long long)key->max);
        return;
    }
    config_rule *rules = config_keep_array(loader, node->count + 1, sizeof(*rules));
    size_t count = 0;
    for (const config_node *child = node->first;
         rules != NULL && child != NULL && loader->err == BAY_OK; child = child->next) {
        char number[24];
        config_rule *rule = &rules[count++];
        rule->line = child->kind == CONFIG_NODE_MAP && child->first != NULL ? child->first->line
                                                                            : child->line;
        (void)snprintf(number, sizeof(number), "%zu", count);
        size_t before = config_path_enter(loader, str_of(number));
        config_apply_map(loader, CONFIG_SCOPE_RULE, child, rule);
        config_path_leave(loader, before);
    }
    *field = (config_rules){rules, count};
}

/* ---- checking -------------------------------------------------------------------------------- */

/* What one rule is made into, and where its mistakes are told. */
typedef struct rule_maker {
    config_loader *loader;
    const config *config;
    policy_rules *rules;
    policy_rule *rule;   /* or … */
    policy_group *group; /* … */
    const char *place;   /* "policy.rules.3" */
    bool has_rates;      /* some tool has */
} rule_maker;

/* False after saying why. */
static bool fits(const rule_maker *self, uint32_t line, const char *key, bay_err err,
                 const bay_diag *diag)
{
    if (err == BAY_ERR_NOMEM) {
        self->loader->err = err;
    } else if (err != BAY_OK) {
        config_error(self->loader, line, "%s.%s: %s", self->place, key,
                     diag->text[0] != '\0' ? diag->text : "the rules are too large");
    }
    return err == BAY_OK;
}

static void add_test(const rule_maker *self, uint32_t line, const char *key,
                     const policy_test *test)
{
    bay_diag diag = {0};
    bay_err err = self->rule != NULL ? policy_rule_if(self->rules, self->rule, test, &diag)
                                     : policy_group_if(self->rules, self->group, test, &diag);
    (void)fits(self, line, key, err, &diag);
}

static void add_list(const rule_maker *self, uint32_t line, const char *key, policy_field field,
                     const char *op, config_list values)
{
    if (values.at == NULL) {
        return;
    }
    policy_test test = {field, STR(""), str_of(op), values.at, values.count};
    add_test(self, line, key, &test);
}

static void add_tests(const rule_maker *self, const char *key, policy_field field,
                      config_tests tests)
{
    for (size_t i = 0; i < tests.count; i++) {
        const config_test *at = &tests.at[i];
        if (field == POLICY_HEADER && !header_name_is_valid(at->key)) {
            config_error(self->loader, at->line, "%s.%s: \"%s\" cannot name a header field",
                         self->place, key, config_quote(at->key).text);
            continue;
        }
        policy_test test = {field, at->key, at->op, at->values.at, at->values.count};
        add_test(self, at->line, key, &test);
    }
}

static void add_who(const rule_maker *self, uint32_t line, const config_who *who)
{
    add_list(self, line, "who.subject", POLICY_SUBJECT, "", who->subject);
    add_list(self, line, "who.issuer", POLICY_ISSUER, "", who->issuer);
    add_list(self, line, "who.client", POLICY_CLIENT, "glob", who->client);
    add_list(self, line, "who.scopes", POLICY_SCOPES, "", who->scopes);
    add_list(self, line, "who.group", POLICY_GROUP, "", who->group);
    add_list(self, line, "who.certificate", POLICY_CERTIFICATE, "glob", who->certificate);
    add_list(self, line, "who.address", POLICY_ADDRESS, "", who->address);
    add_tests(self, "who.claims", POLICY_CLAIM, who->claims);
    add_tests(self, "who.header", POLICY_HEADER, who->header);
}

/* The server's or agent's name that is nearest; NULL: there is none. */
static const char *nearest_server(const config *self, bay_str name)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < self->server_count + self->agent_count && name.len <= 64; i++) {
        bay_str at = i < self->server_count ? self->servers[i].name
                                            : self->agents[i - self->server_count].name;
        size_t distance = str_distance(at, name);
        if (distance < least) {
            least = distance;
            nearest = at.at;
        }
    }
    return nearest;
}

static bool has_server(const config *self, bay_str name)
{
    return config_server_find(self, name) != NULL || config_agent_find(self, name) != NULL;
}

static void refuse_server(const rule_maker *self, uint32_t line, const char *key, bay_str name)
{
    const char *nearest = nearest_server(self->config, name);
    config_error(self->loader, line, "%s.%s: there is no server or agent \"%s\"%s%s%s", self->place,
                 key, config_quote(name).text, nearest != NULL ? ": did you mean \"" : "",
                 nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static bool is_literal(bay_str text)
{
    return text.len > 0 && str_find(text, '*') == text.len && str_find(text, '?') == text.len;
}

/* A name that is written out has to be there: a rule that denies what nothing is called denies
 * nothing. */
static void check_pattern(const rule_maker *self, uint32_t line, const char *key, bay_str pattern)
{
    bay_str separator = self->config->separator;
    size_t colon = str_find(pattern, ':');
    bay_str kind = str_head(pattern, colon);
    bool is_named = str_eq(kind, STR("tool")) || str_eq(kind, STR("prompt"));
    bay_str name = is_named ? str_from(pattern, colon + 1) : pattern;
    if (str_eq(kind, STR("agent")) && colon < pattern.len) {
        bay_str agent = str_from(pattern, colon + 1);
        if (is_literal(agent) && config_agent_find(self->config, agent) == NULL) {
            refuse_server(self, line, key, agent);
        }
        return;
    }
    if ((colon < pattern.len && !is_named && str_find(separator, ':') == separator.len) ||
        self->config->bare_names) {
        return;
    }
    for (size_t at = 1; at < name.len; at++) {
        if (str_starts(str_from(name, at), separator)) {
            bay_str server = str_head(name, at);
            if (is_literal(server) && !has_server(self->config, server)) {
                refuse_server(self, line, key, server);
            }
            return;
        }
    }
}

static bool has_arguments(bay_str pattern)
{
    static const bay_str without[] = {STR_INIT("resource:"), STR_INIT("skill:"),
                                      STR_INIT("agent:")};
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        if (str_starts(pattern, without[i])) {
            return false;
        }
    }
    return true;
}

static void add_patterns(const rule_maker *self, const config_rule *rule, const char *key,
                         config_list patterns)
{
    for (size_t i = 0; i < patterns.count; i++) {
        bay_diag diag = {0};
        bay_err err = policy_rule_about(self->rules, self->rule, patterns.at[i],
                                        self->config->separator, &diag);
        if (!fits(self, rule->line, key, err, &diag)) {
            return;
        }
        check_pattern(self, rule->line, key, patterns.at[i]);
        if (rule->args.count > 0 && !has_arguments(patterns.at[i])) {
            config_error(self->loader, rule->args.at[0].line,
                         "%s.args: only tools and prompts have arguments: write a rule of its own "
                         "for entry %zu of %s",
                         self->place, i + 1, key);
        }
    }
}

/* Known ones only: a misspelt method would never be called. */
static void check_method(const rule_maker *self, const config_rule *rule, bay_str glob)
{
    static const bay_str of_a2a[] = {
#define A2A_METHOD(symbol, name, name_0_3, name_0_1, request, response, flags, call) STR_INIT(name),
#include "a2a/methods.def"
#undef A2A_METHOD
    };
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < MCP_METHOD_COUNT + ARRAY_LEN(of_a2a); i++) {
        bay_str name = i < MCP_METHOD_COUNT ? mcp_method_of((mcp_method_id)i)->text
                                            : of_a2a[i - MCP_METHOD_COUNT];
        size_t distance = glob.len <= 64 ? str_distance(name, glob) : SIZE_MAX;
        if (str_glob(glob, name)) {
            return;
        }
        if (distance < least) {
            least = distance;
            nearest = name.at;
        }
    }
    config_error(self->loader, rule->line,
                 "%s.method: there is no such method: did you mean \"%s\"?", self->place,
                 nearest != NULL ? nearest : "tools/call");
}

static void check_methods_of_arguments(const rule_maker *self, const config_rule *rule)
{
    bool has_call = rule->method.count == 0 || rule->args.count == 0;
    for (size_t i = 0; i < rule->method.count && !has_call; i++) {
        has_call = str_glob(rule->method.at[i], STR("tools/call")) ||
                   str_glob(rule->method.at[i], STR("prompts/get"));
    }
    if (!has_call) {
        config_error(self->loader, rule->args.at[0].line,
                     "%s.args: only tools/call and prompts/get have arguments: remove method or "
                     "args",
                     self->place);
    }
}

static bool has_group(const config *self, bay_str name)
{
    for (size_t i = 0; i < self->groups.count; i++) {
        if (str_eq(self->groups.at[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void make_rule(rule_maker *self, const config_rule *rule)
{
    static const struct {
        const char *key;
        size_t offset;
        policy_effect effect;
    } kinds[] = {{"allow", offsetof(config_rule, allow), POLICY_ALLOW},
                 {"deny", offsetof(config_rule, deny), POLICY_DENY},
                 {"approve", offsetof(config_rule, approve), POLICY_APPROVE}};
    size_t which = 3;
    size_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (((const config_list *)(const void *)((const char *)rule + kinds[i].offset))->at !=
            NULL) {
            which = i;
            count++;
        }
    }
    if (count != 1) {
        config_error(self->loader, rule->line, "%s has one of allow, deny and approve",
                     self->place);
        return;
    }
    if (rule->by.len > 0 && kinds[which].effect != POLICY_APPROVE) {
        config_error(self->loader, rule->line, "%s.by: only approve has it", self->place);
    }
    if (rule->by.len > 0 && !has_group(self->config, rule->by)) {
        config_error(self->loader, rule->line,
                     "%s.by: there is no group of that name: write it below groups", self->place);
    }
    bay_diag diag = {0};
    bay_err err =
        policy_rules_add(self->rules, kinds[which].effect, rule->line, rule->by, &self->rule);
    if (!fits(self, rule->line, kinds[which].key, err, &diag)) {
        return;
    }
    add_patterns(self, rule, kinds[which].key,
                 *(const config_list *)(const void *)((const char *)rule + kinds[which].offset));
    add_who(self, rule->line, &rule->who);
    for (size_t i = 0; i < rule->server.count && err == BAY_OK; i++) {
        err = policy_rule_server(self->rules, self->rule, rule->server.at[i]);
        if (!has_server(self->config, rule->server.at[i])) {
            refuse_server(self, rule->line, "server", rule->server.at[i]);
        }
    }
    for (size_t i = 0; i < rule->method.count && err == BAY_OK; i++) {
        err = policy_rule_method(self->rules, self->rule, rule->method.at[i]);
        check_method(self, rule, rule->method.at[i]);
    }
    (void)fits(self, rule->line, "server", err, &diag);
    add_tests(self, "args", POLICY_ARGUMENT, rule->args);
    check_methods_of_arguments(self, rule);
}

static void make_groups(rule_maker *self)
{
    const config_groups *groups = &self->config->groups;
    for (size_t i = 0; i < groups->count && self->loader->err == BAY_OK; i++) {
        char place[96];
        const config_group *at = &groups->at[i];
        bay_diag diag = {0};
        (void)snprintf(place, sizeof(place), "groups.%s", config_quote(at->name).text);
        self->place = place;
        self->rule = NULL;
        bay_err err = policy_rules_group(self->rules, at->name, &self->group);
        if (!fits(self, at->line, "claims", err, &diag)) {
            return;
        }
        if (at->subject.count == 0 && at->claims.count == 0) {
            config_error(self->loader, at->line, "%s has no member: give subject or claims", place);
        }
        add_list(self, at->line, "subject", POLICY_SUBJECT, "", at->subject);
        add_tests(self, "claims", POLICY_CLAIM, at->claims);
    }
    self->place = "";
}

static const config_node *member_of(const config_node *node, const char *name)
{
    const config_node *at = node != NULL && node->kind == CONFIG_NODE_MAP ? node->first : NULL;
    while (at != NULL && !str_eq(at->key, str_of(name))) {
        at = at->next;
    }
    return at;
}

static void check_idempotency(const rule_maker *self, const config_node *node,
                              const policy_idempotency *how)
{
    if (how->argument.len > 0 && how->argument.at[0] != '/') {
        config_error(self->loader, config_line_of(node, "argument"),
                     "%s.argument: write a JSON pointer, such as /reference", self->place);
    }
    if (how->header.len > 0 && !header_name_is_valid(how->header)) {
        config_error(self->loader, config_line_of(node, "header"),
                     "%s.header: \"%s\" cannot name a header field", self->place,
                     config_quote(how->header).text);
    }
}

/* `text` "": there is none. */
static policy_rate read_rate(config_loader *loader, const config_node *node, const char *place,
                             const char *key, bay_str text)
{
    policy_rate rate = {0};
    bay_diag diag = {0};
    if (text.len > 0 && policy_rate_parse(text, &rate, &diag) != BAY_OK) {
        config_error(loader, config_line_of(node, key), "%s.%s: %s", place, key, diag.text);
    }
    return rate;
}

/* A call that costs more than a rate lets through at once could never be made. */
static void check_cost(const rule_maker *self, const config_node *node, const char *place,
                       const policy_tool *settings)
{
    const policy_rate *const rates[] = {&settings->rate, &settings->total,
                                        &self->config->rates.tool, &self->config->rates.server};
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        if (rates[i]->count > 0 && settings->cost > rates[i]->burst) {
            config_error(self->loader, config_line_of(node, "cost"),
                         "%s.cost: %u is more than the %u calls that one of its rates lets through "
                         "at once, so that it could never be called",
                         place, settings->cost, rates[i]->burst);
            return;
        }
    }
}

static void read_rates(rule_maker *self, const config_node *node, const config_tool *tool,
                       policy_tool *settings)
{
    char place[CONFIG_NAME_BYTES + 48];
    (void)snprintf(place, sizeof(place), "policy.tools.%s", config_quote(tool->name).text);
    settings->rate = read_rate(self->loader, node, place, "rate", tool->rate);
    settings->total = read_rate(self->loader, node, place, "total", tool->total);
    settings->cost = member_of(node, "cost") != NULL ? tool->cost : 0;
    check_cost(self, node, place, settings);
    self->has_rates = self->has_rates || settings->rate.count > 0 || settings->total.count > 0;
}

static void make_rates(config_loader *loader, const config_node *section, config *self)
{
    const config_rates *from = &self->policy.rates;
    const struct {
        const char *key;
        bay_str text;
        policy_rate *rate;
    } rows[] = {{"address", from->address, &self->rates.address},
                {"principal", from->principal, &self->rates.principal},
                {"tool", from->tool, &self->rates.tool},
                {"server", from->server, &self->rates.server}};
    for (size_t i = 0; section != NULL && i < ARRAY_LEN(rows); i++) {
        *rows[i].rate = read_rate(loader, section, "policy.rates", rows[i].key, rows[i].text);
        self->has_rates = self->has_rates || rows[i].rate->count > 0;
    }
}

static void make_tool(rule_maker *self, const config_node *node, const config_tool *tool,
                      policy_tools *tools)
{
    const config_node *idempotency = member_of(node, "idempotency");
    policy_tool settings = {.idempotency = idempotency != NULL ? &tool->idempotency : NULL,
                            .result_bytes =
                                member_of(node, "result") != NULL ? tool->result.bytes : 0};
    size_t other;
    check_pattern(self, tool->line, "tools", tool->name);
    read_rates(self, node, tool, &settings);
    if (idempotency != NULL) {
        char place[CONFIG_NAME_BYTES + 48];
        (void)snprintf(place, sizeof(place), "policy.tools.%s.idempotency",
                       config_quote(tool->name).text);
        rule_maker inner = *self;
        inner.place = place;
        check_idempotency(&inner, idempotency, &tool->idempotency);
    }
    bay_err err = policy_tools_add(tools, tool->name, &settings, &other);
    if (err == BAY_ERR_DUPLICATE) {
        config_error(self->loader, tool->line,
                     "policy.tools: \"%s\" and \"%s\" are equally specific, match the same names "
                     "and differ: make one of them more specific, or write the setting in both "
                     "alike",
                     config_quote(tool->name).text,
                     config_quote(policy_tools_pattern(tools, other)).text);
    } else if (err != BAY_OK) {
        self->loader->err = err;
    }
}

/* Each row was read from the node at its place. */
static void make_tools(config_loader *loader, const config_node *section, config *self)
{
    const config_tools *rows = &self->policy.tools;
    rule_maker maker = {.loader = loader, .config = self, .place = "policy"};
    if (rows->count == 0 || section == NULL) {
        return;
    }
    if (policy_tools_new(&self->tools) != BAY_OK) { /* config_free gives it back */
        loader->err = BAY_ERR_NOMEM;
        return;
    }
    const config_node *node = section->first;
    for (size_t i = 0; i < rows->count && node != NULL && loader->err == BAY_OK; i++) {
        make_tool(&maker, node, &rows->at[i], self->tools);
        node = node->next;
    }
    self->has_rates = self->has_rates || maker.has_rates;
}

/* Nothing is on that is not configured: without `policy` there are no rules. */
void config_check_policy(config_loader *loader, const config_node *root, config *self)
{
    const config_policy *policy = &self->policy;
    const config_node *section = member_of(root, "policy");
    if (section == NULL || section->kind != CONFIG_NODE_MAP) {
        return;
    }
    make_rates(loader, member_of(section, "rates"), self);
    make_tools(loader, member_of(section, "tools"), self);
    if (member_of(section, "rules") == NULL && member_of(section, "default") == NULL &&
        (self->tools != NULL || member_of(section, "rates") != NULL)) {
        return;
    }
    if (member_of(section, "default") == NULL) {
        config_error(loader, section->line,
                     "policy.default is missing: write deny or allow, for what no rule is about");
        return;
    }
    rule_maker maker = {.loader = loader, .config = self, .place = ""};
    policy_effect fallback = policy->fallback == CONFIG_ALLOW ? POLICY_ALLOW : POLICY_DENY;
    if (policy_rules_new(fallback, policy->locked == CONFIG_LOCKED_HIDE, &maker.rules) != BAY_OK) {
        loader->err = BAY_ERR_NOMEM;
        return;
    }
    self->rules = maker.rules; /* config_free gives it back */
    make_groups(&maker);
    for (size_t i = 0; i < policy->rules.count && loader->err == BAY_OK; i++) {
        char place[48];
        (void)snprintf(place, sizeof(place), "policy.rules.%zu", i + 1);
        maker.place = place;
        make_rule(&maker, &policy->rules.at[i]);
        maker.place = "";
    }
}
