/** Removals of accounts over the ranges of a server: which ones begin, in which turns, and what stops them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, FailureError, ok, refused, toHex, utf8 } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { encodeKey, type ObjectTable } from "@stamp/objects";
import { firstRangeOf, HeldRanges, type Range } from "@stamp/partition-map";
import type { RangePartition, RowWrite, Transaction } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import type { HeldRange, Holdings } from "../ranges/holdings.ts";
import { Remover } from "./remover.ts";

const removedRole: AccountRole = { role: "removed", epoch: 1, obeyed: { operation: 3, phase: 5 } };
const keyOf = (account: string, i: number): Uint8Array => encodeKey([[account], ["table", `p${String(i).padStart(6, "0")}`], ["r"]]);

/** Rows of one range of a table, in key order. */
class Rows {
  readonly rows: Uint8Array[];
  readonly tenures = new Map<string, number>();
  readonly partition: RangePartition;
  /** Full extents of the range. */
  readonly extents: { readonly extentId: number; readonly lengthBytes: number }[] = [{ extentId: 1, lengthBytes: 1_000 }];
  /** Thrown by scans from now on. */
  unreadable: Error | undefined;
  pages = 0;

  constructor(accounts: Readonly<Record<string, number>>, onPage: (rows: Rows) => void = () => {}) {
    const counts = Object.entries(accounts).sort(([a], [b]) => (a < b ? -1 : 1));
    this.rows = counts.flatMap(([account, count]) => Array.from({ length: count }, (_, i) => keyOf(account, i)));
    const scan = (keys: { readonly gte: Uint8Array; readonly lt: Uint8Array }) => this.#scan(keys.gte, keys.lt);
    this.partition = {
      fences: {
        tenure: (prefix: Uint8Array) => this.tenures.get(toHex(prefix)) ?? 0,
        recordedTenure: (prefix: Uint8Array) => this.tenures.get(toHex(prefix)) ?? 0,
        raiseTenure: async (prefix: Uint8Array, tenure: number) => ok(void this.tenures.set(toHex(prefix), tenure)),
      },
      scan,
      transact: async (_locks: unknown, decide: (transaction: Transaction) => Promise<{ writes: readonly RowWrite[]; result: number }>) => {
        const { writes, result } = await decide({ scan } as unknown as Transaction);
        const gone = new Set(writes.map(({ key }) => toHex(key)));
        this.rows.splice(0, this.rows.length, ...this.rows.filter((key) => !gone.has(toHex(key))));
        this.pages++;
        onPage(this);
        return ok(result);
      },
      checkpoint: async () => ok(),
      stats: { checkpointBytes: 0, memoryTableBytes: 0 },
      data: { sealedExtents: this.extents },
      keySamples: () => [],
    } as unknown as RangePartition;
  }

  async *#scan(low: Uint8Array, high: Uint8Array): AsyncGenerator<readonly [Uint8Array, Uint8Array], void, undefined> {
    if (this.unreadable !== undefined) throw this.unreadable;
    for (const key of [...this.rows]) if (Buffer.compare(key, low) >= 0 && Buffer.compare(key, high) < 0) yield [key, utf8("value")];
  }
}

interface Place {
  readonly removed: Map<string, AccountRole>;
  readonly held: HeldRanges<HeldRange>;
  mayRemove: boolean;
  /** Time of the collector's last pass, by the monotonic clock, and the extents that it does not look at. */
  collectedMs: number;
  readonly notLookedAt: Set<number>;
  readonly remover: Remover;
  readonly sleep: (ms: number) => Promise<void>;
  /** By the monotonic clock. */
  readonly nowMs: () => number;
}

async function run(ranges: readonly (readonly [ObjectTable, Rows])[], accounts: readonly string[], act: (place: Place) => Promise<void>) {
  const sim = new Simulation({ seed: 1, rules: allRules });
  await sim.run(async () => {
    const world = sim.world("server");
    const held = new HeldRanges<HeldRange>();
    for (const [table, { partition }] of ranges) {
      const range: Range = { ...firstRangeOf(table), rangeId: `${table}-1`, ownerEpoch: 1 as Range["ownerEpoch"] };
      held.set({ range, state: "serving", engine: { partition } } as unknown as HeldRange);
    }
    const removed = new Map(accounts.map((account) => [account, removedRole] as const));
    const holdings = { overlapping: (keys: Range) => held.overlapping(keys) } as unknown as Holdings;
    const place = {
      removed,
      held,
      mayRemove: true,
      collectedMs: Number.POSITIVE_INFINITY,
      notLookedAt: new Set<number>(),
      sleep: (ms: number) => sim.sleep(ms),
      nowMs: () => world.clock.monotonicMs(),
    };
    const options = {
      everyMs: 1_000,
      rowsPerSecond: 10_000,
      requestMs: 100,
      removed: () => place.removed,
      mayRemove: () => place.mayRemove,
      lookedAt: (_held: HeldRange, extentId: number, sinceMs: number) => place.collectedMs >= sinceMs && !place.notLookedAt.has(extentId),
    };
    const remover = new Remover(world, holdings, options);
    const stop = new AbortController();
    const ended = remover.run(stop.signal);
    await act({
      ...place,
      remover,
      get mayRemove() {
        return place.mayRemove;
      },
      set mayRemove(to) {
        place.mayRemove = to;
      },
      set collectedMs(to: number) {
        place.collectedMs = to;
      },
      get collectedMs() {
        return place.collectedMs;
      },
    });
    stop.abort();
    await ended;
  });
}

const factsOf = async ({ remover }: Place, account: string) => {
  const facts = await remover.facts([{ account, tenure: 29n } as never], () => ok());
  return facts.map(({ rangeId, ended, rows, failure }) => [rangeId, ended, Number(rows), failure] as const);
};

test("remover: rows that can't be read, and a range that is lost, stop that removal alone, and it goes on when they can be", async () => {
  const text = "three replicas of a block are damaged";
  for (const unreadable of [new FailureError(refused("dataLoss", "damaged", text).failure), new Error(text)]) {
    const [bad, good] = [new Rows({ acme: 10 }), new Rows({ acme: 10, bravo: 10 })];
    bad.unreadable = unreadable;
    await run(
      [
        ["Blob", bad],
        ["Entity", good],
      ],
      ["acme", "bravo"],
      async (place) => {
        await place.sleep(10_000);
        assert.deepEqual([bad.rows.length, good.rows.length], [10, 0]);
        const [blob, entity] = await factsOf(place, "acme");
        assert.deepEqual([blob?.[1], blob?.[3].includes(text), entity], [false, true, ["Entity-1", true, 10, ""]]);
        bad.unreadable = undefined;
        await place.sleep(10_000);
        assert.deepEqual([bad.rows.length, await factsOf(place, "acme")], [0, [["Blob-1", true, 10, ""], entity]]);
      },
    );
  }
});

test("remover: below the level that brings removals nothing is recorded or deleted, and the facts say why", async () => {
  const rows = new Rows({ acme: 10 });
  await run([["Entity", rows]], ["acme"], async (place) => {
    place.mayRemove = false;
    await place.sleep(10_000);
    assert.deepEqual([rows.rows.length, rows.tenures.size], [10, 0]);
    const [facts] = await factsOf(place, "acme");
    assert.match(facts?.[3] ?? "", /need feature level 2/);
    place.mayRemove = true;
    await place.sleep(10_000);
    assert.equal(rows.rows.length, 0);
  });
});

test("remover: an account that is not removed any more, as the roles say, gets no further page", async () => {
  let place: Place | undefined;
  const rows = new Rows({ acme: 5_000 }, ({ pages }) => pages === 2 && place?.removed.delete("acme"));
  await run([["Entity", rows]], ["acme"], async (here) => {
    place = here;
    await here.sleep(20_000);
    assert.deepEqual([rows.pages, rows.rows.length], [2, 4_000]);
  });
});

test("remover: queues are deleted only if they were given up", async () => {
  for (const [role, left] of [
    [removedRole, 10],
    [{ ...removedRole, dropsQueues: true }, 0],
  ] as const) {
    const [queues, entities] = [new Rows({ acme: 10 }), new Rows({ acme: 10 })];
    await run(
      [
        ["Message", queues],
        ["Entity", entities],
      ],
      ["acme"],
      async (place) => {
        place.removed.set("acme", role);
        await place.sleep(10_000);
        assert.deepEqual([queues.rows.length, entities.rows.length], [left, 0]);
      },
    );
  }
});

test("remover: a large account does not keep the others waiting", async () => {
  let atEndOfSmall = 0;
  const rows = new Rows({ acme: 50_000, bravo: 10 }, (here) => {
    if (atEndOfSmall === 0 && here.rows.every((key) => Buffer.compare(key, keyOf("bravo", 0)) < 0)) atEndOfSmall = here.rows.length;
  });
  await run([["Entity", rows]], ["acme", "bravo"], async (place) => {
    await place.sleep(60_000);
    assert.equal(rows.rows.length, 0);
    assert.ok(atEndOfSmall >= 40_000, `${atEndOfSmall} rows of the large account were left`);
  });
});

test("remover: a removal is over when the collector has looked at the bytes that its rows referred to, and not when the rows are gone", async () => {
  const [blobs, entities] = [new Rows({ acme: 10 }), new Rows({ acme: 10 })];
  await run(
    [
      ["Blob", blobs],
      ["Entity", entities],
    ],
    ["acme"],
    async (place) => {
      place.collectedMs = Number.NEGATIVE_INFINITY;
      await place.sleep(20_000);
      assert.deepEqual([blobs.rows.length, entities.rows.length], [0, 0]);
      const endedOf = async () => new Map((await factsOf(place, "acme")).map(([rangeId, ended]) => [rangeId, ended]));
      assert.deepEqual([(await endedOf()).get("Blob-1"), (await endedOf()).get("Entity-1")], [false, true], "bytes are held");
      // Looked at again after 10 minutes, it has been empty for as long.
      place.collectedMs = place.nowMs();
      await place.sleep(700_000);
      assert.equal((await endedOf()).get("Blob-1"), true);
      // A row that came behind the end begins it again.
      blobs.rows.push(keyOf("acme", 1));
      await place.sleep(700_000);
      assert.equal(blobs.rows.length, 0);
      assert.equal((await endedOf()).get("Blob-1"), false);
    },
  );
});

test("remover: extents that a neighbour fills after the rows are gone hold up no removal, and count no bytes that are left", async () => {
  const blobs = new Rows({ acme: 10 });
  blobs.extents.push({ extentId: 2, lengthBytes: 2_000 }, { extentId: 3, lengthBytes: 4_000 });
  await run([["Blob", blobs]], ["acme"], async (place) => {
    for (const extentId of [1, 2, 3]) place.notLookedAt.add(extentId);
    await place.sleep(20_000);
    assert.equal(blobs.rows.length, 0);
    const told = async () => {
      const [facts] = await place.remover.facts([{ account: "acme", tenure: 29n } as never], () => ok());
      return [facts?.ended, Number(facts?.bytesLeft)];
    };
    assert.deepEqual(await told(), [false, 7_000]);
    // The neighbour fills extents all the time, and no pass finds all of them old enough.
    for (const extentId of [4, 5, 6]) {
      blobs.extents.push({ extentId, lengthBytes: 8_000 });
      place.notLookedAt.add(extentId);
    }
    assert.deepEqual(await told(), [false, 7_000]);
    place.notLookedAt.delete(1);
    assert.deepEqual(await told(), [false, 6_000]);
    blobs.extents.splice(1, 1);
    assert.deepEqual(await told(), [false, 4_000]);
    place.notLookedAt.delete(3);
    assert.deepEqual(await told(), [true, 0]);
    place.notLookedAt.add(3);
    assert.deepEqual(await told(), [true, 0], "it stays over");
  });
});
