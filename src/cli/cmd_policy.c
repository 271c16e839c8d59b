/* policy: what the rules of a configuration decide of a call, with each rule that is about it; and
 * whether they decide as a file of examples says. Both ask the function that the gateway asks. */
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/pairs.h"
#include "cli/print.h"
#include "cli/say.h"
#include "config/document.h"
#include "wire/chars.h"
#include "json/build.h"

enum { MEMORY_BYTES = 64 << 20, EXAMPLES = 10000, NAME_BYTES = 1024, READ_MS = 10000 };

/* One question to the rules, and what it is made of. */
typedef struct inquiry {
    const config *settings;
    policy_index index;
    policy_question question;
    policy_origin origin;
    policy_header headers[POLICY_HEADERS];
    arena memory;
    const char *place; /* where its mistakes are; "": the command line */
    uint32_t line;
} inquiry;

static void inquiry_init(inquiry *self, const config *settings)
{
    *self = (inquiry){.settings = settings, .place = ""};
    arena_init(&self->memory, MEMORY_BYTES);
    policy_index_set(&self->index, settings->rules);
    self->origin.headers = self->headers;
    self->question.origin = &self->origin;
}

static void inquiry_fini(inquiry *self)
{
    policy_index_fini(&self->index);
    principal_unref(self->question.principal);
    arena_fini(&self->memory);
}

static cli_exit inquiry_refuse(const inquiry *self, const char *what)
{
    if (self->line == 0) {
        cli_say("%s", what);
        return CLI_EXIT_USAGE;
    }
    cli_say("%s:%u: %s", self->place, self->line, what);
    return CLI_EXIT_CONFIG;
}

/* ---- what it is about ------------------------------------------------------------------------ */

/* The server whose name and the separator `name` begins with; "": none. */
static bay_str server_of(const config *settings, bay_str name)
{
    for (size_t at = 1; at < name.len && at <= CONFIG_NAME_BYTES; at++) {
        if (str_starts(str_from(name, at), settings->separator) &&
            config_server_find(settings, str_head(name, at)) != NULL) {
            return str_head(name, at);
        }
    }
    return STR("");
}

/* `name`: as rules name it. By the method that uses such a thing. */
static void set_name(inquiry *self, bay_str name)
{
    static const struct {
        bay_str word;
        policy_kind kind;
        bay_str method;
    } kinds[] = {
        {STR_INIT("tool:"), POLICY_TOOL, STR_INIT("tools/call")},
        {STR_INIT("prompt:"), POLICY_PROMPT, STR_INIT("prompts/get")},
        {STR_INIT("resource:"), POLICY_RESOURCE, STR_INIT("resources/read")},
        {STR_INIT("skill:"), POLICY_SKILL, STR_INIT("skills/get")},
        {STR_INIT("agent:"), POLICY_AGENT, STR_INIT("SendMessage")},
    };
    size_t which = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_starts(name, kinds[i].word)) {
            which = i;
            name = str_from(name, kinds[i].word.len);
            break;
        }
    }
    policy_kind kind = kinds[which].kind;
    self->question.about =
        (policy_name){.kind = kind,
                      .name = name,
                      .server = kind == POLICY_AGENT ? name : server_of(self->settings, name)};
    self->question.method = kinds[which].method;
}

/* ---- who asks, and from where ---------------------------------------------------------------- */

/* Without a subject it is nobody in particular. */
static cli_exit set_principal(inquiry *self, const principal_parts *parts)
{
    bool has_more = parts->scopes.len > 0 || parts->issuer.len > 0 || parts->client.len > 0 ||
                    !json_is(parts->claims, JSON_MISSING);
    if (parts->subject.len == 0) {
        return has_more ? inquiry_refuse(self, "scopes, claims, issuer and client are those of a "
                                               "subject: say whose, with --as or as")
                        : CLI_EXIT_OK;
    }
    bay_err err = principal_new(parts, &self->question.principal);
    return err == BAY_OK
               ? CLI_EXIT_OK
               : inquiry_refuse(self, "the subject cannot be: texts are UTF-8, scopes are "
                                      "separated by single spaces, claims are an object");
}

static cli_exit set_address(inquiry *self, bay_str text)
{
    self->origin.has_address = address_parse(text, &self->origin.address) == BAY_OK;
    return self->origin.has_address
               ? CLI_EXIT_OK
               : inquiry_refuse(self, "the address cannot be read: write 10.0.0.7 or fd00::7");
}

/* A field that is said again is there twice. */
static cli_exit add_header(inquiry *self, bay_str name, bay_str value)
{
    size_t count = self->origin.header_count;
    policy_header *field = &self->headers[count < POLICY_HEADERS ? count : 0];
    char *lower = arena_alloc(&self->memory, name.len + 1);
    bay_str kept;
    if (lower == NULL || count == POLICY_HEADERS ||
        arena_dup(&self->memory, value, &kept) != BAY_OK) {
        return inquiry_refuse(self, "there are too many header fields");
    }
    for (size_t i = 0; i < name.len; i++) {
        lower[i] = char_lower(name.at[i]);
    }
    *field = (policy_header){.name = {lower, name.len}, .value = kept};
    for (size_t i = 0; i < count; i++) {
        if (str_eq(self->headers[i].name, field->name)) {
            self->headers[i].is_twice = true;
            return CLI_EXIT_OK;
        }
    }
    self->origin.header_count++;
    return CLI_EXIT_OK;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *effect_text(policy_effect effect)
{
    return effect == POLICY_ALLOW ? "allow" : effect == POLICY_DENY ? "deny" : "approve";
}

static const char *truth_text(policy_truth truth)
{
    static const char *const texts[] = {[POLICY_NO] = "no",
                                        [POLICY_UNKNOWN] = "unknown",
                                        [POLICY_YES] = "yes",
                                        [POLICY_MAYBE] = "depends on which it becomes"};
    return texts[truth];
}

static bool is_listed(inquiry *self)
{
    policy_question question = self->question;
    question.is_listing = true;
    return policy_decide(&self->index, &question).outcome != POLICY_HIDDEN;
}

static void write_decision(inquiry *self, const policy_decision *decision, bay_str name, buf *out)
{
    output_line(out, name);
    buf_printf(out, ": %s", policy_outcome_text(decision->outcome));
    if (decision->rule != NULL) {
        buf_printf(out, ", by the rule in line %u", policy_rule_line(decision->rule));
    } else {
        buf_lit(out, ", by policy.default");
    }
    if (decision->scopes.len > 0) {
        buf_printf(out, "; the scopes %.*s would do", BAY_STR(decision->scopes));
    }
    buf_printf(out, "; %s\n", is_listed(self) ? "it is listed" : "it is not listed");
}

static void write_rules(const inquiry *self, buf *out)
{
    const policy_rules *rules = self->settings->rules;
    size_t others = 0;
    for (size_t i = 0; i < policy_rules_count(rules); i++) {
        bool is_about;
        const policy_rule *rule = policy_rules_at(rules, i);
        policy_truth truth = policy_rule_holds(rules, rule, &self->question, &is_about);
        if (is_about) {
            buf_printf(out, "  line %-5u %-8s %s%s\n", policy_rule_line(rule),
                       effect_text(policy_rule_effect(rule)), truth_text(truth),
                       truth == POLICY_UNKNOWN ? ": what it reads is missing or has another type"
                                               : "");
        }
        others += !is_about;
    }
    if (others > 0) {
        buf_printf(out, "  %zu %s about something else\n", others,
                   others == 1 ? "rule is" : "rules are");
    }
}

static void put_text(json_writer *json, bay_str key, const char *text)
{
    json_key(json, key);
    json_put_str(json, str_of(text));
}

static void write_json(inquiry *self, const policy_decision *decision, bay_str name, buf *out)
{
    const policy_rules *rules = self->settings->rules;
    json_writer json;
    json_writer_init(&json, out);
    json_open_object(&json);
    json_key_lit(&json, "name");
    json_put_str(&json, name);
    put_text(&json, STR("outcome"), policy_outcome_text(decision->outcome));
    if (decision->rule != NULL) {
        json_key_lit(&json, "line");
        json_put_uint(&json, policy_rule_line(decision->rule));
    }
    json_key_lit(&json, "listed");
    json_put_bool(&json, is_listed(self));
    json_key_lit(&json, "scopes");
    json_put_str(&json, decision->scopes);
    json_key_lit(&json, "rules");
    json_open_array(&json);
    for (size_t i = 0; i < policy_rules_count(rules); i++) {
        bool is_about;
        const policy_rule *rule = policy_rules_at(rules, i);
        policy_truth truth = policy_rule_holds(rules, rule, &self->question, &is_about);
        if (is_about) {
            json_open_object(&json);
            json_key_lit(&json, "line");
            json_put_uint(&json, policy_rule_line(rule));
            put_text(&json, STR("effect"), effect_text(policy_rule_effect(rule)));
            put_text(&json, STR("holds"), truth_text(truth));
            json_close_object(&json);
        }
    }
    json_close_array(&json);
    json_close_object(&json);
}

/* ---- explain --------------------------------------------------------------------------------- */

static cli_exit print_explanation(inquiry *self, const cli_arguments *arguments)
{
    output device;
    buf text;
    policy_decision decision = policy_decide(&self->index, &self->question);
    bay_str name = str_of(arguments->name);
    cli_print_init(&device, &text, arguments);
    cli_exit code;
    if (arguments->is_json) {
        write_json(self, &decision, name, &text);
        code = cli_print_json(&device, buf_view(&text), CLI_EXIT_OK);
    } else {
        write_decision(self, &decision, name, &text);
        write_rules(self, &text);
        code = cli_print(&device, &text, CLI_EXIT_OK);
    }
    buf_fini(&text);
    return code;
}

static cli_exit read_headers(inquiry *self, const cli_arguments *arguments)
{
    cli_exit code = CLI_EXIT_OK;
    for (size_t i = 0; i < arguments->header_count && code == CLI_EXIT_OK; i++) {
        bay_str name;
        bay_diag diag = {0};
        buf value;
        buf_init_secret(&value, POLICY_HEADER_BYTES);
        bay_err err = cli_header_read(arguments->headers[i], &name, &value, &diag);
        code = err == BAY_OK ? add_header(self, name, buf_view(&value))
                             : inquiry_refuse(self, diag.text);
        buf_fini(&value);
    }
    return code;
}

static cli_exit read_asker(inquiry *self, const cli_arguments *arguments)
{
    json_doc claims;
    principal_parts parts = {
        .proof = PRINCIPAL_TOKEN,
        .subject = str_of(arguments->subject != NULL ? arguments->subject : ""),
        .issuer = str_of(arguments->issuer != NULL ? arguments->issuer : ""),
        .client = str_of(arguments->client_id != NULL ? arguments->client_id : ""),
        .scopes = str_of(arguments->scope != NULL ? arguments->scope : ""),
        .claims = JSON_NONE};
    if (arguments->claims != NULL) {
        bay_err err = json_parse(&claims, str_of(arguments->claims), NULL, &self->memory, NULL);
        if (err != BAY_OK) {
            return inquiry_refuse(self, "--claims is not JSON: write '{\"groups\": [\"ops\"]}'");
        }
        parts.claims = json_root(&claims);
    }
    cli_exit code = set_principal(self, &parts);
    if (code == CLI_EXIT_OK && arguments->address != NULL) {
        code = set_address(self, str_of(arguments->address));
    }
    return code == CLI_EXIT_OK ? read_headers(self, arguments) : code;
}

static cli_exit explain(const cli_arguments *arguments, const config *settings)
{
    inquiry self;
    json_builder made;
    inquiry_init(&self, settings);
    set_name(&self, str_of(arguments->name));
    cli_exit code = cli_pairs_params(arguments, false, &made, &self.question.params);
    code = code == CLI_EXIT_OK ? read_asker(&self, arguments) : code;
    code = code == CLI_EXIT_OK ? print_explanation(&self, arguments) : code;
    json_builder_drop(&made);
    inquiry_fini(&self);
    return code;
}

/* ---- test ------------------------------------------------------------------------------------ */

typedef enum example_key {
    EXAMPLE_NAME,
    EXAMPLE_EXPECT,
    EXAMPLE_METHOD,
    EXAMPLE_AS,
    EXAMPLE_ISSUER,
    EXAMPLE_CLIENT,
    EXAMPLE_SCOPES,
    EXAMPLE_CLAIMS,
    EXAMPLE_CERTIFICATE,
    EXAMPLE_ADDRESS,
    EXAMPLE_HEADER,
    EXAMPLE_ARGS,
    EXAMPLE_KEYS,
} example_key;

static const struct {
    const char *name;
    json_kind kind;
    const char *wanted;
} keys[EXAMPLE_KEYS] = {
    [EXAMPLE_NAME] = {"name", JSON_STRING, "a text: files.read, prompt:files.p or agent:research"},
    [EXAMPLE_EXPECT] = {"expect", JSON_STRING,
                        "allowed, approval needed, denied, locked or hidden"},
    [EXAMPLE_METHOD] = {"method", JSON_STRING, "a text, such as tools/call"},
    [EXAMPLE_AS] = {"as", JSON_STRING, "a text: the subject"},
    [EXAMPLE_ISSUER] = {"issuer", JSON_STRING, "a text"},
    [EXAMPLE_CLIENT] = {"client", JSON_STRING, "a text"},
    [EXAMPLE_SCOPES] = {"scopes", JSON_STRING, "a text: scopes separated by spaces"},
    [EXAMPLE_CLAIMS] = {"claims", JSON_OBJECT, "a map"},
    [EXAMPLE_CERTIFICATE] = {"certificate", JSON_STRING,
                             "a text: the URI or subject of a client certificate, in place of as"},
    [EXAMPLE_ADDRESS] = {"address", JSON_STRING, "a text"},
    [EXAMPLE_HEADER] = {"header", JSON_OBJECT, "a map of texts"},
    [EXAMPLE_ARGS] = {"args", JSON_OBJECT, "a map"},
};

/* One example of the file. `values` that are absent are JSON_NONE. */
typedef struct example {
    json_val values[EXAMPLE_KEYS];
    bay_str texts[EXAMPLE_KEYS];
} example;

static cli_exit refuse_key(const inquiry *self, bay_str key)
{
    const char *nearest = keys[0].name;
    size_t least = SIZE_MAX;
    char text[160];
    for (size_t i = 0; i < EXAMPLE_KEYS && key.len <= 64; i++) {
        size_t distance = str_distance(str_of(keys[i].name), key);
        if (distance < least) {
            least = distance;
            nearest = keys[i].name;
        }
    }
    (void)snprintf(text, sizeof(text), "unknown key \"%.*s\": did you mean \"%s\"?",
                   BAY_STR(str_head(key, 64)), nearest);
    return inquiry_refuse(self, text);
}

static cli_exit take_member(inquiry *self, json_iter at, example *out)
{
    char text[160];
    bay_str key;
    size_t which = 0;
    self->line = config_document_line(at.value);
    if (json_str(at.key, &self->memory, &key) != BAY_OK) {
        return inquiry_refuse(self, "out of memory");
    }
    while (which < EXAMPLE_KEYS && !str_eq(key, str_of(keys[which].name))) {
        which++;
    }
    if (which == EXAMPLE_KEYS) {
        return refuse_key(self, key);
    }
    bool is_text = keys[which].kind == JSON_STRING;
    out->values[which] = at.value;
    if (!json_is(at.value, keys[which].kind) ||
        (is_text && json_str(at.value, &self->memory, &out->texts[which]) != BAY_OK)) {
        (void)snprintf(text, sizeof(text), "%s needs %s", keys[which].name, keys[which].wanted);
        return inquiry_refuse(self, text);
    }
    return CLI_EXIT_OK;
}

static cli_exit read_example(inquiry *self, json_val node, example *out)
{
    cli_exit code = CLI_EXIT_OK;
    uint32_t line = config_document_line(node);
    *out = (example){0};
    for (size_t i = 0; i < EXAMPLE_KEYS; i++) {
        out->values[i] = JSON_NONE;
        out->texts[i] = STR("");
    }
    self->line = line;
    if (!json_is(node, JSON_OBJECT)) {
        return inquiry_refuse(self, "an example is a map with name and expect");
    }
    for (json_iter at = json_iter_of(node); code == CLI_EXIT_OK && json_next(&at);) {
        code = take_member(self, at, out);
    }
    self->line = code == CLI_EXIT_OK ? line : self->line;
    if (code == CLI_EXIT_OK && out->texts[EXAMPLE_NAME].len == 0) {
        return inquiry_refuse(self, "name is missing: what is used, such as files.read");
    }
    if (code == CLI_EXIT_OK && out->texts[EXAMPLE_EXPECT].len == 0) {
        return inquiry_refuse(self, "expect is missing: what the rules are to decide");
    }
    return code;
}

static cli_exit take_headers(inquiry *self, json_val header)
{
    cli_exit code = CLI_EXIT_OK;
    for (json_iter at = json_iter_of(header); code == CLI_EXIT_OK && json_next(&at);) {
        bay_str name;
        bay_str value;
        bool is_text = json_is(at.value, JSON_STRING) &&
                       json_str(at.key, &self->memory, &name) == BAY_OK &&
                       json_str(at.value, &self->memory, &value) == BAY_OK;
        code = is_text ? add_header(self, name, value)
                       : inquiry_refuse(self, "header needs a map of texts");
    }
    return code;
}

static cli_exit pose(inquiry *self, const example *one)
{
    json_builder made;
    bool is_certificate = one->texts[EXAMPLE_CERTIFICATE].len > 0;
    principal_parts parts = {.proof = is_certificate ? PRINCIPAL_CERTIFICATE : PRINCIPAL_TOKEN,
                             .subject =
                                 one->texts[is_certificate ? EXAMPLE_CERTIFICATE : EXAMPLE_AS],
                             .issuer = one->texts[EXAMPLE_ISSUER],
                             .client = one->texts[EXAMPLE_CLIENT],
                             .scopes = one->texts[EXAMPLE_SCOPES],
                             .claims = one->values[EXAMPLE_CLAIMS]};
    set_name(self, one->texts[EXAMPLE_NAME]);
    if (one->texts[EXAMPLE_METHOD].len > 0) {
        self->question.method = one->texts[EXAMPLE_METHOD];
    }
    json_val args = one->values[EXAMPLE_ARGS];
    json_writer *params = json_builder_init(&made, &self->memory, CONFIG_DOCUMENT_BYTES);
    json_open_object(params);
    json_key_lit(params, "arguments");
    json_put_val(params, json_is(args, JSON_MISSING) ? json_empty_object() : args);
    json_close_object(params);
    bay_err err = json_builder_end(&made, &self->question.params);
    cli_exit code =
        err == BAY_OK ? set_principal(self, &parts) : inquiry_refuse(self, bay_err_text(err));
    if (code == CLI_EXIT_OK && one->texts[EXAMPLE_ADDRESS].len > 0) {
        code = set_address(self, one->texts[EXAMPLE_ADDRESS]);
    }
    return code == CLI_EXIT_OK ? take_headers(self, one->values[EXAMPLE_HEADER]) : code;
}

static cli_exit check_example(inquiry *self, json_val node, buf *out, bool *out_holds)
{
    example one;
    size_t wanted = 0;
    cli_exit code = read_example(self, node, &one);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    while (
        wanted <= POLICY_ALLOWED &&
        !str_eq(one.texts[EXAMPLE_EXPECT], str_of(policy_outcome_text((policy_outcome)wanted)))) {
        wanted++;
    }
    if (wanted > POLICY_ALLOWED) {
        return inquiry_refuse(self,
                              "expect needs allowed, approval needed, denied, locked or hidden");
    }
    code = pose(self, &one);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    policy_decision decision = policy_decide(&self->index, &self->question);
    *out_holds = decision.outcome == (policy_outcome)wanted;
    if (!*out_holds) {
        buf_printf(out, "%s:%u: expected \"%s\"; ", self->place, self->line,
                   policy_outcome_text((policy_outcome)wanted));
        write_decision(self, &decision, one.texts[EXAMPLE_NAME], out);
        write_rules(self, out);
    }
    return CLI_EXIT_OK;
}

static cli_exit check_examples(const cli_arguments *arguments, const config *settings,
                               json_val root)
{
    output device;
    buf text;
    size_t count = 0;
    size_t failed = 0;
    cli_exit code = CLI_EXIT_OK;
    if (!json_is(root, JSON_ARRAY)) {
        cli_say("%s: a file of examples is a list: begin each with a -", arguments->name);
        return CLI_EXIT_CONFIG;
    }
    cli_print_init(&device, &text, arguments);
    for (json_iter at = json_iter_of(root); code == CLI_EXIT_OK && json_next(&at); count++) {
        inquiry self;
        bool holds = false;
        inquiry_init(&self, settings);
        self.place = arguments->name;
        if (count == EXAMPLES) {
            self.line = config_document_line(at.value);
            code = inquiry_refuse(&self, "more than 10,000 examples: split the file");
        } else {
            code = check_example(&self, at.value, &text, &holds);
        }
        failed += !holds;
        inquiry_fini(&self);
    }
    if (code == CLI_EXIT_OK) {
        buf_printf(&text, "%zu %s, %zu failed\n", count, count == 1 ? "example" : "examples",
                   failed);
        code = cli_print(&device, &text, failed > 0 ? CLI_EXIT_BREAKING : CLI_EXIT_OK);
    }
    buf_fini(&text);
    return code;
}

static cli_exit test(const cli_arguments *arguments, const config *settings)
{
    arena memory;
    json_doc doc;
    arena_init(&memory, MEMORY_BYTES);
    bay_diag diag = {0};
    cli_exit code = CLI_EXIT_CONFIG;
    if (config_document_load(arguments->name, READ_MS, &memory, &doc, &diag) == BAY_OK) {
        code = check_examples(arguments, settings, json_root(&doc));
    } else {
        cli_say("%s", diag.text);
    }
    arena_fini(&memory);
    return code;
}

int cmd_policy(const cli_arguments *arguments)
{
    const char *path;
    const config *settings = NULL;
    if (cli_load_config(arguments, false, &path, &settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = CLI_EXIT_CONFIG;
    if (settings->rules == NULL) {
        cli_say("%s has no policy: everybody who comes in may use everything", path);
    } else if (str_eq(str_of(arguments->action), STR("explain"))) {
        code = explain(arguments, settings);
    } else {
        code = test(arguments, settings);
    }
    config_free(settings);
    return code;
}
