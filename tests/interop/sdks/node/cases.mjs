// Cases of a client, for both generations of the TypeScript SDK. What differs between them is in
// `way`: see legacy.mjs and modern.mjs.
import assert from 'node:assert/strict';

export const MODERN = '2026-07-28';
const PNG = Buffer.from('\x89PNG', 'latin1');

export class Skip extends Error {}

// An answer to a form: every property a value of its type.
function filled(schema) {
    const values = { boolean: true, integer: 42, number: 42, string: 'Ada' };
    return Object.fromEntries(Object.entries(schema.properties ?? {})
        .filter(([, one]) => one.type in values).map(([name, one]) => [name, one.enum?.[0] ?? values[one.type]]));
}

// What the client answers to questions, and which it was asked.
export function answers(asked) {
    return {
        elicit: ({ params }) => {
            asked.push('elicitation');
            return { action: 'accept', content: filled(params.requestedSchema) };
        },
        sample: () => {
            asked.push('sampling');
            return { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'sampled words' } };
        },
        roots: () => {
            asked.push('roots');
            return { roots: [{ uri: 'file:///interop', name: 'interop' }] };
        },
    };
}

export function within(what, promise, ms = 10000) {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`it did not come: ${what}`)), ms); });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// The messages that arrived, by method; a case waits for one of them.
class Arrived {
    constructor() { this.messages = []; this.wake = () => {}; }

    take(message) { this.messages.push(message); this.wake(); }

    of(method) { return this.messages.filter((one) => one.method === method); }

    forget() { this.messages.length = 0; }

    async until(method, count = 1) {
        return within(method, (async () => {
            while (this.of(method).length < count) await new Promise((resolve) => { this.wake = resolve; });
            return this.of(method);
        })());
    }
}

async function asks(one, what, holds, ...names) {
    const there = names.filter((name) => one.tools.has(name));
    if (there.length === 0) throw new Skip(`the server has none of ${names.join(', ')}`);
    for (const name of there) {
        one.asked.length = 0;
        const result = await one.call(name, { message: 'Who?', prompt: 'Say something' });
        assert.ok(!result.isError, `${name}: ${JSON.stringify(result)}`);
        assert.deepEqual(one.asked, [what], name);
        assert.ok(result.content[0].text.includes(holds), `${name}: ${JSON.stringify(result)}`);
    }
}

async function allPages(list, key) {
    const all = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? undefined : { cursor });
        all.push(...page[key]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return all;
}

const cases = {
    revision: (one) => assert.equal(one.way.revisionOf(one.client), one.revision),
    'tools-list': async (one) => {
        for (const tool of await allPages((p) => one.client.listTools(p), 'tools')) one.tools.set(tool.name, tool);
        assert.ok(one.tools.has('test_simple_text'));
    },
    'content-text': async (one) => {
        const result = await one.call('test_simple_text');
        assert.ok(!result.isError && result.content.length === 1 && result.content[0].text.length > 0);
    },
    'content-image': async (one) => {
        const [image] = (await one.call('test_image_content')).content;
        assert.equal(image.mimeType, 'image/png');
        assert.ok(Buffer.from(image.data, 'base64').subarray(0, 4).equals(PNG));
    },
    'content-audio': async (one) => {
        const [audio] = (await one.call('test_audio_content')).content;
        assert.equal(audio.type, 'audio');
        assert.equal(audio.mimeType, 'audio/wav');
    },
    'content-embedded': async (one) => {
        const [part] = (await one.call('test_embedded_resource')).content;
        assert.ok(part.type === 'resource' && part.resource.text.length > 0);
    },
    'content-mixed': async (one) => {
        const result = await one.call('test_multiple_content_types');
        assert.deepEqual(result.content.map((part) => part.type), ['text', 'image', 'resource']);
    },
    structured: async (one) => assert.ok('count' in (await one.call('test_every_content')).structuredContent),
    'tool-error': async (one) => assert.equal((await one.call('test_error_handling')).isError, true),
    'unknown-tool': async (one) => { await assert.rejects(one.client.callTool({ name: 'no_such_tool', arguments: {} })); },
    'header-argument': async (one) => {
        const result = await one.call('test_x_mcp_header', { region: 'eu-west-é' });
        assert.ok(result.content[0].text.includes('eu-west-é'), JSON.stringify(result));
    },
    progress: async (one) => {
        one.arrived.forget(); // the SDK may lose progress that is read together with the answer
        await one.call('test_tool_with_progress', {}, { onprogress: () => {} });
        const seen = await one.arrived.until('notifications/progress', 3);
        assert.deepEqual(seen.map(({ params }) => [params.progress, params.total]), [[0, 100], [50, 100], [100, 100]]);
    },
    logging: async (one) => {
        if (!one.tools.has('test_tool_with_logging')) throw new Skip('the server has no such tool');
        if (one.revision !== MODERN) await one.client.setLoggingLevel('debug');
        one.arrived.forget();
        const meta = one.revision === MODERN ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {};
        await one.client.callTool({ name: 'test_tool_with_logging', arguments: {}, ...meta });
        await one.arrived.until('notifications/message', 3);
    },
    cancel: async (one) => {
        const stop = new AbortController();
        await assert.rejects(one.call('test_tool_with_progress', {}, { onprogress: () => stop.abort(), signal: stop.signal }));
        await one.call('test_simple_text');
    },
    'resources-list': async (one) => {
        const found = (await allPages((p) => one.client.listResources(p), 'resources')).map(({ uri }) => uri);
        const templates = (await allPages((p) => one.client.listResourceTemplates(p), 'resourceTemplates'))
            .map(({ uriTemplate }) => uriTemplate);
        assert.ok(found.includes('test://static-text') && templates.includes('test://template/{id}/data'));
    },
    'resource-text': async (one) => {
        const [part] = (await one.client.readResource({ uri: 'test://static-text' })).contents;
        assert.ok(part.mimeType === 'text/plain' && part.text.length > 0);
    },
    'resource-blob': async (one) => {
        const [part] = (await one.client.readResource({ uri: 'test://static-binary' })).contents;
        assert.ok(Buffer.from(part.blob, 'base64').subarray(0, 4).equals(PNG));
    },
    'resource-template': async (one) => {
        const [part] = (await one.client.readResource({ uri: 'test://template/a%20b/data' })).contents;
        assert.ok(part.text.includes('"a b"'), part.text);
    },
    'resource-missing': async (one) => { await assert.rejects(one.client.readResource({ uri: 'test://nothing' })); },
    subscribe: async (one) => {
        const uri = 'test://watched-resource';
        one.arrived.forget();
        const end = await one.way.subscribe(one.client, uri);
        await one.call('test_trigger_resource_change');
        const [message] = await one.arrived.until('notifications/resources/updated');
        assert.equal(message.params.uri, uri);
        await end();
    },
    'list-changed': async (one) => {
        for (const kind of ['tool', 'prompt', 'resource']) {
            one.arrived.forget();
            const end = await one.way.listen(one.client, { [`${kind}sListChanged`]: true });
            await one.call(`test_trigger_${kind}_change`);
            await one.arrived.until(`notifications/${kind}s/list_changed`);
            await end();
        }
    },
    'prompts-list': async (one) => {
        const found = (await allPages((p) => one.client.listPrompts(p), 'prompts')).map(({ name }) => name);
        assert.ok(found.includes('test_prompt_with_arguments'));
    },
    'prompt-arguments': async (one) => {
        const result = await one.client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: '"two"' } });
        assert.match(result.messages[0].content.text, /one.*"two"/);
    },
    'prompt-content': async (one) => {
        const embedded = await one.client.getPrompt(
            { name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://given' } });
        const image = await one.client.getPrompt({ name: 'test_prompt_with_image' });
        assert.equal(embedded.messages[0].content.resource.uri, 'test://given');
        assert.equal(image.messages[0].content.type, 'image');
    },
    completion: async (one) => {
        const result = await one.client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
            argument: { name: 'arg1', value: 'par' } });
        assert.ok(result.completion.values.includes('paris'));
    },
    elicitation: (one) => asks(one, 'elicitation', '', 'test_elicitation', 'test_elicitation_sep1034_defaults',
        'test_input_required_result_elicitation'),
    sampling: (one) => asks(one, 'sampling', 'sampled words', 'test_sampling', 'test_input_required_result_sampling'),
    roots: (one) => asks(one, 'roots', '', 'test_roots', 'test_list_roots', 'test_input_required_result_list_roots'),
    'several-rounds': async (one) => {
        one.asked.length = 0;
        const result = await one.call('test_input_required_result_multi_round');
        assert.deepEqual(one.asked, ['elicitation', 'elicitation']);
        assert.ok(!result.isError && result.content[0].text.length > 0, JSON.stringify(result));
    },
    'several-at-once': async (one) => {
        one.asked.length = 0;
        const result = await one.call('test_input_required_result_multiple_inputs');
        assert.deepEqual(one.asked.toSorted(), ['elicitation', 'roots', 'sampling']);
        assert.ok(!result.isError && result.content[0].text.length > 0, JSON.stringify(result));
    },
    ping: async (one) => {
        if (one.revision === MODERN) throw new Skip('the revision has no ping');
        await one.client.ping();
    },
    close: (one) => one.client.close(),
};

// `way`: connect(revision, target, asked) -> {client, transport}, call, revisionOf, subscribe, listen.
export async function runClient(way, revision, target) {
    const asked = [];
    const { client, transport } = await way.connect(revision, target, asked);
    const arrived = new Arrived();
    const deliver = transport.onmessage;
    transport.onmessage = (message, ...more) => {
        arrived.take(message);
        return deliver.call(transport, message, ...more);
    };
    const one = { way, revision, client, asked, arrived, tools: new Map() };
    one.call = (name, given = {}, options) => {
        if (!one.tools.has(name)) throw new Skip(`the server has no tool ${name}`);
        return way.call(client, { name, arguments: given }, options);
    };
    let failed = 0;
    for (const [name, run] of Object.entries(cases)) {
        try {
            await within(`the end of ${name}`, (async () => run(one))(), 20000);
            console.log(`ok ${name}`);
        } catch (error) {
            if (error instanceof Skip) {
                console.log(`skip ${name}: ${error.message}`);
            } else {
                failed += 1;
                console.log(`not ok ${name}: ${String(error.message).replace(/\s+/g, ' ')}`);
            }
        }
    }
    process.exit(Math.min(failed, 1));
}
