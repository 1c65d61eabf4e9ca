/** Settings of roles are refused before anything is started, and each that there is can be seen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig, type RoleName, roles } from "@stamp/cluster";
import { CommandError, exitCodes } from "./context.ts";
import { checkRoleSettings, roleSettings } from "./role-settings.ts";

const withRoles = (given: unknown) =>
  loadConfig({ directory: "/nowhere", root: "/nowhere", environment: {}, flags: { roles: JSON.stringify(given) } });

const refusals: readonly [unknown, RegExp][] = [
  [
    { "partition-manager": { splitbytes: 5 } },
    /roles\.partition-manager\.splitbytes: no such key \(\.\/stamp config show partition-manager /,
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

test("role settings: what is right is taken, as text of the environment too; without balancing its policies are not looked at", async () => {
  await checkRoleSettings(withRoles({}));
  await checkRoleSettings(withRoles({ "partition-manager": { splitBytes: "2000000", mergeBytes: 0, logLevel: "debug" } }));
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
