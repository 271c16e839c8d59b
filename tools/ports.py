"""Ports for servers that are told where to listen, and may be started again at the same place."""

import random
import socket


def first_ephemeral():
    """Where the ports begin that the kernel gives to who connects, or asks for any."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as said:
            return int(said.read().split()[0])
    except OSError:
        return 32768


def free_port():
    """A port of 127.0.0.1 that nobody has, and that nobody is given while its server is away."""
    end = first_ephemeral()
    for _ in range(1000):
        port = random.SystemRandom().randrange(min(10000, end - 1), end)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise SystemExit("no port of 127.0.0.1 below those of the kernel's own choice is free")
