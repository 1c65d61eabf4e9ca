import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterConfig, clusterConfigSchema, developmentAccount } from "./config.ts";
import { planCluster } from "./plan-cluster.ts";
import { internalReachOf, noAccountServed, reachRemarks, restReachOf } from "./reach.ts";

const own = { name: "acct", keys: ["b3duIGtleQ=="] };
const from = (values: object): ClusterConfig => clusterConfigSchema.parse({ dataDir: "/data", portBase: 10_000, ...values });
const remarksOf = (config: ClusterConfig): string[] => reachRemarks(config, planCluster(config), ["10.1.2.3"]);

test("internalBind is every address: processes listen there, and call and advertise each other over loopback", () => {
  for (const [internalBind, listen, called] of [
    ["0.0.0.0", "0.0.0.0", "127.0.0.1"],
    ["::", "[::]", "[::1]"],
  ] as const) {
    const plan = planCluster(from({ internalBind }));
    assert.equal(plan.lockService, [10_100, 10_112, 10_113].map((port) => `${called}:${port}`).join());
    for (const { name, grpc, http, environment } of plan.processes) {
      const port = grpc.slice(grpc.lastIndexOf(":"));
      assert.equal(environment.STAMP_LISTEN, `${listen}${port}`, name);
      assert.equal(environment.STAMP_ADVERTISE, `${called}${port}`, name);
      assert.ok(grpc.startsWith(`${called}:`) && http.startsWith(`${called}:`), name);
      assert.ok(environment.STAMP_HTTP?.startsWith(`${listen}:`), name);
      if (!name.startsWith("lock-service")) assert.equal(environment.STAMP_LOCK_SERVICE, plan.lockService, name);
    }
    assert.equal(plan.processes.at(-1)?.environment.STAMP_BLOB_LISTEN, "127.0.0.1:10000");
  }
});

test("httpBind is every address: the REST doors are there, and no other port", () => {
  const { processes, endpoints } = planCluster(from({ httpBind: "0.0.0.0" }));
  const doors = ["STAMP_BLOB_LISTEN", "STAMP_QUEUE_LISTEN", "STAMP_TABLE_LISTEN", "STAMP_FILE_LISTEN", "STAMP_DFS_LISTEN"];
  for (const { name, environment } of processes)
    for (const [key, value] of Object.entries(environment))
      assert.equal(value.startsWith("0.0.0.0:"), name === "front-end-1" && doors.includes(key), `${name} ${key}`);
  assert.equal(endpoints.blob, "http://127.0.0.1:10000/devstoreaccount1");
});

test("internalBind is one address: it is listened at and called, and nothing else is advertised", () => {
  for (const internalBind of ["127.0.0.1", "10.1.2.3"]) {
    const { processes } = planCluster(from({ internalBind }));
    assert.ok(processes.every(({ grpc, environment }) => grpc.startsWith(`${internalBind}:`) && environment.STAMP_LISTEN === grpc));
    assert.ok(processes.every(({ environment }) => environment.STAMP_ADVERTISE === undefined));
  }
});

test("connection string: of an account that is served, none where the only one is refused", () => {
  const accountOf = (values: object): string | undefined => /AccountName=([^;]+)/.exec(planCluster(from(values)).connectionString)?.[1];
  const accounts = [developmentAccount, own];
  assert.equal(accountOf({}), "devstoreaccount1");
  assert.equal(accountOf({ httpBind: "0.0.0.0", accounts }), "acct");
  assert.equal(accountOf({ httpBind: "0.0.0.0", allowDevelopmentAccount: true }), "devstoreaccount1");
  assert.equal(planCluster(from({ httpBind: "0.0.0.0" })).connectionString, "");
  assert.match(planCluster(from({ httpBind: "0.0.0.0", accounts })).connectionString, /BlobEndpoint=http:\/\/127\.0\.0\.1:10000\/acct;/);
  assert.match(noAccountServed(from({ httpBind: "0.0.0.0" })) ?? "", /devstoreaccount1.*\.\/stamp account create/);
  assert.equal(noAccountServed(from({})), undefined);
});

test("a start that others can reach: says what they reach, under which address, and what is missing", () => {
  assert.deepEqual(remarksOf(from({})), []);
  assert.deepEqual(remarksOf(from({ httpBind: "::1", internalBind: "127.0.0.2" })), []);
  const open = from({ httpBind: "0.0.0.0", frontEnds: 2 });
  const [reach = "", address = "", tls = "", none = "", ...more] = remarksOf(open);
  assert.equal(reach, "httpBind is 0.0.0.0: other machines reach REST on 10000-10004, 10010-10014");
  assert.match(address, /in place of 127\.0\.0\.1: 10\.1\.2\.3$/);
  assert.match(tls, /without TLS: \.\/stamp certs init/);
  assert.match(none, /account create/);
  assert.deepEqual(more, [], "internal ports are not mentioned: they are on loopback");
  assert.equal(internalReachOf(open, planCluster(open)), undefined);
  const inside = from({ internalBind: "0.0.0.0", frontEnds: 2, accounts: [own] });
  assert.equal(restReachOf(inside, planCluster(inside)), undefined);
  assert.equal(
    internalReachOf(inside, planCluster(inside)),
    "gRPC on 10100-10114, where callers prove the secret of the cluster; " +
      "/live, /ready and /metrics on 10200-10214, which answer everybody",
  );
  assert.match(remarksOf(inside).join(), /^internalBind is 0\.0\.0\.0: .*or close these ports: --internal-bind 127\.0\.0\.1$/);
  // The gRPC port of a front-end serves accounts, too.
  assert.match(noAccountServed(from({ internalBind: "10.1.2.3" })) ?? "", /account create/);
  const safe = from({ httpBind: "10.1.2.3", accounts: [own], tlsCert: "/c.pem", tlsKey: "/k.pem" });
  assert.equal(remarksOf(safe).length, 1);
  const publicKey = from({ httpBind: "10.1.2.3", tlsCert: "/c.pem", tlsKey: "/k.pem", allowDevelopmentAccount: true });
  assert.match(remarksOf(publicKey)[1] ?? "", /everybody who can connect reads and writes/);
});
