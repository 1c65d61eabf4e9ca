/**
 * The Helm chart, rendered by Helm's own engine (a Go program of the Go module proxy, tests/helm/go) and decoded strictly into the types of the
 * Kubernetes API. Skipped with a reason where Go or its modules are missing.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root, run } from "../tools/commands.ts";

const chart = join(root, "deploy/helm/stamp");
const folder = mkdtempSync(join(tmpdir(), "stamp-helm-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const smallest = { accounts: { existingSecret: "accounts" } };
const overEtcd = { ...smallest, etcd: { endpoints: ["etcd:2379"] } };
let skip: string | undefined;

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}
interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly [Container];
        readonly volumes: readonly { readonly secret?: { readonly secretName: string } }[];
      };
    };
  };
}

before(
  async () => {
    cpSync(join(import.meta.dirname, "go"), folder, { recursive: true });
    const { code, output } = await run("go", ["-C", folder, "build", "-o", "render", "."], { timeoutMs: 600_000 });
    if (code !== 0) skip = `Helm's engine can't be built here: ${output.trim().split("\n").at(-1)}`;
  },
  { timeout: 620_000 },
);

/** `there`: an object that the cluster has already. */
async function rendered(
  values: string | object,
  there?: Rendered,
): Promise<{ code: number; output: string; objects: readonly Rendered[] }> {
  const path = typeof values === "string" ? join(chart, "ci", values) : join(folder, "values.yaml");
  if (typeof values !== "string") writeFileSync(path, JSON.stringify(values));
  const object = join(folder, "there.json");
  if (there !== undefined) writeFileSync(object, JSON.stringify(there));
  const { code, output } = await run(join(folder, "render"), [chart, path, ...(there === undefined ? [] : [object])]);
  return { code, output, objects: code === 0 ? (JSON.parse(output) as Rendered[]) : [] };
}

const setOf = (objects: readonly Rendered[], role: string): Rendered =>
  objects.find(({ kind, metadata }) => kind === "StatefulSet" && metadata.name === `shop-${role}`) as Rendered;
const environmentOf = ({ spec }: Rendered): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(spec.template.spec.containers[0].env.map(({ name, value }) => [name, value]));

test("chart, with the fewest values: every object is one of the API, and every role has its set, budget, and service", async (context) => {
  if (skip !== undefined) return context.skip(skip);
  const { code, output, objects } = await rendered("smallest.yaml");
  assert.equal(code, 0, output);
  const count = (wanted: string) => objects.filter(({ kind }) => kind === wanted).length;
  assert.deepEqual(["StatefulSet", "PodDisruptionBudget", "Service", "NetworkPolicy", "Secret"].map(count), [6, 6, 11, 2, 2]);
  assert.deepEqual(["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Job", "CronJob"].map(count), [1, 1, 1, 1, 1, 1]);
  for (const set of objects.filter(({ kind }) => kind === "StatefulSet"))
    assert.deepEqual(set.spec.template.spec.containers[0].securityContext, {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
  const lockServices = [0, 1, 2].map((i) => `shop-lock-service-${i}.shop-lock-service.storage.svc.cluster.local:11100`).join();
  assert.equal(environmentOf(setOf(objects, "front-end")).STAMP_LOCK_SERVICE, lockServices);
  const members = lockServices.split(",").map((address, i) => `lock-service-${i}=${address}`);
  const { STAMP_METADATA_STORE, STAMP_MEMBERS, STAMP_ETCD_ENDPOINTS } = environmentOf(setOf(objects, "lock-service"));
  assert.deepEqual([STAMP_METADATA_STORE, STAMP_MEMBERS, STAMP_ETCD_ENDPOINTS], ["replicated", members.join(), undefined]);
  // Nobody has to ask for TLS or for sealed keys.
  const mounted = (role: string) => setOf(objects, role).spec.template.spec.volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  assert.equal(environmentOf(setOf(objects, "front-end")).STAMP_TLS, "cluster");
  assert.equal(environmentOf(setOf(objects, "partition-server")).STAMP_MASTER_KEY_FILE, "/secrets/master-key/master-key");
  assert.deepEqual(mounted("partition-server"), ["shop-cluster-secret", "shop-certs-partition-server", "shop-master-key"]);
});

test("chart, with everything on: TLS, master key, etcd with users and certificates, HTTPS doors", async (context) => {
  if (skip !== undefined) return context.skip(skip);
  const { code, output, objects } = await rendered("everything.yaml");
  assert.equal(code, 0, output);
  assert.equal(objects.filter(({ kind }) => ["Secret", "Job", "CronJob", "Role"].includes(kind)).length, 0);
  const nodes = setOf(objects, "extent-node");
  assert.equal(nodes.spec.replicas, 6);
  const { STAMP_LOG_LEVEL, STAMP_TLS, STAMP_MASTER_KEY_FILE } = environmentOf(nodes);
  assert.deepEqual([STAMP_LOG_LEVEL, STAMP_TLS, STAMP_MASTER_KEY_FILE], ["debug", "cluster", undefined]);
  assert.equal(environmentOf(setOf(objects, "partition-server")).STAMP_MASTER_KEY_FILE, "/secrets/master-key/master-key");
  const lockService = environmentOf(setOf(objects, "lock-service"));
  assert.deepEqual([lockService.STAMP_METADATA_STORE, lockService.STAMP_MEMBERS], ["etcd", undefined]);
  assert.equal(lockService.STAMP_ETCD_PASSWORD_FILE, "/secrets/etcd/password");
  assert.equal(environmentOf(setOf(objects, "front-end")).STAMP_TLS_CERT, "/secrets/doors/tls.crt");
});

test("chart, an upgrade of a release: its metadata stay where they are, and values that say another place are refused", async (context) => {
  if (skip !== undefined) return context.skip(skip);
  const five = { ...smallest, roles: { "lock-service": { replicas: 5 } } };
  for (const [before, same, other, words] of [
    [overEtcd, overEtcd, smallest, /etcd\.endpoints: the metadata of this release are in etcd; give its endpoints as before/],
    [smallest, five, overEtcd, /etcd\.endpoints: the metadata of this release are replicated by its lock services; give none/],
  ] as const) {
    const there = setOf((await rendered(before)).objects, "lock-service");
    const upgraded = await rendered(same, there);
    assert.equal(upgraded.code, 0, upgraded.output);
    const moved = await rendered(other, there);
    assert.equal(moved.code, 1);
    assert.match(moved.output, words);
  }
});

test("chart, values that can't be right are refused with their name", async (context) => {
  if (skip !== undefined) return context.skip(skip);
  const wrongs: readonly [object, RegExp][] = [
    [{}, /existingSecret/],
    [{ ...overEtcd, etcd: { ...overEtcd.etcd, tls: true } }, /etcd/],
    [{ ...overEtcd, etcd: { endpoints: ["http://etcd:2379"] } }, /endpoints/],
    [{ ...smallest, roles: { "lock-service": { replicas: 2 } } }, /lock-service\.replicas: 2, and .* are 3 or 5/],
    [{ ...smallest, roles: { "extent-node": { replicas: 2 } } }, /replicas/],
    [{ ...smallest, mastrKey: {} }, /mastrKey/],
    [{ ...smallest, image: { digest: "latest" } }, /digest/],
  ];
  for (const [values, words] of wrongs) {
    const { code, output } = await rendered(values);
    assert.equal(code, 1, JSON.stringify(values));
    assert.match(output, words);
  }
});
