/**
 * The network between simulated processes: who listens where, which directions are cut, how long a message takes.
 *
 * Faults: a cut direction holds messages back (as TCP does); when it heals in time they come late, in order, else the connection is
 * given up by keep-alive on each side for itself. A connection breaks by itself with `breakChance` a message, or turns silent in one
 * direction with `silenceChance`. A crashed machine answers with a reset, or not at all. Nothing is ever delivered twice or out of
 * order within one connection; what an old connection still carries may arrive after messages of the one that replaced it.
 */
import type { DescService } from "@bufbuild/protobuf";
import type { Prng } from "@stamp/base";
import type { Address } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";
import type { Pipe } from "./pipe.ts";

export interface NetworkOptions {
  /** Time of one way, in microseconds: uniform between the two, and with `slowChance` up to `slowUs` more. */
  readonly delayMinUs: number;
  readonly delayMaxUs: number;
  readonly slowChance: number;
  readonly slowUs: number;
  /** Chance that a message breaks the connection. */
  readonly breakChance: number;
  readonly silenceChance: number;
  /** A connection on which nothing comes through for this long is given up. */
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  /**
   * Latest arrival of bytes on a connection that its caller gave up, in milliseconds; also behind those of the next
   * one.
   */
  readonly lingerMs: number;
  /**
   * Encode and decode every message, as over a real wire; without it they are passed by reference. A payload that its handler gave back is
   * overwritten at once.
   */
  readonly roundTrip: boolean;
}

export const defaultNetworkOptions: NetworkOptions = {
  delayMinUs: 50,
  delayMaxUs: 250,
  slowChance: 0,
  slowUs: 50_000,
  breakChance: 0,
  silenceChance: 0,
  keepAliveMs: 4000,
  connectTimeoutMs: 2000,
  lingerMs: 0,
  roundTrip: false,
};

export type Method = DescService["methods"][number];

export interface SimListener {
  readonly address: Address;
  readonly incarnation: Incarnation;
  /** Keyed by `package.Service/Method`. */
  readonly methods: ReadonlyMap<string, ServedMethod>;
  open: boolean;
}

export interface ServedMethod {
  readonly method: Method;
  // biome-ignore lint/suspicious/noExplicitAny: handlers of any method; `served` checked their types.
  readonly handler: (...args: any[]) => any;
}

export class Network {
  options: NetworkOptions;
  readonly prng: Prng;
  readonly listeners: Map<Address, SimListener> = new Map();
  /** Machine that served an address last, alive or not: a cut concerns the machine. */
  readonly #hosts = new Map<Address, string>();
  /** Machines that are off: they don't even refuse. */
  readonly silentHosts: Set<string> = new Set();
  readonly #cuts = new Set<string>();
  readonly #stalled = new Set<Pipe>();
  /** Time that each message of one direction takes more, in microseconds: by `from>to`, names of processes. */
  readonly slowLinks: Map<string, number> = new Map();
  /** Payloads whose memory handlers gave back; only with `roundTrip`. */
  payloadsGivenBack = 0;
  #portNext = 40_000;
  #connectionNext = 1;

  constructor(options: NetworkOptions, prng: Prng) {
    this.options = options;
    this.prng = prng;
  }

  listen(listener: SimListener): void {
    this.listeners.set(listener.address, listener);
    this.#hosts.set(listener.address, listener.incarnation.name);
  }

  hostOf(address: Address): string {
    return this.#hosts.get(address) ?? address;
  }

  nextPort(): number {
    return this.#portNext++;
  }

  nextConnection(): number {
    return this.#connectionNext++;
  }

  cut(from: string, to: string): void {
    this.#cuts.add(`${from}>${to}`);
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.size > 0 && this.#cuts.has(`${from}>${to}`);
  }

  heal(from?: string, to?: string): void {
    if (from === undefined || to === undefined) this.#cuts.clear();
    else this.#cuts.delete(`${from}>${to}`);
    for (const pipe of [...this.#stalled]) {
      if (this.isCut(pipe.from.name, pipe.to.name)) continue;
      this.#stalled.delete(pipe);
      pipe.goOn();
    }
  }

  stalled(pipe: Pipe): void {
    this.#stalled.add(pipe);
  }

  forget(pipe: Pipe): void {
    this.#stalled.delete(pipe);
  }

  /** Returns the time that a message from one process to another takes now, in microseconds. */
  linkDelayUs(from: string, to: string): number {
    const delayUs = this.delayUs();
    return this.slowLinks.size === 0 ? delayUs : delayUs + (this.slowLinks.get(`${from}>${to}`) ?? 0);
  }

  delayUs(): number {
    const { delayMinUs, delayMaxUs, slowChance, slowUs } = this.options;
    const usual = delayMinUs + this.prng.below(delayMaxUs - delayMinUs + 1);
    return slowChance > 0 && this.prng.chance(slowChance) ? usual + this.prng.below(slowUs) : usual;
  }
}

const keys = new WeakMap<Method, string>();

/** Returns the name of a method: `package.Service/Method`. */
export function methodKey(method: Method): string {
  let key = keys.get(method);
  if (key === undefined) {
    key = `${method.parent.typeName}/${method.name}`;
    keys.set(method, key);
  }
  return key;
}
