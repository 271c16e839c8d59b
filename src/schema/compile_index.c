/* Finds documents, the resources in them ($id), their anchors, and the places that references refer
 * to. A document is walked once, along the keywords that contain schemas: an $id inside a constant
 * or under an unknown keyword has no effect. */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "schema/compile.h"
#include "schema/uri.h"

const keyword compile_keyword_table[KEYWORD_COUNT] = {
#define KEYWORD_ROW(id, text, shape, vocabulary, dialects)                                         \
    [KEYWORD_##id] = {STR_INIT(text), SHAPE_##shape, VOCABULARY_##vocabulary, dialects},
    KEYWORDS(KEYWORD_ROW)
#undef KEYWORD_ROW
};

static bool is_spoken(const program_resource *where, const keyword *one)
{
    if ((one->dialects & (1 << where->dialect)) == 0) {
        return false;
    }
    switch (one->vocabulary) {
    case VOCABULARY_APPLICATOR:
        return where->has_applicator;
    case VOCABULARY_VALIDATION:
        return where->has_validation;
    case VOCABULARY_UNEVALUATED:
        return where->has_unevaluated;
    case VOCABULARY_FORMAT:
        return where->has_format;
    default:
        return true;
    }
}

void compile_keywords(const program_resource *where, json_val object, json_val out[KEYWORD_COUNT])
{
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        out[i] = JSON_NONE;
    }
    for (json_iter it = json_iter_of(object); json_next(&it);) {
        for (size_t i = 0; i < KEYWORD_COUNT; i++) {
            const keyword *one = &compile_keyword_table[i];
            if (json_str_eq(it.key, one->text)) {
                out[i] = is_spoken(where, one) ? it.value : JSON_NONE;
                break;
            }
        }
    }
}

/* The key stays in the schema's arena. A place that is found late, under an unknown keyword, does
 * not replace a name. */
static void name_place(compiler *self, bay_str name, json_val where, place found)
{
    if (self->is_late && map_get(&self->places, name) != NULL) {
        return;
    }
    place *kept = arena_alloc(&self->self->memory, sizeof(*kept));
    bay_str key;
    bay_err err = kept != NULL ? arena_dup(&self->self->memory, name, &key) : BAY_ERR_NOMEM;
    void *old = NULL;
    if (err == BAY_OK) {
        *kept = found;
        err = map_put(&self->places, key, kept, &old);
    }
    if (err != BAY_OK) {
        compile_fail(self, err, where, "no memory for the schema");
    } else if (old != NULL &&
               (((place *)old)->at != found.at || ((place *)old)->document != found.document)) {
        compile_fail(self, BAY_ERR_DUPLICATE, where, "a second schema is named %.*s",
                     BAY_STR(str_head(name, 120)));
    }
}

/* `reference` against `base`, in `out` (initialised here). */
static bool resolve_uri(compiler *self, bay_str base, bay_str reference, json_val where, buf *out)
{
    buf_init(out, self->limits->max_uri_bytes);
    schema_uri_resolve(base, reference, out);
    if (out->err == BAY_ERR_LIMIT) {
        compile_fail(self, BAY_ERR_LIMIT, where, "the URI is longer than %zu bytes (max_uri_bytes)",
                     self->limits->max_uri_bytes);
    } else if (out->err != BAY_OK) {
        compile_fail(self, out->err, where, "no memory for the schema");
    }
    return self->err == BAY_OK;
}

static bool is_uri(bay_str uri, const char *other)
{
    if (str_ends(uri, STR("#"))) {
        uri.len--;
    }
    return str_eq(uri, str_of(other));
}

static const schema_document *supplied(const compiler *self, bay_str uri)
{
    for (size_t i = 0; i < self->options->document_count; i++) {
        const schema_document *one = &self->options->documents[i];
        if (str_eq(schema_uri_without_fragment(one->uri), schema_uri_without_fragment(uri))) {
            return one;
        }
    }
    return NULL;
}

/* A meta-schema of the caller: its $vocabulary selects the keywords that have an effect. */
static void read_vocabularies(compiler *self, json_val metaschema, json_val where,
                              program_resource *out)
{
    static const struct {
        bay_str name;
        int vocabulary; /* -1: no effect */
    } known[] = {
        {STR_INIT("core"), -1},
        {STR_INIT("applicator"), VOCABULARY_APPLICATOR},
        {STR_INIT("unevaluated"), VOCABULARY_UNEVALUATED},
        {STR_INIT("validation"), VOCABULARY_VALIDATION},
        {STR_INIT("meta-data"), -1},
        {STR_INIT("format-annotation"), -1},
        {STR_INIT("format-assertion"), VOCABULARY_FORMAT},
        {STR_INIT("content"), -1},
    };
    const bay_str base = STR("https://json-schema.org/draft/2020-12/vocab/");
    json_val vocabularies = json_get(metaschema, STR("$vocabulary"));
    if (!json_is(vocabularies, JSON_OBJECT)) {
        return;
    }
    out->has_applicator = out->has_validation = out->has_unevaluated = out->has_format = false;
    for (json_iter it = json_iter_of(vocabularies); json_next(&it);) {
        bool is_known = false;
        bay_str name = {"", 0};
        if (json_str_plain(it.key, &name) && str_starts(name, base)) {
            for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                if (!str_eq(str_from(name, base.len), known[i].name)) {
                    continue;
                }
                is_known = true;
                int one = known[i].vocabulary;
                out->has_applicator |= one == VOCABULARY_APPLICATOR;
                out->has_validation |= one == VOCABULARY_VALIDATION;
                out->has_unevaluated |= one == VOCABULARY_UNEVALUATED;
                out->has_format |= one == VOCABULARY_FORMAT;
            }
        }
        if (!is_known && json_true(it.value)) {
            compile_fail(self, BAY_ERR_UNSUPPORTED, where, "the vocabulary %.*s is not supported",
                         BAY_STR(str_head(json_raw(it.key), 120)));
        }
    }
}

/* Reads $schema of a resource: the dialect, and its keywords. */
static void read_dialect(compiler *self, json_val value, program_resource *out)
{
    bay_str uri;
    out->has_applicator = out->has_validation = out->has_unevaluated = true;
    out->has_format = !self->options->ignores_format;
    if (value.doc == NULL) {
        return;
    }
    if (!json_is(value, JSON_STRING)) {
        compile_fail(self, BAY_ERR_SYNTAX, value, "$schema must be a string");
        return;
    }
    if (!compile_text(self, value, &uri)) {
        return;
    }
    const schema_document *document = NULL;
    if (is_uri(uri, schema_uri_2020_12)) {
        out->dialect = SCHEMA_2020_12;
    } else if (is_uri(uri, schema_uri_draft_07) ||
               is_uri(uri, "https://json-schema.org/draft-07/schema")) {
        out->dialect = SCHEMA_DRAFT_07;
    } else if ((document = supplied(self, uri)) != NULL &&
               json_str_eq(json_get(document->root, STR("$schema")), str_of(schema_uri_2020_12))) {
        out->dialect = SCHEMA_2020_12;
        read_vocabularies(self, document->root, value, out);
    } else {
        compile_fail(self, BAY_ERR_UNSUPPORTED, value,
                     "the dialect %.*s is not supported; 2020-12 and draft-07 are",
                     BAY_STR(str_head(uri, 120)));
    }
}

/* Adds a resource; returns its number, or the enclosing one's on error. */
static uint32_t add_resource(compiler *self, program_resource one)
{
    schema *out = self->self;
    if (!compile_grow(self, &out->resources, &out->resource_cap, out->resource_count,
                      sizeof(*out->resources))) {
        return 0;
    }
    out->resources[out->resource_count++] = one;
    return (uint32_t)out->resource_count - 1;
}

static bool is_anchor(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        bool is_more = (c >= '0' && c <= '9') || c == '-' || c == '.';
        if (!is_letter && !(is_more && i > 0)) {
            return false;
        }
    }
    return name.len > 0;
}

static void name_anchor(compiler *self, uint32_t number, bay_str anchor, json_val where,
                        place found)
{
    buf name;
    buf_init(&name, self->limits->max_uri_bytes);
    buf_str(&name, self->self->resources[number].uri);
    buf_char(&name, '#');
    buf_str(&name, anchor);
    if (name.err == BAY_ERR_LIMIT) {
        compile_fail(self, BAY_ERR_LIMIT, where, "the URI is longer than %zu bytes (max_uri_bytes)",
                     self->limits->max_uri_bytes);
    } else if (name.err != BAY_OK) {
        compile_fail(self, name.err, where, "no memory for the schema");
    } else {
        name_place(self, buf_view(&name), where, found);
    }
    buf_fini(&name);
}

dynamic_name *compile_dynamic_name(compiler *self, bay_str name)
{
    dynamic_name *found = map_get(&self->dynamic_of, name);
    if (found != NULL) {
        return found;
    }
    found = arena_zalloc(&self->self->memory, sizeof(*found));
    if (found == NULL || map_put(&self->dynamic_of, name, found, NULL) != BAY_OK) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
        return NULL;
    }
    found->next = self->dynamic;
    self->dynamic = found;
    return found;
}

static void read_anchor(compiler *self, uint32_t number, place found, json_val value,
                        bool is_dynamic)
{
    bay_str name;
    if (value.doc == NULL) {
        return;
    }
    if (!json_is(value, JSON_STRING) || !compile_text(self, value, &name) || !is_anchor(name)) {
        compile_fail(self, BAY_ERR_SYNTAX, value,
                     "an anchor is a string: a letter or '_', then letters, digits, '-', '_', '.'");
        return;
    }
    found.is_dynamic = is_dynamic;
    name_anchor(self, number, name, value, found);
    if (!is_dynamic) {
        return;
    }
    dynamic_name *dynamic = compile_dynamic_name(self, name);
    dynamic_place *one = dynamic != NULL ? arena_alloc(&self->self->memory, sizeof(*one)) : NULL;
    if (one == NULL) {
        compile_fail(self, BAY_ERR_NOMEM, value, "no memory for the schema");
        return;
    }
    *one = (dynamic_place){dynamic->places, number, found.document, found.at};
    dynamic->places = one;
}

/* $id: the resource of this schema, a new one if it has an $id. */
static uint32_t read_id(compiler *self, uint32_t around, place found, json_val object, json_val id,
                        bool is_root)
{
    program_resource one = self->self->resources[around];
    bay_str text;
    if (id.doc == NULL) {
        return around;
    }
    if (!json_is(id, JSON_STRING) || !compile_text(self, id, &text)) {
        compile_fail(self, BAY_ERR_SYNTAX, id, "$id must be a string");
        return around;
    }
    bay_str fragment = schema_uri_fragment(text);
    bay_str uri = schema_uri_without_fragment(text);
    if (fragment.len > 0 && one.dialect != SCHEMA_DRAFT_07) {
        compile_fail(self, BAY_ERR_SYNTAX, id, "$id has a fragment");
        return around;
    }
    uint32_t number = around;
    if (uri.len > 0) {
        buf resolved;
        if (!is_root) {
            one.document = found.document;
            one.at = found.at;
            json_val dialect = json_get(object, STR("$schema"));
            if (dialect.doc != NULL) {
                read_dialect(self, dialect, &one);
            }
        }
        if (resolve_uri(self, one.uri, uri, id, &resolved) &&
            arena_dup(&self->self->memory, buf_view(&resolved), &one.uri) != BAY_OK) {
            compile_fail(self, BAY_ERR_NOMEM, id, "no memory for the schema");
        }
        buf_fini(&resolved);
        if (self->err != BAY_OK) {
            return around;
        }
        if (is_root) {
            self->self->resources[around] = one;
        } else {
            number = add_resource(self, one);
        }
        name_place(self, one.uri, id, found);
    }
    if (fragment.len > 0 && fragment.at[0] != '/' && self->err == BAY_OK) {
        name_anchor(self, number, fragment, id, found);
    }
    return number;
}

static void index_schema(compiler *self, uint32_t document, json_val value, uint32_t number,
                         bool is_root);

static void index_below(compiler *self, uint32_t document, keyword_shape shape, json_val value,
                        uint32_t number)
{
    bool is_list =
        json_is(value, JSON_ARRAY) && (shape == SHAPE_LIST || shape == SHAPE_SCHEMA_OR_LIST);
    bool is_map = json_is(value, JSON_OBJECT) && shape == SHAPE_MAP;
    if (is_list || is_map) {
        for (json_iter it = json_iter_of(value); json_next(&it);) {
            index_schema(self, document, it.value, number, false);
        }
    } else if (json_is(value, JSON_OBJECT) &&
               (shape == SHAPE_SCHEMA || shape == SHAPE_SCHEMA_OR_LIST)) {
        index_schema(self, document, value, number, false);
    }
}

/* The document's depth, which is limited, limits the recursion. */
static void index_schema(compiler *self, uint32_t document, json_val value, uint32_t number,
                         bool is_root)
{
    if (self->err != BAY_OK || !json_is(value, JSON_OBJECT) ||
        self->sources[document].resource_of[value.at] != 0) {
        return;
    }
    json_val words[KEYWORD_COUNT];
    place found = {document, value.at, false};
    bool is_draft_07 = self->self->resources[number].dialect == SCHEMA_DRAFT_07;
    json_val id = json_get(value, STR("$id"));
    if (is_draft_07 && json_get(value, STR("$ref")).doc != NULL) {
        id = JSON_NONE; /* draft-07: everything beside a $ref is ignored */
    }
    number = read_id(self, number, found, value, id, is_root);
    if (self->err != BAY_OK) {
        return;
    }
    self->sources[document].resource_of[value.at] = number + 1;
    compile_keywords(&self->self->resources[number], value, words);
    read_anchor(self, number, found, words[KEYWORD_ANCHOR], false);
    read_anchor(self, number, found, words[KEYWORD_DYNAMIC_ANCHOR], true);
    for (size_t i = 0; i < KEYWORD_COUNT; i++) {
        if (words[i].doc != NULL) {
            index_below(self, document, compile_keyword_table[i].shape, words[i], number);
        }
    }
}

/* A copy in the schema's arena, within the limits. */
static const json_doc *copy_document(compiler *self, json_val root)
{
    json_val copy = JSON_NONE;
    bay_diag diag = {0};
    size_t bytes = json_raw(root).len;
    if (bytes > self->limits->max_bytes - self->bytes) {
        compile_fail(self, BAY_ERR_LIMIT, JSON_NONE,
                     "the schema has more than %zu bytes (max_bytes)", self->limits->max_bytes);
    } else if (json_clone_in(root, &self->self->memory, &copy) != BAY_OK) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
    } else if (copy.doc->count > self->limits->max_values - self->values) {
        compile_fail(self, BAY_ERR_LIMIT, JSON_NONE,
                     "the schema has more than %u values (max_values)",
                     (unsigned)self->limits->max_values);
    } else if (json_is_deeper(copy, self->limits->max_depth)) {
        compile_fail(self, BAY_ERR_DEPTH, JSON_NONE,
                     "the schema nests deeper than %u levels (max_depth)",
                     (unsigned)self->limits->max_depth);
    } else if (json_check_duplicates(copy, &diag) != BAY_OK) {
        self->err =
            diag_at(self->diag, diag.code, self->root_offset + diag.offset, "%s", diag.text);
    } else {
        self->bytes += bytes;
        self->values += copy.doc->count;
    }
    return self->err == BAY_OK ? copy.doc : NULL;
}

uint32_t compile_document(compiler *self, bay_str uri, json_val from, schema_dialect dialect)
{
    schema *out = self->self;
    const json_doc *doc = copy_document(self, from);
    program_resource root = {.document = (uint32_t)out->document_count, .dialect = dialect};
    if (doc == NULL || arena_dup(&out->memory, uri, &root.uri) != BAY_OK ||
        !compile_grow(self, &self->sources, &self->source_cap, out->document_count,
                      sizeof(*self->sources)) ||
        !compile_grow(self, &out->documents, &out->document_cap, out->document_count,
                      sizeof(*out->documents))) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
        return UINT32_MAX;
    }
    source *made = &self->sources[out->document_count];
    *made =
        (source){mem_array(doc->count, sizeof(uint32_t)), mem_array(doc->count, sizeof(uint32_t))};
    out->documents[out->document_count++] = (program_document){root.uri, doc};
    if (made->node_of == NULL || made->resource_of == NULL) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
        return UINT32_MAX;
    }
    json_val top = json_root(doc);
    read_dialect(self, json_get(top, STR("$schema")), &root);
    uint32_t number = self->err == BAY_OK ? add_resource(self, root) : 0;
    if (self->err == BAY_OK) {
        name_place(self, root.uri, top, (place){root.document, 0, false});
        index_schema(self, root.document, top, number, true);
        made = &self->sources[root.document];
        made->resource_of[0] = number + 1; /* also of a boolean */
    }
    return self->err == BAY_OK ? root.document : UINT32_MAX;
}

static bool count_lookups(compiler *self, size_t count, json_val where)
{
    self->lookups += count;
    if (self->lookups > self->limits->max_lookups) {
        compile_fail(self, BAY_ERR_LIMIT, where,
                     "resolving its references takes more than %llu steps (max_lookups)",
                     (unsigned long long)self->limits->max_lookups);
    }
    return self->err == BAY_OK;
}

/* The resource of the schema around `at`, by walking down to the child that contains it. */
static uint32_t resource_at(compiler *self, uint32_t document, uint32_t at)
{
    const uint32_t *resource_of = self->sources[document].resource_of;
    json_val value = json_root(self->self->documents[document].doc);
    uint32_t number = resource_of[0];
    while (value.at != at && count_lookups(self, json_count(value) + 1, value)) {
        json_val next = JSON_NONE;
        for (json_iter it = json_iter_of(value); json_next(&it) && next.doc == NULL;) {
            next = at >= it.value.at && at < it.next ? it.value : JSON_NONE;
        }
        if (next.doc == NULL) {
            break;
        }
        value = next;
        number = resource_of[value.at] != 0 ? resource_of[value.at] : number;
    }
    return number - 1;
}

uint32_t compile_node_at(compiler *self, uint32_t document, uint32_t at)
{
    schema *out = self->self;
    if (self->err != BAY_OK) {
        return NODE_NONE;
    }
    uint32_t *known = &self->sources[document].node_of[at];
    if (*known != NODE_NONE) {
        return *known;
    }
    json_val value = schema_place(out, document, at);
    json_kind kind = json_kind_of(value);
    if (kind != JSON_OBJECT && kind != JSON_TRUE && kind != JSON_FALSE) {
        compile_fail(self, BAY_ERR_SYNTAX, value, "a schema is an object, true or false");
        return NODE_NONE;
    }
    uint32_t number = self->sources[document].resource_of[at];
    if (kind == JSON_OBJECT && number == 0) { /* under an unknown keyword: a schema after all */
        self->is_late = true;
        index_schema(self, document, value, resource_at(self, document, at), false);
        self->is_late = false;
        number = self->sources[document].resource_of[at];
    }
    if (!compile_grow(self, &out->nodes, &out->node_cap, out->node_count, sizeof(*out->nodes))) {
        return NODE_NONE;
    }
    out->nodes[out->node_count] = (program_node){
        .document = document, .at = at, .resource = number > 0 ? number - 1 : 0, .types = TYPE_ANY};
    *known = (uint32_t)out->node_count;
    return (uint32_t)out->node_count++;
}

/* The first token of a JSON pointer, unescaped into `out`. */
static bool read_token(bay_str *pointer, buf *out)
{
    bay_str rest = str_from(*pointer, 1);
    size_t len = str_find(rest, '/');
    buf_clear(out);
    for (size_t i = 0; i < len; i++) {
        char c = rest.at[i];
        if (c == '~') {
            if (i + 1 >= len || (rest.at[i + 1] != '0' && rest.at[i + 1] != '1')) {
                return false;
            }
            c = rest.at[++i] == '0' ? '~' : '/';
        }
        buf_char(out, c);
    }
    *pointer = str_from(rest, len);
    return out->err == BAY_OK;
}

/* Follows a JSON pointer; JSON_NONE if it finds nothing. */
static json_val follow(compiler *self, json_val from, bay_str pointer, json_val where)
{
    buf token;
    buf_init(&token, self->limits->max_uri_bytes);
    json_val value = from;
    while (pointer.len > 0 && value.doc != NULL && self->err == BAY_OK) {
        if (pointer.at[0] != '/' || !read_token(&pointer, &token) ||
            !count_lookups(self, json_count(value) + 1, where)) {
            value = JSON_NONE;
            break;
        }
        bay_str text = buf_view(&token);
        uint64_t index;
        if (json_is(value, JSON_ARRAY)) {
            bool is_index = str_uint(text, &index) && (text.len == 1 || text.at[0] != '0');
            value = is_index ? json_item(value, (size_t)index) : JSON_NONE;
        } else {
            value = json_get(value, text);
        }
    }
    if (token.err == BAY_ERR_NOMEM) {
        compile_fail(self, BAY_ERR_NOMEM, where, "no memory for the schema");
    }
    buf_fini(&token);
    return value;
}

/* A built-in meta-schema; JSON_NONE if the URI names none. */
static json_val meta_schema(compiler *self, bay_str uri, schema_dialect *out_dialect, arena *memory)
{
    bay_str text = schema_metaschema(uri, out_dialect);
    json_doc *doc = text.len > 0 ? arena_alloc(memory, sizeof(*doc)) : NULL;
    if (doc != NULL && json_parse(doc, text, NULL, memory, NULL) == BAY_OK) {
        return json_root(doc);
    }
    if (text.len > 0) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
    }
    return JSON_NONE;
}

/* The place that a URI without fragment names; loads the document if necessary. */
static const place *find_resource(compiler *self, uint32_t around, bay_str uri, json_val where)
{
    const place *found = map_get(&self->places, uri);
    if (found != NULL) {
        return found;
    }
    const schema_document *document = supplied(self, uri);
    schema_dialect dialect = self->self->resources[around].dialect;
    arena memory; /* of a meta-schema */
    arena_init(&memory, SIZE_MAX);
    json_val root = document != NULL ? document->root : meta_schema(self, uri, &dialect, &memory);
    if (root.doc != NULL) {
        compile_document(self, uri, root, dialect);
    } else {
        compile_fail(self, BAY_ERR_NOT_FOUND, where,
                     "%.*s is not in this document, and nothing is ever fetched",
                     BAY_STR(str_head(uri, 120)));
    }
    arena_fini(&memory);
    return self->err == BAY_OK ? map_get(&self->places, uri) : NULL;
}

static bool follow_fragment(compiler *self, const place *from, bay_str uri, bay_str fragment,
                            json_val where, place *out, bay_str *out_anchor)
{
    *out = *from;
    *out_anchor = (bay_str){"", 0};
    if (fragment.len == 0) {
        return true;
    }
    if (fragment.at[0] == '/') {
        json_val found =
            follow(self, schema_place(self->self, from->document, from->at), fragment, where);
        out->at = found.at;
        out->is_dynamic = false;
        return found.doc != NULL;
    }
    /* the anchors of a document that was found by its address belong to its $id */
    uint32_t number = self->sources[from->document].resource_of[from->at];
    uri = number != 0 ? self->self->resources[number - 1].uri : uri;
    buf name;
    buf_init(&name, self->limits->max_uri_bytes);
    buf_str(&name, uri);
    buf_char(&name, '#');
    buf_str(&name, fragment);
    const place *anchor = name.err == BAY_OK ? map_get(&self->places, buf_view(&name)) : NULL;
    if (name.err == BAY_ERR_NOMEM) {
        compile_fail(self, BAY_ERR_NOMEM, where, "no memory for the schema");
    }
    buf_fini(&name);
    if (anchor == NULL) {
        return false;
    }
    *out = *anchor;
    if (arena_dup(&self->self->memory, fragment, out_anchor) != BAY_OK) {
        compile_fail(self, BAY_ERR_NOMEM, where, "no memory for the schema");
    }
    return self->err == BAY_OK;
}

bool compile_resolve(compiler *self, uint32_t resource, json_val reference, place *out,
                     bay_str *out_anchor)
{
    bay_str text;
    if (!json_is(reference, JSON_STRING) || !compile_text(self, reference, &text)) {
        compile_fail(self, BAY_ERR_SYNTAX, reference, "a reference is a string");
        return false;
    }
    buf uri;
    buf fragment;
    buf_init(&fragment, self->limits->max_uri_bytes);
    bool is_found = false;
    if (resolve_uri(self, self->self->resources[resource].uri, text, reference, &uri)) {
        if (!schema_uri_decode(schema_uri_fragment(text), &fragment) || fragment.err != BAY_OK) {
            compile_fail(self, fragment.err != BAY_OK ? fragment.err : BAY_ERR_SYNTAX, reference,
                         "the fragment of this reference is broken or too long");
        }
        const place *from =
            self->err == BAY_OK ? find_resource(self, resource, buf_view(&uri), reference) : NULL;
        is_found = from != NULL && follow_fragment(self, from, buf_view(&uri), buf_view(&fragment),
                                                   reference, out, out_anchor);
    }
    buf_fini(&uri);
    buf_fini(&fragment);
    if (!is_found) {
        compile_fail(self, BAY_ERR_NOT_FOUND, reference, "%.*s leads nowhere",
                     BAY_STR(str_head(text, 160)));
    }
    return is_found && self->err == BAY_OK;
}
