/** How keys and settings come to copies, by the feature levels of both stamps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { call, said, TwoStamps } from "../testing/two-stamps.ts";

const account = "acme";
const planned = { account, forced: false, acceptLoss: false, stamp: "", anyway: false };

/** Protects an account, fails it over and back, moves its copy away. Returns what the location service carried. */
async function carriedAt(level: number): Promise<readonly string[]> {
  const place = new TwoStamps({ seed: 51, level });
  const carried: string[] = [];
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    assert.deepEqual(south.accounts.get(account), north.accounts.get(account));
    // Several rounds compare the settings.
    await place.sim.sleep(150_000);
    for (const to of ["south-1", "north-1"]) {
      place.write(account);
      unwrap(await place.location.failOverAccount(planned, call));
      assert.equal((await place.idle(account)).stamp, to);
      await place.protectedBy(account);
      place.judge(account, to, false, `over to ${to}`);
      const { promotedWith, accounts } = place.state(to);
      assert.ok(promotedWith.length > 0);
      for (const tag of promotedWith) assert.equal(tag, accounts.get(account)?.join());
    }
    unwrap(await place.location.unprotectAccount({ account }, call));
    await place.idle(account);
    carried.push(...north.carried, ...south.carried);
    place.end();
  });
  return carried;
}

test("copy settings: from the level on an operation neither asks for keys nor gives any; below it the location service carries them", async () => {
  assert.deepEqual(await carriedAt(4), []);
  assert.ok((await carriedAt(3)).length >= 6);
});

test("copy settings: between a stamp below the level and one at it no copy begins and no primary is drained, and the stamp to finalize is named", async () => {
  const place = new TwoStamps({ seed: 52, level: 3 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    south.level = 4;
    unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.sim.sleep(10_000);
    const low = /stamp north-1 has feature level 3, and stamp south-1 has level 4: .*At stamp north-1: \.\/stamp upgrade finalize/;
    assert.match((await place.account(account)).trouble, low);
    assert.deepEqual(place.write(account), ["north-1"]);
    north.level = 4;
    await place.idle(account);
    await place.protectedBy(account);
    south.level = 3;
    // Also with --anyway: the drain could not come to its end.
    for (const anyway of [false, true]) {
      const refused = said(await place.location.failOverAccount({ ...planned, anyway }, call));
      assert.match(refused, /notReady: planned failover of account acme: stamp south-1 has feature level 3, .* At stamp south-1/);
    }
    assert.deepEqual(place.write(account), ["north-1"]);
    assert.deepEqual([...north.carried, ...south.carried], []);
    place.end();
  });
});

test("copy settings: a primary whose copy has not confirmed its settings is not drained, and what was drained is not promoted", async () => {
  const place = new TwoStamps({ seed: 53, level: 4 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const north = place.state("north-1");
    unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    north.unconfirmed = "stamp south-1 has not confirmed them";
    const refused = said(await place.location.failOverAccount({ ...planned, anyway: true }, call));
    assert.match(refused, /notReady: planned failover of account acme: keys and settings .*: stamp south-1 has not confirmed them/);
    assert.deepEqual(place.write(account), ["north-1"]);
    north.unconfirmed = "";
    unwrap(await place.location.failOverAccount(planned, call));
    north.unconfirmed = "stamp south-1 has not confirmed them";
    await place.idle(account);
    const held = await place.account(account);
    assert.deepEqual([held.stamp, held.secondary], ["north-1", "south-1"], "it is given up");
    place.judge(account, "north-1", false, "given up");
    place.end();
  });
});

for (const off of [false, true]) {
  const name = "copy settings: keys that a front-end at the copy put in the place of the primary's come to no planned promotion";
  test(off ? "copy settings: rule geoSettingsBeforePromotion off, the copy is promoted with forged keys" : name, async () => {
    const place = new TwoStamps({ seed: 54, level: 4, ...(off && { off: ["geoSettingsBeforePromotion"] }) });
    await place.sim.run(async () => {
      await place.begin("north-1", "south-1");
      const south = place.state("south-1");
      unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
      await place.idle(account);
      await place.protectedBy(account);
      south.forgedKeys = ["forged"];
      await place.sim.sleep(1_000);
      unwrap(await place.location.failOverAccount(planned, call));
      await place.idle(account);
      const held = await place.account(account);
      const promoted = [held.stamp, off && place.state("south-1").accounts.get(account)];
      assert.deepEqual(promoted, off ? ["south-1", ["forged"]] : ["north-1", false]);
      if (!off) place.judge(account, "north-1", false, "given up");
      place.end();
    });
  });
}

test("copy settings: a promotion compares with what the drained primary had, also when that is silent by then", async () => {
  const place = new TwoStamps({ seed: 55, level: 4 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    south.refusing = new Set([account]);
    unwrap(await place.location.failOverAccount(planned, call));
    const promotes = async () => (await place.account(account)).step === "promoting";
    while (!(await promotes())) await place.sim.sleep(250);
    place.sim.crash("north-1:1");
    // A command on its way has the primary's answer.
    await place.sim.sleep(20_000);
    south.promotedWith.length = 0;
    south.refusing = new Set();
    while (south.promotedWith.length === 0) await place.sim.sleep(250);
    assert.deepEqual(south.promotedWith, [north.accounts.get(account)?.join()]);
    place.sim.restart("north-1:1");
    await place.idle(account);
    place.judge(account, "south-1", false, "over to south-1");
    place.end();
  });
});
