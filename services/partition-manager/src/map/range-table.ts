/**
 * The manager's own tables, Partition Map and Schema: range partitions over streams with well-known names, opened with the term as owner
 * epoch. So there is one storage engine, and nothing to bootstrap twice.
 */
import { FailureError, type Outcome, ok, ownerEpoch, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { RangePartition, type RowWrite } from "@stamp/range-partition";
import { StreamClient } from "@stamp/stream-client";
import type { OpenTable, OwnTable, TableRow } from "./map-table.ts";

const openTimeoutMs = 30_000;
const writeTimeoutMs = 5_000;
const rowsMax = 100_000;
/** All rows of a table change in one order: there is one writer. */
const lockKey: Uint8Array = new Uint8Array(0);

export function tableOpener(world: World, config: { readonly lockService: string }): OpenTable {
  const streams = new StreamClient(world, { lockService: config.lockService });
  return async (table, pmTerm, onFenced) => {
    const below = `/pm/${table}`;
    const loaded = await RangePartition.load(world, streams, {
      rangeId: `pm-${table}`,
      streams: { metadata: `${below}/metadata`, commitLog: `${below}/commit-log`, rowData: `${below}/row-data` },
      ownerEpoch: ownerEpoch(pmTerm),
      lowKey: new Uint8Array(0),
      highKey: new Uint8Array(0),
      onLost: onFenced,
      timeoutMs: openTimeoutMs,
    });
    return loaded.ok ? ok(tableOf(loaded.value)) : loaded;
  };
}

function tableOf(partition: RangePartition): OwnTable {
  return {
    readAll: () => readAll(partition),
    write: async (changes, timeoutMs = writeTimeoutMs) => {
      const writes = changes.map((change): RowWrite => ("value" in change ? { kind: "put", ...change } : { kind: "delete", ...change }));
      const written = await partition.transact(lockKey, async () => ({ writes, result: undefined }), { timeoutMs });
      // There is one writer, so the newest commit is this one.
      return written.ok ? ok(partition.stats.sequence) : written;
    },
    get sequence() {
      return partition.stats.sequence;
    },
    lineage: partition.lineage.store,
    close: () => partition.close(),
  };
}

async function readAll(partition: RangePartition): Promise<Outcome<TableRow[]>> {
  const rows: TableRow[] = [];
  try {
    for await (const [key, value] of partition.scan({})) {
      if (rows.length >= rowsMax) return refused("resourceExhausted", "overloaded", `more than ${rowsMax} rows`);
      rows.push({ key, value });
    }
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
  return ok(rows);
}
