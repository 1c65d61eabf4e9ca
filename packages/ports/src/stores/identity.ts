/**
 * The identity of a process on its own disk: an id made with the folder, a counter raised at every start, and the stamp that it belongs
 * to once it has met one. The store stays open, and its lock keeps a second process from starting on the same folder.
 */
import { FailureError, type FormatName, fromUtf8, utf8 } from "@stamp/base";
import { uuid } from "../random.ts";
import type { World } from "../world.ts";
import { claimFolder } from "./format-marker.ts";
import type { KeyValue } from "./key-value.ts";

export interface Identity {
  /** Identity of the folder: two folders never have the same one, a copied folder has. */
  readonly id: string;
  /** 1 at the first start; durable before it is given. */
  readonly incarnation: number;
  /** Identity of this start alone, never kept: tells a process from one that runs on a copy of its folder. */
  readonly instance: string;
  /** Id of the stamp; undefined until the process has met one. */
  readonly stampId: string | undefined;
  /** Binds the identity to this stamp, durably. Throws FailureError `wrongStamp` if it belongs to another. */
  bindStamp(stampId: string): Promise<void>;
  close(): Promise<void>;
}

const keys = { id: utf8("id"), incarnation: utf8("incarnation"), stamp: utf8("stamp") } as const;

export interface IdentityOptions {
  /** Formats that the process writes into this folder, besides the identity itself. */
  readonly formats?: readonly FormatName[];
  /**
   * Incarnation that the caller keeps elsewhere too. The new one is higher, and a store that was lost or is corrupt is then begun anew. 0 for a folder
   * without data of clients: a new identity only waits for the end of the old one's lease. Undefined: a corrupt store is refused.
   */
  readonly kept?: number | undefined;
}

/** Throws FailureError `newerFormat`, before it writes anything, if a newer release wrote in the folder. */
export async function openIdentity(
  world: Pick<World, "digest" | "disk" | "keyValue" | "random" | "rules">,
  { formats, kept }: IdentityOptions = {},
): Promise<Identity> {
  await claimFolder(world, formats);
  const { keyValue: stores, random } = world;
  let opened = await stores.open("identity");
  if (opened.kind === "corrupt" && kept !== undefined) {
    await stores.destroy("identity");
    opened = await stores.open("identity");
  }
  if (opened.kind === "corrupt") {
    throw new FailureError({
      code: "dataLoss",
      reason: "damaged",
      message: `the identity store is corrupt: ${opened.message}`,
      applied: "no",
    });
  }
  const { store } = opened;
  const textOf = async (key: Uint8Array): Promise<string | undefined> => {
    const held = await store.get(key);
    return held && fromUtf8(held);
  };
  const id = (await textOf(keys.id)) ?? uuid(random);
  const incarnation = Math.max(Number((await textOf(keys.incarnation)) ?? 0), kept ?? 0) + 1;
  await put(store, [
    [keys.id, id],
    [keys.incarnation, String(incarnation)],
  ]);
  let stampId = await textOf(keys.stamp);
  return {
    id,
    incarnation,
    instance: uuid(random),
    get stampId() {
      return stampId;
    },
    async bindStamp(met) {
      if (stampId === met) return;
      if (stampId !== undefined) {
        const message = `this folder belongs to stamp ${stampId}, not to ${met}: start it with the addresses of its own, or with an empty folder`;
        throw new FailureError({ code: "failedPrecondition", reason: "wrongStamp", message, applied: "no" });
      }
      await put(store, [[keys.stamp, met]]);
      stampId = met;
    },
    close: () => store.close(),
  };
}

const put = (store: KeyValue, entries: readonly (readonly [Uint8Array, string])[]): Promise<void> =>
  store.batch(
    entries.map(([key, text]) => ({ kind: "put", key, value: utf8(text) }) as const),
    { sync: true },
  );
