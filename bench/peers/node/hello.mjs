// A server on the TypeScript SDK with one tool that greets: on stdin and stdout, or, given a port, on
// stateless HTTP that answers in JSON.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const inputSchema = z.object({ name: z.string() });

function make() {
    const server = new McpServer({ name: 'hello', version: '1.0.0' });
    server.registerTool('hello', { description: 'Greets somebody.', inputSchema },
        async ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}` }] }));
    return server;
}

const [port] = process.argv.slice(2);
if (port === undefined) {
    serveStdio(make);
} else {
    const server = createServer(toNodeHandler(createMcpHandler(make, { responseMode: 'json' })));
    server.keepAliveTimeout = 60000;
    server.listen(Number(port), '127.0.0.1');
}
