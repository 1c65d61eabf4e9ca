/**
 * Comments begin with what they describe. "Of the last commit", "What it holds", "As above" lean on the line below and can't be read alone.
 * Words that only the authors used for a while are refused, too: the glossary has the field's word for each.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const begin =
  /^(Of|That|What|Those|As|From|Who|Whose|Which|Than|Whom|By whom|To whom|And|Another one|One (that|of)|The ones? (that|who|whose|before|without)|The same (of|for|with|while|where|piece)|Asked (of|in|for|again|before|behind|while))\b/;

/** Private words of earlier comments. Identifiers and stored names in backquotes may have them. */
const privateWords =
  /\b(heirs?|untold|fruitless|such an? one|had better|what (is|was) told|what(ever)? (becomes|became) of|(comes?|came|became|becomes) of (it|them|either))\b/i;

interface Comment {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  /** All of it, without its marks. */
  readonly whole: string;
}

/** Comments that stand on lines of their own; neighbouring `//` lines are one. */
function commentsOf(text: string): Comment[] {
  const lines = text.split("\n");
  const comments: Comment[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, mark = "", rest = ""] = /^\s*(\/\*\*|\/\/) ?(.*)$/.exec(lines[at] ?? "") ?? [];
    if (mark === "") continue;
    const first = mark === "/**" && rest === "" ? (lines[at + 1] ?? "").replace(/^\s*\* ?/, "") : rest;
    const line = at + 1;
    const words = [rest];
    const inside = mark === "/**" ? (line: string) => !line.includes("*/") : (_: string, next: string) => /^\s*\/\//.test(next);
    while (at < lines.length && inside(lines[at] ?? "", lines[at + 1] ?? ""))
      words.push((lines[++at] ?? "").replace(/^\s*(\*\/?|\/\/) ?/, ""));
    comments.push({ line, text: first, whole: words.join(" ") });
  }
  return comments;
}

export interface JudgedComment {
  readonly path: string;
  readonly line: number;
  /** Its first words, if it begins with a fragment. */
  readonly fragment: string | undefined;
  readonly privateWord: string | undefined;
}

/** Returns all comments of packages and services. */
export function judgedComments(root: string): JudgedComment[] {
  const files = globSync("{packages,services}/*/src/**/*.{ts,tsx}", { cwd: root, exclude: ["**/gen/**"] }).sort();
  return files.flatMap((path) =>
    commentsOf(readFileSync(join(root, path), "utf8")).map(({ line, text, whole }) => ({
      path,
      line,
      fragment: begin.test(text) ? text.slice(0, 60) : undefined,
      privateWord: privateWords.exec(whole.replace(/`[^`]*`/g, ""))?.[0],
    })),
  );
}

export function fragments(root: string): string[] {
  return judgedComments(root).flatMap(({ path, line, fragment, privateWord }) => [
    ...(fragment === undefined ? [] : [`${path}:${line}: comment begins with a fragment: ${fragment}`]),
    ...(privateWord === undefined ? [] : [`${path}:${line}: comment has a private word: ${privateWord}`]),
  ]);
}
