/** Resource in the path of a Queue service request: the account itself, a queue, its messages, or one of them. */
import type { SignedResource } from "../auth/authorization.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodePercent, type Target } from "../target.ts";

export interface QueueResource {
  /** Name of the queue; undefined: the request is about the account. */
  readonly queue?: string;
  /** The messages of the queue, or the one that `messageId` names. */
  readonly messages?: true;
  readonly messageId?: string;
}

export function parseQueueResource({ resource }: Target): Parsed<QueueResource> {
  const segments = resource.split("/").map(decodePercent);
  if (segments.at(-1) === "" && segments.length > 1) segments.pop();
  const [queue, messages, messageId] = segments;
  if (segments.includes(undefined) || segments.length > 3 || queue === undefined) return rejected("InvalidUri");
  if (segments.length === 1) return parsed(queue === "" ? {} : { queue });
  if (messages?.toLowerCase() !== "messages" || messageId === "") return rejected("InvalidUri");
  return parsed(messageId === undefined ? { queue, messages: true } : { queue, messages: true, messageId });
}

/** Checks a name: 3 to 63 lower-case letters, digits and single hyphens between them ("Naming queues and metadata"). */
export function checkQueueName(name: string): Parsed<string> {
  if (!/^[a-z0-9](-?[a-z0-9])*$/.test(name)) return rejected("InvalidResourceName");
  if (name.length >= 3 && name.length <= 63) return parsed(name);
  return rejected("OutOfRangeInput", {}, { message: "The specified resource name length is not within the permissible limits." });
}

export const signedQueueResource = ({ queue }: QueueResource): SignedResource =>
  queue === undefined ? { kind: "account" } : { kind: "queue", queue };
