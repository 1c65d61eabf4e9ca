/** Copy Blob, Copy Blob From URL, Abort Copy Blob. */
import {
  allParsed,
  badHeader,
  copyFromUrlBytesMax,
  crc64Text,
  encryptedUnderHeaders,
  etagAndTime,
  notImplemented,
  type Parsed,
  parseBoolean,
  parseConditions,
  parsed,
  parseMetadata,
  parseSourceDigests,
  queryValue,
  type ResponseHeaders,
  type RestError,
  rejected,
  restError,
  toBase64,
  urlOf,
} from "@stamp/azure-rest";
import { uuid, within } from "@stamp/ports";
import type { Blob } from "@stamp/wire";
import { fromWire } from "@stamp/wire";
import { sharesKey, underKey } from "../../../accounts/content-key.ts";
import { compareDigests } from "../../../content/content-digests.ts";
import type { CopyFrom } from "../../../copy/copies.ts";
import { restErrorOf } from "../../../objects/failures.ts";
import { isSameBlob, type LocatedBlob } from "../../../objects/objects.ts";
import { conditionsToWire } from "../../../objects/wire-conditions.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import type { OperationKind } from "../../../routing/router.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import {
  type CopySource,
  copiesTags,
  type FoundSource,
  readSource,
  readSourceParts,
  readSourceTags,
  sourceOf,
  unchangedSource,
} from "./copy-source.ts";
import { newStateOf } from "./new-state.ts";

/** A copy that is done within this time is answered as done. */
const answersWithinMs = 2_000;

interface Copy {
  readonly to: LocatedBlob;
  readonly source: CopySource;
  readonly found: FoundSource;
  readonly value: StartInit;
}
type StartInit = Extract<OperationKind, { case: "startCopy" }>["value"] & { readonly name: LocatedBlob };

/** Reads source and destination from the request, and makes the state of the copy. */
async function prepared(exchange: BlobExchange): Promise<Parsed<Copy>> {
  const { headers, objects, request } = exchange;
  const asked = allParsed({
    metadata: parseMetadata(headers, request.rawHeaders),
    conditions: parseConditions(headers),
    seal: parseBoolean(headers, "x-ms-seal-blob"),
    tags: copiesTags(headers),
    state: newStateOf(exchange),
  });
  if (!asked.ok) return asked;
  const { metadata, conditions, seal, tags, state } = asked.value;
  const to = await blobOfRequest(exchange);
  if (!to.ok) return to;
  const source = await sourceOf(exchange);
  if (!source.ok) return source;
  const found = await readSourceParts(exchange, source.value, rehydrates(exchange, source.value, to.value, state.accessTier));
  if (!found.ok) return found;
  const { blob } = found.value;
  if (state.accessTier !== "" && blob.blobType !== "BlockBlob") return rejected("InvalidBlobType");
  const sourceTags = tags ? await readSourceTags(exchange, source.value, blob) : parsed(undefined);
  if (!sourceTags.ok) return sourceTags;
  const given = Object.keys(metadata).length > 0;
  const value: StartInit = {
    name: to.value,
    conditions: underKey(exchange.key, conditionsToWire(conditions, exchange.access)),
    copy: {
      copyId: uuid(objects.parts.world.random),
      source: source.value.shown,
      status: "success",
      copiedBytes: blob.contentLengthBytes,
      totalBytes: blob.contentLengthBytes,
    },
    ...(blob.headers ? { headers: blob.headers } : {}),
    metadata: given ? metadata : { ...blob.metadata },
    blobType: blob.blobType,
    pageBlobBytes: blob.blobType === "PageBlob" ? blob.contentLengthBytes : 0n,
    sequenceNumber: blob.sequenceNumber,
    appendBlockCount: blob.committedBlockCount,
    sealed: seal && blob.blobType === "AppendBlob",
    state: sourceTags.value ? { ...state, tags: sourceTags.value } : state,
  };
  return parsed({ to: to.value, source: source.value, found: found.value, value });
}

/** True if the copy may take its source out of the archive: Copy Blob to an online tier, and not over the source itself. */
function rehydrates({ operation }: BlobExchange, source: CopySource, to: LocatedBlob, accessTier: string): boolean {
  if (operation !== "CopyBlob" || source.kind !== "here" || accessTier === "" || accessTier === "Archive") return false;
  const { name } = source;
  return name.account !== to.account || name.container !== to.container || name.blob !== to.blob;
}

/** Returns the error with the code that Copy Blob has for a condition of the destination. */
const ofTarget = ({ operation }: BlobExchange, error: RestError): RestError =>
  operation === "CopyBlob" && error.code === "ConditionNotMet" && error.status === 412 ? restError("TargetConditionNotMet") : error;

export async function copyBlob(exchange: BlobExchange): Promise<Answer> {
  const copy = await prepared(exchange);
  if (!copy.ok) return copy;
  const atOnce = await copyAtOnce(exchange, copy.value);
  if (atOnce) return atOnce.ok ? accepted(exchange, atOnce.value) : atOnce;
  return copyLater(exchange, copy.value);
}

/** Copies in one commit, if the places are good for the destination; undefined: it needs several parts. */
async function copyAtOnce(exchange: BlobExchange, { found, value, source, to }: Copy): Promise<Parsed<Blob> | undefined> {
  if (!found.isWhole || value.blobType === "PageBlob" || source.kind === "elsewhere") return undefined;
  const from = { account: source.name.account, scope: found.blob.encryptionScope };
  if (!sharesKey(from, { account: to.account, scope: exchange.key?.scope })) return undefined;
  const made = await exchange.objects.run({ case: "startCopy", value: { ...value, parts: [...found.parts] } }, exchange.limits());
  if (!made.ok) return made.failure.reason === "badPlace" ? undefined : { ok: false, error: restErrorOf(made.failure) };
  const answered = exchange.objects.resultOf(made.value, "blob");
  return answered.ok ? answered : { ok: false, error: ofTarget(exchange, answered.error) };
}

async function copyLater(exchange: BlobExchange, { to, source, found, value }: Copy): Promise<Answer> {
  const { copies, parts } = exchange.objects;
  // The copy would begin by removing what it reads.
  if (source.kind === "here" && isSameBlob(source.name, to)) return notImplemented("A copy of pages, or under another key, onto itself");
  if (copies.isFull) return rejected("ServerBusy", {}, { message: "Too many copies wait in this front-end." });
  const { etag } = found.blob;
  if (etag === "") {
    const message = "The source tells no strong ETag, by which it could be seen that it does not change while it is copied.";
    return rejected("CannotVerifyCopySource", {}, { message, status: 400 });
  }
  const from = fromOf(source, found.blob);
  const where = "url" in from ? { fromUrl: from.url } : { from: from.name };
  const work = { copier: copies.copier, fromEtag: etag, ...where };
  const copy = { ...value.copy, status: "pending", copiedBytes: 0n, work };
  const started = await exchange.objects.execute({ case: "startCopy", value: { ...value, copy } as StartInit }, "blob", exchange.limits());
  if (!started.ok) return { ok: false, error: ofTarget(exchange, started.error) };
  const copyId = value.copy?.copyId ?? "";
  const done = copies.begin({ to, copyId, from, position: 0n, scope: exchange.key?.scope });
  await within(parts.world.clock, answersWithinMs, done);
  const now = await exchange.objects.execute(
    { case: "getBlob", value: { name: to, withoutContent: true, withoutKey: true } },
    "blob",
    exchange.limits(),
  );
  return accepted(exchange, now.ok && now.value.copy?.copyId === copyId ? now.value : started.value);
}

function fromOf(source: CopySource, { etag, contentLengthBytes, blobType }: Blob): CopyFrom {
  if (source.kind === "here") return { name: source.name, etag };
  return { url: urlOf(source.source.url), etag, totalBytes: fromWire(contentLengthBytes), blobType };
}

const accepted = (exchange: BlobExchange, blob: Blob, digests: ResponseHeaders = {}): Answer =>
  respond(202, {
    ...etagAndTime(exchange.version, blobOf(blob)),
    ...digests,
    "x-ms-copy-id": blob.copy?.copyId ?? "",
    "x-ms-copy-status": blob.copy?.status ?? "",
    ...encryptedUnderHeaders({ scope: exchange.key?.scope }),
  });

/** Copies within the request: when it is answered, the copy is there. */
export async function copyBlobFromUrl(exchange: BlobExchange): Promise<Answer> {
  const digests = parseSourceDigests(exchange.headers);
  if (!digests.ok) return digests;
  const copy = await prepared(exchange);
  if (!copy.ok) return copy;
  const { found, source, value, to } = copy.value;
  if (found.blob.blobType !== "BlockBlob") return rejected("InvalidSourceBlobType");
  if (fromWire(found.blob.contentLengthBytes) > copyFromUrlBytesMax) {
    return badHeader("x-ms-copy-source", source.shown, "The source of a copy within the request has at most 256 MiB.");
  }
  const wanted = digests.value.md5 !== undefined || digests.value.crc64 !== undefined;
  if (!wanted) {
    const atOnce = await copyAtOnce(exchange, copy.value);
    if (atOnce) return atOnce.ok ? accepted(exchange, atOnce.value) : atOnce;
  }
  const content = await readSource(
    exchange,
    unchangedSource(source, found.blob),
    undefined,
    copyFromUrlBytesMax,
    () => found.blob.headers?.contentEncoding ?? "",
  );
  if (!content.ok) return content;
  const wants = { md5: digests.value.md5 !== undefined, crc64: digests.value.crc64 !== undefined };
  const { signal } = exchange.request;
  const received = await exchange.objects.receive(to, content.value.bytes, {
    contentLengthBytes: content.value.lengthBytes,
    wants,
    key: exchange.key,
    signal,
    cause: exchange.cause,
  });
  if (!received.ok) return received;
  const compared = compareDigests(digests.value, received.value);
  if (!compared.ok) return compared;
  const { inline, places, md5, crc64 } = received.value;
  const whole = { blockId: new Uint8Array(0), sizeBytes: found.blob.contentLengthBytes, places: [...places] };
  const parts = content.value.lengthBytes === 0 ? [] : [{ inline, blocks: places.length > 0 ? [whole] : [] }];
  const made = await exchange.objects.execute({ case: "startCopy", value: { ...value, parts } as StartInit }, "blob", exchange.limits());
  const shown = md5 ? { "Content-MD5": toBase64(md5) } : crc64 === undefined ? {} : { "x-ms-content-crc64": crc64Text(crc64) };
  return made.ok ? accepted(exchange, made.value, shown) : made;
}

export async function abortCopyBlob(exchange: BlobExchange): Promise<Answer> {
  const action = exchange.headers["x-ms-copy-action"];
  if (action === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-copy-action" });
  if (action.toLowerCase() !== "abort") return badHeader("x-ms-copy-action", action);
  const copyId = queryValue(exchange.target.query, "copyid");
  if (copyId === undefined) return rejected("MissingRequiredQueryParameter", { QueryParameterName: "copyid" });
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const value = { name: name.value, conditions: conditionsToWire(conditions.value), copyId };
  const aborted = await exchange.objects.execute({ case: "abortCopy", value }, "done", exchange.limits());
  return aborted.ok ? respond(204) : aborted;
}
