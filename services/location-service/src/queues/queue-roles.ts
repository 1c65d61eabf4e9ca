/**
 * Compares what the record of an account says about its queues with the roles at both stamps (docs/design/mixed-releases.md). A location service of
 * an older release that carries an operation on sends `follow` and `pair` without the choice: then the record says that queues are copied, and a
 * role says that they are not.
 *
 * Invariant: while record and roles differ, no planned operation makes the copy the primary: its messages may be missing there.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { AccountRecord, GeoAccount, StampRecord } from "@stamp/geo";
import { type Registry, unknownStamp } from "../registry.ts";
import type { StampLink } from "../stamp-link.ts";

interface QueueRolesOptions {
  readonly registry: Registry;
  /** Asks a stamp, unless another one answers at its address. */
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
}

export class QueueRoles {
  readonly #options: QueueRolesOptions;
  /** Last comparison of each account, with the number of the operation that the account had then. */
  readonly #found = new Map<string, { readonly operation: number; readonly trouble: string }>();

  constructor(options: QueueRolesOptions) {
    this.#options = options;
  }

  /** Returns what was found last; empty: record and roles agree, or were not compared since the account's last operation. */
  known({ name, operation }: GeoAccount): string {
    const found = this.#found.get(name);
    return found?.operation === operation ? found.trouble : "";
  }

  /** Asks both stamps. Returns how their roles differ from the record, with what to do; empty: they agree. */
  async compare(account: AccountRecord): Promise<Outcome<string>> {
    const { registry, onStamp } = this.#options;
    const { name, primary, operation, running } = account;
    const copy = account.secondary ?? running?.target;
    if (account.queues !== true || copy === undefined) {
      this.#found.delete(name);
      return ok("");
    }
    const without: string[] = [];
    for (const at of [primary, copy]) {
      const stamp = registry.stamp(at);
      if (stamp === undefined) return unknownStamp(at, registry);
      const role = await onStamp(stamp, (link) => link.role(name));
      if (!role.ok) return role;
      if (role.value.queues !== true) without.push(at);
    }
    const trouble = without.length === 0 ? "" : differs(account, without);
    this.#found.set(name, { operation, trouble });
    return ok(trouble);
  }

  /** Refuses a planned failover of an account unless both stamps copy its queues. */
  async mayFailOver(account: AccountRecord | undefined): Promise<Outcome<void>> {
    if (account?.secondary === undefined || account.running !== undefined) return ok();
    const trouble = await this.compare(account);
    if (!trouble.ok) return trouble;
    return trouble.value === "" ? ok() : refused("failedPrecondition", "conflict", trouble.value);
  }
}

function differs({ name, running }: GeoAccount, without: readonly string[]): string {
  const anew =
    running === undefined
      ? `give the copy up (./stamp geo unprotect ${name}), and make it anew with --with-queues`
      : `take the operation back (./stamp geo give-up ${name}), and begin it anew with --with-queues`;
  return (
    `queues of account ${name} were to be copied, and stamp ${without.join(" and stamp ")} does not copy them, ` +
    `as a location service of an older release went on with the operation: ${anew}`
  );
}
