/* Profiles: named parts of the catalog, each an endpoint of its own at "/mcp/@NAME".
 *
 * A profile that a reload took away parts from its clients: its path is gone at once, its streams
 * end, what is under way may end in the time that `timeouts.drain` grants. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "gateway/worker.h"

typedef struct retiring_endpoint {
    list_link link; /* in worker.retiring_endpoint */
    endpoint *endpoint;
    uint64_t until_ms;
} retiring_endpoint;

static void part_step(void *argument)
{
    worker *self = argument;
    uint64_t now_ms = loop_now_ms(self->loop);
    uint64_t next_ms = UINT64_MAX;
    LIST_EACH(at, &self->retiring_endpoint)
    {
        retiring_endpoint *one = CONTAINER_OF(at, retiring_endpoint, link);
        if (one->until_ms <= now_ms) {
            list_remove(&one->link);
            endpoint_free(one->endpoint);
            mem_free(one);
        } else if (one->until_ms < next_ms) {
            next_ms = one->until_ms;
        }
    }
    if (next_ms != UINT64_MAX) {
        /* without memory they last until the end */
        err_ignore(loop_timer_start(self->loop, &self->part, next_ms - now_ms));
    }
}

void worker_profiles_init(worker *self)
{
    list_init(&self->retiring_endpoint);
    loop_timer_init(&self->part, part_step, self);
}

static void part(worker *self, endpoint *gone)
{
    LOG(LOG_INFO, "gateway", "profile \"%.*s\" is gone", BAY_STR(endpoint_profile(gone)));
    retiring_endpoint *one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        endpoint_free(gone);
        return;
    }
    endpoint_forget_sources(gone, self->config);
    mcp_server_close_streams(endpoint_engine(gone));
    one->endpoint = gone;
    one->until_ms = loop_now_ms(self->loop) + 1 + self->config->timeouts.drain_ms;
    list_push(&self->retiring_endpoint, &one->link);
    if (loop_timer_start(self->loop, &self->part, 0) != BAY_OK) {
        one->until_ms = 0; /* no clock: it leaves now */
        part_step(self);
    }
}

void worker_profiles_set_ring(worker *self, const seal_ring *ring)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint_set_ring(self->profiles[i], ring);
    }
    LIST_EACH(link, &self->retiring_endpoint)
    {
        endpoint_set_ring(CONTAINER_OF(link, retiring_endpoint, link)->endpoint, ring);
    }
}

endpoint *worker_profile(const worker *self, bay_str name)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        if (str_eq(endpoint_profile(self->profiles[i]), name)) {
            return self->profiles[i];
        }
    }
    return NULL;
}

static bay_err set_sources(worker *self, endpoint *of, const config_profile *profile,
                           const catalog_source *sources, size_t count)
{
    size_t chosen = 0;
    catalog_source *own = mem_array(count + 1, sizeof(*own));
    if (own == NULL) {
        endpoint_forget_sources(of, self->config);
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (filter_has_server(profile, upstream_name(sources[i].upstream))) {
            own[chosen++] = sources[i];
        }
    }
    bay_err err = endpoint_set_sources(of, self->config, own, chosen);
    mem_free(own);
    return err;
}

static bay_err profile_endpoint(worker *self, const config_profile *profile, endpoint **out)
{
    endpoint *known = worker_profile(self, profile->name);
    if (known != NULL) {
        *out = known;
        return BAY_OK;
    }
    endpoint_options options = {.config = self->config,
                                .profile = profile->name,
                                .worker = self->index,
                                .has_one_client = self->gateway->options.on_stdio,
                                .introduced = worker_introduced,
                                .user = self,
                                .loop = self->loop,
                                .ring = self->ring,
                                .sessions = self->sessions,
                                .tasks = &task_ops,
                                .door = &self->door,
                                .user_login = &self->user_login};
    bay_err err = endpoint_new(&options, out);
    if (err == BAY_OK && self->is_settled) {
        endpoint_lists_ready(*out);
    }
    return err;
}

/* Over stdio there is only the one endpoint: it stays, and shows nothing. */
static bool is_on_stdio(const worker *self, const endpoint *of)
{
    const gateway_options *options = &self->gateway->options;
    return options->on_stdio && options->profile.len > 0 &&
           str_eq(options->profile, endpoint_profile(of));
}

/* What the new configuration has no place for; adds what stays all the same. */
static void part_others(worker *self, endpoint **kept, size_t *count)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint *old = self->profiles[i];
        bool is_kept = false;
        for (size_t k = 0; k < *count && !is_kept; k++) {
            is_kept = kept[k] == old;
        }
        if (!is_kept && is_on_stdio(self, old)) {
            endpoint_forget_sources(old, self->config);
            kept[(*count)++] = old;
        } else if (!is_kept) {
            part(self, old);
        }
    }
}

bay_err worker_set_profiles(worker *self, const catalog_source *sources, size_t count)
{
    const config *settings = self->config;
    endpoint **made = mem_array(settings->profile_count + 1, sizeof(endpoint *));
    bay_err err = BAY_OK;
    size_t made_count = 0;
    if (made == NULL) {
        for (size_t i = 0; i < self->profile_count; i++) {
            endpoint_forget_sources(self->profiles[i], settings);
        }
        return BAY_ERR_NOMEM;
    }
    for (size_t i = 0; i < settings->profile_count; i++) {
        const config_profile *profile = &settings->profiles[i];
        bay_err endpoint_err = profile_endpoint(self, profile, &made[made_count]);
        if (endpoint_err == BAY_OK) {
            endpoint_err = set_sources(self, made[made_count++], profile, sources, count);
        }
        err = err == BAY_OK ? endpoint_err : err;
    }
    part_others(self, made, &made_count);
    mem_free(self->profiles);
    self->profiles = made;
    self->profile_count = made_count;
    return err;
}

void worker_free_profiles(worker *self)
{
    list_link *link;
    loop_timer_stop(self->loop, &self->part);
    while ((link = list_pop(&self->retiring_endpoint)) != NULL) {
        retiring_endpoint *one = CONTAINER_OF(link, retiring_endpoint, link);
        endpoint_free(one->endpoint);
        mem_free(one);
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        endpoint_free(self->profiles[i]);
    }
    mem_free(self->profiles);
    self->profiles = NULL;
    self->profile_count = 0;
}
