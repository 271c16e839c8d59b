/* An owner on one loop and its proxy on another, for the tests of upstreams on several loops. */
#ifndef TESTS_PROXY_STAGE_H
#define TESTS_PROXY_STAGE_H

#include "net/thread.h"
#include "support/failing_memory.h"
#include "support/upstream_testing.h"
#include <pthread.h>

typedef struct stage {
    loop *here;
    loop *there;
    net_thread thread;
    fake *fake;
    upstream *owner;
    upstream *proxy;
    const config *config;
    atomic_int states; /* changes that the proxy has told */
    int changes;
    int updates;
    int elicited;
    char client[300]; /* what the owner's server last said to one client */
    bool has_client;
    bool is_closed;
    atomic_bool is_done_there;
    void (*work)(struct stage *self);
} stage;

static inline void state_changed(void *user, upstream *self)
{
    (void)self;
    atomic_fetch_add(&((stage *)user)->states, 1);
}

static inline void changed(void *user, upstream *self, mcp_change change)
{
    (void)self;
    ((stage *)user)->changes += (int)change;
}

static inline void updated(void *user, upstream *self, bay_str uri)
{
    (void)self;
    ((stage *)user)->updates += str_eq(uri, STR("f:///x"));
}

static inline void elicited(void *user, upstream *self, json_val params)
{
    (void)self;
    ((stage *)user)->elicited += str_eq(json_raw(params), STR("{\"elicitationId\" : \"e\"}"));
}

static inline void client_told(void *user, upstream *self, const upstream_client_message *what)
{
    stage *at = user;
    (void)self;
    (void)snprintf(at->client, sizeof(at->client), "%.*s %.*s %.*s%.*s", BAY_STR(what->identity),
                   BAY_STR(mcp_method_of(what->method)->text), BAY_STR(what->uri),
                   BAY_STR(json_raw(what->params)));
}

static inline bool client_asked(void *user, upstream *self, bay_str identity, uint64_t number,
                                const rpc_message *request)
{
    stage *at = user;
    (void)snprintf(at->client, sizeof(at->client), "%.*s %llu %.*s %.*s", BAY_STR(identity),
                   (unsigned long long)number, BAY_STR(request->id), BAY_STR(request->method));
    if (at->has_client) {
        upstream_client_answer(self, number, STR("{\"a\":1}"), 0, (bay_str){0});
    }
    return at->has_client;
}

static inline void client_withdrawn(void *user, upstream *self, uint64_t number)
{
    stage *at = user;
    (void)self;
    (void)snprintf(at->client, sizeof(at->client), "%llu", (unsigned long long)number);
}

static const upstream_events proxy_events = {.state_changed = state_changed,
                                             .changed = changed,
                                             .updated = updated,
                                             .elicited = elicited,
                                             .client_told = client_told,
                                             .client_asked = client_asked,
                                             .client_withdrawn = client_withdrawn};

static inline void run_there(void *argument)
{
    loop_run(((stage *)argument)->there);
}

static inline void work_there(void *argument)
{
    stage *self = argument;
    self->work(self);
    atomic_store(&self->is_done_there, true);
}

/* Runs `work` on the owner's loop and waits for its end, turning the proxy's loop meanwhile. */
static inline void there(stage *self, void (*work)(stage *self))
{
    self->work = work;
    atomic_store(&self->is_done_there, false);
    assert_int_equal(loop_post(self->there, work_there, self), BAY_OK);
    turn_until(self->here, atomic_load(&self->is_done_there));
}

static inline void open_loops(stage *self, const config *settings)
{
    *self = (stage){.config = settings};
    assert_int_equal(loop_new(&self->here), BAY_OK);
    assert_int_equal(loop_new(&self->there), BAY_OK);
    loop_hold(self->here);
    loop_hold(self->there);
}

static inline void open_proxy(stage *self, const config_server *server)
{
    upstream_options options = {.loop = self->here,
                                .config = self->config,
                                .server = server,
                                .events = &proxy_events,
                                .user = self};
    assert_int_equal(upstream_new_proxy(&options, self->owner, &self->proxy), BAY_OK);
    assert_int_equal(net_thread_start(&self->thread, run_there, self), BAY_OK);
}

static inline void open_fake(stage *self)
{
    open_loops(self, NULL);
    self->fake = fake_new("s", false);
    fake_move_to(self->fake, self->there);
    self->owner = &self->fake->base;
    open_proxy(self, &self->fake->server);
    turn_until(self->here, atomic_load(&self->states) > 0);
}

static inline void open_real(stage *self, const char *kind_of_bad, const char *more)
{
    open_loops(self, server_config(kind_of_bad, more, ""));
    upstream_options options = {.loop = self->there,
                                .config = self->config,
                                .server = &self->config->servers[0],
                                .events = &fake_events};
    assert_int_equal(upstream_new(&options, &self->owner), BAY_OK);
    tally_open();
    open_proxy(self, &self->config->servers[0]);
}

static inline void closed(void *user)
{
    ((stage *)user)->is_closed = true;
}

static inline void close_proxy(stage *self)
{
    upstream_close(self->proxy, closed, self);
    turn_until(self->here, self->is_closed);
}

static inline void free_owner(stage *self)
{
    if (self->fake == NULL) {
        upstream_free(self->owner);
    }
}

static inline void close_stage(stage *self)
{
    if (!self->is_closed) {
        close_proxy(self);
    }
    upstream_free(self->proxy);
    there(self, free_owner);
    loop_release(self->there);
    loop_stop(self->there);
    net_thread_join(&self->thread);
    loop_free(self->there);
    loop_release(self->here);
    loop_free(self->here);
    if (self->fake != NULL) {
        fake_free(self->fake);
    } else {
        tally_close();
        assert_int_equal(count_children(), 0);
    }
    config_free(self->config);
}

static inline void answer_good(stage *self)
{
    fake_result(self->fake, "{'content':'good','n':1.0e2}");
}

static inline void nothing(stage *self)
{
    (void)self;
}

#endif
