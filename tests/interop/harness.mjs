// What the suites share: a gateway in front of servers from npm, clients of both generations on every
// transport, and ways to wait for a state instead of for a time.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as LegacyStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio';

process.setMaxListeners(0);
const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, 'node_modules', '@modelcontextprotocol');
export const node = process.execPath;
export const build = process.env.BAY_BUILD_DIR;
export const patchbay = join(build, 'patchbay');
export const probe = join(here, 'probe.mjs');
export const inspector = join(packages, 'inspector', 'clients', 'launcher', 'build', 'index.js');

// What every process is given: little, and the same, for the servers are asked for it.
const environment = Object.fromEntries(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'ASAN_OPTIONS', 'UBSAN_OPTIONS',
    'TSAN_OPTIONS']
    .filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]));

// ---- folders and waiting -----------------------------------------------------------------------

export function folder() {
    const path = mkdtempSync(join(tmpdir(), 'patchbay-interop-'));
    process.on('exit', () => rmSync(path, { recursive: true, force: true }));
    return path;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits until `check` returns something true, and returns it.
export async function until(what, check, ms = 20000) {
    const deadline = Date.now() + ms;
    for (;;) {
        const value = await check();
        if (value) return value;
        if (Date.now() > deadline) throw new Error(`in ${ms} ms it did not happen: ${what}`);
        await pause(20);
    }
}

// Rejects when `promise` takes longer: a lost answer must fail its test, not hang the suite.
export function within(what, promise, ms = 20000) {
    let timer;
    return Promise.race([
        promise,
        new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`in ${ms} ms: ${what}`)), ms); }),
    ]).finally(() => clearTimeout(timer));
}

// ---- processes ---------------------------------------------------------------------------------

export function childrenOf(pid) {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
        readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number));
}

export function isAlive(pid) {
    try {
        return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
        return false;
    }
}

// ---- servers -----------------------------------------------------------------------------------

// The files that the filesystem server serves, the same before every run.
export function resetFiles(root) {
    mkdirSync(root, { recursive: true });
    for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true, force: true });
    mkdirSync(join(root, 'sub', 'deep'), { recursive: true });
    writeFileSync(join(root, 'a.txt'), 'one\ntwo\nthree\nfour\n');
    writeFileSync(join(root, 'unicode é.txt'), 'naïve ☃ \u{1F600} "quoted" \\ back\u2028slash\tTab\n');
    writeFileSync(join(root, 'sub', 'b.md'), '# B\n\ntext\n');
    writeFileSync(join(root, 'sub', 'deep', 'c.json'), '{"n": 9007199254740993, "d": 0.1000}\n');
    writeFileSync(join(root, 'pixel.png'), Buffer.from(
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC', 'base64'));
}

// command, args and env of the servers from npm; `at` is their folder.
export function servers(at) {
    mkdirSync(join(at, 'files'), { recursive: true });
    const script = (name, ...args) => ({ command: node, args: [join(packages, name, 'dist', 'index.js'), ...args] });
    return {
        everything: { ...script('server-everything', 'stdio'), env: { GZIP_ALLOWED_DOMAINS: '' } },
        filesystem: script('server-filesystem', join(at, 'files')),
        memory: { ...script('server-memory'), env: { MEMORY_FILE_PATH: join(at, 'memory.jsonl') } },
    };
}

export const weather = { command: join(build, 'examples', 'weather') };

// ---- the gateway -------------------------------------------------------------------------------

export class Gateway {
    // `config`: all of the file but `listen`.
    static async start(config, { settled = true } = {}) {
        const self = new Gateway();
        self.at = folder();
        self.file = join(self.at, 'patchbay.json');
        self.write(config);
        self.child = spawn(patchbay, ['serve', '-c', self.file], { stdio: ['ignore', 'inherit', 'pipe'], env: environment });
        self.log = '';
        self.child.stderr.setEncoding('utf8').on('data', (text) => { self.log += text; });
        self.ended = new Promise((resolve) => {
            self.child.on('exit', (code, signal) => { self.exit = { code, signal }; resolve(self.exit); });
        });
        process.on('exit', () => self.child.kill('SIGKILL'));
        try {
            self.port = await until('the gateway listens', () => {
                if (self.exit) throw new Error('it ended');
                return self.#listening();
            });
            if (settled) await until('the gateway is ready', async () => (await self.state()).http === 200);
        } catch (error) {
            throw new Error(`${error.message}\n${self.log}`);
        }
        return self;
    }

    write(config) {
        writeFileSync(this.file, JSON.stringify({ listen: '127.0.0.1:0', ...config }, null, 2));
    }

    // The port of the listening socket that belongs to the process: known before a server is settled.
    #listening() {
        const inodes = new Set();
        for (const fd of this.#links('fd')) {
            const inode = /^socket:\[(\d+)\]$/.exec(fd)?.[1];
            if (inode) inodes.add(inode);
        }
        for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)) {
            const words = line.trim().split(/\s+/);
            if (words[3] === '0A' && inodes.has(words[9])) return parseInt(words[1].split(':')[1], 16);
        }
        return 0;
    }

    #links(what) {
        const path = `/proc/${this.child.pid}/${what}`;
        return readdirSync(path).map((name) => {
            try { return readlinkSync(join(path, name)); } catch { return ''; }
        });
    }

    get url() { return `http://127.0.0.1:${this.port}/mcp`; }
    get sseUrl() { return `http://127.0.0.1:${this.port}/sse`; }

    async state() {
        const response = await fetch(`http://127.0.0.1:${this.port}/readyz`);
        return { http: response.status, ...(await response.json()) };
    }

    async server(name) { return (await this.state()).servers.find((one) => one.name === name); }

    async serverState(name, ...states) {
        return until(`${name} is ${states.join(' or ')}`, async () => {
            const one = await this.server(name);
            return one && states.includes(one.state) ? one : null;
        });
    }

    // What the process holds: descriptors and children.
    held() {
        return { descriptors: this.#links('fd').length, children: childrenOf(this.child.pid).length };
    }

    async stop() {
        if (!this.exit) this.child.kill('SIGTERM');
        const exit = await within('the gateway ends', this.ended, 30000);
        if (exit.code !== 0) throw new Error(`the gateway ended with ${JSON.stringify(exit)}\n${this.log}`);
        return exit;
    }
}

// ---- clients -----------------------------------------------------------------------------------

const identity = { name: 'interop', version: '1.0.0' };

function legacy(transport, capabilities = {}) {
    return { client: new LegacyClient(identity, { capabilities }), transport };
}
function modern(transport) {
    const options = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
    return { client: new ModernClient(identity, options), transport };
}
const stdioOf = (gateway) =>
    ({ command: patchbay, args: ['stdio', '-c', gateway.file], env: environment, stderr: 'ignore' });

// Every way a client reaches the gateway. `stdio` starts a gateway of its own with the same file.
export const ways = {
    'legacy http': (gateway, path = '', capabilities) => legacy(new LegacyHttp(new URL(gateway.url + path)), capabilities),
    'legacy sse': (gateway, path, capabilities) => legacy(new SSEClientTransport(new URL(gateway.sseUrl)), capabilities),
    'legacy stdio': (gateway, path, capabilities) => legacy(new LegacyStdio(stdioOf(gateway)), capabilities),
    'modern http': (gateway, path = '') => modern(new ModernHttp(new URL(gateway.url + path))),
    'modern stdio': (gateway) => modern(new ModernStdio(stdioOf(gateway))),
};

export async function connect(way, gateway, path, capabilities) {
    const { client, transport } = ways[way](gateway, path, capabilities);
    await within(`${way} connects`, client.connect(transport), 40000);
    client.isModern = way.startsWith('modern');
    // What really arrived: the clients lose progress that is read together with the answer it precedes.
    client.arrived = [];
    const deliver = transport.onmessage;
    transport.onmessage = (message, ...more) => {
        client.arrived.push(message);
        return deliver.call(transport, message, ...more);
    };
    return client;
}

// Straight to a server, without the gateway; one that shows tools by what its client can be asked shows all,
// as it does to the gateway's shared session.
export async function connectDirectly(server, capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }) {
    const client = new LegacyClient(identity, { capabilities });
    await client.connect(new LegacyStdio(
        { command: server.command, args: server.args, env: { ...environment, ...server.env }, stderr: 'ignore' }));
    return client;
}

// All pages of a list.
export async function listAll(client, method, key) {
    const all = [];
    let cursor;
    do {
        const page = await client[method](cursor === undefined ? undefined : { cursor });
        all.push(...page[key]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return all;
}

// ---- raw messages: the bytes themselves ----------------------------------------------------------

// A process that is spoken to line by line.
export class Lines {
    constructor(command, args, env = {}) {
        this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...environment, ...env } });
        this.waiting = new Map();
        this.count = new Map();
        this.others = [];
        this.child.stdin.on('error', () => {});
        process.on('exit', () => this.child.kill('SIGKILL'));
        // By hand: readline would also end a line at U+2028.
        let rest = '';
        this.child.stdout.setEncoding('utf8').on('data', (text) => {
            const lines = (rest + text).split('\n');
            rest = lines.pop();
            for (const line of lines) this.#take(line);
        });
    }

    #take(line) {
        const id = JSON.parse(line).id;
        if (id === undefined) { this.others.push(line); return; }
        this.count.set(id, (this.count.get(id) ?? 0) + 1);
        this.waiting.get(id)?.(line);
    }

    send(message) { this.child.stdin.write(JSON.stringify(message) + '\n'); }

    request(id, method, params) {
        const answer = new Promise((resolve) => this.waiting.set(id, resolve));
        this.send({ jsonrpc: '2.0', id, method, params });
        return within(`an answer to ${method}`, answer);
    }

    async handshake() {
        await this.request('init', 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: identity });
        this.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    }

    close() { this.child.stdin.end(); }
}

const jsonHeaders = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

// One POST; the raw JSON texts of every message in its reply.
async function post(url, headers, body) {
    const response = await fetch(url, { method: 'POST', headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(body) });
    const text = await response.text();
    const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    const messages = !isStream ? [text]
        : text.split(/\r?\n\r?\n/).flatMap((event) => {
            const data = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
            return data.length === 0 ? [] : [data.map((line) => line.replace(/^data: ?/, '')).join('\n')];
        }).filter((one) => one !== '');
    return { status: response.status, session: response.headers.get('mcp-session-id'), messages };
}

export class LegacyPoster {
    static async open(url) {
        const self = new LegacyPoster();
        self.url = url;
        const opened = await post(url, {}, { jsonrpc: '2.0', id: 0, method: 'initialize',
            params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: identity } });
        self.headers = { 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Session-Id': opened.session };
        await post(url, self.headers, { jsonrpc: '2.0', method: 'notifications/initialized' });
        return self;
    }

    request(id, method, params) { return post(this.url, this.headers, { jsonrpc: '2.0', id, method, params }); }
}

export function modernRequest(url, id, method, params) {
    const name = params.name ?? params.uri;
    return post(url, { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...(name ? { 'Mcp-Name': name } : {}) },
        { jsonrpc: '2.0', id, method, params: { ...params, _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': identity,
            'io.modelcontextprotocol/clientCapabilities': {} } } });
}

// The bytes of a member of a JSON object, found without parsing what is in it.
export function rawMember(text, name) {
    for (const [key, value] of rawMembers(text)) if (key === name) return value;
    return undefined;
}

export function* rawMembers(text) {
    let depth = 0, start = -1, key;
    for (let i = 0; i < text.length; i++) {
        const c = text[i];
        if (c === '"') {
            const from = i++;
            while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
            if (depth === 1 && key === undefined) key = JSON.parse(text.slice(from, i + 1));
        } else if (c === '{' || c === '[') depth += 1;
        else if (c === ':' && depth === 1 && start < 0) start = i + 1;
        else if ((c === ',' && depth === 1) || (c === '}' && depth === 1)) {
            if (key !== undefined) yield [key, text.slice(start, i).trim()];
            key = undefined;
            start = -1;
            if (c === '}') return;
        } else if (c === '}' || c === ']') depth -= 1;
    }
}
