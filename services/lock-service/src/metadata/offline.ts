/** The metadata of a stamp whose lock service does not run, read only; its store's lock keeps a running one out. */
import { type Outcome, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { LockStore, type StoredPage } from "../store/store.ts";

const pageLimit = 10_000;

export async function metadataOffline(world: World, prefix: string): Promise<Outcome<StoredPage["entries"]>> {
  const opened = await LockStore.open(world, { readOnly: true });
  if (!opened.ok) return refused("dataLoss", "damaged", `the metadata store is damaged: ${opened.failure.message}`);
  const store = opened.value;
  try {
    const entries: StoredPage["entries"] = [];
    for (;;) {
      const page = await store.page(prefix, entries.at(-1)?.key ?? "", pageLimit);
      if (!page.ok) return page;
      entries.push(...page.value.entries);
      if (!page.value.more) return ok(entries);
    }
  } finally {
    await store.close();
  }
}
