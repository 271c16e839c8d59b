/* The protocol's tables: revisions and methods, error codes, reserved _meta keys, log levels. A new
 * revision is mostly new rows in revisions.def and methods.def. */
#ifndef MCP_PROTOCOL_H
#define MCP_PROTOCOL_H

#include "base/str.h"
#include "call/kind.h"
#include "patchbay/types.h"
#include "json/json.h"

typedef enum mcp_era { MCP_LEGACY, MCP_MODERN } mcp_era;

typedef enum mcp_revision_id {
#define MCP_REVISION(symbol, text, era, batches, structured) MCP_REV_##symbol,
#include "mcp/revisions.def"
#undef MCP_REVISION
    MCP_REVISION_COUNT
} mcp_revision_id;

#define MCP_LATEST ((mcp_revision_id)(MCP_REVISION_COUNT - 1))
#define MCP_LATEST_LEGACY MCP_REV_2025_11_25

typedef struct mcp_revision {
    mcp_revision_id id;
    bay_str text;
    mcp_era era;
    bool batches;
    bool structured;
} mcp_revision;

enum mcp_method_flags {
    MCP_FLAG_CACHEABLE = 1,
    MCP_FLAG_MRTR = 2,
    MCP_FLAG_ENGINE = 4,
    MCP_FLAG_LIST = 8,
};

typedef enum mcp_sender {
    MCP_SENDER_CLIENT = 1,
    MCP_SENDER_SERVER = 2,
    MCP_SENDER_EITHER = 3
} mcp_sender;

typedef enum mcp_method_id {
#define MCP_METHOD(symbol, text, kind, sender, since, until, capability, name_field, flags, call)  \
    MCP_##symbol,
#include "mcp/methods.def"
#undef MCP_METHOD
    MCP_METHOD_COUNT
} mcp_method_id;

typedef struct mcp_method {
    mcp_method_id id;
    bay_str text;
    bool is_notification;
    mcp_sender sender;
    mcp_revision_id since;
    mcp_revision_id until;
    bay_str capability;
    bay_str name_field;
    unsigned flags;
    call_kind call;
} mcp_method;

const mcp_revision *mcp_revision_of(mcp_revision_id id);
const mcp_revision *mcp_revision_find(bay_str text); /* NULL when unknown */
const mcp_method *mcp_method_of(mcp_method_id id);
/* The row of this name if `revision` has it and `sender` may send it, otherwise NULL. One hash
 * look-up. */
const mcp_method *mcp_method_find(bay_str text, mcp_revision_id revision, mcp_sender sender);

enum {
    MCP_RESOURCE_NOT_FOUND = -32002, /* legacy revisions only */
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

#define MCP_EXTENSION_TASKS "io.modelcontextprotocol/tasks"
#define MCP_EXTENSION_SKILLS "io.modelcontextprotocol/skills"
#define MCP_EXTENSION_UI "io.modelcontextprotocol/ui"

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CLIENT_INFO "io.modelcontextprotocol/clientInfo"
#define MCP_META_CLIENT_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER_INFO "io.modelcontextprotocol/serverInfo"
/* The gateways a call came through, for links without header fields: as Via in HTTP. */
#define MCP_META_VIA "patchbay/via"
#define MCP_META_LOG_LEVEL "io.modelcontextprotocol/logLevel"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* From most to least verbose; NONE: no messages. */
typedef enum mcp_log_level {
    MCP_LOG_DEBUG,
    MCP_LOG_INFO,
    MCP_LOG_NOTICE,
    MCP_LOG_WARNING,
    MCP_LOG_ERROR,
    MCP_LOG_CRITICAL,
    MCP_LOG_ALERT,
    MCP_LOG_EMERGENCY,
    MCP_LOG_NONE,
} mcp_log_level;

/* The value of `path` in a capabilities object: "tools", "resources.subscribe", "elicitation.url",
 * "extensions.io.modelcontextprotocol/tasks" (the text after "extensions." is one name with its
 * dots). Missing if there is none. */
json_val mcp_capability(json_val capabilities, bay_str path);

bool mcp_log_level_find(bay_str text, mcp_log_level *out);
bay_str mcp_log_level_text(mcp_log_level level);

/* What changed, for list_changed and subscriptions. MAYBE: no change was reported, but one may have
 * been missed (subscriptions/listen was not open for a while). */
typedef enum mcp_change {
    MCP_CHANGE_TOOLS = 1,
    MCP_CHANGE_PROMPTS = 2,
    MCP_CHANGE_RESOURCES = 4,
    MCP_CHANGE_MAYBE_TOOLS = 8,
    MCP_CHANGE_MAYBE_PROMPTS = 16,
    MCP_CHANGE_MAYBE_RESOURCES = 32,
} mcp_change;

/* The lists that changed or may have changed, without MAYBE. */
static inline mcp_change mcp_change_any(mcp_change change)
{
    return (mcp_change)(((unsigned)change | (unsigned)change >> 3) & 7u);
}

#endif
