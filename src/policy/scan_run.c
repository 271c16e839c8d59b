/* Runs of ASCII without white space: addresses, paths, encodings. */
#include "base/map.h"
#include "policy/scan_internal.h"
#include "wire/base64.h"
#include "wire/chars.h"

enum {
    ENCODED_LEAST = SCAN_RUN_PLAIN, /* characters of base64 that are looked into */
    HEX_LEAST = 32,
    ESCAPES_LEAST = 4, /* \x41 and its like in one run */
    DECODED_BYTES = 64 << 10,
    PATH_BYTES = 512,
};

/* ---- addresses -------------------------------------------------------------------------------- */

static bay_str trim_quotes(bay_str run)
{
    while (run.len > 0 && memchr("\"'`([{<,*", run.at[0], 9) != NULL) {
        run = str_from(run, 1);
    }
    while (run.len > 0 && memchr("\"'`)]}>,.;:!?*", run.at[run.len - 1], 14) != NULL) {
        run.len--;
    }
    return run;
}

/* Names that nobody can be sent to. */
static bool is_documentation(bay_str host)
{
    static const bay_str ends[] = {
        STR_INIT("localhost"),   STR_INIT("127.0.0.1"),       STR_INIT("example.com"),
        STR_INIT("example.org"), STR_INIT("example.net"),     STR_INIT(".example"),
        STR_INIT("0.0.0.0"),     STR_INIT("json-schema.org"), STR_INIT(".w3.org"),
        STR_INIT("www.w3.org"),  STR_INIT("schema.org"),      STR_INIT("::1]"),
        STR_INIT("host"),        STR_INIT("yourdomain.com"),  STR_INIT("company.com"),
        STR_INIT("contoso.com"), STR_INIT("fabrikam.com"),

        STR_INIT("domain.com"),
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        bool is_it = host.len >= ends[i].len &&
                     str_eq_nocase(str_from(host, host.len - ends[i].len), ends[i]);
        if (is_it) {
            return true;
        }
    }
    return host.len == 0 || str_find(host, '{') < host.len || str_find(host, '<') < host.len;
}

static size_t find_text(bay_str in, bay_str what)
{
    for (size_t at = 0; at + what.len <= in.len; at++) {
        const char *found = memchr(in.at + at, what.at[0], in.len - at - what.len + 1);
        if (found == NULL) {
            return in.len;
        }
        at = (size_t)(found - in.at);
        if (memcmp(found, what.at, what.len) == 0) {
            return at;
        }
    }
    return in.len;
}

static bool is_url(bay_str run)
{
    size_t at = find_text(run, STR("://"));
    if (at == run.len || at < 2) {
        return false;
    }
    bay_str host = str_from(run, at + 3);
    size_t end = 0;
    while (end < host.len && memchr("/?#\"')>]", host.at[end], 8) == NULL) {
        end++;
    }
    host = str_head(host, end);
    size_t user = str_find_last(host, '@');
    host = user < host.len ? str_from(host, user + 1) : host;
    size_t colon = str_find_last(host, ':');
    host = colon < host.len && colon > 0 && host.at[host.len - 1] != ']' ? str_head(host, colon)
                                                                         : host;
    return !is_documentation(host);
}

static bool is_mail_address(bay_str run)
{
    size_t at = str_find(run, '@');
    bay_str domain = str_from(run, at + 1);
    size_t dot = str_find_last(domain, '.');
    if (at == 0 || at >= run.len || dot == 0 || dot + 2 >= domain.len ||
        str_find(domain, '@') < domain.len || str_find(run, '/') < run.len) {
        return false;
    }
    for (size_t i = dot + 1; i < domain.len; i++) {
        if (!char_is(domain.at[i], CHAR_ALPHA)) {
            return false;
        }
    }
    return chars_are(str_head(domain, dot), CHAR_UNRESERVED) && !is_documentation(domain);
}

/* host.tld/path, or four numbers: where people leave the scheme out. */
static bool is_bare_host(bay_str run)
{
    static const struct {
        bay_str text;
        bool is_rare; /* of hosts that ordinary texts do not name in passing */
    } ends[] = {
        {STR_INIT("com"), false}, {STR_INIT("net"), false},   {STR_INIT("org"), false},
        {STR_INIT("io"), false},  {STR_INIT("info"), false},  {STR_INIT("co"), false},
        {STR_INIT("cn"), false},  {STR_INIT("xyz"), true},    {STR_INIT("ru"), true},
        {STR_INIT("biz"), true},  {STR_INIT("top"), true},    {STR_INIT("site"), true},
        {STR_INIT("cc"), true},   {STR_INIT("online"), true}, {STR_INIT("club"), true},
        {STR_INIT("live"), true}, {STR_INIT("onion"), true},  {STR_INIT("tk"), true},
    };
    bay_str host = str_head(run, str_find(run, '/'));
    bool has_path = host.len < run.len;
    host = str_head(host, str_find(host, ':'));
    size_t dot = str_find_last(host, '.');
    bay_str end = str_from(host, dot + 1);
    if (dot == 0 || end.len == 0 || !chars_are(host, CHAR_UNRESERVED) || is_documentation(host)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (str_eq_nocase(end, ends[i].text)) {
            return has_path || ends[i].is_rare;
        }
    }
    size_t dots = 0;
    for (size_t i = 0; i < host.len; i++) {
        if (host.at[i] != '.' && !char_is(host.at[i], CHAR_DIGIT)) {
            return false;
        }
        dots += host.at[i] == '.';
    }
    return dots == 3 && host.len >= 7 && !str_starts(host, STR("127.")) &&
           !str_starts(host, STR("10.")) && !str_starts(host, STR("192.168.")) &&
           !str_starts(host, STR("0."));
}

/* ---- paths ------------------------------------------------------------------------------------ */

bool scan_is_secret_path(bay_str text)
{
    static const bay_str parts[] = {
        STR_INIT(".ssh/"),
        STR_INIT("id_rsa"),
        STR_INIT("id_ed25519"),
        STR_INIT("id_ecdsa"),
        STR_INIT("etc/passwd"),
        STR_INIT("etc/shadow"),
        STR_INIT("etc/sudoers"),
        STR_INIT(".aws/cred"),
        STR_INIT(".aws/config"),
        STR_INIT(".netrc"),
        STR_INIT(".npmrc"),
        STR_INIT(".pypirc"),
        STR_INIT(".pgpass"),
        STR_INIT(".git-credentials"),
        STR_INIT(".kube/config"),
        STR_INIT(".docker/config"),
        STR_INIT("gcloud/cred"),
        STR_INIT("gcloud/application_default"),
        STR_INIT(".bash_history"),
        STR_INIT(".zsh_history"),
        STR_INIT(".cursor/mcp"),
        STR_INIT("claude_desktop_config"),
        STR_INIT("wallet.dat"),
        STR_INIT(".gnupg"),
        STR_INIT("proc/self/environ"),
        STR_INIT(".vault-token"),
        STR_INIT("authorized_keys"),
        STR_INIT("secrets.y"),
        STR_INIT("secrets.json"),
        STR_INIT(".terraform.d/cred"),
        STR_INIT("keychain"),
        STR_INIT("ntds.dit"),
        STR_INIT("config/sam"),
        STR_INIT(".azure/"),
        STR_INIT("login.keychain"),
        STR_INIT(".password-store"),
        STR_INIT("logins.json"),
        STR_INIT("key4.db"),
        STR_INIT("login data"),
        STR_INIT("private.pem"),
        STR_INIT("private.key"),
        STR_INIT("privatekey"),
        STR_INIT(".ppk"),
    };
    static const bay_str whole[] = {STR_INIT("~/.ssh"), STR_INIT("$home/.ssh"), STR_INIT(".ssh")};
    char small[PATH_BYTES];
    bay_str path = {small, text.len < sizeof(small) ? text.len : sizeof(small)};
    for (size_t i = 0; i < path.len; i++) {
        small[i] = text.at[i] == '\\' ? '/' : char_lower(text.at[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (find_text(path, parts[i]) < path.len) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        if (str_eq(path, whole[i])) {
            return true;
        }
    }
    return false;
}

/* A file that a program keeps for itself in somebody's home: ~/.config/gh/hosts.yml. */
static bool is_home_file(bay_str run)
{
    static const bay_str homes[] = {STR_INIT("~/."),       STR_INIT("$HOME/."),
                                    STR_INIT("${HOME}/."), STR_INIT("/root/."),
                                    STR_INIT("%APPDATA%"), STR_INIT("%USERPROFILE%")};
    for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
        if (str_starts(run, homes[i])) {
            return true;
        }
    }
    bool is_home = str_starts(run, STR("/home/")) || str_starts(run, STR("/Users/"));
    return is_home && find_text(run, STR("/.")) < run.len;
}

static bool is_environment_file(bay_str run)
{
    size_t slash = str_find_last(run, '/');
    bay_str name = slash < run.len ? str_from(run, slash + 1) : run;
    return str_eq(name, STR(".env")) || str_starts(name, STR(".env."));
}

/* ---- encodings -------------------------------------------------------------------------------- */

static void look_inside(scanner *self, scan_text *text, const char *encoding, size_t start,
                        size_t end)
{
    bay_str decoded = buf_view(&self->decoded);
    if (self->decoded.err != BAY_OK || decoded.len == 0) {
        return;
    }
    if (scan_is_sentence(decoded)) {
        scan_report_add(self, text, SCAN_ENCODED, start, end);
    }
    scan_text_nested(self, text, decoded, encoding);
}

/* Of either alphabet: what is hidden need not keep to one. */
static int digit_of(char c)
{
    return base64_digit(c, c == '-' || c == '_');
}

static bool is_base64(bay_str run)
{
    bool has_small = false;
    bool has_capital = false;
    for (size_t i = 0; i < run.len; i++) {
        char c = run.at[i];
        has_small = has_small || (c >= 'a' && c <= 'z');
        has_capital = has_capital || (c >= 'A' && c <= 'Z');
        if (digit_of(c) < 0) {
            return false;
        }
    }
    return has_small && has_capital;
}

static void read_base64(scanner *self, scan_text *text, bay_str run, size_t start)
{
    buf_clear(&self->decoded);
    while (run.len > 0 && run.at[run.len - 1] == '=') {
        run.len--;
    }
    if (run.len < ENCODED_LEAST || run.len > DECODED_BYTES || !is_base64(run)) {
        return;
    }
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < run.len; i++) {
        bits = bits << 6 | (uint32_t)digit_of(run.at[i]);
        held += 6;
        if (held >= 8) {
            held -= 8;
            buf_char(&self->decoded, (char)(bits >> held & 0xff));
        }
    }
    bay_str decoded = buf_view(&self->decoded);
    if (json_is_utf8(decoded) && scan_is_sentence(decoded)) {
        look_inside(self, text, "base64", start, start + run.len);
    }
}

static void read_hex(scanner *self, scan_text *text, bay_str run, size_t start)
{
    buf_clear(&self->decoded);
    run = str_starts(run, STR("0x")) ? str_from(run, 2) : run;
    for (size_t i = 0; i + 1 < run.len; i += 2) {
        int high = char_hex(run.at[i]);
        int low = char_hex(run.at[i + 1]);
        if (high < 0 || low < 0) {
            return;
        }
        buf_char(&self->decoded, (char)(high << 4 | low));
    }
    bay_str decoded = buf_view(&self->decoded);
    if (json_is_utf8(decoded) && scan_is_sentence(decoded)) {
        look_inside(self, text, "hexadecimal", start, start + run.len);
    }
}

/* The escape at the front: %41, \x41, \u0041, &#65; and &#x41;. Returns its bytes; 0: none. */
static size_t read_escape(bay_str at, uint32_t *out)
{
    size_t digits = 0;
    size_t head = 0;
    unsigned base = 16;
    if (str_starts(at, STR("&#x")) || str_starts(at, STR("&#X"))) {
        head = 3;
        digits = 6;
    } else if (str_starts(at, STR("&#"))) {
        head = 2;
        digits = 7;
        base = 10;
    } else if (str_starts(at, STR("\\u{"))) {
        head = 3;
        digits = 6;
    } else if (str_starts(at, STR("\\u")) || str_starts(at, STR("%u"))) {
        head = 2;
        digits = 4;
    } else if (str_starts(at, STR("\\x"))) {
        head = 2;
        digits = 2;
    } else if (str_starts(at, STR("%"))) {
        head = 1;
        digits = 2;
    } else {
        return 0;
    }
    uint32_t value = 0;
    size_t used = 0;
    while (used < digits && head + used < at.len) {
        int digit = char_hex(at.at[head + used]);
        if (digit < 0 || digit >= (int)base) {
            break;
        }
        value = value * base + (uint32_t)digit;
        used++;
    }
    size_t len = head + used;
    if (len < at.len && (at.at[len] == ';' || at.at[len] == '}')) {
        len++;
    }
    *out = value;
    return used >= 2 && value > 0 && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff) ? len
                                                                                             : 0;
}

static void read_escapes(scanner *self, scan_text *text, bay_str run, size_t start)
{
    size_t escapes = 0;
    size_t escaped = 0;
    buf_clear(&self->decoded);
    for (size_t at = 0; at < run.len;) {
        uint32_t code = 0;
        size_t len = read_escape(str_from(run, at), &code);
        if (len == 0) {
            buf_char(&self->decoded, run.at[at] == '+' && escapes > 0 ? ' ' : run.at[at]);
            at++;
            continue;
        }
        if (run.at[at] == '%' && code >= 0x80 && code < 0x100) {
            buf_char(&self->decoded, (char)code); /* a byte of UTF-8 */
        } else {
            scan_put(&self->decoded, code);
        }
        escapes++;
        escaped += len;
        at += len;
    }
    if (escapes < ESCAPES_LEAST || !json_is_utf8(buf_view(&self->decoded))) {
        return;
    }
    if (escaped * 2 >= run.len) {
        look_inside(self, text, "escapes", start, start + run.len);
    } else {
        scan_text_nested(self, text, buf_view(&self->decoded), "escapes");
    }
}

static void read_encodings(scanner *self, scan_text *text, bay_str run, size_t start)
{
    if (text->depth > 0) {
        return;
    }
    if (run.len >= 3 * ESCAPES_LEAST &&
        (memchr(run.at, '%', run.len) != NULL || memchr(run.at, '\\', run.len) != NULL ||
         memchr(run.at, '&', run.len) != NULL)) {
        read_escapes(self, text, run, start);
        return;
    }
    if (run.len >= HEX_LEAST && run.len % 2 == 0 && char_hex(run.at[0]) >= 0 &&
        char_hex(run.at[1]) >= 0) {
        read_hex(self, text, run, start);
    }
    read_base64(self, text, run, start);
}

/* ---- a run ------------------------------------------------------------------------------------ */

/* The name of another server's tool, or of none that is known here. */
static scan_meaning read_name(scanner *self, scan_text *text, bay_str run, size_t start)
{
    const scan_names *names = self->names;
    bay_str name = str_head(run, str_find(run, '('));
    if (names == NULL || names->others == NULL || name.len < 6 ||
        (str_find(name, '_') == name.len && str_find(name, '-') == name.len) ||
        (names->own != NULL && map_get(names->own, name) != NULL)) {
        return 0;
    }
    const char *server = map_get(names->others, name);
    if (server == NULL) {
        return 0;
    }
    scan_report_add(self, text, SCAN_FOREIGN, start, start + name.len);
    return SCAN_MEANS(OTHER_TOOL);
}

scan_meaning scan_run_read(scanner *self, scan_text *text, bay_str whole, size_t start)
{
    bay_str run = trim_quotes(whole);
    start += (size_t)(run.at - whole.at);
    if (run.len < 4) {
        return 0;
    }
    if (run.len >= 3 * ESCAPES_LEAST) {
        read_encodings(self, text, run, start);
    }
    bool has_slash = memchr(run.at, '/', run.len) != NULL || memchr(run.at, '\\', run.len) != NULL;
    bool has_dot = memchr(run.at, '.', run.len) != NULL;
    if (has_slash && is_url(run)) {
        return SCAN_MEANS(PLACE);
    }
    if ((has_slash || has_dot || memchr(run.at, '_', run.len) != NULL) &&
        scan_is_secret_path(run)) {
        return SCAN_MEANS(SECRET_FILE);
    }
    if (has_dot && (is_environment_file(run) || (has_slash && is_home_file(run)))) {
        return SCAN_MEANS(SECRET);
    }
    if (has_dot && memchr(run.at, '@', run.len) != NULL && is_mail_address(run)) {
        return SCAN_MEANS(PLACE);
    }
    if (has_dot && is_bare_host(run)) {
        return SCAN_MEANS(PLACE);
    }
    return read_name(self, text, run, start);
}
