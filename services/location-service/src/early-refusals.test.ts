/** Operations that are refused before they begin, or wait: drained primaries that would be far from their end, and queues that go to no other stamp. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { StampState } from "@stamp/wire";
import { notDrainable, type ToldShipping } from "./copies/drainable.ts";
import { roleAt } from "./testing/fake-stamp.ts";
import { call, said, TwoStamps } from "./testing/two-stamps.ts";

const account = "acme";
const planned = { account, forced: false, acceptLoss: false, stamp: "" };

test("drainable: a copy that keeps up may be drained, one that is seeded anew or far behind may not, and the text says what to wait for", () => {
  const told = (fields: Partial<ToldShipping>, anyway = false) => {
    const none = {
      lastSyncMs: undefined,
      pendingCommits: undefined,
      nowMs: 100_000n,
      trouble: "",
      caughtUpCommitsPerSecond: 0,
      ranges: [],
    };
    return notDrainable({ ...none, ...fields } as ToldShipping, 60_000, anyway);
  };
  assert.equal(told({ pendingCommits: 0n }), undefined);
  assert.equal(told({ pendingCommits: 9_000n, lastSyncMs: 99_000n }), undefined, "one second behind");
  assert.equal(told({ pendingCommits: 9_000n, lastSyncMs: 10_000n, caughtUpCommitsPerSecond: 1_000 }), undefined, "9 s are left");
  assert.match(
    told({ ranges: [{ rangeId: "blob-1", state: "seeding", pendingCommits: 0n }] }) ?? "",
    /range blob-1 of the copy is seeded anew/,
  );
  assert.match(
    told({ pendingCommits: 90_000n, lastSyncMs: 10_000n, caughtUpCommitsPerSecond: 1_000 }) ?? "",
    /lacks 90000 commits, and would have them in 90 s: wait until they are fewer; writes are refused for 60 s at most/,
  );
  // With writes refused the copy would have everything, though it does not catch up while clients write.
  const range = (rangeId: string, pendingCommits: bigint, shippedCommits: number) =>
    ({ rangeId, state: "shipping", pendingCommits, rates: { shippedCommits } }) as ToldShipping["ranges"][number];
  const busy = { pendingCommits: 9_000n, lastSyncMs: 10_000n, caughtUpCommitsPerSecond: 0 };
  assert.equal(told({ ...busy, ranges: [range("1", 9_000n, 200), range("2", 0n, 0)] }), undefined, "45 s are left");
  assert.match(
    told({ ...busy, ranges: [range("1", 8_990n, 200), range("2", 10n, 0.1)] }) ?? "",
    /9000 commits, and would have them in 100 s/,
  );
  assert.match(told({ ...busy, ranges: [range("1", 9_000n, 0)] }) ?? "", /do not become fewer/);
  assert.match(told({ ...busy, ranges: [{ ...range("1", 9_000n, 0), rates: undefined }] }) ?? "", /do not become fewer/);
  assert.match(
    told({ pendingCommits: 5n, lastSyncMs: 10_000n, trouble: "no connection" }) ?? "",
    /they do not become fewer \(no connection\)/,
  );
  assert.match(told({ pendingCommits: 5n, trouble: "no connection" }) ?? "", /do not become fewer/);
  const moved = { trouble: "range 7: its owner does not say how far it is" };
  for (const anyway of [false, true])
    assert.match(
      told(moved, anyway) ?? "",
      /does not say of every range how much it has not shipped yet \(range 7: .*\): wait until it does/,
    );
  assert.equal(told({ pendingCommits: 5n, lastSyncMs: 10_000n }, true), undefined);
  assert.match(
    told({ pendingCommits: 5n, ranges: [{ rangeId: "blob-1", state: "seeding", pendingCommits: 0n }] }, true) ?? "",
    /seeded anew/,
  );
});

test("operations: while a range of the primary does not say how far it is, nothing is drained", async () => {
  const place = new TwoStamps({ seed: 24 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    unwrap(await location.protectAccount({ account, stamp: to, location: "" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    const state = place.state(from);
    const { shipping } = state;
    const trouble = "range 7: its owner does not say how far it is";
    state.shipping = () => ({ account, epoch: 1n, complete: true, trouble, nowMs: 90_000n });
    assert.match(said(await location.failOverAccount(planned, call)), /notReady: .*does not say of every range.*\(range 7: /);
    assert.equal((await place.account(account)).kind, "", "nothing was recorded");
    state.shipping = shipping;
    unwrap(await location.unprotectAccount({ account }, call));
    await place.idle(account);
    state.shipping = () => ({ account, epoch: 1n, complete: true, trouble, nowMs: 90_000n });
    unwrap(await location.migrateAccount({ account, stamp: to, anyway: true }, call));
    for (let waitedMs = 0; !/range 7/.test((await place.account(account)).trouble); waitedMs += 500) {
      assert.ok(waitedMs < 60_000, "it says why it waits");
      await place.sim.sleep(500);
    }
    assert.deepEqual([(await place.account(account)).step, place.write(account)], ["seeding", [from]]);
    state.shipping = shipping;
    assert.equal((await place.idle(account)).stamp, to);
    place.end();
  });
});

test("operations: the migration of an account whose backlog never ends goes on with --anyway; a drain that takes too long keeps the copy", async () => {
  const place = new TwoStamps({ seed: 25 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    const state = place.state(from);
    const { shipping } = state;
    const step = async () => (await place.account(account)).step;
    const untilStep = async (wanted: string, limitMs: number) => {
      for (let waitedMs = 0; (await step()) !== wanted; waitedMs += 250) {
        assert.ok(waitedMs < limitMs, `${wanted}: ${await step()} ${(await place.account(account)).trouble}`);
        await place.sim.sleep(250);
      }
    };
    // Clients write as fast as the primary ships.
    state.shipping = () => ({ account, epoch: 1n, complete: true, pendingCommits: 5n, lastSyncMs: 1_000n, nowMs: 90_000n });
    const begun = unwrap(await location.migrateAccount({ account, stamp: to }, call));
    await place.sim.sleep(90_000);
    assert.equal(await step(), "seeding", "it would wait for ever");
    const again = unwrap(await location.migrateAccount({ account, stamp: to, anyway: true }, call));
    assert.equal(again.operation, begun.operation, "the same migration goes on");
    await untilStep("draining", 60_000);
    await place.sim.sleep(2_000);
    assert.deepEqual(place.write(account), [], "drained");
    await untilStep("seeding", 40_000);
    const back = await place.account(account);
    assert.deepEqual([back.kind, back.givenUp, back.operation > begun.operation], ["migrate", false, true]);
    assert.equal(roleAt(place.state(to), account)?.role, "secondary", "the copy is kept");
    await place.sim.sleep(10_000);
    assert.deepEqual(place.write(account), [from], "its clients write");
    assert.match((await place.account(account)).trouble, /drained for 20 s and had not shipped everything: it is drained again in \d+ s/);
    state.shipping = shipping;
    assert.equal((await place.idle(account, 400_000)).stamp, to);
    place.judge(account, to, false, "migrated");
    place.end();
  });
});

test("operations: an account whose stamp does not tell its queues is not moved, and is not proposed; no answer is waited for", async () => {
  const place = new TwoStamps({ seed: 26 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    const state = place.state(from);
    state.tellsQueues = false;
    const { shipping } = state;
    state.shipping = (name) => ({ ...(shipping?.(name) ?? { account: name, epoch: 0n }), seedBytes: 7n, nowMs: 1n });
    const { clock } = place.sim.world("tester");
    const sinceMs = clock.monotonicMs();
    const refusal = said(await location.migrateAccount({ account, stamp: to }, call));
    assert.match(refusal, /newerFormat: stamp north-\d runs a release that does not tell an account's queues: upgrade it first/);
    assert.ok(clock.monotonicMs() - sinceMs < 1_000, "in simulated time: the first answer counts");
    unwrap(await location.setStampState({ name: from, state: StampState.DRAINING }, call));
    const { moves, staying } = unwrap(await location.proposeMoves({}, call));
    assert.deepEqual(moves, []);
    assert.match(staying.join(), /acme: stamp north-\d runs a release that does not tell an account's queues/);
    state.tellsQueues = true;
    assert.equal(unwrap(await location.proposeMoves({}, call)).moves.length, 1);
    place.end();
  });
});

test("operations: a planned failover is refused while its copy is far behind or seeded anew, and is begun with --anyway", async () => {
  const place = new TwoStamps({ seed: 21 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    unwrap(await location.protectAccount({ account, stamp: "south-1", location: "" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    const state = place.state("north-1");
    const { shipping } = state;
    const range = { rangeId: "entity-1", state: "seeding" };
    state.shipping = () => ({ account, epoch: 1n, complete: true, pendingCommits: 3n, ranges: [range] });
    assert.match(
      said(await location.failOverAccount(planned, call)),
      /notReady: planned failover of account acme: range entity-1 .* is seeded anew.* Or begin with --anyway/,
    );
    state.shipping = () => ({ account, epoch: 1n, complete: true, pendingCommits: 5n, lastSyncMs: 1_000n, nowMs: 90_000n });
    assert.match(said(await location.failOverAccount(planned, call)), /lacks 5 commits, and they do not become fewer/);
    assert.equal((await place.account(account)).kind, "", "nothing was recorded");
    unwrap(await location.failOverAccount({ ...planned, anyway: true }, call));
    state.shipping = shipping;
    assert.equal((await place.idle(account)).stamp, "south-1");
    place.end();
  });
});

test("operations: a migration drains its primary only when the copy is near the end, and says why it waits", async () => {
  const place = new TwoStamps({ seed: 22 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    const state = place.state(from);
    const { shipping } = state;
    state.shipping = () => ({ account, epoch: 1n, complete: true, pendingCommits: 5n, lastSyncMs: 1_000n, nowMs: 90_000n });
    unwrap(await location.migrateAccount({ account, stamp: to }, call));
    for (let waitedMs = 0; (await place.account(account)).trouble === ""; waitedMs += 500) {
      assert.ok(waitedMs < 60_000, "it says why it waits");
      await place.sim.sleep(500);
    }
    const waiting = await place.account(account);
    assert.equal(waiting.step, "seeding");
    assert.match(waiting.trouble, /lacks 5 commits/);
    assert.deepEqual(place.write(account), [from], "its clients write");
    state.shipping = shipping;
    assert.equal((await place.idle(account)).stamp, to);
    place.judge(account, to, false, "migrated");
    place.end();
  });
});

test("operations: an account with queues moves only if they are given up; those at the stamp of a copy stay unless they are given up", async () => {
  const place = new TwoStamps({ seed: 23 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    place.state(from).queues = ["jobs", "mail"];
    assert.match(
      said(await location.migrateAccount({ account, stamp: to }, call)),
      /conflict: account acme has queues \(jobs, mail\): move them with --with-queues, or give them up with --drop-queues/,
    );
    unwrap(await location.migrateAccount({ account, stamp: to, dropQueues: true }, call));
    await place.idle(account);
    const dropped = (name: string) => roleAt(place.state(name), account)?.dropsQueues;
    assert.equal(dropped(from), true, "they were given up");
    unwrap(await location.protectAccount({ account, stamp: from, location: "" }, call));
    await place.idle(account);
    unwrap(await location.unprotectAccount({ account }, call));
    await place.idle(account);
    assert.deepEqual([roleAt(place.state(from), account)?.role, dropped(from)], ["removed", undefined]);
    place.state(from).removals = [{ account, rows: 7n, bytesLeft: 4_096n, rangesLeft: 2 }];
    await place.sim.sleep(25_000);
    const { removals } = await place.account(account);
    assert.deepEqual(
      removals.map(({ stamp, rows, bytesLeft, rangesLeft }) => [stamp, rows, bytesLeft, rangesLeft]),
      [[from, 7n, 4_096n, 2]],
    );
    place.end();
  });
});

test("operations: the target of a migration that is taken back keeps its queues, and an account whose queues are not told is not moved", async () => {
  const place = new TwoStamps({ seed: 24 });
  await place.sim.run(async () => {
    await place.begin("north-1", "north-2");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const { stamp: from } = await place.account(account);
    const to = from === "north-1" ? "north-2" : "north-1";
    place.state(from).older = true;
    assert.match(said(await location.migrateAccount({ account, stamp: to }, call)), /newerFormat: stamp .* upgrade it first/);
    place.state(from).older = false;
    // An earlier copy was promoted for a time, and got queues.
    place.state(to).queues = ["jobs"];
    place.state(from).shipping = () => ({ account, epoch: 1n, complete: true, pendingCommits: 5n, lastSyncMs: 1_000n, nowMs: 90_000n });
    unwrap(await location.migrateAccount({ account, stamp: to, dropQueues: true }, call));
    for (let waitedMs = 0; (await place.account(account)).step !== "seeding"; waitedMs += 500) {
      assert.ok(waitedMs < 60_000, JSON.stringify((await place.account(account)).step));
      await place.sim.sleep(500);
    }
    unwrap(await location.giveUpOperation({ account }, call));
    assert.equal((await place.idle(account)).stamp, from);
    const role = roleAt(place.state(to), account);
    assert.deepEqual([role?.role, role?.dropsQueues], ["removed", undefined]);
    place.end();
  });
});

test("operations: queues are copied if asked for, by stamps that can, and replace no queues that the second stamp has of its own", async () => {
  const place = new TwoStamps({ seed: 25 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    north.level = 3;
    south.level = 2;
    const both = { account, location: "north", secondLocation: "south", withQueues: true };
    const low = /newerFormat: stamp south-1 has feature level 2, and copies of queues need level 3: upgrade it/;
    assert.match(said(await location.createAccount(both, call)), low);
    assert.match(said(await location.createAccount({ ...both, secondLocation: "" }, call)), /badRequest: account acme has no second stamp/);
    unwrap(await location.createAccount({ account, location: "north" }, call));
    const protect = { account, stamp: "south-1", location: "", withQueues: true };
    assert.match(said(await location.protectAccount(protect, call)), low);
    south.level = 3;
    south.queues = ["jobs"];
    const known = { role: "removed", epoch: 1, obeyed: { operation: 1, phase: 5 } } as const;
    south.roles.set(account, known);
    assert.match(
      said(await location.protectAccount(protect, call)),
      /conflict: stamp south-1 has queues of account acme from an earlier time \(jobs\), which a copy would replace: delete them first/,
    );
    assert.equal((await place.account(account)).queues, false, "nothing was recorded");
    // They are being deleted.
    south.roles.set(account, { ...known, dropsQueues: true });
    assert.equal(unwrap(await location.protectAccount(protect, call)).queues, true);
    await place.idle(account);
    await place.protectedBy(account);
    const queuesAt = () => [roleAt(north, account)?.queues, roleAt(south, account)?.queues];
    assert.deepEqual(queuesAt(), [true, true]);
    unwrap(await location.failOverAccount(planned, call));
    assert.deepEqual([(await place.idle(account)).queues, ...queuesAt()], [true, true, true]);
    unwrap(await location.unprotectAccount({ account }, call));
    assert.equal((await place.idle(account)).queues, false);
    assert.deepEqual([...queuesAt(), roleAt(north, account)?.dropsQueues], [undefined, undefined, true]);
    const migrate = { account, stamp: "north-1" };
    assert.match(said(await location.migrateAccount(migrate, call)), /conflict: account acme has queues \(jobs\)/);
    assert.match(
      said(await location.migrateAccount({ ...migrate, withQueues: true, dropQueues: true }, call)),
      /badRequest: the queues of/,
    );
    unwrap(await location.migrateAccount({ ...migrate, withQueues: true }, call));
    const moved = await place.idle(account);
    assert.deepEqual([moved.stamp, moved.queues, roleAt(south, account)?.dropsQueues], ["north-1", false, true]);
    place.end();
  });
});

test("operations: a migration that waits does not change its choice about queues, and each refusal says what to do", async () => {
  const place = new TwoStamps({ seed: 26 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    for (const name of ["north-1", "south-1"]) place.state(name).level = 3;
    unwrap(await location.createAccount({ account, location: "north" }, call));
    place.state("north-1").shipping = () => ({
      account,
      epoch: 1n,
      complete: false,
      pendingCommits: 5n,
      lastSyncMs: 1_000n,
      nowMs: 90_000n,
    });
    const migrate = { account, stamp: "south-1" };
    const waits = async (): Promise<void> => {
      for (let waitedMs = 0; (await place.account(account)).step !== "seeding"; waitedMs += 500) {
        assert.ok(waitedMs < 60_000, JSON.stringify((await place.account(account)).step));
        await place.sim.sleep(500);
      }
    };
    unwrap(await location.migrateAccount(migrate, call));
    await waits();
    place.state("north-1").queues = ["jobs"];
    const again = { ...migrate, anyway: true };
    assert.match(
      said(await location.migrateAccount({ ...again, withQueues: true }, call)),
      /conflict: .* begun without queues: take it back first/,
    );
    assert.match(
      said(await location.migrateAccount(again, call)),
      /conflict: account acme has queues \(jobs\): its migration under way leaves them behind: take it back/,
    );
    unwrap(await location.giveUpOperation({ account }, call));
    await place.idle(account);
    unwrap(await location.migrateAccount({ ...migrate, dropQueues: true }, call));
    await waits();
    assert.match(said(await location.migrateAccount({ ...again, withQueues: true }, call)), /begun with --drop-queues: take it back first/);
    unwrap(await location.migrateAccount(again, call));
    unwrap(await location.giveUpOperation({ account }, call));
    await place.idle(account);
    place.end();
  });
});

test("operations: while a stamp does not copy the queues that the record says are copied, nothing planned promotes the copy, and status says so", async () => {
  const place = new TwoStamps({ seed: 27 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    const [north, south] = [place.state("north-1"), place.state("south-1")];
    for (const state of [north, south]) state.level = 3;
    unwrap(await location.createAccount({ account, location: "north", secondLocation: "south", withQueues: true }, call));
    await place.idle(account);
    await place.protectedBy(account);
    assert.equal((await place.account(account)).queues, true);
    for (const [at, name] of [
      [north, "north-1"],
      [south, "south-1"],
    ] as const) {
      const role = roleAt(at, account);
      assert.ok(role);
      const { queues: _queues, ...older } = role;
      at.roles.set(account, older);
      const differs = new RegExp(
        `conflict: queues of account acme were to be copied, and stamp ${name} does not copy them.*geo unprotect acme`,
      );
      assert.match(said(await location.failOverAccount({ ...planned, anyway: true }, call)), differs);
      const told = await place.account(account);
      assert.deepEqual([told.queues, told.kind, told.trouble.includes(`stamp ${name} does not copy them`)], [false, "", true]);
      at.roles.set(account, role);
    }
    unwrap(await location.failOverAccount(planned, call));
    const moved = await place.idle(account);
    assert.deepEqual([moved.stamp, moved.queues, moved.trouble], ["south-1", true, ""]);
    place.end();
  });
});

test("operations: a copy at a stamp whose front-ends nobody has named is refused at once, with what to do, and nothing is recorded", async () => {
  const place = new TwoStamps({ seed: 28 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    const add = (doors: string[]) => location.addStamp({ name: "south-1", location: "south", lockService: "south-1:1", doors }, call);
    unwrap(await location.createAccount({ account, location: "north" }, call));
    unwrap(await add([]));
    const refusal =
      /notReady: the location knows no front-ends of stamp south-1, so that no other stamp can send it a copy: add it again with --doors/;
    assert.match(said(await location.protectAccount({ account, stamp: "south-1", location: "" }, call)), refusal);
    assert.match(said(await location.migrateAccount({ account, stamp: "south-1" }, call)), refusal);
    assert.match(said(await location.createAccount({ account: "other", location: "north", secondLocation: "south" }, call)), refusal);
    assert.equal((await location.getAccount({ account: "other" }, call)).ok, false);
    assert.equal((await place.account(account)).kind, "");
    unwrap(await add(["south-1:2"]));
    unwrap(await location.protectAccount({ account, stamp: "south-1", location: "" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    place.end();
  });
});
