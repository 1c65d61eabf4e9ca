/** Range partitions that are split and merged as a partition server does it, for the tests of this package. */
import { type Outcome, unwrap } from "@stamp/base";
import { Departure } from "../handoff/departure.ts";
import { type HandedOver, handOver } from "../handoff/hand-over.ts";
import type { LeftPartition } from "../handoff/leave.ts";
import type { RangePartition } from "../index.ts";
import { put, remove, rows, type Stamp, streamsOf, write } from "./harness.ts";

export const keyOf = (i: number): string => `k${String(i).padStart(4, "0")}`;

export async function fill(partition: RangePartition, from: number, to: number, value: string): Promise<void> {
  for (let at = from; at < to; at += 50) {
    const writes = Array.from({ length: Math.min(50, to - at) }, (_, i) => put(keyOf(at + i), `${value} ${"x".repeat(200)}`));
    unwrap(await write(partition, `l${at}`, writes));
  }
}

export const keysOf = async (partition: RangePartition): Promise<string[]> => (await rows(partition.scan({}))).map(([key]) => key);
export const from = (start: number, end: number): string[] => Array.from({ length: end - start }, (_, i) => keyOf(start + i));

export interface Place {
  readonly rangeId: string;
  readonly epoch: number;
}
export const owned = ({ rangeId, epoch }: Place) => ({ streams: streamsOf(rangeId), ownerEpoch: epoch });

export const leave = (parents: readonly RangePartition[], children: readonly string[]): Promise<Outcome<LeftPartition>> =>
  Departure.leave(
    parents.map(({ departure }) => departure),
    children,
  );

/** Takes a range over as a partition server does. */
export async function become(
  stamp: Stamp,
  server: string,
  parents: readonly [Place, RangePartition][],
  children: readonly Place[],
): Promise<Outcome<unknown>> {
  const left = await leave(
    parents.map(([, partition]) => partition),
    children.map(({ rangeId }) => rangeId),
  );
  return handOverTo(stamp, server, parents, unwrap(left), children);
}

/** Gives the children what the parents have left. */
export async function handOverTo(
  stamp: Stamp,
  server: string,
  parents: readonly [Place, RangePartition][],
  { recordExtentId, log, became }: LeftPartition,
  children: readonly Place[],
): Promise<Outcome<HandedOver>> {
  const first = { recordExtentId, ...(log && { logFromExtentId: log.fromExtentId }) };
  const places = parents.map(([place, { streams }], i) => ({ ...owned(place), left: streams, ...(i === 0 && first) }));
  const handed = await handOver(stamp.sim.world(server), stamp.client(server), places, children.map(owned), 10_000);
  became(handed.ok);
  return handed;
}

/** Small memory tables: what is split lies in several checkpoints, in the memory table, and in tombstones over both. */
export const limits = { memoryTableBytesMax: 16 * 1024, checkpointsMax: 3 };

export async function splitAt200(stamp: Stamp): Promise<{ parent: RangePartition; left: RangePartition; right: RangePartition }> {
  const parent = unwrap(await stamp.load(1, "ps"));
  await fill(parent, 0, 400, "first");
  await fill(parent, 100, 300, "second");
  unwrap(await write(parent, "l", [remove(keyOf(5)), remove(keyOf(250)), put(keyOf(399), "last")]));
  unwrap(
    await become(
      stamp,
      "ps",
      [[{ rangeId: "r1", epoch: 1 }, parent]],
      [
        { rangeId: "r2", epoch: 2 },
        { rangeId: "r3", epoch: 3 },
      ],
    ),
  );
  const left = unwrap(await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(200), create: false }));
  const right = unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(200), create: false }));
  return { parent, left, right };
}

export const expected = from(0, 400).filter((key) => key !== keyOf(5) && key !== keyOf(250));
