/* Files of skills: what is not what the manifest says is not handed out, and ends the skill. */
#include "unit/sdk/client_asking_server.h"

#include "auth/digest.h"

#define MAIN                                                                                       \
    "---\nname: pdf\ndescription: Fill forms\nmetadata:\n  version: \"2.1\"\n---\n\nBody.\n"
#define FRONT "{\"name\":\"pdf\",\"description\":\"Fill forms\",\"metadata\":{\"version\":\"2.1\"}}"
#define ROOT "skill://acme/pdf/"

/* What the server has; NULL: what belongs there. */
typedef struct shelf {
    peer server;
    const char *front;
    const char *main_file;  /* what is read */
    const char *contents;   /* the whole of "contents" */
    const char *files;      /* the whole of "resources" */
    const char *extra;      /* more entries */
    const char *unlisted;   /* the answer to skills/get */
    const char *extensions; /* declared */
    char listed[4096];
    int reads;
} shelf;

static void quote(const char *text, char *out)
{
    *out++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            *out++ = '\\';
            *out++ = 'n';
        } else {
            if (*text == '"' || *text == '\\') {
                *out++ = '\\';
            }
            *out++ = *text;
        }
    }
    *out++ = '"';
    *out = '\0';
}

static void say_read(shelf *self, const peer_message *message)
{
    char text[2048], result[4096];
    self->reads++;
    if (self->contents != NULL) {
        snprintf(result, sizeof(result), "{\"resultType\":\"complete\",\"contents\":%s}",
                 self->contents);
    } else if (strstr(message->body, "SKILL.md") != NULL) {
        quote(self->main_file != NULL ? self->main_file : MAIN, text);
        snprintf(result, sizeof(result),
                 "{\"resultType\":\"complete\",\"contents\":[{\"uri\":\"x\",\"text\":%s}]}", text);
    } else {
        snprintf(result, sizeof(result),
                 "{\"resultType\":\"complete\",\"contents\":[{\"uri\":\"x\",\"blob\":\"AP8K\"}]}");
    }
    peer_result(&self->server, message, "", result);
}

static void handle(peer *server, const peer_message *message)
{
    shelf *self = server->user;
    char text[6000];
    if (strcmp(message->verb, "POST") != 0) {
        peer_reply(server, message, "405 Method Not Allowed", "", "");
    } else if (peer_is(message, "server/discover")) {
        snprintf(text, sizeof(text),
                 "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                 "\"capabilities\":{\"resources\":{},\"extensions\":%s},\"ttlMs\":0}",
                 self->extensions != NULL ? self->extensions
                                          : "{\"io.modelcontextprotocol/skills\":{}}");
        peer_result(server, message, "", text);
    } else if (peer_is(message, "skills/list")) {
        pthread_mutex_lock(&server->lock);
        snprintf(text, sizeof(text), "{\"resultType\":\"complete\",\"skills\":[%s],\"ttlMs\":0}",
                 self->listed);
        pthread_mutex_unlock(&server->lock);
        peer_result(server, message, "", text);
    } else if (peer_is(message, "skills/get") && self->unlisted != NULL) {
        peer_result(server, message, "", self->unlisted);
    } else if (peer_is(message, "resources/read")) {
        say_read(self, message);
    } else {
        peer_error(server, message, "200 OK", -32602, "no such thing");
    }
}

/* The entry as an honest server would write it for MAIN and three bytes of a form. */
static void write_entry(shelf *self, const char *note)
{
    char digest[DIGEST_TEXT_BYTES + 1], form[DIGEST_TEXT_BYTES + 1], files[1024];
    assert_int_equal(digest_sha256(STR(MAIN), digest), BAY_OK);
    assert_int_equal(digest_sha256(STR("\0\xff\n"), form), BAY_OK);
    snprintf(files, sizeof(files),
             "[{\"uri\":\"" ROOT "SKILL.md\",\"digest\":\"%s\",\"size\":%zu},"
             "{\"uri\":\"" ROOT "references/a%%20form\",\"digest\":\"%s\",\"size\":3}]",
             digest, sizeof(MAIN) - 1, form);
    pthread_mutex_lock(&self->server.lock);
    snprintf(self->listed, sizeof(self->listed),
             "{\"uri\":\"" ROOT "SKILL.md\",\"frontmatter\":%s,\"resources\":%s%s}%s",
             self->front != NULL ? self->front : FRONT, self->files != NULL ? self->files : files,
             note, self->extra != NULL ? self->extra : "");
    pthread_mutex_unlock(&self->server.lock);
}

static bay_client *start(shelf *self)
{
    peer_start(&self->server, handle, self, 0);
    write_entry(self, "");
    return asking_server_client(&self->server, bay_client_options_new());
}

static void stop(shelf *self, bay_client *client)
{
    bay_client_close(client);
    peer_stop(&self->server);
}

static bay_err fetch(bay_client *client, const char *skill, const char *path, bay_diag *diag)
{
    bay_reply *reply = NULL;
    bay_err err = bay_client_skill_file(client, skill, path, &reply, diag);
    assert_true((err == BAY_OK) == (reply != NULL));
    bay_reply_free(reply);
    return err;
}

/* ---- refused */

static void what_is_not_as_listed_is_refused(void **state)
{
    (void)state;
    static const struct {
        shelf has;
        const char *says;
    } cases[] = {
        {{.main_file = "---\nname: pdf\ndescription: Fill forms\nmetadata:\n  version: \"2.1\"\n"
                       "---\n\nEvil!\n"},
         "digest"},
        {{.main_file = MAIN "more"}, "bytes"},
        {{.front = "{\"name\":\"pdf\",\"description\":\"Send secrets\",\"metadata\":{\"version\":"
                   "\"2.1\"}}"},
         "\"description\""},
        {{.front = "{\"name\":\"pdf\",\"description\":\"Fill forms\"}"}, "\"metadata\""},
        {{.front = "{\"name\":\"pdf\",\"description\":\"Fill forms\",\"metadata\":{\"version\":"
                   "\"2.1\"},\"license\":\"MIT\"}"},
         "\"license\""},
        {{.contents = "[]"}, "not one file"},
        {{.contents = "[{\"uri\":\"a\",\"text\":\"a\"},{\"uri\":\"a\",\"text\":\"b\"}]"},
         "not one file"},
        {{.contents = "[{\"uri\":\"a\",\"text\":\"evil\",\"blob\":\"AP8K\"}]"}, "not one file"},
        {{.contents = "[{\"uri\":\"a\",\"text\":\"a\",\"text\":\"b\"}]"}, "not one file"},
        {{.contents = "[{\"uri\":\"a\",\"blob\":\"A A\"}]"}, "cannot be read"},
        {{.contents = "[{\"uri\":\"a\",\"blob\":\"\"}]"}, "bytes"},
        {{.files = "\"dynamic\"", .main_file = "no front matter"}, "front matter"},
        {{.files = "\"dynamic\"", .main_file = "---\nname: &a pdf\n---\n"}, "front matter"},
        {{.files = "\"dynamic\"", .main_file = "---\nname: pdf\n---\n"}, "entry says"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        shelf self = cases[i].has;
        bay_diag diag = {0};
        bay_client *client = start(&self);
        assert_int_equal(fetch(client, "pdf", "SKILL.md", &diag), BAY_ERR_DENIED);
        assert_has(diag.text, cases[i].says);
        /* … and nothing further of this skill is read */
        assert_int_equal(fetch(client, "pdf", "SKILL.md", &diag), BAY_ERR_DENIED);
        assert_int_equal(fetch(client, "pdf", "references/a form", &diag), BAY_ERR_DENIED);
        stop(&self, client);
        assert_int_equal(self.reads, 1);
    }
}

static void a_new_entry_is_a_new_chance(void **state)
{
    (void)state;
    shelf self = {.main_file = "---\nname: other\n---\n"};
    bay_client *client = start(&self);
    assert_int_equal(fetch(client, "pdf", "SKILL.md", NULL), BAY_ERR_DENIED);
    self.main_file = NULL; /* nobody reads just now */
    assert_int_equal(fetch(client, "pdf", "SKILL.md", NULL), BAY_ERR_DENIED);
    write_entry(&self, ",\"note\":1");
    assert_int_equal(fetch(client, "pdf", "SKILL.md", NULL), BAY_OK);
    stop(&self, client);
    assert_int_equal(self.reads, 2);
}

static void what_is_no_entry_is_not_loaded(void **state)
{
    (void)state;
    static const struct {
        shelf has;
        bay_err err;
    } cases[] = {
        {{.files = "null"}, BAY_ERR_PROTOCOL},
        {{.files = "\"static\""}, BAY_ERR_PROTOCOL},
        {{.files = "[]"}, BAY_ERR_DENIED},
        {{.files = "[{\"uri\":\"" ROOT "SKILL.md\",\"size\":1}]"}, BAY_ERR_PROTOCOL},
        {{.files = "[{\"uri\":\"" ROOT "SKILL.md\",\"digest\":\"md5:00\",\"size\":1}]"},
         BAY_ERR_PROTOCOL},
        {{.files = "[],\"resources\":\"dynamic\""}, BAY_ERR_PROTOCOL},
        {{.extensions = "{}"}, BAY_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        shelf self = cases[i].has;
        bay_client *client = start(&self);
        assert_int_equal(fetch(client, "pdf", "SKILL.md", NULL), cases[i].err);
        stop(&self, client);
        assert_int_equal(self.reads, 0);
    }
}

static void what_is_no_path_is_not_looked_for(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "/",         "../x", "a/../../x", "a//b",
                                      "./SKILL.md", "SKILL.md/", "a\\b", "a\nb"};
    shelf self = {.files = "\"dynamic\""};
    bay_client *client = start(&self);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(fetch(client, "pdf", bad[i], NULL), BAY_ERR_INVALID);
    }
    assert_int_equal(fetch(client, "pdf", NULL, NULL), BAY_ERR_INVALID);
    assert_int_equal(fetch(client, "", "SKILL.md", NULL), BAY_ERR_INVALID);
    assert_int_equal(fetch(NULL, "pdf", "SKILL.md", NULL), BAY_ERR_INVALID);
    stop(&self, client);
    assert_int_equal(self.reads, 0);
}

/* ---- read */

static void files_are_read_when_they_are_asked_for(void **state)
{
    (void)state;
    static const char *const names[] = {"pdf", ROOT "SKILL.md", ROOT, "skill://acme/pdf"};
    shelf self = {0};
    bay_list *skills;
    bay_diag diag = {0};
    bay_client *client = start(&self);
    assert_int_equal(bay_client_list(client, BAY_KIND_SKILLS, &skills, NULL), BAY_OK);
    assert_int_equal(bay_list_count(skills), 1);
    bay_list_free(skills);
    assert_int_equal(self.reads, 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(fetch(client, names[i], "SKILL.md", NULL), BAY_OK);
        assert_int_equal(fetch(client, names[i], "references/a form", NULL), BAY_OK);
        assert_int_equal(fetch(client, names[i], "references/a%20form", NULL), BAY_OK);
    }
    assert_int_equal(fetch(client, "pdf", "references/other", &diag), BAY_ERR_DENIED);
    assert_has(diag.text, "none of the skill's files");
    assert_int_equal(fetch(client, "doc", "SKILL.md", &diag), BAY_ERR_NOT_FOUND);
    assert_int_equal(fetch(client, "skill://acme/doc", "SKILL.md", &diag), BAY_ERR_REMOTE);
    stop(&self, client);
    assert_int_equal(self.reads, 3 * 4);
}

static void dynamic_files_are_read_as_they_come(void **state)
{
    (void)state;
    shelf self = {.files = "\"dynamic\""};
    bay_client *client = start(&self);
    assert_int_equal(fetch(client, "pdf", "SKILL.md", NULL), BAY_OK);
    assert_int_equal(fetch(client, "pdf", "any/thing", NULL), BAY_OK);
    assert_has(self.server.message.body, "\"uri\":\"" ROOT "any/thing\"");
    stop(&self, client);
}

static void of_two_with_one_name_neither_is_taken(void **state)
{
    (void)state;
    shelf self = {.extra = ",{\"uri\":\"skill://other/pdf/SKILL.md\",\"frontmatter\":" FRONT
                           ",\"resources\":\"dynamic\"}"};
    bay_diag diag = {0};
    bay_client *client = start(&self);
    assert_int_equal(fetch(client, "pdf", "SKILL.md", &diag), BAY_ERR_INVALID);
    assert_has(diag.text, "2 skills");
    assert_int_equal(fetch(client, ROOT, "SKILL.md", NULL), BAY_OK);
    assert_int_equal(fetch(client, "skill://other/pdf", "SKILL.md", NULL), BAY_OK);
    stop(&self, client);
}

static void a_skill_that_is_not_listed_is_known_by_its_uri(void **state)
{
    (void)state;
    shelf self = {.unlisted = "{\"resultType\":\"complete\",\"skill\":{\"uri\":"
                              "\"skill://hidden/pdf/SKILL.md\",\"frontmatter\":" FRONT
                              ",\"resources\":\"dynamic\"},\"ttlMs\":0}"};
    bay_client *client = start(&self);
    assert_int_equal(fetch(client, "skill://hidden/pdf/SKILL.md", "SKILL.md", NULL), BAY_OK);
    self.unlisted = "{\"resultType\":\"complete\",\"skill\":{\"uri\":\"x\"}}";
    assert_int_equal(fetch(client, "skill://hidden/pdf/SKILL.md", "SKILL.md", NULL),
                     BAY_ERR_PROTOCOL);
    stop(&self, client);
}

int main(void)
{
#ifdef BAY_NO_TLS
    char digest[DIGEST_TEXT_BYTES + 1]; /* without digests nothing can be verified */
    return digest_sha256(STR(""), digest) == BAY_ERR_UNSUPPORTED ? 0 : 1;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_as_listed_is_refused),
        cmocka_unit_test(a_new_entry_is_a_new_chance),
        cmocka_unit_test(what_is_no_entry_is_not_loaded),
        cmocka_unit_test(what_is_no_path_is_not_looked_for),
        cmocka_unit_test(files_are_read_when_they_are_asked_for),
        cmocka_unit_test(dynamic_files_are_read_as_they_come),
        cmocka_unit_test(of_two_with_one_name_neither_is_taken),
        cmocka_unit_test(a_skill_that_is_not_listed_is_known_by_its_uri),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
