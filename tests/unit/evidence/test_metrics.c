/* Metrics: sums of all loops, names from the catalog alone and no more than there may be, and text
 * that parsers of both formats read (tools of others: tests/interop). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "evidence/metrics.h"

enum { TEXT_BYTES = 64 << 20 };

static void add(metrics_lane *lane, const char *server, const char *tool, call_outcome how,
                uint64_t duration_ms)
{
    call_context call = {.protocol = CALL_MCP,
                         .kind = CALL_TOOL,
                         .method = STR("tools/call"),
                         .shown = STR("whatever the caller wrote"),
                         .refused_for = CALL_DENIED,
                         .error_code = how == CALL_ERROR ? -32603 : 0,
                         .about = {.kind = tool[0] != '\0' ? POLICY_TOOL : POLICY_METHOD,
                                   .server = str_of(server),
                                   .name = str_of(tool)}};
    evidence_record record;
    evidence_record_make(&call, how, STR("id"), 0, duration_ms * 1000000, &record);
    metrics_lane_add(lane, &record);
}

static const char *text_of(metrics *all, bool is_open)
{
    static buf out;
    metrics_process process = {.audit_dropped = 3, .wall_started_ms = 1500};
    buf_fini(&out);
    buf_init(&out, TEXT_BYTES);
    metrics_write(all, &process, is_open, &out);
    buf_char(&out, '\0');
    assert_int_equal(out.err, BAY_OK);
    return out.at;
}

static void expect(const char *text, const char *line)
{
    char whole[600];
    (void)snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no line %s in\n%s", line, text);
    }
}

static void calls_of_all_loops_are_added(void **state)
{
    metrics *all = NULL;
    metrics_lane lanes[2];
    (void)state;
    assert_int_equal(metrics_new(&all), BAY_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(metrics_lane_open(&lanes[i], all), BAY_OK);
        add(&lanes[i], "s", "s.t", CALL_RESULT, 10);
        add(&lanes[i], "s", "s.t", CALL_RESULT, 11);
        add(&lanes[i], "s", "s.t", CALL_TOOL_ERROR, 400000);
        add(&lanes[i], "s", "s.t", CALL_ERROR, 1);
        add(&lanes[i], "s", "s.t", CALL_TURNED_AWAY, 0);
    }
    assert_null(strstr(text_of(all, false), "s.t")); /* not before a flush */
    metrics_lane_flush(&lanes[0]);
    metrics_lane_flush(&lanes[0]);
    metrics_lane_close(&lanes[1]);
    const char *text = text_of(all, false);
#define OF                                                                                         \
    "mcp_method_name=\"tools/call\",patchbay_server=\"s\",gen_ai_operation_name=\"execute_tool\"," \
    "gen_ai_tool_name=\"s.t\""
    expect(text, "mcp_server_operation_duration_seconds_bucket{" OF ",le=\"0.01\"} 2");
    expect(text, "mcp_server_operation_duration_seconds_bucket{" OF ",le=\"0.02\"} 4");
    expect(text, "mcp_server_operation_duration_seconds_bucket{" OF ",le=\"+Inf\"} 4");
    expect(text, "mcp_server_operation_duration_seconds_sum{" OF "} 0.042000000");
    expect(text, "mcp_server_operation_duration_seconds_count{" OF "} 4");
    expect(text, "mcp_server_operation_duration_seconds_bucket{" OF
                 ",error_type=\"tool_error\",le=\"300.0\"} 0");
    expect(text, "mcp_server_operation_duration_seconds_bucket{" OF
                 ",error_type=\"tool_error\",le=\"+Inf\"} 2");
    expect(text, "mcp_server_operation_duration_seconds_count{" OF
                 ",error_type=\"-32603\",rpc_response_status_code=\"-32603\"} 2");
    expect(text, "mcp_server_operation_duration_seconds_count{" OF ",error_type=\"denied\"} 2");
    expect(text, "patchbay_calls_total{server=\"s\",tool=\"s.t\",method=\"tools/call\","
                 "outcome=\"result\"} 4");
    expect(text, "patchbay_refusals_total{reason=\"denied\"} 2");
    expect(text, "patchbay_audit_dropped_total 3");
    expect(text, "process_start_time_seconds 1.500000000");
    metrics_lane_close(&lanes[0]);
    metrics_free(all);
}

/* What a caller invents resolves to nothing, so that it has no name here. */
static void invented_names_make_no_series(void **state)
{
    metrics *all = NULL;
    metrics_lane lane;
    (void)state;
    assert_int_equal(metrics_new(&all), BAY_OK);
    assert_int_equal(metrics_lane_open(&lane, all), BAY_OK);
    for (int i = 0; i < 100000; i++) {
        add(&lane, "", "", CALL_ERROR, 1);
    }
    metrics_lane_close(&lane);
    const char *text = text_of(all, false);
    expect(text,
           "patchbay_calls_total{server=\"\",tool=\"\",method=\"tools/call\",outcome=\"error\"} "
           "100000");
    assert_null(strstr(text, "whatever"));
    metrics_free(all);
}

static void too_many_names_are_counted_together(void **state)
{
    enum { MORE = 50 };
    metrics *all = NULL;
    metrics_lane lane;
    (void)state;
    assert_int_equal(metrics_new(&all), BAY_OK);
    assert_int_equal(metrics_lane_open(&lane, all), BAY_OK);
    for (int i = 0; i < METRICS_CELLS + MORE; i++) {
        char tool[32];
        (void)snprintf(tool, sizeof(tool), "s.t%d", i);
        add(&lane, "s", tool, CALL_RESULT, 1);
    }
    metrics_lane_close(&lane);
    const char *text = text_of(all, false);
    expect(text, "patchbay_series_dropped_total 50");
    expect(text, "patchbay_calls_total{server=\"_other\",tool=\"_other\",method=\"_other\","
                 "outcome=\"result\"} 50");
    metrics_free(all);
}

/* A server answers with ever new codes. */
static void ways_to_fail_are_bounded(void **state)
{
    metrics *all = NULL;
    metrics_lane lane;
    evidence_record record;
    (void)state;
    assert_int_equal(metrics_new(&all), BAY_OK);
    assert_int_equal(metrics_lane_open(&lane, all), BAY_OK);
    for (int i = 1; i <= 1000; i++) {
        call_context call = {.kind = CALL_TOOL, .method = STR("tools/call"), .error_code = i};
        evidence_record_make(&call, CALL_ERROR, STR("id"), 0, 1, &record);
        metrics_lane_add(&lane, &record);
    }
    metrics_lane_close(&lane);
    const char *text = text_of(all, false);
    expect(text, "mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\","
                 "patchbay_server=\"\",error_type=\"_other\"} 992");
    expect(text, "patchbay_calls_total{server=\"\",tool=\"\",method=\"tools/call\","
                 "outcome=\"error\"} 1000");
    metrics_free(all);
}

static void each_format_has_its_form(void **state)
{
    metrics *all = NULL;
    metrics_lane lane;
    (void)state;
    assert_int_equal(metrics_new(&all), BAY_OK);
    assert_int_equal(metrics_lane_open(&lane, all), BAY_OK);
    add(&lane, "s", "s.\"a\\b\nc", CALL_RESULT, 1);
    metrics_lane_close(&lane);
    const char *text = text_of(all, false);
    expect(text, "# TYPE patchbay_calls_total counter");
    expect(text, "# TYPE patchbay_build_info gauge");
    assert_non_null(strstr(text, "tool=\"s.\\\"a\\\\b\\nc\""));
    assert_null(strstr(text, "# EOF"));
    assert_null(strstr(text, "# UNIT"));
    text = text_of(all, true);
    expect(text, "# TYPE patchbay_calls counter");
    expect(text, "# TYPE patchbay_build info");
    expect(text, "# UNIT mcp_server_operation_duration_seconds seconds");
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
    metrics_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_all_loops_are_added),
        cmocka_unit_test(invented_names_make_no_series),
        cmocka_unit_test(too_many_names_are_counted_together),
        cmocka_unit_test(ways_to_fail_are_bounded),
        cmocka_unit_test(each_format_has_its_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
