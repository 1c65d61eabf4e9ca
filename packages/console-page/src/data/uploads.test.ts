import assert from "node:assert/strict";
import { test } from "node:test";
import type { DataSource } from "./data-model.ts";
import { begin, blockBytesOf, goOn, remove, uploads } from "./uploads.ts";

const mebibyte = 1_024 * 1_024;
const path = { account: "a", container: "c", name: "n" };

/** A service that keeps blocks by upload and number, and refuses to put them together while a blob is there. */
function service() {
  const blocks = new Map<string, Uint8Array>();
  const sent: number[] = [];
  let blob: { readonly bytes: number; readonly contentType: unknown } | undefined;
  let refuses: Error | undefined;
  const source = {
    blocks: async (_path: unknown, upload: string) =>
      [...blocks.keys()].filter((id) => id.startsWith(upload)).map((id) => Number(id.split(" ")[1])),
    putBlock: async (_path: unknown, upload: string, number: number, bytes: Blob) => {
      if (refuses !== undefined) throw refuses;
      sent.push(number);
      blocks.set(`${upload} ${number}`, await bytes.bytes());
    },
    change: async (_what: string, { upload, count, replace, contentType }: Readonly<Record<string, unknown>>) => {
      if (blob !== undefined && replace !== true) throw new Error("BlobAlreadyExists: it is there");
      const parts = Array.from({ length: count as number }, (_, number) => blocks.get(`${upload} ${number}`) ?? assert.fail("no block"));
      blob = { bytes: parts.reduce((sum, { length }) => sum + length, 0), contentType };
      blocks.clear();
      return {};
    },
  } as unknown as DataSource;
  return { source, sent, blob: () => blob, refuse: (error: Error | undefined) => (refuses = error) };
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
  goOn(source, uploads.value.at(-1)?.id ?? 0, true, () => {});
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
