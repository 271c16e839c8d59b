// The gateway as a resource server, with tokens of an identity provider that nobody here wrote, and with the
// client of the TypeScript SDK, which finds the way to log in by itself.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';

import { clientCredentials, codeFlow, dpopKey, hashOf } from './flows.mjs';
import { clients, startProvider } from './provider.mjs';

const build = process.env.BAY_BUILD_DIR;
const at = mkdtempSync(join(tmpdir(), 'patchbay-auth-'));
process.on('exit', () => rmSync(at, { recursive: true, force: true }));

let idp;
let opaque;
let rsa;
let gateway;

// A gateway on a free port, in front of one server of the examples.
async function startGateway(auth, more = {}) {
    const file = join(at, 'patchbay.json');
    writeFileSync(file, JSON.stringify({ listen: '127.0.0.1:0', auth, ...more,
        mcpServers: { weather: { command: join(build, 'examples', 'weather') } } }));
    const child = spawn(join(build, 'patchbay'), ['serve', '-c', file], { stdio: ['ignore', 'inherit', 'pipe'] });
    const self = { child, log: '' };
    process.on('exit', () => child.kill('SIGKILL'));
    const ended = new Promise((resolve) => child.on('exit', resolve));
    self.stop = async () => { child.kill('SIGTERM'); await ended; };
    self.url = await new Promise((resolve, reject) => {
        child.stderr.setEncoding('utf8').on('data', (text) => {
            self.log += text;
            const found = /http:\/\/127\.0\.0\.1:\d+/.exec(self.log);
            if (found) resolve(found[0]);
        });
        ended.then(() => reject(new Error(`the gateway ended: ${self.log}`)));
    });
    return self;
}

before(async () => {
    idp = await startProvider();
    rsa = await startProvider({ algorithm: 'RS256' });
    opaque = await startProvider({ opaque: true });
    gateway = await startGateway({
        issuers: {
            idp: { url: idp.issuer, type: 'at+jwt' },
            rsa: { url: rsa.issuer },
            opaque: { url: opaque.issuer,
                introspection: { clientId: clients.resource.client_id, clientSecret: clients.resource.client_secret } },
        },
        dpop: 'accept',
    }, { profiles: { scoped: { servers: ['weather'],
        auth: { issuers: { idp: { url: idp.issuer } }, scopes: ['weather:read'] } } } });
});
after(() => Promise.all([idp.stop(), rsa.stop(), opaque.stop(), gateway.stop()]));

const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' }, 'io.modelcontextprotocol/clientCapabilities': {} };

// tools/list of a stateless client.
async function list(fields, path = '/mcp') {
    const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'content-type': 'application/json',
        accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list',
        ...fields }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }) });
    return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '',
        headers: response.headers, json: await response.json().catch(() => undefined) };
}

const machineToken = async (provider, form) =>
    (await clientCredentials(provider, clients.machine, { scope: 'weather:read', ...form })).json.access_token;
const bearer = (token) => ({ authorization: `Bearer ${token}` });

test('without a token: 401, and metadata that leads to the provider', async () => {
    const { status, challenge } = await list({});
    assert.equal(status, 401);
    const [, url] = /resource_metadata="([^"]+)"/.exec(challenge);
    const metadata = await (await fetch(url)).json();
    assert.equal(metadata.resource, `${gateway.url}/mcp`);
    assert.deepEqual(metadata.authorization_servers, [idp.issuer, rsa.issuer, opaque.issuer]);
});

test('tokens of machines and people, ES256 and RS256', async () => {
    const resource = `${gateway.url}/mcp`;
    for (const provider of [idp, rsa]) {
        const { status, json } = await list(bearer(await machineToken(provider, { resource })));
        assert.equal(status, 200);
        assert.ok(json.result.tools.length > 0);
    }
    const { json } = await codeFlow(idp, { resource, scope: 'openid weather:read', login_hint: 'ann' });
    assert.equal((await list(bearer(json.access_token))).status, 200);
    // the ID token of the same login is no access token
    assert.equal((await list(bearer(json.id_token))).status, 401);
    assert.ok(idp.requests.filter((line) => line === 'GET /jwks').length === 1, 'its keys are fetched once');
});

test('a token for another endpoint or service is refused', async () => {
    for (const resource of [`${gateway.url}/mcp/weather`, 'https://other.example/mcp']) {
        const { status, challenge } = await list(bearer(await machineToken(idp, { resource })));
        assert.equal(status, 401);
        assert.match(challenge, /error="invalid_token"/);
    }
    assert.equal((await list(bearer(await machineToken(idp, { resource: `${gateway.url}/mcp/weather` })),
        '/mcp/weather')).status, 200);
});

test('opaque tokens are asked about', async () => {
    const resource = `${gateway.url}/mcp`;
    const token = await machineToken(opaque, { resource });
    assert.equal((await list(bearer(token))).status, 200);
    const before = opaque.requests.length;
    assert.equal((await list(bearer(token))).status, 200);
    assert.equal(opaque.requests.length, before, 'the answer is remembered');
    assert.equal((await list(bearer('made-up'))).status, 401);
    assert.equal((await list(bearer(await machineToken(opaque, { resource: 'https://other.example/mcp' })))).status, 401);
});

test('DPoP: a bound token needs its proof, each proof counts once', async () => {
    const resource = `${gateway.url}/mcp`;
    const proof = await dpopKey();
    const url = `${idp.issuer}/token`;
    const { json } = await codeFlow(idp, { resource, scope: 'weather:read', login_hint: 'bob' },
        { dpop: await proof('POST', url) });
    assert.equal(json.token_type, 'DPoP');
    const token = json.access_token;
    const ath = hashOf(token);
    const fields = async (more = { ath }, target = resource) =>
        ({ authorization: `DPoP ${token}`, dpop: await proof('POST', target, more) });
    const good = await fields();
    assert.equal((await list(good)).status, 200);
    const again = await list(good);
    assert.equal(again.status, 401);
    assert.match(again.challenge, /DPoP error="invalid_dpop_proof"/);
    assert.equal((await list(bearer(token))).status, 401);
    assert.equal((await list(await fields({ ath: hashOf('x') }))).status, 401);
    assert.equal((await list(await fields({ ath }, `${gateway.url}/other`))).status, 401);
    const other = await dpopKey();
    assert.equal((await list({ authorization: `DPoP ${token}`, dpop: await other('POST', resource, { ath }) })).status, 401);
    assert.equal((await list(await fields())).status, 200);
});

test('a scope that a profile needs is named, and enough once it is granted', async () => {
    const resource = `${gateway.url}/mcp/@scoped`;
    const lacking = await list(bearer(await machineToken(idp, { resource, scope: 'notes.read' })), '/mcp/@scoped');
    assert.equal(lacking.status, 403);
    assert.match(lacking.challenge, /error="insufficient_scope"/);
    assert.match(lacking.challenge, /scope="weather:read"/);
    assert.equal((await list(bearer(await machineToken(idp, { resource })), '/mcp/@scoped')).status, 200);
});

test('the TypeScript SDK logs in by itself, by client credentials', async () => {
    const client = new Client({ name: 'c', version: '1' });
    const authProvider = new ClientCredentialsProvider({ clientId: clients.machine.client_id,
        clientSecret: clients.machine.client_secret, scope: 'weather:read', expectedIssuer: idp.issuer });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp/@scoped`), { authProvider }));
    assert.ok((await client.listTools()).tools.some((tool) => tool.name === 'weather.get_weather'));
    await client.close();
});

test('no token is in the log', () => {
    assert.doesNotMatch(gateway.log, /eyJ|made-up/);
});
