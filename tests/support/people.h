/* Principals by name, for tests: each name is one principal of one issuer, made when it is first
 * named. A test that names them where each allocation fails in turn makes them before, by
 * PEOPLE_FROM_THE_START. */
#ifndef SUPPORT_PEOPLE_H
#define SUPPORT_PEOPLE_H

#include "auth/principal.h"
#include "base/check.h"
#include "base/str.h"

enum { PEOPLE_MAX = 64 };

static struct {
    const auth_principal *at[PEOPLE_MAX];
    size_t count;
} people;

/* Borrowed, for good; NULL or "": the anonymous principal. */
static inline const auth_principal *person_of(bay_str name)
{
    principal_parts parts = {.proof = PRINCIPAL_PROGRAM, .subject = name};
    for (size_t i = 0; i < people.count; i++) {
        if (str_eq(principal_subject(people.at[i]), name)) {
            return people.at[i];
        }
    }
    if (name.len == 0) {
        return NULL;
    }
    CHECK(people.count < PEOPLE_MAX && principal_new(&parts, &people.at[people.count]) == BAY_OK);
    return people.at[people.count++];
}

static inline const auth_principal *person(const char *name)
{
    return person_of(str_of(name));
}

static inline void people_init(void)
{
    static const char *const names[] = {"alice", "alice2", "ann", "bob", "mallory", "me"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)person(names[i]);
    }
}

#define PEOPLE_FROM_THE_START                                                                      \
    __attribute__((constructor)) static void people_at_start(void)                                 \
    {                                                                                              \
        people_init();                                                                             \
    }

#endif
