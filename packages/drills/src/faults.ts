/** Processes that a drill strikes, and the blows. */
import { compareBytes, prefixEnd } from "@stamp/base";
import { blobsOfContainerName } from "@stamp/objects";
import type { RangePartition } from "@stamp/wire";
import type { CodedBlobs } from "./coding/coded-blobs.ts";
import type { DrillTarget } from "./target.ts";

export interface DrillContext {
  readonly target: DrillTarget;
  /** Number of ranges of the Blob table, for drills that make many. Default 20. */
  readonly ranges?: number;
  /** Container that the clients of the drill write to. Undefined: they write to several tables. */
  readonly container?: { readonly account: string; readonly name: string };
  /** Blobs in coded extents, of a drill of erasure coding. */
  readonly blobs?: CodedBlobs;
  /** Marks the moment of the fault. */
  readonly fault: (what: string) => void;
  readonly note: (what: string) => void;
}

/**
 * Returns the range that clients write: of the Blob table, the one with the drill's container; if the container lies in several ranges, the
 * one with the most writes now. Where no container is known, the table's first range.
 */
export async function rangeWritten({ target, container }: DrillContext, table = "Blob"): Promise<RangePartition> {
  const ranges = (await target.inspector.ranges()).filter((each) => each.table === table);
  const written = table === "Blob" && container !== undefined ? rangesOfContainer(ranges, container) : ranges.slice(0, 1);
  const [first] = written;
  if (first === undefined) throw new Error(`nobody knows the ranges of the ${table} table`);
  if (written.length === 1) return first;
  const held = await target.inspector.held();
  const writesPerSecond = ({ rangeId }: RangePartition): number => held.get(rangeId)?.load?.writesPerSecond ?? 0;
  return written.reduce((most, each) => (writesPerSecond(each) > writesPerSecond(most) ? each : most), first);
}

/** Returns the ranges that hold blobs of the container. */
export function rangesOfContainer(
  ranges: readonly RangePartition[],
  { account, name }: { readonly account: string; readonly name: string },
): readonly RangePartition[] {
  const low = blobsOfContainerName(account, name);
  const high = prefixEnd(low);
  return ranges.filter(
    ({ lowKey, highKey }) =>
      (high === undefined || compareBytes(lowKey, high) < 0) && (highKey.length === 0 || compareBytes(low, highKey) < 0),
  );
}

/** Returns the nodes of the extent that the commit log of the written range is in now, primary first. */
export async function nodesWrittenTo(context: DrillContext, table = "Blob"): Promise<readonly string[]> {
  const [range, extents] = await Promise.all([rangeWritten(context, table), context.target.inspector.extents()]);
  const stream = range.streams?.commitLog;
  const last = extents.filter((extent) => extent.stream === stream && extent.location?.sealedLengthBytes === undefined).at(-1);
  if (last === undefined || last.nodeIds.length === 0) throw new Error(`the commit log of range ${range.rangeId} has no open extent`);
  return last.nodeIds;
}

/** Returns the server of the range that clients write. */
export async function serverOf(context: DrillContext, table = "Blob"): Promise<string> {
  const range = await rangeWritten(context, table);
  if (range.server === "") throw new Error(`nobody serves range ${range.rangeId} of the ${table} table`);
  return range.server;
}

/** Returns the name of the leading process of a role. */
export async function leaderOf({ target }: DrillContext, role: "stream-manager" | "partition-manager"): Promise<string> {
  const address = await target.inspector.leader(role);
  const found = (await target.status()).processes.find((each) => each.grpc === address);
  if (found === undefined) throw new Error(`no process of this cluster is at ${address}`);
  return found.name;
}

/** Returns the name of the lock service that serves: of several, the others follow it. */
export async function servingLockService({ target }: DrillContext): Promise<string> {
  const found = (await target.status()).processes.find(({ role, state }) => role === "lock-service" && state === "serving");
  if (found === undefined) throw new Error("no lock service of this cluster serves");
  return found.name;
}

export async function kill(context: DrillContext, name: string): Promise<void> {
  context.fault(`kill -9 ${name}`);
  await context.target.ask({ do: "signal", name, signal: "SIGKILL" });
}
