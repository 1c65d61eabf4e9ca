/** Reads sealed extents from end to end, block by block: metadata, commit logs and checkpoints at partition load. */
import { FailureError, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { ExtentNode, fromWire, toWire } from "@stamp/wire";
import type { ExtentReader } from "./extent-reader.ts";
import type { Location, Place } from "./place.ts";

export interface StreamBlock {
  readonly place: Place;
  readonly payload: Uint8Array;
}

const batchBytes = 1024 * 1024;

/** Throws FailureError when no replica can give a block before `timeoutMs` (of the whole reading) has passed. */
export async function* readBlocks(
  world: World,
  reader: ExtentReader,
  extents: readonly Location[],
  timeoutMs: number,
): AsyncGenerator<StreamBlock, void, void> {
  const deadlineMs = world.clock.monotonicMs() + timeoutMs;
  for (const { extentId, sealedLengthBytes } of extents) {
    let offsetBytes = 0;
    while (offsetBytes < (sealedLengthBytes ?? 0)) {
      const leftMs = deadlineMs - world.clock.monotonicMs();
      const request = { extentId: toWire(extentId), offsetBytes: toWire(offsetBytes), maxBytes: batchBytes };
      const answer = await reader.fromAny(extentId, leftMs, (address, timeLeftMs, signal) =>
        world.transport.client(address, ExtentNode).readBlocks(request, { timeoutMs: timeLeftMs, signal }),
      );
      if (!answer.ok) throw new FailureError(answer.failure);
      const { offsetsBytes, payload, nextOffsetBytes } = answer.value;
      const next = fromWire(nextOffsetBytes);
      if (next <= offsetBytes || offsetsBytes.length !== payload.length) {
        throw new FailureError(refused("internal", "bug", `extent ${extentId} gave no block at ${offsetBytes}`).failure);
      }
      for (const [i, bytes] of payload.entries()) {
        const at = fromWire(offsetsBytes[i] as bigint);
        yield { place: { extentId, offsetBytes: at, lengthBytes: bytes.length }, payload: bytes };
      }
      offsetBytes = next;
    }
  }
}
