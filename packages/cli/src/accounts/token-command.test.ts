/** `stamp token --internal`, `list` and `revoke`, as processes, on a data folder with a secret. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { issuedTokenOf, issuedTokensBeside, makeSecretFile } from "@stamp/ports-node";

test("token: made, listed and revoked; a wrong id, a wrong time and a list that others can write are refused in words", async (t) => {
  const data = mkdtempSync(join(tmpdir(), "stamp-token-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const secret = join(data, "cluster-secret");
  const folder = issuedTokensBeside(secret);
  makeSecretFile(secret);
  const stamp = (...args: string[]): Promise<{ readonly code: number; readonly said: string }> =>
    new Promise((resolve) => {
      const command = [join(import.meta.dirname, "..", "main.ts"), "token", ...args, "--data", data];
      const child = execFile(process.execPath, command, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, said: (stdout + stderr).trim() }),
      );
    });
  const listed = async (): Promise<string[]> => (await stamp("list")).said.split("\n").filter((line) => line !== "");
  assert.deepEqual(await listed(), []);
  const [one, other] = await Promise.all([stamp("--internal"), stamp("--internal", "--as", "stamp-manager", "--minutes", "5")]);
  assert.deepEqual([one.code, other.code], [0, 2], other.said);
  assert.match(other.said, /--as: "stamp-manager" is not allowed: one of/);
  const facts = issuedTokenOf(one.said);
  assert.ok(facts, one.said);
  const second = issuedTokenOf((await stamp("--internal", "--as", "front-end", "--minutes", "5")).said);
  assert.ok(second);
  const line = ({ id, role, madeMs, endsMs }: typeof facts): string =>
    `${id}  ${role}  made ${new Date(madeMs).toISOString()}  until ${new Date(endsMs).toISOString()}`;
  assert.deepEqual(await listed(), [line(facts), line(second)]);

  assert.deepEqual(await stamp("revoke", "f".repeat(32)), {
    code: 2,
    said: `stamp: ${folder} lists no token ${"f".repeat(32)}: stamp token list`,
  });
  assert.equal((await stamp("revoke", facts.id)).said.split(":")[0], `${facts.id} is revoked`);
  assert.deepEqual(await listed(), [`${line(facts)}  revoked`, line(second)]);
  assert.match((await stamp("--internal", "--minutes", "1441")).said, /a day at most \(1440\)/);

  chmodSync(folder, 0o722);
  for (const args of [["--internal"], ["list"], ["revoke", second.id]]) {
    const { code, said } = await stamp(...args);
    assert.deepEqual([code, said.split(", ")[0]], [1, `stamp: ${folder} can be changed by others on this machine`], args.join(" "));
  }
  chmodSync(folder, 0o700);
  assert.deepEqual(await listed(), [`${line(facts)}  revoked`, line(second)]);
});
