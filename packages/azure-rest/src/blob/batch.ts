/**
 * The body of Blob Batch: `multipart/mixed`, each part an HTTP request (RFC 2046, RFC 7230). Read tolerantly: lines may end with CRLF or
 * LF, what comes before the first boundary and behind the last is nothing, the last boundary may lack its end. What a part can't mean is an
 * error of the whole batch, as the service has it; what a request may not do is an error of its own answer.
 *
 *   --boundary / Content-Type: application/http / Content-ID: n / (empty) / DELETE /c/b?x HTTP/1.1 / headers / (empty) / --boundary--
 */
import { parseAbsoluteForm } from "@stamp/base";
import type { HttpHeaders } from "../headers.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodeUtf8 } from "../target.ts";

export const batchBytesMax: number = 4 * 1024 * 1024;
export const batchRequestsMax = 256;
const boundaryCharactersMax = 70;
const headersPerPartMax = 100;

export interface BatchRequest {
  /** Content-ID of the part; the answer repeats it. */
  readonly contentId: string | undefined;
  readonly method: string;
  /** Path and query of the inner request. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: HttpHeaders;
}

const malformed = (reason: string): Parsed<never> => rejected("InvalidInput", { Reason: reason });

export function parseBatchBoundary(contentType: string | undefined): Parsed<string> {
  const match = /^\s*multipart\/mixed\s*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType ?? "");
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined || boundary.length > boundaryCharactersMax) {
    return rejected("InvalidHeaderValue", { HeaderName: "Content-Type", HeaderValue: contentType ?? "" });
  }
  return parsed(boundary);
}

export function parseBatch(body: Uint8Array, boundary: string): Parsed<BatchRequest[]> {
  if (body.length > batchBytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(batchBytesMax) });
  const text = decodeUtf8(body);
  if (text === undefined) return malformed("The body is not UTF-8.");
  const requests: BatchRequest[] = [];
  for (const part of partsOf(text, `--${boundary}`)) {
    if (requests.length === batchRequestsMax) return rejected("ExceedsMaxBatchRequestCount");
    const request = parsePart(part);
    if (!request.ok) return request;
    requests.push(request.value);
  }
  return requests.length === 0 ? malformed("The batch has no request.") : parsed(requests);
}

/** Yields the lines between two delimiters. A part that has none is left out: it is what stands behind the last one. */
function* partsOf(text: string, delimiter: string): Generator<string[]> {
  let part: string[] | undefined;
  for (const line of linesOf(text)) {
    if (line.startsWith(delimiter)) {
      const rest = line.slice(delimiter.length).trim();
      if (rest === "" || rest === "--") {
        if (part) yield part;
        if (rest === "--") return;
        part = [];
        continue;
      }
    }
    part?.push(line);
  }
  if (part?.some((line) => line.trim() !== "")) yield part;
}

/** Yields one line after another, so that nothing behind a batch's last allowed request is looked at. */
function* linesOf(text: string): Generator<string> {
  for (let at = 0; ; ) {
    const end = text.indexOf("\n", at);
    if (end < 0) {
      yield text.slice(at);
      return;
    }
    yield text.slice(at, end > at && text[end - 1] === "\r" ? end - 1 : end);
    at = end + 1;
  }
}

function parsePart(lines: readonly string[]): Parsed<BatchRequest> {
  const envelope = readHeaders(lines, 0);
  if (!envelope.ok) return envelope;
  const type = envelope.value.headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/http") return malformed("A part is not of the type application/http.");
  let at = envelope.value.next;
  while (lines[at]?.trim() === "") at++;
  const start = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec((lines[at] ?? "").trimEnd());
  if (!start) return malformed("A part does not begin with a request line.");
  const request = readHeaders(lines, at + 1);
  if (!request.ok) return request;
  const { headers, next } = request.value;
  if (Number(headers["content-length"] ?? "0") !== 0 || lines.slice(next).some((line) => line.trim() !== "")) {
    return malformed("A request of a batch has no body.");
  }
  return parsed({
    contentId: envelope.value.headers["content-id"],
    method: start[1] as string,
    target: originForm(start[2] as string),
    headers,
  });
}

/** Returns the target as path and query: a request may name its whole URL. */
function originForm(target: string): string {
  const path = parseAbsoluteForm(target)?.originForm ?? target;
  return path.startsWith("/") ? path : `/${path}`;
}

/** Reads headers up to the empty line, or the end. */
function readHeaders(lines: readonly string[], from: number): Parsed<{ headers: Record<string, string>; next: number }> {
  const headers: Record<string, string> = Object.create(null);
  let count = 0;
  let at = from;
  for (; at < lines.length && lines[at]?.trim() !== ""; at++) {
    const line = lines[at] as string;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) return malformed("A line of a part is no header.");
    if (++count > headersPerPartMax) return malformed(`A part has more than ${headersPerPartMax} headers.`);
    const value = line.slice(colon + 1).trim();
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  return parsed({ headers, next: at + 1 });
}

export interface BatchAnswer {
  readonly contentId: string | undefined;
  readonly status: number;
  /** Text behind the status code. */
  readonly statusText: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

/** Returns the answers in the order of the requests. */
export function batchAnswerText(boundary: string, answers: readonly BatchAnswer[]): string {
  let text = "";
  for (const answer of answers) {
    text += `--${boundary}\r\nContent-Type: application/http\r\n`;
    if (answer.contentId !== undefined) text += `Content-ID: ${answer.contentId}\r\n`;
    text += `\r\nHTTP/1.1 ${answer.status} ${answer.statusText}\r\n`;
    for (const [name, values] of Object.entries(answer.headers)) {
      for (const value of typeof values === "string" ? [values] : values) text += `${name}: ${value}\r\n`;
    }
    text += `\r\n${answer.body}${answer.body === "" ? "" : "\r\n"}`;
  }
  return `${text}--${boundary}--\r\n`;
}
