/**
 * Step 5 of the write path: a record of the primary at a secondary. Verified, taken only at the end of the replica, answered when it is
 * durable. The decision is made in the synchronous part, in the order of arrival.
 */
import { extentId, holdersOf, type Outcome, ok, ownerEpoch, refused } from "@stamp/base";
import { appendHeadersBytesMax, crc32cOf, Slices, walkFrames } from "@stamp/extent";
import type { CallContext } from "@stamp/ports";
import { fromWire, type ReplicateRequest, toWire } from "@stamp/wire";
import { retained } from "../journal/slices.ts";
import { type Node, unknownExtent } from "../node.ts";
import { recordAppend } from "./append-record.ts";

export function replicate(node: Node, request: ReplicateRequest, context: CallContext): Promise<Outcome<{ durableBytes: bigint }>> {
  const id = extentId(fromWire(request.extentId));
  const extent = node.find(id);
  if (extent === undefined) return Promise.resolve(unknownExtent(id));
  const { replica } = extent;
  const { crc32c } = node.world.digest;
  const epoch = ownerEpoch(fromWire(request.ownerEpoch));
  const offsetBytes = fromWire(request.offsetBytes);
  const incarnation = fromWire(request.primaryIncarnation);
  const payload = new Slices(request.payload);
  if (payload.lengthBytes === 0) return Promise.resolve(refused("invalidArgument", "badRequest", "a record without bytes"));
  const { appendBytesMax } = node.config;
  if (payload.lengthBytes > appendBytesMax + appendHeadersBytesMax) {
    const message = `a record of ${payload.lengthBytes} bytes, at most ${appendBytesMax} (appendBytesMax) and block headers`;
    return Promise.resolve(refused("invalidArgument", "messageTooLarge", message));
  }
  if (crc32cOf(crc32c, payload.parts) !== request.checksum) {
    return Promise.resolve(refused("dataLoss", "badRequest", `record at ${offsetBytes} of extent ${id}: bytes changed on the way`));
  }
  const walked = walkFrames(crc32c, id, offsetBytes, payload, { payloads: false });
  if (walked.kind === "invalid") {
    return Promise.resolve(refused("invalidArgument", "badRequest", `record at ${offsetBytes} of extent ${id}: ${walked.why}`));
  }
  const refusal = replica.refuseReplicate(epoch, offsetBytes, incarnation);
  if (refusal !== undefined) return Promise.resolve({ ok: false, failure: refusal });
  // The caller's name is known where it has a certificate.
  if (context.callerName !== undefined && !replica.isPrimary(context.callerName)) {
    const message = `${context.callerName} is not the primary of extent ${id}, and only the primary replicates`;
    return Promise.resolve(refused("permissionDenied", "unauthorized", message));
  }
  const { queuedBytes } = node;
  const full = node.refuseBytes(queuedBytes + payload.lengthBytes);
  if (full !== undefined) return Promise.resolve({ ok: false, failure: full });
  if (queuedBytes > 0 && queuedBytes + payload.lengthBytes > node.config.journalQueueBytesMax) {
    return Promise.resolve(refused("resourceExhausted", "overloaded", "the journal is too far behind"));
  }

  const arrivedMs = node.world.clock.monotonicMs();
  replica.rememberPrimary(incarnation);
  replica.learnCommitted(Math.min(fromWire(request.committedBytes), offsetBytes));
  const accepted = replica.accept(payload.lengthBytes, request.checksum);
  const endBytes = accepted + payload.lengthBytes;
  const slices = retained(payload.parts, payload.lengthBytes);
  // The offsets are unchanged, unless the rule that demands the expected offset is off.
  const frames = walked.frames.map((at) => ({ ...at, offsetBytes: at.offsetBytes - offsetBytes + accepted }));
  const holders = holdersOf(1, context.giveBackPayload);
  return new Promise((resolve) => {
    const answer = (): void => resolve(ok({ durableBytes: toWire(endBytes) }));
    const { lengthBytes } = payload;
    const { checksum } = request;
    const { committedBytes } = replica;
    recordAppend(
      node,
      extent,
      { offsetBytes: accepted, lengthBytes, ownerEpoch: epoch, committedBytes, slices, checksum, frames, arrivedMs, holders },
      { durable: answer, failed: (why) => resolve(refused("resourceExhausted", "diskFull", why)) },
    );
    if (!node.world.rules.on("ackOnlyDurable")) answer();
  });
}
