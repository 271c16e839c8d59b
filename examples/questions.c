/* Tools that ask back: the person (elicitation), the client's model (sampling), the host (roots).
 * Written once. A session is asked by a request; a 2026-07-28 client is told "input required" and
 * calls again, whereupon the handler runs from the top and has its answer. So what has an effect
 * stands behind the answer. */
#include <patchbay/server.h>

static const bay_field form[] = {
    {"reason", BAY_TYPE_STRING, .title = "Why?", .default_value = "spring cleaning"}, {0}};

static void confirmed(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    if (bay_answer_action(answer) != BAY_ACTION_ACCEPT) {
        bay_call_fail(call, "Nothing was deleted: nobody agreed to it.");
        return;
    }
    bay_call_replyf(call, "Deleted, because: %.*s", BAY_STR(bay_answer_str(answer, "reason")));
}

static void delete_all(bay_call *call, void *user)
{
    (void)user;
    bay_call_elicit(call, "Delete all files?", form, confirmed, NULL);
}

static void summed_up(bay_call *call, const bay_answer *answer, void *user)
{
    (void)user;
    if (bay_answer_error(answer) != BAY_OK) {
        bay_call_failf(call, "No summary: %s", bay_err_text(bay_answer_error(answer)));
        return;
    }
    bay_call_reply_str(call, bay_answer_text(answer));
}

static void sum_up(bay_call *call, void *user)
{
    (void)user;
    bay_call_sample(call, "Sum up the plot of Moby Dick in one sentence.", 100, summed_up, NULL);
}

static void told_roots(bay_call *call, const bay_answer *answer, void *user)
{
    bay_result *result = bay_result_new(call);
    (void)user;
    bay_result_textf(result, "%zu folders:", bay_answer_root_count(answer));
    for (size_t i = 0; i < bay_answer_root_count(answer); i++) {
        bay_result_text_str(result, bay_answer_root(answer, i));
    }
    bay_call_finish(call, result);
}

static void list_roots(bay_call *call, void *user)
{
    (void)user;
    bay_call_roots(call, told_roots, NULL);
}

int main(int argc, char **argv)
{
    bay_server *server = bay_server_new("questions", "1.0.0");
    bay_server_tool(server, "delete_all", "Deletes, once somebody agrees.", NULL, delete_all, NULL);
    bay_server_tool(server, "sum_up", "Lets the client's model write.", NULL, sum_up, NULL);
    bay_server_tool(server, "list_roots", "The host's open folders.", NULL, list_roots, NULL);
    return bay_server_main(server, argc, argv);
}
