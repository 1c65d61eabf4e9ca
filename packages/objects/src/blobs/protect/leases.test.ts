import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout, utf8 } from "@stamp/base";
import type { OperationValue } from "../../operation.ts";
import { TestTable } from "../../testing/table.ts";
import { noHeaders as headers } from "../state/head-row.ts";
import { type Lease, type LeaseAction, LeaseTimers, leaseStateOf } from "./leases.ts";

/** The outcome tables of "Lease Blob" and "Lease Container": lease state × action, and lease state × use. A has the lease. */
const [A, B, C] = ["a", "b", "c"].map((digit) => `${digit.repeat(8)}-1111-2222-3333-444444444444`) as [string, string, string];
const states = ["available", "leased", "breaking", "broken", "expired"] as const;
type State = (typeof states)[number];
type Row = Readonly<Record<State, string>>;

const name = { account: "a", container: "c", containerIncarnation: 1, blob: "b" };
const container = { account: "a", container: "c" };
const upload = { name, conditions: {}, headers, metadata: {}, body: { inline: utf8("x"), places: [] } };

class Leased {
  readonly table: TestTable;
  readonly #of: "blob" | "container";

  constructor(of: "blob" | "container", table = new TestTable()) {
    this.#of = of;
    this.table = table;
    table.outcome("createContainer", { ...container, metadata: {}, publicAccess: "" });
    table.outcome("putBlob", upload);
  }

  act(action: LeaseAction, leaseId: string, options: Partial<OperationValue<"leaseBlob">> = {}): string {
    const conditions = leaseId === "" ? {} : { leaseId };
    const value = { conditions, action, proposedLeaseId: "", durationSeconds: 15, ...options };
    const kind = this.#of === "blob" ? "leaseBlob" : "leaseContainer";
    const result = this.table.run(
      this.#of === "blob"
        ? { case: "leaseBlob", value: { name, ...value } }
        : { case: "leaseContainer", value: { ...container, ...value } },
    );
    assert.ok(result.case === "leased" || result.case === "error", kind);
    return result.case === "error" ? result.value.code : `${result.value.leftSeconds}`;
  }

  /** The state as users see it, and who has the lease. */
  get state(): string {
    const result = this.table.run(
      this.#of === "blob"
        ? { case: "getBlob", value: { name, conditions: {}, withoutContent: true } }
        : { case: "getContainer", value: { ...container, conditions: {} } },
    );
    assert.ok(result.case === "blob" || result.case === "container");
    const { state, status, duration } = result.value.lease;
    assert.equal(status, state === "leased" || state === "breaking" ? "locked" : "unlocked");
    assert.equal(duration, state === "leased" ? "fixed" : "");
    return state;
  }

  bring(state: State): void {
    if (state === "available") return;
    this.act("acquire", "", { proposedLeaseId: A, durationSeconds: 30 });
    if (state === "breaking") this.act("break", "", { breakPeriodSeconds: 10 });
    if (state === "broken") this.act("break", "", { breakPeriodSeconds: 0 });
    if (state === "expired") this.table.monotonicMs += 30_000;
    assert.equal(this.state, state);
  }
}

const present = "LeaseAlreadyPresent";
const mismatch = "LeaseIdMismatchWithLeaseOperation";
const none = "LeaseNotPresentWithLeaseOperation";
const notRenewed = "LeaseIsBrokenAndCannotBeRenewed";

/** A refusal, or the state after it. */
const actions: readonly (readonly [string, (leased: Leased) => string, Row])[] = [
  [
    "acquire, no proposed id",
    (leased) => leased.act("acquire", "", { proposedLeaseId: C }),
    { available: "leased", leased: present, breaking: present, broken: "leased", expired: "leased" },
  ],
  [
    "acquire (A)",
    (leased) => leased.act("acquire", "", { proposedLeaseId: A }),
    { available: "leased", leased: "leased", breaking: "LeaseIsBreakingAndCannotBeAcquired", broken: "leased", expired: "leased" },
  ],
  [
    "acquire (B)",
    (leased) => leased.act("acquire", "", { proposedLeaseId: B }),
    { available: "leased", leased: present, breaking: present, broken: "leased", expired: "leased" },
  ],
  [
    "break, period 0",
    (leased) => leased.act("break", "", { breakPeriodSeconds: 0 }),
    { available: none, leased: "broken", breaking: "broken", broken: "broken", expired: "broken" },
  ],
  [
    "break, period > 0",
    (leased) => leased.act("break", "", { breakPeriodSeconds: 5 }),
    { available: none, leased: "breaking", breaking: "breaking", broken: "broken", expired: "broken" },
  ],
  [
    "break, no period",
    (leased) => leased.act("break", ""),
    { available: none, leased: "breaking", breaking: "breaking", broken: "broken", expired: "broken" },
  ],
  [
    "change (A) to (B)",
    (leased) => leased.act("change", A, { proposedLeaseId: B }),
    { available: none, leased: "leased", breaking: "LeaseIsBreakingAndCannotBeChanged", broken: none, expired: none },
  ],
  [
    "change (B) to (A)",
    (leased) => leased.act("change", B, { proposedLeaseId: A }),
    { available: none, leased: "leased", breaking: mismatch, broken: none, expired: none },
  ],
  [
    "change (B) to (C)",
    (leased) => leased.act("change", B, { proposedLeaseId: C }),
    { available: none, leased: mismatch, breaking: mismatch, broken: none, expired: none },
  ],
  [
    "renew (A)",
    (leased) => leased.act("renew", A),
    { available: mismatch, leased: "leased", breaking: notRenewed, broken: notRenewed, expired: "leased" },
  ],
  [
    "renew (B)",
    (leased) => leased.act("renew", B),
    { available: mismatch, leased: mismatch, breaking: mismatch, broken: mismatch, expired: mismatch },
  ],
  [
    "release (A)",
    (leased) => leased.act("release", A),
    { available: mismatch, leased: "available", breaking: "available", broken: "available", expired: "available" },
  ],
  [
    "release (B)",
    (leased) => leased.act("release", B),
    { available: mismatch, leased: mismatch, breaking: mismatch, broken: mismatch, expired: mismatch },
  ],
];

for (const what of ["blob", "container"] as const) {
  for (const [title, act, row] of actions) {
    test(`leases of a ${what}: ${title}`, () => {
      for (const state of states) {
        const leased = new Leased(what);
        leased.bring(state);
        const outcome = act(leased);
        const refused = /^Lease/.test(outcome);
        assert.equal(refused ? outcome : leased.state, row[state], `${state}: ${outcome}`);
        if (refused) assert.equal(leased.state, state, `${title} in state ${state} changes nothing`);
      }
    });
  }
}

const missing = "LeaseIdMissing";
const absent = "LeaseNotPresentWithBlobOperation";
const other = "LeaseIdMismatchWithBlobOperation";
const kept: Row = { available: "available", leased: "leased", breaking: "breaking", broken: "broken", expired: "expired" };
const uses: readonly (readonly [string, "read" | "write", string | undefined, Row])[] = [
  ["write using (A)", "write", A, { available: absent, leased: "leased", breaking: "breaking", broken: "LeaseLost", expired: "LeaseLost" }],
  ["write using (B)", "write", B, { available: absent, leased: other, breaking: other, broken: absent, expired: absent }],
  [
    "write, no lease",
    "write",
    undefined,
    { available: "available", leased: missing, breaking: missing, broken: "available", expired: "available" },
  ],
  ["read using (A)", "read", A, { available: absent, leased: "leased", breaking: "breaking", broken: "LeaseLost", expired: "LeaseLost" }],
  ["read using (B)", "read", B, { available: absent, leased: other, breaking: other, broken: absent, expired: absent }],
  ["read, no lease", "read", undefined, kept],
];

const blobWrites = {
  putBlob: (conditions: object) => ({ ...upload, conditions }),
  putBlockList: (conditions: object) => ({ name, conditions, headers, metadata: {}, blocks: [] }),
  setBlobMetadata: (conditions: object) => ({ name, conditions, metadata: {} }),
  setBlobHeaders: (conditions: object) => ({ name, conditions, headers }),
} as const;

for (const [title, use, leaseId, row] of uses) {
  test(`leases of a blob: ${title}`, () => {
    const conditions = leaseId === undefined ? {} : { leaseId };
    const kinds =
      use === "write" ? (Object.keys(blobWrites) as (keyof typeof blobWrites)[]) : (["getBlob", "getBlockList", "snapshotBlob"] as const);
    for (const kind of kinds) {
      for (const state of states) {
        const leased = new Leased("blob");
        leased.bring(state);
        const value =
          kind in blobWrites
            ? blobWrites[kind as keyof typeof blobWrites](conditions)
            : { name, conditions, withoutContent: false, committed: true, uncommitted: true };
        const outcome = leased.table.outcome(kind, value as never);
        assert.equal(/^Lease/.test(outcome) ? outcome : leased.state, row[state], `${kind} in state ${state}: ${outcome}`);
      }
    }
  });
}

test("leases of a blob: deleting, tags, tier and uncommitted blocks need the lease too", () => {
  for (const [kind, value] of [
    ["deleteBlob", { name, conditions: {} }],
    ["setBlobTags", { name, conditions: {}, tags: {} }],
    ["setBlobTier", { name, conditions: {}, tier: "Cool" }],
    [
      "putBlock",
      { name, conditions: {}, blockId: utf8("1"), body: { inline: utf8(""), places: [{ extentId: 1, offsetBytes: 0, lengthBytes: 1 }] } },
    ],
  ] as const) {
    const leased = new Leased("blob");
    leased.bring("leased");
    assert.equal(leased.table.outcome(kind, value as never), missing, kind);
    assert.doesNotMatch(leased.table.outcome(kind, { ...value, conditions: { leaseId: A } } as never), /^Lease/, kind);
  }
});

test("leases of a container: its deletion needs the lease, changing it only the right one if one is named", () => {
  const names = (leaseId: string | undefined) => ({ ...container, conditions: leaseId === undefined ? {} : { leaseId } });
  for (const [state, leaseId, deletion, change] of [
    ["available", undefined, "done", "container"],
    ["available", A, "LeaseNotPresentWithContainerOperation", "LeaseNotPresentWithContainerOperation"],
    ["leased", undefined, "LeaseIdMissing", "container"],
    ["leased", A, "done", "container"],
    ["leased", B, "LeaseIdMismatchWithContainerOperation", "LeaseIdMismatchWithContainerOperation"],
    ["breaking", undefined, "LeaseIdMissing", "container"],
    ["broken", undefined, "done", "container"],
    ["expired", A, "LeaseLost", "LeaseLost"],
  ] as const) {
    const leased = new Leased("container");
    leased.bring(state);
    assert.equal(leased.table.outcome("setContainerMetadata", { ...names(leaseId), metadata: {} }), change, `change, ${state} ${leaseId}`);
    const again = new Leased("container");
    again.bring(state);
    assert.equal(again.table.outcome("deleteContainer", names(leaseId)), deletion, `delete, ${state} ${leaseId}`);
  }
});

test("leases: how long a break takes", () => {
  for (const [seconds, elapsedMs, period, left] of [
    [30, 0, undefined, "30"],
    [30, 12_500, undefined, "18"],
    [30, 0, 10, "10"],
    [30, 25_000, 10, "5"],
    [-1, 0, undefined, "0"],
    [-1, 0, 20, "20"],
    [30, 30_000, 10, "0"],
  ] as const) {
    const leased = new Leased("blob");
    leased.act("acquire", "", { proposedLeaseId: A, durationSeconds: seconds });
    leased.table.monotonicMs += elapsedMs;
    const outcome = leased.act("break", "", { breakPeriodSeconds: period });
    assert.equal(outcome, left, `${seconds} s, after ${elapsedMs} ms, period ${period}`);
  }
  const leased = new Leased("blob");
  leased.act("acquire", "", { proposedLeaseId: A, durationSeconds: 60 });
  leased.act("break", "", { breakPeriodSeconds: 10 });
  assert.equal(leased.act("break", "", { breakPeriodSeconds: 30 }), "10", "a break is never put off");
  assert.equal(leased.act("break", "", { breakPeriodSeconds: 4 }), "4");
  leased.table.monotonicMs += 4_000;
  assert.equal(leased.state, "broken");
});

test("leases: a renewal writes nothing and starts the time anew; a write ends one that ran out", () => {
  const leased = new Leased("blob");
  leased.act("acquire", "", { proposedLeaseId: A, durationSeconds: 15 });
  leased.table.monotonicMs += 14_000;
  const decision = leased.table.decide({
    case: "leaseBlob",
    value: { name, conditions: { leaseId: A }, action: "renew", proposedLeaseId: "", durationSeconds: 0 },
  });
  assert.equal(decision.writes.length, 0);
  leased.table.monotonicMs += 14_000;
  assert.equal(leased.state, "leased");
  leased.table.monotonicMs += 1_000;
  assert.equal(leased.state, "expired");
  leased.table.outcome("setBlobMetadata", { name, conditions: {}, metadata: {} });
  assert.equal(leased.act("renew", A), mismatch, "the blob was changed since");
});

test("leases: a server that loads the rows restarts them in full; without the rule there would be two holders", () => {
  for (const on of [true, false]) {
    const table = new TestTable();
    if (!on) table.rules = rulesWithout("leaseRestartedOnLoad");
    const leased = new Leased("blob", table);
    leased.act("acquire", "", { proposedLeaseId: A, durationSeconds: 15 });
    table.monotonicMs += 10_000;
    leased.act("renew", A);
    table.monotonicMs += 1_000;
    table.load();
    table.monotonicMs += 10_000;
    assert.equal(leased.act("acquire", "", { proposedLeaseId: B }), on ? present : "0", "A renewed 11 s ago, for 15 s");
    if (!on) continue;
    table.monotonicMs += 5_000;
    assert.equal(leased.state, "expired");
  }
});

test("leases: breaking goes on for its whole period after a load", () => {
  const leased = new Leased("blob");
  leased.act("acquire", "", { proposedLeaseId: A, durationSeconds: -1 });
  leased.act("break", "", { breakPeriodSeconds: 20 });
  leased.table.monotonicMs += 15_000;
  leased.table.load();
  leased.table.monotonicMs += 19_000;
  assert.equal(leased.state, "breaking");
  leased.table.monotonicMs += 1_000;
  assert.equal(leased.state, "broken");
});

test("leases: what no front-end sends is refused and changes nothing", () => {
  const table = new TestTable();
  table.outcome("putBlob", upload);
  const value = { name, conditions: {}, action: "acquire" as const, proposedLeaseId: A, durationSeconds: 15 };
  for (const bad of [
    { durationSeconds: 14 },
    { durationSeconds: 61 },
    { proposedLeaseId: "" },
    { proposedLeaseId: "x" },
    { action: "renew" as const },
  ]) {
    const decision = table.decide({ case: "leaseBlob", value: { ...value, ...bad } });
    assert.equal(decision.refusal?.reason, "badRequest", JSON.stringify(bad));
    assert.equal(decision.writes.length, 0);
  }
});

/** A lease whose row was just loaded. */
const loaded: Lease = { state: "leased", id: "1ee7ca5e-0000-4000-8000-000000000001", durationMs: 15_000, grant: 7 };

test("leases: when somebody else had the rows meanwhile, every lease counts anew, also one whose timer has run out here", () => {
  const timers = new LeaseTimers(allRules, 0);
  timers.set({ id: "a", grant: 7 }, 60_000, 0);
  timers.restart(100_000);
  assert.equal(timers.endsMs({ state: "leased", id: "a", durationMs: 60_000, grant: 7 }), 160_000);
  assert.equal(timers.endsMs({ state: "leased", id: "b", durationMs: 15_000, grant: 8 }), 115_000);
});

test("leases: two rows from two ranges of another stamp have one grant, and neither ends by the timer of the other", () => {
  const timers = new LeaseTimers(allRules, 1_000);
  const [long, short] = [
    { ...loaded, durationMs: 60_000 },
    { ...loaded, id: "1ee7ca5e-0000-4000-8000-000000000002" },
  ];
  timers.set(long, 70_000, 10_000);
  assert.equal(timers.endsMs(short), 16_000);
  timers.set(short, 26_000, 11_000);
  assert.deepEqual([timers.endsMs(long), timers.endsMs(short)], [70_000, 26_000]);
  // With one id they share a timer: it may end late, never early.
  const twin = { ...long, durationMs: 15_000 };
  timers.set(twin, 27_000, 12_000);
  assert.equal(timers.endsMs(long), 70_000);
  const other = new LeaseTimers(allRules, 1_000);
  other.set(twin, 17_000, 2_000);
  assert.equal(other.endsMs(long), 61_000, "a full term after the load, though only the other one was renewed");
});

test("leases: a server that loads the row restarts the lease in full, without the rule its holder loses it at once", () => {
  const at = (timers: LeaseTimers, nowMs: number): string => leaseStateOf(loaded, { nowMs, endsMs: (one) => timers.endsMs(one) });
  const timers = new LeaseTimers(allRules, 1_000);
  assert.equal(at(timers, 1_000), "leased", "its holder may have renewed it just before");
  assert.equal(at(timers, 15_999), "leased");
  assert.equal(at(timers, 16_000), "expired");
  timers.set(loaded, 30_000, 20_000);
  assert.equal(at(timers, 29_999), "leased", "a renewal counts from then on");
  assert.equal(at(new LeaseTimers(rulesWithout("leaseRestartedOnLoad"), 1_000), 1_000), "expired");
});
