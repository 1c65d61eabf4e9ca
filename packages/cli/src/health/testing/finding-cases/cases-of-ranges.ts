/** Findings about ranges and requests, each with a change that gives it. */
import type { rangeKinds } from "../../kinds/kinds-of-ranges.ts";
import { all, paused, withFacts, without, withRange, withServer } from "../healthy.ts";
import type { FindingCase } from "./finding-case.ts";

export const rangeCases: Readonly<Record<keyof typeof rangeKinds, FindingCase>> = {
  "ranges-unknown": { change: (facts) => ({ ...facts, partitionLayer: undefined }), subject: "partition-manager-1", cause: /in time/ },
  "range-unassigned": { change: withRange({ server: "", loaded: false }), subject: "blob-1", cause: /1 of 2 ranges: blob-1$/ },
  "range-loading": { change: withRange({ loaded: false }), subject: "blob-1", cause: /blob-1 at partition-server-1/ },
  "range-server-away": {
    change: all(paused("partition-server-1"), withServer({ up: false })),
    subject: "blob-1",
    cause: /blob-1 at partition-server-1/,
    notYet: paused("partition-server-1"),
  },
  "range-changing": { change: withRange({ change: "split: prepared" }), subject: "blob-1", cause: /split: prepared/ },
  "single-server": { change: without("partition-server-2"), subject: "partition-server-1", cause: /one partition server/ },
  "server-away": { change: withServer({ up: false }), subject: "partition-server-1", cause: /lease has ended/ },
  "copy-behind": {
    change: withFacts("partition-server-1", { geo: { lagMs: 400_000, pendingCommits: 12, pendingBytes: 40_960 } }),
    subject: "partition-server-1",
    cause: /400 s ago; 12 commits of 40 KiB are not there/,
    notYet: withFacts("partition-server-1", { geo: { lagMs: 300_000, pendingCommits: 12 } }),
  },
  "copy-not-complete": {
    change: withFacts("partition-server-1", { geo: { seeding: 2, seededBytes: 1_048_576, seedBytes: 4_194_304 } }),
    subject: "partition-server-1",
    cause: /2 ranges, about 1\.0 MiB of 4\.0 MiB/,
    notYet: withFacts("partition-server-1", { geo: { seeding: 0, shipping: 2 } }),
  },
  "copy-refused": {
    change: withFacts("partition-server-1", { geo: { failing: 1 } }),
    subject: "partition-server-1",
    cause: /the last call failed for 1 range/,
    notYet: withFacts("partition-server-1", { geo: { failing: 0 } }),
  },
  "range-lossy": {
    change: withFacts("partition-server-1", { ranges: [{ rangeId: "r1", losses: { commits: 3, checkpoints: 1 } }, { rangeId: "r2" }] }),
    subject: "partition-server-1",
    cause: /^r1 \(3 commits, 1 checkpoint\)$/,
    notYet: withFacts("partition-server-1", { ranges: [{ rangeId: "r2" }] }),
  },
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
};
