/**
 * `compose.geo.yml` on a real engine: an account with a copy at the other stamp, written and read by its own name and at `-secondary`, a planned
 * failover, and then the containers of the first stamp are killed: the second one serves alone. Skipped with a reason where no engine answers.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobClient } from "@stamp/drills";
import { root, run, runStamp } from "../tools/commands.ts";

const machineCa = "/etc/ssl/certs/ca-certificates.crt";
const id = `stamp-geo-${process.pid}`;
const skip = (await run("docker", ["info"])).code === 0 ? undefined : "no Docker engine answers here";
const options = skip === undefined ? { timeout: 400_000 } : { skip };
const ofLocation = ["--secret-file", "/secret/cluster-secret"];

let environment: Record<string, string> = {};

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Returns the standard output. */
async function compose(...args: readonly string[]): Promise<string> {
  const env = { ...process.env, ...environment };
  const program = ["docker", "compose", "-f", join(root, "compose.geo.yml"), "-p", id] as const;
  const { code, out, output } = await runStamp(args, { env, program });
  if (code !== 0) throw new Error(`docker compose ${args.join(" ")}: ${output.slice(-3_000)}`);
  return out;
}

/** Runs a command about accounts where the guide runs it. */
async function located<T>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await compose("exec", "-T", "location-service", "stamp", ...args, "--json", ...ofLocation)) as T;
}

interface Copy {
  readonly stamp: string;
  readonly secondary: string;
  readonly seeded: boolean;
  readonly pendingOperations: number | null;
  readonly shippingTrouble: string;
}

async function untilCopy(what: string, holds: (copy: Copy) => boolean): Promise<void> {
  for (const endMs = performance.now() + 120_000; ; await sleep(500)) {
    // A machine that is too busy for a connection within two seconds is asked again.
    const copy = await located<[Copy]>("geo", "status", "acme").then(
      ([one]) => one,
      (error: Error) => error,
    );
    if (!(copy instanceof Error) && holds(copy)) return;
    assert.ok(performance.now() < endMs, `not within 120 s: ${what}: ${copy instanceof Error ? copy.message : JSON.stringify(copy)}`);
  }
}

before(
  async () => {
    if (skip !== undefined) return;
    const names = ["BLOB", "QUEUE", "TABLE", "SOUTH_BLOB", "SOUTH_QUEUE", "SOUTH_TABLE"];
    const ports = new Map<string, string>();
    for (const name of names) ports.set(`STAMP_${name}_PORT`, String(await freePort()));
    environment = {
      ...Object.fromEntries(ports),
      STAMP_IMAGE: `${id}-image`,
      ...(existsSync(machineCa) ? { STAMP_BUILD_CA: machineCa } : {}),
    };
    await compose("build", "-q");
    await compose("up", "-d", "--no-build", "--wait");
  },
  { timeout: 300_000 },
);
after(async () => {
  if (skip !== undefined) return;
  await compose("down", "-v", "--timeout", "1");
  await run("docker", ["image", "rm", `${id}-image`]);
});

test(
  "compose geo, containers, have no rights, write to their volumes only, and see secrets of others only where they prove them",
  options,
  async () => {
    const containers = (await compose("ps", "--format", "{{.Name}}")).trim().split("\n");
    assert.equal(containers.length, 2 * 8 + 3, containers.join());
    const { output } = await run("docker", ["inspect", "--format", "{{json .HostConfig}}", ...containers]);
    for (const line of output.trim().split("\n")) {
      const host = JSON.parse(line) as Record<string, unknown>;
      assert.deepEqual([host.ReadonlyRootfs, host.CapDrop, host.SecurityOpt], [true, ["ALL"], ["no-new-privileges:true"]]);
    }
    const seen = async (service: string): Promise<string> =>
      (await compose("exec", "-T", service, "sh", "-c", "ls -d /*-secret* 2>&1 || true")).trim();
    assert.equal(await seen("north-partition-server-1"), "/south-secret\n/stamp-secrets");
    assert.match(await seen("north-front-end-1"), /No such file/);
  },
);

test(
  "compose geo, an account with a copy: read at the other stamp, failed over with nothing lost, and served when its first stamp is stopped",
  options,
  async () => {
    const stamps = await located<{ name: string }[]>("location", "stamps");
    assert.deepEqual(stamps.map(({ name }) => name).sort(), ["north-1", "south-1"]);
    const { keys } = await located<{ keys: readonly string[] }>("account", "create", "acme", "--location", "north", "--geo", "south");
    const clientAt = (port: string, name: string): BlobClient =>
      new BlobClient({ endpoint: `http://127.0.0.1:${environment[port]}/${name}`, account: "acme", key: keys[0] ?? "", timeoutMs: 30_000 });
    const clients = {
      north: clientAt("STAMP_BLOB_PORT", "acme"),
      copy: clientAt("STAMP_SOUTH_BLOB_PORT", "acme-secondary"),
      south: clientAt("STAMP_SOUTH_BLOB_PORT", "acme"),
    };
    const statusOf = async (asked: ReturnType<BlobClient["get"]>): Promise<number | string> => {
      const answer = await asked;
      return answer.kind === "answer" ? answer.status : answer.why;
    };
    const body = Buffer.alloc(300_000, "kept ");
    try {
      await untilCopy("a complete copy", ({ seeded }) => seeded);
      assert.equal(await statusOf(clients.north.createContainer("kept")), 201);
      assert.equal(await statusOf(clients.north.put("kept", "b", body)), 201);
      await untilCopy("an empty backlog", ({ seeded, pendingOperations }) => seeded && pendingOperations === 0);
      const copied = await clients.copy.get("kept", "b");
      assert.ok(copied.kind === "answer" && copied.status === 200 && copied.body.equals(body), JSON.stringify(copied).slice(0, 500));
      assert.equal(await statusOf(clients.copy.put("kept", "c", body)), 403);
      assert.equal(await statusOf(clients.south.put("kept", "c", body)), 503);

      await located("geo", "failover", "acme", "--planned", "--to", "south-1");
      assert.equal(await statusOf(clients.south.put("kept", "c", body)), 201);
      const north = (await compose("ps", "--services"))
        .trim()
        .split("\n")
        .filter((name) => name.startsWith("north-"));
      assert.equal(north.length, 8);
      await compose("kill", ...north);
      for (const name of ["b", "c"]) {
        const kept = await clients.south.get("kept", name);
        assert.ok(
          kept.kind === "answer" && kept.status === 200 && kept.body.equals(body),
          `${name}: ${JSON.stringify(kept).slice(0, 500)}`,
        );
      }
      assert.equal(await statusOf(clients.south.put("kept", "d", body)), 201);
    } finally {
      for (const client of Object.values(clients)) client.close();
    }
  },
);
