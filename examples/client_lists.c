/* What a server offers: tools, resources, templates, prompts, skills; and a word when it changes.
 *
 *     client_lists TARGET [SECONDS]      stays for so long, and tells of changes */
#include <patchbay/client.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    bay_kind kind;
    const char *name;
    const char *capability;
} kinds[] = {
    {BAY_KIND_TOOLS, "tools", "tools"},
    {BAY_KIND_RESOURCES, "resources", "resources"},
    {BAY_KIND_TEMPLATES, "templates", "resources"},
    {BAY_KIND_PROMPTS, "prompts", "prompts"},
    {BAY_KIND_SKILLS, "skills", "extensions.io.modelcontextprotocol/skills"},
};

static void show(bay_client *client, int which)
{
    bay_list *list = NULL;
    bay_diag diag;
    if (!bay_client_has(client, kinds[which].capability)) {
        return;
    }
    if (bay_client_list(client, kinds[which].kind, &list, &diag) != BAY_OK) {
        printf("%s: %s\n", kinds[which].name, diag.text);
        return;
    }
    printf("%zu %s\n", bay_list_count(list), kinds[which].name);
    for (size_t i = 0; i < bay_list_count(list); i++) {
        printf("  ");
        bay_print(stdout, bay_list_name(list, i));
        printf("  ");
        bay_print(stdout, bay_list_description(list, i));
        putchar('\n');
    }
    for (size_t i = 0; i < bay_list_rejected_count(list); i++) {
        printf("  left out: ");
        bay_print(stdout, bay_list_rejected(list, i));
        putchar('\n');
    }
    bay_list_free(list);
}

static void changed(bay_client *client, bay_kind kind, void *user)
{
    (void)client;
    *(unsigned *)user |= kind; /* listing waits, so not in here */
}

int main(int argc, char **argv)
{
    unsigned news = BAY_KIND_TOOLS | BAY_KIND_RESOURCES | BAY_KIND_TEMPLATES | BAY_KIND_PROMPTS |
                    BAY_KIND_SKILLS;
    bay_client *client = NULL;
    bay_diag diag;
    if (argc < 2) {
        fprintf(stderr, "usage: client_lists TARGET [SECONDS]\n");
        return 2;
    }
    bay_client_options *options = bay_client_options_new();
    bay_client_options_on_changed(options, changed, &news);
    bay_err err = bay_client_connect(argv[1], options, &client, &diag);
    bay_client_options_free(options);
    if (err != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    bay_print(stdout, bay_client_server_info(client));
    printf(", %.*s\n", BAY_STR(bay_client_revision(client)));
    for (long rest = argc > 2 ? strtol(argv[2], NULL, 10) : 0; rest >= 0; rest--) {
        for (int i = 0; i < 5; i++) {
            if ((news & kinds[i].kind) != 0) {
                show(client, i);
            }
        }
        news = 0;
        if (rest > 0 && bay_client_wait(client, 1000) != BAY_OK) {
            break;
        }
    }
    bay_client_close(client);
    return 0;
}
