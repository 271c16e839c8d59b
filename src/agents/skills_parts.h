/* What skills.c (the engine), skill_call.c (one call) and skill_content.c (what it answers) share.
 */
#ifndef AGENTS_SKILLS_PARTS_H
#define AGENTS_SKILLS_PARTS_H

#include "a2a/service.h"
#include "agents/skills.h"
#include "json/build.h"

enum {
    SKILL_ARTIFACTS = 1000,         /* of one call */
    SKILL_CONTENT_BYTES = 32 << 20, /* of what one call answers */
    SKILL_NAME_BYTES = 128,         /* a longer id is no tool */
};

struct agents_skills {
    loop *loop;
    agents_remote *remote;
    mcp_server *engine;
    agents_watch watch;
    loop_timer again; /* the card could not be had: it is tried again */
    list lists;       /* requests that wait for the card */
    list calls;
};

/* ---- content --------------------------------------------------------------------------------- */

/* One artifact, as its parts have come: elements of a content array, which is open. Text that
 * follows on text is one element, so the last text is not among them yet. */
typedef struct skill_artifact {
    struct skill_artifact *next;
    char *id; /* raw JSON */
    size_t id_len;
    json_builder items;
    buf text;      /* what stands between the quotes of the last text … */
    bool has_text; /* … if there is one */
} skill_artifact;

typedef struct skill_content {
    bay_str agent;
    skill_artifact *first;
    skill_artifact *last;
    size_t count;
    size_t bytes;
    json_doc *structured; /* the first data part that is an object; NULL: none */
    bay_err err;
} skill_content;

void skill_content_init(skill_content *self, bay_str agent);
void skill_content_fini(skill_content *self);
/* A whole artifact, or a chunk of one. */
void skill_content_add(skill_content *self, json_val artifact, bool is_append);
/* Parts of a message, behind everything else. */
void skill_content_parts(skill_content *self, json_val parts);
void skill_content_text(skill_content *self, bay_str text);
/* All elements, into an array that is open. */
void skill_content_write(const skill_content *self, json_writer *to);

/* ---- calls ----------------------------------------------------------------------------------- */

enum { SKILL_PARAMS_BYTES = 64 << 20, SKILL_ID_BYTES = 256 };

typedef enum skill_mode {
    SKILL_CALL,   /* tools/call, answered at the end */
    SKILL_BEGIN,  /* tools/call of a client that takes a task for an answer */
    SKILL_GET,    /* tasks/get */
    SKILL_UPDATE, /* tasks/update: an answer to what the agent asked */
    SKILL_CANCEL, /* tasks/cancel, or an update that declines */
} skill_mode;

typedef struct skill_call {
    a2a_call call; /* first */
    list_link link;
    agents_skills *skills;
    mcp_request *request;
    const auth_principal *principal; /* counted: the request may be answered first */
    skill_mode mode;
    uint64_t created_ms; /* of a task */
    arena memory;
    json_val params; /* in `memory` */
    bay_str tracestate;
    bay_str via;
    skill_content content;
    a2a_state state;
    char task[SKILL_ID_BYTES]; /* raw JSON strings */
    char context[SKILL_ID_BYTES];
    char updated[SKILL_ID_BYTES];
    json_doc *status; /* the parts of the last status' message; NULL: none */
    double progress;
} skill_call;

skill_call *skill_call_new(agents_skills *skills, mcp_request *request, skill_mode mode);
void skill_call_free(skill_call *self);
/* Takes the request out of it, to be answered at once. */
mcp_request *skill_call_part(skill_call *self);
/* The members of a tool's result. */
bay_err skill_call_write(skill_call *self, bool is_error, json_writer *to) BAY_MUST_CHECK;
/* The text of the agent's last word, for a person. */
void skill_call_write_words(const skill_call *self, buf *out);
/* Answers with what was built, or with why there is none. Both are gone. */
void skill_call_reply(skill_call *self, bay_err err, json_builder *whole);
/* {"id": task}, of which `task` is the raw string. */
bay_err skill_call_write_id(const char *task, arena *memory, json_val *out) BAY_MUST_CHECK;
bay_err skill_call_build(skill_call *self, json_val text, json_val data, json_val task,
                         json_val context) BAY_MUST_CHECK;
void skill_call_send(skill_call *self);
void skill_call_begin(agents_skills *skills, mcp_request *request);

/* skill_task.c */
bool skill_task_is_wanted(const mcp_request *request);
void skill_task_request(agents_skills *skills, mcp_request *request);
/* The answers of the four kinds; the call is gone. */
void skill_task_announce(skill_call *self);
void skill_task_show(skill_call *self, bool is_error);
void skill_task_acknowledge(skill_call *self);
void skill_task_failed(skill_call *self, const a2a_fault *fault);
/* {"answer": a form with one field} */
void skill_task_write_question(bay_str words, json_writer *to);

/* The request's peer is gone: so is the task. */
void skill_call_cancelled(mcp_request *request);
void skill_calls_end(agents_skills *skills);

#endif
