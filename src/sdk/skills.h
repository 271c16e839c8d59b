/* Skills of a server (io.modelcontextprotocol/skills), for the sdk's server files only.
 *
 *   skills.c         registration, and what becomes of it when all is registered
 *   skill_folder.c   the files of a folder
 *   skill_methods.c  skills/list, skills/get, resources/directory/read */
#ifndef SDK_SKILLS_H
#define SDK_SKILLS_H

#include "sdk/server_parts.h"

enum {
    SERVER_MAX_SKILLS = 1000,
    SKILL_MAX_FILES = 512,      /* the extension's own limits: files of one skill … */
    SKILL_MAX_BYTES = 16 << 20, /* … and their bytes */
    SKILL_MAX_DEPTH = 16,       /* folders within each other */
    SKILL_MAX_NAME = 64,
    SKILL_MAX_PATH_BYTES = 1024, /* of a file, below its skill */
};

#define SKILL_SCHEME "skill://"
#define SKILL_MAIN_FILE "SKILL.md"

typedef struct skill_file {
    bay_str path; /* "references/FORMS.md" */
    bay_str mime_type;
    bay_str bytes;
    bool is_text;        /* valid UTF-8 */
    const entry *listed; /* as a resource */
} skill_file;

typedef struct skill {
    struct skill *next;
    bay_server *server;
    bay_str name;
    bay_str folder;    /* empty: from memory */
    skill_file *files; /* sorted by path once it is complete; mem_free */
    size_t count;
    size_t cap;
    size_t bytes;
    bool is_broken; /* told already */
} skill;

/* Takes a copy of the file into the server's memory. What is wrong is told, and false. */
bool sdk_skill_add(skill *self, bay_str path, const char *mime_type, bay_str bytes);
/* Errors of registration. */
void sdk_skill_error(skill *self, const char *format, ...) BAY_PRINTF(2, 3);
/* Reads every file below the folder. What is wrong is told. */
void sdk_skill_read_folder(skill *self);

#endif
