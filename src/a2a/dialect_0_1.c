/* The form of 0.1: tasks whose ids clients make, sessions, parts with `type`, artifacts by index,
 * and only tasks as results. A message as an answer becomes the status message of a completed task;
 * a task as an event becomes an update of its status. What has no place is kept in metadata, so
 * that a peer of 1.0 behind a translation through 0.1 gets it back.
 *
 * Messages of 0.1 have no ids: received ones get new ones. Source: A2A 0.1.0 sections 6 and 7 and
 * its JSON schema. */
#include "a2a/dialect_walk.h"
#include "base/rand.h"

static const bay_str key_message_id = DIALECT_KEY("messageId");
static const bay_str key_artifact_id = DIALECT_KEY("artifactId");
static const bay_str key_state = DIALECT_KEY("state");
static const bay_str key_message = DIALECT_KEY("message");
static const bay_str key_task = DIALECT_KEY("task");
static const bay_str key_client_task_id = DIALECT_KEY("clientTaskId");
static const bay_str key_return_immediately = DIALECT_KEY("returnImmediately");

static void put_flag(dialect *self, bay_str key)
{
    json_key(&self->to, key);
    json_put_bool(&self->to, true);
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static const dialect_row message_rows[] = {
    {STR_INIT("role"), STR_INIT("role"), JSON_STRING, DIALECT_DUE, dialect_read_role,
     dialect_write_role},
    {STR_INIT("parts"), STR_INIT("parts"), JSON_ARRAY, DIALECT_DUE, dialect_read_parts,
     dialect_write_parts},
};
static const dialect_kept message_kept[] = {
    {DIALECT_KEY("messageId"), STR_INIT("messageId")},
    {DIALECT_KEY("contextId"), STR_INIT("contextId")},
    {DIALECT_KEY("taskId"), STR_INIT("taskId")},
    {DIALECT_KEY("extensions"), STR_INIT("extensions")},
    {DIALECT_KEY("referenceTaskIds"), STR_INIT("referenceTaskIds")},
};
/* Of a message that is sent: its task and session are beside it. */
static const dialect_kept sent_kept[] = {
    {DIALECT_KEY("messageId"), STR_INIT("messageId")},
    {DIALECT_KEY("contextId"), STR_INIT("")},
    {DIALECT_KEY("taskId"), STR_INIT("")},
    {DIALECT_KEY("extensions"), STR_INIT("extensions")},
    {DIALECT_KEY("referenceTaskIds"), STR_INIT("referenceTaskIds")},
};
static const dialect_shape message_shape = DIALECT_SHAPE_KEEPING(message_rows, message_kept, NULL);
static const dialect_shape sent_shape = DIALECT_SHAPE_KEEPING(message_rows, sent_kept, NULL);

static void put_message_id(dialect *self, json_val message)
{
    if (json_is(dialect_kept_value(message, key_message_id), JSON_MISSING)) {
        static const char digits[] = "0123456789abcdef";
        unsigned char bytes[16];
        char text[2 * sizeof(bytes)];
        rand_bytes(bytes, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes); i++) {
            text[2 * i] = digits[bytes[i] >> 4];
            text[2 * i + 1] = digits[bytes[i] & 15];
        }
        json_key_lit(&self->to, "messageId");
        json_put_str(&self->to, (bay_str){text, sizeof(text)});
    }
}

static void read_message(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_read_members(self, &message_shape, value);
    put_message_id(self, value);
    dialect_close_object(self);
}

static void write_message(dialect *self, json_val value)
{
    dialect_write_object(self, &message_shape, value);
}

DIALECT_ARRAY(messages, message)

/* ---- artifacts ---------------------------------------------------------------------------------
 */

/* Ids that are small numbers are their index; others get their place in the task, or 0. */
static uint64_t index_of(const dialect *self, json_val artifact)
{
    enum { MOST_DIGITS = 9 };
    bay_str id;
    uint64_t index;
    if (json_str_plain(json_get(artifact, STR("artifactId")), &id) && id.len > 0 &&
        id.len <= MOST_DIGITS && (id.len == 1 || id.at[0] != '0') && str_uint(id, &index)) {
        return index;
    }
    return self->place != NULL && self->place->name.at == NULL ? self->place->index : 0;
}

static void keep_artifact_id(dialect_metadata_writer *writer, json_val artifact)
{
    dialect *self = dialect_of(writer);
    char digits[DIALECT_DIGITS];
    json_val id = json_get(artifact, STR("artifactId"));
    if (dialect_is_there(id) &&
        !json_str_eq(id, dialect_digits(index_of(self, artifact), digits))) {
        dialect_keep(writer, key_artifact_id);
        json_put_val(&self->to, id);
    }
}

static void read_index(dialect *self, json_val value)
{
    uint64_t index;
    char digits[DIALECT_DIGITS];
    if (json_uint64(value, &index) != BAY_OK) {
        dialect_refuse(self, STR(""), "must be a whole number");
    } else if (json_is(dialect_kept_value(self->object, key_artifact_id), JSON_MISSING)) {
        json_key_lit(&self->to, "artifactId");
        json_put_str(&self->to, dialect_digits(index, digits));
    }
}

static const dialect_row artifact_rows[] = {
    {STR_INIT("name"), STR_INIT("name"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("description"), STR_INIT("description"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("parts"), STR_INIT("parts"), JSON_ARRAY, DIALECT_DUE, dialect_read_parts,
     dialect_write_parts},
    {STR_INIT("index"), STR_INIT(""), JSON_NUMBER, DIALECT_OWN_KEY, read_index, NULL},
};
static const dialect_kept artifact_kept[] = {
    {DIALECT_KEY("artifactId"), STR_INIT("artifactId")},
    {DIALECT_KEY("extensions"), STR_INIT("extensions")},
};
static const dialect_kept artifact_kept_write[] = {
    {DIALECT_KEY("artifactId"), STR_INIT("")},
    {DIALECT_KEY("extensions"), STR_INIT("extensions")},
};
static const dialect_shape artifact_shape =
    DIALECT_SHAPE_KEEPING(artifact_rows, artifact_kept, NULL);
static const dialect_shape artifact_shape_write =
    DIALECT_SHAPE_KEEPING(artifact_rows, artifact_kept_write, keep_artifact_id);

static void read_artifact(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_read_members(self, &artifact_shape, value);
    if (!dialect_is_there(json_get(value, STR("index"))) &&
        json_is(dialect_kept_value(value, key_artifact_id), JSON_MISSING)) {
        json_key_lit(&self->to, "artifactId");
        json_put_str(&self->to, STR("0"));
    }
    dialect_close_object(self);
}

static void write_artifact_members(dialect *self, json_val value)
{
    json_key_lit(&self->to, "index");
    json_put_uint(&self->to, index_of(self, value));
    dialect_write_members(self, &artifact_shape_write, value);
}

static void write_artifact(dialect *self, json_val value)
{
    json_open_object(&self->to);
    write_artifact_members(self, value);
    dialect_close_object(self);
}

DIALECT_ARRAY(artifacts, artifact)

/* ---- status ------------------------------------------------------------------------------------
 */

/* The 0.1 name for a newer state. */
static a2a_state older_state(a2a_state state)
{
    return state == A2A_REJECTED        ? A2A_FAILED
           : state == A2A_AUTH_REQUIRED ? A2A_INPUT_REQUIRED
                                        : state;
}

static a2a_state state_of(json_val ours)
{
    bay_str name;
    json_val state = json_get(json_get(ours, STR("status")), STR("state"));
    return json_str_plain(state, &name) ? a2a_state_of(name) : A2A_STATE_UNSPECIFIED;
}

static const dialect_row status_rows[] = {
    {STR_INIT("message"), STR_INIT("message"), JSON_OBJECT, 0, read_message, write_message},
    {STR_INIT("timestamp"), STR_INIT("timestamp"), JSON_STRING, 0, dialect_read_time, NULL},
};
static const dialect_shape status_shape = DIALECT_SHAPE(status_rows);

/* The object around it may have other ids; they are used if they agree. */
static void read_status(dialect *self, json_val value)
{
    json_val said = json_get(value, STR("state"));
    a2a_state state = dialect_state_named(said);
    if (!dialect_is_there(said) || state == A2A_STATES) {
        dialect_refuse(self, STR("state"),
                       dialect_is_there(said) ? "there is no such state" : "is required");
        return;
    }
    bay_str name;
    if (json_str_plain(dialect_kept_value(self->object, key_state), &name) &&
        older_state(a2a_state_of(name)) == state) {
        state = a2a_state_of(name);
    }
    json_open_object(&self->to);
    json_key_lit(&self->to, "state");
    json_put_str(&self->to, a2a_state_names[state]);
    dialect_read_members(self, &status_shape, value);
    dialect_close_object(self);
}

static void write_status(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "state");
    json_put_str(&self->to, dialect_state_name(older_state(state_of(self->object))));
    dialect_write_members(self, &status_shape, value);
    dialect_close_object(self);
}

static void keep_state(dialect_metadata_writer *writer, json_val ours)
{
    a2a_state state = state_of(ours);
    if (older_state(state) != state) {
        dialect_keep(writer, key_state);
        json_put_str(&dialect_of(writer)->to, a2a_state_names[state]);
    }
}

/* ---- tasks -------------------------------------------------------------------------------------
 */

static const dialect_row task_rows[] = {
    {STR_INIT("id"), STR_INIT("id"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("sessionId"), STR_INIT("contextId"), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("status"), STR_INIT("status"), JSON_OBJECT, DIALECT_DUE, read_status, write_status},
    {STR_INIT("artifacts"), STR_INIT("artifacts"), JSON_ARRAY, 0, read_artifacts, write_artifacts},
    {STR_INIT("history"), STR_INIT("history"), JSON_ARRAY, 0, read_messages, write_messages},
};
static const dialect_kept task_kept[] = {
    {DIALECT_KEY("state"), STR_INIT("")},
};
static const dialect_shape task_shape = DIALECT_SHAPE_KEEPING(task_rows, task_kept, keep_state);

DIALECT_OBJECT(task, task_shape)

/* Members of the task that replaces a message. */
static void write_message_as_task(dialect *self, json_val message)
{
    json_val task = json_get(message, STR("taskId"));
    json_key_lit(&self->to, "id");
    if (dialect_is_there(task)) {
        json_put_val(&self->to, task);
    } else if (self->task_id.len > 0) {
        json_put_str(&self->to, self->task_id);
    } else {
        json_put_val(&self->to, json_get(message, STR("messageId")));
    }
    json_key_lit(&self->to, "status");
    json_open_object(&self->to);
    json_key_lit(&self->to, "state");
    json_put_str(&self->to, dialect_state_name(A2A_COMPLETED));
    json_key_lit(&self->to, "message");
    write_message(self, message);
    dialect_close_object(self);
    json_key_lit(&self->to, "metadata");
    json_open_object(&self->to);
    put_flag(self, key_message);
    dialect_close_object(self);
}

static bool is_message(json_val theirs)
{
    return json_true(dialect_kept_value(theirs, key_message));
}

static void read_message_of_task(dialect *self, json_val value)
{
    json_key_lit(&self->to, "message");
    read_message(self, json_get(json_get(value, STR("status")), STR("message")));
}

static void read_sent(dialect *self, json_val value)
{
    json_open_object(&self->to);
    if (is_message(value)) {
        read_message_of_task(self, value);
    } else {
        json_key_lit(&self->to, "task");
        read_task(self, value);
    }
    dialect_close_object(self);
}

static void write_sent(dialect *self, json_val value)
{
    json_val message = json_get(value, STR("message"));
    if (!dialect_is_there(message)) {
        write_task(self, json_get(value, STR("task")));
        return;
    }
    json_open_object(&self->to);
    write_message_as_task(self, message);
    dialect_copy(self, message, STR("contextId"), STR("sessionId"));
    dialect_close_object(self);
}

/* ---- events ------------------------------------------------------------------------------------
 */

static void read_final(dialect *self, json_val value)
{
    self->is_last = json_true(value);
}

static const dialect_row status_update_rows[] = {
    {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("status"), STR_INIT("status"), JSON_OBJECT, DIALECT_DUE, read_status, write_status},
    {STR_INIT("final"), STR_INIT(""), JSON_TRUE, DIALECT_OWN_KEY, read_final, NULL},
};
static const dialect_kept update_kept[] = {
    {DIALECT_KEY("contextId"), STR_INIT("contextId")},
    {DIALECT_KEY("state"), STR_INIT("")},
};
static const dialect_shape status_update_shape =
    DIALECT_SHAPE_KEEPING(status_update_rows, update_kept, keep_state);

/* Of a task: the members, in 1.0, that an update of its status cannot carry. */
static const bay_str task_rest[] = {STR_INIT("contextId"), STR_INIT("artifacts"),
                                    STR_INIT("history")};
enum { TASK_REST = sizeof(task_rest) / sizeof(task_rest[0]) };

static void keep_task(dialect_metadata_writer *writer, json_val ours)
{
    dialect *self = dialect_of(writer);
    dialect_keep(writer, key_task);
    json_open_object(&self->to);
    for (size_t i = 0; i < TASK_REST; i++) {
        dialect_copy(self, ours, task_rest[i], task_rest[i]);
    }
    dialect_close_object(self);
    keep_state(writer, ours);
}

static const dialect_row task_event_rows[] = {
    {STR_INIT("id"), STR_INIT("id"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("status"), STR_INIT("status"), JSON_OBJECT, DIALECT_DUE, read_status, write_status},
    {STR_INIT("final"), STR_INIT(""), JSON_TRUE, DIALECT_OWN_KEY, read_final, NULL},
};
static const dialect_kept task_event_kept[] = {
    {DIALECT_KEY("task"), STR_INIT("")},
    {DIALECT_KEY("state"), STR_INIT("")},
};
static const dialect_shape task_event_shape =
    DIALECT_SHAPE_KEEPING(task_event_rows, task_event_kept, keep_task);

static void read_task_event(dialect *self, json_val value)
{
    json_val rest = dialect_kept_value(value, key_task);
    json_open_object(&self->to);
    dialect_read_members(self, &task_event_shape, value);
    for (size_t i = 0; i < TASK_REST; i++) {
        dialect_copy(self, rest, task_rest[i], task_rest[i]);
    }
    dialect_close_object(self);
}

/* An artifact, with the members of the update, which 0.1 has inside of it. */
static void read_updated_artifact(dialect *self, json_val value)
{
    json_key_lit(&self->to, "artifact");
    read_artifact(self, value);
    dialect_copy(self, value, STR("append"), STR("append"));
    dialect_copy(self, value, STR("lastChunk"), STR("lastChunk"));
}

static void write_updated_artifact(dialect *self, json_val value)
{
    json_val update = self->object;
    json_open_object(&self->to);
    write_artifact_members(self, value);
    dialect_copy(self, update, STR("append"), STR("append"));
    dialect_copy(self, update, STR("lastChunk"), STR("lastChunk"));
    dialect_close_object(self);
}

static const dialect_row artifact_update_rows[] = {
    {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("artifact"), STR_INIT("artifact"), JSON_OBJECT, DIALECT_DUE | DIALECT_OWN_KEY,
     read_updated_artifact, write_updated_artifact},
};
static const dialect_kept artifact_update_kept[] = {
    {DIALECT_KEY("contextId"), STR_INIT("contextId")},
};
static const dialect_shape artifact_update_shape =
    DIALECT_SHAPE_KEEPING(artifact_update_rows, artifact_update_kept, NULL);

static void read_event(dialect *self, json_val value)
{
    bool is_artifact = dialect_is_there(json_get(value, STR("artifact")));
    if (!is_artifact && !dialect_is_there(json_get(value, STR("status")))) {
        dialect_refuse(self, STR(""), "has neither a status nor an artifact");
        return;
    }
    json_open_object(&self->to);
    if (is_artifact) {
        json_key_lit(&self->to, "artifactUpdate");
        dialect_read_object(self, &artifact_update_shape, value);
    } else if (is_message(value)) {
        self->is_last = json_true(json_get(value, STR("final")));
        read_message_of_task(self, value);
    } else if (json_is(dialect_kept_value(value, key_task), JSON_OBJECT)) {
        json_key_lit(&self->to, "task");
        read_task_event(self, value);
    } else {
        json_key_lit(&self->to, "statusUpdate");
        dialect_read_object(self, &status_update_shape, value);
    }
    dialect_close_object(self);
}

static void put_final(dialect *self, bool is_final)
{
    json_key_lit(&self->to, "final");
    json_put_bool(&self->to, is_final);
}

static void write_event(dialect *self, json_val value)
{
    json_val update = json_get(value, STR("statusUpdate"));
    json_val artifact = json_get(value, STR("artifactUpdate"));
    json_val message = json_get(value, STR("message"));
    json_open_object(&self->to);
    if (dialect_is_there(update)) {
        dialect_write_members(self, &status_update_shape, update);
        put_final(self, self->is_last);
    } else if (dialect_is_there(artifact)) {
        dialect_write_members(self, &artifact_update_shape, artifact);
    } else if (dialect_is_there(message)) {
        write_message_as_task(self, message);
        put_final(self, true);
    } else {
        dialect_write_members(self, &task_event_shape, json_get(value, STR("task")));
        put_final(self, self->is_last);
    }
    dialect_close_object(self);
}

/* ---- params ------------------------------------------------------------------------------------
 */

static void read_sent_message(dialect *self, json_val value)
{
    json_val params = self->object;
    json_open_object(&self->to);
    dialect_read_members(self, &sent_shape, value);
    put_message_id(self, value);
    dialect_copy(self, params, STR("id"), STR("taskId"));
    dialect_copy(self, params, STR("sessionId"), STR("contextId"));
    dialect_close_object(self);
}

static void read_send_configuration(dialect *self, json_val value)
{
    static const bay_str names[] = {STR_INIT("acceptedOutputModes"), STR_INIT("historyLength")};
    json_val push = json_get(value, STR("pushNotification"));
    json_val returns = dialect_kept_value(value, key_return_immediately);
    if (!dialect_is_there(json_get(value, names[0])) &&
        !dialect_is_there(json_get(value, names[1])) && !dialect_is_there(push) &&
        !json_true(returns)) {
        return;
    }
    json_key_lit(&self->to, "configuration");
    json_open_object(&self->to);
    dialect_copy(self, value, names[0], names[0]);
    dialect_copy(self, value, names[1], names[1]);
    if (dialect_is_there(push)) {
        const dialect_place here = {self->place, STR("pushNotification"), 0};
        self->place = &here;
        json_key_lit(&self->to, "taskPushNotificationConfig");
        dialect_read_push(self, push);
        self->place = here.outer;
    }
    if (json_true(returns)) {
        json_key_lit(&self->to, "returnImmediately");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
}

static const dialect_row send_rows[] = {
    {STR_INIT("id"), STR_INIT(""), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("sessionId"), STR_INIT(""), JSON_STRING, 0, NULL, NULL},
    {STR_INIT("message"), STR_INIT("message"), JSON_OBJECT, DIALECT_DUE, read_sent_message, NULL},
};
static const dialect_shape send_shape = DIALECT_SHAPE(send_rows);

static void put_metadata(dialect *self, json_val metadata)
{
    const bay_str except[] = {key_client_task_id, key_return_immediately};
    json_put_members(&self->to, metadata, except, 2);
}

static void read_send(dialect *self, json_val value)
{
    json_val metadata = json_get(value, STR("metadata"));
    if (!json_is(value, JSON_OBJECT)) {
        dialect_refuse(self, STR(""), "must be an object");
        return;
    }
    if (dialect_is_there(metadata) && !json_is(metadata, JSON_OBJECT)) {
        dialect_refuse(self, STR("metadata"), "must be an object");
        return;
    }
    json_open_object(&self->to);
    dialect_read_members(self, &send_shape, value);
    read_send_configuration(self, value);
    json_key_lit(&self->to, "metadata");
    json_open_object(&self->to);
    put_metadata(self, metadata);
    put_flag(self, key_client_task_id);
    dialect_close_object(self);
    dialect_close_object(self);
}

static void write_send(dialect *self, json_val value)
{
    json_val message = json_get(value, STR("message"));
    json_val configuration = json_get(value, STR("configuration"));
    json_val metadata = json_get(value, STR("metadata"));
    json_val push = json_get(configuration, STR("taskPushNotificationConfig"));
    bool returns = json_true(json_get(configuration, STR("returnImmediately")));
    json_open_object(&self->to);
    bool has_task = dialect_is_there(json_get(message, STR("taskId")));
    dialect_copy(self, message, has_task ? STR("taskId") : STR("messageId"), STR("id"));
    dialect_copy(self, message, STR("contextId"), STR("sessionId"));
    json_key_lit(&self->to, "message");
    dialect_write_object(self, &sent_shape, message);
    dialect_copy(self, configuration, STR("acceptedOutputModes"), STR("acceptedOutputModes"));
    dialect_copy(self, configuration, STR("historyLength"), STR("historyLength"));
    if (dialect_is_there(push)) {
        json_key_lit(&self->to, "pushNotification");
        dialect_write_push(self, push);
    }
    if (returns || json_count(metadata) > 0) {
        json_key_lit(&self->to, "metadata");
        json_open_object(&self->to);
        put_metadata(self, metadata);
        if (returns) {
            put_flag(self, key_return_immediately);
        }
        dialect_close_object(self);
    }
    dialect_close_object(self);
}

static const dialect_row push_config_rows[] = {
    {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("pushNotificationConfig"), STR_INIT(""), JSON_OBJECT, DIALECT_DUE | DIALECT_OWN_KEY,
     dialect_read_push_members, NULL},
};
static const dialect_shape push_config_shape = DIALECT_SHAPE(push_config_rows);

static void read_push_config(dialect *self, json_val value)
{
    json_val config = json_get(value, STR("pushNotificationConfig"));
    json_open_object(&self->to);
    dialect_read_members(self, &push_config_shape, value);
    if (!dialect_is_there(json_get(config, STR("id")))) {
        dialect_copy(self, value, STR("id"), STR("id"));
    }
    dialect_close_object(self);
}

static void write_push_config(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_copy(self, value, STR("taskId"), STR("id"));
    json_key_lit(&self->to, "pushNotificationConfig");
    dialect_write_push(self, value);
    dialect_close_object(self);
}

/* A task has one configuration here, named by the task's id. */
static void read_push_of_task(dialect *self, json_val value)
{
    static const dialect_row rows[] = {
        {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    };
    static const dialect_shape shape = DIALECT_SHAPE(rows);
    json_open_object(&self->to);
    dialect_read_members(self, &shape, value);
    dialect_copy(self, value, STR("id"), STR("id"));
    dialect_close_object(self);
}

static void write_push_of_task(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_copy(self, value, STR("taskId"), STR("id"));
    dialect_close_object(self);
}

const dialect_forms dialect_forms_0_1 = {
    .read_message = read_message,
    .write_message = write_message,
    .read_task = read_task,
    .write_task = write_task,
    .read_event = read_event,
    .write_event = write_event,
    .read_params =
        {
            [A2A_SEND_MESSAGE] = read_send,
            [A2A_SEND_STREAMING_MESSAGE] = read_send,
            [A2A_GET_TASK] = dialect_read_query,
            [A2A_CANCEL_TASK] = dialect_read_cancel,
            [A2A_SUBSCRIBE_TO_TASK] = dialect_read_id,
            [A2A_CREATE_PUSH_CONFIG] = read_push_config,
            [A2A_GET_PUSH_CONFIG] = read_push_of_task,
        },
    .write_params =
        {
            [A2A_SEND_MESSAGE] = write_send,
            [A2A_SEND_STREAMING_MESSAGE] = write_send,
            [A2A_GET_TASK] = dialect_write_query,
            [A2A_CANCEL_TASK] = dialect_write_cancel,
            [A2A_SUBSCRIBE_TO_TASK] = dialect_write_id,
            [A2A_CREATE_PUSH_CONFIG] = write_push_config,
            [A2A_GET_PUSH_CONFIG] = write_push_of_task,
        },
    .read_result =
        {
            [A2A_SEND_MESSAGE] = read_sent,
            [A2A_GET_TASK] = read_task,
            [A2A_CANCEL_TASK] = read_task,
            [A2A_CREATE_PUSH_CONFIG] = read_push_config,
            [A2A_GET_PUSH_CONFIG] = read_push_config,
        },
    .write_result =
        {
            [A2A_SEND_MESSAGE] = write_sent,
            [A2A_GET_TASK] = write_task,
            [A2A_CANCEL_TASK] = write_task,
            [A2A_CREATE_PUSH_CONFIG] = write_push_config,
            [A2A_GET_PUSH_CONFIG] = write_push_config,
        },
};
