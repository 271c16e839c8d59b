// The provider does what the other suites rely on: without this a failure of theirs says nothing.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { authorize, claimsOf, clientCredentials, codeFlow, dpopKey, introspect, post } from './flows.mjs';
import { clients, startProvider } from './provider.mjs';

const resource = 'https://tools.acme.example/mcp';
const idp = await startProvider();
const opaque = await startProvider({ opaque: true, nonces: true });
after(() => Promise.all([idp.stop(), opaque.stop()]));

test('client credentials: a JWT for the resource', async () => {
    const { status, json } = await clientCredentials(idp, clients.machine, { resource, scope: 'weather:read' });
    assert.equal(status, 200);
    const claims = claimsOf(json.access_token);
    assert.equal(claims.aud, resource);
    assert.equal(claims.iss, idp.issuer);
    assert.equal(claims.scope, 'weather:read');
    assert.equal(claims.client_id, 'machine');
});

test('code and refresh: a person, her groups, a rotated refresh token', async () => {
    const { json } = await codeFlow(idp, { resource, scope: 'openid offline_access weather:read', login_hint: 'ann' });
    const claims = claimsOf(json.access_token);
    assert.equal(claims.sub, 'ann');
    assert.deepEqual(claims.groups, ['ops', 'staff']);
    assert.ok(json.refresh_token);
});

test('a user who refuses', async () => {
    const { answer } = await authorize(idp, { resource, scope: 'weather:read', login_hint: 'nobody' });
    assert.equal(answer.get('error'), 'access_denied');
    assert.equal(answer.get('iss'), idp.issuer);
});

test('introspection of opaque tokens', async () => {
    const { json } = await clientCredentials(opaque, clients.machine, { resource, scope: 'weather:read' });
    assert.equal(json.access_token.split('.').length, 1);
    const { json: said } = await introspect(opaque, clients.resource, json.access_token);
    assert.equal(said.active, true);
    assert.equal(said.aud, resource);
    const { json: unknown } = await introspect(opaque, clients.resource, 'made-up');
    assert.equal(unknown.active, false);
});

test('DPoP: a nonce first, then a bound token', async () => {
    const proof = await dpopKey();
    const url = `${opaque.issuer}/token`;
    const form = { grant_type: 'client_credentials', resource, scope: 'weather:read' };
    const first = await clientCredentials(opaque, clients.machine, form);
    assert.equal(first.json.token_type, 'Bearer');
    const authorization = `Basic ${Buffer.from('machine:machine%20secret%3A%20with%20a%20colon').toString('base64')}`;
    const refused = await post(url, form, { authorization, dpop: await proof('POST', url) });
    assert.equal(refused.json.error, 'use_dpop_nonce');
    const nonce = refused.headers.get('dpop-nonce');
    const bound = await post(url, form, { authorization, dpop: await proof('POST', url, { nonce }) });
    assert.equal(bound.json.token_type, 'DPoP');
});

test('token exchange and JWT bearer: for another resource, on behalf of', async () => {
    const { json: own } = await codeFlow(idp, { resource, scope: 'weather:read', login_hint: 'bob' });
    const token_type = 'urn:ietf:params:oauth:token-type:access_token';
    const other = { resource: 'https://other.example/', scope: 'notes.read' };
    const exchanged = await clientCredentials(idp, clients.machine, { ...other,
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', subject_token: own.access_token,
        subject_token_type: token_type });
    assert.equal(exchanged.json.issued_token_type, token_type);
    assert.equal(claimsOf(exchanged.json.access_token).aud, 'https://other.example/');
    assert.equal(claimsOf(exchanged.json.access_token).on_behalf_of, 'bob');
    const bearer = await clientCredentials(idp, clients.machine, { ...other,
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: own.access_token });
    assert.equal(claimsOf(bearer.json.access_token).on_behalf_of, 'bob');
});

test('registration', async () => {
    const response = await fetch(`${idp.issuer}/reg`, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ client_name: 'x', application_type: 'native', token_endpoint_auth_method: 'none',
            redirect_uris: ['http://127.0.0.1:7/callback'], grant_types: ['authorization_code'] }) });
    assert.equal(response.status, 201);
    assert.ok((await response.json()).client_id);
});
