/**
 * Budget that the memory tables of several partitions share. When the active ones exceed it, the largest is written
 * out. While all of them, with those that are being written out, exceed twice the budget, commits wait. So the memory
 * of a server, and the replay after its death, do not grow with the number of its ranges.
 */
import { WakeUp } from "@stamp/base";

interface Member {
  activeBytes: number;
  /** Bytes of the table that is being written out. */
  frozenBytes: number;
  /** Begins to write the active table out; says what it is then by `MemoryShare.set`, or does nothing. */
  readonly writeOut: () => void;
}

/** Share of one range in the budget. */
export interface MemoryShare {
  readonly set: (activeBytes: number, frozenBytes: number) => void;
  /** Called when the range has to take nothing any more. */
  readonly close: () => void;
}

export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #members = new Set<Member>();
  #activeBytes = 0;
  #frozenBytes = 0;
  readonly #shrunk = new WakeUp();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#activeBytes + this.#frozenBytes;
  }

  join(writeOut: () => void): MemoryShare {
    const member: Member = { activeBytes: 0, frozenBytes: 0, writeOut };
    this.#members.add(member);
    return {
      set: (activeBytes, frozenBytes) => {
        if (this.#members.has(member)) this.#set(member, activeBytes, frozenBytes);
      },
      close: () => {
        this.#set(member, 0, 0);
        this.#members.delete(member);
      },
    };
  }

  /** True while memory tables hold more than commits may be added to. */
  get full(): boolean {
    return this.bytes > 2 * this.#bytesMax;
  }

  /** Resolves when there is room; others may have taken the room by then. */
  untilRoom(): Promise<void> {
    return this.full ? this.#shrunk.next : Promise.resolve();
  }

  #set(member: Member, activeBytes: number, frozenBytes: number): void {
    this.#activeBytes += activeBytes - member.activeBytes;
    this.#frozenBytes += frozenBytes - member.frozenBytes;
    member.activeBytes = activeBytes;
    member.frozenBytes = frozenBytes;
    if (this.#activeBytes > this.#bytesMax) this.#largest()?.writeOut();
    if (!this.full) this.#shrunk.notify();
  }

  /** Returns the largest member that writes nothing out now. */
  #largest(): Member | undefined {
    let largest: Member | undefined;
    for (const member of this.#members) {
      if (member.frozenBytes === 0 && member.activeBytes > (largest?.activeBytes ?? 0)) largest = member;
    }
    return largest;
  }
}
