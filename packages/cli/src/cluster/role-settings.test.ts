/** Settings of roles are refused before anything is started, and each that there is can be seen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig, type RoleName, roles } from "@stamp/cluster";
import { CommandError, exitCodes } from "../context.ts";
import { checkRoleSettings, roleSettings, unknownSettings } from "./role-settings.ts";

const withRoles = (given: unknown) =>
  loadConfig({ directory: "/nowhere", root: "/nowhere", environment: {}, flags: { roles: JSON.stringify(given) } });

const refusals: readonly [unknown, RegExp][] = [
  [
    { "partition-manager": { splitbytes: 5 } },
    /roles\.partition-manager\.splitbytes: no such key \(all of them: \.\/stamp config show partition-manager\)/,
  ],
  [{ "partition-manager": { splitBytes: "much" } }, /roles\.partition-manager\.splitBytes: .*number/],
  [{ "partition-manager": { moveRatio: 0.5 } }, /roles\.partition-manager\.moveRatio: /],
  [{ "partition-manager": { splitBytes: 1_000 } }, /mergeBytes: 67108864 is not below splitBytes \(1000\): what is merged would be split/],
  [{ "partition-manager": { mergeRequestsPerSecond: 2_000 } }, /mergeRequestsPerSecond: 2000 is not below splitRequestsPerSecond \(2000\)/],
  [{ "partition-server": { checkpointsMax: 1 } }, /roles\.partition-server\.checkpointsMax: /],
  [{ "extent-node": { dataDir: "/tmp/x" } }, /roles\.extent-node\.dataDir: each process is given its own/],
];

for (const [given, message] of refusals) {
  test(`role settings, ${JSON.stringify(given)}: refused by name`, async () => {
    await assert.rejects(checkRoleSettings(withRoles(given)), (error: unknown) => {
      assert.ok(error instanceof CommandError && error.exitCode === exitCodes.usage);
      assert.match(error.message, message);
      return true;
    });
  });
}

test("role settings: everything that is wrong is told at once", async () => {
  const wrong = { "partition-manager": { moveRatio: 0, rangesMax: 1 }, "extent-node": { opnFilesMax: 1 } };
  await assert.rejects(checkRoleSettings(withRoles(wrong)), /moveRatio.*\n.*rangesMax.*\n.*opnFilesMax/);
});

test("role settings: a text where a number or a boolean belongs is refused, although the processes would get the same", async () => {
  const wrong = { "partition-manager": { splitBytes: "2000000", balance: "yes" }, "extent-node": { openFilesMax: 0.5 } };
  await assert.rejects(checkRoleSettings(withRoles(wrong)), (error: Error) => {
    assert.ok(error.message.includes('roles.partition-manager.splitBytes: "2000000" is not allowed: a number without quotes'));
    assert.ok(error.message.includes('roles.partition-manager.balance: "yes" is not allowed: a boolean without quotes'));
    assert.ok(error.message.includes("roles.extent-node.openFilesMax: 0.5 is not allowed: a whole number, 8 or more"), error.message);
    return true;
  });
});

test("names of the environment that are no settings: told with the nearest, or with where the setting belongs", async () => {
  const environment = { STAMP_EXTENT_NODES: "4", STAMP_CONFIG: "", STAMP: "…", STAMPEDE: "1", PATH: "/bin" };
  assert.deepEqual(await unknownSettings(environment), []);
  const mistyped = { ...environment, STAMP_EXTENTNODES: "9", STAMP_OPEN_FILES_MAX: "64", STAMP_HOLIDAY: "1" };
  assert.deepEqual(await unknownSettings(mistyped), [
    "STAMP_EXTENTNODES in the environment is ignored: there is no such setting; STAMP_EXTENT_NODES?",
    "STAMP_HOLIDAY in the environment is ignored: there is no such setting",
    'STAMP_OPEN_FILES_MAX in the environment is ignored: a setting of extent-node, which takes it from the configuration: {"roles":{"extent-node":{"openFilesMax":…}}}',
  ]);
});

test("role settings: what is right is taken; without balancing its policies are not looked at", async () => {
  await checkRoleSettings(withRoles({}));
  await checkRoleSettings(withRoles({ "partition-manager": { splitBytes: 2_000_000, mergeBytes: 0, logLevel: "debug" } }));
  await checkRoleSettings(withRoles({ "partition-manager": { balance: false, splitBytes: 1_000 } }));
});

test("config show ROLE: every key of every role has a meaning and its value; keys of accounts are not shown", async () => {
  const config = withRoles({ "partition-manager": { splitBytes: 100_000_000 } });
  for (const role of roles) {
    const settings = await roleSettings(config, role as RoleName);
    assert.deepEqual(
      settings.filter(({ meaning }) => meaning === "").map(({ key }) => key),
      [],
      role,
    );
    assert.ok(!JSON.stringify(settings).includes(config.accounts[0]?.keys[0] as string), role);
  }
  const split = (await roleSettings(config, "partition-manager")).find(({ key }) => key === "splitBytes");
  assert.deepEqual([split?.value, split?.byDefault], ["100000000", String(1024 ** 3)]);
});
