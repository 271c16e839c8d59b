// A gateway that is an authorization server in front of the provider, with one server of the examples, and what
// `more` (at, idp) adds to its configuration.
//
//   const gateway = await startProxy();
//   gateway.base, gateway.log, await gateway.stop()
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startProvider } from './provider.mjs';

export async function freePort() {
    const server = http.createServer();
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    await new Promise((resolve) => server.close(resolve));
    return port;
}

export async function register(url, metadata) {
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' },
        body: JSON.stringify(metadata) });
    return response.json();
}

export async function startProxy(more = () => ({})) {
    const build = process.env.BAY_BUILD_DIR;
    const at = mkdtempSync(join(tmpdir(), 'patchbay-proxy-'));
    const idp = await startProvider();
    const base = `http://127.0.0.1:${await freePort()}`;
    const web = await register(`${idp.issuer}/reg`, { redirect_uris: [`${base}/login/callback`],
        grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'client_secret_basic' });
    const file = join(at, 'patchbay.json');
    const added = await more(at, idp);
    writeFileSync(file, JSON.stringify({ listen: base.slice(7), auth: { issuers: { idp: { url: idp.issuer } },
        login: { issuer: 'idp', clientId: web.client_id, clientSecret: web.client_secret },
        proxy: { enabled: true, scopes: ['weather:read', 'weather:write'] } },
        ...added, mcpServers: { weather: { command: join(build, 'examples', 'weather') }, ...added.mcpServers } }));
    const child = spawn(join(build, 'patchbay'), ['serve', '-c', file], { stdio: ['ignore', 'inherit', 'pipe'] });
    const self = { base, idp, log: '' };
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    const ended = new Promise((resolve) => child.on('exit', resolve));
    self.stop = async () => {
        child.kill('SIGTERM');
        await ended;
        process.off('exit', kill);
        await idp.stop();
        rmSync(at, { recursive: true, force: true });
    };
    await new Promise((resolve, reject) => {
        child.stderr.setEncoding('utf8').on('data', (text) => {
            self.log += text;
            if (self.log.includes(base)) resolve();
        });
        ended.then(() => reject(new Error(self.log)));
    });
    return self;
}
