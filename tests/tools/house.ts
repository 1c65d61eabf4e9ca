/**
 * Prints statistics of the source text at some commits: `node tests/tools/house.ts COMMIT …`. Each commit is
 * unpacked into a temporary folder and counted by today's rules (`tests/tidy`, and the linter's bound of lines for a function).
 */
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { judgedComments } from "../tidy/comments.ts";
import { cyclesBetween } from "../tidy/folders.ts";
import { linesMax } from "../tidy/long-files.ts";
import { readSources } from "../tidy/tidy.ts";
import { run } from "./commands.ts";

const functionLinesMax = 80;
const linter = {
  linter: {
    rules: {
      recommended: false,
      complexity: { noExcessiveLinesPerFunction: { level: "error", options: { maxLines: functionLinesMax } } },
    },
  },
};

async function statistics(commit: string): Promise<Readonly<Record<string, number>>> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-house-"));
  try {
    const packed = join(folder, "commit.tar");
    const tree = await run("git", ["archive", "-o", packed, commit, "packages", "services", "docs", ":(glob)*.md"]);
    if (tree.code !== 0) throw new Error(tree.output);
    await run("tar", ["-xf", packed, "-C", folder]);
    rmSync(packed);
    writeFileSync(join(folder, "biome.json"), JSON.stringify(linter));
    const sources = readSources(folder);
    const shipped = sources.filter(({ path, isTest }) => !isTest && /\/src\//.test(path));
    const lines = ({ text }: { readonly text: string }): number => text.split("\n").length - 1;
    const comments = judgedComments(folder);
    const paths = shipped.map(({ path }) => path);
    const documents = globSync(["*.md", "{docs,packages,services}/**/*.md"], { cwd: folder });
    const linted = await run("biome", ["lint", "--max-diagnostics=none", "--colors=off", "packages", "services"], { cwd: folder });
    const long = [...linted.output.matchAll(/^(\S+\.ts):\d+:\d+ .*noExcessiveLinesPerFunction/gm)].filter(([, path = ""]) =>
      paths.includes(path),
    );
    return {
      "shipped source files": shipped.length,
      "their lines": shipped.reduce((sum, source) => sum + lines(source), 0),
      "comments, tests included": comments.length,
      "comments that begin with a fragment": comments.filter(({ fragment }) => fragment !== undefined).length,
      "comments with a private word": comments.filter(({ privateWord }) => privateWord !== undefined).length,
      [`files over ${linesMax} lines, tests included`]: sources.filter((source) => lines(source) > linesMax).length,
      [`shipped functions over ${functionLinesMax} lines`]: long.length,
      "import cycles over values": cyclesBetween(shipped, false).length,
      "import cycles over types": cyclesBetween(shipped, true).length,
      "documents (*.md of the root, docs, packages and services)": documents.length,
      "their bytes": documents.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const commits = process.argv.slice(2);
if (commits.length === 0) {
  console.error("usage: node tests/tools/house.ts COMMIT …");
  process.exit(64);
}
const counted: Readonly<Record<string, number>>[] = [];
for (const commit of commits) counted.push(await statistics(commit));
console.log(`| | ${commits.join(" | ")} |\n|${"---|".repeat(commits.length + 1)}`);
for (const what of Object.keys(counted[0] ?? {})) console.log(`| ${what} | ${counted.map((each) => each[what]).join(" | ")} |`);
