/* What the files of the admin API share: roles, routes, and answers that come later. */
#ifndef GATEWAY_ADMIN_INTERNAL_H
#define GATEWAY_ADMIN_INTERNAL_H

#include "gateway/admin.h"
#include "http/http_server.h"
#include "json/writer.h"

enum {
    ADMIN_CONNECTIONS = 64,
    ADMIN_HEAD_BYTES = 16 * 1024,
    ADMIN_BODY_BYTES = 64 * 1024,
    ADMIN_ANSWER_BYTES = 16 * 1024 * 1024,
    ADMIN_JOBS = 64,           /* answers under way */
    ADMIN_STATUS_MS = 1000,    /* for the loops to say how they are */
    ADMIN_RELOAD_MS = 30000,   /* for a reload to be in force */
    ADMIN_APPROVAL_MS = 30000, /* for the lock file to be written */
    ADMIN_READ_MS = 10000,     /* for a request to arrive */
    ADMIN_IDLE_MS = 30000,     /* a connection without a request */
    ADMIN_WRITE_MS = 30000,    /* a peer that does not read its answer */
    ADMIN_REFUSED_MS = 10000,  /* between two lines in the log about connections refused */
};

/* A set of these is what a caller has and what a route asks for. */
enum {
    ADMIN_VIEWER = 1 << 0,
    ADMIN_OPERATOR = 1 << 1,
    ADMIN_APPROVER = 1 << 2,
    ADMIN_ADMIN = 1 << 3,
    ADMIN_ALL_ROLES = (1 << 4) - 1,
};

typedef struct admin_route {
    bay_str method;
    bay_str path;
    unsigned roles;
    void (*handle)(admin *self, http_exchange *exchange);
    bool takes_object; /* in its body */
} admin_route;

extern const admin_route admin_routes[];
extern const size_t admin_route_count;

/* The route of a request of somebody who has these roles: 200, and `out` is set; 404: there is no
 * such path; 405: not by this method, and `out` is a route of the path; 403: none of the roles.
 * Without effects. */
int admin_choose(unsigned roles, bay_str method, bay_str path, const admin_route **out);

struct admin {
    gateway *gateway;
    http_server *server;
    list jobs;
    size_t job_count;
    uint64_t refused_until_ms; /* connections refused are not logged until then … */
    size_t refused_count;      /* … but counted */
    /* By worker: a status that it has not answered in time, and has not answered yet. It is asked
     * nothing more until it has. */
    struct status_request **silent;
};

/* An answer that comes later. The job stays until its owner removes it; the exchange may go before.
 */
typedef struct admin_job {
    list_link link;
    admin *admin;
    http_exchange *exchange; /* NULL: answered, or its client has gone */
    loop_timer late;
    void (*gone)(struct admin_job *self); /* the client has gone; may be NULL */
    void (*free)(struct admin_job *self); /* at the end of the gateway */
} admin_job;

/* BAY_ERR_LIMIT: there are as many as may be; the exchange is untouched. */
bay_err admin_job_begin(admin_job *self, admin *owner, http_exchange *exchange,
                        void (*late)(void *argument), uint32_t late_ms) BAY_MUST_CHECK;
/* Answers, if its client is still there and has not been answered. */
void admin_job_answer(admin_job *self, int status, bay_str body);
/* The same: {"error": text} */
void admin_job_refuse(admin_job *self, int status, bay_str text);
void admin_job_remove(admin_job *self);

void admin_answer(http_exchange *exchange, int status, bay_str body);
/* {"error": text} */
void admin_refuse(http_exchange *exchange, int status, bay_str text);
/* As many jobs as there may be, or no memory. */
void admin_refuse_busy(http_exchange *exchange);

/* False after refusing it: a page of another origin, or by a name of another machine, which a browser
 * may have been led to. */
bool admin_check_origin(http_exchange *exchange);

/* metrics.c */
void admin_metrics(admin *self, http_exchange *exchange);
/* admin_status.c */
void admin_status(admin *self, http_exchange *exchange);
/* admin_reload.c */
void admin_pins(admin *self, http_exchange *exchange);
void admin_approve_pin(admin *self, http_exchange *exchange);
void admin_reload(admin *self, http_exchange *exchange);
void admin_drain(admin *self, http_exchange *exchange);

#endif
