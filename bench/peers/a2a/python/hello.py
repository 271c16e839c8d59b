"""An agent on the Python SDK whose tasks are complete at once: hello.py PORT"""
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

TEXT = "17 degrees and cloudy, light wind from the west, no rain before tonight"


class Hello(AgentExecutor):
    async def execute(self, context, event_queue):
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.complete(updater.new_agent_message([new_text_part(TEXT)]))

    async def cancel(self, context, event_queue):
        pass


port = int(sys.argv[1])
card = AgentCard(
    name="hello", description="Completes at once.", version="1.0.0",
    capabilities=AgentCapabilities(streaming=True),
    supported_interfaces=[AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC",
                                         protocol_version="1.0")],
    default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="hello", name="Hello", description="A canned answer.", tags=["test"])])
handler = DefaultRequestHandler(Hello(), InMemoryTaskStore(), card)
app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")
