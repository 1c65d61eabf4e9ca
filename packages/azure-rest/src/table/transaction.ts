/**
 * Bodies of entity group transactions ("Performing entity group transactions"): multipart/mixed with one change set, or with one query.
 *
 *   --batch_x                                            --batchresponse_x
 *   Content-Type: multipart/mixed; boundary=changeset_y  Content-Type: multipart/mixed; boundary=changesetresponse_y
 *
 *   --changeset_y                                        --changesetresponse_y
 *   Content-Type: application/http                       Content-Type: application/http
 *   Content-Transfer-Encoding: binary                    Content-Transfer-Encoding: binary
 *
 *   PUT http://…/table(…) HTTP/1.1                       HTTP/1.1 204 No Content
 *   headers                                              headers
 *
 *   {…}
 *   --changeset_y--                                      --changesetresponse_y--
 *   --batch_x--                                          --batchresponse_x--
 *
 * Lines end with CR LF; LF alone is understood. What is inside is a request like any other, but only its method, URL, headers and JSON count.
 */
import type { HttpHeaders } from "../headers.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";

export const transactionBytesMax: number = 4 * 1024 * 1024;
export const transactionChangesMax = 100;

export interface TransactionRequest {
  readonly method: string;
  /** URL in a transaction: absolute, from the root, or from the account. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: HttpHeaders;
  readonly body: string;
  readonly contentId: string | undefined;
}

export type TransactionBody =
  | { readonly kind: "changes"; readonly requests: readonly TransactionRequest[] }
  | { readonly kind: "query"; readonly request: TransactionRequest };

const invalid = (reason: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("InvalidInput", { Reason: reason });

export function parseTransaction(contentType: string | undefined, text: string): Parsed<TransactionBody> {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return invalid("The Content-Type is not multipart/mixed with a boundary.");
  const parts = partsOf(text, boundary);
  if (!parts.ok) return parts;
  const [only, ...more] = parts.value;
  if (!only || more.length > 0) return invalid("A batch has one change set, or one query.");
  const inner = boundaryOf(only.headers["content-type"]);
  if (inner === undefined) {
    const request = requestOf(only);
    if (!request.ok) return request;
    return request.value.method === "GET"
      ? parsed({ kind: "query", request: request.value })
      : invalid("A change is not inside a change set.");
  }
  const changes = partsOf(only.body, inner);
  if (!changes.ok) return changes;
  const requests: TransactionRequest[] = [];
  for (const part of changes.value) {
    const request = requestOf(part);
    if (!request.ok) return request;
    if (request.value.method === "GET") return invalid("A query inside a change set.");
    requests.push(request.value);
  }
  return requests.length === 0 ? invalid("A change set without changes.") : parsed({ kind: "changes", requests });
}

interface Part {
  readonly headers: HttpHeaders;
  readonly body: string;
}

function boundaryOf(contentType: string | undefined): string | undefined {
  const match = /^\s*multipart\/mixed\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentType ?? "");
  return match?.[1] ?? match?.[2];
}

/** Returns the parts between the lines of the boundary. */
function partsOf(text: string, boundary: string): Parsed<Part[]> {
  const parts: Part[] = [];
  const delimiter = `--${boundary}`;
  let from: number | undefined;
  for (let at = 0; ; ) {
    const found = lineStart(text, delimiter, at);
    if (found === undefined) return invalid(`The boundary ${boundary} does not end.`);
    if (from !== undefined) {
      const part = partOf(text.slice(from, found).replace(/\r?\n$/, ""));
      if (!part.ok) return part;
      parts.push(part.value);
    }
    const behind = found + delimiter.length;
    const end = text.indexOf("\n", behind);
    const rest = text.slice(behind, end < 0 ? text.length : end).trim();
    if (rest === "--") return parsed(parts);
    if (rest !== "" || end < 0) return invalid(`The boundary ${boundary} has something behind it.`);
    from = end + 1;
    at = from;
  }
}

/** Returns where a line begins with this text. */
function lineStart(text: string, start: string, from: number): number | undefined {
  for (let at = text.indexOf(start, from); at >= 0; at = text.indexOf(start, at + 1)) {
    if (at === 0 || text[at - 1] === "\n") return at;
  }
  return undefined;
}

const blankLine = /(?:^|\r?\n)\r?\n/;

function partOf(text: string): Parsed<Part> {
  const blank = blankLine.exec(text);
  const head = blank ? text.slice(0, blank.index) : text;
  const headers = headersOf(head === "" ? [] : head.split(/\r?\n/));
  return headers && blank
    ? parsed({ headers, body: text.slice(blank.index + blank[0].length) })
    : invalid("A part is not headers, an empty line and a body.");
}

function headersOf(lines: readonly string[]): HttpHeaders | undefined {
  const headers: Record<string, string> = Object.create(null);
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return undefined;
    headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}

function requestOf(part: Part): Parsed<TransactionRequest> {
  const type = (part.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/http") return invalid("A part is not application/http.");
  const text = part.body.replace(/^(?:\r?\n)+/, "");
  const blank = blankLine.exec(text);
  const [line = "", ...rest] = (blank ? text.slice(0, blank.index) : text).split(/\r?\n/);
  const match = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/.exec(line.trim());
  const headers = headersOf(rest.filter((one) => one.trim() !== ""));
  if (!match || !headers) return invalid("A part does not hold an HTTP request.");
  const contentId = part.headers["content-id"] ?? headers["content-id"];
  const body = blank ? text.slice(blank.index + blank[0].length) : "";
  return parsed({ method: match[1] as string, url: match[2] as string, headers, body, contentId });
}

export interface TransactionAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly contentId: string | undefined;
}

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  409: "Conflict",
  412: "Precondition Failed",
  413: "Request Entity Too Large",
  415: "Unsupported Media Type",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};

/** `id` makes the boundaries. Of a query, the answer is in no change set. */
export function transactionResponse(
  id: string,
  kind: TransactionBody["kind"],
  answers: readonly TransactionAnswer[],
): { readonly contentType: string; readonly body: string } {
  const outer = `batchresponse_${id}`;
  const inner = `changesetresponse_${id}`;
  const boundary = kind === "changes" ? inner : outer;
  const parts = answers.map((answer) => `--${boundary}\r\n${answerText(answer)}\r\n`).join("");
  const body =
    kind === "changes"
      ? `--${outer}\r\nContent-Type: multipart/mixed; boundary=${inner}\r\n\r\n${parts}--${inner}--\r\n--${outer}--\r\n`
      : `${parts}--${outer}--\r\n`;
  return { contentType: `multipart/mixed; boundary=${outer}`, body };
}

function answerText({ status, headers, body, contentId }: TransactionAnswer): string {
  const all = { ...(contentId === undefined ? {} : { "Content-ID": contentId }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return (
    "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
    `HTTP/1.1 ${status} ${reasons[status] ?? "Unknown"}\r\n${lines.join("")}\r\n${body}`
  );
}
