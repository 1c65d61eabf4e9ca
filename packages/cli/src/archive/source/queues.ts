/**
 * Queues and their messages. The API shows the first messages of a queue, and gives more only to a reader that hides them from others: so they are
 * hidden for a time that suffices, and shown again as soon as they are in their place.
 */
import type { QueueClient } from "@azure/storage-queue";
import type { AccountDoors } from "../doors.ts";

import type { SourcePosition, Step, StoredMessage } from "../items.ts";
import { withReturns } from "../returns.ts";
import { policiesOf, statusOf, textsOf, timeText } from "./answers.ts";

const messagesInPage = 32;
/** Time in which all messages of a queue are read and shown again, in seconds; until its end they are hidden. */
const hiddenSeconds = (count: number): number => Math.min(6 * 86_400, 60 + Math.ceil(count / 100));
/** With less time the rest is left out. */
const secondsMin = 5;
/** Messages of one queue that are read. What each hides behind is in memory until it is shown again. */
const messagesMax = 2_000_000;

export async function* queueSteps(doors: AccountDoors, from: SourcePosition, messages: boolean): AsyncGenerator<Step, void, undefined> {
  let done = String(from.queue ?? "");
  await untilShown(Number(from.hiddenUntilMs ?? 0));
  for await (const { name, metadata } of doors.queues.listQueues({ includeMetadata: true })) {
    if (name <= done) continue;
    const queue = doors.queues.getQueueClient(name);
    const next = { stage: "queue", queue: name };
    try {
      const { approximateMessagesCount: count = 0 } = await queue.getProperties();
      const policies = policiesOf((await queue.getAccessPolicy()).signedIdentifiers);
      const item = { kind: "queue", name, metadata: textsOf(metadata, true), policies } as const;
      if (messages && count > 0) {
        const untilMs = Date.now() + hiddenSeconds(count) * 1_000;
        // Until all messages are read, a later run begins with the queue again, when it shows them again.
        const again = { stage: "queue", ...(done === "" ? {} : { queue: done }), hiddenUntilMs: untilMs };
        yield { item, next: again, isDurable: true };
        yield* messagesIn(queue, untilMs, again, next);
      } else {
        yield { item, next };
        const why = "--messages takes them";
        if (count > 0) yield { item: { kind: "leftOut", what: `about ${count} messages of queue ${name}`, why, chosen: true }, next };
      }
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
    done = name;
  }
}

async function untilShown(untilMs: number): Promise<void> {
  const waitMs = untilMs - Date.now();
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs + 1_000));
}

interface Hidden {
  readonly id: string;
  readonly receipt: string;
}

async function* messagesIn(
  queue: QueueClient,
  untilMs: number,
  again: SourcePosition,
  next: SourcePosition,
): AsyncGenerator<Step, void, undefined> {
  const hidden: Hidden[] = [];
  const seen = new Set<string>();
  try {
    while (seen.size < messagesMax) {
      const visibilityTimeout = Math.floor((untilMs - Date.now()) / 1_000);
      if (visibilityTimeout < secondsMin) break;
      const { receivedMessageItems: items } = await queue.receiveMessages({ numberOfMessages: messagesInPage, visibilityTimeout });
      if (items.length === 0) break;
      hidden.push(...items.map(({ messageId, popReceipt }) => ({ id: messageId, receipt: popReceipt })));
      const messages = items
        .filter(({ messageId }) => !seen.has(messageId))
        .map(
          ({ messageText, insertedOn, expiresOn, dequeueCount }): StoredMessage => ({
            text: withReturns(messageText),
            insertedOn: timeText(insertedOn),
            expiresOn: timeText(expiresOn),
            dequeueCount: dequeueCount - 1,
          }),
        );
      for (const { messageId } of items) seen.add(messageId);
      if (messages.length > 0) yield { item: { kind: "messages", queue: queue.name, messages }, next: again };
    }
  } finally {
    await showAgain(queue, hidden);
  }
  const { approximateMessagesCount: count = 0 } = await queue.getProperties();
  const others = count - seen.size;
  const why = "others have them in their hands, or they are put for later";
  if (others > 0) yield { item: { kind: "leftOut", what: `about ${others} messages of queue ${queue.name}`, why, chosen: false }, next };
  else yield { item: { kind: "messages", queue: queue.name, messages: [] }, next };
}

/** One after the other, which keeps their order. Their texts are not written: they stay as they are. A message that somebody has deleted or got meanwhile stays as it is. */
async function showAgain(queue: QueueClient, hidden: readonly Hidden[]): Promise<void> {
  for (const { id, receipt } of hidden)
    await queue.updateMessage(id, receipt, undefined, 0).catch((error: unknown) => {
      if (statusOf(error) === undefined) throw error;
    });
}
