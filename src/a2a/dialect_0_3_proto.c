/* The form of REST and gRPC in 0.3: package a2a.v1. Names are "tasks/ID", a message has `content`,
 * a part is text, a file or an object. Other members of parts are kept in the metadata of the
 * message or artifact around them, by their index. Input has been normalised by the tables of the
 * package.
 *
 * `blocking` false cannot be distinguished from unset. Without a configuration the default applies,
 * which is to wait. Source: a2a.proto of A2A 0.3.0. */
#include "a2a/dialect_walk.h"

#define AS_IS(name)                                                                                \
    {                                                                                              \
        STR_INIT(name), STR_INIT(name), JSON_MISSING, 0, NULL, NULL                                \
    }
#define BOTH(name, read, write)                                                                    \
    {                                                                                              \
        STR_INIT(name), STR_INIT(name), JSON_MISSING, 0, read, write                               \
    }

/* ---- parts -------------------------------------------------------------------------------------
 */

static const bay_str parts_key = DIALECT_KEY("parts");

static json_val first_of(json_val object, bay_str a, bay_str b)
{
    json_val value = json_get(object, a);
    return json_is(value, JSON_MISSING) ? json_get(object, b) : value;
}

static void read_file(dialect *self, json_val file)
{
    dialect_copy(self, file, STR("fileWithBytes"), STR("raw"));
    dialect_copy(self, file, STR("fileWithUri"), STR("url"));
    dialect_copy(self, file, STR("mimeType"), STR("mediaType"));
}

static void read_data(dialect *self, json_val part, json_val kept)
{
    json_val data = json_get(part, STR("data"));
    json_val wrapped =
        json_true(json_get(kept, STR("isWrapped"))) ? json_get(data, STR("value")) : JSON_NONE;
    json_key_lit(&self->to, "data");
    if (!json_is(wrapped, JSON_MISSING)) {
        json_put_val(&self->to, wrapped);
    } else if (json_is(data, JSON_MISSING)) {
        dialect_nothing(self, data);
    } else {
        json_put_val(&self->to, data);
    }
}

static void read_part(dialect *self, json_val part, json_val kept)
{
    json_val file = json_get(part, STR("file"));
    json_val data = json_get(part, STR("data"));
    json_open_object(&self->to);
    dialect_copy(self, part, STR("text"), STR("text"));
    if (!json_is(file, JSON_MISSING)) {
        read_file(self, file);
    } else {
        dialect_copy(self, kept, STR("mediaType"), STR("mediaType"));
    }
    if (!json_is(data, JSON_MISSING)) {
        read_data(self, data, kept);
    }
    dialect_copy(self, kept, STR("filename"), STR("filename"));
    dialect_copy(self, kept, STR("metadata"), STR("metadata"));
    dialect_close_object(self);
}

static json_val kept_of(json_val kept, size_t index)
{
    char digits[DIALECT_DIGITS];
    return json_get(kept, dialect_digits(index, digits));
}

static void read_parts(dialect *self, json_val value)
{
    json_val kept = dialect_kept_value(self->object, parts_key);
    json_open_array(&self->to);
    json_iter iter = json_iter_of(value);
    for (size_t i = 0; json_next(&iter); i++) {
        read_part(self, iter.value, kept_of(kept, i));
    }
    dialect_close_array(self);
}

static void write_data(dialect *self, json_val data)
{
    json_key_lit(&self->to, "data");
    json_open_object(&self->to);
    json_key_lit(&self->to, "data");
    dialect_put_data(self, data);
    dialect_close_object(self);
}

static bool is_file(json_val part)
{
    return !json_is(first_of(part, STR("raw"), STR("url")), JSON_MISSING);
}

static void write_part(dialect *self, json_val part)
{
    json_val data = json_get(part, STR("data"));
    json_open_object(&self->to);
    dialect_copy(self, part, STR("text"), STR("text"));
    if (!json_is(data, JSON_MISSING)) {
        write_data(self, data);
    } else if (is_file(part)) {
        json_key_lit(&self->to, "file");
        json_open_object(&self->to);
        dialect_copy(self, part, STR("raw"), STR("fileWithBytes"));
        dialect_copy(self, part, STR("url"), STR("fileWithUri"));
        dialect_copy(self, part, STR("mediaType"), STR("mimeType"));
        dialect_close_object(self);
    }
    dialect_close_object(self);
}

static void write_parts(dialect *self, json_val value)
{
    dialect_each(self, value, write_part);
}

/* Whether the part has anything that 0.3 has no member for. */
static bool is_worth_keeping(json_val part)
{
    json_val data = json_get(part, STR("data"));
    return dialect_is_there(json_get(part, STR("metadata"))) ||
           dialect_is_there(json_get(part, STR("filename"))) ||
           (!is_file(part) && dialect_is_there(json_get(part, STR("mediaType")))) ||
           (!json_is(data, JSON_MISSING) && !json_is(data, JSON_OBJECT));
}

static void keep_part(dialect *self, json_val part)
{
    json_val data = json_get(part, STR("data"));
    json_open_object(&self->to);
    dialect_copy(self, part, STR("metadata"), STR("metadata"));
    dialect_copy(self, part, STR("filename"), STR("filename"));
    if (!is_file(part)) {
        dialect_copy(self, part, STR("mediaType"), STR("mediaType"));
    }
    if (!json_is(data, JSON_MISSING) && !json_is(data, JSON_OBJECT)) {
        json_key_lit(&self->to, "isWrapped");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
}

static void keep_parts(dialect_metadata_writer *writer, json_val ours)
{
    dialect *self = dialect_of(writer);
    bool is_open = false;
    json_iter iter = json_iter_of(json_get(ours, STR("parts")));
    for (uint64_t i = 0; json_next(&iter); i++) {
        if (!is_worth_keeping(iter.value)) {
            continue;
        }
        if (!is_open) {
            is_open = true;
            dialect_keep(writer, parts_key);
            json_open_object(&self->to);
        }
        char digits[DIALECT_DIGITS];
        json_key(&self->to, dialect_digits(i, digits));
        keep_part(self, iter.value);
    }
    if (is_open) {
        dialect_close_object(self);
    }
}

/* ---- messages, artifacts, tasks ----------------------------------------------------------------
 */

static const dialect_row message_rows[] = {
    {STR_INIT("messageId"), STR_INIT("messageId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    AS_IS("contextId"),
    AS_IS("taskId"),
    {STR_INIT("role"), STR_INIT("role"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    {STR_INIT("content"), STR_INIT("parts"), JSON_ARRAY, DIALECT_DUE, read_parts, write_parts},
    AS_IS("extensions"),
};
static const dialect_kept message_kept[] = {
    {DIALECT_KEY("referenceTaskIds"), STR_INIT("referenceTaskIds")},
    {DIALECT_KEY("parts"), STR_INIT("")},
};
static const dialect_shape message_shape =
    DIALECT_SHAPE_KEEPING(message_rows, message_kept, keep_parts);

DIALECT_OBJECT(message, message_shape)

DIALECT_ARRAY(messages, message)

static const dialect_row artifact_rows[] = {
    {STR_INIT("artifactId"), STR_INIT("artifactId"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    AS_IS("name"),
    AS_IS("description"),
    {STR_INIT("parts"), STR_INIT("parts"), JSON_ARRAY, DIALECT_DUE, read_parts, write_parts},
    AS_IS("extensions"),
};
static const dialect_kept artifact_kept[] = {
    {DIALECT_KEY("parts"), STR_INIT("")},
};
static const dialect_shape artifact_shape =
    DIALECT_SHAPE_KEEPING(artifact_rows, artifact_kept, keep_parts);

DIALECT_OBJECT(artifact, artifact_shape)

DIALECT_ARRAY(artifacts, artifact)

static void turn_state(dialect *self, json_val value, bay_str from, bay_str to)
{
    if (json_str_eq(value, from)) {
        json_put_str(&self->to, to);
    } else {
        json_put_val(&self->to, value);
    }
}

static void read_state(dialect *self, json_val value)
{
    turn_state(self, value, STR("TASK_STATE_CANCELLED"), STR("TASK_STATE_CANCELED"));
}

static void write_state(dialect *self, json_val value)
{
    turn_state(self, value, STR("TASK_STATE_CANCELED"), STR("TASK_STATE_CANCELLED"));
}

static const dialect_row status_rows[] = {
    BOTH("state", read_state, write_state),
    BOTH("message", read_message, write_message),
    AS_IS("timestamp"),
};
static const dialect_shape status_shape = DIALECT_SHAPE(status_rows);

DIALECT_OBJECT(status, status_shape)

static const dialect_row task_rows[] = {
    {STR_INIT("id"), STR_INIT("id"), JSON_STRING, DIALECT_DUE, NULL, NULL},
    AS_IS("contextId"),
    {STR_INIT("status"), STR_INIT("status"), JSON_OBJECT, DIALECT_DUE, read_status, write_status},
    BOTH("artifacts", read_artifacts, write_artifacts),
    BOTH("history", read_messages, write_messages),
    AS_IS("metadata"),
};
static const dialect_shape task_shape = DIALECT_SHAPE(task_rows);

DIALECT_OBJECT(task, task_shape)

/* ---- events ------------------------------------------------------------------------------------
 */

static void read_final(dialect *self, json_val value)
{
    self->is_last = json_true(value);
}

static const dialect_row status_update_rows[] = {
    AS_IS("taskId"),
    AS_IS("contextId"),
    {STR_INIT("status"), STR_INIT("status"), JSON_OBJECT, DIALECT_DUE, read_status, write_status},
    {STR_INIT("final"), STR_INIT(""), JSON_TRUE, DIALECT_OWN_KEY, read_final, NULL},
    AS_IS("metadata"),
};
static const dialect_shape status_update_shape = DIALECT_SHAPE(status_update_rows);

static const dialect_row artifact_update_rows[] = {
    AS_IS("taskId"),
    AS_IS("contextId"),
    {STR_INIT("artifact"), STR_INIT("artifact"), JSON_OBJECT, DIALECT_DUE, read_artifact,
     write_artifact},
    AS_IS("append"),
    AS_IS("lastChunk"),
    AS_IS("metadata"),
};
static const dialect_shape artifact_update_shape = DIALECT_SHAPE(artifact_update_rows);

static void read_status_update(dialect *self, json_val value)
{
    dialect_read_object(self, &status_update_shape, value);
}

static void write_status_update(dialect *self, json_val value)
{
    json_open_object(&self->to);
    dialect_write_members(self, &status_update_shape, value);
    if (self->is_last) {
        json_key_lit(&self->to, "final");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
}

DIALECT_OBJECT(artifact_update, artifact_update_shape)

static const dialect_row event_rows[] = {
    BOTH("task", read_task, write_task),
    BOTH("message", read_message, write_message),
    BOTH("statusUpdate", read_status_update, write_status_update),
    BOTH("artifactUpdate", read_artifact_update, write_artifact_update),
};
static const dialect_shape event_shape = DIALECT_SHAPE(event_rows);

DIALECT_OBJECT(event, event_shape)

/* ---- names -------------------------------------------------------------------------------------
 */

typedef struct resource {
    bay_str task;
    bay_str config; /* "": not in the name */
} resource;

static const bay_str tasks_prefix = STR_INIT("tasks/");
static const bay_str configs_infix = STR_INIT("/pushNotificationConfigs");

/* "tasks/ID" and an optional suffix. An id may contain '/': the infix decides, not the next slash.
 */
static bool read_name(dialect *self, json_val object, bay_str member, resource *out)
{
    bay_str text;
    json_val value = json_get(object, member);
    if (!dialect_is_there(value)) {
        dialect_refuse(self, member, "is required");
        return false;
    }
    if (!dialect_text(self, value, &text)) {
        return false;
    }
    resource made = {str_from(text, tasks_prefix.len), {"", 0}};
    for (size_t i = 0; i + configs_infix.len <= made.task.len; i++) {
        if (str_starts(str_from(made.task, i), configs_infix)) {
            bay_str after = str_from(made.task, i + configs_infix.len);
            if (after.len == 0 || after.at[0] == '/') {
                made.config = str_from(after, 1);
                made.task = str_head(made.task, i);
                break;
            }
        }
    }
    if (!str_starts(text, tasks_prefix) || made.task.len == 0) {
        dialect_refuse(self, member, "must be tasks/ID");
        return false;
    }
    *out = made;
    return true;
}

static void put_str_member(dialect *self, bay_str name, bay_str text)
{
    json_key(&self->to, name);
    json_put_str(&self->to, text);
}

/* "tasks/TASK" or "tasks/TASK/pushNotificationConfigs/CONFIG". */
static void put_name(dialect *self, bay_str member, json_val task, json_val config)
{
    bay_str task_id = STR("");
    bay_str config_id = STR("");
    bool has_config = !json_is(config, JSON_MISSING);
    if (!dialect_text(self, task, &task_id) ||
        (has_config && !dialect_text(self, config, &config_id))) {
        return;
    }
    buf name;
    buf_init(&name, task_id.len + config_id.len + 64);
    buf_str(&name, tasks_prefix);
    buf_str(&name, task_id);
    if (has_config) {
        buf_str(&name, configs_infix);
        buf_char(&name, '/');
        buf_str(&name, config_id);
    }
    put_str_member(self, member, buf_view(&name));
    if (name.err != BAY_OK && self->err == BAY_OK) {
        self->err = name.err;
    }
    buf_fini(&name);
}

/* ---- params ------------------------------------------------------------------------------------
 */

static void read_configuration(dialect *self, json_val value)
{
    bool waits = json_true(json_get(value, STR("blocking")));
    if (waits && json_count(value) == 1) {
        return; /* only the default */
    }
    json_key_lit(&self->to, "configuration");
    json_open_object(&self->to);
    dialect_copy(self, value, STR("acceptedOutputModes"), STR("acceptedOutputModes"));
    dialect_copy(self, value, STR("historyLength"), STR("historyLength"));
    json_val push = json_get(value, STR("pushNotification"));
    if (dialect_is_there(push)) {
        json_key_lit(&self->to, "taskPushNotificationConfig");
        dialect_read_push(self, push);
    }
    if (!waits) {
        json_key_lit(&self->to, "returnImmediately");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
}

static const dialect_row send_rows[] = {
    {STR_INIT("message"), STR_INIT("message"), JSON_OBJECT, DIALECT_DUE, read_message,
     write_message},
    {STR_INIT("configuration"), STR_INIT(""), JSON_OBJECT, DIALECT_OWN_KEY, read_configuration,
     NULL},
    AS_IS("metadata"),
};
static const dialect_shape send_shape = DIALECT_SHAPE(send_rows);

static void read_send(dialect *self, json_val value)
{
    dialect_read_object(self, &send_shape, value);
}

static void write_send(dialect *self, json_val value)
{
    json_val configuration = json_get(value, STR("configuration"));
    json_open_object(&self->to);
    dialect_write_members(self, &send_shape, value);
    json_key_lit(&self->to, "configuration");
    json_open_object(&self->to);
    dialect_copy(self, configuration, STR("acceptedOutputModes"), STR("acceptedOutputModes"));
    dialect_copy(self, configuration, STR("historyLength"), STR("historyLength"));
    json_val push = json_get(configuration, STR("taskPushNotificationConfig"));
    if (dialect_is_there(push)) {
        json_key_lit(&self->to, "pushNotification");
        dialect_write_push(self, push);
    }
    if (!json_true(json_get(configuration, STR("returnImmediately")))) {
        json_key_lit(&self->to, "blocking");
        json_put_bool(&self->to, true);
    }
    dialect_close_object(self);
    dialect_close_object(self);
}

static void read_named_task(dialect *self, json_val value)
{
    resource name;
    if (read_name(self, value, STR("name"), &name)) {
        json_open_object(&self->to);
        put_str_member(self, STR("id"), name.task);
        dialect_copy(self, value, STR("historyLength"), STR("historyLength"));
        dialect_close_object(self);
    }
}

static void write_named_task(dialect *self, json_val value)
{
    json_open_object(&self->to);
    put_name(self, STR("name"), json_get(value, STR("id")), JSON_NONE);
    dialect_copy(self, value, STR("historyLength"), STR("historyLength"));
    dialect_close_object(self);
}

static void read_named_config(dialect *self, json_val value)
{
    resource name;
    if (read_name(self, value, STR("name"), &name)) {
        json_open_object(&self->to);
        put_str_member(self, STR("taskId"), name.task);
        put_str_member(self, STR("id"), name.config.len > 0 ? name.config : name.task);
        dialect_close_object(self);
    }
}

static void write_named_config(dialect *self, json_val value)
{
    json_open_object(&self->to);
    put_name(self, STR("name"), json_get(value, STR("taskId")), json_get(value, STR("id")));
    dialect_close_object(self);
}

static void read_configs_of(dialect *self, json_val value)
{
    resource name;
    if (read_name(self, value, STR("parent"), &name)) {
        json_open_object(&self->to);
        put_str_member(self, STR("taskId"), name.task);
        dialect_copy(self, value, STR("pageSize"), STR("pageSize"));
        dialect_copy(self, value, STR("pageToken"), STR("pageToken"));
        dialect_close_object(self);
    }
}

static void write_configs_of(dialect *self, json_val value)
{
    json_open_object(&self->to);
    put_name(self, STR("parent"), json_get(value, STR("taskId")), JSON_NONE);
    dialect_copy(self, value, STR("pageSize"), STR("pageSize"));
    dialect_copy(self, value, STR("pageToken"), STR("pageToken"));
    dialect_close_object(self);
}

/* The flat configuration: its task, and its id unless it has one itself. */
static void put_config(dialect *self, json_val config, bay_str task, bay_str id)
{
    json_open_object(&self->to);
    put_str_member(self, STR("taskId"), task);
    if (!dialect_is_there(json_get(config, STR("id")))) {
        put_str_member(self, STR("id"), id.len > 0 ? id : task);
    }
    const dialect_place here = {self->place, STR("pushNotificationConfig"), 0};
    self->place = &here;
    dialect_read_push_members(self, config);
    self->place = here.outer;
    dialect_close_object(self);
}

/* The configuration in the request to create one; `id` may be empty. */
static void read_created(dialect *self, json_val config, bay_str task, bay_str id)
{
    json_val inside = json_get(config, STR("pushNotificationConfig"));
    resource inner = {{"", 0}, {"", 0}};
    if (!dialect_is_there(inside)) {
        dialect_refuse(self, STR("pushNotificationConfig"), "is required");
    } else if (id.len == 0 && dialect_is_there(json_get(config, STR("name")))) {
        (void)read_name(self, config, STR("name"), &inner);
    }
    if (self->err == BAY_OK) {
        put_config(self, inside, task, id.len > 0 ? id : inner.config);
    }
}

static void read_create(dialect *self, json_val value)
{
    resource name;
    const dialect_place here = {self->place, STR("config"), 0};
    bay_str id = STR("");
    json_val config_id = json_get(value, STR("configId"));
    if (read_name(self, value, STR("parent"), &name) &&
        (!dialect_is_there(config_id) || dialect_text(self, config_id, &id))) {
        self->place = &here;
        read_created(self, json_get(value, STR("config")), name.task, id);
        self->place = here.outer;
    }
}

static void write_config(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_val id = json_get(value, STR("id"));
    put_name(self, STR("name"), json_get(value, STR("taskId")),
             dialect_is_there(id) ? id : json_get(value, STR("taskId")));
    json_key_lit(&self->to, "pushNotificationConfig");
    dialect_write_push(self, value);
    dialect_close_object(self);
}

static void write_create(dialect *self, json_val value)
{
    json_open_object(&self->to);
    put_name(self, STR("parent"), json_get(value, STR("taskId")), JSON_NONE);
    dialect_copy(self, value, STR("id"), STR("configId"));
    json_key_lit(&self->to, "config");
    write_config(self, value);
    dialect_close_object(self);
}

/* ---- results -----------------------------------------------------------------------------------
 */

static void read_config(dialect *self, json_val value)
{
    resource name;
    json_val inside = json_get(value, STR("pushNotificationConfig"));
    if (!dialect_is_there(inside)) {
        dialect_refuse(self, STR("pushNotificationConfig"), "is required");
    } else if (read_name(self, value, STR("name"), &name)) {
        put_config(self, inside, name.task, name.config);
    }
}

static void read_configs(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "configs");
    dialect_each(self, json_get(value, STR("configs")), read_config);
    dialect_copy(self, value, STR("nextPageToken"), STR("nextPageToken"));
    dialect_close_object(self);
}

static void write_configs(dialect *self, json_val value)
{
    json_open_object(&self->to);
    json_key_lit(&self->to, "configs");
    dialect_each(self, json_get(value, STR("configs")), write_config);
    dialect_copy(self, value, STR("nextPageToken"), STR("nextPageToken"));
    dialect_close_object(self);
}

const dialect_forms dialect_forms_0_3_proto = {
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
            [A2A_GET_TASK] = read_named_task,
            [A2A_CANCEL_TASK] = read_named_task,
            [A2A_SUBSCRIBE_TO_TASK] = read_named_task,
            [A2A_CREATE_PUSH_CONFIG] = read_create,
            [A2A_GET_PUSH_CONFIG] = read_named_config,
            [A2A_LIST_PUSH_CONFIGS] = read_configs_of,
            [A2A_DELETE_PUSH_CONFIG] = read_named_config,
            [A2A_GET_EXTENDED_CARD] = dialect_nothing,
        },
    .write_params =
        {
            [A2A_SEND_MESSAGE] = write_send,
            [A2A_SEND_STREAMING_MESSAGE] = write_send,
            [A2A_GET_TASK] = write_named_task,
            [A2A_CANCEL_TASK] = write_named_task,
            [A2A_SUBSCRIBE_TO_TASK] = write_named_task,
            [A2A_CREATE_PUSH_CONFIG] = write_create,
            [A2A_GET_PUSH_CONFIG] = write_named_config,
            [A2A_LIST_PUSH_CONFIGS] = write_configs_of,
            [A2A_DELETE_PUSH_CONFIG] = write_named_config,
            [A2A_GET_EXTENDED_CARD] = dialect_nothing,
        },
    .read_result =
        {
            [A2A_SEND_MESSAGE] = read_event,
            [A2A_GET_TASK] = read_task,
            [A2A_CANCEL_TASK] = read_task,
            [A2A_CREATE_PUSH_CONFIG] = read_config,
            [A2A_GET_PUSH_CONFIG] = read_config,
            [A2A_LIST_PUSH_CONFIGS] = read_configs,
            [A2A_DELETE_PUSH_CONFIG] = dialect_nothing,
            [A2A_GET_EXTENDED_CARD] = dialect_read_card_v1,
        },
    .write_result =
        {
            [A2A_SEND_MESSAGE] = write_event,
            [A2A_GET_TASK] = write_task,
            [A2A_CANCEL_TASK] = write_task,
            [A2A_CREATE_PUSH_CONFIG] = write_config,
            [A2A_GET_PUSH_CONFIG] = write_config,
            [A2A_LIST_PUSH_CONFIGS] = write_configs,
            [A2A_DELETE_PUSH_CONFIG] = dialect_nothing,
            [A2A_GET_EXTENDED_CARD] = dialect_write_card_v1,
        },
};
