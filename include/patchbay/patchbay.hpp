/* The C API for C++17: objects that free what they own, lambdas as handlers, std::string_view for
 * texts, and tables of fields with their values written as they are.
 *
 *     namespace bay = patchbay;
 *     bay::server server("weather", "1.0.0");
 *     server.tool("get_weather", "Current conditions.", {bay::string("city").required()},
 *                 [](bay::call &call) { return bay::object({{"city", call.str("city")}}); });
 *     return server.main(argc, argv);
 *
 * A class is a bay_… of the C headers, and its functions have their names and do what is said there;
 * `get` gives the pointer for what is not here. No library
 * and no exceptions are needed, and none that a handler throws passes into C: the call fails with an
 * internal error, a line in the log says why, and the server goes on.
 *
 * For the whole header:
 * Owns: objects own what they hold and are moved, not copied; `call`, `task`, `tool` and what is
 * like them are views of what the library owns. Handlers given to a server, an agent or options live
 * as long as these. Views that are returned live as the C header says. Errors: a function with an
 * `error *` sets it and gives an empty object or false; NULL is fine. Registration errors are told by
 * main or check. Units: as in C. Threads: as in C. Source: this library's own. */
#ifndef PATCHBAY_PATCHBAY_HPP
#define PATCHBAY_PATCHBAY_HPP

#include <patchbay/agent.h>
#include <patchbay/caller.h>
#include <patchbay/client.h>
#include <patchbay/json.hpp>
#include <patchbay/server.h>

#include <functional>

namespace patchbay {

// ---- calls --------------------------------------------------------------------------------------

class call;

class result {
  public:
    explicit result(const call &of);
    result &text(std::string_view text) { return bay_result_text_str(get(), str(text)), *this; }
    result &image(const void *bytes, size_t len, zstring mime_type)
    {
        return bay_result_image(get(), bytes, len, mime_type), *this;
    }
    result &blob(const void *bytes, size_t len)
    {
        return bay_result_blob(get(), bytes, len), *this;
    }
    result &link(std::string_view uri, std::string_view name, std::string_view mime_type = {})
    {
        return bay_result_link_str(get(), str(uri), str(name), str(mime_type)), *this;
    }
    result &structured(json made)
    {
        return bay_result_structured_json(get(), made.release()), *this;
    }
    result &message(zstring role) { return bay_result_message(get(), role), *this; }
    result &value(std::string_view text) { return bay_result_value_str(get(), str(text)), *this; }
    result &is_error() { return bay_result_error(get()), *this; }
    bay_result *get() const noexcept { return result_.get(); }
    bay_result *release() noexcept { return result_.release(); }

  private:
    detail::owned<bay_result, bay_result_free> result_;
};

// What the client said to a question.
class answer {
  public:
    explicit answer(const bay_answer *at) noexcept : at_(at) {}
    bay_action action() const noexcept { return bay_answer_action(at_); }
    bool is_accepted() const noexcept { return action() == BAY_ACTION_ACCEPT; }
    bay_err error() const noexcept { return bay_answer_error(at_); }
    std::string_view str(zstring name) const noexcept { return view(bay_answer_str(at_, name)); }
    patchbay::value value(const char *name = nullptr) const noexcept
    {
        return bay_answer_value(at_, name);
    }
    std::string_view text() const noexcept { return view(bay_answer_text(at_)); }
    const bay_answer *get() const noexcept { return at_; }

  private:
    const bay_answer *at_;
};

class call {
  public:
    // A function, not a lambda that captures: for a 2026-07-28 client the handler runs again, perhaps
    // in another process. What it needs is in the arguments, or is given to `remember`.
    using answered = void (*)(call &, const answer &);

    explicit call(bay_call *at) noexcept : at_(at) {}
    call(const call &) = delete;
    call &operator=(const call &) = delete;

    std::string_view str(zstring name) const { return view(bay_call_str(at_, name)); }
    std::string_view str_or(zstring name, std::string_view fallback) const
    {
        return has(name) ? str(static_cast<const char *>(name)) : fallback;
    }
    int64_t int_or(zstring name, int64_t fallback) const
    {
        return bay_call_int_or(at_, name, fallback);
    }
    double double_or(zstring name, double fallback) const
    {
        return bay_call_double_or(at_, name, fallback);
    }
    bool bool_or(zstring name, bool fallback) const
    {
        return bay_call_bool_or(at_, name, fallback);
    }
    patchbay::value value(const char *name = nullptr) const { return bay_call_value(at_, name); }
    bool has(const char *name) const { return bay_call_has(at_, name); }
    std::string_view name() const { return view(bay_call_name(at_)); }
    std::string_view variable(zstring name) const { return view(bay_call_variable(at_, name)); }
    std::string_view context(zstring name) const { return view(bay_call_context(at_, name)); }
    std::string_view principal() const { return view(bay_call_principal(at_)); }
    bool client_has(zstring capability) const { return bay_call_client_has(at_, capability); }
    bool is_cancelled() const { return bay_call_is_cancelled(at_); }

    void reply(std::string_view text) { bay_call_reply_str(at_, patchbay::str(text)); }
    void reply(json made) { bay_call_reply_json(at_, made.release()); }
    void reply(result made) { bay_call_finish(at_, made.release()); }
    void fail(std::string_view text) { bay_call_fail_str(at_, patchbay::str(text)); }
    void error(int code, std::string_view text)
    {
        bay_call_error_str(at_, code, patchbay::str(text));
    }
    void not_found() { bay_call_not_found(at_); }

    void progress(double progress, double total = -1, std::string_view message = {})
    {
        bay_call_progress_str(at_, progress, total, patchbay::str(message));
    }
    void log(zstring level, std::string_view text)
    {
        bay_call_log_str(at_, level, patchbay::str(text));
    }
    void remember(std::string_view bytes) { bay_call_remember(at_, bytes.data(), bytes.size()); }
    std::string_view remembered() const { return view(bay_call_remembered(at_)); }
    void elicit(std::string_view message, const table &form, answered then)
    {
        bay_call_elicit_str(at_, patchbay::str(message), form.get(), back,
                            reinterpret_cast<void *>(then));
    }
    void sample(std::string_view prompt, int max_tokens, answered then)
    {
        bay_call_sample_str(at_, patchbay::str(prompt), max_tokens, back,
                            reinterpret_cast<void *>(then));
    }
    void roots(answered then) { bay_call_roots(at_, back, reinterpret_cast<void *>(then)); }
    // The call stays open; from now on it is whoever has the pointer who ends it.
    bay_call *defer()
    {
        is_deferred_ = true;
        return bay_call_defer(at_);
    }
    bay_call *get() const noexcept { return at_; }

    // Runs a handler: what it returns is the reply, what it throws fails the call.
    template <class Run> static void run(bay_call *at, Run run) noexcept
    {
        call self(at);
        detail::guard(
            "handler", [&] { run(self); },
            [&] {
                if (!self.is_deferred_) {
                    bay_call_error(at, -32603, "The handler failed.");
                }
            });
    }

  private:
    static void back(bay_call *at, const bay_answer *said, void *then)
    {
        run(at,
            [&](call &self) { reinterpret_cast<answered>(then)(self, patchbay::answer(said)); });
    }
    bay_call *at_;
    bool is_deferred_ = false;
};

inline result::result(const call &of) : result_(bay_result_new(of.get())) {}

// ---- servers ------------------------------------------------------------------------------------

class tool {
  public:
    explicit tool(bay_tool *at) noexcept : at_(at) {}
    tool &title(zstring text) { return bay_tool_title(at_, text), *this; }
    tool &output(const table &fields) { return bay_tool_output(at_, fields.get()), *this; }
    tool &output_schema(zstring schema) { return bay_tool_output_schema(at_, schema), *this; }
    tool &annotations(zstring json) { return bay_tool_annotations(at_, json), *this; }
    tool &blocking() { return bay_tool_blocking(at_), *this; }
    tool &timeout(uint32_t ms) { return bay_tool_timeout(at_, ms), *this; }
    tool &requires_capability(zstring name) { return bay_tool_requires(at_, name), *this; }
    tool &task(bay_task_mode mode) { return bay_tool_task(at_, mode), *this; }
    bay_tool *get() const noexcept { return at_; }

  private:
    bay_tool *at_;
};

class server {
  public:
    server(zstring name, zstring version) : server_(bay_server_new(name, version)) {}
    server(server &&) noexcept = default;
    server &operator=(server &&other) noexcept
    {
        server_ = std::move(other.server_); // goes first
        handlers_ = std::move(other.handlers_);
        return *this;
    }

    // A handler takes call & and returns nothing, a text, a json or a result: its reply.
    template <class F>
    patchbay::tool tool(zstring name, zstring description, const table &input, F handler)
    {
        return patchbay::tool(
            bay_server_tool(get(), name, description, input.get(), run, keep(std::move(handler))));
    }
    template <class F>
    patchbay::tool tool_schema(zstring name, zstring description, zstring schema, F handler)
    {
        return patchbay::tool(bay_server_tool_schema(get(), name, description, schema, run,
                                                     keep(std::move(handler))));
    }
    template <class F>
    bay_resource *resource(zstring uri, zstring name, zstring description, zstring mime_type,
                           F handler)
    {
        return bay_server_resource(get(), uri, name, description, mime_type, run,
                                   keep(std::move(handler)));
    }
    template <class F>
    bay_resource *resource_template(zstring uri_template, zstring name, zstring description,
                                    zstring mime_type, F handler)
    {
        return bay_server_template(get(), uri_template, name, description, mime_type, run,
                                   keep(std::move(handler)));
    }
    template <class F>
    bay_prompt *prompt(zstring name, zstring description, const table &arguments, F handler)
    {
        return bay_server_prompt(get(), name, description, arguments.get(), run,
                                 keep(std::move(handler)));
    }
    template <class F> void completion(F handler)
    {
        bay_server_completion(get(), run, keep(std::move(handler)));
    }
    server &title(zstring text) { return bay_server_title(get(), text), *this; }
    server &instructions(zstring text) { return bay_server_instructions(get(), text), *this; }
    server &set(bay_server_setting setting, int64_t number)
    {
        return bay_server_set(get(), setting, number), *this;
    }

    bool check(error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_server_check(get(), errors.get()));
    }
    int main(int argc, char **argv) { return bay_server_main(server_.release(), argc, argv); }
    bool listen(zstring address, error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_server_listen(get(), address, errors.get()));
    }
    uint16_t port() const noexcept { return bay_server_port(get()); }
    bool run_until_stopped(error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_server_run(get(), errors.get()));
    }
    void stop() noexcept { bay_server_stop(get()); } // any thread
    bay_server *get() const noexcept { return server_.get(); }

  private:
    using handler_fn = std::function<void(call &)>;
    template <class F> void *keep(F given)
    {
        using returned = std::invoke_result_t<F &, call &>;
        handlers_->push_back([given = std::move(given)](call &of) mutable {
            if constexpr (std::is_void_v<returned>) {
                given(of);
            } else if constexpr (std::is_same_v<returned, json> ||
                                 std::is_same_v<returned, result>) {
                of.reply(given(of));
            } else {
                of.reply(std::string_view(static_cast<const returned &>(given(of))));
            }
        });
        return &handlers_->back();
    }
    static void run(bay_call *at, void *user) { call::run(at, *static_cast<handler_fn *>(user)); }
    std::unique_ptr<std::deque<handler_fn>> handlers_ = std::make_unique<std::deque<handler_fn>>();
    detail::owned<bay_server, bay_server_free> server_; // goes first
};

// ---- clients ------------------------------------------------------------------------------------

class reply {
  public:
    explicit reply(bay_reply *at = nullptr) noexcept : reply_(at) {}
    explicit operator bool() const noexcept { return reply_ != nullptr; } // is there one?
    bool is_error() const noexcept { return bay_reply_is_error(get()); }
    size_t count() const noexcept { return bay_reply_count(get()); }
    std::string_view text(size_t index = 0) const noexcept
    {
        return view(bay_reply_text(get(), index));
    }
    std::string_view str(zstring name) const noexcept { return view(bay_reply_str(get(), name)); }
    patchbay::value value(const char *name = nullptr) const noexcept
    {
        return bay_reply_value(get(), name);
    }
    std::string_view json() const noexcept { return view(bay_reply_json(get())); }
    bay_reply *get() const noexcept { return reply_.get(); }

  private:
    detail::owned<bay_reply, bay_reply_free> reply_;
};

// A question of the server. A handler that neither answers nor defers has declined.
class question {
  public:
    explicit question(bay_question *at) noexcept : at_(at) {}
    std::string_view method() const noexcept { return view(bay_question_method(at_)); }
    std::string_view message() const noexcept { return view(bay_question_message(at_)); }
    patchbay::value value(const char *name = nullptr) const noexcept
    {
        return bay_question_value(at_, name);
    }
    bool accept(json content, error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_question_accept_json(at_, content.release(), errors.get()));
    }
    void decline() noexcept { bay_question_decline(at_); }
    void cancel() noexcept { bay_question_cancel(at_); }
    void reply(zstring model, std::string_view text)
    {
        bay_question_reply_str(at_, model, str(text));
    }
    bay_question *get() const noexcept { return at_; }

  private:
    bay_question *at_;
};

// What a client connects with. Handlers that are given to it must outlive the client: `client` sees
// to that where it was connected with it.
class client_options {
  public:
    client_options() : options_(bay_client_options_new()) {}
    client_options &header(zstring name, zstring value)
    {
        return bay_client_options_header(get(), name, value), *this;
    }
    client_options &timeout(uint32_t idle_ms, uint32_t total_ms)
    {
        return bay_client_options_timeout(get(), idle_ms, total_ms), *this;
    }
    template <class F>
    client_options &on_elicitation(F asked, unsigned modes = BAY_ELICITATION_FORM)
    {
        return bay_client_options_elicitation(get(), modes, run, keep(std::move(asked))), *this;
    }
    template <class F> client_options &on_sampling(F asked)
    {
        return bay_client_options_sampling(get(), nullptr, run, keep(std::move(asked))), *this;
    }
    bay_client_options *get() const noexcept { return options_.get(); }

  private:
    friend class client;
    using handler_fn = std::function<void(question &)>;
    template <class F> void *keep(F given)
    {
        handlers_->push_back(std::move(given));
        return &handlers_->back();
    }
    static void run(bay_question *at, void *user)
    {
        question self(at);
        detail::guard(
            "handler", [&] { (*static_cast<handler_fn *>(user))(self); }, [] {});
    }
    std::shared_ptr<std::deque<handler_fn>> handlers_ = std::make_shared<std::deque<handler_fn>>();
    detail::owned<bay_client_options, bay_client_options_free> options_;
};

class client {
  public:
    client() = default; // empty
    client(client &&) noexcept = default;
    client &operator=(client &&other) noexcept
    {
        client_ = std::move(other.client_); // goes first
        handlers_ = std::move(other.handlers_);
        return *this;
    }
    // "https://…" or "stdio:COMMAND …". Empty where it failed: `if (client) …`.
    static client connect(zstring target, const client_options &options, error *out = nullptr)
    {
        return make(options, out, [&](bay_client **to, bay_diag *diag) {
            return bay_client_connect(target, options.get(), to, diag);
        });
    }
    static client connect(zstring target, error *out = nullptr)
    {
        return connect(static_cast<const char *>(target), client_options(), out);
    }
    // To a server in this process, which must outlive it.
    static client attach(const server &of, const client_options &options, error *out = nullptr)
    {
        return make(options, out, [&](bay_client **to, bay_diag *diag) {
            return bay_client_attach(of.get(), options.get(), to, diag);
        });
    }
    explicit operator bool() const noexcept { return client_ != nullptr; }

    reply call(zstring tool, json arguments, error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_call_json(get(), tool, arguments.release(), to, diag);
        });
    }
    reply call(zstring tool, error *out = nullptr)
    {
        return call(static_cast<const char *>(tool), patchbay::object({}), out);
    }
    reply read(zstring uri, error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_read(get(), uri, to, diag);
        });
    }
    reply prompt(zstring name, json arguments, error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_prompt_json(get(), name, arguments.release(), to, diag);
        });
    }
    reply complete(zstring reference, zstring argument, zstring begun, error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_complete(get(), reference, argument, begun, to, diag);
        });
    }
    reply complete(zstring reference, zstring argument, zstring begun, json context,
                   error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_complete_json(get(), reference, argument, begun, context.release(),
                                            to, diag);
        });
    }
    reply request(zstring method, json params, error *out = nullptr)
    {
        return ask(out, [&](bay_reply **to, bay_diag *diag) {
            return bay_client_request_json(get(), method, params.release(), to, diag);
        });
    }
    // The names of what there is of a kind.
    std::vector<std::string> list(bay_kind kind, error *out = nullptr)
    {
        detail::errors errors(out);
        std::vector<std::string> names;
        bay_list *at = nullptr;
        if (errors.good(bay_client_list(get(), kind, &at, errors.get()))) {
            detail::owned<bay_list, bay_list_free> owner(at);
            for (size_t i = 0; i < bay_list_count(at); i++) {
                names.emplace_back(view(bay_list_name(at, i)));
            }
        }
        return names;
    }
    std::string_view revision() const noexcept { return view(bay_client_revision(get())); }
    bay_client *get() const noexcept { return client_.get(); }

  private:
    // Options that could not be made, or were moved away, are not those of a client without any.
    template <class Connect>
    static client make(const client_options &options, error *out, Connect connect)
    {
        detail::errors errors(out);
        client made;
        bay_client *at = nullptr;
        if (errors.good(options.get() != nullptr ? connect(&at, errors.get()) : BAY_ERR_NOMEM)) {
            made.client_.reset(at);
            made.handlers_ = options.handlers_;
        }
        return made;
    }
    template <class Ask> static reply ask(error *out, Ask ask)
    {
        detail::errors errors(out);
        bay_reply *at = nullptr;
        return errors.good(ask(&at, errors.get())) ? reply(at) : reply();
    }
    std::shared_ptr<std::deque<client_options::handler_fn>> handlers_;
    detail::owned<bay_client, bay_client_close> client_; // goes first
};

// ---- agents and callers -------------------------------------------------------------------------

// A message being worked on. Moves return what became of them; most programs need not look.
class task {
  public:
    explicit task(bay_task *at) noexcept : at_(at) {}
    std::string_view id() const noexcept { return view(bay_task_id(at_)); }
    std::string_view skill() const noexcept { return view(bay_task_skill(at_)); }
    std::string_view principal() const noexcept { return view(bay_task_principal(at_)); }
    bool is_new() const noexcept { return bay_task_is_new(at_); }
    bool is_cancelled() const noexcept { return bay_task_is_cancelled(at_); }
    bay_err remember(std::string_view bytes)
    {
        return bay_task_remember(at_, bytes.data(), bytes.size());
    }
    std::string_view remembered() const noexcept { return view(bay_task_remembered(at_)); }
    bay_err working(std::string_view text)
    {
        return bay_task_status_str(at_, BAY_TASK_STATE_WORKING, str(text));
    }
    bay_artifact *artifact(std::string_view name, std::string_view media_type = "text/plain")
    {
        return bay_task_artifact_str(at_, str(name), str(media_type));
    }
    bay_err complete(std::string_view text) { return bay_task_complete_str(at_, str(text)); }
    bay_err fail(std::string_view text) { return bay_task_fail_str(at_, str(text)); }
    bay_err reject(std::string_view text) { return bay_task_reject_str(at_, str(text)); }
    bay_err ask(std::string_view text) { return bay_task_ask_str(at_, str(text)); }
    bay_err reply(std::string_view text) { return bay_task_reply_str(at_, str(text)); }
    bay_task *get() const noexcept { return at_; }

  private:
    bay_task *at_;
};

class message {
  public:
    explicit message(const bay_message *at) noexcept : at_(at) {}
    std::string_view text() const noexcept { return view(bay_message_text(at_)); }
    patchbay::value value() const noexcept { return bay_message_value(at_); }
    const bay_message *get() const noexcept { return at_; }

  private:
    const bay_message *at_;
};

class agent {
  public:
    agent(zstring name, zstring version, zstring description)
        : agent_(bay_agent_new(name, version, description))
    {
    }
    agent(agent &&) noexcept = default;
    agent &operator=(agent &&other) noexcept
    {
        agent_ = std::move(other.agent_); // goes first: it waits for handlers that are running
        handlers_ = std::move(other.handlers_);
        return *this;
    }
    template <class F> bay_skill *skill(zstring id, zstring name, zstring description, F handler)
    {
        handlers_->push_back(std::move(handler));
        return bay_agent_skill(get(), id, name, description, run, &handlers_->back());
    }
    bool check(error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_agent_check(get(), errors.get()));
    }
    bool listen(zstring address, error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_agent_listen(get(), address, errors.get()));
    }
    uint16_t port() const noexcept { return bay_agent_port(get()); }
    bool run_until_stopped(error *out = nullptr)
    {
        detail::errors errors(out);
        return errors.good(bay_agent_run(get(), errors.get()));
    }
    void stop() noexcept { bay_agent_stop(get()); } // any thread
    int main(int argc, char **argv) { return bay_agent_main(agent_.release(), argc, argv); }
    bay_agent *get() const noexcept { return agent_.get(); }

  private:
    using handler_fn = std::function<void(task &, const message &)>;
    static void run(bay_task *at, const bay_message *said, void *user)
    {
        task self(at);
        detail::guard(
            "handler", [&] { (*static_cast<handler_fn *>(user))(self, message(said)); },
            [&] { (void)self.fail("The handler failed."); });
    }
    std::unique_ptr<std::deque<handler_fn>> handlers_ = std::make_unique<std::deque<handler_fn>>();
    detail::owned<bay_agent, bay_agent_free> agent_; // goes first
};

class caller_reply {
  public:
    explicit caller_reply(bay_caller_reply *at = nullptr) noexcept : reply_(at) {}
    explicit operator bool() const noexcept { return reply_ != nullptr; }
    std::string_view text() const noexcept { return view(bay_caller_reply_text(get())); }
    std::string_view task() const noexcept { return view(bay_caller_reply_task(get())); }
    bay_task_state state() const noexcept { return bay_caller_reply_state(get()); }
    patchbay::value value(const char *name = nullptr) const noexcept
    {
        return bay_caller_reply_value(get(), name);
    }
    bay_caller_reply *get() const noexcept { return reply_.get(); }

  private:
    detail::owned<bay_caller_reply, bay_caller_reply_free> reply_;
};

class caller {
  public:
    static caller connect(zstring url, error *out = nullptr)
    {
        detail::errors errors(out);
        caller made;
        bay_caller *at = nullptr;
        if (errors.good(bay_caller_connect(url, nullptr, &at, errors.get()))) {
            made.caller_.reset(at);
        }
        return made;
    }
    explicit operator bool() const noexcept { return caller_ != nullptr; }
    caller_reply send(std::string_view text, error *out = nullptr)
    {
        detail::errors errors(out);
        bay_caller_reply *at = nullptr;
        bay_err err = bay_caller_send_wait_str(get(), str(text), &at, errors.get());
        return errors.good(err) ? caller_reply(at) : caller_reply();
    }
    bay_caller *get() const noexcept { return caller_.get(); }

  private:
    detail::owned<bay_caller, bay_caller_close> caller_;
};

} // namespace patchbay

#endif
