/** A healthy stamp as facts, and changes of it, for the tests of findings. */
import { create } from "@bufbuild/protobuf";
import { featureLevel } from "@stamp/base";
import {
  FeatureLevelStatusSchema,
  NodeDuty,
  type NodeInfo,
  NodeInfoSchema,
  ProcessVersionsSchema,
  RangePartitionSchema,
  RepairStatusSchema,
  ServerInfoSchema,
} from "@stamp/wire";
import type { ProcessAnswer, ProcessFacts, SetUpFacts, StampFacts } from "../facts.ts";

export const nowMs = Date.parse("2026-11-25T12:00:00Z");
export const gibibyte = 1024 ** 3;

const answerOf = (state: string, facts: ProcessAnswer["facts"]): ProcessAnswer => ({
  release: "0.1.0",
  versions: create(ProcessVersionsSchema, { featureLevel, levelInUse: featureLevel }),
  state,
  ready: true,
  waitingFor: [],
  uptimeMs: 3_600_000,
  wallAheadMs: 0,
  wallSetMs: 0,
  facts,
});

const processOf = (role: string, number: number, state = "serving", facts: ProcessAnswer["facts"] = {}): ProcessFacts => ({
  role,
  name: `${role}-${number}`,
  pid: 1_000 + number,
  grpc: `127.0.0.1:${number}`,
  http: "",
  state,
  ready: true,
  waitingFor: [],
  restarts: 0,
  lastExit: "",
  answer: answerOf(state, facts),
  silence: "",
  absence: undefined,
});

const nodeFacts = {
  takesExtents: true,
  diskFull: false,
  extents: { damaged: 0 },
  scrub: { enabled: true, findings: 0, finished: { findings: 0 } },
  metadataCopy: { ageMs: 5_000, failures: 0, failure: "", kept: 3 },
  tableRebuilt: false,
};

const leases = ["ps/partition-server-1", "ps/partition-server-2"].map((name) => ({ name, ended: false, refused: false }));

export const healthy: StampFacts = {
  nowMs,
  supervisor: "answers",
  supervisorPid: 999,
  asker: { secretFile: "/data/cluster-secret", problem: "", isMute: false },
  place: {
    dataDir: "/data",
    host: undefined,
    hostDirs: {},
    compose: "docker compose",
    container: "front-end-1",
    services: {},
    location: "",
  },
  cluster: { dataDir: "/data", endpoints: { blob: "", queue: "", table: "" }, connectionString: "", lockService: "" },
  processes: [
    processOf("lock-service", 1, "serving", { keys: 42, keysMax: 1_000, diskFull: false, leases }),
    ...[1, 2, 3, 4].map((number) => processOf("extent-node", number, "serving", nodeFacts)),
    processOf("stream-manager", 1, "leader", { sealedWithLoss: 0, waits: [] }),
    processOf("stream-manager", 2, "standby"),
    processOf("partition-manager", 1, "leader"),
    processOf("partition-manager", 2, "standby"),
    processOf("partition-server", 1),
    processOf("partition-server", 2),
    processOf("front-end", 1, "serving", { mapAgeMs: 100, took: {} }),
  ],
  streamLayer: {
    level: create(FeatureLevelStatusSchema, { level: featureLevel, known: featureLevel, recordedBy: "0.1.0" }),
    nodes: [1, 2, 3, 4].map((number) =>
      create(NodeInfoSchema, {
        nodeId: `extent-node-${number}`,
        up: true,
        duty: NodeDuty.SERVING,
        freeBytes: BigInt(100 * gibibyte),
        totalBytes: BigInt(200 * gibibyte),
        replicas: 7n,
      }),
    ),
    repair: create(RepairStatusSchema),
    quarantine: [],
    streams: [],
    extents: [],
    more: { streams: false, extents: false },
  },
  partitionLayer: {
    ranges: [
      create(RangePartitionSchema, { rangeId: "blob-1", server: "partition-server-1", loaded: true }),
      create(RangePartitionSchema, { rangeId: "entity-1", server: "partition-server-2", loaded: true }),
    ],
    servers: [1, 2].map((number) => create(ServerInfoSchema, { server: `partition-server-${number}`, up: true })),
  },
  setUp: {
    dataDir: "/data",
    httpBind: "127.0.0.1",
    internalBind: "127.0.0.1",
    restReach: undefined,
    internalReach: undefined,
    noAccount: undefined,
    copies: 3,
    minCopies: 2,
    extentNodes: 4,
    faultDomains: [],
    developmentAccountForOthers: false,
    tls: undefined,
    peers: undefined,
    notStarted: [],
    openPaths: [],
  },
  copies: [],
};

export type Change = (facts: StampFacts) => StampFacts;

export const withProcess =
  (name: string, change: Partial<ProcessFacts>): Change =>
  (facts) => ({ ...facts, processes: facts.processes.map((each) => (each.name === name ? { ...each, ...change } : each)) });

export const everyProcess =
  (change: Partial<ProcessFacts>): Change =>
  (facts) => ({ ...facts, processes: facts.processes.map((each) => ({ ...each, ...change })) });

export const withAnswer =
  (name: string, change: Partial<ProcessAnswer>): Change =>
  (facts) => ({
    ...facts,
    processes: facts.processes.map((each) =>
      each.name === name && each.answer !== undefined ? { ...each, answer: { ...each.answer, ...change } } : each,
    ),
  });

/** Adds to the facts of the role. */
export const withFacts =
  (name: string, more: ProcessAnswer["facts"]): Change =>
  (facts) =>
    withAnswer(name, { facts: { ...facts.processes.find((each) => each.name === name)?.answer?.facts, ...more } })(facts);

export const without =
  (...names: readonly string[]): Change =>
  (facts) => ({ ...facts, processes: facts.processes.filter(({ name }) => !names.includes(name)) });

export const down = (name: string): Change =>
  withProcess(name, { pid: null, answer: undefined, state: "restarting", lastExit: "signal SIGKILL", absence: "gone" });
export const paused = (name: string): Change =>
  withProcess(name, { answer: undefined, silence: "timeout after 1,200 ms", absence: "late" });

export const withNode =
  (number: number, change: object): Change =>
  (facts) => ({
    ...facts,
    streamLayer: facts.streamLayer && {
      ...facts.streamLayer,
      nodes: facts.streamLayer.nodes.map((node) => (node.nodeId === `extent-node-${number}` ? { ...node, ...change } : node)),
    },
  });

export const withNodes =
  (keep: (node: NodeInfo) => boolean): Change =>
  (facts) => ({ ...facts, streamLayer: facts.streamLayer && { ...facts.streamLayer, nodes: facts.streamLayer.nodes.filter(keep) } });

export const withRepair =
  (change: object): Change =>
  (facts) => ({
    ...facts,
    streamLayer: facts.streamLayer && { ...facts.streamLayer, repair: create(RepairStatusSchema, change) },
  });

export const withRange =
  (change: object): Change =>
  (facts) => ({
    ...facts,
    partitionLayer: facts.partitionLayer && {
      ...facts.partitionLayer,
      ranges: facts.partitionLayer.ranges.map((range) => (range.rangeId === "blob-1" ? { ...range, ...change } : range)),
    },
  });

export const withServer =
  (change: object): Change =>
  (facts) => ({
    ...facts,
    partitionLayer: facts.partitionLayer && {
      ...facts.partitionLayer,
      servers: facts.partitionLayer.servers.map((server) =>
        server.server === "partition-server-1" ? create(ServerInfoSchema, { ...server, ...change }) : server,
      ),
    },
  });

export const withSetUp =
  (change: Partial<SetUpFacts>): Change =>
  (facts) => ({ ...facts, setUp: facts.setUp && { ...facts.setUp, ...change } });

export const all =
  (...changes: readonly Change[]): Change =>
  (facts) =>
    changes.reduce((at, change) => change(at), facts);

export const nodes = ["extent-node-1", "extent-node-2", "extent-node-3", "extent-node-4"];
export const slow = { recent: { count: 500, p99Ms: 900 } };
export const endsIn = (days: number) => ({ tls: { certificate: "/server.pem", endsAtMs: nowMs + days * 24 * 3_600_000, problem: "" } });

export const open = { httpBind: "0.0.0.0", restReach: "REST on 10000-10002" };

/** The level that is recorded for the stamp, and those that have told the stream manager that they do not know the next one. */
export const withLevel =
  (level: number, inTheWay: readonly string[] = []): Change =>
  (facts) => ({
    ...facts,
    streamLayer: facts.streamLayer && {
      ...facts.streamLayer,
      level: create(FeatureLevelStatusSchema, { level, known: featureLevel, inTheWay: [...inTheWay] }),
    },
  });
