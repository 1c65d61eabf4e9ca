/** The metadata of a stamp whose lock services do not run, read only; the lock of a store keeps a running one out. */
import { type Checksum, fromUtf8, type Outcome, ok, refused, toHex } from "@stamp/base";
import type { OpenedSnapshot } from "@stamp/metadata-store";
import type { KeyValue, World } from "@stamp/ports";
import { openToRead } from "../consensus/member-folder.ts";
import { hasOldStore } from "../consensus/take-over.ts";
import { decodeKeyState, LockStore, type StoredPage } from "../store/store.ts";

const pageLimit = 10_000;

export interface OfflineMetadata {
  readonly entries: StoredPage["entries"];
  /** Last entry of the replicated log that they include: of several members, the highest is the newest; 0 for a store alone. */
  readonly applied: number;
  /** Name of the history of the rows, which a restore begins anew: of two histories entries can't be compared. */
  readonly lineage: string;
}

/** Returns the newest of what the folders of several members hold: of the history that most of them have. Undefined: there is none. */
export function newestMetadata(found: readonly OfflineMetadata[]): OfflineMetadata | undefined {
  const count = (lineage: string): number => found.filter((each) => each.lineage === lineage).length;
  return found.toSorted((one, other) => count(other.lineage) - count(one.lineage) || other.applied - one.applied)[0];
}

/** Entries of the metadata store whose keys begin with `prefix`, as a snapshot has them. Refused with `damaged` if one can't be read. */
export async function snapshotEntries(
  snapshot: Pick<OpenedSnapshot, "entries">,
  prefix: string,
  checksum: Checksum,
): Promise<Outcome<StoredPage["entries"]>> {
  const entries: StoredPage["entries"] = [];
  for await (const [key, value] of snapshot.entries()) {
    const name = fromUtf8(key);
    if (!name.startsWith(`k/${prefix}`)) continue;
    const state = decodeKeyState(value, checksum);
    if (!state.ok) return state;
    if (state.value.value !== undefined) entries.push({ key: name.slice(2), value: state.value.value, version: state.value.version });
  }
  return ok(entries);
}

/** Opens the metadata of a stopped service; `replicated`: the folder is a member's, if its former store was taken over. */
export async function metadataOffline(world: World, prefix: string, replicated: boolean): Promise<Outcome<OfflineMetadata>> {
  const opened = replicated && !(await hasOldStore(world)) ? await openMember(world) : await openAlone(world);
  if (!opened.ok) return refused("dataLoss", "damaged", `the metadata store is damaged: ${opened.failure.message}`);
  const { store, applied, lineage } = opened.value;
  try {
    const entries: StoredPage["entries"] = [];
    for (;;) {
      const page = await store.page(prefix, entries.at(-1)?.key ?? "", pageLimit);
      if (!page.ok) return page;
      entries.push(...page.value.entries);
      if (!page.value.more) return ok({ entries, applied, lineage });
    }
  } finally {
    await store.close();
  }
}

interface OpenedStore {
  readonly store: LockStore;
  readonly applied: number;
  readonly lineage: string;
}

async function openAlone(world: World): Promise<Outcome<OpenedStore>> {
  const store = await LockStore.open(world, { readOnly: true });
  return store.ok ? ok({ store: store.value, applied: 0, lineage: store.value.lineage }) : store;
}

async function openMember(world: World): Promise<Outcome<OpenedStore>> {
  const member = await openToRead(world);
  if (!member.ok) return member;
  const { rows, lineage, applied } = member.value.store;
  const close = (): Promise<void> => member.value.store.close();
  const kv: KeyValue = { ...rows, batch: () => Promise.reject(new Error("the store was opened to read")), close };
  const store = await LockStore.openReplicated(world, kv, lineage, { readOnly: true });
  if (store.ok) return ok({ store: store.value, applied: applied.index, lineage: toHex(lineage) });
  await close();
  return store;
}
