/* Who sent a request that came through proxies, and how it was asked for: X-Forwarded-For, -Proto
 * and -Host, or Forwarded, of a peer that is trusted to write them. Of anybody else they are not
 * read.
 *
 * Each proxy adds behind what it got, so the right-most address is what our peer saw, the one
 * before it what that proxy was told, and so on: the first from the right that is no trusted
 * proxy's is the client's, and what stands before that anybody may have written. Host and scheme
 * are the right-most. Fields that are malformed, too many or too long, and both forms at once (a
 * proxy writes one and passes the other on from whoever wrote it), are ignored as a whole. Source:
 * RFC 7239 sections 4 to 6 and 7.4. */
#ifndef FRONT_FORWARDED_H
#define FRONT_FORWARDED_H

#include "http/http_server.h"
#include "net/address.h"

enum {
    FORWARDED_PROXIES = 256, /* networks whose word counts */
    FORWARDED_HOPS = 20,     /* addresses of one request that are read */
    FORWARDED_BYTES = 4096,  /* of all such fields of one request */
};

/* Whose word counts. */
typedef struct forwarded_proxies {
    net_network at[FORWARDED_PROXIES];
    size_t count;
} forwarded_proxies;

/* Networks as network_parse reads them. BAY_ERR_LIMIT, BAY_ERR_SYNTAX. */
bay_err forwarded_proxies_set(forwarded_proxies *self, const bay_str *texts,
                              size_t count) BAY_MUST_CHECK;

/* Is this address (text, without a port) one of them? */
bool forwarded_is_trusted(const forwarded_proxies *self, bay_str address);

/* How a request was sent, as far as is known. Views live as long as the exchange. */
typedef struct forwarded_request {
    bay_str address; /* of the client, without a port */
    bay_str host;    /* that it asked for, in place of the field Host */
    bool is_https;   /* a proxy says that it came by TLS */
} forwarded_request;

/* `out` is what the connection and Host say, and stays so where no proxy is believed. */
void forwarded_read(const forwarded_proxies *proxies, const http_exchange *exchange,
                    forwarded_request *out);

#endif
