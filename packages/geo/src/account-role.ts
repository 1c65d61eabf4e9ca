/**
 * Role of an account at one stamp, and the commands of the location service that change it (docs/design/geo.md
 * "Operations").
 *
 * The role is a durable row of the stamp. The location service numbers its operations on an account, and repeats a
 * command until the stamp answers. A command may arrive late, more than once or never.
 *
 * Invariants (docs/design/model/geo-failover.pml):
 * - A stamp obeys no command that is older than the last one it obeyed (rule `geoCommandsInOrder`).
 * - A stamp answers `drain` and `demote` when no front-end acts on the old role any more (rule `geoCachedRolesEnd`).
 * - A secondary applies only what was shipped under its own role epoch (rule `geoShippedUnderEpoch`).
 * - The report of a deposed primary begins where the promotion found the secondary (rule `geoReportFromPromotion`).
 * - The rows of a deposed primary are replaced only after its report is complete (rule `geoReportBeforeSeeding`).
 */
import type { Outcome, Rules } from "@stamp/base";
import { assert, ok, refused } from "@stamp/base";

/**
 * `primary` takes writes. `drained` was primary and takes none while the rest of its writes is shipped. `secondary` has
 * a prefix of the primary's commits for each PartitionName. `unseeded` has no such prefix yet. `removed` has no data of
 * the account; the row stays, so that late commands are still refused.
 */
export type GeoRole = "primary" | "drained" | "secondary" | "unseeded" | "removed";

/** How far one range's log reached the secondary. */
export interface RangePoint {
  readonly range: string;
  /** Last commit of the range that the secondary has; 0: none. */
  readonly sequence: number;
}
/** How far the secondary had come, for each range of the primary. A range that is missing had shipped nothing. */
export type GeoPoint = readonly RangePoint[];

/** Place of a command in the order of all commands of an account. */
export interface CommandOrder {
  /** Number of the location service's operation, from 1. */
  readonly operation: number;
  /** Phase of the command within its operation (`commandPhases`). */
  readonly phase: number;
}

export interface AccountRole {
  readonly role: GeoRole;
  /** Role epoch: number of the operation that promoted the primary which this stamp is or follows. */
  readonly epoch: number;
  /** The last command that this stamp obeyed. */
  readonly obeyed: CommandOrder;
  /** Name of the other stamp; undefined if the account has one stamp. */
  readonly peer?: string;
  /** Addresses of the other stamp's front-ends, host:port; undefined: not known. */
  readonly peerDoors?: readonly string[];
  /**
   * Number of the operation that began the copy, the same at both stamps: a copy may be given up and begun anew under one
   * role epoch. Undefined: a release wrote the row that did not know it.
   */
  readonly paired?: number;
  /** End of this stamp's copy when it was promoted. */
  readonly promotedAt?: GeoPoint;
  /** True if queues are copied between the two stamps, too. Undefined: they are at one stamp only. */
  readonly queues?: true;
  /**
   * True in a removed account whose queues are deleted, too: whoever removed it gave them up, or they were a copy. Undefined: they
   * stay, also if a release wrote the row that did not know the member.
   */
  readonly dropsQueues?: boolean;
  /** Report that a deposed primary owes: its commits behind `from`. */
  readonly report?: { readonly from: GeoPoint; readonly complete: boolean };
}

/** The other stamp of a command. */
interface Peer {
  readonly peer: string;
  readonly peerDoors?: readonly string[];
}

/** Choice of the operation that begins a copy. A promoted copy keeps it, and `demote` tells it to the stamp that follows then. */
interface Copied {
  /** True if queues are copied, too. */
  readonly queues?: true;
}

/** Facts that the drained primary tells about the copy that is promoted; undefined: not known. */
interface Promoted {
  /** Lineage of the metadata store under which the copy has everything. */
  readonly copyLineage?: number;
  /** SHA-256 of the keys and settings that the primary has. */
  readonly settingsTag?: Uint8Array;
}

export type RoleCommand =
  | { readonly kind: "create"; readonly operation: number }
  | ({ readonly kind: "follow"; readonly operation: number; readonly epoch: number } & Peer & Copied)
  | ({ readonly kind: "pair"; readonly operation: number } & Peer & Copied)
  | { readonly kind: "drain"; readonly operation: number }
  | { readonly kind: "undrain"; readonly operation: number }
  | ({ readonly kind: "promote"; readonly operation: number } & Promoted & Peer)
  | ({ readonly kind: "demote"; readonly operation: number; readonly point: GeoPoint } & Peer & Copied)
  | { readonly kind: "unpair"; readonly operation: number }
  | { readonly kind: "remove"; readonly operation: number; readonly dropsQueues?: boolean };

/**
 * Within an operation a stamp obeys only commands of the same or a later phase, and gets at most one command of each
 * phase.
 */
export const commandPhases: Readonly<Record<RoleCommand["kind"], number>> = {
  create: 0,
  follow: 1,
  pair: 1,
  drain: 2,
  undrain: 3,
  promote: 3,
  demote: 4,
  unpair: 5,
  remove: 5,
};

/** Facts by which a stamp decides about a command. */
export interface RoleFacts {
  /** End of this stamp's copy: commits that it has of each range of its primary. */
  readonly copied: GeoPoint;
  /** Point up to which the secondary acknowledged to this stamp. Acknowledgements may have been lost. */
  readonly acknowledged: GeoPoint;
}

export interface ObeyedRole {
  /** Row to be made durable before the command is answered. */
  readonly row: AccountRole;
  /** True if the row changed; false: the command was obeyed before. */
  readonly changed: boolean;
}

const stale = (message: string) => refused("failedPrecondition", "staleRoleEpoch", message);
const conflict = (message: string) => refused("aborted", "conflict", message);
const rolesBehind: Readonly<Record<RoleCommand["kind"], readonly GeoRole[]>> = {
  create: ["primary"],
  follow: ["unseeded", "secondary"],
  pair: ["primary"],
  drain: ["drained"],
  undrain: ["primary"],
  promote: ["primary"],
  demote: ["unseeded", "secondary"],
  unpair: ["primary"],
  remove: ["removed"],
};

/** Obeys a command of the location service. `row`: undefined if this stamp has never heard of the account. */
export function planObey(row: AccountRole | undefined, command: RoleCommand, facts: RoleFacts, rules: Rules): Outcome<ObeyedRole> {
  const order: CommandOrder = { operation: command.operation, phase: commandPhases[command.kind] };
  if (row === undefined) return begin(command, order);
  if (isStale(row, order, rules)) {
    const { operation, phase } = row.obeyed;
    const told = `operation ${order.operation}, phase ${order.phase}`;
    return stale(`command ${command.kind} (${told}) is older than operation ${operation}, phase ${phase}, which this stamp obeyed`);
  }
  const again = order.operation === row.obeyed.operation && order.phase === row.obeyed.phase;
  if (again && rolesBehind[command.kind].includes(row.role)) return ok({ row, changed: false });
  return change(row, command, order, facts, rules);
}

function isStale(row: AccountRole, order: CommandOrder, rules: Rules): boolean {
  if (!rules.on("geoCommandsInOrder")) return order.operation < row.epoch;
  const { operation, phase } = row.obeyed;
  return order.operation < operation || (order.operation === operation && order.phase < phase);
}

function begin(command: RoleCommand, obeyed: CommandOrder): Outcome<ObeyedRole> {
  const { operation } = command;
  if (command.kind === "create") return ok({ row: { role: "primary", epoch: operation, obeyed }, changed: true });
  if (command.kind === "follow") return ok({ row: followed(command, obeyed), changed: true });
  // The operation was given up before this stamp heard of it: the row keeps its late commands out.
  if (command.kind === "remove") return ok({ row: { role: "removed", epoch: 0, obeyed, ...dropped(command) }, changed: true });
  return refused("notFound", "conflict", `command ${command.kind}: this stamp has nothing of the account`);
}

const dropped = ({ dropsQueues }: Pick<AccountRole, "dropsQueues">): Pick<AccountRole, "dropsQueues"> =>
  dropsQueues === true ? { dropsQueues } : {};

const peerOf = ({ peer, peerDoors }: Peer): Peer => (peerDoors === undefined ? { peer } : { peer, peerDoors });
const copiedOf = ({ queues }: Copied): Copied => (queues === true ? { queues } : {});

const followed = (command: Extract<RoleCommand, { kind: "follow" }>, obeyed: CommandOrder): AccountRole => ({
  role: "unseeded",
  epoch: command.epoch,
  obeyed,
  ...peerOf(command),
  ...copiedOf(command),
  paired: command.operation,
});

/**
 * Role of an account without a role row: the stamp made it by itself, or the location service made it there by its first
 * operation.
 */
export const roleWithoutRow: AccountRole = { role: "primary", epoch: 1, obeyed: { operation: 1, phase: 0 } };

function change(row: AccountRole, command: RoleCommand, obeyed: CommandOrder, facts: RoleFacts, rules: Rules): Outcome<ObeyedRole> {
  const { role, epoch } = row;
  const to = (next: AccountRole): Outcome<ObeyedRole> => ok({ row: next, changed: true });
  const takesPart = role === "primary" || role === "drained";
  switch (command.kind) {
    case "create":
      return role === "removed" ? to({ role: "primary", epoch: command.operation, obeyed }) : not(command, row);
    case "follow":
      return role === "removed" ? to(followed(command, obeyed)) : not(command, row);
    case "pair":
      return role === "primary"
        ? to({ ...row, obeyed, ...peerOf(command), ...copiedOf(command), paired: command.operation })
        : not(command, row);
    case "drain":
      return takesPart ? to({ ...row, role: "drained", obeyed }) : not(command, row);
    case "undrain":
      return takesPart ? to({ ...row, role: "primary", obeyed }) : not(command, row);
    case "promote":
      if (role === "unseeded") return refused("failedPrecondition", "notSeeded", "this stamp's copy of the account is not complete");
      if (role !== "secondary") return not(command, row);
      return to({
        role: "primary",
        epoch: command.operation,
        obeyed,
        ...peerOf(command),
        ...copiedOf(row),
        paired: command.operation,
        promotedAt: facts.copied,
      });
    case "demote": {
      if (role === "removed" || epoch >= command.operation) return not(command, row);
      // The promotion of the operation that drained this primary came after everything was shipped: nothing is to be reported.
      const isShipped = role === "drained" && row.obeyed.operation === command.operation;
      const from = rules.on("geoReportFromPromotion") ? command.point : facts.acknowledged;
      return to({
        role: "unseeded",
        epoch: command.operation,
        obeyed,
        ...peerOf(command),
        // The row of a primary that was told to give its copy up says nothing about queues any more.
        ...copiedOf(command.queues === true ? command : row),
        paired: command.operation,
        ...(isShipped ? {} : { report: { from, complete: false } }),
      });
    }
    case "unpair": {
      if (!takesPart) return not(command, row);
      const { peer: _peer, peerDoors: _doors, paired: _paired, queues: _queues, ...alone } = row;
      return to({ ...alone, role: "primary", obeyed });
    }
    case "remove":
      return takesPart
        ? not(command, row)
        : to({ role: "removed", epoch, obeyed, ...dropped({ dropsQueues: givesUpQueues(command, row) }) });
  }
}

/** Queues that were copied are at the other stamp, too. What an earlier removal has begun to delete, a later one goes on with. */
const givesUpQueues = (command: Pick<AccountRole, "dropsQueues">, row: AccountRole): boolean =>
  command.dropsQueues === true || row.queues === true || row.dropsQueues === true;

const not = (command: RoleCommand, { role, epoch }: AccountRole) =>
  conflict(`command ${command.kind} of operation ${command.operation}: this stamp is ${role} of the account since operation ${epoch}`);

/**
 * True if this stamp acknowledges writes to the account. Front-ends that cached an older row may still do so for a
 * term.
 */
export const takesWrites = ({ role }: AccountRole): boolean => role === "primary";

/** True if a range of this stamp sends its commits to the peer. */
export const ships = ({ role, peer }: AccountRole): boolean => peer !== undefined && (role === "primary" || role === "drained");

const singleTermMs = 5_000;
const pairedTermMs = 1_000;

/**
 * Returns how long a front-end acts on a row that it has read, in milliseconds from when it asked. Without a second stamp nothing can change the
 * role but `pair`, which is answered when every front-end knows of the second stamp.
 */
export const roleTermMs = (row: AccountRole | undefined): number => (row?.peer === undefined ? singleTermMs : pairedTermMs);

/** Part by which a front-end's clock may be slower than that of the process which answers commands. */
const clockAllowance = 0.1;

/**
 * Time for which a copy may be read from without a word of its primary about keys and settings, in milliseconds. After that a key that was rotated
 * at the primary is not taken here any more, unless the location service vouches that the primary answers nobody.
 */
export const copyTermMs = 60_000;

/** Returns how long it takes until no front-end acts on the settings of a row that was changed, in milliseconds. */
export const settingsTermMs = (row: AccountRole | undefined): number => roleTermMs(row) * (1 + clockAllowance);

/** Returns how long the answer of a command waits after its row was written, in milliseconds; 0: not at all. */
export function commandWaitMs({ kind }: Pick<RoleCommand, "kind">): number {
  if (kind === "pair") return singleTermMs * (1 + clockAllowance);
  return kind === "drain" || kind === "demote" ? pairedTermMs * (1 + clockAllowance) : 0;
}

/**
 * Returns the monotonic time from which `pair`, `drain` and `demote` may be answered, in milliseconds. `writtenMs`: when the row became durable,
 * or when this process read it, if it did not write it itself. `cacheTermMs`: how long a front-end acts on a row that it has read.
 */
export function answersFromMs(writtenMs: number, cacheTermMs: number, rules: Rules): number {
  assert(cacheTermMs >= 0, "a term is not negative");
  return rules.on("geoCachedRolesEnd") ? writtenMs + cacheTermMs : writtenMs;
}

/** Refuses what was shipped under another role epoch, or to a stamp that does not follow. */
export function acceptsShipment(row: AccountRole | undefined, shippedEpoch: number, rules: Rules): Outcome<void> {
  if (row === undefined || (row.role !== "secondary" && row.role !== "unseeded")) {
    return stale(`this stamp does not follow another one for the account: it is ${row?.role ?? "not known here"}`);
  }
  if (rules.on("geoShippedUnderEpoch") && shippedEpoch !== row.epoch) {
    return stale(`shipped under role epoch ${shippedEpoch}, this stamp follows role epoch ${row.epoch}`);
  }
  return mayReplace(row, rules)
    ? ok()
    : refused("unavailable", "notReady", "this stamp still reports what only it has of the account; seeding begins after that");
}

/** True if rows of this stamp may be replaced by the primary's. */
function mayReplace({ report }: AccountRole, rules: Rules): boolean {
  return report === undefined || report.complete || !rules.on("geoReportBeforeSeeding");
}

/** Returns the row after the deposed primary's report has become durable. */
export function reportComplete(row: AccountRole): AccountRole {
  return row.report === undefined || row.report.complete ? row : { ...row, report: { ...row.report, complete: true } };
}

/**
 * Returns the row after the sender under `epoch` says that this stamp's copy, begun by operation `paired`, is complete. A repeated or late word
 * changes nothing.
 */
export function seedingEnded(row: AccountRole, { epoch, paired }: Pick<AccountRole, "epoch" | "paired">, rules: Rules): AccountRole {
  if (row.role !== "unseeded" || row.epoch !== epoch || row.paired !== paired || !mayReplace(row, rules)) return row;
  const { report: _report, ...rest } = row;
  return { ...rest, role: "secondary" };
}

/**
 * Numbers order the stays of an account at one stamp: copies that begin there, and removals that end them (docs/design/geo-shipping.md "Removal"). A range
 * keeps the highest number it was told, its tenure of the account: a removal deletes nothing where a later stay has begun (rule
 * `geoRemovalEnds`), and rows that were shipped to an earlier stay are not taken.
 */
const tenuresOfOperation = 8;

/** Returns the tenure that a command begins. */
export const tenureOf = ({ operation, phase }: CommandOrder): number => operation * tenuresOfOperation + phase;

/** Returns the tenure of a copy that operation `paired` began. */
export const tenureOfCopy = (paired: number): number => tenureOf({ operation: paired, phase: commandPhases.follow });

/** Returns the tenure of the removal of an account that was removed from the stamp; undefined: it was not. */
export const removalOf = ({ role, obeyed }: AccountRole): number | undefined => (role === "removed" ? tenureOf(obeyed) : undefined);
