/** The metadata of a stamp whose lock services do not run, read only; the lock of a store keeps a running one out. */
import { type Outcome, ok, refused } from "@stamp/base";
import type { KeyValue, World } from "@stamp/ports";
import { openToRead } from "../consensus/member-folder.ts";
import { LockStore, type StoredPage } from "../store/store.ts";

const pageLimit = 10_000;

export interface OfflineMetadata {
  readonly entries: StoredPage["entries"];
  /** Last entry of the replicated log that they include: of several members, the highest is the newest; 0 for a store alone. */
  readonly applied: number;
}

/** `replicated`: the folder is that of a member. */
export async function metadataOffline(world: World, prefix: string, replicated: boolean): Promise<Outcome<OfflineMetadata>> {
  const opened = replicated ? await openMember(world) : await openAlone(world);
  if (!opened.ok) return refused("dataLoss", "damaged", `the metadata store is damaged: ${opened.failure.message}`);
  const { store, applied } = opened.value;
  try {
    const entries: StoredPage["entries"] = [];
    for (;;) {
      const page = await store.page(prefix, entries.at(-1)?.key ?? "", pageLimit);
      if (!page.ok) return page;
      entries.push(...page.value.entries);
      if (!page.value.more) return ok({ entries, applied });
    }
  } finally {
    await store.close();
  }
}

interface OpenedStore {
  readonly store: LockStore;
  readonly applied: number;
}

async function openAlone(world: World): Promise<Outcome<OpenedStore>> {
  const store = await LockStore.open(world, { readOnly: true });
  return store.ok ? ok({ store: store.value, applied: 0 }) : store;
}

async function openMember(world: World): Promise<Outcome<OpenedStore>> {
  const member = await openToRead(world);
  if (!member.ok) return member;
  const { rows, lineage, applied } = member.value;
  const close = (): Promise<void> => member.value.close();
  const kv: KeyValue = { ...rows, batch: () => Promise.reject(new Error("the store was opened to read")), close };
  const store = await LockStore.openReplicated(world, kv, lineage, { readOnly: true });
  if (store.ok) return ok({ store: store.value, applied: applied.index });
  await close();
  return store;
}
