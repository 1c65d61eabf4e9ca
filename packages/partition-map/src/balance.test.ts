import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BalancePolicy, type BalanceState, balancePlan, contradictions, type RangeFigures } from "./balance.ts";
import { firstRangeOf, type Range } from "./range.ts";

const policy: BalancePolicy = {
  splitBytes: 1_000,
  splitRequestsPerSecond: 500,
  mergeBytes: 100,
  mergeRequestsPerSecond: 10,
  moveRatio: 1.5,
  moveRequestsPerSecond: 100,
  moveProcessors: 0.5,
  moveBytes: 400,
  moveBytesRatio: 1.2,
  restMs: 60_000,
  rangesMax: 100,
};

type Given = readonly [id: string, server: string, load: number, bytes?: number, ageMs?: number];

/** Neighbours in one table, in this order. */
function stateOf(servers: readonly string[], given: readonly Given[]): BalanceState {
  const key = (i: number): Uint8Array => (i === 0 || i === given.length ? new Uint8Array(0) : Uint8Array.of(i));
  const ranges = given.map(
    ([rangeId, server], i): Range => ({
      ...firstRangeOf("Blob"),
      rangeId,
      server,
      low: key(i),
      high: key(i + 1),
      loaded: true,
      hasStreams: true,
    }),
  );
  const figures = given.map(
    ([rangeId, , requestsPerSecond, bytes = 500, ageMs = 100_000]): RangeFigures => ({
      rangeId,
      requestsPerSecond,
      throttledPerSecond: 0,
      pending: 0,
      latencyMs: 1,
      bytesInPerSecond: 0,
      bytesOutPerSecond: 0,
      bytes,
      ageMs,
    }),
  );
  const nothing = { resting: new Set<string>(), unmoved: new Set<string>(), processors: new Map<string, number>(), settled: new Map() };
  return { ranges, servers, figures: new Map(figures.map((one) => [one.rangeId, one])), ...nothing };
}
const text = (state: BalanceState): string[] =>
  balancePlan(state, policy).map((step) => `${step.kind} ${step.rangeId}${step.kind === "move" ? ` to ${step.to}` : ""}`);

test("balance: hot and large ranges are split, the worst first; young ones are left alone", () => {
  assert.deepEqual(
    text(
      stateOf(
        ["a"],
        [
          ["r1", "a", 600],
          ["r2", "a", 10],
          ["r3", "a", 0, 5_000],
          ["r4", "a", 9_000, 0, 1_000],
        ],
      ),
    ),
    ["split r3", "split r1"],
  );
});

test("balance: what was refused is load too; with as many ranges as there may be none is split", () => {
  const state = stateOf(["a"], [["r1", "a", 400]]);
  assert.deepEqual(text(state), []);
  const [figures] = [...state.figures.values()];
  const refusing = { ...state, figures: new Map([["r1", { ...(figures as RangeFigures), throttledPerSecond: 200 }]]) };
  assert.deepEqual(text(refusing), ["split r1"]);
  assert.deepEqual(balancePlan(refusing, { ...policy, rangesMax: 1 }), []);
});

test("balance: a policy that merges what it would split again is told", () => {
  assert.deepEqual(contradictions(policy), []);
  const wrong = contradictions({ ...policy, mergeBytes: policy.splitBytes, mergeRequestsPerSecond: policy.splitRequestsPerSecond + 1 });
  assert.deepEqual(
    wrong.map((why) => why.split(":")[0]),
    ["mergeBytes", "mergeRequestsPerSecond"],
  );
});

test("balance: the range that evens two servers out best is moved, and none that would only turn the difference round", () => {
  assert.deepEqual(
    text(
      stateOf(
        ["a", "b"],
        [
          ["r1", "a", 300],
          ["r2", "a", 160],
          ["r3", "a", 20],
          ["r4", "b", 40],
        ],
      ),
    ),
    ["move r2 to b"],
  );
  assert.deepEqual(
    text(
      stateOf(
        ["a", "b"],
        [
          ["r1", "a", 400],
          ["r4", "b", 10],
        ],
      ),
    ),
    [],
  );
  assert.deepEqual(
    text(
      stateOf(
        ["a", "b"],
        [
          ["r1", "a", 60],
          ["r2", "a", 60],
          ["r4", "b", 50],
        ],
      ),
    ),
    [],
    "not worth it",
  );
  const hotAmongCold: readonly Given[] = [
    ["r1", "a", 400],
    ["r2", "a", 10],
    ["r3", "b", 0],
  ];
  assert.deepEqual(text(stateOf(["a", "b"], hotAmongCold)), [], "one of 400 requests beside one of 10: b would have the 400 then");
  const alike: readonly Given[] = [
    ["r1", "a", 300],
    ["r2", "a", 200],
    ["r3", "b", 0],
  ];
  assert.deepEqual(text(stateOf(["a", "b"], alike)), ["move r2 to b"], "300 and 200 either way: the smaller one");
  assert.deepEqual(
    text(
      stateOf(
        ["a"],
        [
          ["r1", "a", 400],
          ["r2", "a", 400],
        ],
      ),
    ),
    [],
    "nowhere to move",
  );
});

test("balance: cold small neighbours are merged, each in one pair", () => {
  const cold = ["r1", "r2", "r3", "r4"].map((id): Given => [id, "a", 1, 30]);
  assert.deepEqual(text(stateOf(["a"], cold)), ["merge r1", "merge r3"]);
  assert.deepEqual(
    text(
      stateOf(
        ["a"],
        [
          ["r1", "a", 1, 30],
          ["r2", "a", 1, 90],
        ],
      ),
    ),
    [],
  );
});

test("balance: carried out again and again it comes to rest, by requests and rows together", () => {
  const servers = ["a", "b", "c"];
  const one = fc.record({ at: fc.constantFrom(...servers), load: fc.nat(450), bytes: fc.nat(900) });
  fc.assert(
    fc.property(fc.array(one, { minLength: 2, maxLength: 12 }), (ranges) => {
      let given = ranges.map(({ at, load, bytes }, i): Given => [`r${i}`, at, load, bytes]);
      for (let step = 0; ; step++) {
        const move = balancePlan(stateOf(servers, given), policy).find(({ kind }) => kind === "move");
        if (move?.kind !== "move") break;
        assert.ok(step < 60, "it does not come to rest");
        given = given.map((range): Given => (range[0] === move.rangeId ? [range[0], move.to, range[2], range[3] ?? 0] : range));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("balance: even in requests and CPU, uneven in rows: a range that has about half of the difference is moved", () => {
  const given: readonly Given[] = [
    ["r1", "a", 20, 900],
    ["r2", "a", 20, 500],
    ["r3", "a", 20, 450],
    ["r4", "b", 50, 800],
  ];
  assert.deepEqual(text(stateOf(["a", "b"], given)), ["move r2 to b"]);
  assert.match(balancePlan({ ...stateOf(["a", "b"], given) }, { ...policy, moveBytes: 1_000 })[0]?.why ?? "", /^a has 0 MiB of rows, b 0/);
  assert.deepEqual(balancePlan(stateOf(["a", "b"], given), { ...policy, moveBytes: 1_100 }), [], "the difference is too small");
  assert.deepEqual(balancePlan(stateOf(["a", "b"], given), { ...policy, moveBytesRatio: 3 }), [], "or the ratio");
});

test("balance: nothing is evened out in rows at the cost of requests; what was uneven in them anyway is no hindrance", () => {
  const hot: readonly Given[] = [
    ["r1", "a", 90, 500],
    ["r2", "a", 30, 400],
    ["r3", "b", 90, 0],
    ["r4", "b", 40, 0],
  ];
  assert.deepEqual(text(stateOf(["a", "b"], hot)), ["move r2 to b"], "r1 evens rows out better, but b would have 220 requests, a 30");
  const stuck: readonly Given[] = [
    ["r1", "a", 490, 500],
    ["r2", "a", 0, 450],
    ["r3", "b", 0, 0],
  ];
  assert.deepEqual(text(stateOf(["a", "b"], stuck)), ["move r2 to b"]);
});

test("balance: even in requests, uneven in CPU: a range that has about half of the difference is moved; where CPU is not known nothing is", () => {
  const even = stateOf(
    ["a", "b"],
    [
      ["r1", "a", 60],
      ["r2", "a", 30],
      ["r3", "b", 80],
    ],
  );
  assert.deepEqual(text(even), []);
  const uneven = {
    ...even,
    processors: new Map([
      ["a", 1.8],
      ["b", 0.2],
    ]),
  };
  assert.deepEqual(text(uneven), ["move r2 to b"]);
  assert.match(balancePlan(uneven, policy)[0]?.why ?? "", /1\.80 processors at work, b 0\.20/);
  assert.deepEqual(text({ ...uneven, processors: new Map([["a", 1.8]]) }), []);
  const slight = new Map([
    ["a", 0.5],
    ["b", 0.1],
  ]);
  assert.deepEqual(text({ ...uneven, processors: slight }), []);
  const one = {
    ...stateOf(
      ["a", "b"],
      [
        ["r1", "a", 90],
        ["r2", "a", 1],
        ["r3", "b", 1],
      ],
    ),
    processors: uneven.processors,
  };
  assert.deepEqual(text(one), [], "b would have the 1.80 then");
});

test("balance: a range of which a split or merge has just failed is not split or merged, but moved", () => {
  const given: readonly Given[] = [
    ["r1", "a", 700],
    ["r2", "a", 0, 10],
    ["r3", "a", 0, 10],
    ["r4", "a", 600],
  ];
  const state = stateOf(["a", "b"], given);
  assert.deepEqual(text(state), ["split r1", "split r4", "move r4 to b", "merge r2"]);
  assert.deepEqual(text({ ...state, resting: new Set(["r1", "r3"]) }), ["split r4", "move r4 to b"]);
  assert.ok(!text({ ...state, unmoved: new Set(["r4"]) }).includes("move r4 to b"));
});

test("balance: load is added up a few times for a plan, however many ranges would make it worse", () => {
  // Rows are uneven, and each move would make the requests uneven.
  const given = Array.from({ length: 1_000 }, (_, i): Given => [`r${i}`, i % 2 === 0 ? "a" : "b", 100, i % 2 === 0 ? 900 : 1]);
  const state = stateOf(["a", "b"], given);
  let looks = 0;
  const figures = new Proxy(state.figures, {
    get: (target, name) => {
      if (name === "get") looks++;
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const strict = { ...policy, moveRequestsPerSecond: 1, moveRatio: 1, mergeRequestsPerSecond: 0, splitRequestsPerSecond: 1e6 };
  assert.deepEqual(balancePlan({ ...state, figures }, strict), []);
  assert.ok(looks < 50 * given.length, `${looks} looks`);
});

test("balance: a server's load counts a range that it was just given by what the range had before", () => {
  const given: readonly Given[] = [
    ["r1", "a", 300],
    ["r2", "a", 200],
    ["r3", "b", 0, 500, 1_000],
    ["r4", "b", 20],
  ];
  const state = stateOf(["a", "b"], given);
  assert.deepEqual(text(state), ["move r2 to b"], "as far as its own figures say, b has nothing to do");
  const before = { requestsPerSecond: 400, throttledPerSecond: 10, bytes: 500 };
  assert.deepEqual(text({ ...state, settled: new Map([["r3", before]]) }), []);
  assert.deepEqual(text({ ...state, settled: new Map([["r4", before]]) }), ["move r2 to b"], "r4 has figures of its own");
});
