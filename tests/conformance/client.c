/* The client that the official conformance suite is run with: one function for each family of
 * scenarios, written on the public header only, so that what passes here passes for anybody who
 * links the library.
 *
 *     conformance_client URL
 *
 * The suite says by the environment which scenario it plays (MCP_CONFORMANCE_SCENARIO) and
 * sometimes with which values (MCP_CONFORMANCE_CONTEXT, a JSON object). In which revision, the
 * client finds out by itself. */
#include <netdb.h>
#include <patchbay/client.h>
#include <patchbay/oauth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a look into raw JSON: of the context, and of entries of lists --------------------------- */

static bay_str text_of(const char *text)
{
    return (bay_str){text, text != NULL ? strlen(text) : 0};
}

static bool is_at(bay_str text, size_t at, const char *of)
{
    return at < text.len && text.at[at] != '\0' && strchr(of, text.at[at]) != NULL;
}

static size_t skip_spaces(bay_str text, size_t at)
{
    while (is_at(text, at, " \t\r\n,:")) {
        at++;
    }
    return at;
}

/* Behind the value that begins at `at`; the library has checked that it is one. */
static size_t skip_value(bay_str text, size_t at)
{
    size_t depth = 0;
    do {
        if (is_at(text, at, "\"")) {
            for (at++; at < text.len && text.at[at] != '"'; at++) {
                at += text.at[at] == '\\';
            }
            at++;
        } else if (is_at(text, at, "{[")) {
            depth++;
            at++;
        } else if (is_at(text, at, "}]")) {
            depth--;
            at++;
        } else {
            while (at < text.len && !is_at(text, at, " \t\r\n,:{}[]\"")) {
                at++;
            }
        }
        at = depth > 0 ? skip_spaces(text, at) : at;
    } while (depth > 0 && at < text.len);
    return at < text.len ? at : text.len;
}

/* The member `name` of an object, or the item `index` of an array: raw, or empty. */
static bay_str part_of(bay_str value, const char *name, size_t index)
{
    size_t at = skip_spaces(value, 1);
    while (at < value.len && !is_at(value, at, "}]")) {
        size_t end = skip_value(value, at);
        bool is_found = name == NULL && index-- == 0;
        if (name != NULL) {
            bay_str key = {value.at + at + 1, end - at - 2};
            is_found = key.len == strlen(name) && memcmp(key.at, name, key.len) == 0;
            at = skip_spaces(value, end);
            end = skip_value(value, at);
        }
        if (is_found) {
            return (bay_str){value.at + at, end - at};
        }
        at = skip_spaces(value, end);
    }
    return (bay_str){NULL, 0};
}

/* For functions that take strings. */
static char *dup_str(bay_str text)
{
    char *copy = malloc(text.len + 1);
    if (copy == NULL) {
        exit(3);
    }
    if (text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int fault(const char *what, const bay_diag *diag)
{
    fprintf(stderr, "%s: %s\n", what, diag->text);
    return 1;
}

static int finish(bay_err err, bay_reply *reply, const char *what, const bay_diag *diag)
{
    if (err != BAY_OK) {
        return fault(what, diag);
    }
    printf("%s: %.*s\n", what, BAY_STR(bay_reply_json(reply)));
    bay_reply_free(reply);
    return 0;
}

static int call(bay_client *client, const char *tool, const char *arguments)
{
    bay_reply *reply = NULL;
    bay_diag diag = {0};
    bay_err err = bay_client_call(client, tool, arguments, &reply, &diag);
    return finish(err, reply, tool, &diag);
}

static int list(bay_client *client, bay_kind kind, bay_list **out)
{
    bay_diag diag = {0};
    if (bay_client_list(client, kind, out, &diag) != BAY_OK) {
        *out = NULL;
        return fault("list", &diag);
    }
    for (size_t i = 0; i < bay_list_rejected_count(*out); i++) {
        printf("left out: %.*s\n", BAY_STR(bay_list_rejected(*out, i)));
    }
    return 0;
}

static int list_tools(bay_client *client)
{
    bay_list *tools;
    int status = list(client, BAY_KIND_TOOLS, &tools);
    bay_list_free(tools);
    return status;
}

/* ---- who answers the server's questions ------------------------------------------------------ */

static void accept_defaults(bay_question *question, void *user)
{
    bay_diag diag = {0};
    (void)user;
    if (bay_question_accept(question, NULL, &diag) != BAY_OK) {
        fprintf(stderr, "a form: %s\n", diag.text);
        bay_question_decline(question);
    }
}

static void sample(bay_question *question, void *user)
{
    (void)user;
    bay_question_reply(question, "fixture", "A reply of the fixture's model.");
}

/* Lets a form wait until somebody has looked at the other requests. */
static void keep_waiting(bay_question *question, void *user)
{
    bay_question **waiting = user;
    *waiting = bay_question_defer(question);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static int play_tools(bay_client *client, const char *context)
{
    (void)context;
    return list_tools(client) + call(client, "add_numbers", "{\"a\":5,\"b\":3}");
}

static int play_list(bay_client *client, const char *context)
{
    (void)context;
    return list_tools(client);
}

static int play_defaults(bay_client *client, const char *context)
{
    (void)context;
    return list_tools(client) + call(client, "test_client_elicitation_defaults", "{}");
}

static int play_reconnection(bay_client *client, const char *context)
{
    /* No list before it: whoever keeps a list listens for changes, and the suite takes any GET for
     * the one that comes back. */
    (void)context;
    return call(client, "test_reconnection", "{}");
}

typedef struct started {
    bool is_done;
    int status;
} started;

static void ended(bay_request *request, bay_reply *reply, const bay_diag *diag, void *user)
{
    started *self = user;
    (void)request;
    self->is_done = true;
    self->status = finish(diag->code, reply, "started", diag);
}

static bay_question *waiting; /* of play_rounds */

/* A call that requires input; while its form is open, another call goes its own way. */
static int play_round(bay_client *client, const char *tool, bool has_company)
{
    bay_diag diag = {0};
    started one = {0};
    int status = 0;
    if (bay_request_start(bay_request_tool(client, tool, "{}"), &diag, ended, &one) != BAY_OK) {
        return fault(tool, &diag);
    }
    while (!one.is_done && waiting == NULL && bay_client_wait(client, 1000) == BAY_OK) {
    }
    if (has_company) {
        status += call(client, "test_mrtr_unrelated", "{}");
    }
    if (waiting != NULL) {
        bay_question *question = waiting;
        waiting = NULL;
        if (bay_question_accept(question, "{\"confirmed\":true}", &diag) != BAY_OK) {
            bay_question_decline(question);
            status += fault("a form", &diag);
        }
    }
    while (!one.is_done && bay_client_wait(client, 1000) == BAY_OK) {
    }
    return status + one.status;
}

static int play_rounds(bay_client *client, const char *context)
{
    (void)context;
    return list_tools(client) + play_round(client, "test_mrtr_echo_state", true) +
           play_round(client, "test_mrtr_no_state", false) +
           call(client, "test_mrtr_no_result_type", "{}");
}

/* Every tool that the library lets through. */
static int play_each_tool(bay_client *client, const char *context)
{
    bay_list *tools;
    int status = list(client, BAY_KIND_TOOLS, &tools);
    (void)context;
    for (size_t i = 0; i < bay_list_count(tools); i++) {
        char *name = dup_str(bay_list_name(tools, i));
        status += call(client, name, "{}");
        free(name);
    }
    bay_list_free(tools);
    return status;
}

static int read_each(bay_client *client)
{
    bay_list *resources;
    bay_diag diag = {0};
    int status = list(client, BAY_KIND_RESOURCES, &resources);
    for (size_t i = 0; i < bay_list_count(resources); i++) {
        bay_reply *reply = NULL;
        char *uri = dup_str(bay_list_uri(resources, i));
        status += finish(bay_client_read(client, uri, &reply, &diag), reply, uri, &diag);
        free(uri);
    }
    bay_list_free(resources);
    return status;
}

static int get_each(bay_client *client)
{
    bay_list *prompts;
    bay_diag diag = {0};
    int status = list(client, BAY_KIND_PROMPTS, &prompts);
    for (size_t i = 0; i < bay_list_count(prompts); i++) {
        bay_reply *reply = NULL;
        char *name = dup_str(bay_list_name(prompts, i));
        status += finish(bay_client_prompt(client, name, NULL, &reply, &diag), reply, name, &diag);
        free(name);
    }
    bay_list_free(prompts);
    return status;
}

static int play_everything(bay_client *client, const char *context)
{
    return play_each_tool(client, context) + read_each(client) + get_each(client);
}

/* The calls that the suite names, with its values. */
static int play_context(bay_client *client, const char *context)
{
    bay_str calls = part_of(text_of(context), "toolCalls", 0);
    bay_str one;
    int status = list_tools(client);
    for (size_t i = 0; (one = part_of(calls, NULL, i)).len > 0; i++) {
        bay_str quoted = part_of(one, "name", 0);
        char *name = dup_str((bay_str){quoted.at + 1, quoted.len - 2});
        char *arguments = dup_str(part_of(one, "arguments", 0));
        status += call(client, name, arguments);
        free(name);
        free(arguments);
    }
    return status;
}

/* A schema goes back as it came. */
static int play_echo(bay_client *client, const char *context)
{
    bay_list *tools;
    int status = list(client, BAY_KIND_TOOLS, &tools);
    size_t at = bay_list_find(tools, "json_schema_2020_12_tool");
    (void)context;
    if (at < bay_list_count(tools)) {
        char *entry = dup_str(part_of(bay_list_json(tools, at), "inputSchema", 0));
        size_t size = strlen(entry) + 32;
        char *arguments = malloc(size);
        if (arguments == NULL) {
            exit(3);
        }
        snprintf(arguments, size, "{\"schema\":%s}", entry);
        status += call(client, "json_schema_echo", arguments);
        free(arguments);
        free(entry);
    }
    bay_list_free(tools);
    return status;
}

static int play_skills(bay_client *client, const char *context)
{
    bay_list *skills;
    int status = list(client, BAY_KIND_SKILLS, &skills);
    (void)context;
    bay_list_free(skills);
    return status;
}

/* Loads a skill; goes on to its other file only if that succeeds. */
static int play_skill_files(bay_client *client, const char *context)
{
    static const char *const files[] = {"SKILL.md", "references/FORMS.md"};
    int status = play_skills(client, context);
    for (size_t i = 0; status == 0 && i < 2; i++) {
        bay_reply *reply = NULL;
        bay_diag diag = {0};
        bay_err err = bay_client_skill_file(client, "pdf-processing", files[i], &reply, &diag);
        status = finish(err, reply, files[i], &diag);
        if (err == BAY_ERR_DENIED) {
            return 0; /* as it should */
        }
    }
    return status;
}

/* ---- authorization: a person that agrees at once, in a browser that follows one redirect
 * ------ */

/* GET of http://HOST:PORT/PATH; the head of the reply. */
static void http_get(const char *url, char *out, size_t size)
{
    char host[128] = "", port[16] = "";
    int path = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    out[0] = '\0';
    if (sscanf(url, "http://%127[^:/]:%15[0-9]%n", host, port, &path) != 2 ||
        getaddrinfo(host, port, &hints, &found) != 0) {
        return;
    }
    int fd = -1;
    for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0) {
        return;
    }
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n", url + path, host,
            port);
    size_t len = 0;
    ssize_t got;
    while (len + 1 < size && (got = read(fd, out + len, size - len - 1)) > 0) {
        len += (size_t)got;
        out[len] = '\0';
    }
    close(fd);
}

static void browse(bay_login *login, const char *url, void *user)
{
    char reply[16384];
    (void)user;
    http_get(url, reply, sizeof(reply));
    char *location = strcasestr(reply, "\r\nlocation:");
    if (location == NULL) {
        bay_login_decline(login, "the authorization endpoint did not redirect");
        return;
    }
    location += sizeof("\r\nlocation:") - 1;
    location += strspn(location, " ");
    location[strcspn(location, "\r")] = '\0';
    if (!bay_login_redirected(login, location)) {
        bay_login_decline(login, "the redirect was not the one that was waited for");
    }
}

static char *member_of(const char *context, const char *name)
{
    bay_str raw = part_of(text_of(context), name, 0);
    if (raw.len < 2) {
        return NULL;
    }
    char *text = dup_str((bay_str){raw.at + 1, raw.len - 2});
    char *to = text;
    for (char *from = text; *from != '\0'; from++) { /* a key in PEM has line ends */
        bool is_line = from[0] == '\\' && from[1] == 'n';
        *to++ = is_line ? '\n' : *from;
        from += is_line;
    }
    *to = '\0';
    return text;
}

static char *token; /* the one to present */

static void give_token(bay_login *login, void *user)
{
    (void)user;
    bay_login_token(login, token);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bay_oauth *oauth_of(const char *scenario, const char *context)
{
    bool is_client = begins(scenario, "auth/client-credentials-");
    bool is_workload = begins(scenario, "auth/wif-");
    bool is_enterprise = begins(scenario, "auth/enterprise-managed") ||
                         begins(scenario, "auth/cross-app-access"); /* as it was called in 0.1 */
    char *id = member_of(context, "client_id");
    char *secret = member_of(context, "client_secret");
    char *key = member_of(context, "private_key_pem");
    bay_oauth *oauth = bay_oauth_new(is_client       ? BAY_OAUTH_GRANT_CLIENT
                                     : is_workload   ? BAY_OAUTH_GRANT_WORKLOAD
                                     : is_enterprise ? BAY_OAUTH_GRANT_ENTERPRISE
                                                     : BAY_OAUTH_GRANT_BROWSER);
    if (id != NULL) {
        bay_oauth_client(oauth, id, secret);
    }
    if (key != NULL) {
        bay_oauth_key(oauth, key, NULL);
    }
    if (is_enterprise) {
        char *endpoint = member_of(context, "idp_token_endpoint");
        char *idp_id = member_of(context, "idp_client_id");
        bay_oauth_provider(oauth, endpoint, true, idp_id, NULL);
        free(endpoint);
        free(idp_id);
    }
    token = member_of(context, is_enterprise ? "idp_id_token" : "valid_jwt");
    bay_oauth_on_token(oauth, give_token, NULL);
    bay_oauth_document(oauth, "https://conformance-test.local/client-metadata.json");
    bay_oauth_on_open(oauth, browse, NULL);
    free(id);
    free(secret);
    free(key);
    return oauth;
}

static int play_authorized(bay_client *client, const char *context)
{
    (void)context;
    return list_tools(client) + call(client, "test-tool", "{}");
}

static const struct {
    const char *name;
    int (*play)(bay_client *client, const char *context);
} scenarios[] = {
    {"initialize", play_list},
    {"tools_call", play_tools},
    {"elicitation-sep1034-client-defaults", play_defaults},
    {"sse-retry", play_reconnection},
    {"request-metadata", play_list},
    {"sep-2322-client-request-state", play_rounds},
    {"http-standard-headers", play_everything},
    {"http-custom-headers", play_context},
    {"http-invalid-tool-headers", play_each_tool},
    {"json-schema-ref-no-deref", play_list},
    {"json-schema-2020-12-preservation", play_echo},
    {"sep-2640-client-no-prefetch", play_skills},
    {"sep-2640-client-verify-digest", play_skill_files},
    {"sep-2640-client-verify-size", play_skill_files},
    {"sep-2640-client-verify-frontmatter", play_skill_files},
};

/* What a client that can do everything declares. */
static bay_client_options *options_of(const char *scenario, const char *context)
{
    bool has_rounds = strcmp(scenario, "sep-2322-client-request-state") == 0;
    bay_client_options *options = bay_client_options_new();
    bay_client_options_name(options, "patchbay-conformance", bay_version());
    bay_client_options_timeout(options, 30000, 50000);
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL,
                                   has_rounds ? keep_waiting : accept_defaults, &waiting);
    bay_client_options_sampling(options, NULL, sample, NULL);
    bay_client_options_root(options, "file:///tmp", "tmp");
    if (begins(scenario, "auth/")) {
        bay_oauth *oauth = oauth_of(scenario, context);
        bay_client_options_oauth(options, oauth);
        bay_oauth_free(oauth);
    }
    return options;
}

int main(int argc, char **argv)
{
    const char *scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
    int (*play)(bay_client *, const char *) = play_each_tool;
    bay_client *client;
    bay_diag diag = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }
    scenario = scenario != NULL ? scenario : "";
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
        if (strcmp(scenario, scenarios[i].name) == 0) {
            play = scenarios[i].play;
        }
    }
    if (begins(scenario, "auth/")) {
        play = play_authorized;
    }
    context = context != NULL ? context : "{}";
    bay_client_options *options = options_of(scenario, context);
    bay_err err = bay_client_connect(argv[argc - 1], options, &client, &diag);
    bay_client_options_free(options);
    if (err != BAY_OK) {
        return fault("connect", &diag);
    }
    int status = play(client, context);
    bay_client_close(client);
    free(token);
    return status == 0 ? 0 : 1;
}
