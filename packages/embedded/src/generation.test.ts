import assert from "node:assert/strict";
import { test } from "node:test";
import { type Role, silentLogger, type World } from "@stamp/ports";
import { Generation } from "./generation.ts";

const generationOf = (start: (world: World) => Promise<void>, readyTimeoutMs: number): Generation => {
  const make = (world: World): Role =>
    ({
      status: { state: "test", ready: false, waitingFor: ["a thing"] },
      start: () => start(world),
      stop: async () => {},
    }) as unknown as Role;
  return new Generation([{ name: "test-1", make }], { dataDir: undefined, memoryBytesMax: 1 << 20, logger: silentLogger, readyTimeoutMs });
};

test("generation: a role that begins for ever is waited for as long as one that is not ready", async () => {
  const generation = generationOf(() => new Promise(() => {}), 50);
  await assert.rejects(generation.start(), /test-1 waits for a thing/);
  await generation.end("at once");
});

test("generation: a role that ends itself as it starts is not ready, and the error says why it ended", async () => {
  const generation = generationOf(async (world) => world.fatal("its disk is too old"), 50);
  await assert.rejects(generation.start(), /test-1 waits for its next start \(it ended: its disk is too old\)/);
  await generation.end("at once");
});
