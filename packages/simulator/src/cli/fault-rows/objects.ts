/** Containers, blobs and their data over deletions, policies, uploads and collections of garbage. */
import type { FaultRow } from "./fault-row.ts";

export const objectRows: readonly FaultRow[] = [
  {
    fault: "delete of a container while blobs are put into it elsewhere",
    closedBy: "incarnation in every key; the container row is read after the request arrived",
    rules: [
      { name: "incarnationInKey", workload: "blobs", why: "what was in a deleted container comes back with its name" },
      { name: "containerRowReadAfterArrival", workload: "blobs", why: "the existence of a container is taken from a cache" },
    ],
    tests: ["packages/objects/src/blobs/blobs.test.ts", "services/front-end/src/objects/parent-rows.test.ts"],
    faults: ["crash", "partition"],
  },
  {
    fault: "a blob under a policy or a hold expires, is written, deleted or collected",
    closedBy:
      "one predicate, asked of every commit on a blob and of every purge: a protected state stays in its row or becomes a version, and its time is never over",
    rules: [{ name: "protectedStatesStay", workload: "holds", why: "a blob under a hold is overwritten, deleted, or expires" }],
    tests: ["packages/objects/src/blobs/protect/protection.test.ts", "tests/conformance/immutability.ts"],
    faults: ["clock-jump", "crash", "reshape"],
  },
  {
    fault: "a policy or a hold is placed in a container while it is deleted",
    closedBy:
      "the container's row is marked before and after; the deletion is recorded first and goes on only if no mark was made since: one of the two is refused",
    rules: [
      {
        name: "protectionConfirmed",
        unnoticed:
          "a hold has to end between two neighbouring calls of a deletion; one seed of eight had such a run, with twice the rounds",
      },
      {
        name: "deletionAsksMarks",
        unnoticed: "a whole hold has to lie between two neighbouring calls of a deletion; eighteen seeds of holds had no such run",
      },
    ],
    tests: ["services/front-end/src/objects/protecting.test.ts"],
    faults: ["failpoints", "crash", "partition"],
  },
  {
    fault: "a blob or container lease across a server change",
    closedBy: "restarted in full by the new owner: never two holders",
    rules: [
      {
        name: "leaseRestartedOnLoad",
        workload: "leases",
        focus: "checkpoints",
        why: "a range changes servers, and a lease has a second holder",
      },
    ],
    tests: ["packages/objects/src/blobs/protect/leases.test.ts"],
    faults: ["crash", "pause", "reshape"],
  },
  {
    fault: "container deleted while a slow download runs; blob data rewritten under it",
    closedBy: "the reader asks again under the same ETag, or gets 404/412; never other bytes",
    rules: [{ name: "placesCheckedInRowOrder", workload: "registers", why: "a row refers to bytes of another stream" }],
    tests: ["services/front-end/src/content/download.test.ts", "packages/objects/src/blobs/blobs.test.ts"],
    faults: [],
  },
  {
    fault: "an upload takes hours; its range is split, moved or loaded anew meanwhile",
    closedBy:
      "its bytes pin their extents, the front-end renews the pins, a new owner settles nothing for half a term; a late place is checked in row order all the same",
    rules: [
      { name: "bytesPinTheirExtent", workload: "uploads", why: "liveness: bytes of an upload are given back between two of its pieces" },
      { name: "pinsRenewed", workload: "uploads", why: "liveness: an upload that takes longer than a term never commits" },
      { name: "pinTermAfterLoad", workload: "uploads", why: "liveness: a new owner gives back what the old one knew to be pinned" },
      {
        name: "settledByAll",
        unnoticed:
          "it takes a split, an upload that began before it, a pass at the sibling a term later and a merge before the commit; model pins.pml has it",
      },
    ],
    tests: ["packages/range-partition/src/blob-data/data-pins.test.ts", "services/partition-server/src/collector/pins.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "ranges and managers change more often than garbage is old enough",
    closedBy: "what is settled, and when an extent was dropped, is recorded; no change begins it anew",
    rules: [
      {
        name: "settledRecorded",
        unnoticed:
          "garbage is late, not lost; workload uploads moves ranges until it is gone, but no range so often that none of its owners serves for a term",
      },
      {
        name: "dropTimeRecorded",
        unnoticed: "the grace begins anew when another stream manager leads; no seed deposes one in every grace",
      },
    ],
    tests: ["services/partition-server/src/collector/pins.test.ts", "services/stream-manager/src/calls/streams.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "an extent is coded, decoded within the grace of its replicas, and coded again; then the metadata are restored from a copy",
    closedBy: "each removal of a replica has a grace of its own, also of a place that was removed before",
    rules: [
      {
        name: "graceOfItsRemoval",
        workload: "coding",
        focus: "kept-replicas",
        why: "an extent is coded, decoded and coded again, and its replicas go at once",
      },
    ],
    tests: ["services/stream-manager/src/garbage.test.ts"],
    faults: ["crash"],
  },
];
