#include "a2a/service.h"

#include "base/err.h"

static a2a_error error_of(call_reason reason)
{
    switch (reason) {
    case CALL_EXPIRED:
        return A2A_E_UNAUTHENTICATED;
    case CALL_DENIED:
    case CALL_SCOPE:
    case CALL_APPROVAL:
        return A2A_E_FORBIDDEN;
    default:
        return A2A_E_BUSY;
    }
}

static void admit(a2a_call *call)
{
    call_refusal why;
    a2a_fault fault;
    a2a_service *self = call->service;
    call_verdict verdict = call_admit(&call->context, self->target, &why);
    if (verdict == CALL_GO) {
        self->call(self, call);
    } else if (verdict == CALL_REFUSE) {
        err_ignore(a2a_fault_set(&fault, error_of(why.reason), "%s", why.text));
        a2a_call_fail(call, &fault);
    }
}

static void resume(call_context *context)
{
    admit(CONTAINER_OF(context, a2a_call, context));
}

void a2a_service_call(a2a_service *self, a2a_call *call)
{
    call->service = self;
    if (self->door == NULL) {
        self->call(self, call);
        return;
    }
    call->context = (call_context){.principal = call->principal,
                                   .protocol = CALL_A2A,
                                   .kind = a2a_methods[call->method].call,
                                   .method = a2a_methods[call->method].name,
                                   .params = call->params,
                                   .origin = call->origin,
                                   .resume = resume};
    call_begin(&call->context, self->door);
    admit(call);
}

void a2a_service_gone(a2a_service *self, a2a_call *call)
{
    if (call_is_admitted(&call->context)) {
        self->gone(self, call);
        return;
    }
    static const a2a_fault left = {A2A_E_UNAVAILABLE, "the caller has left"};
    a2a_call_fail(call, &left);
}

void a2a_call_over(a2a_call *self, call_outcome how)
{
    if (self->context.door != NULL) {
        call_over(&self->context, self->is_gone ? CALL_CANCELLED : how);
        self->context.door = NULL;
    }
}
