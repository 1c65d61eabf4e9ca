/**
 * Decisions that code and documents name have to exist: a page that is folded into a design page is gone, and so are the references to it.
 * A number behind the word "decision", a list of numbers behind "decisions", paths below docs/decisions and links between its pages are looked up,
 * over the end of a line, too.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The breach that the test of tidy writes is text inside of it. */
const without = ["**/node_modules/**", "docs/decisions/README.md", "tests/tidy/tidy.test.ts"];
const gap = "[\\s*/#]+";
const named = new RegExp(`(?:\\bdecisions?(?:${gap}|/)|\\]\\()0\\d{3}\\b(?:(?:,|${gap}(?:and|to))${gap}0\\d{3}\\b)*`, "gi");

export function missingDecisions(root: string): string[] {
  const known = new Set(globSync("docs/decisions/0*.md", { cwd: root }).map((path) => path.slice("docs/decisions/".length).slice(0, 4)));
  const files = globSync(
    ["*.md", "Dockerfile", "{packages,services,tests,docs,proto,deploy,examples}/**/*.{ts,md,pml,proto,yaml,yml,sh,txt}"],
    {
      cwd: root,
      exclude: without,
    },
  );
  return files.sort().flatMap((path) => {
    const text = readFileSync(join(root, path), "utf8");
    return [...text.matchAll(named)]
      .flatMap(([words]) => words.match(/\b0\d{3}\b/g) ?? [])
      .filter((number) => !known.has(number))
      .map((number) => `${path}: names decision ${number}, which does not exist`);
  });
}
