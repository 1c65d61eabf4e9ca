/** The topology of a stamp: what is refused, and which process runs where and is called how. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { z } from "zod";
import { type ClusterConfig, loadConfig } from "../config.ts";
import { planCluster } from "../plan-cluster.ts";
import { writeClusterRecord } from "../record/cluster-record.ts";
import { remarksOf, rememberedOf } from "../record/remembered.ts";
import { masterKeyFileOf, prepareDisks, prepareMasterKey, prepareSecret } from "./prepare-host.ts";
import { parseTopology, readTopology, topologySchema } from "./topology.ts";

const root = mkdtempSync(join(tmpdir(), "stamp-topology-"));
after(() => rmSync(root, { recursive: true, force: true }));

const etcd = { roles: { "lock-service": { metadataStore: "etcd", etcdEndpoints: "10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379" } } };
const three = () => ({
  hosts: {
    a: {
      address: "10.0.0.1",
      faultDomain: "rack-1",
      processes: ["front-end-1", "lock-service-1", "extent-node-1", "extent-node-2", "stream-manager-1", "partition-manager-1"],
    },
    b: { address: "10.0.0.2", processes: ["lock-service-2", "extent-node-3", "partition-server-1", "partition-server-2"] },
    c: { address: "host-c.example", processes: ["lock-service-3", "extent-node-4", "front-end-2", "front-end-3"] },
  } as Record<string, Record<string, unknown>>,
  config: { portBase: 12_000, accounts: [{ name: "shop", keys: ["c2hvcA=="] }], ...etcd } as Record<string, unknown>,
});

function file(value: unknown, name = "stamp.topology.json"): string {
  const path = join(root, name);
  writeFileSync(path, JSON.stringify(value));
  return path;
}

const configFor = (value: unknown, flags: Record<string, unknown> = {}): ClusterConfig => {
  file(value);
  return loadConfig({ directory: root, root, environment: {}, flags });
};

test("topology, the plan of each host: its own processes, the addresses of all others, one list of lock services", () => {
  const config = configFor(three(), { host: "a", dataDir: join(root, "a") });
  const plan = planCluster(config);
  assert.equal(plan.lockService, "10.0.0.1:13000,10.0.0.2:13001,host-c.example:13002");
  assert.deepEqual(
    plan.processes.map(({ name, grpc, http }) => [name, grpc, http]),
    [
      ["lock-service-1", "10.0.0.1:13000", "10.0.0.1:14000"],
      ["extent-node-1", "10.0.0.1:13300", "10.0.0.1:14300"],
      ["extent-node-2", "10.0.0.1:13301", "10.0.0.1:14301"],
      ["stream-manager-1", "10.0.0.1:13010", "10.0.0.1:14010"],
      ["partition-manager-1", "10.0.0.1:13020", "10.0.0.1:14020"],
      ["front-end-1", "10.0.0.1:13030", "10.0.0.1:14030"],
    ],
  );
  assert.deepEqual(
    plan.elsewhere.map(({ host, name, grpc }) => [host, name, grpc]),
    [
      ["b", "lock-service-2", "10.0.0.2:13001"],
      ["b", "extent-node-3", "10.0.0.2:13302"],
      ["b", "partition-server-1", "10.0.0.2:13100"],
      ["b", "partition-server-2", "10.0.0.2:13101"],
      ["c", "lock-service-3", "host-c.example:13002"],
      ["c", "extent-node-4", "host-c.example:13303"],
      ["c", "front-end-2", "host-c.example:13031"],
      ["c", "front-end-3", "host-c.example:13032"],
    ],
  );
  assert.equal(plan.endpoints.blob, "http://10.0.0.1:12000/shop");
  assert.equal(new Set([...plan.httpPorts.keys(), ...plan.internalPorts.keys()]).size, 6 * 2 + 5);
  const environment = (name: string) => plan.processes.find((each) => each.name === name)?.environment;
  assert.deepEqual(
    [environment("extent-node-1")?.STAMP_FAULT_DOMAIN, environment("extent-node-2")?.STAMP_FAULT_DOMAIN],
    ["rack-1", "rack-1"],
  );
  assert.deepEqual(
    [
      environment("extent-node-1")?.STAMP_LOCK_SERVICE,
      environment("extent-node-1")?.STAMP_LISTEN,
      environment("extent-node-1")?.STAMP_ADVERTISE,
    ],
    [plan.lockService, "10.0.0.1:13300", undefined],
  );
  // Whatever a host calls another one is where that host says it listens.
  const seenFrom = (host: string) => planCluster(configFor(three(), { host, dataDir: join(root, host) }));
  for (const host of ["b", "c"]) {
    const listens = new Map(seenFrom(host).processes.map(({ name, grpc, http }) => [name, [grpc, http]]));
    for (const each of plan.elsewhere.filter((one) => one.host === host)) assert.deepEqual(listens.get(each.name), [each.grpc, each.http]);
  }
  assert.deepEqual(
    seenFrom("c").connectionStrings.map((text) => /BlobEndpoint=([^;]+)/.exec(text)?.[1]),
    ["http://host-c.example:12000/shop", "http://host-c.example:12010/shop"],
  );
  assert.equal(seenFrom("c").processes.find(({ role }) => role === "extent-node")?.environment.STAMP_FAULT_DOMAIN, "c");
});

test("topology, a host that goes and one that comes: no port of another process moves, and a retired node is not started", () => {
  const before = planCluster(configFor(three(), { host: "c", dataDir: join(root, "c") }));
  const { hosts, config } = three();
  const { a, ...left } = hosts;
  const d = { ...a, address: "10.0.0.4", processes: ["lock-service-4", "extent-node-9", "stream-manager-2", "partition-manager-2"] };
  const changed = configFor({ hosts: { d, ...left }, config }, { host: "c", dataDir: join(root, "c") });
  assert.deepEqual(
    planCluster(changed).processes.map(({ grpc }) => grpc),
    before.processes.map(({ grpc }) => grpc),
  );
  const names = planCluster(changed, { retired: ["extent-node-4"] }).processes.map(({ name }) => name);
  assert.deepEqual(names, ["lock-service-3", "front-end-2", "front-end-3"]);
});

test("topology, a bind address of its own: processes listen there and are called at the host's address", () => {
  const config = configFor(three(), { host: "b", internalBind: "0.0.0.0", dataDir: join(root, "b") });
  const [lock] = planCluster(config).processes;
  assert.deepEqual(
    [lock?.grpc, lock?.environment.STAMP_LISTEN, lock?.environment.STAMP_ADVERTISE],
    ["10.0.0.2:13001", "0.0.0.0:13001", "10.0.0.2:13001"],
  );
});

test("topology with one lock service: what a start says of it names the file, not a flag that a topology refuses", () => {
  const { hosts } = three();
  const one = Object.fromEntries(
    Object.entries(hosts).map(([name, host]) => {
      const processes = (host.processes as string[]).filter((each) => !/^lock-service-[23]$/.test(each));
      return [name, { ...host, processes }];
    }),
  );
  const config = configFor({ hosts: one }, { host: "a", dataDir: join(root, "one") });
  assert.equal(config.lockServices, 1);
  const said = remarksOf(config, [], []).join("\n");
  assert.match(said, /on the disk of one lock service: .*name two more lock services in .*stamp\.topology\.json/);
  assert.doesNotMatch(said, /--lock-services/);
});

test("topology, what contradicts itself is refused with every place named", () => {
  const refused = (change: (value: ReturnType<typeof three>) => void): string => {
    const value = three();
    change(value);
    try {
      parseTopology(value, "T");
    } catch (error) {
      return (error as Error).message;
    }
    return "taken";
  };
  assert.equal(
    refused(() => {}),
    "taken",
  );
  const b = (key: string, given: unknown) => refused(({ hosts }) => Object.assign(hosts.b as object, { [key]: given }));
  assert.match(b("address", "10.0.0.1"), /hosts\.b\.address: 10\.0\.0\.1 is the address of a, too/);
  assert.match(b("address", "0.0.0.0"), /hosts\.b\.address: an address at which the other hosts call this one/);
  for (const address of ["0:0:0:0:0:0:0:0", "0.0.0.1", "224.0.0.1", "255.255.255.255", "ff02::1"]) {
    assert.match(b("address", address), /hosts\.b\.address: an address at which the other hosts call this one/, address);
  }
  for (const address of ["10.0.1", "10.0.0.300", "1"]) {
    assert.match(b("address", address), /hosts\.b\.address: an IP address or a DNS name, without a port/, address);
  }
  const both = (one: string, other: string) =>
    refused(({ hosts }) => {
      Object.assign(hosts.a as object, { address: one });
      Object.assign(hosts.b as object, { address: other });
    });
  assert.match(both("fd00::1", "FD00:0::1"), /hosts\.b\.address: FD00:0::1 is the address of a, too/);
  assert.match(both("Host-1.lan", "host-1.LAN"), /hosts\.b\.address: host-1\.LAN is the address of a, too/);
  assert.equal(both("fd00::1", "fd00::2"), "taken");
  for (const domain of ["faultDomain", "upgradeDomain"]) {
    assert.equal(b(domain, "rack 1"), "taken");
    for (const name of ["", "  ", " r", "r\n2"]) assert.match(b(domain, name), new RegExp(`hosts\\.b\\.${domain}: `), JSON.stringify(name));
  }
  assert.match(b("address", "http://b:1"), /hosts\.b\.address: an IP address or a DNS name, without a port/);
  assert.match(
    b("processes", ["extent-node-1"]),
    /hosts\.b\.processes: extent-node-1 runs on a already\n {2}hosts: no host runs a partition-server/,
  );
  assert.match(b("processes", ["extent-node-7", "extent-node-7"]), /extent-node-7 runs on this host already/);
  assert.match(b("processes", ["extent-node-601", "partition-server-1"]), /extent-node-601: numbers of this role end at 600/);
  assert.match(b("processes", ["extent-server-1"]), /hosts\.b\.processes\.0: ROLE-NUMBER, with a role of lock-service/);
  assert.match(b("processes", []), /hosts\.b\.processes: /);
  assert.match(b("disks", ["disk"]), /hosts\.b\.disks\.0: an absolute path/);
  assert.match(b("disks", ["/one", "/two"]), /hosts\.b\.disks: 2 for 1 extent nodes: name one for each, or none/);
  assert.match(b("port", 1), /hosts\.b: no such key: port/);
  assert.match(
    refused(({ hosts }) => Object.assign(hosts, { B: hosts.b })),
    /hosts\.B: lower case letters, digits and -/,
  );
  assert.match(
    refused(({ config }) => Object.assign(config, { extentNodes: 3, bind: "::" })),
    /config\.extentNodes: .*\n {2}config\.bind: /,
  );
  assert.match(
    refused((value) => Object.assign(value, { hosts: {} })),
    /hosts: there is none/,
  );
  const pasted = join(root, "pasted.json");
  writeFileSync(pasted, JSON.stringify(three()).replace('"b":', '"a":'));
  assert.throws(() => readTopology(pasted), /the topology can't be read: .*pasted\.json: .*hosts\.a stands there twice/);
  assert.throws(() => readTopology(join(root, "absent.json")), /the topology can't be read: .*absent\.json/);
  assert.throws(() => configFor(three(), { host: "x" }), /--host: x is no host of .*stamp\.topology\.json; its hosts: a, b, c/);
  assert.throws(() => configFor(three(), { host: "a", extentNodes: 3 }), /--extent-nodes: with a topology its hosts say that/);
  const { hosts } = three();
  const { processes } = planCluster(configFor({ hosts }, { host: "a" }));
  assert.match(
    processes[0]?.environment.STAMP_MEMBERS ?? "",
    /^lock-service-1=10\.0\.0\.1:\d+,lock-service-2=10\.0\.0\.2:\d+,lock-service-3=/,
  );
  assert.throws(
    () => configFor({ hosts, config: { ...etcd, copeis: 2 } }, { host: "a" }),
    /config\.copeis of .*stamp\.topology\.json: no such key/,
  );
  assert.throws(() => configFor({ hosts, config: { ...etcd, portBase: 63_000 } }, { host: "a" }), /portBase: 63000 is too high/);
});

test("topology, values: a flag wins over it, it wins over what the folder remembers, and the folder remembers it", () => {
  const dataDir = join(root, "remembers");
  mkdirSync(dataDir);
  const value = three();
  Object.assign(value.config, { copies: 2, tlsCert: "tls/cert.pem", tlsKey: "/etc/key.pem" });
  const first = configFor(value, { host: "b", dataDir });
  assert.deepEqual(
    [first.copies, first.internalBind, first.tlsCert, first.tlsKey],
    [2, "10.0.0.2", join(root, "tls/cert.pem"), "/etc/key.pem"],
  );
  assert.equal(configFor(value, { host: "b", dataDir, copies: 3 }).copies, 3);
  writeClusterRecord(dataDir, { config: rememberedOf(first), retired: [], slots: {} });
  Object.assign(value.config, { copies: 4 });
  Object.assign(value.hosts.b as object, { address: "10.0.0.22" });
  file(value);
  const elsewhere = mkdtempSync(join(root, "elsewhere-"));
  const again = loadConfig({ directory: elsewhere, root: elsewhere, environment: {}, flags: { dataDir } });
  assert.deepEqual([again.host, again.copies, again.internalBind], ["b", 4, "10.0.0.22"]);
  assert.equal(again.topology, join(root, "stamp.topology.json"));
});

test("topology, a command on a machine that is no host knows all processes and runs none", () => {
  const plan = planCluster(configFor(three(), { topology: join(root, "stamp.topology.json") }));
  assert.deepEqual([plan.processes.length, plan.elsewhere.length, plan.internalPorts.size], [0, 14, 0]);
  assert.equal(plan.endpoints.blob, "http://10.0.0.1:12000/shop");
});

test("a host of several, its secret is missing: refused, because a secret of its own would shut it out", () => {
  const dataDir = join(root, "secret");
  mkdirSync(dataDir);
  assert.throws(
    () => prepareSecret(configFor(three(), { host: "b", dataDir })),
    /the secret of the stamp is not on this host: .*openssl rand/,
  );
  assert.equal(existsSync(join(dataDir, "cluster-secret")), false);
  const alone = loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir } });
  prepareSecret(alone);
  assert.equal(readFileSync(join(dataDir, "cluster-secret"), "utf8").length, 44);
});

test("a host of several, keys are to be sealed at rest: partition servers are not started without the master key, others are", () => {
  const dataDir = join(root, "sealed");
  mkdirSync(dataDir);
  const value = three();
  value.config.keysAtRest = "sealed";
  const prepare = (host: string) => {
    const config = configFor(value, { host, dataDir });
    const file = masterKeyFileOf(config, true);
    prepareMasterKey(config, file, planCluster(config).processes);
    return file;
  };
  assert.throws(
    () => prepare("b"),
    /the master key of the stamp is not on this host: .*sealed\/master-key\. .*copy it from another host.*openssl rand/,
  );
  assert.equal(prepare("c"), undefined, "it runs no partition server");
  assert.equal(existsSync(join(dataDir, "master-key")), false);
  writeFileSync(join(dataDir, "master-key"), `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  assert.equal(prepare("b"), join(dataDir, "master-key"));
  // The folder knows now that it had a key.
  rmSync(join(dataDir, "master-key"));
  assert.throws(() => prepare("b"), /the master key .* is gone \(id [0-9a-f]{16}\)/);
  const file = join(root, "elsewhere");
  Object.assign(value.config.roles as object, { "partition-server": { masterKeyFile: file } });
  assert.throws(() => prepare("b"), /not on this host: .*elsewhere/);
  Object.assign(value.config.roles as object, { "partition-server": { masterKeyCommand: "pass show key" } });
  assert.equal(prepare("b"), undefined, "the partition server asks the command");
});

test("a host's disks: each extent node lies on its own, and is not started on one that is not mounted", () => {
  const dataDir = join(root, "disks");
  mkdirSync(dataDir);
  const value = three();
  const [one, two] = [join(root, "one"), join(root, "two")];
  Object.assign(value.hosts.a as object, { disks: [one, two] });
  const config = configFor(value, { host: "a", dataDir });
  const prepare = () => prepareDisks(config, readTopology(config.topology as string));
  mkdirSync(one);
  assert.throws(prepare, /the disk of extent-node-2 is not there: .*two \(hosts\.a\.disks\)/);
  mkdirSync(two);
  prepare();
  prepare();
  assert.equal(readlinkSync(join(dataDir, "extent-node-2")), join(two, "extent-node-2"));
  rmSync(join(two, "extent-node-2"), { recursive: true });
  assert.throws(prepare, /the disk of extent-node-2 is not mounted: .*extent-node-2 is missing/);
  rmSync(join(dataDir, "extent-node-1"));
  mkdirSync(join(dataDir, "extent-node-1"));
  assert.throws(prepare, /extent-node-1 has its data in .*extent-node-1 itself, and the topology gives it .*one/);
});

test("topology, its JSON Schema in the documents is that of the code", () => {
  const path = join(import.meta.dirname, "../../../../docs/formats/topology.schema.json");
  const schema: unknown = JSON.parse(JSON.stringify(z.toJSONSchema(topologySchema, { io: "input" })));
  if (process.env.STAMP_WRITE_SCHEMA === "true") writeFileSync(path, JSON.stringify(schema));
  const how = "write it anew: STAMP_WRITE_SCHEMA=true node --test packages/cluster/src/topology/topology.test.ts, then biome";
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), schema, how);
});
