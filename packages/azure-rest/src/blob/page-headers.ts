/** Headers of requests for page and append blobs. */
import { type ByteRange, byteRangeOf, type HttpHeaders, rangeHeaderOf } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";

export const pageLengthBytes = 512;
export const pageBlobLengthMax: number = 8 * 1024 ** 4;
export const putPageBytesMax: number = 4 * 1024 * 1024;

/** Returns a number of bytes, blocks or the like; undefined when the header is not there. */
export function parseCount(headers: HttpHeaders, name: string): Parsed<number | undefined> {
  const text = headers[name];
  if (text === undefined) return parsed(undefined);
  const value = /^\d{1,16}$/.test(text.trim()) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? parsed(value) : badHeader(name, text);
}

export interface NewBlobType {
  readonly blobType: "BlockBlob" | "AppendBlob" | "PageBlob";
  readonly pageBlobBytes: number;
  readonly sequenceNumber: number;
}

/** Parses the type of the blob in Put Blob. */
export function parseNewBlobType(headers: HttpHeaders): Parsed<NewBlobType> {
  const blobType = headers["x-ms-blob-type"];
  const length = parseCount(headers, "x-ms-blob-content-length");
  if (!length.ok) return length;
  const sequenceNumber = parseCount(headers, "x-ms-blob-sequence-number");
  if (!sequenceNumber.ok) return sequenceNumber;
  if (blobType === "BlockBlob" || blobType === "AppendBlob") {
    if (length.value !== undefined) return rejected("UnsupportedHeader", { HeaderName: "x-ms-blob-content-length" });
    if (sequenceNumber.value !== undefined) return rejected("UnsupportedHeader", { HeaderName: "x-ms-blob-sequence-number" });
    return parsed({ blobType, pageBlobBytes: 0, sequenceNumber: 0 });
  }
  if (blobType !== "PageBlob") return badHeader("x-ms-blob-type", blobType ?? "");
  if (length.value === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-blob-content-length" });
  const checked = checkPageBlobLength(length.value);
  return checked.ok ? parsed({ blobType, pageBlobBytes: length.value, sequenceNumber: sequenceNumber.value ?? 0 }) : checked;
}

export function checkPageBlobLength(length: number): Parsed<number> {
  if (length % pageLengthBytes === 0 && length <= pageBlobLengthMax) return parsed(length);
  return badHeader("x-ms-blob-content-length", String(length), "A multiple of 512, at most 8 TiB.");
}

/** Returns the range of a write: of whole pages, with both ends. What can't be read is refused: a write of all pages was not meant. */
export function parsePageRange(headers: HttpHeaders): Parsed<Required<ByteRange>> {
  const name = rangeHeaderOf(headers);
  const text = headers[name];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-range" });
  const { startBytes = 0, endBytes } = byteRangeOf(text) ?? {};
  if (endBytes === undefined || startBytes % pageLengthBytes !== 0 || endBytes % pageLengthBytes !== 0) {
    return badHeader(name, text, "It starts and ends at multiples of 512.");
  }
  return parsed({ startBytes, endBytes });
}

export interface SequenceConditionHeaders {
  readonly lessOrEqual?: number;
  readonly less?: number;
  readonly equal?: number;
}

export function parseSequenceConditions(headers: HttpHeaders): Parsed<SequenceConditionHeaders> {
  const conditions: { -readonly [K in keyof SequenceConditionHeaders]: SequenceConditionHeaders[K] } = {};
  for (const [end, name] of [
    ["le", "lessOrEqual"],
    ["lt", "less"],
    ["eq", "equal"],
  ] as const) {
    const value = parseCount(headers, `x-ms-if-sequence-number-${end}`);
    if (!value.ok) return value;
    if (value.value !== undefined) conditions[name] = value.value;
  }
  return parsed(conditions);
}

export interface SequenceNumberChange {
  readonly action: "max" | "update" | "increment" | undefined;
  readonly sequenceNumber: number;
}

/** Parses the sequence number in Set Blob Properties. */
export function parseSequenceNumberChange(headers: HttpHeaders): Parsed<SequenceNumberChange> {
  const number = parseCount(headers, "x-ms-blob-sequence-number");
  if (!number.ok) return number;
  const text = headers["x-ms-sequence-number-action"];
  const action = text?.toLowerCase();
  if (action === undefined) {
    if (number.value === undefined) return parsed({ action: undefined, sequenceNumber: 0 });
    return rejected("MissingRequiredHeader", { HeaderName: "x-ms-sequence-number-action" });
  }
  if (action !== "max" && action !== "update" && action !== "increment") return badHeader("x-ms-sequence-number-action", text ?? "");
  if (action === "increment") {
    if (number.value !== undefined) return rejected("UnsupportedHeader", { HeaderName: "x-ms-blob-sequence-number" });
    return parsed({ action, sequenceNumber: 0 });
  }
  if (number.value === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-blob-sequence-number" });
  return parsed({ action, sequenceNumber: number.value });
}
