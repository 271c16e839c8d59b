"""Cases of a client on the Python SDK."""
import base64
import warnings

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

MODERN = "2026-07-28"
SECONDS = 20
PNG = b"\x89PNG"
warnings.simplefilter("ignore")  # logging, sampling and roots are deprecated, and still there


class Skip(Exception):
    pass


def expect(claim, found):
    if not claim:
        raise AssertionError(f"answered {found}")


def filled(schema):
    """An answer to a form: every property a value of its type."""
    values = {"boolean": True, "integer": 42, "number": 42, "string": "Ada"}
    answer = {}
    for name, one in schema.get("properties", {}).items():
        if one.get("type") in values:
            answer[name] = one["enum"][0] if "enum" in one else values[one["type"]]
    return answer


class Peer:
    """A connection, what the server sent of its own accord, and which handler was asked."""

    def __init__(self, revision, target):
        self.revision = revision
        self.asked, self.logged, self.arrived = [], [], []
        self.news = anyio.Event()
        self.tools = {}
        if target[0].startswith("http://"):
            server = target[0]
        else:
            server = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
        self.client = Client(
            server, mode="auto" if revision == MODERN else "legacy", log_level="debug",
            client_info=types.Implementation(name="python-peer", version="1.0.0"),
            sampling_callback=self.sample, elicitation_callback=self.elicit,
            list_roots_callback=self.roots, logging_callback=self.log, message_handler=self.message)

    async def sample(self, _context, _params):
        self.asked.append("sampling")
        return types.CreateMessageResult(role="assistant", model="none", stop_reason="endTurn",
                                         content=types.TextContent(type="text", text="sampled words"))

    async def elicit(self, _context, params):
        self.asked.append("elicitation")
        schema = params.requested_schema
        return types.ElicitResult(action="accept", content=filled(
            schema if isinstance(schema, dict) else schema.model_dump(by_alias=True)))

    async def roots(self, _context):
        self.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri="file:///interop", name="interop")])

    async def log(self, params):
        self.logged.append(params.data)
        self.wake()

    async def message(self, message):
        self.arrived.append(message)
        self.wake()

    def wake(self):
        self.news.set()
        self.news = anyio.Event()

    async def until(self, what, check):
        with anyio.move_on_after(10):
            while not check():
                await self.news.wait()
            return
        raise AssertionError(f"it did not come: {what}")

    def has_arrived(self, kind):
        return any(isinstance(one, kind) for one in self.arrived)

    async def call(self, name, arguments=None, **options):
        if name not in self.tools:
            raise Skip("the server has no tool " + name)
        return await self.client.call_tool(name, arguments or {}, **options)

    async def asks(self, what, holds, *names):
        there = [name for name in names if name in self.tools]
        if not there:
            raise Skip("the server has none of " + ", ".join(names))
        for name in there:
            self.asked.clear()
            result = await self.call(name, {"message": "Who?", "prompt": "Say something"})
            expect(not result.is_error and self.asked == [what] and holds in result.content[0].text,
                   f"{name}: {result}, asked {self.asked}")


async def all_pages(method, key):
    found, cursor = [], None
    while True:
        page = await method(cursor=cursor)
        found += getattr(page, key)
        cursor = page.next_cursor
        if cursor is None:
            return found


# ---- the cases ----------------------------------------------------------------------------------

async def case_revision(peer):
    expect(peer.client.protocol_version == peer.revision, peer.client.protocol_version)


async def case_tools_list(peer):
    peer.tools = {tool.name: tool for tool in await all_pages(peer.client.list_tools, "tools")}
    expect("test_simple_text" in peer.tools, list(peer.tools))


async def case_content_text(peer):
    result = await peer.call("test_simple_text")
    expect(not result.is_error and len(result.content) == 1 and result.content[0].text, result)


async def case_content_image(peer):
    image = (await peer.call("test_image_content")).content[0]
    expect(image.mime_type == "image/png" and base64.b64decode(image.data).startswith(PNG), image)


async def case_content_audio(peer):
    audio = (await peer.call("test_audio_content")).content[0]
    expect(isinstance(audio, types.AudioContent) and audio.mime_type == "audio/wav", audio)


async def case_content_embedded(peer):
    one = (await peer.call("test_embedded_resource")).content[0]
    expect(isinstance(one, types.EmbeddedResource) and one.resource.text, one)


async def case_content_mixed(peer):
    result = await peer.call("test_multiple_content_types")
    expect([one.type for one in result.content] == ["text", "image", "resource"], result)


async def case_structured(peer):
    result = await peer.call("test_every_content")
    expect("count" in (result.structured_content or {}), result)


async def case_tool_error(peer):
    result = await peer.call("test_error_handling")
    expect(result.is_error and result.content[0].text, result)


async def case_unknown_tool(peer):
    try:
        result = await peer.client.call_tool("no_such_tool", {})
    except MCPError:
        return
    raise AssertionError(f"answered {result}")


async def case_header_argument(peer):
    result = await peer.call("test_x_mcp_header", {"region": "eu-west-é"})
    expect("eu-west-é" in result.content[0].text, result)


async def case_progress(peer):
    seen = []

    async def progress(value, total, _message):
        seen.append((value, total))
        peer.wake()

    await peer.call("test_tool_with_progress", progress_callback=progress)
    await peer.until("progress", lambda: len(seen) == 3)
    expect(seen == [(0, 100), (50, 100), (100, 100)], seen)


async def case_logging(peer):
    if "test_tool_with_logging" not in peer.tools:
        raise Skip("the server has no such tool")
    if peer.revision != MODERN:
        await peer.client.set_logging_level("debug")
    peer.logged.clear()
    await peer.call("test_tool_with_logging")
    await peer.until("three log messages", lambda: len(peer.logged) >= 3)


async def case_cancel(peer):
    if "test_tool_with_progress" not in peer.tools:
        raise Skip("the server has no such tool")
    ended = []
    async with anyio.create_task_group() as group:
        async def progress(*_):
            group.cancel_scope.cancel()

        async def work():
            await peer.call("test_tool_with_progress", progress_callback=progress)
            ended.append(True)

        group.start_soon(work)
    expect(not ended, "it was not cancelled")
    await peer.call("test_simple_text")


async def case_resources_list(peer):
    found = [one.uri for one in await all_pages(peer.client.list_resources, "resources")]
    found += [one.uri_template for one in
              await all_pages(peer.client.list_resource_templates, "resource_templates")]
    expect({"test://static-text", "test://template/{id}/data"} <= set(map(str, found)), found)


async def case_resource_text(peer):
    one = (await peer.client.read_resource("test://static-text")).contents[0]
    expect(one.mime_type == "text/plain" and one.text, one)


async def case_resource_blob(peer):
    one = (await peer.client.read_resource("test://static-binary")).contents[0]
    expect(base64.b64decode(one.blob).startswith(PNG), one)


async def case_resource_template(peer):
    one = (await peer.client.read_resource("test://template/a%20b/data")).contents[0]
    expect('"a b"' in one.text, one)


async def case_resource_missing(peer):
    try:
        result = await peer.client.read_resource("test://nothing")
    except MCPError:
        return
    raise AssertionError(f"answered {result}")


async def case_subscribe(peer):
    uri = "test://watched-resource"
    if peer.revision == MODERN:
        async with peer.client.listen(resource_subscriptions=[uri]) as subscription:
            await peer.call("test_trigger_resource_change")
            async for event in subscription:
                expect(event.uri == uri, event)
                break
        return
    await peer.client.subscribe_resource(uri)
    await peer.call("test_trigger_resource_change")
    await peer.until("an update", lambda: peer.has_arrived(types.ResourceUpdatedNotification))
    await peer.client.unsubscribe_resource(uri)


async def case_list_changed(peer):
    kinds = {"tool": types.ToolListChangedNotification, "prompt": types.PromptListChangedNotification,
             "resource": types.ResourceListChangedNotification}
    for name, kind in kinds.items():
        if peer.revision == MODERN:
            async with peer.client.listen(**{name + "s_list_changed": True}) as subscription:
                await peer.call(f"test_trigger_{name}_change")
                async for event in subscription:
                    expect(type(event).__name__ == name.capitalize() + "sListChanged", event)
                    break
        else:
            peer.arrived.clear()
            await peer.call(f"test_trigger_{name}_change")
            await peer.until(name, lambda: peer.has_arrived(kind))


async def case_prompts_list(peer):
    found = [one.name for one in await all_pages(peer.client.list_prompts, "prompts")]
    expect("test_prompt_with_arguments" in found, found)


async def case_prompt_arguments(peer):
    result = await peer.client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": '"two"'})
    text = result.messages[0].content.text
    expect("one" in text and '"two"' in text, text)


async def case_prompt_content(peer):
    embedded = await peer.client.get_prompt("test_prompt_with_embedded_resource", {"resourceUri": "test://given"})
    image = await peer.client.get_prompt("test_prompt_with_image")
    expect(str(embedded.messages[0].content.resource.uri) == "test://given", embedded)
    expect(image.messages[0].content.type == "image", image)


async def case_completion(peer):
    reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
    result = await peer.client.complete(reference, {"name": "arg1", "value": "par"})
    expect("paris" in result.completion.values, result)


async def case_elicitation(peer):
    await peer.asks("elicitation", "", "test_elicitation", "test_elicitation_sep1034_defaults",
                    "test_input_required_result_elicitation")


async def case_sampling(peer):
    await peer.asks("sampling", "sampled words", "test_sampling", "test_input_required_result_sampling")


async def case_roots(peer):
    await peer.asks("roots", "", "test_roots", "test_list_roots", "test_input_required_result_list_roots")


async def case_ping(peer):
    if peer.revision == MODERN:
        raise Skip("the revision has no ping")
    await peer.client.send_ping()


CASES = [one for name, one in list(globals().items()) if name.startswith("case_")]


async def run_cases(peer):
    failed = 0
    for case in CASES:
        name = case.__name__[len("case_"):].replace("_", "-")
        try:
            with anyio.fail_after(SECONDS):
                await case(peer)
            print("ok", name, flush=True)
        except Skip as why:
            print(f"skip {name}: {why}", flush=True)
        except Exception as error:  # whatever it is, the next case is tried
            failed += 1
            print(f"not ok {name}: {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
    return min(failed, 1)


async def run(revision, target):
    peer = Peer(revision, target)
    async with peer.client:
        status = await run_cases(peer)
    print("ok close", flush=True)
    return status


def main(revision, target):
    return anyio.run(run, revision, target)
