/** The Queue service as the real SDK sees it. Runs against whatever serves it: scripted neighbours, embedded mode, a cluster. */
import { after, before, beforeEach, describe } from "node:test";
import type { ApiRecord } from "../../tools/api-table.ts";
import type { ConformanceTarget } from "../target.ts";
import { accessSuite } from "./access.ts";
import { bearerSuite } from "./bearer.ts";
import { limitSuite } from "./limits.ts";
import { messageSuite } from "./messages.ts";
import { queueSuite } from "./queues.ts";
import { QueueClients } from "./target.ts";
import { xmlBodySuite } from "./xml-bodies.ts";

/** By the file they are in. */
const parts = {
  "queues/queues.ts": queueSuite,
  "queues/messages.ts": messageSuite,
  "queues/limits.ts": limitSuite,
  "queues/access.ts": accessSuite,
  "queues/bearer.ts": bearerSuite,
  "queues/xml-bodies.ts": xmlBodySuite,
} as const;

/** `open` starts what is tested, once; its `stop` ends it. `record` is told which part runs. */
export function queueConformance(name: string, open: () => Promise<ConformanceTarget>, record?: ApiRecord): void {
  describe(`Queue service: ${name}`, () => {
    let clients: QueueClients | undefined;
    const current = (): QueueClients => {
      if (!clients) throw new Error("not started");
      return clients;
    };
    before(async () => {
      clients = new QueueClients(await open());
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
