/**
 * Start of an extent node: extent table or extent files, then the journal over them, then everything synced, so that the journal
 * begins anew. Nothing is served before. Killed at any point, it can be run again: no segment is reused until all is durable.
 */
import type { ExtentId } from "@stamp/base";
import {
  decodeSegmentHeader,
  extentContentOffset,
  judgeSegment,
  type NodeIdentity,
  Replay,
  Replica,
  type ReplicaMeta,
  type ScannedRecord,
  type SegmentHeader,
  Slices,
  scanSegment,
  segmentRecordsOffset,
  walkFrames,
} from "@stamp/extent";
import type { Disk, KeyValueOperation, World } from "@stamp/ports";
import { appendIo } from "./disk-queue.ts";
import { type ExtentFiles, extentPath, extentsFolder } from "./extent-files.ts";
import { journalFolder } from "./journal.ts";
import type { ExtentTable } from "./table.ts";
import { walkFile } from "./walk.ts";

export interface Recovered {
  readonly replicas: ReadonlyMap<ExtentId, Replica>;
  readonly smTerm: number;
  /** The SM term may be lost: obey nobody until it is learned from the lock service. */
  readonly forgetful: boolean;
  readonly nextLsn: number;
  readonly generation: number;
  /** Oldest first. */
  readonly segments: readonly string[];
  readonly replayed: number;
  readonly rebuilt: boolean;
}

interface FoundSegment {
  readonly name: string;
  readonly header: SegmentHeader;
}

export async function recover(
  world: World,
  journalDisk: Disk,
  files: ExtentFiles,
  table: ExtentTable,
  tableComplete: boolean,
  identity: NodeIdentity,
): Promise<Recovered> {
  const log = world.logger;
  const { crc32c } = world.digest;
  await syncNames(world.disk, journalDisk);
  const held = tableComplete ? await table.load() : undefined;
  const rebuilt = held === undefined;
  const metas = held ?? (await rebuild(world, files, identity));
  const replicas = new Map<ExtentId, Replica>(metas.map((meta) => [meta.extentId, new Replica(meta, world.rules)]));
  const replay = new Replay(replicas, world.rules);
  const effects = new Effects(world, files, table, replicas);

  const names = (await journalDisk.list(journalFolder)).filter((name) => name.endsWith(".segment"));
  const found: FoundSegment[] = [];
  const unreadable: string[] = [];
  for (const name of names) {
    const file = await journalDisk.open(`${journalFolder}/${name}`);
    const header = decodeSegmentHeader(crc32c, await file.read(0, segmentRecordsOffset));
    await file.close();
    if (header.kind === "ok") found.push({ name, header: header.value });
    else unreadable.push(name);
  }
  found.sort((a, b) => a.header.generation - b.header.generation);
  const newest = found.at(-1)?.header;
  const checkpointLsn = newest?.checkpointLsn ?? 0;
  let nextLsn = newest?.firstLsn ?? 1;
  let replayed = 0;
  for (const segment of found) replay.smTerm = Math.max(replay.smTerm, segment.header.smTerm);

  // The records right after the checkpoint must be in some segment that can be read.
  const needed = found.filter((_, i) => (found[i + 1]?.header.firstLsn ?? Number.POSITIVE_INFINITY) > checkpointLsn + 1);
  const oldest = needed[0];
  if (oldest !== undefined && oldest.header.firstLsn > checkpointLsn + 1) {
    log.error("journal segments are lost", { fromLsn: checkpointLsn + 1, toLsn: oldest.header.firstLsn - 1 });
    replay.lostRecords();
  }
  for (const [i, segment] of needed.entries()) {
    const file = await journalDisk.open(`${journalFolder}/${segment.name}`);
    const bytes = await file.read(0, await file.sizeBytes());
    await file.close();
    const scan = { header: segment.header, records: scanSegment(crc32c, segment.header, bytes) };
    const judged = judgeSegment(scan, needed[i + 1]?.header, checkpointLsn);
    for (const step of judged.steps) {
      if (step.kind === "lostRecords") {
        log.error("journal records are lost", { fromLsn: step.fromLsn, toLsn: step.toLsn });
        replay.lostRecords();
      } else if (step.kind === "damagedRecord") {
        log.error("a journal record is damaged", { lsn: step.record.header.lsn, extent: step.record.header.extentId });
        replay.damagedRecord(step.record.header);
      } else {
        const { header, bodyOffset } = step.record;
        const body = bytes.subarray(bodyOffset, bodyOffset + header.bodyBytes);
        await effects.apply(step.record, body, replay.record(header, body));
        replayed += 1;
      }
    }
    await effects.writeOut();
    nextLsn = Math.max(nextLsn, judged.nextLsn);
    if (judged.forgotten > 0) log.info("the journal's torn tail is forgotten", { records: judged.forgotten });
  }
  replay.finish();
  await effects.settle(rebuilt);
  await discardCopies(world);
  await table.markComplete();
  return {
    replicas,
    smTerm: replay.smTerm,
    forgetful: replay.forgetful || rebuilt,
    nextLsn,
    generation: newest?.generation ?? 0,
    segments: [...unreadable, ...found.map((segment) => segment.name)],
    replayed,
    rebuilt,
  };
}

/**
 * Names that a killed process made and did not live to sync are seen here, and would be built upon; a loss of power could still take
 * them, with everything synced into those files since.
 */
async function syncNames(disk: Disk, journalDisk: Disk): Promise<void> {
  if ((await journalDisk.list(journalFolder)).length > 0) await journalDisk.syncFolder(journalFolder);
  const folders = await disk.list(extentsFolder);
  if (folders.length > 0) await disk.syncFolder(extentsFolder);
  for (const folder of folders) await disk.syncFolder(`${extentsFolder}/${folder}`);
}

/** Copies that no record of the journal adopted were never finished. */
async function discardCopies(world: World): Promise<void> {
  for (const folder of await world.disk.list(extentsFolder)) {
    for (const name of await world.disk.list(`${extentsFolder}/${folder}`)) {
      if (name.endsWith(".copy")) await world.disk.remove(`${extentsFolder}/${folder}/${name}`);
    }
  }
}

/** The extent table from the extent files' headers; unsealed replicas are walked for their length. */
async function rebuild(world: World, files: ExtentFiles, identity: NodeIdentity): Promise<ReplicaMeta[]> {
  const metas: ReplicaMeta[] = [];
  for (const folder of await world.disk.list(extentsFolder)) {
    for (const name of await world.disk.list(`${extentsFolder}/${folder}`)) {
      if (!name.endsWith(".extent")) continue;
      const path = `${extentsFolder}/${folder}/${name}`;
      const header = await files.readHeader(path);
      if (header.kind === "invalid") {
        world.logger.error("an extent file has no valid header; it counts as unknown", { path, why: header.why });
        continue;
      }
      const { stampId, diskId, meta } = header.value;
      if (stampId !== identity.stampId || diskId !== identity.diskId || extentPath(meta.extentId) !== path) {
        world.logger.error("an extent file is not this disk's; it is left alone", { path, stampId, diskId });
        continue;
      }
      metas.push(await measured(world, files, meta));
    }
  }
  return metas;
}

async function measured(world: World, files: ExtentFiles, meta: ReplicaMeta): Promise<ReplicaMeta> {
  const { crc32c } = world.digest;
  if (meta.state === "damaged") return meta;
  if (meta.sealedLengthBytes !== undefined) {
    const wanted = extentContentOffset + meta.sealedLengthBytes;
    const size = await files.with(extentPath(meta.extentId), false, (file) => file.sizeBytes());
    return size >= wanted ? meta : { ...meta, state: "damaged", damage: `the file ends at ${size} of ${wanted}` };
  }
  const walk = await walkFile(crc32c, files, meta.extentId, Number.MAX_SAFE_INTEGER, appendIo);
  if (walk.endBytes < meta.durableBytes) {
    return { ...meta, state: "damaged", damage: `blocks end at ${walk.endBytes}, ${meta.durableBytes} were synced` };
  }
  return { ...meta, durableBytes: walk.endBytes };
}

/** In one write to the table. */
const operationsMax = 1_000;

interface Run {
  readonly offsetBytes: number;
  endBytes: number;
  readonly chunks: Uint8Array[];
}

/** What the replay does to extent files; appends that follow one another are written together. */
class Effects {
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
        if (await this.#world.disk.exists(extentPath(id))) await this.#files.truncate(id, effect.lengthBytes);
        break;
      case "remove":
        this.#forgotten.add(id);
        await this.#files.remove(id);
        break;
      case "adoptCopy":
        await this.#files.adoptCopy(id);
        await this.#files.truncate(id, this.#replicas.get(id)?.sealedLengthBytes ?? 0);
        break;
    }
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
    for (const id of this.#forgotten) if (!this.#replicas.has(id)) await this.#table.forget(id);
    const operations: KeyValueOperation[] = [];
    for (const replica of this.#replicas.values()) {
      const id = replica.extentId;
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
