/* A client of a server that asks for authorization: a person logs in, the login is kept in a file
 * for the next time, and the tools are listed.
 *
 *     login URL [FILE] */
#include <fcntl.h>
#include <patchbay/client.h>
#include <patchbay/oauth.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The library has checked that it is a URL of a web page. */
static void show_page(bay_login *login, const char *url, void *user)
{
    (void)login;
    (void)user;
    printf("To log in, open this page:\n\n    %s\n\n", url);
    fflush(stdout);
}

static void load(bay_login *login, void *user)
{
    const char *path = user;
    static char record[256 * 1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, record, sizeof(record)) : 0;
    if (fd >= 0) {
        close(fd);
    }
    bay_login_loaded(login, (bay_str){record, len > 0 ? (size_t)len : 0});
}

/* Into a file beside, then in the place of the old one: a crash leaves one of the two. */
static bay_err save(bay_login *login, bay_str record, void *user)
{
    const char *path = user;
    char beside[4096];
    (void)login;
    snprintf(beside, sizeof(beside), "%s.new", path);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return BAY_ERR_IO;
    }
    bool is_written = write(fd, record.at, record.len) == (ssize_t)record.len && fsync(fd) == 0;
    close(fd);
    return is_written && rename(beside, path) == 0 ? BAY_OK : BAY_ERR_IO;
}

static int list_tools(bay_client *client)
{
    bay_list *tools;
    bay_diag diag;
    if (bay_client_list(client, BAY_KIND_TOOLS, &tools, &diag) != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    for (size_t i = 0; i < bay_list_count(tools); i++) {
        printf("%.*s\n", BAY_STR(bay_list_name(tools, i)));
    }
    bay_list_free(tools);
    return 0;
}

int main(int argc, char **argv)
{
    bay_client *client;
    bay_diag diag;
    if (argc < 2) {
        fprintf(stderr, "usage: %s URL [FILE]\n", argv[0]);
        return 2;
    }
    bay_client_options *options = bay_client_options_new();
    char *path = argc > 2 ? argv[2] : (char[]){"login.json"};
    bay_oauth *oauth = bay_oauth_new(BAY_OAUTH_GRANT_BROWSER);
    bay_oauth_on_store(oauth, load, save, path);
    bay_oauth_on_open(oauth, show_page, NULL);
    bay_client_options_oauth(options, oauth);
    bay_oauth_free(oauth);
    bay_err err = bay_client_connect(argv[1], options, &client, &diag);
    bay_client_options_free(options);
    if (err != BAY_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 1;
    }
    int status = list_tools(client);
    bay_client_close(client);
    return status;
}
