/* Rules, principals and questions in one line each, for tests. */
#ifndef SUPPORT_RULES_RIG_H
#define SUPPORT_RULES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "policy/rules.h"

/* A build without regular expressions refuses rules that have them. */
static inline bool rules_can(const char *op)
{
#ifdef BAY_NO_PATTERNS
    return strcmp(op, "regex") != 0;
#else
    (void)op;
    return true;
#endif
}

typedef struct rules_rig {
    policy_rules *rules;
    policy_index index;
    policy_rule *last;
    const auth_principal *who;
    policy_origin origin;
    policy_header headers[4];
    arena memory;
    json_doc doc;
} rules_rig;

static inline void rules_begin(rules_rig *self, policy_effect fallback)
{
    memset(self, 0, sizeof(*self));
    arena_init(&self->memory, 16 << 20);
    assert_int_equal(policy_rules_new(fallback, false, &self->rules), BAY_OK);
}

static inline void rules_end(rules_rig *self)
{
    policy_index_fini(&self->index);
    policy_rules_unref(self->rules);
    principal_unref(self->who);
    arena_fini(&self->memory);
}

/* `about`: patterns, separated by spaces. */
static inline void rules_add(rules_rig *self, policy_effect effect, const char *about)
{
    policy_index_set(&self->index, NULL); /* a set is complete before it is asked */
    assert_int_equal(policy_rules_add(self->rules, effect, 1, STR(""), &self->last), BAY_OK);
    for (bay_str rest = str_of(about); rest.len > 0;) {
        size_t end = str_find(rest, ' ');
        assert_int_equal(
            policy_rule_about(self->rules, self->last, str_head(rest, end), STR("."), NULL),
            BAY_OK);
        rest = str_from(rest, end + 1);
    }
}

static inline size_t rules_values(const char *text, bay_str *out)
{
    size_t count = 0;
    for (bay_str rest = str_of(text); count == 0 || rest.len > 0; count++) {
        size_t end = str_find(rest, '|');
        out[count] = str_head(rest, end);
        rest = str_from(rest, end + 1);
    }
    return count;
}

/* `values`: separated by '|'. */
static inline bay_err rules_try_if(rules_rig *self, policy_field field, const char *key,
                                   const char *op, const char *values, bay_diag *diag)
{
    bay_str at[32];
    policy_test test = {field, str_of(key), str_of(op), at, rules_values(values, at)};
    return policy_rule_if(self->rules, self->last, &test, diag);
}

static inline void rules_if(rules_rig *self, policy_field field, const char *key, const char *op,
                            const char *values)
{
    bay_diag diag = {0};
    if (rules_try_if(self, field, key, op, values, &diag) != BAY_OK) {
        fail_msg("%s %s %s: %s", key, op, values, diag.text);
    }
}

/* Who asks from now on. `claims`: a JSON object. */
static inline void rules_as(rules_rig *self, principal_proof proof, const char *subject,
                            const char *scopes, const char *claims)
{
    json_doc document;
    principal_parts parts = {.proof = proof,
                             .issuer = STR("https://login.example"),
                             .subject = str_of(subject),
                             .scopes = str_of(scopes)};
    if (claims[0] != '\0') {
        assert_int_equal(json_parse(&document, str_of(claims), NULL, &self->memory, NULL), BAY_OK);
        parts.claims = json_root(&document);
    }
    principal_unref(self->who);
    self->who = NULL;
    if (subject[0] != '\0') {
        assert_int_equal(principal_new(&parts, &self->who), BAY_OK);
    }
}

static inline void rules_from(rules_rig *self, const char *address)
{
    assert_int_equal(address_parse(str_of(address), &self->origin.address), BAY_OK);
    self->origin.has_address = true;
}

static inline void rules_header(rules_rig *self, const char *name, const char *value)
{
    self->headers[self->origin.header_count++] =
        (policy_header){.name = str_of(name), .value = str_of(value)};
    self->origin.headers = self->headers;
}

/* `arguments`: a JSON object; NULL: a listing. */
static inline policy_decision rules_ask(rules_rig *self, policy_kind kind, const char *name,
                                        const char *method, const char *arguments)
{
    buf params;
    policy_index_set(&self->index, self->rules);
    size_t dot = str_find(str_of(name), '.');
    policy_question question = {
        .about = {.kind = kind,
                  .server = kind == POLICY_AGENT ? str_of(name)
                            : dot < strlen(name) ? str_head(str_of(name), dot)
                                                 : STR(""),
                  .name = str_of(name)},
        .method = str_of(method),
        .principal = self->who,
        .origin = &self->origin,
        .is_listing = arguments == NULL,
    };
    buf_init(&params, 4 << 20);
    buf_printf(&params, "{\"arguments\":%s}", arguments != NULL ? arguments : "{}");
    bay_str text;
    assert_int_equal(arena_dup(&self->memory, buf_view(&params), &text), BAY_OK);
    assert_int_equal(json_parse(&self->doc, text, NULL, &self->memory, NULL), BAY_OK);
    question.params = json_root(&self->doc);
    policy_decision decision = policy_decide(&self->index, &question);
    buf_fini(&params);
    return decision;
}

static inline policy_outcome rules_call(rules_rig *self, const char *tool, const char *arguments)
{
    return rules_ask(self, POLICY_TOOL, tool, "tools/call", arguments).outcome;
}

static inline policy_outcome rules_list(rules_rig *self, const char *tool)
{
    return rules_ask(self, POLICY_TOOL, tool, "tools/call", NULL).outcome;
}

#endif
