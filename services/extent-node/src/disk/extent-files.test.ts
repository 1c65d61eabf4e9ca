import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId } from "@stamp/base";
import type { Disk, DiskErrorKind, DiskFile, World } from "@stamp/ports";
import { DiskError } from "@stamp/ports";
import type { DiskQueue } from "./disk-queue.ts";
import { ExtentFiles, extentPath } from "./extent-files.ts";

/** A disk whose openings fail while `fails` says so. */
function disk() {
  const state: { fails: DiskErrorKind | undefined; openings: number; closed: number } = { fails: undefined, openings: 0, closed: 0 };
  const file = {
    sizeBytes: async () => 0,
    allocate: async () => {},
    close: async () => {
      state.closed += 1;
    },
  } as unknown as DiskFile;
  const ports: Partial<Disk> = {
    open: async (path) => {
      state.openings += 1;
      if (state.fails !== undefined) throw new DiskError(state.fails, path, "it fails");
      return file;
    },
    exists: async () => false,
    syncFolder: async () => {},
  };
  return { state, ports: ports as Disk };
}

const identity = { stampId: "s", diskId: "d" };
const id = extentId(7);
const kinds: readonly DiskErrorKind[] = ["full", "unavailable", "io", "notFound"];

for (const kind of kinds) {
  test(`extent files: an opening that failed with ${kind} is told to all who wait for it, and the next one opens the file anew`, async () => {
    const { state, ports } = disk();
    const files = new ExtentFiles({ disk: ports } as World, undefined as unknown as DiskQueue, 8, identity);
    state.fails = kind;
    const size = (): Promise<number> => files.with(extentPath(id), true, (file) => file.sizeBytes());
    const failed = await Promise.allSettled([size(), size(), files.ensure(id)]);
    assert.ok(failed.every((each) => each.status === "rejected" && (each.reason as DiskError).kind === kind));
    state.fails = undefined;
    await files.ensure(id);
    assert.equal(await size(), 0);
    await files.closeAll();
    assert.equal(state.closed, 1, "one handle was kept, the good one");
  });
}

test("extent files: a failure of one operation does not close a file that is open", async () => {
  const { state, ports } = disk();
  const files = new ExtentFiles({ disk: ports } as World, undefined as unknown as DiskQueue, 8, identity);
  await files.ensure(id);
  const failing = (): Promise<void> => Promise.reject(new DiskError("io", extentPath(id), "a bad sector"));
  await assert.rejects(files.with(extentPath(id), false, failing), /bad sector/);
  await files.with(extentPath(id), false, (file) => file.sizeBytes());
  assert.equal(state.openings, 1);
});
