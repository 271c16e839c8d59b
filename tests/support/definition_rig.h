/* A gateway in front of a server whose definitions stand in a file (definition_server.h): this program, started with
 * --definitions FILE. */
#ifndef SUPPORT_DEFINITION_RIG_H
#define SUPPORT_DEFINITION_RIG_H

#include "support/gateway_rig.h"

#include <sys/un.h>

#include "support/definition_server.h"

static char self_path[4096];
static char folder[] = "/tmp/definitions.XXXXXX";
static char definitions[64];
static char socket_path[64]; /* of the admin API */

static inline void rig_folder_open(void)
{
    ssize_t len = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    assert_true(len > 0);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(definitions, sizeof(definitions), "%s/d.json", folder);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/admin.sock", folder);
}

static inline int rig_folder_close(void)
{
    (void)unlink(definitions);
    (void)unlink(socket_path);
    return rmdir(folder);
}

static inline void write_definitions(const char *text)
{
    char beside[80];
    (void)snprintf(beside, sizeof(beside), "%s.new", definitions);
    FILE *file = fopen(beside, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(rename(beside, definitions), 0);
}

static inline void reload(gateway_rig *self, const char *settings)
{
    int before = atomic_load(&self->reloaded);
    rig_configure(self, settings);
    rig_ask_reload(self);
    wait_until(atomic_load(&self->reloaded) == before + 1);
}

static inline bool is_shown(const gateway_rig *self, const char *method, const char *part)
{
    client one;
    char fields[200];
    char body[600];
    client_open(&one, self);
    (void)snprintf(fields, sizeof(fields), "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n",
                   method);
    (void)snprintf(body, sizeof(body),
                   "{'jsonrpc':'2.0','id':1,'method':'%s','params':{" RIG_META "}}}", method);
    client_post(&one, "/mcp", fields, body);
    (void)client_reply(&one);
    bool is_there = client_find(&one, part) != NULL;
    client_close(&one);
    return is_there;
}

/* Each connection may land on another loop, whose list may be read a moment later. */
#define wait_once(condition)                                                                       \
    do {                                                                                           \
        bool was_so = false;                                                                       \
        wait_until((was_so = was_so || (condition)));                                              \
    } while (0)
#define is_tool(self, name) is_shown(self, "tools/list", "\"name\":\"" name "\"")

/* The server announces that its lists changed. */
static inline void tell(const gateway_rig *self)
{
    expect_call(self, "d.tell", "tell");
}

static inline int connect_admin(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    return fd;
}

/* Sends to the admin API and keeps the answer in `*self`. */
static inline int ask_admin(client *self, const char *method, const char *path, const char *body)
{
    char text[4096];
    *self = (client){.fd = connect_admin()};
    buf_init(&self->got, RIG_REPLY);
    (void)snprintf(text, sizeof(text),
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   method, path, strlen(body), body);
    assert_true(client_send(self, text));
    return client_reply(self);
}

#endif
