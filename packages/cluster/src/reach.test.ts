import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterConfig, clusterConfigSchema, developmentAccount } from "./config.ts";
import { planCluster } from "./plan.ts";
import { noAccountServed, reachOf, reachRemarks } from "./reach.ts";

const own = { name: "acct", keys: ["b3duIGtleQ=="] };
const from = (values: object): ClusterConfig => clusterConfigSchema.parse({ dataDir: "/data", portBase: 10_000, ...values });
const remarksOf = (config: ClusterConfig): string[] => reachRemarks(config, planCluster(config), ["10.1.2.3"]);

test("bind to every address: processes listen there, and call and advertise each other over loopback", () => {
  for (const [bind, listen, called] of [
    ["0.0.0.0", "0.0.0.0", "127.0.0.1"],
    ["::", "[::]", "[::1]"],
  ] as const) {
    const plan = planCluster(from({ bind }));
    assert.equal(plan.lockService, `${called}:10100`);
    for (const { name, grpc, http, environment } of plan.processes) {
      const port = grpc.slice(grpc.lastIndexOf(":"));
      assert.equal(environment.STAMP_LISTEN, `${listen}${port}`, name);
      assert.equal(environment.STAMP_ADVERTISE, `${called}${port}`, name);
      assert.ok(grpc.startsWith(`${called}:`) && http.startsWith(`${called}:`), name);
      assert.ok(environment.STAMP_HTTP?.startsWith(`${listen}:`), name);
      if (name !== "lock-service-1") assert.equal(environment.STAMP_LOCK_SERVICE, plan.lockService, name);
    }
    assert.equal(plan.processes.at(-1)?.environment.STAMP_BLOB_LISTEN, `${listen}:10000`);
  }
});

test("bind to one address: it is listened at and called, and nothing else is advertised", () => {
  for (const bind of ["127.0.0.1", "10.1.2.3"]) {
    const { processes } = planCluster(from({ bind }));
    assert.ok(processes.every(({ grpc, environment }) => grpc.startsWith(`${bind}:`) && environment.STAMP_LISTEN === grpc));
    assert.ok(processes.every(({ environment }) => environment.STAMP_ADVERTISE === undefined));
  }
});

test("connection string: of an account that is served, none where the only one is refused", () => {
  const accountOf = (values: object): string | undefined => /AccountName=([^;]+)/.exec(planCluster(from(values)).connectionString)?.[1];
  const accounts = [developmentAccount, own];
  assert.equal(accountOf({}), "devstoreaccount1");
  assert.equal(accountOf({ bind: "0.0.0.0", accounts }), "acct");
  assert.equal(accountOf({ bind: "0.0.0.0", allowDevelopmentAccount: true }), "devstoreaccount1");
  assert.equal(planCluster(from({ bind: "0.0.0.0" })).connectionString, "");
  assert.match(planCluster(from({ bind: "0.0.0.0", accounts })).connectionString, /BlobEndpoint=http:\/\/127\.0\.0\.1:10000\/acct;/);
  assert.match(noAccountServed(from({ bind: "0.0.0.0" })) ?? "", /devstoreaccount1.*\.\/stamp account create/);
  assert.equal(noAccountServed(from({})), undefined);
});

test("a start that others can reach: says what they reach, under which address, and what is missing", () => {
  assert.deepEqual(remarksOf(from({})), []);
  assert.deepEqual(remarksOf(from({ bind: "::1" })), []);
  const open = from({ bind: "0.0.0.0", frontEnds: 2 });
  assert.equal(
    reachOf(open, planCluster(open)),
    "REST on 10000-10002, 10010-10012; gRPC on 10100-10112, where callers prove the secret of the cluster; " +
      "/live, /ready and /metrics on 10200-10212, which answer everybody",
  );
  const [reach = "", address = "", tls = "", none = ""] = remarksOf(open);
  assert.match(reach, /^bind is 0\.0\.0\.0: other machines reach REST on 10000-10002/);
  assert.match(address, /in place of 127\.0\.0\.1: 10\.1\.2\.3$/);
  assert.match(tls, /without TLS: \.\/stamp certs init/);
  assert.match(none, /account create/);
  const safe = from({ bind: "10.1.2.3", accounts: [own], tlsCert: "/c.pem", tlsKey: "/k.pem" });
  assert.equal(remarksOf(safe).length, 1);
  const publicKey = from({ bind: "10.1.2.3", tlsCert: "/c.pem", tlsKey: "/k.pem", allowDevelopmentAccount: true });
  assert.match(remarksOf(publicKey)[1] ?? "", /everybody who can connect reads and writes/);
});
