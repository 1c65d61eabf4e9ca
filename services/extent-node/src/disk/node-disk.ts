/**
 * The small files of a node's disk (docs/formats/extent.md): which stamp, node and disk it is, how often the node was started, which journal
 * segment was begun last, and on a journal's own disk, whose journal it is.
 */
import { FailureError, fromUtf8, newerFormat, type Outcome, ok, refused, utf8 } from "@stamp/base";
import {
  type Crc32c,
  decodeJournalBegun,
  decodeNodeIdentity,
  encodeJournalBegun,
  encodeNodeIdentity,
  journalBegunBytes,
  journalBegunOffset,
  type NodeIdentity,
} from "@stamp/extent";
import { type Disk, type DiskFile, uuid, type World } from "@stamp/ports";
import { journalFolder } from "../journal/segment-pool.ts";
import { extentsFolder } from "./extent-files.ts";

export const identityFile = "node-identity";
export const journalIdentityFile = "journal-identity";
export const startsFile = "starts";
export const journalBegunFile = "journal-begun";

/** Returns undefined on an empty disk. A disk that holds data but no readable identity is refused: it is nobody's to guess. */
export async function readIdentity(world: World, nodeId: string): Promise<Outcome<NodeIdentity | undefined>> {
  const content = await world.disk.readWhole(identityFile);
  if (content === undefined) {
    const extents = await world.disk.list(extentsFolder);
    const segments = await world.disk.list(journalFolder);
    if (extents.length + segments.length === 0) return { ok: true, value: undefined };
    return refused("dataLoss", "damaged", `the disk holds extents but no file ${identityFile}`);
  }
  const identity = decodeNodeIdentity(world.digest.crc32c, content);
  if (identity.kind === "newer") return newerFormat(identityFile, identity);
  if (identity.kind === "invalid") return refused("dataLoss", "damaged", `the file ${identityFile} is damaged: ${identity.why}`);
  if (identity.value.nodeId !== nodeId) {
    return refused("failedPrecondition", "wrongDisk", `the disk is that of node ${identity.value.nodeId}, this process is ${nodeId}`);
  }
  return ok(identity.value);
}

export async function formatDisk(world: World, nodeId: string, stampId: string): Promise<NodeIdentity> {
  const identity = { stampId, nodeId, diskId: uuid(world.random) };
  await world.disk.writeAtomically(identityFile, encodeNodeIdentity(world.digest.crc32c, identity));
  return identity;
}

/** Returns how often the node was started on this disk, as far as the file says; undefined when it is absent. Throws when it can't be trusted. */
export async function readStarts(disk: Disk): Promise<number | undefined> {
  const content = await disk.readWhole(startsFile);
  if (content === undefined) return undefined;
  const match = /^(\d{1,15}) (\d{1,15})\n$/.exec(fromUtf8(content));
  if (match !== null && match[1] === match[2]) return Number(match[1]);
  const message = `the file ${startsFile} is damaged; when the store "identity" beside it is intact, delete the file`;
  throw new FailureError({ code: "dataLoss", reason: "damaged", message, applied: "no" });
}

/** Writes the number twice, so that a flipped bit is noticed. */
export async function writeStarts(disk: Disk, starts: number): Promise<void> {
  await disk.writeAtomically(startsFile, utf8(`${starts} ${starts}\n`));
}

/**
 * Whether a journal on a disk of its own is this node's. An empty one is taken only by a new node: where a journal was, an empty folder is
 * most likely a disk that is not mounted.
 */
export async function checkJournalDisk(world: World, journalDisk: Disk, identity: NodeIdentity): Promise<Outcome<void>> {
  const content = await journalDisk.readWhole(journalIdentityFile);
  if (content === undefined) {
    await journalDisk.writeAtomically(journalIdentityFile, encodeNodeIdentity(world.digest.crc32c, identity));
    return ok();
  }
  const found = decodeNodeIdentity(world.digest.crc32c, content);
  if (found.kind === "newer") return newerFormat(journalIdentityFile, found);
  if (found.kind === "invalid") return refused("dataLoss", "damaged", `the file ${journalIdentityFile} is damaged: ${found.why}`);
  const { nodeId, diskId, stampId } = found.value;
  if (diskId === identity.diskId && stampId === identity.stampId) return ok();
  const message = `the journal's disk is that of node ${nodeId} (disk ${diskId}), this is ${identity.nodeId} (disk ${identity.diskId})`;
  return refused("failedPrecondition", "wrongDisk", message);
}

/** The last segment that was begun, on the disk of the extents: see `journal-begun.ts`. */
export class JournalBegun {
  readonly #crc32c: Crc32c;
  readonly #file: DiskFile;
  readonly generation: number;

  private constructor(crc32c: Crc32c, file: DiskFile, generation: number) {
    this.#crc32c = crc32c;
    this.#file = file;
    this.generation = generation;
  }

  static async open(world: World): Promise<JournalBegun> {
    const { crc32c } = world.digest;
    const made = await world.disk.exists(journalBegunFile);
    const file = await world.disk.open(journalBegunFile, { create: true });
    if (!made || (await file.sizeBytes()) < journalBegunBytes) {
      await file.allocate(journalBegunBytes);
      await file.sync();
      await world.disk.syncFolder(".");
    }
    return new JournalBegun(crc32c, file, decodeJournalBegun(crc32c, await file.read(0, journalBegunBytes)));
  }

  /** Returns the content of the file; does not make it. */
  static async peek(world: World): Promise<number> {
    const content = await world.disk.readWhole(journalBegunFile);
    return content === undefined ? 0 : decodeJournalBegun(world.digest.crc32c, content);
  }

  async write(generation: number): Promise<void> {
    await this.#file.write(journalBegunOffset(generation), [encodeJournalBegun(this.#crc32c, generation)]);
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
