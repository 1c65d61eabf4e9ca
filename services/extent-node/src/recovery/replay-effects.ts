/**
 * Applies the effects of the journal's replay to extent files and table; appends that follow one another are written
 * together.
 */
import type { ExtentId } from "@stamp/base";
import { type PointedBytes, PointedData, type ReplayEffect, type Replica, type ScannedRecord, Slices, walkFrames } from "@stamp/extent";
import { DiskError, type KeyValueOperation, type World } from "@stamp/ports";
import { appendIo } from "../disk/disk-queue.ts";
import { type ExtentFiles, extentPath } from "../disk/extent-files.ts";
import type { ExtentTable } from "../disk/table.ts";
import { progress } from "./progress.ts";

/** Most operations in one write to the table. */
const operationsMax = 1_000;

interface Run {
  readonly offsetBytes: number;
  endBytes: number;
  readonly chunks: Uint8Array[];
}

export class ReplayEffects {
  readonly #world: World;
  readonly #files: ExtentFiles;
  readonly #table: ExtentTable;
  readonly #replicas: ReadonlyMap<ExtentId, Replica>;
  readonly #runs: Map<ExtentId, Run> = new Map();
  readonly #touched: Set<ExtentId> = new Set();
  readonly #forgotten: Set<ExtentId> = new Set();
  readonly #index: KeyValueOperation[] = [];
  readonly #pointed = new PointedData();

  constructor(world: World, files: ExtentFiles, table: ExtentTable, replicas: ReadonlyMap<ExtentId, Replica>) {
    this.#world = world;
    this.#files = files;
    this.#table = table;
    this.#replicas = replicas;
  }

  async apply(record: ScannedRecord, body: Uint8Array, effect: ReplayEffect): Promise<void> {
    const id = record.header.extentId;
    if (record.header.type === "term") return;
    this.#touched.add(id);
    this.#pointed.note(id, effect);
    if (effect.kind === "write") {
      this.#write(id, effect.offsetBytes, body);
      return;
    }
    if (effect.kind === "none" || effect.kind === "pointed") return;
    await this.#writeRun(id);
    switch (effect.kind) {
      case "create":
        await this.#files.ensure(id);
        break;
      case "truncate":
        await this.#truncate(id, effect.lengthBytes);
        break;
      case "remove":
        this.#forgotten.add(id);
        await this.#files.remove(id);
        break;
      case "adoptCopy":
        await this.#files.adoptCopy(id);
        await this.#truncate(id, this.#replicas.get(id)?.sealedLengthBytes ?? 0);
        break;
    }
  }

  /** Truncates a file. A missing one was deleted by a later record, or is lost, which `markMissing` finds. */
  async #truncate(id: ExtentId, lengthBytes: number): Promise<void> {
    if (await this.#world.disk.exists(extentPath(id))) await this.#files.truncate(id, lengthBytes);
  }

  #write(id: ExtentId, offsetBytes: number, body: Uint8Array): void {
    this.#indexFrames(id, offsetBytes, body);
    const run = this.#runs.get(id);
    if (run !== undefined && run.endBytes === offsetBytes) {
      run.chunks.push(body);
      run.endBytes += body.length;
      return;
    }
    if (run !== undefined) this.#pendingRuns.push([id, run]);
    this.#runs.set(id, { offsetBytes, endBytes: offsetBytes + body.length, chunks: [body] });
  }

  #indexFrames(id: ExtentId, offsetBytes: number, bytes: Uint8Array): void {
    const walked = walkFrames(this.#world.digest.crc32c, id, offsetBytes, new Slices([bytes]), { payloads: false });
    if (walked.kind === "invalid") return;
    const totals = walked.frames.map((frame) => frame.headerBytes + frame.payloadBytes);
    this.#index.push(this.#table.putRun(id, offsetBytes, totals));
  }

  readonly #pendingRuns: [ExtentId, Run][] = [];

  async #writeRun(id: ExtentId): Promise<void> {
    await this.#writePending();
    const run = this.#runs.get(id);
    this.#runs.delete(id);
    if (run !== undefined) await this.#writeToFile(id, run);
  }

  async #writePending(): Promise<void> {
    for (const [id, run] of this.#pendingRuns.splice(0)) await this.#writeToFile(id, run);
  }

  async #writeToFile(id: ExtentId, run: Run): Promise<void> {
    await this.#files.ensure(id);
    await this.#files.write(extentPath(id), run.offsetBytes, run.chunks);
  }

  /** Writes what recovery holds in memory into extent files and table, before the segment's memory is given back. */
  async writeOut(): Promise<void> {
    await this.#writePending();
    for (const id of [...this.#runs.keys()]) await this.#writeRun(id);
    await this.#table.write(this.#index.splice(0), false);
  }

  /**
   * Bytes that the journal points to were synced before the pointer was written: a replica without them, or with
   * others, lost them.
   */
  async verifyPointed(): Promise<void> {
    for (const [id, pointed] of this.#pointed.all()) {
      const replica = this.#replicas.get(id);
      if (replica === undefined || replica.state === "damaged") continue;
      const found = await readPointed(this.#world, this.#files, id, pointed);
      if (typeof found === "string") {
        this.#world.logger.error("what the journal points to is not in the extent's file", { extent: id, why: found });
        replica.markDamaged(found);
      } else this.#indexFrames(id, pointed.offsetBytes, found);
    }
    await this.#table.write(this.#index.splice(0), false);
  }

  /** Makes everything durable: headers, then the table. */
  async settle(rebuilt: boolean): Promise<void> {
    const now = progress(this.#world);
    for (const id of this.#forgotten) if (!this.#replicas.has(id)) await this.#table.forget(id);
    const operations: KeyValueOperation[] = [];
    let done = 0;
    for (const replica of this.#replicas.values()) {
      const id = replica.extentId;
      done += 1;
      now(() => this.#world.logger.info("what the journal held is made durable", { extents: done, of: this.#replicas.size }));
      const changed = this.#touched.has(id) || replica.state === "damaged" || replica.state === "closed";
      if (changed) {
        await this.#files.ensure(id);
        await this.#files.writeHeader(extentPath(id), replica.meta);
      }
      if (changed || rebuilt) operations.push(this.#table.put(replica.meta));
      if (operations.length >= operationsMax) await this.#table.write(operations.splice(0), false);
    }
    await this.#table.write(operations, true);
  }
}

/** Returns the bytes that a pointer record names, or why they are not there. */
export async function readPointed(world: World, files: ExtentFiles, id: ExtentId, pointed: PointedBytes): Promise<Uint8Array | string> {
  const { offsetBytes, lengthBytes, checksum } = pointed;
  try {
    const bytes = await files.read(id, offsetBytes, lengthBytes, appendIo);
    if (bytes.length === lengthBytes && world.digest.crc32c(bytes) === checksum) return bytes;
    return `the ${lengthBytes} bytes at ${offsetBytes} that the journal points to are not what was written`;
  } catch (error) {
    if (!(error instanceof DiskError) || (error.kind !== "io" && error.kind !== "notFound")) throw error;
    return `the ${lengthBytes} bytes at ${offsetBytes} that the journal points to can't be read: ${error.message}`;
  }
}
