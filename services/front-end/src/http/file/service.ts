/** The Files service. Operations that are not here are refused by their names. */
import {
  badHeader,
  checkShareName,
  errorBody,
  type FileOperationName,
  fileAuthorizationOf,
  fileError,
  formatIso,
  notImplemented,
  parsed,
  parseFileResource,
  reasonPhraseOf,
  recognizeFile,
  rejected,
  type SignedResource,
} from "@stamp/azure-rest";
import { shareContainer } from "@stamp/objects";
import { signedIdentifiersFromWire } from "@stamp/wire";
import { getUserDelegationKey } from "../delegation-key.ts";
import type { Answer } from "../exchange.ts";
import type { RestService } from "../service.ts";
import { analyticsUnsupported, getServiceProperties, setServiceProperties } from "../service-properties.ts";
import { abortCopyFile, copyFile, putRangeFromUrl } from "./copies.ts";
import { getFile, getFileProperties, listRanges, putRange } from "./data.ts";
import {
  createDirectory,
  createFile,
  deleteDirectory,
  deleteFile,
  getDirectoryMetadata,
  getDirectoryProperties,
  getFileMetadata,
  leaseFile,
  setDirectoryMetadata,
  setDirectoryProperties,
  setFileMetadata,
  setFileProperties,
} from "./entries.ts";
import { belowRoot, type FileExchange, type FileHandler } from "./exchange.ts";
import { forceCloseHandles, listHandles, settledAt } from "./handles.ts";
import { listDirectoriesAndFiles } from "./lists.ts";
import { createPermission, getPermission } from "./permissions.ts";
import { renameDirectory, renameFile } from "./rename.ts";
import { listShares } from "./share-facts.ts";
import {
  createShare,
  deleteShare,
  getShareAcl,
  getShareMetadata,
  getShareProperties,
  getShareStats,
  leaseShare,
  restoreShare,
  setShareAcl,
  setShareMetadata,
  setShareProperties,
} from "./shares.ts";

/** Undefined: refused by name. */
const handlers: { readonly [Name in FileOperationName]: FileHandler | undefined } = {
  ListShares: listShares,
  GetFileServiceProperties: (exchange) => getServiceProperties(exchange, "file"),
  SetFileServiceProperties: (exchange) => setServiceProperties(exchange, "file", analyticsUnsupported),
  GetUserDelegationKey: (exchange) => getUserDelegationKey(exchange, "file"),
  CreateShare: createShare,
  GetShareProperties: getShareProperties,
  DeleteShare: deleteShare,
  SetShareProperties: setShareProperties,
  GetShareMetadata: getShareMetadata,
  SetShareMetadata: setShareMetadata,
  GetShareACL: getShareAcl,
  SetShareACL: setShareAcl,
  GetShareStats: getShareStats,
  SnapshotShare: undefined,
  LeaseShare: leaseShare,
  RestoreShare: restoreShare,
  CreatePermission: createPermission,
  GetPermission: getPermission,
  ListDirectoriesAndFiles: listDirectoriesAndFiles,
  CreateDirectory: createDirectory,
  GetDirectoryProperties: getDirectoryProperties,
  DeleteDirectory: deleteDirectory,
  SetDirectoryProperties: setDirectoryProperties,
  GetDirectoryMetadata: getDirectoryMetadata,
  SetDirectoryMetadata: setDirectoryMetadata,
  RenameDirectory: renameDirectory,
  ListHandles: listHandles,
  ForceCloseHandles: forceCloseHandles,
  CreateHardLink: undefined,
  CreateSymbolicLink: undefined,
  GetSymbolicLink: undefined,
  RenameFile: renameFile,
  PutRangeFromURL: putRangeFromUrl,
  PutRange: putRange,
  ListRanges: listRanges,
  SetFileProperties: setFileProperties,
  GetFileMetadata: getFileMetadata,
  SetFileMetadata: setFileMetadata,
  LeaseFile: leaseFile,
  AbortCopyFile: abortCopyFile,
  CopyFile: copyFile,
  CreateFile: createFile,
  GetFile: getFile,
  GetFileProperties: getFileProperties,
  DeleteFile: deleteFile,
};

const intent = "x-ms-file-request-intent";

export const fileService = (hostSuffixes: readonly string[]): RestService => ({
  name: "file",
  serverName: "Stamp-File/1.0",
  hostSuffixes,
  reasonPhrase: reasonPhraseOf,
  resource(target, headers) {
    const resource = parseFileResource(target.resource, headers);
    if (!resource.ok) return resource;
    const { share, path } = resource.value;
    const signed: SignedResource =
      share === undefined
        ? { kind: "account" }
        : path.length === 0
          ? { kind: "share", share }
          : { kind: "file", share, path: path.join("/") };
    return parsed(signed);
  },
  async storedPolicies(objects, account, resource, limits) {
    if (resource.kind !== "share" && resource.kind !== "file") return parsed([]);
    const row = await objects.container(account, shareContainer(resource.share), limits);
    if (!row.ok) return row.error.code === "ContainerNotFound" ? parsed([]) : row;
    return parsed(signedIdentifiersFromWire(row.value.signedIdentifiers));
  },
  recognize(method, target, headers) {
    const resource = parseFileResource(target.resource, headers);
    if (!resource.ok) return resource;
    const { share } = resource.value;
    // One segment that is no name: %2F.
    if (share === undefined && /[^/]/.test(target.resource)) return rejected("InvalidUri");
    const name = share === undefined ? undefined : checkShareName(share);
    if (name && !name.ok) return name;
    const operation = recognizeFile(method, target, headers);
    if (!operation.ok) return operation;
    return parsed({
      name: operation.value,
      authorization: fileAuthorizationOf(operation.value),
      async serve(exchange) {
        const answer = await serve({ ...exchange, resource: resource.value }, operation.value);
        return answer.ok ? answer : { ok: false, error: fileError(answer.error) };
      },
    });
  },
  errorBody: (error, { requestId, nowMs }) => ({
    contentType: "application/xml",
    text: errorBody(error, requestId, formatIso(nowMs)),
  }),
});

/** A bearer has no rights of SMB: it says that it asks as a backup does, and rights of files are not looked at. */
function refusedBearer({ access, headers }: FileExchange): Answer | undefined {
  if (access.by !== "bearer") return undefined;
  const text = headers[intent];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: intent });
  return text.toLowerCase() === "backup" ? undefined : badHeader(intent, text, "backup is the one that there is.");
}

/** Operations without a body that make a file where one has gone. */
const makes: ReadonlySet<FileOperationName> = new Set(["CreateFile", "CopyFile"]);

/** Answers a request that has met a file marked for deletion: again, if the file waited for nobody and its handles did not know its name. */
async function whenRemoved(
  exchange: FileExchange,
  operation: FileOperationName,
  { handler, answer }: { readonly handler: FileHandler; readonly answer: Answer },
): Promise<Answer> {
  // A rename has two files, and has looked at both.
  if (operation === "RenameFile" || !(await settledAt(exchange, exchange.resource.path))) return answer;
  if (makes.has(operation)) return handler(exchange);
  const found = await belowRoot(exchange, "file");
  return found.ok ? answer : found;
}

async function serve(exchange: FileExchange, operation: FileOperationName): Promise<Answer> {
  const handler = handlers[operation];
  if (handler === undefined) return notImplemented(`${operation} of the Files service`);
  const answer = refusedBearer(exchange) ?? (await handler(exchange));
  return answer.ok || answer.error.code !== "DeletePending" ? answer : whenRemoved(exchange, operation, { handler, answer });
}
