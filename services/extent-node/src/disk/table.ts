/**
 * The extent table and the block index in LevelDB: a cache of what extent files and journal say. Keys: `x` + extent id (what is known
 * of the replica), `r` + extent id + offset (a run of frame lengths), `m` (this table is complete). Numbers big-endian, 8 bytes.
 *
 * Invariants:
 *   - A journal segment is released after the table that reflects the segment is synced, and after the mark outside the table names that sync.
 *   - A table behind its mark is rebuilt: the released records that it lacks are in no journal any more.
 */
import { type ExtentId, fromUtf8, type Rules, utf8 } from "@stamp/base";
import { decodeMeta, encodeFrameRun, encodeMeta, type ReplicaMeta } from "@stamp/extent";
import type { KeyValue, KeyValueOperation, KeyValueStores, World } from "@stamp/ports";
import { TableMark } from "./table-mark.ts";

export type TableWorld = Pick<World, "keyValue" | "disk" | "digest" | "rules">;

const tableName = "extents";
const completeKey = utf8("m");

interface Marker {
  readonly diskId: string;
  /** True if the node has not learned its SM term since something was rebuilt or lost. */
  readonly unlearned: boolean;
  /** Number of the last sync, from 1; 0 in a table of an earlier version. */
  readonly sequence: number;
}

const encodeMarker = ({ diskId, unlearned, sequence }: Marker): Uint8Array =>
  utf8(`${unlearned ? "unlearned" : "complete"} ${diskId} ${sequence}`);

/** Returns undefined if the table is absent or was not finished. */
function decodeMarker(bytes: Uint8Array | undefined): Marker | undefined {
  const match = bytes === undefined ? null : /^(complete|unlearned) (\S+)(?: (\d{1,15}))?$/.exec(fromUtf8(bytes));
  if (match === null) return undefined;
  return { diskId: match[2] as string, unlearned: match[1] === "unlearned", sequence: Number(match[3] ?? 0) };
}

/** Returns why the table has to be rebuilt; undefined: the table is what was synced last, or newer. */
function unusable(held: Marker | undefined, diskId: string, mark: TableMark, rules: Rules): string | undefined {
  if (held === undefined || held.diskId !== diskId) return "it is absent, was not finished, or is of another disk";
  if (!rules.on("tableNotBehind") || (held.sequence === 0 && mark.found.kind === "absent")) return undefined;
  if (mark.found.kind !== "found") return `its mark, the file ${mark.path}, is ${mark.found.kind}`;
  if (held.sequence >= mark.found.sequence) return undefined;
  return `its last sync is ${held.sequence}, but sync ${mark.found.sequence} was done: it has lost its end`;
}

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
  /** True if the SM term may be lost since it was rebuilt. */
  readonly unlearned: boolean;
  readonly why: string;
}

export class ExtentTable {
  readonly #store: KeyValue;
  readonly #diskId: string;
  readonly #mark: TableMark;
  /** Number of the last sync that was begun. */
  #sequence: number;
  #unlearned: boolean | undefined;
  #syncs: Promise<void> = Promise.resolve();

  private constructor(store: KeyValue, diskId: string, mark: TableMark, sequence: number) {
    this.#store = store;
    this.#diskId = diskId;
    this.#mark = mark;
    this.#sequence = sequence;
  }

  /** `complete` is false when it was lost, corrupt, never finished, of another disk or behind its mark: then it is empty. */
  static async open(world: TableWorld, diskId: string): Promise<OpenedTable> {
    const stores = world.keyValue;
    const mark = await TableMark.read(world, tableName, diskId);
    const opened = await stores.open(tableName);
    let why = opened.kind === "corrupt" ? opened.message : undefined;
    if (opened.kind === "opened") {
      const held = decodeMarker(await opened.store.get(completeKey));
      why = unusable(held, diskId, mark, world.rules);
      if (held !== undefined && why === undefined) {
        const table = new ExtentTable(opened.store, diskId, mark, held.sequence);
        return { table, complete: true, unlearned: held.unlearned, why: "" };
      }
      await opened.store.close();
    }
    await stores.destroy(tableName);
    const fresh = await stores.open(tableName);
    if (fresh.kind === "corrupt") throw new Error(`a new extent table is corrupt: ${fresh.message}`);
    // The syncs of a new table go on from the mark: the mark never names one that this table has not.
    const sequence = mark.found.kind === "found" ? mark.found.sequence : 0;
    return { table: new ExtentTable(fresh.store, diskId, mark, sequence), complete: false, unlearned: false, why: why ?? "" };
  }

  /** Reads the table without changing it. */
  static async peek(
    world: TableWorld,
    diskId: string,
  ): Promise<{ readonly kind: "complete"; readonly metas: ReplicaMeta[] } | { readonly kind: "unusable"; readonly why: string }> {
    const mark = await TableMark.read(world, tableName, diskId);
    const opened = await world.keyValue.open(tableName);
    if (opened.kind === "corrupt") return { kind: "unusable", why: opened.message };
    try {
      const why = unusable(decodeMarker(await opened.store.get(completeKey)), diskId, mark, world.rules);
      if (why !== undefined) return { kind: "unusable", why };
      const metas = await new ExtentTable(opened.store, diskId, mark, 0).load();
      return metas === undefined ? { kind: "unusable", why: "an entry is malformed" } : { kind: "complete", metas };
    } finally {
      await opened.store.close();
    }
  }

  static forgetAll(stores: KeyValueStores): Promise<void> {
    return stores.destroy(tableName);
  }

  /** Marks the table as complete; `unlearned`: the next process has to learn the SM term before it obeys. */
  async markComplete(unlearned = false): Promise<void> {
    this.#unlearned = unlearned;
    await this.sync();
  }

  /** Returns undefined when an entry is malformed: then the table is to be rebuilt. */
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

  /** Makes everything written before durable, and then says so in the mark. Not on the path of an append: two syncs. */
  sync(): Promise<void> {
    const done = this.#syncs.then(() => this.#sync());
    this.#syncs = done.catch(() => {});
    return done;
  }

  async #sync(): Promise<void> {
    this.#sequence += 1;
    const [sequence, unlearned] = [this.#sequence, this.#unlearned];
    const value = unlearned === undefined ? utf8("unfinished") : encodeMarker({ diskId: this.#diskId, unlearned, sequence });
    await this.#store.batch([{ kind: "put", key: completeKey, value }], { sync: true });
    if (unlearned !== undefined) await this.#mark.write(sequence);
  }

  async runs(id: ExtentId): Promise<[number, Uint8Array][]> {
    const runs: [number, Uint8Array][] = [];
    for await (const [found, value] of this.#store.range({ gte: key("r", id), lt: key("r", id + 1) }))
      runs.push([numberAt(found, 9), value]);
    return runs;
  }

  /** Removes the extent and its block runs from the table. */
  async forget(id: ExtentId): Promise<void> {
    const operations: KeyValueOperation[] = [{ kind: "delete", key: key("x", id) }];
    for (const [offset] of await this.runs(id)) operations.push({ kind: "delete", key: key("r", id, offset) });
    await this.#store.batch(operations, { sync: false });
  }

  async forgetRuns(id: ExtentId): Promise<void> {
    const operations = (await this.runs(id)).map(([offset]): KeyValueOperation => ({ kind: "delete", key: key("r", id, offset) }));
    if (operations.length > 0) await this.#store.batch(operations, { sync: false });
  }

  async close(): Promise<void> {
    await this.#syncs;
    await this.#mark.close();
    await this.#store.close();
  }
}
