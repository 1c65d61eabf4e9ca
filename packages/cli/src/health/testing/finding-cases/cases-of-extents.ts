/** Findings about extents and replicas, each with a change that gives it. */
import { create } from "@bufbuild/protobuf";
import { QuarantinedReplicaSchema } from "@stamp/wire";
import type { extentKinds } from "../../kinds/kinds-of-extents.ts";
import { withFacts, withRepair } from "../healthy.ts";
import type { FindingCase } from "./finding-case.ts";

export const extentCases: Readonly<Record<keyof typeof extentKinds, FindingCase>> = {
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
  "metadata-older": {
    change: withFacts("stream-manager-1", {
      later: [
        { nodeId: "extent-node-1", count: 2, sample: [7, 8], why: "it knows version 2 of extent 7, and the records only version 1" },
        { nodeId: "extent-node-3", count: 1, sample: [7], why: "" },
      ],
    }),
    cause: /^3 replicas on extent-node-1, extent-node-3: it knows version 2 of extent 7/,
  },
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
  "restore-lost": {
    change: withFacts("stream-manager-1", {
      takenBack: {
        lostCount: 2,
        lost: [{ stream: "/ps/table-1/row-data", id: 7, why: "no replica is intact" }],
        absent: ["extent-node-2"],
      },
    }),
    cause: /^2 extents did not come back .*extent 7 of \/ps\/table-1\/row-data: no replica is intact.*not heard: extent-node-2$/,
    notYet: withFacts("stream-manager-1", { takenBack: { lostCount: 0, lost: [], absent: ["extent-node-2"] } }),
  },
  "sealed-with-loss": { change: withFacts("stream-manager-1", { sealedWithLoss: 1 }), cause: /1 extent$/ },
  "stream-manager-waits": {
    change: withFacts("stream-manager-1", { waits: ["extent 7 waits for extent-node-2"] }),
    subject: "stream-manager-1",
    cause: /extent 7 waits/,
  },
};
