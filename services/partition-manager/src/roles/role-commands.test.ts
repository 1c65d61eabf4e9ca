/** Commands about an account's role. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { defaultServiceProperties, encodeServiceProperties } from "@stamp/azure-rest";
import { allRules, ok, refused, unwrap } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import type { World } from "@stamp/ports";
import { type Account, AccountSchema } from "@stamp/wire";
import { hierarchicalProperties } from "../accounts/account-rows.ts";
import type { CopyFacts } from "./copies-here.ts";
import { RoleCommands } from "./role-commands.ts";
import { account, alone, failure, peer, point, Stamp, settings } from "./testing/stamp-of-roles.ts";

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
  // Under a lineage that the stamp never had, no restore would be noticed any more.
  assert.equal(failure(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 501 })), "failedPrecondition staleLineage");
  assert.equal(stamp.role?.role, "secondary");
  unwrap(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 500 }));
  // The answer was lost, and the stamp is restored once more: it was promoted.
  stamp.lineage = 900;
  assert.equal(unwrap(await stamp.obey({ kind: "promote", operation: 3, peer, copyLineage: 500 })).role.role, "primary");
  const lost = await copy();
  lost.lineage = 500;
  unwrap(await lost.obey({ kind: "promote", operation: 3, peer }));
});

test("role commands: of a copy that was seeded under a lineage which its stamp never had nothing counts", async () => {
  const stamp = new Stamp();
  stamp.lineage = 500;
  unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings));
  for (const copyLineage of [0, 499, 501, Number.MAX_SAFE_INTEGER]) {
    unwrap(await stamp.complete({ copyLineage, lastSyncMs: 700 }));
    const { complete, lastSyncMs } = unwrap(stamp.commands.copyOf(account));
    assert.deepEqual([stamp.role?.role, complete, lastSyncMs], ["unseeded", false, undefined], String(copyLineage));
  }
  unwrap(await stamp.complete({ copyLineage: 500, lastSyncMs: 700 }));
  assert.deepEqual([stamp.role?.role, unwrap(stamp.commands.copyOf(account)).lastSyncMs], ["secondary", 700]);
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

test("role commands: an account with shares of files gets no second stamp", async () => {
  const stamp = new Stamp();
  const properties = { file: encodeServiceProperties(defaultServiceProperties) };
  stamp.rows.set(account, create(AccountSchema, { name: account, keys: ["a2V5"], serviceProperties: properties }));
  assert.equal(failure(await stamp.obey({ kind: "pair", operation: 2, peer })), "failedPrecondition conflict");
  assert.deepEqual([stamp.writes, stamp.role], [0, undefined]);
});

test("role commands: an account with a hierarchical namespace gets no second stamp, and neither does one whose properties can't be read", async () => {
  for (const [text, told] of [
    [hierarchicalProperties, "failedPrecondition conflict"],
    ["text", "dataLoss damaged"],
  ] as const) {
    const stamp = new Stamp();
    stamp.rows.set(account, create(AccountSchema, { name: account, keys: ["a2V5"], serviceProperties: { blob: text } }));
    assert.equal(failure(await stamp.obey({ kind: "pair", operation: 2, peer })), told);
    assert.deepEqual([stamp.writes, stamp.role], [0, undefined]);
    assert.equal(unwrap(await stamp.obey({ kind: "unpair", operation: 2 })).role.role, "primary", "the operation is given up");
  }
});
