/**
 * Start of an extent node: extent table or extent files, then the journal over them, then everything synced, so that the journal
 * begins anew. Nothing is served before. Killed at any point, it can be run again: no segment is reused until all is durable.
 */
import { type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import {
  decodeSegmentHeader,
  type FoundSegment,
  judgeSegment,
  type NodeIdentity,
  type ObeyedTerm,
  planSegments,
  Replay,
  Replica,
  type SegmentHeader,
  type SegmentJudgement,
  scanSegment,
  segmentRecordsOffset,
} from "@stamp/extent";
import type { Disk, World } from "@stamp/ports";
import { type ExtentFiles, extentsFolder } from "../disk/extent-files.ts";
import type { ExtentTable } from "../disk/table.ts";
import { journalFolder } from "../journal/segment-pool.ts";
import { progress } from "./progress.ts";
import { extentFileNames, metaOf, rebuildTable } from "./rebuild-table.ts";
import { ReplayEffects } from "./replay-effects.ts";

export interface RecoveryParts {
  readonly world: World;
  readonly journalDisk: Disk;
  readonly files: ExtentFiles;
  readonly table: ExtentTable;
  /** True if the table has its content of the process's end. */
  readonly tableComplete: boolean;
  readonly identity: NodeIdentity;
  /** The generation of the journal segment that was begun last; 0 when it is not known. */
  readonly begun: number;
  /** True if a person says to go on without the journal. */
  readonly acceptJournalLoss: boolean;
}

export interface RecoveredNode {
  readonly replicas: ReadonlyMap<ExtentId, Replica>;
  readonly obeyed: ObeyedTerm;
  /** True if the SM term may be lost: obey nobody until it is learned from the lock service. */
  readonly forgetful: boolean;
  readonly nextLsn: number;
  readonly generation: number;
  /** Names of the segments, oldest first. */
  readonly segments: readonly string[];
  readonly replayed: number;
  readonly rebuilt: boolean;
  readonly tookMs: number;
}

/** More than the records of any segment that may be lost. */
const lsnsOfLostSegments = 2 ** 32;

export async function recover(parts: RecoveryParts): Promise<Outcome<RecoveredNode>> {
  const { world, journalDisk, files, table, identity } = parts;
  const log = world.logger;
  const startedMs = world.clock.monotonicMs();
  await syncNames(world.disk, journalDisk);
  const { found, unreadable } = await readSegmentHeaders(world, journalDisk);
  const plan = planSegments(found, world.rules.on("journalBegunRecorded") ? parts.begun : 0);
  if (plan.kind === "mixed") {
    const message = `the journal holds two different segments of generation ${plan.generation} (${plan.names.join(", ")}): two journals are mixed, take out the one that is not this node's`;
    return refused("dataLoss", "damaged", message);
  }
  if (plan.kind === "absent" && !parts.acceptJournalLoss) {
    const message =
      "the journal is gone: its folder is empty, but the node has had one. Bring it back (is its disk mounted?), or start with acceptJournalLoss: what was not sealed here is then damaged and copied from other nodes";
    return refused("dataLoss", "damaged", message);
  }

  const held = parts.tableComplete ? await table.load() : undefined;
  const rebuilt = held === undefined;
  const metas = held ?? (await rebuildTable(world, files, identity));
  // The table says only what was synced before; everything else that the journal holds is written again, also after a failed sync.
  const synced = new Map<ExtentId, number>((held ?? []).map((meta) => [meta.extentId, meta.durableBytes]));
  const replicas = new Map<ExtentId, Replica>(metas.map((meta) => [meta.extentId, new Replica(meta, world.rules)]));
  let nextLsn = metas.reduce((most, { appliedLsn }) => Math.max(most, appliedLsn + 1), 1);
  const replay = new Replay(replicas, world.rules, synced);
  const effects = new ReplayEffects(world, files, table, replicas);

  const newest = found.reduce((most, { header }) => Math.max(most, header.generation), 0);
  for (const { header } of found) {
    replay.learnTerm({ term: header.smTerm, lowerings: header.termLowerings });
    nextLsn = Math.max(nextLsn, header.firstLsn);
  }
  await syncSegments(journalDisk, found);
  let replayed = 0;
  if (plan.kind === "replay") {
    replay.checkpointLsn = plan.checkpointLsn;
    if (plan.lostOldest !== undefined) {
      log.error("journal segments are lost", plan.lostOldest);
      replay.lostRecords();
    }
    const now = progress(world);
    for (const [i, group] of plan.groups.entries()) {
      const next = plan.groups[i + 1]?.[0]?.header;
      const segment = await bestOf(world, journalDisk, group, next, plan.checkpointLsn);
      for (const step of segment.judged.steps) {
        if (step.kind === "lostRecords") {
          log.error("journal records are lost", { fromLsn: step.fromLsn, toLsn: step.toLsn });
          replay.lostRecords();
        } else if (step.kind === "damagedRecord") {
          log.error("a journal record is damaged", { lsn: step.record.header.lsn, extent: step.record.header.extentId });
          replay.damagedRecord(step.record.header);
        } else {
          const { header, bodyOffset } = step.record;
          const body = segment.bytes.subarray(bodyOffset, bodyOffset + header.bodyBytes);
          await effects.apply(step.record, body, replay.record(header, body));
          replayed += 1;
        }
      }
      await effects.writeOut();
      nextLsn = Math.max(nextLsn, segment.judged.nextLsn);
      if (segment.judged.forgotten > 0) log.info("the journal's torn tail is forgotten", { records: segment.judged.forgotten });
      now(() => log.info("the journal is replayed", { segments: i + 1, of: plan.groups.length, records: replayed }));
    }
  }
  if (plan.kind === "absent" || plan.lostNewest) {
    log.error("the newest journal segments are lost", { found: newest, begun: parts.begun });
    replay.lostRecords();
    nextLsn += lsnsOfLostSegments;
  }
  await effects.verifyPointed();
  replay.finish();
  await compareWithFiles(parts, replicas);
  await effects.settle(rebuilt);
  await discardCopies(world);
  const tookMs = Math.round(world.clock.monotonicMs() - startedMs);
  log.info("the disk is recovered", { extents: replicas.size, segments: found.length, records: replayed, rebuilt, tookMs });
  return ok({
    replicas,
    obeyed: replay.obeyed,
    forgetful: replay.forgetful || rebuilt,
    nextLsn,
    generation: Math.max(newest, parts.begun),
    segments: [...unreadable, ...found.map((segment) => segment.name)],
    replayed,
    rebuilt,
    tookMs,
  });
}

export async function readSegmentHeaders(
  world: World,
  journalDisk: Disk,
): Promise<{ readonly found: FoundSegment[]; readonly unreadable: string[] }> {
  const found: FoundSegment[] = [];
  const unreadable: string[] = [];
  for (const name of await journalDisk.list(journalFolder)) {
    if (!name.endsWith(".segment")) continue;
    const file = await journalDisk.open(`${journalFolder}/${name}`);
    const header = decodeSegmentHeader(world.digest.crc32c, await file.read(0, segmentRecordsOffset));
    await file.close();
    if (header.kind === "ok") found.push({ name, header: header.value });
    else unreadable.push(name);
  }
  found.sort((a, b) => a.header.generation - b.header.generation);
  return { found, unreadable };
}

interface JudgedSegment {
  readonly bytes: Uint8Array;
  readonly judged: SegmentJudgement;
}

/**
 * Returns the most complete one of a segment and its copies: a copy was made at some moment and lacks later records.
 */
export async function bestOf(
  world: World,
  journalDisk: Disk,
  group: readonly FoundSegment[],
  next: SegmentHeader | undefined,
  checkpointLsn: number,
): Promise<JudgedSegment> {
  let best: JudgedSegment | undefined;
  for (const { name, header } of group) {
    const file = await journalDisk.open(`${journalFolder}/${name}`);
    const bytes = await file.read(0, await file.sizeBytes());
    await file.close();
    const scan = { header, records: scanSegment(world.digest.crc32c, header, bytes) };
    const judged = judgeSegment(scan, next, checkpointLsn);
    if (best === undefined || intact(judged) > intact(best.judged)) best = { bytes, judged };
  }
  if (group.length > 1) world.logger.warn("a journal segment is there more than once", { names: group.map((each) => each.name) });
  return best as JudgedSegment;
}

const intact = (judged: SegmentJudgement): number => judged.steps.filter((step) => step.kind === "replay").length;

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

/** Records that a killed process wrote and did not live to sync are replayed: a loss of power must not take them and leave what was made of them. */
async function syncSegments(journalDisk: Disk, segments: readonly FoundSegment[]): Promise<void> {
  for (const { name } of segments) {
    const file = await journalDisk.open(`${journalFolder}/${name}`);
    await file.sync();
    await file.close();
  }
}

/**
 * A replica whose file is gone is damaged, never just shorter or unknown. A file of which neither table nor journal know was made by a record
 * that is lost: a damaged replica, of which the stream manager says what becomes.
 */
async function compareWithFiles({ world, files, identity }: RecoveryParts, replicas: Map<ExtentId, Replica>): Promise<void> {
  const found = await extentFileNames(world);
  if (world.rules.on("missingFileIsDamage")) {
    const there = new Set(found.map(({ id }) => id));
    for (const replica of replicas.values()) {
      if (replica.durableBytes === 0 || replica.state === "damaged" || there.has(replica.extentId)) continue;
      world.logger.error("the file of an extent is gone", { extent: replica.extentId });
      replica.markDamaged("its file is gone");
    }
  }
  for (const { path, id } of found) {
    if (id === undefined || replicas.has(id)) continue;
    const meta = await metaOf(world, files, identity, path, id);
    if (meta === undefined) continue;
    const replica = new Replica(meta, world.rules);
    replica.markDamaged("the journal record that made it is lost");
    replicas.set(id, replica);
  }
}

/** Discards copies that no journal record adopted: they were never finished. */
async function discardCopies(world: World): Promise<void> {
  for (const folder of await world.disk.list(extentsFolder)) {
    for (const name of await world.disk.list(`${extentsFolder}/${folder}`)) {
      if (name.endsWith(".copy")) await world.disk.remove(`${extentsFolder}/${folder}/${name}`);
    }
  }
}
