/**
 * Durable facts about one replica: the content of the extent file's header, of the journal's create and repair records
 * and of the node's extent table. See docs/formats/extent.md.
 */
import { type ExtentId, type ExtentVersion, extentId, extentVersion, type OwnerEpoch, ownerEpoch } from "@stamp/base";
import { type Decoded, decoding, FieldWriter, Malformed, Reader } from "../format/binary.ts";

export interface ReplicaPlace {
  readonly nodeId: string;
  readonly address: string;
  readonly diskId: string;
}

export type ReplicaState = "open" | "closed" | "sealed" | "damaged";

export interface ReplicaMeta {
  readonly extentId: ExtentId;
  readonly version: ExtentVersion;
  readonly ownerEpoch: OwnerEpoch;
  readonly state: ReplicaState;
  /** True if the replica takes no appends for ever, by the stream manager's word. */
  readonly fenced: boolean;
  /** True if the node restarted while the replica was not sealed. */
  readonly restarted: boolean;
  readonly sealedLengthBytes: number | undefined;
  /** crc32c of the whole sealed content. */
  readonly checksum: number | undefined;
  readonly durableBytes: number;
  readonly committedBytes: number;
  /** Journal records up to here are reflected in this. */
  readonly appliedLsn: number;
  /** The first is the primary. */
  readonly replicas: readonly ReplicaPlace[];
  /** Reason why the replica is damaged; empty: it is not. */
  readonly damage: string;
  /** Creation of the extent that the replica is of. Undefined: the extent has no creation number, or the replica can't be read. */
  readonly creation?: Creation | undefined;
}

/** Facts that the stream manager told when it made the extent. */
export interface Creation {
  /** Random, from 1 on: tells two extents apart that were given one number. */
  readonly number: number;
  /** Stream that the extent was made for. */
  readonly stream: string;
  /** Extent before this one in the stream; 0: none. Undefined: not known. */
  readonly predecessor?: number | undefined;
}

/** Returns the state of a replica whose header can't be read: it never gives a length, and the stream manager hears of it. */
export const unreadableMeta = (id: ExtentId, damage: string): ReplicaMeta => ({
  extentId: id,
  version: unreadableVersion,
  ownerEpoch: ownerEpoch(0),
  state: "damaged",
  fenced: true,
  restarted: true,
  sealedLengthBytes: undefined,
  checksum: undefined,
  durableBytes: 0,
  committedBytes: 0,
  appliedLsn: 0,
  replicas: [],
  damage,
});

/** Version that no replica is made with. */
const unreadableVersion = extentVersion(0);

export const isUnreadable = ({ state, version }: ReplicaMeta): boolean => state === "damaged" && version === unreadableVersion;

const states: readonly ReplicaState[] = ["open", "closed", "sealed", "damaged"];
const replicasMax = 16;
const flagFenced = 1;
const flagRestarted = 2;
/** A creation follows the damage. A replica without it is written as before creation numbers. */
const flagCreation = 4;
const absent = 0;
const given = 1;

function putOptional(writer: FieldWriter, value: number | undefined): void {
  writer.u8(value === undefined ? absent : given);
  writer.u64(value ?? 0);
}

function getOptional(reader: Reader): number | undefined {
  const flag = reader.u8();
  const value = reader.u64();
  if (flag > given) throw new Malformed("optional number");
  return flag === given ? value : undefined;
}

export function writeMeta(writer: FieldWriter, meta: ReplicaMeta): void {
  writer.u64(meta.extentId);
  writer.u64(meta.version);
  writer.u64(meta.ownerEpoch);
  writer.u8(states.indexOf(meta.state) + 1);
  writer.u8((meta.fenced ? flagFenced : 0) | (meta.restarted ? flagRestarted : 0) | (meta.creation === undefined ? 0 : flagCreation));
  putOptional(writer, meta.sealedLengthBytes);
  putOptional(writer, meta.checksum);
  writer.u64(meta.durableBytes);
  writer.u64(meta.committedBytes);
  writer.u64(meta.appliedLsn);
  writer.u8(meta.replicas.length);
  for (const replica of meta.replicas) {
    writer.text(replica.nodeId);
    writer.text(replica.address);
    writer.text(replica.diskId);
  }
  writer.text(meta.damage);
  if (meta.creation === undefined) return;
  writer.u64(meta.creation.number);
  putOptional(writer, meta.creation.predecessor);
  writer.text(meta.creation.stream);
}

function readCreation(reader: Reader): Creation {
  const number = reader.u64();
  if (number === 0) throw new Malformed("creation number");
  const predecessor = getOptional(reader);
  return { number, stream: reader.text(), ...(predecessor === undefined ? {} : { predecessor }) };
}

/** Reads the state of a replica. Throws `Malformed`. */
export function readMeta(reader: Reader): ReplicaMeta {
  const id = reader.u64();
  const version = reader.u64();
  const epoch = reader.u64();
  const state = states[reader.u8() - 1];
  if (state === undefined) throw new Malformed("replica state");
  const flags = reader.u8();
  if (flags > (flagFenced | flagRestarted | flagCreation)) throw new Malformed("replica flags");
  const sealedLengthBytes = getOptional(reader);
  const checksum = getOptional(reader);
  const durableBytes = reader.u64();
  const committedBytes = reader.u64();
  const appliedLsn = reader.u64();
  const count = reader.u8();
  if (count > replicasMax) throw new Malformed("too many replicas");
  const replicas: ReplicaPlace[] = [];
  for (let i = 0; i < count; i++) replicas.push({ nodeId: reader.text(), address: reader.text(), diskId: reader.text() });
  return {
    extentId: extentId(id),
    version: extentVersion(version),
    ownerEpoch: ownerEpoch(epoch),
    state,
    fenced: (flags & flagFenced) !== 0,
    restarted: (flags & flagRestarted) !== 0,
    sealedLengthBytes,
    checksum,
    durableBytes,
    committedBytes,
    appliedLsn,
    replicas,
    damage: reader.text(),
    ...((flags & flagCreation) === 0 ? {} : { creation: readCreation(reader) }),
  };
}

export function encodeMeta(meta: ReplicaMeta): Uint8Array<ArrayBuffer> {
  const writer = new FieldWriter();
  writeMeta(writer, meta);
  return writer.done();
}

export function decodeMeta(bytes: Uint8Array): Decoded<ReplicaMeta> {
  return decoding(() => {
    const reader = new Reader(bytes);
    const meta = readMeta(reader);
    reader.end();
    return meta;
  });
}
