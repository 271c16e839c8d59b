/* How tools are called: settings by patterns of shown names (`policy.tools`). The most specific
 * pattern that has a setting says what it is, each setting for itself: a name that is written out
 * before a pattern with wildcards, and of two patterns the one with more literal bytes.
 *
 * A set is immutable once it is built, and counted; any thread may hold it. Each loop asks it
 * through a policy_tools_index, which keeps what it found for a name. */
#ifndef POLICY_TOOLS_H
#define POLICY_TOOLS_H

#include "policy/rate.h"
#include "wire/http1.h"
#include "json/json.h"

enum {
    POLICY_TOOL_PATTERNS = 4096, /* of one set */
    POLICY_TOOL_NAMES = 100000,  /* that an index keeps; those of others are found each time */
};

/* The member of `_meta` in which a caller gives a key, and a server gets one. */
#define IDEMPOTENCY_META "patchbay/idempotencyKey"

/* Calls of one key are carried out once (policy/idempotency.h). */
typedef struct policy_idempotency {
    bay_str argument;    /* JSON pointer into the arguments; "": none */
    bay_str meta;        /* member of `_meta`, beside IDEMPOTENCY_META; "": none */
    bay_str header;      /* of the HTTP request; "": none */
    bool derive;         /* from the arguments, where nothing else gives one */
    uint32_t keep_ms;    /* an outcome, or that it is unknown; 0: by the kind of key */
    unsigned on_unknown; /* policy_on_unknown */
} policy_idempotency;

typedef enum policy_on_unknown { POLICY_UNKNOWN_REFUSE, POLICY_UNKNOWN_RETRY } policy_on_unknown;

/* The settings of one pattern, or of one tool. NULL, 0: not set. */
typedef struct policy_tool {
    const policy_idempotency *idempotency;
    policy_rate rate;    /* of each principal */
    policy_rate total;   /* of all principals together */
    uint32_t cost;       /* calls that one call counts as */
    size_t result_bytes; /* a result with more is not passed on */
} policy_tool;

typedef struct policy_tools policy_tools;

/* Owns: the caller holds one reference. Errors: BAY_ERR_NOMEM. */
bay_err policy_tools_new(policy_tools **out) BAY_MUST_CHECK;
policy_tools *policy_tools_ref(policy_tools *self); /* both accept NULL; any thread */
void policy_tools_unref(policy_tools *self);

/* A further pattern of shown names. Texts of the settings are copied.
 * Errors: BAY_ERR_DUPLICATE: it disagrees with an equally specific one that some name matches, too;
 * `out_other` is that one's index. BAY_ERR_LIMIT, BAY_ERR_NOMEM. */
bay_err policy_tools_add(policy_tools *self, bay_str pattern, const policy_tool *settings,
                         size_t *out_other) BAY_MUST_CHECK;

bay_str policy_tools_pattern(const policy_tools *self, size_t index);

/* Of header fields that some setting names: those of a request, in `memory`. The value of a
 * field that is there twice is empty, which is none that could be meant. */
typedef struct policy_tool_field {
    bay_str name; /* as the setting has it */
    bay_str value;
} policy_tool_field;
/* NULL: none of them is there, or there is no memory; `out_count` is then 0. */
const policy_tool_field *policy_tools_fields(const policy_tools *self, const http_field *fields,
                                             size_t count, arena *memory, size_t *out_count);

/* One loop's; zeroed: no settings. Embedded in its owner. It brings a function along: a library
 * without settings does not link it. */
typedef struct policy_tools_index {
    policy_tools *tools; /* NULL: nothing is configured */
    struct map *names;   /* what was found */
    const policy_tool_field *(*fields)(const policy_tools *self, const http_field *fields,
                                       size_t count, arena *memory, size_t *out_count);
} policy_tools_index;

/* Takes a reference of its own. `tools` may be NULL. */
void policy_tools_index_set(policy_tools_index *self, policy_tools *tools);
void policy_tools_index_fini(policy_tools_index *self);
/* What holds for this tool; valid until the index is set anew. Of an index with tools. */
policy_tool policy_tools_find(policy_tools_index *self, bay_str name);

#endif
