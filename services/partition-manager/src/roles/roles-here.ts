/**
 * Roles of the accounts of this stamp that partition servers act by: accounts that have a second stamp, or are no primary here. The leading
 * partition manager keeps them in memory, because every partition server asks again and again. It writes every change itself, and reads
 * the rows again now and then: a change whose outcome it did not hear is found that way.
 */
import { type Outcome, ok } from "@stamp/base";
import { decodeRole } from "@stamp/geo";
import type { Clock } from "@stamp/ports";

export interface NamedRole {
  readonly account: string;
  readonly geoRole: string;
}

/** Reads the roles of all accounts; accounts without a role have an empty text, or are left out. */
export type ReadRoles = () => Promise<Outcome<readonly NamedRole[]>>;

const readAgainMs = 30_000;

export class RolesHere {
  readonly #clock: Clock;
  #known = new Map<string, string>();
  /** Changes since the read that runs now began: the rows that it finds may be older. */
  #meanwhile = new Map<string, string>();
  /** Term of the manager in which the roles were read: another manager may have changed them between two terms. */
  #term: unknown;
  #readMs = 0;
  #reading: Promise<Outcome<void>> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes that the role was written, or read. */
  told(account: string, geoRole: string): void {
    this.#meanwhile.set(account, geoRole);
    this.#note(this.#known, account, geoRole);
  }

  async list(term: unknown, read: ReadRoles): Promise<Outcome<readonly NamedRole[]>> {
    const isOld = this.#term !== term || this.#clock.monotonicMs() - this.#readMs > readAgainMs;
    if (isOld) {
      this.#reading ??= this.#read(term, read).finally(() => {
        this.#reading = undefined;
      });
      const done = await this.#reading;
      if (!done.ok) return done;
    }
    return ok([...this.#known].map(([account, geoRole]) => ({ account, geoRole })));
  }

  async #read(term: unknown, read: ReadRoles): Promise<Outcome<void>> {
    this.#meanwhile = new Map();
    const readMs = this.#clock.monotonicMs();
    const found = await read();
    if (!found.ok) return found;
    const known = new Map<string, string>();
    for (const { account, geoRole } of found.value) this.#note(known, account, geoRole);
    for (const [account, geoRole] of this.#meanwhile) this.#note(known, account, geoRole);
    this.#known = known;
    this.#term = term;
    this.#readMs = readMs;
    return ok();
  }

  #note(known: Map<string, string>, account: string, geoRole: string): void {
    const role = decodeRole(geoRole);
    // A role that can't be read is given on: whoever reads it refuses to act by it.
    const matters = !role.ok || (role.value !== undefined && (role.value.role !== "primary" || role.value.peer !== undefined));
    if (matters) known.set(account, geoRole);
    else known.delete(account);
  }
}
