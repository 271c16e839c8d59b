/* Profiles: named parts of the catalog, each a face of its own at "/mcp/@NAME".
 *
 * A profile that a reload took away parts from its clients: its path is gone at once, its streams
 * end, what is under way may end in the time that `timeouts.drain` grants. */
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "catalog/filter.h"
#include "gateway/worker.h"

typedef struct parting {
    list_link link; /* in worker.parting */
    face *face;
    uint64_t until_ms;
} parting;

static void part_step(void *argument)
{
    worker *self = argument;
    uint64_t now_ms = loop_now_ms(self->loop);
    uint64_t next_ms = UINT64_MAX;
    LIST_EACH(at, &self->parting)
    {
        parting *one = CONTAINER_OF(at, parting, link);
        if (one->until_ms <= now_ms) {
            list_remove(&one->link);
            face_free(one->face);
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
    list_init(&self->parting);
    loop_timer_init(&self->part, part_step, self);
}

static void part(worker *self, face *gone)
{
    LOG(LOG_INFO, "gateway", "profile \"%.*s\" is gone", BAY_STR(face_profile(gone)));
    parting *one = mem_zalloc(sizeof(*one));
    if (one == NULL) {
        face_free(gone);
        return;
    }
    face_forget_sources(gone, self->config);
    mcp_server_close_streams(face_engine(gone));
    one->face = gone;
    one->until_ms = loop_now_ms(self->loop) + 1 + self->config->timeouts.drain_ms;
    list_push(&self->parting, &one->link);
    if (loop_timer_start(self->loop, &self->part, 0) != BAY_OK) {
        one->until_ms = 0; /* no clock: it leaves now */
        part_step(self);
    }
}

void worker_profiles_set_ring(worker *self, const seal_ring *ring)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        face_set_ring(self->profiles[i], ring);
    }
    LIST_EACH(link, &self->parting)
    {
        face_set_ring(CONTAINER_OF(link, parting, link)->face, ring);
    }
}

face *worker_profile(const worker *self, bay_str name)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        if (str_eq(face_profile(self->profiles[i]), name)) {
            return self->profiles[i];
        }
    }
    return NULL;
}

static bay_err set_sources(worker *self, face *of, const config_profile *profile,
                           const catalog_source *sources, size_t count)
{
    size_t chosen = 0;
    catalog_source *own = mem_array(count + 1, sizeof(*own));
    if (own == NULL) {
        face_forget_sources(of, self->config);
        return BAY_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (filter_has_server(profile, upstream_name(sources[i].upstream))) {
            own[chosen++] = sources[i];
        }
    }
    bay_err err = face_set_sources(of, self->config, own, chosen);
    mem_free(own);
    return err;
}

static bay_err profile_face(worker *self, const config_profile *profile, face **out)
{
    face *known = worker_profile(self, profile->name);
    if (known != NULL) {
        *out = known;
        return BAY_OK;
    }
    face_options options = {.config = self->config,
                            .profile = profile->name,
                            .worker = self->index,
                            .has_one_client = self->gateway->options.on_stdio,
                            .loop = self->loop,
                            .ring = self->ring,
                            .sessions = self->sessions,
                            .tasks = &task_ops,
                            .door = &self->door};
    bay_err err = face_new(&options, out);
    if (err == BAY_OK && self->is_settled) {
        face_settle(*out);
    }
    return err;
}

/* Over stdio there is only the one face: it stays, and shows nothing. */
static bool is_on_stdio(const worker *self, const face *of)
{
    const gateway_options *options = &self->gateway->options;
    return options->on_stdio && options->profile.len > 0 &&
           str_eq(options->profile, face_profile(of));
}

/* What the new configuration has no place for; adds what stays all the same. */
static void part_others(worker *self, face **kept, size_t *count)
{
    for (size_t i = 0; i < self->profile_count; i++) {
        face *old = self->profiles[i];
        bool is_kept = false;
        for (size_t k = 0; k < *count && !is_kept; k++) {
            is_kept = kept[k] == old;
        }
        if (!is_kept && is_on_stdio(self, old)) {
            face_forget_sources(old, self->config);
            kept[(*count)++] = old;
        } else if (!is_kept) {
            part(self, old);
        }
    }
}

bay_err worker_set_profiles(worker *self, const catalog_source *sources, size_t count)
{
    const config *settings = self->config;
    face **made = mem_array(settings->profile_count + 1, sizeof(face *));
    bay_err err = BAY_OK;
    size_t made_count = 0;
    if (made == NULL) {
        for (size_t i = 0; i < self->profile_count; i++) {
            face_forget_sources(self->profiles[i], settings);
        }
        return BAY_NOMEM;
    }
    for (size_t i = 0; i < settings->profile_count; i++) {
        const config_profile *profile = &settings->profiles[i];
        bay_err face_err = profile_face(self, profile, &made[made_count]);
        if (face_err == BAY_OK) {
            face_err = set_sources(self, made[made_count++], profile, sources, count);
        }
        err = err == BAY_OK ? face_err : err;
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
    while ((link = list_pop(&self->parting)) != NULL) {
        parting *one = CONTAINER_OF(link, parting, link);
        face_free(one->face);
        mem_free(one);
    }
    for (size_t i = 0; i < self->profile_count; i++) {
        face_free(self->profiles[i]);
    }
    mem_free(self->profiles);
    self->profiles = NULL;
    self->profile_count = 0;
}
