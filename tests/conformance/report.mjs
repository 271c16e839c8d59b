// report.mjs EXPECTED RESULTS REVISION…: reads what the suite left in RESULTS/REVISION, prints a
// table a revision, and holds it to EXPECTED. A line of EXPECTED is
//
//     REVISION  SCENARIO  scored|unscored  PASSED      that many checks pass, none fails
//     REVISION  SCENARIO  scored|unscored  later       not claimed yet: shown, not counted
//
// A scenario that the suite runs and EXPECTED does not name is a failure: the list stays complete.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const [expectedFile, resultsFolder, ...revisions] = process.argv.slice(2);

function readExpected() {
    const expected = new Map();
    for (const line of readFileSync(expectedFile, 'utf8').split('\n')) {
        const words = line.replace(/#.*/, '').trim().split(/\s+/);
        if (words[0] === '') continue;
        const [revision, scenario, kind, wanted] = words;
        if (words.length !== 4 || !['scored', 'unscored'].includes(kind) || !/^(\d+|later)$/.test(wanted)) {
            throw new Error(`${expectedFile}: cannot read "${line}"`);
        }
        expected.set(`${revision} ${scenario}`, { revision, scenario, kind, wanted });
    }
    return expected;
}

// Folders are RESULTS/REVISION[/GROUP…]/server-SCENARIO-TIME/checks.json.
function* checkFiles(folder) {
    for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (statSync(path).isDirectory()) yield* checkFiles(path);
        else if (name === 'checks.json') yield path;
    }
}

function readResults(revision) {
    const results = new Map();
    for (const file of checkFiles(join(resultsFolder, revision))) {
        const scenario = basename(dirname(file)).replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, '');
        const counts = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0, failures: [] };
        for (const check of JSON.parse(readFileSync(file, 'utf8'))) {
            counts[check.status] += 1;
            if (check.status === 'FAILURE' || check.status === 'WARNING') {
                counts.failures.push(`${check.status} ${check.id}: ${check.errorMessage ?? check.description}`);
            }
        }
        results.set(scenario, counts);
    }
    return results;
}

const row = (...cells) => console.log(
    `  ${cells[0].padEnd(50)}${cells[1].padEnd(10)}${cells.slice(2, 5).map((cell) => String(cell).padStart(8)).join('')}  ${cells[5]}`);

const expected = readExpected();
const total = { passed: 0, failed: 0 };
for (const revision of revisions) {
    const results = readResults(revision);
    const names = new Set([...results.keys(),
        ...[...expected.values()].filter((one) => one.revision === revision).map((one) => one.scenario)]);
    const sum = { scored: [0, 0], claimed: [0, 0] };
    console.log(`\n${revision}`);
    row('scenario', '', 'passed', 'failed', 'warned', '');
    for (const name of [...names].sort()) {
        const counts = results.get(name) ?? { SUCCESS: 0, FAILURE: 0, WARNING: 0, failures: ['it did not run'] };
        const claim = expected.get(`${revision} ${name}`);
        const isLater = claim?.wanted === 'later';
        const isGood = counts.FAILURE === 0 && counts.SUCCESS > 0 && counts.SUCCESS >= Number(claim?.wanted);
        const verdict = isLater ? 'later' : claim === undefined ? 'NOT IN THE LIST' : isGood ? ''
            : counts.FAILURE > 0 ? 'FAILED' : `FAILED: ${claim.wanted} checks must pass`;
        row(name, claim?.kind ?? '?', counts.SUCCESS, counts.FAILURE, counts.WARNING, verdict);
        if (!isLater) {
            total[isGood ? 'passed' : 'failed'] += 1;
            for (const text of counts.failures) console.log(`      ${text}`);
        }
        sum.scored[0] += claim?.kind === 'scored' ? counts.SUCCESS : 0;
        sum.scored[1] += claim?.kind === 'scored' ? counts.FAILURE : 0;
        sum.claimed[0] += isLater ? 0 : counts.SUCCESS;
        sum.claimed[1] += isLater ? 0 : counts.FAILURE;
    }
    console.log(`  ${revision}: checks of claimed scenarios: ${sum.claimed.join(' good, ')} bad; of all scored ones: ${sum.scored.join(' good, ')} bad`);
}
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
