/**
 * One term of leadership: opens the manager's own tables under the term, brings a new stamp into being, and keeps every range served
 * until the term ends. It ends when the lease is lost, when a write to its tables failed in any way (its outcome may be unknown, or
 * somebody else owns the streams), or when a server knows of a later term; what was done in it stays right, because every step was
 * durable before it was acted on. The next term, here or elsewhere, reads everything again.
 */
import type { FailureReason, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { isLive } from "@stamp/partition-map";
import { pause, sleep, type World } from "@stamp/ports";
import { Assigner } from "../assign/assigner.ts";
import { OwnerEpochs } from "../assign/owner-epochs.ts";
import { Servers } from "../assign/servers.ts";
import { Balancer } from "../balance/balancer.ts";
import { ExtentRoom } from "../balance/room.ts";
import { balancePolicyOf, type PartitionManagerConfig } from "../config.ts";
import { MapState } from "../map/map-state.ts";
import type { OpenTable, OwnTable } from "../map/map-table.ts";
import { Reshaper, type StreamLayer } from "../reshape/reshaper.ts";
import { RestoredRanges } from "../restored/restored-ranges.ts";
import { insertAccounts, writeFirstRanges, writeSchemas } from "./init.ts";

const quickPollMs = 50;
/** Number of ranges that are not served and are named in the text. */
const waitingNamedMax = 5;

interface Running {
  readonly map: MapState;
  readonly servers: Servers;
  readonly assigner: Assigner;
  readonly reshaper: Reshaper;
  readonly balancer: Balancer;
  readonly room: ExtentRoom;
  readonly restored: RestoredRanges;
}

export class Term {
  readonly pmTerm: number;
  readonly #world: World;
  readonly #config: PartitionManagerConfig;
  readonly #store: MetadataClient;
  readonly #openTable: OpenTable;
  readonly #streams: StreamLayer;
  readonly #ended = new AbortController();
  #above = 0;
  readonly #tables: OwnTable[] = [];
  #running: Running | undefined;
  /** Reason why a configured account was not inserted in the last attempt. */
  #accountsRefused: FailureReason | undefined;
  #accountsInserted = false;
  #why = "";
  #again: () => void = () => {};
  #asked = false;

  constructor(
    world: World,
    config: PartitionManagerConfig,
    parts: { readonly store: MetadataClient; readonly openTable: OpenTable; readonly streams: StreamLayer },
    pmTerm: number,
  ) {
    const { store, openTable, streams } = parts;
    this.#streams = streams;
    this.#world = world;
    this.#config = config;
    this.#store = store;
    this.#openTable = openTable;
    this.pmTerm = pmTerm;
  }

  get map(): MapState | undefined {
    return this.#ended.signal.aborted ? undefined : this.#running?.map;
  }

  get servers(): Servers | undefined {
    return this.#running?.servers;
  }

  get reshaper(): Reshaper | undefined {
    return this.#running?.reshaper;
  }

  get balances(): boolean {
    return this.#config.balance;
  }

  get nowMs(): number {
    return this.#world.clock.monotonicMs();
  }

  get balancer(): Balancer | undefined {
    return this.#running?.balancer;
  }

  /** Returns why nothing is moved, split or merged by itself now, for people. */
  get waitsForRoom(): readonly string[] {
    return this.#running?.room.lacks ?? [];
  }

  get assigner(): Assigner | undefined {
    return this.#running?.assigner;
  }

  /** Number of ranges that are not served, by why. */
  get unserved(): { readonly unassigned: number; readonly serverAway: number; readonly loading: number } | undefined {
    const running = this.#running;
    if (running === undefined) return undefined;
    const { assigner, map, servers } = running;
    const answers = new Set(servers.leases.filter(({ server }) => servers.isLive(server)).map(({ server }) => server));
    const counts = { unassigned: 0, serverAway: 0, loading: 0 };
    for (const { rangeId, server } of map.current.ranges) {
      if (server === "") counts.unassigned++;
      else if (!answers.has(server)) counts.serverAway++;
      else if (assigner.progressOf(rangeId) !== "loaded") counts.loading++;
    }
    return counts;
  }

  /** Number of partition servers that no range can be at, undefined before the lock service has answered. */
  get serversAway(): number | undefined {
    const servers = this.#running?.servers;
    return servers?.known === true ? servers.leases.filter(({ server }) => !servers.isLive(server)).length : undefined;
  }

  /** Names for people of what the term waits for; empty when everything is served. */
  get waitingFor(): readonly string[] {
    const running = this.#running;
    if (!running) return ["its own streams (stream-manager and extent nodes)"];
    if (!running.servers.leases.some(isLive)) return ["a partition server"];
    const ranges = running.map.current.ranges.filter((range) => running.assigner.progressOf(range.rangeId) !== "loaded");
    if (ranges.length > 0) {
      const named = ranges.slice(0, waitingNamedMax).map((range) => `range ${range.rangeId}`);
      return ranges.length > named.length ? [...named, `${ranges.length - named.length} more ranges`] : named;
    }
    if (this.#accountsInserted) return [];
    // The reason alone: everybody may ask what a process waits for, and the message names an account.
    return [`the accounts of its configuration${this.#accountsRefused === undefined ? "" : ` (${this.#accountsRefused}: see its log)`}`];
  }

  /** A higher term that a server, or the streams of the manager's own tables, obey; 0: none is known. */
  get above(): number {
    return this.#above;
  }

  /** `above`: term that ends this one, if known. */
  end(why: string, above = 0): void {
    if (above > this.#above) this.#above = above;
    if (this.#ended.signal.aborted) return;
    this.#why = why;
    this.#world.logger.warn("the term of this partition manager ends", { pmTerm: this.pmTerm, why });
    this.#ended.abort();
    this.#running?.map.wakeAll();
    this.#again();
  }

  /** Resolves when the term has ended, with the reason. */
  async run(): Promise<string> {
    const signal = this.#ended.signal;
    const opened = await this.#open();
    if (!opened.ok) this.end(opened.failure.message, Number(opened.failure.details?.currentOwnerEpoch ?? 0));
    if (opened.ok && !signal.aborted) {
      this.#running = opened.value;
      this.#world.logger.info("became partition manager leader", { pmTerm: this.pmTerm, mapVersion: opened.value.map.current.version });
      await Promise.all([
        this.#look(opened.value),
        this.#probe(opened.value),
        this.#turns(opened.value),
        this.#accounts(opened.value),
        this.#balance(opened.value),
        opened.value.room.watch(this.#config.probeEveryMs, signal),
        opened.value.restored.run(opened.value.assigner, signal),
      ]);
    }
    await Promise.all(this.#tables.map((table) => table.close()));
    return this.#why;
  }

  async #open(): Promise<Outcome<Running>> {
    const [schema, table] = await Promise.all([this.#table("schema"), this.#table("map")]);
    if (!schema.ok) return schema;
    if (!table.ok) return table;
    const map = await MapState.open(this.#world, table.value);
    if (!map.ok) return map;
    const [schemas, ranges] = await Promise.all([writeSchemas(schema.value), writeFirstRanges(map.value)]);
    if (!schemas.ok) return schemas;
    if (!ranges.ok) return ranges;
    const { lockService, unreachableAfterMs, loadTimeoutMs, loadsAtOnceMax, heldQuestionMs } = this.#config;
    const { pmTerm } = this;
    const servers = new Servers(this.#world, { lockService, pmTerm, unreachableAfterMs, loadTimeoutMs, heldQuestionMs });
    const epochs = new OwnerEpochs(this.#store, this.pmTerm);
    const room = new ExtentRoom(this.#world, (timeoutMs) => this.#streams.lacks(timeoutMs));
    const assigner = new Assigner(this.#world, epochs, map.value, servers, {
      pmTerm: this.pmTerm,
      loadsAtOnceMax,
      heatOf: ({ rangeId }) => balancer.heatOf(rangeId),
      hasRoom: () => room.lacks.length === 0,
      again: () => this.#ask(),
      resolve: (range) => reshaper.resolve(range),
      end: (why, above) => this.end(why, above),
    });
    const reshaper: Reshaper = new Reshaper(
      this.#world,
      { epochs, map: map.value, servers, assigner, streams: this.#streams },
      { pmTerm: this.pmTerm, reshapeTimeoutMs: this.#config.reshapeTimeoutMs, end: (why) => this.end(why) },
    );
    const balancer: Balancer = new Balancer(this.#world, map.value, reshaper, balancePolicyOf(this.#config), () =>
      servers.leases.filter((lease) => isLive(lease) && !assigner.avoided.has(lease.server)).map(({ server }) => server),
    );
    const restored = new RestoredRanges(this.#world, { map: map.value, epochs, streams: this.#streams }, (why) => this.end(why));
    const waiting = await restored.find();
    if (!waiting.ok) return waiting;
    for (const range of waiting.value) assigner.release(range, { kind: "busy" });
    return ok({ map: map.value, servers, assigner, reshaper, balancer, room, restored });
  }

  async #table(name: "map" | "schema"): Promise<Outcome<OwnTable>> {
    if (this.#ended.signal.aborted) return refused("aborted", "notLeader", "the term ended");
    const table = await this.#openTable(name, this.pmTerm, (why) => this.end(why));
    if (table.ok) this.#tables.push(table.value);
    return table;
  }

  /**
   * Asks for the servers' leases: often while something is not served or a server is silent, so that the end of its lease is heard of at once; else
   * now and then. Where the lock service holds the question until there is news, only turns are as frequent.
   */
  async #look({ servers, assigner }: Running): Promise<void> {
    const signal = this.#ended.signal;
    const { clock, logger } = this.#world;
    const turn = () => {
      const { pollEveryMs } = this.#config;
      return assigner.calm && !servers.anySilent
        ? pause(clock, pollEveryMs, signal)
        : sleep(clock, Math.min(pollEveryMs, quickPollMs), signal);
    };
    while (!signal.aborted) {
      const asked = servers.look(signal);
      if (servers.hearsNews) {
        const answered = asked.then(() => "answered" as const);
        while ((await Promise.race([answered, turn()])) === "elapsed") this.#ask();
      }
      const looked = await asked;
      if (!looked.ok) logger.debug("the lock service did not say who holds leases", { reason: looked.failure.reason });
      this.#ask();
      if (servers.hearsNews) await sleep(clock, quickPollMs, signal);
      else await turn();
    }
  }

  /** Takes one step of load balance, if every range that can be served is, and there is room. */
  async #balance({ assigner, balancer, room }: Running): Promise<void> {
    const signal = this.#ended.signal;
    while (!signal.aborted) {
      await pause(this.#world.clock, this.#config.balanceEveryMs, signal);
      const may = this.#config.balance && assigner.calm && room.lacks.length === 0;
      if (!signal.aborted && may) await this.#untilEnd(balancer.step());
    }
  }

  /** Waits for a step, or the end of the term, after which the step comes to nothing; the lease is held until here. */
  #untilEnd(work: Promise<void>): Promise<void> {
    const { signal } = this.#ended;
    return new Promise((resolve, reject) => {
      const ended = (): void => resolve();
      signal.addEventListener("abort", ended, { once: true });
      work.finally(() => signal.removeEventListener("abort", ended)).then(resolve, reject);
    });
  }

  async #probe({ servers, assigner, balancer, map }: Running): Promise<void> {
    const signal = this.#ended.signal;
    while (!signal.aborted) {
      await pause(this.#world.clock, this.#config.probeEveryMs, signal);
      if (signal.aborted) return;
      await Promise.all(
        servers.leases.filter(isLive).map(async (lease) => {
          const loaded = assigner.loadedAt(lease.server);
          const allAnswered = !servers.anySilent;
          const serves = await servers.probe(lease);
          // Its host may be dead, with an extent node that has a replica of the map's log.
          if (allAnswered && servers.anySilent) map.touch();
          if (!serves.ok) return;
          const { partitions, load } = serves.value;
          assigner.served(lease.server, loaded, new Map(partitions.map((one) => [one.rangeId, one.ownerEpoch])));
          for (const { figures } of partitions) balancer.told(figures);
          if (load) balancer.toldOf(lease.server, load);
        }),
      );
      this.#ask();
    }
  }

  async #accounts({ map }: Running): Promise<void> {
    await insertAccounts(this.#world, map, this.#config.accounts, this.#ended.signal, ({ reason }) => {
      this.#accountsRefused = reason;
    });
    this.#accountsInserted = true;
  }

  /** Runs one turn of the assigner after another, whenever something was learned. */
  async #turns({ assigner }: Running): Promise<void> {
    const signal = this.#ended.signal;
    while (!signal.aborted) {
      if (!this.#asked) {
        await new Promise<void>((resolve) => {
          this.#again = resolve;
        });
      }
      this.#asked = false;
      if (!signal.aborted) await assigner.turn();
    }
  }

  #ask(): void {
    this.#asked = true;
    this.#again();
  }
}
