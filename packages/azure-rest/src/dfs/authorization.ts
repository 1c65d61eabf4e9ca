/**
 * Needs of the operations of Data Lake Storage for callers without an account key, as the Blob service's are told (blob/operation-rows.ts).
 *
 * A SAS whose resource is a path covers that path only: a rename, which has two, needs one for each. It is a move (`m`), or a write and a
 * deletion. Lists of access control let a bearer in whose role is not enough, and keep out whom a user delegation SAS names (`suoid`): the door judges by them (access/needs.ts).
 *
 * Sources: "Create an account SAS", "Create a service SAS", "Create a user delegation SAS".
 */
import { needs, type OperationAuthorization } from "../auth/authorization.ts";
import { type BlobOperationName, blobOperations } from "../blob/operation-rows.ts";
import { isPathOperation, type PathOperationName } from "./access/needs.ts";
import type { DataLakeOperationName } from "./operation-rows.ts";

const reads = needs("o", "r", "r", "r", "read");
const tells = needs("o", "re", "re", "re", "read");
const creates = needs("o", "cw", "cw", "cw", "contribute");
const writesPath = needs("o", "w", "w", "w", "contribute");
// `o` for the owner, `p` for permissions and lists: which of them the request needs is for the door. In an account SAS `p` is for queues.
const owns = needs("o", "-", "op", "op", "own");

const rows: Readonly<Record<DataLakeOperationName, OperationAuthorization>> = {
  ListFilesystems: needs("s", "l", "-", "-", "read"),
  CreateFilesystem: needs("c", "cw", "-", "-", "contribute"),
  SetFilesystemProperties: needs("c", "w", "-", "-", "contribute"),
  GetFilesystemProperties: needs("c", "r", "-", "-", "read"),
  DeleteFilesystem: needs("c", "d", "-", "-", "contribute"),
  ListPaths: needs("c", "l", "l", "l", "read"),
  ListDeletedPaths: needs("c", "l", "l", "l", "read"),
  CreateFile: creates,
  CreateDirectory: creates,
  RenamePath: needs("o", "w+d", "mw+md", "mw+md", "contribute"),
  AppendData: writesPath,
  FlushData: writesPath,
  SetPathProperties: writesPath,
  SetAccessControl: owns,
  SetAccessControlRecursively: owns,
  SetPathExpiry: writesPath,
  UndeletePath: writesPath,
  LeasePath: writesPath,
  ReadPath: reads,
  GetPathProperties: reads,
  GetPathStatus: tells,
  GetAccessControl: tells,
  CheckAccess: tells,
  DeletePath: needs("o", "d", "d", "d", "contribute"),
};

export const dataLakeAuthorizationOf = (operation: DataLakeOperationName): OperationAuthorization =>
  isPathOperation(operation) ? { ...rows[operation], byLists: true } : rows[operation];

/** Operations of the Blob service on paths, as lists decide about them. */
const ofBlobs: Partial<Record<BlobOperationName, PathOperationName>> = {
  GetBlob: "ReadPath",
  GetBlobProperties: "GetPathProperties",
  GetBlobMetadata: "GetPathProperties",
  SetBlobMetadata: "SetPathProperties",
  SetBlobHeaders: "SetPathProperties",
  LeaseBlob: "LeasePath",
};

export const pathOperationOf = (operation: BlobOperationName): PathOperationName | undefined => ofBlobs[operation];

/** Needs of an operation of the Blob service on a path. What a header adds to them (tags, policies) lists don't give. */
export function blobPathAuthorization(operation: BlobOperationName, asked: OperationAuthorization): OperationAuthorization {
  const isPlain = asked.role === blobOperations[operation].needs.role;
  return isPlain && ofBlobs[operation] !== undefined ? { ...asked, byLists: true } : asked;
}
