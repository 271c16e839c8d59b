/* pin: the lock file, recorded and approved. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/definitions.h"
#include "cli/print.h"
#include "cli/say.h"
#include "trust/diff.h"
#include "trust/identity.h"

enum { CANON_BYTES = 64 << 20, ANSWER_BYTES = 64 };

typedef struct pinner {
    const cli_arguments *arguments;
    const config *settings; /* NULL: none is needed */
    const char *path;
    trust_lock lock;
    scanner *scan;
    char now[TRUST_TIME_BYTES + 1];
    char by[TRUST_BY_BYTES + 1];
    bool is_review;
    bool asks;      /* a person, for each */
    bool has_ended; /* the person has had enough */
    bool is_changed;
    size_t put;
    size_t left;
    trust_class worst; /* of what stays without approval */
    output device;
    buf text;
} pinner;

/* ---- what is put in -------------------------------------------------------------------------- */

static bay_err put(pinner *self, trust_pinned *server, const trust_item *item)
{
    arena memory;
    buf canon;
    const trust_pin *before = trust_pinned_find(server, item->kind, item->name);
    trust_pin pin = {.kind = item->kind, .name = item->name};
    arena_init(&memory, TRUST_TEXT_BYTES);
    buf_init(&canon, CANON_BYTES);
    bay_err err = trust_canon(item->value, &memory, &canon, pin.digest);
    bool is_same = err == BAY_OK && before != NULL && strcmp(before->digest, pin.digest) == 0;
    pin.canon = buf_view(&canon);
    pin.seen = is_same ? before->seen : str_of(self->now);
    if (self->is_review) {
        pin.approved = str_of(self->now);
        pin.by = str_of(self->by);
    }
    if (err == BAY_OK && (!is_same || self->is_review)) {
        err = trust_lock_put(&self->lock, server, &pin);
        self->is_changed = true;
        self->put++;
    }
    arena_fini(&memory);
    buf_fini(&canon);
    return err;
}

/* "KIND NAME"; the name alone; the kind alone of what has no name of its own; "*". A pattern that begins with a kind
 * is about that kind only, whatever an item of another one is called. */
static bool is_chosen(const pinner *self, const char *kind, bay_str name)
{
    trust_kind other;
    if (self->arguments->approve == NULL) {
        return false;
    }
    bay_str pattern = str_of(self->arguments->approve);
    bay_str word = str_head(pattern, str_find(pattern, ' '));
    bool has_name =
        trust_kind_find(str_of(kind), &other) && other != TRUST_INSTRUCTIONS && other != TRUST_CARD;
    bool is_kind = trust_kind_find(word, &other) || str_eq(word, STR("identity"));
    if (is_kind && word.len < pattern.len) {
        return str_eq(word, str_of(kind)) && str_glob(str_from(pattern, word.len + 1), name);
    }
    return has_name ? str_glob(pattern, name)
                    : str_eq(pattern, str_of(kind)) || str_eq(pattern, STR("*"));
}

/* On a terminal: what the person says. */
static bool ask(pinner *self, const char *kind, bay_str name)
{
    char answer[ANSWER_BYTES];
    char shown[TRUST_BY_BYTES];
    if (!self->asks || self->has_ended) {
        return false;
    }
    (void)output_flush(&self->device, &self->text);
    (void)shown_copy(shown, sizeof(shown), name, SHOWN_LINE);
    fprintf(stderr, "approve %s %s? [y/N/q] ", kind, shown);
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL || answer[0] == 'q') {
        self->has_ended = true;
        return false;
    }
    return answer[0] == 'y' || answer[0] == 'Y';
}

static bool approves(pinner *self, const char *kind, bay_str name)
{
    return self->is_review && (is_chosen(self, kind, name) || ask(self, kind, name));
}

static void leave(pinner *self, trust_class class)
{
    self->left++;
    self->worst = class > self->worst ? class : self->worst;
}

/* ---- one item -------------------------------------------------------------------------------- */

static bool is_approved(const trust_pinned *server, const trust_item *item)
{
    const trust_pin *pin = trust_pinned_find(server, item->kind, item->name);
    return pin != NULL && pin->approved.len > 0;
}

static void put_unapproved(pinner *self, const trust_item *item)
{
    buf_printf(&self->text, "= %s%s", trust_kind_text(item->kind), item->name.len > 0 ? " " : "");
    output_line(&self->text, item->name);
    buf_lit(&self->text, "\n    review     -: it was recorded and is not approved\n");
}

/* Is it what the lock has, to the digest? The gateway compares nothing else. */
static bay_err is_pinned(const trust_pinned *server, const trust_item *item, bool *out)
{
    arena memory;
    buf canon;
    char digest[DIGEST_TEXT_BYTES + 1];
    const trust_pin *pin = trust_pinned_find(server, item->kind, item->name);
    arena_init(&memory, TRUST_TEXT_BYTES);
    buf_init(&canon, CANON_BYTES);
    bay_err err = trust_canon(item->value, &memory, &canon, digest);
    *out = err == BAY_OK && pin != NULL && strcmp(pin->digest, digest) == 0;
    arena_fini(&memory);
    buf_fini(&canon);
    return err;
}

static void put_reordered(pinner *self, const trust_item *item)
{
    buf_printf(&self->text, "~ %s%s", trust_kind_text(item->kind), item->name.len > 0 ? " " : "");
    output_line(&self->text, item->name);
    buf_lit(&self->text,
            "\n    compatible -: it means the same, and the order of a list in it changed\n");
}

static bay_err take_item(pinner *self, trust_pinned *server, const trust_item *before,
                         const trust_item *after)
{
    trust_diff diff;
    const trust_item *item = after != NULL ? after : before;
    trust_diff_init(&diff);
    bay_err err = trust_diff_item(&diff, before, after, self->scan);
    trust_class class = diff.worst;
    bool is_same = true;
    if (err == BAY_OK && class == TRUST_SAME && after != NULL) {
        err = is_pinned(server, after, &is_same);
    }
    if (!is_same) {
        class = TRUST_COMPATIBLE;
        put_reordered(self, item);
    } else if (class == TRUST_SAME && self->is_review && !is_approved(server, item)) {
        class = TRUST_REVIEW;
        put_unapproved(self, item);
    } else if (class != TRUST_SAME) {
        trust_diff_write_changes(&diff, &self->text);
    }
    trust_diff_fini(&diff);
    if (err != BAY_OK || class == TRUST_SAME) {
        return err;
    }
    bool is_taken =
        self->is_review ? approves(self, trust_kind_text(item->kind), item->name) : after != NULL;
    if (!is_taken) {
        leave(self, class);
        return BAY_OK;
    }
    if (after != NULL) {
        return put(self, server, after);
    }
    trust_pinned_remove(&self->lock, server, item->kind, item->name);
    self->is_changed = true;
    self->put++;
    return BAY_OK;
}

static bay_err take_items(pinner *self, trust_pinned *server, const trust_definitions *before,
                          const trust_definitions *after)
{
    bay_err err = BAY_OK;
    for (size_t i = 0, k = 0; err == BAY_OK && (i < before->count || k < after->count);) {
        const trust_item *left = i < before->count ? &before->items[i] : NULL;
        const trust_item *right = k < after->count ? &after->items[k] : NULL;
        int order = trust_item_compare(left, right);
        i += order <= 0 ? 1 : 0;
        k += order >= 0 ? 1 : 0;
        err = take_item(self, server, order <= 0 ? left : NULL, order >= 0 ? right : NULL);
    }
    return err;
}

/* ---- one server ------------------------------------------------------------------------------ */

static bay_err take_identity(pinner *self, trust_pinned *server, bay_str now)
{
    bool is_same = str_eq(server->identity, now);
    bool is_open = self->is_review && server->approved.len == 0;
    if (now.len == 0 || (is_same && !is_open)) {
        return BAY_OK;
    }
    trust_class class = server->identity.len > 0 && !is_same ? TRUST_RISK : TRUST_REVIEW;
    buf_printf(&self->text, "%s identity\n    %-10s -: %s\n",
               is_same                    ? "="
               : server->identity.len > 0 ? "~"
                                          : "+",
               trust_class_text(class),
               is_same                    ? "the identity was recorded and is not approved"
               : server->identity.len > 0 ? "the program, its arguments or its address changed"
                                          : "the identity was not recorded before");
    if (!is_same && server->identity.len > 0) {
        buf_lit(&self->text, "        - ");
        output_line(&self->text, server->identity);
        buf_char(&self->text, '\n');
    }
    buf_lit(&self->text, "        + ");
    output_line(&self->text, now);
    buf_char(&self->text, '\n');
    if (self->is_review && !approves(self, "identity", server->name)) {
        leave(self, class);
        return BAY_OK;
    }
    self->is_changed = true;
    server->approved = self->is_review ? str_of(self->now) : (bay_str){"", 0};
    server->by = self->is_review ? str_of(self->by) : (bay_str){"", 0};
    if (!is_same) {
        server->seen = str_of(self->now);
    }
    self->put++;
    return arena_dup(&self->lock.memory, now, &server->identity);
}

static void put_heading(pinner *self, const trust_pinned *server)
{
    buf_printf(&self->text, "%s%s \"", self->text.len > 0 ? "\n" : "",
               server->is_agent ? "agent" : "server");
    output_line(&self->text, server->name);
    buf_lit(&self->text, "\"\n");
}

static cli_exit take_server(pinner *self, const cli_arguments *arguments)
{
    cli_definitions live;
    trust_definitions pinned;
    trust_pinned *server = NULL;
    buf identity;
    bay_err err = BAY_OK;
    cli_exit code = cli_definitions_load(&live, arguments);
    trust_definitions_init(&pinned, (bay_str){"", 0});
    buf_init(&identity, TRUST_IDENTITY_BYTES);
    if (code == CLI_EXIT_OK && live.pin.len == 0) {
        cli_say("--name is missing: the name of this server in the lock file");
        code = CLI_EXIT_USAGE;
    }
    if (code == CLI_EXIT_OK) {
        cli_identify(arguments, &identity);
        err = trust_lock_enter(&self->lock, live.pin, live.is_agent, &server);
        err = err == BAY_OK ? trust_pinned_definitions(server, &pinned) : err;
        if (err == BAY_OK) {
            put_heading(self, server);
            err = take_identity(self, server, buf_view(&identity));
        }
        err = err == BAY_OK ? take_items(self, server, &pinned, &live.all) : err;
        code = err == BAY_OK ? CLI_EXIT_OK : cli_fail(err);
    }
    trust_definitions_fini(&pinned);
    buf_fini(&identity);
    cli_definitions_fini(&live);
    return code;
}

static cli_exit take_all(pinner *self)
{
    cli_arguments one;
    cli_exit first = CLI_EXIT_OK;
    for (size_t at = 0; cli_definitions_next(self->settings, self->arguments, &at, &one);) {
        cli_exit code = take_server(self, &one);
        first = first == CLI_EXIT_OK ? code : first;
        if (code >= 128 || self->has_ended) {
            break;
        }
    }
    return first;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void take_who(pinner *self)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *name = self->arguments->by != NULL ? self->arguments->by
                       : user != NULL              ? user->pw_name
                                                   : "somebody";
    (void)snprintf(self->by, sizeof(self->by), "%s", name);
    trust_time((int64_t)time(NULL), self->now);
}

static cli_exit finish(pinner *self, cli_exit code)
{
    bay_diag diag = {0};
    bay_err err = self->is_changed ? trust_lock_save(&self->lock, self->path, &diag) : BAY_OK;
    if (err != BAY_OK) {
        cli_say("%s%s", diag.text,
                err == BAY_ERR_STATE ? "; nothing was written: run the command again" : "");
        return CLI_EXIT_FAILED;
    }
    buf_printf(&self->text, "%s%zu %s, %zu left\n", self->text.len > 0 ? "\n" : "", self->put,
               self->is_review ? "approved" : "recorded", self->left);
    bool is_good = code == CLI_EXIT_OK;
    cli_exit printed = cli_print(&self->device, &self->text, cli_exit_of_class(self->worst));
    return is_good ? printed : code;
}

static cli_exit run(pinner *self)
{
    const char *path = NULL;
    if (cli_definitions_need_config(self->arguments) &&
        cli_load_config(self->arguments, false, &path, &self->settings) != BAY_OK) {
        return CLI_EXIT_CONFIG;
    }
    cli_exit code = cli_lock_load(self->arguments, self->settings, &self->lock, &self->path);
    if (code != CLI_EXIT_OK) {
        return code;
    }
    bay_err err = scanner_new(&self->scan);
    if (err != BAY_OK) {
        return cli_fail(err);
    }
    code = self->arguments->target_kind == CLI_TARGET_NONE ? take_all(self)
                                                           : take_server(self, self->arguments);
    return finish(self, code);
}

int cmd_pin(const cli_arguments *arguments)
{
    pinner self = {.arguments = arguments, .is_review = strcmp(arguments->name, "review") == 0};
    self.asks = self.is_review && arguments->approve == NULL && isatty(STDIN_FILENO) == 1 &&
                isatty(STDERR_FILENO) == 1;
    if (arguments->approve != NULL && !self.is_review) {
        cli_say("--approve is for pin review");
        return CLI_EXIT_USAGE;
    }
    trust_lock_init(&self.lock);
    cli_print_init(&self.device, &self.text, arguments);
    take_who(&self);
    cli_exit code = run(&self);
    buf_fini(&self.text);
    trust_lock_fini(&self.lock);
    scanner_free(self.scan);
    config_free(self.settings);
    return (int)code;
}
