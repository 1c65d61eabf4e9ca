/**
 * Never accept and ignore: every header and query parameter that the SDK's operations have stands in the code that reads requests, or is
 * refused by name there. What the SDK can send is read from its published parameters, so that a newer SDK with a new one fails here.
 */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type BlobOperationName, blobOperationNames, blobOperations, checkUnsupported, conditionHeaders } from "@stamp/azure-rest";
import { sdkOperationHeaders, sdkParameterNames } from "./sdk-parameters.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

/** Of operations that are 501 as a whole: Rename Container. */
const ofRefusedOperations: ReadonlySet<string> = new Set(["x-ms-source-container-name"]);
/** `x-ms-blob-` before a name that is read with it (parseContentProperties, parseConditions). */
const composed = /^x-ms-blob-(content-type|content-encoding|content-language|content-disposition|cache-control|if-.*)$/;

/** Names of the SDK for operations that the reference calls otherwise; undefined for what is 501 as a whole. */
const sdkNames: Readonly<Record<string, BlobOperationName | undefined>> = {
  "appendBlob.create": "PutBlob",
  "appendBlob.seal": "SealAppendBlob",
  "blob.download": "GetBlob",
  "blob.getProperties": "GetBlobProperties",
  "blob.delete": "DeleteBlob",
  "blob.undelete": "UndeleteBlob",
  "blob.setExpiry": "SetBlobExpiry",
  "blob.setHttpHeaders": "SetBlobHeaders",
  "blob.setImmutabilityPolicy": "SetBlobImmutabilityPolicy",
  "blob.deleteImmutabilityPolicy": "DeleteBlobImmutabilityPolicy",
  "blob.setLegalHold": "SetBlobLegalHold",
  "blob.setMetadata": "SetBlobMetadata",
  "blob.createSnapshot": "SnapshotBlob",
  "blob.startCopyFromURL": "CopyBlob",
  "blob.copyFromURL": "CopyBlobFromUrl",
  "blob.abortCopyFromURL": "AbortCopyBlob",
  "blob.setTier": "SetBlobTier",
  "blob.getAccountInfo": "GetAccountInformation",
  "blob.query": undefined,
  "blob.getTags": "GetBlobTags",
  "blob.setTags": "SetBlobTags",
  "blockBlob.upload": "PutBlob",
  "blockBlob.stageBlock": "PutBlock",
  "blockBlob.stageBlockFromURL": "PutBlockFromUrl",
  "blockBlob.commitBlockList": "PutBlockList",
  "container.create": "CreateContainer",
  "container.getProperties": "GetContainerProperties",
  "container.delete": "DeleteContainer",
  "container.setMetadata": "SetContainerMetadata",
  "container.getAccessPolicy": "GetContainerAcl",
  "container.setAccessPolicy": "SetContainerAcl",
  "container.restore": "RestoreContainer",
  "container.rename": undefined,
  "container.submitBatch": "ContainerBlobBatch",
  "container.filterBlobs": "FindBlobsByTagsInContainer",
  "container.getAccountInfo": "GetAccountInformation",
  "pageBlob.create": "PutBlob",
  "pageBlob.uploadPages": "PutPage",
  "pageBlob.clearPages": "PutPage",
  "pageBlob.uploadPagesFromURL": "PutPageFromUrl",
  "pageBlob.getPageRangesDiff": "GetPageRanges",
  "pageBlob.resize": "SetBlobHeaders",
  "pageBlob.updateSequenceNumber": "SetBlobHeaders",
  "pageBlob.copyIncremental": undefined,
  "service.setProperties": "SetServiceProperties",
  "service.getProperties": "GetServiceProperties",
  "service.getStatistics": "GetBlobServiceStats",
  "service.listContainersSegment": "ListContainers",
  "service.getUserDelegationKey": "GetUserDelegationKey",
  "service.getAccountInfo": "GetAccountInformation",
  "service.submitBatch": "BlobBatch",
  "service.filterBlobs": "FindBlobsByTags",
};

/** Returns our name of an operation of the SDK: from the table, of leases and lists by the group, else the same name. */
function operationOf(name: string): BlobOperationName | undefined {
  if (Object.hasOwn(sdkNames, name)) return sdkNames[name];
  const [group, operation = ""] = name.split(".");
  if (operation.endsWith("Lease")) return group === "container" ? "LeaseContainer" : "LeaseBlob";
  if (operation.startsWith("listBlob")) return "ListBlobs";
  const same = blobOperationNames.find((one) => one.toLowerCase() === operation.toLowerCase());
  assert.ok(same, `no operation is known for ${name}`);
  return same;
}

async function sourceText(folder: string): Promise<string> {
  const files = await readdir(join(root, folder), { recursive: true });
  const sources = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
  return (await Promise.all(sources.map((file) => readFile(join(root, folder, file), "utf8")))).join("\n").toLowerCase();
}

describe("parameters of the Blob service", () => {
  test("every one that the SDK can send is read, or refused by its name", async () => {
    const names = await sdkParameterNames();
    assert.ok(names.size > 90, `${names.size} names`);
    const text = `${await sourceText("packages/azure-rest/src")}${await sourceText("services/front-end/src")}`;
    const unknown: string[] = [];
    for (const name of names) {
      if (name === "accept") continue;
      const isRead = new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text) || composed.test(name) || ofRefusedOperations.has(name);
      const refused = checkUnsupported("GetBlob", { [name]: "x" });
      if (!isRead && refused.ok) unknown.push(name);
    }
    assert.deepEqual(unknown, []);
  });

  test("every condition that an operation of the SDK can send is allowed there; what else is allowed is listed here", async () => {
    const sent = new Map<BlobOperationName, Set<string>>();
    const operations = await sdkOperationHeaders();
    assert.ok(operations.size > 70, `${operations.size} operations`);
    for (const [name, headers] of operations) {
      const operation = operationOf(name);
      if (operation === undefined) continue;
      const all = sent.get(operation) ?? new Set();
      sent.set(operation, all);
      for (const header of headers) if (conditionHeaders.includes(header)) all.add(header);
    }
    const more: string[] = [];
    for (const operation of blobOperationNames) {
      const ofSdk = sent.get(operation) ?? new Set();
      const allowed = blobOperations[operation].conditions ?? [];
      assert.deepEqual(
        [...ofSdk].filter((header) => !allowed.includes(header)),
        [],
        operation,
      );
      for (const header of allowed) if (!ofSdk.has(header)) more.push(`${operation} ${header}`);
    }
    const copies = ["CopyBlob", "CopyBlobFromUrl", "PutBlobFromUrl", "PutBlockFromUrl", "AppendBlockFromUrl", "PutPageFromUrl"];
    assert.deepEqual(
      more.sort(),
      [
        ...["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"].map((header) => `GetBlockList ${header}`),
        ...["GetContainerMetadata x-ms-lease-id", "SetBlobExpiry x-ms-lease-id"],
        ...["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "x-ms-if-tags", "x-ms-lease-id"].map(
          (header) => `GetBlobMetadata ${header}`,
        ),
        ...copies.map((operation) => `${operation} x-ms-source-lease-id`),
      ].sort(),
    );
  });

  test("features that are not here are 501 by the header that asks for them", () => {
    for (const name of ["x-ms-structured-body", "x-ms-file-request-intent"]) {
      const refused = checkUnsupported("PutBlockFromUrl", { [name]: "x" });
      assert.ok(!refused.ok && refused.error.status === 501 && refused.error.message.includes(name), name);
    }
    const condition = checkUnsupported("DeleteBlob", { "x-ms-access-tier-if-modified-since": "x" });
    assert.equal(condition.ok ? 200 : condition.error.status, 501);
  });
});
