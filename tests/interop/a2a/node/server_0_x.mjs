// What the servers of 0.2 and 0.3 have in common.
import { randomUUID } from 'node:crypto';
import { partIn, partOut } from './plain_0_x.mjs';
import { cancel, play } from './script.mjs';

const LAST = ['completed', 'failed', 'canceled', 'rejected', 'input-required'];

function publisher({ taskId, contextId, userMessage }, bus) {
  const message = (parts, named = { taskId, contextId }) => ({ kind: 'message', role: 'agent', messageId: randomUUID(),
    parts: parts.map(partOut), ...named });
  const status = (state, text, parts) => ({ state, timestamp: new Date().toISOString(),
    ...(parts ? { message: message(parts) } : text ? { message: message([{ text }]) } : {}) });
  return {
    task: (state, text) => bus.publish({ kind: 'task', id: taskId, contextId, status: status(state, text), history: [userMessage] }),
    status: (state, ...of) => bus.publish({ kind: 'status-update', taskId, contextId, status: status(state, ...of), final: LAST.includes(state) }),
    artifact: (artifactId, name, parts, append = false, lastChunk = true) => bus.publish({ kind: 'artifact-update', taskId, contextId,
      artifact: { artifactId, name, parts: parts.map(partOut) }, append, lastChunk }),
    message: (text) => bus.publish(message([{ text }], { contextId })),
  };
}

export const executor = {
  async execute(context, bus) {
    await play(publisher(context, bus), context.userMessage.parts.map(partIn), context.taskId, context.task === undefined);
    bus.finished();
  },
  async cancelTask(taskId) {
    cancel(taskId);
    await new Promise(setImmediate); // 0.2.5 answers with what it has by then
  },
};

export const legacyCard = (url) => ({
  name: 'interop', description: 'Does what it is told.', version: '1.0.0', url,
  capabilities: { streaming: true, pushNotifications: true, stateTransitionHistory: false },
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
  skills: [{ id: 'script', name: 'Script', description: 'Script', tags: ['test'] }],
});
