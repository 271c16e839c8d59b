// report.mjs [--check PAGE | --write PAGE] EXPECTED RESULTS LEG…: reads what the suite left in
// RESULTS/LEG (a leg is ROLE/REVISION, ROLE/all or ROLE/SUITE), prints a table a leg, and holds it to EXPECTED.
// A line of EXPECTED is
//
//     ROLE/REVISION  SCENARIO  KIND  PASSED       that many checks pass (0: the suite skips all it
//                                                 has), none fails, none warns
//     ROLE/REVISION  SCENARIO  KIND  later        not claimed yet: shown, and counts as skipped
//     ROLE/REVISION  START*    left out: REASON   not claimed, skipped, and not shown one by one
//     ROLE/REVISION  as  ROLE/REVISION            what that other one claims; and for a scenario where
//                                                 that cannot be, which counts as skipped:
//     ROLE/REVISION  SCENARIO  PASSED passed, FAILED failed: REASON
//
// KIND is what the suite counts it as: scored, unscored, or (in "all") suite. A scenario that the
// suite runs and EXPECTED does not name is a failure: the list stays complete. PAGE shows the same
// tables to people, between two marks; --check fails when it says something else.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const words = process.argv.slice(2);
const mode = words[0]?.startsWith('--') ? words.shift() : null;
const page = mode ? words.shift() : null;
const [expectedFile, resultsFolder, ...legs] = words;

function readExpected() {
    const expected = new Map();
    const leftOut = [];
    const excused = [];
    const sameAs = new Map();
    for (const line of readFileSync(expectedFile, 'utf8').split('\n')) {
        const text = line.replace(/(^|\s)#.*/, '').trim();
        if (text === '') continue;
        const out = text.match(/^(\S+)\s+(\S+)\*\s+left out:\s+(.*)$/);
        const one = text.match(/^(\S+)\s+(\S+)\s+(scored|unscored|suite)\s+(\d+|later)$/);
        const as = text.match(/^(\S+)\s+as\s+(\S+)$/);
        const excuse = text.match(/^(\S+)\s+(\S+)\s+(\d+) passed, (\d+) failed:\s+(.*)$/);
        if (as) {
            sameAs.set(as[1], as[2]);
            for (const claim of [...expected.values()].filter((one) => one.leg === as[2])) {
                expected.set(`${as[1]} ${claim.scenario}`, { ...claim, leg: as[1] });
            }
        } else if (excuse) {
            excused.push({ key: `${excuse[1]} ${excuse[2]}`, wanted: excuse[3], failures: Number(excuse[4]), reason: excuse[5] });
        } else if (out) leftOut.push({ leg: out[1], group: out[2], reason: out[3] });
        else if (one) expected.set(`${one[1]} ${one[2]}`, { leg: one[1], scenario: one[2], kind: one[3], wanted: one[4] });
        else throw new Error(`${expectedFile}: cannot read "${line}"`);
    }
    for (const { key, ...instead } of excused) {
        if (!expected.has(key)) throw new Error(`${expectedFile}: nothing is claimed of "${key}"`);
        expected.set(key, { ...expected.get(key), ...instead });
    }
    return { expected, leftOut, sameAs };
}

// Folders are RESULTS/LEG[/GROUP]/[server-]SCENARIO-TIME/checks.json.
function* checkFiles(folder) {
    if (!existsSync(folder)) return;
    for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (statSync(path).isDirectory()) yield* checkFiles(path);
        else if (name === 'checks.json') yield path;
    }
}

function readResults(leg) {
    const folder = join(resultsFolder, leg);
    const results = new Map();
    for (const file of checkFiles(folder)) {
        const scenario = relative(folder, dirname(file))
            .replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, '')
            .replace(leg.startsWith('client/') ? /$^/ : /(^|\/)server-(?=.)/, '$1');
        const counts = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0, faults: [] };
        for (const check of JSON.parse(readFileSync(file, 'utf8'))) {
            counts[check.status] += 1;
            if (check.status === 'FAILURE' || check.status === 'WARNING') {
                counts.faults.push(`${check.status} ${check.id}: ${check.errorMessage ?? check.description}`);
            }
        }
        results.set(scenario, counts);
    }
    return results;
}

const none = { SUCCESS: 0, FAILURE: 1, WARNING: 0, SKIPPED: 0, faults: ['it did not run'] };
const numbers = (counts) => [counts.SUCCESS, counts.FAILURE, counts.SKIPPED, counts.WARNING];

// '' when the claim holds.
function verdictOf(claim, counts) {
    if (claim === undefined) return 'NOT IN THE LIST';
    if (claim.wanted === 'later') return 'later';
    if (claim.failures !== undefined) {
        const isSo = counts.SUCCESS === Number(claim.wanted) && counts.FAILURE + counts.WARNING === claim.failures;
        return isSo ? '' : `FAILED: excused for ${claim.wanted} passed and ${claim.failures} failed, no more and no less`;
    }
    if (counts.FAILURE > 0) return 'FAILED';
    if (counts.WARNING > 0) return 'FAILED: a warning';
    if (counts.SUCCESS < Number(claim.wanted)) return `FAILED: ${claim.wanted} checks must pass`;
    return '';
}

// Everything about one leg: rows to show, sums, whether all of it is as it should be.
function judge(leg, { expected, leftOut, sameAs }) {
    const results = readResults(leg);
    const names = new Set([...results.keys(),
        ...[...expected.values()].filter((one) => one.leg === leg).map((one) => one.scenario)]);
    const outcome = { leg, sameAs: sameAs.get(leg), rows: [], sums: new Map(), good: 0, bad: 0, left: [], notes: [] };
    for (const { leg: of, group, reason } of leftOut) {
        const inside = [...names].filter((name) => of === leg && name.startsWith(group));
        if (inside.length === 0) continue;
        inside.forEach((name) => names.delete(name));
        outcome.left.push({ what: `${group}* (${inside.length} scenarios)`, count: inside.length, why: reason });
        outcome.notes.push(`${group}* (${inside.length} scenarios) left out: ${reason}`);
    }
    for (const name of [...names].sort()) {
        const counts = results.get(name) ?? none;
        const claim = expected.get(`${leg} ${name}`);
        const verdict = verdictOf(claim, counts);
        const kind = claim?.kind ?? '?';
        const isQuiet = verdict === 'later' || (verdict === '' && claim.reason !== undefined);
        const isExcused = claim?.reason !== undefined;
        outcome.rows.push({ name, kind, numbers: numbers(counts), verdict, isExcused, faults: isQuiet ? [] : counts.faults });
        if (claim?.reason !== undefined) outcome.notes.push(`${name}: ${claim.reason}`);
        if (isQuiet) outcome.left.push({ what: name, count: 1, why: claim.reason ?? 'not claimed yet' });
        else outcome[verdict === '' ? 'good' : 'bad'] += 1;
        const sum = outcome.sums.get(kind) ?? { scenarios: 0, numbers: [0, 0, 0, 0] };
        sum.scenarios += 1;
        sum.numbers = sum.numbers.map((number, i) => number + numbers(counts)[i]);
        outcome.sums.set(kind, sum);
    }
    return outcome;
}

const line = (name, kind, cells, verdict) => console.log(
    `  ${name.padEnd(50)}${kind.padEnd(10)}${cells.map((cell) => String(cell).padStart(8)).join('')}  ${verdict}`.trimEnd());

function print(outcome) {
    console.log(`\n${outcome.leg}`);
    line('scenario', '', ['passed', 'failed', 'skipped', 'warned'], '');
    for (const row of outcome.rows) {
        line(row.name, row.kind, row.numbers, row.verdict);
        for (const text of row.faults) console.log(`      ${text}`);
    }
    for (const [kind, sum] of outcome.sums) line(`${sum.scenarios} scenarios`, kind, sum.numbers, '');
    for (const note of outcome.notes) console.log(`  ${note}`);
}

// ---- the page for people

const title = ({ leg }) => {
    const [role, set] = leg.split('/');
    const other = set === '2026-07-28' ? '2025-11-25' : '2026-07-28';
    const subjects = {
        server: 'Server',
        client: 'Client',
        gateway: 'Gateway in front of that server',
        across: `Gateway in front of a server of ${other} only`,
        both: 'Gateway in front of a server of both eras',
        pipe: 'Gateway in front of that server on a pipe',
        'pipe-across': `Gateway in front of a server of ${other} only on a pipe`,
        'pipe-both': 'Gateway in front of a server of both eras on a pipe',
    };
    const sets = { all: 'everything the suite has', '0.1.16': 'everything that suite 0.1.16 has' };
    return `${subjects[role]}, ${sets[set] ?? set}`;
};

function* markdown(outcomes) {
    yield '| | scenarios | passed | failed | skipped | warnings |';
    yield '|---|---|---|---|---|---|';
    for (const outcome of outcomes) {
        for (const [kind, sum] of outcome.sums) {
            yield `| ${title(outcome)}${kind === 'suite' ? '' : `: ${kind}`} | ${sum.scenarios} | ${sum.numbers.join(' | ')} |`;
        }
    }
    for (const outcome of outcomes) {
        yield '';
        yield `### ${title(outcome)}`;
        yield '';
        // Of a leg that is held to what another one claims, what differs.
        const rows = outcome.rows.filter((row) => outcome.sameAs === undefined || row.isExcused || row.verdict !== '');
        if (outcome.sameAs !== undefined) {
            yield `Every scenario as in "${title({ leg: outcome.sameAs })}"${rows.length > 0 ? ', except:' : '.'}`;
            if (rows.length > 0) yield '';
        }
        if (rows.length > 0) {
            yield '| Scenario | | passed | failed | skipped | warnings | |';
            yield '|---|---|---|---|---|---|---|';
        }
        for (const row of rows) {
            yield `| ${row.name} | ${row.kind === 'suite' ? '' : row.kind} | ${row.numbers.join(' | ')} | ${row.verdict === 'later' ? 'not claimed yet' : row.verdict} |`;
        }
        for (const note of outcome.notes) {
            yield '';
            yield `${note.replace('*', '\\*')}.`;
        }
    }
}

// True when the page says what the results say.
function showOnPage(outcomes) {
    const marks = /(<!-- results -->\n)[\s\S]*(<!-- end of results -->)/;
    const before = readFileSync(page, 'utf8');
    const after = before.replace(marks, (_, start, end) => `${start}\n${[...markdown(outcomes)].join('\n')}\n\n${end}`);
    if (mode === '--write') writeFileSync(page, after);
    return mode === '--write' || before === after;
}

const lists = readExpected();
const outcomes = legs.map((leg) => judge(leg, lists));
outcomes.forEach(print);
let passed = 0;
let failed = 0;
let skipped = 0;
for (const outcome of outcomes) {
    passed += outcome.good;
    failed += outcome.bad;
    for (const { what, count, why } of outcome.left) {
        skipped += count;
        console.log(`conformance: skipped: ${outcome.leg} ${what}: ${why}`);
    }
}
if (page !== null && !showOnPage(outcomes)) {
    console.log(`\n${page} says something else: tests/conformance/run --write brings it up to date`);
    failed += 1;
}
// Once more at the end, where a log that was cut still has it.
for (const { leg, rows } of outcomes) {
    for (const { name, verdict, faults } of rows.filter((row) => row.verdict.startsWith('FAILED') || row.verdict.startsWith('NOT'))) {
        console.log(`\n${leg} ${name}: ${verdict}\n    ${faults.join('\n    ')}`);
    }
}
console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
