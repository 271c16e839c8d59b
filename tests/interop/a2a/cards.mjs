// Signed cards between the official SDK and ours, each way: what one signs the other believes, and
// what was changed on the way neither does. Canonical forms are compared too.
//
//   node cards.mjs CARD_TOOL          where @a2a-js/sdk and jose can be imported
//
// Ends with "N passed, N failed"; the exit status says the same.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as jose from 'jose';
import * as sdk from '@a2a-js/sdk';

const tool = process.argv[2];
const folder = mkdtempSync(join(tmpdir(), 'patchbay-cards-'));
let passed = 0;
let failed = 0;

function run(args, input = '') {
  const done = spawnSync(tool, args, { input, encoding: 'utf8' });
  return { ok: done.status === 0, out: done.stdout, why: done.stderr };
}

async function check(name, body) {
  try {
    await body();
    passed++;
  } catch (error) {
    failed++;
    console.log(`cards: ${name}: ${error.message}`);
  }
}

function must(condition, text) {
  if (!condition) throw new Error(text);
}

const full = {
  name: 'Cartographer',
  description: 'Draws maps: été, 東京, 🗺 and "quotes" \\ \u0007',
  supportedInterfaces: [
    { url: 'https://maps.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'maps.example:443', protocolBinding: 'GRPC', protocolVersion: '1.0', tenant: 't' },
  ],
  provider: { url: 'https://maps.example', organization: 'Maps' },
  version: '1.2.3',
  documentationUrl: 'https://maps.example/docs',
  capabilities: {
    streaming: true,
    pushNotifications: false,
    extensions: [
      { uri: 'https://x.example/e', description: 'd', required: true, params: { n: 1.5, deep: { z: [1, 'a', true] } } },
    ],
  },
  securitySchemes: { token: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } } },
  securityRequirements: [{ schemes: { token: { list: ['maps.read'] } } }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['image/png'],
  skills: [{ id: 'draw', name: 'Draw', description: 'Draws', tags: ['map'], examples: ['a map of Rome'] }],
};

// What the two rules treat differently.
const sparse = {
  name: 'Sparse',
  description: '',
  supportedInterfaces: [{ url: 'https://s.example', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }],
  version: '1',
  capabilities: {},
  securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } },
  securityRequirements: [{ schemes: { key: {} } }],
  defaultInputModes: [],
  defaultOutputModes: ['text/plain'],
  skills: [],
};

const { securitySchemes, securityRequirements, ...open } = { ...full, name: 'Open' };

async function makeKey(alg) {
  const { privateKey, publicKey } = await jose.generateKeyPair(alg, { extractable: true });
  const file = join(folder, `${alg}.pem`);
  const keys = join(folder, `${alg}.json`);
  const jwk = { ...(await jose.exportJWK(publicKey)), kid: `${alg}-1`, alg, use: 'sig' };
  writeFileSync(file, await jose.exportPKCS8(privateKey), { mode: 0o600 });
  writeFileSync(keys, JSON.stringify({ keys: [{ kty: 'oct', k: 'AAAA' }, jwk] }));
  return { alg, kid: `${alg}-1`, privateKey, publicKey, file, keys };
}

// Of a card as its own objects the SDK (1.3.0) leaves the security schemes out of the payload, in
// both roles (its issue 663): such cards are given to it as the JSON that they are.
const theirs = (card) => (card.securitySchemes ? card : sdk.AgentCard.fromJSON(card));

async function theyBelieve(text, key) {
  const verify = sdk.verifyAgentCardSignature(async (kid) => {
    must(kid === key.kid, `asked for key ${kid}`);
    return key.publicKey;
  });
  try {
    await verify(theirs(JSON.parse(text)));
    return true;
  } catch {
    return false;
  }
}

console.debug = () => {};
for (const alg of ['ES256', 'RS256']) {
  const key = await makeKey(alg);
  for (const card of [full, sparse, open]) {
    const name = `${alg}, ${card.name}`;
    await check(`${name}: ours is believed there`, async () => {
      const made = run(['sign', key.file, key.kid], JSON.stringify(card));
      must(made.ok, made.why);
      must(run(['verify', key.keys], made.out).ok, 'not even by us');
      must(await theyBelieve(made.out, key), 'it is not');
      const changed = made.out.replace(card.name, 'Somebody');
      must(!(await theyBelieve(changed, key)), 'changed, it still is');
      must(!run(['verify', key.keys], changed).ok, 'changed, we still believe it');
    });
    await check(`${name}: theirs is believed here`, async () => {
      const sign = sdk.generateAgentCardSignature(key.privateKey, { alg, kid: key.kid, typ: 'JOSE' });
      const signed = await sign(theirs(card));
      const text = JSON.stringify(card.securitySchemes ? signed : sdk.AgentCard.toJSON(signed));
      const got = run(['verify', key.keys], text);
      must(got.ok, got.why);
      must(!run(['verify', key.keys], text.replace(card.version, '9')).ok, 'changed, it still is');
    });
    await check(`${name}: the key set that we publish is theirs`, async () => {
      const mine = run(['keys', key.file, key.kid]);
      must(mine.ok, mine.why);
      const set = JSON.parse(mine.out);
      const imported = await jose.importJWK(set.keys[0], alg);
      const made = run(['sign', key.file, key.kid], JSON.stringify(card));
      must(await theyBelieve(made.out, { ...key, publicKey: imported }), 'it is not');
    });
  }
}

await check('the canonical forms are the same', async () => {
  const mine = run(['canon'], JSON.stringify(full));
  const canonical = sdk.canonicalizeAgentCard(full);
  must(mine.out === canonical, `${mine.out}\n${canonical}`);
});

rmSync(folder, { recursive: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
