"""Peers of A2A: the same agent, whose tasks are complete at once, on the official SDKs and on ours; the
rows of bench/run that compare them.

Every agent runs on one core, keeps its tasks in memory and answers SendMessage of 1.0 by JSON-RPC; 64
connections have one call each. In each round each of them takes the same load once, in turn. A peer
whose toolchain or registry is not there is left out, and said so.

Their code is in bench/peers/a2a, what is built of it in build/peers/a2a."""
import http.client
import os
import sys
import time

import latency
import peers  # and by it the folder of toolchains
import toolchains

OURS = "patchbay"


class Peers:
    def __init__(self, run, bench):
        self.run, self.bench = run, bench
        self.taken = {}  # name -> peers.Taken

    def prepare(self, name, make):
        try:
            command = make()
            if name == OURS:
                server = self.bench.server(command + ["--http", "127.0.0.1:0"])
            else:
                port = peers.free_port()
                server = self.bench.server(command + [str(port)], port=port)
            taken = peers.Taken(command, "1.0")
            time.sleep(0.5)  # what it does after it listens is done
            taken.rest = server.resident()
            self.ask(server.port)
        except (self.run.Missing, *self.run.FAILURES) as error:
            print(f"LEFT OUT: {name}: {error}", file=sys.stderr)
            return
        self.taken[name] = taken
        self.bench.subjects["a2a peer " + name] = (server.pid, server.port, "/", self.run.A2A_FIELDS,
                                                   self.run.A2A_SEND)
        self.bench.expected["a2a peer " + name] = self.run.A2A_DONE

    def ask(self, port):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            link.request("POST", "/", self.run.A2A_SEND.encode(), self.run.A2A_FIELDS)
            text = link.getresponse().read().decode()
        finally:
            link.close()
        if '"TASK_STATE_COMPLETED"' not in text:
            raise self.run.Failed("SendMessage was answered " + text[:200])

    def measure(self):
        source = os.path.join(self.run.ROOT, "bench", "peers", "a2a")
        build = toolchains.Toolchains(source, os.path.join(self.run.ROOT, "build", "peers", "a2a"),
                                      self.run.Missing)
        self.prepare(OURS, lambda: [self.run.program("bench_a2a_send")])
        self.prepare("a2a-go", lambda: build.go("hello"))
        self.prepare("@a2a-js/sdk", lambda: build.node("hello.mjs"))
        self.prepare("a2a-sdk (PyPI)", lambda: build.python("hello.py"))
        for name in self.taken:
            self.bench.load("a2a peer " + name, seconds=0.3)  # warm
        for number in range(self.run.ROUNDS):
            print(f"peers of A2A: round {number + 1} of {self.run.ROUNDS}", file=sys.stderr)
            for name in self.taken:
                for count in self.run.COUNTS:
                    self.bench.take("a2a peer " + name, count)
        for name, taken in self.taken.items():
            of = self.bench.taken["a2a peer " + name, self.run.CONNECTIONS]
            taken.total, taken.user = of["cpu_us"], of["user_us"]
            total, user = taken.medians()
            print(f"{name:16}  total {total:7.1f} us/call  user {user:7.1f} us/call  "
                  f"rest {taken.rest / 1e6:6.1f} MB")
        print()
        latency.print_table(self.bench, self.run.COUNTS, ["a2a peer " + name for name in self.taken])

    def against_fastest(self, index, bound):
        everyone = dict(self.taken)
        ours = everyone.pop(OURS, None)
        if ours is None:
            raise self.run.Failed("ours was not measured")
        if not everyone:
            raise self.run.Missing("no peer could be built")
        name, best = min(((name, taken.medians()[index]) for name, taken in everyone.items()),
                         key=lambda one: one[1])
        mine = ours.medians()[index]
        return self.run.Figure(f"{mine / best:.2f} x ({mine:.1f} / {best:.1f} us of {name})",
                               mine / best <= bound)


def add_rows(run):
    """The rows, for bench/run."""
    made = []

    def of(bench):
        if not made:
            made.append(Peers(run, bench))
            made[0].measure()
        return made[0]

    run.row("a2a peers: total CPU / fastest", "0.60 x")(
        lambda bench: of(bench).against_fastest(peers.TOTAL, 0.6))
    run.row("a2a peers: user CPU / fastest", "0.33 x")(
        lambda bench: of(bench).against_fastest(peers.USER, 1 / 3))
