/**
 * Reads. A place is found by the block index, the header and the chunks that the read touches are verified, and only then a byte leaves
 * the node. What does not verify marks the replica damaged: another replica serves.
 */
import { concatBytes, extentId, type Failed, type Outcome, ok, refused } from "@stamp/base";
import {
  type BlockIndex,
  chunkBytes,
  chunksIntact,
  type FrameHeader,
  frameFixedBytes,
  type IndexedFrame,
  parseFrameHeader,
  payloadBytesOf,
} from "@stamp/extent";
import type { LentMemory } from "@stamp/ports";
import { type CallContext, DiskError } from "@stamp/ports";
import { ExtentNode, fromWire, type ReadBlocksRequest, type ReadPlacesRequest, type ReadRequest, toWire } from "@stamp/wire";
import { findOf } from "../creations.ts";
import { type Io, repairIo } from "../disk/disk-queue.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import { type Node, unknownExtent } from "../node.ts";

const readBytesMax = 4 * 1024 * 1024;
/** Number of places that one call may ask for. */
const placesMax = 1_024;
/** Blocks of places up to this far apart, in bytes from the first to the last, are read from the disk at once. */
const placesSpanBytesMax = 1024 * 1024;
/** Longest wait of a secondary for the primary's committed length. */
const askPrimaryMs = 500;
const blocksBytesDefault = 1024 * 1024;
const blocksBytesMax = 8 * 1024 * 1024;
/** Largest gap between header and chunk that is read along instead of by a second read, in bytes. */
const readAlongBytes = 128 * 1024;

const damagedHere = (extent: LocalExtent): Failed =>
  refused("dataLoss", "damaged", `extent ${extent.replica.extentId} is damaged here: ${extent.replica.damage}`);

/** Range of an extent, in bytes of its address space. */
interface Range {
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

/**
 * Undefined: not there, or unreadable. Throws FailureError when the disk can't give it in time. `memory`: where the bytes may be put; undefined:
 * memory of their own.
 */
async function bytesOf(
  node: Node,
  extent: LocalExtent,
  { offsetBytes, lengthBytes }: Range,
  io: Io,
  memory?: LentMemory,
): Promise<Uint8Array | undefined> {
  try {
    const slices = await node.store.read(extent, offsetBytes, lengthBytes, io, memory && ((bytes) => memory.of(bytes)));
    const bytes = slices.length === 1 ? (slices[0] as Uint8Array) : concatBytes(slices);
    return bytes.length === lengthBytes ? bytes : undefined;
  } catch (error) {
    // Anything else says nothing about the data.
    if (error instanceof DiskError && (error.kind === "io" || error.kind === "notFound")) return undefined;
    throw error;
  }
}

/** Returns [from, to) of the frame's payload, verified; undefined when it is not what was written. */
async function payloadOf(
  node: Node,
  extent: LocalExtent,
  frame: IndexedFrame,
  [from, to]: readonly [number, number],
  io: Io,
  memory?: LentMemory,
): Promise<Uint8Array | undefined> {
  const { crc32c } = node.world.digest;
  const payloadBytes = payloadBytesOf(frame.totalBytes);
  if (payloadBytes === undefined) return undefined;
  const headerBytes = frame.totalBytes - payloadBytes;
  const firstChunk = Math.floor(from / chunkBytes);
  const begin = firstChunk * chunkBytes;
  const end = Math.min(payloadBytes, Math.ceil(to / chunkBytes) * chunkBytes);
  let head: Uint8Array | undefined;
  let chunks: Uint8Array | undefined;
  if (begin <= readAlongBytes) {
    head = await bytesOf(node, extent, { offsetBytes: frame.offsetBytes, lengthBytes: headerBytes + end }, io, memory);
    chunks = head?.subarray(headerBytes + begin);
  } else {
    [head, chunks] = await Promise.all([
      bytesOf(node, extent, { offsetBytes: frame.offsetBytes, lengthBytes: headerBytes }, io),
      bytesOf(node, extent, { offsetBytes: frame.offsetBytes + headerBytes + begin, lengthBytes: end - begin }, io, memory),
    ]);
  }
  if (head === undefined || chunks === undefined) return undefined;
  if (node.world.rules.on("checksumBeforeServing")) {
    const header = headerOf(node, extent, frame.offsetBytes, head);
    if (header === undefined || header.payloadBytes !== payloadBytes) return undefined;
    if (!chunksIntact(crc32c, header, firstChunk, chunks)) return undefined;
  }
  return chunks.subarray(from - begin, to - begin);
}

function headerOf(node: Node, extent: LocalExtent, offsetBytes: number, bytes: Uint8Array): FrameHeader | undefined {
  const parsed = parseFrameHeader(node.world.digest.crc32c, extent.replica.extentId, offsetBytes, bytes);
  return parsed.kind === "frame" ? parsed.header : undefined;
}

const clientIo = (context: CallContext): Io => ({ class: "read", deadlineMs: context.deadlineMs, caller: context });

export async function readExtent(node: Node, request: ReadRequest, context: CallContext): Promise<Outcome<{ payload: Uint8Array }>> {
  const arrivedMs = node.world.clock.monotonicMs();
  const id = fromWire(request.extentId);
  const offsetBytes = fromWire(request.offsetBytes);
  const lengthBytes = request.lengthBytes;
  const extent = node.find(id);
  if (extent === undefined) return unknownExtent(id);
  if (lengthBytes === 0 || lengthBytes > readBytesMax) return refused("invalidArgument", "badRequest", `a read of ${lengthBytes} bytes`);
  const refusal = extent.replica.refuseRead(offsetBytes, lengthBytes);
  if (refusal !== undefined) return { ok: false, failure: refusal };
  const index = node.store.heldIndex(extent) ?? (await node.store.index(extent));
  if (index === undefined) return unreadable(node, extent, "its blocks can't be found");
  const found = findPlace(index, offsetBytes, lengthBytes);
  if (found === undefined) return badPlace(id, offsetBytes, lengthBytes);
  const memory = node.answers.lend(context);
  const payload = await payloadOf(node, extent, found.frame, [found.from, found.from + lengthBytes], clientIo(context), memory);
  node.took.read.since(arrivedMs);
  if (payload !== undefined) memory?.answered(payload);
  return payload === undefined ? unreadable(node, extent, `the block at ${found.frame.offsetBytes}`) : ok({ payload });
}

interface FoundPlace {
  readonly frame: IndexedFrame;
  /** First byte of the place, counted from the start of the block's payload. */
  readonly from: number;
  readonly lengthBytes: number;
}

/** Returns undefined when the place is not inside one block. */
function findPlace(index: BlockIndex, offsetBytes: number, lengthBytes: number): FoundPlace | undefined {
  const frame = index.find(offsetBytes);
  const payloadBytes = frame === undefined ? undefined : payloadBytesOf(frame.totalBytes);
  if (frame === undefined || payloadBytes === undefined) return undefined;
  const from = offsetBytes - frame.offsetBytes - (frame.totalBytes - payloadBytes);
  return from < 0 || from + lengthBytes > payloadBytes ? undefined : { frame, from, lengthBytes };
}

const badPlace = (extentId: number, offsetBytes: number, lengthBytes: number): Failed =>
  refused("outOfRange", "badPlace", `${offsetBytes}+${lengthBytes} of extent ${extentId} is not inside one block`);

/** Returns the bytes of several places, one after another. Blocks that lie near each other are read from the disk at once, each is verified once. */
export async function readPlaces(node: Node, request: ReadPlacesRequest, context: CallContext): Promise<Outcome<{ payload: Uint8Array }>> {
  const arrivedMs = node.world.clock.monotonicMs();
  const id = fromWire(request.extentId);
  const { offsetsBytes, lengthsBytes } = request;
  const extent = node.find(id);
  if (extent === undefined) return unknownExtent(id);
  const totalBytes = lengthsBytes.reduce((sum, length) => sum + length, 0);
  if (
    offsetsBytes.length === 0 ||
    offsetsBytes.length > placesMax ||
    lengthsBytes.length !== offsetsBytes.length ||
    lengthsBytes.includes(0)
  ) {
    return refused("invalidArgument", "badRequest", `a read of ${offsetsBytes.length} places with ${lengthsBytes.length} lengths`);
  }
  if (totalBytes > readBytesMax) return refused("invalidArgument", "badRequest", `a read of ${totalBytes} bytes`);
  const offsets = offsetsBytes.map(fromWire);
  for (const [i, offsetBytes] of offsets.entries()) {
    const refusal = extent.replica.refuseRead(offsetBytes, lengthsBytes[i] as number);
    if (refusal !== undefined) return { ok: false, failure: refusal };
  }
  const index = node.store.heldIndex(extent) ?? (await node.store.index(extent));
  if (index === undefined) return unreadable(node, extent, "its blocks can't be found");
  const places: FoundPlace[] = [];
  for (const [i, offsetBytes] of offsets.entries()) {
    const found = findPlace(index, offsetBytes, lengthsBytes[i] as number);
    if (found === undefined) return badPlace(id, offsetBytes, lengthsBytes[i] as number);
    places.push(found);
  }
  const pieces = await piecesOf(node, extent, places, clientIo(context));
  node.took.read.since(arrivedMs);
  if (typeof pieces === "number") return unreadable(node, extent, `the block at ${pieces}`);
  return ok({ payload: pieces.length === 1 ? (pieces[0] as Uint8Array) : concatBytes(pieces) });
}

/** Returns the bytes of each place, verified; or the offset of the block that is not what was written. */
async function piecesOf(node: Node, extent: LocalExtent, places: readonly FoundPlace[], io: Io): Promise<Uint8Array[] | number> {
  let begin = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const { frame } of places) {
    begin = Math.min(begin, frame.offsetBytes);
    end = Math.max(end, frame.offsetBytes + frame.totalBytes);
  }
  const pieces: Uint8Array[] = [];
  if (end - begin > placesSpanBytesMax) {
    for (const { frame, from, lengthBytes } of places) {
      const piece = await payloadOf(node, extent, frame, [from, from + lengthBytes], io);
      if (piece === undefined) return frame.offsetBytes;
      pieces.push(piece);
    }
    return pieces;
  }
  const raw = await bytesOf(node, extent, { offsetBytes: begin, lengthBytes: end - begin }, io);
  if (raw === undefined) return begin;
  const blocks = new Map<number, Uint8Array>();
  for (const { frame, from, lengthBytes } of places) {
    let block = blocks.get(frame.offsetBytes);
    if (block === undefined) {
      block = blockIn(node, extent, frame, raw.subarray(frame.offsetBytes - begin, frame.offsetBytes - begin + frame.totalBytes));
      if (block === undefined) return frame.offsetBytes;
      blocks.set(frame.offsetBytes, block);
    }
    pieces.push(block.subarray(from, from + lengthBytes));
  }
  return pieces;
}

/** Returns the payload of a whole frame, verified; undefined when it is not what was written. */
function blockIn(node: Node, extent: LocalExtent, frame: IndexedFrame, bytes: Uint8Array): Uint8Array | undefined {
  const headerBytes = frame.totalBytes - (payloadBytesOf(frame.totalBytes) ?? 0);
  const body = bytes.subarray(headerBytes);
  if (!node.world.rules.on("checksumBeforeServing")) return body;
  const header = headerOf(node, extent, frame.offsetBytes, bytes.subarray(0, Math.max(headerBytes, frameFixedBytes)));
  if (header === undefined || header.payloadBytes !== body.length) return undefined;
  return chunksIntact(node.world.digest.crc32c, header, 0, body) ? body : undefined;
}

export interface Blocks {
  readonly offsetsBytes: bigint[];
  readonly nextOffsetBytes: bigint;
  readonly end: boolean;
  readonly payload: Uint8Array[];
}

/**
 * Returns the length of a replica that may be read, in bytes: of one that is not sealed, what is known to be acknowledged. A secondary learns
 * that of an append with the next one, so it asks the primary when `at` lies behind what it knows. Without an answer it goes by that.
 */
async function readableBytes(node: Node, extent: LocalExtent, at: number, context: CallContext): Promise<number> {
  const { replica } = extent;
  if (replica.state === "sealed") return replica.durableBytes;
  const [primary] = replica.replicas;
  const known = (): number => Math.min(replica.committedBytes, replica.durableBytes);
  if (primary === undefined || replica.isPrimary(node.identity.nodeId) || at < known() || known() === replica.durableBytes) return known();
  const timeoutMs = Math.min(askPrimaryMs, context.deadlineMs - node.world.clock.monotonicMs());
  const client = node.world.transport.client(primary.address, ExtentNode);
  const answer = await client.getExtentReplica({ extentId: toWire(replica.extentId) }, { timeoutMs });
  if (!answer.ok || !answer.value.primary || fromWire(answer.value.version) !== replica.version) return known();
  return Math.max(known(), Math.min(fromWire(answer.value.committedBytes), replica.durableBytes));
}

export async function readBlocks(node: Node, request: ReadBlocksRequest, context: CallContext): Promise<Outcome<Blocks>> {
  const arrivedMs = node.world.clock.monotonicMs();
  const id = fromWire(request.extentId);
  const extent = node.find(id);
  if (extent === undefined) return unknownExtent(id);
  const { replica } = extent;
  let at = fromWire(request.offsetBytes);
  const limit = await readableBytes(node, extent, at, context);
  const refusal = replica.refuseRead(at, 0);
  if (refusal !== undefined) return { ok: false, failure: refusal };
  const sealed = replica.state === "sealed";
  const index = node.store.heldIndex(extent) ?? (await node.store.index(extent));
  if (index === undefined) return unreadable(node, extent, "its blocks can't be found");
  const bytesMax = Math.min(blocksBytesMax, request.maxBytes === 0 ? blocksBytesDefault : request.maxBytes);
  const frames: { readonly frame: IndexedFrame; readonly payloadBytes: number }[] = [];
  let bytes = 0;
  while (at < limit) {
    const frame = index.find(at);
    const payloadBytes = frame === undefined ? undefined : payloadBytesOf(frame.totalBytes);
    if (frame === undefined || payloadBytes === undefined || frame.offsetBytes !== at) {
      return refused("outOfRange", "badPlace", `no block begins at ${at} of extent ${id}`);
    }
    if (frames.length > 0 && bytes + payloadBytes > bytesMax) break;
    if (at + frame.totalBytes > limit) break;
    frames.push({ frame, payloadBytes });
    bytes += payloadBytes;
    at += frame.totalBytes;
  }
  const first = frames[0]?.frame.offsetBytes ?? at;
  const raw =
    at > first ? await bytesOf(node, extent, { offsetBytes: first, lengthBytes: at - first }, clientIo(context)) : new Uint8Array(0);
  node.took.read.since(arrivedMs);
  if (raw === undefined) return unreadable(node, extent, `blocks from ${first}`);
  const payload: Uint8Array[] = [];
  const offsetsBytes: bigint[] = [];
  for (const { frame, payloadBytes } of frames) {
    const begin = frame.offsetBytes - first;
    const block = blockIn(node, extent, frame, raw.subarray(begin, begin + frame.totalBytes));
    if (block === undefined) return unreadable(node, extent, `the block at ${frame.offsetBytes}`);
    payload.push(block);
    offsetsBytes.push(toWire(frame.offsetBytes + frame.totalBytes - payloadBytes));
  }
  return ok({ offsetsBytes, nextOffsetBytes: toWire(at), end: sealed && at >= replica.durableBytes, payload });
}

/** Returns the framed bytes, for another replica that copies; the copier verifies every frame. */
export async function readRaw(node: Node, request: ReadRequest, context: CallContext): Promise<Outcome<{ payload: Uint8Array }>> {
  const id = fromWire(request.extentId);
  const offsetBytes = fromWire(request.offsetBytes);
  const extent = findOf(node, extentId(id), request);
  if (extent === undefined) return unknownExtent(id);
  const { replica } = extent;
  if (replica.state === "damaged") return damagedHere(extent);
  if (replica.state === "open") return refused("failedPrecondition", "badRequest", `extent ${id} is open: it is not copied`);
  const lengthBytes = Math.min(request.lengthBytes, readBytesMax, replica.durableBytes - offsetBytes);
  if (lengthBytes <= 0) return refused("outOfRange", "outOfRange", `extent ${id} ends here at ${replica.durableBytes}`);
  const io = { ...repairIo, deadlineMs: context.deadlineMs, caller: context };
  const payload = await bytesOf(node, extent, { offsetBytes, lengthBytes }, io);
  return payload === undefined ? unreadable(node, extent, `bytes from ${offsetBytes}`) : ok({ payload });
}

/** Judges a failed read. If the extent was deleted, cut or replaced meanwhile, the replica is not damaged. */
async function unreadable(node: Node, extent: LocalExtent, what: string): Promise<Failed> {
  if (extent.removed || node.find(extent.replica.extentId) !== extent) return unknownExtent(extent.replica.extentId);
  await node.markDamaged(extent, `${what}: not what was written, or unreadable`);
  return damagedHere(extent);
}
