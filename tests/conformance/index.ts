/** The Blob service as the real SDK sees it. Runs against whatever serves it: scripted neighbours, embedded mode, a cluster. */
import { after, before, beforeEach, describe } from "node:test";
import type { ApiRecord } from "../tools/api-table.ts";
import { appendSuite } from "./append.ts";
import { batchSuite } from "./batch.ts";
import { bearerSuite } from "./bearer.ts";
import { blobSuite } from "./blobs.ts";
import { blockSuite } from "./blocks.ts";
import { conditionTableSuite } from "./condition-table.ts";
import { conditionSuite } from "./conditions.ts";
import { containerSuite } from "./containers.ts";
import { copySuite } from "./copy.ts";
import { emptyValueSuite } from "./empty-values.ts";
import { encryptionScopeSuite } from "./encryption-scopes.ts";
import { errorSuite } from "./errors.ts";
import { expiredLeaseSuite } from "./expired.ts";
import { foreignSuite } from "./foreign.ts";
import { immutabilitySuite } from "./immutability.ts";
import { leaseSuite } from "./leases.ts";
import { listSuite } from "./lists.ts";
import { metadataSuite } from "./metadata.ts";
import { nameSuite } from "./names.ts";
import { odditySuite } from "./oddities.ts";
import { outcomeSuite } from "./outcomes.ts";
import { pageSuite } from "./pages.ts";
import { propertySuite } from "./properties.ts";
import { rangeSuite } from "./ranges.ts";
import { refusedSuite } from "./refused.ts";
import { sasSuite } from "./sas.ts";
import { serviceSuite } from "./service.ts";
import { serviceVersionSuite } from "./service-versions.ts";
import { snapshotSuite } from "./snapshots.ts";
import { softDeleteSuite } from "./soft-delete.ts";
import { tagSuite } from "./tags.ts";
import { Clients, type ConformanceTarget } from "./target.ts";
import { tierSuite } from "./tiers.ts";
import { versionSuite } from "./versions.ts";
import { xmlBodySuite } from "./xml-bodies.ts";

export type { ConformanceTarget };

/** By the file they are in. */
export const quickParts = {
  "containers.ts": containerSuite,
  "blobs.ts": blobSuite,
  "blocks.ts": blockSuite,
  "lists.ts": listSuite,
  "conditions.ts": conditionSuite,
  "condition-table.ts": conditionTableSuite,
  "outcomes.ts": outcomeSuite,
  "ranges.ts": rangeSuite,
  "empty-values.ts": emptyValueSuite,
  "errors.ts": errorSuite,
  "oddities.ts": odditySuite,
  "names.ts": nameSuite,
  "append.ts": appendSuite,
  "batch.ts": batchSuite,
  "copy.ts": copySuite,
  "foreign.ts": foreignSuite,
  "pages.ts": pageSuite,
  "properties.ts": propertySuite,
  "refused.ts": refusedSuite,
  "sas.ts": sasSuite,
  "service-versions.ts": serviceVersionSuite,
  "service.ts": serviceSuite,
  "bearer.ts": bearerSuite,
  "metadata.ts": metadataSuite,
  "leases.ts": leaseSuite,
  "snapshots.ts": snapshotSuite,
  "tags.ts": tagSuite,
  "tiers.ts": tierSuite,
  "immutability.ts": immutabilitySuite,
  "soft-delete.ts": softDeleteSuite,
  "versions.ts": versionSuite,
  "encryption-scopes.ts": encryptionScopeSuite,
  "xml-bodies.ts": xmlBodySuite,
} as const;

/** They wait for time to pass. */
export const slowParts = { "expired.ts": expiredLeaseSuite } as const;

/** `open` starts what is tested, once; its `stop` ends it. `record` is told which part runs. */
export function blobConformance(
  name: string,
  open: () => Promise<ConformanceTarget>,
  record?: ApiRecord,
  parts: Readonly<Record<string, (clients: () => Clients) => void>> = quickParts,
): void {
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
