/**
 * Replicas that only a later metadata store can have made or changed: an older folder of the lock service was put back under the stamp, and what was
 * acknowledged since is gone. A store that is older than the nodes' copies of the metadata is refused before (StoreAge of @stamp/metadata-store);
 * what is seen here was written after the newest copy.
 *
 * A replica that was noted stays noted in the term as long as its node lists it: a seal makes the record as new as the replica, and brings nothing
 * back. `stamp fsck` finds the same by reading (packages/cli/src/fsck/compare.ts).
 */
import type { ExtentId } from "@stamp/base";
import { type ExtentRecord, type ReplicaPlace, samePlace } from "@stamp/stream";
import { type ExtentReplica, fromWire, ReplicaState } from "@stamp/wire";

/** Replicas of one node that are remembered. */
const perNodeMax = 1_000;
const named = 10;

export class LaterReplicas {
  readonly #byNode = new Map<string, Map<ExtentId, string>>();
  /** Number below which extents are older than the last restore, while nodes know of later ones. */
  floor = 0;

  note(nodeId: string, id: ExtentId, why: string): void {
    if (id < this.floor) return;
    const held = this.#byNode.get(nodeId) ?? new Map<ExtentId, string>();
    this.#byNode.set(nodeId, held);
    if (held.has(id) || held.size < perNodeMax) held.set(id, why);
  }

  /** Returns the extents of which the node is known to have such a replica. */
  of(nodeId: string): readonly ExtentId[] {
    return [...(this.#byNode.get(nodeId)?.keys() ?? [])];
  }

  /** Notes that the node has the replica no more. */
  release(nodeId: string, id: ExtentId): void {
    const held = this.#byNode.get(nodeId);
    held?.delete(id);
    if (held?.size === 0) this.#byNode.delete(nodeId);
  }

  /** Returns the facts for the status. */
  summary(): { readonly nodeId: string; readonly count: number; readonly sample: readonly ExtentId[]; readonly why: string }[] {
    return [...this.#byNode].map(([nodeId, held]) => {
      const [why = ""] = held.values();
      return { nodeId, count: held.size, sample: [...held.keys()].slice(0, named), why };
    });
  }
}

/**
 * True if the extent was dropped while it was allocated: nobody was told of it. Any other drop records its time (rule
 * `dropTimeRecorded`). A node keeps a replica with content then.
 */
export const isNeverOpened = ({ phase, droppedAtMs, sealedLengthBytes }: ExtentRecord): boolean =>
  phase === "dropped" && droppedAtMs === undefined && sealedLengthBytes === undefined;

/** Returns why the node must have heard from a later store; undefined: nothing says so. */
export function whyLater(extent: ExtentRecord | undefined, place: ReplicaPlace, replica: ExtentReplica): string | undefined {
  // A decoding makes replicas of the version of its attempt.
  if (extent === undefined || extent.attempt !== undefined || !extent.replicas.some((one) => samePlace(one, place))) return undefined;
  const version = fromWire(replica.version);
  const bytes = fromWire(replica.durableBytes);
  if (isNeverOpened(extent) && bytes > 0 && replica.state !== ReplicaState.DAMAGED)
    return `it holds ${bytes} bytes of extent ${extent.id}, which was never opened by the records`;
  if (version > extent.version && extent.phase !== "dropped")
    return `it knows version ${version} of extent ${extent.id}, and the records only version ${extent.version}`;
  return undefined;
}
