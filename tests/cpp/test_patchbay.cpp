// The C++ layer: schemas from tables, JSON that no value changes, lambdas as handlers, and what they
// throw. A server and a client in one process.
#include <patchbay/patchbay.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace bay = patchbay;

static std::atomic<int> failed{0};

static void check(bool condition, const char *what, int line)
{
    if (!condition) {
        std::fprintf(stderr, "test_patchbay.cpp:%d: %s\n", line, what);
        failed++;
    }
}
#define CHECK(condition) check(static_cast<bool>(condition), #condition, __LINE__)

static void check_text(std::string_view got, std::string_view expected, int line)
{
    if (got != expected) {
        std::fprintf(stderr, "test_patchbay.cpp:%d: got      %.*s\n    expected %.*s\n", line,
                     static_cast<int>(got.size()), got.data(), static_cast<int>(expected.size()),
                     expected.data());
        failed++;
    }
}
#define CHECK_TEXT(got, expected) check_text((got), (expected), __LINE__)

static std::string logged;

static void log_line(bay_log_level, const char *component, const char *text, void *)
{
    logged += bay::text(component, ": ", text, "\n");
}

// ---- JSON ---------------------------------------------------------------------------------------

static void json_is_written()
{
    std::string hostile = "x\",\"admin\":true,\"y\":\"\n";
    bay::json made = bay::object({{"text", hostile},
                                  {"bool", true},
                                  {"int", -7},
                                  {"big", ~std::uint64_t{0}},
                                  {"double", 0.5},
                                  {"null", nullptr},
                                  {"inner", bay::object({{"a", "b"}})}});
    CHECK(made.error() == BAY_OK);
    CHECK_TEXT(made.view(),
               "{\"text\":\"x\\\",\\\"admin\\\":true,\\\"y\\\":\\\"\\n\",\"bool\":true,"
               "\"int\":-7,\"big\":18446744073709551615,\"double\":0.5,\"null\":null,"
               "\"inner\":{\"a\":\"b\"}}");
    CHECK_TEXT(made.root()["text"].str(), hostile);
    CHECK(!made.root()["admin"]);
    size_t count = 0;
    for (auto [name, one] : made.root()) {
        CHECK(!name.empty() && one);
        count++;
    }
    CHECK(count == 7);
}

static void mistakes_of_json_are_errors()
{
    CHECK(bay::json().object().error() == BAY_ERR_STATE);
    CHECK(bay::json().put("a", 1).error() == BAY_ERR_STATE);
    CHECK(bay::json("{").error() != BAY_OK);
    CHECK(bay::object({{"a", bay::json("{")}}).error() != BAY_OK);
    CHECK(bay::object({{"a", 1}, {"a", 2}}).error() == BAY_ERR_DUPLICATE);
    bay::error error;
    bay::document none("{\"a\":", &error);
    CHECK(error && error.code() == BAY_ERR_SYNTAX && !error.text().empty());
    CHECK(!none.root());
}

static void a_nul_ends_no_text()
{
    const std::string name("a\0b", 3);
    bay::json made;
    made.object().put("a", 1).put(name, 2).put(std::string_view("c\0", 2), 3).end();
    CHECK_TEXT(made.view(), "{\"a\":1,\"a\\u0000b\":2,\"c\\u0000\":3}");
    CHECK_TEXT(static_cast<const char *>(bay::zstring(name)), "a\uFFFDb");
    CHECK_TEXT(static_cast<const char *>(bay::zstring(std::string_view(name))), "a\uFFFDb");
    CHECK(static_cast<const char *>(bay::zstring(nullptr)) == nullptr);
}

static void an_error_is_of_the_last_call()
{
    bay::error error;
    bay::document none("{", &error);
    CHECK(error && error.text() != "ok");
    bay::document empty("{}", &error);
    CHECK(!error);
    CHECK_TEXT(error.text(), "ok");
}

static void json_is_read()
{
    bay::document document("{\"rows\":[{\"n\":1},{\"n\":2.5}],\"is\":true}");
    bay::value root = document.root();
    CHECK(root.pointer("/rows/1/n").double_or(0) == 2.5);
    CHECK(root["rows"].at(0)["n"].int_or(0) == 1);
    CHECK(root["rows"].count() == 2);
    CHECK(root["is"].bool_or(false));
    CHECK(root["none"]["deeper"].int_or(9) == 9);
    std::string all;
    for (auto [name, row] : root["rows"]) {
        CHECK(name.empty());
        all += row.json();
    }
    CHECK_TEXT(all, "{\"n\":1}{\"n\":2.5}");
}

static void tables_are_the_schemas_of_c()
{
    static const char *const units[] = {"C", "F", nullptr};
    bay_field city = {}, days = {}, unit = {}, tag = {}, tags = {};
    city.name = "city", city.type = BAY_TYPE_STRING, city.description = "Which";
    city.is_required = true, city.min = "1", city.pattern = "^[A-Z]";
    days.name = "days", days.type = BAY_TYPE_INTEGER, days.min = "1", days.below = "15";
    days.default_value = "3";
    unit.name = "unit", unit.type = BAY_TYPE_STRING, unit.choices = units;
    unit.default_value = "C";
    tag.type = BAY_TYPE_STRING;
    tags.name = "tags", tags.type = BAY_TYPE_ARRAY, tags.items = &tag, tags.max = "4";
    const bay_field rows[] = {city, days, unit, tags, {}};
    bay::table table{bay::string("city", "Which").required().min(1).pattern("^[A-Z]"),
                     bay::integer("days").min(1).below(15).default_value(3),
                     bay::string("unit").choices({"C", "F"}).default_value("C"),
                     bay::array("tags", bay::string("")).max(4)};
    bay_json *expected = bay_fields_json(rows);
    bay_json *got = bay_fields_json(table.get());
    CHECK(bay_json_error(expected) == BAY_OK);
    CHECK_TEXT(bay::view(bay_json_view(got)), bay::view(bay_json_view(expected)));
    bay_json_free(expected);
    bay_json_free(got);
}

static std::string default_of(const bay::field &one)
{
    bay::table table{one};
    bay_json *made = bay_fields_json(table.get());
    std::string text(bay::value(bay_json_root(made)).pointer("/properties/a/default").json());
    bay_json_free(made);
    return text;
}

static void defaults_are_texts_of_any_kind()
{
    using namespace std::string_view_literals;
    CHECK_TEXT(default_of(bay::string("a").default_value("x")), "\"x\"");
    CHECK_TEXT(default_of(bay::string("a").default_value(std::string("x"))), "\"x\"");
    CHECK_TEXT(default_of(bay::string("a").default_value("x"sv)), "\"x\"");
    CHECK_TEXT(default_of(bay::field("a", BAY_TYPE_NULL, "").default_value(nullptr)), "null");
    CHECK_TEXT(default_of(bay::boolean("a").default_value(true)), "true");
    CHECK_TEXT(default_of(bay::field("a", BAY_TYPE_OBJECT, "").default_value(bay::object({}))),
               "{}");
}

// ---- a server and a client ----------------------------------------------------------------------

static void planned(bay::call &call, const bay::answer &answer)
{
    if (!answer.is_accepted()) {
        return call.fail("no");
    }
    call.reply(bay::text(answer.value("days").int_or(0), " days"));
}

#if defined(__cpp_exceptions)
static void throws_later(bay::call &, const bay::answer &)
{
    throw std::runtime_error("later");
}
#endif

static void add_tools(bay::server &server, int &calls)
{
    server
        .tool("add", "Adds.", {bay::integer("a").required(), bay::integer("b").default_value(40)},
              [&calls](bay::call &call) {
                  calls++;
                  return bay::object({{"sum", call.int_or("a", 0) + call.int_or("b", 0)}});
              })
        .output({bay::integer("sum").required()})
        .title("Add");
    server.tool("echo", "Says it again.", {bay::string("text").required()},
                [](bay::call &call) { return std::string(call.str("text")); });
    server.tool("parts", "Two parts.", {}, [](bay::call &call) {
        bay::result made(call);
        made.text("one").text("two");
        return made;
    });
    server.tool("plan", "Asks.", {}, [](bay::call &call) {
        call.elicit("How long?", {bay::integer("days").min(1).below(13).default_value(3)}, planned);
    });
    server.resource_template("note://{id}", "note", "A note.", "text/plain", [](bay::call &call) {
        return bay::text("note ", call.variable("id"));
    });
    server.prompt("greet", "Greets.", {bay::string("who").required().choices({"Ada", "Alan"})},
                  [](bay::call &call) { return bay::text("Greet ", call.str("who")); });
#if defined(__cpp_exceptions)
    server.tool("throw", "Throws.", {},
                [](bay::call &) -> std::string { throw std::runtime_error("secret reason"); });
    server.tool("odd", "Throws a number.", {}, [](bay::call &) { throw 7; });
    server.tool("late", "Replies, then throws.", {}, [](bay::call &call) {
        call.reply("replied");
        throw std::runtime_error("after it");
    });
    server.tool("ask", "Throws in the answer.", {},
                [](bay::call &call) { call.elicit("?", {}, throws_later); });
#endif
}

static void calls_are_answered(const char *revision)
{
    int calls = 0;
    bay::server server("test", "1");
    add_tools(server, calls);
    bay::error error;
    CHECK(server.check(&error));
    bay::client_options options;
    bay_client_options_revisions(options.get(), revision, revision);
    options.on_elicitation([](bay::question &question) {
        CHECK_TEXT(question.message().substr(0, 1) == "?" ? "How long?" : question.message(),
                   "How long?");
        question.accept(bay::object({}));
    });
    bay::client client = bay::client::attach(server, options, &error);
    CHECK(client && !error);
    CHECK_TEXT(client.revision(), revision);

    bay::reply reply = client.call("add", bay::object({{"a", 2}}), &error);
    CHECK(reply && calls == 1);
    CHECK(reply.value("sum").int_or(0) == 42);
    CHECK(client.call("add", bay::object({{"a", "2"}})).is_error());
    CHECK(calls == 1);
    std::string hostile = "\",\"isError\":true,\"x\":\"\xF0\x9F\x98\x80";
    CHECK_TEXT(client.call("echo", bay::object({{"text", hostile}})).text(), hostile);
    reply = client.call("parts");
    CHECK(reply.count() == 2 && reply.text(1) == "two");
    CHECK_TEXT(client.call("plan").text(), "3 days"); // the default
    CHECK_TEXT(client.read("note://7").text(), "note 7");
    CHECK_TEXT(client.prompt("greet", bay::object({{"who", "Ada"}})).text(), "Greet Ada");
    CHECK(!client.prompt("greet", bay::object({{"who", "Bob"}}), &error));
    CHECK(error.code() == BAY_ERR_REMOTE);
    reply = client.complete("greet", "who", "Al");
    CHECK(reply.count() == 1 && reply.text() == "Alan");
    CHECK(!client.complete("greet", "who", "Al", bay::object({{"town", 7}}), &error));
    CHECK(error.code() == BAY_ERR_INVALID);
    reply = client.complete("greet", "who", "Al", bay::object({{"town", "Bletchley"}}));
    CHECK(reply.count() == 1 && reply.text() == "Alan");
    CHECK(!client.call("none", &error));
    CHECK(client.list(BAY_KIND_TOOLS).size() >= 4);
}

#if defined(__cpp_exceptions)
static void exceptions_fail_the_call_and_no_more()
{
    int calls = 0;
    bay::server server("test", "1");
    add_tools(server, calls);
    bay::client_options options;
    options.on_elicitation([&calls](bay::question &question) {
        if (calls == 0) {
            question.accept(bay::object({}));
            return;
        }
        throw std::runtime_error("asked");
    });
    bay::error error;
    bay::client client = bay::client::attach(server, options, &error);
    for (const char *name : {"throw", "odd", "ask"}) {
        logged.clear();
        bay::reply reply = client.call(name, &error);
        CHECK(error.code() == BAY_ERR_REMOTE);
        CHECK(error.text().find("secret") == std::string_view::npos);
        CHECK(logged.find("handler: ") != std::string::npos);
    }
    logged.clear();
    CHECK_TEXT(client.call("late").text(), "replied");
    CHECK(logged.find("handler: after it") != std::string::npos);
    CHECK(client.call("add", bay::object({{"a", 1}})).value("sum").int_or(0) == 41);
    CHECK(client.call("plan").is_error()); // its question's handler throws: declined
}
#endif

static void an_agent_answers_and_outlives_what_is_thrown()
{
    bay::agent agent("greeter", "1", "Greets.");
    agent.skill("greet", "Greet", "Says hello.", [](bay::task &task, const bay::message &said) {
#if defined(__cpp_exceptions)
        if (said.text() == "throw") {
            throw std::runtime_error("secret reason");
        }
#endif
        task.complete(bay::text("Hello, ", said.text(), "."));
    });
    bay::error error;
    CHECK(agent.listen("127.0.0.1:0", &error));
    const std::string url = bay::text("http://127.0.0.1:", agent.port());
    logged.clear();
    std::thread serving([&agent] { CHECK(agent.run_until_stopped()); });
    bay::caller caller = bay::caller::connect(url, &error);
    CHECK(caller && !error);
    CHECK_TEXT(caller.send("Ada", &error).text(), "Hello, Ada.");
#if defined(__cpp_exceptions)
    bay::caller_reply reply = caller.send("throw", &error);
    CHECK(reply && reply.state() == BAY_TASK_STATE_FAILED);
    CHECK(reply.text().find("secret") == std::string_view::npos);
    CHECK_TEXT(caller.send("Alan", &error).text(), "Hello, Alan.");
#endif
    agent.stop();
    serving.join();
#if defined(__cpp_exceptions)
    CHECK(logged.find("handler: secret reason") != std::string::npos);
#endif
}

// What a handler has captured lives until it has returned, also when another agent takes the place of
// its own.
static void an_assignment_waits_for_handlers()
{
    std::atomic<bool> is_in{false};
    std::atomic<size_t> seen{0};
    bay::agent agent("first", "1", "Waits until it is cancelled.");
    agent.skill("wait", "Wait", "Waits.",
                [words = std::vector<std::string>(3, "captured"), &is_in,
                 &seen](bay::task &task, const bay::message &) {
                    is_in = true;
                    while (bay_task_sleep(task.get(), 10000)) {
                    }
                    for (const std::string &word : words) {
                        seen += word.size();
                    }
                });
    bay::error error;
    CHECK(agent.listen("127.0.0.1:0", &error));
    std::thread caller([url = bay::text("http://127.0.0.1:", agent.port())] {
        bay::caller one = bay::caller::connect(url);
        CHECK(one);
        CHECK(!one.send("go")); // the agent ends before it answers
    });
    while (!is_in && failed == 0) {
        CHECK(bay_agent_dispatch(agent.get()) == BAY_OK);
        std::this_thread::yield();
    }
    agent = bay::agent("second", "1", "Takes its place.");
    CHECK(seen == 24);
    CHECK(agent.port() == 0);
    caller.join();
}

static void what_was_moved_connects_nowhere()
{
    bay::server first("first", "1");
    bay::server server = std::move(first);
    server.tool("hi", "Says it.", {}, [](bay::call &) { return "hi"; });
    bay::client_options options;
    bay::client_options moved = std::move(options);
    bay::error error;
    CHECK(!bay::client::attach(server, options, &error)); // not with the settings of nobody
    CHECK(error.code() == BAY_ERR_NOMEM);
    bay::client client = bay::client::attach(server, moved, &error);
    CHECK(client && !error);
    client = bay::client::attach(server, moved, &error);
    CHECK_TEXT(client.call("hi").text(), "hi");
    const std::string name("hi\0", 3);
    CHECK(!client.call(name, &error)); // another name
    CHECK(error.code() == BAY_ERR_REMOTE);
}

static void errors_of_registration_are_told()
{
    bay::server server("test", "1");
    server.tool("a", "", {bay::integer("n").min(3).max(1)},
                [](bay::call &call) { call.reply(""); });
    bay::error error;
    CHECK(!server.check(&error));
    CHECK(error.code() == BAY_ERR_INVALID);
    CHECK(error.text().find("bounds that leave nothing") != std::string_view::npos);
    CHECK(!bay::client::connect("no address", &error));
    CHECK(error);
}

int main()
{
    bay_log_to(BAY_LOG_LEVEL_ERROR, log_line, nullptr);
    json_is_written();
    mistakes_of_json_are_errors();
    a_nul_ends_no_text();
    an_error_is_of_the_last_call();
    json_is_read();
    tables_are_the_schemas_of_c();
    defaults_are_texts_of_any_kind();
    calls_are_answered("2025-11-25");
    calls_are_answered("2026-07-28");
#if defined(__cpp_exceptions)
    exceptions_fail_the_call_and_no_more();
#endif
    what_was_moved_connects_nowhere();
    an_agent_answers_and_outlives_what_is_thrown();
    an_assignment_waits_for_handlers();
    errors_of_registration_are_told();
    std::printf("cpp: %s\n", failed == 0 ? "all passed" : "FAILED");
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
