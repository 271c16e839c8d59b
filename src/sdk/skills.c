/* Skills: registration, and what becomes of it once everything is registered. Each file of a skill
 * is a resource, skill://NAME/PATH; each skill is an entry of skills/list that holds the front
 * matter of its SKILL.md and the digest and the size of every file, so that a client can tell that
 * it got what was meant. Bytes are read once, when the server is checked: what is served later is
 * what the digests were made of, whatever has become of the folder. */
#include "sdk/skills.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/digest.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "sdk/front_matter.h"
#include "wire/uri.h"
#include "json/utf8.h"

void sdk_skill_error(skill *self, const char *format, ...)
{
    char text[sizeof(((bay_diag *)NULL)->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    self->is_broken = true;
    sdk_server_error(self->server, "skill \"%.*s\": %s", BAY_STR(self->name), text);
}

/* ---- registration */

/* Skills are found by name in the extension's reading of a URI: its last folder. */
static skill *skill_find(bay_server *server, bay_str name)
{
    for (skill *at = server->skills; at != NULL; at = at->next) {
        if (str_eq(at->name, name)) {
            return at;
        }
    }
    return NULL;
}

static skill *skill_new(bay_server *server, bay_str name)
{
    skill **last = &server->skills;
    size_t count = 0;
    while (*last != NULL) {
        last = &(*last)->next;
        count++;
    }
    if (count == SERVER_MAX_SKILLS) {
        sdk_server_error(server, "there are more than %d skills", SERVER_MAX_SKILLS);
        return NULL;
    }
    skill *self = arena_zalloc(&server->memory, sizeof(*self));
    if (self == NULL || arena_dup(&server->memory, name, &self->name) != BAY_OK) {
        server->is_out_of_memory = true;
        return NULL;
    }
    self->server = server;
    *last = self;
    return self;
}

static bay_str last_segment(bay_str path)
{
    while (path.len > 1 && path.at[path.len - 1] == '/') {
        path.len--;
    }
    size_t slash = str_find_last(path, '/');
    return slash == path.len ? path : str_from(path, slash + 1);
}

void bay_server_skill(bay_server *server, const char *folder)
{
    if (server == NULL) {
        return;
    }
    bay_str name = last_segment(str_of(folder));
    if (name.len == 0) {
        sdk_server_error(server, "a skill was registered without a folder");
        return;
    }
    if (skill_find(server, name) != NULL) {
        sdk_server_error(server, "skill \"%.*s\" was registered twice", BAY_STR(name));
        return;
    }
    skill *self = skill_new(server, name);
    if (self != NULL) {
        self->folder = sdk_server_keep(server, folder);
    }
}

void bay_server_skill_file(bay_server *server, const char *name, const char *path,
                           const char *mime_type, const void *bytes, size_t len)
{
    if (server == NULL) {
        return;
    }
    if (name == NULL || name[0] == '\0') {
        sdk_server_error(server, "a skill was registered without a name");
        return;
    }
    skill *self = skill_find(server, str_of(name));
    if (self == NULL) {
        self = skill_new(server, str_of(name));
    }
    if (self == NULL) {
        return;
    }
    if (self->folder.len > 0) {
        sdk_skill_error(self, "it is read from a folder: no file can be added");
        return;
    }
    (void)sdk_skill_add(self, str_of(path), mime_type, (bay_str){bytes, len});
}

static bool is_utf8(bay_str text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    return json_utf8_skip(at, at + text.len) == at + text.len;
}

/* Relative, in its shortest form, nothing that a file system or a URI reads otherwise. */
static bool path_is_good(bay_str path)
{
    if (path.len == 0 || path.len > SKILL_MAX_PATH_BYTES || !is_utf8(path)) {
        return false;
    }
    for (size_t i = 0; i < path.len; i++) {
        if ((unsigned char)path.at[i] < 0x20 || path.at[i] == 0x7f || path.at[i] == '\\') {
            return false;
        }
    }
    while (true) {
        size_t slash = str_find(path, '/');
        bay_str segment = str_head(path, slash);
        if (segment.len == 0 || str_eq(segment, STR(".")) || str_eq(segment, STR(".."))) {
            return false;
        }
        if (slash == path.len) {
            return true;
        }
        path = str_from(path, slash + 1);
    }
}

static bay_str type_of(bay_str path, bool is_text)
{
    static const struct {
        bay_str ending;
        bay_str type;
    } known[] = {
        {STR_INIT(".md"), STR_INIT("text/markdown")},
        {STR_INIT(".txt"), STR_INIT("text/plain")},
        {STR_INIT(".html"), STR_INIT("text/html")},
        {STR_INIT(".css"), STR_INIT("text/css")},
        {STR_INIT(".csv"), STR_INIT("text/csv")},
        {STR_INIT(".js"), STR_INIT("text/javascript")},
        {STR_INIT(".mjs"), STR_INIT("text/javascript")},
        {STR_INIT(".py"), STR_INIT("text/x-python")},
        {STR_INIT(".sh"), STR_INIT("application/x-sh")},
        {STR_INIT(".json"), STR_INIT("application/json")},
        {STR_INIT(".yaml"), STR_INIT("application/yaml")},
        {STR_INIT(".yml"), STR_INIT("application/yaml")},
        {STR_INIT(".xml"), STR_INIT("application/xml")},
        {STR_INIT(".pdf"), STR_INIT("application/pdf")},
        {STR_INIT(".svg"), STR_INIT("image/svg+xml")},
        {STR_INIT(".png"), STR_INIT("image/png")},
        {STR_INIT(".jpg"), STR_INIT("image/jpeg")},
        {STR_INIT(".jpeg"), STR_INIT("image/jpeg")},
        {STR_INIT(".gif"), STR_INIT("image/gif")},
        {STR_INIT(".webp"), STR_INIT("image/webp")},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (path.len > known[i].ending.len &&
            str_eq_nocase(str_from(path, path.len - known[i].ending.len), known[i].ending)) {
            return known[i].type;
        }
    }
    return is_text ? STR("text/plain") : STR("application/octet-stream");
}

static skill_file *add_slot(skill *self)
{
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 8 : self->cap * 2;
        skill_file *files = mem_resize(self->files, cap * sizeof(*files));
        if (files == NULL) {
            self->server->is_out_of_memory = true;
            return NULL;
        }
        self->files = files;
        self->cap = cap;
    }
    skill_file *slot = &self->files[self->count];
    *slot = (skill_file){.path = {NULL, 0}};
    return slot;
}

bool sdk_skill_add(skill *self, bay_str path, const char *mime_type, bay_str bytes)
{
    bay_server *server = self->server;
    if (!path_is_good(path)) {
        sdk_skill_error(self,
                        "\"%.*s\" is no path below it: /-separated names of UTF-8, none of "
                        "them \".\" or \"..\"",
                        (int)(path.len < 100 ? path.len : 100), path.at != NULL ? path.at : "");
        return false;
    }
    if (self->count == SKILL_MAX_FILES) {
        sdk_skill_error(self, "it has more than %d files", SKILL_MAX_FILES);
        return false;
    }
    if (bytes.len > SKILL_MAX_BYTES - self->bytes) {
        sdk_skill_error(self, "its files have more than %d bytes", SKILL_MAX_BYTES);
        return false;
    }
    skill_file *file = add_slot(self);
    if (file == NULL || arena_dup(&server->memory, path, &file->path) != BAY_OK ||
        arena_dup(&server->memory, bytes, &file->bytes) != BAY_OK) {
        server->is_out_of_memory = true;
        return false;
    }
    file->is_text = is_utf8(file->bytes);
    file->mime_type =
        mime_type != NULL ? sdk_server_keep(server, mime_type) : type_of(file->path, file->is_text);
    self->bytes += bytes.len;
    self->count++;
    return true;
}

/* ---- once everything is registered */

static void read_file(bay_call *call, void *user)
{
    const skill_file *file = user;
    bay_result *result = bay_result_new(call);
    if (file->is_text) {
        bay_result_text_str(result, file->bytes);
    } else {
        bay_result_blob(result, file->bytes.at, file->bytes.len);
    }
    bay_call_finish(call, result);
}

/* 1 to 64 of a-z, 0-9 and single hyphens inside: the rule of the skills extension for names. */
static bool name_is_good(bay_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_hyphen = c == '-' && i > 0 && i + 1 < name.len && name.at[i - 1] != '-';
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !is_hyphen) {
            return false;
        }
    }
    return name.len >= 1 && name.len <= SKILL_MAX_NAME;
}

/* SKILL.md first, then by path. */
static int by_path(const void *a, const void *b)
{
    bay_str one = ((const skill_file *)a)->path;
    bay_str other = ((const skill_file *)b)->path;
    bool is_main = str_eq(one, STR(SKILL_MAIN_FILE));
    if (is_main != str_eq(other, STR(SKILL_MAIN_FILE))) {
        return is_main ? -1 : 1;
    }
    return str_cmp(one, other);
}

/* skill://NAME/PATH, each segment percent-encoded. */
static void put_uri(buf *out, const skill *self, bay_str path)
{
    buf_lit(out, SKILL_SCHEME);
    buf_str(out, self->name);
    while (path.len > 0) {
        size_t slash = str_find(path, '/');
        buf_char(out, '/');
        uri_encode(out, str_head(path, slash));
        path = str_from(path, slash + 1);
    }
}

static bool is_text(const matter *value)
{
    return value != NULL && (value->kind == MATTER_PLAIN || value->kind == MATTER_TEXT) &&
           value->text.len > 0;
}

static const matter *read_matter(skill *self)
{
    const matter *found = NULL;
    bay_diag diag = {0};
    if (self->count == 0 || !str_eq(self->files[0].path, STR(SKILL_MAIN_FILE))) {
        sdk_skill_error(self, "it has no " SKILL_MAIN_FILE);
        return NULL;
    }
    bay_err err = matter_read(self->files[0].bytes, &self->server->memory, &found, &diag);
    if (err == BAY_ERR_NOMEM) {
        self->server->is_out_of_memory = true;
        return NULL;
    }
    if (err != BAY_OK) {
        sdk_skill_error(self, SKILL_MAIN_FILE ": %s at byte %zu", diag.text, diag.offset);
        return NULL;
    }
    const matter *name = matter_get(found, STR("name"));
    if (!is_text(name) || !str_eq(name->text, self->name)) {
        sdk_skill_error(self, SKILL_MAIN_FILE ": its front matter must have the skill's name as "
                                              "\"name\"");
        return NULL;
    }
    if (!is_text(matter_get(found, STR("description")))) {
        sdk_skill_error(self, SKILL_MAIN_FILE ": its front matter must have a \"description\"");
        return NULL;
    }
    const matter *metadata = matter_get(found, STR("metadata"));
    for (const matter *at = metadata != NULL ? metadata->first : NULL; at != NULL; at = at->next) {
        if (str_starts(at->key, STR("io.modelcontextprotocol/"))) {
            sdk_skill_error(self, SKILL_MAIN_FILE ": \"metadata\" must not have keys that begin "
                                                  "with io.modelcontextprotocol/");
            return NULL;
        }
    }
    return found;
}

/* A file becomes a resource. */
static void list_file(skill *self, skill_file *file, const matter *front)
{
    bay_server *server = self->server;
    buf text;
    buf_init(&text, 16 * 1024);
    put_uri(&text, self, file->path);
    buf_char(&text, '\0');
    bool is_main = front != NULL;
    bay_str name = is_main ? self->name : file->path;
    entry *item = NULL;
    if (text.err == BAY_OK) {
        item = sdk_server_add(server, ENTRY_RESOURCE, text.at, NULL, read_file, file);
    }
    buf_fini(&text);
    if (item == NULL) {
        server->is_out_of_memory = true;
        return;
    }
    item->name = name;
    item->description = is_main ? matter_get(front, STR("description"))->text : (bay_str){NULL, 0};
    item->mime_type = file->mime_type;
    item->size = file->bytes.len;
    item->has_size = true;
    file->listed = item;
}

static bool put_resource(skill *self, json_writer *out, const skill_file *file)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    bay_err err = digest_sha256(file->bytes, digest);
    if (err == BAY_ERR_UNSUPPORTED) {
        sdk_skill_error(self, "this library was built without OpenSSL, and skills need digests");
        return false;
    }
    if (err != BAY_OK || file->listed == NULL) {
        self->server->is_out_of_memory = true;
        return false;
    }
    json_open_object(out);
    json_key_lit(out, "uri");
    json_put_str(out, file->listed->key);
    json_key_lit(out, "digest");
    json_put_str(out, str_of(digest));
    json_key_lit(out, "size");
    json_put_uint(out, file->bytes.len);
    json_close_object(out);
    return true;
}

/* The skill becomes an entry of skills/list. */
static void list_skill(skill *self, const matter *front)
{
    bay_server *server = self->server;
    buf text;
    json_writer writer;
    buf_init(&text, SERVER_MAX_SCHEMA);
    json_writer_init(&writer, &text);
    json_open_object(&writer);
    json_key_lit(&writer, "uri");
    json_put_str(&writer, self->files[0].listed->key);
    json_key_lit(&writer, "frontmatter");
    matter_write(front, &writer);
    json_key_lit(&writer, "resources");
    json_open_array(&writer);
    bool is_good = true;
    for (size_t i = 0; i < self->count && is_good; i++) {
        is_good = put_resource(self, &writer, &self->files[i]);
    }
    json_close_array(&writer);
    json_close_object(&writer);
    if (is_good) {
        entry *item = sdk_server_add(server, ENTRY_SKILL, self->files[0].listed->key.at, NULL,
                                     read_file, &self->files[0]);
        if (item == NULL || text.err != BAY_OK ||
            arena_dup(&server->memory, buf_view(&text), &item->schema) != BAY_OK) {
            server->is_out_of_memory = true;
        }
    }
    buf_fini(&text);
}

static void complete(skill *self)
{
    if (self->folder.len > 0) {
        sdk_skill_read_folder(self);
    }
    if (self->is_broken || self->server->is_out_of_memory) {
        return;
    }
    if (!name_is_good(self->name)) {
        sdk_skill_error(self, "a name has 1 to %d lower-case letters, digits and single hyphens",
                        SKILL_MAX_NAME);
        return;
    }
    if (self->count > 0) {
        qsort(self->files, self->count, sizeof(*self->files), by_path);
    }
    const matter *front = read_matter(self);
    for (size_t i = 0; i < self->count && front != NULL; i++) {
        list_file(self, &self->files[i], i == 0 ? front : NULL);
    }
    if (front != NULL && !self->server->is_out_of_memory) {
        list_skill(self, front);
    }
}

void sdk_skills_complete(bay_server *server)
{
    for (skill *at = server->skills; at != NULL; at = at->next) {
        complete(at);
    }
    if (server->skills != NULL) {
        sdk_server_declare(server, MCP_EXTENSION_SKILLS, STR("{\"directoryRead\":true}"));
    }
}

void sdk_skills_free(bay_server *server)
{
    for (skill *at = server->skills; at != NULL; at = at->next) {
        mem_free(at->files);
        at->files = NULL;
    }
}
