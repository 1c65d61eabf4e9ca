/** Shipping of one range ends when its sender can't go on, so that the shipper begins it again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, compareBytes, FailureError, ok, refused, utf8 } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { accountKeys, encodeKey } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { Transport } from "@stamp/ports";
import { LogFollowers, type LoggedCommit, type RangePartition } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import { ByteGates } from "./data/byte-gate.ts";
import { PlacesBudget } from "./data/copied-places.ts";
import { RangeShipping } from "./range-shipping.ts";
import { ShippingTotals } from "./shipping-figures.ts";

const account = "acct";
const keys = accountKeys(account);
const range = { rangeId: "entity-1", table: "Entity", ...keys } as unknown as Range;
const role: AccountRole = { role: "primary", epoch: 1, obeyed: { operation: 1, phase: 1 }, peer: "b", peerDoors: ["door"], paired: 1 };
const row = { kind: "put", key: encodeKey([[account], ["table", "p"], ["r"]]), value: utf8("v") } as const;

/** The first read of the log fails. */
class UnreadLog extends LogFollowers {
  /** Reads that fail from now on. */
  failing = 1;

  override async *commitsFor(name: string, after: number): AsyncGenerator<LoggedCommit, void, undefined> {
    if (this.failing-- > 0) throw new FailureError(refused("unavailable", "connectFailed", "three replicas are silent").failure);
    yield* super.commitsFor(name, after);
  }
}

test("shipping of a range: if a read of the log fails before the copy is complete, shipping ends, and the next one ships the rest", async () => {
  const sim = new Simulation({ seed: 1, rules: allRules });
  await sim.run(async () => {
    const world = sim.world("server");
    const state = { checkpointedSequence: 0, lastTicket: 0, logStartExtentId: 0 };
    const loaded = { state, streams: { commitLog: { extents: [] } }, replayed: { lastSequence: 1, lastTicket: 1 } };
    const log = loaded as unknown as ConstructorParameters<typeof LogFollowers>[2];
    const followed = { rangeId: range.rangeId, own: keys, recentBytesMax: 1_000 };
    const followers = new UnreadLog(world, followed, log, async () => ok());
    const partition = {
      followers,
      fences: { lead: () => 0 },
      stats: {
        sequence: 2,
        overBeforeMs: 0,
        overBeforeMonotonicMs: 0,
        storage: { rowBytesAccepted: 0 },
        checkpointBytes: 0,
        memoryTableBytes: 0,
      },
      data: { appendedBytes: 0, sealedExtents: [] },
      lineage: { log: 0, store: 0 },
      keySamples: () => [],
    } as unknown as RangePartition;
    const shipped: unknown[] = [];
    const transport = { client: () => ({ ship: async (request: unknown) => ok(shipped.push(request)) }) } as unknown as Transport;
    const options = {
      transportTo: () => ok(transport),
      level: () => 7,
      seedBytesPerSecondMax: 1_000,
      gates: new ByteGates(1_000),
      places: new PlacesBudget(1_000),
      totals: new ShippingTotals(),
    };
    // All rows are seeded; the receiver lacks the last commit before the end of the scan.
    await followers.begin(account, keys, JSON.stringify({ epoch: 1, paired: 1, end: 2 }));
    followers.committed({ firstSequence: 2, transactions: [[row]], lastTicket: 2, end: undefined });
    const first = new RangeShipping(world, range, partition, account, role, options);
    await sim.sleep(2_000);
    assert.deepEqual([first.isEnded, first.facts.failure, shipped.length], [true, "three replicas are silent", 0]);
    const next = new RangeShipping(world, range, partition, account, role, options);
    await sim.sleep(2_000);
    assert.deepEqual([next.isEnded, next.facts.complete, shipped.length], [false, true, 1]);
    assert.equal((shipped[0] as { readonly level: number }).level, 7, "the feature level of the rows is told");
    assert.equal(followers.status(account)?.note, JSON.stringify({ epoch: 1, paired: 1 }), "the note says that the copy is complete");
    next.stop();
    await next.ended;
  });
});

test("shipping of a range: while it is seeded, what was sent counts, though nearly all keys lie behind it", async () => {
  const sim = new Simulation({ seed: 2, rules: allRules });
  await sim.run(async () => {
    const world = sim.world("server");
    const keyOf = (partition: string): Uint8Array => encodeKey([[account], ["table", partition], ["r"]]);
    const rows = ["p", "q"].map((partition): [Uint8Array, Uint8Array] => [keyOf(partition), new Uint8Array(600_000)]);
    const state = { checkpointedSequence: 0, lastTicket: 0, logStartExtentId: 0 };
    const loaded = { state, streams: { commitLog: { extents: [] } }, replayed: { lastSequence: 1, lastTicket: 1 } };
    const log = loaded as unknown as ConstructorParameters<typeof LogFollowers>[2];
    const followers = new LogFollowers(world, { rangeId: range.rangeId, own: keys, recentBytesMax: 1_000 }, log, async () => ok());
    const storage = { rowBytesAccepted: 0 };
    const partition = {
      followers,
      fences: { lead: () => 0 },
      stats: { sequence: 1, overBeforeMs: 0, overBeforeMonotonicMs: 0, storage, checkpointBytes: 1_200_000, memoryTableBytes: 0 },
      data: { appendedBytes: 0, sealedExtents: [] },
      lineage: { log: 0, store: 0 },
      keySamples: () => [keyOf("q"), keyOf("r")],
      snapshot: () => ({ sequence: 1, close: () => {} }),
      async *scan({ gte }: { readonly gte: Uint8Array }) {
        yield* rows.filter(([key]) => compareBytes(key, gte) >= 0);
      },
    } as unknown as RangePartition;
    let seeds = 0;
    const seed = async () => (++seeds === 1 ? ok({}) : refused("unavailable", "connectFailed", "silent"));
    const transport = { client: () => ({ seed }) } as unknown as Transport;
    const shipping = new RangeShipping(world, range, partition, account, role, {
      transportTo: () => ok(transport),
      level: () => 7,
      seedBytesPerSecondMax: 1_000_000_000,
      gates: new ByteGates(1_000),
      places: new PlacesBudget(1_000),
      totals: new ShippingTotals(),
    });
    await sim.sleep(2_000);
    const { state: now, seededBytes, seedBytes } = shipping.facts;
    assert.ok(now === "seeding" && seeds > 1, `${now}, ${seeds} parts were sent`);
    assert.deepEqual([seedBytes, seededBytes > 600_000 && seededBytes < 610_000], [1_200_000, true], `${seededBytes} bytes`);
    shipping.stop();
    await shipping.ended;
  });
});
