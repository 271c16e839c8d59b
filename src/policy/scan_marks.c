/* What a whole text looks like: markup that hides, marks of chat templates, blank space, command lines. */
#include "policy/scan_internal.h"
#include "wire/chars.h"

enum {
    PADDING_SPACES = 100,
    PADDING_LINES = 12,
    TAG_BYTES = 200,     /* of a tag with its attributes */
    COMMENT_LETTERS = 8, /* less is no message */
};

static bay_str text_behind(const scan_text *text, size_t at)
{
    return str_from(text->bytes, at);
}

static bool starts_nocase(bay_str text, bay_str prefix)
{
    return text.len >= prefix.len && str_eq_nocase(str_head(text, prefix.len), prefix);
}

/* The place of `what`, ASCII without regard to case, in the first `most` bytes; `most` if absent. */
static size_t find_nocase(bay_str in, bay_str what, size_t most)
{
    size_t end = in.len < most ? in.len : most;
    for (size_t at = 0; at + what.len <= end; at++) {
        if (char_lower(in.at[at]) == what.at[0] && starts_nocase(str_from(in, at), what)) {
            return at;
        }
    }
    return most;
}

static size_t count_letters(bay_str text)
{
    size_t letters = 0;
    for (size_t i = 0; i < text.len; i++) {
        letters += char_is(text.at[i], CHAR_ALPHA) || (unsigned char)text.at[i] >= 0x80;
    }
    return letters;
}

static bool has_any(bay_str text, const bay_str *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (find_nocase(text, words[i], text.len) < text.len) {
            return true;
        }
    }
    return false;
}

/* ---- tags ------------------------------------------------------------------------------------- */

/* One that begins inside of another has no letters but those of the other: it is not read again. */
static void check_comment(scanner *self, scan_text *text, size_t at, bay_str open, bay_str close)
{
    if (at < text->comment_end) {
        return;
    }
    bay_str rest = text_behind(text, at + open.len);
    size_t end = find_nocase(rest, close, rest.len);
    text->comment_end = at + open.len + end;
    if (count_letters(str_head(rest, end)) >= COMMENT_LETTERS) {
        scan_report_add(self, text, SCAN_COMMENT, at, at + open.len + end);
    }
}

/* <IMPORTANT>, <system-prompt>, </instructions>: names that give a text a rank. */
static bool is_pseudo_tag(bay_str name)
{
    static const bay_str words[] = {
        STR_INIT("important"),
        STR_INIT("system"),
        STR_INIT("secret"),
        STR_INIT("hidden"),
        STR_INIT("override"),
        STR_INIT("admin"),
        STR_INIT("critical"),
        STR_INIT("directive"),
        STR_INIT("urgent"),
        STR_INIT("mandatory"),
        STR_INIT("priority"),
        STR_INIT("assistant"),
        STR_INIT("sys"),
        STR_INIT("internal"),
        STR_INIT("developer"),
        STR_INIT("confidential"),
        STR_INIT("instructions"),
        STR_INIT("instruction"),
        STR_INIT("command"),
        STR_INIT("tool_instructions"),
        STR_INIT("ai_instructions"),
        STR_INIT("llm"),
        STR_INIT("agent"),
        STR_INIT("model_instructions"),
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        bool is_it = starts_nocase(name, words[i]) &&
                     (name.len == words[i].len || name.at[words[i].len] == '_' ||
                      name.at[words[i].len] == '-');
        if (is_it) {
            return true;
        }
    }
    return false;
}

static bool is_hiding_style(bay_str tag)
{
    static const bay_str styles[] = {
        STR_INIT("display:none"),
        STR_INIT("display: none"),
        STR_INIT("visibility:hidden"),
        STR_INIT("visibility: hidden"),
        STR_INIT("font-size:0"),
        STR_INIT("font-size: 0"),
        STR_INIT("font-size:1px"),
        STR_INIT("opacity:0"),
        STR_INIT("opacity: 0"),
        STR_INIT("color:white"),
        STR_INIT("color: white"),
        STR_INIT("color:#fff"),
        STR_INIT("color: #fff"),
        STR_INIT("color:transparent"),
        STR_INIT("color: transparent"),
        STR_INIT("-9999px"),
        STR_INIT(" hidden>"),
        STR_INIT(" hidden "),
        STR_INIT("width:0"),
        STR_INIT("height:0"),
        STR_INIT("font-size: 1px"),
        STR_INIT("-10000px"),
        STR_INIT("clip:rect"),
        STR_INIT("aria-hidden"),
    };
    return has_any(tag, styles, ARRAY_LEN(styles));
}

static bool is_template_mark(bay_str rest)
{
    static const bay_str marks[] = {
        STR_INIT("<|im_"),       STR_INIT("<|system"),
        STR_INIT("<|user"),      STR_INIT("<|assistant"),
        STR_INIT("<|endof"),     STR_INIT("<|eot"),
        STR_INIT("<|start"),     STR_INIT("<|end"),
        STR_INIT("<<sys>>"),     STR_INIT("<</sys>>"),
        STR_INIT("[inst]"),      STR_INIT("[/inst]"),
        STR_INIT("<|channel"),   STR_INIT("<start_of_turn>"),
        STR_INIT("<|begin"),     STR_INIT("[system]"),
        STR_INIT("[system "),    STR_INIT("[system:"),
        STR_INIT("[admin"),      STR_INIT("[override"),
        STR_INIT("[developer "), STR_INIT("[assistant]"),
        STR_INIT("[hidden"),     STR_INIT("<|tool"),
        STR_INIT("<|message"),   STR_INIT("<function_calls>"),
        STR_INIT("<tool_call>"), STR_INIT("[system_"),
    };
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (starts_nocase(rest, marks[i])) {
            return true;
        }
    }
    return false;
}

static void check_tag(scanner *self, scan_text *text, size_t at)
{
    bay_str rest = text_behind(text, at);
    if (starts_nocase(rest, STR("<!--"))) {
        check_comment(self, text, at, STR("<!--"), STR("-->"));
        return;
    }
    if (is_template_mark(rest)) {
        scan_report_add(self, text, SCAN_ROLE_MARK, at, at + 8);
        return;
    }
    size_t end = str_find(str_head(rest, TAG_BYTES), '>');
    if (end >= rest.len || end >= TAG_BYTES) {
        return;
    }
    bay_str tag = str_head(rest, end + 1);
    bay_str name = str_from(tag, tag.len > 1 && tag.at[1] == '/' ? 2 : 1);
    size_t len = 0;
    while (len < name.len &&
           (char_is(name.at[len], CHAR_ALPHA) || name.at[len] == '_' || name.at[len] == '-')) {
        len++;
    }
    bay_str content = str_head(text_behind(text, at + tag.len), TAG_BYTES);
    if (is_pseudo_tag(str_head(name, len)) && count_letters(content) >= COMMENT_LETTERS &&
        str_find(content, ' ') < content.len) {
        scan_report_add(self, text, SCAN_PSEUDO_TAG, at, at + tag.len);
    } else if (str_find(tag, ' ') < tag.len && str_find(str_from(tag, 1), '<') + 1 == tag.len &&
               is_hiding_style(tag)) { /* of several < before one > the last begins the tag */
        scan_report_add(self, text, SCAN_HIDDEN_STYLE, at, at + tag.len);
    } else if (starts_nocase(tag, STR("<img ")) &&
               find_nocase(tag, STR("src"), tag.len) < tag.len &&
               find_nocase(tag, STR("http"), tag.len) < tag.len && str_find(tag, '?') < tag.len) {
        scan_report_add(self, text, SCAN_REMOTE_IMAGE, at, at + tag.len);
    } else if ((starts_nocase(tag, STR("<script")) || starts_nocase(tag, STR("<iframe"))) &&
               (str_find(tag, '=') < tag.len || str_find(content, '(') < content.len) &&
               find_nocase(content, STR("</"), content.len) < content.len) {
        scan_report_add(self, text, SCAN_SCRIPT_URI, at, at + tag.len);
    }
}

/* [//]: # (text), [comment]: <> (text): comments of Markdown; ![](address?data): an image. */
static void check_bracket(scanner *self, scan_text *text, size_t at)
{
    bay_str rest = text_behind(text, at);
    bool is_comment = starts_nocase(rest, STR("[//]:")) || starts_nocase(rest, STR("[comment]:")) ||
                      starts_nocase(rest, STR("[]: #")) || starts_nocase(rest, STR("[_]: #"));
    if (is_comment) {
        check_comment(self, text, at, STR("["), STR("\n"));
    } else if (is_template_mark(rest)) {
        scan_report_add(self, text, SCAN_ROLE_MARK, at, at + 6);
    } else if (at > 0 && text->bytes.at[at - 1] == '!') {
        bay_str image = str_head(rest, TAG_BYTES);
        size_t link = find_nocase(image, STR("](http"), TAG_BYTES);
        bay_str address = str_from(image, link);
        address = str_head(address, str_find(address, ')'));
        if (link < image.len &&
            (str_find(address, '?') < address.len || str_find(address, '{') < address.len)) {
            scan_report_add(self, text, SCAN_REMOTE_IMAGE, at - 1, at + link + address.len);
        }
    }
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* "System: you are …" at a line's start, "### Instruction". */
static void check_line(scanner *self, scan_text *text, size_t at)
{
    static const bay_str roles[] = {
        STR_INIT("system:"),
        STR_INIT("assistant:"),
        STR_INIT("developer:"),
        STR_INIT("admin:"),
        STR_INIT("system message:"),
        STR_INIT("system prompt:"),
        STR_INIT("system instruction:"),
        STR_INIT("system note:"),
        STR_INIT("system override:"),
        STR_INIT("administrator:"),
        STR_INIT("system notice:"),
        STR_INIT("human:"),
        STR_INIT("root:"),
    };
    static const bay_str orders[] = {
        STR_INIT("you "),     STR_INIT("your "),         STR_INIT("ignore "),
        STR_INIT("from now"), STR_INIT("always "),       STR_INIT("never "),
        STR_INIT("do "),      STR_INIT("disregard"),     STR_INIT("new "),
        STR_INIT("forget"),   STR_INIT("override"),      STR_INIT("please "),
        STR_INIT("all "),     STR_INIT("before "),       STR_INIT("send "),
        STR_INIT("execute"),  STR_INIT("sure"),          STR_INIT("ok"),
        STR_INIT("must "),    STR_INIT("previous"),      STR_INIT("priority"),
        STR_INIT("the user"), STR_INIT("the assistant"), STR_INIT("append"),
        STR_INIT("read "),
    };
    bay_str line = text_behind(text, at);
    while (line.len > 0 && memchr(" \t>*#_-", line.at[0], 7) != NULL) {
        line = str_from(line, 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (!starts_nocase(line, roles[i])) {
            continue;
        }
        bay_str said = str_from(line, roles[i].len);
        while (said.len > 0 && (said.at[0] == ' ' || said.at[0] == '\t')) {
            said = str_from(said, 1);
        }
        for (size_t k = 0; k < ARRAY_LEN(orders); k++) {
            if (starts_nocase(said, orders[k])) {
                scan_report_add(self, text, SCAN_ROLE_MARK, at, at + roles[i].len);
                return;
            }
        }
    }
}

/* Blank space that pushes what follows out of sight. */
static size_t check_blank(scanner *self, scan_text *text, size_t at)
{
    size_t end = at;
    size_t spaces = 0;
    size_t most = 0;
    size_t lines = 0;
    bay_str bytes = text->bytes;
    while (end < bytes.len && memchr(" \t\r\n", bytes.at[end], 4) != NULL) {
        bool is_line = bytes.at[end] == '\n';
        lines += is_line;
        spaces = is_line ? 0 : spaces + 1;
        most = spaces > most ? spaces : most;
        end++;
    }
    if (end < bytes.len && at > 0 && (most >= PADDING_SPACES || lines >= PADDING_LINES)) {
        scan_report_add(self, text, SCAN_PADDING, at, end);
    }
    return end;
}

/* Which bytes stand in a text: most texts have none of those that a check is about. */
typedef struct seen {
    uint64_t bits[4];
    bool has_blank_run; /* two bytes of white space in a row */
} seen;

static seen look_at(bay_str bytes)
{
    seen out = {{0}, false};
    bool was_blank = false;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.at[i];
        bool is_blank = c == ' ' || c == '\n';
        out.bits[c >> 6] |= (uint64_t)1 << (c & 63);
        out.has_blank_run = out.has_blank_run || (is_blank && was_blank);
        was_blank = is_blank;
    }
    return out;
}

static bool has_byte(const seen *self, char c)
{
    return (self->bits[(unsigned char)c >> 6] >> ((unsigned char)c & 63) & 1) != 0;
}

/* Command lines that fetch and run, or destroy: where a byte stands that ordinary sentences lack. */
static const struct {
    size_t mark; /* the place of that byte */
    bay_str text;
} commands[] = {
    {0, STR_INIT("| sh")},           {0, STR_INIT("|sh")},          {0, STR_INIT("| bash")},
    {0, STR_INIT("|bash")},          {0, STR_INIT("| nc ")},        {0, STR_INIT("| curl")},
    {0, STR_INIT("| base64")},       {10, STR_INIT("base64 -d |")}, {0, STR_INIT("$(curl")},
    {0, STR_INIT("$(cat ")},         {0, STR_INIT("$(whoami)")},    {0, STR_INIT("`curl ")},
    {0, STR_INIT("`cat ")},          {3, STR_INIT("rm -rf /")},     {3, STR_INIT("rm -rf ~")},
    {3, STR_INIT("rm -rf *")},       {0, STR_INIT("/dev/tcp/")},    {3, STR_INIT("nc -e")},
    {11, STR_INIT("powershell -e")}, {3, STR_INIT("iex(")},         {9, STR_INIT("os.system(")},
    {10, STR_INIT("__import__(")},   {1, STR_INIT(":(){")},         {5, STR_INIT("bash -i ")},
    {5, STR_INIT("curl -d @")},      {5, STR_INIT("curl -x post")}, {5, STR_INIT("curl --data")},
    {5, STR_INIT("wget --post")},    {10, STR_INIT("chmod 777 /")}, {5, STR_INIT("curl -f ")},
};

static void check_command(scanner *self, scan_text *text, size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        bay_str command = commands[i].text;
        size_t mark = commands[i].mark;
        if (command.at[mark] != text->bytes.at[at] || at < mark ||
            !starts_nocase(text_behind(text, at - mark), command)) {
            continue;
        }
        bay_str rest = text_behind(text, at - mark + command.len);
        bool is_word = char_is(command.at[command.len - 1], CHAR_ALPHA);
        if (!is_word || rest.len == 0 || !char_is(rest.at[0], CHAR_ALPHA)) {
            scan_report_add(self, text, SCAN_SHELL, at - mark, at - mark + command.len);
        }
    }
}

static void check_address(scanner *self, scan_text *text)
{
    static const bay_str schemes[] = {STR_INIT("javascript:"),
                                      STR_INIT("vbscript:"),
                                      STR_INIT("data:text/html"),
                                      STR_INIT("data:application/javascript"),
                                      STR_INIT("data:image/svg+xml;base64,PHNjcmlwd"),
                                      STR_INIT("blob:")};
    bay_str bytes = str_trim(text->bytes);
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (starts_nocase(bytes, schemes[i])) {
            scan_report_add(self, text, SCAN_SCRIPT_URI, 0, schemes[i].len);
        }
    }
}

/* At each place of `mark` in the text. */
static void each_mark(scanner *self, scan_text *text, char mark,
                      void (*check)(scanner *self, scan_text *text, size_t at))
{
    bay_str bytes = text->bytes;
    const char *found = memchr(bytes.at, mark, bytes.len);
    while (found != NULL) {
        size_t at = (size_t)(found - bytes.at);
        check(self, text, at);
        found = memchr(found + 1, mark, bytes.len - at - 1);
    }
}

static void check_behind(scanner *self, scan_text *text, size_t at)
{
    check_line(self, text, at + 1);
}

static void check_blanks(scanner *self, scan_text *text)
{
    bay_str bytes = text->bytes;
    for (size_t at = 0; at < bytes.len; at++) {
        if (bytes.at[at] == ' ' || bytes.at[at] == '\n') {
            at = check_blank(self, text, at);
        }
    }
}

void scan_marks_run(scanner *self, scan_text *text)
{
    static const bay_str latex[] = {STR_INIT("\\color{white}"), STR_INIT("\\textcolor{white}"),
                                    STR_INIT("\\phantom{")};
    bay_str bytes = text->bytes;
    seen in = look_at(bytes);
    if (text->role == SCAN_IN_URI) {
        check_address(self, text);
    }
    if (has_byte(&in, ':') && text->role == SCAN_IN_TEXT) {
        check_line(self, text, 0);
        each_mark(self, text, '\n', check_behind);
    }
    if (has_byte(&in, '<')) {
        each_mark(self, text, '<', check_tag);
    }
    text->comment_end = 0;
    if (has_byte(&in, '[')) {
        each_mark(self, text, '[', check_bracket);
    }
    if (in.has_blank_run) {
        check_blanks(self, text);
    }
    for (const char *mark = "|$`-/("; *mark != '\0'; mark++) {
        if (has_byte(&in, *mark)) {
            each_mark(self, text, *mark, check_command);
        }
    }
    if (has_byte(&in, '\\') && has_any(bytes, latex, ARRAY_LEN(latex))) {
        scan_report_add(self, text, SCAN_HIDDEN_STYLE, 0, bytes.len);
    }
}
