/** When the metadata store's disk counts as full, how long a look at it is good for, and the room that is kept for what was being recorded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { DiskError, type DiskSpace, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { DiskRoom } from "./room.ts";

const reserveBytes = 1_000;
const looksEveryMs = 500;
const kept = "room-kept";

/** A disk with so much room, where `allocate` takes what it can get. */
async function onDisk(space: DiskSpace, work: (on: Disk) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed: 1 });
  await sim.run(() => work(new Disk(sim, space)));
}

class Disk {
  space: DiskSpace;
  looks = 0;
  /** Number of allocations that were tried. */
  tries = 0;
  readonly files = new Set<string>();
  failure: Error | undefined;
  readonly sim: Simulation;
  readonly room: DiskRoom;

  constructor(sim: Simulation, space: DiskSpace) {
    this.sim = sim;
    this.space = space;
    const world = sim.world("lock");
    const allocate = async (bytes: number): Promise<void> => {
      this.tries += 1;
      if (this.failure !== undefined) throw this.failure;
      this.space = { ...this.space, freeBytes: this.space.freeBytes - bytes };
    };
    const disk = {
      space: async () => {
        this.looks += 1;
        return this.space;
      },
      exists: async (path: string) => this.files.has(path),
      open: async (path: string) => {
        this.files.add(path);
        return { allocate, close: async () => {} };
      },
      remove: async (path: string) => {
        this.files.delete(path);
        this.space = { ...this.space, freeBytes: this.space.freeBytes + reserveBytes };
      },
    };
    this.room = new DiskRoom({ ...world, disk } as unknown as World, reserveBytes, looksEveryMs);
  }
}

const reasonOf = (refusal: Awaited<ReturnType<DiskRoom["refusal"]>>): string =>
  refusal === undefined ? "recorded" : `${(refusal as Outcome<never> & { ok: false }).failure.reason} ${refusal.failure.applied}`;

test("room: below the reserve of bytes, or of inodes, nothing is recorded, as certainly not done; with room again it is", async () => {
  await onDisk({ freeBytes: reserveBytes, totalBytes: 10_000 }, async (on) => {
    assert.equal(reasonOf(await on.room.refusal(true)), "recorded");
    for (const [space, expected] of [
      [{ freeBytes: reserveBytes - 1, totalBytes: 10_000 }, "diskFull no"],
      [{ freeBytes: reserveBytes, totalBytes: 10_000 }, "recorded"],
      [{ freeBytes: reserveBytes, totalBytes: 10_000, freeFiles: 31, totalFiles: 100 }, "diskFull no"],
      [{ freeBytes: reserveBytes, totalBytes: 10_000, freeFiles: 32, totalFiles: 100 }, "recorded"],
      // A file system without a fixed number of them.
      [{ freeBytes: reserveBytes, totalBytes: 10_000 }, "recorded"],
    ] as const) {
      on.space = space;
      await on.sim.sleep(20);
      assert.equal(reasonOf(await on.room.refusal(true)), expected, JSON.stringify(space));
      assert.equal(on.room.facts.diskFull, expected !== "recorded");
      assert.equal(on.room.facts.freeFiles, "freeFiles" in space ? space.freeFiles : undefined);
    }
  });
});

test("room: a group of writes looks at the disk once in 20 ms, reads seldom, and all look often while it is full", async () => {
  await onDisk({ freeBytes: reserveBytes, totalBytes: 10_000 }, async (on) => {
    for (let i = 0; i < 5; i++) await on.room.refusal(true);
    assert.equal(on.looks, 1);
    on.space = { freeBytes: 0, totalBytes: 10_000 };
    await on.sim.sleep(looksEveryMs - 1);
    assert.equal(reasonOf(await on.room.refusal(false)), "recorded");
    assert.equal(on.looks, 1);
    assert.equal(reasonOf(await on.room.refusal(true)), "diskFull no");
    on.space = { freeBytes: reserveBytes, totalBytes: 10_000 };
    await on.sim.sleep(20);
    assert.equal(reasonOf(await on.room.refusal(false)), "recorded", "who reads learns of it at once, too");
  });
});

test("room: a file keeps as much as the reserve where three times as much is free, and is given once", async () => {
  await onDisk({ freeBytes: 3 * reserveBytes - 1, totalBytes: 10_000 }, async (on) => {
    await on.room.refusal(true);
    assert.equal(await on.room.give(), false);
    on.space = { freeBytes: 3 * reserveBytes, totalBytes: 10_000 };
    await on.sim.sleep(20);
    await on.room.refusal(true);
    await on.sim.sleep(1);
    assert.deepEqual([...on.files], [kept]);
    // Somebody else takes the rest.
    on.space = { freeBytes: 0, totalBytes: 10_000 };
    assert.equal(await on.room.give(), true);
    assert.equal(on.space.freeBytes, reserveBytes);
    assert.equal(await on.room.give(), false);
    // It is kept again when there is as much.
    on.space = { freeBytes: 3 * reserveBytes, totalBytes: 10_000 };
    await on.sim.sleep(20);
    await on.room.refusal(true);
    await on.sim.sleep(1);
    assert.deepEqual([...on.files], [kept]);
  });
});

test("room: a disk on which none can be kept is tried again after a minute, not at each look", async () => {
  await onDisk({ freeBytes: 3 * reserveBytes, totalBytes: 10_000 }, async (on) => {
    on.failure = new DiskError("full", kept, "no space left");
    for (let i = 0; i < 10; i++) {
      assert.equal(reasonOf(await on.room.refusal(true)), "recorded");
      await on.sim.sleep(25);
    }
    assert.equal(on.tries, 1);
    await on.sim.sleep(60_000);
    await on.room.refusal(true);
    await on.sim.sleep(1);
    assert.equal(on.tries, 2);
  });
});
