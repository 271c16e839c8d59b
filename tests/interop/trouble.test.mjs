// Servers that die, hang, never start or print garbage; a gateway that is told to reload or to end.
// Each call is answered exactly once, the other servers go on, and nothing is left behind.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { join } from 'node:path';

import { Gateway, LegacyPoster, Lines, childrenOf, connect, folder, isAlive, listAll, modernRequest, node, patchbay, probe, resetFiles, servers,
    until, weather, within } from './harness.mjs';

const probeServer = { command: node, args: [probe], restart: { minDelay: '100ms', maxDelay: '1s' } };

function upstreams() {
    const at = folder();
    resetFiles(join(at, 'files'));
    return servers(at);
}

// Runs `count` jobs, at most `width` at once.
async function spread(count, width, job) {
    let next = 0;
    await Promise.all(Array.from({ length: width }, async () => {
        while (next < count) await job(next++);
    }));
}

const CALLS = 1000;

test('kill -9 of a server in the middle of 1,000 calls over HTTP', async () => {
    const gateway = await Gateway.start({ mcpServers: { ...upstreams(), weather, probe: probeServer } });
    const poster = await LegacyPoster.open(gateway.url);
    const bystander = () => modernRequest(gateway.url, 'by', 'tools/call',
        { name: 'weather.get_weather', arguments: { location: 'Oslo' } });
    const call = (id, name = 'probe.echo') => (id % 2 === 0 ? poster.request.bind(poster) : modernRequest.bind(null, gateway.url))(
        id, 'tools/call', { name, arguments: { message: `m${id}` } });
    await spread(50, 10, call); // what is opened once is open now
    await bystander();
    const quiet = async () => {
        const held = gateway.held();
        await new Promise((resolve) => setTimeout(resolve, 50));
        const again = gateway.held();
        return JSON.stringify(held) === JSON.stringify(again) ? held : null;
    };
    const held = await until('it is quiet', quiet);
    const victim = (await gateway.server('probe')).pid;

    const answers = { good: 0, failed: 0 };
    let killed = false;
    await spread(CALLS, 25, async (id) => {
        if (id === CALLS / 2) { killed = true; process.kill(victim, 'SIGKILL'); }
        const { messages } = await within(`an answer to call ${id}`, call(id), 60000);
        assert.equal(messages.length, 1, `call ${id} has one answer`);
        const message = JSON.parse(messages[0]);
        assert.equal(message.id, id);
        if (message.result?.content?.[0]?.text === `m${id}`) answers.good += 1;
        else {
            assert.ok(killed, `call ${id} failed before the kill: ${messages[0]}`);
            assert.ok(message.error ?? message.result.isError, messages[0]);
            answers.failed += 1;
        }
        if (id % 100 === 0) assert.match((await bystander()).messages[0], /Oslo, Norway/);
    });
    assert.equal(answers.good + answers.failed, CALLS);
    assert.ok(answers.good >= CALLS / 2 - 25, JSON.stringify(answers));

    const back = await until('the server is back', async () => {
        const one = await gateway.server('probe');
        return one.state === 'ready' && one.pid !== victim ? one : null;
    });
    assert.ok(back.restarts >= 1);
    assert.match((await call(5000)).messages.at(-1), /m5000/);
    await until('as many descriptors and children as before', async () => {
        const now = await quiet();
        return now && now.descriptors <= held.descriptors && now.children === held.children;
    });
    await gateway.stop();
});

test('kill -9 of a server in the middle of 1,000 calls over stdio', async () => {
    const gateway = await Gateway.start({ mcpServers: { weather } }); // only for its file
    gateway.write({ mcpServers: { ...upstreams(), weather, probe: probeServer } });
    const lines = new Lines(patchbay, ['stdio', '-c', gateway.file]);
    await lines.handshake();
    await lines.request('warm', 'tools/call', { name: 'probe.echo', arguments: { message: 'warm' } });
    const victim = childrenOf(lines.child.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('probe.mjs'));
    assert.ok(victim);
    let good = 0, failed = 0;
    await spread(CALLS, 50, async (id) => {
        if (id === CALLS / 2) process.kill(victim, 'SIGKILL');
        const message = JSON.parse(await lines.request(id, 'tools/call', { name: 'probe.echo', arguments: { message: `m${id}` } }));
        if (message.result?.content?.[0]?.text === `m${id}`) good += 1;
        else { assert.ok(message.error ?? message.result.isError); failed += 1; }
    });
    assert.equal(good + failed, CALLS);
    await until('the server is back', async () => {
        const id = `back ${Date.now()}`;
        return (await lines.request(id, 'tools/call', { name: 'probe.echo', arguments: { message: 'back' } })).includes('"back"');
    });
    for (const [id, times] of lines.count) assert.equal(times, 1, `answers to ${id}`);
    const ended = new Promise((resolve) => lines.child.on('exit', (code) => resolve(code)));
    lines.close();
    assert.equal(await within('the end of input ends it', ended), 0);
    await gateway.stop();
});

test('a server that hangs, one that cannot start, one that prints garbage: the others go on', async () => {
    const broken = {
        hangs: { command: 'sleep', args: ['1000'] },
        missing: { command: '/nonexistent/program' },
        ends: { command: 'false' },
        garbage: { command: 'yes', args: ['this is {no} JSON'] },
        elsewhere: { url: 'http://127.0.0.1:1/mcp' },
    };
    const gateway = await Gateway.start({ mcpServers: { ...broken, ...upstreams(), weather } }, { settled: false });
    for (const way of ['legacy http', 'modern http']) {
        const client = await connect(way, gateway);
        const names = await until('the others are listed', async () => {
            const all = (await listAll(client, 'listTools', 'tools')).map((tool) => tool.name);
            return ['everything.echo', 'filesystem.read_file', 'memory.read_graph', 'weather.get_weather']
                .every((name) => all.includes(name)) ? all : null;
        });
        if (way === 'legacy http') { // the first list: it came while the gateway still waits for the one that hangs
            assert.equal((await gateway.server('hangs')).state, 'starting');
        }
        assert.ok(!names.some((name) => Object.keys(broken).some((server) => name.startsWith(`${server}.`))));
        const { content } = await client.callTool({ name: 'everything.echo', arguments: { message: 'here' } });
        assert.equal(content[0].text, 'Echo: here');
        for (const server of ['missing', 'ends', 'elsewhere']) {
            let failed;
            try {
                failed = (await within(`an answer about ${server}`, client.callTool({ name: `${server}.anything`, arguments: {} }))).isError;
            } catch (error) {
                failed = error.code !== undefined;
            }
            assert.ok(failed, server);
        }
        await client.close();
    }
    for (const name of ['missing', 'ends', 'elsewhere']) {
        const one = await gateway.serverState(name, 'backoff', 'open', 'starting');
        if (one.state !== 'starting') assert.ok(one.error.length > 0, JSON.stringify(one));
    }
    for (const name of ['everything', 'filesystem', 'memory', 'weather']) {
        const one = await gateway.serverState(name, 'ready');
        assert.ok(one.tools > 0 && one.pid > 0 && typeof one.revision === 'string', JSON.stringify(one));
    }
    assert.notEqual((await gateway.server('hangs')).state, 'ready');
    assert.notEqual((await gateway.server('garbage')).state, 'ready');
    await gateway.stop();
});

test('what is asked in the first moment, before a server has answered, is not lost', async () => {
    const gateway = await Gateway.start({ mcpServers: { weather } }); // only for its file
    const { everything } = upstreams();
    gateway.write({ mcpServers: { everything, weather } });
    const uri = 'demo://resource/dynamic/text/1';
    const first = {
        call: async (client) => (await client.callTool({ name: 'everything.echo', arguments: { message: 'm' } })).content[0].text === 'Echo: m',
        list: async (client) => (await client.listTools()).tools.length > 10,
        read: async (client) => (await client.readResource({ uri })).contents[0].uri === uri,
        prompt: async (client) => (await client.getPrompt({ name: 'everything.simple-prompt' })).messages.length === 1,
        complete: async (client) => (await client.complete({ ref: { type: 'ref/prompt', name: 'everything.completable-prompt' },
            argument: { name: 'department', value: 'S' } })).completion.values.includes('Sales'),
        subscribe: async (client) => (client.isModern
            ? (await client.listen({ resourceSubscriptions: [uri] })).honoredFilter.resourceSubscriptions[0] === uri
            : Object.keys(await client.subscribeResource({ uri })).length === 0),
    };
    for (const way of ['legacy stdio', 'modern stdio']) {
        for (const [what, ask] of Object.entries(first)) {
            const client = await connect(way, gateway);
            assert.ok(await within(`${way}: ${what}`, ask(client)), `${way}: ${what}`);
            await client.close();
        }
    }
    await gateway.stop();
});

test('SIGHUP adds and removes a server under load without dropping a call', async () => {
    const base = { ...upstreams(), probe: probeServer };
    const gateway = await Gateway.start({ mcpServers: base });
    const client = await connect('legacy http', gateway);
    const poster = await LegacyPoster.open(gateway.url);
    let running = true, count = 0;
    const load = Promise.all(Array.from({ length: 4 }, async (_, who) => {
        while (running) {
            const id = `${who} ${count++}`;
            const send = who % 2 === 0 ? poster.request.bind(poster) : modernRequest.bind(null, gateway.url);
            const { messages } = await within('an answer', send(id, 'tools/call', { name: 'probe.echo', arguments: { message: id } }));
            assert.equal(messages.length, 1);
            assert.equal(JSON.parse(messages[0]).result?.content[0].text, id, messages[0]);
        }
    }));
    const slow = client.callTool({ name: 'probe.wait', arguments: { ms: 1500, message: 'through it all' } });
    const pid = (await gateway.server('probe')).pid;
    const lists = async (name) => (await listAll(client, 'listTools', 'tools')).some((tool) => tool.name === name);
    const reload = (config) => { gateway.write(config); gateway.child.kill('SIGHUP'); };

    assert.equal(await lists('weather.get_weather'), false);
    reload({ mcpServers: { ...base, weather } });
    await until('the new server is listed', () => lists('weather.get_weather'));
    assert.match((await client.callTool({ name: 'weather.get_weather', arguments: { location: 'Oslo' } })).content[0].text, /Oslo/);
    const { memory, ...less } = base;
    assert.ok(memory);
    assert.equal(await lists('memory.read_graph'), true);
    reload({ mcpServers: { ...less, weather } });
    await until('the old server is gone', async () => !(await lists('memory.read_graph')));
    assert.equal(await gateway.server('memory'), undefined);
    reload({ mcpServers: { ...less, weather }, nonsense: true }); // a faulty file changes nothing
    await until('the faulty file is reported', () => /nonsense/.test(gateway.log));
    assert.equal(await lists('weather.get_weather'), true);
    assert.equal((await slow).content[0].text, 'through it all');
    running = false;
    await load;
    assert.ok(count > 20, `${count} calls`);
    assert.equal((await gateway.server('probe')).pid, pid, 'a server that did not change was not started anew');
    await client.close();
    await gateway.stop();
});

test('SIGTERM lets the calls under way end, takes no new ones, leaves no child', async () => {
    const gateway = await Gateway.start({ mcpServers: { ...upstreams(), probe: probeServer } });
    const client = await connect('legacy http', gateway);
    const poster = await LegacyPoster.open(gateway.url);
    const state = await gateway.state();
    const pids = state.servers.map((one) => one.pid);
    const answers = ['first', 'second'].map((message) =>
        poster.request(message, 'tools/call', { name: 'probe.wait', arguments: { ms: 1000, message } }));
    const modern = modernRequest(gateway.url, 'third', 'tools/call', { name: 'probe.wait', arguments: { ms: 1000, message: 'third' } });
    await new Promise((resolve) => setTimeout(resolve, 300)); // they are on their way
    gateway.child.kill('SIGTERM');
    for (const [index, answer] of [...answers, modern].entries()) {
        assert.match((await within('an answer while draining', answer)).messages[0], new RegExp(['first', 'second', 'third'][index]));
    }
    await gateway.stop();
    await assert.rejects(fetch(`http://127.0.0.1:${gateway.port}/healthz`));
    for (const pid of pids) assert.equal(isAlive(pid), false, `process ${pid} is gone`);
    await client.close();
});
