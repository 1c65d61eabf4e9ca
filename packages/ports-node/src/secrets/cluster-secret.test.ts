/** The secret of a stamp in files and in the environment: made once, whole, for its owner only; what can't be one is refused in words. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { SecretCredential } from "../grpc/credentials/secret-credential.ts";
import { ConfigError } from "../process/config.ts";
import { credentialOf, makeSecretFile } from "./cluster-secret.ts";

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "stamp-secret-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const refused = (message: RegExp) => (error: unknown) => error instanceof ConfigError && message.test(error.message);
const long = (letter: string): string => letter.repeat(40);

/** Whether a caller with one credential gets in at a server with the other. */
const gets = (from: SecretCredential, to: SecretCredential): boolean => to.admit(from.tokenFor(1).text, [1]).kind === "admitted";

test("secret file: made once with 32 random bytes, for its owner alone whatever the umask, and kept", (t) => {
  const before = process.umask(0);
  t.after(() => process.umask(before));
  const path = join(folder(t), "made", "cluster-secret");
  makeSecretFile(path);
  const text = readFileSync(path, "utf8");
  assert.equal(Buffer.from(text.trim(), "base64url").length, 32);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  makeSecretFile(path);
  assert.equal(readFileSync(path, "utf8"), text);
  const other = join(folder(t), "other");
  makeSecretFile(other);
  assert.notEqual(readFileSync(other, "utf8"), text);
});

test("secret file: of many that make it at the same time one wins, and nothing is left behind", async (t) => {
  const path = join(folder(t), "cluster-secret");
  const module = JSON.stringify(new URL("./cluster-secret.ts", import.meta.url).href);
  const code = `const { parentPort } = require("node:worker_threads");
    import(${module}).then(({ credentialOf }) => {
      credentialOf({ clusterSecretFile: ${JSON.stringify(path)}, clusterSecretMake: true });
      parentPort.postMessage(require("node:fs").readFileSync(${JSON.stringify(path)}, "utf8"));
    });`;
  const seen = await Promise.all(
    Array.from({ length: 4 }, () => {
      const worker = new Worker(code, { eval: true });
      return new Promise<string>((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
  assert.equal(new Set(seen).size, 1);
  assert.deepEqual(readdirSync(join(path, "..")), ["cluster-secret"]);
});

test("credential: file and environment are the same secret; what is missing, short, unreadable or given twice is refused", (t) => {
  const path = join(folder(t), "cluster-secret");
  writeFileSync(path, `${long("a")}\n`);
  const file = credentialOf({ clusterSecretFile: path });
  const environment = credentialOf({ clusterSecret: long("a") });
  assert.ok(gets(file, environment) && gets(environment, file));
  assert.ok(credentialOf({}).open);
  assert.throws(() => credentialOf({ clusterSecretFile: `${path}.none` }), refused(/cluster-secret\.none does not exist/));
  assert.throws(() => credentialOf({ clusterSecret: "short" }), refused(/at least 32 characters, this one 5/));
  assert.throws(() => credentialOf({ clusterSecret: long("a"), clusterSecretFile: path }), refused(/both/));
  assert.throws(() => credentialOf({ clusterSecretPrevious: long("a") }), refused(/no current one/));
  assert.throws(() => credentialOf({ clusterSecretFile: join(path, "below") }), refused(/is a file, not a folder/));
  writeFileSync(path, "\n");
  assert.throws(() => credentialOf({ clusterSecretFile: path }), refused(/at least 32 characters, this one 0/));
  if (process.getuid?.() !== 0) {
    chmodSync(path, 0);
    assert.throws(() => credentialOf({ clusterSecretFile: path }), refused(/no permission/));
  }
});

test("credential: a previous secret is accepted beside the current one, also from a file that need not be there", (t) => {
  const path = join(folder(t), "previous");
  const old = credentialOf({ clusterSecret: long("a") });
  const sources = { clusterSecret: long("b"), clusterSecretPreviousFile: path };
  assert.ok(!gets(old, credentialOf(sources)));
  writeFileSync(path, long("a"));
  const both = credentialOf(sources);
  assert.ok(gets(old, both) && gets(both, old));
  assert.ok(gets(credentialOf({ clusterSecret: long("b") }), both));
});
