/**
 * Behaviour of every metadata store, whatever keeps its keys. The stream manager and the partition manager rely on
 * nothing else; a store on another base has to pass this.
 */
import { concatBytes, type Failure, type Outcome, unwrap, utf8 } from "@stamp/base";
import type { RegisterTest } from "@stamp/ports";
import { check, checkEqual } from "@stamp/ports";
import type { MetadataClient, StoreFence, StoreTransaction } from "./metadata-client.ts";
import { inMemory, openSnapshot, type SeededChecksum } from "./snapshot.ts";

export interface MetadataStoreUnderTest {
  readonly store: MetadataClient;
  /** Client of a process of another stamp. */
  readonly stranger: MetadataClient;
  /** A leader lease is acquired; the one before, if any, has ended. */
  readonly nextTerm: () => Promise<StoreFence>;
  /** The store loses power and starts again on what was synced. */
  readonly powerCut: () => Promise<void>;
  readonly checksum: SeededChecksum;
  readonly dispose: () => Promise<void>;
}

const timeoutMs = 20_000;
const pageKeys = 1_000;

export function metadataStoreConformance(register: RegisterTest, make: () => Promise<MetadataStoreUnderTest>): void {
  const test = (name: string, run: (one: MetadataStoreUnderTest) => Promise<void>): void =>
    register(`metadata store: ${name}`, async () => {
      const one = await make();
      await run(one);
      await one.dispose();
    });

  test("a transaction is done when every condition holds, else nothing of it", async ({ store, nextTerm }) => {
    const fence = await nextTerm();
    const first = await put(store, fence, [["a", "1"]], [["a", 0]]);
    refusedWith(await transact(store, fence, [["a", "2"]], [["a", 0]]), "conflict", "a key that must be absent");
    refusedWith(await transact(store, fence, [["a", "2"]], [["a", first + 1]]), "conflict", "a version that is not there yet");
    const half = await transact(
      store,
      fence,
      [["b", "1"]],
      [
        ["a", first],
        ["b", 1],
      ],
    );
    refusedWith(half, "conflict", "one of two conditions");
    checkEqual(await read(store, ["a", "b"]), ["1", undefined], "after refusals");
    const second = await put(
      store,
      fence,
      [
        ["a", undefined],
        ["b", "2"],
      ],
      [["a", first]],
    );
    check(second > first, "versions rise");
    checkEqual(await read(store, ["a", "b", "never"]), [undefined, "2", undefined], "deleted and written at once");
    const [a, b] = unwrap(await store.get(["a", "b"], timeoutMs));
    checkEqual([a?.version, b?.version], [0, second], "versions of a deleted key and a written one");
    await put(store, fence, [["a", "3"]], [["a", 0]]);
    checkEqual(
      await put(store, fence, [], [["b", second]]),
      await put(store, fence, [], []),
      "nothing written: the last transaction's number",
    );
  });

  test("every key of a transaction has its version, and keys are bytes in order", async ({ store, nextTerm }) => {
    const fence = await nextTerm();
    const version = await put(store, fence, [
      ["k/ü", "4"],
      ["k/b", "2"],
      ["k/", "0"],
      ["k/a", "1"],
      ["k/c", ""],
      ["l", "no"],
      ["k", "no"],
    ]);
    const listed = unwrap(await store.list("k/", timeoutMs));
    checkEqual(
      listed.map(({ key }) => key),
      ["k/", "k/a", "k/b", "k/c", "k/ü"],
      "by prefix, in byte order",
    );
    checkEqual(
      listed.map((entry) => entry.version),
      listed.map(() => version),
      "versions",
    );
    checkEqual(listed[3]?.value, new Uint8Array(0), "an empty value is a value");
  });

  test("only the newest term of a lease writes, and only of this stamp", async ({ store, stranger, nextTerm }) => {
    const old = await nextTerm();
    await put(store, old, [["k", "old"]]);
    const fence = await nextTerm();
    check(fence.leaseEpoch > old.leaseEpoch, "lease epochs rise");
    refusedWith(await transact(store, old, [["k", "late"]]), "staleTerm", "a deposed leader");
    refusedWith(
      await transact(store, { ...fence, leaseEpoch: fence.leaseEpoch + 1 }, [["k", "early"]]),
      "staleTerm",
      "a term not yet given",
    );
    refusedWith(await transact(store, { leaseName: "nobody's", leaseEpoch: 0 }, [["k", "no lease"]]), "staleTerm", "a lease nobody took");
    refusedWith(await transact(stranger, fence, [["k", "stranger"]]), "wrongStamp", "a leader of another stamp");
    checkEqual(await read(store, ["k"]), ["old"], "after refusals");
    await put(store, fence, [["k", "new"]]);
  });

  test("what was answered survives a power cut, versions go on behind it", async ({ store, nextTerm, powerCut }) => {
    const fence = await nextTerm();
    const version = await put(store, fence, [
      ["k", "1"],
      ["gone", "1"],
    ]);
    const later = await put(store, fence, [["gone", undefined]], [["gone", version]]);
    await powerCut();
    checkEqual(await read(store, ["k", "gone"]), ["1", undefined], "after the power cut");
    const next = await nextTerm();
    refusedWith(await transact(store, fence, [["k", "2"]]), "staleTerm", "the term of before");
    check((await put(store, next, [["k", "2"]], [["k", version]])) > later, "a later version");
  });

  test("of many at once each is judged in order, and pages list all of them", async ({ store, nextTerm }) => {
    const fence = await nextTerm();
    const count = pageKeys + 250;
    const answers = await Promise.all(
      Array.from({ length: count * 2 }, (_, i) => transact(store, fence, [[`n/${i % count}`, String(i)]], [[`n/${i % count}`, 0]])),
    );
    checkEqual(answers.filter(({ ok }) => ok).length, count, "of two with one condition one is done");
    checkEqual(new Set(answers.flatMap((answer) => (answer.ok ? [answer.value] : []))).size, count, "each has a version of its own");
    const first = unwrap(await store.page("n/", "", timeoutMs));
    checkEqual([first.entries.length, first.more], [pageKeys, true], "the first page");
    const second = unwrap(await store.page("n/", first.entries.at(-1)?.key ?? "", timeoutMs));
    checkEqual([second.entries.length, second.more], [count - pageKeys, false], "the second page");
    checkEqual(unwrap(await store.list("n/", timeoutMs)).length, count, "all of them");
    checkEqual(unwrap(await store.list("o", timeoutMs)).length, 0, "of a prefix that nothing has");
  });

  test("changes since a position are every key written since, as it is now", async ({ store, nextTerm, powerCut }) => {
    const fence = await nextTerm();
    await put(store, fence, [
      ["p/old", "1"],
      ["p/gone", "1"],
    ]);
    const position = unwrap(await store.position(timeoutMs));
    checkEqual(unwrap(await store.changes("p/", position, timeoutMs)).entries.length, 0, "nothing yet");
    await put(store, fence, [["p/new", "1"]]);
    await put(store, fence, [
      ["p/new", "2"],
      ["p/gone", undefined],
      ["q", "other"],
    ]);
    const { entries, position: next } = unwrap(await store.changes("p/", position, timeoutMs));
    const found = entries.map(({ key, version, value }) => `${key}=${version === 0 ? "-" : String.fromCharCode(...value)}`).sort();
    checkEqual(found, ["p/gone=-", "p/new=2"], "each once, as it is now");
    checkEqual(unwrap(await store.changes("p/", next, timeoutMs)).entries.length, 0, "and then none");
    await powerCut();
    const after = await store.changes("p/", next, timeoutMs);
    check(after.ok ? after.value.entries.length === 0 : after.failure.reason === "outOfRange", "after a restart: none, or list again");
  });

  test("a snapshot is all of it, and none is sent when nothing changed", async ({ store, nextTerm, checksum }) => {
    const fence = await nextTerm();
    await put(store, fence, [["s", "snapshot me"]]);
    const parts: Uint8Array[] = [];
    const take = async (bytes: Uint8Array, offsetBytes: number): Promise<void> => {
      if (offsetBytes === 0) parts.length = 0;
      parts.push(bytes);
    };
    const shows = async (text: string): Promise<boolean> => {
      const opened = unwrap(await openSnapshot(inMemory(concatBytes(parts)), checksum));
      for await (const [, value] of opened.entries()) if (new TextDecoder().decode(value).includes(text)) return true;
      return false;
    };
    const first = unwrap(await store.readSnapshot(take, timeoutMs));
    check(first !== undefined && (await shows("snapshot me")), "the first");
    checkEqual(unwrap(await store.readSnapshot(take, timeoutMs, first?.checksum)), undefined, "the same again");
    await put(store, fence, [["s", "changed"]]);
    // The store may give the one that it has for a while.
    let second: { readonly checksum: number } | undefined;
    for (let tries = 0; tries < 1_000 && second === undefined; tries++) {
      second = unwrap(await store.readSnapshot(take, timeoutMs, first?.checksum));
    }
    check(second !== undefined && second.checksum !== first?.checksum && (await shows("changed")), "after a change");
  });

  test("malformed and too large transactions are refused, and nothing is written", async ({ store, nextTerm }) => {
    const fence = await nextTerm();
    const value = new Uint8Array(0);
    const bad: readonly StoreTransaction[] = [
      { fence, conditions: [], writes: [write("k", "1"), write("k", "2")] },
      { fence, conditions: [], writes: [write("", "1")] },
      { fence, conditions: [], writes: Array.from({ length: 300 }, (_, i) => ({ key: `k${i}`, value })) },
      { fence, conditions: [], writes: [{ key: "k", value: new Uint8Array(1_048_577) }] },
    ];
    for (const [at, transaction] of bad.entries()) {
      const answer = await store.transact(transaction, timeoutMs);
      check(!answer.ok && answer.failure.code === "invalidArgument" && answer.failure.applied === "no", `malformed transaction ${at}`);
    }
    checkEqual(unwrap(await store.list("k", timeoutMs)).length, 0, "written");
  });
}

type Writes = readonly (readonly [key: string, value: string | undefined])[];
type Conditions = readonly (readonly [key: string, version: number])[];

const write = (key: string, value: string | undefined) => (value === undefined ? { key } : { key, value: utf8(value) });

const transact = (store: MetadataClient, fence: StoreFence, writes: Writes, conditions: Conditions = []): Promise<Outcome<number>> =>
  store.transact(
    { fence, conditions: conditions.map(([key, version]) => ({ key, version })), writes: writes.map(([key, value]) => write(key, value)) },
    timeoutMs,
  );

const put = async (store: MetadataClient, fence: StoreFence, writes: Writes, conditions: Conditions = []): Promise<number> =>
  unwrap(await transact(store, fence, writes, conditions));

/** Undefined where absent. */
async function read(store: MetadataClient, keys: readonly string[]): Promise<(string | undefined)[]> {
  const entries = unwrap(await store.get(keys, timeoutMs));
  return entries.map(({ version, value }) => (version === 0 ? undefined : String.fromCharCode(...value)));
}

function refusedWith(answer: Outcome<unknown>, reason: Failure["reason"], what: string): void {
  check(!answer.ok && answer.failure.reason === reason && answer.failure.applied === "no", `${what} is refused with ${reason}`);
}
