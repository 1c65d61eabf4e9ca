/** Copies at stamps whose front-ends the location does not know: no other stamp can ship to them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { StampState } from "@stamp/wire";
import { call, said, TwoStamps } from "../testing/two-stamps.ts";

const account = "acme";
const planned = { account, forced: false, acceptLoss: false, stamp: "" };

test("operations: a planned failover from a stamp whose front-ends nobody has named is refused; a forced one goes on, and says what is missing", async () => {
  const place = new TwoStamps({ seed: 29 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1");
    const { location } = place;
    unwrap(await location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.idle(account);
    await place.protectedBy(account);
    const add = (doors: string[]) => location.addStamp({ name: "north-1", location: "north", lockService: "north-1:1", doors }, call);
    unwrap(await add([]));
    const missing = /the location knows no front-ends of stamp north-1, .*: add it again with --doors/;
    assert.match(said(await location.failOverAccount({ ...planned, anyway: true }, call)), missing);
    const held = await place.account(account);
    assert.deepEqual([held.stamp, held.kind, held.trouble], ["north-1", "", ""]);
    assert.deepEqual(place.write(account), ["north-1"], "it takes writes");

    const begun = unwrap(await location.failOverAccount({ ...planned, forced: true, acceptLoss: true }, call));
    assert.match(begun.trouble, missing);
    const over = await place.idle(account);
    assert.deepEqual([over.stamp, over.secondary], ["south-1", "north-1"]);
    assert.match(over.trouble, missing);
    unwrap(await add(["north-1:2"]));
    assert.equal((await place.account(account)).trouble, "");
    place.end();
  });
});

test("operations: a copy goes to the emptiest stamp whose front-ends are known, and one without them is no target of a move", async () => {
  const place = new TwoStamps({ seed: 30 });
  await place.sim.run(async () => {
    await place.begin("north-1", "south-1", "south-2");
    const { location } = place;
    place.state("south-1").usedBytes = 10;
    place.state("south-2").usedBytes = 500;
    unwrap(await location.addStamp({ name: "south-1", location: "south", lockService: "south-1:1", doors: [] }, call));
    await place.sim.sleep(15_000);
    unwrap(await location.createAccount({ account, location: "north", secondLocation: "south" }, call));
    await place.idle(account);
    assert.equal((await place.account(account)).secondary, "south-2");
    unwrap(await location.createAccount({ account: "later", location: "north" }, call));
    unwrap(await location.protectAccount({ account: "later", stamp: "", location: "south" }, call));
    await place.idle("later");
    assert.equal((await place.account("later")).secondary, "south-2");
    // An account alone has nothing shipped to it.
    unwrap(await location.createAccount({ account: "alone", location: "south" }, call));
    assert.equal((await place.account("alone")).stamp, "south-1");

    const state = (name: string, to: StampState) => location.setStampState({ name, state: to }, call);
    unwrap(await state("south-1", StampState.CLOSED));
    unwrap(await location.createAccount({ account: "moving", location: "south" }, call));
    assert.equal((await place.account("moving")).stamp, "south-2");
    place.state("south-2").shipping = (name) => ({ account: name, epoch: 1n, nowMs: 1n, seedBytes: 10n });
    unwrap(await state("south-1", StampState.OPEN));
    unwrap(await state("south-2", StampState.DRAINING));
    const moves = async () => unwrap(await location.proposeMoves({}, call)).moves.map(({ account: name, to }) => `${name} to ${to}`);
    assert.deepEqual(await moves(), []);
    unwrap(await location.addStamp({ name: "south-1", location: "south", lockService: "south-1:1", doors: ["south-1:2"] }, call));
    assert.deepEqual(await moves(), ["moving to south-1"]);
    place.end();
  });
});
