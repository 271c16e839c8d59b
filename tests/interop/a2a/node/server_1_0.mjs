// @a2a-js/sdk 1.3.0 as server: three bindings, 1.0 and by its compatibility layer 0.3.
import { randomUUID } from 'node:crypto';
import * as grpc from '@grpc/grpc-js';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, InMemoryPushNotificationStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server';
import { LegacyA2AService, legacyGrpcService } from '@a2a-js/sdk/compat/v0_3/server/grpc';
import { partIn, partOut } from './parts_1_0.mjs';
import { cancel, play } from './script.mjs';

const stateOf = (name) => TaskState[`TASK_STATE_${name.toUpperCase().replace('-', '_')}`];

function publisher(context, bus) {
  const { taskId, contextId } = context;
  const message = (parts, named = { taskId, contextId }) => ({ messageId: randomUUID(), role: Role.ROLE_AGENT, parts: parts.map(partOut),
    metadata: undefined, extensions: [], referenceTaskIds: [], ...named });
  const status = (state, text, parts) => ({ state: stateOf(state), timestamp: new Date().toISOString(),
    message: parts ? message(parts) : text ? message([{ text }]) : undefined });
  return {
    task: (state, text) => bus.publish(AgentEvent.task({ id: taskId, contextId, status: status(state, text), artifacts: [],
      history: [context.userMessage], metadata: undefined })),
    status: (...of) => bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(...of), metadata: undefined })),
    artifact: (id, name, parts, append = false, last = true) => bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, append,
      lastChunk: last, metadata: undefined,
      artifact: { artifactId: id, name, description: '', parts: parts.map(partOut), metadata: undefined, extensions: [] } })),
    message: (text) => bus.publish(AgentEvent.message(message([{ text }], { taskId: '', contextId }))),
  };
}

const executor = {
  async execute(context, bus) {
    const isNew = context.task === undefined;
    // Each turn of this SDK begins with the task.
    if (!isNew) bus.publish(AgentEvent.task(context.task));
    await play(publisher(context, bus), context.userMessage.parts.map(partIn), context.taskId, isNew);
    bus.finished();
  },
  async cancelTask(taskId) { cancel(taskId); },
};

const isKnown = (authorization) => authorization === 'Bearer interop-token';
const user = (authorization) => ({ isAuthenticated: isKnown(authorization), userName: isKnown(authorization) ? 'interop' : '' });

export async function serve(port, grpcPort) {
  const at = `http://127.0.0.1:${port}`;
  const skill = (id, name) => ({ id, name, description: name, tags: ['test'], examples: [], inputModes: [], outputModes: [],
    securityRequirements: [] });
  const card = {
    name: 'interop', description: 'Does what it is told.', version: '1.0.0', provider: undefined, documentationUrl: '', iconUrl: '',
    capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: true },
    supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) => [
      { url: `${at}/jsonrpc`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion },
      { url: `${at}/rest`, protocolBinding: 'HTTP+JSON', tenant: '', protocolVersion },
      { url: `127.0.0.1:${grpcPort}`, protocolBinding: 'GRPC', tenant: '', protocolVersion }]),
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [skill('script', 'Script')], signatures: [],
  };
  const hooks = new InMemoryPushNotificationStore();
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor, undefined, hooks,
    createLegacyAwarePushNotificationSender(hooks), { ...card, skills: [...card.skills, skill('hidden', 'Hidden')] });
  const legacyCompat = { enabled: true };
  const userBuilder = async (request) => user(request.headers.authorization);
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
  app.use('/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder, legacyCompat }));
  app.use('/rest', restHandler({ requestHandler, userBuilder, legacyCompat }));

  const server = new grpc.Server();
  const grpcUserBuilder = async (call) => user(call.metadata.get('authorization')[0]);
  server.addService(A2AService, grpcService({ requestHandler, userBuilder: grpcUserBuilder }));
  server.addService(LegacyA2AService, legacyGrpcService({ requestHandler, userBuilder: grpcUserBuilder }));
  await new Promise((resolve, reject) => server.bindAsync(`127.0.0.1:${grpcPort}`, grpc.ServerCredentials.createInsecure(),
    (error) => (error ? reject(error) : resolve())));
  app.listen(port, '127.0.0.1'); // last: who connects finds all of it
}
