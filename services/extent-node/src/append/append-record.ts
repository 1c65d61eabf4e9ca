/**
 * How an append that was taken becomes durable on this node, primary or secondary: as a record of the journal with its bytes; or, when it is
 * large, in the extent's file, synced, and then by a record that points there (docs/design/stream-layer.md).
 */
import type { OwnerEpoch, PayloadHolders } from "@stamp/base";
import { encodePointerBody, type FrameAt } from "@stamp/extent";
import type { LocalExtent } from "../disk/local-extent.ts";
import type { JournalEntry } from "../journal/journal.ts";
import { journalRecord, type Node } from "../node.ts";

export interface TakenAppend {
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  readonly ownerEpoch: OwnerEpoch;
  readonly committedBytes: number;
  /** Bytes of the append, borrowed until it is durable or has failed, and beyond while it is read from memory. */
  readonly slices: readonly Uint8Array[];
  /** crc32c of the append's bytes. */
  readonly checksum: number;
  readonly frames: readonly FrameAt[];
  readonly arrivedMs: number;
  /** This record is one of the holders of the slices. */
  readonly holders: PayloadHolders | undefined;
}

export interface AppendEnd {
  durable(): void;
  /** Notes that the append is not durable here and never will be. */
  failed(why: string): void;
}

export function recordAppend(node: Node, extent: LocalExtent, append: TakenAppend, end: AppendEnd): void {
  const { extentId } = extent.replica;
  const { offsetBytes, lengthBytes, slices, checksum, ownerEpoch, committedBytes, frames, holders } = append;
  const endBytes = offsetBytes + lengthBytes;
  const inPlace = node.goesInPlace(lengthBytes);
  const place = { offsetBytes, ownerEpoch, committedBytes };
  const ends = {
    durable: (_lsn: number, generation: number): void => {
      extent.replica.durableTo(endBytes);
      node.copyTurns.appendDurable(append.arrivedMs);
      const inMemory = inPlace ? undefined : { slices, holders };
      node.store.appended(extent, generation, { offsetBytes, endBytes, frames, inMemory });
      if (inPlace) holders?.end();
      end.durable();
    },
    failed: (why: string): void => {
      extent.replica.fail();
      end.failed(why);
    },
  } satisfies Partial<JournalEntry>;
  if (!inPlace) {
    node.journal.add({
      record: journalRecord("append", extentId, place),
      body: slices,
      bodyBytes: lengthBytes,
      bodyChecksum: checksum,
      ...ends,
    });
    return;
  }
  const body = encodePointerBody({ lengthBytes, checksum });
  node.journal.add({
    record: journalRecord("pointer", extentId, place),
    body: [body],
    bodyBytes: body.length,
    bodyChecksum: node.world.digest.crc32c(body),
    pointed: { lengthBytes, synced: node.store.inPlace.write(extentId, offsetBytes, slices, lengthBytes) },
    ...ends,
  });
}
