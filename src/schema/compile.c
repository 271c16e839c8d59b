/* The beginning and the end of compiling. Nodes are created when something refers to them and
 * compiled one after the other, so a schema that refers to itself needs no recursion. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "schema/compile.h"
#include "schema/place.h"
#include "schema/uri.h"

const schema_limits schema_default_limits = {
    .max_bytes = 4 << 20,
    .max_depth = 96,
    .max_values = 1 << 18,
    .max_patterns = 1024,
    .max_pattern_bytes = 4096,
    .max_uri_bytes = 4096,
    .max_lookups = 1 << 26,
    .max_levels = 400,
    .max_steps = 1 << 22,
    .max_scratch_bytes = 16 << 20,
};

bay_err compile_fail(compiler *self, bay_err err, json_val where, const char *format, ...)
{
    if (self->err != BAY_OK) {
        return self->err;
    }
    self->err = err;
    char pointer[101];
    fixed_text out = {.at = pointer, .cap = sizeof(pointer) - 1};
    size_t offset = 0;
    if (where.doc != NULL) {
        fixed_pointer(&out, json_root(where.doc), where);
        bool is_root = self->self->document_count > 0 && where.doc == self->self->documents[0].doc;
        offset = is_root ? self->root_offset + json_offset(where) : 0;
    }
    pointer[out.len] = '\0';
    char text[240];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return diag_at(self->diag, err, offset, "%s%s%s", pointer, out.len > 0 ? ": " : "", text);
}

bool compile_grow(compiler *self, void *array, size_t *cap, size_t count, size_t item)
{
    void **at = array;
    if (self->err != BAY_OK) {
        return false;
    }
    if (count < *cap) {
        return true;
    }
    size_t wider = *cap == 0 ? 16 : *cap * 2;
    void *grown = wider > UINT32_MAX / 2 ? NULL : mem_resize(*at, wider * item);
    if (grown == NULL) {
        compile_fail(self, BAY_ERR_NOMEM, JSON_NONE, "no memory for the schema");
        return false;
    }
    *at = grown;
    *cap = wider;
    return true;
}

bool compile_text(compiler *self, json_val value, bay_str *out)
{
    bay_err err = json_str(value, &self->self->memory, out);
    if (err == BAY_ERR_UTF8) {
        compile_fail(self, err, value, "half of a surrogate pair");
    } else if (err != BAY_OK) {
        compile_fail(self, err, value, "no memory for the schema");
    }
    return err == BAY_OK;
}

static void finish_dynamic(compiler *self)
{
    schema *out = self->self;
    for (dynamic_name *name = self->dynamic; name != NULL; name = name->next) {
        name->from = out->dynamic_count;
        for (dynamic_place *at = name->is_used ? name->places : NULL; at != NULL; at = at->next) {
            if (!compile_grow(self, &out->dynamic, &out->dynamic_cap, out->dynamic_count,
                              sizeof(*out->dynamic))) {
                return;
            }
            out->dynamic[out->dynamic_count++] =
                (dynamic_target){at->resource, compile_node_at(self, at->document, at->at)};
        }
        name->count = out->dynamic_count - name->from;
    }
    for (size_t i = 0; i < self->dynamic_rule_count; i++) {
        program_rule *one = &out->rules[self->dynamic_rules[i]];
        one->b = (uint32_t)self->dynamic_rule_names[i]->from;
        one->most = self->dynamic_rule_names[i]->count;
        out->has_dynamic = true;
    }
}

static int by_resource(const void *a, const void *b)
{
    uint32_t left = ((const dynamic_target *)a)->resource;
    uint32_t right = ((const dynamic_target *)b)->resource;
    return left < right ? -1 : left > right;
}

/* Compiles all nodes that are pending; then all that a dynamic reference could reach, until there
 * are no new ones. */
static void compile_all(compiler *self)
{
    schema *out = self->self;
    size_t done = NODE_NONE + 1;
    do {
        while (done < out->node_count && self->err == BAY_OK) {
            compile_node(self, (uint32_t)done++);
        }
        for (dynamic_name *name = self->dynamic; name != NULL; name = name->next) {
            for (dynamic_place *at = name->is_used ? name->places : NULL;
                 at != NULL && self->err == BAY_OK; at = at->next) {
                compile_node_at(self, at->document, at->at);
            }
        }
    } while (done < out->node_count && self->err == BAY_OK);
    if (self->err == BAY_OK) {
        finish_dynamic(self);
    }
    for (dynamic_name *name = self->dynamic; name != NULL && self->err == BAY_OK;
         name = name->next) {
        if (name->count > 1) {
            qsort(out->dynamic + name->from, name->count, sizeof(*out->dynamic), by_resource);
        }
    }
}

static schema_limits limits_of(const schema_options *options)
{
    schema_limits limits = schema_default_limits;
    const schema_limits *given = options->limits;
    if (given != NULL) {
#define GIVEN(name) limits.name = given->name != 0 ? given->name : limits.name
        GIVEN(max_bytes);
        GIVEN(max_depth);
        GIVEN(max_values);
        GIVEN(max_patterns);
        GIVEN(max_pattern_bytes);
        GIVEN(max_uri_bytes);
        GIVEN(max_lookups);
        GIVEN(max_levels);
        GIVEN(max_steps);
        GIVEN(max_scratch_bytes);
#undef GIVEN
    }
    return limits;
}

static void compiler_fini(compiler *self)
{
    for (size_t i = 0; i < self->self->document_count && self->sources != NULL; i++) {
        mem_free(self->sources[i].node_of);
        mem_free(self->sources[i].resource_of);
    }
    mem_free(self->sources);
    mem_free(self->dynamic_rules);
    mem_free(self->dynamic_rule_names);
    map_fini(&self->places);
    map_fini(&self->pattern_of);
    map_fini(&self->dynamic_of);
}

bay_err schema_compile(json_val root, const schema_options *options, schema **out, bay_diag *diag)
{
    enum { NOTES = 64 }; /* the arena's maximum: room for index and URIs beside the text */
    static const schema_options defaults = {0};
    options = options != NULL ? options : &defaults;
    if (root.doc == NULL) {
        return diag_set(diag, BAY_ERR_INVALID, "there is no schema");
    }
    schema *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "no memory for the schema");
    }
    self->limits = limits_of(options);
    self->seed = rand_u64();
    arena_init(&self->memory, self->limits.max_bytes * NOTES);
    compiler c = {.self = self,
                  .options = options,
                  .limits = &self->limits,
                  .diag = diag,
                  .root_offset = json_offset(root)};
    map_init(&c.places, SIZE_MAX / 64);
    map_init(&c.pattern_of, SIZE_MAX / 64);
    map_init(&c.dynamic_of, SIZE_MAX / 64);
    if (compile_grow(&c, &self->nodes, &self->node_cap, 0, sizeof(*self->nodes))) {
        self->nodes[self->node_count++] = (program_node){.types = TYPE_ANY};
        uint32_t number =
            compile_document(&c, schema_uri_without_fragment(options->uri), root, options->dialect);
        if (c.err == BAY_OK) {
            self->root = compile_node_at(&c, number, 0);
            compile_all(&c);
        }
    }
    compiler_fini(&c);
    if (c.err != BAY_OK) {
        schema_free(self);
        return c.err;
    }
    *out = self;
    return BAY_OK;
}

void schema_free(schema *self)
{
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->pattern_count; i++) {
        pattern_free(self->patterns[i]);
    }
    for (size_t i = 0; i < IDN_PATTERNS; i++) {
        pattern_free(self->idn[i]);
    }
    pattern_engine_free(self->engine);
    mem_free(self->documents);
    mem_free(self->resources);
    mem_free(self->nodes);
    mem_free(self->rules);
    mem_free(self->lists);
    mem_free(self->members);
    mem_free(self->names);
    mem_free(self->slots);
    mem_free(self->dynamic);
    mem_free(self->patterns);
    arena_fini(&self->memory);
    mem_free(self);
}
