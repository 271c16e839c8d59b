/* The command line: parsed into one struct along the tables of commands.def, which also make --help
 * and docs/cli.md. Parsing touches nothing outside: files and variables that options name are read
 * by cli_header_read and whoever needs them. */
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include "base/buf.h"
#include "config/config.h"
#include "net/tls.h"
#include "patchbay/types.h"

typedef enum cli_command {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail) CLI_##symbol,
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc)
#include "cli/commands.def"
    CLI_COMMAND_COUNT
} cli_command;

typedef enum cli_exit {
#define CLI_COMMAND(symbol, name, run, starts_servers, operands, summary, detail)
#define CLI_OPTION(symbol, letter, name, argument, commands, doc)
#define CLI_EXIT(symbol, code, doc) CLI_EXIT_##symbol = (code),
#include "cli/commands.def"
} cli_exit;

typedef enum cli_target_kind {
    CLI_TARGET_NONE,
    CLI_TARGET_URL,
    CLI_TARGET_NAME,  /* of the configuration */
    CLI_TARGET_ARGV,  /* a command behind `--` */
    CLI_TARGET_FILE,  /* a recording: @FILE */
    CLI_TARGET_AGENT, /* agent:URL or agent:NAME; `target` is without the prefix */
} cli_target_kind;

/* How findings are written. */
typedef enum cli_form { CLI_FORM_TEXT, CLI_FORM_JSON, CLI_FORM_SARIF, CLI_FORM_JUNIT } cli_form;

enum { CLI_HEADERS = 64, CLI_FILES = 64, CLI_MOST_WORDS = 256 /* of stdio:COMMAND */ };

/* Everything is borrowed from argv. */
typedef struct cli_arguments {
    cli_command command;
    bool wants_help; /* of `command`; HELP without a topic: of all */
    bool has_topic;  /* help COMMAND: `command` is that one, wants_help is set */
    cli_target_kind target_kind;
    bay_str target;                  /* URL, NAME or @FILE */
    char *const *target_argv;        /* behind --: ends in NULL; see cli_target_argv */
    char *words[CLI_MOST_WORDS + 1]; /* of a target that is stdio:COMMAND */
    const char *name;   /* of the tool or prompt; the URI of read; the text of send, which may be
                           NULL; the ID of task and cancel; the action of pin */
    char *const *pairs; /* KEY=VALUE... of call and prompt */
    size_t pair_count;
    const char *config_file;          /* NULL: not given */
    const char *listen;               /* NULL: not given */
    const char *profile;              /* NULL: not given */
    const char *socket_path;          /* --socket; NULL: not given */
    const char *json_arguments;       /* --arguments, as written; NULL: not given */
    const char *headers[CLI_HEADERS]; /* as written: cli_header_read */
    size_t header_count;
    tls_options tls;              /* --ca, --cert, --key, --insecure: those of a client */
    const char *files[CLI_FILES]; /* --file */
    size_t file_count;
    const char *data; /* --data, as written; these are NULL when not given */
    const char *task; /* --task … */
    const char *context;
    const char *skill;
    const char *keys_file;   /* --keys */
    const char *token_file;  /* --token-file */
    const char *client_id;   /* of login; NULL: not given */
    const char *secret_file; /* --client-secret */
    const char *issuer;
    const char *scope;
    const char *subject; /* --as of policy, --for of login; NULL: nobody in particular */
    const char *claims;  /* as written */
    const char *address;
    const char *binding; /* --interface: canonical names; NULL: any */
    const char *version;
    const char
        *action; /* of key: new, list, revoke; of policy: explain, test; of vault: list, revoke */
    const char *head;    /* of audit, as written; NULL: not given */
    uint64_t expires_ms; /* 0: not given */
    bool is_lifted;      /* --lift */
    int history;         /* -1: not given */
    bool is_open;
    bool is_stream;
    bool is_subscription;
    bool is_impatient; /* --no-wait */
    bool is_extended;
    bool is_device;      /* --device */
    bool is_browserless; /* --no-browser */
    uint32_t timeout_ms; /* 0: not given */
    uint32_t workers;    /* 0: not given */
    config_protocol protocol;
    config_transport transport;
    bool is_json;
    cli_form form;               /* JSON as well as is_json */
    const char *silence_file;    /* --silence; NULL: not given */
    cli_target_kind before_kind; /* of diff; NONE: the lock */
    bay_str before;
    const char *lock_file; /* --lock … these are NULL when not given */
    const char *pin_name;  /* --name */
    const char *approve;
    const char *by;
    const char *client_name; /* --as-client */
    const char *contracts;   /* --contracts */
    bool is_as_declared;
    bool learns;
    bool is_conformance;
    const struct sandbox_options *sandbox; /* how a command is held; NULL: as it is configured */
    bool is_colorless;
    uint32_t verbosity;
} cli_arguments;

/* argv[0] is skipped; argv may be reordered, as operands are gathered at its front.
 * Errors: BAY_ERR_INVALID: wrong use; the text in `diag` says what and what to do. Then the exit
 * code is CLI_EXIT_USAGE. */
bay_err cli_parse(int argc, char **argv, cli_arguments *out, bay_diag *diag) BAY_MUST_CHECK;
/* The words of a target that is a command. */
char *const *cli_target_argv(const cli_arguments *self);

/* Takes 'NAME: VALUE' apart; '@FILE' as the value is the first line of that file, ${VARIABLE}s are
 * replaced. The value is appended to `out_value`, which the caller wipes; no message shows it.
 * Errors: BAY_ERR_INVALID, BAY_ERR_SYNTAX, BAY_ERR_IO, BAY_ERR_LIMIT, BAY_ERR_NOMEM, each with a
 * text. */
bay_err cli_header_read(const char *header, bay_str *out_name, buf *out_value,
                        bay_diag *diag) BAY_MUST_CHECK;

/* The exit code that tells of an error. */
cli_exit cli_exit_of(bay_err err);

const char *cli_command_name(cli_command command);
void cli_write_usage(buf *out);                     /* all commands */
void cli_write_help(cli_command command, buf *out); /* one */
void cli_write_markdown(buf *out);                  /* docs/cli.md */

#endif
