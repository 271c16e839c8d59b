// Our clients at servers that are protected by others: commands and the gateway, at a server of the TypeScript SDK
// whose tokens the provider gives.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Browser } from './browser.mjs';
import { clients, startProvider } from './provider.mjs';
import { startServer } from './server.mjs';

const patchbay = join(process.env.BAY_BUILD_DIR, 'patchbay');
const at = mkdtempSync(join(tmpdir(), 'patchbay-auth-'));
const idp = await startProvider();
const brief = await startProvider({ lifetime: 2 });
const bound = await startProvider({ nonces: true });
const server = await startServer(idp);
const briefServer = await startServer(brief);
const boundServer = await startServer(bound, { dpop: true });
after(async () => {
    await Promise.all([idp, brief, bound, server, briefServer, boundServer].map((it) => it.stop()));
    rmSync(at, { recursive: true, force: true });
});

let states = 0;
const state = () => join(at, `state-${++states}`);

// Every secret that went through our programs' outputs would be a leak.
const outputs = [];

// `page`: what the person does with what the program shows.
function run(home, words, page) {
    const env = { PATH: process.env.PATH, HOME: at, XDG_STATE_HOME: home, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '' };
    const child = spawn(patchbay, words, { stdio: ['ignore', 'pipe', 'pipe'], env });
    const said = { out: '', err: '', code: undefined };
    let shown = false;
    for (const [name, stream] of [['out', child.stdout], ['err', child.stderr]]) {
        stream.setEncoding('utf8').on('data', (text) => {
            said[name] += text;
            const place = page && !shown && /\n\n {4}(http\S+)\n/.exec(said.err);
            const is_whole = place && (page.length < 2 || /enter the code\n\n {4}(\S+)\n/.test(said.err));
            if (is_whole) {
                shown = true;
                page(place[1], /enter the code\n\n {4}(\S+)\n/.exec(said.err)?.[1]).catch((error) => { said.err += error.stack; child.kill(); });
            }
        });
    }
    return new Promise((resolve) => child.on('close', (code) => {
        outputs.push(said.out, said.err);
        resolve({ ...said, code });
    }));
}

const browse = async (url) => { await new Browser().open(url); };
const callWhoami = (home, url) => run(home, ['call', url, 'whoami']);
const tokensAt = (it) => it.requests.filter((line) => line === 'POST /token').length;

test('login: registered, in a browser; then calls, and nobody is asked again', async () => {
    const home = state();
    const none = await callWhoami(home, server.url);
    assert.equal(none.code, 8, none.err);
    const made = await run(home, ['login', server.url], browse);
    assert.equal(made.code, 0, made.err);
    const pages = idp.requests.filter((line) => line === 'GET /auth').length;
    const who = await run(home, ['whoami', server.url, '--json']);
    const said = JSON.parse(who.out);
    assert.equal(said.issuer, idp.issuer);
    assert.equal(said.claims.sub, 'ann');
    assert.equal(said.resource, server.url);
    const called = await callWhoami(home, server.url);
    assert.match(called.out, /^ann by \S+ for weather:read/, called.err);
    assert.equal(idp.requests.filter((line) => line === 'GET /auth').length, pages);
    const ended = await run(home, ['logout', server.url]);
    assert.equal(ended.code, 0, ended.err);
    assert.ok(idp.requests.includes('POST /token/revocation'));
    assert.equal((await run(home, ['whoami', server.url])).code, 8);
    assert.deepEqual(readdirSync(join(home, 'patchbay', 'logins')).filter((name) => !['key'].includes(name) && !name.endsWith('.lock')), []);
});

test('login by a code on another device', async () => {
    const home = state();
    const made = await run(home, ['login', '--device', '--client-id', 'native', server.url],
        async (url, code) => { assert.ok(code); await browse(url); });
    assert.equal(made.code, 0, made.err);
    const called = await callWhoami(home, server.url);
    assert.match(called.out, /^ann by native for /, called.err);
});

test('a person who refuses', async () => {
    const home = state();
    const made = await run(home, ['login', server.url], (url) => browse(`${url}&login_hint=nobody`));
    assert.equal(made.code, 8, made.err);
    assert.match(made.err, /access_denied/);
    assert.equal((await run(home, ['whoami', server.url])).code, 8);
});

test('tokens that expire: renewed, rotated, by one process at a time', async () => {
    const home = state();
    const made = await run(home, ['login', briefServer.url], browse);
    assert.equal(made.code, 0, made.err);
    const { expiresAt } = JSON.parse((await run(home, ['whoami', briefServer.url, '--json'])).out);
    while (Date.now() < Date.parse(expiresAt) + 1000) await new Promise((resolve) => setTimeout(resolve, 50));
    const before = tokensAt(brief);
    const all = await Promise.all([1, 2, 3, 4].map(() => callWhoami(home, briefServer.url)));
    for (const one of all) assert.match(one.out, /^ann /, one.err);
    assert.ok(tokensAt(brief) > before);
    const later = await callWhoami(home, briefServer.url);
    assert.match(later.out, /^ann /, later.err);
});

test('step-up: what lacks a scope says so, and a login with it goes on', async () => {
    const home = state();
    await run(home, ['login', server.url], browse);
    const refused = await run(home, ['call', server.url, 'write']);
    assert.notEqual(refused.code, 0);
    assert.match(refused.err, /weather:write/);
    const more = await run(home, ['login', '--scope', 'weather:read weather:write', server.url], browse);
    assert.equal(more.code, 0, more.err);
    const done = await run(home, ['call', server.url, 'write']);
    assert.match(done.out, /written/, done.err);
});

test('tokens bound to a key, with nonces of the provider', async () => {
    const home = state();
    const made = await run(home, ['login', boundServer.url], browse);
    assert.equal(made.code, 0, made.err);
    const called = await callWhoami(home, boundServer.url);
    assert.match(called.out, /^ann /, called.err);
    assert.ok([...boundServer.tokens].some((text) => text.startsWith('DPoP ')));
    assert.ok([...boundServer.tokens].every((text) => !text.startsWith('Bearer ')));
});

// ---- the gateway, as itself --------------------------------------------------------------------

function configure(name, credentials, url = server.url) {
    const file = join(at, `${name}.json`);
    writeFileSync(file, JSON.stringify({ mcpServers: { s: { url, credentials } } }));
    return file;
}

// Through a gateway on pipes, as a desktop host has it: one call.
const throughGateway = (file) => run(state(), ['call', 's.whoami', '--', patchbay, 'stdio', '-c', file]);

test('client credentials, with a secret from a file', async () => {
    writeFileSync(join(at, 'secret'), `${clients.machine.client_secret}\n`, { mode: 0o600 });
    const file = configure('secret', { clientId: 'machine', clientSecret: `\${file:${join(at, 'secret')}}`, issuer: idp.issuer,
        scope: 'weather:read' });
    const said = await throughGateway(file);
    assert.match(said.out, /by machine for weather:read/, said.err);
    const direct = await run(state(), ['call', '-c', file, 's', 'whoami']);
    assert.match(direct.out, /by machine for weather:read/, direct.err);
});

test('client credentials, with a key (private_key_jwt)', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'k1' };
    const response = await fetch(`${idp.issuer}/reg`, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ client_name: 'by key', grant_types: ['client_credentials'], response_types: [], redirect_uris: [],
            token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256', jwks: { keys: [jwk] } }) });
    const client = await response.json();
    assert.equal(response.status, 201, JSON.stringify(client));
    writeFileSync(join(at, 'key.pem'), privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
    const file = configure('key', { clientId: client.client_id, key: `\${file:${join(at, 'key.pem')}}`, keyId: 'k1', scope: 'weather:read' });
    const said = await throughGateway(file);
    assert.match(said.out, new RegExp(`by ${client.client_id} for weather:read`), said.err);
});

// ---- both halves -------------------------------------------------------------------------------

// A gateway on a free port, which asks its callers for tokens and has credentials of its own towards the server.
async function serve(settings) {
    const file = join(at, 'gateway.json');
    writeFileSync(file, JSON.stringify({ listen: '127.0.0.1:0', ...settings }));
    const child = spawn(patchbay, ['serve', '-c', file], { stdio: ['ignore', 'inherit', 'pipe'],
        env: { PATH: process.env.PATH, HOME: at, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '' } });
    const self = { log: '', ended: new Promise((resolve) => child.on('close', resolve)) };
    self.stop = () => { child.kill('SIGTERM'); return self.ended; };
    process.on('exit', () => child.kill('SIGKILL'));
    self.url = await new Promise((resolve, reject) => {
        child.stderr.setEncoding('utf8').on('data', (text) => {
            self.log += text;
            const place = /(http:\/\/127\.0\.0\.1:\d+)/.exec(self.log);
            if (place) resolve(`${place[1]}/mcp`);
        });
        child.on('close', () => reject(new Error(self.log)));
    });
    return self;
}

test('a person at the gateway, and the gateway at the server: each token where it belongs', async () => {
    const home = state();
    const before = new Set(server.tokens);
    const gateway = await serve({ auth: { issuers: { idp: { url: idp.issuer } }, scopes: ['weather:read'] },
        mcpServers: { s: { url: server.url, credentials: { clientId: 'machine', clientSecret: clients.machine.client_secret,
            scope: 'weather:read' } } } });
    const none = await run(home, ['call', gateway.url, 's.whoami']);
    assert.equal(none.code, 8, none.err);
    const made = await run(home, ['login', gateway.url], browse);
    assert.equal(made.code, 0, made.err);
    const who = JSON.parse((await run(home, ['whoami', gateway.url, '--json'])).out);
    assert.equal(who.claims.sub, 'ann');
    assert.equal(who.claims.aud, gateway.url);
    const called = await run(home, ['call', gateway.url, 's.whoami']);
    assert.match(called.out, /by machine for weather:read/, called.err);
    await gateway.stop();
    outputs.push(gateway.log);
    const news = [...server.tokens].filter((text) => text && !before.has(text));
    assert.ok(news.length > 0);
    for (const text of news) {
        const claims = JSON.parse(Buffer.from(text.split('.')[1], 'base64url').toString());
        assert.equal(claims.client_id, 'machine');
        assert.equal(claims.aud, server.url);
    }
});

test('a secret that is not good: the reason, and not the secret', async () => {
    const file = configure('wrong', { clientId: 'machine', clientSecret: 'a-wrong-secret', scope: 'weather:read' });
    const said = await run(state(), ['call', '-c', file, 's', 'whoami']);
    assert.notEqual(said.code, 0);
    assert.match(said.err, /invalid_client/);
});

test('no secret, code or token in any output', () => {
    const secrets = [clients.machine.client_secret, 'a-wrong-secret',
        ...[server, briefServer, boundServer].flatMap((it) => [...it.tokens].map((text) => text.split(' ')[1])).filter(Boolean)];
    assert.ok(secrets.length > 6);
    for (const text of outputs) for (const secret of secrets) assert.ok(!text.includes(secret));
    for (const name of readdirSync(at, { recursive: true })) {
        if (!name.includes('logins/')) continue;
        const text = readFileSync(join(at, name), 'latin1');
        for (const secret of secrets) assert.ok(!text.includes(secret), name);
    }
});
