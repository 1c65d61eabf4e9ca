/**
 * Stamps whose rows of accounts are older than the location service's records: a restore of a stamp's metadata store takes roles back, too. A primary
 * that was deposed acts as primary again then, beside the later one (docs/design/geo.md "A restored role").
 *
 *     list of a stamp's accounts ──► differs from the record? ──► both stamps are asked now ──► demote again, or told to people
 *
 * Invariants:
 * - A record without an operation is compared with an answer that was asked for after it was recorded: its stamps have obeyed everything by then, so
 *   an older role was taken back.
 * - A stamp is deposed only under a role epoch that is lower than the record's. It gets the command of the operation that deposed it: what it has above
 *   the later primary goes into a report. If the later primary has no such role any more, neither stamp is commanded.
 */
import { type Outcome, ok } from "@stamp/base";
import { type AccountRecord, type AccountRole, commandPhases, type RoleCommand, roleWithoutRow, type StampRecord } from "@stamp/geo";
import type { Logger } from "@stamp/ports";
import type { Registry } from "../registry.ts";
import type { AccountAtStamp, StampLink } from "../stamp-link.ts";

interface OlderRolesOptions {
  readonly logger: Logger;
  readonly registry: Registry;
  /** Asks a stamp, unless another one answers at its address. */
  readonly onStamp: <T>(stamp: StampRecord, work: (link: StampLink) => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** Runs a question of a round when few enough are under way at the stamp. */
  readonly inTurn: <T>(stamp: string, work: () => Promise<Outcome<T>>) => Promise<Outcome<T>>;
  /** True if the rule `geoOlderRolesEnd` is on. */
  readonly deposes: boolean;
}

export class OlderRoles {
  readonly #options: OlderRolesOptions;
  /** How roles differ from records, for people, by stamp and account; with the number of the operation that the account had then. */
  readonly #found = new Map<string, ReadonlyMap<string, { readonly operation: number; readonly trouble: string }>>();

  constructor(options: OlderRolesOptions) {
    this.#options = options;
  }

  /** Returns what was found last; empty: roles are as recorded, or were not compared since the account's last operation. */
  known({ name, operation }: AccountRecord): string {
    for (const found of this.#found.values()) {
      const at = found.get(name);
      if (at?.operation === operation) return at.trouble;
    }
    return "";
  }

  /** Compares the roles that a stamp told just now with the records. */
  async judge(stamp: StampRecord, accounts: readonly AccountAtStamp[]): Promise<void> {
    const { registry, inTurn } = this.#options;
    const listed = new Map(accounts.map(({ name, role }) => [name, role]));
    const differing = registry.accounts.filter((record) => differs(record, stamp.name, listed.get(record.name)));
    const found = new Map<string, { readonly operation: number; readonly trouble: string }>();
    await Promise.all(
      differing.map(async (record) => {
        const trouble = await inTurn(stamp.name, async () => ok(await this.#settle(record, stamp)));
        if (trouble.ok && trouble.value !== "") found.set(record.name, { operation: record.operation, trouble: trouble.value });
      }),
    );
    this.#found.set(stamp.name, found);
  }

  /** Deposes a stamp that is primary no more. Returns what else differs, with what to do; empty: nothing does. */
  async #settle(record: AccountRecord, stamp: StampRecord): Promise<string> {
    const { name } = record;
    const isSame = (): boolean => this.#options.registry.account(name) === record;
    const asked = await this.#roleAt(stamp, name);
    if (!asked.ok || !isSame() || !differs(record, stamp.name, asked.value)) return "";
    const role = asked.value;
    if (!isDeposed(record, stamp.name, role)) return told(record, stamp.name, role);
    const primary = this.#options.registry.stamp(record.primary);
    const led = primary === undefined ? undefined : await this.#roleAt(primary, name);
    if (!isSame()) return "";
    if (led?.ok === true && !leads(led.value, record)) return told(record, stamp.name, role);
    return this.#options.deposes ? this.#depose(record, stamp, role, led?.ok === true ? led.value : undefined) : "";
  }

  /** `led`: role at the primary; undefined: it does not answer. */
  async #depose(record: AccountRecord, stamp: StampRecord, role: AccountRole | undefined, led: AccountRole | undefined): Promise<string> {
    const { registry, logger, onStamp } = this.#options;
    const { name, primary, epoch, secondary, operation } = record;
    const doors = registry.stamp(primary)?.doors;
    const demote: RoleCommand = {
      kind: "demote",
      operation: epoch,
      peer: primary,
      ...(doors !== undefined && { peerDoors: doors }),
      point: led?.promotedAt ?? [],
      ...(record.queues === true && { queues: true }),
    };
    const deposed = await onStamp(stamp, (link) => link.obey(name, demote));
    if (!deposed.ok) return `${told(record, stamp.name, role)}: ${deposed.failure.message}`;
    logger.warn("a stamp's metadata were put back, and it acted as primary again: it is told once more that it is not", {
      account: name,
      stamp: stamp.name,
      primary,
      operation: epoch,
    });
    if (secondary === stamp.name) return led === undefined || led.paired === epoch ? "" : told(record, stamp.name, deposed.value.role);
    const removed = await onStamp(stamp, (link) => link.obey(name, { kind: "remove", operation }));
    return removed.ok ? "" : told(record, stamp.name, deposed.value.role);
  }

  /** Returns the role that a stamp tells of the account now; undefined: none. */
  async #roleAt(stamp: StampRecord, account: string): Promise<Outcome<AccountRole | undefined>> {
    const asked = await this.#options.onStamp(stamp, (link) => link.role(account));
    return !asked.ok && asked.failure.code === "notFound" ? ok(undefined) : asked;
  }
}

const takesPart = ({ role }: AccountRole): boolean => role === "primary" || role === "drained";
const leads = (role: AccountRole | undefined, { epoch }: AccountRecord): boolean => role?.role === "primary" && role.epoch === epoch;
const follows = (role: AccountRole | undefined, { epoch }: AccountRecord): boolean =>
  (role?.role === "secondary" || role?.role === "unseeded") && role.epoch === epoch;

/** True if the role at a stamp is not the one that follows from an account's record. Nothing follows from a record with an operation under way. */
function differs(record: AccountRecord, stamp: string, role: AccountRole | undefined): boolean {
  if (record.running !== undefined) return false;
  if (record.primary === stamp) return !leads(role, record);
  if (record.secondary === stamp) return !follows(role, record);
  return isDeposed(record, stamp, role);
}

/**
 * True if the role is that of a primary before the one in the record. An account that the stamp made by itself has the same row as one that was never
 * commanded: if it is no copy of the record's, it is left alone.
 */
function isDeposed({ epoch, primary, secondary }: AccountRecord, stamp: string, role: AccountRole | undefined): boolean {
  if (role === undefined || primary === stamp || !takesPart(role) || role.epoch >= epoch) return false;
  const { operation, phase } = role.obeyed;
  if (operation > epoch || (operation === epoch && phase > commandPhases.demote)) return false;
  return secondary === stamp || role.peer !== undefined || operation > roleWithoutRow.obeyed.operation;
}

function told(record: AccountRecord, stamp: string, role: AccountRole | undefined): string {
  const { name, primary, secondary, operation } = record;
  const later = role === undefined ? 0 : Math.max(role.epoch, role.obeyed.operation);
  if (later > operation)
    return `stamp ${stamp} obeyed operation ${later} of account ${name}, and the location service knows ${operation}: its own store was put back from an older copy. Command nothing about the account before a later one is put back`;
  const is = role === undefined ? "has nothing" : `is ${role.role} since operation ${role.epoch}`;
  const what = `stamp ${stamp} ${is} of account ${name}, which is not what operation ${operation} left: its metadata store was put back from an older copy`;
  if (primary !== stamp && secondary !== stamp) return `${what}. Stamp ${primary} is the primary, and stamp ${stamp} is told so`;
  if (primary !== stamp) return `${what}: give the copy up (./stamp geo unprotect ${name}), and make it anew`;
  if (secondary === undefined) return `${what}: put back a later copy, if there is one; no other stamp has the account`;
  return `${what}: promote the copy (./stamp geo failover ${name} --forced --accept-loss)`;
}
