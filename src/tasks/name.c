/* Tokens of tasks: each seals the server's name and the server's own task id. */
#include <string.h>

#include "base/str.h"
#include "sessions/token.h"
#include "tasks/continuation.h"

enum { OWNER_BYTES = PRINCIPAL_IDENTITY_BYTES + 4096 }; /* and the endpoint */
enum { PLAIN_BYTES = 1 + CONFIG_NAME_BYTES + 1 + TASK_ID_BYTES, TOKEN_BYTES = 4 * PLAIN_BYTES };

/* The owner of a task: a principal at one endpoint. Other endpoints do not show it. */
static void write_owner(buf *out, const endpoint *of, const auth_principal *principal)
{
    buf_init(out, OWNER_BYTES);
    buf_str(out, str_of(of->only));
    buf_char(out, '\0');
    buf_str(out, str_of(of->profile));
    buf_char(out, '\0');
    buf_str(out, principal_identity(principal));
}

bay_err task_name_seal(const endpoint *of, const auth_principal *principal, task_home home,
                       bay_str server, bay_str id, arena *memory, bay_str *out)
{
    buf plain;
    buf token;
    buf owner;
    if (of->ring == NULL) {
        return BAY_ERR_UNSUPPORTED;
    }
    buf_init(&plain, PLAIN_BYTES);
    buf_init(&token, TOKEN_BYTES);
    buf_char(&plain, (char)home);
    buf_str(&plain, server);
    buf_char(&plain, '\0');
    buf_str(&plain, id);
    write_owner(&owner, of, principal);
    bay_err err = plain.err == BAY_OK ? owner.err : plain.err;
    err = err == BAY_OK ? token_seal(of->ring, "task", of->worker, buf_view(&owner),
                                     buf_view(&plain), 0, &token)
                        : err;
    err = err == BAY_OK ? arena_dup(memory, buf_view(&token), out) : err;
    buf_fini(&plain);
    buf_fini(&token);
    buf_fini(&owner);
    return err;
}

bay_err task_name_open(const endpoint *of, const auth_principal *principal, bay_str token,
                       arena *memory, task_home *out_home, bay_str *out_server, bay_str *out_id)
{
    buf plain;
    buf owner;
    bay_str text = {NULL, 0};
    if (of->ring == NULL || token.len > TOKEN_BYTES) {
        return BAY_ERR_DENIED;
    }
    buf_init(&plain, PLAIN_BYTES);
    write_owner(&owner, of, principal);
    bay_err err = owner.err;
    if (err == BAY_OK) {
        err = token_open(of->ring, "task", buf_view(&owner), token, loop_time_ms(), &plain);
    }
    buf_fini(&owner);
    err = err == BAY_OK ? arena_dup(memory, buf_view(&plain), &text) : err;
    buf_fini(&plain);
    if (err != BAY_OK) {
        return err;
    }
    size_t end = str_find(text, '\0');
    char home = text.len > 0 ? text.at[0] : '\0';
    bool is_home = home == TASK_AT_LEGACY || home == TASK_AT_MODERN || home == TASK_AT_GATEWAY;
    if (end == text.len || !is_home) {
        return BAY_ERR_DENIED;
    }
    *out_home = (task_home)home;
    *out_server = (bay_str){text.at + 1, end - 1};
    *out_id = str_from(text, end + 1);
    return BAY_OK;
}
