// An agent on the JavaScript SDK whose tasks are complete at once: hello.mjs PORT
import { randomUUID } from 'node:crypto';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const port = Number(process.argv[2]);
const text = '17 degrees and cloudy, light wind from the west, no rain before tonight';

const executor = {
    async execute({ taskId, contextId, userMessage }, bus) {
        const part = { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' };
        const message = { messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [part], taskId, contextId,
            metadata: undefined, extensions: [], referenceTaskIds: [] };
        bus.publish(AgentEvent.task({ id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined,
            status: { state: TaskState.TASK_STATE_COMPLETED, timestamp: new Date().toISOString(), message } }));
        bus.finished();
    },
    async cancelTask() {},
};

const card = {
    name: 'hello', description: 'Completes at once.', version: '1.0.0', provider: undefined, documentationUrl: '', iconUrl: '',
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    supportedInterfaces: [{ url: `http://127.0.0.1:${port}/`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 'hello', name: 'Hello', description: 'A canned answer.', tags: [], examples: [], inputModes: [], outputModes: [],
        securityRequirements: [] }],
    signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1').keepAliveTimeout = 60000;
