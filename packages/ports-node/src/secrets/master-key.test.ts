import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "../process/config.ts";
import { goneText, makeMasterKeyFile, makeMasterKeyOnce, masterKeyId, masterKeyIdFile, masterKeysOf } from "./master-key.ts";

const one = Buffer.alloc(32, 0xfb);
const other = Buffer.alloc(32, 2);

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "stamp-master-key-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("master key: from the environment, a file or a command; base64 or base64url, with the one before behind it", (t) => {
  const path = join(folder(t), "key");
  writeFileSync(path, `${one.toString("base64url")}\n`);
  const previous = `${path}.previous`;
  const buffers = (...given: Parameters<typeof masterKeysOf>): Buffer[] => masterKeysOf(...given).map((key) => Buffer.from(key));
  assert.deepEqual(buffers({}), []);
  assert.deepEqual(buffers({ masterKey: one.toString("base64") }), [one]);
  assert.deepEqual(buffers({ masterKeyFile: path, masterKeyPreviousFile: previous }), [one]);
  assert.deepEqual(buffers({ masterKeyCommand: `cat ${path}` }), [one]);
  writeFileSync(previous, other.toString("base64"));
  assert.deepEqual(buffers({ masterKeyFile: path, masterKeyPreviousFile: previous }), [one, other]);
  writeFileSync(previous, one.toString("base64"));
  assert.deepEqual(buffers({ masterKeyFile: path, masterKeyPreviousFile: previous }), [one]);
  assert.throws(() => masterKeysOf({ masterKeyPreviousFile: previous }), /previous master key is given, and no current one/);
});

test("master key: what is no key of 32 bytes is refused, and the error holds nothing of it", (t) => {
  const path = join(folder(t), "key");
  for (const text of [
    "",
    "short",
    one.subarray(1).toString("base64"),
    Buffer.alloc(33, 1).toString("base64"),
    one.toString("hex"),
    "é".repeat(43),
  ]) {
    writeFileSync(path, text);
    for (const sources of [{ masterKeyFile: path }, ...(text === "" ? [] : [{ masterKey: text }])])
      assert.throws(
        () => masterKeysOf(sources),
        (error: unknown) =>
          error instanceof ConfigError && /32 random bytes in base64/.test(error.message) && (text === "" || !error.message.includes(text)),
        text,
      );
  }
  assert.throws(() => masterKeysOf({ masterKey: one.toString("base64"), masterKeyFile: path }), /masterKey and masterKeyFile are given/);
  const failed = /^masterKeyCommand failed: exit code 3$/;
  assert.throws(
    () => masterKeysOf({ masterKeyCommand: "echo the-token >&2; exit 3" }),
    (error: Error) => failed.test(error.message),
  );
});

test("master key: a command that does not end is given up, also if it ignores the request to end, or leaves its output open", () => {
  const refused = (masterKeyCommand: string, message: RegExp): void =>
    assert.throws(() => masterKeysOf({ masterKeyCommand }, 400), { name: "ConfigError", message }, masterKeyCommand);
  refused("exec sleep 20", /^masterKeyCommand failed: it has not ended, or its output was still open, after 400 ms$/);
  refused("trap '' TERM; sleep 20; sleep 20", /it has not ended/);
  refused("openssl rand -base64 32; sleep 20 &", /its output was still open, after 400 ms/);
  refused("head -c 10000000 /dev/zero", /it printed more than 4096 bytes/);
});

test("master key: its file is made once, for its owner only, with its id beside it; a file that is gone is told with that id", (t) => {
  const path = join(folder(t), "deep", "master-key");
  makeMasterKeyFile(path);
  const text = readFileSync(path, "utf8");
  makeMasterKeyFile(path);
  assert.equal(readFileSync(path, "utf8"), text);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const [key] = masterKeysOf({ masterKeyFile: path });
  const id = masterKeyId(key as Uint8Array);
  assert.equal(readFileSync(masterKeyIdFile(path), "utf8"), `${id}\n`);
  rmSync(path);
  assert.throws(
    () => masterKeysOf({ masterKeyFile: path }),
    (error: Error) => error.message === goneText(path) && error.message.includes(`is gone (id ${id})`),
  );
  assert.equal(existsSync(path), false);
});

test("master key: processes that see one file make it once, and each remembers its id: a file that is lost is not made again", (t) => {
  const [path, own] = [join(folder(t), "shared", "master-key"), folder(t)];
  const ids = ["one", "two"].map((name) => join(own, name, "master-key.id"));
  for (const id of ids) makeMasterKeyOnce(path, id);
  const [key] = masterKeysOf({ masterKeyFile: path });
  assert.deepEqual(
    ids.map((id) => readFileSync(id, "utf8")),
    ids.map(() => `${masterKeyId(key as Uint8Array)}\n`),
  );
  // The volume of the key is lost, with everything in it.
  rmSync(dirname(path), { recursive: true });
  for (const id of ids) assert.throws(() => makeMasterKeyOnce(path, id), new RegExp(`is gone \\(id ${masterKeyId(key as Uint8Array)}\\)`));
  assert.equal(existsSync(path), false);
});
