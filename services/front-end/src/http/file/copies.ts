/**
 * Copies of files of this stamp: Copy File, which goes on in the background as a copy of a blob does and shares what is stored where it can,
 * Abort Copy, and Put Range From URL. A source has a right of its own: the SAS in its URL, `x-ms-copy-source-authorization`, or for Copy File
 * the key that signed the request, where both are in one account.
 */
import {
  allParsed,
  badHeader,
  etagAndTime,
  notImplemented,
  type Parsed,
  parseBoolean,
  parseCopySource,
  parsed,
  parseFileResource,
  parseKeepsWriteTime,
  parseMetadata,
  parseSourceDigests,
  parseSourceRange,
  parseTarget,
  parseWriteRange,
  putRangeBytesMax,
  queryValue,
  rejected,
} from "@stamp/azure-rest";
import { clientEntriesOf } from "@stamp/objects";
import { uuid, within } from "@stamp/ports";
import { resolve } from "@stamp/tree";
import { type Blob, type Container, fromWire, toWire } from "@stamp/wire";
import { compareDigests } from "../../content/content-digests.ts";
import type { LocatedBlob } from "../../objects/objects.ts";
import { endOf, isSameBlob } from "../../objects/objects.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { isHandleRefusal } from "../../trees/handles.ts";
import { lengthWithin } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { putBytes, writtenHeaders } from "./data.ts";
import { makeOrReplace } from "./entries.ts";
import { belowRoot, type FileExchange, headOf, leaseOf, shareRow } from "./exchange.ts";
import { copyEntries, isReadOnly } from "./smb.ts";

/** A copy that is done within this time is answered as done. */
const answersWithinMs = 2_000;
const reading: ReadonlySet<string> = new Set(["GetFile"]);

interface Source {
  readonly name: LocatedBlob;
  readonly blob: Blob;
  /** URL as it may be shown. */
  readonly shown: string;
}

/** Finds the file that the URL names. `byKey`: the key of the request is good for a source in its account. */
async function sourceOf(exchange: FileExchange, byKey: boolean): Promise<Parsed<Source>> {
  const url = parseCopySource(exchange.headers);
  if (!url.ok) return url;
  const { host, shown, target: path } = url.value;
  const target = parseTarget(path, host, { hostSuffixes: exchange.hostSuffixes });
  const isHere =
    target.ok && !target.value.secondary && (target.value.addressing === "host" || host === exchange.headers.host?.toLowerCase());
  if (!target.ok || !isHere) return notImplemented("Copies from a source that is no file of this stamp");
  const bearer = exchange.headers["x-ms-copy-source-authorization"];
  const own = byKey && exchange.access.by === "key" && target.value.account === exchange.target.account && bearer === undefined;
  const dots = exchange.headers["x-ms-source-allow-trailing-dot"];
  const named = dots === undefined ? {} : { "x-ms-allow-trailing-dot": dots };
  const resource = parseFileResource(target.value.resource, named);
  if (!resource.ok) return resource;
  let asker: FileExchange = { ...exchange, target: target.value, headers: { host, ...named }, resource: resource.value };
  if (!own || target.value.query.has("sig")) {
    const headers = { host, ...named, ...(bearer === undefined ? {} : { authorization: bearer, "x-ms-file-request-intent": "backup" }) };
    const admitted = await exchange.admit({ method: "GET", target: path, headers }, reading);
    if (!admitted.ok) return unverified(admitted.error.message, admitted.error.status);
    asker = { ...admitted.value, resource: resource.value };
  }
  const found = await belowRoot(asker, "file");
  if (!found.ok) return unverified(found.error.message, found.error.status);
  const head = await headOf(asker, found.value.name);
  if (head.ok) return parsed({ name: found.value.name, blob: head.value, shown });
  return isHandleRefusal(head.error.code) ? head : unverified(head.error.message, head.error.status);
}

const unverified = (message: string, status: number): ReturnType<typeof rejected> =>
  rejected("CannotVerifyCopySource", {}, { message, status });

export async function copyFile(exchange: FileExchange): Promise<Answer> {
  const { headers, objects, request } = exchange;
  const asked = allParsed({
    lease: leaseOf(exchange),
    metadata: parseMetadata(headers, request.rawHeaders),
    overReadOnly: parseBoolean(headers, "x-ms-file-copy-ignore-readonly"),
  });
  if (!asked.ok) return asked;
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const source = await sourceOf(exchange, true);
  if (!source.ok) return source;
  if (objects.copies.isFull) return rejected("ServerBusy", {}, { message: "Too many copies wait in this front-end." });
  const { blob, name: from } = source.value;
  const entries = await copyEntries(exchange, row.value, blob, from.container === row.value.name);
  if (!entries.ok) return entries;
  const readable = await objects.execute(
    { case: "readParts", value: { name: from, conditions: {}, first: 0n } },
    "copyParts",
    exchange.limits(),
  );
  // Whoever holds the source is asked before the target is touched: a copy begins by removing what is there.
  if (!readable.ok) return isHandleRefusal(readable.error.code) ? readable : unverified(readable.error.message, readable.error.status);
  const given = Object.keys(asked.value.metadata).length > 0;
  const metadata = {
    ...(given ? asked.value.metadata : clientEntriesOf(blob.metadata)),
    ...entries.value,
  };
  const { lease, overReadOnly } = asked.value;
  const to = await destinationOf(exchange, row.value, metadata, { leaseId: lease.leaseId, overReadOnly });
  if (!to.ok) return to;
  // The copy would begin by removing what it reads.
  if (isSameBlob(to.value, from)) return rejected("InvalidInput", { Reason: "A file can't be copied onto itself." });
  return startCopy(exchange, to.value, source.value, { metadata, leaseId: lease.leaseId });
}

/** The file that the path names: made if it is not there, so that the copy has a name. */
async function destinationOf(
  exchange: FileExchange,
  row: Container,
  metadata: Record<string, string>,
  { leaseId, overReadOnly }: { readonly leaseId: string | undefined; readonly overReadOnly: boolean },
): Promise<Parsed<LocatedBlob>> {
  if (exchange.resource.path.length === 0) return rejected("ResourceTypeMismatch");
  const tree = { account: exchange.target.account, filesystem: row.name, incarnation: fromWire(row.incarnation) };
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const there = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, exchange.resource.path), exchange.limits());
    if (!there.ok) {
      const made = await makeOrReplace(exchange, row, "file", { headers: undefined, metadata, lengthBytes: 0 }, leaseId);
      if (made !== "again" && !made.ok) return made;
    }
    if (there.ok && there.value.at(-1)?.held.kind !== "file") return rejected("ResourceTypeMismatch");
    const found = await belowRoot(exchange, "file");
    if (found.ok) {
      const head = there.ok ? await headOf(exchange, found.value.name) : undefined;
      if (head !== undefined && !exchange.access.may("w")) return rejected("AuthorizationPermissionMismatch");
      if (head?.ok && isReadOnly(head.value) && !overReadOnly) return rejected("ReadOnlyAttribute");
      return parsed(found.value.name);
    }
    if (found.error.code !== "ResourceNotFound") return found;
  }
  return rejected("ServerBusy");
}
const attemptsMax = 16;

async function startCopy(
  exchange: FileExchange,
  to: LocatedBlob,
  { name: from, blob, shown }: Source,
  { metadata, leaseId }: { readonly metadata: Record<string, string>; readonly leaseId: string | undefined },
): Promise<Answer> {
  const { copies, parts } = exchange.objects;
  const copyId = uuid(parts.world.random);
  const totalBytes = blob.contentLengthBytes;
  const work = { copier: copies.copier, fromEtag: blob.etag, from };
  const value = {
    name: to,
    conditions: leaseId === undefined ? {} : { leaseId },
    copy: { copyId, source: shown, status: "pending", copiedBytes: 0n, totalBytes, work },
    ...(blob.headers ? { headers: blob.headers } : {}),
    metadata,
    blobType: "PageBlob",
    pageBlobBytes: totalBytes,
    sequenceNumber: 0n,
    appendBlockCount: 0,
    sealed: false,
  };
  const started = await exchange.objects.execute({ case: "startCopy", value }, "blob", exchange.limits());
  if (!started.ok) return started;
  const done = copies.begin({ to, copyId, from: { name: from, etag: blob.etag }, position: 0n, scope: undefined });
  await within(parts.world.clock, answersWithinMs, done);
  const now = await headOf(exchange, to);
  const held = now.ok && now.value.copy?.copyId === copyId ? now.value : started.value;
  const status = { "x-ms-copy-id": copyId, "x-ms-copy-status": held.copy?.status ?? "pending" };
  return respond(202, { ...etagAndTime(exchange.version, blobOf(held)), ...status });
}

export async function abortCopyFile(exchange: FileExchange): Promise<Answer> {
  const action = exchange.headers["x-ms-copy-action"];
  if (action === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-copy-action" });
  if (action.toLowerCase() !== "abort") return badHeader("x-ms-copy-action", action);
  const copyId = queryValue(exchange.target.query, "copyid");
  if (copyId === undefined) return rejected("MissingRequiredQueryParameter", { QueryParameterName: "copyid" });
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const value = { name: found.value.name, conditions: lease.value, copyId };
  const aborted = await exchange.objects.execute({ case: "abortCopy", value }, "done", exchange.limits());
  return aborted.ok ? respond(204) : aborted;
}

export async function putRangeFromUrl(exchange: FileExchange): Promise<Answer> {
  const { headers, objects, request } = exchange;
  const asked = allParsed({
    lease: leaseOf(exchange),
    range: parseWriteRange(headers),
    from: parseSourceRange(headers),
    digests: parseSourceDigests(headers),
    length: lengthWithin(exchange, 0),
    keepsTime: parseKeepsWriteTime(headers),
  });
  if (!asked.ok) return asked;
  const { lease, range, from, digests } = asked.value;
  if (headers["x-ms-write"]?.toLowerCase() !== "update") return badHeader("x-ms-write", headers["x-ms-write"] ?? "", "update.");
  if (from === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-source-range" });
  const lengthBytes = range.endBytes - range.startBytes;
  if (lengthBytes > putRangeBytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(putRangeBytesMax) });
  if ((from.endBytes ?? 0) - from.startBytes !== lengthBytes) {
    return badHeader("x-ms-source-range", headers["x-ms-source-range"] ?? "", "It is as long as the range.");
  }
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const source = await sourceOf(exchange, false);
  if (!source.ok) return source;
  const ends = { startBytes: toWire(from.startBytes), endBytes: toWire(from.startBytes + lengthBytes) };
  const value = { name: source.value.name, conditions: {}, ...ends };
  const read = await objects.execute({ case: "getBlob", value }, "content", exchange.limits());
  if (!read.ok) return read;
  const blob = read.value.blob as Blob;
  const endBytes = endOf(blob, from.startBytes + lengthBytes);
  if (endBytes - from.startBytes !== lengthBytes) return rejected("InvalidRange");
  const download = await objects.download(source.value.name, blob, read.value, endBytes, {
    signal: request.signal,
    cause: exchange.cause,
  });
  if (!download.ok) return download;
  const wants = { md5: digests.md5 !== undefined, crc64: true };
  const options = { contentLengthBytes: lengthBytes, wants, isPages: true, signal: request.signal };
  const received = await objects.receive(found.value.name, download.value, options);
  if (!received.ok) return received;
  const compared = compareDigests(digests, received.value);
  if (!compared.ok) return compared;
  const body = { inline: received.value.inline, places: [...received.value.places] };
  const put = await putBytes(exchange, found.value.name, range, body, lease);
  return put.ok ? respond(201, writtenHeaders(exchange, put.value)) : put;
}
