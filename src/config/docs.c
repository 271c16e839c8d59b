/* docs/config.md and docs/config.schema.json, written from the table of keys. */
#include "config/internal.h"
#include "json/writer.h"

/* ---- Markdown -------------------------------------------------------------------------------- */

static void write_type(const config_key *key, buf *out)
{
    static const char *const names[] = {
        [CONFIG_TYPE_TEXT] = "text",
        [CONFIG_TYPE_BOOL] = "boolean",
        [CONFIG_TYPE_INVERSE] = "boolean",
        [CONFIG_TYPE_COUNT] = "number",
        [CONFIG_TYPE_SIZE] = "size",
        [CONFIG_TYPE_DURATION] = "duration",
        [CONFIG_TYPE_PATIENCE] = "duration",
        [CONFIG_TYPE_LIST] = "list of texts",
        [CONFIG_TYPE_HOSTLIST] = "list of texts",
        [CONFIG_TYPE_LISTEN] = "text or list of texts",
        [CONFIG_TYPE_MAP] = "map of texts",
        [CONFIG_TYPE_SECTION] = "map",
        [CONFIG_TYPE_SERVERS] = "map",
        [CONFIG_TYPE_NAMED] = "map",
        [CONFIG_TYPE_AGENTS] = "map",
        [CONFIG_TYPE_RULES] = "list of maps",
        [CONFIG_TYPE_TEXTS] = "text or list of texts",
        [CONFIG_TYPE_TESTS] = "map of conditions",
    };
    if (key->type != CONFIG_TYPE_CHOICE) {
        buf_str(out, str_of(names[key->type]));
        return;
    }
    for (size_t i = 0; config_choice_at(key->extra, i).len > 0; i++) {
        buf_str(out, i > 0 ? STR(", `") : STR("`"));
        buf_str(out, config_choice_at(key->extra, i));
        buf_char(out, '`');
    }
}

static void write_bounds(const config_key *key, buf *out)
{
    void (*write)(buf *, uint64_t) = buf_uint;
    switch (key->type) {
    case CONFIG_TYPE_SIZE:
        write = config_write_size;
        break;
    case CONFIG_TYPE_DURATION:
    case CONFIG_TYPE_PATIENCE:
        write = config_write_duration;
        break;
    case CONFIG_TYPE_COUNT:
    case CONFIG_TYPE_TEXT:
        break;
    case CONFIG_TYPE_LIST:
    case CONFIG_TYPE_HOSTLIST:
    case CONFIG_TYPE_LISTEN:
    case CONFIG_TYPE_MAP:
    case CONFIG_TYPE_NAMED:
    case CONFIG_TYPE_SERVERS:
    case CONFIG_TYPE_AGENTS:
    case CONFIG_TYPE_RULES:
    case CONFIG_TYPE_TEXTS:
    case CONFIG_TYPE_TESTS:
        buf_printf(out, "%llu to %llu entries", (unsigned long long)key->min,
                   (unsigned long long)key->max);
        return;
    default:
        return;
    }
    write(out, key->min);
    buf_lit(out, " to ");
    write(out, key->max);
    if (key->type == CONFIG_TYPE_TEXT) {
        buf_lit(out, " bytes");
    }
}

static void write_scope(config_scope scope, buf *out)
{
    buf_lit(out, "\n| Key | Type | Default | Bounds | Meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->scope != scope || key->type == CONFIG_TYPE_TOLERATED) {
            continue;
        }
        buf_printf(out, "| `%.*s` | ", BAY_STR(key->name));
        write_type(key, out);
        buf_lit(out, " | ");
        if (key->fallback.len > 0) {
            buf_printf(out, "`%.*s`", BAY_STR(key->fallback));
        }
        buf_lit(out, " | ");
        write_bounds(key, out);
        buf_printf(out, " | %s |\n", key->doc);
    }
}

static void write_tolerated(config_scope scope, buf *out)
{
    bool is_first = true;
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->scope == scope && key->type == CONFIG_TYPE_TOLERATED) {
            buf_printf(out, "%s`%.*s`", is_first ? "" : ", ", BAY_STR(key->name));
            is_first = false;
        }
    }
}

void config_write_markdown(buf *out)
{
    buf_lit(
        out,
        "# Configuration\n\n"
        "The gateway reads one file, YAML or JSON (a file whose first character is `{` is "
        "JSON). A desktop host's file with\n`mcpServers` works as it is.\n\n"
        "```yaml\n"
        "listen: 127.0.0.1:8930\n"
        "mcpServers:\n"
        "  weather: {command: ./weather}\n"
        "  files:\n"
        "    command: npx\n"
        "    args: [-y, \"@modelcontextprotocol/server-filesystem\", .]\n"
        "  billing:\n"
        "    url: https://billing.example/mcp\n"
        "    headers: {Authorization: \"Bearer ${BILLING_TOKEN}\"}\n"
        "```\n\n"
        "- **Variables.** In values, `${NAME}` is the environment variable, "
        "`${NAME:-default}` has a default for one that is unset\n"
        "  or empty, `$$` is a dollar sign. A variable that is not set and has no default is "
        "an error. Inside `[ ]` and `{ }` of YAML\n"
        "  put such a value in quotes.\n"
        "- **Secrets.** `${file:/PATH}` is what a file holds, `${exec:/PROGRAM WORD ...}` what a "
        "program writes to its stdout, both without\n"
        "  line ends at their end and at most 64 KiB. The program is started without a shell, "
        "its words are what stands between spaces,\n"
        "  and it has 10 s; a reload waits for it, and with it what the first worker serves. "
        "Both are read at each load.\n"
        "- **Sizes** are bytes, or carry `K`, `M` or `G` (powers of 1024). **Durations** are "
        "milliseconds, or carry `ms`, `s`, `m`,\n"
        "  `h` or `d`.\n"
        "- **Mistakes** are reported all at once, each with its line; a key that does not "
        "exist is one. A running gateway that is\n"
        "  told to load a faulty file keeps what it has.\n"
        "- **Bounds.** ");
    buf_printf(out,
               "The file has at most %d MiB and %d levels; %d servers; %d agents; %d arguments or "
               "variables each. YAML anchors, aliases\n"
               "  and tags are refused.\n"
               "- **Names** of servers have 1 to %d letters, digits, `_` and `-`, and do not "
               "contain the separator. Any other character of a host's name becomes `_`, with a "
               "warning.\n",
               CONFIG_FILE_BYTES / (1024 * 1024), CONFIG_DEPTH, CONFIG_SERVERS, CONFIG_AGENTS,
               CONFIG_ITEMS, CONFIG_NAME_BYTES);
    for (size_t i = 0; i < CONFIG_SCOPE_COUNT; i++) {
        if (i == CONFIG_SCOPE_TOP) {
            buf_lit(out, "\n## The file\n");
        } else {
            buf_printf(out, "\n## `%s`\n", config_scopes[i].path);
        }
        write_scope((config_scope)i, out);
        if (i == CONFIG_SCOPE_SERVER) {
            buf_lit(out, "\nA server has exactly one of `command` and `url`. Desktop hosts also "
                         "write these, which are accepted and have no effect:\n");
            write_tolerated(CONFIG_SCOPE_SERVER, out);
            buf_lit(out, ".\n");
        } else if (i == CONFIG_SCOPE_AGENT) {
            buf_lit(out, "\nAn agent has exactly one of `url`, `card` and `tools`.\n");
        } else if (i == CONFIG_SCOPE_TOP) {
            buf_lit(out, "\nAccepted without effect: ");
            write_tolerated(CONFIG_SCOPE_TOP, out);
            buf_lit(out, "; and whatever stands beside `mcpServers` in a desktop host's file.\n");
        }
    }
}

/* ---- JSON Schema ----------------------------------------------------------------------------- */

static void put_pair(json_writer *json, bay_str key, bay_str value)
{
    json_key(json, key);
    json_put_str(json, value);
}

/* A number, or a text of that form; variables may stand anywhere in a text. */
static void put_number(json_writer *json, const config_key *key, bay_str pattern)
{
    json_key_lit(json, "anyOf");
    json_open_array(json);
    json_open_object(json);
    put_pair(json, STR("type"), STR("integer"));
    json_key_lit(json, "minimum");
    json_put_uint(json, key->min);
    json_key_lit(json, "maximum");
    json_put_uint(json, key->max);
    json_close_object(json);
    json_open_object(json);
    put_pair(json, STR("type"), STR("string"));
    put_pair(json, STR("pattern"), pattern);
    json_close_object(json);
    json_close_array(json);
}

/* Up to key->max items or members. */
static void put_several(json_writer *json, const config_key *key, bool is_map)
{
    put_pair(json, STR("type"), is_map ? STR("object") : STR("array"));
    json_key(json, is_map ? STR("maxProperties") : STR("maxItems"));
    json_put_uint(json, key->max);
}

static void put_texts(json_writer *json, const config_key *key, bool is_map)
{
    put_several(json, key, is_map);
    json_key(json, is_map ? STR("additionalProperties") : STR("items"));
    json_open_object(json);
    json_key_lit(json, "type");
    json_open_array(json);
    json_put_str(json, STR("string"));
    json_put_str(json, STR("number"));
    json_put_str(json, STR("boolean"));
    json_close_array(json);
    json_close_object(json);
}

static void put_choice(json_writer *json, const config_key *key)
{
    json_key_lit(json, "anyOf");
    json_open_array(json);
    json_open_object(json);
    json_key_lit(json, "enum");
    json_open_array(json);
    for (size_t i = 0; config_choice_at(key->extra, i).len > 0; i++) {
        json_put_str(json, config_choice_at(key->extra, i));
    }
    json_close_array(json);
    json_close_object(json);
    json_open_object(json);
    put_pair(json, STR("type"), STR("string"));
    put_pair(json, STR("pattern"), STR("\\$\\{"));
    json_close_object(json);
    json_close_array(json);
}

static void put_scope(json_writer *json, config_scope scope);

static void put_listen(json_writer *json, const config_key *key)
{
    json_key_lit(json, "anyOf");
    json_open_array(json);
    json_open_object(json);
    put_pair(json, STR("type"), STR("string"));
    json_close_object(json);
    json_open_object(json);
    put_texts(json, key, false);
    json_close_object(json);
    json_close_array(json);
}

/* Structs by name. */
static void put_named(json_writer *json, const config_key *key)
{
    put_several(json, key, true);
    json_key_lit(json, "propertyNames");
    json_open_object(json);
    put_pair(json, STR("pattern"),
             config_key_section(key) == CONFIG_SCOPE_TOOL ? STR("^.{1,1024}$")
                                                          : STR("^[A-Za-z0-9_-]{1,64}$"));
    json_close_object(json);
    json_key_lit(json, "additionalProperties");
    json_open_object(json);
    put_scope(json, config_key_section(key));
    json_close_object(json);
}

/* {KEY: a text, several, or {OPERATOR: a text or several}} */
static void put_tests(json_writer *json, const config_key *key)
{
    put_several(json, key, true);
    json_key_lit(json, "additionalProperties");
    json_put_raw(json, STR("{\"type\":[\"string\",\"number\",\"boolean\",\"array\",\"object\"]}"));
}

static void put_rules(json_writer *json, const config_key *key)
{
    put_several(json, key, false);
    json_key_lit(json, "items");
    json_open_object(json);
    put_scope(json, config_key_section(key));
    json_close_object(json);
}

static void put_type(json_writer *json, const config_key *key)
{
    switch (key->type) {
    case CONFIG_TYPE_TEXT:
        put_pair(json, STR("type"), STR("string"));
        break;
    case CONFIG_TYPE_BOOL:
    case CONFIG_TYPE_INVERSE:
        json_key_lit(json, "anyOf");
        json_put_raw(json, STR("[{\"type\":\"boolean\"},"
                               "{\"type\":\"string\",\"pattern\":\"^(true|false)$|\\\\$\\\\{\"}]"));
        break;
    case CONFIG_TYPE_COUNT:
        put_number(json, key, STR("^[0-9]+$|\\$\\{"));
        break;
    case CONFIG_TYPE_SIZE:
        put_number(json, key, STR("^[0-9]+ *([KkMmGg]([Ii]?[Bb])?|[Bb])?$|\\$\\{"));
        break;
    case CONFIG_TYPE_DURATION:
    case CONFIG_TYPE_PATIENCE:
        put_number(json, key, STR("^[0-9]+ *(ms|s|m|min|h|d)?$|\\$\\{"));
        break;
    case CONFIG_TYPE_CHOICE:
        put_choice(json, key);
        break;
    case CONFIG_TYPE_LIST:
    case CONFIG_TYPE_HOSTLIST:
        put_texts(json, key, false);
        break;
    case CONFIG_TYPE_TESTS:
        put_tests(json, key);
        break;
    case CONFIG_TYPE_RULES:
        put_rules(json, key);
        break;
    case CONFIG_TYPE_LISTEN:
    case CONFIG_TYPE_TEXTS:
        put_listen(json, key);
        break;
    case CONFIG_TYPE_MAP:
        put_texts(json, key, true);
        break;
    case CONFIG_TYPE_SECTION:
        put_scope(json, config_key_section(key));
        break;
    case CONFIG_TYPE_NAMED:
    case CONFIG_TYPE_SERVERS:
    case CONFIG_TYPE_AGENTS:
        put_named(json, key);
        break;
    case CONFIG_TYPE_TOLERATED:
        break;
    }
}

static void put_default(json_writer *json, const config_key *key)
{
    uint64_t value = 0;
    if (key->fallback.len == 0) {
        return;
    }
    json_key_lit(json, "default");
    if (key->type == CONFIG_TYPE_BOOL || key->type == CONFIG_TYPE_INVERSE) {
        json_put_bool(json, str_eq(key->fallback, STR("true")));
    } else if (key->type == CONFIG_TYPE_COUNT && str_uint(key->fallback, &value)) {
        json_put_uint(json, value);
    } else {
        json_put_str(json, key->fallback);
    }
}

static void put_scope(json_writer *json, config_scope scope)
{
    put_pair(json, STR("type"), STR("object"));
    json_key_lit(json, "additionalProperties");
    json_put_bool(json, false);
    json_key_lit(json, "properties");
    json_open_object(json);
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->scope != scope) {
            continue;
        }
        json_key(json, key->name);
        json_open_object(json);
        bool is_tolerated = key->type == CONFIG_TYPE_TOLERATED;
        put_pair(json, STR("description"),
                 is_tolerated ? STR("Accepted, without effect.") : str_of(key->doc));
        put_type(json, key);
        put_default(json, key);
        json_close_object(json);
    }
    json_close_object(json);
}

/* Lays compact JSON out, two spaces a level. */
static void lay_out(bay_str json, buf *out)
{
    size_t depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.at[i];
        bool opens = !in_text && (c == '{' || c == '[');
        bool closes = !in_text && (c == '}' || c == ']');
        depth -= closes;
        if (closes) {
            buf_printf(out, "\n%*s", (int)depth * 2, "");
        }
        buf_char(out, c);
        if (in_text && c == '\\' && i + 1 < json.len) {
            buf_char(out, json.at[++i]);
            continue;
        }
        in_text ^= c == '"';
        depth += opens;
        if (opens || (!in_text && c == ',')) {
            buf_printf(out, "\n%*s", (int)depth * 2, "");
        } else if (!in_text && c == ':') {
            buf_char(out, ' ');
        }
    }
    buf_char(out, '\n');
}

void config_write_schema(buf *out)
{
    buf compact;
    json_writer json;
    buf_init(&compact, 1024 * 1024);
    json_writer_init(&json, &compact);
    json_open_object(&json);
    put_pair(&json, STR("$schema"), STR("http://json-schema.org/draft-07/schema#"));
    put_pair(&json, STR("title"), STR("Configuration of the Patchbay gateway"));
    put_scope(&json, CONFIG_SCOPE_TOP);
    json_close_object(&json);
    if (compact.err != BAY_OK) {
        out->err = compact.err;
    }
    lay_out(buf_view(&compact), out);
    buf_fini(&compact);
}
