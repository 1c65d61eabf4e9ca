/**
 * One term of the stream manager: loads everything that is recorded, drops what was only being allocated, goes on with every seal that
 * was begun, then serves. It ends as a whole, and nothing of it lives on in the next term.
 */
import type { LeaseEpoch, Outcome, SmTerm } from "@stamp/base";
import { ok, smTerm } from "@stamp/base";
import type { LeaseKeeper, StoreAge } from "@stamp/metadata-store";
import { MetadataClient, storeLineage } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { jitteredPause, sleep, Turns, within } from "@stamp/ports";
import { planDropAllocating, type StreamState, type TakenBackRecord } from "@stamp/stream";
import type { NodeReport } from "@stamp/wire";
import { ExtentsAhead } from "./allocation/ahead.ts";
import { Allocator } from "./allocation/allocator.ts";
import { OperatorCalls } from "./calls/operator-calls.ts";
import { OwnerCalls } from "./calls/owner-calls.ts";
import { Views } from "./calls/views.ts";
import { Chooser } from "./coding/chooser.ts";
import { Coder } from "./coding/coder.ts";
import { loadCodingRecords } from "./coding/coding-records.ts";
import { FragmentAdoption } from "./coding/fragment-adoption.ts";
import { HeldFragments } from "./coding/held-fragments.ts";
import { StrayCalls } from "./coding/stray-calls.ts";
import type { StreamManagerConfig } from "./config.ts";
import { StampLevel } from "./feature-level/stamp-level.ts";
import { Garbage } from "./garbage.ts";
import { askReport, askReportTimeoutMs, NodeReports } from "./nodes/node-reports.ts";
import { NodeSync } from "./nodes/node-sync.ts";
import { NodeTable } from "./nodes/node-table.ts";
import { RepairPace } from "./repair/repair-pace.ts";
import { Repairer } from "./repair/repairer.ts";
import { TakeBack } from "./restored/take-back.ts";
import { Completer } from "./seal/completer.ts";
import { Sealer } from "./seal/sealer.ts";
import { Ledger } from "./term/ledger.ts";
import type { StateCopy } from "./term/state-copy.ts";
import type { Term } from "./term/term.ts";

const dropsPerTransaction = 64;
/** Longest wait for the reports of two nodes before a loaded map is acted on. */
const hearForMs = 15_000;
const hearAgainMs = 250;
/** Time between two looks at whether the store went back, in milliseconds. */
const ageEveryMs = 1_000;
/** Number of reports that are kept until it is decided if extents are taken back. */
const earlyReportsMax = 1_000;
/** Extents with fewer replicas than they should have that are sealed in one tick, at most: their owners ask for the successors at once. */
const thinPerTickMax = 4;

/** Parts of a leader that serves. */
interface Serving {
  readonly term: Term;
  readonly calls: OwnerCalls;
  readonly views: Views;
  readonly sealer: Sealer;
  readonly completer: Completer;
  readonly allocator: Allocator;
  readonly ahead: ExtentsAhead;
  readonly repairer: Repairer;
  readonly reports: NodeReports;
  readonly operator: OperatorCalls;
  readonly garbage: Garbage;
  readonly coder: Coder;
  readonly chooser: Chooser;
  readonly strays: StrayCalls;
  readonly adoption: FragmentAdoption;
  /** Result of taking extents back after the last restore of the metadata; undefined: there was none. */
  readonly takenBack: TakenBackRecord | undefined;
}

/** Returns, for people, what takes long, and why. */
export const waitsOf = ({ allocator, sealer, term }: Serving): string[] => [
  ...farTermsOf(term),
  ...sealer.waits(),
  ...allocator.waits(),
  ...term.ledger.waits(),
];

/** Returns, for people, the nodes that refuse this leader for a term that no leader can have, and the way back. */
export const farTermsOf = ({ nodes, number }: Term): string[] =>
  [...nodes.farTerms].map(
    ([nodeId, { term }]) =>
      `extent node ${nodeId} obeys stream manager term ${term}, far above ${number}: start it once with STAMP_TAKE_LOWER_TERM=true ` +
      "(docs/guides/metadata.md)",
  );

/** Returns, for people, why no new extent can be made now; empty: one can. */
export const lacksOf = ({ allocator, term }: Serving): string[] => [
  ...(allocator.lacks === undefined ? [] : [allocator.lacks]),
  ...(term.ledger.diskFull ? term.ledger.waits() : []),
];

export class Leader {
  readonly #world: World;
  readonly #config: StreamManagerConfig;
  readonly #keeper: LeaseKeeper;
  readonly #ended = new AbortController();
  readonly #number: SmTerm;
  readonly #copy: StateCopy;
  readonly #age: StoreAge;
  /** Answers of the nodes to a leader that had just loaded; undefined: none. */
  #reports: Promise<NodeReport | "refused" | undefined>[] = [];
  #waitsForReports = false;
  /** Last report of each node before `#takeBack` is set, by node: the loaded records need not know who reports. */
  readonly #early = new Map<string, NodeReport>();
  /** Set while extents are taken back after a restore. */
  #takeBack: TakeBack | undefined;
  #serving: Serving | undefined;
  #why = "";

  constructor(world: World, config: StreamManagerConfig, keeper: LeaseKeeper, epoch: LeaseEpoch, copy: StateCopy, age: StoreAge) {
    this.#age = age;
    this.#copy = copy;
    this.#world = world;
    this.#config = config;
    this.#keeper = keeper;
    this.#number = smTerm(epoch);
  }

  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Returns undefined until everything is loaded and while the lease is not certain. */
  get serving(): Serving | undefined {
    return this.#ended.signal.aborted || !this.#keeper.holds() ? undefined : this.#serving;
  }

  /** Text for people: what the leader waits for while it does not serve. */
  get waitingFor(): string {
    if (this.#takeBack !== undefined)
      return `extent nodes, to tell which extents began after the copy of the metadata: ${this.#takeBack.absent.join(", ")}`;
    return this.#waitsForReports ? "the extent nodes, to tell which metadata they have seen" : "the metadata store, to load the streams";
  }

  /** Notes a node's report while this leader does not serve yet. */
  heard(report: NodeReport): void {
    if (this.#takeBack !== undefined) this.#takeBack.heard(report);
    else if (this.#serving === undefined && (this.#early.has(report.nodeId) || this.#early.size < earlyReportsMax))
      this.#early.set(report.nodeId, report);
  }

  /** `above`: term that ends this one, if known; the next term of this process is above it. */
  end(why: string, above = 0): void {
    this.#keeper.heard(above);
    if (this.#ended.signal.aborted) return;
    this.#why = why;
    this.#world.logger.warn("the term of this stream manager ends", { term: this.#number, why });
    this.#ended.abort();
  }

  /** Resolves when the term is over, with the reason. */
  async run(): Promise<string> {
    const ended = new Promise<void>((resolve) => this.#ended.signal.addEventListener("abort", () => resolve(), { once: true }));
    const loaded = await this.#load();
    if (loaded.ok && !this.#ended.signal.aborted) {
      this.#serving = loaded.value;
      this.#early.clear();
      this.#world.logger.info("became stream manager leader", { term: this.#number, extents: loaded.value.term.state.extentCount });
      for (const report of this.#reports)
        void report.then((told) => (typeof told === "object" ? loaded.value.reports.answered(told) : undefined));
      void this.#tick(loaded.value);
      void this.#watchAge();
    } else if (!loaded.ok) this.end(loaded.failure.message);
    await ended;
    return this.#why;
  }

  async #load(): Promise<Outcome<Serving>> {
    const world = this.#world;
    const config = this.#config;
    const metadata = new MetadataClient(world, config.lockService, this.#keeper);
    const stampId = await metadata.stampId(config.metadataTimeoutMs);
    if (!stampId.ok) return stampId;
    const loaded = await this.#loadState();
    if (!loaded.ok) return loaded;
    const state = loaded.value;
    const end: Term["end"] = (why, above) => this.end(why, above);
    const ledger = new Ledger(world, metadata, state, {
      term: this.#number,
      timeoutMs: config.metadataTimeoutMs,
      ended: this.#ended.signal,
      end,
    });
    const nodes = new NodeTable(world.clock, state, config.nodeDownAfterMs);
    const around = { world, config, number: this.#number, state, nodes, end };
    const level = await StampLevel.load(around, metadata);
    if (!level.ok) {
      if (level.failure.reason === "newerFormat") world.fatal(level.failure.message);
      return level;
    }
    const lineage = await storeLineage(world, metadata, config.metadataTimeoutMs);
    if (!lineage.ok) return lineage;
    const term: Term = {
      ...around,
      lineage: lineage.value,
      stampId: stampId.value,
      ledger,
      level: level.value,
      age: this.#age,
      ended: this.#ended.signal,
    };
    const records = await loadCodingRecords(term, metadata);
    if (!records.ok) return records;
    const heard = await this.#hear(term);
    if (!heard.ok) return heard;
    const allocator = new Allocator(term);
    const takenBack = await this.#takeBackWith(new TakeBack(term, { metadata, mintId: () => allocator.mintId() }), nodes);
    if (!takenBack.ok) return takenBack;
    const completer = new Completer(term);
    const sealer = new Sealer(term, completer);
    const ahead = new ExtentsAhead(term, allocator);
    const calls = new OwnerCalls(term, sealer, completer, allocator, ahead);
    const pace = new RepairPace(world.clock, config.repairBytesPerSecond);
    const repairer = new Repairer(term, completer, pace);
    const views = new Views(term, completer, repairer, () => coder);
    const held: HeldFragments = new HeldFragments(term, () => coder.repairs.rescan());
    const coder: Coder = new Coder(term, {
      ...{ completer, held, pace },
      copiesWait: () => repairer.mustCopy,
      over: (id, kind, why) => chooser.over(id, kind, why),
    });
    const chooser = new Chooser(term, { coder, completer, repairer, ...records.value });
    const sync = new NodeSync(term, sealer, completer);
    const reports = new NodeReports(term, { sealer, completer, repairer, sync, held });
    const operator = new OperatorCalls(term, { sealer, repairer, completer, coder });
    const garbage = new Garbage(term);
    const adoption = new FragmentAdoption(term, { coder, held, sent: garbage.sent });

    void dropAllocating(term);
    void goOn(term, sealer, completer);
    return ok({
      term,
      calls,
      views,
      sealer,
      completer,
      allocator,
      ahead,
      repairer,
      reports,
      operator,
      garbage,
      coder,
      chooser,
      strays: new StrayCalls(term, held),
      adoption,
      takenBack: takenBack.value,
    });
  }

  async #loadState(): Promise<Outcome<StreamState>> {
    const { clock, logger } = this.#world;
    const startedMs = clock.monotonicMs();
    const keysBefore = this.#copy.keysRead;
    const loaded = await this.#copy.take(this.#number, this.#ended.signal);
    if (!loaded.ok) {
      if (loaded.failure.reason === "damaged")
        logger.error("the stream manager's metadata is damaged", { message: loaded.failure.message });
      return loaded;
    }
    const tookMs = Math.round(clock.monotonicMs() - startedMs);
    logger.info("the metadata is loaded", { keysRead: this.#copy.keysRead - keysBefore, tookMs });
    return loaded;
  }

  async #takeBackWith(takeBack: TakeBack, nodes: NodeTable): ReturnType<TakeBack["run"]> {
    for (const report of this.#early.values()) takeBack.heard(report);
    this.#early.clear();
    this.#takeBack = takeBack;
    const taken = await takeBack.run();
    this.#takeBack = undefined;
    if (taken.ok) nodes.later.floor = taken.value?.floor ?? 0;
    return taken;
  }

  /**
   * Asks every node for its report: the copies of the metadata on the nodes say whether the loaded store is an older one, and nothing is done
   * by the loaded map before. A node that refuses the term tells it as well. Waits until all but one have answered, for a second if two have: a node that is down must not make every
   * take-over slower. With fewer no extent could be made either; after a restart of everything they are still reading their disks.
   */
  async #hear(term: Term): Promise<Outcome<void>> {
    const { clock } = this.#world;
    const nodeIds = [...term.state.nodes()].filter(({ duty }) => duty !== "decommissioned").map(({ nodeId }) => nodeId);
    const enough = Math.min(nodeIds.length, 2);
    const untilMs = clock.monotonicMs() + hearForMs;
    this.#waitsForReports = true;
    for (let heard = 0; ; heard = 0) {
      this.#reports = nodeIds.map((nodeId) => askReport(term, nodeId));
      const answered = new Promise<void>((resolve) => {
        const count = (told: NodeReport | "refused" | undefined): void => {
          if (told !== undefined) heard += 1;
          if (heard >= Math.max(nodeIds.length - 1, enough)) resolve();
        };
        for (const [i, report] of this.#reports.entries())
          void report.then((told) => {
            if (told === undefined) term.nodes.distrust(nodeIds[i] as string);
            count(told);
          });
        void Promise.all(this.#reports).then(() => resolve());
      });
      await within(clock, askReportTimeoutMs, answered);
      if (heard >= enough || this.#ended.signal.aborted || clock.monotonicMs() >= untilMs) break;
      await sleep(clock, hearAgainMs, this.#ended.signal);
    }
    this.#waitsForReports = false;
    return this.#age.look();
  }

  /** Looks if another leader has taken over, or nodes have seen a later store: a leader reads the store no more. */
  async #watchAge(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await jitteredPause(this.#world, ageEveryMs, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
      const looked = await this.#age.look();
      if (!looked.ok && looked.failure.reason === "damaged") this.end(looked.failure.message);
    }
  }

  async #tick(serving: Serving): Promise<void> {
    const { ahead, sealer, repairer, garbage, coder, chooser } = serving;
    const { nodes, state } = serving.term;
    while (!this.#ended.signal.aborted) {
      const turns = new Turns(this.#world.clock);
      let thin = nodes.steadyCount >= this.#config.copies ? thinPerTickMax : 0;
      for (const id of [...state.unsealed()]) {
        if (turns.over) await turns.next();
        const extent = state.extent(id);
        const leaves = (nodeId: string): boolean => state.node(nodeId)?.duty === "draining";
        if (extent?.phase !== "open") continue;
        if (extent.replicas.some((replica) => nodes.down(replica) || leaves(replica.nodeId))) void sealer.seal(id, 0);
        // It was opened while nodes were away. Its successor has every replica.
        else if (extent.replicas.length < this.#config.copies && thin > 0) {
          thin -= 1;
          void sealer.seal(id, 0);
        }
      }
      for (const id of [...state.incomplete()]) if (state.extent(id)?.untold !== undefined) void sealer.again(id);
      ahead.sweep();
      repairer.tick();
      coder.tick();
      chooser.tick();
      void garbage.tick();
      await jitteredPause(this.#world, this.#config.tickMs, this.#ended.signal);
    }
  }
}

/**
 * An extent that an older leader was allocating was told to nobody and never will be: its term can't open it, this one
 * opens only its own.
 */
async function dropAllocating({ ledger, state }: Term): Promise<void> {
  const allocating = [...state.unsealed()].filter((id) => state.extent(id)?.phase === "allocating");
  while (allocating.length > 0) {
    const some = allocating.splice(0, dropsPerTransaction);
    const dropped = await ledger.commit((current) => planDropAllocating(current, some));
    if (!dropped.ok) return;
  }
}

/** Seals and completions that an earlier leader left. After a restart of everything they are as many as there are streams. */
async function goOn({ ended, state, world }: Term, sealer: Sealer, completer: Completer): Promise<void> {
  const turns = new Turns(world.clock);
  for (const id of [...state.unsealed()]) {
    if (turns.over) await turns.next();
    if (ended.aborted) return;
    if (state.extent(id)?.phase === "sealing") void sealer.seal(id, 0);
  }
  for (const id of [...state.incomplete()]) {
    if (turns.over) await turns.next();
    if (ended.aborted) return;
    completer.start(id, []);
  }
}

export type { Serving };
