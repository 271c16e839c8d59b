#include "gateway/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"
#include "evidence/audit_file.h"

struct gateway_evidence {
    const config *config; /* a reference */
    char replica[17];     /* this start of the process */
    audit_file *file;
    journal *audit; /* NULL: there is none */
    journal *access;
    metrics *metrics; /* NULL: nothing is counted */
    uint64_t wall_started_ms;
    int access_descriptor; /* -1: none is open */
    uint64_t access_lost;
    log_pace access_pace;
};

/* ---- the sinks -------------------------------------------------------------------------------- */

static bool write_audit(void *user, bay_str lines, uint64_t dropped)
{
    gateway_evidence *self = user;
    return audit_file_write(self->file, lines, dropped);
}

static void tick_audit(void *user)
{
    audit_file_tick(((gateway_evidence *)user)->file);
}

/* The access log is no evidence: what cannot be written is counted, and lost. */
static bool write_access(void *user, bay_str lines, uint64_t dropped)
{
    gateway_evidence *self = user;
    self->access_lost += dropped;
    while (lines.len > 0) {
        ssize_t sent = write(self->access_descriptor, lines.at, lines.len);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            self->access_lost++;
            break;
        }
        lines = str_from(lines, (size_t)sent);
    }
    if (self->access_lost > 0 &&
        log_write_paced(&self->access_pace, loop_time_ms(), LOG_WARN, "access",
                        "lines of the access log are lost: it cannot be written fast enough")) {
        self->access_lost = 0;
    }
    return true;
}

/* ---- what is configured ----------------------------------------------------------------------- */

static bool has_access(const gateway_options *options)
{
    const config_log *log = &options->config->log;
    return log->access == CONFIG_ACCESS_ON ||
           (log->access == CONFIG_ACCESS_AUTO && !options->on_stdio &&
            (options->is_watched || log->access_file.len > 0));
}

static bay_err open_audit(gateway_evidence *self, bay_diag *diag)
{
    const config_audit *settings = &self->config->audit;
    audit_file_options options = {.path = settings->file.at,
                                  .replica = str_of(self->replica),
                                  .part_bytes = settings->part_bytes,
                                  .keep_ms = (uint64_t)settings->keep_hours * 3600 * 1000,
                                  .wall_ms = loop_time_ms};
    journal_sink sink = {.write = write_audit, .idle = tick_audit, .user = self};
    bay_diag why = {0};
    bay_err err = audit_file_open(&options, &self->file, &why);
    if (err != BAY_OK) {
        return diag_set(diag, err, "audit: %s", why.text);
    }
    err = journal_new(&sink, &self->audit);
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "out of memory");
}

static bay_err open_access(gateway_evidence *self, bay_diag *diag)
{
    bay_str path = self->config->log.access_file;
    journal_sink sink = {.write = write_access, .user = self};
    self->access_descriptor = path.len > 0
                                  ? open(path.at, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
                                  : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (self->access_descriptor < 0) {
        return diag_set(diag, BAY_ERR_IO, "log.accessFile: %.*s: %s", BAY_STR(path),
                        strerror(errno));
    }
    bay_err err = journal_new(&sink, &self->access);
    return err == BAY_OK ? BAY_OK : diag_set(diag, err, "out of memory");
}

bay_err gateway_evidence_new(const gateway_options *options, gateway_evidence **out, bay_diag *diag)
{
    bool is_audited = options->config->audit.file.len > 0;
    bool is_accessed = has_access(options);
    bool is_counted = options->config->metrics.is_enabled;
    if (!is_audited && !is_accessed && !is_counted) {
        return BAY_OK;
    }
    gateway_evidence *self = mem_zalloc(sizeof(*self));
    if (self == NULL) {
        return diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    self->config = config_ref(options->config);
    self->access_descriptor = -1;
    self->wall_started_ms = loop_time_ms();
    (void)snprintf(self->replica, sizeof(self->replica), "%016" PRIx64, rand_u64());
    bay_err err = is_audited ? open_audit(self, diag) : BAY_OK;
    if (err == BAY_OK && is_accessed) {
        err = open_access(self, diag);
    }
    if (err == BAY_OK && is_counted && metrics_new(&self->metrics) != BAY_OK) {
        err = diag_set(diag, BAY_ERR_NOMEM, "out of memory");
    }
    if (err != BAY_OK) {
        gateway_evidence_free(self);
        return err;
    }
    *out = self;
    return BAY_OK;
}

void gateway_evidence_free(gateway_evidence *self)
{
    if (self == NULL) {
        return;
    }
    journal_free(self->audit);
    journal_free(self->access);
    audit_file_close(self->file);
    metrics_free(self->metrics);
    if (self->access_descriptor >= 0) {
        close(self->access_descriptor);
    }
    config_free(self->config);
    mem_free(self);
}

bool gateway_evidence_refuses(const gateway_evidence *self)
{
    return self != NULL && self->audit != NULL &&
           self->config->audit.on_failure == CONFIG_FAILURE_REFUSE;
}

bool gateway_evidence_write_metrics(gateway_evidence *self, bool is_open, buf *out)
{
    if (self == NULL || self->metrics == NULL) {
        return false;
    }
    metrics_process process = {.wall_started_ms = self->wall_started_ms,
                               .audit_dropped = journal_dropped(self->audit)};
    metrics_write(self->metrics, &process, is_open, out);
    return true;
}

bool gateway_evidence_is_same(const config *one, const config *other)
{
    const config_audit *a = &one->audit;
    const config_audit *b = &other->audit;
    return str_eq(a->file, b->file) && a->arguments == b->arguments &&
           a->part_bytes == b->part_bytes && a->keep_hours == b->keep_hours &&
           a->on_failure == b->on_failure && one->log.access == other->log.access &&
           str_eq(one->log.access_file, other->log.access_file) &&
           one->metrics.is_enabled == other->metrics.is_enabled &&
           str_eq(one->metrics.listen, other->metrics.listen);
}

/* ---- one loop's part -------------------------------------------------------------------------- */

bay_err worker_evidence_open(worker_evidence *self, gateway_evidence *of, uint32_t index, loop *on,
                             const seal_ring *const *ring)
{
    *self = (worker_evidence){.of = of, .loop = index, .ring = ring};
    if (of == NULL) {
        return BAY_OK;
    }
    if (of->audit != NULL) {
        journal_lane_open(&self->audit, of->audit, on);
    }
    if (of->access != NULL) {
        journal_lane_open(&self->access, of->access, on);
    }
    return of->metrics != NULL ? metrics_lane_open(&self->metrics, of->metrics) : BAY_OK;
}

void worker_evidence_close(worker_evidence *self)
{
    journal_lane_close(&self->audit);
    journal_lane_close(&self->access);
    metrics_lane_close(&self->metrics);
    self->of = NULL;
}

void worker_evidence_tick(worker_evidence *self)
{
    metrics_lane_flush(&self->metrics);
    if (self->audit.is_failing) {
        journal_lane_flush(&self->audit);
    }
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t (*worker_evidence_clock(const gateway_evidence *of))(void)
{
    return of != NULL ? clock_ns : NULL;
}

static void write_audit_line(worker_evidence *self, const evidence_record *record)
{
    arguments_form form = self->of->config->audit.arguments;
    call_context *call = (call_context *)record->call;
    bay_str digest = STR("");
    if (form == ARGUMENTS_DIGEST && call->memory != NULL) {
        err_ignore(call_arguments_digest(call, &digest)); /* without one: it says nothing of them */
    }
    buf *line = journal_lane_begin(&self->audit);
    evidence_write_members(record, form, digest, *self->ring, &self->clock, line);
    journal_lane_end(&self->audit);
}

void worker_evidence_record(worker_evidence *self, const call_context *call, call_outcome how)
{
    const gateway_evidence *of = self->of;
    char bytes[RECORD_ID_BYTES];
    buf id = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    buf_append(&id, of->replica, sizeof(of->replica) - 1);
    buf_char(&id, '-');
    buf_uint(&id, self->loop);
    buf_char(&id, '-');
    buf_uint(&id, ++self->number);
    evidence_record record;
    evidence_record_make(call, how, buf_view(&id), loop_time_ms(), clock_ns(), &record);
    metrics_lane_add(&self->metrics, &record);
    if (of->audit != NULL) {
        write_audit_line(self, &record);
    }
    if (of->access != NULL) {
        buf *line = journal_lane_begin(&self->access);
        if (of->config->log.format == CONFIG_LOG_JSON) {
            evidence_write_json(&record, &self->clock, line);
        } else {
            evidence_write_text(&record, &self->clock, line);
        }
        journal_lane_end(&self->access);
    }
}

void worker_evidence_event(worker_evidence *self, const char *kind, bay_str what,
                           const char *outcome)
{
    if (self->of != NULL && self->of->audit != NULL) {
        buf *line = journal_lane_begin(&self->audit);
        evidence_write_event(kind, what, outcome, loop_time_ms(), &self->clock, line);
        journal_lane_end(&self->audit);
    }
}

bool worker_evidence_admits(const worker_evidence *self, const call_context *call)
{
    static const bool reads[CALL_KINDS] = {
        [CALL_LIST] = true,       [CALL_PROMPT] = true, [CALL_RESOURCE] = true,
        [CALL_COMPLETION] = true, [CALL_CARD] = true,   [CALL_SUBSCRIPTION] = true,
    };
    return !self->audit.is_failing || reads[call->kind] || call->is_repeatable;
}
