#include "agents/push_queue.h"

#include "base/mem.h"
#include "sdk/agent_push.h"
#include "store/store.h"

enum {
    TURN_MS = 20,
    PUSH_QUEUE_HELD_BYTES = 64 << 20, /* of notifications that wait, so of the store at most */
    PUSH_QUEUE_ROW_BYTES = 32 << 20,  /* of one with its text's escapes */
};

struct agents_push_queue {
    loop *home;
    loop_mailbox *port;
    char *path;
    size_t path_len;
    store *store; /* NULL: nothing outlives the process, or not opened */
    agent_push *push_sender;
};

bay_err agents_push_queue_new(loop *home, bay_str path, agents_push_queue **out)
{
    agents_push_queue *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->home = home;
    self->path = mem_dup(path.at, path.len);
    self->path_len = path.len;
    bay_err err = self->path != NULL ? loop_mailbox_new(home, self, &self->port) : BAY_ERR_NOMEM;
    if (err != BAY_OK) {
        agents_push_queue_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

static void push_queue_on_closed(void *user)
{
    *(bool *)user = true;
}

static void close_store(agents_push_queue *self)
{
    bool is_closed = false;
    if (self->store == NULL) {
        return;
    }
    store_close(self->store, push_queue_on_closed, &is_closed);
    while (!is_closed) {
        (void)loop_turn(self->home, TURN_MS);
    }
    store_free(self->store);
    self->store = NULL;
}

void agents_push_queue_free(agents_push_queue *self)
{
    if (self == NULL) {
        return;
    }
    if (self->port != NULL) {
        loop_mailbox_close(self->port);
    }
    agent_push_free(self->push_sender);
    close_store(self);
    loop_mailbox_unref(self->port);
    mem_free(self->path);
    mem_free(self);
}

static bay_err open_store(agents_push_queue *self, bay_diag *diag)
{
    store_options options = {.value_bytes = PUSH_QUEUE_ROW_BYTES};
    if (self->path_len == 0 || self->store != NULL) {
        return BAY_OK;
    }
    return store_open_sqlite(self->home, (bay_str){self->path, self->path_len}, &options,
                             &self->store, diag);
}

bay_err agents_push_queue_open(agents_push_queue *self, const bay_str *allow, size_t count,
                               bay_diag *diag)
{
    if (self->push_sender != NULL) {
        return agent_push_allow(self->push_sender, allow, count, diag);
    }
    bay_err err = open_store(self, diag);
    if (err == BAY_OK) {
        a2a_push_limits limits = a2a_push_default_limits;
        limits.held_bytes = PUSH_QUEUE_HELD_BYTES;
        agent_push_options options = {.loop = self->home,
                                      .store = self->store,
                                      .limits = &limits,
                                      .allow = allow,
                                      .allow_count = count};
        err = agent_push_new(&options, &self->push_sender, diag);
    }
    return err;
}

bool agents_push_queue_is_home(const agents_push_queue *self, const loop *on)
{
    return self->home == on;
}

/* ---- letters --------------------------------------------------------------------------------- */

static void push_queue_finish(agents_push_request *self, void *home)
{
    loop_mailbox_unref(self->home);
    loop_mailbox_unref(self->back);
    self->done(self, home);
}

static void on_back(void *argument)
{
    agents_push_request *self = argument;
    push_queue_finish(self, loop_mailbox_user(self->back));
}

static void come_back(void *user, bay_err err)
{
    agents_push_request *self = user;
    self->err = err;
    self->message = (loop_message){.function = on_back, .argument = self};
    if (!loop_mailbox_post(self->back, &self->message)) {
        push_queue_finish(self, NULL);
    }
}

static void on_home(void *argument)
{
    agents_push_request *self = argument;
    agents_push_queue *post = loop_mailbox_user(self->home);
    bay_err err = BAY_ERR_CLOSED;
    if (post != NULL && post->push_sender != NULL) {
        err = agent_push_take(post->push_sender, self->item, come_back, self);
    } else {
        a2a_push_item_free(self->item);
    }
    self->item = NULL;
    if (err != BAY_OK) {
        come_back(self, err);
    }
}

void agents_push_request_send(agents_push_request *self, agents_push_queue *to, a2a_push_item *item,
                              loop_mailbox *back)
{
    self->item = item;
    self->home = loop_mailbox_ref(to->port);
    self->back = loop_mailbox_ref(back);
    self->message = (loop_message){.function = on_home, .argument = self};
    if (!loop_mailbox_post(self->home, &self->message)) {
        a2a_push_item_free(item);
        self->item = NULL;
        come_back(self, BAY_ERR_CLOSED);
    }
}
