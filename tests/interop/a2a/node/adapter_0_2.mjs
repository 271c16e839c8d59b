// @a2a-js/sdk 0.2.5 as client: JSON-RPC, and no way to give it a header but around it.
import { A2AClient } from 'a2a02/client';
import { anyIn, configOut, eventsIn, pushType, pushed, sendOut, taskIn } from './plain_0_x.mjs';

const real = globalThis.fetch;
let authorization;
globalThis.fetch = (input, init = {}) => real(input, { ...init, headers: { ...init.headers, authorization } });

const unwrapped = (response) => {
  if (response.error) throw new Error(`${response.error.code} ${response.error.message}`);
  return response.result;
};

export async function open({ url, token }) {
  authorization = `Bearer ${token}`;
  const client = new A2AClient(url);
  const card = await client.getAgentCard();

  return {
    card: async () => card,
    send: async (message, how) => anyIn(unwrapped(await client.sendMessage(sendOut(message, how)))),
    stream: (message) => eventsIn(client.sendMessageStream(sendOut(message))),
    get: async (id, historyLength) => taskIn(unwrapped(await client.getTask({ id, historyLength }))),
    cancel: async (id) => taskIn(unwrapped(await client.cancelTask({ id }))),
    subscribe: (id) => eventsIn(client.resubscribeTask({ id })),
    // It names no configuration when it asks for one.
    pushCreate: async (taskId, { id, ...push }) => unwrapped(await client.setTaskPushNotificationConfig(
      { taskId, pushNotificationConfig: configOut(push) })).pushNotificationConfig,
    pushGet: async (id) => unwrapped(await client.getTaskPushNotificationConfig({ id })).pushNotificationConfig,
    pushType, pushed,
  };
}
