/**
 * `compose.ha.yml` on a real engine: clients write and read through the load balancer while the stamp's secret is rotated, and the active lock
 * service and one front-end are killed, one after the other, and none is brought back. Every write that was acknowledged is there, and writes go on
 * after each. The same over etcd, one of which is killed, too; there the stamp is also started as if it had none. Then the small stamp of
 * docker-compose.yml with `compose/secured.yml`. Skipped with a reason where no engine answers.
 *
 * Images of etcd and HAProxy: STAMP_ETCD_IMAGE and STAMP_HAPROXY_IMAGE, or what `compose.ha.yml` names, if the machine has them; else one image is
 * built from Debian's packages, because a machine without a registry can pull neither.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { BlobClient, CheckingClient } from "@stamp/drills";
import { run } from "../tools/commands.ts";

const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const machineCa = "/etc/ssl/certs/ca-certificates.crt";
const id = `stamp-ha-${process.pid}`;
const image = `${id}-image`;
/** Writes that begin and are acknowledged after each kill before the next one. */
const writesAfterKill = 50;
const skip = (await run("docker", ["info"])).code === 0 ? undefined : "no Docker engine answers here";
const options = skip === undefined ? { timeout: 400_000 } : { skip };

let environment: Record<string, string> = {};

interface Status {
  readonly ready: boolean;
  readonly processes: readonly {
    readonly name: string;
    readonly state: string;
    readonly ready: boolean;
    readonly waitingFor: readonly string[];
  }[];
  readonly extents: readonly { readonly nodeIds: readonly string[] }[];
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A stamp of compose files, under a name of its own. */
class ComposeStamp {
  readonly #project: string;
  readonly #files: readonly string[];
  readonly #extra: Readonly<Record<string, string>>;

  constructor(project: string, files: readonly string[], extra: Readonly<Record<string, string>> = {}) {
    this.#project = project;
    this.#files = files.flatMap((file) => ["-f", file]);
    this.#extra = extra;
  }

  async do(...args: readonly string[]): Promise<string> {
    const variables = Object.entries({ ...environment, ...this.#extra }).map(([name, value]) => `${name}=${value}`);
    const { code, output } = await run("env", [...variables, "docker", "compose", ...this.#files, "-p", this.#project, ...args]);
    if (code !== 0) throw new Error(`docker compose ${args.join(" ")}: ${output.slice(-3_000)}`);
    return output;
  }

  /** Exit code 4 says only that not everything is ready. */
  async status(): Promise<Status> {
    return JSON.parse(await this.do("exec", "-T", "front-end-1", "sh", "-c", "stamp status --json || [ $? = 4 ]")) as Status;
  }

  /** Waits until every process says that it is ready: a container is healthy before its neighbours have seen it. */
  async untilReady(): Promise<Status> {
    for (const endMs = performance.now() + 90_000; ; await sleep(1_000)) {
      const status = await this.status();
      if (status.ready) return status;
      assert.ok(performance.now() < endMs, `not ready within 90 s: ${JSON.stringify(status.processes)}`);
    }
  }

  async up(): Promise<void> {
    await this.do("up", "-d", "--no-build", "--wait");
  }

  async kill(service: string): Promise<void> {
    const { code, output } = await run("docker", ["kill", this.container(service)]);
    assert.equal(code, 0, output);
  }

  container(service: string): string {
    return `${this.#project}-${service}-1`;
  }

  /** Names of the containers' services that run. */
  async running(): Promise<string[]> {
    return (await this.do("ps", "--format", "{{.Service}}")).trim().split("\n");
  }

  async down(): Promise<void> {
    await this.do("down", "-v", "--timeout", "1");
  }
}

const ha = new ComposeStamp(id, ["compose.ha.yml"]);
const overEtcd = new ComposeStamp(`${id}-etcd`, ["compose.ha.yml"], { COMPOSE_PROFILES: "etcd", STAMP_METADATA_STORE: "etcd" });
/** The stamp over etcd, as a person starts it who does not say so. */
const unsaid = new ComposeStamp(`${id}-etcd`, ["compose.ha.yml"]);
const small = new ComposeStamp(`${id}-small`, ["docker-compose.yml", "compose/secured.yml"]);
const clientOf = (): BlobClient =>
  new BlobClient({ endpoint: `http://127.0.0.1:${environment.STAMP_BLOB_PORT}/devstoreaccount1`, account: "devstoreaccount1", key });

/** The image that compose.ha.yml names, if it is here; else one made of Debian's packages. */
async function imagesOfOthers(): Promise<Record<string, string>> {
  const named = { STAMP_ETCD_IMAGE: process.env.STAMP_ETCD_IMAGE, STAMP_HAPROXY_IMAGE: process.env.STAMP_HAPROXY_IMAGE };
  if (named.STAMP_ETCD_IMAGE !== undefined && named.STAMP_HAPROXY_IMAGE !== undefined) return named as Record<string, string>;
  const tag = "stamp-test-etcd-haproxy";
  if ((await run("docker", ["image", "inspect", tag])).code !== 0) {
    const build = ["build", "-q", "-t", tag, "-f", "compose/test-images.Dockerfile", "compose"];
    const { code, output } = await run("docker", build);
    assert.equal(code, 0, output);
  }
  return { STAMP_ETCD_IMAGE: tag, STAMP_HAPROXY_IMAGE: tag };
}

/** Waits until enough writes that began after a moment are acknowledged, and until 8 s have gone: a lease term and two seconds (issue 30). */
async function untilWritten(checking: CheckingClient, sinceMs: number): Promise<void> {
  const enough = (): boolean => checking.times.filter(({ startMs }) => startMs > sinceMs).length >= writesAfterKill;
  while (performance.now() < sinceMs + 8_000 || !enough()) {
    assert.ok(performance.now() < sinceMs + 90_000, `${writesAfterKill} writes were not acknowledged within 90 s`);
    await sleep(200);
  }
}

/** By the command of docs/guides/internal-ports.md; every process is ready afterwards. */
async function rotateSecret(stamp: ComposeStamp): Promise<void> {
  const secret = (): Promise<string> => stamp.do("exec", "-T", "front-end-1", "sha256sum", "/secret/cluster-secret");
  const old = await secret();
  await stamp.do("exec", "-T", "front-end-1", "stamp", "secret", "rotate");
  assert.notEqual(await secret(), old);
  await stamp.untilReady();
}

/** Waits until exactly these processes are not ready, with these states: one that did not answer in time is unknown, and is asked again. */
async function untilNotReady(stamp: ComposeStamp, expected: readonly string[]): Promise<void> {
  for (const endMs = performance.now() + 60_000; ; await sleep(1_000)) {
    const { processes } = await stamp.status();
    const notReady = processes.filter(({ ready }) => !ready).map(({ name, state }) => `${name}: ${state}`);
    if (isDeepStrictEqual(notReady.sort(), expected.toSorted())) return;
    console.log(`not ready: ${notReady.join(", ")}`);
    if (performance.now() > endMs) assert.deepEqual(notReady, expected.toSorted());
  }
}

before(
  async () => {
    if (skip !== undefined) return;
    const [blob, queue, table, file, dfs] = [await freePort(), await freePort(), await freePort(), await freePort(), await freePort()];
    environment = {
      STAMP_IMAGE: image,
      STAMP_BLOB_PORT: String(blob),
      STAMP_QUEUE_PORT: String(queue),
      STAMP_TABLE_PORT: String(table),
      STAMP_FILE_PORT: String(file),
      STAMP_DFS_PORT: String(dfs),
      ...(existsSync(machineCa) ? { STAMP_BUILD_CA: machineCa } : {}),
      ...(await imagesOfOthers()),
    };
    await ha.do("build", "-q");
    await ha.up();
  },
  { timeout: 300_000 },
);
after(async () => {
  if (skip !== undefined) return;
  for (const stamp of [ha, overEtcd, small]) await stamp.down();
  await run("docker", ["image", "rm", image]);
});

test("compose ha, containers, have no rights, write to their volumes only, and are bounded in memory and logs", options, async () => {
  const services = await ha.running();
  assert.equal(services.length, 3 + 4 + 2 + 2 + 3 + 2 + 1, services.join());
  for (const service of services) {
    const { output } = await run("docker", ["inspect", "--format", "{{json .HostConfig}}", ha.container(service)]);
    const host = JSON.parse(output) as Record<string, unknown> & { LogConfig: { Config: Record<string, string> } };
    assert.deepEqual([host.ReadonlyRootfs, host.CapDrop, host.SecurityOpt], [true, ["ALL"], ["no-new-privileges:true"]], service);
    assert.ok(Number(host.Memory) > 0 && host.LogConfig.Config["max-size"] === "10m", service);
  }
  // Each container has its own certificate and no other; the key of the authority is in none.
  const files = async (service: string) => (await ha.do("exec", "-T", service, "ls", "/data/cluster-certs")).trim().split("\n");
  assert.deepEqual(await files("extent-node-2"), ["ca.pem", "extent-node-2-key.pem", "extent-node-2.pem"]);
  assert.ok(!(await files("front-end-1")).includes("ca-key.pem"));
});

/** Name of the lock service that serves. */
function activeIn({ processes }: Status): string {
  const active = processes.find(({ name, state }) => name.startsWith("lock-service") && state === "serving")?.name;
  assert.ok(active !== undefined, JSON.stringify(processes));
  return active;
}

/** Kills one service after another under clients: every promise is kept, and writes go on after each. */
async function killUnderClients(stamp: ComposeStamp, services: readonly string[], between = async (): Promise<void> => {}): Promise<void> {
  const client = clientOf();
  const checking = new CheckingClient({ client, container: "standbys" });
  await checking.start();
  await untilWritten(checking, performance.now());
  await between();
  await untilWritten(checking, performance.now());
  for (const service of services) {
    await stamp.kill(service);
    const killedMs = performance.now();
    await untilWritten(checking, killedMs);
    const later = checking.times.filter(({ endMs }) => endMs > killedMs);
    const longest = Math.max(...later.map(({ startMs, endMs }) => endMs - startMs));
    console.log(`${service}: writes were held up ${Math.round(longest)} ms at most; ${later.length} afterwards`);
  }
  await checking.stop(30_000);
  const report = await checking.verify();
  client.close();
  assert.deepEqual(report.broken, []);
  assert.ok(report.readBack > writesAfterKill, `${report.readBack} blobs read back`);
}

test(
  "compose ha, the active lock service and a front-end are killed under clients: every promise kept, and writes go on",
  options,
  async () => {
    const before = await ha.untilReady();
    assert.equal(before.processes.length, 16);
    const active = activeIn(before);
    await killUnderClients(ha, [active, "front-end-2"], () => rotateSecret(ha));
    const start = (name: string) => `${name}: down; start it: docker compose -f compose.ha.yml -p ${id} up -d ${name}`;
    await untilNotReady(ha, [start(active), start("front-end-2")]);
  },
);

test(
  "compose ha over etcd, one of which is killed: writes go on; started without saying so it begins no other stamp, and nothing is lost",
  options,
  async () => {
    await ha.down();
    await overEtcd.up();
    await killUnderClients(overEtcd, ["etcd-2", activeIn(await overEtcd.untilReady())]);
    const client = clientOf();
    const put = await client.put("standbys", "kept", Buffer.alloc(1_000, "x"));
    assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
    await overEtcd.do("stop");
    await unsaid.do("up", "-d", "--no-build", "lock-service-1", "lock-service-2", "lock-service-3", "front-end-1");
    for (const endMs = performance.now() + 60_000; ; await sleep(1_000)) {
      const waits = (await unsaid.status()).processes.find(({ name }) => name === "lock-service-1")?.waitingFor.join() ?? "";
      if (/served metadata in etcd before, and no new stamp is begun/.test(waits)) break;
      assert.ok(performance.now() < endMs, waits);
    }
    await unsaid.do("stop");
    await overEtcd.up();
    await overEtcd.untilReady();
    const got = await client.get("standbys", "kept");
    assert.ok(got.kind === "answer" && got.status === 200, JSON.stringify(got));
    client.close();
  },
);

test(
  "docker-compose.yml with compose/secured.yml: serves with certificates, and the key of the account lies on no disk",
  options,
  async () => {
    await overEtcd.down();
    await small.up();
    assert.equal((await small.untilReady()).processes.length, 14);
    await rotateSecret(small);
    const client = clientOf();
    const made = await client.createContainer("secured");
    const put = await client.put("secured", "b", Buffer.alloc(100_000, "x"));
    const got = await client.get("secured", "b");
    client.close();
    assert.deepEqual(
      [made, put, got].map((each) => (each.kind === "answer" ? each.status : each.kind)),
      [201, 201, 200],
    );
    // The account's key in its two forms: in the row as bytes, in a setting as text.
    const search = `LC_ALL=C grep -rlaF -e '${key}' /data | head`;
    for (const node of [1, 2, 3, 4]) assert.equal((await small.do("exec", "-T", `extent-node-${node}`, "sh", "-c", search)).trim(), "");
    // A process without a certificate is refused: the same status without TLS.
    await assert.rejects(small.do("exec", "-T", "-e", "STAMP_TLS=off", "front-end-1", "stamp", "account", "list"));
    assert.match(await small.do("exec", "-T", "front-end-1", "stamp", "account", "list"), /devstoreaccount1/);
  },
);
