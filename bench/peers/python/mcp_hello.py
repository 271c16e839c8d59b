"""A server on the Python SDK with one tool that greets: on stdin and stdout, or, given a port, on
stateless HTTP that answers in JSON."""
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("hello", version="1.0.0", log_level="WARNING")


@server.tool(structured_output=False)
async def hello(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}"


if len(sys.argv) < 2:
    server.run()
else:
    server.run("streamable-http", port=int(sys.argv[1]), json_response=True, stateless_http=True)
