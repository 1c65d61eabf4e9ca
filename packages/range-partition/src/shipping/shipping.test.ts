/** Shipping between ranges of two stamps: what the receiver has of each PartitionName is a prefix, whatever the link and the owners do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, type RuleName, unwrap, utf8 } from "@stamp/base";
import { applyShipped, decodeMarker, encodeMarker, isMarkerKey, markerKey, RangeSender, type RowWrite, type Shipment } from "../index.ts";
import { put, read, rows, Stamp, write } from "../testing/harness.ts";
import { ShippingWorld } from "../testing/shipping-world.ts";

async function run(seed: number, without: readonly RuleName[] = []): Promise<ShippingWorld> {
  const world = new ShippingWorld(seed, without);
  await world.stamp.sim.run(async () => {
    await world.begin();
    for (let step = 0; step < 120; step++) await world.step();
    await world.end();
  });
  return world;
}

test("shipping: the receiver has a prefix of each PartitionName, and all of it at the end, over cuts, losses, repeats, moves and splits", async () => {
  let again = 0;
  for (let seed = 1; seed <= 6; seed++) {
    const world = await run(seed);
    assert.ok(world.shipped > 20, `${world.shipped} commits were shipped`);
    again += world.again;
  }
  assert.ok(again > 0, "old shipments came again");
});

for (const rule of ["geoRowVersionsRise", "geoCursorAcknowledged", "geoHeirContinues"] as const) {
  test(`shipping: without the rule ${rule} the receiver has what never was, or not all of it`, async () => {
    let found: unknown;
    for (let seed = 1; seed <= 6 && found === undefined; seed++) {
      await run(seed, [rule]).catch((error: unknown) => {
        found = error;
      });
    }
    assert.match(String(found), /as it never was|at the end/);
  });
}

const commit = (sequence: number, writes: RowWrite[]) => ({ sequence, lastTicket: 100 * sequence, writes });

test("shipping: commits are applied once, in order and by role epoch; what is no shipment of a PartitionName is refused", async () => {
  const stamp = new Stamp(1);
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    const world = stamp.sim.world("door");
    const name = utf8("p/");
    const apply = (epoch: number, ...commits: ReturnType<typeof commit>[]) =>
      applyShipped(world, range, { epoch, name, commits }, { timeoutMs: 10_000 });
    assert.equal(unwrap(await apply(3, commit(5, [put("p/a", "5")]), commit(7, [put("p/a", "7"), put("p/b", "7")]))), 2);
    assert.equal(unwrap(await apply(3, commit(7, [put("p/a", "seven")]), commit(8, [{ kind: "delete", key: utf8("p/b") }]))), 1);
    assert.equal(unwrap(await apply(2, commit(9, [put("p/a", "of an earlier primary")]))), 0);
    assert.equal(unwrap(await apply(4, commit(1, [put("p/c", "of the next primary")]))), 1);
    assert.deepEqual(await rows(range.scan({})), [
      ["p/a", "7"],
      ["p/c", "of the next primary"],
    ]);
    assert.equal(await read(range, "p/b"), undefined);
    // The primary's log has lost its end: sequences come again. What is late from before is refused, and not counted as applied.
    const later = await applyShipped(
      world,
      range,
      { epoch: 5, lineage: 2, name, commits: [commit(2, [put("p/a", "again")])] },
      { timeoutMs: 10_000 },
    );
    assert.equal(unwrap(later), 1);
    assert.equal(await read(range, "p/a"), "again");
    const early = await apply(5, commit(9, [put("p/a", "from before")]));
    assert.ok(!early.ok && early.failure.reason === "staleLineage", JSON.stringify(early));
    const ticket = unwrap(await range.transact(utf8("t"), async (tx) => ({ writes: [], result: tx.nextSequence }), { timeoutMs: 1_000 }));
    assert.ok(ticket > 800, `ticket ${ticket}`);
    for (const odd of [
      [commit(3, []), commit(3, [])],
      [commit(9, [put("q/a", "")])],
      [commit(9, [{ ...put("p/", ""), key: markerKey(name) }])],
    ]) {
      const refused = await apply(5, ...odd);
      assert.ok(!refused.ok && refused.failure.reason === "badRequest", JSON.stringify(refused));
    }
  });
});

test("shipping: a sender with a bound sends no more than that in a second, of all PartitionNames together", async () => {
  const stamp = new Stamp(5);
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    unwrap(await range.followers.begin("f", { low: utf8("a"), high: utf8("z") }, ""));
    for (let i = 0; i < 40; i++) unwrap(await write(range, `p${i}`, [put(`${"abcdefgh"[i % 8]}/${i}`, "x".repeat(997))]));
    const world = stamp.sim.world("sender");
    const sent: { readonly atMs: number; readonly bytes: number }[] = [];
    const link = {
      ship: async ({ commits }: Shipment) => {
        const bytes = commits.flatMap(({ writes }) => writes).reduce((sum, each) => sum + (each.kind === "put" ? each.value.length : 0), 0);
        sent.push({ atMs: world.clock.monotonicMs(), bytes });
        return ok();
      },
    };
    const nameOf = (key: Uint8Array): Uint8Array => key.subarray(0, 2);
    const sender = new RangeSender(world, range.followers, link, {
      follower: "f",
      epoch: 1,
      nameOf,
      bytesPerSecondMax: 4_000,
      onEnd: () => {},
    });
    while (range.followers.status("f")?.pending !== 0) await stamp.sim.sleep(100);
    sender.stop();
    await sender.ended;
    assert.equal(
      sent.reduce((sum, { bytes }) => sum + bytes, 0),
      40 * 997,
    );
    const tookMs = (sent.at(-1)?.atMs ?? 0) - (sent[0]?.atMs ?? 0);
    assert.ok(tookMs > 8_000, `${tookMs} ms of the clock of the simulation for 40,000 bytes`);
  });
});

test("shipping: the marker's bytes are frozen; damage is told", () => {
  const version = { epoch: 7, number: 2 ** 40 + 3 };
  assert.equal(Buffer.from(encodeMarker(version)).toString("hex"), "01078380808080" + "20");
  assert.deepEqual(unwrap(decodeMarker(encodeMarker(version))), version);
  for (const odd of [new Uint8Array(0), utf8("x"), encodeMarker(version).subarray(0, 4), new Uint8Array([...encodeMarker(version), 0])]) {
    const decoded = decodeMarker(odd);
    assert.ok(!decoded.ok && decoded.failure.reason === "damaged");
  }
  const later = { ...version, lineage: 3 };
  assert.equal(Buffer.from(encodeMarker(later)).toString("hex"), "0207038380808080" + "20");
  assert.deepEqual(unwrap(decodeMarker(encodeMarker(later))), later);
  assert.ok(!decodeMarker(Uint8Array.of(3, ...encodeMarker(later).subarray(1))).ok);
  assert.ok(isMarkerKey(markerKey(utf8("p"))) && !isMarkerKey(utf8("p")));
});
