"""A server on FastMCP with one tool that greets: on stdin and stdout, or, given a port, on stateless
HTTP that answers in JSON."""
import sys

from fastmcp import FastMCP

server = FastMCP("hello", version="1.0.0")


@server.tool(output_schema=None)
async def hello(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}"


if len(sys.argv) < 2:
    server.run(show_banner=False, log_level="WARNING")
else:
    server.run("http", show_banner=False, port=int(sys.argv[1]), json_response=True, stateless_http=True,
               log_level="WARNING")
