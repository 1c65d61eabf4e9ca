/** Blobs of an account at two stamps: seeded, shipped, with their bytes; what was collected at the primary before it was sent is not missed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, featureLevel, type RuleName, rulesWithout, utf8 } from "@stamp/base";
import { blobSchema, encodeKey, encodeRow } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { GeoDoor, PartitionManager, RoleCommand } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, beginPair, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const seconds = 1_000;
const lease = "11111111-2222-3333-4444-555555555555";

const block = (id: string): string => encodeURIComponent(Buffer.from(id).toString("base64"));
const blockList = (...ids: string[]): Uint8Array =>
  utf8(`<BlockList>${ids.map((id) => `<Latest>${decodeURIComponent(block(id))}</Latest>`).join("")}</BlockList>`);

/** Blobs of every type and state, whose names begin so. Returns their paths. */
async function writeAll(at: BlobsAt, prefix: string): Promise<readonly string[]> {
  const put = { "x-ms-blob-type": "BlockBlob" };
  const path = (name: string): string => `/con/${prefix}-${name}`;
  const bytes = (name: string, length: number): Uint8Array => bytesOf(prefix + name, length);
  await at.done("PUT", path("small"), { ...put, "x-ms-meta-one": "1", "content-type": "text/plain" }, bytes("small", 900));
  await at.done("PUT", path("placed"), { ...put, "x-ms-tags": "kind=placed" }, bytes("placed", 90_000));
  for (const id of ["aa", "bb"]) await at.done("PUT", `${path("blocks")}?comp=block&blockid=${block(id)}`, {}, bytes(id, 30_000));
  await at.done("PUT", `${path("blocks")}?comp=blocklist`, {}, blockList("aa", "bb"));
  await at.done("PUT", `${path("blocks")}?comp=snapshot`);
  await at.done("PUT", `${path("blocks")}?comp=block&blockid=${block("cc")}`, {}, bytes("cc", 20_000));
  await at.done("PUT", `${path("blocks")}?comp=blocklist`, {}, blockList("bb", "cc"));
  await at.done("PUT", `${path("staged")}?comp=block&blockid=${block("dd")}`, {}, bytes("dd", 20_000));
  await at.done("PUT", path("pages"), { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "524288" });
  for (const [from, length] of [
    [0, 65_536],
    [261_632, 1_024],
    [512, 512],
  ] as const) {
    const range = { "x-ms-range": `bytes=${from}-${from + length - 1}`, "x-ms-page-write": "update" };
    await at.done("PUT", `${path("pages")}?comp=page`, range, bytes(`${from}`, length));
  }
  await at.done("PUT", path("appended"), { "x-ms-blob-type": "AppendBlob" });
  for (let i = 0; i < 5; i++) await at.done("PUT", `${path("appended")}?comp=appendblock`, {}, bytes(`${i}`, 3_000 + i));
  await at.done("PUT", path("leased"), put, bytes("leased", 10));
  const acquire = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": lease };
  await at.done("PUT", `${path("leased")}?comp=lease`, acquire);
  await at.done("PUT", path("gone"), put, bytes("gone", 40_000));
  await at.done("DELETE", path("gone"));
  return ["small", "placed", "blocks", "pages", "appended", "leased", "gone"].map(path);
}

/** Both stamps show the same: every blob with bytes and headers, the list, and the blocks that wait for their list. */
async function assertSame(a: BlobsAt, b: BlobsAt, paths: readonly string[]): Promise<void> {
  assert.equal(await b.list("con"), await a.list("con"));
  for (const path of paths) assert.equal(await b.seen(path), await a.seen(path), path);
  for (const path of paths.filter((one) => one.endsWith("-blocks"))) {
    const staged = path.replace("-blocks", "-staged");
    const [here, there] = [
      await a.done("GET", `${staged}?comp=blocklist&blocklisttype=all`),
      await b.done("GET", `${staged}?comp=blocklist&blocklisttype=all`),
    ];
    assert.equal(Buffer.from(there.body).toString(), Buffer.from(here.body).toString());
  }
}

async function split(at: OneStamp): Promise<void> {
  const range = (await at.ranges()).find(({ table }) => table === "Blob");
  const manager = at.world.transport.client(at.manager, PartitionManager);
  await at.until("a split", () => manager.splitPartition({ rangeId: range?.rangeId ?? "" }, { timeoutMs: 10_000 }));
}

/** Passes of the collector over the ranges of blobs. */
async function collect(at: OneStamp, passes: number): Promise<{ readonly extents: number; readonly rows: number }> {
  const manager = at.world.transport.client(at.manager, PartitionManager);
  let [extents, rows] = [0, 0];
  for (let pass = 0; pass < passes; pass++) {
    for (const { rangeId, table } of await at.ranges()) {
      if (table !== "Blob") continue;
      const collected = await at.until("a pass", () => manager.collectRange({ rangeId }, { timeoutMs: 20_000 }));
      extents += collected.extentsDropped;
      rows += Number(collected.rowsDeleted);
    }
    await sleep(at.world.clock, 3 * seconds);
  }
  return { extents, rows };
}

async function begin(sim: Simulation, prefixes: readonly string[]) {
  const paths: string[] = [];
  const written = async (a: OneStamp): Promise<void> => {
    const at = await BlobsAt.of(sim, a);
    await at.done("PUT", "/con?restype=container", { "x-ms-meta-of": "a" });
    for (const prefix of prefixes) paths.push(...(await writeAll(at, prefix)));
  };
  const { a, b } = await beginPair(sim, written);
  const here = await BlobsAt.of(sim, a);
  const there = await BlobsAt.of(sim, b, { secondary: true });
  return { a, b, here, there, paths };
}

test("two stamps: blobs of before and after, of every type, are at the second one with bytes, ETags, times, tags, snapshots and leases", async () => {
  const sim = new Simulation({ seed: 1, rules: allRules });
  await sim.run(async () => {
    const { a, b, here, there, paths } = await begin(sim, ["before"]);
    paths.push(...(await writeAll(here, "beside")));
    sim.crash(a.server(1));
    paths.push(...(await writeAll(here, "crash")));
    sim.crash(b.server(2));
    await split(b);
    paths.push(...(await writeAll(here, "split")));
    await here.done("PUT", "/con/beside-placed", { "x-ms-blob-type": "BlockBlob" }, bytesOf("over", 50_000));
    await here.done("PUT", "/con/copied", { "x-ms-copy-source": `http://127.0.0.1:10000/${account}/con/before-placed` });
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    await assertSame(here, there, [...paths, "/con/copied"]);
    assert.ok(paths.length === 28 && (await there.seen("/con/split-placed"))?.startsWith("200 false 90000 bytes"));
    assert.equal((await there.ask("PUT", "/con/new", { "x-ms-blob-type": "BlockBlob" }, utf8("x"))).status, 403);
    assert.deepEqual([(await a.progress())?.complete, (await a.progress())?.trouble], [true, ""]);
    // Collections at both stamps, of what was overwritten and deleted, take nothing that is named.
    await here.done("DELETE", "/con/before-pages");
    await collect(a, 2);
    await untilShipped(a);
    await collect(b, 2);
    await assertSame(here, there, [...paths, "/con/copied"]);
  });
});

test("two stamps: bytes that the primary has collected before they were sent are not missed: the blob goes as it is now", async () => {
  const sim = new Simulation({ seed: 2, rules: allRules });
  await sim.run(async () => {
    const { a, b, here, there, paths } = await begin(sim, ["one"]);
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    sim.partition([a.server(1), a.server(2)], [b.door]);
    for (let i = 0; i < 6; i++) {
      await here.done("PUT", "/con/over", { "x-ms-blob-type": "BlockBlob" }, bytesOf(`over${i}`, 70_000));
      await here.done("PUT", `/con/deleted${i}`, { "x-ms-blob-type": "BlockBlob" }, bytesOf(`deleted${i}`, 70_000));
      await here.done("DELETE", `/con/deleted${i}`);
    }
    // A server sends from memory what it has just appended, also when the extent is gone. The next owners have nothing there.
    for (const server of [1, 2]) sim.crash(a.server(server));
    await sleep(a.world.clock, 20 * seconds);
    assert.ok((await collect(a, 3)).extents > 3, "extents are given back at the primary");
    assert.equal(await there.seen("/con/over"), undefined);
    // The extent nodes delete them some time later.
    await sleep(a.world.clock, 180 * seconds);
    sim.heal();
    await untilShipped(a);
    await assertSame(here, there, [...paths, "/con/over", "/con/deleted0", "/con/deleted5"]);
    assert.ok(
      a.shipping().some(({ sentWhole }) => sentWhole > 0),
      JSON.stringify(a.shipping()),
    );
  });
});

test("two stamps: after a planned failover the new primary has every blob, a held lease still is, and the old one is filled again", async () => {
  const sim = new Simulation({ seed: 3, rules: allRules });
  await sim.run(async () => {
    const { a, b, here, paths } = await begin(sim, ["one"]);
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await here.done("PUT", "/con/timed", { "x-ms-blob-type": "BlockBlob" }, utf8("timed"));
    // The lease is older than the second stamp's servers know of, when it is taken over.
    await sleep(a.world.clock, 120 * seconds);
    const acquire = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "x-ms-proposed-lease-id": lease };
    await here.done("PUT", "/con/timed?comp=lease", acquire);
    // A part of what fills the old primary again has rows of two ranges there.
    await split(a);
    await a.obey(RoleCommand.DRAIN, 3);
    await untilShipped(a);
    const before = new Map<string, string | undefined>();
    for (const path of paths) before.set(path, await here.seen(path));
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    const now = await BlobsAt.of(sim, b);
    for (const path of paths) assert.equal(await now.seen(path), before.get(path), path);
    const stolen = await now.ask("PUT", "/con/timed?comp=lease", { ...acquire, "x-ms-proposed-lease-id": lease.replaceAll("1", "9") });
    assert.equal(stolen.status, 409, "somebody else has the lease");
    await now.done("PUT", "/con/timed?comp=lease", { "x-ms-lease-action": "renew", "x-ms-lease-id": lease });
    const after = await writeAll(now, "two");
    await until(b, "the old primary is filled again", async () => (await a.role()) === "secondary");
    await untilShipped(b);
    await assertSame(now, await BlobsAt.of(sim, a, { secondary: true }), [...paths, ...after]);
  });
});

test("two stamps: rows of a blob that nothing uses any more are collected at the primary; the copy's collector takes none", async () => {
  const sim = new Simulation({ seed: 5, rules: allRules });
  await sim.run(async () => {
    const { a, b, here } = await begin(sim, []);
    await here.done("PUT", "/con/pages", { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1048576" });
    const write = (text: string) =>
      here.done("PUT", "/con/pages?comp=page", { "x-ms-range": "bytes=0-524287", "x-ms-page-write": "update" }, bytesOf(text, 524_288));
    await write("one");
    const { headers } = await here.done("PUT", "/con/pages?comp=snapshot");
    await write("two");
    await here.done("DELETE", `/con/pages?snapshot=${headers["x-ms-snapshot"]}`);
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    assert.equal((await collect(b, 2)).rows, 0);
    assert.equal((await collect(a, 2)).rows, 2);
    await untilShipped(a);
    assert.deepEqual([(await collect(a, 1)).rows, (await collect(b, 1)).rows], [0, 0]);
  });
});

for (const without of [[], ["geoPlacesChecked"]] as readonly RuleName[][]) {
  const told = without.length === 0 ? "is refused" : "is applied without the rule geoPlacesChecked";
  test(`two stamps: a shipped row whose bytes are not in the receiver's blob data ${told}`, async () => {
    const sim = new Simulation({ seed: 4, rules: rulesWithout(...without) });
    await sim.run(async () => {
      const { a, b } = await begin(sim, []);
      // A PartitionName of the account that nobody uses.
      const name = encodeKey([[account], [1, "con", 7, "nobody"]]);
      const row = {
        key: Uint8Array.from([...name, ...encodeKey([[3, 1, 0]])]),
        value: encodeRow(blobSchema, { places: [{ extentId: 99_999, offsetBytes: 0, lengthBytes: 5 }] }),
      };
      const door = a.world.transport.client(b.door, GeoDoor);
      const commits = [{ sequence: 1_000_000n, lastTicket: 1n, rows: [row] }];
      const shipped = await door.ship(
        { account, epoch: 1n, table: "Blob", knownLevel: featureLevel, shipment: { epoch: 1n, paired: 2n, name, commits } },
        { timeoutMs: 5_000 },
      );
      const high = Uint8Array.from([...name.slice(0, -1), 0x01]);
      const part = { epoch: 1n, paired: 2n, sequence: 2_000_000n, lastTicket: 1n, lowKey: name, highKey: high, rows: [row] };
      const seeded = await door.seed({ account, epoch: 1n, table: "Blob", knownLevel: featureLevel, part }, { timeoutMs: 5_000 });
      const results = [shipped, seeded].map((one) => (one.ok ? "applied" : one.failure.reason));
      assert.deepEqual(results, without.length === 0 ? ["badPlace", "badPlace"] : ["applied", "applied"]);
    });
  });
}
