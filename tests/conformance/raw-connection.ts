/** Requests as no HTTP library writes them: what goes over a connection of its own, byte for byte, and what comes back. */
import { createHmac } from "node:crypto";
import { connect } from "node:net";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import type { Clients } from "./target.ts";

export interface RawRequest {
  readonly method: string;
  /** Behind the account, or with a `host` that has the account: the whole of it. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How a header's name is written. */
  readonly written?: (name: string) => string;
  /** Of the account in the host's name; the path has none then. */
  readonly host?: string;
  /** The request line and the Host header say this instead of the path; what is signed stays the path. */
  readonly asked?: { readonly target: string; readonly host?: string };
  /** The request does not say how long its body is. */
  readonly withoutLength?: boolean;
  /** The body goes when the server says that it wants it. */
  readonly waitsFor100?: boolean;
}

/** Time after which this side ends the connection of a request that lacks bytes of its body, in milliseconds. */
const shortBodyEndsAfterMs = 300;

/** Signed rightly. Everything that the server sends until it or this side closes the connection. */
export function rawExchange(clients: Clients, request: RawRequest): Promise<string> {
  const { endpoint, accountName, accountKey } = clients.target;
  const url = new URL(endpoint);
  const { method, body = "", written = (name) => name, waitsFor100 = false } = request;
  const target = request.host === undefined ? `/${accountName}${request.path}` : request.path;
  const length = request.withoutLength ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const headers = signRequest(
    { method, target, headers: { ...length, ...request.headers } },
    accountName,
    fromBase64(accountKey) as Uint8Array,
    Date.now(),
    (key, message) => createHmac("sha256", key).update(message).digest(),
  );
  const all: Record<string, string> = { host: request.asked?.host ?? request.host ?? url.host, connection: "close", ...headers };
  // A whole request is left to the server, which closes the connection when it has answered, however long that takes.
  const lacksBytes = Number(all["content-length"] ?? 0) > Buffer.byteLength(body);
  const head = Object.entries(all).map(([name, value]) => `${written(name)}: ${value}\r\n`);
  return new Promise((resolve) => {
    let answer = "";
    let ending: NodeJS.Timeout | undefined;
    const send = (): void => {
      socket.write(body);
      if (lacksBytes) ending = setTimeout(() => socket.end(), shortBodyEndsAfterMs);
    };
    const socket = connect(Number(url.port), url.hostname.replace(/^\[|\]$/g, ""), () => {
      socket.write(`${method} ${request.asked?.target ?? target} HTTP/1.1\r\n${head.join("")}\r\n`);
      if (!waitsFor100) send();
    });
    const giveUp = setTimeout(() => socket.destroy(), 60_000);
    socket.on("data", (data) => {
      const before = answer;
      answer += data.toString("latin1");
      if (!waitsFor100 || before.includes("\r\n\r\n") || !answer.includes("\r\n\r\n")) return;
      // Without its 100 the body does not go, and the server would wait for it.
      if (/^HTTP\/1\.1 100 /.test(answer)) send();
      else socket.end();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(giveUp);
      clearTimeout(ending);
      resolve(answer);
    });
  });
}
