/**
 * Operations of the location service as dialogues with stamps: which commands each one sends, and what is refused with
 * which words.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { allRules, unwrap } from "@stamp/base";
import type { AccountRole, RoleCommand, RoleFacts } from "./account-role.ts";
import { acceptsShipment, planObey, reportComplete, seedingEnded, ships, takesWrites } from "./account-role.ts";
import type { GeoAccount, MigrationChoices, OperationStep } from "./operations.ts";
import {
  commandOf,
  operationState,
  planAnswer,
  planCreate,
  planDrainLate,
  planFailover,
  planForcedFailover,
  planGiveUp,
  planMigrate,
  planProtect,
  planSeeded,
  planUnprotect,
} from "./operations.ts";

const facts: RoleFacts = { copied: [{ range: "r", sequence: 7 }], acknowledged: [{ range: "r", sequence: 5 }] };
const refusal = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.reason}: ${outcome.failure.message}`);

/** Stamps that obey at once. */
class Stamps {
  readonly rows = new Map<string, AccountRole>();
  readonly said: string[] = [];

  obey(stamp: string, command: RoleCommand): Outcome<boolean> {
    const told = planObey(this.rows.get(stamp), command, facts, allRules);
    if (!told.ok) return told;
    this.rows.set(stamp, told.value.row);
    this.said.push(`${command.kind} ${command.operation} at ${stamp}`);
    return { ok: true, value: told.value.changed };
  }

  /** Runs the operation to its end, or to where it waits for seeding. Each command is sent twice. */
  run(begun: GeoAccount): GeoAccount {
    let account = begun;
    for (let steps = 0; steps < 20; steps++) {
      const told = commandOf(account);
      if (told === undefined) return account;
      assert.ok(unwrap(this.obey(told.stamp, told.command)), "a new command changes the row");
      assert.ok(!unwrap(this.obey(told.stamp, told.command)), "a repeated command changes nothing");
      this.said.pop();
      const row = this.rows.get(told.stamp) as AccountRole;
      if (told.command.kind === "demote") this.rows.set(told.stamp, reportComplete(row));
      const step = account.running?.step ?? "creating";
      account = unwrap(planAnswer(account, { operation: account.operation, step, pendingCommits: 0, point: row.promotedAt ?? [] }));
    }
    throw new Error("the operation does not end");
  }

  /** The primary seeds the other stamp to the end. */
  seed(account: GeoAccount, target: string): GeoAccount {
    const row = this.rows.get(target) as AccountRole;
    assert.ok(acceptsShipment(row, account.epoch, allRules).ok);
    this.rows.set(target, seedingEnded(row, row, allRules));
    return planSeeded(account, account.epoch, target);
  }

  /** Roles for people, and that exactly one stamp takes writes. */
  roles(): string {
    assert.equal([...this.rows.values()].filter(takesWrites).length, 1);
    return [...this.rows].map(([stamp, { role, epoch }]) => `${stamp} ${role} ${epoch}`).join(", ");
  }
}

test("operations: an account is created with a copy, fails over and back, moves to a third stamp", () => {
  const stamps = new Stamps();
  let account = stamps.run(unwrap(planCreate("acme", "a", "b")));
  assert.equal(operationState(account), "seeding");
  account = stamps.seed(account, "b");
  assert.equal(operationState(account), "protected");
  assert.equal(stamps.roles(), "a primary 1, b secondary 1");

  account = stamps.run(unwrap(planFailover(account)));
  assert.deepEqual([account.primary, account.secondary, account.epoch, operationState(account)], ["b", "a", 2, "seeding"]);
  account = stamps.seed(account, "a");
  assert.equal(stamps.roles(), "a secondary 2, b primary 2");

  account = stamps.run(unwrap(planForcedFailover(account, 1_000)));
  assert.equal(stamps.roles(), "a primary 3, b unseeded 3");
  account = stamps.run(unwrap(planUnprotect(stamps.seed(account, "b"))));
  assert.equal(operationState(account), "single");
  assert.equal(stamps.roles(), "a primary 3, b removed 3");
  assert.ok(!ships(stamps.rows.get("a") as AccountRole));

  account = stamps.run(unwrap(planMigrate(account, "c")));
  assert.equal(operationState(account), "migrating");
  account = stamps.run(stamps.seed(account, "c"));
  assert.deepEqual([account.primary, account.secondary, account.epoch, operationState(account)], ["c", undefined, 5, "single"]);
  assert.equal(stamps.roles(), "a removed 5, b removed 3, c primary 5");
  // A stamp that gave its copy away takes the account again.
  account = stamps.run(unwrap(planProtect(account, "a")));
  assert.equal(stamps.roles(), "a unseeded 5, b removed 3, c primary 5");
  assert.deepEqual(stamps.said, [
    "create 1 at a",
    "follow 1 at b",
    "pair 1 at a",
    "drain 2 at a",
    "promote 2 at b",
    "demote 2 at a",
    "promote 3 at a",
    "demote 3 at b",
    "unpair 4 at a",
    "remove 4 at b",
    "follow 5 at c",
    "pair 5 at a",
    "drain 5 at a",
    "promote 5 at c",
    "demote 5 at a",
    "unpair 5 at c",
    "remove 5 at a",
    "follow 6 at a",
    "pair 6 at c",
  ]);
});

test("operations: a failover and a migration are given up before the promotion, at any step, and not after it", () => {
  const protectedAccount = (stamps: Stamps): GeoAccount => stamps.seed(stamps.run(unwrap(planCreate("acme", "a", "b"))), "b");
  const stamps = new Stamps();
  let account = unwrap(planFailover(protectedAccount(stamps)));
  unwrap(stamps.obey("a", commandOf(account)?.command as RoleCommand));
  assert.deepEqual(unwrap(planAnswer(account, { operation: 2, step: "draining", pendingCommits: 3 })), account, "not all is shipped");
  account = stamps.run(unwrap(planGiveUp(account)));
  assert.equal(operationState(account), "protected");
  assert.equal(stamps.roles(), "a primary 1, b secondary 1");
  // The late drain of the operation that was given up stops nobody.
  assert.match(refusal(stamps.obey("a", { kind: "drain", operation: 2 })), /staleRoleEpoch: .*older than operation 2, phase 3/);

  for (const step of ["following", "pairing", "seeding", "draining"] as const) {
    const others = new Stamps();
    let moving = unwrap(planMigrate(others.run(unwrap(planCreate("acme", "a"))), "c"));
    while (moving.running?.step !== step) {
      const told = commandOf(moving);
      if (told === undefined) moving = others.seed(moving, "c");
      else {
        unwrap(others.obey(told.stamp, told.command));
        moving = unwrap(planAnswer(moving, { operation: 2, step: moving.running?.step ?? "following" }));
      }
    }
    const back = others.run(unwrap(planGiveUp(moving)));
    assert.deepEqual([back.primary, back.secondary, operationState(back)], ["a", undefined, "single"], step);
    assert.match(others.roles(), /^a primary 1, c removed \d$/, step);
    // A command of the migration that comes late brings no copy back.
    assert.match(refusal(others.obey("c", { kind: "follow", operation: 2, epoch: 1, peer: "a" })), /staleRoleEpoch/, step);
  }

  account = unwrap(planForcedFailover(account, undefined));
  assert.match(refusal(planGiveUp(account)), /conflict: operation 3 \(forced\) of account acme is at step promoting: it can only go on/);
});

test("operations: a migration that drains for too long keeps its copy and drains again under another number; a person may still give it up", () => {
  for (const end of ["promoted", "given up"] as const) {
    const stamps = new Stamps();
    let moving = unwrap(planMigrate(stamps.run(unwrap(planCreate("acme", "a"))), "c"));
    const step = (): void => {
      const told = commandOf(moving);
      if (told === undefined) moving = stamps.seed(moving, "c");
      else {
        unwrap(stamps.obey(told.stamp, told.command));
        moving = unwrap(planAnswer(moving, { operation: moving.operation, step: moving.running?.step ?? "following" }));
      }
    };
    while (moving.running?.step !== "draining") step();
    unwrap(stamps.obey("a", commandOf(moving)?.command as RoleCommand));
    moving = unwrap(planDrainLate(moving));
    assert.equal(moving.running?.givenUp, true, "a release that knows no second drain gives the migration up");
    assert.match(refusal(planMigrate(moving, "c", { anyway: true })), /is under way, at step undraining/);
    if (end === "given up") moving = unwrap(planGiveUp(moving));
    step();
    if (end === "given up") {
      assert.equal(moving.running?.step, "unpairing");
      moving = stamps.run(moving);
      assert.deepEqual([moving.primary, operationState(moving)], ["a", "single"]);
      assert.match(stamps.roles(), /^a primary 1, c removed/);
      continue;
    }
    assert.deepEqual([moving.running?.step, moving.running?.givenUp, moving.operation, moving.epoch], ["seeding", undefined, 3, 1]);
    assert.match(stamps.roles(), /^a primary 1, c secondary 1/, "the primary takes writes, the copy is kept");
    assert.match(refusal(planMigrate(moving, "b", { anyway: true })), /is under way/, "to another stamp");
    moving = unwrap(planMigrate(moving, "c", { anyway: true }));
    assert.deepEqual([moving.running?.anyway, moving.operation], [true, 3]);
    moving = stamps.run(stamps.seed(moving, "c"));
    assert.deepEqual([moving.primary, moving.epoch, operationState(moving)], ["c", 3, "single"]);
    assert.match(stamps.roles(), /^a removed 3, c primary 3/);
  }
});

test("operations: a new copy is given up before it is recorded, also that of a new account, and the account stays where it is", () => {
  for (const kind of ["protect", "create"] as const) {
    for (const step of ["following", "pairing"] as const) {
      const stamps = new Stamps();
      let account =
        kind === "create" ? unwrap(planCreate("acme", "a", "c")) : unwrap(planProtect(stamps.run(unwrap(planCreate("acme", "a"))), "c"));
      const { operation } = account;
      while (account.running?.step !== step) {
        const told = commandOf(account);
        assert.ok(told);
        unwrap(stamps.obey(told.stamp, told.command));
        account = unwrap(planAnswer(account, { operation, step: account.running?.step ?? "creating" }));
      }
      const back = stamps.run(unwrap(planGiveUp(account)));
      assert.deepEqual([back.primary, back.secondary, operationState(back)], ["a", undefined, "single"], `${kind} ${step}`);
      assert.match(stamps.roles(), /a primary 1/);
      assert.equal(stamps.rows.get("c")?.role, "removed", `${kind} ${step}`);
      assert.ok(!ships(stamps.rows.get("a") as AccountRole), `${kind} ${step}`);
      assert.match(refusal(stamps.obey("c", { kind: "follow", operation, epoch: 1, peer: "a" })), /staleRoleEpoch/);
    }
  }
  assert.match(refusal(planGiveUp(unwrap(planCreate("acme", "a", "c")))), /is at step creating: it can only go on/);
});

test("operations: a second operation, a copy that is not complete, a wrong stamp are refused with words", () => {
  const stamps = new Stamps();
  const created = stamps.run(unwrap(planCreate("acme", "a", "b")));
  assert.match(refusal(planFailover(created)), /notSeeded: the copy of account acme at stamp b is not complete/);
  assert.match(refusal(planForcedFailover(created, 5)), /notSeeded/);
  assert.match(refusal(stamps.obey("b", { kind: "promote", operation: 9, peer: "a" })), /notSeeded/);
  const single = stamps.run(unwrap(planUnprotect(created)));
  assert.match(refusal(planFailover(single)), /notSeeded: account acme has no secondary/);
  assert.match(refusal(planMigrate(single, "a")), /badRequest: stamp a is the primary of account acme already/);
  assert.match(refusal(planCreate("acme", "a", "a")), /badRequest: .*two different stamps/);
  const moving = unwrap(planMigrate(single, "c"));
  assert.match(refusal(planProtect(moving, "b")), /conflict: operation 3 \(migrate\) of account acme is under way, at step following/);
  assert.match(refusal(planForcedFailover(moving, 1)), /conflict: operation 3/);
  assert.match(refusal(planGiveUp(single)), /conflict: account acme has no operation under way/);
  assert.match(refusal(planProtect(planSeeded(created, 1, "b"), "c")), /conflict: account acme has a secondary, stamp b/);
  assert.match(refusal(planObey(undefined, { kind: "drain", operation: 1 }, facts, allRules)), /nothing of the account/);
  assert.match(refusal(stamps.obey("a", { kind: "remove", operation: 9 })), /conflict: .*this stamp is primary of the account/);
});

test("operations: what came late from another operation, step or role epoch changes nothing", () => {
  const stamps = new Stamps();
  const account = stamps.seed(stamps.run(unwrap(planCreate("acme", "a", "b"))), "b");
  const drains = unwrap(planFailover(account));
  assert.equal(unwrap(planAnswer(drains, { operation: 1, step: "draining", pendingCommits: 0 })), drains);
  assert.equal(unwrap(planAnswer(drains, { operation: 2, step: "promoting", point: [] })), drains);
  assert.equal(unwrap(planAnswer(account, { operation: 1, step: "pairing" })), account);
  const promotes = unwrap(planAnswer(drains, { operation: 2, step: "draining", pendingCommits: 0 }));
  assert.match(refusal(planAnswer(promotes, { operation: 2, step: "promoting" })), /badRequest/);
  const over = stamps.run(drains);
  assert.equal(planSeeded(over, 1, "a"), over, "the word of the old primary");
  assert.equal(planSeeded(over, 2, "b"), over, "the word about another stamp");
  // A promotion that is repeated answers with what it found, although the copy has grown since.
  const row = stamps.rows.get("b") as AccountRole;
  const again = unwrap(
    planObey(row, { kind: "promote", operation: 2, peer: "a" }, { ...facts, copied: [{ range: "r", sequence: 9 }] }, allRules),
  );
  assert.deepEqual(again.row.promotedAt, [{ range: "r", sequence: 7 }]);
});

test("operations: queues that are copied stay so over failovers, go with the copy, and are copied to the next stamp only if asked for", () => {
  const stamps = new Stamps();
  const queuesAt = (): string =>
    [...stamps.rows].map(([stamp, { queues, dropsQueues }]) => `${stamp} ${queues ? "copied" : dropsQueues ? "deleted" : "-"}`).join(", ");
  let account = stamps.run(unwrap(planCreate("acme", "a", "b", true)));
  account = stamps.seed(account, "b");
  assert.deepEqual([account.queues, queuesAt()], [true, "a copied, b copied"]);
  account = stamps.seed(stamps.run(unwrap(planFailover(account))), "a");
  account = stamps.seed(stamps.run(unwrap(planForcedFailover(account, undefined))), "b");
  assert.deepEqual([account.queues, queuesAt()], [true, "a copied, b copied"]);
  account = stamps.run(unwrap(planUnprotect(account)));
  assert.deepEqual([account.queues, queuesAt()], [undefined, "a -, b deleted"]);
  account = stamps.run(unwrap(planProtect(account, "b")));
  assert.deepEqual([account.queues, queuesAt()], [undefined, "a -, b -"]);
  account = stamps.run(unwrap(planUnprotect(account)));
  assert.equal(queuesAt(), "a -, b -", "a copy without queues leaves those of its stamp where they are");
  account = stamps.run(stamps.seed(stamps.run(unwrap(planMigrate(account, "c", { withQueues: true }))), "c"));
  assert.deepEqual([account.primary, account.queues, queuesAt()], ["c", undefined, "a deleted, b -, c -"]);
  const moving = stamps.run(unwrap(planMigrate(account, "b", { withQueues: true })));
  account = stamps.run(unwrap(planGiveUp(moving)));
  assert.deepEqual([account.primary, account.queues, queuesAt()], ["c", undefined, "a deleted, b deleted, c -"]);
  assert.match(refusal(planMigrate(account, "b", { withQueues: true, dropQueues: true })), /badRequest: .*either move or are deleted/);
  assert.match(refusal(planCreate("acme", "a", undefined, true)), /badRequest: .*no second stamp/);
});

test("operations: a migration that waits goes on with the choice about queues that began it; another one is refused, with what to do", () => {
  const stamps = new Stamps();
  const account = stamps.run(unwrap(planCreate("acme", "a")));
  const waiting = (how: MigrationChoices): GeoAccount => {
    const begun = unwrap(planMigrate(account, "b", how));
    return ["following", "pairing"].reduce((now, step) => unwrap(planAnswer(now, { operation: 2, step: step as OperationStep })), begun);
  };
  const again = (how: MigrationChoices, now: GeoAccount) => planMigrate(now, "b", { ...how, anyway: true });
  const [copied, given, left] = [waiting({ withQueues: true }), waiting({ dropQueues: true }), waiting({})];
  assert.equal(copied.running?.step, "seeding");
  assert.match(
    refusal(again({ withQueues: true }, given)),
    /conflict: operation 2 \(migrate\) .* begun with --drop-queues: take it back first/,
  );
  assert.match(
    refusal(again({ withQueues: true }, left)),
    /conflict: .* begun without queues: take it back first \(.\/stamp geo give-up acme\)/,
  );
  assert.match(refusal(again({ dropQueues: true }, copied)), /conflict: .* begun with --with-queues: take it back first/);
  assert.match(refusal(again({ dropQueues: true }, left)), /conflict: .* begun without queues/);
  for (const [how, now] of [
    [{ withQueues: true }, copied],
    [{ dropQueues: true }, given],
    [{}, copied],
    [{}, given],
    [{}, left],
  ] as const)
    assert.deepEqual(unwrap(again(how, now)), { ...now, running: { ...now.running, anyway: true } });
});

test("operations: a forced failover over an end of protection that the primary has obeyed makes a copy with queues of it", () => {
  const stamps = new Stamps();
  const account = stamps.seed(stamps.run(unwrap(planCreate("acme", "a", "b", true))), "b");
  const ending = unwrap(planUnprotect(account));
  const told = commandOf(ending);
  assert.deepEqual([told?.stamp, told?.command.kind], ["a", "unpair"]);
  unwrap(stamps.obey("a", told?.command as RoleCommand));
  assert.equal(stamps.rows.get("a")?.queues, undefined);
  const over = stamps.run(unwrap(planForcedFailover(ending, undefined)));
  assert.deepEqual([over.primary, over.queues, stamps.rows.get("a")?.queues, stamps.rows.get("b")?.queues], ["b", true, true, true]);
});

test("operations: what a promoted copy says about its queues counts, whatever the record said", () => {
  const account = planSeeded(new Stamps().run(unwrap(planCreate("acme", "a", "b", true))), 1, "b");
  const forced = unwrap(planForcedFailover(account, undefined));
  const answered = unwrap(planAnswer(forced, { operation: 2, step: "promoting", point: [], queues: false }));
  assert.equal(answered.queues, undefined);
  assert.ok(!("queues" in (commandOf(answered)?.command ?? {})));
});

test("roles: queues that a stamp has begun to delete are deleted by a later removal, too", () => {
  const removed: AccountRole = { role: "removed", epoch: 1, obeyed: { operation: 3, phase: 5 }, dropsQueues: true };
  const again = unwrap(planObey(removed, { kind: "remove", operation: 4 }, facts, allRules)).row;
  assert.deepEqual([again.obeyed.operation, again.dropsQueues], [4, true]);
});
