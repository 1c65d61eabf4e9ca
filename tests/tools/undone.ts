/**
 * Lines that a branch takes out although they landed after its commits were written: the sign of a change that was made on an older tree and
 * carried over by hand. A rebase keeps the time at which a commit was written, and sets the time at which it was committed.
 */
import { run } from "./commands.ts";

export interface Undone {
  /** Short hash and subject of the commit that takes the line out. */
  readonly by: string;
  /** Short hash and subject of the commit that brought it. */
  readonly of: string;
  readonly path: string;
  readonly text: string;
}

async function git(cwd: string, ...args: string[]): Promise<string> {
  const { code, output } = await run("git", args, { cwd });
  if (code !== 0) throw new Error(`git ${args.join(" ")}: ${output.trim()}`);
  return output;
}

/** Path before the commit → ranges of lines that it takes out, as `git blame -L` takes them. */
export function removedRanges(diff: string): Map<string, string[]> {
  const ranges = new Map<string, string[]>();
  let path: string | undefined;
  for (const line of diff.split("\n")) {
    // A name with other characters than these is in quotes; such a file is not looked at.
    if (line.startsWith("diff --git ")) path = undefined;
    else if (line.startsWith("--- a/")) path = line.slice("--- a/".length).trimEnd();
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+/.exec(line);
    if (hunk === null || path === undefined) continue;
    const [from, count] = [Number(hunk[1]), Number(hunk[2] ?? 1)];
    if (count > 0) ranges.set(path, [...(ranges.get(path) ?? []), `${from},${from + count - 1}`]);
  }
  return ranges;
}

/** Lines with words that commits of `branch` behind `main` take out, and that landed after the commit was written. */
export async function undoneLines(cwd: string, main: string, branch: string): Promise<Undone[]> {
  const own = (await git(cwd, "rev-list", "--reverse", "--no-merges", `${main}..${branch}`)).split("\n").filter((hash) => hash !== "");
  const titleOf = async (hash: string): Promise<string> => (await git(cwd, "log", "-1", "--format=%h %s", hash)).trim();
  const undone: Undone[] = [];
  for (const commit of own) {
    const writtenS = Number(await git(cwd, "log", "-1", "--format=%at", commit));
    const diff = await git(cwd, "diff", "-U0", "--no-color", "--no-ext-diff", "--diff-filter=MD", `${commit}^`, commit);
    for (const [path, ranges] of removedRanges(diff)) {
      const lines = ranges.flatMap((range) => ["-L", range]);
      const blamed = await git(cwd, "blame", "--line-porcelain", ...lines, `${commit}^`, "--", path);
      let [of, landedS] = ["", 0];
      for (const line of blamed.split("\n")) {
        const head = /^([0-9a-f]{40}) \d+ \d+/.exec(line);
        if (head !== null) of = head[1] ?? "";
        else if (line.startsWith("committer-time ")) landedS = Number(line.slice("committer-time ".length));
        else if (line.startsWith("\t") && /\w/.test(line) && landedS > writtenS && !own.includes(of)) {
          undone.push({ by: await titleOf(commit), of: await titleOf(of), path, text: line.trim() });
        }
      }
    }
  }
  return undone;
}
