// A server of the handshake revisions, on standard input and output: an SDK of 2025, which knows
// nothing newer than 2025-06-18. It asks its client in the middle of a call, by a request of its own.
import { Server } from 'sdk-of-2025-06-18/server/index.js';
import { StdioServerTransport } from 'sdk-of-2025-06-18/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from 'sdk-of-2025-06-18/types.js';

import { tell } from './transcript.mjs';

const server = new Server({ name: 'tables-of-2025', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{
    name: 'book', description: 'Books a table.',
    inputSchema: { type: 'object', properties: { people: { type: 'integer' } }, required: ['people'] },
}] }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    tell('server', `is called: ${params.name} ${JSON.stringify(params.arguments)}`);
    tell('server', 'asks, while the call waits: elicitation/create "Which day?"');
    const { action, content } = await server.elicitInput({ message: 'Which day?', requestedSchema: {
        type: 'object', properties: { day: { type: 'string' } }, required: ['day'] } });
    tell('server', `hears: ${action} ${JSON.stringify(content)}`);
    return { content: [{ type: 'text', text: `A table for ${params.arguments.people}, on ${content.day}.` }] };
});
await server.connect(new StdioServerTransport());
