/** Keys and settings of an account that has a copy, as its role at this stamp decides about them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { unwrap } from "@stamp/base";
import type { AccountRole } from "@stamp/geo";
import { type Account, AccountSchema, EncryptionScopeSchema } from "@stamp/wire";
import { account, alone, confirm, failure, peer, Stamp, settings } from "./testing/stamp-of-roles.ts";

test("role commands: from the level on, and before it is heard, no settings are taken from a location service, and a copy begins with none", async () => {
  for (const level of [4, undefined]) {
    const stamp = new Stamp();
    stamp.level = level;
    const expected = level === undefined ? "unavailable notReady" : "failedPrecondition newerFormat";
    assert.equal(failure(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, settings)), expected);
    assert.equal(failure(await stamp.commands.copySettings(account, 1, settings, stamp.execute)), expected);
    assert.equal(stamp.writes, 0);
  }
  const unheard = new Stamp();
  unheard.level = undefined;
  assert.equal(failure(await unheard.obey({ kind: "follow", operation: 2, epoch: 1, peer })), "unavailable notReady");
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
  // Releases before left the keys in the row.
  stamp.restarted("geoRemovedKeepNoKeys");
  unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
  stamp.restarted();
  stamp.level = 4;
  assert.deepEqual(stamp.rows.get(account)?.keys, ["a2V5"]);
  unwrap(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }));
  const held = () => stamp.rows.get(account);
  assert.deepEqual([held()?.keys, held()?.serviceProperties], [[], {}]);
  const complete = () => stamp.complete({ paired: 4 });
  assert.equal(unwrap(await complete()).role, "unseeded");
  const tag = stamp.commands.words.tagOf(settings);
  assert.equal(unwrap(await confirm(stamp, settings, { paired: 4 })), undefined);
  assert.deepEqual([held()?.keys, held()?.serviceProperties], [["a2V5"], { blob: "text" }]);
  assert.equal(unwrap(await complete()).role, "secondary");
  // The next copy is under the same role epoch, and has nothing of what this one had confirmed.
  unwrap(await stamp.obey({ kind: "remove", operation: 5 }));
  unwrap(await stamp.obey({ kind: "follow", operation: 6, epoch: 1, peer }));
  const confirmed = async (given?: Account) => unwrap(await confirm(stamp, given ?? tag, { paired: 6 })) === undefined;
  assert.deepEqual([held()?.keys, await confirmed(), await confirmed(settings), await confirmed()], [[], false, true, true]);
});

test("role commands: a stamp keeps no keys and settings of an account that is removed from it, as a copy or as a primary that was deposed", async () => {
  const scope = create(EncryptionScopeSchema, { name: "s", key: new Uint8Array(32) });
  const whole = create(AccountSchema, { ...settings, delegationSecret: new Uint8Array(32), encryptionScopes: [scope] });
  for (const deposed of [false, true]) {
    const stamp = deposed ? alone() : new Stamp();
    if (deposed) {
      unwrap(await stamp.obey({ kind: "pair", operation: 2, peer }));
      unwrap(await stamp.obey({ kind: "demote", operation: 3, peer, point: [] }));
    } else {
      unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }, whole));
      assert.equal(stamp.rows.get(account)?.encryptionScopes.length, 1);
    }
    unwrap(await stamp.obey({ kind: "remove", operation: 4 }));
    const { keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes } = stamp.rows.get(account) as Account;
    assert.deepEqual([stamp.role?.role, keys, encryptionScopes, serviceProperties], ["removed", [], [], {}]);
    assert.deepEqual([delegationSecret.length, configuredDigest.length], [0, 0]);
  }
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
  unwrap(await confirm(stamp, settings));
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

test("role commands: a copy is promoted with the settings of the drained primary, whatever a front-end puts in their place at any time", async () => {
  const forged = create(AccountSchema, { ...settings, keys: ["Zm9yZ2Vk"] });
  for (const off of [undefined, "geoPromotedAsCompared"] as const) {
    const stamp = new Stamp();
    stamp.level = 4;
    stamp.restarted(off);
    unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }));
    const { words } = stamp.commands;
    unwrap(await confirm(stamp, settings));
    unwrap(await stamp.complete());
    const promote = { kind: "promote", operation: 3, peer, settingsTag: words.tagOf(settings) } as const;
    const keys = () => stamp.rows.get(account)?.keys;
    if (off === undefined) {
      unwrap(await confirm(stamp, forged));
      assert.equal(failure(await stamp.obey(promote)), "unavailable notReady");
      assert.deepEqual([stamp.role?.role, keys()], ["secondary", forged.keys]);
      unwrap(await confirm(stamp, settings));
    }
    // Between the comparison and the write.
    stamp.beforeWrite = () => {
      const held = stamp.rows.get(account);
      if (held !== undefined) stamp.rows.set(account, { ...held, keys: forged.keys });
    };
    unwrap(await stamp.obey(promote));
    assert.deepEqual([stamp.role?.role, keys()], ["primary", off === undefined ? settings.keys : forged.keys]);
    // The answer was lost: the same command is asked again after keys were rotated here.
    stamp.rows.set(account, { ...(stamp.rows.get(account) as Account), keys: ["cm90YXRlZA=="] });
    unwrap(await stamp.obey(promote));
    assert.deepEqual(keys(), ["cm90YXRlZA=="]);
  }
});

test("role commands: settings that come late replace no later ones, and none of a later copy", async () => {
  const rotated = create(AccountSchema, { ...settings, keys: ["cm90YXRlZA=="] });
  for (const off of [undefined, "geoKeysReplaceKnown"] as const) {
    const stamp = new Stamp();
    stamp.level = 4;
    stamp.restarted(off);
    const { words } = stamp.commands;
    const keys = () => stamp.rows.get(account)?.keys;
    unwrap(await stamp.obey({ kind: "follow", operation: 2, epoch: 1, peer }));
    const replaces = words.tagOf(stamp.rows.get(account) as Account);
    // Two owners of the range push at once, and the word of one lies in a front-end that is stopped.
    const late = () => confirm(stamp, settings, { replaces });
    unwrap(await confirm(stamp, rotated, { replaces }));
    unwrap(await late());
    assert.deepEqual(keys(), off === undefined ? rotated.keys : settings.keys);
    // Also between the comparison and the write.
    if (off === undefined) {
      const before = words.tagOf(rotated);
      const third = create(AccountSchema, { ...settings, keys: ["dGhpcmQ="] });
      stamp.beforeWrite = () => stamp.rows.set(account, { ...(stamp.rows.get(account) as Account), keys: third.keys });
      assert.equal(failure(await confirm(stamp, settings, { replaces: before })), "aborted conflict");
      assert.deepEqual(keys(), third.keys);
    }
    // The copy is given up and begun again under the same role epoch: its row is as empty as that of the first one was.
    unwrap(await stamp.obey({ kind: "remove", operation: 3 }));
    unwrap(await stamp.obey({ kind: "follow", operation: 4, epoch: 1, peer }));
    const answer = await late();
    assert.equal(failure(answer), off === undefined ? "failedPrecondition staleRoleEpoch" : "ok");
    assert.deepEqual(keys(), off === undefined ? [] : settings.keys);
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
