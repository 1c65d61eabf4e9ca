/** Archives that were left in the middle, that are damaged, and that somebody has made up. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { exportSteps } from "../export.ts";
import { BlobChanged, type BlobFacts, type BlobGroup, type Item, type SourcePosition, type Step } from "../items.ts";
import { ArchiveReader } from "./archive-reader.ts";
import { ArchiveWriter } from "./archive-writer.ts";
import { bytesName, linesName, sumsName, sumsText } from "./files.ts";

const beginning = { account: "acme", source: "http://127.0.0.1:1/acme", options: { history: true, messages: true }, release: "1.0.0" };
const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

function folderOf(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "stamp-archive-folder-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const facts = (name: string, length: number): BlobFacts => ({
  container: "box",
  name,
  type: "block",
  length,
  snapshot: "",
  version: "",
  current: true,
  headers: {},
  metadata: {},
  tags: {},
  tier: "",
  sequenceNumber: 0,
  modifiedOn: "",
  etag: '"1"',
});

/** A blob of pieces. `broken`: number of the piece at which it changes, once. */
function group(name: string, pieces: readonly string[], broken = -1): BlobGroup {
  const blob = {
    facts: facts(name, pieces.join("").length),
    async *chunks(from = 0) {
      let at = 0;
      for (const [number, text] of pieces.entries()) {
        if (number === broken) throw new BlobChanged("it was changed meanwhile");
        if (at >= from) yield { at, bytes: Buffer.from(text), sha256: sha256(text) };
        at += text.length;
      }
    },
  };
  return { kind: "blobs", container: "box", name, blobs: [blob], again: async () => group(name, pieces) };
}

const box: Item = { kind: "container", name: "box", access: "", metadata: {}, policies: [] };

/** Steps at the positions 1, 2, … */
const source = (items: readonly Item[]) => (from: SourcePosition) =>
  (async function* (): AsyncGenerator<Step, void, undefined> {
    for (const [index, item] of items.entries()) if (index >= Number(from.at ?? 0)) yield { item, next: { at: index + 1 } };
  })();

/** Texts of what an archive has, by the names of blobs and other things. */
async function read(folder: string, from: SourcePosition = {}): Promise<string[]> {
  const found: string[] = [];
  for await (const { item } of (await ArchiveReader.open(folder)).steps(from)) {
    if (item.kind !== "blobs") {
      found.push(item.kind === "messages" ? `messages ${item.messages.map(({ text }) => text)}` : item.kind);
      continue;
    }
    const texts: string[] = [];
    for (const { chunks } of item.blobs) for await (const { bytes } of chunks()) texts.push(Buffer.from(bytes).toString());
    found.push(`${item.name}: ${texts.join("|")}`);
  }
  return found;
}

async function written(folder: string, items: readonly Item[]): Promise<void> {
  const writer = await ArchiveWriter.open(folder, beginning);
  await exportSteps(writer, source(items), () => {});
  await writer.end();
}

test("archive: what a source gives is read as it was, and a blob that changed is there once", async (context) => {
  const folder = folderOf(context);
  await written(folder, [box, group("a", ["one", "two"]), group("changed", ["x", "y", "z"], 2), group("empty", [])]);
  assert.deepEqual(await read(folder), ["container", "a: one|two", "changed: x|y|z", "empty: "]);
});

test("archive: an export that was left goes on, also in the middle of a blob, and leaves out nothing", async (context) => {
  const folder = folderOf(context);
  const items = [box, group("a", ["one", "two", "three"]), group("b", ["four"])];
  for (let killedAt = 1; ; killedAt++) {
    // Each part ends at once, and the process dies at some write.
    let nowMs = 0;
    let writes = 0;
    const writer = await ArchiveWriter.open(folder, beginning, () => (nowMs += 20_000));
    const dying = (what: string): void => {
      if (++writes > killedAt) throw new Error(`killed at ${what}`);
    };
    const steps = (from: SourcePosition) => source(items)(from);
    const line = writer.line.bind(writer);
    writer.line = async (each) => {
      await line(each);
      dying(each.kind);
    };
    try {
      await exportSteps(writer, steps, () => {});
      await writer.end();
      break;
    } catch (error) {
      assert.match((error as Error).message, /killed/);
    } finally {
      await writer.close();
    }
    assert.ok(killedAt < 100);
  }
  assert.deepEqual(await read(folder), ["container", "a: one|two|three", "b: four"]);
  const { manifest } = await ArchiveReader.open(folder);
  assert.deepEqual([manifest.counts.blobs, manifest.counts.bytes, manifest.counts.containers], [2, 15, 1]);
});

test("archive: a snapshot that went while an export was left, and had its blob's ETag, is not continued by the blob", async (context) => {
  const folder = folderOf(context);
  const blob = (each: Partial<BlobFacts>): BlobGroup["blobs"][number] => {
    const [item] = group("a", ["one", "two"]).blobs;
    if (item === undefined) throw new Error("no blob");
    return { ...item, facts: { ...item.facts, ...each } };
  };
  const snapshot = blob({ snapshot: "2026-01-01T00:00:00.0000000Z", current: false });
  const all: BlobGroup = { ...group("a", []), blobs: [snapshot, blob({})] };
  let nowMs = 0;
  const writer = await ArchiveWriter.open(folder, beginning, () => (nowMs += 20_000));
  let commits = 0;
  const commit = writer.commit.bind(writer);
  writer.commit = async (...args) => {
    await commit(...args);
    if (++commits === 2) throw new Error("killed");
  };
  await assert.rejects(
    exportSteps(writer, source([box, all]), () => {}),
    /killed/,
  );
  await writer.close();
  await written(folder, [box, { ...all, blobs: [blob({})] }]);
  const found: unknown[] = [];
  for await (const { item } of (await ArchiveReader.open(folder)).steps({}))
    if (item.kind === "blobs") found.push(item.blobs.map(({ facts: { snapshot, current } }) => [snapshot, current]));
  assert.deepEqual(found, [[["", true]]]);
});

test("archive: what was written behind the last part, and a list of checksums that was cut, are made anew", async (context) => {
  const folder = folderOf(context);
  const writer = await ArchiveWriter.open(folder, beginning);
  await writer.line({ kind: "container", name: "box", access: "", metadata: {}, policies: [] });
  await writer.commit({ at: 1 });
  await writer.close();
  writeFileSync(join(folder, linesName(2)), '{"kind":"bl');
  writeFileSync(join(folder, bytesName(2)), "half");
  appendFileSync(join(folder, sumsName), sumsText(2, { lines: "0".repeat(64), bytes: "1".repeat(64) }).slice(0, 100));
  await written(folder, [box, group("a", ["one"])]);
  assert.deepEqual(await read(folder), ["container", "a: one"]);
});

test("archive: of two exports into one folder the first ends, whichever ends a part first, and the archive is whole", async (context) => {
  for (const endsFirst of [false, true]) {
    const folder = folderOf(context);
    const first = await ArchiveWriter.open(folder, beginning);
    await first.line({ kind: "end" });
    const second = await ArchiveWriter.open(folder, beginning);
    await second.line({ kind: "container", name: "box", access: "", metadata: {}, policies: [] });
    if (endsFirst) await second.commit({ at: 1 });
    await assert.rejects(first.commit({ at: 1 }), /another export writes into/);
    await first.close();
    await second.end();
    assert.deepEqual(await read(folder), ["container"]);
  }
});

test("archive: a name of more lines than a reader takes is left out by the export, also if that was left and goes on", async (context) => {
  const folder = folderOf(context);
  const items = [group("few", ["one", "two"]), group("many", ["1", "2", "3", "4"])];
  let nowMs = 0;
  for (const killed of [true, false]) {
    const writer = await ArchiveWriter.open(folder, beginning, () => (nowMs += 20_000));
    const chunk = writer.chunk.bind(writer);
    writer.chunk = async (each) => {
      if (killed && each.at === 2) throw new Error("killed");
      await chunk(each);
    };
    const done = exportSteps(writer, source(items), () => {}, 5);
    if (killed) await assert.rejects(done, /killed/);
    else {
      await done;
      await writer.end();
    }
    await writer.close();
  }
  assert.deepEqual(await read(folder), ["few: one|two", "leftOut"]);
});

test("archive: a folder with something else, another export or a complete archive is refused and stays", async (context) => {
  const folder = folderOf(context);
  writeFileSync(join(folder, "mine"), "x");
  await assert.rejects(ArchiveWriter.open(folder, beginning), /is not empty and has no archive/);
  assert.deepEqual(readdirSync(folder), ["mine"]);
  rmSync(join(folder, "mine"));
  await (await ArchiveWriter.open(folder, beginning)).close();
  await assert.rejects(ArchiveWriter.open(folder, { ...beginning, account: "other" }), /the beginning of another archive/);
  await assert.rejects(ArchiveReader.open(folder), /has not ended/);
  await written(folder, []);
  await assert.rejects(ArchiveWriter.open(folder, beginning), /is complete/);
  await assert.rejects(ArchiveReader.open(join(folder, "nothing")), /it is no archive/);
});

test("archive: a queue's messages are read with the position of the queue, so that a later run begins with it", async (context) => {
  const folder = folderOf(context);
  const message = (text: string) => ({ text, insertedOn: "", expiresOn: "", dequeueCount: 0 });
  const queue: Item = { kind: "queue", name: "jobs", metadata: {}, policies: [] };
  await written(folder, [
    queue,
    { kind: "messages", queue: "jobs", messages: Array.from({ length: 150 }, (_, at) => message(`m${at}`)) },
    box,
  ]);
  const positions: SourcePosition[] = [];
  for await (const { next } of (await ArchiveReader.open(folder)).steps({})) positions.push(next);
  assert.deepEqual(positions, [
    { part: 1, line: 1 },
    { part: 1, line: 1 },
    { part: 1, line: 152 },
    { part: 1, line: 153 },
  ]);
  assert.deepEqual(await read(folder, { part: 1, line: 152 }), ["container"]);
});

test("archive: a queue that stands twice, as an export that was left writes it, is given once", async (context) => {
  const folder = folderOf(context);
  const queue = (name: string): Item => ({ kind: "queue", name, metadata: {}, policies: [] });
  const messages = (queue: string, text: string): Item => {
    return { kind: "messages", queue, messages: [{ text, insertedOn: "", expiresOn: "", dequeueCount: 0 }] };
  };
  await written(folder, [
    ...[queue("first"), messages("first", "kept"), queue("jobs"), messages("jobs", "void")],
    // It was made before the export went on.
    ...[queue("and"), messages("and", "new"), queue("jobs"), messages("jobs", "void, too")],
    ...[queue("jobs"), messages("jobs", "whole"), queue("last"), messages("last", "kept")],
  ]);
  const expected = ["queue", "messages kept", "queue", "messages new", "queue", "messages whole", "queue", "messages kept"];
  assert.deepEqual(await read(folder), expected);
  assert.deepEqual(await read(folder, { part: 1, line: 3 }), expected.slice(2));
});

/** Replaces the lines of the only part, with the checksum that fits: made up by somebody who knows the format. */
function forge(folder: string, lines: readonly object[]): void {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(join(folder, linesName(1)), text);
  writeFileSync(join(folder, sumsName), sumsText(1, { lines: sha256(text), bytes: sha256(readFileSync(join(folder, bytesName(1)))) }));
}

test("archive: what the format does not allow is refused with its file and line", async (context) => {
  const folder = folderOf(context);
  await written(folder, [group("a", ["0123456789"])]);
  const blob = { kind: "blob", item: 1, ...facts("a", 10) };
  const data = { kind: "data", at: 0, length: 10, offset: 0, sha256: sha256("0123456789") };
  const end = { kind: "end" };
  forge(folder, [blob, data, end]);
  assert.deepEqual(await read(folder), ["a: 0123456789"]);
  const hostile: readonly (readonly [readonly object[], RegExp])[] = [
    [[{ ...blob, container: "../etc" }, data, end], /000001\.jsonl:1: container of blob is "\.\.\/etc"/],
    [[{ ...blob, container: ".." }], /container of blob/],
    [[{ kind: "table", name: "a/../b", policies: [] }], /name of table/],
    [[{ kind: "queue", name: "..", metadata: {}, policies: [] }], /name of queue/],
    [[{ ...blob, name: "" }], /name of blob/],
    [[{ ...blob, length: -1 }], /length of blob is -1/],
    [[{ ...blob, length: 1e300 }], /length of blob/],
    [[{ ...blob, metadata: { a: 1 } }], /metadata of blob/],
    [[{ ...blob, item: 2 }, data, end], /item 2 follows item 0/],
    [[blob, { ...data, at: 4 }, end], /10 bytes at 4 do not follow/],
    [[blob, { ...data, length: 1e12 }, end], /do not follow/],
    [[blob, end], /0 of 10 bytes of "a" are there/],
    [[blob, { ...data, offset: 1 }, end], /10 bytes at 1, of blob "a" in box, are not all there/],
    [[blob, { ...data, sha256: sha256("other") }, end], /have another checksum/],
    [[{ kind: "exec", command: "rm" }], /"exec" is no kind of line/],
    [[{ kind: "constructor" }], /is no kind of line/],
    [[data], /data without what it belongs to/],
    [[{ kind: "entity", table: "People", entity: { PartitionKey: 1, RowKey: "" } }], /entity of entity/],
    [[[]], /is no JSON object/],
  ];
  for (const [lines, message] of hostile) {
    forge(folder, lines);
    await assert.rejects(read(folder), message);
  }
});

test("archive: damaged and missing parts, links and newer formats are refused", async (context) => {
  const folder = folderOf(context);
  await written(folder, [box, group("a", ["0123456789"])]);
  const path = (name: string): string => join(folder, name);
  const restore = new Map(readdirSync(folder).map((name) => [name, readFileSync(path(name))]));
  const damages: readonly (readonly [() => void, RegExp])[] = [
    [() => writeFileSync(path(bytesName(1)), "0123456780"), /have another checksum/],
    [() => writeFileSync(path(bytesName(1)), "01234"), /are not all there/],
    [() => appendFileSync(path(linesName(1)), "\n"), /000001\.jsonl has another checksum than SHA256SUMS says/],
    [() => rmSync(path(linesName(1))), /ENOENT/],
    [() => writeFileSync(path(sumsName), "nonsense\n"), /SHA256SUMS: line 1 is not as the format says/],
    [() => writeFileSync(path(sumsName), ""), /had 1 parts, and SHA256SUMS has 0/],
    [
      () => {
        rmSync(path(bytesName(1)));
        symlinkSync("/etc/passwd", path(bytesName(1)));
      },
      /is no plain file/,
    ],
    [
      () => writeFileSync(path("archive.json"), '{"format":"stamp-archive","version":2,"release":"9.9.9"}'),
      /version 2 of the format.*9\.9\.9/,
    ],
    [() => writeFileSync(path("archive.json"), '{"format":"other"}'), /is none of an archive/],
    [() => writeFileSync(path("archive.json"), "{"), /is no JSON object/],
  ];
  for (const [damage, message] of damages) {
    damage();
    await assert.rejects(read(folder), message);
    for (const [name, bytes] of restore) {
      rmSync(path(name), { force: true });
      writeFileSync(path(name), bytes);
    }
  }
  assert.deepEqual(await read(folder), ["container", "a: 0123456789"]);
});
