/** A stamp that is declared lost: operations end without it, and when it comes back it is told of its accounts before anything else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { StampState } from "@stamp/wire";
import { roleAt } from "../testing/fake-stamp.ts";
import { call, said, TwoStamps } from "../testing/two-stamps.ts";

const account = "acme";

async function protectedAccount(place: TwoStamps): Promise<void> {
  await place.begin("north-1", "south-1");
  unwrap(await place.location.createAccount({ account, location: "north" }, call));
  for (let write = 0; write < 5; write++) assert.deepEqual(place.write(account), ["north-1"]);
  unwrap(await place.location.protectAccount({ account, stamp: "", location: "south" }, call));
  await place.idle(account);
  await place.protectedBy(account);
}

const down = { unsynced: "lost", silent: false, stayDown: true } as const;
const stampAt = async (place: TwoStamps, name: string) =>
  unwrap(await place.location.listStamps({}, call)).stamps.find((stamp) => stamp.name === name);

test("a lost stamp: a forced failover ends without it; it comes back, is told, takes no writes and has nothing of the account", async () => {
  const place = new TwoStamps({ seed: 41 });
  await place.sim.run(async () => {
    await protectedAccount(place);
    const { location, sim } = place;
    sim.crash("north-1:1", down);
    const declare = (name: string, acceptLoss = true) => location.declareStampLost({ name, acceptLoss }, call);
    assert.match(said(await declare("north-1", false)), /badRequest: .*needs --accept-loss/);
    assert.match(said(await declare("west-1")), /there is no stamp west-1/);
    assert.match(
      said(await declare("north-1")),
      /conflict: stamp north-1 is the primary of accounts that another stamp has a copy of \(acme\): promote the copies first/,
    );
    unwrap(await location.failOverAccount({ account, forced: true, acceptLoss: true, stamp: "south-1" }, call));
    await sim.until(() => place.write(account).length > 0, 30_000, "the copy takes writes");
    assert.equal((await place.account(account)).step, "demoting", "it waits for the old primary");
    const declared = unwrap(await declare("north-1"));
    assert.deepEqual([declared.lost, declared.state], [true, StampState.CLOSED]);
    const alone = await place.idle(account);
    assert.deepEqual([alone.stamp, alone.secondary, alone.state], ["south-1", "", "single"]);
    assert.equal((await stampAt(place, "north-1"))?.owed, 1);
    const protect = () => location.protectAccount({ account, stamp: "north-1", location: "" }, call);
    assert.match(said(await protect()), /stamp north-1 was declared lost/);
    assert.match(said(await location.setStampState({ name: "north-1", state: StampState.OPEN }, call)), /was declared lost/);
    // Another process of the location service goes on with what is owed.
    sim.crash("location-1:1", down);
    sim.restart("location-1:1");
    await place.leads();
    assert.equal((await stampAt(place, "north-1"))?.lost, true);

    assert.equal(roleAt(place.state("north-1"), account)?.role, "primary", "it believes what it knew");
    sim.restart("north-1:1");
    for (let waitedMs = 0; (await stampAt(place, "north-1"))?.lost !== false; waitedMs += 1_000) {
      assert.ok(waitedMs < 120_000, "it is told everything");
      await sim.sleep(1_000);
    }
    const told = place.state("north-1").obeyed.filter((one) => one.account === account);
    assert.deepEqual(
      told.slice(-2).map(({ command }) => command),
      ["demote", "remove"],
    );
    assert.equal(roleAt(place.state("north-1"), account)?.role, "removed");
    await sim.sleep(2_000);
    assert.deepEqual(place.write(account), ["south-1"]);
    assert.equal((await stampAt(place, "north-1"))?.state, StampState.CLOSED, "a person opens it again");
    // It is a stamp as others are: it may have the copy again.
    unwrap(await protect());
    await place.idle(account);
    await place.protectedBy(account);
    place.end();
  });
});

test("a lost stamp: copies there are given up, whatever step their operation is at, and the primary takes writes", async () => {
  for (const [seed, begin] of [
    [42, "idle"],
    [43, "unprotect"],
    [44, "failover"],
  ] as const) {
    const place = new TwoStamps({ seed });
    await place.sim.run(async () => {
      await protectedAccount(place);
      const { location, sim } = place;
      if (begin === "failover") {
        place.linked = false;
        place.write(account);
        unwrap(await location.failOverAccount({ account, forced: false, acceptLoss: false, stamp: "", anyway: true }, call));
      }
      sim.crash("south-1:1", down);
      if (begin === "unprotect") unwrap(await location.unprotectAccount({ account }, call));
      await sim.sleep(3_000);
      unwrap(await location.declareStampLost({ name: "south-1", acceptLoss: true }, call));
      const alone = await place.idle(account);
      assert.deepEqual([alone.stamp, alone.secondary], ["north-1", ""], begin);
      await sim.sleep(2_000);
      place.linked = true;
      assert.deepEqual(place.write(account), ["north-1"], begin);
      sim.restart("south-1:1");
      for (let waitedMs = 0; (await stampAt(place, "south-1"))?.lost !== false; waitedMs += 1_000) {
        assert.ok(waitedMs < 120_000, `${begin}: it is told everything`);
        await sim.sleep(1_000);
      }
      assert.equal(roleAt(place.state("south-1"), account)?.role, "removed", begin);
      assert.deepEqual(place.write(account), ["north-1"], begin);
      place.end();
    });
  }
});

/** Both stamps have these accounts; the one of their primaries is down, they were failed over, and it is declared lost. */
async function loseNorth(place: TwoStamps, names: readonly string[]): Promise<void> {
  const { location, sim } = place;
  await place.begin("north-1", "south-1");
  for (const name of names) unwrap(await location.createAccount({ account: name, location: "north", secondLocation: "south" }, call));
  for (const name of names) await place.protectedBy(name);
  sim.crash("north-1:1", down);
  for (const name of names)
    unwrap(await location.failOverAccount({ account: name, forced: true, acceptLoss: true, stamp: "south-1" }, call));
  for (const name of names)
    await sim.until(async () => (await place.account(name)).stamp === "south-1", 30_000, `${name} is at the other stamp`);
  unwrap(await location.declareStampLost({ name: "north-1", acceptLoss: true }, call));
}

test("a lost stamp: one that comes back with many accounts is told of all of them at once, whenever it comes, and takes no writes soon after", async () => {
  const names = Array.from({ length: 24 }, (_, at) => `acct${String(at).padStart(2, "0")}`);
  // Between two rounds, which are 10 s apart.
  for (const downMs of [30_000, 33_000, 36_000, 39_000]) {
    const place = new TwoStamps({ seed: 45 });
    await place.sim.run(async () => {
      const { sim } = place;
      await loseNorth(place, names);
      await sim.sleep(downMs);
      sim.restart("north-1:1");
      // Its front-ends act on the roles that it knew.
      for (const name of names) place.write(name);
      await sim.sleep(4_000);
      const taking = names.filter((name) => place.write(name).includes("north-1"));
      assert.deepEqual(taking, [], `back after ${downMs} ms`);
      for (let waitedMs = 0; (await stampAt(place, "north-1"))?.lost !== false; waitedMs += 500) {
        assert.ok(waitedMs < 20_000, "it is told everything");
        await sim.sleep(500);
      }
      for (const name of names) assert.equal(roleAt(place.state("north-1"), name)?.role, "removed", name);
      place.end();
    });
  }
});

test("a lost stamp: accounts whose commands it refuses or does not answer keep no other account from being told, and are told when it obeys", async () => {
  const names = Array.from({ length: 48 }, (_, at) => `acct${String(at).padStart(2, "0")}`);
  for (const [seed, refusing, stuck] of [
    [46, ["acct03"], []],
    // More than are told at once.
    [47, names.slice(0, 20), []],
    [48, names.slice(2, 4), names.slice(0, 2)],
  ] as const) {
    const place = new TwoStamps({ seed });
    await place.sim.run(async () => {
      const { sim } = place;
      await loseNorth(place, names);
      const state = place.state("north-1");
      state.refusing = new Set(refusing);
      state.stuck = new Set(stuck);
      sim.restart("north-1:1");
      await sim.sleep(4_000);
      const untold: readonly string[] = [...refusing, ...stuck].sort();
      const primaries = () => names.filter((name) => roleAt(state, name)?.role === "primary");
      assert.deepEqual(primaries(), untold, "only these are not told");
      assert.deepEqual(
        names.filter((name) => place.write(name).includes("north-1")),
        untold,
        "no other account takes writes there",
      );
      // Nor does one that waits keep the others from what comes after.
      const removed = names.filter((name) => roleAt(state, name)?.role === "removed");
      assert.equal(removed.length, names.length - untold.length);
      assert.equal((await stampAt(place, "north-1"))?.lost, true);
      state.refusing = new Set();
      state.stuck = new Set();
      await sim.sleep(1_500);
      assert.deepEqual(primaries(), [...stuck], "refused ones are asked again soon");
      for (let waitedMs = 0; (await stampAt(place, "north-1"))?.lost !== false; waitedMs += 500) {
        assert.ok(waitedMs < 30_000, "it is told everything");
        await sim.sleep(500);
      }
      for (const name of names) assert.equal(roleAt(state, name)?.role, "removed", name);
      place.end();
    });
  }
});
