/* A reader of cards that refuses what A2A 1.0 does not know: every member of every message must be
 * one of the table of 1.0, by its JSON name, of its kind, given once, and what 1.0 requires must be
 * there. Written along the table alone, without the code that makes cards. */
#ifndef SUPPORT_STRICT_CARD_H
#define SUPPORT_STRICT_CARD_H

#include <stdio.h>
#include <string.h>

#include "a2a/table.h"
#include "base/str.h"

/* "AgentCard.skills.inputs": the member that is not of 1.0, or is missing; "": none. */
typedef struct strict_fault {
    char at[256];
} strict_fault;

static inline bool strict_say(strict_fault *self, bay_str name)
{
    if (self->at[0] == '\0') {
        (void)snprintf(self->at, sizeof(self->at), "%.*s", BAY_STR(name));
    }
    return false;
}

static inline bool strict_message(strict_fault *self, a2a_type type, json_val value);

static inline bool strict_single(strict_fault *self, const a2a_field *field, json_val value)
{
    json_kind kind = json_kind_of(value);
    switch ((a2a_kind)field->kind) {
    case A2A_KIND_STRING:
        return kind == JSON_STRING || strict_say(self, field->json);
    case A2A_KIND_BOOL:
        return kind == JSON_TRUE || kind == JSON_FALSE || strict_say(self, field->json);
    case A2A_KIND_STRUCT:
        return kind == JSON_OBJECT || strict_say(self, field->json);
    case A2A_KIND_MESSAGE:
        return strict_message(self, (a2a_type)field->type, value);
    default:
        return strict_say(self, field->json); /* cards have no others */
    }
}

static inline bool strict_field(strict_fault *self, const a2a_field *field, json_val value)
{
    bool is_map = (field->flags & A2A_FIELD_MAP) != 0;
    if ((field->flags & (A2A_FIELD_REPEATED | A2A_FIELD_MAP)) == 0) {
        return strict_single(self, field, value);
    }
    if (!json_is(value, is_map ? JSON_OBJECT : JSON_ARRAY)) {
        return strict_say(self, field->json);
    }
    json_iter at = json_iter_of(value);
    while (json_next(&at)) {
        if (!strict_single(self, field, at.value)) {
            return false;
        }
    }
    return true;
}

static inline bool strict_message(strict_fault *self, a2a_type type, json_val value)
{
    a2a_fields fields = a2a_fields_of(type);
    uint32_t seen = 0;
    if (!json_is(value, JSON_OBJECT)) {
        return strict_say(self, STR("no object"));
    }
    json_iter at = json_iter_of(value);
    while (json_next(&at)) {
        uint32_t index = 0;
        while (index < fields.count && !json_str_eq(at.key, fields.at[index].json)) {
            index++;
        }
        if (index == fields.count || (seen & (UINT32_C(1) << index)) != 0) {
            return strict_say(self, json_raw(at.key));
        }
        seen |= UINT32_C(1) << index;
        if (!strict_field(self, &fields.at[index], at.value)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < fields.count; i++) {
        if ((fields.at[i].flags & A2A_FIELD_REQUIRED) != 0 && (seen & (UINT32_C(1) << i)) == 0) {
            return strict_say(self, fields.at[i].json);
        }
    }
    return true;
}

/* Would a reader that knows 1.0 and nothing else take this text for a card? */
static inline strict_fault strict_card(bay_str text)
{
    strict_fault fault = {""};
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 24);
    if (json_parse(&doc, text, NULL, &memory, NULL) == BAY_OK) {
        (void)strict_message(&fault, A2A_TYPE_AGENT_CARD, json_root(&doc));
    } else {
        (void)strict_say(&fault, STR("no JSON"));
    }
    arena_fini(&memory);
    return fault;
}

#define expect_strict(text)                                                                        \
    do {                                                                                           \
        bay_str text_ = (text);                                                                    \
        strict_fault fault_ = strict_card(text_);                                                  \
        if (fault_.at[0] != '\0') {                                                                \
            fail_msg("%s is not of 1.0 in %.*s", fault_.at, BAY_STR(text_));                       \
        }                                                                                          \
    } while (0)

#endif
