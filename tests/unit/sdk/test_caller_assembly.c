/* A task put together from the events of its stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "sdk/caller_parts.h"
#include "support/failing_memory.h"

#define IDS "\"taskId\":\"t\",\"contextId\":\"c\""
#define CHUNK(id, text, more)                                                                      \
    "{\"artifactUpdate\":{" IDS ",\"artifact\":{\"artifactId\":\"" id                              \
    "\",\"name\":\"n\",\"parts\":[{\"text\":\"" text "\"}]}" more "}}"
#define STATUS(state) "{\"statusUpdate\":{" IDS ",\"status\":{\"state\":\"" state "\"}}}"
#define ARTIFACT(id, parts) "{\"artifactId\":\"" id "\",\"name\":\"n\",\"parts\":[" parts "]}"
#define PART(text) "{\"text\":\"" text "\"}"

static bay_err add(caller_assembly *self, const char *event)
{
    json_doc doc;
    arena memory;
    arena_init(&memory, 1 << 20);
    bay_err err = json_parse(&doc, str_of(event), NULL, &memory, NULL);
    err = err == BAY_OK ? sdk_assembly_add(self, json_root(&doc)) : err;
    arena_fini(&memory);
    return err;
}

/* What a row of events becomes; NULL: nothing. */
static void becomes(const char *const *events, const char *wanted)
{
    json_val whole;
    json_builder made;
    caller_assembly *self = sdk_assembly_new();
    for (; *events != NULL; events++) {
        assert_int_equal(add(self, *events), BAY_OK);
    }
    bay_err err = sdk_assembly_write(self, json_builder_init(&made, NULL, 1 << 20));
    assert_int_equal(err, wanted != NULL ? BAY_OK : BAY_ERR_NOT_FOUND);
    if (wanted != NULL) {
        assert_int_equal(json_builder_view(&made, &whole), BAY_OK);
        if (!str_eq(json_raw(whole), str_of(wanted))) {
            fail_msg("%.*s", BAY_STR(json_raw(whole)));
        }
    }
    json_builder_drop(&made);
    sdk_assembly_free(self);
}

static void events_become_a_task(void **state)
{
    (void)state;
    becomes((const char *const[]){NULL}, NULL);
    becomes((const char *const[]){"{\"message\":{\"messageId\":\"m\"}}", NULL},
            "{\"message\":{\"messageId\":\"m\"}}");
    /* a stream that began without its task */
    becomes((const char *const[]){STATUS("X"), NULL},
            "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"X\"}}}");
    becomes((const char *const[]){CHUNK("a", "1", ""), NULL},
            "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":"
            "\"TASK_STATE_UNSPECIFIED\"},\"artifacts\":[" ARTIFACT("a", PART("1")) "]}}");
    /* chunks go behind each other, or in the place of what was there */
    becomes((const char *const[]){CHUNK("a", "1", ""), CHUNK("b", "2", ""),
                                  CHUNK("a", "3", ",\"append\":true"), CHUNK("b", "4", ""),
                                  STATUS("X"), NULL},
            "{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"X\"},"
            "\"artifacts\":[" ARTIFACT("a", PART("1") "," PART("3")) "," ARTIFACT("b",
                                                                                  PART("4")) "]}}");
    /* a task in the middle is the truth */
    becomes((const char *const[]){CHUNK("a", "1", ""),
                                  "{\"task\":{\"id\":\"t\",\"metadata\":{},\"status\":{\"state\":"
                                  "\"Y\"},\"artifacts\":[" ARTIFACT("z", PART("9")) "]}}",
                                  CHUNK("z", "8", ",\"append\":true"), NULL},
            "{\"task\":{\"id\":\"t\",\"metadata\":{},\"status\":{\"state\":\"Y\"},\"artifacts\":"
            "[" ARTIFACT("z", PART("9") "," PART("8")) "]}}");
}

static void memory_may_fail(void **state)
{
    (void)state;
    for (size_t at = 0; failing_memory_start(at); at++) {
        json_val whole;
        json_builder made;
        json_writer *out = json_builder_init(&made, NULL, 1 << 20);
        caller_assembly *self = sdk_assembly_new();
        if (self != NULL) {
            bay_err err = add(self, CHUNK("a", "1", ""));
            err = err == BAY_OK ? add(self, CHUNK("a", "2", ",\"append\":true")) : err;
            err = err == BAY_OK ? add(self, STATUS("X")) : err;
            err = err == BAY_OK ? sdk_assembly_write(self, out) : err;
            err = err == BAY_OK ? json_builder_view(&made, &whole) : err;
            assert_true(err == BAY_OK || err == BAY_ERR_NOMEM);
        }
        sdk_assembly_free(self);
        json_builder_drop(&made);
        failing_memory_check();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_become_a_task),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
