/**
 * Finds which incarnations of a container, table or queue exist: asks the server that has their rows, and answers for
 * rows here.
 */
import { compareBytes, type Outcome, ok, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { type Incarnation, incarnationInRow, type ObjectTable, parentRows } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { fromWire, PartitionManager, PartitionServer, type RangePartition } from "@stamp/wire";
import type { AskIncarnations } from "../collector/collector.ts";
import type { Serving } from "../ranges/holdings.ts";

const timeoutMs = 5_000;
/** Rows of one name at most: deleted ones that are kept, and the live one. */
const rowsMax = 10_000;

export async function incarnationsHere(
  { range, engine }: Serving,
  of: Pick<Incarnation, "account" | "name">,
): Promise<Outcome<readonly number[]>> {
  const { low, high } = parentRows(of);
  return engine.read(async (view) => {
    const rows = await view.scan(low, high, { rowsMax, bytesMax: 16 << 20 });
    if (!rows.ok) return rows;
    if (rows.value.more) return refused("resourceExhausted", "overloaded", `${of.name} was deleted and kept more than ${rowsMax} times`);
    return ok(rows.value.rows.map(({ value }) => incarnationInRow(range.table, value)));
  });
}

/** By the partition manager's map, which is asked again when the range was elsewhere. */
export function incarnationsAnywhere(world: World, config: { readonly lockService: string }): AskIncarnations {
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
  const ask = async (table: ObjectTable, of: Pick<Incarnation, "account" | "name">): Promise<Outcome<readonly number[]>> => {
    const { low } = parentRows(of);
    const range = ranges.find(
      (one) =>
        one.table === table && compareBytes(one.lowKey, low) <= 0 && (one.highKey.length === 0 || compareBytes(low, one.highKey) < 0),
    );
    if (!range || range.serverAddress === "") return refused("unavailable", "wrongPartition", "the range is not served now");
    const { rangeId, rangeVersion } = range;
    const client = world.transport.client(range.serverAddress, PartitionServer);
    const answer = await client.listIncarnations({ rangeId, rangeVersion, account: of.account, name: of.name }, { timeoutMs });
    return answer.ok ? ok(answer.value.incarnations.map(fromWire)) : answer;
  };
  return async (table, of) => {
    const known = await ask(table, of);
    if (known.ok || known.failure.reason !== "wrongPartition") return known;
    const refreshed = await refresh();
    return refreshed.ok ? ask(table, of) : refreshed;
  };
}
