/**
 * The identity of an extent node's disk: which stamp it belongs to, and which disk it is. Written once, when an empty disk is
 * formatted; a disk of another stamp is never served.
 */
import { checkVersion, decodingVersioned, FieldWriter, Malformed, Reader, type Versioned, viewOf } from "../format/binary.ts";
import type { Crc32c } from "../format/crc.ts";

export interface NodeIdentity {
  readonly stampId: string;
  readonly nodeId: string;
  /** Random; another disk has another. */
  readonly diskId: string;
}

const magic = 0x44494e53; // "SNID"
const formatVersion = 1;

/** Encodes "SNID", crc32c of the rest, version u32, stamp id, node id, disk id (u16 length and UTF-8 each). */
export function encodeNodeIdentity(crc32c: Crc32c, identity: NodeIdentity): Uint8Array<ArrayBuffer> {
  const writer = new FieldWriter();
  writer.u32(magic);
  writer.u32(0);
  writer.u32(formatVersion);
  writer.text(identity.stampId);
  writer.text(identity.nodeId);
  writer.text(identity.diskId);
  const bytes = writer.done();
  viewOf(bytes).setUint32(4, crc32c(bytes.subarray(8)), true);
  return bytes;
}

export function decodeNodeIdentity(crc32c: Crc32c, bytes: Uint8Array): Versioned<NodeIdentity> {
  return decodingVersioned(() => {
    const reader = new Reader(bytes);
    if (reader.u32() !== magic) throw new Malformed("not a node identity");
    if (reader.u32() !== crc32c(bytes.subarray(8))) throw new Malformed("node identity checksum");
    checkVersion("node-identity", reader.u32(), [formatVersion]);
    const identity = { stampId: reader.text(), nodeId: reader.text(), diskId: reader.text() };
    reader.end();
    return identity;
  });
}
