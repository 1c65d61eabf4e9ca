/** The Table service as the real SDK sees it. Runs against whatever serves it: scripted neighbours, embedded mode, a cluster. */
import { after, before, beforeEach, describe } from "node:test";
import type { ApiRecord } from "../../tools/api-table.ts";
import type { ConformanceTarget } from "../target.ts";
import { accessSuite } from "./access.ts";
import { bearerSuite } from "./bearer.ts";
import { entitySuite } from "./entities.ts";
import { querySuite } from "./queries.ts";
import { tableSuite } from "./tables.ts";
import { TableClients } from "./target.ts";
import { transactionSuite } from "./transactions.ts";
import { typeSuite } from "./types.ts";
import { xmlBodySuite } from "./xml-bodies.ts";

/** By the file they are in. */
const parts = {
  "tables/tables.ts": tableSuite,
  "tables/entities.ts": entitySuite,
  "tables/types.ts": typeSuite,
  "tables/queries.ts": querySuite,
  "tables/transactions.ts": transactionSuite,
  "tables/access.ts": accessSuite,
  "tables/bearer.ts": bearerSuite,
  "tables/xml-bodies.ts": xmlBodySuite,
} as const;

/** `open` starts what is tested, once; its `stop` ends it. `record` is told which part runs. */
export function tableConformance(name: string, open: () => Promise<ConformanceTarget>, record?: ApiRecord): void {
  describe(`Table service: ${name}`, () => {
    let clients: TableClients | undefined;
    const current = (): TableClients => {
      if (!clients) throw new Error("not started");
      return clients;
    };
    before(async () => {
      clients = new TableClients(await open());
    });
    after(async () => {
      await clients?.target.stop();
    });
    for (const [part, suite] of Object.entries(parts)) {
      describe(part, () => {
        beforeEach(() => {
          if (record) record.part = part;
        });
        suite(current);
      });
    }
  });
}
