// The official conformance suite's tests of authorization servers, against the gateway's own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';

import { Browser } from './browser.mjs';
import { freePort, register, startProxy } from './proxy.mjs';

const suite = fileURLToPath(new URL('node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url));
const results = mkdtempSync(join(tmpdir(), 'patchbay-suite-'));
let gateway;
before(async () => { gateway = await startProxy(); });
after(async () => {
    await gateway.stop();
    rmSync(results, { recursive: true, force: true });
});

// The checks of all scenarios that ran.
function* checks(folder = results) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) yield* checks(path);
        else if (entry.name === 'checks.json') yield* JSON.parse(readFileSync(path));
    }
}

test('the suite finds no fault', async () => {
    const port = await freePort();
    const client = await register(`${gateway.base}/oauth/register`,
        { client_name: 'suite', redirect_uris: [`http://127.0.0.1:${port}/callback`] });
    const child = spawn(process.execPath, [suite, 'authorization', '--url', gateway.base, '--client-id', client.client_id,
        '--resource', `${gateway.base}/mcp`, '--port', String(port), '-o', results], { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '', page;
    for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text) => {
            said += text;
            const url = /^(http\S+\/oauth\/authorize\S+)$/m.exec(said);
            if (url && !page) page = new Browser().open(url[1]).catch((error) => { said += error.stack; child.kill(); });
        });
    }
    const code = await new Promise((resolve) => child.on('close', resolve));
    await page;
    const all = [...checks()].map(({ id, status, errorMessage }) => ({ id, status, errorMessage }));
    assert.deepEqual(all.filter(({ status }) => status !== 'SUCCESS'), [], said);
    const passed = all.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id);
    assert.ok(passed.includes('authorization-code-grant') && passed.includes('authorization-server-metadata'), said);
    assert.equal(code, 0, said);
});
