/* The protocol's tables, from the .def files, and look-ups in them.
 *
 * Method names are found by hash: a fixed open-addressed index, built at first use and never
 * changed, so any thread may use it. A revision is one of five and is compared directly. */
#include "mcp/protocol.h"

#include <pthread.h>

#include "base/check.h"

static const mcp_revision revisions[MCP_REVISION_COUNT] = {
#define MCP_REVISION(symbol, text, era, batches, structured)                                       \
    {MCP_REV_##symbol, STR_INIT(text), MCP_##era, batches, structured},
#include "mcp/revisions.def"
#undef MCP_REVISION
};

/* The words of methods.def. */
enum {
    KIND_REQUEST = 0,
    KIND_NOTIFICATION = 1,
    CACHEABLE = MCP_FLAG_CACHEABLE,
    MRTR = MCP_FLAG_MRTR,
    ENGINE = MCP_FLAG_ENGINE,
    LIST = MCP_FLAG_LIST,
};

static const mcp_method methods[MCP_METHOD_COUNT] = {
#define MCP_METHOD(symbol, text, kind, sender, since, until, capability, name_field, flags, call)  \
    {MCP_##symbol,         STR_INIT(text),       KIND_##kind == KIND_NOTIFICATION,                 \
     MCP_SENDER_##sender,  MCP_REV_##since,      MCP_REV_##until,                                  \
     STR_INIT(capability), STR_INIT(name_field), flags,                                            \
     CALL_##call},
#include "mcp/methods.def"
#undef MCP_METHOD
};

/* A client request that a service gets is a call: a row without a kind does not compile. */
#define MCP_METHOD(symbol, text, kind, sender, since, until, capability, name_field, flags, call)  \
    _Static_assert(KIND_##kind == KIND_NOTIFICATION || MCP_SENDER_##sender != MCP_SENDER_CLIENT || \
                       ((flags)&ENGINE) != 0 || CALL_##call != CALL_NONE,                          \
                   text " needs a kind of call");
#include "mcp/methods.def"
#undef MCP_METHOD

enum { INDEX_SLOTS = 128 };
_Static_assert(MCP_METHOD_COUNT * 2 < INDEX_SLOTS, "the index must stay sparse");

static uint8_t method_index[INDEX_SLOTS]; /* 0: empty, otherwise 1 + the method's id */
static pthread_once_t method_index_once = PTHREAD_ONCE_INIT;

static size_t method_slot(bay_str text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (unsigned char)text.at[i]) * 16777619u;
    }
    return (hash ^ (hash >> 15)) % INDEX_SLOTS;
}

static void method_index_build(void)
{
    for (size_t i = 0; i < MCP_METHOD_COUNT; i++) {
        size_t slot = method_slot(methods[i].text);
        while (method_index[slot] != 0) {
            slot = (slot + 1) % INDEX_SLOTS;
        }
        method_index[slot] = (uint8_t)(i + 1);
    }
}

const mcp_revision *mcp_revision_of(mcp_revision_id id)
{
    CHECK(id < MCP_REVISION_COUNT);
    return &revisions[id];
}

const mcp_revision *mcp_revision_find(bay_str text)
{
    for (size_t i = MCP_REVISION_COUNT; i-- > 0;) {
        if (str_eq(text, revisions[i].text)) {
            return &revisions[i];
        }
    }
    return NULL;
}

const mcp_method *mcp_method_of(mcp_method_id id)
{
    CHECK(id < MCP_METHOD_COUNT);
    return &methods[id];
}

const mcp_method *mcp_method_find(bay_str text, mcp_revision_id revision, mcp_sender sender)
{
    enum { LONGEST = 64 };
    if (text.len == 0 || text.len > LONGEST) {
        return NULL;
    }
    pthread_once(&method_index_once, method_index_build);
    for (size_t slot = method_slot(text); method_index[slot] != 0;
         slot = (slot + 1) % INDEX_SLOTS) {
        const mcp_method *method = &methods[method_index[slot] - 1];
        bool is_alive = revision >= method->since && revision <= method->until;
        if (is_alive && str_eq(method->text, text)) {
            return (method->sender & sender) != 0 ? method : NULL;
        }
    }
    return NULL;
}

json_val mcp_capability(json_val capabilities, bay_str path)
{
    json_val at = capabilities;
    if (json_count(capabilities) == 0) {
        return path.len > 0 ? JSON_NONE : capabilities;
    }
    while (path.len > 0) {
        size_t dot = str_find(path, '.');
        bay_str name = str_head(path, dot);
        at = json_get(at, name);
        path = str_from(path, dot + 1);
        if (str_eq(name, STR("extensions"))) {
            return path.len > 0 ? json_get(at, path) : at;
        }
    }
    return at;
}

static const bay_str level_texts[] = {
    STR_INIT("debug"), STR_INIT("info"),     STR_INIT("notice"), STR_INIT("warning"),
    STR_INIT("error"), STR_INIT("critical"), STR_INIT("alert"),  STR_INIT("emergency"),
};
_Static_assert(ARRAY_LEN(level_texts) == MCP_LOG_NONE, "a text for each level");

bool mcp_log_level_find(bay_str text, mcp_log_level *out)
{
    for (size_t i = 0; i < ARRAY_LEN(level_texts); i++) {
        if (str_eq(text, level_texts[i])) {
            *out = (mcp_log_level)i;
            return true;
        }
    }
    return false;
}

bay_str mcp_log_level_text(mcp_log_level level)
{
    return (size_t)level < ARRAY_LEN(level_texts) ? level_texts[level] : STR("none");
}
