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
    writeFileSync(config, JSON.stringify({ bareNames: true, mcpServers: { fixture: { command, args, protocol: upstream } } }));
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

try {
    for (const revision of revisions) {
        await asServer(revision);
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
