/** Every class of this package against a running stamp, through the unmodified SDKs. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import { type Stamp, startStamp } from "@stamp/embedded";
import {
  BlobDistributedMutex,
  BlobGlobalFlag,
  BlobOptimisticSyncStore,
  CorruptCounterError,
  FencedError,
  LeaderElector,
  LeaseBlobInUseError,
  LeaseLostError,
  PollingRelease,
  processQueue,
  putFenced,
  putLastWriterWins,
  type QueueMessage,
  TableOptimisticSyncStore,
  UniqueIdGenerator,
  updateBlob,
  updateEntity,
  withLease,
} from "./index.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (content: Uint8Array | undefined): string => new TextDecoder().decode(content);

describe("coordination over a running stamp", () => {
  let stamp: Stamp;
  let blobs: BlobServiceClient;
  let used = 0;
  const container = (): ContainerClient => blobs.getContainerClient(`box${used++}`);
  const table = (): TableClient =>
    TableClient.fromConnectionString(stamp.connectionString, `table${used++}`, { allowInsecureConnection: true });

  before(async () => {
    stamp = await startStamp();
    blobs = BlobServiceClient.fromConnectionString(stamp.connectionString);
  });
  after(async () => {
    await stamp.stop();
  });

  test("eight processes start at once without a counter: blob or entity is created once, no id twice", async () => {
    const there = container();
    const entities = table();
    const stores = [() => new BlobOptimisticSyncStore(there, "orders"), () => new TableOptimisticSyncStore(entities, "ids", "orders")];
    for (const store of stores) {
      const generators = Array.from({ length: 8 }, () => new UniqueIdGenerator(store(), { rangeSize: 10 }));
      const ids = await Promise.all(generators.flatMap((each) => Array.from({ length: 25 }, () => each.nextId())));
      assert.equal(new Set(ids).size, 200);
      assert.ok(ids.every((id) => id >= 0n && id < 400n));
    }
  });

  test("a counter that was spoiled by hand: the error names it and quotes it", async () => {
    const there = container();
    await there.create();
    await there.getBlockBlobClient("spoiled").upload("abc", 3);
    await there.getBlockBlobClient("empty").upload("", 0);
    const of = (name: string) => new UniqueIdGenerator(new BlobOptimisticSyncStore(there, name)).nextId();
    await assert.rejects(of("spoiled"), (error) => error instanceof CorruptCounterError && /spoiled holds "abc"/.test(error.message));
    await assert.rejects(of("empty"), CorruptCounterError);
  });

  test("the mutex: two processes take turns, tokens rise, the record names the holder", async () => {
    const there = container();
    const where = { container: there, blobName: "leader" };
    const [a, b] = ["a", "б/ü"].map((name) => new BlobDistributedMutex(where, { name, leaseSeconds: 15, acquireEveryMs: 50 }));
    assert.ok(a !== undefined && b !== undefined);
    assert.equal(await a.holder(), undefined);
    let inside = 0;
    const enter = async (_: AbortSignal, { fencingToken }: { fencingToken: bigint }) => {
      assert.equal(++inside, 1);
      await delay(100);
      inside--;
      return fencingToken;
    };
    const tokens = await Promise.all([a, b, a, b].map((mutex) => mutex.runTaskWhenMutexAcquired(enter)));
    const [first = 0n] = tokens.sort();
    assert.deepEqual(
      tokens.map((token) => token - first),
      [0n, 1n, 2n, 3n],
    );
    const fencingToken = first + 4n;
    await b.runTaskWhenMutexAcquired(async () => assert.deepEqual(await a.holder(), { leader: "б/ü", fencingToken, held: true }));
    assert.deepEqual(await a.holder(), { leader: "б/ü", fencingToken, held: false });
  });

  test("the container of lease and counter is deleted and made anew: tokens go on rising, numbers are not given twice", async () => {
    const there = container();
    const mutex = () => new BlobDistributedMutex({ container: there, blobName: "leader" }, { leaseSeconds: 15, acquireEveryMs: 50 });
    const led = () => mutex().runTaskWhenMutexAcquired(async (_, { fencingToken }) => fencingToken);
    const generator = new UniqueIdGenerator(new BlobOptimisticSyncStore(there, "ids"), { rangeSize: 2, prefetchShare: 0 });
    assert.deepEqual([await generator.nextId(), await generator.nextId()], [0n, 1n]);
    const before = [await led(), await led()];
    await there.delete();
    const after = await led();
    assert.ok(
      before.every((token) => token < after),
      `${before} then ${after}`,
    );
    // Neither the missing counter nor a lower one gives a range.
    const lower = (error: unknown) => error instanceof CorruptCounterError && /were reserved already/.test(error.message);
    await assert.rejects(generator.nextId(), lower);
    await there.getBlockBlobClient("ids").upload("1", 1);
    await assert.rejects(generator.nextId(), lower);
    await there.getBlockBlobClient("ids").upload("100", 3);
    assert.equal(await generator.nextId(), 100n);
  });

  test("what the caller's change throws is the caller's, also if it is an error of the service", async () => {
    let calls = 0;
    const missing = () => {
      calls++;
      return there.getBlobClient("missing").downloadToBuffer();
    };
    const there = container();
    await assert.rejects(updateBlob(there, "page", missing), { name: "RestError", statusCode: 404 });
    assert.equal(calls, 1);
  });

  test("the lease is broken: the task hears of it with the next renewal, and its writes are fenced", async () => {
    const there = container();
    const where = { container: there, blobName: "leader" };
    const mutex = new BlobDistributedMutex(where, { leaseSeconds: 15, acquireEveryMs: 50 });
    const other = new BlobDistributedMutex(where, { leaseSeconds: 15, acquireEveryMs: 50 });
    let runs = 0;
    await mutex.runTaskWhenMutexAcquired(async (signal, held) => {
      if (++runs === 2) return;
      await putFenced(there, "result", bytes("first"), held.fencingToken);
      await there.getBlobClient("leader").getBlobLeaseClient(held.leaseId).breakLease(0);
      await other.runTaskWhenMutexAcquired((_, later) => putFenced(there, "result", bytes("second"), later.fencingToken));
      await assert.rejects(putFenced(there, "result", bytes("stale"), held.fencingToken), FencedError);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      assert.ok(signal.reason instanceof LeaseLostError);
    });
    assert.equal(text(await there.getBlobClient("result").downloadToBuffer()), "second");
  });

  test("a lease blob that holds somebody's data is refused and left as it was", async () => {
    const there = container();
    await there.create();
    await there.getBlockBlobClient("data").upload("precious", 8);
    await there.getBlockBlobClient("marked").upload("", 0, { metadata: { owner: "me" } });
    for (const blobName of ["data", "marked"]) {
      const mutex = new BlobDistributedMutex({ container: there, blobName });
      await assert.rejects(
        mutex.runTaskWhenMutexAcquired(async () => assert.fail("ran")),
        LeaseBlobInUseError,
      );
      const { leaseState } = await there.getBlobClient(blobName).getProperties();
      assert.equal(leaseState, "available");
    }
    assert.equal(text(await there.getBlobClient("data").downloadToBuffer()), "precious");
  });

  test("an elector is elected, stops when it is told, and leaves the lease to others", async () => {
    const there = container();
    const elector = new LeaderElector({ container: there, blobName: "leader" }, { name: "one", leaseSeconds: 15 });
    const stop = new AbortController();
    const events: string[] = [];
    elector.on("elected", ({ fencingToken }) => events.push(fencingToken > 0n ? "elected" : "elected without a token"));
    elector.on("lost", ({ reason }) => events.push(`lost: ${reason}`));
    await elector.run(async (signal) => {
      assert.equal(elector.isLeader, true);
      stop.abort("told to");
      signal.throwIfAborted();
    }, stop.signal);
    assert.deepEqual(events, ["elected", "lost: told to"]);
    assert.equal(elector.isLeader, false);
    assert.equal((await elector.leader())?.held, false);
  });

  test("a flag: absent container, set, seen, cleared twice", async () => {
    const flag = new BlobGlobalFlag(container(), "start");
    assert.equal(await flag.isSet(), false);
    await flag.clear();
    const waiting = new PollingRelease(flag, { intervalMs: 20 }).wait({ deadlineMs: 60_000 });
    await flag.set();
    await waiting;
    await flag.clear();
    assert.equal(await flag.isSet(), false);
  });

  test("twenty writers change one blob: every change is in it once, headers and metadata stay", async () => {
    const there = container();
    const increment = () => updateBlob(there, "count", (content) => bytes(String(Number(text(content)) + 1)), { maxRetries: 1_000 });
    await Promise.all(Array.from({ length: 5 }, increment));
    await there.getBlobClient("count").setHTTPHeaders({ blobContentType: "text/x-count", blobCacheControl: "no-store" });
    await Promise.all(Array.from({ length: 15 }, increment));
    assert.equal(text(await there.getBlobClient("count").downloadToBuffer()), "20");
    const { contentType, cacheControl } = await there.getBlobClient("count").getProperties();
    assert.deepEqual([contentType, cacheControl], ["text/x-count", "no-store"]);
    assert.equal(await updateBlob(there, "never", () => undefined), undefined);
    assert.equal(await there.getBlobClient("never").exists(), false);
  });

  test("a change whose answer was lost is not made twice", async () => {
    const there = container();
    let lost = 0;
    const faulty = blobs.getContainerClient(there.containerName);
    const blob = faulty.getBlockBlobClient("count");
    const upload = blob.upload.bind(blob);
    blob.upload = async (...given) => {
      const answer = await upload(...given);
      if (lost++ === 0) throw Object.assign(new Error("connection reset"), { name: "RestError", code: "REQUEST_SEND_ERROR" });
      return answer;
    };
    faulty.getBlockBlobClient = () => blob;
    await updateBlob(faulty, "count", (content) => bytes(String(Number(text(content)) + 1)));
    assert.equal(text(await there.getBlobClient("count").downloadToBuffer()), "1");
  });

  test("twenty writers change one entity; properties that nobody returns stay, with their types", async () => {
    const entities = table();
    const increment = () =>
      updateEntity(entities, "p", "r", (entity) => ({ count: Number(entity?.count ?? 0) + 1 }), { maxRetries: 1_000 });
    await increment();
    await entities.updateEntity({ partitionKey: "p", rowKey: "r", ratio: { type: "Double", value: "2.5" } }, "Merge");
    await Promise.all(Array.from({ length: 19 }, increment));
    const entity = await entities.getEntity<Record<string, unknown>>("p", "r", { disableTypeConversion: true });
    assert.deepEqual(entity.count, { type: "Int32", value: "20" });
    assert.equal((entity.ratio as { type: string }).type, "Double");
  });

  test("under a lease others are refused; last writer wins without one", async () => {
    const there = container();
    const blob = there.getBlockBlobClient("page");
    await withLease(there, "page", async (lease) => {
      await assert.rejects(putLastWriterWins(blob, bytes("other")), { statusCode: 412 });
      await blob.upload("mine", 4, { conditions: { leaseId: lease.leaseId } });
    });
    await putLastWriterWins(blob, bytes("last"));
    assert.equal(text(await blob.downloadToBuffer()), "last");
    const entities = table();
    await entities.createTable();
    await putLastWriterWins(entities, { partitionKey: "p", rowKey: "r" });
  });

  test("a queue: every message is handled, poison is set aside, an abort drains", async () => {
    const queues = QueueServiceClient.fromConnectionString(stamp.connectionString);
    const queue = queues.getQueueClient(`line${used++}`);
    const poison = queues.getQueueClient(`line${used++}`);
    await queue.create();
    for (let sent = 0; sent < 20; sent++) await queue.sendMessage(sent === 7 ? "poison" : `message ${sent}`);
    const stop = new AbortController();
    const handled = new Set<string>();
    const aside: QueueMessage[] = [];
    await processQueue(
      queue,
      async (message) => {
        if (message.text === "poison") throw new Error("can't be handled");
        await delay(5);
        handled.add(message.text);
      },
      stop.signal,
      {
        concurrency: 8,
        visibilitySeconds: 2,
        dequeueCountMax: 1,
        emptyDelayMaxMs: 50,
        poisonQueue: poison,
        onPoison: (message) => {
          aside.push(message);
          setImmediate(() => stop.abort());
        },
      },
    );
    assert.equal(handled.size, 19);
    assert.equal(aside.length, 1);
    const { peekedMessageItems } = await poison.peekMessages();
    assert.deepEqual(
      peekedMessageItems.map(({ messageText }) => messageText),
      ["poison"],
    );
    const { approximateMessagesCount } = await queue.getProperties();
    assert.equal(approximateMessagesCount, 0);
  });

  test("a handler that takes longer than the visibility keeps its message; one whose message is taken is told", async () => {
    const queue = QueueServiceClient.fromConnectionString(stamp.connectionString).getQueueClient(`line${used++}`);
    await queue.create();
    await queue.sendMessage("long");
    const stop = new AbortController();
    let others = 0;
    await processQueue(
      queue,
      async (_, signal) => {
        await delay(3_500);
        assert.equal(signal.aborted, false);
        others = (await queue.receiveMessages()).receivedMessageItems.length;
        stop.abort();
      },
      stop.signal,
      { visibilitySeconds: 2 },
    );
    assert.equal(others, 0);
    await queue.sendMessage("stolen");
    const again = new AbortController();
    let told = false;
    await processQueue(
      queue,
      async (_, signal) => {
        await queue.clearMessages();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        told = true;
        again.abort();
      },
      again.signal,
      { visibilitySeconds: 2 },
    );
    assert.equal(told, true);
  });
});
