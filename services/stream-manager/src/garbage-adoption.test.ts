/** Garbage collection looks at the record before each deletion, and goes around fragments that a person takes back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, extentVersion, type Outcome, ok, ownerEpoch, refused, unwrap } from "@stamp/base";
import { silentLogger } from "@stamp/ports";
import type { ExtentRecord, FragmentPlace, StreamState, TransactionPlan } from "@stamp/stream";
import { FragmentAdoption } from "./coding/fragment-adoption.ts";
import { Garbage } from "./garbage.ts";
import { SentDeletions } from "./sent-deletions.ts";

const id = extentId(7);
const graceMs = 1_000;
const fragment = (n: number): FragmentPlace => ({ nodeId: `en${n}`, diskId: `d${n}`, version: extentVersion(3) });
const six = [1, 2, 3, 4, 5, 6].map(fragment);
const base: ExtentRecord = {
  ...{ id, phase: "sealed", version: extentVersion(6), ownerEpoch: ownerEpoch(1), stream: "/s", sealedLengthBytes: 9, checksum: 1 },
  ...{ replicas: [], removed: [] },
};

/** A garbage collection of one extent. `told`: called at each deletion, with the node; the answer is what the node gives. */
function collecting(record: ExtentRecord, told: (nodeId: string) => Promise<boolean>) {
  const state = { record };
  const answer = (nodeId: string) => async () =>
    (await told(nodeId)) ? ok({}) : refused("deadlineExceeded", "notReady", "no answer in time");
  let nowMs = 0;
  const term = {
    config: { deletionGraceMs: graceMs },
    number: 1,
    ended: new AbortController().signal,
    nodes: { up: () => true, reachable: () => true, address: (nodeId: string) => nodeId },
    state: {
      garbage: () => new Set([id]),
      extent: () => state.record,
      node: () => undefined,
      unreferenced: () => new Set(),
      looseSegments: () => new Set(),
    },
    ledger: {
      commit: async (plan: (current: StreamState) => Outcome<TransactionPlan>) => {
        for (const change of unwrap(plan(term.state as never)).changes) if (change.kind === "extent") state.record = change.record;
        return ok();
      },
    },
    world: {
      rules: allRules,
      clock: { monotonicMs: () => nowMs, wallMs: () => 0 },
      transport: { client: (address: string) => ({ deleteFragment: answer(address), deleteExtent: answer(address) }) },
    },
  };
  const garbage = new Garbage(term as never);
  const afterGrace = async (): Promise<void> => {
    await garbage.tick();
    nowMs += graceMs;
    await garbage.tick();
  };
  return { state, garbage, afterGrace };
}

test("garbage: fragments that the record names again while another node is slow to answer are kept", async () => {
  const told: string[] = [];
  const { state, afterGrace } = collecting({ ...base, removedFragments: six }, async (nodeId) => {
    told.push(nodeId);
    state.record = { ...base, version: extentVersion(7), coded: { profile: "rs-4-2", fragments: six } };
    return true;
  });
  await afterGrace();
  assert.deepEqual(told, ["en1"]);
  assert.equal(state.record.coded?.fragments.length, 6);
});

test("garbage: a fragment that was taken back and removed again waits for its own grace, whatever was sent before", async () => {
  const { state, garbage, afterGrace } = collecting({ ...base, removedFragments: [fragment(1)] }, async () => {
    state.record = { ...base, removedFragments: [fragment(1)] };
    return true;
  });
  await afterGrace();
  assert.equal(state.record.removedFragments?.length, 1);
  await garbage.tick();
  assert.equal(state.record.removedFragments?.length, 1);
});

test("garbage: replicas that a decoding makes again while another node is slow to answer are kept", async () => {
  const places = [1, 2, 3].map((n) => ({ nodeId: `en${n}`, diskId: `d${n}` }));
  const told: string[] = [];
  const { state, afterGrace } = collecting({ ...base, removed: places }, async (nodeId) => {
    told.push(nodeId);
    state.record = { ...base, version: extentVersion(8), replicas: places.map((place) => ({ ...place, complete: true })) };
    return true;
  });
  await afterGrace();
  assert.deepEqual(told, ["en1"]);
});

test("garbage: replicas that are made and removed again while another node is slow to answer wait for their own grace", async () => {
  const places = () => [1, 2, 3].map((n) => ({ nodeId: `en${n}`, diskId: `d${n}` }));
  const told: string[] = [];
  const { state, afterGrace } = collecting({ ...base, removed: places() }, async (nodeId) => {
    told.push(nodeId);
    state.record = { ...base, removed: places() };
    return true;
  });
  await afterGrace();
  assert.deepEqual([told, state.record.removed.length], [["en1"], 3]);
});

test("garbage: no fragment goes while fragments are being taken back; one whose deletion was not answered may still go until it is", async () => {
  const told: string[] = [];
  let answers = false;
  const { state, garbage, afterGrace } = collecting({ ...base, removedFragments: [fragment(1), fragment(2)] }, async (nodeId) => {
    told.push(nodeId);
    return answers;
  });
  assert.equal(garbage.sent.keep(id), true);
  assert.equal(garbage.sent.keep(id), false, "for somebody else already");
  await afterGrace();
  assert.deepEqual(told, []);
  garbage.sent.release(id);
  // The grace begins when they may go again.
  await afterGrace();
  assert.deepEqual(told, ["en1", "en2"]);
  assert.deepEqual(
    [1, 2, 3].map((n) => garbage.sent.mayArrive(id, fragment(n))),
    [true, true, false],
  );
  answers = true;
  await garbage.tick();
  assert.deepEqual([garbage.sent.mayArrive(id, fragment(1)), state.record.removedFragments], [false, undefined]);
});

test("adopt fragments: one whose deletion was sent and not answered is not taken, and none goes meanwhile", async () => {
  const sent = new SentDeletions();
  for (const unanswered of [0, 2, 3]) {
    for (let n = 1; n <= unanswered; n++) sent.send(id, fragment(n));
    const state = { record: { ...base, removedFragments: six } as ExtentRecord };
    const listed = (n: number) => ({
      extentId: 7n,
      version: 3n,
      index: n - 1,
      damage: "",
      profile: "rs-4-2",
      sealedLengthBytes: 9n,
      checksum: 1,
    });
    const client = (address: string) => ({
      listFragments: async () => ok({ fragments: [listed(Number(address.slice(2)))], more: false }),
      verifyFragments: async () => {
        assert.equal(sent.isKept(id), true);
        return ok({ fragmentChecksums: [] });
      },
    });
    const term = {
      ...{ number: 1, ended: new AbortController().signal, world: { transport: { client }, logger: silentLogger } },
      nodes: { settling: false, reachable: () => true, address: (nodeId: string) => nodeId },
      state: { extent: () => state.record, nodes: () => six },
      ledger: {
        commit: async (plan: (current: StreamState) => Outcome<TransactionPlan>) => {
          for (const change of unwrap(plan(term.state as never)).changes) if (change.kind === "extent") state.record = change.record;
          return ok();
        },
      },
    };
    const coder = { isReadable: () => false, adopted: () => {}, repairs: { rescan: () => {} } };
    const held = { heldVersion: () => 3, missing: () => {} };
    const adopted = await new FragmentAdoption(term as never, { coder: coder as never, held: held as never, sent }).adopt(id);
    assert.equal(sent.isKept(id), false);
    if (unanswered === 3) {
      assert.ok(!adopted.ok && /3 of rs-4-2, which needs 4; 3 are being deleted/.test(adopted.failure.message), JSON.stringify(adopted));
      continue;
    }
    const taken = unwrap(adopted).coded?.fragments.filter(({ version }) => version === 3) ?? [];
    assert.deepEqual(taken, six.slice(unanswered));
    assert.deepEqual(state.record.removedFragments ?? [], six.slice(0, unanswered), "they are still to be deleted");
  }
});
