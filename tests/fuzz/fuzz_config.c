/* The configuration loader on any text: no crash, no leak, no hang; a report for every refusal; and
 * no message that shows what a variable held. */
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool lookup(void *context, bay_str name, bay_str *out)
{
    (void)context;
    *out = STR("s3cr3t-value");
    return name.len % 2 == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const config *self = NULL;
    config_report report;
    bay_str text = {(const char *)data, size};
    bay_err err = config_load_text(text, STR("fuzz"), lookup, NULL, &self, &report);
    if ((err == BAY_OK) != (report.errors == 0) || (err == BAY_OK) != (self != NULL)) {
        abort();
    }
    for (size_t i = 0; i < report.count; i++) {
        if (strstr(report.messages[i].text, "s3cr3t") != NULL &&
            memmem(data, size, "s3cr3t", 6) == NULL) {
            abort();
        }
    }
    for (size_t i = 0; self != NULL && i < self->server_count; i++) {
        if (!config_equal_server(&self->servers[i], &self->servers[i]) ||
            config_server_find(self, self->servers[i].name) != &self->servers[i]) {
            abort();
        }
    }
    config_free(self);
    return 0;
}
