/** Work over thousands of coded extents gives way: a clock that goes on a little each time it is read says when a turn has been long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ok, ownerEpoch, refused, rulesWithout, unwrap } from "@stamp/base";
import { silentLogger } from "@stamp/ports";
import { NodeDigest } from "@stamp/ports-node";
import { type ExtentRecord, encodeStored, recordKey, type StoredRecord, StreamState } from "@stamp/stream";
import { NodeTable } from "../nodes/node-table.ts";
import { RepairPace } from "../repair/repair-pace.ts";
import type { Repairer } from "../repair/repairer.ts";
import { Completer } from "../seal/completer.ts";
import type { Term } from "../term/term.ts";
import { Chooser } from "./chooser.ts";
import { Coder } from "./coder.ts";
import { HeldFragments } from "./held-fragments.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array): number => digest.crc32c(bytes);
const extents = 2_000;
const readMs = 0.05;
/** Reads of the clock in one slice of 10 ms, and a few. */
const looksMax = 220;
const idleTurns = 5;
const places = Array.from({ length: 7 }, (_, i) => ({ nodeId: `n${i + 1}`, diskId: `d${i + 1}` }));

type Stored = Pick<ExtentRecord, "replicas"> & Partial<Pick<ExtentRecord, "coded">>;
const coded: Stored = {
  replicas: [],
  coded: {
    profile: "rs-4-2",
    fragments: places.slice(0, 6).map((place) => ({ ...place, version: extentVersion(2) })),
    checksums: [1, 2, 3, 4, 5, 6],
  },
};
const replicated: Stored = { replicas: places.slice(0, 3).map((place) => ({ ...place, complete: true })) };

/** Sealed extents in one stream, which are all stored in the same way. */
function loaded(stored: Stored): StreamState {
  const records: StoredRecord[] = places.map(({ nodeId, diskId }) => ({
    kind: "node",
    record: { nodeId, diskId, address: nodeId, faultDomain: nodeId, incarnation: 1 },
  }));
  for (let i = 1; i <= extents; i++) {
    const record = {
      ...{ id: extentId(i), phase: "sealed" as const, version: extentVersion(3), ownerEpoch: ownerEpoch(1), stream: "/s" },
      ...{ sealedLengthBytes: 1_000_000, checksum: 7, removed: [], ...stored },
    };
    records.push({ kind: "extent", record });
  }
  const tail = Array.from({ length: extents }, (_, i) => extentId(i + 1));
  records.push({ kind: "stream", record: { name: "/s", ownerEpoch: ownerEpoch(1), segments: [], skipCount: 0, tail } });
  const entries = records.map((record, i) => ({ key: recordKey(record), version: i + 1, value: encodeStored(record, crc32c) }));
  return unwrap(StreamState.load(entries, crc32c));
}

function surroundings(stored: Stored) {
  const seen = { nowMs: 0, gaveWay: 0, lookedUp: 0 };
  const due: (() => void)[] = [];
  const clock = {
    monotonicMs: () => {
      seen.nowMs += readMs;
      return seen.nowMs;
    },
    wallMs: () => seen.nowMs,
    suspendedMs: () => 0,
    after: (delayMs: number, callback: () => void) => {
      if (delayMs === 0) seen.gaveWay++;
      due.push(callback);
      return { cancel: () => {} };
    },
  };
  const node = { listFragments: async () => ok({ fragments: [], more: false }) };
  const state = loaded(stored);
  const lookUp = state.extent.bind(state);
  Object.assign(state, {
    extent: (id: number) => {
      seen.lookedUp++;
      return lookUp(extentId(id));
    },
  });
  const nodes = new NodeTable(clock, state, Number.POSITIVE_INFINITY);
  const report = { freeBytes: 1, totalBytes: 1, extentCount: 0, acceptsNewExtents: true };
  for (const place of places) nodes.report(place, 1, { ...report, reportNumber: 1 });
  const config = {
    ...{ copies: 3, minCopies: 2, repairAfterMs: 1e12, nodeDownAfterMs: 1e12, repairCopiesMax: 1, syncEveryMs: 1e9, codingsMax: 2 },
    ...{ repairBytesPerSecond: 1e12, codingBytesPerSecond: 1e12, erasureCoding: { profile: "rs-4-2", afterSeconds: 0, minBytes: 1 } },
  };
  const term = {
    world: { clock, rules: rulesWithout(), logger: silentLogger, random: { float: () => 0 }, transport: { client: () => node } },
    ...{ config, state, nodes, number: 1, ended: new AbortController().signal, level: { allows: () => true, level: 9 } },
    ledger: { commit: () => new Promise(() => {}) },
  } as unknown as Term;
  /** Lets what waits for a later turn go on, until nothing does. Returns the most extents that were looked up in one of the turns. */
  const go = async (): Promise<number> => {
    let most = 0;
    for (let idle = 0; idle < idleTurns; idle++) {
      const before = seen.lookedUp;
      await new Promise((resolve) => setImmediate(resolve));
      const callbacks = due.splice(0);
      if (callbacks.length > 0) idle = 0;
      for (const callback of callbacks) callback();
      most = Math.max(most, seen.lookedUp - before);
    }
    return most;
  };
  return { seen, state, nodes, report, term, go };
}

type Surroundings = ReturnType<typeof surroundings>;

function coderOf({ term }: Surroundings) {
  const held = new HeldFragments(term, () => {});
  const pace = new RepairPace(term.world.clock, 1e12);
  const coder = new Coder(term, { completer: new Completer(term), held, pace, copiesWait: () => false, over: () => {} });
  return { coder, held };
}

test("many coded extents: the comparison with an empty disk gives way, and every fragment on it is lost", async () => {
  const around = surroundings(coded);
  const { held } = coderOf(around);
  const [place] = coded.coded?.fragments ?? [];
  assert.ok(place !== undefined);
  held.heard(place, 1, { damage: "0", count: extents });
  const most = await around.go();
  assert.ok(most <= looksMax, `${most} extents in one turn`);
  for (let id = 1; id <= extents; id++) assert.ok(held.isLost(extentId(id), place), `extent ${id}`);
});

test("many coded extents: when a node comes back, what waited for repair is looked at in parts", async () => {
  const around = surroundings(coded);
  const { coder, held } = coderOf(around);
  const [place] = coded.coded?.fragments ?? [];
  assert.ok(place !== undefined);
  // No repair begins before the node is back.
  Object.assign(around.term.config, { repairCopiesMax: 0 });
  held.heard(place, 1, { damage: "0", count: extents });
  await around.go();
  coder.tick();
  await around.go();
  assert.ok(coder.repairs.mustRepair, "the scan has found them");
  // The fragments are there after all.
  const fragments = Array.from({ length: extents }, (_, i) => ({ extentId: BigInt(i + 1), version: 2n, index: 0, damage: "" }));
  const listFragments = async ({ afterExtentId }: { readonly afterExtentId: bigint }) =>
    ok({ fragments: fragments.slice(Number(afterExtentId), Number(afterExtentId) + 1_000), more: afterExtentId < extents - 1_000 });
  Object.assign(around.term.world.transport, { client: () => ({ listFragments }) });
  held.heard(place, 2, { damage: "0", count: extents });
  await around.go();
  assert.ok(!held.isLost(extentId(extents), place));
  Object.assign(around.term.config, { repairCopiesMax: 1 });
  around.seen.lookedUp = 0;
  coder.tick();
  assert.ok(around.seen.lookedUp <= looksMax, `${around.seen.lookedUp} extents in one turn`);
  const most = await around.go();
  assert.ok(most <= looksMax, `${most} extents in one turn`);
  assert.ok(!coder.repairs.mustRepair, "all were looked at");
});

test("many extents: when the policy takes none of the chosen ones any more, they are looked at in parts", async () => {
  const around = surroundings(replicated);
  const { term, nodes, report, seen } = around;
  const { coder } = coderOf(around);
  const repairer = { mustCopy: true };
  const chooser = new Chooser(term, {
    ...{ coder, completer: new Completer(term), pauses: { pause: undefined }, savedAges: { restore: () => {}, save: async () => {} } },
    repairer: repairer as unknown as Repairer,
  } as unknown as ConstructorParameters<typeof Chooser>[1]);
  for (let scan = 0; scan < 2; scan++) {
    seen.nowMs += 20_000;
    chooser.tick();
    await around.go();
  }
  assert.equal(chooser.survey.waiting.extents, extents, "a repair waits, and nothing is begun");
  // A node has another disk: its replicas are gone.
  nodes.report({ nodeId: "n1", diskId: "other" }, 2, { ...report, reportNumber: 2 });
  Object.assign(nodes, { reachable: (place: { readonly nodeId: string }) => place.nodeId !== "n1" });
  repairer.mustCopy = false;
  seen.lookedUp = 0;
  chooser.over(extentId(1), "code", "a reason");
  assert.ok(seen.lookedUp > 0 && seen.lookedUp <= looksMax, `${seen.lookedUp} extents in one turn`);
  const most = await around.go();
  assert.ok(most <= looksMax, `${most} extents in one turn`);
  assert.ok(seen.lookedUp >= extents, `${seen.lookedUp} extents were looked at`);
});

test("many extents with newer fragments: they are looked for in parts, and asking for them costs no look at an extent", async () => {
  const around = surroundings(replicated);
  const { coder, held } = coderOf(around);
  const [place] = places;
  assert.ok(place !== undefined);
  const fragments = Array.from({ length: extents }, (_, i) => ({ extentId: BigInt(i + 1), version: 9n, index: 0, damage: "" }));
  const listFragments = async ({ afterExtentId }: { readonly afterExtentId: bigint }) =>
    ok({ fragments: fragments.slice(Number(afterExtentId), Number(afterExtentId) + 1_000), more: afterExtentId < extents - 1_000 });
  Object.assign(around.term.world.transport, { client: () => ({ listFragments }) });
  held.heard(place, 1, { damage: "0", count: extents });
  await around.go();
  Object.assign(around.nodes, { reachable: () => false });
  around.seen.lookedUp = 0;
  coder.tick();
  assert.ok(around.seen.lookedUp > 0 && around.seen.lookedUp <= 2 * looksMax, `${around.seen.lookedUp} looks in one turn`);
  const most = await around.go();
  assert.ok(most <= 2 * looksMax, `${most} looks in one turn`);
  around.seen.lookedUp = 0;
  assert.equal(coder.facts.adoptable, extents);
  coder.adopted(extentId(5));
  assert.equal(coder.adoptable.includes(extentId(5)), false);
  assert.equal(around.seen.lookedUp, 0);
});

test("moved fragments: one whose extent is dropped, or whose attempt can't be committed, is counted no more", async () => {
  for (const begun of ["extent dropped", "commit refused"]) {
    const around = surroundings(coded);
    const { term, nodes, state, report } = around;
    // Two fragments share a domain, and the seventh node is one of its own.
    Object.assign(state, {
      node: (nodeId: string) => ({ nodeId, diskId: nodeId.replace("n", "d"), faultDomain: nodeId === "n2" ? "n1" : nodeId }),
    });
    const lookUp = state.extent.bind(state);
    let attempt: ExtentRecord["attempt"];
    let isDropped = false;
    const target = places[6] as (typeof places)[number];
    Object.assign(state, {
      extent: (id: number) => {
        const extent = lookUp(extentId(id));
        if (id !== extents || attempt === undefined || extent === undefined) return extent;
        return isDropped ? undefined : { ...extent, attempt };
      },
    });
    let commits = 0;
    Object.assign(term.ledger, {
      commit: async () => {
        commits += 1;
        if (commits > 1) return refused("aborted", "conflict", "the attempt is over");
        attempt = { version: extentVersion(4), kind: "repair", index: 1, target };
        isDropped = begun === "extent dropped";
        return ok();
      },
    });
    const node = { listFragments: async () => ok({ fragments: [], more: false }), repairFragment: async () => ok({ bytesRead: 1n }) };
    Object.assign(term.world.transport, { client: () => node });
    const { coder, held } = coderOf(around);
    Object.assign(held, { isCompared: () => true });
    for (const place of places) nodes.report(place, 1, { ...report, reportNumber: 2 });
    coder.repairs.tick();
    await around.go();
    assert.ok(commits > 0, `${begun}: a move began`);
    const { crowded } = coder.facts;
    coder.repairs.rescan();
    assert.ok(crowded <= extents - 1, `${begun}: ${crowded} crowded`);
  }
});
