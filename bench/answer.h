/* Whether an answer is a result: the load generators count nothing else. A refusal costs a server
 * less than the work does, so a run that counted refusals would praise it. Reads the members of the
 * outermost object only, without decoding names; some 0.1 us for 300 bytes. */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline const char *answer_skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) {
        at++;
    }
    return at;
}

/* Behind the closing quote of the string whose first character is at `at`. */
static inline const char *answer_string_end(const char *at, const char *end)
{
    for (const char *quote = at; (quote = memchr(quote, '"', (size_t)(end - quote))) != NULL;
         quote++) {
        const char *first = quote;
        while (first > at && first[-1] == '\\') {
            first--;
        }
        if ((quote - first) % 2 == 0) {
            return quote + 1;
        }
    }
    return end;
}

/* The value of the member `name` of the object at `at`; NULL if it has none. */
static inline const char *answer_member(const char *at, const char *end, const char *name)
{
    size_t name_len = strlen(name);
    size_t depth = 0;
    while (at < end) {
        char here = *at++;
        if (here == '"') {
            const char *string = at;
            at = answer_string_end(at, end);
            const char *next = answer_skip_space(at, end);
            if (depth == 1 && (size_t)(at - string) == name_len + 1 &&
                memcmp(string, name, name_len) == 0 && next < end && *next == ':') {
                return answer_skip_space(next + 1, end);
            }
        } else if (here == '{' || here == '[') {
            depth++;
        } else if ((here == '}' || here == ']') && --depth == 0) {
            return NULL;
        }
    }
    return NULL;
}

/* JSON-RPC 2.0 section 5: an answer has a result or an error. MCP: a result with isError is that of
 * a tool that failed. */
static inline bool answer_is_result(const char *text, size_t len)
{
    const char *end = text + len;
    const char *object = answer_skip_space(text, end);
    if (object == end || *object != '{' || answer_member(object, end, "error") != NULL) {
        return false;
    }
    const char *result = answer_member(object, end, "result");
    if (result == NULL || *result != '{') {
        return false;
    }
    const char *is_error = answer_member(result, end, "isError");
    return is_error == NULL || (end - is_error >= 5 && memcmp(is_error, "false", 5) == 0);
}

/* The body of a reply: one answer, or an event stream of which one event is a result and none is an
 * error. */
static inline bool answer_body_is_result(const char *body, size_t len)
{
    const char *end = body + len;
    const char *start = answer_skip_space(body, end);
    if (start < end && *start == '{') {
        return answer_is_result(start, (size_t)(end - start));
    }
    size_t results = 0;
    for (const char *line = start; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        if (stop - line > 5 && memcmp(line, "data:", 5) == 0) {
            const char *object = answer_skip_space(line + 5, stop);
            bool is_message = object < stop && *object == '{';
            if (is_message && answer_member(object, stop, "method") == NULL) {
                if (!answer_is_result(object, (size_t)(stop - object))) {
                    return false;
                }
                results++;
            }
        }
        line = stop + 1;
    }
    return results == 1;
}

#endif
