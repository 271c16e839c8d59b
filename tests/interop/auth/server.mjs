// A protected MCP server: the TypeScript SDK's own, with its own check of bearer tokens, which are JWTs of the
// provider's. With `dpop` it takes bound tokens only, and checks their proofs (RFC 9449) by jose; with `open` it asks
// for tokens only where a tool is called.
import { createHash } from 'node:crypto';

import { mcpAuthMetadataRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { EmbeddedJWK, calculateJwkThumbprint, createRemoteJWKSet, jwtVerify } from 'jose';

const say = (text) => ({ content: [{ type: 'text', text }] });

// whoami: whose token it is. write: needs a further scope.
function makeServer(auth) {
    const server = new McpServer({ name: 'protected', version: '1' });
    server.registerTool('whoami', {}, () => say(`${auth.claims.sub} by ${auth.claims.client_id} for ${auth.claims.scope}`));
    server.registerTool('write', {}, () => say('written'));
    return server;
}

async function checkProof(request, origin, claims, seen) {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (scheme !== 'DPoP') throw new InvalidTokenError('this server takes bound tokens');
    const { payload, protectedHeader } = await jwtVerify(request.headers.dpop ?? '', EmbeddedJWK, { typ: 'dpop+jwt', maxTokenAge: '60s' });
    const is_good = payload.htm === request.method && payload.htu === `${origin}/mcp` && !seen.has(payload.jti) &&
        payload.ath === createHash('sha256').update(token).digest('base64url') &&
        await calculateJwkThumbprint(protectedHeader.jwk) === claims.cnf?.jkt;
    seen.add(payload.jti);
    if (!is_good) throw new InvalidTokenError('the proof is not good');
}

export async function startServer(idp, { dpop = false, open = false } = {}) {
    const app = express();
    const http = await new Promise((resolve) => { const it = app.listen(0, '127.0.0.1', () => resolve(it)); });
    const origin = `http://127.0.0.1:${http.address().port}`;
    const url = `${origin}/mcp`;
    const keys = createRemoteJWKSet(new URL(`${idp.issuer}/jwks`));
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    const seen = new Set();
    const tokens = new Set(); // every credential that came
    const self = { url, origin, tokens, calls: 0, stop: () => new Promise((resolve) => { http.close(resolve); http.closeAllConnections(); }) };

    const verify = async (token) => {
        const { payload } = await jwtVerify(token, keys, { issuer: idp.issuer, audience: url }).catch((error) => {
            throw new InvalidTokenError(error.message);
        });
        return { token, clientId: payload.client_id, scopes: (payload.scope ?? '').split(' '), expiresAt: payload.exp,
            claims: payload };
    };
    const bearer = requireBearerAuth({ verifier: { verifyAccessToken: verify }, requiredScopes: ['weather:read'],
        resourceMetadataUrl: metadata });
    const calls = (request, response, next) => (request.body?.method === 'tools/call' ? bearer(request, response, next) : next());
    const bound = async (request, response, next) => {
        try {
            request.auth = await verify((request.headers.authorization ?? '').split(' ')[1] ?? '');
            await checkProof(request, origin, request.auth.claims, seen);
            next();
        } catch (error) {
            response.set('WWW-Authenticate', `DPoP error="invalid_token", algs="ES256", resource_metadata="${metadata}"`);
            response.status(401).json({ error: 'invalid_token', error_description: error.message });
        }
    };
    app.use(mcpAuthMetadataRouter({ resourceServerUrl: new URL(url), scopesSupported: ['weather:read'],
        oauthMetadata: await (await fetch(`${idp.issuer}/.well-known/oauth-authorization-server`)).json() }));
    app.use(express.json());
    app.use((request, response, next) => { tokens.add(request.headers.authorization ?? ''); next(); });
    app.post('/mcp', dpop ? bound : open ? calls : bearer, async (request, response) => {
        const wants = request.body?.params?.name === 'write' && request.body.method === 'tools/call';
        if (wants && !request.auth.scopes.includes('weather:write')) {
            response.set('WWW-Authenticate', `Bearer error="insufficient_scope", scope="weather:write", resource_metadata="${metadata}"`);
            return void response.status(403).json({ error: 'insufficient_scope' });
        }
        self.calls += request.body?.method === 'tools/call';
        const server = makeServer(request.auth);
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
        response.on('close', () => { transport.close(); server.close(); });
        await server.connect(transport);
        await transport.handleRequest(request, response, request.body);
    });
    app.all('/mcp', (request, response) => { response.status(405).end(); });
    return self;
}
