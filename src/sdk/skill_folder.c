/* The files of a skill's folder, read whole. Symbolic links are refused rather than followed (they
 * may lead anywhere), and so is what is neither a file nor a folder. Names that begin with a dot
 * are left out: they belong to editors and version control. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "sdk/skills.h"

enum { READ_STEP = 64 * 1024 };

static void skill_folder_tell(skill *self, const buf *path, const char *what)
{
    sdk_skill_error(self, "%.150s: %s", path->len > 0 ? path->at : SKILL_MAIN_FILE, what);
}

/* Reads until the end: the size that stat told may be an old one. */
static bool read_whole(skill *self, int descriptor, const buf *path, buf *into)
{
    for (;;) {
        if (!buf_reserve(into, READ_STEP)) {
            break;
        }
        ssize_t got = read(descriptor, into->at + into->len, READ_STEP);
        if (got == 0) {
            return true;
        }
        if (got > 0) {
            into->len += (size_t)got;
        } else if (errno != EINTR) {
            skill_folder_tell(self, path, strerror(errno));
            return false;
        }
    }
    if (into->err == BAY_ERR_LIMIT) {
        sdk_skill_error(self, "its files have more than %d bytes", SKILL_MAX_BYTES);
    } else {
        self->server->is_out_of_memory = true;
    }
    return false;
}

static void add_file(skill *self, int descriptor, const buf *path)
{
    buf bytes;
    buf_init(&bytes, SKILL_MAX_BYTES - self->bytes + READ_STEP);
    if (read_whole(self, descriptor, path, &bytes)) {
        (void)sdk_skill_add(self, (bay_str){path->at, path->len - 1}, NULL, buf_view(&bytes));
    }
    buf_fini(&bytes);
}

static void read_folder(skill *self, int descriptor, buf *path, int depth);

/* `path` ends in a NUL, which is counted. Takes `descriptor`. */
static void read_one(skill *self, int descriptor, buf *path, int depth)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0) {
        skill_folder_tell(self, path, strerror(errno));
    } else if (S_ISREG(about.st_mode)) {
        add_file(self, descriptor, path);
    } else if (!S_ISDIR(about.st_mode)) {
        skill_folder_tell(self, path, "it is neither a file nor a folder");
    } else if (depth == SKILL_MAX_DEPTH) {
        skill_folder_tell(self, path, "folders are nested too deeply");
    } else {
        path->at[path->len - 1] = '/';
        read_folder(self, descriptor, path, depth + 1);
        return;
    }
    close(descriptor);
}

static void read_name(skill *self, int folder, const char *name, buf *path, int depth)
{
    size_t before = path->len;
    buf_append(path, name, strlen(name) + 1);
    if (path->err != BAY_OK) {
        if (path->err == BAY_ERR_LIMIT) {
            sdk_skill_error(self, "\"%.100s\": the path is too long", name);
        } else {
            self->server->is_out_of_memory = true;
        }
        return;
    }
    int descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        skill_folder_tell(self, path,
                          errno == ELOOP ? "symbolic links are not followed" : strerror(errno));
    } else {
        read_one(self, descriptor, path, depth);
    }
    path->len = before;
}

/* `path` is empty or ends in a slash. Takes `descriptor`. */
static void read_folder(skill *self, int descriptor, buf *path, int depth)
{
    DIR *folder = fdopendir(descriptor);
    if (folder == NULL) {
        close(descriptor);
        self->server->is_out_of_memory = true;
        return;
    }
    const struct dirent *item;
    while (!self->is_broken && !self->server->is_out_of_memory &&
           (item = readdir(folder)) != NULL) {
        if (item->d_name[0] != '.') {
            read_name(self, dirfd(folder), item->d_name, path, depth);
        }
    }
    closedir(folder);
}

void sdk_skill_read_folder(skill *self)
{
    buf path;
    buf_init(&path, SKILL_MAX_PATH_BYTES + 1);
    int descriptor = open(self->folder.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        sdk_skill_error(self, "%.150s: %s", self->folder.at, strerror(errno));
    } else {
        read_folder(self, descriptor, &path, 0);
    }
    buf_fini(&path);
}
