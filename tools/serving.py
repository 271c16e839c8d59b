"""Servers that a suite starts: each is told its port of 127.0.0.1."""

import os
import socket
import subprocess
import tempfile
import time


class Failed(Exception):
    """What is here did not do what it should."""


class Process:
    """A server that listens on `port`. One of ours has to end well when it is told to, and not before."""

    def __init__(self, command, port, is_ours=False, name=None):
        self.name, self.is_ours = name or os.path.basename(command[0]), is_ours
        self.log = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.end()
        raise Failed(f"{self.name} does not listen: {self.said()}")

    def said(self):
        self.log.seek(0)
        return self.log.read().strip()[-2000:]

    def end(self):
        """None, or how it ended badly."""
        early = self.process.poll()
        self.process.terminate()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        if early is not None:
            return f"it ended by itself with {early}: {self.said()}"
        return f"it ended with {status}: {self.said()}" if self.is_ours and status != 0 else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        how = self.end()
        if how is not None:
            raise Failed(f"{self.name}: {how}")
