/**
 * A drill on the compose file: one container per process, an extent node killed by hand while clients write. Docker does not bring back
 * what a person killed, so the stamp lives without it, `stamp status` says how to bring it back, and then every copy is complete again.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { damageRoles, runDamageDrill } from "@stamp/cli";
import { reservePorts } from "@stamp/cluster";
import { attachCompose, BlobClient, CheckingClient, copyOfAllMetadata, type Drill, drills, runDrill } from "@stamp/drills";
import { DockerComposeEnvironment, type StartedDockerComposeEnvironment, Wait } from "testcontainers";
import { root, run } from "../tools/commands.ts";

// Where images can't be pulled the reaper's is not there; `after` removes everything.
process.env.TESTCONTAINERS_RYUK_DISABLED ??= "true";
process.env.TESTCONTAINERS_HOST_OVERRIDE ??= "127.0.0.1";

const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const machineCa = "/etc/ssl/certs/ca-certificates.crt";
const project = `stamp-drill-${process.pid}`;
const image = `${project}-image`;
const lockServices = ["lock-service-1", "lock-service-2", "lock-service-3"];
const processes = [
  ...lockServices,
  ...[1, 2, 3, 4].map((number) => `extent-node-${number}`),
  "stream-manager-1",
  "stream-manager-2",
  "partition-manager-1",
  "partition-manager-2",
  "partition-server-1",
  "partition-server-2",
  "front-end-1",
];

interface Status {
  readonly ready: boolean;
  readonly connectionString: string;
  readonly endpoints: Readonly<Record<string, string>>;
  readonly processes: readonly { readonly name: string; readonly state: string; readonly ready: boolean }[];
  readonly extents: readonly {
    readonly stream: string;
    readonly nodeIds: readonly string[];
    readonly intactCopies: number;
    readonly state: number;
  }[];
}

const sealed = 4;
let environment: Record<string, string>;
let stamp: StartedDockerComposeEnvironment | undefined;

async function compose(...args: string[]): Promise<string> {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const { code, output } = await run("env", [...variables, "docker", "compose", "-p", project, ...args]);
  if (code !== 0) throw new Error(`docker compose ${args.join(" ")}: ${output.slice(-2_000)}`);
  return output;
}

const inContainer = (service: string, script: string): Promise<string> => compose("exec", "-T", service, "sh", "-c", script);

/** Exit code 4 says only that not everything is ready. */
const status = async (): Promise<Status> =>
  JSON.parse(await compose("exec", "-T", "front-end-1", "sh", "-c", "stamp status --json || [ $? = 4 ]")) as Status;

async function until(what: string, condition: (now: Status) => boolean): Promise<Status> {
  const untilMs = performance.now() + 60_000;
  for (;;) {
    const now = await status();
    if (condition(now)) return now;
    assert.ok(performance.now() < untilMs, `${what}: not within a minute\n${JSON.stringify(now.processes, null, 1)}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Waits until a copy of the metadata on a node has every transaction: an extent that is made after it is lost by a restore. */
async function newestCopy(): ReturnType<typeof copyOfAllMetadata> {
  const target = await attachCompose({ project, variables: environment });
  try {
    return await copyOfAllMetadata(target);
  } finally {
    await target.close();
  }
}

/** Returns the time at which the container was started last, in RFC 3339 with nanoseconds: such times compare as text. */
const startedAt = async (service: string): Promise<string> =>
  (await run("docker", ["inspect", "--format", "{{.State.StartedAt}}", `${project}-${service}-1`])).output.trim();

/** Removes the volume of a process that is stopped. */
async function lose(name: string): Promise<void> {
  await compose("rm", "-f", name);
  await run("docker", ["volume", "rm", `${project}_${name}`]);
}

before(async () => {
  const { portBase } = await reservePorts();
  environment = {
    // Its own, so that whoever else builds here builds another.
    STAMP_IMAGE: image,
    STAMP_BLOB_PORT: String(portBase),
    STAMP_QUEUE_PORT: String(portBase + 1),
    STAMP_TABLE_PORT: String(portBase + 2),
    STAMP_FILE_PORT: String(portBase + 3),
    STAMP_DFS_PORT: String(portBase + 4),
    ...(existsSync(machineCa) ? { STAMP_BUILD_CA: machineCa } : {}),
  };
  await compose("build");
  let described = new DockerComposeEnvironment(root, "docker-compose.yml")
    .withProjectName(project)
    .withEnvironment(environment)
    .withStartupTimeout(120_000);
  for (const name of processes) described = described.withWaitStrategy(`${name}-1`, Wait.forHealthCheck());
  stamp = await described.up();
});

after(async () => {
  await stamp?.down({ removeVolumes: true, timeout: 20_000 });
  await run("docker", ["image", "rm", image]);
});

test("compose, image, is without package managers, sources and tests", async () => {
  const left =
    "which npm npx pnpm yarn corepack apt-get perl; ls -d /stamp/packages /stamp/node_modules; find /stamp -name '*.ts' ! -name '*.d.ts'";
  assert.equal((await inContainer("front-end-1", `{ ${left}; } 2>/dev/null || true`)).trim(), "");
});

test("compose, containers, have no rights, write to their volumes only, and are bounded in memory and logs", async () => {
  for (const name of processes) {
    const { output } = await run("docker", ["inspect", "--format", "{{json .HostConfig}}", `${project}-${name}-1`]);
    const host = JSON.parse(output) as Record<string, unknown> & { LogConfig: { Config: Record<string, string> } };
    assert.deepEqual([host.ReadonlyRootfs, host.CapDrop, host.SecurityOpt], [true, ["ALL"], ["no-new-privileges:true"]], name);
    assert.ok(Number(host.Memory) > 0 && host.LogConfig.Config["max-size"] === "10m", name);
  }
  assert.equal(
    (await inContainer("front-end-1", "touch /stamp/x 2>/dev/null || echo refused; id -un; touch /tmp/x && echo there")).trim(),
    "refused\nnode\nthere",
  );
});

test("compose, status, shows endpoints and a connection string that follow the published ports", async () => {
  const { endpoints, connectionString } = await status();
  const at = (port: string | undefined): string => `http://127.0.0.1:${port}/devstoreaccount1`;
  const { STAMP_BLOB_PORT: blob, STAMP_QUEUE_PORT: queue, STAMP_TABLE_PORT: table, STAMP_FILE_PORT: file } = environment;
  assert.deepEqual(endpoints, { blob: at(blob), queue: at(queue), table: at(table), file: at(file) });
  const client = BlobClient.fromConnectionString(connectionString);
  const made = await client.createContainer("by-status");
  client.close();
  assert.ok(made.kind === "answer" && made.status === 201, JSON.stringify(made));
});

test("compose, a drill of the list on the containers: every promise kept", { timeout: 500_000 }, async () => {
  const target = await attachCompose({ project, variables: environment });
  try {
    const nodes = processes.filter((name) => name.startsWith("extent-node"));
    const startedBefore = new Map(await Promise.all(nodes.map(async (name) => [name, await startedAt(name)] as const)));
    const drill = drills.find(({ name }) => name === "kill-primary") as Drill;
    const report = await runDrill(drill, target, { onEntry: ({ atMs, what }) => console.log(`  ${atMs} ms: ${what}`) });
    console.log(report.conclusion);
    assert.deepEqual(report.broken, []);
    // Container that the drill killed. Docker may start it again between two looks of the watch, so Docker is asked.
    const killed = report.timeline.map(({ what }) => /^kill -9 (extent-node-\d)/.exec(what)?.[1]).find((name) => name !== undefined);
    assert.ok(killed !== undefined, JSON.stringify(report.timeline));
    await until(`${killed} is started again`, (now) => now.processes.some(({ name, ready }) => name === killed && ready));
    assert.ok((await startedAt(killed)) > (startedBefore.get(killed) ?? ""), `${killed} was not started again`);
    assert.ok(
      report.timeline.some(({ what }) => what.startsWith("sealed: extent ")),
      JSON.stringify(report.timeline),
    );
  } finally {
    await target.close();
  }
  const { output } = await run("docker", ["ps", "--filter", `label=com.docker.compose.project=${project}`, "--format", "{{.Names}}"]);
  assert.equal(output.trim().split("\n").length, processes.length, `the relay is gone: ${output}`);
});

test("compose, the drill damage: kinds that are done while a container runs, while it is down, and to the lock service", {
  timeout: 500_000,
}, async () => {
  const target = await attachCompose({ project, variables: environment, roles: damageRoles });
  try {
    const report = await runDamageDrill(target, console.log, (name) =>
      /one bit of a sealed|fsck --rebuild|one bit of a lock service/.test(name),
    );
    assert.deepEqual(report.broken, []);
    assert.equal(report.steps.length, 3);
    const said = report.steps.map((step) => step.said.join());
    assert.match(said[0] ?? "", /damagedReplica extent-node-\d/);
    // The replica of the kind before may wait for its deletion: it is the only one that the new table calls damaged, and it was so before.
    assert.match(said[1] ?? "", /rebuilt: \d+ extents, ([01]) damaged,afterwards: \1 problems/);
    assert.match(said[2] ?? "", /lock-service-1 serves from stores\/consensus-2\//);
  } finally {
    await target.close();
  }
  await until("the containers are as in the compose file, and ready", (now) => now.ready);
});

test("compose, docker kill of an extent node under writing clients: every promise kept, and it is brought back by hand", {
  timeout: 500_000,
}, async () => {
  const endpoint = `http://127.0.0.1:${environment.STAMP_BLOB_PORT}/devstoreaccount1`;
  const client = new BlobClient({ endpoint, account: "devstoreaccount1", key });
  const checking = new CheckingClient({ client, container: "drill" });
  await checking.start();
  await new Promise((resolve) => setTimeout(resolve, 3_000));

  const written = (await status()).extents.filter(
    (extent) => extent.stream.endsWith("commit-log") && extent.stream.includes("blob") && extent.state !== sealed,
  );
  const killed = written.at(-1)?.nodeIds[0];
  assert.ok(killed !== undefined, "the commit log of the blobs has an open extent");
  await run("docker", ["kill", `${project}-${killed}-1`]);
  const faultMs = performance.now();
  const without = await until("status names the node that is down", (now) =>
    now.processes.some((each) => each.name === killed && !each.ready),
  );
  const state = without.processes.find((each) => each.name === killed)?.state ?? "";
  assert.match(state, new RegExp(`^down; start it: docker compose -f docker-compose.yml -p ${project} up -d ${killed}$`));
  await new Promise((resolve) => setTimeout(resolve, 8_000));

  await compose("up", "-d", "--no-build", killed);
  await until("everything is ready again", (now) => now.ready);
  await checking.stop(30_000);
  await until("every extent has its copies", (now) =>
    now.extents.every((extent) => extent.state !== sealed || extent.intactCopies >= extent.nodeIds.length),
  );

  const report = await checking.verify();
  client.close();
  assert.deepEqual(report.broken, []);
  const afterFault = checking.times.filter((each) => each.endMs > faultMs);
  assert.ok(afterFault.length > 0, "writes went on after the kill");
  const longest = Math.max(...afterFault.map((each) => each.endMs - each.startMs));
  console.log(`writes were held up ${Math.round(longest)} ms at most; ${report.readBack} blobs read back`);
});

test("compose, the volumes of all lock services are lost: a restore from a node's copy brings every blob back; it is refused while one runs", {
  timeout: 500_000,
}, async () => {
  const endpoint = `http://127.0.0.1:${environment.STAMP_BLOB_PORT}/devstoreaccount1`;
  const client = new BlobClient({ endpoint, account: "devstoreaccount1", key, timeoutMs: 60_000 });
  await client.createContainer("kept");
  const bodyOf = (number: number): Buffer => Buffer.alloc(20_000, `blob ${number} `);
  for (let number = 0; number < 20; number++) {
    const put = await client.put("kept", `b${number}`, bodyOf(number));
    assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
  }
  const folder = mkdtempSync(join(tmpdir(), "stamp-compose-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "copy.snapshot");
  const { node, path } = await newestCopy();
  await compose("cp", `${node}:/data/${path}`, file);
  // The container's user is not root.
  chmodSync(file, 0o644);
  const restore = (name: string): Promise<string> =>
    compose("run", "--rm", "--no-deps", "-T", "-v", `${file}:/copy:ro`, name, "stamp", "metadata", "restore", "--replace", "/copy");
  await assert.rejects(restore("lock-service-1"), /its lock service runs: stop it first/);
  await compose("stop");
  for (const name of lockServices) await lose(name);
  const [first = "", ...others] = lockServices;
  for (const name of others) assert.match(await restore(name), /takes everything from the others/);
  assert.match(await restore(first), /restored: the metadata of stamp .*now start the stamp/);
  await compose("up", "-d", "--no-build", "--wait");
  await until("everything is ready again", (now) => now.ready);
  for (let number = 0; number < 20; number++) {
    const got = await client.get("kept", `b${number}`);
    assert.ok(got.kind === "answer" && got.status === 200 && got.body.equals(bodyOf(number)), `b${number}: ${JSON.stringify(got)}`);
  }
  const put = await client.put("kept", "after", bodyOf(99));
  assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
  client.close();
});

test("compose, the volume of a lock service is lost: nobody types a command, and every blob is there", {
  timeout: 500_000,
}, async () => {
  const endpoint = `http://127.0.0.1:${environment.STAMP_BLOB_PORT}/devstoreaccount1`;
  const client = new BlobClient({ endpoint, account: "devstoreaccount1", key, timeoutMs: 60_000 });
  const body = Buffer.alloc(20_000, "not lost ");
  await client.createContainer("lost");
  const put = await client.put("lost", "b", body);
  assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
  for (const name of lockServices) {
    await compose("stop");
    await lose(name);
    await compose("up", "-d", "--no-build", "--wait");
    await until("everything is ready again", (now) => now.ready);
    const got = await client.get("lost", "b");
    assert.ok(got.kind === "answer" && got.status === 200 && got.body.equals(body), `${name}: ${JSON.stringify(got)}`);
  }
  client.close();
});
