/** Messages over gRPC: put, get, delete, with the limits of the REST API. */
import {
  checkMessageCount,
  checkMessageText,
  checkPutTimes,
  checkQueueName,
  checkTakeTimeout,
  newestVersion,
  type Parsed,
  parsed,
  takeTimeoutSecondsDefault,
  timeToLiveSecondsDefault,
} from "@stamp/azure-rest";
import type { DeleteQueueMessageRequest, GetQueueMessagesRequest, PutQueueMessageRequest, QueueMessage } from "@stamp/wire";
import type { LocatedQueue, QueueAddress, Queues } from "../objects/queues.ts";
import type { CallLimits } from "../routing/router.ts";

async function located(queues: Queues, { account, queue }: QueueAddress, limits: CallLimits): Promise<Parsed<LocatedQueue>> {
  const name = checkQueueName(queue);
  return name.ok ? queues.locate({ account, queue }, limits) : name;
}

export async function putQueueMessage(queues: Queues, request: PutQueueMessageRequest, limits: CallLimits): Promise<Parsed<QueueMessage>> {
  const text = checkMessageText(request.text);
  if (!text.ok) return text;
  const { visibilityTimeoutSeconds, timeToLiveSeconds = BigInt(timeToLiveSecondsDefault) } = request;
  const times = checkPutTimes({ visibilityTimeoutSeconds, timeToLiveSeconds: Number(timeToLiveSeconds) }, newestVersion);
  if (!times.ok) return times;
  const queue = await located(queues, request, limits);
  if (!queue.ok) return queue;
  const value = { queue: queue.value, text: text.value, visibilityTimeoutSeconds, timeToLiveSeconds };
  return queues.execute({ case: "putMessage", value }, "message", limits);
}

export async function getQueueMessages(
  queues: Queues,
  request: GetQueueMessagesRequest,
  limits: CallLimits,
): Promise<Parsed<{ messages: QueueMessage[] }>> {
  const count = checkMessageCount(request.count === 0 ? 1 : request.count);
  if (!count.ok) return count;
  const timeout = checkTakeTimeout(request.visibilityTimeoutSeconds ?? takeTimeoutSecondsDefault);
  if (!timeout.ok) return timeout;
  const queue = await located(queues, request, limits);
  if (!queue.ok) return queue;
  const value = { queue: queue.value, count: count.value, visibilityTimeoutSeconds: timeout.value };
  const messages = await queues.messages({ case: "getMessages", value }, limits);
  return messages.ok ? parsed({ messages: [...messages.value] }) : messages;
}

export async function deleteQueueMessage(queues: Queues, request: DeleteQueueMessageRequest, limits: CallLimits): Promise<Parsed<void>> {
  const queue = await located(queues, request, limits);
  if (!queue.ok) return queue;
  const { messageId, popReceipt } = request;
  return queues.run({ case: "deleteMessage", value: { queue: queue.value, messageId, popReceipt } }, limits);
}
