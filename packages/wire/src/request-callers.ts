/**
 * Callers of requests: where one method does different things, the roles that each of them is for, and the name that a request gives its
 * caller. The rows belong to the table in `callers.ts`, which names the methods.
 *
 * Invariants:
 * - What a request does has a row, or nobody may ask for it: a new kind of operation, a new field of a change, another lease or key is refused
 *   until it has one. The compiler finds missing rows of operations; `tests/tidy/callers.test.ts` finds them by the descriptors.
 * - A name is compared only where a certificate proves one. With a secret alone, a process may call itself anything.
 */
import type { Message } from "@bufbuild/protobuf";
import type { TableOperation } from "./gen/stamp/v1/entities_pb.ts";
import type { NodeReport } from "./gen/stamp/v1/extent_node_pb.ts";
import type { AnnounceRequest } from "./gen/stamp/v1/feature_levels_pb.ts";
import type { GetAccountShippingRequest } from "./gen/stamp/v1/geo_shipping_pb.ts";
import type { AcquireLeaseRequest } from "./gen/stamp/v1/lock_service_pb.ts";
import type { QueueOperation } from "./gen/stamp/v1/messages_pb.ts";
import type { ListKeysRequest, TransactRequest } from "./gen/stamp/v1/metadata_store_pb.ts";
import { type ChangeAccount, ChangeAccountSchema, type Operation } from "./gen/stamp/v1/objects_pb.ts";
import type { ExecuteRequest } from "./gen/stamp/v1/partition_server_pb.ts";
import type { DeliverRequest } from "./gen/stamp/v1/raft_pb.ts";
import type { MultiModifyRequest } from "./gen/stamp/v1/stream_manager_pb.ts";
import { isSet } from "./levels.ts";
import type { Caller, Callers } from "./roles.ts";

/** Rows of a method whose requests do different things. */
export interface ByRequest {
  /** Callers for each thing that a request can do, keyed by that thing. */
  readonly rows: Readonly<Record<string, Callers>>;
  /** Returns what the request does: names of rows. None: nothing that needs one. */
  readonly doneBy: (request: never) => readonly string[];
  /** Returns the names in the request that have to be the caller's. */
  readonly namesOf?: (request: never) => readonly string[];
}

type Oneof<T> = T extends { readonly kind: { readonly case: infer C } } ? Extract<C, string> : never;
type ChangedField = Exclude<keyof ChangeAccount, keyof Message | "account" | "delegationSecret">;

/** Operations of an account's row that have rows of their own below `changeAccount`. */
type OperationRow =
  | Exclude<Oneof<Operation>, "table" | "queue" | "changeAccount">
  | `table.${Oneof<TableOperation>}`
  | `queue.${Oneof<QueueOperation>}`
  | `changeAccount.${ChangedField}`
  | "changeAccount.delegationSecret"
  | "changeAccount.firstDelegationSecret";

const accounts = ["partition-manager"] as const;
/** A front-end authorizes requests of clients: it reads the account that a request names, and changes what a client may. */
const clients = ["front-end"] as const;
const both = ["partition-manager", "front-end"] as const;
/** Drills of the operator ask as a caller with an old map does. */
const drilled = ["front-end", "operator"] as const;

const operationRows: Readonly<Record<OperationRow, Callers>> = {
  getAccount: both,
  putAccount: accounts,
  listAccounts: accounts,
  "changeAccount.keys": accounts,
  "changeAccount.delegationSecret": accounts,
  // The secret of an account that has none yet, made when a client asks for its first user delegation key.
  "changeAccount.firstDelegationSecret": both,
  "changeAccount.configuredDigest": accounts,
  // Set Blob (Queue, Table) Service Properties. The partition server keeps the settings in them that are the operator's.
  "changeAccount.serviceProperties": both,
  "changeAccount.newEncryptionScope": accounts,
  "changeAccount.encryptionScopeState": accounts,
  "changeAccount.geoRole": accounts,
  "changeAccount.expectedDelegationSecret": both,
  // The answer tells whether a guess of these is right.
  "changeAccount.expectedConfiguredDigest": accounts,
  "changeAccount.expectedKeys": accounts,
  "changeAccount.expectedServiceProperties": both,
  "changeAccount.expectedGeoRole": both,

  createContainer: clients,
  getContainer: clients,
  setContainerMetadata: clients,
  deleteContainer: clients,
  listContainers: clients,
  setContainerAcl: clients,
  leaseContainer: clients,
  restoreContainer: clients,
  markProtected: clients,
  beginDeletion: clients,

  putBlob: clients,
  getBlob: clients,
  setBlobMetadata: clients,
  setBlobHeaders: clients,
  deleteBlob: clients,
  listBlobs: clients,
  putBlock: clients,
  putBlockList: clients,
  getBlockList: clients,
  appendBlock: clients,
  sealBlob: clients,
  putPages: clients,
  clearPages: clients,
  setPageBlobProperties: clients,
  getPageRanges: clients,
  readParts: clients,
  startCopy: clients,
  addToCopy: clients,
  endCopy: clients,
  abortCopy: clients,
  claimCopy: clients,
  tree: clients,
  handles: clients,
  leaseBlob: clients,
  snapshotBlob: clients,
  undeleteBlob: clients,
  setBlobTags: clients,
  setBlobTier: clients,
  setBlobExpiry: clients,
  setImmutabilityPolicy: clients,
  deleteImmutabilityPolicy: clients,
  setLegalHold: clients,
  setPathAccess: clients,
  findBlobs: clients,

  "table.createTable": clients,
  "table.getTable": clients,
  "table.setTableAcl": clients,
  "table.deleteTable": clients,
  "table.listTables": clients,
  "table.changeEntities": clients,
  "table.getEntity": clients,
  "table.queryEntities": clients,

  "queue.createQueue": drilled,
  "queue.getQueue": drilled,
  "queue.setQueueMetadata": drilled,
  "queue.deleteQueue": clients,
  "queue.listQueues": clients,
  "queue.setQueueAcl": clients,
  "queue.putMessage": clients,
  "queue.getMessages": clients,
  "queue.peekMessages": clients,
  "queue.deleteMessage": clients,
  "queue.updateMessage": clients,
  "queue.clearMessages": clients,
  "queue.countMessages": clients,
};

/** List with one name for each operation, made once so that no question makes one. */
const single = new Map(Object.keys(operationRows).map((name) => [name, [name]] as const));

function rowOf(kind: string, inner: { readonly case?: string | undefined }): readonly string[] {
  const name = `${kind}.${inner.case}`;
  return inner.case === undefined ? [] : (single.get(name) ?? [name]);
}

function rowsOfOperation(operation: Operation | undefined): readonly string[] {
  const kind = operation?.kind;
  if (kind?.case === undefined) return [];
  switch (kind.case) {
    case "table":
    case "queue":
      return rowOf(kind.case, kind.value.kind);
    case "changeAccount":
      return changedFields(kind.value);
    default:
      return single.get(kind.case) ?? [kind.case];
  }
}

function changedFields(change: ChangeAccount): readonly string[] {
  const isFirst = change.expectedDelegationSecret?.length === 0;
  const held = change as unknown as Readonly<Record<string, unknown>>;
  return ChangeAccountSchema.fields
    .filter((field) => field.localName !== "account" && isSet(field, held[field.localName]))
    .map(({ localName }) => (localName === "delegationSecret" && isFirst ? "firstDelegationSecret" : localName))
    .map((name) => `changeAccount.${name}`);
}

/** PartitionServer/Execute. Both fields that can carry an operation count. */
export const operations: ByRequest = {
  rows: operationRows,
  doneBy: ({ operation, demanding }: ExecuteRequest) =>
    demanding === undefined ? rowsOfOperation(operation) : [...rowsOfOperation(operation), ...rowsOfOperation(demanding.operation)],
};

const serversLease = "ps/";
/** Sessions of gateways that open files (docs/design/files.md). */
const sessionsLease = "files/";
const leaseRow = (name: string): string => [serversLease, sessionsLease].find((prefix) => name.startsWith(prefix)) ?? name;
/** Returns the holder in the name of a lease: partition servers' leases are named for them. */
const holderIn = (name: string): readonly string[] => (name.startsWith(serversLease) ? [name.slice(serversLease.length)] : []);

const leaseRows = {
  "stream-manager": ["stream-manager"],
  "partition-manager": ["partition-manager"],
  "location-service": ["location-service"],
  [serversLease]: ["partition-server"],
  [sessionsLease]: ["operator"],
} as const;

/** LockService/AcquireLease. */
export const acquiredLeases: ByRequest = {
  rows: leaseRows,
  doneBy: ({ name }: AcquireLeaseRequest) => [leaseRow(name)],
  namesOf: ({ name, holder }: AcquireLeaseRequest) => [holder, ...holderIn(name)],
};

/** LockService/RenewLease and ReleaseLease. The lock service compares the holder of the lease besides. */
export const heldLeases: ByRequest = {
  rows: leaseRows,
  doneBy: ({ name }: { readonly name: string }) => [leaseRow(name)],
  namesOf: ({ name }: { readonly name: string }) => holderIn(name),
};

/** LockService/RefuseRenewals: the partition manager takes ranges from servers. */
export const endedLeases: ByRequest = {
  rows: { [serversLease]: ["partition-manager"] },
  doneBy: ({ name }: { readonly name: string }) => [leaseRow(name)],
};

/** Consensus/Deliver: a lock service speaks for itself. */
export const deliveredMessages: ByRequest = {
  rows: { messages: ["lock-service"] },
  doneBy: () => ["messages"],
  namesOf: ({ from }: DeliverRequest) => [from],
};

const recordRows = {
  "lease stream-manager": ["stream-manager"],
  "lease partition-manager": ["partition-manager"],
  "lease location-service": ["location-service"],
  "sm/": ["stream-manager"],
  "erasure-coding/": ["stream-manager"],
  "feature-level": ["stream-manager"],
  "taken-back": ["stream-manager"],
  "partition-manager/": ["partition-manager"],
  "location/": ["location-service"],
} as const;

const recordRow = (key: string): string => key.slice(0, key.indexOf("/") + 1) || key;

/** MetadataStore/Transact: under the lease of the writer's role, records of its role. The lock service compares the holder of the lease besides. */
export const writtenRecords: ByRequest = {
  rows: recordRows,
  doneBy: ({ fence, conditions, writes }: TransactRequest) => [
    ...new Set([...(fence ? [`lease ${fence.leaseName}`] : []), ...[...conditions, ...writes].map(({ key }) => recordRow(key))]),
  ],
};

/** MetadataStore/ListKeys: a location service has a store of its own, and its records in it; a stamp's processes read all of theirs. */
export const listedRecords: ByRequest = {
  rows: {
    "location/": ["location-service", "operator"],
    others: ["stream-manager", "partition-manager", "partition-server", "operator"],
  },
  doneBy: ({ prefix }: ListKeysRequest) => [recordRow(prefix) === "location/" ? "location/" : "others"],
};

const streamRow = (name: string): string => /^\/(ps|pm)\//.exec(name)?.[0] ?? "others";
/** A partition manager also fences streams of ranges whose split or merge was given up. Others are streams that a person made. */
const serverStreamRows = {
  "/ps/": ["partition-server", "partition-manager"],
  "/pm/": ["partition-manager"],
  others: ["partition-server", "partition-manager"],
} as const;
const streamRows = {
  "/ps/": [...serverStreamRows["/ps/"], "operator"],
  "/pm/": [...serverStreamRows["/pm/"], "operator"],
  others: [...serverStreamRows.others, "operator"],
} as const;

type OneStream = { readonly name: string };

/** Calls of StreamManager about one stream: by owners and people, and by owners alone. */
export const namedStream: ByRequest = { rows: streamRows, doneBy: ({ name }: OneStream) => [streamRow(name)] };
export const ownedStream: ByRequest = { rows: serverStreamRows, doneBy: ({ name }: OneStream) => [streamRow(name)] };
export const ownedStreams: ByRequest = {
  rows: serverStreamRows,
  doneBy: ({ names }: { readonly names: readonly string[] }) => [...new Set(names.map(streamRow))],
};
export const joinedStreams: ByRequest = {
  rows: streamRows,
  doneBy: ({ source, target }: { readonly source: string; readonly target: string }) => [...new Set([source, target].map(streamRow))],
};
export const editedStreams: ByRequest = {
  rows: streamRows,
  doneBy: ({ edits }: MultiModifyRequest) => [
    ...new Set(edits.flatMap(({ name, content }) => [name, ...(content?.extents ?? []).map(({ stream }) => stream)]).map(streamRow)),
  ],
};

/** StreamManager/ReportNode. */
export const nodeReports: ByRequest = {
  rows: { report: ["extent-node"] },
  doneBy: () => ["report"],
  namesOf: ({ nodeId }: NodeReport) => [nodeId],
};

/** Accounts/GetShipping. The partition servers that report to a copy are told the lineage of its stamp, and nobody else is. */
export const askedShipping: ByRequest = {
  rows: { facts: ["operator", "partition-server", "location-peer", "location-service"], copyLineage: ["partition-server"] },
  doneBy: ({ copyLineage }: GetAccountShippingRequest) => [copyLineage === 0n ? "facts" : "copyLineage"],
};

const announced = ["stream-manager", "extent-node", "partition-manager", "partition-server", "front-end", "location-service"] as const;
/** FeatureLevels/Announce: a process speaks for itself. A location service may come with a secret that a stamp has made for it. */
export const announcements: ByRequest = {
  rows: Object.fromEntries(
    announced.map((role): readonly [string, readonly Caller[]] => [role, role === "location-service" ? [role, "location-peer"] : [role]]),
  ),
  doneBy: ({ role }: AnnounceRequest) => [role],
  // A location service has another name in the certificate of each stamp than its own.
  namesOf: ({ role, name }: AnnounceRequest) => (role === "location-service" ? [] : [name]),
};
