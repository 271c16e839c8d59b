"""The cases of tests/interop/a2a/run by the Python SDK as a client, speaking 1.0 or, by its compatibility
layer, 0.3."""
import asyncio
import json
import uuid

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (AuthenticationInfo, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
                               GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
                               ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Part, Role,
                               SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
                               TaskPushNotificationConfig, TaskState)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

RESULT = "the result, naïve ☃"
TOKEN = "interop-token"
SECONDS = 30
ENDED = (TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED,
         TaskState.TASK_STATE_REJECTED)


def expect(claim, found):
    if not claim:
        raise AssertionError(str(found)[:300])


def text_of(parts):
    return "".join(part.text for part in parts)


def is_complete(task):
    expect(task.status.state == TaskState.TASK_STATE_COMPLETED, task)
    expect(text_of(task.status.message.parts) == "done", task)
    expect([(one.name, text_of(one.parts)) for one in task.artifacts] == [("result", RESULT)], task)


async def refused(call, *names):
    try:
        found = await call
    except Exception as error:  # whatever the SDK makes of it
        text = f"{type(error).__name__} {error}"
        expect(any(name in text for name in names), f"refused by {text}")
        return
    raise AssertionError(f"answered {found}"[:300])


class Webhook:
    """What comes there: (fields, body)."""

    async def __aenter__(self):
        self.got, self.news = [], asyncio.Event()
        self.server = await asyncio.start_server(self.take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/hook"
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def take(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(fields["content-length"]))
        self.got.append((fields, json.loads(body)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        self.news.set()

    async def until_completed(self):
        async with asyncio.timeout(15):
            while not any("COMPLETED" in json.dumps(body).upper() for _, body in self.got):
                self.news.clear()
                await self.news.wait()


class Peer:
    def __init__(self, card, factory, token):
        self.card = card
        self.context = ClientCallContext(timeout=20, service_parameters={"authorization": f"Bearer {token}"})
        self.streaming = factory(True)
        self.waiting = factory(False)

    def request(self, *parts, immediately=False, push=None, task="", context=""):
        parts = [Part(text=one) if isinstance(one, str) else one for one in parts]
        return SendMessageRequest(
            message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, task_id=task,
                            context_id=context),
            configuration=SendMessageConfiguration(return_immediately=immediately, task_push_notification_config=push))

    async def ask(self, *parts, **how):
        """The task or the message that answers."""
        async for event in self.waiting.send_message(self.request(*parts, **how), context=self.context):
            return getattr(event, event.WhichOneof("payload"))

    def stream(self, *parts, **how):
        return self.streaming.send_message(self.request(*parts, **how), context=self.context)

    async def get(self, task, history=None):
        return await self.waiting.get_task(GetTaskRequest(id=task, history_length=history), context=self.context)

    async def cancel(self, task):
        return await self.waiting.cancel_task(CancelTaskRequest(id=task), context=self.context)

    def subscribe(self, task):
        return self.streaming.subscribe(SubscribeToTaskRequest(id=task), context=self.context)

    async def hold(self):
        gate = f"python-{uuid.uuid4()}"
        task = await self.ask(f"hold {gate}", immediately=True)
        expect(task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), task)
        return gate, task.id

    async def ended(self, task):
        for _ in range(500):
            found = await self.get(task)
            if found.status.state in ENDED:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError("the task does not end")


def assembled(events):
    """(state, what was said, artifacts by id) of a stream."""
    state, said, artifacts, task = None, "", {}, ""
    for event in events:
        kind = event.WhichOneof("payload")
        one = getattr(event, kind)
        if kind in ("task", "status_update"):
            state, said = one.status.state, text_of(one.status.message.parts)
            task = one.id if kind == "task" else one.task_id
            for artifact in one.artifacts if kind == "task" else ():
                artifacts[artifact.artifact_id] = [artifact.name, text_of(artifact.parts)]
        elif kind == "artifact_update":
            text = text_of(one.artifact.parts)
            if one.append and one.artifact.artifact_id in artifacts:
                artifacts[one.artifact.artifact_id][1] += text
            else:
                artifacts[one.artifact.artifact_id] = [one.artifact.name, text]
    return state, said, list(artifacts.values()), task


def stream_is_complete(events):
    found = assembled(events)
    expect(found[:3] == (TaskState.TASK_STATE_COMPLETED, "done", [["result", RESULT]]), found)


# ---- cases --------------------------------------------------------------------------------------

async def case_card(peer):
    expect(peer.card.name == "interop" and peer.card.skills[0].id == "script", peer.card)


async def case_send(peer):
    is_complete(await peer.ask("complete"))


async def case_no_wait(peer):
    gate, task = await peer.hold()
    await peer.ask(f"release {gate}")
    is_complete(await peer.ended(task))


async def case_reply(peer):
    message = await peer.ask("reply")
    expect(text_of(message.parts) == "a message, naïve ☃", message)


async def case_stream_reply(peer):
    events = [one async for one in peer.stream("reply")]
    expect([text_of(one.message.parts) for one in events] == ["a message, naïve ☃"], events)


async def case_parts(peer):
    data = ParseDict({"n": 1, "list": [True, None, "x"], "deep": {"a": 0.5}}, Value())
    sent = [Part(text="naïve ☃ \"quoted\" \\"), Part(raw=b"\x89PNG\x00\xff\n", filename="pixel.png", media_type="image/png"),
            Part(url="https://files.example/a%20b.txt", filename="b.txt", media_type="text/plain"), Part(data=data)]
    task = await peer.ask("parts", *sent)
    back = list(task.status.message.parts)
    for one, other in zip(sent, back):
        if not peer.has_file_names:
            one.filename = other.filename = ""
        for part in (one, other):  # what is no file may be said to be anything
            if part.WhichOneof("content") in ("text", "data"):
                part.media_type = ""
                part.ClearField("metadata")
    expect(back == sent, back)


async def case_stream(peer):
    stream_is_complete([one async for one in peer.stream("complete")])


async def case_chunks(peer):
    events = [one async for one in peer.stream("chunks")]
    pieces = [one.artifact_update for one in events if one.WhichOneof("payload") == "artifact_update"]
    expect([text_of(one.artifact.parts) for one in pieces] == ["one ", "two ", "three"], pieces)
    expect([one.append for one in pieces] == [False, True, True] and pieces[-1].last_chunk, pieces)
    task = await peer.get(assembled(events)[3])
    expect(text_of(task.artifacts[0].parts) == "one two three", task)


async def case_get(peer):
    task = (await peer.ask("complete")).id
    is_complete(await peer.get(task))
    expect(len((await peer.get(task, 1)).history) == 1, task)
    expect(text_of((await peer.get(task, 10)).history[0].parts) == "complete", task)


async def case_list(peer):
    task = await peer.ask("complete")
    found = await peer.waiting.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True),
                                          context=peer.context)
    expect([one.id for one in found.tasks] == [task.id], found)
    is_complete(found.tasks[0])
    first = await peer.waiting.list_tasks(ListTasksRequest(page_size=1), context=peer.context)
    expect(len(first.tasks) == 1 and first.next_page_token, first)


async def case_cancel(peer):
    _, task = await peer.hold()
    found = await peer.cancel(task)
    expect(found.status.state == TaskState.TASK_STATE_CANCELED, found)


async def case_resubscribe(peer):
    gate, task = await peer.hold()
    events = []
    async for event in peer.subscribe(task):
        if not events:
            expect(event.WhichOneof("payload") == "task", event)
            await peer.ask(f"release {gate}")
        events.append(event)
    stream_is_complete(events)


async def case_ask(peer):
    asked = await peer.ask("ask")
    expect(asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, asked)
    done = await peer.ask("the red one", task=asked.id, context=asked.context_id)
    expect(done.id == asked.id and text_of(done.status.message.parts) == "you said the red one", done)


async def case_stream_ask(peer):
    state, said, _, task = assembled([one async for one in peer.stream("ask")])
    expect((state, said) == (TaskState.TASK_STATE_INPUT_REQUIRED, "which one?"), said)
    state, said, _, again = assembled([one async for one in peer.stream("the red one", task=task)])
    expect((state, said, again) == (TaskState.TASK_STATE_COMPLETED, "you said the red one", task), said)


async def case_reject(peer):
    task = await peer.ask("reject")
    expect(task.status.state == TaskState.TASK_STATE_REJECTED, task)


async def case_fail(peer):
    task = await peer.ask("fail")
    expect(task.status.state == TaskState.TASK_STATE_FAILED, task)
    expect(text_of(task.status.message.parts) == "it broke", task)


async def pushed(peer, **how):
    async with Webhook() as hook:
        await peer.ask("complete", push=TaskPushNotificationConfig(url=hook.url, **how))
        await hook.until_completed()
        return hook.got[-1][0]


async def case_push(peer):
    fields = await pushed(peer, token="hook-token")
    expect("hook-token" in (fields.get("x-a2a-notification-token"), fields.get("a2a-notification-token")), fields)


async def case_push_credentials(peer):
    fields = await pushed(peer, authentication=AuthenticationInfo(scheme="Bearer", credentials="hook-secret"))
    expect(fields.get("authorization") == "Bearer hook-secret", fields)


async def case_push_late(peer):
    async with Webhook() as hook:
        gate, task = await peer.hold()
        await peer.waiting.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=task, id="hook", url=hook.url, token="late-token"), context=peer.context)
        await peer.ask(f"release {gate}")
        await hook.until_completed()


async def case_push_configs(peer):
    _, task = await peer.hold()
    made = await peer.waiting.create_task_push_notification_config(
        TaskPushNotificationConfig(task_id=task, id="one", url="http://127.0.0.1:9/hook", token="t"), context=peer.context)
    found = await peer.waiting.get_task_push_notification_config(
        GetTaskPushNotificationConfigRequest(task_id=task, id=made.id), context=peer.context)
    expect(found.url == "http://127.0.0.1:9/hook", found)
    for count in (1, 0):
        found = await peer.waiting.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=task), context=peer.context)
        expect(len(found.configs) == count, found)
        if count:
            await peer.waiting.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(task_id=task, id=made.id), context=peer.context)
    await peer.cancel(task)


async def case_extended_card(peer):
    card = await peer.waiting.get_extended_agent_card(GetExtendedAgentCardRequest(), context=peer.context)
    expect(any(skill.id == "hidden" for skill in card.skills), card)


async def case_unknown_task(peer):
    await refused(peer.get("no-such-task"), "TaskNotFound", "-32001", "not found", "no such task")
    await refused(peer.cancel("no-such-task"), "TaskNotFound", "-32001", "not found", "no such task")


async def case_terminal_task(peer):
    task = await peer.ask("complete")
    await refused(peer.ask("more", task=task.id), "UnsupportedOperation", "-32004", "has ended", "terminal", "400")


async def case_subscribe_terminal(peer):
    task = await peer.ask("complete")

    async def follow():
        return [one async for one in peer.subscribe(task.id)]

    await refused(follow(), "UnsupportedOperation", "-32004", "has ended", "terminal", "400", "Resource not found")


async def case_not_cancelable(peer):
    task = await peer.ask("complete")
    await refused(peer.cancel(task.id), "TaskNotCancelable", "-32002", "cancel", "has ended")


async def case_no_credential(peer):
    peer.context = ClientCallContext(timeout=20, service_parameters={"authorization": "Bearer wrong"})
    await refused(peer.ask("complete"), "401", "credential", "UNAUTHENTICATED")


CASES = {name[len("case_"):].replace("_", "-"): one for name, one in list(globals().items()) if name.startswith("case_")}


# ---- running them -------------------------------------------------------------------------------

async def run(version, _way, url, binding, *wanted):
    failed = 0
    async with httpx.AsyncClient(timeout=20) as http:
        card = await A2ACardResolver(http, url.rstrip("/")).get_agent_card()
        fitting = [one for one in card.supported_interfaces
                   if one.protocol_binding == binding and one.protocol_version.startswith(version)]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(fitting)

        def factory(is_streaming):
            return ClientFactory(ClientConfig(
                streaming=is_streaming, httpx_client=http, supported_protocol_bindings=[binding],
                grpc_channel_factory=grpc.aio.insecure_channel)).create(card)

        peer = Peer(card, factory, TOKEN)
        peer.has_file_names = version != "0.3" or binding == "JSONRPC"
        for name in wanted:
            try:
                async with asyncio.timeout(SECONDS):
                    await CASES[name](peer)
                print(f"ok {name}")
            except Exception as error:  # a case that fails is told, whatever it is
                failed += 1
                said = f"{type(error).__name__} {error}".replace("\n", " ")[:400]
                print(f"not ok {name}: {said}")
        await peer.streaming.close()
        await peer.waiting.close()
    return 1 if failed else 0
