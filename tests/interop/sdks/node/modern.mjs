// The second generation of the TypeScript SDK against ours, in both roles. The cases and what they
// print are described in ../run.
//
//     modern.mjs client REVISION URL
//     modern.mjs client REVISION COMMAND…
//     modern.mjs server [PORT]
import { createServer } from 'node:http';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { completable, createMcpHandler, inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { answers, MODERN, runClient } from './cases.mjs';
import { addCommon, question, say } from './server.mjs';

const way = {
    async connect(revision, target, asked) {
        const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
        const versionNegotiation = revision === MODERN ? { mode: { pin: MODERN } } : undefined;
        const client = new Client({ name: 'typescript-v2-peer', version: '1.0.0' }, { capabilities, versionNegotiation });
        const { elicit, sample, roots } = answers(asked);
        client.setRequestHandler('elicitation/create', elicit);
        client.setRequestHandler('sampling/createMessage', sample);
        client.setRequestHandler('roots/list', roots);
        const transport = target[0].startsWith('http://') ? new StreamableHTTPClientTransport(new URL(target[0]))
            : new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: 'ignore' });
        await client.connect(transport);
        client.isModern = revision === MODERN;
        return { client, transport };
    },
    call: (client, params, options) => client.callTool(params, options),
    revisionOf: (client) => client.getNegotiatedProtocolVersion(),
    subscribe: async (client, uri) => {
        if (client.isModern) return way.listen(client, { resourceSubscriptions: [uri] });
        await client.subscribeResource({ uri });
        return () => client.unsubscribeResource({ uri });
    },
    listen: async (client, filter) => {
        if (!client.isModern) return async () => {};
        const subscription = await client.listen(filter);
        return () => subscription.close();
    },
};

let handler; // on HTTP: who tells the listeners

function make() {
    const server = new McpServer({ name: 'typescript-v2-peer', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true } } });
    server.server.setRequestHandler('resources/subscribe', () => ({}));
    server.server.setRequestHandler('resources/unsubscribe', () => ({}));
    server.wantsObjects = true;
    addCommon(server, { ResourceTemplate, completable });
    server.registerTool('progress', { description: 'Reports its progress, and logs.' }, async ({ mcpReq }) => {
        const progressToken = mcpReq._meta?.progressToken;
        for (const step of [1, 2, 3]) {
            if (progressToken === undefined) continue;
            await mcpReq.notify({ method: 'notifications/progress',
                params: { progressToken, progress: step, total: 3, message: `step ${step}` } });
        }
        await mcpReq.log('info', 'three steps done');
        return say('done');
    });
    server.registerTool('touch', { description: 'Says that the note was updated.' }, async () => {
        if (handler !== undefined) handler.notify.resourceUpdated('peer://note');
        else await server.server.sendResourceUpdated({ uri: 'peer://note' });
        return say('touched');
    });
    // Tools that ask the client: written once, the SDK carries the questions as the revision wants it.
    const ask = (name, embedded, read) => server.registerTool(name, { description: 'Asks the client.' }, async ({ mcpReq }) => {
        const answer = mcpReq.inputResponses?.question;
        return answer === undefined ? inputRequired({ inputRequests: { question: embedded } }) : say(read(answer));
    });
    ask('elicit', inputRequired.elicit(question.elicit), ({ action, content }) => `${action} ${content?.name}`);
    ask('sample', inputRequired.createMessage(question.sample), ({ content }) => content.text);
    ask('roots', inputRequired.listRoots(), ({ roots }) => roots.map(({ uri }) => uri).join(' '));
    return server;
}

const [role, ...rest] = process.argv.slice(2);
if (role === 'client') {
    await runClient(way, rest[0], rest.slice(1));
} else if (rest.length === 0) {
    serveStdio(make);
} else {
    handler = createMcpHandler(make);
    createServer(toNodeHandler(handler)).listen(Number(rest[0]), '127.0.0.1');
}
