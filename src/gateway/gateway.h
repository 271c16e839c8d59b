/* The gateway: a configuration, a number of loops (workers), and what each of them serves.
 *
 *   gateway --has--> worker (one per loop) --has--> entry (a server as this loop sees it: upstream +
 * lists)
 *                                          --has--> endpoint "/mcp", endpoints "/mcp/NAME"
 *
 * Worker 0 runs on the caller's thread and hears the signals. Workers share nothing but the
 * immutable configuration; they talk by posts. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "config/config.h"
#include "front/front.h"
#include "patchbay/types.h"

typedef struct gateway gateway;

typedef struct gateway_options {
    const config *config;    /* a reference is taken */
    const char *config_path; /* for reloads; NULL: none */
    uint32_t workers;        /* 0: as configured, or one per core */
    bay_str listen;          /* in place of the configured addresses; empty: those */
    bay_str profile;         /* over stdio: the part of the catalog to serve; empty: all */
    bool is_open;            /* as `open: true` in the configuration */
    bool on_stdio;           /* serve stdin and stdout instead of HTTP (one worker) */
    bool is_watched;         /* a person sees stderr: `log.access: auto` is on */
    /* Where the admin API listens if the configuration does not say it, unix:/FOLDER/NAME; if it
     * cannot, the gateway runs without it, and a warning says why. Empty: nowhere. */
    bay_str admin;
    /* Tells a person what happens, on worker 0's thread: "starting" (its servers are being
     * started), "started" (lists go out: all servers were heard of, or timeouts.settle is over),
     * "listed" (the servers that were missing then have been heard of), "reloaded". May be NULL. */
    void (*told)(void *user, gateway *self, const char *what);
    /* Who sends a request over HTTP, as front_options.identify, on the thread of the worker that
     * received it. NULL: every caller is anonymous. */
    front_identify identify;
    void *user;
} gateway_options;

bay_err gateway_new(const gateway_options *options, gateway **out, bay_diag *diag) BAY_MUST_CHECK;
/* check.c: adds to the report what gateway_new would refuse, without opening anything; true in
 * `out_is_local` where only this machine could reach it. BAY_ERR_NOMEM. */
bay_err gateway_check(const gateway_options *options, config_report *report,
                      bool *out_is_local) BAY_MUST_CHECK;
/* Until SIGTERM or SIGINT (then drains), or the end of stdin. */
bay_err gateway_run(gateway *self) BAY_MUST_CHECK;
void gateway_stop(gateway *self); /* as SIGTERM; any thread */
void gateway_free(gateway *self);

/* What is listened on, from the start to the end: HOST:PORT of each address, with its port. */
size_t gateway_address_count(const gateway *self);
void gateway_write_address(const gateway *self, size_t index, buf *out);
/* The first of them as callers reach it: every address becomes the name of this machine. */
void gateway_write_reachable(const gateway *self, buf *out);
bool gateway_is_local(const gateway *self); /* only this machine reaches it */
uint16_t gateway_port(const gateway *self); /* of the first address; 0: none */
/* The tools that "/mcp" shows, in its order; on worker 0's thread, until it next turns. */
size_t gateway_tool_count(const gateway *self);
bay_str gateway_tool_name(const gateway *self, size_t index);
/* The agents at "/a2a/NAME", likewise. */
size_t gateway_agent_count(const gateway *self);
bay_str gateway_agent_name(const gateway *self, size_t index);
/* Its servers as worker 0 sees them, likewise. */
typedef struct gateway_servers {
    size_t count;    /* all that are enabled */
    size_t starting; /* nothing is known of them yet */
    size_t asleep;   /* they start when they are needed */
    size_t down;     /* they failed */
} gateway_servers;
gateway_servers gateway_count_servers(const gateway *self);
bool gateway_is_tls(const gateway *self);

#endif
