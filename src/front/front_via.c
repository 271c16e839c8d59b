/* A request that has come through this gateway before, or through too many: refused before anything
 * is done for it. */
#include "base/str.h"
#include "front/front.h"
#include "wire/via.h"

const char *front_via_refusal(bay_str own_name, const http_exchange *exchange)
{
    size_t count = 0;
    const http_field *fields = http_exchange_fields(exchange, &count);
    via_seen seen = {0};
    via_verdict verdict = VIA_FINE;
    for (size_t i = 0; verdict == VIA_FINE && i < count; i++) {
        if (str_eq_nocase(fields[i].name, STR("Via"))) {
            verdict = via_read(&seen, fields[i].value, own_name);
        }
    }
    return verdict == VIA_FINE ? NULL
           : verdict == VIA_LOOP
               ? "a loop: this request has come through this gateway before (Via); its upstreams "
                 "lead back to it"
               : "this request came through too many gateways (Via): perhaps a loop";
}
