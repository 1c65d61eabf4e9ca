/**
 * Suites of other projects that start the emulator by Docker, unmodified, with a stamp of `startStamp` in its place: `suites/stamp_emulator.py`
 * gives them its address. Each test that fails is named here with the reason. A suite whose packages can't be had here is skipped.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { startStamp } from "@stamp/embedded";
import { run } from "../tools/commands.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-suites-"));
const packages = join(folder, "packages");
const suites = join(import.meta.dirname, "suites");
/** What the suites need besides the projects: versions of 29 November 2026. */
const needed =
  "azure-storage-blob==12.31.1 pytest==9.2.0 pytest-asyncio==1.5.0 pytest-mock==3.17.0 pytest-timeout==2.4.0 requests==2.34.2 smbprotocol==1.17.0 " +
  "dask==2026.8.0 pandas==3.1.1 pyarrow==26.0.1";

interface Suite {
  readonly project: string;
  readonly version: string;
  readonly tests: readonly string[];
  /** Number of tests that pass. */
  readonly passed: number;
  /** Names of tests that fail, and why. */
  readonly failed: Readonly<Record<string, string>>;
}

const emptyElement = "expects {} as metadata of a blob that has none: a list has an empty element, of which the SDK makes None";

const all: readonly Suite[] = [
  {
    project: "adlfs",
    version: "2026.8.0",
    // Left out: a blob of 3 GiB, which would be in the memory of this process.
    tests: ["adlfs/tests", "--deselect", "adlfs/tests/test_spec.py::test_large_upload_overflow"],
    passed: 187,
    failed: {
      test_ls: emptyElement,
      test_find: emptyElement,
      test_ls_files_with_same_prefix: 'expects no blob "file.txt.": dots at the end of a segment are dropped, so that it is "file.txt"',
    },
  },
  {
    project: "universal-pathlib",
    version: "0.3.10",
    tests: ["upath/tests/implementations/test_azure.py"],
    passed: 125,
    failed: {},
  },
];

let missing: string | undefined;
before(async () => {
  const projects = all.map(({ project, version }) => `${project}==${version}`);
  const pip = ["-m", "pip", "--disable-pip-version-check"];
  const quiet = ["--quiet", "--root-user-action", "ignore", "--prefer-binary"];
  const installed = await run("python3", [...pip, "install", ...quiet, "--target", packages, ...projects, ...needed.split(" ")]);
  if (installed.code !== 0) missing = `not installed: ${installed.output.trim().split("\n").at(-1)}`;
});
after(() => rmSync(folder, { recursive: true, force: true }));

for (const { project, version, tests, passed, failed } of all) {
  test(`suite of ${project}, stamp in place of the emulator, passes but for what is named`, { timeout: 900_000 }, async (t) => {
    if (missing !== undefined) return t.skip(missing);
    // Tests of a project are in its source archive only.
    const sources = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, `${project}==${version}`];
    const loaded = await run("python3", sources);
    if (loaded.code !== 0) return t.skip(`not loaded: ${loaded.output.trim().split("\n").at(-1)}`);
    const name = `${project.replace("-", "_")}-${version}`;
    assert.equal((await run("tar", ["-xzf", `${name}.tar.gz`], { cwd: folder })).code, 0);
    await using stamp = await startStamp();
    const port = new URL(stamp.endpoints.blob).port;
    const settings = {
      PATH: `${join(suites, "bin")}${delimiter}${process.env.PATH}`,
      PYTHONPATH: `${suites}${delimiter}${packages}`,
      STAMP_BLOB_PORT: port,
      UPATH_AZURITE_PORT: port,
    };
    const words = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
    const report = join(folder, `${project}.xml`);
    const pytest = ["-p", "stamp_emulator", "-p", "no:cacheprovider", "--timeout", "120", `--junitxml=${report}`, ...tests];
    const { output } = await run("env", [...words, "python3", "-m", "pytest", ...pytest], { cwd: join(folder, name), timeoutMs: 800_000 });
    const cases = [...readFileSync(report, "utf8").matchAll(/<testcase [^>]*\bname="([^"]*)"[^>]*?(\/>|>\s*<(\w+))/g)];
    const named = (kinds: readonly string[]): string[] =>
      cases.filter(([, , , kind = "passed"]) => kinds.includes(kind)).map(([, test = ""]) => test);
    const ran = output.trim().split("\n").at(-1) ?? "";
    t.diagnostic(`${project} ${version}: ${ran}`);
    assert.deepEqual(named(["failure", "error"]).sort(), Object.keys(failed).sort(), output.slice(-8_000));
    assert.equal(Number(/(\d+) passed/.exec(ran)?.[1]), passed, ran);
  });
}
