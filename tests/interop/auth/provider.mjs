// The identity provider of these tests: oidc-provider on a free loopback port. It has code + PKCE, refresh
// tokens, client credentials, device codes, introspection, revocation, DPoP, registration, client metadata
// documents and resource indicators; token exchange and JWT bearer are small grants of this file. There is no page to click: a login
// is whoever `login_hint` names (without, `idp.options.who`, else "ann"), and consent is given, unless the hint is "nobody" (denied).
//
//   import { startProvider } from './provider.mjs';
//   const idp = await startProvider({ algorithm: 'ES256', opaque: false });
//   idp.issuer, idp.stop(), idp.requests (method and path of all that it got)
//
// or as a program: node provider.mjs '{"algorithm":"RS256"}'; prints {"issuer":…} and ends with its stdin.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import http from 'node:http';

import { exportJWK } from 'jose';
import Provider, { errors } from 'oidc-provider';

// Who can log in: what their tokens say of them.
export const people = {
    ann: { email: 'ann@acme.example', groups: ['ops', 'staff'] },
    bob: { email: 'bob@acme.example', groups: ['staff'] },
};

// Clients that are there without registration.
export const clients = {
    machine: { client_id: 'machine', client_secret: 'machine secret: with a colon', grant_types: ['client_credentials',
        'urn:ietf:params:oauth:grant-type:token-exchange', 'urn:ietf:params:oauth:grant-type:jwt-bearer'],
        redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_basic' },
    resource: { client_id: 'resource', client_secret: 'resource-server-secret', grant_types: [], redirect_uris: [],
        response_types: [], token_endpoint_auth_method: 'client_secret_basic' },
    native: { client_id: 'native', application_type: 'native', grant_types: ['authorization_code', 'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code'], redirect_uris: ['http://127.0.0.1/callback'],
        response_types: ['code'], token_endpoint_auth_method: 'none' },
};

const scopes = ['openid', 'offline_access', 'email', 'weather:read', 'weather:write', 'notes.read', 'notes.write'];

async function keyOf(algorithm) {
    const kind = { ES256: ['ec', { namedCurve: 'P-256' }], ES384: ['ec', { namedCurve: 'P-384' }],
        ES512: ['ec', { namedCurve: 'P-521' }], EdDSA: ['ed25519', {}] }[algorithm] ?? ['rsa', { modulusLength: 2048 }];
    return { ...await exportJWK(generateKeyPairSync(...kind).privateKey), alg: algorithm, use: 'sig', kid: randomUUID() };
}

// RFC 8693 and RFC 7523 as far as the clients of these tests need them: the subject's token must be one of ours.
function addGrants(provider) {
    const grant = (type, field) => provider.registerGrantType(type, async (ctx) => {
        const { client, params } = ctx.oidc;
        const subject = await provider.AccessToken.find(params[field] ?? '') ??
            await provider.ClientCredentials.find(params[field] ?? '');
        const claims = subject ?? decode(params[field]);
        if (claims === undefined) throw new errors.InvalidGrant('the token is not known here');
        const token = new provider.ClientCredentials({ client, scope: params.scope });
        token.resourceServer = new provider.ResourceServer(params.resource, resourceInfo(provider, params.resource));
        token.extra = { on_behalf_of: claims.accountId ?? claims.sub };
        ctx.oidc.entity('ClientCredentials', token);
        ctx.body = { access_token: await token.save(), token_type: token.tokenType, expires_in: token.expiration,
            ...(field === 'subject_token' && { issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }) };
    }, [field, `${field}_type`, 'requested_token_type', 'audience', 'resource', 'scope']);
    grant('urn:ietf:params:oauth:grant-type:token-exchange', 'subject_token');
    grant('urn:ietf:params:oauth:grant-type:jwt-bearer', 'assertion');
}

// What a JWT says of itself; the tests bring only tokens that they made here.
function decode(token) {
    try {
        return JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString());
    } catch {
        return undefined;
    }
}

function resourceInfo(provider, resource) {
    return { audience: resource, scope: scopes.join(' '), ...provider.options };
}

function configuration(options, keys) {
    const format = options.opaque ? { accessTokenFormat: 'opaque' }
        : { accessTokenFormat: 'jwt', jwt: { sign: { alg: options.algorithm } } };
    return {
        jwks: { keys },
        scopes,
        clients: Object.values(clients),
        claims: { openid: ['sub'], email: ['email'] },
        cookies: { keys: [randomUUID()] },
        pkce: { required: () => true },
        ttl: { AccessToken: options.lifetime, ClientCredentials: options.lifetime, Grant: 3600, Session: 3600,
            Interaction: 600, IdToken: 600, RefreshToken: 3600, AuthorizationCode: 60, DeviceCode: 600 },
        clientDefaults: { id_token_signed_response_alg: options.algorithm },
        enabledJWA: { idTokenSigningAlgValues: [options.algorithm, ...(options.algorithm === 'RS256' ? [] : ['RS256'])] },
        rotateRefreshToken: true,
        issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
        interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
        extraTokenClaims: async (ctx, token) => ({ ...people[token.accountId], ...token.extra }),
        findAccount: async (ctx, id) => (id in people
            ? { accountId: id, claims: async () => ({ sub: id, ...people[id] }) } : undefined),
        features: {
            devInteractions: { enabled: false },
            clientCredentials: { enabled: true },
            deviceFlow: { enabled: true },
            introspection: { enabled: true },
            revocation: { enabled: true },
            registration: { enabled: true },
            registrationManagement: { enabled: true },
            dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => options.nonces },
            resourceIndicators: {
                enabled: true,
                defaultResource: async () => undefined,
                useGrantedResource: async () => true,
                getResourceServerInfo: async (ctx, resource) => {
                    if (!/^https?:/.test(resource)) throw new errors.InvalidTarget();
                    return { audience: resource, scope: scopes.join(' '), accessTokenTTL: options.lifetime, ...format };
                },
            },
        },
    };
}

// Logs in whoever the request hints at, and consents to everything it asks for.
async function interact(provider, options, request, response) {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    const hint = params.login_hint ?? options.who ?? 'ann';
    if (hint === 'nobody') {
        return provider.interactionFinished(request, response,
            { error: 'access_denied', error_description: 'the user said no' }, { mergeWithLastSubmission: false });
    }
    if (prompt.name === 'login') {
        return provider.interactionFinished(request, response, { login: { accountId: hint } },
            { mergeWithLastSubmission: false });
    }
    const grant = grantId ? await provider.Grant.find(grantId)
        : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    const { missingOIDCScope, missingResourceScopes } = prompt.details;
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
    for (const [resource, wanted] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, wanted.join(' '));
    }
    return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } },
        { mergeWithLastSubmission: true });
}

export async function startProvider(given = {}) {
    const options = { algorithm: 'ES256', opaque: false, lifetime: 600, nonces: false, ...given };
    const requests = [];
    const server = http.createServer();
    await new Promise((resolve) => server.listen(given.port ?? 0, '127.0.0.1', resolve));
    const issuer = `http://127.0.0.1:${server.address().port}`;
    const keys = [await keyOf(options.algorithm)];
    if (options.algorithm !== 'RS256') keys.push(await keyOf('RS256'));
    const provider = new Provider(issuer, configuration(options, keys));
    provider.options = options.opaque ? { accessTokenFormat: 'opaque' }
        : { accessTokenFormat: 'jwt', jwt: { sign: { alg: options.algorithm } }, accessTokenTTL: options.lifetime };
    addGrants(provider);
    const serve = provider.callback();
    server.on('request', (request, response) => {
        requests.push(`${request.method} ${request.url.split('?')[0]}`);
        if (!request.url.startsWith('/interaction/')) return void serve(request, response);
        interact(provider, options, request, response).catch((error) => {
            response.statusCode = 500;
            response.end(String(error));
        });
    });
    const stop = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
    return { issuer, provider, requests, options, stop };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
    const idp = await startProvider(JSON.parse(process.argv[2] ?? '{}'));
    process.stdout.write(`${JSON.stringify({ issuer: idp.issuer })}\n`);
    process.stdin.on('end', () => idp.stop().then(() => process.exit(0))).resume();
}
