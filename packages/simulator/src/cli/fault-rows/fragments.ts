/** Repair, and extents that become fragments and replicas again. */
import type { FaultRow } from "./fault-row.ts";

export const fragmentRows: readonly FaultRow[] = [
  {
    fault: "a stale node report makes a dead replica look alive, so repair never runs",
    closedBy:
      "reports carry the node's incarnation; old ones are dropped; liveness test: after healing every extent has its copies within a bound",
    rules: [],
    tests: ["services/stream-manager/src/nodes/nodes.test.ts"],
    faults: ["partition", "pause"],
  },
  {
    fault: "repair copies from a bad replica",
    closedBy:
      "block checksums, and the whole-extent checksum recorded after seal, are verified by the copier; a replica that is there already is read whole before it is told to be a copy",
    rules: [
      {
        name: "checksumOfVerified",
        workload: "registers",
        focus: "rot",
        why: "liveness: the checksum of a rotten replica is recorded, and every good one is taken for damaged",
      },
      {
        name: "copiesReadBeforeTold",
        unnoticed: "a replica must rot in the grace of its deletion, on the node that a decoding chooses, before the scrub finds it",
      },
    ],
    tests: ["services/extent-node/src/control.test.ts", "services/extent-node/src/fragments/attacks.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "a node loses power while it makes a fragment, or right after it acknowledged one",
    closedBy: "a fragment gets its name when content, table and head are synced; what has another name is removed at the start",
    rules: [
      { name: "fragmentSynced", workload: "coding", focus: "fragment-power", why: "replicas go for fragments that the power takes along" },
    ],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts"],
    faults: ["power-loss", "rack-loss", "crash"],
  },
  {
    fault: "two nodes make the fragments of one attempt, one of them from a damaged replica",
    closedBy:
      "a maker compares what it reads with the extent's checksum before it finishes a fragment; a node that has a fragment of a version refuses another one of that version: what was verified is what stays",
    rules: [
      {
        name: "fragmentWrittenOnce",
        unnoticed:
          "makersMeasureReplicas backs it up. Without both, a rotten replica's maker has to be later than its deadline, and another maker faster: about 20 seeds had no such run",
      },
      {
        name: "makersMeasureReplicas",
        backedUpBy: ["fragmentsVerified"],
        workload: "coding",
        focus: "rotten-replicas",
        why: "fragments are made of a rotten replica",
      },
    ],
    tests: ["services/extent-node/src/fragments/fragment-files.test.ts", "services/extent-node/src/fragments/coding.test.ts"],
    faults: ["bit-rot", "pause", "failpoints"],
  },
  {
    fault: "late writes and deletions of an attempt at coding that was taken back meet a later one",
    closedBy: "an attempt has a version that none of its extent had before, and its files have it in their names",
    rules: [
      {
        name: "attemptVersionFresh",
        workload: "coding",
        focus: "few-extents",
        why: "what an earlier attempt left is deleted, and a later one has files of the same names",
      },
    ],
    tests: ["packages/stream/src/coding/plan-coding.test.ts"],
    faults: ["cut-pair", "pause", "failpoints"],
  },
  {
    fault:
      "the stream manager begins to code an extent, and then gives the attempt up or is deposed: files that one side may delete are the ones that the other side needs",
    closedBy:
      "the transaction that commits the fragments gives the replicas up, and the one that takes the attempt back gives the fragments up; nobody deletes a file before the transaction that gave it up",
    rules: [
      {
        name: "replicasGoAtCommit",
        workload: "coding",
        focus: "few-extents",
        why: "replicas are given up when an attempt begins, and the attempt comes to nothing",
      },
      {
        name: "fragmentsGoAfterAbort",
        workload: "coding",
        focus: "few-extents",
        why: "fragments of an attempt under way are garbage, and the attempt is committed",
      },
    ],
    tests: ["packages/stream/src/coding/plan-coding.test.ts"],
    faults: ["cut-pair", "crash", "pause"],
  },
  {
    fault: "a decoding makes a replica where an older one is to be deleted, or its deletion is on its way",
    closedBy:
      "garbage collection deletes no replica that the record names; a deletion names a version, and a node keeps a replica of a higher one",
    rules: [
      {
        name: "namedReplicasStay",
        workload: "coding",
        focus: "slow-decodings",
        why: "a replica is made where an older one is to be deleted, and is deleted in its place",
      },
      {
        name: "deletionsNameVersions",
        workload: "coding",
        focus: "late-deletions",
        why: "a late deletion of a replica meets the one that a decoding has made in its place",
      },
    ],
    tests: ["services/stream-manager/src/coding/fragment-repair.test.ts", "services/extent-node/src/rules.test.ts"],
    faults: ["failpoints", "crash"],
  },
  {
    fault: "a person deletes a fragment that no record explains, and an attempt makes it or a record that was lost named it",
    closedBy: "the manager refuses the version of the attempt under way, and every version above the record's",
    rules: [
      {
        name: "attemptFragmentsStay",
        workload: "coding",
        focus: "deleted-strays",
        why: "a person deletes a fragment that an attempt makes, and the attempt is committed",
      },
      {
        name: "newerFragmentsStay",
        workload: "coding",
        focus: "older-metadata",
        why: "metadata of before a coding are restored, a person deletes the fragments, and the newer metadata that name them are restored",
      },
      {
        name: "attemptVersionAboveHeld",
        unnoticed:
          "its seed has to restore metadata of before a coding, code again onto a node with an old fragment, and need that fragment: none is known",
      },
    ],
    tests: [
      "packages/stream/src/coding/stray-fragments.test.ts",
      "services/stream-manager/src/coding/stray-calls.test.ts",
      "services/stream-manager/src/coding/fragment-adoption.test.ts",
    ],
    faults: ["failpoints"],
  },
  {
    fault: "a bit flips in the memory of the node that makes a fragment anew, or an earlier release has made a fragment wrong",
    closedBy:
      "the checksum of each fragment is recorded when the extent is coded, and compared before a fragment gets its name, and whenever it is read; extents of earlier releases are compared as a whole",
    rules: [
      {
        name: "fragmentsCompared",
        unnoticed:
          "A bit has to flip in the memory of a process, between the computation of a fragment and the checksums of its chunks; no fault does that.",
      },
    ],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts", "services/extent-node/src/fragments/attacks.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault:
      "a bit flips in the memory of the only node that says what checksums fragments have: the maker's answer was lost, or an earlier release coded",
    closedBy: "a second node verifies the same fragments; the checksums are recorded if both find the same",
    rules: [{ name: "checksumsAgreed", unnoticed: "a bit has to flip in the memory of the process that verifies; no fault does that" }],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts"],
    faults: ["bit-rot"],
  },
  {
    fault: "a leader dies between recording the checksums of fragments and having the wrong one among them made anew",
    closedBy:
      "the transaction that records them gives the wrong fragment up: its place names a version that no file has, so every leader finds it missing",
    rules: [{ name: "wrongFragmentGivenUp", unnoticed: "only a release before level 4 makes a wrong fragment; a run has one release" }],
    tests: ["services/stream-manager/src/coding/compared-fragments.test.ts"],
    faults: ["crash"],
  },
  {
    fault: "a replica, or a fragment that was just made, is damaged while its extent becomes fragments",
    closedBy:
      "what was stored is read, compared with the extent's checksum and with the code, before the transaction that gives the replicas up",
    rules: [
      {
        name: "fragmentsVerified",
        workload: "coding",
        focus: "fragments",
        why: "replicas go for fragments that rotted before anybody read them, or that were never made",
      },
    ],
    tests: ["services/stream-manager/src/coding/coding.test.ts", "services/extent-node/src/fragments/coding.test.ts"],
    faults: ["bit-rot", "fragment-damage"],
  },
  {
    fault: "a fragment rots on its disk, its file is lost, or a fragment of a history that was lost has its name",
    closedBy:
      "every chunk has a checksum that is bound to its place; a bad chunk is not sent, its fragment is reported, and it is made anew from the others; a fragment is taken, and read, only if its head has the code, the length and the checksum of the extent",
    rules: [
      { name: "fragmentChunkVerified", workload: "coding", focus: "fragments", why: "bytes of a fragment that rotted are served" },
      {
        name: "fragmentsOfTheirCode",
        unnoticed:
          "the metadata must be restored from a copy, and the extent coded anew with another code under the same version; no workload restores and changes the code",
      },
    ],
    tests: [
      "services/extent-node/src/fragments/fragment-files.test.ts",
      "services/extent-node/src/fragments/attacks.test.ts",
      "packages/stream-client/src/read/coded-reads.test.ts",
    ],
    faults: ["fragment-damage"],
  },
  {
    fault: "a node with a fragment stands still while somebody reads, or all nodes are slow",
    closedBy:
      "each stage of a read waits as long as its nodes usually take; then the same range of the other fragments is asked for. Hedges that come to nothing are at most a tenth of the reads, and a few",
    rules: [
      {
        name: "fragmentReadsHedged",
        workload: "coding",
        why: "liveness: a read waits for a node that stands still until its time is over",
      },
      {
        name: "hedgesBounded",
        unnoticed:
          "nothing is lost without it: slow nodes get several times the load. The time of simulated nodes does not depend on their load",
      },
    ],
    tests: ["packages/stream-client/src/read/coded-reads.test.ts", "packages/stream-client/src/read/fragment-race.test.ts"],
    faults: ["pause", "partition"],
  },
  {
    fault: "a reader's places are old, and a node of them is silent",
    closedBy:
      "a refusal puts cached places in doubt: the silent nodes are waited for as long as they usually take, then the places are looked up again",
    rules: [
      {
        name: "doubtedPlacesRefreshed",
        workload: "coding",
        why: "liveness: a reader whose places are old waits for a silent node of theirs, although others refused",
      },
    ],
    tests: ["packages/stream-client/src/read/replica-race.test.ts", "packages/stream-client/src/read/coded-reads.test.ts"],
    faults: ["pause", "partition"],
  },
];
