/* What a credential costs: a token that is remembered, a new one, and many of them.
 *
 *   remembered=NS digest=NS        a look-up, its SHA-256 included; the SHA-256 alone
 *   new=NS bare=NS                 an ES256 JWT from its text to a principal; OpenSSL's verification
 *   tokens=N bytes=B full=NS few=NS  of each of N live tokens; a look-up among N, and among 100
 *   refused=NS                     a look-up of one that was refused, its SHA-256 included
 *
 * Medians of rounds that take turns, in CPU time. */
#include <malloc.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "auth/access_token.h"
#include "auth/token_memory.h"
#include "base/str.h"

#define ISSUER "https://login.acme.example/t1"
#define AUDIENCE "https://tools.acme.example/mcp"

enum { ROUNDS = 21, REPEATS = 2000, TOKENS = 100000, FEW = 100, NOW_S = 1790000000 };

static _Noreturn void give_up(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double rounds[ROUNDS])
{
    qsort(rounds, ROUNDS, sizeof(rounds[0]), compare);
    return rounds[ROUNDS / 2];
}

/* ---- what is measured ------------------------------------------------------------------------ */

typedef struct subject {
    buf token;
    jose_keys *keys;
    EVP_PKEY *key;
    unsigned char signature[80]; /* of OpenSSL's own, over as many bytes */
    size_t signature_len;
    token_memory *memory;
    arena scratch;
} subject;

static void digest_of(bay_str text, unsigned char out[DIGEST_BYTES])
{
    if (digest_bytes(text, out) != BAY_OK) {
        give_up("no digest");
    }
}

static void take_digest(subject *self)
{
    unsigned char digest[DIGEST_BYTES];
    digest_of(buf_view(&self->token), digest);
}

static void take_remembered(subject *self)
{
    unsigned char digest[DIGEST_BYTES];
    token_entry entry;
    digest_of(buf_view(&self->token), digest);
    if (token_memory_find(self->memory, digest, 1, NOW_S * 1000ULL, &entry) != TOKEN_GOOD) {
        give_up("it is not remembered");
    }
    principal_unref(entry.principal);
}

static void take_refused(subject *self)
{
    unsigned char digest[DIGEST_BYTES];
    token_entry entry;
    digest_of(str_from(buf_view(&self->token), 1), digest);
    if (token_memory_find(self->memory, digest, 1, NOW_S * 1000ULL, &entry) != TOKEN_REFUSED) {
        give_up("the refusal is not remembered");
    }
}

static const auth_principal *verified(subject *self)
{
    static const bay_str audience = STR_INIT(AUDIENCE);
    const access_rules rules = {.issuer = STR(ISSUER),
                                .audiences = &audience,
                                .audience_count = 1,
                                .is_typed = true,
                                .now_ms = NOW_S * 1000ULL,
                                .skew_ms = 60000};
    access_token token;
    access_claims claims;
    const auth_principal *who = NULL;
    bay_diag diag = {.text = ""};
    arena_reset(&self->scratch);
    bay_err err = access_token_read(buf_view(&self->token), &self->scratch, &token, &diag);
    err = err == BAY_OK ? access_token_check(&token, &rules, &self->scratch, &claims, &diag) : err;
    err = err == BAY_OK ? access_token_verify(&token, self->keys, &diag) : err;
    err = err == BAY_OK ? access_claims_principal(&claims, NULL, 0, &who, &diag) : err;
    if (err != BAY_OK) {
        give_up(diag.text);
    }
    return who;
}

static void take_new(subject *self)
{
    principal_unref(verified(self));
}

static void take_bare(subject *self)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context == NULL ||
        EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, self->key) != 1 ||
        EVP_DigestVerify(context, self->signature, self->signature_len,
                         (const unsigned char *)self->token.at, self->token.len) != 1) {
        give_up("OpenSSL does not verify");
    }
    EVP_MD_CTX_free(context);
}

/* Two that take turns. */
static void race(subject *self, void (*ours)(subject *), void (*other)(subject *), int repeats,
                 double *out_ours, double *out_other)
{
    double rounds[2][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_ns();
        for (int i = 0; i < repeats; i++) {
            ours(self);
        }
        rounds[0][round] = (cpu_ns() - start) / repeats;
        start = cpu_ns();
        for (int i = 0; i < repeats; i++) {
            other(self);
        }
        rounds[1][round] = (cpu_ns() - start) / repeats;
    }
    *out_ours = median(rounds[0]);
    *out_other = median(rounds[1]);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void number_digest(int number, unsigned char out[DIGEST_BYTES])
{
    char text[32];
    (void)snprintf(text, sizeof(text), "token %d", number);
    digest_of(str_of(text), out);
}

static token_memory *remember(int count)
{
    token_memory *memory = NULL;
    if (token_memory_new(TOKEN_MEMORY_DEFAULT, &memory) != BAY_OK) {
        give_up("no memory");
    }
    for (int i = 0; i < count; i++) {
        char subject_text[32];
        unsigned char digest[DIGEST_BYTES];
        (void)snprintf(subject_text, sizeof(subject_text), "user-%06d", i);
        const principal_parts parts = {.proof = PRINCIPAL_TOKEN,
                                       .issuer = STR(ISSUER),
                                       .subject = str_of(subject_text),
                                       .client = STR("client-1"),
                                       .scopes = STR("notes.read")};
        token_entry entry = {.until_ms = NOW_S * 1000ULL + 600000};
        if (principal_new(&parts, &entry.principal) != BAY_OK) {
            give_up("no principal");
        }
        number_digest(i, digest);
        token_memory_keep(memory, digest, 1, &entry, NOW_S * 1000ULL);
        principal_unref(entry.principal);
    }
    if (token_memory_count(memory) != (size_t)count) {
        give_up("some were forgotten");
    }
    return memory;
}

/* A look-up alone, in an order that no cache knows beforehand. */
static double look_up(token_memory *memory, int count)
{
    static unsigned char digests[REPEATS][DIGEST_BYTES];
    double rounds[ROUNDS];
    for (int i = 0; i < REPEATS; i++) {
        number_digest((int)((unsigned)i * 7919U % (unsigned)count), digests[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = cpu_ns();
        for (int i = 0; i < REPEATS; i++) {
            token_entry entry;
            if (token_memory_find(memory, digests[i], 1, NOW_S * 1000ULL, &entry) != TOKEN_GOOD) {
                give_up("one was forgotten");
            }
            principal_unref(entry.principal);
        }
        rounds[round] = (cpu_ns() - start) / REPEATS;
    }
    return median(rounds);
}

static void report_many(void)
{
    token_memory *few = remember(FEW);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    token_memory *many = remember(TOKENS);
    size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    double full_ns = look_up(many, TOKENS);
    double few_ns = look_up(few, FEW);
    printf("tokens=%d bytes=%zu full=%.0f ns few=%.0f ns\n", TOKENS, (after - before) / TOKENS,
           full_ns, few_ns);
    token_memory_free(many);
    token_memory_free(few);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void make_token(subject *self)
{
    static const char claims[] =
        "{\"iss\":\"" ISSUER "\",\"sub\":\"248289761001\",\"aud\":\"" AUDIENCE
        "\",\"exp\":1790000600,\"iat\":1789999990,\"jti\":\"9f1c2e7a-5d0b-4b56-8a3e-71e5d3f0a9c4\","
        "\"client_id\":\"acme-assistant\",\"scope\":\"notes.read notes.write\",\"groups\":[\"ops\","
        "\"finance\"]}";
    buf pem, set;
    jose_key *key = NULL;
    bay_diag diag = {.text = ""};
    buf_init_secret(&pem, 4096);
    buf_init(&set, 4096);
    buf_init(&self->token, ACCESS_TOKEN_BYTES);
    bay_err err = jose_key_generate(&pem);
    err = err == BAY_OK ? jose_key_new(buf_view(&pem), STR("k1"), &key, &diag) : err;
    err = err == BAY_OK ? jose_token_sign(key, STR("at+jwt"), false, str_of(claims), &self->token)
                        : err;
    err = err == BAY_OK ? jose_key_public(key, &set) : err;
    err = err == BAY_OK ? jose_keys_new(buf_view(&set), &self->keys, &diag) : err;
    if (err != BAY_OK) {
        give_up("no token");
    }
    jose_key_free(key);
    buf_fini(&pem);
    buf_fini(&set);
}

static void make_bare(subject *self)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    self->key = EVP_EC_gen("P-256");
    self->signature_len = sizeof(self->signature);
    if (context == NULL || self->key == NULL ||
        EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, self->key) != 1 ||
        EVP_DigestSign(context, self->signature, &self->signature_len,
                       (const unsigned char *)self->token.at, self->token.len) != 1) {
        give_up("OpenSSL does not sign");
    }
    EVP_MD_CTX_free(context);
}

int main(void)
{
    subject self = {.keys = NULL};
    double ours, other;
    unsigned char digest[DIGEST_BYTES];
    arena_init(&self.scratch, 1 << 20);
    make_token(&self);
    make_bare(&self);
    self.memory = remember(FEW);
    const auth_principal *who = verified(&self);
    const token_entry entry = {.principal = who, .until_ms = NOW_S * 1000ULL + 600000};
    digest_of(buf_view(&self.token), digest);
    token_memory_keep(self.memory, digest, 1, &entry, NOW_S * 1000ULL);
    digest_of(str_from(buf_view(&self.token), 1), digest);
    token_memory_refuse(self.memory, digest, 1, NOW_S * 1000ULL);
    principal_unref(who);
    race(&self, take_remembered, take_digest, 10 * REPEATS, &ours, &other);
    printf("remembered=%.0f ns digest=%.0f ns\n", ours, other);
    race(&self, take_new, take_bare, REPEATS / 10, &ours, &other);
    printf("new=%.0f ns bare=%.0f ns\n", ours, other);
    report_many();
    race(&self, take_refused, take_digest, 10 * REPEATS, &ours, &other);
    printf("refused=%.0f ns\n", ours);
    token_memory_free(self.memory);
    jose_keys_free(self.keys);
    EVP_PKEY_free(self.key);
    buf_fini(&self.token);
    arena_fini(&self.scratch);
    return 0;
}
