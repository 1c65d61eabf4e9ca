import assert from "node:assert/strict";
import { test } from "node:test";
import { type Disk, DiskError } from "@stamp/ports";
import { failStopDisk } from "./fail-stop-disk.ts";

const failing = (kind: "syncFailed" | "io"): Disk => {
  const fail = async (): Promise<never> => {
    throw new DiskError(kind, "x", "injected");
  };
  return {
    open: fail,
    exists: fail,
    list: fail,
    remove: fail,
    rename: fail,
    syncFolder: fail,
    writeAtomically: fail,
    readWhole: fail,
    space: fail,
  };
};

test("fail-stop disk: a failed sync of a file, a folder or a small file ends the process, a failed read does not", async () => {
  const reasons: string[] = [];
  const disk = failStopDisk(failing("syncFailed"), (reason) => reasons.push(reason));
  await assert.rejects(disk.syncFolder("x"), DiskError);
  await assert.rejects(disk.writeAtomically("x", new Uint8Array(1)), DiskError);
  assert.equal(reasons.length, 2);
  await assert.rejects(failStopDisk(failing("io"), (reason) => reasons.push(reason)).syncFolder("x"), DiskError);
  assert.equal(reasons.length, 2);
});
