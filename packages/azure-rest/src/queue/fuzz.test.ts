/** Whatever is sent to the Queue service, its parsers answer: with a value or with an error of the service. And what goes out is XML. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { isErrorCode } from "../error-codes.ts";
import type { RestError } from "../rest-error.ts";
import { parseQuery, parseTarget } from "../target.ts";
import { newestVersion } from "../version.ts";
import { checkMessageText, listQueuesXml, messagesXml, messageTextBytesMax, parseMessage } from "./messages-xml.ts";
import { queueRequestTitle, recognizeQueue } from "./operations.ts";
import { parseMessageCount, parsePopReceipt, parsePutTimes, parseTakeTimeout, parseUpdateTimeout } from "./query.ts";
import { checkQueueName, parseQueueResource } from "./resource.ts";

const text = fc.string({ unit: "binary", maxLength: 60 });
const bytesOf = (parts: readonly string[]): Uint8Array => new TextEncoder().encode(parts.join(""));

function answers(result: { readonly ok: boolean; readonly error?: RestError }): void {
  assert.ok(result.ok || (result.error !== undefined && isErrorCode(result.error.code) && result.error.status >= 400));
}

test("targets and queries: any text is answered", () => {
  const piece = fc.oneof(
    text,
    fc.constantFrom(
      "/messages",
      "/",
      "?",
      "&",
      "comp=metadata",
      "peekonly=true",
      "numofmessages=",
      "visibilitytimeout=-1",
      "messagettl=1e9",
      "%",
    ),
  );
  const target = fc.array(piece, { maxLength: 10 }).map((pieces) => `/acct/${pieces.join("")}`);
  fc.assert(
    fc.property(target, fc.constantFrom("GET", "PUT", "HEAD", "DELETE", "POST", "BREW"), (asked, method) => {
      const parsed = parseTarget(asked, "h:1", { hostSuffixes: [] });
      answers(parsed);
      if (!parsed.ok) return;
      const { query } = parsed.value;
      for (const parse of [parseMessageCount, parseTakeTimeout, parseUpdateTimeout, parsePopReceipt]) answers(parse(query));
      answers(parsePutTimes(query, newestVersion));
      const resource = parseQueueResource(parsed.value);
      answers(resource);
      if (!resource.ok) return;
      if (resource.value.queue !== undefined) answers(checkQueueName(resource.value.queue));
      const named = { ...parsed.value, ...resource.value };
      answers(recognizeQueue(method, named));
      queueRequestTitle(method, named);
    }),
    { numRuns: 500 },
  );
});

test("bodies of messages: any bytes are answered", () => {
  const tags = fc.constantFrom(
    "<QueueMessage>",
    "</QueueMessage>",
    "<MessageText>",
    "</MessageText>",
    "<MessageText/>",
    "&amp;",
    "&#x0;",
    "&#xD800;",
    "&#65;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<!DOCTYPE a>",
    "<?xml version='1.0'?>",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(tags, text), { maxLength: 12 }), (parts) => answers(parseMessage(bytesOf(parts)))),
    { numRuns: 500 },
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => answers(parseMessage(bytes))));
});

/** Escapes as clients do. */
const escaped = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\r", "&#xD;");

test("a text that is taken comes back from a real parser as it was sent", () => {
  const reader = new XMLParser({ trimValues: false, parseTagValue: false, htmlEntities: true });
  fc.assert(
    fc.property(fc.oneof(text, fc.string({ unit: "grapheme", maxLength: 40 })), (sent) => {
      const taken = parseMessage(bytesOf(["<QueueMessage><MessageText>", escaped(sent), "</MessageText></QueueMessage>"]));
      const can = checkMessageText(sent).ok;
      assert.equal(taken.ok, can);
      if (!taken.ok) return;
      assert.equal(taken.value, sent);
      const message = {
        messageId: "m",
        insertedMs: 0,
        expiresMs: undefined,
        dequeueCount: 1,
        popReceipt: "r",
        visibleMs: 0,
        text: taken.value,
      };
      const xml = [...messagesXml([message], "get")].join("");
      assert.equal(XMLValidator.validate(xml), true);
      // The reader turns the reference to a carriage return into one, and XML itself says that it stays.
      assert.equal(reader.parse(xml).QueueMessagesList.QueueMessage.MessageText, sent);
    }),
    { numRuns: 300 },
  );
});

test("texts up to 64 KiB are taken, however they are escaped", () => {
  const of = (content: string) => parseMessage(bytesOf(["<QueueMessage><MessageText>", content, "</MessageText></QueueMessage>"]));
  assert.ok(of("x".repeat(messageTextBytesMax)).ok);
  for (const escaped of ["&#x41;", "&amp;", "&quot;", "&#10;"]) assert.ok(of(escaped.repeat(messageTextBytesMax)).ok, escaped);
  for (const content of [
    "x".repeat(messageTextBytesMax + 1),
    "é".repeat(messageTextBytesMax / 2 + 1),
    "&amp;".repeat(messageTextBytesMax + 1),
  ]) {
    const taken = of(content);
    assert.ok(!taken.ok && taken.error.code === "RequestBodyTooLarge");
  }
});

test("whatever names and metadata are, a list is well-formed XML", () => {
  fc.assert(
    fc.property(text, text, (name, value) => {
      const echo = { serviceEndpoint: value, prefix: name, marker: value, includeMetadata: true };
      assert.equal(XMLValidator.validate(listQueuesXml(echo, [{ name, metadata: { k: value } }], value)), true);
    }),
  );
});

test("numbers have limits, which the refusal names", () => {
  const query = (asked: string) => {
    const parsed = parseQuery(asked);
    assert.ok(parsed.ok);
    return parsed.value;
  };
  const refused = parseMessageCount(query("numofmessages=33"));
  assert.ok(!refused.ok);
  assert.deepEqual([refused.error.details.MinimumAllowed, refused.error.details.MaximumAllowed], ["1", "32"]);
  assert.deepEqual(parsePutTimes(query(""), newestVersion), {
    ok: true,
    value: { visibilityTimeoutSeconds: 0, timeToLiveSeconds: 604_800 },
  });
  assert.ok(parsePutTimes(query("messagettl=-1&visibilitytimeout=604800"), newestVersion).ok);
});
