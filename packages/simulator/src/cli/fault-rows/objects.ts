/** Containers, blobs and their data over deletions, policies, uploads and collections of garbage. */
import type { FaultRow } from "./fault-row.ts";

export const objectRows: readonly FaultRow[] = [
  {
    fault: "delete of a container while blobs are put into it elsewhere",
    rules: ["incarnationInKey", "containerRowReadAfterArrival"],
    tests: ["packages/objects/src/blobs/blobs.test.ts", "services/front-end/src/objects/parent-rows.test.ts"],
    faults: ["crash", "partition"],
  },
  {
    fault: "a blob under a policy or a hold expires, is written, deleted or collected",
    rules: ["protectedStatesStay"],
    tests: ["packages/objects/src/blobs/protect/protection.test.ts", "tests/conformance/immutability.ts"],
    faults: ["clock-jump", "crash", "reshape"],
  },
  {
    fault: "a policy or a hold is placed in a container while it is deleted",
    rules: ["protectionConfirmed", "deletionAsksMarks"],
    tests: ["services/front-end/src/objects/protecting.test.ts"],
    faults: ["failpoints", "crash", "partition"],
  },
  {
    fault: "a blob or container lease across a server change",
    rules: ["leaseRestartedOnLoad"],
    tests: ["packages/objects/src/blobs/protect/leases.test.ts"],
    faults: ["crash", "pause", "reshape"],
  },
  {
    fault: "container deleted while a slow download runs; blob data rewritten under it",
    rules: ["placesCheckedInRowOrder"],
    tests: ["services/front-end/src/content/download.test.ts", "packages/objects/src/blobs/blobs.test.ts"],
    faults: [],
  },
  {
    fault: "an upload takes hours; its range is split, moved or loaded anew meanwhile",
    rules: ["bytesPinTheirExtent", "pinsRenewed", "pinTermAfterLoad", "settledByAll"],
    tests: ["packages/range-partition/src/blob-data/data-pins.test.ts", "services/partition-server/src/collector/pins.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "ranges and managers change more often than garbage is old enough",
    rules: ["settledRecorded", "dropTimeRecorded"],
    tests: ["services/partition-server/src/collector/pins.test.ts", "services/stream-manager/src/calls/streams.test.ts"],
    faults: ["crash", "reshape"],
  },
  {
    fault: "an extent is coded, decoded within the grace of its replicas, and coded again; then the metadata are restored from a copy",
    rules: ["graceOfItsRemoval"],
    tests: ["services/stream-manager/src/garbage.test.ts"],
    faults: ["crash"],
  },
];
