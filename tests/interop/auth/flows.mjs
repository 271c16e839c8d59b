// Flows against a provider by plain HTTP, as a test's own client: what a token of each kind looks like, without
// anything of ours on the way.
import { createHash, randomBytes } from 'node:crypto';

import { SignJWT, exportJWK, generateKeyPair } from 'jose';

const text = (bytes) => Buffer.from(bytes).toString('base64url');
const basic = (client) => `Basic ${Buffer.from([client.client_id, client.client_secret].map(encodeURIComponent).join(':')).toString('base64')}`;

// POSTs a form; the answer's status, fields and JSON.
export async function post(url, form, fields = {}) {
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form), headers: fields });
    return { status: response.status, headers: response.headers, json: await response.json().catch(() => undefined) };
}

export const clientCredentials = (idp, client, form) =>
    post(`${idp.issuer}/token`, { grant_type: 'client_credentials', ...form }, { authorization: basic(client) });

export const introspect = (idp, client, token) =>
    post(`${idp.issuer}/token/introspection`, { token }, { authorization: basic(client) });

// Code + PKCE, the browser included: it keeps cookies and follows redirects up to the client's own address.
export async function authorize(idp, form) {
    const verifier = text(randomBytes(32));
    const query = new URLSearchParams({ response_type: 'code', client_id: 'native', state: text(randomBytes(16)),
        redirect_uri: 'http://127.0.0.1:7/callback', code_challenge_method: 'S256',
        code_challenge: text(createHash('sha256').update(verifier).digest()), ...form });
    const cookies = new Map();
    let url = `${idp.issuer}/auth?${query}`;
    for (let hop = 0; hop < 10 && url.startsWith(idp.issuer); hop++) {
        const response = await fetch(url, { redirect: 'manual',
            headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') } });
        for (const line of response.headers.getSetCookie()) {
            const [pair] = line.split(';');
            cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
        }
        if (!response.headers.has('location')) throw new Error(`${response.status} ${await response.text()}`);
        url = new URL(response.headers.get('location'), url).href;
    }
    return { answer: new URL(url).searchParams, verifier, query };
}

export async function codeFlow(idp, form, fields = {}) {
    const { answer, verifier, query } = await authorize(idp, form);
    if (answer.has('error')) return { status: 0, json: Object.fromEntries(answer) };
    return post(`${idp.issuer}/token`, { grant_type: 'authorization_code', code: answer.get('code'), client_id: 'native',
        redirect_uri: query.get('redirect_uri'), code_verifier: verifier,
        ...(form.resource && { resource: form.resource }) }, fields);
}

// A DPoP key and its proofs (RFC 9449).
export async function dpopKey() {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const jwk = await exportJWK(publicKey);
    return (method, url, more = {}) => new SignJWT({ htm: method, htu: url, jti: text(randomBytes(12)), ...more })
        .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk }).setIssuedAt().sign(privateKey);
}

export const hashOf = (token) => text(createHash('sha256').update(token).digest());
export const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
