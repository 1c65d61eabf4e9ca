/**
 * Every operation of the Blob service × every header that is a condition: a condition that the table of azure-rest allows and that is not
 * met stops the request, any other is refused by its name. Either way nothing changes. Conditions that are met: outcomes.ts.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { type BlobOperationName, blobOperationNames, blobOperations, conditionHeaders } from "@stamp/azure-rest";
import { block, type Headers, list, page, tags } from "./outcome-operations.ts";
import { blockId, type Clients, readableUrl } from "./target.ts";

interface Request {
  readonly on: "service" | "container" | "block" | "page" | "append" | "new";
  readonly method: string;
  readonly query?: string;
  readonly headers?: Headers;
  readonly body?: string | Uint8Array;
  readonly copies?: boolean;
}

const day = 86_400_000;
const pages = { "x-ms-page-write": "update", "x-ms-range": "bytes=0-511" };
const leasing = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" };
const put = (on: Request["on"], query: string, headers: Headers = {}, body: string | Uint8Array = ""): Request => {
  return { on, method: "PUT", ...(query === "" ? {} : { query }), headers, body };
};
const get = (on: Request["on"], query?: string): Request => ({ on, method: "GET", ...(query === undefined ? {} : { query }) });
const copy = (on: Request["on"], query: string, headers: Headers = {}): Request => ({ ...put(on, query, headers), copies: true });

const requests: Readonly<Record<BlobOperationName, Request>> = {
  ListContainers: get("service", "comp=list"),
  GetServiceProperties: get("service", "restype=service&comp=properties"),
  SetServiceProperties: put("service", "restype=service&comp=properties"),
  GetBlobServiceStats: get("service", "restype=service&comp=stats"),
  GetUserDelegationKey: { on: "service", method: "POST", query: "restype=service&comp=userdelegationkey", body: "" },
  GetAccountInformation: get("service", "restype=account&comp=properties"),
  FindBlobsByTags: get("service", "comp=blobs&where=a%3D'1'"),
  BlobBatch: { on: "service", method: "POST", query: "comp=batch", body: "" },
  CreateContainer: put("new", "restype=container"),
  GetContainerProperties: get("container", "restype=container"),
  GetContainerMetadata: get("container", "restype=container&comp=metadata"),
  SetContainerMetadata: put("container", "restype=container&comp=metadata"),
  GetContainerAcl: get("container", "restype=container&comp=acl"),
  SetContainerAcl: put("container", "restype=container&comp=acl"),
  DeleteContainer: { on: "container", method: "DELETE", query: "restype=container" },
  ListBlobs: get("container", "restype=container&comp=list"),
  LeaseContainer: put("container", "restype=container&comp=lease", leasing),
  RestoreContainer: put("new", "restype=container&comp=undelete"),
  FindBlobsByTagsInContainer: get("container", "restype=container&comp=blobs&where=a%3D'1'"),
  ContainerBlobBatch: { on: "container", method: "POST", query: "restype=container&comp=batch", body: "" },
  PutBlob: put("block", "", { "x-ms-blob-type": "BlockBlob" }, "new"),
  GetBlob: get("block"),
  GetBlobProperties: { on: "block", method: "HEAD" },
  GetBlobMetadata: get("block", "comp=metadata"),
  SetBlobMetadata: put("block", "comp=metadata"),
  SetBlobHeaders: put("block", "comp=properties", { "x-ms-blob-content-type": "x/y" }),
  DeleteBlob: { on: "block", method: "DELETE" },
  PutBlock: put("block", block, {}, "x"),
  PutBlockList: put("block", "comp=blocklist", {}, list),
  GetBlockList: get("block", "comp=blocklist"),
  AppendBlock: put("append", "comp=appendblock", {}, "x"),
  SealAppendBlob: put("append", "comp=seal"),
  PutPage: put("page", "comp=page", pages, page),
  GetPageRanges: get("page", "comp=pagelist"),
  LeaseBlob: put("block", "comp=lease", leasing),
  SnapshotBlob: put("block", "comp=snapshot"),
  SetBlobTier: put("block", "comp=tier", { "x-ms-access-tier": "Cool" }),
  GetBlobTags: get("block", "comp=tags"),
  SetBlobTags: put("block", "comp=tags", {}, tags),
  UndeleteBlob: put("block", "comp=undelete"),
  SetBlobExpiry: put("block", "comp=expiry", { "x-ms-expiry-option": "NeverExpire" }),
  SetBlobImmutabilityPolicy: put("block", "comp=immutabilitypolicies", {
    "x-ms-immutability-policy-until-date": new Date(Date.now() + day).toUTCString(),
  }),
  DeleteBlobImmutabilityPolicy: { on: "block", method: "DELETE", query: "comp=immutabilitypolicies" },
  SetBlobLegalHold: put("block", "comp=legalhold", { "x-ms-legal-hold": "true" }),
  CopyBlob: copy("block", ""),
  CopyBlobFromUrl: copy("block", "", { "x-ms-requires-sync": "true" }),
  AbortCopyBlob: put("block", `comp=copy&copyid=${randomUUID()}`, { "x-ms-copy-action": "abort" }),
  PutBlobFromUrl: copy("block", "", { "x-ms-blob-type": "BlockBlob" }),
  PutBlockFromUrl: copy("block", block),
  AppendBlockFromUrl: copy("append", "comp=appendblock"),
  PutPageFromUrl: copy("page", "comp=page", { ...pages, "x-ms-source-range": "bytes=0-511" }),
};

/** Values that the objects of this test do not fulfil. */
function unmet(header: string, operation: BlobOperationName, etag: string): string {
  if (header.endsWith("if-none-match")) return operation === "DeleteBlob" ? etag : "*";
  if (header.endsWith("if-match")) return '"0x8D0000000000000"';
  if (header.endsWith("if-modified-since")) return new Date(Date.now() + day).toUTCString();
  if (header.endsWith("if-unmodified-since")) return new Date(Date.now() - day).toUTCString();
  if (header.endsWith("if-tags")) return "missing = 'x'";
  if (header.endsWith("lease-id")) return randomUUID();
  const numbers: Readonly<Record<string, string>> = {
    "x-ms-if-sequence-number-le": "4",
    "x-ms-if-sequence-number-lt": "5",
    "x-ms-if-sequence-number-eq": "6",
    "x-ms-blob-condition-appendpos": "99",
    "x-ms-blob-condition-maxsize": "0",
  };
  return numbers[header] as string;
}

export function conditionTableSuite(clients: () => Clients): void {
  async function prepared() {
    const container = await clients().container();
    const blobs = { block: container.getBlockBlobClient("block"), page: container.getPageBlobClient("page") };
    await blobs.block.upload("old", 3);
    await blobs.block.stageBlock(blockId(1), "x", 1);
    await blobs.page.create(1024, { blobSequenceNumber: 5 });
    const append = container.getAppendBlobClient("append");
    await append.create();
    const source = container.getBlockBlobClient("source");
    await source.upload(page, page.length);
    const url = await readableUrl(source, "rt");
    const etags = async () =>
      Promise.all([container, blobs.block, blobs.page, append].map(async (one) => (await one.getProperties()).etag));
    return { name: container.containerName, url, etags };
  }

  describe("condition × operation: looked at, or refused by name", () => {
    for (const operation of blobOperationNames) {
      test(operation, async () => {
        const { name, url, etags } = await prepared();
        const before = await etags();
        const { on, method, query, headers, body, copies } = requests[operation];
        const path = { service: "", container: `/${name}`, new: `/${name}-new` }[on as string] ?? `/${name}/${on}`;
        const allowed = new Set(blobOperations[operation].conditions);
        const reads = blobOperations[operation].severalEtags === true;
        for (const header of conditionHeaders) {
          const value = unmet(header, operation, before[1] ?? "");
          const renewing = operation.startsWith("Lease") && header === "x-ms-lease-id" ? { "x-ms-lease-action": "renew" } : {};
          const sent = { ...headers, ...(copies ? { "x-ms-copy-source": url } : {}), ...renewing, [header]: value };
          const answer = await clients().raw(method, query ? `${path}?${query}` : path, {
            headers: sent,
            ...(body === undefined ? {} : { body }),
          });
          const text = await answer.text();
          const code = answer.headers.get("x-ms-error-code") ?? "";
          const told = `${header}: ${answer.status} ${code}`;
          // A read can't ask for what is not there.
          if (reads && allowed.has(header) && value === "*") assert.match(told, /: 400 UnsatisfiableCondition$/);
          else if (allowed.has(header)) assert.ok([304, 409, 412].includes(answer.status), told);
          else {
            assert.match(told, /: 400 (ConditionHeadersNotSupported|UnsupportedHeader)$/);
            if (method !== "HEAD") assert.ok(text.includes(`<HeaderName>${header}</HeaderName>`), `${told} ${text}`);
          }
        }
        assert.deepEqual(await etags(), before);
      });
    }
  });
}
