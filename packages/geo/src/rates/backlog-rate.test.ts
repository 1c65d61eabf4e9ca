/** Rate at which a backlog becomes smaller: over the last minute, of commits and bytes, and never below nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BacklogRate } from "./backlog-rate.ts";

test("backlog rate: a copy that was away catches up, at the rate of the last minute, while clients write on", () => {
  const rate = new BacklogRate();
  assert.deepEqual(rate.perSecond, { commits: 0, bytes: 0 });
  rate.noted({ commits: 1_000, bytes: 50_000 }, 0);
  assert.deepEqual(rate.perSecond, { commits: 0, bytes: 0 }, "one sample tells no rate");
  // The link is cut: the backlog grows for two hours.
  for (let minute = 1; minute <= 120; minute++)
    rate.noted({ commits: 1_000 + 600 * minute, bytes: 50_000 + 30_000 * minute }, minute * 60_000);
  assert.deepEqual(rate.perSecond, { commits: 0, bytes: 0 }, "it does not catch up");
  // It is whole again: 100 commits in a second more than clients write.
  let [commits, bytes] = [73_000, 3_650_000];
  for (let s = 10; s <= 120; s += 10) {
    commits -= 1_000;
    bytes -= 40_000;
    rate.noted({ commits, bytes }, 7_200_000 + s * 1_000);
  }
  assert.deepEqual(rate.perSecond, { commits: 100, bytes: 4_000 });
});

test("backlog rate: two samples at one moment tell no rate", () => {
  const rate = new BacklogRate();
  rate.noted({ commits: 9, bytes: 9 }, 5);
  rate.noted({ commits: 1, bytes: 1 }, 5);
  assert.deepEqual(rate.perSecond, { commits: 0, bytes: 0 });
});

test("backlog rate: nothing is told over a gap, as when the primary was away; it begins anew behind the gap", () => {
  const rate = new BacklogRate();
  rate.noted({ commits: 90_000, bytes: 900_000 }, 0);
  rate.noted({ commits: 89_000, bytes: 890_000 }, 10_000);
  assert.deepEqual(rate.perSecond, { commits: 100, bytes: 1_000 });
  rate.noted({ commits: 10_000, bytes: 100_000 }, 3_600_000);
  assert.deepEqual(rate.perSecond, { commits: 0, bytes: 0 }, "one sample tells no rate");
  rate.noted({ commits: 9_500, bytes: 95_000 }, 3_610_000);
  assert.deepEqual(rate.perSecond, { commits: 50, bytes: 500 });
});
