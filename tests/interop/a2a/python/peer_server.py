"""The script of tests/interop/a2a/run on the Python SDK: three bindings, 1.0 and what it has of 0.3."""
import asyncio
import collections

import grpc
import httpx
import uvicorn
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import (BasePushNotificationSender, InMemoryPushNotificationConfigStore, InMemoryTaskStore,
                              TaskUpdater)
from a2a.types import a2a_pb2_grpc
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Role, TaskState
from starlette.applications import Starlette

RESULT = "the result, naïve ☃"
gates = collections.defaultdict(asyncio.Event)


class Script(AgentExecutor):
    """What is done with a message, by its first word."""

    async def execute(self, context, event_queue):
        task = context.current_task
        parts = list(context.message.parts)
        text = parts[0].text
        word, _, rest = text.partition(" ")
        if task is None and word in ("reply", "release"):
            if word == "release":
                gates[rest].set()
            await event_queue.enqueue_event(new_text_message(
                "released" if word == "release" else "a message, naïve ☃", context_id=context.context_id,
                role=Role.ROLE_AGENT))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        def said(words):
            return updater.new_agent_message([new_text_part(words)])

        if task is not None:
            await updater.complete(said(f"you said {text}"))
            return
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        if word in ("complete", "chunks", "hold", "fail"):
            await updater.start_work(said("on it"))
        if word == "hold":
            await gates[rest].wait()
        if word in ("complete", "hold"):
            await updater.add_artifact([new_text_part(RESULT)], name="result")
            await updater.complete(said("done"))
        elif word == "parts":
            await updater.complete(updater.new_agent_message(parts[1:]))
        elif word == "chunks":
            for index, piece in enumerate(("one ", "two ", "three")):
                await updater.add_artifact([new_text_part(piece)], artifact_id="chunks-1", name="chunks",
                                           append=index > 0, last_chunk=index == 2)
            await updater.complete(said("done"))
        elif word == "ask":
            await updater.requires_input(said("which one?"))
        elif word == "reject":
            await updater.reject(said("not that"))
        else:
            await updater.failed(said("it broke"))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).update_status(
            TaskState.TASK_STATE_CANCELED)


def make_card(port, grpc_port):
    at = f"http://127.0.0.1:{port}"
    urls = {"JSONRPC": f"{at}/jsonrpc", "HTTP+JSON": f"{at}/rest", "GRPC": f"127.0.0.1:{grpc_port}"}
    return AgentCard(
        name="interop", description="Does what it is told.", version="1.0.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
                              for version in ("1.0", "0.3") for binding, url in urls.items()],
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        skills=[AgentSkill(id="script", name="Script", description="Script", tags=["test"])])


async def run(port, grpc_port):
    card = make_card(port, grpc_port)
    extended = AgentCard()
    extended.CopyFrom(card)
    extended.skills.append(AgentSkill(id="hidden", name="Hidden", description="Hidden", tags=["test"]))
    hooks = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        Script(), InMemoryTaskStore(), card, push_config_store=hooks,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), hooks), extended_agent_card=extended)
    server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    server.add_insecure_port(f"127.0.0.1:{grpc_port}")
    await server.start()
    app = Starlette(routes=[*create_agent_card_routes(card),
                            *create_jsonrpc_routes(handler, "/jsonrpc", enable_v0_3_compat=True),
                            *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/rest")])
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=int(port), log_level="critical")).serve()
    return 0
