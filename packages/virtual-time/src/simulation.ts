/**
 * A deterministic simulation of many processes: virtual time, one seed, one agenda. Between two events all microtasks drain, so what
 * an event sets off inside a process is over (or waits for another event) before the next one runs (`drainLoop`).
 */
import type { Rules } from "@stamp/base";
import { AssertionError, allRules, assert, FailureError, Prng } from "@stamp/base";
import type { Role, World } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import { drainLoop } from "./kernel/drain-loop.ts";
import { EventLog } from "./kernel/event-log.ts";
import type { SimEvent } from "./kernel/event-queue.ts";
import { EventQueue } from "./kernel/event-queue.ts";
import { Failpoints } from "./kernel/failpoints.ts";
import { Priorities } from "./kernel/priorities.ts";
import type { RoleFactory, Scheduler, SimProcess, Struck } from "./kernel/process.ts";
import { Incarnation } from "./kernel/process.ts";
import { SimClock } from "./ports/clock.ts";
import { digest } from "./ports/digest.ts";
import { SimDisk } from "./ports/disk.ts";
import type { DiskOptions } from "./ports/disk-state.ts";
import { defaultDiskOptions, SimDiskState } from "./ports/disk-state.ts";
import { KeyValueState, SimKeyValueStores } from "./ports/key-value.ts";
import { SimLogger } from "./ports/logger.ts";
import type { NetworkOptions } from "./ports/network.ts";
import { defaultNetworkOptions, Network } from "./ports/network.ts";
import { SimRandom } from "./ports/random.ts";
import { SimTransport } from "./ports/transport.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly rules?: Rules;
  readonly network?: Partial<NetworkOptions>;
  readonly disk?: Partial<DiskOptions>;
  /** Each process's monotonic clock is off by up to this many parts in a million. */
  readonly clockDriftPpmMax?: number;
  /** The monotonic clocks of processes start this far apart; 0: all show the same. */
  readonly clockStartSpreadMs?: number;
  /** The stamp has several lock services over a simulated etcd, not one over its own disk. */
  readonly overEtcd?: boolean;
  /** Limit of virtual time; a run that reaches it fails. */
  readonly timeLimitMs?: number;
  readonly eventsMax?: number;
  /** A handler that throws what is no `FailureError` fails the run. Off only where a test throws on purpose. */
  readonly bugsFail?: boolean;
  /** Entries kept of the event log; 0 for all. */
  readonly logKeptMax?: number;
  readonly onLogLine?: (line: string) => void;
}

export interface ProcessOptions {
  /** The supervisor starts it again so long after it died. Without it, it stays dead until `restart`. */
  readonly restartAfterMs?: number;
  /** It does not start before `restart`. */
  readonly down?: boolean;
}

export interface CrashOptions {
  /** `lost`: the machine lost power, any part of what was not synced is gone. `kept`: only the process died. Default: by the seed. */
  readonly unsynced?: "lost" | "kept";
  /** The machine says nothing to its peers any more, as without power. Default: by the seed when power was lost. */
  readonly silent?: boolean;
  /** Not started again by the supervisor. */
  readonly stayDown?: boolean;
}

export class SimulationError extends Error {
  override readonly name = "SimulationError";
}

/** A workload's judgement. Everything else that fails a run is a bug that was noticed earlier. */
export { BrokenPromise } from "@stamp/histories";

const bugNames = /(Assertion|Type|Range|Reference)Error/;
let running: Simulation | undefined;

export class Simulation {
  readonly seed: number;
  readonly log: EventLog;
  readonly network: Network;
  readonly failpoints: Failpoints;
  /** For the body and for fault schedules. */
  readonly prng: Prng;
  readonly rules: Rules;
  /** Events that were run. */
  events = 0;
  readonly #root: Prng;
  readonly #options: SimulationOptions;
  readonly #queue = new EventQueue();
  readonly #processes = new Map<string, SimProcess>();
  readonly #worlds = new WeakMap<Incarnation, World>();
  readonly #scheduler: Scheduler;
  #nowUs = 0;
  #failure: Error | undefined;
  #priorities: Priorities | undefined;

  constructor(options: SimulationOptions) {
    this.seed = options.seed;
    this.#options = options;
    this.#root = new Prng(options.seed);
    this.prng = this.#root.fork();
    this.rules = options.rules ?? allRules;
    this.log = new EventLog({ ...(options.logKeptMax === undefined ? {} : { keptMax: options.logKeptMax }), onLine: options.onLogLine });
    this.network = new Network({ ...defaultNetworkOptions, ...options.network }, this.#root.fork());
    this.failpoints = new Failpoints(this.#root.fork());
    const now = (): number => this.#nowUs;
    this.#scheduler = {
      get nowUs() {
        return now();
      },
      schedule: (delayUs, owner, kind, detail, work) => this.#queue.add(this.#nowUs + Math.max(0, delayUs), owner, kind, detail, work),
      cancel: (event) => this.#queue.cancel(event),
      reschedule: (event) => this.#queue.again(event, this.#nowUs),
      failpoint: (incarnation, name) => this.#failpoint(incarnation, name),
    };
  }

  get overEtcd(): boolean {
    return this.#options.overEtcd === true;
  }

  get nowMs(): number {
    return this.#nowUs / 1000;
  }

  // ---- processes

  /** The process starts when the simulation runs (or at once when it does). A process has an address of its name. */
  addProcess(name: string, factory: RoleFactory, options: ProcessOptions = {}): void {
    const process = this.#makeProcess(name, factory, options.restartAfterMs);
    if (!options.down) this.#later(0, "start", name, () => this.#start(process));
  }

  /** The ports of a process; one without a role is made when there is none of this name. */
  world(name: string): World {
    const process = this.#processes.get(name) ?? this.#makeProcess(name, undefined, undefined);
    if (!process.incarnation) {
      assert(process.factory === undefined, `${name} is not running`);
      this.#start(process);
    }
    return this.#worldOf(process.incarnation as Incarnation);
  }

  isUp(name: string): boolean {
    return this.#process(name).incarnation !== undefined;
  }

  isPaused(name: string): boolean {
    return this.#process(name).incarnation?.paused === true;
  }

  /** The role object of a running process. */
  role(name: string): Role | undefined {
    return this.#process(name).incarnation?.role;
  }

  get processNames(): string[] {
    return [...this.#processes.keys()];
  }

  crash(name: string, options: CrashOptions = {}): void {
    const process = this.#process(name);
    const incarnation = process.incarnation;
    if (options.stayDown) process.heldDown = true;
    if (!incarnation) return;
    const lose = options.unsynced ? options.unsynced === "lost" : process.prng.chance(0.5);
    const silent = options.silent ?? (lose && process.prng.chance(0.5));
    this.#log("crash", name, `${lose ? "power lost" : "killed"}${silent ? ", silent" : ""}`);
    this.#kill(incarnation, lose, silent);
    this.#supervise(process);
  }

  restart(name: string): void {
    const process = this.#process(name);
    process.heldDown = false;
    if (!process.incarnation) this.#start(process);
  }

  /** Returns the world of a tool on the machine of a process that does not run: its disk, its stores, a clock. */
  offline(name: string): World {
    const process = this.#process(name);
    assert(process.incarnation === undefined, `${name} is running`);
    return this.#worldOf(new Incarnation(process, process.starts, this.#scheduler));
  }

  /** How often it was started so far. */
  starts(name: string): number {
    return this.#process(name).starts;
  }

  /** Ends it cleanly, as SIGTERM does; it stays down. */
  async stop(name: string): Promise<void> {
    const process = this.#process(name);
    const { incarnation } = process;
    process.heldDown = true;
    if (!incarnation) return;
    await incarnation.role?.stop();
    if (!incarnation.alive) return;
    this.#log("stop", name, "");
    this.#kill(incarnation, false, false);
  }

  pause(name: string): void {
    const incarnation = this.#process(name).incarnation;
    if (!incarnation || incarnation.paused) return;
    this.#log("pause", name, "");
    incarnation.paused = true;
    for (const connection of incarnation.accepted) connection.serverPaused();
  }

  /** Like a pause, of the whole machine: its monotonic clock stands still until `resume`, its wall clock does not. */
  suspend(name: string): void {
    const incarnation = this.#process(name).incarnation;
    if (!incarnation || incarnation.paused) return;
    this.pause(name);
    this.#log("suspend", name, "");
    incarnation.suspendedSinceUs = incarnation.nowUs;
  }

  resume(name: string): void {
    const incarnation = this.#process(name).incarnation;
    if (!incarnation?.paused) return;
    this.#log("resume", name, "");
    incarnation.resume(this.network.prng.chance(0.5));
  }

  disk(name: string): SimDiskState {
    return this.#process(name).disk;
  }

  keyValue(name: string): KeyValueState {
    return this.#process(name).keyValue;
  }

  /** Gives processes ranks from now on, which change a few times within `withinMs`. */
  explorePriorities(changes: number, withinMs: number): void {
    this.#priorities = new Priorities(this.prng.fork(), { changes, withinMs, nowMs: this.nowMs });
    this.#priorities.begin([...this.#processes.values()]);
    this.#log("priorities", "", this.#ranks());
  }

  endPriorities(): void {
    this.#priorities = undefined;
    for (const process of this.#processes.values()) process.lagUs = 0;
  }

  #ranks(): string {
    return [...this.#processes.values()].map((process) => `${process.name} ${process.lagUs}`).join(", ");
  }

  jumpWallClock(name: string, byMs: number): void {
    this.#log("clock-jump", name, String(byMs));
    this.#process(name).wallOffsetMs += byMs;
  }

  // ---- network

  /** Cuts every way from a process of one group to one of the other; `oneWay`: only from `a` to `b`. */
  partition(a: readonly string[], b: readonly string[], options: { readonly oneWay?: boolean } = {}): void {
    this.#log("partition", a.join("+"), `${options.oneWay ? "->" : "<->"} ${b.join("+")}`);
    for (const from of a) {
      for (const to of b) {
        if (from === to) continue;
        this.network.cut(from, to);
        if (!options.oneWay) this.network.cut(to, from);
      }
    }
  }

  /** Whatever `from` has open to `to` breaks, at `from` first; false when nothing is open. */
  breakConnections(from: string, to: string): boolean {
    const incarnation = this.#process(from).incarnation;
    const open = [...(incarnation?.opened ?? [])].filter(({ address }) => this.network.hostOf(address) === to);
    if (open.length > 0) this.#log("break", from, to);
    for (const connection of open) incarnation?.schedule(0, "break", to, () => connection.breakAtClient());
    return open.length > 0;
  }

  /** Ends what is cut between these two. */
  healPair(one: string, other: string): void {
    this.#log("heal", one, other);
    this.network.heal(one, other);
    this.network.heal(other, one);
  }

  /** Ends every partition. */
  heal(): void {
    this.#log("heal", "", "");
    this.network.heal();
  }

  // ---- time

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#later(Math.ceil(delayMs * 1000), "sleep", "", resolve);
    });
  }

  /** Waits until `condition` holds; fails the run when it does not within `timeoutMs`. */
  async until(condition: () => boolean | Promise<boolean>, timeoutMs: number, what: string): Promise<void> {
    const endMs = this.nowMs + timeoutMs;
    while (!(await condition())) {
      if (this.nowMs >= endMs) throw new SimulationError(`not within ${timeoutMs} ms: ${what}`);
      await this.sleep(10);
    }
  }

  /** Work that goes on beside the body; when it fails, the run does. */
  background(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#fail(error, "background"));
  }

  /**
   * Runs `work` inside a running process, in an event of its own after a message's delay, as if `from` had sent it: not at all when the
   * process is dead or the way is cut. What it resolves to goes the same way back, or never.
   */
  ask<T>(from: string, to: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const server = this.#process(to).incarnation;
      const client = this.#process(from).incarnation;
      if (!server || !client) return;
      const open = (a: string, b: string): boolean => !this.network.isCut(a, b);
      server.schedule(this.network.delayUs(), "ask", from, () => {
        if (!open(from, to)) return;
        work().then((value) => {
          if (server.alive && open(to, from)) client.schedule(this.network.delayUs(), "asked", to, () => resolve(value));
        }, reject);
      });
    });
  }

  /** An entry in the event log. */
  note(what: string, detail = ""): void {
    this.#log("note", what, detail);
  }

  /** Runs the body on virtual time until it is through. One simulation at a time. */
  async run<T>(body: () => Promise<T>): Promise<T> {
    assert(running === undefined, "another simulation is running in this process");
    running = this;
    let result: { readonly value: T } | undefined;
    try {
      this.#later(0, "body", "", () => {
        body().then(
          (value) => {
            result = { value };
          },
          (error: unknown) => this.#fail(error, "body"),
        );
      });
      await this.#loop(() => result !== undefined);
      if (this.#failure) throw this.#failure;
      return (result as unknown as { readonly value: T }).value;
    } finally {
      for (const each of this.#processes.values()) if (each.incarnation) each.incarnation.alive = false;
      running = undefined;
    }
  }

  #loop(finished: () => boolean): Promise<void> {
    const timeLimitUs = (this.#options.timeLimitMs ?? 6 * 3600_000) * 1000;
    const eventsMax = this.#options.eventsMax ?? 200_000_000;
    const step = (): boolean => {
      if (this.#failure || finished()) return false;
      if (!this.#runNext()) {
        this.#fail(new SimulationError("deadlock: nothing is left to happen and the body waits"), "kernel");
      } else if (this.#nowUs > timeLimitUs) {
        this.#fail(new SimulationError(`virtual time limit of ${timeLimitUs / 1000} ms`), "kernel");
      } else if (this.events > eventsMax) {
        this.#fail(new SimulationError(`more than ${eventsMax} events`), "kernel");
      }
      return true;
    };
    return drainLoop(step, (error) => this.#fail(error, "unhandled rejection"));
  }

  /** Runs one event that has an effect; false when there is none. */
  #runNext(): boolean {
    for (;;) {
      const event = this.#queue.take();
      if (!event) return false;
      this.#nowUs = Math.max(this.#nowUs, event.timeUs);
      const { owner } = event;
      if (owner && !owner.alive) continue;
      if (owner?.paused) {
        owner.hold(event);
        continue;
      }
      this.#perform(event);
      return true;
    }
  }

  #perform(event: SimEvent): void {
    const fallen = this.#priorities?.change(this.nowMs, [...this.#processes.values()]);
    if (fallen !== undefined) this.#log("falls", fallen, "to the lowest rank");
    const work = event.work as () => void;
    event.work = undefined;
    this.events += 1;
    this.log.add(this.#nowUs, event.kind, event.owner?.name ?? "", event.detail);
    try {
      work();
    } catch (error) {
      this.#fail(error, `event ${event.kind} of ${event.owner?.name ?? "the world"}`);
    }
  }

  // ---- lives

  #makeProcess(name: string, factory: RoleFactory | undefined, restartAfterMs: number | undefined): SimProcess {
    assert(!this.#processes.has(name), `process ${name} is there already`);
    const prng = this.#root.fork();
    const ppm = this.#options.clockDriftPpmMax ?? 0;
    const disk = new SimDiskState({ ...defaultDiskOptions, ...this.#options.disk }, prng.fork());
    const made: SimProcess = {
      name,
      factory,
      restartAfterMs,
      prng,
      disk,
      keyValue: new KeyValueState(disk, prng.fork()),
      incarnation: undefined,
      kind: name.replace(/-\d+$/, ""),
      lagUs: 0,
      heldDown: false,
      starts: 0,
      clockRate: 1 + ((prng.float() * 2 - 1) * ppm) / 1e6,
      clockStartUs: prng.below((this.#options.clockStartSpreadMs ?? 1e9) + 1) * 1000,
      wallOffsetMs: 0,
      suspendedUs: 0,
    };
    this.#processes.set(name, made);
    return made;
  }

  #start(process: SimProcess): void {
    if (process.incarnation) return;
    process.starts += 1;
    this.network.silentHosts.delete(process.name);
    const incarnation = new Incarnation(process, process.starts, this.#scheduler);
    process.incarnation = incarnation;
    this.#log("started", process.name, `incarnation ${process.starts}`);
    const world = this.#worldOf(incarnation);
    if (!process.factory) return;
    incarnation.schedule(0, "main", "", () => {
      const factory = process.factory as RoleFactory;
      const exited = (error: unknown): void => this.#exited(incarnation, error);
      const role = factory(world);
      incarnation.role = role;
      role.start().catch(exited);
    });
  }

  /** A role could not start: a failure ends the process, as in production; a bug ends the run. */
  #exited(incarnation: Incarnation, error: unknown): void {
    if (!incarnation.alive) return;
    if (!(error instanceof FailureError) && !(error instanceof DiskError)) {
      this.#fail(error, `start of ${incarnation.name}`);
      return;
    }
    this.#log("exit", incarnation.name, String(error));
    this.#kill(incarnation, false, false);
    this.#supervise(incarnation.process);
  }

  #worldOf(incarnation: Incarnation): World {
    const known = this.#worlds.get(incarnation);
    if (known) return known;
    const { process } = incarnation;
    const clock = new SimClock(incarnation);
    const onBug = (error: unknown, where: string): void => {
      // A dead process throws into the void: it may have ended itself because of this very error.
      if (this.#options.bugsFail !== false && incarnation.alive) this.#fail(error, `${incarnation.name}: ${where}`);
    };
    const transport = new SimTransport(incarnation, this.network, () => clock.monotonicMs(), onBug);
    const world: World = {
      clock,
      random: new SimRandom(process.prng.fork()),
      disk: new SimDisk(incarnation, process.disk),
      keyValue: new SimKeyValueStores(incarnation, process.keyValue),
      transport,
      // A simulated server of another kind is a process as every other one.
      foreign: { client: ({ address }, service) => transport.client(address, service), close: async () => {} },
      digest,
      logger: new SimLogger(this.log, incarnation),
      rules: this.rules,
      fatal: (reason) => this.#fatal(incarnation, reason),
    };
    this.#worlds.set(incarnation, world);
    return world;
  }

  #failpoint(incarnation: Incarnation, name: string): Struck | undefined {
    const action = this.failpoints.at(name);
    if (action === undefined) return undefined;
    this.#log("failpoint", incarnation.name, `${action} at ${name}`);
    const { process } = incarnation;
    switch (action) {
      case "kill":
      case "power":
        this.crash(process.name, { unsynced: action === "kill" ? "kept" : "lost" });
        return { kind: "dead" };
      case "pause":
        this.pause(process.name);
        this.#later(this.network.prng.float() ** 2 * (this.failpoints.pauseMaxMs * 1_000), "failpoint", process.name, () => {
          if (incarnation.alive) this.resume(process.name);
        });
        return { kind: "delay", delayUs: 1 };
      case "delay":
        return { kind: "delay", delayUs: Math.ceil(this.network.prng.float() ** 2 * this.failpoints.delayMaxMs * 1_000) };
      case "error":
        return { kind: "error" };
    }
  }

  #fatal(incarnation: Incarnation, reason: string): void {
    if (!incarnation.alive) return;
    this.#log("fatal", incarnation.name, reason);
    // A role that catches everything and ends its process must not hide a bug behind that.
    if (bugNames.test(reason) && this.#options.bugsFail !== false) this.#fail(new SimulationError(reason), `fatal of ${incarnation.name}`);
    this.#kill(incarnation, false, false);
    this.#supervise(incarnation.process);
  }

  #kill(incarnation: Incarnation, lose: boolean, silent: boolean): void {
    const { process } = incarnation;
    incarnation.alive = false;
    process.incarnation = undefined;
    if (silent) this.network.silentHosts.add(process.name);
    const pages = process.disk.crash(lose);
    const batches = process.keyValue.crash(lose);
    if (pages + batches > 0) this.#log("lost", process.name, `${pages} changed pages and names, ${batches} batches`);
    for (const connection of incarnation.accepted) connection.serverDied(!silent);
    for (const connection of incarnation.opened) connection.clientDied(!silent);
  }

  #supervise(process: SimProcess): void {
    if (process.restartAfterMs === undefined) return;
    this.#later(process.restartAfterMs * 1000, "supervisor", process.name, () => {
      if (!process.heldDown) this.#start(process);
    });
  }

  // ---- small things

  #process(name: string): SimProcess {
    const found = this.#processes.get(name);
    if (!found) throw new SimulationError(`no process ${name}`);
    return found;
  }

  #later(delayUs: number, kind: string, detail: string, work: () => void): void {
    this.#scheduler.schedule(delayUs, undefined, kind, detail, work);
  }

  #log(kind: string, name: string, detail: string): void {
    this.log.add(this.#nowUs, kind, name, detail);
  }

  #fail(error: unknown, where: string): void {
    if (this.#failure) return;
    const what = error instanceof Error ? error.message : String(error);
    this.#failure = new SimulationError(`seed ${this.seed}, ${this.nowMs.toFixed(3)} ms, ${where}: ${what}`, { cause: error });
    if (error instanceof AssertionError) this.log.add(this.#nowUs, "assertion", "", what);
  }
}
