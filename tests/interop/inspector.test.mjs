// The Inspector's command line, a client that people debug their servers with, over HTTP and stdio.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Gateway, folder, inspector, node, patchbay, resetFiles, servers, weather } from './harness.mjs';

const at = folder();
let gateway;

before(async () => {
    resetFiles(join(at, 'files'));
    gateway = await Gateway.start({ mcpServers: { ...servers(at), weather } });
}, { timeout: 60000 });

after(async () => { await gateway?.stop(); });

async function inspect(target, ...options) {
    const { stdout } = await promisify(execFile)(node, [inspector, '--cli', ...target, ...options],
        { env: { ...process.env, HOME: at }, timeout: 60000, maxBuffer: 16 << 20 });
    return JSON.parse(stdout);
}

const targets = {
    http: () => [gateway.url, '--transport', 'http'],
    sse: () => [gateway.sseUrl, '--transport', 'sse'],
    stdio: () => [patchbay, 'stdio', '-c', gateway.file],
};

for (const [name, target] of Object.entries(targets)) {
    test(`lists tools over ${name}`, async () => {
        const { tools } = await inspect(target(), '--method', 'tools/list');
        const names = tools.map((tool) => tool.name);
        for (const wanted of ['everything.echo', 'filesystem.read_file', 'memory.read_graph', 'weather.get_weather']) {
            assert.ok(names.includes(wanted), wanted);
        }
    });

    test(`calls tools over ${name}`, async () => {
        const sum = await inspect(target(), '--method', 'tools/call', '--tool-name', 'everything.get-sum', '--tool-arg', 'a=2', 'b=3');
        assert.equal(sum.content[0].text, 'The sum of 2 and 3 is 5.');
        const city = await inspect(target(), '--method', 'tools/call', '--tool-name', 'weather.get_weather', '--tool-arg', 'location=Oslo');
        assert.match(city.content[0].text, /^Oslo/);
    });
}

test('reads resources and prompts over http', async () => {
    const { resources } = await inspect(targets.http(), '--method', 'resources/list');
    assert.ok(resources.length >= 7);
    const { contents } = await inspect(targets.http(), '--method', 'resources/read', '--uri', resources[0].uri);
    assert.equal(contents[0].uri, resources[0].uri);
    const { prompts } = await inspect(targets.http(), '--method', 'prompts/list');
    assert.ok(prompts.some((prompt) => prompt.name === 'everything.simple-prompt'));
    const { messages } = await inspect(targets.http(), '--method', 'prompts/get', '--prompt-name', 'everything.simple-prompt');
    assert.equal(messages[0].role, 'user');
});
