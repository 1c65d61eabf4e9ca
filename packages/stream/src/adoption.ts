/**
 * Takes a replica in quarantine back into its extent. Pure: what the node found by reading the whole replica comes in.
 *
 * Invariant: a replica is adopted only if the record of the sealed extent proves every byte of it, by extent, creation, version, sealed length
 * and checksum. The record is the proof, so an extent without one, or without a checksum, takes nothing back.
 *
 * An extent that is recorded as fragments takes a newer replica back: the metadata were restored from a copy of before a decoding. The caller owes
 * that the fragments can't be decoded.
 */
import { type ExtentId, extentVersion, type Outcome, ok, refused } from "@stamp/base";
import { samePlace } from "./plan-extents.ts";
import type { ExtentRecord, ReplicaPlace } from "./records.ts";
import type { TransactionPlan } from "./state/changes.ts";
import type { StreamState } from "./state.ts";

/** Report of a node about a replica that it has read completely. */
export interface FoundReplica {
  readonly sealed: boolean;
  /** Creation number of the extent that the replica is of; 0: it has none. */
  readonly creation: number;
  readonly version: number;
  /** Sealed length in bytes; undefined if the replica is not sealed. */
  readonly sealedLengthBytes: number | undefined;
  /** crc32c of the whole content. */
  readonly checksum: number | undefined;
  /** Problems that the node found, in words; empty if the replica is intact. */
  readonly problems: readonly string[];
}

/**
 * Versions that a replica may be ahead of its record. Each seal and repair raises a version by one, so a record that was restored from an older
 * copy is a few behind; a number far beyond was never given.
 */
export const versionsAheadMax = 1_000;

/** Returns why a replica can't be adopted, in words; undefined if the record proves that it belongs. */
export function refuseAdoption(id: ExtentId, extent: ExtentRecord | undefined, found: FoundReplica): string | undefined {
  if (extent === undefined || extent.phase === "dropped")
    return `the metadata know no extent ${id}: nothing proves that the replica belongs to the stamp`;
  if (found.creation !== (extent.creation ?? 0)) return `the replica is of another extent that had the number ${id}`;
  if (extent.phase !== "sealed" || extent.untold !== undefined) return `extent ${id} is not sealed for good: its length is not settled yet`;
  if (extent.attempt !== undefined) return `an attempt at extent ${id} is under way: ${extent.attempt.kind}`;
  if (extent.checksum === undefined) return `the metadata hold no checksum of extent ${id}: nothing proves the content of the replica`;
  if (found.problems.length > 0) return `the replica is not intact: ${found.problems.join("; ")}`;
  if (!found.sealed || found.sealedLengthBytes === undefined) return "the replica is not sealed";
  if (found.version < extent.version)
    return `the replica is stale: it has version ${found.version}, and the extent was changed since, to version ${extent.version}`;
  if (extent.coded !== undefined && found.version === extent.version)
    return `extent ${id} is stored as fragments, and the replica is not newer: it is none that the fragments were decoded to`;
  if (found.version > extent.version + versionsAheadMax)
    return `the replica has version ${found.version}, far beyond version ${extent.version} of the extent: it was never given`;
  if (found.sealedLengthBytes !== extent.sealedLengthBytes) {
    const than = found.sealedLengthBytes < (extent.sealedLengthBytes ?? 0) ? "shorter" : "longer";
    return `the replica is ${than} than the extent: sealed at ${found.sealedLengthBytes}, recorded is ${extent.sealedLengthBytes}`;
  }
  if (found.checksum !== extent.checksum) return `the replica has checksum ${found.checksum}, recorded is ${extent.checksum}`;
  return undefined;
}

/**
 * Adds a replica that was found intact to its extent; it takes the place of `replaced`, or is one more. Refused if the record changed since
 * the replica was compared with it. The version goes above that of the replica, so that later commands to its node are obeyed. Fragments that the
 * record named are garbage, as after a decoding.
 */
export function planAdopt(
  state: StreamState,
  id: ExtentId,
  target: ReplicaPlace,
  { found, replaced }: { readonly found: FoundReplica; readonly replaced: ReplicaPlace | undefined },
): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  const why = refuseAdoption(id, extent, found);
  if (extent === undefined || why !== undefined) return refused("failedPrecondition", "conflict", why ?? "");
  if (extent.replicas.some((replica) => samePlace(replica, target)))
    return refused("aborted", "conflict", `the replica on node ${target.nodeId} is one of extent ${id} already`);
  const gone = (place: ReplicaPlace): boolean => place.nodeId === target.nodeId || (replaced !== undefined && samePlace(place, replaced));
  const { repair, coded, removedFragments = [], ...rest } = extent;
  // A copy that was begun is given up: what its node has of it is garbage.
  const copied = repair === undefined || extent.replicas.some((replica) => samePlace(replica, repair)) ? [] : [repair];
  const left = [...copied, ...extent.replicas.filter(gone)].map(({ nodeId, diskId }) => ({ nodeId, diskId }));
  const removed = [...extent.removed, ...left].filter(
    (place, at, all) => !samePlace(place, target) && all.findIndex((other) => samePlace(other, place)) === at,
  );
  const replicas = [...extent.replicas.filter((replica) => !gone(replica)), { ...target, complete: true }];
  const version = extentVersion(Math.max(extent.version, found.version) + 1);
  const fragments = [...removedFragments, ...(coded?.fragments ?? [])];
  const record = { ...rest, replicas, removed, version, ...(fragments.length === 0 ? {} : { removedFragments: fragments }) };
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}
