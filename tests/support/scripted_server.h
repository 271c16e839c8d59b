/* A small server of the handshake era on stdin and stdout, for programs that are tested as wholes:
 * what it says is a table, and some of it no server should say. A test program becomes one by
 * calling scripted_server_run. */
#ifndef SUPPORT_SCRIPTED_SERVER_H
#define SUPPORT_SCRIPTED_SERVER_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "json/json.h"

typedef struct scripted_row {
    const char *method;
    const char *name;   /* the name, uri or cursor it is for; NULL: any */
    const char *text;   /* what follows "id": ... up to the last brace; NULL: no answer */
    const char *before; /* a line that goes first; NULL: none */
} scripted_row;

#define SCRIPTED_TEXT(text) "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"

static const scripted_row scripted_rows[] = {
    {"initialize", NULL,
     "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{},"
     "\"resources\":{},\"prompts\":{}},\"serverInfo\":{\"name\":\"scripted\",\"version\":\"1\"},"
     "\"instructions\":\"none\"}",
     NULL},
    {"ping", NULL, "\"result\":{}", NULL},
    {"tools/list", "second",
     "\"result\":{\"tools\":[{\"name\":\"b\",\"description\":\"The second\\u001b[2J.\","
     "\"inputSchema\":{\"type\":\"object\"},\"x\" : 1.0}]}",
     NULL},
    {"tools/list", NULL,
     "\"result\":{\"tools\":[{\"name\":\"a\",\"description\":\"The first.\",\"inputSchema\":"
     "{\"type\":\"object\"}}],\"nextCursor\":\"second\"}",
     NULL},
    {"resources/list", NULL, "\"result\":{\"resources\":[{\"uri\":\"x:text\",\"name\":\"text\"}]}",
     NULL},
    {"prompts/list", NULL,
     "\"result\":{\"prompts\":[{\"name\":\"greet\",\"arguments\":[{\"name\":\"who\",\"required\":"
     "true}]}]}",
     NULL},
    {"tools/call", "a", SCRIPTED_TEXT("plain\\n\\u001b[1m"), NULL},
    {"tools/call", "mixed",
     "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\",\"data\":"
     "\"AAAA\",\"mimeType\":\"image/png\"}],\"structuredContent\":{\"n\":1.0}}",
     NULL},
    {"tools/call", "structured", "\"result\":{\"content\":[],\"structuredContent\":{\"n\":1.0}}",
     NULL},
    {"tools/call", "fails",
     "\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no luck\"}]}", NULL},
    {"tools/call", "asks",
     "\"result\":{\"content\":[],\"resultType\":\"input_required\",\"inputRequests\":{}}", NULL},
    {"tools/call", "logs", SCRIPTED_TEXT("done"),
     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"warning\","
     "\"data\":\"look\\u0007out\"}}"},
    {"tools/call", "silent", NULL, NULL},
    {"resources/read", "x:text",
     "\"result\":{\"contents\":[{\"uri\":\"x:text\",\"text\":\"no newline\\u0000\"}]}", NULL},
    {"resources/read", "x:blob",
     "\"result\":{\"contents\":[{\"uri\":\"x:blob\",\"blob\":\"AP8K\"},{\"uri\":\"x:more\","
     "\"text\":\"more\"}]}",
     NULL},
    {"resources/read", "x:broken",
     "\"result\":{\"contents\":[{\"uri\":\"x:broken\",\"blob\":\"A A\"}]}", NULL},
    {"prompts/get", "greet",
     "\"result\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
     "\"Say "
     "hello\"}},{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hello\"}}]}",
     NULL},
};

static bool scripted_matches(const scripted_row *row, json_val method, json_val params)
{
    if (!json_str_eq(method, str_of(row->method))) {
        return false;
    }
    bay_str name = str_of(row->name);
    return row->name == NULL || json_str_eq(json_get(params, STR("name")), name) ||
           json_str_eq(json_get(params, STR("uri")), name) ||
           json_str_eq(json_get(params, STR("cursor")), name);
}

/* What no terminal should get, in the bytes that JSON lets pass. */
#define SCRIPTED_HOSTILE                                                                           \
    "\xe2\x80\xae\xe2\x80\x8b\xc2\x9b\x7f\xe2\x80\xa8\xef\xbb\xbf\xf3\xa0\x81\x81"

/* With hostile bytes at the front of each text for people. */
static void scripted_put_hostile(const char *text)
{
    static const char *const members[] = {"\"text\":\"", "\"description\":\"", "\"message\":\"",
                                          "\"data\":\""};
    for (const char *at = text; *at != '\0'; at++) {
        putchar(*at);
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
            if (str_ends((bay_str){text, (size_t)(at - text) + 1}, str_of(members[i]))) {
                fputs(SCRIPTED_HOSTILE, stdout);
            }
        }
    }
}

static void scripted_answer(json_val request, bool is_hostile)
{
    json_val method = json_get(request, STR("method"));
    bay_str id = json_raw(json_get(request, STR("id")));
    const scripted_row *row = NULL;
    for (size_t i = 0; row == NULL && i < sizeof(scripted_rows) / sizeof(scripted_rows[0]); i++) {
        if (scripted_matches(&scripted_rows[i], method, json_get(request, STR("params")))) {
            row = &scripted_rows[i];
        }
    }
    const char *text = "\"error\":{\"code\":-32601,\"message\":\"nothing of that\\u0007 name\"}";
    if (row != NULL) {
        text = row->text;
        if (row->before != NULL) {
            printf("%s\n", row->before);
        }
    }
    if (text != NULL && id.len > 0 && is_hostile) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,", BAY_STR(id));
        scripted_put_hostile(text);
        printf("}\n");
    } else if (text != NULL && id.len > 0) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,%s}\n", BAY_STR(id), text);
    }
    fflush(stdout);
}

/* `how`: "well", "mute" (reads and never answers), "garbage" (no JSON at all), "dies" (says why on
 * stderr), "leaves" (exits at the first call of a tool), "hostile" (answers
 * with SCRIPTED_HOSTILE before its texts). Returns at the end of the input. */
static inline int scripted_server_run(const char *how)
{
    static char line[1 << 20];
    if (strcmp(how, "dies") == 0) {
        fprintf(stderr, "no database\n");
        return 3;
    }
    for (int i = 0; strcmp(how, "garbage") == 0 && i < 200; i++) {
        printf("\x1b]0;no JSON\x07\n");
    }
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        json_doc doc;
        arena memory;
        arena_init(&memory, 16 << 20);
        bay_str text = str_head(str_of(line), strcspn(line, "\n"));
        bool is_read = json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK;
        json_val method = is_read ? json_get(json_root(&doc), STR("method")) : JSON_NONE;
        bool leaves = strcmp(how, "leaves") == 0 && json_str_eq(method, STR("tools/call"));
        if (strcmp(how, "mute") == 0) {
            fprintf(stderr, "mute as %d\n", (int)getpid());
        } else if (is_read && !leaves) {
            scripted_answer(json_root(&doc), strcmp(how, "hostile") == 0);
        }
        arena_fini(&memory);
        if (leaves) {
            return 4;
        }
    }
    return 0;
}

#endif
