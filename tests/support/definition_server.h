/* A server on stdin and stdout whose definitions stand in a file: {"tools": […], "resources": […], …,
 * "instructions": "…"}. The file is read anew for each answer, so a test changes it as a server would. A client
 * called NAME is shown FILE.NAME where that is there. The tool "tell" announces that all lists changed, "touch" writes
 * a file FILE.touched, "connect" opens an IPv4 socket, "scratch" writes a file in TMPDIR, "end" ends the server; every other tool answers with its name,
 * or with what "answers" of the file has for it. */
#ifndef SUPPORT_DEFINITION_SERVER_H
#define SUPPORT_DEFINITION_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "json/json.h"

enum { DEFINITION_BYTES = 4 << 20 };

typedef struct definition_server {
    const char *file;
    char client[64];
    arena memory;
} definition_server;

static json_val definition_read(definition_server *self, json_doc *doc)
{
    char path[512];
    char *text = arena_alloc(&self->memory, DEFINITION_BYTES);
    snprintf(path, sizeof(path), "%s.%s", self->file, self->client);
    FILE *file = fopen(path, "r");
    file = file != NULL ? file : fopen(self->file, "r");
    size_t len = file != NULL ? fread(text, 1, DEFINITION_BYTES - 1, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    bool is_good = json_parse(doc, (bay_str){text, len}, NULL, &self->memory, NULL) == BAY_OK;
    return is_good ? json_root(doc) : JSON_NONE;
}

static void definition_put_list(json_val all, const char *name)
{
    json_val items = json_get(all, str_of(name));
    bay_str raw = json_is(items, JSON_ARRAY) ? json_raw(items) : STR("[]");
    printf("\"result\":{\"%s\":%.*s}}\n", name, BAY_STR(raw));
}

static void definition_initialize(definition_server *self, json_val params)
{
    json_doc doc;
    bay_str name;
    if (json_str(json_get(json_get(params, STR("clientInfo")), STR("name")), &self->memory,
                 &name) == BAY_OK) {
        snprintf(self->client, sizeof(self->client), "%.*s", BAY_STR(name));
    }
    json_val text = json_get(definition_read(self, &doc), STR("instructions"));
    printf("\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{"
           "\"listChanged\":true},\"resources\":{\"listChanged\":true},\"prompts\":{"
           "\"listChanged\":true}},\"serverInfo\":{\"name\":\"definitions\",\"version\":\"1\"}");
    if (json_is(text, JSON_STRING)) {
        printf(",\"instructions\":%.*s", BAY_STR(json_raw(text)));
    }
    printf("}}\n");
}

static bool definition_touch(const definition_server *self)
{
    char path[512];
    snprintf(path, sizeof(path), "%s.touched", self->file);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fclose(file);
        unlink(path);
    }
    return file != NULL;
}

static bool definition_scratch(void)
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof(path), "%s/scratch.XXXXXX", folder != NULL ? folder : "/tmp");
    int made = mkstemp(path);
    if (made >= 0) {
        close(made);
        unlink(path);
    }
    return made >= 0;
}

static bool definition_connect(void)
{
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0) {
        close(made);
    }
    return made >= 0;
}

static json_val definition_answer_of(definition_server *self, json_val name, json_doc *doc)
{
    bay_str text = {"", 0};
    if (json_str(name, &self->memory, &text) != BAY_OK) {
        return name;
    }
    json_val given = json_get(json_get(definition_read(self, doc), STR("answers")), text);
    return json_is(given, JSON_STRING) ? given : name;
}

static void definition_call(definition_server *self, json_val params)
{
    static const char *const changes[] = {"tools", "resources", "prompts"};
    json_val name = json_get(params, STR("name"));
    json_doc doc;
    json_val answer = definition_answer_of(self, name, &doc);
    bool is_tell = json_str_eq(name, STR("tell"));
    bool has_failed = (json_str_eq(name, STR("touch")) && !definition_touch(self)) ||
                      (json_str_eq(name, STR("scratch")) && !definition_scratch()) ||
                      (json_str_eq(name, STR("connect")) && !definition_connect());
    if (json_str_eq(name, STR("end"))) {
        exit(0);
    }
    printf("\"result\":{\"content\":[{\"type\":\"text\",\"text\":%.*s}],\"isError\":%s}}\n",
           BAY_STR(json_is(answer, JSON_STRING) ? json_raw(answer) : STR("\"\"")),
           has_failed ? "true" : "false");
    for (size_t i = 0; is_tell && i < sizeof(changes) / sizeof(changes[0]); i++) {
        printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s/list_changed\"}\n", changes[i]);
    }
}

static void definition_answer(definition_server *self, json_val request)
{
    static const char *const lists[][2] = {{"tools/list", "tools"},
                                           {"resources/list", "resources"},
                                           {"resources/templates/list", "resourceTemplates"},
                                           {"prompts/list", "prompts"}};
    json_doc doc;
    json_val method = json_get(request, STR("method"));
    json_val params = json_get(request, STR("params"));
    bay_str id = json_raw(json_get(request, STR("id")));
    if (id.len == 0) {
        return;
    }
    printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,", BAY_STR(id));
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (json_str_eq(method, str_of(lists[i][0]))) {
            definition_put_list(definition_read(self, &doc), lists[i][1]);
            return;
        }
    }
    if (json_str_eq(method, STR("initialize"))) {
        definition_initialize(self, params);
    } else if (json_str_eq(method, STR("tools/call"))) {
        definition_call(self, params);
    } else if (json_str_eq(method, STR("prompts/get"))) {
        printf("\"result\":{\"messages\":[]}}\n");
    } else if (json_str_eq(method, STR("resources/read"))) {
        printf("\"result\":{\"contents\":[]}}\n");
    } else if (json_str_eq(method, STR("ping"))) {
        printf("\"result\":{}}\n");
    } else {
        printf("\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n");
    }
}

/* Returns at the end of the input. */
static inline int definition_server_run(const char *file)
{
    static char line[1 << 20];
    definition_server self = {.file = file};
    arena_init(&self.memory, 4 * (size_t)DEFINITION_BYTES);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        json_doc doc;
        bay_str text = str_head(str_of(line), strcspn(line, "\n"));
        if (json_parse(&doc, text, NULL, &self.memory, NULL) == BAY_OK) {
            definition_answer(&self, json_root(&doc));
            fflush(stdout);
        }
        arena_reset(&self.memory);
    }
    arena_fini(&self.memory);
    return 0;
}

#endif
