#include "agents/post.h"

#include "base/mem.h"
#include "sdk/agent_push.h"
#include "store/store.h"

enum {
    TURN_MS = 20,
    POST_HELD_BYTES = 64 << 20, /* of notifications that wait, so of the store at most */
    POST_ROW_BYTES = 32 << 20,  /* of one with its text's escapes */
};

struct agents_post {
    loop *home;
    relay_port *port;
    char *path;
    size_t path_len;
    store *store; /* NULL: nothing outlives the process, or not opened */
    agent_push *courier;
};

bay_err agents_post_new(loop *home, bay_str path, agents_post **out)
{
    agents_post *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_NOMEM;
    }
    self->home = home;
    self->path = mem_dup(path.at, path.len);
    self->path_len = path.len;
    bay_err err = self->path != NULL ? relay_port_new(home, self, &self->port) : BAY_NOMEM;
    if (err != BAY_OK) {
        agents_post_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void on_closed(void *user)
{
    *(bool *)user = true;
}

static void close_store(agents_post *self)
{
    bool is_closed = false;
    if (self->store == NULL) {
        return;
    }
    store_close(self->store, on_closed, &is_closed);
    while (!is_closed) {
        (void)loop_turn(self->home, TURN_MS);
    }
    store_free(self->store);
    self->store = NULL;
}

void agents_post_free(agents_post *self)
{
    if (self == NULL) {
        return;
    }
    if (self->port != NULL) {
        relay_port_close(self->port);
    }
    agent_push_free(self->courier);
    close_store(self);
    relay_port_unref(self->port);
    mem_free(self->path);
    mem_free(self);
}

static bay_err open_store(agents_post *self, bay_diag *diag)
{
    store_options options = {.value_bytes = POST_ROW_BYTES};
    if (self->path_len == 0 || self->store != NULL) {
        return BAY_OK;
    }
    return store_open_sqlite(self->home, (bay_str){self->path, self->path_len}, &options,
                             &self->store, diag);
}

bay_err agents_post_open(agents_post *self, const bay_str *allow, size_t count, bay_diag *diag)
{
    if (self->courier != NULL) {
        return agent_push_allow(self->courier, allow, count, diag);
    }
    bay_err err = open_store(self, diag);
    if (err == BAY_OK) {
        a2a_push_limits limits = a2a_push_default_limits;
        limits.held_bytes = POST_HELD_BYTES;
        agent_push_options options = {.loop = self->home,
                                      .store = self->store,
                                      .limits = &limits,
                                      .allow = allow,
                                      .allow_count = count};
        err = agent_push_new(&options, &self->courier, diag);
    }
    return err;
}

bool agents_post_is_home(const agents_post *self, const loop *on)
{
    return self->home == on;
}

/* ---- letters --------------------------------------------------------------------------------- */

static void finish(agents_letter *self, void *face)
{
    relay_port_unref(self->home);
    relay_port_unref(self->back);
    self->done(self, face);
}

static void on_back(void *argument)
{
    agents_letter *self = argument;
    finish(self, relay_port_face(self->back));
}

static void come_back(void *user, bay_err err)
{
    agents_letter *self = user;
    self->err = err;
    self->message = (loop_message){.function = on_back, .argument = self};
    if (!relay_port_post(self->back, &self->message)) {
        finish(self, NULL);
    }
}

static void on_home(void *argument)
{
    agents_letter *self = argument;
    agents_post *post = relay_port_face(self->home);
    bay_err err = BAY_CLOSED;
    if (post != NULL && post->courier != NULL) {
        err = agent_push_take(post->courier, self->item, come_back, self);
    } else {
        a2a_push_item_free(self->item);
    }
    self->item = NULL;
    if (err != BAY_OK) {
        come_back(self, err);
    }
}

void agents_letter_send(agents_letter *self, agents_post *to, a2a_push_item *item, relay_port *back)
{
    self->item = item;
    self->home = relay_port_ref(to->port);
    self->back = relay_port_ref(back);
    self->message = (loop_message){.function = on_home, .argument = self};
    if (!relay_port_post(self->home, &self->message)) {
        a2a_push_item_free(item);
        self->item = NULL;
        come_back(self, BAY_CLOSED);
    }
}
