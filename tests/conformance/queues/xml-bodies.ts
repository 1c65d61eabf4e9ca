/** XML bodies of the Queue service in every form of XML 1.0: messages, and what every service has. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sharedXmlBodies } from "../xml-bodies.ts";
import { anyText, type XmlNode, xmlText, xmlWritings } from "../xml-forms.ts";
import type { QueueClients } from "./target.ts";

export function xmlBodySuite(clients: () => QueueClients): void {
  describe("XML bodies", () => {
    sharedXmlBodies(clients, async () => `/${(await clients().queue()).name}?comp=acl`, "rau");

    test("a message that is put or updated in every form of XML has the same text", async () => {
      const root: XmlNode = ["QueueMessage", [["MessageText", anyText]]];
      const shown = `<MessageText>${xmlText(anyText)}</MessageText>`;
      // As text: the SDK's parser leaves references to characters as they are.
      const peeked = async (queue: string): Promise<string> => (await clients().raw("GET", `/${queue}/messages?peekonly=true`)).text();
      const headers = { "content-type": "application/xml" };
      for (const [form, body] of xmlWritings(root)) {
        const queue = await clients().queue();
        const put = await clients().raw("POST", `/${queue.name}/messages`, { body, headers });
        assert.equal(put.status, 201, `${form}: ${await put.text()}`);
        assert.ok((await peeked(queue.name)).includes(shown), form);
        const [taken] = (await queue.receiveMessages()).receivedMessageItems;
        const other = await queue.updateMessage(taken?.messageId ?? "", taken?.popReceipt ?? "", "other", 0);
        const query = `popreceipt=${encodeURIComponent(other.popReceipt ?? "")}&visibilitytimeout=0`;
        const updated = await clients().raw("PUT", `/${queue.name}/messages/${taken?.messageId}?${query}`, { body, headers });
        assert.equal(updated.status, 204, `${form}: ${await updated.text()}`);
        assert.ok((await peeked(queue.name)).includes(shown), form);
      }
    });
  });
}
