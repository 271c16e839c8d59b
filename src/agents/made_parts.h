/* What made.c (life, tools and card) and made_turn.c (messages) share. */
#ifndef AGENTS_MADE_PARTS_H
#define AGENTS_MADE_PARTS_H

#include "a2a/agent.h"
#include "agents/made.h"
#include "transport/mcp_link.h"
#include "json/writer.h"

enum {
    MADE_SKILLS = 1000,            /* of one agent: further tools are left out */
    MADE_LIST_BYTES = 8 << 20,     /* of its card, while it is put together */
    MADE_MESSAGE_BYTES = 64 << 20, /* of one call's arguments, and of its result */
    MADE_PAGES = 1000,             /* of the list of tools */
};

struct agents_made {
    loop *loop;
    agents_tools tools;
    const agents_settings *settings;
    const agents_public *public;
    a2a_agent *engine;
    loop_timer tick; /* the engine's clock */
    mcp_link *link;  /* to the tools; NULL: not connected */
    loop_task mend;  /* frees a link that broke, makes another */
    loop_timer again;

    /* the list of tools, page by page, into `skills`: elements of the card's array */
    mcp_call *listing;
    buf skills;
    size_t found; /* so far */
    size_t pages;
    bool is_stale;    /* it changed while it was read */
    bool is_learning; /* under way, or about to be */

    agents_card *card; /* NULL: the tools are not known yet */
    size_t skill_count;
    list watches;
    list turns;   /* with a call under way */
    list waiting; /* until the tools are known */
    size_t turn_count;
    arena scratch;
};

/* made_turn.c */
extern const a2a_handler made_handler;
void made_turns_begin(agents_made *self); /* those that wait */
void made_turns_end(agents_made *self);   /* all */

#endif
