import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { extentNodeSchema } from "@stamp/extent-node";
import { frontEndConfigSchema } from "@stamp/front-end";
import { lockServiceSchema } from "@stamp/lock-service";
import { partitionManagerConfigSchema } from "@stamp/partition-manager";
import { partitionServerConfigSchema } from "@stamp/partition-server";
import { describeKeys, loadConfig as loadRoleConfig } from "@stamp/ports-node";
import { streamManagerSchema } from "@stamp/stream-manager";
import { clusterConfigSchema, configKeys, environmentName, flagName, loadConfig } from "./config.ts";
import { planCluster } from "./plan-cluster.ts";
import { ConfigError } from "./start-error.ts";

const root = mkdtempSync(join(tmpdir(), "stamp-config-"));
after(() => rmSync(root, { recursive: true, force: true }));

const from = (values: unknown, environment: Record<string, string> = {}, flags: Record<string, unknown> = {}) => {
  const file = join(root, "stamp.config.json");
  writeFileSync(file, JSON.stringify(values));
  return loadConfig({ directory: "/somewhere", root, environment, flags });
};

test("config, nothing said: three lock services replicate the metadata store, and are told one another's names and addresses", () => {
  assert.throws(() => from({ lockServices: 2 }), /lockServices: 2 survive no more losses than 1/);
  const plan = planCluster(from({}));
  const members = "lock-service-1=127.0.0.1:10100,lock-service-2=127.0.0.1:10112,lock-service-3=127.0.0.1:10113";
  assert.equal(plan.lockService, "127.0.0.1:10100,127.0.0.1:10112,127.0.0.1:10113");
  for (const { role, environment } of plan.processes) {
    const own = role === "lock-service";
    const told = [environment.STAMP_METADATA_STORE, environment.STAMP_MEMBERS, environment.STAMP_LOCK_SERVICE];
    assert.deepEqual(told, own ? ["replicated", members, undefined] : [undefined, undefined, plan.lockService]);
  }
});

test("config: one lock service has a store alone, and as many as are asked for share etcd", () => {
  const own = { roles: { "lock-service": { metadataStore: "leveldb" } } };
  for (const values of [{ lockServices: 1 }, { lockServices: 1, ...own }]) {
    const [only, next] = planCluster(from(values)).processes;
    assert.deepEqual([next?.role, only?.environment.STAMP_MEMBERS], ["extent-node", undefined]);
    assert.ok(only?.environment.STAMP_METADATA_STORE !== "replicated");
  }
  assert.throws(() => from({ lockServices: 3, ...own }), /lockServices: 3 can't share one store: say lockServices 1/);
  const etcd = { "lock-service": { metadataStore: "etcd", etcdEndpoints: "127.0.0.1:2379" } };
  const plan = planCluster(from({ lockServices: 2, roles: etcd }));
  assert.equal(plan.lockService, "127.0.0.1:10100,127.0.0.1:10112");
  assert.equal(plan.processes[0]?.environment.STAMP_MEMBERS, undefined);
});

test("config: members of etcd that can't be called are refused before anything starts, each with the reason", () => {
  const at = (etcdEndpoints: string) => from({ roles: { "lock-service": { metadataStore: "etcd", etcdEndpoints } } });
  for (const right of ["etcd-0.etcd:2379", " 10.0.0.1:2379 , [fd00::1]:2379,", "a_b:1"]) assert.ok(at(right));
  const wrong = {
    "http://10.0.0.1:2379": /roles\.lock-service\.etcdEndpoints: http:..10\.0\.0\.1:2379: host:port, without http:/,
    "a:2379,https://b:2379": /https:..b:2379: host:port, without https:/,
    "10.0.0.1": /10\.0\.0\.1: host:port/,
    "a:2379;b:2379": /a:2379;b:2379: host:port/,
    "fd00::1:2379": /in brackets/,
    "a:99999,b:0": /a:99999: ports are 1 to 65535; b:0: ports are 1 to 65535/,
  };
  for (const [list, message] of Object.entries(wrong)) assert.throws(() => at(list), message, list);
});

test("configuration, front-ends that drain for longer than a process may take to stop: refused", () => {
  const roles = { "front-end": { stopNotReadyMs: 5_000, stopDrainMs: 30_000 } };
  assert.throws(() => from({ roles }), /stopTimeoutMs: front-ends take 35000 ms to stop .*killed after 8000/);
  assert.equal(from({ roles, stopTimeoutMs: 60_000 }).stopTimeoutMs, 60_000);
});

test("configuration, nothing given: the defaults, data inside the repository", () => {
  const config = from({});
  assert.equal(config.extentNodes, 4);
  assert.equal(config.dataDir, join(root, ".stamp"));
});

test("configuration, flag over environment over file; a folder is meant from where it was written", () => {
  assert.equal(from({ portBase: 1_000 }).portBase, 1_000);
  assert.equal(from({ portBase: 1_000 }, { STAMP_PORT_BASE: "2000" }).portBase, 2_000);
  assert.equal(from({ portBase: 1_000 }, { STAMP_PORT_BASE: "2000" }, { portBase: "3000" }).portBase, 3_000);
  assert.equal(from({ dataDir: "x" }).dataDir, join(root, "x"));
  assert.equal(from({ dataDir: "x" }, {}, { dataDir: "y" }).dataDir, "/somewhere/y");
});

test("configuration, bind: the REST doors; internal ports only if the address is of loopback, also over a source before it", () => {
  const bound = (...given: Parameters<typeof from>): string[] => {
    const { httpBind, internalBind } = from(...given);
    return [httpBind, internalBind];
  };
  assert.deepEqual(bound({}), ["127.0.0.1", "127.0.0.1"]);
  assert.deepEqual(bound({ bind: "0.0.0.0" }), ["0.0.0.0", "127.0.0.1"]);
  assert.deepEqual(bound({}, { STAMP_BIND: "10.1.2.3" }), ["10.1.2.3", "127.0.0.1"]);
  assert.deepEqual(bound({}, {}, { bind: "127.0.0.2" }), ["127.0.0.2", "127.0.0.2"]);
  assert.deepEqual(bound({ httpBind: "0.0.0.0", internalBind: "0.0.0.0" }, {}, { bind: "::1" }), ["::1", "::1"]);
  assert.deepEqual(bound({ bind: "10.1.2.3", internalBind: "10.9.9.9" }), ["10.1.2.3", "10.9.9.9"]);
  assert.deepEqual(bound({}, { STAMP_BIND: "10.1.2.3", STAMP_HTTP_BIND: "10.2.2.2" }), ["10.2.2.2", "127.0.0.1"]);
  assert.deepEqual(bound({}, { STAMP_HTTP_BIND: "10.2.2.2" }, { bind: "10.1.2.3", internalBind: "::1" }), ["10.1.2.3", "::1"]);
  assert.throws(() => from({ bind: 7 }), /bind in .*stamp\.config\.json:1: /);
});

test("configuration, structured keys by environment: JSON", () => {
  assert.deepEqual(from({}, { STAMP_FAULT_DOMAINS: '["a","b"]' }).faultDomains, ["a", "b"]);
  assert.throws(() => from({}, { STAMP_FAULT_DOMAINS: "[" }), /STAMP_FAULT_DOMAINS: not JSON/);
});

test("configuration, erasureCoding: a word or an object, taken by the stream manager as it was given; wrong ones are refused by both", () => {
  const taken = (value: unknown) => {
    const { processes } = planCluster(from({ erasureCoding: value }));
    const text = processes.find(({ role }) => role === "stream-manager")?.environment.STAMP_ERASURE_CODING;
    return loadRoleConfig(streamManagerSchema, { STAMP_ERASURE_CODING: text ?? "" }, []).erasureCoding;
  };
  assert.equal(taken("off"), "off");
  assert.equal(taken(undefined), "auto");
  for (const profile of ["auto", "rs-4-2", "rs-6-3", "rs-10-4", "lrc-12-2-2"]) {
    assert.deepEqual(taken({ profile, afterSeconds: 0 }), { profile, afterSeconds: 0, minBytes: 16 * 1024 * 1024 });
  }
  assert.equal(from({}, { STAMP_ERASURE_CODING: "off" }).erasureCoding, "off");
  assert.deepEqual(from({}, {}, { erasureCoding: '{"minBytes":5}' }).erasureCoding, { minBytes: 5 });
  for (const wrong of ["on", "rs-4-2", { profile: "rs-1-1" }, { afterSeconds: -1 }, { minBytes: 0 }, { after: 1 }, 5]) {
    assert.throws(() => from({ erasureCoding: wrong }), /erasureCoding.* in .*stamp\.config\.json:1: /, JSON.stringify(wrong));
    assert.ok(!streamManagerSchema.shape.erasureCoding.safeParse(wrong).success, JSON.stringify(wrong));
  }
});

test("configuration, wrong values: refused with the key and where it came from", () => {
  const cases: [() => unknown, RegExp][] = [
    [() => from({ extentNodes: "many" }), /extentNodes in .*stamp\.config\.json:1: /],
    [() => from({}, { STAMP_EXTENT_NODES: "0" }), /STAMP_EXTENT_NODES: /],
    [() => from({}, {}, { portBase: "x" }), /--port-base: /],
    [() => from({ extentNode: 3 }), /extentNode in .*stamp\.config\.json:1: no such key/],
    [() => from({ minCopies: 4 }), /minCopies: 4 is more than copies/],
    [() => from({ extentNodes: 1 }), /extentNodes: 1 is fewer than minCopies/],
    [() => from({ leaseTermMs: 1_500 }), /leaseTermMs: must be longer/],
    [() => from({ accounts: [{ name: "Bad", keys: ["QQ=="] }] }), /accounts\.0\.name in .*stamp\.config\.json:1: 3 to 24/],
    [() => from({}, { STAMP_ACCOUNTS: '[{"name":"Bad","keys":["QQ=="]}]' }), /STAMP_ACCOUNTS\.0\.name: 3 to 24/],
    [() => from({ roles: { "extent-nodes": {} } }), /roles in /],
    [() => from({ otlpEndpoint: "http://user:password@127.0.0.1:4318" }), /otlpEndpoint in .*: a URL such as http/],
    [() => from({}, { STAMP_OTLP_ENDPOINT: "http://127.0.0.1:4318/?key=a" }), /STAMP_OTLP_ENDPOINT: .*OTEL_EXPORTER_OTLP_HEADERS/],
    [() => from({ copySources: ["files.example"] }), /copySources\.0 in .*stamp\.config\.json:1: scheme:\/\/host/],
  ];
  for (const [work, message] of cases) {
    assert.throws(work, (error) => error instanceof ConfigError && message.test(error.message), String(message));
  }
});

test("configuration, values of another kind: refused with what was given and what is allowed, never converted", () => {
  const whole = "is not allowed: a whole number";
  const cases: [() => unknown, string][] = [
    [() => from({ extentNodes: "12" }), `"12" ${whole}, 1 to 40`],
    [() => from({ extentNodes: true }), `true ${whole}, 1 to 40`],
    [() => from({ extentNodes: null }), `null ${whole}, 1 to 40`],
    [() => from({ extentNodes: 2.5 }), `2.5 ${whole}, 1 to 40`],
    [() => from({ logBytesMax: 1e300 }), `1e+300 ${whole}, 1 or more`],
    [() => from({ allowDevelopmentAccount: "yes" }), '"yes" is not allowed: true or false'],
    [() => from({ allowDevelopmentAccount: 1 }), "1 is not allowed: true or false"],
    [() => from({ logLevel: "loud" }), '"loud" is not allowed: one of debug, info, warn, error'],
    [() => from({}, { STAMP_EXTENT_NODES: "0x4" }), `STAMP_EXTENT_NODES: "0x4" ${whole}, 1 to 40`],
    [() => from({}, { STAMP_EXTENT_NODES: "4e0" }), `STAMP_EXTENT_NODES: "4e0" ${whole}, 1 to 40`],
    [() => from({}, { STAMP_EXTENT_NODES: "NaN" }), `STAMP_EXTENT_NODES: "NaN" ${whole}, 1 to 40`],
    [() => from({}, { STAMP_EXTENT_NODES: "41" }), `STAMP_EXTENT_NODES: 41 ${whole}, 1 to 40`],
    [() => from({}, {}, { extentNodes: " " }), `--extent-nodes: " " ${whole}, 1 to 40`],
    [() => from({}, { STAMP_ALLOW_DEVELOPMENT_ACCOUNT: "maybe" }), '"maybe" is not allowed: true or false'],
  ];
  for (const [work, said] of cases) assert.throws(work, (error: Error) => error.message.includes(said) || assert.fail(error.message), said);
  assert.equal(from({}, { STAMP_ALLOW_DEVELOPMENT_ACCOUNT: "Yes" }).allowDevelopmentAccount, true);
  assert.equal(from({}, { STAMP_EXTENT_NODES: " 5 " }).extentNodes, 5);
});

test("configuration, every key: an environment name and a flag of its own", () => {
  assert.equal(environmentName("allowDevelopmentAccount"), "STAMP_ALLOW_DEVELOPMENT_ACCOUNT");
  assert.equal(flagName("allowDevelopmentAccount"), "--allow-development-account");
  assert.equal(new Set(configKeys.map(flagName)).size, configKeys.length);
});

test("plan: what front-ends are told of versions", () => {
  const toldTo = (values: unknown, role: string) =>
    planCluster(from(values))
      .processes.filter((process) => process.role === role)
      .map(({ environment }) => environment.STAMP_STRICT_VERSIONS);
  assert.deepEqual(toldTo({ strictVersions: true, frontEnds: 2 }, "front-end"), ["true", "true"]);
  assert.deepEqual(toldTo({ strictVersions: true }, "stream-manager"), [undefined, undefined]);
  assert.deepEqual(toldTo({}, "front-end"), [undefined]);
});

test("plan: every process has ports and a folder of its own, in the order of a cold start", () => {
  const plan = planCluster(from({ frontEnds: 2, faultDomains: ["a", "b"], roles: { "extent-node": { openFilesMax: 64 } } }));
  assert.deepEqual(
    plan.processes.map((each) => each.name),
    [
      ...[1, 2, 3].map((each) => `lock-service-${each}`),
      ...[1, 2, 3, 4].map((each) => `extent-node-${each}`),
      "stream-manager-1",
      "stream-manager-2",
      "partition-manager-1",
      "partition-manager-2",
      "partition-server-1",
      "partition-server-2",
      "front-end-1",
      "front-end-2",
    ],
  );
  for (const key of ["grpc", "http", "dataDir", "name"] as const) assert.equal(new Set(plan.processes.map((each) => each[key])).size, 15);
  const node = plan.processes[5];
  assert.equal(node?.environment.STAMP_FAULT_DOMAIN, "a");
  assert.equal(node?.environment.STAMP_OPEN_FILES_MAX, "64");
  assert.equal(node?.environment.STAMP_LOCK_SERVICE, plan.lockService);
  // One secret for all, in a file: an environment can be read by others than its process.
  for (const { environment } of plan.processes) {
    assert.match(environment.STAMP_CLUSTER_SECRET_FILE ?? "", /\/cluster-secret$/);
    assert.equal(environment.STAMP_CLUSTER_SECRET_PREVIOUS_FILE, `${environment.STAMP_CLUSTER_SECRET_FILE}.previous`);
    assert.equal(environment.STAMP_CLUSTER_SECRET_FILE, plan.processes[0]?.environment.STAMP_CLUSTER_SECRET_FILE);
  }
  assert.deepEqual(
    [plan.endpoints.blob, plan.endpoints.file, plan.endpoints.dfs],
    [10_000, 10_003, 10_004].map((port) => `http://127.0.0.1:${port}/devstoreaccount1`),
  );
  assert.match(plan.connectionStrings[1] ?? "", /QueueEndpoint=http:\/\/127\.0\.0\.1:10011\/devstoreaccount1;/);
  for (const part of [`BlobEndpoint=${plan.endpoints.blob};`, `FileEndpoint=${plan.endpoints.file};`])
    assert.ok(plan.connectionString.includes(part));
  // Blob, queue, table, file and dfs of two front-ends; gRPC and readiness of fifteen processes.
  assert.equal(plan.httpPorts.size, 10);
  assert.equal(plan.internalPorts.size, 30);
});

test("plan: what a process is given, its role knows and takes", () => {
  const schemas = {
    "lock-service": lockServiceSchema,
    "extent-node": extentNodeSchema,
    "stream-manager": streamManagerSchema,
    "partition-manager": partitionManagerConfigSchema,
    "partition-server": partitionServerConfigSchema,
    "front-end": frontEndConfigSchema,
  };
  /** Keys of every process (run-service.ts). */
  const common = ["name", "dataDir", "http", "logLevel", "clusterSecretFile", "clusterSecretPreviousFile"];
  for (const { role, environment } of planCluster(from({ faultDomains: ["a"] })).processes) {
    const known = [...Object.keys(schemas[role].shape), ...common].map(environmentName);
    for (const name of Object.keys(environment)) assert.ok(known.includes(name), `${role} does not know ${name}`);
  }
});

test("portBase, too high: told once", () => {
  assert.throws(
    () => loadConfig({ directory: "/", root: "/", environment: {}, flags: { portBase: "70000", dataDir: "/nowhere" } }),
    (error) => (error as Error).message.match(/70000/g)?.length === 1,
  );
});

test("configuration, every key: nonsense is refused with the name of the variable, or the file and the line", () => {
  const noNumbers = [" ", "x", "-1", "1e308", "9007199254740993", "0x10", "1.5"];
  const byType: Readonly<Record<string, readonly string[]>> = {
    number: noNumbers,
    boolean: [" ", "maybe"],
    enum: [" ", "nonsense"],
    string: [" ", "\t"],
    union: [" ", "nonsense", "{", "5"],
    record: [" ", "nonsense", "[1]", '{"nonsense":1}'],
    transform: ["[", "5", "[1]"],
  };
  for (const { key, type } of describeKeys(clusterConfigSchema)) {
    const name = environmentName(key);
    for (const wrong of byType[type] ?? assert.fail(`${key}: no wrong values for ${type}`)) {
      assert.throws(
        () => from({}, { [name]: wrong }),
        (error: Error) => error instanceof ConfigError && error.message.includes(`${name}`),
        `${name}=${JSON.stringify(wrong)}`,
      );
    }
    const file = join(root, "lines.json");
    writeFileSync(file, `{\n  "$schema": "x",\n  "${key}": ${type === "transform" ? 5 : "[[]]"}\n}\n`);
    assert.throws(
      () => loadConfig({ file, directory: root, root, environment: {} }),
      (error: Error) => error.message.includes(`${key} in ${file}:3: `) || assert.fail(error.message),
      key,
    );
  }
});

test("configuration file: a wrong value deep inside, a key that is none and a wrong comma are told with their line", () => {
  const file = join(root, "lines.json");
  const load = (text: string) => {
    writeFileSync(file, text);
    return loadConfig({ file, directory: root, root, environment: {} });
  };
  const accounts =
    '{\n "extentNodes": 5,\n "accounts": [\n  {"name": "good", "keys": ["QQ=="]},\n  {"name": "Bad",\n   "keys": ["QQ=="]}\n ]\n}';
  assert.throws(() => load(accounts), /accounts\.1\.name in .*lines\.json:5: 3 to 24/);
  assert.throws(() => load('{\n "copySources": [\n "https://a.example",\n "b"]\n}'), /copySources\.1 in .*lines\.json:4: scheme/);
  assert.throws(() => load('{\n\n "extentNode": 5\n}'), /extentNode in .*lines\.json:3: no such key; did you mean extentNodes\?/);
  assert.throws(() => load('{\n "extentNodes": 5,\n "logLevel": info\n}'), /lines\.json: not JSON: .*\(line 3 column 14\)/s);
  assert.throws(() => load('{\n "extentNodes": 5,\n}'), /lines\.json: not JSON: .*line 3/s);
  assert.throws(() => load('{\n "extentNodes": 5'), /lines\.json: not JSON/);
});
