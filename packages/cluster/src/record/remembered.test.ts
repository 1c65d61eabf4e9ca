/** Memory of a data folder about its cluster, and the lines that a start prints about it. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { release } from "@stamp/base";
import { makeMasterKeyFile } from "@stamp/ports-node";
import { type ClusterConfig, configKeys, loadConfig } from "../config.ts";
import type { ClusterPlan } from "../plan.ts";
import { planCluster } from "../plan-cluster.ts";
import { ConfigError, StartError } from "../start-error.ts";
import { clusterRecordPath, readClusterRecord, writeClusterRecord } from "./cluster-record.ts";
import { changesSince, nodesLeftOut, refuseRemoval, remarksOf, rememberedLine, rememberedOf } from "./remembered.ts";

interface Bench {
  readonly dataDir: string;
  readonly load: (flags?: Record<string, unknown>, environment?: Record<string, string>) => ClusterConfig;
}

function bench(t: { after: (work: () => void) => void }): Bench {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-remembered-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return {
    dataDir,
    load: (flags = {}, environment = {}) =>
      loadConfig({ directory: "/somewhere", root: "/root", environment, flags: { ...flags, dataDir } }),
  };
}

const nodesOf = (config: ClusterConfig, retired: readonly string[] = []): string[] =>
  planCluster(config, { retired })
    .processes.filter(({ role }) => role === "extent-node")
    .map(({ name }) => name);

test("data folder, started with flags: a start without flags is the same cluster, a flag or a variable wins", (t) => {
  const { dataDir, load } = bench(t);
  const flags = {
    ...{
      extentNodes: 5,
      portBase: 29_000,
      httpBind: "0.0.0.0",
      internalBind: "10.1.2.3",
      tlsCert: "/c.pem",
      tlsKey: "/k.pem",
      faultDomains: '["a","b"]',
    },
    ...{ accounts: '[{"name":"own","keys":["QQ=="]}]', roles: '{"extent-node":{"openFilesMax":64}}' },
  };
  const first = load(flags);
  writeClusterRecord(dataDir, { config: rememberedOf(first), retired: [] });
  assert.deepEqual(load(), first);
  assert.equal(load({ extentNodes: 6 }).extentNodes, 6);
  assert.equal(load({}, { STAMP_EXTENT_NODES: "7" }).extentNodes, 7);
  const everyKey = configKeys.filter((key) => key !== "dataDir" && key !== "initFile");
  const odd = { ...first, ...Object.fromEntries(everyKey.map((key) => [key, `another ${key}`])) } as unknown as ClusterConfig;
  assert.deepEqual(Object.keys(rememberedOf(odd)), everyKey, "no key is left out but the folder itself, and the init file of one start");
});

test("data folder of a release with one key for all addresses: REST stays open, internal ports close, and the start says so", (t) => {
  const { dataDir, load } = bench(t);
  const recordOf = (bind: string) => ({ config: { extentNodes: 4, bind }, retired: [] });
  writeClusterRecord(dataDir, recordOf("0.0.0.0"));
  const config = load();
  assert.deepEqual([config.httpBind, config.internalBind], ["0.0.0.0", "127.0.0.1"]);
  assert.ok(changesSince(recordOf("0.0.0.0"), config).includes("internalBind: 0.0.0.0 → 127.0.0.1 since the last start on this folder"));
  assert.equal(rememberedLine(recordOf("0.0.0.0"), config), "as at the last start: httpBind 0.0.0.0, lockServices 1");
  assert.equal(load({ internalBind: "10.1.2.3" }).internalBind, "10.1.2.3");
  writeClusterRecord(dataDir, recordOf("::1"));
  const local = load();
  assert.deepEqual([local.httpBind, local.internalBind], ["::1", "::1"]);
  assert.deepEqual(changesSince(recordOf("::1"), local), []);
});

test("data folder with a master key: the record seals the accounts, opens them, and is refused by name without that key", (t) => {
  const { dataDir, load } = bench(t);
  const secret = Buffer.alloc(64, "the key of the account").toString("base64");
  const config = load({ accounts: JSON.stringify([{ name: "own", keys: [secret] }]) });
  const [path, key] = [clusterRecordPath(dataDir), join(dataDir, "master-key")];
  const record = { config: rememberedOf(config), retired: [] };
  writeClusterRecord(dataDir, record);
  assert.match(readFileSync(path, "utf8"), /"format": 2,/, "without a master key, as releases before wrote it");
  makeMasterKeyFile(key);
  assert.deepEqual(load().accounts, config.accounts, "a record of version 2 is read beside a master key");
  writeClusterRecord(dataDir, record);
  const text = readFileSync(path, "utf8");
  assert.ok(/"format": 3,/.test(text) && !text.includes(secret) && !text.includes("own"));
  assert.deepEqual(load(), config);
  const sealed = JSON.parse(text) as { sealedAccounts: { by: string; value: string } };
  const changed = Buffer.from(sealed.sealedAccounts.value, "base64").map((byte, i) => (i === 20 ? byte ^ 1 : byte));
  writeFileSync(
    path,
    JSON.stringify({ ...sealed, sealedAccounts: { ...sealed.sealedAccounts, value: Buffer.from(changed).toString("base64") } }),
  );
  assert.throws(() => load(), /cluster\.json is damaged: its accounts do not open/);
  writeFileSync(path, text);
  const kept = readFileSync(key);
  rmSync(key);
  assert.throws(
    () => load(),
    (error) => error instanceof StartError && /master-key is gone \(id [0-9a-f]{16}\)/.test(error.message),
  );
  makeMasterKeyFile(key);
  assert.throws(() => load(), new RegExp(`sealed by master key ${sealed.sealedAccounts.by}, .*master-key\\.previous`));
  writeFileSync(`${key}.previous`, kept);
  assert.deepEqual(load(), config, "a new key beside the one before");
  const golden = new URL("../../../../tests/golden/cluster-record/v3/", import.meta.url);
  for (const name of ["cluster.json", "master-key"]) writeFileSync(join(dataDir, name), readFileSync(new URL(name, golden)));
  assert.deepEqual(readClusterRecord(dataDir)?.config.accounts, [{ name: "own", keys: ["QQ=="] }]);
});

test("data folder, the shape of a cluster by defaults: recorded, so that other defaults do not change it", (t) => {
  const { load } = bench(t);
  const { extentNodes, copies, partitionServers, lockServices, portBase } = rememberedOf(load());
  assert.deepEqual([extentNodes, copies, partitionServers, lockServices, portBase], [4, 3, 2, 3, undefined]);
});

test("data folder of a release with one lock service by default: it keeps one until it is told, each start says what that means", (t) => {
  const { dataDir, load } = bench(t);
  assert.equal(load().lockServices, 3, "a new folder");
  writeClusterRecord(dataDir, { config: { extentNodes: 4 }, retired: [] });
  const config = load();
  assert.equal(config.lockServices, 1);
  assert.deepEqual(changesSince(readClusterRecord(dataDir), config), []);
  assert.equal(planCluster(config).processes[0]?.environment.STAMP_METADATA_STORE, undefined);
  assert.match(remarksOf(config, nodesOf(config), [])[0] ?? "", /on the disk of one lock service: .* --lock-services 3 /);
  writeClusterRecord(dataDir, { config: rememberedOf(config), retired: [] });
  assert.equal(load().lockServices, 1, "the second start");
  const told = load({ lockServices: 3 });
  assert.deepEqual(remarksOf(told, nodesOf(told), []), []);
  assert.deepEqual(changesSince(readClusterRecord(dataDir), told), ["lockServices: 1 → 3 since the last start on this folder"]);
  assert.equal(planCluster(told).processes[0]?.environment.STAMP_METADATA_STORE, "replicated");
});

test("data folder whose record is gone, or forgot the number: it has as many lock services as before, whatever the default is", (t) => {
  const cases = [
    { stores: { 1: "metadata" }, isRecorded: false, lockServices: 1 },
    { stores: { 1: "consensus-1", 2: "consensus-2", 3: "consensus-1" }, isRecorded: false, lockServices: 3 },
    { stores: { 1: "consensus-1" }, isRecorded: false, lockServices: 3 },
    { stores: { 1: "consensus-1", 4: "consensus-1" }, isRecorded: false, lockServices: 5 },
    { stores: { 1: "consensus-1", 2: "consensus-1", 3: "consensus-1", 5: "consensus-1" }, isRecorded: true, lockServices: 5 },
    // Several over etcd, of which one is left.
    { stores: { 1: "identity", 2: "identity", 3: "identity" }, isRecorded: true, lockServices: 1 },
    // Two that waited to take over the store of the first.
    { stores: { 1: "metadata", 2: "consensus-1", 3: "consensus-1" }, isRecorded: true, lockServices: 1 },
    { stores: {}, isRecorded: true, lockServices: 1 },
    { stores: {}, isRecorded: false, lockServices: 3 },
  ];
  for (const { stores, isRecorded, lockServices } of cases) {
    const { dataDir, load } = bench(t);
    for (const [number, store] of Object.entries(stores)) {
      mkdirSync(join(dataDir, `lock-service-${number}`, "stores", store), { recursive: true });
      mkdirSync(join(dataDir, `lock-service-${number}`, "files"));
      if (store === "metadata") writeFileSync(join(dataDir, `lock-service-${number}`, "files", "metadata-mark"), "");
    }
    if (isRecorded) writeClusterRecord(dataDir, { config: {}, retired: [] });
    assert.equal(load().lockServices, lockServices, JSON.stringify({ stores, isRecorded }));
    assert.equal(load({ lockServices: 5 }).lockServices, 5, "a flag wins");
  }
});

test("data folder of five lock services, started with three: the start says that the others may still be counted, and what to do", (t) => {
  const { dataDir, load } = bench(t);
  for (const number of [1, 2, 3]) mkdirSync(join(dataDir, `lock-service-${number}`, "stores", "consensus-1"), { recursive: true });
  const three = load({ lockServices: 3 });
  assert.deepEqual(remarksOf(three, nodesOf(three), []), []);
  for (const number of [4, 5]) mkdirSync(join(dataDir, `lock-service-${number}`, "stores", "consensus-1"), { recursive: true });
  const said = remarksOf(three, nodesOf(three), []).join();
  assert.match(said, /^lock-service-4, lock-service-5 are not started\. .*lock-service list.*--lock-services 5/);
  const five = load({ lockServices: 5 });
  assert.deepEqual(remarksOf(five, nodesOf(five), []), []);
});

test("data folder, a start differs from the last: every change is told, what is kept too, and no key of an account", (t) => {
  const { load } = bench(t);
  const before = load({ extentNodes: 5, accounts: '[{"name":"own","keys":["QQ=="]}]' });
  const record = { config: rememberedOf(before), retired: [] };
  assert.deepEqual(changesSince(record, before), []);
  assert.deepEqual(changesSince(undefined, before), [], "a new folder has nothing to compare with");
  assert.equal(rememberedLine(record, before), "as at the last start: extentNodes 5, accounts own");
  const after = load({ extentNodes: 4, portBase: 29_000, accounts: '[{"name":"own","keys":["Qg=="]}]' });
  assert.deepEqual(changesSince(record, after), [
    "portBase: 10000 → 29000 since the last start on this folder",
    "extentNodes: 5 → 4 since the last start on this folder",
    "accounts: changed since the last start on this folder",
  ]);
  assert.equal(rememberedLine(record, after), undefined);
});

test("data folder, a node with a disk is not started: told with its name; not one that was decommissioned or has no disk", (t) => {
  const { dataDir, load } = bench(t);
  for (const number of [1, 2, 3, 4, 5, 10]) mkdirSync(join(dataDir, `extent-node-${number}`, "files"), { recursive: true });
  mkdirSync(join(dataDir, "extent-node-11"));
  const config = load();
  assert.deepEqual(nodesLeftOut(dataDir, nodesOf(config), []), ["extent-node-5", "extent-node-10"]);
  assert.deepEqual(nodesLeftOut(dataDir, nodesOf(config), ["extent-node-5"]), ["extent-node-10"]);
  const [remark = "", ...others] = remarksOf(config, nodesOf(config), ["extent-node-10"]);
  assert.match(remark, /^extent-node-5 is not started; .*--extent-nodes 5, .*node remove extent-node-5$/);
  assert.deepEqual(others, []);
  assert.deepEqual(nodesLeftOut(join(dataDir, "none"), [], []), []);
});

test("a node is removed: refused if fewer than minCopies would be left, not if it does not run", (t) => {
  const { load } = bench(t);
  const running = ["lock-service-1", "extent-node-1", "extent-node-3"];
  assert.match(refuseRemoval(load(), "extent-node-3", running) ?? "", /without extent-node-3 1 of the extent nodes .* minCopies is 2/);
  assert.equal(refuseRemoval(load(), "extent-node-2", running), undefined);
  assert.equal(refuseRemoval(load({ minCopies: 1 }), "extent-node-3", running), undefined);
  assert.equal(refuseRemoval(load(), "extent-node-3", [...running, "extent-node-4"]), undefined);
});

test("more copies than extent nodes, or than fault domains: told with what to do", (t) => {
  const { load } = bench(t);
  const remarks = (flags: Record<string, unknown>): string[] => remarksOf(load(flags), [], []);
  assert.match(remarks({ copies: 5 })[0] ?? "", /copies is 5, .*only 4 extent nodes.*--extent-nodes 5; .*--copies 4$/);
  assert.match(remarks({ faultDomains: '["a","b","a"]' })[0] ?? "", /faultDomains has 2 names/);
  assert.deepEqual(remarks({}), []);
  assert.deepEqual(remarks({ copies: 4, faultDomains: '["a","b","c","d"]' }), []);
});

test("plan, nodes were decommissioned: their names are passed over, as many as asked for run, each with ports of its own", (t) => {
  const { load } = bench(t);
  const config = load({ extentNodes: 3 });
  assert.deepEqual(nodesOf(config, ["extent-node-2"]), ["extent-node-1", "extent-node-3", "extent-node-4"]);
  const { processes } = planCluster(config, { retired: ["extent-node-2", "extent-node-1"] });
  assert.equal(new Set(processes.flatMap(({ grpc, http }) => [grpc, http])).size, processes.length * 2);
});

test("plan, nodes come and go: every other process keeps its ports, a new one gets the lowest that nobody has", (t) => {
  const { load } = bench(t);
  const portsOf = ({ processes }: ClusterPlan): Map<string, string> =>
    new Map(processes.map(({ name, grpc, http }) => [name, `${grpc} ${http}`]));
  const slotsOf = ({ processes }: ClusterPlan): Record<string, number> =>
    Object.fromEntries(processes.map(({ name, slot }) => [name, slot]));
  const first = planCluster(load({ extentNodes: 3 }));
  const before = portsOf(first);
  const more = planCluster(load({ extentNodes: 5 }), { retired: [], slots: slotsOf(first) });
  assert.deepEqual(before, new Map([...portsOf(more)].filter(([name]) => before.has(name))));
  assert.deepEqual(
    ["extent-node-4", "extent-node-5"].map((name) => slotsOf(more)[name]),
    [first.processes.length, first.processes.length + 1],
  );
  const slots = slotsOf(more);
  delete slots["extent-node-2"];
  const replaced = planCluster(load({ extentNodes: 5 }), { retired: ["extent-node-2"], slots });
  assert.equal(portsOf(replaced).get("extent-node-6"), before.get("extent-node-2"));
  assert.equal(new Set(portsOf(replaced).values()).size, replaced.processes.length);
  assert.equal(replaced.lockService, first.lockService);
  const moved = planCluster(load(), { retired: [], slots: { "lock-service-1": 7, "extent-node-1": 0 } });
  const lockServices = moved.processes.filter(({ role }) => role === "lock-service");
  assert.equal(moved.lockService, lockServices.map(({ grpc }) => grpc).join());
});

test("record of a cluster: frozen bytes are read; 0600; damage, a later version and wrong keys are refused with the file", (t) => {
  const { dataDir, load } = bench(t);
  const path = clusterRecordPath(dataDir);
  const frozen = (version: number): string =>
    readFileSync(new URL(`../../../../tests/golden/cluster-record/v${version}/cluster.json`, import.meta.url), "utf8");
  const golden = frozen(2);
  assert.equal(readClusterRecord(dataDir), undefined);
  writeFileSync(path, golden);
  const record = readClusterRecord(dataDir);
  assert.ok(record !== undefined);
  assert.deepEqual(record.retired, ["extent-node-2"]);
  assert.equal(record.slots?.["extent-node-6"], 2);
  assert.equal(load().extentNodes, 5);
  writeFileSync(path, frozen(1));
  assert.deepEqual(readClusterRecord(dataDir), { ...record, slots: {} }, "version 1 has no slots");
  rmSync(path);
  writeClusterRecord(dataDir, record);
  assert.equal(readFileSync(path, "utf8"), golden.replace('"release": "0.1.0"', `"release": "${release}"`));
  assert.equal(statSync(path).mode & 0o777, 0o600);

  const refusedAs = (text: string, kind: typeof StartError | typeof ConfigError, words: RegExp): void => {
    writeFileSync(path, text);
    assert.throws(
      () => load(),
      (error) => error instanceof kind && error.message.includes(path) && words.test(error.message),
      text,
    );
    assert.equal(loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir }, withoutRecord: true }).extentNodes, 4);
  };
  for (let length = 0; length < golden.length - 2; length++) refusedAs(golden.slice(0, length), StartError, /is damaged/);
  refusedAs("[]", StartError, /is damaged/);
  refusedAs('{"format":1,"config":[],"retired":[]}', StartError, /is damaged/);
  refusedAs('{"format":1,"config":{},"retired":["front-end-1"]}', StartError, /is damaged/);
  refusedAs('{"format":2,"config":{},"retired":[],"slots":[]}', StartError, /is damaged/);
  refusedAs('{"format":2,"config":{},"retired":[],"slots":{"extent-node-1":3,"extent-node-2":3}}', StartError, /is damaged/);
  refusedAs('{"format":2,"config":{},"retired":[],"slots":{"extent-node-1":100}}', StartError, /is damaged/);
  refusedAs('{"format":4,"release":"9.1.0"}', StartError, /version 4.*release 9\.1\.0 wrote it/);
  refusedAs('{"format":1,"config":{"extentNode":3},"retired":[]}', ConfigError, /extentNode in .*no such key/);
  refusedAs('{"format":1,"config":{"extentNodes":"3"},"retired":[]}', ConfigError, /extentNodes in .*"3" is not allowed/);
});
