"""One peer on the Python SDK for A2A: as a client and as a server of what tests/interop/a2a/run says.

    peer.py client VERSION direct|gateway URL BINDING CASE…     VERSION: 1.0, 0.3
    peer.py server PORT GRPC-PORT
"""
import asyncio
import logging
import sys


def main():
    role, *words = sys.argv[1:]
    logging.disable(logging.CRITICAL)
    if role == "client":
        from peer_client import run
    else:
        from peer_server import run
    sys.exit(asyncio.run(run(*words)))


main()
