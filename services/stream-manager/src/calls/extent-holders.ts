/** Nodes that may have raw content of an extent: what its record says, in the words of stream_manager.proto. */
import type { ExtentId } from "@stamp/base";
import { holdersOf, type ReplicaPlace, targetsOf } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Serving } from "../leader.ts";

/** Returns the names of nodes that may have raw content of the extent, by its record, and the nodes of a coding that is under way. */
export function holdersOnWire({ adoption, term }: Pick<Serving, "adoption" | "term">, id: ExtentId) {
  const extent = term.state.extent(id);
  if (extent === undefined) return { nodeIds: [] };
  const { attempt, replicas } = extent;
  const reader = adoption.readerOf(id);
  const nodeIds = [...holdersOf(extent), ...(reader === undefined ? [] : [reader])];
  if (attempt?.kind !== "code") return { nodeIds };
  const namesOf = (places: readonly ReplicaPlace[]): string[] => places.map(({ nodeId }) => nodeId);
  return { nodeIds, coding: { version: toWire(attempt.version), makers: namesOf(replicas), targets: namesOf(targetsOf(attempt)) } };
}
