/* A server of the handshake era that asks, on stdin and stdout: what a test program runs as when it
 * is started with "serve". A call of a tool is answered by what the process is and was told.
 *
 *   say       answers
 *   ask       asks by elicitation/create and answers with what it was told
 *   ask_late  answers first, asks then
 *   ask_all   waits for a second call of it, then asks for the first: two are open
 *   withdraw  asks, takes it back, answers
 *   roots     asks roots/list
 *   hang      never answers
 *   exit      ends
 *   told      answers how often it was told that roots changed
 *   late      answers what was said to a question that no call was open for
 *   tell      answers, then logs, and tells of other tools and of an update of a:b
 *   flood     answers, then logs very often
 *   withdraw_late  answers, asks, takes it back */
#ifndef TESTS_ASKING_SERVER_H
#define TESTS_ASKING_SERVER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"
#include "json/json.h"

static char asking_capabilities[400];
static char asking_held[40]; /* the id of a call that waits for another */
static int asking_told;
static bool asking_is_late;   /* the next answer is to a question of ask_late */
static char asking_late[400]; /* what it was */

static inline void asking_answer(bay_str id, bay_str words)
{
    printf(
        "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
        "\"good\"}],\"structuredContent\":{\"pid\":%d,\"caps\":%s,\"told\":%d,\"said\":%.*s}}}\n",
        BAY_STR(id), (int)getpid(), asking_capabilities, asking_told, BAY_STR(words));
}

static inline void asking_ask(const char *method, bay_str id)
{
    printf("{\"jsonrpc\":\"2.0\",\"id\":\"q%.*s\",\"method\":\"%s\",\"params\":{\"message\":"
           "\"for %.*s?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n",
           BAY_STR(id), method, BAY_STR(id));
}

static inline void asking_tell(int logs)
{
    for (int i = 0; i < logs; i++) {
        printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":"
               "\"info\",\"data\":1}}\n");
    }
    printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
    printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{"
           "\"uri\":\"a:b\"}}\n");
}

static inline void asking_withdraw(bay_str id)
{
    asking_ask("elicitation/create", id);
    printf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
           "\"requestId\":\"q%.*s\"}}\n",
           BAY_STR(id));
}

static inline void asking_call(bay_str id, json_val name)
{
    if (json_str_eq(name, STR("exit"))) {
        exit(5);
    } else if (json_str_eq(name, STR("hang"))) {
        return;
    } else if (json_str_eq(name, STR("ask"))) {
        asking_ask("elicitation/create", id);
    } else if (json_str_eq(name, STR("roots"))) {
        asking_ask("roots/list", id);
    } else if (json_str_eq(name, STR("ask_all"))) {
        if (asking_held[0] == '\0') {
            (void)snprintf(asking_held, sizeof(asking_held), "%.*s", BAY_STR(id));
            return;
        }
        asking_ask("elicitation/create", str_of(asking_held));
        asking_answer(id, STR("0"));
    } else if (json_str_eq(name, STR("withdraw"))) {
        asking_withdraw(id);
        asking_answer(id, STR("0"));
    } else if (json_str_eq(name, STR("late"))) {
        asking_answer(id, str_of(asking_late));
    } else {
        asking_answer(id, STR("0"));
        if (json_str_eq(name, STR("ask_late"))) {
            asking_is_late = true;
            asking_ask("elicitation/create", id);
        } else if (json_str_eq(name, STR("withdraw_late"))) {
            asking_withdraw(id);
        } else if (json_str_eq(name, STR("tell")) || json_str_eq(name, STR("flood"))) {
            asking_tell(json_str_eq(name, STR("flood")) ? 5000 : 1);
        }
    }
}

static inline void asking_take(json_val message)
{
    json_val method = json_get(message, STR("method"));
    bay_str id = json_raw(json_get(message, STR("id")));
    if (json_str_eq(method, STR("initialize"))) {
        json_val params = json_get(message, STR("params"));
        (void)snprintf(asking_capabilities, sizeof(asking_capabilities), "%.*s",
                       BAY_STR(json_raw(json_get(params, STR("capabilities")))));
        printf(
            "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{\"protocolVersion\":\"2025-11-25\","
            "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"asks\",\"version\":\"1\"}"
            "}}\n",
            BAY_STR(id));
    } else if (json_str_eq(method, STR("tools/call"))) {
        asking_call(id, json_get(json_get(message, STR("params")), STR("name")));
    } else if (json_str_eq(method, STR("notifications/roots/list_changed"))) {
        asking_told++;
    } else if (json_is(method, JSON_MISSING) && id.len > 3 && id.at[1] == 'q') {
        json_val result = json_get(message, STR("result"));
        json_val error = json_get(message, STR("error"));
        bay_str raw = json_raw(json_is(result, JSON_MISSING) ? error : result);
        if (asking_is_late) {
            asking_is_late = false;
            (void)snprintf(asking_late, sizeof(asking_late), "%.*s", BAY_STR(raw));
            return;
        }
        asking_answer((bay_str){id.at + 2, id.len - 3}, raw);
    } else if (id.len > 0 && !json_is(method, JSON_MISSING)) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n",
               BAY_STR(id));
    }
}

static inline int asking_server_run(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        json_doc doc;
        arena memory;
        arena_init(&memory, 16 << 20);
        bay_str text = str_head(str_of(line), strcspn(line, "\n"));
        if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK) {
            asking_take(json_root(&doc));
        }
        fflush(stdout);
        arena_fini(&memory);
    }
    return 0;
}

#endif
