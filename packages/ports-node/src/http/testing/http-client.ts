/** Clients for tests of the HTTP server: whole requests, raw bytes, and bytes that come slowly. */
import { type Agent, type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import type { HttpHandler } from "@stamp/ports";
import type { HttpLimits } from "../http-limits.ts";
import { serveHttp } from "../http-server.ts";

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1));

export async function started(t: TestContext, handler: HttpHandler, limits: Partial<HttpLimits> = {}): Promise<number> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0", limits });
  t.after(() => listener.close(0));
  return portOf(listener.address);
}

export function ask(
  port: number,
  options: { method?: string; path?: string; headers?: Record<string, string>; agent?: Agent; body?: Buffer },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const outgoing = request({ host: "127.0.0.1", port, agent: false, ...rest }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          rawHeaders: incoming.rawHeaders,
          body: Buffer.concat(chunks),
        }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Waits for the end of a socket. Unlike `once` it does not reject when the peer resets the connection. */
export const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("close", () => resolve()));

/** Sends raw bytes and gives all that comes until the server closes. */
export async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.write(text);
  await closed(socket);
  return received;
}

export const readBody = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** Statuses and bodies of what a server sent on one connection. */
export const answersIn = (text: string): string[] =>
  text.split(/(?=HTTP\/1\.1 \d)/).map((one) => `${one.slice(9, 12)} ${one.slice(one.indexOf("\r\n\r\n") + 4)}`.trim());
