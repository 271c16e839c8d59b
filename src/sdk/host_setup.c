/* What a program says about serving before it begins: TLS, hosts and origins. */
#include <stdarg.h>

#include "base/str.h"
#include "sdk/host_parts.h"

static void host_error(sdk_host *self, const char *format, ...) BAY_PRINTF(2, 3);

static void host_error(sdk_host *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    registration_error(self->owner.errors, format, arguments);
    va_end(arguments);
}

void host_init(sdk_host *self, const host_kind *kind, const host_owner *owner)
{
    *self = (sdk_host){.kind = kind, .owner = *owner, .drain_ms = HOST_DRAIN_MS};
    if (net_wakeup_init(&self->stop) != BAY_OK) {
        host_error(self, "%s_new: the process has no descriptor left", kind->prefix);
    }
}

void host_fini(sdk_host *self)
{
    net_wakeup_fini(&self->stop);
}

/* What is copied when a listener is made would not count for those that are there. */
static bool host_is_too_late(sdk_host *self, const char *function)
{
    bool is_late = self->serving != NULL && self->serving->had_ways;
    if (is_late) {
        host_error(self, "%s_%s: the %s is served already; this comes before", self->kind->prefix,
                   function, self->kind->noun);
    }
    return is_late;
}

static bay_str host_keep(sdk_host *self, const char *text)
{
    bay_str copy = STR("");
    if (text != NULL && arena_dup(self->owner.memory, str_of(text), &copy) != BAY_OK) {
        *self->owner.is_out_of_memory = true;
        copy = STR("");
    }
    return copy;
}

void host_add_text(sdk_host *self, host_texts *among, const char *function, const char *text)
{
    if (host_is_too_late(self, function)) {
        return;
    }
    bool is_full = among->count == HOST_TEXTS;
    if (is_full || text == NULL || text[0] == '\0') {
        host_error(self, "%s_%s: %s", self->kind->prefix, function,
                   is_full ? "there are too many" : "it is empty");
        return;
    }
    among->items[among->count++] = host_keep(self, text);
}

void host_allow_host(sdk_host *self, const char *name)
{
    host_add_text(self, &self->hosts, "allow_host", name);
}

void host_allow_origin(sdk_host *self, const char *origin)
{
    host_add_text(self, &self->origins, "allow_origin", origin);
}

void host_tls(sdk_host *self, const char *certificate_file, const char *key_file,
              const char *ca_file)
{
    if (host_is_too_late(self, "tls")) {
        return;
    }
    bool has_both = certificate_file != NULL && certificate_file[0] != '\0' && key_file != NULL &&
                    key_file[0] != '\0';
    if (!has_both) {
        host_error(self, "%s_tls: a certificate and its key are wanted", self->kind->prefix);
        return;
    }
    self->certificate_file = host_keep(self, certificate_file);
    self->key_file = host_keep(self, key_file);
    self->ca_file = host_keep(self, ca_file);
}
