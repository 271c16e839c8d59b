/* A gateway where people log in, their provider, and a browser. */
#ifndef SUPPORT_LOGIN_SCENE_H
#define SUPPORT_LOGIN_SCENE_H

#include "support/provider.h" /* before what takes the word "fail" */

#include "support/browser.h"
#include "support/gateway_rig.h"

#define SCENE_TIMES "'timeouts':{'drain':'50ms','terminate':'50ms','kill':'50ms'},"
#define SCENE_SERVERS "'mcpServers':{" RIG_SERVER("a", "stdio", "good", "") "}"
#define SCENE_LOGIN "'login':{'issuer':'idp','clientId':'web','clientSecret':'" PROVIDER_SECRET "'}"

typedef struct scene {
    provider idp;
    gateway_rig gateway;
    char base[64];
} scene;

static inline void open_with(scene *self, const char *login, const char *more)
{
    char settings[4000];
    *self = (scene){.base = ""};
    int before = rig_descriptors();
    provider_start(&self->idp);
    (void)snprintf(settings, sizeof(settings),
                   "{" SCENE_TIMES "'auth':{'issuers':{'idp':{'url':'%s'}},%s}%s," SCENE_SERVERS
                   "}",
                   self->idp.issuer, login, more);
    rig_open(&self->gateway, settings, 2); /* so a browser comes back to either loop */
    self->gateway.descriptors = before;    /* the provider's go as well */
    wait_until(atomic_load(&self->gateway.started) == 1);
    (void)snprintf(self->base, sizeof(self->base), "http://127.0.0.1:%u",
                   gateway_port(self->gateway.gateway));
}

static inline void open_scene(scene *self)
{
    open_with(self, SCENE_LOGIN, "");
}

static inline void close_scene(scene *self)
{
    provider_stop(&self->idp);
    rig_close(&self->gateway);
    /* no secret is in a log */
    assert_int_equal(rig_log_count("secret-"), 0);
    assert_int_equal(rig_log_count("eyJ"), 0);
}

static inline void sees(const browser *self, int status, const char *part)
{
    if (self->status != status || !browser_sees(self, part)) {
        print_error("wanted: %d %s\ncame: %s\n", status, part, self->reply);
    }
    assert_int_equal(self->status, status);
    assert_true(browser_sees(self, part));
}

static inline void log_in(scene *self, browser *of)
{
    browser_get(of, "%s/login", self->base);
    (void)browser_follow(of);
    sees(of, 200, "<dd>ann</dd>");
}

static inline void session_name(const scene *self, char out[100])
{
    (void)snprintf(out, 100, "patchbay-%u-session", gateway_port(self->gateway.gateway));
}

static inline void login_name(const scene *self, char out[100])
{
    (void)snprintf(out, 100, "patchbay-%u-login", gateway_port(self->gateway.gateway));
}

#endif
