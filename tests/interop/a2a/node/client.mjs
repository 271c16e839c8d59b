// A client of one generation of the JavaScript SDK: client.mjs GENERATION direct|gateway URL BINDING CASE…
// GENERATION: 1.0, 1.0-compat (1.3.0 speaking 0.3), 0.3, 0.2. A line for each case: "ok NAME" or
// "not ok NAME: why".
import { cases } from './cases.mjs';

const [generation, way, url, binding, ...wanted] = process.argv.slice(2);
const TOKEN = 'interop-token';
const SECONDS = 30;
const adapters = { '1.0': 'adapter_1_0.mjs', '1.0-compat': 'adapter_1_0.mjs', '0.3': 'adapter_0_3.mjs', '0.2': 'adapter_0_2.mjs' };

// The SDKs warn of much.
console.error = console.warn = console.info = () => {};

const { open } = await import(`./${adapters[generation]}`);
const options = { url, binding, isCompat: generation === '1.0-compat' };
const pushedOfAny = (body) => {
  const one = body.task ?? body.statusUpdate ?? body.artifactUpdate ?? body.message ?? body;
  return { id: one.taskId ?? one.id, state: one.status?.state?.replace('TASK_STATE_', '').toLowerCase() };
};
let failed = 0;
let peer;
for (const name of wanted) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no end in ${SECONDS} s`)), SECONDS * 1000); });
  try {
    peer ??= await open({ ...options, token: TOKEN });
    peer.isDirect = way === 'direct';
    if (way === 'gateway') peer.pushed = pushedOfAny;
    peer.stranger ??= () => open({ ...options, token: 'wrong' });
    await Promise.race([cases[name](peer), late]);
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not ok ${name}: ${String(error?.message ?? error).replaceAll('\n', ' ').slice(0, 400)}`);
  } finally {
    clearTimeout(timer);
  }
}
process.exit(failed ? 1 : 0);
