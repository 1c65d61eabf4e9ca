import assert from "node:assert/strict";
import { test } from "node:test";
import { blobOperationNames, queueOperationNames, tableOperationNames } from "@stamp/azure-rest";
import { classOf } from "./classes.ts";

test("operation classes: every operation that is served has one, and what changes something is a write", () => {
  const groups = Map.groupBy([...blobOperationNames, ...queueOperationNames, ...tableOperationNames, "Preflight", undefined], classOf);
  assert.deepEqual(groups.get("list"), [
    "ListContainers",
    "FindBlobsByTags",
    "ListBlobs",
    "FindBlobsByTagsInContainer",
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
    "GetBlobTags",
    "GetBlockList",
    "GetPageRanges",
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
      "BlobBatch",
      "RestoreContainer",
      "ContainerBlobBatch",
      "SnapshotBlob",
      "UndeleteBlob",
      "SealAppendBlob",
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
