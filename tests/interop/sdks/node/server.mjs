// What the servers of both generations have in common; see ../run for what is asked of them.
import * as z from 'zod';

const pixel = Buffer.from('\x89PNG\r\n\x1a\nnot really', 'latin1').toString('base64');

export const say = (text) => ({ content: [{ type: 'text', text }] });

export const question = {
    elicit: { mode: 'form', message: 'Who are you?', requestedSchema: {
        type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
    sample: { maxTokens: 10, messages: [{ role: 'user', content: { type: 'text', text: 'Say something' } }] },
};

export function addCommon(server, { ResourceTemplate, completable }) {
    server.registerTool('echo', { description: 'Says it again.', inputSchema: z.object({ text: z.string() }) },
        async ({ text }) => say(text));
    server.registerTool('sum', { description: 'Adds two numbers.',
        inputSchema: z.object({ left: z.number().int(), right: z.number().int() }), outputSchema: z.object({ sum: z.number() }) },
    async ({ left, right }) => ({ ...say(String(left + right)), structuredContent: { sum: left + right } }));
    server.registerTool('fail', { description: 'Always fails.' }, async () => { throw new Error('it cannot be done'); });
    server.registerTool('image', { description: 'Answers with an image.' },
        async () => ({ content: [{ type: 'image', data: pixel, mimeType: 'image/png' }] }));
    const one = (uri, content) => ({ contents: [{ uri: String(uri), ...content }] });
    server.registerResource('note', 'peer://note', { mimeType: 'text/plain' },
        async (uri) => one(uri, { mimeType: 'text/plain', text: 'a note, naïve ☃' }));
    server.registerResource('pixel', 'peer://pixel', { mimeType: 'image/png' },
        async (uri) => one(uri, { mimeType: 'image/png', blob: pixel }));
    server.registerResource('item', new ResourceTemplate('peer://item/{id}', { list: undefined }), { mimeType: 'text/plain' },
        async (uri, { id }) => one(uri, { mimeType: 'text/plain', text: `item ${id}` }));
    const names = (start) => ['Ada', 'Alan', 'Grace'].filter((name) => name.startsWith(start ?? ''));
    const argsSchema = { name: completable(z.string(), names) };
    server.registerPrompt('greet', { argsSchema: server.wantsObjects ? z.object(argsSchema) : argsSchema },
        ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}` } }] }));
}
