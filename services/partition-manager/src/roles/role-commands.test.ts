/** Commands about an account's role, over rows in memory that decide as @stamp/objects does. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { allRules, type Outcome, ok, type RuleName, refused, unwrap } from "@stamp/base";
import { type AccountRole, type CommandOrder, decodeRole, type GeoPoint, type RoleCommand } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { type Account, AccountSchema } from "@stamp/wire";
import type { AccountOperation, AccountResult } from "../accounts/account-rows.ts";
import type { CopyFacts } from "./copies-here.ts";
import { RoleCommands } from "./role-commands.ts";

const account = "acct";
const point: GeoPoint = [{ range: "r1", sequence: 7 }];
const settings = create(AccountSchema, { name: "other", keys: ["a2V5"], serviceProperties: { blob: "text" } });

/** Rows of accounts, and a clock that is set by hand. */
class Stamp {
  readonly rows = new Map<string, Account>();
  nowMs = 1_000;
  /** Milliseconds since 1970. */
  wallMs = 1_000_000;
  /** Feature level of the stamp. */
  level: number | undefined = 1;
  /** Lineage of the stamp's metadata store. */
  lineage = 0;
  writes = 0;
  /** Called once, before the next write. */
  beforeWrite: (() => void) | undefined;
  /** Names of the queues that the stamp has of the account. */
  queues: readonly string[] = [];
  /** Commands by which the account came back. */
  readonly cameBack: CommandOrder[] = [];
  commands = this.restarted();

  restarted(off?: RuleName): RoleCommands {
    const rules = off === undefined ? allRules : { on: (name: RuleName) => name !== off };
    const digest = { sha256: (bytes: Uint8Array) => createHash("sha256").update(bytes).digest() };
    const world = { rules, digest, clock: { monotonicMs: () => this.nowMs, wallMs: () => this.wallMs } } as unknown as World;
    this.commands = new RoleCommands(world, {
      level: () => this.level,
      copied: async () => ok(point),
      endRemoval: async (_account, obeyed) => {
        this.cameBack.push(obeyed);
        return ok();
      },
      queues: async () => ok(this.queues),
      lineage: () => this.lineage,
    });
    return this.commands;
  }

  readonly execute = async (operation: AccountOperation): Promise<Outcome<AccountResult>> => {
    const error = (code: string): Outcome<AccountResult> => ok({ case: "error", value: { code } } as unknown as AccountResult);
    const answer = (value: Account): Outcome<AccountResult> => ok({ case: "account", value } as AccountResult);
    if (operation.case === "getAccount") {
      const held = this.rows.get(account);
      return held === undefined ? error("AccountNotFound") : answer(held);
    }
    const race = this.beforeWrite;
    this.beforeWrite = undefined;
    race?.();
    const held = this.rows.get(account);
    const value = operation.value as { account: unknown; geoRole?: string; expectedGeoRole?: string; onlyIfAbsent?: boolean };
    if (value.onlyIfAbsent && held) return answer(held);
    if (value.expectedGeoRole !== undefined && value.expectedGeoRole !== held?.geoRole) return error("ConditionNotMet");
    const next = operation.case === "putAccount" ? create(AccountSchema, value.account as object) : { ...held, geoRole: value.geoRole };
    this.rows.set(account, next as Account);
    this.writes++;
    return answer(next as Account);
  };

  obey(command: RoleCommand, given?: Account) {
    return this.commands.obey(account, command, given, this.execute);
  }

  /** The primary says that the copy which operation 2 began is complete. */
  complete(facts: Partial<CopyFacts> = {}) {
    const whole = { epoch: 1, paired: 2, complete: true, lastSyncMs: undefined, ...facts };
    return this.commands.noteCopy(account, whole, this.execute);
  }

  get role(): AccountRole | undefined {
    return unwrap(decodeRole(this.rows.get(account)?.geoRole ?? ""));
  }
}

const failure = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.code} ${outcome.failure.reason}`);
const peer = "south-1";

/** A stamp that made the account by itself, as every stamp does today. */
function alone(): Stamp {
  const stamp = new Stamp();
  stamp.rows.set(account, create(AccountSchema, { name: account, keys: ["a2V5"] }));
  return stamp;
}

test("role commands: an account without a role is a primary that is paired, drained, and demoted; each answer waits until caches have ended", async () => {
  const stamp = alone();
  assert.equal(stamp.role, undefined);
  const paired = unwrap(await stamp.obey({ kind: "pair", operation: 2, peer, peerDoors: ["h:1"] }));
  assert.deepEqual([paired.role.role, paired.role.peer, paired.role.epoch, paired.waitMs], ["primary", peer, 1, 5_500]);
  stamp.nowMs += 5_499;
  assert.equal(unwrap(await stamp.obey({ kind: "pair", operation: 2, peer })).waitMs, 1);
  stamp.nowMs += 1;
  assert.equal(unwrap(await stamp.obey({ kind: "pair", operation: 2, peer })).waitMs, 0);
  assert.equal(unwrap(await stamp.obey({ kind: "drain", operation: 3 })).waitMs, 1_100);
  stamp.nowMs += 400;
  assert.equal(unwrap(await stamp.obey({ kind: "drain", operation: 3 })).waitMs, 700);
  assert.equal(stamp.writes, 2, "what is repeated is not written again");
  stamp.restarted();
  assert.equal(unwrap(await stamp.obey({ kind: "drain", operation: 3 })).waitMs, 1_100, "another process counts from its first look");
  const demoted = unwrap(await stamp.obey({ kind: "demote", operation: 3, peer, point }));
  assert.deepEqual([demoted.role.role, demoted.role.report, demoted.waitMs], ["unseeded", undefined, 1_100], "everything was shipped");
  assert.deepEqual(stamp.rows.get(account)?.keys, ["a2V5"], "keys and settings stay");
});

test("role commands: a primary that a forced failover deposes owes a report, also if it was drained by the operation before", async () => {
  for (const drained of [true, false]) {
    const stamp = alone();
    unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
    if (drained) unwrap(await stamp.obey({ kind: "drain", operation: 3 }));
    const demoted = unwrap(await stamp.obey({ kind: "demote", operation: 4, peer, point }));
    assert.deepEqual(demoted.role.report, { from: point, complete: false });
  }
});

test("role commands: rule geoCachedRolesEnd off, a drained primary answers while front-ends still take writes", async () => {
  const stamp = alone();
  stamp.restarted("geoCachedRolesEnd");
  unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
  assert.equal(unwrap(await stamp.obey({ kind: "drain", operation: 3 })).waitMs, 0);
});

test("role commands: a copy gets the primary's keys with `follow`, its last settings with `promote`, and a late command changes nothing", async () => {
  const stamp = new Stamp();
  assert.equal(failure(await stamp.obey({ kind: "promote", operation: 3, peer })), "notFound conflict");
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer: "north-1" }, settings));
  const held = () => stamp.rows.get(account);
  assert.deepEqual([held()?.name, held()?.keys, held()?.serviceProperties], [account, ["a2V5"], { blob: "text" }]);
  assert.equal(failure(await stamp.obey({ kind: "promote", operation: 3, peer })), "failedPrecondition notSeeded");
  assert.equal(failure(await stamp.complete({ epoch: 9 })), "failedPrecondition staleRoleEpoch");
  assert.equal(failure(await stamp.complete({ paired: 1 })), "failedPrecondition staleRoleEpoch", "of an earlier copy");
  assert.equal(unwrap(await stamp.complete({ complete: false })).role, "unseeded");
  assert.equal(unwrap(await stamp.complete()).role, "secondary");
  const last = create(AccountSchema, { ...settings, keys: ["bmV3"] });
  const promoted = unwrap(await stamp.obey({ kind: "promote", operation: 3, peer: "north-1" }, last));
  assert.deepEqual([promoted.role.role, promoted.role.epoch, promoted.role.promotedAt, promoted.waitMs], ["primary", 3, point, 0]);
  assert.deepEqual(held()?.keys, ["bmV3"]);
  assert.equal(failure(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings)), "failedPrecondition staleRoleEpoch");
  assert.equal(failure(await stamp.complete()), "failedPrecondition staleRoleEpoch", "late");
  assert.equal(stamp.role?.role, "primary");
  assert.deepEqual(unwrap(await stamp.obey({ kind: "promote", operation: 3, peer: "north-1" }, settings)).role, promoted.role);
  assert.deepEqual(held()?.keys, ["bmV3"], "what is repeated gives no older settings");
});

test("role commands: settings of a primary are taken by a copy under the same role epoch only", async () => {
  const stamp = new Stamp();
  const copied = (epoch: number) =>
    stamp.commands.copySettings(account, epoch, create(AccountSchema, { ...settings, keys: ["bmV3"] }), stamp.execute);
  assert.equal(failure(await copied(1)), "failedPrecondition staleRoleEpoch");
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  assert.equal(failure(await copied(2)), "failedPrecondition staleRoleEpoch");
  unwrap(await copied(1));
  const { writes } = stamp;
  unwrap(await copied(1));
  assert.equal(stamp.writes, writes, "equal settings are not written again");
  assert.deepEqual(stamp.rows.get(account)?.keys, ["bmV3"]);
  unwrap(await stamp.complete());
  unwrap(await stamp.obey({ kind: "promote", operation: 3, peer }));
  assert.equal(failure(await copied(1)), "failedPrecondition staleRoleEpoch");
});

test("role commands: a row that another process changed meanwhile is read again, and the newer command stays", async () => {
  const stamp = alone();
  unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
  const before = stamp.rows.get(account) as Account;
  const other = new Stamp();
  other.rows.set(account, before);
  unwrap(await other.obey({ kind: "drain", operation: 4 }));
  stamp.beforeWrite = () => stamp.rows.set(account, other.rows.get(account) as Account);
  assert.equal(failure(await stamp.obey({ kind: "drain", operation: 3 })), "failedPrecondition staleRoleEpoch");
  assert.deepEqual(stamp.role?.obeyed, { operation: 4, phase: 2 });
});

test("role commands: how far a copy has come must be known before it is promoted, and nothing else needs it", async () => {
  const stamp = new Stamp();
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  unwrap(await stamp.complete());
  const world = { rules: allRules, clock: { monotonicMs: () => stamp.nowMs } } as unknown as World;
  stamp.commands = new RoleCommands(world, {
    level: () => stamp.level,
    copied: async () => refused("unavailable", "notReady", "not known"),
    endRemoval: async () => ok(),
    queues: async () => ok([]),
  });
  assert.equal(failure(await stamp.obey({ kind: "promote", operation: 3, peer })), "unavailable notReady");
  assert.equal(stamp.role?.role, "secondary");
  unwrap(await stamp.obey({ kind: "remove", operation: 4 }));
  assert.equal(stamp.role?.role, "removed");
});

test("role commands: a copy of before a restore of the stamp is not promoted as if it had everything; a forced failover asks for nothing", async () => {
  const copy = async (): Promise<Stamp> => {
    const stamp = new Stamp();
    unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
    unwrap(await stamp.complete());
    return stamp;
  };
  const stamp = await copy();
  stamp.lineage = 500;
  assert.equal(failure(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 0 })), "failedPrecondition staleLineage");
  assert.equal(stamp.role?.role, "secondary");
  unwrap(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 500 }));
  // The answer was lost, and the stamp is restored once more: it was promoted.
  stamp.lineage = 900;
  assert.equal(unwrap(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 500 })).role.role, "primary");
  const lost = await copy();
  lost.lineage = 500;
  unwrap(await lost.obey({ kind: "promote", operation: 3, peer }));
});

test("role commands: below the feature level no role is written, and what is obeyed already is answered", async () => {
  const stamp = alone();
  stamp.level = 0;
  assert.equal(failure(await stamp.obey({ kind: "pair", operation: 2, peer })), "failedPrecondition newerFormat");
  assert.equal(stamp.rows.get(account)?.geoRole, "");
  stamp.level = 1;
  unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
});

test("role commands: Last Sync Time of a copy does not fall with late reports, and nothing is kept of an earlier copy", async () => {
  const stamp = new Stamp();
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  assert.equal(failure(stamp.commands.copyOf(account)), "notFound notReady");
  const told = async (facts: Partial<CopyFacts>) => {
    unwrap(await stamp.complete(facts));
    return unwrap(stamp.commands.copyOf(account)).lastSyncMs;
  };
  assert.equal(await told({ lastSyncMs: 700 }), 700);
  assert.equal(await told({ lastSyncMs: 500 }), 700);
  assert.equal(await told({ lastSyncMs: undefined }), 700, "a range that has just moved knows nothing");
  unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
  unwrap(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }, settings));
  assert.equal(failure(await stamp.complete({ lastSyncMs: 900 })), "failedPrecondition staleRoleEpoch");
  assert.equal(stamp.role?.role, "unseeded", "a late report completes no later copy");
  assert.equal(await told({ paired: 4, complete: false, lastSyncMs: undefined }), undefined);
});

test("role commands: no Last Sync Time is told that is ahead of the stamp's clock, nor kept until the clock has come there", async () => {
  const stamp = new Stamp();
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  const shown = (): number | undefined => unwrap(stamp.commands.copyOf(account)).lastSyncMs;
  unwrap(await stamp.complete({ lastSyncMs: stamp.wallMs + 3_600_000 }));
  assert.equal(shown(), 1_000_000, "now, not in an hour");
  stamp.wallMs += 500;
  assert.equal(shown(), 1_000_000, "a report that was ahead says nothing of later");
  unwrap(await stamp.complete({ lastSyncMs: 1_000_400 }));
  assert.equal(shown(), 1_000_400);
  stamp.wallMs = 900_000;
  assert.equal(shown(), 900_000, "the clock was set back");
});

test("role commands: a copy without queues begins when the queues of an earlier copy are deleted; one with queues replaces them", async () => {
  const removed = async (): Promise<Stamp> => {
    const stamp = new Stamp();
    stamp.level = 3;
    unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer, queues: true }, settings));
    unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
    stamp.queues = ["jobs"];
    return stamp;
  };
  const stamp = await removed();
  const follow = { kind: "follow", operation: 4, epoch: 1, peer } as const;
  const early = await stamp.obey(follow, settings);
  assert.ok(
    !early.ok && early.failure.reason === "notReady" && /still deletes queues of account acct .*\(jobs\)/.test(early.failure.message),
  );
  assert.deepEqual([stamp.role?.role, stamp.role?.dropsQueues, stamp.cameBack], ["removed", true, []], "the removal goes on");
  unwrap(await stamp.obey({ kind: "remove", operation: 4 }));
  assert.equal(stamp.role?.dropsQueues, true, "also when the copy is given up");
  stamp.queues = [];
  unwrap(await stamp.obey({ ...follow, operation: 5 }, settings));
  assert.deepEqual([stamp.role?.role, stamp.role?.queues], ["unseeded", undefined]);
  const other = await removed();
  unwrap(await other.obey({ ...follow, queues: true }, settings));
  assert.deepEqual([other.role?.role, other.role?.queues], ["unseeded", true]);
});

test("roles: how long no front-end lets in writes of a drained account counts from the end of their caches", async () => {
  const stamp = alone();
  unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
  const drainedMsAgo = (): number | undefined => stamp.commands.drainedMsAgo(account, stamp.role as AccountRole);
  assert.equal(drainedMsAgo(), undefined, "it is primary");
  unwrap(await stamp.obey({ kind: "drain", operation: 3 }));
  stamp.nowMs += 1_000;
  assert.equal(drainedMsAgo(), 0, "they may still act on the row before");
  stamp.nowMs += 600;
  assert.equal(drainedMsAgo(), 500);
  stamp.restarted();
  assert.equal(drainedMsAgo(), 0, "another process counts from its first look");
  stamp.nowMs += 1_100 + 40;
  assert.equal(drainedMsAgo(), 40);
});

test("role commands: an account comes back to a stamp only when no range deletes what it had there any more", async () => {
  const stamp = new Stamp();
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  unwrap(await stamp.obey({ kind: "remove", operation: 3, dropsQueues: true }));
  assert.deepEqual([stamp.role?.role, stamp.role?.dropsQueues, stamp.cameBack], ["removed", true, []]);
  const { commands } = stamp;
  const world = { rules: allRules, clock: { monotonicMs: () => stamp.nowMs } } as unknown as World;
  stamp.commands = new RoleCommands(world, {
    level: () => stamp.level,
    copied: async () => ok(point),
    endRemoval: async () => refused("unavailable", "notReady", "a range is not served"),
    queues: async () => ok([]),
  });
  assert.equal(failure(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }, settings)), "unavailable notReady");
  assert.equal(stamp.role?.role, "removed", "the row is as it was");
  stamp.commands = commands;
  unwrap(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }, settings));
  assert.deepEqual([stamp.role?.role, stamp.role?.dropsQueues], ["unseeded", undefined]);
  assert.deepEqual(stamp.cameBack, [{ operation: 4, phase: 1 }]);
});

test("role commands: queues are copied only at a feature level that has them, and replace no queues of the stamp's own", async () => {
  const stamp = new Stamp();
  const follow = { kind: "follow", operation: 2, epoch: 1, peer, queues: true } as const;
  stamp.level = 2;
  assert.equal(failure(await stamp.obey(follow, settings)), "failedPrecondition newerFormat");
  assert.equal(stamp.writes, 0);
  stamp.level = 3;
  stamp.queues = ["jobs", "mail"];
  const own = await stamp.obey(follow, settings);
  assert.equal(failure(own), "failedPrecondition conflict");
  assert.match(own.ok ? "" : own.failure.message, /has queues of account acct from an earlier time \(jobs, mail\)/);
  stamp.queues = [];
  unwrap(await stamp.obey(follow, settings));
  assert.deepEqual([stamp.role?.role, stamp.role?.queues], ["unseeded", true]);
  // The queues are a copy by now: they go with it, and a later copy replaces what is left of them.
  stamp.queues = ["jobs"];
  unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
  assert.deepEqual([stamp.role?.role, stamp.role?.dropsQueues], ["removed", true]);
  unwrap(await stamp.obey({ ...follow, operation: 4 }, settings));
  assert.deepEqual([stamp.role?.role, stamp.role?.queues], ["unseeded", true]);
});

test("role commands: from the level on, and before it is heard, no settings are taken from a location service, and a copy begins with none", async () => {
  for (const level of [4, undefined]) {
    const stamp = new Stamp();
    stamp.level = level;
    const expected = level === undefined ? "unavailable notReady" : "failedPrecondition newerFormat";
    assert.equal(failure(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings)), expected);
    assert.equal(failure(await stamp.commands.copySettings(account, 1, settings, stamp.execute)), expected);
    assert.equal(stamp.writes, 0);
  }
  const low = new Stamp();
  low.level = 3;
  assert.equal(failure(await low.obey({ kind: "follow", operation: 2, epoch: 1, peer })), "invalidArgument badRequest");
});

test("role commands: rule geoKeysByDoorsOnly off, a location service replaces the keys of a copy", async () => {
  const stamp = new Stamp();
  stamp.level = 4;
  stamp.restarted("geoKeysByDoorsOnly");
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }));
  unwrap(await stamp.commands.copySettings(account, 1, settings, stamp.execute));
  assert.deepEqual(stamp.rows.get(account)?.keys, ["a2V5"]);
});

test("role commands: rule geoCopiesHaveKeys off, a copy without keys becomes secondary", async () => {
  const stamp = new Stamp();
  stamp.level = 4;
  stamp.restarted("geoCopiesHaveKeys");
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }));
  assert.equal(unwrap(await stamp.complete()).role, "secondary");
});

test("role commands: a copy without keys does not become secondary, also where an earlier life of the account left some", async () => {
  const stamp = new Stamp();
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
  stamp.level = 4;
  assert.deepEqual(stamp.rows.get(account)?.keys, ["a2V5"]);
  unwrap(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }));
  const held = () => stamp.rows.get(account);
  assert.deepEqual([held()?.keys, held()?.serviceProperties], [[], {}]);
  const complete = () => stamp.complete({ paired: 4 });
  assert.equal(unwrap(await complete()).role, "unseeded");
  const tag = stamp.commands.words.tagOf(settings);
  assert.equal(unwrap(await stamp.commands.confirm(account, 1, tag, settings, stamp.execute)), true);
  assert.deepEqual([held()?.keys, held()?.serviceProperties], [["a2V5"], { blob: "text" }]);
  assert.equal(unwrap(await complete()).role, "secondary");
  // The next copy is under the same role epoch, and has nothing of what this one had confirmed.
  unwrap(await stamp.obey({ kind: "remove", operation: 5 }));
  unwrap(await stamp.obey({ kind: "follow", operation: 6, epoch: 1, peer }));
  const confirmed = async (given?: Account) => unwrap(await stamp.commands.confirm(account, 1, tag, given, stamp.execute));
  assert.deepEqual([held()?.keys, await confirmed(), await confirmed(settings), await confirmed()], [[], false, true, true]);
});

test("role commands: a location service vouches for the settings that the copy has, and for no others", async () => {
  const stamp = new Stamp();
  stamp.level = 4;
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }));
  const { words } = stamp.commands;
  const tag = words.tagOf(settings);
  const vouch = (of: Uint8Array) => stamp.commands.vouch(account, 1, of, stamp.execute);
  assert.equal(failure(await vouch(tag)), "failedPrecondition conflict", "the row is empty");
  assert.equal(words.servesForMs(account, 1), 0);
  unwrap(await stamp.commands.confirm(account, 1, tag, settings, stamp.execute));
  stamp.nowMs += 40_000;
  assert.equal(words.servesForMs(account, 1), 20_000);
  assert.equal(failure(await vouch(words.tagOf(create(AccountSchema, { ...settings, keys: ["bmV3"] })))), "failedPrecondition conflict");
  assert.equal(words.servesForMs(account, 1), 20_000);
  unwrap(await vouch(tag));
  assert.equal(words.servesForMs(account, 1), 60_000);
});

test("role commands: from the level on the report of a primary of the release before lets no copy be read from", async () => {
  for (const [level, serves] of [
    [3, true],
    [4, false],
    [undefined, false],
  ] as const) {
    const stamp = new Stamp();
    unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
    stamp.level = level;
    // It names no lineage, and says nothing about settings.
    unwrap(await stamp.complete());
    assert.equal(stamp.commands.words.servesForMs(account, 1) > 0, serves, `level ${level}`);
  }
});

test("copy words: what an earlier copy confirmed, a later one has not", () => {
  const { words } = new Stamp().commands;
  const tag = words.tagOf(settings);
  const primary: AccountRole = { role: "primary", epoch: 1, paired: 2, peer, obeyed: { operation: 2, phase: 1 } };
  words.seen(account, tag, primary, tag);
  assert.equal(words.inForce(account, tag, primary).where, "");
  assert.match(words.inForce(account, tag, { ...primary, paired: 4 }).where, /has not confirmed/);
});
