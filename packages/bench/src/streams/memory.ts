/**
 * Memory of the stream manager's state: a million sealed extents in lists, read in pages as a standby does; and what is left to do at a
 * take-over, when it reads a thousand keys that changed.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { extentId, extentVersion, ownerEpoch, unwrap, utf8 } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import { encodeStored, keyOf, type StoredEntry, type StoredRecord, StreamState, segmentExtentsMax } from "@stamp/stream";
import { numbers } from "./bench.ts";

const pageKeys = 1_000;

export async function memory(args: string[]): Promise<void> {
  const { extents: count, streams, nodes } = numbers(args, "memory", { extents: 1_000_000, streams: 1_000, nodes: 40 });
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const digest = new NodeDigest();
  const checksum = (bytes: Uint8Array): number => digest.crc32c(bytes);
  const entries = function* () {
    for (const stored of records(count, streams, nodes)) {
      // Records as they come from the store: each with strings of its own.
      yield { key: String(Buffer.from(utf8(keyOf(stored)))), value: encodeStored(stored, checksum), version: 7 };
    }
  };
  collect();
  const before = process.memoryUsage();
  const startMs = performance.now();
  const state = new StreamState();
  let longestMs = 0;
  const turn = (work: () => void): number => {
    const fromMs = performance.now();
    work();
    longestMs = Math.max(longestMs, performance.now() - fromMs);
    return performance.now() - fromMs;
  };
  for (let page: StoredEntry[] = [], all = entries(); ; page = []) {
    for (let next = all.next(); !next.done; next = all.next()) if (page.push(next.value) === pageKeys) break;
    if (page.length === 0) break;
    turn(() => unwrap(state.take(page, checksum)));
  }
  let complete = false;
  while (!complete) {
    turn(() => {
      complete = unwrap(state.complete(10 * pageKeys));
    });
  }
  const loadMs = performance.now() - startMs;
  const changed = [...state.extents()].slice(0, pageKeys).map((record) => ({ kind: "extent", record }) as const);
  const changes = changed.map((stored) => ({ key: keyOf(stored), value: encodeStored(stored, checksum), version: 8 }));
  const takeOverMs = turn(() => unwrap(state.take(changes, checksum)));
  const pageMs = turn(() => void state.extentsAfter(count / 2, pageKeys + 1));
  const statMs = turn(() => void [...state.streamNames()].map((name) => state.sealedBytes(name)));
  const statusMs = turn(() => void [state.phaseCounts, ...Array.from({ length: nodes }, (_, i) => state.replicasOn(`extent-node-${i}`))]);
  collect();
  const after = process.memoryUsage();
  const bytes = after.heapUsed + after.external - before.heapUsed - before.external;
  console.log(`${state.extentCount} extents in ${state.streamCount} streams on ${nodes} nodes`);
  console.log(
    `  ${(bytes / state.extentCount).toFixed(0)} bytes of heap for each extent (${(bytes / 2 ** 20).toFixed(0)} MiB), lists included`,
  );
  console.log(`  loaded in ${(loadMs / 1000).toFixed(1)} s, encoding of the records included, longest turn ${longestMs.toFixed(0)} ms`);
  console.log(
    `  a page of ${pageKeys} of all extents: ${pageMs.toFixed(1)} ms; counts for the status: ${statusMs.toFixed(2)} ms, of every stream: ${statMs.toFixed(1)} ms`,
  );
  console.log(`  ${pageKeys} changed keys at a take-over: ${takeOverMs.toFixed(1)} ms`);
}

function* records(count: number, streams: number, nodes: number): Generator<StoredRecord> {
  const perStream = Math.ceil(count / streams);
  let segmentId = count;
  for (let id = 1; id <= count; id++) {
    yield {
      kind: "extent",
      record: {
        id: extentId(id),
        phase: "sealed",
        version: extentVersion(2),
        ownerEpoch: ownerEpoch(3),
        stream: `/ps/blob-${Math.floor((id - 1) / perStream)}/blob-data`,
        replicas: [0, 1, 2].map((i) => {
          const node = (Math.imul(id, 2_654_435_761) + i * 7 + (id % 3)) >>> 0;
          const nodeId = `extent-node-${(node % Math.max(nodes - 14, 1)) + i * 7}`;
          return { nodeId, diskId: `disk-of-${nodeId}-0123456789abcdef`, complete: true };
        }),
        sealedLengthBytes: 67_000_000 + id,
        removed: [],
        checksum: Math.imul(id, 40_503) >>> 0,
      },
    };
  }
  for (let stream = 0; stream < streams; stream++) {
    const from = stream * perStream + 1;
    const to = Math.min(count + 1, from + perStream);
    const segments: { id: number; count: number }[] = [];
    let at = from;
    for (; at + segmentExtentsMax < to; at += segmentExtentsMax) {
      segmentId += 1;
      segments.push({ id: segmentId, count: segmentExtentsMax });
      const first = at;
      yield { kind: "segment", id: segmentId, extents: Array.from({ length: segmentExtentsMax }, (_, i) => extentId(first + i)) };
    }
    const tail = Array.from({ length: Math.max(to - at, 0) }, (_, i) => extentId(at + i));
    yield { kind: "stream", record: { name: `/ps/blob-${stream}/blob-data`, ownerEpoch: ownerEpoch(3), segments, skipCount: 0, tail } };
  }
}
