#include "front/page.h"

#include "base/rand.h"
#include "base/shown.h"
#include "base/str.h"
#include "wire/base64.h"

enum { NONCE_BYTES = 16 };

/* Of the console's palette. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:light-dark(#f6f6f3,#0e1112);--surface:light-dark(#fff,"
    "#15191b);--line:light-dark(#e3e3dd,#262c30);--text:light-dark(#191c1e,#e6e9ea);--t2:light-"
    "dark(#50555a,#aab1b6);--accent:light-dark(#0b646e,#63c7d1);--on:light-dark(#fff,#06191c)}"
    "*{box-sizing:border-box}body{margin:0;min-height:100vh;display:grid;place-items:center;"
    "background:var(--bg);color:var(--text);font:.875rem/1.25rem Inter,ui-sans-serif,system-ui,"
    "sans-serif}main{width:min(30rem,calc(100vw - 2rem));background:var(--surface);border:1px "
    "solid var(--line);border-radius:10px;padding:1.5rem}h1{font-size:1.375rem;line-height:1.75rem;"
    "font-weight:620;margin:0 0 .75rem}p{margin:0 0 .75rem;color:var(--t2);overflow-wrap:anywhere}"
    "dl{display:grid;grid-template-columns:8rem minmax(0,1fr);gap:.375rem .75rem;margin:0 0 1rem}"
    "dt{color:var(--t2)}dd{margin:0;overflow-wrap:anywhere;font-weight:560}a{color:var(--accent)}"
    "form{display:flex;justify-content:flex-end;gap:.75rem;margin:1.25rem 0 0}button{min-height:"
    "2rem;padding:0 .75rem;border:1px solid var(--line);border-radius:6px;background:var(--surface)"
    ";color:var(--text);font:inherit;cursor:pointer}button.primary{background:var(--accent);color:"
    "var(--on)}:focus-visible{outline:2px solid var(--accent);outline-offset:1px}";

void page_text(buf *out, bay_str text)
{
    buf shown;
    buf_init(&shown, PAGE_BYTES);
    shown_append(&shown, text, SHOWN_LINE);
    for (size_t i = 0; i < shown.len; i++) {
        switch (shown.at[i]) {
        case '&':
            buf_lit(out, "&amp;");
            break;
        case '<':
            buf_lit(out, "&lt;");
            break;
        case '>':
            buf_lit(out, "&gt;");
            break;
        case '"':
            buf_lit(out, "&quot;");
            break;
        case '\'':
            buf_lit(out, "&#39;");
            break;
        default:
            buf_char(out, shown.at[i]);
        }
    }
    out->err = out->err == BAY_OK ? shown.err : out->err;
    buf_fini(&shown);
}

/* ---- replies --------------------------------------------------------------------------------- */

static void put_nonce(buf *out)
{
    unsigned char bytes[NONCE_BYTES];
    rand_bytes(bytes, sizeof(bytes));
    base64_encode(out, (bay_str){(const char *)bytes, sizeof(bytes)}, BASE64_URL);
}

static size_t add_fields(http_field *to, size_t count, const http_field *more, size_t more_count)
{
    for (size_t i = 0; i < more_count && i < PAGE_FIELDS; i++) {
        to[count++] = more[i];
    }
    return count;
}

static void write_page(buf *out, const page_spec *spec, bay_str nonce)
{
    buf_lit(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta "
                 "name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    page_text(out, spec->title);
    buf_lit(out, "</title><style nonce=\"");
    buf_str(out, nonce);
    buf_lit(out, "\">");
    buf_str(out, str_of(style));
    buf_lit(out, "</style></head><body><main><h1>");
    page_text(out, spec->title);
    buf_lit(out, "</h1>");
    buf_str(out, spec->body);
    buf_lit(out, "</main></body></html>\n");
}

void page_reply(http_exchange *exchange, const page_spec *spec)
{
    char nonce_text[2 * NONCE_BYTES], policy_text[256];
    buf nonce = {.at = nonce_text, .cap = sizeof(nonce_text), .max = sizeof(nonce_text)};
    buf policy = {.at = policy_text, .cap = sizeof(policy_text), .max = sizeof(policy_text)};
    buf page;
    put_nonce(&nonce);
    buf_lit(&policy, "default-src 'none'; style-src 'nonce-");
    buf_str(&policy, buf_view(&nonce));
    buf_lit(&policy, "'; base-uri 'none'; frame-ancestors 'none'");
    buf_str(&policy, spec->leads_away ? STR("") : STR("; form-action 'self'"));
    http_field fields[6 + PAGE_FIELDS] = {
        {STR("Content-Type"), STR("text/html; charset=utf-8")},
        {STR("Cache-Control"), STR("no-store")},
        /* "no-referrer" would make a form's Origin "null" (Fetch, append a request Origin header) */
        {STR("Referrer-Policy"), STR("same-origin")},
        {STR("X-Content-Type-Options"), STR("nosniff")},
        {STR("X-Frame-Options"), STR("DENY")},
        {STR("Content-Security-Policy"), buf_view(&policy)},
    };
    size_t count = add_fields(fields, 6, spec->fields, spec->field_count);
    buf_init(&page, PAGE_BYTES);
    write_page(&page, spec, buf_view(&nonce));
    bool is_whole = page.err == BAY_OK;
    http_exchange_reply(exchange, is_whole ? spec->status : 503, fields, count,
                        is_whole ? buf_view(&page) : STR(""));
    buf_fini(&page);
}

void page_say(http_exchange *exchange, int status, bay_str title, bay_str sentence, bay_str link,
              bay_str link_text)
{
    buf body;
    buf_init(&body, PAGE_BYTES);
    buf_lit(&body, "<p>");
    page_text(&body, sentence);
    buf_lit(&body, "</p>");
    if (link.len > 0) {
        buf_lit(&body, "<p><a href=\"");
        page_text(&body, link);
        buf_lit(&body, "\">");
        page_text(&body, link_text);
        buf_lit(&body, "</a></p>");
    }
    page_reply(exchange, &(page_spec){.status = status, .title = title, .body = buf_view(&body)});
    buf_fini(&body);
}

void page_lead(http_exchange *exchange, bay_str url, const http_field *fields, size_t count)
{
    http_field all[3 + PAGE_FIELDS] = {{STR("Location"), url},
                                       {STR("Cache-Control"), STR("no-store")},
                                       {STR("Referrer-Policy"), STR("no-referrer")}};
    http_exchange_reply(exchange, 303, all, add_fields(all, 3, fields, count), STR(""));
}

/* ---- cookies --------------------------------------------------------------------------------- */

static bool is_secure(bay_str base)
{
    return str_starts(base, STR("https://"));
}

bay_str page_cookie_name(bay_str base, const char *name, char out[PAGE_COOKIE_NAME_BYTES])
{
    buf text = {.at = out, .cap = PAGE_COOKIE_NAME_BYTES, .max = PAGE_COOKIE_NAME_BYTES};
    size_t colon = str_find_last(base, ':');
    if (is_secure(base)) {
        buf_lit(&text, "__Host-");
    }
    buf_lit(&text, "patchbay-");
    if (!is_secure(base)) {
        bay_str port = str_from(base, colon + 1);
        port = str_head(port, str_find(port, '/'));
        uint64_t number = 0;
        buf_uint(&text, str_uint(port, &number) ? number : 80);
        buf_char(&text, '-');
    }
    buf_str(&text, str_of(name));
    return text.err == BAY_OK ? buf_view(&text) : STR("");
}

/* RFC 6265 section 4.2.1, also in several fields, as HTTP/2 sends it. */
bay_str page_cookie(const http_exchange *exchange, bay_str name)
{
    size_t count = 0, found = 0;
    bay_str value = STR("");
    const http_field *fields = http_exchange_fields(exchange, &count);
    for (size_t i = 0; i < count; i++) {
        bay_str rest = fields[i].value;
        while (str_eq_nocase(fields[i].name, STR("Cookie")) && rest.len > 0) {
            bay_str pair = str_trim(str_head(rest, str_find(rest, ';')));
            rest = str_from(rest, str_find(rest, ';') + 1);
            size_t equals = str_find(pair, '=');
            if (name.len > 0 && str_eq(str_head(pair, equals), name)) {
                value = str_from(pair, equals + 1);
                found++;
            }
        }
    }
    return found == 1 ? value : STR("");
}

void page_cookie_write(buf *out, bay_str base, bay_str name, bay_str value, uint64_t max_age_s)
{
    buf_str(out, name);
    buf_char(out, '=');
    buf_str(out, value);
    buf_lit(out, "; Path=/; HttpOnly; SameSite=Lax");
    if (is_secure(base)) {
        buf_lit(out, "; Secure");
    }
    if (value.len == 0 || max_age_s > 0) {
        buf_lit(out, "; Max-Age=");
        buf_uint(out, value.len > 0 ? max_age_s : 0);
    }
}
