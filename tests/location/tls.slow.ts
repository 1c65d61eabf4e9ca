/**
 * Two stamps with TLS between their processes (`tls: "cluster"`): the location service and the partition servers of the other stamp prove
 * themselves to each by a certificate of that stamp's authority, and its secret. With a certificate of another authority nothing is shipped.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { primaryIsLost } from "./pair/forced.ts";
import { doorsOf } from "./testing/judged-writes.ts";
import { isComplete, killProcess, type TwoStamps, twoStamps, untilCopy } from "./testing/two-stamps.ts";

const names = ["north-1", "south-1"] as const;

/** Folder with the certificates by which others prove themselves to a stamp. */
const folderFor = ({ data }: Pick<TwoStamps, "data">, name: string): string => join(data, "location/stamp-secrets", `${name}-certs`);

/** Processes that are none of the stamp: their roles, and the names of their files. */
const others = ["location-service", "geo-peer"] as const;

/** Name in such a certificate that `at` issues: that of the process, or of the other stamp. */
function nameOf(role: string, at: (typeof names)[number]): string {
  if (role !== "geo-peer") return role === "location-service" ? "location-service-1" : role;
  return at === "north-1" ? "south-1" : "north-1";
}

/** Makes the certificate of such a process. */
async function issue(
  two: Pick<TwoStamps, "data" | "ok">,
  role: (typeof others)[number] | "partition-server",
  at: (typeof names)[number],
  folder: string,
  name: string = nameOf(role, at),
): Promise<void> {
  await two.ok("certs", "cluster", "issue", "--role", role, "--name", name, "--dir", folder, "--data", join(two.data, at));
}

test("geo: with TLS between processes the stamps of an account prove themselves by each other's certificates", async (t) => {
  const two = await twoStamps(t, {
    args: ["--tls", "cluster"],
    prepare: async ({ data, portBase, ok }) => {
      for (const [at, name] of names.entries()) {
        const ports = String(portBase + 300 * at);
        await ok("certs", "cluster", "init", "--stamp", name, "--port-base", ports, "--data", join(data, name));
        for (const role of others) await issue({ data, ok }, role, name, folderFor({ data }, name));
      }
    },
  });
  const { ok, portBase } = two;
  const { keys } = JSON.parse(await ok("account", "create", "acme", "--location", "north", "--geo", "south", "--json"));
  const here = doorsOf(portBase, "acme", keys[0], 20);
  const there = doorsOf(portBase + 300, "acme-secondary", keys[0], 20);
  await here.table.createTable();
  await here.table.createEntity({ partitionKey: "p", rowKey: "1" });
  await untilCopy(two, "acme", "a complete copy", isComplete);
  assert.equal((await there.table.getEntity("p", "1")).rowKey, "1");

  /** Ships with the certificate that is there now. */
  const shipped = async (rowKey: string): Promise<void> => {
    await untilCopy(two, "acme", "an empty backlog", isComplete);
    assert.equal((await there.table.getEntity("p", rowKey)).rowKey, rowKey);
  };
  const notShipped = async (rowKey: string, why: RegExp): Promise<void> => {
    // A running process takes a renewed certificate of its own stamp and role, and no other one.
    await killProcess(two, "north-1", "partition-server-1");
    await here.table.createEntity({ partitionKey: "p", rowKey });
    const refused = await untilCopy(two, "acme", "a refused link", ({ shippingTrouble }) => why.test(shippingTrouble));
    assert.match(refused.shippingTrouble, why);
    await assert.rejects(there.table.getEntity("p", rowKey), { statusCode: 404 });
  };
  const folder = folderFor(two, "south-1");
  // A certificate of another authority: that of north-1 itself.
  await issue(two, "geo-peer", "north-1", folder);
  await notShipped("2", /TLS|certificate/);
  // One of the right authority for another stamp.
  await issue(two, "geo-peer", "south-1", folder, "east-1");
  await notShipped("3", /the caller has proven to be stamp north-1 by its secret and east-1 by its certificate/);
  await issue(two, "geo-peer", "south-1", folder);
  await killProcess(two, "north-1", "partition-server-1");
  await shipped("3");
  // A lost primary's report, and the blobs that it names, are read over connections of the same kind.
  await primaryIsLost(t, two);
  // What releases before have issued says no stamp.
  for (const file of ["geo-peer.pem", "geo-peer-key.pem"]) rmSync(join(folder, file));
  await issue(two, "partition-server", "south-1", folder);
  await notShipped("4", /TLS|certificate|lost/);
});
