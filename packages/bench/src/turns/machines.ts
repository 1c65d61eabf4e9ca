/**
 * Work of managers that no request of a client brings about and that grows with the stamp: changes of extent lists, of the partition map, plans of
 * load balancing, and their messages. The pure code that does it runs here, in one turn as it does there.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { extentId, extentVersion, type Outcome, ownerEpoch, rulesWithout, unwrap, utf8 } from "@stamp/base";
import {
  type AssignmentState,
  type BalancePolicy,
  balancePlan,
  firstRangeOf,
  nextSteps,
  type Range,
  type RangeFigures,
  RangeMap,
} from "@stamp/partition-map";
import { NodeDigest } from "@stamp/ports-node";
import { encodeStored, planDeleteStream, planMultiModify, recordKey, type StoredRecord, type StreamEdit, StreamState } from "@stamp/stream";
import { PartitionManager, PartitionServer, toWire } from "@stamp/wire";

export interface MachineInput {
  readonly name: string;
  /** Role of the process that runs the machine in a stamp. */
  readonly role: string;
  /** Makes the state that the work begins from, which is not measured. Returns the work. */
  readonly prepare: () => () => unknown;
}

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array): number => digest.crc32c(bytes);
const rules = rulesWithout();

export function machineInputs(scale: number): readonly MachineInput[] {
  const scaled = (count: number): number => Math.max(1, Math.ceil(count * scale));
  return [...streamInputs(scaled(50_000)), ...mapInputs(scaled(5_000), 40)];
}

const bigStream = "/ps/blob-1/blob-data";

function streamInputs(extents: number): readonly MachineInput[] {
  let made: readonly { key: string; version: number; value: Uint8Array }[] | undefined;
  const loaded = (): StreamState => {
    made ??= streamEntries(extents);
    return unwrap(StreamState.load(made, crc32c));
  };
  const apply = (state: StreamState, plan: Outcome<Parameters<StreamState["apply"]>[0]>): void => state.apply(unwrap(plan), 1_000_000);
  const heir = (name: string, epoch: number, streams: readonly string[]): StreamEdit => ({
    name,
    ownerEpoch: undefined,
    content: { ownerEpoch: ownerEpoch(epoch), ranges: streams.map((stream) => ({ stream })) },
  });
  const goes = (name: string, epoch: number): StreamEdit => ({ name, ownerEpoch: ownerEpoch(epoch), content: undefined });
  const split = (state: StreamState) =>
    planMultiModify(state, [goes(bigStream, 7), heir("/low", 8, [bigStream]), heir("/high", 9, [bigStream])], [], rules);
  return [
    {
      name: `a stream of ${extents} extents becomes two (split)`,
      role: "stream-manager",
      prepare: () => {
        const state = loaded();
        return () => apply(state, split(state));
      },
    },
    {
      name: `two streams of ${extents} extents become one (merge)`,
      role: "stream-manager",
      prepare: () => {
        const state = loaded();
        apply(state, split(state));
        return () =>
          apply(state, planMultiModify(state, [goes("/low", 8), goes("/high", 9), heir("/all", 10, ["/low", "/high"])], [], rules));
      },
    },
    {
      name: `a stream of ${extents} extents is deleted`,
      role: "stream-manager",
      prepare: () => {
        const state = loaded();
        return () => apply(state, planDeleteStream(state, bigStream, ownerEpoch(7), rules));
      },
    },
  ];
}

function streamEntries(extents: number): { key: string; version: number; value: Uint8Array }[] {
  const place = (i: number) => ({ nodeId: `extent-node-${(i % 40) + 1}`, diskId: `5d0f5f9e-2d5f-4a37-9a63-0000000000${10 + (i % 40)}` });
  const records: StoredRecord[] = [];
  const segments: { id: number; count: number }[] = [];
  for (let i = 1; i <= extents; i++) {
    const replicas = [0, 1, 2].map((more) => ({ ...place(i + more), complete: true }));
    const record = {
      ...{ id: extentId(i), phase: "sealed" as const, version: extentVersion(2), ownerEpoch: ownerEpoch(7), stream: bigStream },
      ...{ replicas, sealedLengthBytes: 134_217_728, checksum: i, removed: [] },
    };
    records.push({ kind: "extent", record });
    if (i % 1_000 !== 0 && i !== extents) continue;
    const from = segments.length * 1_000;
    const ids = Array.from({ length: i - from }, (_, at) => extentId(from + at + 1));
    segments.push({ id: extents + i, count: ids.length });
    records.push({ kind: "segment", id: extents + i, extents: ids });
  }
  records.push({ kind: "stream", record: { name: bigStream, ownerEpoch: ownerEpoch(7), segments, skipCount: 0, tail: [] } });
  return records.map((record, i) => ({ key: recordKey(record), version: i + 1, value: encodeStored(record, crc32c) }));
}

function mapInputs(count: number, serverCount: number): readonly MachineInput[] {
  const servers = Array.from({ length: serverCount }, (_, i) => `partition-server-${i + 1}`);
  const ranges = rangesOf(count, servers);
  const map = new RangeMap(1, ranges);
  const leases = servers.map((server) => ({ server, address: server, leaseEpoch: 1, ended: false, renewalsRefused: false }));
  const figures = new Map(ranges.map(({ rangeId }, i) => [rangeId, figuresOf(rangeId, i)]));
  const state: AssignmentState = {
    ranges: map.ranges,
    progress: new Map(ranges.map(({ rangeId }) => [rangeId, { kind: "loaded" }])),
    leases,
    unreachable: new Set(),
    avoided: new Set(),
    rules,
    heatOf: () => 1,
  };
  const { getMap } = PartitionManager.method;
  const { listPartitions } = PartitionServer.method;
  // Ranges as the partition manager has them: messages are made in turns, and kept.
  const whole = create(getMap.output, { version: toWire(1), ranges: map.ranges.map(rangeOnWire) });
  const bytes = toBinary(getMap.output, whole);
  const listed = create(listPartitions.output, { partitions: ranges.map(partitionOnWire) });
  const listedBytes = toBinary(listPartitions.output, listed);
  const changed = { ...(ranges[count >> 1] as Range), ownerEpoch: 9 };
  const input = (name: string, role: string, work: () => unknown): MachineInput => ({ name, role, prepare: () => work });
  const restarted = leases.map((lease) => ({ ...lease, leaseEpoch: 2 }));
  const orphans = ranges.map((range) => ({ ...range, server: "gone" }));
  const processors = new Map(servers.map((server, i) => [server, i]));
  const balanced = { ranges, figures, servers, resting: new Set<string>(), unmoved: new Set<string>(), settled: new Map(), processors };
  return [
    input(`one of ${count} ranges changes`, "partition-manager", () => new RangeMap(2, unwrap(map.with([changed], new Set())))),
    input(`the map of ${count} ranges is encoded`, "partition-manager", () => toBinary(getMap.output, whole)),
    input(`the map of ${count} ranges is decoded`, "front-end", () => fromBinary(getMap.output, bytes)),
    input(`figures of ${count} ranges are encoded`, "partition-server", () => toBinary(listPartitions.output, listed)),
    input(`figures of ${count} ranges are decoded`, "partition-manager", () => fromBinary(listPartitions.output, listedBytes)),
    input(`next steps of ${count} ranges that are served`, "partition-manager", () => nextSteps(state)),
    input(`next steps of ${count} ranges whose server is gone`, "partition-manager", () =>
      nextSteps({ ...state, leases: restarted, ranges: orphans }),
    ),
    input(`a plan of load balancing for ${count} ranges`, "partition-manager", () => balancePlan(balanced, policy)),
  ];
}

const policy: BalancePolicy = {
  ...{
    splitBytes: 1e12,
    splitRequestsPerSecond: 1e9,
    mergeBytes: 1e3,
    mergeRequestsPerSecond: 0.5,
    moveRatio: 1.1,
    moveRequestsPerSecond: 1,
  },
  ...{ moveProcessors: 0.1, moveBytesRatio: 1.1, moveBytes: 1, restMs: 0, rangesMax: 100_000 },
};

const keyAt = (i: number): Uint8Array => utf8(`account\u0000container-${String(i).padStart(8, "0")}`);

function rangesOf(count: number, servers: readonly string[]): Range[] {
  return Array.from({ length: count }, (_, i): Range => {
    const rangeId = `blob-${i + 1}-e${i + 100}`;
    const server = servers[i % servers.length] as string;
    const below = `/ps/${rangeId}`;
    return {
      ...firstRangeOf("Blob"),
      rangeId,
      low: i === 0 ? new Uint8Array(0) : keyAt(i),
      high: i === count - 1 ? new Uint8Array(0) : keyAt(i + 1),
      ownerEpoch: i + 100,
      streams: {
        metadata: `${below}/metadata`,
        commitLog: `${below}/commit-log`,
        rowData: `${below}/row-data`,
        blobData: `${below}/blob-data`,
      },
      ...{ server, serverAddress: "127.0.0.1:12345", leaseEpoch: 1, loaded: true, hasStreams: true },
    };
  });
}

const figuresOf = (rangeId: string, i: number): RangeFigures => ({
  rangeId,
  requestsPerSecond: i % 17,
  ...{ throttledPerSecond: 0, pending: 0, latencyMs: 1, bytesInPerSecond: 0, bytesOutPerSecond: 0 },
  bytes: (i % 40) * 1_000_000,
  ageMs: 1e9,
});

const rangeOnWire = (range: Range) => ({
  ...{ rangeId: range.rangeId, table: range.table, lowKey: range.low, highKey: range.high, server: range.server, change: "" },
  ...{ serverAddress: range.serverAddress, loaded: range.loaded, hasStreams: range.hasStreams, streams: { ...range.streams } },
  ...{ rangeVersion: toWire(range.rangeVersion), ownerEpoch: toWire(range.ownerEpoch), leaseEpoch: toWire(range.leaseEpoch) },
});

const partitionOnWire = ({ rangeId, table }: Range) => ({
  ...{ rangeId, table, ownerEpoch: 1n, rangeVersion: 1n, state: "loaded", sequence: 100_000n, memoryTableBytes: 1_000_000n },
  ...{ checkpointCount: 4, checkpointBytes: 100_000_000n, ageMs: 100_000n, load: { readsPerSecond: 1, writesPerSecond: 1, latencyMs: 1 } },
  storage: {
    pointReads: 100_000n,
    checkpointsMet: 1n,
    bloomAbsent: 1n,
    rowCacheHits: 1n,
    rowCacheMisses: 1n,
    rowsScanned: 1n,
    rowBytesAccepted: 1n,
    flushedBytes: 1n,
  },
});
