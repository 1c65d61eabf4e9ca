/** The checking client against a server of a few lines that keeps its promises, and against ones that break one each. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { BlobClient } from "./blob-client.ts";
import { CheckingClient, type CheckingOptions, type CheckingReport } from "./checking-client.ts";

interface Lie {
  /** An acknowledged write that is not kept. */
  readonly loses?: (name: string, number: number) => boolean;
  readonly damages?: (name: string, number: number) => boolean;
  /** Accepts a write whatever its ETag, and forgets it. */
  readonly staleCounter?: boolean;
  /** Carries the write out, but breaks the connection before the answer. */
  readonly dropsAnswer?: (number: number) => boolean;
  readonly refuses?: (number: number) => boolean;
}

const enoughPuts = 80;
const enoughPacedPuts = 8;

async function run(lie: Lie): Promise<CheckingReport> {
  return await runWith(lie, { smallWriters: 2, counters: 1, largePauseMs: 50 }, (checking) => checking.verify());
}

async function runWith<T>(lie: Lie, options: Partial<CheckingOptions>, found: (checking: CheckingClient) => Promise<T>): Promise<T> {
  const blobs = new Map<string, Buffer>();
  let puts = 0;
  let counterPuts = 0;
  const etag = (bytes: Buffer): string => `"${createHash("md5").update(bytes).digest("hex")}"`;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const name = request.url ?? "";
    const answer = (status: number, headers: Record<string, string> = {}, bytes?: Buffer): void =>
      void response.writeHead(status, headers).end(bytes);
    if (name.includes("restype=container")) return answer(201);
    const held = blobs.get(name);
    if (request.method === "GET") return held === undefined ? answer(404) : answer(200, { etag: etag(held) }, held);
    const number = ++puts;
    if (lie.refuses?.(number) === true) return answer(503);
    const wanted = request.headers["if-match"];
    const isCounter = name.includes("counter");
    if ((wanted !== undefined && wanted !== (held && etag(held))) || (request.headers["if-none-match"] === "*" && held)) return answer(412);
    if (lie.staleCounter === true && isCounter && ++counterPuts === 3) return answer(201);
    if (lie.loses?.(name, number) !== true)
      blobs.set(name, lie.damages?.(name, number) === true ? Buffer.from(body).fill(7, 100, 101) : body);
    if (lie.dropsAnswer?.(number) === true) return void request.socket.destroy();
    answer(201, { etag: etag(body) });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acct`;
  const client = new BlobClient({ endpoint, account: "acct", key: "QUJD" });
  const checking = new CheckingClient({ client, container: "c", ...options });
  try {
    await checking.start();
    const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    await pause(400);
    // A busy machine writes slowly: for as long as it takes, up to a minute.
    const wanted = options.pauseMs === undefined ? enoughPuts : enoughPacedPuts;
    for (let waited = 0; puts < wanted && waited < 600; waited++) await pause(100);
    await checking.stop(2_000);
    return await found(checking);
  } finally {
    client.close();
    server.closeAllConnections();
    server.close();
  }
}

test("checking client, a server that keeps its promises: nothing is broken, everything was read back", async () => {
  const report = await run({});
  assert.deepEqual(report.broken, []);
  assert.ok(report.small.acknowledged > 10 && report.large.acknowledged > 0 && report.counter.acknowledged > 5);
  assert.equal(report.readBack, report.small.acknowledged + report.large.acknowledged + 1);
});

for (const [what, one] of Object.entries({ "a writer": { smallWriters: 1, counters: 0 }, "a counter": { smallWriters: 0, counters: 1 } }))
  test(`checking client, ${what} that is told a pace: keeps it, and the pause counts to no write`, async () => {
    const pauseMs = 30;
    const times = await runWith({}, { ...one, largeWriters: 0, pauseMs }, (checking) => Promise.resolve(checking.times));
    assert.ok(times.length >= enoughPacedPuts);
    const pauses = times.slice(1).map(({ startMs }, at) => startMs - (times[at]?.endMs ?? 0));
    // setTimeout may come a millisecond early.
    assert.ok(Math.min(...pauses) >= pauseMs - 1, pauses.join(" "));
  });

test("checking client, answers that are lost and refusals that pass: unknown is not broken", async () => {
  const report = await run({ dropsAnswer: (number) => number % 7 === 0, refuses: (number) => number % 11 === 0 });
  assert.deepEqual(report.broken, []);
  assert.ok(report.small.unknown + report.counter.unknown > 0);
  assert.ok(report.small.refused + report.counter.refused > 0);
});

test("checking client, one acknowledged blob is lost: told", async () => {
  const report = await run({ loses: (name) => name.endsWith("small-1-3") });
  assert.match(report.broken.join("\n"), /small-1-3 was acknowledged, but reading it .* gives 404/);
});

test("checking client, one byte of one blob is another: told", async () => {
  const report = await run({ damages: (name) => name.endsWith("large-0-0") });
  assert.match(report.broken.join("\n"), /large-0-0: other bytes than were written/);
});

test("checking client, an acknowledged counter write is forgotten: told", async () => {
  const report = await run({ staleCounter: true });
  assert.match(report.broken.join("\n"), /counter-0 is \d+ \(200\), but only \d+ can be/);
});
