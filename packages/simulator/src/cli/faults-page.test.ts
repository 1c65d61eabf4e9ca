/** docs/faults.md says what design/faults.md, the rules, the mutants and the kept seeds say; nothing is left out. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { faultRows } from "./fault-rows/fault-rows.ts";
import { faultsPageAsItIs } from "./gate.ts";
import { mutants } from "./mutants.ts";
import { notBySeeds } from "./not-by-seeds.ts";

const root = new URL("../../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");

test("faults: every row of the design page is here, and no other", () => {
  const rows = [...read("docs/design/faults.md").matchAll(/^\| (.+?) \| /gm)].map(([, cell]) => cell).filter((cell) => cell !== "fault");
  assert.ok(rows.length > 40);
  assert.deepEqual(
    faultRows.map(({ fault }) => fault),
    rows,
    "packages/simulator/src/cli/fault-rows/ has the rows of docs/design/faults.md in their order",
  );
});

test("faults: every rule of the code belongs to a row, and is caught by a seed or says why it can't be", () => {
  const names = [...read("packages/base/src/rules.ts").matchAll(/^ {2}\| "(\w+)"/gm)].map(([, name]) => name as string);
  const inRows = new Set<string>(faultRows.flatMap(({ rules }) => rules));
  const mutated = new Set<string>(mutants.flatMap(({ rules }) => rules));
  const excused = new Set<string>(notBySeeds.map(({ rule }) => rule));
  for (const name of names) {
    assert.ok(inRows.has(name) || excused.has(name), `${name} is in no row of fault-rows/`);
    assert.ok(mutated.has(name) !== excused.has(name), `${name} is either a mutant or in notBySeeds`);
  }
});

test("faults: the tests that are named are there, and those of excused rules switch the rule off", () => {
  for (const { tests } of faultRows) for (const path of tests) assert.ok(existsSync(new URL(path, root)), path);
  for (const { rule, test: path } of notBySeeds) {
    assert.ok(path === undefined || read(path).includes(`"${rule}"`), `${path} does not switch ${rule} off`);
  }
});

test("faults: docs/faults.md is what the seeds make of it", async () => {
  const { written, made } = await faultsPageAsItIs();
  assert.equal(written, made, "./stamp sim --write-docs writes it from the kept seeds, --mutations --write-docs from new ones");
});
