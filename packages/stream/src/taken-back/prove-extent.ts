/**
 * Proves extents that the restored metadata do not know by their replicas (docs/decisions/0581). Pure: nodes of this stamp told of the replicas, each
 * of which was compared with its file.
 *
 * Invariant: an extent is proven only by replicas that agree: one creation number, one stream, one predecessor, and one sealed length and checksum at
 * the highest version that any of them was sealed at.
 */
import { type ExtentId, type ExtentVersion, extentVersion, type Outcome, type OwnerEpoch, ok, ownerEpoch, refused } from "@stamp/base";
import type { ExtentRecord, ReplicaPlace } from "../records.ts";

/** Replica that the restored metadata do not explain, as its node reports it. */
export interface UnknownReplica {
  readonly place: ReplicaPlace;
  readonly id: ExtentId;
  /** Creation number of the extent; 0: it has none, or the replica can't be read. */
  readonly creation: number;
  /** Stream that the extent was made for; empty: not known. */
  readonly stream: string;
  /** Extent before this one in the stream; 0: none. Undefined: not known. */
  readonly predecessor: number | undefined;
  readonly ownerEpoch: number;
  readonly version: number;
  readonly durableBytes: number;
  /** Sealed length in bytes; undefined: the node knows of no seal. */
  readonly sealedLengthBytes: number | undefined;
  /** crc32c of the sealed content; undefined: not sealed, or not known. */
  readonly checksum: number | undefined;
  /** Problems that the node found, in words; empty if the replica is intact. */
  readonly problems: readonly string[];
}

export interface ProvenExtent {
  readonly id: ExtentId;
  readonly creation: number;
  readonly stream: string;
  /** Extent before this one in the stream; 0: none. Undefined: not known. */
  readonly predecessor: number | undefined;
  readonly ownerEpoch: OwnerEpoch;
  /** Highest version that a replica has. */
  readonly version: ExtentVersion;
  /** True if anything was ever appended to the extent. */
  readonly hasContent: boolean;
  /** Length and checksum of the seal; undefined: no replica was sealed. */
  readonly sealed: { readonly lengthBytes: number; readonly checksum: number | undefined } | undefined;
  /** Places of all replicas, also of damaged ones, which are made anew. */
  readonly places: readonly ReplicaPlace[];
}

/** Proves an extent by `replicas`, all that were found of one number. Refuses with a reason if they prove none. */
export function proveExtent(id: ExtentId, replicas: readonly UnknownReplica[]): Outcome<ProvenExtent> {
  const intact = replicas.filter(({ problems }) => problems.length === 0);
  const [first] = intact;
  if (first === undefined)
    return unproven(`no replica is intact: ${[...new Set(replicas.flatMap(({ problems }) => problems))].join("; ")}`);
  if (intact.some(({ creation }) => creation === 0)) return unproven("a replica has no creation number: it was made below feature level 4");
  if (differ(intact.map(({ creation }) => creation))) return unproven("two extents had this number, and nothing says which of them counts");
  const streams = intact.map(({ stream }) => stream).filter((stream) => stream !== "");
  const [stream] = streams;
  if (stream === undefined) return unproven("no replica says which stream it was made for");
  if (differ(streams)) return unproven(`its replicas name different streams: ${[...new Set(streams)].join(", ")}`);
  const predecessors = intact.map(({ predecessor }) => predecessor).filter((each) => each !== undefined);
  if (differ(predecessors)) return unproven(`its replicas name different predecessors: ${[...new Set(predecessors)].join(", ")}`);
  const sealed = sealOf(intact);
  if (!sealed.ok) return sealed;
  return ok({
    id,
    creation: first.creation,
    stream,
    predecessor: predecessors[0],
    ownerEpoch: ownerEpoch(Math.max(...intact.map((each) => each.ownerEpoch))),
    version: extentVersion(Math.max(...intact.map(({ version }) => version))),
    hasContent: intact.some(({ durableBytes }) => durableBytes > 0),
    sealed: sealed.value,
    places: replicas.map(({ place }) => place),
  });
}

/** Returns the seal of the highest version: a lower one was told to nobody and given up (`planUnseal`). */
function sealOf(intact: readonly UnknownReplica[]): Outcome<ProvenExtent["sealed"]> {
  const all = intact.filter(({ sealedLengthBytes }) => sealedLengthBytes !== undefined);
  const highest = Math.max(...all.map(({ version }) => version));
  const [seal, ...others] = all.filter(({ version }) => version === highest);
  if (seal?.sealedLengthBytes === undefined) return ok(undefined);
  const { sealedLengthBytes: lengthBytes, checksum } = seal;
  if (others.some((other) => other.sealedLengthBytes !== lengthBytes || other.checksum !== checksum))
    return unproven(`its replicas were sealed at different lengths or contents in version ${highest}`);
  return ok({ lengthBytes, checksum });
}

/** Returns the record of the extent behind which another one was begun, or which is the last of its stream: its seal is settled before it is told. */
export function takenBackRecord(proven: ProvenExtent, known: ExtentRecord | undefined): ExtentRecord {
  const { id, creation, ownerEpoch: epoch, places, sealed, stream, version } = proven;
  const others = (known?.replicas ?? []).filter((one) => !places.some((place) => place.nodeId === one.nodeId));
  const replicas = [...places, ...others].map(({ nodeId, diskId }) => ({ nodeId, diskId, complete: false }));
  return {
    ...{ id, creation, stream, ownerEpoch: epoch, replicas, removed: [] },
    // Above that of every replica, so that commands to their nodes are obeyed.
    version: extentVersion(version + 1),
    phase: sealed === undefined ? "sealing" : "sealed",
    ...(sealed === undefined ? {} : { sealedLengthBytes: sealed.lengthBytes }),
    ...(sealed?.checksum === undefined ? {} : { checksum: sealed.checksum }),
  };
}

const differ = (values: readonly unknown[]): boolean => new Set(values).size > 1;

const unproven = (why: string): Outcome<never> => refused("failedPrecondition", "conflict", why);
