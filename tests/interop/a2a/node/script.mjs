// What the agents of the suite do, by the first word of a message (SCRIPT in tests/interop/a2a/run), over
// the plain view of cases.mjs: `out` publishes it in the words of one generation of the SDK.
//
//   out.task(state, text)  out.status(state, text, parts)  out.artifact(id, name, parts, append, last)
//   out.message(text)
const RESULT = 'the result, naïve ☃';
const gates = new Map(); // name -> {promise, open}

function gate(name) {
  if (!gates.has(name)) {
    const made = {};
    made.promise = new Promise((resolve) => { made.open = resolve; });
    gates.set(name, made);
  }
  return gates.get(name);
}

const held = new Map(); // task -> how to end its wait

// A held task hears that it was canceled; anything else has ended by then.
export function cancel(taskId) { held.get(taskId)?.(); }

const acts = {
  async complete(out) {
    out.task('submitted');
    out.status('working', 'on it');
    out.artifact('result-1', 'result', [{ text: RESULT }]);
    out.status('completed', 'done');
  },
  async reply(out) { out.message('a message, naïve ☃'); },
  async parts(out, rest, parts) {
    out.task('submitted');
    out.status('completed', '', parts.slice(1));
  },
  async chunks(out) {
    out.task('submitted');
    out.status('working', 'on it');
    out.artifact('chunks-1', 'chunks', [{ text: 'one ' }], false, false);
    out.artifact('chunks-1', 'chunks', [{ text: 'two ' }], true, false);
    out.artifact('chunks-1', 'chunks', [{ text: 'three' }], true, true);
    out.status('completed', 'done');
  },
  async ask(out) {
    out.task('submitted');
    out.status('input-required', 'which one?');
  },
  async hold(out, rest, parts, taskId) {
    out.task('submitted');
    out.status('working', 'on it');
    const isCanceled = await new Promise((resolve) => {
      held.set(taskId, () => resolve(true));
      gate(rest).promise.then(() => resolve(false));
    });
    held.delete(taskId);
    if (isCanceled) {
      out.status('canceled');
      return;
    }
    out.artifact('result-1', 'result', [{ text: RESULT }]);
    out.status('completed', 'done');
  },
  async release(out, rest) {
    gate(rest).open();
    out.message('released');
  },
  async reject(out) {
    out.task('submitted');
    out.status('rejected', 'not that');
  },
  async fail(out) {
    out.task('submitted');
    out.status('working', 'on it');
    out.status('failed', 'it broke');
  },
};

// `isNew`: the message begins its task.
export async function play(out, parts, taskId, isNew) {
  const text = parts[0]?.text ?? '';
  if (!isNew) {
    out.status('completed', `you said ${text}`);
    return;
  }
  const [word, ...rest] = text.split(' ');
  await (acts[word] ?? acts.fail)(out, rest.join(' '), parts, taskId);
}
