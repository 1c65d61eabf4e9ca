/**
 * Chooses the replicas that have to be made again, and their order: extents with the fewest intact copies first. Pure:
 * facts about the nodes come in, work goes out.
 */
import type { ExtentId } from "@stamp/base";
import type { ExtentRecord, ReplicaRecord } from "./records.ts";

export interface ReplicaHealth {
  /** True if the replica holds the sealed prefix, as far as is known, and its node is up with that disk. */
  readonly live: boolean;
  /** True if the replica is damaged, its disk is gone, or its node is away for longer than the grace. */
  readonly lost: boolean;
  /** True if its node is to be emptied, or it is the second replica in a fault domain while another domain has room. */
  readonly leaving: boolean;
}

export type Assessment =
  | { readonly kind: "fine" }
  /** A node is away and may come back. */
  | { readonly kind: "grace" }
  /** No intact replica can be reached: nothing to copy from. */
  | { readonly kind: "unreachable" }
  /** A copy is to be made; `replaced`: replica whose place it takes; undefined: one more. */
  | { readonly kind: "repair"; readonly replaced: ReplicaRecord | undefined; readonly copiesLeft: number };

export function assess(extent: ExtentRecord, copies: number, health: (replica: ReplicaRecord) => ReplicaHealth): Assessment {
  // A coded extent has no replicas: its fragments are repaired by their own rules (coding/).
  if (extent.phase !== "sealed" || extent.coded !== undefined) return { kind: "fine" };
  let copiesLeft = 0;
  let lost: ReplicaRecord | undefined;
  let leaving: ReplicaRecord | undefined;
  for (const replica of extent.replicas) {
    const known = health(replica);
    if (known.live) copiesLeft += 1;
    if (known.lost) lost ??= replica;
    else if (known.leaving) leaving ??= replica;
  }
  // An empty extent needs no source.
  if (copiesLeft === 0 && extent.sealedLengthBytes !== 0) return { kind: "unreachable" };
  const replaced = lost ?? (extent.replicas.length >= copies ? leaving : undefined);
  if (extent.repair !== undefined || replaced !== undefined) return { kind: "repair", replaced, copiesLeft };
  if (extent.replicas.length < copies) return { kind: "repair", replaced: undefined, copiesLeft };
  return copiesLeft < extent.replicas.length ? { kind: "grace" } : { kind: "fine" };
}

/** Extents that wait for a copy, each once, those with the fewest intact copies first. */
export class RepairQueue {
  readonly #byCopies: Map<ExtentId, number>[] = [];
  readonly #waiting = new Map<ExtentId, number>();
  #bytes = 0;

  get size(): number {
    return this.#waiting.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Number of extents with at most one intact copy. */
  get endangered(): number {
    return (this.#byCopies[0]?.size ?? 0) + (this.#byCopies[1]?.size ?? 0);
  }

  offer(id: ExtentId, copiesLeft: number, lengthBytes: number): void {
    this.drop(id);
    while (this.#byCopies.length <= copiesLeft) this.#byCopies.push(new Map());
    this.#byCopies[copiesLeft]?.set(id, lengthBytes);
    this.#waiting.set(id, copiesLeft);
    this.#bytes += lengthBytes;
  }

  take(): ExtentId | undefined {
    for (const bucket of this.#byCopies) {
      for (const id of bucket.keys()) {
        this.drop(id);
        return id;
      }
    }
    return undefined;
  }

  drop(id: ExtentId): void {
    const copiesLeft = this.#waiting.get(id);
    if (copiesLeft === undefined) return;
    const bucket = this.#byCopies[copiesLeft];
    this.#bytes -= bucket?.get(id) ?? 0;
    bucket?.delete(id);
    this.#waiting.delete(id);
  }
}
