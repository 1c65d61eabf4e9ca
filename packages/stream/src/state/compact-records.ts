/** Keeps records of extents in little memory: a million extents have few different sets of replicas, streams and nodes. */
import type { ExtentRecord, FragmentPlace, NodeRecord, ReplicaPlace, ReplicaRecord } from "../records.ts";

const noPlaces: readonly ReplicaPlace[] = [];
/** Different sets of replicas that are remembered to be shared between records; beyond, they are only not shared. */
const replicaSetsMax = 100_000;

export class CompactRecords {
  readonly #node: (nodeId: string) => NodeRecord | undefined;
  /** Distinct sets of replicas, by nodes, disks and completeness. */
  readonly #replicaSets = new Map<string, readonly ReplicaRecord[]>();

  constructor(node: (nodeId: string) => NodeRecord | undefined) {
    this.#node = node;
  }

  /** Returns the same record in less memory. `stream` is the text of the stream's own record. */
  extent(record: ExtentRecord, stream: string): ExtentRecord {
    const { id, phase, version, ownerEpoch, sealedLengthBytes, checksum, repair, loss, untold, droppedAtMs } = record;
    const { coded, attempt, removedFragments, creation } = record;
    const created = creation === undefined ? {} : { creation };
    const replicas = this.#shared(record.replicas);
    const removed = record.removed.length === 0 ? noPlaces : record.removed;
    const dropped = droppedAtMs === undefined ? {} : { droppedAtMs };
    if (sealedLengthBytes === undefined)
      return { id, phase, version, ownerEpoch, stream, replicas, removed, ...created, ...(loss && { loss }), ...dropped };
    const sealed = { id, phase, version, ownerEpoch, stream, replicas, removed, sealedLengthBytes };
    const plain = coded === undefined && attempt === undefined && removedFragments === undefined;
    if (plain && repair === undefined && loss === undefined && untold === undefined && droppedAtMs === undefined)
      return { ...sealed, ...(checksum === undefined ? {} : { checksum }), ...created };
    return {
      ...sealed,
      ...created,
      ...(checksum === undefined ? {} : { checksum }),
      ...(repair === undefined ? {} : { repair }),
      ...(loss === undefined ? {} : { loss }),
      ...(untold === undefined ? {} : { untold }),
      ...dropped,
      ...(coded === undefined ? {} : { coded: { ...coded, fragments: coded.fragments.map((each) => this.#named(each)) } }),
      ...(attempt === undefined ? {} : { attempt }),
      ...(removedFragments === undefined ? {} : { removedFragments }),
    };
  }

  /** Returns the same place with the texts of the node's record, which are in memory once. */
  #named({ nodeId, diskId, version }: FragmentPlace): FragmentPlace {
    const node = this.#node(nodeId);
    return { nodeId: node?.nodeId ?? nodeId, diskId: node?.diskId === diskId ? node.diskId : diskId, version };
  }

  /** Returns the set of replicas that is in memory already, if there is an equal one. */
  #shared(replicas: readonly ReplicaRecord[]): readonly ReplicaRecord[] {
    let key = "";
    for (const { nodeId, diskId, complete } of replicas) key += `${nodeId} ${diskId} ${complete ? 1 : 0},`;
    const known = this.#replicaSets.get(key);
    if (known !== undefined) return known;
    if (this.#replicaSets.size >= replicaSetsMax) this.#replicaSets.clear();
    this.#replicaSets.set(key, replicas);
    return replicas;
  }
}
