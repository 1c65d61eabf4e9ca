/** Secrets are planted in configuration, environment, logs and data folder, and searched for in every byte of the archive. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { Redactor } from "./redact.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-debug-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const base64 = (bytes: number): string => randomBytes(bytes).toString("base64");
const { privateKey } = generateKeyPairSync("ec", {
  namedCurve: "P-256",
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
const pemLines = privateKey.split("\n").filter((line) => line !== "" && !line.startsWith("-----"));

const secrets = {
  configuredKey: base64(64),
  shortKey: base64(12),
  otherKey: base64(64),
  clusterSecret: base64(32),
  masterKey: base64(32),
  environmentSecret: "correct horse battery",
  connectionKey: base64(64),
  signature: encodeURIComponent(base64(32)),
  bearer: `eyJ${base64(20).replaceAll(/\W/g, "")}.eyJ${base64(60).replaceAll(/\W/g, "")}.${base64(40).replaceAll(/\W/g, "")}`,
  opaque: "mF_9.B5f-4.1JqM",
  basic: Buffer.from("somebody:hunter2secret").toString("base64"),
  urlPassword: "pa55@of/the@proxy",
  urlPasswordEnd: "the@proxy",
  databasePassword: "dbpass9",
  jsonPassword: 'quoted\\"pass',
  flagToken: "tok-12ab",
} as const;
const keyOfLog = `AccountKey=${secrets.connectionKey};EndpointSuffix=core.windows.net`;

const log = [
  JSON.stringify({ level: "info", msg: "started", name: "front-end-1" }),
  `signed with ${secrets.otherKey} and ${encodeURIComponent(secrets.otherKey)}`,
  `{"msg":"key is ${secrets.configuredKey}","accountKey":"${secrets.otherKey}","password":"${secrets.jsonPassword}"}`,
  `GET http://127.0.0.1:10000/acme/c/b?sv=2025-01-05&sig=${secrets.signature}&se=2030 authorization: Bearer ${secrets.bearer}`,
  `proxy-authorization: Basic ${secrets.basic}; Authorization: Bearer ${secrets.opaque}`,
  `DefaultEndpointsProtocol=https;AccountName=acme;${keyOfLog}`,
  `connecting by http://somebody:${secrets.urlPassword}@proxy.example:3128, postgres://user:${secrets.databasePassword}@db.example/x and --api-token ${"x"} apiToken=${secrets.flagToken}`,
  privateKey,
  JSON.stringify({ pem: privateKey }),
  `hex of it ${Buffer.from(secrets.clusterSecret, "base64").toString("hex")}, text of it ${secrets.clusterSecret}`,
  `short ${secrets.shortKey}`,
  "the last line stays: extent 17 sealed at 4096",
  "",
].join("\n");

/** Forms in which the archive must not have a secret. */
const forms = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  decodeURIComponent(secret),
  Buffer.from(secret).toString("base64"),
];

test("debug bundle, of a stamp that is down: logs, facts and configuration are there, and no planted secret in any form", async () => {
  const dataDir = join(folder, "data");
  mkdirSync(join(dataDir, "logs"), { recursive: true });
  writeFileSync(join(dataDir, "cluster-secret"), `${secrets.clusterSecret}\n`);
  writeFileSync(join(dataDir, "master-key"), `${secrets.masterKey}\n`);
  writeFileSync(join(dataDir, "logs", "front-end-1.log"), log);
  // Cut in the middle of a private key.
  writeFileSync(join(dataDir, "logs", "extent-node-1.log"), pemLines.slice(1).join("\n"));
  const accounts = [{ name: "acme", keys: [secrets.configuredKey, secrets.shortKey] }];
  writeFileSync(join(folder, "stamp.config.json"), JSON.stringify({ accounts, logLevel: "debug" }));
  const path = join(folder, "bundle.tar.gz");
  const run = (): Promise<unknown> =>
    promisify(execFile)(process.execPath, [join(import.meta.dirname, "../main.ts"), "debug", "bundle", path, "--data", dataDir], {
      cwd: folder,
      env: {
        ...process.env,
        STAMP_CLUSTER_SECRET: secrets.environmentSecret,
        AZURE_STORAGE_CONNECTION_STRING: keyOfLog,
        AZURITE_ACCOUNTS: `acme:${secrets.otherKey}`,
        HTTPS_PROXY: `http://somebody:${secrets.urlPassword}@proxy.example:3128`,
      },
    });
  await run();
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const tar = gunzipSync(readFileSync(path));
  const all = tar.toString("latin1");
  for (const [name, secret] of [...Object.entries(secrets), ...pemLines.map((line) => ["pem", line] as const)])
    for (const form of forms(secret)) assert.ok(!all.includes(form), `${name}: ${form}`);
  const files = new Map((await unpackTar(tar)).map(({ header, data }) => [header.name, Buffer.from(data ?? []).toString()]));
  const text = (name: string): string =>
    files.get(`stamp-debug/${name}`) ?? assert.fail(`${name} is not among ${[...files.keys()].join(", ")}`);
  assert.match(text("logs/front-end-1.log"), /"msg":"started"[\s\S]*the last line stays: extent 17 sealed at 4096/);
  assert.match(text("configuration.json"), /"logLevel": "debug"/);
  assert.match(text("machine.json"), /"release"/);
  assert.match(text("folder.txt"), /logs\/front-end-1\.log/);
  assert.match(text("environment.json"), /proxy\.example/);
  assert.match(text("health.txt"), /\S/);
  await assert.rejects(run(), /bundle\.tar\.gz/, "a file that is there is not replaced");
});

test("redactor: what is no secret stays readable", () => {
  const redactor = new Redactor(["a"]);
  for (const plain of [
    '{"level":"info","time":"2026-11-29T13:54:23.066Z","name":"front-end-1","msg":"init files applied"}',
    "at FrontEndRole.initialise (file:///home/somebody/stamp/services/front-end/src/front-end.ts:334:22)",
    'stamp_requests_total{service="blob",status="200"} 17',
    "extent 4711 sealed at 1048576 on extent-node-1, extent-node-2",
    '{"keysMax":1000000,"requestsMax":512}',
  ])
    assert.equal(redactor.text(plain), plain);
});

test("redactor: a secret that holds another one leaves no rest of it", () => {
  assert.equal(new Redactor(["abcdefgh", "abcdefghijkl"]).text("x abcdefghijkl y"), "x [removed] y");
});
