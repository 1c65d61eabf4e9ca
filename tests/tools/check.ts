/** `npm run check`: types of the three programs, linter and formatter, the wire's linter, and that the generated code is fresh. */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Ran, root, run } from "./commands.ts";
import { decisionsIndex, indexPath } from "./decisions.ts";
import { pictures } from "./pictures.ts";
import { firstChecked, wrongSubjects } from "./subjects.ts";

/** Generates into a temporary folder and compares with what is committed. */
async function generatedIsFresh(): Promise<Ran> {
  const work = mkdtempSync(join(tmpdir(), "stamp-generate-"));
  try {
    const template = readFileSync(join(root, "buf.gen.yaml"), "utf8");
    const committed = "packages/wire/src/gen";
    if (!template.includes(`out: ${committed}`)) return { code: 1, output: `buf.gen.yaml does not write to ${committed}` };
    writeFileSync(join(work, "buf.gen.yaml"), template.replace(`out: ${committed}`, `out: ${join(work, "gen")}`));
    const made = await run("buf", ["generate", "--template", join(work, "buf.gen.yaml")]);
    if (made.code !== 0) return made;
    const list = (folder: string): string[] => globSync("**/*.ts", { cwd: folder }).sort();
    const fresh = list(join(work, "gen"));
    const held = list(join(root, committed));
    const differing = [...new Set([...fresh, ...held])].filter((file) => {
      if (!fresh.includes(file) || !held.includes(file)) return true;
      return readFileSync(join(work, "gen", file), "utf8") !== readFileSync(join(root, committed, file), "utf8");
    });
    if (differing.length === 0) return { code: 0, output: "" };
    return { code: 1, output: `not what 'npm run generate' makes of proto/: ${differing.join(", ")}\n` };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function decisionsAreListed(): Promise<Ran> {
  const fresh = readFileSync(join(root, indexPath), "utf8") === decisionsIndex(join(root, "docs/decisions"));
  return Promise.resolve({ code: fresh ? 0 : 1, output: fresh ? "" : `${indexPath}: run node tests/tools/decisions.ts\n` });
}

function picturesAreDrawn(): Promise<Ran> {
  const stale = pictures().filter(([path, svg]) => readFileSync(join(root, path), "utf8") !== svg);
  return Promise.resolve({ code: stale.length, output: stale.map(([path]) => `${path}: run node tests/tools/pictures.ts\n`).join("") });
}

/** Where git or the history is missing, as in an archive or a shallow clone, there is nothing to check. */
async function subjectsAreShort(): Promise<Ran> {
  const first = await run("git", firstChecked);
  const since = first.output.split("\n")[0] ?? "";
  const log = first.code === 0 && since !== "" ? await run("git", ["log", "--no-merges", "--format=%h %s", `${since}..HEAD`]) : undefined;
  const wrong = wrongSubjects(log?.code === 0 ? log.output : "");
  return { code: wrong.length, output: wrong.map((line) => `not "room: imperative" in 72 characters: ${line}\n`).join("") };
}

const checks: readonly (readonly [string, () => Promise<Ran>])[] = [
  ["types of the pure packages", () => run("tsc", ["-p", "tsconfig.pure.json"])],
  ["types of async packages and roles", () => run("tsc", ["-p", "tsconfig.async.json"])],
  ["types of the console's page", () => run("tsc", ["-p", "tsconfig.page.json"])],
  ["types of everything", () => run("tsc", ["-p", "tsconfig.node.json"])],
  ["linter and formatter", () => run("biome", ["check", "--error-on-warnings", "."])],
  ["the wire's linter", () => run("buf", ["lint"])],
  ["generated code is fresh", generatedIsFresh],
  ["list of decisions is fresh", decisionsAreListed],
  ["pictures are fresh", picturesAreDrawn],
  ["subjects of commits", subjectsAreShort],
];

const { values } = parseArgs({ options: { help: { type: "boolean", short: "h", default: false } } });
if (values.help) {
  console.log(`Usage: stamp check\n\nLooks at ${checks.map(([title]) => title).join("; ")}.`);
  process.exit(0);
}
let failed = 0;
for (const [title, check] of checks) {
  const startMs = performance.now();
  const { code, output } = await check();
  if (code !== 0) failed++;
  console.log(`${code === 0 ? "ok  " : "FAIL"} ${title} (${((performance.now() - startMs) / 1000).toFixed(1)} s)`);
  if (code !== 0) console.log(output.trimEnd());
}
console.log(`${checks.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
