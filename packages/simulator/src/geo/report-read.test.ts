/** Content of blobs that only a deposed primary had, read back by its report: page by page at the door of its front-end, as an operator of the stamp does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, compareBytes, type Outcome, rulesWithout } from "@stamp/base";
import { chunkBytes } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { type DivergedRow, FrontEnd, PartitionManager, PartitionServer, type RangePartition, RoleCommand } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, beginPair, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const options = { timeoutMs: 10_000 };
const put = { "x-ms-blob-type": "BlockBlob" };
const page = { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "4096" };
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const blockList = (ids: readonly string[]): Uint8Array =>
  Buffer.from(`<?xml version="1.0"?><BlockList>${ids.map((id) => `<Latest>${base64(id)}</Latest>`).join("")}</BlockList>`);
const setPage = (from: number): Readonly<Record<string, string>> => ({
  "x-ms-page-write": "update",
  "x-ms-range": `bytes=${from}-${from + 511}`,
});
/** Three blocks of more than a page of the answer. */
const blockBytes = 600_000;

async function report(at: OneStamp): Promise<readonly DivergedRow[]> {
  const rows: DivergedRow[] = [];
  for (let marker = ""; ; ) {
    const told = await at.until("a page of the report", () => at.accounts.listDiverged({ account, marker }, options));
    rows.push(...told.rows);
    marker = told.nextMarker;
    if (marker === "") return rows;
  }
}

interface Place {
  readonly account: string;
  readonly key: Uint8Array;
  readonly operation: bigint;
  readonly sequence: bigint;
}

/** Returns all of the content, or why it is refused. */
async function content(at: OneStamp, place: Place): Promise<Outcome<Buffer>> {
  const client = at.world.transport.client(at.door, FrontEnd);
  const parts: Uint8Array[] = [];
  for (let bytes = 0; ; ) {
    const read = await client.readDiverged({ place, startBytes: BigInt(bytes) }, options);
    if (!read.ok) return read;
    parts.push(read.value.payload);
    bytes += read.value.payload.length;
    if (bytes >= Number(read.value.contentLength)) return { ok: true, value: Buffer.concat(parts) };
    assert.ok(read.value.payload.length > 0);
  }
}

/** A primary changes blobs that its copy does not hear of, is deposed by force, and is filled from the new one. */
async function deposed(sim: Simulation): Promise<OneStamp> {
  const { a, b } = await beginPair(sim, async (at) => {
    const here = await BlobsAt.of(sim, at);
    await here.done("PUT", "/con?restype=container");
    await at.until("a scope", () => at.accounts.createEncryptionScope({ account, scope: "scope1" }, options));
    await sleep(at.world.clock, 30_000);
    await here.done("PUT", "/con/old-pages", { ...page, "x-ms-blob-content-length": String(2 * chunkBytes) });
    await here.done("PUT", "/con/old-pages?comp=page", setPage(0), bytesOf("shipped", 512));
    await here.done("PUT", "/con/old-text", put, bytesOf("old-text", 70_000));
  });
  const here = await BlobsAt.of(sim, a);
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  await untilShipped(a);
  sim.partition([a.server(1), a.server(2)], [b.door]);
  await here.done("PUT", "/con/small", put, bytesOf("small", 100));
  await here.done("PUT", "/con/empty", put, new Uint8Array(0));
  for (const id of ["b0", "b1", "b2"]) await here.done("PUT", `/con/large?comp=block&blockid=${base64(id)}`, {}, bytesOf(id, blockBytes));
  await here.done("PUT", "/con/large?comp=blocklist", {}, blockList(["b0", "b1", "b2"]));
  await here.done("PUT", "/con/scoped", { ...put, "x-ms-encryption-scope": "scope1" }, bytesOf("scoped", blockBytes));
  await here.done("PUT", "/con/scoped-small", { ...put, "x-ms-encryption-scope": "scope1" }, bytesOf("scoped", 100));
  await here.done("PUT", "/con/twice", put, bytesOf("first", 70_000));
  await here.done("PUT", "/con/twice", put, bytesOf("second", 70_000));
  await here.done("PUT", "/con/new-pages", page);
  await here.done("PUT", "/con/new-pages?comp=page", setPage(1024), bytesOf("page", 512));
  await here.done("PUT", "/con/old-pages?comp=page", setPage(chunkBytes), bytesOf("page", 512));
  await here.done("PUT", "/con/old-text?comp=metadata", { "x-ms-meta-a": "b" });
  await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
  await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
  sim.heal();
  await until(a, "the old primary is a copy", async () => (await a.role()) === "secondary");
  // The new primary has other content under the same names.
  const there = await BlobsAt.of(sim, b);
  await there.done("PUT", "/con/large", put, bytesOf("other", 70_000));
  await there.done("PUT", "/con/twice", put, bytesOf("other", 70_000));
  await untilShipped(b);
  return a;
}

test("report: the content of blobs that it names is read back; what is not all in it is refused, and so is what it does not name", async () => {
  const sim = new Simulation({ seed: 2, rules: allRules });
  await sim.run(async () => {
    const a = await deposed(sim);
    const manager = a.world.transport.client(a.manager, PartitionManager);
    for (const { rangeId, table } of await a.ranges())
      if (table === "Blob") await a.until("a pass", () => manager.collectRange({ rangeId }, { timeoutMs: 20_000 }));
    const rows = (await report(a)).filter(({ kind, deleted }) => kind === "blob" && !deleted);
    const newest = (blob: string): Place => {
      const row = rows.filter((one) => one.blob === blob).reduce((x, y) => (y.sequence > x.sequence ? y : x));
      return { account, key: row.key, operation: row.operation, sequence: row.sequence };
    };
    const expected: Readonly<Record<string, Uint8Array>> = {
      small: bytesOf("small", 100),
      empty: new Uint8Array(0),
      large: Buffer.concat(["b0", "b1", "b2"].map((id) => bytesOf(id, blockBytes))),
      scoped: bytesOf("scoped", blockBytes),
      "scoped-small": bytesOf("scoped", 100),
      twice: bytesOf("second", 70_000),
      "new-pages": Buffer.concat([Buffer.alloc(1024), bytesOf("page", 512), Buffer.alloc(4096 - 1536)]),
    };
    for (const [blob, bytes] of Object.entries(expected)) {
      const read = await content(a, newest(blob));
      assert.ok(read.ok, `${blob}: ${read.ok ? "" : read.failure.message}`);
      assert.ok(read.value.equals(Buffer.from(bytes)), blob);
    }
    const refusal = async (place: Place): Promise<string> => {
      const read = await content(a, place);
      return read.ok ? `${read.value.length} bytes` : `${read.failure.code}: ${read.failure.message}`;
    };
    assert.match(await refusal(newest("old-pages")), /failedPrecondition: .*which of its pages were written earlier is not known/);
    const small = newest("small");
    assert.match(await refusal({ ...small, sequence: small.sequence - 1n }), /notFound: .*no row of the blob that commit/);
    assert.match(await refusal({ ...small, operation: 2n }), /notFound/);
    assert.match(await refusal({ ...small, account: "other" }), /invalidArgument: the key is of no blob of account other/);
    assert.match(await refusal({ ...small, key: small.key.subarray(0, 12) }), /invalidArgument/);
    const other = sim.world("client-strange").transport.client(a.door, FrontEnd);
    assert.ok((await other.readDiverged({ place: small, startBytes: 1_000n }, options)).ok, "behind the end there are no bytes");

    // The halves of a split have the report each of its own rows, and the other half refuses to look.
    const whole = (await a.ranges()).find(({ table }) => table === "Blob");
    await a.until("a split", () => manager.splitPartition({ rangeId: whole?.rangeId ?? "" }, options));
    const read = await content(a, newest("large"));
    assert.ok(read.ok && read.value.equals(Buffer.from(expected.large ?? [])), "large, after the split");
    const isIn = ({ lowKey, highKey }: RangePartition): boolean =>
      compareBytes(lowKey, small.key) <= 0 && (highKey.length === 0 || compareBytes(small.key, highKey) < 0);
    for (const range of (await a.ranges()).filter(({ table }) => table === "Blob")) {
      const { rangeId, rangeVersion, serverAddress } = range;
      const server = a.world.transport.client(serverAddress, PartitionServer);
      const answer = await server.readDivergedBlob({ rangeId, rangeVersion, place: small, endBytes: 100n }, options);
      assert.equal(answer.ok ? "read" : answer.failure.reason, isIn(range) ? "read" : "wrongPartition");
    }
  });
});

test("report: without the rule geoReportedContentWhole a page blob has zeros for what was shipped before", async () => {
  const sim = new Simulation({ seed: 2, rules: rulesWithout("geoReportedContentWhole") });
  await sim.run(async () => {
    const a = await deposed(sim);
    const rows = (await report(a)).filter(({ blob, kind }) => blob === "old-pages" && kind === "blob");
    const { key, operation, sequence } = rows.reduce((x, y) => (y.sequence > x.sequence ? y : x));
    const read = await content(a, { account, key, operation, sequence });
    assert.ok(read.ok && read.value.subarray(0, 512).equals(Buffer.alloc(512)));
  });
});
