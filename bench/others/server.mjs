// A minimal server on @modelcontextprotocol/server: one tool, the same answer as our example's.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool(
        'get_weather',
        {
            description: 'Current conditions for a city.',
            inputSchema: z.object({ location: z.string(), note: z.string().optional() })
        },
        async ({ location }) => ({ content: [{ type: 'text', text: `17 degrees, cloudy in ${location}` }] })
    );
    return server;
});

const server = createServer(toNodeHandler(handler));
server.keepAliveTimeout = 60000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
