/**
 * Finds which incarnations of a container, table or queue exist: asks the server that has their rows, and answers for
 * rows here.
 */
import { compareBytes, type Outcome, ok, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { containerKey, deletedContainerKey, type Incarnation, incarnationInRow, type ObjectTable, parentRows } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { fromWire, PartitionManager, PartitionServer, type RangePartition, toWire } from "@stamp/wire";
import type { IsThere } from "../collector/collector.ts";
import type { ServingRange } from "../ranges/holdings.ts";

const timeoutMs = 5_000;
/** Rows of one name at most: deleted ones that are kept, and the live one. */
const rowsMax = 10_000;

/** Returns the incarnations of a name that exist; with `incarnation`, this one if it exists. */
export async function incarnationsHere(
  held: ServingRange,
  { account, name, incarnation }: { readonly account: string; readonly name: string; readonly incarnation?: bigint | undefined },
): Promise<Outcome<readonly number[]>> {
  if (incarnation !== undefined) return oneHere(held, { account, name, incarnation: fromWire(incarnation) });
  const { range, engine } = held;
  const { low, high } = parentRows({ account, name });
  return engine.read(async (view) => {
    const rows = await view.scan(low, high, { rowsMax, bytesMax: 16 << 20 });
    if (!rows.ok) return rows;
    if (rows.value.more) return refused("resourceExhausted", "overloaded", `${name} was deleted and kept more than ${rowsMax} times`);
    return ok(rows.value.rows.map(({ value }) => incarnationInRow(range.table, value)));
  });
}

/**
 * Looks at two rows only: the live one, and the one of a container that was deleted with this incarnation and is kept. One walk sees both at one
 * moment: a deletion and a restore move an incarnation from one row to the other.
 */
async function oneHere({ range, engine }: ServingRange, of: Incarnation): Promise<Outcome<readonly number[]>> {
  const { low, high } = parentRows(of);
  const kept = deletedContainerKey(of.account, of.name, of.incarnation);
  return engine.read(async (view) => {
    let live: Uint8Array | undefined;
    let isKept = false;
    const walked = await view.walk(low, high, ({ key, value }) => {
      isKept = compareBytes(key, kept) === 0;
      if (compareBytes(key, containerKey(of.account, of.name)) === 0) live = Uint8Array.from(value);
      return compareBytes(key, kept) < 0 ? kept : undefined;
    });
    if (!walked.ok) return walked;
    const isThere = isKept || (live !== undefined && incarnationInRow(range.table, live) === of.incarnation);
    return ok(isThere ? [of.incarnation] : []);
  });
}

/** Asks by the partition manager's map, which is asked again when the range was elsewhere. */
export function incarnationsAnywhere(world: World, config: { readonly lockService: string }): IsThere {
  const manager = new LeaderCalls(world, { lockService: config.lockService, leaseName: "partition-manager" });
  let ranges: readonly RangePartition[] = [];
  const refresh = async (): Promise<Outcome<void>> => {
    const map = await manager.call(
      timeoutMs,
      (address, leftMs) => world.transport.client(address, PartitionManager).getMap({}, { timeoutMs: leftMs }),
      {
        idempotent: true,
      },
    );
    if (!map.ok) return map;
    ranges = map.value.ranges;
    return ok();
  };
  const ask = async (table: ObjectTable, { account, name, incarnation }: Incarnation): Promise<Outcome<boolean>> => {
    const { low } = parentRows({ account, name });
    const range = ranges.find(
      (one) =>
        one.table === table && compareBytes(one.lowKey, low) <= 0 && (one.highKey.length === 0 || compareBytes(low, one.highKey) < 0),
    );
    if (!range || range.serverAddress === "") return refused("unavailable", "wrongPartition", "the range is not served now");
    const { rangeId, rangeVersion } = range;
    const client = world.transport.client(range.serverAddress, PartitionServer);
    const request = { rangeId, rangeVersion, account, name, incarnation: toWire(incarnation) };
    const answer = await client.listIncarnations(request, { timeoutMs });
    return answer.ok ? ok(answer.value.incarnations.includes(request.incarnation)) : answer;
  };
  return async (table, of) => {
    const known = await ask(table, of);
    if (known.ok || known.failure.reason !== "wrongPartition") return known;
    const refreshed = await refresh();
    return refreshed.ok ? ask(table, of) : refreshed;
  };
}
