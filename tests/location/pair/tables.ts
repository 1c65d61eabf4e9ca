/**
 * An account at two stamps of real processes, each with a secret of its own: what the SDK writes to tables at the primary is
 * at the secondary, with the same ETags and times and in the same order for each PartitionKey, while the link is cut and
 * processes of both stamps are killed at random.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { killProcess, pidOf, type StampName, type TwoStamps, untilCopy, waitMs } from "../testing/two-stamps.ts";

const account = "pairs";

/** A write of one PartitionKey. Three in a row: A, B, and the number of the pair in the entity "last". */
type Kind = "A" | "B";

interface Entity {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly pair: number;
  readonly etag: string;
  readonly timestamp: string;
}

const names = ["foo", "bar", "baz", "qux"] as const;
/**
 * A read of a PartitionKey is judged as one moment of its range, so all its entities have to be in one page, which holds 1,000: a writer
 * begins another PartitionKey after so many pairs.
 */
const pairsInPartition = 300;
const partitionOf = (writer: string, pair: number): string => `${writer}-${Math.floor(pair / pairsInPartition)}`;
const rowKeyOf = (kind: Kind, pair: number): string => `${kind}-${String(pair).padStart(5, "0")}`;

async function entitiesOf(table: TableClient, partition?: string): Promise<Entity[]> {
  const filter = partition === undefined ? {} : { queryOptions: { filter: `PartitionKey eq '${partition}'` } };
  const found: Entity[] = [];
  for await (const each of table.listEntities<{ pair: number }>(filter)) {
    found.push({
      partitionKey: each.partitionKey as string,
      rowKey: each.rowKey as string,
      pair: each.pair,
      etag: each.etag,
      timestamp: each.timestamp as string,
    });
  }
  return found;
}

/** Judges what one read of a PartitionKey showed: the writes up to some one, and none behind it. Returns the number of pairs. */
function assertPrefix(entities: readonly Entity[]): number {
  const [a, b] = (["A", "B"] as const).map((kind) => entities.filter(({ rowKey }) => rowKey.startsWith(`${kind}-`)));
  const last = entities.find(({ rowKey }) => rowKey === "last")?.pair ?? -1;
  const seen = `${a?.length} A, ${b?.length} B, last ${last}`;
  for (const [kind, rows] of [["A", a] as const, ["B", b] as const])
    assert.deepEqual(
      rows?.map(({ rowKey }) => rowKey),
      Array.from({ length: rows?.length ?? 0 }, (_, i) => rowKeyOf(kind, i)),
      seen,
    );
  const [as, bs] = [a?.length ?? 0, b?.length ?? 0];
  assert.ok(as - bs === 0 || as - bs === 1, seen);
  assert.ok(bs - (last + 1) === 0 || (bs - (last + 1) === 1 && as === bs), seen);
  return bs;
}

interface Process {
  readonly stamp: StampName;
  readonly name: string;
}

const shipper: Process = { stamp: "north-1", name: "partition-server-1" };

/** Each cuts the link once: by stopping its far end for some seconds, or by killing what sends or receives. */
const cuts: readonly (Process & { readonly signal: "SIGSTOP" | "SIGKILL" })[] = [
  { stamp: "south-1", name: "front-end-1", signal: "SIGSTOP" },
  { ...shipper, signal: "SIGKILL" },
  { stamp: "south-1", name: "partition-server-1", signal: "SIGKILL" },
  { stamp: "south-1", name: "front-end-1", signal: "SIGKILL" },
];

export async function tablesAreCopied(t: TestContext, two: TwoStamps): Promise<void> {
  const { data, portBase, ok } = two;
  const { keys } = JSON.parse(await ok("account", "create", account, "--location", "north", "--geo", "south", "--json"));
  const credential = new AzureNamedKeyCredential(account, keys[0]);
  const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 40, retryDelayInMs: 200, maxRetryDelayInMs: 1_000 } };
  const primary = `http://127.0.0.1:${portBase + 2}/${account}`;
  const secondary = `http://127.0.0.1:${portBase + 302}/${account}-secondary`;
  const here = new TableClient(primary, "pairs", credential, options);
  const there = new TableClient(secondary, "pairs", credential, options);
  await here.createTable();
  await untilCopy(two, account, "a complete copy", ({ seeded }) => seeded);

  const stopping = new AbortController();
  const writers = names.map((name) => ({ name, pairs: 0 }));
  const writing = writers.map(async (writer) => {
    for (; !stopping.signal.aborted; writer.pairs++) {
      const partitionKey = partitionOf(writer.name, writer.pairs);
      const pair = writer.pairs % pairsInPartition;
      for (const kind of ["A", "B"] as const) await here.upsertEntity({ partitionKey, rowKey: rowKeyOf(kind, pair), pair }, "Replace");
      await here.upsertEntity({ partitionKey, rowKey: "last", pair }, "Replace");
    }
  });
  let [judged, highest] = [0, 0];
  const reader = (async () => {
    while (!stopping.signal.aborted) {
      for (const { name, pairs } of writers) {
        highest = Math.max(highest, assertPrefix(await entitiesOf(there, partitionOf(name, pairs))));
        judged++;
        await waitMs(50);
      }
    }
  })();
  // Awaited at the end; a failure before that ends the writers.
  reader.catch(() => stopping.abort());
  const done: string[] = [];
  try {
    for (const each of [...cuts].sort(() => Math.random() - 0.5)) {
      await waitMs(randomInt(500, 3_000));
      const pid = await pidOf(two, each.stamp, each.name);
      process.kill(pid, each.signal);
      if (each.signal === "SIGSTOP") await waitMs(randomInt(500, 4_000)).then(() => process.kill(pid, "SIGCONT"));
      done.push(`${each.signal} to ${each.name} of ${each.stamp}`);
    }
  } finally {
    stopping.abort();
  }
  await Promise.all([...writing, reader]);
  const written = writers.map(({ pairs }) => pairs);
  t.diagnostic(`pairs written: ${written.join(", ")}; reads judged: ${judged}, the last with ${highest} pairs; faults: ${done.join("; ")}`);
  assert.ok(judged > 0 && highest > 0, "nothing was judged");

  await untilCopy(two, account, "an empty backlog", ({ pendingOperations }) => pendingOperations === 0);
  const [original, copied] = [await entitiesOf(here), await entitiesOf(there)];
  assert.equal(
    original.length,
    written.reduce((sum, pairs) => sum + 2 * pairs + Math.ceil(pairs / pairsInPartition), 0),
  );
  assert.equal(copied.length, original.length);
  const different = original.filter((each, i) => JSON.stringify(each) !== JSON.stringify(copied[i]));
  assert.deepEqual(different.slice(0, 3), []);

  await assert.rejects(there.upsertEntity({ partitionKey: "foo", rowKey: "x" }), { statusCode: 403 });
  const statistics = await new TableServiceClient(secondary, credential, options).getStatistics();
  assert.equal(statistics.geoReplication?.status, "live");

  // The wrong secret at the link: another stamp is not spoken to, and the status says why.
  const secret = join(data, "location/stamp-secrets/south-1");
  const own = readFileSync(secret);
  rmSync(secret);
  writeFileSync(secret, "the secret of another stamp, as long as it is", { mode: 0o600 });
  await killProcess(two, shipper.stamp, shipper.name);
  await here.upsertEntity({ partitionKey: "foo", rowKey: "behind", pair: -1 }, "Replace");
  const refused = await untilCopy(two, account, "a refused link", ({ shippingTrouble }) => /secret/.test(shippingTrouble));
  t.diagnostic(`the link with the wrong secret: ${refused.shippingTrouble}`);
  await assert.rejects(there.getEntity("foo", "behind"), { statusCode: 404 });
  rmSync(secret);
  symlinkSync("../../south-1/cluster-secret", secret);
  assert.deepEqual(readFileSync(secret), own);
  await untilCopy(two, account, "an empty backlog", ({ pendingOperations }) => pendingOperations === 0);
  assert.equal((await there.getEntity<{ pair: number }>("foo", "behind")).pair, -1);
}
