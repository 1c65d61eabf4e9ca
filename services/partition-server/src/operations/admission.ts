/**
 * Admission of operations (@stamp/admission): every operation on an object is let in, waits behind its own account and PartitionName, or is
 * refused. What it acts on is promises; who is next is decided by the gate.
 */
import { type Effect, Gate, type GateFigures, type GateOptions, type OfferedOperation, type Refusal, type Ticket } from "@stamp/admission";
import { type Failed, type Outcome, ok, Prng, refused } from "@stamp/base";
import type { Clock } from "@stamp/ports";

/** Function to call when the operation is over. */
export type LeaveAdmission = () => void;

type Entering = (entered: Outcome<LeaveAdmission>) => void;

export class Admission {
  readonly #clock: Clock;
  readonly #gate: Gate<Entering>;

  constructor(clock: Clock, options: GateOptions) {
    this.#clock = clock;
    this.#gate = new Gate(new Prng(1), options);
  }

  get figures(): GateFigures {
    const figures = this.#gate.figures(this.#clock.monotonicMs());
    const heaviest = figures.heaviest.map(({ name, share }) => ({ name: readable(name), share }));
    return { ...figures, heaviest, shed: figures.shed.map(readable) };
  }

  /** Lets an operation begin. Where there is room it does so at once, so that operations begin in the order of their arrival. */
  enter(asked: OfferedOperation): Outcome<LeaveAdmission> | Promise<Outcome<LeaveAdmission>> {
    let entered: Outcome<LeaveAdmission> | undefined;
    let entering: Entering = (outcome) => {
      entered = outcome;
    };
    this.#act(this.#gate.offer(this.#clock.monotonicMs(), asked, (outcome) => entering(outcome)));
    if (entered !== undefined) return entered;
    return new Promise((resolve) => {
      entering = resolve;
    });
  }

  #act(effects: readonly Effect<Entering>[]): void {
    for (const effect of effects) {
      if (effect.kind === "start") effect.ticket.item(ok(this.#leaving(effect.ticket)));
      else effect.item(busy(effect.refusal));
    }
  }

  #leaving(ticket: Ticket<Entering>): LeaveAdmission {
    return () => this.#act(this.#gate.ended(this.#clock.monotonicMs(), ticket));
  }
}

/** Returns the parts of a key as text for people. */
const readable = (name: string): string =>
  name
    .split(/[^\x20-\x7e]+/)
    .filter((part) => part !== "")
    .join("/");

const messages: Readonly<Record<Refusal["why"], string>> = {
  "account waits too long": "this server has more to do than it can, and operations of this account wait too long already",
  "partition waits too long": "this server has more to do than it can, and operations of this partition wait too long already",
  "too many wait": "too many operations wait in this server, and most of them are of this account",
};

const busy = ({ why, retryAfterMs }: Refusal): Failed =>
  refused("resourceExhausted", "throttled", messages[why], { retryAfterSeconds: String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) });

/** Bytes of a key that the throttle looks at: longer keys that begin alike are one to it. */
const keyBytesSeen = 256;

/** Returns the first bytes, at most 256. Added one by one: passed as arguments they take twenty times as long. */
export function latin1(bytes: Uint8Array, lengthBytes: number = bytes.length): string {
  const end = Math.min(lengthBytes, keyBytesSeen);
  let text = "";
  for (let at = 0; at < end; at++) text += String.fromCharCode(bytes[at] as number);
  return text;
}

/** Returns the bytes with which all keys of the key's account begin, as text. */
export const accountPrefix = (key: Uint8Array): string => latin1(key, key.indexOf(0) + 1);
