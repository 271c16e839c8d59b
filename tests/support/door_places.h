/* Where MCP's methods are asked for: a gateway with a server behind it, and a server of the
 * library. Over HTTP the caller is who the field X-Caller says. Their doors are watched. */
#ifndef SUPPORT_DOOR_PLACES_H
#define SUPPORT_DOOR_PLACES_H

#include "support/door_watch.h"

#include "support/gateway_rig.h"

#include "support/door_clients.h"
#include "support/door_server.h"

enum { PLACE_GATEWAY, PLACE_SERVER, PLACES };

typedef struct door_rig {
    door_place place;
    door_server server; /* itself, or what is behind the gateway */
    gateway_rig gateway;
    int descriptors;
} door_rig;

static atomic_int door_identified; /* how often a gateway asked who calls */

/* "mallory" may not enter. */
static inline front_verdict door_identify(void *user, const front_request *request,
                                          const auth_principal **out_principal, front_refusal *out)
{
    bay_str name = http_exchange_field(request->exchange, STR("X-Caller"));
    principal_parts parts = {.proof = PRINCIPAL_PROGRAM, .subject = name};
    (void)user;
    (void)out;
    atomic_fetch_add(&door_identified, 1);
    bool is_good = !str_eq(name, STR("mallory")) &&
                   (name.len == 0 || principal_new(&parts, out_principal) == BAY_OK);
    return is_good ? FRONT_GO : FRONT_REFUSE;
}

static inline bool door_peer_identify(bay_peer *peer, void *user)
{
    char name[64];
    (void)user;
    (void)snprintf(name, sizeof(name), "%.*s", BAY_STR(bay_peer_field(peer, "X-Caller")));
    bay_peer_principal(peer, name);
    return true;
}

static inline void door_gateway_start(gateway_rig *self, const char *settings, uint32_t workers)
{
    bay_diag diag = {0};
    gateway_options asked = {
        .workers = workers, .listen = STR("127.0.0.1:0"), .identify = door_identify};
    if (rig_make(self, settings, &asked, &diag) != BAY_OK) {
        fail_msg("%s", diag.text);
    }
    for (uint32_t i = 0; i < workers; i++) {
        watch_door(&self->gateway->workers[i].door);
    }
    rig_start(self);
    wait_until(atomic_load(&self->started) > 0);
}

/* `more`: further members of the configuration, with a comma before them. */
static inline void door_open_gateway(door_rig *self, const char *more)
{
    char settings[2000];
    loop *first_loop;
    assert_int_equal(loop_new(&first_loop), BAY_OK); /* libuv keeps what its first loop opens */
    loop_free(first_loop);
    self->descriptors = rig_descriptors();
    door_server_open_behind(&self->server);
    (void)snprintf(settings, sizeof(settings),
                   "{'mcpServers':{'a':{'url':'http://127.0.0.1:%u/mcp'}}%s}", self->server.port,
                   more);
    door_gateway_start(&self->gateway, settings, 1);
    worker *first = &self->gateway.gateway->workers[0];
    self->place = (door_place){"gateway", gateway_port(self->gateway.gateway), first->loop,
                               worker_engine(first, STR("/mcp"))};
    door_seen.effects = &self->server.reached;
}

static inline void door_open_server(door_rig *self)
{
    door_server_make(&self->server, "a.");
    bay_server_identify(self->server.server, door_peer_identify, NULL);
    door_server_listen(&self->server);
    watch_door(&self->server.server->host.door);
    door_server_start(&self->server);
    self->place =
        (door_place){"library server", self->server.port, sdk_serving_loop(self->server.server),
                     sdk_serving_engine(self->server.server)};
    door_seen.effects = &self->server.handled;
}

static inline void door_rig_open(door_rig *self, int place)
{
    memset(self, 0, sizeof(*self));
    (void)person("ann"); /* before there are other threads */
    (void)person("bob");
    (void)person(DOOR_LINK_CALLER);
    if (place == PLACE_GATEWAY) {
        door_open_gateway(self, "");
    } else {
        door_open_server(self);
    }
}

static inline void door_rig_close(door_rig *self)
{
    door_seen.effects = NULL;
    if (self->gateway.gateway != NULL) {
        self->gateway.descriptors = self->descriptors;
        door_server_close(&self->server);
        rig_close(&self->gateway);
    } else {
        door_server_close(&self->server);
    }
}

#endif
