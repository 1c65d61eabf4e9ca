/** Behaviour of every KeyValueStores while nothing breaks. */
import { compareBytes, utf8 } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOperation, KeyValueStores } from "../stores/key-value.ts";
import type { RegisterTest } from "./conformance.ts";
import { check, checkEqual, thrownFailure } from "./conformance.ts";

export interface KeyValueUnderTest {
  readonly stores: KeyValueStores;
  /** Opens the folder as a new process does after the old one closed its stores and ended. */
  reopen(): Promise<KeyValueStores>;
  dispose(): Promise<void>;
}

const put = (key: string, value: string): KeyValueOperation => ({ kind: "put", key: utf8(key), value: utf8(value) });
const remove = (key: string): KeyValueOperation => ({ kind: "delete", key: utf8(key) });

async function open(stores: KeyValueStores, name: string): Promise<KeyValue> {
  const opened = await stores.open(name);
  if (opened.kind !== "opened") throw new Error(`store ${name} is corrupt: ${opened.message}`);
  return opened.store;
}

async function keysIn(store: KeyValue, range: KeyRange): Promise<string[]> {
  const keys: string[] = [];
  for await (const [key] of store.range(range)) keys.push(new TextDecoder().decode(key));
  return keys;
}

export function keyValueConformance(register: RegisterTest, make: () => Promise<KeyValueUnderTest>): void {
  const test = (name: string, run: (store: KeyValue, given: KeyValueUnderTest) => Promise<void>): void =>
    register(`key-value: ${name}`, async () => {
      const given = await make();
      const store = await open(given.stores, "main");
      try {
        await run(store, given);
      } finally {
        await store.close();
        await given.dispose();
      }
    });

  test("what was put is there, what was deleted or never put is undefined", async (store) => {
    checkEqual(await store.get(utf8("a")), undefined, "before");
    await store.batch([put("a", "1"), put("b", ""), put("c", "3")], { sync: false });
    checkEqual(await store.get(utf8("a")), utf8("1"), "a");
    checkEqual(await store.get(utf8("b")), new Uint8Array(0), "an empty value");
    await store.batch([remove("a"), remove("never there"), put("c", "4")], { sync: true });
    checkEqual(await store.get(utf8("a")), undefined, "a after delete");
    checkEqual(await store.get(utf8("c")), utf8("4"), "c after put");
    await store.batch([], { sync: true });
  });

  test("operations of a batch are applied in their order", async (store) => {
    await store.batch([put("a", "1"), remove("a"), put("b", "1"), put("b", "2"), remove("c"), put("c", "3")], { sync: false });
    checkEqual(await store.get(utf8("a")), undefined, "a");
    checkEqual(await store.get(utf8("b")), utf8("2"), "b");
    checkEqual(await store.get(utf8("c")), utf8("3"), "c");
  });

  test("keys are ordered as unsigned bytes; a prefix comes first", async (store) => {
    const keys = [[0xff], [0x00], [0x7f], [0x80], [0x7f, 0x00], [0xff, 0xff], [0x00, 0x01]].map((bytes) => new Uint8Array(bytes));
    await store.batch(
      keys.map((key): KeyValueOperation => ({ kind: "put", key, value: key })),
      { sync: false },
    );
    const read: Uint8Array[] = [];
    for await (const [key, value] of store.range({})) {
      checkEqual(value, key, "value");
      read.push(key);
    }
    checkEqual(read, [...keys].sort(compareBytes), "order");
  });

  test("ranges take bounds, limit and direction", async (store) => {
    await store.batch(
      ["a", "b", "c", "d", "e"].map((key) => put(key, key)),
      { sync: false },
    );
    checkEqual(await keysIn(store, {}), ["a", "b", "c", "d", "e"], "all");
    checkEqual(await keysIn(store, { gte: utf8("b"), lt: utf8("d") }), ["b", "c"], "gte and lt");
    checkEqual(await keysIn(store, { gte: utf8("bb") }), ["c", "d", "e"], "gte between keys");
    checkEqual(await keysIn(store, { limit: 2 }), ["a", "b"], "limit");
    checkEqual(await keysIn(store, { limit: 0 }), [], "limit 0");
    checkEqual(await keysIn(store, { reverse: true, limit: 2 }), ["e", "d"], "reverse with limit");
    checkEqual(await keysIn(store, { gte: utf8("b"), lt: utf8("d"), reverse: true }), ["c", "b"], "reverse in bounds");
    checkEqual(await keysIn(store, { gte: utf8("d"), lt: utf8("b") }), [], "bounds the wrong way round");
  });

  test("a range shows the state at its first step, and may be left early", async (store) => {
    await store.batch([put("a", "1"), put("b", "1"), put("c", "1")], { sync: false });
    const seen: string[] = [];
    for await (const [key] of store.range({})) {
      if (seen.length === 0) await store.batch([remove("b"), put("bb", "1"), put("d", "1")], { sync: false });
      seen.push(new TextDecoder().decode(key));
    }
    checkEqual(seen, ["a", "b", "c"], "keys");
    for await (const _ of store.range({})) break;
    checkEqual(await keysIn(store, {}), ["a", "bb", "c", "d"], "keys afterwards");
  });

  test("bytes have owners: changing what was put or got afterwards changes nothing", async (store) => {
    const key = utf8("key");
    const value = utf8("value");
    await store.batch([{ kind: "put", key, value }], { sync: false });
    key.fill(0);
    value.fill(0);
    const got = (await store.get(utf8("key"))) as Uint8Array;
    checkEqual(got, utf8("value"), "after changing what was put");
    got.fill(0);
    for await (const [k, v] of store.range({})) {
      k.fill(0);
      v.fill(0);
    }
    checkEqual(await store.get(utf8("key")), utf8("value"), "after changing what was got");
  });

  test("thousands of keys over many range steps", async (store) => {
    const name = (i: number): string => `k${String(i).padStart(6, "0")}`;
    for (let start = 0; start < 5000; start += 1000) {
      await store.batch(
        Array.from({ length: 1000 }, (_, i) => put(name(start + i), String(start + i))),
        { sync: false },
      );
    }
    let next = 0;
    for await (const [key, value] of store.range({})) {
      checkEqual(key, utf8(name(next)), "key");
      checkEqual(value, utf8(String(next)), "value");
      next += 1;
    }
    checkEqual(next, 5000, "count");
  });

  test("stores of other names are separate, an open one can't be opened twice", async (store, given) => {
    await store.batch([put("a", "main")], { sync: false });
    const other = await open(given.stores, "other");
    checkEqual(await other.get(utf8("a")), undefined, "in the other store");
    await other.batch([put("a", "other")], { sync: false });
    checkEqual(await store.get(utf8("a")), utf8("main"), "in the main store");
    await thrownFailure(() => given.stores.open("other"), "opening an open store");
    await other.close();
    const again = await open(given.stores, "other");
    checkEqual(await again.get(utf8("a")), utf8("other"), "opened again after close");
    await again.close();
  });

  register("key-value: a synced batch is there for the next process", async () => {
    const given = await make();
    try {
      const store = await open(given.stores, "main");
      await store.batch([put("a", "1")], { sync: true });
      await store.close();
      const next = await open(await given.reopen(), "main");
      checkEqual(await next.get(utf8("a")), utf8("1"), "value");
      await next.close();
    } finally {
      await given.dispose();
    }
  });

  register("key-value: destroy removes everything, also of a store that never was", async () => {
    const given = await make();
    try {
      const store = await open(given.stores, "main");
      await store.batch([put("a", "1")], { sync: true });
      await store.close();
      await given.stores.destroy("main");
      await given.stores.destroy("never there");
      const next = await open(given.stores, "main");
      checkEqual(await next.get(utf8("a")), undefined, "after destroy");
      check((await keysIn(next, {})).length === 0, "keys after destroy");
      await next.close();
    } finally {
      await given.dispose();
    }
  });
}
