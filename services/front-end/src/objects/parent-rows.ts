/**
 * Reads of the rows of containers, tables and queues (rule containerRowReadAfterArrival, model/container.pml). Every request that needs one
 * uses a read of its row that was SENT after the request arrived: at once when none is in flight, else the next one, which all that wait share. Nothing
 * is cached. The row's incarnation goes into the key of everything inside, so what was put under a deleted one is never seen again.
 */
import type { Outcome } from "@stamp/base";
import { type World, within } from "@stamp/ports";
import type { CallLimits, ResultKind } from "../routing/router.ts";

export type ReadParentRow = (account: string, name: string, limits: CallLimits) => Promise<Outcome<ResultKind>>;

interface Reading {
  /** Read of the row that is in flight. */
  readonly current: Promise<Outcome<ResultKind>>;
  /** The read that is sent when that one is answered, for all that came meanwhile. */
  next: Promise<Outcome<ResultKind>> | undefined;
}

export class ParentRows {
  readonly #world: World;
  readonly #readRow: ReadParentRow;
  readonly #readTimeoutMs: number;
  readonly #readings = new Map<string, Reading>();
  /** Only with the rule switched off. */
  readonly #stale = new Map<string, Outcome<ResultKind>>();
  reads = 0;

  constructor(world: World, readRow: ReadParentRow, options: { readonly readTimeoutMs: number }) {
    this.#world = world;
    this.#readRow = readRow;
    this.#readTimeoutMs = options.readTimeoutMs;
  }

  /** Returns undefined when the deadline passed first. */
  read(account: string, name: string, limits: CallLimits): Promise<Outcome<ResultKind> | undefined> {
    const key = `${account}/${name}`;
    if (!this.#world.rules.on("containerRowReadAfterArrival")) {
      const stale = this.#stale.get(key);
      if (stale) return Promise.resolve(stale);
    }
    return within(this.#world.clock, limits.deadlineMs - this.#world.clock.monotonicMs(), this.#join(key, account, name));
  }

  #join(key: string, account: string, name: string): Promise<Outcome<ResultKind>> {
    const reading = this.#readings.get(key);
    if (!reading) return this.#send(key, account, name);
    const send = (): Promise<Outcome<ResultKind>> => this.#send(key, account, name);
    reading.next ??= reading.current.then(send, send);
    return reading.next;
  }

  #send(key: string, account: string, name: string): Promise<Outcome<ResultKind>> {
    this.reads++;
    const deadlineMs = this.#world.clock.monotonicMs() + this.#readTimeoutMs;
    const current = this.#readRow(account, name, { deadlineMs });
    const reading: Reading = { current, next: undefined };
    this.#readings.set(key, reading);
    const ended = (): void => {
      if (reading.next === undefined) this.#readings.delete(key);
    };
    void current.then((outcome) => {
      ended();
      if (!this.#world.rules.on("containerRowReadAfterArrival") && outcome.ok && outcome.value.case !== "error") {
        this.#stale.set(key, outcome);
      }
    }, ended);
    return current;
  }
}
