/**
 * The role `extent-node`: extents and blocks on one disk. Steps 4 to 6 of the write path. It starts in this order, and serves nothing
 * before the last: see that no newer release wrote on its disk · raise the incarnation · listen · learn the disk's identity (or format it for the stamp) · recover · see that the
 * metadata store is of the same stamp, and learn the stream manager's term anew if it may be lost.
 */
import { type Failed, type Outcome, ok, refused, unwrap } from "@stamp/base";
import { hasFiles, type NodeIdentity } from "@stamp/extent";
import { LevelWatch, MetadataClient, statusService } from "@stamp/metadata-store";
import {
  type Disk,
  type Identity,
  jittered,
  type Listener,
  openIdentity,
  type Role,
  type RoleStatus,
  served,
  sleep,
  type World,
} from "@stamp/ports";
import { ExtentFragments, ExtentNode } from "@stamp/wire";
import type { ExtentNodeConfig } from "./config.ts";
import { DiskQueue } from "./disk/disk-queue.ts";
import { ExtentFiles } from "./disk/extent-files.ts";
import { ExtentStore } from "./disk/extent-store.ts";
import { failStopDisk } from "./disk/fail-stop-disk.ts";
import { LocalExtent } from "./disk/local-extent.ts";
import type { LocalExtents } from "./disk/local-extents.ts";
import { checkJournalDisk, formatDisk, JournalBegun, readIdentity, readStarts, writeStarts } from "./disk/node-disk.ts";
import { ExtentTable } from "./disk/table.ts";
import { FragmentFiles } from "./fragments/fragment-files.ts";
import { Journal } from "./journal/journal.ts";
import { MetadataCopies, type MetadataCopyFacts, metadataCopiesFolder } from "./metadata/metadata-copies.ts";
import { extentNodeMetrics } from "./metrics.ts";
import { Node } from "./node.ts";
import { extentNodeFormats, refuseNewerDisk } from "./recovery/newer-formats.ts";
import { type RecoveredNode, recover } from "./recovery/recovery.ts";
import { Scrubber } from "./repair/scrubber.ts";
import { Reporter } from "./reporter.ts";
import { extentFragmentHandlers, extentNodeHandlers } from "./server.ts";

const askTimeoutMs = 1_000;
const askEveryMs = 200;
const wrongStampAskEveryMs = 1_000;

/** Returns the text that tells a person what to do about damaged replicas; undefined if there are none. */
function damageText({ damaged, ...others }: Readonly<Record<"open" | "closed" | "sealed" | "damaged", number>>): string | undefined {
  if (damaged === 0) return undefined;
  const all = damaged + others.open + others.closed + others.sealed;
  const count = damaged === all ? `its replicas, all ${all} damaged` : `${damaged} of its ${all} replicas`;
  return `the repair of ${count}; what was found: ./stamp scrub status, how far: ./stamp repair status`;
}

function extentFacts(extents: LocalExtents | undefined) {
  const unsealed = extents?.unsealed() ?? new Set();
  const states = { open: 0, closed: 0, sealed: (extents?.size ?? 0) - unsealed.size, damaged: 0 };
  let bytes = extents?.sealedBytes ?? 0;
  for (const { replica } of unsealed) {
    states[replica.state] += 1;
    bytes += replica.durableBytes;
  }
  return { states, bytes };
}

interface KnownDisk {
  readonly identity: NodeIdentity;
  /** True if this start formatted the disk. */
  readonly fresh: boolean;
}

interface RecoveredDisk {
  readonly table: ExtentTable;
  readonly store: ExtentStore;
  readonly queue: DiskQueue;
  readonly fragments: FragmentFiles;
  readonly begun: JournalBegun;
  readonly recovered: RecoveredNode;
  /** True if the disk may have lost the SM term that it obeyed. */
  readonly forgetful: boolean;
}

export class ExtentNodeRole implements Role {
  readonly metrics = extentNodeMetrics;
  readonly #world: World;
  readonly #config: ExtentNodeConfig;
  readonly #journalDisk: Disk;
  readonly #ownJournalDisk: boolean;
  #queue: DiskQueue | undefined;
  /** Queue of the journal's own disk. */
  #journalQueue: DiskQueue | undefined;
  #begun: JournalBegun | undefined;
  readonly #stop: AbortController = new AbortController();
  readonly #level: LevelWatch;
  #listener: Listener | undefined;
  #identity: Identity | undefined;
  #store: ExtentStore | undefined;
  #journal: Journal | undefined;
  #node: Node | undefined;
  #reporter: Reporter | undefined;
  #scrubber: Scrubber | undefined;
  #metadataCopies: MetadataCopies | undefined;
  #preparing: Promise<void> | undefined;
  #ready = false;
  #waitingFor = "its disk";
  /** Reason why the node will never serve; undefined: there is none. */
  #refusing: Failed | undefined;
  #recovered: Readonly<Record<string, unknown>> = {};
  #rate = { atMs: 0, appends: 0, perSecond: 0 };

  /** `journalDisk`: disk of the journal, if it has one of its own. */
  constructor(world: World, config: ExtentNodeConfig, options: { readonly journalDisk?: Disk } = {}) {
    this.#world = { ...world, disk: failStopDisk(world.disk, world.fatal) };
    this.#config = config;
    this.#level = new LevelWatch(this.#world);
    this.#ownJournalDisk = options.journalDisk !== undefined;
    this.#journalDisk = options.journalDisk === undefined ? this.#world.disk : failStopDisk(options.journalDisk, world.fatal);
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  async start(): Promise<void> {
    const { disk } = this.#world;
    unwrap(await refuseNewerDisk(this.#world, this.#journalDisk));
    // Kept twice: were it to go back, the stream manager would drop this node's reports for ever.
    this.#identity = await openIdentity(this.#world, { formats: extentNodeFormats, kept: await readStarts(disk) });
    const incarnation = this.#identity.incarnation;
    await writeStarts(disk, incarnation);
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      served(
        ExtentNode,
        extentNodeHandlers(() => this.#serving()),
      ),
      served(
        ExtentFragments,
        extentFragmentHandlers(() => this.#serving()),
      ),
      statusService(
        this.#world,
        "extent-node",
        this.#config.name,
        () => this.status,
        () => ({ incarnation, level: this.#level.level }),
      ),
    ]);
    const { lockService, name } = this.#config;
    await this.#level.start({ lockService, role: "extent-node", name, incarnation });
    this.#preparing = this.#prepare(incarnation).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#world.fatal(`the extent node can't start: ${String(error)}`);
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#ready = false;
    this.#waitingFor = "the end";
    await this.#preparing;
    await this.#reporter?.stop();
    await this.#scrubber?.stop();
    await this.#metadataCopies?.stop();
    await this.#level.stop();
    await this.#listener?.close(1_000);
    await this.#journal?.drained();
    await this.#store?.flushAll();
    await this.#journal?.close();
    await this.#begun?.close();
    await this.#store?.close();
    await this.#identity?.close();
  }

  get status(): RoleStatus {
    const node = this.#node;
    const { states, bytes } = extentFacts(this.#store?.extents);
    const wrongStamp = this.#reporter?.wrongStamp === true;
    const ready = this.#ready && !wrongStamp;
    const damage = damageText(states);
    const troubles = [damage, this.#metadataCopies?.trouble].filter((each) => each !== undefined);
    // It takes new extents and copies, so it is ready; but it serves nothing of what it holds.
    const nothingIntact = states.damaged > 0 && states.open + states.closed + states.sealed === 0;
    return {
      ready,
      waitingFor: ready
        ? troubles
        : [wrongStamp ? "the stream manager of its own stamp" : (this.#refusing?.failure.message ?? this.#waitingFor)],
      state: ready ? (nothingIntact ? "damaged" : "serving") : this.#refusing !== undefined || wrongStamp ? "refusing" : "starting",
      facts: {
        extents: states,
        fragments: node?.fragments.count ?? 0,
        damagedFragments: node?.fragments.damagedCount ?? 0,
        extentBytes: bytes,
        journalSegments: this.#journal?.segments.total ?? 0,
        journalSegmentsWaiting: this.#journal?.segments.waiting ?? 0,
        journalBatches: this.#journal?.batches ?? 0,
        journalBytesWritten: this.#journal?.writtenBytes ?? 0,
        fileBytesWritten: this.#store?.files.writtenBytes ?? 0,
        pendingBytes: this.#store?.pendingBytes ?? 0,
        appends: node?.appends ?? 0,
        took: node?.took ?? {},
        ...(this.#journal === undefined ? {} : { journalSync: this.#journal.synced }),
        appendsPerSecond: this.#appendsPerSecond(node?.appends ?? 0),
        smTerm: node?.smTerm ?? 0,
        stampId: node?.identity.stampId ?? "",
        diskId: node?.identity.diskId ?? "",
        freeBytes: node?.freeBytes ?? 0,
        totalBytes: node?.totalBytes ?? 0,
        ...(node?.freeFiles === undefined ? {} : { freeFiles: node.freeFiles, totalFiles: node.totalFiles }),
        takesExtents: node?.takesExtents ?? false,
        diskFull: node !== undefined && (node.room.full || !hasFiles(node.room)),
        disk: this.#queue?.facts ?? {},
        ...(this.#journalQueue === undefined
          ? {}
          : { journalDisk: this.#journalQueue.facts, journalFreeBytes: node?.journalFreeBytes ?? 0 }),
        copies: node?.copyTurns.facts ?? {},
        scrub: this.#scrubber?.facts ?? {},
        ...(this.#metadataCopies === undefined ? {} : { metadataCopy: this.#copyFacts(this.#metadataCopies) }),
        ...this.#recovered,
      },
    };
  }

  /** Returns facts about the newest copy; `path`: its file on this machine or in this container; empty: none. */
  #copyFacts({ facts, newestName }: MetadataCopies): MetadataCopyFacts & { readonly path: string } {
    const path = newestName === undefined ? "" : `${this.#config.dataDir}/files/${metadataCopiesFolder}/${newestName}`;
    return { ...facts, path };
  }

  /** Returns the rate since the last question, which was a second or more ago. */
  #appendsPerSecond(appends: number): number {
    const nowMs = this.#world.clock.monotonicMs();
    const elapsedMs = nowMs - this.#rate.atMs;
    if (elapsedMs >= 1_000) {
      this.#rate = { atMs: nowMs, appends, perSecond: Math.round(((appends - this.#rate.appends) * 1_000) / elapsedMs) };
    }
    return this.#rate.perSecond;
  }

  #serving(): Outcome<Node> {
    if (this.#refusing !== undefined) return this.#refusing;
    if (this.#reporter?.wrongStamp === true) return refused("failedPrecondition", "wrongStamp", "this disk belongs to another stamp");
    if (!this.#ready || this.#node === undefined)
      return refused("unavailable", "notReady", `the extent node waits for ${this.#waitingFor}`);
    return ok(this.#node);
  }

  #refuse(failure: Failed): undefined {
    this.#refusing = failure;
    this.#world.logger.error("this node does not serve", { why: failure.failure.message });
    return undefined;
  }

  /** Starts in stages. A stage that answers undefined has refused to serve, or was stopped. */
  async #prepare(incarnation: number): Promise<void> {
    const metadata = new MetadataClient(this.#world, this.#config.lockService);
    const known = await this.#learnIdentity(metadata);
    if (known === undefined) return;
    this.#waitingFor = "the recovery of its disk";
    const disk = await this.#recoverDisk(known);
    if (disk === undefined) return;
    const journal = await this.#openJournal(disk);
    const { fragments, store, recovered } = disk;
    const node = new Node({
      world: this.#world,
      config: this.#config,
      identity: known.identity,
      incarnation,
      address: this.address,
      journal,
      store,
      fragments,
      journalDisk: this.#ownJournalDisk ? this.#journalDisk : undefined,
      obeyed: recovered.obeyed,
      level: () => this.#level.level,
    });
    this.#node = node;
    const copies = await this.#openMetadataCopies(known.identity.stampId);
    // A report without it would say that this node knows of no transaction.
    node.metadataVersion = () => copies.facts.version;

    if (!known.fresh && !(await this.#isOwnStamp(metadata, known.identity.stampId))) return;
    if (disk.forgetful) {
      const term = await this.#ask("the term of the stream manager", () => node.givenTerm());
      if (term === undefined) return;
      if (term > node.smTerm) await node.raiseTerm(term);
      await disk.table.markComplete();
    }
    if (this.#config.takeLowerTerm && !(await this.#takeLowerTerm(node, metadata))) return;
    const reporter = new Reporter(node);
    this.#reporter = reporter;
    await node.lookAtDisk();
    this.#ready = true;
    this.#world.logger.info("the extent node serves", { extents: store.extents.size, replayed: recovered.replayed });
    reporter.start();
    this.#scrubber = new Scrubber(node);
    this.#scrubber.start();
    copies.start();
  }

  /** Reads the disk's identity. Formats an empty disk for the stamp of the metadata store. */
  async #learnIdentity(metadata: MetadataClient): Promise<KnownDisk | undefined> {
    const { name } = this.#config;
    const held = await readIdentity(this.#world, name);
    if (!held.ok) return this.#refuse(held);
    if (held.value !== undefined) return { identity: held.value, fresh: false };
    const stampId = await this.#ask("the metadata store's stamp id", () => metadata.stampId(askTimeoutMs));
    return stampId === undefined ? undefined : { identity: await formatDisk(this.#world, name, stampId), fresh: true };
  }

  /** Opens the extent table and the files, and replays the journal. The store then knows every extent of the disk. */
  async #recoverDisk({ identity, fresh }: KnownDisk): Promise<RecoveredDisk | undefined> {
    const world = this.#world;
    const { table, ...opened } = await ExtentTable.open(world, identity.diskId);
    if (!opened.complete && !fresh) world.logger.warn("the extent table is rebuilt from the extent files", { why: opened.why });
    const queue = new DiskQueue(world);
    this.#queue = queue;
    const files = new ExtentFiles(world, queue, this.#config.openFilesMax, identity);
    const store = new ExtentStore(world, this.#config, files, table);
    const fragments = await FragmentFiles.open(world, files, queue, identity);
    this.#store = store;
    if (this.#ownJournalDisk) {
      const checked = await checkJournalDisk(world, this.#journalDisk, identity);
      if (!checked.ok) return this.#refuse(checked);
    }
    const begun = await JournalBegun.open(world);
    this.#begun = begun;
    const outcome = await recover({
      world,
      journalDisk: this.#journalDisk,
      files,
      table,
      tableComplete: opened.complete,
      identity,
      begun: begun.generation,
      acceptJournalLoss: this.#config.acceptJournalLoss,
    });
    if (!outcome.ok) return this.#refuse(outcome);
    const recovered = outcome.value;
    const forgetful = !fresh && (recovered.forgetful || opened.unlearned);
    await table.markComplete(forgetful);
    if (this.#stop.signal.aborted) return undefined;
    for (const replica of recovered.replicas.values()) {
      const extent = new LocalExtent(replica, replica.durableBytes);
      store.extents.set(replica.extentId, extent);
      // Only with the rule `neverReopen` off: it goes on, so it needs its index.
      if (replica.state === "open") extent.index = await store.index(extent);
    }
    this.#recovered = { replayedRecords: recovered.replayed, tableRebuilt: recovered.rebuilt && !fresh, recoveryMs: recovered.tookMs };
    return { table, store, queue, fragments, begun, recovered, forgetful };
  }

  async #openJournal({ store, queue, begun, recovered }: RecoveredDisk): Promise<Journal> {
    const world = this.#world;
    if (this.#ownJournalDisk) this.#journalQueue = new DiskQueue(world);
    // On a disk of its own nothing else needs what the journal leaves.
    const journalConfig = { ...this.#config, reserveBytes: this.#ownJournalDisk ? 0 : this.#config.reserveBytes };
    const journal = new Journal(world, this.#journalDisk, this.#journalQueue ?? queue, journalConfig, recovered, {
      room: () => store.room(),
      full: () => store.full,
      segmentClosed: (generation) => store.segmentClosed(generation),
      segmentBegun: (generation) => begun.write(generation),
      obeyed: () => this.#node?.obeyed ?? recovered.obeyed,
    });
    store.attach(journal);
    await journal.open(recovered.segments);
    this.#journal = journal;
    return journal;
  }

  /** Opens the copies before the lock service is asked: a person must find the newest one also if its store is lost. */
  async #openMetadataCopies(stampId: string): Promise<MetadataCopies> {
    const { lockService, metadataCopyEveryMs } = this.#config;
    const copies = new MetadataCopies(this.#world, { lockService, stampId, everyMs: metadataCopyEveryMs });
    await copies.open();
    this.#metadataCopies = copies;
    const { path, version, takenAtMs } = this.#copyFacts(copies);
    if (path !== "") this.#world.logger.info("newest copy of the metadata on this disk", { path, version, takenAtMs });
    return copies;
  }

  /** Asks until the metadata store is the one of this disk's stamp: a left-over one may hold the address for a while. False: stopped. */
  async #isOwnStamp(metadata: MetadataClient, own: string): Promise<boolean> {
    while (!this.#stop.signal.aborted) {
      const stampId = await this.#ask("the metadata store's stamp id", () => metadata.stampId(askTimeoutMs));
      if (stampId === own) {
        this.#refusing = undefined;
        return true;
      }
      if (stampId === undefined) return false;
      const message = `its disk belongs to stamp ${own}, the cluster is ${stampId}`;
      if (this.#refusing?.failure.message !== message) this.#refuse(refused("failedPrecondition", "wrongStamp", message));
      await sleep(this.#world.clock, wrongStampAskEveryMs, this.#stop.signal);
    }
    return false;
  }

  /**
   * Takes the lock service's term, also a lower one: a person says that the higher one was never given. Refused if the metadata store is
   * behind this node's copy of it: the store was put back, its terms are old ones, and it must be restored. False: stopped or refused.
   */
  async #takeLowerTerm(node: Node, metadata: MetadataClient): Promise<boolean> {
    const given = await this.#ask("the term of the stream manager", () => node.givenTerm());
    const store = await this.#ask("the metadata store's last transaction", () => metadata.position(askTimeoutMs));
    if (given === undefined || store === undefined) return false;
    if (store.version < node.metadataVersion()) {
      const message =
        `takeLowerTerm: the metadata store is at transaction ${store.version}, this node has a copy of ${node.metadataVersion()}: ` +
        "the store was put back from an older backup. Restore it first (docs/guides/metadata.md)";
      this.#refuse(refused("dataLoss", "damaged", message));
      return false;
    }
    if (given >= node.smTerm) {
      this.#world.logger.warn("takeLowerTerm is not needed: the lock service's term is not lower", { given, obeyed: node.smTerm });
      return true;
    }
    this.#world.logger.warn("this node takes a lower stream manager term", { from: node.smTerm, to: given });
    await node.lowerTerm(given);
    return true;
  }

  /** Asks until there is an answer; undefined when the node is stopped. */
  async #ask<T>(what: string, question: () => Promise<Outcome<T>>): Promise<T | undefined> {
    this.#waitingFor = what;
    while (!this.#stop.signal.aborted) {
      const answer = await question();
      if (answer.ok) return answer.value;
      await sleep(this.#world.clock, jittered(this.#world.random, askEveryMs), this.#stop.signal);
    }
    return undefined;
  }
}
