/** Rows of another stamp that can be what the primary of a copy has shipped. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { rulesWithout } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { encodeKey } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { notOfPrimary } from "./word-of-primary.ts";

test("word of the primary: rows that name no operation are those of an older release, and are taken below feature level 4 only", () => {
  const world = { clock: { wallMs: () => 1_795_000_000_000 }, rules: rulesWithout() } as unknown as World;
  const begun: AccountRole = { role: "secondary", epoch: 5, obeyed: { operation: 7, phase: 1 }, peer: "north-1", paired: 7 };
  const { paired: _, ...older } = begun;
  const low = encodeKey([["copy"], [1, "con", 1, "b"]]);
  const said = { account: "copy", table: "Blob", low, epoch: 5, lineage: 0, sequences: [1] };
  const reasonOf = (role: AccountRole, paired: number, mayBeOlder: boolean): string =>
    notOfPrimary(world, role, { ...said, paired, mayBeOlder })?.failure.reason ?? "taken";
  assert.deepEqual([reasonOf(begun, 0, true), reasonOf(begun, 0, false)], ["taken", "notReady"]);
  for (const mayBeOlder of [true, false]) {
    assert.deepEqual([reasonOf(begun, 7, mayBeOlder), reasonOf(begun, 8, mayBeOlder)], ["taken", "notReady"]);
    assert.equal(reasonOf(older, 0, mayBeOlder), "taken", "the row here does not name the operation either");
  }
});
