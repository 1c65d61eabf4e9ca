/** Answers to what is no request, or is one too many: the last of their connections. */
import type { Duplex } from "node:stream";
import type { HttpRefusal, HttpResponse } from "@stamp/ports";
import type { LastAnswer } from "./http-exchange.ts";
import { http } from "./node-http.ts";

export function lastAnswer({
  status,
  reason,
  headers,
  body = new Uint8Array(0),
}: HttpResponse & { readonly body?: Uint8Array }): LastAnswer {
  const all = { ...headers, "Content-Length": String(body.length), Connection: "close" };
  const named = reason ?? http.STATUS_CODES[status] ?? "";
  return {
    status,
    reason: named,
    body,
    headers: Object.entries(all).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one])),
  };
}

/** Keyed by the parser's code; any other is "malformed". */
export const refusals: Readonly<Record<string, HttpRefusal>> = {
  HPE_INVALID_METHOD: "verb",
  HPE_INVALID_URL: "target",
  HPE_INVALID_HEADER_TOKEN: "header",
  HPE_HEADER_OVERFLOW: "headersTooLarge",
  HPE_INVALID_CONTENT_LENGTH: "contentLength",
  HPE_UNEXPECTED_CONTENT_LENGTH: "contentLength",
  HPE_INVALID_TRANSFER_ENCODING: "transferEncoding",
  ERR_HTTP_REQUEST_TIMEOUT: "late",
};

export const statuses: Partial<Record<HttpRefusal, number>> = { headersTooLarge: 431, late: 408, expectation: 417, pipelined: 503 };

export function endRefused(socket: Duplex, { status, reason, headers, body }: LastAnswer): void {
  if (!socket.writable) return;
  socket.on("error", () => {});
  let head = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.write(`${head}\r\n`);
  socket.end(body);
}
