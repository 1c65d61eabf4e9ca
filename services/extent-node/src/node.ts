/** State that the parts of a running extent node share, once the disk is recovered and the identity is known. */
import {
  type ExtentId,
  extentId,
  type Failed,
  type Failure,
  Histogram,
  type Outcome,
  type OwnerEpoch,
  ok,
  ownerEpoch,
  refused,
} from "@stamp/base";
import {
  type DiskRoom,
  hasFiles,
  type JournalRecord,
  type JournalType,
  missingFilesForExtents,
  missingForExtents,
  type NodeIdentity,
  type ObeyedTerm,
  takesBytes,
  takesExtents,
} from "@stamp/extent";
import { lockServices } from "@stamp/metadata-store";
import type { Disk, World } from "@stamp/ports";
import { AnswerMemory, SlowLog } from "@stamp/ports";
import { fromWire, LockService } from "@stamp/wire";
import type { ExtentNodeConfig } from "./config.ts";
import type { ExtentStore } from "./disk/extent-store.ts";
import type { LocalExtent } from "./disk/local-extent.ts";
import { ExtentHolders } from "./extent-holders.ts";
import type { FragmentFiles } from "./fragments/fragment-files.ts";
import { FragmentJobs } from "./fragments/fragment-requests.ts";
import type { Journal } from "./journal/journal.ts";
import { CopyJobs } from "./repair/copy-jobs.ts";
import { CopyTurns } from "./repair/copy-turns.ts";
import { VouchedVersions } from "./vouched-versions.ts";

/**
 * Number of terms above the last one that the lock service vouched for that are obeyed without asking it: so many changes of the leader
 * may pass while the lock service can't be reached from here.
 */
export const unvouchedTermsMax = 16;

const askTimeoutMs = 1_000;

export class Node {
  readonly world: World;
  readonly config: ExtentNodeConfig;
  readonly identity: NodeIdentity;
  readonly incarnation: number;
  /** Address at which others reach the node. */
  readonly address: string;
  readonly journal: Journal;
  readonly store: ExtentStore;
  readonly copyTurns: CopyTurns;
  readonly fragments: FragmentFiles;
  readonly fragmentJobs = new FragmentJobs();
  readonly copyJobs = new CopyJobs();
  readonly answers: AnswerMemory;
  readonly versions: VouchedVersions;
  readonly holders: ExtentHolders;
  /** Free bytes of the disk at the last look. */
  freeBytes = Number.MAX_SAFE_INTEGER;
  totalBytes = 0;
  /** Number of files that can still be made on the disk, and of those that it can hold; undefined: no fixed number. */
  freeFiles: number | undefined;
  totalFiles: number | undefined;
  /** Disk of the journal, if it has one of its own. */
  readonly journalDisk: Disk | undefined;
  journalFreeBytes = 0;
  #writtenAtLook = 0;
  appends = 0;
  readonly slow: SlowLog;
  readonly took: Readonly<Record<"appendDone" | "appendFailed" | "replicate" | "read", Histogram>>;
  /** Number of the last report to a stream manager. */
  reportNumber = 0;
  /** Gives the number of the last transaction in the newest copy of the metadata here; 0: there is none. */
  metadataVersion: () => number = () => 0;
  #obeyed: ObeyedTerm;
  /** Highest term that the lock service, or this disk at the start, vouched for. */
  #vouchedTerm: number;
  #termDurable: Promise<void> = Promise.resolve();

  constructor(
    parts: Pick<Node, "world" | "config" | "identity" | "incarnation" | "address" | "journal" | "store" | "fragments" | "journalDisk"> & {
      readonly obeyed: ObeyedTerm;
      /** Returns the feature level of the stamp; undefined: not known yet. */
      readonly level: () => number | undefined;
    },
  ) {
    this.world = parts.world;
    this.config = parts.config;
    this.identity = parts.identity;
    this.incarnation = parts.incarnation;
    this.address = parts.address;
    this.journal = parts.journal;
    this.store = parts.store;
    this.fragments = parts.fragments;
    this.journalDisk = parts.journalDisk;
    this.copyTurns = new CopyTurns(parts.world);
    this.answers = new AnswerMemory(parts.world.clock);
    this.versions = new VouchedVersions(parts.world, parts.config.lockService);
    this.holders = new ExtentHolders({
      world: parts.world,
      lockService: parts.config.lockService,
      nodeId: parts.identity.nodeId,
      level: parts.level,
      madeWith: (id, nodeId) => this.find(id)?.replica.replicas.some((each) => each.nodeId === nodeId) ?? false,
    });
    this.slow = new SlowLog(parts.world);
    const made = (): Histogram => new Histogram(parts.world.clock);
    this.took = { appendDone: made(), appendFailed: made(), replicate: made(), read: made() };
    this.#obeyed = parts.obeyed;
    this.#vouchedTerm = parts.obeyed.term;
  }

  /** Rises whenever something is done for clients: who sees it rise rests a little. */
  get clientOperations(): number {
    return this.journal.batches + this.store.files.clientOperations;
  }

  get smTerm(): number {
    return this.#obeyed.term;
  }

  get obeyed(): ObeyedTerm {
    return this.#obeyed;
  }

  async lookAtDisk(): Promise<void> {
    this.#writtenAtLook = this.store.files.writtenBytes;
    const space = await this.world.disk.space();
    this.freeBytes = space.freeBytes;
    this.totalBytes = space.totalBytes;
    this.freeFiles = space.freeFiles;
    this.totalFiles = space.totalFiles;
    if (this.journalDisk !== undefined) this.journalFreeBytes = (await this.journalDisk.space()).freeBytes;
    if (this.store.full && this.store.pendingBytes === 0 && this.freeBytes > this.config.reserveBytes && hasFiles(space))
      this.store.spaceFound();
  }

  get room(): DiskRoom {
    const { freeBytes, totalBytes, freeFiles, totalFiles, store, journal } = this;
    const spokenForBytes = store.pendingBytes + store.files.writtenBytes - this.#writtenAtLook;
    return { totalBytes, freeBytes, freeFiles, totalFiles, spokenForBytes, full: store.full || journal.onReserve };
  }

  get takesExtents(): boolean {
    return takesExtents(this.room, this.config);
  }

  /** Text about the room that the disk lacks for new extents. */
  get missingForExtents(): string {
    const files = missingFilesForExtents(this.room, this.config);
    if (files > 0) return `${files} more files have to be possible: ${this.freeFiles} of ${this.totalFiles} inodes are free (df -i)`;
    const mebibytes = missingForExtents(this.room, this.config) / 1024 ** 2;
    return `${mebibytes.toFixed(1)} MiB more have to be free (highWaterPercent, highWaterFreeBytes)`;
  }

  /** Returns why these bytes are refused; undefined: they are taken. */
  refuseBytes(bytes: number): Failure | undefined {
    if (takesBytes(this.room, this.config, bytes)) return undefined;
    return refused("resourceExhausted", "diskFull", `the disk of ${this.identity.nodeId} is full: ${this.#free}`).failure;
  }

  get #free(): string {
    const bytes = `${this.freeBytes} bytes are free`;
    return this.freeFiles === undefined ? bytes : `${bytes}, and ${this.freeFiles} of ${this.totalFiles} inodes`;
  }

  /** True if an append of this length, taken now, is written once, into the extent's file. */
  goesInPlace(lengthBytes: number): boolean {
    const { inPlaceBytesMin, inPlaceBehindBytes } = this.config;
    return inPlaceBytesMin > 0 && lengthBytes >= inPlaceBytesMin && this.journal.undurableBytes >= inPlaceBehindBytes;
  }

  /** Bytes of appends that were taken and are not durable here; in memory. */
  get queuedBytes(): number {
    return this.journal.queuedBytes + this.store.inPlace.queuedBytes;
  }

  /** Bytes of `queuedBytes` and of the batch that is being written. */
  get undurableBytes(): number {
    return this.journal.undurableBytes + this.store.inPlace.queuedBytes;
  }

  /** Returns the probable time until an append taken now is durable here, in milliseconds. */
  expectedMs(lengthBytes: number): number {
    const inPlace = this.goesInPlace(lengthBytes);
    return this.journal.expectedMs(inPlace ? 0 : lengthBytes) + (inPlace ? this.store.inPlace.expectedMs(lengthBytes) : 0);
  }

  find(id: number): LocalExtent | undefined {
    return this.store.extents.get(extentId(id));
  }

  /** True if the term is so far above the vouched one that no leader may have it: `vouchFor` decides before `obey` does. */
  isFarTerm(term: number): boolean {
    return term > this.#vouchedTerm + unvouchedTermsMax && this.world.rules.on("givenTermsOnly");
  }

  /** Asks the lock service whether it gave this term. Refuses a term above the lease's epoch; a node that obeyed it would obey nobody else. */
  async vouchFor(term: number): Promise<Outcome<void>> {
    const given = await this.givenTerm();
    if (!given.ok) {
      const { message } = given.failure;
      return refused("unavailable", "notReady", `stream manager term ${term} is far above ${this.smTerm}; the lock service: ${message}`);
    }
    if (term <= given.value) return ok();
    const message = `stream manager term ${term} was never given: the lock service is at ${given.value}`;
    this.world.logger.error("a command has a term that was never given", { term, given: given.value, obeyed: this.smTerm });
    return refused("invalidArgument", "badRequest", message, { currentTerm: String(this.smTerm) });
  }

  /** Returns the epoch of the stream manager's lease from the lock service. */
  async givenTerm(): Promise<Outcome<number>> {
    const lockService = lockServices(this.world, this.config.lockService, LockService);
    const lease = await lockService.getLease({ name: "stream-manager" }, { timeoutMs: askTimeoutMs });
    if (!lease.ok) return lease;
    const given = fromWire(lease.value.leaseEpoch);
    this.#vouchedTerm = Math.max(this.#vouchedTerm, given);
    return ok(given);
  }

  /** Obeys a command's term: refuses one below the highest seen; a higher one is durable before the command is answered. */
  obey(term: number): Outcome<Promise<void>> {
    if (term < this.smTerm && this.world.rules.on("smTermAtNode")) {
      // The refused leader may lead by an older metadata store. This node's copy says so.
      return refused("failedPrecondition", "staleTerm", `stream manager term ${term} is below ${this.smTerm}`, {
        currentTerm: String(this.smTerm),
        nodeId: this.identity.nodeId,
        stampId: this.identity.stampId,
        diskId: this.identity.diskId,
        incarnation: String(this.incarnation),
        metadataVersion: String(this.metadataVersion()),
      });
    }
    if (term > this.smTerm) this.#termDurable = this.raiseTerm(term);
    return ok(this.#termDurable);
  }

  raiseTerm(term: number): Promise<void> {
    return this.#recordTerm({ ...this.#obeyed, term: Math.max(this.smTerm, term) });
  }

  /** Obeys a lower term from here on: a person says that the higher one was never given (`takeLowerTerm`). */
  lowerTerm(term: number): Promise<void> {
    this.#vouchedTerm = term;
    return this.#recordTerm({ term, lowerings: this.#obeyed.lowerings + 1 });
  }

  #recordTerm(obeyed: ObeyedTerm): Promise<void> {
    this.#obeyed = obeyed;
    const record = journalRecord("term", extentId(0), { offsetBytes: obeyed.term, ownerEpoch: ownerEpoch(obeyed.lowerings) });
    return this.journal.write(record, new Uint8Array(0));
  }

  /** Refuses a command that was meant for another disk. */
  otherDisk(diskId: string): Failed | undefined {
    if (diskId === this.identity.diskId || !this.world.rules.on("diskIdentity")) return undefined;
    return refused("failedPrecondition", "wrongDisk", `this disk is ${this.identity.diskId}, the command is for ${diskId}`);
  }

  /** Marks the extent as damaged, durably; nothing of it is served from now on. */
  async markDamaged(extent: LocalExtent, why: string): Promise<void> {
    if (extent.replica.state === "damaged" || extent.removed) return;
    const { extentId: id } = extent.replica;
    this.world.logger.error("a replica is damaged", { extent: id, why });
    extent.replica.markDamaged(why);
    await this.journal.write(journalRecord("damaged", id), new TextEncoder().encode(extent.replica.damage), (lsn, generation) => {
      extent.replica.appliedLsn = lsn;
      this.store.changed(extent, generation);
    });
  }
}

export function journalRecord(type: JournalType, id: ExtentId, more: Partial<JournalRecord> = {}): JournalRecord {
  const none: OwnerEpoch = ownerEpoch(0);
  return { type, extentId: id, offsetBytes: 0, ownerEpoch: none, committedBytes: 0, ...more };
}

export const unknownExtent = (id: number): Failed => refused("notFound", "unknownExtent", `extent ${id} is not on this node`);
