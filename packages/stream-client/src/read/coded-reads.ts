/**
 * Reads of coded extents. A data fragment holds a range of the extent's address space, so a place lies on one node, or on two at a boundary. Whole
 * blocks are read as raw bytes and verified by their own checksums, also what was decoded.
 */
import { concatBytes, extentId, type Outcome, ok, refused } from "@stamp/base";
import { Kernel, type Profile, profileNames, profileOf } from "@stamp/erasure";
import { chunksIntact, fragmentBytesOf, frameFixedBytes, parseFrameHeader } from "@stamp/extent";
import type { World } from "@stamp/ports";
import type { CodedPlaces, Location } from "../place.ts";
import type { ReadOptions } from "../types.ts";
import { FragmentRace, type KnownPlaces } from "./fragment-race.ts";
import type { NodeHistories } from "./replica-race.ts";

/** Bytes of each fragment that are decoded at a time. */
const laneBytes = 64 * 1024;
/** Largest range of a fragment in one call: what an extent node gives at most. A block and its header may be longer. */
const pieceBytesMax = 4 * 1024 * 1024;
const blocksBytesDefault = 1024 * 1024;
/** Room for the headers of blocks that are read together. */
const headersBytes = 64 * 1024;

/** A coded extent whose length is known. */
export interface CodedAt extends Location {
  readonly coded: CodedPlaces;
  readonly sealedLengthBytes: number;
}

export const isCoded = (location: Location): location is CodedAt =>
  location.coded !== undefined && location.sealedLengthBytes !== undefined;

export interface RawBlocks {
  /** Place of each block's first payload byte. */
  readonly offsetsBytes: number[];
  readonly payload: Uint8Array[];
  /** Offset at which the next read begins, in bytes. */
  readonly nextOffsetBytes: number;
}

export class CodedReads {
  readonly #world: World;
  readonly #histories: NodeHistories;
  #kernel: Kernel | undefined;

  constructor(world: World, histories: NodeHistories) {
    this.#world = world;
    this.#histories = histories;
  }

  /** Returns bytes of the extent's address space. */
  async read(
    at: CodedAt,
    offsetBytes: number,
    lengthBytes: number,
    options: ReadOptions,
    places: KnownPlaces,
  ): Promise<Outcome<Uint8Array>> {
    const profile = profileOf(at.coded.profile);
    if (profile === undefined)
      return refused(
        "unimplemented",
        "badRequest",
        `extent ${at.extentId} has the code ${at.coded.profile}, which this release does not have`,
      );
    if (offsetBytes + lengthBytes > at.sealedLengthBytes)
      return refused("outOfRange", "outOfRange", `extent ${at.extentId} ends at ${at.sealedLengthBytes}`);
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const fragmentBytes = fragmentBytesOf(at.sealedLengthBytes, profile.data);
    const pieces: Promise<Outcome<Uint8Array>>[] = [];
    for (let from = offsetBytes; from < offsetBytes + lengthBytes; ) {
      const index = Math.floor(from / fragmentBytes);
      const end = Math.min(offsetBytes + lengthBytes, (index + 1) * fragmentBytes, from + pieceBytesMax);
      const range = {
        extentId: at.extentId,
        coded: at.coded,
        profile,
        sealedLengthBytes: at.sealedLengthBytes,
        index,
        offsetBytes: from - index * fragmentBytes,
        lengthBytes: end - from,
      };
      const parts = {
        world: this.#world,
        histories: this.#histories,
        kernel: this.#lanes(),
        deadlineMs,
        signal: options.signal,
        places,
      };
      pieces.push(new FragmentRace(range, parts).run());
      from = end;
    }
    const read = await Promise.all(pieces);
    const bytes: Uint8Array[] = [];
    for (const piece of read) {
      if (!piece.ok) return piece;
      bytes.push(piece.value);
    }
    return ok(bytes.length === 1 ? (bytes[0] as Uint8Array) : concatBytes(bytes));
  }

  /** Returns whole blocks from a block's header on: at least one, and no more than about `maxBytes`. */
  async readBlocks(
    at: CodedAt,
    offsetBytes: number,
    maxBytes: number,
    options: ReadOptions,
    places: KnownPlaces,
  ): Promise<Outcome<RawBlocks>> {
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const bytesMax = maxBytes === 0 ? blocksBytesDefault : maxBytes;
    const left = at.sealedLengthBytes - offsetBytes;
    if (left <= 0) return ok({ offsetsBytes: [], payload: [], nextOffsetBytes: offsetBytes });
    for (let wanted = Math.min(left, bytesMax + headersBytes); ; ) {
      const timeoutMs = deadlineMs - this.#world.clock.monotonicMs();
      const raw = await this.read(at, offsetBytes, wanted, { ...options, timeoutMs }, places);
      if (!raw.ok) return raw;
      const found = this.#blocksIn(at, offsetBytes, raw.value, bytesMax);
      if (typeof found !== "number") return found;
      if (found > left || found <= wanted)
        return refused("dataLoss", "damaged", `a block of extent ${at.extentId} at ${offsetBytes} ends beyond its end`);
      wanted = found;
    }
  }

  /** Returns the blocks; a number: that many bytes from the first block on are needed for them. */
  #blocksIn(at: CodedAt, offsetBytes: number, raw: Uint8Array, bytesMax: number): Outcome<RawBlocks> | number {
    const { crc32c } = this.#world.digest;
    const blocks: RawBlocks = { offsetsBytes: [], payload: [], nextOffsetBytes: offsetBytes };
    let from = 0;
    let bytes = 0;
    while (from < raw.length) {
      const parsed = parseFrameHeader(crc32c, extentId(at.extentId), offsetBytes + from, raw.subarray(from));
      if (parsed.kind === "short") {
        if (from > 0) break;
        return Math.max(parsed.neededBytes, frameFixedBytes);
      }
      if (parsed.kind === "invalid") return this.#badBlock(at, offsetBytes + from, parsed.why);
      const { headerBytes, payloadBytes } = parsed.header;
      const end = from + headerBytes + payloadBytes;
      if (from > 0 && (end > raw.length || bytes + payloadBytes > bytesMax)) break;
      if (end > raw.length) return end;
      const payload = raw.subarray(from + headerBytes, end);
      if (!chunksIntact(crc32c, parsed.header, 0, payload)) return this.#badBlock(at, offsetBytes + from, "its checksum does not match");
      blocks.offsetsBytes.push(offsetBytes + from + headerBytes);
      blocks.payload.push(payload);
      bytes += payloadBytes;
      from = end;
    }
    return ok({ ...blocks, nextOffsetBytes: offsetBytes + from });
  }

  #badBlock(at: CodedAt, offsetBytes: number, why: string): Outcome<never> {
    return refused("dataLoss", "damaged", `a block of coded extent ${at.extentId} at ${offsetBytes} was read wrong: ${why}`);
  }

  /** Returns the kernel that all reads share: a decoding does not wait in its middle. */
  #lanes(): Kernel {
    const fragmentsMax = Math.max(...profileNames.map((name) => (profileOf(name) as Profile).fragments));
    this.#kernel ??= new Kernel(fragmentsMax, laneBytes);
    return this.#kernel;
  }
}
