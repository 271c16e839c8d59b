/* What connect.c (pages and links) and connect_step.c (logins under way) share. */
#ifndef GATEWAY_CONNECT_PARTS_H
#define GATEWAY_CONNECT_PARTS_H

#include "gateway/connect.h"
#include "gateway/worker.h"

#define CONNECT_REDIRECT "/connect" /* no server can be called so: their pages have a name more */
#define CONNECT_COOKIE "connect"

/* A server or agent where users log in; views of the configuration. */
typedef struct connect_target {
    const config_credentials *credentials;
    bay_str name;
    bay_str url;
    const config_server_tls *tls;
} connect_target;

/* connect.c */
bool connect_target_find(const config *settings, bay_str name, connect_target *out);
/* A page of one sentence. */
void connect_say(http_exchange *exchange, int status, const char *title, const char *sentence);
/* The row is written: the page, and what clients are told. `id`: of the elicitation, or "". */
void connect_done(worker *self, const front_request *request, const connect_target *to,
                  const auth_principal *who, bay_str id);

/* connect_step.c; both answer the exchange, now or later. */
/* The person agreed: leads the browser to the server's authorization server. */
void connect_begin(worker *self, const front_request *request, const connect_target *to,
                   const auth_principal *who, bay_str id);
/* The browser comes back. */
void connect_finish(worker *self, const front_request *request, const auth_principal *who);

#endif
