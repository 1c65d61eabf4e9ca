/**
 * Watches the role of the account at one stamp, as its partition managers tell it. Two answers that name the same last command and no primary
 * say that the stamp was none in between: what it acknowledged then, it acknowledged although it knew that it was deposed or drained.
 */
import type { Simulation } from "@stamp/virtual-time";
import { Accounts } from "@stamp/wire";
import type { GeoHistory } from "./history.ts";
import { account, type StampName, type TwoStamps } from "./location.ts";

const lookEveryMs = 400;
const askMs = 2_000;

/** Part of the role in the account's row (docs/formats/account.md). */
interface AccountRole {
  readonly role: string;
  /** The last command that the stamp obeyed. */
  readonly obeyed: { readonly operation: number; readonly phase: number };
}

const alone: AccountRole = { role: "primary", obeyed: { operation: 1, phase: 0 } };

export class RoleWatch {
  readonly #sim: Simulation;
  readonly #history: GeoHistory;
  readonly #stamp: StampName;
  /** Addresses of its partition managers. */
  readonly #managers: readonly string[];

  constructor(sim: Simulation, place: TwoStamps, history: GeoHistory, stamp: StampName) {
    this.#sim = sim;
    this.#history = history;
    this.#stamp = stamp;
    const cluster = place.stamps[stamp];
    this.#managers = cluster.processes.filter((name) => name.startsWith("partition-manager-")).map((name) => cluster.addressOf(name));
  }

  async work(endMs: number): Promise<void> {
    let before: { readonly role: AccountRole; readonly answeredMs: number } | undefined;
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(lookEveryMs);
      const askedMs = this.#sim.nowMs;
      const role = await this.#ask();
      if (role === undefined) continue;
      const isSame = before !== undefined && sameCommand(before.role, role) && role.role !== "primary" && before.role.role !== "primary";
      if (isSame && before !== undefined)
        this.#history.rested({ stamp: this.#stamp, role: role.role, fromMs: before.answeredMs, toMs: askedMs });
      // The longest time between two answers of one command says most.
      if (!isSame) before = { role, answeredMs: this.#sim.nowMs };
    }
  }

  /** Returns undefined if no manager answers, or the stamp has nothing of the account. */
  async #ask(): Promise<AccountRole | undefined> {
    const { transport } = this.#sim.world("operator");
    for (const manager of this.#managers) {
      const answer = await transport.client(manager, Accounts).getRole({ account }, { timeoutMs: askMs });
      if (!answer.ok) continue;
      const { geoRole } = answer.value;
      return geoRole === "" ? alone : (JSON.parse(geoRole) as AccountRole);
    }
    return undefined;
  }
}

const sameCommand = ({ obeyed: a }: AccountRole, { obeyed: b }: AccountRole): boolean => a.operation === b.operation && a.phase === b.phase;
