/** Starts and ends of one role that meet each other, and what an ended role leaves behind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Role, type RoleStatus, silentLogger, type World } from "@stamp/ports";
import { InProcessNetwork } from "@stamp/ports-node";
import { HostedRole } from "./hosted-role.ts";

interface Made {
  readonly world: World;
  start: () => Promise<void>;
}

/** A role whose starts the test sees and prepares. */
function hosted(startOf: (made: Made) => Promise<void> = async () => {}): { role: HostedRole; made: Made[] } {
  const made: Made[] = [];
  const network = new InProcessNetwork();
  const make = (world: World): Role => {
    const one: Made = { world, start: () => startOf(one) };
    made.push(one);
    const status: RoleStatus = { state: "test", ready: true, waitingFor: [], facts: {} };
    const stop = () => Promise.reject(new Error("does not stop"));
    return { status, start: () => one.start(), stop } as unknown as Role;
  };
  const planned = { name: "test-1", make };
  const transport = (name: string) => network.transport(name);
  return { role: new HostedRole({ planned, dataDir: undefined, memoryBytesMax: 1 << 20, transport, logger: silentLogger }), made };
}

const turns = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await new Promise<void>((resolve) => setImmediate(resolve));
};

/** Resolves when the role was made so many times. */
async function madeTimes(made: readonly Made[], count: number): Promise<void> {
  while (made.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("hosted role: a start that meets a kill, or another start, makes no second role", async () => {
  const { role, made } = hosted();
  await Promise.all([role.start(), role.kill()]);
  await turns();
  assert.deepEqual([made.length, role.state, role.role], [0, "down", undefined]);
  await Promise.all([role.start(), role.start()]);
  await turns();
  assert.deepEqual([made.length, role.state], [1, "running"]);
  await role.kill();
});

test("hosted role: one that starts again after a fatal error runs meanwhile for those who wait, and can be paused or killed", async () => {
  const { role, made } = hosted();
  await role.start();
  made[0]?.world.fatal("first");
  assert.deepEqual([role.state, role.role, /first/.test(role.waitsFor)], ["running", undefined, true]);
  role.pause();
  await madeTimes(made, 2);
  assert.equal(role.state, "paused");
  let begun = false;
  void made[1]?.world.disk.exists("a").then(() => (begun = true));
  await turns();
  assert.equal(begun, false);
  role.resume();
  await turns();
  assert.equal(begun, true);
  made[1]?.world.fatal("second");
  await role.kill();
  assert.equal(role.state, "down");
});

test("hosted role: a start that fails leaves it down; one after a fatal error is tried again", async () => {
  let failures = 1;
  const { role, made } = hosted(async () => {
    if (failures-- > 0) throw new Error("not now");
  });
  await assert.rejects(role.start(), /not now/);
  assert.deepEqual([role.state, role.role], ["down", undefined]);
  await role.start();
  failures = 1;
  made[1]?.world.fatal("on purpose");
  await madeTimes(made, 4);
  assert.equal(role.state, "running");
  await role.kill();
});

test("hosted role: nothing is left of one that fails to leave", async () => {
  const { role, made } = hosted();
  await role.start();
  await assert.rejects(role.leave(), /does not stop/);
  assert.deepEqual([role.state, role.role], ["down", undefined]);
  let begun = false;
  void made[0]?.world.disk.exists("a").then(() => (begun = true));
  await turns();
  assert.equal(begun, false);
});
