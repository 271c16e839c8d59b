/* Checks whether the sandbox hides parts of the program: its interpreter, its shared libraries. The
 * dynamic linker would report this in its own words, without a remedy. Checked before the start by
 * reading the file; nothing of it is executed. What cannot be decided (another kind of file, a
 * library that is not found) is left to the start. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/sandbox_internal.h"

enum {
    LIBRARY_FILES = 256, /* read for one program */
    LIBRARY_DEPTH = 8,   /* from the program to a library of a library */
    LIBRARY_SEGMENTS = 64,
    LIBRARY_ENTRIES = 512, /* of a dynamic section */
    LIBRARY_CACHE = 4 << 20,
    NAME_BYTES = 256,
};

typedef struct search {
    const sandbox_options *options;
    const char *program;
    const char *library_path; /* LD_LIBRARY_PATH, or "" */
    bay_diag *diag;
    int files;
    int depth;
} search;

typedef struct image {
    int fd;
    const char *path;
    Elf64_Phdr segments[LIBRARY_SEGMENTS];
    size_t segment_count;
    Elf64_Dyn entries[LIBRARY_ENTRIES];
    size_t entry_count;
    uint64_t strings; /* offset in the file */
    char paths[PATH_MAX];
} image;

/* ---- what can be seen --------------------------------------------------------------------------
 */

static bool is_below(const char *path, const char *folder)
{
    char real[PATH_MAX];
    if (realpath(folder, real) == NULL) {
        return false;
    }
    size_t len = strcmp(real, "/") == 0 ? 0 : strlen(real);
    return strncmp(path, real, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* `real` contains no symbolic link. */
static bool is_shown(const search *self, const char *real)
{
    for (size_t i = 0; !self->options->has_no_defaults && sandbox_read_paths[i] != NULL; i++) {
        if (is_below(real, sandbox_read_paths[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < self->options->path_count; i++) {
        if (is_below(real, self->options->paths[i].path)) {
            return true;
        }
    }
    return is_below(real, self->program);
}

static bay_err hidden_error(const search *self, const char *real, const char *user)
{
    const char *end = strrchr(real, '/');
    int folder = end != NULL && end > real ? (int)(end - real) : 1;
    return diag_set(self->diag, BAY_ERR_SPAWN,
                    "cannot start \"%.60s\": its sandbox hides %.120s, which %.80s needs: add "
                    "\"%.*s\" to sandbox.fs",
                    self->program, real, user, folder < 120 ? folder : 120, real);
}

static bay_err check_file(search *self, const char *path);

/* ---- the file ----------------------------------------------------------------------------------
 */

static bool read_at(int fd, void *at, size_t bytes, uint64_t offset)
{
    return offset < INT64_MAX && pread(fd, at, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool read_text(int fd, uint64_t offset, char *out, size_t size)
{
    ssize_t got = offset < INT64_MAX ? pread(fd, out, size, (off_t)offset) : -1;
    return got > 0 && memchr(out, '\0', (size_t)got) != NULL;
}

static const Elf64_Phdr *find_segment(const image *self, uint32_t type)
{
    for (size_t i = 0; i < self->segment_count; i++) {
        if (self->segments[i].p_type == type) {
            return &self->segments[i];
        }
    }
    return NULL;
}

static bool find_offset(const image *self, uint64_t address, uint64_t *out)
{
    for (size_t i = 0; i < self->segment_count; i++) {
        const Elf64_Phdr *at = &self->segments[i];
        if (at->p_type == PT_LOAD && address >= at->p_vaddr &&
            address - at->p_vaddr < at->p_filesz) {
            *out = address - at->p_vaddr + at->p_offset;
            return true;
        }
    }
    return false;
}

static uint64_t find_entry(const image *self, int64_t tag)
{
    for (size_t i = 0; i < self->entry_count; i++) {
        if (self->entries[i].d_tag == tag) {
            return self->entries[i].d_un.d_val;
        }
    }
    return 0;
}

/* False: not a file of this kind, or its libraries cannot be determined. */
static bool read_image(image *self)
{
    Elf64_Ehdr head;
    if (!read_at(self->fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
        head.e_phnum > LIBRARY_SEGMENTS) {
        return false;
    }
    self->segment_count = head.e_phnum;
    if (!read_at(self->fd, self->segments, self->segment_count * sizeof(Elf64_Phdr),
                 head.e_phoff)) {
        return false;
    }
    const Elf64_Phdr *dynamic = find_segment(self, PT_DYNAMIC);
    self->entry_count = dynamic != NULL ? dynamic->p_filesz / sizeof(Elf64_Dyn) : 0;
    if (self->entry_count > LIBRARY_ENTRIES ||
        (dynamic != NULL && !read_at(self->fd, self->entries, self->entry_count * sizeof(Elf64_Dyn),
                                     dynamic->p_offset))) {
        return false;
    }
    uint64_t run_path = find_entry(self, DT_RUNPATH);
    run_path = run_path != 0 ? run_path : find_entry(self, DT_RPATH);
    bool has_strings = find_offset(self, find_entry(self, DT_STRTAB), &self->strings);
    if (!has_strings || run_path == 0 ||
        !read_text(self->fd, self->strings + run_path, self->paths, sizeof(self->paths))) {
        self->paths[0] = '\0';
    }
    return has_strings || self->entry_count == 0;
}

/* ---- its libraries ------------------------------------------------------------------------------
 */

typedef struct finding {
    char hidden[PATH_MAX]; /* the first that exists and cannot be read */
    char shown[PATH_MAX];
} finding;

static void look_at(const search *self, const char *path, finding *out)
{
    char real[PATH_MAX];
    if (out->shown[0] != '\0' || realpath(path, real) == NULL) {
        return;
    }
    char *to = is_shown(self, real) ? out->shown : out->hidden;
    if (to[0] == '\0') {
        memcpy(to, real, strlen(real) + 1);
    }
}

/* Folders separated by colons; $ORIGIN is the file's. */
static void look_in(const search *self, const char *folders, const char *origin, const char *name,
                    finding *out)
{
    while (*folders != '\0') {
        char path[PATH_MAX];
        size_t len = strcspn(folders, ":");
        size_t word = strncmp(folders, "$ORIGIN", 7) == 0     ? 7
                      : strncmp(folders, "${ORIGIN}", 9) == 0 ? 9
                                                              : 0;
        const char *end = strrchr(origin, '/');
        int head = word > 0 && end != NULL ? (int)(end - origin) : 0;
        int written = snprintf(path, sizeof(path), "%.*s%.*s/%s", head, origin, (int)(len - word),
                               folders + word, name);
        if (path[0] == '/' && written > 0 && (size_t)written < sizeof(path)) {
            look_at(self, path, out);
        }
        folders += folders[len] == ':' ? len + 1 : len;
    }
}

/* The linker's cache contains whole paths, each with a NUL at its end. */
static void look_in_cache(const search *self, const char *name, finding *out)
{
    size_t name_bytes = strlen(name) + 1;
    char *text = mem_alloc(LIBRARY_CACHE);
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 && text != NULL ? pread(fd, text, LIBRARY_CACHE, 0) : 0;
    const char *at = text;
    while (got > 0 && (at = memmem(at, (size_t)(text + got - at), name, name_bytes)) != NULL) {
        const char *start = at;
        while (start > text && start[-1] != '\0') {
            start--;
        }
        if (start[0] == '/' && at[-1] == '/') {
            look_at(self, start, out);
        }
        at += name_bytes;
    }
    if (fd >= 0) {
        close(fd);
    }
    mem_free(text);
}

static bay_err check_library(search *self, const image *of, const char *name)
{
    static const char standard[] =
        "/lib:/usr/lib:/lib64:/usr/lib64:/usr/local/lib:/lib/x86_64-linux-gnu:"
        "/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu";
    finding found = {"", ""};
    if (strchr(name, '/') != NULL) {
        look_at(self, name, &found);
    } else {
        look_in(self, of->paths, of->path, name, &found);
        look_in(self, self->library_path, of->path, name, &found);
        look_in(self, standard, of->path, name, &found);
        if (found.shown[0] == '\0') {
            look_in_cache(self, name, &found);
        }
    }
    if (found.shown[0] != '\0') {
        return check_file(self, found.shown);
    }
    return found.hidden[0] != '\0' ? hidden_error(self, found.hidden, of->path) : BAY_OK;
}

static bay_err check_interpreter(search *self, const char *path, const char *user)
{
    char real[PATH_MAX];
    if (path[0] != '/' || realpath(path, real) == NULL) {
        return BAY_OK;
    }
    return is_shown(self, real) ? check_file(self, real) : hidden_error(self, real, user);
}

static bay_err check_image(search *self, const image *of)
{
    char name[NAME_BYTES];
    const Elf64_Phdr *interpreter = find_segment(of, PT_INTERP);
    bay_err err = BAY_OK;
    if (interpreter != NULL && read_text(of->fd, interpreter->p_offset, name, sizeof(name))) {
        err = check_interpreter(self, name, of->path);
    }
    for (size_t i = 0; err == BAY_OK && i < of->entry_count; i++) {
        const Elf64_Dyn *at = &of->entries[i];
        if (at->d_tag == DT_NEEDED &&
            read_text(of->fd, of->strings + at->d_un.d_val, name, sizeof(name))) {
            err = check_library(self, of, name);
        }
    }
    return err;
}

/* #! and the rest of the line. */
static bay_err check_script(search *self, const char *path, char *line)
{
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\r\n")] = '\0';
    return check_interpreter(self, start, path);
}

static bay_err check_file(search *self, const char *path)
{
    char line[NAME_BYTES] = "";
    if (self->files >= LIBRARY_FILES || self->depth >= LIBRARY_DEPTH) {
        return BAY_OK;
    }
    self->files++;
    image *of = mem_zalloc(sizeof(*of));
    if (of == NULL) {
        return BAY_ERR_NOMEM;
    }
    self->depth++;
    of->path = path;
    of->fd = open(path, O_RDONLY | O_CLOEXEC);
    bay_err err = BAY_OK;
    if (of->fd >= 0 && pread(of->fd, line, sizeof(line) - 1, 0) > 2 && line[0] == '#' &&
        line[1] == '!') {
        err = check_script(self, path, line);
    } else if (of->fd >= 0 && read_image(of)) {
        err = check_image(self, of);
    }
    if (of->fd >= 0) {
        close(of->fd);
    }
    mem_free(of);
    self->depth--;
    return err;
}

bay_err sandbox_libraries_check(const sandbox_options *options, const char *program,
                                const char *library_path, bay_diag *diag)
{
    char real[PATH_MAX];
    if (realpath(program, real) == NULL) {
        return BAY_OK; /* the start reports it */
    }
    search self = {.options = options,
                   .program = real,
                   .library_path = library_path != NULL ? library_path : "",
                   .diag = diag};
    return check_file(&self, real);
}
