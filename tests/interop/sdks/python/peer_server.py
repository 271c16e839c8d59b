"""A server on the Python SDK."""
import warnings
from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import Context, Elicit, Image, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

warnings.simplefilter("ignore")  # logging, sampling and roots are deprecated, and still there
PIXEL = b"\x89PNG\r\n\x1a\nnot really"
server = MCPServer("python-peer", version="1.0.0", log_level="CRITICAL")


class Sum(BaseModel):
    sum: int


class Name(BaseModel):
    name: str


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
async def sum(left: int, right: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=left + right)


@server.tool(structured_output=False)
async def fail() -> str:
    """Always fails."""
    raise ToolError("it cannot be done")


@server.tool(structured_output=False)
async def image() -> Image:
    """Answers with an image."""
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False)
async def progress(ctx: Context) -> str:
    """Reports its progress, and logs."""
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3, f"step {step}")
    await ctx.info("three steps done")
    return "done"


@server.tool(structured_output=False)
async def touch(ctx: Context) -> str:
    """Says that the note was updated."""
    await ctx.notify_resource_updated("peer://note")
    return "touched"


# Tools that ask the client: written once, the SDK carries the questions as the revision wants it.

async def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


async def ask_words() -> Sample:
    return Sample([types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say something"))],
                  max_tokens=10)


async def ask_roots() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=False)
async def elicit(answer: Annotated[Name, Resolve(ask_name)]) -> str:
    """Asks the client."""
    return "accept " + answer.name


@server.tool(structured_output=False)
async def sample(answer: Annotated[types.CreateMessageResult, Resolve(ask_words)]) -> str:
    """Asks the client."""
    return answer.content.text


@server.tool(structured_output=False)
async def roots(answer: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    """Asks the client."""
    return " ".join(str(one.uri) for one in answer.roots)


@server.resource("peer://note", name="note", mime_type="text/plain")
async def note() -> str:
    return "a note, naïve ☃"


@server.resource("peer://pixel", name="pixel", mime_type="image/png")
async def pixel() -> bytes:
    return PIXEL


@server.resource("peer://item/{id}", name="item", mime_type="text/plain")
async def item(id: str) -> str:
    return "item " + id


@server.prompt()
async def greet(name: str) -> str:
    return "Greet " + name


@server.completion()
async def complete(_ref, argument, _context):
    return types.Completion(values=[one for one in ("Ada", "Alan", "Grace") if one.startswith(argument.value)])


def main(port=None):
    if port is None:
        server.run()
    else:
        server.run("streamable-http", port=int(port))
