/** Judge of the workload geo: it sees a lost write, a state that is no prefix, and a Last Sync Time that overstates, and excuses a forced loss. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { empty, GeoHistory, lastRow, type Rows } from "./history.ts";
import type { StampName } from "./location.ts";

const name = "p0";
const wallMs = 1_000_000;
const rows = (id: number): Rows => new Map([[lastRow, id]]);

/** A writer at stamps whose clocks show `wallMs` at the start. */
class Told {
  readonly history = new GeoHistory();

  /** A write upon another one, acknowledged by a stamp; undefined: by none. */
  write(parent: number, calledMs: number, stamp?: StampName): number {
    const id = this.history.called(name, parent, rows, calledMs);
    if (stamp !== undefined) this.history.acknowledged(id, stamp, wallMs + calledMs, calledMs + 1);
    return id;
  }

  shows(id: number, calledMs: number, secondary: boolean, stamp: StampName, shown: Rows = id === empty ? new Map() : rows(id)): void {
    const { syncedMs } = this.history;
    this.history.shown({ name, stamp, secondary, calledMs, syncedMs, own: this.history.ownOf(stamp, name) }, shown);
  }

  judge(last: number) {
    return this.history.judge(new Map([[name, last]]));
  }
}

test("geo history: writes, copies behind them, and an unacknowledged write that came to nothing are right", () => {
  const told = new Told();
  const first = told.write(empty, 10, "north");
  told.write(first, 15);
  told.history.told("south", 18, wallMs + 12);
  told.shows(first, 20, true, "south");
  const last = told.write(first, 25, "south");
  told.shows(last, 30, false, "south");
  const { acknowledged, lost, shown } = told.judge(last);
  assert.deepEqual([acknowledged, lost, shown], [2, 0, 2]);
});

test("geo history: an acknowledged write is lost by nothing but a forced failover that deposed its stamp, after Last Sync Time", () => {
  const run = (
    forced: { sinceMs: number; endMs: number; source: StampName } | undefined,
    syncedMs: number,
  ): (() => Readonly<Record<string, number>>) => {
    const told = new Told();
    const first = told.write(empty, 10, "north");
    told.write(first, 20, "north");
    const last = told.write(first, 60, "south");
    told.history.told("south", 30, wallMs + syncedMs);
    // The deposed stamp is the copy by now.
    told.history.told("north", 40, wallMs + 30);
    if (forced) told.history.forced.push({ ...forced, target: "south" });
    return () => told.judge(last);
  };
  const forced = { sinceMs: 5, endMs: 50, source: "north" } as const;
  assert.equal(run(forced, 15)().lost, 1);
  assert.throws(run(undefined, 15), /write 2 of p0.*is lost, and no forced failover lost it/);
  assert.throws(run({ ...forced, source: "south" }, 15), /is lost, and no forced failover lost it/);
  assert.throws(run({ ...forced, endMs: 20 }, 15), /is lost, and no forced failover lost it/);
  assert.throws(run({ ...forced, sinceMs: 21 }, 15), /is lost, and no forced failover lost it/);
  assert.throws(run(forced, 20), /is lost: written 0 ms before the Last Sync Time that was told/);
});

test("geo history: a copy shows states of its primary only, never goes back, and has what Last Sync Time says", () => {
  const begin = () => {
    const told = new Told();
    const first = told.write(empty, 10, "north");
    return { told, first, second: told.write(first, 20, "north"), lost: told.write(first, 20) };
  };
  const one = begin();
  one.told.shows(one.lost, 30, true, "south");
  assert.throws(() => one.told.judge(one.second), /the copy at stamp south showed write 3 of p0, which is no state of its primary/);
  const two = begin();
  two.told.shows(two.second, 30, true, "south");
  two.told.shows(two.first, 31, true, "south");
  assert.throws(() => two.told.judge(two.second), /showed write 1 of p0 after write 2/);
  const three = begin();
  three.told.history.told("south", 25, wallMs + 22);
  three.told.shows(three.first, 30, true, "south");
  assert.throws(() => three.told.judge(three.second), /without write 2, written 2 ms before the Last Sync Time that was told/);
  const four = begin();
  assert.throws(
    () =>
      four.told.shows(
        four.second,
        30,
        true,
        "south",
        new Map([
          [lastRow, 2],
          ["r0", 1],
        ]),
      ),
    /shows of p0 last of write 2, r0 of write 1; write 2 left last of write 2/,
  );
  const five = begin();
  five.told.shows(five.first, 30, false, "north");
  assert.throws(() => five.told.judge(five.second), /behind write 2 that it had acknowledged/);
});

test("geo history: a stamp that knows that it is deposed acknowledges nothing, but for a term of the caches", () => {
  const run = (rest: { readonly fromMs: number; readonly toMs: number }): (() => unknown) => {
    const told = new Told();
    const last = told.write(told.write(empty, 2_000, "north"), 5_000, "north");
    told.history.rested({ stamp: "north", role: "unseeded", ...rest });
    return () => told.judge(last);
  };
  assert.throws(run({ fromMs: 3_899, toMs: 5_002 }), /write 2 of p0 was acknowledged by stamp north, .*which was unseeded and knew it/);
  assert.ok(run({ fromMs: 3_901, toMs: 5_002 })());
  assert.ok(run({ fromMs: 3_899, toMs: 5_001 })(), "the role may have changed before the answer");
});

test("geo history: a report has every write that a forced failover lost, as it was, and none that the new primary has", () => {
  const run = (rows: readonly (readonly [string, number | undefined])[] | undefined, merged = false): (() => unknown) => {
    const told = new Told();
    const first = told.write(empty, 10, "north");
    told.write(first, 20, "north");
    const last = told.write(first, 60, "south");
    const commits = rows === undefined ? [] : [{ name, operation: 7, rows: new Map(rows) }];
    told.history.forced.push({ source: "north", target: "south", sinceMs: 5, endMs: 50, operation: 7, report: commits, merged });
    return () => told.judge(last);
  };
  assert.ok(run([[lastRow, 2]])());
  assert.throws(run(undefined), /write 2 of p0.*is lost and not in the report of failover 7/);
  assert.throws(run([[lastRow, 1]]), /the report of failover 7 has of p0 write 1, which the new primary has/);
  assert.throws(run([["r0", 2]]), /the report of failover 7 has of p0 r0 of write 2, which no write left/);
  const half: (readonly [string, number | undefined])[] = [
    [lastRow, 2],
    ["r1", undefined],
  ];
  assert.throws(run(half), /has of p0 last of write 2, r1 deleted, and write 2 changed last/);
  assert.ok(run(half, true)(), "a merge joins commits");
  assert.throws(run([[lastRow, 1]], true), /is lost and not in the report/);
});
