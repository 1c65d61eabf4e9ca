/** Parents that leave: two neighbours, and one whose writes are decided but not durable. */
import { type Outcome, unwrap } from "@stamp/base";
import type { RangePartition } from "../index.ts";
import type { Stamp } from "./harness.ts";
import { keyOf, leave, type Place } from "./reshape-harness.ts";

/** Two neighbours, r2 and r3, that meet at 200. */
export async function neighbours(stamp: Stamp): Promise<[[Place, RangePartition], [Place, RangePartition]]> {
  return [
    [{ rangeId: "r2", epoch: 2 }, unwrap(await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(200) }))],
    [{ rangeId: "r3", epoch: 3 }, unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(200) }))],
  ];
}
export const r4 = { rangeId: "r4", epoch: 4 };

export const isMoving = (outcome: Outcome<unknown>): boolean =>
  !outcome.ok && outcome.failure.reason === "partitionLoading" && outcome.failure.applied === "no";

/** With writes that are decided and not durable. `commits`: before they left. */
export async function leaveWith(
  stamp: Stamp,
  parents: readonly RangePartition[],
  children: readonly string[],
  writes: readonly Promise<Outcome<unknown>>[],
) {
  await stamp.sim.sleep(0.1);
  const commits = parents.reduce((sum, { stats }) => sum + stats.commits, 0);
  const left = await leave(parents, children);
  const outcomes = await Promise.all(writes);
  return { left, commits, acknowledged: outcomes.map(({ ok }) => ok) };
}
