/** Operations on accounts over simulated time: protection, failovers, migration, refusals, crashes at any step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng, unwrap } from "@stamp/base";
import { StampState } from "@stamp/wire";
import { logAt, roleAt, type ShippingAt } from "./testing/fake-stamp.ts";
import { call, said, TwoStamps } from "./testing/two-stamps.ts";

const account = "acme";
const how = { forced: false, acceptLoss: false, stamp: "" };

/** An account at north-1 with a complete copy at south-1 and some writes. */
async function protectedAccount(place: TwoStamps): Promise<void> {
  await place.begin("north-1", "south-1");
  unwrap(await place.location.createAccount({ account, location: "north" }, call));
  for (let write = 0; write < 5; write++) assert.deepEqual(place.write(account), ["north-1"]);
  unwrap(await place.location.protectAccount({ account, stamp: "", location: "south" }, call));
  await place.idle(account);
  await place.protectedBy(account);
}

test("operations: an account gets a copy, fails over and back, with its keys, and no acknowledged write is lost", async () => {
  const place = new TwoStamps({ seed: 1 });
  await place.sim.run(async () => {
    await protectedAccount(place);
    assert.deepEqual(place.state("south-1").accounts.get(account), place.state("north-1").accounts.get(account));
    assert.deepEqual(roleAt(place.state("south-1"), account)?.peer, "north-1");
    const shown = await place.account(account);
    assert.deepEqual([shown.stamp, shown.secondary, shown.state, shown.seeded], ["north-1", "south-1", "protected", true]);
    for (const [from, to] of [
      ["north-1", "south-1"],
      ["south-1", "north-1"],
    ] as const) {
      for (let write = 0; write < 40; write++) place.write(account);
      const before = place.sim.world("tester").clock.monotonicMs();
      const begun = unwrap(await place.location.failOverAccount({ account, ...how, stamp: to }, call));
      assert.deepEqual([begun.kind, begun.step, begun.target], ["failover", "draining", to]);
      assert.match(
        said(await place.location.migrateAccount({ account, stamp: to }, call)),
        /conflict: operation \d+ \(failover\) of account acme is under way/,
      );
      let refusedMs = 0;
      while ((await place.account(account)).stamp === from) {
        place.write(account);
        await place.sim.sleep(50);
        refusedMs = place.sim.world("tester").clock.monotonicMs() - before;
      }
      assert.ok(refusedMs < 5_000, `${refusedMs} ms until the other stamp is primary`);
      const after = await place.idle(account);
      assert.deepEqual([after.stamp, after.secondary], [to, from]);
      await place.sim.sleep(2_000);
      place.judge(account, to, false, `over to ${to}`);
      await place.protectedBy(account);
    }
    unwrap(await place.location.unprotectAccount({ account }, call));
    const single = await place.idle(account);
    assert.deepEqual([single.stamp, single.secondary, single.state], ["north-1", "", "single"]);
    assert.equal(roleAt(place.state("south-1"), account)?.role, "removed");
    place.judge(account, "north-1", false, "unprotected");
    place.end();
  });
});

test("operations: an account moves to another stamp and nothing of it stays behind", async () => {
  const place = new TwoStamps({ seed: 2, level: 4 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    unwrap(await place.location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    for (let write = 0; write < 20; write++) place.write(account);
    unwrap(await place.location.migrateAccount({ account, stamp: to }, call));
    const moved = await place.idle(account);
    assert.deepEqual([moved.stamp, moved.secondary, moved.state], [to, "", "single"]);
    assert.equal(place.state(from).accounts.has(account), false);
    await place.sim.sleep(6_000);
    place.judge(account, to, false, "migrated");
    place.end();
  });
});

test("operations: a stamp that drains gives its accounts away, one after another, and what can't move is named", async () => {
  const place = new TwoStamps({ seed: 12 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2", "south-1");
    const { location } = place;
    for (const [name, north] of [
      ["acme", "north-1"],
      ["beta", "north-1"],
      ["gamma", "north-2"],
    ] as const) {
      const other = north === "north-1" ? "north-2" : "north-1";
      unwrap(await location.setStampState({ name: other, state: StampState.CLOSED }, call));
      unwrap(await location.createAccount({ account: name, location: "north" }, call));
      unwrap(await location.setStampState({ name: other, state: StampState.OPEN }, call));
    }
    unwrap(await location.protectAccount({ account: "beta", stamp: "south-1", location: "" }, call));
    await place.idle("beta");
    await place.protectedBy("beta");
    const sizes = new Map([["acme", 7n]]);
    const { shipping } = place.state("north-1");
    place.state("north-1").shipping = (name) => ({
      ...(shipping?.(name) ?? { account: name, epoch: 0n }),
      seedBytes: sizes.get(name) ?? 0n,
      nowMs: 1n,
    });
    const none = unwrap(await location.proposeMoves({}, call));
    assert.deepEqual([none.moves, none.staying], [[], []], "no stamp is too full, and none drains");
    unwrap(await location.setStampState({ name: "north-1", state: StampState.DRAINING }, call));
    const { moves, staying } = unwrap(await location.proposeMoves({}, call));
    assert.deepEqual(
      moves.map(({ account: name, from, to, bytes }) => [name, from, to, bytes]),
      [["acme", "north-1", "north-2", 21n]],
      "three replicas of seven bytes",
    );
    assert.deepEqual(staying, ["beta: it has a copy at stamp south-1: fail over to it, or give it up first"]);
    unwrap(await location.migrateAccount({ account: "acme", stamp: "north-2" }, call));
    assert.equal((await place.idle("acme")).stamp, "north-2");
    const after = unwrap(await location.proposeMoves({}, call));
    assert.deepEqual(after.moves, []);
    place.state("north-1").shipping = (name) => ({ account: name, epoch: 0n });
    unwrap(await location.unprotectAccount({ account: "beta" }, call));
    await place.idle("beta");
    const unknown = unwrap(await location.proposeMoves({}, call));
    assert.deepEqual([unknown.moves, unknown.staying], [[], ["beta: stamp north-1 does not say how large it is"]]);
    place.end();
  });
});

test("operations: while a copy catches up, the account tells by how much the backlog becomes smaller; a new copy begins anew", async () => {
  const place = new TwoStamps({ seed: 9 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    unwrap(await location.protectAccount({ account, stamp: "south-1", location: "" }, call));
    await place.idle(account);
    let [commits, paired, fewer] = [10_000n, 7n, 1_000n];
    place.state("north-1").shipping = (name) => {
      commits -= fewer;
      return { account: name, epoch: 1n, paired, pendingCommits: commits, pendingBytes: commits * 100n, nowMs: 1n };
    };
    const rates = async () => {
      const { shipping } = unwrap(await location.getAccount({ account }, call));
      return [shipping?.caughtUpCommitsPerSecond ?? 0, shipping?.caughtUpBytesPerSecond ?? 0] as const;
    };
    await place.sim.sleep(45_000);
    const [perSecond, bytes] = await rates();
    // It is asked every 10 s.
    assert.ok(perSecond > 50 && perSecond < 150, `${perSecond}`);
    assert.equal(Math.round(bytes / perSecond), 100);
    [commits, paired, fewer] = [50n, 8n, 0n];
    await place.sim.sleep(12_000);
    assert.deepEqual(await rates(), [0, 0]);
    place.end();
  });
});

test("operations: what can't be done is refused with words", async () => {
  const place = new TwoStamps({ seed: 3, unseeded: true });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const over = async (given: Partial<typeof how>) => said(await location.failOverAccount({ account, ...how, ...given }, call));
    assert.match(await over({}), /notSeeded: account acme has no secondary/);
    assert.match(await over({ stamp: "west-1" }), /there is no stamp west-1; stamps are: north-1, south-1/);
    assert.match(said(await location.failOverAccount({ account: "nobody", ...how }, call)), /no stamp is known to have account nobody/);
    assert.match(
      said(await location.protectAccount({ account, stamp: "north-1", location: "" }, call)),
      /north-1 is the primary of account acme already/,
    );
    assert.match(said(await location.protectAccount({ account, stamp: "west-1", location: "" }, call)), /there is no stamp west-1/);
    assert.match(said(await location.protectAccount({ account, stamp: "", location: "west" }, call)), /noPlacement: location west/);
    unwrap(await location.protectAccount({ account, stamp: "south-1", location: "" }, call));
    await place.idle(account);
    assert.match(await over({}), /notSeeded: the copy of account acme at stamp south-1 is not complete: it is still seeded/);
    assert.match(await over({ forced: true }), /badRequest: a forced failover of account acme loses .*--accept-loss/);
    assert.match(await over({ forced: true, acceptLoss: true }), /notSeeded: the copy of account acme at stamp south-1 is not complete/);
    assert.match(await over({ stamp: "north-1" }), /conflict: the copy of account acme is at stamp south-1, not at north-1/);
    assert.match(said(await location.giveUpOperation({ account }, call)), /conflict: account acme has no operation under way/);
    assert.match(
      said(await location.addStamp({ name: "east-1", location: "east", lockService: "e:1", doors: ["x"] }, call)),
      /badRequest: door "x": host:port/,
    );
    place.state("south-1").stampId = "another";
    await place.sim.sleep(12_000);
    unwrap(await location.unprotectAccount({ account }, call));
    await place.sim.sleep(8_000);
    const { step, trouble } = await place.account(account);
    assert.equal(step, "removing");
    assert.match(trouble, /stamp south-1 is id of south-1, and its address is that of stamp another: nothing is asked of it/);
    place.end();
  });
});

test("operations: an account is made with its copy in one step, also over a crash of the location service", async () => {
  const place = new TwoStamps({ seed: 6 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const made = unwrap(await place.location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    assert.deepEqual([made.account?.stamp, made.account?.kind, made.account?.target], ["north-1", "create", "south-1"]);
    place.sim.crash("location-1:1", { unsynced: "lost", silent: false, stayDown: true });
    await place.sim.sleep(500);
    place.sim.restart("location-1:1");
    await place.leads();
    const { stamp, secondary } = await place.idle(account);
    assert.deepEqual([stamp, secondary], ["north-1", "south-1"]);
    await place.protectedBy(account);
    assert.deepEqual(place.state("south-1").accounts.get(account), made.keys);
    assert.match(
      said(await place.location.createAccount({ account: "other", location: "north", secondLocation: "north" }, call)),
      /noPlacement: location north has no stamp that is a choice/,
    );
    place.end();
  });
});

test("operations: a copy at a stamp that does not answer, is another one or knows no second stamps is refused, not begun", async () => {
  const place = new TwoStamps({ seed: 7 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const protect = async () => said(await location.protectAccount({ account, stamp: "south-1", location: "" }, call));
    const migrate = async () => said(await location.migrateAccount({ account, stamp: "south-1" }, call));
    const south = place.state("south-1");
    south.older = true;
    for (const ask of [protect, migrate])
      assert.match(await ask(), /newerFormat: stamp south-1 runs a release that knows no second stamp of an account: upgrade it first/);
    south.older = false;
    const { stampId } = south;
    south.stampId = "another";
    for (const ask of [protect, migrate]) assert.match(await ask(), /wrongStamp: .*nothing is asked of it/);
    south.stampId = stampId;
    place.sim.crash("south-1:1", { unsynced: "lost", silent: true, stayDown: true });
    for (const ask of [protect, migrate]) assert.match(await ask(), /stamp south-1/);
    assert.equal((await place.account(account)).state, "single");
    place.sim.restart("south-1:1");
    assert.equal(await protect(), "ok");
    await place.idle(account);
    await place.protectedBy(account);
    place.judge(account, "north-1", false, "protected at last");
    place.end();
  });
});

test("operations: a failover whose link is cut is given up, and the primary takes writes again", async () => {
  const place = new TwoStamps({ seed: 4 });
  await place.sim.run(async () => {
    await protectedAccount(place);
    place.linked = false;
    place.write(account);
    unwrap(await place.location.failOverAccount({ account, ...how }, call));
    await place.sim.sleep(5_000);
    assert.deepEqual(place.write(account), [], "drained");
    const after = await place.idle(account);
    assert.deepEqual([after.stamp, after.secondary, after.seeded], ["north-1", "south-1", true]);
    await place.sim.sleep(2_000);
    place.judge(account, "north-1", false, "given up");
    unwrap(await place.location.failOverAccount({ account, ...how }, call));
    await place.sim.sleep(3_000);
    const back = unwrap(await place.location.giveUpOperation({ account }, call));
    assert.deepEqual([back.step, back.givenUp], ["undraining", true]);
    await place.idle(account);
    place.linked = true;
    unwrap(await place.location.failOverAccount({ account, ...how }, call));
    assert.equal((await place.idle(account)).stamp, "south-1");
    await place.sim.sleep(2_000);
    place.judge(account, "south-1", false, "at last");
    place.end();
  });
});

test("operations: a copy whose stamp is restored while its primary drains is promoted when it has everything again", async () => {
  const place = new TwoStamps({ seed: 31 });
  await place.sim.run(async () => {
    await protectedAccount(place);
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    const { shipping } = north;
    const says = (more: Partial<ShippingAt>): void => {
      north.shipping = (name) => ({ ...(shipping?.(name) ?? { account: name, epoch: 0n }), ...more });
    };
    // The primary has not noticed the restore yet.
    says({ copyLineage: 0n });
    south.lineage = 500;
    unwrap(await place.location.failOverAccount({ account, ...how, stamp: "south-1" }, call));
    const isPrimary = (): boolean => roleAt(south, account)?.role === "primary";
    await place.sim.until(() => south.promotedUnder.length > 1, 20_000, "a promotion is asked for, again and again");
    assert.deepEqual([isPrimary(), new Set(south.promotedUnder)], [false, new Set([0])]);
    // It has noticed, and seeds the copy.
    says({ copyLineage: 500n, complete: false, pendingCommits: 3n });
    await place.sim.sleep(2_000);
    const asked = south.promotedUnder.length;
    await place.sim.sleep(20_000);
    assert.deepEqual([isPrimary(), south.promotedUnder.length], [false, asked], "nothing is promoted that lacks commits");
    says({ copyLineage: 500n });
    const after = await place.idle(account);
    assert.deepEqual([after.stamp, south.promotedUnder.at(-1)], ["south-1", 500]);
    place.end();
  });
});

test("operations: after the loss of the primary the copy takes writes, and what the old primary had more is in its report", async () => {
  const place = new TwoStamps({ seed: 5 });
  await place.sim.run(async () => {
    await protectedAccount(place);
    place.linked = false;
    for (let write = 0; write < 7; write++) place.write(account);
    place.sim.crash("north-1:1", { unsynced: "lost", silent: false, stayDown: true });
    place.state("south-1").lastSyncMs = 1_767_225_600_999;
    const begun = unwrap(await place.location.failOverAccount({ account, forced: true, acceptLoss: true, stamp: "south-1" }, call));
    assert.equal(begun.acceptedSyncMs, 1_767_225_600_999n, "as the copy knows it");
    await place.sim.until(() => place.write(account).length > 0, 30_000, "the copy takes writes");
    const between = await place.account(account);
    assert.deepEqual([between.stamp, between.secondary, between.step], ["south-1", "north-1", "demoting"]);
    assert.equal(between.acceptedSyncMs, begun.acceptedSyncMs);
    const reportOf = (stamp: string) => place.location.listDiverged({ account, stamp, marker: "" }, call);
    assert.equal((await reportOf("north-1")).ok, false, "a lost stamp tells nothing");
    assert.equal(unwrap(await reportOf("south-1")).complete, true);
    place.sim.restart("north-1:1");
    place.linked = true;
    const { complete, trouble } = unwrap(await reportOf("north-1"));
    assert.deepEqual([complete, trouble], [false, "stamp north-1 has not heard yet that it is no primary any more"]);
    const forget = () => place.location.forgetDiverged({ account, stamp: "north-1", marker: "" }, call);
    assert.match(said(await forget()), /north-1 has not heard yet/, "its report is not made yet");
    await place.idle(account);
    assert.equal(said(await forget()), "ok");
    assert.equal(unwrap(await reportOf("north-1")).complete, true);
    await place.protectedBy(account);
    place.judge(account, "south-1", true, "forced");
    assert.equal(place.aside.get(account)?.size, 7);
    unwrap(await place.location.failOverAccount({ account, ...how, stamp: "north-1" }, call));
    await place.idle(account);
    await place.sim.sleep(2_000);
    place.judge(account, "north-1", true, "back");
    assert.equal(place.aside.get(account)?.size, 7, "the way back loses nothing");
    assert.ok(logAt(place.state("south-1"), account).length > 0);
    place.end();
  });
});

test("operations: under crashes of every process each operation ends, and no acknowledged write is nowhere", async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const place = new TwoStamps({ seed: 200 + seed, level: seed % 2 === 0 ? 4 : 1 });
    await place.sim.run(() => underCrashes(place, new Prng(seed), `seed ${seed}`));
  }
});

test("operations: without rule geoStepRecorded a seed finds acknowledged writes that are nowhere", async () => {
  let failed = 0;
  for (const seed of [3, 4, 6]) {
    const place = new TwoStamps({ seed: 200 + seed, off: ["geoStepRecorded"] });
    await place.sim.run(() => underCrashes(place, new Prng(seed), `seed ${seed}`)).catch(() => failed++);
  }
  assert.ok(failed > 0);
});

async function underCrashes(place: TwoStamps, random: Prng, what: string): Promise<void> {
  await protectedAccount(place);
  let forced = false;
  let running = true;
  const writing = (async () => {
    while (running) {
      place.write(account);
      await place.sim.sleep(20 + random.below(40));
    }
  })();
  const crashing = (async () => {
    const processes = ["location-1:1", "lock:1", "north-1:1", "south-1:1"];
    while (running) {
      await place.sim.sleep(500 + random.below(3_000));
      place.linked = random.chance(0.8);
      const name = random.pick(processes);
      if (!running || !place.sim.isUp(name)) continue;
      place.sim.crash(name, { unsynced: "lost", silent: random.chance(0.5), stayDown: true });
      await place.sim.sleep(50 + random.below(2_000));
      place.sim.restart(name);
    }
  })();
  for (let round = 0; round < 4; round++) {
    const force = random.chance(0.3);
    const { location } = place;
    const begun = await location.failOverAccount({ account, forced: force, acceptLoss: force, stamp: "" }, { timeoutMs: 3_000 });
    if (force && (begun.ok || begun.failure.applied === "unknown")) forced = true;
    await place.sim.sleep(500 + random.below(4_000));
    if (random.chance(0.3)) await location.giveUpOperation({ account }, { timeoutMs: 1_000 });
    await place.sim.sleep(random.below(15_000));
  }
  running = false;
  await Promise.all([writing, crashing]);
  place.linked = true;
  for (const name of ["lock:1", "location-1:1", "north-1:1", "south-1:1"]) if (!place.sim.isUp(name)) place.sim.restart(name);
  await place.leads();
  const { stamp } = await place.idle(account);
  await place.protectedBy(account);
  await place.sim.sleep(2_000);
  place.judge(account, stamp, forced, what);
  place.end();
}
