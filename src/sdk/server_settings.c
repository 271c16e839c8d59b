/* Settings of a server: numbers with a default and a range, and which revisions it speaks. They are
 * read when serving begins. */
#include "base/check.h"
#include "base/str.h"
#include "sdk/server_parts.h"

typedef struct setting_row {
    const char *name;
    int64_t otherwise; /* the default */
    int64_t least;
    int64_t most;
    bool zero_means_zero; /* 0 is a value of its own, not the default */
} setting_row;

#define A_MONTH_MS (INT64_C(31) * 24 * 3600 * 1000)

static const setting_row rows[] = {
    [BAY_SERVER_SETTING_CALL_TIMEOUT_MS] = {"BAY_SERVER_SETTING_CALL_TIMEOUT_MS", 600000, 1,
                                            A_MONTH_MS, false},
    [BAY_SERVER_SETTING_QUESTION_TIMEOUT_MS] = {"BAY_SERVER_SETTING_QUESTION_TIMEOUT_MS", 600000, 1,
                                                A_MONTH_MS, false},
    [BAY_SERVER_SETTING_STATE_TTL_MS] = {"BAY_SERVER_SETTING_STATE_TTL_MS", 600000, 1, A_MONTH_MS,
                                         false},
    [BAY_SERVER_SETTING_LIST_TTL_MS] = {"BAY_SERVER_SETTING_LIST_TTL_MS", 300000, 0, A_MONTH_MS,
                                        true},
    [BAY_SERVER_SETTING_PAGE_SIZE] = {"BAY_SERVER_SETTING_PAGE_SIZE", 0, 0, SERVER_MAX_ENTRIES,
                                      true},
    [BAY_SERVER_SETTING_MAX_SESSIONS] = {"BAY_SERVER_SETTING_MAX_SESSIONS", 10000, 1, 1000000,
                                         false},
    [BAY_SERVER_SETTING_SESSION_IDLE_MS] = {"BAY_SERVER_SETTING_SESSION_IDLE_MS", 1800000, 1,
                                            A_MONTH_MS, false},
    [BAY_SERVER_SETTING_MAX_REQUESTS] = {"BAY_SERVER_SETTING_MAX_REQUESTS", 1024, 1, 1000000,
                                         false},
    [BAY_SERVER_SETTING_MAX_BODY_BYTES] = {"BAY_SERVER_SETTING_MAX_BODY_BYTES", 16 << 20, 1,
                                           1 << 30, false},
    [BAY_SERVER_SETTING_MAX_CONNECTIONS] = {"BAY_SERVER_SETTING_MAX_CONNECTIONS", 10000, 1, 1000000,
                                            false},
    [BAY_SERVER_SETTING_MAX_TASKS] = {"BAY_SERVER_SETTING_MAX_TASKS", 10000, 1, 1000000, false},
    [BAY_SERVER_SETTING_TASK_TTL_MS] = {"BAY_SERVER_SETTING_TASK_TTL_MS", 3600000, 1, A_MONTH_MS,
                                        false},
    [BAY_SERVER_SETTING_TASK_POLL_MS] = {"BAY_SERVER_SETTING_TASK_POLL_MS", 1000, 1, 3600000,
                                         false},
    [BAY_SERVER_SETTING_MAX_REPLY_BYTES] = {"BAY_SERVER_SETTING_MAX_REPLY_BYTES", 16 << 20, 1,
                                            INT64_C(1) << 40, false},
};
_Static_assert(ARRAY_LEN(rows) <= SERVER_SETTINGS, "server_parts.h has the room");
_Static_assert(A_MONTH_MS <= UINT32_MAX, "times of the engine are 32 bits");

/* What is kept is the value and one, so that a server of zeroes has the defaults. */
uint64_t sdk_server_setting(const bay_server *self, bay_server_setting setting)
{
    int64_t kept = self->settings[setting];
    return (uint64_t)(kept > 0 ? kept - 1 : rows[setting].otherwise);
}

void bay_server_set(bay_server *self, bay_server_setting setting, int64_t value)
{
    if (self == NULL) {
        return;
    }
    if ((size_t)setting >= ARRAY_LEN(rows)) {
        sdk_server_error(self, "bay_server_set: there is no setting number %d", (int)setting);
        return;
    }
    const setting_row *row = &rows[setting];
    if (value == 0 && !row->zero_means_zero) {
        self->settings[setting] = 0;
    } else if (value < row->least || value > row->most) {
        sdk_server_error(self, "bay_server_set: %s is %lld; it must be between %lld and %lld",
                         row->name, (long long)value, (long long)row->least, (long long)row->most);
    } else {
        self->settings[setting] = value + 1;
    }
}

static bool find_revision(bay_server *self, const char *text, mcp_revision_id *out)
{
    const mcp_revision *revision = mcp_revision_find(str_of(text));
    if (revision == NULL) {
        sdk_server_error(self, "bay_server_revisions: there is no revision \"%s\"", text);
        return false;
    }
    *out = revision->id;
    return true;
}

void bay_server_revisions(bay_server *self, const char *oldest, const char *newest)
{
    mcp_revision_id from = MCP_REV_2024_11_05;
    mcp_revision_id to = MCP_LATEST;
    if (self == NULL || (oldest != NULL && !find_revision(self, oldest, &from)) ||
        (newest != NULL && !find_revision(self, newest, &to))) {
        return;
    }
    if (from > to) {
        sdk_server_error(self, "bay_server_revisions: %s is newer than %s", oldest, newest);
        return;
    }
    self->oldest = from;
    self->newest = to;
}
