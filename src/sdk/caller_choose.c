/* Which interface of a card is spoken to: the newest version, of that one that may have the
 * credentials, of those the one that the card names first. */
#include "a2a/outbound.h"
#include "base/str.h"
#include "sdk/caller_parts.h"

/* Not strictly: JSON-RPC before 1.0, which is one address for all versions of then. */
static bool is_wanted(const bay_caller_options *options, const a2a_interface *one, bool is_strict)
{
    bool is_of_binding = options->binding < 0 || (int)one->binding == options->binding;
    bool is_older = one->version != A2A_1_0 && one->binding == A2A_JSONRPC;
    bool is_built_in = one->binding != A2A_GRPC || http_server_speaks_http2();
    return is_built_in && is_of_binding && (options->version < 0 || is_strict || is_older);
}

/* The newest version first; then one that may have the credentials; then the card's order. */
static const a2a_interface *choose(const bay_caller *caller, const a2a_interface *all, size_t count,
                                   bool is_strict)
{
    const a2a_interface *best = NULL;
    bool best_trusted = false;
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&caller->options, &all[i], is_strict)) {
            continue;
        }
        bool is_trusted = sdk_caller_trusts(caller, all[i].url);
        bool is_better = best == NULL || all[i].version > best->version ||
                         (all[i].version == best->version && is_trusted && !best_trusted);
        if (is_better) {
            best = &all[i];
            best_trusted = is_trusted;
        }
    }
    return best;
}

static bay_err link_to(bay_caller *caller, const a2a_interface *to)
{
    a2a_link *made = NULL;
    bay_err err =
        a2a_link_new(caller->base.loop, caller->base.http, to, &caller->options.limits, &made);
    if (err != BAY_OK) {
        return err;
    }
    a2a_link_free(caller->link);
    caller->link = made;
    bool has_secrets = caller->options.base.headers.count + caller->options.credentials.count > 0 ||
                       caller->base.login != NULL;
    caller->has_withheld = has_secrets && !sdk_caller_trusts(caller, to->url);
    caller->is_known = true;
    return BAY_OK;
}

/* Does an interface of that version count? Strictly: when it is the one asked for. */
static bool is_of_version(const bay_caller *caller, json_val said, bool is_strict)
{
    bay_str text = {NULL, 0};
    (void)json_str_plain(said, &text);
    int version = (int)a2a_version_of(text);
    if (caller->options.version < 0) {
        return true;
    }
    return is_strict ? version == caller->options.version : version != (int)A2A_1_0;
}

static void write_interfaces(const bay_caller *caller, bool is_strict, json_writer *out)
{
    json_iter all = json_iter_of(json_get(caller->card, STR("supportedInterfaces")));
    json_open_object(out);
    json_key_lit(out, "supportedInterfaces");
    json_open_array(out);
    while (json_next(&all)) {
        if (is_of_version(caller, json_get(all.value, STR("protocolVersion")), is_strict)) {
            json_put_val(out, all.value);
        }
    }
    json_close_array(out);
    json_close_object(out);
}

/* BAY_ERR_VERSION: there is none. */
static bay_err choose_of(bay_caller *caller, bool is_strict, a2a_fault *fault)
{
    a2a_interface all[CALLER_INTERFACES];
    size_t count = 0;
    json_builder made;
    json_val card;
    arena memory;
    arena_init(&memory, CALLER_CARD_MEMORY);
    write_interfaces(caller, is_strict, json_builder_init(&made, NULL, 2 * CALLER_CARD_BYTES));
    bay_err err = json_builder_view(&made, &card);
    if (err == BAY_OK) {
        err = a2a_interfaces_of(card, &memory, all, CALLER_INTERFACES, &count, fault);
    }
    const a2a_interface *chosen = err == BAY_OK ? choose(caller, all, count, is_strict) : NULL;
    if (chosen != NULL) {
        a2a_interface to = *chosen;
        to.version =
            caller->options.version >= 0 ? (a2a_version)caller->options.version : to.version;
        err = link_to(caller, &to);
    } else if (err == BAY_OK) {
        err = BAY_ERR_VERSION;
        (void)a2a_fault_set(fault, A2A_E_VERSION_NOT_SUPPORTED,
                            "its card has no interface of the binding and version asked for");
    }
    json_builder_drop(&made);
    arena_fini(&memory);
    return err;
}

bay_err sdk_caller_choose(bay_caller *self, a2a_fault *fault)
{
    int version = self->options.version;
    bay_err err = choose_of(self, true, fault);
    if (err == BAY_ERR_VERSION && version >= 0 && version != (int)A2A_1_0) {
        err = choose_of(self, false, fault); /* versions before 1.0 share an address */
    }
    return err;
}
