/* The words of A2A that agents and callers share: states of a task, and messages.
 *
 * A message is what one side says to the other: parts (text, bytes, a link, or any JSON value),
 * each with a name and a media type. Those that a function gives out are views: they live as long
 * as that function says. Those made by bay_message_new are the program's own until
 * bay_message_free.
 *
 * For the whole header:
 * Owns: strings and bytes given are copied; views into a message live as long as the message.
 * Errors: what cannot be added (no memory, JSON that is none, over a bound) is remembered, and the
 * message is refused where it is used, with the reason. Units: lengths in bytes. Threads: one at a
 * time for each message. Source: A2A 1.0.1 sections 4.1.3 to 4.1.6. */
#ifndef PATCHBAY_MESSAGE_H
#define PATCHBAY_MESSAGE_H

#include <patchbay/json.h>
#include <patchbay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bay_message bay_message;

typedef enum bay_part {
    BAY_PART_NONE,
    BAY_PART_TEXT,
    BAY_PART_BYTES,
    BAY_PART_URL,
    BAY_PART_DATA,
} bay_part;

/* ---- reading ------------------------------------------------------------------------------------
 */

/* The text of all its text parts, one after the other; empty when there is none. */
BAY_API bay_str bay_message_text(const bay_message *message);
/* The first data part, raw JSON; empty when there is none. */
BAY_API bay_str bay_message_data(const bay_message *message);
/* The same, to be read. */
BAY_API bay_value bay_message_value(const bay_message *message);
BAY_API size_t bay_message_part_count(const bay_message *message);
BAY_API bay_part bay_message_part_kind(const bay_message *message, size_t index);
/* Text; bytes, decoded; the link; or raw JSON. */
BAY_API bay_str bay_message_part(const bay_message *message, size_t index);
BAY_API bay_str bay_message_part_name(const bay_message *message, size_t index);
BAY_API bay_str bay_message_part_type(const bay_message *message, size_t index); /* media type */
BAY_API bay_str bay_message_part_metadata(const bay_message *message, size_t index); /* raw JSON */
BAY_API bay_str bay_message_id(const bay_message *message);
BAY_API bool bay_message_is_users(const bay_message *message);    /* else the agent's */
BAY_API bay_str bay_message_metadata(const bay_message *message); /* raw JSON object, or empty */
/* A text member of its metadata; empty when there is none. */
BAY_API bay_str bay_message_metadata_str(const bay_message *message, const char *name);
/* Any member of it, to be read; NULL: all of it. */
BAY_API bay_value bay_message_metadata_value(const bay_message *message, const char *name);
/* The task it refers to, in the order it names them; empty beyond the last. */
BAY_API bay_str bay_message_reference(const bay_message *message, size_t index);
/* The whole message: 1.0, raw JSON; empty for one that is being made. */
BAY_API bay_str bay_message_json(const bay_message *message);

/* ---- making -------------------------------------------------------------------------------------
 * NULL is returned only when out of memory, and taken by every function that takes what was
 * returned. What was added is not read back by the functions above. Names and media types may be
 * NULL. */

BAY_API bay_message *bay_message_new(void);
BAY_API void bay_message_free(bay_message *message); /* NULL is fine; only what _new returned */
BAY_API void bay_message_add_text(bay_message *message, const char *text);
BAY_API void bay_message_add_textf(bay_message *message, const char *format, ...) BAY_PRINTF(2, 3);
BAY_API void bay_message_add_text_str(bay_message *message, bay_str text);
BAY_API void bay_message_add_bytes(bay_message *message, const void *bytes, size_t len,
                                   const char *name, const char *media_type);
BAY_API void bay_message_add_url(bay_message *message, const char *url, const char *name,
                                 const char *media_type);
BAY_API void bay_message_add_url_str(bay_message *message, bay_str url, bay_str name,
                                     bay_str media_type);
BAY_API void bay_message_add_data(bay_message *message, const char *json);
BAY_API void bay_message_add_data_json(bay_message *message, bay_json *json); /* takes it */
/* A text member of the metadata; the same name again is refused. */
BAY_API void bay_message_add_metadata(bay_message *message, const char *name, const char *value);
BAY_API void bay_message_add_metadata_str(bay_message *message, const char *name, bay_str value);
/* The same with any JSON value. Takes it. */
BAY_API void bay_message_add_metadata_json(bay_message *message, const char *name, bay_json *json);
/* It uses this extension. */
BAY_API void bay_message_add_extension(bay_message *message, const char *uri);
/* It refers to this task. */
BAY_API void bay_message_add_reference(bay_message *message, const char *task_id);
BAY_API void bay_message_add_reference_str(bay_message *message, bay_str task_id);

#ifdef __cplusplus
}
#endif
#endif
