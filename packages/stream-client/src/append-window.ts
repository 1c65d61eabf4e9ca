/**
 * The owner's side of appending to one stream, as a pure machine: events in, effects out (design/stream-layer.md, Append and Seal;
 * model/append.pml, clients).
 *
 *     submit ──► waiting ──send──► sent (in flight, in offset order) ──acknowledged──► settled
 *                   ▲                  │ first failure: nothing is sent any more, SealAndAllocate
 *                   ├── not below the ─┤ below the sealed length: settled, it did happen
 *                   │   sealed length: sent again, in order, in the next extent
 *                   └── `overloaded` ──┘ the primary did not take it: nothing is sent until all in flight is answered; after a pause it,
 *                       and those behind it, which the gap refused, are sent again at the same offsets
 *                       `messageTooLarge`, `badRequest`: no node will ever take it. It is rejected instead of sent again, the extent stays
 *                       `diskFull`: the primary did not take it, and the extent is left. It can be taken back until there is a next extent
 *
 * Invariants:
 *  - Appends are sent, and settled, in the order they were submitted.
 *  - An append is sent to the next extent only when the sealed length of the last one says that it is not there: so no append is ever
 *    below two sealed lengths, and none is lost.
 *  - Every append carries the offset at which it must land; offsets of one extent are given without gaps.
 *  - Whoever hears `staleOwnerEpoch` is fenced for ever: appends that were sent have an unknown outcome, the others did not happen.
 */
import type { Failure } from "@stamp/base";
import { frameBytes, frameHeaderBytes } from "@stamp/extent";
import type { Place } from "./types.ts";

export interface WindowLimits {
  readonly extentTargetBytes: number;
  readonly inFlightBytesMax: number;
  readonly inFlightAppendsMax: number;
}

/** One append. `item` is the shell's. */
export interface PendingAppend<T> {
  readonly item: T;
  /** Payload length of each block. */
  readonly blocksBytes: readonly number[];
  /** Length of the append in an extent with frame headers, in bytes. */
  readonly extentBytes: number;
  /** Place to which the append was sent last. */
  readonly at: { readonly extentId: number; readonly offsetBytes: number } | undefined;
  /** True if the append was sent once: its outcome is not certainly "no" until a sealed length says so. */
  readonly sent: boolean;
}

export type WindowEffect<T> =
  | { readonly kind: "send"; readonly append: PendingAppend<T>; readonly extentId: number; readonly offsetBytes: number }
  /**
   * Ask for the sealed length of this extent (0: there is none) and for its successor; repeat until `changed` or `fence`. `complete`:
   * it is full, everything sent to it is acknowledged, and nothing more will be sent.
   */
  | { readonly kind: "change"; readonly extentId: number; readonly complete: boolean }
  /** The extent fills up: its successor will be wanted soon. Once for each extent. */
  | { readonly kind: "ahead"; readonly extentId: number }
  /** The primary is overloaded and nothing is in flight: wait a little, then `resume`. */
  | { readonly kind: "pause"; readonly extentId: number }
  | { readonly kind: "settle"; readonly append: PendingAppend<T>; readonly places: readonly Place[] }
  /** The append did not happen (`no`), or nobody can say (`unknown`). */
  | { readonly kind: "reject"; readonly append: PendingAppend<T>; readonly failure: Failure };

/** Part of the deadline after which a replica counts as slow. */
const slowPart = 1 / 2;
const quickPart = 1 / 4;
/** Number of parts of the window's largest size; the window shrinks to one of them. */
const allowedPartsMax = 16;
/** Used part of an extent at which its successor is asked for. Early, because a successor also saves time when the extent fails. */
const aheadPart = 1 / 64;
const aheadBytesMax = 64 * 1024;

interface Entry<T> extends PendingAppend<T> {
  at: { readonly extentId: number; readonly offsetBytes: number } | undefined;
  sent: boolean;
  /** True if the append was answered with a refusal: the primary certainly did not take it. */
  refused: boolean;
  /** Reason why the append is not sent again, because no node will ever take it; undefined: there is none. */
  hopeless: Failure | undefined;
}

type State =
  /** No extent takes appends: the last one (0: none) has to be sealed and its successor asked for. */
  | { readonly kind: "idle"; readonly lastExtentId: number }
  | { readonly kind: "open"; readonly extentId: number }
  | { readonly kind: "changing"; readonly extentId: number }
  | { readonly kind: "ended"; readonly failure: Failure };

/** End of the window. `sealed`: that of the last extent, which was sealed when the stream was opened. */
export type WindowEnd = "sealed" | { readonly extentId: number; readonly lengthBytes: number };

export class AppendWindow<T> {
  readonly #limits: WindowLimits;
  #state: State;
  /** Appends in flight, in offset order. */
  #sent: Entry<T>[] = [];
  #waiting: Entry<T>[] = [];
  #sentBytes = 0;
  #waitingBytes = 0;
  /** True if the primary refused an append, as overloaded (nothing is sent before `resume`) or for ever (before all in flight is answered). */
  #holding = false;
  /** Number of the extent whose successor was asked for. */
  #aheadOf = 0;
  /** Offset of the next append to the current extent, and end of its acknowledged bytes. */
  #nextOffsetBytes = 0;
  #committedBytes = 0;
  /**
   * Bytes that may be in flight now. The bound follows how long appends take, so that a busy primary gets less instead
   * of missing deadlines.
   */
  #allowedBytes: number;

  /** `lastExtentId` is the sealed last extent of the stream, 0 when it has none; `openExtentId` the one behind it, when it is open and empty. */
  constructor(limits: WindowLimits, lastExtentId: number, openExtentId?: number) {
    this.#limits = limits;
    this.#allowedBytes = Math.max(1, Math.floor(limits.inFlightBytesMax / 4));
    this.#state = openExtentId === undefined ? { kind: "idle", lastExtentId } : { kind: "open", extentId: openExtentId };
  }

  get ended(): Failure | undefined {
    return this.#state.kind === "ended" ? this.#state.failure : undefined;
  }
  /** The largest committed length known of the extent that is open or being changed. */
  get committedBytes(): number {
    return this.#committedBytes;
  }
  get openExtentId(): number | undefined {
    return this.#state.kind === "open" ? this.#state.extentId : undefined;
  }
  /** True if an append was refused, so that those behind it are refused for the gap. */
  get holding(): boolean {
    return this.#holding;
  }
  get waitingBytes(): number {
    return this.#waitingBytes;
  }
  get inFlightBytes(): number {
    return this.#sentBytes;
  }
  get allowedBytes(): number {
    return this.#allowedBytes;
  }
  /** Appends that are not settled. */
  get pending(): number {
    return this.#sent.length + this.#waiting.length;
  }

  /** True if all appends are settled and the stream goes to no other extent. */
  get quiet(): boolean {
    return this.pending === 0 && this.#state.kind !== "changing";
  }

  /**
   * Where the stream ends, when nothing is behind or on its way: `sealed` when its last extent was when the stream was opened. Undefined: not
   * known now.
   */
  get endsAt(): WindowEnd | undefined {
    return this.pending > 0 || this.#committedBytes !== this.#nextOffsetBytes ? undefined : this.acknowledgedTo;
  }

  /** Where all that is acknowledged ends, whatever is behind it. Undefined: it goes to another extent, and what is sealed of the last one is not known. */
  get acknowledgedTo(): WindowEnd | undefined {
    if (this.#state.kind === "idle") return "sealed";
    return this.#state.kind === "open" ? { extentId: this.#state.extentId, lengthBytes: this.#committedBytes } : undefined;
  }

  /** Asks for an extent to write to, before there is something to write. */
  begin(): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "idle") return [];
    const { lastExtentId } = this.#state;
    this.#state = { kind: "changing", extentId: lastExtentId };
    return [{ kind: "change", extentId: lastExtentId, complete: false }];
  }

  submit(item: T, blocksBytes: readonly number[]): readonly WindowEffect<T>[] {
    let extentBytes = 0;
    for (const length of blocksBytes) extentBytes += frameBytes(length);
    const entry: Entry<T> = { item, blocksBytes, extentBytes, at: undefined, sent: false, refused: false, hopeless: undefined };
    if (this.#state.kind === "ended") return [{ kind: "reject", append: entry, failure: { ...this.#state.failure, applied: "no" } }];
    this.#waiting.push(entry);
    this.#waitingBytes += extentBytes;
    return this.#pump([]);
  }

  /**
   * Notes how long an append took, as a part of its deadline (1 and more: it was missed). Halved when it is close to the deadline, by as much as
   * was acknowledged larger when there is time to spare; one append is always let through.
   */
  paced(partOfDeadline: number, acknowledgedBytes: number): void {
    const { inFlightBytesMax } = this.#limits;
    if (partOfDeadline > slowPart) this.#allowedBytes = Math.max(this.#allowedBytes / 2, inFlightBytesMax / allowedPartsMax);
    else if (partOfDeadline < quickPart) this.#allowedBytes = Math.min(this.#allowedBytes + acknowledgedBytes, inFlightBytesMax);
  }

  /** Takes back an append that was never sent, or that the primary of the extent that is left did not take; false when it is too late for that. */
  withdraw(item: T): boolean {
    const at = this.#waiting.findIndex((entry) => entry.item === item && !entry.sent);
    if (at < 0) return this.#withdrawNotTaken(item);
    this.#waitingBytes -= (this.#waiting[at] as Entry<T>).extentBytes;
    this.#waiting.splice(at, 1);
    return true;
  }

  #withdrawNotTaken(item: T): boolean {
    // In an open extent it is sent again at its offset, and others follow it there.
    const at = this.#state.kind === "changing" ? this.#sent.findIndex((entry) => entry.item === item && entry.refused) : -1;
    if (at < 0) return false;
    this.#sentBytes -= (this.#sent[at] as Entry<T>).extentBytes;
    this.#sent.splice(at, 1);
    return true;
  }

  /** Takes everything back that is not in flight: it did not happen. */
  withdrawAll(failure: Failure): readonly WindowEffect<T>[] {
    const withdrawn = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return withdrawn.map((append) => ({ kind: "reject", append, failure: { ...failure, applied: "no" } }));
  }

  /** Takes back those of the appends that certainly did not happen. */
  withdrawUndone(failure: Failure, which: (item: T) => boolean): readonly WindowEffect<T>[] {
    const withdrawn = [...this.#sent, ...this.#waiting].filter(({ item }) => which(item) && this.withdraw(item));
    return withdrawn.map((append) => ({ kind: "reject", append, failure: { ...failure, applied: "no" } }));
  }

  /** Appends of which nobody can say now whether they happened. */
  get inDoubt(): readonly T[] {
    return [...this.#sent, ...this.#waiting].filter(({ sent }) => sent).map(({ item }) => item);
  }

  /** Notes that the primary of `extentId` says that everything below `committedBytes` is durable on every replica. */
  acknowledged(extentId: number, committedBytes: number): readonly WindowEffect<T>[] {
    const state = this.#state;
    // An acknowledgement counts while the extent is being changed, too. For an extent that was left, the sealed length has said it all.
    if ((state.kind !== "open" && state.kind !== "changing") || state.extentId !== extentId) return [];
    if (committedBytes <= this.#committedBytes || committedBytes > this.#nextOffsetBytes) return [];
    this.#committedBytes = committedBytes;
    const effects: WindowEffect<T>[] = [];
    this.#settleBelow(committedBytes, effects);
    return this.#holding ? this.#takeBack(effects) : this.#pump(effects);
  }

  /**
   * Notes that an append to `extentId` failed or its outcome is unknown: whichever it was, the extent is left. `hopeless`: a replica will never
   * take this append; when the sealed length says that it did not happen it is rejected.
   */
  failed(extentId: number, hopeless?: { readonly item: T; readonly failure: Failure }): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "open" || this.#state.extentId !== extentId) return [];
    const entry = this.#sent.find((one) => one.item === hopeless?.item);
    if (entry !== undefined) entry.hopeless = hopeless?.failure;
    this.#state = { kind: "changing", extentId };
    return [{ kind: "change", extentId, complete: false }];
  }

  /** Notes that the primary of `extentId`, which is left, did not take this append, and sent it to no secondary. */
  notTaken(extentId: number, item: T): void {
    if (this.#state.kind !== "changing" || this.#state.extentId !== extentId) return;
    const entry = this.#sent.find((one) => one.item === item);
    if (entry !== undefined) entry.refused = true;
  }

  /**
   * Notes that the primary of `extentId` did not take this append: `overloaded`, or `offsetGap` behind one that it did not take. The extent goes
   * on: when everything in flight is answered, what was refused is taken back and sent again after a pause.
   */
  refused(extentId: number, item: T, reason: "overloaded" | "offsetGap"): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "open" || this.#state.extentId !== extentId) return [];
    const entry = this.#sent.find((one) => one.item === item);
    // A gap without an overload before it: something was lost on the way.
    if (entry === undefined || (reason === "offsetGap" && !this.#holding)) return this.failed(extentId);
    entry.refused = true;
    this.#holding = true;
    return this.#takeBack([]);
  }

  /** Notes that the primary of `extentId` did not take this append and never will: it is rejected, those behind it go on without it. */
  refusedForEver(extentId: number, item: T, failure: Failure): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "open" || this.#state.extentId !== extentId) return [];
    const entry = this.#sent.find((one) => one.item === item);
    if (entry === undefined) return this.failed(extentId);
    entry.refused = true;
    entry.hopeless = failure;
    this.#holding = true;
    return this.#takeBack([]);
  }

  /** Notes that the pause is over. */
  resume(extentId: number): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "open" || this.#state.extentId !== extentId || this.#sent.length > 0) return [];
    this.#holding = false;
    return this.#pump([]);
  }

  /** Takes the sealed length of `extentId`, and its successor, which is open and empty. */
  changed(extentId: number, sealedLengthBytes: number, successorId: number): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "changing" || this.#state.extentId !== extentId) return [];
    const effects: WindowEffect<T>[] = [];
    if (sealedLengthBytes < this.#committedBytes) {
      return this.end({
        code: "dataLoss",
        reason: "damaged",
        message: `extent ${extentId} was sealed at ${sealedLengthBytes}, below the ${this.#committedBytes} bytes that were acknowledged`,
        applied: "unknown",
      });
    }
    this.#settleBelow(sealedLengthBytes, effects);
    // Not below the sealed length: it did not happen and never will.
    this.#allWaitAgain(effects);
    this.#state = { kind: "open", extentId: successorId };
    this.#nextOffsetBytes = 0;
    this.#committedBytes = 0;
    return this.#pump(effects);
  }

  /** Ends the window when it is fenced, closed or broken: nothing is sent again. */
  end(failure: Failure): readonly WindowEffect<T>[] {
    if (this.#state.kind === "ended") return [];
    this.#state = { kind: "ended", failure };
    const effects: WindowEffect<T>[] = [];
    for (const entry of this.#sent) effects.push({ kind: "reject", append: entry, failure: { ...failure, applied: "unknown" } });
    for (const entry of this.#waiting) {
      effects.push({ kind: "reject", append: entry, failure: { ...failure, applied: "no" } });
    }
    this.#sent = [];
    this.#waiting = [];
    this.#sentBytes = 0;
    this.#waitingBytes = 0;
    return effects;
  }

  /** Makes everything in flight wait again, if all of it is known not to have happened. */
  #takeBack(effects: WindowEffect<T>[]): readonly WindowEffect<T>[] {
    if (this.#state.kind !== "open" || this.#sent.length === 0 || !this.#sent.every((entry) => entry.refused)) return effects;
    this.#nextOffsetBytes = this.#sent[0]?.at?.offsetBytes as number;
    const busy = this.#sent[0]?.hopeless === undefined;
    this.#allWaitAgain(effects);
    if (!busy) return this.#pump(effects);
    this.#holding = true;
    effects.push({ kind: "pause", extentId: this.#state.extentId });
    return effects;
  }

  #allWaitAgain(effects: WindowEffect<T>[]): void {
    const again: Entry<T>[] = [];
    for (const entry of this.#sent) {
      if (entry.hopeless === undefined) again.push(entry);
      else effects.push({ kind: "reject", append: entry, failure: entry.hopeless });
    }
    this.#sent = [];
    this.#sentBytes = 0;
    this.#holding = false;
    for (const entry of again) {
      entry.at = undefined;
      entry.sent = false;
      entry.refused = false;
      this.#waitingBytes += entry.extentBytes;
    }
    this.#waiting = [...again, ...this.#waiting];
  }

  #settleBelow(lengthBytes: number, effects: WindowEffect<T>[]): void {
    let count = 0;
    for (const entry of this.#sent) {
      const at = entry.at as { extentId: number; offsetBytes: number };
      if (at.offsetBytes + entry.extentBytes > lengthBytes) break;
      count += 1;
      this.#sentBytes -= entry.extentBytes;
      effects.push({ kind: "settle", append: entry, places: placesOf(at.extentId, at.offsetBytes, entry.blocksBytes) });
    }
    if (count > 0) this.#sent.splice(0, count);
  }

  #pump(effects: WindowEffect<T>[]): readonly WindowEffect<T>[] {
    const limits = this.#limits;
    let taken = 0;
    while (taken < this.#waiting.length) {
      const state = this.#state;
      if (state.kind === "idle") {
        this.#state = { kind: "changing", extentId: state.lastExtentId };
        effects.push({ kind: "change", extentId: state.lastExtentId, complete: false });
        break;
      }
      if (state.kind !== "open" || this.#holding) break;
      const entry = this.#waiting[taken] as Entry<T>;
      if (this.#nextOffsetBytes > 0 && this.#nextOffsetBytes + entry.extentBytes > limits.extentTargetBytes) {
        // Full. What is in flight first: sealing under it would only make it fail.
        if (this.#sent.length > 0) break;
        this.#state = { kind: "changing", extentId: state.extentId };
        effects.push({ kind: "change", extentId: state.extentId, complete: true });
        break;
      }
      if (this.#sent.length >= limits.inFlightAppendsMax) break;
      if (this.#sent.length > 0 && this.#sentBytes + entry.extentBytes > this.#allowedBytes) break;
      entry.at = { extentId: state.extentId, offsetBytes: this.#nextOffsetBytes };
      entry.sent = true;
      this.#nextOffsetBytes += entry.extentBytes;
      this.#sentBytes += entry.extentBytes;
      this.#waitingBytes -= entry.extentBytes;
      this.#sent.push(entry);
      taken += 1;
      effects.push({ kind: "send", append: entry, extentId: state.extentId, offsetBytes: entry.at.offsetBytes });
      if (this.#nextOffsetBytes >= Math.min(limits.extentTargetBytes * aheadPart, aheadBytesMax) && this.#aheadOf !== state.extentId) {
        this.#aheadOf = state.extentId;
        effects.push({ kind: "ahead", extentId: state.extentId });
      }
    }
    if (taken > 0) this.#waiting.splice(0, taken);
    return effects;
  }
}

/** Returns where the payloads of blocks lie that were appended together at `offsetBytes`. */
export function placesOf(extentId: number, offsetBytes: number, blocksBytes: readonly number[]): Place[] {
  let at = offsetBytes;
  return blocksBytes.map((lengthBytes) => {
    const place = { extentId, offsetBytes: at + frameHeaderBytes(lengthBytes), lengthBytes };
    at += frameBytes(lengthBytes);
    return place;
  });
}
