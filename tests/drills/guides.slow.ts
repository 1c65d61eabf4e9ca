/**
 * Every command of the README and the guides, as written, on one data folder: `running.md` first, which starts the cluster, then the others on
 * what runs. A folder stands for the clone: `./stamp` in it is the command line of this repository, told by the environment where the data are
 * and which ports are free. The ports that the guides name become those.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, globSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { reservePorts } from "@stamp/cluster";
import { root } from "../tools/commands.ts";
import { blocksOf, type GuideBlock, guides, textOf } from "../tools/guide-blocks.ts";
import { dayOfWork, namesAt, openPathsIn } from "./day-of-work.ts";

/** The others need a running cluster. What stops it or makes it serve HTTPS comes last. */
const first = ["README.md", "docs/guides/running.md"];
const last = ["docs/guides/internal-ports.md", "docs/guides/metadata.md", "docs/guides/access.md"];
const inOrder = [...first, ...guides().filter((guide) => ![...first, ...last].includes(guide)), ...last];

const untilCtrlCSeconds = 6;
const guideTimeoutMs = 240_000;

const clone = mkdtempSync(join(tmpdir(), "stamp-guides-"));
const dataDir = join(clone, ".stamp");
let portBase = 0;
const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${join(clone, "bin")}:${join(root, "node_modules/.bin")}:${process.env.PATH}`,
  STAMP_DATA_DIR: dataDir,
  STAMP_PORT_BASE: String(portBase),
});

interface Ran {
  readonly code: number;
  readonly output: string;
}

const bash = (script: string, timeoutMs: number): Promise<Ran> =>
  new Promise((resolve) => {
    // A first shell whose standard input is a socket takes itself for a remote one, and reads /etc/bash.bashrc, which fails with -u.
    const options = { cwd: clone, env: { ...environment(), SHLVL: "2" }, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile("bash", ["-E", "-e", "-u", "-o", "pipefail", "-c", script], options, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });

/** The ports that the guides name are those of a cluster at 10000. */
const withPorts = (commands: string): string =>
  commands.replaceAll(/(?<=:)10([0-3]\d\d)\b/g, (_, port: string) => String(portBase + Number(port)));

/** One script for a guide: functions and variables of a block hold in the next one. */
function scriptOf(blocks: readonly GuideBlock[]): string {
  const parts = blocks.map(({ guide, line, commands, how }) => {
    const text = withPorts(commands);
    const at = `echo "== ${guide}:${line}"`;
    if (how === "run") return `${at}\n${text}`;
    // 124: it ran until it was ended. 130: it ended itself by the signal.
    const ended = `timeout -s INT ${untilCtrlCSeconds} bash -e -u -c '${text.replaceAll("'", `'"'"'`)}' | tee until.txt || [ $? = 124 ] || [ $? = 130 ]`;
    return `${at}\n${ended}\n[ -s until.txt ] || { echo "nothing was printed"; exit 1; }`;
  });
  return [`trap 'echo "FAILED with exit code $?: $BASH_COMMAND" >&2' ERR`, ...parts].join("\n");
}

describe("guides", { timeout: 600_000 }, () => {
  before(async () => {
    portBase = (await reservePorts()).portBase;
    mkdirSync(join(clone, "bin"));
    for (const file of ["docs", "package.json", "stamp.mjs"]) symlinkSync(join(root, file), join(clone, file));
    // On a machine with much to do, requests are slow, and health says so with exit code 6.
    const script = `#!/bin/sh\n[ "$1" = health ] || exec "${join(root, "stamp")}" "$@"\n"${join(root, "stamp")}" "$@" || [ $? = 6 ]\n`;
    writeFileSync(join(clone, "stamp"), script);
    chmodSync(join(clone, "stamp"), 0o755);
  });
  after(async () => {
    await bash("./stamp down", 60_000);
    rmSync(clone, { recursive: true, force: true });
  });

  for (const guide of inOrder) {
    const blocks = blocksOf(guide).filter(({ how }) => how !== "not run");
    if (blocks.length === 0) continue;
    test(`every command of ${guide} works as written`, { timeout: guideTimeoutMs }, async () => {
      await preparations[guide]?.();
      if (!first.includes(guide)) await untilReady();
      const { code, output } = await bash(scriptOf(blocks), guideTimeoutMs);
      assert.equal(code, 0, output.slice(-6_000));
      await checks[guide]?.(output);
    });
  }

  test("after all of it: health doors name nothing of what clients store, and others can read no file of the stamp", async () => {
    const { output } = await bash("./stamp status --json", 60_000);
    const { processes } = JSON.parse(output) as { processes: readonly { http: string }[] };
    assert.ok(processes.length >= 12);
    assert.deepEqual(await namesAt(processes.map(({ http }) => http)), []);
    assert.deepEqual(openPathsIn(dataDir), []);
  });
});

const connectionString = (): Promise<string> =>
  bash("./stamp status --json", 60_000).then(({ output }) => (JSON.parse(output) as { connectionString: string }).connectionString);

const container = async (): Promise<ContainerClient> =>
  BlobServiceClient.fromConnectionString(await connectionString()).getContainerClient("kept");

/** Runs the program in TypeScript of the first steps, and returns what it prints. */
async function firstProgram(): Promise<string> {
  const [, program = ""] = /```ts\n(import \{ BlobServiceClient[\s\S]*?)```/.exec(textOf("docs/guides/first-steps.md")) ?? [];
  const options = { cwd: join(root, "tests"), env: { ...process.env, STAMP: await connectionString() } };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module-typescript", "-e", program], options);
  return stdout;
}

/** Waits until every extent node has a copy of the metadata from after now: what a restore loses is not what the test looks for. */
async function untilCopied(): Promise<void> {
  const sinceMs = Date.now();
  const copiedMs = (node: string): number =>
    Math.max(
      0,
      ...globSync(`${node}/files/metadata-copies/*.snapshot`, { cwd: dataDir }).map((file) => statSync(join(dataDir, file)).mtimeMs),
    );
  const nodes = ["extent-node-1", "extent-node-2", "extent-node-3", "extent-node-4"];
  while (nodes.some((node) => copiedMs(node) < sinceMs)) await new Promise((resolve) => setTimeout(resolve, 200));
}

/** Waits until every process is ready after the guide before, which may have restarted some. A guide then says what is wrong. */
async function untilReady(): Promise<void> {
  for (let tries = 0; tries < 30 && (await bash("./stamp status", 60_000)).code !== 0; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** What must have happened before a guide is followed. */
const preparations: Readonly<Record<string, () => Promise<void>>> = {
  // Checkpoints are new extents, so that a copy is due.
  "docs/guides/metadata.md": async () => {
    await workForADay();
    await untilCopied();
  },
};

/** A client's day, in an account of its own, and everything of it in checkpoints. */
async function workForADay(): Promise<void> {
  const { code, output } = await bash("./stamp account create zqxaccount --json", 60_000);
  assert.equal(code, 0, output);
  const { keys } = JSON.parse(output) as { keys: readonly string[] };
  const own = (await connectionString())
    .replaceAll("devstoreaccount1", "zqxaccount")
    .replace(/AccountKey=[^;]*/, () => `AccountKey=${keys[0]}`);
  await dayOfWork(own);
  const all = "for each in account-1 blob-1 entity-1 message-1; do ./stamp partition checkpoint $each; done";
  assert.equal((await bash(all, 120_000)).code, 0);
}

/** What a guide promises, seen from outside. */
const checks: Readonly<Record<string, (output: string) => Promise<void> | void>> = {
  "docs/guides/running.md": async (output) => {
    assert.match(output, /extent-node-5 is decommissioned/);
    assert.match(output, /"msg":"started"/, "the log tells the starts");
    const kept = await container();
    await kept.create();
    await kept.getBlockBlobClient("a").upload("kept", 4);
    assert.equal(await firstProgram(), "hello\n");
  },
  "docs/guides/grpc.md": (output) => {
    assert.ok(
      blocksOf("docs/guides/grpc.md").flatMap(({ commands }) => commands.match(/^(\w+=\$\()?rpc /gm) ?? []).length >= 10,
      "ten calls",
    );
    assert.match(output, /^stamp\.v1\.FrontEnd$/m, "services are listed");
    assert.match(output, /"status": "SERVING"/, "health");
    assert.match(output, /"name": "a.txt"/, "the blob is written");
    assert.equal(output.match(/"aGVsbG8="/g)?.length, 2, "the blob, and the block that was appended, are read back");
    assert.match(output, /"rangeId"/, "the ranges are listed");
    assert.match(output, /"key"/, "changes of the metadata are told");
  },
  "docs/guides/metadata.md": async (output) => {
    assert.match(output, /restored: the metadata of stamp /);
    assert.equal((await (await container()).getBlockBlobClient("a").downloadToBuffer()).toString(), "kept", "what was written is there");
  },
};
