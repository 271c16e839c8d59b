/* Client id metadata documents: fetched when a person who is logged in is to be asked, through the
 * guard that all documents of strangers pass, and read once. */
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "front/http_reply.h"
#include "gateway/auth_parts.h"
#include "gateway/login.h"
#include "gateway/proxy.h"
#include "gateway/worker.h"
#include "oauth/document.h"

enum { CLIENT_BYTES = 64 << 10 };

struct worker_proxy {
    oauth_source *source;
    list fetches;
    size_t count;
};

typedef struct proxy_fetch {
    const http_owner_ops *owner; /* first: as front/http_reply.h wants it */
    list_link link;
    worker *worker;
    worker_proxy *of;
    front_request request;
    const auth_principal *who;
    bay_str client_id; /* in the exchange's arena */
    oauth_document document;
    proxy_described done;
} proxy_fetch;

static void fetch_free(proxy_fetch *self)
{
    list_remove(&self->link);
    self->of->count--;
    oauth_document_fini(&self->document);
    principal_unref(self->who);
    mem_free(self);
}

static void fetch_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)exchange;
    (void)is_complete;
    fetch_free(user);
}

static void fetch_drained(void *user, http_exchange *exchange)
{
    (void)user;
    (void)exchange;
}

/* The exchange goes on without the fetch. */
static void fetch_end(proxy_fetch *self, const oauth_proxy_client *client, const char *why)
{
    http_exchange_set_user(self->request.exchange, NULL);
    self->done(self->worker, &self->request, self->who, client, why);
    fetch_free(self);
}

static void on_document(void *user, const oauth_answer *answer)
{
    proxy_fetch *self = user;
    const config_auth *settings = worker_proxy_settings(self->worker);
    const oauth_proxy_schemes schemes = {settings->proxy.schemes.at, settings->proxy.schemes.count};
    oauth_proxy_client client;
    bay_diag diag = {.text = ""};
    if (answer->err != BAY_OK || answer->status != 200 || !json_is(answer->root, JSON_OBJECT)) {
        fetch_end(self, NULL, "The program's description cannot be read.");
        return;
    }
    bay_err err =
        oauth_proxy_document_read(self->client_id, answer->root, &schemes,
                                  http_exchange_arena(self->request.exchange), &client, &diag);
    fetch_end(self, err == BAY_OK ? &client : NULL,
              "The program's description is not that of a program that can be let in here.");
}

/* What it may lead to: as everything that strangers name, with this gateway as its home. */
static bay_err proxy_open(worker *self, bay_str base, worker_proxy **out)
{
    oauth_source_options options = {.home = base};
    bay_diag diag = {.text = ""};
    worker_proxy *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return BAY_ERR_NOMEM;
    }
    list_init(&made->fetches);
    bay_err err = oauth_source_new(self->loop, &options, &made->source, &diag);
    if (err != BAY_OK) {
        mem_free(made);
        return err;
    }
    *out = made;
    return BAY_OK;
}

static bay_err fetch_new(worker *self, worker_proxy *of, const front_request *request,
                         bay_str client_id, proxy_fetch **out)
{
    static const http_owner_ops ops = {.closed = fetch_closed, .drained = fetch_drained};
    proxy_fetch *one = of->count < PROXY_DOCUMENTS ? mem_zalloc(sizeof(*one)) : NULL;
    if (one == NULL) {
        return BAY_ERR_BUSY;
    }
    *one = (proxy_fetch){.owner = &ops, .worker = self, .of = of, .request = *request};
    oauth_document_init(&one->document, of->source);
    list_push(&of->fetches, &one->link);
    of->count++;
    bay_err err = arena_dup(http_exchange_arena(request->exchange), client_id, &one->client_id);
    if (err != BAY_OK) {
        fetch_free(one);
        return err;
    }
    *out = one;
    return BAY_OK;
}

void proxy_describe(worker *self, const front_request *request, const auth_principal *who,
                    bay_str client_id, proxy_described done)
{
    proxy_fetch *one = NULL;
    worker_proxy **place = worker_auth_proxy(self->auth);
    bay_diag diag = {.text = ""};
    bay_err err =
        *place == NULL ? proxy_open(self, worker_login_base(self, request), place) : BAY_OK;
    if (err == BAY_OK) {
        err = fetch_new(self, *place, request, client_id, &one);
    }
    if (err != BAY_OK) {
        done(self, request, who, NULL, "The program's description cannot be fetched now.");
        return;
    }
    one->who = principal_ref(who);
    one->done = done;
    const oauth_request asked = {.url = one->client_id, .max_bytes = OAUTH_PROXY_DOCUMENT_BYTES};
    http_exchange_set_user(request->exchange, one);
    err = oauth_document_start(&one->document, &asked, on_document, one, &diag);
    if (err != BAY_OK) {
        fetch_end(one, NULL, "The program's description is at an address that is not asked.");
    }
}

void worker_proxy_free(worker_proxy *self)
{
    list_link *link;
    if (self == NULL) {
        return;
    }
    while ((link = list_first(&self->fetches)) != NULL) {
        fetch_end(CONTAINER_OF(link, proxy_fetch, link), NULL,
                  "The gateway ends, or its configuration changed. Try again.");
    }
    oauth_source_free(self->source);
    mem_free(self);
}
