/**
 * The identity of a process on its own disk: a counter raised at every start. The store stays open, and its lock keeps a second
 * process of the same name from starting on the same folder.
 */
import { FailureError } from "@stamp/base";
import type { KeyValueStores } from "./key-value.ts";

export interface Identity {
  /** 1 at the first start; durable before it is given. */
  readonly incarnation: number;
  close(): Promise<void>;
}

export async function openIdentity(stores: KeyValueStores): Promise<Identity> {
  const opened = await stores.open("identity");
  if (opened.kind === "corrupt") {
    throw new FailureError({
      code: "dataLoss",
      reason: "damaged",
      message: `the identity store is corrupt: ${opened.message}`,
      applied: "no",
    });
  }
  const store = opened.store;
  const key = new TextEncoder().encode("incarnation");
  const held = await store.get(key);
  const incarnation = (held ? Number(new TextDecoder().decode(held)) : 0) + 1;
  await store.batch([{ kind: "put", key, value: new TextEncoder().encode(String(incarnation)) }], { sync: true });
  return { incarnation, close: () => store.close() };
}
