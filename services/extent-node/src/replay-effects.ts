/** What the replay of the journal does to extent files and table; appends that follow one another are written together. */
import type { ExtentId } from "@stamp/base";
import { type Replay, type Replica, type ScannedRecord, Slices, walkFrames } from "@stamp/extent";
import type { KeyValueOperation, World } from "@stamp/ports";
import { type ExtentFiles, extentPath } from "./extent-files.ts";
import { progress } from "./progress.ts";
import type { ExtentTable } from "./table.ts";

/** In one write to the table. */
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

  constructor(world: World, files: ExtentFiles, table: ExtentTable, replicas: ReadonlyMap<ExtentId, Replica>) {
    this.#world = world;
    this.#files = files;
    this.#table = table;
    this.#replicas = replicas;
  }

  async apply(record: ScannedRecord, body: Uint8Array, effect: ReturnType<Replay["record"]>): Promise<void> {
    const id = record.header.extentId;
    if (record.header.type === "term") return;
    this.#touched.add(id);
    if (effect.kind === "write") {
      this.#write(id, effect.offsetBytes, body);
      return;
    }
    if (effect.kind === "none") return;
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

  /** A file that is not there was deleted by a later record, or is lost, which `markMissing` finds. */
  async #truncate(id: ExtentId, lengthBytes: number): Promise<void> {
    if (await this.#world.disk.exists(extentPath(id))) await this.#files.truncate(id, lengthBytes);
  }

  #write(id: ExtentId, offsetBytes: number, body: Uint8Array): void {
    const walked = walkFrames(this.#world.digest.crc32c, id, offsetBytes, new Slices([body]), { payloads: false });
    if (walked.kind === "frames") {
      const totals = walked.frames.map((frame) => frame.headerBytes + frame.payloadBytes);
      this.#index.push(this.#table.putRun(id, offsetBytes, totals));
    }
    const run = this.#runs.get(id);
    if (run !== undefined && run.endBytes === offsetBytes) {
      run.chunks.push(body);
      run.endBytes += body.length;
      return;
    }
    if (run !== undefined) this.#pendingRuns.push([id, run]);
    this.#runs.set(id, { offsetBytes, endBytes: offsetBytes + body.length, chunks: [body] });
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

  /** Before the segment's memory is given back. */
  async writeOut(): Promise<void> {
    await this.#writePending();
    for (const id of [...this.#runs.keys()]) await this.#writeRun(id);
    await this.#table.write(this.#index.splice(0), false);
  }

  /** Everything durable: headers, then the table. */
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
