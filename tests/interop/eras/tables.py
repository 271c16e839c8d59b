"""What the matrix plays, what it knows to differ, and why. Nothing else may differ."""

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*LEGACY, MODERN)

# ---- our client's steps: feature, step, and a line of tests/interop/eras/player.c ------------------
# {mark} is new for each run.
STEPS = (
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
    ("log", "logs", "logs", "logs", "", "warning"),
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
    ("completion", "completion", "complete", "greet", "name", "A"),
    ("completion", "completion-template", "complete", "fixture://item/{id}", "id", "G"),
    ("large result", "large", "call", "large"),
    ("binary", "contents", "call", "contents"),
    ("binary", "audio", "call", "audio"),
    ("binary", "blob", "read", "fixture://pixel"),
)

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
    "task": (MODERN, "the tasks extension"),
    "task-asks": (MODERN, "the tasks extension"),
    "task-fails": (MODERN, "the tasks extension"),
}

# ---- whose direct answer is the measure ------------------------------------------------------------
# Else that of the older revision of the two: it is what both can carry.
BASIS = {
    "missing": "client",  # the code of a resource that is not there is the client's revision's affair
    "own-error": "newer",  # 2026-07-28 has no room for a server's own codes
}

# ---- fields that may differ ------------------------------------------------------------------------


def eras_differ(client, server):
    return (client == MODERN) != (server == MODERN)


def always(_client, _server):
    return True


# steps ("*": all), when (of client's and server's revision), path, why
FIELDS = [
    ("*", always, ("result", "resultType"), "stateless results say their type, others have none; its place in the result is the engine's"),
    ("*", always, ("result", "_meta", "io.modelcontextprotocol/serverInfo"), "who answers: the gateway says that it does"),
    ("*", always, ("result", "ttlMs"), "how long it may be kept: only stateless results say so"),
    ("*", always, ("result", "cacheScope"), "by whom it may be kept: only stateless results say so"),
]
