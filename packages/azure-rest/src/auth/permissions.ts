/**
 * Permissions: one row for every operation of the Queue and Table services (those of blobs are in blob/operation-rows.ts), and one for every
 * header or parameter that makes a request ask for more.
 * Made from the REST reference ("Create an account SAS", "Create a service SAS", "Create a user delegation SAS", "Authorize with Microsoft
 * Entra ID": permissions for calling data operations, "Manage anonymous read access"). Total by type: an operation without a row does not
 * compile. The test that walks it (tests/conformance/authorization.slow.ts) has the expected answers in a table of its own.
 *
 * Letters: "r" read, "cw" create or write, "a+u" add and update, "-" no SAS of this kind, "*" any letter.
 * Roles: `read` is … Data Reader, `contribute` is … Data Contributor, `own` is Storage Blob Data Owner. What only the owner's data actions
 * have (tags, versions, permanent deletion, immutability) or no data role has (policies, properties of a service) needs `own`.
 */
import { type BlobOperationName, blobOperationNames, blobOperations } from "../blob/operation-rows.ts";
import type { HttpHeaders } from "../headers.ts";
import type { QueueOperationName } from "../queue/operations.ts";
import type { TableOperationName } from "../table/operations.ts";
import type { Query } from "../target.ts";
import { type BearerRole, needs, type OperationAuthorization, type Widening, widenedNeeds } from "./authorization.ts";

const tagging = { adds: "t", role: "own", notAnonymous: true } as const;
const protecting = { adds: "i", role: "own" } as const;
const hidden = { notAnonymous: true } as const;

/** Permissions that widen an operation, in this order; of those with `instead` the last decides. */
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
  return blobOperationNames.filter((name) => !names.includes(name));
}

const queueRows: Readonly<Record<QueueOperationName, OperationAuthorization>> = {
  ListQueues: needs("s", "l", "-", "-", "read"),
  GetQueueServiceProperties: needs("s", "r", "-", "-", "own"),
  SetQueueServiceProperties: needs("s", "w", "-", "-", "own"),
  GetQueueServiceStats: needs("s", "r", "-", "-", "own"),
  GetUserDelegationKey: needs("s", "-", "-", "-", "read"),
  CreateQueue: needs("c", "cw", "-", "-", "contribute"),
  DeleteQueue: needs("c", "d", "-", "-", "contribute"),
  GetQueueMetadata: needs("c", "r", "r", "r", "read"),
  SetQueueMetadata: needs("c", "w", "-", "-", "contribute"),
  GetQueueAcl: needs("c", "-", "-", "-", "own"),
  SetQueueAcl: needs("c", "-", "-", "-", "own"),
  PutMessage: needs("o", "a", "a", "a", "contribute"),
  GetMessages: needs("o", "p", "p", "p", "contribute"),
  PeekMessages: needs("o", "r", "r", "r", "read"),
  ClearMessages: needs("o", "d", "-", "-", "contribute"),
  UpdateMessage: needs("o", "u", "u", "u", "contribute"),
  DeleteMessage: needs("o", "p", "p", "p", "contribute"),
};

const tableRows: Readonly<Record<TableOperationName, OperationAuthorization>> = {
  GetTableServiceProperties: needs("s", "r", "-", "-", "own"),
  SetTableServiceProperties: needs("s", "w", "-", "-", "own"),
  GetTableServiceStats: needs("s", "r", "-", "-", "own"),
  GetUserDelegationKey: needs("s", "-", "-", "-", "read"),
  QueryTables: needs("c", "l", "-", "-", "read"),
  GetTable: needs("c", "l", "-", "-", "read"),
  CreateTable: needs("c", "cw", "-", "-", "contribute"),
  DeleteTable: needs("c", "d", "-", "-", "contribute"),
  GetTableAcl: needs("c", "-", "-", "-", "own"),
  SetTableAcl: needs("c", "-", "-", "-", "own"),
  QueryEntities: needs("o", "r", "r", "r", "read"),
  GetEntity: needs("o", "r", "r", "r", "read"),
  InsertEntity: needs("o", "a", "a", "a", "contribute"),
  UpdateEntity: needs("o", "u", "u", "u", "contribute"),
  MergeEntity: needs("o", "u", "u", "u", "contribute"),
  DeleteEntity: needs("o", "d", "d", "d", "contribute"),
  InsertOrReplaceEntity: needs("o", "a+u", "a+u", "a+u", "contribute"),
  InsertOrMergeEntity: needs("o", "a+u", "a+u", "a+u", "contribute"),
  // Each operation inside is judged by its own row (`access.allows`).
  EntityGroupTransaction: needs("o", "raud", "raud", "raud", "read"),
};

/** Returns the least role of a bearer for what a SAS needs this letter for, where an operation asks `access.may`. */
export function roleOfLetter(letter: string): BearerRole {
  if (letter === "r" || letter === "l") return "read";
  return "tfixyo".includes(letter) ? "own" : "contribute";
}

export const blobAuthorizationOf = (name: BlobOperationName, headers: HttpHeaders, query: Query): OperationAuthorization =>
  widenedNeeds(blobOperations[name].needs, name, blobWidenings, { headers, query });
export const queueAuthorizationOf = (name: QueueOperationName): OperationAuthorization => queueRows[name];
export const tableAuthorizationOf = (name: TableOperationName): OperationAuthorization => tableRows[name];
