/** Messages and lists of queues in XML. A message's text goes out as it came in: what was escaped is escaped again, nothing else changes. */
import { utf8 } from "@stamp/base";
import { formatRfc1123 } from "../dates.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { childOf, missingNode, parseXml, type XmlElement } from "../xml/xml.ts";
import { element, escapeXml, needsEncoding } from "../xml/xml-text.ts";

/** Length of the largest text, as the service counts it: UTF-8, after XML references were resolved. */
export const messageTextBytesMax: number = 64 * 1024;
/** Largest XML body: every character of the longest text may be escaped, in six bytes as `&quot;`. */
export const messageBodyBytesMax: number = 6 * messageTextBytesMax + 512;

const declaration = '<?xml version="1.0" encoding="utf-8"?>';

/** Returns the text of `<QueueMessage><MessageText>`. */
export function parseMessage(body: Uint8Array): Parsed<string> {
  const root = parseXml(body, messageBodyBytesMax);
  return root.ok ? textOfMessage(root.value) : root;
}

/** Returns the text of a message, as `parseMessage`, from a body that was read already. */
export function textOfMessage(root: XmlElement): Parsed<string> {
  if (root.name !== "QueueMessage") return rejected("InvalidXmlDocument");
  const text = childOf(root, "MessageText");
  if (!text) return missingNode("MessageText");
  if (text.children.length > 0) return rejected("UnsupportedXmlNode", { XmlNodeName: text.children[0]?.name ?? "" });
  return checkMessageText(text.text);
}

/** Refuses a text that XML can't carry (a reference may name such a character): it could never be given back. */
export function checkMessageText(text: string): Parsed<string> {
  if (needsEncoding(text) || !text.isWellFormed()) return rejected("InvalidXmlDocument");
  const bytes = utf8(text).length;
  return bytes > messageTextBytesMax ? rejected("RequestBodyTooLarge", { MaxLimit: String(messageTextBytesMax) }) : parsed(text);
}

export interface ShownMessage {
  readonly messageId: string;
  readonly insertedMs: number;
  /** Time at which the message expires, in milliseconds since 1970; undefined: never. */
  readonly expiresMs: number | undefined;
  readonly dequeueCount: number;
  readonly popReceipt: string;
  readonly visibleMs: number;
  readonly text: string;
}

/** Expiry that the service shows for a message that never expires. */
const never = "Fri, 31 Dec 9999 23:59:59 GMT";

/** Yields messages in pieces. Put: all but count and text. Get: everything. Peek: neither receipt nor the time of visibility. */
export function* messagesXml(messages: readonly ShownMessage[], of: "put" | "get" | "peek"): Generator<string, void> {
  yield `${declaration}<QueueMessagesList>`;
  for (const message of messages) {
    const { messageId, insertedMs, expiresMs, dequeueCount, popReceipt, visibleMs } = message;
    let text = `<QueueMessage><MessageId>${messageId}</MessageId><InsertionTime>${formatRfc1123(insertedMs)}</InsertionTime>`;
    text += `<ExpirationTime>${expiresMs === undefined ? never : formatRfc1123(expiresMs)}</ExpirationTime>`;
    if (of !== "peek") text += `<PopReceipt>${popReceipt}</PopReceipt><TimeNextVisible>${formatRfc1123(visibleMs)}</TimeNextVisible>`;
    if (of !== "put") text += `<DequeueCount>${dequeueCount}</DequeueCount>${element("MessageText", message.text)}`;
    yield `${text}</QueueMessage>`;
  }
  yield "</QueueMessagesList>";
}

export interface ListedQueue {
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface QueueListEcho {
  readonly serviceEndpoint: string;
  readonly prefix?: string;
  readonly marker?: string;
  readonly maxResults?: number;
  readonly includeMetadata: boolean;
}

/** `nextMarker`: marker of the next page, as the answer gives it; empty at the end. */
export function listQueuesXml(echo: QueueListEcho, queues: readonly ListedQueue[], nextMarker: string): string {
  let text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(echo.serviceEndpoint)}">`;
  if (echo.prefix !== undefined) text += element("Prefix", echo.prefix);
  if (echo.marker !== undefined) text += element("Marker", echo.marker);
  if (echo.maxResults !== undefined) text += `<MaxResults>${echo.maxResults}</MaxResults>`;
  text += "<Queues>";
  for (const { name, metadata } of queues) {
    text += `<Queue>${element("Name", name)}`;
    if (echo.includeMetadata) {
      text += "<Metadata>";
      for (const key in metadata) text += element(key, metadata[key] as string);
      text += "</Metadata>";
    }
    text += "</Queue>";
  }
  return `${text}</Queues>${nextMarker === "" ? "<NextMarker />" : element("NextMarker", nextMarker)}</EnumerationResults>`;
}
