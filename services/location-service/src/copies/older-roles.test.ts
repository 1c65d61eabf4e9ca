/** Roles of accounts that a restore of a stamp's metadata store has taken back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { roleAt } from "../testing/fake-stamp.ts";
import { call, TwoStamps } from "../testing/two-stamps.ts";

const account = "acct";
const how = { forced: false, acceptLoss: false, stamp: "" };
/** More than the time between two lists of a stamp's accounts, in milliseconds. */
const roundMs = 90_000;

/** An account at north-1, with a copy at south-1 if `copied`. */
async function inScene(seed: number, copied: boolean, work: (place: TwoStamps) => Promise<void>, off: readonly RuleName[] = []) {
  const place = new TwoStamps({ seed, off });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    unwrap(await place.location.createAccount({ account, location: "north", secondLocation: copied ? "south" : "" }, call));
    await place.idle(account);
    if (copied) await place.protectedBy(account);
    for (let i = 0; i < 5; i++) place.write(account);
    await work(place);
    place.end();
  });
}

const roleOf = (place: TwoStamps, stamp: string): AccountRole | undefined => roleAt(place.state(stamp), account);

function takeBack(place: TwoStamps, stamp: string, role: AccountRole | undefined): void {
  const { roles } = place.state(stamp);
  if (role === undefined) roles.delete(account);
  else roles.set(account, role);
}

async function failOver(place: TwoStamps): Promise<void> {
  unwrap(await place.location.failOverAccount({ account, ...how }, call));
  await place.idle(account);
  await place.protectedBy(account);
}

const troubleOf = async (place: TwoStamps): Promise<string> => (await place.account(account)).trouble;

test("older roles: a deposed primary whose row was put back is deposed again, and is a copy as any other then", async () => {
  await inScene(61, true, async (place) => {
    const before = roleOf(place, "north-1");
    await failOver(place);
    takeBack(place, "north-1", before);
    assert.deepEqual(place.write(account), ["north-1", "south-1"], "two primaries: the case shows something");
    await place.sim.sleep(roundMs);
    const { role, epoch, paired } = roleOf(place, "north-1") ?? {};
    assert.deepEqual([role, epoch, paired], ["secondary", 2, roleOf(place, "south-1")?.paired]);
    place.judge(account, "south-1", true, "deposed again");
    assert.equal(await troubleOf(place), "");
    await failOver(place);
    place.judge(account, "north-1", true, "it is a copy as any other");
  });
});

test("older roles: a stamp that was silent is asked as soon as it answers again", async () => {
  await inScene(62, true, async (place) => {
    const before = roleOf(place, "north-1");
    await failOver(place);
    const { lists } = place.state("north-1");
    await place.sim.until(() => place.state("north-1").lists > lists, roundMs, "its accounts were asked for");
    await place.sim.stop("north-1:1");
    await place.sim.sleep(22_000);
    takeBack(place, "north-1", before);
    place.sim.restart("north-1:1");
    // The next list is due 60 s after the last one.
    await place.sim.until(() => roleOf(place, "north-1")?.epoch === 2, 25_000, "it is deposed");
  });
});

test("older roles: a list that is older than the role by the time it is judged tells nothing", async () => {
  await inScene(64, true, async (place) => {
    const before = roleOf(place, "north-1");
    await failOver(place);
    const after = roleOf(place, "north-1");
    const north = place.state("north-1");
    let { lists } = north;
    Object.defineProperty(north, "lists", {
      get: () => lists,
      set: (value: number) => {
        lists = value;
        // The list is made of the older role, and the role is asked for afterwards.
        takeBack(place, "north-1", before);
        queueMicrotask(() => takeBack(place, "north-1", after));
      },
    });
    const known = lists;
    await place.sim.until(() => lists > known, roundMs, "its accounts were asked for");
    await place.sim.sleep(5_000);
    assert.equal(await troubleOf(place), "");
    assert.deepEqual(roleOf(place, "north-1"), after);
  });
});

test("older roles: without the rule geoOlderRolesEnd two stamps go on as primaries", async () => {
  const work = async (place: TwoStamps): Promise<void> => {
    const before = roleOf(place, "north-1");
    await failOver(place);
    takeBack(place, "north-1", before);
    await place.sim.sleep(3 * roundMs);
    assert.deepEqual(place.write(account), ["north-1", "south-1"]);
  };
  await inScene(61, true, work, ["geoOlderRolesEnd"]);
});

test("older roles: a stamp that an account was moved away from, and that has it again, is told to remove it", async () => {
  await inScene(63, false, async (place) => {
    unwrap(await place.location.migrateAccount({ account, stamp: "south-1" }, call));
    for (let i = 0; i < 400 && roleOf(place, "north-1")?.role === "primary"; i++) await place.sim.sleep(50);
    const drained = roleOf(place, "north-1");
    assert.equal(drained?.peer, "south-1");
    await place.idle(account);
    assert.equal(roleOf(place, "north-1")?.role, "removed");
    place.state("north-1").accounts.set(account, ["key"]);
    takeBack(place, "north-1", { ...(drained as AccountRole), role: "primary" });
    await place.sim.sleep(roundMs);
    assert.equal(roleOf(place, "north-1")?.role, "removed");
    assert.equal(await troubleOf(place), "");
  });
});

test("older roles: an account that a stamp made by itself, and whose name another stamp has, is left alone", async () => {
  await inScene(64, true, async (place) => {
    await failOver(place);
    await place.begin("east-1");
    place.state("east-1").accounts.set(account, ["key"]);
    await place.sim.sleep(roundMs);
    assert.deepEqual([roleOf(place, "east-1")?.role, place.state("east-1").obeyed], ["primary", []]);
  });
});

test("older roles: a primary, and a copy, whose row was put back are told to people with what to do, and neither is commanded", async () => {
  await inScene(65, true, async (place) => {
    const [primary, copy] = [roleOf(place, "north-1"), roleOf(place, "south-1")];
    await failOver(place);
    const count = () => [...place.stamps.values()].reduce((sum, { obeyed }) => sum + obeyed.length, 0);
    const commands = count();
    takeBack(place, "south-1", copy);
    await place.sim.sleep(roundMs);
    assert.match(await troubleOf(place), /south-1 is secondary since operation 1 .*geo failover acct --forced --accept-loss/);
    // Both are as before the failover: one primary.
    takeBack(place, "north-1", primary);
    await place.sim.sleep(roundMs);
    assert.deepEqual([count(), place.write(account)], [commands, ["north-1"]]);
    takeBack(place, "south-1", { ...(copy as AccountRole), role: "primary", epoch: 2 });
    takeBack(place, "north-1", undefined);
    place.state("north-1").accounts.delete(account);
    await place.sim.sleep(roundMs);
    assert.match(await troubleOf(place), /north-1 has nothing of account acct.*geo unprotect acct/);
    const later: AccountRole = { role: "primary", epoch: 9, obeyed: { operation: 9, phase: 3 }, peer: "south-1" };
    takeBack(place, "north-1", later);
    place.state("north-1").accounts.set(account, ["key"]);
    await place.sim.sleep(roundMs);
    assert.match(await troubleOf(place), /north-1 obeyed operation 9 .*location service knows 2: its own store was put back/);
    assert.equal(count(), commands);
  });
});
