/** Large writes past the page cache are read, cut, extended and overwritten as any other; what a file system does not take goes through it. */
import assert from "node:assert/strict";
import { constants, mkdtemp, open, readdir, readFile, readlink, rm, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { cutAtPages, DirectWrites, directBytesMin, directPageBytes, wholePages } from "./direct-writes.ts";
import { NodeDisk } from "./disk.ts";

const root = await mkdtemp(join(tmpdir(), "stamp-direct-"));
after(() => rm(root, { recursive: true }));
let files = 0;

/** Bytes in chunks of these lengths, unlike those of any other write. */
function chunksOf(lengths: readonly number[], seed: number): Uint8Array[] {
  return lengths.map((length, i) => {
    const chunk = new Uint8Array(length);
    for (let at = 0; at < length; at++) chunk[at] = (at * 31 + seed * 7 + i) & 0xff;
    return chunk;
  });
}

const writes = fc.array(
  fc.record({
    offset: fc.oneof(
      fc.nat(3_000_000),
      fc.nat(500).map((page) => page * directPageBytes),
    ),
    lengths: fc.array(fc.oneof(fc.nat(5_000), fc.nat(400_000), fc.constant(directPageBytes)), { minLength: 1, maxLength: 8 }),
    after: fc.constantFrom("nothing", "sync", "read", "truncate", "reopen"),
  }),
  { minLength: 1, maxLength: 8 },
);

for (const direct of [true, false]) {
  test(`disk: any writes leave what they would in memory, ${direct ? "large ones past" : "all through"} the page cache`, async () => {
    await fc.assert(
      fc.asyncProperty(writes, async (steps) => {
        const disk = new NodeDisk(root, { direct });
        const name = `file-${files++}`;
        let file = await disk.open(name, { create: true });
        let model = Buffer.alloc(0);
        for (const [i, step] of steps.entries()) {
          const chunks = chunksOf(step.lengths, i);
          const written = Buffer.concat(chunks);
          await file.write(step.offset, chunks);
          if (written.length > 0 && model.length < step.offset + written.length) {
            model = Buffer.concat([model, Buffer.alloc(step.offset + written.length - model.length)]);
          }
          written.copy(model, step.offset);
          if (step.after === "sync") await file.sync();
          if (step.after === "truncate") {
            model = Buffer.from(model.subarray(0, Math.floor(model.length / 2)));
            await file.truncate(model.length);
          }
          if (step.after === "reopen") {
            await file.close();
            file = await disk.open(name);
          }
          if (step.after === "read") assert.equal(Buffer.compare(await file.read(0, model.length), model), 0);
        }
        await file.close();
        assert.equal(Buffer.compare(await readFile(join(root, name)), model), 0);
        await rm(join(root, name));
      }),
      { numRuns: 40 },
    );
  });
}

test("disk: writes at once to neighbouring places that share pages lose nothing", async () => {
  const file = await new NodeDisk(root).open("neighbours", { create: true });
  const lengths = Array.from({ length: 40 }, (_, i) => (i % 3 === 0 ? 3_001 : 200_003 + i));
  const parts = lengths.map((length, i) => chunksOf([length], i)[0] as Uint8Array);
  let offset = 0;
  await Promise.all(
    parts.map((part) => {
      const at = offset;
      offset += part.length;
      return file.write(at, [part]);
    }),
  );
  await file.sync();
  assert.equal(Buffer.compare(await file.read(0, offset), Buffer.concat(parts)), 0);
  await file.close();
});

test("disk: a large write goes to the file that was opened, whatever has its name by now", async () => {
  const disk = new NodeDisk(root);
  const file = await disk.open("renamed", { create: true });
  await unlink(join(root, "renamed"));
  const other = await disk.open("renamed", { create: true });
  const chunks = chunksOf([directBytesMin * 2], 5);
  await file.write(0, chunks);
  assert.equal(await other.sizeBytes(), 0);
  assert.equal(Buffer.compare(await file.read(0, directBytesMin * 2), Buffer.concat(chunks)), 0);
  await file.close();
  await other.close();
});

/** Number of handles of this process on the file that go past the page cache. */
async function directHandles(path: string): Promise<number> {
  let count = 0;
  for (const fd of await readdir("/proc/self/fd")) {
    if ((await readlink(`/proc/self/fd/${fd}`).catch(() => "")) !== path) continue;
    const flags = /^flags:\s*([0-7]+)$/m.exec(await readFile(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "0";
    if ((Number.parseInt(flags, 8) & constants.O_DIRECT) !== 0) count += 1;
  }
  return count;
}

test("disk: only large writes open a file past the page cache, and closing the file closes that handle too", async () => {
  const file = await new NodeDisk(root).open("handles", { create: true });
  const path = join(root, "handles");
  await file.write(0, chunksOf([directBytesMin - 1], 1));
  assert.equal(await directHandles(path), 0);
  await file.write(10, chunksOf([directBytesMin + 2 * directPageBytes], 1));
  await file.write(0, chunksOf([directBytesMin], 1));
  // The folder for temporary files is on a disk that takes it, as on every machine that runs these tests.
  assert.equal(await directHandles(path), 1);
  await file.close();
  assert.equal(await directHandles(path), 0);
});

test("direct writes: what the file system refuses is left to the page cache, and nobody tries again", async () => {
  const handle = await open(join(root, "refused"), "w+");
  const support = { refused: false };
  const direct = new DirectWrites(handle, support);
  // Not at a page: the system refuses this as it would refuse every write where it knows nothing of O_DIRECT.
  assert.equal(await direct.write(100, chunksOf([directPageBytes], 1), directPageBytes), 0);
  assert.equal(support.refused, true);
  assert.equal((await handle.stat()).size, 0);
  await direct.close();
  await handle.close();
});

test("direct writes: whole pages only, and only of large writes", () => {
  assert.equal(wholePages(0, directBytesMin - 1), undefined);
  assert.equal(wholePages(1, directBytesMin), undefined);
  assert.deepEqual(wholePages(0, directBytesMin), { first: 0, end: directBytesMin });
  assert.deepEqual(wholePages(4095, directBytesMin + 2), { first: 4096, end: 4096 + directBytesMin });
  const chunks = chunksOf([3, 0, 4, 5], 0);
  const whole = Buffer.concat(chunks);
  for (let from = 0; from <= 12; from++) {
    for (let to = from; to <= 12; to++) assert.deepEqual(Buffer.concat(cutAtPages(chunks, from, to)), whole.subarray(from, to));
  }
});
