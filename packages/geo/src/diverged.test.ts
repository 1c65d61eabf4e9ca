/** A deposed primary owes a report; the new primary tells it what its copy had, and nobody else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import type { AccountRole } from "./account-role.ts";
import { isDiverged, owesReport, tellsVersions } from "./diverged.ts";

const obeyed = { operation: 3, phase: 4 };
const primary: AccountRole = { role: "primary", epoch: 3, obeyed };

test("diverged: a commit is reported if its PartitionName was shipped to an older one, or not at all", () => {
  const held = { epoch: 2, number: 10 };
  for (const [commit, expected] of [
    [{ epoch: 2, number: 10 }, false],
    [{ epoch: 2, number: 9 }, false],
    [{ epoch: 2, number: 11 }, true],
    [{ epoch: 1, number: 12 }, false],
  ] as const) {
    assert.equal(isDiverged(commit, held, allRules), expected, JSON.stringify(commit));
    assert.ok(isDiverged(commit, undefined, allRules));
    assert.ok(isDiverged(commit, held, rulesWithout("geoReportLacksShipped")));
  }
});

test("diverged: a stamp owes a report from its deposition until that is complete", () => {
  const report = { from: [], complete: false };
  assert.ok(owesReport({ ...primary, role: "unseeded", report }));
  assert.ok(!owesReport({ ...primary, role: "unseeded", report: { ...report, complete: true } }));
  assert.ok(!owesReport({ ...primary, role: "unseeded" }));
  assert.ok(!owesReport({ ...primary, role: "removed", report }), "a copy that was given up reports nothing");
});

test("diverged: the primary of the promotion that was asked for tells versions, and no other stamp does", () => {
  for (const role of ["primary", "drained"] as const) assert.ok(tellsVersions({ ...primary, role }, 3).ok);
  for (const [row, epoch] of [
    [primary, 2],
    [primary, 4],
    [{ ...primary, role: "secondary" }, 3],
    [undefined, 3],
  ] as const) {
    const told = tellsVersions(row, epoch);
    assert.ok(!told.ok && told.failure.reason === "staleRoleEpoch", JSON.stringify(row));
  }
});
