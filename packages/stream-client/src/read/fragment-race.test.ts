/** One range of one fragment: whom it asks, and when. Nodes are functions on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { Kernel, type Profile, profileOf } from "@stamp/erasure";
import { sleep, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { FragmentRace } from "./fragment-race.ts";
import { NodeHistories } from "./replica-race.ts";

const kibibyte = 1_024;
const profile = profileOf("rs-4-2") as Profile;
const addresses = Array.from({ length: profile.fragments }, (_, index) => `n${index}`);

/** Reads a range of fragment 0. Each node answers with zeros after as long as `takesMs` says. Returns who was asked, and when. */
function read(histories: NodeHistories, lengthBytes: number, takesMs: (address: string) => number) {
  const sim = new Simulation({ seed: 7 });
  return sim.run(async () => {
    const world = sim.world("reader");
    const startMs = world.clock.monotonicMs();
    const asked: (readonly [address: string, atMs: number])[] = [];
    const client = (address: string) => ({
      readFragment: async (request: { readonly lengthBytes: number }, options: { readonly signal?: AbortSignal }) => {
        asked.push([address, Math.round(world.clock.monotonicMs() - startMs)]);
        await sleep(world.clock, takesMs(address), options.signal);
        return ok({ payload: new Uint8Array(request.lengthBytes) });
      },
    });
    const fragments = addresses.map((address) => ({ version: 1, address }));
    const race = new FragmentRace(
      { extentId: 1, coded: { profile: profile.name, fragments }, profile, index: 0, offsetBytes: 0, lengthBytes },
      {
        world: { ...world, transport: { client } } as unknown as World,
        histories,
        kernel: new Kernel(profile.fragments, 64 * kibibyte),
        deadlineMs: startMs + 5_000,
        signal: undefined,
        places: { isCached: false, disproved: () => {} },
      },
    );
    assert.equal(unwrap(await race.run()).length, lengthBytes);
    return asked;
  });
}

test("fragment race: a large read that takes its usual time asks nobody else, after many small ones that were quick", async () => {
  const histories = new NodeHistories();
  for (let i = 0; i < 32; i++) await read(histories, 64 * kibibyte, () => 2);
  for (let i = 0; i < 16; i++) await read(histories, 1_024 * kibibyte, () => 40);
  const usual = await read(histories, 1_024 * kibibyte, () => 40);
  assert.deepEqual(usual, [["n0", 0]]);
  const late = await read(histories, 1_024 * kibibyte, (address) => (address === "n0" ? 1_000 : 40));
  assert.deepEqual([late.length, late[1]?.[1]], [5, 60], "four others are asked after one and a half times the usual time");
  const small = await read(histories, 64 * kibibyte, (address) => (address === "n0" ? 40 : 2));
  assert.equal(small[1]?.[1], 5);
});
