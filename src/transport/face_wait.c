/* A call whose session is not held here: it waits, its exchange kept, until whoever keeps sessions
 * has looked for it; then it goes to its engine, which by then has the session or says 404.
 *
 * The face, the exchange and the search end in any order: the wait belongs to the search, which
 * ends exactly once; the other two only let go of it. */
#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "mcp/keeper.h"
#include "transport/face_internal.h"

struct face_wait {
    list_link link;  /* in face->waits */
    http_face *face; /* NULL: it is gone */
    face_back *back; /* NULL: the exchange is gone */
    face_call call;
};

static void answer_busy(face_back *back)
{
    back->carrier.ops->answer(&back->carrier, 503, STR(""), STR(""), STR(""));
}

static void on_recalled(void *user, bay_err err)
{
    face_wait *self = user;
    face_back *back = self->back;
    http_face *face = self->face;
    face_call call = self->call;
    list_remove(&self->link);
    mem_free(self);
    if (back == NULL || face == NULL) {
        principal_unref(call.http.principal);
        return;
    }
    void (*served)(face_back * back) = back->served;
    back->wait = NULL;
    if (err == BAY_OK || err == BAY_NOTFOUND) {
        face_serve_now(face, &call, back);
    } else {
        answer_busy(back);
    }
    principal_unref(call.http.principal);
    if (served != NULL) {
        served(back);
    }
}

bool face_wait_begin(http_face *face, const face_call *call, mcp_server *engine, face_back *back)
{
    static const bay_str name = STR_INIT("Mcp-Session-Id");
    const mcp_http_request *http = &call->http;
    bay_str id = http->field(http->context, name);
    if (face->options.recall == NULL || id.len == 0 || mcp_server_holds(engine, id) ||
        http->field_count(http->context, name) != 1) {
        return false;
    }
    face_wait *self = mem_zalloc(sizeof(*self));
    bay_err err = self == NULL ? BAY_NOMEM : BAY_OK;
    if (err == BAY_OK) {
        *self = (face_wait){.face = face, .back = back, .call = *call};
        self->call.engine = NULL; /* it may be another's by then */
        self->call.http.principal = principal_ref(http->principal);
        err = face->options.recall(face->options.user, engine, id, http->principal, on_recalled,
                                   self);
    }
    if (err != BAY_OK) {
        principal_unref(self != NULL ? self->call.http.principal : NULL);
        mem_free(self);
        if (err == BAY_NOTFOUND) {
            return false;
        }
        answer_busy(back);
        return true;
    }
    back->wait = self;
    list_push(&face->waits, &self->link);
    return true;
}

void face_waits_end(http_face *face)
{
    list_link *link;
    while ((link = list_pop(&face->waits)) != NULL) {
        CONTAINER_OF(link, face_wait, link)->face = NULL;
    }
}

void face_back_gone(face_back *back, uint64_t now_ms)
{
    if (back->wait != NULL) {
        back->wait->back = NULL;
        back->wait = NULL;
    } else if (back->engine != NULL) {
        mcp_server_gone(back->engine, &back->carrier, now_ms);
    }
}
