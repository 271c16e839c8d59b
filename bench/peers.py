"""Peers: the same server, one tool that greets, on the SDKs that people use today and on ours; the
rows of bench/run that compare them.

The peers are linked whole, but for libc, and so is ours; as it is with shared libraries is shown
beside. Every server runs on one core, on stdio and on HTTP, and answers the newest revision that it speaks,
statelessly and in JSON where it offers that; each is compared with ours in the same era. In each round
each of them takes the same load once, in turn. On stdio one call is under way, as with a host that
waits for each answer; on HTTP 1, 8 and 64 connections have one each. A peer whose toolchain or registry is not there is left out, and said so.

Their code is in bench/peers, what is built of it in build/peers."""
import os
import re
import socket
import statistics
import subprocess
import sys
import time

import latency

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, "tools"))
import toolchains  # noqa: E402  (it is beside neither)

MODERN, LEGACY = "2026-07-28", "2025-11-25"
LOAD_ID = 100000000
STDIO_CALLS = 1
EXPECTED = "Hello, Tokyo"


class Taken:
    """What one server took: figures of the rounds, and the memory of its first start."""

    def __init__(self, command, revision):
        self.command, self.revision = command, revision
        self.total, self.user = [], []
        self.rest = self.called = None  # bytes

    def add(self, figures):
        self.total.append(figures["cpu_us"])
        self.user.append(figures["user_us"])

    def medians(self):
        return statistics.median(self.total), statistics.median(self.user)


TOTAL, USER = 0, 1  # in `medians`
OURS = "patchbay"
OURS_SESSION = "patchbay, in a session"
OURS_SHARED = "patchbay, shared libraries"
ALL_OURS = (OURS, OURS_SESSION, OURS_SHARED)


class Peers:
    def __init__(self, run, bench):
        self.run, self.bench = run, bench
        self.taken = {"http": {}, "stdio": {}}  # carrier -> name -> Taken
        self.ports = {}

    # ---- one conversation

    def messages(self, revision):
        """What opens a conversation on stdio, and the call."""
        target = type("", (), {"era": revision})()
        def message(method, params, number=LOAD_ID):
            return self.run.Target.message(target, method, params).replace(str(LOAD_ID), str(number))
        call = message("tools/call", {"name": "hello", "arguments": {"name": "Tokyo"}})
        if revision == MODERN:
            return ["-o", message("server/discover", {}, 1)], call
        opening = message("initialize", {"protocolVersion": revision, "capabilities": {},
                                         "clientInfo": {"name": "bench", "version": "1"}}, 1)
        return ["-o", opening, "-n", '{"jsonrpc":"2.0","method":"notifications/initialized"}'], call

    def load_stdio(self, command, revision, seconds):
        opening, call = self.messages(revision)
        load = [self.run.program("bench_stdio_load"), "-t", str(seconds), "-w", str(STDIO_CALLS),
                *opening, "-i", str(LOAD_ID), "-e", EXPECTED, "-d", call]
        done = subprocess.run(
            self.run.pinned(self.run.LOAD_CORE, load + self.run.pinned(self.run.SERVER_CORE, command)),
            capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [""]
            raise self.run.Failed(f"{os.path.basename(command[-1])} on stdio, {revision}: {last[0][:160]}")
        return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", done.stdout)}

    def start_http(self, name, command):
        if name in ALL_OURS:
            server = self.bench.server(command + ["--http", "127.0.0.1:0"])
        else:
            port = free_port()
            server = self.bench.server(command + [str(port)], port=port)
        time.sleep(0.5)  # what it does after it listens is done
        return server

    # ---- preparing

    def prepare(self, name, make):
        try:
            command = make()
        except (self.run.Missing, *self.run.FAILURES) as error:
            print(f"LEFT OUT: {name}: {error}", file=sys.stderr)
            return
        for carrier, prepare in (("stdio", self.prepare_stdio), ("http", self.prepare_http)):
            try:
                self.taken[carrier][name] = prepare(name, command)
            except (AttributeError, *self.run.FAILURES) as error:
                print(f"LEFT OUT: {name} on {carrier}: {error}", file=sys.stderr)

    def newest(self, name, start):
        """What `start` returns for the newest revision that the server speaks, and that."""
        if name != OURS_SESSION:
            try:
                return MODERN, start(MODERN)
            except (self.run.Failed, ValueError):
                pass
        return LEGACY, start(LEGACY)

    def prepare_stdio(self, name, command):
        revision, figures = self.newest(name, lambda era: self.load_stdio(command, era, 0.1))
        taken = Taken(command, revision)
        taken.rest, taken.called = (int(figures[word + "_kb"]) * 1024 for word in ("rest", "called"))
        return taken

    def prepare_http(self, name, command):
        server = self.start_http(name, command)
        rest = server.resident()
        revision, target = self.newest(
            name, lambda era: self.run.Target(server.port, era, tool="hello"))
        taken = Taken(command, revision)
        taken.rest, taken.called = rest, server.resident()
        self.bench.subjects["peer " + name] = (server.pid, server.port, target.path,
                                               target.load_fields, target.body)
        self.bench.expected["peer " + name] = EXPECTED
        return taken

    # ---- measuring

    def measure(self):
        build = toolchains.Toolchains(os.path.join(self.run.ROOT, "bench", "peers"),
                                      os.path.join(self.run.ROOT, "build", "peers"), self.run.Missing)
        self.prepare(OURS, lambda: [self.run.program("bench_peer_hello_whole")])
        if OURS in self.taken["stdio"]:
            self.prepare(OURS_SHARED, lambda: [self.run.program("bench_peer_hello")])
        else:
            print("the archives of our libraries are not here: shared ones are measured", file=sys.stderr)
            self.prepare(OURS, lambda: [self.run.program("bench_peer_hello")])
        if OURS in self.taken["stdio"]:
            self.prepare(OURS_SESSION, lambda: self.taken["stdio"][OURS].command)
        self.prepare("rmcp", lambda: build.rust("hello"))
        self.prepare("go-sdk", lambda: build.go("hello"))
        self.prepare("@modelcontextprotocol/server", lambda: build.node("hello.mjs"))
        self.prepare("mcp (PyPI)", lambda: build.python("mcp_hello.py"))
        self.prepare("fastmcp", lambda: build.python("fastmcp_hello.py"))
        for name in self.taken["http"]:
            self.bench.load("peer " + name, seconds=0.3)  # warm
        for number in range(self.run.ROUNDS):
            print(f"peers: round {number + 1} of {self.run.ROUNDS}", file=sys.stderr)
            for name, taken in self.taken["stdio"].items():
                taken.add(self.load_stdio(taken.command, taken.revision, self.run.SECONDS))
            for name in self.taken["http"]:
                for count in self.run.COUNTS:
                    self.bench.take("peer " + name, count)
        for name, taken in self.taken["http"].items():
            of = self.bench.taken["peer " + name, self.run.CONNECTIONS]
            taken.total, taken.user = of["cpu_us"], of["user_us"]
        self.print_table()
        latency.print_table(self.bench, self.run.COUNTS, ["peer " + name for name in self.taken["http"]])

    def print_table(self):
        head = ("peers, one core", "revision", "total us/call", "user us/call", "rest MB",
                "after a call MB", "ours: total", "user", "memory")
        lines = [head]
        for carrier, all_taken in self.taken.items():
            for name, taken in all_taken.items():
                total, user = taken.medians()
                shares = ["", "", ""]
                ours = self.ours_for(carrier, taken)
                if ours is not None and name not in ALL_OURS:
                    our_total, our_user = ours.medians()
                    shares = [f"{our_total / total:.2f} x", f"{our_user / user:.2f} x",
                              f"{ours.rest / taken.rest:.2f} x"]
                lines.append((f"{carrier}: {name}", taken.revision, f"{total:.1f}", f"{user:.1f}",
                              f"{taken.rest / 1e6:.1f}", f"{taken.called / 1e6:.1f}", *shares))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        print()

    # ---- verdicts

    def ours_for(self, carrier, peer):
        """Ours in the peer's era; None: not measured."""
        return self.taken[carrier].get(OURS if peer.revision == MODERN else OURS_SESSION)

    def theirs(self, carrier):
        if OURS not in self.taken[carrier] or OURS_SESSION not in self.taken[carrier]:
            raise self.run.Failed("ours was not measured")
        everyone = {name: taken for name, taken in self.taken[carrier].items() if name not in ALL_OURS}
        if not everyone:
            raise self.run.Missing("no peer could be built")
        return everyone

    def against_fastest(self, carrier, index, bound):
        name, fastest = min(self.theirs(carrier).items(), key=lambda one: one[1].medians()[index])
        best, mine = fastest.medians()[index], self.ours_for(carrier, fastest).medians()[index]
        return self.run.Figure(f"{mine / best:.2f} x ({mine:.1f} / {best:.1f} us of {name}, "
                               f"{fastest.revision})", mine / best <= bound)

    def against_memory(self, peer, bound):
        parts, is_good = [], True
        for carrier in ("stdio", "http"):
            theirs = self.theirs(carrier).get(peer)
            if theirs is None:
                raise self.run.Missing(f"{peer} was left out")
            ours = self.ours_for(carrier, theirs)
            share = max(ours.rest / theirs.rest, ours.called / theirs.called)
            parts.append(f"{carrier} {share:.2f} x ({ours.rest / 1e6:.1f} / {theirs.rest / 1e6:.1f} MB)")
            is_good = is_good and share <= bound
        return self.run.Figure(", ".join(parts), is_good)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def add_rows(run):
    """The rows, for bench/run."""
    def of(bench):
        if bench.peers is None:
            bench.peers = Peers(run, bench)
            bench.peers.measure()
        return bench.peers

    for carrier, bound in (("HTTP", 0.6), ("stdio", 0.5)):
        def total(bench, carrier=carrier, bound=bound):
            return of(bench).against_fastest(carrier.lower(), TOTAL, bound)

        def user(bench, carrier=carrier):
            return of(bench).against_fastest(carrier.lower(), USER, 1 / 3)

        run.row(f"peers: {carrier}, total CPU / fastest", f"{bound:.2f} x")(total)
        run.row(f"peers: {carrier}, user CPU / fastest", "0.33 x")(user)
    run.row("peers: memory at rest / rmcp", "< 1 x")(
        lambda bench: of(bench).against_memory("rmcp", 1))
    run.row("peers: memory at rest / go-sdk", "0.33 x")(
        lambda bench: of(bench).against_memory("go-sdk", 1 / 3))
