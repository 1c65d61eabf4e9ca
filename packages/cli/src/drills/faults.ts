/** Whom a drill strikes, and with what. */
import type { DrillTarget } from "./target.ts";

export interface DrillContext {
  readonly target: DrillTarget;
  /** Of the Blob table, for drills that make many. Default 20. */
  readonly ranges?: number;
  /** Marks the moment of the fault. */
  readonly fault: (what: string) => void;
  readonly note: (what: string) => void;
}

/** The nodes of the extent that a table's commit log is written to now, primary first. */
export async function nodesWrittenTo({ target }: DrillContext, table = "Blob"): Promise<readonly string[]> {
  const [ranges, extents] = await Promise.all([target.inspector.ranges(), target.inspector.extents()]);
  const stream = ranges.find((range) => range.table === table)?.streams?.commitLog;
  const last = extents.filter((extent) => extent.stream === stream && extent.location?.sealedLengthBytes === undefined).at(-1);
  if (last === undefined || last.nodeIds.length === 0) throw new Error(`the commit log of table ${table} has no open extent`);
  return last.nodeIds;
}

/** Of the table's first range. */
export async function serverOf({ target }: DrillContext, table = "Blob"): Promise<string> {
  const range = (await target.inspector.ranges()).find((each) => each.table === table);
  if (range === undefined || range.server === "") throw new Error(`nobody serves the ${table} table`);
  return range.server;
}

/** Among several processes of a role the one that leads. */
export async function leaderOf({ target }: DrillContext, role: "stream-manager" | "partition-manager"): Promise<string> {
  const address = await target.inspector.leader(role);
  const found = (await target.status()).processes.find((each) => each.grpc === address);
  if (found === undefined) throw new Error(`no process of this cluster is at ${address}`);
  return found.name;
}

export async function kill(context: DrillContext, name: string): Promise<void> {
  context.fault(`kill -9 ${name}`);
  await context.target.ask({ do: "signal", name, signal: "SIGKILL" });
}
