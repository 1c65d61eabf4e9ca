/**
 * Content of blobs for the console: a preview inside the page, and downloads; those of tables, too.
 *
 * Invariants:
 * - The type of a preview is found in the bytes, never taken from what a client once said: HTML and SVG are text.
 * - A download is an attachment of no type that a browser opens, under a policy that lets it load and run nothing.
 */
import type { HttpResponse } from "@stamp/ports";
import { securityHeaders } from "../guard.ts";
import { pastOf } from "./blob-history.ts";
import type { DataClients } from "./clients.ts";
import { blobIn, fieldIn } from "./data-lists.ts";
import { exportFormats, exportTable } from "./entities/export-table.ts";

const textBytesMax = 64 * 1_024;
const imageBytesMax = 4 * 1_024 * 1_024;

/** Answers with an image as it is, or with JSON: text, which is null for bytes that are neither. */
export async function preview(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<HttpResponse> {
  const client = await blobIn(clients, query);
  const { contentLength: bytes = 0 } = await client.getProperties({ abortSignal });
  const first = bytes === 0 ? Buffer.alloc(0) : await client.downloadToBuffer(0, Math.min(bytes, textBytesMax), { abortSignal });
  const type = imageTypeOf(first);
  if (type !== undefined && bytes <= imageBytesMax) {
    const image = bytes === first.length ? first : await client.downloadToBuffer(0, bytes, { abortSignal });
    return { status: 200, headers: { ...securityHeaders, "Content-Type": type }, body: image };
  }
  const told = { text: type === undefined ? textIn(first) : null, isWhole: first.length === bytes };
  return { status: 200, headers: { ...securityHeaders, "Content-Type": "application/json" }, body: Buffer.from(JSON.stringify(told)) };
}

/** Answers with all bytes of a blob, of one of its versions and snapshots, or of a table's entities, as a file to keep. */
export async function download(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<HttpResponse> {
  const format = exportFormats.find((each) => each === query.get("format"));
  if (format !== undefined) {
    const body = await exportTable(clients, query, format, abortSignal);
    return { status: 200, headers: fileHeaders(`${fieldIn(query, "table")}.${format}`), body };
  }
  const client = pastOf(await blobIn(clients, query), Object.fromEntries(query));
  const { readableStreamBody, contentLength } = await client.download(0, undefined, { abortSignal });
  const name = fieldIn(query, "name").split("/").at(-1)?.toWellFormed() || "blob";
  return {
    status: 200,
    headers: { ...fileHeaders(name), "Content-Length": String(contentLength ?? 0) },
    body: (readableStreamBody ?? []) as AsyncIterable<Uint8Array>,
  };
}

const fileHeaders = (name: string): Readonly<Record<string, string>> => ({
  ...securityHeaders,
  "Content-Security-Policy": "default-src 'none'; sandbox",
  "Content-Type": "application/octet-stream",
  "Content-Disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name).replaceAll(/['()*]/g, escaped)}`,
});

const escaped = (each: string): string => `%${each.charCodeAt(0).toString(16).toUpperCase()}`;

/** How files of a type begin, in Latin-1. No type in here can hold a script. */
const images: readonly (readonly [string, RegExp])[] = [
  ["image/png", /^\x89PNG\r\n/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/gif", /^GIF8[79]a/],
  ["image/webp", /^RIFF....WEBP/s],
  ["image/avif", /^....ftypavif/s],
];

/** Type of an image that the page shows; undefined for anything else. */
export function imageTypeOf(first: Buffer): string | undefined {
  const head = first.subarray(0, 16).toString("latin1");
  return images.find(([, begins]) => begins.test(head))?.[0];
}

/** Text of the bytes; null if they are not UTF-8 or have a NUL. The last character may be cut. */
export function textIn(first: Buffer): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(first, { stream: true });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
