/* Every kind of content that a tool's result can hold. */
#include <patchbay/server.h>

/* One red pixel, and four samples of silence. */
static const unsigned char png[] = {
    0x89, 'P',  'N',  'G',  13,   10,  26,  10,  0,   0,    0,    13,   'I', 'H',
    'D',  'R',  0,    0,    0,    1,   0,   0,   0,   1,    8,    2,    0,   0,
    0,    0x90, 0x77, 0x53, 0xde, 0,   0,   0,   12,  'I',  'D',  'A',  'T', 0x78,
    0xda, 0x63, 0xf8, 0xcf, 0xc0, 0,   0,   3,   1,   1,    0,    0xf7, 3,   0x41,
    0x43, 0,    0,    0,    0,    'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
static const unsigned char wav[] = {'R', 'I', 'F', 'F', 40, 0,  0, 0, 'W', 'A', 'V', 'E',
                                    'f', 'm', 't', ' ', 16, 0,  0, 0, 1,   0,   1,   0,
                                    64,  31,  0,   0,   64, 31, 0, 0, 1,   0,   8,   0,
                                    'd', 'a', 't', 'a', 4,  0,  0, 0, 128, 128, 128, 128};

static void show(bay_call *call, void *user)
{
    (void)user;
    bay_result *result = bay_result_new(call);
    bay_result_text(result, "A picture, a sound, a document, and where there is more.");
    bay_result_image(result, png, sizeof(png), "image/png");
    bay_result_annotate(result, "{\"audience\":[\"user\"],\"priority\":0.9}");
    bay_result_audio(result, wav, sizeof(wav), "audio/wav");
    bay_result_resource(result, "note://today", "text/plain", "Water the plants.");
    bay_result_resource_blob(result, "note://pixel", "image/png", png, sizeof(png));
    bay_result_link(result, "https://example.com/manual", "The manual", "text/html");
    bay_call_finish(call, result);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("content", "1.0.0");
    bay_tool *tool =
        bay_server_tool(server, "show", "One piece of content of each kind.", NULL, show, NULL);
    bay_tool_title(tool, "Show everything");
    bay_tool_annotations(tool, "{\"readOnlyHint\":true,\"openWorldHint\":false}");
    return bay_server_main(server, argc, argv);
}
