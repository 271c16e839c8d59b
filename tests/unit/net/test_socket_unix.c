/* Listening on a path: who could reach or replace the socket, what stood there before, and what is
 * left afterwards. */
#include "support/net_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "net/socket.h"
#include "support/skipped.h"

static char folder[] = "/tmp/unix.XXXXXX";
static char path[64];
static char address[80];

static void on_accepted(void *user, net_socket *socket)
{
    (*(int *)user)++;
    socket_abort(socket);
}

static bay_err try_listen(loop *on, const char *where, int *accepted, socket_listener **out,
                          bay_diag *diag)
{
    return socket_listen(on, str_of(where), NULL, on_accepted, accepted, out, diag);
}

static void expect_refused(const char *where, bay_err expected, const char *part)
{
    loop *on = test_loop();
    socket_listener *listener = NULL;
    bay_diag diag = {0};
    int accepted = 0;
    assert_int_equal(try_listen(on, where, &accepted, &listener, &diag), expected);
    if (strstr(diag.text, part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, diag.text);
    }
    assert_null(listener);
    loop_free(on);
}

static int connect_to(const char *where)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", where);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_there(void)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void only_whole_paths_are_taken(void **state)
{
    (void)state;
    static const char *const bad[] = {"unix:", "unix:name", "unix:./name", "unix:/", "unix:/tmp/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_refused(bad[i], BAY_ERR_INVALID, "unix:/FOLDER/NAME");
    }
    loop *on = test_loop();
    socket_listener *listener = NULL;
    int accepted = 0;
    bay_str holds_nul = {"unix:/tmp/a\0b", 13};
    assert_int_equal(socket_listen(on, holds_nul, NULL, on_accepted, &accepted, &listener, NULL),
                     BAY_ERR_INVALID);
    loop_free(on);
}

static void a_long_path_is_named_as_such(void **state)
{
    (void)state;
    char text[200] = "unix:/";
    memset(text + 6, 'a', 107);
    expect_refused(text, BAY_ERR_LIMIT, "108 bytes, 107 is the most");
    text[6 + 106] = '\0'; /* as long as it may be: what is wrong is something else */
    loop *on = test_loop();
    socket_listener *listener = NULL;
    int accepted = 0;
    bay_err err = try_listen(on, text, &accepted, &listener, NULL);
    assert_true(err == BAY_OK || err == BAY_ERR_IO || err == BAY_ERR_DENIED);
    loop_free(on);
}

static void folders_of_others_are_refused(void **state)
{
    (void)state;
    expect_refused("unix:/no/such/folder/name", BAY_ERR_IO,
                   "the folder /no/such/folder: No such file");
    assert_int_equal(chmod(folder, 0770), 0);
    expect_refused(address, BAY_ERR_DENIED, "other users could replace the socket");
    assert_int_equal(chmod(folder, 0702), 0);
    expect_refused(address, BAY_ERR_DENIED, "other users could replace the socket");
    char inside[80];
    char below[120];
    snprintf(inside, sizeof(inside), "%s/inside", folder);
    snprintf(below, sizeof(below), "unix:%s/name", inside);
    assert_int_equal(mkdir(inside, 0700), 0);
    expect_refused(below, BAY_ERR_DENIED, "other users could replace the socket"); /* its folder */
    assert_int_equal(chmod(folder, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(inside, 65534, 65534), 0);
        expect_refused(below, BAY_ERR_DENIED, "other users could replace the socket");
    }
    rmdir(inside);
}

static void what_is_no_socket_stays(void **state)
{
    (void)state;
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    expect_refused(address, BAY_ERR_IO, "a file that is no socket");
    assert_true(is_there());
    assert_int_equal(unlink(path), 0);
}

/* Neither one that leads to a dead socket nor one that leads nowhere. */
static void links_are_not_followed(void **state)
{
    (void)state;
    char target[80];
    snprintf(target, sizeof(target), "%s/target", folder);
    assert_int_equal(symlink(target, path), 0);
    expect_refused(address, BAY_ERR_IO, "a file that is no socket");
    struct stat about;
    assert_int_not_equal(lstat(target, &about), 0); /* nothing was made behind it */
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", target);
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&at, sizeof(at)), 0);
    close(dead);
    expect_refused(address, BAY_ERR_IO, "a file that is no socket");
    assert_int_equal(lstat(target, &about), 0);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(unlink(path), 0);
}

static void the_socket_of_another_user_stays(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        SKIP("only root can make one");
    }
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&at, sizeof(at)), 0);
    close(dead);
    assert_int_equal(chown(path, 65534, 65534), 0);
    expect_refused(address, BAY_ERR_IO, "the socket of another user");
    assert_true(is_there());
    assert_int_equal(unlink(path), 0);
}

/* ---- what is made ---------------------------------------------------------------------------- */

static void a_second_listener_is_told_so(void **state)
{
    (void)state;
    loop *on = test_loop();
    socket_listener *listener = NULL;
    bay_diag diag = {0};
    int accepted = 0;
    assert_int_equal(try_listen(on, address, &accepted, &listener, &diag), BAY_OK);
    expect_refused(address, BAY_ERR_STATE, "another process listens there");
    int fd = connect_to(path); /* the first one is untouched */
    assert_true(fd >= 0);
    turn_until(on, accepted >= 1);
    close(fd);
    socket_listener_close(listener);
    assert_false(is_there());
    loop_free(on);
}

static void others_are_kept_out_whatever_the_umask(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077};
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        loop *on = test_loop();
        socket_listener *listener = NULL;
        struct stat about;
        int accepted = 0;
        mode_t before = umask(masks[i]);
        assert_int_equal(try_listen(on, address, &accepted, &listener, NULL), BAY_OK);
        umask(before);
        assert_int_equal(lstat(path, &about), 0);
        assert_int_equal(about.st_mode, S_IFSOCK | 0600);
        assert_int_equal(socket_listener_port(listener), 0);
        loop_free(on); /* closes it */
        assert_false(is_there());
    }
}

/* As after kill -9: the file is there, and nobody behind it. */
static void what_a_dead_process_left_is_replaced(void **state)
{
    (void)state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(dead, 1), 0);
    close(dead);
    assert_true(is_there());
    loop *on = test_loop();
    socket_listener *listener = NULL;
    int accepted = 0;
    assert_int_equal(try_listen(on, address, &accepted, &listener, NULL), BAY_OK);
    int fd = connect_to(path);
    assert_true(fd >= 0);
    turn_until(on, accepted == 1);
    close(fd);
    socket_listener_close(listener);
    loop_free(on);
}

/* Somebody removed ours and made another: that one is not ours to remove. */
static void only_what_was_made_is_removed(void **state)
{
    (void)state;
    loop *on = test_loop();
    socket_listener *listener = NULL;
    int accepted = 0;
    assert_int_equal(try_listen(on, address, &accepted, &listener, NULL), BAY_OK);
    assert_int_equal(unlink(path), 0);
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(file >= 0);
    close(file);
    socket_listener_close(listener);
    loop_free(on);
    assert_true(is_there());
    assert_int_equal(unlink(path), 0);
}

static int open_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/name", folder);
    snprintf(address, sizeof(address), "unix:%s", path);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* empty again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_paths_are_taken),
        cmocka_unit_test(a_long_path_is_named_as_such),
        cmocka_unit_test(folders_of_others_are_refused),
        cmocka_unit_test(what_is_no_socket_stays),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(the_socket_of_another_user_stays),
        cmocka_unit_test(a_second_listener_is_told_so),
        cmocka_unit_test(others_are_kept_out_whatever_the_umask),
        cmocka_unit_test(what_a_dead_process_left_is_replaced),
        cmocka_unit_test(only_what_was_made_is_removed),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
