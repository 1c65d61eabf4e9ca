/** Bytes of blobs that only a deposed primary had: its collector keeps them as long as its report is kept. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import { Simulation } from "@stamp/virtual-time";
import { type DivergedRow, executeFields, PartitionManager, PartitionServer, type Place, RoleCommand } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, beginPair, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const seconds = 1_000;
const options = { timeoutMs: 10_000 };
/** Larger than an extent is to be: each blob has an extent of its own. */
const blobBytes = 70_000;
const put = { "x-ms-blob-type": "BlockBlob" };

/** Runs an operation at the range of blobs of a stamp. */
async function atBlobs(at: OneStamp, kind: unknown) {
  const range = (await at.ranges()).find(({ table }) => table === "Blob");
  assert.ok(range !== undefined);
  const { rangeId, rangeVersion, serverAddress } = range;
  const request = { rangeId, rangeVersion, ...executeFields({ kind } as never) };
  const server = at.world.transport.client(serverAddress, PartitionServer);
  return (await at.until("an operation", () => server.execute(request as never, options))).result?.kind;
}

/** Returns where the bytes of a blob lie. */
async function placesAt(at: OneStamp, blob: string): Promise<readonly Place[]> {
  const container = await atBlobs(at, { case: "getContainer", value: { account, container: "con" } });
  assert.equal(container?.case, "container");
  const containerIncarnation = container?.case === "container" ? container.value.incarnation : 0n;
  const name = { account, container: "con", containerIncarnation, blob };
  const content = await atBlobs(at, { case: "getBlob", value: { name } });
  assert.ok(content?.case === "content", `${blob}: ${content?.case}`);
  return content.value.places;
}

/** Returns the bytes at these places as the extent nodes have them; undefined: they are gone. */
async function read(at: OneStamp, places: readonly Place[]): Promise<Uint8Array | undefined> {
  const { reader } = new StreamClient(at.world, { lockService: at.process("lock-service", 1) });
  const parts: Uint8Array[] = [];
  for (const { extentId, offsetBytes, lengthBytes } of places) {
    const place = { extentId: Number(extentId), offsetBytes: Number(offsetBytes), lengthBytes };
    const part = await reader.read(place, options);
    if (!part.ok) return undefined;
    parts.push(part.value);
  }
  return Buffer.concat(parts);
}

/** Passes of the collector over the range of blobs, and the time after which extent nodes delete what was dropped. */
async function collect(at: OneStamp): Promise<number> {
  const manager = at.world.transport.client(at.manager, PartitionManager);
  let extents = 0;
  for (let pass = 0; pass < 4; pass++) {
    for (const { rangeId, table } of await at.ranges()) {
      if (table !== "Blob") continue;
      extents += (await at.until("a pass", () => manager.collectRange({ rangeId }, { timeoutMs: 20_000 }))).extentsDropped;
    }
    await sleep(at.world.clock, 5 * seconds);
  }
  await sleep(at.world.clock, 180 * seconds);
  return extents;
}

async function report(at: OneStamp): Promise<readonly DivergedRow[]> {
  const rows: DivergedRow[] = [];
  for (let marker = ""; ; ) {
    const page = await at.until("a page of the report", () => at.accounts.listDiverged({ account, marker }, options));
    rows.push(...page.rows);
    marker = page.nextMarker;
    if (marker === "") return rows;
  }
}

async function forget(at: OneStamp): Promise<void> {
  for (let marker = ""; ; ) {
    const page = await at.until("a page goes", () => at.accounts.forgetDiverged({ account, marker }, options));
    marker = page.nextMarker;
    if (marker === "") return;
  }
}

/** A primary has blobs that were not shipped, is deposed by force, and is filled from the new one. */
async function deposed(sim: Simulation) {
  const { a, b } = await beginPair(sim, async (at) => {
    const here = await BlobsAt.of(sim, at);
    await here.done("PUT", "/con?restype=container");
    await here.done("PUT", "/con/both", put, bytesOf("both", blobBytes));
  });
  const here = await BlobsAt.of(sim, a);
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  await untilShipped(a);
  sim.partition([a.server(1), a.server(2)], [b.door]);
  const names = ["lost-1", "lost-2", "lost-3"];
  for (const name of [...names, "garbage"]) await here.done("PUT", `/con/${name}`, put, bytesOf(name, blobBytes));
  await here.done("DELETE", "/con/garbage");
  const places = new Map<string, readonly Place[]>();
  for (const name of names) places.set(name, await placesAt(a, name));
  // These fill the extents of the blobs before them.
  for (let i = 0; i < 2; i++) await here.done("PUT", "/con/last", put, bytesOf(`last${i}`, blobBytes));
  await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
  await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
  sim.heal();
  await until(a, "the old primary is a copy", async () => (await a.role()) === "secondary");
  const copy = await BlobsAt.of(sim, a, { secondary: true });
  assert.equal(await copy.seen("/con/lost-1"), undefined, "rows of the deposed primary were replaced");
  return { a, places };
}

test("report: the collector of a deposed primary keeps the bytes that its report names, over crashes, until the report is forgotten", async () => {
  const sim = new Simulation({ seed: 1, rules: allRules });
  await sim.run(async () => {
    const { a, places } = await deposed(sim);
    for (const server of [a.server(1), a.server(2)]) sim.crash(server);
    await collect(a);
    for (const [name, where] of places) assert.deepEqual(await read(a, where), Buffer.from(bytesOf(name, blobBytes)), name);
    const told = new Set((await report(a)).map(({ blob }) => blob));
    assert.deepEqual(
      [...places.keys()].filter((name) => !told.has(name)),
      [],
      "the report names them",
    );
    await forget(a);
    assert.ok((await collect(a)) >= places.size, "the space is given back");
    for (const [name, where] of places) assert.equal(await read(a, where), undefined, name);
  });
});

test("report: without the rule geoReportedBytesCount the bytes are gone while the report still names their blobs", async () => {
  const sim = new Simulation({ seed: 1, rules: rulesWithout("geoReportedBytesCount") });
  await sim.run(async () => {
    const { a, places } = await deposed(sim);
    await collect(a);
    const gone = await Promise.all([...places.values()].map((where) => read(a, where)));
    assert.deepEqual(gone, [undefined, undefined, undefined]);
    assert.ok((await report(a)).some(({ blob }) => blob === "lost-1"));
  });
});
