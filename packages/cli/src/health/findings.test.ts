import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { NodeDuty, QuarantinedReplicaSchema } from "@stamp/wire";
import { findingsOf, healthOf } from "./findings.ts";
import { healthText } from "./health-text.ts";
import { type Code, kinds } from "./kinds/kinds.ts";
import {
  all,
  type Change,
  down,
  endsIn,
  gibibyte,
  healthy,
  nodes,
  nowMs,
  open,
  paused,
  slow,
  withAnswer,
  withFacts,
  withLevel,
  withNode,
  withNodes,
  without,
  withProcess,
  withRange,
  withRepair,
  withServer,
  withSetUp,
} from "./testing/healthy.ts";

interface Case {
  readonly change: Change;
  /** Subject of the finding. */
  readonly subject?: string;
  readonly cause: RegExp;
  /** Only for help that depends on the facts. */
  readonly help?: RegExp;
  /** A change that goes nearly as far and gives no such finding. */
  readonly notYet?: Change;
}

const cases: Readonly<Record<Code, Case>> = {
  "supervisor-gone": { change: (facts) => ({ ...facts, supervisor: "gone", supervisorPid: null }), cause: /processes of the last one/ },
  "supervisor-silent": { change: (facts) => ({ ...facts, supervisor: "silent" }), subject: "999", cause: /999 did not answer/ },
  "lock-service-away": { change: paused("lock-service-1"), subject: "lock-service-1", cause: /1001 does not answer/ },
  "store-damaged": {
    change: withAnswer("stream-manager-1", { state: "damaged", ready: false, waitingFor: ["an older store was put back"] }),
    subject: "stream-manager-1",
    cause: /an older store.*; no copy of the metadata was found on the extent nodes$/,
    notYet: withAnswer("extent-node-1", { state: "damaged" }),
  },
  "store-empty": {
    change: all(
      withAnswer("lock-service-1", { state: "empty", ready: false, waitingFor: ["a stamp"] }),
      withFacts("extent-node-2", { metadataCopy: { version: 9, takenAtMs: nowMs - 5_000, path: "/data/9.snapshot" } }),
      down("extent-node-1"),
    ),
    subject: "lock-service-1",
    cause: /at extent-node-2: \/data\/9\.snapshot, up to transaction 9, taken 5\.0 s ago \(1 extent node does not answer\)$/,
    help: /^put the newest copy back: \.\/stamp down --data \/data; \.\/stamp metadata restore --replace \/data\/9\.snapshot --data \/data && \.\/stamp up/,
    notYet: withAnswer("lock-service-1", { state: "starting", ready: false }),
  },
  "store-of-another-stamp": {
    change: all(
      withFacts("lock-service-1", { stampId: "new" }),
      withFacts("extent-node-2", { stampId: "old", metadataCopy: { version: 9, takenAtMs: nowMs, path: "/data/files/9.snapshot" } }),
      (facts) => ({ ...facts, setUp: undefined }),
    ),
    subject: "lock-service-1",
    cause: /it is stamp new, but 1 extent node holds data of another: extent-node-2; the newest copy is at extent-node-2/,
    help: /docker compose cp extent-node-2:\/data\/files\/9\.snapshot/,
    notYet: all(withFacts("lock-service-1", { stampId: "new" }), withFacts("extent-node-2", { stampId: "new" })),
  },
  "role-absent": { change: down("front-end-1"), subject: "front-end", cause: /none of 1/, notYet: down("partition-server-1") },
  "process-down": { change: down("partition-server-1"), subject: "partition-server-1", cause: /started again; it ended last with signal/ },
  "process-silent": { change: paused("partition-server-2"), subject: "partition-server-2", cause: /process 1002 does not answer/ },
  "process-not-ready": {
    change: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"] }),
    subject: "front-end-1",
    cause: /starting and waits for the map, 3600 s/,
    notYet: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"], uptimeMs: 5_000 }),
  },
  "process-starting": {
    change: withAnswer("front-end-1", { ready: false, state: "starting", waitingFor: ["the map"], uptimeMs: 5_000 }),
    subject: "front-end-1",
    cause: /waits for the map, 5\.0 s/,
  },
  "process-late": {
    change: withAnswer("front-end-1", { waitingFor: ["the map of the ranges"] }),
    subject: "front-end-1",
    cause: /the map of the ranges/,
  },
  "process-cannot-start": {
    change: all(down("extent-node-1"), withProcess("extent-node-1", { restarts: 4, lastExit: "exit code 69: EACCES" })),
    subject: "extent-node-1",
    cause: /4 times and ended with exit code 69: EACCES/,
    notYet: all(down("extent-node-1"), withProcess("extent-node-1", { restarts: 2 })),
  },
  "process-restarts": {
    change: all(withProcess("front-end-1", { restarts: 3 }), withAnswer("front-end-1", { uptimeMs: 60_000 })),
    subject: "front-end-1",
    cause: /3 times, the last time 60 s ago/,
    notYet: withProcess("front-end-1", { restarts: 3 }),
  },
  "release-mix": {
    change: withAnswer("front-end-1", { release: "0.2.0" }),
    cause: /0\.1\.0 of level 1: lock-service-1.*; 0\.2\.0 of level 1: front-end-1/,
  },
  "process-too-old": {
    change: withAnswer("partition-server-2", { versions: undefined }),
    subject: "partition-server-2",
    cause: /^it knows level 0, and the stamp has level 1$/,
    notYet: all(withLevel(0), withAnswer("partition-server-2", { versions: undefined })),
  },
  "upgrade-open": {
    change: withLevel(0),
    cause: /^every process knows level 1, and the stamp has level 0$/,
    // A node that is in no plan, and one process that does not answer.
    notYet: all(withLevel(0, ["extent-node-9 (extent-node) is down"])),
  },
  "clock-set": {
    change: withAnswer("front-end-1", { wallSetMs: -3_000 }),
    subject: "front-end-1",
    cause: /set 3\.0 s back/,
    notYet: withAnswer("front-end-1", { wallSetMs: 900 }),
  },
  "clock-apart": {
    change: withAnswer("front-end-1", { wallAheadMs: 5_000 }),
    subject: "front-end-1",
    cause: /5\.0 s ahead/,
    notYet: withAnswer("front-end-1", { wallAheadMs: -1_900 }),
  },
  "no-stream-manager": { change: down("stream-manager-1"), cause: /stream-manager-1 does not answer, stream-manager-2 standby/ },
  "no-partition-manager": {
    change: withAnswer("partition-manager-1", { state: "starting", ready: false }),
    cause: /partition-manager-1 starting/,
  },
  "no-standby": { change: down("stream-manager-2"), subject: "stream-manager", cause: /leader, stream-manager-2 does not answer/ },
  "lease-ended": {
    change: withFacts("lock-service-1", { leases: [{ name: "ps/partition-server-1", ended: true, refused: false }] }),
    subject: "partition-server-1",
    cause: /has ended/,
    notYet: withFacts("lock-service-1", { leases: [{ name: "ps/one-of-long-ago", ended: true, refused: false }] }),
  },
  "lease-refused": {
    change: withFacts("lock-service-1", { leases: [{ name: "ps/partition-server-1", ended: false, refused: true }] }),
    subject: "partition-server-1",
    cause: /is refused/,
  },
  "metadata-keys-many": {
    change: withFacts("lock-service-1", { keys: 801 }),
    subject: "lock-service-1",
    cause: /801 of 1000/,
    notYet: withFacts("lock-service-1", { keys: 799 }),
  },
  "metadata-disk-full": { change: withFacts("lock-service-1", { diskFull: true }), subject: "lock-service-1", cause: /0 B are free/ },
  "metadata-slow": {
    change: withFacts("lock-service-1", { wrote: slow }),
    subject: "lock-service-1",
    cause: /900 ms/,
    notYet: withFacts("lock-service-1", { wrote: { recent: { count: 5, p99Ms: 900 } } }),
  },
  "node-down": { change: down("extent-node-2"), subject: "extent-node-2", cause: /started again.*; 7 replicas/ },
  "nodes-below-minimum": {
    change: all(withNode(1, { up: false }), withNode(2, { up: false }), withNode(3, { up: false })),
    cause: /1 extent node takes extents; minCopies is 2/,
  },
  "nodes-below-copies": {
    change: all(withNode(1, { up: false }), withNode(2, { duty: NodeDuty.DRAINING })),
    cause: /2 extent nodes take extents; copies is 3/,
    notYet: withNode(1, { up: false }),
  },
  "no-spare-node": { change: withNode(1, { up: false }), cause: /3 extent nodes take extents/ },
  "node-not-started": {
    change: withSetUp({ notStarted: ["extent-node-5"] }),
    subject: "extent-node-5",
    cause: /disk is in the data folder/,
  },
  "node-decommissioned": {
    change: withNode(2, { duty: NodeDuty.DECOMMISSIONED, replicas: 0n }),
    subject: "extent-node-2",
    cause: /it runs, and 0 replicas are needed of it/,
    notYet: all(withNode(2, { duty: NodeDuty.DECOMMISSIONED }), without("extent-node-2")),
  },
  "node-draining": { change: withNode(1, { duty: NodeDuty.DRAINING }), subject: "extent-node-1", cause: /7 replicas/ },
  "node-drain-blocked": {
    change: withNode(1, { duty: NodeDuty.DRAINING, blocked: ["no other node has room"] }),
    subject: "extent-node-1",
    cause: /no other node has room/,
  },
  "disk-filling": {
    change: withNode(1, { freeBytes: BigInt(20 * gibibyte) }),
    subject: "extent-node-1",
    cause: /20 GiB of 200 GiB/,
    notYet: withNode(1, { freeBytes: BigInt(39 * gibibyte) }),
  },
  "disk-full": {
    change: withFacts("extent-node-1", { takesExtents: false, diskFull: true, freeBytes: 1024 }),
    subject: "extent-node-1",
    cause: /1\.0 KiB are free, and it refuses appends/,
  },
  "disks-full": {
    change: all(...nodes.map((name) => withFacts(name, { takesExtents: false }))),
    cause: /none of 4/,
    notYet: all(...nodes.slice(1).map((name) => withFacts(name, { takesExtents: false }))),
  },
  "disk-hangs": {
    change: withFacts("extent-node-1", { journalDisk: { oldestInHandMs: 6_000 } }),
    subject: "extent-node-1",
    cause: /at the journal's disk for 6\.0 s/,
    notYet: withFacts("extent-node-1", { disk: { oldestInHandMs: 4_900 } }),
  },
  "disk-queue": { change: withFacts("extent-node-1", { disk: { oldestQueuedMs: 1_500 } }), subject: "extent-node-1", cause: /1\.5 s/ },
  "journal-slow": {
    change: withFacts("extent-node-1", { journalSync: slow }),
    subject: "extent-node-1",
    cause: /900 ms/,
    notYet: withFacts("extent-node-1", { journalSync: { recent: { count: 500, p99Ms: 199 } } }),
  },
  "journal-backlog": {
    change: withFacts("extent-node-1", { pendingBytes: 50 * 1024 * 1024 }),
    subject: "extent-node-1",
    cause: /50 MiB wait/,
    notYet: withFacts("extent-node-1", { pendingBytes: 40 * 1024 * 1024 }),
  },
  "replica-damaged": { change: withFacts("extent-node-1", { extents: { damaged: 2 } }), subject: "extent-node-1", cause: /2 replicas/ },
  "fragment-damaged": { change: withFacts("extent-node-1", { damagedFragments: 1 }), subject: "extent-node-1", cause: /1 fragment is/ },
  "scrub-found": {
    change: withFacts("extent-node-1", { scrub: { enabled: true, findings: 1, finished: { findings: 2 } } }),
    subject: "extent-node-1",
    cause: /3 findings/,
  },
  "scrub-off": {
    change: withFacts("extent-node-1", { scrub: { enabled: false } }),
    subject: "extent-node-1",
    cause: /scrubBytesPerSecond/,
  },
  "table-rebuilt": { change: withFacts("extent-node-1", { tableRebuilt: true }), subject: "extent-node-1", cause: /made its extent table/ },
  "metadata-copy-old": {
    change: withFacts("extent-node-1", { metadataCopy: { ageMs: 130_000, failures: 4, failure: "no room", kept: 3 } }),
    subject: "extent-node-1",
    cause: /130 s, 4 attempts failed: no room/,
    // The lock service is down: then this is no news.
    notYet: all(
      withFacts("extent-node-1", { metadataCopy: { ageMs: 130_000, failures: 4, failure: "no room", kept: 3 } }),
      down("lock-service-1"),
    ),
  },
  "metadata-copies-none": {
    change: all(...nodes.map((name) => withFacts(name, { metadataCopy: { ageMs: 95_000, failures: 0, kept: 0 } }))),
    cause: /none of 4/,
    notYet: all(
      ...nodes.flatMap((name) => [
        withFacts(name, { metadataCopy: { ageMs: 20_000, failures: 0, kept: 0 } }),
        withAnswer(name, { uptimeMs: 20_000 }),
      ]),
    ),
  },
  "extents-unknown": {
    change: (facts) => ({ ...facts, streamLayer: undefined }),
    subject: "stream-manager-1",
    cause: /did not answer in time/,
  },
  "extents-unreachable": { change: withRepair({ unreachable: 2n }), cause: /2 sealed extents/ },
  "extents-endangered": { change: withRepair({ endangered: 2n }), cause: /one intact copy left/ },
  "replicas-missing": {
    change: withRepair({ replicasWaiting: 5n, bytesWaiting: 2048n, copiesRunning: 1, etaMs: 12_000n }),
    cause: /5 replicas wait \(2\.0 KiB\), 1 of them being copied, about 12 s left/,
  },
  "replicas-awaited": { change: withRepair({ replicasInGrace: 3n }), cause: /3 extents/ },
  "coded-unreachable": { change: withRepair({ fragmentsUnreachable: 1n }), cause: /1 coded extent misses too many/ },
  "coded-endangered": { change: withRepair({ fragmentsEndangered: 2n }), cause: /2 coded extents bear no further loss/ },
  "fragments-missing": {
    change: withRepair({ fragmentsWaiting: 3n, fragmentEtaMs: 12_000n }),
    cause: /3 coded extents wait for a fragment, about 12 s left$/,
  },
  "fragments-awaited": { change: withRepair({ fragmentsInGrace: 1n }), cause: /1 coded extent misses a node/ },
  "coded-forgotten": { change: withFacts("stream-manager-1", { coding: { adoptable: 2 } }), cause: /newer fragments of 2 extents$/ },
  "coding-stuck": {
    change: withFacts("stream-manager-1", { coding: { failing: 2, failures: ["node n1 can't be reached"] } }),
    cause: /2 extents wait for another attempt: node n1 can't be reached/,
    notYet: withFacts("stream-manager-1", { coding: { failing: 0, failures: [] } }),
  },
  "coding-paused": {
    change: withFacts("stream-manager-1", { coding: { paused: true } }),
    cause: /paused by a person/,
    notYet: withFacts("stream-manager-1", { coding: { paused: false } }),
  },
  "stray-fragments": {
    change: withFacts("stream-manager-1", { coding: { strays: 2 } }),
    cause: /^2 fragments without a record$/,
    notYet: withFacts("stream-manager-1", { coding: { strays: 0 } }),
  },
  "repair-blocked": { change: withRepair({ blocked: ["no node has room for extent 7"] }), cause: /extent 7/ },
  quarantine: {
    change: (facts) => ({
      ...facts,
      streamLayer: facts.streamLayer && {
        ...facts.streamLayer,
        quarantine: [create(QuarantinedReplicaSchema, { nodeId: "extent-node-3", extentId: 9n, why: "no record" })],
      },
    }),
    subject: "extent-node-3",
    cause: /1 replica in quarantine \(extent 9\): no record/,
  },
  "sealed-with-loss": { change: withFacts("stream-manager-1", { sealedWithLoss: 1 }), cause: /1 extent$/ },
  "stream-manager-waits": {
    change: withFacts("stream-manager-1", { waits: ["extent 7 waits for extent-node-2"] }),
    subject: "stream-manager-1",
    cause: /extent 7 waits/,
  },
  "ranges-unknown": { change: (facts) => ({ ...facts, partitionLayer: undefined }), subject: "partition-manager-1", cause: /in time/ },
  "range-unassigned": { change: withRange({ server: "", loaded: false }), subject: "blob-1", cause: /1 of 2 ranges: blob-1$/ },
  "range-loading": { change: withRange({ loaded: false }), subject: "blob-1", cause: /blob-1 at partition-server-1/ },
  "range-server-away": { change: paused("partition-server-1"), subject: "blob-1", cause: /blob-1 at partition-server-1/ },
  "range-changing": { change: withRange({ change: "split: prepared" }), subject: "blob-1", cause: /split: prepared/ },
  "single-server": { change: without("partition-server-2"), subject: "partition-server-1", cause: /one partition server/ },
  "server-away": { change: withServer({ up: false }), subject: "partition-server-1", cause: /lease has ended/ },
  throttled: {
    change: withServer({ load: { $typeName: "stamp.v1.ServerLoad", throttledPerSecond: 2.5 } }),
    subject: "partition-server-1",
    cause: /2\.5 requests a second/,
  },
  "account-shed": {
    change: withFacts("partition-server-1", { admission: { shed: ["acct"] } }),
    subject: "partition-server-1",
    cause: /acct/,
  },
  overloaded: {
    change: withFacts("front-end-1", { admission: { standing: true, atWork: 64, waiting: 12 } }),
    subject: "front-end-1",
    cause: /64 requests at work, 12 others wait/,
    notYet: withFacts("front-end-1", { admission: { standing: true, atWork: 3, waiting: 0 } }),
  },
  "requests-slow": {
    change: withFacts("front-end-1", { took: { write: { "2xx": { recent: { count: 500, p99Ms: 2_500 } } } } }),
    subject: "front-end-1",
    cause: /blob write\) took 2\.5 s/,
    notYet: withFacts("front-end-1", { took: { list: { "2xx": { recent: { count: 500, p99Ms: 2_500 } } } } }),
  },
  "requests-fail": {
    change: withFacts("front-end-1", { queue: { took: { read: { "5xx": { recent: { count: 4 } } } } } }),
    subject: "front-end-1",
    cause: /4 requests \(queue read\)/,
  },
  "appends-fail": {
    change: withFacts("extent-node-1", { took: { appendFailed: { recent: { count: 3 } } } }),
    subject: "extent-node-1",
    cause: /3 appends/,
    notYet: withFacts("extent-node-1", { took: { appendFailed: { recent: { count: 2 } } } }),
  },
  "map-old": { change: withFacts("front-end-1", { mapAgeMs: 40_000 }), subject: "front-end-1", cause: /40 s/ },
  "public-key-reachable": {
    change: withSetUp({ ...open, developmentAccountForOthers: true }),
    subject: "0.0.0.0",
    cause: /allowDevelopmentAccount/,
    notYet: withSetUp({ developmentAccountForOthers: true }),
  },
  "reachable-by-others": {
    change: withSetUp(open),
    subject: "0.0.0.0",
    cause: /REST on 10000-10002/,
  },
  "internal-ports-reachable": {
    change: withSetUp({ internalBind: "10.1.2.3", internalReach: "gRPC on 10100-10111" }),
    subject: "10.1.2.3",
    cause: /gRPC on 10100-10111/,
    notYet: withSetUp(open),
  },
  "no-tls": { change: withSetUp(open), subject: "0.0.0.0", cause: /tlsCert/ },
  "no-account": { change: withSetUp({ ...open, noAccount: "only devstoreaccount1" }), cause: /only devstoreaccount1/ },
  "certificate-ended": {
    change: withSetUp(endsIn(-1)),
    subject: "/server.pem",
    cause: /ended at 2026-11-24/,
    notYet: withSetUp(endsIn(1)),
  },
  "certificate-ends": { change: withSetUp(endsIn(12)), subject: "/server.pem", cause: /in 12 days/, notYet: withSetUp(endsIn(31)) },
  "certificate-unreadable": {
    change: withSetUp({ tls: { certificate: "/server.pem", endsAtMs: undefined, problem: "not a certificate" } }),
    subject: "/server.pem",
    cause: /not a certificate/,
  },
  "cluster-certificate-ended": {
    change: withSetUp({ peers: endsIn(-1).tls }),
    subject: "/server.pem",
    cause: /ended at 2026-11-24/,
    notYet: withSetUp({ peers: endsIn(1).tls }),
  },
  "cluster-certificate-ends": {
    change: withSetUp({ peers: endsIn(12).tls }),
    subject: "/server.pem",
    cause: /in 12 days/,
    help: /certs cluster rotate/,
    notYet: withSetUp({ peers: endsIn(31).tls }),
  },
  "cluster-certificate-unusable": {
    change: withSetUp({ peers: { certificate: "/server.pem", endsAtMs: undefined, problem: "not the one of" } }),
    subject: "/server.pem",
    cause: /not the one of/,
  },
  "secret-unusable": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "/data/cluster-secret is a folder" } }),
    subject: "front-end-1",
    cause: /is a folder/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "" } }),
  },
  "secret-rotation-open": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa", "bb"], madeMs: nowMs, problem: "" } }),
    cause: /1 process accepts two: front-end-1/,
    help: /secret rotate/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs, problem: "" } }),
  },
  "secret-old": {
    change: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs - 366 * 86_400_000, problem: "" } }),
    cause: /made 366 days ago/,
    notYet: withAnswer("front-end-1", { secret: { ids: ["aa"], madeMs: nowMs - 365 * 86_400_000, problem: "" } }),
  },
  "master-key-unusable": {
    change: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "/data/master-key is gone" }),
    subject: "partition-server-1",
    cause: /is gone/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
  },
  "master-keys-differ": {
    change: all(
      withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
      withFacts("partition-server-2", { masterKeys: [], masterKeyProblem: "" }),
    ),
    cause: /partition-server-1 with aa; partition-server-2 with none/,
    notYet: all(
      withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
      withFacts("partition-server-2", { masterKeys: ["aa"], masterKeyProblem: "" }),
    ),
  },
  "master-key-rotation-open": {
    change: withFacts("partition-server-1", { masterKeys: ["aa", "bb"], masterKeyProblem: "" }),
    cause: /1 partition server with several: partition-server-1/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "" }),
  },
  "master-key-old": {
    change: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "", masterKeyMadeMs: nowMs - 366 * 86_400_000 }),
    cause: /made 366 days ago/,
    notYet: withFacts("partition-server-1", { masterKeys: ["aa"], masterKeyProblem: "", masterKeyMadeMs: nowMs - 365 * 86_400_000 }),
  },
  "copies-not-possible": { change: withSetUp({ copies: 5 }), cause: /copies is 5, and 4 extent nodes run/ },
  "domains-too-few": {
    change: withSetUp({ faultDomains: ["a", "b"] }),
    cause: /2 fault domains for 3 copies/,
    notYet: withSetUp({ faultDomains: ["a", "b", "c"] }),
  },
  "files-open": { change: withSetUp({ openPaths: ["/data/logs"] }), subject: "/data/logs", cause: /\/data\/logs/ },
};

describe("findings of health", () => {
  it("a healthy stamp has none, and says what it is made of", () => {
    const health = healthOf(healthy);
    assert.deepEqual(health.findings, []);
    assert.equal(health.sentence, "healthy: 12 of 12 processes are ready, 2 ranges are served, 4 extent nodes keep the data");
  });

  for (const [code, { change, subject = "", cause, help, notYet }] of Object.entries(cases) as [Code, Case][]) {
    it(`${code}: is found, with its cause and what helps`, () => {
      const found = findingsOf(change(healthy)).filter((each) => each.code === code);
      assert.equal(found.length, 1, JSON.stringify(findingsOf(change(healthy))));
      assert.equal(found[0]?.subject, subject);
      assert.match(found[0]?.cause ?? "", cause);
      assert.equal(found[0]?.severity, kinds[code].severity);
      assert.doesNotMatch(found[0]?.help ?? "SUBJECT", /SUBJECT|PID/);
      assert.doesNotMatch(found[0]?.help ?? "", /--init/);
      if (help !== undefined) assert.match(found[0]?.help ?? "", help);
      const not = notYet === undefined ? [] : findingsOf(notYet(healthy)).filter((each) => each.code === code);
      assert.deepEqual(not, []);
    });
  }

  it("one of something is told as one", () => {
    const one = all(
      ...[
        withRepair({ replicasWaiting: 1n, replicasInGrace: 1n, endangered: 1n, unreachable: 1n }),
        withNode(2, { up: false, replicas: 1n }),
      ],
      ...[withSetUp({ extentNodes: 1, copies: 3 }), withProcess("front-end-1", { restarts: 3 }), withRange({ server: "" })],
      ...[
        withFacts("front-end-1", {
          admission: { standing: true, atWork: 1, waiting: 1 },
          took: { read: { "5xx": { recent: { count: 1 } } } },
        }),
      ],
      ...[withFacts("extent-node-1", { extents: { damaged: 1 }, scrub: { enabled: true, findings: 1 } })],
      withFacts("stream-manager-1", { sealedWithLoss: 1 }),
    );
    const causes = findingsOf(one(healthy)).map(({ cause }) => cause);
    assert.ok(causes.length >= 12, causes.join("\n"));
    const words = "nodes|replicas|extents|ranges|requests|others|findings|attempts|processes|days|domains";
    assert.deepEqual(
      causes.filter((cause) => new RegExp(`(^|[^\\d.])1 (\\w+ )?(${words})\\b`).test(cause)),
      [],
    );
    const alone = without(...["extent-node-2", "extent-node-3", "extent-node-4"]);
    const sentence = healthOf({ ...alone(healthy), streamLayer: undefined, partitionLayer: undefined, processes: [] }).sentence;
    assert.equal(sentence, "healthy: 0 of 0 processes are ready, 0 ranges are served, 0 extent nodes keep the data");
    assert.match(healthOf(all(alone, (facts) => ({ ...facts, streamLayer: undefined }))(healthy)).sentence, /in time/);
    const single = healthOf(
      all(
        alone,
        withSetUp({ extentNodes: 1, copies: 1, minCopies: 1 }),
        withNodes((node) => node.nodeId === "extent-node-1"),
      )(healthy),
    );
    assert.match(single.sentence, /9 processes are ready, 2 ranges are served, 1 extent node keeps the data$/);
  });

  it("what an extent node is late with is told by its own finding, and not again as process-late", () => {
    const late = { ageMs: 130_000, failures: 4, failure: "no room", kept: 3 };
    const change = all(
      withAnswer("extent-node-1", { waitingFor: ["a copy of the metadata, for 130 s: no room"] }),
      withFacts("extent-node-1", { metadataCopy: late }),
    );
    assert.deepEqual(
      findingsOf(change(healthy)).map(({ code }) => code),
      ["metadata-copy-old"],
    );
  });

  it("a process that is down or paused is told once, with what depends on it", () => {
    const codes = (change: Change): string[] => findingsOf(change(healthy)).map((each) => each.code);
    assert.deepEqual(codes(down("extent-node-2")), ["node-down"]);
    const leftOut = all(without("extent-node-4"), withNode(4, { up: false }), withSetUp({ notStarted: ["extent-node-4"], extentNodes: 3 }));
    assert.deepEqual(codes(leftOut), ["node-not-started", "no-spare-node"]);
    assert.deepEqual(codes(paused("partition-server-1")), ["range-server-away", "process-silent"]);
    assert.deepEqual(codes(all(down("stream-manager-1"), (facts) => ({ ...facts, streamLayer: undefined }))), [
      "no-stream-manager",
      "process-down",
    ]);
  });
});

describe("the sentence of health", () => {
  const sentenceOf = (...changes: readonly Change[]): string => healthOf(all(...changes)(healthy)).sentence;

  it("says first what is not served, then what is in danger, then what needs attention", () => {
    const degraded = withSetUp({ copies: 5 });
    const danger = withRepair({ endangered: 1n });
    const stops = withRange({ server: "" });
    assert.match(sentenceOf(degraded), /^serving, and needs attention: copies is 5/);
    assert.match(sentenceOf(degraded, danger), /^serving, and IN DANGER: .*one intact copy left \(and 1 more finding\)$/);
    assert.match(sentenceOf(degraded, danger, stops), /^NOT SERVING EVERYTHING: blob-1: .* \(and 2 more findings\)$/);
  });

  it("stays healthy with notes", () => {
    const health = healthOf(withFacts("stream-manager-1", { sealedWithLoss: 1 })(healthy));
    assert.equal(health.state, "healthy");
    assert.equal(health.findings.length, 1);
  });

  it("text: each finding has its severity, code, cause, and a command with the data folder in it", () => {
    const text = healthText(healthOf(down("partition-server-1")(healthy)), "/data");
    assert.match(
      text,
      /WARNING {2}process-down\n {2}partition-server-1: it is being started again.*\n {2}→ .*\.\/stamp logs --role partition-server-1 --data \/data/,
    );
  });
});

describe("findings: a stamp of several hosts", () => {
  const standby: Change = (facts) => {
    const lock = facts.processes.find(({ role }) => role === "lock-service");
    if (lock === undefined) throw new Error("no lock service");
    const other = {
      ...lock,
      name: "lock-service-2",
      host: "b",
      pid: null,
      state: "not answering",
      answer: undefined,
      silence: "no connection",
    };
    return { ...facts, processes: [...facts.processes, other] };
  };

  it("one of two lock services is away: a warning that names its host, because the other one serves", () => {
    const found = findingsOf(standby(healthy)).filter(({ subject }) => subject.startsWith("lock-service"));
    assert.deepEqual(
      found.map(({ code, subject, cause, help }) => [code, subject, cause, help.slice(0, 10)]),
      [["process-down", "lock-service-2", "it does not answer on host b (no connection)", "on host b:"]],
    );
  });

  it("none of two lock services answers: requests stop soon", () => {
    const found = findingsOf(standby(paused("lock-service-1")(healthy))).filter(({ code }) => code === "lock-service-away");
    assert.deepEqual(
      found.map(({ subject }) => subject),
      ["lock-service-1", "lock-service-2"],
    );
  });
});
