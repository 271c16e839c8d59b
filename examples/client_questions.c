/* A client that can be asked: forms are filled in on the terminal, pages are named, the "model" is
 * a parrot, and the open folders are those given.
 *
 *     client_questions TARGET TOOL [ARGUMENTS] [ROOT…]      TARGET: a URL, or "stdio:COMMAND" */
#include <patchbay/client.h>
#include <stdio.h>
#include <string.h>

static void fill_in(bay_question *question, void *user)
{
    char line[256];
    bay_diag diag;
    (void)user;
    bool is_page = bay_question_url(question).len > 0;
    bay_print(stdout, bay_question_message(question)); /* a peer's words, before a person's eyes */
    printf(is_page ? "\nPlease visit " : "\nFields: ");
    bay_print(stdout, is_page ? bay_question_url(question) : bay_question_schema(question));
    printf("\nAn object, an empty line for the defaults, or \"no\": ");
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) == NULL) {
        bay_question_cancel(question);
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "no") == 0) {
        bay_question_decline(question);
    } else if (bay_question_accept(question, line[0] != '\0' ? line : NULL, &diag) != BAY_OK) {
        printf("That will not do: %s\n", diag.text);
        bay_question_decline(question);
    }
}

static void say_something(bay_question *question, void *user)
{
    (void)user;
    bay_question_reply(question, "parrot-1", "Polly wants a cracker.");
}

int main(int argc, char **argv)
{
    bay_client *client = NULL;
    bay_reply *reply = NULL;
    bay_diag diag;
    if (argc < 3) {
        fprintf(stderr, "usage: client_questions TARGET TOOL [ARGUMENTS] [ROOT...]\n");
        return 2;
    }
    bay_client_options *options = bay_client_options_new();
    bay_client_options_elicitation(options, BAY_ELICITATION_FORM | BAY_ELICITATION_URL, fill_in,
                                   NULL);
    bay_client_options_sampling(options, NULL, say_something, NULL);
    for (int i = 4; i < argc; i++) {
        bay_client_options_root(options, argv[i], NULL);
    }
    bay_err err = bay_client_connect(argv[1], options, &client, &diag);
    bay_client_options_free(options);
    if (err == BAY_OK) {
        err = bay_client_call(client, argv[2], argc > 3 ? argv[3] : NULL, &reply, &diag);
    }
    if (err != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
    }
    for (size_t i = 0; i < bay_reply_count(reply); i++) {
        bay_print(stdout, bay_reply_text(reply, i));
        putchar('\n');
    }
    bool is_bad = err != BAY_OK || bay_reply_is_error(reply);
    bay_reply_free(reply);
    bay_client_close(client);
    return is_bad;
}
