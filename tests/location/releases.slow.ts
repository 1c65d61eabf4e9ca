/**
 * A stamp of the release before feature levels beside a stamp of this release, of real processes: the location service refuses what the older one
 * can't do, and says what helps. After the older stamp is upgraded, the same command makes a copy there.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { releaseBefore } from "@stamp/cli";
import { DataFolder, reservePorts } from "@stamp/cluster";
import { type RanStamp, root, runStamp } from "../tools/commands.ts";
import { doorsOf, present } from "./testing/judged-writes.ts";
import { twoStamps, untilCopy } from "./testing/two-stamps.ts";

const { whyNoReleaseBefore, writeReleaseBefore } = await releaseBefore();
const missing = whyNoReleaseBefore(root);
const shape = ["--extent-nodes", "3", "--stream-managers", "1", "--partition-managers", "1", "--partition-servers", "1"];

/** Runs a command of the programs in a folder. */
function runOf(programs: string, args: readonly string[]): Promise<RanStamp> {
  const env = { ...process.env, STAMP_ROOT: programs };
  return runStamp(args, { env, program: [process.execPath, join(programs, "packages/cli/src/main.ts")] });
}

test("geo: a stamp of the release before gets no copy and says why; when it is upgraded, it does", { skip: missing }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-releases-"));
  const [before, east] = [join(folder, "before"), join(folder, "east")];
  const { portBase: eastPort, release } = await reservePorts();
  writeReleaseBefore(root, before);
  const two = await twoStamps(t);
  t.after(async () => {
    for (const programs of [before, root]) await runOf(programs, ["down", "--data", east]);
    rmSync(folder, { recursive: true, force: true });
    await release();
  });
  const { data, portBase, ok, stamp } = two;
  await ok("down", "--data", join(data, "south-1"));
  const up = ["up", "-d", "--data", east, "--port-base", String(eastPort), ...shape, "--ready-timeout-s", "180"];
  const started = await runOf(before, up);
  assert.equal(started.code, 0, started.output);
  const { processes } = JSON.parse((await runOf(before, ["status", "--json", "--data", east])).out) as {
    readonly processes: readonly { readonly role: string; readonly grpc: string }[];
  };
  const addressOf = (role: string): string => processes.find((each) => each.role === role)?.grpc ?? "";
  symlinkSync(join(east, "cluster-secret"), join(data, "location/stamp-secrets/east-1"));
  const add = ["location", "add", "east-1", "--location", "east", "--lock-service", addressOf("lock-service"), "--secret", "east-1"];
  await ok(...add, "--doors", addressOf("front-end"));

  const { keys } = JSON.parse(await ok("account", "create", "acme", "--location", "north", "--json"));
  const here = doorsOf(portBase, "acme", keys[0], 10);
  await here.table.createTable();
  await here.container.create();
  await here.table.createEntity({ partitionKey: "p", rowKey: "r" });
  for (const command of [
    ["geo", "protect", "acme", "--location", "east"],
    ["account", "migrate", "acme", "--to", "east-1"],
  ]) {
    const { code, output } = await stamp(...command);
    assert.equal(code, 1, output);
    assert.match(output, /stamp east-1 runs a release that knows no second stamp of an account: upgrade it first/);
  }
  const [untouched] = JSON.parse(await ok("geo", "status", "acme", "--json"));
  assert.deepEqual([untouched.kind, untouched.secondary], ["", ""], "no operation is under way");

  const stopped = await runOf(before, ["down", "--data", east]);
  assert.equal(stopped.code, 0, stopped.output);
  assert.equal(new DataFolder(east).supervisor(), undefined);
  const upgraded = await runOf(root, up);
  assert.equal(upgraded.code, 0, upgraded.output);
  await ok("geo", "protect", "acme", "--location", "east");
  await untilCopy(two, "acme", "a complete copy", ({ secondary, seeded, pendingOperations }) => {
    return secondary === "east-1" && seeded && pendingOperations === 0;
  });
  const there = doorsOf(eastPort, "acme-secondary", keys[0], 10);
  assert.deepEqual(await present(there), new Set(["p/r"]));
});
