"""The rows of ./dev bench about eras and about many: what translation costs, what a thousand servers
cost, what idle listeners and parked calls hold. Behind the gateway stand the servers of
tests/chaos/fleet.c, which cost next to nothing themselves."""
import contextlib
import http.client
import json
import os
import re
import resource
import statistics
import subprocess
import time

SERVERS, TOOLS = 1000, 100
ADDRESSES = 1  # of the fleet; more of them are more origins, each with its own connections
LISTENERS = 8000  # of each era
PARKED = 10000
SECONDS = float(os.environ.get("BAY_BENCH_SECONDS", "1.5"))


class Eras:
    def __init__(self, run):
        self.run = run
        self.translated = {}  # carrier -> pair of eras -> figures
        self.many_server = None

    # ---- processes

    def fleet(self, bench, *options):
        return bench.server([self.run.program("chaos_fleet"), *options, "http"],
                            core=self.run.LOAD_CORE)

    def gateway(self, bench, name, servers, **settings):
        path = os.path.join(bench.folder, name + ".yaml")
        config = {"listen": "127.0.0.1:0", "workers": 1, "mcpServers": servers,
                  "log": {"level": "error"}, **settings}
        with open(path, "w", encoding="utf-8") as text:
            json.dump(config, text)
        return bench.server([self.run.program("patchbay"), "serve", "-c", path])

    def target(self, server, era, tool):
        """As run.Target, without listing what there is."""
        target = self.run.Target.__new__(self.run.Target)
        target.port, target.era, target.path = server.port, era, "/mcp"
        target.fields = {"Content-Type": "application/json", "MCP-Protocol-Version": era,
                         "Accept": "application/json, text/event-stream"}
        if era == self.run.LEGACY:
            target.open_session()
        until = time.monotonic() + 20  # its server may still be starting
        while True:
            try:
                target.aim({"name": tool, "inputSchema": {}})
                return target
            except self.run.Failed:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def load(self, server, target, *options, connections=None, seconds=SECONDS):
        command = [self.run.program("bench_load"), "-c", str(connections or self.run.CONNECTIONS),
                   "-t", str(seconds), "-p", str(server.pid), *options]
        for field, value in target.load_fields.items():
            command += ["-H", f"{field}: {value}"]
        command += ["-d", target.body, "-i", str(self.run.LOAD_ID), str(server.port), target.path]
        done = subprocess.run(self.run.pinned(self.run.LOAD_CORE, command), capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise self.run.Failed(f"the load failed: {done.stdout.strip()} {done.stderr.strip()}")
        return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", done.stdout)}

    # ---- translation

    def measure_translation(self, bench, carrier):
        """Every client against every server, all through one gateway; CPU per call."""
        modern, legacy = self.run.MODERN, self.run.LEGACY
        if carrier == "HTTP":
            port = self.fleet(bench).port
            servers = {era: {"url": f"http://127.0.0.1:{port}/{era}/0", "protocol": era}
                       for era in ("legacy", "modern")}
        else:
            servers = {}
            for era in ("legacy", "modern"):
                command = self.run.pinned(self.run.LOAD_CORE,
                                          [self.run.program("chaos_fleet"), "stdio", era])
                servers[era] = {"command": command[0], "args": command[1:], "protocol": era}
        gateway = self.gateway(bench, "translate-" + carrier, servers)
        targets = {(client, server): self.target(gateway, client, server + ".tool_000")
                   for client in (modern, legacy) for server in ("modern", "legacy")}
        figures = {pair: [] for pair in targets}
        for target in targets.values():
            self.load(gateway, target, seconds=0.3)
        for _ in range(self.run.ROUNDS):
            for pair, target in targets.items():
                figures[pair].append(self.load(gateway, target)["cpu_us"])
        gateway.stop()
        return {("modern" if client == modern else "legacy", server): statistics.median(taken)
                for (client, server), taken in figures.items()}

    def translation(self, bench, carrier):
        cpu = self.measure_translation(bench, carrier)
        plain = (cpu["legacy", "legacy"] + cpu["modern", "modern"]) / 2
        over, back = cpu["modern", "legacy"] / plain, cpu["legacy", "modern"] / plain
        text = (f"modern to legacy {over:.2f} x, legacy to modern {back:.2f} x (of {plain:.1f} us: "
                f"{cpu['legacy', 'legacy']:.1f} and {cpu['modern', 'modern']:.1f})")
        return self.run.Figure(text, max(over, back) <= 1.25)

    # ---- a thousand servers

    def many(self, bench):
        """A gateway in front of 1,000 servers with 100 tools each, once all of them are known."""
        if self.many_server is None:
            fleet = self.fleet(bench, "-t", str(TOOLS), "-a", str(ADDRESSES))
            servers = {f"s{i:04d}": {"url": f"http://127.0.0.{1 + i % ADDRESSES}:{fleet.port}/modern/{i}",
                                     "protocol": "modern"} for i in range(SERVERS)}
            gateway = self.gateway(bench, "many", servers, limits={"originConnections": 2 * SERVERS})
            self.await_tools(gateway, SERVERS * TOOLS)
            self.many_server = (fleet, gateway)
        return self.many_server

    def pages(self, server):
        """How many tools there are, and for each page its request's fields and body, and its size."""
        target = self.run.Target.__new__(self.run.Target)
        target.port, target.era, target.path = server.port, self.run.MODERN, "/mcp"
        target.fields = {"Content-Type": "application/json", "MCP-Protocol-Version": target.era,
                         "Accept": "application/json, text/event-stream"}
        tools, pages, cursor = 0, [], None
        while True:
            body = target.message("tools/list", {"cursor": cursor} if cursor else {})
            fields = target.fields_of("tools/list")
            _, text = target.post(body, fields)
            pages.append((body, fields, len(text)))
            tools += text.count('"inputSchema"')
            cursor = json.loads(text)["result"].get("nextCursor")
            if cursor is None:
                return tools, pages

    def await_tools(self, server, wanted):
        until = time.monotonic() + 60
        tools = 0
        while time.monotonic() < until:
            tools = self.pages(server)[0]
            if tools >= wanted:
                return
            time.sleep(0.5)
        raise self.run.Failed(f"only {tools} of {wanted} tools were listed within 60 s")

    def routed(self, bench):
        _, many = self.many(bench)
        one_fleet = self.fleet(bench, "-t", str(TOOLS))
        one = self.gateway(bench, "one", {"s0000": {
            "url": f"http://127.0.0.1:{one_fleet.port}/modern/0", "protocol": "modern"}})
        subjects = {
            "one": (one, ()), "same": (many, ()),
            "each": (many, ("-s", "s0000", "-S", str(SERVERS)))}
        targets = {name: self.target(server, self.run.MODERN, "s0000.tool_050")
                   for name, (server, _) in subjects.items()}
        figures = {name: [] for name in subjects}
        for name, (server, options) in subjects.items():
            self.load(server, targets[name], *options, seconds=0.3)
        for _ in range(self.run.ROUNDS):
            for name, (server, options) in subjects.items():
                figures[name].append(self.load(server, targets[name], *options)["cpu_us"])
        one.stop()
        cpu = {name: statistics.median(taken) for name, taken in figures.items()}
        # Each in turn finds the memory of its server cold; that is no work, but it is time.
        same, each = cpu["same"] / cpu["one"], cpu["each"] / cpu["one"]
        text = f"{same:.2f} x to one of them, {each:.2f} x to each in turn (of {cpu['one']:.1f} us)"
        return self.run.Figure(text, same <= 1.15 and each <= 1.3)

    def cpu_seconds(self, pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def listing(self, bench):
        """All pages, again and again, against a bare loop that writes as many bytes of as much
        memory to sockets."""
        _, many = self.many(bench)
        _, pages = self.pages(many)
        total = sum(size for _, _, size in pages)
        floor = bench.server([self.run.program("bench_floor"), "0", str(total // len(pages)),
                              str(len(pages))])
        ratios, speeds = [], []
        for _ in range(self.run.ROUNDS):
            ours, theirs = self.speed(many, pages), self.speed(floor, pages)
            speeds.append(ours)
            ratios.append(theirs / ours)
        floor.stop()
        ratio = statistics.median(ratios)
        text = (f"{ratio:.2f} x ({statistics.median(speeds) / 1e9:.2f} GB a CPU second, {len(pages)} "
                f"pages, {total / 1e6:.1f} MB)")
        return self.run.Figure(text, ratio <= 2)

    def speed(self, server, pages):
        """Bytes that it sends for a second of its CPU time, while its pages are read in turn."""
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        before, read = self.cpu_seconds(server.pid), 0
        with contextlib.closing(link):
            while self.cpu_seconds(server.pid) - before < 0.3:
                for body, fields, _ in pages:
                    link.request("POST", "/mcp", body.encode(), fields)
                    read += len(link.getresponse().read())
        return read / (self.cpu_seconds(server.pid) - before)

    def refreshed(self, bench):
        """The slowest hundredth of calls to other servers while one announces 20 changes a second."""
        fleet, many = self.many(bench)
        target = self.target(many, self.run.MODERN, "s0000.tool_050")
        options = ("-s", "s0000", "-S", "900")
        quiet, busy = [], []
        for _ in range(max(self.run.ROUNDS, 5)):
            quiet.append(self.load(many, target, *options, connections=8))
            self.control(fleet, f"/every/{SERVERS - 1}/50")
            busy.append(self.load(many, target, *options, connections=8))
            self.control(fleet, f"/every/{SERVERS - 1}/0")
            time.sleep(0.2)

        def of(taken, name):
            return statistics.median(one[name] for one in taken)

        ratio = of(busy, "p99_us") / of(quiet, "p99_us")
        text = (f"{ratio:.2f} x ({of(busy, 'p99_us'):.0f} / {of(quiet, 'p99_us'):.0f} us; half of them "
                f"{of(busy, 'p50_us'):.0f} / {of(quiet, 'p50_us'):.0f})")
        return self.run.Figure(text, ratio <= 1.2)

    def control(self, fleet, path):
        link = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=10)
        with contextlib.closing(link):
            link.request("POST", path, b"")
            link.getresponse().read()

    # ---- many clients that do little

    def crowd(self, *arguments):
        command = self.run.pinned(self.run.LOAD_CORE, [self.run.program("chaos_crowd"), *arguments])
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, preexec_fn=lambda: resource.setrlimit(
                                    resource.RLIMIT_NOFILE, (hard, hard)))

    def say(self, crowd, words):
        crowd.stdin.write(words)
        crowd.stdin.flush()

    def told(self, crowd, word):
        """The numbers that the crowd says next."""
        line = crowd.stdout.readline()
        if not line.startswith(word):
            crowd.kill()
            raise self.run.Failed("the crowd: " + (line + crowd.stderr.read()).strip()[-200:])
        return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", line)}

    def idle(self, bench):
        fleet = self.fleet(bench)
        gateway = self.gateway(
            bench, "idle", {"one": {"url": f"http://127.0.0.1:{fleet.port}/modern/0"}},
            limits={"connections": 20000, "sessions": 20000})
        self.load(gateway, self.target(gateway, self.run.LEGACY, "one.tool_000"), seconds=0.5)
        figures = {}
        with self.crowd("idle", str(LISTENERS), str(LISTENERS), str(gateway.port)) as crowd:
            for era in ("listener", "session"):
                resident = gateway.resident()
                self.say(crowd, "" if era == "listener" else "\n")
                self.told(crowd, "open=")
                time.sleep(0.3)
                figures[era] = (gateway.resident() - resident) / LISTENERS
            self.say(crowd, f"{fleet.port} /change/0\n")
            heard = self.told(crowd, "heard=")
            crowd.stdin.close()
        text = (", ".join(f"{each:.0f} B a {era}" for era, each in figures.items())
                + f"; {heard['heard']:.0f} heard of a change in {heard['last_ms']:.0f} ms")
        is_good = heard["heard"] == 2 * LISTENERS and heard["last_ms"] < 1000
        return self.run.Figure(text, is_good and max(figures.values()) < 6000)

    def parked(self, bench):
        fleet = self.fleet(bench)
        gateway = self.gateway(
            bench, "parked",
            {"old": {"url": f"http://127.0.0.1:{fleet.port}/legacy/0", "protocol": "legacy"}},
            limits={"originConnections": 2 * PARKED, "parkedCalls": 2 * PARKED})
        self.load(gateway, self.target(gateway, self.run.MODERN, "old.tool_000"), seconds=0.5)
        with self.crowd("park", str(PARKED), str(gateway.port), "old.ask") as crowd:
            resident = gateway.resident()
            parked = self.told(crowd, "parked=")
            each = (gateway.resident() - resident) / PARKED
            self.say(crowd, "\n")
            answered = self.told(crowd, "answered=")
        text = (f"{each:.0f} B ({parked['parked']:.0f} parked in {parked['seconds']:.1f} s, "
                f"{answered['answered']:.0f} answered once in {answered['seconds']:.1f} s, "
                f"{answered['wrong']:.0f} wrongly)")
        is_good = answered["answered"] == PARKED and answered["wrong"] == 0
        return self.run.Figure(text, is_good and each < 8000)


def add_rows(run):
    """The rows, for bench/run."""
    eras = Eras(run)
    for carrier in ("HTTP", "stdio"):
        run.row(f"eras: call translated / not, {carrier}", "1.25 x")(
            lambda bench, carrier=carrier: eras.translation(bench, carrier))
    run.row("eras: call, 1,000 servers of 100 / one", "1.15 x, 1.30 x")(eras.routed)
    run.row("eras: 100,000 tools listed / bytes sent", "2.00 x")(eras.listing)
    run.row("eras: p99 while one server changes", "1.20 x")(eras.refreshed)
    run.row("eras: idle listener, of 8,000 + 8,000", "6,000 B, 1 s")(eras.idle)
    run.row("eras: parked call, of 10,000", "8,000 B")(eras.parked)
