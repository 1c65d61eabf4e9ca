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
    if (stamp !== undefined) this.history.acknowledged(id, stamp, wallMs + calledMs);
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
  assert.deepEqual(told.judge(last), { acknowledged: 2, lost: 0, shown: 2 });
});

test("geo history: an acknowledged write is lost by nothing but a forced failover that deposed its stamp, after Last Sync Time", () => {
  const run = (forced: { sinceMs: number; endMs: number; source: StampName } | undefined, syncedMs: number): (() => unknown) => {
    const told = new Told();
    const first = told.write(empty, 10, "north");
    told.write(first, 20, "north");
    const last = told.write(first, 60, "south");
    told.history.told("south", 30, wallMs + syncedMs);
    if (forced) told.history.forced.push({ ...forced, target: "south" });
    return () => told.judge(last);
  };
  const forced = { sinceMs: 5, endMs: 50, source: "north" } as const;
  assert.deepEqual(run(forced, 15)(), { acknowledged: 3, lost: 1, shown: 0 });
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
