/**
 * Finds what a restore of the metadata begins from: a copy, or the store that a member of the lost majority still holds, whichever is newer.
 *
 * A copy holds committed transactions only. So a member counts as newer if what it knows to be committed reaches as far as the copy; then its log
 * counts to its end, too.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Outcome } from "@stamp/base";
import { openSurvivor, type Survivor } from "@stamp/lock-service";
import { type OpenedSnapshot, openSnapshot, type SeededChecksum, type SnapshotSource, verifySnapshot } from "@stamp/metadata-store";
import { silentLogger } from "@stamp/ports";
import { inWords, NodeDigest, nodeWorld } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";
import { bytesText } from "../print.ts";
import type { TellProgress } from "../progress.ts";
import { warn } from "../say.ts";

/** Describes the content of a copy, or of a lock service's store. */
export interface SourceFacts {
  /** Path of the copy, or of the lock service's folder. */
  readonly file: string;
  readonly stampId: string;
  readonly version: number;
  readonly takenAt: string;
  /** Number of entries; undefined for the store of a lock service, which is not counted. */
  readonly entries?: number;
}

export const textOf = ({ file, stampId, version, takenAt, entries }: SourceFacts): string =>
  `${file}: stamp ${stampId}, as of transaction ${version} (${takenAt})${entries === undefined ? "" : `, ${entries} entries`}`;

/** Folder of a lock service, with the name of its process. */
export interface LockServiceFolder {
  readonly name: string;
  readonly folder: string;
}

export interface SurvivingFolder extends LockServiceFolder {
  readonly survivor: Survivor;
}

export interface RestoreSource {
  readonly about: SourceFacts;
  /** Name of the lock service whose store is restored; undefined: a copy is. */
  readonly member?: string;
  withSnapshot<T>(work: (snapshot: OpenedSnapshot) => Promise<T>, tellProgress: TellProgress): Promise<T>;
}

const checksum: SeededChecksum = (bytes, seed) => new NodeDigest().crc32c(bytes, seed);

/** Returns what a copy holds, every byte of which was read and is intact. */
export async function verifiedSource(file: string, tellProgress?: TellProgress): Promise<SourceFacts> {
  const { stampId, version, takenAtMs, count } = await withFile(
    file,
    async (source) => {
      const snapshot = await verifySnapshot(source, checksum);
      if (snapshot.ok) return snapshot.value;
      throw new CommandError(`${file}: ${snapshot.failure.message}`);
    },
    tellProgress,
  );
  return { file, stampId, version, takenAt: new Date(takenAtMs).toISOString(), entries: count };
}

/** Opens a copy, or the store of a lock service whose folder is named. */
export async function sourceAt(path: string, tellProgress: TellProgress): Promise<RestoreSource & { close(): Promise<void> }> {
  if (existsSync(path) && statSync(path).isDirectory()) {
    const survived = await survivedIn({ name: path, folder: path });
    if (survived === undefined) throw new CommandError(`${path} is no folder of a lock service that replicates the metadata`);
    return { ...sourceOf(survived), close: () => survived.survivor.close() };
  }
  const about = await verifiedSource(path, (how) => tellProgress(`checking ${path}: ${how}`));
  return {
    about,
    withSnapshot: (work, tell) => withFile(path, async (source) => work(answeredFailure(await openSnapshot(source, checksum))), tell),
    close: async () => {},
  };
}

export function sourceOf({ name, folder, survivor }: SurvivingFolder): RestoreSource {
  const { stampId, version, takenAtMs } = survivor.snapshot;
  const about = { file: folder, stampId, version, takenAt: new Date(takenAtMs).toISOString() };
  return { about, member: name, withSnapshot: (work) => work(survivor.snapshot) };
}

/** Opens the store of a member; undefined if it holds nothing, or is damaged, which is told. The caller holds its folder. */
export async function survivedIn({ name, folder }: LockServiceFolder): Promise<SurvivingFolder | undefined> {
  const stores = join(folder, "stores");
  const own = existsSync(stores) ? readdirSync(stores).filter((each) => each.startsWith("consensus-")) : [];
  if (own.length === 0) return undefined;
  // Before LevelDB opens it, which writes.
  const writtenMs = Math.max(
    ...own.flatMap((each) => readdirSync(join(stores, each)).map((file) => statSync(join(stores, each, file)).mtimeMs)),
  );
  const survivor = await openSurvivor(
    nodeWorld({ dataDir: folder, name: "metadata-restore", logger: silentLogger }),
    Math.max(writtenMs, 0),
  );
  if (survivor.ok) return { name, folder, survivor: survivor.value };
  if (survivor.failure.code !== "notFound") warn(`the store of ${name} can't be used: ${survivor.failure.message}`);
  return undefined;
}

/** Returns the member that has most, of those of this stamp; of two lineages the later one begins far above the other. */
function newestOf(all: readonly SurvivingFolder[]): SurvivingFolder | undefined {
  return all.toSorted((one, other) => {
    const [a, b] = [one.survivor, other.survivor];
    if (a.snapshot.lineage !== b.snapshot.lineage) return b.snapshot.version - a.snapshot.version;
    return b.last.term - a.last.term || b.last.index - a.last.index;
  })[0];
}

/**
 * Chooses between a copy and what members still hold. Throws CommandError if there is nothing, if a majority holds the metadata, or if a member
 * holds more than the copy and the lock service `first`, which begins, is not here.
 *
 * The log of a majority counts to its end, because they elect a leader that has all of it. That of one member counts only as far as it knows its
 * entries to be committed.
 */
export function chosenSource(
  given: RestoreSource | undefined,
  survived: readonly SurvivingFolder[],
  { first, isFirstHere, members }: { readonly first: string; readonly isFirstHere: boolean; readonly members: number },
): RestoreSource {
  const own = survived.filter(({ survivor }) => given === undefined || survivor.snapshot.stampId === given.about.stampId);
  const newest = newestOf(own);
  const same = own.filter(({ survivor }) => survivor.snapshot.lineage === newest?.survivor.snapshot.lineage).length;
  const isMajority = same * 2 > members;
  const reaches = (isMajority ? newest?.survivor.snapshot.version : newest?.survivor.committedVersion) ?? 0;
  if (newest === undefined || (given !== undefined && reaches < given.about.version)) {
    if (given !== undefined) return given;
    throw new CommandError("no lock service here holds anything: name a copy of the metadata (stamp health names the newest one)");
  }
  const { name, folder, survivor } = newest;
  const has = `${name} holds transaction ${survivor.snapshot.version}`;
  const than = given === undefined ? "" : `, and ${given.about.file} ${given.about.version}`;
  if (isMajority)
    throw new CommandError(
      `nothing was changed: ${same} of ${members} lock services hold the metadata (${has}${than}). Start the stamp: they serve. ` +
        "To go back to the copy all the same, move their folders away first",
    );
  if (!isFirstHere)
    throw new CommandError(
      `nothing was changed: ${has}${than}. Restore that instead: take ${folder} to the lock service ${first}, and name it there: ` +
        "stamp metadata restore --replace FOLDER",
    );
  if (given !== undefined) warn(`${has}${than}: its store is restored, not the copy`);
  return sourceOf(newest);
}

async function withFile<T>(path: string, work: (source: SnapshotSource) => Promise<T>, tellProgress: TellProgress = () => {}): Promise<T> {
  const file = await open(path).catch((error: Error) => {
    throw new CommandError(inWords(error, path));
  });
  try {
    const { size } = await file.stat();
    return await work({
      sizeBytes: async () => size,
      read: async (offsetBytes, lengthBytes) => {
        tellProgress(`${bytesText(offsetBytes)} of ${bytesText(size)}`);
        const { buffer, bytesRead } = await file.read(new Uint8Array(lengthBytes), 0, lengthBytes, offsetBytes);
        return buffer.subarray(0, bytesRead);
      },
    });
  } finally {
    await file.close();
  }
}

export function answeredFailure<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new CommandError(outcome.failure.message);
}
