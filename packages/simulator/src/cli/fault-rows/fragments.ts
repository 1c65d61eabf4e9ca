/** Repair, and extents that become fragments and replicas again. */
import type { FaultRow } from "./fault-row.ts";

export const fragmentRows: readonly FaultRow[] = [
  {
    fault: "a stale node report makes a dead replica look alive, so repair never runs",
    rules: [],
    tests: ["services/stream-manager/src/nodes/nodes.test.ts"],
    faults: ["partition", "pause"],
  },
  {
    fault: "repair copies from a bad replica",
    rules: ["checksumOfVerified", "copiesReadBeforeTold"],
    tests: ["services/extent-node/src/control.test.ts", "services/extent-node/src/fragments/attacks.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "a node loses power while it makes a fragment, or right after it acknowledged one",
    rules: ["fragmentSynced"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts"],
    faults: ["power-loss", "rack-loss", "crash"],
  },
  {
    fault: "two nodes make the fragments of one attempt, one of them from a damaged replica",
    rules: ["fragmentWrittenOnce", "makersMeasureReplicas"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts", "services/extent-node/src/fragments/coding.test.ts"],
    faults: ["bit-rot", "pause", "failpoints"],
  },
  {
    fault: "late writes and deletions of an attempt at coding that was taken back meet a later one",
    rules: ["attemptVersionFresh"],
    tests: ["packages/stream/src/coding/plan-coding.test.ts"],
    faults: ["cut-pair", "pause", "failpoints"],
  },
  {
    fault: "an attempt at coding comes to nothing, or its manager is deposed, after files were given up for it",
    rules: ["replicasGoAtCommit", "fragmentsGoAfterAbort"],
    tests: ["packages/stream/src/coding/plan-coding.test.ts"],
    faults: ["cut-pair", "crash", "pause"],
  },
  {
    fault: "a decoding makes a replica where an older one is to be deleted, or its deletion is on its way",
    rules: ["namedReplicasStay", "deletionsNameVersions"],
    tests: ["services/stream-manager/src/coding/fragment-repair.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["failpoints", "crash"],
  },
  {
    fault: "a person deletes a fragment that no record explains, and an attempt makes it or a record that was lost named it",
    rules: ["attemptFragmentsStay", "newerFragmentsStay", "attemptVersionAboveHeld"],
    tests: ["packages/stream/src/coding/stray-fragments.test.ts", "services/stream-manager/src/coding/stray-calls.test.ts"],
    faults: ["failpoints"],
  },
  {
    fault: "a bit flips in the memory of the node that makes a fragment anew, or an earlier release has made a fragment wrong",
    rules: ["fragmentsCompared"],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts", "services/extent-node/src/fragments/attacks.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault:
      "a bit flips in the memory of the only node that says what checksums fragments have: the maker's answer was lost, or an earlier release coded",
    rules: ["checksumsAgreed"],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "a leader dies between recording the checksums of fragments and having the wrong one among them made anew",
    rules: ["wrongFragmentGivenUp"],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "a replica, or a fragment that was just made, is damaged while its extent becomes fragments",
    rules: ["fragmentsVerified"],
    tests: ["services/stream-manager/src/coding/coding.test.ts", "services/extent-node/src/fragments/coding.test.ts"],
    faults: ["bit-rot", "fragment-damage"],
  },
  {
    fault: "a fragment rots on its disk, its file is lost, or a fragment of a history that was lost has its name",
    rules: ["fragmentChunkVerified", "fragmentsOfTheirCode"],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts", "packages/stream-client/src/read/coded-reads.test.ts"],
    faults: ["fragment-damage"],
  },
  {
    fault: "a node with a fragment stands still while somebody reads, or all nodes are slow",
    rules: ["fragmentReadsHedged", "hedgesBounded"],
    tests: ["packages/stream-client/src/read/coded-reads.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "a reader's places are old, and a node of them is silent",
    rules: ["doubtedPlacesRefreshed"],
    tests: ["packages/stream-client/src/read/replica-race.test.ts", "packages/stream-client/src/read/coded-reads.test.ts"],
    faults: ["pause", "partition"],
  },
];
