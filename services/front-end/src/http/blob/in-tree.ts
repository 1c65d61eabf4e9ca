/**
 * Requests of the Blob service in an account with a hierarchical namespace: paths are resolved in the tree (exchange.ts), and what the tree
 * does not keep as it should be is refused by name.
 */
import { type BlobOperationName, notImplemented, pathOperationOf, withoutSlashes } from "@stamp/azure-rest";
import { accessHeaders, accessOf, typeHeader } from "../dfs/access.ts";
import { listBlobsInTree } from "../dfs/blob-lists.ts";
import { deleteFile, writeFile } from "../dfs/blob-writes.ts";
import { admit } from "../dfs/judge.ts";
import type { Answer } from "../exchange.ts";
import { seeAgain, withKey } from "./content/scopes.ts";
import type { BlobExchange } from "./exchange.ts";
import { operationHandlers } from "./operations.ts";

export async function serve(exchange: BlobExchange): Promise<Answer> {
  const keyed = await withKey(exchange);
  if (!keyed.ok) return keyed;
  const answer = await operationHandlers[exchange.operation](keyed.value);
  seeAgain(keyed.value, answer);
  return answer;
}

/** Operations on the account and on containers, which are as in any account. */
const onContainers: readonly BlobOperationName[] = [
  "ListContainers",
  "GetServiceProperties",
  "GetBlobServiceStats",
  "GetUserDelegationKey",
  "GetAccountInformation",
  "CreateContainer",
  "GetContainerProperties",
  "DeleteContainer",
  "GetContainerMetadata",
  "SetContainerMetadata",
  "GetContainerAcl",
  "SetContainerAcl",
  "LeaseContainer",
  "RestoreContainer",
];
const onPaths: readonly BlobOperationName[] = [
  "GetBlob",
  "GetBlobProperties",
  "GetBlobMetadata",
  "SetBlobMetadata",
  "SetBlobHeaders",
  "LeaseBlob",
];
const writes: readonly BlobOperationName[] = ["PutBlob", "PutBlock", "PutBlockList"];
const writing: ReadonlySet<BlobOperationName> = new Set(writes);
const served: ReadonlySet<BlobOperationName> = new Set([...onContainers, ...onPaths, ...writes, "DeleteBlob", "GetBlockList", "ListBlobs"]);
const shows: ReadonlySet<BlobOperationName> = new Set(["GetBlob", "GetBlobProperties"]);

/** Headers and parameters of these operations that have no meaning for files. */
const missingHeaders = [
  "x-ms-tags",
  "x-ms-if-tags",
  "x-ms-legal-hold",
  "x-ms-immutability-policy-mode",
  "x-ms-immutability-policy-until-date",
];
const missingParameters = ["snapshot", "versionid", "deletetype"];

function missingOf({ operation, headers, target }: BlobExchange): string | undefined {
  if (!writing.has(operation) && operation !== "DeleteBlob") return undefined;
  if (headers["x-ms-delete-snapshots"]?.toLowerCase() === "only") return "x-ms-delete-snapshots: only";
  // Nothing takes a file out of the archive again: Set Blob Tier is not here.
  if (headers["x-ms-access-tier"]?.toLowerCase() === "archive") return "x-ms-access-tier: Archive";
  return missingHeaders.find((name) => headers[name] !== undefined) ?? missingParameters.find((name) => target.query.has(name));
}

export async function serveInTree(exchange: BlobExchange): Promise<Answer> {
  const { operation } = exchange;
  const feature = `${operation} in an account with a hierarchical namespace`;
  if (!served.has(operation)) return notImplemented(feature);
  const missing = missingOf(exchange);
  if (missing !== undefined) return notImplemented(`${missing} of ${feature}`);
  const inTree: NonNullable<BlobExchange["inTree"]> = {};
  const { container: filesystem, blob } = exchange.target;
  const path = blob === undefined ? undefined : withoutSlashes(blob);
  const byLists = pathOperationOf(operation);
  const judged = byLists && path !== undefined ? { operation: byLists, paths: [path] } : undefined;
  const admitted = await admit({ ...exchange, inTree, resource: { filesystem, path } }, judged);
  if (!admitted.ok) return admitted;
  const asked = admitted.value;
  if (operation === "ListBlobs") return listBlobsInTree(asked);
  if (operation === "DeleteBlob") return deleteFile(asked);
  const answer = writing.has(operation) ? await writeFile(asked, () => serve(asked)) : await serve(asked);
  const kind = inTree.held?.kind;
  if (!answer.ok || kind === undefined || !shows.has(operation)) return answer;
  const folder = kind === "directory" ? { "x-ms-meta-hdi_isfolder": "true" } : {};
  const headers = { ...answer.value.headers, ...typeHeader(kind), ...accessHeaders(accessOf(kind, inTree.pathAccess), false), ...folder };
  return { ok: true, value: { ...answer.value, headers } };
}
