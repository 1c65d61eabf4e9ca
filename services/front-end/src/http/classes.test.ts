import assert from "node:assert/strict";
import { test } from "node:test";
import { blobOperationNames, queueOperationNames, tableOperationNames } from "@stamp/azure-rest";
import { classOf } from "./classes.ts";

test("operation classes: every operation that is served has one, and what changes something is a write", () => {
  const groups = Map.groupBy([...blobOperationNames, ...queueOperationNames, ...tableOperationNames, "Preflight", undefined], classOf);
  assert.deepEqual(groups.get("list"), [
    "ListContainers",
    "ListBlobs",
    "FindBlobsByTagsInContainer",
    "FindBlobsByTags",
    "ListQueues",
    "QueryTables",
    "QueryEntities",
  ]);
  assert.deepEqual(groups.get("read"), [
    "GetContainerProperties",
    "GetContainerMetadata",
    "GetContainerAcl",
    "GetBlob",
    "GetBlobProperties",
    "GetBlobMetadata",
    "GetBlockList",
    "GetPageRanges",
    "GetBlobTags",
    "GetQueueMetadata",
    "GetQueueAcl",
    "PeekMessages",
    "GetTable",
    "GetTableAcl",
    "GetEntity",
  ]);
  assert.deepEqual(
    groups.get("write")?.filter((name) => !/^(Put|Set|Create|Delete|Append|Update|Insert|Merge|Copy|Lease|Clear)/.test(name ?? "")),
    [
      "SealAppendBlob",
      "BlobBatch",
      "ContainerBlobBatch",
      "RestoreContainer",
      "SnapshotBlob",
      "UndeleteBlob",
      "AbortCopyBlob",
      "GetMessages",
      "EntityGroupTransaction",
    ],
  );
  assert.equal(
    groups.get("other")?.every((name) => name === undefined || /Preflight|Service|Account|Delegation/.test(name)),
    true,
  );
});
