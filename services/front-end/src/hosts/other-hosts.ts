/**
 * Watches the stamp's other hosts for this front-end: whether its host can reach any of them, and their wall clocks.
 *
 *   every second ── Status of a process of each of three other hosts ──▶ cutOff ──▶ Router: requests are refused at once
 *                                                                    └─▶ outvotedBy ──▶ /ready
 *
 * Invariants:
 * - A host is known by the addresses of lock services and of the partition servers in the map. If all processes are on this host, nothing is
 *   asked, and `cutOff` is false.
 * - This host is cut off after two rounds in a row without any answer. The second round asks every process of three hosts. One
 *   answer ends it. If only one other host is known, its silence says nothing: that host may be dead, and this one serves alone.
 * - A host that has not answered for a minute has no vote about clocks. Clients count more than hosts: a front-end that accepted a signed request
 *   has the clock of that client. While its clock was not set since, it keeps ready, whatever most hosts say. So if the clocks of most hosts are
 *   set wrongly at once, those with the true time go on.
 */
import { clockSkewMs } from "@stamp/azure-rest";
import { type Address, type Clock, sleep, type World, within } from "@stamp/ports";
import { Status } from "@stamp/wire";
import { outvotedBy } from "./outvoted.ts";

const everyMs = 1_000;
const askTimeoutMs = 1_000;
/** Time between two rounds while no host answers. */
const unansweredEveryMs = 500;
const roundsWithoutAnswer = 2;
const hostsAtOnce = 3;
/** Number of other hosts whose silence means that this one is cut off. */
const silentHostsMin = 2;
const clockCountsForMs = 60_000;
const noAnswer: ReadonlySet<string> = new Set(["connectFailed", "connectionLost", "timeout"]);

export interface OtherHostsOptions {
  /** Addresses of processes of the stamp, on this host and on others. */
  readonly processes: () => readonly Address[];
  /** Address of this process. */
  readonly own: () => Address;
}

interface HeardClock {
  /** Its wall clock minus the time that passed here: compared with the own one when it is needed, which may have been set meanwhile. */
  readonly offsetMs: number;
  /** Time by the monotonic clock. */
  readonly heardMs: number;
}

const hostOf = (address: Address): string => address.slice(0, address.lastIndexOf(":"));

export class OtherHosts {
  readonly #world: World;
  readonly #options: OtherHostsOptions;
  readonly #stop = new AbortController();
  #asking: Promise<void> = Promise.resolve();
  #rounds = 0;
  /** Rounds in a row in which no host answered. */
  #unanswered = 0;
  readonly #clocks = new Map<string, HeardClock>();
  #known: readonly string[] = [];
  /** Wall clock minus passed time when a signed request was last accepted; undefined before the first one. */
  #provenOffsetMs: number | undefined;
  #outvotedMs: number | undefined;

  constructor(world: World, options: OtherHostsOptions) {
    this.#world = world;
    this.#options = options;
  }

  start(): void {
    this.#asking = this.#ask();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    // A process that is asked does not hold up the end.
    await within(this.#world.clock, 100, this.#asking);
  }

  /** True if no other host of the stamp answers, and there are several. */
  get cutOff(): boolean {
    return this.#unanswered >= roundsWithoutAnswer && this.#known.length >= silentHostsMin;
  }

  isHere(address: Address): boolean {
    return hostOf(address) === hostOf(this.#options.own());
  }

  /** Notes a signed request whose date and signature fit. */
  accepted(): void {
    this.#provenOffsetMs = offsetMs(this.#world.clock);
  }

  /** Reasons why a client should ask another front-end, for people. */
  get waitingFor(): string[] {
    const waits: string[] = [];
    if (this.cutOff) waits.push(`an answer of another host: none of ${this.#known.join(", ")} answers`);
    if (this.#outvotedMs !== undefined && !this.#isProven()) {
      const way = this.#outvotedMs > 0 ? "ahead" : "behind";
      const seconds = Math.round(Math.abs(this.#outvotedMs) / 1_000);
      waits.push(`a clock like most hosts have: theirs are ${seconds} s ${way}, so signed requests are refused here`);
    }
    return waits;
  }

  #isProven(): boolean {
    return this.#provenOffsetMs !== undefined && Math.abs(offsetMs(this.#world.clock) - this.#provenOffsetMs) <= clockSkewMs;
  }

  async #ask(): Promise<void> {
    const { clock, logger } = this.#world;
    while (!this.#stop.signal.aborted) {
      const before = this.waitingFor;
      const answered = await this.#round();
      this.#unanswered = answered ? 0 : this.#unanswered + 1;
      this.#outvotedMs = outvotedBy(this.#votes(), clockSkewMs);
      const now = this.waitingFor;
      if (now.length > before.length) logger.warn("clients should ask another front-end", { waitingFor: now });
      else if (now.length < before.length) logger.info("clients can ask this front-end again", { waitingFor: now });
      const restMs = answered ? everyMs : this.#unanswered < roundsWithoutAnswer ? 0 : unansweredEveryMs;
      await sleep(clock, restMs, this.#stop.signal);
    }
  }

  /** True if a host answered, or there is none. After a round without an answer every process of the hosts is asked, else one of each. */
  async #round(): Promise<boolean> {
    const own = hostOf(this.#options.own());
    const byHost = Map.groupBy(new Set(this.#options.processes()), hostOf);
    byHost.delete(own);
    this.#known = [...byHost.keys()];
    for (const host of this.#clocks.keys()) if (!byHost.has(host)) this.#clocks.delete(host);
    if (byHost.size === 0) return true;
    const round = this.#rounds++;
    const asked = Array.from({ length: Math.min(hostsAtOnce, byHost.size) }, (_, i) => {
      const host = this.#known[(round * hostsAtOnce + i) % this.#known.length] as string;
      const processes = byHost.get(host) as Address[];
      const some = this.#unanswered > 0 ? processes : [processes[round % processes.length] as Address];
      return some.map((address) => this.#askOne(host, address));
    });
    return (await Promise.all(asked.flat())).includes(true);
  }

  async #askOne(host: string, address: Address): Promise<boolean> {
    const { clock, transport } = this.#world;
    const beganMs = clock.monotonicMs();
    const status = await transport.client(address, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs });
    // A process of an older release refuses a front-end, and is there.
    if (!status.ok) return !noAnswer.has(status.failure.reason);
    const heardMs = clock.monotonicMs();
    const wallMs = Number(status.value.wallMs);
    const halfWayMs = (heardMs - beganMs) / 2;
    if (wallMs !== 0) this.#clocks.set(host, { offsetMs: wallMs + halfWayMs - heardMs - clock.suspendedMs(), heardMs });
    return true;
  }

  #votes(): (number | undefined)[] {
    const { clock } = this.#world;
    const sinceMs = clock.monotonicMs() - clockCountsForMs;
    const ownMs = offsetMs(clock);
    return this.#known.map((host) => {
      const heard = this.#clocks.get(host);
      return heard === undefined || heard.heardMs < sinceMs ? undefined : heard.offsetMs - ownMs;
    });
  }
}

/** Stays the same unless somebody sets the clock. */
const offsetMs = (clock: Clock): number => clock.wallMs() - clock.monotonicMs() - clock.suspendedMs();
