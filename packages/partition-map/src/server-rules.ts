/**
 * Decides which commands of partition managers a partition server obeys: the part of model/move.pml that a server decides alone. One per process;
 * what is held goes with the lease, what was closed does not.
 *
 * Rules: pmTermAtServer (a lower PM term than one seen is refused), leaseEpochNamedInLoad (a command for another lease of this server is
 * refused), closedEpochRefused (after Closed for epoch e, or a refused OpenStream with e, every Load with an epoch ≤ e is refused).
 */
import { type Outcome, ok, type Rules, refused } from "@stamp/base";

export interface LoadCommand {
  readonly pmTerm: number;
  readonly leaseEpoch: number;
  readonly rangeId: string;
  readonly ownerEpoch: number;
}

/** Decision about a load. `already`: this epoch is loaded or being loaded. `replace`: drop the range of a lower epoch first. */
export type LoadVerdict = "load" | "already" | "replace";

/** Ranges that were closed here and are remembered. A command about one before them would have to be on its way for years. */
export const closedMax = 100_000;

export class ServerRules {
  readonly #rules: Rules;
  /** Epoch of the held lease; 0: none is held. */
  #leaseEpoch = 0;
  #pmTermSeen = 0;
  readonly #held = new Map<string, number>();
  readonly #closed = new Map<string, number>();

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** Notes that everything held under the lease before was dropped; 0: it was lost, and no other is held yet. */
  lease(leaseEpoch: number): void {
    this.#leaseEpoch = leaseEpoch;
    this.#held.clear();
  }

  get pmTermSeen(): number {
    return this.#pmTermSeen;
  }

  load(command: LoadCommand): Outcome<LoadVerdict> {
    const known = this.#known(command);
    if (!known.ok) return known;
    const closed = this.#closed.get(command.rangeId) ?? 0;
    if (this.#rules.on("closedEpochRefused") && command.ownerEpoch <= closed) {
      return refused("failedPrecondition", "staleOwnerEpoch", `${command.rangeId}: owner epoch ${command.ownerEpoch} was closed here`, {
        closedEpoch: String(closed),
      });
    }
    const held = this.#held.get(command.rangeId);
    if (held !== undefined && command.ownerEpoch < held) {
      return refused("failedPrecondition", "staleOwnerEpoch", `${command.rangeId} is held under owner epoch ${held}`, {
        heldEpoch: String(held),
      });
    }
    this.#held.set(command.rangeId, command.ownerEpoch);
    return ok(held === undefined ? "load" : held === command.ownerEpoch ? "already" : "replace");
  }

  /** Whether what is held here may be left to other ranges: every parent is held, under the epoch that the manager knows. */
  reshape(
    command: Omit<LoadCommand, "rangeId" | "ownerEpoch">,
    parents: readonly { rangeId: string; ownerEpoch: number }[],
  ): Outcome<void> {
    const known = this.#known(command);
    if (!known.ok) return known;
    for (const { rangeId, ownerEpoch } of parents) {
      const held = this.#held.get(rangeId);
      if (held !== ownerEpoch) {
        return refused("failedPrecondition", "staleOwnerEpoch", `${rangeId} is not held here under owner epoch ${ownerEpoch}`, {
          heldEpoch: String(held ?? 0),
        });
      }
    }
    return ok();
  }

  /** Decides about a close. `drop`: a held range has to go before the answer. */
  close(command: LoadCommand): Outcome<"drop" | "nothing"> {
    const known = this.#known(command);
    if (!known.ok) return known;
    const held = this.#held.get(command.rangeId);
    if (held !== undefined && command.ownerEpoch < held) {
      return refused("failedPrecondition", "staleOwnerEpoch", `${command.rangeId} is held under owner epoch ${held}`, {
        heldEpoch: String(held),
      });
    }
    this.dead(command.rangeId, command.ownerEpoch);
    return ok(held === undefined ? "nothing" : "drop");
  }

  /** Notes that this epoch is over here: closed, or its streams were opened under a higher one. */
  dead(rangeId: string, ownerEpoch: number): void {
    const closed = Math.max(this.#closed.get(rangeId) ?? 0, ownerEpoch);
    // Again at the end: those that were closed longest ago are forgotten first.
    this.#closed.delete(rangeId);
    this.#closed.set(rangeId, closed);
    if (this.#closed.size > closedMax) this.#closed.delete(this.#closed.keys().next().value as string);
    if ((this.#held.get(rangeId) ?? 0) <= ownerEpoch) this.#held.delete(rangeId);
  }

  /** Notes that a load under this epoch failed without anybody else's doing: it may be tried again. */
  forget(rangeId: string, ownerEpoch: number): void {
    if (this.#held.get(rangeId) === ownerEpoch) this.#held.delete(rangeId);
  }

  #known(command: Omit<LoadCommand, "rangeId" | "ownerEpoch">): Outcome<void> {
    if (this.#rules.on("pmTermAtServer") && command.pmTerm < this.#pmTermSeen) {
      return refused("failedPrecondition", "staleTerm", `a partition manager of term ${this.#pmTermSeen} is known here`, {
        currentTerm: String(this.#pmTermSeen),
      });
    }
    if (this.#leaseEpoch === 0) return refused("unavailable", "notReady", "this server holds no lease");
    if (this.#rules.on("leaseEpochNamedInLoad") && command.leaseEpoch !== this.#leaseEpoch) {
      return refused(
        "failedPrecondition",
        "staleLeaseEpoch",
        `this server has lease epoch ${this.#leaseEpoch}, not ${command.leaseEpoch}`,
        {
          leaseEpoch: String(this.#leaseEpoch),
        },
      );
    }
    this.#pmTermSeen = Math.max(this.#pmTermSeen, command.pmTerm);
    return ok();
  }
}
