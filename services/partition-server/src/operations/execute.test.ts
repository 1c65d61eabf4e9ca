import assert from "node:assert/strict";
import { test } from "node:test";
import type { GateOptions } from "@stamp/admission";
import { emptyBytes, type Outcome, unknownOutcome, unwrap, utf8 } from "@stamp/base";
import { accountKey, noSeals, type Operation, type OperationResult, type Place, routeOf } from "@stamp/objects";
import { firstRangeOf, type Range } from "@stamp/partition-map";
import { sleep, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { Holdings } from "../ranges/holdings.ts";
import { dataExtent, TestStreams } from "../testing/streams.ts";
import { dataBytesMax, Executor } from "./execute.ts";

const name = { account: "acct", container: "c", containerIncarnation: 1, blob: "b" };
const headers = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: emptyBytes,
  cacheControl: "",
  contentDisposition: "",
};
const put = (body: { inline?: Uint8Array; places?: readonly Place[] }, conditions = {}): Operation => ({
  case: "putBlob",
  value: { name, conditions, headers, metadata: {}, body: { inline: emptyBytes, places: [], ...body } },
});
const get: Operation = { case: "getBlob", value: { name, conditions: {}, withoutContent: false } };
const putBlock = (inline: Uint8Array): Operation => ({
  case: "putBlock",
  value: { name, conditions: {}, blockId: utf8("1"), body: { inline, places: [] } },
});

class Bench {
  readonly world: World;
  readonly streams = new TestStreams();
  readonly holdings: Holdings;
  readonly executor: Executor;
  leaseHeld = true;
  /** Whether appended bytes of blobs are kept. */
  keeps = false;

  constructor(sim: Simulation, operationsMax = 100, admission: Partial<GateOptions> = {}) {
    this.world = sim.world("ps");
    this.holdings = new Holdings(this.world, this.streams.engines(this.world));
    const locate = async () => [];
    const gate = {
      limitMin: 16,
      limitMax: 256,
      compared: "quickest" as const,
      targetMs: 50,
      waitMaxMs: 1_000,
      waitAloneMaxMs: 10_000,
      waitingMax: operationsMax,
      ...admission,
    };
    this.executor = new Executor(this.world, this.holdings, {
      operationsMax,
      admission: gate,
      dataAdmission: gate,
      pinTermMs: 60_000,
      leaseHeld: () => this.leaseHeld,
      onAppended: () => this.keeps,
      locate,
      seals: noSeals,
      mayWrite: () => true,
    });
    this.holdings.leaseTaken(7);
  }

  load(range: Range): Promise<Outcome<void>> {
    return this.holdings.load({ pmTerm: 1, leaseEpoch: 7, rangeId: range.rangeId, ownerEpoch: range.ownerEpoch }, range);
  }

  close(range: Range): Promise<Outcome<void>> {
    return this.holdings.close({ pmTerm: 1, leaseEpoch: 7, rangeId: range.rangeId, ownerEpoch: range.ownerEpoch });
  }

  execute(operation: Operation, range: Range = blobs, version = range.rangeVersion): Promise<Outcome<OperationResult>> {
    return this.executor.execute(range.rangeId, version, operation, this.world.clock.monotonicMs() + 1_000);
  }
}

const blobs: Range = { ...firstRangeOf("Blob"), ownerEpoch: 3 };
const accounts: Range = { ...firstRangeOf("Account"), ownerEpoch: 4 };

const say = (outcome: Outcome<OperationResult | undefined>): string => {
  if (!outcome.ok) return `${outcome.failure.reason}, applied ${outcome.failure.applied}`;
  return outcome.value?.case === "error" ? outcome.value.value.code : (outcome.value?.case ?? "done");
};

async function served(
  work: (bench: Bench, sim: Simulation) => Promise<void>,
  operationsMax?: number,
  admission?: Partial<GateOptions>,
): Promise<void> {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const bench = new Bench(sim, operationsMax, admission);
    unwrap(await bench.load(blobs));
    await work(bench, sim);
  });
}

test("execute: a blob is put and got", () =>
  served(async (bench) => {
    assert.equal(say(await bench.execute(get)), "BlobNotFound");
    assert.equal(say(await bench.execute(put({ inline: utf8("hello") }))), "blob");
    const got = unwrap(await bench.execute(get));
    assert.ok(got.case === "content" && got.value.inline.length === 5);
  }));

test("execute: rows of a later version are written when the range's state says so, and not at all while it can't", () =>
  served(async (bench) => {
    const cipher = { salt: new Uint8Array(32), offsetBytes: 0 };
    const encrypted = { places: [{ extentId: dataExtent, offsetBytes: 24, lengthBytes: 5, cipher }] };
    const underKey = put(encrypted, { encryptionKeySha256: new Uint8Array(32) });
    bench.streams.needsRefused = true;
    assert.equal(say(await bench.execute(put({ inline: utf8("hello") }))), "blob");
    assert.equal(say(await bench.execute(underKey)), "partitionLoading, applied no");
    const got = unwrap(await bench.execute(get));
    assert.ok(got.case === "content" && got.value.inline.length === 5);
    bench.streams.needsRefused = false;
    assert.equal(say(await bench.execute(underKey)), "blob");
    assert.equal(bench.streams.rowVersion, 2);
    assert.equal(say(await bench.execute(get)), "BlobUsesCustomerSpecifiedEncryption");
  }));

test("execute: another range, version, table or key is wrongPartition; a range that is loading says so", () =>
  served(async (bench) => {
    const wrong = "wrongPartition, applied no";
    assert.equal(say(await bench.execute(get, blobs, 2)), wrong);
    assert.equal(say(await bench.execute(get, { ...blobs, rangeId: "blob-9" })), wrong);
    assert.equal(say(await bench.execute({ case: "getAccount", value: { account: "acct" } })), wrong);
    const half: Range = { ...accounts, high: accountKey("b") };
    const loading = bench.load(half);
    const account = (text: string): Operation => ({ case: "getAccount", value: { account: text } });
    assert.equal(say(await bench.execute(account("acct"), half)), "partitionLoading, applied no");
    unwrap(await loading);
    assert.equal(say(await bench.execute(account("acct"), half)), "AccountNotFound");
    assert.equal(say(await bench.execute(account("b"), half)), wrong);
  }));

test("execute: when the lease ends while the answer is made, reads and refusals are not given, a committed write is", () =>
  served(async (bench, sim) => {
    const write = bench.execute(put({ inline: utf8("1") }));
    await sim.sleep(1);
    bench.leaseHeld = false;
    assert.equal(say(await write), "blob");
    const lost = "leaseLost, applied no";
    assert.equal(say(await bench.execute(get)), lost);
    assert.equal(say(await bench.execute(put({ inline: utf8("2") }, { ifNoneMatch: "*" }))), lost, "409 is a read");
    assert.equal(say(await bench.execute(put({ inline: utf8("2") }, { ifMatch: '"0x800000000000099"' }))), lost, "412 is a read");
    bench.leaseHeld = true;
    assert.equal(say(await bench.execute(put({ inline: utf8("2") }, { ifNoneMatch: "*" }))), "BlobAlreadyExists");
  }));

test("execute: once Closed is answered nothing more is read or written, also by who began before", () =>
  served(async (bench) => {
    await bench.execute(put({ inline: utf8("1") }));
    const reads = Array.from({ length: 20 }, () => bench.execute(get));
    unwrap(await bench.close(blobs));
    const outcomes = new Set((await Promise.all(reads)).map(say));
    assert.ok(outcomes.has("leaseLost, applied no"), [...outcomes].join());
    assert.equal(say(await bench.execute(get)), "wrongPartition, applied no");
    const again = await bench.load(blobs);
    assert.ok(!again.ok && again.failure.reason === "staleOwnerEpoch");
    unwrap(await bench.load({ ...blobs, ownerEpoch: 9 }));
    assert.equal(say(await bench.execute(get)), "content");
  }));

test("execute: what the lease covered is dropped with it, a load under way too", () =>
  served(async (bench) => {
    const loading = bench.load(accounts);
    bench.holdings.leaseLost();
    const outcome = await loading;
    assert.ok(!outcome.ok && outcome.failure.reason === "leaseLost");
    assert.deepEqual(bench.holdings.all, []);
    assert.equal(say(await bench.execute(get)), "wrongPartition, applied no");
    const refused = await bench.load({ ...blobs, ownerEpoch: 10 });
    assert.ok(!refused.ok && refused.failure.reason === "notReady");
  }));

test("execute: a range whose streams somebody else opened is given up, and that epoch never loaded again", () =>
  served(async (bench, sim) => {
    const other = new Holdings(sim.world("other"), bench.streams.engines(sim.world("other")));
    other.leaseTaken(1);
    const later: Range = { ...blobs, ownerEpoch: 8 };
    unwrap(await other.load({ pmTerm: 1, leaseEpoch: 1, rangeId: later.rangeId, ownerEpoch: 8 }, later));
    assert.equal(say(await bench.execute(put({ inline: utf8("1") }))), "wrongPartition, applied no");
    assert.deepEqual(bench.holdings.all, []);
    const again = await bench.load(blobs);
    assert.ok(!again.ok && again.failure.reason === "staleOwnerEpoch");
  }));

test("execute: more operations than the bound are throttled, nothing of them is done", () =>
  served(async (bench) => {
    const all = await Promise.all(Array.from({ length: 5 }, (_, i) => bench.execute(put({ inline: utf8(String(i)) }))));
    assert.deepEqual(all.map(say), ["blob", "blob", ...Array(3).fill("throttled, applied no")]);
    assert.equal(bench.executor.active, 0);
  }, 2));

test("execute: operations wait for their turn, each account behind its own; who waits too long is refused, with when to ask again", () =>
  served(
    async (bench, sim) => {
      const of = (account: string, at: number): Operation => ({
        case: "putBlob",
        value: {
          name: { ...name, account, blob: `b${at}` },
          conditions: {},
          headers,
          metadata: {},
          body: { inline: utf8("x"), places: [] },
        },
      });
      const order: string[] = [];
      const ask = (account: string, count: number) =>
        Promise.all(
          Array.from({ length: count }, (_, i) =>
            bench.execute(of(account, i)).then((outcome) => {
              order.push(account);
              return outcome;
            }),
          ),
        );
      const flood = ask("flood", 10);
      const quiet = ask("quiet", 1);
      assert.deepEqual([bench.executor.admission.atWork, bench.executor.admission.waiting], [2, 9]);
      assert.ok((await Promise.all([flood, quiet])).flat().every((outcome) => say(outcome) === "blob"));
      assert.ok(order.indexOf("quiet") < 3, `quiet was done as number ${order.indexOf("quiet") + 1}`);
      assert.equal(bench.executor.admission.atWork, 0);

      bench.streams.commitMs = 80;
      const held = ask("flood", 3);
      await sleep(sim.world("wait").clock, 60);
      const [late] = await ask("flood", 1);
      assert.equal(late && say(late), "throttled, applied no");
      assert.deepEqual(late && !late.ok && late.failure.details, { retryAfterSeconds: "1" });
      assert.ok((await held).every((outcome) => say(outcome) === "blob"));
    },
    100,
    { limitMin: 1, limitMax: 1, waitMaxMs: 50 },
  ));

test("execute: bytes of blocks and large bodies are put into blob data, in pieces of at most 4 MiB", () =>
  served(async (bench) => {
    assert.equal(say(await bench.execute(putBlock(utf8("block")))), "done");
    assert.equal(bench.streams.dataBytes, 5);
    const large = dataBytesMax + 10;
    assert.equal(say(await bench.execute(put({ inline: new Uint8Array(large) }))), "blob");
    assert.equal(bench.streams.dataBytes, 5 + large);
    const got = unwrap(await bench.execute(get));
    assert.ok(got.case === "content");
    assert.deepEqual(
      got.value.places.map((place) => place.lengthBytes),
      [dataBytesMax, 10],
    );
  }));

test("execute: a place that is not in this range's blob data is refused as badPlace", () =>
  served(async (bench) => {
    const place = (extentId: number) => ({ extentId, offsetBytes: 0, lengthBytes: 3 });
    assert.equal(say(await bench.execute(put({ places: [place(dataExtent), place(99)] }))), "badPlace, applied no");
    assert.equal(say(await bench.execute(get)), "BlobNotFound");
    assert.equal(say(await bench.execute(put({ places: [place(dataExtent)] }))), "blob");
  }));

test("execute: data is written within bounds, and only for tables that have it", () =>
  served(async (bench) => {
    unwrap(await bench.load(accounts));
    const write = (range: Range, bytes: number) =>
      bench.executor.writeData(
        range.rangeId,
        1,
        { key: new Uint8Array(1), payload: new Uint8Array(bytes) },
        bench.world.clock.monotonicMs() + 1_000,
      );
    assert.deepEqual(unwrap(await write(blobs, 3)), [{ extentId: dataExtent, offsetBytes: 0, lengthBytes: 3 }]);
    for (const [range, bytes] of [
      [blobs, 0],
      [blobs, dataBytesMax + 1],
      [accounts, 3],
    ] as const) {
      const outcome = await write(range, bytes);
      assert.ok(!outcome.ok && outcome.failure.reason === "badRequest");
    }
  }));

test("execute: data for which there was no room counts as not written, other data in doubt as in doubt", () =>
  served(async (bench) => {
    const data = { key: new Uint8Array(1), payload: new Uint8Array(5) };
    for (const [reason, applied] of [
      ["noPlacement", "no"],
      ["timeout", "unknown"],
    ] as const) {
      bench.streams.dataFails = unknownOutcome("resourceExhausted", reason, "it is so");
      const written = await bench.executor.writeData(blobs.rangeId, 1, data, bench.world.clock.monotonicMs() + 1_000);
      assert.ok(!written.ok);
      assert.deepEqual([written.failure.reason, written.failure.applied], [reason, applied]);
    }
  }));

test("execute: bytes of large writes wait for their turn, each account behind its own; who waits too long is refused, and nothing is appended", () =>
  served(
    async (bench, sim) => {
      const payload = new Uint8Array(dataBytesMax);
      const key = (account: string, at: number) =>
        routeOf(bench.world.rules, {
          case: "getBlob",
          value: { name: { ...name, account, blob: `b${at}` } },
        }).key;
      const order: string[] = [];
      const write = async (account: string, at: number) => {
        const deadlineMs = bench.world.clock.monotonicMs() + 60_000;
        const written = await bench.executor.writeData(blobs.rangeId, blobs.rangeVersion, { key: key(account, at), payload }, deadlineMs);
        order.push(account);
        return written;
      };
      bench.streams.dataMs = 20;
      const flood = Array.from({ length: 40 }, (_, i) => write("flood", i % 8));
      const quiet = write("quiet", 0);
      assert.deepEqual([bench.executor.dataAdmission.atWork, bench.executor.dataAdmission.waiting], [5, 36]);
      assert.equal(bench.executor.admission.atWork, 0, "operations have turns of their own");
      assert.equal(say(await bench.execute(get)), "BlobNotFound");
      unwrap(await quiet);
      assert.ok(order.length <= 5, `quiet was done as number ${order.length}`);
      await sleep(sim.world("wait").clock, 300);
      const before = bench.streams.dataBytes;
      const late = await write("flood", 0);
      assert.ok(!late.ok && late.failure.reason === "throttled" && late.failure.applied === "no", JSON.stringify(late));
      assert.ok(Number(late.failure.details?.retryAfterSeconds) >= 1);
      assert.equal(bench.streams.dataBytes, before);
      assert.ok(
        (await Promise.all(flood)).every(({ ok }) => ok),
        "who waits already is done in its turn",
      );
      assert.deepEqual([bench.executor.dataAdmission.atWork, bench.executor.active], [0, 0]);
    },
    100,
    { limitMin: 4, limitMax: 4, waitMaxMs: 200 },
  ));

test("execute: bytes that wait for their turn while their range goes are not appended to it", () =>
  served(
    async (bench) => {
      bench.streams.dataMs = 20;
      const deadlineMs = bench.world.clock.monotonicMs() + 60_000;
      const key = routeOf(bench.world.rules, get).key;
      const written = Array.from({ length: 5 }, () =>
        bench.executor.writeData(blobs.rangeId, blobs.rangeVersion, { key, payload: new Uint8Array(1) }, deadlineMs),
      );
      unwrap(await bench.close(blobs));
      const outcomes = await Promise.all(written);
      assert.equal(outcomes.filter(({ ok }) => ok).length, 1, "the one that was at work");
      for (const outcome of outcomes.slice(1)) assert.ok(!outcome.ok && outcome.failure.applied === "no");
      assert.equal(bench.streams.dataBytes, 1);
    },
    100,
    { limitMin: 1, limitMax: 1 },
  ));

test("execute: the memory of data is free when the append's is and nobody keeps the bytes, and not after a failure", () =>
  served(async (bench, sim) => {
    for (const [dataFree, keeps, rangeVersion, expected] of [
      ["with the result", false, blobs.rangeVersion, 1],
      ["later", false, blobs.rangeVersion, 1],
      ["never", false, blobs.rangeVersion, 0],
      ["with the result", true, blobs.rangeVersion, 0],
      ["later", true, blobs.rangeVersion, 0],
      ["with the result", false, blobs.rangeVersion + 1, 0],
    ] as const) {
      bench.streams.dataFree = dataFree;
      bench.keeps = keeps;
      let told = 0;
      const data = { key: new Uint8Array(1), payload: new Uint8Array(5), free: () => told++ };
      const written = await bench.executor.writeData(blobs.rangeId, rangeVersion, data, bench.world.clock.monotonicMs() + 1_000);
      assert.equal(written.ok, rangeVersion === blobs.rangeVersion);
      await sim.sleep(20);
      assert.equal(told, expected, `${dataFree}, ${keeps ? "kept" : "not kept"}`);
    }
  }));
