/** Every kind of wrong path and value that a command can be given: an answer in words, its exit code, never a stack. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { silentLogger } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";

const stamp = (args: readonly string[], env: Record<string, string> = {}): Promise<{ readonly code: number; readonly said: string }> =>
  new Promise((resolve) => {
    const command = [join(import.meta.dirname, "main.ts"), ...args];
    const child = execFile(process.execPath, command, { env: { ...process.env, ...env } }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, said: stdout + stderr }),
    );
  });

function temporary(t: { after: (work: () => void) => void }): string {
  const folder = mkdtempSync(join(tmpdir(), "stamp-wrong-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("command line, a wrong path or value: told in words with its exit code, whatever the command does with it", async (t) => {
  const folder = temporary(t);
  const file = join(folder, "file");
  const missing = join(folder, "missing");
  writeFileSync(file, "hi\n");
  const damaged = join(folder, "damaged");
  mkdirSync(join(damaged, "extent-node-1", "files"), { recursive: true });
  writeFileSync(join(damaged, "extent-node-1", "files", "journal"), "no folder");
  const cases: [readonly string[], number, string][] = [
    [["metadata", "show", missing], 1, `${missing}: there is no such file or folder (ENOENT)`],
    [["config", "show", "--config", file], 2, `${file}: not JSON: Unexpected token 'h', "hi " is not valid JSON (line 1 column 1)`],
    [["stream", "modify", missing], 2, `${missing}: there is no such file or folder (ENOENT)`],
    [["certs", "init", "--dir", file], 1, `${file} is there already (EEXIST)`],
    [["fsck", "--json", "--data", damaged], 1, `io: journal: ENOTDIR: not a directory, scandir '${damaged}/extent-node-1/files/journal'`],
    [["health", "--data", missing], 3, `no cluster runs on ${missing} (start one: ./stamp up --data ${missing})`],
    [["node", "list", "--data", missing], 3, `no cluster runs on ${missing} (start one: ./stamp up --data ${missing})`],
    [["fsck", "--data", file], 1, `${file} is a file, not a folder (ENOTDIR)`],
    [
      ["up", "--data", missing, "--tls-cert", missing, "--tls-key", missing],
      2,
      `tlsCert, tlsKey: the certificate ${missing} with the key ${missing} can't be used: ${missing}: there is no such file or folder (ENOENT)`,
    ],
    [["token", "--account", "acme", "--key", "!!"], 2, "--key: what is given is not allowed: base64"],
    [["up", "--data", missing, "--ready-timeout-s", "1e308"], 2, '--ready-timeout-s: "1e308" is not allowed: a number, 0.001 to 2147483'],
    [["logs", "--data", missing, "--tail", "-1"], 2, '--tail: "-1" is not allowed: all, or a whole number, 1 to 9999999'],
    [["extent", "show", "x", "--data", missing], 2, 'id: "x" is not allowed: a whole number, 0 to 9007199254740991'],
    [["drill", "histories", "--seconds", "x"], 2, '--seconds: "x" is not allowed: a whole number, 0 to 999999'],
  ];
  for (const [args, code, words] of cases) {
    const { code: ended, said } = await stamp(args);
    assert.equal(said.split("\n")[0], `stamp: ${words}`, args.join(" "));
    assert.equal(ended, code, args.join(" "));
  }
  assert.deepEqual(readdirSync(folder), ["damaged", "file"]);
});

test("metadata backup into a folder that is not there: says which, and what to do; nothing is made", async (t) => {
  const folder = temporary(t);
  const dataDir = join(folder, "data");
  const world = nodeWorld({ dataDir, name: "lock-service-1", logger: silentLogger });
  const role = new LockServiceRole(world, lockServiceSchema.parse({ listen: "127.0.0.1:0", dataDir, init: true }));
  await role.start();
  t.after(async () => {
    await role.stop();
    await world.transport.close();
  });
  const env = { STAMP_PROCESSES: `lock-service-1=${role.address}:1` };
  const file = join(folder, "copies", "today");
  assert.deepEqual(await stamp(["metadata", "backup", file], env), {
    code: 1,
    said: `stamp: ${file}: there is no folder ${folder}/copies; make it, or name another one (ENOENT)\n`,
  });
  assert.deepEqual(readdirSync(folder), ["data"]);
  assert.equal((await stamp(["metadata", "backup", join(folder, "today")], env)).code, 0);
  assert.match((await stamp(["metadata", "backup", join(folder, "today")], env)).said, /today is there already: give another name/);
});
