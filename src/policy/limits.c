#include "policy/limits.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/rand.h"
#include "base/str.h"

enum { KEY_BYTES = 4096, CHARGES = 3, GROUP_BYTES = 8 };

/* What a bucket is of: the first byte of its name. */
typedef enum bucket_kind {
    OF_ADDRESS = 'a',
    OF_PRINCIPAL = 'p',
    OF_CALLS = 'c', /* of one tool by one principal */
    OF_TOOL = 't',
    OF_SERVER = 's',
} bucket_kind;

/* ---- whose bucket it is ---------------------------------------------------------------------- */

/* IPv4 whole; of IPv6 the first 64 bits. */
static void put_address(buf *out, const net_address *address)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool is_mapped = memcmp(address->bytes, mapped, sizeof(mapped)) == 0;
    buf_char(out, is_mapped ? '4' : '6');
    buf_str(out, (bay_str){(const char *)address->bytes + (is_mapped ? 12 : 0),
                           is_mapped ? 4 : GROUP_BYTES});
}

/* Each part with its length before it: no two payers have the same name. */
static void put_part(buf *out, bay_str part)
{
    buf_str(out, (bay_str){(const char *)&part.len, sizeof(part.len)});
    buf_str(out, part);
}

static void put_payer(buf *out, const policy_payer *payer)
{
    put_part(out, principal_identity(payer->principal));
    if (payer->principal == NULL && payer->origin != NULL && payer->origin->has_address) {
        put_address(out, &payer->origin->address);
    }
}

/* A name that is too long for `name` shares the bucket of what its beginning is. */
static void begin_name(buf *name, bucket_kind kind)
{
    buf_clear(name);
    buf_char(name, (char)kind);
}

static void put_about(buf *out, const policy_name *about)
{
    buf_char(out, (char)('0' + about->kind));
    put_part(out, about->name);
}

/* What cannot be counted is not admitted. */
static bool has_table(const policy_limits *self, policy_excess *out)
{
    enum { AGAIN_MS = 1000 };
    if (self->table == NULL) {
        out->retry_after_ms = AGAIN_MS;
        (void)snprintf(out->text, sizeof(out->text),
                       "There is no memory to count calls with. This one was not carried out.");
    }
    return self->table != NULL;
}

/* ---- charging -------------------------------------------------------------------------------- */

static bool charge_of(const policy_limits *self, const buf *name, const policy_rate *rate,
                      uint32_t cost, bucket_charge *out)
{
    if (rate->count == 0) {
        return false;
    }
    uint64_t one_us = (uint64_t)rate->period_ms * 1000 / rate->count;
    *out = (bucket_charge){.key = buckets_key(self->table, buf_view(name)),
                           .cost_us = one_us * cost,
                           .most_us = one_us * rate->burst};
    return true;
}

/* Up to a fifth longer, lest all who were refused come back together. */
static void say_excess(const policy_rate *rate, const char *of, uint64_t wait_us,
                       policy_excess *out)
{
    char limit[POLICY_RATE_TEXT];
    uint64_t wait_ms = (wait_us + 999) / 1000;
    wait_ms += rand_u64() % (wait_ms / 5 + 1);
    out->retry_after_ms = wait_ms < UINT32_MAX ? (uint32_t)wait_ms : UINT32_MAX;
    policy_rate_text(rate, limit);
    (void)snprintf(out->text, sizeof(out->text),
                   "Too many calls: %s at most %s. This one was not carried out; try again in %llu "
                   "s.",
                   of, limit, (unsigned long long)((wait_ms + 999) / 1000));
}

static bool take_one(policy_limits *self, const buf *name, const policy_rate *rate, const char *of,
                     uint64_t now_ms, policy_excess *out)
{
    bucket_charge charge;
    size_t which;
    uint64_t wait_us;
    if (!charge_of(self, name, rate, 1, &charge) ||
        buckets_take(self->table, &charge, 1, now_ms * 1000, &which, &wait_us)) {
        return true;
    }
    say_excess(rate, of, wait_us, out);
    return false;
}

bool policy_limits_admits(policy_limits *self, const net_address *address, uint64_t now_ms,
                          policy_excess *out)
{
    char text[GROUP_BYTES + 2];
    buf name = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    if (!has_table(self, out)) {
        return false;
    }
    begin_name(&name, OF_ADDRESS);
    put_address(&name, address);
    return take_one(self, &name, &self->rates.address, "one address may send", now_ms, out);
}

bool policy_limits_enter(policy_limits *self, const policy_payer *payer, uint64_t now_ms,
                         policy_excess *out)
{
    char text[KEY_BYTES];
    buf name = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    begin_name(&name, OF_PRINCIPAL);
    put_payer(&name, payer);
    return has_table(self, out) &&
           take_one(self, &name, &self->rates.principal, "one caller may make", now_ms, out);
}

/* Begins the bucket's name; nothing else differs between the buckets of one call. */
static void name_bucket(buf *name, bucket_kind kind, const policy_payer *payer,
                        const policy_name *about)
{
    begin_name(name, kind);
    if (kind == OF_CALLS) {
        put_payer(name, payer);
    }
    if (kind == OF_SERVER) {
        put_part(name, about->server);
    } else {
        put_about(name, about);
    }
}

bool policy_limits_spend(policy_limits *self, const policy_payer *payer, const policy_name *about,
                         const policy_tool *tool, uint64_t now_ms, policy_excess *out)
{
    char text[KEY_BYTES];
    buf name = {.at = text, .cap = sizeof(text), .max = sizeof(text)};
    bool is_named =
        about->kind == POLICY_TOOL || about->kind == POLICY_PROMPT || about->kind == POLICY_AGENT;
    const struct {
        bucket_kind kind;
        const policy_rate *rate;
        const char *words;
        bool counts;
    } of[CHARGES] = {
        {OF_CALLS, &tool->rate, "one caller may call this", is_named},
        {OF_TOOL, tool->total.count > 0 ? &tool->total : &self->rates.tool,
         "all callers together may call this", is_named},
        {OF_SERVER, &self->rates.server, "all callers together may call this server",
         about->server.len > 0},
    };
    bucket_charge charges[CHARGES];
    size_t which[CHARGES] = {0};
    size_t count = 0;
    for (size_t i = 0; self->table != NULL && i < CHARGES; i++) {
        if (of[i].counts) {
            name_bucket(&name, of[i].kind, payer, about);
            which[count] = i;
            count += charge_of(self, &name, of[i].rate, tool->cost > 0 ? tool->cost : 1,
                               &charges[count]);
        }
    }
    size_t full = 0;
    uint64_t wait_us;
    if (!has_table(self, out)) {
        return false;
    }
    if (buckets_take(self->table, charges, count, now_ms * 1000, &full, &wait_us)) {
        return true;
    }
    say_excess(of[which[full]].rate, of[which[full]].words, wait_us, out);
    return false;
}

void policy_limits_set(policy_limits *self, buckets *table, const policy_rates *rates)
{
    buckets *old = self->table;
    self->table = buckets_ref(table);
    self->rates = *rates;
    self->origin = policy_origin_new;
    self->find = policy_tools_find;
    self->enter = policy_limits_enter;
    self->spend = policy_limits_spend;
    buckets_unref(old);
}

void policy_limits_fini(policy_limits *self)
{
    buckets_unref(self->table);
    self->table = NULL;
}
