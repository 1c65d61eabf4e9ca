/** A stamp that answers nothing, with the copies of many accounts: what the location service does for the others meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { roleAt } from "./testing/fake-stamp.ts";
import { call, said, TwoStamps } from "./testing/two-stamps.ts";

const how = { forced: false, acceptLoss: false, stamp: "" };
/** With a question of 10 s to a silent stamp for each of them, one after the other, a round would take minutes. */
const copies = 40;

const nowMs = (place: TwoStamps): number => place.sim.world("tester").clock.monotonicMs();

/** Many accounts at north-1 with a copy at south-1, and a third stamp, east-1. */
async function manyCopies(place: TwoStamps): Promise<string[]> {
  await place.begin("north-1", "south-1", "east-1");
  const names = Array.from({ length: copies }, (_, at) => `acct${String(at).padStart(2, "0")}`);
  for (const name of names) unwrap(await place.location.createAccount({ account: name, location: "north", secondLocation: "south" }, call));
  for (const name of names) await place.idle(name);
  for (const name of names) await place.protectedBy(name);
  return names;
}

/** A stamp that takes connections and answers nothing. */
async function silence(place: TwoStamps, stamp: string): Promise<void> {
  place.sim.pause(`${stamp}:1`);
  // The location service has asked it in vain.
  await place.sim.sleep(25_000);
}

test("silent stamp: the others are asked as before, accounts are created, and a copy at another stamp is made", async () => {
  const place = new TwoStamps({ seed: 31 });
  await place.sim.run(async () => {
    await manyCopies(place);
    await silence(place, "south-1");
    for (let round = 0; round < 12; round++) {
      const begunMs = nowMs(place);
      const made = await place.location.createAccount({ account: `new${round}`, location: "east" }, call);
      assert.equal(said(made), "ok", `round ${round}`);
      assert.ok(nowMs(place) - begunMs < 2_000, `round ${round}: created after ${nowMs(place) - begunMs} ms`);
      await place.sim.sleep(10_000);
    }
    const { stamps } = unwrap(await place.location.listStamps({}, call));
    for (const { name, answers, toldMsAgo } of stamps.filter((each) => each.name !== "south-1"))
      assert.ok(answers && toldMsAgo < 20_000n, `${name}: ${answers}, last report ${toldMsAgo} ms ago`);
    assert.equal(stamps.find(({ name }) => name === "south-1")?.answers, false);

    // A copy that gets complete is seen, though the copies at the silent stamp can't be asked for.
    unwrap(await place.location.protectAccount({ account: "new0", stamp: "north-1", location: "" }, call));
    await place.idle("new0", 30_000);
    await place.protectedBy("new0");
    place.end();
  });
});

test("silent stamp: when it answers again, all its copies are asked for within a round", async () => {
  const place = new TwoStamps({ seed: 32 });
  await place.sim.run(async () => {
    const names = await manyCopies(place);
    await silence(place, "south-1");
    await place.sim.sleep(120_000);
    // Keys that changed meanwhile come to each copy.
    for (const name of names) place.state("north-1").accounts.set(name, [`new key of ${name}`]);
    place.sim.resume("south-1:1");
    await place.sim.sleep(90_000);
    const stale = names.filter((name) => place.state("south-1").accounts.get(name)?.[0] !== `new key of ${name}`);
    assert.deepEqual(stale, []);
    place.end();
  });
});

test("silent stamp: a drained primary takes writes again after drainMaxMs, also if it was away itself meanwhile", async () => {
  const place = new TwoStamps({ seed: 33 });
  await place.sim.run(async () => {
    const [account = ""] = await manyCopies(place);
    place.linked = false;
    assert.deepEqual(place.write(account), ["north-1"]);
    place.sim.pause("south-1:1");
    unwrap(await place.location.failOverAccount({ account, ...how }, call));
    await place.sim.sleep(2_000);
    assert.equal(roleAt(place.state("north-1"), account)?.role, "drained");
    // An operation fails five times in this time, and drainMaxMs (20 s here) passes.
    place.sim.pause("north-1:1");
    await place.sim.sleep(60_000);
    place.sim.resume("north-1:1");
    await place.sim.sleep(8_000);
    assert.equal(roleAt(place.state("north-1"), account)?.role, "primary", (await place.account(account)).trouble);
    await place.sim.sleep(2_000);
    assert.deepEqual(place.write(account), ["north-1"]);
    place.end();
  });
});
