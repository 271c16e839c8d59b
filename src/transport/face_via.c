/* A request that has come through this gateway before, or through too many: refused before anything
 * is done for it. Source: RFC 9110 section 7.6.3, RFC 5842 section 7.2 (508). */
#include "rpc/message.h"
#include "transport/face_internal.h"
#include "transport/http_reply.h"
#include "wire/via.h"
#include "json/json.h"

static via_verdict judge(const http_face *self, const http_exchange *exchange)
{
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    via_seen seen = {0};
    via_verdict verdict = VIA_FINE;
    for (size_t i = 0; verdict == VIA_FINE && i < count; i++) {
        if (str_eq_nocase(fields[i].name, STR("Via"))) {
            verdict = via_read(&seen, fields[i].value, self->via);
        }
    }
    return verdict;
}

/* gRPC has its status in fields; 9 is FAILED_PRECONDITION: whoever tries again is told the same. */
static void refuse_grpc(http_exchange *exchange, const char *text)
{
    const http_field fields[] = {{STR("Content-Type"), STR("application/grpc")},
                                 {STR("grpc-status"), STR("9")},
                                 {STR("grpc-message"), str_of(text)}};
    http_exchange_reply(exchange, 200, fields, sizeof(fields) / sizeof(fields[0]), STR(""));
}

bool face_via_refuses(const http_face *self, http_exchange *exchange)
{
    via_verdict verdict = self->via.len > 0 ? judge(self, exchange) : VIA_FINE;
    if (verdict == VIA_FINE) {
        return false;
    }
    const char *text = verdict == VIA_LOOP
                           ? "a loop: this request has come through this gateway before (Via); its "
                             "upstreams lead back to it"
                           : "this request came through too many gateways (Via): perhaps a loop";
    if (str_starts(http_exchange_field(exchange, STR("Content-Type")), STR("application/grpc"))) {
        refuse_grpc(exchange, text);
        return true;
    }
    http_face_reply_error(exchange, 508, RPC_INTERNAL_ERROR, text);
    return true;
}
