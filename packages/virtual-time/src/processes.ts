/**
 * The simulated processes: made, started, killed, paused and started again. Each incarnation has a world of its own, over
 * the disk and the stores that its process keeps.
 */
import { assert, FailureError, type Prng, type Rules } from "@stamp/base";
import { DiskError, type World } from "@stamp/ports";
import type { EventLog } from "./kernel/event-log.ts";
import type { Failpoints } from "./kernel/failpoints.ts";
import { type FailpointEffect, Incarnation, type RoleFactory, type Scheduler, type SimProcess } from "./kernel/process.ts";
import { type CrashOptions, SimulationError, type SimulationOptions } from "./options.ts";
import { SimClock } from "./ports/clock.ts";
import { digest } from "./ports/digest.ts";
import { SimDisk } from "./ports/disk.ts";
import { defaultDiskOptions, SimDiskState } from "./ports/disk-state.ts";
import { KeyValueState, SimKeyValueStores } from "./ports/key-value.ts";
import { SimLogger } from "./ports/logger.ts";
import type { Network } from "./ports/network.ts";
import { SimRandom } from "./ports/random.ts";
import { SimTransport } from "./ports/transport.ts";

/** The simulation around the processes. */
export interface Kernel {
  readonly options: SimulationOptions;
  readonly rules: Rules;
  /** Random numbers, forked for each process. */
  readonly prng: Prng;
  readonly network: Network;
  readonly failpoints: Failpoints;
  readonly log: EventLog;
  readonly scheduler: Scheduler;
  /** Adds an entry to the event log, now. */
  note(kind: string, name: string, detail: string): void;
  /** Runs work that belongs to no process. */
  later(delayUs: number, kind: string, detail: string, work: () => void): void;
  /** Fails the run with an error. */
  fail(error: unknown, where: string): void;
}

const bugNames = /(Assertion|Type|Range|Reference)Error/;

export class Processes {
  readonly #kernel: Kernel;
  readonly #byName = new Map<string, SimProcess>();
  readonly #worlds = new WeakMap<Incarnation, World>();

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  get all(): SimProcess[] {
    return [...this.#byName.values()];
  }

  get(name: string): SimProcess {
    const found = this.#byName.get(name);
    if (!found) throw new SimulationError(`no process ${name}`);
    return found;
  }

  /** Returns the ports of a process; one without a role is made when there is none of this name. */
  world(name: string): World {
    const process = this.#byName.get(name) ?? this.make(name, undefined, undefined);
    if (!process.incarnation) {
      assert(process.factory === undefined, `${name} is not running`);
      this.start(process);
    }
    return this.#worldOf(process.incarnation as Incarnation);
  }

  crash(name: string, options: CrashOptions = {}): void {
    const process = this.get(name);
    const incarnation = process.incarnation;
    if (options.stayDown) process.heldDown = true;
    if (!incarnation) return;
    const lose = options.unsynced ? options.unsynced === "lost" : process.prng.chance(0.5);
    const silent = options.silent ?? (lose && process.prng.chance(0.5));
    this.#kernel.note("crash", name, `${lose ? "power lost" : "killed"}${silent ? ", silent" : ""}`);
    this.#kill(incarnation, lose, silent);
    this.#supervise(process);
  }

  restart(name: string): void {
    const process = this.get(name);
    process.heldDown = false;
    if (!process.incarnation) this.start(process);
  }

  /** Returns the world of a tool on the machine of a process that does not run: its disk, its stores, a clock. */
  offline(name: string): World {
    const process = this.get(name);
    assert(process.incarnation === undefined, `${name} is running`);
    return this.#worldOf(new Incarnation(process, process.starts, this.#kernel.scheduler));
  }

  /** Ends the process cleanly, as SIGTERM does; it stays down. */
  async stop(name: string): Promise<void> {
    const process = this.get(name);
    const { incarnation } = process;
    process.heldDown = true;
    if (!incarnation) return;
    await incarnation.role?.stop();
    if (!incarnation.alive) return;
    this.#kernel.note("stop", name, "");
    this.#kill(incarnation, false, false);
  }

  pause(name: string): void {
    const incarnation = this.get(name).incarnation;
    if (!incarnation || incarnation.paused) return;
    this.#kernel.note("pause", name, "");
    incarnation.paused = true;
    for (const connection of incarnation.accepted) connection.serverPaused();
  }

  /** Suspends a whole machine: its monotonic clock stands still until `resume`, its wall clock does not. */
  suspend(name: string): void {
    const incarnation = this.get(name).incarnation;
    if (!incarnation || incarnation.paused) return;
    this.pause(name);
    this.#kernel.note("suspend", name, "");
    incarnation.suspendedSinceUs = incarnation.nowUs;
  }

  resume(name: string): void {
    const incarnation = this.get(name).incarnation;
    if (!incarnation?.paused) return;
    this.#kernel.note("resume", name, "");
    incarnation.resume(this.#kernel.network.prng.chance(0.5));
  }

  /** Adds a process, which does not run yet. */
  make(name: string, factory: RoleFactory | undefined, restartAfterMs: number | undefined): SimProcess {
    assert(!this.#byName.has(name), `process ${name} is there already`);
    const { options } = this.#kernel;
    const prng = this.#kernel.prng.fork();
    const ppm = options.clockDriftPpmMax ?? 0;
    const disk = new SimDiskState({ ...defaultDiskOptions, ...options.disk }, prng.fork());
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
      clockStartUs: prng.below((options.clockStartSpreadMs ?? 1e9) + 1) * 1000,
      wallOffsetMs: 0,
      suspendedUs: 0,
    };
    this.#byName.set(name, made);
    return made;
  }

  start(process: SimProcess): void {
    if (process.incarnation) return;
    process.starts += 1;
    this.#kernel.network.silentHosts.delete(process.name);
    const incarnation = new Incarnation(process, process.starts, this.#kernel.scheduler);
    process.incarnation = incarnation;
    this.#kernel.note("started", process.name, `incarnation ${process.starts}`);
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

  /** Handles the end of a role that could not start: a failure ends the process, as in production; a bug ends the run. */
  #exited(incarnation: Incarnation, error: unknown): void {
    if (!incarnation.alive) return;
    if (!(error instanceof FailureError) && !(error instanceof DiskError)) {
      this.#kernel.fail(error, `start of ${incarnation.name}`);
      return;
    }
    this.#kernel.note("exit", incarnation.name, String(error));
    this.#kill(incarnation, false, false);
    this.#supervise(incarnation.process);
  }

  #worldOf(incarnation: Incarnation): World {
    const known = this.#worlds.get(incarnation);
    if (known) return known;
    const { process } = incarnation;
    const { options, network, log, rules } = this.#kernel;
    const clock = new SimClock(incarnation);
    const onBug = (error: unknown, where: string): void => {
      // A dead process throws into the void: it may have ended itself because of this very error.
      if (options.bugsFail !== false && incarnation.alive) this.#kernel.fail(error, `${incarnation.name}: ${where}`);
    };
    const transport = new SimTransport(incarnation, network, () => clock.monotonicMs(), onBug);
    const world: World = {
      clock,
      random: new SimRandom(process.prng.fork()),
      disk: new SimDisk(incarnation, process.disk),
      keyValue: new SimKeyValueStores(incarnation, process.keyValue),
      transport,
      // A simulated server of another kind is a process as every other one.
      foreign: { client: ({ address }, service) => transport.client(address, service), close: async () => {} },
      digest,
      logger: new SimLogger(log, incarnation),
      rules,
      fatal: (reason) => this.#fatal(incarnation, reason),
    };
    this.#worlds.set(incarnation, world);
    return world;
  }

  /** Asks the seed whether it strikes the process at this point, and carries out what concerns the whole process. */
  failpoint(incarnation: Incarnation, name: string): FailpointEffect | undefined {
    const { failpoints, network } = this.#kernel;
    const action = failpoints.at(name);
    if (action === undefined) return undefined;
    this.#kernel.note("failpoint", incarnation.name, `${action} at ${name}`);
    const { process } = incarnation;
    switch (action) {
      case "kill":
      case "power":
        this.crash(process.name, { unsynced: action === "kill" ? "kept" : "lost" });
        return { kind: "dead" };
      case "pause":
        this.pause(process.name);
        this.#kernel.later(network.prng.float() ** 2 * (failpoints.pauseMaxMs * 1_000), "failpoint", process.name, () => {
          if (incarnation.alive) this.resume(process.name);
        });
        return { kind: "delay", delayUs: 1 };
      case "delay":
        return { kind: "delay", delayUs: Math.ceil(network.prng.float() ** 2 * failpoints.delayMaxMs * 1_000) };
      case "error":
        return { kind: "error" };
    }
  }

  #fatal(incarnation: Incarnation, reason: string): void {
    if (!incarnation.alive) return;
    this.#kernel.note("fatal", incarnation.name, reason);
    // A role that catches everything and ends its process must not hide a bug behind that.
    if (bugNames.test(reason) && this.#kernel.options.bugsFail !== false)
      this.#kernel.fail(new SimulationError(reason), `fatal of ${incarnation.name}`);
    this.#kill(incarnation, false, false);
    this.#supervise(incarnation.process);
  }

  #kill(incarnation: Incarnation, lose: boolean, silent: boolean): void {
    const { process } = incarnation;
    incarnation.alive = false;
    process.incarnation = undefined;
    if (silent) this.#kernel.network.silentHosts.add(process.name);
    const pages = process.disk.crash(lose);
    const batches = process.keyValue.crash(lose);
    if (pages + batches > 0) this.#kernel.note("lost", process.name, `${pages} changed pages and names, ${batches} batches`);
    for (const connection of incarnation.accepted) connection.serverDied(!silent);
    for (const connection of incarnation.opened) connection.clientDied(!silent);
  }

  #supervise(process: SimProcess): void {
    if (process.restartAfterMs === undefined) return;
    this.#kernel.later(process.restartAfterMs * 1000, "supervisor", process.name, () => {
      if (!process.heldDown) this.start(process);
    });
  }
}
