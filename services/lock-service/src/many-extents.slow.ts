/**
 * A lock service with many extents: STAMP_EXTENTS=1000000 node --test services/lock-service/src/many-extents.slow.ts. A store of the earlier
 * format is written with the records of so many extents (a segment for each 1,000), then a lock service in a child process takes it over,
 * starts again, and gives a snapshot while a lease is renewed every 20 ms. Then a stream manager of its own process loads all of it and leads.
 * Tells start times, memory, the longest turn of the event loop and the slowest renewal (docs/guides/metadata.md has what was measured).
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { concatBytes, extentId, extentVersion, frameRecord, ownerEpoch, unwrap, utf8 } from "@stamp/base";
import { inMemory, verifySnapshot } from "@stamp/metadata-store";
import { type KeyValueOperation, silentLogger } from "@stamp/ports";
import { NodeDigest, NodeKeyValueStores, nodeWorld } from "@stamp/ports-node";
import { encodeStored, extentKey, segmentKey } from "@stamp/stream";
import { fromWire, LockService, MetadataStore, toWire } from "@stamp/wire";
import { lockServiceSchema } from "./config.ts";
import { LockServiceRole } from "./lock-service.ts";

const digest = new NodeDigest();
const checksum = (bytes: Uint8Array): number => digest.crc32c(bytes);
const stored = (key: string, value: Uint8Array): KeyValueOperation => {
  const payload = new Uint8Array(8 + value.length);
  payload[7] = 1;
  payload.set(value, 8);
  return { kind: "put", key: utf8(`k/${key}`), value: frameRecord(0x4b, 1, payload, checksum) };
};

async function make(dataDir: string, extents: number): Promise<void> {
  const opened = await new NodeKeyValueStores(join(dataDir, "stores")).open("metadata");
  if (opened.kind !== "opened") throw new Error(opened.message);
  const version = new Uint8Array(8);
  version[7] = 1;
  let batch: KeyValueOperation[] = [
    { kind: "put", key: utf8("stamp"), value: frameRecord(0x53, 1, utf8(JSON.stringify({ stampId: "b" })), checksum) },
    { kind: "put", key: utf8("version"), value: frameRecord(0x56, 1, version, checksum) },
  ];
  const place = (i: number) => ({ nodeId: `extent-node-${(i % 40) + 1}`, diskId: `5d0f5f9e-2d5f-4a37-9a63-0000000000${10 + (i % 40)}` });
  for (let i = 1; i <= extents; i++) {
    const replicas = [0, 1, 2].map((more) => ({ ...place(i + more), complete: true }));
    const record = {
      id: extentId(i),
      phase: "sealed" as const,
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(7),
      stream: `range/${i % 400}/data`,
      replicas,
      sealedLengthBytes: 134_217_728,
      checksum: i,
      removed: [],
    };
    batch.push(stored(extentKey(record.id), encodeStored({ kind: "extent", record }, checksum)));
    if (i % 1_000 === 0) {
      const ids = Array.from({ length: 1_000 }, (_, j) => extentId(i - j));
      batch.push(stored(segmentKey(i), encodeStored({ kind: "segment", id: i, extents: ids }, checksum)));
    }
    if (batch.length < 2_000 && i < extents) continue;
    await opened.store.batch(batch, { sync: i === extents });
    batch = [];
  }
  await opened.store.close();
}

async function childMain(): Promise<void> {
  const dataDir = process.env.STAMP_METADATA_BENCH as string;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startMs = performance.now();
  const world = nodeWorld({ dataDir, name: "lock-service-1", logger: silentLogger });
  const role = new LockServiceRole(world, lockServiceSchema.parse({ listen: "127.0.0.1:0", dataDir, init: true }));
  await role.start();
  const facts = () => {
    const longest = delay.max / 1e6;
    delay.reset();
    const { heapUsed, rss } = process.memoryUsage();
    return {
      longestTurnMs: Math.round(longest),
      heapMiB: heapUsed >> 20,
      rssMiB: Math.round(rss / 2 ** 20),
      peakMiB: process.resourceUsage().maxRSS >> 10,
    };
  };
  process.send?.({
    address: role.address,
    ready: role.status.ready,
    waitingFor: role.status.waitingFor,
    startMs: Math.round(performance.now() - startMs),
    ...facts(),
  });
  process.on("message", async (message) => {
    if (message === "facts") process.send?.(facts());
    else {
      await role.stop();
      process.exit(0);
    }
  });
}

const ask = async (child: ChildProcess, message: string): Promise<Record<string, unknown>> => {
  child.send(message);
  return (await once(child, "message"))[0] as Record<string, unknown>;
};

/** Starts a stream manager over the lock service at `address` and ends it when it leads. */
async function leads(address: string, dataDir: string): Promise<Record<string, unknown>> {
  const program = join(import.meta.dirname, "../../stream-manager/src/main.ts");
  const flags = ["--lock-service", address, "--listen", "127.0.0.1:0", "--data-dir", dataDir];
  const startMs = performance.now();
  const child = spawn(process.execPath, [program, ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    let loadedMs: unknown;
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg: message, tookMs, extents } = JSON.parse(line) as { msg: string; tookMs?: number; extents?: number };
      if (message === "the metadata is loaded") loadedMs = tookMs;
      if (message !== "this stream manager leads") continue;
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      const mebibytes = (name: string): number => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024);
      return {
        extents,
        loadedMs,
        leadsAfterMs: Math.round(performance.now() - startMs),
        rssMiB: mebibytes("VmRSS"),
        peakMiB: mebibytes("VmHWM"),
      };
    }
    throw new Error("the stream manager ended");
  } finally {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
}

async function measured(t: TestContext, extents: number): Promise<void> {
  const dataDir = await mkdtemp(join(process.env.TMPDIR ?? tmpdir(), "stamp-metadata-bench-"));
  try {
    await make(dataDir, extents);
    const started = async (): Promise<[ChildProcess, Record<string, unknown>]> => {
      const child = fork(import.meta.filename, { env: { ...process.env, STAMP_METADATA_BENCH: dataDir, NODE_TEST_CONTEXT: "" } });
      return [child, (await once(child, "message"))[0] as Record<string, unknown>];
    };
    const [first, adopted] = await started();
    t.diagnostic(`${extents} extents; first start: ${JSON.stringify(adopted)}`);
    first.send("stop");
    await once(first, "exit");
    const [child, again] = await started();
    t.diagnostic(`next start: ${JSON.stringify(again)}`);
    const world = nodeWorld({ dataDir: join(dataDir, "client"), name: "client", logger: silentLogger });
    const address = again.address as string;
    const leases = world.transport.client(address, LockService);
    const metadata = world.transport.client(address, MetadataStore);
    const request = { name: "l", holder: "h", identity: "i", instance: "j", incarnation: 1n, address: "a", termMs: 60_000, stampId: "" };
    const { leaseEpoch } = unwrap(await leases.acquireLease(request, { timeoutMs: 20_000 }));
    let slowestMs = 0;
    let reading = true;
    const renewing = (async () => {
      while (reading) {
        const sinceMs = performance.now();
        unwrap(await leases.renewLease({ name: "l", leaseEpoch }, { timeoutMs: 60_000 }));
        slowestMs = Math.max(slowestMs, performance.now() - sinceMs);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const startMs = performance.now();
    let [offset, sum, total] = [0, 0, 1];
    let refusal = "";
    const parts: Uint8Array[] = [];
    while (offset < total) {
      const part = await metadata.readSnapshot({ offsetBytes: toWire(offset), checksum: sum, knownChecksum: 0 }, { timeoutMs: 120_000 });
      if (!part.ok) {
        if (part.failure.reason === "throttled") continue;
        refusal = part.failure.message;
        break;
      }
      sum = part.value.checksum;
      total = fromWire(part.value.totalBytes);
      offset += part.value.payload.length;
      parts.push(part.value.payload);
    }
    reading = false;
    await renewing;
    const tookMs = Math.round(performance.now() - startMs);
    const facts = await ask(child, "facts");
    t.diagnostic(`snapshot: ${JSON.stringify({ bytes: offset, refusal, tookMs, slowestRenewalMs: Math.round(slowestMs), ...facts })}`);
    t.diagnostic(`stream manager: ${JSON.stringify(await leads(address, join(dataDir, "stream-manager")))}`);
    child.send("stop");
    await once(child, "exit");
    assert.equal(refusal, "");
    const read = await verifySnapshot(inMemory(concatBytes(parts)), (bytes, seed) => digest.crc32c(bytes, seed));
    // Extents, segments, stamp, version; the lease is younger than the snapshot or not.
    assert.ok(read.ok && read.value.count >= extents + Math.floor(extents / 1_000) + 2);
    await world.transport.close();
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

if (process.env.STAMP_METADATA_BENCH !== undefined) await childMain();
else {
  test("lock service: many extents: it starts, and gives a whole snapshot while leases are renewed", (t) =>
    measured(t, Number(process.env.STAMP_EXTENTS ?? 20_000)));
}
