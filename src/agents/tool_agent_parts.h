/* What tool_agent.c (life, tools and card), tool_agent_turn.c (messages) and tool_agent_content.c
 * (results) share. */
#ifndef AGENTS_TOOL_AGENT_PARTS_H
#define AGENTS_TOOL_AGENT_PARTS_H

#include "a2a/agent.h"
#include "agents/tool_agent.h"
#include "mcp_transport/link.h"
#include "json/build.h"

enum {
    TOOL_AGENT_SKILLS = 1000,            /* of one agent: further tools are left out */
    TOOL_AGENT_LIST_BYTES = 8 << 20,     /* of its card, while it is put together */
    TOOL_AGENT_MESSAGE_BYTES = 64 << 20, /* of one call's arguments, and of its result */
    TOOL_AGENT_PAGES = 1000,             /* of the list of tools */
    /* Of structured content that is compared with texts, and of the memory for that. */
    TOOL_AGENT_COMPARED_BYTES = 1 << 20,
    TOOL_AGENT_COMPARED_MEMORY = 32 << 20,
};

struct agents_tool_agent {
    loop *loop;
    agents_tools tools;
    const agents_settings *settings;
    const agents_public *public;
    a2a_agent *engine;
    loop_timer tick;          /* the engine's clock */
    mcp_link *link;           /* to the tools; NULL: not connected */
    loop_task reconnect_task; /* frees a link that broke, makes another */
    loop_timer again;

    /* the list of tools, page by page, into `skills`: elements of the card's array */
    mcp_call *listing;
    json_builder skills;
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

/* tool_agent_content.c: a tool's result as parts of an open array; a text that repeats the
 * structured content is left out. False: there are none. */
bool tool_agent_put_parts(json_writer *to, json_val result);

/* tool_agent_turn.c */
extern const a2a_handler tool_agent_handler;
void tool_agent_turns_begin(agents_tool_agent *self); /* those that wait */
void tool_agent_turns_end(agents_tool_agent *self);   /* all */

#endif
