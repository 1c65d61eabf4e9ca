/** Seeding of a receiver: beside writes, over cuts, losses, moves, splits and lost followers, each PartitionName is a state of the primary's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, type RuleName, unwrap, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import {
  type AdmitsRows,
  applySeed,
  applyShipped,
  decodeSeedMark,
  encodeSeedMark,
  isMarkerKey,
  markerKey,
  type RangePartition,
  type RowWrite,
  type SeedPart,
  seedMarkKey,
} from "../index.ts";
import { put, read, rows, Stamp, write } from "../testing/harness.ts";
import { ShippingWorld } from "../testing/shipping-world.ts";

async function run(seed: number, without: readonly RuleName[] = []): Promise<ShippingWorld> {
  const world = new ShippingWorld(seed, without, true);
  await world.stamp.sim.run(async () => {
    await world.begin();
    for (let step = 0; step < 100; step++) await world.step();
    await world.end();
  });
  return world;
}

test("seeding: each PartitionName is a state of the primary's, and in the end everything is there and nothing else", async () => {
  let pieces = 0;
  for (let seed = 1; seed <= 6; seed++) {
    const world = await run(seed);
    assert.ok(world.parts > 3 && world.shipped > 0, `${world.parts} parts, ${world.shipped} commits`);
    pieces += world.pieces;
  }
  assert.ok(pieces > 6, `${pieces} pieces of PartitionNames that are larger than a part`);
});

test("seeding: without the rule geoRowVersionsRise the receiver has what never was, or not all of it", async () => {
  let found: unknown;
  for (let seed = 1; seed <= 6 && found === undefined; seed++) {
    await run(seed, ["geoRowVersionsRise"]).catch((error: unknown) => {
      found = error;
    });
  }
  assert.match(String(found), /as it never was|at the end/);
});

const name = utf8("p/");
const nameOf = (key: Uint8Array): Uint8Array => key.subarray(0, 2);

interface Bench {
  readonly world: World;
  readonly range: RangePartition;
  readonly seed: (part: Partial<SeedPart> & Pick<SeedPart, "sequence">) => ReturnType<typeof applySeed>;
  readonly ship: (sequence: number, writes: readonly RowWrite[]) => ReturnType<typeof applyShipped>;
}

async function onBench(without: readonly RuleName[], work: (bench: Bench) => Promise<void>): Promise<void> {
  const stamp = new Stamp(1, { without });
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    const world = stamp.sim.world("door");
    await work({
      world,
      range,
      seed: (part) =>
        applySeed(
          world,
          range,
          { epoch: 3, lastTicket: 500, low: utf8("a"), high: utf8("z"), rows: [], ...part },
          { nameOf, timeoutMs: 10_000 },
        ),
      ship: (sequence, writes) =>
        applyShipped(world, range, { epoch: 3, name, commits: [{ sequence, lastTicket: sequence, writes }] }, { timeoutMs: 10_000 }),
    });
  });
}

const row = (key: string, value: string): readonly [Uint8Array, Uint8Array] => [utf8(key), utf8(value)];
const piece = { name, isLast: false };

test("seeding: what the primary lacks is deleted, also if it is much; an older part, or one that comes again, changes nothing", async () => {
  await onBench([], async ({ range, seed, ship }) => {
    const many = Array.from({ length: 4_500 }, (_, i) => put(`p/${i}`, "of the receiver"));
    unwrap(await write(range, "p", many));
    unwrap(await write(range, "q", [put("q/1", "of the receiver")]));
    unwrap(await seed({ sequence: 20, rows: [row("p/7", "20"), row("r/1", "20")] }));
    const seeded = [
      ["p/7", "20"],
      ["r/1", "20"],
    ];
    assert.deepEqual(await rows(range.scan({})), seeded);
    assert.ok(unwrap(await write(range, "t", [])) > 500, "ETags stay unique");
    unwrap(await seed({ sequence: 19, rows: [row("q/2", "19")] }));
    assert.equal(await read(range, "p/7"), "20");
    assert.equal(unwrap(await ship(20, [put("p/7", "old")])), 0);
    assert.equal(unwrap(await ship(21, [put("p/7", "21")])), 1);
    unwrap(await seed({ sequence: 20, rows: [row("p/7", "20"), row("r/1", "20")] }));
    assert.equal(await read(range, "p/7"), "21");
  });
});

test("seeding: pieces are applied in order, of one moment; one that is missing begins its PartitionName again", async () => {
  await onBench([], async ({ range, seed, ship }) => {
    const reason = (outcome: Awaited<ReturnType<typeof seed>>): string => (outcome.ok ? "ok" : outcome.failure.reason);
    const first = { low: name, high: utf8("p/4"), rows: [row("p/2", "a")], piece };
    const last = { low: utf8("p/4"), high: utf8("p0"), rows: [row("p/5", "b")], piece: { name, isLast: true } };
    unwrap(await write(range, "p", [put("p/3", "old"), put("p/6", "old")]));
    assert.equal(reason(await seed({ sequence: 20, ...last })), "conflict");
    assert.equal(reason(await seed({ sequence: 20, ...first })), "ok");
    assert.equal(reason(await seed({ sequence: 20, ...first })), "ok", "again");
    assert.equal(reason(await seed({ sequence: 21, ...last })), "conflict", "of another moment");
    assert.equal(reason(await seed({ sequence: 19, ...first })), "conflict", "of an earlier seeding");
    const shipped = await ship(12, [put("p/2", "12")]);
    assert.ok(!shipped.ok && shipped.failure.reason === "conflict", "half of it is there");
    assert.equal(reason(await seed({ sequence: 20, ...last })), "ok");
    assert.deepEqual(await rows(range.scan({})), [
      ["p/2", "a"],
      ["p/5", "b"],
    ]);
    assert.equal(reason(await seed({ sequence: 20, ...last })), "ok", "again");
    assert.equal(unwrap(await ship(22, [put("p/2", "22")])), 1);
    // A PartitionName that began to be seeded and is gone at the primary.
    assert.equal(reason(await seed({ sequence: 30, ...first, rows: [] })), "ok");
    assert.equal(reason(await seed({ sequence: 31 })), "ok");
    assert.deepEqual(await rows(range.scan({ hidden: true })).then((all) => all.length), 1, "only its marker is left");
    assert.equal(unwrap(await ship(32, [put("p/9", "32")])), 1);
  });
});

test("seeding: without the rule geoSeedingHoldsCommits a late commit lands between the pieces of a later state", async () => {
  for (const without of [[], ["geoSeedingHoldsCommits"]] as const) {
    await onBench(without, async ({ range, seed, ship }) => {
      unwrap(await seed({ sequence: 20, low: name, high: utf8("p/4"), rows: [row("p/2", "at 20")], piece }));
      await ship(12, [put("p/2", "at 12")]);
      await seed({ sequence: 20, low: utf8("p/4"), high: utf8("p0"), piece: { name, isLast: true } });
      assert.equal(await read(range, "p/2"), without.length === 0 ? "at 20" : "at 12");
    });
  }
});

test("shipping: who admits rows is given those that they replace, and those that go with them", async () => {
  await onBench([], async ({ range, world }) => {
    unwrap(await write(range, "p", [put("p/1", "one"), put("p/2", "two"), put("p/3", "three")]));
    const seen: string[][] = [];
    const admits: AdmitsRows = async (rows, stored) => {
      seen.push([...rows, ...(await stored())].map(([, value]) => Buffer.from(value).toString()));
      return ok();
    };
    const writes: RowWrite[] = [put("p/1", "1"), { kind: "delete", key: utf8("p/2") }, put("p/4", "4"), put("p/1", "11")];
    const commits = [{ sequence: 40, lastTicket: 40, writes }];
    unwrap(await applyShipped(world, range, { epoch: 3, name, commits }, { timeoutMs: 10_000, admits }));
    const part = {
      epoch: 3,
      sequence: 50,
      lastTicket: 50,
      low: utf8("a"),
      high: utf8("z"),
      rows: [row("p/1", "1111"), row("p/3", "three")],
    };
    unwrap(await applySeed(world, range, part, { nameOf, timeoutMs: 10_000, admits }));
    assert.deepEqual(seen, [
      ["1", "4", "11", "one", "two"],
      ["1111", "4", "11"],
    ]);
  });
});

test("seeding: a part that is none is refused; the bytes of a seed mark are frozen", async () => {
  await onBench([], async ({ seed }) => {
    for (const odd of [
      { low: utf8("b"), high: utf8("b") },
      { rows: [row("p/2", ""), row("p/1", "")] },
      { low: utf8("q"), rows: [row("p/2", "")] },
      { rows: [[markerKey(name), utf8("")] as const] },
      { low: name, rows: [row("q/2", "")], piece },
    ]) {
      const refused = await seed({ sequence: 5, ...odd });
      assert.ok(!refused.ok && refused.failure.reason === "badRequest", JSON.stringify(refused));
    }
  });
  const mark = { version: { epoch: 7, number: 300 }, upTo: utf8("p/4") };
  assert.equal(Buffer.from(encodeSeedMark(mark)).toString("hex"), "0107ac02" + "702f34");
  assert.deepEqual(unwrap(decodeSeedMark(encodeSeedMark(mark))), mark);
  for (const odd of [new Uint8Array(0), utf8("x"), encodeSeedMark(mark).subarray(0, 3)]) {
    const decoded = decodeSeedMark(odd);
    assert.ok(!decoded.ok && decoded.failure.reason === "damaged");
  }
  assert.ok(isMarkerKey(seedMarkKey(name)));
});
