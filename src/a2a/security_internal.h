/* A card's security: security.c reads it, security_check.c uses it. No other file includes this. */
#ifndef A2A_SECURITY_INTERNAL_H
#define A2A_SECURITY_INTERNAL_H

#include "a2a/security.h"

typedef enum place { IN_HEADER, IN_QUERY, IN_COOKIE } place;

typedef struct scheme {
    bay_str name; /* in the card */
    a2a_scheme_kind kind;
    place where;   /* API key */
    bay_str field; /* API key: its name; HTTP: the authentication scheme, as written */
} scheme;

typedef struct needed {
    size_t scheme;
    const bay_str *scopes;
    size_t scope_count;
} needed;

typedef struct alternative {
    const needed *all_of;
    size_t count;
} alternative;

typedef struct requirement {
    const alternative *any_of;
    size_t count; /* 0: nothing is required */
} requirement;

typedef struct secured_skill {
    bay_str id;
    requirement needs;
} secured_skill;

struct a2a_security {
    arena memory;
    scheme *schemes;
    size_t scheme_count;
    requirement card;
    secured_skill *skills; /* skills with requirements of their own */
    size_t skill_count;
};

#endif
