/**
 * Requests of the Blob service in an account with a hierarchical namespace: paths are resolved in the tree (exchange.ts), and what the tree
 * does not keep as it should be is refused by name.
 */
import { type BlobOperationName, notImplemented, pathOperationOf, withoutSlashes } from "@stamp/azure-rest";
import { accessHeaders, accessOf, typeHeader } from "../dfs/access.ts";
import { admit } from "../dfs/judge.ts";
import type { Answer } from "../exchange.ts";
import { seeAgain, withKey } from "./content/scopes.ts";
import { type BlobExchange, blobOfRequest } from "./exchange.ts";
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
const served: ReadonlySet<BlobOperationName> = new Set([...onContainers, ...onPaths]);
const shows: ReadonlySet<BlobOperationName> = new Set(["GetBlob", "GetBlobProperties"]);

export async function serveInTree(exchange: BlobExchange): Promise<Answer> {
  const { operation } = exchange;
  const feature = `${operation} in an account with a hierarchical namespace`;
  if (!served.has(operation)) return notImplemented(feature);
  const inTree: NonNullable<BlobExchange["inTree"]> = {};
  const { container: filesystem, blob } = exchange.target;
  const path = blob === undefined ? undefined : withoutSlashes(blob);
  const byLists = pathOperationOf(operation);
  const judged = byLists && path !== undefined ? { operation: byLists, paths: [path] } : undefined;
  const admitted = await admit({ ...exchange, inTree, resource: { filesystem, path } }, judged);
  if (!admitted.ok) return admitted;
  const asked = admitted.value;
  if (operation === "LeaseBlob") {
    const name = await blobOfRequest(asked);
    if (!name.ok) return name;
    if (inTree.held?.kind === "directory") return notImplemented(`Leases of directories in an account with a hierarchical namespace`);
  }
  const answer = await serve(asked);
  const kind = inTree.held?.kind;
  if (!answer.ok || kind === undefined || !shows.has(operation)) return answer;
  const folder = kind === "directory" ? { "x-ms-meta-hdi_isfolder": "true" } : {};
  const headers = { ...answer.value.headers, ...typeHeader(kind), ...accessHeaders(accessOf(kind, inTree.pathAccess), false), ...folder };
  return { ok: true, value: { ...answer.value, headers } };
}
