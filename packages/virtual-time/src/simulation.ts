/**
 * A deterministic simulation of many processes: virtual time, one seed, one agenda. Between two events all microtasks drain, so what
 * an event sets off inside a process is over (or waits for another event) before the next one runs (`drainLoop`).
 */
import { AssertionError, allRules, assert, Prng, type Rules } from "@stamp/base";
import type { Role, World } from "@stamp/ports";
import { drainLoop } from "./kernel/drain-loop.ts";
import { EventLog } from "./kernel/event-log.ts";
import type { SimEvent } from "./kernel/event-queue.ts";
import { EventQueue } from "./kernel/event-queue.ts";
import { Failpoints } from "./kernel/failpoints.ts";
import { Priorities } from "./kernel/priorities.ts";
import type { RoleFactory, Scheduler } from "./kernel/process.ts";
import { type CrashOptions, type ProcessOptions, SimulationError, type SimulationOptions } from "./options.ts";
import type { SimDiskState } from "./ports/disk-state.ts";
import type { KeyValueState } from "./ports/key-value.ts";
import { defaultNetworkOptions, Network } from "./ports/network.ts";
import { Processes } from "./processes.ts";

/** A workload's judgement. Everything else that fails a run is a bug that was noticed earlier. */
export { BrokenPromise } from "@stamp/histories";

let running: Simulation | undefined;

export class Simulation {
  readonly seed: number;
  readonly log: EventLog;
  readonly network: Network;
  readonly failpoints: Failpoints;
  /** Random numbers for the body and for fault schedules. */
  readonly prng: Prng;
  readonly rules: Rules;
  /** Number of events that were run. */
  events = 0;
  readonly #root: Prng;
  readonly #options: SimulationOptions;
  readonly #queue = new EventQueue();
  readonly #processes: Processes;
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
      failpoint: (incarnation, name) => this.#processes.failpoint(incarnation, name),
    };
    this.#processes = new Processes({
      options,
      rules: this.rules,
      prng: this.#root,
      network: this.network,
      failpoints: this.failpoints,
      log: this.log,
      scheduler: this.#scheduler,
      note: (kind, name, detail) => this.#log(kind, name, detail),
      later: (delayUs, kind, detail, work) => this.#later(delayUs, kind, detail, work),
      fail: (error, where) => this.#fail(error, where),
    });
  }

  get overEtcd(): boolean {
    return this.#options.overEtcd === true;
  }

  get replicatesMetadata(): boolean {
    return this.#options.replicatesMetadata === true;
  }

  get nowMs(): number {
    return this.#nowUs / 1000;
  }

  // ---- processes

  /** Adds a process, at the address of its name. It starts with the simulation, or at once if that runs. */
  addProcess(name: string, factory: RoleFactory, options: ProcessOptions = {}): void {
    const process = this.#processes.make(name, factory, options.restartAfterMs);
    if (!options.down) this.#later(0, "start", name, () => this.#processes.start(process));
  }

  /** Returns the ports of a process; one without a role is made when there is none of this name. */
  world(name: string): World {
    return this.#processes.world(name);
  }

  isUp(name: string): boolean {
    return this.#processes.get(name).incarnation !== undefined;
  }

  isPaused(name: string): boolean {
    return this.#processes.get(name).incarnation?.paused === true;
  }

  /** Returns the role object of a running process. */
  role(name: string): Role | undefined {
    return this.#processes.get(name).incarnation?.role;
  }

  get processNames(): string[] {
    return this.#processes.all.map(({ name }) => name);
  }

  /** Returns the number of starts of a process. */
  starts(name: string): number {
    return this.#processes.get(name).starts;
  }

  crash(name: string, options: CrashOptions = {}): void {
    this.#processes.crash(name, options);
  }

  restart(name: string): void {
    this.#processes.restart(name);
  }

  /** Returns the world of a tool on the machine of a process that does not run: its disk, its stores, a clock. */
  offline(name: string): World {
    return this.#processes.offline(name);
  }

  /** Ends the process cleanly, as SIGTERM does; it stays down. */
  stop(name: string): Promise<void> {
    return this.#processes.stop(name);
  }

  pause(name: string): void {
    this.#processes.pause(name);
  }

  /** Suspends a whole machine: its monotonic clock stands still until `resume`, its wall clock does not. */
  suspend(name: string): void {
    this.#processes.suspend(name);
  }

  resume(name: string): void {
    this.#processes.resume(name);
  }

  disk(name: string): SimDiskState {
    return this.#processes.get(name).disk;
  }

  keyValue(name: string): KeyValueState {
    return this.#processes.get(name).keyValue;
  }

  /** Gives processes ranks from now on, which change a few times within `withinMs`. */
  explorePriorities(changes: number, withinMs: number): void {
    this.#priorities = new Priorities(this.prng.fork(), { changes, withinMs, nowMs: this.nowMs });
    this.#priorities.begin(this.#processes.all);
    this.#log("priorities", "", this.#ranks());
  }

  endPriorities(): void {
    this.#priorities = undefined;
    for (const process of this.#processes.all) process.lagUs = 0;
  }

  #ranks(): string {
    return this.#processes.all.map((process) => `${process.name} ${process.lagUs}`).join(", ");
  }

  jumpWallClock(name: string, byMs: number): void {
    this.#log("clock-jump", name, String(byMs));
    this.#processes.get(name).wallOffsetMs += byMs;
  }

  // ---- network

  /** Cuts all ways between processes of two groups; `oneWay`: only those from `a` to `b`. */
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

  /** Breaks all connections from `from` to `to`, at `from` first; false: none is open. */
  breakConnections(from: string, to: string): boolean {
    const incarnation = this.#processes.get(from).incarnation;
    const open = [...(incarnation?.opened ?? [])].filter(({ address }) => this.network.hostOf(address) === to);
    if (open.length > 0) this.#log("break", from, to);
    for (const connection of open) incarnation?.schedule(0, "break", to, () => connection.breakAtClient());
    return open.length > 0;
  }

  /** Ends cuts between two processes. */
  healPair(one: string, other: string): void {
    this.#log("heal", one, other);
    this.network.heal(one, other);
    this.network.heal(other, one);
  }

  /** Ends all partitions of the network. */
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

  /** Runs work beside the body; its failure is the run's. */
  background(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#fail(error, "background"));
  }

  /**
   * Runs `work` inside a running process, in an event of its own after a message's delay, as if `from` had sent it: not at all when the
   * process is dead or the way is cut. What it resolves to goes the same way back, or never.
   */
  ask<T>(from: string, to: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const server = this.#processes.get(to).incarnation;
      const client = this.#processes.get(from).incarnation;
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

  /** Adds an entry to the event log. */
  note(what: string, detail = ""): void {
    this.#log("note", what, detail);
  }

  /** Runs the body on virtual time to its end. One simulation at a time. */
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
      for (const each of this.#processes.all) if (each.incarnation) each.incarnation.alive = false;
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
    const fallen = this.#priorities?.change(this.nowMs, this.#processes.all);
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

  // ---- small things

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
