/** Converts operations on queues and their results between the wire and @stamp/objects. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Message, Queue, QueueName, QueueOperation, QueueResult } from "@stamp/objects";
import type * as wire from "@stamp/wire";
import { fromWire, signedIdentifiersFromWire, signedIdentifiersToWire, toWire } from "@stamp/wire";
import { missing } from "./missing.ts";

export function queueOperationFromWire({ kind }: wire.QueueOperation): QueueOperation {
  switch (kind.case) {
    case undefined:
      throw missing("a kind");
    case "createQueue":
    case "setQueueMetadata": {
      const { account, queue, metadata } = kind.value;
      return { kind: { case: kind.case, value: { account, queue, metadata } } };
    }
    case "setQueueAcl": {
      const { account, queue, signedIdentifiers } = kind.value;
      return { kind: { case: kind.case, value: { account, queue, signedIdentifiers: signedIdentifiersFromWire(signedIdentifiers) } } };
    }
    case "getQueue":
    case "deleteQueue": {
      const { account, queue } = kind.value;
      return { kind: { case: kind.case, value: { account, queue } } };
    }
    case "listQueues": {
      const { account, prefix, marker, maxResults } = kind.value;
      return { kind: { case: kind.case, value: { account, prefix, marker, maxResults } } };
    }
    case "putMessage": {
      const { text, visibilityTimeoutSeconds, timeToLiveSeconds } = kind.value;
      const times = { visibilityTimeoutSeconds, timeToLiveSeconds: fromSigned(timeToLiveSeconds) };
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), text, ...times } } };
    }
    case "getMessages": {
      const { count, visibilityTimeoutSeconds } = kind.value;
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), count, visibilityTimeoutSeconds } } };
    }
    case "peekMessages": {
      const { count, ofCopy } = kind.value;
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), count, ofCopy } } };
    }
    case "deleteMessage": {
      const { messageId, popReceipt } = kind.value;
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), messageId, popReceipt } } };
    }
    case "updateMessage": {
      const { messageId, popReceipt, visibilityTimeoutSeconds, text } = kind.value;
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), messageId, popReceipt, visibilityTimeoutSeconds, text } } };
    }
    case "clearMessages":
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value) } } };
    case "countMessages":
      return { kind: { case: kind.case, value: { queue: nameOf(kind.value), ofCopy: kind.value.ofCopy } } };
  }
}

function nameOf({ queue }: { readonly queue?: wire.QueueName | undefined }): QueueName {
  if (!queue) throw missing("a queue's name");
  return { account: queue.account, queue: queue.queue, incarnation: fromWire(queue.incarnation) };
}

const timeToLiveSecondsMax = 2n ** 31n - 1n;

/** Reads a time to live: -1, or up to what the service allows. */
function fromSigned(value: bigint): number {
  if (value < -1n || value === 0n || value > timeToLiveSecondsMax) throw missing("a time to live that can be");
  return Number(value);
}

export function queueResultToWire({ kind }: QueueResult): MessageInitShape<typeof wire.QueueResultSchema> {
  switch (kind.case) {
    case "queue":
      return { kind: { case: "queue", value: queueToWire(kind.value) } };
    case "queues": {
      const { queues, nextMarker, rangeEnded } = kind.value;
      return { kind: { case: "queues", value: { queues: queues.map(queueToWire), nextMarker, rangeEnded } } };
    }
    case "message":
      return { kind: { case: "message", value: messageToWire(kind.value) } };
    case "messages":
      return { kind: { case: "messages", value: { messages: kind.value.messages.map(messageToWire), more: kind.value.more } } };
    case "count":
      return { kind: { case: "count", value: { count: toWire(kind.value.count), more: kind.value.more } } };
  }
}

const queueToWire = (queue: Queue): MessageInitShape<typeof wire.QueueSchema> => ({
  name: queue.name,
  metadata: { ...queue.metadata },
  incarnation: toWire(queue.incarnation),
  created: queue.created,
  signedIdentifiers: signedIdentifiersToWire(queue.signedIdentifiers),
});

const messageToWire = ({ expiresMs, insertedMs, visibleMs, ...same }: Message): MessageInitShape<typeof wire.QueueMessageSchema> => ({
  ...same,
  insertedMs: toWire(insertedMs),
  visibleMs: toWire(visibleMs),
  ...(expiresMs === undefined ? {} : { expiresMs: toWire(expiresMs) }),
});
