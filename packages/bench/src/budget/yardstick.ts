/**
 * The yardstick of `stamp bench --budget`: a server that does nothing but what every store has to. It takes a body over HTTP, hashes it, appends it to
 * three files, syncs them for all requests that wait together, and answers; or it answers with a body. What the machine does to the cluster (a slower
 * processor, shared caches, batches that get smaller as it gets busier) it does to this server too, so the quotient of the two stays.
 *
 * It never changes: a change of it is a change of every budget.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "stamp-yardstick-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const copies = 3;
/** Size of a file, in bytes. It is written before anything is measured and then over and over: new pages cost more than those that are there. */
const fileBytes = 32 * 1024 * 1024;

class Log {
  readonly #files: readonly FileHandle[];
  #at = 0;
  #waiting: { readonly body: Buffer; readonly done: () => void }[] = [];
  #running = false;

  constructor(files: readonly FileHandle[]) {
    this.#files = files;
  }

  append(body: Buffer): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ body, done });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const bodies = batch.map(({ body }) => body);
      const bytes = bodies.reduce((sum, { length }) => sum + length, 0);
      if (this.#at + bytes > fileBytes) this.#at = 0;
      const at = this.#at;
      this.#at += bytes;
      await Promise.all(
        this.#files.map(async (file) => {
          await file.writev(bodies, at);
          await file.datasync();
        }),
      );
      for (const { done } of batch) done();
    }
    this.#running = false;
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

const files = await Promise.all(Array.from({ length: copies }, (_, i) => open(join(folder, `copy-${i}`), "w")));
for (const file of files) {
  await file.write(Buffer.alloc(fileBytes), 0, fileBytes, 0);
  await file.datasync();
}
const log = new Log(files);
/** Bodies of answers, by their length in bytes. */
const held = new Map<string, Buffer>();

const server = createServer(async (request, response) => {
  const length = request.url?.slice(1) ?? "0";
  if (request.method === "PUT") {
    const body = await bodyOf(request);
    createHash("md5").update(body).digest();
    await log.append(body);
    response.writeHead(201).end();
    return;
  }
  let body = held.get(length);
  if (body === undefined) {
    body = Buffer.alloc(Number(length), 7);
    held.set(length, body);
  }
  response.writeHead(200, { "content-length": length }).end(body);
});
// Connections rest while the cluster has its turn.
server.keepAliveTimeout = 10 * 60_000;
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
process.stdin.on("end", () => process.exit(0)).resume();
