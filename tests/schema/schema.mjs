// Every JSON-RPC message that we send, as a server, as a gateway and as a client, in a session of each
// revision, against that revision's published schema.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Rules } from './rules.mjs';
import { Session } from './session.mjs';

const [build, schemas, here] = [process.env.BAY_BUILD_DIR, process.env.BAY_SCHEMAS, dirname(fileURLToPath(import.meta.url))];
const revisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const rules = Object.fromEntries(revisions.map((revision) => [revision, new Rules(schemas, revision)]));
const fixture = join(build, 'conformance_server');
const patchbay = join(build, 'patchbay');
const folder = mkdtempSync(join(tmpdir(), 'patchbay-schema-'));
let passed = 0;
let failed = 0;

function report(what, messages, faults) {
    const kinds = new Set(messages.map(({ message, asked }) => message.method ?? (message.error ? 'error' : `${asked} result`)));
    const unique = [...new Set(faults)];
    console.log(`${unique.length === 0 ? 'ok  ' : 'FAIL'} ${what}: ${messages.length} messages, ${kinds.size} kinds`);
    for (const fault of unique.slice(0, 20)) console.log(`     ${fault}`);
    if (unique.length === 0 && messages.length > 0) passed++;
    else failed++;
}

function judge(what, revision, messages) {
    report(what, messages, messages.flatMap(({ message, asked }) => rules[revision].check(message, asked)));
}

// What a tee wrote: both directions, each response with the method it answers. The server's side is
// judged too: it is ours.
function readLog(log) {
    const asked = { client: new Map(), server: new Map() };
    const other = { client: 'server', server: 'client' };
    return readFileSync(log, 'utf8').trim().split('\n').map((line) => {
        const { who, line: text } = JSON.parse(line);
        const message = JSON.parse(text);
        if (message.method && message.id !== undefined) asked[who].set(message.id, message.method);
        return { who, message, asked: message.method ? undefined : asked[other[who]].get(message.id) };
    });
}

const tee = (log) => [process.execPath, join(here, 'tee.mjs'), log, fixture];

async function asServer(revision) {
    judge(`server ${revision}`, revision, await new Session([fixture], revision,
        ['tools/list_changed', 'prompts/list_changed', 'resources/updated']).run());
}

async function asGateway(revision, upstream) {
    const log = join(folder, `gateway-${revision}-${upstream}.log`);
    const config = join(folder, `gateway-${revision}-${upstream}.json`);
    const [command, ...args] = tee(log);
    writeFileSync(config, JSON.stringify({ bareNames: true, mcpServers: { fixture: { command, args, protocol: upstream, share: 'always' } } }));
    const got = await new Session([patchbay, 'stdio', '-c', config], revision, ['resources/updated']).run();
    judge(`gateway ${revision} before ${upstream}`, revision, got);
    judge(`gateway's client ${upstream} behind ${revision}`, upstream, readLog(log));
}

const run = (args) => new Promise((resolve) => {
    spawn(patchbay, args, { stdio: 'ignore', cwd: folder }).on('exit', resolve);
});

async function asClient(revision) {
    const all = [];
    const commands = [['list'], ['step'], ['call', 'test_tool_with_progress'], ['call', 'test_tool_with_logging'],
        ['call', 'test_every_content'], ['call', 'absent'], ['read', 'test://static-text'], ['read', 'test://absent'],
        ['prompt', 'test_prompt_with_arguments', 'arg1=a', 'arg2=b']];
    for (const [index, [name, ...rest]] of commands.entries()) {
        const log = join(folder, `client-${revision}-${index}.log`);
        const config = join(folder, `client-${revision}-${index}.json`);
        const [command, ...args] = tee(log);
        writeFileSync(config, JSON.stringify({ mcpServers: { fixture: { command, args } } }));
        await run([name, '-c', config, '-p', revision, 'fixture', ...rest]);
        all.push(...readLog(log));
    }
    judge(`client ${revision}`, revision, all);
}

// What only HTTP has: bodies of refusals, a header that does not say what the body says.
async function asHttpServer(revision) {
    const child = spawn(fixture, ['--http', '127.0.0.1:0'], { stdio: ['ignore', 'ignore', 'pipe'] });
    const url = await new Promise((resolve) => {
        let text = '';
        child.stderr.setEncoding('utf8').on('data', (more) => {
            text += more;
            const found = /http:\S+\/mcp/.exec(text);
            if (found) resolve(found[0]);
        });
    });
    const meta = { 'io.modelcontextprotocol/protocolVersion': revision, 'io.modelcontextprotocol/clientCapabilities': {} };
    const fields = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const modern = revision >= '2026' ? { 'MCP-Protocol-Version': revision, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'test_simple_text' } : {};
    const params = { name: 'test_simple_text', arguments: {}, ...(revision >= '2026' ? { _meta: meta } : {}) };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const got = [];
    const ask = async (headers, body, asked) => {
        const reply = await fetch(url, { method: 'POST', headers: { ...fields, ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body) });
        const text = await reply.text();
        const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream');
        const messages = isStream ? text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => line.slice(6)) : [text];
        for (const one of messages.filter(Boolean)) got.push({ message: JSON.parse(one), asked });
        return reply;
    };
    if (revision >= '2026') {
        await ask(modern, call, 'tools/call');
        await ask({ ...modern, 'Mcp-Name': 'another' }, call, 'tools/call');
        await ask({ ...modern, 'Mcp-Method': 'tools/list' }, call, 'tools/call');
        await ask({ ...modern, 'MCP-Protocol-Version': '1999-01-01' }, call, 'tools/call');
        await ask({ ...modern, 'Mcp-Name': 'test_missing_capability' },
            { ...call, params: { ...params, name: 'test_missing_capability' } }, 'tools/call');
    } else {
        const opened = await ask({}, { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: revision,
            capabilities: {}, clientInfo: { name: 'rules', version: '1' } } }, 'initialize');
        const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') };
        await ask(session, call, 'tools/call');
        await ask(session, { ...call, params: { name: 'test_tool_with_logging', _meta: { progressToken: 1 } } }, 'tools/call');
        await ask({ 'Mcp-Session-Id': 'absent' }, call, 'tools/call');
    }
    await ask({}, '{', undefined);
    await ask({}, call, 'tools/call');
    child.kill('SIGTERM');
    judge(`HTTP server ${revision}`, revision, got);
}

try {
    for (const revision of revisions) {
        await asServer(revision);
        await asHttpServer(revision);
        await asClient(revision);
        for (const upstream of revisions) await asGateway(revision, upstream);
    }
} finally {
    rmSync(folder, { recursive: true, force: true });
}
for (const revision of revisions) {
    console.log(`${revision}: ${rules[revision].seen.size} definitions met: ${[...rules[revision].seen.keys()].sort().join(' ')}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
