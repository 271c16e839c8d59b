// What every client of the JavaScript SDK asks of an agent that plays the script (tests/interop/a2a/run),
// whatever its generation: over one plain view of tasks, messages and events that adapters make of theirs.
//
//   task     {kind: 'task', id, contextId, state: 'completed', text, artifacts: [{id, name, parts}], history}
//   message  {kind: 'message', text, parts}
//   status   {kind: 'status', id, state, text}
//   artifact {kind: 'artifact', id, artifact: {id, name, parts}, append, last}
//   part     {text} | {bytes, name, type} | {url, name, type} | {data}
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';

const RESULT = 'the result, naïve ☃';
const pixel = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 254, 10, 13]).toString('base64');
export const say = (...parts) => ({ messageId: randomUUID(), parts: parts.map((one) => (typeof one === 'string' ? { text: one } : one)) });

async function gathered(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

// The task that a stream's events add up to.
function assembled(events) {
  const task = { artifacts: new Map() };
  for (const event of events) {
    if (event.kind === 'task') {
      Object.assign(task, { id: event.id, state: event.state, text: event.text });
      for (const one of event.artifacts) task.artifacts.set(one.id, { ...one });
    } else if (event.kind === 'status') {
      Object.assign(task, { id: event.id, state: event.state, text: event.text });
    } else if (event.kind === 'artifact') {
      const known = task.artifacts.get(event.artifact.id);
      if (event.append && known) known.parts = [...known.parts, ...event.artifact.parts];
      else task.artifacts.set(event.artifact.id, { ...event.artifact });
    }
  }
  task.artifacts = [...task.artifacts.values()];
  return task;
}

const textOf = (artifact) => artifact.parts.map((part) => part.text).join('');

function assertCompleted(task) {
  assert.equal(task.state, 'completed');
  assert.equal(task.text, 'done');
  assert.equal(task.artifacts.length, 1);
  assert.equal(task.artifacts[0].name, 'result');
  assert.equal(textOf(task.artifacts[0]), RESULT);
}

async function refused(promise, ...names) {
  let found;
  try {
    found = await promise;
  } catch (error) {
    const text = `${error?.name} ${error?.constructor?.name} ${error?.code} ${error?.message}`;
    assert.ok(names.some((name) => text.includes(name)), `refused by: ${text}`);
    return;
  }
  assert.fail(`answered ${JSON.stringify(found)?.slice(0, 200)}`);
}

// A webhook: what comes there, until `enough` of it has.
export async function webhook() {
  const got = [];
  const waiting = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
      got.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
      response.writeHead(200).end();
      for (const look of waiting) look();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    got,
    until: (enough, ms = 15000) => new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the webhook got ${JSON.stringify(got).slice(0, 300)}`)), ms);
      const look = () => { if (enough(got)) { clearTimeout(late); resolve(got); } };
      waiting.push(look);
      look();
    }),
    close: () => server.close(),
  };
}

const gate = () => `gate-${randomUUID()}`;
const started = (peer, name) => peer.send(say(`hold ${name}`), { immediately: true });
const release = (peer, name) => peer.send(say(`release ${name}`));

// A task that has ended: followed, as those who are late to subscribe get an error.
async function ended(peer, id) {
  for (let i = 0; i < 500; i++) {
    const task = await peer.get(id);
    if (!['submitted', 'working'].includes(task.state)) return task;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('the task does not end');
}

// Some name the token's field with X-, some without, ours both.
const tokenOf = ({ headers }) => headers['x-a2a-notification-token'] ?? headers['a2a-notification-token'];

// A webhook hears of a task's end, and by whom. Behind a gateway the agent tells it, in its own version.
async function pushed(peer, { token, scheme, credentials }) {
  const hook = await webhook();
  const ended = (one) => peer.pushed(one.body).state === 'completed';
  try {
    const { id } = await peer.send(say('complete'), { push: { url: hook.url, token, scheme, credentials } });
    const got = await hook.until((all) => all.some(ended));
    for (const one of got) {
      assert.equal(tokenOf(one), token);
      assert.equal(one.headers.authorization, scheme && `${scheme} ${credentials}`);
      if (peer.isDirect) {
        assert.match(one.headers['content-type'], peer.pushType);
        assert.equal(peer.pushed(one.body).id, id);
      }
    }
  } finally {
    hook.close();
  }
}

export const cases = {
  async card(peer) {
    const card = await peer.card();
    assert.equal(card.name, 'interop');
    assert.ok(card.skills.some((skill) => skill.id === 'script'));
    assert.equal(card.capabilities.streaming, true);
  },

  async send(peer) {
    const task = await peer.send(say('complete'));
    assert.equal(task.kind, 'task');
    assertCompleted(task);
  },

  async 'no-wait'(peer) {
    const name = gate();
    const task = await started(peer, name);
    assert.equal(task.kind, 'task');
    assert.ok(['submitted', 'working'].includes(task.state), task.state);
    await release(peer, name);
    assertCompleted(await ended(peer, task.id));
  },

  async reply(peer) {
    const message = await peer.send(say('reply'));
    assert.equal(message.kind, 'message');
    assert.equal(message.text, 'a message, naïve ☃');
  },

  async 'stream-reply'(peer) {
    const events = await gathered(peer.stream(say('reply')));
    assert.deepEqual(events.map((one) => [one.kind, one.text]), [['message', 'a message, naïve ☃']]);
  },

  async parts(peer) {
    const sent = [{ text: 'naïve ☃ "quoted" \\ \u{1F600}' }, { bytes: pixel, name: 'pixel.png', type: 'image/png' },
      { url: 'https://files.example/a%20b.txt', name: 'b.txt', type: 'text/plain' },
      { data: { n: 1, list: [true, null, 'x'], deep: { a: 0.5 } } }];
    const task = await peer.send(say('parts', ...sent));
    assert.equal(task.state, 'completed');
    assert.deepEqual(task.parts, peer.hasFileNames === false ? sent.map(({ name, ...one }) => one) : sent);
  },

  async stream(peer) {
    const events = await gathered(peer.stream(say('complete')));
    assert.ok(events.some((one) => one.kind === 'status' && one.state === 'working' && one.text === 'on it')
      || events[0].text === 'on it', JSON.stringify(events).slice(0, 300));
    assertCompleted(assembled(events));
  },

  async chunks(peer) {
    const events = await gathered(peer.stream(say('chunks')));
    const pieces = events.filter((one) => one.kind === 'artifact');
    assert.equal(pieces.map((one) => textOf(one.artifact)).join('|'), 'one |two |three');
    assert.deepEqual(pieces.map((one) => Boolean(one.append)), [false, true, true]);
    assert.equal(pieces.at(-1).last, true);
    const task = assembled(events);
    assert.equal(textOf(task.artifacts[0]), 'one two three');
    assert.equal(textOf((await peer.get(task.id)).artifacts[0]), 'one two three');
  },

  async get(peer) {
    const { id } = await peer.send(say('complete'));
    assertCompleted(await peer.get(id));
    assert.equal((await peer.get(id, 1)).history.length, 1);
    assert.equal((await peer.get(id, 10)).history[0].text, 'complete');
  },

  async list(peer) {
    const { id, contextId } = await peer.send(say('complete'));
    const page = await peer.list({ contextId, artifacts: true });
    assert.deepEqual(page.tasks.map((task) => task.id), [id]);
    assertCompleted(page.tasks[0]);
    const first = await peer.list({ size: 1 });
    assert.equal(first.tasks.length, 1);
    assert.notEqual(first.next, '');
    const second = await peer.list({ size: 1, page: first.next });
    assert.notEqual(second.tasks[0].id, first.tasks[0].id);
  },

  async cancel(peer) {
    const { id } = await started(peer, gate());
    assert.equal((await peer.cancel(id)).state, 'canceled');
    assert.equal((await peer.get(id)).state, 'canceled');
  },

  async resubscribe(peer) {
    const name = gate();
    let id;
    for await (const event of peer.stream(say(`hold ${name}`))) {
      id = event.id;
      if (event.state === 'working') break; // and so cut it
    }
    const events = [];
    for await (const event of peer.subscribe(id)) {
      if (events.length === 0) {
        assert.equal(event.kind, 'task');
        assert.equal(event.state, 'working');
        await release(peer, name);
      }
      events.push(event);
    }
    assertCompleted(assembled(events));
  },

  async ask(peer) {
    const asked = await peer.send(say('ask'));
    assert.equal(asked.state, 'input-required');
    assert.equal(asked.text, 'which one?');
    const done = await peer.send({ ...say('the red one'), taskId: asked.id, contextId: asked.contextId });
    assert.equal(done.id, asked.id);
    assert.equal(done.contextId, asked.contextId);
    assert.equal(done.state, 'completed');
    assert.equal(done.text, 'you said the red one');
  },

  async 'stream-ask'(peer) {
    const asked = assembled(await gathered(peer.stream(say('ask'))));
    assert.equal(asked.state, 'input-required');
    const done = assembled(await gathered(peer.stream({ ...say('the red one'), taskId: asked.id })));
    assert.equal(done.id, asked.id);
    assert.equal(done.text, 'you said the red one');
  },

  async reject(peer) {
    const task = await peer.send(say('reject'));
    assert.equal(task.state, 'rejected');
    assert.equal(task.text, 'not that');
  },

  async fail(peer) {
    const task = await peer.send(say('fail'));
    assert.equal(task.state, 'failed');
    assert.equal(task.text, 'it broke');
  },

  push: (peer) => pushed(peer, { token: 'hook-token' }),
  'push-credentials': (peer) => pushed(peer, { scheme: 'Bearer', credentials: 'hook-secret' }),
  'push-both': (peer) => pushed(peer, { token: 'hook-token', scheme: 'Bearer', credentials: 'hook-secret' }),

  // Registered after the task began.
  async 'push-late'(peer) {
    const hook = await webhook();
    const name = gate();
    try {
      const { id } = await started(peer, name);
      await peer.pushCreate(id, { id: 'hook', url: hook.url, token: 'late-token' });
      await release(peer, name);
      const got = await hook.until((all) => all.some((one) => peer.pushed(one.body).state === 'completed'));
      assert.equal(tokenOf(got[0]), 'late-token');
    } finally {
      hook.close();
    }
  },

  async 'push-configs'(peer) {
    const name = gate();
    const { id } = await started(peer, name);
    const made = await peer.pushCreate(id, { id: 'one', url: 'http://127.0.0.1:9/hook', token: 't' });
    assert.equal(made.url, 'http://127.0.0.1:9/hook');
    assert.equal((await peer.pushGet(id, made.id)).url, made.url);
    if (peer.pushList) {
      assert.deepEqual((await peer.pushList(id)).map((one) => one.url), [made.url]);
      await peer.pushDelete(id, made.id);
      assert.deepEqual(await peer.pushList(id), []);
    }
    await peer.cancel(id);
  },

  async 'extended-card'(peer) {
    const card = await peer.extendedCard();
    assert.ok(card.skills.some((skill) => skill.id === 'hidden'));
  },

  async 'no-credential'(peer) {
    await refused(peer.stranger().then((one) => one.send(say('complete'))), '401', 'credentials', 'UNAUTHENTICATED', 'Body is unusable');
  },

  async 'unknown-task'(peer) {
    await refused(peer.get('no-such-task'), 'TaskNotFound', '-32001', 'not found');
    await refused(peer.cancel('no-such-task'), 'TaskNotFound', '-32001', 'not found');
  },

  async 'terminal-task'(peer) {
    const { id } = await peer.send(say('complete'));
    await refused(peer.send({ ...say('more'), taskId: id }), 'UnsupportedOperation', '-32004', 'nsupported', 'terminal', 'has ended');
  },

  async 'subscribe-terminal'(peer) {
    const { id } = await peer.send(say('complete'));
    await refused(gathered(peer.subscribe(id)), 'UnsupportedOperation', '-32004', 'nsupported', 'terminal', 'has ended',
      'Expected \'text/event-stream\''); // older ones look no further
  },

  async 'not-cancelable'(peer) {
    const { id } = await peer.send(say('complete'));
    await refused(peer.cancel(id), 'TaskNotCancelable', '-32002', 'cancel');
  },

  async 'wrong-version'(peer) {
    await refused(peer.wrongVersion(), 'VersionNotSupported', '-32009', 'VERSION_NOT_SUPPORTED', 'ersion');
  },
};
