// @a2a-js/sdk 0.3.14 as client.
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from 'a2a03/client';
import { GrpcTransportFactory } from 'a2a03/client/grpc';
import { anyIn, configOut, eventsIn, pushType, pushed, sendOut, taskIn } from './plain_0_x.mjs';

export async function open({ url, binding, token }) {
  const authorization = `Bearer ${token}`;
  const fetchImpl = (input, init = {}) => fetch(input, { ...init, headers: { ...init.headers, authorization } });
  const resolver = new DefaultAgentCardResolver();
  const card = await resolver.resolve(url.replace(/\/?$/, '/'), '.well-known/agent-card.json');
  const urls = [{ url: card.url, transport: card.preferredTransport ?? 'JSONRPC' }, ...(card.additionalInterfaces ?? [])];
  const fitting = urls.find((one) => one.transport === binding);
  if (!fitting) throw new Error(`the card has no ${binding}`);
  const client = await new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl }), new GrpcTransportFactory()],
  })).createFromAgentCard({ ...card, url: fitting.url, preferredTransport: binding, additionalInterfaces: [] });
  const options = () => ({ serviceParameters: binding === 'GRPC' ? { authorization } : {} });
  const configIn = (one) => one.pushNotificationConfig;

  return {
    card: async () => card,
    send: async (message, how) => anyIn(await client.sendMessage(sendOut(message, how), options())),
    stream: (message) => eventsIn(client.sendMessageStream(sendOut(message), options())),
    get: async (id, historyLength) => taskIn(await client.getTask({ id, historyLength }, options())),
    cancel: async (id) => taskIn(await client.cancelTask({ id }, options())),
    subscribe: (id) => eventsIn(client.resubscribeTask({ id }, options())),
    pushCreate: async (taskId, push) => configIn(await client.setTaskPushNotificationConfig(
      { taskId, pushNotificationConfig: configOut(push) }, options())),
    pushGet: async (id, pushNotificationConfigId) => configIn(await client.getTaskPushNotificationConfig(
      { id, pushNotificationConfigId }, options())),
    pushList: async (id) => (await client.listTaskPushNotificationConfig({ id }, options())).map(configIn),
    pushDelete: (id, pushNotificationConfigId) => client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }, options()),
    extendedCard: () => client.getAgentCard(options()),
    pushType, pushed, hasFileNames: binding === 'JSONRPC', // its proto knows none
  };
}
