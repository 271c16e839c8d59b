/* Files of skills: read when they are asked for, verified before anybody sees them.
 *
 * What a skill is made of stands in its entry: of skills/list, or (a skill that is not listed,
 * known by its URI) of skills/get. A file must be in it, have the size and the digest it says, and
 * a SKILL.md the front matter it says. What fails that is not handed out, and nothing more of this
 * skill is read until its entry changes: `refused` remembers entries by their digest.
 * Source: the skills extension (io.modelcontextprotocol/skills), Integrity and Verification. */
#include "auth/digest.h"
#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sdk/client_parts.h"
#include "sdk/front_matter.h"
#include "wire/uri.h"
#include "json/writer.h"

enum {
    SKILLS_MAX_REFUSED = 1024, /* entries remembered; a further one drops the oldest */
    SKILL_MAX_PATH = 4096,
};

#define MAIN_FILE "SKILL.md"

typedef struct refusal {
    list_link link;
    char entry[DIGEST_TEXT_BYTES + 1];
} refusal;

/* One file on its way: where it is, what it must be. */
typedef struct wanted {
    json_val entry;
    bay_str root; /* of the skill, with the slash at its end */
    bay_str uri;
    json_val digest; /* missing: the skill's content is dynamic */
    int64_t size;
    bool is_main;
} wanted;

/* ---- what was refused -------------------------------------------------------------------------
 */

static bool was_refused(const bay_client *client, const char *entry)
{
    LIST_EACH(link, &client->refused_skills)
    {
        if (strcmp(CONTAINER_OF(link, refusal, link)->entry, entry) == 0) {
            return true;
        }
    }
    return false;
}

static void drop_oldest(bay_client *client)
{
    list_link *oldest = list_pop(&client->refused_skills);
    if (oldest != NULL) {
        mem_free(CONTAINER_OF(oldest, refusal, link));
        client->refused_skill_count--;
    }
}

static void remember_refusal(bay_client *client, const char *entry)
{
    refusal *one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        return; /* it will be read, and refused, again */
    }
    memcpy(one->entry, entry, sizeof(one->entry));
    if (client->refused_skill_count >= SKILLS_MAX_REFUSED) {
        drop_oldest(client);
    }
    list_push(&client->refused_skills, &one->link);
    client->refused_skill_count++;
}

void sdk_skills_end(bay_client *client)
{
    while (client->refused_skill_count > 0) {
        drop_oldest(client);
    }
}

/* ---- the entry --------------------------------------------------------------------------------
 */

/* "skill://a/b" for its root, its root with a slash, and its SKILL.md. */
static bool is_uri_of(bay_str known, bay_str asked)
{
    bay_str rest = str_starts(known, asked) ? str_from(known, asked.len) : STR("?");
    return rest.len == 0 || str_eq(rest, STR("/" MAIN_FILE)) ||
           (str_eq(rest, STR(MAIN_FILE)) && str_ends(asked, STR("/")));
}

/* A name of a skill has letters, digits and hyphens only. */
static bool has_scheme(bay_str text)
{
    return str_find(text, ':') < text.len;
}

/* Names are labels: two skills may have one, and then neither is preferred. */
static bay_err find_listed(const bay_list *listed, bay_str skill, json_val *out, bay_diag *diag)
{
    bool is_uri = has_scheme(skill);
    size_t found = 0;
    for (size_t i = 0; i < listed->count; i++) {
        const list_entry *entry = &listed->entries[i];
        if (is_uri ? is_uri_of(entry->uri, skill) : str_eq(entry->name, skill)) {
            *out = entry->value;
            found++;
        }
    }
    if (found > 1) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "%zu skills are called \"%.*s\": give the URI of the one that is meant",
                        found, BAY_STR(str_head(skill, 64)));
    }
    return found == 1 ? BAY_OK : BAY_ERR_NOT_FOUND;
}

/* Its own copy of the entry, from skills/get. */
static bay_err get_unlisted(bay_client *client, bay_str skill, arena *memory, json_val *out,
                            bay_diag *diag)
{
    bay_reply *reply = NULL;
    buf params;
    buf_init(&params, CLIENT_MAX_TEXT);
    json_writer writer;
    json_writer_init(&writer, &params);
    json_open_object(&writer);
    json_key_lit(&writer, "uri");
    json_put_str(&writer, skill);
    json_close_object(&writer);
    buf_char(&params, '\0');
    bay_err err = params.err == BAY_OK
                      ? bay_client_request(client, "skills/get", params.at, &reply, diag)
                      : diag_set(diag, params.err, "skills/get: %s", bay_err_text(params.err));
    buf_fini(&params);
    if (err != BAY_OK) {
        return err;
    }
    json_val whole;
    err = json_clone_in(reply->root, memory, &whole);
    bay_reply_free(reply);
    if (err != BAY_OK) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    bay_str found = {NULL, 0};
    *out = json_get(whole, STR("skill"));
    if (json_str(json_get(*out, STR("uri")), memory, &found) != BAY_OK ||
        !is_uri_of(found, skill)) {
        return diag_set(diag, BAY_ERR_PROTOCOL, "skills/get answered with another skill");
    }
    return BAY_OK;
}

/* ---- the file ---------------------------------------------------------------------------------
 */

/* A path below the skill: no empty, "." or ".." segments, nothing that a URI would read otherwise.
 */
static bool is_clean_path(bay_str path)
{
    if (path.len == 0 || path.len > SKILL_MAX_PATH) {
        return false;
    }
    for (size_t at = 0; at <= path.len;) {
        bay_str segment = str_head(str_from(path, at), str_find(str_from(path, at), '/'));
        if (segment.len == 0 || str_eq(segment, STR(".")) || str_eq(segment, STR(".."))) {
            return false;
        }
        for (size_t i = 0; i < segment.len; i++) {
            if ((unsigned char)segment.at[i] < 0x20 || segment.at[i] == '\\' ||
                segment.at[i] == 0x7f) {
                return false;
            }
        }
        at += segment.len + 1;
    }
    return true;
}

/* root + path, its segments encoded unless `is_plain`. */
static bay_err join(bay_str root, bay_str path, bool is_plain, arena *memory, bay_str *out)
{
    buf text;
    buf_init(&text, CLIENT_MAX_TEXT);
    buf_str(&text, root);
    while (path.len > 0) {
        bay_str segment = str_head(path, str_find(path, '/'));
        if (is_plain) {
            buf_str(&text, segment);
        } else {
            uri_encode(&text, segment);
        }
        path = str_from(path, segment.len + 1);
        if (path.len > 0) {
            buf_char(&text, '/');
        }
    }
    bay_err err = text.err == BAY_OK ? arena_dup(memory, buf_view(&text), out) : text.err;
    buf_fini(&text);
    return err;
}

static bool is_digest(json_val value)
{
    bay_str text;
    bool is_one = json_str_plain(value, &text) && text.len == DIGEST_TEXT_BYTES &&
                  str_starts(text, STR("sha256:"));
    for (size_t i = 7; is_one && i < text.len; i++) {
        is_one =
            (text.at[i] >= '0' && text.at[i] <= '9') || (text.at[i] >= 'a' && text.at[i] <= 'f');
    }
    return is_one;
}

/* Finds the file in the manifest: by its URI as the path reads, or percent-encoded. */
static bay_err find_file(wanted *self, bay_str path, arena *memory, bay_diag *diag)
{
    json_val files = json_get(self->entry, STR("resources"));
    bay_str encoded;
    bay_err err = join(self->root, path, true, memory, &self->uri);
    err = err == BAY_OK ? join(self->root, path, false, memory, &encoded) : err;
    if (err != BAY_OK) {
        return diag_set(diag, err, "the file's URI: %s", bay_err_text(err));
    }
    if (json_str_eq(files, STR("dynamic"))) {
        self->uri = encoded;
        return BAY_OK;
    }
    if (!json_is(files, JSON_ARRAY)) {
        return diag_set(diag, BAY_ERR_PROTOCOL,
                        "the skill's entry does not say what it is made of");
    }
    json_iter iter = json_iter_of(files);
    while (json_next(&iter)) {
        json_val listed = json_get(iter.value, STR("uri"));
        if (!json_str_eq(listed, self->uri) && !json_str_eq(listed, encoded)) {
            continue;
        }
        self->uri = json_str_eq(listed, encoded) ? encoded : self->uri;
        self->digest = json_get(iter.value, STR("digest"));
        if (!is_digest(self->digest) || self->size < 0 ||
            json_int64(json_get(iter.value, STR("size")), &self->size) != BAY_OK) {
            return diag_set(diag, BAY_ERR_PROTOCOL,
                            "the skill's entry has no usable digest and size for \"%.*s\"",
                            BAY_STR(str_head(path, 100)));
        }
        return BAY_OK;
    }
    return diag_set(diag, BAY_ERR_DENIED, "\"%.*s\" is none of the skill's files",
                    BAY_STR(str_head(path, 100)));
}

/* The URI of the SKILL.md must be one, and lead to where the files are. */
static bay_err find_root(wanted *self, arena *memory, bay_diag *diag)
{
    bay_str main_file;
    if (json_str(json_get(self->entry, STR("uri")), memory, &main_file) != BAY_OK ||
        !str_ends(main_file, STR("/" MAIN_FILE))) {
        return diag_set(diag, BAY_ERR_PROTOCOL, "the skill's entry has no URI of a " MAIN_FILE);
    }
    self->root = str_head(main_file, main_file.len - (sizeof(MAIN_FILE) - 1));
    return BAY_OK;
}

/* ---- verifying --------------------------------------------------------------------------------
 */

static bay_err check_front_matter(const wanted *self, bay_str file, bay_diag *diag)
{
    arena memory;
    const matter *front = NULL;
    bay_str field = {NULL, 0};
    bay_diag why = {0};
    arena_init(&memory, 4 * MATTER_MAX_BYTES + (size_t)256 * MATTER_MAX_NODES);
    bay_err err = matter_read(file, &memory, &front, &why);
    if (err == BAY_OK) {
        err = matter_compare(front, json_get(self->entry, STR("frontmatter")), &field);
        if (err != BAY_OK) {
            diag_set(diag, BAY_ERR_DENIED, "its front matter is not what the entry says: \"%.*s\"",
                     BAY_STR(str_head(field, 64)));
        }
    } else if (err != BAY_ERR_NOMEM) {
        err = diag_set(diag, BAY_ERR_DENIED, "%s", why.text);
    }
    arena_fini(&memory);
    return err;
}

static bay_err check_bytes(const wanted *self, bay_str bytes, bay_diag *diag)
{
    char digest[DIGEST_TEXT_BYTES + 1];
    if (json_is(self->digest, JSON_MISSING)) {
        return BAY_OK;
    }
    if ((uint64_t)self->size != bytes.len) {
        return diag_set(diag, BAY_ERR_DENIED, "it has %zu bytes, the entry says %lld", bytes.len,
                        (long long)self->size);
    }
    bay_err err = digest_sha256(bytes, digest);
    if (err != BAY_OK) {
        return diag_set(diag, err, "its digest cannot be taken: %s", bay_err_text(err));
    }
    return json_str_eq(self->digest, str_of(digest))
               ? BAY_OK
               : diag_set(diag, BAY_ERR_DENIED, "its digest is not what the entry says");
}

/* One item, either text or bytes, and nothing beside it: what is verified is what is read. */
static bay_err check_file(const wanted *self, const bay_reply *reply, bay_diag *diag)
{
    json_val contents = json_get(reply->root, STR("contents"));
    json_val item = json_item(contents, 0);
    bool has_text = json_is(json_get(item, STR("text")), JSON_STRING);
    bool has_blob = json_is(json_get(item, STR("blob")), JSON_STRING);
    if (json_count(contents) != 1 || has_text == has_blob ||
        json_check_duplicates(item, NULL) != BAY_OK) {
        return diag_set(diag, BAY_ERR_DENIED, "the server's answer is not one file");
    }
    void *bytes = NULL;
    size_t len = 0;
    bay_err err = bay_reply_bytes(reply, 0, &bytes, &len);
    if (err == BAY_ERR_NOMEM) {
        return diag_set(diag, err, "out of memory");
    }
    if (err != BAY_OK) {
        return diag_set(diag, BAY_ERR_DENIED, "its bytes cannot be read");
    }
    bay_str file = {bytes, len};
    err = check_bytes(self, file, diag);
    if (err == BAY_OK && self->is_main) {
        err = check_front_matter(self, file, diag);
    }
    bay_free(bytes);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static bay_err read_file(bay_client *client, const wanted *file, const char *entry_digest,
                         bay_reply **out, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_diag why = {0};
    if (was_refused(client, entry_digest)) {
        return diag_set(diag, BAY_ERR_DENIED,
                        "a file of this skill was not what its entry says: "
                        "nothing of it is read until the entry changes");
    }
    bay_err err = bay_client_read_str(client, file->uri, &reply, diag);
    if (err != BAY_OK) {
        return err;
    }
    err = check_file(file, reply, &why);
    if (err == BAY_OK) {
        *out = reply;
        return BAY_OK;
    }
    bay_reply_free(reply);
    if (err == BAY_ERR_DENIED) {
        LOG(LOG_WARN, "client", "%.*s is refused: %s", BAY_STR(str_head(file->uri, 200)), why.text);
        remember_refusal(client, entry_digest);
    }
    return diag_set(diag, err, "%.*s: %s", BAY_STR(str_head(file->uri, 100)), why.text);
}

static bay_err find_and_read(bay_client *client, const bay_list *listed, bay_str skill,
                             bay_str path, arena *memory, bay_reply **out, bay_diag *diag)
{
    wanted file = {.is_main = str_eq(path, STR(MAIN_FILE))};
    char entry_digest[DIGEST_TEXT_BYTES + 1];
    bay_err err = find_listed(listed, skill, &file.entry, diag);
    if (err == BAY_ERR_NOT_FOUND && has_scheme(skill)) {
        err = get_unlisted(client, skill, memory, &file.entry, diag);
    } else if (err == BAY_ERR_NOT_FOUND) {
        return diag_set(diag, err, "%.100s: no skill is called \"%.*s\"", sdk_client_where(client),
                        BAY_STR(str_head(skill, 64)));
    }
    if (err == BAY_OK && json_check_duplicates(file.entry, NULL) != BAY_OK) {
        err = diag_set(diag, BAY_ERR_PROTOCOL, "the skill's entry says something twice");
    }
    err = err == BAY_OK ? find_root(&file, memory, diag) : err;
    err = err == BAY_OK ? find_file(&file, path, memory, diag) : err;
    if (err != BAY_OK) {
        return err;
    }
    err = digest_sha256(json_raw(file.entry), entry_digest);
    if (err != BAY_OK) {
        return diag_set(diag, err, "digests cannot be taken: %s", bay_err_text(err));
    }
    return read_file(client, &file, entry_digest, out, diag);
}

bay_err bay_client_skill_file_str(bay_client *client, bay_str skill, bay_str path, bay_reply **out,
                                  bay_diag *diag)
{
    bay_list *listed = NULL;
    if (client == NULL || skill.len == 0 || out == NULL || !is_clean_path(path)) {
        return diag_set(diag, BAY_ERR_INVALID,
                        "a skill and the path of one of its files are asked for (SKILL.md)");
    }
    /* the skills extension: clients ask only servers that declare it */
    if (client->about != NULL && !bay_client_has(client, "extensions." MCP_EXTENSION_SKILLS)) {
        return diag_set(diag, BAY_ERR_UNSUPPORTED, "%.100s: the server has no skills",
                        sdk_client_where(client));
    }
    bay_err err = bay_client_list(client, BAY_KIND_SKILLS, &listed, diag);
    if (err != BAY_OK) {
        return err;
    }
    arena memory;
    arena_init(&memory, CLIENT_MAX_PARSED);
    err = find_and_read(client, listed, skill, path, &memory, out, diag);
    arena_fini(&memory);
    bay_list_free(listed);
    return err;
}

bay_err bay_client_skill_file(bay_client *client, const char *skill, const char *path,
                              bay_reply **out, bay_diag *diag)
{
    return bay_client_skill_file_str(client, str_of(skill), str_of(path), out, diag);
}
