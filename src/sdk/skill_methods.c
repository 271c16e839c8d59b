/* What clients ask of skills: the list, one entry of it, and what lies in a folder. */
#include "base/check.h"
#include "base/str.h"
#include "sdk/skills.h"

static void skill_methods_refuse(mcp_request *request, const char *text)
{
    mcp_request_error(request, RPC_INVALID_PARAMS, str_of(text), (bay_str){NULL, 0});
}

static void out_of_memory(mcp_request *request)
{
    mcp_request_error(request, RPC_INTERNAL_ERROR, STR("Out of memory"), (bay_str){NULL, 0});
}

static void skill_methods_answer(bay_server *self, mcp_request *request, const buf *members)
{
    if (members->err != BAY_OK) {
        out_of_memory(request);
        return;
    }
    request->ttl_ms = (uint32_t)sdk_server_setting(self, BAY_SERVER_SETTING_LIST_TTL_MS);
    request->is_cache_public = true;
    mcp_request_result_members(request, buf_view(members));
}

/* False: it was refused. */
static bool read_uri(mcp_request *request, bay_str *out)
{
    json_val uri = json_get(request->message.params, STR("uri"));
    if (!json_is(uri, JSON_STRING)) {
        skill_methods_refuse(request, "uri is not a string");
        return false;
    }
    if (json_str(uri, request->memory, out) != BAY_OK) {
        out_of_memory(request);
        return false;
    }
    return true;
}

static void get_skill(bay_server *self, mcp_request *request)
{
    bay_str uri;
    if (!read_uri(request, &uri)) {
        return;
    }
    const entry *found = sdk_server_find(self, ENTRY_SKILL, uri);
    if (found == NULL) {
        skill_methods_refuse(request, "There is no skill of this URI");
        return;
    }
    buf members;
    buf_init(&members, SERVER_MAX_RESULT);
    buf_lit(&members, "\"skill\":");
    buf_str(&members, found->schema);
    skill_methods_answer(self, request, &members);
    buf_fini(&members);
}

/* Below the folder, without its slash; `at` NULL: elsewhere. */
static bay_str below(bay_str uri, bay_str folder)
{
    bool is_inside = str_starts(uri, folder) && uri.len > folder.len && uri.at[folder.len] == '/';
    return is_inside ? str_from(uri, folder.len + 1) : (bay_str){NULL, 0};
}

static void put_folder(json_writer *out, bay_str parent, bay_str encoded, bay_str name)
{
    buf uri;
    buf_init(&uri, 16 * 1024);
    buf_str(&uri, parent);
    buf_char(&uri, '/');
    buf_str(&uri, encoded);
    json_open_object(out);
    json_key_lit(out, "uri");
    json_put_str(out, buf_view(&uri));
    json_key_lit(out, "name");
    json_put_str(out, name);
    json_key_lit(out, "mimeType");
    json_put_str(out, STR("inode/directory"));
    json_close_object(out);
    out->out->err = uri.err != BAY_OK ? uri.err : out->out->err;
    buf_fini(&uri);
}

/* The name of a folder as its path spells it, from the depth of its URI. */
static bay_str name_at(bay_str path, size_t depth)
{
    for (; depth > 0; depth--) {
        path = str_from(path, str_find(path, '/') + 1);
    }
    return str_head(path, str_find(path, '/'));
}

/* Is it the skill's own folder, or may it be one below? */
static bool is_of(const skill *self, bay_str folder)
{
    bay_str rest = str_from(folder, sizeof(SKILL_SCHEME) - 1);
    if (self->count == 0 || self->files[0].listed == NULL ||
        !str_starts(folder, STR(SKILL_SCHEME)) || !str_starts(rest, self->name)) {
        return false;
    }
    rest = str_from(rest, self->name.len);
    return rest.len == 0 || rest.at[0] == '/';
}

static size_t depth_of(const skill *self, bay_str folder)
{
    size_t depth = 0;
    bay_str rest = str_from(folder, sizeof(SKILL_SCHEME) - 1 + self->name.len);
    for (size_t i = 0; i < rest.len; i++) {
        depth += rest.at[i] == '/' ? 1 : 0;
    }
    return depth;
}

/* Direct children of one folder; the files are sorted, so those of a folder stand together. False:
 * there are none. */
static bool put_children(json_writer *out, const skill *self, bay_str folder,
                         mcp_revision_id revision)
{
    bay_str last = {NULL, 0}; /* the folder that was put last */
    bool has_any = false;
    for (size_t i = 0; i < self->count && is_of(self, folder); i++) {
        const skill_file *file = &self->files[i];
        bay_str rest = below(file->listed->key, folder);
        if (rest.at == NULL) {
            continue;
        }
        has_any = true;
        size_t slash = str_find(rest, '/');
        bay_str segment = str_head(rest, slash);
        if (slash == rest.len) {
            sdk_put_entry(out, file->listed, revision);
        } else if (!str_eq(segment, last)) {
            put_folder(out, folder, segment, name_at(file->path, depth_of(self, folder)));
            last = segment;
        }
    }
    return has_any;
}

static void read_directory(bay_server *self, mcp_request *request)
{
    bay_str uri;
    if (!read_uri(request, &uri)) {
        return;
    }
    if (!json_is(json_get(request->message.params, STR("cursor")), JSON_MISSING)) {
        skill_methods_refuse(request, "Invalid cursor: a folder is one page");
        return;
    }
    if (str_ends(uri, STR("/"))) {
        uri.len--;
    }
    buf members;
    json_writer writer;
    buf_init(&members, SERVER_MAX_RESULT);
    buf_lit(&members, "\"resources\":");
    json_writer_init(&writer, &members);
    json_open_array(&writer);
    bool is_found = false;
    for (const skill *at = self->skills; at != NULL && !is_found; at = at->next) {
        is_found = put_children(&writer, at, uri, request->revision->id);
    }
    json_close_array(&writer);
    if (is_found) {
        skill_methods_answer(self, request, &members);
    } else {
        skill_methods_refuse(request, "There is no folder of this URI");
    }
    buf_fini(&members);
}

void sdk_skills_request(bay_server *self, mcp_request *request)
{
    switch (request->method->id) {
    case MCP_SKILLS_LIST:
        sdk_list_answer(self, ENTRY_SKILL, request);
        return;
    case MCP_SKILLS_GET:
        get_skill(self, request);
        return;
    default:
        read_directory(self, request);
    }
}
