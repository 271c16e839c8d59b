// The JSON of 0.2 and 0.3 to and from the plain view of cases.mjs.
export function partOut(part) {
  const named = { ...(part.name && { name: part.name }), ...(part.type && { mimeType: part.type }) };
  if ('text' in part) return { kind: 'text', text: part.text };
  if ('bytes' in part) return { kind: 'file', file: { bytes: part.bytes, ...named } };
  if ('url' in part) return { kind: 'file', file: { uri: part.url, ...named } };
  return { kind: 'data', data: part.data };
}

export function partIn(part) {
  if (part.kind === 'text') return { text: part.text };
  if (part.kind === 'data') return { data: part.data };
  if (part.kind !== 'file') throw new Error(`a part of the kind ${part.kind}`);
  const named = { ...(part.file.name && { name: part.file.name }), type: part.file.mimeType };
  return part.file.bytes !== undefined ? { bytes: part.file.bytes, ...named } : { url: part.file.uri, ...named };
}

export const textIn = (message) => message?.parts.map(partIn).map((part) => part.text ?? '').join('');
export const messageIn = (message) => ({ kind: 'message', text: textIn(message), parts: message.parts.map(partIn) });
const artifactIn = (one) => ({ id: one.artifactId, name: one.name, parts: one.parts.map(partIn) });
export const taskIn = (task) => ({
  kind: 'task', id: task.id, contextId: task.contextId, state: task.status.state, text: textIn(task.status.message),
  parts: task.status.message?.parts.map(partIn), artifacts: (task.artifacts ?? []).map(artifactIn),
  history: (task.history ?? []).map(messageIn),
});

export function anyIn(one) {
  if (one.kind === 'task') return taskIn(one);
  if (one.kind === 'message') return messageIn(one);
  if (one.kind === 'status-update') {
    return { kind: 'status', id: one.taskId, state: one.status.state, text: textIn(one.status.message), final: one.final };
  }
  if (one.kind !== 'artifact-update') throw new Error(`an answer of the kind ${one.kind}`);
  return { kind: 'artifact', id: one.taskId, artifact: artifactIn(one.artifact), append: one.append, last: one.lastChunk };
}

export const configOut = ({ id, url, token, scheme, credentials }) => ({
  ...(id && { id }), url, ...(token && { token }), ...(scheme && { authentication: { schemes: [scheme], credentials } }),
});

export const sendOut = (message, { immediately = false, push } = {}) => ({
  message: { kind: 'message', role: 'user', messageId: message.messageId, parts: message.parts.map(partOut),
    ...(message.taskId && { taskId: message.taskId }), ...(message.contextId && { contextId: message.contextId }) },
  configuration: { acceptedOutputModes: [], blocking: !immediately, ...(push && { pushNotificationConfig: configOut(push) }) },
});

// Webhooks get a bare task as JSON.
export const pushType = /^application\/json/;
export const pushed = (body) => ({ id: body.id, state: body.status?.state });

// A stream's last event says that it is.
export async function* eventsIn(stream) {
  let last;
  for await (const event of stream) {
    if (last?.final) throw new Error('an event after the final one');
    last = anyIn(event);
    yield last;
  }
  if (last?.kind === 'status' && last.final !== true) throw new Error('the last event is not final');
}
