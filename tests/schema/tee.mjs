// tee.mjs LOG COMMAND…: runs a stdio server and writes every line that goes through, with its direction.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [log, command, ...rest] = process.argv.slice(2);
const server = spawn(command, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
const pass = (from, to, who) => createInterface({ input: from })
    .on('line', (line) => {
        appendFileSync(log, `${JSON.stringify({ who, line })}\n`);
        to.write(`${line}\n`);
    });
pass(process.stdin, server.stdin, 'client').on('close', () => server.stdin.end());
pass(server.stdout, process.stdout, 'server');
server.stdin.on('error', () => {});
process.stdout.on('error', () => {});
server.on('exit', (code) => { process.exitCode = code ?? 1; process.stdin.destroy(); });
