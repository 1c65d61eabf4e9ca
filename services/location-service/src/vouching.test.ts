/** The location service vouches for copies whose primary answers nobody, and for no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { call, TwoStamps } from "./testing/two-stamps.ts";

test("vouching: the stamp of a copy is told that its primary is silent, for as long as it is, and not before or after", async () => {
  const place = new TwoStamps({ seed: 41 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    unwrap(await place.location.createAccount({ account: "acme", location: "north", secondLocation: "south" }, call));
    await place.idle("acme");
    await place.protectedBy("acme");
    await place.sim.sleep(30_000);
    const { vouched } = place.state("south-1");
    assert.equal(vouched.get("acme") ?? 0, 0, "the primary answers");
    place.sim.pause("north-1:1");
    await place.sim.sleep(70_000);
    const words = vouched.get("acme") ?? 0;
    assert.ok(words >= 2, `${words} words`);
    place.sim.resume("north-1:1");
    await place.sim.sleep(30_000);
    const after = vouched.get("acme") ?? 0;
    await place.sim.sleep(60_000);
    assert.equal(vouched.get("acme"), after, "the primary answers again");
    place.end();
  });
});
