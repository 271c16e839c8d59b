/* The form of JSON-RPC 0.2 and 0.3: `kind` names the type, results and events are not wrapped,
 * states and roles are plain words, `blocking` is the opposite of `returnImmediately`.
 *
 * A peer that does not set blocking waits, as implementations of 0.2, 0.3 and 1.0 do. A
 * configuration that a peer sets without a name gets its task's id, as in 1.0. Source: A2A 0.3.0
 * sections 6, 7 and its JSON schema; 0.2.5 likewise. */
#include "a2a/dialect_walk.h"

#define AS_IS(name, kind)                                                                          \
    {                                                                                              \
        STR_INIT(name), STR_INIT(name), kind, 0, NULL, NULL                                        \
    }
#define DUE(name, kind, read, write)                                                               \
    {                                                                                              \
        STR_INIT(name), STR_INIT(name), kind, DIALECT_DUE, read, write                             \
    }

static void write_kind(dialect *self, bay_str kind)
{
    json_key_word(&self->to, STR("kind"));
    json_put_word(&self->to, kind);
}

/* If there is a `kind`, it must be this one. */
static void check_kind(dialect *self, json_val value, bay_str kind)
{
    json_val said = json_get(value, STR("kind"));
    if (dialect_is_there(said) && !json_str_eq(said, kind)) {
        dialect_refuse(self, STR("kind"), "does not go with what it stands in");
    }
}

/* ---- messages, artifacts, tasks ----------------------------------------------------------------
 */

static const dialect_row message_rows[] = {
    DUE("messageId", JSON_STRING, NULL, NULL),
    AS_IS("contextId", JSON_STRING),
    AS_IS("taskId", JSON_STRING),
    DUE("role", JSON_STRING, dialect_read_role, dialect_write_role),
    DUE("parts", JSON_ARRAY, dialect_read_parts, dialect_write_parts),
    AS_IS("metadata", JSON_OBJECT),
    AS_IS("extensions", JSON_ARRAY),
    AS_IS("referenceTaskIds", JSON_ARRAY),
};
static const dialect_shape message_shape = DIALECT_SHAPE(message_rows);

static void read_message(dialect *self, json_val value)
{
    check_kind(self, value, STR("message"));
    dialect_read_object(self, &message_shape, value);
}

static void write_message(dialect *self, json_val value)
{
    json_open_object(&self->to);
    write_kind(self, STR("message"));
    dialect_write_members(self, &message_shape, value);
    dialect_close_object(self);
}

DIALECT_ARRAY(messages, message)

static const dialect_row artifact_rows[] = {
    DUE("artifactId", JSON_STRING, NULL, NULL),
    AS_IS("name", JSON_STRING),
    AS_IS("description", JSON_STRING),
    DUE("parts", JSON_ARRAY, dialect_read_parts, dialect_write_parts),
    AS_IS("metadata", JSON_OBJECT),
    AS_IS("extensions", JSON_ARRAY),
};
static const dialect_shape artifact_shape = DIALECT_SHAPE(artifact_rows);

DIALECT_OBJECT(artifact, artifact_shape)

DIALECT_ARRAY(artifacts, artifact)

static void read_state(dialect *self, json_val value)
{
    a2a_state state = dialect_state_named(value);
    if (state == A2A_STATES) {
        dialect_refuse(self, STR(""), "there is no such state");
        return;
    }
    json_put_word(&self->to, a2a_state_names[state]);
}

static const dialect_row status_rows[] = {
    DUE("state", JSON_STRING, read_state, dialect_put_state),
    {STR_INIT("message"), STR_INIT("message"), JSON_OBJECT, 0, read_message, write_message},
    {STR_INIT("timestamp"), STR_INIT("timestamp"), JSON_STRING, 0, dialect_read_time, NULL},
};
static const dialect_shape status_shape = DIALECT_SHAPE(status_rows);

DIALECT_OBJECT(status, status_shape)

static const dialect_row task_rows[] = {
    DUE("id", JSON_STRING, NULL, NULL),
    {STR_INIT("contextId"), STR_INIT("contextId"), JSON_STRING, DIALECT_FILL, NULL, NULL},
    DUE("status", JSON_OBJECT, read_status, write_status),
    {STR_INIT("artifacts"), STR_INIT("artifacts"), JSON_ARRAY, 0, read_artifacts, write_artifacts},
    {STR_INIT("history"), STR_INIT("history"), JSON_ARRAY, 0, read_messages, write_messages},
    AS_IS("metadata", JSON_OBJECT),
};
static const dialect_shape task_shape = DIALECT_SHAPE(task_rows);

static void read_task(dialect *self, json_val value)
{
    check_kind(self, value, STR("task"));
    dialect_read_object(self, &task_shape, value);
}

static void write_task(dialect *self, json_val value)
{
    json_open_object(&self->to);
    write_kind(self, STR("task"));
    dialect_write_members(self, &task_shape, value);
    dialect_close_object(self);
}

/* ---- events ------------------------------------------------------------------------------------
 */

static void read_final(dialect *self, json_val value)
{
    self->is_last = json_true(value);
}

static const dialect_row status_update_rows[] = {
    DUE("taskId", JSON_STRING, NULL, NULL),
    {STR_INIT("contextId"), STR_INIT("contextId"), JSON_STRING, DIALECT_FILL, NULL, NULL},
    DUE("status", JSON_OBJECT, read_status, write_status),
    {STR_INIT("final"), STR_INIT(""), JSON_TRUE, DIALECT_OWN_KEY, read_final, NULL},
    AS_IS("metadata", JSON_OBJECT),
};
static const dialect_shape status_update_shape = DIALECT_SHAPE(status_update_rows);

static const dialect_row artifact_update_rows[] = {
    DUE("taskId", JSON_STRING, NULL, NULL),
    {STR_INIT("contextId"), STR_INIT("contextId"), JSON_STRING, DIALECT_FILL, NULL, NULL},
    DUE("artifact", JSON_OBJECT, read_artifact, write_artifact),
    AS_IS("append", JSON_TRUE),
    AS_IS("lastChunk", JSON_TRUE),
    AS_IS("metadata", JSON_OBJECT),
};
static const dialect_shape artifact_update_shape = DIALECT_SHAPE(artifact_update_rows);

static void read_status_update(dialect *self, json_val value)
{
    dialect_read_object(self, &status_update_shape, value);
}

static void read_artifact_update(dialect *self, json_val value)
{
    dialect_read_object(self, &artifact_update_shape, value);
}

typedef struct event_kind {
    bay_str kind;
    bay_str ours;
    bay_str tell; /* a member that only this kind has, for peers without `kind` */
    dialect_turn *read;
} event_kind;

static const event_kind event_kinds[] = {
    {STR_INIT("artifact-update"), STR_INIT("artifactUpdate"), STR_INIT("artifact"),
     read_artifact_update},
    {STR_INIT("message"), STR_INIT("message"), STR_INIT("messageId"), read_message},
    {STR_INIT("task"), STR_INIT("task"), STR_INIT("id"), read_task},
    {STR_INIT("status-update"), STR_INIT("statusUpdate"), STR_INIT("status"), read_status_update},
};
enum { EVENT_KINDS = sizeof(event_kinds) / sizeof(event_kinds[0]) };

static void read_event(dialect *self, json_val value)
{
    json_val said = json_get(value, STR("kind"));
    for (size_t i = 0; i < EVENT_KINDS; i++) {
        const event_kind *kind = &event_kinds[i];
        if (dialect_is_there(said) ? json_str_eq(said, kind->kind)
                                   : dialect_is_there(json_get(value, kind->tell))) {
            json_open_object(&self->to);
            json_key_word(&self->to, kind->ours);
            kind->read(self, value);
            dialect_close_object(self);
            return;
        }
    }
    dialect_refuse(self, STR("kind"), "must be task, message, status-update or artifact-update");
}

static void write_event(dialect *self, json_val value)
{
    json_val inside = json_get(value, STR("statusUpdate"));
    if (dialect_is_there(inside)) {
        json_open_object(&self->to);
        write_kind(self, STR("status-update"));
        dialect_write_members(self, &status_update_shape, inside);
        json_key_word(&self->to, STR("final"));
        json_put_bool(&self->to, self->is_last);
        dialect_close_object(self);
        return;
    }
    inside = json_get(value, STR("artifactUpdate"));
    if (dialect_is_there(inside)) {
        json_open_object(&self->to);
        write_kind(self, STR("artifact-update"));
        dialect_write_members(self, &artifact_update_shape, inside);
        dialect_close_object(self);
        return;
    }
    inside = json_get(value, STR("message"));
    if (dialect_is_there(inside)) {
        write_message(self, inside);
        return;
    }
    write_task(self, json_get(value, STR("task")));
}

/* ---- params ------------------------------------------------------------------------------------
 */

static void read_blocking(dialect *self, json_val value)
{
    if (!json_true(value)) {
        json_key_lit(&self->to, "returnImmediately");
        json_put_bool(&self->to, true);
    }
}

static const dialect_row configuration_rows[] = {
    AS_IS("acceptedOutputModes", JSON_ARRAY),
    {STR_INIT("historyLength"), STR_INIT("historyLength"), JSON_MISSING, 0, NULL, NULL},
    {STR_INIT("pushNotificationConfig"), STR_INIT("taskPushNotificationConfig"), JSON_OBJECT, 0,
     dialect_read_push, dialect_write_push},
    {STR_INIT("blocking"), STR_INIT(""), JSON_TRUE, DIALECT_OWN_KEY, read_blocking, NULL},
};
static const dialect_shape configuration_shape = DIALECT_SHAPE(configuration_rows);

static void read_configuration(dialect *self, json_val value)
{
    dialect_read_object(self, &configuration_shape, value);
}

/* A configuration with only the default is omitted. */
static void read_send_configuration(dialect *self, json_val value)
{
    bool says_more = false;
    json_iter iter = json_iter_of(value);
    while (json_next(&iter)) {
        says_more |= !json_is(iter.value, JSON_NULL) &&
                     !(json_str_eq(iter.key, STR("blocking")) && json_true(iter.value)) &&
                     !(json_is(iter.value, JSON_ARRAY) && json_count(iter.value) == 0);
    }
    if (says_more) {
        json_key_lit(&self->to, "configuration");
        read_configuration(self, value);
    }
}

static const dialect_row send_rows[] = {
    DUE("message", JSON_OBJECT, read_message, write_message),
    {STR_INIT("configuration"), STR_INIT(""), JSON_OBJECT, DIALECT_OWN_KEY, read_send_configuration,
     NULL},
    AS_IS("metadata", JSON_OBJECT),
};
static const dialect_shape send_shape = DIALECT_SHAPE(send_rows);

static void read_send(dialect *self, json_val value)
{
    dialect_read_object(self, &send_shape, value);
}

/* `blocking` is always written, because its default was never agreed on; 0.2 requires the modes. */
static void write_send(dialect *self, json_val value)
{
    json_val configuration = json_get(value, STR("configuration"));
    json_open_object(&self->to);
    dialect_write_members(self, &send_shape, value);
    json_key_lit(&self->to, "configuration");
    json_open_object(&self->to);
    dialect_write_members(self, &configuration_shape, configuration);
    if (!dialect_is_there(json_get(configuration, STR("acceptedOutputModes")))) {
        json_key_lit(&self->to, "acceptedOutputModes");
        json_open_array(&self->to);
        dialect_close_array(self);
    }
    json_key_lit(&self->to, "blocking");
    json_put_bool(&self->to, !json_true(json_get(configuration, STR("returnImmediately"))));
    dialect_close_object(self);
    dialect_close_object(self);
}

static const dialect_row task_query_rows[] = {
    DUE("id", JSON_STRING, NULL, NULL),
    {STR_INIT("historyLength"), STR_INIT("historyLength"), JSON_MISSING, 0, NULL, NULL},
};
static const dialect_row task_cancel_rows[] = {
    DUE("id", JSON_STRING, NULL, NULL),
    AS_IS("metadata", JSON_OBJECT),
};
static const dialect_row task_id_rows[] = {
    DUE("id", JSON_STRING, NULL, NULL),
};
static const dialect_row push_list_rows[] = {
    {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
};
static const dialect_row push_name_rows[] = {
    {STR_INIT("id"), STR_INIT("taskId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("pushNotificationConfigId"), STR_INIT("id"), JSON_STRING, 0, NULL, NULL},
};
static const dialect_shape task_query_shape = DIALECT_SHAPE(task_query_rows);
static const dialect_shape task_cancel_shape = DIALECT_SHAPE(task_cancel_rows);
static const dialect_shape task_id_shape = DIALECT_SHAPE(task_id_rows);
static const dialect_shape push_list_shape = DIALECT_SHAPE(push_list_rows);
static const dialect_shape push_name_shape = DIALECT_SHAPE(push_name_rows);

void dialect_read_query(dialect *self, json_val value)
{
    dialect_read_object(self, &task_query_shape, value);
}

void dialect_write_query(dialect *self, json_val value)
{
    dialect_write_object(self, &task_query_shape, value);
}

void dialect_read_cancel(dialect *self, json_val value)
{
    dialect_read_object(self, &task_cancel_shape, value);
}

void dialect_write_cancel(dialect *self, json_val value)
{
    dialect_write_object(self, &task_cancel_shape, value);
}

void dialect_read_id(dialect *self, json_val value)
{
    dialect_read_object(self, &task_id_shape, value);
}

void dialect_write_id(dialect *self, json_val value)
{
    dialect_write_object(self, &task_id_shape, value);
}

DIALECT_OBJECT(push_list, push_list_shape)

static void read_push_name(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_read_members(self, &push_name_shape, value);
    if (!dialect_is_there(json_get(value, STR("pushNotificationConfigId")))) {
        dialect_copy(self, value, STR("id"), STR("id"));
    }
    dialect_close_object(self);
}

static void write_push_name(dialect *self, json_val value)
{
    dialect_write_object(self, &push_name_shape, value);
}

/* {taskId, pushNotificationConfig}, as params and as a result. */
static const dialect_row push_config_rows[] = {
    DUE("taskId", JSON_STRING, NULL, NULL),
    {STR_INIT("pushNotificationConfig"), STR_INIT(""), JSON_OBJECT, DIALECT_DUE | DIALECT_OWN_KEY,
     dialect_read_push_members, NULL},
};
static const dialect_shape push_config_shape = DIALECT_SHAPE(push_config_rows);

static void read_push_config(dialect *self, json_val value)
{
    if (!json_is(value, JSON_OBJECT)) {
        dialect_refuse(self, STR(""), "must be an object");
        return;
    }
    json_open_object(&self->to);
    dialect_read_members(self, &push_config_shape, value);
    json_val config = json_get(value, STR("pushNotificationConfig"));
    if (!dialect_is_there(json_get(config, STR("id")))) {
        dialect_copy(self, value, STR("taskId"), STR("id"));
    }
    dialect_close_object(self);
}

static void write_push_config(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_copy(self, value, STR("taskId"), STR("taskId"));
    json_key_lit(&self->to, "pushNotificationConfig");
    dialect_write_push(self, value);
    dialect_close_object(self);
}

static void read_push_configs(dialect *self, json_val value)
{
    if (!json_is(value, JSON_ARRAY)) {
        dialect_refuse(self, STR(""), "must be an array");
        return;
    }
    json_open_object(&self->to);
    json_key_lit(&self->to, "configs");
    dialect_each(self, value, read_push_config);
    dialect_close_object(self);
}

static void write_push_configs(dialect *self, json_val value)
{
    dialect_each(self, json_get(value, STR("configs")), write_push_config);
}

const dialect_forms dialect_forms_0_3 = {
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
            [A2A_GET_PUSH_CONFIG] = read_push_name,
            [A2A_LIST_PUSH_CONFIGS] = read_push_list,
            [A2A_DELETE_PUSH_CONFIG] = read_push_name,
            [A2A_GET_EXTENDED_CARD] = dialect_nothing,
        },
    .write_params =
        {
            [A2A_SEND_MESSAGE] = write_send,
            [A2A_SEND_STREAMING_MESSAGE] = write_send,
            [A2A_GET_TASK] = dialect_write_query,
            [A2A_CANCEL_TASK] = dialect_write_cancel,
            [A2A_SUBSCRIBE_TO_TASK] = dialect_write_id,
            [A2A_CREATE_PUSH_CONFIG] = write_push_config,
            [A2A_GET_PUSH_CONFIG] = write_push_name,
            [A2A_LIST_PUSH_CONFIGS] = write_push_list,
            [A2A_DELETE_PUSH_CONFIG] = write_push_name,
            [A2A_GET_EXTENDED_CARD] = dialect_nothing,
        },
    .read_result =
        {
            [A2A_SEND_MESSAGE] = read_event,
            [A2A_GET_TASK] = read_task,
            [A2A_CANCEL_TASK] = read_task,
            [A2A_CREATE_PUSH_CONFIG] = read_push_config,
            [A2A_GET_PUSH_CONFIG] = read_push_config,
            [A2A_LIST_PUSH_CONFIGS] = read_push_configs,
            [A2A_DELETE_PUSH_CONFIG] = dialect_nothing,
            [A2A_GET_EXTENDED_CARD] = dialect_read_card,
        },
    .write_result =
        {
            [A2A_SEND_MESSAGE] = write_event,
            [A2A_GET_TASK] = write_task,
            [A2A_CANCEL_TASK] = write_task,
            [A2A_CREATE_PUSH_CONFIG] = write_push_config,
            [A2A_GET_PUSH_CONFIG] = write_push_config,
            [A2A_LIST_PUSH_CONFIGS] = write_push_configs,
            [A2A_DELETE_PUSH_CONFIG] = dialect_null,
            [A2A_GET_EXTENDED_CARD] = dialect_write_card,
        },
};
