/** XML bodies of the Table service in every form of XML 1.0; entities and transactions are JSON. */
import { describe } from "node:test";
import { sharedXmlBodies } from "../xml-bodies.ts";
import type { TableClients } from "./target.ts";

export function xmlBodySuite(clients: () => TableClients): void {
  describe("XML bodies", () => {
    sharedXmlBodies(clients, async () => `/${(await clients().table()).tableName}?comp=acl`, "rau");
  });
}
