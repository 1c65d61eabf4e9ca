/**
 * The main operations with SDKs of other languages, against a stamp in this process: Python's azure-storage-blob, azure-data-tables,
 * azure-storage-queue and azure-storage-file-share, Go's azblob, aztables, azqueue and azfile, Java's azure-storage-file-share. Each SDK is
 * fetched from its registry into a temporary folder; where the language or its registry is missing, a line says so.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { testCertificate } from "../conformance/certificate.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { findHosts } from "../files/files-bench.ts";
import { HandlesBench, read, write } from "../files/handles-bench.ts";
import { run } from "../tools/commands.ts";

const pythonSdks = [
  ["azure-storage-blob==12.31.1", "blobs"],
  ["azure-data-tables==12.7.0", "tables"],
  ["azure-storage-queue==12.18.1", "queues"],
  ["azure-storage-file-share[aio]==12.27.0", "files"],
] as const;
const folder = mkdtempSync(join(tmpdir(), "stamp-interop-"));
let stamp: Awaited<ReturnType<typeof startStamp>>;

before(async () => {
  stamp = await startStamp(threeOnDisk);
});
after(async () => {
  await stamp.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** With what the programs want to know. */
function withStamp(...command: string[]) {
  const { blob, file, queue, table } = stamp.endpoints;
  const names = { STAMP_BLOB_ENDPOINT: blob, STAMP_QUEUE_ENDPOINT: queue, STAMP_TABLE_ENDPOINT: table, STAMP_FILE_ENDPOINT: file };
  const settings = { ...names, STAMP_ACCOUNT: accountName, STAMP_KEY: accountKey };
  return run("env", [...Object.entries(settings).map(([name, value]) => `${name}=${value}`), ...command]);
}

for (const [sdk, program] of pythonSdks) {
  test(`Python's ${sdk} does its main operations`, async (context) => {
    const made = await run("python3", ["-m", "venv", join(folder, program)]);
    if (made.code !== 0) return context.skip(`no Python with venv here: ${made.output.trim().split("\n").at(-1)}`);
    const python = join(folder, program, "bin/python");
    const fetched = await run(python, ["-m", "pip", "install", "--quiet", sdk]);
    if (fetched.code !== 0) return context.skip(`${sdk} can't be fetched here: ${fetched.output.trim().split("\n").at(-1)}`);
    const { code, output } = await withStamp(python, join(import.meta.dirname, `python/${program}.py`));
    console.log(output.trim());
    assert.equal(code, 0, output);
    assert.match(output, /all passed/);
  });
}

test("Python's azure-storage-blob with keys of its own, over HTTPS", async (context) => {
  const python = join(folder, "blobs", "bin/python");
  // The test of its main operations fetches it.
  const found = existsSync(python) ? (await run(python, ["-c", "import azure.storage.blob"])).code === 0 : false;
  if (!found) return context.skip("azure-storage-blob was not fetched");
  const certificate = await testCertificate();
  const secure = await startStamp({ ...threeOnDisk, tls: certificate.tls });
  try {
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, certificate.ca);
    const settings = [
      `STAMP_BLOB_ENDPOINT=${secure.endpoints.blob}`,
      `STAMP_ACCOUNT=${accountName}`,
      `STAMP_KEY=${accountKey}`,
      `STAMP_CA=${ca}`,
    ];
    const { code, output } = await run("env", [...settings, python, join(import.meta.dirname, "python/keys.py")]);
    console.log(output.trim());
    assert.equal(code, 0, output);
    assert.match(output, /all passed/);
  } finally {
    await secure.stop();
    certificate.remove();
  }
});

const lakeClients = "azure-storage-file-datalake==12.26.1 adlfs fsspec pandas pyarrow duckdb deltalake polars".split(" ");

test("Python's clients of Data Lake Storage, on an account with directories", async (context) => {
  const made = await run("python3", ["-m", "venv", join(folder, "lake")]);
  if (made.code !== 0) return context.skip(`no Python with venv here: ${made.output.trim().split("\n").at(-1)}`);
  const python = join(folder, "lake", "bin/python");
  const fetched = await run(python, ["-m", "pip", "install", "--quiet", ...lakeClients], { timeoutMs: 400_000 });
  if (fetched.code !== 0) return context.skip(`clients of Data Lake Storage can't be fetched: ${fetched.output.trim().split("\n").at(-1)}`);
  const lake = await startStamp({ hierarchicalNamespace: true });
  try {
    const endpoints = [`STAMP_DFS_ENDPOINT=${lake.endpoints.dfs}`, `STAMP_BLOB_ENDPOINT=${lake.endpoints.blob}`];
    const account = [`STAMP_ACCOUNT=${accountName}`, `STAMP_KEY=${accountKey}`];
    const program = join(import.meta.dirname, "python/lake.py");
    const { code, output } = await run("env", [...endpoints, ...account, python, program], { timeoutMs: 300_000 });
    console.log(output.trim());
    assert.equal(code, 0, output);
    assert.match(output, /all passed/);
  } finally {
    await lake.stop();
  }
});

test("Go's azblob, aztables, azqueue and azfile do their main operations", async (context) => {
  const found = await run("go", ["version"]);
  if (found.code !== 0) return context.skip("no Go here");
  cpSync(join(import.meta.dirname, "go"), join(folder, "go"), { recursive: true });
  const fetched = await run("go", ["-C", join(folder, "go"), "build", "-o", "interop", "."]);
  if (fetched.code !== 0) return context.skip(`Go's SDKs can't be fetched or built here: ${fetched.output.trim().split("\n").at(-1)}`);
  for (const program of ["blobs", "tables", "queues", "files"]) {
    const { code, output } = await withStamp(join(folder, "go/interop"), program);
    console.log(output.trim());
    assert.equal(code, 0, output);
    assert.match(output, /all passed/);
  }
});

test("Java's azure-storage-file-share does its main operations, and finds and closes the handle of a gateway", async (context) => {
  for (const program of ["javac", "mvn"]) if ((await run(program, ["-version"])).code !== 0) return context.skip(`no ${program} here`);
  const sources = join(import.meta.dirname, "java");
  const jars = join(folder, "jars");
  const copy = ["-q", "-B", "-f", join(sources, "pom.xml"), "dependency:copy-dependencies", `-DoutputDirectory=${jars}`];
  const fetched = await run("mvn", copy, { timeoutMs: 400_000 });
  if (fetched.code !== 0) return context.skip(`the SDK for Java can't be fetched here: ${fetched.output.trim().split("\n").at(-1)}`);
  const classes = join(folder, "classes");
  const compiled = await run("javac", ["-cp", join(jars, "*"), "-d", classes, join(sources, "Files.java")]);
  assert.equal(compiled.code, 0, compiled.output);
  findHosts();
  const bench = await HandlesBench.start();
  try {
    await bench.file("held");
    await bench.open("held", { access: read | write, shareMode: read });
    const hosts = join(folder, "hosts");
    writeFileSync(hosts, `127.0.0.1 ${accountName}.file.localhost\n`);
    const files = ["java", "-XX:TieredStopAtLevel=1", `-Djdk.net.hosts.file=${hosts}`, "-cp", `${classes}:${join(jars, "*")}`, "Files"];
    for (const command of [files, ["env", `STAMP_FILE_ENDPOINT=${bench.endpoint}`, ...files, "handles"]]) {
      const { code, output } = await withStamp(...command);
      console.log(output.trim());
      assert.equal(code, 0, output);
      assert.match(output, /all passed/);
    }
  } finally {
    await bench.stop();
    mock.restoreAll();
  }
});
