#!/usr/bin/env python3
"""Peers that mean harm, by hand: ./dev bench floods measures a server beside them, and

    bench/floods.py FLOOD PORT PATH FIELDS BODY SECONDS

plays one of them alone. FIELDS is a JSON object of header fields, BODY the request's. A flood is a
class: `opening` is what a connection says first, `next` what it says every TICK after that (b'':
nothing). Connections that the server ends are opened anew after REOPEN seconds. FLOODS lists them; a
new one is a class and a line there."""
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

TICK, REOPEN, SETTLE = 0.25, 1.0, 8.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
END_STREAM, END_HEADERS, PADDED = 1, 4, 8


# ---- frames -------------------------------------------------------------------------------------

def frame(kind, flags, stream, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
            + payload)


def hpack_text(text):
    data = text.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, more = len(data) - 127, b""
    while rest >= 128:
        more += bytes([rest % 128 + 128])
        rest //= 128
    return b"\x7f" + more + bytes([rest]) + data


def hpack(fields):
    """Literals without indexing: nothing has to be remembered."""
    return b"".join(b"\0" + hpack_text(name.lower()) + hpack_text(value) for name, value in fields)


def post(request, stream):
    fields = [(":method", "POST"), (":scheme", "http"), (":path", request.path),
              (":authority", f"127.0.0.1:{request.port}")] + list(request.fields.items())
    return (frame(HEADERS, END_HEADERS, stream, hpack(fields))
            + frame(DATA, END_STREAM, stream, request.body))


# ---- floods -------------------------------------------------------------------------------------

class Request:
    def __init__(self, port, path, fields, body):
        self.port, self.path, self.fields, self.body = port, path, fields, body.encode()


class Flood:
    connections = 30
    must_end = False  # whether each breaks a bound of the server while the flood lasts

    def opening(self, request):
        raise NotImplementedError

    def next(self, _tick):
        return b""


class ShutWindow(Flood):
    """90 requests whose replies may not send an octet."""
    streams = 90

    def opening(self, request):
        settings = b"\0\4" + (0).to_bytes(4, "big")
        return (PREFACE + frame(SETTINGS, 0, 0, settings)
                + b"".join(post(request, 2 * i + 1) for i in range(self.streams)))


class OctetOfWindow(ShutWindow):
    """The same, and now and then an octet of window for each: no silence."""

    def next(self, tick):
        return b"".join(frame(WINDOW_UPDATE, 0, 2 * i + 1, (1).to_bytes(4, "big"))
                        for i in range(self.streams)) if tick % 4 == 0 else b""


class Unread(Flood):
    """Large replies over HTTP/1.1 that nobody reads."""
    connections = 40

    def opening(self, request):
        head = "".join(f"{name}: {value}\r\n" for name, value in request.fields.items())
        return (f"POST {request.path} HTTP/1.1\r\nHost: 127.0.0.1:{request.port}\r\n{head}"
                f"Content-Length: {len(request.body)}\r\n\r\n").encode() + request.body


class OctetChunks(Flood):
    """Bodies over HTTP/1.1 of which one byte in six is data."""
    must_end = True

    def opening(self, request):
        return (f"POST {request.path} HTTP/1.1\r\nHost: 127.0.0.1:{request.port}\r\n"
                "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").encode()

    def next(self, _tick):
        return b"1\r\na\r\n" * 20000


class UnknownFrames(Flood):
    """Frames of a type that nobody knows."""
    must_end = True

    def opening(self, request):
        return PREFACE + frame(SETTINGS, 0, 0)

    def next(self, _tick):
        return frame(0xfa, 0, 0) * 10000


class Padding(UnknownFrames):
    """DATA that is only padding, for one stream."""

    def opening(self, request):
        head = post(request, 1)[:-len(request.body) - 9]  # without its DATA
        return super().opening(request) + head

    def next(self, _tick):
        return frame(DATA, PADDED, 1, b"\xff" + bytes(255)) * 1000


class Silent(Flood):
    """Connections that say nothing; half of them as far as HTTP/2 can without a request."""
    connections, must_end = 1000, True

    def __init__(self):
        self.count = 0

    def opening(self, request):
        self.count += 1
        return PREFACE + frame(SETTINGS, 0, 0) if self.count % 2 else b""


FLOODS = {"shut-window": ShutWindow, "octet-of-window": OctetOfWindow, "unread": Unread,
          "octet-chunks": OctetChunks, "unknown-frames": UnknownFrames, "padding": Padding,
          "silent": Silent}


class Attacker:
    """One connection of a flood, again and again. It never reads."""

    def __init__(self, flood, request):
        self.flood, self.request = flood, request
        self.link, self.again_at, self.tick, self.ended = None, 0, 0, 0

    def say(self, data):
        try:
            self.link.sendall(data)
        except OSError as error:
            self.link.close()
            self.link, self.again_at = None, time.monotonic() + REOPEN
            self.ended += not isinstance(error, TimeoutError)  # then it took no more, but is there

    def turn(self):
        if self.link is None and time.monotonic() >= self.again_at:
            try:
                self.link = socket.create_connection(("127.0.0.1", self.request.port), 2)
            except OSError:
                self.again_at = time.monotonic() + REOPEN
                return
            self.tick = 0
            self.say(self.flood.opening(self.request))
        elif self.link is not None:
            self.tick += 1
            if self.is_reset():
                self.say(b"x")
            else:
                self.say(self.flood.next(self.tick))

    def is_reset(self):
        """Without reading: whether the kernel's state of the connection is no more ESTABLISHED."""
        return self.link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1


def play(name, request, seconds):
    """Returns how many connections were ended, and how many of those at one time never were."""
    flood = FLOODS[name]()
    attackers = [Attacker(flood, request) for _ in range(flood.connections)]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in attackers:
            one.turn()
        time.sleep(TICK)
    return sum(one.ended for one in attackers), sum(one.ended == 0 for one in attackers)


# ---- measuring ----------------------------------------------------------------------------------

class Watch:
    """The most memory and descriptors that a process had while this was open."""

    def __init__(self, pid):
        self.pid, self.resident, self.descriptors, self.is_over = pid, 0, 0, False
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.busy_ns = self.busy()
        self.thread.start()

    def busy(self):
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/schedstat", encoding="ascii") as times:
                total += int(times.read().split()[0])
        return total

    def now(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            resident = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) * 1024
        return resident, len(os.listdir(f"/proc/{self.pid}/fd"))

    def look(self):
        while not self.is_over:
            resident, descriptors = self.now()
            self.resident = max(self.resident, resident)
            self.descriptors = max(self.descriptors, descriptors)
            time.sleep(0.01)

    def stop(self):
        self.is_over = True
        self.thread.join()
        self.busy_ns = self.busy() - self.busy_ns


def healthy(load):
    """p50 and p99, in us, of the load generator's run."""
    done = subprocess.run(load, capture_output=True, text=True, check=False)
    found = re.search(r"p50_us=(\d+) p99_us=(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise ValueError(f"the healthy clients failed: {done.stdout.strip()} {done.stderr.strip()}")
    return int(found.group(1)), int(found.group(2))


def measure(name, pid, request, load, seconds, prefix=()):
    """A flood on the process, with the load's clients before and beside it. `prefix`: how to run
    the flood (pinned to a processor)."""
    before = healthy(load)
    at_rest, descriptors = Watch.now(type("At", (), {"pid": pid}))
    watch = Watch(pid)
    flood = subprocess.Popen(list(prefix) + [
        sys.executable, os.path.realpath(__file__), name, str(request.port), request.path,
        json.dumps(request.fields), request.body.decode(), str(seconds)], stdout=subprocess.PIPE,
        text=True)
    time.sleep(0.2)
    try:
        beside = healthy(load)
    finally:
        counts = flood.communicate()[0].split()
        watch.stop()
    if flood.returncode != 0:
        raise ValueError(f"the flood {name} failed")
    time.sleep(SETTLE)
    after, descriptors_after = Watch.now(type("At", (), {"pid": pid}))
    return {"before": before, "beside": beside, "rest": at_rest, "during": watch.resident,
            "after": after, "ended": int(counts[0]), "never": int(counts[1]),
            "cpu_s": watch.busy_ns / 1e9,
            "descriptors": (descriptors, watch.descriptors, descriptors_after)}


def told(found):
    mib = 1 << 20
    fds = "/".join(str(one) for one in found["descriptors"])
    return (f"RSS {found['rest'] / mib:.0f} / {found['during'] / mib:.0f} / "
            f"{found['after'] / mib:.0f} MiB before / during / after; p50 {found['before'][0]} -> "
            f"{found['beside'][0]} us, p99 {found['before'][1]} -> {found['beside'][1]} us; "
            f"{found['cpu_s']:.1f} s of CPU; {fds} descriptors; {found['ended']} ended, "
            f"{found['never']} never")


def main():
    if len(sys.argv) != 7 or sys.argv[1] not in FLOODS:
        sys.exit(f"{__doc__}\n\nfloods: {' '.join(FLOODS)}")
    name, port, path, fields, body, seconds = sys.argv[1:]
    print(*play(name, Request(int(port), path, json.loads(fields), body), float(seconds)))


if __name__ == "__main__":
    main()
