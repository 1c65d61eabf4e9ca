/**
 * The source of a request that copies. A blob of this stamp is read inside, without HTTP: the URL's account is one of ours, in the host or,
 * at the address that the request itself came to, in the path. Whoever asks must be let in to read it: with the account's key where both
 * are in one account, else by the SAS in the URL, by `x-ms-copy-source-authorization`, or because it is public.
 *
 * A URL of somebody else is not fetched: a stamp that asks any URL for anybody is a way into networks that only it can reach.
 */
import {
  type BlobOperationName,
  type ByteRange,
  type CopySourceUrl,
  type Parsed,
  parseBlobResource,
  parseCopySource,
  parsed,
  parseSourceConditions,
  parseTarget,
  type RestError,
  rejected,
  restError,
} from "@stamp/azure-rest";
import { type Blob, type BlobContent, type CopyParts, fromWire, toWire } from "@stamp/wire";
import type { Download } from "../../download.ts";
import { conditionsToWire, type LocatedBlob, type WireConditions } from "../../objects.ts";
import type { Exchange } from "../exchange.ts";
import { type BlobExchange, blobOfRequest } from "./exchange.ts";

export interface CopySource {
  readonly name: LocatedBlob;
  /** `x-ms-source-if-*`. */
  readonly conditions: WireConditions;
  /** The URL as it may be shown. */
  readonly shown: string;
}

const reading: ReadonlySet<string> = new Set<BlobOperationName>(["GetBlob"]);

export async function sourceOf(exchange: BlobExchange): Promise<Parsed<CopySource>> {
  const url = parseCopySource(exchange.headers);
  if (!url.ok) return url;
  const conditions = parseSourceConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const source = await sourceExchange(exchange, url.value);
  if (!source.ok) return { ok: false, error: unverified(source.error) };
  const name = await blobOfRequest(source.value);
  if (!name.ok) return { ok: false, error: unverified(name.error) };
  return parsed({ name: name.value, conditions: conditionsToWire(conditions.value), shown: url.value.shown });
}

/** The source as a request of its own, let in or not. */
async function sourceExchange(exchange: BlobExchange, url: CopySourceUrl): Promise<Parsed<BlobExchange>> {
  const target = parseTarget(url.target, url.host, { hostSuffixes: exchange.hostSuffixes });
  const ours = target.ok && (target.value.addressing === "host" || url.host === (exchange.headers.host ?? "").toLowerCase());
  if (!ours) {
    const why =
      `${url.host} is not an address of this stamp as this request knows it. Sources are blobs of this stamp, named by the host that the ` +
      "request itself was sent to, or by one that ends with a configured suffix (hostSuffixes); other URLs are not fetched.";
    return { ok: false, error: restError("CannotVerifyCopySource", {}, { message: why, status: 400 }) };
  }
  const resource = parseBlobResource(target.value);
  if (!resource.ok) return resource;
  if (resource.value.blob === undefined) return rejected("InvalidUri");
  const asBlob = (source: Exchange): BlobExchange => ({ ...source, target: { ...target.value, ...resource.value }, operation: "GetBlob" });
  const bearer = exchange.headers["x-ms-copy-source-authorization"];
  const sameAccount = target.value.account === exchange.target.account;
  if (sameAccount && exchange.access.by === "key" && bearer === undefined && !target.value.query.has("sig"))
    return parsed(asBlob(exchange));
  const headers = { host: url.host, ...(bearer === undefined ? {} : { authorization: bearer }) };
  const admitted = await exchange.admit({ method: "GET", target: url.target, headers }, reading);
  return admitted.ok ? parsed(asBlob(admitted.value)) : admitted;
}

/** What is wrong with the source, under the code that the service has for it; its own code goes along. */
export function unverified(error: RestError): RestError {
  if (error.code === "CannotVerifyCopySource" || error.status >= 500) return error;
  if (error.code === "ConditionNotMet") return restError("SourceConditionNotMet");
  if (error.code === "InvalidRange" || error.code === "BlobArchived" || error.code === "PendingCopyOperation") return error;
  const headers = { "x-ms-copy-source-error-code": error.code, "x-ms-copy-source-status-code": String(error.status) };
  return restError("CannotVerifyCopySource", {}, { message: error.message, status: error.status, headers });
}

export interface SourceContent {
  readonly blob: Blob;
  readonly lengthBytes: number;
  readonly bytes: Download;
}

/** The bytes of the source, of a range of it. */
export async function readSource(
  exchange: BlobExchange,
  source: CopySource,
  range: ByteRange | undefined,
  bytesMax: number,
): Promise<Parsed<SourceContent>> {
  const { name, conditions } = source;
  const asked = {
    ...(range ? { startBytes: toWire(range.startBytes) } : {}),
    ...(range?.endBytes === undefined ? {} : { endBytes: toWire(range.endBytes) }),
  };
  const found = await exchange.objects.execute({ case: "getBlob", value: { name, conditions, ...asked } }, "content", exchange.limits());
  if (!found.ok) return { ok: false, error: unverified(found.error) };
  const { blob } = found.value;
  if (!blob) throw new Error("content without its blob");
  const end = Math.min(range?.endBytes ?? Number.MAX_SAFE_INTEGER, fromWire(blob.contentLengthBytes));
  const lengthBytes = end - fromWire(found.value.startBytes);
  if (lengthBytes > bytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
  const bytes = await exchange.objects.download(name, blob, found.value as BlobContent, end, exchange.request.signal);
  return bytes.ok ? parsed({ blob, lengthBytes, bytes: bytes.value }) : bytes;
}

/** The first of its parts, and what it is. */
export async function readSourceParts(exchange: BlobExchange, source: CopySource): Promise<Parsed<CopyParts & { readonly blob: Blob }>> {
  const value = { name: source.name, conditions: source.conditions, first: 0n };
  const parts = await exchange.objects.execute({ case: "readParts", value }, "copyParts", exchange.limits());
  if (!parts.ok) return { ok: false, error: unverified(parts.error) };
  const { blob } = parts.value;
  if (!blob) throw new Error("parts without their blob");
  return parsed({ ...parts.value, blob });
}
