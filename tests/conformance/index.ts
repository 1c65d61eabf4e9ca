/** The Blob service as the real SDK sees it. Runs against whatever serves it: scripted neighbours, embedded mode, a cluster. */
import { after, before, describe } from "node:test";
import { appendSuite } from "./append.ts";
import { blobSuite } from "./blobs.ts";
import { blockSuite } from "./blocks.ts";
import { conditionSuite } from "./conditions.ts";
import { containerSuite } from "./containers.ts";
import { errorSuite } from "./errors.ts";
import { listSuite } from "./lists.ts";
import { pageSuite } from "./pages.ts";
import { rangeSuite } from "./ranges.ts";
import { Clients, type ConformanceTarget } from "./target.ts";

export type { ConformanceTarget };

/** `open` starts what is tested, once; its `stop` ends it. */
export function blobConformance(name: string, open: () => Promise<ConformanceTarget>): void {
  describe(`Blob service: ${name}`, () => {
    let clients: Clients | undefined;
    const current = (): Clients => {
      if (!clients) throw new Error("not started");
      return clients;
    };
    before(async () => {
      clients = new Clients(await open());
    });
    after(async () => {
      await clients?.target.stop();
    });
    containerSuite(current);
    blobSuite(current);
    blockSuite(current);
    listSuite(current);
    conditionSuite(current);
    rangeSuite(current);
    errorSuite(current);
    appendSuite(current);
    pageSuite(current);
  });
}
