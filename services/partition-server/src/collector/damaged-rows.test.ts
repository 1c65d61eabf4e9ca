/** Rows that can't be read, and names with many kept deletions: the collector leaves what they decide, and goes on for all others of the range. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ok, present } from "@stamp/base";
import { blobSchema, containerKey, deletedContainerKey, encodeKey, encodeRow, partitionStart, type RowWrite } from "@stamp/objects";
import type { Simulation } from "@stamp/virtual-time";
import { type CollectRangeResponse, PartitionManager, StreamManager } from "@stamp/wire";
import { Client, container, container1, name, stamp } from "../testing/stack-harness.ts";
import { Collector } from "./collector.ts";

const servers = { extentTargetBytes: 64 * 1024, pinTermMs: 1, collectGoneMs: 1, collectEveryMs: 86_400_000 };
const unreadable = Uint8Array.of(0, 1);
/** Its incarnation is a text: whoever asks for incarnations can't read the row. */
const odd = Uint8Array.of(1, 1, 1, 9, 1, 65);

/** Remembers what the range of blobs is served by, once a pass was made. */
function watched(t: TestContext) {
  const seen: { engine?: Parameters<Collector["collect"]>[0]["engine"] } = {};
  const collect = Collector.prototype.collect;
  t.mock.method(Collector.prototype, "collect", function (this: Collector, held: Parameters<typeof collect>[0]) {
    if (held.range.rangeId === "blob-1") seen.engine = held.engine;
    return collect.call(this, held);
  });
  return {
    /** Writes rows as they are. */
    write: async (rows: readonly (readonly [key: Uint8Array, value: Uint8Array])[]) => {
      const writes = rows.map(([key, value]): RowWrite => ({ kind: "put", key, value }));
      const lock = present(partitionStart(present(rows[0], "a row")[0]), "a PartitionName");
      const engine = present(seen.engine, "an engine");
      const done = await engine.transact([lock], async () => ok({ result: { case: "done" }, writes }), {
        timeoutMs: 5_000,
        pipelined: false,
      });
      assert.ok(done.ok, done.ok ? "" : done.failure.message);
    },
  };
}

async function collect(sim: Simulation, passes: number): Promise<CollectRangeResponse[]> {
  const manager = sim.world("operator").transport.client("pm", PartitionManager);
  const all: CollectRangeResponse[] = [];
  while (all.length < passes) {
    const collected = await manager.collectRange({ rangeId: "blob-1" }, { timeoutMs: 60_000 });
    assert.ok(collected.ok, collected.ok ? "" : collected.failure.message);
    all.push(collected.value);
    await sim.sleep(10);
  }
  return all;
}

async function extents(sim: Simulation): Promise<number> {
  const manager = sim.world("operator").transport.client("sm", StreamManager);
  const stream = await manager.getStream({ name: "/ps/blob-1/blob-data" }, { timeoutMs: 1_000 });
  return stream.ok ? stream.value.extents.length : Number.NaN;
}

async function put(client: Client, blob: string, incarnation: bigint): Promise<void> {
  const kind = { case: "putBlob", value: { name: name(blob, incarnation) } };
  const places = await client.write(kind, new Uint8Array(20_000).fill(7));
  await client.execute({ ...kind, value: { ...kind.value, body: { inline: new Uint8Array(0), places } } });
}

/** Key of a row of a blob in a container of another account; 0: its head row. */
const blobRow = (account: string, of: string, row: readonly number[]): Uint8Array => encodeKey([[account], [1, of, 7, "b"], [...row]]);

/** Bytes and rows in a container that is then deleted. */
async function filled(sim: Simulation) {
  await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
  const client = new Client(sim);
  const incarnation = await container1(client);
  for (let at = 0; at < 20; at++) await put(client, `b${at}`, incarnation);
  await collect(sim, 1);
  return client;
}

const deleted = (passes: readonly CollectRangeResponse[]): number => passes.reduce((sum, { rowsDeleted }) => sum + Number(rowsDeleted), 0);

test("collector: a row that can't be read keeps only what it decides: container, kept container, blob", async (t) => {
  const range = watched(t);
  const sim = stamp(44, servers);
  await sim.run(async () => {
    const client = await filled(sim);
    const blob = (row: readonly number[]) => blobRow("aab", "c", row);
    await range.write([
      [containerKey("aaa", "c"), odd],
      [blobRow("aaa", "c", [0]), encodeRow(blobSchema, {})],
    ]);
    await range.write([[containerKey("aab", "c"), encodeRow(blobSchema, { incarnation: 7n })]]);
    await range.write([
      [containerKey("aac", "c"), unreadable],
      [deletedContainerKey("aac", "c", 5), unreadable],
    ]);
    // A state that can't be read names no content: content that nobody names is garbage elsewhere.
    const content = encodeRow(blobSchema, {});
    await range.write([
      [blob([0]), Uint8Array.of(1, 1, 1, 9, 1, 65)],
      [blob([3, 1, 0]), content],
    ]);
    const before = await extents(sim);
    await client.execute({ case: "deleteContainer", value: container });
    const passes = await collect(sim, 4);
    assert.ok(deleted(passes) >= 20, `${deleted(passes)} rows of the deleted container of another account`);
    assert.ok((await extents(sim)) < before - 3, "its bytes are given back");
    const [last] = await collect(sim, 1);
    // Three rows of parents that can't be read, one parent, one blob of each of two accounts with its content.
    assert.equal(Number(last?.rows), 7);
  });
});

test("collector: while a row's references can't be read, no extent is given back, and rows still are", async (t) => {
  const range = watched(t);
  const sim = stamp(45, servers);
  await sim.run(async () => {
    const client = await filled(sim);
    await range.write([[containerKey("aab", "c"), encodeRow(blobSchema, { incarnation: 7n })]]);
    await range.write([[blobRow("aab", "c", [0]), unreadable]]);
    const before = await extents(sim);
    await client.execute({ case: "deleteContainer", value: container });
    const passes = await collect(sim, 4);
    assert.ok(deleted(passes) >= 20, `${deleted(passes)} rows`);
    assert.ok((await extents(sim)) >= before, "any extent may be one that the row refers to");
    await range.write([[blobRow("aab", "c", [0]), encodeRow(blobSchema, {})]]);
    await collect(sim, 2);
    assert.ok((await extents(sim)) < before - 3, "known again");
  });
});

test("collector: a name that was deleted and kept more often than one answer lists ends no pass", async (t) => {
  const range = watched(t);
  const sim = stamp(46, servers);
  await sim.run(async () => {
    const client = await filled(sim);
    const kept = (incarnation: number) =>
      [deletedContainerKey("aaa", "often", incarnation), encodeRow(blobSchema, { incarnation: BigInt(incarnation) })] as const;
    for (let at = 1; at <= 10_001; at += 2_000)
      await range.write(Array.from({ length: Math.min(2_000, 10_002 - at) }, (_, i) => kept(at + i)));
    const inside = (incarnation: number, blob: string) =>
      [encodeKey([["aaa"], [1, "often", incarnation, blob], [0]]), encodeRow(blobSchema, {})] as const;
    await range.write([inside(9_999, "kept")]);
    await range.write([inside(20_000, "gone")]);
    await client.execute({ case: "deleteContainer", value: container });
    const passes = await collect(sim, 4);
    assert.ok(deleted(passes) >= 21, `${deleted(passes)} rows`);
    const [last] = await collect(sim, 1);
    assert.equal(Number(last?.rows), 10_001 + 1, "what is in a kept container stays");
  });
});
