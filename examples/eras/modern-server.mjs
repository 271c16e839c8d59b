// A server of 2026-07-28 that refuses the older revisions, on HTTP; it prints its port. What it needs to
// know it asks by "input required": the call ends, and comes again with the answers.
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

import { tell } from './transcript.mjs';

const form = { mode: 'form', message: 'Which day?', requestedSchema: {
    type: 'object', properties: { day: { type: 'string' } }, required: ['day'] } };

function make() {
    const server = new McpServer({ name: 'tables-of-2026', version: '1.0.0' });
    server.registerTool('book', { description: 'Books a table.', inputSchema: z.object({ people: z.number().int() }) },
        async ({ people }, { mcpReq }) => {
            const answer = mcpReq.inputResponses?.day;
            if (answer === undefined) {
                tell('server', `is called: book {"people":${people}}`);
                tell('server', 'answers input_required: elicitation/create "Which day?"');
                return inputRequired({ inputRequests: { day: inputRequired.elicit(form) } });
            }
            tell('server', `is called again, with ${JSON.stringify(mcpReq.inputResponses)}`);
            return { content: [{ type: 'text', text: `A table for ${people}, on ${answer.content.day}.` }] };
        });
    return server;
}

const http = createServer(toNodeHandler(createMcpHandler(make, { legacy: 'reject' })));
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.on('SIGTERM', () => process.exit(0));
