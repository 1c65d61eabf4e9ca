/**
 * Door for another stamp: rows of an account whose copy is at this stamp go to the partition servers that have their keys
 * (docs/design/geo-shipping.md "Shipping").
 *
 * Invariants:
 * - Rows are applied only for an account that follows the role epoch under which they were shipped (rule `geoShippedUnderEpoch`), by a row
 *   of the account that was asked for less than its term ago.
 * - A caller is served for accounts only whose row names its stamp as the other one. It proves which stamp it is by a secret that was made for
 *   that stamp, by a certificate, or by both. A secret that all peers share, as releases before made it, is taken below feature level 4.
 * - Bytes of blobs go to the range of their blob, under the same check. A row that refers to bytes is refused where they are not.
 * - Rows of a stamp with a higher feature level are refused: they may have formats that processes here can't read.
 * - A part of a scan is answered when every range that has keys of it has applied it.
 */
import { compareBytes, neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, acceptsShipment, tellsVersions } from "@stamp/geo";
import { accountKeys, hasBytes, isShippedFor, isShippedTable, type Route, type ShippedTable } from "@stamp/objects";
import { holdsKey } from "@stamp/partition-map";
import type { CallContext, Handlers, World } from "@stamp/ports";
import { fromWire, type GeoDoor, type ScannedPart, type ShippedVersion } from "@stamp/wire";
import type { Accounts } from "../accounts/accounts.ts";
import type { CallLimits, Router } from "../routing/router.ts";
import type { Copies } from "./copies.ts";
import type { NamelessPeers } from "./nameless-peers.ts";

const namesMax = 1_000;
const bad = (message: string) => refused("invalidArgument", "badRequest", message);

interface Asked {
  readonly account: string;
  readonly table: string;
  readonly epoch: bigint;
  /** Role epoch that the rows name; undefined: there are none. */
  readonly rows: { readonly epoch: bigint } | undefined;
  /** Feature level of the rows; 0: only bytes are shipped. */
  readonly level: number;
  /** Feature level that the sender's release knows; undefined: only bytes are shipped. */
  readonly knownLevel?: number;
  readonly context: CallContext;
}

/** Counts what the door refuses. */
export class GeoRefusals {
  /** Rows and bytes that were shipped under another role epoch than this stamp follows, or to a stamp that has no copy. */
  staleEpochs = 0;
}

/** Returns ok if the caller may speak of an account of this role. */
type PeerOf = (account: string, role: AccountRole | undefined, context: CallContext) => Outcome<void>;

export function geoDoorHandlers(
  world: World,
  accounts: Accounts,
  router: Router,
  copies: Copies,
  refusals: GeoRefusals,
  nameless: NamelessPeers,
  ownLevel: () => number | undefined,
): Handlers<typeof GeoDoor> {
  const peerOf: PeerOf = (account, role, context) => peerOfAccount(account, role, context, { level: ownLevel(), nameless });
  /** Refuses rows that this stamp does not take. */
  const accepted = async (asked: Asked, limits: CallLimits): Promise<Outcome<ShippedTable>> => {
    const { account, epoch, context } = asked;
    const readable = readableHere(asked, ownLevel());
    if (!readable.ok) return readable;
    const role = await roleOf(accounts, account, limits);
    if (!role.ok) return role;
    const named = peerOf(account, role.value, context);
    // The shipper to a stamp without a copy has to learn that, and not that its certificate is of another stamp.
    if (!named.ok && role.value?.peer !== undefined) return named;
    const taken = acceptsShipment(role.value, fromWire(epoch), world.rules);
    if (taken.ok) return named.ok ? copiedHere(asked, role.value, readable.value) : named;
    refusals.staleEpochs++;
    return taken;
  };
  const dataRoute = async (
    asked: Omit<Asked, "table" | "rows" | "level">,
    name: Uint8Array,
    limits: CallLimits,
  ): Promise<Outcome<Route>> => {
    const { account, epoch } = asked;
    const taken = await accepted({ ...asked, table: "Blob", rows: { epoch }, level: 0 }, limits);
    if (!taken.ok) return taken;
    return holdsKey(accountKeys(account), name) ? ok({ table: "Blob", key: name }) : bad("bytes outside of their account");
  };
  const limitsOf = ({ deadlineMs, signal }: CallContext): CallLimits => ({ deadlineMs, signal });
  return {
    ship: async ({ account, epoch, table, level, knownLevel, shipment }, context) => {
      const limits = limitsOf(context);
      const shipped = await accepted({ account, epoch, table, rows: shipment, level, knownLevel, context }, limits);
      if (!shipped.ok) return shipped;
      if (shipment === undefined || !holdsKey(accountKeys(account), shipment.name)) return bad("a shipment outside of its account");
      return router.applyShipped({ table: shipped.value, key: shipment.name }, shipment, limits);
    },
    seed: async ({ account, epoch, table, level, knownLevel, part }, context) => {
      const limits = limitsOf(context);
      const seeded = await accepted({ account, epoch, table, rows: part, level, knownLevel, context }, limits);
      if (!seeded.ok) return seeded;
      const { low, high } = accountKeys(account);
      if (part === undefined || compareBytes(part.lowKey, low) < 0 || compareBytes(part.highKey, high) > 0) {
        return bad("a part of a scan outside of its account");
      }
      return seedRanges(router, seeded.value, part, limits);
    },
    tellVersions: async ({ account, epoch, table, names }, context) => {
      const limits = limitsOf(context);
      if (!isShippedTable(table)) return bad(`rows of table ${JSON.stringify(table)} are not shipped: this stamp may run another release`);
      const role = await roleOf(accounts, account, limits);
      if (!role.ok) return role;
      const named = peerOf(account, role.value, context);
      if (!named.ok) return named;
      const told = tellsVersions(role.value, fromWire(epoch));
      if (!told.ok) return told;
      if (names.length > namesMax || names.some((name) => !holdsKey(accountKeys(account), name)))
        return bad("PartitionNames outside of their account, or too many");
      if (names.some((name, i) => i > 0 && compareBytes(names[i - 1] ?? name, name) >= 0)) return bad("PartitionNames out of order");
      const versions = [];
      while (versions.length < names.length) {
        const some = await router.shippedVersions(table, names.slice(versions.length), limits);
        if (!some.ok) return some;
        if (some.value.length === 0) return refused("internal", "badRequest", "a range told no versions");
        versions.push(...some.value);
      }
      return ok({ versions });
    },
    writeData: async ({ account, epoch, name, payload }, context) => {
      const limits = limitsOf(context);
      const route = await dataRoute({ account, epoch, context }, name, limits);
      if (!route.ok) return route;
      const written = await router.writeData(route.value, payload, limits);
      if (!written.ok) return written;
      const { places, pinTermMs, mac } = written.value;
      return ok({ places: [...places], pinTermMs, mac });
    },
    pinData: async ({ account, epoch, name, extentIds }, context) => {
      const limits = limitsOf(context);
      const route = await dataRoute({ account, epoch, context }, name, limits);
      if (!route.ok) return route;
      const gone = await router.pinData(route.value, extentIds, limits);
      return gone.ok ? ok({ goneExtentIds: [...gone.value] }) : gone;
    },
    ...wordHandlers(world, accounts, copies, peerOf),
  };
}

/** Returns the words of the primary about the copy here. The manager decides by the account's row which copy they are about. */
function wordHandlers(
  world: World,
  accounts: Accounts,
  copies: Copies,
  peerOf: PeerOf,
): Pick<Handlers<typeof GeoDoor>, "report" | "pushSettings"> {
  return {
    pushSettings: async (word, context) => {
      const role = await roleOf(accounts, word.account, { deadlineMs: context.deadlineMs, signal: context.signal });
      if (!role.ok) return role;
      const named = peerOf(word.account, role.value, context);
      if (!named.ok) return named;
      const taken = acceptsShipment(role.value, fromWire(word.epoch), world.rules);
      if (!taken.ok) return taken;
      const confirmed = await copies.confirm(word, Math.max(1, context.deadlineMs - world.clock.monotonicMs()));
      if (confirmed.ok && word.settings !== undefined) accounts.forget(word.account);
      return confirmed;
    },
    report: async (report, context) => {
      const role = await roleOf(accounts, report.account, { deadlineMs: context.deadlineMs, signal: context.signal });
      if (!role.ok) return role;
      const named = peerOf(report.account, role.value, context);
      if (!named.ok) return named;
      return copies.note(report, Math.max(1, context.deadlineMs - world.clock.monotonicMs()));
    },
  };
}

const roleOf = async (accounts: Accounts, account: string, limits: CallLimits): Promise<Outcome<AccountRole | undefined>> =>
  (await accounts.roleNow(account, limits)) ?? refused("unavailable", "notReady", `account ${account} was not read in time`);

/**
 * Refuses a caller that is not the account's other stamp. `level`: feature level of this stamp; undefined: not heard yet. Without certificates a
 * process of a stamp with the same secret is not told from one of this stamp.
 */
function peerOfAccount(
  account: string,
  role: AccountRole | undefined,
  { caller, callerName }: CallContext,
  { level, nameless }: { readonly level: number | undefined; readonly nameless: NamelessPeers },
): Outcome<void> {
  const peer = role?.peer;
  const isNamed = caller === "geo-peer" && callerName !== undefined;
  if (isNamed && callerName === peer) {
    nameless.named(peer);
    return ok();
  }
  if (!isNamed) {
    if (caller !== "geo-peer" && callerName === undefined) return ok();
    if (level === undefined) return unheard;
    // Releases before gave away secrets and certificates that say no stamp.
    if (level < neededLevels.pairSecrets) {
      if (peer !== undefined) nameless.nameless(peer);
      return ok();
    }
    return caller === "geo-peer" ? shared : notAPeer(`${caller} ${callerName}`);
  }
  const other = peer === undefined ? "has no second stamp" : `has ${peer} as its other stamp`;
  const [bySecret, byCertificate] = callerName.split("+");
  const proven = byCertificate === undefined ? bySecret : `${bySecret} by its secret and ${byCertificate} by its certificate`;
  return refused("permissionDenied", "unauthorized", `account ${account} ${other}, and the caller has proven to be stamp ${proven}`);
}

const notAPeer = (who: string) =>
  refused("permissionDenied", "unauthorized", `a certificate of the role geo-peer opens the geo door, and the caller has that of ${who}`);
const unheard = refused("unavailable", "notReady", "this front-end has not heard the feature level of its stamp yet");
const shared = refused(
  "permissionDenied",
  "unauthorized",
  "the caller's secret does not say which stamp it is: give it a new one (./stamp secret geo-peer --for STAMP, docs/guides/geo.md)",
);

/**
 * Refuses what this release or stamp can't read; else returns the table. `own`: feature level of this stamp; undefined: not heard yet. It has the
 * level that brought copies at least.
 */
function readableHere({ table, epoch, rows, level, knownLevel }: Asked, own: number | undefined): Outcome<ShippedTable> {
  if (!isShippedTable(table)) return bad(`rows of table ${JSON.stringify(table)} are not shipped: this stamp may run another release`);
  if (rows === undefined) return bad("a shipment without rows");
  if (rows.epoch !== epoch) return bad("a shipment names two role epochs");
  const known = Math.max(own ?? 0, neededLevels.accountRoles);
  const vouched = neededLevels.vouchedShipments;
  if (hasBytes(table) && known >= vouched && knownLevel !== undefined && knownLevel < vouched) {
    const message = `rows of blobs are shipped without handles of their bytes to a stamp of feature level ${known}: upgrade the stamp of the account's primary to a release of feature level ${vouched}`;
    return refused("failedPrecondition", "newerFormat", message);
  }
  if (level <= known) return ok(table);
  const message = `rows of feature level ${level} are shipped to a stamp of feature level ${known}: upgrade the copy's stamp, and raise its level (./stamp upgrade finalize)`;
  return refused("failedPrecondition", "newerFormat", message);
}

/** Refuses rows of a table that is not copied for the account. */
function copiedHere({ account }: Asked, role: AccountRole | undefined, table: ShippedTable): Outcome<ShippedTable> {
  return isShippedFor(role ?? {}, table) ? ok(table) : bad(`rows of table ${table} are not copied for account ${account}`);
}

/** Gives each range in turn its rows of the part. */
async function seedRanges(
  router: Router,
  table: ShippedTable,
  part: ScannedPart,
  limits: CallLimits,
): Promise<Outcome<{ held?: ShippedVersion }>> {
  let held: ShippedVersion | undefined;
  for (let from = part.lowKey; compareBytes(from, part.highKey) < 0; ) {
    const key = from;
    const applied = await router.applyScanned({ table, key }, (rangeHigh) => clipped(part, key, rangeHigh), limits);
    if (!applied.ok) return applied;
    held = later(held, applied.value.held);
    if (applied.value.rangeHigh.length === 0) break;
    from = applied.value.rangeHigh;
  }
  return ok(held === undefined ? {} : { held });
}

function later(a: ShippedVersion | undefined, b: ShippedVersion | undefined): ShippedVersion | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const order = a.epoch - b.epoch || a.lineage - b.lineage || a.sequence - b.sequence;
  return order < 0n ? b : a;
}

/** Returns the part of a scan between a key and the end of a range; `rangeHigh` empty: the end of the table. */
function clipped(part: ScannedPart, from: Uint8Array, rangeHigh: Uint8Array): ScannedPart {
  const ends = rangeHigh.length > 0 && compareBytes(rangeHigh, part.highKey) < 0;
  const high = ends ? rangeHigh : part.highKey;
  const rows = part.rows.filter(({ key }) => compareBytes(key, from) >= 0 && compareBytes(key, high) < 0);
  return { ...part, lowKey: from, highKey: high, rows };
}
