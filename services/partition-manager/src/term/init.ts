/**
 * Creates what a new stamp needs, and is repeated safely at every start: the Schema table, one range per object table,
 * and the accounts of the configuration.
 */
import { decodeServiceProperties } from "@stamp/azure-rest";
import type { Failure, Outcome } from "@stamp/base";
import { compareBytes, ok, refused, utf8 } from "@stamp/base";
import { roleOf } from "@stamp/geo";
import {
  accountSchema,
  blobSchema,
  encodeKey,
  encodeRow,
  entitySchema,
  messageSchema,
  objectTables,
  type Schema,
  schemaSchema,
} from "@stamp/objects";
import { firstRangeOf, partitionMapSchema } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import { AccountRows, hierarchicalProperties } from "../accounts/account-rows.ts";
import type { InitialAccount } from "../config.ts";
import type { MapState } from "../map/map-state.ts";
import type { OwnTable, TableRow } from "../map/map-table.ts";

const schemas: readonly (readonly [string, Schema])[] = [
  ["Account", accountSchema],
  ["Blob", blobSchema],
  ["Entity", entitySchema],
  ["Message", messageSchema],
  ["Partition Map", partitionMapSchema],
  ["Schema", schemaSchema],
];

const schemaRow = ([name, schema]: readonly [string, Schema]): TableRow => ({
  key: encodeKey([[name], [], []]),
  value: encodeRow(schemaSchema, {
    properties: Object.entries(schema).map(
      ([property, { id, type }]) => ({ name: property, type: "string", value: `${id}:${type}` }) as const,
    ),
  }),
});

/** Writes what differs from what is there: a newer release may know more properties. */
export async function writeSchemas(table: OwnTable): Promise<Outcome<void>> {
  const rows = await table.readAll();
  if (!rows.ok) return rows;
  const held = new Map(rows.value.map((row) => [row.key.join(), row.value.join()]));
  const changed = schemas.map(schemaRow).filter((row) => held.get(row.key.join()) !== row.value.join());
  if (changed.length === 0) return ok();
  const written = await table.write(changed);
  return written.ok ? ok() : written;
}

/** Writes one range for each table that has none. */
export async function writeFirstRanges(map: MapState): Promise<Outcome<void>> {
  return map.change(({ ranges }) => {
    const present = new Set(ranges.map((range) => range.table));
    return ok({ changed: objectTables.filter((table) => !present.has(table)).map(firstRangeOf) });
  });
}

/**
 * Inserts the configured accounts that are absent, through the servers that have the ranges; repeats until it is done or the signal says
 * to stop. An account that is there gets the configuration's keys when the configuration has changed since it last said them; otherwise
 * what was rotated since stays. `onRefused` is told why an account is not inserted yet.
 */
export async function insertAccounts(
  world: World,
  map: MapState,
  accounts: readonly InitialAccount[],
  signal: AbortSignal,
  onRefused: (failure: Failure) => void = () => {},
): Promise<void> {
  const rows = new AccountRows(world, map);
  let logged = "";
  for (const account of accounts) {
    while (!signal.aborted) {
      const inserted = await insertAccount(world, rows, account, signal);
      if (inserted.ok || signal.aborted) break;
      const { failure } = inserted;
      onRefused(failure);
      if (failure.message !== logged)
        world.logger.warn("an account of the configuration can't be made or read yet", { account: account.name, failure });
      logged = failure.message;
      await sleep(world.clock, jittered(world.random, retryMs), signal);
    }
  }
}

const retryMs = 100;
const insertTimeoutMs = 10_000;

const otherNamespace = ({ name, hierarchicalNamespace }: InitialAccount): string =>
  `account ${name} was made ${hierarchicalNamespace ? "without" : "with"} a hierarchical namespace, for good: set hierarchicalNamespace of it to ` +
  `${!hierarchicalNamespace} in the configuration, or use another name`;

async function insertAccount(world: World, rows: AccountRows, account: InitialAccount, signal: AbortSignal): Promise<Outcome<void>> {
  const options = { deadlineMs: world.clock.monotonicMs() + insertTimeoutMs, signal };
  const keys = [...account.keys];
  const configuredDigest = Uint8Array.from(world.digest.sha256(utf8(JSON.stringify(keys))));
  const serviceProperties: Record<string, string> = account.hierarchicalNamespace ? { blob: hierarchicalProperties } : {};
  const value = { account: { name: account.name, keys, configuredDigest, serviceProperties }, onlyIfAbsent: true };
  const put = await rows.execute({ case: "putAccount", value }, options);
  if (!put.ok) return put;
  if (put.value.case !== "account") return refused("internal", "bug", `an account was answered by ${put.value.case}`);
  const held = put.value.value;
  const isHierarchical = decodeServiceProperties(held.serviceProperties.blob ?? "")?.hierarchicalNamespace ?? false;
  if (isHierarchical !== (account.hierarchicalNamespace ?? false))
    return refused("failedPrecondition", "conflict", otherNamespace(account));
  // Where the account is not at its primary, its keys are those of the primary.
  const role = roleOf(held.geoRole);
  if (!role.ok || role.value.role !== "primary") return role.ok ? ok() : role;
  if (compareBytes(held.configuredDigest, configuredDigest) === 0) return ok();
  const expectedConfiguredDigest = Uint8Array.from(held.configuredDigest);
  const sameRole = held.geoRole === "" ? {} : { expectedGeoRole: held.geoRole };
  const change = { account: account.name, keys, configuredDigest, expectedConfiguredDigest, ...sameRole };
  const changed = await rows.execute({ case: "changeAccount", value: change }, options);
  if (!changed.ok) return changed;
  if (changed.value.case !== "account") return refused("aborted", "conflict", "the account was changed meanwhile");
  world.logger.info("an account has the keys of the changed configuration", { account: account.name });
  return ok();
}
