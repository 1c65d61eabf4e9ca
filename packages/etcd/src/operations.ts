/** Comparisons and operations of one transaction of etcd. */
import { etcd } from "@stamp/wire";

export const createdAt = (key: Uint8Array, revision: bigint) => ({
  target: etcd.Compare_CompareTarget.CREATE,
  key,
  targetUnion: { case: "createRevision" as const, value: revision },
});
export const modifiedAt = (key: Uint8Array, revision: bigint) => ({
  target: etcd.Compare_CompareTarget.MOD,
  key,
  targetUnion: { case: "modRevision" as const, value: revision },
});
export const put = (key: Uint8Array, value: Uint8Array, lease = 0n) => ({
  request: { case: "requestPut" as const, value: { key, value, lease } },
});
export const remove = (key: Uint8Array) => ({ request: { case: "requestDeleteRange" as const, value: { key } } });
export const read = (key: Uint8Array) => ({ request: { case: "requestRange" as const, value: { key } } });
