/**
 * What is made when a stamp is first started, and repeated safely at every start: the Schema table, one range per object table, and the
 * accounts of the configuration.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import {
  accountSchema,
  blobSchema,
  encodeKey,
  encodeRow,
  entitySchema,
  messageSchema,
  objectTables,
  routeOf,
  type Schema,
  schemaSchema,
} from "@stamp/objects";
import { firstRangeOf, partitionMapSchema } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import { PartitionServer, toWire } from "@stamp/wire";
import type { InitialAccount } from "./config.ts";
import type { MapState } from "./map-state.ts";
import type { OwnTable, TableRow } from "./map-table.ts";

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

/** One range for each table that has none. */
export async function writeFirstRanges(map: MapState): Promise<Outcome<void>> {
  const present = new Set(map.current.ranges.map((range) => range.table));
  const missing = objectTables.filter((table) => !present.has(table)).map(firstRangeOf);
  return missing.length > 0 ? map.update(missing) : ok();
}

const putTimeoutMs = 2_000;
const retryMs = 100;
const mapWaitMs = 1_000;

/** Inserts what is absent, through the servers that have the ranges; repeats until it is done or the signal says to stop. */
export async function insertAccounts(world: World, map: MapState, accounts: readonly InitialAccount[], signal: AbortSignal): Promise<void> {
  for (const account of accounts) {
    while (!signal.aborted) {
      const put = await insertAccount(world, map, account);
      if (put.ok) break;
      world.logger.debug("account not inserted yet", { account: account.name, reason: put.failure.reason });
      if (put.failure.reason === "partitionLoading") await map.newerThan(map.current.version, mapWaitMs);
      else await sleep(world.clock, jittered(world.random, retryMs), signal);
    }
  }
}

async function insertAccount(world: World, map: MapState, account: InitialAccount): Promise<Outcome<void>> {
  const value = { account: { name: account.name, keys: [...account.keys] }, onlyIfAbsent: true };
  const route = routeOf(world.rules, { case: "putAccount", value });
  const range = map.current.find(route.table, route.key);
  if (!range || range.server === "" || !range.loaded)
    return refused("unavailable", "partitionLoading", "the range of accounts is not served yet");
  const client = world.transport.client(range.serverAddress, PartitionServer);
  const request = {
    rangeId: range.rangeId,
    rangeVersion: toWire(range.rangeVersion),
    operation: { kind: { case: "putAccount" as const, value } },
  };
  const answer = await client.execute(request, { timeoutMs: putTimeoutMs });
  if (!answer.ok) return answer;
  const kind = answer.value.result?.kind;
  return kind?.case === "account" ? ok() : refused("internal", "bug", `an account was answered by ${kind?.case}`);
}
