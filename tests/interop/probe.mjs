// A small server that can be asked what it heard: which calls were cancelled, which logging level was
// set. Written on the TypeScript SDK, so that what it hears is what any server would hear.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer({ name: 'probe', version: '1.0.0' }, { capabilities: { logging: {} } });
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
const heard = { started: [], cancelled: [] };

server.registerTool('hang', { description: 'Answers only when it is cancelled.', inputSchema: { mark: z.string() } },
    async ({ mark }, extra) => {
        heard.started.push(mark);
        await new Promise((resolve) => extra.signal.addEventListener('abort', resolve));
        heard.cancelled.push(mark);
        return text('cancelled');
    });
server.registerTool('heard', { description: 'What this server heard.' }, async () => text(JSON.stringify(heard)));
server.registerTool('echo', { description: 'Says it again.', inputSchema: { message: z.string() } },
    async ({ message }) => text(message));
server.registerTool('wait', { description: 'Answers after a while.', inputSchema: { ms: z.number(), message: z.string() } },
    async ({ ms, message }) => {
        await new Promise((resolve) => setTimeout(resolve, ms));
        return text(message);
    });
server.registerTool('log', { description: 'Logs one message of each level given.',
    inputSchema: { levels: z.array(z.string()), mark: z.string() } },
    async ({ levels, mark }, extra) => {
        for (const level of levels) {
            await extra.sendNotification({ method: 'notifications/message', params: { level, logger: 'probe', data: `${level} ${mark}` } });
        }
        return text('logged');
    });
server.registerTool('ask', { description: 'Asks its client to sample, and says what came of it.' }, async (extra) => {
    try {
        const message = { role: 'user', content: { type: 'text', text: 'hello' } };
        const answer = await extra.sendRequest({ method: 'sampling/createMessage', params: { messages: [message], maxTokens: 1 } }, z.any());
        return text(`answered: ${JSON.stringify(answer)}`);
    } catch (error) {
        return text(`refused: ${error.message}`);
    }
});
const extra = server.registerTool('grown', { description: 'Is there only after grow was called.' }, async () => text('grown'));
extra.disable();
server.registerTool('grow', { description: 'Adds the tool "grown", or removes it.', inputSchema: { wanted: z.boolean() } },
    async ({ wanted }) => {
        if (wanted) extra.enable(); else extra.disable();
        return text('done');
    });

await server.connect(new StdioServerTransport());
