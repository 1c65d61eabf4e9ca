import assert from "node:assert/strict";
import { test } from "node:test";
import { outvotedBy } from "./outvoted.ts";

const [minute, hour] = [60_000, 3_600_000];
const apart = 15 * minute;

test("a host is outvoted if most hosts agree with one another, and not with it", () => {
  assert.equal(outvotedBy([hour, hour + 200], apart), hour + 200);
  assert.equal(outvotedBy([-hour, -hour + 200], apart), -hour + 200);
  assert.equal(outvotedBy([hour, hour, 0, hour], apart), hour);
});

test("a host is not outvoted by half of the hosts, by hosts that did not answer, or within the window", () => {
  assert.equal(outvotedBy([], apart), undefined);
  assert.equal(outvotedBy([hour], apart), undefined, "one against one");
  assert.equal(outvotedBy([hour, undefined], apart), undefined, "the third one is not known");
  assert.equal(outvotedBy([hour, 0], apart), undefined);
  assert.equal(outvotedBy([hour, hour, 0], apart), undefined, "two against two");
  assert.equal(outvotedBy([14 * minute, 14 * minute], apart), undefined, "its answers still count");
});

test("however the clocks are, one host at least is not outvoted", () => {
  const clocks = [0, hour, 2 * hour, 14 * minute, 28 * minute];
  for (let pattern = 0; pattern < clocks.length ** 4; pattern++) {
    const hosts = [0, 1, 2, 3].map((at) => clocks[Math.floor(pattern / clocks.length ** at) % clocks.length] as number);
    const out = hosts.filter((own, at) => {
      const others = hosts.filter((_, each) => each !== at).map((each) => each - own);
      return outvotedBy(others, apart) !== undefined;
    });
    assert.ok(out.length < hosts.length, hosts.join());
  }
});
