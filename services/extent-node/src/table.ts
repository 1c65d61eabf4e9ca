/**
 * The extent table and the block index in LevelDB: a cache of what extent files and journal say. Keys: `x` + extent id (what is known
 * of the replica), `r` + extent id + offset (a run of frame lengths), `m` (this table is complete). Numbers big-endian, 8 bytes.
 */
import { type ExtentId, equalBytes, utf8 } from "@stamp/base";
import { decodeMeta, encodeFrameRun, encodeMeta, type ReplicaMeta } from "@stamp/extent";
import type { KeyValue, KeyValueOperation, KeyValueStores } from "@stamp/ports";

const tableName = "extents";
const completeKey = utf8("m");
/** Of the disk that it describes. `unlearned`: something was rebuilt or lost, and the node has not learned its SM term since. */
const marker = (diskId: string, unlearned = false): Uint8Array => utf8(`${unlearned ? "unlearned" : "complete"} ${diskId}`);

function key(prefix: string, ...numbers: number[]): Uint8Array {
  const bytes = new Uint8Array(1 + 8 * numbers.length);
  bytes[0] = prefix.charCodeAt(0);
  const view = new DataView(bytes.buffer);
  numbers.forEach((number, i) => {
    view.setUint32(1 + 8 * i, Math.floor(number / 2 ** 32));
    view.setUint32(5 + 8 * i, number % 2 ** 32);
  });
  return bytes;
}

const numberAt = (bytes: Uint8Array, at: number): number => {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
  return view.getUint32(0) * 2 ** 32 + view.getUint32(4);
};

export interface OpenedTable {
  readonly table: ExtentTable;
  readonly complete: boolean;
  /** The SM term may be lost since it was rebuilt. */
  readonly unlearned: boolean;
  readonly why: string;
}

export class ExtentTable {
  readonly #store: KeyValue;
  readonly #diskId: string;
  #marker: Uint8Array | undefined;

  private constructor(store: KeyValue, diskId: string) {
    this.#store = store;
    this.#diskId = diskId;
  }

  /** `complete` is false when it was lost, corrupt, never finished or of another disk: then it is empty. */
  static async open(stores: KeyValueStores, diskId: string): Promise<OpenedTable> {
    const opened = await stores.open(tableName);
    if (opened.kind === "opened") {
      const held = await opened.store.get(completeKey);
      const unlearned = held !== undefined && equalBytes(held, marker(diskId, true));
      if (unlearned || (held !== undefined && equalBytes(held, marker(diskId))))
        return { table: new ExtentTable(opened.store, diskId), complete: true, unlearned, why: "" };
      await opened.store.close();
    }
    await stores.destroy(tableName);
    const fresh = await stores.open(tableName);
    if (fresh.kind === "corrupt") throw new Error(`a new extent table is corrupt: ${fresh.message}`);
    const why = opened.kind === "corrupt" ? opened.message : "it is absent, was not finished, or is of another disk";
    return { table: new ExtentTable(fresh.store, diskId), complete: false, unlearned: false, why };
  }

  /** What it holds, without changing it. */
  static async peek(
    stores: KeyValueStores,
    diskId: string,
  ): Promise<{ readonly kind: "complete"; readonly metas: ReplicaMeta[] } | { readonly kind: "unusable"; readonly why: string }> {
    const opened = await stores.open(tableName);
    if (opened.kind === "corrupt") return { kind: "unusable", why: opened.message };
    try {
      const held = await opened.store.get(completeKey);
      const complete = held !== undefined && (equalBytes(held, marker(diskId)) || equalBytes(held, marker(diskId, true)));
      if (!complete) return { kind: "unusable", why: "it is absent, was not finished, or is of another disk" };
      const metas = await new ExtentTable(opened.store, diskId).load();
      return metas === undefined ? { kind: "unusable", why: "an entry is malformed" } : { kind: "complete", metas };
    } finally {
      await opened.store.close();
    }
  }

  static forgetAll(stores: KeyValueStores): Promise<void> {
    return stores.destroy(tableName);
  }

  /** `unlearned`: whoever opens it next still has to learn the SM term before it obeys. */
  async markComplete(unlearned = false): Promise<void> {
    this.#marker = marker(this.#diskId, unlearned);
    await this.sync();
  }

  /** Undefined when an entry is malformed: then the table is to be rebuilt. */
  async load(): Promise<ReplicaMeta[] | undefined> {
    const metas: ReplicaMeta[] = [];
    for await (const [, value] of this.#store.range({ gte: utf8("x"), lt: utf8("y") })) {
      const meta = decodeMeta(value);
      if (meta.kind === "invalid") return undefined;
      metas.push(meta.value);
    }
    return metas;
  }

  put(meta: ReplicaMeta): KeyValueOperation {
    return { kind: "put", key: key("x", meta.extentId), value: encodeMeta(meta) };
  }

  putRun(id: ExtentId, offsetBytes: number, totals: readonly number[]): KeyValueOperation {
    return { kind: "put", key: key("r", id, offsetBytes), value: encodeFrameRun(totals) };
  }

  async write(operations: readonly KeyValueOperation[], sync: boolean): Promise<void> {
    if (operations.length > 0 || sync) await this.#store.batch(operations, { sync });
  }

  /** Everything written before is durable. */
  async sync(): Promise<void> {
    const value = this.#marker ?? utf8("unfinished");
    await this.#store.batch([{ kind: "put", key: completeKey, value }], { sync: true });
  }

  async runs(id: ExtentId): Promise<[number, Uint8Array][]> {
    const runs: [number, Uint8Array][] = [];
    for await (const [found, value] of this.#store.range({ gte: key("r", id), lt: key("r", id + 1) }))
      runs.push([numberAt(found, 9), value]);
    return runs;
  }

  /** Forgets the extent and its runs. */
  async forget(id: ExtentId): Promise<void> {
    const operations: KeyValueOperation[] = [{ kind: "delete", key: key("x", id) }];
    for (const [offset] of await this.runs(id)) operations.push({ kind: "delete", key: key("r", id, offset) });
    await this.#store.batch(operations, { sync: false });
  }

  async forgetRuns(id: ExtentId): Promise<void> {
    const operations = (await this.runs(id)).map(([offset]): KeyValueOperation => ({ kind: "delete", key: key("r", id, offset) }));
    if (operations.length > 0) await this.#store.batch(operations, { sync: false });
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
