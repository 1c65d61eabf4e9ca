/**
 * `./stamp land`, in a branch beside main: rebases it on main, refuses it if it takes out what landed after it was written, runs `./stamp check`,
 * the tests of the packages that it changes and those of tests/tidy, and fast-forwards main. Main moves by nothing else.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root, run } from "./commands.ts";
import { undoneLines } from "./undone.ts";

const usage = `usage: ./stamp land [--main BRANCH]

Rebases the current branch on main, refuses it if one of its commits takes out lines that landed after the commit was
written, runs ./stamp check and the tests of what it changes, and moves main to it.

  --main BRANCH   the branch to land on (default: main)

If a commit takes such lines out on purpose, look at them again, and say so with
  git commit --amend --reset-author --no-edit
which sets the time at which the commit was written.`;

class Refused extends Error {}

async function git(...args: string[]): Promise<string> {
  const { code, output } = await run("git", args);
  if (code !== 0) throw new Refused(`git ${args.join(" ")}: ${output.trim()}`);
  return output.trim();
}

async function passes(title: string, args: readonly string[]): Promise<void> {
  console.log(`${title} …`);
  const { code, output } = await run(process.execPath, args, { timeoutMs: 3_600_000 });
  if (code !== 0) throw new Refused(`${output.split("\n").slice(-60).join("\n").trim()}\n${title}: failed, and main is as it was`);
  console.log(output.trim().split("\n").at(-1));
}

/** Folders of tests that the changed files belong to. */
function testsOf(paths: readonly string[]): string[] {
  const rooms = paths.map((path) => /^(?:packages|services)\/[^/]+\/|^tests\/(?!interop|compose)[^/]+\//.exec(path)?.[0]);
  return [...new Set(["tests/tidy/", ...rooms.filter((room) => room !== undefined)])].sort();
}

/** Folder in which the branch is checked out, if it is. */
async function checkedOut(branch: string): Promise<string | undefined> {
  const trees = (await git("worktree", "list", "--porcelain")).split("\n\n");
  const tree = trees.find((text) => text.split("\n").includes(`branch refs/heads/${branch}`));
  return tree?.split("\n")[0]?.slice("worktree ".length);
}

async function land(main: string): Promise<void> {
  const branch = await git("branch", "--show-current");
  if (branch === "" || branch === main) throw new Refused(`stamp land is run on a branch beside ${main}: git switch -c NAME`);
  if ((await git("status", "--porcelain")) !== "") throw new Refused("there are changes that are not committed: git status");
  const rebased = await run("git", ["rebase", main]);
  if (rebased.code !== 0) {
    throw new Refused(`${rebased.output.trim()}\nKeep what both sides meant, then: git rebase --continue, and ./stamp land again`);
  }
  if ((await git("rev-list", "--count", `${main}..HEAD`)) === "0") throw new Refused(`${branch} has nothing that ${main} has not`);
  console.log(await git("diff", "--stat", `${main}...HEAD`));
  const undone = await undoneLines(root, main, "HEAD");
  if (undone.length > 0) {
    const told = undone.slice(0, 40).map(({ by, of, path, text }) => `${path}: "${text}"\n  of ${of}\n  is taken out by ${by}`);
    const more = undone.length > told.length ? `\nand ${undone.length - told.length} lines more` : "";
    throw new Refused(
      `${told.join("\n")}${more}\nThese lines landed after the commit was written. If that is meant: git commit --amend --reset-author --no-edit`,
    );
  }
  const tip = await git("rev-parse", main);
  await passes("./stamp check", ["tests/tools/check.ts"]);
  const rooms = testsOf((await git("diff", "--name-only", `${main}...HEAD`)).split("\n"));
  // A room may have no tests of its own.
  const tested = [];
  for (const room of rooms) if ((await git("ls-files", `${room}*.test.ts`)) !== "") tested.push(room);
  await passes(`tests of ${tested.join(", ")}`, ["tests/tools/test.ts", ...tested]);
  // Moved meanwhile: what was tested is not what would land.
  if ((await git("rev-parse", main)) !== tip) throw new Refused(`${main} has moved meanwhile: run ./stamp land again`);
  const at = await checkedOut(main);
  if (at !== undefined && existsSync(join(at, ".git"))) await git("-C", at, "merge", "--ff-only", branch);
  else await git("update-ref", `refs/heads/${main}`, "HEAD", tip);
  console.log(`${main} is now ${await git("log", "-1", "--format=%h %s")}`);
}

try {
  const { values } = parseArgs({ options: { main: { type: "string", default: "main" }, help: { type: "boolean", short: "h" } } });
  if (values.help === true) console.log(usage);
  else await land(values.main);
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.error(`stamp land: ${error.message}`);
  process.exitCode = 1;
}
