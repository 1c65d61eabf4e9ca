/**
 * Takes the store of a lock service that was alone into the replicated one (docs/design/consensus.md): the first of the members begins with its rows.
 *
 * Invariants:
 *   - The old store is taken only as a whole, proven complete and not behind its mark. It is left as it is.
 *   - Its mark is removed when the rows are durable in the new store. Without the mark nobody opens the old store any more, nor takes it twice.
 */
import { fromHex, type Outcome, ok, present, refused } from "@stamp/base";
import { type KeyValueOperation, markPath, type World } from "@stamp/ports";
import type { SnapshotMeta } from "@stamp/raft";
import { metadataStoreName, openLevelStore } from "../store/store.ts";
import type { MemberStore, StoredMember } from "./member-store.ts";
import { encodeOperations } from "./records.ts";

/** Size of one batch of rows, in bytes. */
const batchBytes = 1 << 20;

/** True if a store of one lock service is here, and was not taken over. */
export const hasOldStore = ({ disk }: Pick<World, "disk">): Promise<boolean> => disk.exists(markPath(metadataStoreName));

/** Begins the replicated store with the rows of the old one. Refused if that is not what was acknowledged last. `progress` is told what it copied. */
export async function takeOver(
  world: World,
  store: MemberStore,
  snapshot: SnapshotMeta,
  progress: (copiedKeys: number, keys: number) => void,
): Promise<Outcome<StoredMember>> {
  world.logger.info("takes over the metadata store of one lock service: a million keys take minutes");
  const old = await openLevelStore(world);
  if (!old.ok) return old;
  const lineage = present(fromHex(old.value.lineage), "the bytes of a lineage");
  const keys = old.value.count ?? 0;
  await old.value.close();
  await copyRows(world, store, (copiedKeys) => progress(copiedKeys, keys));
  const why = await store.whyReceivedIncomplete();
  if (why !== undefined) return refused("dataLoss", "damaged", `the copy of the rows of stores/${metadataStoreName}: ${why}`);
  const begun = await store.begin(snapshot, lineage);
  await forgetOldStore(world);
  world.logger.info("the metadata store of one lock service was taken over; stores/metadata is not used any more", { keys });
  return ok(begun);
}

/** Removes the mark of the old store at every start of a member with rows: a crash may have come before. */
export async function forgetOldStore({ disk }: Pick<World, "disk">): Promise<void> {
  const path = markPath(metadataStoreName);
  if (!(await disk.exists(path))) return;
  await disk.remove(path);
  await disk.syncFolder("");
}

/** Copies all rows of the old store, the proof of the rows among them. */
async function copyRows(world: World, store: MemberStore, progress: (copiedKeys: number) => void): Promise<void> {
  const opened = await world.keyValue.open(metadataStoreName);
  if (opened.kind === "corrupt") return;
  let first = true;
  let rows: KeyValueOperation[] = [];
  let bytes = 0;
  let copied = 0;
  const flush = async (): Promise<void> => {
    await store.receive(encodeOperations(rows), first);
    copied += rows.length;
    progress(copied);
    [first, rows, bytes] = [false, [], 0];
  };
  try {
    for await (const [key, value] of opened.store.range({})) {
      rows.push({ kind: "put", key, value });
      bytes += key.length + value.length;
      if (bytes >= batchBytes) await flush();
    }
    await flush();
  } finally {
    await opened.store.close();
  }
}
