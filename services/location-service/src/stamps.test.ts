/** The latest question to a stamp decides whether the location service calls it silent, also if an earlier one is answered later. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, unwrap } from "@stamp/base";
import type { StampRecord } from "@stamp/geo";
import { Simulation } from "@stamp/virtual-time";
import { locationServiceSchema } from "./config.ts";
import type { Registry } from "./registry.ts";
import { Stamps } from "./stamps.ts";
import { FakeStamp, stampState } from "./testing/fake-stamp.ts";

const record: StampRecord = { name: "north-1", location: "north", lockService: "north-1:1", secret: "", stampId: "id", state: "open" };
const noAnswer = refused("unavailable", "timeout", "no answer in 5 s");

/** A question that is answered when the test says so. */
function question(stamps: Stamps): { readonly answered: Promise<unknown>; readonly answer: (outcome: Outcome<void>) => void } {
  let answer = (_outcome: Outcome<void>): void => {};
  const told = new Promise<Outcome<void>>((resolve) => {
    answer = resolve;
  });
  return { answered: stamps.onStamp(record, () => told), answer };
}

test("stamps: an answer, or the want of one, to a question that was begun before the last judged one changes nothing", async () => {
  const sim = new Simulation({ seed: 61 });
  await sim.run(async () => {
    sim.addProcess("north-1:1", (world) => new FakeStamp(world, "north-1:1", stampState("id", 100)));
    await sim.sleep(10);
    const world = sim.world("tester");
    const stamps = new Stamps({
      world,
      config: locationServiceSchema.parse({}),
      registry: { stamps: [record], accounts: [], stamp: () => record } as unknown as Registry,
      transportTo: () => ok(world.transport),
      announcer: { name: "location-1", incarnation: 1 },
    });
    const troubleNow = () => stamps.views[0]?.trouble;

    const early = question(stamps);
    unwrap(await stamps.onStamp(record, async () => ok()));
    early.answer(noAnswer);
    await early.answered;
    assert.equal(stamps.isSilent("north-1"), false, "the stamp has answered a later question");

    const late = question(stamps);
    const refusedNow = await stamps.onStamp(record, async () => noAnswer);
    assert.equal(refusedNow.ok, false);
    late.answer(ok());
    await late.answered;
    assert.deepEqual([stamps.isSilent("north-1"), troubleNow()], [true, "no answer in 5 s"], "a later question had no answer");

    unwrap(await stamps.onStamp(record, async () => ok()));
    assert.equal(stamps.isSilent("north-1"), false, "the next question is judged again");
  });
});
