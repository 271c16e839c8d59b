/* Who is calling over HTTP: the program is asked once for each request, before anything of it is
 * looked at, and says a name or no. */
#include "base/log.h"
#include "base/str.h"
#include "sdk/server_parts.h"

enum { PEER_MAX_NAME = 1024, PEER_MAX_CHALLENGE = 4096 };

struct bay_peer {
    http_exchange *exchange;
    bay_str subject;
    bay_str challenge;
    bool is_short; /* what was said of it could not be kept */
};

void bay_server_identify(bay_server *server, bay_identify_fn identify, void *user)
{
    if (server != NULL) {
        server->identify = identify;
        server->identify_user = user;
    }
}

bay_str bay_peer_field(const bay_peer *peer, const char *name)
{
    return peer != NULL ? http_exchange_field(peer->exchange, str_of(name)) : (bay_str){NULL, 0};
}

bay_str bay_peer_certificate(const bay_peer *peer)
{
    return peer != NULL ? http_exchange_client_certificate(peer->exchange, TLS_SUBJECT)
                        : (bay_str){NULL, 0};
}

static void peer_keep(bay_peer *peer, const char *what, bay_str text, size_t most, bay_str *out)
{
    if (text.len > most || arena_dup(http_exchange_arena(peer->exchange), text, out) != BAY_OK) {
        LOG(LOG_ERROR, "server", "the %s of a peer is not kept: %zu bytes", what, text.len);
        peer->is_short = true;
    }
}

void bay_peer_principal(bay_peer *peer, const char *principal)
{
    if (peer != NULL) {
        peer_keep(peer, "name", str_of(principal), PEER_MAX_NAME, &peer->subject);
    }
}

/* A line end in it would be another field of the reply. */
void bay_peer_challenge(bay_peer *peer, const char *challenge)
{
    bay_str text = str_of(challenge);
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f) {
            LOG(LOG_ERROR, "server", "the challenge of a peer has a control character");
            return;
        }
    }
    if (peer != NULL) {
        peer_keep(peer, "challenge", text, PEER_MAX_CHALLENGE, &peer->challenge);
    }
}

/* Somebody whose name could not be kept would be taken for nobody in particular: refused. */
front_verdict sdk_peer_identify(const bay_server *server, http_exchange *exchange,
                                const auth_principal **out_principal, front_refusal *out)
{
    bay_peer peer = {.exchange = exchange};
    bool is_known = server->identify(&peer, server->identify_user) && !peer.is_short;
    principal_parts parts = {.proof = PRINCIPAL_PROGRAM, .subject = peer.subject};
    out->challenge.schemes[0] = peer.challenge;
    if (is_known && peer.subject.len > 0) {
        bay_err err = principal_new(&parts, out_principal);
        if (err != BAY_OK) {
            LOG(LOG_ERROR, "server", "the name of a peer is not kept: %s", bay_err_text(err));
        }
        is_known = err == BAY_OK;
    }
    return is_known ? FRONT_GO : FRONT_REFUSE;
}
