/**
 * Blobs outside of this stamp that requests copy from, over HTTP. Only hosts that the operator allows (`copySources`) are asked; whatever
 * they answer is checked, bounded in size and time, and never followed elsewhere.
 */
import { create } from "@bufbuild/protobuf";
import {
  type AllowedSource,
  allowedSource,
  type ByteRange,
  type CopySourceUrl,
  type HttpHeaders,
  type Parsed,
  parsed,
  parseSourceAnswer,
  parseSourcePages,
  parseSourcePattern,
  parseTagsXml,
  rejected,
  restError,
  type SourceAnswer,
  type SourcePages,
  sourceError,
  sourcePageListBytesMax,
  sourcePageRangesMax,
  tagsBytesMax,
} from "@stamp/azure-rest";
import { concatBytes, FailureError, refused } from "@stamp/base";
import type { HttpClient, IncomingAnswer } from "@stamp/ports";
import { type Blob, BlobSchema, toWire } from "@stamp/wire";
/** A source that may be asked. */
export interface ForeignSource {
  readonly url: CopySourceUrl;
  readonly allowed: AllowedSource;
}

export interface ForeignContent {
  readonly blob: Blob;
  /** Encoding that the bytes may have for this answer alone; "" for none. */
  readonly transferEncoding: string;
  readonly lengthBytes: number;
  readonly bytes: AsyncIterableIterator<Uint8Array>;
}

/** Time for a body: this, and its length at this rate. */
const bodyTimeoutMs = 60_000;
const bodyBytesPerMsMin = 64;
const idleTimeoutMs = 30_000;

export interface ForeignLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

type Target = Pick<CopySourceUrl, "target">;

export class ForeignSources {
  readonly #client: HttpClient | undefined;
  readonly #patterns: NonNullable<ReturnType<typeof parseSourcePattern>>[];

  /** Without `client` no source elsewhere is allowed. */
  constructor(client: HttpClient | undefined, copySources: readonly string[]) {
    this.#client = client;
    this.#patterns = copySources.flatMap((text) => parseSourcePattern(text) ?? []);
  }

  locate(url: CopySourceUrl): Parsed<ForeignSource> {
    const allowed = this.#client && allowedSource(this.#patterns, url.secure, url.host);
    if (allowed && /^[\x21-\x7e]*$/.test(url.target)) return parsed({ url, allowed });
    const why = allowed
      ? "Path and query of a URL are ASCII."
      : `${url.host} is no address of this stamp as this request knows it, and none that it may copy from. A source is a blob of this stamp, ` +
        "named by the host that the request itself was sent to or by one that ends with a configured suffix (hostSuffixes), or a blob at a " +
        "host that the operator allows (copySources).";
    return rejected("CannotVerifyCopySource", {}, { message: why, status: 400 });
  }

  /**
   * Asks for the properties of the source. `headers`: all that are sent. If HEAD is refused (a URL that is signed for
   * GET alone), GET may tell them.
   */
  async head(source: ForeignSource, headers: HttpHeaders, limits: ForeignLimits): Promise<Parsed<Blob>> {
    const byHead = await this.#told("HEAD", source, headers, limits);
    if (!byHead.ok) return byHead;
    const { status } = byHead.value;
    if (!refusesHead(status)) return blobOfAnswer(byHead.value);
    const first = await this.#told("GET", source, { ...headers, range: "bytes=0-0" }, limits);
    if (!first.ok) return first;
    // An empty one has no first byte.
    const asked = first.value.status === 416 ? await this.#told("GET", source, headers, limits) : first;
    return asked.ok ? blobOfAnswer(asked.value) : asked;
  }

  /** Returns an answer whose body nobody reads. */
  async #told(method: "GET" | "HEAD", source: ForeignSource, headers: HttpHeaders, limits: ForeignLimits): Promise<Parsed<IncomingAnswer>> {
    const answer = await this.#ask(method, source, source.url, headers, limits, 0);
    if (answer.ok) await answer.value.body.return?.();
    return answer;
  }

  /** Its bytes, or those of a range, clipped to the blob. Whoever gets them reads them to their end, or leaves them. */
  async read(
    source: ForeignSource,
    range: ByteRange | undefined,
    bytesMax: number,
    headers: HttpHeaders,
    limits: ForeignLimits,
  ): Promise<Parsed<ForeignContent>> {
    const wanted = range
      ? { ...headers, range: `bytes=${range.startBytes}-${range.endBytes === undefined ? "" : range.endBytes - 1}` }
      : headers;
    const answer = await this.#ask("GET", source, source.url, wanted, limits, bytesMax);
    if (!answer.ok) return answer;
    const { body } = answer.value;
    const read = checked(answer.value, range, bytesMax);
    if (read.ok) {
      const { lengthBytes, transferEncoding } = read.value;
      return parsed({ blob: blobOf(read.value), lengthBytes, transferEncoding, bytes: ofSource(body) });
    }
    await body.return?.();
    return read;
  }

  async tags(source: ForeignSource, headers: HttpHeaders, limits: ForeignLimits): Promise<Parsed<Readonly<Record<string, string>>>> {
    const document = await this.#document(source, "comp=tags", headers, limits, tagsBytesMax);
    return document.ok ? parseTagsXml(document.value) : document;
  }

  /** Returns the next pages that hold something, from there on; none: there are no more. */
  async pages(
    source: ForeignSource,
    startBytes: number,
    endBytes: number,
    headers: HttpHeaders,
    limits: ForeignLimits,
  ): Promise<Parsed<SourcePages>> {
    const ask = { ...headers, range: `bytes=${startBytes}-${endBytes - 1}` };
    const document = await this.#document(source, `comp=pagelist&maxresults=${sourcePageRangesMax}`, ask, limits, sourcePageListBytesMax);
    return document.ok ? parseSourcePages(document.value) : document;
  }

  async #document(
    source: ForeignSource,
    query: string,
    headers: HttpHeaders,
    limits: ForeignLimits,
    bytesMax: number,
  ): Promise<Parsed<Uint8Array>> {
    const { target } = source.url;
    const answer = await this.#ask(
      "GET",
      source,
      { target: `${target}${target.includes("?") ? "&" : "?"}${query}` },
      headers,
      limits,
      bytesMax,
    );
    if (!answer.ok) return answer;
    const { status, body } = answer.value;
    const error = sourceError(status, answer.value.headers);
    const chunks: Uint8Array[] = [];
    let received = 0;
    try {
      for await (const chunk of body) {
        if (error) break;
        received += chunk.length;
        if (received > bytesMax) return unreadable(`it answers more than ${bytesMax} bytes`);
        chunks.push(chunk);
      }
    } catch (thrown) {
      if (thrown instanceof FailureError) return unreadable(thrown.failure.message);
      throw thrown;
    }
    return error ? { ok: false, error } : parsed(concatBytes(chunks));
  }

  async #ask(
    method: "GET" | "HEAD",
    { url, allowed }: ForeignSource,
    { target }: Target,
    headers: HttpHeaders,
    limits: ForeignLimits,
    bytesMax: number,
  ): Promise<Parsed<IncomingAnswer>> {
    const { hostname, port, mayConnectTo } = allowed;
    const request = { method, secure: url.secure, hostname, port, target, headers };
    const times = { timeoutMs: Math.max(limits.timeoutMs, 1), bodyTimeoutMs: bodyTimeoutMs + bytesMax / bodyBytesPerMsMin, idleTimeoutMs };
    const options = { ...times, mayConnectTo, ...(limits.signal ? { signal: limits.signal } : {}) };
    const answer = await (this.#client as HttpClient).request(request, options);
    if (answer.ok) return parsed(answer.value);
    const { reason, message } = answer.failure;
    if (reason !== "unauthorized") return unreadable(message);
    return rejected("CannotVerifyCopySource", {}, { message: `${message} (copySources).`, status: 400 });
  }
}

/** True for a client's error that is no condition: 304 and 412 mean the same for GET. */
const refusesHead = (status: number): boolean => (status >= 400 && status < 500 && status !== 412 && status !== 429) || status === 501;

function blobOfAnswer({ status, headers, rawHeaders }: IncomingAnswer): Parsed<Blob> {
  const read = parseSourceAnswer(status, headers, rawHeaders);
  return read.ok ? parsed(blobOf(read.value)) : read;
}

/** Returns the body of a source; if it breaks off, that is no fault of the request's client. */
const ofSource = (body: IncomingAnswer["body"]): IncomingAnswer["body"] => ({
  next: () =>
    body.next().catch((error: unknown) => {
      if (!(error instanceof FailureError)) throw error;
      throw new FailureError(refused("unavailable", "notReady", `the source: ${error.failure.message}`).failure);
    }),
  return: async () => (await body.return?.()) ?? { done: true, value: undefined },
  [Symbol.asyncIterator]() {
    return this;
  },
});

const unreadable = (why: string): Parsed<never> => {
  const { message } = restError("CannotVerifyCopySource");
  return rejected("CannotVerifyCopySource", {}, { message: `${message} (${why})` });
};

function checked({ status, headers, rawHeaders }: IncomingAnswer, range: ByteRange | undefined, bytesMax: number): Parsed<SourceAnswer> {
  const read = parseSourceAnswer(status, headers, rawHeaders);
  if (!read.ok) return read;
  const { startBytes, lengthBytes } = read.value;
  const isWhole = range === undefined || (range.startBytes === 0 && lengthBytes <= (range.endBytes ?? lengthBytes));
  if (range !== undefined && status !== 206 && !isWhole) {
    return rejected(
      "CannotVerifyCopySource",
      {},
      { message: "The source does not answer with the range that it is asked for.", status: 400 },
    );
  }
  if (startBytes !== (range?.startBytes ?? 0) || (range?.endBytes !== undefined && startBytes + lengthBytes > range.endBytes)) {
    return rejected("CannotVerifyCopySource", {}, { message: "The source answers with another range than it is asked for.", status: 400 });
  }
  return lengthBytes > bytesMax ? rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) }) : read;
}

const blobOf = ({ properties }: SourceAnswer): Blob =>
  create(BlobSchema, {
    etag: properties.etag,
    headers: properties.headers,
    metadata: { ...properties.metadata },
    blobType: properties.blobType,
    contentLengthBytes: toWire(properties.contentLengthBytes),
    sequenceNumber: toWire(properties.sequenceNumber),
    committedBlockCount: properties.committedBlockCount,
    sealed: properties.sealed,
  });
