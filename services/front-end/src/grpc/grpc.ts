/**
 * The same objects over gRPC (`stamp.v1.FrontEnd`), for gRPC tools. Each call carries `authorization: Bearer <token>`; what the service
 * would answer as an error is a gRPC error with the service's code in `x-ms-error-code`.
 */

import { checkBlobName, checkContainerName, type Parsed, parsed, type RestError, rejected } from "@stamp/azure-rest";
import { type Failed, type FailureCode, FailureError, type Outcome, ok, refused, unknownOutcome } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { type BlobPolicy, isShareContainer } from "@stamp/objects";
import type { CallContext, Handlers, World } from "@stamp/ports";
import type { Conditions, Container, FrontEnd, GetBlobRequest, ListedBlob, LocateBlobRequest, PutBlobRequest } from "@stamp/wire";
import { fromWire } from "@stamp/wire";
import { checkToken } from "../accounts/account-token.ts";
import type { Accounts } from "../accounts/accounts.ts";
import { blobPolicyOf } from "../accounts/blob-policy.ts";
import { underKey } from "../accounts/content-key.ts";
import { changesSomething, refuseAt, refuseOperation, unacknowledged } from "../geo/account-here.ts";
import { endOf, type LocatedBlob, type Objects } from "../objects/objects.ts";
import { checkLiteralName } from "../objects/older-names.ts";
import type { CallLimits } from "../routing/router.ts";
import type { AuthorizedCall } from "./authorized-call.ts";
import { limitsOf } from "./call-limits.ts";
import { deleteQueueMessage, getQueueMessages, putQueueMessage } from "./grpc-messages.ts";
import { tableHandlers } from "./grpc-tables.ts";
import { locateBlob } from "./locate-blob.ts";
import { readDiverged } from "./read-diverged.ts";

const codes: Readonly<Record<number, FailureCode>> = {
  304: "failedPrecondition",
  401: "unauthenticated",
  403: "permissionDenied",
  404: "notFound",
  409: "alreadyExists",
  412: "failedPrecondition",
  416: "outOfRange",
  501: "unimplemented",
  503: "unavailable",
};

function failedBy(error: RestError): Failed {
  const details = { "x-ms-error-code": error.code };
  if (error.status === 500) return unknownOutcome("internal", "conflict", error.message, details);
  return refused(codes[error.status] ?? "invalidArgument", "conflict", error.message, details);
}

export const outcomeOf = <T>(result: Parsed<T>): Outcome<T> => (result.ok ? ok(result.value) : failedBy(result.error));

export interface GrpcDoorParts {
  readonly world: World;
  readonly objects: Objects;
  readonly accounts: Accounts;
}

export function frontEndHandlers(parts: GrpcDoorParts): Handlers<typeof FrontEnd> {
  const { objects } = parts;
  const call: AuthorizedCall = (operation, work) => {
    return async (request, context) => {
      const limits = limitsOf(context);
      const policy = await allowed(parts, request.account, operation, context, limits);
      if (!policy.ok) return policy;
      const done = await work(request, { ...limits, policy: policy.value });
      const lost = done.ok && changesSomething(operation) ? await unacknowledged(parts.accounts, request.account, limits) : undefined;
      return lost ? unknownOutcome("unavailable", "conflict", lost.message, { "x-ms-error-code": lost.code }) : outcomeOf(done);
    };
  };
  const done = <T>(result: Parsed<T>): Parsed<Record<string, never>> => (result.ok ? parsed({}) : result);
  return {
    createContainer: call("CreateContainer", async ({ account, container, metadata }, limits) => {
      const name = checkContainerName(container);
      if (!name.ok) return name;
      return objects.execute({ case: "createContainer", value: { account, container, metadata } }, "container", limits);
    }),
    deleteContainer: call("DeleteContainer", async ({ account, container, conditions }, limits) => {
      if (isShareContainer(container)) return rejected("ContainerNotFound");
      const value = conditions ? { account, container, conditions } : { account, container };
      return done(await objects.deleteContainer(value, () => limits));
    }),
    listContainers: call("ListContainers", ({ account, prefix, marker, maxResults }, limits) =>
      objects.listContainers({ account, prefix, marker, maxResults: pageSize(maxResults) }, limits),
    ),
    putBlob: (requests, context) => putBlob(parts, requests, context),
    getBlob: (request, context) => getBlob(parts, request, context),
    getBlobProperties: call("GetBlobProperties", async (request, limits) => {
      const name = await locate(objects, request, limits);
      if (!name.ok) return name;
      const value = { name: name.value, withoutContent: true, ...(request.conditions ? { conditions: request.conditions } : {}) };
      const blob = await objects.execute({ case: "getBlob", value }, "blob", limits);
      const readable = blob.ok ? await objects.parts.scopes.ofBlob(request.account, blob.value, undefined, limits) : blob;
      return readable.ok ? blob : readable;
    }),
    listBlobs: call("ListBlobs", async ({ account, container, prefix, delimiter, marker, maxResults }, limits) => {
      const row = await containerNamed(objects, { account, container }, limits);
      if (!row.ok) return row;
      const question = { prefix, delimiter, marker, maxResults: pageSize(maxResults), includeMetadata: true, includeUncommitted: false };
      const page = await objects.listBlobs(account, row.value, question, limits);
      return page.ok ? parsed({ ...page.value, entries: page.value.entries.map(withoutHiddenMetadata) }) : page;
    }),
    ...tableHandlers(call, objects.tables),
    deleteBlob: call("DeleteBlob", async (request, limits) => {
      const name = await locate(objects, request, limits);
      if (!name.ok) return name;
      const value = request.conditions ? { name: name.value, conditions: request.conditions } : { name: name.value };
      return done(await objects.deleteBlob(value, () => limits));
    }),
    readDiverged: (request, context) => readDiverged(objects, request, context),
    locateBlob: (request, context) => whereIs(parts, request, context),
    putQueueMessage: call("PutMessage", (request, limits) => putQueueMessage(objects.parts.queues, request, limits)),
    getQueueMessages: call("GetMessages", (request, limits) => getQueueMessages(objects.parts.queues, request, limits)),
    deleteQueueMessage: call("DeleteMessage", async (request, limits) =>
      done(await deleteQueueMessage(objects.parts.queues, request, limits)),
    ),
  };
}

/** Locates the bytes of a blob for an operator, who brings no token of the account. */
async function whereIs(parts: GrpcDoorParts, request: LocateBlobRequest, context: CallContext) {
  const { accounts, objects } = parts;
  const limits = limitsOf(context);
  const found = await accounts.find(request.account, limits);
  if (!found) return refused("deadlineExceeded", "timeout", "the account was not read in time");
  if (!found.ok) return found;
  if (found.value.kind !== "known") return refused("notFound", "badRequest", `there is no account ${request.account}`);
  if (blobPolicyOf(found.value.serviceProperties.blob).hierarchical) return filesOfTree("LocateBlob");
  const name = await locate(objects, request, limits);
  return name.ok ? outcomeOf(await locateBlob(objects, name.value, request.startBytes, limits)) : failedBy(name.error);
}

async function putBlob(parts: GrpcDoorParts, requests: AsyncIterable<PutBlobRequest>, context: CallContext) {
  const { objects } = parts;
  const iterator = requests[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return refused("invalidArgument", "badRequest", "no message: the first one names the blob");
  const head: PutBlobRequest = first.value;
  const limits = limitsOf(context);
  const policy = await allowed(parts, head.account, "PutBlob", context, limits);
  if (!policy.ok) return policy;
  const blobName = checkBlobName(head.blob, true);
  if (!blobName.ok) return failedBy(blobName.error);
  const row = await containerNamed(objects, head, limits);
  if (!row.ok) return failedBy(row.error);
  const name = await locateIn(objects, row.value, head, limits);
  if (!name.ok) return failedBy(name.error);
  const { defaultEncryptionScope: scope } = row.value;
  const key = scope === "" ? parsed(undefined) : await objects.parts.scopes.key(head.account, scope, limits);
  if (!key.ok) return failedBy(key.error);
  const wants = { md5: true, crc64: false };
  // The length of a gRPC upload is known only at its end. So its bytes never go inside of the row, and the limit is that of Put Blob.
  const received = await objects.receive(name.value, payloads(head, iterator), {
    contentLengthBytes: undefined,
    wants,
    key: key.value,
    from: grpcClients,
    signal: context.signal,
  });
  if (!received.ok) return failedBy(received.error);
  const { inline, places, md5 } = received.value;
  const { contentType, contentEncoding, contentLanguage, cacheControl, contentDisposition } = head.headers ?? noHeaders;
  const given = {
    contentType: contentType || "application/octet-stream",
    contentEncoding,
    contentLanguage,
    cacheControl,
    contentDisposition,
  };
  const headers = { ...given, contentMd5: md5 ?? new Uint8Array(0) };
  const value = { name: name.value, metadata: head.metadata, headers, body: { inline, places: [...places] } };
  const conditions = key.value ? { ...head.conditions, ...underKey(key.value, {}) } : head.conditions;
  const kind = { case: "putBlob", value: conditions ? { ...value, conditions } : value } as const;
  const done = await objects.execute(kind, "blob", { ...limits, policy: policy.value });
  const lost = done.ok ? await unacknowledged(parts.accounts, head.account, limits) : undefined;
  return lost ? unknownOutcome("unavailable", "conflict", lost.message, { "x-ms-error-code": lost.code }) : outcomeOf(done);
}

async function* getBlob(parts: GrpcDoorParts, request: GetBlobRequest, context: CallContext) {
  const { objects } = parts;
  const limits = limitsOf(context);
  const who = await allowed(parts, request.account, "GetBlob", context, limits);
  if (!who.ok) throw new FailureError(who.failure);
  const found = await findBlob(objects, request, limits);
  if (!found.ok) throw new FailureError(failedBy(found.error).failure);
  const { name, blob, content } = found.value;
  yield { blob };
  const endBytes = endOf(blob, request.endBytes === undefined ? undefined : fromWire(request.endBytes));
  if (fromWire(content.startBytes) === endBytes) return;
  const download = await objects.download(name, blob, content, endBytes, { to: grpcClients, signal: context.signal });
  if (!download.ok) throw new FailureError(failedBy(download.error).failure);
  for await (const payload of download.value) yield { payload };
}

/** Returns the policy of the account, if the call has a token of it. Blobs of a hierarchical account are files of a tree, which this door does not know. */
async function allowed(
  parts: GrpcDoorParts,
  account: string,
  operation: string,
  context: CallContext,
  limits: CallLimits,
): Promise<Outcome<BlobPolicy>> {
  const policy = await checkToken(parts, account, context, limits, servedHere(account, operation));
  if (!policy.ok || policy.value.hierarchical !== true || !/Blobs?(Properties)?$/.test(operation)) return policy;
  return filesOfTree(operation);
}

const filesOfTree = (operation: string): Failed =>
  refused("unimplemented", "badRequest", `${operation} in an account with a hierarchical namespace: use its dfs endpoint`);

/** Returns the policy of the account for files of shares, if the call has a token of it. A share is a tree in every account. */
export async function allowedFiles(
  parts: GrpcDoorParts,
  account: string,
  operation: string,
  context: CallContext,
  limits: CallLimits,
): Promise<Outcome<BlobPolicy>> {
  const policy = await checkToken(parts, account, context, limits, servedHere(account, operation));
  return policy.ok ? ok({ ...policy.value, versioning: false, deleteRetentionDays: 0, hierarchical: true }) : policy;
}

/** True if a gRPC call for the account is served here. Calls name an account by its own name only. */
const servedHere = (account: string, operation: string) => (role: AccountRole | undefined) =>
  refuseAt({ account }, role) ?? refuseOperation({ account }, role, operation);

/** Address of all gRPC clients: calls do not tell one of their own. */
const grpcClients = "grpc";

const noHeaders = { contentType: "", contentEncoding: "", contentLanguage: "", cacheControl: "", contentDisposition: "" };

const pageSize = (asked: number): number => (asked < 1 ? 5000 : Math.min(asked, 5000));

interface NamesBlob {
  readonly account: string;
  readonly container: string;
  readonly blob: string;
  readonly conditions?: Conditions | undefined;
}

/** Finds a container of the Blob service: a share is none (docs/design/files.md). */
const containerNamed = (
  objects: Objects,
  { account, container }: { readonly account: string; readonly container: string },
  limits: CallLimits,
): Promise<Parsed<Container>> =>
  isShareContainer(container) ? Promise.resolve(rejected("ContainerNotFound")) : objects.container(account, container, limits);

async function locate(objects: Objects, request: NamesBlob, limits: CallLimits): Promise<Parsed<LocatedBlob>> {
  const row = await containerNamed(objects, request, limits);
  return row.ok ? locateIn(objects, row.value, request, limits) : row;
}

/**
 * Locates the blob of a call. Refuses conditions that name a key: over HTTPS the front-end has seen the customer's key by then, but a call
 * brings no key, and its digest is in every list. The scope of a call's content is that of its container.
 */
async function locateIn(objects: Objects, row: Container, request: NamesBlob, limits: CallLimits): Promise<Parsed<LocatedBlob>> {
  const { account, container, blob, conditions } = request;
  if (conditions?.encryptionKeySha256 !== undefined) {
    return rejected("InvalidInput", { Reason: "A call brings no customer-provided key: encryption_key_sha256 is not for clients." });
  }
  if (conditions?.encryptionScope !== undefined || conditions?.encryptionAsFound) {
    return rejected("InvalidInput", { Reason: "A call names no encryption scope: encryption_scope is not for clients." });
  }
  const name = await checkLiteralName(objects, account, row, blob, limits);
  return name.ok ? parsed(objects.located({ account, container, blob }, row)) : name;
}

/** Returns the entry of a list without metadata if the blob is under a customer's key: whoever lists brings no key. */
function withoutHiddenMetadata(entry: ListedBlob): ListedBlob {
  const { kind } = entry;
  if (kind.case !== "blob" || kind.value.encryptionKeySha256 === undefined) return entry;
  return { ...entry, kind: { case: "blob", value: { ...kind.value, metadata: {} } } };
}

async function findBlob(objects: Objects, request: GetBlobRequest, limits: CallLimits) {
  const name = await locate(objects, request, limits);
  if (!name.ok) return name;
  const value = {
    name: name.value,
    ...(request.conditions ? { conditions: request.conditions } : {}),
    ...(request.startBytes === undefined ? {} : { startBytes: request.startBytes }),
    ...(request.endBytes === undefined ? {} : { endBytes: request.endBytes }),
  };
  const answer = await objects.execute({ case: "getBlob", value }, "content", limits);
  if (!answer.ok) return answer;
  const { blob } = answer.value;
  if (!blob) throw new FailureError({ code: "internal", reason: "bug", message: "content without its blob", applied: "no" });
  return parsed({ name: name.value, blob, content: answer.value });
}

async function* payloads(first: PutBlobRequest, rest: AsyncIterator<PutBlobRequest>): AsyncGenerator<Uint8Array, void, void> {
  if (first.payload.length > 0) yield first.payload;
  for (let step = await rest.next(); !step.done; step = await rest.next()) if (step.value.payload.length > 0) yield step.value.payload;
}
