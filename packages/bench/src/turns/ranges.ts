/**
 * Work on a whole range that holds a container of many blobs: lists over it, a checkpoint, a split, a merge, the deletion of the container and
 * the collection of its rows. What a range does by itself is asked of the partition manager, as a person would.
 */
import type { Outcome } from "@stamp/base";
import { BlobClient, type DrillTarget } from "@stamp/drills";
import { fromWire } from "@stamp/wire";
import { type Input, many, type TurnsAnswer } from "./inputs.ts";

const container = "crowded";
const timeoutMs = 120_000;
/** Looks for something to collect before the collection is given up. */
const collectionsMax = 600;
const pauseMs = 100;
/** Number of folders that the blobs are in. */
const folders = 500;

type Inspector = DrillTarget["inspector"];
type Manager = Awaited<ReturnType<Inspector["partitionManager"]>>;

/** Returns the status of an outcome. A refusal by the stamp counts as one by a front-end: it is asked again. */
const statusOf = (outcome: Outcome<unknown>): TurnsAnswer => ({ status: outcome.ok ? 200 : 503 });

export class RangeInputs {
  readonly #target: DrillTarget;
  readonly #blob: BlobClient;
  readonly #blobs: number;

  constructor(target: DrillTarget, blobs: number) {
    this.#target = target;
    this.#blob = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: 32, timeoutMs });
    this.#blobs = blobs;
  }

  close(): void {
    this.#blob.close();
  }

  all(): readonly Input[] {
    const blobs = this.#blobs;
    const list = (parameters: string) => () => this.#call("GET", `/${container}?restype=container&comp=list&${parameters}`);
    const manager = (name: string, work: (client: Manager, rangeId: string) => Promise<Outcome<unknown>>): Input => ({
      name,
      status: 200,
      ask: async () => statusOf(await work(await this.#inspector.partitionManager(), await this.#lowest())),
    });
    return [
      { name: `list of 5,000 of ${blobs} blobs`, status: 200, prepare: () => this.#fill(), ask: list("maxresults=5000") },
      { name: `list of ${folders} folders of ${blobs} blobs`, status: 200, ask: list("maxresults=5000&delimiter=/") },
      manager(`checkpoint of a range of ${blobs} blobs`, (client, rangeId) => client.checkpointRange({ rangeId }, { timeoutMs })),
      { name: `list of 5,000 of ${blobs} blobs in a checkpoint`, status: 200, ask: list("maxresults=5000") },
      manager(`split of a range of ${blobs} blobs`, (client, rangeId) => client.splitPartition({ rangeId }, { timeoutMs })),
      manager(`merge of ranges of ${blobs} blobs`, (client, rangeId) => client.mergePartition({ rangeId }, { timeoutMs })),
      manager(`collection of a range of ${blobs} blobs that are there`, (client, rangeId) =>
        client.collectRange({ rangeId }, { timeoutMs }),
      ),
      {
        name: `deletion of a container of ${blobs} blobs, and collection of its rows`,
        status: 200,
        ask: async () => {
          const deleted = await this.#call("DELETE", `/${container}?restype=container`);
          return deleted.status === 202 || deleted.status === 404 ? this.#collect() : deleted;
        },
      },
    ];
  }

  async #fill(): Promise<void> {
    await this.#call("PUT", `/${container}?restype=container`);
    await many(this.#blobs, (at) => this.#put(at));
  }

  #put(at: number): Promise<TurnsAnswer> {
    const headers = { "x-ms-blob-type": "BlockBlob", "x-ms-meta-about": "x".repeat(100) };
    return this.#call("PUT", `/${container}/folder-${at % folders}/blob-${at}`, headers, Buffer.alloc(100, at));
  }

  /** Collects until the rows of the container are deleted in all ranges. */
  async #collect(): Promise<TurnsAnswer> {
    let rows = 0;
    for (let looks = 0; looks < collectionsMax && rows < this.#blobs; looks++) {
      const manager = await this.#inspector.partitionManager();
      for (const { rangeId, table } of await this.#inspector.ranges()) {
        const collected = table === "Blob" ? await manager.collectRange({ rangeId }, { timeoutMs }) : undefined;
        if (collected?.ok) rows += fromWire(collected.value.rowsDeleted);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return { status: rows < this.#blobs ? 504 : 200 };
  }

  async #call(method: string, target: string, headers: Readonly<Record<string, string>> = {}, body?: Uint8Array): Promise<TurnsAnswer> {
    const result = await this.#blob.call(method, target, headers, body);
    return { status: result.kind === "answer" ? result.status : 0 };
  }

  get #inspector(): Inspector {
    return this.#target.inspector;
  }

  /** Returns the lowest range of blobs: it is split, and merged with the one above it. */
  async #lowest(): Promise<string> {
    const range = (await this.#inspector.ranges()).find(({ table, lowKey }) => table === "Blob" && lowKey.length === 0);
    if (range === undefined) throw new Error("no range of blobs is in the map");
    return range.rangeId;
  }
}
