#include "call/call.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "call/once.h"
#include "call/target.h"

static const struct {
    const char *text;
    int code;
} reasons[CALL_REASONS] = {
#define CALL_REASON(symbol, text, code) {text, code},
#include "call/reasons.def"
#undef CALL_REASON
};

const char *call_reason_text(call_reason reason)
{
    CHECK(reason < CALL_REASONS);
    return reasons[reason].text;
}

int call_reason_code(call_reason reason)
{
    CHECK(reason < CALL_REASONS);
    return reasons[reason].code;
}

/* ---- the stages ------------------------------------------------------------------------------ */

typedef call_verdict (*call_stage)(call_context *self, call_target *to, call_refusal *out);

static uint64_t now_of(const call_context *self)
{
    const call_door *door = self->door;
    return door->now_ms != NULL ? door->now_ms(door->user) : self->began_ms;
}

/* A principal may expire between its proof and this call: in a session, or while the call waits. */
static call_verdict stage_expiry(call_context *self, call_target *to, call_refusal *out)
{
    const call_door *door = self->door;
    (void)to;
    if (self->principal == NULL || door->wall_ms == NULL ||
        principal_expires_at(self->principal) == 0 ||
        !principal_is_expired(self->principal, door->wall_ms())) {
        return CALL_GO;
    }
    out->reason = CALL_EXPIRED;
    snprintf(out->text, sizeof(out->text),
             "The credentials of this call have expired: authenticate again.");
    return CALL_REFUSE;
}

static call_verdict stage_scopes(call_context *self, call_target *to, call_refusal *out)
{
    (void)to;
    if (self->scopes.len == 0 || principal_has_scopes(self->principal, self->scopes)) {
        return CALL_GO;
    }
    out->reason = CALL_SCOPE;
    out->scopes = self->scopes;
    snprintf(out->text, sizeof(out->text), "This needs the scope %.*s, which was not granted.",
             BAY_STR(str_head(self->scopes, 160)));
    return CALL_REFUSE;
}

/* What a call is about where the service did not say: methods that name nothing, and agents. A call
 * that must name something and does not is refused. */
static bool name_of(const call_context *self, call_target *to, policy_name *out)
{
    *out = self->about;
    if (out->name.len > 0 || out->kind == POLICY_METHOD) {
        return true;
    }
    if (self->protocol == CALL_A2A) {
        bay_str agent = call_target_name(to);
        *out = (policy_name){.kind = POLICY_AGENT, .server = agent, .name = agent};
        return agent.len > 0;
    }
    out->kind = POLICY_METHOD;
    return self->kind == CALL_LIST || self->kind == CALL_TASK || self->kind == CALL_EXTENSION ||
           (self->kind == CALL_SUBSCRIPTION && self->shown.len == 0);
}

static void say_refused(const policy_decision *decision, call_refusal *out)
{
    out->rule_line = decision->line;
    switch (decision->outcome) {
    case POLICY_LOCKED:
        out->reason = CALL_SCOPE;
        out->scopes = decision->scopes;
        snprintf(out->text, sizeof(out->text),
                 "This needs the scopes %.*s, of which some were not granted.",
                 BAY_STR(str_head(decision->scopes, 160)));
        break;
    case POLICY_APPROVAL:
        out->reason = CALL_APPROVAL;
        snprintf(out->text, sizeof(out->text),
                 "This call needs the approval of a person, and there is no way here to ask for "
                 "it. It was not carried out.");
        break;
    default:
        snprintf(out->text, sizeof(out->text),
                 "The rules of this gateway do not allow this call with these arguments. It was "
                 "not carried out.");
        break;
    }
}

static call_verdict stage_rules(call_context *self, call_target *to, call_refusal *out)
{
    call_door *door = self->door;
    if (door->policy.rules == NULL) {
        return CALL_GO;
    }
    policy_question question = {.method = self->method,
                                .principal = self->principal,
                                .origin = self->origin,
                                .params = self->params};
    if (!name_of(self, to, &question.about)) {
        return CALL_REFUSE;
    }
    policy_decision decision = policy_ask(&door->policy, &question);
    if (decision.outcome == POLICY_ALLOWED) {
        return CALL_GO;
    }
    say_refused(&decision, out);
    return CALL_REFUSE;
}

static call_verdict stage_guard(call_context *self, call_target *to, call_refusal *out)
{
    const call_door *door = self->door;
    (void)to;
    return door->guard == NULL || door->guard(door->user, self, out) ? CALL_GO : CALL_REFUSE;
}

static call_verdict stage_deadline(call_context *self, call_target *to, call_refusal *out)
{
    (void)to;
    (void)out;
    if (self->timeout_ms == 0) {
        self->timeout_ms = self->door->timeout_ms;
    }
    return CALL_GO;
}

/* Tools alone have settings by which calls are equal. */
static call_verdict stage_once(call_context *self, call_target *to, call_refusal *out)
{
    const call_once *once = self->door->once;
    return once == NULL || self->kind != CALL_TOOL ? CALL_GO : once->admit(self, to, out);
}

/* Calls that make the server work, which limits count. Lists come from the catalog and subscriptions
 * persist; methods about a task must reach the server while the task's own call is open. */
static bool makes_work(const call_context *self)
{
    static const bool counts[CALL_KINDS] = {
        [CALL_TOOL] = true,       [CALL_PROMPT] = true, [CALL_RESOURCE] = true,
        [CALL_COMPLETION] = true, [CALL_SKILL] = true,  [CALL_MESSAGE] = true,
        [CALL_EXTENSION] = true};
    return counts[self->kind];
}

static call_verdict stage_concurrency(call_context *self, call_target *to, call_refusal *out)
{
    return to != NULL && makes_work(self) ? call_target_take(to, self, out) : CALL_GO;
}

static call_verdict refuse_excess(const policy_excess *excess, call_refusal *out)
{
    out->reason = CALL_RATE_LIMITED;
    out->retry_after_ms = excess->retry_after_ms;
    snprintf(out->text, sizeof(out->text), "%s", excess->text);
    return CALL_REFUSE;
}

/* What the principal may do at all, whatever it calls. */
static call_verdict stage_rate(call_context *self, call_target *to, call_refusal *out)
{
    const call_door *door = self->door;
    policy_excess excess;
    policy_payer payer = {self->principal, self->origin};
    (void)to;
    if (door->limits == NULL || !makes_work(self) || self->has_paid) {
        return CALL_GO;
    }
    self->has_paid = door->limits->enter(door->limits, &payer, now_of(self), &excess);
    return self->has_paid ? CALL_GO : refuse_excess(&excess, out);
}

/* Just before the call leaves, so that nothing is charged for what another stage refuses. */
static call_verdict stage_rates(call_context *self, call_target *to, call_refusal *out)
{
    call_door *door = self->door;
    policy_excess excess;
    policy_payer payer = {self->principal, self->origin};
    policy_name about;
    if (door->limits == NULL || !makes_work(self) || self->has_spent) {
        return CALL_GO;
    }
    if (!name_of(self, to, &about)) {
        return CALL_REFUSE;
    }
    policy_tool tool = {0};
    if (self->kind == CALL_TOOL && door->tools.tools != NULL) {
        tool = door->limits->find(&door->tools, about.name);
    }
    self->has_spent =
        door->limits->spend(door->limits, &payer, &about, &tool, now_of(self), &excess);
    return self->has_spent ? CALL_GO : refuse_excess(&excess, out);
}

/* The last one: the call leaves. */
static call_verdict stage_send(call_context *self, call_target *to, call_refusal *out)
{
    (void)to;
    return self->has_claim ? self->door->once->send(self, out) : CALL_GO;
}

static const call_stage stages[] = {stage_expiry, stage_rate,     stage_scopes, stage_rules,
                                    stage_guard,  stage_deadline, stage_once,   stage_concurrency,
                                    stage_rates,  stage_send};

/* ---- the door -------------------------------------------------------------------------------- */

void call_door_init(call_door *self)
{
    *self = (call_door){0};
    list_init(&self->waiting);
    list_init(&self->granted);
}

void call_door_run(call_door *self)
{
    call_context *next;
    while ((next = call_door_next(self)) != NULL) {
        next->resume(next);
    }
}

/* Resuming a call may end others, so the walk starts again after each. */
void call_door_tick(call_door *self, uint64_t now_ms)
{
    bool has_more = true;
    while (has_more) {
        has_more = false;
        LIST_EACH(link, &self->waiting)
        {
            call_context *one = CONTAINER_OF(link, call_context, door_link);
            bool is_bounded = one->timeout_ms > 0 && !one->is_late;
            if (is_bounded && now_ms >= one->began_ms + one->timeout_ms) {
                one->is_late = true;
                one->resume(one);
                has_more = true;
                break;
            }
        }
    }
}

void call_begin(call_context *self, call_door *door)
{
    self->door = door;
    self->state = door != NULL ? CALL_NEW : CALL_ADMITTED;
    if (self->began_ms == 0 && door != NULL && door->now_ms != NULL) {
        self->began_ms = door->now_ms(door->user);
    }
    if (door != NULL && door->clock_ns != NULL) {
        self->began_ns = door->clock_ns();
    }
}

static void set_state(call_context *self, call_state to)
{
    if (self->state == CALL_WAITING && to != CALL_WAITING) {
        list_remove(&self->door_link);
    } else if (self->state != CALL_WAITING && to == CALL_WAITING) {
        list_push(&self->door->waiting, &self->door_link);
    }
    self->state = to;
}

/* The name may resolve to another target after the call has waited. */
static call_verdict check_target(const call_context *self, const call_target *to, call_refusal *out)
{
    if (to == self->target) {
        return CALL_GO;
    }
    out->reason = CALL_CHANGED;
    snprintf(out->text, sizeof(out->text),
             "What this name means changed while the call waited; it was not carried out. List "
             "again, then call again.");
    return CALL_REFUSE;
}

static call_verdict ask_stages(call_context *self, call_target *to, call_refusal *out)
{
    call_verdict verdict = CALL_GO;
    for (size_t i = 0; i < ARRAY_LEN(stages) && verdict == CALL_GO; i++) {
        verdict = stages[i](self, to, out);
    }
    return verdict;
}

/* Only its own loop reads has_slot of a call that has never waited. */
static void leave_target(call_context *self)
{
    if (self->has_waited || self->has_slot) {
        call_target_leave(self->target, self);
        self->has_waited = false;
    }
}

call_verdict call_admit(call_context *self, call_target *to, call_refusal *out)
{
    CHECK(self->state != CALL_REFUSED && self->state != CALL_OVER);
    if (self->door == NULL) {
        return CALL_GO;
    }
    out->reason = CALL_DENIED;
    out->text[0] = '\0'; /* a refusal without a text gets one below */
    out->scopes = STR("");
    out->retry_after_ms = 0;
    out->rule_line = 0;
    out->may_have_run = false;
    bool is_first = self->state == CALL_NEW;
    if (is_first) {
        self->target = call_target_ref(to);
    }
    call_verdict verdict = is_first ? CALL_GO : check_target(self, to, out);
    if (verdict == CALL_GO && self->state != CALL_ADMITTED) {
        verdict = ask_stages(self, to, out);
    }
    if (verdict == CALL_REFUSE && out->text[0] == '\0') {
        snprintf(out->text, sizeof(out->text), "This call is not allowed.");
    }
    self->has_waited = self->has_waited || verdict == CALL_WAIT;
    if (verdict == CALL_REFUSE) {
        self->refused_for = out->reason;
        self->rule_line = out->rule_line;
        leave_target(self);
    }
    set_state(self, verdict == CALL_REFUSE ? CALL_REFUSED
                    : verdict == CALL_WAIT ? CALL_WAITING
                                           : CALL_ADMITTED);
    return verdict;
}

void call_set_outcome(call_context *self, outcome_kind kind, json_val value)
{
    if (self->has_claim) {
        self->door->once->settle(self, kind, value);
    }
}

call_labels call_door_label(const call_door *self, const call_target *of, json_val answer)
{
    bool is_asked = self != NULL && self->label != NULL && of != NULL;
    return is_asked ? self->label(self->user, of, answer) : CALL_UNLABELLED;
}

void call_label(call_context *self, json_val answer)
{
    if (self->kind != CALL_LIST && self->kind != CALL_COMPLETION) {
        self->labels |= call_door_label(self->door, self->target, answer);
    }
}

void call_over(call_context *self, call_outcome how)
{
    CHECK(self->state != CALL_OVER);
    call_door *door = self->door;
    call_state was = self->state;
    if (door == NULL) {
        self->state = CALL_OVER;
        return;
    }
    set_state(self, CALL_OVER);
    if (self->has_claim) {
        door->once->leave(self); /* before its turn may come once more */
    }
    leave_target(self);
    if (door->record != NULL) {
        door->record(door->user, self, was == CALL_REFUSED ? CALL_TURNED_AWAY : how);
    }
    call_target_unref(self->target);
    self->target = NULL;
}
