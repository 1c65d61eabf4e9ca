/** Work over tens of thousands of extents gives way: a clock that goes on a little each time it is read says when a turn has been long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ok, ownerEpoch, rulesWithout, unwrap } from "@stamp/base";
import { silentLogger } from "@stamp/ports";
import { NodeDigest } from "@stamp/ports-node";
import { encodeStored, recordKey, type StoredRecord, StreamState } from "@stamp/stream";
import { NodeSync } from "./nodes/node-sync.ts";
import { NodeTable } from "./nodes/node-table.ts";
import { RepairPace } from "./repair/repair-pace.ts";
import { Repairer } from "./repair/repairer.ts";
import { Completer } from "./seal/completer.ts";
import type { Sealer } from "./seal/sealer.ts";
import type { Term } from "./term/term.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array): number => digest.crc32c(bytes);
const extents = 5_000;
const readMs = 0.05;
const place = { nodeId: "n1", diskId: "d1" };

/** Sealed extents in one stream; their replica on n1 is not known to be complete. */
function loaded(): StreamState {
  const records: StoredRecord[] = [{ kind: "node", record: { ...place, address: "n1", faultDomain: "n1", incarnation: 1 } }];
  for (let i = 1; i <= extents; i++) {
    const record = {
      ...{ id: extentId(i), phase: "sealed" as const, version: extentVersion(1), ownerEpoch: ownerEpoch(1), stream: "/s" },
      ...{ sealedLengthBytes: 1, removed: [], replicas: [{ ...place, complete: false }] },
    };
    records.push({ kind: "extent", record });
  }
  const tail = Array.from({ length: extents }, (_, i) => extentId(i + 1));
  records.push({ kind: "stream", record: { name: "/s", ownerEpoch: ownerEpoch(1), segments: [], skipCount: 0, tail } });
  const entries = records.map((record, i) => ({ key: recordKey(record), version: i + 1, value: encodeStored(record, crc32c) }));
  return unwrap(StreamState.load(entries, crc32c));
}

function surroundings() {
  const seen = { nowMs: 0, gaveWay: 0, sealCalls: 0, lookedUp: 0 };
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
  const node = {
    listExtentReplicas: async () => ok({ replicas: [], more: false }),
    sealExtent: () => {
      seen.sealCalls++;
      return new Promise(() => {});
    },
  };
  const state = loaded();
  const nodes = new NodeTable(clock, state, Number.POSITIVE_INFINITY);
  nodes.report(place, 1, { reportNumber: 1, freeBytes: 1, totalBytes: 1, extentCount: 0, acceptsNewExtents: true });
  const term = {
    world: { clock, rules: rulesWithout(), logger: silentLogger, random: { float: () => 0 }, transport: { client: () => node } },
    config: { copies: 1, minCopies: 1, repairAfterMs: 1e9, nodeDownAfterMs: 1e9, repairCopiesMax: 1, syncEveryMs: 1e9, sealTimeoutMs: 1 },
    ...{ state, nodes, number: 1, ended: new AbortController().signal, ledger: { commit: async () => ok() } },
  } as unknown as Term;
  /** Lets what waits for a later turn go on, until nothing does. */
  const go = async (turns: number): Promise<void> => {
    for (let i = 0; i < turns; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      for (const callback of due.splice(0)) callback();
    }
  };
  return { seen, state, term, go };
}

/** Turns of the loop that a walk over all extents takes at least. */
const turnsMin = Math.floor((extents * readMs) / 10) - 1;

test("many extents: a scan for repairs gives way, and a tick looks at a bounded part of what is incomplete", async () => {
  const { seen, state, term, go } = surroundings();
  const lookUp = state.extent.bind(state);
  Object.assign(state, {
    extent: (id: number) => {
      seen.lookedUp++;
      return lookUp(extentId(id));
    },
  });
  const repairer = new Repairer(term, new Completer(term), new RepairPace(term.world.clock, 1e9));
  repairer.tick();
  assert.ok(seen.lookedUp < extents / 2, `${seen.lookedUp} extents in one turn`);
  await go(2 * turnsMin + 10);
  assert.ok(seen.gaveWay >= turnsMin, `gave way ${seen.gaveWay} times`);
  seen.lookedUp = 0;
  repairer.tick();
  assert.ok(seen.lookedUp <= 1_000, `${seen.lookedUp} of ${extents} incomplete extents in one tick`);
});

test("many extents: a comparison with a node that has none of its replicas gives way, and asks for each of them", async () => {
  const { seen, term, go } = surroundings();
  const sync = new NodeSync(term, {} as Sealer, new Completer(term));
  sync.heard(place, 1);
  await go(4 * turnsMin + 20);
  assert.ok(seen.gaveWay >= 2 * turnsMin, `gave way ${seen.gaveWay} times`);
  assert.equal(seen.sealCalls, extents);
});
