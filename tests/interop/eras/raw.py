"""JSON without loss: takes texts apart and puts them together without touching a byte of what it is
not asked about. Texts are valid JSON: they were parsed before."""
import json
import re

_SKIP = re.compile(r'[ \t\r\n]*')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OTHER = re.compile(r'[^,\]}\s]+')


def _end_of(text, at):
    """Where the value that starts at `at` ends."""
    if text[at] == '"':
        return _STRING.match(text, at).end()
    if text[at] not in "{[":
        return _OTHER.match(text, at).end()
    depth = 0
    while True:
        if text[at] == '"':
            at = _STRING.match(text, at).end()
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        at += 1
        if depth == 0:
            return at


def _skip(text, at):
    return _SKIP.match(text, at).end()


def members(text):
    """(name, raw name, raw value) of an object."""
    at = _skip(text, 0) + 1
    found = []
    while True:
        at = _skip(text, at)
        if text[at] == "}":
            return found
        if text[at] == ",":
            at = _skip(text, at + 1)
        end = _end_of(text, at)
        key = text[at:end]
        at = _skip(text, _skip(text, end) + 1)
        end = _end_of(text, at)
        found.append((json.loads(key), key, text[at:end]))
        at = end


def elements(text):
    """Raw elements of an array."""
    at = _skip(text, 0) + 1
    found = []
    while True:
        at = _skip(text, at)
        if text[at] == "]":
            return found
        if text[at] == ",":
            at = _skip(text, at + 1)
        end = _end_of(text, at)
        found.append(text[at:end])
        at = end


def member(text, name):
    return next((value for key, _, value in members(text) if key == name), None)


def without(text, path):
    """The text without what is at `path`, a tuple of names; "*" is each element of an array. An object
    that is emptied by this goes, too."""
    name, rest = path[0], path[1:]
    kind = text[_skip(text, 0)]
    if name == "*":
        if kind != "[":
            return text
        return "[" + ",".join(without(one, rest) for one in elements(text)) + "]"
    if kind != "{":
        return text
    kept = []
    for key, raw_key, value in members(text):
        if key == name:
            if not rest:
                continue
            before, value = value, without(value, rest)
            if value == "{}" and before != value:
                continue
        kept.append(f"{raw_key}:{value}")
    return "{" + ",".join(kept) + "}"
