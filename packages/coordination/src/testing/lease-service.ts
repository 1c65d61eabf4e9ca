/** A lease as the service keeps it, on virtual time, with the faults of a network: for tests. Codes as in "Lease Blob" of the REST reference. */
import type { Leadership, LeaseStore } from "../lease/lease-store.ts";
import type { ProcessClock, VirtualClock } from "./virtual-clock.ts";

export type Fault =
  /** The request does not arrive, and there is no answer. */
  | "cut"
  /** The request takes effect, and there is no answer. */
  | "answer lost"
  | "busy"
  | undefined;

export class LeaseService {
  readonly #clock: VirtualClock;
  #holder: { readonly id: string; endsMs: number } | undefined;
  #record: { leader: string; fencingToken: bigint } | undefined;
  /** Requests that took effect, by kind. */
  readonly served: Record<"acquire" | "renew" | "release" | "claim", number> = { acquire: 0, renew: 0, release: 0, claim: 0 };

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  get leased(): boolean {
    return this.#holder !== undefined && this.#clock.monotonicMs() < this.#holder.endsMs;
  }

  get fencingToken(): bigint {
    return this.#record?.fencingToken ?? 0n;
  }

  /** Takes the lease away, as Break Lease with a period of 0 does. */
  break(): void {
    this.#holder = undefined;
  }

  /** The store of one process. `fault` is asked for each request, `delayMs` for each way of it. */
  store(process: ProcessClock, fault: (request: string) => Fault = () => undefined, delayMs: () => number = () => 0): LeaseStore {
    const send = <T>(request: keyof LeaseService["served"], effect: () => T): Promise<T> =>
      process.seen(this.#send(request, effect, fault(request), delayMs));
    return {
      name: "leases/test",
      acquire: (id, seconds) =>
        send("acquire", () => {
          if (this.leased && this.#holder?.id !== id) return false;
          this.#holder = { id, endsMs: this.#clock.monotonicMs() + seconds * 1000 };
          this.#seconds = seconds;
          return true;
        }),
      renew: (id) =>
        send("renew", () => {
          // Also an expired lease can be renewed while nobody else has acquired it.
          if (this.#holder?.id !== id) throw refusal(409, "LeaseIdMismatchWithLeaseOperation");
          this.#holder.endsMs = this.#clock.monotonicMs() + this.#seconds * 1000;
        }),
      release: (id) =>
        send("release", () => {
          if (this.#holder?.id !== id) throw refusal(409, "LeaseIdMismatchWithLeaseOperation");
          this.#holder = undefined;
        }),
      claim: (id, leader) =>
        send("claim", () => {
          if (!this.leased || this.#holder?.id !== id) throw refusal(412, "LeaseLost");
          this.#record = { leader, fencingToken: this.fencingToken + 1n };
          return this.#record.fencingToken;
        }),
      read: async (): Promise<Leadership | undefined> => (this.#record === undefined ? undefined : { ...this.#record, held: this.leased }),
    };
  }

  #seconds = 15;

  async #send<T>(request: keyof LeaseService["served"], effect: () => T, fault: Fault, delayMs: () => number): Promise<T> {
    const way = () => new Promise<void>((resolve) => this.#clock.after(delayMs(), resolve));
    await way();
    if (fault === "cut") return await new Promise<never>(() => {});
    if (fault === "busy") throw refusal(503, "ServerBusy");
    const value = effect();
    this.served[request]++;
    if (fault === "answer lost") return await new Promise<never>(() => {});
    await way();
    return value;
  }
}

/** An error as the SDK throws it. */
export function refusal(statusCode: number, code: string): Error {
  return Object.assign(new Error(code), { name: "RestError", statusCode, code });
}
