/* Detects era and revision. server/discover comes first; any answer that is not modern means
 * legacy, and initialize decides. A remembered revision is used until the server shows another; a
 * doubt costs one new probe, and calls that were certainly not executed are sent again. Source: mcp
 * 2026-07-28 basic/versioning, Backward Compatibility; basic/transports/stdio and streamable-http,
 * Backward Compatibility. */
#include <stdio.h>

#include "base/log.h"
#include "mcp/client_internal.h"

static bool may_speak(const mcp_client *self, mcp_era era)
{
    for (int i = (int)self->oldest; i <= (int)self->newest; i++) {
        if (mcp_revision_of((mcp_revision_id)i)->era == era) {
            return true;
        }
    }
    return false;
}

static const mcp_revision *newest_of(const mcp_client *self, mcp_era era)
{
    for (int i = (int)self->newest; i >= (int)self->oldest; i--) {
        if (mcp_revision_of((mcp_revision_id)i)->era == era) {
            return mcp_revision_of((mcp_revision_id)i);
        }
    }
    return NULL;
}

const mcp_revision *mcp_client_detect_pick(const mcp_client *self, json_val versions, mcp_era era)
{
    for (int i = (int)self->newest; i >= (int)self->oldest; i--) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)i);
        json_iter iter = json_iter_of(versions);
        while (revision->era == era && json_next(&iter)) {
            if (json_str_eq(iter.value, revision->text)) {
                return revision;
            }
        }
    }
    return NULL;
}

static bool is_modern_error(int code)
{
    return code == MCP_HEADER_MISMATCH || code == MCP_MISSING_CAPABILITY ||
           code == MCP_UNSUPPORTED_VERSION;
}

bay_err mcp_client_detect_status_err(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 407:
        return BAY_ERR_DENIED;
    case 408:
    case 504:
        return BAY_ERR_TIMEOUT;
    case 413:
        return BAY_ERR_LIMIT;
    case 429:
    case 503:
        return BAY_ERR_BUSY;
    default:
        return status >= 500 ? BAY_ERR_CLOSED : BAY_ERR_PROTOCOL;
    }
}

void mcp_client_detect_status_text(int status, char *out, size_t size)
{
    if (mcp_client_detect_status_err(status) == BAY_ERR_DENIED) {
        snprintf(out, size,
                 "the server refused access (HTTP status %d): give it credentials that it accepts, "
                 "in an Authorization header field",
                 status);
    } else {
        snprintf(out, size, "the server answered HTTP status %d", status);
    }
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void no_version(mcp_client *self, const char *what, json_val said)
{
    char text[CLIENT_TEXT];
    bay_str raw = str_head(json_raw(said), 96);
    snprintf(text, sizeof(text), "%s; this client speaks %.*s to %.*s%s%.*s", what,
             BAY_STR(mcp_revision_of(self->oldest)->text),
             BAY_STR(mcp_revision_of(self->newest)->text), raw.len > 0 ? ", the server said " : "",
             BAY_STR(raw));
    mcp_client_break(self, BAY_ERR_VERSION, text, false);
}

uint32_t mcp_client_start_left(const mcp_client *self)
{
    if (self->start_timeout_ms == 0) {
        return self->call_timeout_ms;
    }
    return self->start_by_ms > self->now_ms ? (uint32_t)(self->start_by_ms - self->now_ms) : 1;
}

void mcp_client_detect_probe(mcp_client *self, const mcp_revision *version)
{
    if (version == NULL) {
        no_version(self, "no modern revision may be spoken", JSON_NONE);
        return;
    }
    mcp_client_set_state(self, MCP_CLIENT_PROBING);
    self->has_probed = true;
    self->is_probe_unheard = false;
    self->probes++;
    self->probed_version = version;
    bay_err err;
    /* Only if silence would mean a legacy server, the probe does not wait for its full time: a
     * process may take long to start. */
    bool is_hasty = !mcp_client_is_http(self) && may_speak(self, MCP_LEGACY);
    uint32_t left_ms = mcp_client_start_left(self);
    uint32_t half_ms = left_ms / 2 + 1; /* the other half is for initialize */
    uint32_t hasty_ms = self->start_timeout_ms > 0 && half_ms < self->probe_timeout_ms
                            ? half_ms
                            : self->probe_timeout_ms;
    self->probe = mcp_call_start(self, CALL_PROBE, MCP_DISCOVER, JSON_NONE, version,
                                 is_hasty && hasty_ms < left_ms ? hasty_ms : left_ms, &err);
    if (self->probe == NULL) {
        mcp_client_break(self, err, "server/discover could not be sent", false);
    }
}

/* The server is modern: from now on each request is independent. */
static void become_modern(mcp_client *self, const mcp_revision *version)
{
    self->revision = version;
    buf_clear(&self->session);
    mcp_client_become_ready(self);
}

static void begin_legacy(mcp_client *self)
{
    if (!may_speak(self, MCP_LEGACY)) {
        no_version(self, "the server does not speak a modern revision", JSON_NONE);
        return;
    }
    mcp_client_legacy_initialize(self, newest_of(self, MCP_LEGACY));
}

void mcp_client_detect_begin(mcp_client *self)
{
    const mcp_revision *known = self->remembered;
    self->has_probed = self->is_probe_unheard = false;
    self->is_confirmed = false;
    self->probes = self->proposals = 0;
    if (known != NULL && (known->id < self->oldest || known->id > self->newest)) {
        known = NULL;
    }
    if (self->kind == MCP_LINK_SSE_2024) {
        /* the transport of 2024-11-05, on which servers also use later revisions */
        begin_legacy(self);
    } else if (known != NULL && known->era == MCP_MODERN) {
        become_modern(self, known);
    } else if (known != NULL || self->fears_probe || !may_speak(self, MCP_MODERN)) {
        begin_legacy(self);
    } else {
        mcp_client_detect_probe(self, newest_of(self, MCP_MODERN));
    }
}

/* ---- what the probe brought ------------------------------------------------------------------ */

static void probed_result(mcp_client *self, const mcp_outcome *outcome)
{
    json_val versions = json_get(outcome->result, STR("supportedVersions"));
    if (!json_is(versions, JSON_ARRAY)) {
        begin_legacy(self); /* not a DiscoverResult: a server that answers everything */
        return;
    }
    const mcp_revision *version = mcp_client_detect_pick(self, versions, MCP_MODERN);
    if (version == NULL) {
        version = mcp_client_detect_pick(self, versions, MCP_LEGACY);
        if (version == NULL) {
            no_version(self, "no revision in common", versions);
        } else {
            mcp_client_legacy_initialize(self, version);
        }
        return;
    }
    bay_err err = mcp_client_learn(self, outcome->result);
    if (err != BAY_OK) {
        mcp_client_break(self, err, "the answer to server/discover could not be kept", false);
        return;
    }
    self->is_confirmed = true;
    become_modern(self, version);
}

static void probed_unsupported(mcp_client *self, json_val error)
{
    json_val supported = json_get(json_get(error, STR("data")), STR("supported"));
    const mcp_revision *version = mcp_client_detect_pick(self, supported, MCP_MODERN);
    if (version != NULL && self->probes < CLIENT_MAX_PROBES) {
        mcp_client_detect_probe(self, version);
        return;
    }
    version = version == NULL ? mcp_client_detect_pick(self, supported, MCP_LEGACY) : NULL;
    if (version != NULL) {
        mcp_client_legacy_initialize(self, version);
        return;
    }
    no_version(self, "no revision in common", supported);
}

static void probed_failure(mcp_client *self, const mcp_call *call, const mcp_outcome *outcome)
{
    char text[CLIENT_TEXT];
    bool is_refused =
        call->status >= 400 && mcp_client_detect_status_err(call->status) != BAY_ERR_PROTOCOL;
    if (is_refused || call->status >= 500) {
        mcp_client_detect_status_text(call->status, text, sizeof(text));
        mcp_client_break(self, mcp_client_detect_status_err(call->status), text, false);
        return;
    }
    /* Silence on a duplex link, or an answer that is invalid. */
    bool is_silence = (outcome->err == BAY_ERR_TIMEOUT || outcome->err == BAY_ERR_PROTOCOL) &&
                      !mcp_client_is_http(self) && may_speak(self, MCP_LEGACY);
    bool is_other =
        call->status != 0 && (outcome->err == BAY_ERR_PROTOCOL || outcome->err == BAY_ERR_CLOSED);
    if (is_silence || is_other) {
        self->is_probe_unheard = is_silence && outcome->err == BAY_ERR_TIMEOUT;
        begin_legacy(self);
        return;
    }
    mcp_client_break(self, outcome->err, outcome->text, false);
}

void mcp_client_detect_probed(mcp_client *self, mcp_call *call, const mcp_outcome *outcome)
{
    if (call != self->probe) {
        return;
    }
    self->probe = NULL;
    bool is_denied =
        call->status >= 400 && mcp_client_detect_status_err(call->status) == BAY_ERR_DENIED;
    if (outcome->kind == MCP_OUTCOME_RESULT) {
        probed_result(self, outcome);
    } else if (outcome->kind == MCP_OUTCOME_FAILED || is_denied) {
        probed_failure(self, call, outcome);
    } else if (outcome->error_code == MCP_UNSUPPORTED_VERSION) {
        probed_unsupported(self, outcome->error);
    } else if (is_modern_error(outcome->error_code)) {
        /* The server is certainly modern; each caller gets the error of its own request. */
        LOG(LOG_WARN, "mcp", "%s: the server answered server/discover with error %d", self->label,
            outcome->error_code);
        self->is_confirmed = true;
        become_modern(self, self->probed_version);
    } else {
        begin_legacy(self);
    }
}

/* ---- what initialize brought ----------------------------------------------------------------- */

/* The server may have been upgraded, or it was slow to start: some servers of both eras that read a
 * late probe first refuse initialize permanently. True: a probe is sent. */
static bool probe_instead(mcp_client *self)
{
    bool has_heard = self->has_probed && !self->is_probe_unheard;
    if (has_heard || self->probes >= CLIENT_MAX_PROBES || self->kind == MCP_LINK_SSE_2024 ||
        !may_speak(self, MCP_MODERN)) {
        return false;
    }
    mcp_client_detect_probe(self, newest_of(self, MCP_MODERN));
    return true;
}

static void initialized_result(mcp_client *self, const mcp_outcome *outcome)
{
    json_val text = json_get(outcome->result, STR("protocolVersion"));
    const mcp_revision *version = NULL;
    for (int i = (int)self->oldest; i <= (int)self->newest; i++) {
        const mcp_revision *revision = mcp_revision_of((mcp_revision_id)i);
        if (revision->era == MCP_LEGACY && json_str_eq(text, revision->text)) {
            version = revision;
        }
    }
    if (version == NULL) {
        no_version(self, "initialize brought no revision in common", text);
        return;
    }
    bay_err err = mcp_client_learn(self, outcome->result);
    if (err != BAY_OK) {
        mcp_client_break(self, err, "the answer to initialize could not be kept", false);
        return;
    }
    self->revision = version;
    self->is_confirmed = true;
    self->session_serial++;
    buf spare = self->session;
    self->session = self->next_session;
    self->next_session = spare;
    buf_clear(&self->next_session);
    mcp_client_notify(self, MCP_N_INITIALIZED, (bay_str){0});
    if (!self->is_dead && self->state == MCP_CLIENT_INITIALIZING) {
        mcp_client_become_ready(self);
    }
}

static void initialized_error(mcp_client *self, const mcp_outcome *outcome)
{
    if (probe_instead(self)) {
        return;
    }
    json_val data = json_get(outcome->error, STR("data"));
    const mcp_revision *version =
        mcp_client_detect_pick(self, json_get(data, STR("supported")), MCP_LEGACY);
    if (version != NULL && self->proposals < 2 && self->kind != MCP_LINK_SSE_2024) {
        mcp_client_legacy_initialize(self, version);
        return;
    }
    char text[CLIENT_TEXT];
    bay_str said = str_head(json_raw(json_get(outcome->error, STR("message"))), 160);
    snprintf(text, sizeof(text), "the server refused initialize: error %d, %.*s",
             outcome->error_code, BAY_STR(said));
    bool is_version = is_modern_error(outcome->error_code) || json_count(data) > 0;
    mcp_client_break(self, is_version ? BAY_ERR_VERSION : BAY_ERR_PROTOCOL, text, false);
}

static void initialized_failure(mcp_client *self, const mcp_call *call, const mcp_outcome *outcome)
{
    char text[CLIENT_TEXT];
    int status = call->status;
    if (status < 400 || outcome->err == BAY_ERR_TIMEOUT) {
        mcp_client_break(self, outcome->err, outcome->text, false);
        return;
    }
    bool is_refused = mcp_client_detect_status_err(status) != BAY_ERR_PROTOCOL;
    if (!is_refused && probe_instead(self)) {
        return;
    }
    /* mcp 2025-11-25 basic/transports, Backwards Compatibility: then it may be HTTP+SSE */
    bool may_be_sse = status == 400 || status == 404 || status == 405;
    if (may_be_sse && self->oldest == MCP_REV_2024_11_05 && self->ops.fall_back != NULL) {
        mcp_client_set_state(self, MCP_CLIENT_OPENING);
        self->ops.fall_back(self->link);
        return;
    }
    mcp_client_detect_status_text(status, text, sizeof(text));
    mcp_client_break(self, mcp_client_detect_status_err(status), text, false);
}

void mcp_client_detect_initialized(mcp_client *self, mcp_call *call, const mcp_outcome *outcome)
{
    if (call != self->probe) {
        return;
    }
    self->probe = NULL;
    bool is_denied =
        call->status >= 400 && mcp_client_detect_status_err(call->status) == BAY_ERR_DENIED;
    if (outcome->kind == MCP_OUTCOME_RESULT && call->fault != BAY_OK) {
        mcp_client_break(self, call->fault, "the server's Mcp-Session-Id is not visible ASCII",
                         false);
    } else if (outcome->kind == MCP_OUTCOME_RESULT) {
        initialized_result(self, outcome);
    } else if (outcome->kind == MCP_OUTCOME_FAILED || is_denied) {
        initialized_failure(self, call, outcome);
    } else {
        initialized_error(self, outcome);
    }
}

/* ---- doubts ---------------------------------------------------------------------------------- */

/* Whether a server of the known era and capabilities must have this method. */
static bool must_exist(const mcp_client *self, const mcp_method *method)
{
    if (method == NULL || !self->is_about_known) {
        return false;
    }
    return method->id == MCP_DISCOVER ||
           (method->capability.len > 0 && mcp_client_has(self, method->capability) &&
            method->id != MCP_COMPLETE);
}

/* Whether the error means that the request was not begun, so that it may be sent again. */
static bool is_unbegun(const mcp_call *call, int code)
{
    bool is_tool = call->method == NULL || call->method->id == MCP_TOOLS_CALL;
    return !is_tool || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST ||
           code == RPC_METHOD_NOT_FOUND || code == RPC_INVALID_PARAMS;
}

static bool looks_legacy(const mcp_call *call, int code)
{
    const mcp_client *self = call->client;
    int status = call->status;
    bool is_refused = status == 400 || status == 404 || status == 405;
    if (code == 0) {
        return is_refused; /* a modern server says why in JSON */
    }
    if (is_modern_error(code)) {
        return false;
    }
    if (!self->is_confirmed && (is_refused || is_unbegun(call, code))) {
        return true; /* only remembered: any such error is worth one probe */
    }
    if (code == RPC_METHOD_NOT_FOUND) {
        return must_exist(self, call->method);
    }
    return is_refused && code > RPC_INVALID_REQUEST; /* -32000 …: not a code of modern servers */
}

static void doubt(mcp_client *self)
{
    self->doubt_after_ms = self->now_ms + CLIENT_DOUBT_PAUSE_MS;
    self->has_probed = false;
    self->probes = self->proposals = 0;
    LOG(LOG_INFO, "mcp", "%s: the server seems to speak another revision now; asking it",
        self->label);
    mcp_client_legacy_close_stream(self);
    mcp_client_modern_close_listens(self, false);
    mcp_client_detect_probe(self, newest_of(self, MCP_MODERN));
}

bool mcp_client_detect_doubts(mcp_call *call, int error_code, json_val error)
{
    mcp_client *self = call->client;
    if (self->kind == MCP_LINK_SSE_2024 || call->purpose != CALL_USER) {
        return false;
    }
    /* The answer to a call that was sent in another era than the current one. */
    bool is_late = self->state != MCP_CLIENT_READY;
    bool is_modern = mcp_client_is_modern(self);
    if (!is_late && is_modern && error_code == MCP_UNSUPPORTED_VERSION) {
        return mcp_client_modern_retry_version(call, error);
    }
    bool is_other = is_modern ? looks_legacy(call, error_code) && may_speak(self, MCP_LEGACY)
                              : is_modern_error(error_code) && may_speak(self, MCP_MODERN);
    if (!is_other || (!is_late && self->now_ms < self->doubt_after_ms)) {
        return false;
    }
    if (!mcp_call_requeue(call)) {
        return false;
    }
    if (!is_late) {
        doubt(self);
    }
    return true;
}

void mcp_client_detect_doubt_silence(mcp_client *self)
{
    if (self->state == MCP_CLIENT_READY && mcp_client_is_modern(self) &&
        may_speak(self, MCP_LEGACY) && self->now_ms >= self->doubt_after_ms) {
        doubt(self);
    }
}
