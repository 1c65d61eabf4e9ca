/** The table of faults has every rule of the code once, and docs/faults.md says what the table says. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { nameOf } from "./fault-rows/fault-row.ts";
import { faultRows } from "./fault-rows/fault-rows.ts";
import { faultsPage, faultsPagePath } from "./faults-page.ts";

const root = new URL("../../../../", import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), "utf8");
const entries = faultRows.flatMap(({ rules }) => rules);

test("faults: every rule of the code is held by one row, or by another rule that is switched off with it", () => {
  const names = [...read("packages/base/src/rules.ts").matchAll(/^ {2}\| "(\w+)"/gm)].map(([, name]) => name);
  const held = entries.flatMap((rule) => {
    if (typeof rule === "string") return [];
    return "unnoticed" in rule ? [rule.name] : [rule.name, ...(rule.together ?? [])];
  });
  assert.ok(names.length > 100);
  assert.deepEqual(held.toSorted(), names.toSorted(), "packages/base/src/rules.ts has the rules of packages/simulator/src/cli/fault-rows/");
  const inRows = new Set<string | undefined>(entries.map(nameOf));
  assert.deepEqual(
    names.filter((name) => !inRows.has(name)),
    [],
    "a rule that is switched off with another stands in a row, too",
  );
});

test("faults: the tests that are named are there, and one of the row switches an unnoticed rule off", () => {
  for (const { rules, tests } of faultRows) {
    for (const path of tests) assert.ok(existsSync(new URL(path, root)), path);
    for (const rule of rules) {
      if (typeof rule === "string" || !("unnoticed" in rule)) continue;
      assert.ok(
        tests.some((path) => read(path).includes(`"${rule.name}"`)),
        `no test of its row switches ${rule.name} off`,
      );
    }
  }
});

test("faults: docs/faults.md is what the table makes of it", () => {
  assert.equal(readFileSync(faultsPagePath, "utf8"), faultsPage(), "./stamp sim --write-docs writes it");
});
