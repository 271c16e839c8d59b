"""What the matrix plays, what it knows to differ, and why. Nothing else may differ."""

import re

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*LEGACY, MODERN)

FEATURES = ("lists", "calls", "progress", "cancel", "log", "elicitation form", "elicitation URL", "sampling", "roots",
            "several at once", "subscribe", "tasks", "completion", "large result", "binary")

# ---- what our client plays: feature, step, and a line of tests/interop/eras/player.c ---------------
# {mark} is new for each run.
FIXTURE = (
    ("lists", "tools", "list", "tools"),
    ("lists", "resources", "list", "resources"),
    ("lists", "templates", "list", "templates"),
    ("lists", "prompts", "list", "prompts"),
    ("calls", "call", "call", "echo", '{"text":"na\\u00efve \u2603 \\"q\\" \\\\ \U0001f600"}'),
    ("calls", "bad-arguments", "call", "echo", '{"text":7}'),
    ("calls", "unknown-tool", "call", "nothing", "{}"),
    ("calls", "structured", "call", "structured"),
    ("calls", "links", "call", "links"),
    ("calls", "tool-error", "call", "fail"),
    ("calls", "own-error", "call", "refuse"),
    ("calls", "read", "read", "fixture://note"),
    ("calls", "template", "read", "fixture://item/a%20b"),
    ("calls", "missing", "read", "fixture://item/none"),
    ("calls", "prompt", "prompt", "greet", '{"name":"Ada \u2603"}'),
    ("progress", "progress", "call", "progress"),
    ("cancel", "cancel", "cancel", "hang", '{"mark":"{mark}"}', "heard"),
    ("log", "logs", "logs", "logs", "", "warning 2"),
    ("elicitation form", "form", "call", "ask_form"),
    ("elicitation form", "form-mute", "mute", "ask_form"),
    ("elicitation form", "rounds", "call", "ask_twice"),
    ("elicitation form", "prompt-asks", "prompt", "ask"),
    ("elicitation URL", "url", "call", "ask_url"),
    ("sampling", "sample", "call", "sample"),
    ("sampling", "sample-mute", "mute", "sample"),
    ("sampling", "sample-tools", "call", "sample_tools"),
    ("roots", "roots", "call", "ask_roots"),
    ("roots", "roots-mute", "mute", "ask_roots"),
    ("several at once", "at-once", "call", "ask_three"),
    ("subscribe", "updates", "updates", "fixture://note", "touch"),
    ("subscribe", "grow", "changes", "grow", '{"wanted":true}'),
    ("subscribe", "shrink", "changes", "grow", '{"wanted":false}'),
    ("tasks", "task", "task", "work"),
    ("tasks", "task-asks", "task", "work_ask"),
    ("tasks", "task-fails", "task", "work_fail"),
    ("tasks", "older-task", "older", "work"),
    ("tasks", "older-task-asks", "older", "work_ask"),
    ("tasks", "older-task-fails", "older", "work_fail"),
    ("completion", "completion", "complete", "greet", "name", "A"),
    ("completion", "completion-template", "complete", "fixture://item/{id}", "id", "G"),
    ("large result", "large", "call", "large"),
    ("binary", "contents", "call", "contents"),
    ("binary", "audio", "call", "audio"),
    ("binary", "blob", "read", "fixture://pixel"),
)

# server-everything, on the first generation of the TypeScript SDK.
EVERYTHING = (
    ("lists", "tools", "list", "tools"),
    ("lists", "resources", "list", "resources"),
    ("lists", "templates", "list", "templates"),
    ("lists", "prompts", "list", "prompts"),
    ("calls", "call", "call", "echo", '{"message":"na\\u00efve \u2603 \\"q\\" \\\\ \U0001f600"}'),
    ("calls", "bad-arguments", "call", "get-sum", '{"a":"no","b":"numbers"}'),
    ("calls", "unknown-tool", "call", "nothing", "{}"),
    ("calls", "structured", "call", "get-structured-content", '{"location":"Chicago"}'),
    ("calls", "links", "call", "get-resource-links", '{"count":3}'),
    ("calls", "annotated", "call", "get-annotated-message", '{"messageType":"error","includeImage":true}'),
    ("calls", "read", "read", "demo://resource/static/document/features.md"),
    ("calls", "missing", "read", "demo://resource/dynamic/text/none"),
    ("calls", "prompt", "prompt", "args-prompt", '{"city":"Z\u00fcrich","state":"ZH"}'),
    ("progress", "progress", "call", "trigger-long-running-operation", '{"duration":0.2,"steps":4}'),
    ("elicitation form", "form", "call", "trigger-elicitation-request"),
    ("elicitation URL", "url", "call", "trigger-url-elicitation",
     '{"url":"https://example.org/sign","message":"Please sign in","elicitationId":"sign-1"}'),
    ("sampling", "sample", "call", "trigger-sampling-request", '{"prompt":"Say something \u2603","maxTokens":100}'),
    ("roots", "roots", "call", "get-roots-list"),
    ("tasks", "research", "older", "simulate-research-query", '{"topic":"stars"}'),
    ("tasks", "research-asks", "older", "simulate-research-query", '{"topic":"stars","ambiguous":true}'),
    ("tasks", "other-research", "task", "simulate-research-query", '{"topic":"stars"}'),
    ("tasks", "other-research-asks", "task", "simulate-research-query", '{"topic":"stars","ambiguous":true}'),
    ("completion", "completion", "complete", "completable-prompt", "department", "S"),
    ("completion", "completion-template", "complete", "demo://resource/dynamic/text/{resourceId}", "resourceId", "1"),
    ("binary", "image", "call", "get-tiny-image"),
)

# The programs of tests/interop/sdks, as servers.
PEER = (
    ("lists", "tools", "list", "tools"),
    ("lists", "resources", "list", "resources"),
    ("lists", "templates", "list", "templates"),
    ("lists", "prompts", "list", "prompts"),
    ("calls", "call", "call", "echo", '{"text":"na\\u00efve \u2603 \\"q\\" \\\\ \U0001f600"}'),
    ("calls", "bad-arguments", "call", "sum", '{"left":"two","right":3}'),
    ("calls", "unknown-tool", "call", "nothing", "{}"),
    ("calls", "structured", "call", "sum", '{"left":2,"right":3}'),
    ("calls", "tool-error", "call", "fail"),
    ("calls", "read", "read", "peer://note"),
    ("calls", "template", "read", "peer://item/7"),
    ("calls", "missing", "read", "peer://nothing"),
    ("calls", "prompt", "prompt", "greet", '{"name":"Ada \u2603"}'),
    ("progress", "progress", "call", "progress"),
    ("log", "logs", "logs", "progress", "", "info 1"),
    ("elicitation form", "form", "call", "elicit"),
    ("elicitation form", "form-mute", "mute", "elicit"),
    ("sampling", "sample", "call", "sample"),
    ("roots", "roots", "call", "roots"),
    ("subscribe", "updates", "updates", "peer://note", "touch"),
    ("completion", "completion", "complete", "greet", "name", "A"),
    ("binary", "image", "call", "image"),
    ("binary", "blob", "read", "peer://pixel"),
)

# ---- what the clients of tests/interop/sdks do on their own: case -> feature; the rest are calls ---
CASES = {
    "tools-list": "lists", "resources-list": "lists", "prompts-list": "lists",
    "progress": "progress", "cancel": "cancel", "logging": "log", "elicitation": "elicitation form",
    "sampling": "sampling", "roots": "roots", "subscribe": "subscribe", "list-changed": "subscribe",
    "several-rounds": "elicitation form", "several-at-once": "several at once",
    "completion": "completion", "content-image": "binary", "content-audio": "binary",
    "content-mixed": "binary", "resource-blob": "binary",
}

# ---- features that a kind of server or client has nothing for: the cell is "-" ---------------------
WITHOUT = {
    "everything": "it logs at random, cannot say what became of a call, and sends updates at a pace of its own "
                  "(tests/interop/notices.test.mjs waits for them)",
    "peer": "the programs of tests/interop/sdks have no tool for it",
    "a client of another SDK": "the programs of tests/interop/sdks have no case for it",
    "any server but our fixture, where the older revision has no words for it": "they answer all revisions alike",
}

# ---- what the older of two revisions has no words for: step -> since when, and what ----------------
# The outcome is checked all the same: it is what that revision gets of its own server.
SINCE = {
    "structured": ("2025-06-18", "structured content"),
    "links": ("2025-06-18", "links"),
    "audio": ("2025-03-26", "audio"),
    "form": ("2025-06-18", "elicitation"),
    "form-mute": ("2025-06-18", "elicitation"),
    "rounds": ("2025-06-18", "elicitation"),
    "prompt-asks": ("2025-06-18", "elicitation"),
    "at-once": ("2025-06-18", "elicitation"),
    "url": ("2025-11-25", "elicitation by URL"),
    "sample-tools": ("2025-11-25", "sampling with tools"),
    "research-asks": ("2025-06-18", "elicitation"),
    "other-research-asks": ("2025-06-18", "elicitation"),
    "task": (MODERN, "the tasks extension"),
    "task-asks": (MODERN, "the tasks extension"),
    "task-fails": (MODERN, "the tasks extension"),
}

SINCE_CASES = {
    "structured": SINCE["structured"],
    "content-audio": SINCE["audio"],
    "elicitation": SINCE["form"],
    "several-rounds": SINCE["form"],
    "several-at-once": SINCE["form"],
}

# ---- what only clients of some revisions have: step -> those revisions -----------------------------
TASKS_OF_THE_CORE = ("2025-11-25",)
OTHERS = tuple(one for one in REVISIONS if one not in TASKS_OF_THE_CORE)
ONLY = {
    "older-task": TASKS_OF_THE_CORE,
    "older-task-asks": TASKS_OF_THE_CORE,
    "older-task-fails": TASKS_OF_THE_CORE,
    "research": TASKS_OF_THE_CORE,
    "research-asks": TASKS_OF_THE_CORE,
    "other-research": OTHERS,
    "other-research-asks": OTHERS,
}
# Only they can ask directly; the measure for the others is what they get.
MEASURE = {"other-research": "research", "other-research-asks": "research-asks"}

# ---- whose direct answer is the measure ------------------------------------------------------------
# Else that of the older revision of the two: it is what both can carry.
BASIS = {
    "older-task": "client", "older-task-asks": "client", "older-task-fails": "client",  # the only one that has them
    "missing": "client",  # the code of a resource that is not there is the client's revision's affair
    "other-research": "server", "other-research-asks": "server",
    ("peer", MODERN): "server",  # to sessions they say less than they could
    ("everything", "tools"): "server",  # it shows tools by what its client can be asked; the gateway can be asked all
    "own-error": "newer",  # 2026-07-28 has no room for a server's own codes
}

# ---- what the gateway answers itself, whatever the server would say --------------------------------
ITS_OWN = {
    "unknown-tool": '{"outcome":"error","error":{"code":-32602,"message":"Unknown tool: nothing"},'
                    '"progress":[],"logs":[],"asked":[],"updated":[]}',
}


def always(_client, _server):
    return True


# As patterns: (kind, step) -> when, and what has to be in it.
PATTERNS = {
    ("peer", "form-mute"): (always, r'("outcome":"error"|"isError":true).*"asked":\[\]'),
}


def pattern(client, server, step):
    when, text = PATTERNS.get((server.family, step), (None, None))
    return text if when is not None and when(client.revision, server.revision) else None


# To who wants a task of a server that has none, in words of 2025-11-25.
NO_TASK = ('{"outcome":"error","error":{"code":-32601,"message":"This tool cannot be called as a task"},'
           '"progress":[],"logs":[],"asked":[],"updated":[]}')

# ---- fields that may differ ------------------------------------------------------------------------


TASKS = ("older-task", "older-task-asks", "older-task-fails", "research", "research-asks", "other-research",
         "other-research-asks")
LISTS = ("tools", "resources", "templates", "prompts")


def without_until(revision):
    """The client's revision is older than the field."""
    return lambda client, _server: client < revision


def before_tasks(client, _server):
    return client < "2025-11-25"


def modern_server(_client, server):
    return server == MODERN


def modern_on_one_side(client, server):
    return (client == MODERN) != (server == MODERN)


WHOLE = "entries go through as their server made them: older clients pass over what they do not know"

# steps ("*": all; "KIND:", "KIND:STEP": with that kind of server), when (of client's and server's revision), path, why
FIELDS = [
    ("*", always, ("diag",), "words of our client, which name its target"),
    ("*", always, ("result", "resultType"),
     "stateless results say their type, others have none; where in the result is the engine's affair"),
    ("*", always, ("result", "_meta", "io.modelcontextprotocol/serverInfo"),
     "who answers: the gateway says that it does"),
    ("*", always, ("result", "ttlMs"), "how long it may be kept: only stateless results say so"),
    ("*", always, ("result", "cacheScope"), "by whom it may be kept: only stateless results say so"),
    (("everything:",), always, ("logs",), "it tells when it likes that it heard of roots"),
    ("*", without_until("2025-11-25"), ("asked", "*", "params", "mode"), "a form is the only mode before 2025-11-25"),
    (("everything:form", "everything:other-research-asks"), without_until("2025-11-25"),
     ("asked", "*", "params", "requestedSchema"), "choices with titles are said as enum and enumNames before 2025-11-25"),
    (("peer:progress",), always, ("logs",), "a session gets log messages unasked, a stateless request those that it wants"),
    (("everything:missing", "peer:missing"), always, ("error", "code"),
     "a resource that is not there is -32002 in sessions and -32602 in the stateless era, whatever a server says"),
    (("peer:form", "peer:sample", "peer:roots"), always, ("asked", "*", "params", "_meta", "progressToken"),
     "a number of the connection"),
    (LISTS, without_until("2025-06-18"), ("items", "*", "title"), WHOLE),
    (LISTS, without_until("2025-06-18"), ("items", "*", "outputSchema"), WHOLE),
    (LISTS, without_until("2025-06-18"), ("items", "*", "_meta"), WHOLE),
    (LISTS, without_until("2025-03-26"), ("items", "*", "annotations"), WHOLE),
    (LISTS, without_until("2025-11-25"), ("items", "*", "icons"), WHOLE),
    (("tools",), modern_server, ("items", "*", "execution"),
     "a server of the tasks extension may run any tool as a task: said in the words of 2025-11-25, to all"),
    (("structured",), without_until("2025-06-18"), ("result", "structuredContent"),
     "the text that goes with it says the same: older clients pass over what they do not know"),
    (("progress",), without_until("2025-03-26"), ("progress", "*", "message"),
     "progress goes through as its server made it: older clients pass over what they do not know"),
    (TASKS, always, ("result", "_meta", "io.modelcontextprotocol/related-task"),
     "which task a result is of, by its name: names are new each time, and the gateway's"),
    (TASKS, always, ("asked", "*", "params", "_meta", "io.modelcontextprotocol/related-task"),
     "which task a question is of, likewise"),
    (("other-research", "other-research-asks"), before_tasks, ("task",),
     "the gateway runs the task for a client that knows of none"),
    (("url",), modern_on_one_side, ("asked", "*", "params", "elicitationId"),
     "2026-07-28 knows a page to visit by its request alone"),
]

# ---- what is not tried there: (client, server, step), each a pattern; why -------------------------
LEFT_OUT = {
    ("(ours|typescript-v2|python|go)-2026-07-28-http", "(fixture|conformance)-202[45].*-stdio",
     "updates|grow|shrink|subscribe|list-changed"):
        "an anonymous client of 2026-07-28 has no session, so no process of its own: one is lent to each of its calls, "
        "and what changes in it is not what others see; the kind 'shared' (share: always) has these",
    ("ours-2026-07-28-http", "(typescript-v[12]|python|go|rust)-2025-11-25-.*", "updates"):
        "the same",
    ("ours-202[45].*", "python-.*", "logs"): "the server does not say that it logs, so no session can set a level",
    ("ours-2026.*", "python-2025-11-25-.*", "logs"): "the same: the level cannot be set directly",
    ("ours-.*", "everything-2024-11-05-sse", "(other-)?research.*"):
        "its session is of 2024-11-05, which has no tasks",
    ("ours-.*", "shared-.*", "cancel"):
        "a call that was given up may still ask, so from then on nobody is asked anything in a process that all share",
}


def is_played(client, step):
    return client.revision in ONLY.get(step, REVISIONS)


def left_out(client, server, step):
    """The reason, or None."""
    for pattern, why in LEFT_OUT.items():
        if all(re.fullmatch(one, given) for one, given in zip(pattern, (client.name, server.name, step))):
            return why
    return None
