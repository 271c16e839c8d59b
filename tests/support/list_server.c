/* A server over stdio whose lists do what its one argument says:
 *
 *   count   handshake era, tells of nothing: the tools n1 and same, at the next reading n2 and same
 *   told    the same, and it tells of a change after every call
 *   storm   the same, and it tells ten thousand times
 *   ttl     stateless, with a ttlMs of a second: the same tools
 *   circle  cursors that turn in a circle
 *   many    a hundred thousand tools and a few more, in pages of a thousand
 *   odd     names with separators, control characters, a megabyte, twice; items that are none
 *   fields  the tool t, whose argument "region" is mirrored in Mcp-Param-Region
 *   same    handshake era; lists of every kind that never change. A call of its tool tools, prompts
 *           or resources announces a change of those
 *   listen  the same, stateless: on the stream of the last subscriptions/listen
 *
 * It answers every call with its mode. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 20, MANY = 100500, PAGE = 1000, LONG = 1 << 20 };

static const char *mode;
static int readings;
static char listen_id[64]; /* raw; empty: nobody listens */

static bool is_mode(const char *name)
{
    return strcmp(mode, name) == 0;
}

static bool is_told(void)
{
    return is_mode("told") || is_mode("storm");
}

static bool is_constant(void)
{
    return is_mode("same") || is_mode("listen");
}

static bool is_stateless(void)
{
    return is_mode("ttl") || is_mode("listen");
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
}

static void list_many(const char *line)
{
    const char *cursor = strstr(line, "\"cursor\":\"");
    int from = cursor != NULL ? (int)strtol(cursor + 10, NULL, 10) : 0;
    for (int i = from; i < from + PAGE && i < MANY; i++) {
        say("%s{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}", i > from ? "," : "", i);
    }
    say("]");
    if (from + PAGE < MANY) {
        say(",\"nextCursor\":\"%d\"", from + PAGE);
    }
}

static void list_odd(void)
{
    say("{\"name\":\"plain\"},null,7,[],\"x\",{},{\"name\":\"\"},{\"name\":\"a.b.c\"},"
        "{\"name\":\"twice\",\"n\":1},{\"name\":\"twice\",\"n\":2},{\"name\":\"x\",\"name\":\"y\"},"
        "{\"name\":\"bell\\u0007\\u0000\\u001b[2J\"},{\"name\":\"");
    for (int i = 0; i < LONG; i++) {
        putchar('x');
    }
    say("\"}]");
}

static void list_tools(const char *id, const char *line)
{
    readings++;
    say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[", id);
    if (is_mode("many")) {
        list_many(line);
    } else if (is_mode("odd")) {
        list_odd();
    } else if (is_mode("fields")) {
        say("{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"region\":{"
            "\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}}]");
    } else if (is_mode("circle")) {
        say("{\"name\":\"n%d\"}],\"nextCursor\":\"%d\"", readings, readings % 3);
    } else {
        say("{\"name\":\"n%d\"},{\"name\":\"same\"}]", readings);
    }
    say("%s}}\n", is_mode("ttl") ? ",\"resultType\":\"complete\",\"ttlMs\":1000,"
                                   "\"cacheScope\":\"private\""
                                 : "");
}

static void member(char *out, size_t size, const char *line, const char *key, const char *stops)
{
    const char *at = strstr(line, key);
    size_t len = at != NULL ? strcspn(at + strlen(key), stops) : 0;
    len = len < size - 1 ? len : size - 1;
    memcpy(out, at != NULL ? at + strlen(key) : "", len);
    out[len] = '\0';
}

/* The lists of "same" and "listen". False: it is none of them. */
static bool list_constant(const char *id, const char *method)
{
    static const char *const lists[][2] = {
        {"tools/list", "\"tools\":[{\"name\":\"tools\",\"inputSchema\":{\"type\":\"object\"}},"
                       "{\"name\":\"prompts\",\"inputSchema\":{\"type\":\"object\"}},"
                       "{\"name\":\"resources\",\"inputSchema\":{\"type\":\"object\"}}]"},
        {"prompts/list", "\"prompts\":[{\"name\":\"p\"}]"},
        {"resources/list", "\"resources\":[{\"uri\":\"f:///r\",\"name\":\"r\"}]"},
        {"resources/templates/list",
         "\"resourceTemplates\":[{\"uriTemplate\":\"g:///{id}\",\"name\":\"t\"}]"},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (is_constant() && strcmp(method, lists[i][0]) == 0) {
            say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s%s}}\n", id, lists[i][1],
                is_stateless() ? ",\"resultType\":\"complete\",\"ttlMs\":0,"
                                 "\"cacheScope\":\"private\""
                               : "");
            return true;
        }
    }
    return false;
}

static void announce(const char *line)
{
    char what[64];
    member(what, sizeof(what), line, "\"name\":\"", "\"");
    say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s/list_changed\"", what);
    if (is_stateless()) {
        say(",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s}}", listen_id);
    }
    say("}\n");
}

static void acknowledge(const char *id)
{
    (void)snprintf(listen_id, sizeof(listen_id), "%s", id);
    say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
        "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":%s},\"notifications\":{"
        "\"toolsListChanged\":true,\"promptsListChanged\":true,\"resourcesListChanged\":true}}}\n",
        id);
}

static const char *capabilities(void)
{
    return is_constant() ? "\"tools\":{\"listChanged\":true},\"prompts\":{\"listChanged\":true},"
                           "\"resources\":{\"listChanged\":true}"
           : is_told()   ? "\"tools\":{\"listChanged\":true}"
                         : "\"tools\":{}";
}

static void answer(const char *id, const char *method, const char *line)
{
    if (list_constant(id, method)) {
        /* said */
    } else if (strcmp(method, "tools/list") == 0) {
        list_tools(id, line);
    } else if (strcmp(method, "subscriptions/listen") == 0 && is_stateless()) {
        acknowledge(id);
    } else if (strcmp(method, "tools/call") == 0) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s\"content\":[{\"type\":\"text\","
            "\"text\":\"%s\"}]}}\n",
            id, is_stateless() ? "\"resultType\":\"complete\"," : "", mode);
        if (is_constant()) {
            announce(line);
        }
        for (int i = 0; is_told() && i < (is_mode("storm") ? 10000 : 1); i++) {
            say("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
        }
    } else if (strcmp(method, "initialize") == 0) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-06-18\","
            "\"capabilities\":{%s},\"serverInfo\":{\"name\":\"l\",\"version\":\"1\"}}}\n",
            id, capabilities());
    } else if (strcmp(method, "server/discover") == 0 && is_stateless()) {
        say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\","
            "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{%s},"
            "\"ttlMs\":0,\"cacheScope\":\"private\"}}\n",
            id, capabilities());
    } else {
        say("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n", id);
    }
    fflush(stdout);
}

int main(int count, char **arguments)
{
    static char line[LINE];
    mode = count > 1 ? arguments[1] : "count";
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char id[64];
        char method[64];
        member(id, sizeof(id), line, "\"id\":", ",}");
        member(method, sizeof(method), line, "\"method\":\"", "\"");
        if (id[0] != '\0') {
            answer(id, method, line);
        }
    }
    return 0;
}
