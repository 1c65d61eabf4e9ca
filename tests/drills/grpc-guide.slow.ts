/** Every command of docs/guides/grpc.md, in one shell, against a cluster of its own. The ports of the guide become those of the cluster. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startOwn } from "@stamp/cli";
import { root } from "../tools/commands.ts";

/** Returns the lines of the indented blocks. */
async function commandsOf(guide: string): Promise<string[]> {
  const text = await readFile(join(root, "docs/guides", guide), "utf8");
  return [...text.matchAll(/^ {4}(.*)$/gm)].map(([, line]) => line as string);
}

test("guide: every command of the guide to gRPC tools works as written", { timeout: 300_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "stamp-guide-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const dataDir = join(folder, "data");
  const stamp = await startOwn({ dataDir }, true);
  t.after(() => stamp.close());
  const { lockService } = await stamp.status();
  const portBase = Number(lockService.split(":").at(-1)) - 100;
  const commands = await commandsOf("grpc.md");
  const script = commands
    .join("\n")
    .replaceAll(/127\.0\.0\.1:10(1\d\d)\b/g, (_, port: string) => `127.0.0.1:${portBase + Number(port)}`)
    .replaceAll("./stamp token", `'${join(root, "stamp")}' token --data '${dataDir}'`);
  const { stdout } = await promisify(execFile)("bash", ["-e", "-u", "-o", "pipefail", "-c", script], {
    cwd: folder,
    env: { ...process.env, PATH: `${join(root, "node_modules/.bin")}:${process.env.PATH}` },
    maxBuffer: 16 * 1024 * 1024,
  });
  assert.ok(commands.filter((line) => line.startsWith("rpc ")).length >= 10, "ten calls");
  assert.match(stdout, /^stamp\.v1\.FrontEnd$/m, "services are listed");
  assert.match(stdout, /"status": "SERVING"/, "health");
  assert.match(stdout, /"name": "a.txt"/, "the blob is written");
  assert.equal(stdout.match(/"aGVsbG8="/g)?.length, 2, "the blob, and the block that was appended, are read back");
  assert.match(stdout, /"rangeId"/, "the ranges are listed");
  assert.match(stdout, /"key"/, "changes of the metadata are told");
});
