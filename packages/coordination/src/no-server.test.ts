/**
 * Every class against a closed port, and against a server that takes connections and never answers: an error that says what happened, an
 * abort that works, and no connection that stays open.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { QueueClient } from "@azure/storage-queue";
import {
  BlobDistributedMutex,
  BlobGlobalFlag,
  BlobOptimisticSyncStore,
  DeadlineError,
  GrpcSignalChannel,
  LeaderElector,
  ListeningRelease,
  PollingRelease,
  processQueue,
  putFenced,
  putLastWriterWins,
  Release,
  RetriesExhaustedError,
  TableOptimisticSyncStore,
  TimeoutError,
  UniqueIdGenerator,
  updateBlob,
  updateEntity,
  withLease,
} from "./index.ts";

const key = Buffer.alloc(64, 7).toString("base64");
const accountOn = (port: number): string =>
  `DefaultEndpointsProtocol=http;AccountName=nobody;AccountKey=${key};` +
  ["Blob", "Table", "Queue"].map((kind) => `${kind}Endpoint=http://127.0.0.1:${port}/nobody`).join(";");

interface Place {
  readonly container: ContainerClient;
  readonly table: TableClient;
  readonly queue: QueueClient;
  readonly channel: GrpcSignalChannel;
}

const shortMs = 300;

/**
 * Calls of a user with the shortest deadlines; the error with which each must end, with and without an answer from the
 * network.
 */
const deadlines: Readonly<Record<string, (place: Place) => Promise<unknown>>> = {
  "ids in a blob": ({ container }) => generator(new BlobOptimisticSyncStore(container, "ids")).nextId(),
  "ids in an entity": ({ table }) => generator(new TableOptimisticSyncStore(table, "a", "b")).nextId(),
  updateBlob: ({ container }) => updateBlob(container, "a", () => new Uint8Array(1), { attemptTimeoutMs: shortMs, maxRetries: 1 }),
  updateEntity: ({ table }) => updateEntity(table, "a", "b", () => ({}), { attemptTimeoutMs: shortMs, maxRetries: 1 }),
  putFenced: ({ container }) => putFenced(container, "a", new Uint8Array(1), 1n, undefined, shortMs),
  "mutex.holder": ({ container }) => mutex(container).holder(AbortSignal.timeout(shortMs)),
  "polling.wait": ({ container }) =>
    new PollingRelease(new BlobGlobalFlag(container, "a"), { intervalMs: 50 }).wait({ deadlineMs: shortMs }),
  "listening.wait": ({ channel }) => new ListeningRelease(channel, "a").wait({ deadlineMs: shortMs }),
  "release.wait": ({ container, channel }) => new Release(new BlobGlobalFlag(container, "a"), channel).wait({ deadlineMs: shortMs }),
  "release.release": ({ container, channel }) =>
    new Release(new BlobGlobalFlag(container, "a"), channel, { setTimeoutMs: shortMs }).release(),
  publish: ({ channel }) => channel.publish("a"),
};

/** Calls that wait until they are told to stop. */
const waits: Readonly<Record<string, (place: Place, signal: AbortSignal) => Promise<unknown>>> = {
  "ids in a blob": ({ container }, signal) => generator(new BlobOptimisticSyncStore(container, "ids")).nextId(signal),
  mutex: ({ container }, signal) => mutex(container).runTaskWhenMutexAcquired(async () => assert.fail("nobody gave the mutex"), signal),
  elector: ({ container }, signal) =>
    new LeaderElector({ container, blobName: "a" }, { leaseSeconds: 15 }).run(async () => assert.fail("nobody elected it"), signal),
  withLease: ({ container }, signal) =>
    withLease(container, "a", async () => assert.fail("nobody gave the lease"), { leaseSeconds: 15, signal }),
  updateBlob: ({ container }, signal) => updateBlob(container, "a", () => new Uint8Array(1), { signal }),
  updateEntity: ({ table }, signal) => updateEntity(table, "a", "b", () => ({}), { signal }),
  putFenced: ({ container }, signal) => putFenced(container, "a", new Uint8Array(1), 1n, signal),
  putLastWriterWins: ({ container }, signal) => putLastWriterWins(container.getBlockBlobClient("a"), new Uint8Array(1), signal),
  "polling.wait": ({ container }, signal) => new PollingRelease(new BlobGlobalFlag(container, "a")).wait({ signal }),
  "listening.wait": ({ channel }, signal) => new ListeningRelease(channel, "a").wait({ signal }),
  "release.wait": ({ container, channel }, signal) => new Release(new BlobGlobalFlag(container, "a"), channel).wait({ signal }),
  "release.release": ({ container, channel }, signal) => new Release(new BlobGlobalFlag(container, "a"), channel).release(signal),
  publish: ({ channel }, signal) => channel.publish("a", signal),
  processQueue: ({ queue }, signal) => processQueue(queue, async () => assert.fail("nobody gave a message"), signal),
};

const generator = (store: BlobOptimisticSyncStore | TableOptimisticSyncStore): UniqueIdGenerator =>
  new UniqueIdGenerator(store, { requestTimeoutMs: shortMs, maxRetries: 1 });
const mutex = (container: ContainerClient): BlobDistributedMutex =>
  new BlobDistributedMutex({ container, blobName: "a" }, { leaseSeconds: 15 });
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Waits until a test's own time is over: a call that never settles fails by its name and not as a test that hangs. */
async function within<T>(what: string, ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = delay(ms, undefined, { signal: over.signal }).then(() => assert.fail(`${what} has not settled after ${ms} ms`));
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
    late.catch(() => {});
  }
}

/** Open connections of the silent server, and how each began. */
const sockets = new Map<Socket, string>();
const silent = createServer((socket) => {
  sockets.set(socket, "");
  socket.once("data", (first) => void sockets.set(socket, first.toString("latin1", 0, 100)));
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
});
/** Nobody listens on this port. One that was free a moment ago can be given to another process. */
const closedPort = 1;

before(async () => {
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
});
after(() => {
  for (const socket of sockets.keys()) socket.destroy();
  silent.close();
});

function placeOn(port: number): Place {
  const account = accountOn(port);
  return {
    container: BlobServiceClient.fromConnectionString(account).getContainerClient("box"),
    table: TableClient.fromConnectionString(account, "box", { allowInsecureConnection: true }),
    queue: new QueueClient(account, "box"),
    channel: new GrpcSignalChannel({ addresses: [`127.0.0.1:${port}`], account: "nobody", accountKey: key, publishTimeoutMs: shortMs }),
  };
}

for (const [kind, portOf] of [
  ["a closed port", () => closedPort],
  ["a server that never answers", () => (silent.address() as AddressInfo).port],
] as const) {
  describe(kind, { concurrency: true }, () => {
    for (const [what, call] of Object.entries(deadlines)) {
      test(`${what} ends with an error that says so`, async () => {
        const place = placeOn(portOf());
        const error = await within(what, 20_000, call(place)).then(
          () => assert.fail(`${what} succeeded`),
          (thrown: unknown) => thrown,
        );
        place.channel.close();
        const known = [RetriesExhaustedError, TimeoutError, DeadlineError, AggregateError].some((each) => error instanceof each);
        assert.ok(known || /ECONNREFUSED|timeout/i.test(messageOf(error)), `${what}: ${error}`);
        assert.match(messageOf(error), /attempts|no answer|within|took|ECONNREFUSED|timeout/);
      });
    }
    for (const [what, call] of Object.entries(waits)) {
      test(`${what} ends when it is aborted`, async () => {
        const place = placeOn(portOf());
        const stop = new AbortController();
        const reason = new Error("the user stops");
        const running = call(place, stop.signal).then(
          () => undefined,
          (error: unknown) => error,
        );
        await delay(100);
        stop.abort(reason);
        const error = await within(what, 20_000, running);
        place.channel.close();
        // A worker and an elector return; a call that had failed already tells its own error.
        const ended =
          error === undefined ||
          error === reason ||
          messageOf(error) === reason.message ||
          /abort|ECONN|no front-end/i.test(messageOf(error));
        assert.ok(ended, `${what}: ${error}`);
      });
    }
  });
}

test("afterwards no connection to storage on the silent server is open, and one of gRPC at most", async () => {
  // grpc-js does not give up a connection whose HTTP/2 handshake is not answered when its client is closed: one for each address.
  const left = (): string[] => [...sockets.values()].filter((first) => !first.startsWith("PRI * HTTP/2.0"));
  for (let tries = 0; left().length > 0; tries++) {
    assert.ok(tries < 1_200, `connections are still open: ${JSON.stringify(left())}`);
    await delay(50);
  }
  assert.ok(sockets.size <= 1, `${sockets.size} connections of gRPC are open`);
});
