/* A rule in one line: its effect, what it is about, whom, and what it asks of the call. Of header
 * fields, claims and arguments the names are shown and no values: those may be secrets. */
#include "cli/check_rules.h"

#include "base/str.h"
#include "cli/output.h"

enum { LINE_COLUMNS = 8, EFFECT_COLUMNS = 8, TEXT_BYTES = 64 << 10 };

static void put_list(buf *out, const char *what, config_list values)
{
    for (size_t i = 0; i < values.count; i++) {
        buf_printf(out, "%s%s", i > 0 ? ", " : out->len > 0 ? "; " : "", i == 0 ? what : "");
        buf_str(out, values.at[i]);
    }
}

static void put_names(buf *out, const char *what, config_tests tests)
{
    for (size_t i = 0; i < tests.count; i++) {
        buf_printf(out, "%s%s", i > 0 ? ", " : out->len > 0 ? "; " : "", i == 0 ? what : "");
        buf_str(out, tests.at[i].key);
    }
}

static const char *effect_of(const config_rule *rule, config_list *out)
{
    *out = rule->allow.at != NULL  ? rule->allow
           : rule->deny.at != NULL ? rule->deny
                                   : rule->approve;
    return rule->allow.at != NULL ? "allow" : rule->deny.at != NULL ? "deny" : "approve";
}

static void put_who(const config_who *who, buf *out)
{
    put_list(out, "subject ", who->subject);
    put_list(out, "issuer ", who->issuer);
    put_list(out, "client ", who->client);
    put_list(out, "scopes ", who->scopes);
    put_list(out, "group ", who->group);
    put_list(out, "certificate ", who->certificate);
    put_list(out, "address ", who->address);
    put_names(out, "claims ", who->claims);
    put_names(out, "header ", who->header);
    buf_str(out, out->len == 0 ? STR("everybody") : STR(""));
}

static void put_conditions(const config_rule *rule, buf *out)
{
    put_list(out, "server ", rule->server);
    put_list(out, "method ", rule->method);
    put_names(out, "args ", rule->args);
}

static void put_rule(const config_rule *rule, buf *out)
{
    config_list about;
    buf text;
    buf_init(&text, TEXT_BYTES);
    buf_printf(out, "%-*s", EFFECT_COLUMNS, effect_of(rule, &about));
    put_list(&text, "", about);
    output_line(out, buf_view(&text));
    buf_clear(&text);
    put_who(&rule->who, &text);
    buf_lit(out, " for ");
    output_line(out, buf_view(&text));
    buf_clear(&text);
    put_conditions(rule, &text);
    buf_str(out, text.len > 0 ? STR(", if ") : STR(""));
    output_line(out, buf_view(&text));
    buf_char(out, '\n');
    buf_fini(&text);
}

void check_put_rules(const config *settings, buf *out)
{
    const config_rules *rules = &settings->policy.rules;
    buf_str(out, settings->policy.fallback == CONFIG_ALLOW
                     ? STR("what no rule is about is allowed\n")
                     : STR("what no rule is about is denied, and is not there\n"));
    for (size_t i = 0; i < rules->count && i < CHECK_RULES; i++) {
        char place[24];
        buf line = {.at = place, .cap = sizeof(place), .max = sizeof(place)};
        buf_printf(&line, "line %u", (unsigned)rules->at[i].line);
        buf_printf(out, "%10s%-*.*s ", "", LINE_COLUMNS, BAY_STR(buf_view(&line)));
        put_rule(&rules->at[i], out);
    }
    if (rules->count > CHECK_RULES) {
        buf_printf(out, "%10sand %zu rules more\n", "", rules->count - CHECK_RULES);
    }
}

static void write_list(json_writer *out, config_list values)
{
    json_open_array(out);
    for (size_t i = 0; i < values.count; i++) {
        json_put_str(out, values.at[i]);
    }
    json_close_array(out);
}

void check_write_rules(const config *settings, json_writer *out)
{
    buf text;
    json_key_lit(out, "default");
    json_put_str(out, settings->rules == NULL || settings->policy.fallback == CONFIG_ALLOW
                          ? STR("allow")
                          : STR("deny"));
    json_key_lit(out, "rules");
    json_open_array(out);
    buf_init(&text, TEXT_BYTES);
    for (size_t i = 0; i < settings->policy.rules.count; i++) {
        const config_rule *rule = &settings->policy.rules.at[i];
        config_list about;
        json_open_object(out);
        json_key_lit(out, "line");
        json_put_uint(out, rule->line);
        json_key_lit(out, "effect");
        json_put_str(out, str_of(effect_of(rule, &about)));
        json_key_lit(out, "about");
        write_list(out, about);
        json_key_lit(out, "who");
        buf_clear(&text);
        put_who(&rule->who, &text);
        json_put_str(out, buf_view(&text));
        json_key_lit(out, "if");
        buf_clear(&text);
        put_conditions(rule, &text);
        json_put_str(out, buf_view(&text));
        json_close_object(out);
    }
    json_close_array(out);
    buf_fini(&text);
}
