"""The Python SDK against ours, in both roles. The cases and what they print are described in ../run.

    peer.py client REVISION URL
    peer.py client REVISION COMMAND…
    peer.py server [PORT]"""
import sys

import peer_client
import peer_server

if len(sys.argv) > 3 and sys.argv[1] == "client":
    sys.exit(peer_client.main(sys.argv[2], sys.argv[3:]))
if len(sys.argv) in (2, 3) and sys.argv[1] == "server":
    peer_server.main(*sys.argv[2:])
else:
    sys.exit("usage: peer.py client REVISION URL|COMMAND… | peer.py server [PORT]")
