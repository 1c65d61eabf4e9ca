/** Failpoints strike where they say, priorities keep one process behind, and both replay. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, utf8 } from "@stamp/base";
import type { Role, World } from "@stamp/ports";
import { served } from "@stamp/ports";
import { Status } from "@stamp/wire";
import { Simulation } from "../simulation.ts";
import type { FailAction } from "./failpoints.ts";
import { defaultFailpoints, shapeOf } from "./failpoints.ts";

const zero = { kill: 0, power: 0, pause: 0, delay: 0, error: 0 };
const always = (sim: Simulation, action: FailAction, only: RegExp): void =>
  sim.failpoints.arm({ ...defaultFailpoints, hotShare: 1, hotChance: 1, weights: { ...zero, [action]: 1 }, only });

class Answering implements Role {
  readonly address = "server-1";
  readonly status = { ready: true, waitingFor: [], state: "", facts: {} };
  readonly #world: World;
  calls = 0;
  constructor(world: World) {
    this.#world = world;
  }
  async start(): Promise<void> {
    await this.#world.transport.serve("server-1", [
      served(Status, {
        getStatus: async () => {
          this.calls += 1;
          return ok({ pid: this.calls });
        },
      }),
    ]);
  }
  async stop(): Promise<void> {}
}

test("failpoints: a sync that is struck before makes nothing durable, one that is struck after does", async () => {
  for (const [point, durable] of [
    ["before", false],
    ["after", true],
  ] as const) {
    const sim = new Simulation({ seed: 4 });
    await sim.run(async () => {
      const file = await sim.world("p-1").disk.open("a", { create: true });
      await sim.world("p-1").disk.syncFolder("");
      await file.write(0, [utf8("x".repeat(8_000))]);
      always(sim, "power", new RegExp(`^p disk-sync ${point} a$`));
      let learned = false;
      void file.sync().then(() => {
        learned = true;
      });
      await sim.sleep(100);
      assert.equal(sim.isUp("p-1"), false, point);
      assert.equal(learned, false, "the process never hears of it");
      sim.failpoints.disarm();
      const held = await sim.world("p-1").disk.readWhole("a");
      assert.equal(held?.length === 8_000 && held.every((byte) => byte === 120), durable, point);
      assert.deepEqual(sim.failpoints.hits()[`p disk-sync ${point} a`], { reached: 1, struck: 1 });
    });
  }
});

test("failpoints: a request that is struck when it is sent, or received, has an unknown or no outcome, and the next one goes through", async () => {
  const key = "Status/GetStatus";
  for (const [action, point, calls] of [
    ["error", "client send", 0],
    ["error", "server receive", 0],
    ["kill", "server receive", 0],
    ["delay", "server receive", 1],
    ["pause", "server receive", 1],
  ] as const) {
    const sim = new Simulation({ seed: 9 });
    sim.addProcess("server-1", (world) => new Answering(world), { restartAfterMs: 50 });
    await sim.run(async () => {
      await sim.sleep(5);
      const call = () => sim.world("client-1").transport.client("server-1", Status).getStatus({}, { timeoutMs: 20_000 });
      assert.ok((await call()).ok);
      always(sim, action, new RegExp(`^${point} ${key}$`));
      const outcome = await call();
      sim.failpoints.disarm();
      assert.equal(sim.failpoints.hits()[`${point} ${key}`]?.struck, 1, `${action} at ${point}`);
      assert.equal(outcome.ok, calls === 1, `${action} at ${point}`);
      await sim.sleep(10_000);
      assert.ok((await call()).ok);
    });
  }
});

test("failpoints: a store's batch that is struck by an error is not applied, and those around it are", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const opened = await sim.world("p-1").keyValue.open("s");
    assert.ok(opened.kind === "opened");
    const { store } = opened;
    const put = (name: string): Promise<void> => store.batch([{ kind: "put", key: utf8(name), value: utf8("v") }], { sync: true });
    await put("a");
    always(sim, "error", /^p kv-sync before s$/);
    await assert.rejects(put("b"), /struck by a failpoint/);
    sim.failpoints.disarm();
    await put("c");
    const found = await Promise.all(["a", "b", "c"].map(async (name) => (await store.get(utf8(name))) !== undefined));
    assert.deepEqual(found, [true, false, true]);
  });
});

test("failpoints: names are without numbers", () => {
  assert.equal(shapeOf("journal/000000000012.seg"), "journal/#.seg");
});

test("priorities: the lowest process is behind all others, and a change makes another the lowest", async () => {
  const orders = new Set<string>();
  for (let seed = 1; seed <= 20; seed++) {
    const sim = new Simulation({ seed });
    await sim.run(async () => {
      const worlds = ["a", "b", "c"].map((name) => [name, sim.world(name)] as const);
      sim.explorePriorities(1, 500);
      const order: string[] = [];
      for (const [name, world] of worlds) {
        for (let i = 0; i < 50; i++) world.clock.after(i * 20, () => order.push(name));
      }
      await sim.sleep(5_000);
      assert.equal(order.length, 150);
      orders.add(order.slice(0, 3).join(""));
    });
  }
  assert.ok(orders.size >= 4, [...orders].join(" "));
});
