// Every tool of three servers from npm, called by both generations of clients on every transport: the
// answer through the gateway is the answer that the server gives when it is asked directly.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { join } from 'node:path';

import { calls, onlyRaw, outcome } from './calls.mjs';
import { Gateway, LegacyPoster, Lines, connect, connectDirectly, folder, listAll, modernRequest, rawMember, resetFiles,
    servers, ways, weather } from './harness.mjs';

const at = folder();
const files = join(at, 'files');
const upstreams = servers(at);
const direct = {};
let gateway;

// The lists and answers of one server without the gateway.
async function askDirectly(name) {
    const client = await connectDirectly(upstreams[name]);
    const capabilities = client.getServerCapabilities();
    const lists = {
        tools: (await client.listTools()).tools,
        resources: capabilities.resources ? (await client.listResources()).resources : [],
        templates: capabilities.resources ? (await client.listResourceTemplates()).resourceTemplates : [],
        prompts: capabilities.prompts ? (await client.listPrompts()).prompts : [],
    };
    const outcomes = [];
    resetFiles(files);
    for (const [tool, args, tidy] of calls(at, 'direct')[name]) {
        outcomes.push(await outcome(client, tool, args, tidy));
    }
    await client.close();
    return { lists, outcomes };
}

// What a server lists for a client that can be asked nothing: `patchbay stdio` declares what its client does.
async function listBare(name) {
    const client = await connectDirectly(upstreams[name], {});
    const { tools } = await client.listTools();
    await client.close();
    return tools;
}

before(async () => {
    resetFiles(files);
    for (const name of Object.keys(upstreams)) direct[name] = { ...await askDirectly(name), bare: await listBare(name) };
    resetFiles(files);
    gateway = await Gateway.start({ mcpServers: { ...upstreams, weather } });
}, { timeout: 60000 });

after(async () => { await gateway?.stop(); });

// `execution` is of the revisions that had tasks in the core; a modern list need not carry it.
const listed = (items, strip) => items.map((item) => {
    const copy = structuredClone(item);
    for (const key of strip) delete copy[key];
    return copy;
});
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

for (const way of Object.keys(ways)) {
    describe(way, () => {
        let client;
        const strip = way.startsWith('modern') ? ['execution'] : [];
        before(async () => { client = await connect(way, gateway); }, { timeout: 60000 });
        after(async () => { await client?.close(); });

        for (const name of Object.keys(upstreams)) {
            test(`lists what ${name} has`, async () => {
                const own = ({ lists }, key) => listed(lists[key], strip);
                const tools = listed(await listAll(client, 'listTools', 'tools'), strip)
                    .filter((tool) => tool.name.startsWith(`${name}.`))
                    .map((tool) => ({ ...tool, name: tool.name.slice(name.length + 1) }));
                const wanted = way.endsWith('stdio') ? listed(direct[name].bare, strip) : own(direct[name], 'tools');
                assert.deepEqual(tools.sort(byName), wanted.sort(byName));
                const resources = new Map((await listAll(client, 'listResources', 'resources')).map((one) => [one.uri, one]));
                for (const one of direct[name].lists.resources) assert.deepEqual(resources.get(one.uri), one);
                const templates = await listAll(client, 'listResourceTemplates', 'resourceTemplates');
                for (const one of direct[name].lists.templates) {
                    assert.deepEqual(templates.find((other) => other.uriTemplate === one.uriTemplate), one);
                }
                const prompts = await listAll(client, 'listPrompts', 'prompts');
                for (const one of direct[name].lists.prompts) {
                    assert.deepEqual(prompts.find((other) => other.name === `${name}.${one.name}`),
                        { ...one, name: `${name}.${one.name}` });
                }
            });

            test(`calls every tool of ${name}`, async () => {
                const unique = way.replace(' ', '-');
                const steps = calls(at, unique)[name];
                const called = new Set([...steps.map(([tool]) => tool), ...onlyRaw[name]]);
                assert.deepEqual(direct[name].lists.tools.map((tool) => tool.name).filter((tool) => !called.has(tool)), []);
                resetFiles(files);
                const different = [];
                for (const [index, [tool, args, tidy]] of steps.entries()) {
                    const came = await outcome(client, `${name}.${tool}`, args, tidy);
                    const wanted = direct[name].outcomes[index];
                    if (came !== wanted) different.push({ tool, came: came.slice(0, 800), wanted: wanted.slice(0, 800) });
                }
                assert.deepEqual(different, []);
            });
        }

        test('calls the server in C beside them', async () => {
            const { content } = await client.callTool({ name: 'weather.get_weather', arguments: { location: 'Oslo' } });
            assert.match(content[0].text, /^Oslo, Norway: 6 °C/);
        });
    });
}

describe('byte for byte', () => {
    const steps = [
        ['everything', 'echo', { message: 'é \u{1F600} \\ " \u0001' }],
        ['everything', 'get-tiny-image', {}],
        ['everything', 'get-structured-content', { location: 'New York' }],
        ['everything', 'get-sum', { a: 1e21, b: 0.1 }],
        ['everything', 'simulate-research-query', { topic: 'plain calls' }], // wants a task: an error result
        ['filesystem', 'read_text_file', { path: join(files, 'unicode é.txt') }],
        ['filesystem', 'read_text_file', { path: join(files, 'sub', 'deep', 'c.json') }],
        ['filesystem', 'directory_tree', { path: files }],
        ['memory', 'read_graph', {}],
    ];
    const wanted = [];
    before(async () => {
        resetFiles(files);
        for (const name of Object.keys(upstreams)) {
            const lines = new Lines(upstreams[name].command, upstreams[name].args, upstreams[name].env);
            await lines.handshake();
            for (const [index, [server, tool, args]] of steps.entries()) {
                if (server === name) {
                    wanted[index] = rawMember(await lines.request(index, 'tools/call', { name: tool, arguments: args }), 'result');
                }
            }
            lines.close();
        }
    }, { timeout: 60000 });

    test('the result of a call in a session', async () => {
        const poster = await LegacyPoster.open(gateway.url);
        for (const [index, [server, tool, args]] of steps.entries()) {
            const { messages } = await poster.request(index, 'tools/call', { name: `${server}.${tool}`, arguments: args });
            assert.equal(messages.length, 1);
            assert.equal(rawMember(messages[0], 'result'), wanted[index], tool);
        }
    });

    test('the content of a stateless call', async () => {
        for (const [index, [server, tool, args]] of steps.entries()) {
            const { messages } = await modernRequest(gateway.url, index, 'tools/call', { name: `${server}.${tool}`, arguments: args });
            assert.equal(messages.length, 1);
            const result = rawMember(messages[0], 'result');
            assert.equal(rawMember(result, 'resultType'), '"complete"');
            if (tool === 'simulate-research-query') { // the stateless era has no such demand: the gateway runs the task
                assert.match(rawMember(result, 'content'), /# Research Report: plain calls/);
                continue;
            }
            for (const member of ['content', 'structuredContent', 'isError']) {
                assert.equal(rawMember(result, member), rawMember(wanted[index], member), `${tool}: ${member}`);
            }
        }
    });

    test('ids come back as they were sent', async () => {
        const poster = await LegacyPoster.open(gateway.url);
        for (const id of [1, '1', 'é "x"', 9007199254740991]) {
            const { messages } = await poster.request(id, 'tools/call', { name: 'everything.echo', arguments: { message: 'm' } });
            assert.equal(rawMember(messages[0], 'id'), JSON.stringify(id));
        }
    });
});
