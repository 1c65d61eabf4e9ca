/**
 * The disk of an extent node that does not run, for `stamp fsck`: identity, journal, extent table and extent files against one another,
 * without changing anything; and the extent table made anew from files and journal. The stores' locks keep a running node out.
 */
import { type ExtentId, type Failure, type Outcome, ok, refused } from "@stamp/base";
import { isUnreadable, type NodeIdentity, PointedData, planSegments, Replay, Replica, type ReplicaMeta } from "@stamp/extent";
import { type Disk, DiskError, type World } from "@stamp/ports";
import { DiskQueue, scrubIo } from "../disk/disk-queue.ts";
import { ExtentFiles, extentPath } from "../disk/extent-files.ts";
import { JournalBegun, readIdentity, readStarts } from "../disk/node-disk.ts";
import { ExtentTable } from "../disk/table.ts";
import { type CheckedFragment, checkFragments } from "../fragments/offline-fragments.ts";
import { journalFolder } from "../journal/segment-pool.ts";
import { refuseNewerDisk } from "../recovery/newer-formats.ts";
import { extentFileNames, rebuildTable } from "../recovery/rebuild-table.ts";
import { bestOf, readSegmentHeaders, recover } from "../recovery/recovery.ts";
import { readPointed } from "../recovery/replay-effects.ts";
import { checkFile } from "./check.ts";
import { verifyContent } from "./verify.ts";

export interface DiskProblem {
  /** Kind of the problem: a stable word, for tools. */
  readonly kind: "newer" | "identity" | "journal" | "table" | "replica" | "strayFile";
  readonly extentId?: number;
  readonly what: string;
  /** Command or step that mends the problem. */
  readonly cure: string;
}

export interface CheckedDisk {
  readonly identity: NodeIdentity | undefined;
  readonly replicas: readonly ReplicaMeta[];
  readonly fragments: readonly CheckedFragment[];
  readonly problems: readonly DiskProblem[];
  readonly notes: readonly string[];
}

export interface OfflineParts {
  readonly world: World;
  readonly nodeId: string;
  /** Disk of the journal, if it has one of its own. */
  readonly journalDisk?: Disk;
}

const openFilesMax = 64;
const nothing = { replicas: [], fragments: [] } as const;
const copiedAnew = "the stream manager has it copied anew when the node runs";
const byRelease = "start the release that wrote it, or a later one";
const byRebuild = "`stamp fsck --rebuild`, or the node itself at its next start";

const curesOf = { content: copiedAnew, header: byRebuild, newer: byRelease } as const;

/** Checks the disk of a stopped node; `deep` reads every byte. */
export async function checkDisk({ world, nodeId, journalDisk }: OfflineParts, deep: boolean): Promise<CheckedDisk> {
  const problems: DiskProblem[] = [];
  const notes: string[] = [];
  const refusal = await refuseNewerDisk(world, journalDisk ?? world.disk);
  if (!refusal.ok) {
    return { identity: undefined, ...nothing, problems: [{ kind: "newer", what: refusal.failure.message, cure: byRelease }], notes };
  }
  const held = await readIdentity(world, nodeId);
  if (!held.ok) {
    const cure = "bring the file back from a copy, or empty the node's folder: it then joins as a new disk";
    return { identity: undefined, ...nothing, problems: [{ kind: "identity", what: held.failure.message, cure }], notes };
  }
  const identity = held.value;
  if (identity === undefined) return { identity, ...nothing, problems, notes: ["the disk is empty"] };
  try {
    await readStarts(world.disk);
  } catch (error) {
    problems.push({ kind: "identity", what: (error as Error).message, cure: "delete it when the store beside it is intact" });
  }
  const queue = new DiskQueue(world);
  const files = new ExtentFiles(world, queue, openFilesMax, identity);
  const peeked = await ExtentTable.peek(world, identity.diskId);
  if (peeked.kind === "unusable") problems.push({ kind: "table", what: `the extent table: ${peeked.why}`, cure: byRebuild });
  const metas = peeked.kind === "complete" ? peeked.metas : await rebuildTable(world, files, identity);
  const synced = new Map(peeked.kind === "complete" ? metas.map((meta) => [meta.extentId, meta.durableBytes] as const) : []);
  const replay = new Replay(new Map(metas.map((meta) => [meta.extentId, new Replica(meta, world.rules)])), world.rules, synced);
  const pointed = new PointedData();
  problems.push(...(await checkJournal(world, journalDisk ?? world.disk, replay, pointed, notes)));
  const known = replay.replicas;
  for (const [extentId, each] of pointed.all()) {
    const found = await readPointed(world, files, extentId, each);
    if (typeof found === "string") problems.push({ kind: "replica", extentId, what: found, cure: copiedAnew });
  }
  for (const meta of metas) {
    const after = known.get(meta.extentId);
    if (after === undefined || (isUnreadable(meta) && after.state !== "damaged")) continue;
    problems.push(...(await checkReplica(world, files, identity, meta, deep)));
  }
  for (const { path, id } of await extentFileNames(world)) {
    if (id !== undefined && known.has(id)) continue;
    // Made shortly before the end: the journal tells of it.
    if (id !== undefined && (await files.readHeader(path)).kind === "invalid" && (await isEmpty(files, id))) continue;
    problems.push({
      kind: "strayFile",
      ...(id === undefined ? {} : { extentId: id }),
      what: `${path} is no replica's`,
      cure: "look at it, and move it away",
    });
  }
  const { fragments, strayPaths } = await checkFragments(world, files, queue, identity, deep);
  for (const path of strayPaths)
    problems.push({ kind: "strayFile", what: `${path} is no fragment's`, cure: "look at it, and move it away" });
  await files.closeAll();
  return { identity, replicas: [...known.values()].map((replica) => replica.meta), fragments, problems, notes };
}

async function isEmpty(files: ExtentFiles, id: ExtentId): Promise<boolean> {
  return (await files.read(id, 0, 1, scrubIo)).length === 0;
}

/** Brings `replay` to where the node will be after its start, and `pointed` to what must be in its files then. */
async function checkJournal(
  world: World,
  journalDisk: Disk,
  replay: Replay,
  pointed: PointedData,
  notes: string[],
): Promise<DiskProblem[]> {
  const { found, unreadable } = await readSegmentHeaders(world, journalDisk);
  const begun = await JournalBegun.peek(world);
  const plan = planSegments(found, begun);
  const problem = (what: string, cure: string): DiskProblem => ({ kind: "journal", what, cure });
  if (plan.kind === "absent") return [problem("the whole journal is gone", "bring it back, or start the node with acceptJournalLoss")];
  if (plan.kind === "mixed")
    return [problem(`two journals are mixed: ${plan.names.join(", ")}`, "take out the one that is not this node's")];
  replay.checkpointLsn = plan.checkpointLsn;
  const problems: DiskProblem[] = [];
  const suspect = "at its next start the node marks what was not sealed as damaged; it is copied anew";
  if (plan.lostOldest !== undefined)
    problems.push(problem(`segments with LSN ${plan.lostOldest.fromLsn} to ${plan.lostOldest.toLsn} are gone`, suspect));
  if (plan.lostNewest) problems.push(problem(`the newest segment (generation ${begun}) is gone`, suspect));
  for (const [i, group] of plan.groups.entries()) {
    if (group.length > 1) notes.push(`a journal segment is there more than once: ${group.map((each) => each.name).join(", ")}`);
    const { bytes, judged } = await bestOf(world, journalDisk, group, plan.groups[i + 1]?.[0]?.header, plan.checkpointLsn);
    const name = group[0]?.name ?? "";
    for (const step of judged.steps) {
      if (step.kind === "lostRecords") {
        problems.push(problem(`${name}: records ${step.fromLsn} to ${step.toLsn} are gone`, suspect));
        replay.lostRecords();
        continue;
      }
      const { header, bodyOffset } = step.record;
      if (step.kind === "replay") {
        pointed.note(header.extentId, replay.record(header, bytes.subarray(bodyOffset, bodyOffset + header.bodyBytes)));
      } else {
        problems.push({ ...problem(`${name}: record ${header.lsn} is damaged`, copiedAnew), extentId: header.extentId });
        replay.damagedRecord(header);
      }
    }
    if (judged.forgotten > 0) notes.push(`${name}: a torn tail of ${judged.forgotten} records, of which nothing was acknowledged`);
  }
  if (plan.lostNewest) replay.lostRecords();
  replay.finish();
  for (const name of unreadable) {
    const file = await journalDisk.open(`${journalFolder}/${name}`);
    const blank = (await file.read(0, 4)).every((byte) => byte === 0);
    await file.close();
    if (!blank) notes.push(`${name} has no readable header: it is used again`);
  }
  return problems;
}

async function checkReplica(
  world: World,
  files: ExtentFiles,
  identity: NodeIdentity,
  meta: ReplicaMeta,
  deep: boolean,
): Promise<DiskProblem[]> {
  const { extentId, state } = meta;
  if (state === "damaged") return [{ kind: "replica", extentId, what: `it is marked damaged: ${meta.damage}`, cure: copiedAnew }];
  // The table of an unsealed extent may be behind the file, never before it.
  const found = await checkFile(world, files, identity, meta, { inFileBytes: meta.durableBytes, settled: state === "sealed" });
  const problems = found.map(({ kind, what }): DiskProblem => ({ kind: "replica", extentId, what, cure: curesOf[kind] }));
  if (!deep || found.some((each) => each.kind === "content")) return problems;
  try {
    const verified = await verifyContent(world.digest.crc32c, {
      id: extentId,
      lengthBytes: meta.durableBytes,
      checksum: state === "sealed" ? meta.checksum : undefined,
      read: (offsetBytes, lengthBytes) => files.read(extentId, offsetBytes, lengthBytes, scrubIo),
    });
    if (verified?.kind === "bad")
      problems.push({ kind: "replica", extentId, what: `at ${verified.offsetBytes}: ${verified.why}`, cure: copiedAnew });
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    problems.push({ kind: "replica", extentId, what: `${extentPath(extentId)}: ${error.message}`, cure: copiedAnew });
  }
  return problems;
}

export interface RebuiltDisk {
  readonly extents: number;
  readonly damaged: number;
  readonly replayedRecords: number;
}

/** Makes the extent table anew from extent files and journal. The node that opens it learns its SM term before it obeys anybody. */
export async function rebuildDisk({ world, nodeId, journalDisk }: OfflineParts): Promise<Outcome<RebuiltDisk>> {
  const refusal = await refuseNewerDisk(world, journalDisk ?? world.disk);
  if (!refusal.ok) return refusal;
  const held = await readIdentity(world, nodeId);
  if (!held.ok) return held;
  const identity = held.value;
  if (identity === undefined) return refused("failedPrecondition", "unknownExtent", "the disk is empty: there is nothing to rebuild from");
  const begun = await JournalBegun.peek(world);
  await ExtentTable.forgetAll(world.keyValue);
  const { table } = await ExtentTable.open(world, identity.diskId);
  const files = new ExtentFiles(world, new DiskQueue(world), openFilesMax, identity);
  try {
    const recovered = await recover({
      world,
      journalDisk: journalDisk ?? world.disk,
      files,
      table,
      tableComplete: false,
      identity,
      begun,
      acceptJournalLoss: false,
    });
    if (!recovered.ok) return recovered;
    await table.markComplete(true);
    const { replicas, replayed } = recovered.value;
    const damaged = [...replicas.values()].filter((replica) => replica.state === "damaged").length;
    return ok({ extents: replicas.size, damaged, replayedRecords: replayed });
  } catch (error) {
    if (error instanceof DiskError) return { ok: false, failure: diskFailure(error) };
    throw error;
  } finally {
    await files.closeAll();
    await table.close();
  }
}

const diskFailure = (error: DiskError): Failure =>
  refused("unavailable", error.kind === "full" ? "diskFull" : "diskFailed", error.message).failure;
