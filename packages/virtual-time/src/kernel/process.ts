/**
 * A simulated process and its lives. Everything an incarnation waits for comes to it as an event that it owns: when it is dead, those
 * events are dropped, so its promises stay pending for ever and nothing it does afterwards has an effect; while it is paused they are
 * put off and come late, all at once, as after SIGCONT.
 */
import type { Prng } from "@stamp/base";
import type { Role, World } from "@stamp/ports";
import type { Connection } from "../ports/connection.ts";
import type { SimDiskState } from "../ports/disk-state.ts";
import type { KeyValueState } from "../ports/key-value.ts";
import type { SimTransport } from "../ports/transport.ts";
import type { SimEvent } from "./event-queue.ts";
import { shapeOf } from "./failpoints.ts";

export type RoleFactory = (world: World) => Role;

/** Functions of the simulation that an incarnation of a process needs. */
export interface Scheduler {
  readonly nowUs: number;
  schedule(delayUs: number, owner: Incarnation | undefined, kind: string, detail: string, work: () => void): SimEvent;
  cancel(event: SimEvent): void;
  reschedule(event: SimEvent): void;
  /** Strikes the process if the seed says so; the caller carries the result out. */
  failpoint(incarnation: Incarnation, name: string): FailpointEffect | undefined;
}

/** Effect of a failpoint. `dead`: the process is gone, nothing follows. */
export type FailpointEffect = { readonly kind: "dead" } | { readonly kind: "error" } | { readonly kind: "delay"; readonly delayUs: number };

export interface SimProcess {
  readonly name: string;
  /** Name of the process without its number. */
  readonly kind: string;
  readonly factory: RoleFactory | undefined;
  /** Time until the supervisor starts the process again, in milliseconds; undefined: never, only `restart` does. */
  restartAfterMs: number | undefined;
  readonly disk: SimDiskState;
  readonly keyValue: KeyValueState;
  readonly prng: Prng;
  /** Live incarnation; undefined: the process is dead. */
  incarnation: Incarnation | undefined;
  /** True if the supervisor leaves the process down until `restart`. */
  heldDown: boolean;
  starts: number;
  /** This machine's monotonic clock runs at this rate of the virtual time, from this start. */
  readonly clockRate: number;
  readonly clockStartUs: number;
  wallOffsetMs: number;
  /** Virtual time that this machine was suspended in all: its monotonic clock stood still. */
  suspendedUs: number;
  /** Delay of all events of the process, in microseconds (exploration by priorities). */
  lagUs: number;
}

export class Incarnation {
  readonly process: SimProcess;
  readonly number: number;
  readonly #scheduler: Scheduler;
  alive = true;
  paused = false;
  /** Virtual time at which its machine was suspended; undefined: it is not. Such an incarnation is paused, too. */
  suspendedSinceUs: number | undefined;
  role: Role | undefined;
  transport: SimTransport | undefined;
  /** Connections that the process opened, and those that others opened to it. */
  readonly opened: Set<Connection> = new Set();
  readonly accepted: Set<Connection> = new Set();
  #held: SimEvent[] = [];

  constructor(process: SimProcess, number: number, scheduler: Scheduler) {
    this.process = process;
    this.number = number;
    this.#scheduler = scheduler;
  }

  get name(): string {
    return this.process.name;
  }

  get nowUs(): number {
    return this.#scheduler.nowUs;
  }

  schedule(delayUs: number, kind: string, detail: string, work: () => void): SimEvent | undefined {
    return this.alive ? this.#scheduler.schedule(delayUs + this.process.lagUs, this, kind, detail, work) : undefined;
  }

  failpoint(point: string, detail: string): FailpointEffect | undefined {
    return this.alive ? this.#scheduler.failpoint(this, `${this.process.kind} ${point} ${shapeOf(detail)}`) : { kind: "dead" };
  }

  /**
   * Like `later`, with a failpoint before the work is done and one between that and the moment when the process hears
   * of it. `failed` makes the error of a call that an error strikes: nothing was done.
   */
  persist<T>(delayUs: number, kind: string, detail: string, work: () => T, failed: () => Error): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (act: () => void, delayedUs: number): void => {
        if (delayedUs > 0) this.schedule(delayedUs, `${kind}-late`, detail, act);
        else act();
      };
      const run = (): void => {
        try {
          const value = work();
          const after = this.failpoint(`${kind} after`, detail);
          if (after?.kind !== "dead") settle(() => resolve(value), after?.kind === "delay" ? after.delayUs : 0);
        } catch (error) {
          reject(error);
        }
      };
      this.schedule(delayUs, kind, detail, () => {
        const before = this.failpoint(`${kind} before`, detail);
        if (before?.kind === "dead") return;
        if (before?.kind === "error") reject(failed());
        else settle(run, before?.kind === "delay" ? before.delayUs : 0);
      });
    });
  }

  cancel(event: SimEvent | undefined): void {
    if (event) this.#scheduler.cancel(event);
  }

  /** Returns the result of `work`, done `delayUs` later; never for a dead one. */
  later<T>(delayUs: number, kind: string, detail: string, work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.schedule(delayUs, kind, detail, () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  hold(event: SimEvent): void {
    this.#held.push(event);
  }

  /** `timersLast`: the process was stopped while it waited for I/O, so arrivals are handled before due timers. */
  resume(timersLast: boolean): void {
    this.paused = false;
    if (this.suspendedSinceUs !== undefined) this.process.suspendedUs += this.nowUs - this.suspendedSinceUs;
    this.suspendedSinceUs = undefined;
    const held = this.#held;
    this.#held = [];
    const isTimer = (event: SimEvent): boolean => event.kind === "timer";
    const inOrder = timersLast ? [...held.filter((event) => !isTimer(event)), ...held.filter(isTimer)] : held;
    for (const event of inOrder) if (event.work) this.#scheduler.reschedule(event);
  }
}
