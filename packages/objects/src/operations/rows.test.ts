/** Reads and writes, said a second time: a write that its row calls a read would be answered and never committed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation, OperationKind } from "../operation.ts";
import { isRead } from "./rows.ts";

type Access = "read" | "write";

const expected: Readonly<Record<Exclude<OperationKind, "table" | "queue" | "tree" | "handles">, Access>> = {
  getAccount: "read",
  putAccount: "write",
  listAccounts: "read",
  changeAccount: "write",
  createContainer: "write",
  getContainer: "read",
  setContainerMetadata: "write",
  setContainerAcl: "write",
  deleteContainer: "write",
  beginDeletion: "write",
  markProtected: "write",
  restoreContainer: "write",
  leaseContainer: "write",
  listContainers: "read",
  listBlobs: "read",
  findBlobs: "read",
  getBlob: "read",
  putBlob: "write",
  deleteBlob: "write",
  undeleteBlob: "write",
  setBlobMetadata: "write",
  setBlobHeaders: "write",
  snapshotBlob: "write",
  leaseBlob: "write",
  setBlobTags: "write",
  setBlobTier: "write",
  setBlobExpiry: "write",
  setImmutabilityPolicy: "write",
  deleteImmutabilityPolicy: "write",
  setLegalHold: "write",
  setPathAccess: "write",
  getBlockList: "read",
  putBlock: "write",
  putBlockList: "write",
  appendBlock: "write",
  sealBlob: "write",
  getPageRanges: "read",
  putPages: "write",
  clearPages: "write",
  setPageBlobProperties: "write",
  readParts: "read",
  startCopy: "write",
  addToCopy: "write",
  endCopy: "write",
  abortCopy: "write",
  claimCopy: "write",
};
const onTables: readonly (readonly [string, Access])[] = [
  ["createTable", "write"],
  ["getTable", "read"],
  ["setTableAcl", "write"],
  ["deleteTable", "write"],
  ["listTables", "read"],
  ["changeEntities", "write"],
  ["getEntity", "read"],
  ["queryEntities", "read"],
];
/** Messages are taken, or found to have expired, by all of theirs. */
const onQueues: readonly (readonly [string, Access])[] = [
  ["createQueue", "write"],
  ["getQueue", "read"],
  ["setQueueMetadata", "write"],
  ["setQueueAcl", "write"],
  ["deleteQueue", "write"],
  ["listQueues", "read"],
  ...["putMessage", "getMessages", "peekMessages", "deleteMessage", "updateMessage", "clearMessages", "countMessages"].map(
    (kind) => [kind, "write"] as const,
  ),
];

const steps = ["make", "begin", "decide", "giveUp", "end", "mark", "release", "take", "condemn", "forget"];
const inTrees = [...["look", "page"].map((action) => [action, "read"] as const), ...steps.map((action) => [action, "write"] as const)];

test("operations: each is a read or a write as it is said here", () => {
  const accessOf = (operation: object): Access => (isRead(operation as Operation) ? "read" : "write");
  for (const [kind, access] of Object.entries(expected)) assert.equal(accessOf({ case: kind, value: {} }), access, kind);
  for (const [kind, access] of onTables) assert.equal(accessOf({ case: "table", value: { case: kind, value: {} } }), access, kind);
  for (const [kind, access] of onQueues)
    assert.equal(accessOf({ case: "queue", value: { kind: { case: kind, value: {} } } }), access, kind);
  for (const [action, access] of inTrees) assert.equal(accessOf({ case: "tree", value: { action } }), access, action);
});
