"""The servers and clients of the matrix, and the processes behind them."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import tables
from tables import LEGACY

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from ports import free_port  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("BAY_BUILD", "build/release"))
SECONDS = 150
AT = tempfile.TemporaryDirectory(prefix="patchbay-eras-")
os.environ["ERAS_MARKS"] = AT.name  # of fixture.c, in all its processes
PATCHBAY, FIXTURE, PLAYER, CONFORMANCE = (
    os.path.join(BUILD, name) for name in ("patchbay", "eras_fixture", "eras_player", "conformance_server"))


class Failed(Exception):
    pass


def file_of(name, text):
    path = os.path.join(AT.name, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


# ---- processes ----------------------------------------------------------------------------------

class Process:
    """A process that listens: it says where on stderr, or was told the port."""

    def __init__(self, name, command, port=None, env=None):
        self.name, self.log, self.port = name, os.path.join(AT.name, f"{name}.log"), port
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(env or {})})
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.listens(port):
                return
            time.sleep(0.02)
        self.stop()
        raise Failed(f"{name} does not listen: {self.text()[-500:]}")

    def listens(self, port):
        if port is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", self.text())
            self.port = found and found.group(1)
            return found is not None
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        """What is wrong with its end; None: nothing."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"{self.name} did not end"
        return None if status == 0 else f"{self.name} ended with status {status}: {self.text()[-1500:]}"


# ---- servers ------------------------------------------------------------------------------------

class Server:
    """One server behind the gateway, in one revision, on one transport."""
    kind, family, plan, is_ours = "", "", (), True

    def __init__(self, revision, transport):
        self.revision, self.transport = revision, transport
        self.name = f"{self.kind}-{revision}-{transport}"
        self.lock = threading.Lock()  # whoever plays has it to himself
        self.process = None

    def start(self):
        if self.transport != "stdio":
            self.process = self.listen()

    def path(self):
        return "/sse" if self.transport == "sse" else "/mcp"

    def target(self):
        """How it is reached without the gateway: a URL, or a command's words."""
        if self.transport == "stdio":
            return self.command()
        return [f"http://127.0.0.1:{self.process.port}{self.path()}"]

    def entry(self):
        """How the gateway's configuration says it."""
        target = self.target()
        if self.transport == "stdio":
            entry = {"command": target[0], "args": target[1:]}
        else:
            entry = {"url": target[0], **({"type": "sse"} if self.transport == "sse" else {})}
        is_open = self.is_ours
        return {**entry, **({} if is_open else {"protocol": self.revision})}

    def stop(self):
        if self.process is None:
            return None
        end = self.process.stop()
        return end if self.is_ours else None  # how others end is their affair


class Fixture(Server):
    """Ours: fixture.c."""
    kind = family = "fixture"
    plan = tables.FIXTURE

    def command(self):
        return [FIXTURE, self.revision]

    def listen(self):
        return Process(self.name, [*self.command(), "--http", "127.0.0.1:0"])


class Shared(Fixture):
    """The same, all of whose clients share one process, whatever they can be asked."""
    kind = "shared"

    def entry(self):
        return {**super().entry(), "share": "always"}


class Conformance(Server):
    """Ours: tests/conformance/server.c, which the clients of other SDKs know."""
    kind = "conformance"

    def command(self):
        return [CONFORMANCE, "--revision", self.revision]

    def listen(self):
        return Process(self.name, [*self.command(), "--http", "127.0.0.1:0"])


class Everything(Server):
    """server-everything, from the packages of tests/interop; revisions up to 2025-11-25."""
    kind = family = "everything"
    plan, is_ours = tables.EVERYTHING, False
    packages = None

    def command(self, entry="stdio"):
        modules = os.path.join(self.packages, "node_modules")
        return [os.path.join(modules, ".bin", "node"), "--import", os.path.join(HERE, "loopback.mjs"),
                os.path.join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js"), entry]

    def listen(self):
        port = free_port()
        entry = {"http": "streamableHttp", "sse": "sse"}[self.transport]
        return Process(self.name, self.command(entry), port, {"PORT": str(port)})


class Peer(Server):
    """A server of tests/interop/sdks."""
    family, plan, is_ours = "peer", tables.PEER, False

    def __init__(self, kind, command, revision, transport):
        self.kind, self.words = kind, command
        super().__init__(revision, transport)

    def command(self):
        return [*self.words, "server"]

    def listen(self):
        port = free_port()
        return Process(self.name, [*self.command(), str(port)], port)


# ---- the gateway --------------------------------------------------------------------------------

# Pages of its own size; and no list before all servers are there, however slowly they start.
SETTINGS = {"limits": {"pageSize": 7}, "timeouts": {"settle": "60s"}}


class Gateway:
    def __init__(self, servers):
        config = {"listen": "127.0.0.1:0", "workers": 2, **SETTINGS,
                  "mcpServers": {one.name: one.entry() for one in servers}}
        self.process = Process("gateway", [PATCHBAY, "serve", "-c", file_of("gateway.json", json.dumps(config))])

    def url(self, server, transport):
        return f"http://127.0.0.1:{self.process.port}/mcp/{server.name}" + ("/sse" if transport == "sse" else "")

    @staticmethod
    def command(server, has_bare_names):
        """A gateway of its own, on stdin and stdout."""
        config = {"mcpServers": {server.name: server.entry()}, "bareNames": has_bare_names, **SETTINGS}
        return [PATCHBAY, "stdio", "-c", file_of(f"stdio-{server.name}-{has_bare_names}.json", json.dumps(config))]


# ---- clients ------------------------------------------------------------------------------------

def run_client(command):
    """Its lines, and how it ended when that was not by itself."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
        out, err, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        out, err, status = error.stdout or b"", error.stderr or b"", "late"
    lines = out.decode(errors="replace").split("\n")
    return lines, None if status in (0, 1) else f"status {status}: {err.decode(errors='replace')[-1500:]}"


class Client:
    wants_bare_names = False

    def __init__(self, kind, revision, transport):
        self.kind, self.revision, self.transport = kind, revision, transport
        self.name = f"{kind}-{revision}-{transport}"

    def through(self, gateway, server):
        """What came of each step or case; and what is wrong with the client's end."""
        if self.transport == "stdio":
            return self.play(server, gateway.command(server, self.wants_bare_names), f"{server.name}.")
        return self.play(server, [gateway.url(server, self.transport)])


class Ours(Client):
    """player.c."""
    count, lock = 0, threading.Lock()

    def __init__(self, revision, transport):
        super().__init__("ours", revision, transport)

    def plan(self, server):
        with Ours.lock:
            Ours.count += 1
            mark = f"mark-{Ours.count}"
        lines = ("\t".join(one[1:]).replace("{mark}", mark) + "\n" for one in server.plan
                 if tables.is_played(self, one[1]) and tables.left_out(self, server, one[1]) is None)
        return file_of(f"{mark}.plan", "".join(lines))

    def play(self, server, target, prefix=""):
        lines, end = run_client([PLAYER, self.revision, self.transport, prefix, self.plan(server), *target])
        return dict(line.split("\t", 1) for line in lines if "\t" in line), end


class Foreign(Client):
    """A client of tests/interop/sdks, which judges by itself."""
    wants_bare_names = True  # it calls tools by the names that it knows

    def __init__(self, kind, command, revision, transport):
        super().__init__(kind, revision, transport)
        self.command = command

    def play(self, _server, target, _prefix=""):
        lines, end = run_client([*self.command, "client", self.revision, *target])
        found = (re.match(r"(ok|not ok|skip) ([\w-]+)(?:: (.*))?$", line) for line in lines)
        return {one.group(2): (one.group(1), one.group(3) or "") for one in found if one}, end


def carried(revisions, transports):
    """Each of the revisions on each of the transports that carries it."""
    return [(revision, transport) for transport in transports for revision in revisions
            if transport != "sse" or revision == LEGACY[0]]


