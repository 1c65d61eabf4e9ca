/**
 * Keys and values in the metadata store. Values are framed JSON; docs/formats/metadata.md.
 *
 *   sm/ids                   { next }            every number below it is used up            'I' 1
 *   sm/stream/<name>         StreamRecord        without its name                            'T' 1
 *   sm/segment/<16 digits>   { extents }         immutable                                   'G' 1
 *   sm/extent/<16 digits>    ExtentRecord        without its id                              'E' 1 to 5
 *   sm/node/<node id>        NodeRecord          without its id                              'N' 1, 2
 *
 * A record is written in the lowest version that has all its fields.
 */
import type { Checksum, ExtentId, Outcome } from "@stamp/base";
import { extentId, extentVersion, frameRecord, fromUtf8, ok, ownerEpoch, refused, unframeRecord, utf8 } from "@stamp/base";
import type {
  AcceptedLoss,
  AttemptRecord,
  CodedRecord,
  ExtentPhase,
  ExtentRecord,
  FragmentPlace,
  NodeDuty,
  NodeRecord,
  ReplicaPlace,
  ReplicaRecord,
  SegmentReference,
  StreamRecord,
} from "./records.ts";

export const managerPrefix = "sm/";
export const idsKey = "sm/ids";
const streamPrefix = "sm/stream/";
const segmentPrefix = "sm/segment/";
const extentPrefix = "sm/extent/";
const nodePrefix = "sm/node/";

const digits = (value: number): string => String(value).padStart(16, "0");
export const streamKey = (name: string): string => streamPrefix + name;
export const segmentKey = (id: number): string => segmentPrefix + digits(id);
export const extentKey = (id: ExtentId): string => extentPrefix + digits(id);
export const nodeKey = (nodeId: string): string => nodePrefix + nodeId;

export type StoredRecord =
  | { readonly kind: "ids"; readonly next: number }
  | { readonly kind: "stream"; readonly record: StreamRecord }
  | { readonly kind: "segment"; readonly id: number; readonly extents: readonly ExtentId[] }
  | { readonly kind: "extent"; readonly record: ExtentRecord }
  | { readonly kind: "node"; readonly record: NodeRecord };

const letters = { ids: 0x49, stream: 0x54, segment: 0x47, extent: 0x45, node: 0x4e } as const;
const versionMax = { ids: 1, stream: 1, segment: 1, extent: 5, node: 2 } as const;

function versionOf(stored: StoredRecord): number {
  if (stored.kind === "extent") {
    const { checksum, loss, untold, droppedAtMs, coded, attempt, removedFragments, creation } = stored.record;
    if (coded?.checksums !== undefined || creation !== undefined) return 5;
    if (coded !== undefined || attempt !== undefined || removedFragments !== undefined) return 4;
    if (droppedAtMs !== undefined) return 3;
    return checksum === undefined && loss === undefined && untold === undefined ? 1 : 2;
  }
  return stored.kind === "node" && stored.record.duty !== undefined ? 2 : 1;
}

export function recordKey(stored: StoredRecord): string {
  switch (stored.kind) {
    case "ids":
      return idsKey;
    case "stream":
      return streamKey(stored.record.name);
    case "segment":
      return segmentKey(stored.id);
    case "extent":
      return extentKey(stored.record.id);
    case "node":
      return nodeKey(stored.record.nodeId);
  }
}

export function encodeStored(stored: StoredRecord, checksum: Checksum): Uint8Array {
  return frameRecord(letters[stored.kind], versionOf(stored), utf8(JSON.stringify(bodyOf(stored))), checksum);
}

function bodyOf(stored: StoredRecord): unknown {
  switch (stored.kind) {
    case "ids":
      return { next: stored.next };
    case "stream": {
      const { ownerEpoch: epoch, segments, skipCount, tail } = stored.record;
      return { ownerEpoch: epoch, segments, skipCount, tail };
    }
    case "segment":
      return { extents: stored.extents };
    case "extent": {
      const {
        phase,
        version,
        ownerEpoch: epoch,
        stream,
        replicas,
        sealedLengthBytes,
        repair,
        removed,
        checksum,
        loss,
        untold,
        droppedAtMs,
        coded,
        attempt,
        removedFragments,
        creation,
      } = stored.record;
      return {
        phase,
        version,
        ownerEpoch: epoch,
        stream,
        replicas,
        sealedLengthBytes,
        repair,
        removed,
        checksum,
        loss,
        untold,
        droppedAtMs,
        coded,
        attempt,
        removedFragments,
        creation,
      };
    }
    case "node": {
      const { address, diskId, faultDomain, incarnation, duty } = stored.record;
      return { address, diskId, faultDomain, incarnation, duty };
    }
  }
}

/** Decodes a record. Refuses with `damaged` what `encodeStored` never wrote, with `newerFormat` an intact record of a later version. */
export function decodeStored(key: string, bytes: Uint8Array, checksum: Checksum): Outcome<StoredRecord> {
  const kind = kindOf(key);
  if (kind === undefined) return refused("dataLoss", "damaged", `no record has the key ${key}`);
  const told = bytes[1] ?? 1;
  const version = told >= 1 && told <= versionMax[kind] ? told : versionMax[kind];
  const payload = unframeRecord("metadata", letters[kind], version, bytes, checksum);
  if (!payload.ok && payload.failure.reason === "newerFormat")
    return { ok: false, failure: { ...payload.failure, message: `${key}: ${payload.failure.message}` } };
  if (!payload.ok) return refused("dataLoss", "damaged", `${key}: ${payload.failure.message}`);
  try {
    return ok(decodeBody(kind, key, new Fields(JSON.parse(fromUtf8(payload.value)))));
  } catch (error) {
    return refused("dataLoss", "damaged", `${key}: ${String(error)}`);
  }
}

function kindOf(key: string): keyof typeof letters | undefined {
  if (key === idsKey) return "ids";
  if (key.startsWith(streamPrefix)) return "stream";
  if (key.startsWith(segmentPrefix)) return "segment";
  if (key.startsWith(extentPrefix)) return "extent";
  if (key.startsWith(nodePrefix)) return "node";
  return undefined;
}

function decodeBody(kind: keyof typeof letters, key: string, body: Fields): StoredRecord {
  switch (kind) {
    case "ids":
      return { kind, next: body.natural("next") };
    case "stream":
      return {
        kind,
        record: {
          name: key.slice(streamPrefix.length),
          ownerEpoch: ownerEpoch(body.natural("ownerEpoch")),
          segments: body.list("segments").map((item): SegmentReference => ({ id: item.natural("id"), count: item.natural("count") })),
          skipCount: body.natural("skipCount"),
          tail: body.naturals("tail").map(extentId),
        },
      };
    case "segment":
      return { kind, id: number(key, segmentPrefix), extents: body.naturals("extents").map(extentId) };
    case "extent": {
      const sealedLengthBytes = body.optional("sealedLengthBytes", (fields, name) => fields.natural(name));
      const repair = body.optional("repair", (fields, name) => place(fields.object(name)));
      const checksum = body.optional("checksum", (fields, name) => fields.natural(name));
      const untold = body.optional("untold", (fields, name) => fields.texts(name));
      const droppedAtMs = body.optional("droppedAtMs", (fields, name) => fields.natural(name));
      const loss = body.optional("loss", (fields, name) => acceptedLoss(fields.object(name)));
      const coded = body.optional("coded", (fields, name) => codedRecord(fields.object(name)));
      const attempt = body.optional("attempt", (fields, name) => attemptRecord(fields.object(name)));
      const creation = body.optional("creation", (fields, name) => fields.natural(name));
      const removedFragments = body.optional("removedFragments", (fields, name) => fields.list(name).map(fragmentPlace));
      return {
        kind,
        record: {
          id: extentId(number(key, extentPrefix)),
          phase: phase(body.text("phase")),
          version: extentVersion(body.natural("version")),
          ownerEpoch: ownerEpoch(body.natural("ownerEpoch")),
          stream: body.text("stream"),
          replicas: body.list("replicas").map((item): ReplicaRecord => ({ ...place(item), complete: item.flag("complete") })),
          ...(sealedLengthBytes === undefined ? {} : { sealedLengthBytes }),
          ...(repair === undefined ? {} : { repair }),
          removed: body.list("removed").map(place),
          ...(checksum === undefined ? {} : { checksum }),
          ...(loss === undefined ? {} : { loss }),
          ...(untold === undefined ? {} : { untold }),
          ...(droppedAtMs === undefined ? {} : { droppedAtMs }),
          ...(coded === undefined ? {} : { coded }),
          ...(attempt === undefined ? {} : { attempt }),
          ...(removedFragments === undefined ? {} : { removedFragments }),
          ...(creation === undefined ? {} : { creation }),
        },
      };
    }
    case "node": {
      const duty = body.optional("duty", (fields, name) => nodeDuty(fields.text(name)));
      return {
        kind,
        record: {
          nodeId: key.slice(nodePrefix.length),
          address: body.text("address"),
          diskId: body.text("diskId"),
          faultDomain: body.text("faultDomain"),
          incarnation: body.natural("incarnation"),
          ...(duty === undefined ? {} : { duty }),
        },
      };
    }
  }
}

const place = (fields: Fields): ReplicaPlace => ({ nodeId: fields.text("nodeId"), diskId: fields.text("diskId") });

const fragmentPlace = (fields: Fields): FragmentPlace => ({ ...place(fields), version: extentVersion(fields.natural("version")) });

function codedRecord(fields: Fields): CodedRecord {
  const checksums = fields.optional("checksums", (from, name) => from.naturals(name));
  const fragments = fields.list("fragments").map(fragmentPlace);
  if (checksums !== undefined && checksums.length !== fragments.length) throw new TypeError("checksums");
  return { profile: fields.text("profile"), fragments, ...(checksums === undefined ? {} : { checksums }) };
}

function attemptRecord(fields: Fields): AttemptRecord {
  const version = extentVersion(fields.natural("version"));
  const kind = fields.text("kind");
  switch (kind) {
    case "code":
      return { kind, version, profile: fields.text("profile"), targets: fields.list("targets").map(place) };
    case "repair":
      return { kind, version, index: fields.natural("index"), target: place(fields.object("target")) };
    case "decode":
      return { kind, version, targets: fields.list("targets").map(place) };
    default:
      throw new TypeError(`attempt ${kind}`);
  }
}

const acceptedLoss = (fields: Fields): AcceptedLoss => ({
  knownCommittedBytes: fields.natural("knownCommittedBytes"),
  wallMs: fields.natural("wallMs"),
  note: fields.text("note"),
});

function nodeDuty(text: string): NodeDuty {
  if (text === "serving" || text === "draining" || text === "decommissioned") return text;
  throw new TypeError(`duty ${text}`);
}

function phase(text: string): ExtentPhase {
  switch (text) {
    case "allocating":
    case "open":
    case "sealing":
    case "sealed":
    case "dropped":
      return text;
    default:
      throw new TypeError(`phase ${text}`);
  }
}

function number(key: string, prefix: string): number {
  const text = key.slice(prefix.length);
  const value = Number(text);
  if (!/^\d{16}$/.test(text) || !Number.isSafeInteger(value)) throw new TypeError("the number in the key");
  return value;
}

/** Strict reading of a JSON object. */
class Fields {
  readonly #raw: Record<string, unknown>;

  constructor(raw: unknown) {
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) throw new TypeError("not an object");
    this.#raw = raw as Record<string, unknown>;
  }

  natural(name: string): number {
    return natural(this.#raw[name], name);
  }

  text(name: string): string {
    const value = this.#raw[name];
    if (typeof value !== "string") throw new TypeError(name);
    return value;
  }

  flag(name: string): boolean {
    const value = this.#raw[name];
    if (typeof value !== "boolean") throw new TypeError(name);
    return value;
  }

  object(name: string): Fields {
    return new Fields(this.#raw[name]);
  }

  naturals(name: string): number[] {
    return this.#array(name).map((item) => natural(item, name));
  }

  texts(name: string): string[] {
    return this.#array(name).map((item) => {
      if (typeof item !== "string") throw new TypeError(name);
      return item;
    });
  }

  list(name: string): Fields[] {
    return this.#array(name).map((item) => new Fields(item));
  }

  optional<T>(name: string, read: (fields: Fields, name: string) => T): T | undefined {
    return this.#raw[name] === undefined ? undefined : read(this, name);
  }

  #array(name: string): unknown[] {
    const value = this.#raw[name];
    if (!Array.isArray(value)) throw new TypeError(name);
    return value as unknown[];
  }
}

function natural(value: unknown, name: string): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new TypeError(name);
  return value;
}
