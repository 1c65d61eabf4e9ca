/**
 * Data Lake Storage. Its door serves the Blob service's requests on the same files, too: clients that know one endpoint ask there for both.
 * In an account without a hierarchical namespace a path is a blob (flat/paths.ts).
 */
import {
  asksForXml,
  canonicalDirectory,
  checkDataLakeNames,
  type DataLakeOperationName,
  type DataLakeRequest,
  dataLakeAuthorizationOf,
  dataLakeError,
  dataLakeErrorJson,
  errorBody,
  formatIso,
  type HttpHeaders,
  isDataLakeRequest,
  isPathOperation,
  newestVersion,
  notImplemented,
  type Parsed,
  parseDataLake,
  parseDataLakeResource,
  parsed,
  queryValue,
  rejected,
  type Target,
} from "@stamp/azure-rest";
import { isHierarchical } from "../blob/exchange.ts";
import { blobService } from "../blob/service.ts";
import type { Answer } from "../exchange.ts";
import type { RecognizedOperation, RestService } from "../service.ts";
import { setAccessControl } from "./access-control.ts";
import { setAccessControlRecursively } from "./access-recursively.ts";
import { appendData, flushData, setPathProperties } from "./data.ts";
import { coversOnePath, type DataLakeExchange, type DataLakeHandler, type OnPath } from "./exchange.ts";
import { createFilesystem, deleteFilesystem, getFilesystemProperties, listFilesystems, setFilesystemProperties } from "./filesystems.ts";
import { listFlatPaths } from "./flat/lists.ts";
import { createFlatDirectory, createFlatFile, deleteFlatPath, getFlatProperties } from "./flat/paths.ts";
import { admit, toJudge } from "./judge.ts";
import { checkAccess, getAccessControl, getPathProperties, getPathStatus, listPaths } from "./lists.ts";
import { createDirectory, createFile, deletePath, renamePath, withTarget } from "./paths.ts";

const handlers: { readonly [Name in DataLakeOperationName]?: DataLakeHandler<Name> } = {
  ListFilesystems: listFilesystems,
  CreateFilesystem: createFilesystem,
  SetFilesystemProperties: setFilesystemProperties,
  GetFilesystemProperties: getFilesystemProperties,
  DeleteFilesystem: deleteFilesystem,
  ListPaths: listPaths,
  CreateFile: createFile,
  CreateDirectory: createDirectory,
  RenamePath: renamePath,
  AppendData: appendData,
  FlushData: flushData,
  GetPathProperties: getPathProperties,
  GetPathStatus: getPathStatus,
  GetAccessControl: getAccessControl,
  CheckAccess: checkAccess,
  SetPathProperties: setPathProperties,
  SetAccessControl: setAccessControl,
  SetAccessControlRecursively: setAccessControlRecursively,
  DeletePath: deletePath,
};

const flatHandlers: typeof handlers = {
  ListFilesystems: listFilesystems,
  CreateFilesystem: createFilesystem,
  SetFilesystemProperties: setFilesystemProperties,
  GetFilesystemProperties: getFilesystemProperties,
  DeleteFilesystem: deleteFilesystem,
  ListPaths: listFlatPaths,
  CreateFile: createFlatFile,
  CreateDirectory: createFlatDirectory,
  AppendData: appendData,
  FlushData: flushData,
  GetPathProperties: getFlatProperties,
  GetPathStatus: getFlatProperties,
  SetPathProperties: setPathProperties,
  DeletePath: deleteFlatPath,
};

/** Operations on access control: clients tell by this refusal that an account is flat. */
const hierarchicalOnly: ReadonlySet<DataLakeOperationName> = new Set<DataLakeOperationName>([
  "GetAccessControl",
  "SetAccessControl",
  "SetAccessControlRecursively",
  "CheckAccess",
]);

export function dataLakeService(hostSuffixes: readonly string[]): RestService {
  const blobs = blobService(hostSuffixes);
  return {
    name: "blob",
    serverName: "Stamp-DataLake/1.0",
    hostSuffixes,
    resource: (target) => signedResource(blobs, target),
    storedPolicies: blobs.storedPolicies,
    recognize: (method, target, headers) => recognize(blobs, method, target, headers),
    errorBody(error, { requestId, nowMs, headers }) {
      if (asksForXml(headers)) return { contentType: "application/xml", text: errorBody(error, requestId, formatIso(nowMs)) };
      return { contentType: "application/json", text: dataLakeErrorJson(error, requestId, formatIso(nowMs)) };
    },
  };
}

/** Filesystem or root of a request that only this service has; a list may be of a directory, which a SAS may be for. Else as the Blob service. */
function signedResource(blobs: RestService, target: Target): ReturnType<RestService["resource"]> {
  const resource = parseDataLakeResource(target.resource);
  if (!resource.ok) return resource;
  const { filesystem: container, path = "" } = resource.value;
  const isOwn = container !== undefined && path === "" && isDataLakeRequest("GET", resource.value, target.query, {});
  if (!isOwn) return blobs.resource(target, {});
  const directory = queryValue(target.query, "directory");
  return parsed({ kind: "container", container, directory: directory === undefined ? undefined : canonicalDirectory(directory) });
}

function recognize(blobs: RestService, method: string, target: Target, headers: HttpHeaders): Parsed<RecognizedOperation> {
  const resource = parseDataLakeResource(target.resource);
  if (!resource.ok) return resource;
  if (!isDataLakeRequest(method, resource.value, target.query, headers)) return ofBlobs(blobs, method, target, headers);
  const names = checkDataLakeNames(resource.value);
  if (!names.ok) return names;
  const key = Object.keys(headers).find((name) => name.startsWith(customerKeys));
  if (key !== undefined) return notImplemented(`Keys of customers in Data Lake Storage (${key})`);
  const request = parseDataLake(method, resource.value, { query: target.query, headers, version: newestVersion });
  if (!request.ok) return request;
  const { operation } = request.value;
  return parsed({
    name: operation,
    authorization: dataLakeAuthorizationOf(operation),
    async serve(exchange) {
      const answer = await admitAndServe({ ...exchange, resource: resource.value, asked: request.value });
      return answer.ok ? answer : { ok: false, error: dataLakeError(answer.error) };
    },
  });
}

/** Where a rename leads is known before the caller is judged: it needs rights there. A signature for one path is for no path in it. */
async function admitAndServe(exchange: OnPath & { readonly asked: DataLakeRequest }): Promise<Answer> {
  if (!isHierarchical(exchange)) return serve(exchange);
  const { operation } = exchange.asked;
  const target = operation === "RenamePath" ? await withTarget(exchange as DataLakeExchange<"RenamePath">) : parsed(exchange);
  if (!target.ok) return target;
  const { asked, resource } = target.value;
  if (resource !== exchange.resource && coversOnePath(exchange)) return rejected("AuthorizationPermissionMismatch");
  const admitted = await admit(target.value, isPathOperation(operation) ? toJudge(operation, asked, resource.path) : undefined);
  return admitted.ok ? serve(admitted.value) : admitted;
}

const customerKeys = "x-ms-encryption-key";

function ofBlobs(blobs: RestService, method: string, target: Target, headers: HttpHeaders): Parsed<RecognizedOperation> {
  const operation = blobs.recognize(method, target, headers);
  if (!operation.ok) return operation;
  return parsed({
    ...operation.value,
    async serve(exchange) {
      const answer = await operation.value.serve(exchange);
      return answer.ok || asksForXml(headers) ? answer : { ok: false, error: dataLakeError(answer.error) };
    },
  });
}

function serve(exchange: OnPath & { readonly asked: DataLakeRequest }): Promise<Answer> {
  const { operation } = exchange.asked;
  const isFlat = !isHierarchical(exchange);
  if (isFlat && hierarchicalOnly.has(operation)) return Promise.resolve(rejected("HierarchicalNamespaceNotEnabled"));
  if (isFlat && operation === "RenamePath")
    return Promise.resolve(notImplemented("A rename in an account without a hierarchical namespace"));
  const handler = (isFlat ? flatHandlers : handlers)[operation] as ((exchange: OnPath) => Promise<Answer>) | undefined;
  return handler ? handler(exchange) : Promise.resolve(notImplemented(`${operation} of Data Lake Storage`));
}
