/* A certificate that signs itself, and its key, in files of their own. */
#ifndef TESTS_SUPPORT_IDENTITY_H
#define TESTS_SUPPORT_IDENTITY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cmocka.h>

typedef struct identity {
    char directory[40];
    char certificate[64];
    char key[64];
} identity;

/* What a certificate says; NULL and 0: as identity_new has it. */
typedef struct identity_spec {
    const char *name;         /* CN */
    const char *organisation; /* O */
    const char *alternatives; /* "DNS:one.test,IP:127.0.0.1" */
    long valid_s;             /* from now on; less than 0: it is over */
} identity_spec;

static inline void identity_write(identity *self, X509 *certificate, EVP_PKEY *key)
{
    snprintf(self->directory, sizeof(self->directory), "/tmp/patchbay-identity-XXXXXX");
    assert_non_null(mkdtemp(self->directory));
    snprintf(self->certificate, sizeof(self->certificate), "%s/crt", self->directory);
    snprintf(self->key, sizeof(self->key), "%s/key", self->directory);
    FILE *file = fopen(self->certificate, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = fopen(self->key, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static inline void identity_make(identity *self, identity_spec spec)
{
    const char *alternatives = spec.alternatives != NULL ? spec.alternatives : "IP:127.0.0.1";
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *made = X509_new();
    assert_non_null(key);
    assert_non_null(made);
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -7200);
    X509_gmtime_adj(X509_getm_notAfter(made), spec.valid_s != 0 ? spec.valid_s : 86400);
    X509_set_pubkey(made, key);
    X509_NAME *subject = X509_get_subject_name(made);
    if (spec.organisation != NULL) {
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8,
                                   (const unsigned char *)spec.organisation, -1, -1, 0);
    }
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)spec.name, -1,
                               -1, 0);
    X509_set_issuer_name(made, subject);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternatives);
    assert_non_null(names);
    X509_add_ext(made, names, -1);
    X509_EXTENSION_free(names);
    assert_true(X509_sign(made, key, EVP_sha256()) > 0);
    identity_write(self, made, key);
    X509_free(made);
    EVP_PKEY_free(key);
}

/* For 127.0.0.1, good for a day. */
static inline void identity_new(identity *self, const char *name)
{
    identity_make(self, (identity_spec){.name = name});
}

static inline void identity_free(identity *self)
{
    unlink(self->certificate);
    unlink(self->key);
    rmdir(self->directory);
}

#endif
