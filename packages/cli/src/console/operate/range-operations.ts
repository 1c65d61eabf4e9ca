/**
 * Changes of ranges, by path: for sessions with the role "operate". The partition manager makes them, as for `stamp partition`.
 *
 * Invariants:
 * - The manager is asked once. If its answer does not come in time, the change may still be made: the page says so.
 */
import { FailureError, type Outcome } from "@stamp/base";
import type { Client } from "@stamp/ports";
import type { PartitionManager, PartitionsChanged } from "@stamp/wire";
import { whatNext } from "../../partitions/partition-command.ts";
import { textIn, wordIn } from "../data/fields.ts";
import type { StampChange } from "./account-operations.ts";

/** A page waits 30 s for a change. */
const callTimeoutMs = 27_000;

/** Client of the partition manager that leads. */
type RangeManager = Pick<Client<typeof PartitionManager>, "splitPartition" | "mergePartition" | "movePartition">;

/** Returns the changes by path. `manager` throws if no partition manager leads. */
export function rangeOperations(manager: () => Promise<RangeManager>): Readonly<Record<string, StampChange>> {
  const callOf = (signal: AbortSignal) => ({ timeoutMs: callTimeoutMs, signal });
  return {
    "/api/split-range": async (fields, signal) => {
      const rangeId = wordIn(fields, "range");
      return toldOf(await (await manager()).splitPartition({ rangeId }, callOf(signal)));
    },
    "/api/merge-range": async (fields, signal) => {
      const rangeId = wordIn(fields, "range");
      return toldOf(await (await manager()).mergePartition({ rangeId }, callOf(signal)));
    },
    // Without a server: to the one that serves least.
    "/api/move-range": async (fields, signal) => {
      const [rangeId, server] = [wordIn(fields, "range"), textIn(fields, "server")];
      return toldOf(await (await manager()).movePartition({ rangeId, server }, callOf(signal)));
    },
  };
}

/** Returns the ranges that there are now, and for how long writes waited. */
function toldOf(answer: Outcome<PartitionsChanged>): object {
  if (!answer.ok) {
    const { failure } = answer;
    throw new FailureError({ ...failure, message: `${failure.message}${whatNext(failure)}` });
  }
  const { ranges, heldMs } = answer.value;
  return { ranges: ranges.map(({ rangeId, server }) => ({ id: rangeId, server })), heldMs };
}
