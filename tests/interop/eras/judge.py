"""Holds what came through the gateway against what comes directly."""
import re
import threading

import raw
import tables

EQUAL, NAMED, OLDER, NOTHING, BROKEN = "=", "~", "o", "-", "X"
ORDER = NOTHING + EQUAL + NAMED + OLDER + BROKEN
MEANING = {
    EQUAL: "as directly, byte for byte; a client of another SDK: all its cases hold, as they do directly",
    NAMED: "as directly, byte for byte, but for fields named below",
    OLDER: "the older of the two revisions has no words for part of it (see below): its client gets, byte for byte, "
           "what its own server would give it",
    NOTHING: "the server or the client has nothing to try it with (see below)",
    BROKEN: "wrong",
}


class Judge:
    def __init__(self):
        self.used = set()  # of tables.FIELDS, by index
        self.passed = self.failed = self.skipped = 0
        self.notes = {}
        self.cells = {}
        self.lock = threading.Lock()

    def fault(self, text):
        with self.lock:
            self.failed += 1
            print(f"  FAILED {text}", flush=True)

    def note(self, where, why):
        with self.lock:
            self.skipped += 1
            self.notes.setdefault(why, []).append(where)

    @staticmethod
    def wanted(step, client, server, reference):
        """The direct answer that counts: of the revision that `basis` names, as far as the server has it."""
        if step in tables.ITS_OWN:
            return tables.ITS_OWN[step]
        basis = (tables.BASIS.get((server.family, step)) or tables.BASIS.get((server.family, server.revision))
                 or tables.BASIS.get(step, "older"))
        revision = {"client": client.revision, "older": min(client.revision, server.revision),
                    "newer": max(client.revision, server.revision), "server": server.revision}[basis]
        if server.family != "fixture":
            revision = min(revision, server.revision)  # no other can be asked directly
        wanted = reference(server, revision).get(tables.MEASURE.get(step, step))
        if server.family == "fixture" and step in tables.ONLY:
            if server.revision != tables.MODERN:
                return tables.NO_TASK
            # It is a task there, and has to be.
            wanted = wanted.replace('{"outcome":"answer"', '{"outcome":"answer","task":true', 1)
        return wanted

    def compare(self, step, client, server, came, wanted):
        """A mark, and what differs."""
        if came is None or wanted is None:
            return BROKEN, "it was not reached" if came is None else "directly it was not reached"
        mark, older = EQUAL, min(client.revision, server.revision)
        prefix = f"{server.name}."
        if client.transport == "stdio" and prefix in came:
            mark, came = NAMED, came.replace(prefix, "")
        if came != wanted:
            mark = NAMED
            for index, (steps, when, path, _) in enumerate(tables.FIELDS):
                named = {step, f"{server.family}:", f"{server.family}:{step}"}
                if (steps == "*" or not named.isdisjoint(steps)) and when(client.revision, server.revision):
                    left, right = raw.without(came, path), raw.without(wanted, path)
                    if (left, right) != (came, wanted):
                        self.used.add(index)
                    came, wanted = left, right
        if came != wanted:
            return BROKEN, f"came {came[:700]}\n      want {wanted[:700]}"
        if older < tables.SINCE.get(step, ("",))[0]:
            return OLDER, ""
        return mark, ""

    def take(self, client, server, came, end, verdicts):
        """One run: `verdicts` yields (feature, step, mark, text): what is broken, or why it was not tried."""
        marks = {}
        if end is not None:
            self.fault(f"{client.name} > {server.name}: the client ended badly: {end}")
        for feature, step, mark, text in verdicts:
            why = tables.left_out(client, server, step)
            if why is not None:
                mark = NOTHING
                self.note(f"{step}, {client.name} > {server.name}", why)
            elif mark == BROKEN:
                self.fault(f"{client.name} > {server.name}: {step}: {text}")
            elif text:
                self.note(f"{step}, {client.name} > {server.name}", text)
            else:
                with self.lock:
                    self.passed += 1
            marks[feature] = max(marks.get(feature, NOTHING), mark, key=ORDER.index)
        with self.lock:
            self.cells[client.name, server.name] = marks

    def take_steps(self, client, server, came, end, reference):
        def verdicts():
            for feature, step, *_ in server.plan:
                if not tables.is_played(client, step):
                    continue
                if server.family != "fixture" and client.revision < tables.SINCE.get(step, ("",))[0]:
                    since, what = tables.SINCE[step]
                    yield feature, step, NOTHING, f"{what}, since {since}: the server answers all revisions alike"
                    continue
                pattern = tables.pattern(client, server, step)
                if pattern is not None and re.search(pattern, came.get(step, "")):
                    yield feature, step, NAMED, ""
                    continue
                wanted = self.wanted(step, client, server, reference)
                yield feature, step, *self.compare(step, client, server, came.get(step), wanted)
        self.take(client, server, came, end, verdicts())

    def take_cases(self, client, server, came, end, directly):
        """The client says itself what holds. What it does not hold directly is not the gateway's affair."""
        def verdicts():
            for case, (verdict, said) in directly.items():
                feature = tables.CASES.get(case, "calls")
                found, text = came.get(case, ("not ok", "it was not reached"))
                since, what = tables.SINCE_CASES.get(case, ("", ""))
                if verdict == "skip":
                    yield feature, case, NOTHING, f"the client does not ask for it directly either: {said}"
                elif verdict == "not ok":
                    yield feature, case, NOTHING, f"it does not hold directly either: {said}"
                elif found == "ok":
                    yield feature, case, EQUAL, ""
                elif min(client.revision, server.revision) < since:
                    yield feature, case, OLDER, f"{what}, since {since}"
                else:
                    yield feature, case, BROKEN, f"{found}: {text}"
        self.take(client, server, came, end, verdicts())


def print_table(judge, clients, servers):
    for client in clients:
        columns = [one for one in servers if (client.name, one.name) in judge.cells]
        if not columns:
            continue
        print(f"\n{client.name}, in front of")
        for kind, transport in dict.fromkeys((one.kind, one.transport) for one in columns):
            row = [one for one in columns if (one.kind, one.transport) == (kind, transport)]
            print(f"  {f'{kind} on {transport}':<26}" + "".join(f"{one.revision:>12}" for one in row))
            for feature in tables.FEATURES:
                marks = (judge.cells[client.name, one.name].get(feature, NOTHING) for one in row)
                print(f"    {feature:<24}" + "".join(f"{mark:>12}" for mark in marks))
    print("\nMarks")
    for mark, text in MEANING.items():
        print(f"  {mark}  {text}")
    print("\nNot in the table\n  HTTP+SSE with later revisions: it is the transport of 2024-11-05")
    print("\nNothing to try it with")
    for kind, why in tables.WITHOUT.items():
        print(f"  {kind}: {why}")
    print("\nWhat a revision has no words for")
    for step, (since, what) in tables.SINCE.items():
        print(f"  {step}: {what}, since {since}")
    print("\nAnswers of the gateway's own")
    for step in tables.ITS_OWN:
        print(f"  {step}")
    for (kind, step), (_, text) in tables.PATTERNS.items():
        print(f"  {step}, {kind}: what matches {text}")
    print("\nFields that may differ")
    print("  names of tools and prompts, for a client on stdio: they carry the server's")
    for steps, _, path, why in tables.FIELDS:
        where = "all" if steps == "*" else ", ".join(steps)
        print(f"  {'.'.join(path)} ({where}): {why}")
    if judge.notes:
        print("\nNot tried there, and counted as skipped")
        for why, where in judge.notes.items():
            steps = sorted({one.split(",")[0] for one in where})
            print(f"interop: skipped: eras: {', '.join(steps)}, {len(where)} times, {where[0].split(', ')[1]} for one: {why}")
