/* A lock file that anybody edited: it is refused with a line, or what it says is written and read again unchanged. */
#include <stdint.h>

#include "base/check.h"
#include "base/str.h"
#include "trust/lock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const trust_lock *lock)
{
    buf once;
    buf twice;
    trust_lock again;
    bay_diag diag = {0};
    buf_init(&once, 64 << 20);
    buf_init(&twice, 64 << 20);
    trust_lock_init(&again);
    trust_lock_write(lock, &once);
    CHECK(once.err == BAY_OK);
    CHECK(trust_lock_read(&again, buf_view(&once), &diag) == BAY_OK);
    CHECK(again.count == lock->count && again.items == lock->items);
    trust_lock_write(&again, &twice);
    CHECK(twice.err == BAY_OK && str_eq(buf_view(&once), buf_view(&twice)));
    trust_lock_fini(&again);
    buf_fini(&once);
    buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trust_lock lock;
    bay_diag diag = {0};
    trust_lock_init(&lock);
    bay_err err = trust_lock_read(&lock, (bay_str){(const char *)data, size}, &diag);
    if (err == BAY_OK) {
        check_written(&lock);
        for (size_t i = 0; i < lock.count; i++) {
            trust_definitions all;
            trust_definitions_init(&all, lock.servers[i].name);
            CHECK(trust_pinned_definitions(&lock.servers[i], &all) == BAY_OK);
            trust_definitions_fini(&all);
        }
    } else {
        CHECK(diag.text[0] != '\0');
    }
    trust_lock_fini(&lock);
    return 0;
}
