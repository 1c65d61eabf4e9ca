/** Losses of a crash: the contract of `Disk` and `KeyValue` from its dark side. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import { DiskError } from "@stamp/ports";
import { Simulation } from "../simulation.ts";

const inSimulation = (seed: number, body: (sim: Simulation) => Promise<void>): Promise<void> => {
  const sim = new Simulation({ seed });
  return sim.run(() => body(sim));
};
const lose = { unsynced: "lost" } as const;
const again = (sim: Simulation): void => {
  sim.crash("p", lose);
  sim.restart("p");
};

test("disk: a crash keeps what was synced, and of two unsynced pages any combination, over the seeds", async () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 60; seed++) {
    await inSimulation(seed, async (sim) => {
      const file = await sim.world("p").disk.open("f", { create: true });
      await file.write(0, [new Uint8Array(8192).fill(1)]);
      await file.sync();
      await sim.world("p").disk.syncFolder("");
      await file.write(0, [new Uint8Array(8192).fill(2)]);
      again(sim);
      const content = (await sim.world("p").disk.readWhole("f")) as Uint8Array;
      assert.equal(content.length, 8192);
      const kind = (page: Uint8Array): string => (page.every((b) => b === 1) ? "old" : page.every((b) => b === 2) ? "new" : "torn");
      assert.ok(content.every((b) => b === 1 || b === 2));
      seen.add(`${kind(content.subarray(0, 4096))} ${kind(content.subarray(4096))}`);
    });
  }
  for (const wanted of ["old old", "old new", "new old", "new new"]) assert.ok(seen.has(wanted), `${wanted} of ${[...seen]}`);
  assert.ok([...seen].some((each) => each.includes("torn")));
});

test("disk: an unsynced name may be lost, a synced one never", async () => {
  const seen = new Set<boolean>();
  for (let seed = 0; seed < 20; seed++) {
    await inSimulation(seed, async (sim) => {
      for (const name of ["a/kept", "b/perhaps"]) {
        const file = await sim.world("p").disk.open(name, { create: true });
        await file.write(0, [utf8("x")]);
        await file.sync();
      }
      await sim.world("p").disk.syncFolder("a");
      again(sim);
      assert.deepEqual(await sim.world("p").disk.readWhole("a/kept"), utf8("x"));
      seen.add(await sim.world("p").disk.exists("b/perhaps"));
    });
  }
  assert.equal(seen.size, 2);
});

test("disk: writeAtomically leaves the old or the new content, never another", async () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 40; seed++) {
    await inSimulation(seed, async (sim) => {
      await sim.world("p").disk.writeAtomically("f", utf8("old"));
      void sim.world("p").disk.writeAtomically("f", utf8("newer"));
      await sim.sleep(seed % 3 === 0 ? 0 : 0.3);
      again(sim);
      seen.add(new TextDecoder().decode(await sim.world("p").disk.readWhole("f")));
    });
  }
  assert.deepEqual([...seen].sort(), ["newer", "old"]);
});

test("disk: a killed process loses nothing that it wrote", async () => {
  await inSimulation(1, async (sim) => {
    const file = await sim.world("p").disk.open("f", { create: true });
    await file.write(0, [utf8("not synced")]);
    sim.crash("p", { unsynced: "kept" });
    sim.restart("p");
    assert.deepEqual(await sim.world("p").disk.readWhole("f"), utf8("not synced"));
    again(sim);
  });
});

test("disk: a full disk, a failed fsync, an I/O error and a flipped bit come as asked for", async () => {
  await inSimulation(1, async (sim) => {
    const file = await sim.world("p").disk.open("f", { create: true });
    await file.write(0, [new Uint8Array(100)]);
    const fails = (kind: string) => (error: unknown) => error instanceof DiskError && error.kind === kind;
    sim.disk("p").failNext("sync");
    await assert.rejects(file.sync(), fails("syncFailed"));
    sim.disk("p").failNext("read");
    await assert.rejects(file.read(0, 1), fails("io"));
    sim.disk("p").options = { ...sim.disk("p").options, totalBytes: 200 };
    await assert.rejects(file.write(100, [new Uint8Array(200)]), fails("full"));
    await file.write(0, [new Uint8Array(100).fill(7)]);
    sim.disk("p").corrupt("f", 50, 0x80);
    assert.equal((await file.read(50, 1))[0], 0x87);
  });
});

test("disk: with one lane who wants the file that was served last goes first, and a crash frees the lane", async () => {
  await inSimulation(1, async (sim) => {
    const files = await Promise.all(["a", "b"].map((name) => sim.world("p").disk.open(name, { create: true })));
    const [a, b] = files as [(typeof files)[0], (typeof files)[0]];
    await Promise.all([a.write(0, [utf8("a")]), b.write(0, [utf8("b")])]);
    sim.disk("p").options = { ...sim.disk("p").options, lanes: 1 };
    const served: string[] = [];
    const read = async (name: string, file: typeof a): Promise<void> => {
      await file.read(0, 1);
      served.push(name);
    };
    await Promise.all([read("a", a), read("b", b), read("a", a), read("a", a)]);
    assert.equal(served.join(""), "aaab");
    sim.disk("p").readsHangUntilUs = (sim.nowMs + 5_000) * 1_000;
    void read("late", a);
    await sim.sleep(4_000);
    assert.equal(served.length, 4);
    again(sim);
    sim.disk("p").readsHangUntilUs = 0;
    assert.deepEqual(await sim.world("p").disk.exists("none"), false);
    assert.equal(served.length, 4);
  });
});

test("key-value: a crash keeps a prefix of the unsynced batches, and every synced one", async () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 40; seed++) {
    await inSimulation(seed, async (sim) => {
      const opened = await sim.world("p").keyValue.open("s");
      assert.ok(opened.kind === "opened");
      for (let i = 0; i < 6; i++) {
        await opened.store.batch([{ kind: "put", key: utf8(`k${i}`), value: utf8("v") }], { sync: i === 1 });
      }
      again(sim);
      const next = await sim.world("p").keyValue.open("s");
      assert.ok(next.kind === "opened");
      let present = "";
      for (let i = 0; i < 6; i++) present += (await next.store.get(utf8(`k${i}`))) ? "1" : "0";
      assert.match(present, /^111*0*$/);
      seen.add(present);
    });
  }
  assert.ok(seen.size >= 4, [...seen].join(" "));
});
