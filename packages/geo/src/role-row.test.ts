import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { type AccountRole, roleWithoutRow } from "./account-role.ts";
import { decodeRole, encodeRole, roleOf } from "./role-row.ts";

const obeyed = { operation: 7, phase: 4 };
const point = [
  { range: "r1", sequence: 9 },
  { range: "r2", sequence: 0 },
];
const rows: readonly AccountRole[] = [
  roleWithoutRow,
  { role: "secondary", epoch: 6, obeyed, peer: "north-1", peerDoors: ["10.0.0.1:7400", "10.0.0.2:7400"] },
  { role: "primary", epoch: 7, obeyed, peer: "south-1", promotedAt: point },
  { role: "unseeded", epoch: 7, obeyed, peer: "south-1", report: { from: point, complete: false } },
  { role: "removed", epoch: 0, obeyed },
  { role: "removed", epoch: 0, obeyed, dropsQueues: true },
  { role: "secondary", epoch: 6, obeyed, peer: "north-1", paired: 5, queues: true },
];

test("text of a role: every role is read as it was written, and no text is no row", () => {
  for (const row of rows) assert.deepEqual(unwrap(decodeRole(encodeRole(row))), row);
  assert.equal(unwrap(decodeRole("")), undefined);
  assert.deepEqual(unwrap(roleOf("")), roleWithoutRow);
});

test("text of a role: whatever lacks a member, or is cut, is damaged", () => {
  const whole = encodeRole(rows[3] as AccountRole);
  const damaged = [whole.slice(0, -1), "null", "[]", "{}", whole.replace("unseeded", "other"), whole.replace('"epoch":7', '"epoch":"7"')];
  damaged.push(whole.replace('"phase":4', '"phase":null'), whole.replace('"range":"r1"', '"range":1'), whole.replace("false", "1"));
  for (const text of damaged) {
    const role = decodeRole(text);
    assert.equal(role.ok ? "read" : role.failure.reason, "damaged", text);
  }
});

test("text of a role: a removed account of a release that did not know who gives up queues does not give them up", () => {
  for (const more of ["", ',"keepsQueues":true']) {
    const role = unwrap(decodeRole(`{"role":"removed","epoch":6,"obeyed":{"operation":7,"phase":5}${more}}`));
    assert.deepEqual([role?.role, role?.dropsQueues], ["removed", undefined]);
  }
});
