import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import fc from "fast-check";
import {
  beginScrubPass,
  decodeScrubState,
  encodeScrubState,
  endScrubPass,
  noteScrubbed,
  scrubFindingsMax,
  scrubOrder,
} from "./scrub-pass.ts";

const ids = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 45 }), { minLength: 1, maxLength: 60 });
const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 });

test("scrub order: from any place on a pass goes over the rest once, whatever came and went meanwhile", () => {
  fc.assert(
    fc.property(ids, ids, seeds, fc.nat(100), (all, others, seed, cut) => {
      const order = scrubOrder(seed, all, undefined);
      assert.deepEqual(order.toSorted(), all.toSorted());
      const at = cut % order.length;
      assert.deepEqual(scrubOrder(seed, all, order[at]), order.slice(at + 1));
      const added = others.filter((id) => !all.includes(id));
      const resumed = scrubOrder(seed, [...all, ...added], order[at]);
      assert.deepEqual(
        resumed.filter((id) => all.includes(id)),
        order.slice(at + 1),
      );
    }),
  );
});

test("scrub order: another seed gives another order", () => {
  const all = Array.from({ length: 50 }, (_, i) => i + 1);
  assert.notDeepEqual(scrubOrder(1, all, undefined), scrubOrder(2, all, undefined));
  assert.notDeepEqual(scrubOrder(1, all, undefined), all);
});

test("scrub state: counts, keeps the newest findings, is read back; what is cut or changed is a typed refusal", () => {
  let state = beginScrubPass(undefined, 7, 1_000);
  for (let i = 1; i <= 150; i++) state = noteScrubbed(state, i, 10, i % 1 === 0 ? { extentId: i, atMs: i, why: "rot" } : undefined);
  state = noteScrubbed(state, 200, 50, undefined);
  assert.equal(state.findings.length, scrubFindingsMax);
  assert.equal(state.findings[0]?.extentId, 150);
  assert.deepEqual([state.pass.extents, state.pass.bytes, state.pass.findings, state.pass.lastExtentId], [151, 1_550, 150, 200]);
  const ended = endScrubPass(state, 9_000);
  const next = beginScrubPass(ended, 8, 10_000);
  assert.deepEqual([next.pass.number, next.pass.extents, next.finished?.number, next.finished?.endedAtMs], [2, 0, 1, 9_000]);
  for (const each of [state, ended, next]) {
    const bytes = encodeScrubState(each);
    assert.deepEqual(decodeScrubState(bytes), { kind: "ok", value: each });
    for (let at = 0; at < bytes.length - 1; at += 97) assert.equal(decodeScrubState(bytes.subarray(0, at)).kind, "invalid");
  }
  for (const wrong of ["{}", "[]", "null", '{"format":0}', '{"format":1,"pass":{},"findings":[]}']) {
    assert.equal(decodeScrubState(utf8(wrong)).kind, "invalid", wrong);
  }
  assert.deepEqual(decodeScrubState(utf8('{"format":2}')), { kind: "newer", format: "scrub-state", version: 2 });
});
