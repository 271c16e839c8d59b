/* The browser of a person in a test: cookies, redirects, forms. It waits for each answer. Cookies go
 * to every port of this machine, as real browsers do. */
#ifndef SUPPORT_BROWSER_H
#define SUPPORT_BROWSER_H

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/oauth_form.h"
#include "base/check.h"
#include "base/str.h"

enum { BROWSER_COOKIES = 16, BROWSER_COOKIE = 4200, BROWSER_REPLY = 64 << 10, BROWSER_URL = 8192 };

typedef struct browser_cookie {
    char name[100];
    char value[BROWSER_COOKIE];
} browser_cookie;

typedef struct browser {
    browser_cookie cookies[BROWSER_COOKIES];
    size_t cookie_count;
    const char *origin; /* of forms; NULL: that of the URL */
    const char *host;   /* NULL: that of the URL */
    /* what came last */
    int status;
    char reply[BROWSER_REPLY];
    char location[BROWSER_URL];
    char url[BROWSER_URL];
} browser;

static inline browser_cookie *browser_cookie_of(browser *self, const char *name)
{
    for (size_t i = 0; i < self->cookie_count; i++) {
        if (strcmp(self->cookies[i].name, name) == 0) {
            return &self->cookies[i];
        }
    }
    return NULL;
}

static inline void browser_forget(browser *self, const char *name)
{
    browser_cookie *one = browser_cookie_of(self, name);
    if (one != NULL) {
        *one = self->cookies[--self->cookie_count];
    }
}

static inline void browser_take_cookie(browser *self, const char *line)
{
    char name[100] = "", value[BROWSER_COOKIE] = "";
    CHECK(sscanf(line, "%99[^=]=%4199[^;\r]", name, value) >= 1);
    browser_forget(self, name);
    if (value[0] != '\0') {
        CHECK(self->cookie_count < BROWSER_COOKIES);
        browser_cookie *one = &self->cookies[self->cookie_count++];
        snprintf(one->name, sizeof(one->name), "%s", name);
        snprintf(one->value, sizeof(one->value), "%s", value);
    }
}

static inline void browser_take_reply(browser *self)
{
    char *end = strstr(self->reply, "\r\n\r\n");
    CHECK(end != NULL && sscanf(self->reply, "HTTP/1.1 %d", &self->status) == 1);
    self->location[0] = '\0';
    for (char *line = strstr(self->reply, "\r\n"); line != NULL && line < end;
         line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, "Set-Cookie: ", 12) == 0) {
            browser_take_cookie(self, line + 14);
        } else if (strncasecmp(line + 2, "Location: ", 10) == 0) {
            snprintf(self->location, sizeof(self->location), "%.*s",
                     (int)strcspn(line + 12, "\r\n"), line + 12);
        }
    }
}

/* `body` NULL: GET. */
static inline int browser_send(browser *self, const char *url, const char *body)
{
    char host[64];
    unsigned port = 0;
    int path = 0;
    size_t len = 0;
    CHECK(sscanf(url, "http://%63[^:]:%u%n", host, &port, &path) == 2);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    dprintf(fd, "%s %s HTTP/1.1\r\nHost: %s", body != NULL ? "POST" : "GET",
            url[path] != '\0' ? url + path : "/", self->host != NULL ? self->host : host);
    dprintf(fd, ":%u\r\nConnection: close\r\n", port);
    for (size_t i = 0; i < self->cookie_count; i++) {
        dprintf(fd, "%s%s=%s%s", i == 0 ? "Cookie: " : "; ", self->cookies[i].name,
                self->cookies[i].value, i + 1 == self->cookie_count ? "\r\n" : "");
    }
    if (body != NULL) {
        dprintf(fd,
                "Origin: %.*s\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                "Content-Length: %zu\r\n\r\n%s",
                self->origin != NULL ? (int)strlen(self->origin) : path,
                self->origin != NULL ? self->origin : url, strlen(body), body);
    } else {
        dprintf(fd, "\r\n");
    }
    ssize_t got;
    while (len < sizeof(self->reply) - 1 &&
           (got = read(fd, self->reply + len, sizeof(self->reply) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    self->reply[len] = '\0';
    close(fd);
    snprintf(self->url, sizeof(self->url), "%s", url);
    browser_take_reply(self);
    return self->status;
}

static inline int browser_get(browser *self, const char *format, ...) BAY_PRINTF(2, 3);
static inline int browser_get(browser *self, const char *format, ...)
{
    char url[BROWSER_URL];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(url, sizeof(url), format, arguments);
    va_end(arguments);
    return browser_send(self, url, NULL);
}

/* Where the last answer leads to, until one leads nowhere. */
static inline int browser_follow(browser *self)
{
    for (int i = 0; i < 10 && self->location[0] != '\0'; i++) {
        browser_get(self, "%s", self->location);
    }
    return self->status;
}

static inline bool browser_sees(const browser *self, const char *part)
{
    return strstr(self->reply, part) != NULL;
}

/* The value of a hidden field of the page; "" without. */
static inline void browser_field(const browser *self, const char *name, char *out, size_t size)
{
    char mark[100];
    snprintf(mark, sizeof(mark), "name=\"%s\" value=\"", name);
    const char *at = strstr(self->reply, mark);
    at = at != NULL ? at + strlen(mark) : "";
    size_t len = 0;
    while (*at != '\0' && *at != '"' && len + 1 < size) {
        out[len++] = *at;
        at += strncmp(at, "&amp;", 5) == 0 ? 5 : 1;
    }
    out[len] = '\0';
}

/* A parameter of the last answer's Location, decoded. */
static inline void browser_parameter(const browser *self, const char *name, char *out, size_t size)
{
    arena memory;
    oauth_form form = {.count = 0};
    const char *query = strchr(self->location, '?');
    arena_init(&memory, 1 << 20);
    CHECK(oauth_form_read(str_of(query != NULL ? query + 1 : ""), &memory, &form) == BAY_OK);
    snprintf(out, size, "%.*s", BAY_STR(oauth_form_get(&form, str_of(name))));
    arena_fini(&memory);
}

#endif
