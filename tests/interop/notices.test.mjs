// What belongs to one caller reaches that caller and nobody else: progress, cancellation, log messages,
// updates; and what is for everybody reaches everybody.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { ListRootsRequestSchema, LoggingMessageNotificationSchema, ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { Gateway, childrenOf, connect, connectDirectly, isAlive, folder, listAll, node, probe, resetFiles, servers, until, ways, weather,
    within } from './harness.mjs';

const at = folder();
const upstreams = servers(at);
let gateway;

before(async () => {
    resetFiles(`${at}/files`);
    gateway = await Gateway.start({
        workers: 2, // so that clients meet on different loops
        mcpServers: { ...upstreams, weather, probe: { command: node, args: [probe] } },
    });
}, { timeout: 60000 });

after(async () => { await gateway?.stop(); });

const heard = async (client) => JSON.parse((await client.callTool({ name: 'probe.heard', arguments: {} })).content[0].text);

// Registers for one kind of notification, whichever generation the client is of.
function on(client, method, schema, take) {
    client.setNotificationHandler(client.isModern ? method : schema, (message) => take(message.params));
}

for (const way of Object.keys(ways)) {
    describe(way, () => {
        let client, other;
        before(async () => {
            client = await connect(way, gateway);
            other = way.endsWith('stdio') ? null : await connect(way, gateway);
        }, { timeout: 60000 });
        after(async () => { await client?.close(); await other?.close(); });

        test('progress comes to the caller whose call it is', async () => {
            const callers = [client, other].filter((one) => one !== null);
            for (const one of callers) one.arrived.length = 0;
            const answers = await within('the operations end', Promise.all(callers.flatMap((one) =>
                [4, 7].map((steps) => one.callTool(
                    { name: 'everything.trigger-long-running-operation', arguments: { duration: 0.4, steps } },
                    ...(one.isModern ? [] : [undefined]),
                    { onprogress: () => {} })))));
            for (const answer of answers) assert.match(answer.content[0].text, /completed/);
            const wanted = [4, 7].flatMap((total) => Array.from({ length: total }, (_, i) => `${i + 1}/${total}`)).sort();
            for (const one of callers) {
                const told = one.arrived.filter((message) => message.method === 'notifications/progress').map(({ params }) => params);
                assert.deepEqual(told.map(({ progress, total }) => `${progress}/${total}`).sort(), wanted);
                for (const token of new Set(told.map(({ progressToken }) => progressToken))) {
                    const steps = told.filter(({ progressToken }) => progressToken === token).map(({ progress }) => progress);
                    assert.deepEqual(steps, Array.from({ length: steps.length }, (_, i) => i + 1)); // in order
                    assert.ok(one.arrived.some(({ id, result }) => id === token && result), 'the token of an own call');
                }
            }
        });

        test('no progress without a token', async () => {
            const answer = await client.callTool(
                { name: 'everything.trigger-long-running-operation', arguments: { duration: 0.1, steps: 3 } });
            assert.match(answer.content[0].text, /completed/);
        });

        test('cancelling a call cancels it at its server, and no other call', async () => {
            const mark = `cancel ${way}`;
            const stop = new AbortController();
            const stays = client.callTool({ name: 'probe.wait', arguments: { ms: 700, message: 'I stayed' } });
            const gone = client.callTool({ name: 'probe.hang', arguments: { mark } },
                ...(client.isModern ? [] : [undefined]), { signal: stop.signal });
            gone.catch(() => {});
            await until('the call is there', async () => (await heard(client)).started.includes(mark));
            stop.abort('enough');
            await assert.rejects(within('the caller is told', gone));
            await until('the server heard of it', async () => (await heard(client)).cancelled.includes(mark));
            assert.equal((await stays).content[0].text, 'I stayed');
        });

        test('a client that leaves cancels its calls, and takes a gateway of its own with it', async () => {
            const mark = `left ${way}`;
            const leaver = await connect(way, gateway);
            leaver.callTool({ name: 'probe.hang', arguments: { mark } }).catch(() => {});
            if (way.endsWith('stdio')) {
                const { pid } = leaver.transport;
                await until('the call is there', async () => (await heard(leaver)).started.includes(mark));
                const family = [pid, ...childrenOf(pid)];
                assert.ok(family.length > 4, 'its gateway started the servers');
                await leaver.close();
                await until('all its processes are gone', () => family.every((one) => !isAlive(one)));
                return;
            }
            await until('the call is there', async () => (await heard(client)).started.includes(mark));
            if (way === 'legacy http') await leaver.transport.terminateSession();
            await leaver.close();
            await until('the server heard of it', async () => (await heard(client)).cancelled.includes(mark));
        });

        test('reads text and blob resources, listed and by template', async () => {
            const straight = await connectDirectly(upstreams.everything);
            const strip = (text) => text.replace(/\d+:\d+:\d+ [AP]M/g, '-');
            for (const uri of ['demo://resource/static/document/features.md', 'demo://resource/dynamic/text/3',
                'demo://resource/dynamic/blob/2']) {
                const wanted = (await straight.readResource({ uri })).contents;
                const came = (await client.readResource({ uri })).contents;
                assert.equal(came.length, wanted.length);
                assert.equal(came[0].uri, uri);
                assert.deepEqual(Object.keys(came[0]).sort(), Object.keys(wanted[0]).sort());
                const open = (one) => strip(one.text ?? Buffer.from(one.blob, 'base64').toString());
                assert.equal(open(came[0]), open(wanted[0]));
            }
            await straight.close();
            await assert.rejects(client.readResource({ uri: 'demo://resource/dynamic/text/none' }));
            await assert.rejects(client.readResource({ uri: 'nobody://has/this' }));
        });

        test('gets prompts and completes their arguments', async () => {
            const straight = await connectDirectly(upstreams.everything);
            const strip = (value) => JSON.stringify(value).replace(/\d+:\d+:\d+ [AP]M/g, '-');
            for (const [name, args] of [['simple-prompt', undefined], ['args-prompt', { city: 'Zürich', state: 'ZH' }],
                ['completable-prompt', { department: 'Sales', name: 'David' }],
                ['resource-prompt', { resourceType: 'Text', resourceId: '2' }]]) {
                const wanted = await straight.getPrompt({ name, arguments: args });
                const came = await client.getPrompt({ name: `everything.${name}`, arguments: args });
                assert.equal(strip(came.messages), strip(wanted.messages));
            }
            for (const [ref, argument, context] of [
                [{ type: 'ref/prompt', name: 'completable-prompt' }, { name: 'department', value: 'S' }, undefined],
                [{ type: 'ref/prompt', name: 'completable-prompt' }, { name: 'name', value: 'A' }, { arguments: { department: 'Engineering' } }],
                [{ type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }, { name: 'resourceId', value: '1' }, undefined],
            ]) {
                const wanted = await straight.complete({ ref, argument, context });
                const came = await client.complete({
                    ref: ref.name ? { ...ref, name: `everything.${ref.name}` } : ref, argument, context });
                assert.deepEqual(came.completion, wanted.completion);
            }
            await straight.close();
        });

        test('log messages of a call come to its caller, from the wanted level on', async () => {
            const levels = ['debug', 'info', 'warning', 'error'];
            const seen = [client, other].filter((one) => one !== null).map((one) => {
                const told = [];
                on(one, 'notifications/message', LoggingMessageNotificationSchema, (params) => told.push(params));
                return told;
            });
            let meta;
            if (client.isModern) meta = { 'io.modelcontextprotocol/logLevel': 'warning' };
            else await client.setLoggingLevel('warning');
            const mark = `log ${way}`;
            await client.callTool({ name: 'probe.log', arguments: { levels, mark }, ...(meta ? { _meta: meta } : {}) });
            await until('the error is told', () => seen[0].some((one) => one.data === `error ${mark}`));
            assert.deepEqual(seen[0].filter((one) => one.data.endsWith(mark)).map((one) => one.level), ['warning', 'error']);
            for (const told of seen.slice(1)) assert.deepEqual(told.filter((one) => one.data.endsWith(mark)), []);
        });

        test('updates of a resource come to who subscribed', async () => {
            const uri = `demo://resource/dynamic/text/${1 + Object.keys(ways).indexOf(way)}`;
            const mine = [], others = [];
            let subscription;
            on(client, 'notifications/resources/updated', ResourceUpdatedNotificationSchema, (params) => mine.push(params.uri));
            if (other) on(other, 'notifications/resources/updated', ResourceUpdatedNotificationSchema, (params) => others.push(params.uri));
            if (client.isModern) {
                subscription = await within('listening', client.listen({ resourceSubscriptions: [uri] }));
                assert.deepEqual(subscription.honoredFilter.resourceSubscriptions, [uri]);
            } else {
                await client.subscribeResource({ uri });
            }
            try {
                await client.callTool({ name: 'everything.toggle-subscriber-updates', arguments: {} }); // on
                await until('an update came', () => mine.length > 0);
                assert.deepEqual([...new Set(mine)], [uri]);
                assert.deepEqual(others.filter((one) => one === uri), []);
            } finally {
                await client.callTool({ name: 'everything.toggle-subscriber-updates', arguments: {} }); // off
                if (subscription) await subscription.close();
                else await client.unsubscribeResource({ uri });
            }
        });

        test('a list that changes is announced, and is another list then', async () => {
            const told = { tools: 0, resources: 0 };
            let subscription;
            on(client, 'notifications/tools/list_changed', ToolListChangedNotificationSchema, () => { told.tools += 1; });
            on(client, 'notifications/resources/list_changed', ResourceListChangedNotificationSchema, () => { told.resources += 1; });
            if (client.isModern) subscription = await client.listen({ toolsListChanged: true, resourcesListChanged: true });
            const has = async () => (await listAll(client, 'listTools', 'tools')).some((tool) => tool.name === 'probe.grown');
            assert.equal(await has(), false);
            await client.callTool({ name: 'probe.grow', arguments: { wanted: true } });
            await until('it is announced', () => told.tools > 0);
            await until('the tool is listed', has);
            assert.equal((await client.callTool({ name: 'probe.grown', arguments: {} })).content[0].text, 'grown');
            const before = told.tools;
            await client.callTool({ name: 'probe.grow', arguments: { wanted: false } });
            await until('it is announced again', () => told.tools > before);
            await until('the tool is gone', async () => !(await has()));

            const name = `notices-${way.replace(' ', '-')}`;
            await client.callTool({ name: 'everything.gzip-file-as-resource', arguments: { name, data: 'data:text/plain,hello' } });
            await until('a new resource is announced', () => told.resources > 0);
            const uri = `demo://resource/session/${name}`;
            await until('it is listed', async () => (await listAll(client, 'listResources', 'resources')).some((one) => one.uri === uri));
            assert.equal((await client.readResource({ uri })).contents[0].mimeType, 'application/gzip');
            if (subscription) await subscription.close();
        });

        test('a request of a server to its client is refused, not lost', async () => {
            const { content } = await within('an answer', client.callTool({ name: 'probe.ask', arguments: {} }));
            assert.match(content[0].text, /^refused: .*\w/);
        });

        test('many calls at once: each caller gets its own answers', async () => {
            const callers = [client, other].filter((one) => one !== null);
            const jobs = callers.flatMap((one, who) => Array.from({ length: 40 }, async (_, index) => {
                const message = `${way} ${who} ${index}`;
                const { content } = await one.callTool({ name: 'everything.echo', arguments: { message } });
                assert.equal(content[0].text, `Echo: ${message}`);
            }));
            await within('all answers', Promise.all(jobs), 30000);
        });
    });
}

// A client that can be asked has a session of its own with each server: what its calls do there it sees and hears, and
// nobody else does.
for (const way of Object.keys(ways).filter((one) => one.startsWith('legacy'))) {
    test(`${way}: a client that can be asked sees and hears what its own calls do`, async () => {
        const client = await connect(way, gateway, '', { roots: {}, sampling: {}, elicitation: {} });
        const other = await connect('legacy http', gateway);
        client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [] }));
        const told = { tools: 0, updates: [] }, others = [];
        on(client, '', ToolListChangedNotificationSchema, () => { told.tools += 1; });
        on(client, '', ResourceUpdatedNotificationSchema, (params) => told.updates.push(params.uri));
        on(other, '', ResourceUpdatedNotificationSchema, (params) => others.push(params.uri));
        const has = async (one) => (await listAll(one, 'listTools', 'tools')).some((tool) => tool.name === 'probe.grown');
        const uri = `demo://resource/dynamic/text/${31 + Object.keys(ways).indexOf(way)}`;
        await client.subscribeResource({ uri });
        await client.callTool({ name: 'everything.toggle-subscriber-updates', arguments: {} });
        await until('an update came', () => told.updates.length > 0);
        assert.deepEqual([...new Set(told.updates)], [uri]);
        const before = told.tools;
        await client.callTool({ name: 'probe.grow', arguments: { wanted: true } });
        await until('it is announced', () => told.tools > before);
        await until('the tool is listed', () => has(client));
        assert.equal(await has(other), false);
        assert.equal((await client.callTool({ name: 'probe.grown', arguments: {} })).content[0].text, 'grown');
        await assert.rejects(other.callTool({ name: 'probe.grown', arguments: {} }));
        assert.deepEqual(others, []);
        await client.close();
        await other.close();
    });
}

test('every page of a list', async () => {
    const paged = await Gateway.start({ limits: { pageSize: 3 }, mcpServers: { ...upstreams, weather } });
    const client = await connect('legacy http', paged);
    const names = new Set((await listAll(await connect('legacy http', gateway), 'listTools', 'tools')).map((tool) => tool.name)
        .filter((name) => !name.startsWith('probe.')));
    const first = (await client.listTools()).tools.length;
    assert.ok(first > 0 && first <= 3, `${first} tools`); // a page does not go on from one server to the next
    const all = (await listAll(client, 'listTools', 'tools')).map((tool) => tool.name);
    assert.deepEqual(all.toSorted(), [...names].sort());
    await assert.rejects(client.listTools({ cursor: 'made up' }), (error) => error.code === -32602);
    await client.close();
    await paged.stop();
});

test('one server at an address of its own, under its own names', async () => {
    for (const way of ['legacy http', 'modern http']) {
        const client = await connect(way, gateway, '/everything');
        const tools = (await listAll(client, 'listTools', 'tools')).map((tool) => tool.name);
        assert.ok(tools.includes('echo') && !tools.some((name) => name.includes('.')), tools.join());
        assert.equal((await client.callTool({ name: 'echo', arguments: { message: 'm' } })).content[0].text, 'Echo: m');
        await client.close();
    }
});
