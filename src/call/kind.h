/* The kind of a method for the door (call/call.h): a column of the protocols' tables of methods. */
#ifndef CALL_KIND_H
#define CALL_KIND_H

typedef enum call_kind {
    CALL_NONE, /* not a call: only the engine itself answers it (initialize, ping) */
    CALL_LIST,
    CALL_TOOL,
    CALL_PROMPT,
    CALL_RESOURCE,
    CALL_COMPLETION,
    CALL_SUBSCRIPTION, /* one subscriber, one URI */
    CALL_TASK,
    CALL_SKILL,
    CALL_MESSAGE,   /* a message to an agent */
    CALL_CARD,      /* an agent's extended card */
    CALL_EXTENSION, /* a method outside the table, answered by a service */
    CALL_KINDS,
} call_kind;

#endif
