/* A skill: instructions for a model, and the files that they speak of. Here from memory;
 * bay_server_skill(server, "path/to/folder") takes a folder as it is. */
#include <patchbay/server.h>
#include <string.h>

static const char skill[] = "---\n"
                            "name: sourdough\n"
                            "description: How to keep a starter alive, and bake with it.\n"
                            "---\n"
                            "# Sourdough\n\n"
                            "Feed the starter each day. For amounts see references/amounts.md.\n";
static const char amounts[] = "Flour 100, water 70, starter 20, salt 2.\n";

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("skills", "1.0.0");
    bay_server_skill_file(server, "sourdough", "SKILL.md", "text/markdown", skill, strlen(skill));
    bay_server_skill_file(server, "sourdough", "references/amounts.md", "text/markdown", amounts,
                          strlen(amounts));
    return bay_server_main(server, argc, argv);
}
