/**
 * The source of a request that copies. A blob of this stamp is read inside, without HTTP: the URL's account is one of ours, in the host or,
 * at the address that the request itself came to, in the path. The source has a right of its own: the SAS in the URL,
 * `x-ms-copy-source-authorization`, or that it is public. Only Copy Blob takes the key that signed the request, where both blobs are in one
 * account; Copy Blob From URL and Put … From URL do not.
 *
 * A URL of somebody else is fetched only when the operator allows its host: a stamp that asks any URL for anybody is a way into networks that
 * only it can reach.
 */
import {
  type BlobOperationName,
  type ByteRange,
  badHeader,
  type CopySourceUrl,
  type CustomerKey,
  checkNames,
  type HttpHeaders,
  type Parsed,
  parseBlobResource,
  parseCopySource,
  parsed,
  parseSourceConditions,
  parseTarget,
  type RestError,
  rejected,
  restError,
  sourceRequestHeaders,
  type Target,
  toldBySource,
  withoutSlashes,
} from "@stamp/azure-rest";
import { type Blob, type BlobContent, type CopyParts, fromWire, toWire } from "@stamp/wire";
import { underKey } from "../../../accounts/content-key.ts";
import type { ForeignLimits, ForeignSource } from "../../../copy/foreign-sources.ts";
import type { LocatedBlob } from "../../../objects/objects.ts";
import { targetAsNamed } from "../../../objects/older-names.ts";
import { conditionsToWire, type WireConditions } from "../../../objects/wire-conditions.ts";
import { admit } from "../../dfs/judge.ts";
import type { Exchange } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";

export type CopySource = SourceHere | SourceElsewhere;

interface SourceHere {
  readonly kind: "here";
  readonly name: LocatedBlob;
  /** Conditions on the source (`x-ms-source-if-*`). */
  readonly conditions: WireConditions;
  /** URL of the source, without its secrets. */
  readonly shown: string;
}

interface SourceElsewhere {
  readonly kind: "elsewhere";
  readonly source: ForeignSource;
  /** Headers of all requests to the source. */
  readonly headers: HttpHeaders;
  readonly shown: string;
}

const reading: ReadonlySet<string> = new Set<BlobOperationName>(["GetBlob"]);
const readingTags: ReadonlySet<string> = new Set<BlobOperationName>(["GetBlobTags"]);

/** True if the copy gets the tags of its source. */
export function copiesTags(headers: HttpHeaders): Parsed<boolean> {
  const name = "x-ms-copy-source-tag-option";
  const option = headers[name]?.toUpperCase() ?? "REPLACE";
  if (option !== "COPY" && option !== "REPLACE") return badHeader(name, headers[name] ?? "");
  if (option === "COPY" && headers["x-ms-tags"] !== undefined) return badHeader(name, "COPY", "The request has tags of its own.");
  return parsed(option === "COPY");
}

export async function sourceOf(exchange: BlobExchange): Promise<Parsed<CopySource>> {
  const url = parseCopySource(exchange.headers);
  if (!url.ok) return url;
  const conditions = parseSourceConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const { host, shown } = url.value;
  const target = parseTarget(url.value.target, host, { hostSuffixes: exchange.hostSuffixes });
  if (
    !target.ok ||
    target.value.secondary ||
    (target.value.addressing !== "host" && host !== (exchange.headers.host ?? "").toLowerCase())
  ) {
    const source = exchange.objects.parts.foreignSources.locate(url.value);
    const secret = exchange.sourceKey ? "x-ms-source-encryption-key" : "x-ms-copy-source-authorization";
    if (!url.value.secure && exchange.headers[secret] !== undefined) return badHeader(secret, "", "It is sent on over HTTPS only.");
    return source.ok ? parsed({ kind: "elsewhere", source: source.value, headers: sourceRequestHeaders(exchange.headers), shown }) : source;
  }
  const source = await sourceExchange(exchange, url.value, target.value);
  if (!source.ok) return { ok: false, error: unverified(exchange, source.error) };
  const judged = await admittedByLists(source.value);
  if (!judged.ok) return { ok: false, error: unverified(exchange, judged.error) };
  const name = await blobOfRequest(judged.value);
  if (!name.ok) return { ok: false, error: unverified(exchange, source.value.anonymous ? challenge(exchange, name.error) : name.error) };
  return parsed({ kind: "here", name: name.value, conditions: conditionsToWire(conditions.value), shown });
}

/** Returns the source as lists of access control let the caller read it, in an account with a hierarchical namespace. */
function admittedByLists(source: BlobExchange): Promise<Parsed<BlobExchange>> {
  const { container: filesystem, blob = "" } = source.target;
  const path = withoutSlashes(blob);
  return admit({ ...source, resource: { filesystem, path } }, { operation: "ReadPath", paths: [path] });
}

/** First version of the service that asks whoever reads without a name to authenticate. */
const challengedSince = "2019-12-12";

/** Returns the answer to a read of a private source without a name. To Copy Blob it stays what everybody is told, and to older versions. */
const challenge = ({ operation, version }: BlobExchange, error: RestError): RestError =>
  error.status === 404 && operation !== "CopyBlob" && version >= challengedSince ? restError("NoAuthenticationInformation") : error;

/** Returns the source as a request of its own, if it is let in. */
async function sourceExchange(exchange: BlobExchange, url: CopySourceUrl, target: Target): Promise<Parsed<BlobExchange>> {
  const bearer = exchange.headers["x-ms-copy-source-authorization"];
  const byKey = exchange.operation === "CopyBlob" && exchange.access.by === "key" && target.account === exchange.target.account;
  if (byKey && bearer === undefined && !target.query.has("sig")) {
    const named = await targetAsNamed(exchange.objects, target, true, exchange.limits());
    return named.ok ? readOf(exchange, named.value, exchange.sourceKey) : named;
  }
  const headers = { host: url.host, ...(bearer === undefined ? {} : { authorization: bearer }) };
  const admitted = await exchange.admit({ method: "GET", target: url.target, headers }, reading);
  if (!admitted.ok) return admitted;
  const tags = copiesTags(exchange.headers);
  if (!tags.ok) return tags;
  if (tags.value || exchange.headers["x-ms-source-if-tags"] !== undefined) {
    const ofTags = { method: "GET", target: `${url.target}${url.target.includes("?") ? "&" : "?"}comp=tags`, headers };
    const also = await exchange.admit(ofTags, readingTags);
    if (!also.ok) return also;
  }
  return readOf(admitted.value, admitted.value.target, exchange.sourceKey);
}

function readOf(source: Exchange, target: Target, key: CustomerKey | undefined): Parsed<BlobExchange> {
  const resource = parseBlobResource(target);
  if (!resource.ok) return resource;
  if (resource.value.blob === undefined) return rejected("InvalidUri");
  const names = checkNames(resource.value, target.older);
  if (!names.ok) return names;
  return parsed({
    ...source,
    target: { ...target, ...resource.value },
    operation: "GetBlob",
    key,
    sourceKey: undefined,
    containerRow: undefined,
  });
}

/** Returns the error about the source under the code that the service has for it; its own code goes along. */
function unverified(exchange: BlobExchange, error: RestError): RestError {
  if (error.code === "CannotVerifyCopySource" || error.status >= 500) return error;
  if (error.code === "ConditionNotMet") return sourceCondition(exchange, error.status);
  if (error.code === "InvalidRange" || error.code === "BlobArchived" || error.code === "PendingCopyOperation") return error;
  const headers = toldBySource(error.status, error.code);
  return restError("CannotVerifyCopySource", {}, { message: error.message, status: error.status, headers });
}

/**
 * Copy Blob has a code of its own for a condition of the source that is not met, Copy Blob From URL for an ETag; what else is read within
 * the request answers as the read of the source does, 304 or 412 (recordings of the service: docs/api/outcomes.md).
 */
function sourceCondition({ operation, headers }: BlobExchange, status: number): RestError {
  const told = toldBySource(status, "ConditionNotMet");
  const byEtag = status === 412 && headers["x-ms-source-if-match"] !== undefined;
  if (operation === "CopyBlob" || (operation === "CopyBlobFromUrl" && byEtag))
    return restError("SourceConditionNotMet", {}, { headers: told });
  return restError("CannotVerifyCopySource", {}, { message: restError("ConditionNotMet").message, status, headers: told });
}

/** Gives the answer of a source elsewhere the code that `sourceCondition` gives to a source in this stamp. */
function fromElsewhere<T>(exchange: BlobExchange, answer: Parsed<T>): Parsed<T> {
  if (answer.ok || answer.error.code !== "SourceConditionNotMet") return answer;
  return { ok: false, error: sourceCondition(exchange, Number(answer.error.headers["x-ms-copy-source-status-code"])) };
}

export interface FoundSource {
  readonly blob: Blob;
  readonly parts: CopyParts["parts"];
  /** True if the ranges are the whole source. */
  readonly isWhole: boolean;
}

export interface SourceContent {
  readonly blob: Blob;
  readonly lengthBytes: number;
  readonly bytes: AsyncIterableIterator<Uint8Array>;
}

/**
 * Reads the bytes of the source, or of a range of it. `keptEncoding` returns the Content-Encoding that the written blob will have if the source
 * tells this one. Bytes that a server has encoded on the way are refused if the blob would not say so.
 */
export async function readSource(
  exchange: BlobExchange,
  source: CopySource,
  range: ByteRange | undefined,
  bytesMax: number,
  keptEncoding: (told: string) => string = () => "",
): Promise<Parsed<SourceContent>> {
  if (source.kind === "elsewhere") {
    const { foreignSources } = exchange.objects.parts;
    const read = await foreignSources.read(source.source, range, bytesMax, source.headers, foreignLimits(exchange));
    if (!read.ok) return fromElsewhere(exchange, read);
    const { transferEncoding: encoding } = read.value;
    if (encoding === "" || keptEncoding(encoding).trim().toLowerCase() === encoding) return read;
    await read.value.bytes.return?.();
    const message = `The source answers with Content-Encoding ${encoding}, though its plain bytes are asked for, and they would be stored as plain.`;
    return rejected("CannotVerifyCopySource", {}, { message, status: 400 });
  }
  const { name } = source;
  const conditions = underKey(exchange.sourceKey, source.conditions);
  const asked = {
    ...(range ? { startBytes: toWire(range.startBytes) } : {}),
    ...(range?.endBytes === undefined ? {} : { endBytes: toWire(range.endBytes) }),
  };
  const found = await exchange.objects.execute({ case: "getBlob", value: { name, conditions, ...asked } }, "content", exchange.limits());
  if (!found.ok) return { ok: false, error: unverified(exchange, found.error) };
  const { blob } = found.value;
  if (!blob) throw new Error("content without its blob");
  const end = Math.min(range?.endBytes ?? Number.MAX_SAFE_INTEGER, fromWire(blob.contentLengthBytes));
  const lengthBytes = end - fromWire(found.value.startBytes);
  if (lengthBytes > bytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
  const bytes = await exchange.objects.download(name, blob, found.value as BlobContent, end, {
    signal: exchange.request.signal,
    key: exchange.sourceKey,
    cause: exchange.cause,
  });
  if (bytes.ok) return parsed({ blob, lengthBytes, bytes: bytes.value });
  return { ok: false, error: bytes.error.code === "EncryptionScopeDisabled" ? unverified(exchange, bytes.error) : bytes.error };
}

function foreignLimits(exchange: BlobExchange): ForeignLimits {
  const { objects, request } = exchange;
  return { timeoutMs: exchange.limits().deadlineMs - objects.parts.world.clock.monotonicMs(), signal: request.signal };
}

/** Reads what the source is, and the first of its parts if they are here; those of an archived source only if `archivedToo`. */
export async function readSourceParts(exchange: BlobExchange, source: CopySource, archivedToo: boolean): Promise<Parsed<FoundSource>> {
  if (source.kind === "elsewhere") {
    const found = await exchange.objects.parts.foreignSources.head(source.source, source.headers, foreignLimits(exchange));
    return found.ok ? parsed({ blob: found.value, parts: [], isWhole: false }) : fromElsewhere(exchange, found);
  }
  const value = { name: source.name, conditions: source.conditions, first: 0n, archivedToo };
  const parts = await exchange.objects.execute({ case: "readParts", value }, "copyParts", exchange.limits());
  if (!parts.ok) return { ok: false, error: unverified(exchange, parts.error) };
  const { blob } = parts.value;
  if (!blob) throw new Error("parts without their blob");
  const { account } = source.name;
  const readable = await exchange.objects.parts.scopes.ofBlob(account, blob, undefined, exchange.limits());
  if (!readable.ok) return { ok: false, error: unverified(exchange, readable.error) };
  return parsed({ blob, parts: parts.value.parts, isWhole: parts.value.next === undefined });
}

/** Reads the tags of a source. Elsewhere they are asked for, which needs a right to them. */
export async function readSourceTags(exchange: BlobExchange, source: CopySource, blob: Blob): Promise<Parsed<Record<string, string>>> {
  if (source.kind === "here") return parsed({ ...blob.tags });
  const tags = await exchange.objects.parts.foreignSources.tags(source.source, source.headers, foreignLimits(exchange));
  return tags.ok ? parsed({ ...tags.value }) : tags;
}

/** Returns the source with the condition that its content still has this ETag. */
export function unchangedSource(source: CopySource, { etag }: Blob): CopySource {
  if (source.kind === "here") return { ...source, conditions: { ifMatch: etag } };
  return etag === "" ? source : { ...source, headers: { ...source.headers, "if-match": etag } };
}
