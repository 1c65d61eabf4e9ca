/**
 * Step 4 of the write path: an append at the primary. Everything up to sending happens in one synchronous turn, in the order in which
 * appends arrive: refuse or take, give the offset, queue for the own journal, send to every secondary. Then only durable
 * acknowledgements move it (PrimaryWindow).
 */

import { type Failure, holdersOf, type Outcome, ok, ownerEpoch, refused, unknownOutcome } from "@stamp/base";
import {
  appendBlocksMax,
  blockPayloadBytesMax,
  crc32cOf,
  encodeFrameHeader,
  type FrameAt,
  frameBytes,
  PrimaryWindow,
  type WindowEffects,
} from "@stamp/extent";
import { type CallContext, causedBy, causeOf } from "@stamp/ports";
import { type AppendRequest, ExtentNode, fromWire, toWire } from "@stamp/wire";
import type { AppendWaiter, LocalExtent } from "../disk/local-extent.ts";
import { retained } from "../journal/slices.ts";
import { type Node, unknownExtent } from "../node.ts";
import { recordAppend } from "./append-record.ts";

/**
 * The primary gives up so long before its caller does (an eighth of the time, if that is less): the caller hears which replica did not
 * answer, and does not take the primary for the silent one.
 */
const answerMarginMs = 100;

export interface Appended {
  readonly offsetsBytes: bigint[];
  readonly endBytes: bigint;
  readonly committedBytes: bigint;
}

interface Framed {
  readonly slices: readonly Uint8Array[];
  readonly frames: FrameAt[];
  readonly lengthBytes: number;
  readonly checksum: number;
}

export function append(node: Node, request: AppendRequest, context: CallContext): Promise<Outcome<Appended>> {
  const id = fromWire(request.extentId);
  const extent = node.find(id);
  if (extent === undefined) return Promise.resolve(unknownExtent(id));
  const epoch = ownerEpoch(fromWire(request.ownerEpoch));
  const { replica } = extent;
  const allowedMs = context.deadlineMs - node.world.clock.monotonicMs();
  const remainingMs = Math.min(node.config.appendTimeoutMs, allowedMs - Math.min(answerMarginMs, allowedMs / 8));
  const refusal =
    replica.refuseAppend(node.identity.nodeId, epoch, fromWire(request.expectedOffsetBytes)) ??
    refuseSize(node, extent, request.payload, remainingMs);
  if (refusal !== undefined) return Promise.resolve({ ok: false, failure: refusal });

  const arrivedMs = node.world.clock.monotonicMs();
  const framed = frame(node, extent, request.payload);
  return new Promise((resolve) => {
    const offsetBytes = replica.accept(framed.lengthBytes, framed.checksum);
    const endBytes = offsetBytes + framed.lengthBytes;
    extent.window ??= new PrimaryWindow<AppendWaiter>(node.world.rules, replica.replicas.length, offsetBytes);
    const { window } = extent;
    const move = (effects: WindowEffects<AppendWaiter>, why = "", details: Record<string, string> = {}): void => {
      for (const done of effects.acknowledged) done.item.acknowledge(window.committedBytes);
      replica.learnCommitted(window.committedBytes);
      if (effects.failed.length === 0) return;
      if (node.world.rules.on("primaryStopsAtFailure")) replica.fail();
      for (const lost of effects.failed) lost.item.fail(why, lost.endBytes === endBytes ? details : {});
    };
    const late = (): void => {
      const lostReplica = window.missing(endBytes).flatMap((i) => replica.replicas[i]?.address ?? []);
      move(window.fail(endBytes), "not durable everywhere in time", { lostReplica: lostReplica.join(",") });
    };
    const timer = node.world.clock.after(remainingMs, late);
    window.add(offsetBytes, framed.lengthBytes, {
      acknowledge: (committedBytes) => {
        timer.cancel();
        node.appends += 1;
        node.took.appendDone.since(arrivedMs);
        resolve(
          ok({
            offsetsBytes: framed.frames.map((at) => toWire(at.offsetBytes + at.headerBytes)),
            endBytes: toWire(endBytes),
            committedBytes: toWire(committedBytes),
          }),
        );
      },
      fail: (why, details) => {
        timer.cancel();
        node.took.appendFailed.since(arrivedMs);
        resolve(unknownOutcome("unavailable", "extentFailed", `append to extent ${id}: ${why}`, details));
      },
    });
    const committedBytes = window.committedBytes;
    const holders = holdersOf(replica.replicas.length, context.giveBackPayload);
    recordAppend(
      node,
      extent,
      { ...framed, offsetBytes, ownerEpoch: epoch, committedBytes, arrivedMs, holders },
      {
        durable: () => move(window.durable(0, endBytes)),
        failed: (why) => move(window.fail(endBytes), why),
      },
    );
    for (let i = 1; i < replica.replicas.length; i++) {
      const address = replica.replicas[i]?.address ?? "";
      node.world.transport
        .client(address, ExtentNode)
        .replicate(
          {
            extentId: request.extentId,
            ownerEpoch: request.ownerEpoch,
            offsetBytes: toWire(offsetBytes),
            committedBytes: toWire(committedBytes),
            checksum: framed.checksum,
            primaryIncarnation: toWire(node.incarnation),
            payload: [...framed.slices],
          },
          { timeoutMs: remainingMs, ...causedBy(causeOf(context.metadata)) },
        )
        .then((outcome) => {
          node.took.replicate.since(arrivedMs);
          if (outcome.ok) {
            // It has all of the bytes: nothing of them waits in a socket any more.
            holders?.end();
            move(window.durable(i, endBytes));
          } else if (outcome.failure.reason === "timeout") late();
          else {
            const { message, reason } = outcome.failure;
            const lost = reason === "connectFailed" || reason === "connectionLost" ? { lostReplica: address } : {};
            move(window.fail(endBytes), `${address}: ${message}`, reason === "messageTooLarge" ? { refusedForEver: reason } : lost);
          }
        });
    }
  });
}

function refuseSize(node: Node, extent: LocalExtent, payloads: readonly Uint8Array[], remainingMs: number): Failure | undefined {
  let bytes = 0;
  let payloadBytes = 0;
  for (const payload of payloads) {
    if (payload.length === 0 || payload.length > blockPayloadBytesMax) {
      return refused("invalidArgument", "badRequest", `a block of ${payload.length} bytes`).failure;
    }
    bytes += frameBytes(payload.length);
    payloadBytes += payload.length;
  }
  if (payloads.length === 0 || payloads.length > appendBlocksMax)
    return refused("invalidArgument", "badRequest", `${payloads.length} blocks`).failure;
  const { appendBytesMax, journalQueueBytesMax } = node.config;
  if (payloadBytes > appendBytesMax) {
    return refused("invalidArgument", "messageTooLarge", `an append of ${payloadBytes} bytes, at most ${appendBytesMax} (appendBytesMax)`)
      .failure;
  }
  if (extent.replica.endBytes + bytes > node.config.extentBytesMax) {
    return refused("resourceExhausted", "extentFull", `extent ${extent.replica.extentId} is full`).failure;
  }
  const { queuedBytes } = node;
  const full = node.refuseBytes(queuedBytes + bytes);
  if (full !== undefined) return full;
  // With nothing on its way it is tried: a disk that was slow would never be seen to be quick again.
  const isLate = node.undurableBytes > 0 && node.expectedMs(bytes) > remainingMs;
  if (isLate || (queuedBytes > 0 && queuedBytes + bytes > journalQueueBytesMax)) {
    return refused("resourceExhausted", "overloaded", "the journal can't take it before the deadline").failure;
  }
  return undefined;
}

function frame(node: Node, extent: LocalExtent, payloads: readonly Uint8Array[]): Framed {
  const { crc32c } = node.world.digest;
  const { extentId: id, endBytes } = extent.replica;
  const slices: Uint8Array[] = [];
  const frames: FrameAt[] = [];
  let at = endBytes;
  for (const payload of payloads) {
    const header = encodeFrameHeader(crc32c, id, at, payload);
    slices.push(header, payload);
    frames.push({ offsetBytes: at, headerBytes: header.length, payloadBytes: payload.length });
    at += header.length + payload.length;
  }
  const lengthBytes = at - endBytes;
  return { slices: retained(slices, lengthBytes), frames, lengthBytes, checksum: crc32cOf(crc32c, slices) };
}
