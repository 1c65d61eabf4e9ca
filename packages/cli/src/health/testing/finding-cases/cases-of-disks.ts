/** Findings about extent nodes and disks, each with a change that gives it. */
import { NodeDuty } from "@stamp/wire";
import type { diskKinds } from "../../kinds/kinds-of-disks.ts";
import { all, down, gibibyte, nodes, slow, withAnswer, withFacts, withNode, without, withSetUp } from "../healthy.ts";
import type { FindingCase } from "./finding-case.ts";

export const diskCases: Readonly<Record<keyof typeof diskKinds, FindingCase>> = {
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
    change: withFacts("extent-node-1", { takesExtents: false, diskFull: true, freeBytes: 1024, freeFiles: 3, totalFiles: 900 }),
    subject: "extent-node-1",
    cause: /1\.0 KiB and 3 inodes are free, and it refuses appends/,
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
};
