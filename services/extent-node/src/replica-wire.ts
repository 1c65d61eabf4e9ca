/** Converts a replica to its form on the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Creation, ReplicaState as State } from "@stamp/extent";
import { type ExtentReplicaSchema, ReplicaState, toWire } from "@stamp/wire";
import type { LocalExtent } from "./disk/local-extent.ts";
import type { Node } from "./node.ts";

const states: Readonly<Record<State, ReplicaState>> = {
  open: ReplicaState.OPEN,
  closed: ReplicaState.CLOSED,
  sealed: ReplicaState.SEALED,
  damaged: ReplicaState.DAMAGED,
};

const creationOnWire = ({ number, predecessor, stream }: Creation) => ({
  creation: toWire(number),
  stream,
  ...(predecessor === undefined ? {} : { predecessor: toWire(predecessor) }),
});

export function replicaOnWire(node: Node, extent: LocalExtent): MessageInitShape<typeof ExtentReplicaSchema> {
  const { replica } = extent;
  return {
    extentId: toWire(replica.extentId),
    state: states[replica.state],
    version: toWire(replica.version),
    ownerEpoch: toWire(replica.ownerEpoch),
    durableBytes: toWire(replica.durableBytes),
    committedBytes: toWire(replica.committedBytes),
    ...(replica.sealedLengthBytes === undefined ? {} : { sealedLengthBytes: toWire(replica.sealedLengthBytes) }),
    primary: replica.isPrimary(node.identity.nodeId),
    restarted: replica.restarted,
    fenced: replica.fenced,
    ...(replica.creation === undefined ? {} : creationOnWire(replica.creation)),
  };
}
