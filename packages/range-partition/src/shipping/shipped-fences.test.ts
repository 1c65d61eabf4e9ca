/** A promoted copy takes nothing more of its primary before: not what was let in before, and not at a later owner. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, type RuleName, refused, toHex, unwrap, utf8 } from "@stamp/base";
import { tenureOfCopy } from "@stamp/geo";
import { applySeed, applyShipped, type FencedEpochs, type RangePartition, ShippedFences, shippedTicketMax } from "../index.ts";
import { put, read, Stamp } from "../testing/harness.ts";

const name = utf8("p/");
const nameOf = (): Uint8Array => name;
const options = { timeoutMs: 10_000 };

function shipping(stamp: Stamp, range: RangePartition) {
  const world = stamp.sim.world("door");
  return {
    ship: (epoch: number, sequence: number, text: string) =>
      applyShipped(world, range, { epoch, name, commits: [{ sequence, lastTicket: 1, writes: [put("p/a", text)] }] }, options),
    seed: (epoch: number, sequence: number) =>
      applySeed(
        world,
        range,
        { epoch, sequence, lastTicket: 1, low: name, high: utf8("p0"), rows: [[utf8("p/a"), utf8("seeded")]] },
        { ...options, nameOf },
      ),
  };
}

for (const without of [[], ["geoPromotionFences"]] as readonly RuleName[][]) {
  const told = without.length === 0 ? "nothing of the ended role epoch is taken, here and at a later owner" : "without its rule it is";
  test(`fences: ${told}`, async () => {
    const stamp = new Stamp(1, { without });
    await stamp.sim.run(async () => {
      const range = await stamp.open(1);
      const { ship, seed } = shipping(stamp, range);
      unwrap(await ship(3, 5, "5"));
      unwrap(await range.fences.raise(utf8("p"), 3));
      const results = [await ship(3, 6, "late"), await seed(3, 7)].map((one) => (one.ok ? "taken" : one.failure.reason));
      const wanted = without.length === 0 ? ["staleRoleEpoch", "staleRoleEpoch"] : ["taken", "taken"];
      assert.deepEqual(results, wanted);
      if (without.length > 0) return;
      assert.equal(await read(range, "p/a"), "5");
      const next = await stamp.open(2);
      const later = shipping(stamp, next);
      assert.equal((await later.ship(3, 6, "late")).ok, false);
      // Another account, and the primary of the next role epoch, are not fenced.
      unwrap(await later.ship(4, 1, "of the next primary"));
      assert.equal(await read(next, "p/a"), "of the next primary");
      unwrap(await next.fences.raise(utf8("q"), 9));
      unwrap(await later.ship(4, 2, "still taken"));
    });
  });
}

test("fences: one counts when shipments that were decided before it are over, also if two are raised at once", async () => {
  const stamp = new Stamp(2);
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    const { ship } = shipping(stamp, range);
    const held = Promise.withResolvers<void>();
    const slow = range.transact(
      utf8("p/slow"),
      async () => {
        await held.promise;
        return { writes: [put("p/slow", "1")], result: undefined };
      },
      options,
    );
    let raised = 0;
    const both = [3, 3].map(async (epoch) => {
      unwrap(await range.fences.raise(utf8("p"), epoch));
      raised++;
    });
    await stamp.sim.sleep(1_000);
    assert.equal(raised, 0, "a transaction of before is not over");
    assert.equal((await ship(3, 6, "late")).ok, false, "the fence holds in memory at once");
    held.resolve();
    await Promise.all([...both, slow]);
    assert.equal(raised, 2);
  });
});

test("fences: a tenure that was not recorded is not taken for durable, and is recorded by the next raise", async () => {
  const records: unknown[] = [];
  let fails = true;
  const fences = new ShippedFences({
    stored: {},
    keys: { low: utf8(""), high: utf8("") },
    record: async (all) => {
      records.push(all);
      return fails ? refused("unavailable", "notReady", "the metadata stream is silent") : ok();
    },
    untilOver: async () => {},
    tickets: { lastTicket: 0, raiseTicket: () => {} },
    ended: () => undefined,
  });
  assert.equal((await fences.raiseTenure(name, 5)).ok, false);
  assert.deepEqual([fences.tenure(name), fences.recordedTenure(name)], [5, 0]);
  fails = false;
  unwrap(await fences.raiseTenure(name, 5));
  assert.deepEqual([fences.tenure(name), fences.recordedTenure(name), records.length], [5, 5, 2]);
});

test("fences: a key meets those of every prefix of it, the highest number counts, and a child keeps those that it has keys of", async () => {
  const keyOf = (text: string) => toHex(utf8(text));
  const stored = {
    [keyOf("acct")]: 3,
    [keyOf("a")]: 5,
    [`tenure:${keyOf("acct")}`]: tenureOfCopy(4),
    [keyOf("b")]: 7,
    [`tenure:${keyOf("b")}`]: 70,
    [keyOf("c")]: 2,
  };
  const recorded: FencedEpochs[] = [];
  const child = (low: string, high: string) =>
    new ShippedFences({
      stored,
      keys: { low: utf8(low), high: utf8(high) },
      record: async (all) => ok(void recorded.push(all)),
      untilOver: async () => {},
      tickets: { lastTicket: 0, raiseTicket: () => {} },
      ended: () => undefined,
    });
  const all = child("", "");
  const refuses = (fences: ShippedFences, key: string, epoch: number) => fences.refuses(utf8(key), epoch) !== undefined;
  assert.deepEqual(
    [refuses(all, "acct/1", 5), refuses(all, "acct/1", 6), refuses(all, "b", 7), refuses(all, "d", 1)],
    [true, false, true, false],
  );
  const refusesCopy = (key: string, paired: number) => all.refusesCopy(utf8(key), paired) !== undefined;
  assert.deepEqual(
    [refusesCopy("acct/1", 3), refusesCopy("acct/1", 4), refusesCopy("acct/1", 0), refusesCopy("ax", 3), refusesCopy("b/1", 3)],
    [true, false, false, false, true],
  );
  // Keys of the account that begins with "b" are on both sides of the split.
  const [left, right] = [child("", "b/m"), child("b/m", "")];
  unwrap(await left.raise(utf8("acct"), 4));
  unwrap(await right.raise(utf8("c"), 3));
  const kept = recorded.map((fences) => Object.keys(fences).sort());
  assert.deepEqual(kept, [
    [keyOf("a"), keyOf("acct"), keyOf("b"), `tenure:${keyOf("acct")}`, `tenure:${keyOf("b")}`],
    [keyOf("b"), keyOf("c"), `tenure:${keyOf("b")}`],
  ]);
  assert.deepEqual([refuses(right, "b/z", 7), right.tenure(utf8("b")), right.tenure(utf8("acct"))], [true, 70, 0]);
});

test("fences: shipped tickets are behind those that their account gets, also at a later owner, and change none of other accounts", async () => {
  const stamp = new Stamp(5);
  await stamp.sim.run(async () => {
    const ticketOf = async (range: RangePartition, key: string): Promise<number> =>
      unwrap(await range.transact(utf8(key), async ({ nextSequence }) => ({ writes: [put(key, "x")], result: nextSequence }), options));
    const world = stamp.sim.world("door");
    const range = await stamp.open(1);
    const ship = (lastTicket: number, sequence: number) => {
      const commits = [{ sequence, lastTicket, writes: [put("p/a", "a")] }];
      return applyShipped(world, range, { epoch: 3, name, commits }, { ...options, ticketsOf: utf8("p") });
    };
    const before = await ticketOf(range, "q");
    unwrap(await ship(2 ** 40, 1));
    const own = await ticketOf(range, "p/b");
    assert.ok(own > 2 ** 40 && own < 2 ** 40 + 2 ** 25, `${own}`);
    const both = await Promise.all([ship(2 ** 41, 2), ship(2 ** 41 + 5, 3)]);
    for (const one of both) unwrap(one);
    assert.ok((await ticketOf(range, "p/b")) > 2 ** 41 + 5);
    assert.ok((await ticketOf(range, "q")) - before < 100);
    for (const far of [shippedTicketMax + 1, Number.MAX_SAFE_INTEGER]) {
      const refusal = await ship(far, 4);
      assert.ok(!refusal.ok && refusal.failure.reason === "badRequest");
    }
    const highest = await ticketOf(range, "p/b");
    const next = await stamp.open(2);
    assert.ok((await ticketOf(next, "p/b")) > highest, "the lead is durable");
    assert.ok((await ticketOf(next, "q")) - before < 100);
  });
});
