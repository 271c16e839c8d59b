// @a2a-js/sdk 1.3.0 as client, speaking 1.0, or 0.3 by its own compatibility layer.
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { Role, TaskState } from '@a2a-js/sdk';
import { partIn, partOut } from './parts_1_0.mjs';

const stateName = (state) => TaskState[state].replace('TASK_STATE_', '').toLowerCase().replace('_', '-');

const textIn = (message) => message?.parts.map(partIn).map((part) => part.text ?? '').join('');
const messageIn = (message) => ({ kind: 'message', text: textIn(message), parts: message.parts.map(partIn) });
const artifactIn = (one) => ({ id: one.artifactId, name: one.name, parts: one.parts.map(partIn) });
const taskIn = (task) => ({
  kind: 'task', id: task.id, contextId: task.contextId, state: stateName(task.status.state), text: textIn(task.status.message),
  parts: task.status.message?.parts.map(partIn), artifacts: task.artifacts.map(artifactIn), history: task.history.map(messageIn),
});
const resultIn = (result) => ('messageId' in result ? messageIn(result) : taskIn(result));

function eventIn({ payload: { $case, value } }) {
  if ($case === 'task') return taskIn(value);
  if ($case === 'message') return messageIn(value);
  if ($case === 'statusUpdate') {
    return { kind: 'status', id: value.taskId, state: stateName(value.status.state), text: textIn(value.status.message) };
  }
  return { kind: 'artifact', id: value.taskId, artifact: artifactIn(value.artifact), append: value.append, last: value.lastChunk };
}

const configOut = (task, { id = '', url, token = '', scheme, credentials }) => ({
  tenant: '', id, taskId: task, url, token, authentication: scheme && { scheme, credentials },
});

export async function open({ url, binding, isCompat, token }) {
  const authorization = `Bearer ${token}`;
  const fetchImpl = (input, init = {}) => fetch(input, { ...init, headers: { ...init.headers, authorization } });
  const legacyCompat = isCompat ? { enabled: true } : undefined;
  const resolver = new DefaultAgentCardResolver({ legacyCompat });
  const card = await resolver.resolve(url.replace(/\/?$/, '/'), '.well-known/agent-card.json');
  const version = isCompat ? '0.3' : '1.0';
  const fitting = card.supportedInterfaces.filter((one) => one.protocolBinding === binding && one.protocolVersion.startsWith(version));
  if (fitting.length === 0) throw new Error(`the card has no ${binding} of ${version}`);
  const client = await new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat }), new RestTransportFactory({ fetchImpl, legacyCompat }),
      new GrpcTransportFactory({ legacyCompat })],
    preferredTransports: [binding],
    cardResolver: resolver,
  })).createFromAgentCard({ ...card, supportedInterfaces: fitting });
  const options = () => ({ serviceParameters: binding === 'GRPC' ? { authorization } : {} });

  const request = (message, { immediately = false, push } = {}) => ({
    tenant: '', metadata: undefined,
    message: { messageId: message.messageId, contextId: message.contextId ?? '', taskId: message.taskId ?? '', role: Role.ROLE_USER,
      parts: message.parts.map(partOut), metadata: undefined, extensions: [], referenceTaskIds: [] },
    configuration: { acceptedOutputModes: [], returnImmediately: immediately, historyLength: undefined,
      taskPushNotificationConfig: push && configOut('', push) },
  });
  async function* events(stream) {
    for await (const event of stream) yield eventIn(event);
  }

  return {
    card: async () => card,
    send: async (message, how) => resultIn(await client.sendMessage(request(message, how), options())),
    stream: (message) => events(client.sendMessageStream(request(message), options())),
    get: async (id, historyLength) => taskIn(await client.getTask({ tenant: '', id, historyLength }, options())),
    cancel: async (id) => taskIn(await client.cancelTask({ tenant: '', id, metadata: undefined }, options())),
    subscribe: (id) => events(client.resubscribeTask({ tenant: '', id }, options())),
    async list({ contextId = '', size, page = '', artifacts = false }) {
      const found = await client.listTasks({ tenant: '', contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageSize: size,
        pageToken: page, historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: artifacts }, options());
      return { tasks: found.tasks.map(taskIn), next: found.nextPageToken };
    },
    pushCreate: (id, push) => client.createTaskPushNotificationConfig(configOut(id, push), options()),
    pushGet: (taskId, id) => client.getTaskPushNotificationConfig({ tenant: '', taskId, id }, options()),
    pushList: async (taskId) => (await client.listTaskPushNotificationConfig(
      { tenant: '', taskId, pageSize: 0, pageToken: '' }, options())).configs,
    pushDelete: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }, options()),
    extendedCard: () => client.getAgentCard(options()),
    wrongVersion: () => client.transport.getTask({ tenant: '', id: 'x' }, { serviceParameters: { 'A2A-Version': '7.0', authorization } }),
    hasFileNames: !isCompat || binding === 'JSONRPC', // the proto of 0.3 knows none
    pushType: isCompat ? /^application\/json/ : /^application\/a2a\+json/,
    pushed: isCompat ? (body) => ({ id: body.id, state: body.status?.state })
      : (body) => {
        const one = body.task ?? body.statusUpdate ?? body.artifactUpdate ?? body.message ?? {};
        return { id: one.taskId ?? one.id, state: one.status?.state?.replace('TASK_STATE_', '').toLowerCase() };
      },
  };
}
