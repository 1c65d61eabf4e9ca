/** Behaviour of every Disk while nothing breaks. The losses of a crash are the simulator's own test. */
import { utf8 } from "@stamp/base";
import type { Disk, DiskErrorKind } from "../disk.ts";
import { DiskError } from "../disk.ts";
import type { RegisterTest } from "./conformance.ts";
import { check, checkEqual, thrownBy } from "./conformance.ts";

export interface DiskUnderTest {
  readonly disk: Disk;
  /** Opens the folder as a new process does after a clean end of the old one. */
  reopen(): Promise<Disk>;
  dispose(): Promise<void>;
}

async function failsWith(kind: DiskErrorKind, work: () => Promise<unknown>, what: string): Promise<void> {
  const error = await thrownBy(work, what);
  check(error instanceof DiskError && error.kind === kind, `${what}: expected DiskError ${kind}, got ${String(error)}`);
}

export function diskConformance(register: RegisterTest, make: () => Promise<DiskUnderTest>): void {
  const test = (name: string, run: (disk: Disk, given: DiskUnderTest) => Promise<void>): void =>
    register(`disk: ${name}`, async () => {
      const given = await make();
      try {
        await run(given.disk, given);
      } finally {
        await given.dispose();
      }
    });

  test("an absent file is notFound, and made with its folders when asked for", async (disk) => {
    await failsWith("notFound", () => disk.open("a/b/file"), "open");
    await failsWith("notFound", () => disk.remove("a/b/file"), "remove");
    await failsWith("notFound", () => disk.rename("a/b/file", "other"), "rename");
    checkEqual(await disk.exists("a/b/file"), false, "exists before");
    checkEqual(await disk.readWhole("a/b/file"), undefined, "readWhole before");
    const file = await disk.open("a/b/file", { create: true });
    checkEqual(file.path, "a/b/file", "path");
    checkEqual(await file.sizeBytes(), 0, "size");
    checkEqual(await file.read(0, 10), new Uint8Array(0), "read of an empty file");
    await file.close();
    checkEqual(await disk.exists("a/b/file"), true, "exists after");
  });

  test("chunks are written one after another and read back; a read is short only at the end", async (disk) => {
    const file = await disk.open("file", { create: true });
    await file.write(0, [utf8("hello"), new Uint8Array(0), utf8(", "), utf8("world")]);
    checkEqual(await file.sizeBytes(), 12, "size");
    checkEqual(await file.read(0, 12), utf8("hello, world"), "whole");
    checkEqual(await file.read(7, 100), utf8("world"), "short at the end");
    checkEqual(await file.read(12, 5), new Uint8Array(0), "at the end");
    checkEqual(await file.read(100, 5), new Uint8Array(0), "beyond the end");
    await file.write(0, []);
    await file.write(7, [utf8("W")]);
    checkEqual(await file.read(0, 12), utf8("hello, World"), "overwritten inside");
    await file.close();
    const again = await disk.open("file", { create: true });
    checkEqual(await again.read(0, 12), utf8("hello, World"), "opened again with create, nothing is lost");
    await again.close();
  });

  test("a read into memory of the caller is at its beginning, and changes nothing behind what it read", async (disk) => {
    const file = await disk.open("file", { create: true });
    await file.write(0, [utf8("hello, world")]);
    const memory = new Uint8Array(20).fill(1);
    const inside = await file.read(7, 5, memory);
    checkEqual(inside, utf8("world"), "what was read");
    check(inside.buffer === memory.buffer && inside.byteOffset === 0, "it lies elsewhere");
    checkEqual(memory.subarray(5), new Uint8Array(15).fill(1), "behind it");
    const short = await file.read(10, 20, memory);
    checkEqual(short, utf8("ld"), "short at the end");
    check(short.buffer === memory.buffer, "a short read lies elsewhere");
    await file.close();
  });

  test("a write beyond the end leaves zeros between", async (disk) => {
    const file = await disk.open("file", { create: true });
    await file.write(6000, [utf8("x")]);
    checkEqual(await file.sizeBytes(), 6001, "size");
    const between = await file.read(0, 6000);
    check(
      between.every((byte) => byte === 0),
      "not all zeros",
    );
    await file.close();
  });

  test("thousands of chunks go in one write", async (disk) => {
    const file = await disk.open("file", { create: true });
    const chunks: Uint8Array[] = [];
    for (let i = 0; i < 3000; i++) chunks.push(new Uint8Array([i & 0xff, i >>> 8]));
    await file.write(10, chunks);
    checkEqual(await file.sizeBytes(), 6010, "size");
    const read = await file.read(10, 6000);
    for (let i = 0; i < 3000; i++) checkEqual((read[2 * i] as number) + 256 * (read[2 * i + 1] as number), i, `chunk ${i}`);
    await file.close();
  });

  test("a large write and read are whole", async (disk) => {
    const file = await disk.open("file", { create: true });
    const bytes = new Uint8Array(9 * 1024 * 1024 + 13);
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i ^ (i >>> 11)) & 0xff;
    await file.write(4096, [bytes.subarray(0, 5_000_001), bytes.subarray(5_000_001)]);
    checkEqual(await file.read(4096, bytes.length), bytes, "content");
    await file.close();
  });

  test("bytes have owners: changing what was written or read afterwards changes nothing", async (disk) => {
    const file = await disk.open("file", { create: true });
    const written = utf8("abc");
    await file.write(0, [written]);
    written.fill(0);
    const read = await file.read(0, 3);
    checkEqual(read, utf8("abc"), "after changing what was written");
    read.fill(0);
    checkEqual(await file.read(0, 3), utf8("abc"), "after changing what was read");
    await file.close();
  });

  test("allocate lengthens with zeros, keeps content, and never shortens", async (disk) => {
    const file = await disk.open("file", { create: true });
    await file.write(0, [utf8("abc")]);
    await file.allocate(100_000);
    checkEqual(await file.sizeBytes(), 100_000, "size");
    checkEqual(await file.read(0, 3), utf8("abc"), "content");
    const rest = await file.read(3, 100_000);
    checkEqual(rest.length, 99_997, "rest");
    check(
      rest.every((byte) => byte === 0),
      "the rest is not all zeros",
    );
    await file.write(50_000, [utf8("def")]);
    await file.allocate(10);
    checkEqual(await file.sizeBytes(), 100_000, "size after a smaller allocate");
    await file.allocate(120_000);
    checkEqual(await file.sizeBytes(), 120_000, "size after a larger allocate");
    checkEqual(await file.read(50_000, 3), utf8("def"), "content after a larger allocate");
    await file.close();
  });

  test("truncate shortens; what is written afterwards does not bring the old bytes back", async (disk) => {
    const file = await disk.open("file", { create: true });
    await file.write(0, [utf8("abcdef")]);
    await file.truncate(2);
    checkEqual(await file.sizeBytes(), 2, "size");
    await file.write(4, [utf8("z")]);
    checkEqual(await file.read(0, 10), new Uint8Array([97, 98, 0, 0, 122]), "content");
    await file.close();
  });

  test("two handles of one file see each other's writes", async (disk) => {
    const one = await disk.open("file", { create: true });
    const two = await disk.open("file");
    await one.write(0, [utf8("one")]);
    checkEqual(await two.read(0, 3), utf8("one"), "content");
    checkEqual(await two.sizeBytes(), 3, "size");
    await one.close();
    await two.close();
  });

  test("list gives the names directly below, sorted, of files and folders", async (disk) => {
    for (const path of ["f/b", "f/a", "f/sub/c", "f/10", "f/9"]) await (await disk.open(path, { create: true })).close();
    checkEqual(await disk.list("f"), ["10", "9", "a", "b", "sub"], "names");
    checkEqual(await disk.list("f/sub"), ["c"], "names below");
    checkEqual(await disk.list("absent"), [], "absent");
    await disk.syncFolder("f");
    await disk.remove("f/a");
    await disk.remove("f/sub/c");
    checkEqual(await disk.list("f"), ["10", "9", "b", "sub"], "after remove; an empty folder stays");
  });

  test("rename replaces its target; an open handle follows its file", async (disk) => {
    const file = await disk.open("new", { create: true });
    await file.write(0, [utf8("new")]);
    await disk.writeAtomically("old", utf8("old"));
    await disk.rename("new", "old");
    checkEqual(await disk.readWhole("old"), utf8("new"), "content");
    checkEqual(await disk.exists("new"), false, "the old name");
    await file.write(3, [utf8("er")]);
    await file.sync();
    await file.close();
    checkEqual(await disk.readWhole("old"), utf8("newer"), "content after a write through the old handle");
  });

  test("writeAtomically replaces the whole file and leaves nothing else behind", async (disk) => {
    await disk.writeAtomically("config/current", utf8("a long first version"));
    await disk.writeAtomically("config/current", utf8("second"));
    checkEqual(await disk.readWhole("config/current"), utf8("second"), "content");
    checkEqual(await disk.list("config"), ["current"], "names");
    await disk.writeAtomically("config/current", new Uint8Array(0));
    checkEqual(await disk.readWhole("config/current"), new Uint8Array(0), "empty content");
  });

  test("what was synced is there for the next process", async (disk, given) => {
    const file = await disk.open("folder/file", { create: true });
    await file.write(0, [utf8("kept")]);
    await file.sync();
    await file.close();
    await disk.syncFolder("folder");
    const next = await given.reopen();
    checkEqual(await next.readWhole("folder/file"), utf8("kept"), "content");
    checkEqual(await next.list("folder"), ["file"], "names");
  });

  test("space is known", async (disk) => {
    const { freeBytes, totalBytes } = await disk.space();
    check(Number.isSafeInteger(freeBytes) && Number.isSafeInteger(totalBytes), "not integers");
    check(freeBytes > 0 && freeBytes <= totalBytes, `free ${freeBytes} of ${totalBytes}`);
  });
}
