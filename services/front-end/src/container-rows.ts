/**
 * Reads of container rows (rule containerRowReadAfterArrival, model/container.pml). Every request that needs a container uses a read of
 * its row that was SENT after the request arrived: at once when none is in flight, else the next one, which all that wait share. Nothing
 * is cached. The row's incarnation goes into the key of everything inside, so what was put under a deleted container is never seen again.
 */
import type { Outcome } from "@stamp/base";
import { type World, within } from "@stamp/ports";
import type { CallLimits, ResultKind, Router } from "./router.ts";

interface Reading {
  /** In flight. */
  readonly current: Promise<Outcome<ResultKind>>;
  /** Sent when that one is answered, for all that came meanwhile. */
  next: Promise<Outcome<ResultKind>> | undefined;
}

export class ContainerRows {
  readonly #world: World;
  readonly #router: Router;
  readonly #readTimeoutMs: number;
  readonly #readings = new Map<string, Reading>();
  /** Only with the rule switched off. */
  readonly #stale = new Map<string, Outcome<ResultKind>>();
  reads = 0;

  constructor(world: World, router: Router, options: { readonly readTimeoutMs: number }) {
    this.#world = world;
    this.#router = router;
    this.#readTimeoutMs = options.readTimeoutMs;
  }

  /** Undefined when the deadline passed first. */
  read(account: string, container: string, limits: CallLimits): Promise<Outcome<ResultKind> | undefined> {
    const key = `${account}/${container}`;
    if (!this.#world.rules.on("containerRowReadAfterArrival")) {
      const stale = this.#stale.get(key);
      if (stale) return Promise.resolve(stale);
    }
    return within(this.#world.clock, limits.deadlineMs - this.#world.clock.monotonicMs(), this.#join(key, account, container));
  }

  #join(key: string, account: string, container: string): Promise<Outcome<ResultKind>> {
    const reading = this.#readings.get(key);
    if (!reading) return this.#send(key, account, container);
    reading.next ??= reading.current.then(() => this.#send(key, account, container));
    return reading.next;
  }

  #send(key: string, account: string, container: string): Promise<Outcome<ResultKind>> {
    this.reads++;
    const deadlineMs = this.#world.clock.monotonicMs() + this.#readTimeoutMs;
    const current = this.#router.execute({ case: "getContainer", value: { account, container } }, { deadlineMs });
    const reading: Reading = { current, next: undefined };
    this.#readings.set(key, reading);
    void current.then((outcome) => {
      if (reading.next === undefined) this.#readings.delete(key);
      if (!this.#world.rules.on("containerRowReadAfterArrival") && outcome.ok && outcome.value.case === "container") {
        this.#stale.set(key, outcome);
      }
    });
    return current;
  }
}
