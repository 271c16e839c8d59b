/* Pipes: pairs of descriptors that a host serves on. They stay the caller's. */
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sdk/host_parts.h"

static void pair_done(void *user)
{
    host_pair *self = user;
    void *pipe = self->pipe;
    self->pipe = NULL;
    self->of->open_pairs--;
    self->of->host->kind->pipe_free(pipe);
}

/* A descriptor for the line streams, which close all but the standard three, and set those back. */
static int lend(host_pair *self, int which, int descriptor)
{
    self->descriptors[which] = descriptor;
    self->flags[which] = -1;
    if (descriptor <= STDERR_FILENO) {
        return descriptor;
    }
    self->flags[which] = fcntl(descriptor, F_GETFL);
    return fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static bay_err pair_open(host_pair *self, int in, int out)
{
    int lent_in = lend(self, 0, in);
    int lent_out = lend(self, 1, out);
    if (lent_in < 0 || lent_out < 0) {
        if (lent_in > STDERR_FILENO) {
            close(lent_in);
        }
        if (lent_out > STDERR_FILENO) {
            close(lent_out);
        }
        return BAY_ERR_IO;
    }
    sdk_host *of = self->of->host;
    return of->kind->pipe_new(of->owner.object, lent_in, lent_out, pair_done, self, &self->pipe);
}

bay_err host_pipe(sdk_host *self, int in, int out, bay_diag *diag)
{
    if (in < 0 || out < 0) {
        return diag_set(diag, BAY_ERR_INVALID, "a pipe is two open descriptors");
    }
    bay_err err = host_open_own(self, diag);
    if (err != BAY_OK) {
        return err;
    }
    host_serving *now = self->serving;
    host_pair *pair = NULL;
    if (now->pair_count >= HOST_MAX_PIPES) {
        err = BAY_ERR_LIMIT;
    } else {
        pair = mem_zalloc(sizeof(*pair));
        err = pair != NULL ? BAY_OK : BAY_ERR_NOMEM;
    }
    if (err == BAY_OK) {
        pair->of = now;
        err = pair_open(pair, in, out);
    }
    if (err != BAY_OK) {
        mem_free(pair);
        host_close_own_if_idle(self);
        return diag_set(diag, err, "cannot serve on descriptors %d and %d: %s", in, out,
                        bay_err_text(err));
    }
    pair->next = now->pairs;
    now->pairs = pair;
    now->pair_count++;
    now->open_pairs++;
    host_has_way(self);
    return BAY_OK;
}

void host_pipes_end(host_serving *self)
{
    for (host_pair *at = self->pairs; at != NULL; at = at->next) {
        if (at->pipe != NULL) {
            self->host->kind->pipe_end(at->pipe, self->host->drain_ms);
        }
    }
}

void host_pipes_cut(host_serving *self)
{
    for (host_pair *at = self->pairs; at != NULL; at = at->next) {
        self->host->kind->pipe_free(at->pipe);
        at->pipe = NULL;
    }
    self->open_pairs = 0;
}

void host_pipes_free(host_serving *self)
{
    while (self->pairs != NULL) {
        host_pair *next = self->pairs->next;
        for (int i = 0; i < 2; i++) {
            if (self->pairs->flags[i] >= 0) {
                (void)fcntl(self->pairs->descriptors[i], F_SETFL, self->pairs->flags[i]);
            }
        }
        mem_free(self->pairs);
        self->pairs = next;
    }
}
