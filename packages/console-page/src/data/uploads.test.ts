import assert from "node:assert/strict";
import { test } from "node:test";
import type { Block, DataSource } from "./data-model.ts";
import { begin, blockBytesOf, goOn, remove, uploads } from "./uploads.ts";

const mebibyte = 1_024 * 1_024;
const path = { account: "a", container: "c", name: "n" };

/** A service that keeps blocks by upload and number, and refuses to put them together while a blob is there. */
function service() {
  const blocks = new Map<string, Uint8Array>();
  const sent: number[] = [];
  let blob: { readonly bytes: number; readonly contentType: unknown } | undefined;
  let content = Buffer.alloc(0);
  let made = 0;
  const etagNow = (): string => `etag ${made}`;
  let refuses: Error | undefined;
  const source = {
    blob: async () => ({ etag: etagNow() }),
    blocks: async (_path: unknown, upload: string) =>
      [...blocks.keys()].flatMap((id) => {
        const [of, number, digest] = id.split(" ");
        return of === upload ? [{ number: Number(number), digest }] : [];
      }),
    putBlock: async (_path: unknown, upload: string, { number, digest }: Block, bytes: Blob) => {
      if (refuses !== undefined) throw refuses;
      sent.push(number);
      blocks.set(`${upload} ${number} ${digest}`, await bytes.bytes());
    },
    change: async (_what: string, { upload, digests, etag, contentType }: Readonly<Record<string, unknown>>) => {
      if (blob !== undefined && etag === undefined) throw new Error("BlobAlreadyExists: it is there");
      if (etag !== undefined && etag !== etagNow()) throw new Error("ConditionNotMet: it is another");
      const parts = (digests as readonly string[]).map(
        (digest, number) => blocks.get(`${upload} ${number} ${digest}`) ?? assert.fail("no block"),
      );
      content = Buffer.concat(parts);
      made++;
      blob = { bytes: content.length, contentType };
      blocks.clear();
      return {};
    },
  } as unknown as DataSource;
  return {
    source,
    sent,
    blob: () => blob,
    content: () => content,
    change: () => made++,
    refuse: (error: Error | undefined) => (refuses = error),
  };
}

const until = async (is: () => boolean): Promise<void> => {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 1));
};
const state = (): string => uploads.value.at(-1)?.state ?? "";

test("uploads: a file goes in blocks of which no number is above the service's, and a second one waits for a word", async () => {
  const { source, sent, blob } = service();
  const file = new File([new Uint8Array(9 * mebibyte)], "n", { type: "text/plain", lastModified: 5 });
  begin(source, path, file, () => {});
  await until(() => state() === "done");
  assert.deepEqual([sent, blob()], [[0, 1, 2], { bytes: 9 * mebibyte, contentType: "text/plain" }]);
  begin(source, path, new File(["x"], "n"), () => {});
  await until(() => state() === "exists");
  assert.equal(blob()?.bytes, 9 * mebibyte);
  goOn(source, uploads.value.at(-1)?.id ?? 0, () => {});
  await until(() => state() === "done");
  assert.equal(blob()?.bytes, 1);
  assert.deepEqual(
    [blockBytesOf(0), blockBytesOf(50_000 * 4 * mebibyte), blockBytesOf(50_000 * 4 * mebibyte + 1)],
    [4, 4, 5].map((each) => each * mebibyte),
  );
});

test("uploads: one that is stopped sends no more, and the same file chosen again sends only what is missing", async () => {
  const { source, sent, blob, refuse } = service();
  const file = new File([new Uint8Array(9 * mebibyte)], "n", { lastModified: 5 });
  const { putBlock } = source;
  let passed = 0;
  Object.assign(source, {
    putBlock: (...args: Parameters<typeof putBlock>) => {
      if (passed++ === 2) refuse(new Error("cut"));
      return putBlock(...args);
    },
  });
  begin(source, path, file, () => {});
  await until(() => state() === "waiting");
  const { id, bytesDone, problem } = uploads.value.at(-1) ?? assert.fail();
  assert.deepEqual([bytesDone, problem], [8 * mebibyte, "cut"]);
  remove(id);
  assert.ok(uploads.value.every((each) => each.id !== id));
  refuse(undefined);
  begin(source, path, new File([new Uint8Array(9 * mebibyte)], "n", { lastModified: 5 }), () => {});
  await until(() => state() === "done");
  assert.deepEqual(sent, [0, 1, 2]);
  assert.equal(blob()?.bytes, 9 * mebibyte);
});

test("uploads: no block of another file with the same name, size and time of change gets into the blob", async () => {
  const { source, content, sent, refuse } = service();
  const fileOf = (byte: number): File => new File([new Uint8Array(9 * mebibyte).fill(byte)], "n", { lastModified: 0 });
  const { putBlock } = source;
  let passed = 0;
  Object.assign(source, {
    putBlock: (...args: Parameters<typeof putBlock>) => {
      if (passed++ === 2) refuse(new Error("cut"));
      return putBlock(...args);
    },
  });
  begin(source, path, fileOf(1), () => {});
  await until(() => state() === "waiting");
  remove(uploads.value.at(-1)?.id ?? 0);
  refuse(undefined);
  begin(source, path, fileOf(2), () => {});
  await until(() => ["done", "failed"].includes(state()));
  assert.deepEqual(sent, [0, 1, 0, 1, 2]);
  assert.ok(content().equals(Buffer.alloc(9 * mebibyte, 2)));
});

test("uploads: one that is stopped while the service is asked for its blocks makes no blob", async () => {
  const { source } = service();
  const answers = new Map<string, (blocks: readonly Block[]) => void>();
  const changes: unknown[] = [];
  Object.assign(source, {
    blocks: ({ name }: typeof path) => new Promise<readonly Block[]>((resolve) => answers.set(name, resolve)),
    change: async (what: unknown) => changes.push(what),
  });
  // Two others hold their places: what comes behind them begins when the first has ended.
  const ids = ["a", "b", "c"].map((name) => {
    begin(source, { ...path, name }, new File(["x"], "n"), () => {});
    return uploads.value.at(-1)?.id ?? 0;
  });
  await until(() => answers.size === 3);
  remove(ids[0] ?? 0);
  const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from("x"))).toString("hex");
  answers.get("a")?.([{ number: 0, digest: digest.slice(0, 24) }]);
  begin(service().source, path, new File(["x"], "n"), () => {});
  await until(() => state() === "done");
  const begun = changes.length;
  for (const answer of answers.values()) answer([]);
  await until(() => changes.length === begun + 2);
  assert.equal(begun, 0);
});

test("uploads: three run at once; one that waits is taken away, and the next has its turn", async () => {
  const { source } = service();
  const answers: (() => void)[] = [];
  const begun: string[] = [];
  const { blocks } = source;
  Object.assign(source, {
    blocks: async (...args: Parameters<typeof blocks>) => {
      begun.push(args[0].name);
      await new Promise<void>((resolve) => answers.push(resolve));
      return blocks(...args);
    },
    change: async () => ({}),
  });
  const done: string[] = [];
  for (const name of ["a", "b", "c", "d", "e"]) begin(source, { ...path, name }, new File(["x"], name), () => done.push(name));
  await until(() => begun.length >= 3);
  assert.deepEqual(
    uploads.value.slice(-5).map(({ state }) => state),
    ["sending", "sending", "sending", "queued", "queued"],
  );
  remove(uploads.value.at(-2)?.id ?? 0);
  answers[0]?.();
  await until(() => begun.length === 4);
  for (const answer of answers) answer();
  await until(() => done.length === 4);
  assert.deepEqual(
    [begun.toSorted(), done.toSorted()],
    [
      ["a", "b", "c", "e"],
      ["a", "b", "c", "e"],
    ],
  );
});

test("uploads: a file that can't be read any more says so at once", async () => {
  const { source, sent, blob } = service();
  for (const bytes of ["x", ""]) {
    const file = new File([bytes], "n");
    const read = () => Promise.reject(new DOMException("The requested file could not be read", "NotReadableError"));
    Object.assign(file, { arrayBuffer: read, slice: () => ({ arrayBuffer: read }) });
    begin(source, path, file, () => {});
    await until(() => state() === "failed");
    assert.match(uploads.value.at(-1)?.problem ?? "", /can't be read: The requested file.*choose it again/);
  }
  assert.deepEqual([sent, blob()], [[], undefined]);
});

test("uploads: a blob that was changed after the person was asked is not replaced, and the person is asked again", async () => {
  const { source, blob, change } = service();
  const again = (): void => goOn(source, uploads.value.at(-1)?.id ?? 0, () => {});
  begin(source, path, new File(["first"], "n"), () => {});
  await until(() => state() === "done");
  begin(source, path, new File(["x"], "n"), () => {});
  await until(() => state() === "exists");
  change();
  again();
  assert.notEqual(state(), "exists");
  await until(() => ["exists", "done"].includes(state()));
  assert.deepEqual([state(), blob()?.bytes], ["exists", 5]);
  again();
  await until(() => state() === "done");
  assert.equal(blob()?.bytes, 1);
});
