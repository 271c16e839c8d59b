/* What skills.c (the engine), skill_call.c (one call) and skill_content.c (what it answers) share.
 */
#ifndef AGENTS_SKILLS_PARTS_H
#define AGENTS_SKILLS_PARTS_H

#include "a2a/service.h"
#include "agents/skills.h"
#include "json/writer.h"

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
    arena scratch;
};

/* ---- content --------------------------------------------------------------------------------- */

/* One artifact, as its parts have come: elements of a content array. Text that follows on text is
 * one element. */
typedef struct skill_artifact {
    struct skill_artifact *next;
    char *id; /* raw JSON */
    size_t id_len;
    buf items;
    size_t count;
    size_t text_end; /* where the closing quote of the last element stands; 0: it is no text */
} skill_artifact;

typedef struct skill_content {
    bay_str agent;
    skill_artifact *first;
    skill_artifact *last;
    size_t count;
    size_t bytes;
    buf structured; /* the first data part that is an object; empty: none */
    bay_err err;
} skill_content;

void skill_content_init(skill_content *self, bay_str agent);
void skill_content_fini(skill_content *self);
/* A whole artifact, or a chunk of one. */
void skill_content_add(skill_content *self, json_val artifact, bool is_append);
/* Parts of a message, behind everything else. */
void skill_content_parts(skill_content *self, json_val parts);
void skill_content_text(skill_content *self, bay_str text);
/* All elements, with commas. */
void skill_content_write(const skill_content *self, buf *out);

/* ---- calls ----------------------------------------------------------------------------------- */

void skill_call_begin(agents_skills *skills, mcp_request *request);
/* The request's peer is gone: so is the task. */
void skill_call_cancelled(mcp_request *request);
void skill_calls_end(agents_skills *skills);

#endif
