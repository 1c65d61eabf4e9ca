/**
 * Secrets at rest of a running stamp: account keys (those before a rotation, too), delegation secret, keys of encryption scopes, the secret of
 * the stamp and its master key are in no file but their own, in no log, no answer of a health door, no status and no backup.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { unwrap } from "@stamp/base";
import { ownCredential, reservePorts } from "@stamp/cluster";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { GrpcTransport } from "@stamp/ports-node";
import { type Account, Accounts, PartitionServer } from "@stamp/wire";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "stamp-keys-at-rest-"));
const dataDir = join(folder, "data");
/** Of the account in the connection string that a status shows. */
const wellKnownKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const configuredKey = randomBytes(64);
const flags = {
  ...{ dataDir, extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1 },
  accounts: JSON.stringify([
    { name: "devstoreaccount1", keys: [wellKnownKey] },
    { name: "acctconfigured", keys: [configuredKey.toString("base64")] },
  ]),
  ...{ journalSegmentBytes: 16 * 1024 * 1024, portBase: (await reservePorts()).portBase },
};
const call = { timeoutMs: 15_000 };
/** Files that hold a secret on purpose. */
const keptIn = ["cluster-secret", "master-key"];
/** Name → bytes that must be nowhere. */
const secrets = new Map<string, Buffer>();
let stamp: DrillTarget | undefined;

before(async () => {
  stamp = await startOwn(flags, true);
});
after(async () => {
  await stamp?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** As bytes, and as the texts that a log or a dump would make of them. */
function addSecret(name: string, value: Uint8Array): void {
  const bytes = Buffer.from(value);
  secrets.set(name, bytes);
  for (const encoding of ["base64", "base64url", "hex"] as const)
    secrets.set(`${name}, ${encoding}`, Buffer.from(bytes.toString(encoding)));
}

const found = (bytes: Buffer): string[] => [...secrets].filter(([, secret]) => bytes.includes(secret)).map(([name]) => name);

function filesBelow(path: string): string[] {
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function command(...args: readonly string[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const options = { encoding: "buffer", maxBuffer: 64 * 1024 * 1024 } as const;
    const child = execFile(process.execPath, [join(root, "stamp.mjs"), ...args, "--data", dataDir], options, (_error, out, err) => {
      // Findings are exit codes 6 and 7.
      if ([0, 6, 7].includes(child.exitCode ?? -1)) resolve(Buffer.concat([out, err]));
      else reject(new Error(`${args.join(" ")}: ${err.toString()}`));
    });
  });
}

/** Returns the account as its row is, with everything that the operator is not shown: a front-end may read it. */
async function heldBy({ inspector }: DrillTarget, account: string): Promise<Account> {
  const range = (await inspector.ranges()).find(({ table }) => table === "Account");
  assert.ok(range);
  const operation = { kind: { case: "getAccount" as const, value: { account } } };
  const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, operation };
  const transport = new GrpcTransport({ credential: () => ownCredential({ dataDir }, "front-end") });
  try {
    const { result } = unwrap(await transport.client(range.serverAddress, PartitionServer).execute(request, call));
    assert.ok(result?.kind.case === "account");
    return result.kind.value;
  } finally {
    await transport.close();
  }
}

async function makeSecrets(running: DrillTarget): Promise<void> {
  const accounts = running.transport.client(await running.inspector.leader("partition-manager"), Accounts);
  const made = unwrap(await accounts.create({ account: "acctmade" }, call));
  unwrap(await accounts.rotateKey({ account: "acctmade", keyNumber: 1 }, call));
  unwrap(await accounts.revokeDelegationKeys({ account: "acctmade" }, call));
  unwrap(await accounts.createEncryptionScope({ account: "acctmade", scope: "tenant" }, call));
  const { keys, delegationSecret, encryptionScopes } = await heldBy(running, "acctmade");
  for (const [index, key] of [...made.keys, ...keys].entries()) addSecret(`account key ${index + 1}`, Buffer.from(key, "base64"));
  addSecret("key of an account of the configuration", configuredKey);
  addSecret("delegation secret", delegationSecret);
  addSecret("key of an encryption scope", encryptionScopes[0]?.key ?? Buffer.alloc(0));
  for (const name of keptIn) {
    const text = readFileSync(join(dataDir, name), "utf8").trim();
    secrets.set(`${name} as text`, Buffer.from(text));
    addSecret(name, Buffer.from(text, "base64"));
  }
  for (const [name, secret] of secrets) assert.ok(secret.length >= 32, name);
}

test("keys at rest: in no file but their own, no log, no answer, no status, no backup", { timeout: 300_000 }, async () => {
  assert.ok(stamp);
  await makeSecrets(stamp);
  const { processes } = await stamp.status();
  const range = (await stamp.inspector.ranges()).find(({ table }) => table === "Account");
  await command("partition", "checkpoint", range?.rangeId ?? "");
  const backup = join(folder, "metadata.snapshot");
  await command("metadata", "backup", backup);
  assert.deepEqual(found(readFileSync(backup)), [], "the metadata backup");
  for (const args of [
    ["status"],
    ["status", "--json"],
    ["health", "--json"],
    ["account", "list", "--json"],
    ["logs", "--json"],
    ["config", "show"],
  ])
    assert.deepEqual(found(await command(...args)), [], args.join(" "));
  for (const { http, name } of processes)
    for (const path of ["/live", "/ready", "/metrics", "/turns"]) {
      const told = Buffer.from(await (await fetch(`http://${http}${path}`)).arrayBuffer());
      assert.deepEqual(found(told), [], `${path} of ${name}`);
      // Everybody who reaches the port is answered, without any token.
      for (const account of ["acctmade", "acctconfigured", "devstoreaccount1"]) assert.ok(!told.includes(account), `${path} of ${name}`);
    }
  await stamp.close();
  stamp = undefined;
  const files = filesBelow(dataDir);
  let withRow = 0;
  for (const path of files) {
    const bytes = readFileSync(path);
    const own = keptIn.includes(relative(dataDir, path));
    assert.equal(found(bytes).length > 0, own, `${path} holds ${found(bytes).join("; ")}`);
    if (own) assert.equal(statSync(path).mode & 0o777, 0o600, path);
    else if (bytes.includes("acctmade")) withRow++;
  }
  assert.ok(withRow >= 3, `the row of the account is in ${withRow} of ${files.length} files`);
});

test("keys at rest: without the master key a start is refused and says what to do; with it the account is as it was", {
  timeout: 300_000,
}, async () => {
  const [path, away] = [join(dataDir, "master-key"), join(folder, "master-key")];
  renameSync(path, away);
  const refused = await startOwn(flags, true).then(
    async (running) => {
      await running.close();
      return undefined;
    },
    (error: unknown) => error,
  );
  assert.ok(refused instanceof Error);
  assert.match(refused.message, /master key .*master-key is gone \(id [0-9a-f]{16}\).*Put it back .*keys-at-rest\.md/);
  assert.ok(!filesBelow(dataDir).includes(path), "no other key is made in its place");
  renameSync(away, path);
  stamp = await startOwn(flags, true);
  const { keys } = await heldBy(stamp, "acctmade");
  const texts = [...secrets.values()].map(String);
  assert.ok(keys.length === 2 && keys.every((key) => texts.includes(key)));
});
