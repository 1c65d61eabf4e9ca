/** Timers and writes that a role has under way when its life ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger, type World } from "@stamp/ports";
import { InProcessNetwork, nodeWorld } from "@stamp/ports-node";
import { MemoryDisk } from "../memory/disk.ts";
import { MemoryKeyValueStores } from "../memory/key-value.ts";
import { RoleLife } from "./life.ts";
import { livedWorld } from "./lived-world.ts";

const worldWith = (changed: Partial<World>): World => ({
  ...nodeWorld({
    dataDir: "",
    name: "test-1",
    logger: silentLogger,
    transport: new InProcessNetwork().transport("test-1"),
    storage: { disk: new MemoryDisk(1 << 20), keyValue: new MemoryKeyValueStores() },
    onFatal: () => {},
  }),
  ...changed,
});

const turns = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await new Promise<void>((resolve) => setImmediate(resolve));
};

test("lived world: the end waits for writes that are under way, which the next start must not meet", async () => {
  let write = (): void => {};
  const disk = new MemoryDisk(1 << 20);
  disk.writeAtomically = () => new Promise((resolve) => (write = resolve));
  const life = new RoleLife();
  const { world, closeAll } = livedWorld(worldWith({ disk }), life);
  void world.disk.writeAtomically("a", new Uint8Array(1));
  life.end();
  let isClosed = false;
  const closing = closeAll().then(() => (isClosed = true));
  await turns();
  assert.equal(isClosed, false);
  write();
  await closing;
});

test("lived world: the end takes back timers, and later ones are not made", async () => {
  const timers = new Set<number>();
  const plain = worldWith({});
  let made = 0;
  const clock = {
    ...plain.clock,
    monotonicMs: () => 0,
    after: () => {
      const id = ++made;
      timers.add(id);
      return { cancel: () => void timers.delete(id) };
    },
  };
  const life = new RoleLife();
  const { world, closeAll } = livedWorld({ ...plain, clock: clock as World["clock"] }, life);
  world.clock.after(3_600_000, () => {});
  world.clock.after(3_600_000, () => {}).cancel();
  assert.equal(timers.size, 1);
  life.end();
  await closeAll();
  world.clock.after(3_600_000, () => {});
  assert.deepEqual([timers.size, made], [0, 2]);
});
