import assert from "node:assert/strict";
import { test } from "node:test";
import { RoomBeside } from "@stamp/admission";
import { allRules, type Failed, type Outcome, ok, refused, unknownOutcome } from "@stamp/base";
import { firstRangeOf, RangeMap } from "@stamp/partition-map";
import type { Clock, World } from "@stamp/ports";
import { NodeClock, NodeRandom } from "@stamp/ports-node";
import { restErrorOf } from "../objects/failures.ts";
import { CountedClock, settled } from "../testing/clock.ts";
import type { MapCache } from "./map-cache.ts";
import { type HostReach, type OperationKind, Router } from "./router.ts";

const served = (address: string, version = 1) =>
  new RangeMap(version, [
    { ...firstRangeOf("Blob"), server: address, serverAddress: address, loaded: true },
    { ...firstRangeOf("Account"), server: address, serverAddress: address, loaded: true },
  ]);

/** Time after which a server answers whose step is "late", in ms. */
const lateMs = 1_500;

/** A router whose servers answer by this script, one entry per call. */
function start(
  script: readonly (Failed | "done" | "hang" | "never" | "late")[],
  map: { current: RangeMap | undefined } = { current: served("ps") },
  clock: Clock = new NodeClock(),
  reach?: HostReach,
  room?: RoomBeside,
  result: object = { case: "done", value: {} },
  sharesMessages = false,
) {
  const calls: string[] = [];
  const watching = new Set<() => void>();
  const timeouts: number[] = [];
  const doubts: number[] = [];
  const answered = ok({ result: { kind: result }, places: [] });
  const answer = async (address: string, options: { timeoutMs: number }): Promise<Outcome<unknown>> => {
    timeouts.push(options.timeoutMs);
    const step = script[calls.push(address) - 1] ?? "done";
    if (step === "never") return new Promise(() => {});
    if (step === "late") return new Promise((resolve) => clock.after(lateMs, () => resolve(answered)));
    if (step === "hang") return unknownOutcome("deadlineExceeded", "timeout", "no answer");
    return step === "done" ? answered : step;
  };
  const transport = {
    sharesMessages,
    client: (address: string) => ({
      execute: (_: unknown, options: { timeoutMs: number }) => answer(address, options),
      writeData: (_: unknown, options: { timeoutMs: number }) => answer(address, options),
    }),
  };
  const logger = { info: () => {}, warn: () => {} };
  const world = { clock, random: new NodeRandom(), rules: allRules, transport, logger } as unknown as World;
  const cache = {
    get current() {
      return map.current;
    },
    newerThan: (_version: number, timeoutMs: number) =>
      new Promise<void>((resolve) => (reach === undefined ? setTimeout(resolve, timeoutMs) : clock.after(timeoutMs, resolve))),
    doubt: () => {
      doubts.push(clock.monotonicMs());
    },
    watch: (changed: () => void) => {
      watching.add(changed);
      return () => watching.delete(changed);
    },
  } as unknown as MapCache;
  const router = new Router(world, cache, { readAttemptTimeoutMs: 1000, room }, reach);
  const limits = (timeoutMs = 2000) => ({ deadlineMs: clock.monotonicMs() + timeoutMs });
  const change = (next: RangeMap): void => {
    map.current = next;
    for (const changed of [...watching]) changed();
  };
  return { router, calls, limits, timeouts, watching, change, doubts };
}

const name = { account: "acct", container: "c", containerIncarnation: 1n, blob: "b", snapshot: "" };
const write = { case: "deleteBlob", value: { name } } as const;
const readIt = { case: "getBlob", value: { name } } as const;
const lost = unknownOutcome("unavailable", "connectionLost", "the connection broke");
const wrongPartition = refused("failedPrecondition", "wrongPartition", "not here");

test("small operations that take long make the room for large bodies small; what large requests need does not", async () => {
  const content = (value: object) => ({ case: "content", value: { places: [], inline: new Uint8Array(0), ...value } });
  const inPlaces = { places: [{ extentId: 1n }] };
  const least: readonly (readonly [OperationKind, number, object?])[] = [
    [{ case: "putBlob", value: { name, body: inPlaces } }, 1_000],
    [{ case: "putBlockList", value: { name } }, 1_000],
    [{ case: "getContainer", value: { account: "acct", container: "c" } }, 1_000],
    [{ case: "startCopy", value: { name } }, 1_000],
    [{ case: "readParts", value: { name } }, 1_000],
    [{ case: "getBlob", value: { name, withoutContent: true, withoutKey: true } }, 1_000],
    [readIt, 1_000, content(inPlaces)],
    [readIt, 500, content({ inline: new Uint8Array(1) })],
    [{ case: "getBlob", value: { name, withoutContent: true } }, 500],
    [{ case: "putBlob", value: { name, body: { inline: new Uint8Array(1) } } }, 500],
    [write, 500],
  ];
  for (const [kind, roomBytes, result] of least) {
    const clock = new CountedClock();
    const room = new RoomBeside({ bytesMax: 1_000, bytesMin: 500, targetMs: { read: 2, write: 5 } });
    const { router, limits } = start(Array(40).fill("late"), undefined, clock, undefined, room, result);
    for (let i = 0; i < 3; i++) {
      const done = Array.from({ length: 12 }, () => router.execute(kind, limits()));
      await clock.pass(lateMs);
      for (const each of await Promise.all(done)) assert.ok(each.ok, kind.case);
    }
    void router.execute(kind, limits());
    await clock.pass(200);
    assert.equal(room.roomBytes(clock.monotonicMs()), roomBytes, `${kind.case} ${Object.keys(kind.value)}`);
  }
});

test("small operations that are refused or not answered in time are late", async () => {
  for (const [step, roomBytes] of [
    [refused("resourceExhausted", "overloaded", "too much"), 500],
    ["done", 1_000],
  ] as const) {
    const clock = new CountedClock();
    const room = new RoomBeside({ bytesMax: 1_000, bytesMin: 500, targetMs: { read: 2, write: 5 } });
    const { router, limits } = start(Array(400).fill(step), undefined, clock, undefined, room);
    for (let i = 0; i < 100; i++) {
      for (let j = 0; j < 4; j++) await router.execute(write, limits());
      await clock.pass(10);
    }
    assert.equal(room.roomBytes(clock.monotonicMs()), roomBytes);
  }
});

test("what certainly did not happen is asked again: stale map, another process's address, lost lease, no connection, loading", async () => {
  for (const failed of [
    wrongPartition,
    refused("unimplemented", "unknownMethod", "a process of another role"),
    refused("unauthenticated", "unauthorized", "a process of another stamp"),
    refused("unavailable", "leaseLost", "lease"),
    refused("unavailable", "connectFailed", "down"),
    refused("unavailable", "partitionLoading", "loading"),
  ]) {
    const { router, calls, limits } = start([failed, failed]);
    assert.ok((await router.execute(write, limits())).ok);
    assert.equal(calls.length, 3);
  }
});

test("a map that servers go on refusing is doubted; one that is only late is not", async () => {
  const stale = start(Array(20).fill(wrongPartition));
  assert.equal((await stale.router.execute(write, stale.limits(3_000))).ok, false);
  assert.ok(stale.doubts.length > 0);
  for (const script of [Array(3).fill(wrongPartition), Array(20).fill(refused("unavailable", "partitionLoading", "loading"))]) {
    const { router, limits, doubts } = start(script);
    await router.execute(write, limits(2_000));
    assert.deepEqual(doubts, []);
  }
});

test("a write whose fate is unknown is never repeated", async () => {
  const { router, calls, limits } = start([lost]);
  const outcome = await router.execute(write, limits());
  assert.ok(!outcome.ok && outcome.failure.applied === "unknown");
  assert.equal(calls.length, 1);
});

test("a write that was refused first and then lost is unknown", async () => {
  const { router, calls, limits } = start([wrongPartition, lost]);
  const outcome = await router.execute(write, limits());
  assert.ok(!outcome.ok && outcome.failure.applied === "unknown");
  assert.equal(calls.length, 2);
});

test("a read, and bytes that nothing refers to, are repeated after an unknown outcome", async () => {
  const reading = start([lost, "hang"]);
  assert.ok((await reading.router.execute(readIt, reading.limits())).ok);
  const writing = start([lost]);
  assert.ok((await writing.router.writeData({ table: "Blob", key: new Uint8Array(1) }, new Uint8Array(1), writing.limits())).ok);
});

test("overload is passed on at once", async () => {
  const { router, calls, limits } = start([refused("resourceExhausted", "throttled", "too much")]);
  assert.ok(!(await router.execute(readIt, limits())).ok);
  assert.equal(calls.length, 1);
});

test("a new map sends the next attempt to the new server", async () => {
  const map = { current: served("old") as RangeMap | undefined };
  const { router, calls, limits } = start([wrongPartition, "done"], map);
  const outcome = router.execute(write, limits());
  map.current = served("new", 2);
  assert.ok((await outcome).ok);
  assert.deepEqual(calls, ["old", "new"]);
});

test("without a map, and while nobody serves the range, the deadline ends the waiting as not done", async () => {
  for (const current of [undefined, served("")]) {
    const { router, calls, limits } = start([], { current });
    const outcome = await router.execute(write, limits(50));
    assert.ok(!outcome.ok && outcome.failure.applied === "no");
    assert.equal(calls.length, 0);
  }
});

test("bytes are not sent again to a server that is slow: one attempt has all the time there is; a read is asked again soon", async () => {
  const bytes = start([]);
  await bytes.router.writeData({ table: "Blob", key: new Uint8Array(1) }, new Uint8Array(1), bytes.limits(20_000));
  assert.ok((bytes.timeouts[0] ?? 0) > 19_000, `${bytes.timeouts[0]} ms`);
  const reading = start([]);
  await reading.router.execute(readIt, reading.limits(20_000));
  assert.equal(reading.timeouts[0], 1_000);
});

test("bytes whose server does not answer are sent to the one that has their range by the new map, and nobody watches the map after that", async () => {
  const { router, calls, limits, watching, change } = start(["never"], { current: served("old") });
  const written = router.writeData({ table: "Blob", key: new Uint8Array(1) }, new Uint8Array(1), limits());
  await new Promise((resolve) => setTimeout(resolve, 5));
  change(served("old", 2));
  change(served("", 3));
  assert.deepEqual(calls, ["old"], "the same server, or none yet");
  change(served("new", 4));
  assert.ok((await written).ok);
  assert.deepEqual(calls, ["old", "new"]);
  assert.equal(watching.size, 0);
});

test("a write whose server does not answer is unknown 1 s after the map named another one, and is not sent there", async () => {
  const clock = new CountedClock();
  const { router, calls, limits, watching, change } = start(["never"], { current: served("old") }, clock);
  const came: Outcome<unknown>[] = [];
  void router.execute(write, limits(10_000)).then((outcome) => came.push(outcome));
  await clock.pass(2_000);
  change(served("old", 2));
  change(served("", 3));
  await clock.pass(2_000);
  change(served("new", 4));
  await clock.pass(990);
  assert.equal(came.length, 0, "the answer gets time to arrive");
  await clock.pass(20);
  const [outcome] = came;
  assert.ok(outcome && !outcome.ok && outcome.failure.applied === "unknown", JSON.stringify(outcome));
  assert.equal(restErrorOf(outcome.failure).status, 500);
  assert.deepEqual(calls, ["old"]);
  assert.equal(watching.size, 0);
});

test("a write is answered by the server that was asked: soon after a move, or when the map names that server again", async () => {
  for (const maps of [[served("new", 2)], [served("new", 2), served("old", 3)]]) {
    const clock = new CountedClock();
    const { router, calls, limits, watching, change } = start(["late"], { current: served("old") }, clock);
    const came: Outcome<unknown>[] = [];
    void router.execute(write, limits(10_000)).then((outcome) => came.push(outcome));
    await clock.pass(maps.length === 1 ? lateMs - 900 : 100);
    for (const map of maps) change(map);
    await clock.pass(lateMs);
    assert.ok(came[0]?.ok, JSON.stringify(came));
    assert.deepEqual(calls, ["old"]);
    assert.equal(watching.size, 0);
    await clock.pass(20_000);
  }
});

test("a read whose server does not answer is asked at the server of the new map at once", async () => {
  const clock = new CountedClock();
  const { router, calls, limits, watching, change } = start(["never"], { current: served("old") }, clock);
  const read = router.execute(readIt, limits(10_000));
  await clock.pass(5);
  change(served("new", 2));
  assert.ok((await read).ok);
  assert.deepEqual(calls, ["old", "new"]);
  assert.equal(watching.size, 0);
});

test("an attempt that was refused for its time is made again while the caller has some", async () => {
  const { router, calls, limits } = start([refused("deadlineExceeded", "timeout", "not sent in time")]);
  assert.ok((await router.execute(write, limits())).ok);
  assert.equal(calls.length, 2);
});

test("a front-end that no other host answers refuses at once, as not done; a server on its own host is asked once", async () => {
  const reach = { cutOff: true, isHere: (address: string) => address === "here" };
  const leaseLost = refused("unavailable", "leaseLost", "the lease has ended");
  for (const [server, callsMade] of [
    ["elsewhere", 0],
    ["here", 1],
  ] as const) {
    const clock = new CountedClock();
    const { router, calls, limits } = start([leaseLost, "done"], { current: served(server) }, clock, reach);
    const asked = router.execute(write, limits());
    await settled();
    // Half of the time that the request has.
    await clock.pass(1_000);
    const outcome = await Promise.race([asked, settled()]);
    assert.ok(outcome !== undefined, "it is refused before its time is over");
    assert.ok(!outcome.ok && outcome.failure.applied === "no");
    assert.deepEqual([restErrorOf(outcome.failure).code, calls.length], ["ServerBusy", callsMade]);
  }
  const { router, limits } = start(["done"], { current: served("here") }, new NodeClock(), reach);
  assert.equal((await router.execute(write, limits())).ok, true, "the lease of its server has not ended");
});

test("a request that waits is refused when no other host answers any more", async () => {
  const reach = { cutOff: false, isHere: () => false };
  const clock = new CountedClock();
  const { router, limits } = start([], { current: undefined }, clock, reach);
  let outcome: Outcome<unknown> | undefined;
  void router.execute(write, limits(20_000)).then((ended) => {
    outcome = ended;
  });
  await settled();
  await clock.pass(1_000);
  assert.equal(outcome, undefined);
  reach.cutOff = true;
  await clock.pass(5_000);
  assert.equal((outcome as Outcome<unknown> | undefined)?.ok, false);
});

test("writes of data: the payload is free after one attempt that went well, and after nothing else", async () => {
  for (const [script, isShared, expected] of [
    [["done"], false, 1],
    [[lost, "done"], false, 0],
    [[wrongPartition, "done"], false, 0],
    [[refused("resourceExhausted", "overloaded", "full")], false, 0],
    [["done"], true, 0],
  ] as const) {
    const { router, limits } = start(script, undefined, undefined, undefined, undefined, undefined, isShared);
    let free = 0;
    await router.writeData({ table: "Blob", key: new Uint8Array([1]) }, new Uint8Array(5), limits(), () => free++);
    assert.equal(free, expected, `${script.map((step) => (typeof step === "string" ? step : step.failure.reason)).join()}, ${isShared}`);
  }
});
