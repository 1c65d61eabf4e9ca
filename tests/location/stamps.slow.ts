/**
 * `stamp up --stamps 2`: two stamps and a location service of real processes, by the commands that a person types
 * (docs/guides/geo.md).
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { reservePorts } from "@stamp/cli";
import { root } from "../tools/commands.ts";

interface Ran {
  readonly code: number;
  readonly output: string;
}

test("up --stamps 2: two stamps with a connection string each, one location service for both, and everything by one folder", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-two-"));
  const data = join(folder, "data");
  const stamp = (...args: readonly string[]): Promise<Ran> =>
    new Promise((resolve) => {
      const child = execFile(process.execPath, [join(root, "packages/cli/src/main.ts"), ...args, "--data", data], (_error, out, err) =>
        resolve({ code: child.exitCode ?? -1, output: out + err }),
      );
    });
  const ok = async (...args: readonly string[]): Promise<string> => {
    const { code, output } = await stamp(...args);
    assert.equal(code, 0, `${args.join(" ")}: ${output}`);
    return output;
  };
  t.after(async () => {
    await stamp("down");
    rmSync(folder, { recursive: true, force: true });
  });
  const { portBase } = await reservePorts(3);
  const up = await ok("up", "-d", "--stamps", "2", "--port-base", String(portBase), "--ready-timeout-s", "300");
  const connections = [...up.matchAll(/AccountName=(\w+)\S+/g)];
  assert.deepEqual(
    connections.map(([, name]) => name),
    ["devstoreaccount1", "devstoreaccount2"],
  );
  for (const [connection] of connections) {
    const text = `DefaultEndpointsProtocol=http;${connection}`;
    await BlobServiceClient.fromConnectionString(text).createContainer("of-this-stamp");
    assert.equal((await BlobServiceClient.fromConnectionString(text).listContainers().next()).value?.name, "of-this-stamp");
  }
  const listed = JSON.parse(await ok("location", "stamps", "--json")) as { name: string; location: string; answers: boolean }[];
  assert.deepEqual(
    listed.map(({ name, location, answers }) => [name, location, answers]),
    [
      ["north-1", "north", true],
      ["south-1", "south", true],
    ],
  );
  const made = JSON.parse(await ok("account", "create", "acme", "--location", "north", "--geo", "south", "--json"));
  assert.deepEqual([made.stamp, made.location, made.keys.length], ["north-1", "north", 2]);
  for (let i = 0; ; i++) {
    const [acme] = JSON.parse(await ok("geo", "status", "acme", "--json"));
    if (acme.kind === "") {
      assert.deepEqual([acme.stamp, acme.secondary, acme.state, acme.lagSeconds], ["north-1", "south-1", "seeding", null]);
      break;
    }
    assert.ok(i < 60, JSON.stringify(acme));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  const early = await stamp("geo", "failover", "acme", "--planned");
  assert.match(early.output, /the copy of account acme at stamp south-1 is not complete/);
  const status = JSON.parse(await ok("status", "--json"));
  assert.deepEqual([status.stamps.map(({ ready }: { ready: boolean }) => ready), status.locationService.ready], [[true, true], true]);
  const health = JSON.parse((await stamp("health", "--json")).output);
  assert.deepEqual([health.stamps.map(({ name }: { name: string }) => name), health.locationService.ready], [["north-1", "south-1"], true]);
  const one = await stamp("stream", "list");
  assert.deepEqual(one.code, 2);
  assert.match(one.output, /has several stamps: name one/);
  assert.match((await stamp("up", "-d", "--stamps", "3")).output, /has 2 stamps; another number needs a folder of its own/);
  await ok("down");
  const stopped = await stamp("reset");
  assert.match(stopped.output, /say --yes/);
  await ok("reset", "--yes");
  assert.deepEqual(
    [existsSync(join(data, "north-1")), existsSync(join(data, "location")), existsSync(join(data, "stamps.json"))],
    [false, false, false],
  );
});
