/* What an endpoint says of itself: the capabilities of its servers, together. A server that has not
 * been heard of counts as having them all: a client of the session revisions is told once, and what
 * comes later must still reach it. */
#include "base/err.h"
#include "base/str.h"
#include "endpoint/endpoint_parts.h"
#include "endpoint/skills.h"

enum {
    HAS_TOOLS = 1,
    HAS_RESOURCES = 2,
    HAS_SUBSCRIBE = 4,
    HAS_PROMPTS = 8,
    HAS_COMPLETIONS = 16,
    HAS_LOGGING = 32,
    HAS_ALL = 63,
    HAS_SKILLS = 64, /* not before a server has said so */
};

enum { INSTRUCTIONS_BYTES = 64 * 1024, INSTRUCTIONS_OF_ONE = 8 * 1024 };

static unsigned abilities_of(const upstream *self)
{
    static const struct {
        bay_str path;
        unsigned ability;
    } rows[] = {
        {STR_INIT("tools"), HAS_TOOLS},
        {STR_INIT("resources"), HAS_RESOURCES},
        {STR_INIT("resources.subscribe"), HAS_SUBSCRIBE},
        {STR_INIT("prompts"), HAS_PROMPTS},
        {STR_INIT("completions"), HAS_COMPLETIONS},
        {STR_INIT("logging"), HAS_LOGGING},
    };
    const mcp_revision *revision = upstream_revision(self);
    unsigned found = 0;
    if (revision == NULL) {
        return HAS_ALL;
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        found |= upstream_admits(self, rows[i].path) ? rows[i].ability : 0u;
    }
    if (revision->id < MCP_REV_2025_03_26) {
        found |= HAS_COMPLETIONS; /* the method is older than the capability */
    }
    return found;
}

void endpoint_server_changed(endpoint *self, const upstream *about)
{
    unsigned all = self->servers.count == 0 ? HAS_ALL : self->is_searched ? HAS_TOOLS : 0u;
    for (size_t i = 0; i < self->servers.count; i++) {
        catalog_source *source = &self->servers.sources[i];
        if (about == NULL || about == source->upstream) {
            source->abilities = abilities_of(source->upstream);
        }
        all |= source->abilities;
    }
    all |= skills_are_shown(self) ? HAS_SKILLS : 0u;
    if (all != self->abilities) {
        self->abilities = all;
        mcp_server_changed(self->engine, 0); /* it remembers what was declared */
    }
}

static void put_extensions(const endpoint *self, const mcp_revision *revision, json_writer *out)
{
    bool has_skills = (self->abilities & HAS_SKILLS) != 0;
    bool has_tasks = self->tasks != NULL && self->ring != NULL && revision->era == MCP_MODERN;
    if (!has_skills && !has_tasks) {
        return;
    }
    json_key_lit(out, "extensions");
    json_open_object(out);
    if (has_tasks) {
        self->tasks->put_extension(self, revision, out);
    }
    if (has_skills) {
        json_key_lit(out, MCP_EXTENSION_SKILLS);
        json_put_raw(out, STR("{\"directoryRead\":true}"));
    }
    json_close_object(out);
}

void endpoint_capabilities(void *user, const mcp_revision *revision, json_writer *out)
{
    const endpoint *self = user;
    if ((self->abilities & HAS_TOOLS) != 0) {
        json_key_lit(out, "tools");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    if ((self->abilities & HAS_RESOURCES) != 0) {
        json_key_lit(out, "resources");
        json_put_raw(out, (self->abilities & HAS_SUBSCRIBE) != 0
                              ? STR("{\"subscribe\":true,\"listChanged\":true}")
                              : STR("{\"listChanged\":true}"));
    }
    if ((self->abilities & HAS_PROMPTS) != 0) {
        json_key_lit(out, "prompts");
        json_put_raw(out, STR("{\"listChanged\":true}"));
    }
    if ((self->abilities & HAS_COMPLETIONS) != 0 && revision->id >= MCP_REV_2025_03_26) {
        json_key_lit(out, "completions");
        json_put_raw(out, STR("{}"));
    }
    if ((self->abilities & HAS_LOGGING) != 0) {
        json_key_lit(out, "logging");
        json_put_raw(out, STR("{}"));
    }
    if (self->tasks != NULL) {
        self->tasks->put_capability(self, revision, out);
    }
    if (revision->id >= MCP_REV_2025_11_25) {
        put_extensions(self, revision, out);
    }
}

/* Cut between two characters. */
static bay_str cut(bay_str text, size_t most)
{
    size_t len = text.len;
    if (len > most) {
        len = most;
        while (len > 0 && ((unsigned char)text.at[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    return str_head(text, len);
}

void endpoint_instructions(void *user, const mcp_request *request, buf *out)
{
    const endpoint *self = user;
    size_t before = out->len;
    for (size_t i = 0; i < self->servers.count; i++) {
        const upstream *server = self->servers.sources[i].upstream;
        const trust_checked *about = self->servers.sources[i].about;
        bool passes = about == NULL || trust_checked_admits(about);
        bay_str text = passes ? upstream_instructions(server) : (bay_str){"", 0};
        if (text.len == 0 || !endpoint_sees_server(self, request, server)) {
            continue;
        }
        if (self->only != NULL) {
            buf_str(out, text);
            return;
        }
        bay_str part = cut(text, INSTRUCTIONS_OF_ONE);
        size_t used = out->len - before + part.len + upstream_name(server).len;
        if (used < INSTRUCTIONS_BYTES) {
            buf_printf(out, "%s# %s\n\n", out->len > before ? "\n\n" : "",
                       upstream_name(server).at);
            buf_str(out, part);
        }
    }
}
