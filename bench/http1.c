/* What reading one typical request head costs, in nanoseconds of CPU time: eight headers, all at
 * once, and once more byte by byte as an upper bound for the worst of connections. */
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/str.h"
#include "wire/http1.h"

static const bay_str request = STR_INIT("POST /mcp HTTP/1.1\r\n"
                                        "Host: 127.0.0.1:8930\r\n"
                                        "Content-Type: application/json\r\n"
                                        "Accept: application/json, text/event-stream\r\n"
                                        "MCP-Protocol-Version: 2026-07-28\r\n"
                                        "Mcp-Method: tools/call\r\n"
                                        "Mcp-Name: get_weather\r\n"
                                        "Content-Length: 300\r\n"
                                        "Connection: keep-alive\r\n\r\n");

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double measure(size_t rounds, size_t step)
{
    http_field fields[100];
    double start = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        http1_parser parser;
        http1_head head;
        size_t consumed = 0;
        bay_err err = BAY_ERR_AGAIN;
        http1_parser_init(&parser, HTTP1_REQUEST, &http1_default_limits, fields, false);
        for (size_t len = step; err == BAY_ERR_AGAIN; len += step) {
            err = http1_head_parse(&parser, str_head(request, len), &head, &consumed);
        }
        CHECK(err == BAY_OK && consumed == request.len && head.field_count == 8);
    }
    return (now_ns() - start) / (double)rounds;
}

int main(void)
{
    printf("request head, %zu bytes, 8 fields: %.0f ns whole, %.0f ns byte by byte\n", request.len,
           measure(2000000, request.len), measure(200000, 1));
    return 0;
}
