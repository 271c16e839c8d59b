// The work of bench/schema.c by JSON.parse and Ajv, from bytes as a socket gives them:
// ajv.mjs bench/schemas.json
import { readFileSync } from 'node:fs';

import Ajv from 'ajv/dist/2020.js';

const ROUNDS = 41;
const TURNS = 20000;

function median(times) {
    return times.sort((a, b) => a - b)[ROUNDS >> 1];
}

function measure(work) {
    const times = [];
    for (let i = 0; i < TURNS; i++) work(); // so that it is compiled before it counts
    for (let round = 0; round < ROUNDS; round++) {
        const start = process.hrtime.bigint();
        for (let turn = 0; turn < TURNS; turn++) {
            if (!work()) throw new Error('a check failed');
        }
        times.push(Number(process.hrtime.bigint() - start) / TURNS);
    }
    return median(times);
}

for (const { name, schema, instance } of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
    const validate = new (Ajv.default ?? Ajv)({ strict: false }).compile(schema);
    const bytes = Buffer.from(JSON.stringify(instance));
    const parsed = JSON.parse(bytes.toString());
    const checked = measure(() => validate(parsed));
    const whole = measure(() => validate(JSON.parse(bytes.toString())));
    console.log(`${name} checked=${checked.toFixed(0)} ns whole=${whole.toFixed(0)} ns`);
}
