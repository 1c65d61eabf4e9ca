/**
 * Permissions: one row for every operation of every service, and one for every header or parameter that makes a request ask for more.
 * Made from the REST reference ("Create an account SAS", "Create a service SAS", "Create a user delegation SAS", "Authorize with Microsoft
 * Entra ID": permissions for calling data operations, "Manage anonymous read access"). Total by type: an operation without a row does not
 * compile. The test that walks it (tests/conformance/authorization.slow.ts) has the expected answers in a table of its own.
 *
 * Letters: "r" read, "cw" create or write, "a+u" add and update, "-" no SAS of this kind, "*" any letter.
 * Roles: `read` is … Data Reader, `contribute` is … Data Contributor, `own` is Storage Blob Data Owner. What only the owner's data actions
 * have (tags, versions, permanent deletion, immutability) or no data role has (policies, properties of a service) needs `own`.
 */
import type { BlobOperationName } from "../blob/operations.ts";
import type { HttpHeaders } from "../headers.ts";
import type { QueueOperationName } from "../queue/operations.ts";
import type { TableOperationName } from "../table/operations.ts";
import type { Query } from "../target.ts";
import { type BearerRole, type OperationAuthorization, type PermissionGroups, type Widening, widened } from "./authorization.ts";

const anyLetter = "rwdlacxyupftmeoi";

const groups = (text: string): PermissionGroups => (text === "-" ? "never" : text === "*" ? [anyLetter] : text.split("+"));

const row = (
  resourceType: string,
  accountSas: string,
  serviceSas: string,
  delegationSas: string,
  role: BearerRole,
  anonymous?: "blob" | "container",
): OperationAuthorization => ({
  resourceType,
  accountSas: groups(accountSas),
  serviceSas: groups(serviceSas),
  delegationSas: groups(delegationSas),
  role,
  ...(anonymous === undefined ? {} : { anonymous }),
});

/** Blocks are written with `w`. A user delegation SAS may do it with `c`, too, since this version. */
const putsBlocks: OperationAuthorization = { ...row("o", "w", "w", "cw", "contribute"), since: { c: "2026-04-06" } };

const blobRows: Readonly<Record<BlobOperationName, OperationAuthorization>> = {
  //                               srt  account service delegation role    anonymous
  ListContainers: row("s", "l", "-", "-", "read"),
  GetServiceProperties: row("s", "r", "-", "-", "own"),
  SetServiceProperties: row("s", "w", "-", "-", "own"),
  GetUserDelegationKey: row("s", "-", "-", "-", "read"),
  GetAccountInformation: row("sco", "*", "*", "*", "read"),
  BlobBatch: row("sco", "*", "-", "-", "read"),
  FindBlobsByTags: row("o", "f", "-", "-", "own"),

  CreateContainer: row("c", "cw", "-", "-", "contribute"),
  GetContainerProperties: row("c", "r", "-", "-", "read", "container"),
  GetContainerMetadata: row("c", "r", "-", "-", "read", "container"),
  SetContainerMetadata: row("c", "w", "-", "-", "contribute"),
  GetContainerAcl: row("c", "-", "-", "-", "own"),
  SetContainerAcl: row("c", "-", "-", "-", "own"),
  DeleteContainer: row("c", "d", "-", "-", "contribute"),
  RestoreContainer: row("c", "w", "-", "-", "contribute"),
  LeaseContainer: row("c", "w", "-", "-", "contribute"),
  ListBlobs: row("c", "l", "l", "l", "read", "container"),
  FindBlobsByTagsInContainer: row("c", "f", "f", "f", "own"),
  ContainerBlobBatch: row("sco", "*", "*", "*", "read"),

  GetBlob: row("o", "r", "r", "r", "read", "blob"),
  GetBlobProperties: row("o", "r", "r", "r", "read", "blob"),
  GetBlobMetadata: row("o", "r", "r", "r", "read", "blob"),
  GetBlockList: row("o", "r", "r", "r", "read", "blob"),
  GetPageRanges: row("o", "r", "r", "r", "read", "blob"),
  GetBlobTags: row("o", "t", "t", "t", "own"),

  // With `c` alone what is there can't be overwritten (`access.may("w")`).
  PutBlob: row("o", "cw", "cw", "cw", "contribute"),
  PutBlobFromUrl: row("o", "cw", "cw", "cw", "contribute"),
  CopyBlob: row("o", "cw", "cw", "cw", "contribute"),
  CopyBlobFromUrl: row("o", "cw", "cw", "cw", "contribute"),
  SnapshotBlob: row("o", "cw", "cw", "cw", "contribute"),
  PutBlock: putsBlocks,
  PutBlockFromUrl: putsBlocks,
  PutBlockList: putsBlocks,
  AppendBlock: row("o", "aw", "aw", "aw", "contribute"),
  AppendBlockFromUrl: row("o", "aw", "aw", "aw", "contribute"),
  SealAppendBlob: row("o", "w", "w", "w", "contribute"),
  PutPage: row("o", "w", "w", "w", "contribute"),
  PutPageFromUrl: row("o", "w", "w", "w", "contribute"),
  SetBlobMetadata: row("o", "w", "w", "w", "contribute"),
  SetBlobHeaders: row("o", "w", "w", "w", "contribute"),
  SetBlobTier: row("o", "w", "w", "w", "contribute"),
  SetBlobExpiry: row("o", "w", "w", "w", "contribute"),
  AbortCopyBlob: row("o", "w", "w", "w", "contribute"),
  LeaseBlob: row("o", "w", "w", "w", "contribute"),
  UndeleteBlob: row("o", "w", "w", "w", "contribute"),
  DeleteBlob: row("o", "d", "d", "d", "contribute"),
  SetBlobTags: row("o", "t", "t", "t", "own"),
  SetBlobImmutabilityPolicy: row("o", "i", "i", "i", "own"),
  DeleteBlobImmutabilityPolicy: row("o", "i", "i", "i", "own"),
  SetBlobLegalHold: row("o", "i", "i", "i", "own"),
};

const tagging = { adds: "t", role: "own", notAnonymous: true } as const;
const protecting = { adds: "i", role: "own" } as const;
const hidden = { notAnonymous: true } as const;

/** In this order; of those with `instead` the last decides. */
const blobWidenings: readonly Widening[] = [
  { operations: "all", header: "x-ms-tags", ...tagging },
  { operations: "all", header: "x-ms-if-tags", ...tagging },
  { operations: "all", header: "x-ms-copy-source-tag-option", values: { is: ["copy"] }, ...tagging },
  { operations: ["ListBlobs"], parameter: "include", values: { item: ["tags"] }, ...tagging },

  { operations: notThese("SetBlobImmutabilityPolicy"), header: "x-ms-immutability-policy-until-date", ...protecting },
  { operations: notThese("SetBlobImmutabilityPolicy"), header: "x-ms-immutability-policy-mode", ...protecting },
  { operations: notThese("SetBlobLegalHold"), header: "x-ms-legal-hold", ...protecting },

  // "The Delete permission allows breaking a lease on a blob or container with version 2017-07-29 and later."
  {
    operations: ["LeaseBlob", "LeaseContainer"],
    header: "x-ms-lease-action",
    values: { is: ["break"] },
    instead: ["wd"],
    since: { d: "2017-07-29" },
  },
  { operations: ["DeleteBlob"], parameter: "versionid", instead: ["x"], role: "own" },
  { operations: ["DeleteBlob"], parameter: "deletetype", instead: ["y"], role: "own" },

  // Whoever may not set the access policy of a container may not make a public one.
  { operations: ["CreateContainer"], header: "x-ms-blob-public-access", instead: "never", role: "own" },

  { operations: ["ListBlobs"], parameter: "include", values: { item: ["uncommittedblobs", "deleted", "deletedwithversions"] }, ...hidden },
  { operations: ["ListBlobs"], parameter: "showonly", ...hidden },
  { operations: ["GetBlockList"], parameter: "blocklisttype", values: { not: ["committed"] }, ...hidden },
];

function notThese(...names: readonly BlobOperationName[]): readonly string[] {
  return Object.keys(blobRows).filter((name) => !names.includes(name as BlobOperationName));
}

const queueRows: Readonly<Record<QueueOperationName, OperationAuthorization>> = {
  ListQueues: row("s", "l", "-", "-", "read"),
  GetQueueServiceProperties: row("s", "r", "-", "-", "own"),
  SetQueueServiceProperties: row("s", "w", "-", "-", "own"),
  GetUserDelegationKey: row("s", "-", "-", "-", "read"),
  CreateQueue: row("c", "cw", "-", "-", "contribute"),
  DeleteQueue: row("c", "d", "-", "-", "contribute"),
  GetQueueMetadata: row("c", "r", "r", "r", "read"),
  SetQueueMetadata: row("c", "w", "-", "-", "contribute"),
  GetQueueAcl: row("c", "-", "-", "-", "own"),
  SetQueueAcl: row("c", "-", "-", "-", "own"),
  PutMessage: row("o", "a", "a", "a", "contribute"),
  GetMessages: row("o", "p", "p", "p", "contribute"),
  PeekMessages: row("o", "r", "r", "r", "read"),
  ClearMessages: row("o", "d", "-", "-", "contribute"),
  UpdateMessage: row("o", "u", "u", "u", "contribute"),
  DeleteMessage: row("o", "p", "p", "p", "contribute"),
};

const tableRows: Readonly<Record<TableOperationName, OperationAuthorization>> = {
  GetTableServiceProperties: row("s", "r", "-", "-", "own"),
  SetTableServiceProperties: row("s", "w", "-", "-", "own"),
  GetUserDelegationKey: row("s", "-", "-", "-", "read"),
  QueryTables: row("c", "l", "-", "-", "read"),
  GetTable: row("c", "l", "-", "-", "read"),
  CreateTable: row("c", "cw", "-", "-", "contribute"),
  DeleteTable: row("c", "d", "-", "-", "contribute"),
  GetTableAcl: row("c", "-", "-", "-", "own"),
  SetTableAcl: row("c", "-", "-", "-", "own"),
  QueryEntities: row("o", "r", "r", "r", "read"),
  GetEntity: row("o", "r", "r", "r", "read"),
  InsertEntity: row("o", "a", "a", "a", "contribute"),
  UpdateEntity: row("o", "u", "u", "u", "contribute"),
  MergeEntity: row("o", "u", "u", "u", "contribute"),
  DeleteEntity: row("o", "d", "d", "d", "contribute"),
  InsertOrReplaceEntity: row("o", "a+u", "a+u", "a+u", "contribute"),
  InsertOrMergeEntity: row("o", "a+u", "a+u", "a+u", "contribute"),
  // Each operation inside is judged by its own row (`access.allows`).
  EntityGroupTransaction: row("o", "raud", "raud", "raud", "read"),
};

/** Least role of a bearer for what a SAS needs this letter for, where an operation asks `access.may`. */
export function roleOfLetter(letter: string): BearerRole {
  if (letter === "r" || letter === "l") return "read";
  return "tfixy".includes(letter) ? "own" : "contribute";
}

export const blobAuthorizationOf = (name: BlobOperationName, headers: HttpHeaders, query: Query): OperationAuthorization =>
  widened(blobRows[name], name, blobWidenings, { headers, query });
export const queueAuthorizationOf = (name: QueueOperationName): OperationAuthorization => queueRows[name];
export const tableAuthorizationOf = (name: TableOperationName): OperationAuthorization => tableRows[name];
