// @a2a-js/sdk 0.3.14 as server: three bindings.
import * as grpc from '@grpc/grpc-js';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from 'a2a03/server';
import { agentCardHandler, jsonRpcHandler, restHandler } from 'a2a03/server/express';
import { A2AService, grpcService } from 'a2a03/server/grpc';
import { executor, legacyCard } from './server_0_x.mjs';

const isKnown = (authorization) => authorization === 'Bearer interop-token';
const user = (authorization) => ({ isAuthenticated: isKnown(authorization), userName: isKnown(authorization) ? 'interop' : '' });

export async function serve(port, grpcPort) {
  const at = `http://127.0.0.1:${port}`;
  const card = { ...legacyCard(`${at}/jsonrpc`), protocolVersion: '0.3.0', preferredTransport: 'JSONRPC',
    supportsAuthenticatedExtendedCard: true,
    additionalInterfaces: [{ url: `${at}/jsonrpc`, transport: 'JSONRPC' }, { url: `${at}/rest`, transport: 'HTTP+JSON' },
      { url: `127.0.0.1:${grpcPort}`, transport: 'GRPC' }] };
  const hidden = { id: 'hidden', name: 'Hidden', description: 'Hidden', tags: ['test'] };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor, undefined, undefined, undefined,
    { ...card, skills: [...card.skills, hidden] });
  const userBuilder = async (request) => user(request.headers.authorization);
  const app = express();
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/jsonrpc', jsonRpcHandler({ requestHandler, userBuilder }));
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  const server = new grpc.Server();
  server.addService(A2AService, grpcService({ requestHandler, userBuilder: async (call) => user(call.metadata.get('authorization')[0]) }));
  await new Promise((resolve, reject) => server.bindAsync(`127.0.0.1:${grpcPort}`, grpc.ServerCredentials.createInsecure(),
    (error) => (error ? reject(error) : resolve())));
  app.listen(port, '127.0.0.1');
}
