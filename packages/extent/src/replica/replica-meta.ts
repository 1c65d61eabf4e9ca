/**
 * Durable facts about one replica: the content of the extent file's header, of the journal's create and repair records
 * and of the node's extent table. See docs/formats/extent.md.
 */
import { type ExtentId, type ExtentVersion, extentId, extentVersion, type OwnerEpoch, ownerEpoch } from "@stamp/base";
import { type Decoded, decoding, Malformed, Reader, Writer } from "../format/binary.ts";

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
  /** Takes no appends for ever, by the stream manager's word. */
  readonly fenced: boolean;
  /** Its node restarted while it was not sealed. */
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
  /** Why it is damaged; empty when it is not. */
  readonly damage: string;
}

/** Nothing is known of it but that it was here: never a length, and the stream manager hears of it. */
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

/** No replica is made with it. */
const unreadableVersion = extentVersion(0);

export const isUnreadable = ({ state, version }: ReplicaMeta): boolean => state === "damaged" && version === unreadableVersion;

const states: readonly ReplicaState[] = ["open", "closed", "sealed", "damaged"];
const replicasMax = 16;
const absent = 0;
const given = 1;

function putOptional(writer: Writer, value: number | undefined): void {
  writer.u8(value === undefined ? absent : given);
  writer.u64(value ?? 0);
}

function getOptional(reader: Reader): number | undefined {
  const flag = reader.u8();
  const value = reader.u64();
  if (flag > given) throw new Malformed("optional number");
  return flag === given ? value : undefined;
}

export function writeMeta(writer: Writer, meta: ReplicaMeta): void {
  writer.u64(meta.extentId);
  writer.u64(meta.version);
  writer.u64(meta.ownerEpoch);
  writer.u8(states.indexOf(meta.state) + 1);
  writer.u8((meta.fenced ? 1 : 0) | (meta.restarted ? 2 : 0));
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
}

/** Throws `Malformed`. */
export function readMeta(reader: Reader): ReplicaMeta {
  const id = reader.u64();
  const version = reader.u64();
  const epoch = reader.u64();
  const state = states[reader.u8() - 1];
  if (state === undefined) throw new Malformed("replica state");
  const flags = reader.u8();
  if (flags > 3) throw new Malformed("replica flags");
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
    fenced: (flags & 1) !== 0,
    restarted: (flags & 2) !== 0,
    sealedLengthBytes,
    checksum,
    durableBytes,
    committedBytes,
    appliedLsn,
    replicas,
    damage: reader.text(),
  };
}

export function encodeMeta(meta: ReplicaMeta): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
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
