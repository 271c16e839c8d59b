/* Files below one folder: list, read, search. No path leaves the folder, by ".." or by a symbolic
 * link: every path is opened by the kernel beneath the root (openat2, RESOLVE_BENEATH).
 *
 *     files [ROOT] [--stdio | --http ADDRESS]      ROOT: the current folder unless given */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <patchbay/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_ENTRIES = 1000, MAX_READ = 1 << 20, MAX_HITS = 100, MAX_DEPTH = 16, MAX_SEEN = 20000 };

/* `root` is the descriptor of the folder. */
static int open_beneath(const int *root, bay_str path, uint64_t flags)
{
    char text[4096];
    struct open_how how = {.flags = flags | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    errno = ENAMETOOLONG;
    bool fits = bay_str_copy(path, text, sizeof(text)); /* and has no NUL byte */
    return fits ? (int)syscall(SYS_openat2, *root, text, &how, sizeof(how)) : -1;
}

static void fail(bay_call *call, bay_str path)
{
    const char *why = errno == EXDEV ? "it leads out of the folder" : strerror(errno);
    bay_call_failf(call, "\"%.*s\" cannot be opened: %s", BAY_STR(path), why);
}

static void list_directory(bay_call *call, void *user)
{
    bay_str path = bay_call_str(call, "path");
    int folder = open_beneath(user, path, O_RDONLY | O_DIRECTORY);
    DIR *entries = folder >= 0 ? fdopendir(folder) : NULL;
    if (entries == NULL) {
        fail(call, path);
        return;
    }
    bay_result *result = bay_result_new(call);
    int count = 0;
    for (struct dirent *at; count < MAX_ENTRIES && (at = readdir(entries)) != NULL;) {
        struct stat info;
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0 ||
            fstatat(folder, at->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        const char *sign = S_ISDIR(info.st_mode) ? "/" : S_ISLNK(info.st_mode) ? "@" : "";
        bay_result_textf(result, "%s%s  %lld bytes", at->d_name, sign, (long long)info.st_size);
        count++;
    }
    bay_result_textf(result, count < MAX_ENTRIES ? "%d entries" : "the first %d entries", count);
    closedir(entries);
    bay_call_finish(call, result);
}

static void read_file(bay_call *call, void *user)
{
    bay_str path = bay_call_str(call, "path");
    struct stat info;
    int file = open_beneath(user, path, O_RDONLY);
    char *text = malloc(MAX_READ);
    if (file < 0 || text == NULL || fstat(file, &info) != 0) {
        fail(call, path);
    } else if (!S_ISREG(info.st_mode) || info.st_size > MAX_READ) {
        bay_call_failf(call, "\"%.*s\" is no file of up to %d bytes", BAY_STR(path), MAX_READ);
    } else {
        ssize_t len = read(file, text, MAX_READ);
        bay_call_reply_str(call, (bay_str){text, len > 0 ? (size_t)len : 0});
    }
    free(text);
    close(file);
}

typedef struct search {
    bay_str wanted;
    bay_result *result;
    bay_call *call;
    int hits, seen;
} search;

/* Takes over `folder`. Symbolic links are not followed. */
static void search_folder(search *self, int folder, const char *path, int depth)
{
    DIR *entries = fdopendir(folder);
    for (struct dirent *at; entries != NULL && (at = readdir(entries)) != NULL;) {
        char full[4096];
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0 ||
            self->hits >= MAX_HITS || ++self->seen > MAX_SEEN ||
            strlen(path) + strlen(at->d_name) + 2 > sizeof(full) ||
            bay_call_is_cancelled(self->call)) {
            continue;
        }
        char *end = stpcpy(full, path);
        stpcpy(stpcpy(end, end > full ? "/" : ""), at->d_name);
        if (memmem(at->d_name, strlen(at->d_name), self->wanted.at, self->wanted.len) != NULL) {
            bay_result_text(self->result, full);
            self->hits++;
        }
        int inner = depth < MAX_DEPTH ? openat(folder, at->d_name,
                                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                      : -1;
        if (inner >= 0) {
            search_folder(self, inner, full, depth + 1);
        }
    }
    entries != NULL ? closedir(entries) : close(folder);
}

static void search_files(bay_call *call, void *user)
{
    search self = {bay_call_str(call, "name"), bay_result_new(call), call, 0, 0};
    int folder = open_beneath(user, (bay_str){".", 1}, O_RDONLY | O_DIRECTORY);
    search_folder(&self, folder, "", 0);
    bay_result_textf(self.result, "%d found%s", self.hits,
                     self.hits >= MAX_HITS || self.seen > MAX_SEEN ? "; there may be more" : "");
    bay_call_finish(call, self.result);
}

static const bay_field path_input[] = {{"path", BAY_TYPE_STRING, .is_required = true}, {0}};
static const bay_field name_input[] = {{"name", BAY_TYPE_STRING, .is_required = true}, {0}};

int main(int argc, char **argv)
{
    bool has_root = argc > 1 && argv[1][0] != '-';
    int root = open(has_root ? argv[1] : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        fprintf(stderr, "files: %s: %s\n", has_root ? argv[1] : ".", strerror(errno));
        return 2;
    }
    bay_server *server = bay_server_new("files", "1.0.0");
    bay_tool *tools[] = {
        bay_server_tool(server, "list_directory", "The entries of a folder; . is the top.",
                        path_input, list_directory, &root),
        bay_server_tool(server, "read_file", "The text of a file.", path_input, read_file, &root),
        bay_server_tool(server, "search_files", "Files and folders by part of their name.",
                        name_input, search_files, &root),
    };
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        bay_tool_annotations(tools[i], "{\"readOnlyHint\":true,\"openWorldHint\":false}");
        bay_tool_blocking(tools[i]);
    }
    return bay_server_main(server, argc - has_root, argv + has_root);
}
