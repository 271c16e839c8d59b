// The first generation of the TypeScript SDK against ours, in both roles. The cases and what they
// print are described in ../run.
//
//     legacy.mjs client REVISION URL
//     legacy.mjs client REVISION COMMAND…
//     legacy.mjs server [PORT]
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, SubscribeRequestSchema,
    UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';

import { answers, runClient } from './cases.mjs';
import { addCommon, question, say } from './server.mjs';

const way = {
    async connect(_revision, target, asked) {
        const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
        const client = new Client({ name: 'typescript-v1-peer', version: '1.0.0' }, { capabilities });
        const { elicit, sample, roots } = answers(asked);
        client.setRequestHandler(ElicitRequestSchema, elicit);
        client.setRequestHandler(CreateMessageRequestSchema, sample);
        client.setRequestHandler(ListRootsRequestSchema, roots);
        const transport = target[0].startsWith('http://') ? new StreamableHTTPClientTransport(new URL(target[0]))
            : new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: 'ignore' });
        const negotiate = transport.setProtocolVersion?.bind(transport);
        transport.setProtocolVersion = (version) => { client.negotiated = version; negotiate?.(version); };
        await client.connect(transport);
        return { client, transport };
    },
    call: (client, params, options) => client.callTool(params, undefined, options),
    revisionOf: (client) => client.negotiated,
    subscribe: async (client, uri) => {
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
    },
    listen: async () => async () => {},
};

function make() {
    const server = new McpServer({ name: 'typescript-v1-peer', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true } } });
    server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
    server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
    addCommon(server, { ResourceTemplate, completable });
    server.registerTool('progress', { description: 'Reports its progress, and logs.' }, async ({ _meta, sendNotification }) => {
        for (const step of [1, 2, 3]) {
            if (_meta?.progressToken === undefined) continue;
            await sendNotification({ method: 'notifications/progress',
                params: { progressToken: _meta.progressToken, progress: step, total: 3, message: `step ${step}` } });
        }
        await sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'three steps done' } });
        return say('done');
    });
    server.registerTool('touch', { description: 'Says that the note was updated.' }, async () => {
        await server.server.sendResourceUpdated({ uri: 'peer://note' });
        return say('touched');
    });
    server.registerTool('elicit', { description: 'Asks the client.' }, async () => {
        const { action, content } = await server.server.elicitInput(question.elicit);
        return say(`${action} ${content?.name}`);
    });
    server.registerTool('sample', { description: 'Asks the client.' }, async () =>
        say((await server.server.createMessage(question.sample)).content.text));
    server.registerTool('roots', { description: 'Asks the client.' }, async () =>
        say((await server.server.listRoots()).roots.map(({ uri }) => uri).join(' ')));
    return server;
}

// A transport for each session, by its id.
function serveHttp(port) {
    const sessions = new Map();
    createServer(async (request, response) => {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (transport === undefined) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport),
            });
            await make().connect(transport);
        }
        await transport.handleRequest(request, response);
    }).listen(port, '127.0.0.1');
}

const [role, ...rest] = process.argv.slice(2);
if (role === 'client') await runClient(way, rest[0], rest.slice(1));
else if (rest.length === 0) await make().connect(new StdioServerTransport());
else serveHttp(Number(rest[0]));
