/** `stamp certs cluster folders`: who gets which certificate, and what stays as it is. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readPeerTls } from "@stamp/ports-node";

const main = join(import.meta.dirname, "../main.ts");
const topology = {
  hosts: {
    a: { address: "10.0.0.1", processes: ["lock-service-1", "extent-node-1", "stream-manager-1", "partition-manager-1", "front-end-1"] },
    b: { address: "10.0.0.2", processes: ["extent-node-2", "partition-server-1"] },
  },
  config: { accounts: [{ name: "shop", keys: ["c2hvcA=="] }] },
};

function stamp(folder: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const env = { ...process.env, ...environment, STAMP_DATA_DIR: join(folder, "data") };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [main, "certs", "cluster", ...args], { cwd: folder, env }, (error, out, err) => {
      if (error === null) resolve(out);
      else reject(new Error(`${out}${err}`));
    });
  });
}

const named = (folder: string, name: string) =>
  readPeerTls({ cert: join(folder, `${name}.pem`), key: join(folder, `${name}-key.pem`), ca: join(folder, "ca.pem") }).own;

test("certs cluster folders, a topology: each other host gets its processes' certificates and the operator's, and nothing else", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-folders-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await assert.rejects(stamp(folder, ["folders", "--dir", "given"]), /--topology: without one all processes are here/);
  writeFileSync(join(folder, "stamp.topology.json"), JSON.stringify(topology));
  await stamp(folder, ["init", "--host", "a", "--stamp", "shop"]);
  const make = (...more: readonly string[]) => stamp(folder, ["folders", "--host", "a", "--dir", "given", ...more]);
  await make();
  assert.deepEqual(readdirSync(join(folder, "given")), ["b"]);
  const files = ["ca.pem", "extent-node-2-key.pem", "extent-node-2.pem", "operator-key.pem", "operator.pem"];
  assert.deepEqual(readdirSync(join(folder, "given/b")).sort(), [...files, "partition-server-1-key.pem", "partition-server-1.pem"]);
  assert.deepEqual(named(join(folder, "given/b"), "partition-server-1"), {
    stamp: "shop",
    role: "partition-server",
    name: "partition-server-1",
  });
  assert.equal(statSync(join(folder, "given/b")).mode & 0o777, 0o700);
  const text = () => readFileSync(join(folder, "given/b/extent-node-2.pem"), "utf8");
  const first = text();
  assert.match(await make(), /nothing was missing/);
  assert.equal(text(), first);
  assert.match(await make("--renew", "--days", "3"), /stamp:\/\/shop\/extent-node\/extent-node-2/);
  assert.notEqual(text(), first);
  await assert.rejects(make("--stamp", "other"), /is of the stamp shop/);
  // Certificates of another authority are not mixed with those of this one.
  const ca = readFileSync(join(folder, "given/b/ca.pem"), "utf8");
  writeFileSync(join(folder, "given/b/ca.pem"), "");
  await assert.rejects(make(), /holds no certificate of an authority; remove it to have it made anew/);
  writeFileSync(join(folder, "given/b/ca.pem"), ca);
});

test("certs cluster folders, in a container: a folder for each process; only where commands run, the operator's certificate", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-folders-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const processes = ["lock-service-1", "extent-node-1", "front-end-1"].map((name) => `${name}=${name}:11100:11200`).join("\n");
  await stamp(folder, ["folders", "--dir", "given"], { STAMP_PROCESSES: processes });
  const operators = readdirSync(join(folder, "given")).filter((name) => readdirSync(join(folder, "given", name)).includes("operator.pem"));
  assert.deepEqual(operators.sort(), ["front-end-1", "lock-service-1"]);
  const names = ["lock-service-1", "extent-node-1", "front-end-1"].map((name) => named(join(folder, "given", name), name));
  assert.deepEqual(
    names.map(({ role }) => role),
    ["lock-service", "extent-node", "front-end"],
  );
  assert.equal(new Set(names.map((each) => each.stamp)).size, 1, "one stamp");
  assert.ok(!readdirSync(join(folder, "given"), { recursive: true, encoding: "utf8" }).some((path) => path.endsWith("ca-key.pem")));
  // A further process, later: its certificate is of the same stamp.
  await stamp(folder, ["folders", "--dir", "given"], { STAMP_PROCESSES: `${processes} extent-node-2=extent-node-2:11100:11200` });
  assert.equal(named(join(folder, "given/extent-node-2"), "extent-node-2").stamp, names[0]?.stamp);
  await assert.rejects(stamp(folder, ["folders", "--dir", "x"], { STAMP_PROCESSES: "etcd-1=etcd-1:1:2" }), /etcd-1 has no role of a stamp/);
});
