/**
 * Fences against what another stamp ships: a copy that is promoted takes nothing more of its primary before
 * (docs/design/geo-shipping.md "Promotion"). A front-end may have read the account's role before, and still let a shipment in.
 *
 * Invariants:
 * - A fence holds in memory before it is recorded, and is recorded before it counts: later owners, and children of splits and
 *   merges, have it.
 * - When a fence counts, every transaction that was decided before it is over (rule `geoPromotionFences`).
 * - A range keeps no fence or tenure without a key of it: a child leaves those of its siblings out.
 * - Tickets that this range gives behind a fence are far above those that it saw before: the primary of the copy may have given tickets to
 *   commits that were never shipped, and clients know them as ETags, incarnations and ids of messages.
 * - A fence or tenure that was not recorded is refused in memory, and counts for nothing else: `recordedTenure` leaves it out.
 *
 * Beside the fences stands the tenure of each account (@stamp/geo account-role.ts), kept in the same way: rows that were shipped to
 * an earlier copy of the account are refused, and a removal of the account ends where a later copy has begun.
 *
 * The lead of an account stands there, too: what is added to the range's tickets for rows of the account, so that they are above all that another
 * stamp gave to its rows. Tickets of other accounts do not change (rule `geoTicketsApart`). A lead only rises, and counts when it is durable.
 */
import { compareBytes, type Failed, type Failure, fromHex, type Outcome, ok, prefixEnd, refused, toHex } from "@stamp/base";
import { tenureOfCopy } from "@stamp/geo";
import type { GroupCommit } from "../commit/group-commit.ts";

/**
 * Fences of a range: by the hexadecimal bytes with which the fenced keys begin, the highest role epoch of which nothing is taken; by "tenure:" and
 * the same bytes, the tenure; by "lead:" and the same bytes, the lead of tickets.
 */
export type FencedEpochs = Readonly<Record<string, number>>;

interface FencedRange {
  readonly stored: FencedEpochs;
  /** Keys of the range; an empty `high` is the end of the table. */
  readonly keys: { readonly low: Uint8Array; readonly high: Uint8Array };
  readonly record: (fences: FencedEpochs) => Promise<Outcome<void>>;
  /** Tickets of the range, without leads. The next record keeps a raised ticket. */
  readonly tickets: Pick<GroupCommit, "lastTicket" | "raiseTicket">;
  /** Resolves when every transaction that began before is over. */
  readonly untilOver: () => Promise<void>;
  /** Returns why nothing is recorded any more; undefined: it is. */
  readonly ended: () => Failure | undefined;
}

/** Tickets that a promotion leaves out: more than a primary gives to what it can't ship, and so few that 2,000,000 promotions have room. */
const skippedTickets = 2 ** 32;
/** Addition to a lead beyond its need, so that leads are seldom recorded. */
const leadTickets = 2 ** 24;

/**
 * Highest ticket that another stamp may name. Tickets of ranges begin at 2^52 at most (docs/design/partition-layer.md) and are numbers below 2^53: promotions
 * and transactions have 2^51 below the highest one, and as many above it.
 */
export const shippedTicketMax: number = 2 ** 52 + 2 ** 51;

export class ShippedFences {
  readonly #range: FencedRange;
  #fences: FencedEpochs;
  #index: FenceIndex;
  /** Part of the fences that is durable. */
  #recorded: FencedEpochs;
  #leads: Prefixes;
  /** Leads that are being recorded, by their names. */
  readonly #leading = new Map<string, Promise<Outcome<void>>>();

  constructor(range: FencedRange) {
    this.#range = range;
    this.#fences = fencesWithin(range.stored, range.keys);
    this.#recorded = this.#fences;
    this.#index = indexOf(this.#fences);
    this.#leads = this.#index.leads;
  }

  /** Returns the number that is added to the range's tickets for rows of a key. */
  lead(key: Uint8Array): number {
    return Math.max(0, this.#leads.highest(key));
  }

  /** Gives no ticket up to this one any more to rows of keys that begin so. Resolves when that counts. */
  async leadAbove(prefix: Uint8Array, ticket: number): Promise<Outcome<void>> {
    const name = leadPrefix + toHex(prefix);
    for (;;) {
      const missing = ticket - this.#range.tickets.lastTicket - this.lead(prefix);
      if (missing <= 0) return ok();
      const leading = this.#leading.get(name) ?? this.#raise(name, this.lead(prefix) + missing + leadTickets);
      this.#leading.set(name, leading);
      const led = await leading.finally(() => this.#leading.delete(name));
      if (!led.ok) return led;
    }
  }

  /** Takes nothing more that was shipped under a role epoch up to this one, of keys that begin so. Resolves when that counts. */
  raise(prefix: Uint8Array, epoch: number): Promise<Outcome<void>> {
    const { tickets } = this.#range;
    return this.#raise(toHex(prefix), epoch, () => tickets.raiseTicket(tickets.lastTicket + skippedTickets));
  }

  /** Raises the tenure of keys that begin so. Resolves when it counts: no removal of an earlier tenure is under way. */
  raiseTenure(prefix: Uint8Array, tenure: number): Promise<Outcome<void>> {
    return this.#raise(tenureKey(prefix), tenure);
  }

  /** Returns the tenure of keys that begin so, which later owners have, too; 0: none is durable. */
  recordedTenure(prefix: Uint8Array): number {
    return this.#recorded[tenureKey(prefix)] ?? 0;
  }

  /** Returns the tenure of keys that begin so, durable or not; 0: none was told. */
  tenure(prefix: Uint8Array): number {
    return this.#fences[tenureKey(prefix)] ?? 0;
  }

  /** `whenOver` is called when every transaction that was decided before is over. */
  async #raise(key: string, number: number, whenOver?: () => void): Promise<Outcome<void>> {
    this.#fences = { ...this.#fences, [key]: Math.max(number, this.#fences[key] ?? 0) };
    this.#index = indexOf(this.#fences);
    await this.#range.untilOver();
    const ended = this.#range.ended();
    if (ended !== undefined) return { ok: false, failure: ended };
    whenOver?.();
    const fences = this.#fences;
    const recorded = await this.#range.record(fences);
    if (!recorded.ok) return recorded;
    this.#recorded = highestOf(this.#recorded, fences);
    this.#leads = indexOf(this.#recorded).leads;
    return recorded;
  }

  /** Refuses what was shipped of a key to a copy that operation `paired` began, if a later tenure began since; `paired` 0: not known. */
  refusesCopy(key: Uint8Array, paired: number): Failed | undefined {
    if (paired === 0) return undefined;
    if (this.#index.tenures.highest(key) <= tenureOfCopy(paired)) return undefined;
    const message = `shipped to the copy that operation ${paired} began, which was removed from this stamp since`;
    return refused("failedPrecondition", "staleRoleEpoch", message);
  }

  /** Refuses what was shipped of a key under a fenced role epoch. */
  refuses(key: Uint8Array, epoch: number): Failed | undefined {
    const fence = this.#index.epochs.highest(key);
    if (epoch > fence) return undefined;
    const message = `shipped under role epoch ${epoch}, behind the promotion of this stamp's copy, which ended role epoch ${fence}`;
    return refused("failedPrecondition", "staleRoleEpoch", message);
  }
}

/** Numbers of prefixes of keys: those of a key are found without a look at all. */
class Prefixes {
  /** Keyed by length of the prefix in hexadecimal digits, then prefix. */
  readonly #byLength = new Map<number, Map<string, number>>();

  add(prefix: string, number: number): void {
    const same = this.#byLength.get(prefix.length) ?? new Map<string, number>();
    this.#byLength.set(prefix.length, same.set(prefix, number));
  }

  /** Returns the highest number of the prefixes that the key begins with; -1: there is none. */
  highest(key: Uint8Array): number {
    if (this.#byLength.size === 0) return -1;
    const text = toHex(key);
    let highest = -1;
    for (const [length, numbers] of this.#byLength) highest = Math.max(highest, numbers.get(text.slice(0, length)) ?? -1);
    return highest;
  }
}

interface FenceIndex {
  readonly epochs: Prefixes;
  readonly tenures: Prefixes;
  readonly leads: Prefixes;
}

function indexOf(fences: FencedEpochs): FenceIndex {
  const index = { epochs: new Prefixes(), tenures: new Prefixes(), leads: new Prefixes() };
  for (const [key, number] of Object.entries(fences)) {
    if (key.startsWith(tenurePrefix)) index.tenures.add(prefixIn(key), number);
    else if (key.startsWith(leadPrefix)) index.leads.add(prefixIn(key), number);
    else index.epochs.add(key, number);
  }
  return index;
}

/** Leaves out what no key of the range begins with. */
function fencesWithin(fences: FencedEpochs, { low, high }: FencedRange["keys"]): FencedEpochs {
  const kept = Object.entries(fences).filter(([key]) => {
    const prefix = fromHex(prefixIn(key));
    if (prefix === undefined) return true;
    const end = prefixEnd(prefix);
    return (high.length === 0 || compareBytes(prefix, high) < 0) && (end === undefined || compareBytes(low, end) < 0);
  });
  return Object.fromEntries(kept);
}

/** Returns the higher fences of two: records may end in another order than they began. */
function highestOf(a: FencedEpochs, b: FencedEpochs): FencedEpochs {
  const highest = { ...a };
  for (const [key, number] of Object.entries(b)) highest[key] = Math.max(number, a[key] ?? 0);
  return highest;
}

const tenurePrefix = "tenure:";
const leadPrefix = "lead:";
/** Returns the hexadecimal bytes in the name of a fence, tenure or lead. */
const prefixIn = (key: string): string => key.slice(key.indexOf(":") + 1);
const tenureKey = (prefix: Uint8Array): string => tenurePrefix + toHex(prefix);
