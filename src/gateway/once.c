/* The stages of the door by which calls are carried out once. */
#include "gateway/once.h"

#include <stdio.h>

#include "auth/digest.h"
#include "base/rand.h"
#include "base/str.h"
#include "call/target.h"
#include "policy/idempotency.h"

enum { AGAIN_MS = 1000 };

static call_verdict refuse(call_refusal *out, call_reason reason, const char *text)
{
    out->reason = reason;
    (void)snprintf(out->text, sizeof(out->text), "%s", text);
    return CALL_REFUSE;
}

static call_verdict refuse_lost(call_refusal *out)
{
    out->may_have_run = true;
    return refuse(out, CALL_UNKNOWN,
                  "A call with this idempotency key was begun, and what became of it is not known: "
                  "it may have been carried out. It was not begun again. Find out by other means "
                  "whether it took effect.");
}

static call_verdict refuse_store(call_refusal *out)
{
    return refuse(out, CALL_UNAVAILABLE,
                  "Whether this call was made before cannot be found out just now. It was not "
                  "carried out; it can be tried again.");
}

/* Jitter, so that callers do not all come back at once. */
static call_verdict refuse_in_flight(call_refusal *out)
{
    out->retry_after_ms = AGAIN_MS + (uint32_t)(rand_u64() % (AGAIN_MS / 5));
    return refuse(out, CALL_IN_FLIGHT,
                  "A call with this idempotency key is still under way. This one was not carried "
                  "out. Call again later with the same key to get the outcome.");
}

static call_verdict refuse_full(call_refusal *out)
{
    return refuse(out, CALL_BUSY,
                  "Too many idempotency keys are remembered. The call was not carried out; it can "
                  "be tried again when older ones have expired.");
}

static bool may_repeat(const call_context *call)
{
    return call->is_repeatable || call->may_repeat;
}

static void on_ready(outcome_claim *claim)
{
    call_ready(CONTAINER_OF(claim, call_context, claim));
}

/* ---- a call with a key ----------------------------------------------------------------------- */

static call_verdict answer(call_context *call, const outcome_view *known, call_refusal *out)
{
    if (known->kind == OUTCOME_TOO_LARGE) {
        out->may_have_run = true;
        return refuse(out, CALL_TOO_LARGE,
                      "A call with this idempotency key was carried out, and its result was too "
                      "large to be kept. It was not carried out again.");
    }
    call->answer = *known;
    return CALL_ANSWER;
}

static call_verdict look_up(call_context *call, call_refusal *out, bool *out_is_over)
{
    const call_once *once = call->door->once;
    *out_is_over = false;
    if (once->store == NULL) {
        return CALL_GO;
    }
    switch (outcomes_store_look_up(once->store, &call->claim)) {
    case OUTCOMES_STEP_DONE:
        return CALL_GO;
    case OUTCOMES_STEP_WAITS:
        return CALL_WAIT;
    case OUTCOMES_STEP_OVER:
        *out_is_over = true;
        return CALL_WAIT;
    default:
        return refuse_store(out);
    }
}

static bay_err read_key(call_context *call, const policy_idempotency *how, bay_str server,
                        outcome_key *out, bay_diag *diag)
{
    idempotency_call about = {.how = how,
                              .principal = call->principal,
                              .server = server,
                              .name = call->about.name,
                              .params = call->params,
                              .fields = call->fields,
                              .field_count = call->field_count,
                              .ring = call->door->once->ring,
                              .memory = call->memory};
    if (!idempotency_has_key(&about)) {
        return BAY_ERR_NOT_FOUND;
    }
    bay_err err = call_arguments_digest(call, &about.arguments_digest);
    if (err == BAY_OK) {
        err = idempotency_read(&about, out, &call->upstream_key, diag);
    }
    bool is_other = how->meta.len > 0 && !str_eq(how->meta, STR(IDEMPOTENCY_META));
    return err == BAY_OK && is_other ? arena_dup(call->memory, how->meta, &call->meta_name) : err;
}

static call_verdict enter(call_context *call, const outcome_key *key, call_refusal *out)
{
    const call_once *once = call->door->once;
    outcome_view known;
    bool is_over = true;
    call_verdict verdict = CALL_WAIT;
    for (int times = 0; is_over && times < 2; times++) {
        is_over = false;
        switch (
            outcomes_enter(once->table, &call->claim, key, loop_time_ms(), call->memory, &known)) {
        case OUTCOMES_OWNER:
            call->has_claim = true;
            verdict = look_up(call, out, &is_over);
            break;
        case OUTCOMES_JOINED:
            call->has_claim = true;
            return CALL_WAIT;
        case OUTCOMES_KNOWN:
            return answer(call, &known, out);
        case OUTCOMES_CONFLICT:
            return refuse(out, CALL_CONFLICT,
                          "This idempotency key was used for a call of the same tool with other "
                          "arguments. The call was not carried out. Use a new key for a new call.");
        case OUTCOMES_LOST:
            return refuse_lost(out);
        case OUTCOMES_FULL:
            return refuse_full(out);
        case OUTCOMES_NOMEM:
            return refuse_store(out);
        }
    }
    return verdict;
}

static call_verdict begin(call_context *call, call_target *to, call_refusal *out)
{
    outcome_key key;
    bay_diag diag = {0};
    call_door *door = call->door;
    bool has_caller = call->principal != NULL || door->once->is_local;
    if (!has_caller || door->tools.tools == NULL) {
        return CALL_GO;
    }
    const policy_idempotency *how = policy_tools_find(&door->tools, call->about.name).idempotency;
    if (how == NULL) {
        return CALL_GO;
    }
    bay_err err = read_key(call, how, call_target_name(to), &key, &diag);
    if (err == BAY_ERR_NOT_FOUND) {
        return CALL_GO;
    }
    if (err == BAY_ERR_INVALID) {
        return refuse(out, CALL_ARGUMENTS, diag.text);
    }
    if (err != BAY_OK || call->resume == NULL || call->door->wake == NULL) {
        return refuse_store(out);
    }
    key.may_repeat = key.may_repeat || call->is_repeatable;
    call->may_repeat = key.may_repeat;
    call->claim.ready = on_ready;
    return enter(call, &key, out);
}

static void leave(call_context *call)
{
    const call_once *once = call->door->once;
    call->has_claim = false;
    if (!call->is_sent) {
        outcomes_unsend(once->table, &call->claim);
    }
    if (once->store != NULL) {
        outcomes_store_leave(once->store, &call->claim, may_repeat(call));
    } else {
        outcomes_leave(once->table, &call->claim, may_repeat(call));
    }
}

static call_verdict admit(call_context *call, call_target *to, call_refusal *out)
{
    const call_once *once = call->door->once;
    bool is_over = false;
    call_verdict verdict = CALL_GO;
    switch (call->has_claim ? outcomes_part(once->table, &call->claim) : OUTCOMES_KNOWN) {
    case OUTCOMES_OWNER:
        verdict = look_up(call, out, &is_over);
        break;
    case OUTCOMES_JOINED:
        verdict = CALL_WAIT;
        break;
    default:
        call->has_claim = false;
        verdict = begin(call, to, out);
        break;
    }
    if (verdict == CALL_WAIT && call->is_late) {
        leave(call);
        return refuse_in_flight(out);
    }
    return verdict;
}

/* ---- and its end ----------------------------------------------------------------------------- */

static call_verdict send(call_context *call, call_refusal *out)
{
    const call_once *once = call->door->once;
    if (once->store == NULL) {
        outcomes_send(once->table, &call->claim);
        return CALL_GO;
    }
    switch (outcomes_store_send(once->store, &call->claim)) {
    case OUTCOMES_STEP_DONE:
        return CALL_GO;
    case OUTCOMES_STEP_WAITS:
        return CALL_WAIT;
    default:
        return refuse_store(out);
    }
}

static void settle(call_context *call, outcome_kind kind, json_val value)
{
    const call_once *once = call->door->once;
    call->has_claim = false;
    if (once->store != NULL) {
        outcomes_store_settle(once->store, &call->claim, kind, value);
    } else {
        outcomes_settle(once->table, &call->claim, kind, value);
    }
}

void gateway_once_init(call_once *self)
{
    *self = (call_once){.admit = admit, .send = send, .settle = settle, .leave = leave};
}
