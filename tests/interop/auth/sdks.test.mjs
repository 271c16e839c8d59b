// Clients of the Python and Go SDKs log in to the gateway by themselves: 401, metadata, registration, login and consent in
// a browser, PKCE, a call. Each is built with its own toolchain, and skipped, with the reason, where that is not here.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import http from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';

import { Browser } from './browser.mjs';
import { startProxy } from './proxy.mjs';

const build = (kind) => JSON.parse(execFileSync('python3', [join(process.env.BAY_AUTH_SOURCE, 'peer.py'), kind,
    join(import.meta.dirname, 'peers')], { encoding: 'utf8', maxBuffer: 1 << 20 }));

let gateway, callback, redirect, query;

before(async () => {
    gateway = await startProxy();
    callback = http.createServer((request, response) => {
        query = new URL(request.url, 'http://x').search.slice(1);
        response.end('done');
    });
    await new Promise((resolve) => callback.listen(0, '127.0.0.1', resolve));
    redirect = `http://127.0.0.1:${callback.address().port}/callback`;
});
after(async () => {
    callback?.close();
    await gateway?.stop();
});

for (const kind of ['python', 'go']) {
    test(`${kind}: logs in, lists and calls`, async (t) => {
        const command = build(kind);
        if (command.missing) return void t.skip(command.missing);
        const child = spawn(command[0], [...command.slice(1), `${gateway.base}/mcp`, redirect], { stdio: ['pipe', 'pipe', 'pipe'] });
        const kill = () => child.kill('SIGKILL');
        process.on('exit', kill);
        let errors = '';
        const lines = [];
        child.stderr.setEncoding('utf8').on('data', (text) => { errors += text; });
        for await (const line of createInterface({ input: child.stdout })) {
            lines.push(line);
            if (line.startsWith('open ')) {
                await new Browser().open(line.slice('open '.length));
                child.stdin.write(`${query}\n`);
            }
        }
        process.off('exit', kill);
        assert.match(lines.at(-1) ?? '', /^text .*Tokyo/, `${lines.join('\n')}\n${errors}`);
        assert.equal(lines.filter((line) => line.startsWith('open ')).length, 1);
        assert.match(lines.find((line) => line.startsWith('tools ')), /tools [1-9]/);
        assert.doesNotMatch(gateway.log, /eyJ|pb[tro]_/);
    });
}
