/**
 * Two stamps with TLS between their processes (`tls: "cluster"`): the location service and the partition servers of the other stamp prove
 * themselves to each by a certificate of that stamp's authority, and its secret. With a certificate of another authority nothing is shipped.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { doorsOf } from "./testing/judged-writes.ts";
import { type TwoStamps, twoStamps, untilCopy } from "./testing/two-stamps.ts";

const names = ["north-1", "south-1"] as const;

/** Folder with the certificates by which others prove themselves to a stamp. */
const folderFor = ({ data }: Pick<TwoStamps, "data">, name: string): string => join(data, "location/stamp-secrets", `${name}-certs`);

/** Processes that are none of the stamp: their roles, and the names of their files. */
const others = { "location-service": "location-service-1", "partition-server": "partition-server" } as const;

/** Makes the certificate of such a process. */
async function issue(
  two: Pick<TwoStamps, "data" | "ok">,
  role: keyof typeof others,
  at: (typeof names)[number],
  folder: string,
): Promise<void> {
  await two.ok("certs", "cluster", "issue", "--role", role, "--name", others[role], "--dir", folder, "--data", join(two.data, at));
}

/** Kills the partition server of north-1; its supervisor starts it again. */
async function restartShipper({ data, stamp }: TwoStamps): Promise<void> {
  const { out } = await stamp("status", "--json", "--data", join(data, "north-1"));
  const { processes } = JSON.parse(out) as { processes: { name: string; pid: number | null }[] };
  const pid = processes.find(({ name }) => name === "partition-server-1")?.pid;
  assert.ok(pid, "partition-server-1 of north-1 does not run");
  process.kill(pid, "SIGKILL");
}

test("geo: with TLS between processes the stamps of an account prove themselves by each other's certificates", async (t) => {
  const two = await twoStamps(t, {
    args: ["--tls", "cluster"],
    prepare: async ({ data, portBase, ok }) => {
      for (const [at, name] of names.entries()) {
        const ports = String(portBase + 300 * at);
        await ok("certs", "cluster", "init", "--stamp", name, "--port-base", ports, "--data", join(data, name));
        for (const role of ["location-service", "partition-server"] as const)
          await issue({ data, ok }, role, name, folderFor({ data }, name));
      }
    },
  });
  const { ok, portBase } = two;
  const { keys } = JSON.parse(await ok("account", "create", "acme", "--location", "north", "--geo", "south", "--json"));
  const here = doorsOf(portBase, "acme", keys[0], 20);
  const there = doorsOf(portBase + 300, "acme-secondary", keys[0], 20);
  await here.table.createTable();
  await here.table.createEntity({ partitionKey: "p", rowKey: "1" });
  const isComplete = ({ seeded, pendingOperations }: { readonly seeded: boolean; readonly pendingOperations: number | null }): boolean =>
    seeded && pendingOperations === 0;
  await untilCopy(two, "acme", "a complete copy", isComplete);
  assert.equal((await there.table.getEntity("p", "1")).rowKey, "1");

  // A certificate of another authority: that of north-1 itself.
  await issue(two, "partition-server", "north-1", folderFor(two, "south-1"));
  await restartShipper(two);
  await here.table.createEntity({ partitionKey: "p", rowKey: "2" });
  const refused = await untilCopy(two, "acme", "a refused link", ({ shippingTrouble }) => shippingTrouble !== "");
  assert.match(refused.shippingTrouble, /TLS|certificate/);
  await assert.rejects(there.table.getEntity("p", "2"), { statusCode: 404 });
  await issue(two, "partition-server", "south-1", folderFor(two, "south-1"));
  // A running process takes a renewed certificate of its own stamp and role, and no other one.
  await restartShipper(two);
  await untilCopy(two, "acme", "an empty backlog", isComplete);
  assert.equal((await there.table.getEntity("p", "2")).rowKey, "2");
});
