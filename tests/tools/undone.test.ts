/** What a branch undoes of what landed beside it: told after a rebase by hand, and not told of lines that it could know. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { run } from "./commands.ts";
import { removedRanges, undoneLines } from "./undone.ts";

/** A repository in which every commit has the next second. */
async function repository(t: TestContext) {
  const cwd = mkdtempSync(join(tmpdir(), "stamp-undone-"));
  t.after(() => rmSync(cwd, { recursive: true, force: true }));
  let seconds = 1_700_000_000;
  const git = async (...args: string[]): Promise<void> => {
    const date = `${++seconds} +0000`;
    const identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    const { code, output } = await run("env", [`GIT_AUTHOR_DATE=${date}`, `GIT_COMMITTER_DATE=${date}`, "git", ...identity, ...args], {
      cwd,
    });
    assert.equal(code, 0, output);
  };
  const write = (name: string, ...lines: string[]): void => writeFileSync(join(cwd, name), lines.map((line) => `${line}\n`).join(""));
  const commit = async (subject: string): Promise<void> => {
    await git("add", "-A");
    await git("commit", "-q", "-m", subject);
  };
  await git("init", "-q", "-b", "main");
  write("a", "one", "two", "three", "four", "five", "six");
  await commit("base: begin");
  await git("branch", "late");
  return { cwd, git, write, commit };
}

test("undone: a commit of an older tree that is put on main takes out what landed meanwhile, and is told", async (t) => {
  const { cwd, git, write, commit } = await repository(t);
  await git("switch", "-q", "late");
  write("a", "one", "two", "three", "four", "five", "SIX");
  await commit("late: six");
  await git("switch", "-q", "main");
  write("a", "one", "two", "landed", "three", "four", "five", "six");
  await commit("other: land");
  await git("switch", "-q", "late");
  await git("rebase", "-q", "main");
  assert.deepEqual(await undoneLines(cwd, "main", "late"), []);

  // The file of the older tree, whole, as a merge by hand leaves it.
  write("a", "one", "two", "three", "four", "five", "SIX");
  await git("add", "-A");
  await git("commit", "-q", "--amend", "--no-edit");
  const undone = await undoneLines(cwd, "main", "late");
  assert.deepEqual(
    undone.map(({ by, of, path, text }) => [by.slice(by.indexOf(" ")), of.slice(of.indexOf(" ")), path, text]),
    [[" late: six", " other: land", "a", "landed"]],
  );
  await git("commit", "-q", "--amend", "--reset-author", "--no-edit");
  assert.deepEqual(await undoneLines(cwd, "main", "late"), []);
});

test("undone: a file that landed meanwhile and is gone is told; lines of the branch's own commits are not", async (t) => {
  const { cwd, git, write, commit } = await repository(t);
  await git("switch", "-q", "late");
  write("own", "first");
  await commit("late: one file");
  write("own", "second");
  await commit("late: the same file");
  await git("switch", "-q", "main");
  write("new", "landed");
  await commit("other: a file");
  await git("switch", "-q", "late");
  await git("rebase", "-q", "main");
  assert.deepEqual(await undoneLines(cwd, "main", "late"), []);
  await git("rm", "-q", "new");
  await git("commit", "-q", "--amend", "--no-edit");
  assert.deepEqual(
    (await undoneLines(cwd, "main", "late")).map(({ path, text }) => [path, text]),
    [["new", "landed"]],
  );
});

test("undone: ranges of removed lines, by the path before", () => {
  const diff = ["diff --git a/x b/y", "--- a/x", "+++ b/y", "@@ -3 +3 @@", "-c", "+d", "@@ -7,2 +6,0 @@", "@@ -9,0 +8,2 @@"].join("\n");
  assert.deepEqual([...removedRanges(diff)], [["x", ["3,3", "7,8"]]]);
  assert.deepEqual([...removedRanges('diff --git "a/\\303" b/y\n--- "a/\\303"\n@@ -3 +3 @@')], []);
});
