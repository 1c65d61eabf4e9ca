/**
 * Files and directories are made, removed and described. A path is made in this order: node and blob of its properties, under an id that
 * nobody knows; then the entry, by the tree. So nobody finds a path without properties. Both kinds are page blobs: a file of any length costs
 * what was written to it.
 */
import {
  allParsed,
  type ContentProperties,
  etagAndTime,
  metadataHeaders,
  type Parsed,
  parsed,
  parseFileContent,
  parseFileLength,
  parseMetadata,
  type ResponseHeaders,
  rejected,
} from "@stamp/azure-rest";
import { clientEntriesOf, type HeldKind } from "@stamp/objects";
import { create, remove, resolve } from "@stamp/tree";
import { type Blob, type Container, toWire } from "@stamp/wire";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { leased, leaseOf as leaseRequestOf } from "../blob/leases.ts";
import { type Answer, respond } from "../exchange.ts";
import { belowRoot, entryOf, type FileExchange, headOf, leaseOf, locatedOf, shareRow, treeNameOf } from "./exchange.ts";
import { besideHandles } from "./handles.ts";
import { refusedFile } from "./refusals.ts";
import { createdMsOf } from "./share-facts.ts";
import { changedEntries, isReadOnly, metadataEntries, newEntries, smbHeaders, smbOf } from "./smb.ts";

const encrypted = { "x-ms-request-server-encrypted": "true" } as const;
const noContent: ContentProperties = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: new Uint8Array(0),
  cacheControl: "",
  contentDisposition: "",
};
const empty = { inline: new Uint8Array(0), places: [] };
/** Number of attempts at a path of which others make and remove parts meanwhile. */
const attemptsMax = 16;

/** Returns the headers that answer a write of properties: ETag, times, and the properties of SMB. */
export const writtenEntry = (exchange: FileExchange, blob: Blob, id: string, parentId: string | undefined): ResponseHeaders => ({
  ...etagAndTime(exchange.version, blobOf(blob)),
  ...smbHeaders(smbOf(blob), id, parentId),
  ...encrypted,
});

export const createFile = (exchange: FileExchange): Promise<Answer> => createPath(exchange, "file");
export const createDirectory = (exchange: FileExchange): Promise<Answer> => createPath(exchange, "directory");

export interface NewBlob {
  /** Undefined: none. */
  readonly headers: ContentProperties | undefined;
  readonly metadata: Record<string, string>;
  readonly lengthBytes: number;
}

async function newBlobOf(exchange: FileExchange, row: Container, kind: HeldKind): Promise<Parsed<NewBlob>> {
  const { headers, request } = exchange;
  const asked = allParsed({
    metadata: parseMetadata(headers, request.rawHeaders),
    content: kind === "file" ? parseFileContent(headers) : parsed(undefined),
    length: kind === "file" ? parseFileLength(headers) : parsed(0),
  });
  if (!asked.ok) return asked;
  const { metadata, content, length } = asked.value;
  if (length === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-content-length" });
  const entries = await newEntries(exchange, row, kind === "directory");
  if (!entries.ok) return entries;
  return parsed({ headers: content ?? noContent, metadata: { ...metadata, ...entries.value }, lengthBytes: length });
}

async function createPath(exchange: FileExchange, kind: HeldKind): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  if (exchange.headers["x-ms-type"] !== undefined && exchange.headers["x-ms-type"] !== "file") return rejected("InvalidHeaderValue");
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  if (exchange.resource.path.length === 0) return rejected("ResourceAlreadyExists");
  const blob = await newBlobOf(exchange, row.value, kind);
  if (!blob.ok) return blob;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const made = await makeOrReplace(exchange, row.value, kind, blob.value, lease.value.leaseId);
    if (made !== "again") return made.ok ? respond(201, made.value) : made;
  }
  return rejected("ServerBusy");
}

/** Makes the path, or gives a file that is there new content. `again`: others made or removed it meanwhile. */
export async function makeOrReplace(
  exchange: FileExchange,
  row: Container,
  kind: HeldKind,
  { lengthBytes, headers = noContent, metadata }: NewBlob,
  leaseId: string | undefined,
): Promise<Parsed<ResponseHeaders> | "again"> {
  const { objects, resource } = exchange;
  const { trees } = objects.parts;
  const tree = treeNameOf(exchange, row);
  const found = await trees.run(tree, (context) => resolve(context, resource.path), exchange.limits());
  if (!found.ok && found.refusal !== "notFound") return refusedFile(found);
  const [parent, held] = found.ok ? [found.value.at(-2)?.held.id, found.value.at(-1)?.held] : [undefined, undefined];
  const put = { headers, metadata, body: empty, blobType: "PageBlob", pageBlobBytes: toWire(lengthBytes), sequenceNumber: 0n };
  if (held) {
    if (kind === "directory" || held.kind === "directory") return rejected("ResourceAlreadyExists");
    // A SAS with `c` and without `w` makes what is not there.
    if (!exchange.access.may("w")) return rejected("AuthorizationPermissionMismatch");
    const name = locatedOf(exchange, row, held.id);
    const there = await headOf(exchange, name);
    if (there.ok && isReadOnly(there.value)) return rejected("ReadOnlyAttribute");
    const conditions = leaseId === undefined ? {} : { leaseId };
    const replaced = await objects.execute({ case: "putBlob", value: { ...put, name, conditions } }, "blob", exchange.limits());
    // It was removed since: the path may hold something else by now, or nothing.
    if (!replaced.ok) return replaced.error.code === "BlobNotFound" ? "again" : replaced;
    return parsed(writtenEntry(exchange, replaced.value, held.id, parent));
  }
  if (leaseId !== undefined) return rejected("LeaseNotPresentWithBlobOperation");
  const id = trees.newId();
  const name = locatedOf(exchange, row, id);
  const made = await trees.step(tree, { kind: "make", at: { kind, id } }, exchange.limits());
  if (!made.ok) return rejected("OperationTimedOut");
  const first = await objects.execute({ case: "putBlob", value: { ...put, name, conditions: {} } }, "blob", exchange.limits());
  if (!first.ok) {
    await trees.discard(tree, { kind, id }, exchange.limits());
    return first;
  }
  const named = await trees.run(tree, (context) => create(context, resource.path, kind, { id }), exchange.limits());
  if (named.ok) return parsed(writtenEntry(exchange, first.value, id, await parentOf(exchange, tree)));
  // Whether somebody finds it is not known: then it stays.
  if (named.refusal !== "unknown") await trees.discard(tree, { kind, id }, exchange.limits());
  return named.refusal === "exists" ? "again" : refusedFile(named);
}

async function parentOf(exchange: FileExchange, tree: ReturnType<typeof treeNameOf>): Promise<string | undefined> {
  const above = exchange.resource.path.slice(0, -1);
  if (above.length === 0) return undefined;
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, above), exchange.limits());
  return found.ok ? found.value.at(-1)?.held.id : undefined;
}

export const deleteFile = (exchange: FileExchange): Promise<Answer> => deletePath(exchange, "file");
export const deleteDirectory = (exchange: FileExchange): Promise<Answer> => deletePath(exchange, "directory");

async function deletePath(exchange: FileExchange, kind: HeldKind): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const found = await belowRoot(exchange, kind);
  if (!found.ok) return found;
  if (kind === "file") {
    const head = await headOf(exchange, found.value.name);
    if (!head.ok && head.error.code === "BlobNotFound") return head;
    if (head.ok && isReadOnly(head.value)) return rejected("ReadOnlyAttribute");
  }
  const tree = treeNameOf(exchange, found.value.row);
  const { trees } = exchange.objects.parts;
  const { leaseId } = lease.value;
  const conditions = kind === "file" ? (leaseId === undefined ? {} : { leaseId }) : undefined;
  const options = { kind, recursive: false, conditions };
  const attempt = () => trees.run(tree, (context) => remove(context, exchange.resource.path, options), exchange.limits());
  const removed = await besideHandles(exchange, [exchange.resource.path], attempt);
  if (!removed.ok) return removed.refusal === "notFound" ? rejected("ResourceNotFound") : refusedFile(removed);
  return respond(202);
}

/** Properties of the root directory: those of its share. */
const rootHeaders = (exchange: FileExchange, row: Container): ResponseHeaders => {
  const times = { createdMs: toWire(createdMsOf(row)), lastModifiedMs: row.lastModifiedMs };
  const shown = { ...smbOf({ metadata: {}, ...times }), attributes: "Directory" };
  return {
    ...etagAndTime(exchange.version, { etag: row.etag, lastModifiedMs: Number(row.lastModifiedMs) }),
    ...smbHeaders(shown, undefined, undefined),
  };
};

export async function getDirectoryProperties(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const found = await entryOf(exchange, "directory");
  if (!found.ok) return found;
  if ("root" in found.value) return respond(200, { ...rootHeaders(exchange, found.value.row), "x-ms-server-encrypted": "true" });
  const { name, held, parentId } = found.value;
  const head = await headOf(exchange, name);
  if (!head.ok) return head;
  return respond(200, {
    ...etagAndTime(exchange.version, blobOf(head.value)),
    ...smbHeaders(smbOf(head.value), held.id, parentId),
    ...metadataHeaders(clientEntriesOf(head.value.metadata)),
    "x-ms-server-encrypted": "true",
  });
}

const getMetadata = async (exchange: FileExchange, kind: HeldKind): Promise<Answer> => {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const found = await entryOf(exchange, kind);
  if (!found.ok) return found;
  if ("root" in found.value) return respond(200, rootHeaders(exchange, found.value.row));
  const head = await headOf(exchange, found.value.name, lease.value);
  if (!head.ok) return head;
  return respond(200, { ...etagAndTime(exchange.version, blobOf(head.value)), ...metadataHeaders(clientEntriesOf(head.value.metadata)) });
};
export const getDirectoryMetadata = (exchange: FileExchange): Promise<Answer> => getMetadata(exchange, "directory");
export const getFileMetadata = (exchange: FileExchange): Promise<Answer> => getMetadata(exchange, "file");

const setMetadata = async (exchange: FileExchange, kind: HeldKind): Promise<Answer> => {
  const asked = allParsed({ lease: leaseOf(exchange), metadata: parseMetadata(exchange.headers, exchange.request.rawHeaders) });
  if (!asked.ok) return asked;
  const found = await belowRoot(exchange, kind);
  if (!found.ok) return found;
  const metadata = { ...asked.value.metadata, ...metadataEntries(exchange) };
  const value = { name: found.value.name, conditions: asked.value.lease, metadata };
  const set = await exchange.objects.execute({ case: "setBlobMetadata", value }, "blob", exchange.limits());
  return set.ok ? respond(200, { ...etagAndTime(exchange.version, blobOf(set.value)), ...encrypted }) : set;
};
export const setDirectoryMetadata = (exchange: FileExchange): Promise<Answer> => setMetadata(exchange, "directory");
export const setFileMetadata = (exchange: FileExchange): Promise<Answer> => setMetadata(exchange, "file");

const setProperties = async (exchange: FileExchange, kind: HeldKind): Promise<Answer> => {
  const isFile = kind === "file";
  const asked = allParsed({
    lease: leaseOf(exchange),
    content: isFile ? parseFileContent(exchange.headers) : parsed(undefined),
    length: isFile ? parseFileLength(exchange.headers) : parsed(undefined),
  });
  if (!asked.ok) return asked;
  const found = await belowRoot(exchange, kind);
  if (!found.ok) return found;
  const entries = await changedEntries(exchange, found.value.row, !isFile);
  if (!entries.ok) return entries;
  const { content, length, lease } = asked.value;
  const value = {
    name: found.value.name,
    conditions: lease,
    // Headers that the request leaves out are cleared.
    ...(isFile ? { headers: content ?? noContent } : {}),
    ...(length === undefined ? {} : { contentLengthBytes: toWire(length) }),
    sequenceNumber: 0n,
    setMetadata: entries.value,
  };
  const limits = exchange.limits();
  for (;;) {
    const set = await exchange.objects.execute({ case: "setPageBlobProperties", value }, "cleared", limits);
    if (!set.ok) return set;
    const { blob, nextBytes } = set.value;
    if (nextBytes > 0n) continue;
    return respond(200, writtenEntry(exchange, blob as Blob, found.value.held.id, found.value.parentId));
  }
};
export const setDirectoryProperties = (exchange: FileExchange): Promise<Answer> => setProperties(exchange, "directory");
export const setFileProperties = (exchange: FileExchange): Promise<Answer> => setProperties(exchange, "file");

export async function leaseFile(exchange: FileExchange): Promise<Answer> {
  const asked = leaseRequestOf(exchange);
  if (!asked.ok) return asked;
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const value = { ...asked.value.init, name: found.value.name };
  const result = await exchange.objects.execute({ case: "leaseBlob", value }, "leased", exchange.limits());
  return result.ok ? leased(exchange, asked.value.asked, result.value) : result;
}
