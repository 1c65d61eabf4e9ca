/** Comments begin with what they describe. "Of the last commit", "What it holds", "As above" lean on the line below and can't be read alone. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const begin = /^(Of|That|What|Those|As|From|Who|Whose|Which|Than|Whom|By whom|To whom)\b/;

interface Comment {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** Comments that stand on lines of their own; neighbouring `//` lines are one. */
function commentsOf(text: string): Comment[] {
  const lines = text.split("\n");
  const comments: Comment[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, mark = "", rest = ""] = /^\s*(\/\*\*|\/\/) ?(.*)$/.exec(lines[at] ?? "") ?? [];
    if (mark === "") continue;
    const first = mark === "/**" && rest === "" ? (lines[at + 1] ?? "").replace(/^\s*\* ?/, "") : rest;
    comments.push({ line: at + 1, text: first });
    const inside = mark === "/**" ? (line: string) => !line.includes("*/") : (_: string, next: string) => /^\s*\/\//.test(next);
    while (at < lines.length && inside(lines[at] ?? "", lines[at + 1] ?? "")) at++;
  }
  return comments;
}

export function fragments(root: string): string[] {
  const files = globSync("{packages,services}/*/src/**/*.ts", { cwd: root, exclude: ["**/gen/**"] }).sort();
  return files.flatMap((path) =>
    commentsOf(readFileSync(join(root, path), "utf8"))
      .filter(({ text }) => begin.test(text))
      .map(({ line, text }) => `${path}:${line}: comment begins with a fragment: ${text.slice(0, 60)}`),
  );
}
